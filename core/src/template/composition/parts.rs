//! Reads the layout and the partials that a version needs, before it is built.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::super::TemplateRefusal;
use super::super::catalog::Templates;
use super::build::{Built, Sources, VersionParts};
use super::compose::{DEPTH_MAX, Partials, TemplatePart};
use super::{Composing, store};
use crate::db::PgConnection;
use crate::fault::Fault;
use crate::issue::Issue;
use crate::text::locale::Locale;

/// Partials in one version.
const PARTIALS_MAX: usize = 50;
/// Bytes of the sources of the parts of one version.
const PARTS_BYTES_MAX: usize = 8 << 20;
/// Bytes of the parts that a transaction keeps in memory, roughly.
const CACHE_BYTES_MAX: usize = 32 << 20;

/// The parts that a transaction has read, by language.
#[derive(Default)]
pub(super) struct PartCache {
    partials: HashMap<Option<String>, Partials>,
    bytes: usize,
}

impl PartCache {
    /// The partials of a language that were read.
    fn of(&mut self, locale: Option<&String>) -> &mut Partials {
        self.partials.entry(locale.cloned()).or_default()
    }
}

impl Templates {
    /// Builds a version with the parts that it needs.
    pub(super) async fn build_with_parts(
        &self,
        connection: &mut PgConnection,
        composing: Composing,
        sources: Sources,
        cache: &mut PartCache,
    ) -> Result<Built, TemplateRefusal> {
        let locales: Vec<String> = match sources.locale.as_deref().map(Locale::parse) {
            Some(Ok(locale)) => locale.fallbacks().map(str::to_owned).collect(),
            Some(Err(_)) | None => Vec::new(),
        };
        let organization_id = composing.organization_id;
        let mut parts = VersionParts::default();
        if let Some(layout_id) = sources.layout_id {
            let found =
                store::find_parts(connection, organization_id, Some(layout_id), &[], &locales);
            let layout = found.await?.pop().ok_or(TemplateRefusal::UnknownLayout)?;
            parts.layout = Some(Arc::new(layout));
        }
        if cache.bytes > CACHE_BYTES_MAX {
            *cache = PartCache::default();
        }
        let mut names = self.names(composing, &sources, &parts).await?;
        let mut needed: HashSet<String> = HashSet::new();
        // Each step goes one partial deeper; deeper ones are refused when they are composed.
        for _ in 0..=DEPTH_MAX {
            names.retain(|name| needed.insert(name.clone()));
            if names.is_empty() {
                break;
            }
            if needed.len() > PARTIALS_MAX {
                return Err(too_many_parts());
            }
            let known = cache.of(sources.locale.as_ref());
            let missing: Vec<String> = names
                .iter()
                .filter(|name| !known.contains_key(*name))
                .cloned()
                .collect();
            let found =
                store::find_parts(connection, organization_id, None, &missing, &locales).await?;
            cache.bytes += found.iter().map(TemplatePart::bytes).sum::<usize>();
            let known = cache.of(sources.locale.as_ref());
            known.extend(
                found
                    .into_iter()
                    .map(|part| (part.name.clone(), Arc::new(part))),
            );
            let added: Vec<Arc<TemplatePart>> = names
                .iter()
                .filter_map(|name| known.get(name))
                .cloned()
                .collect();
            names = self.names_of(composing, added).await?;
        }
        let known = cache.of(sources.locale.as_ref()).iter();
        let known = known.filter(|(name, _)| needed.contains(*name));
        let partials: Partials = known
            .map(|(name, part)| (name.clone(), Arc::clone(part)))
            .collect();
        if partials.values().map(|part| part.bytes()).sum::<usize>() > PARTS_BYTES_MAX {
            return Err(too_many_parts());
        }
        parts.partials = Arc::new(partials);
        self.build(composing, sources, Vec::new(), parts).await
    }

    /// The names of the partials in a version and its layout.
    async fn names(
        &self,
        composing: Composing,
        sources: &Sources,
        parts: &VersionParts,
    ) -> Result<Vec<String>, Fault> {
        let (sources, layout) = (sources.clone(), parts.layout.clone());
        let work = move || {
            let mut names = sources.names();
            names.extend(layout.iter().flat_map(|layout| layout.names()));
            names
        };
        let Composing {
            organization_id,
            deadline,
        } = composing;
        self.render_pool()
            .run(organization_id, deadline, work)
            .await
    }

    async fn names_of(
        &self,
        composing: Composing,
        parts: Vec<Arc<TemplatePart>>,
    ) -> Result<Vec<String>, Fault> {
        let work = move || parts.iter().flat_map(|part| part.names()).collect();
        let Composing {
            organization_id,
            deadline,
        } = composing;
        self.render_pool()
            .run(organization_id, deadline, work)
            .await
    }
}

fn too_many_parts() -> TemplateRefusal {
    let text = format!(
        "includes more than {PARTIALS_MAX} partials, or partials of more than {} MiB",
        PARTS_BYTES_MAX >> 20
    );
    TemplateRefusal::Invalid(vec![Issue::new("htmlContent", text)])
}
