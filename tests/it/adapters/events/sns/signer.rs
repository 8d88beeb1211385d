//! A signer that plays SNS: a key, a certificate for it, and messages that it signs.

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use chrono::SecondsFormat;
use serde_json::{Value, json};
use waypost_core::clock::Timestamp;

pub(super) const TOPIC: &str = "arn:aws:sns:eu-west-1:123456789012:ses-events";

pub(super) struct Signer {
    key: RsaKeyPair,
    /// The certificate, valid from 2025 to 2045.
    pub(super) pem: String,
}

impl Signer {
    pub(super) fn new() -> Self {
        let key = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let public: PublicKeyX509Der<'_> = key.public_key().as_der().unwrap();
        let pem = certificate(public.as_ref());
        Self { key, pem }
    }

    pub(super) fn notification(&self, message: &str, at: Timestamp) -> Value {
        self.signed(
            &["Message", "MessageId", "Timestamp", "TopicArn", "Type"],
            json!({
                "Type": "Notification",
                "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
                "TopicArn": TOPIC,
                "Message": message,
                "Timestamp": at.to_rfc3339_opts(SecondsFormat::Millis, true),
            }),
        )
    }

    /// A confirmation with the token `t0k`.
    pub(super) fn confirmation(&self, url: &str, at: Timestamp) -> Value {
        let names = [
            "Message",
            "MessageId",
            "SubscribeURL",
            "Timestamp",
            "Token",
            "TopicArn",
            "Type",
        ];
        self.signed(
            &names,
            json!({
                "Type": "SubscriptionConfirmation",
                "MessageId": "165545c9-2a5c-472c-8df2-7ff2be2b3b1b",
                "Token": "t0k",
                "TopicArn": TOPIC,
                "Message": "You have chosen to subscribe.",
                "SubscribeURL": url,
                "Timestamp": at.to_rfc3339_opts(SecondsFormat::Millis, true),
            }),
        )
    }

    /// The same with a message that may be invalid UTF-8, as it is posted.
    pub(super) fn notification_of_bytes(&self, message: &[u8], at: Timestamp) -> Vec<u8> {
        let mut document = self.notification("{}", at);
        let text = |name: &str| document[name].as_str().unwrap().to_owned();
        let rest = format!(
            "\nMessageId\n{}\nTimestamp\n{}\nTopicArn\n{TOPIC}\nType\nNotification\n",
            text("MessageId"),
            text("Timestamp")
        );
        let signed = [&b"Message\n"[..], message, rest.as_bytes()];
        document["Signature"] = json!(self.sign(&signed.concat()));
        let document = document.to_string();
        let (before, after) = document.split_once("\"{}\"").unwrap();
        let mut posted = before.as_bytes().to_vec();
        posted.push(b'"');
        for byte in message {
            if matches!(byte, b'"' | b'\\') {
                posted.push(b'\\');
            }
            posted.push(*byte);
        }
        posted.push(b'"');
        posted.extend_from_slice(after.as_bytes());
        posted
    }

    fn sign(&self, text: &[u8]) -> String {
        let mut signature = vec![0; self.key.public_modulus_len()];
        let random = SystemRandom::new();
        self.key
            .sign(&RSA_PKCS1_SHA256, &random, text, &mut signature)
            .unwrap();
        BASE64.encode(signature)
    }

    fn signed(&self, names: &[&str], mut message: Value) -> Value {
        let lines = names
            .iter()
            .map(|name| format!("{name}\n{}\n", message[*name].as_str().unwrap()));
        let text: String = lines.collect();
        message["SignatureVersion"] = json!("2");
        message["Signature"] = json!(self.sign(text.as_bytes()));
        message["SigningCertURL"] = json!("https://sns.eu-west-1.amazonaws.com/made.pem");
        message
    }
}

/// The reply to a GET. It lives as long as the test process.
pub(super) fn answer(status: u16, content: &str) -> &'static str {
    let length = content.len();
    let text = format!("HTTP/1.1 {status} Answer\r\ncontent-length: {length}\r\n\r\n{content}");
    Box::leak(text.into_boxed_str())
}

/// A certificate of version 3 with this key (RFC 5280, 4.1), without a signature: SNS'
/// certificates are trusted for their host.
fn certificate(public_key: &[u8]) -> String {
    const SHA256_WITH_RSA: &[u8] = &[42, 134, 72, 134, 247, 13, 1, 1, 11];
    const COMMON_NAME: &[u8] = &[85, 4, 3];
    let sequence = |parts: &[Vec<u8>]| der(0x30, &parts.concat());
    let algorithm = sequence(&[der(0x06, SHA256_WITH_RSA), der(0x05, &[])]);
    let name = sequence(&[der(
        0x31,
        &sequence(&[der(0x06, COMMON_NAME), der(0x0c, b"sns.amazonaws.com")]),
    )]);
    let validity = sequence(&[der(0x17, b"250101000000Z"), der(0x17, b"450101000000Z")]);
    let content = sequence(&[
        der(0xa0, &der(0x02, &[2])),
        der(0x02, &[1]),
        algorithm.clone(),
        name.clone(),
        validity,
        name,
        public_key.to_vec(),
    ]);
    let whole = sequence(&[content, algorithm, der(0x03, &[0; 257])]);
    let lines: Vec<String> = BASE64
        .encode(whole)
        .as_bytes()
        .chunks(64)
        .map(|line| String::from_utf8(line.to_vec()).unwrap())
        .collect();
    let lines = lines.join("\n");
    format!("-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n")
}

/// A value with its tag and length (X.690, 8.1).
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let [.., high, low] = length.to_be_bytes();
    let head = match length {
        0..=127 => vec![tag, low],
        128..=255 => vec![tag, 0x81, low],
        _ => vec![tag, 0x82, high, low],
    };
    [head, content.to_vec()].concat()
}
