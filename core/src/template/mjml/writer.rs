//! Writes the source for the compiler, so that its result equals mjml's result for the
//! original: default attributes are resolved, contents are placeholders, and attributes that
//! compiler and mjml interpret differently are adapted.

use std::fmt::Write;

use super::super::problem::Problem;
use super::adapt;
use super::defaults::Defaults;
use super::placeholders::{Placeholders, RADIUS, UNDO, encode, in_quotes};
use super::reader::{Element, MjmlNode};

/// The default width of a body in pixels.
const BODY_WIDTH: f32 = 600.0;

/// The source for the compiler, and the parts that are added to the HTML afterwards.
#[derive(Default)]
pub(super) struct CompilerInput<'a> {
    pub(super) source: String,
    pub(super) placeholders: Placeholders<'a>,
    /// The offset of each element in `source`, and its line in the original.
    lines: Vec<(usize, usize)>,
    /// The name and URL of each font.
    pub(super) fonts: Vec<(&'a str, &'a str)>,
    /// CSS to be inlined into style attributes.
    pub(super) inline_styles: Vec<&'a str>,
    /// The attributes of `mj-html-attributes` by selector.
    pub(super) html_attributes: Vec<(&'a str, Vec<(&'a str, &'a str)>)>,
    /// Texts before the doctype.
    pub(super) before: Vec<&'a str>,
}

/// The properties of the parent that affect an element.
#[derive(Clone, Copy, Default)]
struct Parent<'a, 'b> {
    name: &'b str,
    classes: &'a str,
    /// The `gap` of a wrapper, for all but its first child.
    gap: Option<&'b str>,
    /// The width that a hero leaves to its children.
    hero_width: Option<f32>,
    /// Whether a carousel shows its thumbnails only if the mail program supports it.
    hides_thumbnails: bool,
}

/// Placeholders in attributes, in addition to their values.
#[derive(Default)]
struct AttributePlaceholders {
    class: Option<String>,
    /// Placeholders after the value of an attribute, by its name.
    suffixes: Vec<(&'static str, String)>,
}

impl CompilerInput<'_> {
    /// The line in the original of an offset in `source`.
    pub(super) fn line(&self, at: usize) -> usize {
        let after = self.lines.partition_point(|(start, _)| *start <= at);
        let before = after.checked_sub(1).and_then(|index| self.lines.get(index));
        before.map_or(1, |(_, line)| *line)
    }
}

/// Writes the source for the compiler.
///
/// # Errors
/// The first error, with its line.
pub(super) fn write<'a>(root: &Element<'a>) -> Result<CompilerInput<'a>, Problem> {
    let find = |name: &str| root.elements().find(|child| child.name == name);
    let (head, body) = (find("mj-head"), find("mj-body"));
    for child in root.elements() {
        if !["mj-head", "mj-body", "mj-raw"].contains(&child.name.as_str()) {
            let text = format!("unexpected element <{}", child.name);
            return Err(Problem::at_line(child.line, text));
        }
    }
    let mut defaults = Defaults::default();
    for child in head.into_iter().flat_map(Element::elements) {
        if child.name == "mj-attributes" {
            defaults.add(child);
        }
    }
    let mut writer = MjmlWriter {
        out: CompilerInput::default(),
        defaults,
        body_width: BODY_WIDTH,
    };
    let raws = root.elements().filter(|child| child.name == "mj-raw");
    let first = raws.filter(|raw| raw.attribute("position") == Some("file-start"));
    writer.out.before = first.map(|raw| raw.content).collect();
    writer.start(
        "mjml",
        root.line,
        root.attributes.iter().copied(),
        AttributePlaceholders::default(),
    );
    if let Some(head) = head {
        writer.head(head)?;
    }
    if let Some(body) = body {
        writer.element(body, Parent::default())?;
    }
    writer.out.source.push_str("</mjml>");
    Ok(writer.out)
}

struct MjmlWriter<'a> {
    out: CompilerInput<'a>,
    defaults: Defaults<'a>,
    body_width: f32,
}

