//! Parses MJML as mjml does. The content of elements that mjml calls ending tags (such as
//! `mj-text`) is not MJML and is not parsed.

use super::super::problem::Problem;
use super::markup::{self, Attribute, Kind, Unclosed};

/// The deepest nesting of elements.
const DEPTH_MAX: usize = 100;
/// Elements of a source. With [`ATTRIBUTES_MAX`] attributes a source of 1 MiB compiles in
/// 0.2 s.
pub(super) const ELEMENTS_MAX: usize = 5_000;
/// Attributes of a source.
pub(super) const ATTRIBUTES_MAX: usize = 20_000;
/// Images in carousels of a source. The styles of a carousel grow with the square of their
/// number.
const CAROUSEL_IMAGES_MAX: usize = 50;

/// Elements whose content is not MJML.
const ENDING: [&str; 14] = [
    "mj-accordion-text",
    "mj-accordion-title",
    "mj-breakpoint",
    "mj-button",
    "mj-carousel-image",
    "mj-html-attribute",
    "mj-navbar-link",
    "mj-preview",
    "mj-raw",
    "mj-social-element",
    "mj-style",
    "mj-table",
    "mj-text",
    "mj-title",
];

/// The other elements of MJML.
const NESTING: [&str; 23] = [
    "mj-accordion",
    "mj-accordion-element",
    "mj-all",
    "mj-attributes",
    "mj-body",
    "mj-carousel",
    "mj-class",
    "mj-column",
    "mj-divider",
    "mj-font",
    "mj-group",
    "mj-head",
    "mj-hero",
    "mj-html-attributes",
    "mj-image",
    "mj-navbar",
    "mj-section",
    "mj-selector",
    "mj-social",
    "mj-spacer",
    "mj-wrapper",
    "mjml",
    "mj-include",
];

#[derive(Debug)]
pub(super) struct Element<'a> {
    pub(super) name: String,
    pub(super) line: usize,
    /// Without duplicates. The first attribute of a name counts.
    pub(super) attributes: Vec<(&'a str, &'a str)>,
    pub(super) children: Vec<MjmlNode<'a>>,
    /// The content of an ending tag.
    pub(super) content: &'a str,
}

#[derive(Debug)]
pub(super) enum MjmlNode<'a> {
    Element(Element<'a>),
    /// Copied unchanged: a comment, an HTML tag, or a text with Handlebars.
    Raw(&'a str),
}

impl<'a> Element<'a> {
    pub(super) fn attribute(&self, name: &str) -> Option<&'a str> {
        let mut attributes = self.attributes.iter();
        attributes
            .find(|(n, _)| *n == name)
            .map(|(_, value)| *value)
    }

    pub(super) fn elements(&self) -> impl Iterator<Item = &Element<'a>> {
        self.children.iter().filter_map(|child| match child {
            MjmlNode::Element(element) => Some(element),
            MjmlNode::Raw(_) => None,
        })
    }
}

/// Parses a source.
///
/// # Errors
/// The first error, with its line.
pub(super) fn read(source: &str) -> Result<Element<'_>, Problem> {
    let mut reader = MjmlReader {
        source,
        at: 0,
        line: (0, 1),
        open: Vec::new(),
        root: None,
        elements: 0,
        attributes: 0,
        carousel_images: 0,
    };
    reader.read()?;
    match reader.root {
        Some(root) if root.name == "mjml" => Ok(root),
        Some(root) => {
            let text = format!("unexpected element <{}", root.name);
            Err(Problem::at_line(root.line, text))
        }
        None => Err("there is no <mjml> element".to_owned().into()),
    }
}

struct MjmlReader<'a> {
    source: &'a str,
    at: usize,
    /// An offset and its line.
    line: (usize, usize),
    open: Vec<Element<'a>>,
    root: Option<Element<'a>>,
    elements: usize,
    attributes: usize,
    carousel_images: usize,
}

impl<'a> MjmlReader<'a> {
    fn read(&mut self) -> Result<(), Problem> {
        while let Some(markup) = self.next(self.at)? {
            let text = self.slice(self.at, markup.start);
            self.text(text);
            let start = markup.start;
            self.at = markup.end;
            let result = match markup.kind {
                Kind::Open(name, inner, is_closed) => self.open(name, inner, is_closed, start),
                Kind::Close(name) => self.close(name, markup.start),
                Kind::Other => {
                    self.raw(self.slice(start, markup.end));
                    Ok(())
                }
            };
            result.map_err(|error| self.at_line(markup.end, &error))?;
        }
        let Some(open) = self.open.last() else {
            return Ok(());
        };
        let error = format!("the source ends before <{}> is closed", open.name);
        Err(self.at_line(self.source.len(), &error))
    }

