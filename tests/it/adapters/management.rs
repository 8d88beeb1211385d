//! The adapters' conversations about domains and event webhooks, call by call with prepared
//! replies, against the providers' official descriptions.

use std::collections::VecDeque;

use serde_json::{Value, json};
use waypost_core::provider::adapter;
use waypost_core::provider::call::{CallBody, CallStep, ProviderCall, ProviderReply};
use waypost_core::provider::domain::DomainState;
use waypost_core::provider::event_secrets::EventSecrets;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider::management::{DomainResult, EventTarget, EventUrl, Registration};
use waypost_core::secret::Secret;
use waypost_tests::HTTP_PROVIDERS;

use super::documents::Document;
use super::{form_fields, json_body, reply, with_access};

const URL: &str = "https://mail.example.com/v1/provider-events/token";
const KEY: &str = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==";

/// Runs a conversation with these replies; returns its result and the calls.
fn converse<T>(mut step: CallStep<T>, replies: Vec<(u16, Value)>) -> (T, Vec<ProviderCall>) {
    let mut replies = VecDeque::from(replies);
    let mut calls = Vec::new();
    loop {
        match step {
            CallStep::Done(result) => {
                assert!(replies.is_empty(), "only {calls:?} was asked");
                return (result, calls);
            }
            CallStep::Call { call, then } => {
                let path = call.url.path().to_owned();
                let (status, body) = replies.pop_front().unwrap_or_else(|| panic!("{path}"));
                calls.push(*call);
                step = then(json_reply(status, &body));
            }
        }
    }
}

fn json_reply(status: u16, body: &Value) -> ProviderReply {
    let json = [("content-type", "application/json")];
    reply(status, &json, &body.to_string())
}

fn asked(calls: &[ProviderCall]) -> Vec<String> {
    let line = |call: &ProviderCall| {
        let query = call.url.query();
        let query = query.map_or_else(String::new, |query| format!("?{query}"));
        format!("{} {}{query}", call.method, call.url.path())
    };
    calls.iter().map(line).collect()
}

fn add(kind: ProviderType, replies: Vec<(u16, Value)>) -> (DomainResult, Vec<ProviderCall>) {
    let step = with_access(kind, |access| adapter(kind).add_domain(access, "a.example"));
    converse(step, replies)
}

fn verify(kind: ProviderType, replies: Vec<(u16, Value)>) -> (DomainResult, Vec<ProviderCall>) {
    let step = with_access(kind, |access| {
        adapter(kind).verify_domain(access, "a.example")
    });
    converse(step, replies)
}

fn remove(kind: ProviderType, replies: Vec<(u16, Value)>) -> (DomainResult, Vec<ProviderCall>) {
    let step = with_access(kind, |access| {
        adapter(kind).remove_domain(access, "a.example")
    });
    converse(step, replies)
}

fn register(
    kind: ProviderType,
    secrets: Option<EventSecrets>,
    replies: Vec<(u16, Value)>,
) -> (Registration, Vec<ProviderCall>) {
    let target = EventTarget {
        url: EventUrl(URL.to_owned()),
        secrets,
    };
    let step = with_access(kind, |access| adapter(kind).register_events(access, target));
    converse(step, replies)
}

fn state(result: &DomainResult) -> DomainState {
    let DomainResult::Known(domain) = result else {
        panic!("{result:?}");
    };
    domain.state
}

#[test]
fn sendgrid_domains_are_searched_before_they_are_created() {
    let kind = ProviderType::Sendgrid;
    let entry = json!({ "id": 7, "domain": "a.example", "valid": false, "dns": {} });
    let (result, calls) = add(kind, vec![(200, json!([])), (201, entry.clone())]);
    assert_eq!(state(&result), DomainState::Unverified);
    let search = "GET /v3/whitelabel/domains?domain=a.example&limit=200";
    assert_eq!(asked(&calls), [search, "POST /v3/whitelabel/domains"]);
    if let Some(document) = Document::open("sendgrid-domain-authentication.json") {
        document.assert_query("get", "/v3/whitelabel/domains", &["domain", "limit"]);
        document.assert_json_request("post", "/v3/whitelabel/domains", &json_body(&calls[1]));
        document.operation("post", "/v3/whitelabel/domains/{id}/validate");
        document.operation("get", "/v3/whitelabel/domains/{domain_id}");
        document.operation("delete", "/v3/whitelabel/domains/{domain_id}");
    }
    // The search finds more than the name.
    let other = json!({ "id": 1, "domain": "b.a.example", "valid": true });
    let listed = json!([other, entry]);
    assert_eq!(add(kind, vec![(200, listed.clone())]).1.len(), 1);
    let valid = json!({ "id": 7, "domain": "a.example", "valid": true, "dns": {} });
    let (result, calls) = verify(
        kind,
        vec![
            (200, listed.clone()),
            (200, json!({ "id": 7, "valid": true })),
            (200, valid),
        ],
    );
    assert_eq!(state(&result), DomainState::Verified);
    let paths = asked(&calls);
    assert_eq!(
        paths[1..],
        [
            "POST /v3/whitelabel/domains/7/validate",
            "GET /v3/whitelabel/domains/7"
        ]
    );
    let twice = json!([entry, { "id": 8, "domain": "A.example", "valid": true }]);
    let (result, calls) = remove(
        kind,
        vec![(200, twice), (204, Value::Null), (404, json!({}))],
    );
    assert_eq!(result, DomainResult::Missing);
    let paths = asked(&calls);
    assert_eq!(
        paths[1..],
        [
            "DELETE /v3/whitelabel/domains/8",
            "DELETE /v3/whitelabel/domains/7"
        ]
    );
}

