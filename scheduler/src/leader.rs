//! Leadership: one of several schedulers runs the tasks. The leader holds an advisory lock of a
//! Postgres session, so the lock is free as soon as that session ends. Postgres ends the session
//! within 10 s if the leader's machine is gone or its process has stopped. A leader that has
//! lost the lock notices within seconds; until then there may be two leaders, which is harmless
//! because all tasks are idempotent.

use tracing::{info, warn};
use waypost_core::db::PgPool;
use waypost_core::db::leader_lock::LeaderLock;
use waypost_core::fault::Fault;

/// The key of the lock: "waypost" in ASCII, so that other programs are unlikely to use it.
const LOCK_KEY: i64 = 0x0077_6179_706f_7374;

/// Whether this process is the leader.
pub(crate) struct Leadership {
    pool: PgPool,
    lock: Option<LeaderLock>,
    is_leader: bool,
    is_failing: bool,
}

impl Leadership {
    pub(crate) fn new(pool: PgPool) -> Self {
        Self {
            pool,
            lock: None,
            is_leader: false,
            is_failing: false,
        }
    }

    /// Acquires the lock if it is free, and returns whether this process is the leader.
    pub(crate) async fn hold(&mut self) -> bool {
        let was_leader = self.is_leader;
        let held = self.hold_lock().await;
        self.is_leader = matches!(held, Ok(true));
        match (was_leader, self.is_leader) {
            (false, true) => info!("Became the leader"),
            (true, false) => warn!("No longer the leader"),
            (true, true) | (false, false) => {}
        }
        if let Err(fault) = &held {
            // The lock is lost with the connection.
            self.lock = None;
            if !self.is_failing {
                warn!(cause = fault.chain(), "Could not check the leader lock");
            }
        }
        self.is_failing = held.is_err();
        self.is_leader
    }

    async fn hold_lock(&mut self) -> Result<bool, Fault> {
        let lock = match &mut self.lock {
            Some(lock) => lock,
            none @ None => none.insert(LeaderLock::connect(&self.pool, LOCK_KEY).await?),
        };
        lock.hold().await
    }

    /// Releases the lock, so that another scheduler takes over at once.
    pub(crate) async fn release(&mut self) {
        self.is_leader = false;
        if let Some(lock) = self.lock.take() {
            lock.release().await;
        }
    }
}
