//! Leases with a prewritten attempt: a worker predicts that an organization's next
//! message goes to the account that accepted its last one.

use std::time::Duration;

use serde_json::json;
use waypost_simulator::Fault;
use waypost_tests::wait_within;

use super::*;

/// The response time during which other messages arrive.
const LATE: Fault = Fault {
    provider: Some(FIRST),
    kind: FaultKind::Latency,
    rate: 1.0,
    latency_ms: 1_500,
    calls: FaultCalls::Send,
};

/// Two accounts, and a worker with a concurrency of one.
async fn start() -> Pair {
    let app = TestApp::builder()
        .setting("WAYPOST_WORKER_CONCURRENCY", "1")
        .start()
        .await;
    Pair::with(app, &json!({})).await
}

/// Sends a message, and waits until its call is in progress.
async fn send_slowly(app: &TestApp, to: &str) -> String {
    app.simulator().set_fault(LATE);
    let id = app.send_to(to).await;
    let open = format!(
        "SELECT count(*)::text FROM send_attempts WHERE message_id = '{id}' AND outcome IS NULL"
    );
    wait_until("the call is under way", async || {
        app.value(&open).await.as_deref() == Some("1")
    })
    .await;
    id
}

/// Lets the worker learn the account, and keeps it busy for a while.
async fn learn_and_be_busy(app: &TestApp) {
    app.send_to("before@example.org").await;
    app.drain().await;
    send_slowly(app, "slow@example.org").await;
}

/// Whether the transaction of the lease wrote the message's open attempt.
async fn was_written_by_its_lease(app: &TestApp, id: &str) -> bool {
    let query = format!(
        "SELECT (a.xmin = o.xmin)::text
         FROM send_attempts a
         JOIN outbox o ON o.message_id = a.message_id
         WHERE a.message_id = '{id}' AND a.outcome IS NULL"
    );
    let same = app.value(&query).await;
    same.expect("one attempt is open") == "true"
}

#[tokio::test]
async fn a_lease_writes_the_attempt_once_the_account_is_predicted() {
    let pair = start().await;
    let app = &pair.app;
    let first = send_slowly(app, "first@example.org").await;
    assert!(!was_written_by_its_lease(app, &first).await);
    app.drain().await;
    let second = send_slowly(app, "second@example.org").await;
    assert!(was_written_by_its_lease(app, &second).await);
    app.drain().await;
    for id in [first, second] {
        assert_eq!(app.events(&id).await, ["QUEUED", "SENT"]);
        assert_eq!(app.outcomes(&id).await, ["ACCEPTED"]);
        assert_eq!(pair.accounts_called(&id).await, [1]);
        assert_eq!(app.recipient(&id).await["attempts"], 1);
    }
}

#[tokio::test]
async fn a_wrongly_predicted_attempt_is_withdrawn() {
    let pair = start().await;
    let app = &pair.app;
    learn_and_be_busy(app).await;
    // Accepted for the first account, and leased when that may not be used any more.
    let id = app.send_to("after@example.org").await;
    let path = format!("/v1/providers/{}", pair.first);
    let change = json!({ "isActive": false });
    app.patch(&path, &change).await.data(200);
    app.drain().await;
    assert_eq!(app.captured_once("after@example.org").provider, SECOND);
    assert_eq!(app.outcomes(&id).await, ["ACCEPTED"]);
    assert_eq!(pair.accounts_called(&id).await, [2]);
    assert_eq!(app.recipient(&id).await["attempts"], 1);
    // The other rows of the statement are still there.
    let withdrawn =
        "SELECT sum(n_tup_del)::text FROM pg_stat_user_tables WHERE relname LIKE 'send_attempts%'";
    wait_until("an attempt was withdrawn", async || {
        app.value(withdrawn).await.as_deref() == Some("1")
    })
    .await;
}

#[tokio::test]
async fn no_attempt_is_prewritten_for_a_recipient_suppressed_after_acceptance() {
    let pair = start().await;
    let app = &pair.app;
    learn_and_be_busy(app).await;
    let id = app.send_to("gone@example.org").await;
    let suppression = json!({ "email": "gone@example.org" });
    app.post("/v1/suppressions", &suppression).await.data(201);
    app.drain().await;
    assert!(app.captured("gone@example.org").is_empty());
    assert!(app.outcomes(&id).await.is_empty());
    assert_eq!(app.events(&id).await, ["QUEUED", "DROPPED"]);
}

#[tokio::test]
async fn a_prewritten_attempt_of_a_lost_lease_is_withdrawn() {
    let app = TestApp::builder()
        .setting("WAYPOST_PROVIDER_TIMEOUT", "1s")
        .setting("WAYPOST_WORKER_LEASE", "6s")
        .start()
        .await;
    app.connect(ProviderType::Mailgun).await;
    app.send_to("before@example.org").await;
    app.drain().await;
    // The lease blocks while it writes the attempt, longer than the worker waits for it.
    let obstacle = app.block_attempts().await;
    let id = app.send_to("ada@example.org").await;
    let has_new_epoch = wait_within(Duration::from_secs(30), async || {
        let workers = app.value("SELECT count(*)::text FROM workers").await;
        workers.as_deref() == Some("2")
    })
    .await;
    assert!(has_new_epoch, "the worker begins another lease epoch");
    // It is committed nevertheless, and no worker has it.
    obstacle.rollback().await.unwrap();
    app.drain_within(Duration::from_secs(30)).await;
    assert_eq!(app.outcomes(&id).await, ["ACCEPTED"]);
    assert_eq!(app.events(&id).await, ["QUEUED", "SENT"]);
    app.captured_once("ada@example.org");
}