#[test]
fn postmark_domains_are_addressed_by_id() {
    let kind = ProviderType::Postmark;
    let listed = json!({ "TotalCount": 1, "Domains": [{ "ID": 7, "Name": "A.example" }] });
    let none = json!({ "TotalCount": 0, "Domains": [] });
    let detail = json!({ "ID": 7, "Name": "a.example", "DKIMVerified": true });
    let (result, calls) = add(kind, vec![(200, none.clone()), (200, detail.clone())]);
    assert_eq!(state(&result), DomainState::Verified);
    let search = "GET /domains?count=500&offset=0";
    assert_eq!(asked(&calls), [search, "POST /domains"]);
    assert!(calls[1].headers.contains_key("x-postmark-account-token"));
    if let Some(document) = Document::open("postmark-account.json") {
        document.assert_json_request("post", "/domains", &json_body(&calls[1]));
        document.operation("put", "/domains/{domainid}/verifydkim");
        document.operation("put", "/domains/{domainid}/verifyreturnpath");
        document.operation("delete", "/domains/{domainid}");
    }
    let known = vec![(200, listed.clone()), (200, detail.clone())];
    assert_eq!(asked(&add(kind, known).1)[1], "GET /domains/7");
    let known = vec![(200, listed.clone()), (200, detail.clone()), (200, detail)];
    let (_, calls) = verify(kind, known);
    assert_eq!(
        asked(&calls)[1..],
        [
            "PUT /domains/7/verifydkim",
            "PUT /domains/7/verifyreturnpath"
        ]
    );
    let (result, _) = verify(kind, vec![(200, none)]);
    assert_eq!(result, DomainResult::Missing);
    let done = json!({ "ErrorCode": 0, "Message": "removed" });
    let (result, calls) = remove(kind, vec![(200, listed), (200, done)]);
    assert_eq!(result, DomainResult::Missing);
    assert_eq!(asked(&calls)[1], "DELETE /domains/7");
}

#[test]
fn mailgun_domains_are_created_if_they_are_not_found() {
    let kind = ProviderType::Mailgun;
    let record = json!({ "domain": { "name": "a.example", "state": "unverified" } });
    let missing = json!({ "message": "Domain not found" });
    let (result, calls) = add(kind, vec![(404, missing.clone()), (200, record.clone())]);
    assert_eq!(state(&result), DomainState::Unverified);
    assert_eq!(
        asked(&calls),
        ["GET /v4/domains/a.example", "POST /v4/domains"]
    );
    let fields = form_fields(&calls[1]);
    assert_eq!(fields, [("name".to_owned(), "a.example".to_owned())]);
    if let Some(document) = Document::open("mailgun.openapi.json") {
        let schema = document.request_schema("post", "/v4/domains", "multipart/form-data");
        assert!(schema["properties"]["name"].is_object());
        document.operation("put", "/v4/domains/{name}/verify");
    }
    let (_, calls) = verify(kind, vec![(200, record)]);
    assert_eq!(asked(&calls), ["PUT /v4/domains/a.example/verify"]);
    // Mailgun's reply on unknown paths.
    let (result, _) = verify(kind, vec![(200, json!("Mailgun Magnificent API"))]);
    assert!(matches!(result, DomainResult::Undecided { .. }));
    let (result, calls) = remove(kind, vec![(404, missing)]);
    assert_eq!(result, DomainResult::Missing);
    assert_eq!(asked(&calls), ["DELETE /v3/domains/a.example"]);
    let own = with_access(kind, |access| {
        adapter(kind).remove_domain(access, "mg.example.com")
    });
    assert!(matches!(
        converse(own, Vec::new()).0,
        DomainResult::Refused { .. }
    ));
}

