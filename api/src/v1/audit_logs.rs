//! The audit log: who changed what, when and from where.

use std::sync::Arc;

use poem_openapi::payload::Json;
use poem_openapi::registry::MetaSchemaRef;
use poem_openapi::types::Any;
use poem_openapi::{Object, OpenApi};
use serde_json::Value;
use uuid::Uuid;
use waypost_core::audit::AuditEntry;
use waypost_core::audit::store::{self, EntryFilter};
use waypost_core::db::OrFault;
use waypost_core::ids::OrganizationId;
use waypost_core::issue::Issue;

use crate::context::Context;
use crate::error::Failure;
use crate::fields::time::{End, Moment};
use crate::fields::{self, Id, PageLimit, PageNumber};
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::cursor::CursorQuery;
use crate::request::query::Query;
use crate::response::{Nullable, Paged, Time};
use crate::v1::Section;
use crate::validate::{Field, Validated, problem};

pub(crate) struct AuditLogsApi {
    pub(crate) context: Arc<Context>,
}

/// The longest action or target type to search for, in characters.
const WORD_CHARS_MAX: usize = 100;

/// One change.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct AuditLogEntry {
    id: Uuid,
    organization_id: Uuid,
    /// The action, such as `provider.created`.
    action: String,
    occurred_at: Time,
    actor: AuditActor,
    target: AuditTarget,
    context: AuditContext,
    /// Details of the change: an object.
    metadata: Any<Value>,
}

/// Who made the change.
#[derive(Debug, Object)]
struct AuditActor {
    /// The type of the actor.
    #[oai(rename = "type")]
    kind: String,
    id: Nullable<Uuid>,
    /// The name of the actor at the time of the change.
    name: Nullable<String>,
}

/// The changed record.
#[derive(Debug, Object)]
struct AuditTarget {
    /// The type of the record, such as `provider`.
    #[oai(rename = "type")]
    kind: String,
    id: Uuid,
}

/// Where the request came from.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct AuditContext {
    /// The IP address of the client.
    ip: Nullable<String>,
    user_agent: Nullable<String>,
    /// The id of the request, as in `X-Request-Id`.
    request_id: String,
}

impl AuditLogEntry {
    fn of(organization_id: OrganizationId, entry: AuditEntry) -> Self {
        Self {
            id: entry.id,
            organization_id: organization_id.0,
            action: entry.action,
            occurred_at: Time(entry.occurred_at),
            actor: AuditActor {
                kind: entry.actor_type,
                id: Nullable(entry.actor_id),
                name: Nullable(entry.actor_name),
            },
            target: AuditTarget {
                kind: entry.target_type,
                id: entry.target_id,
            },
            context: AuditContext {
                ip: Nullable(entry.ip),
                user_agent: Nullable(entry.user_agent),
                request_id: entry.request_id,
            },
            metadata: Any(entry.metadata),
        }
    }
}

/// An action or a target type to search for.
#[derive(Debug)]
struct Word(String);

impl Field for Word {
    fn schema() -> MetaSchemaRef {
        fields::schema("string", |schema| schema.max_length = Some(WORD_CHARS_MAX))
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let text = fields::string(value)?;
        if text.contains('\0') {
            return problem("must not contain NUL characters");
        }
        if text.chars().count() > WORD_CHARS_MAX {
            return problem(format!(
                "must not be longer than {WORD_CHARS_MAX} characters"
            ));
        }
        Ok(Self(text))
    }
}

#[OpenApi(tag = "Section::AuditLog")]
impl AuditLogsApi {
    /// List the audit log
    ///
    /// Requires the permission `SETTINGS_WRITE`. The newest entry comes first. Every
    /// change through the API has an entry.
    #[oai(
        path = "/v1/audit-logs",
        method = "get",
        operation_id = "list_audit_logs"
    )]
    #[expect(
        clippy::too_many_arguments,
        reason = "the query parameters of the contract"
    )]
    async fn list_audit_logs(
        &self,
        caller: Requires<permission::SettingsWrite>,
        /// The page number, from 1.
        page: Query<Validated<Option<PageNumber>>>,
        /// The number of items per page.
        limit: Query<Validated<Option<PageLimit>>>,
        /// The `nextCursor` of the page before, instead of `page`. The pages stay as they are
        /// while the list grows at its beginning.
        cursor: CursorQuery,
        /// Only entries with this action, such as `provider.created`.
        action: Query<Validated<Option<Word>>>,
        /// Only entries with this target type, such as `provider`.
        #[oai(name = "targetType")]
        target_type: Query<Validated<Option<Word>>>,
        /// Only entries with this target id.
        #[oai(name = "targetId")]
        target_id: Query<Validated<Option<Id>>>,
        /// Only entries at or after this time.
        from: Query<Validated<Option<Moment>>>,
        /// Only entries before this time. A date without a time includes that whole day.
        to: Query<Validated<Option<End>>>,
    ) -> Result<Json<Paged<AuditLogEntry>>, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let page = cursor.read_page(page.0, limit.0, &mut issues);
        let action = action.0.take("action", &mut issues).flatten();
        let target_type = target_type.0.take("targetType", &mut issues).flatten();
        let target_id = target_id.0.take("targetId", &mut issues).flatten();
        let filter = EntryFilter {
            action: action.map(|word| word.0),
            target_type: target_type.map(|word| word.0),
            target_id: target_id.map(|id| id.0),
            from: from.0.take("from", &mut issues).flatten().map(|at| at.0),
            to: to.0.take("to", &mut issues).flatten().map(|at| at.0),
        };
        let page = match page {
            Some(page) if issues.is_empty() => page,
            _ => return Err(Failure::Invalid(issues)),
        };
        let organization_id = caller.organization_id();
        let doing = "list the audit log";
        let mut connection = self.context.pool.acquire().await.or_fault(doing)?;
        let found = store::list(&mut connection, organization_id, &filter, page).await?;
        let rows = found.rows.into_iter();
        Ok(Json(Paged {
            data: rows
                .map(|entry| AuditLogEntry::of(organization_id, entry))
                .collect(),
            pagination: cursor.pagination(page, found.total, found.next),
        }))
    }
}
