//! Command lines of SMTP (RFC 5321, 4.1.1), with the parameters of the extensions that Waypost
//! offers.

/// The longest command line, without its line end.
pub const LINE_BYTES_MAX: usize = 1_000;

/// A command of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmtpCommand<'a> {
    Ehlo,
    Helo,
    StartTls,
    Auth {
        mechanism: &'a str,
        /// The first response, in base64.
        initial: Option<&'a str>,
    },
    Mail {
        /// Empty for mail that must not be answered.
        address: &'a str,
        /// The size of the mail in bytes, as the client announces it.
        size: Option<u64>,
    },
    Rcpt {
        address: &'a str,
    },
    Data,
    Rset,
    Noop,
    Vrfy,
    Help,
    Quit,
}

/// Why a line is not a command. `Display` is the reply's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SmtpCommandError {
    #[error("Unknown command")]
    Unknown,
    #[error("This command is not offered")]
    NotOffered,
    /// The form of the command.
    #[error("The command must have the form {0}")]
    Form(&'static str),
    #[error("This parameter is not offered")]
    Parameter,
    /// A browser was made to speak to this port.
    #[error("This is SMTP, not HTTP")]
    Http,
}

const MAIL_FORM: &str = "MAIL FROM:<address>";
const RCPT_FORM: &str = "RCPT TO:<address>";
const AUTH_FORM: &str = "AUTH mechanism [initial-response]";
const EHLO_FORM: &str = "EHLO domain";
const HELO_FORM: &str = "HELO domain";

/// Methods of HTTP.
const HTTP_METHODS: [&str; 8] = [
    "GET", "POST", "PUT", "HEAD", "OPTIONS", "CONNECT", "DELETE", "PATCH",
];

impl<'a> SmtpCommand<'a> {
    /// Parses a line without its line end.
    ///
    /// # Errors
    /// Why it is none.
    pub fn parse(line: &'a [u8]) -> Result<Self, SmtpCommandError> {
        let line = std::str::from_utf8(line).map_err(|_| SmtpCommandError::Unknown)?;
        let line = line.trim_end_matches([' ', '\t']);
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim_start_matches(' ');
        let is = |name: &str| verb.eq_ignore_ascii_case(name);
        let alone = |command, form| match rest {
            "" => Ok(command),
            _ => Err(SmtpCommandError::Form(form)),
        };
        if is("MAIL") {
            return mail(rest);
        }
        if is("RCPT") {
            return rcpt(rest);
        }
        if is("DATA") {
            return alone(Self::Data, "DATA");
        }
        if is("RSET") {
            return alone(Self::Rset, "RSET");
        }
        if is("QUIT") {
            return alone(Self::Quit, "QUIT");
        }
        if is("STARTTLS") {
            return alone(Self::StartTls, "STARTTLS");
        }
        if is("EHLO") {
            return with_domain(Self::Ehlo, rest, EHLO_FORM);
        }
        if is("HELO") {
            return with_domain(Self::Helo, rest, HELO_FORM);
        }
        if is("AUTH") {
            return auth(rest);
        }
        if is("NOOP") {
            return Ok(Self::Noop);
        }
        if is("VRFY") {
            return Ok(Self::Vrfy);
        }
        if is("HELP") {
            return Ok(Self::Help);
        }
        if ["EXPN", "BDAT", "TURN", "ETRN", "BURL"]
            .iter()
            .any(|name| is(name))
        {
            return Err(SmtpCommandError::NotOffered);
        }
        if HTTP_METHODS.iter().any(|name| is(name)) {
            return Err(SmtpCommandError::Http);
        }
        Err(SmtpCommandError::Unknown)
    }
}

fn with_domain<'a>(
    command: SmtpCommand<'a>,
    domain: &str,
    form: &'static str,
) -> Result<SmtpCommand<'a>, SmtpCommandError> {
    if domain.is_empty() {
        return Err(SmtpCommandError::Form(form));
    }
    Ok(command)
}

fn auth(rest: &str) -> Result<SmtpCommand<'_>, SmtpCommandError> {
    let mut words = rest.split_ascii_whitespace();
    let mechanism = words.next().ok_or(SmtpCommandError::Form(AUTH_FORM))?;
    let initial = words.next();
    match words.next() {
        None => Ok(SmtpCommand::Auth { mechanism, initial }),
        Some(_) => Err(SmtpCommandError::Form(AUTH_FORM)),
    }
}

fn mail(rest: &str) -> Result<SmtpCommand<'_>, SmtpCommandError> {
    let (address, parameters) = path(rest, "FROM:").ok_or(SmtpCommandError::Form(MAIL_FORM))?;
    let mut size = None;
    for parameter in parameters.split_ascii_whitespace() {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        if name.eq_ignore_ascii_case("SIZE") {
            let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
            let form = SmtpCommandError::Form("MAIL FROM:<address> SIZE=bytes");
            // A number beyond every limit is too large and no mistake.
            size = Some(if digits {
                value.parse().unwrap_or(u64::MAX)
            } else {
                return Err(form);
            });
        } else if name.eq_ignore_ascii_case("BODY") {
            let known = ["7BIT", "8BITMIME"];
            if !known.iter().any(|one| value.eq_ignore_ascii_case(one)) {
                return Err(SmtpCommandError::Parameter);
            }
        } else if !name.eq_ignore_ascii_case("AUTH") {
            return Err(SmtpCommandError::Parameter);
        }
    }
    Ok(SmtpCommand::Mail { address, size })
}

