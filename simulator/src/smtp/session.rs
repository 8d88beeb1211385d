//! A session: RFC 5321 with STARTTLS, AUTH, SIZE, 8BITMIME, SMTPUTF8, PIPELINING and
//! enhanced codes.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::net::TcpStream;

use super::lines::{Content, Lines, SmtpStream, encrypt};
use super::mime_message::MimeMessage;
use super::{Encryption, MAIL_BYTES_MAX};
use crate::address::{domain_of, is_address};
use crate::capture::Accepted;
use crate::credentials::CredentialKind;
use crate::faults::{AccountProblem, FaultEffect};
use crate::providers::Provider;
use crate::recipients::{AcceptedReply, Decision, decide};
use crate::state::State;

/// Recipients of one message.
const RECIPIENTS_MAX: usize = 1_000;
/// How long a session without a reply lasts; far longer than any client waits.
const SILENCE_MAX: Duration = Duration::from_secs(900);

const PROVIDER: Provider = Provider::Smtp;
const THROTTLED: &str = "421 4.7.0 Error: too many messages, try again later";
const FAILED: &str = "451 4.3.0 Error: queue file write error";

/// The state of a session.
pub(super) struct Session {
    state: Arc<State>,
    offers_tls: bool,
    greeted: bool,
    /// Whether the client sent EHLO, and not HELO.
    extended: bool,
    credential_kind: CredentialKind,
    mail: Option<Mail>,
}

/// An open mail transaction.
struct Mail {
    accepts_8_bit: bool,
    accepts_utf8: bool,
    from: String,
    recipients: Vec<String>,
}

/// The end of a session.
enum End {
    Close,
    Encrypt,
    Reset,
    Silence,
}

type StepResult = io::Result<ControlFlow<End>>;

impl Session {
    /// Runs a session to its end.
    pub(super) async fn run(stream: TcpStream, encryption: Encryption, state: Arc<State>) {
        // A disconnect of the client is no error of the server.
        let _ = Self::serve(stream, encryption, state).await;
    }

    async fn serve(stream: TcpStream, encryption: Encryption, state: Arc<State>) -> io::Result<()> {
        let mut session = Self {
            state,
            offers_tls: encryption == Encryption::Offered,
            greeted: false,
            extended: false,
            credential_kind: CredentialKind::Good,
            mail: None,
        };
        if encryption == Encryption::Implicit {
            let mut lines = Lines::new(encrypt(stream).await?);
            let end = session.greet(&mut lines).await?;
            return session.end(lines, end).await;
        }
        let mut lines = Lines::new(stream);
        match session.greet(&mut lines).await? {
            End::Encrypt => {}
            end @ (End::Close | End::Reset | End::Silence) => {
                return session.end(lines, end).await;
            }
        }
        // Commands that a client sent in the clear behind STARTTLS are discarded.
        let Some(stream) = lines.into_stream() else {
            return Ok(());
        };
        let mut lines = Lines::new(encrypt(stream).await?);
        session.offers_tls = false;
        (session.greeted, session.extended) = (false, false);
        let end = session.run_commands(&mut lines).await?;
        session.end(lines, end).await
    }

    async fn end<W: SmtpStream>(&self, lines: Lines<W>, end: End) -> io::Result<()> {
        match end {
            End::Close | End::Encrypt => {}
            End::Reset => lines.reset(),
            // A stop of the simulator ends this wait.
            End::Silence => tokio::time::sleep(SILENCE_MAX).await,
        }
        Ok(())
    }

    async fn greet<W: SmtpStream>(&mut self, lines: &mut Lines<W>) -> io::Result<End> {
        let state = Arc::clone(&self.state);
        if let Some(delay) = state.faults.delay(PROVIDER, false, &state.ids) {
            tokio::time::sleep(delay).await;
        }
        match state.faults.effect_on_read(PROVIDER, &state.ids) {
            None => {}
            Some(FaultEffect::Throttle) => {
                lines.reply("421 4.7.0 Error: too many connections").await?;
                return Ok(End::Close);
            }
            Some(FaultEffect::Error | FaultEffect::Account(_)) => {
                lines.reply("554 5.3.2 Service not available").await?;
                return Ok(End::Close);
            }
            Some(FaultEffect::Timeout) => return Ok(End::Silence),
            Some(FaultEffect::Reset | FaultEffect::Gateway) => return Ok(End::Reset),
        }
        lines.reply("220 smtp.example.com ESMTP simulator").await?;
        self.run_commands(lines).await
    }

