//! Addresses that bounced, suppressed everywhere by those who learn of it in a
//! transaction of their own: the three steps of this module's promise, for any
//! number of organizations at once.

use std::collections::BTreeMap;

use super::filter::{FilterState, Filters};
use super::store;
use super::{Suppression, SuppressionRefusal, SuppressionSource};
use crate::address::AddressHash;
use crate::clock::Timestamp;
use crate::db::PgConnection;
use crate::fault::Fault;
use crate::ids::{Ids, OrganizationId};

/// Whose mail bounced, and from which address. Ordered, so that two transactions
/// that suppress the same addresses wait for each other in one order.
pub type Bounced = (OrganizationId, AddressHash);

/// What was suppressed, for the filters, once it is committed.
#[derive(Debug, Default)]
#[must_use = "the filters are told after the commit"]
pub struct Added(Vec<(OrganizationId, FilterState, Vec<AddressHash>)>);

/// Lets the filters know of what is about to be suppressed. Before the transaction
/// that does so.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn announce(
    filters: &Filters,
    connection: &mut PgConnection,
    bounced: &[Bounced],
) -> Result<(), Fault> {
    for (organization_id, hashes) in by_organization(bounced) {
        let state = store::find_state(&mut *connection, organization_id).await?;
        filters.announce(organization_id, state, &hashes).await;
    }
    Ok(())
}

/// Suppresses those that are not suppressed everywhere yet. Last in a transaction:
/// others that add suppressions for the same organization wait from here on.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn insert(
    connection: &mut PgConnection,
    bounced: &[Bounced],
    ids: &Ids,
    now: Timestamp,
) -> Result<Added, Fault> {
    let mut added = Vec::new();
    for (organization_id, hashes) in by_organization(bounced) {
        let mut new = Vec::new();
        for email_hash in hashes {
            let suppression = Suppression {
                id: ids.next_at(now),
                organization_id,
                email_hash,
                unsubscribe_group_id: None,
                source: SuppressionSource::Bounce,
                created_at: now,
            };
            let inserted = store::insert(&mut *connection, &suppression).await;
            if inserted.map_err(fault)? {
                new.push(email_hash);
            }
        }
        added.push((organization_id, new));
    }
    let mut counted = Vec::new();
    for (organization_id, new) in added.into_iter().filter(|(_, new)| !new.is_empty()) {
        let state = store::count_added(&mut *connection, organization_id, new.len()).await?;
        counted.push((organization_id, state, new));
    }
    Ok(Added(counted))
}

impl Added {
    /// Lets the filters know that it was committed.
    pub async fn confirm(self, filters: &Filters) {
        for (organization_id, state, hashes) in self.0 {
            filters.confirm(organization_id, state, &hashes).await;
        }
    }
}

fn by_organization(bounced: &[Bounced]) -> BTreeMap<OrganizationId, Vec<AddressHash>> {
    let mut grouped: BTreeMap<OrganizationId, Vec<AddressHash>> = BTreeMap::new();
    for (organization_id, hash) in bounced {
        grouped.entry(*organization_id).or_default().push(*hash);
    }
    for hashes in grouped.values_mut() {
        hashes.sort_unstable();
        hashes.dedup();
    }
    grouped
}

/// Without a group only a fault refuses.
fn fault(refusal: SuppressionRefusal) -> Fault {
    match refusal {
        SuppressionRefusal::Fault(fault) => fault,
        SuppressionRefusal::NotFound
        | SuppressionRefusal::Exists
        | SuppressionRefusal::UnknownGroup => Fault::internal(
            "suppress a bounced address",
            "a suppression without a group was refused",
        ),
    }
}
