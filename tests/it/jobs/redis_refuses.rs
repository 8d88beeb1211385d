//! Redis responds and refuses writes: it is full, became a replica, cannot save, or no
//! longer accepts the credentials. That counts as down: messages are sent within the same
//! bound, and the health checks report the reason. Processes and time are real.

use std::time::{Duration, Instant};

use serde_json::json;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Program, Refusal, TestApp, wait_until, wait_within};

use super::number;

/// The documented bound while Redis is down.
const SENT_WITHIN: Duration = Duration::from_secs(5);
/// Messages per round.
const ROUND: usize = 10;

async fn send_round(app: &TestApp, round: usize) {
    for number in 0..ROUND {
        let since = Instant::now();
        app.send_to(&format!("m{round}-{number}@example.org")).await;
        let took = since.elapsed();
        assert!(took < Duration::from_secs(1), "{took:?}");
    }
}

async fn arrive(app: &TestApp, what: &str, count: usize, bound: Duration) {
    let count = u64::try_from(count).unwrap();
    let arrived = wait_within(bound, async || app.simulator().captured_count() >= count).await;
    let got = app.simulator().captured_count();
    assert!(arrived, "{what}: {got} of {count} within {bound:?}");
}

async fn readiness(app: &TestApp) -> (u16, serde_json::Value) {
    let reply = app.caller().anonymous().get("/readyz").await;
    (reply.status, reply.json())
}

#[tokio::test]
async fn messages_are_sent_while_redis_refuses_writes_and_health_reports_it() {
    let builder = TestApp::builder().processes().private_redis();
    // Only the fallback poller is fast: the relay is slow.
    let app = builder.setting("WAYPOST_RELAY_GRACE", "15s").start().await;
    let _others = (app.spawn_api().await, app.spawn_scheduler());
    let mut worker = app.spawn_worker();
    let account = app.connect(ProviderType::Sendgrid).await;
    // Its calls need Redis' count of the calls in progress.
    let limits = json!({ "maxRatePerSecond": 1_000, "maxConcurrency": 50 });
    let limited = app
        .patch(&format!("/v1/providers/{account}"), &limits)
        .await;
    limited.expect(200);
    send_round(&app, 0).await;
    arrive(&app, "before", ROUND, Duration::from_secs(20)).await;
    let redis = app.redis.as_ref().unwrap();
    let mut rounds = 1;
    for refusal in Refusal::ALL {
        redis.refuse(refusal).await;
        send_round(&app, rounds).await;
        rounds += 1;
        let what = format!("{refusal:?}");
        arrive(&app, &what, rounds * ROUND, SENT_WITHIN).await;
        let (status, body) = readiness(&app).await;
        let state = format!("refuses writes: {}", refusal.code());
        assert_eq!((status, &body["redis"]), (503, &json!(state)), "{what}");
        assert_eq!(body["postgres"], "ok", "{what}");
        let doctor = Program::Api.run(&["doctor"], &app.variables).await;
        assert!(!doctor.success, "{what}: {doctor:?}");
        let complaint = doctor
            .stderr
            .lines()
            .find(|line| line.starts_with("redis:"));
        assert!(
            complaint.is_some_and(|line| line.contains(refusal.code())),
            "{what}: {doctor:?}"
        );
        redis.accept_writes(refusal).await;
        wait_until("it is ready again", async || readiness(&app).await.0 == 200).await;
        send_round(&app, rounds).await;
        rounds += 1;
        arrive(&app, &what, rounds * ROUND, Duration::from_secs(20)).await;
    }
    wait_until("all is sent", async || app.outbox().await.is_empty()).await;
    for round in 0..rounds {
        for number in 0..ROUND {
            app.captured_once(&format!("m{round}-{number}@example.org"));
        }
    }
    let attempts = "SELECT count(*) FROM send_attempts";
    let expected = i64::try_from(rounds * ROUND).unwrap();
    assert_eq!(number(&app, attempts).await, expected);
    let log = worker.log();
    assert!(log.contains(Refusal::Full.code()), "{log}");
    let status = worker.terminate().await;
    assert!(status.success(), "{status}");
}
