//! Credential checks and domain lists: the complete conversation, call by call, with
//! prepared replies.

use std::collections::VecDeque;

use serde_json::{Value, json};
use waypost_core::provider::call::{CallStep, ProviderReply};
use waypost_core::provider::credentials::Credentials;
use waypost_core::provider::domain::{DomainList, DomainState, FoundDomain};
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider::outcome::CredentialCheck;
use waypost_core::provider::{AccountAccess, ProviderHosts, adapter};
use waypost_tests::HTTP_PROVIDERS;

use super::{form_fields, now, reply, with_access};

const HTML: &str = "<html>403 Forbidden</html>";

/// Runs a conversation with these replies; returns its result and the requested paths.
fn converse<T>(mut step: CallStep<T>, replies: Vec<ProviderReply>) -> (T, Vec<String>) {
    let mut replies = VecDeque::from(replies);
    let mut asked = Vec::new();
    loop {
        match step {
            CallStep::Done(result) => {
                assert!(replies.is_empty(), "only {asked:?} was asked");
                return (result, asked);
            }
            CallStep::Call { call, then } => {
                let query = call
                    .url
                    .query()
                    .map_or_else(String::new, |query| format!("?{query}"));
                asked.push(format!("{} {}{query}", call.method, call.url.path()));
                step = then(replies.pop_front().expect("a reply to every call"));
            }
        }
    }
}

/// The name of the result, and its reason.
fn check(kind: ProviderType, replies: Vec<ProviderReply>) -> (&'static str, String) {
    let step = with_access(kind, |access| adapter(kind).check(access));
    match converse(step, replies).0 {
        CredentialCheck::Valid => ("valid", String::new()),
        CredentialCheck::Invalid { reason } => ("invalid", reason),
        CredentialCheck::Undecided { reason } => ("undecided", reason),
    }
}

fn domains(kind: ProviderType, replies: Vec<ProviderReply>) -> (DomainList, Vec<String>) {
    converse(
        with_access(kind, |access| adapter(kind).domains(access)),
        replies,
    )
}

fn visible(list: DomainList) -> Vec<FoundDomain> {
    match list {
        DomainList::Visible(found) => found,
        DomainList::NotVisible { reason } | DomainList::Undecided { reason } => panic!("{reason}"),
    }
}

fn json_reply(status: u16, body: &Value) -> ProviderReply {
    reply(
        status,
        &[("content-type", "application/json")],
        &body.to_string(),
    )
}

#[test]
fn limits_failures_and_network_devices_leave_checks_and_lists_undecided() {
    for kind in HTTP_PROVIDERS {
        for (status, body) in [
            (403, HTML),
            (401, HTML),
            (200, HTML),
            (500, "{}"),
            (503, ""),
            (429, "{}"),
            (302, ""),
        ] {
            let verdict = check(kind, vec![reply(status, &[], body)]);
            assert_eq!(
                verdict.0, "undecided",
                "{kind} {status} {body}: {}",
                verdict.1
            );
            let (list, _) = domains(kind, vec![reply(status, &[], body)]);
            assert!(
                matches!(list, DomainList::Undecided { .. }),
                "{kind} {status}: {list:?}"
            );
        }
    }
}

#[test]
fn a_sendgrid_key_must_be_valid_and_allowed_to_send() {
    let error = |text: &str| json!({ "errors": [{ "message": text, "field": null }] });
    for (status, body, verdict) in [
        (
            200,
            json!({ "scopes": ["alerts.read", "mail.send"] }),
            "valid",
        ),
        (200, json!({ "scopes": ["alerts.read"] }), "invalid"),
        (200, json!({}), "undecided"),
        (
            401,
            error("The provided authorization grant is invalid"),
            "invalid",
        ),
        (401, error("authorization required"), "invalid"),
        (401, error("Maximum credits exceeded"), "undecided"),
        (403, error("access forbidden"), "valid"),
        (404, error("not found"), "undecided"),
    ] {
        let found = check(ProviderType::Sendgrid, vec![json_reply(status, &body)]);
        assert_eq!(found.0, verdict, "{status} {body}: {}", found.1);
    }
}

