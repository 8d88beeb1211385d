//! Group commit: concurrent callers share one piece of work, as a rule one transaction.
//! One lane gathers while others work, so a caller who is alone waits for nobody, and
//! under load the cost of a statement and of a commit is spread over many callers. While
//! a lane works, another sets off only with a crowd: two small transactions side by side
//! cost more than a larger one a moment later. For the same reason some groups rest after
//! work that was shared: processes that are short of processors would otherwise end up
//! with many small groups, each of them slow.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::{Mutex, Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::fault::Fault;

/// How long a lane waits for a crowd at the most, besides its [`YIELDS`] and rests: another
/// may hang at a lock.
const LINGER_MAX: Duration = Duration::from_millis(10);

/// How many times as long as the work before it a rest is. Four workers and two APIs on two
/// processors delivered a fifth more with 3 than with 1 (`make bench ONLY=processes`, one
/// after the other), one of each the same for 5 % less CPU (`ONLY=cost`).
const COOLDOWN_FACTOR: u32 = 3;

/// How often a lane lets other tasks have their turn before it looks who came. Those that
/// are ready, a request's or a job's, then share its work instead of the next: with 2 turns
/// four workers and two APIs delivered 8 % more than with none, one of each 5 % more (two
/// pairs of `make bench ONLY=processes`), and a lane that is alone lost nothing measurable.
const YIELDS: u32 = 2;

/// A queue of entries and the lanes that work them off. Cheap to clone; the lanes
/// end when the last clone is gone and the queue is empty.
pub struct Batcher<T, R> {
    sender: mpsc::Sender<Queued<T, R>>,
}

struct Queued<T, R> {
    item: T,
    weight: usize,
    /// When it came in: callers who wait to enter are not counted as waiting.
    since: Instant,
    done: oneshot::Sender<Result<R, Fault>>,
}

/// How a group works.
#[derive(Debug, Clone, Copy)]
pub struct BatcherSettings {
    /// Pieces of work under way at once.
    pub lanes: usize,
    /// The weight that one piece of work takes at the most, unless one entry
    /// alone is heavier.
    pub weight_max: usize,
    /// The number of entries with which a lane sets off although another is at work.
    pub crowd: usize,
    /// Entries that may wait; beyond it callers wait to enter.
    pub waiting_max: usize,
    /// How shared work is followed by a rest, during which only a crowd sets off.
    pub rest: Cooldown,
}

/// The rest after shared work: three times as long as the work took beyond `unless`.
#[derive(Debug, Clone, Copy)]
pub struct Cooldown {
    /// Work that took no longer has no rest.
    pub unless: Duration,
    pub longest: Duration,
}

impl Cooldown {
    /// No rest: where somebody waits for an answer at the other end of a connection.
    pub const NONE: Self = Self {
        unless: Duration::ZERO,
        longest: Duration::ZERO,
    };

    fn after(self, work: Duration) -> Duration {
        (COOLDOWN_FACTOR * work.saturating_sub(self.unless)).min(self.longest)
    }
}

impl<T, R> Clone for Batcher<T, R> {
    fn clone(&self) -> Self {
        Self {
            sender: self.sender.clone(),
        }
    }
}

impl<T, R> Batcher<T, R>
where
    T: Send + 'static,
    R: Send + 'static,
{
    /// Starts the lanes. `work` gets the gathered items and answers one result
    /// for each, in their order. Each piece of work is logged at `trace` under the
    /// `name`, with how much was shared and how long that took.
    pub fn start<W, F>(name: &'static str, settings: BatcherSettings, work: W) -> Self
    where
        W: Fn(Vec<T>) -> F + Clone + Send + 'static,
        F: Future<Output = Vec<Result<R, Fault>>> + Send + 'static,
    {
        let (sender, receiver) = mpsc::channel(settings.waiting_max);
        let lanes = Arc::new(Flushes {
            waiting: Mutex::new(receiver),
            busy: AtomicUsize::new(0),
            ended: Notify::new(),
            rests_until: std::sync::Mutex::new(Instant::now()),
            name,
            settings,
        });
        for _ in 0..settings.lanes {
            tokio::spawn(run_flushes(Arc::clone(&lanes), work.clone()));
        }
        Self { sender }
    }

    /// Hands in one item and waits for its result. `weight` says how much of a
    /// group it fills.
    ///
    /// # Errors
    /// The fault of the shared work, or one that says that the lanes are gone.
    pub async fn run(&self, item: T, weight: usize) -> Result<R, Fault> {
        let (done, result) = oneshot::channel();
        let gone = || Fault::unavailable("share a transaction", "the process is stopping");
        let place = self.sender.reserve().await.map_err(|_| gone())?;
        place.send(Queued {
            item,
            weight,
            since: Instant::now(),
            done,
        });
        result.await.map_err(|_| gone())?
    }
}

/// What the lanes of a group share.
struct Flushes<T, R> {
    /// Held by the lane that gathers.
    waiting: Mutex<mpsc::Receiver<Queued<T, R>>>,
    busy: AtomicUsize,
    /// Told to the lane that gathers when one of them ends.
    ended: Notify,
    /// Until then only a crowd sets off. The lane that ended last decides.
    rests_until: std::sync::Mutex<Instant>,
    name: &'static str,
    settings: BatcherSettings,
}

/// One piece of work under way.
struct Flush<'a, T, R> {
    lanes: &'a Flushes<T, R>,
    since: Instant,
    is_shared: bool,
}

