//! Authentication: keys, their permissions, and the isolation of organizations. The table
//! of operations is compared with the OpenAPI document, so that it is complete.

mod table;

use std::collections::BTreeMap;

use chrono::TimeDelta;
use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;
use waypost_core::auth::Permission;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Caller, Reply, TestApp, credentials, message_to, wait_until};

use table::{OF_OPERATORS, OF_SESSIONS, OPERATIONS, PUBLIC, SECOND};

async fn quiet() -> TestApp {
    TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await
}

async fn perform(caller: &Caller, (method, path): (&str, &str), id: &str) -> Reply {
    let method: Method = method.parse().unwrap();
    let path = path.replace("{}", id);
    let has_body = method != Method::GET && method != Method::DELETE;
    caller
        .call(method, &path, |request| {
            if has_body {
                request.json(&json!({}))
            } else {
                request
            }
        })
        .await
}

fn without_parameters(path: &str) -> String {
    let segments = path.split('/').map(|segment| {
        if segment.starts_with(['{', ':']) {
            "{}"
        } else {
            segment
        }
    });
    segments.collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn the_table_of_operations_is_complete() {
    let app = quiet().await;
    let document = app.document().await;
    let mut documented: Vec<(String, String)> = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            documented.push((method.to_uppercase(), without_parameters(path)));
        }
    }
    documented.sort();
    let mut listed: Vec<(String, String)> = OPERATIONS
        .iter()
        .map(|(method, path, _)| (method, path))
        .chain(PUBLIC.iter().map(|(method, path)| (method, path)))
        .chain(OF_SESSIONS.iter().map(|(method, path)| (method, path)))
        .chain(OF_OPERATORS.iter().map(|(method, path)| (method, path)))
        .map(|(method, path)| ((*method).to_owned(), (*path).to_owned()))
        .collect();
    listed.sort();
    assert_eq!(documented, listed);
}

#[tokio::test]
async fn the_document_names_the_permission_of_each_operation() {
    let app = quiet().await;
    let document = app.document().await;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let wanted = (method.to_uppercase(), without_parameters(path));
            let place = (wanted.0.as_str(), wanted.1.as_str());
            if PUBLIC.contains(&place) || OF_SESSIONS.contains(&place) {
                let required = operation.get("x-required-permission");
                assert!(required.is_none(), "{wanted:?}");
                continue;
            }
            if OF_OPERATORS.contains(&place) {
                assert_eq!(operation["x-required-permission"], "OPERATOR");
                continue;
            }
            let listed = OPERATIONS
                .iter()
                .find(|(method, path, _)| (*method, *path) == (&wanted.0, &wanted.1));
            let (_, _, permission) = listed.unwrap_or_else(|| panic!("{wanted:?} is not listed"));
            assert_eq!(
                operation["x-required-permission"],
                permission.as_str(),
                "{wanted:?}"
            );
        }
    }
}

#[tokio::test]
async fn without_a_valid_key_every_operation_returns_the_same_401() {
    let app = quiet().await;
    let organization = app.organization_id();
    let past = app.clock.now() - TimeDelta::seconds(1);
    let expired = app
        .key_until(organization, &Permission::ALL, Some(past))
        .await;
    let revoked = app.key(organization, &Permission::ALL).await;
    app.execute(&format!(
        "UPDATE api_keys SET revoked_at = now() WHERE prefix = '{}'",
        &revoked[..14]
    ))
    .await;
    let unknown = format!("wp_live_{}", "x".repeat(32));
    let callers = [
        app.caller().anonymous(),
        app.caller().with_key(&unknown),
        app.caller().with_key("nonsense"),
        app.caller().with_key(&expired),
        app.caller().with_key(&revoked),
        app.caller().with_key(&"y".repeat(10_000)),
    ];
    let mut seen = Vec::new();
    let all = OPERATIONS.iter().map(|(method, path, _)| (*method, *path));
    for place in all.chain(OF_SESSIONS).chain(OF_OPERATORS) {
        for caller in &callers {
            let reply = perform(caller, place, &Uuid::nil().to_string()).await;
            reply.expect_error(401, "AUTHENTICATION_ERROR");
            seen.push(reply.text);
        }
    }
    seen.dedup();
    assert_eq!(seen.len(), 1, "{seen:?}");
}

