//! Organizations in Postgres.

use sqlx::{PgConnection, query, query_as};

use super::settings::{OrganizationSettings, SettingsChange};
use super::{Organization, UnverifiedDomains};
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::OrganizationId;
use crate::text::Name;

/// Adds an organization.
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

/// An organization and how much it has, for the operator.
#[derive(Debug)]
pub struct ListedOrganization {
    pub id: OrganizationId,
    pub name: String,
    pub created_at: Timestamp,
    /// API keys that are neither revoked nor expired.
    pub api_keys: i64,
    pub members: i64,
    /// Active provider accounts.
    pub provider_accounts: i64,
    /// Jobs whose mail is not sent yet.
    pub jobs: i64,
}

/// All organizations, the oldest first, or only one.
pub async fn list(
    connection: &mut PgConnection,
    only: Option<OrganizationId>,
) -> Result<Vec<ListedOrganization>, Fault> {
    query_as!(
        ListedOrganization,
        r#"SELECT o.id AS "id: OrganizationId", o.name, o.created_at,
                  (SELECT count(*) FROM api_keys k
                   WHERE k.organization_id = o.id AND k.revoked_at IS NULL
                     AND (k.expires_at IS NULL OR k.expires_at > now())) AS "api_keys!",
                  (SELECT count(*) FROM memberships m WHERE m.organization_id = o.id) AS "members!",
                  (SELECT count(*) FROM provider_accounts a
                   WHERE a.organization_id = o.id AND a.is_active) AS "provider_accounts!",
                  (SELECT count(*) FROM outbox j WHERE j.organization_id = o.id) AS "jobs!"
           FROM organizations o
           WHERE $1::uuid IS NULL OR o.id = $1
           ORDER BY o.created_at, o.id"#,
        only.map(|id| id.0),
    )
    .fetch_all(connection)
    .await
    .or_fault("list organizations")
}

/// The settings of an organization; `None` if there is no such organization.
pub async fn find_settings(
    connection: &mut PgConnection,
    id: OrganizationId,
) -> Result<Option<OrganizationSettings>, Fault> {
    let row = query_as!(
        SettingsRow,
        "SELECT name, brand_color, unverified_domains, track_opens, track_clicks, retention_days, send_per_second,
                other_per_second, soft_bounce_limit, soft_bounce_window_days
         FROM organizations
         WHERE id = $1",
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find the settings")?;
    Ok(row.map(OrganizationSettings::from))
}

/// Changes settings and returns all of them; `None` if there is no such organization.
pub async fn update_settings(
    connection: &mut PgConnection,
    id: OrganizationId,
    change: &SettingsChange,
) -> Result<Option<OrganizationSettings>, Fault> {
    let row = query_as!(
        SettingsRow,
        "UPDATE organizations
         SET unverified_domains = coalesce($2, unverified_domains),
             track_opens = coalesce($3, track_opens),
             track_clicks = coalesce($4, track_clicks),
             retention_days = CASE WHEN $5 THEN $6 ELSE retention_days END,
             send_per_second = CASE WHEN $7 THEN $8 ELSE send_per_second END,
             other_per_second = CASE WHEN $9 THEN $10 ELSE other_per_second END,
             soft_bounce_limit = coalesce($11, soft_bounce_limit),
             soft_bounce_window_days = coalesce($12, soft_bounce_window_days),
             name = coalesce($13, name),
             brand_color = CASE WHEN $14 THEN $15 ELSE brand_color END
         WHERE id = $1
         RETURNING name, brand_color, unverified_domains, track_opens, track_clicks, retention_days, send_per_second,
                   other_per_second, soft_bounce_limit, soft_bounce_window_days",
        id.0,
        change.unverified_domains.map(UnverifiedDomains::as_str),
        change.track_opens,
        change.track_clicks,
        change.retention_days.is_some(),
        stored(change.retention_days),
        change.send_per_second.is_some(),
        stored(change.send_per_second),
        change.other_per_second.is_some(),
        stored(change.other_per_second),
        stored(Some(change.soft_bounce_limit)),
        stored(Some(change.soft_bounce_window_days)),
        change.name.as_ref().map(Name::as_str),
        change.brand_color.is_some(),
        change.brand_color.flatten().map(|color| color.to_string()),
    )
    .fetch_optional(connection)
    .await
    .or_fault("change the settings")?;
    Ok(row.map(OrganizationSettings::from))
}

/// Locks an organization until the transaction ends. For changes that would otherwise lock
/// records of the organization in different orders and could deadlock.
pub async fn lock(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
) -> Result<(), Fault> {
    query!(
        "SELECT id FROM organizations WHERE id = $1 FOR NO KEY UPDATE",
        organization_id.0
    )
    .fetch_optional(connection)
    .await
    .or_fault("lock an organization")?;
    Ok(())
}

struct SettingsRow {
    name: String,
    brand_color: Option<String>,
    unverified_domains: String,
    track_opens: bool,
    track_clicks: bool,
    retention_days: Option<i32>,
    send_per_second: Option<i32>,
    other_per_second: Option<i32>,
    soft_bounce_limit: i32,
    soft_bounce_window_days: i32,
}

impl From<SettingsRow> for OrganizationSettings {
    fn from(row: SettingsRow) -> Self {
        let number = |stored: Option<i32>| stored.and_then(|number| u32::try_from(number).ok());
        Self {
            name: row.name,
            brand_color: row.brand_color.and_then(|text| text.parse().ok()),
            unverified_domains: UnverifiedDomains::parse(&row.unverified_domains)
                .unwrap_or(UnverifiedDomains::Reject),
            track_opens: row.track_opens,
            track_clicks: row.track_clicks,
            retention_days: number(row.retention_days),
            send_per_second: number(row.send_per_second),
            other_per_second: number(row.other_per_second),
            soft_bounce_limit: number(Some(row.soft_bounce_limit)).unwrap_or_default(),
            soft_bounce_window_days: number(Some(row.soft_bounce_window_days)).unwrap_or_default(),
        }
    }
}

/// A number as stored in its column.
fn stored(wanted: Option<Option<u32>>) -> Option<i32> {
    wanted
        .flatten()
        .map(|number| i32::try_from(number).unwrap_or(i32::MAX))
}
