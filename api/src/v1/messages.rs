//! Accepted messages: the list, a message with its history, its recipients, retries.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::{Object, OpenApi};
use uuid::Uuid;
use waypost_core::db;
use waypost_core::event::{self, Event};
use waypost_core::ids::{MessageId, OrganizationId};
use waypost_core::message::list::{self, MessageFilter};
use waypost_core::message::{AttemptItem, MessageItem, MessageStatus, RecipientItem, store};

use crate::context::Context;
use crate::error::{Failure, MESSAGE};
use crate::fields::{PageLimit, PageNumber, SearchText};
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::path_id::PathId;
use crate::request::query::Query;
use crate::response::{Data, Nullable, Paged, Pagination, Time, read_page};
use crate::v1::Section;
use crate::validate::Validated;

pub(crate) struct MessagesApi {
    pub(crate) context: Arc<Context>,
}

/// A message in the list.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct MessageSummary {
    id: Uuid,
    /// The provider account of the message: the account that routing selected at
    /// acceptance, or the one that sent to the first recipient.
    provider_account_id: Uuid,
    /// The sender's address.
    from_address: String,
    /// The SHA-256 of the first recipient's address in lower case, as lower-case
    /// hexadecimal.
    to_hash: String,
    subject: String,
    /// The status of the message, summarized over its recipients: QUEUED if any recipient
    /// has it, or else SENDING, DELIVERED, SENT, BOUNCED or FAILED, in this order.
    status: String,
    tags: Vec<String>,
    /// The number of recipients.
    recipient_count: i32,
    /// The provider's message id for the first recipient.
    provider_message_id: Nullable<String>,
    created_at: Time,
    /// When a provider first accepted the message for a recipient.
    sent_at: Nullable<Time>,
    /// When the message was first delivered to a recipient.
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
    /// The status of the message, as in the list.
    status: String,
    tags: Vec<String>,
    /// The number of recipients.
    recipient_count: i32,
    /// The events, oldest first.
    events: Vec<HistoryEvent>,
    /// The newest 500 calls to providers, oldest first.
    attempts: Vec<SendAttempt>,
}

/// One call to a provider for one recipient.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct SendAttempt {
    /// The id of the attempt. The events of this attempt have it as `attemptId`.
    id: Uuid,
    /// The SHA-256 of the recipient's address in lower case, as lower-case hexadecimal.
    to_hash: String,
    /// The provider account of the call. It may have been removed since.
    provider_account_id: Uuid,
    /// The provider type of the account.
    provider_type: String,
    /// When the call started.
    started_at: Time,
    /// The duration until the outcome was known, in milliseconds; null if it is not known
    /// yet.
    duration_ms: Nullable<i64>,
    /// The outcome: ACCEPTED, REJECTED, THROTTLED, UNAVAILABLE, UNKNOWN (the response was
    /// lost, and the provider may have accepted the message) or PENDING (the call still
    /// runs).
    outcome: String,
    /// The status code of the provider's response.
    status_code: Nullable<i32>,
    /// The provider's error message, or the error of the call.
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

/// One event of a message.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
struct HistoryEvent {
    /// The type of the event.
    event_type: String,
    occurred_at: Time,
    /// The attempt that the event belongs to, if known: the id of one of the message's
    /// `attempts`. If the response to a call was lost and the call was repeated, the
    /// recipient may receive the message twice. The history then has the events of both
    /// attempts, and metrics count the recipient once.
    attempt_id: Option<Uuid>,
    /// The provider's message id that the event belongs to, if known.
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
    /// The SHA-256 of the address in lower case, as lower-case hexadecimal.
    to_hash: String,
    status: String,
    /// The provider account of the latest attempt.
    provider_account_id: Nullable<Uuid>,
    /// The provider's message id for this recipient.
    provider_message_id: Nullable<String>,
    /// The number of attempts. A throttled attempt is not counted.
    attempts: i32,
    /// The error of the latest failed attempt.
    last_error: Nullable<String>,
    /// The events, oldest first.
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
    /// Requires the permission `METRICS_READ`. The newest message comes first.
    ///
    /// A search returns at most the newest 2,000 matching messages, and `total` counts
    /// only these. A search text without three consecutive letters or digits is searched
    /// in the newest 30,000 messages only. A search with `status` covers the newest
    /// 30,000 messages and at least the newest 4,000 with this status, if the text is
    /// such a short one or if more than 2,000 messages of any status match it.
    #[oai(path = "/v1/messages", method = "get", operation_id = "list_messages")]
    async fn list_messages(
        &self,
        caller: Requires<permission::MetricsRead>,
        /// The page number, from 1.
        page: Query<Validated<Option<PageNumber>>>,
        /// The number of items per page.
        limit: Query<Validated<Option<PageLimit>>>,
        /// Only messages with this status.
        status: Query<Validated<Option<MessageStatus>>>,
        /// Only messages whose subject contains this text. Upper and lower case are not
        /// distinguished.
        search: Query<Validated<Option<SearchText>>>,
    ) -> Result<Json<Paged<MessageSummary>>, Failure> {
        let caller = caller.authorize()?;
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

    /// Get a message with its history
    ///
    /// Requires the permission `METRICS_READ`.
    #[oai(
        path = "/v1/messages/:id",
        method = "get",
        operation_id = "get_message"
    )]
    async fn get_message(
        &self,
        caller: Requires<permission::MetricsRead>,

        /// The id of the message.
        id: Path<PathId>,
    ) -> Result<Json<Data<MessageDetail>>, Failure> {
        let caller = caller.authorize()?;
        let id: MessageId = id.0.of(MESSAGE)?;
        self.show(caller.organization_id(), id).await
    }

    /// Retry a failed message
    ///
    /// Requires the permission `SEND`. Queues the recipients with the status FAILED
    /// again, with all attempts and the full retry period, as at acceptance. Recipients
    /// that are suppressed now are dropped again. Returns 409 if no recipient has the
    /// status FAILED, so repeating the request sends nothing twice.
    #[oai(
        path = "/v1/messages/:id/retry",
        method = "post",
        operation_id = "retry_message"
    )]
    async fn retry_message(
        &self,
        caller: Requires<permission::Send>,

        /// The id of the message.
        id: Path<PathId>,
    ) -> Result<Json<Data<MessageDetail>>, Failure> {
        let caller = caller.authorize()?;
        let id: MessageId = id.0.of(MESSAGE)?;
        let organization_id = caller.organization_id();
        let retrier = &self.context.retrier;
        retrier.retry(organization_id, caller.origin(), id).await?;
        self.show(organization_id, id).await
    }

    /// List a message's recipients
    ///
    /// Requires the permission `METRICS_READ`. The recipients are in the order of the
    /// send request.
    #[oai(
        path = "/v1/messages/:id/recipients",
        method = "get",
        operation_id = "list_message_recipients"
    )]
    async fn list_message_recipients(
        &self,
        caller: Requires<permission::MetricsRead>,

        /// The id of the message.
        id: Path<PathId>,
        /// The page number, from 1.
        page: Query<Validated<Option<PageNumber>>>,
        /// The number of items per page.
        limit: Query<Validated<Option<PageLimit>>>,
    ) -> Result<Json<Paged<RecipientDetail>>, Failure> {
        let caller = caller.authorize()?;
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
        let attempts = store::list_attempts(&mut connection, organization_id, id).await?;
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
