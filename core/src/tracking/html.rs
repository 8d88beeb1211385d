//! Finds the positions of the links and of the pixel in an HTML body. The body is parsed
//! once for all recipients of a message, by a tokenizer that follows the HTML standard
//! (html5gum), so that it finds the same links as a browser. A recipient's body is the
//! original body with other text at these positions.
//!
//! Tracked links are the `href` of `a` and `area` with http or https. Not tracked are other
//! schemes, relative URLs, links with the unsubscribe placeholder, links to Waypost's own
//! pages, links that their author excluded, and everything in comments (conditional ones
//! too), scripts, styles and similar elements.

use std::convert::Infallible;
use std::ops::Range;
use std::str;

use html5gum::emitters::callback::{Callback, CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use url::Url;

use super::token::{URL_BYTES_MAX, chars};
use crate::config::PUBLIC_URL_BYTES_MAX;
use crate::unsubscribe::{link_insertion, link_visibility};

/// Tracked links in one body. SendGrid has the same limit. Links after these stay as they
/// are.
const LINKS_MAX: usize = 1_000;
/// Bytes that tracked links may add to a body.
const GROWTH_BYTES_MAX: usize = 1 << 20;

/// Attributes that exclude a link from tracking: Waypost's own, and those of other services,
/// which templates may already contain. `None` stands for any value.
const NO_TRACK_ATTRIBUTES: [(&str, Option<&str>); 6] = [
    ("data-waypost-no-track", None),
    // Postmark, Amazon SES, SendGrid, Mailgun, SparkPost.
    ("data-pm-no-track", None),
    ("ses:no-track", None),
    ("clicktracking", Some("off")),
    ("disable-tracking", Some("true")),
    ("data-msys-clicktrack", Some("0")),
];

/// The positions of the links and the pixel in a body.
#[derive(Debug)]
pub(super) struct BodyPositions {
    links: Vec<LinkPosition>,
    pixel: usize,
}

#[derive(Debug, PartialEq, Eq)]
struct LinkPosition {
    /// The range of the attribute value, without quotes.
    range: Range<usize>,
    url: String,
}

impl BodyPositions {
    pub(super) fn links(&self) -> usize {
        self.links.len()
    }

    /// Parses a body. Links that start with `own_prefix` lead to Waypost itself and are not
    /// tracked.
    pub(super) fn of(html: &str, own_prefix: &str) -> Self {
        let mut positions = Self {
            links: Vec::new(),
            pixel: link_visibility::append_position(html),
        };
        let mut emitter = CallbackEmitter::new(LinkReader {
            html,
            own_prefix,
            growth_left: GROWTH_BYTES_MAX,
            anchor: None,
            positions: &mut positions,
        });
        // Text inside scripts, styles and similar elements is not parsed as tags.
        emitter.naively_switch_states(true);
        let Ok(()) = Tokenizer::new_with_emitter(html, emitter).finish();
        positions
    }

    /// Only the position of the pixel.
    pub(super) fn without_links(self) -> Self {
        Self {
            links: Vec::new(),
            ..self
        }
    }

    /// The body with the links replaced by `link` and with the pixel inserted.
    pub(super) fn replace(
        &self,
        html: &str,
        mut link: impl FnMut(&str) -> String,
        pixel: Option<&str>,
    ) -> String {
        let mut replaced = String::with_capacity(html.len() + 256 * self.links.len() + 512);
        let mut pixel = pixel.map(|pixel| (self.pixel, pixel));
        let mut done = 0;
        for LinkPosition { range, url } in &self.links {
            if let Some((at, pixel)) = pixel.take_if(|(at, _)| *at <= range.start) {
                replaced.push_str(&html[done..at]);
                replaced.push_str(pixel);
                done = at;
            }
            replaced.push_str(&html[done..range.start]);
            replaced.push_str(&link(url));
            done = range.end;
        }
        if let Some((at, pixel)) = pixel {
            replaced.push_str(&html[done..at]);
            replaced.push_str(pixel);
            done = at;
        }
        replaced.push_str(&html[done..]);
        replaced
    }
}

struct LinkReader<'a> {
    html: &'a str,
    own_prefix: &'a str,
    /// Bytes that further links may add.
    growth_left: usize,
    /// The `a` or `area` tag that is being read.
    anchor: Option<Anchor>,
    positions: &'a mut BodyPositions,
}

#[derive(Default)]
struct Anchor {
    /// The attribute whose value comes next.
    attribute: Vec<u8>,
    has_href: bool,
    href: Option<LinkPosition>,
    is_excluded: bool,
}

