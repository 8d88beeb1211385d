#![no_main]

use std::fmt::Write as _;

use libfuzzer_sys::fuzz_target;
use waypost_core::submission::mail::{SubmittedFile, SubmittedMail};

// A mail is read or refused. What was read, written as a plain mail, is read as the same.
fuzz_target!(|bytes: &[u8]| {
    let mail = match SubmittedMail::read(bytes) {
        Ok(mail) => mail,
        Err(error) => {
            let text = error.to_string();
            assert!(text.is_ascii() && text.len() < 300 && !text.contains(['\r', '\n']));
            return;
        }
    };
    assert!(mail.fields.len() <= 1_000 && mail.files.len() <= 500);
    for field in &mail.fields {
        assert!(!field.name.is_empty() && field.name.bytes().all(|byte| byte.is_ascii_graphic()));
        assert!(!field.unfolded().contains(['\r', '\n']));
        let _text = field.text();
        assert!(field.addresses().len() <= bytes.len());
    }
    let written = write(&mail);
    let again = SubmittedMail::read(written.as_bytes());
    let again = again.unwrap_or_else(|error| panic!("{error}: {written}"));
    assert_eq!(again.text, mail.text.as_deref().map(line_feeds));
    assert_eq!(again.html, mail.html.as_deref().map(line_feeds));
    assert_eq!(again.files.len(), mail.files.len());
    for (read, given) in again.files.iter().zip(&mail.files) {
        assert!(read.content == given.content && read.is_attachment);
        assert_eq!(read.filename, given.filename);
        if is_plain(&given.content_type) {
            assert_eq!(read.content_type, given.content_type);
        }
    }
});

/// A body with CR CR LF has CR LF, which the second reading makes LF.
fn line_feeds(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// A mail with the same bodies and files, all in base64.
fn write(mail: &SubmittedMail<'_>) -> String {
    let mut text = "Content-Type: multipart/mixed; boundary=m\r\n\r\n--m\r\n".to_owned();
    text.push_str("Content-Type: multipart/alternative; boundary=a\r\n\r\n--a\r\n\r\n");
    for (kind, body) in [("plain", &mail.text), ("html", &mail.html)] {
        if let Some(body) = body {
            // The byte order mark that the reader removes: the body may begin with another one.
            let body = format!("\u{feff}{body}");
            let head = format!("\r\n--a\r\nContent-Type: text/{kind}; charset=utf-8\r\n");
            add_part(&mut text, &head, body.as_bytes());
        }
    }
    text.push_str("\r\n--a--\r\n");
    for file in &mail.files {
        add_part(
            &mut text,
            &format!("\r\n--m\r\n{}", file_head(file)),
            &file.content,
        );
    }
    text.push_str("\r\n--m--\r\n");
    text
}

fn file_head(file: &SubmittedFile) -> String {
    let kind = match is_plain(&file.content_type) {
        true => file.content_type.as_str(),
        false => "application/octet-stream",
    };
    let mut head = format!("Content-Type: {kind}\r\nContent-Disposition: attachment");
    if let Some(name) = &file.filename {
        head.push_str("; filename*=utf-8''");
        for byte in name.bytes() {
            let _written = write!(head, "%{byte:02X}");
        }
    }
    head + "\r\n"
}

fn add_part(text: &mut String, head: &str, content: &[u8]) {
    text.push_str(head);
    text.push_str("Content-Transfer-Encoding: base64\r\n\r\n");
    text.push_str(&base64(content));
}

/// Whether it is a type without parameters that needs no quotes.
fn is_plain(content_type: &str) -> bool {
    let is_token = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || b"-+.".contains(&byte))
    };
    let parts = content_type.split_once('/');
    parts.is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype) && kind != "multipart")
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let number = chunk
            .iter()
            .fold(0_u32, |number, &byte| number << 8 | u32::from(byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            match place <= chunk.len() {
                true => text.push(char::from(
                    DIGITS[(number >> (18 - 6 * place)) as usize & 63],
                )),
                false => text.push('='),
            }
        }
    }
    text
}
