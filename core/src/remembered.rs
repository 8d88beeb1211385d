//! What a process remembers of Postgres for a while.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;

use moka::future::Cache;

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
