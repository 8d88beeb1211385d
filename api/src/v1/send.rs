//! Sending one message or a batch of independent messages.

use std::sync::Arc;

use poem_openapi::payload::Json;
use poem_openapi::registry::MetaSchemaRef;
use poem_openapi::types::{ParseFromJSON, Type};
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde_json::Value;
use uuid::Uuid;
use waypost_core::acceptance::draft::Draft;
use waypost_core::acceptance::{AcceptRefusal, Acceptance, Answered, Receipt};
use waypost_core::clock::Clock;
use waypost_core::fault::FaultKind;
use waypost_core::idempotency::batch::IdempotentBatch;
use waypost_core::idempotency::fingerprint::{self, BodyHash};
use waypost_core::idempotency::{IdempotencyKey, KeyClaim, KeyConflict};
use waypost_core::issue::Issue;

use crate::context::Context;
use crate::error::Failure;
use crate::middleware::auth::{Caller, Requires};
use crate::middleware::permission;
use crate::request::body::{BATCH_BYTES_MAX, JsonBody, SEND_BYTES_MAX};
use crate::request::idempotency_key::{KeyHeader, SEND_PATH, stored_answer};
use crate::response::Nullable;
use crate::v1::Section;
use crate::v1::send_request::SendMessageRequest;
use crate::validate::{Field, Validated, problem};

pub(crate) struct SendApi {
    pub(crate) context: Arc<Context>,
}

/// The result of a send. Suppressed recipients are dropped. If all recipients are
/// suppressed, no message is created.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
pub(super) struct SendMessageResponse {
    /// The id of the message; null if all recipients are suppressed.
    message_id: Nullable<Uuid>,
    /// The provider account that will send the message; null if all recipients are
    /// suppressed.
    provider_id: Nullable<Uuid>,
    /// The provider type of this account.
    provider_type: Option<String>,
    /// `queued`, or `suppressed` if all recipients are suppressed.
    status: String,
    /// Whether the sender's domain is verified on this account.
    domain_verified: Option<bool>,
    /// The number of suppressed recipients; absent if none is suppressed.
    suppressed_count: Option<u64>,
    /// The number of accepted recipients; absent if none or all are suppressed.
    accepted_count: Option<u64>,
}

impl From<Acceptance> for SendMessageResponse {
    fn from(acceptance: Acceptance) -> Self {
        match acceptance {
            Acceptance::Queued(receipt) => receipt.into(),
            Acceptance::Suppressed { suppressed_count } => Self {
                message_id: Nullable(None),
                provider_id: Nullable(None),
                provider_type: None,
                status: SUPPRESSED.to_owned(),
                domain_verified: None,
                suppressed_count: Some(suppressed_count as u64),
                accepted_count: None,
            },
        }
    }
}

impl From<Receipt> for SendMessageResponse {
    fn from(receipt: Receipt) -> Self {
        let is_partial = receipt.suppressed_count > 0;
        Self {
            message_id: Nullable(Some(receipt.message_id.0)),
            provider_id: Nullable(Some(receipt.route.account_id.0)),
            provider_type: Some(receipt.route.provider_type.to_string()),
            status: QUEUED.to_owned(),
            domain_verified: Some(receipt.route.domain_verified),
            suppressed_count: is_partial.then_some(receipt.suppressed_count as u64),
            accepted_count: is_partial.then_some(receipt.accepted_count as u64),
        }
    }
}

const QUEUED: &str = "queued";
const SUPPRESSED: &str = "suppressed";

#[derive(ApiResponse)]
enum Accepted {
    /// The message is accepted: it is stored and queued. If all recipients are
    /// suppressed, nothing is stored or sent.
    #[oai(status = 202)]
    Queued(Json<SendMessageResponse>),
}

/// A message of a batch: the fields of `POST /v1/send`, and an idempotency key.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct BatchMessage {
    #[oai(flatten)]
    message: SendMessageRequest,
    /// Makes it safe to send this message again: in this or another batch, or with the
    /// same key as the `Idempotency-Key` of `POST /v1/send`. Without it, the message is
    /// protected by the `Idempotency-Key` of the batch, if there is one.
    idempotency_key: Validated<Option<IdempotencyKey>>,
}

