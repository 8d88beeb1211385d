//! What a reader sees of an HTML body: whether a link can be clicked in it, and where
//! something is shown that is added at its end. Read by a tokenizer that follows the
//! standard (html5gum).
//!
//! Nothing is shown, and no image loaded, of what stands in comments (conditional ones
//! are comments to most readers), in elements that hold text alone, data or choices, or
//! in one that its author hid. An open comment, tag or element of these swallows what
//! follows, so what is added stands before it. Where the tree would have to be known for
//! sure, an element is rather taken for hidden: that costs a second link, not the only
//! one.

use std::convert::Infallible;

use html5gum::emitters::callback::{Callback, CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

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
pub(crate) struct Shown {
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
pub(super) fn read(html: &str, url: Option<&str>) -> Shown {
    let mut reader = Reader {
        html,
        url,
        tag: None,
        hidden: None,
        is_in_link: false,
        has_link: false,
        body_end: None,
        open_comment: None,
    };
    let mut emitter = CallbackEmitter::new(&mut reader);
    emitter.naively_switch_states(true);
    let Ok(()) = Tokenizer::new_with_emitter(html, emitter).finish();
    Shown {
        end: reader.end(),
        has_link: reader.has_link,
    }
}

struct Reader<'a> {
    html: &'a str,
    url: Option<&'a str>,
    /// The start tag that is being read.
    tag: Option<Tag>,
    /// The outermost element of which nothing is shown.
    hidden: Option<Hidden>,
    /// Whether what is shown now leads to the URL.
    is_in_link: bool,
    has_link: bool,
    /// Where the last `</body>` begins that ends the body.
    body_end: Option<usize>,
    /// Where a comment begins that nothing ends.
    open_comment: Option<usize>,
}

struct Tag {
    name: Vec<u8>,
    start: usize,
    attribute: Vec<u8>,
    has_href: bool,
    leads_there: bool,
    is_hidden: bool,
}

struct Hidden {
    name: Vec<u8>,
    start: usize,
    /// How many of its name are open.
    depth: usize,
}

impl Callback<Infallible, usize> for &mut Reader<'_> {
    fn handle_event(&mut self, event: CallbackEvent<'_>, span: Span<usize>) -> Option<Infallible> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag = Some(Tag {
                    name: name.to_vec(),
                    start: span.start,
                    attribute: Vec::new(),
                    has_href: false,
                    leads_there: false,
                    is_hidden: HIDING.contains(&name),
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

impl Tag {
    fn name_attribute(&mut self, name: &[u8]) {
        self.attribute.clear();
        // Of several attributes of one name the first counts.
        let is_second = name == b"href" && self.has_href;
        if !is_second {
            self.attribute.extend_from_slice(name);
        }
        self.has_href |= name == b"href";
        self.is_hidden |= name == b"hidden";
    }

    fn value(&mut self, value: &[u8], url: Option<&str>) {
        let is_link = matches!(self.name.as_slice(), b"a" | b"area");
        if is_link && self.attribute == b"href" {
            let value = value.trim_ascii();
            self.leads_there = url.is_some_and(|url| value.starts_with(url.as_bytes()));
        }
        self.is_hidden |= self.attribute == b"style" && hides(value);
    }
}

impl Reader<'_> {
    fn open(&mut self, tag: Tag) {
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
            self.is_in_link = tag.leads_there && !tag.is_hidden;
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
        self.has_link |= name == b"img" && self.is_in_link;
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
        match name {
            b"a" => self.is_in_link = false,
            b"body" if self.is_there(start) => self.body_end = Some(start),
            _ => {}
        }
    }

    fn text(&mut self, text: &[u8]) {
        let Some(url) = self.url.filter(|_| self.hidden.is_none() && !self.has_link) else {
            return;
        };
        let text = String::from_utf8_lossy(text);
        self.has_link = if self.is_in_link {
            !text.chars().all(is_blank)
        } else {
            text.contains(url)
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

/// Whether an element of this style is not seen.
fn hides(style: &[u8]) -> bool {
    let style = String::from_utf8_lossy(style).to_ascii_lowercase();
    style.split(';').any(|declaration| {
        let Some((property, value)) = declaration.split_once(':') else {
            return false;
        };
        let value = value.split('!').next().unwrap_or_default().trim();
        matches!(
            (property.trim(), value),
            ("display", "none")
                | ("visibility", "hidden" | "collapse")
                | ("opacity", "0")
                | ("max-height", "0" | "0px")
        )
    })
}

/// Whether a character shows nothing.
fn is_blank(character: char) -> bool {
    character.is_whitespace()
        || matches!(
            character,
            '\u{ad}' | '\u{34f}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}'
        )
}
