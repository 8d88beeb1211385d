//! Rules with a region: no account outside of it sends their messages.

use chrono::{SecondsFormat, TimeDelta};
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{Fault, FaultCalls, FaultKind, Provider};
use waypost_tests::{TestApp, credentials, message_to};

use super::targets::{sharing, target};
use super::{PATH, create, path_of, quiet, rule_for, with};

async fn in_the_us(app: &TestApp) -> String {
    app.advance(TimeDelta::milliseconds(10));
    app.connect(ProviderType::Postmark).await
}

async fn in_the_eu(app: &TestApp) -> String {
    app.advance(TimeDelta::milliseconds(10));
    app.connect_with(ProviderType::Ses, &ses("eu-central-1"))
        .await
}

fn ses(region: &str) -> Value {
    let mut credentials = credentials(ProviderType::Ses);
    credentials["region"] = json!(region);
    credentials
}

async fn moves_to(app: &TestApp, account: &str, region: &str) {
    let change = json!({ "credentials": ses(region) });
    let path = format!("/v1/providers/{account}");
    app.patch(&path, &change).await.expect(200);
}

async fn activate(app: &TestApp, account: &str, is_active: bool) {
    let change = json!({ "isActive": is_active });
    let path = format!("/v1/providers/{account}");
    app.patch(&path, &change).await.expect(200);
}

async fn resolve(app: &TestApp) -> Value {
    let message = json!({ "from": "news@example.com" });
    let path = format!("{PATH}/resolve");
    app.post(&path, &message).await.data(200)
}

#[tokio::test]
async fn an_account_shows_its_region() {
    let app = quiet().await;
    let mailgun = json!({ "apiKey": "good-key", "domain": "example.com", "region": "eu" });
    let sendgrid = json!({ "apiKey": "SG.good-key", "region": "eu" });
    for (kind, credentials, region) in [
        (ProviderType::Mailgun, Some(mailgun), json!("eu")),
        (ProviderType::Mailgun, None, json!("us")),
        (ProviderType::Sendgrid, Some(sendgrid), json!("eu")),
        (ProviderType::Sendgrid, None, json!("us")),
        (ProviderType::Postmark, None, json!("us")),
        (ProviderType::Ses, Some(ses("us-west-2")), json!("us")),
        (ProviderType::Ses, Some(ses("ap-south-1")), Value::Null),
    ] {
        let id = match &credentials {
            Some(credentials) => app.connect_with(kind, credentials).await,
            None => app.connect(kind).await,
        };
        let account = app.get(&format!("/v1/providers/{id}")).await.data(200);
        assert_eq!(account["region"], region, "{kind} {credentials:?}");
    }
}

#[tokio::test]
async fn a_rule_names_accounts_in_its_region_only() {
    let app = quiet().await;
    let (us, eu, other) = (
        in_the_us(&app).await,
        in_the_eu(&app).await,
        in_the_eu(&app).await,
    );
    let in_eu = json!({ "region": "eu" });
    let with_fallbacks = json!({ "region": "eu", "fallbackProviderAccountIds": [other, us] });
    let targets = [target(&eu, 1), target(&us, 1)];
    for (body, path) in [
        (with(&us, &in_eu), "providerAccountId"),
        (with(&eu, &with_fallbacks), "fallbackProviderAccountIds.1"),
        (sharing(&targets, &in_eu), "targets.1.providerAccountId"),
    ] {
        let error = app.post(PATH, &body).await.expect_issues(422, &[path]);
        assert_eq!(error["details"]["reason"], "ACCOUNT_OUTSIDE_REGION");
    }
    let unknown = app
        .post(PATH, &with(&us, &json!({ "region": "mars" })))
        .await;
    unknown.expect_issues(400, &["region"]);

    let rule = create(&app, &with(&eu, &in_eu)).await;
    assert_eq!(rule["region"], "eu");
    let path = path_of(&rule);
    let refused = app.patch(&path, &json!({ "targets": targets })).await;
    refused.expect_issues(422, &["targets.1.providerAccountId"]);
    let refused = app.patch(&path, &json!({ "region": "us" })).await;
    refused.expect_issues(422, &["providerAccountId"]);
    let renamed = app.patch(&path, &json!({ "name": "Renamed" })).await;
    assert_eq!(renamed.data(200)["region"], "eu");
    // What the change does not touch may have left the region.
    moves_to(&app, &eu, "us-east-1").await;
    let renamed = app.patch(&path, &json!({ "name": "Again" })).await;
    renamed.expect(200);
    let cleared = json!({ "region": null, "providerAccountId": us });
    let cleared = app.patch(&path, &cleared).await.data(200);
    assert_eq!(cleared["region"], Value::Null);
    let log = app.get("/v1/audit-logs?action=routing_rule.updated").await;
    let newest = &log.expect(200)["data"][0]["metadata"]["fields"];
    assert_eq!(newest, &json!(["region", "providerAccountId"]));
}

