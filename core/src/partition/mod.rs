//! The partitions of the tables that grow with messages: a month's is made ahead and
//! dropped whole, while messages are accepted.
//!
//! Both need locks that everybody waits behind who reads or writes all partitions; to
//! detach one needs a lock that acceptance waits behind too. Postgres would detach
//! without it (`CONCURRENTLY`), but not beside a default partition, and that one is what
//! keeps acceptance going without a scheduler. So each table has a transaction of its
//! own, which does next to nothing under the lock and gives up when it has waited for a
//! tenth of a second; it is tried again after a pause, in which whoever waited behind it
//! goes on. A month is counted before, not under the lock.
//!
//! Messages go first. From then on nobody finds anything of the month: what is left is
//! reached by way of its message. The rest follows table by table, and whoever dies in
//! between leaves what the next run goes on with: `month_drops` says so.

mod store;

use std::time::Duration;

use chrono::{Datelike, Months, NaiveDate, NaiveTime};
use tracing::{info, warn};

use crate::clock::Timestamp;
use crate::db::{self, OrFault, PgPool};
use crate::fault::Fault;

pub(crate) use store::{bound_waits, bound_work};

/// How long such a transaction waits for a lock; with three locks to take, others wait
/// for it three times as long at the most.
const LOCK_WAIT: Duration = Duration::from_millis(100);
/// How long such a step may take under its locks, which who sends waits behind.
const WORK_MAX: Duration = Duration::from_secs(3);
/// How often it is tried in one run.
const TRIES_MAX: u32 = 5;
/// The pause before it is tried again, for those who waited behind it.
const PAUSE: Duration = Duration::from_secs(1);
/// How long autovacuum has to leave a partition: Postgres sends it away when somebody
/// has waited for a second (`deadlock_timeout`).
const QUIET_WAIT: Duration = Duration::from_secs(3);

/// Rows that one statement deletes of what counted a month by the hour.
const STEP_ROWS: i64 = 5_000;

/// The table that decides whether a message is there.
const MESSAGES: &str = "messages";
/// The one beside it that everybody looks for a copy in.
const RECIPIENTS: &str = "recipients";
const BODIES: &str = "message_bodies";

/// A month in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month(Timestamp);

impl Month {
    /// The month of a moment.
    #[must_use]
    pub fn of(at: Timestamp) -> Self {
        let first = NaiveDate::from_ymd_opt(at.year(), at.month(), 1);
        let first = first.expect("every month has a first day");
        Self(first.and_time(NaiveTime::MIN).and_utc())
    }

    /// When it begins.
    #[must_use]
    pub fn begin(self) -> Timestamp {
        self.0
    }

    /// When the next one begins.
    #[must_use]
    pub fn end(self) -> Timestamp {
        self.after(1).0
    }

    fn after(self, months: u32) -> Self {
        let later = self.0.checked_add_months(Months::new(months));
        Self(later.expect("a month of mail is followed by others"))
    }
}

/// A partition, by its table and its month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    pub parent: String,
    /// The month of the messages.
    pub month: Month,
    /// False once it was detached and is still to be dropped.
    pub is_attached: bool,
}

/// What became of a month that was to be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropOutcome {
    Dropped,
    /// A message of it still has work to do.
    Held,
    /// Its tables were in use for too long; what is left goes with a later run.
    Busy,
}

/// What is done under locks that others wait behind.
#[derive(Debug, Clone, Copy)]
enum LockedStep<'a> {
    /// Creates a table's partition of the month.
    Create(&'a str),
    /// Has what changes in the month's messages written down.
    BeginDrop,
    /// Detaches a table's partition of the month.
    Detach(&'a str),
}

/// What became of such a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepEnd {
    Done,
    /// There was nothing to do.
    Nothing,
    /// A message of the month still has work to do.
    Held,
    Busy,
    /// It is too much work to be done under locks.
    TooMuch,
}

