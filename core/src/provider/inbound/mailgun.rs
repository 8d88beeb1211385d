//! Mailgun's webhooks. Sources: mailgun/documentation (user_manual.rst,
//! api-events.rst), mailgun/mailgun-go (webhooks.go, events/enums.go) for the
//! signature and the names of reasons, and django-anymail for the codes of 6xx.
//!
//! The signature is in the body and covers a time and a token, *not* the event: an
//! attacker who has seen one could put it before another event. So the caller gets the
//! token with a hash of the content ([`ReplayGuard`]). One post holds one event. Form
//! posts, as before 2018, carry no such signature and are refused.

use std::borrow::Cow;

use chrono::{DateTime, TimeDelta};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::Sha256;

use super::bounce_type;
use super::item::{
    Details, EventDetails, Item, NoEvent, correlation_ids, is_machine, message_id, parse_address,
};
use super::{Inbound, InboundRefusal, Received, ReplayGuard, lossy, require_recent};
use crate::clock::Timestamp;
use crate::idempotency::fingerprint;
use crate::provider::event::{BounceType, ProviderEvent, ProviderEventKind};
use crate::secret::{ExposeSecret, Secret};

/// The oldest signature accepted. Mailgun repeats a post for about 8 h and does not say
/// whether it signs each try anew. Tokens are stored for this long.
const AGE_MAX: TimeDelta = TimeDelta::hours(12);
/// The longest token accepted, in bytes; Mailgun's have 50.
const TOKEN_BYTES_MAX: usize = 128;

/// A post with the raw text of its event.
#[derive(Deserialize)]
struct Post<'a> {
    signature: Signature<'a>,
    #[serde(rename = "event-data", borrow)]
    event_data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Signature<'a> {
    /// Unix seconds: a string in what Mailgun sends, a number in some samples.
    timestamp: Value,
    #[serde(borrow)]
    token: Cow<'a, str>,
    #[serde(borrow)]
    signature: Cow<'a, str>,
}

impl Signature<'_> {
    fn timestamp(&self) -> String {
        let text = self.timestamp.as_str().map(str::to_owned);
        text.unwrap_or_else(|| self.timestamp.to_string())
    }

    fn signed_at(&self) -> Option<Timestamp> {
        DateTime::from_timestamp(self.timestamp().parse().ok()?, 0)
    }
}

fn post(document: &str) -> Option<Post<'_>> {
    serde_json::from_str(document).ok()
}

/// Verifies the signature over time and token with the account's key.
pub(super) fn verify(signing_key: &Secret, inbound: &Inbound<'_>) -> Result<(), InboundRefusal> {
    // The signature covers a time and a token only, so the content may be repaired.
    let document = lossy::document(inbound.body);
    let signature = post(&document).map(|post| post.signature);
    let signature = signature.ok_or(InboundRefusal::unverified("it holds no signature"))?;
    let token = signature.token.as_bytes();
    if !(1..=TOKEN_BYTES_MAX).contains(&token.len()) || !token.iter().all(u8::is_ascii_graphic) {
        return Err(InboundRefusal::unverified(
            "its token is not one of Mailgun's",
        ));
    }
    let key = signing_key.expose_secret().as_bytes();
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(signature.timestamp().as_bytes());
    mac.update(token);
    hex::decode(signature.signature.as_bytes())
        .ok()
        .filter(|given| mac.verify_slice(given).is_ok())
        .ok_or(InboundRefusal::unverified(
            "the signature is not the account's",
        ))?;
    require_recent(signature.signed_at(), inbound.now, AGE_MAX).map(|_| ())
}

/// Reads the event of a post.
pub(super) fn read(body: &[u8], now: Timestamp) -> Result<Received, InboundRefusal> {
    let not_an_event = InboundRefusal::Malformed {
        why: "its event-data is not an event",
    };
    let document = lossy::document(body);
    let post = post(&document).ok_or(not_an_event.clone())?;
    let item = post.event_data.ok_or(not_an_event.clone())?;
    let item = Item::parse(item.get(), now).map_err(|_| not_an_event)?;
    let signed_at = post.signature.signed_at().unwrap_or(now);
    let mut received = Received {
        replay_guard: Some(ReplayGuard {
            content: fingerprint::of(item.at(&[])).0,
            until: signed_at.checked_add_signed(AGE_MAX).unwrap_or(now),
            token: post.signature.token.into_owned(),
        }),
        ..Received::default()
    };
    received.add(read_event(&item).map(Some));
    Ok(received)
}

