//! Accepted messages: the list, a message with its history, its recipients, retries.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::types::Any;
use poem_openapi::{Object, OpenApi};
use uuid::Uuid;
use waypost_core::address::AddressHash;
use waypost_core::db;
use waypost_core::event::{self, Event};
use waypost_core::ids::{MessageId, OrganizationId};
use waypost_core::message::list::{self, MessageFilter};
use waypost_core::message::{AttemptItem, MessageItem, RecipientItem, store};
use waypost_core::text::Tag;

use crate::context::Context;
use crate::error::{Failure, MESSAGE};
use crate::fields::message_filter::{FromFilter, ProviderMessageId, Recipient, Statuses};
use crate::fields::time::{End, Moment};
use crate::fields::{Id, PageLimit, PageNumber, SearchText};
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::body::{JsonBody, OTHER_BYTES_MAX};
use crate::request::cursor::CursorQuery;
use crate::request::path_id::PathId;
use crate::request::query::Query;
use crate::response::{Data, Nullable, Paged, Time};
use crate::v1::Section;
use crate::v1::message_changes::{self, UpdateMessageRequest};
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
    /// Whether the message is a test, for which no provider is called.
    test: bool,
    /// The number of recipients.
    recipient_count: i32,
    /// The SHA-256 of each address of `to`, in lower case, as lower-case hexadecimal, in the
    /// order of the send request.
    to: Vec<String>,
    /// The metadata of the send request.
    metadata: Nullable<Any<serde_json::Value>>,
    /// The message is not sent before this time.
    scheduled_at: Nullable<Time>,
    /// The template of the message.
    template_id: Nullable<Uuid>,
    /// The version of the template that was rendered.
    template_version_id: Nullable<Uuid>,
    /// The number of this version; null also if the template was deleted.
    template_version_number: Nullable<i32>,
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
    /// The SHA-256 of the recipient's address in lower case, as lower-case hexadecimal. An
    /// event without it is about all recipients.
    to_hash: Option<String>,
    /// The provider account of the attempt.
    provider_account_id: Option<Uuid>,
    /// Why, in the provider's words or in those of Waypost.
    reason: Option<String>,
    /// The type of a bounce, such as `hard`.
    bounce_type: Option<String>,
    /// The link that was clicked.
    url: Option<String>,
    /// Whether a program opened or clicked, and not a person.
    is_bot: Option<bool>,
}

