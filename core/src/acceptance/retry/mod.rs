//! Trying a message again that failed, because its owner says so: those of its
//! recipients that are FAILED go back to QUEUED as if they had just been accepted,
//! and the time for which they are tried begins anew.
//!
//! What was accepted once is not written a second time, so calling it twice makes
//! no second copy: who comes second finds nobody FAILED. A provider's event that
//! proves a copy sent at the same moment meets it at the recipient's row: the copy
//! is SENT and stays so, or it is QUEUED and becomes SENT before anybody tries it.
//!
//! A recipient that failed because it is suppressed is tried again too, and dropped
//! again by the last look before the call if it still is. The history gets no event
//! of it: the entry in the audit log is the trace.

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
/// How often a transaction is tried that Postgres chose to end a deadlock.
const TRIES_MAX: u32 = 3;

/// Why a message was not tried again.
#[derive(Debug)]
pub enum RetryRefusal {
    /// There is no such message.
    NotFound,
    /// None of its recipients is FAILED.
    NoneFailed,
    /// Its bodies are not kept any more.
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

/// Tries messages again. Cheap to clone.
#[derive(Clone)]
pub struct Retrier {
    pub pool: PgPool,
    pub dispatcher: Dispatcher,
    /// How long the dispatcher has before the relay looks.
    pub relay_grace: Duration,
    pub clock: Clock,
    pub ids: Ids,
}

impl Retrier {
    /// Queues the failed recipients of a message again.
    ///
    /// # Errors
    /// Why not; nothing has changed then.
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

    /// One transaction. Its locks are those of all who settle, in their order:
    /// recipients, outbox, messages.
    async fn write(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: MessageId,
    ) -> Result<Vec<SendJob>, RetryRefusal> {
        let now = self.clock.now();
        let mut transaction = db::begin(&self.pool, DOING).await?;
        let positions = store::requeue_failed(&mut transaction, organization_id, id, now).await?;
        // With its recipients locked, behind which bodies are deleted.
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
            store::owe_again(&mut transaction, organization_id, id, &positions, wake_at).await?;
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
