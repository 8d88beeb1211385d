//! Postgres outages of all kinds: requests are answered with 503 within 2 s, and succeed
//! again when Postgres is back.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use futures_util::future::join_all;
use http::Method;
use serde_json::json;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Caller, Process, Reply, TestApp, message_to, wait_until, wait_within};

/// The longest time until a 503.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);
/// The longest time until requests succeed again.
const BACK_WITHIN: Duration = Duration::from_secs(3);

/// The longest time until a dead connection is replaced, if both its statement and the
/// pool's check of it run into their timeouts.
const REPLACED_WITHIN: Duration = Duration::from_secs(60);

async fn start() -> TestApp {
    TestApp::builder()
        .private_postgres()
        .without_worker()
        .without_scheduler()
        .start()
        .await
}

fn assert_away(what: &str, reply: &Reply) {
    reply.expect_error(503, "SERVICE_UNAVAILABLE");
    let wait = reply.header("retry-after").map(str::parse::<u32>);
    assert!(matches!(wait, Some(Ok(1..))), "{what}: {reply:?}");
}

/// One request of each kind: a read, a send, a batch, a change, a long list.
async fn call_all(caller: &Caller) -> Vec<(&'static str, Reply, Duration)> {
    let message = message_to("ada@example.org");
    let batch = json!({ "messages": [message.clone()] });
    let group = json!({ "name": "News" });
    let calls = [
        (Method::GET, "/v1/messages", None),
        (Method::GET, "/v1/metrics/summary", None),
        (Method::GET, "/v1/providers", None),
        (Method::POST, "/v1/send", Some(&message)),
        (Method::POST, "/v1/emails/batch", Some(&batch)),
        (Method::POST, "/v1/unsubscribe-groups", Some(&group)),
    ];
    join_all(calls.map(async |(method, path, body)| {
        let since = Instant::now();
        let reply = caller
            .call(method, path, |request| match body {
                Some(body) => request.json(body),
                None => request,
            })
            .await;
        (path, reply, since.elapsed())
    }))
    .await
}

async fn assert_all_away(caller: &Caller, within: Duration) {
    for (path, reply, took) in call_all(caller).await {
        assert_away(path, &reply);
        assert!(took < within, "{path} took {took:?}");
    }
}

async fn assert_back(caller: &Caller) {
    let since = Instant::now();
    let is_back = wait_within(BACK_WITHIN, async || {
        caller.get("/v1/messages").await.status == 200
    })
    .await;
    assert!(is_back, "not served after {:?}", since.elapsed());
    // No old connection is left that would fail another request.
    for _ in 0..3 {
        for (path, reply, _) in call_all(caller).await {
            assert!(reply.status < 300, "{path}: {reply:?}");
        }
    }
}

async fn assert_not_ready(app: &TestApp) {
    let anonymous = app.caller().anonymous();
    let since = Instant::now();
    let ready = anonymous.get("/readyz").await;
    assert_eq!(ready.status, 503, "{ready:?}");
    assert!(since.elapsed() < ANSWERED_WITHIN, "{:?}", since.elapsed());
    assert_eq!(anonymous.get("/healthz").await.status, 200);
    // A caller without a key needs no Postgres.
    anonymous
        .get("/v1/messages")
        .await
        .expect_error(401, "AUTHENTICATION_ERROR");
}

#[tokio::test]
async fn while_postgres_hangs_the_response_is_503_and_soon_immediate() {
    let app = start().await;
    app.connect(ProviderType::Sendgrid).await;
    let caller = app.caller();
    for (path, reply, _) in call_all(caller).await {
        assert!(reply.status < 300, "{path}: {reply:?}");
    }
    let server = app.postgres.as_ref().unwrap();
    server.stall();
    // First over open connections; then the outage is known.
    assert_all_away(caller, ANSWERED_WITHIN).await;
    assert_all_away(caller, Duration::from_millis(500)).await;
    assert_not_ready(&app).await;
    // A process that has no connection yet, and no cached key.
    let cold = app.start_another_api().await;
    assert_all_away(&cold, ANSWERED_WITHIN).await;
    server.wake();
    assert_back(caller).await;
    assert_back(&cold).await;
    app.leave_work();
}

#[tokio::test]
async fn links_and_provider_webhooks_get_their_own_responses() {
    let mut app = start().await;
    app.postgres.as_mut().unwrap().stop().await;
    let anonymous = app.caller().anonymous();
    wait_until("it is noticed", async || {
        app.get("/v1/messages").await.status == 503
    })
    .await;
    // An invalid link is recognized without Postgres.
    let page = anonymous.get("/v1/unsubscribe/some-token").await;
    assert_eq!(page.status, 400, "{page:?}");
    // The provider retries later.
    let account = format!("/v1/provider-events/{}", "y".repeat(32));
    let told = anonymous.post(&account, &json!([])).await;
    assert_away("an event", &told);
    // A pixel is always served.
    let pixel = anonymous.get("/v1/t/o/some-token").await;
    assert_eq!(pixel.status, 200, "{pixel:?}");
    assert_eq!(pixel.header("content-type"), Some("image/gif"));
    app.leave_work();
}

