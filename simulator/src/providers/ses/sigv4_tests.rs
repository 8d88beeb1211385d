//! The published test suite, read from its folder; the test prints a note and passes
//! without it.

use std::path::PathBuf;

use chrono::{NaiveDateTime, TimeDelta};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{
    Authorization, DATE_FORMAT, Failure, canonical_request, signature, string_to_sign, verify,
};
use crate::request::Request;

const SUITE: &str = "sigv4/aws-signing-test-suite-selection.json";

/// `WAYPOST_PROVIDER_FIXTURES`, or the folder beside the repository.
fn suite() -> Option<Vec<Value>> {
    let beside = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/providers/fixtures"
    );
    let folder = std::env::var_os("WAYPOST_PROVIDER_FIXTURES")
        .map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let text = std::fs::read_to_string(folder.join(SUITE)).ok()?;
    serde_json::from_str(&text).ok()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

struct Case {
    method: String,
    path: String,
    query: String,
    headers: HeaderMap,
    authorization: String,
    body: String,
}

/// The suite has requests with plain line feeds, and paths that are not encoded yet.
fn parse(signed_request: &str) -> Case {
    let (head, body) = signed_request
        .split_once("\n\n")
        .unwrap_or((signed_request, ""));
    let mut lines = head.lines();
    let first = lines.next().unwrap_or_default();
    let (method, rest) = first.split_once(' ').unwrap_or_default();
    let target = rest.strip_suffix(" HTTP/1.1").unwrap_or(rest);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("the suite has good names");
        let value = HeaderValue::from_str(value.trim()).expect("the suite has good values");
        headers.append(name, value);
    }
    let authorization = headers
        .remove("authorization")
        .expect("every case is signed");
    Case {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers,
        authorization: authorization.to_str().expect("is text").to_owned(),
        body: body.to_owned(),
    }
}

#[test]
fn the_published_test_suite_holds() {
    let Some(cases) = suite() else {
        println!("skipped: {SUITE} not found; set WAYPOST_PROVIDER_FIXTURES");
        return;
    };
    assert!(!cases.is_empty());
    for expected in &cases {
        let name = text(expected, "case");
        let case = parse(text(expected, "header_signed_request"));
        let authorization = Authorization::parse(&case.authorization).expect("is well-formed");
        let timestamp = case.headers["x-amz-date"].to_str().expect("is text");
        let canonical = canonical_request(
            &case.method,
            &case.path,
            &case.query,
            &case.headers,
            authorization.signed_headers,
            &hex::encode(Sha256::digest(&case.body)),
        );
        assert_eq!(
            canonical,
            text(expected, "header_canonical_request"),
            "{name}"
        );
        let to_sign = string_to_sign(timestamp, &authorization.scope(), &canonical);
        assert_eq!(to_sign, text(expected, "header_string_to_sign"), "{name}");
        let secret = text(&expected["context"]["credentials"], "secret_access_key");
        let signature = signature(secret, &authorization, &to_sign);
        assert_eq!(signature, text(expected, "header_signature"), "{name}");
        assert_eq!(signature, authorization.signature, "{name}");
    }
    println!("{} cases of the published suite hold", cases.len());
}

const TIMESTAMP: &str = "20260102T030405Z";
const SECRET: &str = "secret";

fn signed_request(body: &'static str) -> (Request, String) {
    let mut headers = HeaderMap::new();
    headers.insert("host", HeaderValue::from_static("localhost:1"));
    headers.insert("x-amz-date", HeaderValue::from_static(TIMESTAMP));
    let request = Request {
        method: Method::POST,
        uri: "/v2/email/identities/a%40example.com"
            .parse()
            .expect("is a URI"),
        headers,
        body: body.into(),
        too_large: false,
    };
    let unsigned = "AWS4-HMAC-SHA256 Credential=AKID/20260102/eu-west-1/ses/aws4_request, \
        SignedHeaders=host;x-amz-date, Signature=";
    let authorization = Authorization::parse(unsigned).expect("is well-formed");
    let canonical = canonical_request(
        "POST",
        request.path(),
        "",
        &request.headers,
        authorization.signed_headers,
        &hex::encode(Sha256::digest(body)),
    );
    assert!(canonical.contains("/v2/email/identities/a%2540example.com"));
    let to_sign = string_to_sign(TIMESTAMP, &authorization.scope(), &canonical);
    let signed = format!("{unsigned}{}", signature(SECRET, &authorization, &to_sign));
    (request, signed)
}

#[test]
fn a_request_holds_only_as_signed_and_only_for_a_while() {
    let (mut request, header) = signed_request("{}");
    let authorization = Authorization::parse(&header).expect("is well-formed");
    let at = NaiveDateTime::parse_from_str(TIMESTAMP, DATE_FORMAT).expect("is a date");
    let now = at.and_utc();
    assert_eq!(verify(&request, &authorization, SECRET, now), Ok(()));
    let early = now - TimeDelta::minutes(16);
    let expired = verify(&request, &authorization, SECRET, early);
    assert_eq!(expired, Err(Failure::Expired));
    let other_secret = verify(&request, &authorization, "other", now);
    assert!(matches!(other_secret, Err(Failure::Mismatch(_))));
    request.body = "{ }".into();
    let other_body = verify(&request, &authorization, SECRET, now);
    assert!(matches!(other_body, Err(Failure::Mismatch(_))));
}