#[test]
fn ses_domains_are_identities() {
    let kind = ProviderType::Ses;
    let record = |status: &str| json!({ "IdentityType": "DOMAIN", "VerificationStatus": status });
    let missing = json!({ "__type": "NotFoundException", "message": "no" });
    let (result, calls) = add(
        kind,
        vec![
            (404, missing.clone()),
            (200, json!({})),
            (200, record("PENDING")),
        ],
    );
    assert_eq!(state(&result), DomainState::Unverified);
    assert_eq!(
        asked(&calls),
        [
            "GET /v2/email/identities/a.example",
            "POST /v2/email/identities",
            "GET /v2/email/identities/a.example"
        ]
    );
    assert!(
        calls
            .iter()
            .all(|call| call.headers.contains_key("authorization"))
    );
    if let Some(document) = Document::open("sesv2.openapi.json") {
        let path = "/v2/email/identities";
        document.assert_json_request("post", path, &json_body(&calls[1]));
        document.operation("delete", "/v2/email/identities/{EmailIdentity}");
    }
    let there = json!({ "__type": "AlreadyExistsException", "message": "there" });
    let raced = vec![
        (404, missing.clone()),
        (400, there),
        (200, record("SUCCESS")),
    ];
    assert_eq!(state(&add(kind, raced).0), DomainState::Verified);
    let limit = json!({ "__type": "TooManyRequestsException", "message": "slow" });
    for (status, body) in [(429, limit.clone()), (400, limit)] {
        let (result, calls) = remove(kind, vec![(200, record("SUCCESS")), (status, body)]);
        assert!(matches!(result, DomainResult::Undecided { .. }));
        let path = "DELETE /v2/email/identities/a.example";
        assert_eq!(asked(&calls)[1], path);
    }
    assert_eq!(remove(kind, vec![(404, missing)]).0, DomainResult::Missing);
}

#[test]
fn limits_failures_and_network_devices_leave_a_change_undecided() {
    for kind in HTTP_PROVIDERS {
        for (status, body) in [(500, ""), (429, "{}"), (302, ""), (403, "<html>no</html>")] {
            for operation in [0, 1, 2] {
                let step = with_access(kind, |access| match operation {
                    0 => adapter(kind).add_domain(access, "a.example"),
                    1 => adapter(kind).verify_domain(access, "a.example"),
                    _ => adapter(kind).remove_domain(access, "a.example"),
                });
                let CallStep::Call { then, .. } = step else {
                    panic!("{kind} makes no call");
                };
                let CallStep::Done(result) = then(reply(status, &[], body)) else {
                    panic!("{kind} continues after {status}");
                };
                assert!(
                    matches!(result, DomainResult::Undecided { .. }),
                    "{kind} {operation} {status}: {result:?}"
                );
            }
        }
    }
}

#[test]
fn sendgrids_webhook_is_found_or_created_and_then_signed() {
    let kind = ProviderType::Sendgrid;
    let settings = "/v3/user/webhooks/event/settings";
    let other = json!({ "id": "a-b", "url": "https://elsewhere.example" });
    let signed = (200, json!({ "id": "c-d", "public_key": KEY }));
    let created = (201, json!({ "id": "c-d" }));
    let (registration, calls) = register(
        kind,
        None,
        vec![
            (200, json!({ "webhooks": [other] })),
            created,
            signed.clone(),
        ],
    );
    assert!(
        matches!(&registration, Registration::Registered(EventSecrets::Sendgrid { public_key }) if public_key == KEY),
        "{registration:?}"
    );
    assert_eq!(
        asked(&calls),
        [
            format!("GET {settings}/all"),
            format!("POST {settings}"),
            format!("PATCH {settings}/signed/c-d"),
        ]
    );
    if let Some(document) = Document::open("sendgrid-webhooks.json") {
        document.assert_json_request("post", settings, &json_body(&calls[1]));
        let signing = format!("{settings}/signed/{{id}}");
        document.assert_json_request("patch", &signing, &json_body(&calls[2]));
    }
    assert_eq!(json_body(&calls[1])["url"], URL);
    let ours = json!({ "webhooks": [{ "id": "c-d", "url": URL }] });
    let updated = (200, json!({ "id": "c-d" }));
    let (_, calls) = register(kind, None, vec![(200, ours), updated, signed]);
    assert_eq!(asked(&calls)[1], format!("PATCH {settings}/c-d"));
    let forbidden = json!({ "errors": [{ "message": "access forbidden" }] });
    let (refused, _) = register(kind, None, vec![(403, forbidden)]);
    assert!(matches!(refused, Registration::Refused { steps, .. } if !steps.is_empty()));
}