#[test]
fn both_postmark_tokens_are_checked() {
    let server = || {
        json_reply(
            200,
            &json!({ "ID": 1, "Name": "a", "ApiTokens": ["ca9ary"] }),
        )
    };
    let refused = || json_reply(401, &json!({ "ErrorCode": 10, "Message": "no" }));
    let listed = json_reply(200, &json!({ "TotalCount": 0, "Domains": [] }));
    let kind = ProviderType::Postmark;
    assert_eq!(check(kind, vec![server(), listed]).0, "valid");
    assert_eq!(check(kind, vec![refused()]).0, "invalid");
    let (verdict, reason) = check(kind, vec![server(), refused()]);
    assert_eq!(verdict, "invalid");
    assert!(reason.contains("account token"), "{reason}");
    let odd = json_reply(200, &json!({ "ApiTokens": ["ca9ary"] }));
    let (verdict, reason) = check(kind, vec![odd]);
    assert_eq!(verdict, "undecided");
    assert!(!reason.contains("ca9ary"), "{reason}");
    let credits = json_reply(
        422,
        &json!({ "ErrorCode": 405, "Message": "out of credits" }),
    );
    assert_eq!(check(kind, vec![credits]).0, "undecided");
}

#[test]
fn a_mailgun_sending_key_is_recognised_by_a_second_call() {
    let kind = ProviderType::Mailgun;
    let record = json!({ "domain": { "name": "mg.example.com", "state": "active" } });
    let forbidden = || reply(401, &[], "Forbidden");
    let missing = json!({ "message": "to parameter is missing" });
    let unknown = json!({ "message": "Domain not found" });
    assert_eq!(check(kind, vec![json_reply(200, &record)]).0, "valid");
    assert_eq!(
        check(kind, vec![reply(200, &[], "Mailgun Magnificent API")]).0,
        "undecided"
    );
    assert_eq!(
        check(kind, vec![forbidden(), json_reply(400, &missing)]).0,
        "valid"
    );
    assert_eq!(check(kind, vec![forbidden(), forbidden()]).0, "invalid");
    assert_eq!(
        check(kind, vec![forbidden(), reply(403, &[], HTML)]).0,
        "undecided"
    );
    for replies in [
        vec![json_reply(404, &unknown)],
        vec![forbidden(), json_reply(404, &unknown)],
    ] {
        let (verdict, reason) = check(kind, replies);
        assert_eq!(verdict, "invalid");
        assert!(reason.contains("region eu"), "{reason}");
    }
    let step = with_access(kind, |access| adapter(kind).check(access));
    let CallStep::Call { then, .. } = step else {
        panic!("the check makes a call")
    };
    let CallStep::Call { call, .. } = then(forbidden()) else {
        panic!("the check makes a second call")
    };
    assert_eq!(call.url.path(), "/v3/mg.example.com/messages");
    assert_eq!(
        form_fields(&call),
        [("o:testmode".to_owned(), "yes".to_owned())]
    );
}

#[test]
fn an_ses_key_that_may_not_read_the_account_is_valid() {
    let refusal = |name: &str, message: &str| {
        reply(
            403,
            &[("x-amzn-errortype", name)],
            &json!({ "message": message }).to_string(),
        )
    };
    let account = json!({ "SendingEnabled": false, "SendQuota": { "MaxSendRate": 1.0 } });
    let kind = ProviderType::Ses;
    assert_eq!(check(kind, vec![json_reply(200, &account)]).0, "valid");
    for (name, message, verdict) in [
        (
            "AccessDeniedException",
            "User: arn is not authorized",
            "valid",
        ),
        (
            "UnrecognizedClientException",
            "The security token is invalid",
            "invalid",
        ),
        ("InvalidClientTokenId", "", "invalid"),
        (
            "InvalidSignatureException",
            "The request signature",
            "invalid",
        ),
        ("SignatureDoesNotMatch", "", "invalid"),
        ("RequestExpired", "", "undecided"),
        (
            "InvalidSignatureException",
            "Signature expired: 2026",
            "undecided",
        ),
        ("TooManyRequestsException", "", "undecided"),
    ] {
        let found = check(kind, vec![refusal(name, message)]);
        assert_eq!(found.0, verdict, "{name} {message}: {}", found.1);
    }
    let (_, reason) = check(kind, vec![refusal("RequestExpired", "")]);
    assert!(reason.contains("clock"), "{reason}");
}

