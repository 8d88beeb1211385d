//! One call: what is said is put together, signed, posted, and what came of it noted.

use std::sync::Arc;

use bytes::Bytes;
use tracing::error;
use waypost_core::address::Mailbox;
use waypost_core::clock::Timestamp;
use waypost_core::crypto::seal::Sealed;
use waypost_core::fault::Fault;
use waypost_core::ids::WorkerId;
use waypost_core::webhook::client::{WebhookFailure, WebhookReply};
use waypost_core::webhook::engine::{DueDelivery, EndpointCall, ServedEndpoint};
use waypost_core::webhook::payload::Payload;
use waypost_core::webhook::schedule::CallOutcome;
use waypost_core::webhook::secret::SigningSecret;
use waypost_core::webhook::signature::{self, Signing};

use super::Engine;

/// An endpoint that can be called: with its secrets opened, the newest first.
pub(super) struct Target {
    pub(super) endpoint: ServedEndpoint,
    secrets: Vec<SigningSecret>,
}

impl Target {
    pub(super) fn open(engine: &Engine, endpoint: ServedEndpoint) -> Result<Self, Fault> {
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

/// A call that was made, or could not be.
pub(super) struct Called {
    pub(super) target: Arc<Target>,
    pub(super) delivery: DueDelivery,
    /// False where the fault is ours: it says nothing of the endpoint.
    pub(super) was_made: bool,
    pub(super) was_probe: bool,
    /// It was not made and is still due: while it waited for room, the worker's time
    /// had ended.
    pub(super) was_withdrawn: bool,
    /// Which of the secrets the contract's signature was by, counted from the newest;
    /// and whether the endpoint had taken that one before.
    pub(super) turn: usize,
    was_known: bool,
    pub(super) outcome: CallOutcome,
    pub(super) attempt: EndpointCall,
}

/// How a call is to be made.
pub(super) struct Making {
    pub(super) worker: WorkerId,
    /// The secret that the endpoint took last, if that is known. Otherwise attempts
    /// take turns.
    pub(super) turn: Option<usize>,
    pub(super) is_probe: bool,
}

impl Called {
    /// Whether it was signed by one of several secrets, and a retry is signed by
    /// another.
    pub(super) fn is_of_a_secret_among_others(&self) -> bool {
        let secrets = self.target.secrets.len();
        let attempts = usize::try_from(self.delivery.attempts).unwrap_or_default();
        secrets > 1 && !self.was_known && !(attempts + 1).is_multiple_of(secrets)
    }
}

/// Makes a call, as soon as there is room for one.
pub(super) async fn call(
    engine: Arc<Engine>,
    target: Arc<Target>,
    delivery: DueDelivery,
    making: Making,
) -> Called {
    let _share = engine.shares.acquire(target.endpoint.organization_id).await;
    let attempts = usize::try_from(delivery.attempts).unwrap_or_default();
    let started_at = engine.clock.now();
    let mut called = Called {
        outcome: CallOutcome::Refused {
            status: None,
            retry_after: None,
        },
        was_made: false,
        was_probe: making.is_probe,
        was_withdrawn: !engine.tenures.may_call(making.worker),
        turn: making.turn.unwrap_or(attempts) % target.secrets.len().max(1),
        was_known: making.turn.is_some(),
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
    if called.was_withdrawn {
        return called;
    }
    match body(&engine, &called.target, &called.delivery) {
        Ok(body) => {
            let reply = post(&engine, &called, started_at, body).await;
            called.was_made = true;
            note(&mut called, reply);
        }
        Err(fault) => {
            let id = called.delivery.id;
            error!(webhook_delivery.id = %id, cause = fault.chain(), "A webhook could not be put together");
            called.attempt.answer = Some("it could not be put together".to_owned());
        }
    }
    called
}

fn body(engine: &Engine, target: &Target, delivery: &DueDelivery) -> Result<Bytes, Fault> {
    let recipient = engine.sealer.open(
        target.endpoint.organization_id,
        Sealed::Recipient,
        delivery.message_id.0,
        &delivery.address_sealed,
    )?;
    let recipient = String::from_utf8(recipient)
        .map_err(|error| Fault::internal("read a recipient's address", error.utf8_error()))?;
    let recipient = Mailbox::parse(&recipient)
        .map_err(|error| Fault::internal("read a stored mailbox", error))?;
    let payload = Payload {
        event_id: delivery.event_id,
        event_type: delivery.event_type,
        occurred_at: delivery.occurred_at,
        message_id: delivery.message_id,
        recipient: recipient.address().as_str(),
        from: &delivery.from_address,
        subject: &delivery.subject,
        tags: &delivery.tags,
        metadata: delivery.metadata.as_ref(),
        provider_type: delivery.provider_type,
        particulars: delivery.data.as_ref(),
    };
    Ok(payload.body())
}

async fn post(
    engine: &Engine,
    called: &Called,
    at: Timestamp,
    body: Bytes,
) -> Result<WebhookReply, WebhookFailure> {
    let signing = Signing {
        delivery_id: called.delivery.id,
        event_type: called.delivery.event_type,
        at,
        attempt: u32::try_from(called.turn).unwrap_or_default(),
    };
    let headers = signature::headers(&called.target.secrets, signing, &body);
    engine
        .client
        .post(&called.target.endpoint.url, headers, body)
        .await
}

fn note(called: &mut Called, reply: Result<WebhookReply, WebhookFailure>) {
    let duration = match &reply {
        Ok(reply) => reply.duration,
        Err(failure) => failure.duration,
    };
    let attempt = &mut called.attempt;
    attempt.duration_ms = i32::try_from(duration.as_millis()).unwrap_or(i32::MAX);
    match reply {
        Ok(reply) => {
            called.outcome = CallOutcome::of(reply.status, reply.retry_after);
            attempt.status_code = Some(i32::from(reply.status));
            attempt.answer = Some(reply.answer);
        }
        Err(failure) => attempt.answer = Some(failure.reason),
    }
}
