//! Test sends: a template goes to its author as it would go to a customer.

use http::Method;
use serde_json::{Value, json};
use waypost_core::auth::Permission;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Reply, SENDER, TestApp};

use super::{add_version, audit, quiet, template};

async fn test_send(app: &TestApp, id: &str, body: &Value) -> Reply {
    app.post(&format!("/v1/templates/{id}/test-send"), body)
        .await
}

fn content() -> Value {
    json!({
        "htmlContent": "<p>{{name}}</p><a href=\"{{unsubscribeUrl}}\">Leave</a>", "textContent": "{{name}}",
        "subject": "Hi {{name}}", "from": SENDER, "replyTo": "help@example.com",
    })
}

#[tokio::test]
async fn a_template_is_sent_to_its_author() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = template(&app).await;
    let first = add_version(&app, &id, &content()).await.data(201);
    let mut second = content();
    second["subject"] = json!("Second {{name}}");
    second["locale"] = json!("de");
    add_version(&app, &id, &second).await.data(201);
    for (number, (more, subject)) in [
        (json!({}), "[Test] Hi Ada"),
        (json!({ "locale": "de-AT" }), "[Test] Second Ada"),
        (json!({ "versionId": first["id"] }), "[Test] Hi Ada"),
        (json!({ "subject": "Own {{name}}" }), "[Test] Own Ada"),
    ]
    .into_iter()
    .enumerate()
    {
        let to = [
            format!("a{number}@example.org"),
            format!("b{number}@example.org"),
        ];
        let mut body = json!({ "to": to, "variables": { "name": "Ada" } });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let answer = test_send(&app, &id, &body).await.expect(202);
        assert_eq!(answer["status"], "queued");
        app.drain().await;
        for address in &to {
            let copy = app.captured_once(address);
            assert_eq!(copy.subject, subject);
            let html = copy.html.unwrap();
            assert!(
                html.contains("<p>Ada</p>") && !html.contains("unsubscribeUrl"),
                "{html}"
            );
        }
        let message = app.message(answer["messageId"].as_str().unwrap()).await;
        assert_eq!(message["tags"], json!(["template-test"]));
        assert_eq!(message["templateId"], json!(id));
        let number = if more == json!({ "locale": "de-AT" }) {
            2
        } else {
            1
        };
        assert_eq!(message["templateVersionNumber"], number);
    }
    let tests = audit(&app).await.matches("template.test_sent").count();
    assert_eq!(tests, 4);
}

#[tokio::test]
async fn a_test_send_is_refused_as_a_send_is() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = template(&app).await;
    let body = json!({ "to": "ada@example.org" });
    let error = test_send(&app, &id, &body).await;
    let error = error.expect_error(422, "VALIDATION_ERROR");
    assert_eq!(error["details"]["reason"], "TEMPLATE_WITHOUT_VERSION");
    let bare = json!({ "htmlContent": "x", "variablesSchema": { "required": ["name"] } });
    let version = add_version(&app, &id, &bare).await.data(201);
    test_send(&app, &id, &body)
        .await
        .expect_issues(400, &["from", "subject"]);
    let whole = json!({ "to": "ada@example.org", "from": SENDER, "subject": "s" });
    test_send(&app, &id, &whole)
        .await
        .expect_issues(400, &["variables.name"]);
    for (field, value, paths) in [
        ("to", json!([]), &["to"][..]),
        ("to", json!(vec!["a@example.org"; 11]), &["to"]),
        ("to", json!(["nobody"]), &["to.0"]),
        ("variables", json!([]), &["variables"]),
        ("versionId", json!("x"), &["versionId"]),
        ("locale", json!("?"), &["locale"]),
        ("from", json!("x"), &["from"]),
        ("subject", json!(""), &["subject"]),
        ("subject", json!("x".repeat(998)), &["subject"]),
        ("html", json!("x"), &["html"]),
    ] {
        let mut wrong = whole.clone();
        wrong["variables"] = json!({ "name": "Ada" });
        wrong[field] = value;
        test_send(&app, &id, &wrong).await.expect_issues(400, paths);
    }
    let mut both = whole.clone();
    both["versionId"] = version["id"].clone();
    both["locale"] = json!("de");
    test_send(&app, &id, &both)
        .await
        .expect_issues(400, &["locale"]);
    let mut unverified = whole.clone();
    unverified["from"] = json!("a@unverified.example");
    unverified["variables"] = json!({ "name": "Ada" });
    test_send(&app, &id, &unverified)
        .await
        .expect_issues(422, &["from"]);
    let unknown = "0193a1b2-0000-7000-8000-000000000000";
    test_send(&app, unknown, &whole)
        .await
        .expect_error(404, "NOT_FOUND");
    let mut other = whole.clone();
    other["versionId"] = json!(unknown);
    test_send(&app, &id, &other)
        .await
        .expect_error(404, "NOT_FOUND");
    assert_eq!(
        app.value("SELECT count(*) FROM messages").await.as_deref(),
        Some("0")
    );
    assert!(!audit(&app).await.contains("template.test_sent"));
}

#[tokio::test]
async fn a_test_send_takes_both_permissions_and_happens_once() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = template(&app).await;
    add_version(&app, &id, &content()).await.data(201);
    let path = format!("/v1/templates/{id}/test-send");
    let body = json!({ "to": "ada@example.org" });
    for permissions in [&[Permission::Send][..], &[Permission::TemplatesRead], &[]] {
        let key = app.key(app.organization_id(), permissions).await;
        let caller = app.caller().with_key(&key);
        caller
            .post(&path, &body)
            .await
            .expect_error(403, "FORBIDDEN");
    }
    let key = app
        .key(
            app.organization_id(),
            &[Permission::Send, Permission::TemplatesRead],
        )
        .await;
    let caller = app.caller().with_key(&key);
    let keyed = async |body: &Value| {
        caller
            .call(Method::POST, &path, |request| {
                request.header("Idempotency-Key", "once").json(body)
            })
            .await
    };
    let first = keyed(&body).await.expect(202);
    let second = keyed(&body).await;
    assert_eq!(second.expect(202), first);
    assert_eq!(second.header("idempotent-replayed"), Some("true"));
    keyed(&json!({ "to": "bob@example.org" }))
        .await
        .expect_error(409, "CONFLICT");
    assert_eq!(
        app.value("SELECT count(*) FROM messages").await.as_deref(),
        Some("1")
    );
    assert_eq!(audit(&app).await.matches("template.test_sent").count(), 1);
    app.leave_work();
}
