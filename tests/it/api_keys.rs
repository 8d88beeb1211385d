//! API keys: creating, reading, changing, rotating and revoking them, and the permissions
//! that a key cannot grant.

use chrono::{SecondsFormat, TimeDelta};
use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;
use waypost_core::auth::Permission;
use waypost_tests::{Caller, TestApp, wait_until, wait_within};

const PATH: &str = "/v1/api-keys";

async fn quiet() -> TestApp {
    TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await
}

async fn create(app: &TestApp, body: &Value) -> Value {
    app.post(PATH, body).await.data(201)
}

fn path_of(key: &Value) -> String {
    format!("{PATH}/{}", key["id"].as_str().unwrap())
}

fn holder(app: &TestApp, key: &Value) -> Caller {
    app.caller().with_key(key["key"].as_str().unwrap())
}

async fn is_rejected(caller: &Caller) -> bool {
    caller.get("/v1/messages").await.status == 401
}

fn reader() -> Value {
    json!({ "name": "Reader", "permissions": ["METRICS_READ"] })
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story, told in order")]
async fn a_key_is_created_read_listed_changed_and_revoked() {
    let app = quiet().await;
    let end = (app.clock.now() + TimeDelta::days(1)).to_rfc3339_opts(SecondsFormat::Millis, true);
    let made = create(
        &app,
        &json!({
            "name": "Backend",
            "permissions": ["METRICS_READ", "SEND", "SEND"],
            "allowedIps": ["127.0.0.1", "203.0.113.0/24", "203.0.113.0/24"],
            "expiresAt": end,
        }),
    )
    .await;
    let secret = made["key"].as_str().unwrap();
    assert!(
        secret.starts_with("wp_live_") && secret.len() >= 30,
        "{secret}"
    );
    let record = json!({
        "id": made["id"],
        "organizationId": app.organization_id().to_string(),
        "name": "Backend",
        "prefix": &secret[..14],
        "isTest": false,
        "permissions": ["SEND", "METRICS_READ"],
        "allowedIps": ["127.0.0.1", "203.0.113.0/24"],
        "expiresAt": end,
        "lastUsedAt": null,
        "createdAt": made["createdAt"],
        "createdBy": made["createdBy"],
        "revokedAt": null,
        "oldSecretValidUntil": null,
    });
    let mut with_secret = record.clone();
    with_secret["key"] = json!(secret);
    assert_eq!(made, with_secret);
    assert_eq!(
        app.get(&path_of(&made)).await.expect(200),
        json!({ "data": record })
    );
    let _used = holder(&app, &made).get("/v1/messages").await.expect(200);

    let listed = app.get(PATH).await.expect(200);
    assert_eq!(listed["pagination"]["total"], 2);
    // The harness's key was created as the operator creates keys.
    let operators = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .find(|key| key["id"] != made["id"])
        .unwrap();
    assert_eq!(
        (&operators["createdBy"], &made["createdBy"]),
        (&json!("system"), &operators["id"])
    );

    let change = json!({ "name": "Front", "permissions": ["METRICS_READ"], "allowedIps": [], "expiresAt": null });
    let changed = app.patch(&path_of(&made), &change).await.data(200);
    for (field, value) in change.as_object().unwrap() {
        assert_eq!(&changed[field], value);
    }
    assert_eq!(
        app.patch(&path_of(&made), &json!({})).await.data(200)["name"],
        "Front"
    );

    for _ in 0..2 {
        assert_eq!(
            app.delete(&path_of(&made)).await.expect(200),
            json!({ "success": true })
        );
    }
    assert!(app.get(&path_of(&made)).await.data(200)["revokedAt"].is_string());
    assert_eq!(app.get(PATH).await.expect(200)["pagination"]["total"], 2);
    wait_until("the key is refused", async || {
        is_rejected(&holder(&app, &made)).await
    })
    .await;
    app.patch(&path_of(&made), &json!({ "name": "Back" }))
        .await
        .expect_error(409, "CONFLICT");
    app.post(&format!("{}/rotate", path_of(&made)), &json!({}))
        .await
        .expect_error(409, "CONFLICT");
}

#[tokio::test]
async fn a_request_for_a_key_is_rejected_with_every_mistake() {
    let app = quiet().await;
    app.post(PATH, &json!({}))
        .await
        .expect_issues(400, &["name", "permissions"]);
    let past = app.clock.now().to_rfc3339_opts(SecondsFormat::Micros, true);
    let many: Vec<String> = (0..101).map(|n| format!("10.0.0.{n}")).collect();
    for (field, value, paths) in [
        ("name", json!("x".repeat(256)), vec!["name"]),
        ("name", json!(""), vec!["name"]),
        ("name", json!("a\nb"), vec!["name"]),
        ("name", json!(7), vec!["name"]),
        ("permissions", json!([]), vec!["permissions"]),
        ("permissions", json!("SEND"), vec!["permissions"]),
        (
            "permissions",
            json!(["SEND", "FLY", 1]),
            vec!["permissions.1", "permissions.2"],
        ),
        ("allowedIps", json!("127.0.0.1"), vec!["allowedIps"]),
        (
            "allowedIps",
            json!(["127.0.0.1", "example.com", "10.0.0.1/8", "1.2.3.4/33"]),
            vec!["allowedIps.1", "allowedIps.2", "allowedIps.3"],
        ),
        ("allowedIps", json!(many), vec!["allowedIps"]),
        ("expiresAt", json!("tomorrow"), vec!["expiresAt"]),
        ("expiresAt", json!(past), vec!["expiresAt"]),
        ("expiresAt", json!(1_800_000_000), vec!["expiresAt"]),
    ] {
        let mut body = reader();
        body[field] = value;
        app.post(PATH, &body).await.expect_issues(400, &paths);
    }
    assert_eq!(app.get(PATH).await.expect(200)["pagination"]["total"], 1);
    let made = create(
        &app,
        &json!({ "name": "é".repeat(255), "permissions": ["SEND"], "allowedIps": many[..100] }),
    )
    .await;
    assert_eq!(made["name"], "é".repeat(255));
    let path = path_of(&made);
    let bad = json!({ "name": "x".repeat(256), "permissions": [], "allowedIps": ["x"], "expiresAt": past });
    app.patch(&path, &bad)
        .await
        .expect_issues(400, &["name", "permissions", "allowedIps.0", "expiresAt"]);
    for grace in [json!(-1), json!(604_801), json!("60"), json!(1.5)] {
        app.post(
            &format!("{path}/rotate"),
            &json!({ "gracePeriodSeconds": grace }),
        )
        .await
        .expect_issues(400, &["gracePeriodSeconds"]);
    }
    let _rotated = app
        .post(
            &format!("{path}/rotate"),
            &json!({ "gracePeriodSeconds": 604_800 }),
        )
        .await
        .data(200);
}

#[tokio::test]
async fn a_key_cannot_grant_a_permission_that_it_lacks() {
    let app = quiet().await;
    let narrow = app
        .key(
            app.organization_id(),
            &[Permission::SettingsWrite, Permission::MetricsRead],
        )
        .await;
    let narrow = app.caller().with_key(&narrow);
    let lacks = |reply: waypost_tests::Reply, permission: &str| {
        let error = reply.expect_error(403, "FORBIDDEN");
        assert_eq!(
            error["details"],
            json!({ "requiredPermission": permission })
        );
    };
    lacks(
        narrow
            .post(
                PATH,
                &json!({ "name": "x", "permissions": ["METRICS_READ", "SEND"] }),
            )
            .await,
        "SEND",
    );
    let own = narrow.post(PATH, &reader()).await.data(201);
    let wide = create(
        &app,
        &json!({ "name": "Wide", "permissions": ["SEND", "METRICS_READ"] }),
    )
    .await;
    lacks(
        narrow
            .patch(&path_of(&own), &json!({ "permissions": ["SEND"] }))
            .await,
        "SEND",
    );
    lacks(
        narrow
            .patch(
                &path_of(&wide),
                &json!({ "permissions": ["METRICS_READ", "PROVIDERS_READ"] }),
            )
            .await,
        "SEND",
    );
    // Its secret could do what the caller may not.
    lacks(
        narrow
            .post(&format!("{}/rotate", path_of(&wide)), &json!({}))
            .await,
        "SEND",
    );
    let _rotated = narrow
        .post(&format!("{}/rotate", path_of(&own)), &json!({}))
        .await
        .data(200);
}

#[tokio::test]
async fn only_a_caller_with_all_permissions_of_a_key_may_change_its_protection() {
    let app = quiet().await;
    let sets = [
        vec!["SETTINGS_WRITE"],
        vec!["SETTINGS_WRITE", "METRICS_READ"],
        vec!["SETTINGS_WRITE", "SEND"],
        vec!["SETTINGS_WRITE", "SEND", "METRICS_READ", "TEMPLATES_READ"],
    ];
    let later = (app.clock.now() + TimeDelta::days(9)).to_rfc3339_opts(SecondsFormat::Millis, true);
    for held in &sets {
        let own = json!({ "name": "Changer", "permissions": held });
        let own = create(&app, &own).await;
        let changer = holder(&app, &own);
        for other in &sets {
            let target = json!({
                "name": "Target", "permissions": other, "allowedIps": ["203.0.113.0/24"],
                "expiresAt": later,
            });
            let target = create(&app, &target).await;
            let (path, rotate) = (path_of(&target), format!("{}/rotate", path_of(&target)));
            let missing = other.iter().any(|permission| !held.contains(permission));
            let status = if missing { 403 } else { 200 };
            for change in [
                json!({ "allowedIps": [] }),
                json!({ "expiresAt": null }),
                json!({ "permissions": ["SETTINGS_WRITE"] }),
                json!({ "name": "Renamed" }),
            ] {
                if change.get("permissions").is_none() || missing {
                    let reply = changer.patch(&path, &change).await;
                    assert_eq!(reply.status, status, "{held:?} {other:?} {change}");
                }
            }
            assert_eq!(changer.post_empty(&rotate).await.status, status);
            assert_eq!(changer.delete(&path).await.status, status);
            let shown = app.get(&path).await.data(200);
            assert_eq!(shown["revokedAt"].is_null(), missing, "{shown}");
            assert_eq!(shown["allowedIps"].as_array().unwrap().is_empty(), !missing);
        }
        // It may change its own key.
        let change = json!({ "allowedIps": ["127.0.0.0/8"] });
        let _changed = changer.patch(&path_of(&own), &change).await.data(200);
    }
}

#[tokio::test]
async fn a_rotation_needs_no_body() {
    let app = quiet().await;
    let first = create(&app, &reader()).await;
    let rotate = format!("{}/rotate", path_of(&first));
    let second = app.caller().post_empty(&rotate).await.data(200);
    assert_ne!(second["key"], first["key"]);
    let day = (app.clock.now() + TimeDelta::days(1)).to_rfc3339_opts(SecondsFormat::Millis, true);
    assert_eq!(second["oldSecretValidUntil"], day);
    for (content_type, body) in [(Some("text/plain"), ""), (None, "{}")] {
        let reply = app.caller().post_raw(&rotate, content_type, body).await;
        reply.expect_error(415, "UNSUPPORTED_MEDIA_TYPE");
    }
}

#[tokio::test]
async fn old_secrets_work_until_their_grace_period_ends() {
    let app = quiet().await;
    let first = create(&app, &reader()).await;
    let rotate = format!("{}/rotate", path_of(&first));
    let second = app.post(&rotate, &json!({})).await.data(200);
    assert_eq!(
        (&second["id"], &second["createdAt"]),
        (&first["id"], &first["createdAt"])
    );
    assert_ne!(second["key"], first["key"]);
    assert_eq!(second["prefix"], &second["key"].as_str().unwrap()[..14]);
    let day = (app.clock.now() + TimeDelta::days(1)).to_rfc3339_opts(SecondsFormat::Millis, true);
    assert_eq!(second["oldSecretValidUntil"], day);
    app.advance(TimeDelta::hours(1));
    let third = app
        .post(&rotate, &json!({ "gracePeriodSeconds": 3_600 }))
        .await
        .data(200);
    let holders = [&first, &second, &third].map(|key| holder(&app, key));
    for caller in &holders {
        let _used = caller.get("/v1/messages").await.expect(200);
    }
    app.advance(TimeDelta::hours(1));
    // The first secret would have had a day: a later rotation only shortens the grace.
    assert!(
        is_rejected(&holders[0]).await
            && is_rejected(&holders[1]).await
            && !is_rejected(&holders[2]).await
    );
    let fourth = app
        .post(&rotate, &json!({ "gracePeriodSeconds": 0 }))
        .await
        .data(200);
    wait_until("the replaced secret is refused", async || {
        is_rejected(&holders[2]).await
    })
    .await;
    let _used = holder(&app, &fourth).get("/v1/messages").await.expect(200);
    let _revoked = app.delete(&path_of(&first)).await.expect(200);
    wait_until("the key is refused", async || {
        is_rejected(&holder(&app, &fourth)).await
    })
    .await;
    let stored = app
        .value("SELECT string_agg(s::text, ' ') FROM api_key_old_secrets s")
        .await
        .unwrap_or_default();
    assert!(!stored.contains("wp_live"), "{stored}");
}

#[tokio::test]
async fn an_old_secret_is_refused_when_the_key_is_revoked() {
    let app = quiet().await;
    let first = create(&app, &reader()).await;
    let second = app
        .post(&format!("{}/rotate", path_of(&first)), &json!({}))
        .await
        .data(200);
    let _revoked = app.delete(&path_of(&first)).await.expect(200);
    for key in [&first, &second] {
        wait_until("the secret is refused", async || {
            is_rejected(&holder(&app, key)).await
        })
        .await;
    }
}

#[tokio::test]
async fn a_key_is_refused_after_it_expires() {
    let app = quiet().await;
    let end = (app.clock.now() + TimeDelta::hours(1)).to_rfc3339_opts(SecondsFormat::Micros, true);
    let mut body = reader();
    body["expiresAt"] = json!(end);
    let key = create(&app, &body).await;
    let _used = holder(&app, &key).get("/v1/messages").await.expect(200);
    app.advance(TimeDelta::hours(1));
    assert!(is_rejected(&holder(&app, &key)).await);
    app.post(&format!("{}/rotate", path_of(&key)), &json!({}))
        .await
        .expect_error(409, "CONFLICT");
    let _revived = app
        .patch(&path_of(&key), &json!({ "expiresAt": null }))
        .await
        .data(200);
    wait_until("the key works again", async || {
        !is_rejected(&holder(&app, &key)).await
    })
    .await;
}

#[tokio::test]
async fn a_key_works_only_from_its_networks_and_gets_the_same_401_elsewhere() {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .setting("WAYPOST_TRUSTED_PROXIES", "127.0.0.1")
        .start()
        .await;
    let mut body = reader();
    body["allowedIps"] = json!(["203.0.113.0/24", "2001:db8::1"]);
    let key = create(&app, &body).await;
    let caller = holder(&app, &key);
    let unknown = app
        .caller()
        .with_key("wp_live_unknown")
        .get("/v1/messages")
        .await;
    for (client, works) in [
        ("203.0.113.9", true),
        ("::ffff:203.0.113.9", true),
        ("2001:db8::1", true),
        ("2001:db8::2", false),
        ("198.51.100.1", false),
        // Only the address that the proxy itself added counts.
        ("203.0.113.9, 198.51.100.1", false),
        ("198.51.100.1, 203.0.113.9", true),
        ("", false),
    ] {
        let reply = caller
            .call(Method::GET, "/v1/messages", |request| {
                request.header("x-forwarded-for", client)
            })
            .await;
        if works {
            let _listed = reply.expect(200);
        } else {
            reply.expect_error(401, "AUTHENTICATION_ERROR");
            assert_eq!(reply.text, unknown.text, "{client}");
        }
    }
}

#[tokio::test]
async fn the_use_of_a_key_is_recorded_at_most_once_a_minute() {
    let app = quiet().await;
    let key = create(&app, &reader()).await;
    let last_used = async || app.get(&path_of(&key)).await.data(200)["lastUsedAt"].clone();
    let shown = |app: &TestApp| json!(app.clock.now().to_rfc3339_opts(SecondsFormat::Millis, true));
    let _used = holder(&app, &key).get("/v1/messages").await.expect(200);
    let first = shown(&app);
    wait_until("the use is recorded", async || last_used().await == first).await;
    app.advance(TimeDelta::seconds(59));
    let _used = holder(&app, &key).get("/v1/messages").await.expect(200);
    let is_written = wait_within(std::time::Duration::from_millis(1_500), async || {
        last_used().await != first
    })
    .await;
    assert!(!is_written);
    app.advance(TimeDelta::seconds(1));
    let _used = holder(&app, &key).get("/v1/messages").await.expect(200);
    let second = shown(&app);
    wait_until("the next use is recorded", async || {
        last_used().await == second
    })
    .await;
}

#[tokio::test]
async fn a_locked_key_does_not_delay_the_recording_of_others() {
    let app = quiet().await;
    let (held, free) = (create(&app, &reader()).await, create(&app, &reader()).await);
    let mut holding = app.pool.begin().await.unwrap();
    let _held = sqlx::query("SELECT FROM api_keys WHERE id = $1 FOR UPDATE")
        .bind(held["id"].as_str().unwrap().parse::<Uuid>().unwrap())
        .execute(&mut *holding)
        .await
        .unwrap();
    for key in [&held, &free] {
        let _used = holder(&app, key).get("/v1/messages").await.expect(200);
    }
    let last_used = async |key| app.get(&path_of(key)).await.data(200)["lastUsedAt"].clone();
    wait_until("the use of the free one is recorded", async || {
        last_used(&free).await != Value::Null
    })
    .await;
    assert_eq!(last_used(&held).await, Value::Null);
    holding.rollback().await.unwrap();
    app.advance(TimeDelta::minutes(1));
    let _used = holder(&app, &held).get("/v1/messages").await.expect(200);
    wait_until("its next use is recorded", async || {
        last_used(&held).await != Value::Null
    })
    .await;
}

#[tokio::test]
async fn another_organizations_keys_are_not_found() {
    let app = quiet().await;
    let other = app.tenant("Other").await;
    let key = create(&app, &reader()).await;
    let path = path_of(&key);
    for path in [
        path.clone(),
        format!("{PATH}/{}", Uuid::nil()),
        format!("{PATH}/no-id"),
    ] {
        other.caller.get(&path).await.expect_error(404, "NOT_FOUND");
        other
            .caller
            .patch(&path, &json!({ "name": "Mine" }))
            .await
            .expect_error(404, "NOT_FOUND");
        other
            .caller
            .delete(&path)
            .await
            .expect_error(404, "NOT_FOUND");
        other
            .caller
            .post(&format!("{path}/rotate"), &json!({}))
            .await
            .expect_error(404, "NOT_FOUND");
    }
    assert_eq!(
        other.caller.get(PATH).await.expect(200)["pagination"]["total"],
        1
    );
    assert_eq!(app.get(&path).await.data(200)["revokedAt"], Value::Null);
}

#[tokio::test]
async fn a_revoked_key_is_rejected_by_every_process_within_five_seconds() {
    let app = quiet().await;
    let key = create(&app, &reader()).await;
    let others = app
        .start_another_api()
        .await
        .with_key(key["key"].as_str().unwrap());
    let _used = others.get("/v1/messages").await.expect(200);
    let _revoked = app.delete(&path_of(&key)).await.expect(200);
    assert!(
        wait_within(std::time::Duration::from_secs(5), async || is_rejected(
            &others
        )
        .await)
        .await
    );
}