#[test]
fn mailguns_webhooks_are_added_to_the_existing_ones() {
    let kind = ProviderType::Mailgun;
    let path = "/v3/domains/mg.example.com/webhooks";
    let key = (200, json!({ "http_signing_key": "ca9ary-signing" }));
    let elsewhere = "https://elsewhere.example";
    let there = json!({ "webhooks": {
        "delivered": { "urls": [elsewhere] },
        "opened": { "urls": [URL] },
        "clicked": null,
    }});
    let saved = (
        200,
        json!({ "message": "ok", "webhook": { "urls": [URL] } }),
    );
    let mut replies = vec![key.clone(), (200, there)];
    replies.extend(vec![saved; 7]);
    let (registration, calls) = register(kind, None, replies);
    assert!(matches!(registration, Registration::Registered(_)));
    let lines = asked(&calls);
    assert_eq!(lines[0], "GET /v5/accounts/http_signing_key");
    assert_eq!(lines[1], format!("GET {path}"));
    let puts = lines.iter().filter(|line| line.starts_with("PUT"));
    assert_eq!(puts.collect::<Vec<_>>(), [&format!("PUT {path}/delivered")]);
    let put = calls.iter().find(|call| call.method == http::Method::PUT);
    let urls: Vec<&str> = form_fields(put.unwrap())
        .iter()
        .map(|(_, url)| url.as_str())
        .collect();
    assert_eq!(urls, [elsewhere, URL], "the other URL stays");
    if let Some(document) = Document::open("mailgun.openapi.json") {
        let template = "/v3/domains/{domain}/webhooks";
        let schema = document.request_schema("post", template, "multipart/form-data");
        let post = calls.iter().find(|call| call.method == http::Method::POST);
        for (name, _) in form_fields(post.unwrap()) {
            assert!(schema["properties"][name].is_object(), "{name}");
        }
        document.operation("put", "/v3/domains/{domain_name}/webhooks/{webhook_name}");
        document.operation("get", "/v5/accounts/http_signing_key");
    }
    let full = json!({ "webhooks": { "accepted": { "urls": ["https://a.example", "https://b.example", "https://c.example"] } } });
    let (refused, _) = register(kind, None, vec![key, (200, full)]);
    assert!(matches!(refused, Registration::Refused { .. }));
}

#[test]
fn postmark_gets_the_password_and_reports_all_kinds() {
    let kind = ProviderType::Postmark;
    let secrets = EventSecrets::Postmark {
        username: "user".to_owned(),
        password: Secret::from("ca9ary-password"),
    };
    let none = json!({ "Webhooks": [] });
    let saved = (200, json!({ "ID": 7, "Url": URL }));
    let replies = vec![(200, none), saved.clone()];
    let (registration, calls) = register(kind, Some(secrets.clone()), replies);
    assert!(matches!(registration, Registration::Registered(_)));
    assert_eq!(
        asked(&calls),
        ["GET /webhooks?MessageStream=outbound", "POST /webhooks"]
    );
    let body = json_body(&calls[1]);
    assert_eq!(
        body["HttpAuth"],
        json!({ "Username": "user", "Password": "ca9ary-password" })
    );
    assert_eq!(body["MessageStream"], "outbound");
    let triggers = body["Triggers"].as_object().unwrap();
    assert_eq!(triggers.len(), 6);
    assert!(triggers.values().all(|one| one["Enabled"] == true));
    let ours = json!({ "Webhooks": [{ "ID": 7, "Url": URL }] });
    let (_, calls) = register(kind, Some(secrets.clone()), vec![(200, ours), saved]);
    assert_eq!(asked(&calls)[1], "PUT /webhooks/7");
    assert!(matches!(calls[1].body, CallBody::Json(_)));
    // A successful reply of the wrong form repeats the password: it is never quoted.
    let odd = json!({ "HttpAuth": { "Password": "ca9ary-password" } });
    let replies = vec![(200, json!({ "Webhooks": [] })), (200, odd)];
    let (undecided, _) = register(kind, Some(secrets), replies);
    assert!(
        !format!("{undecided:?}").contains("ca9ary"),
        "{undecided:?}"
    );
    assert!(matches!(undecided, Registration::Undecided { .. }));
}
