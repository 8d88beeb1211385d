//! A batcher: concurrent callers share one piece of work, as a rule one transaction
//! (group commit).
//!
//! One flush collects a batch while others run, so a single caller waits for nobody, and
//! under load the cost of a statement and of a commit is spread over many callers. While a
//! flush runs, another starts only with at least `batch_min` items: two small transactions
//! side by side cost more than a larger one a moment later. For the same reason some
//! batchers pause after a shared batch (`cooldown`): with few processors they would end up
//! with many small batches, each of them slow. Items for whose result nobody waits
//! ([`Batcher::run_deferred`]) gather longer, so that they share a transaction at a low rate
//! too.
//!
//! The policy in one place, with what each constant gave (`make bench`):
//! - `YIELDS` = 2: four workers and two APIs on two processors delivered 8 % more than with
//!   0, one of each 5 % more; a single caller lost nothing measurable.
//! - `COOLDOWN_FACTOR` = 3: four workers and two APIs delivered a fifth more than with 1,
//!   one of each the same for 5 % less CPU.
//! - `LINGER_MAX` = 10 ms bounds the wait for `batch_min` behind a flush that hangs at a
//!   lock.
//! - `batch_min`, `batch_weight_max`, `flushes_max` and `cooldown` belong to each batcher;
//!   their values stand where it is started.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::{Mutex, Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::fault::Fault;
use crate::telemetry::instruments;

/// The longest wait for `batch_min` items, besides yields and the cooldown.
const LINGER_MAX: Duration = Duration::from_millis(10);
/// How many times as long as the flush before it a cooldown is.
const COOLDOWN_FACTOR: u32 = 3;
/// How often a flush yields to other tasks before it takes its batch: callers that are
/// ready then share this batch and not the next.
const YIELDS: u32 = 2;

/// A queue of items and the flushes that work it off. Cheap to clone; the flushes end when
/// the last clone is dropped and the queue is empty.
pub struct Batcher<T, R> {
    sender: mpsc::Sender<Queued<T, R>>,
}

struct Queued<T, R> {
    item: T,
    weight: usize,
    /// How long after the flush before it may wait for others.
    wait: Duration,
    /// When it entered the queue.
    since: Instant,
    result: oneshot::Sender<Result<R, Fault>>,
}

/// How a batcher works.
#[derive(Debug, Clone, Copy)]
pub struct BatcherSettings {
    /// Flushes that run at the same time.
    pub flushes_max: usize,
    /// The largest weight of one batch, unless a single item is heavier.
    pub batch_weight_max: usize,
    /// How many items start another flush while one is running.
    pub batch_min: usize,
    /// Items that may wait in the queue; beyond it callers wait to enter.
    pub queue_max: usize,
    /// The pause after a batch of several items. During it only `batch_min` items start a
    /// flush.
    pub cooldown: Cooldown,
}

/// The pause after a shared batch: three times as long as the flush took
/// beyond `unless`.
#[derive(Debug, Clone, Copy)]
pub struct Cooldown {
    /// A flush that took no longer has no pause.
    pub unless: Duration,
    /// The longest pause.
    pub longest: Duration,
}

impl Cooldown {
    /// No pause: for batches whose callers wait at the other end of a connection.
    pub const NONE: Self = Self {
        unless: Duration::ZERO,
        longest: Duration::ZERO,
    };

