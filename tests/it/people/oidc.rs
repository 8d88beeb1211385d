//! Sign-in at an OpenID Connect provider that says whatever a test wants. The judge `oidc`
//! (`tests/judges`) does the same at a certified provider.

mod issuer;

use chrono::TimeDelta;
use serde_json::{Value, json};
use url::Url;
use waypost_core::auth::Role;
use waypost_tests::{Caller, PASSWORD, Reply, TestApp};

use super::quiet;
use issuer::{CLIENT, Issuer, SECRET, Signature};

/// A Waypost that signs users in at the issuer, with these further settings.
async fn start(issuer: &Issuer, settings: &[(&str, &str)]) -> TestApp {
    let builder = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .setting("WAYPOST_OIDC_ISSUER", &issuer.url)
        .setting("WAYPOST_OIDC_CLIENT_ID", CLIENT)
        .setting("WAYPOST_OIDC_CLIENT_SECRET", SECRET)
        .setting("WAYPOST_OIDC_NAME", "Example SSO");
    let builder = settings.iter().fold(builder, |builder, (name, value)| {
        builder.setting(name, value)
    });
    builder.start().await
}

/// A sign-in that the browser was sent to the issuer for.
struct Begun {
    state: String,
    nonce: String,
    challenge: String,
    cookie: String,
}

