//! Changes of accepted messages until they are sent: cancel them, move their time.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::{Object, OpenApi};
use uuid::Uuid;
use waypost_core::db::OrFault;
use waypost_core::delivery::change::Cancelled;
use waypost_core::ids::MessageId;
use waypost_core::issue::Issue;
use waypost_core::message::store;

use crate::context::Context;
use crate::error::{Failure, MESSAGE, Reason};
use crate::fields::time::FutureTime;
use crate::middleware::auth::{Caller, Requires};
use crate::middleware::permission;
use crate::request::body::{JsonBody, OTHER_BYTES_MAX};
use crate::request::path_id::PathId;
use crate::response::Data;
use crate::v1::Section;
use crate::validate::{Clearable, Validated};

pub(crate) struct MessageChangesApi {
    pub(crate) context: Arc<Context>,
}

const SCHEDULED_AT: &str = "scheduledAt";

/// A message after its cancellation.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct CancelledMessage {
    id: Uuid,
    /// The status of the message, as in the list: FAILED if all its recipients are cancelled.
    status: String,
    /// The number of cancelled recipients, by this request and by earlier ones.
    cancelled_count: i64,
}

impl CancelledMessage {
    fn new(id: MessageId, cancelled: Cancelled) -> Self {
        Self {
            id: id.0,
            status: cancelled.status.to_string(),
            cancelled_count: cancelled.recipients,
        }
    }
}

/// The change of a message.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
pub(super) struct UpdateMessageRequest {
    /// When the message goes: a time with its offset from UTC, up to one year ahead and before
    /// its `expiresAt`. Null is now.
    scheduled_at: Validated<Clearable<FutureTime>>,
}

#[OpenApi(tag = "Section::Messages")]
impl MessageChangesApi {
    /// Cancel a message
    ///
    /// Requires the permission `SEND`. Cancels the recipients that wait, whether the message
    /// is scheduled, queued or being retried: they get the status FAILED and an event DROPPED
    /// with the reason `CANCELLED`, and the message is not sent to them. Recipients to whom
    /// it was sent, or is just being sent, are left as they are. Returns 409 if no recipient
    /// can be cancelled. Repeating the request changes nothing and succeeds again.
    #[oai(
        path = "/v1/messages/:id/cancel",
        method = "post",
        operation_id = "cancel_message"
    )]
    async fn cancel_message(
        &self,
        caller: Requires<permission::Send>,
        /// The id of the message.
        id: Path<PathId>,
    ) -> Result<Json<Data<CancelledMessage>>, Failure> {
        let caller = caller.authorize()?;
        let id: MessageId = id.0.of(MESSAGE)?;
        require_may_send(&self.context, &caller, id).await?;
        let changes = &self.context.message_changes;
        let organization_id = caller.organization_id();
        let cancelled = changes.cancel(organization_id, caller.origin(), id).await?;
        Ok(Json(Data {
            data: CancelledMessage::new(id, cancelled),
        }))
    }
}

/// Refuses a test key what decides on sending a live message.
///
/// # Errors
/// That, or that the message does not exist.
pub(crate) async fn require_may_send(
    context: &Context,
    caller: &Caller,
    id: MessageId,
) -> Result<(), Failure> {
    if !caller.is_test() {
        return Ok(());
    }
    let mut connection = context.pool.acquire().await.or_fault("find a message")?;
    match store::is_test(&mut connection, caller.organization_id(), id).await? {
        Some(true) => Ok(()),
        Some(false) => Err(Failure::Conflict(
            Reason::TestKey,
            "A test key retries, cancels and moves only tests",
        )),
        None => Err(Failure::NotFound(MESSAGE)),
    }
}

/// Moves the time of a message. The operation is in `messages`: the document has all operations
/// of a path together.
pub(super) async fn update(
    context: &Context,
    caller: &Caller,
    id: MessageId,
    body: JsonBody<UpdateMessageRequest, OTHER_BYTES_MAX>,
) -> Result<(), Failure> {
    let mut issues = Vec::new();
    let request = body.take(&mut issues)?;
    let given = request.scheduled_at.take(SCHEDULED_AT, &mut issues);
    let Some(given) = given.filter(|_| issues.is_empty()) else {
        return Err(Failure::Invalid(issues));
    };
    let Clearable(Some(given)) = given else {
        return Ok(());
    };
    let at = given.map(|time| time.after(context.clock.now()));
    let at = at.transpose();
    let at = at.map_err(|rule| Failure::Invalid(vec![Issue::new(SCHEDULED_AT, rule)]))?;
    require_may_send(context, caller, id).await?;
    let changes = &context.message_changes;
    let organization_id = caller.organization_id();
    let moving = changes.reschedule(organization_id, caller.origin(), id, at);
    Ok(moving.await?)
}
