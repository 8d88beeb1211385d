//! AWS Signature Version 4, the verifying side, written from the published algorithm.
//!
//! Only [`verify`] depends on SES: it requires the service name `ses`. The path is
//! encoded once more than in the request, as for every service but S3.

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sha2::{Digest, Sha256};

use crate::request::Request;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const TERMINATOR: &str = "aws4_request";
const SERVICE: &str = "ses";
const DATE_HEADER: &str = "x-amz-date";
const HASH_HEADER: &str = "x-amz-content-sha256";
const DATE_FORMAT: &str = "%Y%m%dT%H%M%SZ";
const SKEW_MAX: TimeDelta = TimeDelta::minutes(15);
/// Everything but the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A parsed `Authorization` header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Authorization<'a> {
    pub(super) access_key_id: &'a str,
    pub(super) date: &'a str,
    pub(super) region: &'a str,
    pub(super) service: &'a str,
    pub(super) signed_headers: &'a str,
    pub(super) signature: &'a str,
}

/// The reason why a signature is invalid.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Expired,
    Incomplete(&'static str),
    Mismatch(String),
}

impl<'a> Authorization<'a> {
    pub(super) fn parse(header: &'a str) -> Result<Self, &'static str> {
        let rest = header
            .strip_prefix(ALGORITHM)
            .ok_or("Authorization header requires the algorithm 'AWS4-HMAC-SHA256'.")?;
        let part = |name: &str| {
            rest.split(',')
                .find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
        };
        let credential =
            part("Credential").ok_or("Authorization header requires 'Credential' parameter.")?;
        let mut scope = credential.rsplitn(5, '/');
        let mut next = || scope.next().filter(|part| !part.is_empty());
        let (Some(TERMINATOR), Some(service), Some(region), Some(date), Some(access_key_id)) =
            (next(), next(), next(), next(), next())
        else {
            return Err("Credential must have five elements and end in 'aws4_request'.");
        };
        Ok(Self {
            access_key_id,
            date,
            region,
            service,
            signed_headers: part("SignedHeaders")
                .ok_or("Authorization header requires 'SignedHeaders' parameter.")?,
            signature: part("Signature")
                .ok_or("Authorization header requires 'Signature' parameter.")?,
        })
    }

    fn scope(&self) -> String {
        let (date, region, service) = (self.date, self.region, self.service);
        format!("{date}/{region}/{service}/{TERMINATOR}")
    }
}

/// Verifies the signature of a request to SES.
pub(super) fn verify(
    request: &Request,
    authorization: &Authorization<'_>,
    secret: &str,
    now: DateTime<Utc>,
) -> Result<(), Failure> {
    if authorization.service != SERVICE {
        let text = "Credential should be scoped to correct service: 'ses'.";
        return Err(Failure::Mismatch(text.to_owned()));
    }
    let timestamp = request
        .header(DATE_HEADER)
        .ok_or(Failure::Incomplete("The header 'X-Amz-Date' is required."))?;
    let signed_at = NaiveDateTime::parse_from_str(timestamp, DATE_FORMAT)
        .map_err(|_| Failure::Incomplete("Date must be in ISO-8601 'basic format'."))?
        .and_utc();
    if (now - signed_at).abs() > SKEW_MAX {
        return Err(Failure::Expired);
    }
    if !timestamp.starts_with(authorization.date) {
        let text =
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date.";
        return Err(Failure::Mismatch(text.to_owned()));
    }
    require_signed(authorization.signed_headers, &request.headers)?;
    let payload_hash = hex::encode(Sha256::digest(&request.body));
    if request
        .header(HASH_HEADER)
        .is_some_and(|given| given != payload_hash)
    {
        let text = "The value of 'x-amz-content-sha256' does not match the body.";
        return Err(Failure::Mismatch(text.to_owned()));
    }
    let canonical = canonical_request(
        request.method.as_str(),
        request.path(),
        request.uri.query().unwrap_or_default(),
        &request.headers,
        authorization.signed_headers,
        &payload_hash,
    );
    let to_sign = string_to_sign(timestamp, &authorization.scope(), &canonical);
    if constant_time_eq(
        &signature(secret, authorization, &to_sign),
        authorization.signature,
    ) {
        return Ok(());
    }
    Err(Failure::Mismatch(format!(
        "The request signature we calculated does not match the signature you provided. Check \
         your AWS Secret Access Key and signing method. Consult the service documentation for \
         details.\n\nThe Canonical String for this request should have been\n'{canonical}'\n\nThe \
         String-to-Sign should have been\n'{to_sign}'\n"
    )))
}

fn require_signed(signed_headers: &str, headers: &HeaderMap) -> Result<(), Failure> {
    let is_signed = |name| signed_headers.split(';').any(|signed| signed == name);
    if !is_signed("host") || !is_signed(DATE_HEADER) {
        let text = "'Host' and 'X-Amz-Date' must be 'SignedHeaders' in the AWS Authorization.";
        return Err(Failure::Incomplete(text));
    }
    if headers.contains_key(HASH_HEADER) && !is_signed(HASH_HEADER) {
        let text = "'X-Amz-Content-Sha256' must be a 'SignedHeader' in the AWS Authorization.";
        return Err(Failure::Incomplete(text));
    }
    Ok(())
}

fn canonical_request(
    method: &str,
    path: &str,
    query: &str,
    headers: &HeaderMap,
    signed_headers: &str,
    payload_hash: &str,
) -> String {
    let (path, query) = (canonical_path(path), canonical_query(query));
    let mut text = format!("{method}\n{path}\n{query}\n");
    for name in signed_headers.split(';') {
        text.push_str(name);
        text.push(':');
        for (at, value) in headers.get_all(name).iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            push_collapsed(&mut text, &String::from_utf8_lossy(value.as_bytes()));
        }
        text.push('\n');
    }
    text.push('\n');
    text.push_str(signed_headers);
    text.push('\n');
    text.push_str(payload_hash);
    text
}

