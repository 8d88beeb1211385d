//! The links of an HTML body and the place of its pixel. The body is read once for
//! all copies of a message, by a tokenizer that follows the standard (html5gum), so
//! that a link is what a browser takes for one. What is read is where things stand:
//! a copy is the body as it is with other text in those places.
//!
//! Links are the `href` of `a` and `area` to http and https. Left alone are other
//! schemes, relative ones, those that hold the place of the unsubscribe link, those
//! that lead to us already, those whose author marked them, and whatever stands in
//! comments (conditional ones too), scripts, styles and the like.

use std::convert::Infallible;
use std::ops::Range;
use std::str;

use html5gum::emitters::callback::{Callback, CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use url::Url;

use super::token::{URL_BYTES_MAX, chars};
use crate::config::PUBLIC_URL_BYTES_MAX;
use crate::unsubscribe::{link_insertion, link_visibility};

/// Links of one body that are tracked; those after them lead straight to their
/// targets. As many as SendGrid tracks.
const LINKS_MAX: usize = 1_000;
/// Bytes by which tracked links may make a body longer.
const GROWTH_BYTES_MAX: usize = 1 << 20;

/// How an author says that a link is not to be tracked: by an attribute of ours, or
/// by what he wrote for another service. Without a value any value does.
const LEFT_ALONE: [(&str, Option<&str>); 6] = [
    ("data-waypost-no-track", None),
    // Postmark, Amazon SES, SendGrid, Mailgun, SparkPost.
    ("data-pm-no-track", None),
    ("ses:no-track", None),
    ("clicktracking", Some("off")),
    ("disable-tracking", Some("true")),
    ("data-msys-clicktrack", Some("0")),
];

/// Where a body's links stand, and its pixel.
#[derive(Debug)]
pub(super) struct Places {
    links: Vec<LinkPosition>,
    end: usize,
}

#[derive(Debug, PartialEq, Eq)]
struct LinkPosition {
    /// The value of its attribute, without quotes.
    place: Range<usize>,
    url: String,
}

impl Places {
    pub(super) fn links(&self) -> usize {
        self.links.len()
    }

    /// Reads a body. `own` is what the URLs begin with that lead to us.
    pub(super) fn of(html: &str, own: &str) -> Self {
        let mut found = Self {
            links: Vec::new(),
            end: link_visibility::end(html),
        };
        let mut emitter = CallbackEmitter::new(LinkReader {
            html,
            own,
            room: GROWTH_BYTES_MAX,
            anchor: None,
            found: &mut found,
        });
        // No text within scripts, styles and the like is taken for tags.
        emitter.naively_switch_states(true);
        let Ok(()) = Tokenizer::new_with_emitter(html, emitter).finish();
        found
    }

    /// The same where the links are to stay as they are.
    pub(super) fn without_links(self) -> Self {
        Self {
            links: Vec::new(),
            ..self
        }
    }

    /// The body with a link of ours in the place of each, and the pixel.
    pub(super) fn fill(
        &self,
        html: &str,
        mut link: impl FnMut(&str) -> String,
        pixel: Option<&str>,
    ) -> String {
        let mut filled = String::with_capacity(html.len() + 256 * self.links.len() + 512);
        let mut pixel = pixel.map(|pixel| (self.end, pixel));
        let mut done = 0;
        for LinkPosition { place, url } in &self.links {
            if let Some((at, pixel)) = pixel.take_if(|(at, _)| *at <= place.start) {
                filled.push_str(&html[done..at]);
                filled.push_str(pixel);
                done = at;
            }
            filled.push_str(&html[done..place.start]);
            filled.push_str(&link(url));
            done = place.end;
        }
        if let Some((at, pixel)) = pixel {
            filled.push_str(&html[done..at]);
            filled.push_str(pixel);
            done = at;
        }
        filled.push_str(&html[done..]);
        filled
    }
}

/// What is known of a body so far.
struct LinkReader<'a> {
    html: &'a str,
    own: &'a str,
    /// Bytes by which it may still grow.
    room: usize,
    /// The tag that is being read, where it may be a link.
    anchor: Option<Anchor>,
    found: &'a mut Places,
}

