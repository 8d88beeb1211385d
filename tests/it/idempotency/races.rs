//! Concurrent requests with one key: in one process, in two, and in one that is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};
use waypost_core::db::PgTransaction;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Caller, Process, Program, Reply, TestApp, message_to, wait_until};

use super::{REPLAYED, assert_replayed, keyed, quiet};

async fn number(app: &TestApp, query: &str) -> u64 {
    app.value(query).await.unwrap().parse().unwrap()
}

/// Waits until this many statements wait for a lock.
async fn are_waiting(app: &TestApp, count: u64) {
    wait_until("statements wait for a lock", async || {
        app.lock_waits().await == count
    })
    .await;
}

/// Locks rows until the transaction ends.
async fn lock(app: &TestApp, query: &'static str) -> PgTransaction<'static> {
    let mut transaction = app.pool.begin().await.unwrap();
    sqlx::raw_sql(query)
        .execute(&mut *transaction)
        .await
        .unwrap();
    transaction
}

const ORGANIZATIONS: &str = "SELECT 1 FROM organizations FOR UPDATE";
const KEYS: &str = "SELECT 1 FROM idempotency_keys FOR UPDATE";

/// A request that must lock the organization's row.
fn default_group() -> Value {
    json!({ "name": "News", "isDefault": true })
}

#[tokio::test]
async fn a_repetition_waits_for_the_running_request() {
    let app = quiet().await;
    let path = "/v1/unsubscribe-groups";
    let locked = lock(&app, ORGANIZATIONS).await;
    let group = default_group();
    let first = keyed(app.caller(), path, "k", &group);
    let releasing = async {
        are_waiting(&app, 1).await;
        let again = keyed(app.caller(), path, "k", &group);
        let release = async {
            are_waiting(&app, 2).await;
            locked.rollback().await.unwrap();
        };
        tokio::join!(again, release).0
    };
    let (first, again) = tokio::join!(first, releasing);
    assert_eq!(first.status, 201, "{first:?}");
    assert_replayed(&first, &again);
    assert_eq!(
        number(&app, "SELECT count(*) FROM unsubscribe_groups").await,
        1
    );
}

#[tokio::test]
async fn a_repetition_of_a_slow_request_is_rejected_after_5_seconds() {
    let app = quiet().await;
    let path = "/v1/unsubscribe-groups";
    let locked = lock(&app, ORGANIZATIONS).await;
    let group = default_group();
    let first = keyed(app.caller(), path, "k", &group);
    let repeating = async {
        are_waiting(&app, 1).await;
        let since = Instant::now();
        let again = keyed(app.caller(), path, "k", &group).await;
        let waited = since.elapsed();
        locked.rollback().await.unwrap();
        (again, waited)
    };
    let (first, (again, waited)) = tokio::join!(first, repeating);
    let error = again.expect_error(409, "CONFLICT");
    let details = json!({ "reason": "IDEMPOTENCY_IN_PROGRESS" });
    assert_eq!(error["details"], details);
    assert_eq!(again.header("retry-after"), Some("1"));
    assert!(
        error["message"].as_str().unwrap().contains("still"),
        "{error}"
    );
    assert!(waited >= Duration::from_secs(5), "{waited:?}");
    assert!(waited < Duration::from_secs(8), "{waited:?}");
    assert_eq!(first.status, 201, "{first:?}");
    assert_replayed(&first, &keyed(app.caller(), path, "k", &group).await);
}

#[tokio::test]
async fn a_repetition_runs_if_the_first_request_fails() {
    let app = quiet().await;
    let path = "/v1/unsubscribe-groups";
    let locked = lock(&app, ORGANIZATIONS).await;
    let group = default_group();
    let first = keyed(app.caller(), path, "k", &group);
    let repeating = async {
        are_waiting(&app, 1).await;
        let again = keyed(app.caller(), path, "k", &group);
        let cutting = async {
            are_waiting(&app, 2).await;
            // The first request waits for the organization, the second for the first.
            app.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = current_database() AND wait_event_type = 'Lock'
                   AND query LIKE '%organizations%'",
            )
            .await;
            locked.rollback().await.unwrap();
        };
        tokio::join!(again, cutting).0
    };
    let (first, again) = tokio::join!(first, repeating);
    first.expect_error(503, "SERVICE_UNAVAILABLE");
    assert_eq!(again.status, 201, "{again:?}");
    assert_eq!(again.header(REPLAYED), None);
    assert_eq!(
        number(&app, "SELECT count(*) FROM unsubscribe_groups").await,
        1
    );
}

#[tokio::test]
async fn a_send_waits_until_its_key_is_free() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    let message = message_to("a@example.org");
    let first = keyed(app.caller(), "/v1/send", "k", &message).await;
    let locked = lock(&app, KEYS).await;
    let releasing = async {
        are_waiting(&app, 1).await;
        locked.rollback().await.unwrap();
    };
    let again = keyed(app.caller(), "/v1/send", "k", &message);
    let (again, ()) = tokio::join!(again, releasing);
    assert_replayed(&first, &again);
    assert_eq!(number(&app, "SELECT count(*) FROM messages").await, 1);
    app.leave_work();
}

