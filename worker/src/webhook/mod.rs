//! Delivers webhooks.
//!
//! The dispatcher is notified by Postgres of endpoints with due deliveries, leases those
//! that no worker serves, and starts an `EndpointDeliverer` for each. A deliverer serves
//! one endpoint, so that no endpoint waits for another: it reads due deliveries, makes
//! some calls at a time, and passes their results to the `ResultRecorder`, which records
//! them in shared transactions. An idle deliverer ends after a few seconds.
//!
//! All state is in Postgres: deliveries of a dead worker are still due, and the scheduler
//! repeats lost notifications.

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

/// Connections to Postgres. A pool of its own, so that sending and webhooks do not delay
/// each other.
const CONNECTIONS: u32 = 4;
/// Concurrent calls of one worker, in total and per organization.
const CALLS_MAX: usize = 1_024;
const CALLS_PER_ORGANIZATION_MAX: usize = 64;
/// Endpoints that one worker serves at once.
const ENDPOINTS_MAX: usize = 2_000;
/// Notifications that may be queued; the scheduler repeats those that are dropped.
const NOTIFICATIONS_MAX: usize = 16_384;
/// Notifications handled together.
const NOTIFICATIONS_BATCH: usize = 1_000;
/// How long an endpoint that another worker serves is not tried again. Shorter than a
/// deliverer stays idle; the other worker receives the notifications too.
const LEASED_ELSEWHERE_TTL: Duration = Duration::from_secs(1);
/// How long after a lost connection the listener reconnects.
const RECONNECT_AFTER: Duration = Duration::from_millis(500);
/// How often, and how long apart, releasing the lease of an endpoint is tried.
const RELEASE_ATTEMPTS: u32 = 20;
const RELEASE_RETRY_AFTER: Duration = Duration::from_millis(500);

/// The shared state of all deliverers.
struct Engine {
    pool: PgPool,
    sealer: Sealer,
    client: WebhookClient,
    worker_lease: WorkerLease,
    recorder: ResultRecorder,
    limiter: TenantLimiter,
    clock: Clock,
    ids: Ids,
    shutdown: CancellationToken,
}

/// The running webhook delivery.
pub(crate) struct Webhooks {
    dispatcher: JoinHandle<()>,
}

impl Webhooks {
    /// Starts delivering, until `shutdown`.
    ///
    /// # Errors
    /// A fault if the configuration cannot be used.
    pub(crate) fn start(
        settings: &Settings,
        clock: Clock,
        worker_lease: WorkerLease,
        shutdown: CancellationToken,
    ) -> Result<Self, Fault> {
        let pool = db::routine_pool(&settings.database_url, CONNECTIONS)?;
        let ids = Ids::new(clock.clone());
        let engine = Engine {
            sealer: settings.sealer.clone(),
            client: WebhookClient::new(&settings.webhooks, clock.clone())?,
            worker_lease,
            recorder: ResultRecorder::start(pool.clone(), ids.clone(), clock.clone()),
            limiter: TenantLimiter::new(CALLS_MAX, CALLS_PER_ORGANIZATION_MAX),
            clock,
            ids,
            shutdown: shutdown.clone(),
            pool: pool.clone(),
        };
        let (sender, receiver) = mpsc::channel(NOTIFICATIONS_MAX);
        tokio::spawn(listen(pool, sender, shutdown));
        let dispatcher = WebhookDispatcher {
            engine: Arc::new(engine),
            deliverers: JoinSet::new(),
            wakeups: HashMap::new(),
            leased_elsewhere: HashMap::new(),
        };
        Ok(Self {
            dispatcher: tokio::spawn(dispatcher.run(receiver)),
        })
    }

    /// Waits at most `within` until the calls that were running at the shutdown have
    /// ended and are recorded. Other workers repeat the rest.
    pub(crate) async fn ended(mut self, within: Duration) {
        if tokio::time::timeout(within, &mut self.dispatcher)
            .await
            .is_err()
        {
            warn!("Shut down with webhook calls still running; other workers will repeat them");
            self.dispatcher.abort();
        }
    }
}

/// Receives notifications from Postgres, over a connection of its own.
async fn listen(pool: PgPool, sender: mpsc::Sender<ListenerMessage>, shutdown: CancellationToken) {
    while let Some(fault) = shutdown
        .run_until_cancelled(listen_once(&pool, &sender))
        .await
    {
        debug!(
            cause = fault.chain(),
            "Lost the connection that listens for due webhooks, will reconnect"
        );
        let pause = tokio::time::sleep(RECONNECT_AFTER);
        if shutdown.run_until_cancelled(pause).await.is_none() {
            return;
        }
    }
}

async fn listen_once(pool: &PgPool, sender: &mpsc::Sender<ListenerMessage>) -> Fault {
    let mut listener = match Listener::connect(pool, CHANNEL).await {
        Ok(listener) => listener,
        Err(fault) => return fault,
    };
    info!("Listening for due webhooks");
    // Notifications for any endpoint may have been lost before.
    let _ended = sender.send(ListenerMessage::Gap).await;
    loop {
        match listener.recv().await {
            Ok(Some(text)) => {
                let Some(notification) = EndpointNotification::parse(&text) else {
                    continue;
                };
                let is_dropped = sender
                    .try_send(ListenerMessage::Notification(notification))
                    .is_err();
                // The scheduler repeats notifications of due deliveries, but not of
                // changes.
                if is_dropped && matches!(notification, EndpointNotification::Changed(_)) {
                    let _ended = sender.send(ListenerMessage::Gap).await;
                }
            }
            Ok(None) => {}
            Err(fault) => return fault,
        }
    }
}