fn rcpt(rest: &str) -> Result<SmtpCommand<'_>, SmtpCommandError> {
    let form = SmtpCommandError::Form(RCPT_FORM);
    let (address, parameters) = path(rest, "TO:").ok_or(form)?;
    if !parameters.trim().is_empty() {
        return Err(SmtpCommandError::Parameter);
    }
    if address.is_empty() {
        return Err(form);
    }
    Ok(SmtpCommand::Rcpt { address })
}

/// The address of a path, `FROM:<address>`, and what follows. The route of an old path,
/// `<@a,@b:address>`, is left out (RFC 5321, 4.1.1.3).
fn path<'a>(text: &'a str, keyword: &str) -> Option<(&'a str, &'a str)> {
    let (given, rest) = text.split_at_checked(keyword.len())?;
    if !given.eq_ignore_ascii_case(keyword) {
        return None;
    }
    let rest = rest.trim_start_matches(' ').strip_prefix('<')?;
    let (mut is_quoted, mut is_escaped, mut end) = (false, false, None);
    for (index, character) in rest.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '>' if !is_quoted => {
                end = Some(index);
                break;
            }
            _ => {}
        }
    }
    let (address, after) = (rest.get(..end?)?, rest.get(end? + 1..)?);
    if !(after.is_empty() || after.starts_with(' ')) {
        return None;
    }
    let address = match address.strip_prefix('@') {
        Some(route) => route.split_once(':')?.1,
        None => address,
    };
    Some((address, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<SmtpCommand<'_>, SmtpCommandError> {
        SmtpCommand::parse(line.as_bytes())
    }

    #[test]
    fn commands_are_read_in_any_case() {
        let mail = |address, size| Ok(SmtpCommand::Mail { address, size });
        let rcpt = |address| Ok(SmtpCommand::Rcpt { address });
        let auth = |mechanism, initial| Ok(SmtpCommand::Auth { mechanism, initial });
        for (line, expected) in [
            ("EHLO client.example", Ok(SmtpCommand::Ehlo)),
            ("ehlo [192.0.2.1]", Ok(SmtpCommand::Ehlo)),
            ("HELO x", Ok(SmtpCommand::Helo)),
            ("data", Ok(SmtpCommand::Data)),
            ("QUIT ", Ok(SmtpCommand::Quit)),
            ("NOOP anything", Ok(SmtpCommand::Noop)),
            ("StartTLS", Ok(SmtpCommand::StartTls)),
            ("AUTH PLAIN", auth("PLAIN", None)),
            ("auth login dXNlcg==", auth("login", Some("dXNlcg=="))),
            ("MAIL FROM:<a@example.com>", mail("a@example.com", None)),
            ("mail from: <a@example.com>", mail("a@example.com", None)),
            ("MAIL FROM:<>", mail("", None)),
            (
                "MAIL FROM:<a@b.c> SIZE=12 BODY=8bitmime AUTH=<>",
                mail("a@b.c", Some(12)),
            ),
            (
                "MAIL FROM:<a@b.c> SIZE=99999999999999999999",
                mail("a@b.c", Some(u64::MAX)),
            ),
            ("RCPT TO:<\"a>b\"@example.com>", rcpt("\"a>b\"@example.com")),
            ("RCPT TO:<@one.example,@two.example:a@b.c>", rcpt("a@b.c")),
            ("RCPT TO:<a@bücher.example>", rcpt("a@bücher.example")),
        ] {
            assert_eq!(parsed(line), expected, "{line}");
        }
    }

    #[test]
    fn other_lines_are_refused_with_the_reason() {
        use SmtpCommandError::{Form, Http, NotOffered, Parameter, Unknown};
        for (line, expected) in [
            ("", Unknown),
            ("XCLIENT ADDR=1", Unknown),
            ("EXPN list", NotOffered),
            ("BDAT 5 LAST", NotOffered),
            ("GET / HTTP/1.1", Http),
            ("DATA x", Form("DATA")),
            ("EHLO", Form(EHLO_FORM)),
            ("AUTH", Form(AUTH_FORM)),
            ("AUTH PLAIN a b", Form(AUTH_FORM)),
            ("MAIL", Form(MAIL_FORM)),
            ("MAIL FROM:a@b.c", Form(MAIL_FORM)),
            ("MAIL FROM:<a@b.c", Form(MAIL_FORM)),
            ("MAIL FROM:<a@b.c>SIZE=1", Form(MAIL_FORM)),
            ("MAIL FROM:<a@b.c> SMTPUTF8", Parameter),
            ("MAIL FROM:<a@b.c> BODY=BINARYMIME", Parameter),
            ("MAIL FROM:<a@b.c> RET=FULL", Parameter),
            ("RCPT TO:<>", Form(RCPT_FORM)),
            ("RCPT TO:<a@b.c> NOTIFY=NEVER", Parameter),
        ] {
            assert_eq!(parsed(line), Err(expected), "{line}");
        }
        assert!(SmtpCommand::parse(b"NOOP \xff").is_err());
    }
}