impl Callback<Infallible, usize> for LinkReader<'_> {
    fn handle_event(&mut self, event: CallbackEvent<'_>, span: Span<usize>) -> Option<Infallible> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.anchor = matches!(name, b"a" | b"area").then(Anchor::default);
            }
            CallbackEvent::AttributeName { name } => {
                if let Some(anchor) = &mut self.anchor {
                    anchor.name(name);
                }
            }
            CallbackEvent::AttributeValue { value } => self.value(value, span.start..span.end),
            CallbackEvent::CloseStartTag { .. } => {
                if let Some(anchor) = self.anchor.take() {
                    self.add(anchor);
                }
            }
            CallbackEvent::EndTag { .. } => self.anchor = None,
            CallbackEvent::String { .. }
            | CallbackEvent::Comment { .. }
            | CallbackEvent::Doctype { .. }
            | CallbackEvent::Error(_) => {}
        }
        None
    }
}

impl Anchor {
    fn name(&mut self, name: &[u8]) {
        self.is_excluded |= NO_TRACK_ATTRIBUTES
            .iter()
            .any(|(known, value)| known.as_bytes() == name && value.is_none());
        self.attribute.clear();
        // HTML ignores repeated attributes after the first, even if the first is empty.
        let is_second = name == b"href" && self.has_href;
        if !is_second {
            self.attribute.extend_from_slice(name);
        }
        self.has_href |= name == b"href";
    }
}

impl LinkReader<'_> {
    fn value(&mut self, value: &[u8], range: Range<usize>) {
        let Some(anchor) = &mut self.anchor else {
            return;
        };
        let is_value = |word: &str| value.trim_ascii().eq_ignore_ascii_case(word.as_bytes());
        anchor.is_excluded |= NO_TRACK_ATTRIBUTES
            .iter()
            .any(|(name, word)| name.as_bytes() == anchor.attribute && word.is_some_and(is_value));
        if anchor.attribute == b"href" && is_attribute_value(self.html, &range) {
            let url = target(value, self.own_prefix);
            anchor.href = url.map(|url| LinkPosition { range, url });
        }
    }

    fn add(&mut self, anchor: Anchor) {
        let Some(link) = anchor.href.filter(|_| !anchor.is_excluded) else {
            return;
        };
        let growth = PUBLIC_URL_BYTES_MAX + chars(link.url.len());
        if self.positions.links.len() < LINKS_MAX && self.growth_left >= growth {
            self.growth_left -= growth;
            self.positions.links.push(link);
        }
    }
}

/// Whether the range is exactly an attribute value. A wrong offset from the tokenizer must
/// not damage a body. The link is then not tracked.
fn is_attribute_value(html: &str, range: &Range<usize>) -> bool {
    let (Some(before), Some(value), Some(after)) = (
        html.get(..range.start),
        html.get(range.clone()),
        html.get(range.end..),
    ) else {
        return false;
    };
    match before.bytes().next_back() {
        Some(quote @ (b'"' | b'\'')) => {
            after.bytes().next() == Some(quote) && !value.as_bytes().contains(&quote)
        }
        Some(byte) => {
            let is_end = |byte: u8| byte == b'>' || byte.is_ascii_whitespace();
            (byte == b'=' || byte.is_ascii_whitespace())
                && after.bytes().next().is_some_and(is_end)
                && !value.bytes().any(is_end)
        }
        None => false,
    }
}

