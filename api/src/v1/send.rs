//! Sending: one message, or a batch of independent ones.

use std::sync::Arc;

use poem_openapi::payload::Json;
use poem_openapi::registry::MetaSchemaRef;
use poem_openapi::types::{ParseFromJSON, Type};
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde_json::Value;
use uuid::Uuid;
use waypost_core::acceptance::draft::{Draft, METADATA_BYTES_MAX, TemplateUse};
use waypost_core::acceptance::{AcceptRefusal, Acceptance, Answered, Receipt};
use waypost_core::address::Mailbox;
use waypost_core::auth::Permission;
use waypost_core::fault::FaultKind;
use waypost_core::idempotency::batch::IdempotentBatch;
use waypost_core::idempotency::fingerprint::{self, BodyHash};
use waypost_core::idempotency::{IdempotencyKey, KeyClaim, KeyConflict};
use waypost_core::ids::{TemplateId, UnsubscribeGroupId};
use waypost_core::issue::Issue;
use waypost_core::text::Subject;
use waypost_core::tracking::TrackingChoice;
use waypost_core::unsubscribe::link_insertion;

use crate::auth::Caller;
use crate::body::{BATCH_BYTES_MAX, JsonBody, SEND_BYTES_MAX};
use crate::context::Context;
use crate::error::Failure;
use crate::fields::object::JsonObject;
use crate::fields::template::{RecordId, Variables};
use crate::fields::{BodyText, Recipients, Tags};
use crate::idempotency::{KeyHeader, SEND_PATH, answer};
use crate::response::Nullable;
use crate::v1::Section;
use crate::validate::{Field, Validated, problem};

pub(crate) struct SendApi {
    pub(crate) context: Arc<Context>,
}

/// A message to send. At least one of `templateId`, `html` and `text` must be
/// there.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct SendMessageRequest {
    /// One address or up to 1,000, each with or without a display name. Every
    /// recipient gets a private copy; an address named twice gets one.
    to: Validated<Recipients>,
    /// The sender. Its domain must be verified on the provider account that the
    /// message goes through.
    from: Validated<Mailbox>,
    /// The subject, on one line. With `templateId` or `variables` it is Handlebars
    /// itself, and the bound holds for what it renders to as well.
    subject: Validated<Subject>,
    /// The HTML body. With `templateId` it takes the place of the template's, as it
    /// is; without one it is Handlebars itself where `variables` are given.
    html: Validated<Option<BodyText>>,
    /// The plain-text body. With `templateId` it takes the place of the template's, as
    /// it is; without one it is Handlebars itself where `variables` are given.
    text: Validated<Option<BodyText>>,
    /// Where answers go, if not to the sender.
    reply_to: Validated<Option<Mailbox>>,
    /// Up to 10, for routing and analytics.
    tags: Validated<Option<Tags>>,
    /// Whatever is to be kept with the message, up to 64 KiB.
    metadata: Validated<Option<JsonObject<METADATA_BYTES_MAX>>>,
    /// A template. Its current version is rendered now: later versions do not
    /// change the message.
    template_id: Validated<Option<RecordId>>,
    /// Values for the template: an object of up to 256 KiB. Without `templateId`
    /// subject, html and text are filled in with them, even where it is empty; where it
    /// is absent they stay as they are.
    variables: Validated<Option<Variables>>,
    /// The group that the recipients may unsubscribe from. Its suppressions apply
    /// besides the global ones, and each copy gets an unsubscribe link: where a body
    /// says `{{unsubscribeUrl}}`, else at its end, and in the headers for the mail
    /// program's own button. Without a group a body may not say `{{unsubscribeUrl}}`,
    /// unless `variables` have it.
    unsubscribe_group_id: Validated<Option<UnsubscribeGroupId>>,
    /// What is tracked of the message's HTML, in place of what the organization's
    /// settings say: a pixel tells of opens, links through this service of clicks.
    /// A link with the attribute `data-waypost-no-track` leads straight to its target.
    tracking: Validated<Option<TrackingChoice>>,
}

