//! Invitations: links by which people become members of the organization.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::{ApiResponse, Object, OpenApi};
use uuid::Uuid;
use waypost_core::auth::Role;
use waypost_core::db::OrFault;
use waypost_core::idempotency::single::Idempotent;
use waypost_core::ids::InvitationId;
use waypost_core::invitation::{Invitation, InvitationReply, NewInvitation, store};
use waypost_core::secret::ExposeSecret;
use waypost_core::text::Name;
use waypost_core::user::AccountEmail;
use waypost_core::user::password::NewPassword;

use crate::context::Context;
use crate::error::Failure;
use crate::fields::people::{Code, LinkToken};
use crate::fields::{PageLimit, PageNumber};
use crate::middleware::auth::{Anyone, Requires};
use crate::middleware::permission;
use crate::request::body::{JsonBody, OTHER_BYTES_MAX};
use crate::request::cursor::CursorQuery;
use crate::request::idempotency_key::{KeyHeader, created};
use crate::request::path_id::PathId;
use crate::request::query::Query;
use crate::response::{Data, Paged, Success, Time};
use crate::v1::Section;
use crate::v1::invitation_mail;
use crate::v1::session::{SessionCreated, shown};
use crate::validate::{Settable, Validated};

pub(crate) struct InvitationsApi {
    pub(crate) context: Arc<Context>,
}

/// An invitation that is neither accepted nor expired.
#[derive(Debug, Object)]
#[oai(rename = "Invitation", rename_all = "camelCase")]
struct InvitationView {
    id: Uuid,
    email: String,
    role: String,
    created_at: Time,
    /// When the link stops working.
    expires_at: Time,
    /// The id of the user or of the API key that invited, or `system` if the operator did.
    created_by: String,
}

impl From<Invitation> for InvitationView {
    fn from(invitation: Invitation) -> Self {
        let created_by = invitation.created_by.map(|id| id.to_string());
        Self {
            id: invitation.id.0,
            email: invitation.email.as_str().to_owned(),
            role: invitation.role.as_str().to_owned(),
            created_at: Time(invitation.created_at),
            expires_at: Time(invitation.expires_at),
            created_by: created_by.unwrap_or_else(|| "system".to_owned()),
        }
    }
}

/// An invitation with its link, which is returned only once.
#[derive(Debug, Object)]
struct InvitationWithUrl {
    #[oai(flatten)]
    invitation: InvitationView,
    /// The link. It works once, for seven days.
    url: String,
    /// Whether the link is sent to the address through Waypost. If not, pass it on.
    mailed: bool,
}

impl InvitationWithUrl {
    fn of(made: &NewInvitation, public_url: &str) -> Self {
        Self {
            invitation: made.invitation.clone().into(),
            url: link(made, public_url),
            mailed: made.mailed,
        }
    }
}

/// The token stands behind `#`, so that no server's log has it.
fn link(made: &NewInvitation, public_url: &str) -> String {
    format!("{public_url}/invitation#{}", made.token.expose_secret())
}

/// Somebody to invite.
#[derive(Debug, Object)]
struct CreateInvitationRequest {
    /// The address of the person.
    email: Validated<AccountEmail>,
    /// The role that the person gets. The caller must have each of its permissions.
    role: Validated<Role>,
}

/// The changes to an invitation. Absent fields keep their values.
#[derive(Debug, Object)]
struct UpdateInvitationRequest {
    /// The new role. The caller must have each of its permissions.
    role: Validated<Settable<Role>>,
}

/// The link to look up.
#[derive(Debug, Object)]
struct LookUpInvitationRequest {
    /// The token in the link, after `#`.
    token: Validated<LinkToken>,
}

/// What an invitation says.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct InvitationDetail {
    /// The name of the organization.
    organization_name: String,
    email: String,
    role: String,
    /// Whether there is a user with the address, whose password must be given.
    has_user: bool,
}

/// The answer to an invitation.
#[derive(Debug, Object)]
struct AcceptInvitationRequest {
    /// The token in the link, after `#`.
    token: Validated<LinkToken>,
    /// The name of a new user. The default is the part of the address before the `@`.
    name: Validated<Option<Name>>,
    /// The password that a new user gets, of 12 to 128 characters; or the present password of
    /// the user.
    password: Validated<NewPassword>,
    /// The code of the second factor, or a recovery code. Required if the user has a second
    /// factor.
    code: Validated<Option<Code>>,
}

