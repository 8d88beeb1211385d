//! Organizations in Postgres.

use sqlx::{PgConnection, query};

use super::{Organization, UnverifiedDomains};
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::OrganizationId;

/// Adds an organization.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn insert(
    connection: &mut PgConnection,
    organization: &Organization,
) -> Result<(), Fault> {
    query!(
        "INSERT INTO organizations (id, name, unverified_domains, created_at)
         VALUES ($1, $2, $3, $4)",
        organization.id.0,
        organization.name,
        organization.unverified_domains.as_str(),
        organization.created_at,
    )
    .execute(connection)
    .await
    .or_fault("add an organization")?;
    Ok(())
}

/// One organization.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn find(
    connection: &mut PgConnection,
    id: OrganizationId,
) -> Result<Option<Organization>, Fault> {
    let row = query!(
        "SELECT name, unverified_domains, created_at
         FROM organizations
         WHERE id = $1",
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find an organization")?;
    Ok(row.map(|row| Organization {
        id,
        name: row.name,
        unverified_domains: UnverifiedDomains::parse(&row.unverified_domains)
            .unwrap_or(UnverifiedDomains::Reject),
        created_at: row.created_at,
    }))
}
