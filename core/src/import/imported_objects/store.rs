//! Imported objects in Postgres.

use sqlx::{PgConnection, query, query_as, query_scalar};
use uuid::Uuid;

use super::ImportedKind;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{OrganizationId, TemplateId};
use crate::import::ImportSource;

/// An object at a vendor.
#[derive(Debug, Clone, Copy)]
pub struct ObjectKey<'a> {
    pub vendor: ImportSource,
    pub kind: ImportedKind,
    pub vendor_id: &'a str,
}

/// The object here that stands for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedObject {
    pub id: Uuid,
    /// `None` until its import is complete.
    pub fingerprint: Option<Vec<u8>>,
}

/// Finds the template that was imported from another one, unless it was deleted.
pub async fn find_template(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    vendor: ImportSource,
    vendor_id: &str,
) -> Result<Option<TemplateId>, Fault> {
    query_scalar!(
        r#"SELECT t.id AS "id: TemplateId"
           FROM imported_objects o
           JOIN templates t ON t.organization_id = o.organization_id AND t.id = o.id
           WHERE o.organization_id = $1 AND o.vendor = $2 AND o.kind = 'TEMPLATE'
             AND o.vendor_id = $3"#,
        organization_id.0,
        vendor as ImportSource,
        vendor_id,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find an imported template")
}

/// Finds what was imported from an object.
pub async fn find(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    key: ObjectKey<'_>,
) -> Result<Option<ImportedObject>, Fault> {
    query_as!(
        ImportedObject,
        r#"SELECT id, fingerprint
           FROM imported_objects
           WHERE organization_id = $1 AND vendor = $2 AND kind = $3 AND vendor_id = $4"#,
        organization_id.0,
        key.vendor as ImportSource,
        key.kind as ImportedKind,
        key.vendor_id,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find an imported object")
}

/// Records what was imported from an object, in place of what was recorded before.
pub async fn put(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    key: ObjectKey<'_>,
    imported: &ImportedObject,
    now: Timestamp,
) -> Result<(), Fault> {
    query!(
        "INSERT INTO imported_objects
             (organization_id, vendor, kind, vendor_id, id, fingerprint, imported_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (organization_id, vendor, kind, vendor_id) DO UPDATE
         SET id = excluded.id, fingerprint = excluded.fingerprint,
             imported_at = excluded.imported_at",
        organization_id.0,
        key.vendor as ImportSource,
        key.kind as ImportedKind,
        key.vendor_id,
        imported.id,
        imported.fingerprint,
        now,
    )
    .execute(connection)
    .await
    .or_fault("record an imported object")?;
    Ok(())
}
