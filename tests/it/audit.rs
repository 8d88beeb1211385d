//! The audit log: every change adds an entry, and entries can be listed.

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Caller, TestApp};

const PATH: &str = "/v1/audit-logs";

async fn quiet() -> TestApp {
    TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await
}

async fn actions(caller: &Caller, parameters: &[(&str, &str)]) -> Vec<String> {
    let entries = caller.query(PATH, parameters).await.data(200);
    entries
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["action"].as_str().unwrap().to_owned())
        .collect()
}

fn is_iso(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| text.len() == 24 && text.ends_with('Z'))
}

#[tokio::test]
async fn an_entry_has_actor_action_target_and_address() {
    let app = quiet().await;
    let reply = app
        .patch("/v1/settings", &json!({ "trackOpens": false }))
        .await;
    let page = app.get(PATH).await.expect(200);
    let entry = &page["data"][0];
    let expected = json!({
        "id": entry["id"],
        "organizationId": app.organization_id().to_string(),
        "action": "settings.updated",
        "occurredAt": entry["occurredAt"],
        "actor": { "type": "api_key", "id": entry["actor"]["id"], "name": "Test key" },
        "target": { "type": "settings", "id": app.organization_id().to_string() },
        "context": { "ip": "127.0.0.1", "userAgent": null, "requestId": reply.header("x-request-id").unwrap() },
        "metadata": { "fields": ["trackOpens"] },
    });
    assert_eq!(entry, &expected);
    assert!(is_iso(&entry["occurredAt"]) && entry["actor"]["id"].is_string());
    assert_eq!(
        page["pagination"],
        json!({ "page": 1, "limit": 20, "total": 1, "totalPages": 1, "nextCursor": null })
    );
}

#[tokio::test]
async fn every_change_adds_an_entry_and_a_rejected_one_none() {
    let app = quiet().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    let path = format!("/v1/providers/{account}");
    let _changed = app
        .patch(&path, &json!({ "displayName": "New" }))
        .await
        .data(200);
    let _valid = app
        .caller()
        .post_empty(&format!("{path}/validate"))
        .await
        .expect(200);
    let _removed = app.delete(&path).await.expect(200);
    let key = json!({ "name": "A key", "permissions": ["SEND"] });
    let key = app.post("/v1/api-keys", &key).await.data(201);
    let path = format!("/v1/api-keys/{}", key["id"].as_str().unwrap());
    let _changed = app
        .patch(&path, &json!({ "name": "Another" }))
        .await
        .data(200);
    let _rotated = app
        .post(&format!("{path}/rotate"), &json!({}))
        .await
        .data(200);
    let _revoked = app.delete(&path).await.expect(200);
    let _again = app.delete(&path).await.expect(200);
    let _changed = app
        .patch("/v1/settings", &json!({ "retentionDays": 1 }))
        .await
        .data(200);
    app.patch("/v1/settings", &json!({ "retentionDays": 0 }))
        .await
        .expect_issues(400, &["retentionDays"]);
    app.patch(&path, &json!({ "name": "Too late" }))
        .await
        .expect_error(409, "CONFLICT");
    app.delete("/v1/providers/no-id")
        .await
        .expect_error(404, "NOT_FOUND");
    let mut written = actions(app.caller(), &[("limit", "100")]).await;
    written.reverse();
    assert_eq!(
        written,
        [
            "provider.created",
            "provider.updated",
            "provider.validated",
            "provider.deleted",
            "api_key.created",
            "api_key.updated",
            "api_key.rotated",
            "api_key.revoked",
            "settings.updated",
        ]
    );
    let whole = app.get(&format!("{PATH}?limit=100")).await.text;
    assert!(!whole.contains(key["key"].as_str().unwrap()), "{whole}");
}

