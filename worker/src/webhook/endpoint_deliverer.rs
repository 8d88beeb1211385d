//! A lane: all that is done for one endpoint.
//!
//! It begins with few calls at a time and adds one with every success. With every
//! failure it halves them; after some in a row the endpoint is spared (`fare`). So an
//! endpoint that hangs holds a call or two of this worker, and one that works gets
//! what it can take.
//!
//! Under load a lane looks for what is due by itself, and Postgres need not notify
//! it.

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

use super::call::{Called, Making, Target, call};
use super::poll_schedule::PollSchedule;
use super::{Engine, Wakeup};

/// Calls to one endpoint at once: at first, and at the most.
const CALLS_FIRST: usize = 2;
const CALLS_MAX: usize = 8;
/// More are read when fewer than these are left.
const REFILL_BELOW: usize = 128;
/// How often a lane with a backlog looks for what is due from the beginning on, and not
/// from where it had come to: transactions end in any order, and who has to walk past
/// all that was told already gets slower and slower.
const FROM_BEGINNING_EVERY: Duration = Duration::from_secs(1);
/// While calls are under way, results are recorded so many together, or after so long.
const RECORDED_TOGETHER: usize = 256;
const RECORD_EVERY: Duration = Duration::from_millis(10);
/// Calls whose results wait to be recorded; beyond it no further ones are made.
const UNRECORDED_MAX: usize = 1_000;
/// How long a lane that cannot record keeps others from making the same calls again.
const BROKEN_REST: Duration = Duration::from_secs(30);

/// The serving of one endpoint.
pub(super) struct EndpointDeliverer {
    engine: Arc<Engine>,
    worker: WorkerId,
    id: WebhookEndpointId,
    bell: Arc<Wakeup>,
    /// The endpoint as last read; nothing before that, and after a change.
    target: Option<Arc<Target>>,
    fare: EndpointHealth,
    /// The same, for who records it: what is known when it is written counts, and not
    /// what was known when the call ended.
    latest: watch::Sender<EndpointHealth>,
    /// Which of several secrets the endpoint took last, until it refuses it.
    turn: Option<usize>,
    window: usize,
    waiting: VecDeque<DueDelivery>,
    /// Deliveries that wait here, are called or recorded: not to be read again.
    in_hand: HashSet<WebhookDeliveryId>,
    /// Where the next look begins; nothing for the beginning.
    from: Option<Timestamp>,
    from_beginning_at: Instant,
    looks: JoinSet<Result<Option<DueQuery>, Fault>>,
    /// In the lane's own task: a task for each would be woken twice for each call.
    calls: FuturesUnordered<BoxFuture<'static, Result<Called, Panic>>>,
    /// What came of calls, and since when that waits.
    results: Vec<CallRecord>,
    results_since: Instant,
    records: JoinSet<(Vec<WebhookDeliveryId>, bool)>,
    watch: PollSchedule,
    /// The endpoint is not ours to call any more.
    is_over: bool,
    /// Something could not be recorded.
    is_broken: bool,
}

/// What was said by a call that broke.
type Panic = Box<dyn Any + Send>;

/// What one look found.
struct DueQuery {
    target: Target,
    due: Vec<DueDelivery>,
    /// Where there may be more.
    more_from: Option<Timestamp>,
}

impl EndpointDeliverer {
    pub(super) fn new(
        engine: Arc<Engine>,
        worker: WorkerId,
        id: WebhookEndpointId,
        bell: Arc<Wakeup>,
    ) -> Self {
        Self {
            engine,
            worker,
            id,
            bell,
            target: None,
            fare: EndpointHealth::default(),
            latest: watch::Sender::new(EndpointHealth::default()),
            turn: None,
            window: CALLS_FIRST,
            waiting: VecDeque::new(),
            in_hand: HashSet::new(),
            from: None,
            from_beginning_at: Instant::now(),
            looks: JoinSet::new(),
            calls: FuturesUnordered::new(),
            results: Vec::new(),
            results_since: Instant::now(),
            records: JoinSet::new(),
            watch: PollSchedule::begin(),
            is_over: false,
            is_broken: false,
        }
    }

    /// Serves the endpoint until nothing was due for a while, or it may not be called.
    pub(super) async fn run(mut self) {
        let shutdown = self.engine.shutdown.clone();
        loop {
            self.answer_bell();
            let may_go_on = !self.is_over
                && !self.is_broken
                && !shutdown.is_cancelled()
                && self.engine.tenures.may_call(self.worker);
            if !may_go_on {
                break;
            }
            self.look();
            self.make_calls();
            self.hand_in_together();
            if self.is_done() {
                break;
            }
            self.wait().await;
        }
        self.end().await;
    }

    fn answer_bell(&mut self) {
        if self.bell.changed.swap(false, Ordering::SeqCst) {
            // What waits here may be for an address that is no more.
            self.target = None;
            // Nor is it known which of its secrets the receiver has.
            self.turn = None;
            let waiting = self.waiting.drain(..);
            let in_hand = &mut self.in_hand;
            waiting.for_each(|delivery| {
                in_hand.remove(&delivery.id);
            });
            self.looks = JoinSet::new();
            self.from = None;
            self.watch.want();
        }
        if self.bell.due.swap(false, Ordering::SeqCst) {
            self.watch.want();
        }
    }

