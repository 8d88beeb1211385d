//! Leadership: one scheduler of many does the work. The lock belongs to a session
//! of Postgres, so it is free again the moment that its holder's connection ends,
//! however that happens; Postgres ends it within 10 s when the holder's machine is
//! gone or its process stands still. Whoever leads is told within seconds that it
//! does not any more; until then there may be two, which the tasks must bear.

use tracing::{info, warn};
use waypost_core::db::PgPool;
use waypost_core::db::leader_lock::LeaderLock;
use waypost_core::fault::Fault;

/// The key of the lock: "waypost" in ASCII, so that others are unlikely to use it.
const LOCK_KEY: i64 = 0x0077_6179_706f_7374;

/// This process's part in who leads.
pub(crate) struct Leadership {
    pool: PgPool,
    lock: Option<LeaderLock>,
    leads: bool,
    failing: bool,
}

impl Leadership {
    pub(crate) fn new(pool: PgPool) -> Self {
        Self {
            pool,
            lock: None,
            leads: false,
            failing: false,
        }
    }

    /// Whether this process leads now; takes the lead where nobody has it.
    pub(crate) async fn hold(&mut self) -> bool {
        let led = self.leads;
        let held = self.ask().await;
        self.leads = matches!(held, Ok(true));
        match (led, self.leads) {
            (false, true) => info!("Leading"),
            (true, false) => warn!("Lost the lead"),
            (true, true) | (false, false) => {}
        }
        if let Err(fault) = &held {
            // With the connection the lock is gone.
            self.lock = None;
            if !self.failing {
                warn!(cause = fault.chain(), "Cannot ask for the lead");
            }
        }
        self.failing = held.is_err();
        self.leads
    }

    async fn ask(&mut self) -> Result<bool, Fault> {
        let lock = match &mut self.lock {
            Some(lock) => lock,
            none @ None => none.insert(LeaderLock::connect(&self.pool, LOCK_KEY).await?),
        };
        lock.hold().await
    }

    /// Gives the lead up, so that another takes it at once.
    pub(crate) async fn give_up(&mut self) {
        self.leads = false;
        if let Some(lock) = self.lock.take() {
            lock.release().await;
        }
    }
}
