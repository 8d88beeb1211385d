//! Provider accounts: connecting, reading, changing, checking and removing them, for all
//! four types, and which account sends a message.

mod credentials;
mod domains;
mod event_secrets;
mod event_webhook;
mod health;
mod health_domains;
mod management;
mod rechecks;

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Reply, TestApp, credentials as good, message_to};

async fn quiet() -> TestApp {
    TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await
}

fn request(kind: ProviderType, credentials: &Value) -> Value {
    json!({ "providerType": kind, "displayName": format!("Our {kind}"), "credentials": credentials })
}

async fn connect(app: &TestApp, kind: ProviderType, credentials: &Value) -> Reply {
    app.post("/v1/providers", &request(kind, credentials)).await
}

/// Valid credentials with one field replaced.
fn with(kind: ProviderType, field: &str, value: Value) -> Value {
    let mut credentials = good(kind);
    credentials[field] = value;
    credentials
}

async fn is_active(app: &TestApp, id: &str) -> bool {
    app.get(&format!("/v1/providers/{id}")).await.data(200)["isActive"]
        .as_bool()
        .unwrap()
}

async fn account_count(app: &TestApp) -> usize {
    app.get("/v1/providers")
        .await
        .data(200)
        .as_array()
        .unwrap()
        .len()
}

/// The region of an account with good credentials.
fn region(kind: ProviderType) -> Option<&'static str> {
    match kind {
        ProviderType::Sendgrid | ProviderType::Postmark | ProviderType::Mailgun => Some("us"),
        ProviderType::Ses => Some("eu"),
        ProviderType::Smtp => None,
    }
}

#[tokio::test]
async fn an_account_of_each_type_is_connected_read_changed_checked_and_removed() {
    for kind in ProviderType::ALL {
        let app = quiet().await;
        let mut account = connect(&app, kind, &good(kind)).await.data(201);
        let registered = account.as_object_mut().unwrap().remove("eventWebhook");
        assert!(registered.is_some(), "{account}");
        let id = account["id"].as_str().unwrap();
        let expected = json!({
            "id": id,
            "organizationId": app.organization_id().to_string(),
            "providerType": kind,
            "displayName": format!("Our {kind}"),
            "region": region(kind),
            "isActive": true,
            "webhookUrl": account["webhookUrl"],
            "eventsVerified": false,
            "maxRatePerSecond": null,
            "maxConcurrency": null,
            "sendingPausedReason": null,
            "sendingPausedSince": null,
            "createdAt": account["createdAt"],
            "updatedAt": account["createdAt"],
        });
        assert_eq!(account, expected);
        let path = format!("/v1/providers/{id}");
        assert_eq!(app.get(&path).await.data(200), account);
        assert_eq!(
            app.get("/v1/providers").await.expect(200),
            json!({ "data": [account] })
        );

        app.advance(TimeDelta::seconds(5));
        let changed = app
            .patch(
                &path,
                &json!({ "displayName": "Renamed", "isActive": false }),
            )
            .await
            .data(200);
        assert_eq!(
            (&changed["displayName"], &changed["isActive"]),
            (&json!("Renamed"), &json!(false))
        );
        assert_eq!(changed["createdAt"], account["createdAt"]);
        assert_ne!(changed["updatedAt"], account["updatedAt"]);
        assert_eq!(app.get(&path).await.data(200), changed);

        let verdict = app
            .caller()
            .post_empty(&format!("{path}/validate"))
            .await
            .expect(200);
        assert_eq!(verdict, json!({ "valid": true, "providerType": kind }));
        assert!(is_active(&app, id).await);

        assert_eq!(
            app.delete(&path).await.expect(200),
            json!({ "success": true })
        );
        app.get(&path).await.expect_error(404, "NOT_FOUND");
        app.delete(&path).await.expect_error(404, "NOT_FOUND");
        app.patch(&path, &json!({ "isActive": true }))
            .await
            .expect_error(404, "NOT_FOUND");
        app.get(&format!("{path}/domains"))
            .await
            .expect_error(404, "NOT_FOUND");
        app.caller()
            .post_empty(&format!("{path}/validate"))
            .await
            .expect_error(404, "NOT_FOUND");
        assert_eq!(account_count(&app).await, 0);
    }
}

