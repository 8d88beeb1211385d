//! What providers tell of addresses: that they do not exist, that their owner called
//! a message spam, that they unsubscribed there. Suppressed in the transaction that
//! records the news, so there is no such event without its suppression.
//!
//! It goes by the address that the copy was sent to, not by what the provider
//! wrote. A soft bounce alone says little; as many as the organization's settings
//! name, within as many days, suppress the address like a hard one, and counting
//! begins anew then.
//!
//! The three steps of everyone who adds suppressions are the caller's here:
//! [`Suppressions::expect_told`], [`Suppressions::add_told`] in the transaction,
//! [`Suppressions::confirm_told`].

mod store;

use std::collections::HashSet;

use serde_json::json;

use super::filter::FilterState;
use super::{SuppressionSource, Suppressions};
use crate::address::AddressHash;
use crate::audit::{self, Change, Origin};
use crate::clock::Timestamp;
use crate::db::PgConnection;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, UnsubscribeGroupId};
use store::NewSuppression;

/// Soft bounces that are remembered of an address at the most, and so the highest
/// number that a setting may name.
pub const SOFT_BOUNCES_MAX: u32 = 100;

/// Why an address is not to be sent to any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToldReason {
    /// It came back for good.
    HardBounce,
    /// It came back for now.
    SoftBounce {
        /// When.
        at: Timestamp,
    },
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
pub struct ToldAddress {
    /// The address that the copy was sent to.
    pub email_hash: AddressHash,
    /// The message.
    pub message_id: MessageId,
    /// What was told.
    pub reason: ToldReason,
}

/// What was added, to be confirmed after the commit.
#[derive(Debug, Default)]
pub struct AddedTold {
    hashes: Vec<AddressHash>,
    state: FilterState,
}

impl Suppressions {
    /// Lets the filter know of addresses that may be suppressed. Before the
    /// transaction.
    ///
    /// # Errors
    /// A fault when Postgres is away.
    pub async fn expect_told(
        &self,
        organization_id: OrganizationId,
        hashes: &[AddressHash],
    ) -> Result<(), Fault> {
        if hashes.is_empty() {
            return Ok(());
        }
        self.announce(organization_id, hashes).await
    }

    /// Suppresses what is to be suppressed, with its audit entries. Last in the
    /// transaction: callers for one organization wait for each other from here on.
    ///
    /// # Errors
    /// A fault when Postgres is away.
    pub async fn add_told(
        &self,
        connection: &mut PgConnection,
        organization_id: OrganizationId,
        origin: &Origin,
        told: &[ToldAddress],
    ) -> Result<AddedTold, Fault> {
        let now = self.clock.now();
        let worn_out = count_soft(&mut *connection, organization_id, told, now).await?;
        let groups = hold_groups(&mut *connection, organization_id, told).await?;
        let mut wanted = Vec::new();
        for address in told {
            let (source, group_id) = match address.reason {
                ToldReason::SoftBounce { .. } if !worn_out.contains(&address.email_hash) => {
                    continue;
                }
                ToldReason::SoftBounce { .. } | ToldReason::HardBounce => {
                    (SuppressionSource::Bounce, None)
                }
                ToldReason::Complaint => (SuppressionSource::Complaint, None),
                ToldReason::Unsubscribe {
                    unsubscribe_group_id,
                } => (
                    SuppressionSource::Unsubscribe,
                    unsubscribe_group_id.filter(|id| groups.contains(id)),
                ),
            };
            wanted.push(NewSuppression {
                id: self.ids.next_at(now),
                email_hash: address.email_hash,
                unsubscribe_group_id: group_id,
                source,
                message_id: address.message_id,
            });
        }
        // In one order in every transaction, as imports add theirs.
        wanted.sort_by_key(|new| (new.email_hash, new.unsubscribe_group_id, new.id));
        wanted.dedup_by_key(|new| (new.email_hash, new.unsubscribe_group_id));
        if wanted.is_empty() {
            return Ok(AddedTold::default());
        }
        let added = store::insert(&mut *connection, organization_id, &wanted, now).await?;
        wanted.retain(|new| added.contains(&new.id));
        if wanted.is_empty() {
            return Ok(AddedTold::default());
        }
        let changes: Vec<Change> = wanted.iter().map(change).collect();
        audit::store::insert_all(
            &mut *connection,
            organization_id,
            origin,
            &changes,
            &self.ids,
            now,
        )
        .await?;
        let state = super::store::count_added(connection, organization_id, wanted.len()).await?;
        Ok(AddedTold {
            hashes: wanted.iter().map(|new| new.email_hash).collect(),
            state,
        })
    }

    /// Lets what was added enter the filter for certain. After the commit.
    pub async fn confirm_told(&self, organization_id: OrganizationId, added: &AddedTold) {
        if !added.hashes.is_empty() {
            self.filters
                .confirm(organization_id, added.state, &added.hashes)
                .await;
        }
    }
}

fn change(new: &NewSuppression) -> Change {
    Change::new("suppression.created", new.id).with(json!({
        "source": new.source.as_str(),
        "unsubscribeGroupId": new.unsubscribe_group_id,
        "messageId": new.message_id,
    }))
}

/// Counts soft bounces, and answers the addresses that have had their share.
async fn count_soft(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    told: &[ToldAddress],
    now: Timestamp,
) -> Result<HashSet<AddressHash>, Fault> {
    let soft: Vec<(AddressHash, Timestamp)> = told
        .iter()
        .filter_map(|address| match address.reason {
            ToldReason::SoftBounce { at } => Some((address.email_hash, at)),
            ToldReason::HardBounce | ToldReason::Complaint | ToldReason::Unsubscribe { .. } => None,
        })
        .collect();
    if soft.is_empty() {
        return Ok(HashSet::new());
    }
    store::count_soft_bounces(connection, organization_id, &soft, now).await
}

/// Those of the groups that there still are; they stay until the transaction ends.
async fn hold_groups(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    told: &[ToldAddress],
) -> Result<HashSet<UnsubscribeGroupId>, Fault> {
    let groups: HashSet<UnsubscribeGroupId> = told
        .iter()
        .filter_map(|address| match address.reason {
            ToldReason::Unsubscribe {
                unsubscribe_group_id,
            } => unsubscribe_group_id,
            ToldReason::HardBounce | ToldReason::SoftBounce { .. } | ToldReason::Complaint => None,
        })
        .collect();
    if groups.is_empty() {
        return Ok(groups);
    }
    store::hold_groups(connection, organization_id, &groups).await
}