impl SendMessageRequest {
    /// The draft, or everything that is wrong with the request.
    fn check(self, mut issues: Vec<Issue>) -> Result<Draft, Vec<Issue>> {
        let has_content =
            self.html.is_given() || self.text.is_given() || self.template_id.is_given();
        let to = self.to.take("to", &mut issues);
        let from = self.from.take("from", &mut issues);
        let subject = self.subject.take("subject", &mut issues);
        let html = self.html.take("html", &mut issues);
        let text = self.text.take("text", &mut issues);
        let reply_to = self.reply_to.take("replyTo", &mut issues);
        let tags = self.tags.take("tags", &mut issues);
        let metadata = self.metadata.take("metadata", &mut issues);
        let template_id = self.template_id.take("templateId", &mut issues);
        let variables = self.variables.take("variables", &mut issues);
        let unsubscribe_group_id = self
            .unsubscribe_group_id
            .take("unsubscribeGroupId", &mut issues);
        let tracking = self.tracking.take("tracking", &mut issues);
        if !has_content {
            issues.push(Issue::new(
                "html",
                "is required unless text or templateId is given",
            ));
        }
        // Bodies that are filled in are looked at when they are.
        let is_as_it_is = !matches!((&template_id, &variables), (Some(None), Some(Some(_))));
        let has_place = [&html, &text].into_iter().any(|body| {
            let body = body.as_ref().and_then(Option::as_ref);
            body.is_some_and(|body| link_insertion::is_in(&body.0))
        });
        if has_place && is_as_it_is && matches!(unsubscribe_group_id, Some(None)) {
            issues.push(link_insertion::without_group());
        }
        let draft = (|| {
            let (template_id, variables) = (template_id?, variables?);
            let is_filled_in = template_id.is_some() || variables.is_some();
            Some(Draft {
                to: to?.0,
                from: from?,
                subject: subject?,
                html: html?.map(|body| body.0),
                text: text?.map(|body| body.0),
                template: is_filled_in.then(|| TemplateUse {
                    template_id: template_id.map(|id| TemplateId(id.0)),
                    variables: variables.unwrap_or_default().0,
                }),
                reply_to: reply_to?,
                tags: tags?.unwrap_or_default().0,
                metadata: metadata?.map(|object| object.0),
                unsubscribe_group_id: unsubscribe_group_id?,
                tracking: tracking?.unwrap_or_default(),
                claim: None,
            })
        })();
        match draft {
            Some(draft) if issues.is_empty() => Ok(draft),
            _ => Err(issues),
        }
    }
}

/// What became of a message. Recipients that are suppressed are dropped; where all
/// of them are, there is no message.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
struct SendMessageResponse {
    /// The message's id; null where all recipients are suppressed.
    message_id: Nullable<Uuid>,
    /// The provider account that it goes through; null where all recipients are
    /// suppressed.
    provider_id: Nullable<Uuid>,
    /// That account's provider type.
    provider_type: Option<String>,
    /// `queued`, or `suppressed` where all recipients are.
    status: String,
    /// Whether the sender's domain is verified on that account.
    domain_verified: Option<bool>,
    /// How many recipients are suppressed, where any is.
    suppressed_count: Option<u64>,
    /// How many recipients it is sent to, where some are suppressed.
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
    /// The message is accepted: it is stored and queued, unless all of its
    /// recipients are suppressed.
    #[oai(status = 202)]
    Queued(Json<SendMessageResponse>),
}

/// A message of a batch: as in `POST /v1/send`, and a key of its own.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct BatchMessage {
    #[oai(flatten)]
    message: SendMessageRequest,
    /// Makes it safe to send the message again, in another batch too, or with this
    /// key as `Idempotency-Key` of `POST /v1/send`. Where it is absent, that of the
    /// batch does, if the batch has one.
    idempotency_key: Validated<Option<IdempotencyKey>>,
}

/// Messages to send, each as in `POST /v1/send`.
#[derive(Debug, Object)]
struct SendBatchRequest {
    /// 1 to 1,000 messages (an operator may set another bound).
    messages: Validated<BatchItems>,
}

/// Messages in a batch that are looked at, whatever an operator allows.
const BATCH_MESSAGES_EVER: usize = 10_000;

/// The messages of a batch: each is read by itself, and one that cannot be read
/// does not spoil the others.
#[derive(Debug)]
struct BatchItems(Vec<Result<BatchItem, Vec<Issue>>>);

/// A message of a batch that could be read, and what it is without its key.
#[derive(Debug)]
struct BatchItem {
    message: BatchMessage,
    hash: Option<BodyHash>,
    surplus: Vec<Issue>,
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
            surplus: Vec::new(),
        })
    }

    /// The draft and its claim, by its own key or as a part of its batch.
    fn check(
        self,
        claim: impl FnOnce(&IdempotencyKey, BodyHash) -> KeyClaim,
        part: Option<KeyClaim>,
    ) -> Result<Draft, Vec<Issue>> {
        let mut issues = self.surplus;
        let key = self.message.idempotency_key.take(MESSAGE_KEY, &mut issues);
        let mut draft = self.message.message.check(issues)?;
        let own = key.flatten().zip(self.hash);
        draft.claim = own.map(|(key, hash)| claim(&key, hash)).or(part);
        Ok(draft)
    }
}