#[tokio::test]
async fn an_account_that_left_the_region_of_a_rule_is_passed_over() {
    let app = quiet().await;
    let (_us, first, second) = (
        in_the_us(&app).await,
        in_the_eu(&app).await,
        in_the_eu(&app).await,
    );
    let in_eu = json!({ "region": "eu" });
    let targets = [target(&first, 1), target(&second, 1)];
    create(&app, &sharing(&targets, &in_eu)).await;
    moves_to(&app, &first, "us-east-1").await;
    for _ in 0..4 {
        let sent = app.post("/v1/send", &message_to("a@example.org")).await;
        assert_eq!(sent.expect(202)["providerId"], json!(second));
    }
    let found = resolve(&app).await;
    let reasons = |name: &str| -> Value {
        let named = found[name].as_array().unwrap().iter();
        named.map(|one| one["passedOver"].clone()).collect()
    };
    assert_eq!(reasons("targets"), json!(["REGION", null]));
    assert_eq!(found["targets"][1]["share"], 1.0);
    app.leave_work();
}

#[tokio::test]
async fn without_its_accounts_a_rule_takes_others_of_its_region_and_no_others() {
    let app = quiet().await;
    let (us, first, second) = (
        in_the_us(&app).await,
        in_the_eu(&app).await,
        in_the_eu(&app).await,
    );
    create(
        &app,
        &with(&first, &json!({ "region": "eu", "priority": 1 })),
    )
    .await;
    create(&app, &rule_for(&us)).await;
    activate(&app, &first, false).await;
    let sent = app.post("/v1/send", &message_to("a@example.org")).await;
    assert_eq!(sent.expect(202)["providerId"], json!(second));
    activate(&app, &second, false).await;
    let refused = app.post("/v1/send", &message_to("a@example.org")).await;
    let error = refused.expect(422);
    assert_eq!(error["error"]["details"]["reason"], "NO_ACTIVE_PROVIDER");
    let found = resolve(&app).await;
    assert_eq!(found["rule"]["region"], "eu");
    assert_eq!(found["account"], Value::Null);
    assert_eq!(found["refusal"], "NO_ACTIVE_PROVIDER");
    app.leave_work();
}

#[tokio::test]
async fn a_scheduled_message_stays_in_the_region_of_its_rule_when_it_goes() {
    let app = TestApp::start().await;
    let (_us, first, second) = (
        in_the_us(&app).await,
        in_the_eu(&app).await,
        in_the_eu(&app).await,
    );
    create(&app, &with(&first, &json!({ "region": "eu" }))).await;
    let due = app.clock.now() + TimeDelta::hours(1);
    let schedule = async |address: &str| -> String {
        let mut message = message_to(address);
        message["scheduledAt"] = json!(due.to_rfc3339_opts(SecondsFormat::Micros, true));
        app.send(&message).await
    };
    let id = schedule("a@example.org").await;
    moves_to(&app, &first, "us-east-1").await;
    app.advance_and_drain(TimeDelta::minutes(61)).await;
    let attempts = app.attempts(&id).await;
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0].account_id.to_string(), second);
}

#[tokio::test]
async fn a_rule_with_a_region_stays_active_when_its_last_account_is_removed() {
    let app = quiet().await;
    let (_us, first, second) = (
        in_the_us(&app).await,
        in_the_eu(&app).await,
        in_the_eu(&app).await,
    );
    let rule = create(&app, &with(&first, &json!({ "region": "eu" }))).await;
    app.delete(&format!("/v1/providers/{first}"))
        .await
        .expect(200);
    let shown = app.get(&path_of(&rule)).await.data(200);
    assert_eq!(shown["isActive"], true);
    let sent = app.post("/v1/send", &message_to("a@example.org")).await;
    assert_eq!(sent.expect(202)["providerId"], json!(second));
    app.leave_work();
}

#[tokio::test]
async fn waiting_mail_of_an_account_that_left_the_region_goes_through_another_in_it() {
    let app = TestApp::start().await;
    let (_us, first) = (in_the_us(&app).await, in_the_eu(&app).await);
    app.advance(TimeDelta::milliseconds(10));
    let mailgun = json!({ "apiKey": "good-key", "domain": "example.com", "region": "eu" });
    let second = app.connect_with(ProviderType::Mailgun, &mailgun).await;
    create(&app, &with(&first, &json!({ "region": "eu" }))).await;
    app.simulator().set_fault(Fault {
        provider: Some(Provider::Ses),
        kind: FaultKind::Error,
        rate: 1.0,
        latency_ms: 0,
        calls: FaultCalls::Send,
    });
    let id = app.send_to("a@example.org").await;
    app.drain().await;
    moves_to(&app, &first, "us-east-1").await;
    app.advance_and_drain(TimeDelta::minutes(61)).await;
    let called = app.attempts(&id).await.into_iter();
    let mut called: Vec<String> = called.map(|one| one.account_id.to_string()).collect();
    called.dedup();
    assert_eq!(called, [first, second]);
}
