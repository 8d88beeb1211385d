//! Imports suppressions: one statement for many addresses, duplicates are skipped.

use serde_json::json;

use super::{SuppressionRefusal, SuppressionSource, Suppressions, store};
use crate::address::AddressHash;
use crate::audit::{AuditChange, Origin};
use crate::clock::Timestamp;
use crate::idempotency::single::{Failed, Idempotent};
use crate::ids::{OrganizationId, ProviderAccountId, UnsubscribeGroupId};

/// Addresses of one import.
pub const IMPORT_MAX: usize = 10_000;

/// An address to be suppressed.
#[derive(Debug, Clone, Copy)]
pub struct ImportEntry {
    pub hash: AddressHash,
    pub source: SuppressionSource,
    /// Since when the address is suppressed elsewhere. `None` stands for the time of the
    /// import.
    pub created_at: Option<Timestamp>,
}

impl ImportEntry {
    /// An address of which nothing else is known.
    #[must_use]
    pub fn of(hash: AddressHash) -> Self {
        Self {
            hash,
            source: SuppressionSource::Import,
            created_at: None,
        }
    }
}

/// Where the addresses go, and where they come from.
#[derive(Debug, Clone, Copy, Default)]
pub struct ImportTarget {
    /// `None` suppresses the addresses for all mail of the organization.
    pub unsubscribe_group_id: Option<UnsubscribeGroupId>,
    /// The account whose provider listed them.
    pub provider_account_id: Option<ProviderAccountId>,
}

/// The result of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Imported {
    /// Newly suppressed addresses.
    pub imported: usize,
    /// Addresses that were already suppressed, and repetitions.
    pub skipped: usize,
}

impl Suppressions {
    /// Suppresses addresses. Those that are already suppressed, and repetitions, are skipped
    /// and counted; of repetitions the first counts.
    ///
    /// # Errors
    /// [`SuppressionRefusal`], or the answer that the idempotency key requires. Nothing is
    /// imported then.
    pub async fn import(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        entries: Vec<ImportEntry>,
        target: ImportTarget,
        once: &Idempotent<'_, Imported>,
    ) -> Result<Imported, Failed<SuppressionRefusal>> {
        let given = entries.len();
        let mut distinct = entries;
        // Every import inserts in the same order, so that imports that share addresses
        // cannot deadlock.
        distinct.sort_by_key(|entry| entry.hash);
        distinct.dedup_by_key(|entry| entry.hash);
        let hashes: Vec<AddressHash> = distinct.iter().map(|entry| entry.hash).collect();
        self.announce(organization_id, &hashes).await?;
        let now = self.clock.now();
        let ids: Vec<uuid::Uuid> = distinct.iter().map(|_| self.ids.next_at(now)).collect();
        let rows = store::ImportRows {
            ids: &ids,
            entries: &distinct,
            unsubscribe_group_id: target.unsubscribe_group_id,
        };
        let mut transaction = once.begin(&self.pool, "import suppressions").await?;
        let added = store::import(&mut transaction, organization_id, rows, now).await?;
        let result = Imported {
            imported: added.len(),
            skipped: given - added.len(),
        };
        let mut details = json!({
            "imported": result.imported,
            "skipped": result.skipped,
            "unsubscribeGroupId": target.unsubscribe_group_id,
        });
        if let Some(account) = target.provider_account_id {
            details["providerAccountId"] = json!(account);
        }
        let change = AuditChange::new("suppression.imported", self.ids.next_at::<uuid::Uuid>(now))
            .with(details);
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        let state = store::count_added(&mut transaction, organization_id, added.len()).await?;
        once.commit(transaction, &result, "import suppressions")
            .await?;
        self.filters.confirm(organization_id, state, &added).await;
        Ok(result)
    }
}
