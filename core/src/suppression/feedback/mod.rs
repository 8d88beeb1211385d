//! What providers tell of addresses: that they do not exist, that their owner called
//! a message spam, that they unsubscribed there. Suppressed in the transaction that
//! records the news, so there is no such event without its suppression.
//!
//! It goes by the address that the copy was sent to, not by what the provider
//! wrote. A soft bounce alone says little; as many as the organization's settings
//! name, within as many days, suppress the address like a hard one, and counting
//! begins anew then.
//!
//! The news of many organizations share a transaction, and each step its statements.
//! The three steps of everyone who adds suppressions are the caller's here:
//! [`Suppressions::expect_told`], [`Suppressions::add_told`] in the transaction,
//! [`Suppressions::confirm_told`].

mod store;

use std::collections::{BTreeMap, HashSet};

use futures_util::future::join_all;
use serde_json::json;

use super::bloom_filter::FilterState;
use super::{SuppressionSource, Suppressions};
use crate::address::AddressHash;
use crate::audit::{self, AuditChange, Origin};
use crate::clock::Timestamp;
use crate::db::{OrFault as _, PgConnection};
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, UnsubscribeGroupId};
use store::{NewSuppression, SoftBounce};

/// Soft bounces that are remembered of an address at the most, and so the highest
/// number that a setting may name.
pub const SOFT_BOUNCES_MAX: u32 = 100;

/// Why an address is not to be sent to any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportedReason {
    /// It came back for good.
    HardBounce,
    /// It came back for now.
    SoftBounce { at: Timestamp },
    /// The recipient called a message spam.
    Complaint,
    /// The recipient unsubscribed at the provider.
    Unsubscribe {
        /// The group that the message was sent in; everywhere where there was none,
        /// or where it is no more.
        unsubscribe_group_id: Option<UnsubscribeGroupId>,
    },
}

/// An address that a provider told something of.
#[derive(Debug, Clone, Copy)]
pub struct ReportedAddress {
    /// The address that the copy was sent to.
    pub email_hash: AddressHash,
    pub message_id: MessageId,
    pub reason: ReportedReason,
}

/// An address that something was told of, and where that comes from.
#[derive(Debug, Clone, Copy)]
pub struct ReportedSuppression<'a> {
    pub organization_id: OrganizationId,
    /// What the audit log says of it.
    pub origin: &'a Origin,
    pub address: ReportedAddress,
}

/// What was added, to be confirmed after the commit.
#[derive(Debug, Default)]
pub struct AddedSuppressions {
    of: Vec<(OrganizationId, FilterState, Vec<AddressHash>)>,
}

impl Suppressions {
    /// Lets the filters know of addresses that may be suppressed. Before the
    /// transaction.
    pub async fn expect_told(&self, told: &[(OrganizationId, AddressHash)]) -> Result<(), Fault> {
        if told.is_empty() {
            return Ok(());
        }
        let mut of: BTreeMap<OrganizationId, Vec<AddressHash>> = BTreeMap::new();
        for (organization_id, email_hash) in told {
            of.entry(*organization_id).or_default().push(*email_hash);
        }
        let organization_ids: Vec<OrganizationId> = of.keys().copied().collect();
        let mut connection = self.pool.acquire().await.or_fault("add suppressions")?;
        let states = super::store::list_states(&mut connection, &organization_ids).await?;
        drop(connection);
        let announced = states.iter().filter_map(|(organization_id, state)| {
            let hashes = of.get(organization_id)?;
            Some(self.filters.announce(*organization_id, *state, hashes))
        });
        join_all(announced).await;
        Ok(())
    }

