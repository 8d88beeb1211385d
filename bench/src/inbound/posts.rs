//! Posts as providers make them, signed and ready to be written.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::EcdsaKeyPair;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use uuid::Uuid;

/// What Mailgun signs with.
pub(crate) const SIGNING_KEY: &str = "key-of-the-measurement";

/// A request, head and body.
pub(crate) struct Post {
    pub(crate) bytes: Bytes,
    /// How many events it tells.
    pub(crate) events: usize,
}

/// A copy that may be told of.
#[derive(Clone, Copy)]
pub(crate) struct Copy {
    pub(crate) message: Uuid,
    pub(crate) attempt: Uuid,
    pub(crate) nth: usize,
}

/// What is told of a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    Delivered,
    Opened,
    Clicked,
    Bounced,
}

impl Word {
    /// Our word.
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

/// A post of SendGrid's, with all of these.
pub(crate) fn sendgrid(
    token: &str,
    key: &EcdsaKeyPair,
    seconds: i64,
    told: &[(Copy, Word)],
) -> Post {
    let events: Vec<Value> = told
        .iter()
        .map(|(copy, word)| sendgrid_event(copy, *word, seconds))
        .collect();
    let body = format!("{}\r\n", Value::Array(events));
    let signature = key.sign(&SystemRandom::new(), format!("{seconds}{body}").as_bytes());
    let signature = STANDARD.encode(signature.expect("a key signs").as_ref());
    let headers = format!(
        "x-twilio-email-event-webhook-signature: {signature}\r\nx-twilio-email-event-webhook-timestamp: {seconds}\r\n"
    );
    request(token, &headers, &body, told.len())
}

fn sendgrid_event(copy: &Copy, word: Word, seconds: i64) -> Value {
    let (nth, name) = (copy.nth, word.sendgrid());
    let mut event = json!({
        "email": format!("recipient{nth}@example.org"),
        "timestamp": seconds,
        "smtp-id": format!("<{}@geopod-ismtpd-18>", copy.message.simple()),
        "event": name,
        "category": ["newsletter"],
        "sg_event_id": format!("{name}-{}", copy.attempt.simple()),
        "sg_message_id": format!("sg-{nth}.recvd-69cd75c7cd-9cbhs-1-6735A0E5-9.0"),
        "waypost_message": copy.message,
        "waypost_recipient": "0",
        "waypost_attempt": copy.attempt,
    });
    let more = match word {
        Word::Delivered => {
            json!({ "response": "250 2.0.0 OK 1795262400 d9443c01a7336-2ebcb2 - gsmtp", "ip": "168.245.77.60", "tls": 1 })
        }
        Word::Opened => {
            json!({ "useragent": "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)", "ip": "203.0.113.9", "sg_machine_open": false, "sg_content_type": "html" })
        }
        Word::Clicked => {
            json!({ "useragent": "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)", "ip": "203.0.113.9", "url": "https://shop.example.com/autumn?from=newsletter" })
        }
        Word::Bounced => {
            json!({ "type": "bounce", "bounce_classification": "Invalid Address", "reason": "550 5.1.1 The email account that you tried to reach does not exist.", "status": "5.1.1", "ip": "168.245.77.60", "tls": 1 })
        }
    };
    merge(&mut event, more);
    event
}

/// A post of Mailgun's, with one.
pub(crate) fn mailgun(token: &str, seconds: i64, copy: &Copy, word: Word) -> Post {
    let (nth, name) = (copy.nth, word.mailgun());
    let once = format!("{name}-{}", copy.attempt.simple());
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
        "user-variables": { "waypost_message": copy.message, "waypost_recipient": "0", "waypost_attempt": copy.attempt },
    });
    let more = match word {
        Word::Delivered => {
            json!({ "delivery-status": { "code": 250, "message": "OK", "description": "", "tls": true, "mx-host": "mx.example.org", "session-seconds": 0.4 } })
        }
        Word::Opened => {
            json!({ "ip": "203.0.113.9", "client-info": { "client-type": "browser", "client-name": "Safari", "user-agent": "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)" } })
        }
        Word::Clicked => {
            json!({ "ip": "203.0.113.9", "url": "https://shop.example.com/autumn", "client-info": { "client-type": "browser", "client-name": "Safari", "user-agent": "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)" } })
        }
        Word::Bounced => {
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