#[tokio::test]
async fn a_key_that_is_locked_for_long_is_rejected_and_does_not_fail_others() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    let message = message_to("a@example.org");
    let first = keyed(app.caller(), "/v1/send", "held", &message).await;
    // As if the first request still ran.
    app.execute("CREATE TABLE kept AS TABLE idempotency_keys")
        .await;
    app.execute("DELETE FROM idempotency_keys").await;
    let running = lock(&app, "INSERT INTO idempotency_keys TABLE kept").await;
    let mut held = message.clone();
    held["idempotencyKey"] = json!("held");
    let mut free = message.clone();
    free["idempotencyKey"] = json!("free");
    // One request, so one batch of inserts.
    let body = json!({ "messages": [free, held, message] });
    let since = Instant::now();
    let reply = app.post("/v1/emails/batch", &body).await.expect(200);
    let waited = since.elapsed();
    assert!(waited >= Duration::from_secs(5), "{waited:?}");
    assert!(waited < Duration::from_secs(9), "{waited:?}");
    let results = reply["results"].as_array().unwrap();
    assert_eq!(results[0]["status"], "queued", "{reply}");
    assert!(
        results[1]["error"].as_str().unwrap().contains("still"),
        "{reply}"
    );
    assert_eq!(results[2]["status"], "queued", "{reply}");
    let since = Instant::now();
    let alone = keyed(app.caller(), "/v1/send", "held", &message).await;
    alone.expect_error(409, "CONFLICT");
    assert!(
        since.elapsed() < Duration::from_secs(8),
        "{:?}",
        since.elapsed()
    );
    // A send that would be rejected does not know the other's result either.
    let mut refused = message.clone();
    refused["from"] = json!("a@unverified.example.net");
    keyed(app.caller(), "/v1/send", "held", &refused)
        .await
        .expect_error(409, "CONFLICT");
    running.commit().await.unwrap();
    assert_replayed(
        &first,
        &keyed(app.caller(), "/v1/send", "held", &message).await,
    );
    assert_eq!(number(&app, "SELECT count(*) FROM messages").await, 3);
    app.leave_work();
}

#[tokio::test]
async fn many_concurrent_requests_with_one_key_run_once() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let requests = [
        ("/v1/send", message_to("a@example.org")),
        (
            "/v1/emails/batch",
            json!({ "messages": [message_to("b@example.org"), message_to("c@example.org")] }),
        ),
        ("/v1/templates", json!({ "name": "T" })),
        ("/v1/suppressions", json!({ "email": "x@example.org" })),
    ];
    for (path, body) in &requests {
        let all = (0..20).map(|_| keyed(app.caller(), path, "k", body));
        let all = join_all(all).await;
        let texts: BTreeSet<&str> = all.iter().map(|reply| reply.text.as_str()).collect();
        assert_eq!(texts.len(), 1, "{path}: {texts:?}");
        assert!(all.iter().all(|reply| reply.status < 300), "{path}");
    }
    app.drain().await;
    assert_eq!(app.simulator().captured_count(), 3);
    assert_eq!(number(&app, "SELECT count(*) FROM templates").await, 1);
}

async fn processes() -> TestApp {
    TestApp::builder().processes().private_redis().start().await
}

/// Another API as a process, on its own port.
async fn spawn_another_api(app: &TestApp) -> (Process, Caller) {
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let mut variables = app.variables.clone();
    variables.insert("WAYPOST_LISTEN".to_owned(), format!("127.0.0.1:{port}"));
    let process = Program::Api.spawn(&["serve"], &variables);
    let caller = app.caller().at(&format!("http://127.0.0.1:{port}"));
    wait_until("the other API answers", async || {
        let reply = caller.try_call(Method::GET, "/healthz", |request| request);
        reply.await.is_ok()
    })
    .await;
    (process, caller)
}

async fn all_are_sent(app: &TestApp) {
    wait_until("all is sent", async || app.outbox().await.is_empty()).await;
}

