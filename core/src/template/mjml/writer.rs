//! Writes what was read once more, in the form that the compiler takes as mjml would
//! take the original: defaults are in their places, contents are codes, and where the
//! two understand an attribute differently it is written so that the result is the
//! same.

use std::fmt::Write;

use super::adapt;
use super::code::{HeldTexts, RADIUS, UNDO, encode, in_quotes};
use super::defaults::Defaults;
use super::reader::{Element, MjmlNode};

/// The width of a body in pixels that says none.
const BODY_WIDTH: f32 = 600.0;

/// The source for the compiler, and what belongs in the HTML besides.
#[derive(Default)]
pub(super) struct MjmlOutput<'a> {
    pub(super) source: String,
    pub(super) kept: HeldTexts<'a>,
    /// Where each element begins in `source`, and its line in the original.
    lines: Vec<(usize, usize)>,
    /// Name and address of each font.
    pub(super) fonts: Vec<(&'a str, &'a str)>,
    /// Rules that go into the style attributes.
    pub(super) inline_styles: Vec<&'a str>,
    /// By selector, the attributes that its elements get.
    pub(super) html_attributes: Vec<(&'a str, Vec<(&'a str, &'a str)>)>,
    /// What stands before the doctype.
    pub(super) before: Vec<&'a str>,
}

/// What an element learns from its parent.
#[derive(Clone, Copy, Default)]
struct Parent<'a, 'b> {
    name: &'b str,
    classes: &'a str,
    /// The `gap` of a wrapper, for all but its first child.
    gap: Option<&'b str>,
    /// How much of its width a hero leaves to its children.
    hero_width: Option<f32>,
    /// Whether a carousel shows its thumbnails only where it works.
    hides_thumbnails: bool,
}

/// Codes that stand in attributes besides their values.
#[derive(Default)]
struct Codes {
    class: Option<String>,
    /// Behind the value of attributes.
    behind: Vec<(&'static str, String)>,
}

impl MjmlOutput<'_> {
    /// The line in the original of an offset in `source`.
    pub(super) fn line(&self, at: usize) -> usize {
        let after = self.lines.partition_point(|(start, _)| *start <= at);
        let before = after.checked_sub(1).and_then(|index| self.lines.get(index));
        before.map_or(1, |(_, line)| *line)
    }
}