impl From<Event> for HistoryEvent {
    fn from(event: Event) -> Self {
        Self {
            to_hash: event.address_hash.map(AddressHash::to_hex),
            provider_account_id: event.provider_account_id.map(|id| id.0),
            reason: event.reason,
            bounce_type: event.bounce_type,
            url: event.url,
            is_bot: event.is_bot,
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
    /// Where the recipient stands in the mail: TO, CC or BCC.
    kind: String,
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
            kind: item.kind.as_str().to_owned(),
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
    /// Requires the permission `METRICS_READ`. The newest message comes first. Tests are in a
    /// list of their own.
    ///
    /// All filters can be combined. Without `search`, `recipient`, `from`, `tag`,
    /// `templateId`, `providerAccountId` and `providerMessageId`, `total` is the number of
    /// all matching messages. With one of them, `total` counts at most the newest 2,000
    /// matching messages, and so do the pages; `nextCursor` leads to the older ones, except
    /// with `search`.
    ///
    /// A search text without three consecutive letters or digits is searched in the newest
    /// 30,000 messages only, unless a filter other than `status` and the times is given. A
    /// search with `status` covers the newest 30,000 messages and at least the newest 4,000
    /// with this status, if the text is such a short one or if more than 2,000 messages of
    /// any status match it. The same holds for times and several statuses, with 20,000
    /// messages in place of the 2,000.
    #[oai(path = "/v1/messages", method = "get", operation_id = "list_messages")]
    #[expect(
        clippy::too_many_arguments,
        reason = "the query parameters of the list"
    )]
    async fn list_messages(
        &self,
        caller: Requires<permission::MetricsRead>,
        /// The page number, from 1.
        page: Query<Validated<Option<PageNumber>>>,
        /// The number of items per page.
        limit: Query<Validated<Option<PageLimit>>>,
        /// The `nextCursor` of the page before, instead of `page`. The pages stay as they are
        /// while the list grows at its beginning.
        cursor: CursorQuery,
        /// Tests only, or live messages only. The default is whether the API key is a test key.
        test: Query<Validated<Option<bool>>>,
        /// Only messages with one of these statuses.
        #[oai(explode = false)]
        status: Query<Validated<Option<Statuses>>>,
        /// Only messages whose subject contains this text. Upper and lower case are not
        /// distinguished.
        search: Query<Validated<Option<SearchText>>>,
        /// Only messages to this address.
        recipient: Query<Validated<Option<Recipient>>>,
        /// Only messages from this address, or from all addresses of this domain.
        from: Query<Validated<Option<FromFilter>>>,
        /// Only messages with this tag.
        tag: Query<Validated<Option<Tag>>>,
        /// Only messages with this template.
        #[oai(name = "templateId")]
        template_id: Query<Validated<Option<Id>>>,
        /// Only messages of this provider account: the `providerAccountId` of the list.
        #[oai(name = "providerAccountId")]
        provider_account_id: Query<Validated<Option<Id>>>,
        /// Only messages for which a provider returned this message id, for any recipient.
        #[oai(name = "providerMessageId")]
        provider_message_id: Query<Validated<Option<ProviderMessageId>>>,
        /// Only messages accepted at or after this time, in whole milliseconds.
        #[oai(name = "createdFrom")]
        created_from: Query<Validated<Option<Moment>>>,
        /// Only messages accepted before this time, in whole milliseconds. A date without a
        /// time includes that whole day.
        #[oai(name = "createdTo")]
        created_to: Query<Validated<Option<End>>>,
    ) -> Result<Json<Paged<MessageSummary>>, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let page = cursor.read_page(page.0, limit.0, &mut issues);
        let test = test.0.take("test", &mut issues).flatten();
        let status = status.0.take("status", &mut issues).flatten();
        let search = search.0.take("search", &mut issues).flatten();
        let recipient = recipient.0.take("recipient", &mut issues).flatten();
        let from = from.0.take("from", &mut issues).flatten();
        let tag = tag.0.take("tag", &mut issues).flatten();
        let template_id = template_id.0.take("templateId", &mut issues).flatten();
        let account = provider_account_id.0.take("providerAccountId", &mut issues);
        let provider_message_id = provider_message_id.0.take("providerMessageId", &mut issues);
        let created_from = created_from.0.take("createdFrom", &mut issues).flatten();
        let created_to = created_to.0.take("createdTo", &mut issues).flatten();
        let filter = MessageFilter {
            is_test: test.unwrap_or_else(|| caller.is_test()),
            statuses: status.map(|statuses| statuses.0).unwrap_or_default(),
            search: search
                .map(|search| search.0)
                .filter(|search| !search.is_empty()),
            recipient: recipient.map(|recipient| recipient.0),
            from: from.map(|from| from.0),
            tag: tag.map(|tag| tag.as_str().to_owned()),
            template_id: template_id.map(|id| id.0.into()),
            provider_account_id: account.flatten().map(|id| id.0.into()),
            provider_message_id: provider_message_id.flatten().map(|id| id.0),
            created_from: created_from.map(|at| at.0),
            created_to: created_to.map(|at| at.0),
        };
        let page = match page {
            Some(page) if issues.is_empty() => page,
            _ => return Err(Failure::Invalid(issues)),
        };
        let mut connection = db::snapshot(&self.context.pool, "list messages").await?;
        let found = list::list(&mut connection, caller.organization_id(), &filter, page).await?;
        Ok(Json(Paged {
            data: found.rows.into_iter().map(MessageSummary::from).collect(),
            pagination: cursor.pagination(page, found.total, found.next),
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
        message_changes::require_may_send(&self.context, &caller, id).await?;
        let organization_id = caller.organization_id();
        let retrier = &self.context.retrier;
        retrier.retry(organization_id, caller.origin(), id).await?;
        self.show(organization_id, id).await
    }

    /// Move the time of a scheduled message
    ///
    /// Requires the permission `SEND`. Returns 409 if the message was not scheduled, or if
    /// sending it has begun.
    #[oai(
        path = "/v1/messages/:id",
        method = "patch",
        operation_id = "update_message"
    )]
    async fn update_message(
        &self,
        caller: Requires<permission::Send>,
        /// The id of the message.
        id: Path<PathId>,
        body: JsonBody<UpdateMessageRequest, OTHER_BYTES_MAX>,
    ) -> Result<Json<Data<MessageDetail>>, Failure> {
        let caller = caller.authorize()?;
        let id: MessageId = id.0.of(MESSAGE)?;
        message_changes::update(&self.context, &caller, id, body).await?;
        self.show(caller.organization_id(), id).await
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
        /// The `nextCursor` of the page before, instead of `page`. The pages stay as they are
        /// while the list grows at its beginning.
        cursor: CursorQuery,
    ) -> Result<Json<Paged<RecipientDetail>>, Failure> {
        let caller = caller.authorize()?;
        let id: MessageId = id.0.of(MESSAGE)?;
        let mut issues = Vec::new();
        let page = cursor
            .read_page(page.0, limit.0, &mut issues)
            .ok_or(Failure::Invalid(issues))?;
        let mut connection = db::snapshot(&self.context.pool, "list recipients").await?;
        let found = store::list_recipients(&mut connection, caller.organization_id(), id, page)
            .await?
            .ok_or(Failure::NotFound(MESSAGE))?;
        Ok(Json(Paged {
            data: found.rows.into_iter().map(RecipientDetail::from).collect(),
            pagination: cursor.pagination(page, found.total, found.next),
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
        let detail = store::find_detail(&mut connection, organization_id, id)
            .await?
            .ok_or(Failure::NotFound(MESSAGE))?;
        let message = detail.item;
        let events = event::store::list(&mut connection, organization_id, id).await?;
        let attempts = store::list_attempts(&mut connection, organization_id, id).await?;
        Ok(Json(Data {
            data: MessageDetail {
                id: message.id.0,
                from_address: message.from_address,
                subject: message.subject,
                status: message.status.to_string(),
                tags: message.tags,
                test: message.is_test,
                recipient_count: message.recipient_count,
                to: detail.to.into_iter().map(AddressHash::to_hex).collect(),
                metadata: Nullable(detail.metadata.map(Any)),
                scheduled_at: Nullable(detail.scheduled_at.map(Time)),
                template_id: Nullable(detail.template_id.map(|id| id.0)),
                template_version_id: Nullable(detail.template_version_id.map(|id| id.0)),
                template_version_number: Nullable(detail.template_version_number),
                events: events.into_iter().map(HistoryEvent::from).collect(),
                attempts: attempts.into_iter().map(SendAttempt::from).collect(),
            },
        }))
    }
}
