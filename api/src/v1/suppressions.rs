//! Suppressions: addresses that receive no messages.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::{ApiResponse, Object, OpenApi};
use uuid::Uuid;
use waypost_core::address::EmailAddress;
use waypost_core::db::OrFault;
use waypost_core::idempotency::single::Idempotent;
use waypost_core::ids::{SuppressionId, UnsubscribeGroupId};
use waypost_core::suppression::import::Imported;
use waypost_core::suppression::store::{self, SuppressionFilter};
use waypost_core::suppression::{NewSuppression, Suppression, SuppressionSource};

use crate::context::Context;
use crate::error::Failure;
use crate::fields::content::Addresses;
use crate::fields::{PageLimit, PageNumber};
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::body::{IMPORT_BYTES_MAX, JsonBody, OTHER_BYTES_MAX};
use crate::request::cursor::CursorQuery;
use crate::request::idempotency_key::{KeyHeader, created, stored_answer};
use crate::request::path_id::PathId;
use crate::request::query::Query;
use crate::response::{Data, Nullable, Paged, Success, Time};
use crate::v1::Section;
use crate::validate::Validated;

pub(crate) struct SuppressionsApi {
    pub(crate) context: Arc<Context>,
}

/// An address that receives no messages. Only its hash is stored.
#[derive(Debug, Object)]
#[oai(rename = "Suppression", rename_all = "camelCase")]
struct SuppressionView {
    id: Uuid,
    organization_id: Uuid,
    /// The SHA-256 of the address in lower case, as lower-case hexadecimal.
    email_hash: String,
    /// The unsubscribe group that the suppression applies to; null if it applies to all
    /// messages.
    unsubscribe_group_id: Nullable<Uuid>,
    /// The source of the suppression.
    source: String,
    created_at: Time,
}

impl From<Suppression> for SuppressionView {
    fn from(suppression: Suppression) -> Self {
        Self {
            id: suppression.id.0,
            organization_id: suppression.organization_id.0,
            email_hash: suppression.email_hash.to_hex(),
            unsubscribe_group_id: Nullable(suppression.unsubscribe_group_id.map(|id| id.0)),
            source: suppression.source.to_string(),
            created_at: Time(suppression.created_at),
        }
    }
}

/// An address to suppress.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct CreateSuppressionRequest {
    /// The address. Only its hash is stored.
    email: Validated<EmailAddress>,
    /// The unsubscribe group that the suppression applies to. The default is all
    /// messages.
    unsubscribe_group_id: Validated<Option<UnsubscribeGroupId>>,
    /// The source of the suppression. The default is MANUAL.
    source: Validated<Option<SuppressionSource>>,
}

/// Addresses to suppress.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct ImportSuppressionsRequest {
    /// 1 to 10,000 addresses. Only their hashes are stored.
    emails: Validated<Addresses>,
    /// The unsubscribe group that the suppressions apply to. The default is all messages.
    unsubscribe_group_id: Validated<Option<UnsubscribeGroupId>>,
}

/// The result of an import.
#[derive(Debug, Object)]
struct ImportResult {
    /// The number of newly suppressed addresses.
    imported: u64,
    /// The number of addresses that were already suppressed or were repeated in the
    /// request.
    skipped: u64,
    /// The number of addresses in the request: `imported` plus `skipped`.
    total: u64,
}

impl From<Imported> for ImportResult {
    fn from(imported: Imported) -> Self {
        Self {
            imported: imported.imported as u64,
            skipped: imported.skipped as u64,
            total: (imported.imported + imported.skipped) as u64,
        }
    }
}

#[derive(ApiResponse)]
enum SuppressionCreated {
    /// The address is suppressed.
    #[oai(status = 201)]
    SuppressionCreated(Json<Data<SuppressionView>>),
}

const SUPPRESSION: &str = "suppression";

