//! Monthly partitions of the tables that grow with messages. They are created ahead and
//! dropped as a whole, while messages are accepted.
//!
//! Both need locks that block all statements on the whole table; detaching a partition needs a
//! lock that blocks acceptance too. Postgres can detach without it (`CONCURRENTLY`), but not if
//! there is a default partition, and that one lets acceptance continue without a scheduler.
//! So each table has a transaction of its own that does almost nothing under the lock. It
//! gives up after waiting 100 ms for a lock and is tried again after a pause, in which the
//! blocked statements continue. The rows of a month are counted before, not under the lock.
//!
//! The partition of `messages` is dropped first. From then on nothing of the month is visible,
//! because all other rows are found through their message. The other tables follow one by
//! one. `partition_drops` records the progress, so the next run continues after a crash.

mod store;

use std::time::Duration;

use chrono::{Datelike, Months, NaiveDate, NaiveTime};
use tracing::{info, warn};

use crate::clock::Timestamp;
use crate::db::{self, OrFault, PgPool};
use crate::fault::Fault;

pub(crate) use store::{bound_waits, bound_work};

/// How long a transaction waits for a lock. It needs up to three locks, so it blocks others
/// for at most three times as long.
const LOCK_WAIT: Duration = Duration::from_millis(100);
/// How long a step may hold its locks, which block acceptance.
const WORK_MAX: Duration = Duration::from_secs(3);
/// Attempts in one run.
const TRIES_MAX: u32 = 5;
/// The pause between attempts, in which blocked statements continue.
const PAUSE: Duration = Duration::from_secs(1);
/// How long to wait for autovacuum to leave a partition. Postgres cancels it after another
/// transaction has waited for a second (`deadlock_timeout`).
const AUTOVACUUM_WAIT: Duration = Duration::from_secs(3);

/// Hourly counts of a dropped month that one statement deletes.
const STEP_ROWS: i64 = 5_000;

/// The table that decides whether a message exists.
const MESSAGES: &str = "messages";
/// Dropped second: most queries for recipients use it.
const RECIPIENTS: &str = "recipients";
const BODIES: &str = "message_bodies";
/// What else of a message's content is dropped with its body, in this order: without the body
/// nothing reads it.
const OTHER_CONTENTS: [&str; 2] = ["recipient_contents", "attachment_contents"];

/// A month in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month(Timestamp);

impl Month {
    /// The month of a time.
    #[must_use]
    pub fn of(at: Timestamp) -> Self {
        let first = NaiveDate::from_ymd_opt(at.year(), at.month(), 1);
        let first = first.expect("every month has a first day");
        Self(first.and_time(NaiveTime::MIN).and_utc())
    }

    /// When the month begins.
    #[must_use]
    pub fn begin(self) -> Timestamp {
        self.0
    }

    /// When the next month begins.
    #[must_use]
    pub fn end(self) -> Timestamp {
        self.after(1).0
    }

    fn after(self, months: u32) -> Self {
        let later = self.0.checked_add_months(Months::new(months));
        Self(later.expect("the months of messages are within chrono's range"))
    }
}

/// The partition of a table for a month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    pub parent: String,
    /// The month of the messages.
    pub month: Month,
    /// False if it is detached and not yet dropped.
    pub is_attached: bool,
}

/// The result of dropping a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropOutcome {
    Dropped,
    /// The month has unfinished messages.
    Unfinished,
    /// The tables were in use for too long. A later run drops the rest.
    Busy,
}

/// An action under locks that block other statements.
#[derive(Debug, Clone, Copy)]
enum LockedStep<'a> {
    /// Creates the partition of a table.
    Create(&'a str),
    /// Starts recording the changes of the month's messages.
    BeginDrop,
    /// Detaches the partition of a table.
    Detach(&'a str),
}

/// The result of a [`LockedStep`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepOutcome {
    Done,
    NothingToDo,
    /// The month has unfinished messages.
    Unfinished,
    Busy,
    /// The step takes too long to be done under locks.
    TooLarge,
}

