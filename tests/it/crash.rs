//! Crashes: processes that are killed, a Redis that is emptied or stopped. After a 202 no
//! message is lost, and no message is sent twice without a recorded reason. Processes and
//! time are real.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::Fault;
use waypost_tests::{TestApp, message_to, wait_until, wait_within};

/// Leases of 6 s end, the wait for evidence is 2 s, and builds share the machine.
const RECOVERED_WITHIN: Duration = Duration::from_secs(60);

async fn start() -> TestApp {
    TestApp::builder().processes().private_redis().start().await
}

fn address(number: usize) -> String {
    format!("r{number}@example.org")
}

async fn send_all(app: &TestApp, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for number in 0..count {
        ids.push(app.send_to(&address(number)).await);
    }
    ids
}

async fn number(app: &TestApp, query: &str) -> i64 {
    app.value(query).await.unwrap().parse().unwrap()
}

async fn all_are_final(app: &TestApp) {
    let is_done = wait_within(RECOVERED_WITHIN, async || app.outbox().await.is_empty()).await;
    let left: Vec<String> = app
        .outbox()
        .await
        .iter()
        .take(10)
        .map(ToString::to_string)
        .collect();
    assert!(
        is_done,
        "not finished within {RECOVERED_WITHIN:?}:\n  {}",
        left.join("\n  ")
    );
}

/// No message is lost, and every repeated send is explained by an attempt with an unknown
/// outcome.
async fn nothing_is_lost_or_unexplained(app: &TestApp, ids: &[String]) {
    let lost = number(
        app,
        "SELECT count(*) FROM recipients WHERE status <> 'SENT'",
    )
    .await;
    assert_eq!(lost, 0, "recipients that were not sent");
    for (nth, id) in ids.iter().enumerate() {
        let copies = app.captured(&address(nth)).len();
        let outcomes = app.outcomes(id).await;
        let unknown = outcomes
            .iter()
            .filter(|outcome| *outcome == "UNKNOWN")
            .count();
        assert!(copies >= 1, "{id} was never sent: {outcomes:?}");
        assert!(
            copies <= 1 + unknown,
            "{id} was sent {copies} times: {outcomes:?}"
        );
        assert_eq!(
            outcomes
                .iter()
                .filter(|outcome| *outcome == "ACCEPTED")
                .count(),
            1,
            "{id}: {outcomes:?}"
        );
    }
}

async fn each_was_sent_once(app: &TestApp, count: usize) {
    for number in 0..count {
        app.captured_once(&address(number));
    }
    assert_eq!(app.simulator().captured_count(), count as u64);
}

#[tokio::test]
async fn the_work_of_a_killed_worker_is_finished_by_another() {
    let app = start().await;
    let (_api, _scheduler) = (app.spawn_api().await, app.spawn_scheduler());
    app.connect(ProviderType::Sendgrid).await;
    let mut doomed = app.spawn_worker();
    app.simulator().set_fault(Fault::slow_sends(1_500));
    let ids = send_all(&app, 30).await;
    wait_until("calls are open", async || {
        number(
            &app,
            "SELECT count(*) FROM send_attempts WHERE outcome IS NULL",
        )
        .await
            > 0
    })
    .await;
    doomed.kill().await;
    app.simulator().clear_faults();
    let held = number(
        &app,
        "SELECT count(*) FROM outbox WHERE leased_by IS NOT NULL",
    )
    .await;
    assert!(held > 0, "the worker held leases when it died");
    let _worker = app.spawn_worker();
    all_are_final(&app).await;
    nothing_is_lost_or_unexplained(&app, &ids).await;
    let open = number(
        &app,
        "SELECT count(*) FROM send_attempts WHERE outcome IS NULL",
    )
    .await;
    assert_eq!(open, 0);
}