    fn after(self, flush: Duration) -> Duration {
        (COOLDOWN_FACTOR * flush.saturating_sub(self.unless)).min(self.longest)
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
    /// Starts the flushes. `work` gets a batch of items and returns one result for each,
    /// in their order. Each flush is logged at `trace` under `name`, with its size and
    /// how long it took.
    pub fn start<W, F>(name: &'static str, settings: BatcherSettings, work: W) -> Self
    where
        W: Fn(Vec<T>) -> F + Clone + Send + 'static,
        F: Future<Output = Vec<Result<R, Fault>>> + Send + 'static,
    {
        let (sender, receiver) = mpsc::channel(settings.queue_max);
        let flushes = Arc::new(Flushes {
            queue: Mutex::new(receiver),
            running: AtomicUsize::new(0),
            ended: Notify::new(),
            pauses: std::sync::Mutex::new(Pauses {
                cooldown_until: Instant::now(),
                ended_at: None,
            }),
            name,
            settings,
        });
        for _ in 0..settings.flushes_max {
            tokio::spawn(run_flushes(Arc::clone(&flushes), work.clone()));
        }
        Self { sender }
    }

    /// Adds one item and waits for its result. `weight` is its share of
    /// `batch_weight_max`.
    ///
    /// # Errors
    /// The fault of the shared work, or one that says that the process is stopping.
    pub async fn run(&self, item: T, weight: usize) -> Result<R, Fault> {
        self.add(item, weight, Duration::ZERO).await
    }

    /// The same for an item for whose result nobody waits: it may wait for others until `wait`
    /// after the flush before.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_deferred(&self, item: T, weight: usize, wait: Duration) -> Result<R, Fault> {
        self.add(item, weight, wait).await
    }

    async fn add(&self, item: T, weight: usize, wait: Duration) -> Result<R, Fault> {
        let (result, receiver) = oneshot::channel();
        let stopping = || Fault::unavailable("share a transaction", "the process is stopping");
        let slot = self.sender.reserve().await.map_err(|_| stopping())?;
        slot.send(Queued {
            item,
            weight,
            wait,
            since: Instant::now(),
            result,
        });
        receiver.await.map_err(|_| stopping())?
    }
}

/// What the flushes of a batcher share.
struct Flushes<T, R> {
    /// Locked by the flush that collects its batch.
    queue: Mutex<mpsc::Receiver<Queued<T, R>>>,
    running: AtomicUsize,
    /// Notifies the flush that collects when a running one ends.
    ended: Notify,
    /// Set by the flush that ended last.
    pauses: std::sync::Mutex<Pauses>,
    name: &'static str,
    settings: BatcherSettings,
}

/// Until when the next flush waits.
#[derive(Clone, Copy)]
struct Pauses {
    cooldown_until: Instant,
    /// When the flush before ended, if there was one.
    ended_at: Option<Instant>,
}

impl Pauses {
    /// `wait` is the shortest of the batch's items.
    fn until(self, wait: Duration) -> Instant {
        let deferred_until = self.ended_at.map(|ended_at| ended_at + wait);
        deferred_until.map_or(self.cooldown_until, |until| until.max(self.cooldown_until))
    }
}

/// One running flush.
struct Flush<'a, T, R> {
    flushes: &'a Flushes<T, R>,
    since: Instant,
    is_shared: bool,
}

impl<T, R> Drop for Flush<'_, T, R> {
    fn drop(&mut self) {
        let now = Instant::now();
        let cooldown = if self.is_shared {
            self.flushes.settings.cooldown.after(now - self.since)
        } else {
            Duration::ZERO
        };
        *self.flushes.pauses() = Pauses {
            cooldown_until: now + cooldown,
            ended_at: Some(now),
        };
        self.flushes.running.fetch_sub(1, Ordering::AcqRel);
        self.flushes.ended.notify_one();
    }
}

async fn run_flushes<T, R, W, F>(flushes: Arc<Flushes<T, R>>, work: W)
where
    W: Fn(Vec<T>) -> F,
    F: Future<Output = Vec<Result<R, Fault>>>,
{
    while let Some((batch, flush)) = flushes.collect().await {
        let stats = FlushStats::of(&batch, &flush);
        let (items, callers): (Vec<T>, Vec<_>) = batch
            .into_iter()
            .map(|queued| (queued.item, queued.result))
            .unzip();
        // A panic loses the results of this batch, and not the flush.
        let worked = AssertUnwindSafe(work(items)).catch_unwind().await;
        stats.report(&flush);
        drop(flush);
        let Ok(results) = worked else {
            tracing::error!(batcher = flushes.name, "A flush panicked");
            continue;
        };
        for (caller, result) in callers.into_iter().zip(results) {
            // A caller that has gone away still asked for the work.
            let _gone = caller.send(result);
        }
    }
}

/// The size of a batch, for the log and the metrics.
struct FlushStats {
    items: usize,
    weight: usize,
    longest_wait: Duration,
}

impl FlushStats {
    fn of<T, R>(batch: &[Queued<T, R>], flush: &Flush<'_, T, R>) -> Self {
        Self {
            items: batch.len(),
            weight: batch.iter().map(|queued| queued.weight).sum(),
            // The queue is in order, so the first waited longest.
            longest_wait: batch
                .first()
                .map_or(Duration::ZERO, |first| flush.since - first.since),
        }
    }

    fn report<T, R>(&self, flush: &Flush<'_, T, R>) {
        instruments::batch(flush.flushes.name, self.items);
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        tracing::trace!(
            batcher = flush.flushes.name,
            items = self.items,
            weight = self.weight,
            longest_wait_us = micros(self.longest_wait),
            flush_us = micros(flush.since.elapsed()),
            "Flushed a batch"
        );
    }
}