impl<T, R> Drop for Flush<'_, T, R> {
    fn drop(&mut self) {
        let now = Instant::now();
        let rest = if self.is_shared {
            self.lanes.settings.rest.after(now - self.since)
        } else {
            Duration::ZERO
        };
        *self.lanes.rests_until() = now + rest;
        self.lanes.busy.fetch_sub(1, Ordering::AcqRel);
        self.lanes.ended.notify_one();
    }
}

async fn run_flushes<T, R, W, F>(lanes: Arc<Flushes<T, R>>, work: W)
where
    W: Fn(Vec<T>) -> F,
    F: Future<Output = Vec<Result<R, Fault>>>,
{
    while let Some((entries, busy)) = lanes.gather().await {
        let shared = FlushStats::of(&entries, &busy);
        let (items, waiters): (Vec<T>, Vec<_>) = entries
            .into_iter()
            .map(|entry| (entry.item, entry.done))
            .unzip();
        // A panic costs those who shared the work their result, not the lane.
        let worked = AssertUnwindSafe(work(items)).catch_unwind().await;
        shared.tell(&busy);
        drop(busy);
        let Ok(results) = worked else {
            tracing::error!(group = lanes.name, "A shared piece of work panicked");
            continue;
        };
        for (waiter, result) in waiters.into_iter().zip(results) {
            // A waiter that has gone away asked for the work all the same.
            let _gone = waiter.send(result);
        }
    }
}

/// What a piece of work was shared by, for the log.
struct FlushStats {
    entries: usize,
    weight: usize,
    longest_wait: Duration,
}

impl FlushStats {
    fn of<T, R>(entries: &[Queued<T, R>], busy: &Flush<'_, T, R>) -> Self {
        Self {
            entries: entries.len(),
            weight: entries.iter().map(|entry| entry.weight).sum(),
            // In the order in which they came.
            longest_wait: entries
                .first()
                .map_or(Duration::ZERO, |first| busy.since - first.since),
        }
    }

    fn tell<T, R>(&self, busy: &Flush<'_, T, R>) {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        tracing::trace!(
            group = busy.lanes.name,
            entries = self.entries,
            weight = self.weight,
            longest_wait_us = micros(self.longest_wait),
            work_us = micros(busy.since.elapsed()),
            "Shared a piece of work"
        );
    }
}

impl<T, R> Flushes<T, R> {
    /// The next entries to work on; nothing when there will be no more.
    async fn gather(&self) -> Option<(Vec<Queued<T, R>>, Flush<'_, T, R>)> {
        let mut waiting = self.waiting.lock().await;
        let first = waiting.recv().await?;
        let mut weight = first.weight;
        let mut entries = vec![first];
        let patience = tokio::time::sleep(LINGER_MAX);
        tokio::pin!(patience);
        // Callers who are ready to come in do so first.
        for _ in 0..YIELDS {
            tokio::task::yield_now().await;
        }
        loop {
            while weight < self.settings.weight_max
                && let Ok(entry) = waiting.try_recv()
            {
                weight += entry.weight;
                entries.push(entry);
            }
            let is_full =
                entries.len() >= self.settings.crowd || weight >= self.settings.weight_max;
            let is_free = self.busy.load(Ordering::Acquire) == 0;
            let rests_until = *self.rests_until();
            let rests = rests_until > Instant::now();
            if is_full || is_free && !rests {
                break;
            }
            // What an earlier lane left behind of its end costs one more look.
            tokio::select! {
                () = self.ended.notified() => {}
                () = sleep_until(rests_until), if rests => {}
                () = &mut patience, if !rests => break,
                entry = waiting.recv() => {
                    let Some(entry) = entry else { break };
                    weight += entry.weight;
                    entries.push(entry);
                }
            }
        }
        // Counted before the next lane may gather.
        self.busy.fetch_add(1, Ordering::AcqRel);
        let busy = Flush {
            lanes: self,
            since: Instant::now(),
            is_shared: entries.len() > 1,
        };
        Some((entries, busy))
    }