impl<'a> MjmlWriter<'a> {
    /// Writes an opening tag.
    fn start<'v>(
        &mut self,
        name: &str,
        line: usize,
        attributes: impl Iterator<Item = (&'v str, &'v str)>,
        placeholders: AttributePlaceholders,
    ) {
        let out = &mut self.out;
        out.lines.push((out.source.len(), line));
        let _infallible = write!(out.source, "<{name}");
        let mut class = placeholders.class;
        for (name, value) in attributes {
            let _infallible = write!(out.source, " {name}=\"");
            if let Some(class) = class.take_if(|_| name == "css-class") {
                let _infallible = write!(out.source, "{class} ");
            }
            if name == "css-class" && value.contains(' ') && !value.contains("{{") {
                out.source.push_str(&out.placeholders.add_classes(value));
            } else {
                encode(&mut out.source, value);
            }
            let suffixes = placeholders.suffixes.iter();
            for (_, placeholder) in suffixes.filter(|(of, _)| *of == name) {
                out.source.push_str(placeholder);
            }
            out.source.push('"');
        }
        if let Some(class) = class {
            let _infallible = write!(out.source, " css-class=\"{class}\"");
        }
        out.source.push('>');
    }

    fn end(&mut self, name: &str) {
        let _infallible = write!(self.out.source, "</{name}>");
    }

    fn head(&mut self, head: &Element<'a>) -> Result<(), Problem> {
        self.start(
            "mj-head",
            head.line,
            std::iter::empty(),
            AttributePlaceholders::default(),
        );
        if !self.defaults.all().is_empty() {
            self.start(
                "mj-attributes",
                head.line,
                std::iter::empty(),
                AttributePlaceholders::default(),
            );
            let all = self.defaults.all().to_vec();
            let mut all = all
                .into_iter()
                .map(|(name, value)| (name, value.to_owned()))
                .collect();
            adapt::attributes("mj-all", &mut all);
            self.start(
                "mj-all",
                head.line,
                pairs(&all),
                AttributePlaceholders::default(),
            );
            self.end("mj-all");
            self.end("mj-attributes");
        }
        for child in &head.children {
            match child {
                MjmlNode::Raw(raw) => {
                    let placeholder = self.out.placeholders.add(*raw);
                    let _infallible = write!(self.out.source, "<mj-raw>{placeholder}</mj-raw>");
                }
                MjmlNode::Element(child) => self.head_child(child)?,
            }
        }
        self.end("mj-head");
        Ok(())
    }

    fn head_child(&mut self, child: &Element<'a>) -> Result<(), Problem> {
        let name = child.name.as_str();
        match name {
            "mj-attributes" => {}
            "mj-font" => {
                let font = child.attribute("name").zip(child.attribute("href"));
                self.out.fonts.extend(font);
            }
            "mj-html-attributes" => self.html_attributes(child),
            "mj-style" if child.attribute("inline") == Some("inline") => {
                self.out.inline_styles.push(child.content);
            }
            "mj-title" => {
                // The compiler prints the title as an attribute too.
                self.start(
                    name,
                    child.line,
                    std::iter::empty(),
                    AttributePlaceholders::default(),
                );
                encode(&mut self.out.source, child.content);
                self.end(name);
            }
            "mj-breakpoint" => {
                self.start(
                    name,
                    child.line,
                    child.attributes.iter().copied(),
                    AttributePlaceholders::default(),
                );
                self.end(name);
            }
            "mj-preview" | "mj-raw" | "mj-style" => {
                self.start(
                    name,
                    child.line,
                    std::iter::empty(),
                    AttributePlaceholders::default(),
                );
                self.content(child.content);
                self.end(name);
            }
            _ => {
                let text = format!("unexpected element <{name}");
                return Err(Problem::at_line(child.line, text));
            }
        }
        Ok(())
    }

    fn html_attributes(&mut self, element: &Element<'a>) {
        for selector in element
            .elements()
            .filter(|child| child.name == "mj-selector")
        {
            let attributes = selector.elements();
            let attributes = attributes.filter(|child| child.name == "mj-html-attribute");
            let attributes =
                attributes.filter_map(|child| Some((child.attribute("name")?, child.content)));
            let path = selector.attribute("path").unwrap_or_default();
            self.out.html_attributes.push((path, attributes.collect()));
        }
    }

    fn content(&mut self, content: &'a str) {
        if !content.is_empty() {
            let placeholder = self.out.placeholders.add(content);
            self.out.source.push_str(&placeholder);
        }
    }

    fn element(&mut self, element: &Element<'a>, parent: Parent<'a, '_>) -> Result<(), Problem> {
        let name = element.name.as_str();
        if name == "mj-raw" {
            return self.raw(element.content, parent.name, element.line);
        }
        let resolved = self.defaults.resolve(element, parent.classes);
        let resolved = resolved.map_err(|error| Problem::at_line(element.line, error))?;
        let mut attributes = resolved;
        let own_gap = value(&attributes, "gap").unwrap_or_default().to_owned();
        let hides_thumbnails =
            name == "mj-carousel" && value(&attributes, "thumbnails") == Some(adapt::SUPPORTED);
        adapt::attributes(name, &mut attributes);
        if name == "mj-body" {
            let width = value(&attributes, "width").and_then(adapt::number);
            self.body_width = width.unwrap_or(BODY_WIDTH);
        }
        if let Some(width) = parent.hero_width.filter(|_| name == "mj-image") {
            adapt::image_in_hero(&mut attributes, width);
        }
        if parent.hides_thumbnails {
            attributes.push(("tb-width", "auto;display:none".to_owned()));
        }
        let is_section = ["mj-section", "mj-wrapper"].contains(&name);
        let gap_above = parent.gap.filter(|_| is_section);
        let icon_right = value(&attributes, "icon-position").is_some_and(|side| side != "left");
        let icon_right = name == "mj-social-element" && icon_right;
        let icon_right = icon_right.then(|| adapt::ICON_RIGHT.to_owned());
        let gap = gap_above.map(|gap| self.out.placeholders.add_gap(gap));
        let placeholders = AttributePlaceholders {
            class: gap.or(icon_right),
            suffixes: self.suffixes(name, &mut attributes),
        };
        self.start(name, element.line, pairs(&attributes), placeholders);
        if name != "mj-carousel-image" {
            self.content(element.content);
        }
        let hero_width =
            (name == "mj-hero").then(|| self.body_width - adapt::horizontal_padding(&attributes));
        for (index, child) in element.children.iter().enumerate() {
            let parent = Parent {
                name,
                classes: element.attribute("mj-class").unwrap_or(parent.classes),
                gap: Some(own_gap.as_str()).filter(|gap| index > 0 && !gap.is_empty()),
                hero_width,
                hides_thumbnails,
            };
            match child {
                MjmlNode::Raw(raw) => self.raw(raw, name, element.line)?,
                MjmlNode::Element(child) => self.element(child, parent)?,
            }
        }
        self.end(name);
        Ok(())
    }

    /// Attributes and styles that mjml prints and the compiler does not. They are written
    /// after the value of another attribute.
    fn suffixes(
        &mut self,
        name: &str,
        attributes: &mut Vec<(&'a str, String)>,
    ) -> Vec<(&'static str, String)> {
        let default = |attributes: &mut Vec<(&'a str, String)>, name: &'static str, default| {
            let all = self.defaults.all().iter().find(|(known, _)| *known == name);
            if value(attributes, name).is_none() {
                attributes.push((name, all.map_or(default, |(_, value)| *value).to_owned()));
            }
        };
        let mut also: Vec<(&'static str, &str)> = Vec::new();
        match name {
            "mj-image" => {
                default(attributes, "alt", "");
                also.push(("alt", "sizes"));
                if value(attributes, "href").is_some() {
                    default(attributes, "target", "_blank");
                    also.push(("target", "title"));
                }
            }
            "mj-social-element" => {
                default(attributes, "alt", "");
                also.extend([("alt", "srcset"), ("alt", "sizes")]);
            }
            "mj-carousel-image" => default(attributes, "alt", ""),
            "mj-button" if value(attributes, "href").is_some() => also.push(("href", "title")),
            "mj-table" => {
                default(attributes, "cellpadding", "0");
                also.push(("cellpadding", "role"));
            }
            _ => {}
        }
        // In an accordion, the compiler prints the paddings of the sides before the common
        // padding, which overrides them, and omits the font weight of a title.
        let font_weight = match name {
            "mj-accordion-title" => vec![("font-size", "13px", "font-weight")],
            _ => Vec::new(),
        };
        let sides = [
            "padding-top",
            "padding-right",
            "padding-bottom",
            "padding-left",
        ];
        let sides = sides.map(|side| ("padding", "16px", side));
        let is_in_accordion = ["mj-accordion-title", "mj-accordion-text"].contains(&name);
        let sides = sides.into_iter().filter(|_| is_in_accordion);
        for (before, otherwise, name) in font_weight.into_iter().chain(sides) {
            if let Some(style) = value(attributes, name).map(|value| format!(";{name}:{value}")) {
                default(attributes, before, otherwise);
                let before = attributes.iter_mut().filter(|(name, _)| *name == before);
                before.for_each(|(_, value)| value.push_str(&style));
            }
        }
        let mut placeholders = Vec::new();
        for (after, name) in also {
            if let Some(value) = value(attributes, name) {
                let text = format!("\" {name}=\"{}", in_quotes(value));
                placeholders.push((after, self.out.placeholders.add(text)));
            }
        }
        if name == "mj-table" && value(attributes, "border").is_some() {
            placeholders.push(("border", format!("`{UNDO}`")));
        }
        if ["mj-section", "mj-wrapper"].contains(&name) {
            placeholders.push(("border-radius", format!("`{RADIUS}`")));
        }
        placeholders
    }

    fn raw(&mut self, text: &'a str, parent: &str, line: usize) -> Result<(), Problem> {
        let placeholders = &mut self.out.placeholders;
        match parent {
            // The compiler would count the comment as an image.
            "mj-carousel" if text.starts_with("<!--") => {}
            "mj-carousel" => {
                let found: String = text.trim().chars().take(40).collect();
                let text = format!("unexpected in mj-carousel: {found}");
                return Err(Problem::at_line(line, text));
            }
            "mj-social" => self.out.source.push_str(&placeholders.add_in_social(text)),
            // The compiler writes the text into a comment for Outlook.
            "mj-wrapper" => {
                let end = placeholders.add_comment("<![endif]-->");
                let placeholder = placeholders.add_comment(text);
                let begin = placeholders.add_comment("<!--[if mso | IE]>");
                self.out.source.extend([end, placeholder, begin]);
            }
            _ => self.out.source.push_str(&placeholders.add_comment(text)),
        }
        Ok(())
    }
}

fn pairs<'v>(attributes: &'v [(&str, String)]) -> impl Iterator<Item = (&'v str, &'v str)> {
    attributes
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
}

/// The value of an attribute.
pub(super) fn value<'v>(attributes: &'v [(&str, String)], name: &str) -> Option<&'v str> {
    pairs(attributes)
        .find(|(n, _)| *n == name)
        .map(|(_, value)| value)
}
