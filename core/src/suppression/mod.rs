//! Suppressions: addresses that the organization does not send to, in one unsubscribe
//! group or in all mail. Only the hash of an address is stored.
//!
//! Suppressions are checked twice. At acceptance suppressed recipients are dropped: the
//! INSERT of a small send checks them, and [`check`] checks a large send before its INSERT.
//! For organizations with many suppressions the check reads a Bloom filter in Redis first
//! ([`bloom_filter`]), which saves Postgres most of the work.
//! Before a provider is called, the statement that inserts the send attempt
//! ([`crate::delivery::attempt`]) skips suppressed recipients. It reads only Postgres and is
//! the guarantee. The filter only improves speed.
//!
//! Adding suppressions takes three steps, so that the filter never rules out a committed
//! suppression: [`bloom_filter::BloomFilters::announce`], the transaction with
//! [`store::count_added`], [`bloom_filter::BloomFilters::confirm`].

pub mod bloom_filter;
pub mod check;
pub mod export;
pub mod feedback;
pub mod import;
pub mod removal;
pub mod store;

use std::fmt;
use std::str::FromStr;

use serde_json::json;

use crate::address::{AddressHash, EmailAddress};
use crate::audit::{self, AuditChange, Origin};
use crate::clock::{Clock, Timestamp};
use crate::db::{self, OrFault, PgConnection, PgPool};
use crate::fault::Fault;
use crate::idempotency::single::{Failed, Idempotent};
use crate::ids::{Ids, MessageId, OrganizationId, SuppressionId, UnsubscribeGroupId};
use bloom_filter::BloomFilters;

/// The reason in the history and the latest error of a dropped recipient.
pub const REASON: &str = "suppressed";

/// An address that the organization does not send to.
#[derive(Debug, Clone)]
pub struct Suppression {
    pub id: SuppressionId,
    pub organization_id: OrganizationId,
    pub email_hash: AddressHash,
    /// `None` if the suppression applies to all mail of the organization.
    pub unsubscribe_group_id: Option<UnsubscribeGroupId>,
    pub source: SuppressionSource,
    /// The message that caused it, if one did and it is known.
    pub message_id: Option<MessageId>,
    pub created_at: Timestamp,
}

/// The fields of a new suppression.
#[derive(Debug, Clone, Copy)]
pub struct NewSuppression<'a> {
    pub address: &'a EmailAddress,
    /// `None` suppresses the address for all mail of the organization.
    pub unsubscribe_group_id: Option<UnsubscribeGroupId>,
    pub source: SuppressionSource,
}

/// The source of a suppression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, sqlx::Type)]
#[sqlx(type_name = "suppression_source", rename_all = "UPPERCASE")]
pub enum SuppressionSource {
    /// A hard bounce, or too many soft bounces.
    Bounce,
    /// The recipient reported a message as spam.
    Complaint,
    Manual,
    Import,
    Unsubscribe,
}

impl SuppressionSource {
    /// All sources, in the order of the API description.
    pub const ALL: [Self; 5] = [
        Self::Bounce,
        Self::Complaint,
        Self::Manual,
        Self::Import,
        Self::Unsubscribe,
    ];

    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bounce => "BOUNCE",
            Self::Complaint => "COMPLAINT",
            Self::Manual => "MANUAL",
            Self::Import => "IMPORT",
            Self::Unsubscribe => "UNSUBSCRIBE",
        }
    }
}

impl fmt::Display for SuppressionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SuppressionSource {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|source| source.as_str() == name)
            .ok_or_else(|| format!("must be one of {}", Self::ALL.map(Self::as_str).join(", ")))
    }
}

/// Why a suppression was not added or removed.
#[derive(Debug)]
pub enum SuppressionRefusal {
    NotFound,
    /// The address already has this suppression.
    Exists,
    UnknownGroup,
    Fault(Fault),
}

impl From<Fault> for SuppressionRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<SuppressionRefusal> for Failed<SuppressionRefusal> {
    fn from(refusal: SuppressionRefusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Adds and removes suppressions. Cheap to clone.
#[derive(Clone)]
pub struct Suppressions {
    pub pool: PgPool,
    pub filters: BloomFilters,
    pub clock: Clock,
    pub ids: Ids,
}

impl Suppressions {
    /// Adds a suppression.
    ///
    /// # Errors
    /// [`SuppressionRefusal`], or the answer that the idempotency key requires. Nothing is
    /// stored then.
    pub async fn create(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        new: NewSuppression<'_>,
        once: &Idempotent<'_, Suppression>,
    ) -> Result<Suppression, Failed<SuppressionRefusal>> {
        let NewSuppression {
            address,
            unsubscribe_group_id,
            source,
        } = new;
        let hash = address.hash();
        self.announce(organization_id, &[hash]).await?;
        let now = self.clock.now();
        let suppression = Suppression {
            id: self.ids.next_at(now),
            organization_id,
            email_hash: hash,
            unsubscribe_group_id,
            source,
            message_id: None,
            created_at: now,
        };
        let mut transaction = once.begin(&self.pool, "add a suppression").await?;
        if !store::insert(&mut transaction, &suppression).await? {
            return Err(SuppressionRefusal::Exists.into());
        }
        let change = AuditChange::new("suppression.created", suppression.id)
            .with(json!({ "source": source.as_str(), "unsubscribeGroupId": unsubscribe_group_id }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        let state = store::count_added(&mut transaction, organization_id, 1).await?;
        once.commit(transaction, &suppression, "add a suppression")
            .await?;
        self.filters.confirm(organization_id, state, &[hash]).await;
        Ok(suppression)
    }

    /// Removes a suppression.
    ///
    /// # Errors
    /// [`SuppressionRefusal`]; nothing is removed then.
    pub async fn remove(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: SuppressionId,
    ) -> Result<(), SuppressionRefusal> {
        let mut transaction = db::begin(&self.pool, "remove a suppression").await?;
        if !store::delete(&mut transaction, organization_id, id).await? {
            return Err(SuppressionRefusal::NotFound);
        }
        let change = AuditChange::new("suppression.deleted", id);
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction
            .commit()
            .await
            .or_fault("remove a suppression")?;
        Ok(())
    }

    /// Adds hashes to the filter before their transaction.
    pub(crate) async fn announce(
        &self,
        organization_id: OrganizationId,
        hashes: &[AddressHash],
    ) -> Result<(), Fault> {
        let mut connection = self.pool.acquire().await.or_fault("add suppressions")?;
        let state = store::find_state(&mut connection, organization_id).await?;
        drop(connection);
        self.filters.announce(organization_id, state, hashes).await;
        Ok(())
    }

    pub(crate) async fn record(
        &self,
        connection: &mut PgConnection,
        organization_id: OrganizationId,
        origin: &Origin,
        change: &AuditChange,
    ) -> Result<(), Fault> {
        let now = self.clock.now();
        audit::store::insert(connection, organization_id, origin, change, &self.ids, now).await
    }
}
