//! `POST /v1/providers/:id/suppressions/import`: imports the suppression lists that an
//! account's provider keeps.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::registry::MetaSchemaRef;
use poem_openapi::{Object, OpenApi};
use serde_json::{Map, Value, json};
use waypost_core::auth::Permission;
use waypost_core::ids::ProviderAccountId;
use waypost_core::issue::Issue;
use waypost_core::provider::suppression_list::ListCursor;
use waypost_core::provider_account::suppression_import::{ListImportRefusal, ListsImported};

use crate::context::Context;
use crate::error::Failure;
use crate::fields::{schema, string};
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::body::{JsonBody, OTHER_BYTES_MAX};
use crate::request::path_id::PathId;
use crate::response::{Data, Nullable};
use crate::v1::Section;
use crate::v1::providers::ACCOUNT;
use crate::validate::{Field, Validated, problem};

pub(crate) struct ProviderSuppressionsApi {
    pub(crate) context: Arc<Context>,
}

impl Field for ListCursor {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.min_length = Some(1);
            schema.max_length = Some(8_192);
            schema.example = Some(Value::from("MDo1MDA"));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        match Self::read(&string(value)?) {
            Some(cursor) => Ok(cursor),
            None => problem("must be the nextCursor of an earlier import from this account"),
        }
    }
}

/// Where to continue.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct ImportProviderSuppressionsRequest {
    /// The `nextCursor` of the import before. The default is the beginning of the lists.
    cursor: Validated<Option<ListCursor>>,
}

/// The result of an import from a provider.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct ProviderImportResult {
    /// The number of newly suppressed addresses.
    imported: u64,
    /// The number of addresses that were already suppressed for all messages.
    already_there: u64,
    /// The number of entries that name no address, or that hold for some messages only.
    unusable: u64,
    /// The `cursor` of the request that continues; null if all lists were read.
    next_cursor: Nullable<String>,
}

impl From<ListsImported> for ProviderImportResult {
    fn from(done: ListsImported) -> Self {
        Self {
            imported: done.imported,
            already_there: done.already_there,
            unusable: done.unusable,
            next_cursor: Nullable(done.next.map(|cursor| cursor.write())),
        }
    }
}

#[OpenApi(tag = "Section::Providers")]
impl ProviderSuppressionsApi {
    /// Import a provider account's suppressions
    ///
    /// Requires the permission `PROVIDERS_WRITE`, and `SETTINGS_WRITE`. Suppresses the
    /// addresses in the lists that the provider keeps: bounces, complaints and unsubscribes
    /// from all messages, with the sources BOUNCE, COMPLAINT and UNSUBSCRIBE. One request
    /// reads up to 100 pages, and for 30 seconds; if `nextCursor` is not null, send it in
    /// the next request. If the provider fails, `details` of the error says what was
    /// imported until then, and where to continue. An import can be repeated. SMTP accounts
    /// have no lists.
    #[oai(
        path = "/v1/providers/:id/suppressions/import",
        method = "post",
        operation_id = "import_provider_suppressions"
    )]
    async fn import_provider_suppressions(
        &self,
        caller: Requires<permission::ProvidersWrite>,

        /// The id of the provider account.
        id: Path<PathId>,
        body: JsonBody<ImportProviderSuppressionsRequest, OTHER_BYTES_MAX, true>,
    ) -> Result<Json<Data<ProviderImportResult>>, Failure> {
        let caller = caller.authorize()?;
        caller.require(Permission::SettingsWrite)?;
        let id: ProviderAccountId = id.0.of(ACCOUNT)?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let cursor = request.cursor.take("cursor", &mut issues);
        let (Some(cursor), true) = (cursor, issues.is_empty()) else {
            return Err(Failure::Invalid(issues));
        };
        let Context {
            accounts,
            suppressions,
            ..
        } = &*self.context;
        let (organization_id, origin) = (caller.organization_id(), caller.origin());
        let done = accounts
            .import_suppressions(suppressions, organization_id, origin, id, cursor)
            .await
            .map_err(|(refusal, done)| interrupted(refusal, done))?;
        Ok(Json(Data { data: done.into() }))
    }
}

/// The failure, with what was done before it. Where nothing was tried, there is nothing to
/// continue.
fn interrupted(refusal: ListImportRefusal, done: ListsImported) -> Failure {
    let was_tried = match &refusal {
        ListImportRefusal::Refused { .. }
        | ListImportRefusal::Undecided { .. }
        | ListImportRefusal::Fault(_) => true,
        ListImportRefusal::NotFound
        | ListImportRefusal::NotOffered(_)
        | ListImportRefusal::NoSuchPage => false,
    };
    if !was_tried {
        return refusal.into();
    }
    let next = done.next.as_ref().map(ListCursor::write);
    let members = [
        ("imported", json!(done.imported)),
        ("alreadyThere", json!(done.already_there)),
        ("unusable", json!(done.unusable)),
        ("nextCursor", json!(next)),
    ];
    let done: Map<String, Value> = members
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    Failure::Interrupted {
        cause: Box::new(refusal.into()),
        done,
    }
}
