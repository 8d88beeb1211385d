//! The limiters of accounts during sends: a failing account gets few calls, a slow one
//! gets no more than it allows, and waiting recipients show the reason.

use chrono::TimeDelta;
use serde_json::json;
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{Fault, FaultKind};
use waypost_tests::{AppBuilder, TestApp, wait_until, wait_within};

use super::{FIRST, Pair, SECOND, fault};

/// Calls that may be in progress when a circuit opens, and so are additional.
const CALLS: i64 = 4;
/// The smallest number of failures that opens a circuit.
const FAILURES: i64 = 5;

fn builder() -> AppBuilder {
    TestApp::builder().setting("WAYPOST_WORKER_CONCURRENCY", &CALLS.to_string())
}

fn address(nth: usize) -> String {
    format!("r{nth}@example.org")
}

async fn send_all(app: &TestApp, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for nth in 0..count {
        ids.push(app.send_to(&address(nth)).await);
    }
    ids
}

async fn number(app: &TestApp, query: &str) -> i64 {
    app.value(query).await.unwrap().parse().unwrap()
}

async fn calls_of(app: &TestApp, account: &str) -> i64 {
    let calls = "SELECT count(*) FROM send_attempts WHERE provider_account_id";
    number(app, &format!("{calls} = '{account}'")).await
}

/// Moves the clock until no work is left.
async fn advance_until_sent(app: &TestApp, count: usize) {
    wait_until("all are sent", async || {
        app.advance_and_drain(TimeDelta::minutes(2)).await;
        app.outbox().await.is_empty()
    })
    .await;
    for nth in 0..count {
        app.captured_once(&address(nth));
    }
}

#[tokio::test]
async fn a_failing_account_gets_few_calls_and_waiting_recipients_show_the_reason() {
    let app = builder().start().await;
    let account = app.connect(ProviderType::Mailgun).await;
    app.simulator().set_fault(fault(FIRST, FaultKind::Error));
    let ids = send_all(&app, 60).await;
    app.drain().await;
    let calls = calls_of(&app, &account).await;
    assert!((FAILURES..=FAILURES + CALLS).contains(&calls), "{calls}");
    let mut waiting = 0;
    for id in &ids {
        let recipient = app.recipient(id).await;
        if app.outcomes(id).await.is_empty() {
            waiting += 1;
            assert_eq!(recipient["status"], "QUEUED");
            assert_eq!(recipient["attempts"], 0);
            let error = "waiting: the circuit of its account is open";
            assert_eq!(recipient["lastError"], error);
            assert_eq!(app.events(id).await, ["QUEUED"]);
        }
    }
    assert_eq!(waiting, 60 - calls);
    app.simulator().clear_faults();
    advance_until_sent(&app, 60).await;
}

#[tokio::test]
async fn an_account_with_an_open_circuit_is_skipped() {
    let pair = Pair::with(builder().start().await, &json!({})).await;
    let app = &pair.app;
    app.simulator().set_fault(fault(FIRST, FaultKind::Error));
    let ids = send_all(app, 60).await;
    app.drain().await;
    for (nth, id) in ids.iter().enumerate() {
        assert_eq!(app.captured_once(&address(nth)).provider, SECOND);
        assert_eq!(app.status(id).await, "SENT");
    }
    let calls = calls_of(app, &pair.first).await;
    assert!((FAILURES..=FAILURES + CALLS).contains(&calls), "{calls}");
    assert_eq!(calls_of(app, &pair.second).await, 60);
    let deferred = "SELECT count(*) FROM events WHERE event_type = 'DEFERRED'";
    assert_eq!(number(app, deferred).await, calls, "one for each answer");
}

