//! Idempotency keys: an operation that creates runs once per key; a repeated request gets
//! the same response.

mod races;
mod sending;

use std::collections::BTreeSet;

use chrono::TimeDelta;
use http::Method;
use serde_json::{Value, json};
use waypost_core::auth::Permission;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Caller, Reply, SENDER, TestApp, credentials, message_to, wait_until};

const REPLAYED: &str = "idempotent-replayed";

async fn quiet() -> TestApp {
    TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await
}

async fn keyed(caller: &Caller, path: &str, key: &str, body: &Value) -> Reply {
    caller
        .call(Method::POST, path, |request| {
            request.header("Idempotency-Key", key).json(body)
        })
        .await
}

/// Asserts that the second response replays the first one.
fn assert_replayed(first: &Reply, again: &Reply) {
    assert_eq!(
        (first.status, &first.text, first.header("content-type")),
        (again.status, &again.text, again.header("content-type"))
    );
    assert_eq!(first.header(REPLAYED), None, "{first:?}");
    assert_eq!(again.header(REPLAYED), Some("true"), "{again:?}");
}

/// The things that operations have created.
async fn inventory(app: &TestApp) -> String {
    let counts = [
        "messages",
        "audit_logs",
        "provider_accounts",
        "provider_domains",
        "routing_rules",
        "api_keys",
        "api_key_old_secrets",
        "unsubscribe_groups",
        "suppressions",
        "templates",
        "template_versions",
        "memberships",
        "invitations",
    ]
    .map(|table| format!("(SELECT count(*) FROM {table})"));
    app.value(&format!("SELECT concat_ws(' ', {})", counts.join(", ")))
        .await
        .unwrap()
}

/// A request to each operation that creates, by its path in the document.
#[expect(clippy::too_many_lines, reason = "a table of requests")]
async fn creations(app: &TestApp) -> Vec<(&'static str, String, Value)> {
    let account = app.connect(ProviderType::Sendgrid).await;
    let made = async |path: &str, body: Value| {
        let made = app.post(path, &body).await.data(201);
        made["id"].as_str().unwrap().to_owned()
    };
    let template = made("/v1/templates", json!({ "name": "A template" })).await;
    let key = json!({ "name": "A key", "permissions": ["SEND"] });
    let key = made("/v1/api-keys", key).await;
    app.user("known@example.org", &[]).await;
    // Any server that responds is sufficient.
    let endpoint = json!({ "url": app.simulator().url(), "events": ["COMPLAINED"] });
    let another = endpoint.clone();
    let endpoint = made("/v1/webhook-endpoints", endpoint).await;
    let requests = [
        ("/v1/send", message_to("ada@example.org")),
        (
            "/v1/emails/batch",
            json!({ "messages": [message_to("bob@example.org"), {}] }),
        ),
        (
            "/v1/providers",
            json!({
                "providerType": "MAILGUN", "displayName": "Another",
                "credentials": credentials(ProviderType::Mailgun),
            }),
        ),
        (
            "/v1/providers/{id}/domains",
            json!({ "domain": "new.example.org" }),
        ),
        (
            "/v1/routing-rules",
            json!({ "name": "A rule", "providerAccountId": account }),
        ),
        (
            "/v1/api-keys",
            json!({ "name": "Another key", "permissions": ["SEND"] }),
        ),
        ("/v1/api-keys/{id}/rotate", json!({})),
        (
            "/v1/unsubscribe-groups",
            json!({ "name": "News", "isDefault": true }),
        ),
        ("/v1/suppressions", json!({ "email": "eve@example.org" })),
        (
            "/v1/suppressions/import",
            json!({ "emails": ["mal@example.org", "eve@example.org"] }),
        ),
        (
            "/v1/suppressions/remove",
            json!({ "emails": ["mal@example.org"] }),
        ),
        ("/v1/templates", json!({ "name": "Another template" })),
        (
            "/v1/templates/{id}/versions",
            json!({ "htmlContent": "<p>{{x}}</p>" }),
        ),
        (
            "/v1/templates/{id}/test-send",
            json!({ "to": "ada@example.org", "from": SENDER, "subject": "S", "variables": { "x": 1 } }),
        ),
        ("/v1/webhook-endpoints", another),
        (
            "/v1/members",
            json!({ "email": "known@example.org", "role": "VIEWER" }),
        ),
        (
            "/v1/invitations",
            json!({ "email": "new@example.org", "role": "VIEWER" }),
        ),
        ("/v1/webhook-endpoints/{id}/rotate-secret", json!({})),
    ];
    let requests = requests.map(|(path, body)| {
        let id = match path {
            path if path.contains("templates") => &template,
            path if path.contains("webhook-endpoints") => &endpoint,
            path if path.contains("providers") => &account,
            _ => &key,
        };
        (path, path.replace("{id}", id), body)
    });
    requests.into()
}