    fn next(&mut self, from: usize) -> Result<Option<markup::Markup<'a>>, Problem> {
        markup::next(self.source, from).map_err(|Unclosed(at)| {
            let found: String = self.slice(at, self.source.len()).chars().take(40).collect();
            self.at_line(at, &format!("this is not closed: {}", found.trim()))
        })
    }

    fn slice(&self, from: usize, to: usize) -> &'a str {
        self.source.get(from..to).unwrap_or_default()
    }

    /// mjml drops text between elements. Text with Handlebars is kept.
    fn text(&mut self, text: &'a str) {
        if text.contains("{{") {
            self.raw(text);
        }
    }

    fn raw(&mut self, text: &'a str) {
        if let Some(parent) = self.open.last_mut() {
            parent.children.push(MjmlNode::Raw(text));
        }
    }

    fn open(
        &mut self,
        name: &'a str,
        inner: &'a str,
        is_closed: bool,
        start: usize,
    ) -> Result<(), String> {
        let name = name.to_ascii_lowercase();
        let is_ending = ENDING.contains(&name.as_str());
        let in_attributes = self.open.iter().any(|open| open.name == "mj-attributes");
        if name == "mj-include" {
            return Err("includes are not supported".to_owned());
        }
        if !is_ending && !NESTING.contains(&name.as_str()) && !in_attributes {
            if name.starts_with("mj-") {
                return Err(format!("there is no MJML element {name}"));
            }
            if self.open.is_empty() {
                return Err(format!("unexpected element <{name}"));
            }
            return self.html(&name, start);
        }
        if self.open.is_empty() && self.root.is_some() {
            return Err(format!("unexpected element <{name} after </mjml>"));
        }
        let element = Element {
            attributes: self.read_attributes(inner)?,
            line: self.line(start),
            children: Vec::new(),
            content: "",
            name,
        };
        self.count(&element)?;
        if is_closed {
            self.add(element);
        } else if is_ending {
            self.ending(element)?;
        } else {
            self.open.push(element);
        }
        Ok(())
    }

    /// Copies HTML between elements unchanged.
    fn html(&mut self, name: &str, start: usize) -> Result<(), String> {
        self.elements += 1;
        if self.elements > ELEMENTS_MAX {
            return Err(format!("there are more than {ELEMENTS_MAX} elements"));
        }
        if let Some(end) = markup::raw_text_end(self.source, name, self.at) {
            self.at = end;
        }
        self.raw(self.slice(start, self.at));
        Ok(())
    }

    fn read_attributes(&mut self, inner: &'a str) -> Result<Vec<(&'a str, &'a str)>, String> {
        let mut names = std::collections::HashSet::new();
        let mut attributes = Vec::new();
        for Attribute { name, value, .. } in markup::attributes(inner) {
            self.attributes += 1;
            if self.attributes > ATTRIBUTES_MAX {
                return Err(format!("there are more than {ATTRIBUTES_MAX} attributes"));
            }
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_:.@".contains(&byte);
            if !name.bytes().all(is_name) {
                let found: String = name.chars().take(40).collect();
                return Err(format!("unexpected {found}"));
            }
            if names.insert(name) {
                attributes.push((name, value));
            }
        }
        Ok(attributes)
    }

    fn count(&mut self, element: &Element<'_>) -> Result<(), String> {
        self.elements += 1;
        self.carousel_images += usize::from(element.name == "mj-carousel-image");
        if self.open.len() >= DEPTH_MAX {
            return Err(format!("elements are nested more than {DEPTH_MAX} deep"));
        }
        if self.elements > ELEMENTS_MAX {
            return Err(format!("there are more than {ELEMENTS_MAX} elements"));
        }
        if self.carousel_images > CAROUSEL_IMAGES_MAX {
            return Err(format!(
                "there are more than {CAROUSEL_IMAGES_MAX} images in carousels"
            ));
        }
        Ok(())
    }

    /// Reads the content of an ending tag.
    fn ending(&mut self, mut element: Element<'a>) -> Result<(), String> {
        let start = self.at;
        let mut open = vec![element.name.clone()];
        let mut at = start;
        loop {
            let Some(markup) = markup::next(self.source, at).map_err(|Unclosed(at)| {
                let line = self.line(at);
                format!(
                    "<{}> is not closed: an unclosed tag or comment starts in line {line}",
                    element.name
                )
            })?
            else {
                return Err(format!("<{}> is not closed", element.name));
            };
            at = markup.end;
            match markup.kind {
                Kind::Open(name, _, is_closed) => {
                    let name = name.to_ascii_lowercase();
                    if name == "mj-include" {
                        return Err("includes are not supported".to_owned());
                    }
                    if ENDING.contains(&name.as_str()) && !is_closed {
                        open.push(name);
                    } else if let Some(end) = markup::raw_text_end(self.source, &name, at) {
                        at = end;
                    }
                }
                Kind::Close(name) => {
                    let name = name.to_ascii_lowercase();
                    if open.last() == Some(&name) {
                        open.pop();
                    } else if ENDING.contains(&name.as_str()) || NESTING.contains(&name.as_str()) {
                        let opened = open.last().unwrap_or(&element.name);
                        return Err(format!("</{name}> closes <{opened}>"));
                    }
                    if open.is_empty() {
                        element.content = self.slice(start, markup.start).trim();
                        self.at = at;
                        self.add(element);
                        return Ok(());
                    }
                }
                Kind::Other => {}
            }
        }
    }

    fn close(&mut self, name: &'a str, start: usize) -> Result<(), String> {
        let name = name.to_ascii_lowercase();
        let opened = self.open.last().map(|open| open.name.as_str());
        if opened == Some(name.as_str()) {
            if let Some(element) = self.open.pop() {
                self.add(element);
            }
            return Ok(());
        }
        if name.starts_with("mj") {
            let opened = opened.unwrap_or_default();
            return Err(format!("</{name}> closes <{opened}>"));
        }
        self.raw(self.slice(start, self.at));
        Ok(())
    }

    fn add(&mut self, element: Element<'a>) {
        match self.open.last_mut() {
            Some(parent) => parent.children.push(MjmlNode::Element(element)),
            None => self.root = Some(element),
        }
    }

    fn at_line(&mut self, at: usize, error: &str) -> Problem {
        Problem::at_line(self.line(at), error)
    }

    /// The line of an offset. Continues counting from the previous call's offset.
    fn line(&mut self, at: usize) -> usize {
        let (from, line) = if at < self.line.0 { (0, 1) } else { self.line };
        let between = self.source.as_bytes().get(from..at).unwrap_or_default();
        let line = line + between.iter().filter(|byte| **byte == b'\n').count();
        self.line = (at, line);
        line
    }
}
