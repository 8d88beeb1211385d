//! Scans an HTML body for a visible link and for the position at which appended HTML is
//! visible. The tokenizer (html5gum) follows the HTML standard.
//!
//! These are invisible: comments (most mail programs treat conditional comments as
//! comments), elements that contain raw text, data or choices, elements that an inline
//! style hides (`hidden_style`), text of size zero, and images of one
//! pixel. A URL that is the text of a link to another URL does not count. An unclosed
//! comment, tag or invisible element swallows the text after it, so HTML is appended before
//! it. The scan keeps no tree. If it cannot be sure, it takes an element for hidden: the
//! mail then has a second link, instead of none.

use std::collections::HashMap;
use std::convert::Infallible;

use html5gum::emitters::callback::{Callback, CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

use super::hidden_style::{Style, TextSize};

/// Elements whose content is not part of the page, is shown as plain text or only after a
/// click, or in which a link cannot be clicked.
const HIDING_ELEMENTS: [&[u8]; 25] = [
    b"script",
    b"style",
    b"title",
    b"textarea",
    b"xmp",
    b"iframe",
    b"noembed",
    b"noframes",
    b"noscript",
    b"plaintext",
    b"template",
    b"select",
    b"datalist",
    b"object",
    b"applet",
    b"video",
    b"audio",
    b"canvas",
    b"meter",
    b"progress",
    b"details",
    b"dialog",
    b"button",
    b"frameset",
    b"map",
];
/// The elements among them that no end tag closes.
const NEVER_CLOSED: [&[u8]; 2] = [b"plaintext", b"frameset"];
/// Elements without content and end tag.
const VOID_ELEMENTS: [&[u8]; 14] = [
    b"area", b"base", b"br", b"col", b"embed", b"hr", b"img", b"input", b"link", b"meta", b"param",
    b"source", b"track", b"wbr",
];
/// Elements that a following start tag of the same name closes.
const CLOSED_BY_SIBLING: [&[u8]; 8] = [b"p", b"li", b"dt", b"dd", b"td", b"th", b"tr", b"a"];
/// Elements whose start tag closes an open paragraph.
const CLOSING_PARAGRAPH: [&[u8]; 26] = [
    b"address",
    b"article",
    b"aside",
    b"blockquote",
    b"center",
    b"div",
    b"dl",
    b"fieldset",
    b"figure",
    b"footer",
    b"form",
    b"h1",
    b"h2",
    b"h3",
    b"h4",
    b"h5",
    b"h6",
    b"header",
    b"hr",
    b"main",
    b"nav",
    b"ol",
    b"pre",
    b"section",
    b"table",
    b"ul",
];

/// The result of a scan.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BodyScan {
    /// The byte offset at which appended HTML is visible: the end of `body`, or the start
    /// of an unclosed construct.
    pub(crate) append_position: usize,
    /// Whether a reader can click or read the searched URL.
    pub(super) has_link: bool,
}

/// The byte offset at which appended HTML is visible.
pub(crate) fn append_position(html: &str) -> usize {
    scan(html, None).append_position
}

/// Scans a body and searches it for a URL.
pub(super) fn scan(html: &str, url: Option<&str>) -> BodyScan {
    let mut scanner = BodyScanner {
        html,
        url,
        tag: None,
        hidden: None,
        open_elements: OpenElements::default(),
        is_in_head: false,
        link: LinkState::None,
        has_link: false,
        body_end: None,
        open_comment: None,
    };
    let mut emitter = CallbackEmitter::new(&mut scanner);
    emitter.naively_switch_states(true);
    let Ok(()) = Tokenizer::new_with_emitter(html, emitter).finish();
    BodyScan {
        append_position: scanner.append_position(),
        has_link: scanner.has_link,
    }
}

struct BodyScanner<'a> {
    html: &'a str,
    url: Option<&'a str>,
    /// The start tag that is being read.
    tag: Option<HtmlTag>,
    /// The outermost hidden element that is open.
    hidden: Option<Hidden>,
    open_elements: OpenElements,
    is_in_head: bool,
    link: LinkState,
    has_link: bool,
    /// The start of the last `</body>` outside hidden elements.
    body_end: Option<usize>,
    /// The start of an unclosed comment.
    open_comment: Option<usize>,
}

/// The link around the current position.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LinkState {
    None,
    ToUrl,
    ToOther,
}

/// The attributes that the scan reads.
const ATTRIBUTES: [&[u8]; 5] = [b"href", b"style", b"width", b"height", b"size"];

struct HtmlTag {
    name: Vec<u8>,
    start: usize,
    /// The index in [`ATTRIBUTES`] of the attribute whose value comes next.
    attribute: Option<usize>,
    has: [bool; ATTRIBUTES.len()],
    is_to_url: bool,
    is_hidden: bool,
    style: Style,
    width: Option<f64>,
    height: Option<f64>,
}

