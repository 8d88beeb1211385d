//! Header fields (RFC 5322, 2.2) and what they contain: text with encoded words (RFC 2047),
//! addresses, types with parameters (RFC 2231).

use std::borrow::Cow;

use mail_parser::parsers::MessageStream;
use mail_parser::{Addr, Address, ContentType, HeaderValue};
use memchr::{memchr, memmem};

use super::MailError;

/// The most fields of one header.
pub(super) const FIELDS_MAX: usize = 1_000;
/// The longest encoded word that is decoded. RFC 2047 allows 75.
const WORD_BYTES_MAX: usize = 250;
/// The most bytes of the header of a mail.
const HEADER_BYTES_MAX: usize = 1 << 20;

/// A header field.
#[derive(Debug, Clone, Copy)]
pub struct HeaderField<'a> {
    pub name: &'a str,
    /// With the line breaks of its folding, without the last one.
    raw: &'a [u8],
}

/// An address of a header field, not checked. Without `Debug`, so that it is never logged.
#[derive(Clone)]
pub struct HeaderAddress {
    pub name: Option<String>,
    /// Whatever stands in the place of an address; may be empty.
    pub address: String,
}

impl<'a> HeaderField<'a> {
    /// Whether it has this name; upper and lower case do not matter.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Its text on one line, as it was sent. Bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn unfolded(&self) -> String {
        let text = String::from_utf8_lossy(self.raw);
        let text = text.replace("\r\n", "").replace(['\t', '\r', '\n'], " ");
        text.trim().to_owned()
    }

    /// Its text on one line, with encoded words decoded. They may touch other text, as many
    /// programs write them; the space between two of them does not count (RFC 2047, 6.2).
    #[must_use]
    pub fn text(&self) -> String {
        let unfolded = self.unfolded();
        let mut text = String::with_capacity(unfolded.len());
        let mut rest = unfolded.as_str();
        let mut follows_word = false;
        while let Some((before, word, after)) = split_at_word(rest) {
            let decoded = decode_word(word);
            if !(follows_word && decoded.is_some() && before.trim().is_empty()) {
                text.push_str(before);
            }
            follows_word = decoded.is_some();
            text.push_str(decoded.as_deref().unwrap_or(word));
            rest = after;
        }
        text.push_str(rest);
        text.trim().to_owned()
    }

    /// Its addresses; those of groups too.
    #[must_use]
    pub fn addresses(&self) -> Vec<HeaderAddress> {
        let line = self.line();
        let owned = |address: Addr<'_>| HeaderAddress {
            name: address.name.map(Cow::into_owned),
            address: address.address.map(Cow::into_owned).unwrap_or_default(),
        };
        match MessageStream::new(&line).parse_address() {
            HeaderValue::Address(Address::List(list)) => list.into_iter().map(owned).collect(),
            HeaderValue::Address(Address::Group(groups)) => {
                let lists = groups.into_iter().flat_map(|group| group.addresses);
                lists.map(owned).collect()
            }
            HeaderValue::Text(_)
            | HeaderValue::TextList(_)
            | HeaderValue::DateTime(_)
            | HeaderValue::ContentType(_)
            | HeaderValue::Received(_)
            | HeaderValue::Empty => Vec::new(),
        }
    }

    /// Its value as that of Content-Type or Content-Disposition; `None` if it is neither.
    pub(super) fn content_type(&self) -> Option<ContentType<'static>> {
        let line = without_space_between_words(&self.line());
        match MessageStream::new(&line).parse_content_type().into_owned() {
            HeaderValue::ContentType(parsed) => Some(parsed),
            HeaderValue::Address(_)
            | HeaderValue::Text(_)
            | HeaderValue::TextList(_)
            | HeaderValue::DateTime(_)
            | HeaderValue::Received(_)
            | HeaderValue::Empty => None,
        }
    }

    /// The value as the library reads it: with the line break at its end.
    fn line(&self) -> Vec<u8> {
        let mut line = Vec::with_capacity(self.raw.len() + 1);
        line.extend_from_slice(self.raw);
        line.push(b'\n');
        line
    }
}

