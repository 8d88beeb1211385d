//! Advisory locks for background work.

use std::collections::HashSet;

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection, PgPool};

use super::leader_lock::KEEPALIVES;
use super::session::SessionSettings;
use super::{OrFault, bounded};
use crate::fault::Fault;

const ACQUIRE: &str = "acquire locks";
const RELEASE: &str = "release a lock";

/// Advisory locks with a connection of their own. Postgres releases them when that connection
/// ends, and detects that the machine of the process is gone.
pub struct AdvisoryLocks {
    connection: PgConnection,
}

impl AdvisoryLocks {
    /// Acquires the locks that no other session holds, and returns their keys.
    pub async fn take_free(pool: &PgPool, keys: &[i64]) -> Result<(Self, HashSet<i64>), Fault> {
        let options = PgConnectOptions::clone(&pool.connect_options());
        let settings = SessionSettings::new(KEEPALIVES);
        bounded(ACQUIRE, async {
            let mut connection = settings.connect(&options).await.or_fault(ACQUIRE)?;
            let tried = sqlx::query!(
                r#"SELECT key AS "key!", pg_try_advisory_lock(key) AS "taken!"
             FROM UNNEST($1::bigint[]) AS k (key)"#,
                keys,
            )
            .fetch_all(&mut connection)
            .await
            .or_fault(ACQUIRE)?;
            let taken = tried.into_iter().filter(|lock| lock.taken);
            let taken = taken.map(|lock| lock.key).collect();
            Ok((Self { connection }, taken))
        })
        .await
    }

    /// The connection of the locks. A statement on it fails if the locks are lost.
    pub fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    /// Releases one lock.
    ///
    /// # Errors
    /// A fault if the connection is lost, and with it all locks.
    pub async fn free(&mut self, key: i64) -> Result<(), Fault> {
        let unlock = sqlx::query_scalar!(r#"SELECT pg_advisory_unlock($1) AS "freed!""#, key);
        let unlock = unlock.fetch_one(&mut self.connection);
        bounded(RELEASE, async { unlock.await.or_fault(RELEASE) }).await?;
        Ok(())
    }

    /// Releases all locks.
    pub async fn release(self) {
        let closing = async { self.connection.close().await.or_fault(RELEASE) };
        // The locks end with the session. If the close fails, the session has ended.
        let _closed = bounded(RELEASE, closing).await;
    }
}