#[tokio::test]
async fn a_crash_of_postgres_is_noticed_at_once_and_so_is_its_return() {
    let mut app = start().await;
    app.connect(ProviderType::Sendgrid).await;
    let caller = app.caller().clone();
    for (path, reply, _) in call_all(&caller).await {
        assert!(reply.status < 300, "{path}: {reply:?}");
    }
    for _ in 0..2 {
        app.postgres.as_mut().unwrap().stop().await;
        assert_all_away(&caller, ANSWERED_WITHIN).await;
        assert_all_away(&caller, Duration::from_millis(500)).await;
        assert_not_ready(&app).await;
        app.postgres.as_mut().unwrap().resume().await;
        assert_back(&caller).await;
    }
    app.leave_work();
}

#[tokio::test]
async fn an_interrupted_send_is_accepted_once_when_it_is_repeated_with_its_key() {
    let app = start().await;
    app.connect(ProviderType::Sendgrid).await;
    let caller = app.caller();
    let server = app.postgres.as_ref().unwrap();
    for round in 0..3 {
        let key = format!("order-{round}");
        let message = message_to(&format!("ada{round}@example.org"));
        let send = async || {
            caller
                .call(Method::POST, "/v1/send", |request| {
                    request.header("idempotency-key", &key).json(&message)
                })
                .await
        };
        let (first, ()) = tokio::join!(send(), async { server.stall() });
        assert!([202, 503].contains(&first.status), "{first:?}");
        server.wake();
        wait_until("it is accepted", async || send().await.status == 202).await;
    }
    let count = app.value("SELECT count(*) FROM messages").await;
    assert_eq!(count.as_deref(), Some("3"));
    app.leave_work();
}

#[tokio::test]
async fn silently_broken_connections_are_replaced() {
    let app = TestApp::builder()
        .private_postgres()
        .without_scheduler()
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    app.send_to("before@example.org").await;
    app.drain().await;
    app.postgres.as_ref().unwrap().stall_connections().await;
    let message = message_to("after@example.org");
    let is_accepted = wait_within(REPLACED_WITHIN, async || {
        app.post("/v1/send", &message).await.status == 202
    });
    assert!(is_accepted.await);
    let is_sent = wait_within(REPLACED_WITHIN, async || {
        // A chunk that could not be leased is retried by the clock.
        app.advance(TimeDelta::milliseconds(100));
        !app.captured("after@example.org").is_empty()
    });
    assert!(is_sent.await);
    app.drain_within(REPLACED_WITHIN).await;
}

#[tokio::test]
async fn slow_statements_of_a_responsive_postgres_are_awaited() {
    let app = start().await;
    let mut held = app.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE unsubscribe_groups IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *held)
        .await
        .unwrap();
    let since = Instant::now();
    let group = json!({ "name": "News" });
    let adding = app.post("/v1/unsubscribe-groups", &group);
    let freeing = async {
        wait_until("a while has passed", async || {
            since.elapsed() > Duration::from_secs(3)
        })
        .await;
        held.rollback().await.unwrap();
    };
    let (added, ()) = tokio::join!(adding, freeing);
    added.expect(201);
    assert!(since.elapsed() > Duration::from_secs(3));
}

/// The lines of a log from line `from` on that are warnings or errors.
fn warnings(process: &Process, from: usize) -> Vec<String> {
    let log = process.log();
    let lines = log.lines().skip(from);
    let are_bad = |line: &&str| line.contains(" WARN ") || line.contains("ERROR ");
    lines.filter(are_bad).map(str::to_owned).collect()
}

#[tokio::test]
async fn an_outage_under_load_logs_few_lines() {
    let builder = TestApp::builder().processes().private_postgres();
    let mut app = builder.start().await;
    let (api, worker) = (app.spawn_api().await, app.spawn_worker());
    let scheduler = app.spawn_scheduler();
    let processes = [
        (&api, "the API"),
        (&worker, "the worker"),
        (&scheduler, "the scheduler"),
    ];
    app.connect(ProviderType::Sendgrid).await;
    for number in 0..50 {
        app.send_to(&format!("m{number}@example.org")).await;
    }
    wait_until("all is sent", async || app.outbox().await.is_empty()).await;
    let lines = processes.map(|(process, _)| process.log().lines().count());
    app.postgres.as_mut().unwrap().stop().await;
    let since = Instant::now();
    let mut refused = 0;
    while since.elapsed() < Duration::from_secs(5) {
        let calls = (0..20).map(|_| app.get("/v1/messages"));
        let replies = join_all(calls).await;
        refused += replies.iter().filter(|reply| reply.status == 503).count();
    }
    assert!(refused > 100, "{refused}");
    app.postgres.as_mut().unwrap().resume().await;
    for ((process, name), from) in processes.into_iter().zip(lines) {
        wait_until("it says that Postgres is back", async || {
            process.log().contains("Postgres is back")
        })
        .await;
        let warnings = warnings(process, from);
        let gone = warnings
            .iter()
            .filter(|line| line.contains("Postgres is away"));
        assert_eq!(gone.count(), 1, "{name}: {warnings:#?}");
        assert!(warnings.len() <= 30, "{name}: {warnings:#?}");
    }
}
