//! Attributes that are written into the HTML once it is compiled: those of
//! `mj-html-attributes`, and the rules of an `mj-style` that is to be inlined. Only the
//! opening tags that change are written anew.

use std::collections::HashMap;

use super::markup::{self, Kind};
use super::selector::{Candidate, Selector, Steps};
use crate::text::css::split;

/// Elements that never have content.
const VOID: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];
/// Elements that no rule is written into.
const UNSEEN: [&str; 8] = [
    "head", "title", "base", "link", "style", "meta", "script", "noscript",
];
/// Elements whose attributes repeat some of their style.
const TABLE: [&str; 10] = [
    "table", "th", "tr", "td", "caption", "colgroup", "col", "thead", "tbody", "tfoot",
];
/// The same of its width and height.
const SIZED: [&str; 4] = ["table", "td", "th", "img"];
/// Tests of elements, as [`Steps`] counts them: 400 selectors against 4,000 elements of
/// five attributes. They take 0.2 s.
const STEPS_MAX: usize = 10_000_000;
/// Bytes that are written into tags, and attributes.
const BYTES_MAX: usize = 4 << 20;
const ATTRIBUTES_MAX: usize = 100_000;
/// Attributes that one element may get.
const ATTRIBUTES_OF_ONE_MAX: usize = 100;

/// What is wrong where that is not enough.
fn too_much(selectors: usize, elements: usize) -> String {
    format!("too many selectors ({selectors}) for so many elements of HTML ({elements})")
}

/// The attributes that are added, by selector.
type Selected<'a> = (&'a str, Vec<(&'a str, &'a str)>);

/// Writes attributes into the elements that selectors name.
///
/// # Errors
/// What is wrong with the selectors.
pub(super) fn html_attributes(html: String, wanted: &[Selected<'_>]) -> Result<String, String> {
    if wanted.is_empty() {
        return Ok(html);
    }
    let document = Document::read(&html);
    let mut steps = Steps(STEPS_MAX);
    let mut changes = Changes::default();
    let too_much = || too_much(wanted.len(), document.all.len());
    for (path, attributes) in wanted {
        for part in path.split(',') {
            let part = part.trim();
            let selector = Selector::parse(part)
                .ok_or_else(|| format!("the selector {part} of mj-html-attributes is not known"))?;
            for at in 0..document.all.len() {
                let selects = selector.selects(&document.all, at, &mut steps);
                for (name, value) in attributes.iter().filter(|_| selects == Some(true)) {
                    let set = changes.set(at, name, (*value).to_owned());
                    set.ok_or_else(too_much)?;
                }
                selects.ok_or_else(too_much)?;
            }
        }
    }
    Ok(document.changed(&html, &changes))
}

/// Writes rules into the style attributes of the elements that they select.
///
/// # Errors
/// That there are too many.
pub(super) fn inline_styles(html: String, styles: &[&str]) -> Result<String, String> {
    if styles.is_empty() {
        return Ok(html);
    }
    let css = without_comments(&styles.concat());
    let mut rules = rules(&css);
    rules.sort_by_key(|(selector, _)| selector.weight);
    let document = Document::read(&html);
    let mut steps = Steps(STEPS_MAX);
    let mut changes = Changes::default();
    let too_much = || too_much(rules.len(), document.all.len());
    let elements = document.all.iter().enumerate();
    for (at, candidate) in elements.filter(|(_, element)| !is_one_of(element, &UNSEEN)) {
        let mut declarations = Vec::new();
        for (selector, block) in &rules {
            if selector
                .selects(&document.all, at, &mut steps)
                .ok_or_else(too_much)?
            {
                changes.count(block.len()).ok_or_else(too_much)?;
                let parts = split(block, ';').into_iter();
                declarations.extend(parts.filter_map(declaration));
            }
        }
        if !declarations.is_empty() {
            let mut own = candidate.attributes.iter();
            let own = own.find(|(name, _)| name.eq_ignore_ascii_case("style"));
            let own = own.map_or("", |(_, style)| style);
            let style = merged(&declarations, own);
            for (name, value) in attributes_of_style(candidate, &style) {
                let set = changes.set(at, name, value.to_owned());
                set.ok_or_else(too_much)?;
            }
            let style = style.iter().map(|(name, value)| format!("{name}:{value};"));
            let set = changes.set(at, "style", style.collect());
            set.ok_or_else(too_much)?;
        }
    }
    Ok(document.changed(&html, &changes))
}

/// A document's elements, and where their opening tags stand.
struct Document<'a> {
    all: Vec<Candidate<'a>>,
    /// Where what stands behind the name begins, and where the tag ends.
    tags: Vec<(usize, usize)>,
    open: Vec<usize>,
    /// How many of `open` have a name.
    open_names: HashMap<String, usize>,
    /// By parent, the last child so far.
    last: HashMap<Option<usize>, usize>,
}

