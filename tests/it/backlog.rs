//! A backlog: what it costs to take a job from it does not depend on how many wait.

use std::time::Duration;

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, message_to, wait_until};

/// Messages of one batch.
const BATCH: usize = 500;
/// Batches of the backlog.
const BATCHES: usize = 4;
/// Entries of the outbox's key that are read for one message: by its claim twice, by its
/// settlement once or three times, by the relay, and what is left of versions of before.
const READ_MAX: i64 = 10;

async fn number(app: &TestApp, query: &str) -> i64 {
    app.value(query).await.unwrap().parse().unwrap()
}

/// Every second one is refused, and so settled by other statements.
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

/// Has Postgres count a table that is all but empty, on many pages: what it then believes
/// of it, it believes until it counts anew, however much comes.
async fn let_postgres_see_an_empty_outbox(app: &TestApp) {
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

/// What Postgres counted of the outbox.
struct Work {
    /// Entries of its key that were read.
    read: i64,
    /// Rows that were deleted, one for each message that came to its end.
    deleted: i64,
}

impl Work {
    async fn counted(app: &TestApp) -> Self {
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
async fn a_claim_reads_its_own_rows_however_many_wait_and_however_few_did() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Mailgun).await;
    let_postgres_see_an_empty_outbox(&app).await;
    // Plans are made with the first claim.
    app.send_to("first@example.org").await;
    app.drain().await;
    let before = Work::counted(&app).await;
    for _ in 0..BATCHES {
        send_batch(&app).await;
    }
    app.drain_within(Duration::from_secs(60)).await;
    // Postgres counts what a connection did once in a second, and the last of it when that
    // has rested for ten: it is left out.
    let most = (BATCHES * BATCH * 3 / 4) as i64;
    wait_until("most of what was done is counted", async || {
        Work::counted(&app).await.since(&before).deleted >= most
    })
    .await;
    let work = Work::counted(&app).await.since(&before);
    let each = work.read / work.deleted;
    assert!(each <= READ_MAX, "{each} entries for each message");
}
