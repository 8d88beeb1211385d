//! How long messages are kept: what the operator says holds for all, and an organization
//! may say less.
//!
//! Months of which nobody keeps anything are dropped whole (`partition`), which costs
//! next to nothing. Where an organization keeps its messages for a shorter time than its
//! neighbours, they are deleted row by row, a bounded part in each transaction; so is
//! what a month holds that cannot go, because one of its messages still has work to do,
//! and what lies in no month; and so are the bodies of both. No message goes that is
//! QUEUED or SENDING or has a row in the outbox, however old it is.
//!
//! Metrics and the audit log are no part of this: they stay.

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

/// Messages deleted in one transaction at the most.
const STEP_MESSAGES: i64 = 200;
/// Recipients after which no further message joins a transaction.
const STEP_RECIPIENTS: i64 = 1_000;
/// Rows of other kinds deleted by one statement.
const STEP_ROWS: i32 = 5_000;
/// How long a transaction may take under its locks, which others wait behind: outcomes,
/// webhooks and events of other organizations that share a transaction with one of these
/// messages.
const WORK_MAX: Duration = Duration::from_secs(2);
/// How long a deletion waits for a lock. Whoever holds one is busy with the message.
const LOCK_WAIT: Duration = Duration::from_millis(200);

/// Lets messages go whose time is over. Cheap to clone.
#[derive(Clone)]
pub struct Retention {
    pub pool: PgPool,
    pub clock: Clock,
    pub settings: RetentionSettings,
}

/// Messages that may hold some whose time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Those of an organization with a shorter time than the operator's, from before.
    Organization(OrganizationId, Timestamp),
    /// Those between two moments, each by its organization's rule.
    Span(Timestamp, Timestamp),
}

impl Retention {
    /// Drops the months of which nobody keeps anything, and the bodies of those whose
    /// bodies nobody keeps. Answers how many of both. Where tables are in use for too
    /// long, by a backup perhaps, the rest is left to a later call: others wait behind
    /// every try.
    ///
    /// # Errors
    /// A fault when Postgres is away; a later call goes on from there.
    pub async fn drop_months(&self) -> Result<usize, Fault> {
        partition::drop_detached(&self.pool).await?;
        let mut dropped = 0;
        if !partition::finish_drops(&self.pool).await? {
            return Ok(dropped);
        }
        for month in self.months_over().await? {
            let ending = partition::drop_month(&self.pool, month).await?;
            tell(month, ending, "a month");
            match ending {
                DropOutcome::Dropped => dropped += 1,
                DropOutcome::Held => {}
                DropOutcome::Busy => return Ok(dropped),
            }
        }
        for month in self.bodies_over().await? {
            let ending = partition::drop_bodies(&self.pool, month).await?;
            tell(month, ending, "the bodies of a month");
            match ending {
                DropOutcome::Dropped => dropped += 1,
                DropOutcome::Held => {}
                DropOutcome::Busy => return Ok(dropped),
            }
        }
        Ok(dropped)
    }

    /// Deletes messages one by one for which there is no other way, and what drops of
    /// months left behind, for `turn` at the most. Answers how many messages.
    ///
    /// # Errors
    /// A fault when Postgres is away, or of those whose messages could not be deleted;
    /// the others' are.
    pub async fn delete_expired(&self, turn: Duration) -> Result<u64, Fault> {
        let begun = Instant::now();
        let messages = self.delete_messages(begun + turn / 2).await;
        let bodies = self.delete_bodies(begun + turn * 3 / 4).await;
        self.sweep(begun + turn).await?;
        bodies.and(messages)
    }

