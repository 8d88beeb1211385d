//! Suppressions from provider feedback: hard bounces, complaints and unsubscribes at the
//! provider. They are added in the transaction that records the provider event, so no such
//! event exists without its suppression.
//!
//! The suppressed address is the one that the message was sent to, not the one in the
//! provider's event. Soft bounces suppress an address only if their number within a period
//! reaches the limit. The organization's settings contain the period and the limit. The
//! count then restarts at zero.
//!
//! Feedback for many organizations shares one transaction, and each step runs the same
//! number of statements for all of them. The caller runs the three steps of adding
//! suppressions:
//! [`Suppressions::announce_feedback`], [`Suppressions::add_feedback`] in the transaction,
//! [`Suppressions::confirm_feedback`].

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
use store::{SoftBounce, SuppressionRow};

/// The largest soft bounce limit that an organization can set. No more soft bounces are
/// stored for an address.
pub const SOFT_BOUNCES_MAX: u32 = 100;

/// Why an address is to be suppressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportedReason {
    HardBounce,
    SoftBounce {
        at: Timestamp,
    },
    Complaint,
    /// The recipient unsubscribed at the provider.
    Unsubscribe {
        /// The group of the message. Without one, or if it has been removed, the address is
        /// suppressed for all mail.
        unsubscribe_group_id: Option<UnsubscribeGroupId>,
    },
}

/// A provider's report about an address.
#[derive(Debug, Clone, Copy)]
pub struct ReportedAddress {
    /// The address that the message was sent to.
    pub email_hash: AddressHash,
    pub message_id: MessageId,
    pub reason: ReportedReason,
}

/// A report with its organization and origin.
#[derive(Debug, Clone, Copy)]
pub struct ReportedSuppression<'a> {
    pub organization_id: OrganizationId,
    /// The origin in the audit log.
    pub origin: &'a Origin,
    pub address: ReportedAddress,
}

/// Added suppressions, to be confirmed after the commit.
#[derive(Debug, Default)]
pub struct AddedSuppressions {
    by_organization: Vec<(OrganizationId, FilterState, Vec<AddressHash>)>,
}

impl Suppressions {
    /// Adds addresses that may be suppressed to the filters. Call it before the transaction.
    pub async fn announce_feedback(
        &self,
        addresses: &[(OrganizationId, AddressHash)],
    ) -> Result<(), Fault> {
        if addresses.is_empty() {
            return Ok(());
        }
        let mut hashes: BTreeMap<OrganizationId, Vec<AddressHash>> = BTreeMap::new();
        for (organization_id, email_hash) in addresses {
            let hashes = hashes.entry(*organization_id).or_default();
            hashes.push(*email_hash);
        }
        let organization_ids: Vec<OrganizationId> = hashes.keys().copied().collect();
        let mut connection = self.pool.acquire().await.or_fault("add suppressions")?;
        let states = super::store::list_states(&mut connection, &organization_ids).await?;
        drop(connection);
        let announced = states.iter().filter_map(|(organization_id, state)| {
            let hashes = hashes.get(organization_id)?;
            Some(self.filters.announce(*organization_id, *state, hashes))
        });
        join_all(announced).await;
        Ok(())
    }

