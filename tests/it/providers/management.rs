//! Domains added, verified and removed one by one, at the provider and in the database.

use http::Method;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{Fault, FaultCalls, FaultKind, Provider};
use waypost_tests::{HTTP_PROVIDERS, Reply, TestApp, message_to};

use super::{quiet, with};

const NEW: &str = "new.example.org";

async fn add(app: &TestApp, account: &str, domain: &str) -> Reply {
    let path = format!("/v1/providers/{account}/domains");
    app.post(&path, &json!({ "domain": domain })).await
}

async fn verify(app: &TestApp, record: &Value) -> Reply {
    let path = format!("{}/verify", path(record));
    app.caller().post_empty(&path).await
}

fn path(record: &Value) -> String {
    let text = |key: &str| record[key].as_str().unwrap();
    let (account, id) = (text("providerAccountId"), text("id"));
    format!("/v1/providers/{account}/domains/{id}")
}

/// The names of an account's domains.
async fn names(app: &TestApp, account: &str) -> Vec<String> {
    let path = format!("/v1/providers/{account}/domains");
    let domains = app.get(&path).await.data(200);
    let domains = domains.as_array().unwrap().iter();
    let names = domains.map(|domain| domain["domain"].as_str().unwrap().to_owned());
    names.collect()
}

async fn validate(app: &TestApp, account: &str) {
    let path = format!("/v1/providers/{account}/validate");
    app.caller().post_empty(&path).await.expect(200);
}

async fn send_from(app: &TestApp, domain: &str) -> Reply {
    let mut message = message_to("a@example.org");
    message["from"] = json!(format!("news@{domain}"));
    app.post("/v1/send", &message).await
}

/// The audit actions about domains, oldest first.
async fn actions(app: &TestApp) -> Vec<(String, Value)> {
    let entries = app.get("/v1/audit-logs?targetType=domain").await.data(200);
    let entries = entries.as_array().unwrap().iter().rev();
    let entries = entries.map(|entry| {
        let action = entry["action"].as_str().unwrap().to_owned();
        (action, entry["metadata"].clone())
    });
    entries.collect()
}

#[tokio::test]
async fn a_domain_is_added_verified_and_removed_at_the_provider_too() {
    for kind in HTTP_PROVIDERS {
        let app = quiet().await;
        let account = app.connect(kind).await;
        let added = add(&app, &account, "New.Example.Org.").await.data(201);
        assert_eq!(added["domain"], NEW, "{kind}");
        assert_eq!(
            (&added["isVerified"], &added["state"]),
            (&json!(false), &json!("unverified")),
            "{kind}"
        );
        let records = added["dnsRecords"].as_array().unwrap();
        assert!(!records.is_empty(), "{kind}");
        assert!(
            records.iter().all(|record| record["status"] == "pending"),
            "{kind}: {added}"
        );
        let refused = send_from(&app, NEW).await.expect_issues(422, &["from"]);
        assert_eq!(refused["details"]["reason"], "DOMAIN_NOT_VERIFIED");
        add(&app, &account, NEW).await.expect_error(409, "CONFLICT");

        let verified = verify(&app, &added).await.data(200);
        assert_eq!(verified["id"], added["id"]);
        assert_eq!(
            (&verified["isVerified"], &verified["state"]),
            (&json!(true), &json!("verified")),
            "{kind}"
        );
        let records = verified["dnsRecords"].as_array().unwrap();
        assert!(
            records.iter().all(|record| record["status"] == "verified"),
            "{kind}: {verified}"
        );
        let receipt = send_from(&app, NEW).await.expect(202);
        assert_eq!(receipt["domainVerified"], true, "{kind}");
        validate(&app, &account).await;
        assert!(names(&app, &account).await.contains(&NEW.to_owned()));

        let removed = app.delete(&path(&added)).await.expect(200);
        assert_eq!(removed, json!({ "success": true }));
        // If the provider still had it, it would come back.
        validate(&app, &account).await;
        assert!(!names(&app, &account).await.contains(&NEW.to_owned()));
        send_from(&app, NEW).await.expect_issues(422, &["from"]);
        app.delete(&path(&added))
            .await
            .expect_error(404, "NOT_FOUND");
        verify(&app, &added).await.expect_error(404, "NOT_FOUND");
        let particulars =
            |state: &str| json!({ "providerAccountId": account, "domain": NEW, "state": state });
        let mut removal = particulars("verified");
        removal["removedAtProvider"] = json!(true);
        let expected = [
            ("domain.created".to_owned(), particulars("unverified")),
            ("domain.verified".to_owned(), particulars("verified")),
            ("domain.deleted".to_owned(), removal),
        ];
        assert_eq!(actions(&app).await, expected, "{kind}");
        app.leave_work();
    }
}

