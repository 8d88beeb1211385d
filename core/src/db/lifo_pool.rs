//! A pool that hands out the connection that was used last.
//!
//! sqlx hands out the connection that was unused for longest. So statements that follow
//! each other use all connections in turn, and each runs in a Postgres backend process
//! whose memory is no longer in the processor's cache. With seven connections the
//! statements for a message cost a sixth more than with one (measured in groups of 17).
//! sqlx also pings each connection that is returned: a round trip.
//!
//! This pool *keeps* a connection after successful work and hands it to the next caller. It
//! keeps none while a caller waits for the sqlx pool. It returns a connection to the sqlx
//! pool after a minute, because that pool closes old connections, and if Postgres was away
//! since the connection was handed out; the sqlx pool then closes it. It does both when the
//! next caller comes, so an idle process may hold what it kept. A transaction of several
//! statements uses a connection of the sqlx pool.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, PgPool, PgTransaction, Postgres};
use tokio::time::Instant;

use super::liveness::Liveness;
use super::{OrFault, begin};
use crate::fault::Fault;
use crate::telemetry::instruments;

/// How long a connection is kept.
const KEPT_MAX: Duration = Duration::from_secs(60);

/// The pool. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LifoPool {
    pool: PgPool,
    /// Tells which connections to trust; `None` if the pool trusts all.
    liveness: Option<Liveness>,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The one used last is at the end.
    kept: Vec<Kept>,
    /// The number of callers who wait for the sqlx pool.
    waiting: usize,
}

#[derive(Debug)]
struct Kept {
    connection: PoolConnection<Postgres>,
    from_pool_at: Instant,
}

impl LifoPool {
    /// Wraps a pool that nobody else uses: it lacks the connections that are kept here.
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        Self {
            pool,
            liveness: None,
            shared: Arc::default(),
        }
    }

    /// Wraps a pool that [`Liveness`] watches, as in [`super::watched_pool`].
    #[must_use]
    pub fn watched(pool: PgPool, liveness: Liveness) -> Self {
        Self {
            liveness: Some(liveness),
            ..Self::new(pool)
        }
    }

    /// Runs `work` on a connection, and keeps the connection if the work succeeds.
    ///
    /// # Errors
    /// Those of [`Self::acquire`] and of `work`.
    pub async fn run<T>(
        &self,
        doing: &'static str,
        work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut connection = self.acquire(doing).await?;
        let done = work(&mut connection).await?;
        connection.keep();
        Ok(done)
    }

    /// Returns the connection that was used last, or else one of the sqlx pool.
    ///
    /// # Errors
    /// A fault when Postgres is away or every connection is in use for too long.
    pub async fn acquire(&self, doing: &'static str) -> Result<LifoConnection, Fault> {
        if let Some(liveness) = &self.liveness {
            liveness.mark_used();
        }
        let _waiting = match self.take_or_wait() {
            Ok(kept) => return Ok(self.connection(kept.connection, kept.from_pool_at)),
            Err(waiting) => waiting,
        };
        let asked = Instant::now();
        let connection = self.pool.acquire().await;
        instruments::database_wait(asked.elapsed());
        let connection = connection.or_fault(doing)?;
        Ok(self.connection(connection, Instant::now()))
    }

    /// Begins a transaction, as [`begin`] does.
    ///
    /// # Errors
    /// As [`Self::acquire`].
    pub async fn begin(&self, doing: &'static str) -> Result<PgTransaction<'static>, Fault> {
        let _waiting = self.wait();
        {
            let mut shared = self.shared();
            self.return_old(&mut shared);
            // Returns one to the sqlx pool, for this transaction.
            shared.kept.pop();
        }
        begin(&self.pool, doing).await
    }

    fn connection(
        &self,
        connection: PoolConnection<Postgres>,
        from_pool_at: Instant,
    ) -> LifoConnection {
        LifoConnection {
            connection,
            from_pool_at,
            pool: self.clone(),
        }
    }

    /// Takes the connection that was used last, or else counts the caller as waiting. Both
    /// happen under one lock, because [`LifoConnection::keep`] reads the count.
    fn take_or_wait(&self) -> Result<Kept, Waiting<'_>> {
        let mut shared = self.shared();
        self.return_old(&mut shared);
        let kept = shared.kept.pop();
        kept.ok_or_else(|| {
            shared.waiting += 1;
            Waiting(self)
        })
    }

    /// Returns connections to the sqlx pool that must not be kept any longer.
    fn return_old(&self, shared: &mut Shared) {
        shared.kept.retain(|kept| self.trusts(kept.from_pool_at));
    }

    /// Whether a connection that the sqlx pool handed out at this time may still be used.
    fn trusts(&self, from_pool_at: Instant) -> bool {
        let age = from_pool_at.elapsed();
        age <= KEPT_MAX
            && self
                .liveness
                .as_ref()
                .is_none_or(|liveness| liveness.trusts(age))
    }

    fn wait(&self) -> Waiting<'_> {
        self.shared().waiting += 1;
        Waiting(self)
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A caller who waits for the sqlx pool.
struct Waiting<'a>(&'a LifoPool);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.shared().waiting -= 1;
    }
}

/// A connection in use. When dropped it returns to the sqlx pool.
#[derive(Debug)]
pub struct LifoConnection {
    connection: PoolConnection<Postgres>,
    from_pool_at: Instant,
    pool: LifoPool,
}

impl LifoConnection {
    /// Keeps the connection for the next caller. Call this when the work succeeded.
    pub fn keep(self) {
        let Self {
            connection,
            from_pool_at,
            pool,
        } = self;
        let mut shared = pool.shared();
        if shared.waiting == 0 && pool.trusts(from_pool_at) {
            shared.kept.push(Kept {
                connection,
                from_pool_at,
            });
        }
    }
}

impl Deref for LifoConnection {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for LifoConnection {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}
