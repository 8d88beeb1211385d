//! The events of Amazon SES, carried by SNS. Sources: the Amazon SES developer guide
//! (event-publishing-retrieving-sns-contents.md, notification-contents.md).
//!
//! There are two forms: *event publishing* (`eventType`; a configuration set publishes it
//! and returns our ids as tags) and *identity notifications* (`notificationType`; only
//! bounces, complaints and deliveries, without tags). Both are read. If both are enabled, a
//! bounce or complaint has the same feedback id in both and is recorded once.
//!
//! One notification may be about several recipients: each gets an event.

use serde_json::Value;

use super::bounce_type;
use super::item::{
    Details, EventDetails, Item, NoEvent, correlation_ids, is_machine, message_id, non_empty,
    parse_address,
};
use crate::clock::Timestamp;
use crate::provider::event::{BounceType, ProviderEvent, ProviderEventKind};

/// The most recipients of one mail (SES developer guide, quotas.md).
const RECIPIENTS_MAX: usize = 50;

/// The kind of an event, and where its fields are.
struct SesEventShape {
    kind: ProviderEventKind,
    /// The object with the fields of this type.
    part: &'static str,
    /// The list of recipients; the mail's destination if `None`.
    recipients: Option<&'static str>,
}

/// Reads a message that SNS carried. `sns_id` is the id of its envelope, which stays the
/// same when SNS repeats it.
pub(super) fn read(
    message: &str,
    sns_id: &str,
    now: Timestamp,
) -> Result<Vec<ProviderEvent>, NoEvent> {
    // "Successfully validated SNS topic for Amazon SES event publishing."
    if !message.trim_start().starts_with('{') {
        return Err(NoEvent::Skipped);
    }
    let item = Item::parse(message, now)?;
    let event_type = item.text(&["eventType"]);
    let event_type = event_type.or_else(|| item.text(&["notificationType"]));
    let event_type = event_type.ok_or(NoEvent::Skipped)?;
    let shape = shape(&item, event_type)?;
    let recipients = recipients(&item, &shape);
    // A mail is delivered once, even if both forms of notification report it.
    let is_delivery = shape.kind == ProviderEventKind::Delivered;
    let base = item.text(&[shape.part, "feedbackId"]);
    let base = base.or_else(|| item.text(&["mail", "messageId"]).filter(|_| is_delivery));
    let base = base.unwrap_or(sns_id);
    let events = recipients.into_iter().map(|entry| {
        let address = non_empty(entry).or_else(|| non_empty(&entry["emailAddress"]));
        let is_hard = shape.kind == ProviderEventKind::Bounced(BounceType::Hard);
        let kind = if is_hard {
            hard_bounce(&item, entry)
        } else {
            shape.kind
        };
        item.event(EventDetails {
            id: Item::derived_id(event_type, &[base, address.unwrap_or_default()]),
            kind,
            occurred_at: event_time(&item, &shape),
            ids: correlation_ids(|name| &item.at(&["mail", "tags", name])[0]),
            provider_message_id: message_id(item.text(&["mail", "messageId"])),
            recipient: address.and_then(parse_address),
            details: details(&item, &shape, entry),
        })
    });
    Ok(events.collect())
}

fn shape(item: &Item<'_>, event_type: &str) -> Result<SesEventShape, NoEvent> {
    let is_bot = |part: &str| is_machine(item.text(&[part, "userAgent"]));
    let (kind, part, recipients) = match event_type {
        "Send" => (ProviderEventKind::Sent, "send", None),
        "Delivery" => (ProviderEventKind::Delivered, "delivery", Some("recipients")),
        "DeliveryDelay" => (
            ProviderEventKind::Deferred,
            "deliveryDelay",
            Some("delayedRecipients"),
        ),
        "Bounce" => (bounce(item)?, "bounce", Some("bouncedRecipients")),
        "Complaint" => (complaint(item)?, "complaint", Some("complainedRecipients")),
        "Reject" => (ProviderEventKind::Dropped, "reject", None),
        "Rendering Failure" => (ProviderEventKind::Dropped, "failure", None),
        "Open" => (
            ProviderEventKind::Opened {
                is_bot: is_bot("open"),
            },
            "open",
            None,
        ),
        "Click" => (
            ProviderEventKind::Clicked {
                is_bot: is_bot("click"),
            },
            "click",
            None,
        ),
        "Subscription" => (subscription(item)?, "subscription", None),
        _ => return Err(NoEvent::Skipped),
    };
    Ok(SesEventShape {
        kind,
        part,
        recipients,
    })
}

