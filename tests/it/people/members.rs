//! Members and their roles.

use serde_json::{Value, json};
use waypost_core::auth::{Permission, Role};
use waypost_tests::{Caller, TestApp, wait_until};

use super::{actions, quiet};

/// The id of the membership of the user with this address.
async fn member_id(caller: &Caller, email: &str) -> String {
    let members = caller.get("/v1/members?limit=100").await.data(200);
    let mut members = members.as_array().unwrap().iter();
    let member = members.find(|member| member["email"] == email);
    member.unwrap_or_else(|| panic!("no member {email}"))["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

async fn two_owners(app: &TestApp) -> (Caller, Caller) {
    let organization = app.organization_id();
    for email in ["ada@example.com", "grace@example.com"] {
        app.user(email, &[(organization, Role::Owner)]).await;
    }
    (
        app.sign_in("ada@example.com").await,
        app.sign_in("grace@example.com").await,
    )
}

#[tokio::test]
async fn an_owner_adds_changes_and_removes_members() {
    let app = quiet().await;
    let other = app.tenant("Other").await.organization_id;
    let owner = app.member(app.organization_id(), Role::Owner).await;
    app.user("grace@example.com", &[(other, Role::Owner)]).await;
    let body = json!({ "email": "Grace@Example.com", "role": "VIEWER" });
    let member = owner.post("/v1/members", &body).await.data(201);
    assert_eq!(member["email"], "grace@example.com");
    assert_eq!(member["lastSignedInAt"], Value::Null);
    let path = format!("/v1/members/{}", member["id"].as_str().unwrap());
    assert_eq!(owner.get(&path).await.data(200), member);
    let reply = owner.post("/v1/members", &body).await;
    let error = reply.expect_error(409, "CONFLICT");
    assert_eq!(error["details"]["reason"], "MEMBER_EXISTS");
    let body = json!({ "email": "nobody@example.com", "role": "VIEWER" });
    let reply = owner.post("/v1/members", &body).await;
    let error = reply.expect_issues(422, &["email"]);
    assert_eq!(error["details"]["reason"], "USER_NOT_FOUND");

    let grace = app.sign_in("grace@example.com").await;
    let switched = json!({ "organizationId": app.organization_id() });
    let grace = grace.with_session_of(&grace.patch("/v1/session", &switched).await);
    grace.get("/v1/messages").await.expect(200);
    grace.get("/v1/settings").await.expect(403);
    let changed = owner
        .patch(&path, &json!({ "role": "ADMIN" }))
        .await
        .data(200);
    assert_eq!(changed["role"], "ADMIN");
    assert!(changed["lastSignedInAt"].is_string(), "{changed}");
    wait_until("the new role has effect", async || {
        grace.get("/v1/settings").await.status == 200
    })
    .await;
    owner.delete(&path).await.expect(200);
    grace.get("/v1/messages").await.expect(401);
    owner.get(&path).await.expect(404);
    // Her other organization is not affected.
    let elsewhere = app.sign_in("grace@example.com").await;
    let session = elsewhere.get("/v1/session").await.data(200);
    assert_eq!(session["organizations"].as_array().unwrap().len(), 1);
    let log = actions(&app).await;
    for action in ["member.created", "member.updated", "member.deleted"] {
        assert!(log.contains(&format!("{action} user")), "{log:?}");
    }
}

#[tokio::test]
async fn the_last_owner_stays() {
    let app = quiet().await;
    let (ada, _) = two_owners(&app).await;
    let grace = member_id(&ada, "grace@example.com").await;
    let own = member_id(&ada, "ada@example.com").await;
    ada.delete(&format!("/v1/members/{grace}"))
        .await
        .expect(200);
    let path = format!("/v1/members/{own}");
    let replies = [
        ada.delete(&path).await,
        ada.patch(&path, &json!({ "role": "VIEWER" })).await,
        // An API key may not do it either.
        app.caller().delete(&path).await,
    ];
    for reply in replies {
        let error = reply.expect_error(409, "CONFLICT");
        assert_eq!(error["details"]["reason"], "LAST_OWNER");
    }
    ada.patch(&path, &json!({ "role": "OWNER" }))
        .await
        .expect(200);
}

#[tokio::test]
async fn of_two_owners_who_remove_each_other_at_once_one_stays() {
    let app = quiet().await;
    for round in 0..5 {
        let organization = app.tenant(&format!("Round {round}")).await.organization_id;
        let (first, second) = (
            format!("a{round}@example.com"),
            format!("b{round}@example.com"),
        );
        for email in [&first, &second] {
            app.user(email, &[(organization, Role::Owner)]).await;
        }
        let (ada, grace) = (app.sign_in(&first).await, app.sign_in(&second).await);
        let other = format!("/v1/members/{}", member_id(&ada, &second).await);
        let own = format!("/v1/members/{}", member_id(&ada, &first).await);
        let demote = json!({ "role": "VIEWER" });
        let (one, two) = tokio::join!(ada.delete(&other), grace.patch(&own, &demote));
        let mut statuses = [one.status, two.status];
        statuses.sort_unstable();
        assert!(statuses[0] == 200, "{one:?} {two:?}");
        let owners = format!(
            "SELECT count(*)::text FROM memberships WHERE organization_id = '{organization}' AND role = 'OWNER'"
        );
        assert_eq!(app.value(&owners).await.as_deref(), Some("1"));
    }
}

#[tokio::test]
async fn nobody_gives_a_role_with_more_permissions() {
    let app = quiet().await;
    let organization = app.organization_id();
    let admin = app.member(organization, Role::Admin).await;
    let owner = app.member(organization, Role::Owner).await;
    app.user("grace@example.com", &[]).await;
    let add = |role: &str| json!({ "email": "grace@example.com", "role": role });
    // An administrator does not manage members at all.
    for role in ["OWNER", "VIEWER"] {
        let reply = admin.post("/v1/members", &add(role)).await;
        let error = reply.expect_error(403, "FORBIDDEN");
        assert_eq!(error["details"]["requiredPermission"], "MEMBERS_WRITE");
    }
    // A key with some permissions gives roles with these only.
    let held = [
        Permission::MembersWrite,
        Permission::MetricsRead,
        Permission::TemplatesRead,
        Permission::ProvidersRead,
    ];
    let key = app.caller().with_key(&app.key(organization, &held).await);
    for role in ["OWNER", "ADMIN", "DEVELOPER"] {
        let reply = key.post("/v1/members", &add(role)).await;
        let error = reply.expect_error(403, "FORBIDDEN");
        assert_eq!(error["details"]["requiredPermission"], "SEND", "{role}");
        let body = json!({ "email": "new@example.com", "role": role });
        key.post("/v1/invitations", &body).await.expect(403);
    }
    let member = key.post("/v1/members", &add("VIEWER")).await.data(201);
    let viewer = format!("/v1/members/{}", member["id"].as_str().unwrap());
    key.patch(&viewer, &json!({ "role": "OWNER" }))
        .await
        .expect(403);
    // Nor does it touch who has more.
    let id = member_id(
        &owner,
        &format!("ADMIN-{organization}@example.com").to_lowercase(),
    )
    .await;
    let other = format!("/v1/members/{id}");
    key.patch(&other, &json!({ "role": "VIEWER" }))
        .await
        .expect(403);
    key.delete(&other).await.expect(403);
    key.delete(&viewer).await.expect(200);
    // A session gives a key no permission that the role lacks.
    let body = json!({ "name": "Key", "permissions": ["MEMBERS_WRITE"] });
    admin.post("/v1/api-keys", &body).await.expect(403);
    let body = json!({ "name": "Key", "permissions": ["OPERATOR"] });
    let reply = owner.post("/v1/api-keys", &body).await;
    reply.expect_issues(400, &["permissions.0"]);
}

#[tokio::test]
async fn members_of_another_organization_do_not_exist() {
    let app = quiet().await;
    let other = app.tenant("Other").await;
    let foreign = app.member(other.organization_id, Role::Owner).await;
    let session = foreign.get("/v1/session").await.data(200);
    let email = session["user"]["email"].as_str().unwrap();
    let path = format!("/v1/members/{}", member_id(&foreign, email).await);
    let owner = app.member(app.organization_id(), Role::Owner).await;
    owner.get(&path).await.expect_error(404, "NOT_FOUND");
    let change = json!({ "role": "VIEWER" });
    owner
        .patch(&path, &change)
        .await
        .expect_error(404, "NOT_FOUND");
    owner.delete(&path).await.expect_error(404, "NOT_FOUND");
    let members = owner.get("/v1/members").await.data(200);
    assert_eq!(members.as_array().unwrap().len(), 1);
}
