//! Removes the suppressions of many addresses at once.

mod store;

use serde_json::json;
use uuid::Uuid;

use super::{SuppressionRefusal, Suppressions};
use crate::address::AddressHash;
use crate::audit::{AuditChange, Origin};
use crate::idempotency::single::{Failed, Idempotent};
use crate::ids::{OrganizationId, UnsubscribeGroupId};

/// The result of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removed {
    /// Suppressions that were removed.
    pub removed: usize,
    /// Addresses that were not suppressed, and repetitions.
    pub not_found: usize,
}

impl Suppressions {
    /// Removes the suppressions that addresses have in a group, or for all mail if there is
    /// no group. Other suppressions of the addresses stay.
    ///
    /// # Errors
    /// [`SuppressionRefusal`], or the answer that the idempotency key requires. Nothing is
    /// removed then.
    pub async fn remove_many(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        hashes: &[AddressHash],
        group_id: Option<UnsubscribeGroupId>,
        once: &Idempotent<'_, Removed>,
    ) -> Result<Removed, Failed<SuppressionRefusal>> {
        let doing = "remove suppressions";
        let now = self.clock.now();
        let mut transaction = once.begin(&self.pool, doing).await?;
        if let Some(group_id) = group_id
            && !store::has_group(&mut transaction, organization_id, group_id).await?
        {
            return Err(SuppressionRefusal::UnknownGroup.into());
        }
        let removed =
            store::delete_many(&mut transaction, organization_id, hashes, group_id).await?;
        let result = Removed {
            removed,
            not_found: hashes.len() - removed,
        };
        let change =
            AuditChange::new("suppression.removed", self.ids.next_at::<Uuid>(now)).with(json!({
                "removed": result.removed,
                "notFound": result.not_found,
                "unsubscribeGroupId": group_id,
            }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        // Last: it locks the organization's filter state until the transaction ends.
        super::store::count_deleted(&mut transaction, organization_id, removed as u64).await?;
        once.commit(transaction, &result, doing).await?;
        Ok(result)
    }
}
