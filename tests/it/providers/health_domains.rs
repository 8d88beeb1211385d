//! How the attempts of accounts are counted by recipient domain: once each, by any number of
//! schedulers, and the busiest domains on their own.

use chrono::TimeDelta;
use futures_util::future::join_all;
use serde_json::{Value, json};
use waypost_core::db::organization_shard::OrganizationShard;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider_account::health::domains::{self, DOMAINS_MAX, READ_AFTER};
use waypost_tests::{TestApp, wait_until};

use super::quiet;

/// The time for which attempts are not read, and a moment.
fn later() -> TimeDelta {
    READ_AFTER + TimeDelta::seconds(1)
}

/// An account of which attempts are counted.
async fn account(app: &TestApp) -> String {
    let id = app.connect(ProviderType::Sendgrid).await;
    domains::tidy(&app.pool, &app.clock, 1_000).await.unwrap();
    app.advance(TimeDelta::seconds(1));
    id
}

/// Counts about `limit` attempts; returns how many.
async fn count(app: &TestApp, limit: i64) -> i64 {
    domains::roll_up(&app.pool, &app.clock, OrganizationShard::WHOLE, limit)
        .await
        .unwrap()
}

async fn count_all(app: &TestApp) {
    while count(app, 1_000).await > 0 {}
}

async fn by_domain(app: &TestApp, account: &str) -> Vec<Value> {
    let path = format!("/v1/providers/{account}/health/domains");
    app.get(&path).await.expect(200)["data"]
        .as_array()
        .unwrap()
        .clone()
}

async fn attempts(app: &TestApp, account: &str) -> i64 {
    let domains = by_domain(app, account).await;
    let attempts = domains.iter().map(|one| one["attempts"].as_i64().unwrap());
    attempts.sum()
}

/// Inserts attempts of now, of messages of their own, each with a domain, an outcome and a
/// duration by SQL over the number `n`.
async fn attempt(app: &TestApp, account: &str, copies: usize, [domain, outcome, took]: [&str; 3]) {
    let organization = app.organization_id();
    let now = app.clock.now().to_rfc3339();
    app.execute(&format!(
        "WITH made AS (
             SELECT n, waypost_uuid_new('{now}') AS message, ({domain})::text AS domain
             FROM generate_series(0, {copies} - 1) n
         ), recipient AS (
             INSERT INTO recipients (message_id, position, organization_id, address_sealed, address_hash, status,
                                     next_attempt_at, domain)
             SELECT message, 0, '{organization}', '', '', 'SENT', '{now}', domain
             FROM made
         )
         INSERT INTO send_attempts (message_id, id, organization_id, position, provider_account_id, started_at,
                                    finished_at, outcome)
         SELECT message, waypost_uuid_new('{now}'), '{organization}', 0, '{account}', '{now}',
                CASE WHEN ({outcome}) IS NOT NULL THEN '{now}'::timestamptz + ({took}) * interval '1 ms' END,
                ({outcome})::attempt_outcome
         FROM made"
    ))
    .await;
}

#[tokio::test]
async fn attempts_count_once_whatever_the_steps_and_the_schedulers() {
    let app = quiet().await;
    let id = account(&app).await;
    let mixed = ["'d' || n % 7 || '.example'", "'ACCEPTED'", "n"];
    attempt(&app, &id, 200, mixed).await;
    assert_eq!(count(&app, 1_000).await, 0, "they are not read yet");
    app.advance(later());
    // A scheduler that dies before its commit has counted nothing.
    let blocked = app.block_writes("attempt_days").await;
    let (pool, clock) = (app.pool.clone(), app.clock.clone());
    let dying =
        tokio::spawn(
            async move { domains::roll_up(&pool, &clock, OrganizationShard::WHOLE, 50).await },
        );
    wait_until("the roll-up waits for its write", async || {
        app.lock_waits().await == 1
    })
    .await;
    app.end_lock_waits().await;
    assert!(dying.await.unwrap().is_err());
    drop(blocked);
    assert_eq!(attempts(&app, &id).await, 0);
    assert_eq!(count(&app, 3).await, 3);
    assert_eq!(attempts(&app, &id).await, 3);
    let counting = (0..4).map(|_| {
        let (pool, clock) = (app.pool.clone(), app.clock.clone());
        tokio::spawn(async move {
            for _ in 0..20 {
                domains::roll_up(&pool, &clock, OrganizationShard::WHOLE, 7)
                    .await
                    .unwrap();
            }
        })
    });
    for ended in join_all(counting).await {
        ended.unwrap();
    }
    count_all(&app).await;
    assert_eq!(attempts(&app, &id).await, 200);
    let domains = by_domain(&app, &id).await;
    assert_eq!(domains.len(), 7);
    assert_eq!(domains[0]["accepted"], 29);
}