/// Removes dot segments and repeated slashes, then encodes each segment.
fn canonical_path(path: &str) -> String {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            _ => segments.push(segment),
        }
    }
    let mut text = String::with_capacity(path.len() + 8);
    for segment in &segments {
        text.push('/');
        text.extend(utf8_percent_encode(segment, ENCODED));
    }
    if segments.is_empty() || path.ends_with('/') {
        text.push('/');
    }
    text
}

/// Decodes and strictly encodes names and values, and sorts the pairs.
fn canonical_query(query: &str) -> String {
    let encode = |text: &str| {
        let decoded = percent_decode_str(text).decode_utf8_lossy();
        utf8_percent_encode(&decoded, ENCODED).to_string()
    };
    let mut pairs: Vec<(String, String)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (encode(name), encode(value)))
        .collect();
    pairs.sort();
    let pairs: Vec<String> = pairs
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join("&")
}

/// Trims a header value and collapses spaces.
fn push_collapsed(text: &mut String, value: &str) {
    for (at, call_body) in value
        .split(' ')
        .filter(|call_body| !call_body.is_empty())
        .enumerate()
    {
        if at > 0 {
            text.push(' ');
        }
        text.push_str(call_body);
    }
}

fn string_to_sign(timestamp: &str, scope: &str, canonical_request: &str) -> String {
    let hash = hex::encode(Sha256::digest(canonical_request));
    format!("{ALGORITHM}\n{timestamp}\n{scope}\n{hash}")
}

fn signature(secret: &str, authorization: &Authorization<'_>, string_to_sign: &str) -> String {
    let parts = [
        authorization.date,
        authorization.region,
        authorization.service,
        TERMINATOR,
        string_to_sign,
    ];
    let mut key = format!("AWS4{secret}").into_bytes();
    for part in parts {
        key = sign(&key, part.as_bytes());
    }
    hex::encode(key)
}

fn sign(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(data);
    mac.finalize().into_bytes().to_vec()
}

fn constant_time_eq(left: &str, right: &str) -> bool {
    let difference = left
        .bytes()
        .zip(right.bytes())
        .fold(0, |difference, (left, right)| difference | (left ^ right));
    left.len() == right.len() && difference == 0
}

#[cfg(test)]
#[path = "sigv4_tests.rs"]
mod tests;
