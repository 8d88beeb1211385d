//! The events that SES publishes to a topic, and the SNS messages that contain them.

use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use super::sns;
use crate::address::{Mailbox, domain_of};
use crate::callbacks::{Endpoint, Event, PreparedCall, ProviderEventKind, Stamp, Target};
use crate::ids::{derived, uuid};
use crate::mail::Record;
use crate::providers::event_data::{
    ACCEPTED, LISTED, MAILBOX_FULL, NO_SUCH_USER, READER_IP, REFUSED_AS_SPAM, SENDER_IP, TRY_LATER,
    USER_AGENT, link,
};

const ACCOUNT: &str = "123456789012";

/// The signed SNS message about an event. A retry sends the same message.
pub(in crate::providers) fn call_body(endpoint: &Endpoint, event: &Event, stamp: Stamp) -> String {
    let published = published(endpoint, event).to_string();
    let parts = id_parts(event);
    let id = uuid(derived(&[&parts.0, &parts.1, parts.2, topic(endpoint)]));
    sns::notification(endpoint, &id, &published, stamp)
}

pub(in crate::providers) fn prepare_call(endpoint: &Endpoint, text: &str) -> PreparedCall {
    let message: Value = serde_json::from_str(text).unwrap_or_default();
    PreparedCall {
        headers: sns::headers(endpoint, &message),
        body: Bytes::copy_from_slice(text.as_bytes()),
    }
}

fn published(endpoint: &Endpoint, event: &Event) -> Value {
    let record = &*event.record;
    let to = &record.recipient.to;
    let at = millis(event.at);
    let (kind, key, own) = match event.kind {
        ProviderEventKind::Sent => ("Send", "send", json!({})),
        ProviderEventKind::Delivered => {
            let took = event.at - record.accepted_at;
            let own = json!({
                "timestamp": at,
                "processingTimeMillis": took.num_milliseconds(),
                "recipients": [to],
                "smtpResponse": ACCEPTED,
                "reportingMTA": "a25-1.smtp-out.amazonses.com",
            });
            ("Delivery", "delivery", own)
        }
        ProviderEventKind::Deferred => {
            let own = json!({
                "timestamp": at,
                "delayType": "TransientCommunicationFailure",
                "expirationTime": millis(event.at + chrono::TimeDelta::hours(12)),
                "delayedRecipients": [{
                    "emailAddress": to,
                    "status": "4.7.0",
                    "diagnosticCode": format!("smtp; {TRY_LATER}"),
                }],
            });
            ("DeliveryDelay", "deliveryDelay", own)
        }
        ProviderEventKind::HardBounce => {
            let kinds = ("Permanent", "General");
            ("Bounce", "bounce", bounce(event, kinds, NO_SUCH_USER))
        }
        ProviderEventKind::SoftBounce => {
            let kinds = ("Transient", "MailboxFull");
            ("Bounce", "bounce", bounce(event, kinds, MAILBOX_FULL))
        }
        ProviderEventKind::Block => {
            let kinds = ("Transient", "ContentRejected");
            ("Bounce", "bounce", bounce(event, kinds, REFUSED_AS_SPAM))
        }
        // SES treats a 5xx as a permanent bounce, whatever its reason.
        ProviderEventKind::Listed => {
            let kinds = ("Permanent", "General");
            ("Bounce", "bounce", bounce(event, kinds, LISTED))
        }
        ProviderEventKind::Expired => {
            let kinds = ("Transient", "General");
            ("Bounce", "bounce", bounce(event, kinds, TRY_LATER))
        }
        ProviderEventKind::Dropped => ("Reject", "reject", json!({"reason": "Bad content"})),
        ProviderEventKind::Opened => ("Open", "open", reading(&at)),
        ProviderEventKind::Clicked => {
            let mut own = reading(&at);
            own["link"] = json!(link(record));
            own["linkTags"] = Value::Null;
            ("Click", "click", own)
        }
        ProviderEventKind::Complained => ("Complaint", "complaint", complaint(event, &at)),
        ProviderEventKind::Unsubscribed => ("Subscription", "subscription", unsubscription(&at)),
    };
    let mut published = json!({"eventType": kind, "mail": mail(endpoint, record)});
    published[key] = own;
    published
}