    async fn run_commands<W: SmtpStream>(&mut self, lines: &mut Lines<W>) -> io::Result<End> {
        while let Some(line) = lines.command().await? {
            if let ControlFlow::Break(end) = self.execute(lines, &line).await? {
                return Ok(end);
            }
        }
        Ok(End::Close)
    }

    async fn execute<W: SmtpStream>(&mut self, lines: &mut Lines<W>, line: &str) -> StepResult {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let reply: String = match verb.to_ascii_uppercase().as_str() {
            "EHLO" | "AUTH" | "STARTTLS" if !self.knows_ehlo() => {
                "502 5.5.1 Error: command not implemented".into()
            }
            "EHLO" | "HELO" if rest.trim().is_empty() => "501 5.5.4 Syntax: EHLO hostname".into(),
            "HELO" => {
                (self.greeted, self.extended, self.mail) = (true, false, None);
                "250 smtp.example.com".into()
            }
            "EHLO" => {
                (self.greeted, self.extended, self.mail) = (true, true, None);
                self.capabilities()
            }
            "NOOP" => "250 2.0.0 Ok".into(),
            "VRFY" => "252 2.0.0 Send some mail, I'll try my best".into(),
            "RSET" => {
                self.mail = None;
                "250 2.0.0 Ok".into()
            }
            "QUIT" => {
                lines.reply("221 2.0.0 Bye").await?;
                return Ok(ControlFlow::Break(End::Close));
            }
            "STARTTLS" if self.offers_tls => {
                lines.reply("220 2.0.0 Ready to start TLS").await?;
                return Ok(ControlFlow::Break(End::Encrypt));
            }
            "AUTH" | "MAIL" | "RCPT" | "DATA" if !self.greeted => {
                "503 5.5.1 Error: send HELO/EHLO first".into()
            }
            "AUTH" => return self.log_in(lines, rest).await,
            "MAIL" => self.begin_mail(rest),
            "RCPT" => self.add_recipient(rest),
            "DATA" => return self.receive_content(lines).await,
            _ => "500 5.5.2 Error: command not recognized".into(),
        };
        lines.reply(&reply).await?;
        Ok(ControlFlow::Continue(()))
    }

    fn knows_ehlo(&self) -> bool {
        self.state.smtp_knows_ehlo.load(Ordering::Relaxed)
    }

    fn capabilities(&self) -> String {
        let mut capabilities = vec![
            "smtp.example.com".to_owned(),
            "PIPELINING".to_owned(),
            format!("SIZE {MAIL_BYTES_MAX}"),
        ];
        if self.offers_tls {
            capabilities.push("STARTTLS".to_owned());
        }
        for capability in ["AUTH PLAIN LOGIN", "ENHANCEDSTATUSCODES", "8BITMIME"] {
            capabilities.push(capability.to_owned());
        }
        let lines: Vec<String> = capabilities
            .iter()
            .map(|capability| format!("250-{capability}"))
            .collect();
        lines.join("\r\n") + "\r\n250 SMTPUTF8"
    }

    async fn log_in<W: SmtpStream>(&mut self, lines: &mut Lines<W>, rest: &str) -> StepResult {
        let (mechanism, initial) = rest.split_once(' ').unwrap_or((rest, ""));
        let login = match mechanism.to_ascii_uppercase().as_str() {
            "PLAIN" => {
                let text = match initial {
                    "" => read_credential(lines, "").await?,
                    given => decode(given),
                };
                let parts = text
                    .as_deref()
                    .map(|text| text.split('\0').collect::<Vec<_>>());
                match parts.as_deref() {
                    Some([_, username, password]) => Some(format!("{username}\n{password}")),
                    _ => None,
                }
            }
            "LOGIN" => {
                let username = read_credential(lines, "VXNlcm5hbWU6").await?;
                let password = read_credential(lines, "UGFzc3dvcmQ6").await?;
                username.zip(password).map(|(u, p)| format!("{u}\n{p}"))
            }
            _ => {
                lines
                    .reply("504 5.5.4 Unrecognized authentication type")
                    .await?;
                return Ok(ControlFlow::Continue(()));
            }
        };
        let reply = match login.as_deref().map(CredentialKind::of) {
            None => "501 5.5.2 Error: malformed authentication",
            Some(CredentialKind::Invalid) => "535 5.7.8 Error: authentication failed",
            // The firewall in front of the server, not the server itself.
            Some(CredentialKind::Firewall) => "454 4.7.0 Temporary authentication failure",
            Some(credential_kind) => {
                self.credential_kind = credential_kind;
                "235 2.7.0 Authentication successful"
            }
        };
        lines.reply(reply).await?;
        Ok(ControlFlow::Continue(()))
    }

