//! AWS Signature Version 4: the function that the SES adapter signs with, against the
//! vectors that AWS publishes.

use bytes::Bytes;
use chrono::DateTime;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;
use waypost_core::provider::call::{CallBody, ProviderCall};
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider::ses::{SigningKey, sign};
use waypost_core::provider::{ProviderHosts, adapter};
use waypost_core::secret::Secret;

use super::documents::shared;
use super::{plain_mail, url, with_access_at};

/// Vectors of cases that the adapter does not have: unencoded paths, and a token that is
/// added after signing.
const NOT_OURS: [&str; 3] = ["get-utf8", "get-space-normalized", "post-sts-header-after"];

#[test]
fn signatures_match_the_published_vectors() {
    let path = "providers/fixtures/sigv4/aws-signing-test-suite-selection.json";
    let Some(cases) = shared(path) else {
        return;
    };
    let cases = cases.as_array().unwrap();
    let ours = cases
        .iter()
        .filter(|case| !NOT_OURS.contains(&text(&case["case"])));
    let mut checked = 0;
    for case in ours {
        let call = signed(case);
        let authorization = call.headers["authorization"].to_str().unwrap();
        let (_, signature) = authorization.rsplit_once("Signature=").unwrap();
        assert_eq!(
            signature,
            text(&case["header_signature"]),
            "{}",
            case["case"]
        );
        checked += 1;
    }
    assert_eq!(checked, cases.len() - NOT_OURS.len());
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn signed(case: &Value) -> ProviderCall {
    let context = &case["context"];
    let secret = |name: &str| context["credentials"][name].as_str().map(Secret::from);
    let (access_key_id, secret_access_key) = (secret("access_key_id"), secret("secret_access_key"));
    let session_token = secret("token");
    let time = DateTime::parse_from_rfc3339(text(&context["timestamp"])).unwrap();
    let key = SigningKey {
        access_key_id: access_key_id.as_ref().unwrap(),
        secret_access_key: secret_access_key.as_ref().unwrap(),
        session_token: session_token.as_ref(),
        region: text(&context["region"]),
        service: text(&context["service"]),
    };
    let mut call = parsed(text(&case["request"]));
    if context["sign_body"] == true {
        let signed_request = text(&case["header_signed_request"]);
        let (_, rest) = signed_request.split_once("x-amz-content-sha256:").unwrap();
        let hash = HeaderValue::from_str(rest.lines().next().unwrap()).unwrap();
        call.headers.insert("x-amz-content-sha256", hash);
    }
    sign(&mut call, &key, time.to_utc()).unwrap();
    call
}

/// A request as the vectors write it.
fn parsed(request: &str) -> ProviderCall {
    let (head, body) = request.split_once("\n\n").unwrap_or((request, ""));
    let mut lines = head.lines();
    let mut first = lines.next().unwrap().split(' ');
    let method = Method::from_bytes(first.next().unwrap().as_bytes()).unwrap();
    let target = first.next().unwrap();
    let headers = lines.map(|line| {
        let (name, value) = line.split_once(':').unwrap();
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        (name, HeaderValue::from_str(value).unwrap())
    });
    ProviderCall {
        method,
        url: url(&format!("https://example.amazonaws.com{target}")),
        headers: HeaderMap::from_iter(headers),
        body: CallBody::Json(Bytes::copy_from_slice(body.as_bytes())),
    }
}

#[test]
fn the_signature_covers_the_called_host() {
    let kind = ProviderType::Ses;
    let authorization = |base: &str| {
        let endpoints = ProviderHosts::all_at(&url(base));
        let call = with_access_at(kind, &endpoints, |access| {
            adapter(kind).send(access, &plain_mail())
        });
        let call = call.unwrap();
        assert!(call.headers.contains_key("x-amz-security-token"));
        assert!(!call.headers.contains_key("host"), "the transport adds it");
        call.headers["authorization"].to_str().unwrap().to_owned()
    };
    let first = authorization("http://127.0.0.1:4001");
    assert!(first.contains("SignedHeaders=content-type;host;x-amz-date;x-amz-security-token"));
    assert!(first.contains("/20261121/eu-central-1/ses/aws4_request"));
    assert_ne!(first, authorization("http://127.0.0.1:4002"));
    assert_eq!(first, authorization("http://127.0.0.1:4001"));
}
