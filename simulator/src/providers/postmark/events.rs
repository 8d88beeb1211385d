//! Postmark's webhooks: one object per call, with a password instead of a signature.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chrono::SecondsFormat;
use serde_json::{Map, Value, json};

use crate::callbacks::{Event, PreparedCall, ProviderEventKind, SignatureFault, Stamp};
use crate::mail::Record;
use crate::providers::event_data::{
    ACCEPTED, MAILBOX_FULL, NO_SUCH_USER, READER_IP, REFUSED_AS_SPAM, TRY_LATER, USER_AGENT, link,
};

const SERVER_ID: u64 = 1;

pub(in crate::providers) fn prepare_call(
    auth: Option<&(String, String)>,
    text: &str,
    stamp: Stamp,
) -> PreparedCall {
    let mut headers = Vec::new();
    if let Some((name, password)) = auth {
        let wrong = format!("not-{password}");
        let password = match stamp.fault {
            SignatureFault::Off => Some(password),
            SignatureFault::Wrong => Some(&wrong),
            SignatureFault::None => None,
        };
        if let Some(password) = password {
            let pair = STANDARD.encode(format!("{name}:{password}"));
            headers.push(("authorization", format!("Basic {pair}")));
        }
    }
    PreparedCall {
        headers,
        body: Bytes::copy_from_slice(text.as_bytes()),
    }
}

/// The body of a call.
pub(in crate::providers) fn call_body(event: &Event, stream: &str) -> String {
    let record = &*event.record;
    let mut fields = shared(record, stream);
    let at = event.at.to_rfc3339_opts(SecondsFormat::Micros, true);
    let own = match event.kind {
        // No webhook can subscribe to it, as there is no such trigger.
        ProviderEventKind::Sent | ProviderEventKind::Delivered => json!({
            "RecordType": "Delivery",
            "Recipient": record.recipient.to,
            "DeliveredAt": at,
            "Details": format!("smtp;{ACCEPTED}"),
        }),
        ProviderEventKind::Deferred => bounce(record, &at, &TRANSIENT),
        ProviderEventKind::HardBounce => bounce(record, &at, &HARD),
        ProviderEventKind::SoftBounce | ProviderEventKind::Expired => bounce(record, &at, &SOFT),
        ProviderEventKind::Block | ProviderEventKind::Listed => bounce(record, &at, &BLOCKED),
        ProviderEventKind::Dropped => bounce(record, &at, &DEACTIVATED),
        ProviderEventKind::Opened => {
            let own = json!({"RecordType": "Open", "FirstOpen": true, "ReadSeconds": 5});
            reading(record, &at, own)
        }
        ProviderEventKind::Clicked => {
            let own = json!({
                "RecordType": "Click",
                "ClickLocation": "HTML",
                "OriginalLink": link(record),
            });
            reading(record, &at, own)
        }
        ProviderEventKind::Complained => json!({
            "RecordType": "SpamComplaint",
            "ID": bounce_id(record, "complaint"),
            "Type": "SpamComplaint",
            "TypeCode": 512,
            "Email": record.recipient.to,
            "From": from(record),
            "BouncedAt": at,
            "Subject": record.recipient.fill(&record.recipient.envelope.subject),
        }),
        ProviderEventKind::Unsubscribed => json!({
            "RecordType": "SubscriptionChange",
            "Recipient": record.recipient.to,
            "ChangedAt": at,
            "Origin": "Recipient",
            "SuppressSending": true,
            "SuppressionReason": "ManualSuppression",
        }),
    };
    merge(&mut fields, own);
    Value::Object(fields).to_string()
}

struct Bounce {
    kind: &'static str,
    code: u32,
    name: &'static str,
    description: &'static str,
    details: &'static str,
    inactive: bool,
}

