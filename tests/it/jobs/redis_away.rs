//! Redis is down. Messages are accepted at once and are sent within seconds. Processes
//! and time are real.

use std::time::{Duration, Instant};

use waypost_core::provider::kind::ProviderType;
use waypost_simulator::Fault;
use waypost_tests::{TestApp, wait_until, wait_within};

use super::number;

/// The documented bound while Redis refuses connections.
const SENT_WITHIN: Duration = Duration::from_secs(5);
/// The documented bound while Redis accepts connections and does not respond.
const SENT_WITHIN_HANG: Duration = Duration::from_secs(15);

fn address(number: usize) -> String {
    format!("r{number}@example.org")
}

async fn start() -> TestApp {
    // Only the fallback poller is fast: the relay is slow, and needs Redis.
    let builder = TestApp::builder().processes().private_redis();
    builder.setting("WAYPOST_RELAY_GRACE", "15s").start().await
}

/// Sends, and returns the longest response time.
async fn send_all(app: &TestApp, numbers: std::ops::Range<usize>) -> Duration {
    let mut slowest = Duration::ZERO;
    for number in numbers {
        let since = Instant::now();
        app.send_to(&address(number)).await;
        slowest = slowest.max(since.elapsed());
    }
    slowest
}

async fn all_arrive(app: &TestApp, count: u64, bound: Duration) {
    let since = Instant::now();
    let arrived = wait_within(bound, async || app.simulator().captured_count() >= count).await;
    let got = app.simulator().captured_count();
    assert!(arrived, "{got} of {count} within {bound:?}");
    println!("{count} had arrived {:?} later", since.elapsed());
}

#[tokio::test]
async fn messages_are_sent_while_redis_is_down_and_through_redis_again_when_it_is_back() {
    let mut app = start().await;
    let _others = (app.spawn_api().await, app.spawn_scheduler());
    let mut worker = app.spawn_worker();
    app.connect(ProviderType::Sendgrid).await;
    send_all(&app, 0..3).await;
    all_arrive(&app, 3, Duration::from_secs(20)).await;
    app.redis.as_mut().unwrap().stop().await;
    let slowest = send_all(&app, 3..23).await;
    println!("the slowest send took {slowest:?}");
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    all_arrive(&app, 23, SENT_WITHIN).await;
    // A retry that becomes due is found too, and so is the work of a worker that started
    // without Redis.
    let flaky = app.send_to("flaky@example.org").await;
    let done = ["UNAVAILABLE", "ACCEPTED"];
    let is_sent = wait_within(SENT_WITHIN, async || app.outcomes(&flaky).await == done).await;
    assert!(is_sent, "{:?}", app.outcomes(&flaky).await);
    app.captured_once("flaky@example.org");
    let _second = app.spawn_worker();
    let status = worker.terminate().await;
    assert!(status.success(), "{status}");
    send_all(&app, 23..28).await;
    all_arrive(&app, 29, SENT_WITHIN).await;
    app.redis.as_mut().unwrap().resume().await;
    send_all(&app, 28..60).await;
    wait_until("all is sent", async || app.outbox().await.is_empty()).await;
    for number in 0..60 {
        app.captured_once(&address(number));
    }
    assert_eq!(number(&app, "SELECT count(*) FROM send_attempts").await, 62);
    assert!(!worker.log().contains("panicked"));
}

#[tokio::test]
async fn messages_are_sent_while_redis_hangs() {
    let app = start().await;
    let _others = (app.spawn_api().await, app.spawn_scheduler());
    let mut worker = app.spawn_worker();
    app.connect(ProviderType::Sendgrid).await;
    send_all(&app, 0..3).await;
    all_arrive(&app, 3, Duration::from_secs(20)).await;
    app.redis.as_ref().unwrap().stall().await;
    let slowest = send_all(&app, 3..23).await;
    println!("the slowest send took {slowest:?}");
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    all_arrive(&app, 23, SENT_WITHIN_HANG).await;
    app.redis.as_ref().unwrap().wake().await;
    send_all(&app, 23..30).await;
    wait_until("all is sent", async || app.outbox().await.is_empty()).await;
    for number in 0..30 {
        app.captured_once(&address(number));
    }
    assert_eq!(number(&app, "SELECT count(*) FROM send_attempts").await, 30);
    let status = worker.terminate().await;
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn a_terminated_worker_finishes_its_polled_jobs() {
    let mut app = start().await;
    let (_api, _scheduler) = (app.spawn_api().await, app.spawn_scheduler());
    app.connect(ProviderType::Sendgrid).await;
    app.redis.as_mut().unwrap().stop().await;
    let mut worker = app.spawn_worker();
    app.simulator().set_fault(Fault::slow_sends(1_000));
    send_all(&app, 0..10).await;
    wait_until("calls are open", async || {
        number(
            &app,
            "SELECT count(*) FROM send_attempts WHERE outcome IS NULL",
        )
        .await
            > 0
    })
    .await;
    let status = worker.terminate().await;
    assert!(status.success(), "{status}");
    let not_taken = "SELECT count(*) FROM send_attempts WHERE outcome IS DISTINCT FROM 'ACCEPTED'";
    assert_eq!(number(&app, not_taken).await, 0);
    assert_eq!(number(&app, "SELECT count(*) FROM workers").await, 0);
    app.simulator().clear_faults();
    let _second = app.spawn_worker();
    wait_until("all is sent", async || app.outbox().await.is_empty()).await;
    for number in 0..10 {
        app.captured_once(&address(number));
    }
}
