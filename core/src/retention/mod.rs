//! Deletes expired messages. The operator's retention applies to all organizations; an
//! organization may set a shorter one.
//!
//! A month in which all messages are expired is dropped as a whole (`partition`), which is
//! cheap. Other messages are deleted row by row, a limited number per transaction: those of an
//! organization with a shorter retention, those in a month that cannot be dropped because it
//! has unfinished messages, and those in default partitions. The same holds for bodies. A
//! message that is QUEUED or SENDING or has a row in the outbox is never deleted.
//!
//! Metrics and the audit log are not deleted.

mod store;

use std::time::Duration;

use chrono::{TimeDelta, Timelike};
use tokio::time::Instant;
use tracing::info;

use crate::clock::{Clock, Timestamp};
use crate::config::RetentionSettings;
use crate::db::{self, OrFault, PgConnection, PgPool};
use crate::fault::{Fault, FaultKind};
use crate::ids::{MessageId, OrganizationId};
use crate::partition::{self, DropOutcome, Month, Partition};

/// Maximum number of messages deleted in one transaction.
const STEP_MESSAGES: i64 = 200;
/// Number of recipients after which a transaction takes no further message.
const STEP_RECIPIENTS: i64 = 1_000;
/// Maximum number of other rows deleted by one statement.
const STEP_ROWS: i32 = 5_000;
/// Maximum number of pieces of attachments deleted by one statement, of 256 KiB each.
const STEP_PIECES: i64 = 500;
/// How long a transaction may hold its locks. Other transactions wait for them: outcomes,
/// webhooks and events of other organizations may share a transaction with one of these
/// messages.
const WORK_MAX: Duration = Duration::from_secs(2);
/// How long a deletion waits for a lock. A locked message is in use.
const LOCK_WAIT: Duration = Duration::from_millis(200);

/// Deletes expired messages. Cheap to clone.
#[derive(Clone)]
pub struct Retention {
    pub pool: PgPool,
    pub clock: Clock,
    pub settings: RetentionSettings,
}

/// A set of messages in which some may be expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// The messages before a time of an organization with a shorter retention than the
    /// operator's.
    Organization(OrganizationId, Timestamp),
    /// The messages between two times, each by the retention of its organization.
    Range(Timestamp, Timestamp),
}

impl Retention {
    /// Drops the months in which all messages are expired, and the bodies of the months in
    /// which all bodies are. Returns the number of drops. If tables are in use for too long,
    /// for example by a backup, the rest is left to a later call, because other transactions
    /// wait during every attempt.
    ///
    /// # Errors
    /// A fault if Postgres is away; a later call continues.
    pub async fn drop_months(&self) -> Result<usize, Fault> {
        partition::drop_detached(&self.pool).await?;
        let mut dropped = 0;
        if !partition::finish_drops(&self.pool).await? {
            return Ok(dropped);
        }
        for month in self.expired_months().await? {
            let outcome = partition::drop_month(&self.pool, month).await?;
            log_outcome(month, outcome, "a month");
            match outcome {
                DropOutcome::Dropped => dropped += 1,
                DropOutcome::Unfinished => {}
                DropOutcome::Busy => return Ok(dropped),
            }
        }
        for month in self.expired_body_months().await? {
            let outcome = partition::drop_bodies(&self.pool, month).await?;
            log_outcome(month, outcome, "the bodies of a month");
            match outcome {
                DropOutcome::Dropped => dropped += 1,
                DropOutcome::Unfinished => {}
                DropOutcome::Busy => return Ok(dropped),
            }
        }
        Ok(dropped)
    }

    /// Deletes the expired messages that are not dropped with their month, and the rows that
    /// dropped months left behind, for at most `time_max`. Returns the number of messages.
    ///
    /// # Errors
    /// A fault if Postgres is away, or if some messages could not be deleted; the others are
    /// deleted.
    pub async fn delete_expired(&self, time_max: Duration) -> Result<u64, Fault> {
        let begun = Instant::now();
        let messages = self.delete_messages(begun + time_max / 2).await;
        let bodies = self.delete_bodies(begun + time_max * 3 / 4).await;
        self.delete_attachments(begun + time_max * 7 / 8).await?;
        self.delete_leftovers(begun + time_max).await?;
        bodies.and(messages)
    }

    async fn delete_messages(&self, end: Instant) -> Result<u64, Fault> {
        let mut scopes = self.scopes().await?;
        let mut deleted = 0;
        let mut failure = Ok(());
        // One step per scope and round, so that no scope blocks the others.
        while !scopes.is_empty() && Instant::now() < end {
            let mut unfinished = Vec::new();
            for scope in scopes {
                if Instant::now() >= end {
                    break;
                }
                match self.delete_step(scope).await {
                    Ok(None) => {}
                    Ok(Some(step)) => {
                        deleted += step;
                        unfinished.push(scope);
                    }
                    Err(fault) if is_local(&fault) => failure = Err(fault),
                    Err(fault) => return Err(fault),
                }
            }
            scopes = unfinished;
        }
        failure.map(|()| deleted)
    }