    /// Begins to read what is due, where that is wanted and there is room.
    fn look(&mut self) {
        let has_room = self.waiting.len() < REFILL_BELOW && self.may_make_more();
        if !has_room || !self.looks.is_empty() || !self.watch.is_due() {
            return;
        }
        self.watch.looked();
        if self.from.is_none() || self.from_beginning_at.elapsed() >= FROM_BEGINNING_EVERY {
            self.from = None;
            self.from_beginning_at = Instant::now();
        }
        let from = self.from;
        let (engine, worker, id) = (Arc::clone(&self.engine), self.worker, self.id);
        let in_hand: Vec<WebhookDeliveryId> = self.in_hand.iter().copied().collect();
        let announced = self.watch.announce();
        self.looks.spawn(async move {
            let look = engine.look(worker, id, (&in_hand, from), announced);
            db::bounded("look for due webhooks", look).await
        });
    }

    fn take_in(&mut self, looked: Result<Result<Option<DueQuery>, Fault>, JoinError>) {
        match looked {
            Ok(Ok(Some(look))) => {
                if self.target.is_none() {
                    self.set_fare(look.target.endpoint.fare);
                }
                self.target = Some(Arc::new(look.target));
                // What a look that did not begin at the beginning missed is found by the
                // next.
                let is_more = look.more_from.is_some() || self.from.is_some();
                self.watch.found(look.due.len(), is_more);
                self.from = look.more_from;
                self.in_hand
                    .extend(look.due.iter().map(|delivery| delivery.id));
                self.waiting.extend(look.due);
            }
            Ok(Ok(None)) => self.is_over = true,
            Ok(Err(fault)) if fault.kind() == FaultKind::Unavailable => {
                debug!(cause = fault.chain(), "Webhooks wait for Postgres");
                self.watch.want_later();
            }
            Ok(Err(fault)) => {
                error!(webhook_endpoint.id = %self.id, cause = fault.chain(), "Due webhooks could not be read");
                self.is_broken = true;
            }
            Err(panic) => self.broke(panic.is_panic()),
        }
    }

    fn make_calls(&mut self) {
        let now = self.engine.clock.now();
        let Some(target) = self.target.clone().filter(|_| self.fare.may_call(now)) else {
            return;
        };
        let is_probe = self.fare.is_spared();
        let window = if is_probe { 1 } else { self.window };
        while self.calls.len() < window && self.may_make_more() {
            let Some(delivery) = self.waiting.pop_front() else {
                break;
            };
            let engine = Arc::clone(&self.engine);
            let making = Making {
                worker: self.worker,
                turn: self.turn,
                is_probe,
            };
            let call = call(engine, Arc::clone(&target), delivery, making);
            self.calls
                .push(AssertUnwindSafe(call).catch_unwind().boxed());
        }
    }

    /// Whether not too much waits to be recorded.
    fn may_make_more(&self) -> bool {
        let unrecorded = self.in_hand.len() - self.waiting.len().min(self.in_hand.len());
        unrecorded < UNRECORDED_MAX
    }

    /// Whether there is nothing to do, or not for a while.
    fn is_done(&self) -> bool {
        let now = self.engine.clock.now();
        // Without calls no result waits.
        let is_idle = self.calls.is_empty() && self.records.is_empty() && self.looks.is_empty();
        let is_paused = self.target.is_some() && !self.fare.may_call(now);
        let has_nothing = self.waiting.is_empty() && self.watch.is_over();
        is_idle && (is_paused || has_nothing)
    }

    async fn wait(&mut self) {
        let bell = Arc::clone(&self.bell);
        let shutdown = self.engine.shutdown.clone();
        let next = self.next();
        tokio::select! {
            Some(looked) = self.looks.join_next() => self.take_in(looked),
            Some(called) = self.calls.next() => self.note(called),
            Some(recorded) = self.records.join_next() => self.recorded(recorded),
            () = bell.rung.notified() => {}
            () = sleep_until(next) => {}
            () = shutdown.cancelled() => {}
        }
    }

    /// When there may be something to do, unless something happens before.
    fn next(&self) -> Instant {
        match self.results.is_empty() {
            true => self.watch.next(),
            false => self.watch.next().min(self.results_since + RECORD_EVERY),
        }
    }