/// The messages to send.
#[derive(Debug, Object)]
struct SendBatchRequest {
    /// 1 to 1,000 messages. The operator can set another maximum.
    messages: Validated<BatchItems>,
}

/// The most messages in a batch that are parsed, whatever maximum the operator sets.
const BATCH_MESSAGES_PARSED_MAX: usize = 10_000;

/// The messages of a batch. Each is parsed separately, so that a mistake in one does not
/// affect the others.
#[derive(Debug)]
struct BatchItems(Vec<Result<BatchItem, Vec<Issue>>>);

/// A parsed message of a batch, with the hash of its fields except the idempotency key.
#[derive(Debug)]
struct BatchItem {
    message: BatchMessage,
    hash: Option<BodyHash>,
    issues: Vec<Issue>,
}

impl BatchItem {
    fn read(item: Value) -> Result<Self, Vec<Issue>> {
        let Value::Object(mut members) = item else {
            return problem("must be an object");
        };
        let key = members.remove(MESSAGE_KEY);
        let rest = Value::Object(members);
        let hash = key.is_some().then(|| fingerprint::of(&rest));
        let idempotency_key =
            Validated::parse_from_json(key).or_else(|error| problem(error.into_message()))?;
        let message = SendMessageRequest::parse_from_json(Some(rest))
            .or_else(|error| problem(error.into_message()))?;
        Ok(Self {
            message: BatchMessage {
                message,
                idempotency_key,
            },
            hash,
            issues: Vec::new(),
        })
    }

    /// The draft with its idempotency claim: by its own key, or as a part of its batch.
    fn check(
        self,
        claim: impl FnOnce(&IdempotencyKey, BodyHash) -> KeyClaim,
        part: Option<KeyClaim>,
        (clock, caller): (&Clock, &Caller),
    ) -> Result<Draft, Vec<Issue>> {
        let mut issues = self.issues;
        let key = self.message.idempotency_key.take(MESSAGE_KEY, &mut issues);
        let mut draft = self.message.message.check(issues, clock, caller)?;
        let own = key.flatten().zip(self.hash);
        draft.claim = own.map(|(key, hash)| claim(&key, hash)).or(part);
        Ok(draft)
    }
}

const MESSAGES: &str = "messages";
const MESSAGE_KEY: &str = "idempotencyKey";

/// The index of the message that an issue path leads into, such as 3 for `messages.3.to`.
fn message_index(path: &str) -> Option<usize> {
    let mut steps = path.splitn(3, '.');
    let (list, index, _within) = (steps.next()?, steps.next()?, steps.next()?);
    index.parse().ok().filter(|_| list == MESSAGES)
}

/// Moves an issue of the batch to the message that it is about.
fn move_issue(item: &mut Result<BatchItem, Vec<Issue>>, issue: Issue) {
    let path = issue.path.splitn(3, '.').nth(2).unwrap_or_default();
    let issue = Issue::new(path, issue.message);
    match item {
        Ok(item) => item.issues.push(issue),
        Err(found) => found.push(issue),
    }
}

impl Field for BatchItems {
    fn schema() -> MetaSchemaRef {
        let mut schema = poem_openapi::registry::MetaSchema::new("array");
        schema.items = Some(Box::new(BatchMessage::schema_ref()));
        schema.min_items = Some(1);
        schema.max_items = Some(1_000);
        MetaSchemaRef::Inline(Box::new(schema))
    }

    fn register(registry: &mut poem_openapi::registry::Registry) {
        BatchMessage::register(registry);
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let Value::Array(items) = value else {
            return problem("must be an array of messages");
        };
        if items.is_empty() {
            return problem("must not be empty");
        }
        if items.len() > BATCH_MESSAGES_PARSED_MAX {
            return problem(format!(
                "must not have more than {BATCH_MESSAGES_PARSED_MAX} messages"
            ));
        }
        Ok(Self(items.into_iter().map(BatchItem::read).collect()))
    }
}