#[derive(Default)]
struct Anchor {
    /// The attribute whose value comes next.
    attribute: Vec<u8>,
    has_href: bool,
    href: Option<LinkPosition>,
    is_left_alone: bool,
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
        self.is_left_alone |= LEFT_ALONE
            .iter()
            .any(|(own, value)| own.as_bytes() == name && value.is_none());
        self.attribute.clear();
        // Of several attributes of one name the first counts, also where it is empty.
        let is_second = name == b"href" && self.has_href;
        if !is_second {
            self.attribute.extend_from_slice(name);
        }
        self.has_href |= name == b"href";
    }
}

impl LinkReader<'_> {
    fn value(&mut self, value: &[u8], place: Range<usize>) {
        let Some(anchor) = &mut self.anchor else {
            return;
        };
        let says = |word: &str| value.trim_ascii().eq_ignore_ascii_case(word.as_bytes());
        anchor.is_left_alone |= LEFT_ALONE
            .iter()
            .any(|(own, word)| own.as_bytes() == anchor.attribute && word.is_some_and(says));
        if anchor.attribute == b"href" && is_value(self.html, &place) {
            let url = target(value, self.own);
            anchor.href = url.map(|url| LinkPosition { place, url });
        }
    }

    fn add(&mut self, anchor: Anchor) {
        let Some(link) = anchor.href.filter(|_| !anchor.is_left_alone) else {
            return;
        };
        let growth = PUBLIC_URL_BYTES_MAX + chars(link.url.len());
        if self.found.links.len() < LINKS_MAX && self.room >= growth {
            self.room -= growth;
            self.found.links.push(link);
        }
    }
}

/// Whether an attribute's value stands at a place. A tokenizer that miscounts must
/// not spoil a body: it costs the link its tracking.
fn is_value(html: &str, place: &Range<usize>) -> bool {
    let (Some(before), Some(value), Some(after)) = (
        html.get(..place.start),
        html.get(place.clone()),
        html.get(place.end..),
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

/// Where an `href` leads, as a redirect may say it, if it is one to track.
fn target(href: &[u8], own: &str) -> Option<String> {
    let href = str::from_utf8(href).ok()?;
    if href.contains(link_insertion::VARIABLE) {
        return None;
    }
    // What a browser makes of it: all of it is visible ASCII.
    let url = Url::parse(href).ok()?;
    let is_plain = url.username().is_empty() && url.password().is_none();
    let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
    let url = String::from(url);
    let is_short = url.len() <= URL_BYTES_MAX;
    (is_web && is_plain && is_short && !url.starts_with(own)).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "https://mail.example.com/v1/";

    /// A body with `[target]` in the place of each link, and with its pixel.
    fn filled(html: &str) -> String {
        Places::of(html, OWN).fill(html, |url| format!("[{url}]"), Some("PIXEL"))
    }

    fn without_pixel(html: &str) -> String {
        Places::of(html, OWN).fill(html, |url| format!("[{url}]"), None)
    }

    fn assert_all(cases: &[(&str, &str)]) {
        for (html, expected) in cases {
            assert_eq!(without_pixel(html), *expected);
        }
    }

    #[test]
    fn links_are_what_a_browser_takes_for_links() {
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
    fn targets_are_what_a_browser_reads() {
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
            // What may not stand in a header.
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
    fn links_are_found_behind_whatever_stands_before_them() {
        assert_all(&[
            // The first of two counts.
            (
                "<a href='https://e.com/1' href='https://e.com/2'>",
                "<a href='[https://e.com/1]' href='https://e.com/2'>",
            ),
            // Beyond what is odd before it.
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
            // What is shown where Outlook is not.
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
    fn everything_else_is_left_as_it_is() {
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
    fn an_author_may_leave_a_link_alone() {
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
    fn the_pixel_stands_at_the_end_of_the_body() {
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
                filled(&format!("{before}{after}")),
                format!("{before}PIXEL{after}")
            );
        }
        // Also among links.
        let html = "<a href='https://e.com/1'></body><a href='https://e.com/2'>";
        let expected = "<a href='[https://e.com/1]'>PIXEL</body><a href='[https://e.com/2]'>";
        assert_eq!(filled(html), expected);
    }

    #[test]
    fn the_number_of_links_and_what_they_add_is_bounded() {
        let html = "<a href='https://e.com/'>".repeat(5_000);
        let links = Places::of(&html, OWN).links;
        assert_eq!(links.len(), LINKS_MAX);
        let html = format!("<a href='https://e.com/{}'>", "a".repeat(1_900)).repeat(1_000);
        let links = Places::of(&html, OWN).links;
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
    fn hostile_bodies_cost_no_more_than_reading_them() {
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
