//! Unsubscribe groups: the kinds of messages that recipients can unsubscribe from.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::{ApiResponse, Object, OpenApi};
use uuid::Uuid;
use waypost_core::db::OrFault;
use waypost_core::idempotency::single::Idempotent;
use waypost_core::ids::UnsubscribeGroupId;
use waypost_core::organization;
use waypost_core::text::{Description, Name};
use waypost_core::unsubscribe::follow::Subscription;
use waypost_core::unsubscribe::{GroupChange, NewGroup, UnsubscribeGroup, store};

use crate::context::Context;
use crate::error::Failure;
use crate::middleware::auth::{Caller, Requires};
use crate::middleware::permission;
use crate::public::language::Language;
use crate::public::page::{Pages, SubscriptionContent, SubscriptionPage};
use crate::request::body::{JsonBody, OTHER_BYTES_MAX};
use crate::request::idempotency_key::{KeyHeader, created};
use crate::request::path_id::PathId;
use crate::request::query::Query;
use crate::response::{Data, Nullable, Success, Time};
use crate::v1::Section;
use crate::validate::{Clearable, Settable, Validated};

pub(crate) struct UnsubscribeGroupsApi {
    pub(crate) context: Arc<Context>,
}

/// A kind of messages that recipients can unsubscribe from.
#[derive(Debug, Object)]
#[oai(rename = "UnsubscribeGroup", rename_all = "camelCase")]
struct UnsubscribeGroupView {
    id: Uuid,
    organization_id: Uuid,
    name: String,
    description: Nullable<String>,
    /// Whether this is the default group of the organization. At most one group is.
    is_default: bool,
    created_at: Time,
}

impl From<UnsubscribeGroup> for UnsubscribeGroupView {
    fn from(group: UnsubscribeGroup) -> Self {
        Self {
            id: group.id.0,
            organization_id: group.organization_id.0,
            name: group.name,
            description: Nullable(group.description),
            is_default: group.is_default,
            created_at: Time(group.created_at),
        }
    }
}

/// A page as a recipient sees it.
#[derive(Debug, Object)]
struct PagePreview {
    /// The whole page. Show it in a frame without rights (`<iframe sandbox>`).
    html: String,
}

/// An unsubscribe group to create.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct CreateUnsubscribeGroupRequest {
    /// The name of the group, which recipients see.
    name: Validated<Name>,
    /// The description of the group.
    description: Validated<Option<Description>>,
    /// Whether the group becomes the default group, in place of the present one. The
    /// default is false.
    is_default: Validated<Option<bool>>,
}

/// The changes to a group. Absent fields keep their values.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct UpdateUnsubscribeGroupRequest {
    /// The name of the group, which recipients see.
    name: Validated<Settable<Name>>,
    /// The description of the group; null removes it.
    description: Validated<Clearable<Description>>,
    /// Whether the group is the default group; true replaces the present one.
    is_default: Validated<Settable<bool>>,
}

#[derive(ApiResponse)]
enum GroupCreated {
    /// The group is created.
    #[oai(status = 201)]
    GroupCreated(Json<Data<UnsubscribeGroupView>>),
}

const GROUP: &str = "unsubscribe group";
/// The address in a preview, masked as a recipient's.
const SAMPLE_ADDRESS: &str = "a•••@example.com";

