//! The members of the organization and their roles.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::{ApiResponse, Object, OpenApi};
use uuid::Uuid;
use waypost_core::auth::Role;
use waypost_core::db::OrFault;
use waypost_core::idempotency::single::Idempotent;
use waypost_core::ids::MembershipId;
use waypost_core::member::{Member, store};
use waypost_core::user::AccountEmail;

use crate::context::Context;
use crate::error::Failure;
use crate::fields::{PageLimit, PageNumber};
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::body::{JsonBody, OTHER_BYTES_MAX};
use crate::request::cursor::CursorQuery;
use crate::request::idempotency_key::{KeyHeader, created};
use crate::request::path_id::PathId;
use crate::request::query::Query;
use crate::response::{Data, Nullable, Paged, Success, Time};
use crate::v1::Section;
use crate::validate::{Settable, Validated};

pub(crate) struct MembersApi {
    pub(crate) context: Arc<Context>,
}

/// A user of the organization.
#[derive(Debug, Object)]
#[oai(rename = "Member", rename_all = "camelCase")]
struct MemberView {
    /// The id of the membership.
    id: Uuid,
    user_id: Uuid,
    email: String,
    name: String,
    role: String,
    /// When the user last began a session in the organization.
    last_signed_in_at: Nullable<Time>,
    /// When the user became a member.
    created_at: Time,
}

impl From<Member> for MemberView {
    fn from(member: Member) -> Self {
        Self {
            id: member.id.0,
            user_id: member.user_id.0,
            email: member.email.as_str().to_owned(),
            name: member.name,
            role: member.role.as_str().to_owned(),
            last_signed_in_at: Nullable(member.last_signed_in_at.map(Time)),
            created_at: Time(member.created_at),
        }
    }
}

/// A user to make a member.
#[derive(Debug, Object)]
struct CreateMemberRequest {
    /// The address of the user.
    email: Validated<AccountEmail>,
    /// The role of the member. The caller must have each of its permissions.
    role: Validated<Role>,
}

/// The changes to a member. Absent fields keep their values.
#[derive(Debug, Object)]
struct UpdateMemberRequest {
    /// The new role. The caller must have each of its permissions.
    role: Validated<Settable<Role>>,
}

#[derive(ApiResponse)]
enum MemberCreated {
    /// The user is a member.
    #[oai(status = 201)]
    Created(Json<Data<MemberView>>),
}

type MemberAnswer = Result<Json<Data<MemberView>>, Failure>;

#[OpenApi(tag = "Section::Members")]
impl MembersApi {
    /// List members
    ///
    /// Requires the permission `MEMBERS_WRITE`. The newest member comes first.
    #[oai(path = "/v1/members", method = "get", operation_id = "list_members")]
    async fn list_members(
        &self,
        caller: Requires<permission::MembersWrite>,
        /// The page number, from 1.
        page: Query<Validated<Option<PageNumber>>>,
        /// The number of items per page.
        limit: Query<Validated<Option<PageLimit>>>,
        /// The `nextCursor` of the page before, instead of `page`. The pages stay as they are
        /// while the list grows at its beginning.
        cursor: CursorQuery,
    ) -> Result<Json<Paged<MemberView>>, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let page = cursor
            .read_page(page.0, limit.0, &mut issues)
            .ok_or(Failure::Invalid(issues))?;
        let doing = "list members";
        let mut connection = self.context.pool.acquire().await.or_fault(doing)?;
        let found = store::list(&mut connection, caller.organization_id(), page).await?;
        Ok(Json(Paged {
            data: found.rows.into_iter().map(MemberView::from).collect(),
            pagination: cursor.pagination(page, found.total, found.next),
        }))
    }

    /// Add a member
    ///
    /// Requires the permission `MEMBERS_WRITE` and every permission of the role. Makes somebody
    /// a member who is a user of this installation already; others are invited.
    #[oai(path = "/v1/members", method = "post", operation_id = "create_member")]
    async fn create_member(
        &self,
        caller: Requires<permission::MembersWrite>,
        /// Makes the request safe to repeat.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<CreateMemberRequest, OTHER_BYTES_MAX>,
    ) -> Result<MemberCreated, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let claim = key.claim(&self.context, &caller, &body, &mut issues);
        let request = body.take(&mut issues)?;
        let email = request.email.take("email", &mut issues);
        let role = request.role.take("role", &mut issues);
        let (Some(email), Some(role), Some(claim), true) = (email, role, claim, issues.is_empty())
        else {
            return Err(Failure::Invalid(issues));
        };
        let idempotent = Idempotent::new(claim, &self.context.sealer, |member: &Member| {
            let data = MemberView::from(member.clone());
            created(&Data { data })
        });
        let members = &self.context.members;
        let member = members
            .create(caller.member_act(), &email, role, &idempotent)
            .await?;
        Ok(MemberCreated::Created(Json(Data {
            data: member.into(),
        })))
    }

    /// Get a member
    ///
    /// Requires the permission `MEMBERS_WRITE`.
    #[oai(path = "/v1/members/:id", method = "get", operation_id = "get_member")]
    async fn get_member(
        &self,
        caller: Requires<permission::MembersWrite>,
        /// The id of the member.
        id: Path<PathId>,
    ) -> MemberAnswer {
        let caller = caller.authorize()?;
        let id: MembershipId = id.0.of(MEMBER)?;
        let doing = "show a member";
        let mut connection = self.context.pool.acquire().await.or_fault(doing)?;
        let member = store::find(&mut connection, caller.organization_id(), id)
            .await?
            .ok_or(Failure::NotFound(MEMBER))?;
        Ok(Json(Data {
            data: member.into(),
        }))
    }

    /// Change the role of a member
    ///
    /// Requires the permission `MEMBERS_WRITE` and every permission of the old and of the new
    /// role. The last owner stays one. The change takes effect within five seconds.
    #[oai(
        path = "/v1/members/:id",
        method = "patch",
        operation_id = "update_member"
    )]
    async fn update_member(
        &self,
        caller: Requires<permission::MembersWrite>,

        /// The id of the member.
        id: Path<PathId>,
        body: JsonBody<UpdateMemberRequest, OTHER_BYTES_MAX>,
    ) -> MemberAnswer {
        let caller = caller.authorize()?;
        let id: MembershipId = id.0.of(MEMBER)?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let role = request.role.change("role", &mut issues);
        if !issues.is_empty() {
            return Err(Failure::Invalid(issues));
        }
        let members = &self.context.members;
        let member = members.change(caller.member_act(), id, role).await?;
        Ok(Json(Data {
            data: member.into(),
        }))
    }

    /// Remove a member
    ///
    /// Requires the permission `MEMBERS_WRITE` and every permission of the member's role. The
    /// last owner cannot be removed. The sessions of the user in the organization end.
    #[oai(
        path = "/v1/members/:id",
        method = "delete",
        operation_id = "delete_member"
    )]
    async fn delete_member(
        &self,
        caller: Requires<permission::MembersWrite>,

        /// The id of the member.
        id: Path<PathId>,
    ) -> Result<Json<Success>, Failure> {
        let caller = caller.authorize()?;
        let id: MembershipId = id.0.of(MEMBER)?;
        self.context.members.remove(caller.member_act(), id).await?;
        Ok(Json(Success { success: true }))
    }
}

const MEMBER: &str = "member";
