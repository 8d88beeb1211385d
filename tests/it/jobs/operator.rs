//! `waypost-api jobs` and `waypost-api workers`, run as an operator runs them.

use std::collections::HashMap;

use serde_json::{Value, json};
use uuid::Uuid;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Finished, Program, TestApp, message_to};

use super::{is_dead_letter, losses, make_dead_letter, number};

async fn run(variables: &HashMap<String, String>, arguments: &[&str]) -> Finished {
    Program::Api.run(arguments, variables).await
}

async fn succeed(app: &TestApp, arguments: &[&str]) -> String {
    let finished = run(&app.variables, arguments).await;
    assert!(finished.success, "{arguments:?}: {finished:?}");
    finished.stdout
}

async fn listed(app: &TestApp) -> Value {
    serde_json::from_str(&succeed(app, &["jobs", "list", "--json"]).await).unwrap()
}

async fn start() -> TestApp {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    app
}

#[tokio::test]
async fn dead_jobs_are_listed_and_retried() {
    let app = start().await;
    assert_eq!(listed(&app).await, json!({ "deadJobs": [] }));
    let id = app.send_to("a@example.org").await;
    make_dead_letter(&app, &id).await;
    let list = listed(&app).await;
    let dead_job = &list["deadJobs"][0];
    assert_eq!(dead_job["messageId"], json!(id));
    assert_eq!(dead_job["chunk"], 0);
    assert_eq!(dead_job["organizationId"], json!(app.organization_id().0));
    assert_eq!(dead_job["recipients"], 1);
    assert_eq!(dead_job["losses"], 5);
    assert_eq!(dead_job["reason"], "its worker was lost each time");
    assert!(dead_job["deadSince"].is_string());
    let table = succeed(&app, &["jobs", "list"]).await;
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("MESSAGE  "), "{table}");
    assert!(lines[1].starts_with(&id) && lines[1].ends_with("its worker was lost each time"));
    assert!(!table.contains("example.org"), "{table}");
    let retried = succeed(&app, &["jobs", "retry", &id]).await;
    assert_eq!(retried, format!("{id} 0\n"));
    assert_eq!(losses(&app, &id).await.as_deref(), Some("0"));
    app.start_worker();
    app.drain().await;
    app.captured_once("a@example.org");
    assert_eq!(listed(&app).await["deadJobs"], json!([]));
    let entries = app.get("/v1/audit-logs?action=message.requeued").await;
    let entries = entries.data(200);
    assert_eq!(entries[0]["target"], json!({ "type": "message", "id": id }));
    assert_eq!(entries[0]["actor"]["type"], "system");
}

#[tokio::test]
async fn all_dead_jobs_are_retried_at_once_or_one_chunk_of_a_message() {
    let app = start().await;
    let many: Vec<String> = (0..150).map(|nth| format!("r{nth}@example.org")).collect();
    let mut message = message_to("r0@example.org");
    message["to"] = json!(many);
    let two = app.send(&message).await;
    let one = app.send_to("a@example.org").await;
    app.execute("UPDATE outbox SET losses = 5, dead_at = now(), dead_reason = 'a reason'")
        .await;
    assert_eq!(listed(&app).await["deadJobs"].as_array().unwrap().len(), 3);
    let retried = succeed(&app, &["jobs", "retry", &two, "--chunk", "1"]).await;
    assert_eq!(retried, format!("{two} 1\n"));
    app.start_worker();
    app.drain().await;
    assert_eq!(app.simulator().captured_count(), 50);
    let retried = succeed(&app, &["jobs", "retry", "--all"]).await;
    assert_eq!(retried.lines().count(), 2, "{retried}");
    assert!(retried.contains(&one), "{retried}");
    app.drain().await;
    assert_eq!(app.simulator().captured_count(), 151);
    assert_eq!(succeed(&app, &["jobs", "retry", "--all"]).await, "");
}

