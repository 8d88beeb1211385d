//! The templates of organizations: creating, changing and removing them, adding
//! versions, going back to one, looking at one rendered. How messages are filled
//! in from them is in `fill`.

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::compiled::{self, Compiled};
use super::render::{self, Rendered, VersionUse};
use super::render_pool::RenderPool;
use super::store::{self, ColumnChange};
use super::{
    NewTemplate, Template, TemplateChange, TemplateRefusal, TemplateVersion, VersionContent,
    VersionSummary,
};
use crate::audit::{self, Actor, AuditChange, Origin};
use crate::clock::Clock;
use crate::db::{self, OrFault, PgConnection, PgPool};
use crate::fault::Fault;
use crate::idempotency::single::{Failed, Idempotent};
use crate::ids::{Ids, OrganizationId, TemplateId, TemplateVersionId};
use crate::text::{Description, Name, Tag};
use crate::unsubscribe::link_insertion;

/// How long a request waits for its template.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Bytes of compiled versions that are kept, roughly.
const COMPILED_BYTES_MAX: u64 = 128 << 20;
/// How long a process may go by the current version that it remembers. A change
/// that it made itself it sees at once.
const CURRENT_MEMORY: Duration = Duration::from_secs(1);
/// Templates whose current version is remembered.
const CURRENT_MAX: u64 = 100_000;

/// Works on the templates of organizations. Cheap to clone; clones share what they
/// remember.
#[derive(Clone)]
pub struct Templates {
    pool: PgPool,
    clock: Clock,
    ids: Ids,
    workshop: RenderPool,
    current: Cache<(OrganizationId, TemplateId), TemplateVersionId>,
    compiled: Cache<TemplateVersionId, Arc<Compiled>>,
}

impl Templates {
    /// Works on the templates in `pool`.
    ///
    /// # Errors
    /// A fault when the system gives no thread.
    pub fn start(pool: PgPool, clock: Clock, ids: Ids) -> Result<Self, Fault> {
        Ok(Self {
            pool,
            clock,
            ids,
            workshop: RenderPool::start()?,
            current: Cache::builder()
                .max_capacity(CURRENT_MAX)
                .time_to_live(CURRENT_MEMORY)
                .build(),
            compiled: Cache::builder()
                .max_capacity(COMPILED_BYTES_MAX)
                .weigher(|_, version: &Arc<Compiled>| version.bytes())
                .build(),
        })
    }

    /// Creates a template. It has no version yet.
    ///
    /// # Errors
    /// Why it was not created.
    pub async fn create(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        new: NewTemplate,
        once: &Idempotent<'_, Template>,
    ) -> Result<Template, Failed<TemplateRefusal>> {
        let now = self.clock.now();
        let template = Template {
            id: self.ids.next_at(now),
            organization_id,
            name: new.name.into_string(),
            description: new.description.map(Description::into_string),
            tags: new.tags.into_iter().map(Tag::into_string).collect(),
            current_version_id: None,
            created_at: now,
            updated_at: now,
        };
        let mut transaction = once.begin(&self.pool, "create a template").await?;
        store::insert(&mut transaction, &template).await?;
        let change = AuditChange::new("template.created", template.id);
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        once.commit(transaction, &template, "create a template")
            .await?;
        Ok(template)
    }

    /// Changes a template's name, description or tags.
    ///
    /// # Errors
    /// Why it was not changed.
    pub async fn change(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: TemplateId,
        wanted: TemplateChange,
    ) -> Result<Template, TemplateRefusal> {
        let change =
            AuditChange::new("template.updated", id).with(json!({ "fields": wanted.fields() }));
        let columns = ColumnChange {
            name: wanted.name.map(Name::into_string),
            description: wanted
                .description
                .map(|given| given.map(Description::into_string)),
            tags: wanted
                .tags
                .map(|tags| tags.into_iter().map(Tag::into_string).collect()),
        };
        let mut transaction = db::begin(&self.pool, "change a template").await?;
        let now = self.clock.now();
        let template = store::update(&mut transaction, organization_id, id, &columns, now)
            .await?
            .ok_or(TemplateRefusal::NotFound)?;
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction.commit().await.or_fault("change a template")?;
        Ok(template)
    }

