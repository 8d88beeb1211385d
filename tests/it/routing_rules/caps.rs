//! Caps of targets: how many recipients an account may have in an hour and on a day. The hours
//! and days are those of Postgres, whose clock a test cannot move: it moves the rows.

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_simulator::Provider;
use waypost_tests::{TestApp, message_to, wait_until};

use super::targets::{sharing, target};
use super::{PATH, create, path_of, two_accounts};

pub(super) fn capped(account: &str, caps: &Value) -> Value {
    let mut target = target(account, 1);
    let caps = caps.as_object().unwrap().clone();
    target.as_object_mut().unwrap().extend(caps);
    target
}

/// An app whose first account is SendGrid's, with a rule that has it as its first target.
pub(super) async fn app_with(app: TestApp, caps: &Value, change: &Value) -> TestApp {
    let (first, second) = two_accounts(&app).await;
    let mut change = change.clone();
    if change.get("fallbackProviderAccountIds").is_some() {
        change["fallbackProviderAccountIds"] = json!([second]);
    }
    create(&app, &sharing(&[capped(&first, caps)], &change)).await;
    app
}

/// The same, where the second account takes what the first may not have.
async fn with_fallback(app: TestApp, caps: &Value) -> TestApp {
    app_with(app, caps, &json!({ "fallbackProviderAccountIds": [] })).await
}

/// How many mails the accounts took.
pub(super) fn taken(app: &TestApp, addresses: &[String]) -> [usize; 2] {
    let copies = addresses.iter().flat_map(|address| app.captured(address));
    let copies: Vec<Provider> = copies.map(|copy| copy.provider).collect();
    let of = |provider| copies.iter().filter(|one| **one == provider).count();
    [of(Provider::SendGrid), of(Provider::Postmark)]
}

pub(super) fn addresses(prefix: &str, count: usize) -> Vec<String> {
    (0..count)
        .map(|index| format!("{prefix}{index}@example.org"))
        .collect()
}

pub(super) async fn send_all(app: &TestApp, addresses: &[String]) {
    for some in addresses.chunks(500) {
        let messages: Vec<Value> = some.iter().map(|address| message_to(address)).collect();
        let body = json!({ "messages": messages });
        app.post("/v1/emails/batch", &body).await.expect(200);
    }
}

/// Ends the windows of all targets.
pub(super) async fn end_windows(app: &TestApp) {
    app.execute("UPDATE routing_target_usage SET starts_at = starts_at - interval '1 day'")
        .await;
}

/// What the first target used of the day.
async fn used(app: &TestApp) -> Value {
    let asked = json!({ "from": "news@example.com" });
    let found = app.post(&format!("{PATH}/resolve"), &asked).await.data(200);
    found["targets"][0]["usedToday"].clone()
}

#[tokio::test]
async fn over_its_cap_a_target_is_passed_over() {
    for cap in ["dailyCap", "hourlyCap"] {
        let app = with_fallback(TestApp::start().await, &json!({ cap: 5 })).await;
        let sent = addresses("a", 12);
        send_all(&app, &sent).await;
        app.drain().await;
        assert_eq!(taken(&app, &sent), [5, 7]);
        end_windows(&app).await;
        app.advance(TimeDelta::hours(25));
        let sent = addresses("b", 6);
        send_all(&app, &sent).await;
        app.drain().await;
        assert_eq!(taken(&app, &sent), [5, 1]);
    }
}

#[tokio::test]
async fn if_the_rule_says_so_mail_over_the_cap_waits_until_the_window_is_over() {
    // A day is as long as mail is tried by default.
    let app = TestApp::builder().setting("WAYPOST_RETRY_HORIZON", "72h");
    let app = app_with(
        app.start().await,
        &json!({ "dailyCap": 3 }),
        &json!({ "overCap": "wait", "fallbackProviderAccountIds": [] }),
    )
    .await;
    let sent = addresses("a", 5);
    send_all(&app, &sent).await;
    app.drain().await;
    assert_eq!(taken(&app, &sent), [3, 0]);
    assert_eq!(used(&app).await, json!(3));
    let waiting = "SELECT count(*) FROM recipients
                   WHERE status = 'QUEUED' AND last_error = 'waiting: its target has reached its cap'";
    assert_eq!(app.value(waiting).await.as_deref(), Some("2"));
    let attempts = "SELECT count(*) FROM send_attempts";
    assert_eq!(app.value(attempts).await.as_deref(), Some("3"));
    // It is due when the day of Postgres is over, or soon after.
    let early = "SELECT count(*) FROM recipients
                 WHERE status = 'QUEUED'
                   AND next_attempt_at < date_trunc('day', now(), 'UTC') + interval '24 hours' - interval '1 minute'";
    assert_eq!(app.value(early).await.as_deref(), Some("0"));
    end_windows(&app).await;
    app.advance_and_drain(TimeDelta::hours(25)).await;
    assert_eq!(taken(&app, &sent), [5, 0]);
}