    /// Suppresses what is to be suppressed, with its audit entries. Last in the
    /// transaction: callers for one organization wait for each other from here on.
    pub async fn add_told(
        &self,
        connection: &mut PgConnection,
        told: &[ReportedSuppression<'_>],
    ) -> Result<AddedSuppressions, Fault> {
        let now = self.clock.now();
        let worn_out = count_soft(&mut *connection, told, now).await?;
        let groups = hold_groups(&mut *connection, told).await?;
        let mut wanted = self.wanted(told, &worn_out, &groups, now);
        if wanted.is_empty() {
            return Ok(AddedSuppressions::default());
        }
        let added = store::insert(&mut *connection, &wanted, now).await?;
        wanted.retain(|new| added.contains(&new.id));
        if wanted.is_empty() {
            return Ok(AddedSuppressions::default());
        }
        let changes = wanted
            .iter()
            .map(|new| (new.organization_id, new.origin, change(new)));
        let changes: Vec<_> = changes.collect();
        audit::store::insert_mixed(&mut *connection, &changes, &self.ids, now).await?;
        let mut of: BTreeMap<OrganizationId, Vec<AddressHash>> = BTreeMap::new();
        for new in &wanted {
            let hashes = of.entry(new.organization_id).or_default();
            hashes.push(new.email_hash);
        }
        let states = store::count_added(connection, &of).await?;
        let added = states.into_iter().filter_map(|(organization_id, state)| {
            let hashes = of.remove(&organization_id)?;
            Some((organization_id, state, hashes))
        });
        Ok(AddedSuppressions {
            of: added.collect(),
        })
    }

    /// What is to be suppressed, each once, in one order in every transaction, as
    /// imports add theirs.
    fn wanted<'a>(
        &self,
        told: &[ReportedSuppression<'a>],
        worn_out: &HashSet<(OrganizationId, AddressHash)>,
        groups: &HashSet<(OrganizationId, UnsubscribeGroupId)>,
        now: Timestamp,
    ) -> Vec<NewSuppression<'a>> {
        let mut wanted = Vec::new();
        for ReportedSuppression {
            organization_id,
            origin,
            address,
        } in told.iter().copied()
        {
            let (source, group_id) = match address.reason {
                ReportedReason::SoftBounce { .. }
                    if !worn_out.contains(&(organization_id, address.email_hash)) =>
                {
                    continue;
                }
                ReportedReason::SoftBounce { .. } | ReportedReason::HardBounce => {
                    (SuppressionSource::Bounce, None)
                }
                ReportedReason::Complaint => (SuppressionSource::Complaint, None),
                ReportedReason::Unsubscribe {
                    unsubscribe_group_id,
                } => (
                    SuppressionSource::Unsubscribe,
                    unsubscribe_group_id.filter(|id| groups.contains(&(organization_id, *id))),
                ),
            };
            wanted.push(NewSuppression {
                id: self.ids.next_at(now),
                organization_id,
                origin,
                email_hash: address.email_hash,
                unsubscribe_group_id: group_id,
                source,
                message_id: address.message_id,
            });
        }
        let place = |new: &NewSuppression<'_>| {
            let address = (new.organization_id, new.email_hash);
            (address, new.unsubscribe_group_id)
        };
        wanted.sort_by_key(|new| (place(new), new.id));
        wanted.dedup_by_key(|new| place(new));
        wanted
    }

    /// Lets what was added enter the filters for certain. After the commit.
    pub async fn confirm_told(&self, added: &AddedSuppressions) {
        let confirmed = added.of.iter().map(|(organization_id, state, hashes)| {
            self.filters.confirm(*organization_id, *state, hashes)
        });
        join_all(confirmed).await;
    }
}

fn change(new: &NewSuppression<'_>) -> AuditChange {
    AuditChange::new("suppression.created", new.id).with(json!({
        "source": new.source.as_str(),
        "unsubscribeGroupId": new.unsubscribe_group_id,
        "messageId": new.message_id,
    }))
}

/// Counts soft bounces, and answers the addresses that have had their share.
async fn count_soft(
    connection: &mut PgConnection,
    told: &[ReportedSuppression<'_>],
    now: Timestamp,
) -> Result<HashSet<(OrganizationId, AddressHash)>, Fault> {
    let soft: Vec<SoftBounce> = told
        .iter()
        .filter_map(|told| match told.address.reason {
            ReportedReason::SoftBounce { at } => Some(SoftBounce {
                organization_id: told.organization_id,
                email_hash: told.address.email_hash,
                at,
            }),
            ReportedReason::HardBounce
            | ReportedReason::Complaint
            | ReportedReason::Unsubscribe { .. } => None,
        })
        .collect();
    if soft.is_empty() {
        return Ok(HashSet::new());
    }
    store::count_soft_bounces(connection, &soft, now).await
}

/// Those of the groups that there still are; they stay until the transaction ends.
async fn hold_groups(
    connection: &mut PgConnection,
    told: &[ReportedSuppression<'_>],
) -> Result<HashSet<(OrganizationId, UnsubscribeGroupId)>, Fault> {
    let groups: HashSet<(OrganizationId, UnsubscribeGroupId)> = told
        .iter()
        .filter_map(|told| match told.address.reason {
            ReportedReason::Unsubscribe {
                unsubscribe_group_id,
            } => Some((told.organization_id, unsubscribe_group_id?)),
            ReportedReason::HardBounce
            | ReportedReason::SoftBounce { .. }
            | ReportedReason::Complaint => None,
        })
        .collect();
    if groups.is_empty() {
        return Ok(groups);
    }
    store::hold_groups(connection, &groups).await
}