#[tokio::test]
async fn a_malformed_authorization_header_is_a_401() {
    let app = quiet().await;
    let good = app.key(app.organization_id(), &Permission::ALL).await;
    for header in [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Basic {good}"),
        good.clone(),
        format!("Bearer {good} x"),
        format!("Bearer {good},"),
        format!("Bearer \"{good}\""),
        format!("Token {good}"),
    ] {
        let caller = app.caller().anonymous();
        let reply = caller
            .call(Method::GET, "/v1/messages", |request| {
                request.header("authorization", &header)
            })
            .await;
        reply.expect_error(401, "AUTHENTICATION_ERROR");
    }
    let raw = http::HeaderValue::from_bytes(b"Bearer \xff\xfe").unwrap();
    let anonymous = app.caller().anonymous();
    let reply = anonymous.call(Method::GET, "/v1/messages", |request| {
        request.header("authorization", raw)
    });
    reply.await.expect_error(401, "AUTHENTICATION_ERROR");
    let query = app
        .caller()
        .anonymous()
        .get(&format!("/v1/messages?api_key={good}&access_token={good}"))
        .await;
    query.expect_error(401, "AUTHENTICATION_ERROR");
}

#[tokio::test]
async fn the_authorization_scheme_is_case_insensitive() {
    let app = quiet().await;
    let good = app
        .key(app.organization_id(), &[Permission::MetricsRead])
        .await;
    let caller = app.caller().anonymous();
    let reply = caller.call(Method::GET, "/v1/messages", |request| {
        request.header("authorization", format!("bearer {good}"))
    });
    reply.await.expect(200);
}

#[tokio::test]
async fn a_key_is_refused_after_it_expires_and_soon_after_it_is_revoked() {
    let app = quiet().await;
    let soon = app.clock.now() + TimeDelta::hours(1);
    let expiring = app.caller().with_key(
        &app.key_until(app.organization_id(), &Permission::ALL, Some(soon))
            .await,
    );
    let key = app.key(app.organization_id(), &Permission::ALL).await;
    let revoked = app.caller().with_key(&key);
    for caller in [&expiring, &revoked] {
        caller.get("/v1/messages").await.expect(200);
    }
    app.advance(TimeDelta::hours(1));
    expiring
        .get("/v1/messages")
        .await
        .expect_error(401, "AUTHENTICATION_ERROR");
    app.execute(&format!(
        "UPDATE api_keys SET revoked_at = now() WHERE prefix = '{}'",
        &key[..14]
    ))
    .await;
    wait_until("the revoked key is refused", async || {
        revoked.get("/v1/messages").await.status == 401
    })
    .await;
    revoked
        .get("/v1/messages")
        .await
        .expect_error(401, "AUTHENTICATION_ERROR");
}

