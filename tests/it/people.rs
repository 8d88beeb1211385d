//! People: signing in, sessions, the second factor, members, invitations and the operator's
//! commands and pages.

mod cross_origin;
mod guessing;
mod invitations;
mod members;
mod oidc;
mod operators;
mod roles;
mod second_factor;
mod sessions;
mod sign_in;

use waypost_tests::TestApp;

/// A Waypost without a worker and a scheduler.
pub(crate) async fn quiet() -> TestApp {
    TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await
}

/// The audit log's actions of the organization, newest first, each with the type of its actor.
pub(crate) async fn actions(app: &TestApp) -> Vec<String> {
    let entries = app.get("/v1/audit-logs?limit=100").await.data(200);
    let entries = entries.as_array().unwrap().iter();
    entries
        .map(|entry| {
            let (action, actor) = (&entry["action"], &entry["actor"]["type"]);
            format!("{} {}", action.as_str().unwrap(), actor.as_str().unwrap())
        })
        .collect()
}
