//! Adds attributes to the compiled HTML: those of `mj-html-attributes`, and styles from the
//! rules of inline `mj-style` elements. Rewrites only the opening tags that change.

use std::collections::HashMap;

use super::markup::{self, Kind};
use super::selector::{Candidate, Selector, Steps};
use crate::text::css::split;

/// Elements without content and end tag.
const VOID_ELEMENTS: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];
/// Elements that are not displayed and get no styles.
const NOT_DISPLAYED: [&str; 8] = [
    "head", "title", "base", "link", "style", "meta", "script", "noscript",
];
/// Elements that get some styles also as attributes.
const TABLE_ELEMENTS: [&str; 10] = [
    "table", "th", "tr", "td", "caption", "colgroup", "col", "thead", "tbody", "tfoot",
];
/// Elements that get their width and height also as attributes.
const SIZED_ELEMENTS: [&str; 4] = ["table", "td", "th", "img"];
/// The maximum of [`Steps`]: enough for 400 selectors and 4,000 elements with five
/// attributes. They take 0.2 s.
const STEPS_MAX: usize = 10_000_000;
/// Bytes of all added attributes.
const BYTES_MAX: usize = 4 << 20;
/// Number of all added attributes.
const ATTRIBUTES_MAX: usize = 100_000;
/// Attributes added to one element.
const ATTRIBUTES_PER_ELEMENT_MAX: usize = 100;

/// The error for an exceeded limit.
fn limit_error(selectors: usize, elements: usize) -> String {
    format!("too many selectors ({selectors}) for so many elements of HTML ({elements})")
}

/// A selector and the attributes for its elements.
type Selected<'a> = (&'a str, Vec<(&'a str, &'a str)>);

/// Adds the attributes of `mj-html-attributes`.
///
/// # Errors
/// A selector is not supported, or a limit is exceeded.
pub(super) fn html_attributes(html: String, selected: &[Selected<'_>]) -> Result<String, String> {
    if selected.is_empty() {
        return Ok(html);
    }
    let document = Document::read(&html);
    let mut steps = Steps(STEPS_MAX);
    let mut changes = Changes::default();
    let limit_error = || limit_error(selected.len(), document.all.len());
    for (path, attributes) in selected {
        for part in path.split(',') {
            let part = part.trim();
            let selector = Selector::parse(part).ok_or_else(|| {
                format!("the selector {part} of mj-html-attributes is not supported")
            })?;
            for at in 0..document.all.len() {
                let matches = selector.matches(&document.all, at, &mut steps);
                for (name, value) in attributes.iter().filter(|_| matches == Some(true)) {
                    let set = changes.set(at, name, (*value).to_owned());
                    set.ok_or_else(limit_error)?;
                }
                matches.ok_or_else(limit_error)?;
            }
        }
    }
    Ok(document.changed(&html, &changes))
}

/// Adds the rules of style sheets to the style attributes of their elements.
///
/// # Errors
/// A limit is exceeded.
pub(super) fn inline_styles(html: String, styles: &[&str]) -> Result<String, String> {
    if styles.is_empty() {
        return Ok(html);
    }
    let css = without_comments(&styles.concat());
    let mut rules = rules(&css);
    rules.sort_by_key(|(selector, _)| selector.specificity);
    let document = Document::read(&html);
    let mut steps = Steps(STEPS_MAX);
    let mut changes = Changes::default();
    let limit_error = || limit_error(rules.len(), document.all.len());
    let elements = document.all.iter().enumerate();
    for (at, candidate) in elements.filter(|(_, element)| !is_one_of(element, &NOT_DISPLAYED)) {
        let mut declarations = Vec::new();
        for (selector, block) in &rules {
            if selector
                .matches(&document.all, at, &mut steps)
                .ok_or_else(limit_error)?
            {
                changes.count(block.len()).ok_or_else(limit_error)?;
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
                set.ok_or_else(limit_error)?;
            }
            let style = style.iter().map(|(name, value)| format!("{name}:{value};"));
            let set = changes.set(at, "style", style.collect());
            set.ok_or_else(limit_error)?;
        }
    }
    Ok(document.changed(&html, &changes))
}

/// The elements of a document and the positions of their opening tags.
struct Document<'a> {
    all: Vec<Candidate<'a>>,
    /// For each opening tag, the end of its name and the end of the tag.
    tags: Vec<(usize, usize)>,
    open: Vec<usize>,
    /// The number of open elements by name.
    open_names: HashMap<String, usize>,
    /// The last child so far, by parent.
    last: HashMap<Option<usize>, usize>,
}

