//! Accepted messages: the list, one with its history, its recipients, another try.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::{Object, OpenApi};
use uuid::Uuid;
use waypost_core::auth::Permission;
use waypost_core::db;
use waypost_core::event::{self, Event};
use waypost_core::ids::{MessageId, OrganizationId};
use waypost_core::message::attempts::{self, AttemptItem};
use waypost_core::message::list::{self, MessageFilter};
use waypost_core::message::{MessageItem, MessageStatus, RecipientItem, store};

use crate::auth::Caller;
use crate::context::Context;
use crate::error::{Failure, MESSAGE};
use crate::fields::{PageLimit, PageNumber, SearchText};
use crate::ids::PathId;
use crate::query::Query;
use crate::response::{Data, Nullable, Paged, Pagination, Time, read_page};
use crate::v1::Section;
use crate::validate::Validated;

pub(crate) struct MessagesApi {
    pub(crate) context: Arc<Context>,
}

/// A line of the list of messages.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct MessageSummary {
    id: Uuid,
    /// The provider account used: the one resolved at acceptance, until the first
    /// recipient has gone through another.
    provider_account_id: Uuid,
    /// The sender's address.
    from_address: String,
    /// SHA-256 of the first recipient's address in lower case, as lower-case
    /// hexadecimal.
    to_hash: String,
    subject: String,
    /// QUEUED, SENDING, SENT, DELIVERED, BOUNCED or FAILED; of several recipients
    /// the least advanced.
    status: String,
    tags: Vec<String>,
    /// How many recipients the message has.
    recipient_count: i32,
    /// The first recipient's id at the provider.
    provider_message_id: Nullable<String>,
    created_at: Time,
    /// When a provider first took a copy.
    sent_at: Nullable<Time>,
    /// When a mailbox first took a copy.
    delivered_at: Nullable<Time>,
}

impl From<MessageItem> for MessageSummary {
    fn from(item: MessageItem) -> Self {
        Self {
            id: item.id.0,
            provider_account_id: item.provider_account_id.0,
            from_address: item.from_address,
            to_hash: item.to_hash.to_hex(),
            subject: item.subject,
            status: item.status.to_string(),
            tags: item.tags,
            recipient_count: item.recipient_count,
            provider_message_id: Nullable(item.provider_message_id),
            created_at: Time(item.created_at),
            sent_at: Nullable(item.sent_at.map(Time)),
            delivered_at: Nullable(item.delivered_at.map(Time)),
        }
    }
}

/// A message with its history.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct MessageDetail {
    id: Uuid,
    /// The sender's address.
    from_address: String,
    subject: String,
    /// As in the list.
    status: String,
    tags: Vec<String>,
    /// How many recipients the message has.
    recipient_count: i32,
    /// What happened, oldest first.
    events: Vec<HistoryEvent>,
    /// The newest 500 calls to providers, oldest first.
    attempts: Vec<SendAttempt>,
}

/// One call to one provider for one recipient.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct SendAttempt {
    /// Its id, which the events of this copy name as `attemptId`.
    id: Uuid,
    /// Whose copy: SHA-256 of the recipient's address in lower case, as lower-case
    /// hexadecimal.
    to_hash: String,
    /// The account that it went through, which may be gone.
    provider_account_id: Uuid,
    /// The account's provider.
    provider_type: String,
    /// When the call began.
    started_at: Time,
    /// Milliseconds until its outcome was known.
    duration_ms: Nullable<i64>,
    /// ACCEPTED, REJECTED, THROTTLED, UNAVAILABLE or UNKNOWN: the answer was lost,
    /// and the provider may have taken it. PENDING while the call is under way.
    outcome: String,
    /// The status of the provider's answer.
    status_code: Nullable<i32>,
    /// What the provider said, or what went wrong.
    reason: Nullable<String>,
}