struct Hidden {
    name: Vec<u8>,
    start: usize,
    /// The number of open elements of this name.
    depth: usize,
}

impl Callback<Infallible, usize> for &mut BodyScanner<'_> {
    fn handle_event(&mut self, event: CallbackEvent<'_>, span: Span<usize>) -> Option<Infallible> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag = Some(HtmlTag {
                    name: name.to_vec(),
                    start: span.start,
                    attribute: None,
                    has: [false; ATTRIBUTES.len()],
                    is_to_url: false,
                    is_hidden: HIDING_ELEMENTS.contains(&name),
                    style: Style::default(),
                    width: None,
                    height: None,
                });
            }
            CallbackEvent::AttributeName { name } => {
                if let Some(tag) = &mut self.tag {
                    tag.name_attribute(name);
                }
            }
            CallbackEvent::AttributeValue { value } => {
                if let Some(tag) = &mut self.tag {
                    tag.value(value, self.url);
                }
            }
            CallbackEvent::CloseStartTag { .. } => {
                if let Some(tag) = self.tag.take() {
                    self.open(tag);
                }
            }
            CallbackEvent::EndTag { name } => {
                self.tag = None;
                self.close(name, span.start);
            }
            CallbackEvent::String { value } => self.text(value),
            CallbackEvent::Comment { .. } => {
                let text = self.html.get(span.start..).unwrap_or_default();
                let is_last = span.end >= self.html.len();
                if is_last && is_open_comment(text) {
                    self.open_comment = Some(span.start);
                }
            }
            CallbackEvent::Doctype { .. } | CallbackEvent::Error(_) => {}
        }
        None
    }
}

impl HtmlTag {
    fn name_attribute(&mut self, name: &[u8]) {
        let known = ATTRIBUTES.iter().position(|known| *known == name);
        // HTML ignores repeated attributes after the first.
        self.attribute = known.filter(|index| !self.has[*index]);
        if let Some(index) = known {
            self.has[index] = true;
        }
        self.is_hidden |= name == b"hidden";
    }

    fn value(&mut self, value: &[u8], url: Option<&str>) {
        let Some(index) = self.attribute.take() else {
            return;
        };
        let value = value.trim_ascii();
        match ATTRIBUTES[index] {
            b"href" => {
                self.is_to_url = url.is_some_and(|url| value.starts_with(url.as_bytes()));
            }
            b"style" => {
                self.style = Style::read(&String::from_utf8_lossy(value));
                self.is_hidden |= self.style.hides;
            }
            b"width" => self.width = pixels(value),
            b"height" => self.height = pixels(value),
            _ => {}
        }
    }

    fn has_href(&self) -> bool {
        self.has[0]
    }

    /// Whether it is an image of more than one pixel. Smaller ones are tracking pixels.
    fn is_visible_image(&self) -> bool {
        let is_pixel =
            |style_size: Option<f64>, own| style_size.or(own).is_some_and(|size| size <= 1.0);
        self.name == b"img"
            && !is_pixel(self.style.width, self.width)
            && !is_pixel(self.style.height, self.height)
    }

    fn text_size(&self) -> TextSize {
        // `<font size="2">`.
        let is_sized = self.name == b"font" && self.has[4];
        match self.style.text {
            TextSize::Inherited if is_sized => TextSize::Some,
            size @ (TextSize::Inherited | TextSize::Zero | TextSize::Some) => size,
        }
    }
}

/// The number at the start of an attribute value.
fn pixels(value: &[u8]) -> Option<f64> {
    let is_of_number = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
    let digits = value.iter().take_while(is_of_number).count();
    std::str::from_utf8(&value[..digits]).ok()?.parse().ok()
}

/// The open elements and whether their text has size zero.
#[derive(Default)]
struct OpenElements {
    /// The name of each element, and whether its text has size zero.
    stack: Vec<(Vec<u8>, bool)>,
    /// The number of open elements by name. An unmatched end tag then costs no search of
    /// the stack.
    counts: HashMap<Vec<u8>, usize>,
}

impl OpenElements {
    fn has_hidden_text(&self) -> bool {
        self.stack.last().is_some_and(|(_, is_hidden)| *is_hidden)
    }

    fn open(&mut self, name: &[u8], size: TextSize) {
        let last = self.stack.last().map(|(last, _)| last.as_slice());
        let is_sibling = last == Some(name) && CLOSED_BY_SIBLING.contains(&name);
        if is_sibling || last == Some(b"p") && CLOSING_PARAGRAPH.contains(&name) {
            self.pop();
        }
        let is_hidden = match size {
            TextSize::Inherited => self.has_hidden_text(),
            TextSize::Zero => true,
            TextSize::Some => false,
        };
        self.stack.push((name.to_vec(), is_hidden));
        *self.counts.entry(name.to_vec()).or_default() += 1;
    }

