//! The letter: an outgoing mail as a message of RFC 5322, in ASCII. Pure.

use std::time::SystemTime;

use email_encoding::headers::rfc2047;
use email_encoding::headers::writer::EmailWriter;
use lettre::Message;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox as HeaderMailbox, MultiPart, SinglePart};

use super::super::mail::{OutgoingMail, Unsendable};
use crate::address::{EmailAddress, Mailbox};
use crate::clock::Timestamp;

/// The longest word of a subject that is written as it is: a line has 998 octets at the
/// most (RFC 5322, 2.1.1).
const WORD_BYTES_MAX: usize = 900;

/// A letter and what is written on its envelope.
pub(super) struct Letter {
    /// Who gets it back.
    pub(super) from: EmailAddress,
    /// Its one recipient.
    pub(super) to: EmailAddress,
    /// Its Message-ID, in angle brackets. The same for every copy of it: a reader
    /// who gets a mail twice, because an answer was lost, may be shown it once.
    pub(super) message_id: String,
    /// Headers and bodies; each line ends in CR LF, the last one too.
    pub(super) content: Vec<u8>,
}

/// Writes the letter. It carries a Message-ID and no other mark of ours: no events
/// come back that would need one.
///
/// # Errors
/// Why it cannot be written.
pub(super) fn compose(mail: &OutgoingMail, now: Timestamp) -> Result<Letter, Unsendable> {
    mail.require_sendable()?;
    let message_id = format!(
        "<{}.{}@{}>",
        mail.message_id,
        mail.recipient,
        mail.from.address().domain()
    );
    let mut builder = Message::builder()
        .message_id(Some(message_id.clone()))
        .date(SystemTime::from(now))
        .from(header_mailbox(&mail.from))
        .to(header_mailbox(&mail.to));
    builder = match long_subject(&mail.subject) {
        Some(subject) => builder.raw_header(subject),
        None => builder.subject(mail.subject.clone()),
    };
    if let Some(reply_to) = &mail.reply_to {
        builder = builder.reply_to(header_mailbox(reply_to));
    }
    for (name, value) in &mail.headers {
        let name = HeaderName::new_from_ascii(name.clone())
            .map_err(|_| Unsendable::message("a header's name is longer than 76 characters"))?;
        // Checked to be ASCII on one line: as it stands, since a folded or encoded
        // List-Unsubscribe is not understood everywhere.
        let value = HeaderValue::dangerous_new_pre_encoded(name, value.clone(), value.clone());
        builder = builder.raw_header(value);
    }
    let filled = |body: &Option<String>| body.clone().filter(|text| !text.is_empty());
    let written = match (filled(&mail.text), filled(&mail.html)) {
        (Some(text), Some(html)) => {
            builder.multipart(MultiPart::alternative_plain_html(text, html))
        }
        (Some(text), None) => builder.singlepart(SinglePart::plain(text)),
        (None, html) => builder.singlepart(SinglePart::html(html.unwrap_or_default())),
    };
    let written = written
        .map_err(|error| Unsendable::message(format!("the mail cannot be written: {error}")))?;
    let mut content = written.formatted();
    if !content.ends_with(b"\r\n") {
        content.extend_from_slice(b"\r\n");
    }
    if !content.is_ascii() {
        return Err(Unsendable::message("the mail cannot be written in ASCII"));
    }
    Ok(Letter {
        from: mail.from.address().clone(),
        to: mail.to.address().clone(),
        message_id,
        content,
    })
}

/// A subject in encoded words, where it would be a line that is too long: the mail library
/// folds at spaces only.
fn long_subject(subject: &str) -> Option<HeaderValue> {
    if subject.split(' ').all(|word| word.len() <= WORD_BYTES_MAX) {
        return None;
    }
    let name = HeaderName::new_from_ascii_str("Subject");
    let mut encoded = String::new();
    // A text takes whatever is written to it.
    let _written = rfc2047::encode(
        subject,
        &mut EmailWriter::new(&mut encoded, "Subject: ".len(), 0, false),
    );
    Some(HeaderValue::dangerous_new_pre_encoded(
        name,
        subject.to_owned(),
        encoded,
    ))
}

fn header_mailbox(mailbox: &Mailbox) -> HeaderMailbox {
    let address = mailbox.address();
    let address = lettre::Address::new_dangerous(address.local_part(), address.domain());
    HeaderMailbox::new(mailbox.name().map(str::to_owned), address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use uuid::Uuid;

    fn mail() -> OutgoingMail {
        OutgoingMail {
            message_id: Uuid::from_u128(1).into(),
            recipient: 7,
            attempt_id: Uuid::from_u128(2).into(),
            from: Mailbox::parse("\"Müller, Zoë\" <zoe@example.com>").unwrap(),
            to: Mailbox::parse("ada@example.org").unwrap(),
            reply_to: None,
            subject: "Grüße 📬".to_owned(),
            html: Some("x".repeat(5_000)),
            text: Some(".\n..\nGrüße\rend".to_owned()),
            tags: vec!["secret-tag".to_owned()],
            headers: vec![(
                "List-Unsubscribe".to_owned(),
                format!("<https://example.com/{}>", "a".repeat(900)),
            )],
        }
    }

    fn lines(mail: &OutgoingMail) -> Vec<String> {
        let letter = compose(mail, Clock::system().now()).unwrap();
        let text = String::from_utf8(letter.content).unwrap();
        let text = text.strip_suffix("\r\n").unwrap();
        text.split("\r\n").map(str::to_owned).collect()
    }

    #[test]
    fn every_line_is_ascii_ends_in_cr_lf_and_is_short_enough() {
        for subject in ["Grüße 📬".to_owned(), "x".repeat(998), "ü".repeat(499)] {
            let mail = OutgoingMail { subject, ..mail() };
            for line in lines(&mail) {
                assert!(line.len() <= 998, "{} bytes", line.len());
                assert!(!line.contains(['\r', '\n']), "{line:?}");
                assert!(line.is_ascii(), "{line:?}");
            }
        }
    }

    #[test]
    fn a_given_header_stays_on_one_line_and_tags_are_not_shown() {
        let mail = mail();
        let (name, value) = &mail.headers[0];
        let lines = lines(&mail);
        assert!(lines.contains(&format!("{name}: {value}")));
        assert!(!lines.join("\n").contains("secret-tag"));
    }

    #[test]
    fn the_message_id_is_the_same_for_every_attempt() {
        let (first, mut again) = (mail(), mail());
        again.attempt_id = Uuid::from_u128(99).into();
        let now = Clock::system().now();
        let id = compose(&first, now).unwrap().message_id;
        assert_eq!(id, compose(&again, now).unwrap().message_id);
        assert_eq!(id, "<00000000-0000-0000-0000-000000000001.7@example.com>");
    }

    #[test]
    fn what_would_break_the_header_is_refused() {
        for subject in ["a\r\nBcc: x@example.org", "a\nb", "a\0", ""] {
            let mail = OutgoingMail {
                subject: subject.to_owned(),
                ..mail()
            };
            assert!(
                compose(&mail, Clock::system().now()).is_err(),
                "{subject:?}"
            );
        }
    }
}