    async fn delete_messages(&self, end: Instant) -> Result<u64, Fault> {
        let mut scopes = self.scopes().await?;
        let mut deleted = 0;
        let mut failure = Ok(());
        // Everybody gets a step before anybody gets another.
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
                    Err(fault) if is_of_one(&fault) => failure = Err(fault),
                    Err(fault) => return Err(fault),
                }
            }
            scopes = unfinished;
        }
        failure.map(|()| deleted)
    }

    /// The months that go, oldest first.
    async fn months_over(&self) -> Result<Vec<Month>, Fault> {
        let now = self.clock.now();
        let doing = "look for months whose time is over";
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        let days = store::find_shortest(&mut connection, self.settings.message_days).await?;
        let Some(over) = days.map(|days| days_before(now, days)) else {
            return Ok(Vec::new());
        };
        drop(connection);
        let mut found = Vec::new();
        for month in months(&self.pool, partition::holds_messages, over).await? {
            let mut connection = self.pool.acquire().await.or_fault(doing)?;
            let days = self.settings.message_days;
            if !store::is_kept(&mut connection, month, days, now).await? {
                found.push(month);
            }
        }
        Ok(found)
    }

    /// The months whose bodies go.
    async fn bodies_over(&self) -> Result<Vec<Month>, Fault> {
        let Some(days) = self.settings.body_days else {
            return Ok(Vec::new());
        };
        let over = days_before(self.clock.now(), days);
        months(&self.pool, partition::holds_bodies, over).await
    }

    /// Where to look for messages to delete one by one.
    async fn scopes(&self) -> Result<Vec<Scope>, Fault> {
        let now = self.clock.now();
        let doing = "look for messages whose time is over";
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        let own = store::list_shorter(&mut connection, self.settings.message_days).await?;
        drop(connection);
        let mut scopes: Vec<Scope> = own
            .into_iter()
            .map(|(id, days)| Scope::Organization(id, days_before(now, days)))
            .collect();
        // Where there are too many for a turn, others come first the next time.
        let others = scopes.len().max(1);
        scopes.rotate_left(now.minute() as usize % others);
        if let Some(days) = self.settings.message_days {
            let spans = self.spans(partition::holds_messages, days_before(now, days));
            let spans = spans.await?.into_iter();
            scopes.extend(spans.map(|(from, to)| Scope::Span(from, to)));
        }
        Ok(scopes)
    }

    /// Where what is older than `over` does not go with its month: in months that cannot
    /// go, and in none.
    async fn spans(
        &self,
        wanted: fn(&Partition) -> bool,
        over: Timestamp,
    ) -> Result<Vec<(Timestamp, Timestamp)>, Fault> {
        let mut spans = Vec::new();
        for month in months(&self.pool, wanted, over).await? {
            if partition::is_held(&self.pool, month).await? {
                spans.push((month.begin(), month.end()));
            }
        }
        let months = months(&self.pool, wanted, Timestamp::MAX_UTC).await?;
        spans.extend(gaps(&months, over));
        Ok(spans)
    }

    /// One transaction; says how many messages it deleted, or nothing where there is none
    /// left to delete now.
    async fn delete_step(&self, scope: Scope) -> Result<Option<u64>, Fault> {
        let doing = "delete messages whose time is over";
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
                match store::shed(&mut connection, &ids, STEP_ROWS).await? {
                    0 => Err(fault),
                    _ => Ok(Some(0)),
                }
            }
            Err(fault) => Err(fault),
        }
    }

    /// Deletes the bodies whose time is over, and that do not go with their month.
    async fn delete_bodies(&self, end: Instant) -> Result<(), Fault> {
        let Some(days) = self.settings.body_days else {
            return Ok(());
        };
        let over = days_before(self.clock.now(), days);
        let mut failure = Ok(());
        for span in self.spans(partition::holds_bodies, over).await? {
            while Instant::now() < end {
                match self.delete_bodies_step(span).await {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(fault) if is_of_one(&fault) => {
                        failure = Err(fault);
                        break;
                    }
                    Err(fault) => return Err(fault),
                }
            }
        }
        failure
    }

    /// One transaction; says how many bodies it deleted.
    async fn delete_bodies_step(&self, span: (Timestamp, Timestamp)) -> Result<u64, Fault> {
        let doing = "delete bodies whose time is over";
        let mut transaction = db::begin(&self.pool, doing).await?;
        let bounds = (STEP_MESSAGES, STEP_RECIPIENTS);
        let ids = store::list_bodies(&mut transaction, span, bounds).await?;
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
            Scope::Span(from, to) => {
                let rule = (self.settings.message_days, self.clock.now());
                store::list_of_span(connection, from, to, rule, bounds).await
            }
        }
    }

    /// Deletes what refers to nothing any more, a bounded part in each statement.
    async fn sweep(&self, end: Instant) -> Result<(), Fault> {
        let doing = "sweep what messages left behind";
        let now = self.clock.now();
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        while store::sweep_defaults(&mut connection, STEP_ROWS).await? > 0 && Instant::now() < end {
        }
        while store::forget_soft_bounces(&mut connection, STEP_ROWS, now).await? > 0
            && Instant::now() < end
        {}
        Ok(())
    }
}

/// Whether a failure is of what was to be deleted alone: no reason to keep what is others'.
fn is_of_one(fault: &Fault) -> bool {
    fault.kind() != FaultKind::Unavailable || db::is_statement_timeout(fault)
}

/// Whether somebody is busy with what was to be deleted; the next run finds it again.
fn is_busy(fault: &Fault) -> bool {
    db::is_lock_timeout(fault) || db::is_deadlock(fault)
}

/// The stretches of time before `end` that lie in none of these months, given oldest first.
fn gaps(months: &[Month], end: Timestamp) -> Vec<(Timestamp, Timestamp)> {
    let begins = months.iter().map(|month| month.begin()).chain([end]);
    let ends = months.iter().map(|month| month.end());
    let gaps = [Timestamp::UNIX_EPOCH].into_iter().chain(ends).zip(begins);
    let gaps = gaps.map(|(from, to)| (from, to.min(end)));
    gaps.filter(|(from, to)| from < to).collect()
}

/// The months of a table's partitions that had ended by `over`, oldest first.
async fn months(
    pool: &PgPool,
    wanted: fn(&Partition) -> bool,
    over: Timestamp,
) -> Result<Vec<Month>, Fault> {
    let partitions = partition::list(pool).await?.into_iter();
    let attached = partitions.filter(|partition| partition.is_attached && wanted(partition));
    let months = attached.map(|partition| partition.month);
    Ok(months.filter(|month| month.end() <= over).collect())
}

fn days_before(now: Timestamp, days: u32) -> Timestamp {
    now.checked_sub_signed(TimeDelta::days(i64::from(days)))
        .unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Notes what became of a month.
fn tell(month: Month, ending: DropOutcome, what: &'static str) {
    let begin = month.begin().format("%Y-%m").to_string();
    match ending {
        DropOutcome::Dropped => info!(month = begin, "Dropped {what}"),
        DropOutcome::Held => info!(month = begin, "Kept {what}, which has unfinished messages"),
        DropOutcome::Busy => info!(month = begin, "Put off dropping {what}: tables are in use"),
    }
}
