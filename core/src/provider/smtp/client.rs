//! Sends letters, and says what came of them. What a broken conversation proves
//! depends on how far it came: until the line that ends the content is written,
//! no server has the mail; from there on, until its reply is read, it may have it
//! (RFC 5321, 4.2.5 and 4.5.4.2).

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustls_platform_verifier::Verifier;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

use super::super::mail::OutgoingMail;
use super::super::outcome::{AccountTrouble, CredentialCheck, SendOutcome, clean};
use super::super::transport::TransportSettings;
use super::account::SmtpAccount;
use super::compose::{Letter, compose};
use super::connection::{Connection, SessionSetup, Trouble};
use super::dial::{NoConnection, dial};
use super::lines::{AccountConnections, Lines};
use super::refusal::{read_refusal, read_refusal_of_mail};
use super::reply::{Reply, Stage};
use crate::clock::Timestamp;
use crate::fault::Fault;
use crate::provider::smtp::settings::SmtpSettings;

/// How long a call waits for a free connection. Whoever waits holds a place that mail
/// for other servers needs.
const QUEUE_WAIT: Duration = Duration::from_millis(250);
/// When a mail that found none is tried again.
const BUSY_AGAIN: Duration = Duration::from_secs(1);
/// How long a server may take to say goodbye to a check.
const QUIT_TIMEOUT: Duration = Duration::from_secs(1);

/// What came of a send, and the code of the reply, where one came.
type SmtpResult = (SendOutcome, Option<u16>);

/// Speaks with mail servers. Cheap to clone; clones share the connections.
#[derive(Clone)]
pub(in super::super) struct SmtpClient {
    settings: SmtpSettings,
    connect_timeout: Duration,
    call_timeout: Duration,
    tls: Arc<ClientConfig>,
    lines: Lines,
}

impl fmt::Debug for SmtpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmtpClient")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Why there is no conversation in which to send.
enum NotOpened {
    Forbidden,
    Trouble(Trouble),
}

impl SmtpClient {
    /// A client with connections of its own.
    ///
    /// # Errors
    /// A fault when TLS cannot be set up: no root certificates, or a file of further
    /// ones that cannot be read.
    pub(in super::super) fn new(settings: &TransportSettings) -> Result<Self, Fault> {
        Ok(Self {
            connect_timeout: settings.connect_timeout.min(settings.call_timeout),
            call_timeout: settings.call_timeout,
            tls: Arc::new(tls(settings.smtp.ca_file.as_deref())?),
            lines: Lines::new(settings.idle_timeout),
            settings: settings.smtp.clone(),
        })
    }

