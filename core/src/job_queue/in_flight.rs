//! The desk of one consumer: the jobs it has fetched and not yet acknowledged,
//! and what is to be told of them. The fetcher lays jobs on it, the worker takes
//! them and says how they ended, the acknowledger clears them away. It knows
//! nothing of Redis and never waits while it holds its lock.

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicI64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::Notify;

use super::fair_scheduler::FairScheduler;
use super::{Capacity, FairnessKey, Job, JobEnd, Queue, QueueSettings};

/// The most jobs a desk keeps, beyond its room, of lanes that have their share of the
/// worker: enough for the windows of many, since others' jobs lie behind them.
const HELD_BACK_MAX: usize = 20_000;

/// One consumer of a queue: what its tasks and its worker share.
#[derive(Debug)]
pub(super) struct Consumer<J> {
    pub(super) queue: Queue<J>,
    pub(super) name: String,
    pub(super) desk: InFlight<J>,
    /// The fetcher's connection, as Redis names it: 0 while there is none.
    pub(super) fetcher_id: AtomicI64,
    /// How many of its connections are broken now, so that only the first and
    /// the last are worth a line in the log.
    pub(super) lines_down: Arc<AtomicUsize>,
}

impl<J> Consumer<J> {
    /// Notes how a job ended, and decides what that means in the queue.
    pub(super) fn end(&self, id: EntryId, result: Result<JobEnd, String>) {
        let settings = self.queue.settings();
        let attempts = self.desk.attempts(id);
        let (after, reason) = match result {
            Ok(JobEnd::Done) => return self.desk.end(id, JobOutcome::Done),
            Ok(JobEnd::Snooze(after)) => {
                return self.desk.end(id, JobOutcome::Later { after, attempts });
            }
            Ok(JobEnd::Dead { reason }) => return self.desk.end(id, JobOutcome::Dead { reason }),
            Ok(JobEnd::Retry { after, reason }) => (after, reason),
            Err(reason) => {
                let queue = self.queue.name();
                crate::warn_seldom!(queue, job.entry = %id, "A job failed: {reason}");
                (backoff(settings, attempts, id), reason)
            }
        };
        let attempts = attempts.saturating_add(1);
        self.desk.end(
            id,
            if attempts >= settings.attempts_max {
                let reason = format!("failed {attempts} times, at last: {reason}");
                JobOutcome::Dead { reason }
            } else {
                JobOutcome::Later { after, attempts }
            },
        );
    }

    /// Stops fetching, gives back what was not started, and waits (bounded) until
    /// everything that ended is acknowledged and the consumer has left the group.
    pub(super) async fn close(&self) {
        self.desk.stop();
        let within = self.queue.settings().close_within;
        if tokio::time::timeout(within, self.desk.left())
            .await
            .is_err()
        {
            let queue = self.queue.name();
            tracing::warn!(
                queue,
                "Stopped without having acknowledged every job: some will run again"
            );
        }
    }
}

/// Doubles from the first wait to the longest. The jitter (up to a quarter off)
/// comes from the entry's id: jobs that failed together do not return together.
fn backoff(settings: &QueueSettings, attempts: u32, id: EntryId) -> Duration {
    let doubled = settings
        .retry_first
        .saturating_mul(2_u32.saturating_pow(attempts.min(31)));
    let mut hasher = DefaultHasher::new();
    (id, attempts).hash(&mut hasher);
    let per_mille = u32::try_from(hasher.finish() % 250).unwrap_or(0);
    doubled.min(settings.retry_longest) * (1000 - per_mille) / 1000
}

/// The id of an entry of the stream.
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

/// An entry as it lies in the stream.
#[derive(Debug, Clone)]
pub(super) struct StreamEntry {
    pub(super) id: EntryId,
    pub(super) payload: Vec<u8>,
    pub(super) attempts: u32,
    /// The lane in whose count it is, if in any.
    pub(super) lane: Option<FairnessKey>,
    /// When it was pushed, in ms.
    pub(super) at_ms: i64,
}

/// A job that waits for the worker to start it.
#[derive(Debug)]
pub(super) struct Fetched<J> {
    pub(super) id: EntryId,
    pub(super) job: J,
    pub(super) attempts: u32,
}

/// What becomes of an entry. `Again` is a job that was never started.
#[derive(Debug, Clone)]
pub(super) enum JobOutcome {
    Done,
    Again,
    Later { after: Duration, attempts: u32 },
    Dead { reason: String },
}

#[derive(Debug)]
pub(super) struct InFlight<J> {
    room: usize,
    state: Mutex<InFlightState<J>>,
    room_changed: Notify,
    something_ended: Notify,
    stop_asked: Notify,
    has_left: Notify,
}

#[derive(Debug)]
struct InFlightState<J> {
    shares: FairScheduler<Fetched<J>>,
    /// Everything fetched and not acknowledged: waiting, running or just ended.
    held: HashMap<EntryId, HeldEntry>,
    ended: Vec<(EntryId, JobOutcome)>,
    worker: Option<Waker>,
    stopping: bool,
    fetcher_gone: bool,
    left: bool,
}

#[derive(Debug)]
struct HeldEntry {
    entry: StreamEntry,
    /// The lane whose slot it has, while it runs.
    runs_in: Option<FairnessKey>,
}

impl From<StreamEntry> for HeldEntry {
    fn from(entry: StreamEntry) -> Self {
        Self {
            entry,
            runs_in: None,
        }
    }
}

impl<J> InFlightState<J> {
    fn free_slot(&mut self, id: EntryId) {
        let held = self.held.get_mut(&id);
        if let Some(lane) = held.and_then(|held| held.runs_in.take()) {
            self.shares.end(lane);
        }
    }
}

