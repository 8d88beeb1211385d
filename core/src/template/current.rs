//! Which version is rendered: the current one of the language that a message asks for, or a
//! given one. Compiled versions are cached by their id and their composition, since a changed
//! part changes what is rendered of them.

use std::sync::Arc;

use tokio::time::Instant;

use super::catalog::Templates;
use super::compiled::{self, CompiledVersion};
use super::render::VersionRef;
use super::{CurrentVersion, TemplateRefusal, TemplateType, store};
use crate::db::OrFault;
use crate::ids::{OrganizationId, TemplateId, TemplateVersionId};
use crate::text::locale::Locale;

/// The current versions of a template.
#[derive(Debug)]
pub(crate) struct CurrentVersions {
    pub(super) template_type: TemplateType,
    pub(super) versions: Vec<CurrentVersion>,
}

impl CurrentVersions {
    /// The version of a language: of the language itself, of the next less exact one, or of
    /// the default.
    fn choose(&self, locale: Option<&Locale>) -> Option<&CurrentVersion> {
        let of = |locale: Option<&str>| {
            let mut versions = self.versions.iter();
            versions.find(move |version| version.locale.as_deref() == locale)
        };
        let mut fallbacks = locale.into_iter().flat_map(Locale::fallbacks);
        fallbacks
            .find_map(|locale| of(Some(locale)))
            .or_else(|| of(None))
    }
}

/// Which version of a template is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionChoice {
    /// The current one of a language; `None` is the default.
    Current(Option<Locale>),
    Given(TemplateVersionId),
}

impl Templates {
    /// A version of a template, compiled. Only existing versions are cached: a missing
    /// template or version is looked up in Postgres each time.
    pub(crate) async fn version(
        &self,
        organization_id: OrganizationId,
        id: TemplateId,
        choice: &VersionChoice,
        deadline: Instant,
    ) -> Result<(Arc<CompiledVersion>, VersionRef), TemplateRefusal> {
        let current = self.current_versions(organization_id, id).await?;
        if current.template_type != TemplateType::Template {
            return Err(TemplateRefusal::IsPart);
        }
        let (version_id, composition) = match choice {
            VersionChoice::Current(locale) => {
                let version = current.choose(locale.as_ref());
                let version = version.ok_or(TemplateRefusal::WithoutVersion)?;
                (version.version_id, version.composition)
            }
            VersionChoice::Given(version_id) => {
                let mut connection = self.pool.acquire().await.or_fault("find a template")?;
                let found =
                    store::find_composition(&mut connection, organization_id, id, *version_id);
                let composition = found.await?.ok_or(TemplateRefusal::VersionNotFound)?;
                (*version_id, composition)
            }
        };
        // If the template was removed a moment ago, this returns VersionNotFound. The API
        // reports both to the sender as a missing template.
        let compiled = self
            .compiled(organization_id, id, (version_id, composition), deadline)
            .await?;
        let version = VersionRef {
            template_id: id,
            version_id,
        };
        Ok((compiled, version))
    }

    /// Whether the current version of the default language has a subject.
    ///
    /// # Errors
    /// The template is missing, has no version or is a part, or a fault.
    pub async fn has_subject(
        &self,
        organization_id: OrganizationId,
        id: TemplateId,
    ) -> Result<bool, TemplateRefusal> {
        let choice = VersionChoice::Current(None);
        let version = self.version(organization_id, id, &choice, Self::deadline());
        let (compiled, _) = version.await?;
        Ok(compiled.subject.is_some())
    }

    async fn current_versions(
        &self,
        organization_id: OrganizationId,
        id: TemplateId,
    ) -> Result<Arc<CurrentVersions>, TemplateRefusal> {
        let key = (organization_id, id);
        if let Some(current) = self.current.get(&key).await {
            return Ok(current);
        }
        let mut connection = self.pool.acquire().await.or_fault("find a template")?;
        let template_type = store::find_type(&mut connection, organization_id, id)
            .await?
            .ok_or(TemplateRefusal::NotFound)?;
        let versions = store::list_current(&mut connection, organization_id, id).await?;
        let current = Arc::new(CurrentVersions {
            template_type,
            versions,
        });
        if !current.versions.is_empty() {
            self.current.insert(key, Arc::clone(&current)).await;
        }
        Ok(current)
    }

    /// Forgets the current versions of templates that this process has changed.
    pub(super) async fn forget_current(
        &self,
        organization_id: OrganizationId,
        ids: impl IntoIterator<Item = TemplateId>,
    ) {
        for id in ids {
            self.current.invalidate(&(organization_id, id)).await;
        }
    }

    /// A compiled version from the cache, or compiled now.
    async fn compiled(
        &self,
        organization_id: OrganizationId,
        id: TemplateId,
        key: (TemplateVersionId, i32),
        deadline: Instant,
    ) -> Result<Arc<CompiledVersion>, TemplateRefusal> {
        // The cache key has neither organization nor template, so check them.
        if let Some(compiled) = self.compiled.get(&key).await
            && compiled.belongs_to(organization_id, id)
        {
            return Ok(compiled);
        }
        let mut connection = self
            .pool
            .acquire()
            .await
            .or_fault("read a template version")?;
        let version = store::find_version(&mut connection, organization_id, id, key.0)
            .await?
            .ok_or(TemplateRefusal::VersionNotFound)?;
        drop(connection);
        // It may have been composed again since.
        let key = (version.id, version.composition);
        let work = move || compiled::compile(organization_id, &version);
        let compiled = self
            .render_pool()
            .run(organization_id, deadline, work)
            .await?;
        let compiled = compiled
            .map(Arc::new)
            // An earlier release may have accepted a version that this one refuses.
            .map_err(TemplateRefusal::Unrenderable)?;
        self.compiled.insert(key, Arc::clone(&compiled)).await;
        Ok(compiled)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_language_falls_back_to_the_less_exact_ones_and_the_default() {
        let current = |locales: &[Option<&str>]| CurrentVersions {
            template_type: TemplateType::Template,
            versions: (1..)
                .zip(locales)
                .map(|(version_number, locale)| CurrentVersion {
                    locale: locale.map(str::to_owned),
                    version_id: Uuid::nil().into(),
                    version_number,
                    composition: 0,
                })
                .collect(),
        };
        let all = current(&[
            Some("de"),
            Some("zh-Hant"),
            None,
            Some("de-AT"),
            Some("pt-BR"),
        ]);
        let none = current(&[Some("de")]);
        for (locale, of_all, of_none) in [
            ("de-AT", Some(4), Some(1)),
            ("de-CH", Some(1), Some(1)),
            ("de", Some(1), Some(1)),
            ("zh-Hant-TW", Some(2), None),
            ("zh-Hans", Some(3), None),
            ("pt", Some(3), None),
            ("fr", Some(3), None),
        ] {
            let locale = Locale::parse(locale).unwrap();
            let chosen = |current: &CurrentVersions| {
                current
                    .choose(Some(&locale))
                    .map(|version| version.version_number)
            };
            assert_eq!((chosen(&all), chosen(&none)), (of_all, of_none), "{locale}");
        }
        assert_eq!(
            all.choose(None).map(|version| version.version_number),
            Some(3)
        );
        assert!(none.choose(None).is_none());
    }
}
