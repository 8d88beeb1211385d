//! Creating, listing, showing and revoking organizations, API keys and users.

use serde_json::{Value, json};
use waypost_core::auth::Role;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Program, TestApp, wait_until};

use super::{run, succeed};

async fn json(app: &TestApp, arguments: &[&str]) -> Value {
    let text = succeed(app, &[arguments, &["--json"]].concat()).await;
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
}

/// How often the audit log of an organization has an action of a command.
async fn audited(app: &TestApp, organization: &str, action: &str) -> String {
    let query = format!(
        "SELECT count(*) FROM audit_logs
         WHERE organization_id = '{organization}' AND action = '{action}'
           AND actor_type = 'system' AND request_id LIKE 'waypost-api %'"
    );
    app.value(&query).await.unwrap()
}

#[tokio::test]
async fn without_a_command_it_says_how_to_begin_and_what_is_missing() {
    let nothing = std::collections::HashMap::new();
    let finished = Program::Api.run(&[], &nothing).await;
    assert!(
        !finished.success && finished.stdout.is_empty(),
        "{finished:?}"
    );
    for part in [
        "waypost-api serve",
        "waypost-worker",
        "DATABASE_URL is required",
        "WAYPOST_ENCRYPTION_KEYS is required",
        "--help",
    ] {
        assert!(finished.stderr.contains(part), "{part}: {finished:?}");
    }
    let app = TestApp::builder().without_worker().start().await;
    let finished = run(&app, &[]).await;
    assert!(
        finished.stderr.contains("They are complete"),
        "{finished:?}"
    );
}

#[tokio::test]
async fn an_api_key_is_created_listed_shown_and_revoked() {
    let app = TestApp::builder().without_worker().start().await;
    let organization = json(&app, &["create-organization", "--name", "Second"]).await;
    let id = organization["id"].as_str().unwrap();
    assert_eq!(audited(&app, id, "organization.created").await, "1");
    let of = ["--organization", id];
    let create = [
        &["create-api-key", "--name", "First", "--permission", "SEND"],
        &of[..],
    ]
    .concat();
    let key = json(&app, &create).await;
    assert_eq!(key["permissions"], json!(["SEND"]));
    assert_eq!(audited(&app, id, "api_key.created").await, "1");
    let caller = app.caller().with_key(key["key"].as_str().unwrap());
    caller
        .post("/v1/send", &json!({}))
        .await
        .expect_error(400, "VALIDATION_ERROR");

    let listed = json(&app, &[&["list-api-keys"], &of[..]].concat()).await;
    assert_eq!(listed[0]["id"], key["id"]);
    assert_eq!(listed[0]["state"], "valid");
    assert_eq!(listed[0].get("key"), None);
    let this = [&of[..], &["--key", key["id"].as_str().unwrap()]].concat();
    let show = [&["show-api-key"], &this[..]].concat();
    assert_eq!(json(&app, &show).await["name"], "First");

    let revoke = [&["revoke-api-key"], &this[..]].concat();
    assert_eq!(json(&app, &revoke).await["state"], "revoked");
    assert_eq!(json(&app, &revoke).await["state"], "revoked");
    assert_eq!(audited(&app, id, "api_key.revoked").await, "1");
    wait_until("the key is refused", async || {
        app.advance(chrono::TimeDelta::seconds(1));
        caller.post("/v1/send", &json!({})).await.status == 401
    })
    .await;
    assert!(succeed(&app, &show).await.contains("revoked"));
}