impl From<AttemptItem> for SendAttempt {
    fn from(item: AttemptItem) -> Self {
        let duration_ms = item
            .duration()
            .map(|duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX));
        Self {
            id: item.id.0,
            to_hash: item.address_hash.to_hex(),
            provider_account_id: item.provider_account_id.0,
            provider_type: item.provider_type,
            started_at: Time(item.started_at),
            duration_ms: Nullable(duration_ms),
            outcome: item.outcome,
            status_code: Nullable(item.status_code),
            reason: Nullable(item.reason),
        }
    }
}

/// One thing that happened.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
struct HistoryEvent {
    /// QUEUED, SENT, DELIVERED, OPENED, CLICKED, BOUNCED, COMPLAINED,
    /// UNSUBSCRIBED, DROPPED or DEFERRED.
    event_type: String,
    occurred_at: Time,
    /// The call to a provider that it is of, one of the message's `attempts`, where that
    /// is known. A call that was made again because the answer to the one before was lost
    /// may leave two copies that both arrive; the history then shows the events of both,
    /// and metrics count the recipient once.
    attempt_id: Option<Uuid>,
    /// The provider's id of the copy that it is of, where that is known.
    provider_message_id: Option<String>,
}

impl From<Event> for HistoryEvent {
    fn from(event: Event) -> Self {
        Self {
            event_type: event.event_type.to_string(),
            occurred_at: Time(event.occurred_at),
            attempt_id: event.attempt_id.map(|id| id.0),
            provider_message_id: event.provider_message_id,
        }
    }
}

/// One recipient of a message.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct RecipientDetail {
    /// SHA-256 of the address in lower case, as lower-case hexadecimal.
    to_hash: String,
    status: String,
    /// The account of the latest attempt.
    provider_account_id: Nullable<Uuid>,
    /// The recipient's id at the provider.
    provider_message_id: Nullable<String>,
    /// Attempts made; being throttled uses up none.
    attempts: i32,
    /// What the latest failure said.
    last_error: Nullable<String>,
    /// What happened, oldest first.
    events: Vec<HistoryEvent>,
}

impl From<RecipientItem> for RecipientDetail {
    fn from(item: RecipientItem) -> Self {
        Self {
            to_hash: item.address_hash.to_hex(),
            status: item.status.to_string(),
            provider_account_id: Nullable(item.provider_account_id.map(|id| id.0)),
            provider_message_id: Nullable(item.provider_message_id),
            attempts: item.attempts,
            last_error: Nullable(item.last_error),
            events: item.events.into_iter().map(HistoryEvent::from).collect(),
        }
    }
}

#[OpenApi(tag = "Section::Messages")]
impl MessagesApi {
    /// List messages
    ///
    /// Takes the permission METRICS_READ. Newest first.
    ///
    /// A search lists the newest 2,000 messages that match, and `total` counts
    /// these. A text without three letters or digits in a row is looked for in the
    /// newest 30,000 messages. With a status, such a text, or one that more than
    /// 2,000 messages of any status contain, is looked for among the newest 30,000
    /// messages and at least in the newest 4,000 of that status.
    #[oai(path = "/v1/messages", method = "get", operation_id = "list_messages")]
    async fn list_messages(
        &self,
        caller: Caller,
        /// The page, from 1.
        page: Query<Validated<Option<PageNumber>>>,
        /// Rows on a page.
        limit: Query<Validated<Option<PageLimit>>>,
        /// Only messages with this status.
        status: Query<Validated<Option<MessageStatus>>>,
        /// Only messages whose subject contains this, in any letter case.
        search: Query<Validated<Option<SearchText>>>,
    ) -> Result<Json<Paged<MessageSummary>>, Failure> {
        caller.require(Permission::MetricsRead)?;
        let mut issues = Vec::new();
        let page = read_page(page.0, limit.0, &mut issues);
        let status = status.0.take("status", &mut issues);
        let search = search.0.take("search", &mut issues);
        let (Some(page), Some(status), Some(search)) = (page, status, search) else {
            return Err(Failure::Invalid(issues));
        };
        let filter = MessageFilter {
            status,
            search: search
                .map(|search| search.0)
                .filter(|search| !search.is_empty()),
        };
        let mut connection = db::snapshot(&self.context.pool, "list messages").await?;
        let found = list::list(&mut connection, caller.organization_id(), &filter, page).await?;
        Ok(Json(Paged {
            data: found.rows.into_iter().map(MessageSummary::from).collect(),
            pagination: Pagination::of(page, found.total),
        }))
    }

