//! Templates: translated, checked as a version that somebody creates is, and recorded.

use serde_json::json;

use super::Import;
use super::imported_objects::store::{self as objects, ImportedObject, ObjectKey};
use super::imported_objects::{self, ImportedKind};
use super::report::{ImportAction, ImportSection, ImportedEntry};
use super::translation::{Translated, TranslatedText, translate};
use super::vendor::ReadResult;
use crate::address::Mailbox;
use crate::audit::Actor;
use crate::db::{self, OrFault};
use crate::fault::Fault;
use crate::idempotency::single::{Failed, Idempotent};
use crate::ids::TemplateId;
use crate::organization;
use crate::provider::inventory::StoredTemplate;
use crate::template::{
    NewTemplate, SOURCE_BYTES_MAX, Template, TemplateRefusal, TemplateType, TemplateVersion,
    TextSource, VersionContent, store,
};
use crate::text::{Name, Subject};

/// A template at the vendor with its translation, ready to be stored.
struct Ready {
    stored: StoredTemplate,
    content: VersionContent,
    fingerprint: Vec<u8>,
}

/// What is here of a template at the vendor.
struct Here {
    template: Template,
    fingerprint: Option<Vec<u8>>,
    /// The current version of the default language.
    version: Option<TemplateVersion>,
}