impl<'a> Document<'a> {
    /// Parses a document up to its end or to an unclosed tag or comment.
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
                    let name_end = found.start + 1 + name.len();
                    document.tags.push((name_end, found.end));
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
        if !is_closed && !VOID_ELEMENTS.contains(&name.as_str()) {
            self.open.push(index);
            *self.open_names.entry(name).or_default() += 1;
        }
    }

    /// Closes the innermost open element of this name and all open elements inside it.
    fn close(&mut self, name: &str) {
        if self.open_names.get(name).is_none_or(|count| *count == 0) {
            return;
        }
        while let Some(closed) = self.open.pop().and_then(|index| self.all.get(index)) {
            let closed = closed.name.to_ascii_lowercase();
            let is_match = closed == name;
            let count = self.open_names.entry(closed);
            count.and_modify(|count| *count = count.saturating_sub(1));
            if is_match {
                return;
            }
        }
    }

    fn changed(&self, html: &str, changes: &Changes<'_>) -> String {
        let mut out = String::with_capacity(html.len());
        let mut written = 0;
        for (at, (start, end)) in self.tags.iter().enumerate() {
            if let Some(changes) = changes.by_element.get(&at) {
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

/// Writes the part of a tag after its name, with the new attributes.
fn write_tag(out: &mut String, tag: &str, changes: &[(&str, String)]) {
    let tag = tag.strip_suffix('>').unwrap_or(tag);
    let open = tag.strip_suffix('/');
    let inner = open.unwrap_or(tag);
    let mut copied = 0;
    for attribute in markup::attributes(inner) {
        let mut names = changes.iter().map(|(name, _)| *name);
        if names.any(|name| name.eq_ignore_ascii_case(attribute.name)) {
            let before = inner.get(copied..attribute.span.0).unwrap_or_default();
            out.push_str(before.trim_end());
            copied = attribute.span.1;
        }
    }
    out.push_str(inner.get(copied..).unwrap_or_default().trim_end());
    for (name, value) in changes {
        out.extend([" ", name, "=\"", &value.replace('"', "&quot;"), "\""]);
    }
    out.push_str(if open.is_some() { " />" } else { ">" });
}

/// The new attributes by element.
#[derive(Default)]
struct Changes<'a> {
    by_element: HashMap<usize, Vec<(&'a str, String)>>,
    bytes: usize,
    attributes: usize,
}

impl<'a> Changes<'a> {
    /// Counts an attribute. `None` if a limit is exceeded.
    fn count(&mut self, bytes: usize) -> Option<()> {
        self.bytes += bytes;
        self.attributes += 1;
        (self.bytes <= BYTES_MAX && self.attributes <= ATTRIBUTES_MAX).then_some(())
    }

    /// Sets an attribute of an element. `None` if a limit is exceeded.
    fn set(&mut self, at: usize, name: &'a str, value: String) -> Option<()> {
        self.count(name.len() + value.len())?;
        let attributes = self.by_element.entry(at).or_default();
        attributes.retain(|(known, _)| *known != name);
        attributes.push((name, value));
        (attributes.len() <= ATTRIBUTES_PER_ELEMENT_MAX).then_some(())
    }
}

/// The rules of a style sheet that can be inlined: each selector with its block.
fn rules(css: &str) -> Vec<(Selector<'_>, &str)> {
    let mut rules = Vec::new();
    let mut rest = css;
    while let Some((selectors, after_brace)) = rest.split_once('{') {
        // Media queries and other at-rules cannot be inlined.
        if selectors.contains('@') {
            rest = after_block(after_brace);
            continue;
        }
        let (block, after) = after_brace.split_once('}').unwrap_or((after_brace, ""));
        let selectors = selectors.split(',').filter_map(Selector::parse);
        rules.extend(selectors.map(|selector| (selector, block)));
        rest = after;
    }
    rules
}

fn after_block(text: &str) -> &str {
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
    while let Some((before, after_start)) = rest.split_once("/*") {
        out.push_str(before);
        rest = after_start.split_once("*/").map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    out
}

/// A declaration: its name, its value, and whether it is `!important`.
type Declaration<'a> = (&'a str, String, bool);

fn declaration(text: &str) -> Option<Declaration<'_>> {
    let (name, value) = text.split_once(':')?;
    let value = value.trim().replace('"', "'");
    let plain = value.strip_suffix("!important");
    let plain = plain.map(|plain| plain.trim_end().to_owned());
    let is_important = plain.is_some();
    Some((name.trim(), plain.unwrap_or(value), is_important))
}

/// Merges declarations. Later ones override earlier ones: the rules, the element's own
/// style, then the important declarations of both.
fn merged(rules: &[Declaration<'_>], own: &str) -> Vec<(String, String)> {
    // An entity also ends in a semicolon, at which `split` would divide the style.
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
    let mut indexes: HashMap<String, usize> = HashMap::new();
    let mut merged: Vec<Option<(String, String)>> = Vec::new();
    for (name, value, _) in all(false).chain(all(true)) {
        let name = name.to_ascii_lowercase();
        if let Some(index) = indexes.insert(name.clone(), merged.len())
            && let Some(earlier) = merged.get_mut(index)
        {
            *earlier = None;
        }
        merged.push(Some((name, value.replace('\u{1}', "&amp;"))));
    }
    merged.into_iter().flatten().collect()
}

/// The attributes that mjml adds to tables and images for their styles.
fn attributes_of_style<'s>(
    element: &Candidate<'_>,
    style: &'s [(String, String)],
) -> Vec<(&'static str, &'s str)> {
    let is_table = is_one_of(element, &TABLE_ELEMENTS);
    let has_size = is_one_of(element, &SIZED_ELEMENTS);
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
