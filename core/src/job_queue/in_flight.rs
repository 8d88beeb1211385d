//! One consumer, and its jobs in flight: fetched and not acknowledged. The fetcher pushes
//! jobs, the worker takes them and reports how they ended, the acknowledger releases them.
//! [`InFlight`] knows nothing of Redis and never waits while it holds its lock.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::AtomicI64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::Notify;

use super::connection::ReconnectingConnection;
use super::fair_scheduler::FairScheduler;
use super::{Capacity, FairnessKey, Job, JobEnd, Queue};

/// The most jobs beyond `in_flight_max`, of keys that have their share of the slots. Enough
/// for the quotas of many keys, since jobs of other keys come after them in the stream.
const HELD_BACK_MAX: usize = 20_000;

/// One consumer of a queue: what its tasks and its worker share.
#[derive(Debug)]
pub(super) struct Consumer<J> {
    pub(super) queue: Queue<J>,
    pub(super) name: String,
    pub(super) in_flight: InFlight<J>,
    /// The id that Redis gave to the fetcher's connection. 0 if there is none.
    pub(super) fetcher_id: AtomicI64,
}

impl<J> Consumer<J> {
    /// A connection for one of the consumer's tasks.
    pub(super) fn connection(&self) -> ReconnectingConnection {
        self.queue.reconnecting()
    }

    /// Notes how a job ended, and decides what the queue does with it.
    pub(super) fn end(&self, id: EntryId, result: Result<JobEnd, String>) {
        let outcome = match result {
            Ok(JobEnd::Done) => JobOutcome::Done,
            Ok(JobEnd::Snooze(after)) => JobOutcome::Later(after),
            Err(reason) => {
                let queue = self.queue.name();
                crate::warn_seldom!(queue, job.entry = %id, "A job failed: {reason}");
                JobOutcome::Later(self.queue.settings().retry_failed_after)
            }
        };
        self.in_flight.end(id, outcome);
    }

    /// Stops fetching, gives back the jobs that were not started, and waits until all others
    /// are acknowledged and the consumer is removed from the group, for a limited time.
    pub(super) async fn close(&self) {
        self.in_flight.stop();
        let within = self.queue.settings().close_within;
        let closed = tokio::time::timeout(within, self.in_flight.closed());
        if closed.await.is_err() {
            let queue = self.queue.name();
            tracing::warn!(
                queue,
                "Stopped before every job was acknowledged: some will run again"
            );
        }
    }
}

/// The id of a stream entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct EntryId(u64, u64);

impl EntryId {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (time, sequence) = text.split_once('-')?;
        Some(Self(time.parse().ok()?, sequence.parse().ok()?))
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
    }
}

/// An entry of the stream.
#[derive(Debug, Clone)]
pub(super) struct StreamEntry {
    pub(super) id: EntryId,
    pub(super) payload: Vec<u8>,
    /// The fairness key in whose count it is. `None` if it is in none.
    pub(super) key: Option<FairnessKey>,
    /// When it was pushed, in ms.
    pub(super) at_ms: i64,
}

/// A job that is ready to start.
#[derive(Debug)]
pub(super) struct Fetched<J> {
    pub(super) id: EntryId,
    pub(super) job: J,
}

/// What the queue does with an entry.
#[derive(Debug, Clone)]
pub(super) enum JobOutcome {
    Done,
    /// It was not started and goes back to the stream.
    Return,
    /// It runs again after this wait.
    Later(Duration),
}

#[derive(Debug)]
pub(super) struct InFlight<J> {
    max: usize,
    finishing_max: usize,
    state: Mutex<InFlightState<J>>,
    capacity_changed: Notify,
    job_ended: Notify,
    stop_requested: Notify,
    closed: Notify,
}

#[derive(Debug)]
struct InFlightState<J> {
    scheduler: FairScheduler<Fetched<J>>,
    /// All jobs that were fetched and are not acknowledged: ready, running or ended.
    held: HashMap<EntryId, HeldEntry>,
    ended: Vec<(EntryId, JobOutcome)>,
    /// How many of those held freed their slots before they ended.
    finishing: usize,
    worker: Option<Waker>,
    is_stopping: bool,
    has_fetcher_stopped: bool,
    is_closed: bool,
}

