//! Suppressions: addresses that are not sent to, everywhere or in one unsubscribe
//! group. Only the hash of an address is kept.
//!
//! They are asked for twice. At acceptance suppressed recipients are dropped: of a small
//! send by the statement that writes it, of a large one by the *check* before; that may
//! look into the *filter* in Redis first, which spares Postgres most of the work for
//! organizations with many suppressions.
//! Right before a provider is called, the statement that writes the attempt
//! (`queue::attempt`) writes none for a suppressed recipient: that is the
//! guarantee, and it asks nobody but Postgres. The filter is only speed.
//!
//! Whoever adds suppressions goes through three steps, so that the filter never
//! says "no" of a suppression that is committed: [`bloom_filter::BloomFilters::announce`],
//! the transaction with [`store::count_added`], [`bloom_filter::BloomFilters::confirm`].

pub mod bloom_filter;
pub mod check;
pub mod feedback;
pub mod import;
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
use crate::ids::{Ids, OrganizationId, SuppressionId, UnsubscribeGroupId};
use bloom_filter::BloomFilters;

/// What a dropped recipient's history and latest error say.
pub const REASON: &str = "suppressed";

/// An address that is not sent to.
#[derive(Debug, Clone)]
pub struct Suppression {
    pub id: SuppressionId,
    pub organization_id: OrganizationId,
    /// The hash of the address.
    pub email_hash: AddressHash,
    /// The group that it is valid in; nothing where it is valid everywhere.
    pub unsubscribe_group_id: Option<UnsubscribeGroupId>,
    pub source: SuppressionSource,
    pub created_at: Timestamp,
}

/// What a caller wants suppressed.
#[derive(Debug, Clone, Copy)]
pub struct WantedSuppression<'a> {
    pub address: &'a EmailAddress,
    /// The group that it is suppressed in; everywhere where there is none.
    pub unsubscribe_group_id: Option<UnsubscribeGroupId>,
    /// Where the suppression comes from.
    pub source: SuppressionSource,
}

/// Where a suppression comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, sqlx::Type)]
#[sqlx(type_name = "suppression_source", rename_all = "UPPERCASE")]
pub enum SuppressionSource {
    /// A message to the address came back for good.
    Bounce,
    /// The recipient called a message spam.
    Complaint,
    Manual,
    /// It came with a list.
    Import,
    Unsubscribe,
}

impl SuppressionSource {
    /// All of them, in the order of the contract.
    pub const ALL: [Self; 5] = [
        Self::Bounce,
        Self::Complaint,
        Self::Manual,
        Self::Import,
        Self::Unsubscribe,
    ];

    /// The wire name.
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

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|source| source.as_str() == word)
            .ok_or_else(|| format!("must be one of {}", Self::ALL.map(Self::as_str).join(", ")))
    }
}

/// Why a suppression was not added or removed.
#[derive(Debug)]
pub enum SuppressionRefusal {
    /// There is no such suppression.
    NotFound,
    /// The address is suppressed there already.
    Exists,
    /// There is no such unsubscribe group.
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

/// Works on the suppressions of organizations. Cheap to clone.
#[derive(Clone)]
pub struct Suppressions {
    pub pool: PgPool,
    pub filters: BloomFilters,
    pub clock: Clock,
    pub ids: Ids,
}

impl Suppressions {
    /// Suppresses one address, everywhere or in a group.
    ///
    /// # Errors
    /// Why it was not added.
    pub async fn create(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        wanted: WantedSuppression<'_>,
        once: &Idempotent<'_, Suppression>,
    ) -> Result<Suppression, Failed<SuppressionRefusal>> {
        let WantedSuppression {
            address,
            unsubscribe_group_id,
            source,
        } = wanted;
        let hash = address.hash();
        self.announce(organization_id, &[hash]).await?;
        let now = self.clock.now();
        let suppression = Suppression {
            id: self.ids.next_at(now),
            organization_id,
            email_hash: hash,
            unsubscribe_group_id,
            source,
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

    /// Lifts a suppression: the address may be sent to again.
    ///
    /// # Errors
    /// Why it was not lifted.
    pub async fn remove(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: SuppressionId,
    ) -> Result<(), SuppressionRefusal> {
        let mut transaction = db::begin(&self.pool, "lift a suppression").await?;
        if !store::delete(&mut transaction, organization_id, id).await? {
            return Err(SuppressionRefusal::NotFound);
        }
        let change = AuditChange::new("suppression.deleted", id);
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction.commit().await.or_fault("lift a suppression")?;
        Ok(())
    }

    /// Lets the filter know of hashes that are about to be added.
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
