//! Group commit without a timer: concurrent callers share one piece of work, as a
//! rule one transaction. A few lanes each take whatever has gathered while they
//! were busy, so a caller who is alone waits for nobody, and under load the cost
//! of a statement and of a commit is spread over many callers.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::fault::Fault;

/// A queue of entries and the lanes that work them off. Cheap to clone; the lanes
/// end when the last clone is gone and the queue is empty.
pub struct Group<T, R> {
    sender: mpsc::Sender<Entry<T, R>>,
}

struct Entry<T, R> {
    item: T,
    weight: usize,
    done: oneshot::Sender<Result<R, Fault>>,
}

/// How a group works.
#[derive(Debug, Clone, Copy)]
pub struct GroupSettings {
    /// Pieces of work under way at once.
    pub lanes: usize,
    /// The weight that one piece of work takes at the most, unless one entry
    /// alone is heavier.
    pub weight_max: usize,
    /// Entries that may wait; beyond it callers wait to enter.
    pub waiting_max: usize,
}

impl<T, R> Clone for Group<T, R> {
    fn clone(&self) -> Self {
        Self {
            sender: self.sender.clone(),
        }
    }
}

impl<T, R> Group<T, R>
where
    T: Send + 'static,
    R: Send + 'static,
{
    /// Starts the lanes. `work` gets the gathered items and answers one result
    /// for each, in their order.
    pub fn start<W, F>(settings: GroupSettings, work: W) -> Self
    where
        W: Fn(Vec<T>) -> F + Clone + Send + 'static,
        F: Future<Output = Vec<Result<R, Fault>>> + Send + 'static,
    {
        let (sender, receiver) = mpsc::channel(settings.waiting_max);
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..settings.lanes {
            tokio::spawn(run_lane(
                Arc::clone(&receiver),
                settings.weight_max,
                work.clone(),
            ));
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
        self.sender
            .send(Entry { item, weight, done })
            .await
            .map_err(|_| gone())?;
        result.await.map_err(|_| gone())?
    }
}

async fn run_lane<T, R, W, F>(
    receiver: Arc<Mutex<mpsc::Receiver<Entry<T, R>>>>,
    weight_max: usize,
    work: W,
) where
    W: Fn(Vec<T>) -> F,
    F: Future<Output = Vec<Result<R, Fault>>>,
{
    while let Some(entries) = gather(&receiver, weight_max).await {
        let (items, waiters): (Vec<T>, Vec<_>) = entries
            .into_iter()
            .map(|entry| (entry.item, entry.done))
            .unzip();
        // A panic costs those who shared the work their result, not the lane.
        let Ok(results) = AssertUnwindSafe(work(items)).catch_unwind().await else {
            tracing::error!("A shared piece of work panicked");
            continue;
        };
        for (waiter, result) in waiters.into_iter().zip(results) {
            // A waiter that has gone away asked for the work all the same.
            let _gone = waiter.send(result);
        }
    }
}

async fn gather<T, R>(
    receiver: &Mutex<mpsc::Receiver<Entry<T, R>>>,
    weight_max: usize,
) -> Option<Vec<Entry<T, R>>> {
    let mut receiver = receiver.lock().await;
    let first = receiver.recv().await?;
    let mut weight = first.weight;
    let mut entries = vec![first];
    while weight < weight_max {
        let Ok(entry) = receiver.try_recv() else {
            break;
        };
        weight += entry.weight;
        entries.push(entry);
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn callers_that_come_while_a_lane_is_busy_share_the_next_piece_of_work() {
        let runs = Arc::new(AtomicUsize::new(0));
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let settings = GroupSettings {
            lanes: 1,
            weight_max: 1_000,
            waiting_max: 100,
        };
        let (counted, opened) = (Arc::clone(&runs), Arc::clone(&gate));
        let group: Group<u32, u32> = Group::start(settings, move |items: Vec<u32>| {
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
}
