//! Verifies each signature, written from the vendors' documentation. The published test
//! vectors are verified with it too, so that it cannot agree with the simulator alone.

use std::path::PathBuf;

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY,
    RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

use super::receiver::Post;

const SIGNATURE: &str = "X-Twilio-Email-Event-Webhook-Signature";
const TIMESTAMP: &str = "X-Twilio-Email-Event-Webhook-Timestamp";

/// Whether a post is signed with the key of this public key.
pub(super) fn is_from_sendgrid(post: &Post, public_key: &str) -> bool {
    let (timestamp, signature) = (post.header(TIMESTAMP), post.header(SIGNATURE));
    sendgrid(public_key, timestamp, &post.body, signature)
}

fn sendgrid(public_key: &str, timestamp: &str, body: &[u8], signature: &str) -> bool {
    let der = STANDARD.decode(public_key).expect("the key is base64");
    // The point is the last element of a SubjectPublicKeyInfo, uncompressed.
    let point = &der[der.len() - 65..];
    let signature = STANDARD.decode(signature).expect("the signature is base64");
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point)
        .verify(&[timestamp.as_bytes(), body].concat(), &signature)
        .is_ok()
}

/// Whether the signature of an event was made with this key.
pub(super) fn is_from_mailgun(body: &Value, signing_key: &str) -> bool {
    let part = |name: &str| body["signature"][name].as_str().unwrap_or_default();
    let mut mac = Hmac::<Sha256>::new_from_slice(signing_key.as_bytes()).expect("any length");
    mac.update(format!("{}{}", part("timestamp"), part("token")).as_bytes());
    hex::encode(mac.finalize().into_bytes()) == part("signature")
}

/// Whether an SNS message was signed with the key of this certificate.
pub(super) fn is_from_sns(message: &Value, certificate: &str) -> bool {
    let names: &[&str] = match message["Type"].as_str() {
        Some("Notification") => &[
            "Message",
            "MessageId",
            "Subject",
            "Timestamp",
            "TopicArn",
            "Type",
        ],
        _ => &[
            "Message",
            "MessageId",
            "SubscribeURL",
            "Timestamp",
            "Token",
            "TopicArn",
            "Type",
        ],
    };
    let mut text = String::new();
    for name in names {
        if let Some(value) = message[*name].as_str() {
            text.extend([name, "\n", value, "\n"]);
        }
    }
    let algorithm = match message["SignatureVersion"].as_str() {
        Some("1") => &RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY,
        Some("2") => &RSA_PKCS1_2048_8192_SHA256,
        _ => return false,
    };
    let signature = message["Signature"].as_str().unwrap_or_default();
    let signature = STANDARD.decode(signature).expect("the signature is base64");
    UnparsedPublicKey::new(algorithm, rsa_key(certificate))
        .verify(text.as_bytes(), &signature)
        .is_ok()
}

/// The RSA public key of a certificate (RFC 5280 §4.1).
fn rsa_key(certificate: &str) -> Vec<u8> {
    let lines = certificate.lines().filter(|line| !line.contains("-----"));
    let der = STANDARD.decode(lines.collect::<String>());
    let der = der.expect("the certificate is PEM");
    let (certificate, _) = element(&der);
    let (mut rest, _) = element(certificate);
    // Version, serial number, signature, issuer, validity and subject come before the
    // key.
    for _ in 0..6 {
        rest = element(rest).1;
    }
    let (key_info, _) = element(rest);
    let (_algorithm, rest) = element(key_info);
    // A bit string; its first byte is the number of unused bits.
    element(rest).0[1..].to_vec()
}

fn element(der: &[u8]) -> (&[u8], &[u8]) {
    let (length, start) = match usize::from(der[1]) {
        short @ 0..0x80 => (short, 2),
        long => {
            let end = 2 + (long & 0x7f);
            let digits = der[2..end].iter();
            (
                digits.fold(0, |sum, &digit| sum << 8 | usize::from(digit)),
                end,
            )
        }
    };
    (&der[start..start + length], &der[start + length..])
}

/// `WAYPOST_PROVIDER_FIXTURES`, or the folder beside the repository.
fn fixture(name: &str) -> Option<String> {
    let beside = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/providers/fixtures"
    );
    let folder = std::env::var_os("WAYPOST_PROVIDER_FIXTURES")
        .map_or_else(|| PathBuf::from(beside), PathBuf::from);
    std::fs::read_to_string(folder.join(name)).ok()
}

#[test]
fn published_signatures_of_sendgrid_are_verified() {
    let Some(text) = fixture("sendgrid/signed.vectors.json") else {
        eprintln!("skipped: no published vectors");
        return;
    };
    let all: Value = serde_json::from_str(&text).expect("is JSON");
    for vector in all["vectors"].as_array().expect("is a list") {
        let text = |name: &str| vector[name].as_str().unwrap_or_default();
        let body = fixture(&format!("sendgrid/{}", text("body_file")));
        let body = body.expect("the body is beside the vectors");
        let is_valid = sendgrid(
            text("public_key"),
            text("timestamp"),
            body.as_bytes(),
            text("signature"),
        );
        assert_eq!(is_valid, vector["valid"] == true, "{vector}");
    }
}

#[test]
fn published_signatures_of_sns_are_verified() {
    let Some(certificate) = fixture("sns/sns-signing-cert-2022.pem") else {
        eprintln!("skipped: no published vectors");
        return;
    };
    let text = fixture("sns/signed-notifications.json").expect("the file is beside the other");
    let all: Vec<Value> = serde_json::from_str(&text).expect("is a list");
    assert!(!all.is_empty());
    for mut message in all {
        assert!(is_from_sns(&message, &certificate), "{message}");
        message["Message"] = "another".into();
        assert!(!is_from_sns(&message, &certificate));
    }
}
