//! Suppressions: addresses that receive no messages.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::{ApiResponse, Object, OpenApi};
use uuid::Uuid;
use waypost_core::address::{AddressHash, EmailAddress};
use waypost_core::db::OrFault;
use waypost_core::idempotency::single::Idempotent;
use waypost_core::ids::{SuppressionId, UnsubscribeGroupId};
use waypost_core::issue::Issue;
use waypost_core::suppression::import::{ImportEntry, ImportTarget, Imported};
use waypost_core::suppression::removal::Removed;
use waypost_core::suppression::store::{self, SuppressionFilter};
use waypost_core::suppression::{NewSuppression, Suppression, SuppressionSource};

use crate::context::Context;
use crate::error::Failure;
use crate::fields::content::Addresses;
use crate::fields::message_filter::Recipient;
use crate::fields::time::Moment;
use crate::fields::{PageLimit, PageNumber, suppression_csv};
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::body::{IMPORT_BYTES_MAX, JsonBody, OTHER_BYTES_MAX};
use crate::request::cursor::CursorQuery;
use crate::request::idempotency_key::{KeyHeader, created, stored_answer};
use crate::request::import_body::ImportBody;
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
pub(crate) struct SuppressionView {
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
    /// The message that bounced, that was reported or whose unsubscribe link was used; null
    /// if no message caused the suppression or it is not known. The message may have been
    /// deleted since.
    message_id: Nullable<Uuid>,
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
            message_id: Nullable(suppression.message_id.map(|id| id.0)),
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

impl ImportSuppressionsRequest {
    /// The entries and the group; `None` for what is wrong, with the mistakes in `issues`.
    fn read(
        self,
        issues: &mut Vec<Issue>,
    ) -> (Option<Vec<ImportEntry>>, Option<Option<UnsubscribeGroupId>>) {
        let emails = self.emails.take("emails", issues);
        let group_id = self.unsubscribe_group_id.take("unsubscribeGroupId", issues);
        let entries = emails.map(|Addresses(emails)| {
            let hashes = emails.iter().map(EmailAddress::hash);
            hashes.map(ImportEntry::of).collect()
        });
        (entries, group_id)
    }
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

/// Addresses whose suppressions to remove.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct RemoveSuppressionsRequest {
    /// 1 to 10,000 addresses.
    emails: Validated<Addresses>,
    /// The unsubscribe group whose suppressions to remove. The default is the suppressions
    /// for all messages; those in groups stay.
    unsubscribe_group_id: Validated<Option<UnsubscribeGroupId>>,
}

/// The result of a removal.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct RemovalResult {
    /// The number of suppressions that were removed.
    removed: u64,
    /// The number of addresses that were not suppressed or were repeated in the request.
    not_found: u64,
    /// The number of addresses in the request: `removed` plus `notFound`.
    total: u64,
}

