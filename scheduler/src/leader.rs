//! Leadership: one scheduler of many does the work. The lock belongs to a session
//! of Postgres, so it is free again the moment that its holder's connection ends,
//! however that happens.

use tracing::{info, warn};
use waypost_core::db::{PgPool, SessionLock};

/// The key of the lock: "waypost" in ASCII, so that others are unlikely to use it.
const LOCK_KEY: i64 = 0x0077_6179_706f_7374;

/// This process's part in who leads.
pub(crate) struct Leadership {
    pool: PgPool,
    lock: Option<SessionLock>,
}

impl Leadership {
    pub(crate) fn new(pool: PgPool) -> Self {
        Self { pool, lock: None }
    }

    /// Whether this process leads now; takes the lead where nobody has it.
    pub(crate) async fn hold(&mut self) -> bool {
        if let Some(lock) = &mut self.lock {
            if lock.is_held().await {
                return true;
            }
            warn!("Lost the lead");
            self.lock = None;
        }
        match SessionLock::try_take(&self.pool, LOCK_KEY).await {
            Ok(Some(lock)) => {
                info!("Leading");
                self.lock = Some(lock);
            }
            Ok(None) => {}
            Err(fault) => warn!(cause = fault.chain(), "Cannot ask for the lead"),
        }
        self.lock.is_some()
    }

    /// Gives the lead up, so that another takes it at once.
    pub(crate) async fn give_up(&mut self) {
        if let Some(lock) = self.lock.take() {
            lock.release().await;
        }
    }
}