#[tokio::test]
async fn a_revoked_organization_has_no_access_and_its_accepted_mail_is_sent() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = app.organization_id().to_string();
    let member = app.member(app.organization_id(), Role::Owner).await;
    succeed(
        &app,
        &[
            "create-user",
            "--organization",
            &id,
            "--email",
            "invited@example.com",
            "--role",
            "VIEWER",
        ],
    )
    .await;
    app.send_to("a@example.org").await;
    let other = app.tenant("Other").await;

    let listed = json(&app, &["list-organizations"]).await;
    assert_eq!(listed.as_array().unwrap().len(), 2);
    let show = ["show-organization", "--organization", &id];
    let shown = json(&app, &show).await;
    assert_eq!(
        (&shown["apiKeys"], &shown["members"], &shown["jobs"]),
        (&json!(1), &json!(1), &json!(1))
    );

    let revoked = json(&app, &["revoke-organization", "--organization", &id]).await;
    let expected = json!({ "apiKeys": 1, "members": 1, "invitations": 1 });
    assert_eq!(revoked["revoked"], expected);
    for (action, count) in [
        ("organization.revoked", "1"),
        ("api_key.revoked", "1"),
        ("member.deleted", "1"),
        ("invitation.created", "1"),
        ("invitation.deleted", "1"),
    ] {
        assert_eq!(audited(&app, &id, action).await, count, "{action}");
    }
    wait_until("key and session are refused", async || {
        app.advance(chrono::TimeDelta::seconds(1));
        app.get("/v1/messages").await.status == 401
            && member.get("/v1/messages").await.status == 401
    })
    .await;
    other.caller.get("/v1/messages").await.expect(200);
    assert_eq!(json(&app, &show).await["apiKeys"], 0);
    app.start_worker();
    app.drain().await;
    app.captured_once("a@example.org");
}

#[tokio::test]
async fn a_user_is_created_shown_and_removed_and_the_audit_log_tells_it() {
    let app = TestApp::builder().without_worker().start().await;
    let id = app.organization_id().to_string();
    let first = "first@example.com";
    app.user(first, &[]).await;
    let create = [
        "create-user",
        "--organization",
        &id,
        "--email",
        first,
        "--role",
        "DEVELOPER",
    ];
    let created = json(&app, &create).await;
    assert!(created["link"].as_str().unwrap().contains("/reset#"));
    assert_eq!(audited(&app, &id, "member.created").await, "1");
    assert_eq!(audited(&app, &id, "user.reset_created").await, "1");

    let shown = json(&app, &["show-user", "--email", first]).await;
    assert_eq!(shown["memberships"], json!([format!("{id}:DEVELOPER")]));
    assert!(
        succeed(&app, &["show-user", "--email", first])
            .await
            .contains(first)
    );
    let reset = [
        "reset-password",
        "--email",
        first,
        "--without-second-factor",
    ];
    assert!(json(&app, &reset).await["link"].is_string());
    assert_eq!(audited(&app, &id, "user.totp_disabled").await, "1");

    let removed = json(&app, &["remove-user", "--email", first]).await;
    assert_eq!(removed["removed"], true);
    assert_eq!(audited(&app, &id, "member.deleted").await, "1");
    let finished = run(&app, &["show-user", "--email", first]).await;
    assert!(
        !finished.success && finished.stderr.contains("list-users"),
        "{finished:?}"
    );
}

#[tokio::test]
async fn every_command_prints_json() {
    let app = TestApp::start().await;
    for arguments in [
        &["migrate"][..],
        &["list-organizations"],
        &["list-users"],
        &["jobs", "list"],
        &["workers"],
        &["rotate-keys"],
        &["config"],
        &["openapi"],
    ] {
        json(&app, arguments).await;
    }
}

#[tokio::test]
async fn a_command_on_something_unknown_says_where_to_look() {
    let app = TestApp::builder().without_worker().start().await;
    let nobody = uuid::Uuid::nil().to_string();
    let id = app.organization_id().to_string();
    for (arguments, hint) in [
        (
            &["show-organization", "--organization", &nobody][..],
            "list-organizations",
        ),
        (
            &["revoke-organization", "--organization", &nobody],
            "list-organizations",
        ),
        (
            &["list-api-keys", "--organization", &nobody],
            "list-organizations",
        ),
        (
            &["show-api-key", "--organization", &id, "--key", &nobody],
            "list-api-keys",
        ),
        (
            &["revoke-api-key", "--organization", &id, "--key", &nobody],
            "list-api-keys",
        ),
        (&["show-user", "--email", "x@example.com"], "list-users"),
        (&["remove-user", "--email", "x@example.com"], "list-users"),
    ] {
        let finished = run(&app, arguments).await;
        assert!(!finished.success, "{arguments:?}: {finished:?}");
        assert!(finished.stdout.is_empty(), "{arguments:?}: {finished:?}");
        assert!(
            finished.stderr.contains(hint),
            "{arguments:?}: {finished:?}"
        );
    }
}
