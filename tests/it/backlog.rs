//! A backlog: the cost of leasing a chunk does not depend on the number of waiting
//! chunks.

use std::time::Duration;

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, message_to, wait_until};

/// Messages per batch.
const BATCH: usize = 500;
/// Batches in the backlog.
const BATCHES: usize = 4;
/// Index entries of the outbox's key that are read per message: twice by the lease, one
/// to three times by the outcome, by the relay, and for dead row versions.
const READ_MAX: i64 = 10;

async fn number(app: &TestApp, query: &str) -> i64 {
    app.value(query).await.unwrap().parse().unwrap()
}

/// Every second message is rejected, so that other statements record its outcome.
async fn send_batch(app: &TestApp) {
    let messages: Vec<Value> = (0..BATCH)
        .map(|nth| match nth % 2 {
            0 => message_to(&format!("recipient{nth}@example.org")),
            _ => message_to("refuse@example.org"),
        })
        .collect();
    let body = json!({ "messages": messages });
    app.post("/v1/emails/batch", &body).await.expect(200);
}

/// Makes Postgres gather statistics of a nearly empty table with many pages. Postgres
/// keeps them until the next ANALYZE, however many rows are inserted.
async fn analyze_an_empty_outbox(app: &TestApp) {
    send_batch(app).await;
    let last = app.send_to("flaky@example.org").await;
    app.start_worker();
    app.drain().await;
    app.execute("VACUUM outbox").await;
    let believed = |column: &str| format!("SELECT {column} FROM pg_class WHERE relname = 'outbox'");
    assert!(number(app, &believed("relpages")).await > 2);
    assert!(number(app, &believed("reltuples")).await <= 1);
    assert_eq!(app.status(&last).await, "QUEUED");
}

/// Postgres' counters of the outbox.
struct Work {
    /// Index entries of its key that were read.
    read: i64,
    /// Deleted rows, one for each finished message.
    deleted: i64,
}

impl Work {
    async fn read(app: &TestApp) -> Self {
        let read =
            "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'outbox_pkey'";
        let deleted = "SELECT n_tup_del FROM pg_stat_user_tables WHERE relname = 'outbox'";
        Self {
            read: number(app, read).await,
            deleted: number(app, deleted).await,
        }
    }

    fn since(self, before: &Self) -> Self {
        Self {
            read: self.read - before.read,
            deleted: self.deleted - before.deleted,
        }
    }
}

#[tokio::test]
async fn a_lease_reads_only_its_own_rows_whatever_the_backlog() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Mailgun).await;
    analyze_an_empty_outbox(&app).await;
    // The first lease plans the statements.
    app.send_to("first@example.org").await;
    app.drain().await;
    let before = Work::read(&app).await;
    for _ in 0..BATCHES {
        send_batch(&app).await;
    }
    app.drain_within(Duration::from_secs(60)).await;
    // Postgres reports a connection's counters once per second, and the last ones after
    // ten seconds without work: these are left out.
    let most = (BATCHES * BATCH * 3 / 4) as i64;
    wait_until("most of what was done is read", async || {
        Work::read(&app).await.since(&before).deleted >= most
    })
    .await;
    let work = Work::read(&app).await.since(&before);
    let each = work.read / work.deleted;
    assert!(each <= READ_MAX, "{each} entries for each message");
}
