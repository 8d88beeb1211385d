//! The sync task of a worker process: writes the changes of its account states to Redis
//! and reads those of the other workers. It runs with every tick, and at once after a
//! change.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::shared::HeldSlot;
use super::{LimiterInner, store};
use crate::db::{OrFault, PgPool};
use crate::ticks::ticks;

/// How often states are read: the longest until a worker learns of another's change.
const TICK: Duration = Duration::from_millis(250);
/// How often the workers are counted.
const WORKERS_EVERY: Duration = Duration::from_secs(5);

/// Runs until `shutdown`.
pub(super) async fn run(inner: Arc<LimiterInner>, shutdown: CancellationToken) {
    let mut ticks = ticks(TICK);
    loop {
        let is_tick = tokio::select! {
            () = shutdown.cancelled() => break,
            _ = ticks.tick() => true,
            () = inner.wakeup.notified() => false,
        };
        sync(&inner, is_tick).await;
    }
    sync(&inner, true).await;
}

/// Counts the workers until `shutdown`. While Postgres is unreachable, the last count stays.
pub(super) async fn count_workers(
    inner: Arc<LimiterInner>,
    pool: PgPool,
    shutdown: CancellationToken,
) {
    let mut ticks = ticks(WORKERS_EVERY);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let counted = async {
            let mut connection = pool.acquire().await.or_fault("count the workers")?;
            store::count_workers(&mut connection).await
        };
        match counted.await {
            Ok(count) => inner.set_workers(count),
            Err(fault) => warn!(%fault, "Failed to count the live workers"),
        }
    }
}

/// Writes local changes, then reads the states of the other workers. Changes that could not
/// be written while Redis was unreachable are written when it is back.
async fn sync(inner: &LimiterInner, is_tick: bool) {
    let held = std::mem::take(&mut *inner.to_release());
    let has_changes = inner.has_changes.swap(false, Ordering::AcqRel) || is_tick;
    if inner.shared.is_away() {
        inner.to_release().extend(held);
        if is_tick {
            inner.states().discard_uncounted();
        }
        return;
    }
    let is_written = !has_changes || write_changes(inner).await.is_some();
    if is_tick && is_written {
        share_rates(inner).await;
    }
    let is_released = is_written && release(inner, &held).await.is_some();
    if !is_released {
        inner.to_release().extend(held);
        return;
    }
    if has_changes && read(inner, is_tick).await.is_some() {
        // A breaker that the counts opened is written now, not with the next tick.
        let _written = write_changes(inner).await;
    }
}

async fn release(inner: &LimiterInner, held: &[HeldSlot]) -> Option<()> {
    if held.is_empty() {
        return Some(());
    }
    inner.shared.release(held).await
}

/// Writes changed states.
async fn write_changes(inner: &LimiterInner) -> Option<()> {
    let now = inner.clock.now();
    let unsynced = inner.states().unsynced(now);
    if unsynced.is_empty() {
        return Some(());
    }
    inner.shared.write(&unsynced).await?;
    let mut states = inner.states();
    for (account, written, _) in unsynced {
        states.mark_written(account, written);
    }
    Some(())
}

/// Tells whoever shows the accounts how fast this process calls those that are throttled. The
/// next tick repeats what is lost.
async fn share_rates(inner: &LimiterInner) {
    let rates = inner.states().throttled_rates();
    if !rates.is_empty() {
        let now = inner.clock.now();
        let _repeated = inner.shared.write_rates(&inner.name, &rates, now).await;
    }
}

async fn read(inner: &LimiterInner, is_tick: bool) -> Option<()> {
    let wanted = inner.states().due_to_read(is_tick);
    if wanted.is_empty() {
        return Some(());
    }
    let found = inner.shared.read(&wanted).await?;
    let now = inner.clock.now();
    let counts: Vec<_> = {
        let mut states = inner.states();
        let wanted = wanted.iter().zip(found);
        let counts = wanted.map(|(account, (breaker, is_counted))| {
            states.adopt(*account, breaker, now);
            states.due_to_count(*account, is_counted, now)
        });
        counts.collect::<Vec<_>>().into_iter().flatten().collect()
    };
    if counts.is_empty() {
        return Some(());
    }
    let sums = inner.shared.count(&counts).await?;
    let mut states = inner.states();
    for ((account, _), sums) in counts.into_iter().zip(sums) {
        states.trip_if_failing(account, sums, now, inner.ids.fraction());
    }
    Some(())
}
