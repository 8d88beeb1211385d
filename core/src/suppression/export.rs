//! Reads all suppressions of an organization, page by page, so that none of them is held in
//! memory for long. A suppression that is added meanwhile is not read.

use super::store::{self, RowRange, SuppressionFilter};
use super::{Suppression, Suppressions};
use crate::db::{self, OrFault};
use crate::fault::Fault;
use crate::ids::{OrganizationId, SuppressionId};

/// Suppressions of one page.
pub const PAGE_SIZE: usize = 1_000;

impl Suppressions {
    /// The newest suppressions that match and are older than `after`. Fewer than
    /// [`PAGE_SIZE`] are the last ones.
    ///
    /// # Errors
    /// A fault if Postgres is unavailable.
    pub async fn export_page(
        &self,
        organization_id: OrganizationId,
        filter: SuppressionFilter,
        after: Option<SuppressionId>,
    ) -> Result<Vec<Suppression>, Fault> {
        let doing = "export suppressions";
        let range = RowRange {
            below: after.map(|id| id.0),
            offset: 0,
            limit: PAGE_SIZE as i64,
        };
        db::bounded(doing, async {
            let mut connection = self.pool.acquire().await.or_fault(doing)?;
            store::list_rows(&mut connection, organization_id, filter, range).await
        })
        .await
    }
}