/// Removes the white space between two encoded words, which belongs to neither (RFC 2047, 6.2).
/// The library keeps it within quotes, where Ruby's `mail` writes long names of files.
fn without_space_between_words(line: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some(end) = memmem::find(rest, b"?=") {
        let (word, after) = rest.split_at(end + 2);
        joined.extend_from_slice(word);
        let next = after.trim_ascii_start();
        rest = if next.starts_with(b"=?") { next } else { after };
    }
    joined.extend_from_slice(rest);
    joined
}

/// What stands before the first text in the form of an encoded word (RFC 2047, 2), the word, and
/// what follows it.
fn split_at_word(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let begin = from + text[from..].find("=?")?;
        from = begin + 2;
        let limit = text.floor_char_boundary(from + WORD_BYTES_MAX);
        if let Some(length) = word_length(&text[from..limit]) {
            let end = from + length;
            return Some((&text[..begin], &text[begin..end], &text[end..]));
        }
    }
}

/// The length of an encoded word without its first two characters.
fn word_length(text: &str) -> Option<usize> {
    let mut marks = text.match_indices('?').map(|(at, _)| at);
    let (_charset, encoding) = (marks.next()?, marks.next()?);
    let length = encoding + 1 + text[encoding + 1..].find("?=")? + 2;
    (!text[..length].contains(char::is_whitespace)).then_some(length)
}

/// The text of an encoded word; `None` if it is none.
fn decode_word(word: &str) -> Option<String> {
    let line = format!("{word}\n");
    match MessageStream::new(line.as_bytes()).parse_unstructured() {
        HeaderValue::Text(text) if text != word => Some(text.into_owned()),
        HeaderValue::Text(_)
        | HeaderValue::Empty
        | HeaderValue::Address(_)
        | HeaderValue::TextList(_)
        | HeaderValue::DateTime(_)
        | HeaderValue::ContentType(_)
        | HeaderValue::Received(_) => None,
    }
}

/// Splits a mail, or a part of one, into its header fields and its body.
///
/// # Errors
/// A line is no header field, or there are too many.
pub(super) fn split(mail: &[u8]) -> Result<(Vec<HeaderField<'_>>, &[u8]), MailError> {
    let mut fields: Vec<HeaderField<'_>> = Vec::new();
    let mut field_begin = 0;
    let (mut at, mut line_number) = (0, 0);
    while at < mail.len() {
        line_number += 1;
        let end = memchr(b'\n', &mail[at..]).map_or(mail.len(), |end| at + end + 1);
        let line = without_line_end(&mail[at..end]);
        if line.is_empty() {
            return Ok((fields, &mail[end..]));
        }
        if end > HEADER_BYTES_MAX || fields.len() >= FIELDS_MAX {
            return Err(MailError::LargeHeader);
        }
        let is_continued = line[0] == b' ' || line[0] == b'\t';
        match fields.last_mut() {
            Some(field) if is_continued => {
                field.raw = without_line_end(&mail[field_begin..end]);
            }
            Some(_) | None => {
                let (name, raw) = field_of(line).ok_or(MailError::NoField(line_number))?;
                field_begin = at + (line.len() - raw.len());
                fields.push(HeaderField { name, raw });
            }
        }
        at = end;
    }
    Ok((fields, &[]))
}

/// Name and value of the first line of a field.
fn field_of(line: &[u8]) -> Option<(&str, &[u8])> {
    let colon = memchr(b':', line)?;
    let name = line[..colon].trim_ascii_end();
    let is_name = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
    let name = is_name.then(|| std::str::from_utf8(name).ok()).flatten()?;
    Some((name, &line[colon + 1..]))
}

fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(value: &str) -> String {
        let mail = format!("Subject:{value}\r\nTo: a@example.com\r\n\r\nbody");
        let (fields, body) = split(mail.as_bytes()).unwrap();
        assert_eq!((fields.len(), body), (2, &b"body"[..]), "{value:?}");
        fields[0].text()
    }

    #[test]
    fn text_is_unfolded_and_encoded_words_are_decoded() {
        for (value, expected) in [
            (" Hello", "Hello"),
            ("Hello\t", "Hello"),
            (" a\r\n\tb\r\n  c", "a b  c"),
            (" =?utf-8?q?Gr=C3=BC=C3=9Fe?=", "Grüße"),
            (" =?iso-8859-1?Q?Gr=FC=DFe?= x", "Grüße x"),
            (" =?utf-8?b?R3LDvA==?=\r\n =?utf-8?b?w59l?=", "Grüße"),
            (" =?shift_jis?B?k/qWew==?=", "日本"),
            (" Grüße", "Grüße"),
            (" =?utf-8?x?a?=", "=?utf-8?x?a?="),
            (" [=?utf-8?q?=C3=BC?=] \"=?utf-8?q?a?=\"", "[ü] \"a\""),
            (" =?utf-8?q?a?= b =?utf-8?q?c?=", "a b c"),
            (" what=? ok?= =?utf-8?q?a?=", "what=? ok?= a"),
            (" =?utf-8?q??= b", "b"),
            ("", ""),
        ] {
            assert_eq!(field(value), expected, "{value:?}");
        }
    }

    #[test]
    fn addresses_are_found_with_their_names() {
        let addresses = |value: &str| {
            let mail = format!("To: {value}\r\n\r\n");
            let (fields, _) = split(mail.as_bytes()).unwrap();
            let found = fields[0].addresses().into_iter();
            found
                .map(|found| (found.name.unwrap_or_default(), found.address))
                .collect::<Vec<_>>()
        };
        let is = |name: &str, address: &str| (name.to_owned(), address.to_owned());
        assert_eq!(addresses("a@b.c"), [is("", "a@b.c")]);
        assert_eq!(
            addresses("\"Lovelace, Ada\" <a@b.c>,\r\n =?utf-8?q?J=C3=BCrgen?= <j@b.c>"),
            [is("Lovelace, Ada", "a@b.c"), is("Jürgen", "j@b.c")]
        );
        assert_eq!(addresses("Team: a@b.c, d@b.c;").len(), 2);
        assert!(addresses("undisclosed-recipients:;").is_empty());
    }

    #[test]
    fn a_name_in_several_encoded_words_has_no_space_between_them() {
        for (value, expected) in [
            ("\"=?utf-8?b?R3LDvA==?= =?utf-8?b?w59l?=\"", "Grüße"),
            (
                "\"=?utf-8?b?R3LDvA==?=\r\n =?utf-8?b?w59l?=.pdf\"",
                "Grüße.pdf",
            ),
            ("\"a ?= b =?\"", "a ?= b =?"),
            ("\"a?=  b\"", "a?=  b"),
        ] {
            let mail = format!("Content-Disposition: attachment; filename={value}\r\n\r\n");
            let (fields, _) = split(mail.as_bytes()).unwrap();
            let kind = fields[0].content_type().unwrap();
            assert_eq!(kind.attribute("filename"), Some(expected), "{value}");
        }
    }

    #[test]
    fn a_line_that_is_no_field_is_named() {
        let no_field = |mail: &str| split(mail.as_bytes()).unwrap_err();
        assert_eq!(no_field("From a@b.c\r\n"), MailError::NoField(1));
        assert_eq!(no_field(" a: b\r\n\r\n"), MailError::NoField(1));
        assert_eq!(no_field("A: b\r\n: c\r\n"), MailError::NoField(2));
        assert_eq!(no_field("A: b\r\nB\r\n"), MailError::NoField(2));
        let many = "A: b\r\n".repeat(FIELDS_MAX + 1);
        assert_eq!(no_field(&many), MailError::LargeHeader);
        let (fields, body) = split(b"A: b\r\nC : d").unwrap();
        assert_eq!((fields[1].name, body.len()), ("C", 0));
    }
}
