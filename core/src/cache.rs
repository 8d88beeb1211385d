//! Caches of query results: helpers over [`moka`].

use std::borrow::Borrow;
use std::future::ready;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use moka::future::Cache;
use moka::ops::compute::Op;
use tracing::debug;

use crate::batcher::Batcher;
use crate::fault::Fault;

/// The cached value of a key, or the result of `find`, which is then cached. Simultaneous
/// callers share one `find`. A fault is not cached.
///
/// # Errors
/// The fault of `find`.
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
    // Boxed, so that the state of `find` does not enlarge the futures of all callers: most
    // of them find a cached value.
    Box::pin(cache.try_get_with_by_ref(key, find()))
        .await
        .map_err(|fault: Arc<Fault>| Fault::clone(&fault))
}

/// A cached value that [`get_or_refresh`] replaces before it expires.
#[derive(Debug, Clone)]
pub struct RefreshAhead<V> {
    pub value: V,
    /// When the value becomes due for a refresh. `None`: never.
    refresh_from: Option<Instant>,
    /// Whether a refresh has been started. Its address also identifies this value.
    is_refreshing: Arc<AtomicBool>,
}

impl<V> RefreshAhead<V> {
    /// A value that is cached for `ttl`. It is refreshed if it is used in the second half of
    /// that time.
    pub fn with_ttl(value: V, ttl: Duration) -> Self {
        Self {
            refresh_from: Some(Instant::now() + ttl / 2),
            ..Self::never(value)
        }
    }

    /// A value that is never refreshed.
    pub fn never(value: V) -> Self {
        Self {
            value,
            refresh_from: None,
            is_refreshing: Arc::default(),
        }
    }

    /// Whether the caller must refresh the value. True for one caller only.
    fn is_due(&self) -> bool {
        let is_time = self.refresh_from.is_some_and(|from| from <= Instant::now());
        is_time && !self.is_refreshing.swap(true, Ordering::Relaxed)
    }

    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.is_refreshing, &other.is_refreshing)
    }
}

/// Like [`get_or_find`], and refreshes a value in the background with `find_again` once half of
/// its time has passed: a value in constant use never makes a caller wait. If the refresh fails,
/// the value expires as planned.
///
/// A value that is invalidated or replaced during the refresh stays so, except in the moment in
/// which the refreshed value is inserted. A caller that must not see the old value afterwards
/// invalidates the key once more a little later.
///
/// # Errors
/// The fault of `find`.
pub async fn get_or_refresh<K, V, F, R>(
    cache: &Cache<K, RefreshAhead<V>>,
    key: K,
    find: impl FnOnce() -> F,
    find_again: impl FnOnce() -> R,
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
        tokio::spawn(refresh(cache.clone(), key, found.clone(), find_again()));
    }
    Ok(found.value)
}

/// Looks up one value in a batch with others. One that does not exist is not refreshed.
///
/// # Errors
/// The fault of the batch.
pub async fn find_in_batch<K, V>(
    lookups: Batcher<K, Option<V>>,
    key: K,
    ttl: Duration,
) -> Result<RefreshAhead<Option<V>>, Fault>
where
    K: Send + 'static,
    V: Send + 'static,
{
    let found = lookups.run(key, 1).await?;
    Ok(match &found {
        Some(_) => RefreshAhead::with_ttl(found, ttl),
        None => RefreshAhead::never(found),
    })
}

async fn refresh<K, V>(
    cache: Cache<K, RefreshAhead<V>>,
    key: K,
    old: RefreshAhead<V>,
    query: impl Future<Output = Result<RefreshAhead<V>, Fault>>,
) where
    K: Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    match query.await {
        Ok(new) => {
            let entry = cache.entry(key);
            let put = entry.and_compute_with(|current| {
                let is_old = current.is_some_and(|current| current.value().is_same(&old));
                ready(if is_old { Op::Put(new) } else { Op::Nop })
            });
            put.await;
        }
        Err(fault) => debug!(cause = fault.chain(), "Could not refresh a cached value"),
    }
}

#[cfg(test)]
mod tests {
    use std::future::Ready;

    use tokio::sync::oneshot;
    use tokio::task::yield_now;
    use tokio::time::timeout;

    use super::*;

    type TestCache = Cache<u8, RefreshAhead<&'static str>>;

    fn due(value: &'static str) -> RefreshAhead<&'static str> {
        RefreshAhead::with_ttl(value, Duration::ZERO)
    }

    /// Gets a value that must neither be found nor refreshed.
    async fn get(cache: &TestCache) -> &'static str {
        let unexpected = || -> Ready<Result<_, Fault>> { panic!("no query is expected") };
        get_or_refresh(cache, 1, unexpected, unexpected)
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn a_value_in_use_is_refreshed_in_the_background() {
        let cache = TestCache::new(10);
        cache.insert(1, due("old")).await;
        let (answer, query) = oneshot::channel();
        let unexpected = || -> Ready<Result<_, Fault>> { panic!("the value is cached") };
        let find_again = || async { Ok(query.await.unwrap()) };
        let used = get_or_refresh(&cache, 1, unexpected, find_again).await;
        assert_eq!(used.unwrap(), "old");
        // While a refresh runs, no caller starts another and no caller waits.
        for _ in 0..3 {
            assert_eq!(get(&cache).await, "old");
        }
        answer.send(RefreshAhead::never("new")).unwrap();
        let refreshed = async {
            while cache.get(&1).await.unwrap().value == "old" {
                yield_now().await;
            }
        };
        timeout(Duration::from_secs(10), refreshed).await.unwrap();
        assert_eq!(get(&cache).await, "new");
    }

    #[tokio::test]
    async fn a_value_invalidated_during_a_refresh_is_not_put_back() {
        let cache = TestCache::new(10);
        for replacement in [None, Some(RefreshAhead::never("newest"))] {
            cache.insert(1, due("old")).await;
            let (answer, query) = oneshot::channel();
            let old = cache.get(&1).await.unwrap();
            let refreshing = refresh(cache.clone(), 1, old, async { Ok(query.await.unwrap()) });
            let refreshing = tokio::spawn(refreshing);
            cache.invalidate(&1).await;
            let expected = replacement.as_ref().map(|newest| newest.value);
            if let Some(newest) = replacement {
                cache.insert(1, newest).await;
            }
            answer.send(due("found")).unwrap();
            refreshing.await.unwrap();
            assert_eq!(cache.get(&1).await.map(|left| left.value), expected);
        }
    }

    #[tokio::test]
    async fn a_failed_refresh_leaves_the_value() {
        let cache = TestCache::new(10);
        cache.insert(1, due("old")).await;
        let old = cache.get(&1).await.unwrap();
        let away = Fault::unavailable("look up", "Postgres is away");
        refresh(cache.clone(), 1, old, ready(Err(away))).await;
        assert_eq!(cache.get(&1).await.unwrap().value, "old");
    }
}
