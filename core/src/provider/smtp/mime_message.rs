//! Writes a mail as an RFC 5322 message, in ASCII. The headers are written here, the bodies
//! by lettre, which does not accept an address with a quoted local part. Pure.

use lettre::message::{MultiPart, SinglePart};

use super::super::mail::{OutgoingMail, Unsendable};
use super::wire::Content;
use crate::address::EmailAddress;
use crate::clock::Timestamp;
use crate::text::header;

/// A message and its envelope.
pub(super) struct MimeMessage {
    pub(super) from: EmailAddress,
    pub(super) to: EmailAddress,
    /// The Message-ID, in angle brackets. The same for every attempt: a mail client may
    /// hide a duplicate that was sent because a reply was lost.
    pub(super) message_id: String,
    pub(super) content: Content,
}

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
    let message_id = format!(
        "<{}.{}@{}>",
        mail.message_id,
        mail.recipient,
        mail.from.address().domain()
    );
    let mut lines = headers(mail, &message_id, now).into_bytes();
    lines.extend_from_slice(&bodies(mail));
    if !lines.ends_with(b"\r\n") {
        lines.extend_from_slice(b"\r\n");
    }
    let content = Content::of(&lines)
        .map_err(|what| Unsendable::message(format!("the mail cannot be written: {what}")))?;
    Ok(MimeMessage {
        from: mail.from.address().clone(),
        to: mail.to.address().clone(),
        message_id,
        content,
    })
}

/// All headers except those of the bodies.
fn headers(mail: &OutgoingMail, message_id: &str, now: Timestamp) -> String {
    let mut lines = vec![
        format!("Message-ID: {message_id}"),
        format!("Date: {}", now.to_rfc2822()),
    ];
    let parties = [
        ("From", Some(&mail.from)),
        ("To", Some(&mail.to)),
        ("Reply-To", mail.reply_to.as_ref()),
    ];
    for (name, party) in parties {
        if let Some(party) = party {
            let column = name.len() + ": ".len();
            let value = header::mailbox(party.name(), party.address().as_str(), column);
            lines.push(format!("{name}: {value}"));
        }
    }
    let subject = header::unstructured(&mail.subject, "Subject: ".len());
    lines.push(format!("Subject: {subject}"));
    // These are checked to be ASCII on one line. They are not folded or encoded, since some
    // mail clients do not understand a folded or encoded List-Unsubscribe.
    let further = mail.headers.iter();
    lines.extend(further.map(|(name, value)| format!("{name}: {value}")));
    lines.push("MIME-Version: 1.0\r\n".to_owned());
    lines.join("\r\n")
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
        let message = write_message(mail, Clock::system().now()).unwrap();
        let text = String::from_utf8(message.content.as_bytes().to_vec()).unwrap();
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
                let text = String::from_utf8(message.content.as_bytes().to_vec()).unwrap();
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
                assert!(!message.content.as_bytes().contains(&0), "{body:?}");
            }
        }
    }
}