#[tokio::test]
async fn a_domain_with_missing_records_stays_unverified() {
    for kind in HTTP_PROVIDERS {
        let app = quiet().await;
        let account = app.connect(kind).await;
        let added = add(&app, &account, "new.unverified.example").await;
        let checked = verify(&app, &added.data(201)).await.data(200);
        assert_eq!(checked["state"], "unverified", "{kind}");
    }
}

#[tokio::test]
async fn a_domain_that_the_provider_already_has_is_stored_and_not_created_twice() {
    for (kind, provider, credential) in [
        (ProviderType::Sendgrid, Provider::SendGrid, "SG.good-key"),
        (ProviderType::Postmark, Provider::Postmark, "good-account"),
        (ProviderType::Mailgun, Provider::Mailgun, "good-key"),
        (ProviderType::Ses, Provider::Ses, "AKIAGOOD"),
    ] {
        let app = quiet().await;
        let account = app.connect(kind).await;
        // As after a crash between the provider's reply and our commit.
        let domains = ["example.com", NEW];
        app.simulator().set_domains(provider, credential, &domains);
        let added = add(&app, &account, NEW).await.data(201);
        assert_eq!(added["state"], "verified", "{kind}");
        assert!(!added["dnsRecords"].as_array().unwrap().is_empty());
        // The provider no longer has it: removing it is harmless.
        let domains = ["example.com"];
        app.simulator().set_domains(provider, credential, &domains);
        let checked = verify(&app, &added).await.data(200);
        assert_eq!(checked["state"], "unverified", "{kind}");
        app.delete(&path(&added)).await.expect(200);
        assert!(!names(&app, &account).await.contains(&NEW.to_owned()));
    }
}

#[tokio::test]
async fn a_domain_that_cannot_be_read_is_stored_as_unknown_and_sends() {
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
        let app = quiet().await;
        let account = app.connect_with(kind, &narrow).await;
        let added = add(&app, &account, NEW).await.data(201);
        assert_eq!(
            (&added["isVerified"], &added["state"], &added["dnsRecords"]),
            (&json!(false), &json!("unknown"), &json!([])),
            "{kind}"
        );
        let receipt = send_from(&app, NEW).await.expect(202);
        assert_eq!(receipt["domainVerified"], false, "{kind}");
        assert_eq!(verify(&app, &added).await.data(200)["state"], "unknown");
        validate(&app, &account).await;
        assert_eq!(names(&app, &account).await, [NEW], "{kind}");
        app.delete(&path(&added)).await.expect(200);
        assert!(names(&app, &account).await.is_empty());
        let (action, metadata) = actions(&app).await.pop().unwrap();
        assert_eq!(
            (action.as_str(), &metadata["removedAtProvider"]),
            ("domain.deleted", &json!(false)),
            "{kind}"
        );
        app.leave_work();
    }
}

#[tokio::test]
async fn invalid_domains_and_those_of_other_organizations_are_refused() {
    let app = quiet().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    for name in [
        json!(""),
        json!("localhost"),
        json!("a b.example"),
        json!("https://example.com"),
        json!("ada@example.com"),
        json!(7),
        Value::Null,
    ] {
        let path = format!("/v1/providers/{account}/domains");
        let reply = app.post(&path, &json!({ "domain": name })).await;
        reply.expect_issues(400, &["domain"]);
    }
    let added = add(&app, &account, NEW).await.data(201);
    let stranger = app.tenant("Strangers").await;
    let elsewhere = path(&added);
    let list = format!("/v1/providers/{account}/domains");
    let body = json!({ "domain": "new.example.net" });
    for reply in [
        stranger.caller.post(&list, &body).await,
        stranger
            .caller
            .post_empty(&format!("{elsewhere}/verify"))
            .await,
        stranger.caller.delete(&elsewhere).await,
        add(&app, "not-an-id", NEW).await,
    ] {
        reply.expect_error(404, "NOT_FOUND");
    }
    // A domain of one account does not belong to another.
    let other = app.connect(ProviderType::Mailgun).await;
    let id = added["id"].as_str().unwrap();
    let crossed = format!("/v1/providers/{other}/domains/{id}");
    app.delete(&crossed).await.expect_error(404, "NOT_FOUND");
    assert_eq!(names(&app, &account).await.len(), 4);
}

