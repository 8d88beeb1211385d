//! Reads marked HTML, token by token, and tells the writer what stands where.

use std::convert::Infallible;

use html5gum::emitters::callback::{Callback, CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

use super::marks::{MARK_BEGIN, MARK_END, MarkedSource, TagRole};
use super::writer::TextWriter;
use crate::unsubscribe::hides;

/// Elements whose content is no text of the page.
const SKIPPED: [&[u8]; 15] = [
    b"head",
    b"title",
    b"style",
    b"script",
    b"template",
    b"svg",
    b"math",
    b"iframe",
    b"object",
    b"audio",
    b"video",
    b"canvas",
    b"select",
    b"datalist",
    b"textarea",
];
/// Elements without content.
const VOID: [&[u8]; 14] = [
    b"area", b"base", b"br", b"col", b"embed", b"hr", b"img", b"input", b"link", b"meta", b"param",
    b"source", b"track", b"wbr",
];
/// Elements with a blank line before and after them.
const PARAGRAPHS: [&[u8]; 12] = [
    b"p",
    b"h1",
    b"h2",
    b"h3",
    b"h4",
    b"h5",
    b"h6",
    b"blockquote",
    b"dl",
    b"figure",
    b"pre",
    b"table",
];
/// Elements that begin and end a line.
const LINES: [&[u8]; 20] = [
    b"address",
    b"article",
    b"aside",
    b"body",
    b"caption",
    b"center",
    b"dd",
    b"details",
    b"div",
    b"dt",
    b"fieldset",
    b"figcaption",
    b"footer",
    b"form",
    b"header",
    b"main",
    b"nav",
    b"section",
    b"summary",
    b"tr",
];
/// URLs with these beginnings lead nowhere from a text.
const NO_URLS: [&str; 3] = ["#", "javascript:", "data:"];
/// Bytes of an attribute that are kept.
const VALUE_BYTES_MAX: usize = 8_192;

/// The text of marked HTML, with the markers.
pub(super) fn read(marked: &MarkedSource) -> String {
    let mut reader = HtmlReader {
        marked,
        writer: TextWriter::new(marked.html.len() / 2),
        tag: None,
        skipped: None,
        lists: Vec::new(),
        blocks: 0,
        preformatted: 0,
        link: None,
    };
    let mut emitter = CallbackEmitter::new(&mut reader);
    // Text in styles, scripts and similar elements is not parsed as tags.
    emitter.naively_switch_states(true);
    let Ok(()) = Tokenizer::new_with_emitter(&*marked.html, emitter).finish();
    reader.end_link();
    reader.writer.finish()
}

struct HtmlReader<'m> {
    marked: &'m MarkedSource,
    writer: TextWriter,
    /// The start tag that is being read.
    tag: Option<StartTag>,
    /// The element whose content is skipped.
    skipped: Option<Skipped>,
    lists: Vec<OpenList>,
    /// Open blocks of Handlebars.
    blocks: usize,
    preformatted: usize,
    link: Option<Link>,
}

struct StartTag {
    name: Vec<u8>,
    attribute: TextAttribute,
    href: String,
    alt: String,
    is_hidden: bool,
}

#[derive(Clone, Copy)]
enum TextAttribute {
    Href,
    Alt,
    Style,
    Other,
}

struct Skipped {
    name: Vec<u8>,
    /// Open elements of this name.
    depth: usize,
}

struct OpenList {
    /// The number of the last item, in a list with numbers.
    number: Option<u32>,
    /// The blocks of Handlebars around it.
    blocks: usize,
}

struct Link {
    url: String,
    /// The offset of its text.
    start: usize,
}

impl Callback<Infallible, ()> for &mut HtmlReader<'_> {
    fn handle_event(&mut self, event: CallbackEvent<'_>, _: Span<()>) -> Option<Infallible> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag = Some(StartTag {
                    name: name.to_vec(),
                    attribute: TextAttribute::Other,
                    href: String::new(),
                    alt: String::new(),
                    is_hidden: SKIPPED.contains(&name),
                });
            }
            CallbackEvent::AttributeName { name } => {
                if let Some(tag) = &mut self.tag {
                    tag.is_hidden |= name == b"hidden";
                    tag.attribute = match name {
                        b"href" => TextAttribute::Href,
                        b"alt" => TextAttribute::Alt,
                        b"style" => TextAttribute::Style,
                        _ => TextAttribute::Other,
                    };
                }
            }
            CallbackEvent::AttributeValue { value } => {
                if let Some(tag) = &mut self.tag {
                    tag.value(value);
                }
            }
            CallbackEvent::CloseStartTag { self_closing } => {
                if let Some(tag) = self.tag.take() {
                    self.start(tag, self_closing);
                }
            }
            CallbackEvent::EndTag { name } => {
                self.tag = None;
                self.end(name);
            }
            CallbackEvent::String { value } => {
                if self.skipped.is_none() {
                    self.text(&String::from_utf8_lossy(value));
                }
            }
            CallbackEvent::Comment { .. }
            | CallbackEvent::Doctype { .. }
            | CallbackEvent::Error(_) => {}
        }
        None
    }
}

