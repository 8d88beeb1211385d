//! The LIFO pool of connections: see `db::lifo_pool`.

use std::time::Duration;

use futures_util::poll;
use tokio::time::timeout;
use waypost_core::db::lifo_pool::{LifoConnection, LifoPool};
use waypost_core::db::{self, PgConnection};
use waypost_core::fault::Fault;
use waypost_core::secret::Secret;
use waypost_tests::TestDatabase;

const DOING: &str = "try it";
/// Shorter than the pool's own timeout.
const SOON: Duration = Duration::from_secs(1);

async fn lifo_pool(connections: u32) -> (TestDatabase, LifoPool) {
    let database = TestDatabase::create_empty().await;
    let pool = db::routine_pool(&Secret::from(database.url.clone()), connections).unwrap();
    (database, LifoPool::new(pool))
}

async fn soon<T>(work: impl Future<Output = Result<T, Fault>>) -> T {
    let done = timeout(SOON, work).await;
    done.expect("it does not have to wait").unwrap()
}

async fn acquire(pool: &LifoPool) -> LifoConnection {
    soon(pool.acquire(DOING)).await
}

/// The Postgres process of a connection.
async fn pid(connection: &mut PgConnection) -> i32 {
    sqlx::query_scalar("SELECT pg_backend_pid()")
        .fetch_one(connection)
        .await
        .unwrap()
}

#[tokio::test]
async fn the_connection_that_was_used_last_is_used_next() {
    let (database, pool) = lifo_pool(3).await;
    let (mut first, mut second) = (acquire(&pool).await, acquire(&pool).await);
    let (one, two) = (pid(&mut first).await, pid(&mut second).await);
    second.keep();
    first.keep();
    for _ in 0..5 {
        let mut connection = acquire(&pool).await;
        assert_eq!(pid(&mut connection).await, one);
        connection.keep();
    }
    let (_first, mut other) = (acquire(&pool).await, acquire(&pool).await);
    assert_eq!(pid(&mut other).await, two);
    database.remove().await;
}

#[tokio::test]
async fn a_waiting_caller_gets_the_connection_that_becomes_free() {
    let (database, pool) = lifo_pool(1).await;
    let only = acquire(&pool).await;
    let mut waiting = Box::pin(acquire(&pool));
    assert!(poll!(&mut waiting).is_pending());
    only.keep();
    let only = waiting.await;
    let mut beginning = Box::pin(soon(pool.begin(DOING)));
    assert!(poll!(&mut beginning).is_pending());
    only.keep();
    drop(beginning.await);
    // A pooled connection can also start a transaction.
    acquire(&pool).await.keep();
    drop(soon(pool.begin(DOING)).await);
    // A caller that gave up waiting does not block the next one.
    let mut only = acquire(&pool).await;
    let mut waiting = Box::pin(acquire(&pool));
    assert!(poll!(&mut waiting).is_pending());
    drop(waiting);
    let kept = pid(&mut only).await;
    only.keep();
    assert_eq!(pid(&mut *acquire(&pool).await).await, kept);
    database.remove().await;
}

#[tokio::test]
async fn a_connection_that_failed_is_not_kept() {
    let (database, pool) = lifo_pool(1).await;
    let mut connection = acquire(&pool).await;
    let ended = pid(&mut connection).await;
    let other = db::pool(&Secret::from(database.url.clone()), 1).unwrap();
    sqlx::query("SELECT pg_terminate_backend($1)")
        .bind(ended)
        .execute(&other)
        .await
        .unwrap();
    let failed = sqlx::query("SELECT 1").execute(&mut *connection).await;
    assert!(failed.is_err());
    drop(connection);
    let mut connection = acquire(&pool).await;
    assert_ne!(pid(&mut connection).await, ended);
    database.remove().await;
}
