//! Signed webhook posts as providers send them.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::EcdsaKeyPair;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use uuid::Uuid;

/// The key with which Mailgun signs.
pub(crate) const SIGNING_KEY: &str = "key-of-the-measurement";

/// A request, head and body.
pub(crate) struct Post {
    pub(crate) bytes: Bytes,
    /// The number of events in it.
    pub(crate) events: usize,
}

/// A recipient of a sent message.
#[derive(Clone, Copy)]
pub(crate) struct Recipient {
    pub(crate) message: Uuid,
    pub(crate) attempt: Uuid,
    pub(crate) nth: usize,
}

/// The kind of a provider event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    Delivered,
    Opened,
    Clicked,
    Bounced,
}

impl EventKind {
    /// The event type in Waypost.
    pub(crate) fn event_type(self) -> &'static str {
        match self {
            Self::Delivered => "DELIVERED",
            Self::Opened => "OPENED",
            Self::Clicked => "CLICKED",
            Self::Bounced => "BOUNCED",
        }
    }

    fn sendgrid(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Opened => "open",
            Self::Clicked => "click",
            Self::Bounced => "bounce",
        }
    }

    fn mailgun(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Opened => "opened",
            Self::Clicked => "clicked",
            Self::Bounced => "failed",
        }
    }
}

/// A post from SendGrid with all of these events.
pub(crate) fn sendgrid(
    token: &str,
    key: &EcdsaKeyPair,
    seconds: i64,
    reported: &[(Recipient, EventKind)],
) -> Post {
    let events: Vec<Value> = reported
        .iter()
        .map(|(recipient, kind)| sendgrid_event(recipient, *kind, seconds))
        .collect();
    let body = format!("{}\r\n", Value::Array(events));
    let signature = key.sign(&SystemRandom::new(), format!("{seconds}{body}").as_bytes());
    let signature = STANDARD.encode(signature.expect("a key signs").as_ref());
    let headers = format!(
        "x-twilio-email-event-webhook-signature: {signature}\r\nx-twilio-email-event-webhook-timestamp: {seconds}\r\n"
    );
    request(token, &headers, &body, reported.len())
}

fn sendgrid_event(recipient: &Recipient, kind: EventKind, seconds: i64) -> Value {
    let (nth, name) = (recipient.nth, kind.sendgrid());
    let mut event = json!({
        "email": format!("recipient{nth}@example.org"),
        "timestamp": seconds,
        "smtp-id": format!("<{}@geopod-ismtpd-18>", recipient.message.simple()),
        "event": name,
        "category": ["newsletter"],
        "sg_event_id": format!("{name}-{}", recipient.attempt.simple()),
        "sg_message_id": format!("sg-{nth}.recvd-69cd75c7cd-9cbhs-1-6735A0E5-9.0"),
        "waypost_message": recipient.message,
        "waypost_recipient": "0",
        "waypost_attempt": recipient.attempt,
    });
    let more = match kind {
        EventKind::Delivered => {
            json!({ "response": "250 2.0.0 OK 1795262400 d9443c01a7336-2ebcb2 - gsmtp", "ip": "168.245.77.60", "tls": 1 })
        }
        EventKind::Opened => {
            json!({ "useragent": "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)", "ip": "203.0.113.9", "sg_machine_open": false, "sg_content_type": "html" })
        }
        EventKind::Clicked => {
            json!({ "useragent": "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)", "ip": "203.0.113.9", "url": "https://shop.example.com/autumn?from=newsletter" })
        }
        EventKind::Bounced => {
            json!({ "type": "bounce", "bounce_classification": "Invalid Address", "reason": "550 5.1.1 The email account that you tried to reach does not exist.", "status": "5.1.1", "ip": "168.245.77.60", "tls": 1 })
        }
    };
    merge(&mut event, more);
    event
}

/// A post from Mailgun with one event.
pub(crate) fn mailgun(token: &str, seconds: i64, recipient: &Recipient, kind: EventKind) -> Post {
    let (nth, name) = (recipient.nth, kind.mailgun());
    let once = format!("{name}-{}", recipient.attempt.simple());
    let mut mac = Hmac::<Sha256>::new_from_slice(SIGNING_KEY.as_bytes()).expect("any length");
    mac.update(format!("{seconds}{once}").as_bytes());
    let mut event = json!({
        "event": name,
        "id": once,
        "timestamp": seconds,
        "log-level": "info",
        "recipient": format!("recipient{nth}@example.org"),
        "recipient-domain": "example.org",
        "tags": ["newsletter"],
        "message": { "headers": { "to": format!("recipient{nth}@example.org"), "message-id": format!("mg-{nth}@mg.example.com"), "from": "News <news@example.com>", "subject": "Autumn" }, "size": 12_345 },
        "user-variables": { "waypost_message": recipient.message, "waypost_recipient": "0", "waypost_attempt": recipient.attempt },
    });
    let more = match kind {
        EventKind::Delivered => {
            json!({ "delivery-status": { "code": 250, "message": "OK", "description": "", "tls": true, "mx-host": "mx.example.org", "session-seconds": 0.4 } })
        }
        EventKind::Opened => {
            json!({ "ip": "203.0.113.9", "client-info": { "client-type": "browser", "client-name": "Safari", "user-agent": "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)" } })
        }
        EventKind::Clicked => {
            json!({ "ip": "203.0.113.9", "url": "https://shop.example.com/autumn", "client-info": { "client-type": "browser", "client-name": "Safari", "user-agent": "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)" } })
        }
        EventKind::Bounced => {
            json!({ "severity": "permanent", "reason": "bounce", "delivery-status": { "code": 550, "message": "5.1.1 no such user", "description": "" } })
        }
    };
    merge(&mut event, more);
    let body = json!({
        "signature": { "timestamp": seconds.to_string(), "token": once, "signature": hex::encode(mac.finalize().into_bytes()) },
        "event-data": event,
    });
    request(token, "", &body.to_string(), 1)
}

fn merge(event: &mut Value, more: Value) {
    let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) else {
        return;
    };
    event.extend(more);
}

fn request(token: &str, headers: &str, body: &str, events: usize) -> Post {
    let length = body.len();
    let bytes = format!(
        "POST /v1/provider-events/{token} HTTP/1.1\r\nhost: waypost\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}"
    );
    Post {
        bytes: bytes.into(),
        events,
    }
}