#[test]
fn sendgrid_domains_are_read_page_by_page_with_their_records() {
    let entry = |name: &str, valid: bool| {
        json!({ "domain": name, "valid": valid, "dns": {
            "mail_cname": { "valid": true, "type": "cname", "host": "em.x", "data": "u.sendgrid.net" },
            "dkim1": { "valid": false, "type": "cname", "host": "s1._domainkey.x", "data": "s1.net" },
        }})
    };
    let first: Vec<Value> = (0..200)
        .map(|n| entry(&format!("d{n}.example.com"), false))
        .collect();
    let second = json!([entry("D0.example.com", true), entry("not a domain", true)]);
    let replies = vec![json_reply(200, &json!(first)), json_reply(200, &second)];
    let (list, asked) = domains(ProviderType::Sendgrid, replies);
    assert_eq!(asked[1], "GET /v3/whitelabel/domains?limit=200&offset=200");
    let found = visible(list);
    assert_eq!(found.len(), 200);
    assert_eq!(
        found[0].state,
        DomainState::Verified,
        "the verified entry of two wins"
    );
    assert_eq!(found[1].state, DomainState::Unverified);
    let expected = json!([
        { "type": "CNAME", "name": "em.x", "value": "u.sendgrid.net", "priority": null, "purpose": "RETURN_PATH", "status": "verified" },
        { "type": "CNAME", "name": "s1._domainkey.x", "value": "s1.net", "priority": null, "purpose": "DKIM", "status": "pending" },
    ]);
    assert_eq!(
        serde_json::to_value(&found[1].dns_records).unwrap(),
        expected
    );
    let forbidden = json!({ "errors": [{ "message": "access forbidden" }] });
    let (list, _) = domains(ProviderType::Sendgrid, vec![json_reply(403, &forbidden)]);
    assert!(matches!(list, DomainList::NotVisible { .. }));
}

#[test]
fn an_endless_list_is_cut_at_a_thousand_domains() {
    let page = |page: usize| {
        let names = (0..200)
            .map(|n| json!({ "domain": format!("p{page}n{n}.example.com"), "valid": true }));
        json_reply(200, &Value::Array(names.collect()))
    };
    let (list, asked) = domains(ProviderType::Sendgrid, (0..5).map(page).collect());
    assert_eq!(asked.len(), 5);
    assert_eq!(visible(list).len(), 1_000);
}

#[test]
fn postmark_domains_need_the_account_token() {
    let listed = json!({ "TotalCount": 2, "Domains": [
        { "ID": 7, "Name": "example.com", "DKIMVerified": true, "ReturnPathDomainVerified": false },
        { "ID": 8, "Name": "example.org", "DKIMVerified": false, "ReturnPathDomainVerified": false },
    ]});
    let detail = json!({ "ID": 7, "Name": "example.com", "DKIMVerified": true,
        "DKIMHost": "k._domainkey.example.com", "DKIMTextValue": "k=rsa;p=A",
        "DKIMPendingHost": "", "DKIMPendingTextValue": "",
        "ReturnPathDomain": "pm-bounces.example.com", "ReturnPathDomainVerified": false,
        "ReturnPathDomainCNAMEValue": "pm.mtasv.net" });
    let throttled = reply(429, &[], "{}");
    let replies = vec![
        json_reply(200, &listed),
        json_reply(200, &detail),
        throttled,
    ];
    let (list, asked) = domains(ProviderType::Postmark, replies);
    assert_eq!(
        asked,
        [
            "GET /domains?count=500&offset=0",
            "GET /domains/7",
            "GET /domains/8"
        ]
    );
    let found = visible(list);
    let states: Vec<DomainState> = found.iter().map(|domain| domain.state).collect();
    assert_eq!(states, [DomainState::Verified, DomainState::Unverified]);
    let expected = json!([
        { "type": "TXT", "name": "k._domainkey.example.com", "value": "k=rsa;p=A", "priority": null, "purpose": "DKIM", "status": "verified" },
        { "type": "CNAME", "name": "pm-bounces.example.com", "value": "pm.mtasv.net", "priority": null, "purpose": "RETURN_PATH", "status": "pending" },
    ]);
    assert_eq!(
        serde_json::to_value(&found[0].dns_records).unwrap(),
        expected
    );
    assert!(
        found[1].dns_records.is_empty(),
        "its details were not to be had"
    );

    let token = json!({ "serverToken": "t" });
    let credentials = Credentials::parse(ProviderType::Postmark, &token).unwrap();
    let access = AccountAccess {
        credentials: &credentials,
        endpoints: &ProviderHosts::real(),
        now: now(),
    };
    let (list, _) = converse(adapter(ProviderType::Postmark).domains(&access), Vec::new());
    assert!(matches!(list, DomainList::NotVisible { .. }));
}

