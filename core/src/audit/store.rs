//! The audit log in Postgres.

use sqlx::{PgConnection, query, query_as, query_scalar};
use uuid::Uuid;

use super::{AuditChange, AuditEntry, Origin};
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{Ids, OrganizationId};
use crate::page::{Page, PageRequest, Place};

/// Inserts one entry. Runs in the transaction of the change.
pub async fn insert(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    origin: &Origin,
    change: &AuditChange,
    ids: &Ids,
    now: Timestamp,
) -> Result<(), Fault> {
    let (actor_id, actor_name) = origin.actor.identity().unzip();
    query!(
        "INSERT INTO audit_logs
             (id, organization_id, action, occurred_at, actor_type, actor_id, actor_name,
              target_type, target_id, ip, user_agent, request_id, metadata)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
        ids.next_at::<Uuid>(now),
        organization_id.0,
        change.action,
        now,
        origin.actor.kind(),
        actor_id,
        actor_name,
        change.target_type,
        change.target_id,
        origin.ip,
        origin.user_agent,
        origin.request_id,
        change.metadata,
    )
    .execute(connection)
    .await
    .or_fault("write the audit log")?;
    Ok(())
}

/// Inserts one entry for each change of one origin, with one statement. Runs in the
/// transaction of the changes.
pub async fn insert_all(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    origin: &Origin,
    changes: &[AuditChange],
    ids: &Ids,
    now: Timestamp,
) -> Result<(), Fault> {
    let (actor_id, actor_name) = origin.actor.identity().unzip();
    let column =
        |pick: fn(&AuditChange) -> &'static str| changes.iter().map(pick).collect::<Vec<_>>();
    let entry_ids: Vec<Uuid> = changes.iter().map(|_| ids.next_at(now)).collect();
    let targets: Vec<Uuid> = changes.iter().map(|change| change.target_id).collect();
    let metadata: Vec<serde_json::Value> = changes
        .iter()
        .map(|change| change.metadata.clone())
        .collect();
    query!(
        "INSERT INTO audit_logs
             (id, organization_id, action, occurred_at, actor_type, actor_id, actor_name,
              target_type, target_id, ip, user_agent, request_id, metadata)
         SELECT id, $1, action, $2, $3, $4, $5, target_type, target_id, $6, $7, $8, metadata
         FROM UNNEST($9::uuid[], $10::text[], $11::text[], $12::uuid[], $13::jsonb[])
           AS c (id, action, target_type, target_id, metadata)",
        organization_id.0,
        now,
        origin.actor.kind(),
        actor_id,
        actor_name,
        origin.ip,
        origin.user_agent,
        origin.request_id,
        &entry_ids,
        &column(|change| change.action) as &[&str],
        &column(|change| change.target_type) as &[&str],
        &targets,
        &metadata,
    )
    .execute(connection)
    .await
    .or_fault("write the audit log")?;
    Ok(())
}

