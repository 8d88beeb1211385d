//! Sender domains: imported with the account, and their effect on a send.

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{HTTP_PROVIDERS, TestApp, message_to};

use super::{quiet, with};

#[tokio::test]
async fn domains_are_imported_with_the_records_to_publish() {
    for kind in HTTP_PROVIDERS {
        let app = quiet().await;
        let id = app.connect(kind).await;
        let domains = app
            .get(&format!("/v1/providers/{id}/domains"))
            .await
            .data(200);
        let domains = domains.as_array().unwrap();
        let mut found: Vec<(&str, bool)> = domains
            .iter()
            .map(|domain| {
                (
                    domain["domain"].as_str().unwrap(),
                    domain["isVerified"].as_bool().unwrap(),
                )
            })
            .collect();
        found.sort_unstable();
        let all = [
            ("example.com", true),
            ("mail.example.com", true),
            ("unverified.example.net", false),
        ];
        // Mailgun's credentials belong to one domain.
        let expected = if kind == ProviderType::Mailgun {
            &all[..1]
        } else {
            &all[..]
        };
        assert_eq!(found, expected, "{kind}");
        for domain in domains {
            for key in [
                "id",
                "providerAccountId",
                "domain",
                "isVerified",
                "dnsRecords",
                "createdAt",
            ] {
                assert!(!domain[key].is_null(), "{kind}: {key} in {domain}");
            }
            assert_eq!(domain["providerAccountId"], id);
            let records = domain["dnsRecords"].as_array().unwrap();
            assert!(!records.is_empty(), "{kind}: {domain}");
            records.iter().for_each(check_record);
        }
    }
}

fn check_record(record: &Value) {
    let mut keys: Vec<&str> = record
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        [
            "found",
            "foundStatus",
            "name",
            "priority",
            "purpose",
            "status",
            "type",
            "value"
        ],
        "{record}"
    );
    let is_one_of = |key: &str, words: &[&str]| words.contains(&record[key].as_str().unwrap());
    assert!(is_one_of("type", &["TXT", "CNAME", "MX"]), "{record}");
    assert!(
        is_one_of(
            "purpose",
            &[
                "DKIM",
                "SPF",
                "RETURN_PATH",
                "TRACKING",
                "DMARC",
                "OWNERSHIP"
            ]
        ),
        "{record}"
    );
    assert!(
        is_one_of("status", &["pending", "verified", "failed"]),
        "{record}"
    );
    assert!(
        record["priority"].is_null() || record["priority"].is_u64(),
        "{record}"
    );
    assert_eq!(
        record["type"] == "MX",
        record["priority"].is_u64(),
        "{record}"
    );
    assert!(
        record["name"].as_str().is_some_and(|name| !name.is_empty()),
        "{record}"
    );
    assert!(
        record["value"]
            .as_str()
            .is_some_and(|value| !value.is_empty()),
        "{record}"
    );
}

#[tokio::test]
async fn a_key_that_may_not_list_domains_is_valid_and_sends_from_unknown_domains() {
    for (kind, narrow) in [
        (ProviderType::Sendgrid, json!({ "apiKey": "SG.restricted" })),
        (
            ProviderType::Postmark,
            json!({ "serverToken": "good-server" }),
        ),
        (
            ProviderType::Mailgun,
            json!({ "apiKey": "restricted", "domain": "example.com" }),
        ),
        (
            ProviderType::Ses,
            with(ProviderType::Ses, "accessKeyId", json!("AKIArestricted")),
        ),
    ] {
        let app = TestApp::start().await;
        let id = app.connect_with(kind, &narrow).await;
        assert_eq!(
            app.get(&format!("/v1/providers/{id}/domains"))
                .await
                .expect(200),
            json!({ "data": [] }),
            "{kind}"
        );
        let receipt = app
            .post("/v1/send", &message_to("a@example.org"))
            .await
            .expect(202);
        assert_eq!(receipt["domainVerified"], false, "{kind}");
        app.drain().await;
        assert_eq!(
            app.status(receipt["messageId"].as_str().unwrap()).await,
            "SENT",
            "{kind}"
        );
    }
}

#[tokio::test]
async fn a_send_from_a_domain_that_is_not_verified_is_refused_with_its_reason() {
    for kind in HTTP_PROVIDERS {
        let app = quiet().await;
        app.connect(kind).await;
        for sender in [
            "news@unverified.example.net",
            "news@elsewhere.example",
            "news@sub.example.com",
        ] {
            let mut message = message_to("a@example.org");
            message["from"] = json!(sender);
            let error = app
                .post("/v1/send", &message)
                .await
                .expect_issues(422, &["from"]);
            assert_eq!(
                error["details"]["reason"], "DOMAIN_NOT_VERIFIED",
                "{kind} {sender}"
            );
        }
        assert_eq!(
            app.get("/v1/messages").await.expect(200)["pagination"]["total"],
            0
        );
    }
}

#[tokio::test]
async fn an_organization_may_accept_sends_from_domains_that_are_not_verified() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    app.execute("UPDATE organizations SET unverified_domains = 'accept'")
        .await;
    let mut message = message_to("a@example.org");
    message["from"] = json!("news@elsewhere.example");
    let receipt = app.post("/v1/send", &message).await.expect(202);
    assert_eq!(receipt["domainVerified"], false);
    app.leave_work();
}
