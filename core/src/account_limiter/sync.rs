//! The clerk: the task of a worker process that tells Redis what happened at its
//! gates and learns what happened at others'. It works with every tick, and at once
//! when there is something to tell.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::shared::HeldSlot;
use super::{LimiterInner, store};
use crate::db::{OrFault, PgPool};

/// How often the standings of accounts are read: what one worker finds out, the
/// others go by as soon.
pub(super) const TICK: Duration = Duration::from_millis(200);
/// How often the workers are counted.
const WORKERS_EVERY: Duration = Duration::from_secs(5);

/// Works until `shutdown`.
pub(super) async fn run(office: Arc<LimiterInner>, shutdown: CancellationToken) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let is_tick = tokio::select! {
            () = shutdown.cancelled() => break,
            _ = ticks.tick() => true,
            () = office.bell.notified() => false,
        };
        exchange(&office, is_tick).await;
    }
    exchange(&office, true).await;
}

/// Counts the workers until `shutdown`. While Postgres is away the last count stays.
pub(super) async fn count_workers(
    office: Arc<LimiterInner>,
    pool: PgPool,
    shutdown: CancellationToken,
) {
    let mut ticks = interval(WORKERS_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
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
            Ok(count) => office.set_workers(count),
            Err(fault) => warn!(%fault, "The workers could not be counted"),
        }
    }
}

/// Says what there is to say, then looks at the accounts. What Redis was not told
/// because it was away is told when it is back.
async fn exchange(office: &LimiterInner, is_tick: bool) {
    // In this order: a probe that is given back has left its news before.
    let held = std::mem::take(&mut *office.to_give_back());
    let has_news = office.has_news.swap(false, Ordering::AcqRel) || is_tick;
    if office.shared.is_away() {
        office.to_give_back().extend(held);
        if is_tick {
            office.board().forget_uncounted();
        }
        return;
    }
    let is_told = !has_news || tell(office).await.is_some();
    let is_given_back = is_told && give_back(office, &held).await.is_some();
    if !is_given_back {
        office.to_give_back().extend(held);
        return;
    }
    if has_news && look(office, is_tick).await.is_some() {
        // What was found out by counting is not left until the next tick.
        let _told = tell(office).await;
    }
}

async fn give_back(office: &LimiterInner, held: &[HeldSlot]) -> Option<()> {
    if held.is_empty() {
        return Some(());
    }
    office.shared.give_back(held).await
}

/// Tells of changes. A probe is given back only after what came of it is known.
async fn tell(office: &LimiterInner) -> Option<()> {
    let now = office.clock.now();
    let untold = office.board().untold(now);
    if untold.is_empty() {
        return Some(());
    }
    let standings = office.shared.change(&untold).await?;
    let mut board = office.board();
    for ((account, told, _), counts) in untold.into_iter().zip(standings) {
        board.told(account, told, counts, now);
    }
    Some(())
}

async fn look(office: &LimiterInner, is_tick: bool) -> Option<()> {
    let wanted = office.board().due_to_read(is_tick);
    if wanted.is_empty() {
        return Some(());
    }
    let found = office.shared.look(&wanted).await?;
    let now = office.clock.now();
    let counts: Vec<_> = {
        let mut board = office.board();
        let wanted = wanted.iter().zip(found);
        let counts = wanted.map(|(account, (standing, is_counted))| {
            board.adopt(*account, standing, now);
            board.due_to_count(*account, is_counted, now)
        });
        counts.collect::<Vec<_>>().into_iter().flatten().collect()
    };
    if counts.is_empty() {
        return Some(());
    }
    let sums = office.shared.count(&counts).await?;
    let mut board = office.board();
    for ((account, version, _), sums) in counts.into_iter().zip(sums) {
        board.judge(account, version, sums, now, office.ids.fraction());
    }
    Some(())
}