/// Writes a document.
///
/// # Errors
/// What is wrong with it, with the line.
pub(super) fn write<'a>(root: &Element<'a>) -> Result<MjmlOutput<'a>, String> {
    let find = |name: &str| root.elements().find(|child| child.name == name);
    let (head, body) = (find("mj-head"), find("mj-body"));
    for child in root.elements() {
        if !["mj-head", "mj-body", "mj-raw"].contains(&child.name.as_str()) {
            return Err(format!(
                "line {}: unexpected element <{}",
                child.line, child.name
            ));
        }
    }
    let mut defaults = Defaults::default();
    for child in head.into_iter().flat_map(Element::elements) {
        if child.name == "mj-attributes" {
            defaults.add(child);
        }
    }
    let mut writer = MjmlWriter {
        out: MjmlOutput::default(),
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
        Codes::default(),
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
    out: MjmlOutput<'a>,
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
        codes: Codes,
    ) {
        let out = &mut self.out;
        out.lines.push((out.source.len(), line));
        let _infallible = write!(out.source, "<{name}");
        let mut class = codes.class;
        for (name, value) in attributes {
            let _infallible = write!(out.source, " {name}=\"");
            if let Some(class) = class.take_if(|_| name == "css-class") {
                let _infallible = write!(out.source, "{class} ");
            }
            if name == "css-class" && value.contains(' ') && !value.contains("{{") {
                out.source.push_str(&out.kept.keep_classes(value));
            } else {
                encode(&mut out.source, value);
            }
            for (_, code) in codes.behind.iter().filter(|(of, _)| *of == name) {
                out.source.push_str(code);
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

    fn head(&mut self, head: &Element<'a>) -> Result<(), String> {
        self.start("mj-head", head.line, std::iter::empty(), Codes::default());
        if !self.defaults.all().is_empty() {
            self.start(
                "mj-attributes",
                head.line,
                std::iter::empty(),
                Codes::default(),
            );
            let all = self.defaults.all().to_vec();
            let mut all = all
                .into_iter()
                .map(|(name, value)| (name, value.to_owned()))
                .collect();
            adapt::attributes("mj-all", &mut all);
            self.start("mj-all", head.line, pairs(&all), Codes::default());
            self.end("mj-all");
            self.end("mj-attributes");
        }
        for child in &head.children {
            match child {
                MjmlNode::Raw(raw) => {
                    let code = self.out.kept.keep(*raw);
                    let _infallible = write!(self.out.source, "<mj-raw>{code}</mj-raw>");
                }
                MjmlNode::Element(child) => self.head_child(child)?,
            }
        }
        self.end("mj-head");
        Ok(())
    }

    fn head_child(&mut self, child: &Element<'a>) -> Result<(), String> {
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
                // It is printed as an attribute too.
                self.start(name, child.line, std::iter::empty(), Codes::default());
                encode(&mut self.out.source, child.content);
                self.end(name);
            }
            "mj-breakpoint" => {
                self.start(
                    name,
                    child.line,
                    child.attributes.iter().copied(),
                    Codes::default(),
                );
                self.end(name);
            }
            "mj-preview" | "mj-raw" | "mj-style" => {
                self.start(name, child.line, std::iter::empty(), Codes::default());
                self.content(child.content);
                self.end(name);
            }
            _ => return Err(format!("line {}: unexpected element <{name}", child.line)),
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
            let code = self.out.kept.keep(content);
            self.out.source.push_str(&code);
        }
    }

    fn element(&mut self, element: &Element<'a>, parent: Parent<'a, '_>) -> Result<(), String> {
        let name = element.name.as_str();
        if name == "mj-raw" {
            return self.raw(element.content, parent.name, element.line);
        }
        let resolved = self.defaults.resolve(element, parent.classes);
        let resolved = resolved.map_err(|problem| format!("line {}: {problem}", element.line))?;
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
        let gap = gap_above.map(|gap| self.out.kept.keep_gap(gap));
        let codes = Codes {
            class: gap.or(icon_right),
            behind: self.codes_behind(name, &mut attributes),
        };
        self.start(name, element.line, pairs(&attributes), codes);
        if name != "mj-carousel-image" {
            self.content(element.content);
        }
        let hero_width =
            (name == "mj-hero").then(|| self.body_width - adapt::padding_beside(&attributes));
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

    /// What mjml prints as the compiler cannot be told with an attribute of its own: it
    /// stands behind the value of another.
    fn codes_behind(
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
        // Of an accordion the compiler prints the padding behind those of the sides, and
        // no font weight of a title.
        let behind = match name {
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
        for (before, otherwise, name) in behind.into_iter().chain(sides) {
            if let Some(style) = value(attributes, name).map(|value| format!(";{name}:{value}")) {
                default(attributes, before, otherwise);
                let before = attributes.iter_mut().filter(|(name, _)| *name == before);
                before.for_each(|(_, value)| value.push_str(&style));
            }
        }
        let mut codes = Vec::new();
        for (behind, name) in also {
            if let Some(value) = value(attributes, name) {
                let text = format!("\" {name}=\"{}", in_quotes(value));
                codes.push((behind, self.out.kept.keep(text)));
            }
        }
        if name == "mj-table" && value(attributes, "border").is_some() {
            codes.push(("border", format!("`{UNDO}`")));
        }
        if ["mj-section", "mj-wrapper"].contains(&name) {
            codes.push(("border-radius", format!("`{RADIUS}`")));
        }
        codes
    }

    fn raw(&mut self, text: &'a str, parent: &str, line: usize) -> Result<(), String> {
        let kept = &mut self.out.kept;
        match parent {
            // The compiler would count it as a picture.
            "mj-carousel" if text.starts_with("<!--") => {}
            "mj-carousel" => {
                let found: String = text.trim().chars().take(40).collect();
                return Err(format!("line {line}: unexpected in mj-carousel: {found}"));
            }
            "mj-social" => self.out.source.push_str(&kept.keep_in_social(text)),
            // The compiler writes it into a comment for Outlook.
            "mj-wrapper" => {
                let end = kept.keep_raw("<![endif]-->");
                let code = kept.keep_raw(text);
                let begin = kept.keep_raw("<!--[if mso | IE]>");
                self.out.source.extend([end, code, begin]);
            }
            _ => self.out.source.push_str(&kept.keep_raw(text)),
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