#[test]
fn mailgun_lists_the_domain_of_its_credentials() {
    let record = |state: &str| {
        json!({
            "domain": { "name": "mg.example.com", "state": state },
            "receiving_dns_records": [{ "record_type": "MX", "priority": "10", "valid": "valid", "value": "mxa.mailgun.org" }],
            "sending_dns_records": [
                { "record_type": "TXT", "name": "mg.example.com", "valid": "valid", "value": "v=spf1 include:mailgun.org ~all" },
                { "record_type": "TXT", "name": "mx._domainkey.mg.example.com", "valid": "unknown", "value": "k=rsa; p=M" },
                { "record_type": "CNAME", "name": "email.mg.example.com", "valid": "valid", "value": "mailgun.org" },
            ],
        })
    };
    let kind = ProviderType::Mailgun;
    for (state, expected) in [
        ("active", DomainState::Verified),
        ("unverified", DomainState::Unverified),
        ("disabled", DomainState::Unverified),
        ("new", DomainState::Unknown),
    ] {
        let found = visible(domains(kind, vec![json_reply(200, &record(state))]).0);
        assert_eq!(found[0].state, expected);
        let records = serde_json::to_value(&found[0].dns_records).unwrap();
        let purposes: Vec<&Value> = records
            .as_array()
            .unwrap()
            .iter()
            .map(|record| &record["purpose"])
            .collect();
        assert_eq!(purposes, ["SPF", "DKIM", "TRACKING"]);
        assert_eq!(records[1]["status"], "pending");
    }
    let (list, _) = domains(kind, vec![reply(401, &[], "Forbidden")]);
    assert!(matches!(list, DomainList::NotVisible { .. }));
}

#[test]
fn ses_domains_get_their_records_from_their_identities() {
    let page = |names: &[&str], next: Option<&str>| {
        let identities = names.iter().map(|name| {
            let address = name.contains('@');
            let kind = if address { "EMAIL_ADDRESS" } else { "DOMAIN" };
            json!({ "IdentityType": kind, "IdentityName": name, "VerificationStatus": "SUCCESS" })
        });
        let identities: Vec<Value> = identities.collect();
        json_reply(
            200,
            &json!({ "EmailIdentities": identities, "NextToken": next }),
        )
    };
    let identity = json!({
        "DkimAttributes": { "Status": "FAILED", "Tokens": ["t1"], "SigningAttributesOrigin": "AWS_SES" },
        "MailFromAttributes": { "MailFromDomain": "m.example.com", "MailFromDomainStatus": "PENDING" },
    });
    let denied = || reply(403, &[("x-amzn-errortype", "AccessDeniedException")], "{}");
    let replies = vec![
        page(&["example.com", "zoe@example.com"], Some("a/b+c=")),
        page(&["example.org"], None),
        json_reply(200, &identity),
        denied(),
    ];
    let (list, asked) = domains(ProviderType::Ses, replies);
    assert_eq!(
        asked,
        [
            "GET /v2/email/identities?PageSize=1000",
            "GET /v2/email/identities?PageSize=1000&NextToken=a%2Fb%2Bc%3D",
            "GET /v2/email/identities/example.com",
            "GET /v2/email/identities/example.org",
        ]
    );
    let found = visible(list);
    assert_eq!(found.len(), 2);
    let expected = json!([
        { "type": "CNAME", "name": "t1._domainkey.example.com", "value": "t1.dkim.amazonses.com", "priority": null, "purpose": "DKIM", "status": "failed" },
        { "type": "MX", "name": "m.example.com", "value": "feedback-smtp.eu-central-1.amazonses.com", "priority": 10, "purpose": "RETURN_PATH", "status": "pending" },
        { "type": "TXT", "name": "m.example.com", "value": "v=spf1 include:amazonses.com ~all", "priority": null, "purpose": "SPF", "status": "pending" },
    ]);
    assert_eq!(
        serde_json::to_value(&found[0].dns_records).unwrap(),
        expected
    );
    let (list, _) = domains(ProviderType::Ses, vec![denied()]);
    assert!(matches!(list, DomainList::NotVisible { .. }));
}