    /// Logs in over a connection of its own, and leaves.
    pub(in super::super) async fn check(&self, account: &SmtpAccount) -> CredentialCheck {
        let undecided = |reason: &str| CredentialCheck::Undecided {
            reason: clean(reason),
        };
        let invalid = |reason: String| CredentialCheck::Invalid { reason };
        let mut connection = match timeout(self.call_timeout, self.open(account)).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(NotOpened::Forbidden)) => {
                return invalid("the server has no public address".to_owned());
            }
            Ok(Err(NotOpened::Trouble(Trouble::Refused { stage, reply }))) => {
                return match stage {
                    Stage::Login if (500..600).contains(&reply.code) => invalid(reply.reason()),
                    Stage::Greeting
                    | Stage::Login
                    | Stage::Sender
                    | Stage::Recipient
                    | Stage::Content => undecided(&reply.reason()),
                };
            }
            Ok(Err(NotOpened::Trouble(Trouble::Lacks { what }))) => return invalid(clean(what)),
            Ok(Err(NotOpened::Trouble(Trouble::Broken { reason }))) => return undecided(&reason),
            Err(_) => return undecided(LATE),
        };
        let quit = connection.expect(Stage::Greeting, Some("QUIT"), 221);
        // Whatever it answers: it knows us.
        let _gone = timeout(QUIT_TIMEOUT, quit).await;
        CredentialCheck::Valid
    }

    /// Sends one mail.
    pub(in super::super) async fn send(
        &self,
        account: &SmtpAccount,
        mail: &OutgoingMail,
        now: Timestamp,
    ) -> SmtpResult {
        let letter = match compose(mail, now) {
            Ok(letter) => letter,
            Err(refusal) => return (refusal.into(), None),
        };
        let end = Instant::now() + self.call_timeout;
        let line = self.lines.of(account);
        let waited = timeout(QUEUE_WAIT, line.permits.acquire());
        let Ok(Ok(_permit)) = waited.await else {
            // The server did not say so: its account is not to go slower.
            let outcome = SendOutcome::Deferred {
                retry_after: Some(BUSY_AGAIN),
                reason: "all connections to the server are busy".to_owned(),
            };
            return (outcome, None);
        };
        let handed_over = AtomicBool::new(false);
        let delivered = self.deliver(account, &line, &letter, &handed_over);
        match timeout_at(end, delivered).await {
            Ok(sent) => sent,
            Err(_) => broken(LATE, &handed_over),
        }
    }

    async fn deliver(
        &self,
        account: &SmtpAccount,
        line: &AccountConnections,
        letter: &Letter,
        handed_over: &AtomicBool,
    ) -> SmtpResult {
        if let Some(mut kept) = line.take() {
            let result = hand_over(&mut kept, letter, handed_over).await;
            // The server may have closed a connection that lay idle. A fresh one
            // tells whether there is more to it.
            if !is_stale(&result) || handed_over.load(Ordering::Relaxed) {
                return finish(line, kept, result, letter, handed_over);
            }
        }
        match self.open(account).await {
            Ok(mut connection) => {
                let result = hand_over(&mut connection, letter, handed_over).await;
                finish(line, connection, result, letter, handed_over)
            }
            Err(NotOpened::Forbidden) => broken("the server has no public address", handed_over),
            Err(NotOpened::Trouble(trouble)) => read_trouble(trouble, handed_over),
        }
    }

    async fn open(&self, account: &SmtpAccount) -> Result<Connection, NotOpened> {
        let (server, guard) = match &self.settings.stand_in {
            Some(server) => (server, None),
            None => (&account.server, Some(&self.settings.guard)),
        };
        let dialled = dial(server, guard, self.connect_timeout).await;
        let stream = dialled.map_err(|error| match error {
            NoConnection::Forbidden => NotOpened::Forbidden,
            NoConnection::Unreachable { reason } => NotOpened::Trouble(Trouble::Broken { reason }),
        })?;
        let opening = SessionSetup {
            account,
            tls: &self.tls,
            hello: &self.settings.hello,
        };
        Connection::open(Box::new(stream), &opening)
            .await
            .map_err(NotOpened::Trouble)
    }
}

const LATE: &str = "the server did not answer in time";

/// One transaction: envelope, content, and the reply to it. `handed_over` is set
/// when the server may have the mail.
async fn hand_over(
    connection: &mut Connection,
    letter: &Letter,
    handed_over: &AtomicBool,
) -> Result<Reply, Trouble> {
    if connection.is_dirty {
        connection.expect(Stage::Sender, Some("RSET"), 250).await?;
    }
    connection.is_dirty = true;
    let mut mail = format!("MAIL FROM:<{}>", letter.from.as_str());
    if connection.takes_sizes() {
        mail.push_str(&format!(" SIZE={}", letter.content.size));
    }
    connection.expect(Stage::Sender, Some(&mail), 250).await?;
    let recipient = format!("RCPT TO:<{}>", letter.to.as_str());
    connection
        .expect(Stage::Recipient, Some(&recipient), 250)
        .await?;
    connection.expect(Stage::Content, Some("DATA"), 354).await?;
    connection.write(letter.content.as_bytes()).await?;
    connection.flush().await?;
    handed_over.store(true, Ordering::Relaxed);
    connection.write(b".\r\n").await?;
    connection.flush().await?;
    let reply = connection.read_reply().await?;
    connection.is_dirty = false;
    Ok(reply)
}

