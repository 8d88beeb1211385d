//! Templates and their versions in Postgres.

use sqlx::{PgConnection, query, query_as, query_scalar};

use super::{CurrentVersion, Template, TemplateType, TemplateVersion, VersionSummary};
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{OrganizationId, TemplateId, TemplateVersionId};
use crate::page::{Page, PageRequest, Place};

/// Inserts a template without a version. False if a partial of its name exists.
pub async fn insert(connection: &mut PgConnection, template: &Template) -> Result<bool, Fault> {
    let done = query!(
        "INSERT INTO templates (id, organization_id, type, name, description, tags, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (organization_id, name) WHERE type = 'PARTIAL' DO NOTHING",
        template.id.0,
        template.organization_id.0,
        template.template_type as TemplateType,
        template.name,
        template.description,
        &template.tags,
        template.created_at,
        template.updated_at,
    )
    .execute(connection)
    .await
    .or_fault("add a template")?;
    Ok(done.rows_affected() == 1)
}

/// Lists a page of an organization's templates, newest first.
pub async fn list(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    page: PageRequest,
) -> Result<Page<Template>, Fault> {
    let rows = query_as!(
        Template,
        r#"SELECT id AS "id: TemplateId", organization_id AS "organization_id: OrganizationId",
                  type AS "template_type: TemplateType", name, description, tags,
                  current_version_id AS "current_version_id: TemplateVersionId",
                  created_at, updated_at
           FROM templates
           WHERE organization_id = $1
             AND ($4::timestamptz IS NULL OR (created_at, id) < ($4, $5::uuid))
           ORDER BY created_at DESC, id DESC
           LIMIT $2 OFFSET $3"#,
        organization_id.0,
        page.rows(),
        page.offset(),
        page.place().map(|place| place.at),
        page.place().map(|place| place.id),
    )
    .fetch_all(&mut *connection)
    .await
    .or_fault("list templates")?;
    let total = query_scalar!(
        r#"SELECT count(*) AS "count!"
           FROM templates
           WHERE organization_id = $1"#,
        organization_id.0,
    )
    .fetch_one(connection)
    .await
    .or_fault("count templates")?;
    let total = u64::try_from(total).unwrap_or_default();
    Ok(Page::of(rows, page, total, |last| Place {
        at: last.created_at,
        id: last.id.0,
    }))
}

