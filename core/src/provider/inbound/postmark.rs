//! Postmark's webhooks. Sources: ActiveCampaign/postmark-skills (postmark-webhooks),
//! ActiveCampaign/postmark.js (models/webhooks/payload), and django-anymail's list
//! of bounce types.
//!
//! Postmark signs nothing: a user name and password that Waypost generated come as HTTP
//! Basic. One post holds one event. Deliveries, opens, clicks and subscription changes have
//! no id; one is derived from the fields that identify the event.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::AUTHORIZATION;
use secrecy::zeroize::Zeroizing;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::bounce_type;
use super::item::{Details, EventDetails, Item, NoEvent, correlation_ids, is_machine, message_id};
use super::{Inbound, InboundRefusal, Received, header, lossy};
use crate::clock::Timestamp;
use crate::provider::event::{BounceType, ProviderEvent, ProviderEventKind};
use crate::secret::{ExposeSecret, Secret};

/// Verifies the account's user name and password. Their digests are compared in constant
/// time, so the duration reveals neither the first difference nor a length.
pub(super) fn verify(
    username: &str,
    password: &Secret,
    inbound: &Inbound<'_>,
) -> Result<(), InboundRefusal> {
    let authorization = header(inbound.headers, AUTHORIZATION.as_str());
    let given = authorization
        .and_then(|text| text.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"))
        .and_then(|(_, pair)| BASE64.decode(pair.trim()).ok())
        .map(Zeroizing::new)
        .ok_or(InboundRefusal::unverified(
            "it carries no user name and password",
        ))?;
    let expected = Zeroizing::new(format!("{username}:{}", password.expose_secret()));
    let (given, expected) = (Sha256::digest(&*given), Sha256::digest(expected.as_bytes()));
    verify_slices_are_equal(&given, &expected)
        .map_err(|_| InboundRefusal::unverified("the user name or the password is wrong"))
}

/// Reads the event of a post.
pub(super) fn read(body: &[u8], now: Timestamp) -> Result<Received, InboundRefusal> {
    let not_an_event = InboundRefusal::Malformed {
        why: "it is not a JSON object with a RecordType",
    };
    let event = read_event(&lossy::document(body), now);
    if event.as_ref().err() == Some(&NoEvent::Unreadable) {
        return Err(not_an_event);
    }
    let mut received = Received::default();
    received.add(event.map(Some));
    Ok(received)
}

/// The fields that hold the address and the time, and those that identify the event.
struct PostmarkEventShape {
    address: &'static str,
    time: &'static str,
    identity: &'static [&'static str],
}

const BOUNCE: PostmarkEventShape = PostmarkEventShape {
    address: "Email",
    time: "BouncedAt",
    identity: &["Type", "ID"],
};
const DELIVERY: PostmarkEventShape = PostmarkEventShape {
    address: "Recipient",
    time: "DeliveredAt",
    identity: &["MessageID", "Recipient"],
};
const OPEN: PostmarkEventShape = PostmarkEventShape {
    address: "Recipient",
    time: "ReceivedAt",
    identity: &["MessageID", "Recipient", "ReceivedAt"],
};
const CLICK: PostmarkEventShape = PostmarkEventShape {
    identity: &["MessageID", "Recipient", "ReceivedAt", "OriginalLink"],
    ..OPEN
};
const CHANGE: PostmarkEventShape = PostmarkEventShape {
    address: "Recipient",
    time: "ChangedAt",
    identity: &["MessageID", "Recipient", "ChangedAt"],
};

fn read_event(raw: &str, now: Timestamp) -> Result<ProviderEvent, NoEvent> {
    let item = Item::parse(raw, now)?;
    let record_type = item.text(&["RecordType"]).ok_or(NoEvent::Unreadable)?;
    let is_bot = is_machine(item.text(&["UserAgent"]));
    let (kind, shape) = match record_type {
        "Delivery" => (ProviderEventKind::Delivered, DELIVERY),
        "Bounce" => (bounce(&item)?, BOUNCE),
        "SpamComplaint" => (ProviderEventKind::Complained, BOUNCE),
        "Open" => (ProviderEventKind::Opened { is_bot }, OPEN),
        "Click" => (ProviderEventKind::Clicked { is_bot }, CLICK),
        "SubscriptionChange" => (subscription_change(&item)?, CHANGE),
        _ => return Err(NoEvent::Skipped),
    };
    let parts = shape.identity.iter().map(|name| item.at(&[name]));
    let parts: Vec<&Value> = parts.collect();
    // If a part is missing, the whole content identifies the event.
    let id = if parts.iter().any(|part| part.is_null()) {
        item.content_id(record_type)
    } else {
        let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        Item::derived_id(record_type, &parts)
    };
    Ok(item.event(EventDetails {
        id,
        kind,
        occurred_at: item.date(&[shape.time]),
        ids: correlation_ids(|name| item.at(&["Metadata", name])),
        provider_message_id: message_id(item.text(&["MessageID"])),
        recipient: item.address(&[shape.address]),
        details: details(&item, kind),
    }))
}