#[derive(Debug)]
struct HeldEntry {
    entry: StreamEntry,
    /// The fairness key whose slot it uses while it runs.
    slot_of: Option<FairnessKey>,
    /// Whether it freed its slot before it ended.
    is_finishing: bool,
}

impl From<StreamEntry> for HeldEntry {
    fn from(entry: StreamEntry) -> Self {
        Self {
            entry,
            slot_of: None,
            is_finishing: false,
        }
    }
}

impl<J> InFlightState<J> {
    fn free_slot(&mut self, id: EntryId) {
        let held = self.held.get_mut(&id);
        if let Some(key) = held.and_then(|held| held.slot_of.take()) {
            self.scheduler.end(key);
        }
    }
}

impl<J> InFlight<J> {
    pub(super) fn new(capacity: Capacity) -> Self {
        Self {
            max: capacity.in_flight_max.max(1),
            finishing_max: capacity.finishing_max,
            state: Mutex::new(InFlightState {
                scheduler: FairScheduler::new(capacity.slots),
                held: HashMap::new(),
                ended: Vec::new(),
                finishing: 0,
                worker: None,
                is_stopping: false,
                has_fetcher_stopped: false,
                is_closed: false,
            }),
            capacity_changed: Notify::new(),
            job_ended: Notify::new(),
            stop_requested: Notify::new(),
            closed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, InFlightState<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until jobs should be fetched, and returns how many. `None` once it is stopping.
    ///
    /// A worker without a job to start fetches at once. Otherwise it waits until a quarter of
    /// its capacity is free, so that a busy queue is read in batches. Jobs whose key has its
    /// share of the slots do not count: jobs of other keys come after them in the stream. Nor do
    /// those that freed their slots.
    pub(super) async fn free_capacity(&self) -> Option<usize> {
        loop {
            {
                let state = self.state();
                if state.is_stopping {
                    return None;
                }
                let held_back = state.scheduler.held_back();
                let uncounted = held_back + state.finishing;
                let counted = state.held.len().saturating_sub(uncounted);
                let startable = state.scheduler.waiting() - held_back;
                let most = (self.max + HELD_BACK_MAX).saturating_sub(state.held.len());
                let free = self.max.saturating_sub(counted).min(most);
                if free > 0 && (startable == 0 || free * 4 >= self.max) {
                    return Some(free);
                }
            }
            self.capacity_changed.notified().await;
        }
    }

    pub(super) fn holds(&self, id: EntryId) -> bool {
        self.state().held.contains_key(&id)
    }

    /// The ids of all jobs in flight, whose leases are to be renewed.
    pub(super) fn held(&self) -> Vec<EntryId> {
        self.state().held.keys().copied().collect()
    }

    /// Adds fetched jobs. If it is stopping, they go back to the stream.
    pub(super) fn push(&self, jobs: Vec<(StreamEntry, J)>)
    where
        J: Job,
    {
        let mut state = self.state();
        for (entry, job) in jobs {
            let id = entry.id;
            state.held.insert(id, entry.into());
            if state.is_stopping {
                state.ended.push((id, JobOutcome::Return));
            } else {
                let key = job.fairness_key();
                state.scheduler.wait(key, Fetched { id, job });
            }
        }
        if state.is_stopping {
            self.job_ended.notify_one();
        }
        let worker = state.worker.take();
        drop(state);
        if let Some(worker) = worker {
            worker.wake();
        }
    }

    /// Adds an entry that no worker can run, as done.
    pub(super) fn push_unreadable(&self, entry: StreamEntry) {
        let id = entry.id;
        self.state().held.insert(id, entry.into());
        self.end(id, JobOutcome::Done);
    }

    /// The next job to start.
    pub(super) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Fetched<J>>
    where
        J: Job,
    {
        let mut state = self.state();
        let has_room = state.finishing < self.finishing_max.max(1);
        let next = has_room.then(|| state.scheduler.start_next()).flatten();
        let Some(fetched) = next else {
            state.worker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        if let Some(held) = state.held.get_mut(&fetched.id) {
            held.slot_of = Some(fetched.job.fairness_key());
        }
        if state.scheduler.waiting() == state.scheduler.held_back() {
            self.capacity_changed.notify_one();
        }
        Poll::Ready(fetched)
    }

    /// Notes that a job ended, and frees its slot. The worker needs no wake-up for that: it
    /// polls when the job's future, which is about to be ready, is.
    fn end(&self, id: EntryId, outcome: JobOutcome) {
        let mut state = self.state();
        state.free_slot(id);
        state.ended.push((id, outcome));
        drop(state);
        self.job_ended.notify_one();
    }

    /// Waits until jobs have ended and returns up to `max` of them. They stay in flight until
    /// [`InFlight::release`], so that their leases are renewed until then.
    pub(super) async fn ended(&self, max: usize) -> Vec<(StreamEntry, JobOutcome)> {
        loop {
            {
                let mut state = self.state();
                let count = state.ended.len().min(max);
                if count > 0 {
                    let ended: Vec<_> = state.ended.drain(..count).collect();
                    return ended
                        .into_iter()
                        .filter_map(|(id, end)| Some((state.held.get(&id)?.entry.clone(), end)))
                        .collect();
                }
            }
            self.job_ended.notified().await;
        }
    }

    /// Frees the slot of a running job before it ends.
    pub(super) fn finish(&self, id: EntryId) {
        let mut state = self.state();
        let held = state.held.get_mut(&id);
        let Some(held) = held.filter(|held| held.slot_of.is_some()) else {
            return;
        };
        held.is_finishing = true;
        state.finishing += 1;
        state.free_slot(id);
        self.slot_freed(state);
    }

    /// Lets the worker start a job, and the fetcher fetch some.
    fn slot_freed(&self, mut state: MutexGuard<'_, InFlightState<J>>) {
        let worker = state.worker.take();
        drop(state);
        if let Some(worker) = worker {
            worker.wake();
        }
        self.capacity_changed.notify_one();
    }

    /// Removes jobs that were acknowledged or abandoned.
    pub(super) fn release(&self, ids: &[EntryId]) {
        let mut state = self.state();
        for id in ids {
            state.free_slot(*id);
            let held = state.held.remove(id);
            if held.is_some_and(|held| held.is_finishing) {
                state.finishing = state.finishing.saturating_sub(1);
            }
        }
        self.slot_freed(state);
    }

    /// Stops fetching. Jobs that were not started go back to the stream.
    pub(super) fn stop(&self) {
        let mut state = self.state();
        state.is_stopping = true;
        let unstarted = state.scheduler.drain();
        let unstarted = unstarted
            .into_iter()
            .map(|job| (job.id, JobOutcome::Return));
        state.ended.extend(unstarted);
        drop(state);
        self.capacity_changed.notify_one();
        self.job_ended.notify_one();
        self.stop_requested.notify_one();
    }

    /// Completes when [`InFlight::stop`] was called. For one listener.
    pub(super) async fn stop_requested(&self) {
        self.stop_requested.notified().await;
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.state().is_stopping
    }

    pub(super) fn mark_fetcher_stopped(&self) {
        self.state().has_fetcher_stopped = true;
    }

    pub(super) fn has_fetcher_stopped(&self) -> bool {
        self.state().has_fetcher_stopped
    }

    /// Whether nothing is left to fetch, run or acknowledge.
    pub(super) fn is_drained(&self) -> bool {
        let state = self.state();
        state.has_fetcher_stopped && state.held.is_empty()
    }

    pub(super) fn mark_closed(&self) {
        self.state().is_closed = true;
        self.closed.notify_one();
    }

    async fn closed(&self) {
        while !self.state().is_closed {
            self.closed.notified().await;
        }
    }
}