    fn close(&mut self, name: &[u8]) {
        if self.counts.get(name).is_none_or(|count| *count == 0) {
            return;
        }
        while self.pop().is_some_and(|closed| closed != name) {}
    }

    fn pop(&mut self) -> Option<Vec<u8>> {
        let (name, _) = self.stack.pop()?;
        if let Some(count) = self.counts.get_mut(&name) {
            *count -= 1;
        }
        Some(name)
    }
}

impl BodyScanner<'_> {
    fn open(&mut self, tag: HtmlTag) {
        let name = tag.name.as_slice();
        if let Some(hidden) = &mut self.hidden {
            let is_same_name = hidden.name == name;
            let is_closed = (is_same_name && CLOSED_BY_SIBLING.contains(&name))
                || (hidden.name == b"p" && CLOSING_PARAGRAPH.contains(&name));
            if !is_closed {
                hidden.depth += usize::from(is_same_name);
                return;
            }
            self.hidden = None;
        }
        if name == b"a" {
            // Some mail programs drop a link inside another link.
            self.link = match self.link {
                LinkState::ToOther => LinkState::ToOther,
                _ if !tag.has_href() => LinkState::None,
                LinkState::None | LinkState::ToUrl if tag.is_to_url && !tag.is_hidden => {
                    LinkState::ToUrl
                }
                LinkState::None | LinkState::ToUrl => LinkState::ToOther,
            };
        }
        match name {
            b"head" => self.is_in_head = true,
            b"body" => self.is_in_head = false,
            _ => {}
        }
        let is_void = VOID_ELEMENTS.contains(&name);
        let is_hidden = tag.is_hidden && !matches!(name, b"html" | b"head" | b"body");
        if is_hidden {
            self.hidden = (!is_void).then_some(Hidden {
                start: tag.start,
                depth: 1,
                name: tag.name,
            });
            return;
        }
        if !is_void {
            self.open_elements.open(name, tag.text_size());
        }
        self.has_link |=
            self.link == LinkState::ToUrl && !self.is_in_head && tag.is_visible_image();
    }

    fn close(&mut self, name: &[u8], start: usize) {
        if let Some(hidden) = &mut self.hidden {
            if hidden.name == name && !NEVER_CLOSED.contains(&name) {
                hidden.depth -= 1;
                if hidden.depth == 0 {
                    self.hidden = None;
                }
            }
            return;
        }
        self.open_elements.close(name);
        match name {
            b"a" => self.link = LinkState::None,
            b"head" => self.is_in_head = false,
            b"body" if self.is_markup(start) => self.body_end = Some(start),
            _ => {}
        }
    }

    fn text(&mut self, text: &[u8]) {
        let is_visible =
            self.hidden.is_none() && !self.is_in_head && !self.open_elements.has_hidden_text();
        let Some(url) = self.url.filter(|_| is_visible && !self.has_link) else {
            return;
        };
        let text = String::from_utf8_lossy(text);
        self.has_link = match self.link {
            LinkState::ToUrl => !text.chars().all(is_blank),
            LinkState::None => text.contains(url),
            LinkState::ToOther => false,
        };
    }

    /// Whether a tag or a comment starts at this offset. A wrong offset from the tokenizer
    /// must not damage a body.
    fn is_markup(&self, start: usize) -> bool {
        let rest = self.html.get(start..);
        rest.is_some_and(|rest| rest.starts_with('<'))
    }

    fn append_position(&self) -> usize {
        if let Some(end) = self.body_end {
            return end;
        }
        let open = [
            self.hidden.as_ref().map(|hidden| hidden.start),
            self.open_comment,
            self.tag.as_ref().map(|tag| tag.start),
            open_tag(self.html),
        ];
        let open = open.into_iter().flatten();
        let first = open.filter(|start| self.is_markup(*start)).min();
        first.unwrap_or(self.html.len())
    }
}

/// Whether the comment at the start of a text is unclosed. A bogus comment (`<!x`, `<?x`)
/// counts too.
fn is_open_comment(text: &str) -> bool {
    match text.strip_prefix("<!--") {
        Some(rest) => {
            let is_short = rest.starts_with('>') || rest.starts_with("->");
            !is_short && !rest.ends_with("-->") && !rest.ends_with("--!>")
        }
        None => !text.ends_with('>'),
    }
}

/// The start of a tag that is cut off by the end of the body.
fn open_tag(html: &str) -> Option<usize> {
    let start = html.rfind('<')?;
    let mut rest = html[start + 1..].chars();
    let is_tag = rest
        .next()
        .is_none_or(|next| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?'));
    (is_tag && !html[start..].contains('>')).then_some(start)
}

/// Whether a character is invisible.
fn is_blank(character: char) -> bool {
    character.is_whitespace()
        || matches!(
            character,
            '\u{ad}' | '\u{34f}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}'
        )
}
