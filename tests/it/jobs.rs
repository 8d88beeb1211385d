//! Jobs that cannot be done, and jobs that Redis cannot bring: poisoned ones are
//! parked and the operator decides, a worker that leaves gives back what it has, and
//! mail goes out while Redis is away or takes no writes.

mod leaving;
mod operator;
mod parked;
mod redis_away;
mod redis_refuses;

use waypost_tests::TestApp;

async fn number(app: &TestApp, query: &str) -> i64 {
    app.value(query).await.unwrap().parse().unwrap()
}

async fn of_chunk(app: &TestApp, column: &str, id: &str) -> Option<String> {
    let query = format!("SELECT {column} FROM outbox WHERE message_id = '{id}' AND chunk = 0");
    app.value(&query).await
}

async fn losses(app: &TestApp, id: &str) -> Option<String> {
    of_chunk(app, "losses", id).await
}

async fn is_parked(app: &TestApp, id: &str) -> bool {
    of_chunk(app, "parked_at IS NOT NULL", id).await.as_deref() == Some("true")
}

/// Parks the one chunk of a message by what parks it in truth: five workers die over it.
async fn park(app: &TestApp, id: &str) {
    for death in 1..=5 {
        die_with(app, &[id], Some(id)).await;
        waypost_tests::wait_until("the chunk was taken back", async || {
            losses(app, id).await == Some(death.to_string())
        })
        .await;
    }
    assert!(is_parked(app, id).await);
}

/// A worker that holds these chunks, has begun with one of them where that one is a
/// suspect, and gives no sign of life any more.
async fn die_with(app: &TestApp, ids: &[&str], begun: Option<&str>) {
    let list: Vec<String> = ids.iter().map(|id| format!("'{id}'")).collect();
    let (list, begun) = (list.join(", "), begun.unwrap_or_default());
    app.execute(&format!(
        "BEGIN;
         CREATE TEMP TABLE dead ON COMMIT DROP AS SELECT gen_random_uuid() AS id;
         INSERT INTO workers
         SELECT id, 'worker-of-a-test', now() - interval '1 minute', now() - interval '1 second'
         FROM dead;
         UPDATE recipients SET status = 'SENDING' WHERE message_id IN ({list}) AND status = 'QUEUED';
         UPDATE outbox
         SET leased_by = (SELECT id FROM dead),
             begun_at = CASE WHEN losses >= 2 AND message_id::text = '{begun}' THEN now() END
         WHERE message_id IN ({list}) AND parked_at IS NULL;
         COMMIT"
    ))
    .await;
}