#[tokio::test]
async fn two_processes_that_race_for_a_key_accept_one_message() {
    let app = processes().await;
    let _one = app.spawn_api().await;
    let (_two, other) = spawn_another_api(&app).await;
    app.connect(ProviderType::Sendgrid).await;
    let message = message_to("a@example.org");
    let racing = (0..50).map(|nth| {
        let caller = if nth % 2 == 0 { app.caller() } else { &other };
        keyed(caller, "/v1/send", "k", &message)
    });
    // Neighbours in the same batches, with their own keys in another order.
    let (ours, theirs) = (0..20, (0..20).rev());
    let neighbours = ours.zip(theirs).map(async |(up, down)| {
        let send = async |caller: &Caller, nth: i32| {
            let message = message_to(&format!("n{nth}@example.org"));
            keyed(caller, "/v1/send", &format!("n{nth}"), &message).await
        };
        let (one, two) = tokio::join!(send(app.caller(), up), send(&other, down));
        assert_eq!((one.status, two.status), (202, 202), "{one:?} {two:?}");
    });
    let (replies, _) = tokio::join!(join_all(racing), join_all(neighbours));
    let first: Vec<&Reply> = replies
        .iter()
        .filter(|reply| reply.header(REPLAYED).is_none())
        .collect();
    assert_eq!(first.len(), 1, "{replies:?}");
    for reply in &replies {
        assert_eq!((reply.status, &reply.text), (202, &first[0].text));
    }
    assert_eq!(number(&app, "SELECT count(*) FROM messages").await, 21);
    let _others = (app.spawn_worker(), app.spawn_scheduler());
    all_are_sent(&app).await;
    app.captured_once("a@example.org");
    assert_eq!(app.simulator().captured_count(), 21);
}

#[tokio::test]
async fn a_send_to_a_killed_api_is_sent_once_after_its_repetition() {
    let app = processes().await;
    let mut api = app.spawn_api().await;
    app.connect(ProviderType::Sendgrid).await;
    let (asked, answered) = (Mutex::new(BTreeSet::new()), Mutex::new(BTreeMap::new()));
    let send = async |nth: usize| {
        let message = message_to(&format!("r{nth}@example.org"));
        let reply = app.caller().try_call(Method::POST, "/v1/send", |request| {
            request
                .header("Idempotency-Key", format!("key {nth}"))
                .json(&message)
        });
        let reply = reply.await.ok()?;
        assert_eq!(reply.status, 202, "{reply:?}");
        Some(reply.text)
    };
    let sending = join_all((0..8).map(async |lane| {
        for nth in 0..1_000 {
            let nth = lane * 1_000 + nth;
            asked.lock().unwrap().insert(nth);
            let Some(text) = send(nth).await else {
                return;
            };
            answered.lock().unwrap().insert(nth, text);
        }
    }));
    let killing = async {
        wait_until("some are accepted", async || {
            answered.lock().unwrap().len() >= 60
        })
        .await;
        api.kill().await;
    };
    tokio::join!(sending, killing);
    let asked = asked.into_inner().unwrap();
    let answered = answered.into_inner().unwrap();
    assert!(asked.len() > answered.len(), "some were not answered");
    let _api = app.spawn_api().await;
    let again = join_all(asked.iter().map(|nth| send(*nth))).await;
    for (nth, text) in asked.iter().zip(again) {
        let text = text.unwrap_or_else(|| panic!("{nth} is not answered"));
        if let Some(first) = answered.get(nth) {
            assert_eq!(first, &text);
        }
    }
    let count = asked.len() as u64;
    assert_eq!(number(&app, "SELECT count(*) FROM messages").await, count);
    let _others = (app.spawn_worker(), app.spawn_scheduler());
    all_are_sent(&app).await;
    for nth in asked {
        app.captured_once(&format!("r{nth}@example.org"));
    }
    assert_eq!(app.simulator().captured_count(), count);
}

#[tokio::test]
async fn a_batch_of_a_killed_api_is_finished_by_its_repetition() {
    let app = processes().await;
    let mut api = app.spawn_api().await;
    app.connect(ProviderType::Sendgrid).await;
    // Twenty recipients each: more than all flushes take at once.
    let messages: Vec<Value> = (0..1_000)
        .map(|nth| {
            let to = (0..20).map(|place| format!("r{nth}.{place}@example.org"));
            let mut message = message_to("x@example.org");
            message["to"] = Value::from_iter(to);
            message
        })
        .collect();
    let body = json!({ "messages": messages });
    let sending = app
        .caller()
        .try_call(Method::POST, "/v1/emails/batch", |request| {
            request.header("Idempotency-Key", "k").json(&body)
        });
    let killing = async {
        wait_until("a part is accepted", async || {
            number(&app, "SELECT count(*) FROM messages").await > 0
        })
        .await;
        api.kill().await;
    };
    let (_lost, ()) = tokio::join!(sending, killing);
    let before = number(&app, "SELECT count(*) FROM messages").await;
    let _api = app.spawn_api().await;
    let reply = keyed(app.caller(), "/v1/emails/batch", "k", &body).await;
    let results = reply.expect(200);
    let ids: BTreeSet<&str> = results["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["messageId"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), 1_000, "{before} were accepted before");
    assert_eq!(number(&app, "SELECT count(*) FROM messages").await, 1_000);
    assert_eq!(
        number(&app, "SELECT count(DISTINCT address_hash) FROM recipients").await,
        20_000
    );
    assert_eq!(
        number(&app, "SELECT count(*) FROM recipients").await,
        20_000
    );
    app.leave_work();
}