#[tokio::test]
async fn a_dropped_job_fails_its_unsent_recipients_with_a_reason() {
    let app = start().await;
    let id = app
        .send(&json!({
            "from": "sender@example.com", "subject": "Three", "text": "Text",
            "to": ["sent@example.org", "waiting@example.org", "unknown@example.org"],
        }))
        .await;
    let other = app.send_to("b@example.org").await;
    app.execute(&format!(
        "UPDATE recipients SET status = 'SENT', sent_at = now() WHERE message_id = '{id}' AND position = 0;
         UPDATE recipients SET status = 'SENDING', unknowns = 1 WHERE message_id = '{id}' AND position = 2;
         INSERT INTO send_attempts (message_id, id, organization_id, position, provider_account_id, started_at)
         SELECT id, gen_random_uuid(), organization_id, 2, provider_account_id, now()
         FROM messages WHERE id = '{id}'"
    ))
    .await;
    app.execute("UPDATE outbox SET losses = 5, dead_at = now(), dead_reason = 'a reason'")
        .await;
    let dropped = succeed(&app, &["jobs", "drop", &id, &other]).await;
    assert_eq!(
        dropped,
        format!("{id} 0: 2 recipients\n{other} 0: 1 recipients\n")
    );
    assert!(app.outbox().await.is_empty());
    assert_eq!(app.status(&id).await, "SENT");
    assert_eq!(app.status(&other).await, "FAILED");
    let recipients = app.recipients(&id).await;
    let statuses: Vec<&Value> = recipients.iter().map(|r| &r["status"]).collect();
    assert_eq!(statuses, ["SENT", "FAILED", "FAILED"]);
    assert_eq!(recipients[1]["lastError"], "dropped by the operator");
    assert_eq!(app.events(&other).await, ["QUEUED", "DROPPED"]);
    assert_eq!(app.outcomes(&id).await, ["UNKNOWN"]);
    let entries = app.get("/v1/audit-logs?action=message.dropped").await;
    let entries = entries.data(200);
    assert_eq!(entries.as_array().unwrap().len(), 2);
    assert_eq!(entries[0]["actor"]["type"], "system");
    let of_first = entries
        .as_array()
        .unwrap()
        .iter()
        .find(|e| e["target"]["id"] == json!(id));
    assert_eq!(
        of_first.unwrap()["metadata"],
        json!({ "chunk": 0, "recipients": 2 })
    );
}

#[tokio::test]
async fn a_command_without_a_target_says_why() {
    let app = start().await;
    let (nobody, id) = (Uuid::nil().to_string(), app.send_to("a@example.org").await);
    for (arguments, words) in [
        (vec!["jobs", "retry", &nobody], "does not exist"),
        (vec!["jobs", "drop", &nobody], "does not exist"),
        (vec!["jobs", "retry", &id], "has no dead jobs"),
        (
            vec!["jobs", "drop", &id, "--chunk", "3"],
            "chunk 3 of message",
        ),
        (vec!["jobs", "retry", "no-id"], "invalid value 'no-id'"),
        (vec!["jobs", "retry"], "required"),
        (vec!["jobs", "retry", &id, "--all"], "cannot be used"),
        (vec!["jobs", "drop"], "required"),
        (vec!["jobs"], "Usage"),
    ] {
        let finished = run(&app.variables, &arguments).await;
        assert!(!finished.success, "{arguments:?}: {finished:?}");
        assert!(finished.stdout.is_empty(), "{arguments:?}: {finished:?}");
        assert!(
            finished.stderr.contains(words),
            "{arguments:?}: {finished:?}"
        );
    }
    assert_eq!(app.status(&id).await, "QUEUED");
    app.leave_work();
}

#[tokio::test]
async fn the_commands_work_while_redis_is_down_and_say_so() {
    let app = start().await;
    let id = app.send_to("a@example.org").await;
    make_dead_letter(&app, &id).await;
    let mut away = app.variables.clone();
    away.insert("REDIS_URL".to_owned(), "redis://127.0.0.1:1".to_owned());
    let finished = run(&away, &["jobs", "list", "--json"]).await;
    assert!(finished.success, "{finished:?}");
    assert!(finished.stderr.is_empty(), "{finished:?}");
    let list: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(list["deadJobs"][0]["messageId"], json!(id));
    let finished = run(&away, &["jobs", "retry", &id]).await;
    assert!(finished.success, "{finished:?}");
    assert!(finished.stderr.contains("Redis"), "{finished:?}");
    assert!(!is_dead_letter(&app, &id).await);
    app.start_worker();
    // The command uses the machine's clock, not the test's.
    app.advance(chrono::TimeDelta::minutes(1));
    app.drain().await;
    app.captured_once("a@example.org");
}

#[tokio::test]
async fn workers_are_listed_with_their_leases() {
    let app = start().await;
    let id = app.send_to("a@example.org").await;
    app.execute(&format!(
        "INSERT INTO workers VALUES (gen_random_uuid(), 'worker-alive', now(), now() + interval '1 hour');
         UPDATE outbox SET leased_by = (SELECT id FROM workers) WHERE message_id = '{id}'"
    ))
    .await;
    let list: Value = serde_json::from_str(&succeed(&app, &["workers", "--json"]).await).unwrap();
    assert_eq!(list[0]["name"], "worker-alive");
    assert_eq!(list[0]["isDead"], false);
    assert_eq!(list[0]["chunks"], 1);
    let table = succeed(&app, &["workers"]).await;
    assert!(table.contains("worker-alive  alive"), "{table}");
    assert_eq!(number(&app, "SELECT count(*) FROM workers").await, 1);
    app.execute("UPDATE outbox SET leased_by = NULL").await;
    app.leave_work();
}