    /// Decides what follows from a call, which is recorded with others.
    fn note(&mut self, called: Result<Called, Panic>) {
        let Ok(called) = called else {
            return self.broke(true);
        };
        self.watch.stay();
        if called.was_withdrawn {
            self.in_hand.remove(&called.delivery.id);
            return;
        }
        let now = self.engine.clock.now();
        let fraction = self.engine.ids.fraction();
        let verdict = schedule::decide(called.outcome, called.delivery.attempts, now, fraction);
        let fare = self.learn(&called);
        let is_dead = fare.is_some_and(|fare| fare.is_dead(now));
        let deactivated = match (called.outcome.is_gone(), is_dead) {
            (true, _) => Some(Deactivation::Gone),
            (false, true) => Some(Deactivation::Failing),
            (false, false) => None,
        };
        self.is_over |= deactivated.is_some();
        let endpoint = &called.target.endpoint;
        let record = CallRecord {
            worker: self.worker,
            endpoint_id: endpoint.id,
            url_text: endpoint.url_text.clone(),
            organization_id: endpoint.organization_id,
            message_id: called.delivery.message_id,
            delivery_id: called.delivery.id,
            attempts_before: called.delivery.attempts,
            attempt: called.attempt,
            verdict,
            fare,
            deactivated,
        };
        if self.results.is_empty() {
            self.results_since = Instant::now();
        }
        self.results.push(record);
    }

    /// Has results recorded where enough of them wait, or none is to follow soon.
    fn hand_in_together(&mut self) {
        let is_time = self.calls.is_empty()
            || self.results.len() >= RECORDED_TOGETHER
            || self.results_since.elapsed() >= RECORD_EVERY;
        if is_time {
            self.hand_in();
        }
    }

    fn hand_in(&mut self) {
        if self.results.is_empty() {
            return;
        }
        let results = std::mem::take(&mut self.results);
        let engine = Arc::clone(&self.engine);
        let latest = self.latest.subscribe();
        self.records.spawn(async move {
            let ids = results.iter().map(|result| result.delivery_id).collect();
            (ids, engine.records.add(results, latest).await)
        });
    }

    /// How the endpoint fares after a call, where the call changed that.
    fn learn(&mut self, called: &Called) -> Option<EndpointHealth> {
        // What was called may not be what is called now.
        let is_same = self
            .target
            .as_ref()
            .is_some_and(|target| target.endpoint.url == called.target.endpoint.url);
        if !called.was_made || !is_same {
            return None;
        }
        let (before, now) = (self.fare, self.engine.clock.now());
        match called.outcome {
            CallOutcome::Taken => {
                self.window = (self.window + 1).min(CALLS_MAX);
                self.turn = Some(called.turn);
                self.set_fare(EndpointHealth::succeeded());
            }
            // It may hold another of several secrets, and gets that with a retry.
            CallOutcome::Refused { .. } if called.is_of_a_secret_among_others() => {}
            CallOutcome::Refused { .. } => {
                self.turn = None;
                self.window = (self.window / 2).max(1);
                let failed = before.failed(called.attempt.started_at, now, called.was_probe);
                self.set_fare(failed);
            }
        }
        (self.fare != before || called.outcome.is_gone()).then_some(self.fare)
    }

    fn set_fare(&mut self, fare: EndpointHealth) {
        self.fare = fare;
        self.latest.send_replace(fare);
    }

    fn recorded(&mut self, recorded: Result<(Vec<WebhookDeliveryId>, bool), JoinError>) {
        match recorded {
            Ok((ids, true)) => {
                for id in ids {
                    self.in_hand.remove(&id);
                }
            }
            Ok((_, false)) => self.is_broken = true,
            Err(panic) => self.broke(panic.is_panic()),
        }
    }

    /// The panic itself was told of by its hook, which quotes nothing.
    fn broke(&mut self, is_panic: bool) {
        error!(webhook_endpoint.id = %self.id, is_panic, "A part of a lane broke");
        self.is_broken = true;
    }

    /// Lets the calls under way end and be recorded.
    async fn end(&mut self) {
        self.hand_in();
        while let Some(called) = self.calls.next().await {
            self.note(called);
            self.hand_in();
        }
        while let Some(recorded) = self.records.join_next().await {
            self.recorded(recorded);
        }
        if self.is_broken {
            let rest = tokio::time::sleep(BROKEN_REST);
            self.engine.shutdown.run_until_cancelled(rest).await;
        }
    }
}

impl Engine {
    /// Reads an endpoint and what is due there; nothing where the worker does not
    /// serve it any more or it is not active. Where `announced`, the lane looks by
    /// itself for so long.
    async fn look(
        &self,
        worker: WorkerId,
        id: WebhookEndpointId,
        (in_hand, from): (&[WebhookDeliveryId], Option<Timestamp>),
        announced: Option<Duration>,
    ) -> Result<Option<DueQuery>, Fault> {
        let now = self.clock.now();
        let mut connection = self
            .pool
            .acquire()
            .await
            .or_fault("look for due webhooks")?;
        if let Some(span) = announced {
            store::stay_awake(&mut connection, worker, id, span).await?;
        }
        let Some(endpoint) = store::find_served(&mut connection, worker, id, now).await? else {
            return Ok(None);
        };
        let due = store::list_due(&mut connection, &endpoint, now, in_hand, from).await?;
        store::fail_orphans(&mut connection, &due.orphans, now).await?;
        Ok(Some(DueQuery {
            more_from: due.more_from,
            due: due.deliveries,
            target: Target::open(self, endpoint)?,
        }))
    }
}
