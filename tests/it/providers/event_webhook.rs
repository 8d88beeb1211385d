//! Registering our URL at the providers.

use http::Method;
use serde_json::{Value, json};
use waypost_core::provider::event_secrets::EventSecrets;
use waypost_core::provider::kind::ProviderType;
use waypost_core::secret::ExposeSecret;
use waypost_simulator::{Fault, FaultCalls, FaultKind};
use waypost_tests::{Reply, TestApp};

use super::event_secrets::{PUBLIC_KEY, stored};
use super::quiet;

async fn register(app: &TestApp, id: &str) -> Reply {
    let path = format!("/v1/providers/{id}/event-webhook");
    app.caller().post_empty(&path).await
}

async fn account(app: &TestApp, id: &str) -> Value {
    app.get(&format!("/v1/providers/{id}")).await.data(200)
}

/// Everything secret in an account's event secrets.
fn secret(secrets: &EventSecrets) -> String {
    match secrets {
        EventSecrets::Sendgrid { public_key } => public_key.clone(),
        EventSecrets::Postmark { password, .. } => password.expose_secret().to_owned(),
        EventSecrets::Mailgun { signing_key } => signing_key.expose_secret().to_owned(),
        EventSecrets::Ses { topic_arn } => topic_arn.as_str().to_owned(),
    }
}

#[tokio::test]
async fn the_webhook_is_registered_once_and_its_secrets_are_stored() {
    for kind in [
        ProviderType::Sendgrid,
        ProviderType::Postmark,
        ProviderType::Mailgun,
    ] {
        let app = quiet().await;
        let id = app.connect(kind).await;
        let shown = account(&app, &id).await;
        let first = register(&app, &id).await;
        let expected = json!({ "data": {
            "registered": true,
            "webhookUrl": shown["webhookUrl"],
            "eventsVerified": false,
            "steps": [],
        }});
        assert_eq!(first.expect(200), expected, "{kind}");
        let secrets = stored(&app, &shown).await.unwrap();
        assert!(!first.text.contains(&secret(&secrets)), "{kind}");
        app.execute("UPDATE provider_accounts SET events_verified_at = now()")
            .await;
        // Postmark allows ten webhooks per server, SendGrid one per URL.
        for _ in 0..11 {
            let again = register(&app, &id).await.data(200);
            assert_eq!(again["registered"], true, "{kind}");
            assert_eq!(again["eventsVerified"], true, "{kind}: nothing changed");
        }
        let after = stored(&app, &shown).await.unwrap();
        assert_eq!(secret(&after), secret(&secrets), "{kind}");
        let entries = app.get("/v1/audit-logs?action=provider.event_webhook_registered");
        let entries = entries.await.data(200);
        let entries = entries.as_array().unwrap();
        assert_eq!(entries.len(), 12, "{kind}");
        assert_eq!(entries[0]["metadata"], json!({ "secretsChanged": false }));
        let is_new = kind != ProviderType::Postmark;
        assert_eq!(
            entries[11]["metadata"],
            json!({ "secretsChanged": is_new }),
            "{kind}"
        );
    }
}

#[tokio::test]
async fn an_older_account_gets_its_password_when_it_is_registered() {
    let app = quiet().await;
    let id = app.connect(ProviderType::Postmark).await;
    app.execute("UPDATE provider_accounts SET event_secrets_sealed = NULL")
        .await;
    assert_eq!(register(&app, &id).await.data(200)["registered"], true);
    let shown = account(&app, &id).await;
    assert!(stored(&app, &shown).await.is_some());
}

#[tokio::test]
async fn for_ses_the_response_lists_the_remaining_steps() {
    let app = quiet().await;
    let id = app.connect(ProviderType::Ses).await;
    let answer = register(&app, &id).await.data(200);
    assert_eq!(answer["registered"], false);
    let steps = |answer: &Value| -> Vec<String> {
        serde_json::from_value(answer["steps"].clone()).unwrap()
    };
    let all = steps(&answer);
    assert_eq!(all.len(), 6, "{all:#?}");
    assert!(all[0].contains("eu-central-1"), "{all:#?}");
    let topic = "arn:aws:sns:eu-central-1:123456789012:ses-events";
    let mut credentials = waypost_tests::credentials(ProviderType::Ses);
    credentials["configurationSet"] = json!("waypost");
    let body = json!({ "eventSecrets": { "topicArn": topic }, "credentials": credentials });
    app.patch(&format!("/v1/providers/{id}"), &body)
        .await
        .data(200);
    let left = steps(&register(&app, &id).await.data(200));
    assert_eq!(left.len(), 3, "{left:#?}");
    assert!(left.iter().all(|step| step.contains(topic)), "{left:#?}");
    assert!(left[1].contains("healthyRetryPolicy"), "{left:#?}");
    assert!(left[2].contains("waypost"), "{left:#?}");
    let entries = app.get("/v1/audit-logs?action=provider.event_webhook_registered");
    assert_eq!(entries.await.data(200), json!([]), "nothing was changed");
}

