//! The operator's commands about users, and the pages of operators.

use serde_json::{Value, json};
use waypost_core::auth::Role;
use waypost_tests::{Caller, PASSWORD, Program, Reply, TestApp};

use super::quiet;

async fn run(app: &TestApp, arguments: &[&str]) -> String {
    let finished = Program::Api.run(arguments, &app.variables).await;
    assert!(finished.success, "{arguments:?}: {finished:?}");
    finished.stdout.trim().to_owned()
}

async fn refused(app: &TestApp, arguments: &[&str]) {
    let finished = Program::Api.run(arguments, &app.variables).await;
    assert!(!finished.success, "{arguments:?}: {finished:?}");
}

/// Accepts what the token of a link offers.
async fn accept(app: &TestApp, link: &str, path: &str, password: &str) -> Reply {
    let (_, token) = link.split_once('#').unwrap();
    let body = json!({ "token": token, "password": password });
    let stranger = app.caller().anonymous().from_page();
    stranger.post(path, &body).await
}

async fn sign_in(app: &TestApp, password: &str) -> Reply {
    let body = json!({ "email": "ada@example.com", "password": password });
    let stranger: Caller = app.caller().anonymous().from_page();
    stranger.post("/v1/session", &body).await
}

#[tokio::test]
async fn the_first_owner_comes_by_a_command() {
    let app = quiet().await;
    let organization = app.organization_id().to_string();
    let create = |role: &'static str| {
        let organization = organization.clone();
        let arguments = ["create-user", "--organization"].map(str::to_owned);
        let mut arguments = arguments.to_vec();
        arguments.extend([organization]);
        let rest = [
            "--email",
            "ada@example.com",
            "--name",
            "Ada",
            "--role",
            role,
            "--operator",
        ];
        arguments.extend(rest.map(str::to_owned));
        arguments
    };
    let owner = create("OWNER");
    let owner: Vec<&str> = owner.iter().map(String::as_str).collect();
    let first = run(&app, &owner).await;
    // A second link replaces the first.
    let link = run(&app, &owner).await;
    assert!(link.contains("/invitation#"), "{link}");
    let path = "/v1/invitations/accept";
    let reply = accept(&app, &first, path, PASSWORD).await;
    reply.expect_error(404, "NOT_FOUND");
    let reply = accept(&app, &link, path, PASSWORD).await;
    let session = reply.data(201);
    assert_eq!(session["role"], "OWNER");
    assert_eq!(session["user"]["isOperator"], true);
    assert_eq!(session["user"]["name"], "Ada");
    let permissions = session["permissions"].as_array().unwrap();
    assert!(permissions.contains(&json!("OPERATOR")), "{session}");
    let listed = run(&app, &["list-users", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(
        listed[0]["memberships"],
        json!([format!("{organization}:OWNER")])
    );
    assert!(run(&app, &["list-users"]).await.contains("ada@example.com"));

    let email = ["--email", "ada@example.com"];
    refused(&app, &["remove-user", email[0], email[1]]).await;
    refused(&app, &["remove-user", "--email", "nobody@example.com"]).await;
    refused(&app, &[&owner[..], &["--role", "BOSS"]].concat()).await;
}

#[tokio::test]
async fn a_link_of_the_operator_sets_a_new_password_once() {
    let app = quiet().await;
    let organization = app.organization_id();
    app.user("ada@example.com", &[(organization, Role::Owner)])
        .await;
    let before = app.sign_in("ada@example.com").await;
    let reset = ["reset-password", "--email", "ada@example.com"];
    let old = run(&app, &reset).await;
    let link = run(&app, &reset).await;
    assert!(link.contains("/reset#"), "{link}");
    let stranger = app.caller().anonymous().from_page();
    let token = link.split_once('#').unwrap().1;
    let body = json!({ "token": token });
    let shown = stranger.post("/v1/password-resets/look-up", &body).await;
    assert_eq!(shown.data(200), json!({ "email": "ada@example.com" }));
    let path = "/v1/password-resets/accept";
    let new = "another good passphrase";
    accept(&app, &old, path, new).await.expect(404);
    accept(&app, &link, path, "short")
        .await
        .expect_issues(400, &["password"]);
    accept(&app, &link, path, new).await.expect(200);
    accept(&app, &link, path, PASSWORD).await.expect(404);
    before.get("/v1/session").await.expect(401);
    sign_in(&app, PASSWORD).await.expect(401);
    sign_in(&app, new).await.expect(201);
    let late = run(&app, &reset).await;
    app.advance(chrono::TimeDelta::days(2));
    accept(&app, &late, path, PASSWORD).await.expect(404);
}

#[tokio::test]
async fn only_operators_see_what_belongs_to_the_installation() {
    let app = quiet().await;
    let organization = app.organization_id();
    let ada = app
        .user("ada@example.com", &[(organization, Role::Viewer)])
        .await;
    app.execute(&format!(
        "UPDATE users SET is_operator = true WHERE id = '{ada}'"
    ))
    .await;
    let operator = app.sign_in("ada@example.com").await;
    let owner = app.member(organization, Role::Owner).await;
    for page in ["tasks", "workers", "queues", "dead-jobs"] {
        let path = format!("/v1/operator/{page}");
        operator.get(&path).await.data(200);
        for caller in [&owner, app.caller()] {
            let error = caller.get(&path).await.expect_error(403, "FORBIDDEN");
            assert_eq!(error["details"]["requiredPermission"], "OPERATOR");
        }
    }
    let queues = operator.get("/v1/operator/queues").await.data(200);
    assert_eq!(queues[0]["name"], "send");
    let id = uuid::Uuid::nil();
    let retry = format!("/v1/operator/dead-jobs/{id}/retry");
    operator
        .post_empty(&retry)
        .await
        .expect_error(404, "NOT_FOUND");
    let drop = format!("/v1/operator/dead-jobs/{id}");
    operator.delete(&drop).await.expect_error(404, "NOT_FOUND");
    owner.post_empty(&retry).await.expect(403);
}