#[tokio::test]
async fn every_operation_requires_its_own_permission() {
    let app = quiet().await;
    let mut keys = BTreeMap::new();
    for permission in Permission::ALL {
        keys.insert(
            permission.as_str(),
            app.key(app.organization_id(), &[permission]).await,
        );
    }
    let id = Uuid::nil().to_string();
    for (method, path, needed) in OPERATIONS {
        for permission in Permission::ALL {
            let caller = app.caller().with_key(&keys[permission.as_str()]);
            let reply = perform(&caller, (method, path), &id).await;
            let second = SECOND.iter().find(|(known, _)| *known == path);
            if permission == needed
                && let Some((_, second)) = second
            {
                let error = reply.expect_error(403, "FORBIDDEN");
                let required = json!({ "requiredPermission": second.as_str() });
                assert_eq!(error["details"], required, "{method} {path}");
            } else if permission == needed {
                assert!(
                    ![401, 403].contains(&reply.status),
                    "{method} {path} with {permission}: {reply:?}"
                );
                assert!(reply.status < 500, "{method} {path}: {reply:?}");
            } else {
                let error = reply.expect_error(403, "FORBIDDEN");
                assert_eq!(
                    error["details"],
                    json!({ "requiredPermission": needed.as_str() }),
                    "{method} {path}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_key_without_permissions_may_do_and_read_nothing() {
    let app = quiet().await;
    let caller = app
        .caller()
        .with_key(&app.key(app.organization_id(), &[]).await);
    for (method, path, _) in OPERATIONS {
        perform(&caller, (method, path), "no-uuid")
            .await
            .expect_error(403, "FORBIDDEN");
    }
    // The permission is checked before the body: a malformed body changes nothing.
    let reply = caller
        .post_raw("/v1/send", Some("application/json"), "{")
        .await;
    reply.expect_error(403, "FORBIDDEN");
}

#[tokio::test]
async fn ids_of_another_organization_are_not_found() {
    let app = quiet().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    let message = app.send_to("ada@example.org").await;
    let key = app
        .post(
            "/v1/api-keys",
            &json!({ "name": "A key", "permissions": ["SEND"] }),
        )
        .await
        .data(201);
    let key = key["id"].as_str().unwrap().to_owned();
    let rule = json!({ "name": "A rule", "providerAccountId": account });
    let rule = app.post("/v1/routing-rules", &rule).await.data(201);
    let rule = rule["id"].as_str().unwrap().to_owned();
    let template = app
        .post("/v1/templates", &json!({ "name": "Ours" }))
        .await
        .data(201);
    let template = template["id"].as_str().unwrap();
    let group = json!({ "name": "News" });
    let group = app.post("/v1/unsubscribe-groups", &group).await.data(201);
    let suppression = json!({ "email": "bob@example.org" });
    let suppression = app.post("/v1/suppressions", &suppression).await.data(201);
    let other = app.tenant("Other").await;
    for (method, path, _) in OPERATIONS
        .into_iter()
        .filter(|(_, path, _)| path.contains("{}"))
    {
        let id = match path {
            path if path.contains("messages") => message.as_str(),
            path if path.contains("api-keys") => key.as_str(),
            path if path.contains("routing-rules") => rule.as_str(),
            path if path.contains("templates") => template,
            path if path.contains("unsubscribe-groups") => group["id"].as_str().unwrap(),
            path if path.contains("providers") => account.as_str(),
            path if path.contains("suppressions") => suppression["id"].as_str().unwrap(),
            _ => account.as_str(),
        };
        perform(&other.caller, (method, path), id)
            .await
            .expect_error(404, "NOT_FOUND");
    }
    // Nothing was changed.
    let shown = app.get(&format!("/v1/providers/{account}")).await.data(200);
    assert_eq!(shown["isActive"], true);
    for path in ["/v1/unsubscribe-groups", "/v1/suppressions"] {
        let kept = app.get(path).await.data(200);
        assert_eq!(kept.as_array().unwrap().len(), 1, "{path}");
    }
    app.leave_work();
}

#[tokio::test]
async fn organizations_cannot_list_or_use_each_others_data() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    app.send_to("ada@example.org").await;
    let other = app.tenant("Other").await;
    let body = other.caller.get("/v1/messages").await.expect(200);
    assert_eq!(
        (&body["data"], &body["pagination"]["total"]),
        (&json!([]), &json!(0))
    );
    assert_eq!(other.caller.get("/v1/providers").await.data(200), json!([]));
    let found = other
        .caller
        .query("/v1/messages", &[("search", "Hello")])
        .await
        .data(200);
    assert_eq!(found, json!([]));
    other
        .caller
        .post("/v1/send", &message_to("x@example.org"))
        .await
        .expect_error(422, "VALIDATION_ERROR");
    let own = json!({
        "providerType": "MAILGUN", "displayName": "Theirs", "credentials": credentials(ProviderType::Mailgun),
    });
    let own = other.caller.post("/v1/providers", &own).await.data(201);
    assert_eq!(own["organizationId"], other.organization_id.to_string());
    let receipt = other
        .caller
        .post("/v1/send", &message_to("x@example.org"))
        .await
        .expect(202);
    assert_eq!(receipt["providerId"], own["id"]);
    let names = |list: Value| list.as_array().unwrap().len();
    assert_eq!(names(app.get("/v1/providers").await.data(200)), 1);
    assert_eq!(names(app.get("/v1/messages").await.data(200)), 1);
    app.leave_work();
}

#[tokio::test]
async fn the_database_does_not_contain_the_key_itself() {
    let app = quiet().await;
    let key = app.key(app.organization_id(), &Permission::ALL).await;
    let stored = app
        .value("SELECT string_agg(k::text, ' ') FROM api_keys k")
        .await
        .unwrap();
    assert!(!stored.contains(&key[14..]), "{stored}");
}
