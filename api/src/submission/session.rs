//! The conversation with one client (RFC 5321, 6409, 3207, 4954).
//!
//! | what | bound |
//! |---|---|
//! | from the begin of a session to its login | 60 s |
//! | between two commands | 5 min |
//! | a mail | 60 s, plus a second for each 8 KiB received |
//! | commands without an accepted mail | 200 |
//! | failed logins | 3 |
//! | a session | an hour, or the mail that began before |
//! | recipients of a mail | 1,000 |
//!
//! When the program stops, a mail whose content has begun is received and answered; then, and in
//! all other sessions at once, the client gets 421.

use std::net::IpAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use waypost_core::secret::Secret;
use waypost_core::submission::command::{SmtpCommand, SmtpCommandError};
use waypost_core::telemetry::instruments;

use super::Submission;
use super::connection::{ClientConnection, LineRead, ReadEnd};
use super::login::{AuthMechanism, LoggedIn, login_password, plain_password};
use super::reply::SubmissionReply;
use super::transaction::Transaction;

/// How long the server waits for a client.
#[derive(Debug, Clone, Copy)]
pub(super) struct SessionLimits {
    /// From the begin of a session to its login.
    pub(super) login: Duration,
    /// Between two commands after it.
    pub(super) silence: Duration,
    /// A session, as long as no mail is being sent.
    pub(super) session: Duration,
    /// A mail.
    pub(super) mail: Duration,
    /// What a mail must bring for each further second.
    pub(super) mail_bytes_per_second_min: usize,
}

pub(super) const LIMITS: SessionLimits = SessionLimits {
    login: Duration::from_mins(1),
    silence: Duration::from_mins(5),
    session: Duration::from_hours(1),
    mail: Duration::from_mins(1),
    mail_bytes_per_second_min: 8 << 10,
};
const HANDSHAKE_MAX: Duration = Duration::from_secs(30);
const COMMANDS_MAX: u32 = 200;
const FAILED_LOGINS_MAX: u32 = 3;

/// What a client sends first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstBytes {
    /// Nothing: it waits for the greeting.
    Greeting,
    TlsHandshake,
}

/// Speaks with a client until one of both ends it.
pub(super) async fn serve_client(
    submission: &Submission,
    stream: TcpStream,
    address: IpAddr,
    first: FirstBytes,
) {
    let session = Session::new(submission, address);
    if first == FirstBytes::TlsHandshake {
        return session.serve_over_tls(stream, Greets::Yes).await;
    }
    let mut session = session;
    let mut connection = ClientConnection::new(stream);
    match session.converse(&mut connection, Greets::Yes).await {
        SessionEnd::Close => connection.close().await,
        SessionEnd::BeginTls => {
            let stream = connection.into_stream();
            // What the client said before the handshake is forgotten (RFC 3207, 4.2).
            let session = Session::new(submission, address);
            session.serve_over_tls(stream, Greets::No).await;
        }
    }
}

/// Whether a session begins with a greeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Greets {
    Yes,
    /// It was greeted before TLS began.
    No,
}

/// Why a conversation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionEnd {
    Close,
    BeginTls,
}

/// What follows a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Continue,
    End(SessionEnd),
}

/// The state of a conversation.
pub(super) struct Session<'a> {
    pub(super) submission: &'a Submission,
    pub(super) address: IpAddr,
    pub(super) began_at: Instant,
    is_tls: bool,
    pub(super) has_greeted: bool,
    pub(super) login: Option<Login>,
    pub(super) transaction: Option<Transaction>,
    pub(super) commands: u32,
    failed_logins: u32,
    /// The line that is being read.
    line: Vec<u8>,
}

/// The key of a session. It is looked up again for each mail: it may have been revoked.
pub(super) struct Login {
    pub(super) password: Secret,
}

impl<'a> Session<'a> {
    pub(super) fn new(submission: &'a Submission, address: IpAddr) -> Self {
        Self {
            submission,
            address,
            began_at: Instant::now(),
            is_tls: false,
            has_greeted: false,
            login: None,
            transaction: None,
            commands: 0,
            failed_logins: 0,
            line: Vec::new(),
        }
    }

    async fn serve_over_tls(mut self, stream: TcpStream, greets: Greets) {
        let Some(certificate) = &self.submission.certificate else {
            return;
        };
        let handshake = certificate.acceptor().accept(stream);
        let Ok(Ok(stream)) = timeout(HANDSHAKE_MAX, handshake).await else {
            return instruments::submission_refused("tls");
        };
        self.is_tls = true;
        let mut connection = ClientConnection::new(Box::new(stream));
        let _end = self.converse(&mut connection, greets).await;
        connection.close().await;
    }

