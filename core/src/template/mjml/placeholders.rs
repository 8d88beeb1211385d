//! Placeholders for text that the compiler must not change: ASCII between two backticks,
//! which the compiler never writes itself. mrml 6.0.1 prints attribute values in Rust's
//! debug form (src/prelude/render/buffer.rs), which changes quotes, backslashes, white space
//! except spaces, and many Unicode characters.

use std::borrow::Cow;
use std::fmt::Write;

use super::markup;

/// A double quote inside a Handlebars tag. Handlebars needs it unescaped.
const QUOTE: &str = "q";
/// After the border of a table: removes the style that the compiler prints next.
pub(super) const UNDO: &str = "u";
/// That style.
const SEPARATE: &str = ";border-collapse:separate";
/// After the radius of a section: removes the radius from a full-width table.
pub(super) const RADIUS: &str = "w";
/// The style after the radius of a full-width table.
const FULL_WIDTH: &str = ";width:100%";
/// Suffixes that the compiler appends to the classes of an element for related elements.
const SUFFIXES: [&str; 2] = ["-outlook", "-thumbnail"];

/// The texts to be restored after compilation.
#[derive(Default)]
pub(super) struct Placeholders<'a> {
    texts: Vec<Cow<'a, str>>,
    gaps: Vec<String>,
    classes: Vec<String>,
}

impl<'a> Placeholders<'a> {
    /// The placeholder of a text.
    pub(super) fn add(&mut self, text: impl Into<Cow<'a, str>>) -> String {
        self.texts.push(text.into());
        format!("`t{}`", self.texts.len() - 1)
    }

    /// The placeholder of a text as a comment, for positions at which a comment is allowed.
    pub(super) fn add_comment(&mut self, text: &'a str) -> String {
        self.texts.push(text.into());
        format!("<!--`r{}`-->", self.texts.len() - 1)
    }

    /// The placeholder of a text between the icons of a social element. The compiler wraps
    /// it into a table.
    pub(super) fn add_in_social(&mut self, text: &'a str) -> String {
        self.texts.push(text.into());
        format!("<!--`s{}`-->", self.texts.len() - 1)
    }

    /// A CSS class as the placeholder of the gap above an element.
    pub(super) fn add_gap(&mut self, gap: &str) -> String {
        self.gaps.push(in_quotes(gap));
        format!("`g{}`", self.gaps.len() - 1)
    }

    /// The placeholder of several CSS classes.
    pub(super) fn add_classes(&mut self, classes: &str) -> String {
        self.classes.push(in_quotes(classes));
        format!("`k{}`", self.classes.len() - 1)
    }

    /// Replaces all placeholders in the compiled HTML. `None` if the result exceeds
    /// `bytes_max`.
    pub(super) fn restore(&self, compiled: &str, bytes_max: usize) -> Option<String> {
        let mut out = String::with_capacity(compiled.len());
        // The gaps for Outlook and for all other mail programs.
        let mut gaps: [Option<(&str, String)>; 2] = [None, None];
        let mut pieces = compiled.split('`');
        let mut text = pieces.next().unwrap_or_default();
        loop {
            for gap in &mut gaps {
                if let Some((anchor, style)) = gap.take_if(|(anchor, _)| text.contains(*anchor)) {
                    let (before, behind) = text.split_once(anchor).unwrap_or((text, ""));
                    out.extend([before, anchor, &style]);
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
                    let (anchor, style) = gap_anchor(&mut out, gap);
                    gaps = match anchor {
                        MARGIN => [None, Some((anchor, style))],
                        _ => [Some((anchor, style)), gaps[1].take()],
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
        // Vertically arranged icons have no table.
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

/// The text after which the gap of the next element is written, and the gap's style. For
/// Outlook, removes the element's color from the gap.
fn gap_anchor(out: &mut String, gap: &str) -> (&'static str, String) {
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
/// The HTML around a comment in a horizontal social element.
const SOCIAL_BEGIN: &str = "<!--[if mso | IE]><td><![endif]--><table";
const SOCIAL_END: &str = "--></tbody></table><!--[if mso | IE]></td><![endif]-->";
/// The style of a section after which its gap is written.
const MARGIN: &str = "margin:0px auto;";

/// Encodes a text so that the compiler does not change it.
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

/// A value as it is written between double quotes.
pub(super) fn in_quotes(value: &str) -> String {
    let mut encoded = String::new();
    encode(&mut encoded, value);
    let decoded = Placeholders::default().restore(&encoded, usize::MAX);
    decoded.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_restored() {
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
            let back = Placeholders::default().restore(&encoded, 1_000);
            assert_eq!(back.as_deref(), Some(value));
        }
        let mut encoded = String::new();
        encode(&mut encoded, "say \"hi\"");
        let back = Placeholders::default().restore(&encoded, 1_000);
        assert_eq!(back.as_deref(), Some("say &quot;hi&quot;"));
    }
}
