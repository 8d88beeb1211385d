//! Signing in by password.

use std::time::Instant;

use serde_json::json;
use waypost_core::auth::Role;
use waypost_tests::PASSWORD;

use super::{actions, quiet};

#[tokio::test]
async fn a_user_signs_in_and_has_the_permissions_of_the_role() {
    let app = quiet().await;
    let organization = app.organization_id();
    app.user("Ada@Example.com", &[(organization, Role::Developer)])
        .await;
    let stranger = app.caller().anonymous().from_page();
    let body = json!({ "email": "ADA@example.com", "password": PASSWORD });
    let reply = stranger.post("/v1/session", &body).await;
    let session = reply.data(201);
    assert_eq!(session["user"]["email"], "ada@example.com");
    assert_eq!(session["user"]["totpEnabled"], false);
    assert_eq!(session["role"], "DEVELOPER");
    assert_eq!(
        session["permissions"],
        json!([
            "SEND",
            "TEMPLATES_READ",
            "TEMPLATES_WRITE",
            "PROVIDERS_READ",
            "METRICS_READ",
            "CONTENT_READ"
        ])
    );
    assert_eq!(session["organization"]["name"], "Tests");
    assert_eq!(session["organizations"].as_array().unwrap().len(), 1);
    let cookie = reply.header("set-cookie").unwrap();
    for part in ["; Path=/", "; HttpOnly", "; Secure", "; SameSite=Lax"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Domain"), "{cookie}");

    let ada = stranger.with_session_of(&reply);
    assert_eq!(ada.get("/v1/session").await.data(200), session);
    ada.get("/v1/messages").await.expect(200);
    let error = ada.get("/v1/settings").await;
    let error = error.expect_error(403, "FORBIDDEN");
    assert_eq!(error["details"]["requiredPermission"], "SETTINGS_WRITE");
    assert_eq!(actions(&app).await, ["session.created user"]);
}

#[tokio::test]
async fn a_wrong_address_and_a_wrong_password_get_the_same_answer() {
    let app = quiet().await;
    let organization = app.organization_id();
    app.user("ada@example.com", &[(organization, Role::Owner)])
        .await;
    let stranger = app.caller().anonymous().from_page();
    let mut texts = Vec::new();
    for (email, password) in [
        ("ada@example.com", "not her password"),
        ("grace@example.com", PASSWORD),
    ] {
        let body = json!({ "email": email, "password": password });
        let reply = stranger.post("/v1/session", &body).await;
        reply.expect_error(401, "AUTHENTICATION_ERROR");
        assert!(reply.header("set-cookie").is_none());
        texts.push(reply.text);
    }
    assert_eq!(texts[0], texts[1]);
}

/// The fastest of several requests, since others run at the same time.
#[tokio::test]
async fn an_unknown_address_takes_as_long_as_a_known_one() {
    let app = quiet().await;
    let organization = app.organization_id();
    app.user("ada@example.com", &[(organization, Role::Owner)])
        .await;
    let stranger = app.caller().anonymous().from_page();
    let fastest = async |email: &str| {
        let mut times = Vec::new();
        for _ in 0..5 {
            let body = json!({ "email": email, "password": "not the password" });
            let begin = Instant::now();
            stranger.post("/v1/session", &body).await.expect(401);
            times.push(begin.elapsed());
        }
        times.into_iter().min().unwrap()
    };
    let known = fastest("ada@example.com").await;
    let unknown = fastest("grace@example.com").await;
    assert!(unknown * 2 > known, "{unknown:?} and {known:?}");
    assert!(known * 2 > unknown, "{unknown:?} and {known:?}");
}

#[tokio::test]
async fn a_user_without_an_organization_cannot_sign_in() {
    let app = quiet().await;
    app.user("ada@example.com", &[]).await;
    let stranger = app.caller().anonymous().from_page();
    let body = json!({ "email": "ada@example.com", "password": PASSWORD });
    let reply = stranger.post("/v1/session", &body).await;
    let error = reply.expect_error(403, "FORBIDDEN");
    assert_eq!(error["details"]["reason"], "NOT_A_MEMBER");
}

#[tokio::test]
async fn the_mistakes_of_a_request_to_sign_in_are_all_named() {
    let app = quiet().await;
    let stranger = app.caller().anonymous().from_page();
    let body = json!({ "email": "ada", "code": 7, "remember": true });
    let reply = stranger.post("/v1/session", &body).await;
    reply.expect_issues(400, &["code", "email", "password", "remember"]);
    let methods = stranger.get("/v1/session/methods").await.data(200);
    assert_eq!(methods, json!({ "password": true, "oidc": null }));
}
