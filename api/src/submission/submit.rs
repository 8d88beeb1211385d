//! Has one mail accepted: from its content to the reply.

use std::sync::Arc;
use std::time::Instant;

use poem_openapi::types::ParseFromJSON as _;
use serde_json::Value;
use tracing::Instrument as _;
use uuid::Uuid;
use waypost_core::acceptance::draft::Draft;
use waypost_core::acceptance::{Acceptance, Answered};
use waypost_core::address::EmailAddress;
use waypost_core::audit::{Actor, Origin};
use waypost_core::auth::OpenedKey;
use waypost_core::fault::Fault;
use waypost_core::idempotency::IdempotencyKey;
use waypost_core::issue::Issue;
use waypost_core::telemetry::instruments;
use waypost_core::telemetry::traces::{self, TraceSpan, TraceSpanKind};

use super::Submission;
use super::reply::SubmissionReply;
use super::request::MailRequest;
use super::waypost_headers::IDEMPOTENCY_KEY;
use crate::error::Failure;
use crate::middleware::auth::Caller;
use crate::request::idempotency_key::SEND_PATH;
use crate::v1::send_request::SendMessageRequest;
use crate::validate::Field as _;

/// Mails above this size are read beside the other sessions.
const READ_AT_ONCE_BYTES_MAX: usize = 256 << 10;
/// What stands for the path in the claims of mails without a key. No path is like it.
const REPEATED_MAILS: &str = "smtp";

/// A mail that was received whole.
pub(super) struct ReceivedMail {
    pub(super) key: Arc<OpenedKey>,
    pub(super) envelope: Vec<EmailAddress>,
    pub(super) content: Vec<u8>,
}

impl Submission {
    /// Accepts a mail, and answers it.
    pub(super) async fn submit(&self, mail: ReceivedMail) -> SubmissionReply {
        let began = Instant::now();
        let mut span = match traces::is_on() {
            true => Some(traces::span("SMTP mail", TraceSpanKind::Server, None)),
            false => None,
        };
        let place = span.as_ref().and_then(TraceSpan::context);
        let id: Uuid = self.accept.ids.next();
        let log_span = tracing::info_span!("mail", request.id = %id);
        // Boxed: each session would carry it.
        let answering = Box::pin(self.answer(mail, id));
        let reply = traces::in_span(place, answering.instrument(log_span)).await;
        if let Some(span) = &mut span {
            span.set("smtp.reply", i64::from(reply.code));
        }
        instruments::submission(reply.code, began.elapsed());
        reply
    }

    async fn answer(&self, mail: ReceivedMail, id: Uuid) -> SubmissionReply {
        let failure = match self.accept_mail(mail, id).await {
            Ok(answered) => return accepted(&answered),
            Err(NotAccepted::Unreadable(reply)) => return reply,
            Err(NotAccepted::Failed(failure)) => failure,
        };
        failure.log();
        instruments::submission_refused(match failure.status().as_u16() {
            500.. => "unavailable",
            _ => "content",
        });
        SubmissionReply::of_failure(&failure)
    }

    async fn accept_mail(&self, mail: ReceivedMail, id: Uuid) -> Result<Answered, NotAccepted> {
        let ReceivedMail {
            key,
            envelope,
            content,
        } = mail;
        let request = if content.len() > READ_AT_ONCE_BYTES_MAX {
            let reading = move || MailRequest::read(&content, &envelope);
            let read = tokio::task::spawn_blocking(reading).await;
            read.map_err(|error| Failure::from(Fault::internal("read a mail", error)))?
        } else {
            MailRequest::read(&content, &envelope)
        };
        let request = request.map_err(|error| {
            instruments::submission_refused("content");
            NotAccepted::Unreadable(SubmissionReply::new(554, "5.6.0", &error.to_string()))
        })?;
        let organization_id = key.record.organization_id;
        let origin = Origin {
            actor: Actor::ApiKey {
                id: key.record.id,
                name: key.record.name.clone(),
            },
            ip: None,
            user_agent: None,
            request_id: id.to_string(),
        };
        let draft = self.draft(request, &Caller::of_key(key, origin))?;
        let accepting = self.accept.acceptor.accept(organization_id, draft);
        let answered = tokio::select! {
            biased;
            answered = accepting => answered.map_err(Failure::from)?,
            () = self.accept.liveness.gone() => return Err(postgres_is_away().into()),
        };
        Ok(answered)
    }

    /// The draft of a mail, by the rules of `POST /v1/send`.
    fn draft(&self, request: MailRequest, caller: &Caller) -> Result<Draft, Failure> {
        let MailRequest {
            members,
            files,
            key,
            repeat_key,
            hash,
            mut issues,
        } = request;
        let now = self.accept.clock.now();
        let claim = match (key, repeat_key) {
            (Some(text), _) => match IdempotencyKey::read(Value::String(text)) {
                Ok(key) => Some(caller.claim(SEND_PATH, &key, hash, now)),
                Err(found) => {
                    let found = found.into_iter();
                    issues.extend(found.map(|issue| issue.under(IDEMPOTENCY_KEY)));
                    None
                }
            },
            (None, Some(key)) => IdempotencyKey::parse(key)
                .ok()
                .map(|key| caller.claim(REPEATED_MAILS, &key, hash, now)),
            (None, None) => None,
        };
        let request = SendMessageRequest::parse_from_json(Some(Value::Object(members)))
            .map_err(|error| Failure::Invalid(vec![Issue::new("", error.into_message())]))?;
        let draft = request.check(issues, &self.accept.clock, caller);
        let mut draft = draft.map_err(Failure::Invalid)?;
        draft.files = files;
        draft.claim = claim;
        Ok(draft)
    }
}

/// Why a mail was not accepted.
enum NotAccepted {
    Unreadable(SubmissionReply),
    Failed(Failure),
}

impl From<Failure> for NotAccepted {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

pub(super) fn postgres_is_away() -> Failure {
    Failure::Fault(Fault::unavailable("reach Postgres", "it does not answer"))
}

fn accepted(answered: &Answered) -> SubmissionReply {
    let text = match &answered.acceptance {
        Acceptance::Queued(receipt) if receipt.suppressed_count > 0 => format!(
            "Accepted as {}; {} of {} recipients are suppressed and get nothing",
            receipt.message_id,
            receipt.suppressed_count,
            receipt.accepted_count + receipt.suppressed_count
        ),
        Acceptance::Queued(receipt) => format!("Accepted as {}", receipt.message_id),
        Acceptance::Suppressed { .. } => {
            "Accepted, and not sent: all recipients are suppressed".to_owned()
        }
    };
    SubmissionReply::new(250, "2.0.0", &text)
}