/// A message from the listener to the dispatcher.
#[derive(Debug, Clone, Copy)]
enum ListenerMessage {
    Notification(EndpointNotification),
    /// Notifications may have been lost.
    Gap,
}

/// Wakes a deliverer.
#[derive(Default)]
struct Wakeup {
    notify: Notify,
    due: AtomicBool,
    changed: AtomicBool,
}

impl Wakeup {
    fn set(&self, notification: EndpointNotification) {
        match notification {
            EndpointNotification::Due(_) => self.due.store(true, Ordering::SeqCst),
            EndpointNotification::Changed(_) => self.changed.store(true, Ordering::SeqCst),
        }
        self.notify.notify_one();
    }

    fn is_set(&self) -> bool {
        self.due.load(Ordering::SeqCst) || self.changed.load(Ordering::SeqCst)
    }
}

struct WebhookDispatcher {
    engine: Arc<Engine>,
    deliverers: JoinSet<WebhookEndpointId>,
    wakeups: HashMap<WebhookEndpointId, Arc<Wakeup>>,
    /// Endpoints that could not be leased, because another worker serves them or they are
    /// paused, with the time until which they are skipped.
    leased_elsewhere: HashMap<WebhookEndpointId, Instant>,
}

impl WebhookDispatcher {
    async fn run(mut self, mut receiver: mpsc::Receiver<ListenerMessage>) {
        let shutdown = self.engine.shutdown.clone();
        let mut messages = Vec::with_capacity(NOTIFICATIONS_BATCH);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                _ = receiver.recv_many(&mut messages, NOTIFICATIONS_BATCH) => {
                    self.handle(&messages).await;
                    messages.clear();
                }
                Some(Ok(id)) = self.deliverers.join_next() => self.deliverer_ended(id).await,
            }
        }
        while self.deliverers.join_next().await.is_some() {}
    }

    async fn handle(&mut self, messages: &[ListenerMessage]) {
        let now = Instant::now();
        self.leased_elsewhere.retain(|_, until| *until > now);
        let mut wanted = HashSet::new();
        for message in messages {
            let ListenerMessage::Notification(notification) = message else {
                let wakeups = self.wakeups.iter();
                wakeups.for_each(|(id, wakeup)| wakeup.set(EndpointNotification::Changed(*id)));
                continue;
            };
            let (EndpointNotification::Due(id) | EndpointNotification::Changed(id)) = *notification;
            if let Some(wakeup) = self.wakeups.get(&id) {
                wakeup.set(*notification);
            } else if matches!(notification, EndpointNotification::Changed(_))
                || !self.leased_elsewhere.contains_key(&id)
            {
                wanted.insert(id);
            }
        }
        self.lease(wanted).await;
    }

    async fn lease(&mut self, wanted: HashSet<WebhookEndpointId>) {
        let free = ENDPOINTS_MAX.saturating_sub(self.wakeups.len());
        let wanted: Vec<WebhookEndpointId> = wanted.into_iter().take(free).collect();
        let Some(worker) = self
            .engine
            .worker_lease
            .current()
            .filter(|_| !wanted.is_empty())
        else {
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
        let until = Instant::now() + LEASED_ELSEWHERE_TTL;
        for id in wanted {
            if leased.contains(&id) {
                self.start_deliverer(worker, id);
            } else {
                self.leased_elsewhere.insert(id, until);
            }
        }
    }

    fn start_deliverer(&mut self, worker: WorkerId, id: WebhookEndpointId) {
        let wakeup = Arc::new(Wakeup::default());
        self.wakeups.insert(id, Arc::clone(&wakeup));
        let engine = Arc::clone(&self.engine);
        self.deliverers.spawn(async move {
            let deliverer = EndpointDeliverer::new(Arc::clone(&engine), worker, id, wakeup);
            if AssertUnwindSafe(deliverer.run())
                .catch_unwind()
                .await
                .is_err()
            {
                error!(webhook_endpoint.id = %id, "A webhook deliverer panicked");
            }
            engine.release(worker, id).await;
            id
        });
    }

    /// Notifications that arrived while the deliverer was ending must not be lost.
    async fn deliverer_ended(&mut self, id: WebhookEndpointId) {
        let wakeup = self.wakeups.remove(&id);
        if wakeup.is_some_and(|wakeup| wakeup.is_set()) {
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

    /// Releases the lease of an endpoint. If Postgres stays unavailable, it ends with the
    /// worker's lease.
    async fn release(&self, worker: WorkerId, id: WebhookEndpointId) {
        const DOING: &str = "release a webhook endpoint";
        for _ in 0..RELEASE_ATTEMPTS {
            let released = db::bounded(DOING, async {
                let mut connection = self.pool.acquire().await.or_fault(DOING)?;
                store::release(&mut connection, worker, id).await
            });
            match released.await {
                Ok(()) => return,
                Err(fault) => debug!(
                    cause = fault.chain(),
                    "The lease of a webhook endpoint could not be released, will retry"
                ),
            }
            tokio::time::sleep(RELEASE_RETRY_AFTER).await;
        }
    }
}
