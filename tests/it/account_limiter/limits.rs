//! The limits that the customer sets for an account.

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, credentials};

async fn quiet() -> TestApp {
    TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await
}

fn new_account(limits: Value) -> Value {
    let kind = ProviderType::Postmark;
    let mut body = json!({
        "providerType": kind,
        "displayName": "Paced",
        "credentials": credentials(kind),
    });
    if let (Some(body), Value::Object(limits)) = (body.as_object_mut(), limits) {
        body.extend(limits);
    }
    body
}

fn limits_of(account: &Value) -> (Value, Value) {
    (
        account["maxRatePerSecond"].clone(),
        account["maxConcurrency"].clone(),
    )
}

#[tokio::test]
async fn an_accounts_limits_are_set_read_changed_and_removed() {
    let app = quiet().await;
    let body = new_account(json!({ "maxRatePerSecond": 100_000, "maxConcurrency": 1 }));
    let mut account = app.post("/v1/providers", &body).await.data(201);
    account.as_object_mut().unwrap().remove("eventWebhook");
    assert_eq!(limits_of(&account), (json!(100_000), json!(1)));
    let path = format!("/v1/providers/{}", account["id"].as_str().unwrap());
    assert_eq!(app.get(&path).await.data(200), account);
    for (change, rate, concurrency) in [
        (json!({ "displayName": "Same" }), json!(100_000), json!(1)),
        (
            json!({ "maxConcurrency": 10_000 }),
            json!(100_000),
            json!(10_000),
        ),
        (
            json!({ "maxRatePerSecond": null }),
            json!(null),
            json!(10_000),
        ),
        (
            json!({ "maxRatePerSecond": 1, "maxConcurrency": null }),
            json!(1),
            json!(null),
        ),
    ] {
        let changed = app.patch(&path, &change).await.data(200);
        assert_eq!(limits_of(&changed), (rate, concurrency), "{change}");
        assert_eq!(app.get(&path).await.data(200), changed);
    }
    let entries = app.get("/v1/audit-logs?action=provider.updated").await;
    assert_eq!(
        entries.expect(200)["data"][0]["metadata"],
        json!({ "fields": ["maxRatePerSecond", "maxConcurrency"] })
    );
    let none = new_account(json!({ "maxRatePerSecond": null }));
    let account = app.post("/v1/providers", &none).await.data(201);
    assert_eq!(limits_of(&account), (json!(null), json!(null)));
}

#[tokio::test]
async fn invalid_limits_are_refused_with_their_paths() {
    let app = quiet().await;
    let mut account = app
        .post("/v1/providers", &new_account(json!({})))
        .await
        .data(201);
    account.as_object_mut().unwrap().remove("eventWebhook");
    let path = format!("/v1/providers/{}", account["id"].as_str().unwrap());
    for (rate, concurrency) in [
        (json!(0), json!(0)),
        (json!(100_001), json!(10_001)),
        (json!(-1), json!(1.5)),
        (json!("10"), json!([])),
    ] {
        let limits = json!({ "maxRatePerSecond": rate, "maxConcurrency": concurrency });
        let paths = ["maxRatePerSecond", "maxConcurrency"];
        let reply = app
            .post("/v1/providers", &new_account(limits.clone()))
            .await;
        reply.expect_issues(400, &paths);
        app.patch(&path, &limits).await.expect_issues(400, &paths);
    }
    assert_eq!(app.get(&path).await.data(200), account);
}
