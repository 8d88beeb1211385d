//! Writes a mail as an RFC 5322 message, in ASCII. The headers are written here, the bodies
//! by lettre, which does not accept an address with a quoted local part. Pure.

use lettre::message::{MultiPart, SinglePart};

use super::super::mail::{OutgoingMail, Unsendable, header_value};
use super::parts::MimeParts;
use super::wire::Segment;
use crate::address::{EmailAddress, Mailbox};
use crate::clock::Timestamp;
use crate::text::header;

/// A message and its envelope.
pub(super) struct MimeMessage {
    pub(super) from: EmailAddress,
    /// All recipients, those of Bcc too: no header names those.
    pub(super) to: Vec<EmailAddress>,
    /// The Message-ID, in angle brackets. The same for every attempt: a mail client may
    /// hide a duplicate that was sent because a reply was lost.
    pub(super) message_id: String,
    /// Files are encoded while they are written, so no copy of them is made.
    pub(super) segments: Vec<Segment>,
}

impl MimeMessage {
    /// The size in bytes (RFC 1870, 6.1).
    pub(super) fn size(&self) -> usize {
        self.segments.iter().map(Segment::size).sum()
    }
}

/// The longest line of a header, without its line break (RFC 5322, 2.1.1).
const LINE_BYTES_MAX: usize = 998;

/// Writes the message. It carries a Message-ID and no other id of ours: SMTP accounts have
/// no events that would return them.
///
/// # Errors
/// Why the message cannot be written.
pub(super) fn write_message(
    mail: &OutgoingMail,
    now: Timestamp,
) -> Result<MimeMessage, Unsendable> {
    mail.require_sendable()?;
    let (id, domain) = (mail.message_id, mail.from.address().domain());
    let message_id = match mail.recipient {
        Some(recipient) => format!("<{id}.{recipient}@{domain}>"),
        None => format!("<{id}@{domain}>"),
    };
    let mut parts = MimeParts::new(mail.attempt_id);
    parts.write(headers(mail, &message_id, now).as_bytes());
    parts
        .write_mail(&bodies(mail), mail)
        .map_err(|what| Unsendable::message(format!("the mail cannot be written: {what}")))?;
    let segments = parts
        .finish()
        .map_err(|what| Unsendable::message(format!("the mail cannot be written: {what}")))?;
    let to = mail.recipients().map(|mailbox| mailbox.address().clone());
    Ok(MimeMessage {
        from: mail.from.address().clone(),
        to: to.collect(),
        message_id,
        segments,
    })
}

/// All headers except those of the bodies.
fn headers(mail: &OutgoingMail, message_id: &str, now: Timestamp) -> String {
    let mut lines = vec![
        format!("Message-ID: {message_id}"),
        format!("Date: {}", now.to_rfc2822()),
    ];
    let parties = [
        ("From", std::slice::from_ref(&mail.from)),
        ("To", &mail.to),
        ("Cc", &mail.cc),
        ("Reply-To", &mail.reply_to),
    ];
    let given = parties
        .into_iter()
        .filter(|(_, parties)| !parties.is_empty());
    lines.extend(given.map(|(name, parties)| mailboxes(name, parties)));
    let subject = header::unstructured(&mail.subject, "Subject: ".len());
    lines.push(format!("Subject: {subject}"));
    let further = mail.headers.iter();
    lines.extend(further.map(|(name, value)| extra_header(name, value)));
    lines.push("MIME-Version: 1.0\r\n".to_owned());
    lines.join("\r\n")
}

/// A header with one mailbox a line.
fn mailboxes(name: &str, mailboxes: &[Mailbox]) -> String {
    let mut line = format!("{name}: ");
    for (nth, mailbox) in mailboxes.iter().enumerate() {
        if nth > 0 {
            line.push_str(",\r\n ");
        }
        let column = if nth == 0 { name.len() + ": ".len() } else { 1 };
        line.push_str(&header::mailbox(
            mailbox.name(),
            mailbox.address().as_str(),
            column,
        ));
    }
    line
}

/// An extra header. A value in ASCII stays as it is and on one line, if it fits: some mail
/// programs do not understand a folded or encoded List-Unsubscribe.
fn extra_header(name: &str, value: &str) -> String {
    if !value.is_ascii() {
        let value = header::unstructured(value, name.len() + ": ".len());
        return format!("{name}: {value}");
    }
    let mut header = format!("{name}: ");
    let mut line = header.len();
    for word in header_value(value).split_inclusive(' ') {
        // A fold comes before a space, so the space stays; a line of spaces alone is none.
        if line + word.len() > LINE_BYTES_MAX && header.ends_with(' ') && word.len() > 1 {
            header.pop();
            header.push_str("\r\n ");
            line = 1;
        }
        header.push_str(word);
        line += word.len();
    }
    header
}

/// The bodies with their headers, plain text before HTML.
fn bodies(mail: &OutgoingMail) -> Vec<u8> {
    let filled = |body: &Option<String>| {
        let text = body.as_deref().filter(|text| !text.is_empty());
        text.map(with_crlf)
    };
    match (filled(&mail.text), filled(&mail.html)) {
        (Some(text), Some(html)) => MultiPart::alternative_plain_html(text, html).formatted(),
        (Some(text), None) => single_part(SinglePart::plain(text)),
        (None, html) => single_part(SinglePart::html(html.unwrap_or_default())),
    }
}

/// A single body. lettre ends each part with a line break that belongs to the following
/// boundary; a single body has none.
fn single_part(part: SinglePart) -> Vec<u8> {
    let mut formatted = part.formatted();
    if part.raw_body().ends_with(b"\r\n") {
        formatted.truncate(formatted.len() - 2);
    }
    formatted
}

