//! The names of attachments: file name, media type, content id. They become parts of headers
//! and file names on the recipient's disk. Pure.

/// The longest file name and media type, in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// The longest content id, in bytes.
pub const CONTENT_ID_BYTES_MAX: usize = 200;

/// Checks a file name: one path segment, without characters that hide what it is.
///
/// # Errors
/// The rule that it breaks; completes "the name …".
pub fn check_filename(name: &str) -> Result<(), &'static str> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err("must have 1 to 255 bytes");
    }
    if name.chars().any(|c| c.is_control() || is_invisible(c)) {
        return Err(
            "must not contain control characters or characters that change the direction of text",
        );
    }
    if name.contains(['/', '\\']) || name == "." || name == ".." {
        return Err("must be a name without a path");
    }
    if name.trim() != name {
        return Err("must not begin or end with white space");
    }
    Ok(())
}

/// Characters that change the direction of text or break lines: `fdp.exe` would be shown as
/// `exe.pdf`.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
    )
}

/// Checks a media type, such as `text/calendar; method=REQUEST`.
///
/// # Errors
/// The rule that it breaks; completes "the type …".
pub fn check_content_type(text: &str) -> Result<(), &'static str> {
    const MALFORMED: &str = "must be a media type such as application/pdf";
    if text.len() > NAME_BYTES_MAX {
        return Err("must not be longer than 255 bytes");
    }
    let mut parts = text.split(';');
    let essence = parts.next().unwrap_or_default().trim_end();
    let (kind, subtype) = essence.split_once('/').ok_or(MALFORMED)?;
    if !is_token(kind) || !is_token(subtype) {
        return Err(MALFORMED);
    }
    if kind.eq_ignore_ascii_case("multipart") {
        return Err("must not be a multipart type");
    }
    for parameter in parts {
        let (name, value) = parameter.trim().split_once('=').ok_or(MALFORMED)?;
        let value = value
            .strip_prefix('"')
            .and_then(|value| value.strip_suffix('"'))
            .unwrap_or(value);
        if !is_token(name) || !is_token(value) {
            return Err(MALFORMED);
        }
        // It would be a second, unchecked file name.
        if name.to_ascii_lowercase().starts_with("name") {
            return Err("must not have the parameter name; filename is the name");
        }
    }
    Ok(())
}

/// A token (RFC 2045, 5.1).
fn is_token(text: &str) -> bool {
    let is_token_byte = |byte: u8| byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token_byte)
}

/// Checks a content id: what stands behind `cid:` in the HTML, without angle brackets.
///
/// # Errors
/// The rule that it breaks; completes "the id …".
pub fn check_content_id(id: &str) -> Result<(), &'static str> {
    if id.is_empty() || id.len() > CONTENT_ID_BYTES_MAX {
        return Err("must have 1 to 200 characters");
    }
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$*+-.=@^_~".contains(&byte);
    if !id.bytes().all(is_allowed) {
        return Err(
            "must have only letters, digits and !#$*+-.=@^_~, without cid: and angle brackets",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_one_visible_path_segment() {
        let longest = "x".repeat(NAME_BYTES_MAX);
        for name in [
            "a",
            "invoice 1042.pdf",
            "Grüße.txt",
            "日本語.pdf",
            ".htaccess",
            "a\"b.txt",
            "...",
            &longest,
        ] {
            assert_eq!(check_filename(name), Ok(()), "{name}");
        }
        let longer = "ü".repeat(128);
        for name in [
            "",
            "../a",
            "a/b",
            "C:\\a",
            ".",
            "..",
            "a\r\nb",
            "a\0",
            "a\u{7f}",
            "\u{202e}fdp.exe",
            "a\u{2066}b",
            "a\u{200f}",
            "a\u{200b}.exe",
            "a\u{2028}b",
            " a",
            "a ",
            &longer,
        ] {
            assert!(check_filename(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn media_types_have_two_tokens_and_parameters() {
        for text in [
            "application/pdf",
            "text/calendar; charset=utf-8; method=REQUEST",
            "text/plain;charset=\"utf-8\"",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            "image/svg+xml",
        ] {
            assert_eq!(check_content_type(text), Ok(()), "{text}");
        }
        for text in [
            "",
            "pdf",
            "/pdf",
            "application/",
            "a/b/c",
            "text/plain; charset",
            "text/plain; charset=\"a\r\nX: y\"",
            "text/plain\r\nBcc: a@example.org",
            "text/plain; name=evil.exe",
            "text/plain; NAME*=evil",
            "multipart/mixed; boundary=x",
            "text/plain;",
            "tëxt/plain",
        ] {
            assert!(check_content_type(text).is_err(), "{text:?}");
        }
        assert!(check_content_type(&format!("a/{}", "b".repeat(254))).is_err());
    }

    #[test]
    fn content_ids_need_no_escape_in_a_url() {
        for id in ["logo", "logo@example.com", "a.b-c_d", &"x".repeat(200)] {
            assert_eq!(check_content_id(id), Ok(()), "{id}");
        }
        for id in [
            "",
            "cid:logo",
            "<logo>",
            "a b",
            "a\r\n",
            "a\"",
            "a%20b",
            "é",
            "a/b",
            &"x".repeat(201),
        ] {
            assert!(check_content_id(id).is_err(), "{id:?}");
        }
    }
}
