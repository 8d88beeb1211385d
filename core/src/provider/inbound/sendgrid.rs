//! SendGrid's event webhook. Sources: sendgrid/docs (tracking-events/event.md,
//! getting-started-event-webhook-security-features.md), the official clients
//! (sendgrid-go helpers/eventwebhook, sendgrid-nodejs packages/eventwebhook), and
//! sendgrid/sendgrid-csharp for the byte order mark.
//!
//! The signature covers the timestamp header and the raw body, including the CR LF at its
//! end. One post holds events of many messages.

use aws_lc_rs::digest::{Context, SHA256};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use chrono::{DateTime, TimeDelta};

use super::bounce_type;
use super::item::{
    Details, EventDetails, Item, NoEvent, correlation_ids, event_id, is_machine, message_id,
};
use super::{Inbound, InboundRefusal, Received, header, lossy, require_recent};
use crate::clock::Timestamp;
use crate::provider::event::{BounceType, ProviderEvent, ProviderEventKind};

const SIGNATURE: &str = "x-twilio-email-event-webhook-signature";
const TIMESTAMP: &str = "x-twilio-email-event-webhook-timestamp";
/// The oldest signature accepted. SendGrid repeats a post for 24 h and does not say whether
/// it signs each try anew. A replay within this time is harmless: its events have the ids
/// of those that are recorded.
const AGE_MAX: TimeDelta = TimeDelta::hours(36);

/// Verifies the signature with the account's key.
pub(super) fn verify(public_key: &str, inbound: &Inbound<'_>) -> Result<(), InboundRefusal> {
    let signature = header(inbound.headers, SIGNATURE);
    let signature = signature.and_then(|text| BASE64.decode(text.trim()).ok());
    let timestamp = header(inbound.headers, TIMESTAMP);
    let (Some(signature), Some(timestamp)) = (signature, timestamp) else {
        return Err(InboundRefusal::unverified("it is not signed"));
    };
    let key = BASE64.decode(public_key).map_err(|_| NOT_A_KEY)?;
    let mut signed = Context::new(&SHA256);
    signed.update(timestamp.as_bytes());
    signed.update(inbound.body);
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, key)
        .verify_digest(&signed.finish(), &signature)
        .map_err(|_| InboundRefusal::unverified("the signature is not the account's"))?;
    let seconds = timestamp.parse().ok();
    let signed_at = seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    require_recent(signed_at, inbound.now, AGE_MAX).map(|_| ())
}

const NOT_A_KEY: InboundRefusal = InboundRefusal::unverified("the account's public key is invalid");

/// Reads the events of a post.
pub(super) fn read(body: &[u8], now: Timestamp) -> Result<Received, InboundRefusal> {
    let document = lossy::document(body);
    let (items, broken) = lossy::elements(&document).ok_or(InboundRefusal::Malformed {
        why: "it is not a JSON array",
    })?;
    let mut received = Received {
        unreadable: broken,
        ..Received::default()
    };
    for item in items {
        received.add(read_event(item, now).map(Some));
    }
    Ok(received)
}

fn read_event(raw: &str, now: Timestamp) -> Result<ProviderEvent, NoEvent> {
    let item = Item::parse(raw, now)?;
    let event = item.text(&["event"]).ok_or(NoEvent::Unreadable)?;
    let user_agent = item.text(&["useragent"]);
    let is_bot = *item.at(&["sg_machine_open"]) == true || is_machine(user_agent);
    let kind = match event {
        "processed" => ProviderEventKind::Sent,
        "delivered" => ProviderEventKind::Delivered,
        "deferred" => ProviderEventKind::Deferred,
        "bounce" => ProviderEventKind::Bounced(bounce(&item)),
        "dropped" => ProviderEventKind::Dropped,
        "open" => ProviderEventKind::Opened { is_bot },
        "click" => ProviderEventKind::Clicked { is_bot },
        "spamreport" => ProviderEventKind::Complained,
        "unsubscribe" | "group_unsubscribe" => ProviderEventKind::Unsubscribed,
        // Resubscriptions, and events about the account.
        _ => return Err(NoEvent::Skipped),
    };
    let id = item.text(&["sg_event_id"]);
    // `<X-Message-Id>.<parts of the server>`; delayed bounces may lack it.
    let message = item.text(&["sg_message_id"]);
    let message = message.and_then(|id| id.split('.').next());
    Ok(item.event(EventDetails {
        id: id.map_or_else(|| item.content_id(event), event_id),
        kind,
        occurred_at: item.seconds(&["timestamp"]),
        ids: correlation_ids(|name| item.at(&[name])),
        provider_message_id: message_id(message),
        recipient: item.address(&["email"]),
        details: details(&item, kind),
    }))
}