/// A text with CR LF at the end of every line, which may have been CR LF, LF or CR.
fn with_crlf(text: &str) -> String {
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    lines.replace('\n', "\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Mailbox;
    use crate::clock::Clock;
    use uuid::Uuid;

    fn mail() -> OutgoingMail {
        OutgoingMail {
            message_id: Uuid::from_u128(1).into(),
            recipient: Some(7),
            attempt_id: Uuid::from_u128(2).into(),
            from: Mailbox::parse("\"Müller, Zoë\" <zoe@example.com>").unwrap(),
            to: vec![Mailbox::parse("ada@example.org").unwrap()],
            cc: Vec::new(),
            bcc: Vec::new(),
            reply_to: Vec::new(),
            subject: "Grüße 📬".to_owned(),
            html: Some("x".repeat(5_000)),
            text: Some(".\n..\nGrüße\rend".to_owned()),
            tags: vec!["secret-tag".to_owned()],
            headers: vec![(
                "List-Unsubscribe".to_owned(),
                format!("<https://example.com/{}>", "a".repeat(900)),
            )],
            attachments: Vec::new(),
        }
    }

    fn text(message: &MimeMessage) -> String {
        let mut bytes = Vec::new();
        for segment in &message.segments {
            segment
                .blocks()
                .for_each(|block| bytes.extend_from_slice(&block));
        }
        String::from_utf8(bytes).unwrap()
    }

    fn lines(mail: &OutgoingMail) -> Vec<String> {
        let message = write_message(mail, Clock::system().now()).unwrap();
        let text = text(&message);
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
    fn a_single_body_ends_as_it_was_given() {
        for (given, end) in [
            ("a", "a\r\n"),
            ("a\n", "a\r\n"),
            (
                "A letter from far away: ä\r\n\n",
                "A letter from far away: =C3=A4\r\n\r\n",
            ),
        ] {
            for is_html in [false, true] {
                let body = Some(given.to_owned());
                let mail = OutgoingMail {
                    html: body.clone().filter(|_| is_html),
                    text: body.filter(|_| !is_html),
                    ..mail()
                };
                let message = write_message(&mail, Clock::system().now()).unwrap();
                let text = text(&message);
                let (_, body) = text.split_once("\r\n\r\n").unwrap();
                assert_eq!(body, end, "{given:?}");
            }
        }
    }

    #[test]
    fn an_extra_header_stays_on_one_line_and_tags_are_not_written() {
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
        let id = write_message(&first, now).unwrap().message_id;
        assert_eq!(id, write_message(&again, now).unwrap().message_id);
        assert_eq!(id, "<00000000-0000-0000-0000-000000000001.7@example.com>");
    }

    #[test]
    fn a_subject_that_would_break_the_header_is_refused() {
        for subject in ["a\r\nBcc: x@example.org", "a\nb", "a\0", ""] {
            let mail = OutgoingMail {
                subject: subject.to_owned(),
                ..mail()
            };
            assert!(
                write_message(&mail, Clock::system().now()).is_err(),
                "{subject:?}"
            );
        }
    }

    /// Sequences that a server might take for the end of a mail.
    const ENDS: [&str; 16] = [
        "\r\n.\r\n",
        "\n.\n",
        "\r.\r",
        "\r\n.\r",
        "\r\n.\n",
        "\n.\r\n",
        "\r.\r\n",
        "\r\n\r.\r\n",
        "\n\n.\r\n",
        "\r\r.\r\r",
        "\n\r.\n\r",
        "\r\n.\r\r\n",
        "\r\n..\r\n",
        "\u{85}.\u{85}",
        "\u{2028}.\u{2028}",
        "\u{b}.\u{c}",
    ];

    #[test]
    fn no_body_ends_the_mail_early() {
        // Paddings that make the encoding break the line at every place of the sequence.
        let paddings = (0..4).chain(68..78).chain(990..1_000);
        for (padding, end) in paddings.flat_map(|n| ENDS.map(|end| (n, end))) {
            let padding = "x".repeat(padding);
            let body = format!("{padding}{end}MAIL FROM:<evil@example.org>\r\n");
            for (text, html) in [
                (Some(body.clone()), None),
                (None, Some(body.clone())),
                (Some(body.clone()), Some(body.clone())),
                (Some(format!("é{body}")), None),
            ] {
                let mail = OutgoingMail {
                    text,
                    html,
                    ..mail()
                };
                for line in lines(&mail) {
                    assert_ne!(line, ".", "{end:?}");
                    assert!(!line.contains(['\r', '\n', '\0']), "{end:?}: {line:?}");
                }
            }
        }
    }

    #[test]
    fn every_line_end_becomes_cr_lf() {
        for (given, written) in [
            ("a\rb\nc\r\nd", "a\r\nb\r\nc\r\nd"),
            ("\r\n\r.\r\n", "\r\n\r\n.\r\n"),
            ("\n\r", "\r\n\r\n"),
            ("\r\r\n\n", "\r\n\r\n\r\n"),
            ("", ""),
        ] {
            assert_eq!(with_crlf(given), written, "{given:?}");
        }
    }

    #[test]
    fn a_nul_in_a_body_is_not_written() {
        for body in ["a\0b", "é\0", "\0"] {
            let mail = OutgoingMail {
                text: Some(body.to_owned()),
                ..mail()
            };
            if let Ok(message) = write_message(&mail, Clock::system().now()) {
                assert!(!text(&message).contains('\0'), "{body:?}");
            }
        }
    }
}