/// By `Type`, not `TypeCode`: the samples give one code to two types.
fn bounce(item: &Item<'_>) -> Result<ProviderEventKind, NoEvent> {
    Ok(match item.text(&["Type"]).ok_or(NoEvent::Unreadable)? {
        // Postmark documents it as "unknown user, mailbox not found".
        "HardBounce" => {
            ProviderEventKind::Bounced(bounce_type::classify(true, None, item.text(&["Details"])))
        }
        "BadEmailAddress" => ProviderEventKind::Bounced(BounceType::Hard),
        "SoftBounce" | "Unknown" => ProviderEventKind::Bounced(BounceType::Soft),
        "Transient" | "DnsError" => ProviderEventKind::Deferred,
        "Blocked" | "SpamNotification" | "DMARCPolicy" | "VirusNotification" => {
            ProviderEventKind::Bounced(BounceType::Block)
        }
        "ManuallyDeactivated" | "Unconfirmed" | "SMTPApiError" | "TemplateRenderingFailed" => {
            ProviderEventKind::Dropped
        }
        "Unsubscribe" => ProviderEventKind::Unsubscribed,
        // AutoResponder, AddressChange, ChallengeVerification, OpenRelayTest and
        // Subscribe say nothing about the delivery.
        _ => return Err(NoEvent::Skipped),
    })
}

/// Only a manual suppression counts. Other reasons repeat an event that Postmark reports
/// separately, and a reactivated address is not unsubscribed.
fn subscription_change(item: &Item<'_>) -> Result<ProviderEventKind, NoEvent> {
    let is_stopped = *item.at(&["SuppressSending"]) == true;
    let is_manual = item.text(&["SuppressionReason"]) == Some("ManualSuppression");
    if is_stopped && is_manual {
        Ok(ProviderEventKind::Unsubscribed)
    } else {
        Err(NoEvent::Skipped)
    }
}

