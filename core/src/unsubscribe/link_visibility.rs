//! What a reader sees of an HTML body: whether a link can be clicked in it, and where
//! something is shown that is added at its end. Read by a tokenizer that follows the
//! standard (html5gum).
//!
//! Nothing is shown, and no image loaded, of what stands in comments (conditional ones
//! are comments to most readers), in elements that hold text alone, data or choices, or
//! in one that its author hid (`style`). No text is read whose size is nothing, and no
//! picture of a pixel. An address that is written in a link leads where that link does. An
//! open comment, tag or element of these swallows what follows, so what is added stands
//! before it. Where the tree would have to be known for sure, an element is rather taken
//! for hidden: that costs a second link, not the only one.

use std::collections::HashMap;
use std::convert::Infallible;

use html5gum::emitters::callback::{Callback, CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

use super::hidden_style::{Style, TextSize};

/// Elements whose content is no part of the page, is shown as text alone or only after a
/// click, or in which no link can be clicked.
const HIDING: [&[u8]; 25] = [
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
/// Of these, what nothing ends: the page has no other content then.
const ENDLESS: [&[u8]; 2] = [b"plaintext", b"frameset"];
/// Elements without content.
const VOID: [&[u8]; 14] = [
    b"area", b"base", b"br", b"col", b"embed", b"hr", b"img", b"input", b"link", b"meta", b"param",
    b"source", b"track", b"wbr",
];
/// Elements that the next of their name ends.
const ENDED_BY_THE_NEXT: [&[u8]; 8] = [b"p", b"li", b"dt", b"dd", b"td", b"th", b"tr", b"a"];
/// Elements that end a paragraph.
const ENDING_PARAGRAPHS: [&[u8]; 26] = [
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

/// What is known of a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BodyVisibility {
    /// Where what is added is shown: at the end of its `body`, or before what would
    /// swallow it.
    pub(crate) end: usize,
    /// Whether the URL that was looked for can be clicked, or read.
    pub(super) has_link: bool,
}

/// Where something is shown that is added at the end of a body.
pub(crate) fn end(html: &str) -> usize {
    read(html, None).end
}

/// Reads a body and looks for a URL.
pub(super) fn read(html: &str, url: Option<&str>) -> BodyVisibility {
    let mut reader = VisibilityReader {
        html,
        url,
        tag: None,
        hidden: None,
        texts: Texts::default(),
        is_in_head: false,
        link: LinkState::None,
        has_link: false,
        body_end: None,
        open_comment: None,
    };
    let mut emitter = CallbackEmitter::new(&mut reader);
    emitter.naively_switch_states(true);
    let Ok(()) = Tokenizer::new_with_emitter(html, emitter).finish();
    BodyVisibility {
        end: reader.end(),
        has_link: reader.has_link,
    }
}

struct VisibilityReader<'a> {
    html: &'a str,
    url: Option<&'a str>,
    /// The start tag that is being read.
    tag: Option<HtmlTag>,
    /// The outermost element of which nothing is shown.
    hidden: Option<Hidden>,
    texts: Texts,
    /// A page's head is no part of it, though what does not belong there ends it.
    is_in_head: bool,
    link: LinkState,
    has_link: bool,
    /// Where the last `</body>` begins that ends the body.
    body_end: Option<usize>,
    /// Where a comment begins that nothing ends.
    open_comment: Option<usize>,
}

/// Where what is shown now leads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LinkState {
    None,
    There,
    Elsewhere,
}

/// Attributes that are read.
const ATTRIBUTES: [&[u8]; 5] = [b"href", b"style", b"width", b"height", b"size"];

struct HtmlTag {
    name: Vec<u8>,
    start: usize,
    /// The place of the attribute whose value comes next among [`ATTRIBUTES`].
    attribute: Option<usize>,
    has: [bool; ATTRIBUTES.len()],
    leads_there: bool,
    is_hidden: bool,
    style: Style,
    width: Option<f64>,
    height: Option<f64>,
}

struct Hidden {
    name: Vec<u8>,
    start: usize,
    /// How many of its name are open.
    depth: usize,
}