impl From<Removed> for RemovalResult {
    fn from(removed: Removed) -> Self {
        Self {
            removed: removed.removed as u64,
            not_found: removed.not_found as u64,
            total: (removed.removed + removed.not_found) as u64,
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
    #[expect(
        clippy::too_many_arguments,
        reason = "the query parameters of the list"
    )]
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
        /// Only suppressions of this address: for all messages, and in groups.
        email: Query<Validated<Option<Recipient>>>,
        /// Only suppressions with this source.
        source: Query<Validated<Option<SuppressionSource>>>,
        /// Only suppressions of this unsubscribe group.
        #[oai(name = "groupId")]
        group_id: Query<Validated<Option<UnsubscribeGroupId>>>,
        /// Only suppressions created at or after this time.
        since: Query<Validated<Option<Moment>>>,
    ) -> Result<Json<Paged<SuppressionView>>, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let page = cursor.read_page(page.0, limit.0, &mut issues);
        let email = email.0.take("email", &mut issues);
        let source = source.0.take("source", &mut issues);
        let group_id = group_id.0.take("groupId", &mut issues);
        let since = since.0.take("since", &mut issues);
        let (Some(page), Some(email), Some(source), Some(group_id), Some(since)) =
            (page, email, source, group_id, since)
        else {
            return Err(Failure::Invalid(issues));
        };
        let filter = SuppressionFilter {
            email_hash: email.map(|Recipient(hash)| hash),
            source,
            unsubscribe_group_id: group_id,
            since: since.map(|Moment(at)| at),
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
    /// are skipped. The body is JSON, or a CSV file in UTF-8 (`text/csv`) of up to 10,000
    /// rows after a first row that names the columns: `email`, or `emailHash` as in an
    /// export; optionally `source` (one of the sources; the default is IMPORT) and
    /// `createdAt` (ISO 8601 or Unix seconds). A `reason` that is the name of a source
    /// counts as the source. Other columns are ignored. If a row is wrong, nothing is
    /// imported, and `details.issues` names its line.
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
        /// For a CSV file: the unsubscribe group that the suppressions apply to. The default
        /// is all messages.
        #[oai(name = "unsubscribeGroupId")]
        csv_group_id: Query<Validated<Option<UnsubscribeGroupId>>>,
        body: ImportBody<ImportSuppressionsRequest>,
    ) -> Result<Json<Data<ImportResult>>, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let claim = key.claim_of(&self.context, &caller, body.hash(), &mut issues);
        let csv_group_id = csv_group_id.0;
        let (entries, group_id) = match body {
            ImportBody::Json(body) => {
                let request = body.take(&mut issues)?;
                if csv_group_id.is_given() {
                    let message = "belongs into the body of a JSON request";
                    issues.push(Issue::new("unsubscribeGroupId", message));
                }
                request.read(&mut issues)
            }
            ImportBody::Csv(file) => {
                let file = file.take(&mut issues)?;
                let entries = suppression_csv::read(&file, self.context.clock.now());
                let entries = entries.map_err(|found| issues.extend(found)).ok();
                (
                    entries,
                    // Its mistakes came with the file.
                    csv_group_id.take("unsubscribeGroupId", &mut Vec::new()),
                )
            }
        };
        let (Some(entries), Some(unsubscribe_group_id), Some(claim), true) =
            (entries, group_id, claim, issues.is_empty())
        else {
            return Err(Failure::Invalid(issues));
        };
        let idempotent = Idempotent::new(claim, &self.context.sealer, |imported: &Imported| {
            let data = ImportResult::from(*imported);
            stored_answer(200, &Data { data })
        });
        let target = ImportTarget {
            unsubscribe_group_id,
            ..ImportTarget::default()
        };
        let suppressions = &self.context.suppressions;
        let imported = suppressions
            .import(
                caller.organization_id(),
                caller.origin(),
                entries,
                target,
                &idempotent,
            )
            .await?;
        Ok(Json(Data {
            data: imported.into(),
        }))
    }

    /// Remove the suppressions of many addresses
    ///
    /// Requires the permission `SETTINGS_WRITE`. Messages can be sent to the addresses
    /// again, unless they are suppressed in the group of a message. Without
    /// `unsubscribeGroupId` the suppressions for all messages are removed.
    #[oai(
        path = "/v1/suppressions/remove",
        method = "post",
        operation_id = "remove_suppressions"
    )]
    async fn remove_suppressions(
        &self,
        caller: Requires<permission::SettingsWrite>,
        /// Makes the request safe to repeat.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<RemoveSuppressionsRequest, IMPORT_BYTES_MAX>,
    ) -> Result<Json<Data<RemovalResult>>, Failure> {
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
        let idempotent = Idempotent::new(claim, &self.context.sealer, |removed: &Removed| {
            let data = RemovalResult::from(*removed);
            stored_answer(200, &Data { data })
        });
        let hashes: Vec<AddressHash> = emails.0.iter().map(EmailAddress::hash).collect();
        let suppressions = &self.context.suppressions;
        let removed = suppressions
            .remove_many(
                caller.organization_id(),
                caller.origin(),
                &hashes,
                group_id,
                &idempotent,
            )
            .await?;
        Ok(Json(Data {
            data: removed.into(),
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
