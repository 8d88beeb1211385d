//! Replies to SMTP clients (RFC 5321, 4.2; RFC 2034): a code, an enhanced code, and text on one
//! or more lines.

use waypost_core::issue::Issue;

use crate::error::Failure;

/// The longest line of a reply, with its line end (RFC 5321, 4.5.3.1.5).
const LINE_BYTES_MAX: usize = 512;
/// The most lines of a reply.
const LINES_MAX: usize = 20;

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SubmissionReply {
    pub(super) code: u16,
    /// Empty for replies that have none.
    enhanced: &'static str,
    lines: Vec<String>,
}

impl SubmissionReply {
    /// A reply of one sentence.
    pub(super) fn new(code: u16, enhanced: &'static str, text: &str) -> Self {
        Self {
            code,
            enhanced,
            lines: vec![text.to_owned()],
        }
    }

    /// A reply without an enhanced code, as EHLO and AUTH have it.
    pub(super) fn plain(code: u16, lines: Vec<String>) -> Self {
        Self {
            code,
            enhanced: "",
            lines,
        }
    }

    /// Whether the client is told that what it asked for was done, or goes on.
    pub(super) fn is_success(&self) -> bool {
        self.code < 400
    }

    /// The reply to a mail that was not accepted: 4xx if the same mail may be accepted later.
    pub(super) fn of_failure(failure: &Failure) -> Self {
        let (code, enhanced) = codes(failure);
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "the others name no field of the request"
        )]
        let lines = match failure {
            Failure::Invalid(issues) => {
                let issues = issues.iter().map(header_issue).collect();
                Failure::Invalid(issues).sentences()
            }
            Failure::Unprocessable {
                message,
                path: Some(path),
                ..
            } => {
                let Issue { path, message, .. } = header_issue(&Issue::new(*path, message));
                vec![format!("{path} {message}")]
            }
            other => other.sentences(),
        };
        Self {
            code,
            enhanced,
            lines,
        }
    }

    /// The bytes of the reply.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        self.write_to(&mut bytes);
        bytes
    }

    pub(super) fn write_to(&self, bytes: &mut Vec<u8>) {
        let shown: Vec<&str> = self.lines.iter().flat_map(|line| pieces(line)).collect();
        let cut = shown.len() > LINES_MAX;
        let count = shown.len().min(LINES_MAX);
        for (index, line) in shown.iter().take(count).enumerate() {
            let is_last = index + 1 == count;
            let separator = if is_last { ' ' } else { '-' };
            bytes.extend_from_slice(format!("{}{separator}", self.code).as_bytes());
            if !self.enhanced.is_empty() {
                bytes.extend_from_slice(self.enhanced.as_bytes());
                bytes.push(b' ');
            }
            let line = if is_last && cut { "and more" } else { *line };
            let printable = |c: char| if c.is_ascii_graphic() { c } else { '?' };
            let line = line
                .chars()
                .map(|c| if c == ' ' { c } else { printable(c) });
            bytes.extend(line.map(|c| c as u8));
            bytes.extend_from_slice(b"\r\n");
        }
    }
}

/// A text in pieces that fit on a line, broken at spaces where there are any.
fn pieces(text: &str) -> Vec<&str> {
    // The code, the enhanced code, and the line end.
    const TEXT_CHARS_MAX: usize = LINE_BYTES_MAX - 16;
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((limit, _)) = rest.char_indices().nth(TEXT_CHARS_MAX) {
        let end = rest[..limit].rfind(' ').filter(|end| *end > 0);
        let (piece, after) = rest.split_at(end.unwrap_or(limit));
        pieces.push(piece);
        rest = after.trim_start_matches(' ');
    }
    pieces.push(rest);
    pieces
}

/// The codes of a failure (RFC 3463).
fn codes(failure: &Failure) -> (u16, &'static str) {
    let status = failure.status().as_u16();
    if let Failure::Conflict(reason, _) = failure
        && reason.retry_after_seconds().is_some()
    {
        return (451, "4.3.0");
    }
    match (failure, status) {
        // No account may send it.
        (
            Failure::Unprocessable {
                path: None | Some("from"),
                ..
            },
            _,
        ) => (554, "5.7.1"),
        (_, 401) => (535, "5.7.8"),
        (_, 403) => (550, "5.7.1"),
        (_, 413) => (552, "5.3.4"),
        (_, 429) => (452, "4.7.1"),
        (_, 500..) => (451, "4.3.0"),
        _ => (554, "5.6.0"),
    }
}

/// Fields of the request and the headers that they come from.
const HEADERS: [(&str, &str); 14] = [
    ("from", "From"),
    ("subject", "Subject"),
    ("replyTo", "Reply-To"),
    ("tags", "X-Waypost-Tags"),
    ("messageClass", "X-Waypost-Class"),
    ("metadata", "X-Waypost-Metadata"),
    ("templateId", "X-Waypost-Template"),
    ("variables", "X-Waypost-Variables"),
    ("locale", "X-Waypost-Locale"),
    ("unsubscribeGroupId", "X-Waypost-Group"),
    ("scheduledAt", "X-Waypost-Scheduled-At"),
    ("expiresAt", "X-Waypost-Expires-At"),
    ("providerAccountId", "X-Waypost-Account"),
    ("tracking", "X-Waypost-Tracking"),
];

/// An issue under the name of the header that it is about.
fn header_issue(issue: &Issue) -> Issue {
    let (field, rest) = issue.path.split_once('.').unwrap_or((&issue.path, ""));
    let header = HEADERS.iter().find(|(name, _)| *name == field);
    let path = match header {
        Some((_, header)) if rest.is_empty() => (*header).to_owned(),
        Some((_, header)) => format!("{header}.{rest}"),
        None if field == "headers" && !rest.is_empty() => rest.to_owned(),
        None => return issue.clone(),
    };
    Issue::new(path, issue.message.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(reply: SubmissionReply) -> String {
        String::from_utf8(reply.into_bytes()).unwrap()
    }

    #[test]
    fn every_mistake_has_a_line_under_the_name_of_its_header() {
        let issues = vec![
            Issue::new("from", "is required"),
            Issue::new("headers.X-A", "must not be empty"),
            Issue::new("tags.2", "must not contain Grüße\r\n"),
            Issue::new("", "is wrong"),
        ];
        assert_eq!(
            text(SubmissionReply::of_failure(&Failure::Invalid(issues))),
            "554-5.6.0 From is required\r\n\
             554-5.6.0 X-A must not be empty\r\n\
             554-5.6.0 X-Waypost-Tags.2 must not contain Gr??e??\r\n\
             554 5.6.0 The message is wrong\r\n"
        );
    }

    #[test]
    fn lines_are_short_and_few() {
        let long = SubmissionReply::new(554, "5.6.0", &"word ".repeat(300));
        for line in text(long).split_inclusive("\r\n") {
            assert!(line.len() <= LINE_BYTES_MAX && line.starts_with("554"));
        }
        let unbroken = text(SubmissionReply::new(554, "5.6.0", &"é".repeat(2_000)));
        assert!(unbroken.lines().all(|line| line.len() < LINE_BYTES_MAX));
        let issues = (0..100).map(|nth| Issue::new(format!("to.{nth}"), "is wrong"));
        let many = text(SubmissionReply::of_failure(&Failure::Invalid(
            issues.collect(),
        )));
        assert_eq!(many.lines().count(), LINES_MAX);
        assert!(many.ends_with("554 5.6.0 and more\r\n"));
    }
}