    /// The months in which all messages are expired, oldest first.
    async fn expired_months(&self) -> Result<Vec<Month>, Fault> {
        let now = self.clock.now();
        let doing = "find expired months";
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        let days = store::find_shortest(&mut connection, self.settings.message_days).await?;
        let Some(cutoff) = days.map(|days| days_before(now, days)) else {
            return Ok(Vec::new());
        };
        drop(connection);
        let mut found = Vec::new();
        for month in months(&self.pool, partition::holds_messages, cutoff).await? {
            let mut connection = self.pool.acquire().await.or_fault(doing)?;
            let days = self.settings.message_days;
            if !store::is_kept(&mut connection, month, days, now).await? {
                found.push(month);
            }
        }
        Ok(found)
    }

    /// The months in which all bodies are expired.
    async fn expired_body_months(&self) -> Result<Vec<Month>, Fault> {
        let Some(days) = self.settings.body_days else {
            return Ok(Vec::new());
        };
        let cutoff = days_before(self.clock.now(), days);
        // Also months of which an earlier run dropped the bodies and not the rest.
        let mut found = months(&self.pool, partition::holds_contents, cutoff).await?;
        found.dedup();
        Ok(found)
    }

    /// The messages to delete row by row.
    async fn scopes(&self) -> Result<Vec<Scope>, Fault> {
        let now = self.clock.now();
        let doing = "find expired messages";
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        let own = store::list_shorter(&mut connection, self.settings.message_days).await?;
        drop(connection);
        let mut scopes: Vec<Scope> = own
            .into_iter()
            .map(|(id, days)| Scope::Organization(id, days_before(now, days)))
            .collect();
        // Each run begins with another organization, in case there are too many for one run.
        let count = scopes.len().max(1);
        scopes.rotate_left(now.minute() as usize % count);
        if let Some(days) = self.settings.message_days {
            let ranges = self.ranges(partition::holds_messages, days_before(now, days));
            let ranges = ranges.await?.into_iter();
            scopes.extend(ranges.map(|(from, to)| Scope::Range(from, to)));
        }
        Ok(scopes)
    }

    /// The times before `cutoff` whose rows are not dropped with their month: months that
    /// cannot be dropped, and times without a partition.
    async fn ranges(
        &self,
        wanted: fn(&Partition) -> bool,
        cutoff: Timestamp,
    ) -> Result<Vec<(Timestamp, Timestamp)>, Fault> {
        let mut ranges = Vec::new();
        for month in months(&self.pool, wanted, cutoff).await? {
            if partition::has_unfinished_messages(&self.pool, month).await? {
                ranges.push((month.begin(), month.end()));
            }
        }
        let months = months(&self.pool, wanted, Timestamp::MAX_UTC).await?;
        ranges.extend(gaps(&months, cutoff));
        Ok(ranges)
    }

    /// Deletes messages in one transaction. Returns their number; `None` if there is nothing
    /// left to delete now.
    async fn delete_step(&self, scope: Scope) -> Result<Option<u64>, Fault> {
        let doing = "delete expired messages";
        let mut transaction = db::begin(&self.pool, doing).await?;
        let ids = self.list_expired(&mut transaction, scope).await?;
        if ids.is_empty() {
            return Ok(None);
        }
        partition::bound_waits(&mut transaction, LOCK_WAIT).await?;
        partition::bound_work(&mut transaction, WORK_MAX).await?;
        match store::delete(&mut transaction, &ids).await {
            Ok(0) => Ok(None),
            Ok(deleted) => {
                transaction.commit().await.or_fault(doing)?;
                Ok(Some(deleted))
            }
            Err(fault) if is_busy(&fault) => Ok(None),
            Err(fault) if db::is_statement_timeout(&fault) => {
                drop(transaction);
                let mut connection = self.pool.acquire().await.or_fault(doing)?;
                match store::delete_children(&mut connection, &ids, STEP_ROWS).await? {
                    0 => Err(fault),
                    _ => Ok(Some(0)),
                }
            }
            Err(fault) => Err(fault),
        }
    }

    /// Deletes the expired bodies that are not dropped with their month.
    async fn delete_bodies(&self, end: Instant) -> Result<(), Fault> {
        let Some(days) = self.settings.body_days else {
            return Ok(());
        };
        let cutoff = days_before(self.clock.now(), days);
        let mut failure = Ok(());
        for range in self.ranges(partition::holds_bodies, cutoff).await? {
            while Instant::now() < end {
                match self.delete_bodies_step(range).await {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(fault) if is_local(&fault) => {
                        failure = Err(fault);
                        break;
                    }
                    Err(fault) => return Err(fault),
                }
            }
        }
        failure
    }