impl<'a> Document<'a> {
    /// What never ends is left alone, with all that follows.
    fn read(html: &'a str) -> Self {
        let mut document = Self {
            all: Vec::new(),
            tags: Vec::new(),
            open: Vec::new(),
            open_names: HashMap::new(),
            last: HashMap::new(),
        };
        let mut at = 0;
        while let Ok(Some(found)) = markup::next(html, at) {
            at = found.end;
            match found.kind {
                Kind::Open(name, inner, is_closed) => {
                    document.open(name, inner, is_closed);
                    let behind_name = found.start + 1 + name.len();
                    document.tags.push((behind_name, found.end));
                    at = markup::raw_text_end(html, name, at).unwrap_or(at);
                }
                Kind::Close(name) => document.close(&name.to_ascii_lowercase()),
                Kind::Other => {}
            }
        }
        document
    }

    fn open(&mut self, name: &'a str, inner: &'a str, is_closed: bool) {
        let parent = self.open.last().copied();
        let index = self.all.len();
        let attributes = markup::attributes(inner).map(|found| (found.name, found.value));
        let previous = self.last.insert(parent, index);
        let before = previous.and_then(|previous| self.all.get_mut(previous));
        let before = before.map_or(0, |previous| {
            previous.is_last = false;
            previous.before + 1
        });
        self.all.push(Candidate {
            parent,
            previous,
            before,
            is_last: true,
            name,
            attributes: attributes.collect(),
        });
        let name = name.to_ascii_lowercase();
        if !is_closed && !VOID.contains(&name.as_str()) {
            self.open.push(index);
            *self.open_names.entry(name).or_default() += 1;
        }
    }

    /// Closes the innermost element of this name, and what is open within it.
    fn close(&mut self, name: &str) {
        if self.open_names.get(name).is_none_or(|count| *count == 0) {
            return;
        }
        while let Some(closed) = self.open.pop().and_then(|index| self.all.get(index)) {
            let closed = closed.name.to_ascii_lowercase();
            let is_it = closed == name;
            let count = self.open_names.entry(closed);
            count.and_modify(|count| *count = count.saturating_sub(1));
            if is_it {
                return;
            }
        }
    }

    fn changed(&self, html: &str, changes: &Changes<'_>) -> String {
        let mut out = String::with_capacity(html.len());
        let mut written = 0;
        for (at, (start, end)) in self.tags.iter().enumerate() {
            if let Some(changes) = changes.of.get(&at) {
                out.push_str(html.get(written..*start).unwrap_or_default());
                let tag = html.get(*start..*end).unwrap_or_default();
                write_tag(&mut out, tag, changes);
                written = *end;
            }
        }
        out.push_str(html.get(written..).unwrap_or_default());
        out
    }
}

/// Writes what stands in a tag behind its name, with its new attributes.
fn write_tag(out: &mut String, tag: &str, changes: &[(&str, String)]) {
    let tag = tag.strip_suffix('>').unwrap_or(tag);
    let open = tag.strip_suffix('/');
    let inner = open.unwrap_or(tag);
    let mut kept = 0;
    for attribute in markup::attributes(inner) {
        let mut names = changes.iter().map(|(name, _)| *name);
        if names.any(|name| name.eq_ignore_ascii_case(attribute.name)) {
            let before = inner.get(kept..attribute.span.0).unwrap_or_default();
            out.push_str(before.trim_end());
            kept = attribute.span.1;
        }
    }
    out.push_str(inner.get(kept..).unwrap_or_default().trim_end());
    for (name, value) in changes {
        out.extend([" ", name, "=\"", &value.replace('"', "&quot;"), "\""]);
    }
    out.push_str(if open.is_some() { " />" } else { ">" });
}

/// By element, its new attributes.
#[derive(Default)]
struct Changes<'a> {
    of: HashMap<usize, Vec<(&'a str, String)>>,
    bytes: usize,
    attributes: usize,
}

impl<'a> Changes<'a> {
    /// Nothing when it is too much.
    fn count(&mut self, bytes: usize) -> Option<()> {
        self.bytes += bytes;
        self.attributes += 1;
        (self.bytes <= BYTES_MAX && self.attributes <= ATTRIBUTES_MAX).then_some(())
    }