#[tokio::test]
async fn with_all_circuits_open_messages_wait_and_are_sent_when_one_account_is_back() {
    let pair = Pair::with(builder().start().await, &json!({})).await;
    let app = &pair.app;
    app.simulator().set_fault(fault(FIRST, FaultKind::Error));
    app.simulator().set_fault(fault(SECOND, FaultKind::Error));
    send_all(app, 60).await;
    app.drain().await;
    for account in [&pair.first, &pair.second] {
        let calls = calls_of(app, account).await;
        assert!((FAILURES..=FAILURES + CALLS).contains(&calls), "{calls}");
    }
    let waiting = "SELECT count(*) FROM recipients
                   WHERE status = 'QUEUED' AND last_error = 'waiting: the circuit of its account is open'";
    assert!(number(app, waiting).await >= 60 - 2 * (FAILURES + CALLS));
    app.simulator().clear_faults();
    app.simulator().set_fault(fault(FIRST, FaultKind::Error));
    advance_until_sent(app, 60).await;
    for nth in 0..60 {
        assert_eq!(app.captured_once(&address(nth)).provider, SECOND);
    }
}

#[tokio::test]
async fn a_provider_that_requests_a_pause_gets_no_calls() {
    let app = builder().start().await;
    let account = app.connect(ProviderType::Mailgun).await;
    app.simulator().set_fault(fault(FIRST, FaultKind::Throttle));
    send_all(&app, 40).await;
    app.drain().await;
    let calls = calls_of(&app, &account).await;
    assert!((1..=CALLS).contains(&calls), "{calls}");
    let deferred = "SELECT count(*) FROM events WHERE event_type = 'DEFERRED'";
    assert_eq!(number(&app, deferred).await, calls, "one for each answer");
    let waiting = "SELECT count(*) FROM recipients
                   WHERE last_error = 'waiting: the provider of its account asked for a pause'";
    assert_eq!(number(&app, waiting).await, 40 - calls);
    let used = "SELECT sum(attempts) FROM recipients";
    assert_eq!(number(&app, used).await, 0);
    app.simulator().clear_faults();
    advance_until_sent(&app, 40).await;
}

#[tokio::test]
async fn messages_for_an_account_that_never_recovers_fail_after_a_day() {
    let app = builder().start().await;
    app.connect(ProviderType::Mailgun).await;
    app.simulator().set_fault(fault(FIRST, FaultKind::Error));
    let ids = send_all(&app, 30).await;
    app.drain().await;
    app.advance_and_drain(TimeDelta::hours(23)).await;
    let failed = "SELECT count(*) FROM recipients WHERE status = 'FAILED'";
    assert_eq!(number(&app, failed).await, 0);
    app.advance_and_drain(TimeDelta::hours(2)).await;
    app.advance_and_drain(TimeDelta::hours(2)).await;
    assert_eq!(number(&app, failed).await, 30);
    for id in &ids {
        let error = app.recipient(id).await["lastError"].clone();
        let error = error.as_str().unwrap_or_default().to_owned();
        assert!(error.starts_with("retries are used up: "), "{error}");
        assert_eq!(app.events(id).await.last().unwrap(), "DROPPED");
    }
    let spared = "SELECT count(*) FROM recipients
                  WHERE last_error = 'retries are used up: the circuit of its account is open'";
    assert!(number(&app, spared).await > 0);
    assert!(app.outbox().await.is_empty());
}

#[tokio::test]
async fn an_account_limited_to_one_call_never_has_two_and_its_messages_go_nowhere_else() {
    let app = TestApp::builder().processes().private_redis().start().await;
    let _others = (app.spawn_api().await, app.spawn_scheduler());
    let pair = Pair::with(app, &json!({})).await;
    let app = &pair.app;
    let path = format!("/v1/providers/{}", pair.first);
    let limits = json!({ "maxConcurrency": 1 });
    app.patch(&path, &limits).await.data(200);
    app.simulator().set_fault(Fault {
        provider: Some(FIRST),
        ..Fault::slow_sends(150)
    });
    send_all(app, 20).await;
    let _workers = [app.spawn_worker(), app.spawn_worker()];
    let finished = wait_within(std::time::Duration::from_secs(60), async || {
        app.outbox().await.is_empty()
    });
    assert!(finished.await, "work is left");
    for nth in 0..20 {
        assert_eq!(app.captured_once(&address(nth)).provider, FIRST);
    }
    // A call ends a moment before its end is recorded.
    let together = "SELECT count(*)
                    FROM send_attempts one
                    JOIN send_attempts other ON one.id < other.id
                    WHERE one.started_at < other.finished_at - interval '50 ms'
                      AND other.started_at < one.finished_at - interval '50 ms'";
    assert_eq!(number(app, together).await, 0);
}