fn read_event(item: &Item<'_>) -> Result<ProviderEvent, NoEvent> {
    let event = item.text(&["event"]).ok_or(NoEvent::Unreadable)?;
    let is_bot = item.text(&["client-info", "bot"]).is_some()
        || is_machine(item.text(&["client-info", "user-agent"]));
    let kind = match event {
        "accepted" => ProviderEventKind::Sent,
        "rejected" => ProviderEventKind::Dropped,
        "delivered" => ProviderEventKind::Delivered,
        "failed" => failure(item)?,
        "opened" => ProviderEventKind::Opened { is_bot },
        "clicked" => ProviderEventKind::Clicked { is_bot },
        "unsubscribed" => ProviderEventKind::Unsubscribed,
        "complained" => ProviderEventKind::Complained,
        // stored, list_…, email_validation.
        _ => return Err(NoEvent::Skipped),
    };
    // A rejected mail names its recipient in the header only.
    let recipient = item.text(&["recipient"]);
    let recipient = recipient.or_else(|| item.text(&["message", "headers", "to"]));
    let message = item.text(&["message", "headers", "message-id"]);
    let message = message.map(|id| id.trim_start_matches('<').trim_end_matches('>'));
    Ok(item.event(EventDetails {
        id: event_id(item, event),
        kind,
        occurred_at: item.seconds(&["timestamp"]),
        ids: correlation_ids(|name| item.at(&["user-variables", name])),
        provider_message_id: message_id(message),
        recipient: recipient.and_then(parse_address),
        details: details(item, kind),
    }))
}

/// Mailgun's id is unique within a day only, so the time is part of it.
fn event_id(item: &Item<'_>, event: &str) -> String {
    match item.text(&["id"]) {
        Some(id) => super::item::event_id(&format!("{id}@{}", item.at(&["timestamp"]))),
        None => item.content_id(event),
    }
}

/// The kind of a failure, by `severity`, `reason` and the code. Codes from 605 on are
/// Mailgun's own: it did not try to send.
fn failure(item: &Item<'_>) -> Result<ProviderEventKind, NoEvent> {
    let code = item.at(&["delivery-status", "code"]).as_i64();
    let is_delayed = *item.at(&["flags", "is-delayed-bounce"]) == true;
    match item.text(&["severity"]).ok_or(NoEvent::Unreadable)? {
        "temporary" => return Ok(ProviderEventKind::Deferred),
        "permanent" => {}
        _ => return Err(NoEvent::Skipped),
    }
    Ok(match (item.text(&["reason"]), code) {
        (Some("suppress-bounce" | "suppress-unsubscribe" | "suppress-complaint"), _)
        | (_, Some(605..=607)) => ProviderEventKind::Dropped,
        (Some("espblock" | "blacklisted"), _) => ProviderEventKind::Bounced(BounceType::Block),
        (Some("old"), _) => ProviderEventKind::Bounced(BounceType::Soft),
        (_, Some(400..=499)) if !is_delayed => ProviderEventKind::Bounced(BounceType::Soft),
        (reason, _) => {
            let status = |name: &str| item.text(&["delivery-status", name]);
            let enhanced = status("enhanced-code").or_else(|| status("bounce-code"));
            let reply = status("message").or_else(|| status("description"));
            // Other reasons (generic, hardfail, unknown) say nothing about the address.
            let is_labelled = reason == Some("bounce");
            ProviderEventKind::Bounced(bounce_type::classify(is_labelled, enhanced, reply))
        }
    })
}