/// The result of one message of a batch: `messageId` and `status` if it was accepted
/// (`messageId` is null if all its recipients are suppressed), or `error` if it was
/// rejected.
#[derive(Debug, Default, Object)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
struct BatchResult {
    /// The id of the message.
    message_id: Option<Nullable<Uuid>>,
    /// `queued`, or `suppressed` if all recipients are suppressed.
    status: Option<String>,
    /// Why the message was rejected.
    error: Option<String>,
}

impl BatchResult {
    fn refused(error: String) -> Self {
        Self {
            error: Some(error),
            ..Self::default()
        }
    }
}

/// The results, one for each message, in the order of the request.
#[derive(Debug, Object)]
struct SendBatchResponse {
    results: Vec<BatchResult>,
}

#[OpenApi(tag = "Section::Sending")]
impl SendApi {
    /// Send a message
    ///
    /// Requires the permission `SEND`. The response 202 means that the message is stored
    /// and will be sent, even if servers fail in between. Suppressed recipients are
    /// dropped; if all recipients are suppressed, the status is `suppressed` and no
    /// message is created.
    #[oai(path = "/v1/send", method = "post", operation_id = "send_message")]
    async fn send_message(
        &self,
        caller: Requires<permission::Send>,
        /// Makes the request safe to repeat.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<SendMessageRequest, SEND_BYTES_MAX>,
    ) -> Result<Accepted, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let claim = key.claim(&self.context, &caller, &body, &mut issues);
        let request = body.take(&mut issues)?;
        let mut draft = request
            .check(issues, &self.context.clock, &caller)
            .map_err(Failure::Invalid)?;
        draft.claim = claim.flatten();
        let answered = self
            .context
            .accept
            .acceptor
            .accept(caller.organization_id(), draft)
            .await?;
        let response = SendMessageResponse::from(answered.acceptance);
        if answered.is_repeat {
            return Err(Failure::Repeated(stored_answer(202, &response)));
        }
        Ok(Accepted::Queued(Json(response)))
    }

    /// Send a batch of messages
    ///
    /// Requires the permission `SEND`. Each message is validated and queued separately. A
    /// message that is rejected has an `error` in its place in `results`.
    #[oai(
        path = "/v1/emails/batch",
        method = "post",
        operation_id = "send_message_batch"
    )]
    async fn send_message_batch(
        &self,
        caller: Requires<permission::Send>,
        /// Makes the request safe to repeat.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<SendBatchRequest, BATCH_BYTES_MAX>,
    ) -> Result<Json<SendBatchResponse>, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let claim = key.claim(&self.context, &caller, &body, &mut issues);
        let request = body.take(&mut issues)?;
        let items = self.read_items(request, &mut issues);
        let (Some(items), Some(claim), true) = (items, claim, issues.is_empty()) else {
            return Err(Failure::Invalid(issues));
        };
        let Some(claim) = claim else {
            let (results, temporary) = self.accept_batch(&caller, items, None).await?;
            // If Postgres went away and nothing was accepted, the whole batch fails, as a
            // single message would.
            if let Some(refusal) = temporary.filter(is_away)
                && results.iter().all(|result| result.error.is_some())
            {
                return Err(refusal.into());
            }
            return Ok(Json(SendBatchResponse { results }));
        };
        let (pool, sealer) = (&self.context.pool, &self.context.sealer);
        let parts = IdempotentBatch::begin(pool, sealer, claim).await?;
        let (results, temporary) = self.accept_batch(&caller, items, Some(&parts)).await?;
        // If it is unknown whether a message was accepted, an `error` in its place might
        // be wrong. A repeated batch continues where this one stopped.
        if let Some(refusal) = temporary {
            return Err(refusal.into());
        }
        let response = SendBatchResponse { results };
        parts.finish(&stored_answer(200, &response)).await?;
        Ok(Json(response))
    }
}

impl SendApi {
    /// The messages of a batch. Mistakes in a single message move from `issues` to this
    /// message.
    fn read_items(
        &self,
        request: SendBatchRequest,
        issues: &mut Vec<Issue>,
    ) -> Option<Vec<Result<BatchItem, Vec<Issue>>>> {
        let BatchItems(mut items) = request.messages.take(MESSAGES, issues)?;
        for issue in std::mem::take(issues) {
            match message_index(&issue.path).and_then(|index| items.get_mut(index)) {
                Some(item) => move_issue(item, issue),
                None => issues.push(issue),
            }
        }
        let max = self.context.settings.batch_messages_max;
        if items.len() > max {
            let count = items.len();
            let message = format!("must not have more than {max} messages; there are {count}");
            issues.push(Issue::new(MESSAGES, message));
        }
        Some(items)
    }

