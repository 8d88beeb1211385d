//! Finds tags as htmlparser2 does, the parser of mjml. The only error is an unclosed tag or
//! comment. A Handlebars tag inside a quoted value belongs to the value, including its
//! quotes.

/// Elements whose content is text without tags.
const RAW_TEXT: [&str; 4] = ["script", "style", "textarea", "title"];
/// The longest Handlebars tag inside a value.
const HANDLEBARS_BYTES_MAX: usize = 1_024;

/// A tag or a comment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Markup<'a> {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: Kind<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Kind<'a> {
    /// An opening tag: its name, the text after the name, and whether it ends in `/>`.
    Open(&'a str, &'a str, bool),
    Close(&'a str),
    /// A comment, a declaration or similar.
    Other,
}

/// The offset of an unclosed tag or comment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unclosed(pub(super) usize);

/// The next tag or comment at or after `from`.
pub(super) fn next(text: &str, from: usize) -> Result<Option<Markup<'_>>, Unclosed> {
    let mut at = from;
    while let Some(start) = find(text, "<", at) {
        let rest = text.get(start..).unwrap_or_default();
        let until = |pattern: &str, skip: usize| {
            let end = find(text, pattern, start + skip).ok_or(Unclosed(start))?;
            Ok(end + pattern.len())
        };
        let markup = |end: usize, kind| Ok(Some(Markup { start, end, kind }));
        let begins_name = |at: usize| rest.as_bytes().get(at).is_some_and(u8::is_ascii_alphabetic);
        if rest.starts_with("<!--") {
            return markup(until("-->", 4)?, Kind::Other);
        } else if rest.starts_with("<![CDATA[") {
            return markup(until("]]>", 9)?, Kind::Other);
        } else if rest.starts_with("<!") || rest.starts_with("<?") {
            return markup(until(">", 2)?, Kind::Other);
        } else if rest.starts_with("</") && begins_name(2) {
            return markup(until(">", 2)?, Kind::Close(name_of(rest, 2)));
        } else if begins_name(1) {
            let name = name_of(rest, 1);
            let inside = start + 1 + name.len();
            let end = tag_end(text, inside).ok_or(Unclosed(start))?;
            let inner = text.get(inside..end - 1).unwrap_or_default();
            let is_closed = inner.ends_with('/') && !ends_in_unquoted(inner);
            return markup(end, Kind::Open(name, inner, is_closed));
        }
        at = start + 1;
    }
    Ok(None)
}

/// The end of an element's content if it is raw text. Tags inside raw text do not count.
pub(super) fn raw_text_end(text: &str, name: &str, from: usize) -> Option<usize> {
    let is_raw = RAW_TEXT.iter().any(|raw| raw.eq_ignore_ascii_case(name));
    if !is_raw {
        return None;
    }
    let mut at = from;
    while let Some(start) = find(text, "</", at) {
        let closed = name_of(text.get(start..).unwrap_or_default(), 2);
        if closed.eq_ignore_ascii_case(name) {
            return Some(start);
        }
        at = start + 2;
    }
    Some(text.len())
}

/// An attribute of a tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attribute<'a> {
    pub(super) name: &'a str,
    /// Empty for an attribute without a value.
    pub(super) value: &'a str,
    /// The start and end of the attribute in the text.
    pub(super) span: (usize, usize),
}

/// The attributes of a tag. `inner` is the text after its name.
pub(super) fn attributes(inner: &str) -> impl Iterator<Item = Attribute<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let attribute = attribute(inner, at)?;
        at = attribute.span.1;
        Some(attribute)
    })
}

fn attribute(inner: &str, from: usize) -> Option<Attribute<'_>> {
    let bytes = inner.as_bytes();
    let skip = |at: usize, skipped: fn(u8) -> bool| {
        let rest = bytes.get(at..).unwrap_or_default();
        at + rest.iter().take_while(|byte| skipped(**byte)).count()
    };
    let start = skip(from, |byte| byte.is_ascii_whitespace() || byte == b'/');
    if start >= bytes.len() {
        return None;
    }
    // The first character belongs to the name, even if it is an equals sign.
    let name_end = skip(start + 1, |byte| {
        !byte.is_ascii_whitespace() && !matches!(byte, b'=' | b'/')
    });
    let name = inner.get(start..name_end)?;
    let equals = skip(name_end, |byte| byte.is_ascii_whitespace());
    if bytes.get(equals) != Some(&b'=') {
        let span = (start, name_end);
        return Some(Attribute {
            name,
            value: "",
            span,
        });
    }
    let opening = skip(equals + 1, |byte| byte.is_ascii_whitespace());
    let (value, end) = match bytes.get(opening) {
        Some(quote @ (b'"' | b'\'')) => {
            let end = quoted_end(inner, opening + 1, *quote).unwrap_or(bytes.len());
            (inner.get(opening + 1..end)?, (end + 1).min(bytes.len()))
        }
        _ => {
            let end = skip(opening, |byte| !byte.is_ascii_whitespace());
            (inner.get(opening..end)?, end)
        }
    };
    let span = (start, end);
    Some(Attribute { name, value, span })
}