#[derive(ApiResponse)]
enum InvitationCreated {
    /// The person is invited. Only this response contains the link.
    #[oai(status = 201)]
    Created(Json<Data<InvitationWithUrl>>),
}

type InvitationAnswer = Result<Json<Data<InvitationView>>, Failure>;

#[OpenApi(tag = "Section::Invitations")]
impl InvitationsApi {
    /// List invitations
    ///
    /// Requires the permission `MEMBERS_WRITE`. The newest invitation comes first. Those that
    /// are accepted or expired are not listed.
    #[oai(
        path = "/v1/invitations",
        method = "get",
        operation_id = "list_invitations"
    )]
    async fn list_invitations(
        &self,
        caller: Requires<permission::MembersWrite>,
        /// The page number, from 1.
        page: Query<Validated<Option<PageNumber>>>,
        /// The number of items per page.
        limit: Query<Validated<Option<PageLimit>>>,
        /// The `nextCursor` of the page before, instead of `page`. The pages stay as they are
        /// while the list grows at its beginning.
        cursor: CursorQuery,
    ) -> Result<Json<Paged<InvitationView>>, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let page = cursor
            .read_page(page.0, limit.0, &mut issues)
            .ok_or(Failure::Invalid(issues))?;
        let doing = "list invitations";
        let now = self.context.clock.now();
        let mut connection = self.context.pool.acquire().await.or_fault(doing)?;
        let found = store::list(&mut connection, caller.organization_id(), page, now).await?;
        Ok(Json(Paged {
            data: found.rows.into_iter().map(InvitationView::from).collect(),
            pagination: cursor.pagination(page, found.total, found.next),
        }))
    }

    /// Invite somebody
    ///
    /// Requires the permission `MEMBERS_WRITE` and every permission of the role. The link is
    /// sent to the address if the operator has set a sender for invitations and the organization
    /// can send from it.
    #[oai(
        path = "/v1/invitations",
        method = "post",
        operation_id = "create_invitation"
    )]
    async fn create_invitation(
        &self,
        caller: Requires<permission::MembersWrite>,
        /// Makes the request safe to repeat.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<CreateInvitationRequest, OTHER_BYTES_MAX>,
    ) -> Result<InvitationCreated, Failure> {
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
        let public_url = &self.context.accounts.public_url;
        let idempotent = Idempotent::new(claim, &self.context.sealer, |made: &NewInvitation| {
            let data = InvitationWithUrl::of(made, public_url);
            created(&Data { data })
        });
        let invitations = &self.context.invitations;
        let mut made = invitations
            .create(caller.member_act(), email, role, &idempotent)
            .await?;
        // What a test key does reaches nobody.
        if !caller.is_test()
            && let Some(view) = invitations.look_up(&made.token).await?
        {
            let url = link(&made, public_url);
            made.mailed = invitation_mail::send(&self.context, &view, &url).await;
            idempotent.amend(&invitations.pool, &made).await?;
        }
        Ok(InvitationCreated::Created(Json(Data {
            data: InvitationWithUrl::of(&made, public_url),
        })))
    }

    /// Get an invitation
    ///
    /// Requires the permission `MEMBERS_WRITE`.
    #[oai(
        path = "/v1/invitations/:id",
        method = "get",
        operation_id = "get_invitation"
    )]
    async fn get_invitation(
        &self,
        caller: Requires<permission::MembersWrite>,
        /// The id of the invitation.
        id: Path<PathId>,
    ) -> InvitationAnswer {
        let caller = caller.authorize()?;
        let id: InvitationId = id.0.of(INVITATION)?;
        let (of, now) = (caller.organization_id(), self.context.clock.now());
        let doing = "show an invitation";
        let mut connection = self.context.pool.acquire().await.or_fault(doing)?;
        let invitation = store::find(&mut connection, of, id, now)
            .await?
            .ok_or(Failure::NotFound(INVITATION))?;
        Ok(Json(Data {
            data: invitation.into(),
        }))
    }

    /// Change the role of an invitation
    ///
    /// Requires the permission `MEMBERS_WRITE` and every permission of the old and of the new
    /// role. The link stays the same.
    #[oai(
        path = "/v1/invitations/:id",
        method = "patch",
        operation_id = "update_invitation"
    )]
    async fn update_invitation(
        &self,
        caller: Requires<permission::MembersWrite>,

        /// The id of the invitation.
        id: Path<PathId>,
        body: JsonBody<UpdateInvitationRequest, OTHER_BYTES_MAX>,
    ) -> InvitationAnswer {
        let caller = caller.authorize()?;
        let id: InvitationId = id.0.of(INVITATION)?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let role = request.role.change("role", &mut issues);
        if !issues.is_empty() {
            return Err(Failure::Invalid(issues));
        }
        let invitations = &self.context.invitations;
        let changed = invitations.change(caller.member_act(), id, role).await?;
        Ok(Json(Data {
            data: changed.into(),
        }))
    }

    /// Withdraw an invitation
    ///
    /// Requires the permission `MEMBERS_WRITE` and every permission of the role. The link stops
    /// working.
    #[oai(
        path = "/v1/invitations/:id",
        method = "delete",
        operation_id = "delete_invitation"
    )]
    async fn delete_invitation(
        &self,
        caller: Requires<permission::MembersWrite>,

        /// The id of the invitation.
        id: Path<PathId>,
    ) -> Result<Json<Success>, Failure> {
        let caller = caller.authorize()?;
        let id: InvitationId = id.0.of(INVITATION)?;
        let invitations = &self.context.invitations;
        invitations.delete(caller.member_act(), id).await?;
        Ok(Json(Success { success: true }))
    }

    /// Look up an invitation
    ///
    /// Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Returns 404 if the
    /// link is unknown, used or expired.
    #[oai(
        path = "/v1/invitations/look-up",
        method = "post",
        operation_id = "look_up_invitation"
    )]
    async fn look_up_invitation(
        &self,
        caller: Anyone,
        body: JsonBody<LookUpInvitationRequest, OTHER_BYTES_MAX>,
    ) -> Result<Json<Data<InvitationDetail>>, Failure> {
        caller.authorize()?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let token = request.token.take("token", &mut issues);
        let (Some(token), true) = (token, issues.is_empty()) else {
            return Err(Failure::Invalid(issues));
        };
        let found = self.context.invitations.look_up(&token.0).await?;
        let found = found.ok_or(Failure::NotFound(INVITATION))?;
        Ok(Json(Data {
            data: InvitationDetail {
                organization_name: found.organization_name,
                email: found.invitation.email.as_str().to_owned(),
                role: found.invitation.role.as_str().to_owned(),
                has_user: found.has_user,
            },
        }))
    }

    /// Accept an invitation
    ///
    /// Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Makes the person a
    /// member, as a new user if there is none with the address, and sets the cookie of a new
    /// session.
    #[oai(
        path = "/v1/invitations/accept",
        method = "post",
        operation_id = "accept_invitation"
    )]
    async fn accept_invitation(
        &self,
        caller: Anyone,
        body: JsonBody<AcceptInvitationRequest, OTHER_BYTES_MAX>,
    ) -> Result<SessionCreated, Failure> {
        let origin = caller.authorize()?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let token = request.token.take("token", &mut issues);
        let name = request.name.take("name", &mut issues);
        let password = request.password.take("password", &mut issues);
        let code = request.code.take("code", &mut issues);
        let (Some(token), Some(name), Some(password), Some(code), true) =
            (token, name, password, code, issues.is_empty())
        else {
            return Err(Failure::Invalid(issues));
        };
        let acceptance = InvitationReply {
            token: token.0,
            name,
            password,
            code: code.map(|code| code.0),
        };
        let invitations = &self.context.invitations;
        let started = invitations.accept(acceptance, &origin).await?;
        let (session, cookie) = shown(&self.context, &started).await?;
        Ok(SessionCreated::Created(
            Json(Data { data: session }),
            cookie,
        ))
    }
}

const INVITATION: &str = "invitation";