#[tokio::test]
async fn a_worker_killed_again_and_again_loses_nothing() {
    let app = start().await;
    let (_api, _scheduler) = (app.spawn_api().await, app.spawn_scheduler());
    app.connect(ProviderType::Mailgun).await;
    app.simulator().set_fault(Fault::slow_sends(200));
    let mut ids = Vec::new();
    for round in 0..3 {
        let mut doomed = app.spawn_worker();
        for nth in 0..10 {
            ids.push(app.send_to(&address(round * 10 + nth)).await);
        }
        wait_until("the worker works", async || {
            number(
                &app,
                "SELECT count(*) FROM outbox WHERE leased_by IS NOT NULL",
            )
            .await
                > 0
                || app.outbox().await.is_empty()
        })
        .await;
        doomed.kill().await;
    }
    app.simulator().clear_faults();
    let _worker = app.spawn_worker();
    all_are_final(&app).await;
    let failed = number(
        &app,
        "SELECT count(*) FROM recipients WHERE status <> 'SENT' AND unknowns < 2",
    )
    .await;
    assert_eq!(failed, 0, "only what two dead workers held may fail");
    for (nth, id) in ids.iter().enumerate() {
        let unknown = app
            .outcomes(id)
            .await
            .iter()
            .filter(|outcome| *outcome == "UNKNOWN")
            .count();
        assert!(app.captured(&address(nth)).len() <= 1 + unknown, "{id}");
    }
}

#[tokio::test]
async fn messages_are_sent_although_redis_was_emptied() {
    let app = start().await;
    let _api = app.spawn_api().await;
    app.connect(ProviderType::Sendgrid).await;
    send_all(&app, 20).await;
    app.redis.as_ref().unwrap().flush().await;
    let (_worker, _scheduler) = (app.spawn_worker(), app.spawn_scheduler());
    all_are_final(&app).await;
    each_was_sent_once(&app, 20).await;
}

#[tokio::test]
async fn a_redis_emptied_under_running_workers_costs_only_time() {
    let app = start().await;
    let _all = (
        app.spawn_api().await,
        app.spawn_worker(),
        app.spawn_scheduler(),
    );
    app.connect(ProviderType::Sendgrid).await;
    for number in 0..40 {
        app.send_to(&address(number)).await;
        if number % 10 == 5 {
            app.redis.as_ref().unwrap().flush().await;
        }
    }
    all_are_final(&app).await;
    each_was_sent_once(&app, 40).await;
}

#[tokio::test]
async fn while_redis_is_down_messages_are_accepted_at_once_and_sent_when_it_is_back() {
    let mut app = start().await;
    let _all = (
        app.spawn_api().await,
        app.spawn_worker(),
        app.spawn_scheduler(),
    );
    app.connect(ProviderType::Sendgrid).await;
    app.send_to(&address(0)).await;
    wait_until("the first is sent", async || {
        app.captured(&address(0)).len() == 1
    })
    .await;
    app.redis.as_mut().unwrap().stop().await;
    for number in 1..10 {
        let since = Instant::now();
        app.send_to(&address(number)).await;
        assert!(
            since.elapsed() < Duration::from_secs(1),
            "accepting took {:?}",
            since.elapsed()
        );
    }
    app.redis.as_mut().unwrap().resume().await;
    all_are_final(&app).await;
    each_was_sent_once(&app, 10).await;
}

#[tokio::test]
async fn messages_accepted_by_a_killed_api_are_sent() {
    let app = start().await;
    let mut api = app.spawn_api().await;
    let _others = (app.spawn_worker(), app.spawn_scheduler());
    app.connect(ProviderType::Sendgrid).await;
    let accepted = std::sync::Mutex::new(Vec::new());
    let sending = join_all((0..8).map(async |client| {
        for nth in 0..1_000 {
            let message = message_to(&address(client * 1_000 + nth));
            let reply = app
                .caller()
                .try_call(http::Method::POST, "/v1/send", |request| {
                    request.json(&message)
                })
                .await;
            match reply {
                Ok(reply) if reply.status == 202 => {
                    let id = reply.json()["messageId"].as_str().unwrap().to_owned();
                    accepted.lock().unwrap().push((client * 1_000 + nth, id));
                }
                _ => return,
            }
        }
    }));
    let killing = async {
        wait_until("some are accepted", async || {
            accepted.lock().unwrap().len() >= 60
        })
        .await;
        api.kill().await;
    };
    tokio::join!(sending, killing);
    let accepted = accepted.into_inner().unwrap();
    all_are_final(&app).await;
    for (nth, id) in &accepted {
        assert_eq!(app.captured(&address(*nth)).len(), 1, "{id}");
    }
    // A message that was committed without a response is sent too; none is sent twice.
    let messages = number(&app, "SELECT count(*) FROM messages").await;
    assert!(messages >= i64::try_from(accepted.len()).unwrap());
    assert_eq!(
        app.simulator().captured_count(),
        u64::try_from(messages).unwrap()
    );
}

