//! Writes texts as ASCII header values, so that mail programs show exactly the given text,
//! including each space (RFC 5322, RFC 2047).

use std::fmt::Write as _;

use email_encoding::headers::rfc2047;
use email_encoding::headers::writer::EmailWriter;

use super::encoded_word;

/// The longest line without its line break, if the text can be folded. A line with an
/// encoded word must not be longer (RFC 2047, 2).
const LINE_BYTES_MAX: usize = 76;
/// The longest word that is not encoded. With the header name and the quotes of a quoted
/// text it still fits on a line.
const WORD_BYTES_MAX: usize = 60;

/// The folded value of an unstructured header such as Subject. `column` is the number of
/// bytes before the value on its line.
#[must_use]
pub fn unstructured(text: &str, column: usize) -> String {
    if is_plain(text) {
        folded(text, column)
    } else {
        encoded(text, column)
    }
}

/// The folded header value of a mailbox: the display name, if any, and the address. The
/// address must be valid and ASCII. `column` is the number of bytes before the value.
#[must_use]
pub fn mailbox(name: Option<&str>, address: &str, column: usize) -> String {
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return address.to_owned();
    };
    let mut value = phrase(name, column);
    let last_line = match value.rsplit_once("\r\n") {
        Some((_, line)) => line.len(),
        None => column + value.len(),
    };
    // 3: a space and two angle brackets.
    let fits = last_line + address.len() + 3 <= LINE_BYTES_MAX;
    value.push_str(if fits { " <" } else { "\r\n <" });
    value.push_str(address);
    value.push('>');
    value
}

/// A display name as plain text, as a quoted string, or as encoded words.
fn phrase(name: &str, column: usize) -> String {
    if !is_plain(name) {
        return encoded(name, column);
    }
    let is_atom_text = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~ ".contains(c);
    if name.chars().all(is_atom_text) {
        return folded(name, column);
    }
    let escaped = name.replace('\\', "\\\\").replace('"', "\\\"");
    let quoted = format!("\"{escaped}\"");
    // Escaping may make a word too long for a line.
    if is_plain(&quoted) {
        folded(&quoted, column)
    } else {
        encoded(name, column)
    }
}

/// Whether a text can be written unencoded and folded: single spaces between the words
/// (mail programs drop others), no long words, and no encoded word.
fn is_plain(text: &str) -> bool {
    let is_word = |word: &str| {
        (1..=WORD_BYTES_MAX).contains(&word.len())
            && word.bytes().all(|byte| byte.is_ascii_graphic())
    };
    text.split(' ').all(is_word) && !encoded_word::may_contain(text)
}

fn folded(text: &str, column: usize) -> String {
    let mut value = String::new();
    let mut writer = EmailWriter::new(&mut value, column, 0, false);
    // Writing to a string cannot fail.
    let _written = writer.folding().write_str(text);
    drop(writer);
    value
}

fn encoded(text: &str, column: usize) -> String {
    let mut value = String::new();
    let mut writer = EmailWriter::new(&mut value, column, 0, false);
    let _written = rfc2047::encode(text, &mut writer);
    drop(writer);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_not_encoded() {
        for text in ["Hello", "Your order #7 (paid): 100 %", "a = b ? c", "?= x"] {
            assert_eq!(unstructured(text, 9), text);
        }
        for (name, written) in [
            ("Ada Lovelace", "Ada Lovelace"),
            ("Example, Inc.", "\"Example, Inc.\""),
            ("Ada \"Countess\" L\\", r#""Ada \"Countess\" L\\""#),
            ("O'Brien & Sons", "O'Brien & Sons"),
            ("a@b.example", "\"a@b.example\""),
        ] {
            let expected = format!("{written} <a@example.org>");
            assert_eq!(mailbox(Some(name), "a@example.org", 6), expected);
        }
        for name in [None, Some("")] {
            assert_eq!(mailbox(name, "a@example.org", 6), "a@example.org");
        }
    }

    #[test]
    fn text_that_mail_programs_would_change_is_encoded() {
        for text in [
            "Grüße",
            "two  spaces",
            " before",
            "after ",
            " ",
            "write =?utf-8?q?caf=C3=A9?= so",
            "=? never ends",
            "a\tb",
            "\u{1f4ec}",
        ] {
            let written = unstructured(text, 9);
            assert!(written.starts_with("=?utf-8?b?"), "{text:?}: {written}");
            let written = mailbox(Some(text), "a@example.org", 6);
            assert!(written.starts_with("=?utf-8?b?"), "{text:?}: {written}");
            assert!(written.ends_with(" <a@example.org>"), "{text:?}: {written}");
        }
    }

    #[test]
    fn no_line_is_too_long_or_empty() {
        let long: [String; 10] = [
            "x".repeat(998),
            "ü".repeat(998),
            "\u{1f4ec}".repeat(998),
            "e\u{301}".repeat(499),
            "word ".repeat(199) + "end",
            format!("{} {}", "x".repeat(60), "y".repeat(61)),
            "x ".repeat(499),
            " ".repeat(998),
            "\"".repeat(60),
            format!("{}, {}", "x".repeat(50), "\\".repeat(40)),
        ];
        for text in &long {
            let values = [
                unstructured(text, 9),
                mailbox(Some(text), "a@example.org", 10),
            ];
            for value in values {
                for (number, line) in value.split("\r\n").enumerate() {
                    let column = if number == 0 { 10 } else { 0 };
                    assert!(column + line.len() <= LINE_BYTES_MAX + 1, "{line:?}");
                    assert!(!line.trim().is_empty() && line.is_ascii(), "{line:?}");
                    assert!(!line.contains(['\r', '\n']), "{line:?}");
                }
            }
        }
    }
}
