//! Invitations and links that set a password.

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::auth::Role;
use waypost_tests::{Caller, PASSWORD, Reply, TestApp};

use super::{actions, quiet};

/// Invites somebody; the token of the link.
async fn invite(owner: &Caller, email: &str, role: &str) -> String {
    let body = json!({ "email": email, "role": role });
    let made = owner.post("/v1/invitations", &body).await.data(201);
    assert_eq!(made["mailed"], false);
    token(&made["url"])
}

fn token(url: &Value) -> String {
    let url = url.as_str().unwrap();
    let (page, token) = url.split_once('#').unwrap();
    assert!(page.ends_with("/invitation"), "{url}");
    token.to_owned()
}

async fn accept(app: &TestApp, token: &str, more: Value) -> Reply {
    let mut body = json!({ "token": token, "password": PASSWORD });
    let members = more.as_object().unwrap();
    members
        .iter()
        .for_each(|(name, value)| body[name] = value.clone());
    let stranger = app.caller().anonymous().from_page();
    stranger.post("/v1/invitations/accept", &body).await
}

async fn look_up(app: &TestApp, token: &str) -> Reply {
    let stranger = app.caller().anonymous().from_page();
    let body = json!({ "token": token });
    stranger.post("/v1/invitations/look-up", &body).await
}

#[tokio::test]
async fn a_new_user_accepts_an_invitation() {
    let app = quiet().await;
    let owner = app.member(app.organization_id(), Role::Owner).await;
    let token = invite(&owner, "Grace@Example.com", "DEVELOPER").await;
    let shown = look_up(&app, &token).await.data(200);
    let wanted = json!({
        "organizationName": "Tests", "email": "grace@example.com", "role": "DEVELOPER", "hasUser": false,
    });
    assert_eq!(shown, wanted);
    let reply = accept(&app, &token, json!({ "password": "short" })).await;
    reply.expect_issues(400, &["password"]);
    let reply = accept(&app, &token, json!({ "name": "Grace Hopper" })).await;
    let session = reply.data(201);
    assert_eq!(session["user"]["name"], "Grace Hopper");
    assert_eq!(session["role"], "DEVELOPER");
    let grace = owner.with_session_of(&reply);
    grace.get("/v1/messages").await.expect(200);
    // The link is used up.
    look_up(&app, &token).await.expect_error(404, "NOT_FOUND");
    let again = accept(&app, &token, json!({})).await;
    again.expect_error(404, "NOT_FOUND");
    assert_eq!(owner.get("/v1/invitations").await.data(200), json!([]));
    app.sign_in("grace@example.com").await;
    let log = actions(&app).await;
    for action in ["invitation.created user", "invitation.accepted user"] {
        assert!(log.contains(&action.to_owned()), "{log:?}");
    }
}

#[tokio::test]
async fn who_has_a_user_must_give_its_password() {
    let app = quiet().await;
    let other = app.tenant("Other").await.organization_id;
    app.user("grace@example.com", &[(other, Role::Viewer)])
        .await;
    let owner = app.member(app.organization_id(), Role::Owner).await;
    let token = invite(&owner, "grace@example.com", "ADMIN").await;
    assert_eq!(look_up(&app, &token).await.data(200)["hasUser"], true);
    let wrong = json!({ "password": "a password of the thief" });
    let reply = accept(&app, &token, wrong).await;
    reply.expect_error(401, "AUTHENTICATION_ERROR");
    let reply = accept(&app, &token, json!({ "name": "Not Grace" })).await;
    let session = reply.data(201);
    assert_eq!(
        session["user"]["name"], "Ada Lovelace",
        "a user's name stays"
    );
    assert_eq!(session["organizations"].as_array().unwrap().len(), 2);
    let reply = owner
        .post(
            "/v1/invitations",
            &json!({ "email": "grace@example.com", "role": "ADMIN" }),
        )
        .await;
    let error = reply.expect_error(409, "CONFLICT");
    assert_eq!(error["details"]["reason"], "MEMBER_EXISTS");
}