    /// Nothing when it is too much.
    fn set(&mut self, at: usize, name: &'a str, value: String) -> Option<()> {
        self.count(name.len() + value.len())?;
        let there = self.of.entry(at).or_default();
        there.retain(|(known, _)| *known != name);
        there.push((name, value));
        (there.len() <= ATTRIBUTES_OF_ONE_MAX).then_some(())
    }
}

/// The rules of a sheet that can be inlined, each of its selectors with its block.
fn rules(css: &str) -> Vec<(Selector<'_>, &str)> {
    let mut rules = Vec::new();
    let mut rest = css;
    while let Some((selectors, behind)) = rest.split_once('{') {
        // Rules for some media, and the like, do not go into a style attribute.
        if selectors.contains('@') {
            rest = behind_block(behind);
            continue;
        }
        let (block, after) = behind.split_once('}').unwrap_or((behind, ""));
        let selectors = selectors.split(',').filter_map(Selector::parse);
        rules.extend(selectors.map(|selector| (selector, block)));
        rest = after;
    }
    rules
}

fn behind_block(text: &str) -> &str {
    let mut depth = 1_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return text.get(at + 1..).unwrap_or_default();
        }
    }
    ""
}

fn without_comments(css: &str) -> String {
    let mut out = String::with_capacity(css.len());
    let mut rest = css;
    while let Some((before, behind)) = rest.split_once("/*") {
        out.push_str(before);
        rest = behind.split_once("*/").map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    out
}

/// A name, its value, and whether it is important.
type Declaration<'a> = (&'a str, String, bool);

fn declaration(text: &str) -> Option<Declaration<'_>> {
    let (name, value) = text.split_once(':')?;
    let value = value.trim().replace('"', "'");
    let plain = value.strip_suffix("!important");
    let plain = plain.map(|plain| plain.trim_end().to_owned());
    let is_important = plain.is_some();
    Some((name.trim(), plain.unwrap_or(value), is_important))
}

/// A style of which the later parts count: what the rules say, what the element says
/// itself, and then what either calls important.
fn merged(rules: &[Declaration<'_>], own: &str) -> Vec<(String, String)> {
    // An entity ends in a semicolon as well.
    let own = own.replace("&quot;", "'").replace("&#39;", "'");
    let own = own.replace("&amp;", "\u{1}");
    let own: Vec<_> = split(&own, ';')
        .into_iter()
        .filter_map(declaration)
        .collect();
    let all = |important: bool| {
        let all = rules.iter().chain(&own);
        all.filter(move |declaration| declaration.2 == important)
    };
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut merged: Vec<Option<(String, String)>> = Vec::new();
    for (name, value, _) in all(false).chain(all(true)) {
        let name = name.to_ascii_lowercase();
        if let Some(place) = places.insert(name.clone(), merged.len())
            && let Some(earlier) = merged.get_mut(place)
        {
            *earlier = None;
        }
        merged.push(Some((name, value.replace('\u{1}', "&amp;"))));
    }
    merged.into_iter().flatten().collect()
}

/// What mjml writes into attributes of tables and pictures as well.
fn attributes_of_style<'s>(
    element: &Candidate<'_>,
    style: &'s [(String, String)],
) -> Vec<(&'static str, &'s str)> {
    let is_table = is_one_of(element, &TABLE);
    let has_size = is_one_of(element, &SIZED);
    let mut attributes = Vec::new();
    for (name, value) in style {
        let attribute = match name.as_str() {
            "width" if has_size => "width",
            "height" if has_size => "height",
            "background-color" if is_table => "bgcolor",
            "background-image" if is_table => "background",
            "text-align" if is_table => "align",
            "vertical-align" if is_table => "valign",
            _ => continue,
        };
        let value = match attribute {
            "width" | "height" if value.ends_with("px") => value.trim_end_matches("px"),
            "width" | "height" if value != "auto" && !(is_table && value.contains('%')) => continue,
            "background" => value
                .strip_prefix("url(")
                .and_then(|url| url.strip_suffix(')'))
                .map_or(value.as_str(), |url| url.trim_matches(['"', '\''])),
            _ => value,
        };
        if !value.contains("-gradient(") {
            attributes.push((attribute, value));
        }
    }
    attributes
}

fn is_one_of(element: &Candidate<'_>, names: &[&str]) -> bool {
    names
        .iter()
        .any(|name| element.name.eq_ignore_ascii_case(name))
}