    /// Removes a template with all its versions. Messages that were rendered from
    /// it stay as they are.
    ///
    /// # Errors
    /// Why it was not removed.
    pub async fn remove(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: TemplateId,
    ) -> Result<(), TemplateRefusal> {
        let mut transaction = db::begin(&self.pool, "remove a template").await?;
        if !store::delete(&mut transaction, organization_id, id).await? {
            return Err(TemplateRefusal::NotFound);
        }
        let change = AuditChange::new("template.deleted", id);
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction.commit().await.or_fault("remove a template")?;
        self.current.invalidate(&(organization_id, id)).await;
        Ok(())
    }

    /// Adds a version, which becomes current.
    ///
    /// # Errors
    /// Why it was not added: the template is not there, or the content is wrong.
    pub async fn add_version(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: TemplateId,
        content: VersionContent,
        once: &Idempotent<'_, TemplateVersion>,
    ) -> Result<TemplateVersion, Failed<TemplateRefusal>> {
        let deadline = Instant::now() + WAIT_MAX;
        let content = self
            .workshop
            .run(organization_id, deadline, || compiled::check(content))
            .await?
            .map_err(TemplateRefusal::Invalid)?;
        let mut transaction = once.begin(&self.pool, "add a template version").await?;
        let version_number = store::next_version_number(&mut transaction, organization_id, id)
            .await?
            .ok_or(TemplateRefusal::NotFound)?;
        let now = self.clock.now();
        let version = TemplateVersion {
            id: self.ids.next_at(now),
            template_id: id,
            version_number,
            mjml_source: content.mjml_source,
            html_content: content.html_content,
            text_content: content.text_content,
            variables_schema: content.variables_schema,
            created_by: author(&origin.actor),
            created_at: now,
        };
        store::insert_version(&mut transaction, organization_id, &version).await?;
        store::make_current(&mut transaction, organization_id, id, version.id, now)
            .await?
            .ok_or(TemplateRefusal::VersionNotFound)?;
        let change = AuditChange::new("template.version_created", id)
            .with(json!({ "versionId": version.id, "versionNumber": version_number }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        once.commit(transaction, &version, "add a template version")
            .await?;
        self.current.invalidate(&(organization_id, id)).await;
        Ok(version)
    }

    /// Makes a version current that was so before, or was added later; answers its
    /// number.
    ///
    /// # Errors
    /// Why it was not done.
    pub async fn roll_back(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: TemplateId,
        version_id: TemplateVersionId,
    ) -> Result<i32, TemplateRefusal> {
        let mut transaction = db::begin(&self.pool, "roll a template back").await?;
        let now = self.clock.now();
        let number = store::make_current(&mut transaction, organization_id, id, version_id, now)
            .await?
            .ok_or(TemplateRefusal::VersionNotFound)?;
        let change = AuditChange::new("template.rolled_back", id)
            .with(json!({ "versionId": version_id, "versionNumber": number }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction
            .commit()
            .await
            .or_fault("roll a template back")?;
        self.current.invalidate(&(organization_id, id)).await;
        Ok(number)
    }

    /// A template's versions, newest first, and the template.
    ///
    /// # Errors
    /// Why there are none to show.
    pub async fn versions(
        &self,
        organization_id: OrganizationId,
        id: TemplateId,
    ) -> Result<(Template, Vec<VersionSummary>), TemplateRefusal> {
        let mut connection = self
            .pool
            .acquire()
            .await
            .or_fault("list template versions")?;
        let template = store::find(&mut connection, organization_id, id)
            .await?
            .ok_or(TemplateRefusal::NotFound)?;
        let versions = store::list_versions(&mut connection, organization_id, id).await?;
        Ok((template, versions))
    }

    /// Renders a version, the current one where none is named. The schema is not
    /// applied: a preview may be looked at before all variables are known. An example
    /// stands for the unsubscribe link.
    ///
    /// # Errors
    /// Why there is nothing to show.
    pub async fn preview(
        &self,
        organization_id: OrganizationId,
        id: TemplateId,
        version_id: Option<TemplateVersionId>,
        mut variables: Value,
    ) -> Result<Rendered, TemplateRefusal> {
        let mut connection = self.pool.acquire().await.or_fault("preview a template")?;
        let template = store::find(&mut connection, organization_id, id)
            .await?
            .ok_or(TemplateRefusal::NotFound)?;
        drop(connection);
        let version_id = version_id
            .or(template.current_version_id)
            .ok_or(TemplateRefusal::WithoutVersion)?;
        let deadline = Instant::now() + WAIT_MAX;
        let compiled = self
            .compiled(organization_id, id, version_id, deadline)
            .await?;
        if let Some(given) = variables.as_object_mut()
            && compiled.mentions(link_insertion::VARIABLE)
        {
            let link = given.entry(link_insertion::VARIABLE);
            link.or_insert_with(|| link_insertion::EXAMPLE_URL.into());
        }
        self.workshop
            .run(organization_id, deadline, move || {
                render::bodies(&compiled, &variables)
            })
            .await?
            .map_err(TemplateRefusal::Unrenderable)
    }

    /// The threads that render.
    pub(crate) fn render_pool(&self) -> &RenderPool {
        &self.workshop
    }

    /// When a request that comes now has waited long enough for its templates.
    pub(crate) fn deadline() -> Instant {
        Instant::now() + WAIT_MAX
    }

    /// A template's current version. What is remembered of it is used; that it has
    /// none is said only after a fresh look.
    pub(crate) async fn current(
        &self,
        organization_id: OrganizationId,
        id: TemplateId,
        deadline: Instant,
    ) -> Result<(Arc<Compiled>, VersionUse), TemplateRefusal> {
        let key = (organization_id, id);
        let version_id = match self.current.get(&key).await {
            Some(version_id) => version_id,
            None => {
                let mut connection = self.pool.acquire().await.or_fault("find a template")?;
                let template = store::find(&mut connection, organization_id, id)
                    .await?
                    .ok_or(TemplateRefusal::NotFound)?;
                let version_id = template
                    .current_version_id
                    .ok_or(TemplateRefusal::WithoutVersion)?;
                self.current.insert(key, version_id).await;
                version_id
            }
        };
        // It may have been removed a moment ago: a version that is gone is a
        // template that is gone, for whoever sends.
        let compiled = self
            .compiled(organization_id, id, version_id, deadline)
            .await?;
        let version = VersionUse {
            template_id: id,
            version_id,
        };
        Ok((compiled, version))
    }

    /// A version of a template, compiled now or earlier.
    ///
    /// # Errors
    /// Why it cannot be had.
    async fn compiled(
        &self,
        organization_id: OrganizationId,
        id: TemplateId,
        version_id: TemplateVersionId,
        deadline: Instant,
    ) -> Result<Arc<Compiled>, TemplateRefusal> {
        // A version that is remembered of another template is no version of this one.
        if let Some(found) = self.compiled.get(&version_id).await
            && found.belongs_to(organization_id, id)
        {
            return Ok(found);
        }
        let mut connection = self
            .pool
            .acquire()
            .await
            .or_fault("read a template version")?;
        let version = store::find_version(&mut connection, organization_id, id, version_id)
            .await?
            .ok_or(TemplateRefusal::VersionNotFound)?;
        drop(connection);
        let work = move || compiled::compile(organization_id, &version);
        let compiled = self.workshop.run(organization_id, deadline, work).await?;
        let compiled = compiled
            .map(Arc::new)
            // What an earlier release took may be refused by now.
            .map_err(TemplateRefusal::Unrenderable)?;
        self.compiled
            .insert(version_id, Arc::clone(&compiled))
            .await;
        Ok(compiled)
    }

    async fn record(
        &self,
        connection: &mut PgConnection,
        organization_id: OrganizationId,
        origin: &Origin,
        change: &AuditChange,
    ) -> Result<(), Fault> {
        let now = self.clock.now();
        audit::store::insert(connection, organization_id, origin, change, &self.ids, now).await
    }
}

/// Who a version was created by: the id of the caller's API key.
fn author(actor: &Actor) -> String {
    match actor {
        Actor::ApiKey { id, .. } => id.to_string(),
        Actor::Recipient | Actor::System => actor.kind().to_owned(),
    }
}