/// An automatic reply arrives as a bounce that is Transient and General (AWS, "Understand
/// soft bounces") or Undetermined, without any field of a delivery status report. It is
/// not a bounce.
fn bounce(item: &Item<'_>) -> Result<ProviderEventKind, NoEvent> {
    let bounce_type = item.text(&["bounce", "bounceType"]).unwrap_or_default();
    let sub_type = item.text(&["bounce", "bounceSubType"]).unwrap_or_default();
    let is_doubtful = matches!(
        (bounce_type, sub_type),
        ("Transient", "General") | ("Undetermined", _)
    );
    if is_doubtful && !has_status_report(item) {
        return Err(NoEvent::Skipped);
    }
    Ok(match (bounce_type, sub_type) {
        // The address is on a suppression list of SES; SES did not try to send.
        ("Permanent", "Suppressed" | "OnAccountSuppressionList") => ProviderEventKind::Dropped,
        ("Permanent", _) => ProviderEventKind::Bounced(BounceType::Hard),
        ("Transient", "ContentRejected" | "AttachmentRejected") => {
            ProviderEventKind::Bounced(BounceType::Block)
        }
        // Transient after the last try of SES, and Undetermined.
        _ => ProviderEventKind::Bounced(BounceType::Soft),
    })
}

/// `NoEmail` means that the address does not exist. Every other permanent bounce is
/// `General`, and the server's reply for each recipient may show that it rejected the mail.
fn hard_bounce(item: &Item<'_>, recipient: &Value) -> ProviderEventKind {
    let field = |name: &str| non_empty(&recipient[name]);
    ProviderEventKind::Bounced(match item.text(&["bounce", "bounceSubType"]) {
        Some("NoEmail") => BounceType::Hard,
        Some(_) | None => bounce_type::classify(true, field("status"), field("diagnosticCode")),
    })
}

fn has_status_report(item: &Item<'_>) -> bool {
    let recipients = item.at(&["bounce", "bouncedRecipients"]).as_array();
    let mut recipients = recipients.into_iter().flatten();
    let fields = ["status", "action", "diagnosticCode"];
    recipients.any(|recipient| fields.iter().any(|field| recipient[field].is_string()))
}

fn complaint(item: &Item<'_>) -> Result<ProviderEventKind, NoEvent> {
    if item.text(&["complaint", "complaintSubType"]) == Some("OnAccountSuppressionList") {
        return Ok(ProviderEventKind::Dropped);
    }
    match item.text(&["complaint", "complaintFeedbackType"]) {
        Some("not-spam") => Err(NoEvent::Skipped),
        _ => Ok(ProviderEventKind::Complained),
    }
}

/// A change of preferences is recorded only if it unsubscribes from something.
fn subscription(item: &Item<'_>) -> Result<ProviderEventKind, NoEvent> {
    let preferences = item.at(&["subscription", "newTopicPreferences"]);
    let topics = preferences["topicSubscriptionStatus"].as_array();
    let mut topics = topics.into_iter().flatten();
    let is_out = preferences["unsubscribeAll"] == true
        || topics.any(|topic| topic["subscriptionStatus"] == "OptOut");
    if is_out {
        Ok(ProviderEventKind::Unsubscribed)
    } else {
        Err(NoEvent::Skipped)
    }
}

/// The entries of the recipients. SES does not say which of several recipients opened,
/// followed a link or unsubscribed: the event then names no recipient.
fn recipients<'a>(item: &'a Item<'_>, shape: &SesEventShape) -> Vec<&'a Value> {
    const NO_RECIPIENT: &[&Value] = &[&Value::Null];
    let listed = |value: &'a Value| -> Vec<&'a Value> {
        let entries = value.as_array().into_iter().flatten();
        entries.take(RECIPIENTS_MAX).collect()
    };
    let named = shape.recipients.map(|name| item.at(&[shape.part, name]));
    let named = named.map(listed).unwrap_or_default();
    if !named.is_empty() {
        return named;
    }
    let all = listed(item.at(&["mail", "destination"]));
    let is_of_one = match shape.kind {
        ProviderEventKind::Opened { .. }
        | ProviderEventKind::Clicked { .. }
        | ProviderEventKind::Unsubscribed
        | ProviderEventKind::Complained => true,
        ProviderEventKind::Sent
        | ProviderEventKind::Delivered
        | ProviderEventKind::Deferred
        | ProviderEventKind::Bounced(_)
        | ProviderEventKind::Dropped => false,
    };
    if all.is_empty() || is_of_one && all.len() > 1 {
        return NO_RECIPIENT.to_vec();
    }
    all
}

