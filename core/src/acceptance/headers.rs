//! Extra headers of a message. Pure. Refused are names that Waypost, the provider or the
//! servers on the way set, and those by which a provider takes orders.

use crate::issue::Issue;
use crate::text::encoded_word;

/// The most headers of a message.
pub const HEADERS_MAX: usize = 50;
/// The most bytes of names and values together.
pub const HEADERS_BYTES_MAX: usize = 8 << 10;
/// The longest name. A name cannot be folded, and must leave room on its line.
pub const NAME_BYTES_MAX: usize = 126;

/// Names of headers that Waypost or a mail server writes, in lower case. `Sender` would let a
/// mail speak for a domain that nobody has verified.
const WRITTEN: [&str; 16] = [
    "authentication-results",
    "bcc",
    "cc",
    "date",
    "delivered-to",
    "domainkey-signature",
    "from",
    "message-id",
    "mime-version",
    "received",
    "received-spf",
    "reply-to",
    "return-path",
    "sender",
    "subject",
    "to",
];
/// The beginnings of further such names.
const WRITTEN_BEGINNINGS: [&str; 3] = ["arc-", "content-", "dkim-"];
/// Beginnings of other names that are refused, in lower case. By those of a provider its own
/// settings of the mail could be changed: which events it reports, to whom it goes.
const REFUSED_BEGINNINGS: [&str; 7] = [
    "resent-",
    "x-mailgun-",
    "x-pm-",
    "x-sendgrid-",
    "x-ses-",
    "x-sg-",
    "x-waypost-",
];
/// SendGrid's settings of a mail that it gets over SMTP.
const SENDGRID_SETTINGS: &str = "x-smtpapi";
/// Headers that belong to the unsubscribe group of a message.
const OF_THE_GROUP: [&str; 2] = ["list-unsubscribe", "list-unsubscribe-post"];

/// Whether Waypost or a mail server writes the header of this name, in lower case.
#[must_use]
pub fn is_written(name: &str) -> bool {
    WRITTEN.contains(&name) || WRITTEN_BEGINNINGS.iter().any(|one| name.starts_with(one))
}

/// Validates headers: their names and values, in the order of the request. White space
/// around a value is removed.
///
/// # Errors
/// All issues, with the names as paths.
pub fn parse(given: Vec<(String, String)>) -> Result<Vec<(String, String)>, Vec<Issue>> {
    let mut issues = Vec::new();
    if given.len() > HEADERS_MAX {
        let message = format!(
            "must not have more than {HEADERS_MAX} headers; there are {}",
            given.len()
        );
        issues.push(Issue::new("", message));
    }
    let bytes: usize = given
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    if bytes > HEADERS_BYTES_MAX {
        let message =
            format!("must not be larger than {HEADERS_BYTES_MAX} bytes, names and values together");
        issues.push(Issue::new("", message));
    }
    let mut parsed: Vec<(String, String)> = Vec::with_capacity(given.len().min(HEADERS_MAX));
    for (name, value) in given {
        if issues.len() >= Issue::SHOWN_MAX {
            break;
        }
        let value = value.trim_matches([' ', '\t']);
        let is_repeated = || {
            parsed
                .iter()
                .any(|(other, _)| other.eq_ignore_ascii_case(&name))
        };
        if let Err(problem) = check_name(&name).and_then(|()| check_value(value)) {
            issues.push(Issue::new(path_of(&name), problem));
        } else if is_repeated() {
            let problem = "must not be given twice; upper and lower case do not matter";
            issues.push(Issue::new(path_of(&name), problem));
        } else {
            parsed.push((name, value.to_owned()));
        }
    }
    if issues.is_empty() {
        Ok(parsed)
    } else {
        Err(issues)
    }
}

/// The issues of headers in a message with an unsubscribe group, which has its own.
#[must_use]
pub fn issues_of_group(headers: &[(String, String)]) -> Vec<Issue> {
    let of_the_group = headers.iter().filter(|(name, _)| {
        OF_THE_GROUP
            .iter()
            .any(|other| name.eq_ignore_ascii_case(other))
    });
    let issues = of_the_group.map(|(name, _)| {
        Issue::new(
            name.as_str(),
            "must not be given with unsubscribeGroupId, which sets it",
        )
    });
    issues.collect()
}