#[tokio::test]
async fn an_invitation_is_accepted_once_under_concurrency() {
    let app = quiet().await;
    let owner = app.member(app.organization_id(), Role::Owner).await;
    let token = invite(&owner, "grace@example.com", "VIEWER").await;
    let tries = (0..5).map(|_| accept(&app, &token, json!({})));
    let replies = futures_util::future::join_all(tries).await;
    let accepted = replies.iter().filter(|reply| reply.status == 201).count();
    assert_eq!(accepted, 1, "{replies:?}");
    assert!(
        replies.iter().all(|reply| reply.status < 500),
        "{replies:?}"
    );
    let members = owner.get("/v1/members").await.data(200);
    assert_eq!(members.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn an_invitation_expires_after_seven_days() {
    let app = quiet().await;
    let owner = app.member(app.organization_id(), Role::Owner).await;
    let token = invite(&owner, "grace@example.com", "VIEWER").await;
    let body = json!({ "email": "grace@example.com", "role": "VIEWER" });
    let reply = owner.post("/v1/invitations", &body).await;
    let error = reply.expect_error(409, "CONFLICT");
    assert_eq!(error["details"]["reason"], "INVITATION_EXISTS");
    app.advance(TimeDelta::days(7) - TimeDelta::seconds(1));
    look_up(&app, &token).await.expect(200);
    app.advance(TimeDelta::seconds(1));
    look_up(&app, &token).await.expect(404);
    accept(&app, &token, json!({})).await.expect(404);
    let owner = app
        .sign_in(&format!("owner-{}@example.com", app.organization_id()))
        .await;
    let fresh = invite(&owner, "grace@example.com", "VIEWER").await;
    look_up(&app, &token).await.expect(404);
    accept(&app, &fresh, json!({})).await.expect(201);
}

#[tokio::test]
async fn an_invitation_is_changed_and_withdrawn() {
    let app = quiet().await;
    let owner = app.member(app.organization_id(), Role::Owner).await;
    let token = invite(&owner, "grace@example.com", "OWNER").await;
    let listed = owner.get("/v1/invitations").await.data(200);
    let path = format!("/v1/invitations/{}", listed[0]["id"].as_str().unwrap());
    assert_eq!(owner.get(&path).await.data(200), listed[0]);
    let changed = owner.patch(&path, &json!({ "role": "VIEWER" })).await;
    assert_eq!(changed.data(200)["role"], "VIEWER");
    assert_eq!(look_up(&app, &token).await.data(200)["role"], "VIEWER");
    owner.delete(&path).await.expect(200);
    look_up(&app, &token).await.expect(404);
    owner.get(&path).await.expect(404);
    // Tokens are stored as hashes.
    let stored = format!("SELECT count(*)::text FROM invitations i WHERE i::text LIKE '%{token}%'");
    assert_eq!(app.value(&stored).await.as_deref(), Some("0"));
}

#[tokio::test]
async fn an_invitation_is_mailed_where_the_organization_can_send() {
    let app = TestApp::builder()
        .setting("WAYPOST_INVITATION_FROM", waypost_tests::SENDER)
        .start()
        .await;
    let owner = app.member(app.organization_id(), Role::Owner).await;
    let body = json!({ "email": "grace@example.com", "role": "VIEWER" });
    let made = owner.post("/v1/invitations", &body).await.data(201);
    assert_eq!(made["mailed"], false, "there is no account");
    let path = format!("/v1/invitations/{}", made["id"].as_str().unwrap());
    owner.delete(&path).await.expect(200);
    app.connect(waypost_core::provider::kind::ProviderType::Sendgrid)
        .await;
    let made = owner.post("/v1/invitations", &body).await.data(201);
    assert_eq!(made["mailed"], true);
    app.drain().await;
    let mail = app.captured_once("grace@example.com");
    let token = token(&made["url"]);
    assert!(format!("{mail:?}").contains(&token), "{mail:?}");
    // Whoever may read contents must not take the invitation over.
    let messages = app
        .get("/v1/messages?tag=waypost-invitation")
        .await
        .data(200);
    let path = format!(
        "/v1/messages/{}/content",
        messages[0]["id"].as_str().unwrap()
    );
    for path in [path.clone(), format!("{path}?position=0")] {
        let error = app.get(&path).await.expect_error(404, "NOT_FOUND");
        assert_eq!(error["details"]["reason"], "MESSAGE_CONTENT_WITHHELD");
    }
    accept(&app, &token, json!({})).await.expect(201);
}