/// The event's own time, else that of the mail.
fn event_time(item: &Item<'_>, shape: &SesEventShape) -> Timestamp {
    if item.text(&[shape.part, "timestamp"]).is_some() {
        item.date(&[shape.part, "timestamp"])
    } else {
        item.date(&["mail", "timestamp"])
    }
}

fn details(item: &Item<'_>, shape: &SesEventShape, recipient: &Value) -> Details {
    let part = |name: &str| item.text(&[shape.part, name]);
    let diagnostic = non_empty(&recipient["diagnosticCode"]);
    let details = Details::default();
    match shape.kind {
        ProviderEventKind::Delivered => details.smtp_code(part("smtpResponse"), None),
        ProviderEventKind::Deferred
        | ProviderEventKind::Bounced(_)
        | ProviderEventKind::Dropped => details
            .reason(
                diagnostic
                    .or_else(|| part("bounceSubType"))
                    .or_else(|| part("delayType"))
                    .or_else(|| part("reason"))
                    .or_else(|| part("errorMessage"))
                    .or_else(|| part("complaintSubType")),
            )
            .smtp_code(diagnostic, non_empty(&recipient["status"])),
        ProviderEventKind::Opened { .. } | ProviderEventKind::Clicked { .. } => {
            details.url(part("link")).user_agent(part("userAgent"))
        }
        ProviderEventKind::Complained => details.reason(part("complaintFeedbackType")),
        ProviderEventKind::Sent | ProviderEventKind::Unsubscribed => details,
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

    fn read_events(message: &Value) -> Result<Vec<ProviderEvent>, NoEvent> {
        read(&message.to_string(), "sns-1", now())
    }

    fn of(event_type: &str, part: &str, content: Value) -> Value {
        json!({
            "eventType": event_type,
            part: content,
            "mail": {
                "timestamp": "2026-11-20T10:00:00.000Z",
                "messageId": "0100-1",
                "destination": ["ada@example.com"],
                "tags": {
                    "waypost_message": ["01934c6e-5c00-7000-8000-000000000001"],
                    "waypost_recipient": ["2"],
                    "waypost_attempt": ["01934c6e-5c00-7000-8000-000000000002"],
                },
            },
        })
    }

    #[test]
    fn every_event_maps_to_its_kind() {
        use ProviderEventKind::*;
        let complaint = |content: Value| of("Complaint", "complaint", content);
        let preferences = |content: Value| {
            of(
                "Subscription",
                "subscription",
                json!({ "newTopicPreferences": content }),
            )
        };
        let topics = |status: &str| {
            json!({ "unsubscribeAll": false, "topicSubscriptionStatus":
                [{ "topicName": "t", "subscriptionStatus": status }] })
        };
        for (message, expected) in [
            (of("Send", "send", json!({})), Ok(Sent)),
            (of("Delivery", "delivery", json!({})), Ok(Delivered)),
            (
                of("DeliveryDelay", "deliveryDelay", json!({})),
                Ok(Deferred),
            ),
            (of("Reject", "reject", json!({})), Ok(Dropped)),
            (of("Rendering Failure", "failure", json!({})), Ok(Dropped)),
            (of("Open", "open", json!({})), Ok(Opened { is_bot: false })),
            (
                of("Open", "open", json!({ "userAgent": "abot" })),
                Ok(Opened { is_bot: true }),
            ),
            (
                of("Click", "click", json!({})),
                Ok(Clicked { is_bot: false }),
            ),
            (
                complaint(json!({ "complaintFeedbackType": "abuse" })),
                Ok(Complained),
            ),
            (complaint(json!({})), Ok(Complained)),
            (
                complaint(json!({ "complaintFeedbackType": "not-spam" })),
                Err(NoEvent::Skipped),
            ),
            (
                complaint(json!({ "complaintSubType": "OnAccountSuppressionList" })),
                Ok(Dropped),
            ),
            (
                preferences(json!({ "unsubscribeAll": true })),
                Ok(Unsubscribed),
            ),
            (preferences(topics("OptOut")), Ok(Unsubscribed)),
            (preferences(topics("OptIn")), Err(NoEvent::Skipped)),
            (of("Something new", "new", json!({})), Err(NoEvent::Skipped)),
            (json!({}), Err(NoEvent::Skipped)),
        ] {
            let kinds = read_events(&message).map(|events| events[0].kind);
            assert_eq!(kinds, expected, "{message}");
        }
    }

    #[test]
    fn every_bounce_maps_to_its_kind() {
        use BounceType::{Block, Hard, Soft};
        use ProviderEventKind::*;
        for (bounce_type, sub_type, expected) in [
            ("Permanent", "General", Bounced(Hard)),
            ("Permanent", "NoEmail", Bounced(Hard)),
            ("Permanent", "Suppressed", Dropped),
            ("Permanent", "OnAccountSuppressionList", Dropped),
            ("Transient", "General", Bounced(Soft)),
            ("Transient", "MailboxFull", Bounced(Soft)),
            ("Transient", "MessageTooLarge", Bounced(Soft)),
            ("Transient", "ContentRejected", Bounced(Block)),
            ("Transient", "AttachmentRejected", Bounced(Block)),
            ("Undetermined", "Undetermined", Bounced(Soft)),
        ] {
            let content = json!({
                "bounceType": bounce_type, "bounceSubType": sub_type,
                "bouncedRecipients": [{ "emailAddress": "ada@example.com", "status": "5.0.0" }],
            });
            let events = read_events(&of("Bounce", "bounce", content)).unwrap();
            assert_eq!(events[0].kind, expected, "{bounce_type} {sub_type}");
        }
    }

    #[test]
    fn a_permanent_bounce_is_hard_if_the_address_is_the_reason() {
        use BounceType::{Block, Hard, Soft};
        for (sub_type, status, diagnostic, expected) in [
            ("General", "5.1.1", "smtp; 550 5.1.1 user unknown", Hard),
            ("General", "5.7.1", "smtp; 554 5.7.1 blocked", Block),
            (
                "General",
                "5.0.0",
                "smtp; 554 blocked using Spamhaus",
                Block,
            ),
            ("General", "5.2.2", "smtp; 552 5.2.2 mailbox full", Soft),
            ("NoEmail", "5.7.1", "", Hard),
        ] {
            let content = json!({
                "bounceType": "Permanent", "bounceSubType": sub_type,
                "bouncedRecipients": [
                    { "emailAddress": "ada@example.com", "status": status, "diagnosticCode": diagnostic },
                    { "emailAddress": "bob@example.com" },
                ],
            });
            let events = read_events(&of("Bounce", "bounce", content)).unwrap();
            assert_eq!(
                events[0].kind,
                ProviderEventKind::Bounced(expected),
                "{diagnostic}"
            );
            assert_eq!(events[1].kind, ProviderEventKind::Bounced(Hard));
        }
    }

    #[test]
    fn an_automatic_reply_is_not_a_bounce() {
        for (bounce_type, sub_type) in [("Transient", "General"), ("Undetermined", "Undetermined")]
        {
            for recipients in [json!([{ "emailAddress": "ada@example.com" }]), json!([])] {
                let content = json!({
                    "bounceType": bounce_type, "bounceSubType": sub_type,
                    "bouncedRecipients": recipients,
                });
                let events = read_events(&of("Bounce", "bounce", content));
                assert!(matches!(events, Err(NoEvent::Skipped)), "{bounce_type}");
            }
        }
    }

    #[test]
    fn all_fields_of_an_event_are_read() {
        let message = of(
            "Bounce",
            "bounce",
            json!({
                "bounceType": "Permanent",
                "bounceSubType": "General",
                "bouncedRecipients": [{
                    "emailAddress": "Ada <ada@example.com>",
                    "status": "5.1.1",
                    "diagnosticCode": "smtp; 550 5.1.1 user unknown",
                }],
                "timestamp": "2026-11-21T10:00:00.000Z",
                "feedbackId": "feedback-1",
            }),
        );
        let events = read_events(&message).unwrap();
        let [event] = &events[..] else {
            panic!("{events:?}");
        };
        assert_eq!(event.occurred_at.to_rfc3339(), "2026-11-21T10:00:00+00:00");
        assert_eq!(event.ids.unwrap().position, Some(2));
        assert_eq!(event.provider_message_id.as_deref(), Some("0100-1"));
        assert_eq!(
            event.recipient.as_ref().unwrap().as_str(),
            "ada@example.com"
        );
        assert_eq!(
            Value::Object(event.details.clone()),
            json!({ "reason": "smtp; 550 5.1.1 user unknown", "smtpCode": "550" })
        );
        // The feedback id identifies the event, not the envelope.
        let again = read(&message.to_string(), "sns-2", now()).unwrap();
        assert_eq!(again[0].id, event.id);
        let ids = |event_type, part| {
            let message = of(event_type, part, json!({})).to_string();
            ["sns-1", "sns-2"].map(|id| read(&message, id, now()).unwrap().remove(0).id)
        };
        let [first, second] = ids("Open", "open");
        assert_ne!(first, second);
        // A delivery is one event, even if both forms of notification report it.
        let [first, second] = ids("Delivery", "delivery");
        assert_eq!(first, second);
        // An event without a time of its own has that of the mail.
        let sent = read_events(&of("Send", "send", json!({})))
            .unwrap()
            .remove(0);
        assert_eq!(sent.occurred_at.to_rfc3339(), "2026-11-20T10:00:00+00:00");
    }

    #[test]
    fn each_recipient_gets_an_event_and_none_is_guessed() {
        let whom = |message: &Value| -> Vec<Option<String>> {
            let events = read_events(message).unwrap();
            let ids: std::collections::HashSet<&String> = events.iter().map(|e| &e.id).collect();
            assert_eq!(ids.len(), events.len());
            let recipients = events.iter().map(|event| event.recipient.as_ref());
            recipients.map(|to| Some(to?.as_str().to_owned())).collect()
        };
        let (ada, bob) = (Some("ada@x.org".to_owned()), Some("bob@x.org".to_owned()));
        let two = json!(["ada@x.org", "bob@x.org"]);
        let mut delivered = of("Delivery", "delivery", json!({ "recipients": two }));
        assert_eq!(whom(&delivered), [ada.clone(), bob.clone()]);
        delivered["delivery"] = json!({});
        assert_eq!(whom(&delivered), [Some("ada@example.com".to_owned())]);
        let mut sent = of("Send", "send", json!({}));
        sent["mail"]["destination"] = two.clone();
        assert_eq!(whom(&sent), [ada, bob]);
        let mut opened = of("Open", "open", json!({}));
        opened["mail"]["destination"] = two;
        assert_eq!(whom(&opened), [None]);
        opened["mail"] = json!(7);
        assert_eq!(whom(&opened), [None]);
        let many: Vec<String> = (0..60).map(|n| format!("r{n}@x.org")).collect();
        sent["mail"]["destination"] = json!(many);
        assert_eq!(whom(&sent).len(), RECIPIENTS_MAX);
    }

    #[test]
    fn identity_notifications_are_read_too() {
        let message = json!({
            "notificationType": "Bounce",
            "bounce": {
                "bounceType": "Permanent",
                "bounceSubType": "General",
                "bouncedRecipients": [{ "emailAddress": "jane@example.com" }],
                "timestamp": "2016-01-27T14:59:38.237Z",
                "feedbackId": "0137",
            },
            "mail": { "messageId": "0137-3420" },
        });
        let event = read_events(&message).unwrap().remove(0);
        assert_eq!(event.kind, ProviderEventKind::Bounced(BounceType::Hard));
        assert_eq!(event.ids, None);
        assert_eq!(event.provider_message_id.as_deref(), Some("0137-3420"));
    }

    #[test]
    fn plain_texts_are_skipped_and_broken_ones_are_unreadable() {
        let text = "Successfully validated SNS topic for Amazon SES event publishing.";
        assert_eq!(read(text, "1", now()).unwrap_err(), NoEvent::Skipped);
        assert_eq!(read("", "1", now()).unwrap_err(), NoEvent::Skipped);
        assert_eq!(
            read("{\"eventType\"", "1", now()).unwrap_err(),
            NoEvent::Unreadable
        );
    }
}