    fn begin_mail(&mut self, rest: &str) -> String {
        if self.mail.is_some() {
            return "503 5.5.1 Error: nested MAIL command".into();
        }
        match self.credential_kind {
            CredentialKind::NoCredit => {
                return "454 4.7.0 Throttling failure: Daily message quota exceeded.".into();
            }
            CredentialKind::NoSendScope => {
                return "550 5.7.60 Client does not have permissions to send".into();
            }
            CredentialKind::Good
            | CredentialKind::SendOnly
            | CredentialKind::Invalid
            | CredentialKind::Firewall => {}
        }
        let Some((address, parameters)) = path(rest, "FROM:") else {
            return "501 5.5.4 Syntax: MAIL FROM:<address>".into();
        };
        if !self.extended && !parameters.trim().is_empty() {
            return "555 5.5.4 Unsupported option".into();
        }
        let mut mail = Mail {
            accepts_8_bit: false,
            accepts_utf8: false,
            from: address.to_owned(),
            recipients: Vec::new(),
        };
        for parameter in parameters.split_whitespace() {
            let parameter = parameter.to_ascii_uppercase();
            match parameter.split_once('=').unwrap_or((&parameter, "")) {
                ("SIZE", size) => match size.parse::<usize>() {
                    Ok(size) if size <= MAIL_BYTES_MAX => {}
                    Ok(_) => return "552 5.3.4 Message size exceeds fixed limit".into(),
                    Err(_) => return "501 5.5.4 Bad message size syntax".into(),
                },
                ("BODY", "7BIT") => {}
                ("BODY", "8BITMIME") => mail.accepts_8_bit = true,
                ("SMTPUTF8", "") => mail.accepts_utf8 = true,
                _ => return format!("555 5.5.4 Unsupported option: {parameter}"),
            }
        }
        let is_null = address.is_empty();
        if !is_null && !is_address(address) {
            return "501 5.1.7 Bad sender address syntax".into();
        }
        if !address.is_ascii() && !mail.accepts_utf8 {
            return "553 5.6.7 Must have SMTPUTF8 for that address".into();
        }
        if domain_of(address).contains("unverified") {
            return format!("553 5.7.1 <{address}>: Sender address rejected: not owned by user");
        }
        self.mail = Some(mail);
        "250 2.1.0 Ok".into()
    }

    fn add_recipient(&mut self, rest: &str) -> String {
        let Some(mail) = &mut self.mail else {
            return "503 5.5.1 Error: need MAIL command".into();
        };
        let Some((address, parameters)) = path(rest, "TO:") else {
            return "501 5.5.4 Syntax: RCPT TO:<address>".into();
        };
        if !parameters.trim().is_empty() {
            return "555 5.5.4 Unsupported option".into();
        }
        if !is_address(address) {
            return "501 5.1.3 Bad recipient address syntax".into();
        }
        if !address.is_ascii() && !mail.accepts_utf8 {
            return "553 5.6.7 Must have SMTPUTF8 for that address".into();
        }
        if mail.recipients.len() >= RECIPIENTS_MAX {
            return "452 4.5.3 Error: too many recipients".into();
        }
        let end = address.find(['+', '@']).unwrap_or(address.len());
        let refusal = match address[..end].to_ascii_lowercase().as_str() {
            "hard-bounce" => "550 5.1.1 Recipient address rejected: User unknown in local table",
            "soft-bounce" => "452 4.2.2 The recipient's mailbox is full",
            "block" => "550 5.7.1 Recipient address rejected: blocked by policy",
            "refuse" => "554 5.7.1 Recipient address rejected: Access denied",
            "relay-denied" => "554 5.7.1 Relay access denied",
            "greylist" if self.state.seen_once.is_first(address) => {
                "451 4.7.1 Recipient address rejected: Greylisted, try again later"
            }
            _ => {
                mail.recipients.push(address.to_owned());
                return "250 2.1.5 Ok".into();
            }
        };
        let (codes, words) = refusal.split_at("550 5.1.1".len());
        format!("{codes} <{address}>:{words}")
    }

