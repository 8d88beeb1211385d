//! The event webhook: several events in an array, signed with the webhook's own key.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::callbacks::{
    Event, PreparedCall, ProviderEventKind, SendGridKey, SignatureFault, Stamp,
};
use crate::ids::derived;
use crate::mail::Record;
use crate::providers::event_data::{
    ACCEPTED, LISTED, MAILBOX_FULL, NO_ANSWER, NO_SUCH_USER, READER_IP, REFUSED_AS_SPAM, SENDER_IP,
    TRY_LATER, USER_AGENT, link,
};

/// A call is made when this many bytes have been collected.
const BATCH_BYTES_MAX: usize = 768 << 10;
const SIGNATURE: &str = "x-twilio-email-event-webhook-signature";
const TIMESTAMP: &str = "x-twilio-email-event-webhook-timestamp";

/// The body of a call with as many events as fit, and their number. Events are separated
/// by CR LF, and the body ends with CR LF, as the real ones do.
pub(in crate::providers) fn call_body(events: &[Event]) -> (String, usize) {
    let (mut body, mut count) = ("[".to_owned(), 0);
    for event in events {
        let text = Value::Object(fields(event)).to_string();
        if count > 0 && body.len() + text.len() + ",\r\n]\r\n".len() > BATCH_BYTES_MAX {
            break;
        }
        if count > 0 {
            body.push_str(",\r\n");
        }
        body.push_str(&text);
        count += 1;
    }
    body.push_str("]\r\n");
    (body, count)
}

pub(in crate::providers) fn prepare_call(
    key: Option<&SendGridKey>,
    text: &str,
    stamp: Stamp,
) -> PreparedCall {
    let mut headers = Vec::new();
    if let Some(key) = key
        && stamp.fault != SignatureFault::None
    {
        let timestamp = stamp.now.timestamp().to_string();
        let signature = match stamp.fault {
            SignatureFault::Wrong => key.sign(&timestamp, b"[]\r\n"),
            SignatureFault::Off | SignatureFault::None => key.sign(&timestamp, text.as_bytes()),
        };
        headers.extend([(SIGNATURE, signature), (TIMESTAMP, timestamp)]);
    }
    PreparedCall {
        headers,
        body: Bytes::copy_from_slice(text.as_bytes()),
    }
}

fn fields(event: &Event) -> Map<String, Value> {
    let record = &*event.record;
    let id = &record.provider_message_id;
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| {
        fields.insert(name.to_owned(), value);
    };
    // Custom args first: reserved names override them.
    for (name, value) in record.recipient.filled_metadata() {
        put(&name, Value::String(value));
    }
    put("email", json!(record.recipient.to));
    put("event", json!(name(event.kind)));
    put("timestamp", json!(event.at.timestamp()));
    put("sg_event_id", json!(event_id(event)));
    put("sg_message_id", json!(message_id(record)));
    put(
        "smtp-id",
        json!(format!("<{id}@geopod-ismtpd-1.sendgrid.net>")),
    );
    match record.recipient.envelope.tags.as_slice() {
        [] => {}
        [one] => put("category", json!(one)),
        many => put("category", json!(many)),
    }
    for (name, value) in own_fields(event.kind, record) {
        put(name, value);
    }
    fields
}

/// The id in events and in the Email Activity: the id of the send's response with a
/// suffix that tells the recipients of a request apart.
pub(super) fn message_id(record: &Record) -> String {
    let (id, position) = (&record.provider_message_id, record.position);
    format!("{id}.recvd-6d8b8c7f9b-simul-1-66A1B2C3-1.{position}")
}

fn name(kind: ProviderEventKind) -> &'static str {
    match kind {
        ProviderEventKind::Sent => "processed",
        ProviderEventKind::Delivered => "delivered",
        ProviderEventKind::Deferred => "deferred",
        ProviderEventKind::HardBounce
        | ProviderEventKind::SoftBounce
        | ProviderEventKind::Block
        | ProviderEventKind::Listed
        | ProviderEventKind::Expired => "bounce",
        ProviderEventKind::Dropped => "dropped",
        ProviderEventKind::Opened => "open",
        ProviderEventKind::Clicked => "click",
        ProviderEventKind::Complained => "spamreport",
        ProviderEventKind::Unsubscribed => "unsubscribe",
    }
}

fn own_fields(kind: ProviderEventKind, record: &Record) -> Vec<(&'static str, Value)> {
    let bounce = |kind: &str, reason: &str, status: &str, class: &str| {
        vec![
            ("type", json!(kind)),
            ("reason", json!(reason)),
            ("status", json!(status)),
            ("bounce_classification", json!(class)),
            ("ip", json!(SENDER_IP)),
            ("tls", json!(1)),
        ]
    };
    let reader = [("useragent", json!(USER_AGENT)), ("ip", json!(READER_IP))];
    match kind {
        ProviderEventKind::Sent => vec![("send_at", json!(0))],
        ProviderEventKind::Delivered => vec![
            ("response", json!(ACCEPTED)),
            ("ip", json!(SENDER_IP)),
            ("tls", json!(1)),
        ],
        ProviderEventKind::Deferred => {
            vec![("response", json!(TRY_LATER)), ("attempt", json!("1"))]
        }
        ProviderEventKind::HardBounce => bounce("bounce", NO_SUCH_USER, "5.1.1", "Invalid Address"),
        // SendGrid has two words for three things: a full mailbox is "blocked" too.
        ProviderEventKind::SoftBounce => {
            bounce("blocked", MAILBOX_FULL, "4.2.2", "Mailbox Unavailable")
        }
        ProviderEventKind::Block => bounce("blocked", REFUSED_AS_SPAM, "5.7.1", "Reputation"),
        ProviderEventKind::Listed => bounce("blocked", LISTED, "5.7.1", "Reputation"),
        // No server accepted it within 72 hours (sendgrid/docs issue 702).
        ProviderEventKind::Expired => bounce("expired", NO_ANSWER, "", "Unclassified"),
        ProviderEventKind::Dropped => vec![("reason", json!("Bounced Address"))],
        ProviderEventKind::Opened => {
            let own = [
                ("sg_machine_open", json!(false)),
                ("sg_content_type", json!("html")),
            ];
            reader.into_iter().chain(own).collect()
        }
        ProviderEventKind::Clicked => {
            let own = [
                ("url", json!(link(record))),
                ("url_offset", json!({"index": 0, "type": "html"})),
            ];
            reader.into_iter().chain(own).collect()
        }
        ProviderEventKind::Complained | ProviderEventKind::Unsubscribed => Vec::new(),
    }
}

/// Base64 of kind, account, message and recipient; for opens and clicks of a random
/// number. It is the same whenever the event is reported again.
fn event_id(event: &Event) -> String {
    let record = &*event.record;
    let (id, sequence) = (&record.provider_message_id, record.sequence.to_string());
    match event.kind {
        ProviderEventKind::Opened
        | ProviderEventKind::Clicked
        | ProviderEventKind::Complained
        | ProviderEventKind::Unsubscribed => {
            URL_SAFE_NO_PAD.encode(derived(&[id, &sequence, event.kind.name()]))
        }
        ProviderEventKind::Sent
        | ProviderEventKind::Delivered
        | ProviderEventKind::Deferred
        | ProviderEventKind::HardBounce
        | ProviderEventKind::SoftBounce
        | ProviderEventKind::Block
        | ProviderEventKind::Listed
        | ProviderEventKind::Expired
        | ProviderEventKind::Dropped => {
            let kind = name(event.kind);
            URL_SAFE_NO_PAD.encode(format!("{kind}-0-19942112-{id}-{sequence}"))
        }
    }
}
