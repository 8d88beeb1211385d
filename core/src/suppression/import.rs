//! Imports suppressions: one statement for many addresses, duplicates are skipped.

use serde_json::json;

use super::{SuppressionRefusal, Suppressions, store};
use crate::address::AddressHash;
use crate::audit::{AuditChange, Origin};
use crate::idempotency::single::{Failed, Idempotent};
use crate::ids::{OrganizationId, UnsubscribeGroupId};

/// Addresses of one import.
pub const IMPORT_MAX: usize = 10_000;

/// The result of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Imported {
    /// Newly suppressed addresses.
    pub imported: usize,
    /// Addresses that were already suppressed, and repetitions.
    pub skipped: usize,
}

impl Suppressions {
    /// Suppresses addresses in a group or for all mail. Addresses that are already
    /// suppressed, and repetitions, are skipped and counted.
    ///
    /// # Errors
    /// [`SuppressionRefusal`], or the answer that the idempotency key requires. Nothing is
    /// imported then.
    pub async fn import(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        hashes: Vec<AddressHash>,
        unsubscribe_group_id: Option<UnsubscribeGroupId>,
        once: &Idempotent<'_, Imported>,
    ) -> Result<Imported, Failed<SuppressionRefusal>> {
        let given = hashes.len();
        let mut distinct = hashes;
        // Every import inserts in the same order, so that imports that share addresses
        // cannot deadlock.
        distinct.sort_unstable();
        distinct.dedup();
        self.announce(organization_id, &distinct).await?;
        let now = self.clock.now();
        let ids: Vec<uuid::Uuid> = distinct.iter().map(|_| self.ids.next_at(now)).collect();
        let rows = store::ImportRows {
            ids: &ids,
            hashes: &distinct,
            unsubscribe_group_id,
        };
        let mut transaction = once.begin(&self.pool, "import suppressions").await?;
        let added = store::import(&mut transaction, organization_id, rows, now).await?;
        let result = Imported {
            imported: added.len(),
            skipped: given - added.len(),
        };
        let change = AuditChange::new("suppression.imported", self.ids.next_at::<uuid::Uuid>(now))
            .with(json!({
                "imported": result.imported,
                "skipped": result.skipped,
                "unsubscribeGroupId": unsubscribe_group_id,
            }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        let state = store::count_added(&mut transaction, organization_id, added.len()).await?;
        once.commit(transaction, &result, "import suppressions")
            .await?;
        self.filters.confirm(organization_id, state, &added).await;
        Ok(result)
    }
}