#[tokio::test]
async fn every_operation_that_creates_accepts_a_key_and_documents_it() {
    let app = quiet().await;
    let document = app.document().await;
    let mut found = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let mut parameters = parameters.filter(|one| one["name"] == "Idempotency-Key");
            let responses = operation["responses"].as_object().unwrap();
            let creates = responses.contains_key("201") || responses.contains_key("202");
            let Some(key) = parameters.next() else {
                // Nobody is known there whose key it could be.
                let signs_in = ["/v1/session", "/v1/invitations/accept"].contains(&path.as_str());
                assert!(
                    !creates || signs_in,
                    "{method} {path} creates and takes no key"
                );
                continue;
            };
            assert_eq!(method, "post", "{path}");
            assert_eq!((&key["in"], key.get("required")), (&json!("header"), None));
            assert_eq!(
                (&key["schema"]["minLength"], &key["schema"]["maxLength"]),
                (&json!(1), &json!(256))
            );
            assert!(key["description"].as_str().unwrap().contains("24 hours"));
            for (status, response) in responses {
                let shows = response["headers"].get("Idempotent-Replayed").is_some();
                assert_eq!(shows, status.starts_with('2'), "{path} {status}");
            }
            found.insert(path.clone());
        }
    }
    let listed: BTreeSet<String> = creations(&app)
        .await
        .into_iter()
        .map(|(path, _, _)| path.to_owned())
        .collect();
    assert_eq!(found, listed);
}

#[tokio::test]
async fn a_repeated_creation_runs_once_and_returns_the_same() {
    let app = quiet().await;
    for (path, url, body) in creations(&app).await {
        let first = keyed(app.caller(), &url, "a key", &body).await;
        assert!(first.status < 300, "{path}: {first:?}");
        let before = inventory(&app).await;
        for _ in 0..2 {
            let again = keyed(app.caller(), &url, "a key", &body).await;
            assert_replayed(&first, &again);
            assert_ne!(first.header("x-request-id"), again.header("x-request-id"));
        }
        assert_eq!(inventory(&app).await, before, "{path}");
    }
    app.leave_work();
}

#[tokio::test]
async fn without_a_key_a_repeated_creation_creates_again() {
    let app = quiet().await;
    for _ in 0..2 {
        let reply = app.post("/v1/templates", &json!({ "name": "T" })).await;
        assert_eq!(reply.header(REPLAYED), None);
    }
    let total = app.get("/v1/templates").await.expect(200);
    assert_eq!(total["pagination"]["total"], 2);
    let keys = app.value("SELECT count(*) FROM idempotency_keys").await;
    assert_eq!(keys.as_deref(), Some("0"));
}

#[tokio::test]
async fn a_key_used_with_another_body_is_a_conflict() {
    let app = quiet().await;
    for (path, url, body) in creations(&app).await {
        keyed(app.caller(), &url, "a key", &body).await;
        let before = inventory(&app).await;
        let mut other = body.clone();
        // A null has the meaning of an absent field, and still makes another body.
        let (field, value) = match path {
            "/v1/send" | "/v1/templates" => ("tags", Value::Null),
            "/v1/emails/batch" => ("messages", json!([{}])),
            "/v1/providers" => ("eventSecrets", Value::Null),
            "/v1/providers/{id}/domains" => ("domain", json!("other.example.org")),
            "/v1/routing-rules" => ("priority", Value::Null),
            "/v1/api-keys" => ("allowedIps", Value::Null),
            "/v1/unsubscribe-groups" => ("description", Value::Null),
            "/v1/suppressions" => ("source", Value::Null),
            "/v1/suppressions/import" | "/v1/suppressions/remove" => {
                ("unsubscribeGroupId", Value::Null)
            }
            "/v1/templates/{id}/versions" => ("textContent", Value::Null),
            "/v1/templates/{id}/test-send" => ("locale", Value::Null),
            "/v1/webhook-endpoints" => ("isActive", Value::Null),
            "/v1/members" | "/v1/invitations" => ("role", json!("DEVELOPER")),
            _ => ("gracePeriodSeconds", Value::Null),
        };
        other[field] = value;
        let reply = keyed(app.caller(), &url, "a key", &other).await;
        let error = reply.expect_error(409, "CONFLICT");
        assert!(error["message"].as_str().unwrap().contains("key"), "{path}");
        let details = json!({ "reason": "IDEMPOTENCY_KEY_REUSED" });
        assert_eq!(error["details"], details, "{path}");
        assert_eq!(reply.header("retry-after"), None);
        assert_eq!(reply.header(REPLAYED), None);
        assert_eq!(inventory(&app).await, before, "{path}");
    }
    app.leave_work();
}

