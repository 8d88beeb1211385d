//! Credentials: which values are accepted, that all issues are reported at once, and that
//! credentials do not leak.

use serde_json::{Value, json};
use waypost_core::provider::call::CallStep;
use waypost_core::provider::credentials::Credentials;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider::{ProviderHosts, adapter};
use waypost_tests::HTTP_PROVIDERS;

use super::{CANARY, credentials, credentials_json, reply, rich_mail, with_access};

fn issues(kind: ProviderType, value: &Value) -> Vec<(String, String)> {
    let issues = Credentials::parse(kind, value).expect_err("there are issues");
    let mut issues: Vec<(String, String)> = issues
        .into_iter()
        .map(|issue| (issue.path, issue.message))
        .collect();
    issues.sort();
    issues
}

fn paths(kind: ProviderType, value: &Value) -> Vec<String> {
    issues(kind, value)
        .into_iter()
        .map(|(path, _)| path)
        .collect()
}

#[test]
fn every_missing_field_is_named_at_once() {
    for (kind, expected) in [
        (ProviderType::Sendgrid, &["credentials.apiKey"][..]),
        (ProviderType::Postmark, &["credentials.serverToken"]),
        (
            ProviderType::Mailgun,
            &["credentials.apiKey", "credentials.domain"],
        ),
        (
            ProviderType::Ses,
            &[
                "credentials.accessKeyId",
                "credentials.region",
                "credentials.secretAccessKey",
            ],
        ),
    ] {
        assert_eq!(paths(kind, &json!({})), expected);
        for (path, message) in issues(kind, &json!({})) {
            assert_eq!(message, "is required", "{path}");
        }
        assert_eq!(paths(kind, &json!("a key")), ["credentials"]);
        assert_eq!(paths(kind, &Value::Null), ["credentials"]);
    }
}

#[test]
fn values_that_could_break_a_header_a_host_or_a_path_are_refused() {
    let ses =
        |region: &str| json!({ "accessKeyId": "AKIA", "secretAccessKey": "s", "region": region });
    for region in [
        "eu-central-1.evil.com/",
        "EU-CENTRAL-1",
        "eu-1",
        "eu",
        "e-u-1",
        "eu--1",
        "eu-x-10",
        "eu-x-1\u{e9}",
    ] {
        assert_eq!(
            paths(ProviderType::Ses, &ses(region)),
            ["credentials.region"],
            "{region}"
        );
    }
    for region in [
        "eu-central-1",
        "us-gov-west-1",
        "cn-north-1",
        " ap-southeast-2 ",
    ] {
        assert!(
            Credentials::parse(ProviderType::Ses, &ses(region)).is_ok(),
            "{region}"
        );
    }
    for domain in [
        "example.com/../x",
        "a b.com",
        "localhost",
        "",
        "x?y.com",
        "127.0.0.1",
    ] {
        let value = json!({ "apiKey": "k", "domain": domain });
        assert_eq!(
            paths(ProviderType::Mailgun, &value),
            ["credentials.domain"],
            "{domain}"
        );
    }
    let long = "k".repeat(4_097);
    for key in [
        "a\r\nb: c",
        "",
        "   ",
        "two words",
        "schlüssel",
        "a\0b",
        long.as_str(),
    ] {
        let value = json!({ "apiKey": key, "region": 7 });
        let expected = ["credentials.apiKey", "credentials.region"];
        assert_eq!(paths(ProviderType::Sendgrid, &value), expected, "{key:?}");
    }
    let stream = json!({ "serverToken": "t", "messageStream": "a/b", "accountToken": ["t"] });
    let expected = ["credentials.accountToken", "credentials.messageStream"];
    assert_eq!(paths(ProviderType::Postmark, &stream), expected);
}

#[test]
fn values_are_trimmed_and_defaults_apply() {
    let value =
        json!({ "apiKey": " key \n", "domain": " MG.Bücher.Example ", "region": null, "x": null });
    let parsed = Credentials::parse(ProviderType::Mailgun, &value).unwrap();
    let plain: Value = serde_json::from_slice(&parsed.to_plaintext()).unwrap();
    let expected = json!({ "apiKey": "key", "domain": "mg.xn--bcher-kva.example", "region": "us" });
    assert_eq!(plain, expected);
}

#[test]
fn the_sealed_form_is_read_back() {
    for kind in ProviderType::ALL {
        let plain = credentials(kind).to_plaintext();
        let read: Value = serde_json::from_slice(&plain).unwrap();
        assert_eq!(read, credentials_json(kind));
        let again = Credentials::from_plaintext(kind, &plain).unwrap();
        assert_eq!(again.provider_type(), kind);
        assert_eq!(*again.to_plaintext(), *plain);
        let fault = Credentials::from_plaintext(kind, b"{}").unwrap_err();
        assert!(fault.chain().contains("credentials."), "{}", fault.chain());
    }
}

#[test]
fn debug_output_shows_no_secrets_addresses_or_content() {
    let mail = rich_mail();
    for kind in HTTP_PROVIDERS {
        let shown = with_access(kind, |access| {
            let adapter = adapter(kind);
            let call = adapter.send(access, &mail).unwrap();
            let check = adapter.check(access);
            let domains = adapter.domains(access);
            assert!(
                matches!(check, CallStep::Call { .. }) && matches!(domains, CallStep::Call { .. })
            );
            let step_debug = format!("{check:?} {domains:?}");
            let parts = format!("{:?} {:?} {:?}", call.headers, call.body, access);
            format!(
                "{call:?} {step_debug} {parts} {mail:?} {:?}",
                ProviderHosts::real()
            )
        });
        let parts = [CANARY, "Y2E5YXJ5", "ada@", "zoe@", "Grüße", "Lovelace"];
        for part in parts {
            assert!(!shown.contains(part), "{kind}: {part} in {shown}");
        }
        // "api:ca9ary-key" in base64, as in Mailgun's header.
        assert!(!shown.contains("YXBpOmNhOWFyeS1rZXk"), "{shown}");
    }
    let server = reply(200, &[("set-cookie", CANARY)], CANARY);
    assert!(!format!("{server:?}").contains(CANARY));
}