    fn rests_until(&self) -> std::sync::MutexGuard<'_, Instant> {
        self.rests_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn callers_that_come_while_a_lane_is_busy_share_the_next_piece_of_work() {
        let runs = Arc::new(AtomicUsize::new(0));
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let settings = BatcherSettings {
            lanes: 1,
            weight_max: 1_000,
            crowd: 1,
            waiting_max: 100,
            rest: Cooldown::NONE,
        };
        let (counted, opened) = (Arc::clone(&runs), Arc::clone(&gate));
        let group: Batcher<u32, u32> = Batcher::start("test", settings, move |items: Vec<u32>| {
            let (counted, opened) = (Arc::clone(&counted), Arc::clone(&opened));
            async move {
                counted.fetch_add(1, Ordering::SeqCst);
                let _permit = opened.acquire().await;
                items.into_iter().map(|item| Ok(item * 2)).collect()
            }
        });
        let call = |item: u32| {
            let group = group.clone();
            tokio::spawn(async move { group.run(item, 1).await.unwrap() })
        };
        let mut callers = vec![call(0)];
        while runs.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        callers.extend((1..50).map(call));
        while group.sender.capacity() > 100 - 49 {
            tokio::task::yield_now().await;
        }
        gate.add_permits(1_000);
        for (item, caller) in callers.into_iter().enumerate() {
            assert_eq!(caller.await.unwrap() as usize, item * 2);
        }
        assert_eq!(runs.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_lane_sets_off_with_a_crowd_or_when_the_first_has_ended() {
        let sizes = Arc::new(std::sync::Mutex::new(Vec::new()));
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let settings = BatcherSettings {
            lanes: 3,
            weight_max: 1_000,
            crowd: 10,
            waiting_max: 100,
            rest: Cooldown::NONE,
        };
        let (noted, opened) = (Arc::clone(&sizes), Arc::clone(&gate));
        let group: Batcher<u32, u32> = Batcher::start("test", settings, move |items: Vec<u32>| {
            let (noted, opened) = (Arc::clone(&noted), Arc::clone(&opened));
            async move {
                noted.lock().unwrap().push(items.len());
                opened.acquire().await.unwrap().forget();
                items.into_iter().map(Ok).collect()
            }
        });
        let call = |item: u32| {
            let group = group.clone();
            tokio::spawn(async move { group.run(item, 1).await.unwrap() })
        };
        let until = async |wanted: &[usize]| {
            while *sizes.lock().unwrap() != wanted {
                tokio::task::yield_now().await;
            }
        };
        let mut callers = vec![call(0)];
        until(&[1]).await;
        callers.extend((1..10).map(call));
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        assert_eq!(*sizes.lock().unwrap(), [1], "nine are no crowd");
        callers.push(call(10));
        until(&[1, 10]).await;
        callers.extend((11..14).map(call));
        gate.add_permits(2);
        until(&[1, 10, 3]).await;
        gate.add_permits(1);
        for (item, caller) in callers.into_iter().enumerate() {
            assert_eq!(caller.await.unwrap() as usize, item);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn after_shared_work_a_lane_rests_unless_a_crowd_comes() {
        let sizes = Arc::new(std::sync::Mutex::new(Vec::new()));
        let settings = BatcherSettings {
            lanes: 2,
            weight_max: 1_000,
            crowd: 3,
            waiting_max: 100,
            rest: Cooldown {
                unless: Duration::from_millis(1),
                longest: Duration::from_millis(7),
            },
        };
        let noted = Arc::clone(&sizes);
        let group: Batcher<(), ()> = Batcher::start("test", settings, move |items: Vec<()>| {
            noted.lock().unwrap().push(items.len());
            async move {
                tokio::time::sleep(Duration::from_millis(items.len() as u64)).await;
                items.into_iter().map(Ok).collect()
            }
        });
        let calls = async |count: usize| {
            let since = Instant::now();
            let calls = (0..count).map(|_| group.run((), 1));
            futures_util::future::try_join_all(calls).await.unwrap();
            since.elapsed()
        };
        let millis = |time: Duration| time.as_millis();
        assert_eq!(millis(calls(1).await), 1, "nothing was shared before");
        assert_eq!(millis(calls(2).await), 2, "nor was the one before");
        assert_eq!(millis(calls(3).await), 3, "three are a crowd");
        assert_eq!(millis(calls(2).await), 2 + 3 * (3 - 1), "two are none");
        assert_eq!(millis(calls(4).await), 4);
        assert_eq!(millis(calls(2).await), 2 + 7, "no longer than the longest");
        assert_eq!(*sizes.lock().unwrap(), [1, 2, 3, 2, 4, 2]);
    }
}
