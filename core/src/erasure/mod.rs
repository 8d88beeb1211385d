//! Erases what is stored of a person: the address, the content and the details of events of
//! all messages to an address. The rows stay, so that counts and the history of other
//! recipients stay right. Suppressions stay: they hold the hash of the address, and without
//! them the person would get mail again.
//!
//! A message to one person alone, or one mail to several who see each other, loses its
//! subject, bodies, headers, metadata and references to attachments. Of a message whose
//! recipients each get a mail of their own, the recipient loses what is its own, and the
//! message loses the rest with its last recipient.
//!
//! Messages that are not finished are left as they are and counted, since sending needs
//! their content. An erasure can be repeated: it finds what was finished or reported since.
//!
//! Not erased: the hash of the address, tags, and what providers and receivers of webhooks
//! have. The content of an attachment goes with its month, as it may belong to others.

mod store;

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use uuid::Uuid;

use crate::address::AddressHash;
use crate::audit::{self, AuditChange, Origin};
use crate::clock::Clock;
use crate::db::{self, OrFault, PgPool};
use crate::fault::Fault;
use crate::ids::{Ids, MessageId, OrganizationId};
use crate::message::list;

const DOING: &str = "erase a person's messages";
/// Messages that are looked up at once.
const FOUND_MAX: i64 = 1_000;
/// Messages of one transaction.
const BATCH_MAX: usize = 100;
/// How long one request erases. The transaction under way may take longer.
const ERASING_MAX: Duration = Duration::from_secs(20);
/// How often a transaction is run that Postgres ends because of a deadlock.
const TRIES_MAX: u32 = 5;

/// What an erasure did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Erased {
    /// Messages of which something was erased.
    pub messages: u64,
    /// Events whose details were erased.
    pub events: u64,
    /// References to attachments that were erased.
    pub attachments: u64,
    /// Messages that are not finished, and are left as they are.
    pub pending: u64,
}

impl Erased {
    fn add(&mut self, more: Self) {
        self.messages += more.messages;
        self.events += more.events;
        self.attachments += more.attachments;
        self.pending += more.pending;
    }
}

/// The result of an erasure.
#[derive(Debug, Clone, Copy)]
pub struct Erasure {
    /// The id of its entries in the audit log.
    pub id: Uuid,
    pub erased: Erased,
    /// Whether all messages were visited. If not, the next erasure continues.
    pub is_complete: bool,
}

/// Erases persons. Cheap to clone.
#[derive(Clone)]
pub struct Eraser {
    pub pool: PgPool,
    pub clock: Clock,
    pub ids: Ids,
}

impl Eraser {
    /// Erases the messages to an address, the newest first. The audit log has an entry from
    /// before the first change and one from after the last.
    ///
    /// # Errors
    /// A fault. What was erased until then stays erased.
    pub async fn erase(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        address: AddressHash,
    ) -> Result<Erasure, Fault> {
        let started = Instant::now();
        let mut erasure = Erasure {
            id: self.ids.next(),
            erased: Erased::default(),
            is_complete: false,
        };
        let begun = AuditChange::new("erasure.started", erasure.id)
            .with(json!({ "emailHash": address.to_hex() }));
        self.record(organization_id, origin, &begun).await?;
        let mut before = None;
        while !erasure.is_complete && started.elapsed() < ERASING_MAX {
            let found = self.find(organization_id, address, before).await?;
            before = found.last().copied();
            let is_last = i64::try_from(found.len()).is_ok_and(|found| found < FOUND_MAX);
            let mut batches = found.chunks(BATCH_MAX);
            let is_done = loop {
                let Some(ids) = batches.next() else {
                    break true;
                };
                let erased = self.erase_batch(organization_id, address, ids).await?;
                erasure.erased.add(erased);
                if started.elapsed() >= ERASING_MAX {
                    break batches.len() == 0;
                }
            };
            erasure.is_complete = is_last && is_done;
        }
        let Erased {
            messages,
            events,
            attachments,
            pending,
        } = erasure.erased;
        let ended = AuditChange::new("erasure.finished", erasure.id).with(json!({
            "emailHash": address.to_hex(),
            "messages": messages,
            "events": events,
            "attachments": attachments,
            "pending": pending,
            "complete": erasure.is_complete,
        }));
        self.record(organization_id, origin, &ended).await?;
        Ok(erasure)
    }

    async fn find(
        &self,
        organization_id: OrganizationId,
        address: AddressHash,
        before: Option<MessageId>,
    ) -> Result<Vec<MessageId>, Fault> {
        db::bounded(DOING, async {
            let mut connection = self.pool.acquire().await.or_fault(DOING)?;
            list::to_address(&mut connection, organization_id, address, before, FOUND_MAX).await
        })
        .await
    }

    async fn erase_batch(
        &self,
        organization_id: OrganizationId,
        address: AddressHash,
        ids: &[MessageId],
    ) -> Result<Erased, Fault> {
        let write = || self.write(organization_id, address, ids);
        let erasing = async { Ok(db::retry_deadlocks(TRIES_MAX, write, db::is_deadlock).await) };
        db::bounded(DOING, erasing).await?
    }

    /// One transaction. It locks in the same order as those that record outcomes and events:
    /// attempts, recipients, messages.
    async fn write(
        &self,
        organization_id: OrganizationId,
        address: AddressHash,
        ids: &[MessageId],
    ) -> Result<Erased, Fault> {
        let now = self.clock.now();
        let mut transaction = db::begin(&self.pool, DOING).await?;
        let ids = store::list_unerased(&mut transaction, organization_id, address, ids).await?;
        if ids.is_empty() {
            return Ok(Erased::default());
        }
        store::lock(&mut transaction, address, &ids).await?;
        // Statements of their own see what the transactions did for which the locks waited.
        let found = store::classify(&mut transaction, organization_id, address, &ids).await?;
        let recipients =
            store::erase_recipients(&mut transaction, address, &found.finished, now).await?;
        store::erase_of_recipients(&mut transaction, &recipients).await?;
        let attachments = store::erase_contents(&mut transaction, organization_id, &found.whole);
        let attachments = attachments.await?;
        let events = store::erase_events(&mut transaction, &recipients, &found.whole).await?;
        transaction.commit().await.or_fault(DOING)?;
        Ok(Erased {
            messages: found.finished.len() as u64,
            events,
            attachments,
            pending: found.pending,
        })
    }

    async fn record(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        change: &AuditChange,
    ) -> Result<(), Fault> {
        let now = self.clock.now();
        let mut connection = self.pool.acquire().await.or_fault(DOING)?;
        audit::store::insert(
            &mut connection,
            organization_id,
            origin,
            change,
            &self.ids,
            now,
        )
        .await
    }
}