fn complaint(event: &Event, at: &str) -> Value {
    json!({
        "complainedRecipients": [{"emailAddress": &event.record.recipient.to}],
        "complaintSubType": null,
        "timestamp": at,
        "feedbackId": feedback_id(event),
        "userAgent": "Amazon SES Mailbox Simulator",
        "complaintFeedbackType": "abuse",
        "arrivalDate": at,
    })
}

fn mail(endpoint: &Endpoint, record: &Record) -> Value {
    let recipient = &record.recipient;
    let subject = recipient.fill(&recipient.envelope.subject);
    let from = &recipient.envelope.from;
    let address = Mailbox::parse(from).map_or(from.as_str(), |mailbox| mailbox.address);
    let domain = domain_of(address);
    let region = topic(endpoint).split(':').nth(3).unwrap_or_default();
    let (to, cc) = match recipient.visible.as_deref() {
        Some(visible) => (visible.to.as_slice(), visible.cc.as_slice()),
        None => (std::slice::from_ref(&recipient.to), &[][..]),
    };
    let mut destination: Vec<&String> = to.iter().chain(cc).collect();
    if !destination.contains(&&recipient.to) {
        destination.push(&recipient.to);
    }
    let header = |name: &str, value: &str| json!({"name": name, "value": value});
    let mut headers = vec![
        header("From", from),
        header("To", &to.join(", ")),
        header("Subject", &subject),
        header("MIME-Version", "1.0"),
    ];
    let own = recipient.envelope.headers.iter();
    headers.extend(own.map(|(name, value)| header(name, &recipient.fill(value))));
    let mut tags = json!({
        "ses:operation": ["SendEmail"],
        "ses:configuration-set": [recipient.envelope.scope],
        "ses:source-ip": [SENDER_IP],
        "ses:from-domain": [domain],
        "ses:caller-identity": ["simulator"],
    });
    for (name, value) in recipient.filled_metadata() {
        tags[name] = json!([value]);
    }
    json!({
        "timestamp": millis(record.accepted_at),
        "source": from,
        "sourceArn": format!("arn:aws:ses:{region}:{ACCOUNT}:identity/{domain}"),
        "sendingAccountId": ACCOUNT,
        "messageId": *record.provider_message_id,
        "destination": destination,
        "headersTruncated": false,
        "headers": headers,
        "commonHeaders": {
            "from": [from],
            "to": to,
            "messageId": *record.provider_message_id,
            "subject": subject,
        },
        "tags": tags,
    })
}

fn bounce(event: &Event, (kind, sub_kind): (&str, &str), text: &str) -> Value {
    let status = text.split(' ').nth(1).unwrap_or_default();
    json!({
        "bounceType": kind,
        "bounceSubType": sub_kind,
        "bouncedRecipients": [{
            "emailAddress": event.record.recipient.to,
            "action": "failed",
            "status": status,
            "diagnosticCode": format!("smtp; {text}"),
        }],
        "timestamp": millis(event.at),
        "feedbackId": feedback_id(event),
        "reportingMTA": "dns; a25-1.smtp-out.amazonses.com",
    })
}

fn reading(at: &str) -> Value {
    json!({"timestamp": at, "userAgent": USER_AGENT, "ipAddress": READER_IP})
}

fn unsubscription(at: &str) -> Value {
    let preferences = |all: bool| json!({"unsubscribeAll": all, "topicSubscriptionStatus": []});
    json!({
        "contactList": "simulator",
        "timestamp": at,
        "source": "UnsubscribeHeader",
        "newTopicPreferences": preferences(true),
        "oldTopicPreferences": preferences(false),
    })
}

fn feedback_id(event: &Event) -> String {
    let (id, sequence, kind) = id_parts(event);
    let own = uuid(derived(&[&id, &sequence, kind, "feedback"]));
    format!("0100{}-{own}-000000", &own[..12].replace('-', "0"))
}

fn id_parts(event: &Event) -> (String, String, &'static str) {
    let record = &*event.record;
    (
        record.provider_message_id.to_string(),
        record.sequence.to_string(),
        event.kind.name(),
    )
}

fn topic(endpoint: &Endpoint) -> &str {
    match &endpoint.target {
        Target::Sns { topic_arn, .. } => topic_arn,
        Target::SendGrid { .. } | Target::Postmark { .. } | Target::Mailgun { .. } => "",
    }
}

fn millis(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}