#[tokio::test]
async fn a_refusal_of_the_provider_is_a_422_with_its_reason() {
    for kind in HTTP_PROVIDERS {
        let app = quiet().await;
        let account = app.connect(kind).await;
        let before = names(&app, &account).await;
        let reply = add(&app, &account, "new.invalid.example").await;
        let error = reply.expect_error(422, "VALIDATION_ERROR");
        assert_eq!(error["details"]["reason"], "PROVIDER_REFUSED", "{kind}");
        assert!(error["message"].as_str().unwrap().contains(kind.as_str()));
        assert_eq!(names(&app, &account).await, before);
    }
    let app = quiet().await;
    let account = app.connect(ProviderType::Mailgun).await;
    let own = app.get(&format!("/v1/providers/{account}/domains")).await;
    let own = own.data(200)[0].clone();
    let error = app.delete(&path(&own)).await;
    error.expect_error(422, "VALIDATION_ERROR");
    assert_eq!(names(&app, &account).await, ["example.com"]);
}

#[tokio::test]
async fn without_a_reply_nothing_changes_and_the_same_request_works_later() {
    for kind in HTTP_PROVIDERS {
        let app = TestApp::builder()
            .without_worker()
            .without_scheduler()
            .setting("WAYPOST_PROVIDER_TIMEOUT", "500ms")
            .start()
            .await;
        let account = app.connect(kind).await;
        let known = add(&app, &account, "new.example.net").await.data(201);
        for fault in [FaultKind::Error, FaultKind::Throttle, FaultKind::Timeout] {
            app.simulator().set_fault(Fault {
                provider: None,
                kind: fault,
                rate: 1.0,
                latency_ms: 0,
                calls: FaultCalls::All,
            });
            for reply in [
                add(&app, &account, NEW).await,
                verify(&app, &known).await,
                app.delete(&path(&known)).await,
            ] {
                reply.expect_error(503, "SERVICE_UNAVAILABLE");
            }
            app.simulator().clear_faults();
        }
        assert!(!names(&app, &account).await.contains(&NEW.to_owned()));
        assert_eq!(actions(&app).await.len(), 1, "{kind}");
        add(&app, &account, NEW).await.data(201);
        app.delete(&path(&known)).await.expect(200);
        let left = app.value("SELECT count(*) FROM provider_claims").await;
        assert_eq!(left.as_deref(), Some("0"));
    }
}

#[tokio::test]
async fn of_two_concurrent_requests_one_adds_the_domain() {
    // Which request comes first differs between runs.
    const KEYED: usize = 6;
    let app = quiet().await;
    let other = app.start_another_api().await;
    for kind in [ProviderType::Sendgrid, ProviderType::Ses] {
        let account = app.connect(kind).await;
        let path = format!("/v1/providers/{account}/domains");
        let body = json!({ "domain": NEW });
        let (one, two) = tokio::join!(app.post(&path, &body), other.post(&path, &body));
        let mut statuses = [one.status, two.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409], "{kind}: {one:?} {two:?}");
        for nth in 0..KEYED {
            let (key, domain) = (format!("k{nth}"), format!("new{nth}.example.net"));
            let keyed = async |caller: &waypost_tests::Caller| {
                let body = json!({ "domain": domain });
                caller
                    .call(Method::POST, &path, |request| {
                        request.header("Idempotency-Key", &key).json(&body)
                    })
                    .await
            };
            let (one, two) = tokio::join!(keyed(app.caller()), keyed(&other));
            assert_eq!(
                one.data(201)["id"],
                two.data(201)["id"],
                "{kind}: one key, one domain"
            );
        }
        assert_eq!(names(&app, &account).await.len(), 4 + KEYED, "{kind}");
    }
}

#[tokio::test]
async fn the_lock_of_a_dead_process_expires() {
    let app = quiet().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    app.execute(&format!(
        "INSERT INTO provider_claims (provider_account_id, subject, holder, held_until)
         VALUES ('{account}', 'domain:{NEW}', gen_random_uuid(), '{}')",
        app.clock.now() + chrono::TimeDelta::seconds(90)
    ))
    .await;
    add(&app, &account, NEW).await.expect_error(409, "CONFLICT");
    app.advance(chrono::TimeDelta::seconds(91));
    add(&app, &account, NEW).await.data(201);
}
