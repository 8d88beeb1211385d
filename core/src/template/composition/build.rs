//! Builds what is rendered of a version from what its author gave and the parts in it: composes
//! the sources, compiles MJML, makes the text, and checks that all of it can be rendered. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::problem::Problem;
use super::super::{PartRef, TemplateType, TemplateVersion, TextSource};
use super::super::{VersionContent, mjml, plain_text, source};
use super::compose::{self, Composer, Partials, SourceMarkup, TemplatePart};
use crate::ids::TemplateId;
use crate::issue::Issue;

/// What the author of a version gave.
#[derive(Debug, Clone)]
pub(super) struct Sources {
    pub(super) template_type: TemplateType,
    pub(super) locale: Option<String>,
    pub(super) layout_id: Option<TemplateId>,
    pub(super) preheader: Option<String>,
    pub(super) html: String,
    pub(super) mjml: Option<String>,
    pub(super) text: TextSource,
}

/// What is in a version besides what its author gave.
#[derive(Debug, Clone, Default)]
pub(super) struct VersionParts {
    pub(super) layout: Option<Arc<TemplatePart>>,
    pub(super) partials: Arc<Partials>,
}

/// What is rendered of a version.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) html: String,
    pub(super) text: Option<String>,
    /// The parts in it.
    pub(super) parts: Vec<PartRef>,
}

impl Sources {
    pub(super) fn of_content(template_type: TemplateType, content: &VersionContent) -> Self {
        let text = match (&content.text, template_type) {
            // The text of a part is for the texts of templates alone.
            (TextSource::FromHtml, TemplateType::Layout | TemplateType::Partial) => {
                TextSource::None
            }
            (text, _) => text.clone(),
        };
        Self {
            template_type,
            locale: content.locale.as_ref().map(ToString::to_string),
            layout_id: content.layout_id,
            preheader: content.preheader.clone(),
            html: content.html_content.clone(),
            mjml: content.mjml_source.clone(),
            text,
        }
    }

    pub(super) fn of_version(template_type: TemplateType, version: TemplateVersion) -> Self {
        let text = match version.text_source.or(version.text_content) {
            _ if version.is_text_generated => TextSource::FromHtml,
            Some(text) => TextSource::Given(text),
            None => TextSource::None,
        };
        Self {
            template_type,
            locale: version.locale,
            layout_id: version.layout_id,
            preheader: version.preheader,
            html: version.html_source.unwrap_or(version.html_content),
            mjml: version.mjml_source,
            text,
        }
    }

    /// Whether layouts or partials may be in it.
    pub(super) fn may_have_parts(&self) -> bool {
        self.layout_id.is_some() || self.texts().any(compose::may_include)
    }

    /// The names of the partials in it.
    pub(super) fn names(&self) -> Vec<String> {
        self.texts().flat_map(compose::names_in).collect()
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        let text = match &self.text {
            TextSource::Given(text) => Some(text),
            TextSource::FromHtml | TextSource::None => None,
        };
        let body = self.mjml.as_ref().or(Some(&self.html));
        [body, text].into_iter().flatten().map(String::as_str)
    }

    fn markup(&self) -> SourceMarkup {
        match self.mjml {
            Some(_) => SourceMarkup::Mjml,
            None => SourceMarkup::Html,
        }
    }

    fn body(&self) -> (&'static str, &str) {
        match &self.mjml {
            Some(mjml) => ("mjmlSource", mjml),
            None => ("htmlContent", &self.html),
        }
    }
}

/// Builds a version.
///
/// # Errors
/// All issues of the sources.
pub(super) fn build(sources: &Sources, parts: &VersionParts) -> Result<Built, Vec<Issue>> {
    let mut used = BTreeMap::new();
    if let Some(layout) = &parts.layout {
        used.insert(layout.id, layout.reference());
    }
    let built = match sources.template_type {
        TemplateType::Template => build_template(sources, parts, &mut used),
        TemplateType::Layout | TemplateType::Partial => build_part(sources, parts, &mut used),
    };
    built.map(|(html, text)| Built {
        html,
        text,
        parts: used.into_values().collect(),
    })
}

type Used = BTreeMap<TemplateId, PartRef>;
type Bodies = (String, Option<String>);

fn build_template(
    sources: &Sources,
    parts: &VersionParts,
    used: &mut Used,
) -> Result<Bodies, Vec<Issue>> {
    let (path, _) = sources.body();
    let mut issues = Vec::new();
    let html = html_of(sources, parts, used);
    let html = html.map_err(|problem| issues.push(problem.issue(path)));
    let text = match (&sources.text, &html) {
        (TextSource::FromHtml, Ok((_, page))) => plain_text::of(page),
        (TextSource::FromHtml, Err(())) | (TextSource::None, _) => None,
        (TextSource::Given(text), _) => match text_of(text, parts, used) {
            Ok(text) => Some(text),
            Err(problem) => {
                issues.push(problem.issue("textContent"));
                None
            }
        },
    };
    match html {
        Ok((html, _)) if issues.is_empty() => Ok((html, text)),
        Ok(_) | Err(()) => Err(issues),
    }
}

