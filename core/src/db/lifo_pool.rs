//! A pool whose connection that was used last is used next.
//!
//! sqlx hands out the connection that has rested longest, and asks each for a sign of life
//! when it comes back. So statements that come one after the other visit all connections
//! in turn, and each visit finds a process of Postgres whose memory has gone cold: at
//! seven connections the statements on a message's way cost a sixth more than on one
//! (measured in groups of 17), and the sign of life is a round trip of its own.
//!
//! Here a connection whose work went well is *kept* for whoever comes next, unless somebody
//! waits for the pool. One that was open when Postgres was away goes back to the pool,
//! which closes it; so does one that was kept for a minute, since the pool ends those that
//! are old. Both happen when somebody next asks: an idle process may hold what it kept.
//! Transactions of several statements have their connections from the pool.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, PgPool, PgTransaction, Postgres};
use tokio::time::Instant;

use super::liveness::Liveness;
use super::{OrFault, begin};
use crate::fault::Fault;

/// How long a connection is kept from the pool.
const KEPT_MAX: Duration = Duration::from_secs(60);

/// The pool. Cheap to clone.
#[derive(Debug, Clone)]
pub struct WarmPool {
    pool: PgPool,
    /// What the pool itself goes by, where it goes by any.
    liveness: Option<Liveness>,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The one used last is at the end.
    kept: Vec<Kept>,
    /// Callers who wait for the pool.
    waiting: usize,
}

#[derive(Debug)]
struct Kept {
    connection: PoolConnection<Postgres>,
    from_pool_at: Instant,
}

impl WarmPool {
    /// Over a pool that nobody else uses: what is kept here would be missing there.
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        Self {
            pool,
            liveness: None,
            shared: Arc::default(),
        }
    }

    /// The same, over a pool that goes by this pulse.
    #[must_use]
    pub fn watched(pool: PgPool, liveness: Liveness) -> Self {
        Self {
            liveness: Some(liveness),
            ..Self::new(pool)
        }
    }

    /// Works on a connection, the one used last if it is there, and keeps it for whoever
    /// comes next if the work went well.
    ///
    /// # Errors
    /// As [`Self::acquire`], and those of the work.
    pub async fn run<T>(
        &self,
        doing: &'static str,
        work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut warm = self.acquire(doing).await?;
        let done = work(&mut warm).await?;
        warm.keep();
        Ok(done)
    }

    /// A connection, the one used last if it is there.
    ///
    /// # Errors
    /// A fault when Postgres is away or every connection is in use for too long.
    pub async fn acquire(&self, doing: &'static str) -> Result<Warm, Fault> {
        let _waiting = match self.take_or_wait() {
            Ok(kept) => return Ok(self.warm(kept.connection, kept.from_pool_at)),
            Err(waiting) => waiting,
        };
        let connection = self.pool.acquire().await.or_fault(doing)?;
        Ok(self.warm(connection, Instant::now()))
    }

    /// Begins a transaction, as [`begin`] does.
    ///
    /// # Errors
    /// As [`Self::acquire`].
    pub async fn begin(&self, doing: &'static str) -> Result<PgTransaction<'static>, Fault> {
        let _waiting = self.wait();
        {
            let mut shared = self.shared();
            self.let_go(&mut shared);
            // One for the pool to hand out.
            shared.kept.pop();
        }
        begin(&self.pool, doing).await
    }

    fn warm(&self, connection: PoolConnection<Postgres>, from_pool_at: Instant) -> Warm {
        Warm {
            connection,
            from_pool_at,
            home: self.clone(),
        }
    }

    /// The connection used last, or else a place among those who wait: in one step, since
    /// whoever keeps a connection looks whether anybody waits.
    fn take_or_wait(&self) -> Result<Kept, Waiting<'_>> {
        let mut shared = self.shared();
        self.let_go(&mut shared);
        let kept = shared.kept.pop();
        kept.ok_or_else(|| {
            shared.waiting += 1;
            Waiting(self)
        })
    }

    /// Gives back to the pool what was kept for too long.
    fn let_go(&self, shared: &mut Shared) {
        shared.kept.retain(|kept| self.trusts(kept.from_pool_at));
    }

    /// Whether a connection that the pool handed out then may still be used as it is.
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

/// A caller who waits for the pool.
struct Waiting<'a>(&'a WarmPool);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.shared().waiting -= 1;
    }
}

/// A connection in use. It goes back to the pool, unless it is kept.
#[derive(Debug)]
pub struct Warm {
    connection: PoolConnection<Postgres>,
    from_pool_at: Instant,
    home: WarmPool,
}

impl Warm {
    /// Keeps the connection for whoever comes next. To be called when its work went well.
    pub fn keep(self) {
        let Self {
            connection,
            from_pool_at,
            home,
        } = self;
        let mut shared = home.shared();
        if shared.waiting == 0 && home.trusts(from_pool_at) {
            shared.kept.push(Kept {
                connection,
                from_pool_at,
            });
        }
    }
}

impl Deref for Warm {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for Warm {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}