/// Whether a kept connection turns out to have ended: it broke, or the server said so
/// when it was spoken to again. A 421 later on is about the mail, and asks to wait.
fn is_stale(result: &Result<Reply, Trouble>) -> bool {
    match result {
        Ok(_) | Err(Trouble::Lacks { .. }) => false,
        Err(Trouble::Broken { .. }) => true,
        Err(Trouble::Refused { stage, reply }) => *stage == Stage::Sender && reply.code == 421,
    }
}

/// Reads what came of a transaction, and keeps the connection where it stands.
fn finish(
    line: &AccountConnections,
    connection: Connection,
    result: Result<Reply, Trouble>,
    letter: &Letter,
    handed_over: &AtomicBool,
) -> SmtpResult {
    // 421 announces that the server ends the connection (RFC 5321, 3.8). 503 says that
    // it and we do not agree where the conversation stands.
    let stands = match &result {
        Ok(reply) | Err(Trouble::Refused { reply, .. }) => !matches!(reply.code, 421 | 503),
        Err(Trouble::Broken { .. } | Trouble::Lacks { .. }) => false,
    };
    if stands {
        line.keep(connection);
    }
    match result {
        Ok(reply) if reply.is_done() => {
            let provider_message_id = Some(letter.message_id.clone());
            let outcome = SendOutcome::Accepted {
                provider_message_id,
            };
            (outcome, Some(reply.code))
        }
        // No reply that ends a transaction: nobody knows whether it did.
        Ok(reply) if reply.code < 400 => {
            let reason = reply.reason();
            (SendOutcome::Unknown { reason }, Some(reply.code))
        }
        Ok(reply) => {
            let outcome = read_refusal_of_mail(&reply, letter.from.as_str(), letter.to.as_str());
            (outcome, Some(reply.code))
        }
        Err(trouble) => read_trouble(trouble, handed_over),
    }
}

fn read_trouble(trouble: Trouble, handed_over: &AtomicBool) -> SmtpResult {
    match trouble {
        Trouble::Refused { stage, reply } => (read_refusal(stage, &reply), Some(reply.code)),
        Trouble::Lacks { what } => {
            let outcome = SendOutcome::AccountUnusable {
                trouble: AccountTrouble::UntilMended,
                retry_after: None,
                reason: clean(what),
            };
            (outcome, None)
        }
        Trouble::Broken { reason } => broken(&reason, handed_over),
    }
}

/// A conversation that ended without a word.
fn broken(reason: &str, handed_over: &AtomicBool) -> SmtpResult {
    let outcome = if handed_over.load(Ordering::Relaxed) {
        SendOutcome::Unknown {
            reason: clean(&format!("no answer came to the mail: {reason}")),
        }
    } else {
        SendOutcome::Unavailable {
            retry_after: None,
            reason: clean(&format!("the mail was not sent: {reason}")),
        }
    };
    (outcome, None)
}

/// Trusts the roots of the machine, as the HTTP client does, and those in the file.
fn tls(ca_file: Option<&Path>) -> Result<ClientConfig, Fault> {
    const DOING: &str = "set up TLS for SMTP";
    const READING: &str = "read WAYPOST_SMTP_CA_FILE";
    let extra: Vec<CertificateDer<'static>> = match ca_file {
        Some(path) => CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect)
            .map_err(|error| Fault::internal(READING, error))?,
        None => Vec::new(),
    };
    if ca_file.is_some() && extra.is_empty() {
        let nothing = io::Error::other("it holds no certificate");
        return Err(Fault::internal(READING, nothing));
    }
    let provider: Arc<CryptoProvider> = Arc::new(aws_lc_rs::default_provider());
    let verifier = Verifier::new_with_extra_roots(extra, Arc::clone(&provider))
        .map_err(|error| Fault::internal(DOING, error))?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Fault::internal(DOING, error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    Ok(config.with_no_client_auth())
}
