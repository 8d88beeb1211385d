//! What the compiler must not touch travels through it as a code: ASCII between two
//! backticks, of which it makes none itself. mrml 6.0.1 prints attribute values in
//! Rust's debug form (src/prelude/render/buffer.rs), which changes quotes,
//! backslashes, white space but the blank, and much of Unicode.

use std::borrow::Cow;
use std::fmt::Write;

use super::markup;

/// Stands for a double quote within a Handlebars tag, which Handlebars needs.
const QUOTE: &str = "q";
/// Behind the border of a table: takes away the style that the compiler prints next.
pub(super) const UNDO: &str = "u";
/// That style.
const SEPARATE: &str = ";border-collapse:separate";
/// Behind the radius of a section: takes it from the table that is as wide as the window.
pub(super) const RADIUS: &str = "w";
/// What follows the radius there.
const FULL_WIDTH: &str = ";width:100%";
/// What stands behind the classes of an element where others are named after them.
const SUFFIXES: [&str; 2] = ["-outlook", "-thumbnail"];

/// Texts that wait until the compiler is done.
#[derive(Default)]
pub(super) struct HeldTexts<'a> {
    texts: Vec<Cow<'a, str>>,
    gaps: Vec<String>,
    classes: Vec<String>,
}

impl<'a> HeldTexts<'a> {
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

    /// The same among the icons of a social element, of which each has a table around it.
    pub(super) fn keep_in_social(&mut self, text: &'a str) -> String {
        self.texts.push(text.into());
        format!("<!--`s{}`-->", self.texts.len() - 1)
    }

    /// A CSS class for an element that stands a gap below the one before it.
    pub(super) fn keep_gap(&mut self, gap: &str) -> String {
        self.gaps.push(in_quotes(gap));
        format!("`g{}`", self.gaps.len() - 1)
    }

    /// The code of several CSS classes.
    pub(super) fn keep_classes(&mut self, classes: &str) -> String {
        self.classes.push(in_quotes(classes));
        format!("`k{}`", self.classes.len() - 1)
    }

    /// Puts back what was kept.
    ///
    /// # Errors
    /// When that would be more than `bytes_max`.
    pub(super) fn put_back(&self, compiled: &str, bytes_max: usize) -> Option<String> {
        let mut out = String::with_capacity(compiled.len());
        // One for Outlook, and one behind it for all others.
        let mut gaps: [Option<(&str, String)>; 2] = [None, None];
        let mut pieces = compiled.split('`');
        let mut text = pieces.next().unwrap_or_default();
        loop {
            for gap in &mut gaps {
                if let Some((place, style)) = gap.take_if(|(place, _)| text.contains(*place)) {
                    let (before, behind) = text.split_once(place).unwrap_or((text, ""));
                    out.extend([before, place, &style]);
                    text = behind;
                }
            }
            out.push_str(text);
            let Some(code) = pieces.next() else {
                return (out.len() <= bytes_max).then_some(out);
            };
            text = pieces.next().unwrap_or_default();
            let index = code.get(1..).and_then(|index| index.parse().ok());
            match (code.as_bytes().first(), index) {
                (Some(b't'), Some(index)) => out.push_str(self.text(index)),
                (Some(b'r'), Some(index)) => {
                    out.truncate(out.strip_suffix("<!--").map_or(out.len(), str::len));
                    out.push_str(self.text(index));
                    text = text.strip_prefix("-->").unwrap_or(text);
                }
                (Some(b's'), Some(index)) => text = self.put_in_social(index, &mut out, text),
                (Some(b'k'), Some(index)) => text = self.put_classes(index, &mut out, text),
                (Some(b'g'), Some(index)) => {
                    text = text.strip_prefix(SUFFIXES[0]).unwrap_or(text);
                    let gap = self.gaps.get(index).map_or("", String::as_str);
                    let (place, style) = place_of_gap(&mut out, gap);
                    gaps = match place {
                        MARGIN => [None, Some((place, style))],
                        _ => [Some((place, style)), gaps[1].take()],
                    };
                }
                _ if code == RADIUS => {
                    if text.starts_with(FULL_WIDTH) {
                        let radius = out.rfind("border-radius:").unwrap_or(out.len());
                        out.truncate(radius);
                        text = text.strip_prefix(';').unwrap_or(text);
                    }
                }
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

    fn put_in_social<'t>(&self, index: usize, out: &mut String, text: &'t str) -> &'t str {
        // Where the icons stand one below the other no table is around it.
        let table = text.strip_prefix(SOCIAL_END);
        let begin = match table {
            Some(_) => out.rfind(SOCIAL_BEGIN),
            None => out.strip_suffix("<!--").map(str::len),
        };
        out.truncate(begin.unwrap_or(out.len()));
        out.push_str(self.text(index));
        table.or(text.strip_prefix("-->")).unwrap_or(text)
    }

    fn put_classes<'t>(&self, index: usize, out: &mut String, text: &'t str) -> &'t str {
        let suffix = SUFFIXES.iter().find(|suffix| text.starts_with(**suffix));
        let suffix = suffix.copied().unwrap_or_default();
        let classes = self.classes.get(index).map_or("", String::as_str);
        out.push_str(&classes.replace(' ', &format!("{suffix} ")));
        out.push_str(suffix);
        text.strip_prefix(suffix).unwrap_or(text)
    }

    fn text(&self, index: usize) -> &str {
        self.texts.get(index).map(Cow::as_ref).unwrap_or_default()
    }
}

/// Behind what the gap of an element is written whose classes come next, and its style.
/// For Outlook, the gap has not the color of the element.
fn place_of_gap(out: &mut String, gap: &str) -> (&'static str, String) {
    let tag = out.rfind('<').unwrap_or_default();
    if out.rfind("<!--[if mso") < out.rfind("<![endif]-->") {
        return (MARGIN, format!("margin-top:{gap};"));
    }
    let color = out.get(tag..).and_then(|tag| tag.find(BGCOLOR));
    if let Some(color) = color.map(|color| tag + color) {
        let value = out.get(color + BGCOLOR.len()..).unwrap_or_default();
        let end = value.find('"').map(|end| color + BGCOLOR.len() + end + 1);
        out.replace_range(color..end.unwrap_or(color), "");
    }
    (STYLE, format!("padding-top:{gap};"))
}

const BGCOLOR: &str = " bgcolor=\"";
const STYLE: &str = " style=\"";
/// What stands around a comment in a horizontal social element.
const SOCIAL_BEGIN: &str = "<!--[if mso | IE]><td><![endif]--><table";
const SOCIAL_END: &str = "--></tbody></table><!--[if mso | IE]></td><![endif]-->";
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
    let decoded = HeldTexts::default().put_back(&encoded, usize::MAX);
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
            let back = HeldTexts::default().put_back(&encoded, 1_000);
            assert_eq!(back.as_deref(), Some(value));
        }
        let mut encoded = String::new();
        encode(&mut encoded, "say \"hi\"");
        let back = HeldTexts::default().put_back(&encoded, 1_000);
        assert_eq!(back.as_deref(), Some("say &quot;hi&quot;"));
    }
}