fn details(item: &Item<'_>, kind: ProviderEventKind) -> Details {
    let reply = item.text(&["Details"]);
    let details = Details::default();
    match kind {
        ProviderEventKind::Delivered => details.smtp_code(reply, None),
        ProviderEventKind::Deferred | ProviderEventKind::Bounced(_) => details
            .reason(reply.or_else(|| item.text(&["Description"])))
            .smtp_code(reply, None),
        ProviderEventKind::Dropped => details.reason(item.text(&["Description"]).or(reply)),
        ProviderEventKind::Opened { .. } | ProviderEventKind::Clicked { .. } => details
            .url(item.text(&["OriginalLink"]))
            .user_agent(item.text(&["UserAgent"])),
        ProviderEventKind::Sent
        | ProviderEventKind::Complained
        | ProviderEventKind::Unsubscribed => details,
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        DateTime::from_timestamp(1_795_262_400, 0).unwrap()
    }

    fn event(event: &Value) -> Result<ProviderEvent, NoEvent> {
        read_event(&event.to_string(), now())
    }

    #[test]
    fn every_record_type_maps_to_its_kind() {
        use ProviderEventKind::*;
        let of = |name: &str| json!({ "RecordType": name });
        let change = |stopped: bool, reason: &str| {
            json!({
                "RecordType": "SubscriptionChange",
                "SuppressSending": stopped,
                "SuppressionReason": reason,
            })
        };
        for (record, expected) in [
            (of("Delivery"), Ok(Delivered)),
            (of("SpamComplaint"), Ok(Complained)),
            (of("Open"), Ok(Opened { is_bot: false })),
            (of("Click"), Ok(Clicked { is_bot: false })),
            (of("Inbound"), Err(NoEvent::Skipped)),
            (of("Bounce"), Err(NoEvent::Unreadable)),
            (change(true, "ManualSuppression"), Ok(Unsubscribed)),
            (change(false, "ManualSuppression"), Err(NoEvent::Skipped)),
            (change(true, "HardBounce"), Err(NoEvent::Skipped)),
            (change(true, "SpamComplaint"), Err(NoEvent::Skipped)),
            (json!({}), Err(NoEvent::Unreadable)),
        ] {
            let kinds = event(&record).map(|event| event.kind);
            assert_eq!(kinds, expected, "{record}");
        }
    }

    #[test]
    fn every_bounce_type_maps_to_its_kind() {
        use BounceType::{Block, Hard, Soft};
        use ProviderEventKind::*;
        for (types, expected) in [
            (&["HardBounce", "BadEmailAddress"][..], Ok(Bounced(Hard))),
            (&["SoftBounce", "Unknown"], Ok(Bounced(Soft))),
            (&["Transient", "DnsError"], Ok(Deferred)),
            (
                &[
                    "Blocked",
                    "SpamNotification",
                    "DMARCPolicy",
                    "VirusNotification",
                ],
                Ok(Bounced(Block)),
            ),
            (
                &[
                    "ManuallyDeactivated",
                    "Unconfirmed",
                    "SMTPApiError",
                    "TemplateRenderingFailed",
                ],
                Ok(Dropped),
            ),
            (&["Unsubscribe"], Ok(Unsubscribed)),
            (
                &[
                    "AutoResponder",
                    "AddressChange",
                    "ChallengeVerification",
                    "OpenRelayTest",
                ],
                Err(NoEvent::Skipped),
            ),
            (&["Subscribe", "SomethingNew"], Err(NoEvent::Skipped)),
        ] {
            for bounce_type in types {
                let record = json!({ "RecordType": "Bounce", "ID": 1, "Type": bounce_type });
                let kinds = event(&record).map(|event| event.kind);
                assert_eq!(kinds, expected, "{bounce_type}");
            }
        }
    }

    #[test]
    fn a_hard_bounce_about_the_mail_is_a_block() {
        use BounceType::{Block, Hard, Soft};
        for (reply, expected) in [
            ("smtp;550 5.1.1 The email account does not exist.", Hard),
            ("smtp;550 no such user", Hard),
            ("", Hard),
            ("smtp;554 5.7.1 Message blocked", Block),
            ("smtp;554 listed at Spamhaus", Block),
            ("smtp;552 5.2.2 mailbox full", Soft),
        ] {
            let record = json!({
                "RecordType": "Bounce", "ID": 1, "Type": "HardBounce", "Details": reply,
            });
            let kinds = event(&record).map(|event| event.kind);
            assert_eq!(kinds, Ok(ProviderEventKind::Bounced(expected)), "{reply}");
        }
    }

    #[test]
    fn a_repeated_event_has_the_same_id_and_another_event_has_not() {
        let open = |message: &str, at: &str| {
            json!({
                "RecordType": "Open", "MessageID": message, "Recipient": "ada@example.com",
                "ReceivedAt": at, "ReadSeconds": 5,
            })
        };
        let bounce = |id: i64, bounce_type: &str| json!({ "RecordType": "Bounce", "ID": id, "Type": bounce_type });
        let told = |record_type: &str, to: &str| json!({ "RecordType": record_type, "MessageID": "m", "Recipient": to });
        let mut all = vec![
            open("m", "2026-11-21T00:00:00Z"),
            open("m", "2026-11-21T00:00:01Z"),
            open("n", "2026-11-21T00:00:00Z"),
            bounce(1, "HardBounce"),
            bounce(2, "HardBounce"),
            bounce(1, "Transient"),
            json!({ "RecordType": "SpamComplaint", "ID": 1, "Type": "SpamComplaint" }),
            told("Delivery", "ada@example.com"),
            told("Delivery", "bob@example.com"),
            told("Click", "ada@example.com"),
        ];
        all.push(told("Click", "ada@example.com"));
        all.last_mut().unwrap()["OriginalLink"] = json!("https://example.com");
        let ids = |records: &[Value]| -> Vec<String> {
            records
                .iter()
                .map(|record| event(record).unwrap().id)
                .collect()
        };
        let first = ids(&all);
        assert_eq!(first, ids(&all));
        let distinct: std::collections::HashSet<&String> = first.iter().collect();
        assert_eq!(distinct.len(), all.len());
        assert!(first.iter().all(|id| !id.contains("ada")));
    }

    #[test]
    fn all_fields_of_an_event_are_read() {
        let bounced = json!({
            "RecordType": "Bounce",
            "ID": 42,
            "Type": "HardBounce",
            "MessageID": "883953f4-6105-42a2-a16a-77a8eac79483",
            "Email": "john@example.com",
            "BouncedAt": "2025-04-05T16:33:54.9070259Z",
            "Description": "unable to deliver",
            "Details": "smtp;550 5.1.1 The email account does not exist.",
            "Metadata": {
                "waypost_message": "01934c6e-5c00-7000-8000-000000000001",
                "waypost_recipient": "0",
                "waypost_attempt": "01934c6e-5c00-7000-8000-000000000002",
            },
        });
        let event = event(&bounced).unwrap();
        assert_eq!(event.occurred_at.timestamp_micros(), 1_743_870_834_907_025);
        assert_eq!(event.ids.unwrap().position, Some(0));
        let message = event.provider_message_id.unwrap();
        assert_eq!(message, "883953f4-6105-42a2-a16a-77a8eac79483");
        assert_eq!(event.recipient.unwrap().as_str(), "john@example.com");
        let reason = "smtp;550 5.1.1 The email account does not exist.";
        assert_eq!(
            Value::Object(event.details),
            json!({ "reason": reason, "smtpCode": "550" })
        );
    }
}
