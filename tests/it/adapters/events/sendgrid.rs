//! SendGrid: ECDSA over the timestamp header and the raw body.

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use waypost_core::provider::event::BounceType;

use super::*;

const SIGNATURE: &str = "X-Twilio-Email-Event-Webhook-Signature";
const TIMESTAMP: &str = "X-Twilio-Email-Event-Webhook-Timestamp";
const FOLDER: &str = "providers/fixtures/sendgrid";

fn secrets(public_key: &str) -> EventSecrets {
    EventSecrets::Sendgrid {
        public_key: public_key.to_owned(),
    }
}

/// The published vectors, each with its body.
fn vectors() -> Vec<(Value, Vec<u8>)> {
    let Some(document) = shared(&format!("{FOLDER}/signed.vectors.json")) else {
        return Vec::new();
    };
    let vectors = document["vectors"].as_array().unwrap();
    assert_eq!(vectors.len(), 5);
    let body = |vector: &Value| shared_bytes(&format!("{FOLDER}/{}", text(vector, "body_file")));
    vectors
        .iter()
        .map(|vector| (vector.clone(), body(vector).unwrap()))
        .collect()
}

async fn receive_at(
    vector: &Value,
    body: &[u8],
    now: Timestamp,
) -> Result<Received, InboundRefusal> {
    let headers = [
        (SIGNATURE, text(vector, "signature")),
        (TIMESTAMP, text(vector, "timestamp")),
    ];
    posted(&secrets(text(vector, "public_key")), &headers, body, now).await
}

#[tokio::test]
async fn the_published_signatures_are_verified_as_labelled() {
    for (vector, body) in vectors() {
        let signed_at = text(&vector, "timestamp").parse().unwrap_or(1_600_112_502);
        let result = receive_at(&vector, &body, at(signed_at)).await;
        if vector["valid"] == true {
            let received = result.unwrap();
            assert!(!received.events.is_empty(), "{vector}");
            assert_eq!((received.skipped, received.unreadable), (0, 0));
            assert_eq!(received.replay_guard, None);
        } else {
            unverified(result);
        }
    }
}

#[tokio::test]
async fn every_change_breaks_the_signature() {
    for (vector, body) in vectors() {
        if vector["valid"] != true {
            continue;
        }
        let signed_at: i64 = text(&vector, "timestamp").parse().unwrap();
        let without_line_end = body.strip_suffix(b"\r\n").unwrap();
        let mut flipped = body.clone();
        flipped[10] ^= 1;
        for changed in [without_line_end, &flipped, b"[]"] {
            unverified(receive_at(&vector, changed, at(signed_at)).await);
        }
        let mut later = vector.clone();
        later["timestamp"] = (signed_at + 1).to_string().into();
        unverified(receive_at(&later, &body, at(signed_at)).await);
        for (name, broken) in [
            ("signature", ""),
            ("signature", "!"),
            ("signature", "AAAA"),
            ("public_key", ""),
            ("public_key", "!"),
            ("public_key", "AAAA"),
        ] {
            let mut changed = vector.clone();
            changed[name] = broken.into();
            unverified(receive_at(&changed, &body, at(signed_at)).await);
        }
        let (signature, timestamp) = (text(&vector, "signature"), text(&vector, "timestamp"));
        for headers in [
            &[][..],
            &[(SIGNATURE, signature)],
            &[(TIMESTAMP, timestamp)],
            &[
                (SIGNATURE, signature),
                (TIMESTAMP, timestamp),
                (TIMESTAMP, timestamp),
            ],
        ] {
            let secrets = secrets(text(&vector, "public_key"));
            let why = unverified(posted(&secrets, headers, &body, at(signed_at)).await);
            assert_eq!(why, "it is not signed");
        }
    }
}

#[tokio::test]
async fn a_post_repeated_for_a_day_is_verified_and_an_old_one_is_not() {
    for (vector, body) in vectors() {
        if vector["valid"] != true {
            continue;
        }
        let signed_at = at(text(&vector, "timestamp").parse().unwrap());
        for hours in [-23, 0, 24, 36] {
            let now = signed_at + TimeDelta::hours(hours);
            assert!(receive_at(&vector, &body, now).await.is_ok(), "{hours}");
        }
        for hours in [-25, 37, 24 * 365] {
            let now = signed_at + TimeDelta::hours(hours);
            let why = unverified(receive_at(&vector, &body, now).await);
            assert!(why.contains("too old") || why.contains("future"), "{why}");
        }
    }
}

#[tokio::test]
async fn a_batch_of_every_kind_is_read() {
    use ProviderEventKind::*;
    let samples = ["events-all-types.json", "events-official-client.json"];
    let samples = samples.map(|name| shared_bytes(&format!("{FOLDER}/{name}")));
    let [Some(all_types), Some(official)] = samples else {
        return;
    };
    let received = signed_now(&all_types).await.unwrap();
    let is_bot = false;
    let bounces = [BounceType::Hard, BounceType::Block].map(Bounced);
    let expected = [
        &[Sent, Dropped, Delivered, Deferred][..],
        &bounces,
        &[Opened { is_bot }, Clicked { is_bot }, Complained],
        &[Unsubscribed, Unsubscribed, Sent],
    ];
    assert_eq!(kinds(&received.events), expected.concat());
    assert_eq!((received.skipped, received.unreadable), (1, 0));
    // It begins with a byte order mark.
    let received = signed_now(&official).await.unwrap();
    assert_eq!(received.events.len(), 10);
    assert_eq!((received.skipped, received.unreadable), (1, 0));
}

#[tokio::test]
async fn a_genuine_post_without_an_array_is_unreadable() {
    for body in [&b""[..], b"{}", b"[", b"\xff"] {
        let result = signed_now(body).await;
        assert!(
            matches!(result, Err(InboundRefusal::Malformed { .. })),
            "{result:?}"
        );
    }
}

/// Posts a body signed now with a key of this test.
async fn signed_now(body: &[u8]) -> Result<Received, InboundRefusal> {
    let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap();
    let public: PublicKeyX509Der<'_> = key.public_key().as_der().unwrap();
    let timestamp = now().timestamp().to_string();
    let signed = [timestamp.as_bytes(), body].concat();
    let signature = key.sign(&SystemRandom::new(), &signed).unwrap();
    let headers = [
        (SIGNATURE, &*BASE64.encode(signature)),
        (TIMESTAMP, &timestamp),
    ];
    let secrets = secrets(&BASE64.encode(public.as_ref()));
    posted(&secrets, &headers, body, now()).await
}