#[tokio::test]
async fn the_same_json_in_another_form_is_the_same_body() {
    let app = quiet().await;
    let send = async |text: &'static str| {
        app.caller()
            .call(Method::POST, "/v1/templates", |request| {
                request
                    .header("idempotency-key", "k")
                    .header("content-type", "application/json")
                    .body(text)
            })
            .await
    };
    let first = send(r#"{"name":"A","tags":["x","y"]}"#).await;
    assert_eq!(first.status, 201);
    let again = send("{\n  \"tags\": [\"x\", \"y\"],\n  \"name\": \"A\"\n}").await;
    assert_replayed(&first, &again);
    send(r#"{"name":"A","tags":["y","x"]}"#)
        .await
        .expect_error(409, "CONFLICT");
}

#[tokio::test]
async fn a_key_has_1_to_256_characters_and_one_header() {
    let app = quiet().await;
    let body = json!({ "name": "T" });
    let path = "/v1/templates";
    let fits = ["k".repeat(256), "é".repeat(256), "ключ 鍵".to_owned()];
    for key in fits {
        let first = keyed(app.caller(), path, &key, &body).await;
        assert_eq!(first.status, 201, "{first:?}");
        assert_replayed(&first, &keyed(app.caller(), path, &key, &body).await);
    }
    for key in [String::new(), "k".repeat(257), "é".repeat(257)] {
        keyed(app.caller(), path, &key, &body)
            .await
            .expect_issues(400, &["Idempotency-Key"]);
    }
    let latin = http::HeaderValue::from_bytes(b"caf\xe9").unwrap();
    let reply = app.caller().call(Method::POST, path, |request| {
        request.header("Idempotency-Key", latin).json(&body)
    });
    reply.await.expect_issues(400, &["Idempotency-Key"]);
    let twice = app.caller().call(Method::POST, path, |request| {
        let request = request.header("Idempotency-Key", "a");
        request.header("Idempotency-Key", "b").json(&body)
    });
    twice.await.expect_issues(400, &["Idempotency-Key"]);
    assert_eq!(
        app.value("SELECT count(*) FROM templates").await.as_deref(),
        Some("3")
    );
}

#[tokio::test]
async fn an_invalid_key_is_reported_with_all_other_issues() {
    let app = quiet().await;
    let before = inventory(&app).await;
    for (path, url, body) in creations(&app).await {
        let reply = keyed(app.caller(), &url, &"k".repeat(257), &body).await;
        reply.expect_issues(400, &["Idempotency-Key"]);
        if path != "/v1/emails/batch" && !path.contains("/{id}/rotate") {
            let reply = keyed(app.caller(), &url, &"k".repeat(257), &json!({})).await;
            let error = reply.expect_error(400, "VALIDATION_ERROR");
            let issues = error["details"]["issues"].as_array().unwrap();
            assert!(issues.len() > 1, "{path}: {error}");
            assert!(
                issues
                    .iter()
                    .any(|issue| issue["path"] == "Idempotency-Key"),
                "{path}: {error}"
            );
        }
    }
    assert_ne!(before, inventory(&app).await, "the preparations");
    let none = app
        .caller()
        .with_key(&app.key(app.organization_id(), &[]).await);
    keyed(&none, "/v1/templates", "", &json!({}))
        .await
        .expect_error(403, "FORBIDDEN");
}

#[tokio::test]
async fn a_failed_request_does_not_use_its_key() {
    let app = quiet().await;
    let (caller, path) = (app.caller(), "/v1/templates");
    keyed(caller, path, "k", &json!({}))
        .await
        .expect_issues(400, &["name"]);
    caller
        .call(Method::POST, path, |request| {
            request
                .header("Idempotency-Key", "k")
                .header("content-type", "application/json")
                .body("{")
        })
        .await
        .expect_error(400, "VALIDATION_ERROR");
    keyed(caller, path, "k", &json!({ "name": "T" }))
        .await
        .data(201);

    let path = "/v1/providers";
    let with = |key: &str| json!({ "providerType": "SENDGRID", "displayName": "A", "credentials": { "apiKey": key } });
    keyed(caller, path, "k", &with("SG.invalid"))
        .await
        .expect_error(422, "PROVIDER_INVALID_CREDENTIALS");
    keyed(caller, path, "k", &with("SG.good")).await.data(201);

    // The obstacle is gone: the same request succeeds now.
    let (path, body) = ("/v1/suppressions", json!({ "email": "a@example.org" }));
    let suppression = app.post(path, &body).await.data(201);
    let id = suppression["id"].as_str().unwrap();
    keyed(caller, path, "k", &body)
        .await
        .expect_error(409, "CONFLICT");
    app.delete(&format!("{path}/{id}")).await.expect(200);
    let first = keyed(caller, path, "k", &body).await;
    assert_eq!(first.status, 201, "{first:?}");
    assert_replayed(&first, &keyed(caller, path, "k", &body).await);

    let path = "/v1/routing-rules";
    let rule = |id: &str| json!({ "name": "R", "providerAccountId": id });
    let nobody = uuid::Uuid::nil().to_string();
    keyed(caller, path, "k", &rule(&nobody))
        .await
        .expect_error(422, "VALIDATION_ERROR");
    let account = app.connect(ProviderType::Sendgrid).await;
    keyed(caller, path, "k", &rule(&account)).await.data(201);
}

#[tokio::test]
async fn a_key_is_kept_for_24_hours_and_then_deleted() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let requests = [
        ("/v1/templates", json!({ "name": "T" })),
        ("/v1/send", message_to("a@example.org")),
        (
            "/v1/emails/batch",
            json!({ "messages": [message_to("b@example.org")] }),
        ),
    ];
    let mut first = Vec::new();
    for (path, body) in &requests {
        first.push(keyed(app.caller(), path, "k", body).await);
    }
    app.advance(TimeDelta::hours(24) - TimeDelta::milliseconds(1));
    for ((path, body), first) in requests.iter().zip(&first) {
        assert_replayed(first, &keyed(app.caller(), path, "k", body).await);
    }
    app.advance(TimeDelta::milliseconds(1));
    for ((path, body), first) in requests.iter().zip(&first) {
        // Another body succeeds too, since the first one has been deleted.
        let mut other = body.clone();
        let is_batch = other.get("messages").is_some();
        let fields = if is_batch {
            &mut other["messages"][0]
        } else {
            &mut other
        };
        fields["tags"] = Value::Null;
        let anew = keyed(app.caller(), path, "k", &other).await;
        assert_eq!(anew.status, first.status, "{anew:?}");
        assert_eq!(anew.header(REPLAYED), None);
        assert_ne!(anew.text, first.text, "{path}");
        assert_replayed(&anew, &keyed(app.caller(), path, "k", &other).await);
    }
    let count = async || app.value("SELECT count(*) FROM idempotency_keys").await;
    // One key each for a send, a template, a batch and its message.
    assert_eq!(count().await.as_deref(), Some("4"));
    app.advance(TimeDelta::hours(26));
    let later = keyed(
        app.caller(),
        "/v1/templates",
        "later",
        &json!({ "name": "T" }),
    )
    .await;
    assert_eq!(later.status, 201);
    wait_until("old keys are forgotten", async || {
        count().await.as_deref() == Some("1")
    })
    .await;
    let again = keyed(
        app.caller(),
        "/v1/templates",
        "later",
        &json!({ "name": "T" }),
    )
    .await;
    assert_replayed(&later, &again);
    app.leave_work();
}