#[OpenApi(tag = "Section::Suppressions")]
impl SuppressionsApi {
    /// List suppressions
    ///
    /// Requires the permission `SETTINGS_WRITE`. The newest suppression comes first.
    #[oai(
        path = "/v1/suppressions",
        method = "get",
        operation_id = "list_suppressions"
    )]
    #[expect(clippy::too_many_arguments, reason = "each query parameter is one")]
    async fn list_suppressions(
        &self,
        caller: Requires<permission::SettingsWrite>,
        /// The page number, from 1.
        page: Query<Validated<Option<PageNumber>>>,
        /// The number of items per page.
        limit: Query<Validated<Option<PageLimit>>>,
        /// The `nextCursor` of the page before, instead of `page`. The pages stay as they are
        /// while the list grows at its beginning.
        cursor: CursorQuery,
        /// Only suppressions with this source.
        source: Query<Validated<Option<SuppressionSource>>>,
        /// Only suppressions of this unsubscribe group.
        #[oai(name = "groupId")]
        group_id: Query<Validated<Option<UnsubscribeGroupId>>>,
    ) -> Result<Json<Paged<SuppressionView>>, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let page = cursor.read_page(page.0, limit.0, &mut issues);
        let source = source.0.take("source", &mut issues);
        let group_id = group_id.0.take("groupId", &mut issues);
        let (Some(page), Some(source), Some(group_id)) = (page, source, group_id) else {
            return Err(Failure::Invalid(issues));
        };
        let filter = SuppressionFilter {
            source,
            unsubscribe_group_id: group_id,
        };
        let mut connection = self
            .context
            .pool
            .acquire()
            .await
            .or_fault("list suppressions")?;
        let found = store::list(&mut connection, caller.organization_id(), filter, page).await?;
        Ok(Json(Paged {
            data: found.rows.into_iter().map(SuppressionView::from).collect(),
            pagination: cursor.pagination(page, found.total, found.next),
        }))
    }

    /// Suppress an address
    ///
    /// Requires the permission `SETTINGS_WRITE`. From now on nothing is sent to the
    /// address, including messages that were already accepted.
    #[oai(
        path = "/v1/suppressions",
        method = "post",
        operation_id = "create_suppression"
    )]
    async fn create_suppression(
        &self,
        caller: Requires<permission::SettingsWrite>,
        /// Makes the request safe to repeat.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<CreateSuppressionRequest, OTHER_BYTES_MAX>,
    ) -> Result<SuppressionCreated, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let claim = key.claim(&self.context, &caller, &body, &mut issues);
        let request = body.take(&mut issues)?;
        let email = request.email.take("email", &mut issues);
        let group_id = request
            .unsubscribe_group_id
            .take("unsubscribeGroupId", &mut issues);
        let source = request.source.take("source", &mut issues);
        let (Some(email), Some(group_id), Some(source), Some(claim), true) =
            (email, group_id, source, claim, issues.is_empty())
        else {
            return Err(Failure::Invalid(issues));
        };
        let idempotent =
            Idempotent::new(claim, &self.context.sealer, |suppression: &Suppression| {
                let data = SuppressionView::from(suppression.clone());
                created(&Data { data })
            });
        let wanted = NewSuppression {
            address: &email,
            unsubscribe_group_id: group_id,
            source: source.unwrap_or(SuppressionSource::Manual),
        };
        let suppressions = &self.context.suppressions;
        let suppression = suppressions
            .create(
                caller.organization_id(),
                caller.origin(),
                wanted,
                &idempotent,
            )
            .await?;
        Ok(SuppressionCreated::SuppressionCreated(Json(Data {
            data: suppression.into(),
        })))
    }

    /// Import suppressions
    ///
    /// Requires the permission `SETTINGS_WRITE`. Addresses that are already suppressed
    /// are skipped.
    #[oai(
        path = "/v1/suppressions/import",
        method = "post",
        operation_id = "import_suppressions"
    )]
    async fn import_suppressions(
        &self,
        caller: Requires<permission::SettingsWrite>,
        /// Makes the request safe to repeat.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<ImportSuppressionsRequest, IMPORT_BYTES_MAX>,
    ) -> Result<Json<Data<ImportResult>>, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let claim = key.claim(&self.context, &caller, &body, &mut issues);
        let request = body.take(&mut issues)?;
        let emails = request.emails.take("emails", &mut issues);
        let group_id = request
            .unsubscribe_group_id
            .take("unsubscribeGroupId", &mut issues);
        let (Some(emails), Some(group_id), Some(claim), true) =
            (emails, group_id, claim, issues.is_empty())
        else {
            return Err(Failure::Invalid(issues));
        };
        let idempotent = Idempotent::new(claim, &self.context.sealer, |imported: &Imported| {
            let data = ImportResult::from(*imported);
            stored_answer(200, &Data { data })
        });
        let hashes = emails.0.iter().map(EmailAddress::hash).collect();
        let suppressions = &self.context.suppressions;
        let imported = suppressions
            .import(
                caller.organization_id(),
                caller.origin(),
                hashes,
                group_id,
                &idempotent,
            )
            .await?;
        Ok(Json(Data {
            data: imported.into(),
        }))
    }

    /// Remove a suppression
    ///
    /// Requires the permission `SETTINGS_WRITE`. Messages can be sent to the address
    /// again.
    #[oai(
        path = "/v1/suppressions/:id",
        method = "delete",
        operation_id = "delete_suppression"
    )]
    async fn delete_suppression(
        &self,
        caller: Requires<permission::SettingsWrite>,

        /// The id of the suppression.
        id: Path<PathId>,
    ) -> Result<Json<Success>, Failure> {
        let caller = caller.authorize()?;
        let id: SuppressionId = id.0.of(SUPPRESSION)?;
        self.context
            .suppressions
            .remove(caller.organization_id(), caller.origin(), id)
            .await?;
        Ok(Json(Success { success: true }))
    }
}