const HARD: Bounce = Bounce {
    kind: "HardBounce",
    code: 1,
    name: "Hard bounce",
    description: "The server was unable to deliver your message (ex: unknown user, mailbox not \
        found).",
    details: NO_SUCH_USER,
    inactive: true,
};
const TRANSIENT: Bounce = Bounce {
    kind: "Transient",
    code: 2,
    name: "Message delayed",
    description: "The server could not temporarily deliver your message (ex: Message is delayed \
        due to network troubles).",
    details: TRY_LATER,
    inactive: false,
};
const SOFT: Bounce = Bounce {
    kind: "SoftBounce",
    code: 4_096,
    name: "Soft bounce",
    description: "Unable to temporarily deliver message (i.e. mailbox full, account disabled, \
        exceeds quota, out of disk space).",
    details: MAILBOX_FULL,
    inactive: false,
};
const BLOCKED: Bounce = Bounce {
    kind: "Blocked",
    code: 100_006,
    name: "ISP block",
    description: "The message was blocked by the recipient's server.",
    details: REFUSED_AS_SPAM,
    inactive: false,
};
const DEACTIVATED: Bounce = Bounce {
    kind: "ManuallyDeactivated",
    code: 100_002,
    name: "Manually deactivated",
    description: "The email was manually deactivated.",
    details: "",
    inactive: true,
};

fn bounce(record: &Record, at: &str, bounce: &Bounce) -> Value {
    let details = match bounce.details {
        "" => String::new(),
        details => format!("smtp;{details}"),
    };
    json!({
        "RecordType": "Bounce",
        "ID": bounce_id(record, bounce.kind),
        "Type": bounce.kind,
        "TypeCode": bounce.code,
        "Name": bounce.name,
        "Description": bounce.description,
        "Details": details,
        "Email": record.recipient.to,
        "From": from(record),
        "BouncedAt": at,
        "DumpAvailable": bounce.inactive,
        "Inactive": bounce.inactive,
        "CanActivate": bounce.inactive,
        "Subject": record.recipient.fill(&record.recipient.envelope.subject),
    })
}

fn shared(record: &Record, stream: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    let tag = record.recipient.envelope.tags.first();
    merge(
        &mut fields,
        json!({
            "ServerID": SERVER_ID,
            "MessageStream": stream,
            "MessageID": *record.provider_message_id,
            "Tag": tag.map_or("", String::as_str),
            "Metadata": record.recipient.filled_metadata(),
        }),
    );
    fields
}

fn reading(record: &Record, at: &str, own: Value) -> Value {
    let mut fields = Map::new();
    merge(&mut fields, own);
    merge(
        &mut fields,
        json!({
            "Recipient": record.recipient.to,
            "ReceivedAt": at,
            "Platform": "Desktop",
            "Client": {"Name": "Chrome 126.0", "Company": "Google", "Family": "Chrome"},
            "OS": {"Name": "Linux", "Company": "", "Family": "Linux"},
            "UserAgent": USER_AGENT,
            "Geo": {
                "CountryISOCode": "US",
                "Country": "United States",
                "RegionISOCode": "CA",
                "Region": "California",
                "City": "San Francisco",
                "Zip": "94107",
                "Coords": "37.7749,-122.4194",
                "IP": READER_IP,
            },
        }),
    );
    Value::Object(fields)
}

fn merge(fields: &mut Map<String, Value>, more: Value) {
    if let Value::Object(more) = more {
        fields.extend(more);
    }
}

/// The bare address.
fn from(record: &Record) -> &str {
    let from = &record.recipient.envelope.from;
    crate::address::Mailbox::parse(from).map_or(from, |mailbox| mailbox.address)
}

/// A number that is the same whenever the event is reported again.
fn bounce_id(record: &Record, kind: &str) -> u64 {
    let sequence = record.sequence.to_string();
    let id = crate::ids::derived(&[&record.provider_message_id, &sequence, kind]);
    // Positive, and exact as a floating-point number.
    id[..6]
        .iter()
        .fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}