#[tokio::test]
async fn a_key_without_permission_is_a_422_with_the_steps_by_hand() {
    let app = quiet().await;
    for (kind, narrow, field) in [
        (
            ProviderType::Sendgrid,
            json!({ "apiKey": "SG.restricted" }),
            "eventSecrets.publicKey",
        ),
        (
            ProviderType::Mailgun,
            json!({ "apiKey": "restricted", "domain": "example.com" }),
            "eventSecrets.signingKey",
        ),
    ] {
        let id = app.connect_with(kind, &narrow).await;
        let error = register(&app, &id).await;
        let error = error.expect_error(422, "VALIDATION_ERROR");
        assert_eq!(error["details"]["reason"], "PROVIDER_REFUSED");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(field), "{message}");
        let shown = account(&app, &id).await;
        assert!(stored(&app, &shown).await.is_none(), "{kind}");
    }
}

#[tokio::test]
async fn without_a_reply_nothing_is_stored_and_a_later_request_works() {
    let app = quiet().await;
    for kind in [ProviderType::Sendgrid, ProviderType::Mailgun] {
        let id = app.connect(kind).await;
        app.simulator().set_fault(Fault {
            provider: None,
            kind: FaultKind::Error,
            rate: 1.0,
            latency_ms: 0,
            calls: FaultCalls::All,
        });
        register(&app, &id)
            .await
            .expect_error(503, "SERVICE_UNAVAILABLE");
        app.simulator().clear_faults();
        let shown = account(&app, &id).await;
        assert!(stored(&app, &shown).await.is_none(), "{kind}");
        assert_eq!(register(&app, &id).await.data(200)["registered"], true);
    }
    let nobody = uuid::Uuid::nil().to_string();
    register(&app, &nobody).await.expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn concurrent_registrations_create_one_webhook() {
    let app = quiet().await;
    let other = app.start_another_api().await;
    for kind in [
        ProviderType::Sendgrid,
        ProviderType::Postmark,
        ProviderType::Mailgun,
    ] {
        let id = app.connect(kind).await;
        let path = format!("/v1/providers/{id}/event-webhook");
        let (one, two) = tokio::join!(app.caller().post_empty(&path), other.post_empty(&path));
        assert_eq!((one.status, two.status), (200, 200), "{one:?} {two:?}");
    }
}

#[tokio::test]
async fn a_new_accounts_webhook_is_registered_and_the_response_says_so() {
    let app = quiet().await;
    for (nth, (kind, field, narrow, registered)) in [
        (ProviderType::Sendgrid, "", "", true),
        (ProviderType::Postmark, "", "", true),
        (ProviderType::Mailgun, "", "", true),
        (ProviderType::Ses, "", "", false),
        (ProviderType::Sendgrid, "apiKey", "SG.restricted", false),
    ]
    .into_iter()
    .enumerate()
    {
        let mut credentials = waypost_tests::credentials(kind);
        if !field.is_empty() {
            credentials[field] = json!(narrow);
        }
        let body =
            json!({ "providerType": kind, "displayName": "New", "credentials": credentials });
        let key = format!("connect-{nth}");
        let post = async || {
            let call = app.caller().call(Method::POST, "/v1/providers", |request| {
                request.header("Idempotency-Key", &key).json(&body)
            });
            call.await
        };
        let first = post().await;
        let account = first.data(201);
        let events = &account["eventWebhook"];
        assert_eq!(events["registered"], registered, "{kind}: {account}");
        let steps = events["steps"].as_array().unwrap();
        assert_eq!(steps.is_empty(), registered, "{kind}: {account}");
        assert_eq!(events["reason"].is_null(), field.is_empty(), "{account}");
        assert_eq!(post().await.data(201), account, "{kind}");
        let shown = self::account(&app, account["id"].as_str().unwrap()).await;
        assert_eq!(shown["updatedAt"], account["updatedAt"], "{kind}");
        assert!(shown.get("eventWebhook").is_none(), "{shown}");
    }
    let entries = app.get("/v1/audit-logs?action=provider.event_webhook_registered");
    assert_eq!(entries.await.data(200).as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn an_account_is_connected_even_if_its_webhook_cannot_be_registered() {
    let app = quiet().await;
    let kind = ProviderType::Sendgrid;
    let credentials = waypost_tests::credentials(kind);
    let given = json!({ "providerType": kind, "displayName": "New", "credentials": credentials });
    for (field, value) in [
        ("registerEventWebhook", json!(false)),
        ("eventSecrets", json!({ "publicKey": PUBLIC_KEY })),
    ] {
        let mut body = given.clone();
        body[field] = value;
        let account = app.post("/v1/providers", &body).await.data(201);
        assert_eq!(account["eventWebhook"], Value::Null, "{field}: {account}");
    }
    let mut body = given;
    body["registerEventWebhook"] = json!("yes");
    let refused = app.post("/v1/providers", &body).await;
    let error = refused.expect_error(400, "VALIDATION_ERROR");
    assert!(
        error.to_string().contains("registerEventWebhook"),
        "{error}"
    );
}