    async fn receive_content<W: SmtpStream>(&mut self, lines: &mut Lines<W>) -> StepResult {
        let Some(mail) = self.mail.take().filter(|mail| !mail.recipients.is_empty()) else {
            lines.reply("554 5.5.1 Error: no valid recipients").await?;
            return Ok(ControlFlow::Continue(()));
        };
        let state = Arc::clone(&self.state);
        if let Some(delay) = state.faults.delay(PROVIDER, true, &state.ids) {
            tokio::time::sleep(delay).await;
        }
        let recipients = mail.recipients.iter().map(String::as_str);
        let accepted_reply = match decide(&state, PROVIDER, recipients) {
            Decision::Accept(accepted_reply) => accepted_reply,
            Decision::Throttle { .. } => {
                lines.reply(THROTTLED).await?;
                return Ok(ControlFlow::Break(End::Close));
            }
            Decision::Error => {
                lines.reply(FAILED).await?;
                return Ok(ControlFlow::Continue(()));
            }
            Decision::Reject(problem) => {
                lines.reply(refusal(problem)).await?;
                return Ok(ControlFlow::Continue(()));
            }
        };
        lines.reply("354 End data with <CR><LF>.<CR><LF>").await?;
        let content = match lines.content(mail.accepts_8_bit).await? {
            Content::Mail(content) => content,
            Content::Wrong(reply) => {
                lines.reply(reply).await?;
                return Ok(ControlFlow::Continue(()));
            }
        };
        let Some(message) = MimeMessage::parse(&content, &mail.from, state.captures.keeps_bodies())
        else {
            let reply = "550 5.7.1 Messages missing a valid From and Message-ID are not accepted";
            lines.reply(reply).await?;
            return Ok(ControlFlow::Continue(()));
        };
        state.captures.record(Accepted {
            provider: PROVIDER,
            credential: "",
            provider_message_id: message.message_id.clone(),
            recipients: mail
                .recipients
                .iter()
                .map(|to| message.recipient(to))
                .collect(),
        });
        match accepted_reply {
            AcceptedReply::Answer => {
                let reply = format!("250 2.0.0 Ok: queued as {}", state.ids.request());
                lines.reply(&reply).await?;
                Ok(ControlFlow::Continue(()))
            }
            AcceptedReply::Silence => Ok(ControlFlow::Break(End::Silence)),
            // No gateway in front of an SMTP server could respond in its place.
            AcceptedReply::Reset | AcceptedReply::Gateway(_) => Ok(ControlFlow::Break(End::Reset)),
        }
    }
}

/// The reply of an SMTP server if the account may not send.
fn refusal(problem: AccountProblem) -> &'static str {
    match problem {
        // As SendGrid replies, by a report of its users.
        AccountProblem::Limit => "451 You've exceeded your messaging limits",
        AccountProblem::Pause => "454 4.7.0 Sending is paused for this account",
        AccountProblem::Suspended => "550 5.7.0 This account is suspended",
    }
}

/// Requests one more piece of a login; `None` if it cannot be read.
async fn read_credential<W: SmtpStream>(
    lines: &mut Lines<W>,
    challenge: &str,
) -> io::Result<Option<String>> {
    lines.reply(&format!("334 {challenge}")).await?;
    Ok(lines.command().await?.and_then(|answer| decode(&answer)))
}

fn decode(text: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(text).ok()?).ok()
}

/// The address in `FROM:<address> parameters`, and the parameters.
fn path<'a>(text: &'a str, keyword: &str) -> Option<(&'a str, &'a str)> {
    let (given, rest) = text.split_at_checked(keyword.len())?;
    if !given.eq_ignore_ascii_case(keyword) {
        return None;
    }
    let rest = rest.trim_start().strip_prefix('<')?;
    // A quoted local part may contain an angle bracket, a domain cannot.
    let close = rest.rfind('>')?;
    Some((&rest[..close], &rest[close + 1..]))
}
