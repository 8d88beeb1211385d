//! Mailgun's webhooks: one event per call, with a signature that does not cover the
//! event.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

use crate::address::Mailbox;
use crate::callbacks::{
    Event, PreparedCall, ProviderEventKind, SignatureFault, Stamp, sign_mailgun,
};
use crate::ids::{Ids, derived};
use crate::mail::Record;
use crate::providers::event_data::{
    LISTED, MAILBOX_FULL, NO_SUCH_USER, READER_IP, REFUSED_AS_SPAM, SENDER_IP, TRY_LATER,
    USER_AGENT, link, recipient_domain,
};

/// Adds a signature with a new token.
pub(in crate::providers) fn prepare_call(
    signing_key: &str,
    text: &str,
    stamp: Stamp,
    ids: &Ids,
) -> PreparedCall {
    let timestamp = stamp.now.timestamp().to_string();
    let token = ids.token()[..50].to_owned();
    let signature = match stamp.fault {
        SignatureFault::Wrong => sign_mailgun("another key", &timestamp, &token),
        SignatureFault::Off | SignatureFault::None => sign_mailgun(signing_key, &timestamp, &token),
    };
    let signature = match stamp.fault {
        SignatureFault::None => json!({}),
        SignatureFault::Off | SignatureFault::Wrong => {
            json!({"token": token, "timestamp": timestamp, "signature": signature})
        }
    };
    PreparedCall {
        headers: Vec::new(),
        body: format!("{{\"signature\":{signature},\"event-data\":{text}}}").into(),
    }
}

/// The event, without its signature.
pub(in crate::providers) fn call_body(event: &Event) -> String {
    let record = &*event.record;
    let (level, own) = own_fields(event);
    let mut fields = Map::new();
    let mut put = |more: Value| {
        if let Value::Object(more) = more {
            fields.extend(more);
        }
    };
    let micros = event.at.timestamp_micros();
    put(json!({
        "id": event_id(event),
        "timestamp": micros as f64 / 1e6,
        "log-level": level,
        "recipient": record.recipient.to,
        "campaigns": [],
        "tags": record.recipient.envelope.tags,
        "user-variables": record.recipient.filled_metadata(),
    }));
    if event.kind != ProviderEventKind::Complained {
        put(json!({"recipient-domain": recipient_domain(record)}));
    }
    put(own);
    Value::Object(fields).to_string()
}

/// The level in Mailgun's log, and the fields of this kind of event only.
fn own_fields(event: &Event) -> (&'static str, Value) {
    let record = &*event.record;
    match event.kind {
        ProviderEventKind::Sent => {
            let own = json!({
                "event": "accepted",
                "method": "HTTP",
                "envelope": envelope(record, false),
                "flags": {"is-authenticated": true, "is-test-mode": false},
                "message": message(record),
                "storage": storage(record),
            });
            ("info", own)
        }
        ProviderEventKind::Delivered => {
            let own = json!({
                "event": "delivered",
                "delivery-status": status(250, "", "OK", 1),
                "envelope": envelope(record, true),
                "flags": flags(),
                "message": message(record),
                "storage": storage(record),
            });
            ("info", own)
        }
        ProviderEventKind::Deferred => {
            let mut status = status(421, "4.7.0", TRY_LATER, 1);
            status["retry-seconds"] = json!(600);
            ("warn", failed(record, ("temporary", "generic"), status))
        }
        ProviderEventKind::HardBounce => {
            let status = status(550, "5.1.1", NO_SUCH_USER, 1);
            ("error", failed(record, ("permanent", "bounce"), status))
        }
        ProviderEventKind::SoftBounce => {
            let status = status(452, "4.2.2", MAILBOX_FULL, 8);
            ("error", failed(record, ("permanent", "old"), status))
        }
        ProviderEventKind::Block => {
            let status = status(550, "5.7.1", REFUSED_AS_SPAM, 1);
            ("error", failed(record, ("permanent", "espblock"), status))
        }
        ProviderEventKind::Listed => {
            let status = status(554, "", LISTED, 1);
            ("error", failed(record, ("permanent", "generic"), status))
        }
        ProviderEventKind::Expired => {
            let status = status(602, "", "Too old", 12);
            ("error", failed(record, ("permanent", "old"), status))
        }
        ProviderEventKind::Dropped => {
            let reason = ("permanent", "suppress-bounce");
            ("error", failed(record, reason, suppressed_status()))
        }
        ProviderEventKind::Complained => {
            let own = json!({
                "event": "complained",
                "envelope": {"sending-ip": SENDER_IP},
                "flags": {"is-test-mode": false},
                "message": message(record),
            });
            ("warn", own)
        }
        ProviderEventKind::Opened => ("info", reading(record, "opened")),
        ProviderEventKind::Clicked => {
            let mut own = reading(record, "clicked");
            own["url"] = json!(link(record));
            ("info", own)
        }
        ProviderEventKind::Unsubscribed => ("info", reading(record, "unsubscribed")),
    }
}