    async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        connection: &mut ClientConnection<S>,
        greets: Greets,
    ) -> SessionEnd {
        if greets == Greets::Yes {
            let greeting = format!("{} ESMTP Waypost", self.submission.settings.hostname);
            connection.reply(&SubmissionReply::plain(220, vec![greeting]));
        }
        loop {
            let next = match self.read_command(connection).await {
                Ok(LineRead::Line) => self.follow(connection).await,
                Ok(LineRead::TooLong) => {
                    self.count_command();
                    connection.reply(&SubmissionReply::new(500, "5.5.2", "The line is too long"));
                    Ok(Next::Continue)
                }
                Err(end) => Err(end),
            };
            match next {
                Ok(Next::Continue) if self.commands <= COMMANDS_MAX => {}
                Ok(Next::Continue) => {
                    instruments::submission_refused("commands");
                    let text = "Too many commands without a mail";
                    connection.reply(&SubmissionReply::new(421, "4.7.0", text));
                    return SessionEnd::Close;
                }
                Ok(Next::End(end)) => return end,
                Err(SessionError::Closed) => return SessionEnd::Close,
                Err(SessionError::TimedOut) => {
                    instruments::submission_refused("slow");
                    connection.reply(&SubmissionReply::new(
                        421,
                        "4.4.2",
                        "Waited too long for you",
                    ));
                    return SessionEnd::Close;
                }
                Err(SessionError::Stopping) => {
                    let text = "The server stops; connect again";
                    connection.reply(&SubmissionReply::new(421, "4.3.2", text));
                    return SessionEnd::Close;
                }
            }
        }
    }

    /// Reads a line, unless the program stops.
    async fn read_command<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        connection: &mut ClientConnection<S>,
    ) -> Result<LineRead, SessionError> {
        let limits = &self.submission.limits;
        let deadline = match self.login {
            Some(_) => Instant::now() + limits.silence,
            None => self.began_at + limits.login,
        };
        tokio::select! {
            biased;
            () = self.submission.closing.cancelled() => Err(SessionError::Stopping),
            read = connection.read_line(&mut self.line, deadline) => Ok(read?),
        }
    }

    /// Does what the line says.
    async fn follow<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        connection: &mut ClientConnection<S>,
    ) -> Result<Next, SessionError> {
        let line = std::mem::take(&mut self.line);
        let next = match SmtpCommand::parse(&line) {
            Ok(SmtpCommand::Data) => self.data(connection).await?,
            Ok(SmtpCommand::Auth { mechanism, initial }) => {
                self.auth(connection, mechanism, initial).await?
            }
            Ok(command) => {
                let (reply, next) = self.answer(command).await;
                if !matches!(command, SmtpCommand::Rcpt { .. }) || !reply.is_success() {
                    self.count_command();
                }
                connection.reply(&reply);
                next
            }
            Err(error) => {
                self.count_command();
                connection.reply(&not_understood(error));
                match error {
                    SmtpCommandError::Http => Next::End(SessionEnd::Close),
                    SmtpCommandError::Unknown
                    | SmtpCommandError::NotOffered
                    | SmtpCommandError::Form(_)
                    | SmtpCommandError::Parameter => Next::Continue,
                }
            }
        };
        if next == Next::End(SessionEnd::BeginTls) {
            connection.flush().await?;
        }
        // The buffer is used again.
        self.line = line;
        Ok(next)
    }

    pub(super) fn count_command(&mut self) {
        self.commands += 1;
    }

    /// Answers a command that takes one line.
    async fn answer(&mut self, command: SmtpCommand<'_>) -> (SubmissionReply, Next) {
        let reply = match command {
            SmtpCommand::Ehlo => self.ehlo(),
            SmtpCommand::Helo => {
                (self.has_greeted, self.transaction) = (true, None);
                SubmissionReply::plain(250, vec![self.submission.settings.hostname.clone()])
            }
            SmtpCommand::StartTls => return self.start_tls(),
            SmtpCommand::Mail { size, .. } => return self.mail(size).await,
            SmtpCommand::Rcpt { address } => self.rcpt(address),
            SmtpCommand::Rset => {
                self.transaction = None;
                SubmissionReply::new(250, "2.0.0", "Ok")
            }
            SmtpCommand::Noop => SubmissionReply::new(250, "2.0.0", "Ok"),
            SmtpCommand::Vrfy => SubmissionReply::new(252, "2.0.0", "Send a mail to find out"),
            SmtpCommand::Help => {
                SubmissionReply::new(214, "2.0.0", "Waypost's docs/smtp.md says more")
            }
            SmtpCommand::Quit => {
                let reply = SubmissionReply::new(221, "2.0.0", "Bye");
                return (reply, Next::End(SessionEnd::Close));
            }
            SmtpCommand::Auth { .. } | SmtpCommand::Data => out_of_order("EHLO"),
        };
        (reply, Next::Continue)
    }

    fn ehlo(&mut self) -> SubmissionReply {
        (self.has_greeted, self.transaction) = (true, None);
        let settings = &self.submission.settings;
        let mut lines = vec![
            settings.hostname.clone(),
            format!("SIZE {}", settings.message_bytes_max),
            "8BITMIME".to_owned(),
            "PIPELINING".to_owned(),
            "ENHANCEDSTATUSCODES".to_owned(),
        ];
        if !self.is_tls && self.submission.certificate.is_some() {
            lines.push("STARTTLS".to_owned());
        }
        if self.may_log_in() {
            lines.push(AuthMechanism::OFFERED.to_owned());
        }
        SubmissionReply::plain(250, lines)
    }

    pub(super) fn may_log_in(&self) -> bool {
        self.is_tls || !self.submission.settings.requires_tls
    }

    fn start_tls(&mut self) -> (SubmissionReply, Next) {
        if self.is_tls || self.submission.certificate.is_none() {
            let text = if self.is_tls {
                "TLS has begun"
            } else {
                "There is no TLS"
            };
            return (SubmissionReply::new(503, "5.5.1", text), Next::Continue);
        }
        let reply = SubmissionReply::new(220, "2.0.0", "Begin TLS");
        (reply, Next::End(SessionEnd::BeginTls))
    }

    async fn auth<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        connection: &mut ClientConnection<S>,
        mechanism: &str,
        initial: Option<&str>,
    ) -> Result<Next, SessionError> {
        self.count_command();
        let refusal = if !self.has_greeted {
            Some(out_of_order("EHLO"))
        } else if !self.may_log_in() {
            let text = "Begin TLS first, by STARTTLS";
            Some(SubmissionReply::new(538, "5.7.11", text))
        } else if self.login.is_some() {
            Some(SubmissionReply::new(503, "5.5.1", "You have logged in"))
        } else {
            None
        };
        if let Some(refusal) = refusal {
            connection.reply(&refusal);
            return Ok(Next::Continue);
        }
        let Some(mechanism) = AuthMechanism::parse(mechanism) else {
            let text = "Only the mechanisms PLAIN and LOGIN are offered";
            connection.reply(&SubmissionReply::new(504, "5.5.4", text));
            return Ok(Next::Continue);
        };
        let initial = initial.map(ToOwned::to_owned);
        let Some(password) = self.ask_password(connection, mechanism, initial).await? else {
            let text = "The response is not what the mechanism says";
            connection.reply(&SubmissionReply::new(501, "5.5.2", text));
            return Ok(Next::Continue);
        };
        let (reply, next) = match self.submission.log_in(&password, self.address).await {
            LoggedIn::Done => {
                self.login = Some(Login { password });
                (
                    SubmissionReply::new(235, "2.7.0", "Logged in"),
                    Next::Continue,
                )
            }
            LoggedIn::TooMany(reply) => (reply, Next::End(SessionEnd::Close)),
            LoggedIn::Refused(reply) => {
                self.failed_logins += 1;
                let is_last = self.failed_logins >= FAILED_LOGINS_MAX;
                let next = match is_last {
                    true => Next::End(SessionEnd::Close),
                    false => Next::Continue,
                };
                (reply, next)
            }
        };
        connection.reply(&reply);
        Ok(next)
    }

    /// Asks for the responses of a mechanism. `None` if they are wrong or the client gives up.
    async fn ask_password<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        connection: &mut ClientConnection<S>,
        mechanism: AuthMechanism,
        initial: Option<String>,
    ) -> Result<Option<Secret>, SessionError> {
        let (user_prompt, password_prompt) = ("VXNlcm5hbWU6", "UGFzc3dvcmQ6");
        match mechanism {
            AuthMechanism::Plain => {
                let response = match initial {
                    Some(initial) => initial,
                    None => self.ask(connection, "").await?,
                };
                Ok(plain_password(&response))
            }
            AuthMechanism::Login => {
                if initial.is_none() && self.ask(connection, user_prompt).await? == "*" {
                    return Ok(None);
                }
                let response = self.ask(connection, password_prompt).await?;
                Ok(login_password(&response))
            }
        }
    }

    async fn ask<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        connection: &mut ClientConnection<S>,
        prompt: &str,
    ) -> Result<String, SessionError> {
        connection.reply(&SubmissionReply::plain(334, vec![prompt.to_owned()]));
        let read = self.read_command(connection).await?;
        let line = match read {
            LineRead::Line => String::from_utf8_lossy(&self.line).into_owned(),
            // No response is so long.
            LineRead::TooLong => "*".to_owned(),
        };
        self.line.clear();
        Ok(line)
    }
}

/// Why a conversation cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionError {
    Closed,
    TimedOut,
    Stopping,
}

impl From<ReadEnd> for SessionError {
    fn from(end: ReadEnd) -> Self {
        match end {
            ReadEnd::Closed => Self::Closed,
            ReadEnd::TimedOut => Self::TimedOut,
        }
    }
}

pub(super) fn out_of_order(first: &str) -> SubmissionReply {
    SubmissionReply::new(503, "5.5.1", &format!("Send {first} first"))
}

fn not_understood(error: SmtpCommandError) -> SubmissionReply {
    let text = error.to_string();
    match error {
        SmtpCommandError::Unknown => SubmissionReply::new(500, "5.5.2", &text),
        SmtpCommandError::NotOffered => SubmissionReply::new(502, "5.5.1", &text),
        SmtpCommandError::Form(_) => SubmissionReply::new(501, "5.5.4", &text),
        SmtpCommandError::Parameter => SubmissionReply::new(555, "5.5.4", &text),
        SmtpCommandError::Http => SubmissionReply::new(421, "4.7.0", &text),
    }
}