/// Finds a template.
pub async fn find(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: TemplateId,
) -> Result<Option<Template>, Fault> {
    query_as!(
        Template,
        r#"SELECT id AS "id: TemplateId", organization_id AS "organization_id: OrganizationId",
                  type AS "template_type: TemplateType", name, description, tags,
                  current_version_id AS "current_version_id: TemplateVersionId",
                  created_at, updated_at
           FROM templates
           WHERE organization_id = $1 AND id = $2"#,
        organization_id.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a template")
}

/// The changed columns of a template. Columns that are `None` stay unchanged.
#[derive(Debug, Default)]
pub struct ColumnChange {
    pub name: Option<String>,
    /// `Some(None)` removes the description.
    pub description: Option<Option<String>>,
    pub tags: Option<Vec<String>>,
}

/// Changes a template and returns it. `None` if it does not exist.
pub async fn update(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: TemplateId,
    change: &ColumnChange,
    now: Timestamp,
) -> Result<Option<Template>, Fault> {
    query_as!(
        Template,
        r#"UPDATE templates
           SET name = coalesce($3, name),
               description = CASE WHEN $4 THEN $7 ELSE description END,
               tags = coalesce($5, tags),
               updated_at = $6
           WHERE organization_id = $1 AND id = $2
           RETURNING id AS "id: TemplateId", organization_id AS "organization_id: OrganizationId",
                     type AS "template_type: TemplateType", name, description, tags,
                  current_version_id AS "current_version_id: TemplateVersionId",
                     created_at, updated_at"#,
        organization_id.0,
        id.0,
        change.name,
        change.description.is_some(),
        change.tags.as_deref(),
        now,
        change.description.as_ref().and_then(Option::as_deref),
    )
    .fetch_optional(connection)
    .await
    .or_fault("change a template")
}

/// Deletes a template with its versions. False if it does not exist.
pub async fn delete(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: TemplateId,
) -> Result<bool, Fault> {
    let done = query!(
        "DELETE FROM templates WHERE organization_id = $1 AND id = $2",
        organization_id.0,
        id.0,
    )
    .execute(connection)
    .await
    .or_fault("delete a template")?;
    Ok(done.rows_affected() == 1)
}

/// Increments a template's version count and returns the new number. `None` if the template
/// does not exist. Locks the template until the transaction ends, so that concurrent callers
/// get consecutive numbers.
pub async fn next_version_number(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: TemplateId,
) -> Result<Option<i32>, Fault> {
    query_scalar!(
        "UPDATE templates
         SET version_count = version_count + 1
         WHERE organization_id = $1 AND id = $2
         RETURNING version_count",
        organization_id.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("number a template version")
}

/// Inserts a version without making it current.
pub async fn insert_version(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    version: &TemplateVersion,
) -> Result<(), Fault> {
    query!(
        "INSERT INTO template_versions
             (id, organization_id, template_id, version_number, locale, subject, preheader, from_mailbox, reply_to,
              layout_id, mjml_source, html_content, html_source, text_content, text_source, is_text_generated,
              variables_schema, created_by, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)",
        version.id.0,
        organization_id.0,
        version.template_id.0,
        version.version_number,
        version.locale,
        version.subject,
        version.preheader,
        version.from_mailbox,
        &version.reply_to,
        version.layout_id.map(|id| id.0),
        version.mjml_source,
        version.html_content,
        version.html_source,
        version.text_content,
        version.text_source,
        version.is_text_generated,
        version.variables_schema,
        version.created_by,
        version.created_at,
    )
    .execute(connection)
    .await
    .or_fault("add a template version")?;
    Ok(())
}

/// Makes a version the current one of its language. Returns its number and the number of
/// languages that have a current version, besides the default. `None` if the template has no
/// such version.
pub async fn make_current(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: TemplateId,
    version_id: TemplateVersionId,
    now: Timestamp,
) -> Result<Option<(i32, i64)>, Fault> {
    let made = query!(
        r#"WITH version AS (
               SELECT v.id, v.template_id, v.version_number, v.locale
               FROM template_versions v
               WHERE v.organization_id = $1 AND v.template_id = $2 AND v.id = $3
           ), updated AS (
               UPDATE templates t
               SET current_version_id = CASE WHEN version.locale IS NULL THEN version.id ELSE t.current_version_id END,
                   updated_at = $4
               FROM version
               WHERE t.organization_id = $1 AND t.id = $2
               RETURNING version.version_number
           ), of_language AS (
               INSERT INTO template_locales (template_id, locale, version_id)
               SELECT template_id, locale, id
               FROM version
               WHERE locale IS NOT NULL
               ON CONFLICT (template_id, locale) DO UPDATE SET version_id = EXCLUDED.version_id
               RETURNING locale
           )
           SELECT updated.version_number,
                  (SELECT count(*) FROM template_locales l
                   WHERE l.template_id = $2 AND l.locale NOT IN (SELECT locale FROM of_language))
                  + (SELECT count(*) FROM of_language) AS "locales!"
           FROM updated"#,
        organization_id.0,
        id.0,
        version_id.0,
        now,
    )
    .fetch_optional(connection)
    .await
    .or_fault("make a template version current")?;
    Ok(made.map(|made| (made.version_number, made.locales)))
}

/// Lists a template's versions without their content, newest first.
pub async fn list_versions(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: TemplateId,
) -> Result<Vec<VersionSummary>, Fault> {
    query_as!(
        VersionSummary,
        r#"SELECT id AS "id: TemplateVersionId", template_id AS "template_id: TemplateId",
                  version_number, locale, created_by, created_at
           FROM template_versions
           WHERE organization_id = $1 AND template_id = $2
           ORDER BY version_number DESC"#,
        organization_id.0,
        id.0,
    )
    .fetch_all(connection)
    .await
    .or_fault("list template versions")
}

/// Lists the current versions of a template, that of the default language first.
pub async fn list_current(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: TemplateId,
) -> Result<Vec<CurrentVersion>, Fault> {
    query_as!(
        CurrentVersion,
        r#"SELECT v.locale, v.id AS "version_id: TemplateVersionId", v.version_number, v.composition
           FROM (
               SELECT current_version_id AS version_id
               FROM templates
               WHERE organization_id = $1 AND id = $2
               UNION ALL
               SELECT version_id
               FROM template_locales
               WHERE template_id = $2
           ) current
           JOIN template_versions v ON v.id = current.version_id
           WHERE v.organization_id = $1
           ORDER BY v.locale NULLS FIRST"#,
        organization_id.0,
        id.0,
    )
    .fetch_all(connection)
    .await
    .or_fault("list the current versions of a template")
}

/// The type of a template. `None` if it does not exist.
pub async fn find_type(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: TemplateId,
) -> Result<Option<TemplateType>, Fault> {
    query_scalar!(
        r#"SELECT type AS "template_type: TemplateType"
           FROM templates
           WHERE organization_id = $1 AND id = $2"#,
        organization_id.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a template")
}

/// Whether the organization has a partial of this name.
pub async fn has_partial(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    name: &str,
) -> Result<bool, Fault> {
    query_scalar!(
        r#"SELECT EXISTS (
               SELECT FROM templates WHERE organization_id = $1 AND name = $2 AND type = 'PARTIAL'
           ) AS "exists!""#,
        organization_id.0,
        name,
    )
    .fetch_one(connection)
    .await
    .or_fault("find a partial")
}

/// How often a version was composed again. `None` if the template has no such version.
pub async fn find_composition(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: TemplateId,
    version_id: TemplateVersionId,
) -> Result<Option<i32>, Fault> {
    query_scalar!(
        "SELECT composition
         FROM template_versions
         WHERE organization_id = $1 AND template_id = $2 AND id = $3",
        organization_id.0,
        id.0,
        version_id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a template version")
}

/// Finds a version of a template.
pub async fn find_version(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: TemplateId,
    version_id: TemplateVersionId,
) -> Result<Option<TemplateVersion>, Fault> {
    query_as!(
        TemplateVersion,
        r#"SELECT id AS "id: TemplateVersionId", template_id AS "template_id: TemplateId",
                  version_number, locale, subject, preheader, from_mailbox, reply_to,
                  layout_id AS "layout_id: TemplateId", mjml_source, html_content, html_source, text_content,
                  text_source, is_text_generated, composition, variables_schema, created_by, created_at
           FROM template_versions
           WHERE organization_id = $1 AND template_id = $2 AND id = $3"#,
        organization_id.0,
        id.0,
        version_id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a template version")
}