impl<T, R> Flushes<T, R> {
    /// The next batch; `None` when there will be no more items.
    async fn collect(&self) -> Option<(Vec<Queued<T, R>>, Flush<'_, T, R>)> {
        let mut queue = self.queue.lock().await;
        let first = queue.recv().await?;
        let mut weight = first.weight;
        let mut wait = first.wait;
        let mut batch = vec![first];
        let linger = tokio::time::sleep(LINGER_MAX);
        tokio::pin!(linger);
        for _ in 0..YIELDS {
            tokio::task::yield_now().await;
        }
        let settings = self.settings;
        loop {
            while weight < settings.batch_weight_max
                && let Ok(queued) = queue.try_recv()
            {
                weight += queued.weight;
                wait = wait.min(queued.wait);
                batch.push(queued);
            }
            let is_full = batch.len() >= settings.batch_min || weight >= settings.batch_weight_max;
            let is_idle = self.running.load(Ordering::Acquire) == 0;
            let paused_until = self.pauses().until(wait);
            let is_paused = paused_until > Instant::now();
            if is_full || is_idle && !is_paused {
                break;
            }
            // A notification left behind by an earlier flush costs one more turn.
            tokio::select! {
                () = self.ended.notified() => {}
                () = sleep_until(paused_until), if is_paused => {}
                () = &mut linger, if !is_paused => break,
                queued = queue.recv() => {
                    let Some(queued) = queued else { break };
                    weight += queued.weight;
                    wait = wait.min(queued.wait);
                    batch.push(queued);
                }
            }
        }
        // Counted before the next flush may collect.
        self.running.fetch_add(1, Ordering::AcqRel);
        let flush = Flush {
            flushes: self,
            since: Instant::now(),
            is_shared: batch.len() > 1,
        };
        Some((batch, flush))
    }

    fn pauses(&self) -> std::sync::MutexGuard<'_, Pauses> {
        self.pauses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn callers_during_a_flush_share_the_next_batch() {
        let runs = Arc::new(AtomicUsize::new(0));
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let settings = BatcherSettings {
            flushes_max: 1,
            batch_weight_max: 1_000,
            batch_min: 1,
            queue_max: 100,
            cooldown: Cooldown::NONE,
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
    async fn a_second_flush_starts_with_enough_items_or_when_the_first_has_ended() {
        let sizes = Arc::new(std::sync::Mutex::new(Vec::new()));
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let settings = BatcherSettings {
            flushes_max: 3,
            batch_weight_max: 1_000,
            batch_min: 10,
            queue_max: 100,
            cooldown: Cooldown::NONE,
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
    async fn after_a_shared_batch_a_flush_waits_unless_enough_items_come() {
        let sizes = Arc::new(std::sync::Mutex::new(Vec::new()));
        let settings = BatcherSettings {
            flushes_max: 2,
            batch_weight_max: 1_000,
            batch_min: 3,
            queue_max: 100,
            cooldown: Cooldown {
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

    #[tokio::test(start_paused = true)]
    async fn items_for_which_nobody_waits_gather_until_one_comes_that_does_not() {
        let sizes = Arc::new(std::sync::Mutex::new(Vec::new()));
        let settings = BatcherSettings {
            flushes_max: 2,
            batch_weight_max: 1_000,
            batch_min: 4,
            queue_max: 100,
            cooldown: Cooldown::NONE,
        };
        let noted = Arc::clone(&sizes);
        let group: Batcher<(), ()> = Batcher::start("test", settings, move |items: Vec<()>| {
            noted.lock().unwrap().push(items.len());
            async move { items.into_iter().map(Ok).collect() }
        });
        let deferred = async |count: usize| {
            let since = Instant::now();
            let calls = (0..count).map(|_| group.run_deferred((), 1, Duration::from_millis(100)));
            futures_util::future::try_join_all(calls).await.unwrap();
            since.elapsed().as_millis()
        };
        assert_eq!(deferred(1).await, 0, "the first after a rest");
        assert_eq!(deferred(2).await, 100);
        assert_eq!(deferred(4).await, 0, "enough items");
        let since = Instant::now();
        let (took, ()) = tokio::join!(deferred(1), async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            group.run((), 1).await.unwrap();
        });
        assert_eq!(took, 30, "with one that does not wait");
        assert_eq!(since.elapsed().as_millis(), 30);
        assert_eq!(*sizes.lock().unwrap(), [1, 2, 4, 2]);
    }
}