    /// Deletes bodies in one transaction and returns their number.
    async fn delete_bodies_step(&self, range: (Timestamp, Timestamp)) -> Result<u64, Fault> {
        let doing = "delete expired bodies";
        let mut transaction = db::begin(&self.pool, doing).await?;
        let bounds = (STEP_MESSAGES, STEP_RECIPIENTS);
        let ids = store::list_bodies(&mut transaction, range, bounds).await?;
        if ids.is_empty() {
            return Ok(0);
        }
        partition::bound_waits(&mut transaction, LOCK_WAIT).await?;
        partition::bound_work(&mut transaction, WORK_MAX).await?;
        match store::delete_bodies(&mut transaction, &ids).await {
            Ok(deleted) => {
                transaction.commit().await.or_fault(doing)?;
                Ok(deleted)
            }
            Err(fault) if is_busy(&fault) => Ok(0),
            Err(fault) => Err(fault),
        }
    }

    /// Deletes the attachments of months in which an organization with a shorter retention has
    /// no message left.
    async fn delete_attachments(&self, end: Instant) -> Result<(), Fault> {
        let doing = "delete unused attachments";
        let now = self.clock.now();
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        let shorter = store::list_shorter(&mut connection, self.settings.message_days).await?;
        for (id, days) in shorter {
            let before = days_before(now, days);
            while Instant::now() < end
                && store::delete_attachments(&mut connection, id, before, STEP_PIECES).await? > 0
            {
            }
        }
        Ok(())
    }

    async fn list_expired(
        &self,
        connection: &mut PgConnection,
        scope: Scope,
    ) -> Result<Vec<MessageId>, Fault> {
        let bounds = (STEP_MESSAGES, STEP_RECIPIENTS);
        match scope {
            Scope::Organization(id, before) => {
                store::list_of_organization(connection, id, before, bounds).await
            }
            Scope::Range(from, to) => {
                let rule = (self.settings.message_days, self.clock.now());
                store::list_in_range(connection, from, to, rule, bounds).await
            }
        }
    }

    /// Deletes rows whose message is gone, and old soft bounces, a limited number per
    /// statement.
    async fn delete_leftovers(&self, end: Instant) -> Result<(), Fault> {
        let doing = "delete the rows of deleted messages";
        let now = self.clock.now();
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        while store::delete_orphans(&mut connection, STEP_ROWS).await? > 0 && Instant::now() < end {
        }
        while store::delete_old_soft_bounces(&mut connection, STEP_ROWS, now).await? > 0
            && Instant::now() < end
        {}
        Ok(())
    }
}

/// Whether a failure concerns only the rows of this step, so that the others can be deleted.
fn is_local(fault: &Fault) -> bool {
    fault.kind() != FaultKind::Unavailable || db::is_statement_timeout(fault)
}

/// Whether the rows of this step are in use; the next run finds them again.
fn is_busy(fault: &Fault) -> bool {
    db::is_lock_timeout(fault) || db::is_deadlock(fault)
}

/// The times before `end` that are in none of these months. The months are sorted.
fn gaps(months: &[Month], end: Timestamp) -> Vec<(Timestamp, Timestamp)> {
    let begins = months.iter().map(|month| month.begin()).chain([end]);
    let ends = months.iter().map(|month| month.end());
    let gaps = [Timestamp::UNIX_EPOCH].into_iter().chain(ends).zip(begins);
    let gaps = gaps.map(|(from, to)| (from, to.min(end)));
    gaps.filter(|(from, to)| from < to).collect()
}

/// The months of a table's partitions that ended by `cutoff`, oldest first.
async fn months(
    pool: &PgPool,
    wanted: fn(&Partition) -> bool,
    cutoff: Timestamp,
) -> Result<Vec<Month>, Fault> {
    let partitions = partition::list(pool).await?.into_iter();
    let attached = partitions.filter(|partition| partition.is_attached && wanted(partition));
    let months = attached.map(|partition| partition.month);
    Ok(months.filter(|month| month.end() <= cutoff).collect())
}

fn days_before(now: Timestamp, days: u32) -> Timestamp {
    now.checked_sub_signed(TimeDelta::days(i64::from(days)))
        .unwrap_or(Timestamp::UNIX_EPOCH)
}

fn log_outcome(month: Month, outcome: DropOutcome, object: &'static str) {
    let begin = month.begin().format("%Y-%m").to_string();
    match outcome {
        DropOutcome::Dropped => info!(month = begin, "Dropped {object}"),
        DropOutcome::Unfinished => info!(
            month = begin,
            "Did not drop {object}: it has unfinished messages"
        ),
        DropOutcome::Busy => info!(
            month = begin,
            "Postponed the drop of {object}: its tables are in use"
        ),
    }
}
