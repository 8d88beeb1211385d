//! The lease of this worker process. It covers all chunks that the worker holds, and a
//! heartbeat renews it.
//!
//! An *epoch* is one registration of the process in Postgres, under an id of its own. A
//! new epoch begins if the lease ends before the heartbeat renews it, or if the worker may
//! hold a chunk in Postgres that none of its jobs knows of. The reaper then takes back the
//! chunks of the old epoch.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use waypost_core::config::SendingSettings;
use waypost_core::db::{self, OrFault, PgPool};
use waypost_core::delivery::lease;
use waypost_core::fault::Fault;
use waypost_core::ids::{Ids, WorkerId};
use waypost_core::ticks::ticks;
use waypost_core::warn_seldom;

/// The wait after Postgres did not answer.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// The lease of this process, through all its epochs. Cheap to clone.
#[derive(Clone)]
pub(crate) struct WorkerLease {
    state: Arc<LeaseState>,
}

struct LeaseState {
    pool: PgPool,
    ids: Ids,
    name: String,
    lease: Duration,
    call_timeout: Duration,
    epoch: Mutex<LeaseEpoch>,
    invalidated: Notify,
    /// Set at shutdown: no further epoch begins.
    released: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
struct LeaseEpoch {
    worker: WorkerId,
    ends_at: Instant,
}

impl WorkerLease {
    /// Registers the worker, as soon as Postgres answers, and renews its lease until
    /// [`WorkerLease::release`]. `None` if `shutdown` comes first.
    pub(crate) async fn start(
        pool: PgPool,
        ids: Ids,
        settings: &SendingSettings,
        shutdown: &CancellationToken,
    ) -> Option<Self> {
        let worker: WorkerId = ids.next();
        let state = Arc::new(LeaseState {
            pool,
            name: format!("worker-{worker}"),
            ids,
            lease: settings.lease,
            call_timeout: settings.call_timeout,
            epoch: Mutex::new(LeaseEpoch {
                worker,
                ends_at: Instant::now(),
            }),
            invalidated: Notify::new(),
            released: AtomicBool::new(false),
        });
        shutdown.run_until_cancelled(state.register()).await?;
        tokio::spawn(renew_regularly(Arc::downgrade(&state), settings.lease / 3));
        Some(Self { state })
    }

    /// The name of this process in the list of workers.
    pub(crate) fn name(&self) -> &str {
        &self.state.name
    }

    /// The id under which chunks may be leased now. `None` if the lease may have ended.
    pub(crate) fn current(&self) -> Option<WorkerId> {
        let worker = self.state.epoch().worker;
        self.may_call(worker).then_some(worker)
    }

    /// Whether a call that begins now ends before the lease of `worker` can end.
    pub(crate) fn may_call(&self, worker: WorkerId) -> bool {
        let epoch = *self.state.epoch();
        if self.state.released.load(Ordering::Acquire) {
            return false;
        }
        let left = epoch.ends_at.saturating_duration_since(Instant::now());
        epoch.worker == worker && left > self.state.call_timeout
    }

    /// Ends the epoch of `worker`, if it is the current one, and begins another. The
    /// reaper takes back what `worker` holds once its lease ends in Postgres.
    pub(crate) fn invalidate(&self, worker: WorkerId) {
        if self.state.begin_epoch_after(worker) {
            warn!(%worker, "Gave up this worker's lease: the reaper will take back its jobs");
            self.state.invalidated.notify_one();
        }
    }

    /// Stops renewing the lease and allows no further call. Returns the id of the last
    /// epoch.
    pub(crate) fn release(&self) -> WorkerId {
        self.state.released.store(true, Ordering::Release);
        self.state.epoch().worker
    }

    /// Removes `worker` from the list of workers, unless it still holds chunks.
    pub(crate) async fn unregister(&self, worker: WorkerId) {
        const DOING: &str = "unregister a worker";
        let unregistering = async {
            let mut transaction = db::begin(&self.state.pool, DOING).await?;
            lease::unregister(&mut transaction, worker).await?;
            transaction.commit().await.or_fault(DOING)
        };
        if let Err(fault) = unregistering.await {
            warn!(
                cause = fault.chain(),
                "This worker stays on the list of workers until its lease ends"
            );
        }
    }
}

/// Renews the lease until it is released or the last [`WorkerLease`] is dropped.
async fn renew_regularly(state: Weak<LeaseState>, every: Duration) {
    let mut ticks = ticks(every);
    while let Some(state) = state.upgrade() {
        if state.released.load(Ordering::Acquire) {
            return;
        }
        tokio::select! {
            _ = ticks.tick() => {
                if !state.renew().await {
                    ticks.reset_after(RETRY_AFTER);
                }
            }
            () = state.invalidated.notified() => state.register().await,
        }
    }
}

impl LeaseState {
    fn epoch(&self) -> MutexGuard<'_, LeaseEpoch> {
        self.epoch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn extend(&self, worker: WorkerId, ends_at: Instant) {
        let mut epoch = self.epoch();
        if epoch.worker == worker {
            epoch.ends_at = ends_at;
        }
    }

    /// Replaces the epoch of `worker`, if it is the current one, by one that is not
    /// registered yet. Returns whether it did.
    fn begin_epoch_after(&self, worker: WorkerId) -> bool {
        let mut epoch = self.epoch();
        let is_current = epoch.worker == worker;
        if is_current {
            *epoch = LeaseEpoch {
                worker: self.ids.next(),
                ends_at: Instant::now(),
            };
        }
        is_current
    }

    /// Renews the lease, or begins another epoch if it has ended. False if Postgres did
    /// not answer.
    async fn renew(&self) -> bool {
        let worker = self.epoch().worker;
        let asked_at = Instant::now();
        match self.try_renew(worker).await {
            Ok(true) => {
                self.extend(worker, asked_at + self.lease);
                true
            }
            Ok(false) => {
                warn!(%worker, "This worker's lease has ended: the reaper takes back its jobs");
                self.begin_epoch_after(worker);
                self.register().await;
                true
            }
            Err(fault) => {
                warn_seldom!(cause = fault.chain(), "Cannot renew this worker's lease");
                false
            }
        }
    }

    async fn try_renew(&self, worker: WorkerId) -> Result<bool, Fault> {
        const DOING: &str = "renew a worker's lease";
        db::bounded(DOING, async {
            let mut connection = self.pool.acquire().await.or_fault(DOING)?;
            lease::renew(&mut connection, worker, self.lease).await
        })
        .await
    }

    /// Registers the current epoch, as soon as Postgres answers.
    async fn register(&self) {
        loop {
            let worker = self.epoch().worker;
            let asked_at = Instant::now();
            match self.try_register(worker).await {
                Ok(()) => {
                    self.extend(worker, asked_at + self.lease);
                    info!(%worker, "Registered this worker");
                    return;
                }
                Err(fault) => {
                    warn_seldom!(cause = fault.chain(), "Cannot register this worker");
                    // Postgres may have committed the row all the same. The next try
                    // uses another id, so that it cannot conflict with that row.
                    self.begin_epoch_after(worker);
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        }
    }

    async fn try_register(&self, worker: WorkerId) -> Result<(), Fault> {
        const DOING: &str = "register a worker";
        db::bounded(DOING, async {
            let mut connection = self.pool.acquire().await.or_fault(DOING)?;
            lease::register(&mut connection, worker, &self.name, self.lease).await
        })
        .await
    }
}
