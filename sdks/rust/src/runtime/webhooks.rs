//! Verifies what Waypost posts to your webhook endpoints. It needs no client.
//!
//! ```
//! # fn example(body: Vec<u8>, headers: waypost::reqwest::header::HeaderMap) -> Result<(), waypost::Error> {
//! use waypost::{types::WebhookEvent, webhooks};
//!
//! match webhooks::verify(&body, &headers, ["whsec_…"])? {
//!     WebhookEvent::Bounced(event) => println!("{} bounced", event.data.recipient),
//!     _ => {}
//! }
//! # Ok(()) }
//! ```

use std::collections::HashMap;

use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD, Engine as _};
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use uuid::Uuid;

use crate::generated::errors::Error;
use crate::generated::types::WebhookEvent;

const TOLERANCE_S: u64 = 300;
/// More signatures than a rotation can make are not looked at.
const SIGNATURES_MAX: usize = 10;

/// A body as it came: text or bytes.
#[diagnostic::on_unimplemented(
    message = "`verify` needs the raw body, as text or bytes, not `{Self}`",
    note = "parsed JSON is not the raw body: writing it again changes the bytes that were signed"
)]
pub trait RawBody: AsRef<[u8]> {}

#[diagnostic::do_not_recommend]
impl<T: AsRef<[u8]> + ?Sized> RawBody for T {}

/// Makes the signature for a secret, an id, a time and a body.
type Scheme = fn(&str, &str, &str, &[u8]) -> String;

/// The event of a request to your webhook endpoint, if Waypost signed it in the last five minutes. A newer Waypost may
/// send events of other types: ignore what you do not know.
///
/// - `body`: the body as it came, before anything parses it.
/// - `headers`: the headers of the request: `&HeaderMap`, or any pairs of names and values.
/// - `secrets`: the endpoint's secret (`whsec_…`), or several: each may have signed it.
pub fn verify<N: AsRef<str>, V: AsRef<[u8]>>(
    body: impl RawBody,
    headers: impl IntoIterator<Item = (N, V)>,
    secrets: impl IntoIterator<Item = impl AsRef<str>>,
) -> Result<WebhookEvent, Error> {
    verify_at(body, headers, secrets, Utc::now())
}

/// Does what [`verify`] does, and compares with this time, for tests.
pub fn verify_at<N: AsRef<str>, V: AsRef<[u8]>>(
    body: impl RawBody,
    headers: impl IntoIterator<Item = (N, V)>,
    secrets: impl IntoIterator<Item = impl AsRef<str>>,
    now: DateTime<Utc>,
) -> Result<WebhookEvent, Error> {
    let refuse = |text: &str| Err(Error::Webhook(text.to_owned()));
    let secrets = secrets.into_iter().filter(|secret| !secret.as_ref().is_empty());
    let (body, secrets) = (body.as_ref(), secrets.collect::<Vec<_>>());
    if secrets.is_empty() {
        return refuse("The secret is empty. Waypost shows it once, when the endpoint is made (whsec_…).");
    }
    let headers: HashMap<_, _> = headers.into_iter().map(|(it, value)| (it.as_ref().to_lowercase(), value)).collect();
    let get = |name: &str| headers.get(name).and_then(|value| str::from_utf8(value.as_ref()).ok()).unwrap_or_default();
    let owns = ["x-waypost-signature", "x-waypost-signature-other"];
    let owns = owns.map(|name| (own as Scheme, get("x-waypost-timestamp"), get(name)));
    let standards = get("webhook-signature").split(' ').take(SIGNATURES_MAX);
    let standards = standards.map(|signature| (standard as Scheme, get("webhook-timestamp"), signature));
    let given = owns.into_iter().chain(standards);
    let mut given = given.filter(|(_, time, signature)| !time.is_empty() && !signature.is_empty()).peekable();
    if given.peek().is_none() {
        return refuse("The request has no signature. Pass all its headers, webhook-id and those of X-Waypost too.");
    }
    let age = |time: &str| time.parse().map(|time: i64| time.abs_diff(now.timestamp()));
    let mut fresh = given.filter(|(_, time, _)| age(time).is_ok_and(|age| age <= TOLERANCE_S)).peekable();
    if fresh.peek().is_none() {
        return refuse("It was not signed within five minutes of now: the request is an old one, or a clock is wrong.");
    }
    let genuine = |(scheme, time, signature): (Scheme, &str, &str)| {
        let mut expected = secrets.iter().map(|secret| scheme(secret.as_ref(), get("webhook-id"), time, body));
        expected.any(|expected| equal(signature, &expected))
    };
    if !fresh.any(genuine) {
        return refuse("No signature is by this secret. Is it the endpoint's, and is this the raw body, unchanged?");
    }
    serde_json::from_slice(body)
        .or_else(|error| refuse(&format!("The event is genuine, but not one that this version can read: {error}.")))
}

/// The headers that Waypost would send with this body, to test your receiver.
pub fn sign(body: impl RawBody, secret: &str) -> [(&'static str, String); 5] {
    sign_at(body, secret, &Uuid::new_v4().to_string(), Utc::now())
}

/// Does what [`sign`] does, for the delivery with this id, at this time.
pub fn sign_at(body: impl RawBody, secret: &str, id: &str, now: DateTime<Utc>) -> [(&'static str, String); 5] {
    let time = now.timestamp().to_string();
    let signature = |scheme: Scheme| scheme(secret, id, &time, body.as_ref());
    [
        ("x-waypost-timestamp", time.clone()),
        ("x-waypost-signature", signature(own)),
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", time.clone()),
        ("webhook-signature", signature(standard)),
    ]
}

fn own(secret: &str, _id: &str, time: &str, body: &[u8]) -> String {
    hmac(secret.as_bytes(), &format!("{time}."), body).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// That of Standard Webhooks, whose key is what the secret says in base64; empty if it is not base64.
fn standard(secret: &str, id: &str, time: &str, body: &[u8]) -> String {
    let key = secret.trim_start_matches("whsec_").trim_end_matches('=');
    let key = BASE64_STANDARD_NO_PAD.decode(key).unwrap_or_default();
    let mac = BASE64_STANDARD.encode(hmac(&key, &format!("{id}.{time}."), body));
    if key.is_empty() { String::new() } else { format!("v1,{mac}") }
}

fn hmac(key: &[u8], start: &str, body: &[u8]) -> Vec<u8> {
    let mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.chain_update(start).chain_update(body).finalize().into_bytes().to_vec()
}

/// Compares in constant time: how long it takes must not tell how much of a guess is right.
fn equal(given: &str, expected: &str) -> bool {
    let pairs = given.bytes().zip(expected.bytes());
    let difference = pairs.fold(given.len() ^ expected.len(), |sum, (a, b)| sum | usize::from(a ^ b));
    std::hint::black_box(difference) == 0 && !expected.is_empty()
}