#[tokio::test]
async fn an_attempt_that_has_not_ended_holds_up_later_ones_for_five_minutes() {
    let app = quiet().await;
    let id = account(&app).await;
    attempt(&app, &id, 1, ["'a.example'", "'ACCEPTED'", "1"]).await;
    app.advance(TimeDelta::seconds(1));
    attempt(&app, &id, 1, ["'b.example'", "NULL", "1"]).await;
    app.advance(TimeDelta::seconds(1));
    attempt(&app, &id, 1, ["'c.example'", "'REJECTED'", "1"]).await;
    app.advance(later());
    count_all(&app).await;
    assert_eq!(attempts(&app, &id).await, 1);
    app.advance(TimeDelta::minutes(5));
    count_all(&app).await;
    let domains = by_domain(&app, &id).await;
    let ended = domains.iter().map(|domain| {
        let name = domain["recipientDomain"].as_str().unwrap();
        (
            name,
            domain["accepted"].as_i64(),
            domain["rejected"].as_i64(),
        )
    });
    let expected = [
        ("a.example", Some(1), Some(0)),
        ("b.example", Some(0), Some(0)),
        ("c.example", Some(0), Some(1)),
    ];
    assert_eq!(ended.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn the_time_of_accepted_calls_is_reported_for_each_domain() {
    let app = quiet().await;
    let id = account(&app).await;
    attempt(
        &app,
        &id,
        100,
        ["'fast.example'", "'ACCEPTED'", "20 + n % 2"],
    )
    .await;
    let slow = "CASE WHEN n < 60 THEN 500 ELSE 8000 END";
    attempt(&app, &id, 90, ["'slow.example'", "'ACCEPTED'", slow]).await;
    attempt(&app, &id, 80, ["'busy.example'", "'THROTTLED'", "9000"]).await;
    app.advance(later());
    count_all(&app).await;
    let domains = by_domain(&app, &id).await;
    assert_eq!(domains[0]["recipientDomain"], "fast.example");
    assert_eq!(domains[1]["recipientDomain"], "slow.example");
    for (nth, p50, p95) in [(0, 20, 20), (1, 500, 8_000)] {
        let latency = &domains[nth]["acceptLatencyMs"];
        let is_near = |name: &str, wanted: i64| {
            let told = latency[name].as_i64().unwrap();
            (told - wanted).abs() * 9 <= wanted
        };
        assert!(is_near("p50", p50) && is_near("p95", p95), "{latency}");
    }
    assert_eq!(domains[2]["acceptLatencyMs"], Value::Null);
    assert_eq!(domains[2]["attempts"], 80);
}

#[tokio::test]
async fn the_busiest_domains_are_shown_and_the_others_together() {
    let app = quiet().await;
    let id = account(&app).await;
    // The domain with the number n gets n mails.
    let triangle = "'d' || floor((1 + sqrt(1 + 8 * n)) / 2) || '.example'";
    attempt(&app, &id, 60 * 61 / 2, [triangle, "'ACCEPTED'", "1"]).await;
    app.advance(later());
    count_all(&app).await;
    let domains = by_domain(&app, &id).await;
    assert_eq!(domains.len(), DOMAINS_MAX + 1);
    assert_eq!(domains[0]["recipientDomain"], "d60.example");
    assert_eq!(domains[49]["recipientDomain"], "d11.example");
    assert_eq!(domains[50]["recipientDomain"], "(other)");
    assert_eq!(domains[50]["attempts"], 55);
    assert_eq!(attempts(&app, &id).await, 60 * 61 / 2);
}

#[tokio::test]
async fn the_domains_of_unknown_accounts_and_windows_are_refused() {
    let app = quiet().await;
    let id = account(&app).await;
    let path = format!("/v1/providers/{id}/health/domains");
    let now = app.clock.now();
    let empty = app.get(&path).await.expect(200);
    assert_eq!(empty["data"], json!([]));
    let time = |name: &str| -> waypost_core::clock::Timestamp {
        empty["window"][name].as_str().unwrap().parse().unwrap()
    };
    assert!(now - time("to") < TimeDelta::milliseconds(1));
    let length = time("to") - time("from");
    assert!(length >= TimeDelta::days(1) && length < TimeDelta::minutes(24 * 60 + 15));
    app.get(&format!("{path}?window=month"))
        .await
        .expect_issues(400, &["window"]);
    let missing = "01900000-0000-7000-8000-000000000001";
    app.get(&format!("/v1/providers/{missing}/health/domains"))
        .await
        .expect_error(404, "NOT_FOUND");
    let other = app.tenant("Other").await.caller;
    other.get(&path).await.expect_error(404, "NOT_FOUND");
}
