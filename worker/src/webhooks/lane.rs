//! A lane: all that is done for one endpoint.
//!
//! It begins with few calls at a time and adds one with every success. With every
//! failure it halves them; after some in a row the endpoint is spared (`fare`). So an
//! endpoint that hangs holds a call or two of this worker, and one that works gets
//! what it can take.
//!
//! Under load a lane looks for what is due by itself, and Postgres need not notify
//! it.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tracing::{debug, error};
use waypost_core::db::{self, OrFault};
use waypost_core::fault::{Fault, FaultKind};
use waypost_core::ids::{WebhookDeliveryId, WebhookEndpointId, WorkerId};
use waypost_core::webhook::engine::fare::Fare;
use waypost_core::webhook::engine::{CallRecord, Deactivation, DueDelivery, store};
use waypost_core::webhook::schedule::{self, CallOutcome};

use super::call::{Called, Making, Target, call};
use super::{Bell, Engine};

/// Calls to one endpoint at once: at first, and at the most.
const CALLS_FIRST: usize = 2;
const CALLS_MAX: usize = 8;
/// Deliveries read at once.
const READ: usize = 256;
/// More are read when fewer than these are left.
const REFILL_BELOW: usize = 128;
/// Calls whose results wait to be recorded; beyond it no further ones are made.
const UNRECORDED_MAX: usize = 1_000;
/// How long an idle lane stays open.
const LINGER: Duration = Duration::from_secs(5);
/// Fruitful looks in a second from which on a lane looks by itself.
const BUSY_LOOKS: u32 = 50;
/// How often it does then.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long it says that it will, in Postgres; and how much longer it does.
const AWAKE: Duration = Duration::from_secs(2);
const AWAKE_GRACE: Duration = Duration::from_secs(1);
/// The wait after Postgres did not answer.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(250);
/// The rest of a lane whose time is over and whose calls are not.
const REST: Duration = Duration::from_secs(1);
/// How long a lane that cannot record keeps others from making the same calls again.
const BROKEN_REST: Duration = Duration::from_secs(30);

/// The serving of one endpoint.
pub(super) struct Lane {
    engine: Arc<Engine>,
    worker: WorkerId,
    id: WebhookEndpointId,
    bell: Arc<Bell>,
    /// The endpoint as last read; nothing before that, and after a change.
    target: Option<Arc<Target>>,
    fare: Fare,
    /// The same, for who records it: what is known when it is written counts, and not
    /// what was known when the call ended.
    latest: watch::Sender<Fare>,
    /// Which of several secrets the endpoint took last, until it refuses it.
    turn: Option<usize>,
    window: usize,
    waiting: VecDeque<DueDelivery>,
    /// Deliveries that wait here, are called or recorded: not to be read again.
    in_hand: HashSet<WebhookDeliveryId>,
    looks: JoinSet<Result<Option<Look>, Fault>>,
    calls: JoinSet<Called>,
    records: JoinSet<(WebhookDeliveryId, bool)>,
    watch: Watch,
    /// The endpoint is not ours to call any more.
    is_over: bool,
    /// Something could not be recorded.
    is_broken: bool,
}

/// What one look found.
struct Look {
    target: Target,
    due: Vec<DueDelivery>,
    /// There may be more.
    is_full: bool,
}

/// When to look.
struct Watch {
    wanted: bool,
    not_before: Instant,
    last: Instant,
    /// An idle lane ends then.
    ends_at: Instant,
    /// Until then the lane looks by itself.
    awake_until: Option<Instant>,
    announced_at: Instant,
    second_began: Instant,
    fruitful: u32,
}

impl Lane {
    pub(super) fn new(
        engine: Arc<Engine>,
        worker: WorkerId,
        id: WebhookEndpointId,
        bell: Arc<Bell>,
    ) -> Self {
        Self {
            engine,
            worker,
            id,
            bell,
            target: None,
            fare: Fare::default(),
            latest: watch::Sender::new(Fare::default()),
            turn: None,
            window: CALLS_FIRST,
            waiting: VecDeque::new(),
            in_hand: HashSet::new(),
            looks: JoinSet::new(),
            calls: JoinSet::new(),
            records: JoinSet::new(),
            watch: Watch::begin(),
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
            let waiting = self.waiting.drain(..);
            let in_hand = &mut self.in_hand;
            waiting.for_each(|delivery| {
                in_hand.remove(&delivery.id);
            });
            self.looks = JoinSet::new();
            self.watch.want();
        }
        if self.bell.due.swap(false, Ordering::SeqCst) {
            self.watch.want();
        }
    }

