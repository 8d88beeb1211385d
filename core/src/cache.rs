//! What a process remembers of Postgres for a while.

use std::borrow::Borrow;
use std::future::ready;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use moka::future::Cache;
use moka::ops::compute::Op;
use tracing::debug;

use crate::fault::Fault;

/// What is remembered under a key, or what `find` finds, which is remembered then.
/// Those who look for the same at the same time share one search; a fault is not
/// remembered.
///
/// # Errors
/// The fault of the search.
pub async fn get_or_find<K, Q, V, F>(
    cache: &Cache<K, V>,
    key: &Q,
    find: impl FnOnce() -> F,
) -> Result<V, Fault>
where
    K: Borrow<Q> + Eq + Hash + Send + Sync + 'static,
    Q: ToOwned<Owned = K> + Eq + Hash + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: Future<Output = Result<V, Fault>>,
{
    if let Some(found) = cache.get(key).await {
        return Ok(found);
    }
    // In a box of its own: most callers find it remembered, and need not carry the place
    // for a search along.
    Box::pin(cache.try_get_with_by_ref(key, find()))
        .await
        .map_err(|fault: Arc<Fault>| Fault::clone(&fault))
}

/// A value that is looked up again before it is forgotten, by [`get_or_refresh`].
#[derive(Debug, Clone)]
pub struct RefreshAhead<V> {
    pub value: V,
    /// From when on whoever uses it has it looked up again; never, where nobody is to.
    renew_from: Option<Instant>,
    /// Whether somebody has. Its place in memory also tells one finding from another.
    is_asked: Arc<AtomicBool>,
}

impl<V> RefreshAhead<V> {
    /// What was found just now and is remembered for so long: the second half of that time
    /// is there to look it up again.
    pub fn for_memory(value: V, memory: Duration) -> Self {
        Self {
            renew_from: Some(Instant::now() + memory / 2),
            ..Self::never(value)
        }
    }

    /// What is forgotten when its time is over.
    pub fn never(value: V) -> Self {
        Self {
            value,
            renew_from: None,
            is_asked: Arc::default(),
        }
    }

    /// Whether the caller is to look it up again: nobody else is told so.
    fn is_due(&self) -> bool {
        let is_time = self.renew_from.is_some_and(|from| from <= Instant::now());
        is_time && !self.is_asked.swap(true, Ordering::Relaxed)
    }

    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.is_asked, &other.is_asked)
    }
}

/// As [`get_or_find`], and whoever finds a value whose time is half over has it looked up
/// again meanwhile, by `look_again`: one that is used all the time is not waited for, nor
/// older than it may be. Where that search fails the value ends when it would have. What is
/// forgotten or replaced during it stays so, but for the moment in which it is put in: who
/// forgets for good does so once more a little later.
///
/// # Errors
/// The fault of a search that was waited for.
pub async fn get_or_refresh<K, V, F, R>(
    cache: &Cache<K, RefreshAhead<V>>,
    key: K,
    find: impl FnOnce() -> F,
    look_again: impl FnOnce() -> R,
) -> Result<V, Fault>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    F: Future<Output = Result<RefreshAhead<V>, Fault>>,
    R: Future<Output = Result<RefreshAhead<V>, Fault>> + Send + 'static,
{
    let Some(found) = cache.get(&key).await else {
        return Ok(get_or_find(cache, &key, find).await?.value);
    };
    if found.is_due() {
        tokio::spawn(refresh(cache.clone(), key, found.clone(), look_again()));
    }
    Ok(found.value)
}

async fn refresh<K, V>(
    cache: Cache<K, RefreshAhead<V>>,
    key: K,
    old: RefreshAhead<V>,
    search: impl Future<Output = Result<RefreshAhead<V>, Fault>>,
) where
    K: Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    match search.await {
        Ok(new) => {
            let entry = cache.entry(key);
            let put = entry.and_compute_with(|current| {
                let is_old = current.is_some_and(|current| current.value().is_same(&old));
                ready(if is_old { Op::Put(new) } else { Op::Nop })
            });
            put.await;
        }
        Err(fault) => debug!(cause = fault.chain(), "Nothing was renewed"),
    }
}

#[cfg(test)]
mod tests {
    use std::future::Ready;

    use tokio::sync::oneshot;
    use tokio::task::yield_now;
    use tokio::time::timeout;

    use super::*;

    type Memory = Cache<u8, RefreshAhead<&'static str>>;

    fn due(value: &'static str) -> RefreshAhead<&'static str> {
        RefreshAhead::for_memory(value, Duration::ZERO)
    }

    /// Uses a value that nobody is to look for.
    async fn get(memory: &Memory) -> &'static str {
        let unwanted = || -> Ready<Result<_, Fault>> { panic!("nobody is to look") };
        get_or_refresh(memory, 1, unwanted, unwanted).await.unwrap()
    }

    #[tokio::test]
    async fn what_is_in_use_is_looked_up_again_while_it_is_used() {
        let memory = Memory::new(10);
        memory.insert(1, due("old")).await;
        let (found, search) = oneshot::channel();
        let unwanted = || -> Ready<Result<_, Fault>> { panic!("it is remembered") };
        let look_again = || async { Ok(search.await.unwrap()) };
        let used = get_or_refresh(&memory, 1, unwanted, look_again).await;
        assert_eq!(used.unwrap(), "old");
        // One search is under way: nobody begins another, and nobody waits for it.
        for _ in 0..3 {
            assert_eq!(get(&memory).await, "old");
        }
        found.send(RefreshAhead::never("new")).unwrap();
        let renewed = async {
            while memory.get(&1).await.unwrap().value == "old" {
                yield_now().await;
            }
        };
        timeout(Duration::from_secs(10), renewed).await.unwrap();
        assert_eq!(get(&memory).await, "new");
    }

    #[tokio::test]
    async fn what_was_forgotten_during_a_search_is_not_put_back() {
        let memory = Memory::new(10);
        for put_back in [None, Some(RefreshAhead::never("newest"))] {
            memory.insert(1, due("old")).await;
            let (found, search) = oneshot::channel();
            let old = memory.get(&1).await.unwrap();
            let renewal = refresh(memory.clone(), 1, old, async { Ok(search.await.unwrap()) });
            let renewal = tokio::spawn(renewal);
            memory.invalidate(&1).await;
            let expected = put_back.as_ref().map(|newest| newest.value);
            if let Some(newest) = put_back {
                memory.insert(1, newest).await;
            }
            found.send(due("found")).unwrap();
            renewal.await.unwrap();
            assert_eq!(memory.get(&1).await.map(|left| left.value), expected);
        }
    }

    #[tokio::test]
    async fn a_search_that_fails_leaves_what_there_is() {
        let memory = Memory::new(10);
        memory.insert(1, due("old")).await;
        let old = memory.get(&1).await.unwrap();
        let away = Fault::unavailable("look up", "Postgres is away");
        refresh(memory.clone(), 1, old, ready(Err(away))).await;
        assert_eq!(memory.get(&1).await.unwrap().value, "old");
    }
}
