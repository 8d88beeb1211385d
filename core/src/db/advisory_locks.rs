//! Advisory locks for a piece of work in the background.

use std::collections::HashSet;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection, PgPool};

use super::leader_lock::KEEPALIVES;
use super::{OrFault, bounded};
use crate::fault::Fault;

const TAKE: &str = "take locks";
const FREE: &str = "free a lock";

/// Advisory locks that belong to a connection of their own: Postgres frees them when
/// that connection ends, however it ends, and finds out where its machine is gone.
pub struct AdvisoryLocks {
    connection: PgConnection,
}

impl AdvisoryLocks {
    /// Takes those of these locks that no other session holds, and says which.
    pub async fn take_free(pool: &PgPool, keys: &[i64]) -> Result<(Self, HashSet<i64>), Fault> {
        let options = PgConnectOptions::clone(&pool.connect_options()).options(KEEPALIVES);
        bounded(TAKE, async {
            let mut connection = options.connect().await.or_fault(TAKE)?;
            let tried = sqlx::query!(
                r#"SELECT key AS "key!", pg_try_advisory_lock(key) AS "taken!"
             FROM UNNEST($1::bigint[]) AS k (key)"#,
                keys,
            )
            .fetch_all(&mut connection)
            .await
            .or_fault(TAKE)?;
            let taken = tried.into_iter().filter(|lock| lock.taken);
            let taken = taken.map(|lock| lock.key).collect();
            Ok((Self { connection }, taken))
        })
        .await
    }

    /// Their connection: a statement on it fails where the locks are lost.
    pub fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    /// Frees one of them.
    ///
    /// # Errors
    /// A fault when the connection is lost, and with it all of them.
    pub async fn free(&mut self, key: i64) -> Result<(), Fault> {
        let unlock = sqlx::query_scalar!(r#"SELECT pg_advisory_unlock($1) AS "freed!""#, key);
        let unlock = unlock.fetch_one(&mut self.connection);
        bounded(FREE, async { unlock.await.or_fault(FREE) }).await?;
        Ok(())
    }

    /// Frees the rest.
    pub async fn release(self) {
        let closing = async { self.connection.close().await.or_fault(FREE) };
        // Postgres frees them with the session. Where this fails the connection is
        // broken, and with it the locks.
        let _closed = bounded(FREE, closing).await;
    }
}
