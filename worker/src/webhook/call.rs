//! One call of an endpoint: builds the body, signs it, posts it and notes the outcome.

use std::sync::Arc;

use bytes::Bytes;
use tracing::error;
use waypost_core::clock::Timestamp;
use waypost_core::fault::Fault;
use waypost_core::ids::WorkerId;
use waypost_core::telemetry::instruments;
use waypost_core::telemetry::traces::{self, TraceSpanKind};
use waypost_core::webhook::client::{WebhookFailure, WebhookReply};
use waypost_core::webhook::engine::{DueDelivery, EndpointCall, LeasedEndpoint};
use waypost_core::webhook::schedule::CallOutcome;
use waypost_core::webhook::secret::SigningSecret;
use waypost_core::webhook::signature::{self, Signing};

use super::Engine;

/// An endpoint with its opened secrets, newest first.
pub(super) struct CallTarget {
    pub(super) endpoint: LeasedEndpoint,
    secrets: Vec<SigningSecret>,
}

impl CallTarget {
    pub(super) fn open(engine: &Engine, endpoint: LeasedEndpoint) -> Result<Self, Fault> {
        let secrets = endpoint.secrets_sealed.iter().map(|sealed| {
            SigningSecret::open(
                &engine.sealer,
                endpoint.organization_id,
                endpoint.id,
                sealed,
            )
        });
        Ok(Self {
            secrets: secrets.collect::<Result<_, _>>()?,
            endpoint,
        })
    }
}

/// A call that was made, or could not be made.
pub(super) struct CompletedCall {
    pub(super) target: Arc<CallTarget>,
    pub(super) delivery: DueDelivery,
    /// `false` if the call failed in Waypost; it says nothing about the endpoint then.
    pub(super) was_made: bool,
    pub(super) was_probe: bool,
    /// The call was not made because the worker lost its lease while waiting for a
    /// permit. The delivery is still due.
    pub(super) was_cancelled: bool,
    /// The secret of `X-Waypost-Signature`, counted from the newest.
    /// `is_secret_confirmed` says that the endpoint had accepted it before.
    pub(super) secret_index: usize,
    is_secret_confirmed: bool,
    pub(super) outcome: CallOutcome,
    pub(super) attempt: EndpointCall,
}

/// How to make a call.
pub(super) struct CallOptions {
    pub(super) worker: WorkerId,
    /// The secret that the endpoint accepted last, if known. Otherwise attempts alternate
    /// between the secrets.
    pub(super) secret_index: Option<usize>,
    pub(super) is_probe: bool,
}

impl CompletedCall {
    /// Whether the call was signed with one of several secrets and a retry will be signed
    /// with another.
    pub(super) fn retry_uses_other_secret(&self) -> bool {
        let secrets = self.target.secrets.len();
        let attempts = usize::try_from(self.delivery.attempts).unwrap_or_default();
        secrets > 1 && !self.is_secret_confirmed && !(attempts + 1).is_multiple_of(secrets)
    }
}

/// Makes a call once the limiter permits it.
pub(super) async fn call(
    engine: Arc<Engine>,
    target: Arc<CallTarget>,
    delivery: DueDelivery,
    options: CallOptions,
) -> CompletedCall {
    let _permit = engine
        .limiter
        .acquire(target.endpoint.organization_id)
        .await;
    let attempts = usize::try_from(delivery.attempts).unwrap_or_default();
    let started_at = engine.clock.now();
    let mut completed = CompletedCall {
        outcome: CallOutcome::Failed {
            status: None,
            retry_after: None,
        },
        was_made: false,
        was_probe: options.is_probe,
        was_cancelled: !engine.worker_lease.may_call(options.worker),
        secret_index: options.secret_index.unwrap_or(attempts) % target.secrets.len().max(1),
        is_secret_confirmed: options.secret_index.is_some(),
        attempt: EndpointCall {
            id: engine.ids.next_at(started_at),
            started_at,
            duration_ms: 0,
            status_code: None,
            answer: None,
        },
        target,
        delivery,
    };
    if completed.was_cancelled {
        return completed;
    }
    let organization_id = completed.target.endpoint.organization_id;
    match completed.delivery.body(&engine.sealer, organization_id) {
        Ok(body) => {
            let reply = post(&engine, &completed, started_at, body).await;
            completed.was_made = true;
            set_outcome(&mut completed, reply);
        }
        Err(fault) => {
            let id = completed.delivery.id;
            error!(webhook_delivery.id = %id, cause = fault.chain(), "The body of a webhook call could not be built");
            completed.attempt.answer = Some("the body could not be built".to_owned());
        }
    }
    completed
}

async fn post(
    engine: &Engine,
    completed: &CompletedCall,
    at: Timestamp,
    body: Bytes,
) -> Result<WebhookReply, WebhookFailure> {
    let signing = Signing {
        delivery_id: completed.delivery.id,
        event_type: completed.delivery.event_type,
        at,
        secret_index: u32::try_from(completed.secret_index).unwrap_or_default(),
    };
    let mut headers = signature::headers(&completed.target.secrets, signing, &body);
    let (kind, trace) = (TraceSpanKind::Client, completed.delivery.trace());
    let mut span = traces::message_span("post webhook", kind, trace);
    // With traces off here, the receiver's spans still belong to the message's trace.
    if let Some(place) = span.context().or(trace) {
        place.add_to(&mut headers);
    }
    let reply = engine
        .client
        .post(&completed.target.endpoint.url, headers, body)
        .await;
    let status = reply.as_ref().ok().map(|reply| reply.status);
    if let Some(status) = status {
        span.set("http.response.status_code", i64::from(status));
    }
    if !status.is_some_and(|status| (200..300).contains(&status)) {
        span.fail("the endpoint did not take the event");
    }
    reply
}

fn set_outcome(completed: &mut CompletedCall, reply: Result<WebhookReply, WebhookFailure>) {
    let duration = match &reply {
        Ok(reply) => reply.duration,
        Err(failure) => failure.duration,
    };
    let outcome = reply.as_ref().map_or("failed", |reply| match reply.status {
        200..=299 => "delivered",
        410 => "gone",
        _ => "failed",
    });
    instruments::webhook_attempt(outcome, duration);
    let attempt = &mut completed.attempt;
    attempt.duration_ms = i32::try_from(duration.as_millis()).unwrap_or(i32::MAX);
    match reply {
        Ok(reply) => {
            completed.outcome = CallOutcome::of(reply.status, reply.retry_after);
            attempt.status_code = Some(i32::from(reply.status));
            attempt.answer = Some(reply.answer);
        }
        Err(failure) => attempt.answer = Some(failure.reason),
    }
}