async fn begin(caller: &Caller) -> Begun {
    let reply = caller.get("/v1/session/oidc").await;
    assert_eq!(reply.status, 302, "{reply:?}");
    let location = Url::parse(reply.header("location").unwrap()).unwrap();
    let parameter = |wanted: &str| {
        let mut pairs = location.query_pairs();
        let found = pairs.find(|(name, _)| name == wanted);
        found
            .unwrap_or_else(|| panic!("no {wanted} in {location}"))
            .1
            .into_owned()
    };
    assert_eq!(parameter("client_id"), CLIENT);
    assert_eq!(parameter("response_type"), "code");
    assert_eq!(parameter("code_challenge_method"), "S256");
    assert!(parameter("scope").contains("openid"));
    assert!(parameter("redirect_uri").ends_with("/v1/session/oidc/callback"));
    let cookie = reply.header("set-cookie").unwrap();
    for part in ["__Host-waypost_oidc=", "HttpOnly", "Secure", "Max-Age=600"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    Begun {
        state: parameter("state"),
        nonce: parameter("nonce"),
        challenge: parameter("code_challenge"),
        cookie: cookie.split(';').next().unwrap().to_owned(),
    }
}

/// The claims of a right token.
fn claims(app: &TestApp, issuer: &Issuer, begun: &Begun) -> Value {
    let now = app.clock.now().timestamp();
    json!({
        "iss": issuer.url, "aud": CLIENT, "sub": "subject-1", "nonce": begun.nonce,
        "iat": now, "exp": now + 60,
        "email": "Grace@Example.com", "email_verified": true, "name": "Grace Hopper",
    })
}

async fn call_back(caller: &Caller, query: &str, cookie: &str) -> Reply {
    let path = format!("/v1/session/oidc/callback?{query}");
    let reply = caller.with_session(cookie).get(&path).await;
    assert_eq!(reply.status, 302, "{reply:?}");
    reply
}

/// Signs in with the claims, changed.
async fn sign_in(app: &TestApp, issuer: &Issuer, change: impl FnOnce(&mut Value)) -> Reply {
    let stranger = app.caller().anonymous();
    let begun = begin(&stranger).await;
    let mut claims = claims(app, issuer, &begun);
    change(&mut claims);
    issuer.prepare(claims, Signature::Right, &begun.challenge);
    let query = format!("code=the+code&state={}", begun.state);
    call_back(&stranger, &query, &begun.cookie).await
}

fn expect_refused(reply: &Reply, word: &str) {
    let location = reply.header("location").unwrap();
    let end = format!("/sign-in?error={word}");
    assert!(location.ends_with(&end), "{word}: {location}");
    assert_eq!(reply.session_cookie(), None, "{word}");
}

async fn session_of(app: &TestApp, reply: &Reply) -> Value {
    let location = reply.header("location").unwrap();
    assert!(!location.contains("error"), "{location}");
    let caller = app.caller().anonymous().with_session_of(reply);
    caller.get("/v1/session").await.data(200)
}

#[tokio::test]
async fn a_new_user_becomes_a_member_with_the_role_of_the_groups() {
    let issuer = Issuer::start().await;
    let organization = uuid::Uuid::from_u128(0x01a1_fbfa_b12e_763c_a29e_ce02_006b_a540);
    let id = organization.to_string();
    let roles = "admins=ADMIN,cn=devs=DEVELOPER";
    let settings = [
        ("WAYPOST_OIDC_ORGANIZATION", id.as_str()),
        ("WAYPOST_OIDC_ROLES", roles),
        ("WAYPOST_OIDC_GROUPS_CLAIM", "teams"),
    ];
    let app = start(&issuer, &settings).await;
    let methods = app.caller().anonymous().get("/v1/session/methods").await;
    let wanted = json!({ "name": "Example SSO", "url": "/v1/session/oidc" });
    assert_eq!(methods.data(200)["oidc"], wanted);
    app.execute(&format!(
        "INSERT INTO organizations (id, name, created_at) VALUES ('{id}', 'SSO', now())"
    ))
    .await;
    // Nothing gives a role.
    let reply = sign_in(&app, &issuer, |claims| claims["teams"] = json!(["sales"])).await;
    expect_refused(&reply, "OIDC_NO_ROLE");
    let users = "SELECT count(*)::text FROM users";
    assert_eq!(app.value(users).await.as_deref(), Some("0"));
    let teams = json!(["sales", "cn=devs", "admins"]);
    let reply = sign_in(&app, &issuer, |claims| claims["teams"] = teams).await;
    let session = session_of(&app, &reply).await;
    assert_eq!(session["role"], "ADMIN");
    assert_eq!(session["user"]["email"], "grace@example.com");
    assert_eq!(session["user"]["name"], "Grace Hopper");
    assert_eq!(session["user"]["hasPassword"], false);
    // The next sign-in sets the role anew. The subject counts, not the address.
    let reply = sign_in(&app, &issuer, |claims| {
        claims["teams"] = json!("cn=devs");
        claims["email"] = json!("other@example.com");
        claims["email_verified"] = json!(false);
    });
    let again = session_of(&app, &reply.await).await;
    assert_eq!(again["role"], "DEVELOPER");
    assert_eq!(again["user"]["id"], session["user"]["id"]);
    // A user who left all groups is refused.
    let reply = sign_in(&app, &issuer, |claims| claims["teams"] = json!([])).await;
    expect_refused(&reply, "OIDC_NO_ROLE");
    // A password cannot be set in a session of such a user.
    let caller = app.caller().anonymous().from_page();
    let body = json!({ "email": "grace@example.com", "password": PASSWORD });
    caller.post("/v1/session", &body).await.expect(401);
}

#[tokio::test]
async fn the_last_owner_keeps_the_role_whatever_the_groups_say() {
    let issuer = Issuer::start().await;
    let id = uuid::Uuid::from_u128(0x01a1_fbfa_b12e_763c_a29e_ce02_006b_a541).to_string();
    let settings = [
        ("WAYPOST_OIDC_ORGANIZATION", id.as_str()),
        ("WAYPOST_OIDC_ROLES", "owners=OWNER"),
        ("WAYPOST_OIDC_DEFAULT_ROLE", "VIEWER"),
    ];
    let app = start(&issuer, &settings).await;
    app.execute(&format!(
        "INSERT INTO organizations (id, name, created_at) VALUES ('{id}', 'SSO', now())"
    ))
    .await;
    let owners = json!(["owners"]);
    let reply = sign_in(&app, &issuer, |claims| claims["groups"] = owners.clone()).await;
    assert_eq!(session_of(&app, &reply).await["role"], "OWNER");
    let reply = sign_in(&app, &issuer, |_| {}).await;
    assert_eq!(session_of(&app, &reply).await["role"], "OWNER");
    let reply = sign_in(&app, &issuer, |claims| {
        claims["groups"] = owners;
        claims["sub"] = json!("subject-2");
        claims["email"] = json!("ada@example.com");
    });
    assert_eq!(session_of(&app, &reply.await).await["role"], "OWNER");
    let reply = sign_in(&app, &issuer, |_| {}).await;
    assert_eq!(session_of(&app, &reply).await["role"], "VIEWER");
}

#[tokio::test]
async fn a_user_with_a_password_is_taken_over_and_the_password_removed() {
    let issuer = Issuer::start().await;
    let app = start(&issuer, &[]).await;
    let organization = app.organization_id();
    app.user("grace@example.com", &[(organization, Role::Admin)])
        .await;
    // Perhaps of somebody else who knew the address.
    let before = app.sign_in("grace@example.com").await;
    let reply = sign_in(&app, &issuer, |claims| {
        claims["email_verified"] = json!(false)
    })
    .await;
    expect_refused(&reply, "OIDC_EMAIL_NOT_VERIFIED");
    before.get("/v1/session").await.expect(200);
    let reply = sign_in(&app, &issuer, |_| {}).await;
    let session = session_of(&app, &reply).await;
    assert_eq!(session["role"], "ADMIN");
    assert_eq!(session["user"]["hasPassword"], false);
    before.get("/v1/session").await.expect(401);
    let stranger = app.caller().anonymous().from_page();
    let body = json!({ "email": "grace@example.com", "password": PASSWORD });
    stranger.post("/v1/session", &body).await.expect(401);
    let own = stranger.with_session_of(&reply);
    let reply = own
        .post("/v1/user/totp", &json!({ "password": PASSWORD }))
        .await;
    let error = reply.expect_error(422, "VALIDATION_ERROR");
    assert_eq!(error["details"]["reason"], "PASSWORD_NOT_SET");
    // Another identity does not get the user.
    let reply = sign_in(&app, &issuer, |claims| claims["sub"] = json!("subject-2")).await;
    expect_refused(&reply, "OIDC_ACCOUNT_EXISTS");
    // Without an organization in the settings nobody new comes in.
    let reply = sign_in(&app, &issuer, |claims| {
        claims["sub"] = json!("subject-3");
        claims["email"] = json!("new@example.com");
    });
    expect_refused(&reply.await, "OIDC_NO_ROLE");
}

#[tokio::test]
async fn a_user_with_a_second_factor_is_not_taken_over() {
    let issuer = Issuer::start().await;
    let app = start(&issuer, &[]).await;
    let organization = app.organization_id();
    let id = app
        .user("grace@example.com", &[(organization, Role::Owner)])
        .await;
    app.execute(&format!(
        "UPDATE users SET totp_enabled_at = now(), totp_secret_sealed = 'x' WHERE id = '{id}'"
    ))
    .await;
    let reply = sign_in(&app, &issuer, |_| {}).await;
    expect_refused(&reply, "OIDC_ACCOUNT_EXISTS");
}

#[tokio::test]
async fn a_token_that_does_not_verify_signs_nobody_in() {
    let issuer = Issuer::start().await;
    let app = start(&issuer, &[]).await;
    let organization = app.organization_id();
    app.user("grace@example.com", &[(organization, Role::Owner)])
        .await;
    let now = app.clock.now().timestamp();
    let wrong: [(&str, Value); 7] = [
        ("nonce", json!("another nonce")),
        ("nonce", Value::Null),
        ("aud", json!("another client")),
        ("aud", json!([CLIENT, "another client"])),
        ("iss", json!("https://evil.example")),
        ("exp", json!(now - 1)),
        ("sub", Value::Null),
    ];
    for (claim, value) in wrong {
        let reply = sign_in(&app, &issuer, |claims| claims[claim] = value.clone()).await;
        expect_refused(&reply, "OIDC_INVALID");
    }
    let stranger = app.caller().anonymous();
    for signature in [
        Signature::OfAnother,
        Signature::OfOtherClaims,
        Signature::None,
        Signature::Secret,
    ] {
        let begun = begin(&stranger).await;
        let claims = claims(&app, &issuer, &begun);
        issuer.prepare(claims, signature, &begun.challenge);
        let query = format!("code=the+code&state={}", begun.state);
        let reply = call_back(&stranger, &query, &begun.cookie).await;
        expect_refused(&reply, "OIDC_INVALID");
    }
    let sessions = "SELECT count(*)::text FROM sessions";
    assert_eq!(app.value(sessions).await.as_deref(), Some("0"));
    // The same with nothing wrong.
    let reply = sign_in(&app, &issuer, |_| {}).await;
    session_of(&app, &reply).await;
}

#[tokio::test]
async fn a_callback_belongs_to_the_browser_that_began_the_sign_in() {
    let issuer = Issuer::start().await;
    let app = start(&issuer, &[]).await;
    let organization = app.organization_id();
    app.user("grace@example.com", &[(organization, Role::Owner)])
        .await;
    let stranger = app.caller().anonymous();
    let (begun, other) = (begin(&stranger).await, begin(&stranger).await);
    issuer.prepare(
        claims(&app, &issuer, &begun),
        Signature::Right,
        &begun.challenge,
    );
    let right = format!("code=the+code&state={}", begun.state);
    for (query, cookie, word) in [
        (right.as_str(), other.cookie.as_str(), "OIDC_INVALID"),
        (&right, "__Host-waypost_oidc=nonsense", "OIDC_INVALID"),
        (&right, "a=b", "OIDC_INVALID"),
        ("code=the+code&state=x", &begun.cookie, "OIDC_INVALID"),
        ("code=the+code", &begun.cookie, "OIDC_INVALID"),
    ] {
        let reply = call_back(&stranger, query, cookie).await;
        expect_refused(&reply, word);
    }
    assert_eq!(issuer.redeemed(), 0, "no code was redeemed");
    let denied = format!("error=access_denied&state={}", begun.state);
    let reply = call_back(&stranger, &denied, &begun.cookie).await;
    expect_refused(&reply, "OIDC_DENIED");
    app.advance(TimeDelta::minutes(10));
    let reply = call_back(&stranger, &right, &begun.cookie).await;
    expect_refused(&reply, "OIDC_INVALID");
    assert_eq!(issuer.redeemed(), 0);
}

#[tokio::test]
async fn without_a_provider_the_browser_is_sent_back() {
    let app = quiet().await;
    let stranger = app.caller().anonymous();
    let reply = stranger.get("/v1/session/oidc").await;
    expect_refused(&reply, "OIDC_NOT_CONFIGURED");
    let issuer = Issuer::start().await;
    let app = start(&issuer, &[]).await;
    drop(issuer);
    tokio::task::yield_now().await;
    let reply = app.caller().anonymous().get("/v1/session/oidc").await;
    expect_refused(&reply, "OIDC_UNREACHABLE");
}