impl<J> InFlight<J> {
    pub(super) fn new(capacity: Capacity) -> Self {
        Self {
            room: capacity.room.max(1),
            state: Mutex::new(InFlightState {
                shares: FairScheduler::new(capacity.slots),
                held: HashMap::new(),
                ended: Vec::new(),
                worker: None,
                stopping: false,
                fetcher_gone: false,
                left: false,
            }),
            room_changed: Notify::new(),
            something_ended: Notify::new(),
            stop_asked: Notify::new(),
            has_left: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, InFlightState<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until fetching is worth while and tells for how many jobs there is
    /// room; `None` once the desk is being closed. While the worker still has jobs
    /// to start, room gathers to a quarter of the desk, so that a busy queue is
    /// read in batches; a worker with nothing to start is served at once. Jobs whose
    /// lane has its share take up no room: behind them lie those of others.
    pub(super) async fn room(&self) -> Option<usize> {
        loop {
            {
                let state = self.state();
                if state.stopping {
                    return None;
                }
                let held_back = state.shares.held_back();
                let in_hand = state.held.len() - held_back.min(state.held.len());
                let startable = state.shares.waiting() - held_back;
                let most = (self.room + HELD_BACK_MAX).saturating_sub(state.held.len());
                let free = self.room.saturating_sub(in_hand).min(most);
                if free > 0 && (startable == 0 || free * 4 >= self.room) {
                    return Some(free);
                }
            }
            self.room_changed.notified().await;
        }
    }

    pub(super) fn holds(&self, id: EntryId) -> bool {
        self.state().held.contains_key(&id)
    }

    /// The ids of everything held, whose leases are to be renewed.
    pub(super) fn held(&self) -> Vec<EntryId> {
        self.state().held.keys().copied().collect()
    }

    /// Lays fetched jobs on the desk, or marks them to go back if it is closing.
    pub(super) fn lay(&self, jobs: Vec<(StreamEntry, J)>)
    where
        J: Job,
    {
        let mut state = self.state();
        for (entry, job) in jobs {
            let (id, attempts) = (entry.id, entry.attempts);
            state.held.insert(id, entry.into());
            if state.stopping {
                state.ended.push((id, JobOutcome::Again));
            } else {
                let lane = job.lane();
                state.shares.wait(lane, Fetched { id, job, attempts });
            }
        }
        if state.stopping {
            self.something_ended.notify_one();
        }
        let worker = state.worker.take();
        drop(state);
        if let Some(worker) = worker {
            worker.wake();
        }
    }

    /// Lays an entry on the desk that no worker shall see.
    pub(super) fn lay_dead(&self, entry: StreamEntry, reason: String) {
        let id = entry.id;
        self.state().held.insert(id, entry.into());
        self.end(id, JobOutcome::Dead { reason });
    }

    pub(super) fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Fetched<J>>
    where
        J: Job,
    {
        let mut state = self.state();
        let Some(fetched) = state.shares.start_next() else {
            state.worker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        if let Some(held) = state.held.get_mut(&fetched.id) {
            held.runs_in = Some(fetched.job.lane());
        }
        if state.shares.waiting() == state.shares.held_back() {
            self.room_changed.notify_one();
        }
        Poll::Ready(fetched)
    }

    fn attempts(&self, id: EntryId) -> u32 {
        let state = self.state();
        state.held.get(&id).map_or(0, |held| held.entry.attempts)
    }

    /// Frees the job's slot too. The worker need not be woken for that: it polls when
    /// the job's future, which is about to be ready, is.
    fn end(&self, id: EntryId, ending: JobOutcome) {
        let mut state = self.state();
        state.free_slot(id);
        state.ended.push((id, ending));
        drop(state);
        self.something_ended.notify_one();
    }

    /// Waits until jobs have ended and takes them, up to `max`. They stay held
    /// until [`InFlight::let_go`], so that their leases last until then.
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
            self.something_ended.notified().await;
        }
    }

    /// Forgets jobs: acknowledged ones, or abandoned ones.
    pub(super) fn let_go(&self, ids: &[EntryId]) {
        let mut state = self.state();
        for id in ids {
            state.free_slot(*id);
            state.held.remove(id);
        }
        drop(state);
        self.room_changed.notify_one();
    }

    /// Asks for no more jobs and marks those not started to go back.
    pub(super) fn stop(&self) {
        let mut state = self.state();
        state.stopping = true;
        let unstarted = state.shares.drain();
        let unstarted = unstarted.into_iter().map(|job| (job.id, JobOutcome::Again));
        state.ended.extend(unstarted);
        drop(state);
        self.room_changed.notify_one();
        self.something_ended.notify_one();
        self.stop_asked.notify_one();
    }

    /// Completes when [`InFlight::stop`] has been called (for its one listener).
    pub(super) async fn stop_asked(&self) {
        self.stop_asked.notified().await;
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.state().stopping
    }

    pub(super) fn note_fetcher_gone(&self) {
        self.state().fetcher_gone = true;
    }

    pub(super) fn is_fetcher_gone(&self) -> bool {
        self.state().fetcher_gone
    }

    /// Whether nothing is left to fetch, run or acknowledge.
    pub(super) fn is_settled(&self) -> bool {
        let state = self.state();
        state.fetcher_gone && state.held.is_empty()
    }

    pub(super) fn note_left(&self) {
        self.state().left = true;
        self.has_left.notify_one();
    }

    async fn left(&self) {
        while !self.state().left {
            self.has_left.notified().await;
        }
    }
}
