//! Retries a failed message, because its owner asks for it. Its FAILED recipients go back to
//! QUEUED as if they had just been accepted, and the retry horizon begins again.
//!
//! A recipient to whom the mail was sent is not sent to again, so a second call makes no
//! second mail: it finds no recipient FAILED. A provider event may prove at the same moment
//! that a mail was sent. Then the recipient is SENT and stays so, or it is QUEUED and becomes
//! SENT before a worker sends.
//!
//! A recipient that failed because it is suppressed is retried too, and dropped again by the
//! check before the call if it is still suppressed. A recipient that was erased is not
//! retried. The history gets no event for a retry; the audit log has the entry.

mod store;

use std::time::Duration;

use serde_json::json;

use crate::audit::{self, AuditChange, Origin};
use crate::clock::{Clock, delta};
use crate::db::{self, OrFault, PgPool};
use crate::delivery::dispatch::Dispatcher;
use crate::delivery::job::SendJob;
use crate::fault::Fault;
use crate::ids::{Ids, MessageId, OrganizationId};
use crate::message::store::refresh_aggregates;

const DOING: &str = "retry a message";
/// How often a transaction is run that Postgres ends because of a deadlock.
const TRIES_MAX: u32 = 3;

/// Why a message was not retried.
#[derive(Debug)]
pub enum RetryRefusal {
    NotFound,
    /// None of its recipients is FAILED.
    NoneFailed,
    /// Its bodies were deleted.
    BodyGone,
    Fault(Fault),
}

impl From<Fault> for RetryRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl RetryRefusal {
    fn is_deadlock(&self) -> bool {
        match self {
            Self::Fault(fault) => db::is_deadlock(fault),
            Self::NotFound | Self::NoneFailed | Self::BodyGone => false,
        }
    }
}

/// Retries messages. Cheap to clone.
#[derive(Clone)]
pub struct Retrier {
    pub pool: PgPool,
    pub dispatcher: Dispatcher,
    /// How long the dispatcher has to push the jobs before the relay does.
    pub relay_grace: Duration,
    pub clock: Clock,
    pub ids: Ids,
}

impl Retrier {
    /// Queues the failed recipients of a message again.
    ///
    /// # Errors
    /// The reason why it cannot; nothing has changed then.
    pub async fn retry(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: MessageId,
    ) -> Result<(), RetryRefusal> {
        let write = || self.write(organization_id, origin, id);
        let retrying =
            async { Ok(db::retry_deadlocks(TRIES_MAX, write, RetryRefusal::is_deadlock).await) };
        let jobs = db::bounded(DOING, retrying).await??;
        self.dispatcher.push(jobs);
        Ok(())
    }

    /// One transaction. It locks in the same order as those that record outcomes: recipients,
    /// outbox, messages.
    async fn write(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: MessageId,
    ) -> Result<Vec<SendJob>, RetryRefusal> {
        let now = self.clock.now();
        let mut transaction = db::begin(&self.pool, DOING).await?;
        let positions = store::requeue_failed(&mut transaction, organization_id, id, now).await?;
        // After the recipients are locked: bodies are deleted only under that lock.
        let body = store::find_body(&mut transaction, organization_id, id).await?;
        match body {
            None => return Err(RetryRefusal::NotFound),
            Some(store::StoredBody::Gone) => return Err(RetryRefusal::BodyGone),
            Some(store::StoredBody::Kept) => {}
        }
        if positions.is_empty() {
            return Err(RetryRefusal::NoneFailed);
        }
        let wake_at = now + delta(self.relay_grace);
        let jobs =
            store::queue_chunks(&mut transaction, organization_id, id, &positions, wake_at).await?;
        store::mark_retried(&mut transaction, organization_id, id, now).await?;
        refresh_aggregates(&mut transaction, &[id]).await?;
        let change =
            AuditChange::new("message.retried", id).with(json!({ "recipients": positions.len() }));
        audit::store::insert(
            &mut transaction,
            organization_id,
            origin,
            &change,
            &self.ids,
            now,
        )
        .await?;
        transaction.commit().await.or_fault(DOING)?;
        Ok(jobs)
    }
}
