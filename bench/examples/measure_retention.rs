//! Measures what API callers notice when months are created and dropped: the response
//! times of sends before, while and after a month with a million messages is dropped and
//! months are created.
//!
//! ```text
//! WAYPOST_TEST_DATABASE_URL=… WAYPOST_TEST_REDIS_URL=… \
//!     cargo run -p waypost-bench --example measure_retention [messages of the old month]
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;
use waypost_core::clock::Timestamp;
use waypost_core::config::RetentionSettings;
use waypost_core::partition::{self, DropOutcome, Month};
use waypost_core::provider::kind::ProviderType;
use waypost_core::retention::Retention;
use waypost_tests::{TestApp, message_to};

/// Default number of messages in the old month.
const MESSAGES: u32 = 1_000_000;
/// Messages in the current month.
const PRESENT: u32 = 200_000;
/// Messages per INSERT.
const STEP: u32 = 50_000;
/// Concurrent senders.
const SENDERS: usize = 32;
/// Duration of a phase in which nothing but sends happens.
const PHASE: Duration = Duration::from_secs(5);
/// The old month.
const OLD: &str = "2020-01-01Z";

#[tokio::main]
async fn main() {
    let argument = std::env::args().nth(1);
    let messages = argument
        .and_then(|count| count.parse().ok())
        .unwrap_or(MESSAGES);
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .setting("WAYPOST_DATABASE_CONNECTIONS", "16")
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    app.execute(&format!("SELECT waypost_create_partitions('{OLD}', 1)"))
        .await;
    let begun = Instant::now();
    add(&app, OLD, messages).await;
    add(&app, "date_trunc('month', now(), 'UTC')", PRESENT).await;
    app.execute("ANALYZE; CHECKPOINT").await;
    println!(
        "filled {messages} messages in {:.1} s",
        begun.elapsed().as_secs_f64()
    );

    phase(&app, "warm-up", tokio::time::sleep(PHASE)).await;
    phase(&app, "before", tokio::time::sleep(PHASE)).await;
    phase(&app, "create 8 months", create(&app)).await;
    phase(&app, "drop the month", drop_old(&app)).await;
    phase(&app, "after", tokio::time::sleep(PHASE)).await;
    app.execute(&format!("SELECT waypost_create_partitions('{OLD}', 1)"))
        .await;
    add(&app, OLD, messages / 50).await;
    phase(&app, "delete one by one", delete(&app)).await;
    app.leave_work();
}

/// Sends until `meanwhile` ends, and prints the response times.
async fn phase(app: &TestApp, name: &str, meanwhile: impl Future<Output = ()>) {
    let is_over = AtomicBool::new(false);
    let begun = Instant::now();
    let senders = join_all((0..SENDERS).map(|_| send(app, &is_over)));
    let until_over = async {
        meanwhile.await;
        let took = begun.elapsed();
        // Long enough for figures, even if `meanwhile` was quick.
        tokio::time::sleep(Duration::from_secs(2).saturating_sub(took)).await;
        is_over.store(true, Ordering::SeqCst);
        took
    };
    let (times, took) = tokio::join!(senders, until_over);
    let mut times: Vec<Duration> = times.into_iter().flatten().collect();
    times.sort_unstable();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1_000.0;
    println!(
        "{name:<18} took {:6.2} s; {:5} sends, {:5.0}/s: p50 {:.1} ms, p99 {:.1} ms, longest {:.1} ms",
        took.as_secs_f64(),
        times.len(),
        times.len() as f64 / begun.elapsed().as_secs_f64(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
}

async fn send(app: &TestApp, is_over: &AtomicBool) -> Vec<Duration> {
    let message = message_to("ada@example.org");
    let mut times = Vec::new();
    while !is_over.load(Ordering::SeqCst) {
        let begun = Instant::now();
        app.post("/v1/send", &message).await.expect(202);
        times.push(begun.elapsed());
    }
    times
}

async fn create(app: &TestApp) {
    let made = partition::create_ahead(&app.pool, app.clock.now(), 11).await;
    assert!(made.expect("months can be made") > 0, "none were missing");
}

async fn drop_old(app: &TestApp) {
    let old: Timestamp = "2020-01-15T00:00:00Z".parse().expect("a time");
    let ending = partition::drop_month(&app.pool, Month::of(old)).await;
    assert_eq!(
        ending.expect("a month can be dropped"),
        DropOutcome::Dropped
    );
}

async fn delete(app: &TestApp) {
    app.execute("UPDATE organizations SET retention_days = 30")
        .await;
    let retention = Retention {
        pool: app.pool.clone(),
        clock: app.clock.clone(),
        settings: RetentionSettings::default(),
    };
    let deleted = retention.delete_expired(Duration::from_secs(20)).await;
    println!(
        "deleted {} one by one",
        deleted.expect("messages can be deleted")
    );
}

/// Adds messages to a month, with their bodies, recipients and events, in small steps.
async fn add(app: &TestApp, month: &str, count: u32) {
    for first in (0..count).step_by(STEP as usize) {
        add_step(app, month, first + 1, count.min(first + STEP)).await;
    }
}

async fn add_step(app: &TestApp, month: &str, first: u32, last: u32) {
    let month = match month {
        OLD => format!("'{OLD}'"),
        expression => expression.to_owned(),
    };
    let count = last + 1 - first;
    let organization = app.organization_id();
    let ids = format!(
        "SELECT (substr(waypost_uuid_floor({month}::timestamptz + n * interval '1 millisecond')::text, 1, 14)
                     || '7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid AS id, n
         FROM generate_series({first}, {last}) AS n"
    );
    let html = "repeat(md5(n::text), 30)";
    app.execute(&format!(
        "SET session_replication_role = replica;
         INSERT INTO messages (id, organization_id, provider_account_id, from_address, to_hash, subject, status,
                               tags, recipient_count, created_at)
         SELECT id, '{organization}', gen_random_uuid(), 'news@example.com', sha256('a'), 'Old ' || n,
                'DELIVERED', '{{}}', 1, now() FROM ({ids}) i;
         INSERT INTO message_count_deltas VALUES ('{organization}', 'DELIVERED', {count});
         INSERT INTO message_bodies (message_id, organization_id, from_mailbox, html)
         SELECT id, '{organization}', 'news@example.com', {html} FROM ({ids}) i;
         INSERT INTO recipients (message_id, position, organization_id, address_sealed, address_hash, status, next_attempt_at)
         SELECT id, 0, '{organization}', sha256(n::text::bytea), sha256(n::text::bytea), 'DELIVERED', now() FROM ({ids}) i;
         INSERT INTO events (message_id, id, organization_id, position, event_type, occurred_at)
         SELECT id, gen_random_uuid(), '{organization}', 0, t::event_type, now()
         FROM ({ids}) i CROSS JOIN UNNEST(ARRAY['QUEUED', 'SENT', 'DELIVERED']) AS t;
         INSERT INTO send_attempts (message_id, id, organization_id, position, provider_account_id, started_at, outcome)
         SELECT id, gen_random_uuid(), '{organization}', 0, gen_random_uuid(), now(), 'ACCEPTED' FROM ({ids}) i;
         RESET session_replication_role"
    ))
    .await;
}