#[tokio::test]
async fn a_key_belongs_to_its_organization_and_its_path() {
    let app = quiet().await;
    let body = json!({ "name": "The same" });
    let other = app.tenant("Other").await;
    let mut ids = BTreeSet::new();
    for caller in [app.caller(), &other.caller] {
        for path in ["/v1/templates", "/v1/unsubscribe-groups"] {
            let reply = keyed(caller, path, "k", &body).await;
            assert_eq!(reply.header(REPLAYED), None);
            ids.insert(reply.data(201)["id"].to_string());
        }
    }
    assert_eq!(ids.len(), 4);
    // The path of another template is another path.
    for name in ["one", "two"] {
        let template = app
            .post("/v1/templates", &json!({ "name": name }))
            .await
            .data(201);
        let path = format!(
            "/v1/templates/{}/versions",
            template["id"].as_str().unwrap()
        );
        let version = keyed(app.caller(), &path, "k", &json!({ "htmlContent": "x" })).await;
        assert_eq!(version.data(201)["templateId"], template["id"]);
    }
    // Another API key of the organization counts as the same caller.
    let colleague = app.key(app.organization_id(), &Permission::ALL).await;
    let colleague = app.caller().with_key(&colleague);
    let again = keyed(&colleague, "/v1/templates", "k", &body).await;
    assert_eq!(again.header(REPLAYED), Some("true"));
}

