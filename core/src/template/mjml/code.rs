//! What the compiler must not touch travels through it as a code: ASCII between two
//! backticks, of which it makes none itself. mrml 6.0.1 prints attribute values in
//! Rust's debug form (src/prelude/render/buffer.rs), which changes quotes,
//! backslashes, white space but the blank, and much of Unicode.

use std::borrow::Cow;
use std::fmt::Write;

use super::markup;

/// Stands for a double quote within a Handlebars tag, which Handlebars needs.
const QUOTE: &str = "q";
/// Behind a value: takes away the style that the compiler prints next.
pub(super) const UNDO: &str = "u";
/// That style.
const SEPARATE: &str = ";border-collapse:separate";

/// Texts that wait until the compiler is done.
#[derive(Default)]
pub(super) struct Kept<'a> {
    texts: Vec<Cow<'a, str>>,
    gaps: Vec<String>,
}

impl<'a> Kept<'a> {
    /// The code of a text.
    pub(super) fn keep(&mut self, text: impl Into<Cow<'a, str>>) -> String {
        self.texts.push(text.into());
        format!("`t{}`", self.texts.len() - 1)
    }

    /// The code of a text that passes as a comment does, where a comment may stand.
    pub(super) fn keep_raw(&mut self, text: &'a str) -> String {
        self.texts.push(text.into());
        format!("<!--`r{}`-->", self.texts.len() - 1)
    }

    /// A CSS class for an element that stands a gap below the one before it.
    pub(super) fn keep_gap(&mut self, gap: String) -> String {
        self.gaps.push(gap);
        format!("`g{}`", self.gaps.len() - 1)
    }

    /// Puts back what was kept.
    ///
    /// # Errors
    /// When that would be more than `bytes_max`.
    pub(super) fn put_back(&self, compiled: &str, bytes_max: usize) -> Option<String> {
        let mut out = String::with_capacity(compiled.len());
        let mut gap = None;
        let mut pieces = compiled.split('`');
        let mut text = pieces.next().unwrap_or_default();
        loop {
            let begin = match gap.as_ref().and_then(|_| text.find(MARGIN)) {
                Some(margin) => {
                    let end = margin + MARGIN.len();
                    out.push_str(text.get(..end).unwrap_or_default());
                    let _infallible = write!(out, "margin-top:{};", gap.take().unwrap_or_default());
                    end
                }
                None => 0,
            };
            out.push_str(text.get(begin..).unwrap_or_default());
            let Some(code) = pieces.next() else {
                return (out.len() <= bytes_max).then_some(out);
            };
            text = pieces.next().unwrap_or_default();
            let index = || code.get(1..).and_then(|index| index.parse::<usize>().ok());
            match code.as_bytes().first() {
                Some(b't') => out.push_str(self.text(index())),
                Some(b'r') => {
                    out.truncate(out.strip_suffix("<!--").map_or(out.len(), str::len));
                    out.push_str(self.text(index()));
                    text = text.strip_prefix("-->").unwrap_or(text);
                }
                Some(b'g') => match text.strip_prefix("-outlook") {
                    Some(rest) => text = rest,
                    None => gap = index().and_then(|index| self.gaps.get(index)).cloned(),
                },
                _ if code == UNDO => text = text.strip_prefix(SEPARATE).unwrap_or(text),
                _ if code == QUOTE => out.push('"'),
                _ if code == "22" => out.push_str("&quot;"),
                _ => out.extend(u32::from_str_radix(code, 16).ok().and_then(char::from_u32)),
            }
            if out.len() > bytes_max {
                return None;
            }
        }
    }

    fn text(&self, index: Option<usize>) -> &str {
        let text = index.and_then(|index| self.texts.get(index));
        text.map(Cow::as_ref).unwrap_or_default()
    }
}

/// The style of a section behind which its gap is written.
const MARGIN: &str = "margin:0px auto;";

/// Writes a value, or a text, so that the compiler takes it and changes nothing.
pub(super) fn encode(out: &mut String, value: &str) {
    let mut handlebars_end = 0;
    for (at, c) in value.char_indices() {
        if c == '{' && at >= handlebars_end {
            handlebars_end = markup::handlebars_end(value, at).unwrap_or(0);
        }
        let passes =
            c == ' ' || (c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '`' | '<' | '>'));
        if passes {
            out.push(c);
        } else if c == '"' && at < handlebars_end {
            let _infallible = write!(out, "`{QUOTE}`");
        } else {
            let _infallible = write!(out, "`{:x}`", u32::from(c));
        }
    }
}

/// A value as it stands between double quotes.
pub(super) fn in_quotes(value: &str) -> String {
    let mut encoded = String::new();
    encode(&mut encoded, value);
    let decoded = Kept::default().put_back(&encoded, usize::MAX);
    decoded.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_comes_back() {
        for value in [
            "plain, with 'quotes' & (signs) {{x}}",
            "a\nb\tc\rd",
            "10\u{a0}€ ❤️ 👩‍👩‍👧 e\u{301} สวัสดี שלום \u{200f}\u{2028}",
            "C:\\temp \u{7} `code` `t0` <b>",
            "{{t \"x\"}} {{#if (eq a \"b\")}}",
            "\u{fe0f}\u{e000}\u{10ffff}",
        ] {
            let mut encoded = String::new();
            encode(&mut encoded, value);
            assert_eq!(format!("{encoded:?}"), format!("\"{encoded}\""), "{value}");
            let back = Kept::default().put_back(&encoded, 1_000);
            assert_eq!(back.as_deref(), Some(value));
        }
        let mut encoded = String::new();
        encode(&mut encoded, "say \"hi\"");
        let back = Kept::default().put_back(&encoded, 1_000);
        assert_eq!(back.as_deref(), Some("say &quot;hi&quot;"));
    }
}