/// Creates the missing partitions of `months` months from the month of `now` on and returns
/// their number. If a default partition is in use for too long, the rest is left to a later
/// call.
pub async fn create_ahead(pool: &PgPool, now: Timestamp, months: u32) -> Result<usize, Fault> {
    let doing = "create partitions";
    let first = Month::of(now);
    let wanted: Vec<Month> = (0..months).map(|nth| first.after(nth)).collect();
    let mut connection = pool.acquire().await.or_fault(doing)?;
    let missing = store::list_missing(&mut connection, &wanted).await?;
    drop(connection);
    let mut made = 0;
    for (parent, month) in missing {
        match run_locked(pool, doing, LockedStep::Create(&parent), month).await? {
            StepOutcome::Done => made += 1,
            StepOutcome::NothingToDo => {}
            StepOutcome::Unfinished | StepOutcome::Busy => {
                // A backup may lock it for hours, and each attempt blocks other statements.
                info!("Postponed the creation of partitions: a default partition is in use");
                break;
            }
            // The default partition contains millions of rows of the month, because no
            // scheduler ran in time. They stay there and are deleted row by row.
            StepOutcome::TooLarge => {
                warn!(
                    parent,
                    month = %month.begin(),
                    "Cannot create a partition: the default partition has too many rows of its month"
                );
                // Blocked statements continue in this pause.
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    Ok(made)
}

/// All partitions.
pub async fn list(pool: &PgPool) -> Result<Vec<Partition>, Fault> {
    let mut connection = pool.acquire().await.or_fault("list partitions")?;
    store::list(&mut connection).await
}

/// Whether a message of a month is unfinished: it has a row in the outbox.
pub async fn has_unfinished_messages(pool: &PgPool, month: Month) -> Result<bool, Fault> {
    let mut connection = pool.acquire().await.or_fault("find unfinished messages")?;
    store::has_unfinished_messages(&mut connection, month).await
}

/// Drops the partitions of a month.
///
/// # Errors
/// A fault if Postgres is away; a later call continues.
pub async fn drop_month(pool: &PgPool, month: Month) -> Result<DropOutcome, Fault> {
    if has_unfinished_messages(pool, month).await? {
        return Ok(DropOutcome::Unfinished);
    }
    let doing = "count a month that is to be dropped";
    match run_locked(pool, doing, LockedStep::BeginDrop, month).await? {
        StepOutcome::Busy | StepOutcome::TooLarge => return Ok(DropOutcome::Busy),
        StepOutcome::Done | StepOutcome::NothingToDo | StepOutcome::Unfinished => {}
    }
    let mut transaction = db::begin(pool, doing).await?;
    store::allow_long_statements(&mut transaction).await?;
    store::count_drop(&mut transaction, month).await?;
    transaction.commit().await.or_fault(doing)?;
    match detach(pool, MESSAGES, month).await? {
        DropOutcome::Dropped => finish_drop(pool, month).await,
        outcome @ (DropOutcome::Unfinished | DropOutcome::Busy) => Ok(outcome),
    }
}

/// Finishes the months whose `messages` partition was dropped. True if all are finished.
///
/// # Errors
/// A fault if Postgres is away; a later call continues.
pub async fn finish_drops(pool: &PgPool) -> Result<bool, Fault> {
    let mut connection = pool.acquire().await.or_fault("list drops of months")?;
    let begun = store::list_detached(&mut connection).await?;
    drop(connection);
    for month in begun {
        if finish_drop(pool, month).await? != DropOutcome::Dropped {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn finish_drop(pool: &PgPool, month: Month) -> Result<DropOutcome, Fault> {
    let partitions = list(pool).await?.into_iter();
    let mut parents: Vec<String> = partitions
        .filter(|partition| partition.is_attached && partition.month == month)
        .map(|partition| partition.parent)
        .collect();
    parents.sort_by_key(|parent| (parent != RECIPIENTS, parent.clone()));
    for parent in parents {
        match detach(pool, &parent, month).await? {
            DropOutcome::Dropped => {}
            outcome @ (DropOutcome::Unfinished | DropOutcome::Busy) => return Ok(outcome),
        }
    }
    drop_detached(pool).await?;
    let mut connection = pool
        .acquire()
        .await
        .or_fault("finish the drop of a month")?;
    store::exclude_hours(&mut connection, month).await?;
    while store::delete_hours(&mut connection, month, STEP_ROWS).await? > 0 {}
    store::end_drop(&mut connection, month).await?;
    Ok(DropOutcome::Dropped)
}

/// Drops only the bodies of a month, and what else there is of its messages' content.
pub async fn drop_bodies(pool: &PgPool, month: Month) -> Result<DropOutcome, Fault> {
    if has_unfinished_messages(pool, month).await? {
        return Ok(DropOutcome::Unfinished);
    }
    for parent in [BODIES].into_iter().chain(OTHER_CONTENTS) {
        match detach(pool, parent, month).await? {
            DropOutcome::Dropped => {}
            outcome @ (DropOutcome::Unfinished | DropOutcome::Busy) => return Ok(outcome),
        }
    }
    drop_detached(pool).await?;
    Ok(DropOutcome::Dropped)
}

/// Whether a partition contains bodies of messages.
#[must_use]
pub fn holds_bodies(partition: &Partition) -> bool {
    partition.parent == BODIES
}

/// Whether a partition contains bodies, or other content of messages.
#[must_use]
pub fn holds_contents(partition: &Partition) -> bool {
    holds_bodies(partition) || OTHER_CONTENTS.contains(&partition.parent.as_str())
}

/// Whether a partition contains messages.
#[must_use]
pub fn holds_messages(partition: &Partition) -> bool {
    partition.parent == MESSAGES
}

/// Drops the detached partitions. No statement uses them, so this blocks nothing.
pub async fn drop_detached(pool: &PgPool) -> Result<(), Fault> {
    for partition in list(pool).await? {
        if !partition.is_attached {
            let mut connection = pool.acquire().await.or_fault("drop a partition")?;
            store::drop_detached(&mut connection, &partition.parent, partition.month).await?;
        }
    }
    Ok(())
}

/// Detaches the partition of one table.
async fn detach(pool: &PgPool, parent: &str, month: Month) -> Result<DropOutcome, Fault> {
    let doing = "detach a partition";
    let mut transaction = db::begin(pool, doing).await?;
    store::bound_waits(&mut transaction, AUTOVACUUM_WAIT).await?;
    match store::cancel_autovacuum(&mut transaction, parent, month).await {
        Ok(()) => transaction.commit().await.or_fault(doing)?,
        Err(fault) if db::is_lock_timeout(&fault) => return Ok(DropOutcome::Busy),
        Err(fault) => return Err(fault),
    }
    match run_locked(pool, doing, LockedStep::Detach(parent), month).await? {
        StepOutcome::Done | StepOutcome::NothingToDo => Ok(DropOutcome::Dropped),
        StepOutcome::Unfinished => Ok(DropOutcome::Unfinished),
        StepOutcome::Busy | StepOutcome::TooLarge => Ok(DropOutcome::Busy),
    }
}

/// Runs a step in a transaction that must not block other statements for long. Tries again
/// if it cannot get its locks in time.
async fn run_locked(
    pool: &PgPool,
    doing: &'static str,
    step: LockedStep<'_>,
    month: Month,
) -> Result<StepOutcome, Fault> {
    for nth in 0..TRIES_MAX {
        if nth > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        let mut transaction = db::begin(pool, doing).await?;
        store::bound_waits(&mut transaction, LOCK_WAIT).await?;
        store::bound_work(&mut transaction, WORK_MAX).await?;
        store::disable_synchronous_commit(&mut transaction).await?;
        match store::run_step(&mut transaction, step, month).await {
            Ok(end) => {
                transaction.commit().await.or_fault(doing)?;
                return Ok(end);
            }
            Err(fault) if db::is_lock_timeout(&fault) || db::is_deadlock(&fault) => {
                transaction.rollback().await.or_fault(doing)?;
            }
            Err(fault) if db::is_statement_timeout(&fault) => {
                transaction.rollback().await.or_fault(doing)?;
                return Ok(StepOutcome::TooLarge);
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(StepOutcome::Busy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_begins_and_ends_in_utc() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        for (moment, begin, end) in [
            (
                "2026-11-21T13:00:00Z",
                "2026-11-01T00:00:00Z",
                "2026-12-01T00:00:00Z",
            ),
            (
                "2026-12-31T23:59:59.999999Z",
                "2026-12-01T00:00:00Z",
                "2027-01-01T00:00:00Z",
            ),
            (
                "2028-02-29T12:00:00+14:00",
                "2028-02-01T00:00:00Z",
                "2028-03-01T00:00:00Z",
            ),
            (
                "2026-05-01T00:00:00Z",
                "2026-05-01T00:00:00Z",
                "2026-06-01T00:00:00Z",
            ),
        ] {
            let month = Month::of(at(moment));
            assert_eq!((month.begin(), month.end()), (at(begin), at(end)));
        }
        let january = Month::of(at("2026-01-31T00:00:00Z"));
        assert_eq!(january.after(13), Month::of(at("2027-02-10T00:00:00Z")));
    }
}
