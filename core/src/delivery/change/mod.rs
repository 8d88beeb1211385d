//! What the owner of a message may change until it is sent: cancel it, or move its time.
//!
//! Both lock the outbox rows of the message, as a lease does, so that a recipient is either
//! cancelled or sent to: a chunk that a worker has leased is not touched, and a chunk that is
//! locked here is not leased. What was under way once is not cancelled before it is known what
//! came of it.

mod store;

use std::time::Duration;

use serde_json::json;

use super::dispatch::Dispatcher;
use super::job::SendJob;
use super::waiting::{self, EndedBy};
use crate::audit::{self, AuditChange, Origin};
use crate::clock::{Clock, Timestamp, delta};
use crate::db::{self, OrFault, PgPool};
use crate::fault::Fault;
use crate::ids::{Ids, MessageId, OrganizationId};
use crate::message::MessageStatus;

use store::Counts;

/// The reason of the DROPPED event of a recipient whose message was cancelled, and its last
/// error.
pub const CANCELLED: &str = "CANCELLED";
/// How often a transaction is run that Postgres ends because of a deadlock.
const TRIES_MAX: u32 = 4;

/// Why a message was not changed.
#[derive(Debug)]
pub enum ChangeRefusal {
    NotFound,
    /// All that is left of it is being sent, or waits for evidence about a call.
    Sending,
    /// It was sent to all recipients that did not fail.
    Sent,
    /// All its recipients have failed.
    Finished,
    /// It was not scheduled, so there is no time to move.
    NotScheduled,
    /// It would not be sent before it expires, at this time.
    Expires(Timestamp),
    Fault(Fault),
}

impl From<Fault> for ChangeRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl ChangeRefusal {
    fn is_deadlock(&self) -> bool {
        match self {
            Self::Fault(fault) => db::is_deadlock(fault),
            Self::NotFound
            | Self::Sending
            | Self::Sent
            | Self::Finished
            | Self::NotScheduled
            | Self::Expires(_) => false,
        }
    }

    /// The refusal for a message of which nothing can be changed any more.
    fn of(counts: &Counts) -> Self {
        if counts.waiting > 0 {
            Self::Sending
        } else if counts.sent > 0 {
            Self::Sent
        } else {
            Self::Finished
        }
    }
}

/// A message after a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancelled {
    pub status: MessageStatus,
    /// How many of its recipients are cancelled, by this and by earlier requests.
    pub recipients: i64,
}

/// Changes messages that wait. Cheap to clone.
#[derive(Clone)]
pub struct MessageChanges {
    pub pool: PgPool,
    pub dispatcher: Dispatcher,
    /// How long the dispatcher has to push the jobs before the relay does.
    pub relay_grace: Duration,
    pub clock: Clock,
    pub ids: Ids,
}

impl MessageChanges {
    /// Cancels what waits of a message. Repeated, it changes nothing and succeeds again.
    ///
    /// # Errors
    /// The reason why nothing can be cancelled; nothing has changed then.
    pub async fn cancel(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: MessageId,
    ) -> Result<Cancelled, ChangeRefusal> {
        const DOING: &str = "cancel a message";
        let write = || self.write_cancel(organization_id, origin, id, DOING);
        let cancelling =
            async { Ok(db::retry_deadlocks(TRIES_MAX, write, ChangeRefusal::is_deadlock).await) };
        db::bounded(DOING, cancelling).await?
    }

    /// Moves the time of a scheduled message of which nothing has begun; `None` is now.
    ///
    /// # Errors
    /// The reason why it cannot; nothing has changed then.
    pub async fn reschedule(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: MessageId,
        at: Option<Timestamp>,
    ) -> Result<(), ChangeRefusal> {
        const DOING: &str = "move the time of a message";
        let write = || self.write_reschedule((organization_id, id), origin, at, DOING);
        let moving =
            async { Ok(db::retry_deadlocks(TRIES_MAX, write, ChangeRefusal::is_deadlock).await) };
        let due = db::bounded(DOING, moving).await??;
        self.dispatcher.push(due);
        Ok(())
    }

    async fn write_cancel(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: MessageId,
        doing: &'static str,
    ) -> Result<Cancelled, ChangeRefusal> {
        let now = self.clock.now();
        let mut transaction = db::begin(&self.pool, doing).await?;
        let rows = store::lock(&mut transaction, organization_id, id).await?;
        let free: Vec<SendJob> = rows
            .iter()
            .filter(|row| !row.is_leased)
            .map(|row| row.job)
            .collect();
        let by = EndedBy::Cancel;
        let ended = waiting::end(&mut transaction, &free, by, &self.ids, now).await?;
        let found = store::find(&mut transaction, organization_id, id).await?;
        let message = found.ok_or(ChangeRefusal::NotFound)?;
        if message.counts.cancelled == 0 {
            return Err(ChangeRefusal::of(&message.counts));
        }
        if ended > 0 {
            let change =
                AuditChange::new("message.cancelled", id).with(json!({ "recipients": ended }));
            let connection = &mut transaction;
            audit::store::insert(connection, organization_id, origin, &change, &self.ids, now)
                .await?;
        }
        transaction.commit().await.or_fault(doing)?;
        Ok(Cancelled {
            status: message.status,
            recipients: message.counts.cancelled,
        })
    }

    /// Returns the jobs that are due now.
    async fn write_reschedule(
        &self,
        (organization_id, id): (OrganizationId, MessageId),
        origin: &Origin,
        at: Option<Timestamp>,
        doing: &'static str,
    ) -> Result<Vec<SendJob>, ChangeRefusal> {
        let now = self.clock.now();
        let mut transaction = db::begin(&self.pool, doing).await?;
        let rows = store::lock(&mut transaction, organization_id, id).await?;
        let found = store::find(&mut transaction, organization_id, id).await?;
        let message = found.ok_or(ChangeRefusal::NotFound)?;
        if message.scheduled_at.is_none() {
            return Err(ChangeRefusal::NotScheduled);
        }
        let is_under_way = rows.iter().any(|row| row.is_leased || row.is_dead);
        if rows.is_empty() || is_under_way || message.has_begun {
            return Err(ChangeRefusal::of(&message.counts));
        }
        let begins = at.unwrap_or(now);
        if let Some(expires_at) = message
            .expires_at
            .filter(|expires_at| *expires_at <= begins)
        {
            return Err(ChangeRefusal::Expires(expires_at));
        }
        let wake_at = begins + delta(self.relay_grace);
        store::reschedule(&mut transaction, (organization_id, id), begins, at, wake_at).await?;
        let change =
            AuditChange::new("message.rescheduled", id).with(json!({ "scheduledAt": begins }));
        let connection = &mut transaction;
        audit::store::insert(connection, organization_id, origin, &change, &self.ids, now).await?;
        transaction.commit().await.or_fault(doing)?;
        let due = rows.into_iter().filter(|_| at.is_none());
        Ok(due.map(|row| row.job).collect())
    }
}
