//! Delivering webhooks.
//!
//! The *usher* hears from Postgres at which endpoints something is due, leases those
//! that nobody serves, and opens a *lane* for each. A lane is all that is done for
//! one endpoint, so that none waits for another: it reads what is due, makes some
//! *calls* at a time, and hands what came of them to the *records*, which share
//! transactions. An idle lane lingers for a moment and ends.
//!
//! Nothing here is known only here: a worker that dies leaves deliveries that are
//! still due, and a notification that is missed is repeated by the scheduler.

mod call;
mod endpoint_deliverer;
mod poll_schedule;
mod result_recorder;

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};
use waypost_core::clock::Clock;
use waypost_core::config::Settings;
use waypost_core::crypto::seal::Sealer;
use waypost_core::db::{self, Listener, OrFault, PgPool};
use waypost_core::fault::Fault;
use waypost_core::ids::{Ids, WebhookEndpointId, WorkerId};
use waypost_core::organization::limiter::TenantLimiter;
use waypost_core::webhook::client::WebhookClient;
use waypost_core::webhook::engine::{CHANNEL, EndpointNotification, store};

use crate::worker_lease::WorkerLease;
use endpoint_deliverer::EndpointDeliverer;
use result_recorder::ResultRecorder;

/// Connections to Postgres of their own, so that sending and webhooks do not keep
/// each other waiting.
const CONNECTIONS: u32 = 4;
/// Calls of one worker at once, to all endpoints together, and to those of one
/// organization.
const CALLS_MAX: usize = 1_024;
const CALLS_EACH: usize = 64;
/// Endpoints that one worker serves at once.
const LANES_MAX: usize = 2_000;
/// Notifications that may wait to be looked at; those beyond it are repeated by the
/// scheduler.
const NEWS_MAX: usize = 16_384;
/// Notifications looked at together.
const NEWS_TOGETHER: usize = 1_000;
/// How long after somebody else was found to serve an endpoint it is not tried again.
/// Shorter than a lane lingers, and whoever serves it hears of everything too.
const LEFT_TO_OTHERS: Duration = Duration::from_secs(1);
/// How long after a lost connection listening is tried again.
const LISTEN_AGAIN: Duration = Duration::from_millis(500);
/// How often, and how long apart, the lease of an endpoint is given back.
const RELEASES: u32 = 20;
const RELEASE_AGAIN: Duration = Duration::from_millis(500);

/// What all lanes share.
struct Engine {
    pool: PgPool,
    sealer: Sealer,
    client: WebhookClient,
    tenures: WorkerLease,
    records: ResultRecorder,
    shares: TenantLimiter,
    clock: Clock,
    ids: Ids,
    shutdown: CancellationToken,
}

/// The delivering of webhooks, under way.
pub(crate) struct Webhooks {
    usher: JoinHandle<()>,
}

impl Webhooks {
    /// Starts to deliver, until `shutdown`.
    ///
    /// # Errors
    /// A fault when the configuration cannot be used.
    pub(crate) fn start(
        settings: &Settings,
        clock: Clock,
        tenures: WorkerLease,
        shutdown: CancellationToken,
    ) -> Result<Self, Fault> {
        let pool = db::routine_pool(&settings.database_url, CONNECTIONS)?;
        let ids = Ids::new(clock.clone());
        let engine = Engine {
            sealer: settings.sealer.clone(),
            client: WebhookClient::new(&settings.webhooks, clock.clone())?,
            tenures,
            records: ResultRecorder::start(pool.clone(), ids.clone(), clock.clone()),
            shares: TenantLimiter::new(CALLS_MAX, CALLS_EACH),
            clock,
            ids,
            shutdown: shutdown.clone(),
            pool: pool.clone(),
        };
        let (sender, receiver) = mpsc::channel(NEWS_MAX);
        tokio::spawn(listen(pool, sender, shutdown));
        let usher = WebhookDispatcher {
            engine: Arc::new(engine),
            lanes: JoinSet::new(),
            open: HashMap::new(),
            left_to_others: HashMap::new(),
        };
        Ok(Self {
            usher: tokio::spawn(usher.run(receiver)),
        })
    }

    /// Waits until the calls under way at the shutdown have ended and are recorded, at
    /// most so long. What is left is made again by others.
    pub(crate) async fn ended(mut self, within: Duration) {
        if tokio::time::timeout(within, &mut self.usher).await.is_err() {
            warn!("Webhook calls were still under way at the end; they will be made again");
            self.usher.abort();
        }
    }
}

/// Hears what Postgres tells, over a connection of its own.
async fn listen(pool: PgPool, sender: mpsc::Sender<Heard>, shutdown: CancellationToken) {
    while let Some(fault) = shutdown
        .run_until_cancelled(listen_once(&pool, &sender))
        .await
    {
        debug!(
            cause = fault.chain(),
            "Not told of due webhooks; will listen again"
        );
        let pause = tokio::time::sleep(LISTEN_AGAIN);
        if shutdown.run_until_cancelled(pause).await.is_none() {
            return;
        }
    }
}

async fn listen_once(pool: &PgPool, sender: &mpsc::Sender<Heard>) -> Fault {
    let mut listener = match Listener::connect(pool, CHANNEL).await {
        Ok(listener) => listener,
        Err(fault) => return fault,
    };
    info!("Listening for due webhooks");
    // What was told before may concern any endpoint.
    let _ended = sender.send(Heard::Gap).await;
    loop {
        match listener.recv().await {
            Ok(Some(text)) => {
                let Some(news) = EndpointNotification::parse(&text) else {
                    continue;
                };
                let is_lost = sender.try_send(Heard::EndpointNotification(news)).is_err();
                // That something is due the scheduler tells again, and nothing else.
                if is_lost && matches!(news, EndpointNotification::Changed(_)) {
                    let _ended = sender.send(Heard::Gap).await;
                }
            }
            Ok(None) => {}
            Err(fault) => return fault,
        }
    }
}