impl StartTag {
    fn value(&mut self, value: &[u8]) {
        let value = String::from_utf8_lossy(&value[..value.len().min(VALUE_BYTES_MAX)]);
        match self.attribute {
            TextAttribute::Href => self.href = value.trim().to_owned(),
            TextAttribute::Alt => self.alt = value.into_owned(),
            // A tag may make the style another.
            TextAttribute::Style => self.is_hidden |= !value.contains(MARK_BEGIN) && hides(&value),
            TextAttribute::Other => {}
        }
    }
}

impl HtmlReader<'_> {
    fn start(&mut self, tag: StartTag, self_closing: bool) {
        let name = &*tag.name;
        if let Some(skipped) = &mut self.skipped {
            if skipped.name == name && name != b"p" {
                skipped.depth += 1;
            }
            // What HTML closes without an end tag.
            let is_over = match &*skipped.name {
                b"head" => name == b"body",
                b"p" => name == b"p",
                _ => false,
            };
            if !is_over {
                return;
            }
            self.skipped = None;
        }
        if tag.is_hidden {
            let is_empty =
                VOID.contains(&name) || (self_closing && matches!(name, b"svg" | b"math"));
            if !is_empty {
                let name = tag.name;
                self.skipped = Some(Skipped { name, depth: 1 });
            }
            return;
        }
        match name {
            b"br" => self.writer.line_break(),
            b"hr" => self.writer.rule(),
            b"img" => self.text(&tag.alt),
            b"td" | b"th" => self.writer.space(),
            b"ul" | b"ol" | b"menu" => {
                self.writer.begin_list();
                self.lists.push(OpenList {
                    number: (name == b"ol").then_some(0),
                    blocks: self.blocks,
                });
            }
            b"li" => {
                let bullet = self.bullet();
                self.writer.begin_item(bullet);
            }
            b"a" => {
                self.end_link();
                let start = self.writer.offset();
                let url = tag.href;
                let leads = !url.is_empty() && !NO_URLS.iter().any(|no| url.starts_with(no));
                self.link = leads.then_some(Link { url, start });
            }
            _ => self.boundary(name),
        }
        self.preformatted += usize::from(name == b"pre");
    }

    fn end(&mut self, name: &[u8]) {
        if let Some(skipped) = &mut self.skipped {
            if skipped.name == name {
                skipped.depth -= 1;
                if skipped.depth == 0 {
                    self.skipped = None;
                }
            }
            return;
        }
        match name {
            b"td" | b"th" => self.writer.space(),
            b"ul" | b"ol" | b"menu" => {
                if self.lists.pop().is_some() {
                    self.writer.end_list();
                }
            }
            b"li" => self.writer.end_item(),
            b"a" => self.end_link(),
            b"br" => self.writer.line_break(),
            _ => self.boundary(name),
        }
        self.preformatted -= usize::from(name == b"pre").min(self.preformatted);
    }

    fn boundary(&mut self, name: &[u8]) {
        if PARAGRAPHS.contains(&name) {
            self.writer.break_lines(2);
        } else if LINES.contains(&name) {
            self.writer.break_lines(1);
        }
    }

    /// The mark of the next item. An item that a loop repeats has no number.
    fn bullet(&mut self) -> String {
        let blocks = self.blocks;
        match self.lists.last_mut() {
            Some(OpenList {
                number: Some(number),
                blocks: around,
            }) if *around == blocks => {
                *number += 1;
                format!("{number}. ")
            }
            Some(_) | None => "- ".to_owned(),
        }
    }

    /// Text with markers.
    fn text(&mut self, text: &str) {
        for (index, part) in text.split(MARK_BEGIN).enumerate() {
            let literal = match part.split_once(MARK_END) {
                Some((number, literal)) if index > 0 => {
                    self.tag(number);
                    literal
                }
                Some(_) | None => part,
            };
            if self.preformatted > 0 {
                self.writer.preformatted(literal);
            } else {
                self.writer.text(literal);
            }
        }
    }

    fn tag(&mut self, number: &str) {
        let role = number
            .parse()
            .map_or(TagRole::Value, |number| self.marked.role(number));
        let mark = format!("{MARK_BEGIN}{number}{MARK_END}");
        match role {
            TagRole::BlockBegin => self.blocks += 1,
            TagRole::BlockEnd => self.blocks = self.blocks.saturating_sub(1),
            TagRole::BlockMiddle | TagRole::Value => {}
        }
        self.writer.tag(&mark, role);
    }

    /// Writes the URL of a link after its text, unless the text is the URL.
    fn end_link(&mut self) {
        let Some(Link { url, start }) = self.link.take() else {
            return;
        };
        let text = self.writer.since(start).trim();
        let address = url
            .strip_prefix("mailto:")
            .or_else(|| url.strip_prefix("tel:"));
        if text == url || address == Some(text) {
            return;
        }
        if text.is_empty() {
            self.text(&url);
            return;
        }
        let pending = self.writer.take_pending();
        self.writer.space();
        self.text(&format!("({url})"));
        self.writer.put_pending(pending);
    }
}