/// Creates what is missing of the partitions of `months` months from that of `now` on,
/// and says how many it made. Where a default partition is in use for too long the rest
/// is left to a later call.
pub async fn create_ahead(pool: &PgPool, now: Timestamp, months: u32) -> Result<usize, Fault> {
    let doing = "create partitions";
    let first = Month::of(now);
    let wanted: Vec<Month> = (0..months).map(|nth| first.after(nth)).collect();
    let mut connection = pool.acquire().await.or_fault(doing)?;
    let missing = store::list_missing(&mut connection, &wanted).await?;
    drop(connection);
    let mut made = 0;
    for (parent, month) in missing {
        match patiently(pool, doing, LockedStep::Create(&parent), month).await? {
            StepEnd::Done => made += 1,
            StepEnd::Nothing => {}
            StepEnd::Held | StepEnd::Busy => {
                // A backup may hold it for hours, and others wait behind every try.
                info!("Put off creating partitions: a default partition is in use");
                break;
            }
            // A month of millions, which nobody made in time. It is served from the
            // default partition as well as any, and its messages go one by one.
            StepEnd::TooMuch => {
                warn!(
                    parent,
                    month = %month.begin(),
                    "A month stays in its default partition: too much of it lies there"
                );
                // For those who waited behind it.
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    Ok(made)
}

/// The partitions there are.
pub async fn list(pool: &PgPool) -> Result<Vec<Partition>, Fault> {
    let mut connection = pool.acquire().await.or_fault("list partitions")?;
    store::list(&mut connection).await
}

/// Whether a message of a month still has work to do.
pub async fn is_held(pool: &PgPool, month: Month) -> Result<bool, Fault> {
    let mut connection = pool.acquire().await.or_fault("look for work")?;
    store::is_held(&mut connection, month).await
}

/// Drops a month with all that is in it.
///
/// # Errors
/// A fault when Postgres is away; a later call goes on from there.
pub async fn drop_month(pool: &PgPool, month: Month) -> Result<DropOutcome, Fault> {
    if is_held(pool, month).await? {
        return Ok(DropOutcome::Held);
    }
    let doing = "count a month that is to be dropped";
    match patiently(pool, doing, LockedStep::BeginDrop, month).await? {
        StepEnd::Busy | StepEnd::TooMuch => return Ok(DropOutcome::Busy),
        StepEnd::Done | StepEnd::Nothing | StepEnd::Held => {}
    }
    let mut transaction = db::begin(pool, doing).await?;
    store::take_time(&mut transaction).await?;
    store::count_drop(&mut transaction, month).await?;
    transaction.commit().await.or_fault(doing)?;
    match detach(pool, MESSAGES, month).await? {
        DropOutcome::Dropped => finish_drop(pool, month).await,
        ending @ (DropOutcome::Held | DropOutcome::Busy) => Ok(ending),
    }
}

/// Goes on where drops ended after the messages; whether all are through.
///
/// # Errors
/// A fault when Postgres is away; a later call goes on from there.
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
            ending @ (DropOutcome::Held | DropOutcome::Busy) => return Ok(ending),
        }
    }
    drop_detached(pool).await?;
    let mut connection = pool.acquire().await.or_fault("end the drop of a month")?;
    store::leave_hours_out(&mut connection, month).await?;
    while store::forget_hours(&mut connection, month, STEP_ROWS).await? > 0 {}
    store::end_drop(&mut connection, month).await?;
    Ok(DropOutcome::Dropped)
}

/// Drops the bodies of a month's messages, and leaves the rest.
pub async fn drop_bodies(pool: &PgPool, month: Month) -> Result<DropOutcome, Fault> {
    if is_held(pool, month).await? {
        return Ok(DropOutcome::Held);
    }
    let ending = detach(pool, BODIES, month).await?;
    if ending == DropOutcome::Dropped {
        drop_detached(pool).await?;
    }
    Ok(ending)
}

/// Whether a partition holds the bodies of messages.
#[must_use]
pub fn holds_bodies(partition: &Partition) -> bool {
    partition.parent == BODIES
}

/// Whether a partition holds messages themselves.
#[must_use]
pub fn holds_messages(partition: &Partition) -> bool {
    partition.parent == MESSAGES
}

/// Drops what was detached. Nobody reads it any more, so nobody waits.
pub async fn drop_detached(pool: &PgPool) -> Result<(), Fault> {
    for partition in list(pool).await? {
        if !partition.is_attached {
            let mut connection = pool.acquire().await.or_fault("drop a partition")?;
            store::drop_detached(&mut connection, &partition.parent, partition.month).await?;
        }
    }
    Ok(())
}

/// Takes one table's partition out of it.
async fn detach(pool: &PgPool, parent: &str, month: Month) -> Result<DropOutcome, Fault> {
    let doing = "detach a partition";
    let mut transaction = db::begin(pool, doing).await?;
    store::bound_waits(&mut transaction, QUIET_WAIT).await?;
    match store::quiet(&mut transaction, parent, month).await {
        Ok(()) => transaction.commit().await.or_fault(doing)?,
        Err(fault) if db::is_lock_timeout(&fault) => return Ok(DropOutcome::Busy),
        Err(fault) => return Err(fault),
    }
    match patiently(pool, doing, LockedStep::Detach(parent), month).await? {
        StepEnd::Done | StepEnd::Nothing => Ok(DropOutcome::Dropped),
        StepEnd::Held => Ok(DropOutcome::Held),
        StepEnd::Busy | StepEnd::TooMuch => Ok(DropOutcome::Busy),
    }
}

/// Runs a step in a transaction that must not keep others waiting.
async fn patiently(
    pool: &PgPool,
    doing: &'static str,
    step: LockedStep<'_>,
    month: Month,
) -> Result<StepEnd, Fault> {
    for nth in 0..TRIES_MAX {
        if nth > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        let mut transaction = db::begin(pool, doing).await?;
        store::bound_waits(&mut transaction, LOCK_WAIT).await?;
        store::bound_work(&mut transaction, WORK_MAX).await?;
        store::commit_without_waiting(&mut transaction).await?;
        match store::take(&mut transaction, step, month).await {
            Ok(end) => {
                transaction.commit().await.or_fault(doing)?;
                return Ok(end);
            }
            Err(fault) if db::is_lock_timeout(&fault) || db::is_deadlock(&fault) => {
                transaction.rollback().await.or_fault(doing)?;
            }
            Err(fault) if db::is_statement_timeout(&fault) => {
                transaction.rollback().await.or_fault(doing)?;
                return Ok(StepEnd::TooMuch);
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(StepEnd::Busy)
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
