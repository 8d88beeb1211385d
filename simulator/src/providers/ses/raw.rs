//! Parses a raw MIME message as far as necessary to find its sender, recipients and
//! subject.
//!
//! The MIME body is kept as one text; its parts are not parsed.

use crate::address::{Mailbox, split_list};

/// A raw message: its headers, unfolded, and the body.
pub(super) struct RawMessage {
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl RawMessage {
    pub(super) fn parse(message: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(message).replace("\r\n", "\n");
        let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
        let mut headers: Vec<(String, String)> = Vec::new();
        for line in head.lines() {
            if line.starts_with([' ', '\t']) {
                let (_, value) = headers.last_mut()?;
                value.push(' ');
                value.push_str(line.trim());
            } else {
                let (name, value) = line.split_once(':')?;
                headers.push((name.to_owned(), value.trim().to_owned()));
            }
        }
        Some(Self {
            headers,
            body: body.to_owned(),
        })
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The bare addresses in a header of mailboxes.
    pub(super) fn addresses(&self, name: &str) -> Vec<String> {
        split_list(self.header(name).unwrap_or_default())
            .into_iter()
            .filter_map(Mailbox::parse)
            .map(|mailbox| mailbox.address.to_owned())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::RawMessage;

    #[test]
    fn headers_are_unfolded() {
        let message = b"From: a@x.test\r\nSubject: One\r\n two\r\nTo: b@x.test,\r\n\tC <c@x.test>\
            \r\n\r\nHello\r\n";
        let raw = RawMessage::parse(message).expect("is a message");
        assert_eq!(raw.header("subject"), Some("One two"));
        assert_eq!(raw.addresses("To"), ["b@x.test", "c@x.test"]);
        assert_eq!(raw.body, "Hello\n");
    }
}