/// The target of an `href`, normalized for a `Location` header. `None` if the link is not
/// tracked.
fn target(href: &[u8], own_prefix: &str) -> Option<String> {
    let href = str::from_utf8(href).ok()?;
    if href.contains(link_insertion::VARIABLE) {
        return None;
    }
    // Normalized as by a browser. The result is visible ASCII.
    let url = Url::parse(href).ok()?;
    let is_plain = url.username().is_empty() && url.password().is_none();
    let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
    let url = String::from(url);
    let is_short = url.len() <= URL_BYTES_MAX;
    (is_web && is_plain && is_short && !url.starts_with(own_prefix)).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN_PREFIX: &str = "https://mail.example.com/v1/";

    /// A body with `[target]` instead of each link, and with a pixel.
    fn with_pixel(html: &str) -> String {
        BodyPositions::of(html, OWN_PREFIX).replace(html, |url| format!("[{url}]"), Some("PIXEL"))
    }

    fn without_pixel(html: &str) -> String {
        BodyPositions::of(html, OWN_PREFIX).replace(html, |url| format!("[{url}]"), None)
    }

    fn assert_all(cases: &[(&str, &str)]) {
        for (html, expected) in cases {
            assert_eq!(without_pixel(html), *expected);
        }
    }

    #[test]
    fn links_that_a_browser_recognizes_are_tracked() {
        assert_all(&[
            (
                "<a href=\"https://e.com/x\">x</a>",
                "<a href=\"[https://e.com/x]\">x</a>",
            ),
            (
                "<a href='http://e.com/x'>x</a>",
                "<a href='[http://e.com/x]'>x</a>",
            ),
            (
                "<a href=https://e.com/x>x</a>",
                "<a href=[https://e.com/x]>x</a>",
            ),
            (
                "<a href=https://e.com/x id=y>",
                "<a href=[https://e.com/x] id=y>",
            ),
            ("<a href=https://e.com/x/>", "<a href=[https://e.com/x/]>"),
            (
                "<A ID=1 HREF = \"HTTPS://E.com\">",
                "<A ID=1 HREF = \"[https://e.com/]\">",
            ),
            (
                "<a\n\thref\n=\n'https://e.com/'\n>",
                "<a\n\thref\n=\n'[https://e.com/]'\n>",
            ),
            (
                "<area shape=rect href='https://e.com/'>",
                "<area shape=rect href='[https://e.com/]'>",
            ),
            (
                "<a class=b href=\"https://e.com/\" style='c'/>",
                "<a class=b href=\"[https://e.com/]\" style='c'/>",
            ),
            (
                "<a href=\" \nhttps://e.com/ \">",
                "<a href=\"[https://e.com/]\">",
            ),
        ]);
    }

    #[test]
    fn targets_are_normalized_as_by_a_browser() {
        assert_all(&[
            // Entities, decoded as a browser does.
            (
                "<a href=\"https://e.com/?a=1&amp;b=2&#38;c=3\">",
                "<a href=\"[https://e.com/?a=1&b=2&c=3]\">",
            ),
            (
                "<a href=\"https://e.com/?a=1&b=2&copy=3\">",
                "<a href=\"[https://e.com/?a=1&b=2&copy=3]\">",
            ),
            (
                "<a href='&#104;ttps://e.com/&quot;'>",
                "<a href='[https://e.com/%22]'>",
            ),
            (
                "<a href=https://e.com/?a&amp;b>",
                "<a href=[https://e.com/?a&b]>",
            ),
            // Characters that are not allowed in a header.
            (
                "<a href=\"https://e.com/ä b\r\nc\">ö</a>",
                "<a href=\"[https://e.com/%C3%A4%20bc]\">ö</a>",
            ),
            (
                "<a href=\"https://e.com/&#13;&#10;x\">",
                "<a href=\"[https://e.com/x]\">",
            ),
            (
                "<a href=\"https://bücher.example/\">",
                "<a href=\"[https://xn--bcher-kva.example/]\">",
            ),
        ]);
    }

    #[test]
    fn links_are_found_after_malformed_and_unusual_markup() {
        assert_all(&[
            // The first of two attributes counts.
            (
                "<a href='https://e.com/1' href='https://e.com/2'>",
                "<a href='[https://e.com/1]' href='https://e.com/2'>",
            ),
            // After unusual text.
            (
                "ä\r\n\u{1f4ec}&nbsp;&unknown; < <a <b\r\n<a href='https://e.com/'>",
                "ä\r\n\u{1f4ec}&nbsp;&unknown; < <a <b\r\n<a href='[https://e.com/]'>",
            ),
            (
                "<!-- a --><!doctype html><p a='<'><a href='https://e.com/'>",
                "<!-- a --><!doctype html><p a='<'><a href='[https://e.com/]'>",
            ),
            (
                "<base href='https://b.com/'><a href='https://e.com/'>",
                "<base href='https://b.com/'><a href='[https://e.com/]'>",
            ),
            // Content for mail programs other than Outlook.
            (
                "<!--[if !mso]><!--><a href='https://e.com/'><!--<![endif]-->",
                "<!--[if !mso]><!--><a href='[https://e.com/]'><!--<![endif]-->",
            ),
            (
                "<![if !mso]><a href='https://e.com/'><![endif]>",
                "<![if !mso]><a href='[https://e.com/]'><![endif]>",
            ),
            (
                "<svg><a href='https://e.com/'></a></svg>",
                "<svg><a href='[https://e.com/]'></a></svg>",
            ),
        ]);
    }

    #[test]
    fn everything_else_is_not_changed() {
        for html in [
            "<a href='mailto:a@e.com'>",
            "<a href='tel:+49'>",
            "<a href='sms:1'>",
            "<a href='javascript:x()'>",
            "<a href='ftp://e.com/'>",
            "<a href='#a'>",
            "<a href='/a'>",
            "<a href='a'>",
            "<a href='//e.com/'>",
            "<a href=''>",
            "<a href>",
            "<a>",
            "<a href=",
            "<a href='https://e.com/",
            "<a href='https://e.com/'",
            "<a href='https://'>",
            "<a href='https://u:p@e.com/'>",
            "<a href='https://u@e.com/'>",
            "<a href='' href='https://e.com/'>",
            "<a data-href='https://e.com/'>",
            "<ahref='https://e.com/'>",
            "<img src='https://e.com/'>",
            "<link href='https://e.com/'>",
            "<base href='https://e.com/'>",
            "<abbr href='https://e.com/'>",
            "</a href='https://e.com/'>",
            "<form action='https://e.com/'>",
            "<a href='{{unsubscribeUrl}}'>",
            "<a href='{{{ unsubscribeUrl }}}'>",
            "<a href='https://e.com/?u={{unsubscribeUrl}}'>",
            "<a href='https://mail.example.com/v1/unsubscribe/x'>",
            "<a href='https://MAIL.example.com:443/v1/t/c/x'>",
            "<!-- <a href='https://e.com/'> -->",
            "<!--[if mso]><a href='https://e.com/'><![endif]-->",
            "<!--[if mso]><v:roundrect href=\"https://e.com/\"></v:roundrect><![endif]-->",
            "<script>'<a href=\"https://e.com/\">'</script>",
            "<STYLE><a href='https://e.com/'></STYLE>",
            "<textarea><a href='https://e.com/'></textarea>",
            "<title><a href='https://e.com/'></title>",
            "<style><a href='https://e.com/'>",
            "plain https://e.com/ text",
            "",
            "<",
            "<a",
            "</",
            "&",
            "<!--",
        ] {
            assert_eq!(without_pixel(html), html);
        }
        let long = format!("<a href='https://e.com/{}'>", "a".repeat(URL_BYTES_MAX));
        assert_eq!(without_pixel(&long), long);
    }

    #[test]
    fn an_author_can_exclude_a_link() {
        for attribute in [
            "data-waypost-no-track",
            "DATA-Waypost-No-Track=''",
            "data-waypost-no-track=\"true\"",
            "data-pm-no-track",
            "ses:no-track",
            "clicktracking=off",
            "clicktracking='OFF'",
            "disable-tracking=\"true\"",
            "data-msys-clicktrack=0",
        ] {
            for html in [
                format!("<a {attribute} href='https://e.com/'>"),
                format!("<a href='https://e.com/' {attribute}>"),
            ] {
                assert_eq!(without_pixel(&html), html);
                let second = format!("{html}<a href='https://e.com/2'>");
                assert_eq!(
                    without_pixel(&second),
                    format!("{html}<a href='[https://e.com/2]'>")
                );
            }
        }
        for attribute in [
            "clicktracking=on",
            "disable-tracking=false",
            "no-track",
            "data-msys-clicktrack=1",
        ] {
            let html = format!("<a {attribute} href='https://e.com/'>");
            assert!(without_pixel(&html).contains("[https://e.com/]"), "{html}");
        }
    }

    #[test]
    fn the_pixel_is_at_the_end_of_the_body() {
        for (before, after) in [
            ("<body>x", "</body></html>"),
            ("<BODY>x", "</BODY >"),
            ("</body>x", "</body>"),
            ("<body>x", "</body><!-- </body> -->"),
            ("<body>x<script>'</body>'</script>", "</body>"),
            ("<body>x", "</body><p>later</p>"),
            ("x<!-- </body> -->", ""),
            ("<p>ä</p>", ""),
            ("", ""),
            ("<body>x", "</body"),
            ("<body>x", "<!-- </body>"),
            ("<body>x", "<textarea>y</body>"),
        ] {
            assert_eq!(
                with_pixel(&format!("{before}{after}")),
                format!("{before}PIXEL{after}")
            );
        }
        // Also among links.
        let html = "<a href='https://e.com/1'></body><a href='https://e.com/2'>";
        let expected = "<a href='[https://e.com/1]'>PIXEL</body><a href='[https://e.com/2]'>";
        assert_eq!(with_pixel(html), expected);
    }

    #[test]
    fn the_number_and_size_of_tracked_links_is_bounded() {
        let html = "<a href='https://e.com/'>".repeat(5_000);
        let links = BodyPositions::of(&html, OWN_PREFIX).links;
        assert_eq!(links.len(), LINKS_MAX);
        let html = format!("<a href='https://e.com/{}'>", "a".repeat(1_900)).repeat(1_000);
        let links = BodyPositions::of(&html, OWN_PREFIX).links;
        let growth: usize = links
            .iter()
            .map(|link| PUBLIC_URL_BYTES_MAX + chars(link.url.len()))
            .sum();
        assert!(
            growth <= GROWTH_BYTES_MAX && growth > GROWTH_BYTES_MAX - 4_000,
            "{growth}"
        );
    }

    #[test]
    fn hostile_bodies_stay_unchanged_in_linear_time() {
        for part in [
            "<a ",
            "<a href=",
            "<a href='&",
            "<!--",
            "</body",
            "<a a=b ",
            "&&&",
            "<",
            "<svg><![CDATA[",
        ] {
            let html = part.repeat(200_000);
            assert_eq!(without_pixel(&html), html);
        }
    }
}