/// The HTML of a template, with and without its preheader.
fn html_of(
    sources: &Sources,
    parts: &VersionParts,
    used: &mut Used,
) -> Result<(String, String), Problem> {
    let markup = sources.markup();
    let mut composer = Composer::new(&parts.partials, markup);
    let (_, own) = sources.body();
    let mut body = composer.source(own)?;
    if let Some(layout) = &parts.layout {
        let around = composer.source(layout.source(markup)?);
        let around = around.map_err(Problem::elsewhere)?;
        body = compose::wrap(&around, &body)?;
    }
    let is_composed = parts.layout.is_some() || composer.used().next().is_some();
    note(&composer, parts, used);
    let explain = |problem: Problem| match is_composed {
        true => format!("composed with its layout and partials, {problem}").into(),
        false => problem,
    };
    let page = match markup {
        SourceMarkup::Mjml => mjml::compile(&body).map_err(explain)?,
        SourceMarkup::Html | SourceMarkup::Text => body,
    };
    let html = match &sources.preheader {
        Some(preheader) => compose::insert_preheader(&page, preheader)?,
        None => page.clone(),
    };
    let explain = |problem: Problem| match (own_problem(own), markup) {
        (Some(own), _) => own,
        (None, SourceMarkup::Mjml) => {
            explain(format!("its HTML cannot be rendered: {problem}").into())
        }
        (None, SourceMarkup::Html | SourceMarkup::Text) => explain(problem),
    };
    source::parse(&html).map_err(explain)?;
    Ok((html, page))
}

/// The syntax error of what the author wrote, in a line that the author sees, if it has one
/// without its layout and partials and before MJML is compiled.
fn own_problem(own: &str) -> Option<Problem> {
    source::parse(&compose::without_partials(own)).err()
}

/// A given text with its partials, in the text of the layout if that has one.
fn text_of(own: &str, parts: &VersionParts, used: &mut Used) -> Result<String, Problem> {
    let mut composer = Composer::new(&parts.partials, SourceMarkup::Text);
    let mut text = composer.source(own)?;
    if let Some(around) = parts
        .layout
        .as_ref()
        .and_then(|layout| layout.text.as_ref())
    {
        let around = composer.source(around).map_err(Problem::elsewhere)?;
        text = compose::wrap(&around, &text)?;
    }
    note(&composer, parts, used);
    source::parse(&text).map_err(|problem| own_problem(own).unwrap_or(problem))?;
    Ok(text)
}

/// Checks a layout or partial as far as it can be checked alone. Its sources stay as they are.
fn build_part(
    sources: &Sources,
    parts: &VersionParts,
    used: &mut Used,
) -> Result<Bodies, Vec<Issue>> {
    let (path, body) = sources.body();
    let mut issues = Vec::new();
    let mut check = |path, source: &str, markup| {
        let checked = check_part(sources.template_type, source, markup, parts, used);
        issues.extend(checked.map_err(|problem| problem.issue(path)).err());
    };
    check(path, body, sources.markup());
    let text = match &sources.text {
        TextSource::Given(text) => {
            check("textContent", text, SourceMarkup::Text);
            Some(text.clone())
        }
        TextSource::FromHtml | TextSource::None => None,
    };
    let html = match sources.mjml {
        Some(_) => String::new(),
        None => sources.html.clone(),
    };
    if issues.is_empty() {
        Ok((html, text))
    } else {
        Err(issues)
    }
}

fn check_part(
    template_type: TemplateType,
    source: &str,
    markup: SourceMarkup,
    parts: &VersionParts,
    used: &mut Used,
) -> Result<(), Problem> {
    let places = compose::content_places(source);
    match template_type {
        TemplateType::Layout if places != 1 => {
            let text = format!(
                "must have {{{{{{@content}}}}}} exactly once, in the place of the content; it is there {places} times"
            );
            return Err(text.into());
        }
        TemplateType::Partial if places != 0 => {
            let text = "must not have {{{@content}}}, which is for layouts";
            return Err(text.to_owned().into());
        }
        TemplateType::Template | TemplateType::Layout | TemplateType::Partial => {}
    }
    // What a template with it alone would be: its blocks are closed within it.
    source::parse(&compose::without_partials(source))?;
    let mut composer = Composer::new(&parts.partials, markup);
    let composed = composer.source(source)?;
    note(&composer, parts, used);
    source::parse(&composed)?;
    if template_type == TemplateType::Layout && markup == SourceMarkup::Mjml {
        let html = mjml::compile(&composed)?;
        source::parse(&html)?;
    }
    Ok(())
}

fn note(composer: &Composer<'_>, parts: &VersionParts, used: &mut Used) {
    let found = composer.used().filter_map(|name| parts.partials.get(name));
    used.extend(found.map(|part| (part.id, part.reference())));
}