impl Import<'_> {
    pub(super) async fn templates(&self, section: &mut ImportSection) -> Result<(), Fault> {
        let listed = match self.reader.templates().await {
            Ok(listed) => listed,
            Err(problem) => {
                section.problem = Some(problem);
                return Ok(());
            }
        };
        for template in listed {
            match self.reader.template(&template.id).await {
                Ok(ReadResult::Found(stored)) => {
                    let entry = self.template(stored).await?;
                    section.entries.push(entry);
                }
                Ok(ReadResult::Missing | ReadResult::NotOffered(_)) => {
                    section.entries.push(ImportedEntry {
                        vendor_id: template.id,
                        name: one_line(&template.name),
                        action: ImportAction::LeftOut,
                        id: None,
                        notes: vec!["it was removed there while the list was read".to_owned()],
                    });
                }
                Err(problem) => {
                    section.problem = Some(format!("template {}: {problem}", template.id));
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    async fn template(&self, stored: StoredTemplate) -> Result<ImportedEntry, Fault> {
        let mut entry = ImportedEntry {
            vendor_id: stored.id.clone(),
            name: one_line(&stored.name),
            action: ImportAction::LeftOut,
            id: None,
            notes: stored.notes.clone(),
        };
        let here = self.find_here(&stored.id).await?;
        entry.id = here.as_ref().map(|here| here.template.id.0);
        let ready = match translate(self.job.source, &stored) {
            Ok(translated) => self.prepare(stored, translated, &mut entry).await?,
            Err(problems) => {
                let problems = problems.iter().map(ToString::to_string);
                entry.notes.extend(problems);
                None
            }
        };
        let Some(ready) = ready else {
            if here.is_some() {
                entry
                    .notes
                    .push("what was imported before stays".to_owned());
            }
            return Ok(entry);
        };
        match here {
            Some(here) => self.update(here, ready, entry).await,
            None => self.create(ready, entry).await,
        }
    }

    /// The content of the version. `None` if it breaks a rule, which the entry then names.
    async fn prepare(
        &self,
        stored: StoredTemplate,
        translated: Translated,
        entry: &mut ImportedEntry,
    ) -> Result<Option<Ready>, Fault> {
        let fingerprint = translated.fingerprint(&stored);
        let notes = &mut entry.notes;
        let before = notes.len();
        let subject = translated.subject.map(Subject::parse).transpose();
        let subject = subject.unwrap_or_else(|error| {
            notes.push(format!("subject: it {error}"));
            None
        });
        for (part, source) in [
            ("HTML", Some(&translated.html)),
            ("text", given(&translated.text)),
        ] {
            let bytes = source.map_or(0, String::len);
            if bytes > SOURCE_BYTES_MAX || source.is_some_and(|source| source.contains('\0')) {
                notes.push(format!(
                    "{part}: it is longer than 1 MiB or has NUL characters"
                ));
            }
        }
        let mut layout_id = None;
        if let Some(alias) = &stored.layout {
            let (pool, organization_id) = (&self.importer.pool, self.job.organization_id);
            let source = self.job.source;
            layout_id =
                imported_objects::find_template(pool, organization_id, source, alias).await?;
            if layout_id.is_none() && !self.job.is_dry_run {
                notes.push(format!("its layout {} is not imported", one_line(alias)));
            }
        }
        if notes.len() > before {
            return Ok(None);
        }
        let content = VersionContent {
            subject,
            preheader: None,
            from: stored
                .from
                .as_deref()
                .and_then(|from| mailbox(from, "sender", notes)),
            reply_to: stored
                .reply_to
                .iter()
                .flat_map(|all| all.split(','))
                .filter_map(|one| mailbox(one.trim(), "address for replies", notes))
                .collect(),
            locale: None,
            layout_id,
            mjml_source: None,
            html_content: translated.html,
            text: match translated.text {
                TranslatedText::FromHtml => TextSource::FromHtml,
                TranslatedText::None => TextSource::None,
                TranslatedText::Given(text) => TextSource::Given(text),
            },
            variables_schema: translated.schema,
        };
        let ready = Ready {
            stored,
            content,
            fingerprint,
        };
        Ok(self.check(&ready, notes).await?.then_some(ready))
    }

    /// Whether the content can become a version. Nothing is stored. A layout is checked when
    /// its version is made.
    async fn check(&self, ready: &Ready, notes: &mut Vec<String>) -> Result<bool, Fault> {
        if ready.stored.is_layout {
            return Ok(true);
        }
        let now = self.importer.accounts.clock.now();
        let template = Template {
            id: self.importer.accounts.ids.next_at(now),
            organization_id: self.job.organization_id,
            template_type: TemplateType::Template,
            name: String::new(),
            description: None,
            tags: Vec::new(),
            current_version_id: None,
            created_at: now,
            updated_at: now,
        };
        let (templates, origin) = (&self.importer.templates, &self.job.origin);
        let content = ready.content.clone();
        let checking = templates.preview_draft(origin, &template, content, json!({}));
        match Box::pin(checking).await {
            Ok(_) => Ok(true),
            Err(refusal) => {
                notes.extend(sentences(refusal)?);
                Ok(false)
            }
        }
    }

    fn key<'k>(&self, vendor_id: &'k str) -> ObjectKey<'k> {
        ObjectKey {
            vendor: self.job.source,
            kind: ImportedKind::Template,
            vendor_id,
        }
    }

    async fn find_here(&self, vendor_id: &str) -> Result<Option<Here>, Fault> {
        let connection = self.importer.pool.acquire().await;
        let mut connection = connection.or_fault("find an imported template")?;
        let organization_id = self.job.organization_id;
        let key = self.key(vendor_id);
        let Some(object) = objects::find(&mut connection, organization_id, key).await? else {
            return Ok(None);
        };
        let id = TemplateId(object.id);
        let found = store::find(&mut connection, organization_id, id).await?;
        let Some(template) = found else {
            return Ok(None);
        };
        let version = match template.current_version_id {
            Some(version_id) => {
                store::find_version(&mut connection, organization_id, id, version_id).await?
            }
            None => None,
        };
        Ok(Some(Here {
            template,
            fingerprint: object.fingerprint,
            version,
        }))
    }

    async fn update(
        &self,
        here: Here,
        ready: Ready,
        mut entry: ImportedEntry,
    ) -> Result<ImportedEntry, Fault> {
        entry.action = match (&here.fingerprint, &here.version) {
            (Some(fingerprint), _) if *fingerprint == ready.fingerprint => ImportAction::Unchanged,
            // The version was made, and the process ended before that was recorded.
            (_, Some(version)) if is_same(version, &ready.content) => ImportAction::Unchanged,
            (Some(_), Some(version)) if version.created_by != Actor::System.kind() => {
                ImportAction::Kept
            }
            (None, _) => ImportAction::Imported,
            (Some(_), _) => ImportAction::Updated,
        };
        match entry.action {
            ImportAction::Kept => {
                let note = "it changed both there and here; the version here stays";
                entry.notes.push(note.to_owned());
                Ok(entry)
            }
            ImportAction::Unchanged if here.fingerprint.as_ref() == Some(&ready.fingerprint) => {
                self.record_alias(&here.template, &ready).await?;
                Ok(entry)
            }
            ImportAction::Unchanged => {
                self.record(&here.template, &ready).await?;
                Ok(entry)
            }
            ImportAction::Imported | ImportAction::Updated | ImportAction::LeftOut => {
                self.add_version(here.template, ready, entry).await
            }
        }
    }

    /// Creates the template, with its row of imported objects in the same transaction.
    async fn create(&self, ready: Ready, mut entry: ImportedEntry) -> Result<ImportedEntry, Fault> {
        entry.action = ImportAction::Imported;
        if self.job.is_dry_run {
            return Ok(entry);
        }
        let importer = self.importer;
        let organization_id = self.job.organization_id;
        let name = name_of(&ready.stored, &mut entry.notes);
        let new = NewTemplate {
            name,
            template_type: match ready.stored.is_layout {
                true => TemplateType::Layout,
                false => TemplateType::Template,
            },
            description: None,
            tags: Vec::new(),
        };
        let doing = "import a template";
        let mut transaction = db::begin(&importer.pool, doing).await?;
        // Two imports at once make one template.
        organization::store::lock(&mut transaction, organization_id).await?;
        let key = self.key(&ready.stored.id);
        if let Some(object) = objects::find(&mut transaction, organization_id, key).await?
            && store::find(&mut transaction, organization_id, TemplateId(object.id))
                .await?
                .is_some()
        {
            entry.action = ImportAction::Unchanged;
            entry.id = Some(object.id);
            return Ok(entry);
        }
        let templates = &importer.templates;
        let creating =
            templates.create_in(&mut transaction, organization_id, &self.job.origin, new);
        let template = match creating.await {
            Ok(template) => template,
            Err(refusal) => {
                entry.notes.extend(sentences(refusal)?);
                entry.action = ImportAction::LeftOut;
                return Ok(entry);
            }
        };
        let object = ImportedObject {
            id: template.id.0,
            fingerprint: None,
        };
        let now = template.created_at;
        objects::put(&mut transaction, organization_id, key, &object, now).await?;
        transaction.commit().await.or_fault(doing)?;
        let id = template.id;
        let entry = self.add_version(template, ready, entry).await?;
        if entry.action == ImportAction::LeftOut {
            // A template without a version is of no use.
            let removing = templates.remove(organization_id, &self.job.origin, id);
            if let Err(TemplateRefusal::Fault(fault)) = removing.await {
                return Err(fault);
            }
        }
        Ok(entry)
    }

    async fn add_version(
        &self,
        template: Template,
        ready: Ready,
        mut entry: ImportedEntry,
    ) -> Result<ImportedEntry, Fault> {
        if self.job.is_dry_run {
            return Ok(entry);
        }
        let once = Idempotent::without_key();
        let (templates, origin) = (&self.importer.templates, &self.job.origin);
        let content = ready.content.clone();
        let adding = templates.add_version(origin, &template, content, &once);
        match Box::pin(adding).await {
            Ok(_) => {}
            Err(Failed::Refused(refusal)) => {
                entry.notes.extend(sentences(refusal)?);
                entry.action = ImportAction::LeftOut;
                return Ok(entry);
            }
            Err(Failed::Repeat(_)) => {
                return Err(Fault::internal("import a template", "there is no key"));
            }
        }
        self.record(&template, &ready).await?;
        entry.id = Some(template.id.0);
        Ok(entry)
    }

    /// Records that the import of a template is complete.
    async fn record(&self, template: &Template, ready: &Ready) -> Result<(), Fault> {
        if self.job.is_dry_run {
            return Ok(());
        }
        let object = ImportedObject {
            id: template.id.0,
            fingerprint: Some(ready.fingerprint.clone()),
        };
        let connection = self.importer.pool.acquire().await;
        let mut connection = connection.or_fault("record an imported object")?;
        let now = self.importer.accounts.clock.now();
        let key = self.key(&ready.stored.id);
        objects::put(&mut connection, self.job.organization_id, key, &object, now).await?;
        drop(connection);
        self.record_alias(template, ready).await
    }

    /// Records the second name, if it stands for another template or for none.
    async fn record_alias(&self, template: &Template, ready: &Ready) -> Result<(), Fault> {
        let Some(alias) = ready
            .stored
            .alias
            .as_deref()
            .filter(|_| !self.job.is_dry_run)
        else {
            return Ok(());
        };
        let (organization_id, key) = (self.job.organization_id, self.key(alias));
        let connection = self.importer.pool.acquire().await;
        let mut connection = connection.or_fault("record an imported object")?;
        let known = objects::find(&mut connection, organization_id, key).await?;
        if known.is_some_and(|known| known.id == template.id.0) {
            return Ok(());
        }
        let object = ImportedObject {
            id: template.id.0,
            fingerprint: Some(ready.fingerprint.clone()),
        };
        let now = self.importer.accounts.clock.now();
        objects::put(&mut connection, organization_id, key, &object, now).await
    }
}

fn given(text: &TranslatedText) -> Option<&String> {
    match text {
        TranslatedText::Given(text) => Some(text),
        TranslatedText::FromHtml | TranslatedText::None => None,
    }
}

/// Whether a version has this content.
fn is_same(version: &TemplateVersion, content: &VersionContent) -> bool {
    let html = version
        .html_source
        .as_ref()
        .unwrap_or(&version.html_content);
    let text = version
        .text_source
        .as_ref()
        .or(version.text_content.as_ref());
    let has_text = match &content.text {
        TextSource::FromHtml => version.is_text_generated,
        TextSource::None => version.text_content.is_none(),
        TextSource::Given(given) => !version.is_text_generated && text == Some(given),
    };
    let from = content.from.as_ref().map(Mailbox::to_header);
    let reply_to: Vec<String> = content.reply_to.iter().map(Mailbox::to_header).collect();
    *html == content.html_content
        && has_text
        && version.subject.as_deref() == content.subject.as_ref().map(Subject::as_str)
        && version.from_mailbox == from
        && version.reply_to == reply_to
        && version.layout_id == content.layout_id
        && version.variables_schema == content.variables_schema
}

/// An address of a template. One that is none is left out, and noted.
fn mailbox(text: &str, role: &str, notes: &mut Vec<String>) -> Option<Mailbox> {
    match Mailbox::parse(text) {
        Ok(mailbox) => Some(mailbox),
        Err(_) => {
            notes.push(format!(
                "its {role} is no address and is left out: give one in each send"
            ));
            None
        }
    }
}

/// The name here: that at the vendor, on one line and within its length.
fn name_of(stored: &StoredTemplate, notes: &mut Vec<String>) -> Name {
    let mut name: String = one_line(&stored.name);
    if name.is_empty() {
        name = one_line(&stored.id);
    }
    let name: String = name.chars().take(Name::CHARS_MAX).collect();
    if name != stored.name {
        notes.push("its name is changed to one that a template can have".to_owned());
    }
    Name::parse(name).unwrap_or_else(|_| {
        Name::parse("Imported template".to_owned()).expect("the name keeps the rules")
    })
}

/// A text of the vendor on one line, without characters that a terminal interprets.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split(|c: char| c.is_control() || c == ' ').collect();
    let words = words.into_iter().filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// Why a template was refused. A fault stays one.
fn sentences(refusal: TemplateRefusal) -> Result<Vec<String>, Fault> {
    Ok(match refusal {
        TemplateRefusal::Invalid(issues) => {
            let issues = issues.into_iter();
            issues
                .map(|issue| format!("{}: {}", issue.path, issue.message))
                .collect()
        }
        TemplateRefusal::Unrenderable(reason) => vec![format!("the template {reason}")],
        TemplateRefusal::UnknownLayout => vec!["its layout is not here".to_owned()],
        TemplateRefusal::NotComposable { name, problem, .. } => {
            vec![format!("the template {name} cannot take it: {problem}")]
        }
        TemplateRefusal::TooManyUses => vec!["too many templates use it".to_owned()],
        TemplateRefusal::Fault(fault) => return Err(fault),
        TemplateRefusal::NotFound
        | TemplateRefusal::VersionNotFound
        | TemplateRefusal::WithoutVersion
        | TemplateRefusal::IsPart
        | TemplateRefusal::NameTaken
        | TemplateRefusal::InUse => vec!["it was changed here meanwhile; import again".to_owned()],
    })
}