    /// Accepts the messages of a batch. Returns their results, and the first refusal that
    /// a repeated request may not get.
    async fn accept_batch(
        &self,
        caller: &Caller,
        items: Vec<Result<BatchItem, Vec<Issue>>>,
        parts: Option<&IdempotentBatch<'_>>,
    ) -> Result<(Vec<BatchResult>, Option<AcceptRefusal>), Failure> {
        let at = parts.map_or_else(|| self.context.clock.now(), IdempotentBatch::begun_at);
        let claim = |key: &IdempotencyKey, hash| caller.claim(SEND_PATH, key, hash, at);
        let mut drafts = Vec::with_capacity(items.len());
        let mut results: Vec<Option<BatchResult>> = Vec::with_capacity(items.len());
        let mut part_of_draft = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            let part = parts.map(|parts| parts.part(index));
            match item.and_then(|item| item.check(claim, part, (&self.context.clock, caller))) {
                Ok(draft) => {
                    part_of_draft.extend(part);
                    drafts.push(draft);
                    results.push(None);
                }
                Err(issues) => results.push(Some(BatchResult::refused(
                    Failure::Invalid(issues).sentence(),
                ))),
            }
        }
        let mut accepted = self
            .context
            .accept
            .acceptor
            .accept_all(caller.organization_id(), drafts)
            .await?;
        self.record_refusals(&part_of_draft, &mut accepted).await?;
        let temporary = accepted.iter().find_map(temporary).cloned();
        let mut accepted = accepted.into_iter().map(batch_result);
        let results = results
            .into_iter()
            .map(|result| result.or_else(|| accepted.next()).unwrap_or_default());
        Ok((results.collect(), temporary))
    }
}

impl SendApi {
    /// A batch with a key may run twice at the same time, if the client repeats it early.
    /// A message that one run refuses must not be accepted by the other. `parts` are the
    /// claims of the messages; it is empty if the batch has no key.
    async fn record_refusals(
        &self,
        parts: &[KeyClaim],
        results: &mut [Result<Answered, AcceptRefusal>],
    ) -> Result<(), Failure> {
        let refused = parts.iter().zip(results).filter_map(|(part, result)| {
            let refusal = result.as_ref().err()?;
            if !refusal.is_of_request() {
                return None;
            }
            let message = Failure::from(refusal.clone()).sentence();
            Some(((*part, message), result))
        });
        let (refused, results): (Vec<_>, Vec<_>) = refused.unzip();
        if !refused.is_empty() {
            let acceptor = &self.context.accept.acceptor;
            acceptor.keep_refusals(refused, results).await?;
        }
        Ok(())
    }
}

/// The refusal, if it is temporary: a fault, or an earlier request that still runs.
fn temporary(result: &Result<Answered, AcceptRefusal>) -> Option<&AcceptRefusal> {
    result.as_ref().err().filter(|refusal| {
        matches!(
            refusal,
            AcceptRefusal::Fault(_) | AcceptRefusal::Key(KeyConflict::StillRunning)
        )
    })
}

/// Whether the refusal is due to Postgres being away.
fn is_away(refusal: &AcceptRefusal) -> bool {
    matches!(refusal, AcceptRefusal::Fault(fault) if fault.kind() == FaultKind::Unavailable)
}

fn batch_result(result: Result<Answered, AcceptRefusal>) -> BatchResult {
    match result.map(|answered| answered.acceptance) {
        Ok(Acceptance::Queued(receipt)) => BatchResult {
            message_id: Some(Nullable(Some(receipt.message_id.0))),
            status: Some(QUEUED.to_owned()),
            error: None,
        },
        Ok(Acceptance::Suppressed { .. }) => BatchResult {
            message_id: Some(Nullable(None)),
            status: Some(SUPPRESSED.to_owned()),
            error: None,
        },
        Err(refusal) => BatchResult::refused(Failure::from(refusal).sentence()),
    }
}