#[OpenApi(tag = "Section::UnsubscribeGroups")]
impl UnsubscribeGroupsApi {
    /// List unsubscribe groups
    ///
    /// Requires the permission `SETTINGS_WRITE`. The oldest group comes first.
    #[oai(
        path = "/v1/unsubscribe-groups",
        method = "get",
        operation_id = "list_unsubscribe_groups"
    )]
    async fn list_unsubscribe_groups(
        &self,
        caller: Requires<permission::SettingsWrite>,
    ) -> Result<Json<Data<Vec<UnsubscribeGroupView>>>, Failure> {
        let caller = caller.authorize()?;
        let mut connection = self
            .context
            .pool
            .acquire()
            .await
            .or_fault("list unsubscribe groups")?;
        let groups = store::list(&mut connection, caller.organization_id()).await?;
        let data = groups.into_iter().map(UnsubscribeGroupView::from).collect();
        Ok(Json(Data { data }))
    }

    /// Create an unsubscribe group
    ///
    /// Requires the permission `SETTINGS_WRITE`.
    #[oai(
        path = "/v1/unsubscribe-groups",
        method = "post",
        operation_id = "create_unsubscribe_group"
    )]
    async fn create_unsubscribe_group(
        &self,
        caller: Requires<permission::SettingsWrite>,
        /// Makes the request safe to repeat.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<CreateUnsubscribeGroupRequest, OTHER_BYTES_MAX>,
    ) -> Result<GroupCreated, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let claim = key.claim(&self.context, &caller, &body, &mut issues);
        let request = body.take(&mut issues)?;
        let name = request.name.take("name", &mut issues);
        let description = request.description.take("description", &mut issues);
        let is_default = request.is_default.take("isDefault", &mut issues);
        let (Some(name), Some(description), Some(is_default), Some(claim), true) =
            (name, description, is_default, claim, issues.is_empty())
        else {
            return Err(Failure::Invalid(issues));
        };
        let idempotent =
            Idempotent::new(claim, &self.context.sealer, |group: &UnsubscribeGroup| {
                let data = UnsubscribeGroupView::from(group.clone());
                created(&Data { data })
            });
        let wanted = NewGroup {
            name,
            description,
            is_default: is_default.unwrap_or(false),
        };
        let groups = &self.context.groups;
        let group = groups
            .create(
                caller.organization_id(),
                caller.origin(),
                wanted,
                &idempotent,
            )
            .await?;
        Ok(GroupCreated::GroupCreated(Json(Data {
            data: group.into(),
        })))
    }

    /// Get an unsubscribe group
    ///
    /// Requires the permission `SETTINGS_WRITE`.
    #[oai(
        path = "/v1/unsubscribe-groups/:id",
        method = "get",
        operation_id = "get_unsubscribe_group"
    )]
    async fn get_unsubscribe_group(
        &self,
        caller: Requires<permission::SettingsWrite>,

        /// The id of the unsubscribe group.
        id: Path<PathId>,
    ) -> Result<Json<Data<UnsubscribeGroupView>>, Failure> {
        let caller = caller.authorize()?;
        let id: UnsubscribeGroupId = id.0.of(GROUP)?;
        let group = self.find(&caller, id).await?;
        Ok(Json(Data { data: group.into() }))
    }

    /// Change an unsubscribe group
    ///
    /// Requires the permission `SETTINGS_WRITE`.
    #[oai(
        path = "/v1/unsubscribe-groups/:id",
        method = "patch",
        operation_id = "update_unsubscribe_group"
    )]
    async fn update_unsubscribe_group(
        &self,
        caller: Requires<permission::SettingsWrite>,

        /// The id of the unsubscribe group.
        id: Path<PathId>,
        body: JsonBody<UpdateUnsubscribeGroupRequest, OTHER_BYTES_MAX>,
    ) -> Result<Json<Data<UnsubscribeGroupView>>, Failure> {
        let caller = caller.authorize()?;
        let id: UnsubscribeGroupId = id.0.of(GROUP)?;
        // Before the body is parsed: the group may not exist.
        self.find(&caller, id).await?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let name = request.name.change("name", &mut issues);
        let description = request.description.change("description", &mut issues);
        let is_default = request.is_default.change("isDefault", &mut issues);
        if !issues.is_empty() {
            return Err(Failure::Invalid(issues));
        }
        let wanted = GroupChange {
            name,
            description,
            is_default,
        };
        let groups = &self.context.groups;
        let group = groups
            .change(caller.organization_id(), caller.origin(), id, wanted)
            .await?;
        Ok(Json(Data { data: group.into() }))
    }

    /// Preview the page of an unsubscribe link
    ///
    /// Requires the permission `SETTINGS_WRITE`. The page that a recipient sees after
    /// unsubscribing from the group, with the organization's name and colour and a made-up
    /// sender and address. Nothing is changed.
    #[oai(
        path = "/v1/unsubscribe-groups/:id/page-preview",
        method = "get",
        operation_id = "preview_unsubscribe_page"
    )]
    async fn preview_unsubscribe_page(
        &self,
        caller: Requires<permission::SettingsWrite>,

        /// The id of the unsubscribe group.
        id: Path<PathId>,
        /// The language of the page. The default is `en`. Recipients get the one that their
        /// browser asks for.
        language: Query<Validated<Option<Language>>>,
    ) -> Result<Json<Data<PagePreview>>, Failure> {
        let caller = caller.authorize()?;
        let id: UnsubscribeGroupId = id.0.of(GROUP)?;
        let mut issues = Vec::new();
        let language = language.0.take("language", &mut issues);
        let language = language.ok_or(Failure::Invalid(issues))?;
        let group = self.find(&caller, id).await?;
        let mut connection = self.context.pool.acquire().await.or_fault("show a page")?;
        let settings =
            organization::store::find_settings(&mut connection, caller.organization_id())
                .await?
                .ok_or(Failure::NotFound(GROUP))?;
        let content = SubscriptionContent {
            subscription: Subscription {
                sender: format!("{} <news@example.com>", settings.name),
                organization: settings.name,
                brand_color: settings.brand_color,
                group: Some(group.name),
            },
            address: SAMPLE_ADDRESS.to_owned(),
            action: Some("#".to_owned()),
        };
        let pages = Pages::in_language(language.unwrap_or(Language::English));
        let page = pages.subscription(SubscriptionPage::Unsubscribed, &content);
        let html = page.into_html();
        Ok(Json(Data {
            data: PagePreview { html },
        }))
    }

    /// Remove an unsubscribe group
    ///
    /// Requires the permission `SETTINGS_WRITE`. The suppressions of the group are
    /// deleted too.
    #[oai(
        path = "/v1/unsubscribe-groups/:id",
        method = "delete",
        operation_id = "delete_unsubscribe_group"
    )]
    async fn delete_unsubscribe_group(
        &self,
        caller: Requires<permission::SettingsWrite>,

        /// The id of the unsubscribe group.
        id: Path<PathId>,
    ) -> Result<Json<Success>, Failure> {
        let caller = caller.authorize()?;
        let id: UnsubscribeGroupId = id.0.of(GROUP)?;
        self.context
            .groups
            .remove(caller.organization_id(), caller.origin(), id)
            .await?;
        Ok(Json(Success { success: true }))
    }
}

impl UnsubscribeGroupsApi {
    async fn find(
        &self,
        caller: &Caller,
        id: UnsubscribeGroupId,
    ) -> Result<UnsubscribeGroup, Failure> {
        let mut connection = self
            .context
            .pool
            .acquire()
            .await
            .or_fault("find an unsubscribe group")?;
        let found = store::find(&mut connection, caller.organization_id(), id).await?;
        found.ok_or(Failure::NotFound(GROUP))
    }
}