/// Inserts entries of several organizations and origins, with one statement.
pub async fn insert_mixed(
    connection: &mut PgConnection,
    entries: &[(OrganizationId, &Origin, AuditChange)],
    ids: &Ids,
    now: Timestamp,
) -> Result<(), Fault> {
    let actors = entries
        .iter()
        .map(|(_, origin, _)| origin.actor.identity().unzip());
    let (actor_ids, actor_names): (Vec<Option<Uuid>>, Vec<Option<&str>>) = actors.unzip();
    let origins = || entries.iter().map(|(_, origin, _)| *origin);
    let changes = || entries.iter().map(|(_, _, change)| change);
    let entry_ids: Vec<Uuid> = entries.iter().map(|_| ids.next_at(now)).collect();
    let text = |pick: fn(&Origin) -> Option<&str>| origins().map(pick).collect::<Vec<_>>();
    query!(
        "INSERT INTO audit_logs
             (id, organization_id, action, occurred_at, actor_type, actor_id, actor_name,
              target_type, target_id, ip, user_agent, request_id, metadata)
         SELECT id, organization_id, action, $1, actor_type, actor_id, actor_name,
                target_type, target_id, ip, user_agent, request_id, metadata
         FROM UNNEST($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::uuid[], $7::text[],
                     $8::text[], $9::uuid[], $10::text[], $11::text[], $12::text[], $13::jsonb[])
           AS c (id, organization_id, action, actor_type, actor_id, actor_name,
                 target_type, target_id, ip, user_agent, request_id, metadata)",
        now,
        &entry_ids,
        &entries.iter().map(|(of, _, _)| of.0).collect::<Vec<_>>(),
        &changes().map(|change| change.action).collect::<Vec<_>>() as &[&str],
        &origins()
            .map(|origin| origin.actor.kind())
            .collect::<Vec<_>>() as &[&str],
        &actor_ids as &[Option<Uuid>],
        &actor_names as &[Option<&str>],
        &changes()
            .map(|change| change.target_type)
            .collect::<Vec<_>>() as &[&str],
        &changes().map(|change| change.target_id).collect::<Vec<_>>(),
        &text(|origin| origin.ip.as_deref()) as &[Option<&str>],
        &text(|origin| origin.user_agent.as_deref()) as &[Option<&str>],
        &origins()
            .map(|origin| origin.request_id.as_str())
            .collect::<Vec<_>>() as &[&str],
        &changes()
            .map(|change| change.metadata.clone())
            .collect::<Vec<_>>(),
    )
    .execute(connection)
    .await
    .or_fault("write the audit log")?;
    Ok(())
}

/// A filter of entries. `None` matches all.
#[derive(Debug, Clone, Default)]
pub struct EntryFilter {
    pub action: Option<String>,
    pub target_type: Option<String>,
    pub target_id: Option<Uuid>,
    /// Inclusive.
    pub from: Option<Timestamp>,
    /// Exclusive.
    pub to: Option<Timestamp>,
}

/// A page of an organization's entries, newest first.
pub async fn list(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    filter: &EntryFilter,
    page: PageRequest,
) -> Result<Page<AuditEntry>, Fault> {
    let total = query_scalar!(
        r#"SELECT count(*) AS "count!"
         FROM audit_logs
         WHERE organization_id = $1
           AND ($2::text IS NULL OR action = $2)
           AND ($3::text IS NULL OR target_type = $3)
           AND ($4::uuid IS NULL OR target_id = $4)
           AND ($5::timestamptz IS NULL OR occurred_at >= $5)
           AND ($6::timestamptz IS NULL OR occurred_at < $6)"#,
        organization_id.0,
        filter.action,
        filter.target_type,
        filter.target_id,
        filter.from,
        filter.to,
    )
    .fetch_one(&mut *connection)
    .await
    .or_fault("count the audit log")?;
    let total = u64::try_from(total).unwrap_or_default();
    // Postgres reads all rows before the page: skip the query if the page is empty.
    if page.is_past_end(total) {
        return Ok(Page::empty(total));
    }
    let rows = query_as!(
        AuditEntry,
        "SELECT id, action, occurred_at, actor_type, actor_id, actor_name, target_type, target_id,
                ip, user_agent, request_id, metadata
         FROM audit_logs
         WHERE organization_id = $1
           AND ($2::text IS NULL OR action = $2)
           AND ($3::text IS NULL OR target_type = $3)
           AND ($4::uuid IS NULL OR target_id = $4)
           AND ($5::timestamptz IS NULL OR occurred_at >= $5)
           AND ($6::timestamptz IS NULL OR occurred_at < $6)
           AND ($9::timestamptz IS NULL OR (occurred_at, id) < ($9, $10::uuid))
         ORDER BY occurred_at DESC, id DESC
         LIMIT $7 OFFSET $8",
        organization_id.0,
        filter.action,
        filter.target_type,
        filter.target_id,
        filter.from,
        filter.to,
        page.rows(),
        page.offset(),
        page.place().map(|place| place.at),
        page.place().map(|place| place.id),
    )
    .fetch_all(connection)
    .await
    .or_fault("list the audit log")?;
    Ok(Page::of(rows, page, total, |last| Place {
        at: last.occurred_at,
        id: last.id,
    }))
}
