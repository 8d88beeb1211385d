//! Sessions: their end, their token, and the organization that they are in.

use chrono::TimeDelta;
use serde_json::json;
use waypost_core::auth::Role;
use waypost_tests::{Caller, PASSWORD, TestApp, wait_until};

use super::{actions, quiet};

#[tokio::test]
async fn a_session_that_was_ended_is_refused_at_once() {
    let app = quiet().await;
    let ada = app.member(app.organization_id(), Role::Owner).await;
    ada.get("/v1/messages").await.expect(200);
    let reply = ada.delete("/v1/session").await;
    reply.expect(200);
    let cleared = reply.header("set-cookie").unwrap();
    assert!(cleared.contains("Max-Age=0"), "{cleared}");
    for path in ["/v1/session", "/v1/messages"] {
        let reply = ada.get(path).await;
        reply.expect_error(401, "AUTHENTICATION_ERROR");
    }
    let log = actions(&app).await;
    assert_eq!(log, ["session.deleted user", "session.created user"]);
}

#[tokio::test]
async fn a_stolen_cookie_is_worthless_after_signing_out_everywhere() {
    let app = quiet().await;
    let organization = app.organization_id();
    app.user("ada@example.com", &[(organization, Role::Owner)])
        .await;
    app.user("eve@example.com", &[(organization, Role::Owner)])
        .await;
    let (stolen, own) = (
        app.sign_in("ada@example.com").await,
        app.sign_in("ada@example.com").await,
    );
    let other = app.sign_in("eve@example.com").await;
    stolen.get("/v1/messages").await.expect(200);
    own.delete("/v1/session?everywhere=true").await.expect(200);
    for caller in [&stolen, &own] {
        let reply = caller.get("/v1/messages").await;
        reply.expect_error(401, "AUTHENTICATION_ERROR");
    }
    other.get("/v1/messages").await.expect(200);
    // In another process too, once its cache is out of date.
    let elsewhere = app
        .start_another_api()
        .await
        .with_session(stolen.cookie().unwrap());
    let reply = elsewhere.get("/v1/messages").await;
    reply.expect_error(401, "AUTHENTICATION_ERROR");
}

#[tokio::test]
async fn another_process_notices_the_end_of_a_session() {
    let app = quiet().await;
    let ada = app.member(app.organization_id(), Role::Owner).await;
    let elsewhere = app
        .start_another_api()
        .await
        .with_session(ada.cookie().unwrap());
    elsewhere.get("/v1/messages").await.expect(200);
    ada.delete("/v1/session").await.expect(200);
    wait_until("the session has ended", async || {
        elsewhere.get("/v1/messages").await.status == 401
    })
    .await;
}

/// Uses a session, and waits until the use is recorded: it is recorded in the background, and the
/// clock of a test may go on by hours meanwhile.
async fn use_at_once(app: &TestApp, caller: &Caller) {
    caller.get("/v1/messages").await.expect(200);
    let now = app.clock.now().to_rfc3339();
    let query = format!("SELECT count(*)::text FROM sessions WHERE last_used_at >= '{now}'");
    wait_until("the use is recorded", async || {
        app.value(&query).await.as_deref() == Some("1")
    })
    .await;
}

#[tokio::test]
async fn a_session_ends_after_twelve_idle_hours() {
    let app = quiet().await;
    let ada = app.member(app.organization_id(), Role::Owner).await;
    for _ in 0..3 {
        app.advance(TimeDelta::hours(5));
        use_at_once(&app, &ada).await;
    }
    app.advance(TimeDelta::hours(12));
    let reply = ada.get("/v1/messages").await;
    reply.expect_error(401, "AUTHENTICATION_ERROR");
}

#[tokio::test]
async fn a_session_ends_after_thirty_days_of_use() {
    let app = quiet().await;
    let ada = app.member(app.organization_id(), Role::Owner).await;
    for _ in 0..(30 * 24 / 5 - 1) {
        app.advance(TimeDelta::hours(5));
        use_at_once(&app, &ada).await;
    }
    app.advance(TimeDelta::hours(5));
    let reply = ada.get("/v1/messages").await;
    reply.expect_error(401, "AUTHENTICATION_ERROR");
}

/// No fixation: whoever planted a cookie does not get the session of the victim.
#[tokio::test]
async fn signing_in_never_adopts_a_cookie() {
    let app = quiet().await;
    let organization = app.organization_id();
    app.user("ada@example.com", &[(organization, Role::Owner)])
        .await;
    let first = app.sign_in("ada@example.com").await;
    let body = json!({ "email": "ada@example.com", "password": PASSWORD });
    let planted = app
        .caller()
        .with_session(&format!("__Host-waypost_session={}", "A".repeat(43)));
    for caller in [&first, &planted] {
        let reply = caller.post("/v1/session", &body).await;
        reply.expect(201);
        assert_ne!(reply.session_cookie().as_deref(), caller.cookie());
    }
    let reply = planted.get("/v1/session").await;
    reply.expect_error(401, "AUTHENTICATION_ERROR");
    let stored = app.value("SELECT count(*)::text FROM sessions").await;
    assert_eq!(stored.as_deref(), Some("3"));
    let token = first
        .cookie()
        .unwrap()
        .split_once('=')
        .unwrap()
        .1
        .to_owned();
    let found = format!("SELECT count(*)::text FROM sessions s WHERE s::text LIKE '%{token}%'");
    assert_eq!(
        app.value(&found).await.as_deref(),
        Some("0"),
        "only its hash is stored"
    );
}