fn check_name(name: &str) -> Result<(), &'static str> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err("must be a header name: letters, digits and hyphens");
    }
    if name.len() > NAME_BYTES_MAX {
        return Err("must have a name of at most 126 characters");
    }
    let lower = name.to_ascii_lowercase();
    if is_written(&lower)
        || lower == SENDGRID_SETTINGS
        || REFUSED_BEGINNINGS.iter().any(|one| lower.starts_with(one))
    {
        return Err("must not be given: Waypost or the provider sets it");
    }
    Ok(())
}

fn check_value(value: &str) -> Result<(), &'static str> {
    if value.is_empty() {
        return Err("must not be empty");
    }
    if value.chars().any(char::is_control) || encoded_word::contains_control(value) {
        return Err("must not contain control characters such as line breaks");
    }
    if !value.is_ascii() {
        return Err("must be ASCII; write other characters as encoded words (RFC 2047)");
    }
    Ok(())
}

/// The step of an issue path for a name, which may be anything. Dots would be read as steps.
#[must_use]
pub fn path_of(name: &str) -> String {
    let visible = name.chars().filter(|c| !c.is_control() && *c != '.');
    visible.take(NAME_BYTES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str, value: &str) -> Result<Vec<(String, String)>, Vec<Issue>> {
        parse(vec![(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn headers_of_threads_lists_and_own_ones_pass() {
        for (name, value) in [
            ("In-Reply-To", "<1@example.com>"),
            ("References", "<1@example.com> <2@example.com>"),
            ("X-Order", "1042"),
            ("List-Id", "<news.example.com>"),
            ("List-Unsubscribe", "<mailto:leave@example.com>"),
            ("Auto-Submitted", "auto-generated"),
            ("X-Text", "=?utf-8?q?Gr=C3=BC=C3=9Fe?="),
            ("X-Sesame", "the beginning is another's"),
        ] {
            let expected = vec![(name.to_owned(), value.to_owned())];
            assert_eq!(parsed(name, value), Ok(expected), "{name}");
        }
        let trimmed = parsed("X-Order", "  1042\t").unwrap();
        assert_eq!(trimmed[0].1, "1042");
    }

    #[test]
    fn names_that_others_set_are_refused_in_any_case() {
        for name in [
            "From",
            "sender",
            "TO",
            "Cc",
            "bcc",
            "Reply-To",
            "Subject",
            "Date",
            "Message-ID",
            "Message-Id",
            "MIME-Version",
            "Content-Type",
            "content-transfer-encoding",
            "Received",
            "Return-Path",
            "DKIM-Signature",
            "Dkim-Filter",
            "ARC-Seal",
            "Resent-To",
            "X-SMTPAPI",
            "X-SES-CONFIGURATION-SET",
            "X-PM-Message-Stream",
            "X-Mailgun-Variables",
            "X-SG-EID",
            "x-waypost-attempt",
        ] {
            let issues = parsed(name, "x").unwrap_err();
            assert!(issues[0].message.contains("sets it"), "{name}: {issues:?}");
        }
    }

    #[test]
    fn names_and_values_that_would_break_a_mail_are_refused() {
        for name in ["", "X Y", "X:", "X:Y", "X\r\nBcc", "Ä", "X\"", "X@Y", "(X)"] {
            assert!(parsed(name, "x").is_err(), "{name:?}");
        }
        for value in [
            "",
            " ",
            "a\r\nBcc: b@example.org",
            "a\nb",
            "a\0b",
            "a\u{7f}b",
            "a\tb",
            "Grüße",
            "\u{202e}x",
            "=?utf-8?q?a=0D=0ABcc:_b?=",
        ] {
            assert!(parsed("X-A", value).is_err(), "{value:?}");
        }
    }

    #[test]
    fn number_and_size_are_bounded_and_a_name_comes_once() {
        let headers = |count: usize| (0..count).map(|nth| (format!("X-{nth}"), "v".to_owned()));
        assert!(parse(headers(HEADERS_MAX).collect()).is_ok());
        assert!(parse(headers(HEADERS_MAX + 1).collect()).is_err());
        assert!(parsed("X-A", &"v".repeat(HEADERS_BYTES_MAX - 3)).is_ok());
        assert!(parsed("X-A", &"v".repeat(HEADERS_BYTES_MAX - 2)).is_err());
        let twice = [("X-A", "1"), ("x-a", "2")];
        let twice = twice.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let issues = parse(twice.into()).unwrap_err();
        assert_eq!(issues[0].path, "x-a");
    }
}
