//! The scheduler rechecks domains.

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{Fault, FaultCalls, FaultKind, Provider};
use waypost_tests::{TestApp, wait_until};

const NEW: &str = "new.example.org";

async fn start() -> TestApp {
    TestApp::builder().without_worker().start().await
}

async fn add(app: &TestApp, account: &str, domain: &str) {
    let path = format!("/v1/providers/{account}/domains");
    let added = app.post(&path, &json!({ "domain": domain })).await;
    assert_eq!(added.data(201)["state"], "unverified");
}

async fn state(app: &TestApp, account: &str, domain: &str) -> String {
    let path = format!("/v1/providers/{account}/domains");
    let domains = app.get(&path).await.data(200);
    let mut domains = domains.as_array().unwrap().iter();
    let found = domains.find(|found| found["domain"] == domain).unwrap();
    found["state"].as_str().unwrap().to_owned()
}

async fn becomes(app: &TestApp, account: &str, domain: &str, wanted: &str) {
    wait_until("the domain is looked at", async || {
        state(app, account, domain).await == wanted
    })
    .await;
}

/// The newest entry of the audit log with this action.
async fn entry(app: &TestApp, action: &str) -> Value {
    let path = format!("/v1/audit-logs?action={action}");
    app.get(&path).await.data(200)[0].clone()
}

/// Without SES: its signatures carry the time, which the test moves and the simulator does
/// not.
#[tokio::test]
async fn a_domain_becomes_verified_and_unverified_as_the_provider_says() {
    for (kind, provider, credential) in [
        (ProviderType::Sendgrid, Provider::SendGrid, "SG.good-key"),
        (ProviderType::Postmark, Provider::Postmark, "good-account"),
    ] {
        let app = start().await;
        let account = app.connect(kind).await;
        add(&app, &account, NEW).await;
        app.advance(TimeDelta::minutes(4));
        becomes(&app, &account, NEW, "verified").await;
        let verified = entry(&app, "domain.verified").await;
        assert_eq!(
            verified["actor"],
            json!({ "type": "system", "id": null, "name": null })
        );
        let expected = json!({ "providerAccountId": account, "domain": NEW, "state": "verified" });
        assert_eq!(verified["metadata"], expected, "{kind}");

        let left = ["example.com"];
        app.simulator().set_domains(provider, credential, &left);
        // Within a day there is no check.
        app.advance(TimeDelta::hours(20));
        app.drain().await;
        assert_eq!(state(&app, &account, NEW).await, "verified", "{kind}");
        app.advance(TimeDelta::hours(7));
        becomes(&app, &account, NEW, "unverified").await;
        let unverified = entry(&app, "domain.unverified").await;
        assert_eq!(unverified["actor"]["type"], "system");
        becomes(&app, &account, "mail.example.com", "unverified").await;
        assert_eq!(state(&app, &account, "example.com").await, "verified");
    }
}

#[tokio::test]
async fn a_check_without_a_change_leaves_no_audit_entry() {
    let app = start().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    add(&app, &account, "new.unverified.example").await;
    let checked = "SELECT checked_at FROM provider_domains WHERE domain = 'new.unverified.example'";
    let before = app.value(&format!("SELECT ({checked})::text")).await;
    app.advance(TimeDelta::minutes(4));
    wait_until("it is looked at", async || {
        app.value(&format!("SELECT ({checked})::text")).await != before
    })
    .await;
    let entries = app.get("/v1/audit-logs?targetType=domain").await.data(200);
    assert_eq!(entries.as_array().unwrap().len(), 1, "{entries}");
}

#[tokio::test]
async fn a_dead_provider_does_not_delay_the_others() {
    let app = TestApp::builder()
        .without_worker()
        .setting("WAYPOST_PROVIDER_TIMEOUT", "2s")
        .start()
        .await;
    let dead = app.connect(ProviderType::Postmark).await;
    let living = app.connect(ProviderType::Sendgrid).await;
    for account in [&dead, &living] {
        for number in 0..6 {
            add(&app, account, &format!("new{number}.example.org")).await;
        }
    }
    app.simulator().set_fault(Fault {
        provider: Some(Provider::Postmark),
        kind: FaultKind::Timeout,
        rate: 1.0,
        latency_ms: 0,
        calls: FaultCalls::All,
    });
    app.advance(TimeDelta::minutes(4));
    for number in 0..6 {
        becomes(
            &app,
            &living,
            &format!("new{number}.example.org"),
            "verified",
        )
        .await;
    }
    assert_eq!(state(&app, &dead, "new0.example.org").await, "unverified");
    app.simulator().clear_faults();
    // A check in flight postpones the account's checks once more when it ends.
    for number in 0..6 {
        let domain = format!("new{number}.example.org");
        wait_until("the dead one comes again", async || {
            app.advance(TimeDelta::minutes(11));
            state(&app, &dead, &domain).await == "verified"
        })
        .await;
    }
}
