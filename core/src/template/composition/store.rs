//! Layouts and partials in Postgres: their current versions, and which versions they are in.

use sqlx::{PgConnection, query, query_as, query_scalar};
use uuid::Uuid;

use super::super::{PartRef, PartUser, TemplateType, TemplateVersion};
use super::build::Built;
use super::compose::TemplatePart;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{OrganizationId, TemplateId, TemplateVersionId};

/// Lets one transaction of an organization at a time compose versions or change parts, until
/// it ends. So no version is composed of parts that are being replaced.
pub(super) async fn lock(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
) -> Result<(), Fault> {
    query!(
        "SELECT pg_advisory_xact_lock(hashtextextended('template parts ' || $1::text, 0))",
        organization_id.to_string(),
    )
    .execute(connection)
    .await
    .or_fault("lock the parts of templates")?;
    Ok(())
}

/// Finds the layout and the partials of these names, in their current versions of the first
/// of these languages that they have, or else of the default. Those without such a version
/// are left out.
pub(super) async fn find_parts(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    layout_id: Option<TemplateId>,
    names: &[String],
    locales: &[String],
) -> Result<Vec<TemplatePart>, Fault> {
    query_as!(
        TemplatePart,
        r#"SELECT t.id AS "id: TemplateId", v.id AS "version_id: TemplateVersionId", v.version_number, t.name,
                  t.type AS "part_type: TemplateType", v.html_content AS html, v.mjml_source AS mjml,
                  v.text_content AS text
           FROM templates t
           CROSS JOIN LATERAL (
               SELECT candidate.version_id
               FROM (
                   SELECT l.version_id, array_position($5::text[], l.locale) AS place
                   FROM template_locales l
                   WHERE l.template_id = t.id AND l.locale = ANY($5)
                   UNION ALL
                   SELECT t.current_version_id, NULL
               ) candidate
               WHERE candidate.version_id IS NOT NULL
               ORDER BY candidate.place NULLS LAST
               LIMIT 1
           ) chosen
           JOIN template_versions v ON v.id = chosen.version_id
           WHERE t.organization_id = $1
             AND ((t.type = 'LAYOUT' AND t.id = $2) OR (t.type = 'PARTIAL' AND t.name = ANY($3)))
           LIMIT $4"#,
        organization_id.0,
        layout_id.map(|id| id.0),
        names,
        i64::try_from(names.len()).unwrap_or(i64::MAX).saturating_add(1),
        locales,
    )
    .fetch_all(connection)
    .await
    .or_fault("find the parts of a template")
}

/// Records the parts in a version, instead of those recorded before.
pub(super) async fn replace_uses(
    connection: &mut PgConnection,
    version_id: TemplateVersionId,
    parts: &[PartRef],
) -> Result<(), Fault> {
    query!(
        "DELETE FROM template_uses WHERE version_id = $1",
        version_id.0
    )
    .execute(&mut *connection)
    .await
    .or_fault("record the parts of a template")?;
    let ids: Vec<Uuid> = parts.iter().map(|part| part.template_id.0).collect();
    let versions: Vec<Uuid> = parts.iter().map(|part| part.version_id.0).collect();
    query!(
        "INSERT INTO template_uses (version_id, part_id, part_version_id)
         SELECT $1, part_id, part_version_id
         FROM unnest($2::uuid[], $3::uuid[]) AS parts (part_id, part_version_id)",
        version_id.0,
        &ids,
        &versions,
    )
    .execute(connection)
    .await
    .or_fault("record the parts of a template")?;
    Ok(())
}

/// The parts in a version.
pub async fn list_parts(
    connection: &mut PgConnection,
    version_id: TemplateVersionId,
) -> Result<Vec<PartRef>, Fault> {
    query_as!(
        PartRef,
        r#"SELECT t.id AS "template_id: TemplateId", t.type AS "part_type: TemplateType", t.name,
                  v.id AS "version_id: TemplateVersionId", v.version_number
           FROM template_uses u
           JOIN templates t ON t.id = u.part_id
           JOIN template_versions v ON v.id = u.part_version_id
           WHERE u.version_id = $1
           ORDER BY t.type, t.name, t.id"#,
        version_id.0,
    )
    .fetch_all(connection)
    .await
    .or_fault("list the parts of a template")
}

/// Lists up to `limit` current versions that a part is in, oldest first.
pub(super) async fn list_users(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    part_id: TemplateId,
    limit: i64,
) -> Result<Vec<PartUser>, Fault> {
    query_as!(
        PartUser,
        r#"SELECT t.id AS "template_id: TemplateId", t.type AS "template_type: TemplateType", t.name,
                  v.id AS "version_id: TemplateVersionId", v.version_number, v.locale
           FROM template_uses u
           JOIN template_versions v ON v.id = u.version_id
           JOIN templates t ON t.id = v.template_id
           WHERE u.part_id = $2 AND t.organization_id = $1
             AND (t.current_version_id = v.id
                  OR EXISTS (SELECT FROM template_locales l WHERE l.version_id = v.id))
           ORDER BY t.id, v.id
           LIMIT $3"#,
        organization_id.0,
        part_id.0,
        limit,
    )
    .fetch_all(connection)
    .await
    .or_fault("list what uses a part of templates")
}

/// Locks a version, so that it is not deleted before the transaction ends. False if it is
/// gone.
pub(super) async fn lock_version(
    connection: &mut PgConnection,
    version_id: TemplateVersionId,
) -> Result<bool, Fault> {
    let found = query_scalar!(
        "SELECT version_number FROM template_versions WHERE id = $1 FOR UPDATE",
        version_id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("lock a template version")?;
    Ok(found.is_some())
}

/// Replaces what is rendered of a version. What its author gave stays.
pub(super) async fn update_built(
    connection: &mut PgConnection,
    version: &TemplateVersion,
    built: &Built,
) -> Result<(), Fault> {
    query!(
        "UPDATE template_versions
         SET html_content = $2, html_source = $3, text_content = $4, text_source = $5,
             composition = composition + 1
         WHERE id = $1",
        version.id.0,
        built.html,
        version.html_source,
        built.text,
        version.text_source,
    )
    .execute(connection)
    .await
    .or_fault("compose a template version again")?;
    Ok(())
}
