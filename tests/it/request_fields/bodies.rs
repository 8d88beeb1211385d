//! Bodies with more than the operation accepts: a body where none is expected, a field
//! twice, credentials of another provider.

use http::Method;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;

use super::{body_schema, document, findings, perform};
use crate::security::matrix::{belongings, operations, quiet, state};

#[tokio::test]
async fn an_operation_without_a_body_rejects_one() {
    let app = quiet().await;
    let ids = belongings(&app, app.caller()).await;
    let organization = app.organization_id().to_string();
    let before = state(&app, &organization).await;
    let document = document(&app).await;
    let mut tried = 0;
    for operation in operations(&app).await {
        let has_body = body_schema(&document, &operation).is_some();
        if has_body || operation.method == Method::GET {
            continue;
        }
        let path = operation.path_to(&ids);
        for (body, at) in [
            (
                json!({ "scheduledAt": "2030-01-01T00:00:00Z" }),
                "scheduledAt",
            ),
            (json!([1]), ""),
        ] {
            let reply = perform(&app, &operation, &path, Some(&body)).await;
            let found = findings(&reply);
            let what = format!("{}: {reply:?}", operation.name());
            assert!(found.iter().any(|(path, _)| path == at), "{what}");
            tried += 1;
        }
    }
    assert!(tried > 20, "{tried} requests");
    assert_eq!(before, state(&app, &organization).await);
    for empty in ["", "{}", "null"] {
        let path = format!("/v1/webhook-endpoints/{}", uuid::Uuid::nil());
        let reply = app.caller().call(Method::DELETE, &path, |request| {
            request
                .header("Content-Type", "application/json")
                .body(empty)
        });
        assert_eq!(reply.await.status, 404, "{empty:?}");
    }
    app.leave_work();
}

#[tokio::test]
async fn a_duplicate_field_is_rejected() {
    let app = quiet().await;
    for body in [
        r#"{"name":"a","name":"b"}"#,
        r#"{"name":"a","description":"x","n\u0061me":"b"}"#,
    ] {
        let kind = Some("application/json");
        let reply = app
            .caller()
            .post_raw("/v1/templates", kind, body.to_owned());
        let error = reply.await.expect_error(400, "VALIDATION_ERROR");
        assert!(error.to_string().contains("has a field twice"), "{error}");
    }
}

#[tokio::test]
async fn credentials_of_another_provider_are_rejected() {
    let app = quiet().await;
    for kind in ProviderType::ALL {
        for other in [
            "apiKey",
            "serverToken",
            "messageStream",
            "sessionToken",
            "port",
            "tls",
        ] {
            let mut credentials = waypost_tests::credentials(kind);
            let is_own = match kind {
                ProviderType::Sendgrid | ProviderType::Mailgun => other == "apiKey",
                ProviderType::Postmark => ["serverToken", "messageStream"].contains(&other),
                ProviderType::Ses => other == "sessionToken",
                ProviderType::Smtp => ["port", "tls"].contains(&other),
            };
            if is_own {
                continue;
            }
            credentials[other] = if other == "port" {
                json!(25)
            } else {
                json!("none")
            };
            let body =
                json!({ "providerType": kind, "displayName": "x", "credentials": credentials });
            let path = format!("credentials.{other}");
            app.post("/v1/providers", &body)
                .await
                .expect_issues(400, &[path.as_str()]);
            credentials[other] = Value::Null;
        }
    }
}