#[tokio::test]
async fn the_log_is_filtered_by_action_target_and_time_and_paged() {
    let app = quiet().await;
    let mut times = Vec::new();
    let account = app.connect(ProviderType::Sendgrid).await;
    for (field, value) in [
        ("trackOpens", false),
        ("trackClicks", false),
        ("trackOpens", true),
    ] {
        app.advance(TimeDelta::seconds(10));
        times.push(
            app.clock
                .now()
                .to_rfc3339_opts(chrono::SecondsFormat::Micros, true),
        );
        let _changed = app
            .patch("/v1/settings", &json!({ field: value }))
            .await
            .data(200);
    }
    let all = [
        "settings.updated",
        "settings.updated",
        "settings.updated",
        "provider.created",
    ];
    let organization = app.organization_id().to_string();
    for (parameters, expected) in [
        (vec![], &all[..]),
        (vec![("action", "provider.created")], &all[3..]),
        (vec![("action", "provider.deleted")], &[]),
        (vec![("targetType", "settings")], &all[..3]),
        (vec![("targetId", &account)], &all[3..]),
        (vec![("targetId", &organization)], &all[..3]),
        (
            vec![("targetType", "provider"), ("targetId", &organization)],
            &[],
        ),
        (vec![("from", &times[0])], &all[..3]),
        (vec![("from", &times[2])], &all[..1]),
        (vec![("to", &times[0])], &all[3..]),
        (vec![("from", &times[0]), ("to", &times[2])], &all[..2]),
        (vec![("limit", "3")], &all[..3]),
        (vec![("limit", "3"), ("page", "2")], &all[3..]),
    ] {
        assert_eq!(
            actions(app.caller(), &parameters).await,
            expected,
            "{parameters:?}"
        );
    }
    let page = app
        .get(&format!("{PATH}?limit=3&page=2&targetType=settings"))
        .await
        .expect(200);
    assert_eq!(
        page,
        json!({ "data": [], "pagination": { "page": 2, "limit": 3, "total": 3, "totalPages": 1, "nextCursor": null } })
    );
}

#[tokio::test]
async fn all_invalid_filters_are_named() {
    let app = quiet().await;
    let long = "x".repeat(101);
    let parameters = [
        ("page", "0"),
        ("limit", "101"),
        ("action", &long),
        ("targetType", "a\0b"),
        ("targetId", "no-id"),
        ("from", "yesterday"),
        ("to", "2026-13-01T00:00:00Z"),
    ];
    let paths: Vec<&str> = parameters.iter().map(|(name, _)| *name).collect();
    app.caller()
        .query(PATH, &parameters)
        .await
        .expect_issues(400, &paths);
    let kept = "x".repeat(100);
    assert!(actions(app.caller(), &[("action", &kept)]).await.is_empty());
}

#[tokio::test]
async fn organizations_see_only_their_own_entries() {
    let app = quiet().await;
    let other = app.tenant("Other").await;
    let _changed = app
        .patch("/v1/settings", &json!({ "trackOpens": false }))
        .await
        .data(200);
    assert!(actions(&other.caller, &[]).await.is_empty());
    let target = app.organization_id().to_string();
    assert!(
        actions(&other.caller, &[("targetId", &target)])
            .await
            .is_empty()
    );
}

#[tokio::test]
async fn the_clients_address_is_the_forwarded_one_only_behind_a_trusted_proxy() {
    for (proxies, expected) in [
        ("", "127.0.0.1"),
        ("127.0.0.0/8", "198.51.100.7"),
        ("10.0.0.0/8, ::1", "127.0.0.1"),
    ] {
        let app = TestApp::builder()
            .without_worker()
            .without_scheduler()
            .setting("WAYPOST_TRUSTED_PROXIES", proxies)
            .start()
            .await;
        let reply = app
            .caller()
            .call(http::Method::PATCH, "/v1/settings", |request| {
                let request = request
                    .header("x-forwarded-for", "203.0.113.1, 198.51.100.7")
                    .header("user-agent", "A client");
                request.json(&json!({ "trackOpens": false }))
            });
        let _changed = reply.await.data(200);
        let entry = &app.get(PATH).await.data(200)[0];
        assert_eq!(
            (&entry["context"]["ip"], &entry["context"]["userAgent"]),
            (&json!(expected), &json!("A client")),
            "{proxies}"
        );
    }
}