/// The type `bounce`, and older events without a type, mean that SendGrid gave up on the
/// address; `blocked` is about the mail; `expired` means that no server accepted it within
/// 72 hours (github.com/sendgrid/docs/issues/702). An unknown type says nothing about the
/// address.
fn bounce(item: &Item<'_>) -> BounceType {
    match item.text(&["type"]) {
        Some("blocked") => BounceType::Block,
        Some("bounce") | None => match item.text(&["bounce_classification"]) {
            Some("Reputation" | "Content" | "Frequency or Volume Too High") => BounceType::Block,
            Some(_) | None => {
                bounce_type::classify(true, item.text(&["status"]), item.text(&["reason"]))
            }
        },
        Some(_) => BounceType::Soft,
    }
}

fn details(item: &Item<'_>, kind: ProviderEventKind) -> Details {
    let reply = item.text(&["reason"]).or_else(|| item.text(&["response"]));
    let details = Details::default();
    match kind {
        ProviderEventKind::Delivered => details.smtp_code(reply, None),
        ProviderEventKind::Deferred | ProviderEventKind::Bounced(_) => details
            .reason(reply)
            .smtp_code(reply, item.text(&["status"])),
        ProviderEventKind::Dropped => details.reason(reply),
        ProviderEventKind::Opened { .. } | ProviderEventKind::Clicked { .. } => details
            .url(item.text(&["url"]))
            .user_agent(item.text(&["useragent"])),
        ProviderEventKind::Sent
        | ProviderEventKind::Complained
        | ProviderEventKind::Unsubscribed => details,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn now() -> Timestamp {
        DateTime::from_timestamp(1_795_262_400, 0).unwrap()
    }

    fn kind(mut event: Value) -> Result<ProviderEventKind, NoEvent> {
        event["sg_event_id"] = json!("id");
        read_event(&event.to_string(), now()).map(|event| event.kind)
    }

    #[test]
    fn every_event_maps_to_its_kind() {
        use BounceType::{Block, Hard, Soft};
        use ProviderEventKind::*;
        let bounced = |kind: Value| json!({ "event": "bounce", "type": kind });
        let bounced_by = |status: &str, class: &str| {
            json!({
                "event": "bounce", "type": "bounce",
                "status": status, "bounce_classification": class,
            })
        };
        for (event, expected) in [
            (json!({ "event": "processed" }), Ok(Sent)),
            (json!({ "event": "delivered" }), Ok(Delivered)),
            (json!({ "event": "deferred" }), Ok(Deferred)),
            (
                json!({ "event": "bounce", "type": "bounce" }),
                Ok(Bounced(Hard)),
            ),
            (
                json!({ "event": "bounce", "type": "blocked" }),
                Ok(Bounced(Block)),
            ),
            (json!({ "event": "bounce" }), Ok(Bounced(Hard))),
            (bounced(json!("expired")), Ok(Bounced(Soft))),
            (bounced(json!("something new")), Ok(Bounced(Soft))),
            (bounced(json!("Bounce")), Ok(Bounced(Soft))),
            (bounced(json!("")), Ok(Bounced(Hard))),
            (bounced(json!(null)), Ok(Bounced(Hard))),
            (bounced_by("5.1.1", "Invalid Address"), Ok(Bounced(Hard))),
            (bounced_by("5.0.0", "Unclassified"), Ok(Bounced(Hard))),
            (bounced_by("5.7.1", "Unclassified"), Ok(Bounced(Block))),
            (bounced_by("5.0.0", "Reputation"), Ok(Bounced(Block))),
            (bounced_by("5.0.0", "Content"), Ok(Bounced(Block))),
            (
                bounced_by("5.2.2", "Mailbox Unavailable"),
                Ok(Bounced(Soft)),
            ),
            (json!({ "event": "dropped" }), Ok(Dropped)),
            (json!({ "event": "open" }), Ok(Opened { is_bot: false })),
            (
                json!({ "event": "open", "sg_machine_open": true }),
                Ok(Opened { is_bot: true }),
            ),
            (json!({ "event": "click" }), Ok(Clicked { is_bot: false })),
            (
                json!({ "event": "click", "useragent": "xbot" }),
                Ok(Clicked { is_bot: true }),
            ),
            (json!({ "event": "spamreport" }), Ok(Complained)),
            (json!({ "event": "unsubscribe" }), Ok(Unsubscribed)),
            (json!({ "event": "group_unsubscribe" }), Ok(Unsubscribed)),
            (
                json!({ "event": "group_resubscribe" }),
                Err(NoEvent::Skipped),
            ),
            (
                json!({ "event": "account_status_change" }),
                Err(NoEvent::Skipped),
            ),
            (json!({ "event": 7 }), Err(NoEvent::Unreadable)),
            (json!({}), Err(NoEvent::Unreadable)),
        ] {
            assert_eq!(kind(event.clone()), expected, "{event}");
        }
    }

    #[test]
    fn all_fields_of_an_event_are_read() {
        let raw = json!({
            "email": "Ada@Example.com",
            "timestamp": 1_600_000_000,
            "event": "bounce",
            "sg_event_id": "e1",
            "sg_message_id": "abc.filter0001.1-1",
            "reason": "550 no such user ada@example.com",
            "status": "5.1.1",
            "waypost_message": "01934c6e-5c00-7000-8000-000000000001",
            "waypost_recipient": "3",
            "waypost_attempt": "01934c6e-5c00-7000-8000-000000000002",
        });
        let raw = raw.to_string();
        let event = read_event(&raw, now()).unwrap();
        assert_eq!(event.id, "e1");
        assert_eq!(event.occurred_at.timestamp(), 1_600_000_000);
        assert_eq!(event.ids.unwrap().position, Some(3));
        assert_eq!(event.provider_message_id.as_deref(), Some("abc"));
        assert_eq!(event.recipient.unwrap().as_str(), "Ada@example.com");
        assert_eq!(
            Value::Object(event.details),
            json!({ "reason": "550 no such user <address>", "smtpCode": "550" })
        );
        assert_eq!(event.raw, raw.as_bytes());
    }

    #[test]
    fn one_bad_item_does_not_affect_the_others() {
        let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
        let body = format!(
            "\u{feff}[{{\"event\":\"open\"}}, 7, null, {deep}, {{\"event\":\"new\"}}, \
             {{\"event\":\"click\"}}]\r\n"
        );
        let received = read(body.as_bytes(), now()).unwrap();
        let kinds: Vec<ProviderEventKind> = received.events.iter().map(|e| e.kind).collect();
        let is_bot = false;
        assert_eq!(
            kinds,
            [
                ProviderEventKind::Opened { is_bot },
                ProviderEventKind::Clicked { is_bot }
            ]
        );
        assert_eq!((received.skipped, received.unreadable), (1, 3));
        // An event without an id is identified by its content.
        assert_ne!(received.events[0].id, received.events[1].id);
        for not_an_array in ["", "{}", "[", "null", "[1] [2]"] {
            let refused = read(not_an_array.as_bytes(), now()).unwrap_err();
            assert!(
                matches!(refused, InboundRefusal::Malformed { .. }),
                "{not_an_array}"
            );
        }
        assert_eq!(read(b"[]", now()).unwrap().events.len(), 0);
    }
}
