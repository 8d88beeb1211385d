//! Claims that begin with the attempt: a worker foresees that an organization's next mail
//! goes through the account that took its last.

use std::time::Duration;

use serde_json::json;
use waypost_simulator::Fault;
use waypost_tests::wait_within;

use super::*;

/// How long a provider takes for a call that others come in behind.
const LATE: Fault = Fault {
    provider: Some(FIRST),
    kind: FaultKind::Latency,
    rate: 1.0,
    latency_ms: 1_500,
    calls: FaultCalls::Send,
};

/// Two accounts, and a worker that does one thing at a time.
async fn start() -> Pair {
    let app = TestApp::builder()
        .setting("WAYPOST_WORKER_CONCURRENCY", "1")
        .start()
        .await;
    Pair::with(app, &json!({})).await
}

/// Sends a mail, and waits until its call is under way.
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

/// Whether the open attempt of a message was written by the transaction that claimed it.
async fn began_with_its_claim(app: &TestApp, id: &str) -> bool {
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
async fn a_claim_begins_with_the_attempt_once_the_account_is_known() {
    let pair = start().await;
    let app = &pair.app;
    let first = send_slowly(app, "first@example.org").await;
    assert!(!began_with_its_claim(app, &first).await);
    app.drain().await;
    let second = send_slowly(app, "second@example.org").await;
    assert!(began_with_its_claim(app, &second).await);
    app.drain().await;
    for id in [first, second] {
        assert_eq!(app.events(&id).await, ["QUEUED", "SENT"]);
        assert_eq!(app.outcomes(&id).await, ["ACCEPTED"]);
        assert_eq!(pair.tried(&id).await, [1]);
        assert_eq!(app.recipient(&id).await["attempts"], 1);
    }
}

#[tokio::test]
async fn an_attempt_that_was_foreseen_wrongly_is_withdrawn() {
    let pair = start().await;
    let app = &pair.app;
    learn_and_be_busy(app).await;
    // Accepted for the first account, and claimed when it may not be used any more.
    let id = app.send_to("after@example.org").await;
    let path = format!("/v1/providers/{}", pair.first);
    let change = json!({ "isActive": false });
    app.patch(&path, &change).await.data(200);
    app.drain().await;
    assert_eq!(app.captured_once("after@example.org").provider, SECOND);
    assert_eq!(app.outcomes(&id).await, ["ACCEPTED"]);
    assert_eq!(pair.tried(&id).await, [2]);
    assert_eq!(app.recipient(&id).await["attempts"], 1);
    // Whatever else was written of them is still there.
    let withdrawn =
        "SELECT sum(n_tup_del)::text FROM pg_stat_user_tables WHERE relname LIKE 'send_attempts%'";
    wait_until("an attempt was withdrawn", async || {
        app.value(withdrawn).await.as_deref() == Some("1")
    })
    .await;
}

#[tokio::test]
async fn no_attempt_is_foreseen_for_one_who_was_suppressed_after_acceptance() {
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
async fn an_attempt_whose_claim_was_not_heard_of_is_withdrawn() {
    let app = TestApp::builder()
        .setting("WAYPOST_PROVIDER_TIMEOUT", "1s")
        .setting("WAYPOST_WORKER_LEASE", "6s")
        .start()
        .await;
    app.connect(ProviderType::Mailgun).await;
    app.send_to("before@example.org").await;
    app.drain().await;
    // The claim stands still when it writes the attempt, longer than anybody waits for it.
    let obstacle = app.obstruct_attempts().await;
    let id = app.send_to("ada@example.org").await;
    let given_up = wait_within(Duration::from_secs(30), async || {
        let workers = app.value("SELECT count(*)::text FROM workers").await;
        workers.as_deref() == Some("2")
    })
    .await;
    assert!(given_up, "the worker gives its tenure up");
    // It is committed after all, and nobody has it in hand.
    obstacle.rollback().await.unwrap();
    app.drain_within(Duration::from_secs(30)).await;
    assert_eq!(app.outcomes(&id).await, ["ACCEPTED"]);
    assert_eq!(app.events(&id).await, ["QUEUED", "SENT"]);
    app.captured_once("ada@example.org");
}