#[tokio::test]
async fn if_all_accounts_are_over_their_caps_the_mail_waits() {
    let app = TestApp::start().await;
    let (first, second) = two_accounts(&app).await;
    let targets = [
        capped(&first, &json!({ "dailyCap": 2 })),
        capped(&second, &json!({ "hourlyCap": 3 })),
    ];
    create(&app, &sharing(&targets, &json!({}))).await;
    let sent = addresses("a", 8);
    send_all(&app, &sent).await;
    app.drain().await;
    assert_eq!(taken(&app, &sent), [2, 3]);
    let late = "SELECT count(*) FROM recipients
                WHERE status = 'QUEUED'
                  AND next_attempt_at > date_trunc('hour', now(), 'UTC') + interval '70 minutes'";
    assert_eq!(
        app.value(late).await.as_deref(),
        Some("0"),
        "the hour ends before the day"
    );
    end_windows(&app).await;
    app.advance_and_drain(TimeDelta::hours(2)).await;
    assert_eq!(taken(&app, &sent).iter().sum::<usize>(), 8);
}

#[tokio::test]
async fn several_workers_keep_a_cap_together_even_if_redis_forgets_everything() {
    let app = TestApp::builder()
        .private_redis()
        .without_worker()
        .start()
        .await;
    let app = with_fallback(app, &json!({ "dailyCap": 60, "hourlyCap": 70 })).await;
    let first = addresses("a", 100);
    send_all(&app, &first).await;
    app.start_worker();
    app.start_worker();
    app.drain().await;
    app.redis.as_ref().unwrap().flush().await;
    let second = addresses("b", 100);
    send_all(&app, &second).await;
    app.drain().await;
    let all: Vec<String> = first.into_iter().chain(second).collect();
    assert_eq!(taken(&app, &all), [60, 140]);
    let used = app.value("SELECT used FROM routing_target_usage WHERE window_kind = 'day'");
    assert_eq!(used.await.as_deref(), Some("60"));
}

#[tokio::test]
async fn a_cap_counts_each_recipient_of_a_message() {
    let app = with_fallback(TestApp::start().await, &json!({ "dailyCap": 20 })).await;
    let sent = addresses("a", 50);
    let mut message = message_to("x@example.org");
    message["to"] = json!(sent);
    app.send(&message).await;
    app.drain().await;
    assert_eq!(taken(&app, &sent), [20, 30]);
}

#[tokio::test]
async fn a_shared_message_is_within_the_cap_as_a_whole_or_not() {
    let app = with_fallback(TestApp::start().await, &json!({ "dailyCap": 5 })).await;
    let shared = addresses("a", 3);
    let other = addresses("b", 3);
    for to in [&shared, &other] {
        let mut message = message_to("x@example.org");
        message["to"] = json!(to);
        message["delivery"] = json!("shared");
        app.send(&message).await;
        app.drain().await;
    }
    assert_eq!(app.captured(&shared[0])[0].provider, Provider::SendGrid);
    assert_eq!(app.captured(&other[0])[0].provider, Provider::Postmark);
    let single = addresses("c", 3);
    send_all(&app, &single).await;
    app.drain().await;
    assert_eq!(taken(&app, &single), [2, 1]);
}

#[tokio::test]
async fn a_test_counts_nothing_and_a_call_that_is_not_made_gives_its_place_back() {
    let app = TestApp::builder().without_worker().start().await;
    let app = with_fallback(app, &json!({ "dailyCap": 1 })).await;
    let mut test = message_to("test@example.org");
    test["test"] = json!(true);
    app.send(&test).await;
    app.send_to("suppressed@example.org").await;
    let suppression = json!({ "email": "suppressed@example.org" });
    app.post("/v1/suppressions", &suppression).await.data(201);
    app.start_worker();
    app.drain().await;
    let sent = addresses("a", 2);
    send_all(&app, &sent).await;
    app.drain().await;
    assert_eq!(taken(&app, &sent), [1, 1]);
    assert_eq!(used(&app).await, json!(1));
}

#[tokio::test]
async fn a_higher_cap_holds_at_once_and_a_rule_without_caps_is_not_counted() {
    let app = TestApp::start().await;
    let (first, second) = two_accounts(&app).await;
    let fallback = json!({ "fallbackProviderAccountIds": [second] });
    let rule = create(&app, &sharing(&[target(&first, 1)], &fallback)).await;
    let uncapped = addresses("a", 3);
    send_all(&app, &uncapped).await;
    app.drain().await;
    let rows = "SELECT count(*) FROM routing_target_usage";
    assert_eq!(app.value(rows).await.as_deref(), Some("0"));
    for (cap, letter, expected) in [(2, "b", [2, 2]), (3, "c", [1, 3]), (1, "d", [0, 4])] {
        let change = json!({ "targets": [capped(&first, &json!({ "dailyCap": cap }))] });
        app.patch(&path_of(&rule), &change).await.data(200);
        let sent = addresses(letter, 4);
        send_all(&app, &sent).await;
        app.drain().await;
        assert_eq!(taken(&app, &sent), expected);
    }
}

#[tokio::test]
async fn a_worker_that_ends_gives_back_what_it_did_not_use() {
    let app = TestApp::builder()
        .processes()
        .without_worker()
        .start()
        .await;
    let _api = app.spawn_api().await;
    let app = with_fallback(app, &json!({ "dailyCap": 1_000 })).await;
    let mut worker = app.spawn_worker();
    let sent = addresses("a", 3);
    send_all(&app, &sent).await;
    wait_until("the mail is sent", async || app.outbox().await.is_empty()).await;
    let used = "SELECT used FROM routing_target_usage";
    assert_eq!(
        app.value(used).await.as_deref(),
        Some("10"),
        "a hundredth of the cap"
    );
    assert!(worker.terminate().await.success());
    assert_eq!(app.value(used).await.as_deref(), Some("3"));
}