const MESSAGES: &str = "messages";
const MESSAGE_KEY: &str = "idempotencyKey";

/// Which message of a batch a path leads into.
fn place_of(path: &str) -> Option<usize> {
    let mut steps = path.splitn(3, '.');
    let (list, place, _within) = (steps.next()?, steps.next()?, steps.next()?);
    place.parse().ok().filter(|_| list == MESSAGES)
}

/// Puts an issue of a batch to the message that it is about.
fn keep_issue(item: &mut Result<BatchItem, Vec<Issue>>, issue: Issue) {
    let path = issue.path.splitn(3, '.').nth(2).unwrap_or_default();
    let issue = Issue::new(path, issue.message);
    match item {
        Ok(item) => item.surplus.push(issue),
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
            return problem("must hold at least one message");
        }
        if items.len() > BATCH_MESSAGES_EVER {
            return problem(format!(
                "must not hold more than {BATCH_MESSAGES_EVER} messages"
            ));
        }
        Ok(Self(items.into_iter().map(BatchItem::read).collect()))
    }
}

/// What became of one message of a batch: `messageId` and `status` where it was
/// accepted (a null `messageId` where all of its recipients are suppressed),
/// `error` where it was not.
#[derive(Debug, Default, Object)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
struct BatchResult {
    /// The message's id.
    message_id: Option<Nullable<Uuid>>,
    /// `queued`, or `suppressed` where all recipients are.
    status: Option<String>,
    /// Why it was not accepted.
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

/// One result for each message, in their order.
#[derive(Debug, Object)]
struct SendBatchResponse {
    results: Vec<BatchResult>,
}

#[OpenApi(tag = "Section::Sending")]
impl SendApi {
    /// Send a message
    ///
    /// Takes the permission SEND. The answer 202 means that the message is stored
    /// and will be sent, whatever fails in between. Suppressed recipients are
    /// dropped; where all are, the status is `suppressed` and there is no message.
    #[oai(path = "/v1/send", method = "post", operation_id = "send_message")]
    async fn send_message(
        &self,
        caller: Caller,
        /// Makes it safe to repeat the request.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<SendMessageRequest, SEND_BYTES_MAX>,
    ) -> Result<Accepted, Failure> {
        caller.require(Permission::Send)?;
        let mut issues = Vec::new();
        let claim = key.claim(&self.context, &caller, &body, &mut issues);
        let request = body.take(&mut issues)?;
        let mut draft = request.check(issues).map_err(Failure::Invalid)?;
        draft.claim = claim.flatten();
        let answered = self
            .context
            .acceptor
            .accept(caller.organization_id(), draft)
            .await?;
        let response = SendMessageResponse::from(answered.acceptance);
        if answered.is_repeat {
            return Err(Failure::Repeated(answer(202, &response)));
        }
        Ok(Accepted::Queued(Json(response)))
    }

    /// Send a batch of messages
    ///
    /// Takes the permission SEND. Each message is validated and queued by itself;
    /// one that fails has an `error` in its place of the answer.
    #[oai(
        path = "/v1/emails/batch",
        method = "post",
        operation_id = "send_message_batch"
    )]
    async fn send_message_batch(
        &self,
        caller: Caller,
        /// Makes it safe to repeat the request.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<SendBatchRequest, BATCH_BYTES_MAX>,
    ) -> Result<Json<SendBatchResponse>, Failure> {
        caller.require(Permission::Send)?;
        let mut issues = Vec::new();
        let claim = key.claim(&self.context, &caller, &body, &mut issues);
        let request = body.take(&mut issues)?;
        let items = self.read_items(request, &mut issues);
        let (Some(items), Some(claim), true) = (items, claim, issues.is_empty()) else {
            return Err(Failure::Invalid(issues));
        };
        let Some(claim) = claim else {
            let (results, unsettled) = self.accept_batch(&caller, items, None).await?;
            // Where nothing was accepted for want of Postgres, the whole request is to be
            // made again, as one message's would.
            if let Some(refusal) = unsettled.filter(is_away)
                && results.iter().all(|result| result.error.is_some())
            {
                return Err(refusal.into());
            }
            return Ok(Json(SendBatchResponse { results }));
        };
        let (pool, sealer) = (&self.context.pool, &self.context.sealer);
        let parts = IdempotentBatch::begin(pool, sealer, claim).await?;
        let (results, unsettled) = self.accept_batch(&caller, items, Some(&parts)).await?;
        // Where the fate of a message is open, an answer with an error in its place
        // might be false. Whoever repeats the batch goes on.
        if let Some(refusal) = unsettled {
            return Err(refusal.into());
        }
        let response = SendBatchResponse { results };
        parts.finish(&answer(200, &response)).await?;
        Ok(Json(response))
    }
}