fn details(item: &Item<'_>, kind: ProviderEventKind) -> Details {
    let status = |name: &str| item.text(&["delivery-status", name]);
    let code = item.at(&["delivery-status", "code"]).as_i64();
    let code = code.map(|code| code.to_string());
    let enhanced = status("enhanced-code").or_else(|| status("bounce-code"));
    let why = status("message")
        .or_else(|| status("description"))
        .or_else(|| item.text(&["reject", "reason"]))
        .or_else(|| item.text(&["reason"]));
    let details = Details::default();
    match kind {
        ProviderEventKind::Delivered => details.smtp_code(code.as_deref(), enhanced),
        ProviderEventKind::Deferred | ProviderEventKind::Bounced(_) => {
            details.reason(why).smtp_code(code.as_deref(), enhanced)
        }
        ProviderEventKind::Dropped => details.reason(why),
        ProviderEventKind::Opened { .. } | ProviderEventKind::Clicked { .. } => details
            .url(item.text(&["url"]))
            .user_agent(item.text(&["client-info", "user-agent"])),
        ProviderEventKind::Sent
        | ProviderEventKind::Complained
        | ProviderEventKind::Unsubscribed => details,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        DateTime::from_timestamp(1_795_262_400, 0).unwrap()
    }

    fn event(data: &Value) -> Result<ProviderEvent, NoEvent> {
        read_event(&Item::parse(&data.to_string(), now()).unwrap())
    }

    #[test]
    fn every_event_maps_to_its_kind() {
        use ProviderEventKind::*;
        let of = |name: &str| json!({ "event": name });
        let opened_by = |info: Value| json!({ "event": "opened", "client-info": info });
        for (data, expected) in [
            (of("accepted"), Ok(Sent)),
            (of("rejected"), Ok(Dropped)),
            (of("delivered"), Ok(Delivered)),
            (of("opened"), Ok(Opened { is_bot: false })),
            (
                opened_by(json!({ "bot": "" })),
                Ok(Opened { is_bot: false }),
            ),
            (
                opened_by(json!({ "bot": "apple" })),
                Ok(Opened { is_bot: true }),
            ),
            (
                opened_by(json!({ "user-agent": "bingbot" })),
                Ok(Opened { is_bot: true }),
            ),
            (of("clicked"), Ok(Clicked { is_bot: false })),
            (of("unsubscribed"), Ok(Unsubscribed)),
            (of("complained"), Ok(Complained)),
            (of("stored"), Err(NoEvent::Skipped)),
            (of("list_uploaded"), Err(NoEvent::Skipped)),
            (of("email_validation"), Err(NoEvent::Skipped)),
            (of("failed"), Err(NoEvent::Unreadable)),
            (json!({}), Err(NoEvent::Unreadable)),
        ] {
            let kinds = event(&data).map(|event| event.kind);
            assert_eq!(kinds, expected, "{data}");
        }
    }

    #[test]
    fn every_failure_maps_to_its_kind() {
        use BounceType::{Block, Hard, Soft};
        use ProviderEventKind::*;
        for (severity, reason, code, is_delayed, expected) in [
            ("temporary", "generic", 452, false, Ok(Deferred)),
            ("temporary", "espblock", 421, false, Ok(Deferred)),
            ("permanent", "bounce", 550, false, Ok(Bounced(Hard))),
            ("permanent", "hardfail", 550, false, Ok(Bounced(Block))),
            ("permanent", "generic", 550, false, Ok(Bounced(Block))),
            ("permanent", "unknown", 0, false, Ok(Bounced(Block))),
            ("permanent", "something-new", 550, false, Ok(Bounced(Block))),
            ("permanent", "generic", 452, false, Ok(Bounced(Soft))),
            ("permanent", "bounce", 452, true, Ok(Bounced(Hard))),
            ("permanent", "generic", 452, true, Ok(Bounced(Block))),
            ("permanent", "generic", 550, true, Ok(Bounced(Block))),
            ("permanent", "old", 602, false, Ok(Bounced(Soft))),
            ("permanent", "espblock", 554, false, Ok(Bounced(Block))),
            ("permanent", "blacklisted", 554, false, Ok(Bounced(Block))),
            ("permanent", "suppress-bounce", 605, false, Ok(Dropped)),
            ("permanent", "suppress-unsubscribe", 606, false, Ok(Dropped)),
            ("permanent", "suppress-complaint", 607, false, Ok(Dropped)),
            ("permanent", "suppress-bounce", 550, false, Ok(Dropped)),
            ("permanent", "unknown", 605, false, Ok(Dropped)),
            ("later", "generic", 550, false, Err(NoEvent::Skipped)),
        ] {
            let data = json!({
                "event": "failed",
                "severity": severity,
                "reason": reason,
                "delivery-status": { "code": code },
                "flags": { "is-delayed-bounce": is_delayed },
            });
            let kinds = event(&data).map(|event| event.kind);
            assert_eq!(kinds, expected, "{data}");
        }
    }

    #[test]
    fn a_permanent_failure_is_hard_if_the_address_is_the_reason() {
        use BounceType::{Block, Hard, Soft};
        for (reason, enhanced, message, expected) in [
            ("generic", "", "554 blocked using Spamhaus", Block),
            ("generic", "5.7.1", "550 5.7.1 refused", Block),
            ("generic", "", "550 5.7.1 refused", Block),
            ("generic", "", "550 rejected", Block),
            ("generic", "5.1.1", "550 unknown user", Hard),
            ("generic", "", "550 5.1.1 unknown user", Hard),
            ("hardfail", "5.1.2", "", Hard),
            ("unknown", "5.2.2", "552 mailbox full", Soft),
            ("bounce", "", "No Such User", Hard),
            ("bounce", "5.7.1", "", Block),
            ("bounce", "", "550 poor reputation", Block),
        ] {
            let data = json!({
                "event": "failed",
                "severity": "permanent",
                "reason": reason,
                "delivery-status": { "code": 550, "enhanced-code": enhanced, "message": message },
            });
            let kinds = event(&data).unwrap().kind;
            assert_eq!(kinds, ProviderEventKind::Bounced(expected), "{data}");
        }
    }

    #[test]
    fn all_fields_of_an_event_are_read() {
        let data = json!({
            "id": "G9Bn5sl1TC6nu79C8C0bwg",
            "timestamp": 1_521_233_195.375_624,
            "event": "failed",
            "severity": "permanent",
            "reason": "bounce",
            "delivery-status": { "message": "No Such User", "code": 550, "enhanced-code": "" },
            "message": { "headers": { "message-id": "2013.1@app.example" } },
            "recipient": "alice@example.com",
            "user-variables": {
                "waypost_message": "01934c6e-5c00-7000-8000-000000000001",
                "waypost_recipient": 5,
                "waypost_attempt": "01934c6e-5c00-7000-8000-000000000002",
            },
        });
        let failed = event(&data).unwrap();
        assert_eq!(failed.id, "G9Bn5sl1TC6nu79C8C0bwg@1521233195.375624");
        assert_eq!(failed.occurred_at.timestamp_micros(), 1_521_233_195_375_624);
        assert_eq!(failed.ids.unwrap().position, Some(5));
        assert_eq!(
            failed.provider_message_id.as_deref(),
            Some("2013.1@app.example")
        );
        assert_eq!(failed.recipient.unwrap().as_str(), "alice@example.com");
        assert_eq!(
            Value::Object(failed.details),
            json!({ "reason": "No Such User", "smtpCode": "550" })
        );
        let rejected = event(&json!({
            "event": "rejected",
            "reject": { "reason": "Sandbox" },
            "message": { "headers": { "to": "Joan <joan@example.org>", "message-id": "<m@x>" } },
        }));
        let rejected = rejected.unwrap();
        assert_eq!(rejected.recipient.unwrap().as_str(), "joan@example.org");
        assert_eq!(rejected.provider_message_id.as_deref(), Some("m@x"));
        assert_eq!(rejected.details["reason"], "Sandbox");
    }

    #[test]
    fn a_genuine_signature_without_an_event_is_unreadable() {
        let signed = json!({ "timestamp": "1795262400", "token": "t", "signature": "00" });
        for data in [json!(null), json!(7), json!([]), json!("x")] {
            let body = json!({ "signature": signed, "event-data": data }).to_string();
            let refused = read(body.as_bytes(), now()).unwrap_err();
            assert!(
                matches!(refused, InboundRefusal::Malformed { .. }),
                "{body}"
            );
        }
        let body = json!({ "signature": signed, "event-data": {} }).to_string();
        let received = read(body.as_bytes(), now()).unwrap();
        assert_eq!((received.events.len(), received.unreadable), (0, 1));
    }
}
