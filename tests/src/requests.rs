//! Valid credentials and messages, from which tests start.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::DEFAULT_SES_SECRET;

/// A From address whose domain is verified on every simulated account.
pub const SENDER: &str = "news@example.com";

/// The types with an HTTP API. SMTP has none, and so no domains, no tags and no custom
/// ids.
pub const HTTP_PROVIDERS: [ProviderType; 4] = [
    ProviderType::Sendgrid,
    ProviderType::Postmark,
    ProviderType::Mailgun,
    ProviderType::Ses,
];

/// Credentials that the simulator accepts, with all that makes domains visible.
#[must_use]
pub fn credentials(kind: ProviderType) -> Value {
    match kind {
        ProviderType::Sendgrid => json!({ "apiKey": "SG.good-key" }),
        ProviderType::Postmark => {
            json!({ "serverToken": "good-server", "accountToken": "good-account" })
        }
        ProviderType::Mailgun => json!({ "apiKey": "good-key", "domain": "example.com" }),
        ProviderType::Ses => json!({
            "accessKeyId": "AKIAGOOD",
            "secretAccessKey": DEFAULT_SES_SECRET,
            "region": "eu-central-1",
        }),
        ProviderType::Smtp => json!({
            "host": "smtp.example.com",
            "username": "good-user",
            "password": "good-password",
        }),
    }
}

/// Settings that leave a message's HTML unchanged, for tests that are not about tracking.
#[must_use]
pub fn untracked() -> Value {
    json!({ "opens": false, "clicks": false })
}

/// The types of the events of a message or a recipient, in order.
///
/// # Panics
/// If it has no events.
#[must_use]
pub fn event_types(of: &Value) -> Vec<String> {
    let events = of["events"].as_array().expect("it has events").iter();
    let types = events.map(|event| event["eventType"].as_str().expect("an event has a type"));
    types.map(str::to_owned).collect()
}

/// A small message to one recipient, whose content is not changed.
#[must_use]
pub fn message_to(recipient: &str) -> Value {
    json!({
        "from": SENDER,
        "to": recipient,
        "subject": "Hello",
        "html": "<p>Hello</p>",
        "text": "Hello",
        "tracking": untracked(),
    })
}

/// The hash by which the API names a recipient.
#[must_use]
pub fn to_hash(address: &str) -> String {
    hex::encode(Sha256::digest(address.trim().to_lowercase()))
}

/// Decodes the encoded words of a header (RFC 2047, base64 only, which is what Waypost
/// writes).
#[must_use]
pub fn decoded(header: &str) -> String {
    let mut text = String::new();
    let mut rest = header;
    while let Some((before, after)) = rest.split_once("=?utf-8?b?") {
        let (word, after) = after.split_once("?=").expect("an encoded word ends");
        let bytes = STANDARD.decode(word).expect("an encoded word is base64");
        // White space between two encoded words is not part of the text.
        if text.is_empty() || !before.trim().is_empty() {
            text.push_str(before);
        }
        text.push_str(&String::from_utf8(bytes).expect("an encoded word is whole"));
        rest = after;
    }
    text + rest
}