/// The end of a tag after its `>`. The tag's name ends at `from`.
fn tag_end(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    let mut follows_equals = false;
    loop {
        match *bytes.get(at)? {
            b'>' => return Some(at + 1),
            quote @ (b'"' | b'\'') if follows_equals => {
                at = quoted_end(text, at + 1, quote)?;
                follows_equals = false;
            }
            b'=' => follows_equals = true,
            byte => follows_equals &= byte.is_ascii_whitespace(),
        }
        at += 1;
    }
}

/// The position of the quote that ends the value starting at `from`.
fn quoted_end(text: &str, from: usize, quote: u8) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    loop {
        let byte = *bytes.get(at)?;
        if byte == quote {
            return Some(at);
        }
        at = handlebars_end(text, at)
            .filter(|end| {
                let tag = bytes.get(at..*end).unwrap_or_default();
                tag.iter().filter(|byte| **byte == quote).count() % 2 == 0
            })
            .unwrap_or(at + 1);
    }
}

/// The end of the Handlebars tag that starts at `at`, if there is one.
pub(super) fn handlebars_end(text: &str, at: usize) -> Option<usize> {
    let tag = text.as_bytes().get(at..)?;
    let braces = tag.iter().take(5).take_while(|byte| **byte == b'{').count();
    if !(2..=4).contains(&braces) {
        return None;
    }
    let inner = tag.get(braces..)?;
    let mut inner = inner.iter().take(HANDLEBARS_BYTES_MAX);
    let length = inner.position(|byte| matches!(byte, b'{' | b'}' | b'<'))?;
    let end = at + braces + length;
    text.get(end..)?.starts_with("}}").then_some(end + 2)
}

/// Whether the last slash belongs to an unquoted value and does not close the tag.
fn ends_in_unquoted(inner: &str) -> bool {
    attributes(inner)
        .last()
        .is_some_and(|last| last.span.1 == inner.len() && last.value.ends_with('/'))
}

fn name_of(tag: &str, from: usize) -> &str {
    let rest = tag.get(from..).unwrap_or_default();
    let end = rest.find(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>'));
    rest.get(..end.unwrap_or(rest.len())).unwrap_or_default()
}

fn find(text: &str, pattern: &str, from: usize) -> Option<usize> {
    Some(text.get(from..)?.find(pattern)? + from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_parsed_in_all_notations() {
        for (inner, expected) in [
            (
                " a=\"1\" b='2' c=3 d",
                vec![("a", "1"), ("b", "2"), ("c", "3"), ("d", "")],
            ),
            (" a = \"x > y\"/", vec![("a", "x > y")]),
            (
                " a=\"{{url \"b\"}}\" c=\"d\"",
                vec![("a", "{{url \"b\"}}"), ("c", "d")],
            ),
            (" a=\"{{ \" c=\"d\"", vec![("a", "{{ "), ("c", "d")]),
            ("\n a=\"1\n2\"\n", vec![("a", "1\n2")]),
            (" href=http://x/", vec![("href", "http://x/")]),
        ] {
            let read: Vec<_> = attributes(inner).map(|a| (a.name, a.value)).collect();
            assert_eq!(read, expected, "{inner}");
            let tag = format!("<x{inner}>y");
            let markup = next(&tag, 0).unwrap().unwrap();
            assert_eq!(markup.end, tag.len() - 1, "{inner}");
        }
    }

    #[test]
    fn text_that_resembles_a_tag_is_text() {
        for (text, starts) in [
            ("a < b <3 <b>", vec![9]),
            ("<!-- <b> --><i>", vec![0, 12]),
            ("<![CDATA[<b>]]><i>", vec![0, 15]),
            ("</ b><br/>", vec![5]),
        ] {
            let mut found = Vec::new();
            let mut at = 0;
            while let Some(markup) = next(text, at).unwrap() {
                found.push(markup.start);
                at = markup.end;
            }
            assert_eq!(found, starts, "{text}");
        }
        assert!(next("x <!-- y", 0).is_err());
        assert!(next("x <a href=\"y>", 0).is_err());
    }
}
