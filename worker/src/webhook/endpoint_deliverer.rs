//! The task that delivers to one endpoint.
//!
//! It starts with few concurrent calls and adds one after every success. Every failure
//! halves them, and several failures in a row trip the endpoint's breaker
//! (`endpoint_health`). So an endpoint that hangs holds a call or two of the worker, and
//! a healthy one gets as many as it can handle.
//!
//! Under load the task polls for due deliveries, so that Postgres need not notify it.

use std::any::Any;
use std::collections::{HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tracing::{debug, error};
use waypost_core::clock::Timestamp;
use waypost_core::db::{self, OrFault};
use waypost_core::fault::{Fault, FaultKind};
use waypost_core::ids::{WebhookDeliveryId, WebhookEndpointId, WorkerId};
use waypost_core::webhook::engine::endpoint_health::EndpointHealth;
use waypost_core::webhook::engine::{CallRecord, Deactivation, DueDelivery, store};
use waypost_core::webhook::schedule::{self, CallOutcome};

use super::call::{CallOptions, CallTarget, CompletedCall, call};
use super::poll_schedule::PollSchedule;
use super::{Engine, Wakeup};

/// Concurrent calls to one endpoint: at the start, and at most.
const CALLS_FIRST: usize = 2;
const CALLS_MAX: usize = 8;
/// More deliveries are read when fewer than these are queued.
const REFILL_BELOW: usize = 128;
/// How often a task with a backlog reads from the longest due delivery instead of from
/// where the last read ended. Transactions commit in any order, so deliveries may appear
/// behind that point; reading from the start each time would walk over ever more
/// delivered rows.
const FULL_SCAN_EVERY: Duration = Duration::from_secs(1);
/// While calls are running, results are recorded in batches of this size, or after this
/// time.
const RECORD_BATCH: usize = 256;
const RECORD_EVERY: Duration = Duration::from_millis(10);
/// Results that may wait to be recorded; then no further calls are made.
const UNRECORDED_MAX: usize = 1_000;
/// How long a task that failed holds its lease, so that no other worker repeats its calls
/// at once.
const FAILURE_PAUSE: Duration = Duration::from_secs(30);

/// Delivers to one endpoint.
pub(super) struct EndpointDeliverer {
    engine: Arc<Engine>,
    worker: WorkerId,
    id: WebhookEndpointId,
    wakeup: Arc<Wakeup>,
    /// The endpoint as last read; `None` before that and after a change.
    target: Option<Arc<CallTarget>>,
    health: EndpointHealth,
    /// The same for the recorder, which writes the health of the moment of writing, not
    /// of the end of the call.
    health_sender: watch::Sender<EndpointHealth>,
    /// The secret that the endpoint accepted last, until it refuses a call.
    secret_index: Option<usize>,
    concurrency: usize,
    queue: VecDeque<DueDelivery>,
    /// Deliveries that are queued, called or being recorded. They are not read again.
    in_flight: HashSet<WebhookDeliveryId>,
    /// Where the next read starts; `None` for the longest due delivery.
    scan_from: Option<Timestamp>,
    scanned_all_at: Instant,
    reads: JoinSet<Result<Option<DueBatch>, Fault>>,
    /// In this task: a task per call would be woken twice for each call.
    calls: FuturesUnordered<BoxFuture<'static, Result<CompletedCall, Panic>>>,
    /// Results of calls, and since when they wait.
    results: Vec<CallRecord>,
    results_since: Instant,
    recordings: JoinSet<(Vec<WebhookDeliveryId>, bool)>,
    poll: PollSchedule,
    /// The endpoint must not be called any more.
    is_stopped: bool,
    /// A result could not be recorded, or a part of the task panicked.
    has_failed: bool,
}

/// The payload of a panic in a call.
type Panic = Box<dyn Any + Send>;

/// The result of one read.
struct DueBatch {
    target: CallTarget,
    due: Vec<DueDelivery>,
    /// When the last delivery became due, if there may be more.
    more_from: Option<Timestamp>,
}

impl EndpointDeliverer {
    pub(super) fn new(
        engine: Arc<Engine>,
        worker: WorkerId,
        id: WebhookEndpointId,
        wakeup: Arc<Wakeup>,
    ) -> Self {
        Self {
            engine,
            worker,
            id,
            wakeup,
            target: None,
            health: EndpointHealth::default(),
            health_sender: watch::Sender::new(EndpointHealth::default()),
            secret_index: None,
            concurrency: CALLS_FIRST,
            queue: VecDeque::new(),
            in_flight: HashSet::new(),
            scan_from: None,
            scanned_all_at: Instant::now(),
            reads: JoinSet::new(),
            calls: FuturesUnordered::new(),
            results: Vec::new(),
            results_since: Instant::now(),
            recordings: JoinSet::new(),
            poll: PollSchedule::new(),
            is_stopped: false,
            has_failed: false,
        }
    }

    /// Delivers until nothing was due for a while, or the endpoint must not be called.
    pub(super) async fn run(mut self) {
        let shutdown = self.engine.shutdown.clone();
        loop {
            self.handle_wakeup();
            let may_continue = !self.is_stopped
                && !self.has_failed
                && !shutdown.is_cancelled()
                && self.engine.worker_lease.may_call(self.worker);
            if !may_continue {
                break;
            }
            self.start_read();
            self.start_calls();
            self.flush_results_if_due();
            if self.is_done() {
                break;
            }
            self.wait().await;
        }
        self.drain().await;
    }

    fn handle_wakeup(&mut self) {
        if self.wakeup.changed.swap(false, Ordering::SeqCst) {
            // Queued deliveries may be for an old URL.
            self.target = None;
            // The receiver may have other secrets now.
            self.secret_index = None;
            let queue = self.queue.drain(..);
            let in_flight = &mut self.in_flight;
            queue.for_each(|delivery| {
                in_flight.remove(&delivery.id);
            });
            self.reads = JoinSet::new();
            self.scan_from = None;
            self.poll.request();
        }
        if self.wakeup.due.swap(false, Ordering::SeqCst) {
            self.poll.request();
        }
    }

    /// Starts to read due deliveries, if that is requested and there is room.
    fn start_read(&mut self) {
        let has_room = self.queue.len() < REFILL_BELOW && self.has_capacity();
        if !has_room || !self.reads.is_empty() || !self.poll.is_due() {
            return;
        }
        self.poll.polled();
        if self.scan_from.is_none() || self.scanned_all_at.elapsed() >= FULL_SCAN_EVERY {
            self.scan_from = None;
            self.scanned_all_at = Instant::now();
        }
        let scan_from = self.scan_from;
        let (engine, worker, id) = (Arc::clone(&self.engine), self.worker, self.id);
        let in_flight: Vec<WebhookDeliveryId> = self.in_flight.iter().copied().collect();
        let announced = self.poll.announce();
        self.reads.spawn(async move {
            let read = engine.read_due(worker, id, (&in_flight, scan_from), announced);
            db::bounded("read due webhook deliveries", read).await
        });
    }

    fn handle_read(&mut self, read: Result<Result<Option<DueBatch>, Fault>, JoinError>) {
        match read {
            Ok(Ok(Some(read))) => {
                if self.target.is_none() {
                    self.set_health(read.target.endpoint.health);
                }
                self.target = Some(Arc::new(read.target));
                // A read that did not start at the beginning may have missed deliveries;
                // the next read finds them.
                let is_more = read.more_from.is_some() || self.scan_from.is_some();
                self.poll.record_found(read.due.len(), is_more);
                self.scan_from = read.more_from;
                self.in_flight
                    .extend(read.due.iter().map(|delivery| delivery.id));
                self.queue.extend(read.due);
            }
            Ok(Ok(None)) => self.is_stopped = true,
            Ok(Err(fault)) if fault.kind() == FaultKind::Unavailable => {
                debug!(
                    cause = fault.chain(),
                    "Waiting for Postgres to deliver webhooks"
                );
                self.poll.request_later();
            }
            Ok(Err(fault)) => {
                error!(webhook_endpoint.id = %self.id, cause = fault.chain(), "Due webhook deliveries could not be read");
                self.has_failed = true;
            }
            Err(panic) => self.fail(panic.is_panic()),
        }
    }

    fn start_calls(&mut self) {
        let now = self.engine.clock.now();
        let Some(target) = self.target.clone().filter(|_| self.health.may_call(now)) else {
            return;
        };
        let is_probe = self.health.is_tripped();
        let concurrency = if is_probe { 1 } else { self.concurrency };
        while self.calls.len() < concurrency && self.has_capacity() {
            let Some(delivery) = self.queue.pop_front() else {
                break;
            };
            let engine = Arc::clone(&self.engine);
            let options = CallOptions {
                worker: self.worker,
                secret_index: self.secret_index,
                is_probe,
            };
            let call = call(engine, Arc::clone(&target), delivery, options);
            self.calls
                .push(AssertUnwindSafe(call).catch_unwind().boxed());
        }
    }

    /// Whether few enough results are unrecorded.
    fn has_capacity(&self) -> bool {
        let unrecorded = self.in_flight.len() - self.queue.len().min(self.in_flight.len());
        unrecorded < UNRECORDED_MAX
    }

    /// Whether there is nothing to do now or for a while.
    fn is_done(&self) -> bool {
        let now = self.engine.clock.now();
        // Without running calls, no results are waiting.
        let is_idle = self.calls.is_empty() && self.recordings.is_empty() && self.reads.is_empty();
        let is_paused = self.target.is_some() && !self.health.may_call(now);
        let has_nothing = self.queue.is_empty() && self.poll.is_idle();
        is_idle && (is_paused || has_nothing)
    }

    async fn wait(&mut self) {
        let wakeup = Arc::clone(&self.wakeup);
        let shutdown = self.engine.shutdown.clone();
        let next = self.next_wakeup_at();
        tokio::select! {
            Some(read) = self.reads.join_next() => self.handle_read(read),
            Some(completed) = self.calls.next() => self.handle_call(completed),
            Some(recorded) = self.recordings.join_next() => self.handle_recorded(recorded),
            () = wakeup.notify.notified() => {}
            () = sleep_until(next) => {}
            () = shutdown.cancelled() => {}
        }
    }

    /// When to run again if nothing happens before.
    fn next_wakeup_at(&self) -> Instant {
        match self.results.is_empty() {
            true => self.poll.next_at(),
            false => self.poll.next_at().min(self.results_since + RECORD_EVERY),
        }
    }

    /// Decides what to do after a call, and queues its result.
    fn handle_call(&mut self, completed: Result<CompletedCall, Panic>) {
        let Ok(completed) = completed else {
            return self.fail(true);
        };
        self.poll.postpone_idle();
        if completed.was_cancelled {
            self.in_flight.remove(&completed.delivery.id);
            return;
        }
        let now = self.engine.clock.now();
        let fraction = self.engine.ids.fraction();
        let decision = schedule::decide(
            completed.outcome,
            completed.delivery.attempts,
            now,
            fraction,
        );
        let health = self.update_health(&completed);
        let should_disable = health.is_some_and(|health| health.should_disable(now));
        let deactivated = match (completed.outcome.is_gone(), should_disable) {
            (true, _) => Some(Deactivation::Gone),
            (false, true) => Some(Deactivation::Failing),
            (false, false) => None,
        };
        self.is_stopped |= deactivated.is_some();
        let endpoint = &completed.target.endpoint;
        let record = CallRecord {
            worker: self.worker,
            endpoint_id: endpoint.id,
            url_text: endpoint.url_text.clone(),
            organization_id: endpoint.organization_id,
            message_id: completed.delivery.message_id,
            delivery_id: completed.delivery.id,
            attempts_before: completed.delivery.attempts,
            attempt: completed.attempt,
            decision,
            health,
            deactivated,
        };
        if self.results.is_empty() {
            self.results_since = Instant::now();
        }
        self.results.push(record);
    }

    /// Records results if there are enough of them or no more are to come soon.
    fn flush_results_if_due(&mut self) {
        let is_time = self.calls.is_empty()
            || self.results.len() >= RECORD_BATCH
            || self.results_since.elapsed() >= RECORD_EVERY;
        if is_time {
            self.flush_results();
        }
    }

    fn flush_results(&mut self) {
        if self.results.is_empty() {
            return;
        }
        let results = std::mem::take(&mut self.results);
        let engine = Arc::clone(&self.engine);
        let health = self.health_sender.subscribe();
        self.recordings.spawn(async move {
            let ids = results.iter().map(|result| result.delivery_id).collect();
            (ids, engine.recorder.record(results, health).await)
        });
    }

    /// Updates the endpoint's health after a call and returns it if it changed.
    fn update_health(&mut self, completed: &CompletedCall) -> Option<EndpointHealth> {
        // The URL may have changed during the call.
        let is_same = self
            .target
            .as_ref()
            .is_some_and(|target| target.endpoint.url == completed.target.endpoint.url);
        if !completed.was_made || !is_same {
            return None;
        }
        let (before, now) = (self.health, self.engine.clock.now());
        match completed.outcome {
            CallOutcome::Succeeded => {
                self.concurrency = (self.concurrency + 1).min(CALLS_MAX);
                self.secret_index = Some(completed.secret_index);
                self.set_health(EndpointHealth::succeeded());
            }
            // The endpoint may have another of several secrets; a retry is signed with
            // that.
            CallOutcome::Failed { .. } if completed.retry_uses_other_secret() => {}
            CallOutcome::Failed { .. } => {
                self.secret_index = None;
                self.concurrency = (self.concurrency / 2).max(1);
                let failed = before.failed(completed.attempt.started_at, now, completed.was_probe);
                self.set_health(failed);
            }
        }
        (self.health != before || completed.outcome.is_gone()).then_some(self.health)
    }

    fn set_health(&mut self, health: EndpointHealth) {
        self.health = health;
        self.health_sender.send_replace(health);
    }

    fn handle_recorded(&mut self, recorded: Result<(Vec<WebhookDeliveryId>, bool), JoinError>) {
        match recorded {
            Ok((ids, true)) => {
                for id in ids {
                    self.in_flight.remove(&id);
                }
            }
            Ok((_, false)) => self.has_failed = true,
            Err(panic) => self.fail(panic.is_panic()),
        }
    }

    /// The panic itself was logged by the panic hook, without its payload.
    fn fail(&mut self, is_panic: bool) {
        error!(webhook_endpoint.id = %self.id, is_panic, "A part of a webhook deliverer panicked or was aborted");
        self.has_failed = true;
    }

    /// Waits until the running calls have ended and are recorded.
    async fn drain(&mut self) {
        self.flush_results();
        while let Some(completed) = self.calls.next().await {
            self.handle_call(completed);
            self.flush_results();
        }
        while let Some(recorded) = self.recordings.join_next().await {
            self.handle_recorded(recorded);
        }
        if self.has_failed {
            let pause = tokio::time::sleep(FAILURE_PAUSE);
            self.engine.shutdown.run_until_cancelled(pause).await;
        }
    }
}

impl Engine {
    /// Reads an endpoint and its due deliveries; `None` if the worker has lost its lease
    /// or the endpoint is inactive. With `announced`, announces that the task polls for
    /// that long.
    async fn read_due(
        &self,
        worker: WorkerId,
        id: WebhookEndpointId,
        (in_flight, scan_from): (&[WebhookDeliveryId], Option<Timestamp>),
        announced: Option<Duration>,
    ) -> Result<Option<DueBatch>, Fault> {
        let now = self.clock.now();
        let mut connection = self
            .pool
            .acquire()
            .await
            .or_fault("read due webhook deliveries")?;
        if let Some(duration) = announced {
            store::announce_polling(&mut connection, worker, id, duration).await?;
        }
        let Some(endpoint) = store::find_leased(&mut connection, worker, id, now).await? else {
            return Ok(None);
        };
        let due = store::list_due(&mut connection, &endpoint, now, in_flight, scan_from).await?;
        store::fail_orphans(&mut connection, &due.orphans, now).await?;
        Ok(Some(DueBatch {
            more_from: due.more_from,
            due: due.deliveries,
            target: CallTarget::open(self, endpoint)?,
        }))
    }
}