fn suppressed_status() -> Value {
    json!({
        "attempt-no": 1,
        "message": "",
        "code": 605,
        "enhanced-code": "",
        "description": "Not delivering to previously bounced address",
        "session-seconds": 0,
    })
}

fn failed(record: &Record, (severity, reason): (&str, &str), status: Value) -> Value {
    json!({
        "event": "failed",
        "severity": severity,
        "reason": reason,
        "delivery-status": status,
        "envelope": envelope(record, false),
        "flags": flags(),
        "message": message(record),
        "storage": storage(record),
    })
}

fn status(code: u16, enhanced: &str, text: &str, attempt: u32) -> Value {
    json!({
        "attempt-no": attempt,
        "certificate-verified": true,
        "code": code,
        "description": "",
        "enhanced-code": enhanced,
        "message": text,
        "mx-host": "smtp-in.example.com",
        "session-seconds": 0.433_198_928,
        "tls": true,
        "utf8": true,
    })
}

/// A recipient's open or click: the message is given only by its id.
fn reading(record: &Record, event: &str) -> Value {
    json!({
        "event": event,
        "ip": READER_IP,
        "geolocation": {"country": "US", "region": "CA", "city": "San Francisco"},
        "client-info": {
            "bot": "",
            "client-name": "Chrome",
            "client-os": "Linux",
            "client-type": "browser",
            "device-type": "desktop",
            "user-agent": USER_AGENT,
        },
        "message": {"headers": {"message-id": bare_id(record)}},
    })
}

fn message(record: &Record) -> Value {
    let recipient = &record.recipient;
    json!({
        "headers": {
            "to": recipient.to,
            "message-id": bare_id(record),
            "from": recipient.envelope.from,
            "subject": recipient.fill(&recipient.envelope.subject),
        },
        "attachments": [],
        "size": recipient.body.bytes(),
    })
}

fn envelope(record: &Record, is_out: bool) -> Value {
    let from = &record.recipient.envelope.from;
    let sender = Mailbox::parse(from).map_or(from.as_str(), |mailbox| mailbox.address);
    let mut envelope = json!({
        "sender": sender,
        "targets": record.recipient.to,
        "transport": "smtp",
    });
    if is_out {
        envelope["sending-ip"] = json!(SENDER_IP);
    }
    envelope
}

fn flags() -> Value {
    json!({
        "is-authenticated": true,
        "is-routed": false,
        "is-system-test": false,
        "is-test-mode": false,
    })
}

fn storage(record: &Record) -> Value {
    let key = URL_SAFE_NO_PAD.encode(derived(&[&record.provider_message_id, "storage"]));
    let domain = &record.recipient.envelope.scope;
    let url = format!("https://se.api.mailgun.net/v3/domains/{domain}/messages/{key}");
    json!({"key": key, "url": url})
}

/// The message id without the brackets of the API's response.
fn bare_id(record: &Record) -> &str {
    let id = &record.provider_message_id;
    id.trim_start_matches('<').trim_end_matches('>')
}

fn event_id(event: &Event) -> String {
    let sequence = event.record.sequence.to_string();
    let id = &event.record.provider_message_id;
    URL_SAFE_NO_PAD.encode(derived(&[id, &sequence, event.kind.name()]))
}
