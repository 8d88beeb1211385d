//! What earlier imports made: which object here stands for which object there.

pub mod store;

use crate::db::{OrFault, PgPool};
use crate::fault::Fault;
use crate::ids::{OrganizationId, TemplateId};

use super::ImportSource;

/// The kinds of objects that are remembered. Suppressions and domains need no memory: they are
/// found by their address and name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type)]
#[sqlx(type_name = "imported_kind", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ImportedKind {
    Template,
    WebhookEndpoint,
}

/// The template that was imported from the one with this id or alias at the vendor. `None` if
/// there is none, or if it was deleted.
///
/// # Errors
/// A fault if Postgres is unreachable.
pub async fn find_template(
    pool: &PgPool,
    organization_id: OrganizationId,
    vendor: ImportSource,
    vendor_id: &str,
) -> Result<Option<TemplateId>, Fault> {
    // Postgres has no such text.
    if vendor_id.contains('\0') {
        return Ok(None);
    }
    let mut connection = pool.acquire().await.or_fault("find an imported template")?;
    store::find_template(&mut connection, organization_id, vendor, vendor_id).await
}