/// What the usher is told.
#[derive(Debug, Clone, Copy)]
enum Heard {
    EndpointNotification(EndpointNotification),
    /// News may have been missed.
    Gap,
}

/// How a lane hears that it should look.
#[derive(Default)]
struct Wakeup {
    rung: Notify,
    due: AtomicBool,
    changed: AtomicBool,
}

impl Wakeup {
    fn ring(&self, news: EndpointNotification) {
        match news {
            EndpointNotification::Due(_) => self.due.store(true, Ordering::SeqCst),
            EndpointNotification::Changed(_) => self.changed.store(true, Ordering::SeqCst),
        }
        self.rung.notify_one();
    }

    fn was_rung(&self) -> bool {
        self.due.load(Ordering::SeqCst) || self.changed.load(Ordering::SeqCst)
    }
}

struct WebhookDispatcher {
    engine: Arc<Engine>,
    lanes: JoinSet<WebhookEndpointId>,
    open: HashMap<WebhookEndpointId, Arc<Wakeup>>,
    /// Endpoints that others serve, or nobody may now, and until when that is
    /// believed.
    left_to_others: HashMap<WebhookEndpointId, Instant>,
}

impl WebhookDispatcher {
    async fn run(mut self, mut receiver: mpsc::Receiver<Heard>) {
        let shutdown = self.engine.shutdown.clone();
        let mut news = Vec::with_capacity(NEWS_TOGETHER);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                _ = receiver.recv_many(&mut news, NEWS_TOGETHER) => {
                    self.hear(&news).await;
                    news.clear();
                }
                Some(Ok(id)) = self.lanes.join_next() => self.close(id).await,
            }
        }
        while self.lanes.join_next().await.is_some() {}
    }

    async fn hear(&mut self, heard: &[Heard]) {
        let now = Instant::now();
        self.left_to_others.retain(|_, until| *until > now);
        let mut wanted = HashSet::new();
        for heard in heard {
            let Heard::EndpointNotification(news) = heard else {
                let open = self.open.iter();
                open.for_each(|(id, bell)| bell.ring(EndpointNotification::Changed(*id)));
                continue;
            };
            let (EndpointNotification::Due(id) | EndpointNotification::Changed(id)) = *news;
            if let Some(bell) = self.open.get(&id) {
                bell.ring(*news);
            } else if matches!(news, EndpointNotification::Changed(_))
                || !self.left_to_others.contains_key(&id)
            {
                wanted.insert(id);
            }
        }
        self.lease(wanted).await;
    }

    async fn lease(&mut self, wanted: HashSet<WebhookEndpointId>) {
        let room = LANES_MAX.saturating_sub(self.open.len());
        let wanted: Vec<WebhookEndpointId> = wanted.into_iter().take(room).collect();
        let Some(worker) = self.engine.tenures.current().filter(|_| !wanted.is_empty()) else {
            return;
        };
        let leased = match self.engine.lease(worker, &wanted).await {
            Ok(leased) => leased,
            Err(fault) => {
                debug!(
                    cause = fault.chain(),
                    "Webhook endpoints could not be leased"
                );
                return;
            }
        };
        let until = Instant::now() + LEFT_TO_OTHERS;
        for id in wanted {
            if leased.contains(&id) {
                self.open_lane(worker, id);
            } else {
                self.left_to_others.insert(id, until);
            }
        }
    }

    fn open_lane(&mut self, worker: WorkerId, id: WebhookEndpointId) {
        let bell = Arc::new(Wakeup::default());
        self.open.insert(id, Arc::clone(&bell));
        let engine = Arc::clone(&self.engine);
        self.lanes.spawn(async move {
            let lane = EndpointDeliverer::new(Arc::clone(&engine), worker, id, bell);
            if AssertUnwindSafe(lane.run()).catch_unwind().await.is_err() {
                error!(webhook_endpoint.id = %id, "A lane panicked");
            }
            engine.release(worker, id).await;
            id
        });
    }

    /// What was told while the lane was ending must not be lost.
    async fn close(&mut self, id: WebhookEndpointId) {
        let bell = self.open.remove(&id);
        if bell.is_some_and(|bell| bell.was_rung()) {
            self.lease(HashSet::from([id])).await;
        }
    }
}

impl Engine {
    async fn lease(
        &self,
        worker: WorkerId,
        wanted: &[WebhookEndpointId],
    ) -> Result<Vec<WebhookEndpointId>, Fault> {
        const DOING: &str = "lease webhook endpoints";
        db::bounded(DOING, async {
            let mut connection = self.pool.acquire().await.or_fault(DOING)?;
            store::lease(&mut connection, worker, wanted, self.clock.now()).await
        })
        .await
    }

    /// Gives the lease of an endpoint back. Where Postgres stays away it ends with the
    /// tenure.
    async fn release(&self, worker: WorkerId, id: WebhookEndpointId) {
        const DOING: &str = "release a webhook endpoint";
        for _ in 0..RELEASES {
            let released = db::bounded(DOING, async {
                let mut connection = self.pool.acquire().await.or_fault(DOING)?;
                store::release(&mut connection, worker, id).await
            });
            match released.await {
                Ok(()) => return,
                Err(fault) => debug!(cause = fault.chain(), "A webhook endpoint stays leased"),
            }
            tokio::time::sleep(RELEASE_AGAIN).await;
        }
    }
}