impl Callback<Infallible, usize> for &mut VisibilityReader<'_> {
    fn handle_event(&mut self, event: CallbackEvent<'_>, span: Span<usize>) -> Option<Infallible> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag = Some(HtmlTag {
                    name: name.to_vec(),
                    start: span.start,
                    attribute: None,
                    has: [false; ATTRIBUTES.len()],
                    leads_there: false,
                    is_hidden: HIDING.contains(&name),
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
        // Of several attributes of one name the first counts.
        self.attribute = known.filter(|place| !self.has[*place]);
        if let Some(place) = known {
            self.has[place] = true;
        }
        self.is_hidden |= name == b"hidden";
    }

    fn value(&mut self, value: &[u8], url: Option<&str>) {
        let Some(place) = self.attribute.take() else {
            return;
        };
        let value = value.trim_ascii();
        match ATTRIBUTES[place] {
            b"href" => {
                self.leads_there = url.is_some_and(|url| value.starts_with(url.as_bytes()));
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

    /// Whether it is a picture that can be seen: one of a pixel counts who reads.
    fn is_visible_image(&self) -> bool {
        let is_thin = |of_style: Option<f64>, own| of_style.or(own).is_some_and(|size| size <= 1.0);
        self.name == b"img"
            && !is_thin(self.style.width, self.width)
            && !is_thin(self.style.height, self.height)
    }

    fn text_size(&self) -> TextSize {
        // `<font size="2">`.
        let is_sized = self.name == b"font" && self.has[4];
        match self.style.text {
            TextSize::AsAround if is_sized => TextSize::Some,
            size @ (TextSize::AsAround | TextSize::Zero | TextSize::Some) => size,
        }
    }
}

/// The number with which an attribute begins.
fn pixels(value: &[u8]) -> Option<f64> {
    let is_of_number = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
    let digits = value.iter().take_while(is_of_number).count();
    std::str::from_utf8(&value[..digits]).ok()?.parse().ok()
}

/// The open elements, as far as the size of their text goes.
#[derive(Default)]
struct Texts {
    /// Names, and whether text in them is of no size.
    open: Vec<(Vec<u8>, bool)>,
    /// How many of each name are open, so that no end is looked for in vain.
    counts: HashMap<Vec<u8>, usize>,
}

impl Texts {
    fn are_hidden(&self) -> bool {
        self.open.last().is_some_and(|(_, is_hidden)| *is_hidden)
    }

    fn open(&mut self, name: &[u8], size: TextSize) {
        let last = self.open.last().map(|(last, _)| last.as_slice());
        let is_next = last == Some(name) && ENDED_BY_THE_NEXT.contains(&name);
        if is_next || last == Some(b"p") && ENDING_PARAGRAPHS.contains(&name) {
            self.pop();
        }
        let is_hidden = match size {
            TextSize::AsAround => self.are_hidden(),
            TextSize::Zero => true,
            TextSize::Some => false,
        };
        self.open.push((name.to_vec(), is_hidden));
        *self.counts.entry(name.to_vec()).or_default() += 1;
    }

    fn close(&mut self, name: &[u8]) {
        if self.counts.get(name).is_none_or(|count| *count == 0) {
            return;
        }
        while self.pop().is_some_and(|ended| ended != name) {}
    }

    fn pop(&mut self) -> Option<Vec<u8>> {
        let (name, _) = self.open.pop()?;
        if let Some(count) = self.counts.get_mut(&name) {
            *count -= 1;
        }
        Some(name)
    }
}

impl VisibilityReader<'_> {
    fn open(&mut self, tag: HtmlTag) {
        let name = tag.name.as_slice();
        if let Some(hidden) = &mut self.hidden {
            let is_next = hidden.name == name;
            let is_ended = (is_next && ENDED_BY_THE_NEXT.contains(&name))
                || (hidden.name == b"p" && ENDING_PARAGRAPHS.contains(&name));
            if !is_ended {
                hidden.depth += usize::from(is_next);
                return;
            }
            self.hidden = None;
        }
        if name == b"a" {
            // Some readers drop a link within another one.
            self.link = match self.link {
                LinkState::Elsewhere => LinkState::Elsewhere,
                _ if !tag.has_href() => LinkState::None,
                LinkState::None | LinkState::There if tag.leads_there && !tag.is_hidden => {
                    LinkState::There
                }
                LinkState::None | LinkState::There => LinkState::Elsewhere,
            };
        }
        match name {
            b"head" => self.is_in_head = true,
            b"body" => self.is_in_head = false,
            _ => {}
        }
        let is_void = VOID.contains(&name);
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
            self.texts.open(name, tag.text_size());
        }
        self.has_link |=
            self.link == LinkState::There && !self.is_in_head && tag.is_visible_image();
    }

    fn close(&mut self, name: &[u8], start: usize) {
        if let Some(hidden) = &mut self.hidden {
            if hidden.name == name && !ENDLESS.contains(&name) {
                hidden.depth -= 1;
                if hidden.depth == 0 {
                    self.hidden = None;
                }
            }
            return;
        }
        self.texts.close(name);
        match name {
            b"a" => self.link = LinkState::None,
            b"head" => self.is_in_head = false,
            b"body" if self.is_there(start) => self.body_end = Some(start),
            _ => {}
        }
    }

    fn text(&mut self, text: &[u8]) {
        let is_shown = self.hidden.is_none() && !self.is_in_head && !self.texts.are_hidden();
        let Some(url) = self.url.filter(|_| is_shown && !self.has_link) else {
            return;
        };
        let text = String::from_utf8_lossy(text);
        self.has_link = match self.link {
            LinkState::There => !text.chars().all(is_blank),
            LinkState::None => text.contains(url),
            LinkState::Elsewhere => false,
        };
    }

    /// Whether a tag or a comment begins there. A tokenizer that miscounts must not spoil
    /// a body.
    fn is_there(&self, start: usize) -> bool {
        let rest = self.html.get(start..);
        rest.is_some_and(|rest| rest.starts_with('<'))
    }

    fn end(&self) -> usize {
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
        let first = open.filter(|start| self.is_there(*start)).min();
        first.unwrap_or(self.html.len())
    }
}

/// Whether nothing ends what begins a text: a comment, or what is read as one.
fn is_open_comment(text: &str) -> bool {
    match text.strip_prefix("<!--") {
        Some(rest) => {
            let is_short = rest.starts_with('>') || rest.starts_with("->");
            !is_short && !rest.ends_with("-->") && !rest.ends_with("--!>")
        }
        None => !text.ends_with('>'),
    }
}

/// Where a tag begins that a body ends in the middle of.
fn open_tag(html: &str) -> Option<usize> {
    let start = html.rfind('<')?;
    let mut rest = html[start + 1..].chars();
    let is_tag = rest
        .next()
        .is_none_or(|next| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?'));
    (is_tag && !html[start..].contains('>')).then_some(start)
}

/// Whether a character shows nothing.
fn is_blank(character: char) -> bool {
    character.is_whitespace()
        || matches!(
            character,
            '\u{ad}' | '\u{34f}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}'
        )
}
