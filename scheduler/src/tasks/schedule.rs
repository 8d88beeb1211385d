//! Pushes scheduled chunks when they are due, and fails what waits of expired ones.

use waypost_core::db::{self, OrFault, PgConnection};
use waypost_core::delivery::{expiry, schedule};
use waypost_core::fault::Fault;

use super::{Tasks, WorkFound};

/// Jobs per step.
const STEP: usize = 2_000;
/// Jobs of one organization per step, so that the mail of one that is due in a moment does not
/// delay that of another.
const EACH: usize = 1_000;
/// Steps per run; the next run continues.
const STEPS_MAX: usize = 200;
/// Expired chunks per transaction.
const EXPIRED_STEP: usize = 200;
/// How often a transaction is run that Postgres ends because of a deadlock.
const DEADLOCK_TRIES: u32 = 4;

pub(super) async fn push_due(tasks: &Tasks) -> Result<WorkFound, Fault> {
    const DOING: &str = "push scheduled jobs";
    let [each, limit] = [EACH, STEP].map(|jobs| i64::try_from(jobs).unwrap_or(i64::MAX));
    let grace = tasks.settings.relay_grace;
    let mut has_checked = false;
    for _ in 0..STEPS_MAX {
        let now = tasks.clock.now();
        if !has_checked {
            let is_any_due =
                async |connection: &mut PgConnection| schedule::is_any_due(connection, now).await;
            if !tasks.polls.run(DOING, is_any_due).await? {
                return Ok(WorkFound::Nothing);
            }
            // Jobs count as pushed once they are taken, so take none if Redis does not accept
            // writes. Workers take them from Postgres then.
            tasks.queue.check_pushes().await?;
            has_checked = true;
        }
        let take = async |connection: &mut PgConnection| {
            schedule::take_scheduled(connection, now, grace, each, limit).await
        };
        let due = tasks.polls.run(DOING, take).await?;
        tasks.queue.push(&due).await?;
        if due.len() < EACH {
            break;
        }
    }
    Ok(WorkFound::Work)
}

pub(super) async fn end_expired(tasks: &Tasks) -> Result<WorkFound, Fault> {
    let mut found = 0;
    for _ in 0..STEPS_MAX {
        let end = || end_some(tasks);
        let ended = db::retry_deadlocks(DEADLOCK_TRIES, end, db::is_deadlock).await?;
        found += ended;
        if ended < EXPIRED_STEP {
            break;
        }
    }
    Ok(found.into())
}

async fn end_some(tasks: &Tasks) -> Result<usize, Fault> {
    const DOING: &str = "end expired messages";
    let limit = i64::try_from(EXPIRED_STEP).unwrap_or(i64::MAX);
    let mut transaction = db::begin(&tasks.pool, DOING).await?;
    let now = tasks.clock.now();
    let ended = expiry::end_expired(&mut transaction, &tasks.ids, now, limit).await?;
    transaction.commit().await.or_fault(DOING)?;
    Ok(ended)
}