#[tokio::test]
async fn switching_the_organization_gives_a_new_token() {
    let app = quiet().await;
    let other = app.tenant("Other").await.organization_id;
    let foreign = app.tenant("Foreign").await.organization_id;
    let roles = [(app.organization_id(), Role::Owner), (other, Role::Viewer)];
    app.user("ada@example.com", &roles).await;
    let ada = app.sign_in("ada@example.com").await;
    let reply = ada
        .patch("/v1/session", &json!({ "organizationId": foreign }))
        .await;
    let error = reply.expect_error(403, "FORBIDDEN");
    assert_eq!(error["details"]["reason"], "NOT_A_MEMBER");
    let before = ada.get("/v1/session").await.data(200);
    let wanted = if before["organization"]["id"] == json!(other) {
        (app.organization_id(), "OWNER")
    } else {
        (other, "VIEWER")
    };
    app.advance(TimeDelta::seconds(1));
    let reply = ada
        .patch("/v1/session", &json!({ "organizationId": wanted.0 }))
        .await;
    let session = reply.data(200);
    assert_eq!(session["organization"]["id"], json!(wanted.0));
    assert_eq!(session["role"], wanted.1);
    assert_eq!(session["expiresAt"], before["expiresAt"]);
    let switched = ada.with_session_of(&reply);
    switched.get("/v1/session").await.expect(200);
    let reply = ada.get("/v1/session").await;
    reply.expect_error(401, "AUTHENTICATION_ERROR");
    // The next sign-in leads to the organization that the user was in last.
    let again = app.sign_in("ada@example.com").await;
    let session = again.get("/v1/session").await.data(200);
    assert_eq!(session["organization"]["id"], json!(wanted.0));
}

#[tokio::test]
async fn a_new_password_ends_the_other_sessions() {
    let app = quiet().await;
    let organization = app.organization_id();
    app.user("ada@example.com", &[(organization, Role::Owner)])
        .await;
    let (own, other) = (
        app.sign_in("ada@example.com").await,
        app.sign_in("ada@example.com").await,
    );
    let new = "another good passphrase";
    let body = json!({ "password": new });
    let reply = own.patch("/v1/user", &body).await;
    reply.expect_issues(400, &["currentPassword"]);
    let body = json!({ "password": new, "currentPassword": "not it" });
    let reply = own.patch("/v1/user", &body).await;
    let error = reply.expect_issues(422, &["currentPassword"]);
    assert_eq!(error["details"]["reason"], "WRONG_PASSWORD");
    let body = json!({ "password": "too short", "currentPassword": PASSWORD });
    let reply = own.patch("/v1/user", &body).await;
    reply.expect_issues(400, &["password"]);
    let body = json!({ "name": "Countess", "password": new, "currentPassword": PASSWORD });
    let user = own.patch("/v1/user", &body).await.data(200);
    assert_eq!(user["name"], "Countess");
    own.get("/v1/session").await.expect(200);
    other.get("/v1/session").await.expect(401);
    let stranger = app.caller().anonymous().from_page();
    for (password, status) in [(PASSWORD, 401), (new, 201)] {
        let body = json!({ "email": "ada@example.com", "password": password });
        stranger.post("/v1/session", &body).await.expect(status);
    }
}

#[tokio::test]
async fn an_api_key_has_no_session() {
    let app = quiet().await;
    for (method, path) in [("GET", "/v1/session"), ("DELETE", "/v1/session")] {
        let method = method.parse().unwrap();
        let reply = app.caller().call(method, path, |request| request).await;
        let error = reply.expect_error(403, "FORBIDDEN");
        assert_eq!(error["details"]["reason"], "SESSION_REQUIRED");
    }
    // A request with a key does not look at a cookie.
    let ada = app.member(app.organization_id(), Role::Owner).await;
    let cookie = ada.cookie().unwrap().to_owned();
    let both = |key: &'static str| {
        let cookie = cookie.clone();
        move |request: reqwest::RequestBuilder| {
            request
                .header("cookie", cookie)
                .header("authorization", key)
        }
    };
    for key in ["Bearer nonsense", "Basic eA==", ""] {
        let reply = app.caller().anonymous();
        let reply = reply
            .call(http::Method::GET, "/v1/messages", both(key))
            .await;
        reply.expect_error(401, "AUTHENTICATION_ERROR");
    }
}

#[tokio::test]
async fn what_a_user_makes_names_the_user() {
    let app = quiet().await;
    let ada = app.member(app.organization_id(), Role::Owner).await;
    let id = ada.get("/v1/session").await.data(200)["user"]["id"].clone();
    let key = json!({ "name": "Shop", "permissions": ["SEND"] });
    let key = ada.post("/v1/api-keys", &key).await.data(201);
    assert_eq!(key["createdBy"], id);
    let template = ada
        .post("/v1/templates", &json!({ "name": "Letter" }))
        .await;
    let template = template.data(201)["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/templates/{template}/versions");
    let version = ada
        .post(&path, &json!({ "htmlContent": "x" }))
        .await
        .data(201);
    assert_eq!(version["createdBy"], id);
    let entries = ada
        .get("/v1/audit-logs?action=api_key.created")
        .await
        .data(200);
    assert_eq!(
        entries[0]["actor"],
        json!({ "type": "user", "id": id, "name": "Ada Lovelace" })
    );
}