#[tokio::test]
async fn a_terminated_worker_finishes_its_calls_and_leaves_no_lease() {
    let app = start().await;
    let (_api, _scheduler) = (app.spawn_api().await, app.spawn_scheduler());
    app.connect(ProviderType::Sendgrid).await;
    let mut stopping = app.spawn_worker();
    app.simulator().set_fault(Fault::slow_sends(700));
    let ids = send_all(&app, 20).await;
    wait_until("calls are open", async || {
        number(
            &app,
            "SELECT count(*) FROM send_attempts WHERE outcome IS NULL",
        )
        .await
            > 0
    })
    .await;
    let status = stopping.terminate().await;
    assert!(status.success(), "{status}");
    assert_eq!(
        number(
            &app,
            "SELECT count(*) FROM outbox WHERE leased_by IS NOT NULL"
        )
        .await,
        0
    );
    assert_eq!(
        number(
            &app,
            "SELECT count(*) FROM send_attempts WHERE outcome IS DISTINCT FROM 'ACCEPTED'"
        )
        .await,
        0
    );
    assert_eq!(number(&app, "SELECT count(*) FROM workers").await, 0);
    let _worker = app.spawn_worker();
    all_are_final(&app).await;
    each_was_sent_once(&app, 20).await;
    nothing_is_lost_or_unexplained(&app, &ids).await;
}

#[tokio::test]
async fn every_terminated_process_exits_with_success() {
    let app = start().await;
    let mut all = [
        app.spawn_api().await,
        app.spawn_worker(),
        app.spawn_scheduler(),
    ];
    app.connect(ProviderType::Sendgrid).await;
    app.send_to(&address(0)).await;
    all_are_final(&app).await;
    for process in &mut all {
        let since = Instant::now();
        let status = process.terminate().await;
        assert!(status.success(), "{status}: {}", process.log());
        assert!(
            since.elapsed() < Duration::from_secs(10),
            "an idle process took {:?} to stop",
            since.elapsed()
        );
    }
}

#[tokio::test]
async fn two_workers_and_two_schedulers_send_each_message_once() {
    let app = start().await;
    let _all = (
        app.spawn_api().await,
        [app.spawn_worker(), app.spawn_worker()],
        [app.spawn_scheduler(), app.spawn_scheduler()],
    );
    app.connect(ProviderType::Postmark).await;
    let messages: Vec<_> = (0..300)
        .map(|number| message_to(&address(number)))
        .collect();
    app.post("/v1/emails/batch", &json!({ "messages": messages }))
        .await
        .expect(200);
    all_are_final(&app).await;
    each_was_sent_once(&app, 300).await;
    assert_eq!(
        number(&app, "SELECT count(*) FROM send_attempts").await,
        300
    );
}

#[tokio::test]
async fn when_the_leading_scheduler_is_killed_the_other_takes_over() {
    let app = start().await;
    let _api = app.spawn_api().await;
    let mut leader = app.spawn_scheduler();
    app.connect(ProviderType::Sendgrid).await;
    let _follower = app.spawn_scheduler();
    leader.kill().await;
    app.send_to(&address(0)).await;
    app.redis.as_ref().unwrap().flush().await;
    let _worker = app.spawn_worker();
    all_are_final(&app).await;
    each_was_sent_once(&app, 1).await;
}

#[tokio::test]
async fn lost_responses_in_real_time_are_resolved_too() {
    let app = start().await;
    let _all = (
        app.spawn_api().await,
        app.spawn_worker(),
        app.spawn_scheduler(),
    );
    app.connect(ProviderType::Ses).await;
    let id = app.send_to("timeout-once@example.org").await;
    all_are_final(&app).await;
    assert_eq!(app.outcomes(&id).await, ["UNKNOWN", "ACCEPTED"]);
    assert_eq!(app.captured("timeout-once@example.org").len(), 2);
}