    /// Adds the reported suppressions and their audit entries. Call it last in the
    /// transaction: it locks the organizations' filter states until the transaction ends.
    pub async fn add_feedback(
        &self,
        connection: &mut PgConnection,
        reports: &[ReportedSuppression<'_>],
    ) -> Result<AddedSuppressions, Fault> {
        let now = self.clock.now();
        let over_limit = count_soft_bounces(&mut *connection, reports, now).await?;
        let groups = lock_groups(&mut *connection, reports).await?;
        let mut rows = self.rows(reports, &over_limit, &groups, now);
        if rows.is_empty() {
            return Ok(AddedSuppressions::default());
        }
        let added = store::insert(&mut *connection, &rows, now).await?;
        rows.retain(|row| added.contains(&row.id));
        if rows.is_empty() {
            return Ok(AddedSuppressions::default());
        }
        let changes = rows
            .iter()
            .map(|row| (row.organization_id, row.origin, change(row)));
        let changes: Vec<_> = changes.collect();
        audit::store::insert_mixed(&mut *connection, &changes, &self.ids, now).await?;
        let mut hashes: BTreeMap<OrganizationId, Vec<AddressHash>> = BTreeMap::new();
        for row in &rows {
            let hashes = hashes.entry(row.organization_id).or_default();
            hashes.push(row.email_hash);
        }
        let states = store::count_added(connection, &hashes).await?;
        let added = states.into_iter().filter_map(|(organization_id, state)| {
            let hashes = hashes.remove(&organization_id)?;
            Some((organization_id, state, hashes))
        });
        Ok(AddedSuppressions {
            by_organization: added.collect(),
        })
    }

    /// The rows to insert, without duplicates, in the same order in every transaction (as
    /// imports), so that concurrent transactions cannot deadlock.
    fn rows<'a>(
        &self,
        reports: &[ReportedSuppression<'a>],
        over_limit: &HashSet<(OrganizationId, AddressHash)>,
        groups: &HashSet<(OrganizationId, UnsubscribeGroupId)>,
        now: Timestamp,
    ) -> Vec<SuppressionRow<'a>> {
        let mut rows = Vec::new();
        for ReportedSuppression {
            organization_id,
            origin,
            address,
        } in reports.iter().copied()
        {
            let (source, group_id) = match address.reason {
                ReportedReason::SoftBounce { .. }
                    if !over_limit.contains(&(organization_id, address.email_hash)) =>
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
            rows.push(SuppressionRow {
                id: self.ids.next_at(now),
                organization_id,
                origin,
                email_hash: address.email_hash,
                unsubscribe_group_id: group_id,
                source,
                message_id: address.message_id,
            });
        }
        let key = |row: &SuppressionRow<'_>| {
            let address = (row.organization_id, row.email_hash);
            (address, row.unsubscribe_group_id)
        };
        rows.sort_by_key(|row| (key(row), row.id));
        rows.dedup_by_key(|row| key(row));
        rows
    }

    /// Adds committed suppressions to the filters again and counts them. Call it after the
    /// commit.
    pub async fn confirm_feedback(&self, added: &AddedSuppressions) {
        let added = added.by_organization.iter();
        let confirmed = added.map(|(organization_id, state, hashes)| {
            self.filters.confirm(*organization_id, *state, hashes)
        });
        join_all(confirmed).await;
    }
}

fn change(row: &SuppressionRow<'_>) -> AuditChange {
    AuditChange::new("suppression.created", row.id).with(json!({
        "source": row.source.as_str(),
        "unsubscribeGroupId": row.unsubscribe_group_id,
        "messageId": row.message_id,
    }))
}

/// Counts soft bounces and returns the addresses that reached the limit.
async fn count_soft_bounces(
    connection: &mut PgConnection,
    reports: &[ReportedSuppression<'_>],
    now: Timestamp,
) -> Result<HashSet<(OrganizationId, AddressHash)>, Fault> {
    let bounces: Vec<SoftBounce> = reports
        .iter()
        .filter_map(|report| match report.address.reason {
            ReportedReason::SoftBounce { at } => Some(SoftBounce {
                organization_id: report.organization_id,
                email_hash: report.address.email_hash,
                at,
            }),
            ReportedReason::HardBounce
            | ReportedReason::Complaint
            | ReportedReason::Unsubscribe { .. } => None,
        })
        .collect();
    if bounces.is_empty() {
        return Ok(HashSet::new());
    }
    store::count_soft_bounces(connection, &bounces, now).await
}

/// The groups of the reports that still exist, locked until the transaction ends.
async fn lock_groups(
    connection: &mut PgConnection,
    reports: &[ReportedSuppression<'_>],
) -> Result<HashSet<(OrganizationId, UnsubscribeGroupId)>, Fault> {
    let groups: HashSet<(OrganizationId, UnsubscribeGroupId)> = reports
        .iter()
        .filter_map(|report| match report.address.reason {
            ReportedReason::Unsubscribe {
                unsubscribe_group_id,
            } => Some((report.organization_id, unsubscribe_group_id?)),
            ReportedReason::HardBounce
            | ReportedReason::SoftBounce { .. }
            | ReportedReason::Complaint => None,
        })
        .collect();
    if groups.is_empty() {
        return Ok(groups);
    }
    store::lock_groups(connection, &groups).await
}