#[tokio::test]
async fn the_other_fields_of_an_account_are_checked_too() {
    let app = quiet().await;
    app.post("/v1/providers", &json!({}))
        .await
        .expect_issues(400, &["providerType", "displayName", "credentials"]);
    for kind in [
        json!("sendgrid"),
        json!("TYPE_A"),
        json!("RESEND"),
        json!(""),
        json!(1),
        json!(["SES"]),
        Value::Null,
    ] {
        let mut body = request(ProviderType::Sendgrid, &good(ProviderType::Sendgrid));
        body["providerType"] = kind;
        app.post("/v1/providers", &body)
            .await
            .expect_issues(400, &["providerType"]);
    }
    for name in [
        json!(""),
        json!("x".repeat(256)),
        json!("a\nb"),
        json!("a\0b"),
        json!(1),
        Value::Null,
    ] {
        let mut body = request(ProviderType::Sendgrid, &good(ProviderType::Sendgrid));
        body["displayName"] = name;
        app.post("/v1/providers", &body)
            .await
            .expect_issues(400, &["displayName"]);
    }
    let mut body = request(ProviderType::Sendgrid, &good(ProviderType::Sendgrid));
    body["displayName"] = json!("é".repeat(255));
    let account = app.post("/v1/providers", &body).await.data(201);
    assert_eq!(account["displayName"], "é".repeat(255));
}

#[tokio::test]
async fn a_change_is_checked_like_a_new_account() {
    let app = quiet().await;
    let id = app.connect(ProviderType::Sendgrid).await;
    let path = format!("/v1/providers/{id}");
    let before = app.get(&path).await.data(200);
    for (body, paths) in [
        (
            json!({ "displayName": "x".repeat(256) }),
            vec!["displayName"],
        ),
        (json!({ "displayName": "" }), vec!["displayName"]),
        (json!({ "isActive": "yes" }), vec!["isActive"]),
        (json!({ "isActive": 1 }), vec!["isActive"]),
        (json!({ "credentials": {} }), vec!["credentials.apiKey"]),
        (
            json!({ "displayName": 1, "isActive": "no", "credentials": "x" }),
            vec!["credentials", "displayName", "isActive"],
        ),
    ] {
        app.patch(&path, &body).await.expect_issues(400, &paths);
    }
    let refused = app
        .patch(
            &path,
            &json!({ "credentials": { "apiKey": "invalid" }, "displayName": "New" }),
        )
        .await;
    refused.expect_error(422, "PROVIDER_INVALID_CREDENTIALS");
    let undecided = app
        .patch(
            &path,
            &json!({ "credentials": { "apiKey": "htmlwall" }, "isActive": false }),
        )
        .await;
    undecided.expect_error(503, "SERVICE_UNAVAILABLE");
    assert_eq!(app.get(&path).await.data(200), before);
    let unchanged = app.patch(&path, &json!({})).await.data(200);
    assert_eq!(unchanged["displayName"], before["displayName"]);
}

#[tokio::test]
async fn without_an_active_account_no_message_is_accepted() {
    let app = quiet().await;
    let message = message_to("a@example.org");
    app.post("/v1/send", &message)
        .await
        .expect_error(422, "VALIDATION_ERROR");
    let id = app.connect(ProviderType::Postmark).await;
    let path = format!("/v1/providers/{id}");
    app.patch(&path, &json!({ "isActive": false }))
        .await
        .data(200);
    app.post("/v1/send", &message)
        .await
        .expect_error(422, "VALIDATION_ERROR");
    app.patch(&path, &json!({ "isActive": true }))
        .await
        .data(200);
    app.post("/v1/send", &message).await.expect(202);
    app.delete(&path).await.expect(200);
    app.post("/v1/send", &message)
        .await
        .expect_error(422, "VALIDATION_ERROR");
    app.leave_work();
}

#[tokio::test]
async fn the_oldest_active_account_sends_a_message() {
    let app = quiet().await;
    let mut ids = Vec::new();
    for kind in [
        ProviderType::Ses,
        ProviderType::Mailgun,
        ProviderType::Sendgrid,
    ] {
        ids.push(app.connect(kind).await);
        app.advance(TimeDelta::milliseconds(10));
    }
    let listed = app.get("/v1/providers").await.data(200);
    let listed: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|account| account["id"].as_str().unwrap())
        .collect();
    assert_eq!(listed, ids);
    for id in &ids {
        let receipt = app
            .post("/v1/send", &message_to("a@example.org"))
            .await
            .expect(202);
        assert_eq!(receipt["providerId"], json!(id));
        app.patch(
            &format!("/v1/providers/{id}"),
            &json!({ "isActive": false }),
        )
        .await
        .data(200);
    }
    app.leave_work();
}
