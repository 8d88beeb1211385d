//! Tenure: the span in which this process may act on its leases. A heartbeat moves
//! its end on. When the end cannot be moved any more, or something has gone wrong
//! that may have left a lease behind which nobody here knows of, a new tenure
//! begins; the reaper takes back what the old one still held.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use waypost_core::config::SendingSettings;
use waypost_core::db::{self, OrFault, PgPool};
use waypost_core::delivery::lease;
use waypost_core::fault::Fault;
use waypost_core::ids::{Ids, WorkerId};
use waypost_core::warn_seldom;

/// How long to wait before Postgres is asked again.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// The tenures of this process, one after the other. Cheap to clone.
#[derive(Clone)]
pub(crate) struct WorkerLease {
    shared: Arc<LeaseState>,
}

struct LeaseState {
    pool: PgPool,
    ids: Ids,
    name: String,
    lease: Duration,
    call_timeout: Duration,
    current: Mutex<LeaseEpoch>,
    given_up: Notify,
    /// Whether this process has done with leases for good.
    resigned: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
struct LeaseEpoch {
    worker: WorkerId,
    ends_at: Instant,
}

impl WorkerLease {
    /// Begins the first tenure, waiting for Postgres if it must, and keeps it up
    /// until `shutdown` and beyond, as long as jobs run. Nothing where the process
    /// is told to stop before.
    pub(crate) async fn begin(
        pool: PgPool,
        ids: Ids,
        settings: &SendingSettings,
        shutdown: &CancellationToken,
    ) -> Option<Self> {
        let worker: WorkerId = ids.next();
        let tenures = Self {
            shared: Arc::new(LeaseState {
                pool,
                name: format!("worker-{worker}"),
                ids,
                lease: settings.lease,
                call_timeout: settings.call_timeout,
                current: Mutex::new(LeaseEpoch {
                    worker,
                    ends_at: Instant::now(),
                }),
                given_up: Notify::new(),
                resigned: AtomicBool::new(false),
            }),
        };
        shutdown
            .run_until_cancelled(tenures.shared.register())
            .await?;
        tokio::spawn(keep_up(Arc::downgrade(&tenures.shared), settings.lease / 3));
        Some(tenures)
    }

    /// The name of this process among workers.
    pub(crate) fn name(&self) -> &str {
        &self.shared.name
    }

    /// Who may lease now; nobody while the tenure may have ended.
    pub(crate) fn current(&self) -> Option<WorkerId> {
        let tenure = self.shared.tenure();
        self.may_call(tenure.worker).then_some(tenure.worker)
    }

    /// Whether a call that begins now ends before the leases of `worker` can.
    pub(crate) fn may_call(&self, worker: WorkerId) -> bool {
        let tenure = self.shared.tenure();
        if self.shared.resigned.load(Ordering::Acquire) {
            return false;
        }
        let left = tenure.ends_at.saturating_duration_since(Instant::now());
        tenure.worker == worker && left > self.shared.call_timeout
    }

    /// Gives up the tenure of `worker`, if it is the current one: what it holds is
    /// taken back once its leases end.
    pub(crate) fn give_up(&self, worker: WorkerId) {
        if self.shared.replace(worker) {
            warn!(%worker, "Gave up the leases of this tenure");
            self.shared.given_up.notify_one();
        }
    }

    /// Begins no call and no tenure from here on; answers whose the last one was.
    pub(crate) fn resign(&self) -> WorkerId {
        self.shared.resigned.store(true, Ordering::Release);
        self.shared.tenure().worker
    }

    /// Ends the last tenure: takes this process off the list of workers, unless it
    /// still holds leases.
    pub(crate) async fn end(&self, worker: WorkerId) {
        let ended = async {
            let mut transaction = db::begin(&self.shared.pool, "end a tenure").await?;
            lease::unregister(&mut transaction, worker).await?;
            transaction.commit().await.or_fault("end a tenure")
        };
        if let Err(fault) = ended.await {
            warn!(
                cause = fault.chain(),
                "This worker stays on the list until its leases end"
            );
        }
    }
}

/// Renews the tenure until the process lets go of it.
async fn keep_up(shared: std::sync::Weak<LeaseState>, every: Duration) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while let Some(shared) = shared.upgrade() {
        if shared.resigned.load(Ordering::Acquire) {
            return;
        }
        tokio::select! {
            _ = ticks.tick() => {
                if !shared.renew().await {
                    ticks.reset_after(TRY_AGAIN_AFTER);
                }
            }
            () = shared.given_up.notified() => shared.register().await,
        }
    }
}

impl LeaseState {
    fn tenure(&self) -> LeaseEpoch {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn extend(&self, worker: WorkerId, ends_at: Instant) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.worker == worker {
            current.ends_at = ends_at;
        }
    }

    /// Puts a new tenure, not begun yet, in the place of that of `worker`.
    fn replace(&self, worker: WorkerId) -> bool {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = current.worker == worker;
        if is_current {
            *current = LeaseEpoch {
                worker: self.ids.next(),
                ends_at: Instant::now(),
            };
        }
        is_current
    }

    /// Renews the tenure, or begins another where it has ended; false where Postgres was
    /// away.
    async fn renew(&self) -> bool {
        let worker = self.tenure().worker;
        let asked_at = Instant::now();
        match self.try_renew(worker).await {
            Ok(true) => {
                self.extend(worker, asked_at + self.lease);
                true
            }
            Ok(false) => {
                warn!(%worker, "The leases of this tenure have ended");
                self.replace(worker);
                self.register().await;
                true
            }
            Err(fault) => {
                warn_seldom!(cause = fault.chain(), "A heartbeat failed");
                false
            }
        }
    }

    async fn try_renew(&self, worker: WorkerId) -> Result<bool, Fault> {
        db::bounded("renew a tenure", async {
            let mut connection = self.pool.acquire().await.or_fault("renew a tenure")?;
            lease::renew(&mut connection, worker, self.lease).await
        })
        .await
    }

    /// Registers the current tenure, as soon as Postgres lets it.
    async fn register(&self) {
        loop {
            let worker = self.tenure().worker;
            let asked_at = Instant::now();
            match self.try_register(worker).await {
                Ok(()) => {
                    self.extend(worker, asked_at + self.lease);
                    info!(%worker, "A tenure begins");
                    return;
                }
                Err(fault) => {
                    warn_seldom!(cause = fault.chain(), "Cannot register this worker");
                    // The row may have been written all the same: a fresh id
                    // makes the next try a clean one.
                    self.replace(worker);
                    tokio::time::sleep(TRY_AGAIN_AFTER).await;
                }
            }
        }
    }

    async fn try_register(&self, worker: WorkerId) -> Result<(), Fault> {
        db::bounded("register a worker", async {
            let mut connection = self.pool.acquire().await.or_fault("register a worker")?;
            lease::register(&mut connection, worker, &self.name, self.lease).await
        })
        .await
    }
}