    /// Begins to read what is due, where that is wanted and there is room.
    fn look(&mut self) {
        let has_room = self.waiting.len() < REFILL_BELOW && self.records.len() < UNRECORDED_MAX;
        if !has_room || !self.looks.is_empty() || !self.watch.is_due() {
            return;
        }
        self.watch.looked();
        let (engine, worker, id) = (Arc::clone(&self.engine), self.worker, self.id);
        let in_hand: Vec<WebhookDeliveryId> = self.in_hand.iter().copied().collect();
        let announced = self.watch.announce();
        self.looks.spawn(async move {
            let look = engine.look(worker, id, &in_hand, announced);
            db::bounded("look for due webhooks", look).await
        });
    }

    fn take_in(&mut self, looked: Result<Result<Option<Look>, Fault>, JoinError>) {
        match looked {
            Ok(Ok(Some(look))) => {
                if self.target.is_none() {
                    self.set_fare(look.target.endpoint.fare);
                }
                self.target = Some(Arc::new(look.target));
                self.watch.found(look.due.len(), look.is_full);
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
            Err(panic) => self.broke(&panic),
        }
    }

    fn make_calls(&mut self) {
        let now = self.engine.clock.now();
        let Some(target) = self.target.clone().filter(|_| self.fare.may_call(now)) else {
            return;
        };
        let is_probe = self.fare.is_spared();
        let window = if is_probe { 1 } else { self.window };
        while self.calls.len() < window && self.records.len() < UNRECORDED_MAX {
            let Some(delivery) = self.waiting.pop_front() else {
                break;
            };
            let engine = Arc::clone(&self.engine);
            let making = Making {
                worker: self.worker,
                turn: self.turn,
                is_probe,
            };
            self.calls
                .spawn(call(engine, Arc::clone(&target), delivery, making));
        }
    }

    /// Whether there is nothing to do, or not for a while.
    fn is_done(&self) -> bool {
        let now = self.engine.clock.now();
        let is_idle = self.calls.is_empty() && self.records.is_empty() && self.looks.is_empty();
        let is_paused = self.target.is_some() && !self.fare.may_call(now);
        let has_nothing = self.waiting.is_empty() && self.watch.is_over();
        is_idle && (is_paused || has_nothing)
    }

    async fn wait(&mut self) {
        let bell = Arc::clone(&self.bell);
        let shutdown = self.engine.shutdown.clone();
        tokio::select! {
            Some(looked) = self.looks.join_next() => self.take_in(looked),
            Some(called) = self.calls.join_next() => self.note(called),
            Some(recorded) = self.records.join_next() => self.recorded(recorded),
            () = bell.rung.notified() => {}
            () = sleep_until(self.watch.next()) => {}
            () = shutdown.cancelled() => {}
        }
    }

    /// Decides what follows from a call and has it recorded.
    fn note(&mut self, called: Result<Called, JoinError>) {
        let called = match called {
            Ok(called) => called,
            Err(panic) => return self.broke(&panic),
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
        let engine = Arc::clone(&self.engine);
        let latest = self.latest.subscribe();
        self.records.spawn(async move {
            let id = record.delivery_id;
            (id, engine.records.add(record, latest).await)
        });
    }

    /// How the endpoint fares after a call, where the call changed that.
    fn learn(&mut self, called: &Called) -> Option<Fare> {
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
                self.set_fare(Fare::succeeded());
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

    fn set_fare(&mut self, fare: Fare) {
        self.fare = fare;
        self.latest.send_replace(fare);
    }

    fn recorded(&mut self, recorded: Result<(WebhookDeliveryId, bool), JoinError>) {
        match recorded {
            Ok((id, true)) => {
                self.in_hand.remove(&id);
            }
            Ok((_, false)) => self.is_broken = true,
            Err(panic) => self.broke(&panic),
        }
    }

    /// The panic itself was told of by its hook, which quotes nothing.
    fn broke(&mut self, panic: &JoinError) {
        let is_panic = panic.is_panic();
        error!(webhook_endpoint.id = %self.id, is_panic, "A part of a lane broke");
        self.is_broken = true;
    }

    /// Lets the calls under way end and be recorded.
    async fn end(&mut self) {
        while let Some(called) = self.calls.join_next().await {
            self.note(called);
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
        in_hand: &[WebhookDeliveryId],
        announced: Option<Duration>,
    ) -> Result<Option<Look>, Fault> {
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
        let limit = i64::try_from(READ).unwrap_or(i64::MAX);
        let due = store::list_due(&mut connection, &endpoint, now, in_hand, limit).await?;
        store::fail_orphans(&mut connection, &due.orphans, now).await?;
        Ok(Some(Look {
            is_full: due.deliveries.len() + due.orphans.len() >= READ,
            due: due.deliveries,
            target: Target::open(self, endpoint)?,
        }))
    }
}

impl Watch {
    fn begin() -> Self {
        let now = Instant::now();
        Self {
            wanted: true,
            not_before: now,
            last: now,
            ends_at: now + LINGER,
            awake_until: None,
            announced_at: now,
            second_began: now,
            fruitful: 0,
        }
    }

    fn want(&mut self) {
        self.wanted = true;
        self.stay();
    }

    fn want_later(&mut self) {
        self.want();
        self.not_before = Instant::now() + LOOK_AGAIN_AFTER;
    }

    /// Something happens: the lane stays open.
    fn stay(&mut self) {
        self.ends_at = Instant::now() + LINGER;
    }

    fn is_due(&self) -> bool {
        let now = Instant::now();
        let by_itself = self.is_awake() && now >= self.last + LOOK_EVERY;
        (self.wanted || by_itself) && now >= self.not_before
    }

    fn is_awake(&self) -> bool {
        self.awake_until.is_some_and(|until| Instant::now() < until)
    }

    fn looked(&mut self) {
        self.wanted = false;
        self.last = Instant::now();
    }

    /// Notes what a look found.
    fn found(&mut self, count: usize, is_full: bool) {
        self.wanted |= is_full;
        if count == 0 {
            return;
        }
        self.stay();
        if self.second_began.elapsed() >= Duration::from_secs(1) {
            self.second_began = Instant::now();
            self.fruitful = 0;
        }
        self.fruitful += 1;
    }

    /// How long Postgres is told now that the lane looks by itself. That it looks
    /// longer than it says is for transactions that were told so before.
    fn announce(&mut self) -> Option<Duration> {
        let is_busy = self.fruitful >= BUSY_LOOKS;
        let is_news = !self.is_awake() || self.announced_at.elapsed() >= AWAKE / 2;
        if !is_busy || !is_news {
            return None;
        }
        self.announced_at = Instant::now();
        self.awake_until = Some(self.announced_at + AWAKE + AWAKE_GRACE);
        Some(AWAKE)
    }

    fn is_over(&self) -> bool {
        !self.wanted && !self.is_awake() && Instant::now() >= self.ends_at
    }

    /// When there may be something to do, unless something happens before. Never now:
    /// what is under way may keep the lane open and busy beyond any of these times.
    fn next(&self) -> Instant {
        let now = Instant::now();
        let (at, otherwise) = if self.wanted && self.not_before > now {
            (self.not_before, LOOK_AGAIN_AFTER)
        } else if self.is_awake() {
            (self.last + LOOK_EVERY, LOOK_EVERY)
        } else {
            (self.ends_at, REST)
        };
        if at > now { at } else { now + otherwise }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_that_finds_something_again_and_again_looks_by_itself() {
        let mut watch = Watch::begin();
        watch.looked();
        for _ in 1..BUSY_LOOKS {
            watch.found(1, false);
        }
        assert_eq!(watch.announce(), None);
        assert!(!watch.is_awake());
        watch.found(0, false);
        assert_eq!(watch.announce(), None, "empty looks do not count");
        watch.found(1, false);
        assert_eq!(watch.announce(), Some(AWAKE));
        assert!(watch.is_awake() && !watch.is_over());
        assert_eq!(watch.announce(), None, "it was said a moment ago");
        assert!(watch.next() <= Instant::now() + LOOK_EVERY);
    }

    #[test]
    fn a_lane_that_is_kept_open_by_a_call_rests_meanwhile() {
        let mut watch = Watch::begin();
        watch.looked();
        watch.ends_at = Instant::now() - LINGER;
        assert!(watch.is_over());
        assert!(watch.next() > Instant::now() + REST / 2);
        watch.awake_until = Some(Instant::now() + AWAKE);
        watch.last = Instant::now() - AWAKE;
        assert!(watch.next() > Instant::now() + LOOK_EVERY / 2);
    }

    #[test]
    fn a_full_look_wants_another() {
        let mut watch = Watch::begin();
        assert!(watch.is_due(), "a lane begins with a look");
        watch.looked();
        assert!(!watch.is_due());
        watch.found(READ, true);
        assert!(watch.is_due());
    }
}
