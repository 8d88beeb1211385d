//! Jobs that cannot be done, and jobs that Redis cannot deliver: poison jobs become dead
//! letters and the operator decides, a worker that shuts down releases its work, and
//! messages are sent while Redis is down or refuses writes.

mod dead_letters;
mod operator;
mod redis_away;
mod redis_refuses;
mod shutdown;

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

async fn is_dead_letter(app: &TestApp, id: &str) -> bool {
    of_chunk(app, "dead_at IS NOT NULL", id).await.as_deref() == Some("true")
}

/// Makes the one chunk of a message a dead letter in the real way: five workers die of
/// it.
async fn make_dead_letter(app: &TestApp, id: &str) {
    for death in 1..=5 {
        die_with(app, &[id], Some(id)).await;
        waypost_tests::wait_until("the chunk was taken back", async || {
            losses(app, id).await == Some(death.to_string())
        })
        .await;
    }
    assert!(is_dead_letter(app, id).await);
}

/// A worker that leases these chunks, has started `begun` if that one is quarantined, and
/// then stops renewing its lease.
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
         WHERE message_id IN ({list}) AND dead_at IS NULL;
         COMMIT"
    ))
    .await;
}