#[tokio::test]
async fn a_creation_is_replayed_although_its_record_is_deleted() {
    let mut app = quiet().await;
    let mut done = Vec::new();
    for (path, url, body) in creations(&app).await {
        let first = keyed(app.caller(), &url, "a key", &body).await;
        done.push((path, url, body, first));
    }
    // The provider is not called, and no record is needed.
    app.stop_simulator().await;
    for table in ["routing_rules", "provider_domains", "provider_accounts"] {
        if app
            .value(&format!("SELECT to_regclass('{table}')"))
            .await
            .is_some()
        {
            app.execute(&format!("DELETE FROM {table}")).await;
        }
    }
    for table in ["templates", "unsubscribe_groups", "suppressions"] {
        app.execute(&format!("DELETE FROM {table}")).await;
    }
    for (_, url, body, first) in &done {
        assert_replayed(first, &keyed(app.caller(), url, "a key", body).await);
    }
    app.leave_work();
}

#[tokio::test]
async fn a_stored_secret_is_sealed_and_replayed_only_to_permitted_callers() {
    let app = quiet().await;
    let body = json!({ "name": "Canary", "permissions": ["SEND", "SETTINGS_WRITE"] });
    let first = keyed(app.caller(), "/v1/api-keys", "canary-key", &body).await;
    let made = first.data(201);
    let (id, secret) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    let rotate = format!("/v1/api-keys/{id}/rotate");
    let rotated = keyed(app.caller(), &rotate, "canary-key", &json!({})).await;
    let rotated_secret = rotated.data(200)["key"].as_str().unwrap().to_owned();
    assert_ne!(secret, rotated_secret);
    let rows = app
        .value("SELECT string_agg(encode(answer, 'hex') || encode(key_hash, 'hex'), ' ') FROM idempotency_keys")
        .await
        .unwrap();
    for text in [
        secret,
        rotated_secret.as_str(),
        "Canary",
        "canary-key",
        "permissions",
    ] {
        assert!(!rows.contains(&hex::encode(text)), "{text} is readable");
    }
    assert_replayed(
        &first,
        &keyed(app.caller(), "/v1/api-keys", "canary-key", &body).await,
    );
    assert_replayed(
        &rotated,
        &keyed(app.caller(), &rotate, "canary-key", &json!({})).await,
    );
    app.caller()
        .with_key(&rotated_secret)
        .get("/v1/settings")
        .await
        .expect(200);
    let lesser = app
        .key(app.organization_id(), &[Permission::SettingsWrite])
        .await;
    let lesser = app.caller().with_key(&lesser);
    for (path, body) in [("/v1/api-keys", &body), (rotate.as_str(), &json!({}))] {
        keyed(&lesser, path, "canary-key", body)
            .await
            .expect_error(403, "FORBIDDEN");
    }
}

#[tokio::test]
async fn a_future_time_may_have_passed_when_the_request_is_repeated() {
    let app = TestApp::start().await;
    let end = app.clock.now() + TimeDelta::minutes(1);
    let body = json!({ "name": "Brief", "permissions": ["SEND"], "expiresAt": end.to_rfc3339() });
    let first = keyed(app.caller(), "/v1/api-keys", "k", &body).await;
    app.advance(TimeDelta::minutes(2));
    let again = keyed(app.caller(), "/v1/api-keys", "k", &body).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.expect(201), first.expect(201));
    keyed(app.caller(), "/v1/api-keys", "other", &body)
        .await
        .expect_issues(400, &["expiresAt"]);
}