impl SendApi {
    /// The messages of a batch. What is wrong with one alone leaves `issues` and stays
    /// with it.
    fn read_items(
        &self,
        request: SendBatchRequest,
        issues: &mut Vec<Issue>,
    ) -> Option<Vec<Result<BatchItem, Vec<Issue>>>> {
        let BatchItems(mut items) = request.messages.take(MESSAGES, issues)?;
        for issue in std::mem::take(issues) {
            match place_of(&issue.path).and_then(|place| items.get_mut(place)) {
                Some(item) => keep_issue(item, issue),
                None => issues.push(issue),
            }
        }
        let max = self.context.settings.batch_messages_max;
        if items.len() > max {
            let count = items.len();
            let message = format!("must not hold more than {max} messages; there are {count}");
            issues.push(Issue::new(MESSAGES, message));
        }
        Some(items)
    }

    /// Accepts the messages of a batch; their results, and the first of them that
    /// another try might change.
    async fn accept_batch(
        &self,
        caller: &Caller,
        items: Vec<Result<BatchItem, Vec<Issue>>>,
        parts: Option<&IdempotentBatch<'_>>,
    ) -> Result<(Vec<BatchResult>, Option<AcceptRefusal>), Failure> {
        let at = parts.map_or_else(|| self.context.clock.now(), IdempotentBatch::begun_at);
        let claim = |key: &IdempotencyKey, hash| {
            KeyClaim::new(caller.organization_id(), SEND_PATH, key, hash, at)
        };
        let mut drafts = Vec::with_capacity(items.len());
        let mut results: Vec<Option<BatchResult>> = Vec::with_capacity(items.len());
        let mut part_of_draft = Vec::new();
        for (place, item) in items.into_iter().enumerate() {
            let part = parts.map(|parts| parts.part(place));
            match item.and_then(|item| item.check(claim, part)) {
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
            .acceptor
            .accept_all(caller.organization_id(), drafts)
            .await?;
        self.keep_refusals(&part_of_draft, &mut accepted).await?;
        let unsettled = accepted.iter().find_map(unsettled).cloned();
        let mut accepted = accepted.into_iter().map(batch_result);
        let results = results
            .into_iter()
            .map(|result| result.or_else(|| accepted.next()).unwrap_or_default());
        Ok((results.collect(), unsettled))
    }
}

impl SendApi {
    /// A batch with a key may run twice at once, when it is repeated too early: what
    /// one run refuses, the other must not accept. `parts` are the claims of the
    /// messages, empty where the batch has no key.
    async fn keep_refusals(
        &self,
        parts: &[KeyClaim],
        results: &mut [Result<Answered, AcceptRefusal>],
    ) -> Result<(), Failure> {
        let refused = parts.iter().zip(results).filter_map(|(part, result)| {
            let Err(
                refusal @ (AcceptRefusal::Route(_)
                | AcceptRefusal::Template(_)
                | AcceptRefusal::UnknownGroup),
            ) = &*result
            else {
                return None;
            };
            let words = Failure::from(refusal.clone()).sentence();
            Some(((*part, words), result))
        });
        let (refused, results): (Vec<_>, Vec<_>) = refused.unzip();
        if !refused.is_empty() {
            let acceptor = &self.context.acceptor;
            acceptor.keep_refusals(refused, results).await?;
        }
        Ok(())
    }
}

/// Why a message failed, if it was for want of time or of Postgres.
fn unsettled(result: &Result<Answered, AcceptRefusal>) -> Option<&AcceptRefusal> {
    result.as_ref().err().filter(|refusal| {
        matches!(
            refusal,
            AcceptRefusal::Fault(_) | AcceptRefusal::Key(KeyConflict::StillRunning)
        )
    })
}

/// Whether Postgres was away.
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
