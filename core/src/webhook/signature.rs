//! Signs calls to endpoints: two signatures over one body.
//!
//! `X-Waypost-Signature` is Waypost's own: the hexadecimal HMAC-SHA256 of
//! `timestamp.body`, keyed with the secret's text. It is a single signature, since
//! receivers compare the whole header. `webhook-signature` is the signature of Standard
//! Webhooks (<https://www.standardwebhooks.com>, "Signature scheme"): `v1,` and the
//! base64 of the HMAC-SHA256 of `id.timestamp.body`, keyed with the secret's bytes. It
//! lists one signature per secret.
//!
//! During the grace period of a rotation, Waypost does not know whether a receiver has
//! the new or the old secret. Attempts then alternate: those with an even number sign
//! `X-Waypost-Signature` with the newest secret, the next ones with the one before. A
//! receiver that refuses the wrong secret gets the right one with the first retry.
//! `X-Waypost-Signature-Other` has the signatures by the other secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};
use sha2::Sha256;

use super::event_type::WebhookEventType;
use super::secret::SigningSecret;
use crate::clock::Timestamp;
use crate::ids::WebhookDeliveryId;

/// Waypost's signature.
pub const SIGNATURE: HeaderName = HeaderName::from_static("x-waypost-signature");
/// Waypost's signatures by the other secrets, separated by commas; absent if there is
/// only one secret.
pub const SIGNATURE_OTHER: HeaderName = HeaderName::from_static("x-waypost-signature-other");
/// When the call was signed, in Unix seconds.
pub const TIMESTAMP: HeaderName = HeaderName::from_static("x-waypost-timestamp");
/// The type of the event.
pub const EVENT: HeaderName = HeaderName::from_static("x-waypost-event");
/// Standard Webhooks: the id by which receivers recognize a repeated delivery.
pub const STANDARD_ID: HeaderName = HeaderName::from_static("webhook-id");
/// Standard Webhooks: when the call was signed, in Unix seconds.
pub const STANDARD_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
/// Standard Webhooks: the signatures, separated by spaces.
pub const STANDARD_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// The parts of a call that its headers depend on.
#[derive(Debug, Clone, Copy)]
pub struct Signing {
    /// The delivery: the same for all its attempts and after a replay.
    pub delivery_id: WebhookDeliveryId,
    pub event_type: WebhookEventType,
    /// The current time. Receivers refuse calls that were signed more than 5 minutes ago.
    pub at: Timestamp,
    /// The secret for `X-Waypost-Signature`, counted from the newest, modulo their
    /// number. The number of an attempt will do: attempts alternate.
    pub secret_index: u32,
}

/// All headers of a call with `body`. `secrets` are the valid ones, newest first; without
/// secrets there is no signature.
#[must_use]
pub fn headers(secrets: &[SigningSecret], signing: Signing, body: &[u8]) -> HeaderMap {
    let seconds = signing.at.timestamp().to_string();
    let id = signing.delivery_id.to_string();
    let mut own: Vec<String> = secrets
        .iter()
        .map(|secret| hex::encode(mac(&secret.by_text, &[seconds.as_bytes(), body])))
        .collect();
    let standard: Vec<String> = secrets
        .iter()
        .map(|secret| standard(secret, &id, &seconds, body))
        .collect();
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let event = HeaderValue::from_static(signing.event_type.as_str());
    headers.insert(EVENT, event);
    let mut insert = |name, text: &str| {
        let value = HeaderValue::from_str(text).expect("digits, letters and base64 are ASCII");
        headers.insert(name, value);
    };
    insert(TIMESTAMP, &seconds);
    insert(STANDARD_TIMESTAMP, &seconds);
    insert(STANDARD_ID, &id);
    insert(STANDARD_SIGNATURE, &standard.join(" "));
    if !own.is_empty() {
        let index = signing.secret_index as usize % own.len();
        insert(SIGNATURE, &own.remove(index));
    }
    if !own.is_empty() {
        insert(SIGNATURE_OTHER, &own.join(","));
    }
    headers
}

fn standard(secret: &SigningSecret, id: &str, seconds: &str, body: &[u8]) -> String {
    let signature = mac(&secret.by_bytes, &[id.as_bytes(), seconds.as_bytes(), body]);
    format!("v1,{}", STANDARD.encode(signature))
}

/// The HMAC of the parts, joined by dots.
fn mac(key: &Hmac<Sha256>, parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = key.clone();
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            mac.update(b".");
        }
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use uuid::Uuid;

    use super::*;

    /// The test vector of the Standard Webhooks libraries.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const SECONDS: &str = "1614265330";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;

    fn secret(text: &str) -> SigningSecret {
        SigningSecret::parse(text).unwrap()
    }

    fn signing(secret_index: u32) -> Signing {
        Signing {
            delivery_id: WebhookDeliveryId(Uuid::from_u128(7)),
            event_type: WebhookEventType::Delivered,
            at: DateTime::from_timestamp(1_614_265_330, 999_000_000).unwrap(),
            secret_index,
        }
    }

    fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
        headers.get(name).map(|value| value.to_str().unwrap())
    }

    #[test]
    fn the_standard_signature_matches_the_published_test_vector() {
        assert_eq!(
            standard(&secret(SECRET), ID, SECONDS, BODY),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn the_waypost_signature_is_keyed_with_the_whole_secret() {
        let headers = headers(&[secret(SECRET)], signing(0), BODY);
        // openssl dgst -sha256 -hmac whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
        let expected = "2e37df5d4a028c51a7f3133d64ae1e300d2c2c900f1b1d49d4369ad2530f8964";
        assert_eq!(text(&headers, SIGNATURE), Some(expected));
        assert_eq!(text(&headers, SIGNATURE_OTHER), None);
        assert_eq!(text(&headers, TIMESTAMP), Some(SECONDS));
        assert_eq!(text(&headers, STANDARD_TIMESTAMP), Some(SECONDS));
        assert_eq!(text(&headers, EVENT), Some("DELIVERED"));
        let id = "00000000-0000-0000-0000-000000000007";
        assert_eq!(text(&headers, STANDARD_ID), Some(id));
        assert_eq!(text(&headers, CONTENT_TYPE), Some("application/json"));
    }

    #[test]
    fn during_a_rotation_both_secrets_sign_and_alternate_in_the_waypost_signature() {
        let new = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        let both = [secret(new), secret(SECRET)];
        let alone = |text: &str| headers(&[secret(text)], signing(0), BODY);
        let (by_new, by_old) = (alone(new), alone(SECRET));
        for secret_index in 0..4 {
            let headers = headers(&both, signing(secret_index), BODY);
            let (expected, other) = match secret_index % 2 {
                0 => (&by_new, &by_old),
                _ => (&by_old, &by_new),
            };
            assert_eq!(text(&headers, SIGNATURE), text(expected, SIGNATURE));
            assert_eq!(text(&headers, SIGNATURE_OTHER), text(other, SIGNATURE));
            let listed = text(&headers, STANDARD_SIGNATURE).unwrap();
            let expected = [&by_new, &by_old];
            let expected = expected.map(|one| text(one, STANDARD_SIGNATURE).unwrap());
            assert_eq!(listed, expected.join(" "));
        }
    }
}
