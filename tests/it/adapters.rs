//! The adapters of the four providers with an HTTP API: their requests against the
//! providers' official descriptions, their signatures against published vectors, their
//! outcomes for every documented reply, the transport's outcomes for broken calls, and
//! which posted events are verified. No provider and no simulator takes part.
//!
//! The descriptions are in a folder beside the repository (`../shared/providers`, or under
//! `WAYPOST_SHARED_DIR`) and not part of it; the tests that need them print a line and pass
//! if they are missing.

mod batches;
mod conversations;
mod credentials;
pub(crate) mod documents;
mod events;
mod local_server;
mod lookups;
mod management;
mod replies;
mod requests;
mod signing;
mod suppression_lists;
mod transport;
mod whole_mail;

use bytes::Bytes;
use chrono::DateTime;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use url::Url;
use uuid::Uuid;
use waypost_core::address::Mailbox;
use waypost_core::clock::Timestamp;
use waypost_core::http::encoded;
use waypost_core::provider::call::{CallBody, ProviderCall, ProviderReply};
use waypost_core::provider::credentials::Credentials;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider::mail::OutgoingMail;
use waypost_core::provider::{AccountAccess, ProviderHosts};

/// A part of every secret in these tests.
const CANARY: &str = "ca9ary";

/// 2026-11-21 12:00:00 UTC.
fn now() -> Timestamp {
    DateTime::from_timestamp(1_795_262_400, 0).unwrap()
}

/// Credentials with every field of the type.
fn credentials_json(kind: ProviderType) -> Value {
    match kind {
        ProviderType::Sendgrid => json!({ "apiKey": "SG.ca9ary.key", "region": "eu" }),
        ProviderType::Postmark => json!({
            "serverToken": "ca9ary-server",
            "accountToken": "ca9ary-account",
            "messageStream": "outbound",
        }),
        ProviderType::Mailgun => json!({
            "apiKey": "ca9ary-key",
            "domain": "mg.example.com",
            "region": "eu",
        }),
        ProviderType::Ses => json!({
            "accessKeyId": "AKIAca9ary",
            "secretAccessKey": "ca9ary/secret+key",
            "region": "eu-central-1",
            "sessionToken": "ca9ary-session",
            "configurationSet": "waypost",
        }),
        ProviderType::Smtp => json!({
            "host": "smtp.example.com",
            "port": 2525,
            "username": "ca9ary user",
            "password": "ca9ary-pässword",
            "tls": "implicit",
        }),
    }
}

fn credentials(kind: ProviderType) -> Credentials {
    Credentials::parse(kind, &credentials_json(kind)).unwrap()
}

/// Runs `test` with access to the account of [`credentials`] at its real hosts.
fn with_access<T>(kind: ProviderType, test: impl FnOnce(&AccountAccess<'_>) -> T) -> T {
    with_access_at(kind, &ProviderHosts::real(), test)
}

fn with_access_at<T>(
    kind: ProviderType,
    endpoints: &ProviderHosts,
    test: impl FnOnce(&AccountAccess<'_>) -> T,
) -> T {
    test(&AccountAccess {
        credentials: &credentials(kind),
        endpoints,
        now: now(),
    })
}

/// A mail that uses every field.
fn rich_mail() -> OutgoingMail {
    OutgoingMail {
        message_id: Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001).into(),
        recipient: Some(7),
        attempt_id: Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0002).into(),
        from: Mailbox::parse("\"Müller, Zoë\" <zoe@example.com>").unwrap(),
        to: vec![Mailbox::parse("\"Lovelace, Ada\" <ada@example.org>").unwrap()],
        cc: Vec::new(),
        bcc: Vec::new(),
        reply_to: vec![Mailbox::parse("Hilfe ☂ <help@example.com>").unwrap()],
        subject: "Grüße 📬".to_owned(),
        html: Some("<p>Grüße</p>".to_owned()),
        text: Some("Grüße".to_owned()),
        tags: vec![
            "größe: XL".to_owned(),
            "b".to_owned(),
            "b".to_owned(),
            "c".to_owned(),
            "d".to_owned(),
        ],
        headers: vec![(
            "List-Unsubscribe".to_owned(),
            "<https://example.com/u/1>".to_owned(),
        )],
        attachments: Vec::new(),
    }
}

/// A mail with the required fields only.
fn plain_mail() -> OutgoingMail {
    OutgoingMail {
        from: Mailbox::parse("zoe@example.com").unwrap(),
        to: vec![Mailbox::parse("ada@example.org").unwrap()],
        reply_to: Vec::new(),
        html: None,
        tags: Vec::new(),
        headers: Vec::new(),
        ..rich_mail()
    }
}

fn reply(status: u16, headers: &[(&str, &str)], body: &str) -> ProviderReply {
    let headers = headers.iter().map(|(name, value)| {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        (name, HeaderValue::from_str(value).unwrap())
    });
    ProviderReply {
        status,
        headers: HeaderMap::from_iter(headers),
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}

fn json_body(call: &ProviderCall) -> Value {
    match &call.body {
        CallBody::Json(bytes) => serde_json::from_slice(bytes).unwrap(),
        CallBody::Pieces(pieces) => {
            let bytes: Vec<u8> = encoded(pieces.iter().cloned()).flatten().collect();
            serde_json::from_slice(&bytes).unwrap()
        }
        CallBody::Empty | CallBody::Form(_) => panic!("the call has no JSON body"),
    }
}

fn form_fields(call: &ProviderCall) -> &[(String, String)] {
    match &call.body {
        CallBody::Form(form) => &form.fields,
        CallBody::Empty | CallBody::Json(_) | CallBody::Pieces(_) => {
            panic!("the call has no form")
        }
    }
}

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}