    /// Show a message with its history
    ///
    /// Takes the permission METRICS_READ.
    #[oai(
        path = "/v1/messages/:id",
        method = "get",
        operation_id = "get_message"
    )]
    async fn get_message(
        &self,
        caller: Caller,
        id: Path<PathId>,
    ) -> Result<Json<Data<MessageDetail>>, Failure> {
        caller.require(Permission::MetricsRead)?;
        let id: MessageId = id.0.of(MESSAGE)?;
        self.show(caller.organization_id(), id).await
    }

    /// Try a failed message again
    ///
    /// Takes the permission SEND. The recipients whose status is FAILED are queued
    /// again, as if they had been accepted now: with all attempts, for as long as any
    /// message is tried. One that is suppressed is dropped again. Answers 409 where no
    /// recipient is FAILED, so calling it twice sends nothing twice.
    #[oai(
        path = "/v1/messages/:id/retry",
        method = "post",
        operation_id = "retry_message"
    )]
    async fn retry_message(
        &self,
        caller: Caller,
        id: Path<PathId>,
    ) -> Result<Json<Data<MessageDetail>>, Failure> {
        caller.require(Permission::Send)?;
        let id: MessageId = id.0.of(MESSAGE)?;
        let organization_id = caller.organization_id();
        let retrier = &self.context.retrier;
        retrier.retry(organization_id, caller.origin(), id).await?;
        self.show(organization_id, id).await
    }

    /// List a message's recipients
    ///
    /// Takes the permission METRICS_READ. In the order of the request.
    #[oai(
        path = "/v1/messages/:id/recipients",
        method = "get",
        operation_id = "list_message_recipients"
    )]
    async fn list_message_recipients(
        &self,
        caller: Caller,
        id: Path<PathId>,
        /// The page, from 1.
        page: Query<Validated<Option<PageNumber>>>,
        /// Rows on a page.
        limit: Query<Validated<Option<PageLimit>>>,
    ) -> Result<Json<Paged<RecipientDetail>>, Failure> {
        caller.require(Permission::MetricsRead)?;
        let id: MessageId = id.0.of(MESSAGE)?;
        let mut issues = Vec::new();
        let page = read_page(page.0, limit.0, &mut issues).ok_or(Failure::Invalid(issues))?;
        let mut connection = db::snapshot(&self.context.pool, "list recipients").await?;
        let found = store::list_recipients(&mut connection, caller.organization_id(), id, page)
            .await?
            .ok_or(Failure::NotFound(MESSAGE))?;
        Ok(Json(Paged {
            data: found.rows.into_iter().map(RecipientDetail::from).collect(),
            pagination: Pagination::of(page, found.total),
        }))
    }
}

impl MessagesApi {
    async fn show(
        &self,
        organization_id: OrganizationId,
        id: MessageId,
    ) -> Result<Json<Data<MessageDetail>>, Failure> {
        let mut connection = db::snapshot(&self.context.pool, "show a message").await?;
        let message = store::find(&mut connection, organization_id, id)
            .await?
            .ok_or(Failure::NotFound(MESSAGE))?;
        let events = event::store::list(&mut connection, organization_id, id).await?;
        let attempts = attempts::store::list(&mut connection, organization_id, id).await?;
        Ok(Json(Data {
            data: MessageDetail {
                id: message.id.0,
                from_address: message.from_address,
                subject: message.subject,
                status: message.status.to_string(),
                tags: message.tags,
                recipient_count: message.recipient_count,
                events: events.into_iter().map(HistoryEvent::from).collect(),
                attempts: attempts.into_iter().map(SendAttempt::from).collect(),
            },
        }))
    }
}
