//! Sends mail over SMTP. The outcome of a broken conversation depends on its progress:
//! until the line that ends the content is written, no server has the mail; from then
//! until the reply is read, the server may have it (RFC 5321, 4.2.5 and 4.5.4.2).

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls_platform_verifier::Verifier;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

use super::super::mail::OutgoingMail;
use super::super::outcome::{AccountTrouble, CredentialCheck, SendOutcome, clean};
use super::super::transport::{SendReply, TransportSettings};
use super::account::SmtpAccount;
use super::connection::{Connection, SessionSetup, SmtpError};
use super::dial::{DialError, dial};
use super::mime_message::{MimeMessage, write_message};
use super::pool::{AccountConnections, ConnectionPool};
use super::refusal::{read_refusal, read_refusal_of_mail};
use super::reply::{Reply, Stage};
use crate::address::AddressHash;
use crate::clock::Timestamp;
use crate::fault::Fault;
use crate::provider::smtp::settings::SmtpSettings;

/// How long a call waits for a free connection: it holds a job slot meanwhile.
const CONNECTION_WAIT: Duration = Duration::from_millis(250);
/// The wait before a mail without a free connection is tried again.
const BUSY_RETRY_AFTER: Duration = Duration::from_secs(1);
/// How long a check waits for the reply to QUIT.
const QUIT_TIMEOUT: Duration = Duration::from_secs(1);

/// The outcome of a send, and the code of the server's reply if one came.
type SmtpResult = (SendOutcome, Option<u16>);

/// The recipients whose RCPT the server refused for good, while it took others.
type RefusedRecipients = Vec<(AddressHash, SendOutcome)>;

/// What is known of a transaction while it runs.
#[derive(Default)]
struct Progress {
    /// Whether the server may have the mail.
    content_sent: AtomicBool,
    refused: Mutex<RefusedRecipients>,
}

/// Connects to mail servers. Cheap to clone; clones share the connections.
#[derive(Clone)]
pub(in super::super) struct SmtpClient {
    settings: SmtpSettings,
    connect_timeout: Duration,
    call_timeout: Duration,
    tls: Arc<ClientConfig>,
    pool: ConnectionPool,
}

impl fmt::Debug for SmtpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmtpClient")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Why no session could be opened.
enum OpenError {
    Forbidden,
    Session(SmtpError),
}

impl SmtpClient {
    /// A client with connections of its own.
    ///
    /// # Errors
    /// A fault if TLS cannot be set up: no root certificates, or an unreadable file of
    /// additional ones.
    pub(in super::super) fn new(settings: &TransportSettings) -> Result<Self, Fault> {
        Ok(Self {
            connect_timeout: settings.connect_timeout.min(settings.call_timeout),
            call_timeout: settings.call_timeout,
            tls: Arc::new(tls(settings.smtp.ca_file.as_deref())?),
            pool: ConnectionPool::new(settings.idle_timeout),
            settings: settings.smtp.clone(),
        })
    }

    /// Logs in over a connection of its own, then quits.
    pub(in super::super) async fn check(&self, account: &SmtpAccount) -> CredentialCheck {
        let undecided = |reason: &str| CredentialCheck::Undecided {
            reason: clean(reason),
        };
        let invalid = |reason: String| CredentialCheck::Invalid { reason };
        let mut connection = match timeout(self.call_timeout, self.open(account)).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(OpenError::Forbidden)) => {
                return invalid("the server has no public address".to_owned());
            }
            Ok(Err(OpenError::Session(SmtpError::Refused { stage, reply }))) => {
                return match stage {
                    Stage::Login if (500..600).contains(&reply.code) => invalid(reply.reason()),
                    Stage::Greeting
                    | Stage::Login
                    | Stage::Sender
                    | Stage::Recipient
                    | Stage::Content => undecided(&reply.reason()),
                };
            }
            Ok(Err(OpenError::Session(SmtpError::Lacks { what }))) => {
                return invalid(clean(what));
            }
            Ok(Err(OpenError::Session(SmtpError::Broken { reason }))) => {
                return undecided(&reason);
            }
            Err(_) => return undecided(TIMED_OUT),
        };
        let quit = connection.exchange(Stage::Greeting, Some("QUIT"), 221);
        // The login succeeded; the reply to QUIT does not matter.
        let _reply = timeout(QUIT_TIMEOUT, quit).await;
        CredentialCheck::Valid
    }

    /// Sends one mail.
    pub(in super::super) async fn send(
        &self,
        account: &SmtpAccount,
        mail: &OutgoingMail,
        now: Timestamp,
    ) -> SendReply {
        let message = match write_message(mail, now) {
            Ok(message) => message,
            Err(refusal) => return SendReply::of((refusal.into(), None)),
        };
        let end = Instant::now() + self.call_timeout;
        let connections = self.pool.for_account(account);
        let waited = timeout(CONNECTION_WAIT, connections.permits.acquire());
        let Ok(Ok(_permit)) = waited.await else {
            // The server did not throttle: the account's rate must not fall.
            let outcome = SendOutcome::Deferred {
                retry_after: Some(BUSY_RETRY_AFTER),
                reason: "all connections to the server are busy".to_owned(),
            };
            return SendReply::of((outcome, None));
        };
        let progress = Progress::default();
        let delivered = self.deliver(account, &connections, &message, &progress);
        let (outcome, status_code) = match timeout_at(end, delivered).await {
            Ok(sent) => sent,
            Err(_) => broken(TIMED_OUT, &progress.content_sent),
        };
        let mut refused = progress.refused.into_inner().unwrap_or_default();
        // If the mail was refused later, the refusal is about all its recipients.
        if !matches!(outcome, SendOutcome::Accepted { .. }) && refused.len() < message.to.len() {
            refused.clear();
        }
        SendReply {
            outcome,
            refused,
            status_code,
        }
    }

    async fn deliver(
        &self,
        account: &SmtpAccount,
        connections: &AccountConnections,
        message: &MimeMessage,
        progress: &Progress,
    ) -> SmtpResult {
        let content_sent = &progress.content_sent;
        if let Some(mut connection) = connections.take() {
            let result = transact(&mut connection, message, progress).await;
            // The server may have closed the idle connection. A new one shows whether
            // there is another cause.
            if !is_stale(&result) || content_sent.load(Ordering::Relaxed) {
                return finish(connections, connection, result, message, content_sent);
            }
        }
        match self.open(account).await {
            Ok(mut connection) => {
                let result = transact(&mut connection, message, progress).await;
                finish(connections, connection, result, message, content_sent)
            }
            Err(OpenError::Forbidden) => broken("the server has no public address", content_sent),
            Err(OpenError::Session(error)) => read_error(error, content_sent),
        }
    }

    async fn open(&self, account: &SmtpAccount) -> Result<Connection, OpenError> {
        let (server, guard) = match &self.settings.server_override {
            Some(server) => (server, None),
            None => (&account.server, Some(&self.settings.guard)),
        };
        let connected = dial(server, guard, self.connect_timeout).await;
        let stream = connected.map_err(|error| match error {
            DialError::Forbidden => OpenError::Forbidden,
            DialError::Unreachable { reason } => OpenError::Session(SmtpError::Broken { reason }),
        })?;
        let setup = SessionSetup {
            account,
            tls: &self.tls,
            hello: &self.settings.hello,
        };
        Connection::open(Box::new(stream), &setup)
            .await
            .map_err(OpenError::Session)
    }
}

const TIMED_OUT: &str = "the server did not answer in time";

/// One transaction: envelope, content, and the reply. `content_sent` is set when the server
/// may have the mail.
async fn transact(
    connection: &mut Connection,
    message: &MimeMessage,
    progress: &Progress,
) -> Result<Reply, SmtpError> {
    if connection.needs_reset {
        connection
            .exchange(Stage::Sender, Some("RSET"), 250)
            .await?;
    }
    connection.needs_reset = true;
    let mut mail = format!("MAIL FROM:<{}>", message.from.as_str());
    if connection.supports_size() {
        mail.push_str(&format!(" SIZE={}", message.size()));
    }
    connection.exchange(Stage::Sender, Some(&mail), 250).await?;
    name_recipients(connection, message, progress).await?;
    connection
        .exchange(Stage::Content, Some("DATA"), 354)
        .await?;
    for segment in &message.segments {
        for block in segment.blocks() {
            connection.write(&block).await?;
        }
    }
    connection.flush().await?;
    progress.content_sent.store(true, Ordering::Relaxed);
    connection.write(b".\r\n").await?;
    connection.flush().await?;
    let reply = connection.read_reply().await?;
    connection.needs_reset = false;
    Ok(reply)
}

/// Sends RCPT for each recipient. One that is refused for good does not stop the others; a
/// refusal for now stops all, so that the mail is tried again as one.
async fn name_recipients(
    connection: &mut Connection,
    message: &MimeMessage,
    progress: &Progress,
) -> Result<(), SmtpError> {
    let mut refused = RefusedRecipients::new();
    for to in &message.to {
        let command = format!("RCPT TO:<{}>", to.as_str());
        let named = connection.exchange(Stage::Recipient, Some(&command), 250);
        let (stage, reply) = match named.await {
            Ok(_) => continue,
            Err(SmtpError::Refused { stage, reply }) => (stage, reply),
            Err(error @ (SmtpError::Broken { .. } | SmtpError::Lacks { .. })) => return Err(error),
        };
        let outcome = read_refusal(stage, &reply);
        let is_final = matches!(outcome, SendOutcome::Rejected { .. });
        refused.push((to.hash(), outcome));
        if !is_final || refused.len() == message.to.len() {
            set_refused(progress, if is_final { refused } else { Vec::new() });
            return Err(SmtpError::Refused { stage, reply });
        }
    }
    set_refused(progress, refused);
    Ok(())
}

fn set_refused(progress: &Progress, refused: RefusedRecipients) {
    if let Ok(mut known) = progress.refused.lock() {
        *known = refused;
    }
}

/// Whether a pooled connection turned out to be closed: it broke, or the server answered
/// the first command with 421. A later 421 is about the mail and asks to wait.
fn is_stale(result: &Result<Reply, SmtpError>) -> bool {
    match result {
        Ok(_) | Err(SmtpError::Lacks { .. }) => false,
        Err(SmtpError::Broken { .. }) => true,
        Err(SmtpError::Refused { stage, reply }) => *stage == Stage::Sender && reply.code == 421,
    }
}

/// Reads the result of a transaction, and returns a usable connection to the pool.
fn finish(
    connections: &AccountConnections,
    connection: Connection,
    result: Result<Reply, SmtpError>,
    message: &MimeMessage,
    content_sent: &AtomicBool,
) -> SmtpResult {
    // 421 announces that the server closes the connection (RFC 5321, 3.8). 503 means that
    // server and client disagree about the state of the session.
    let is_usable = match &result {
        Ok(reply) | Err(SmtpError::Refused { reply, .. }) => !matches!(reply.code, 421 | 503),
        Err(SmtpError::Broken { .. } | SmtpError::Lacks { .. }) => false,
    };
    if is_usable {
        connections.put_back(connection);
    }
    match result {
        Ok(reply) if reply.is_done() => {
            let provider_message_id = Some(message.message_id.clone());
            let outcome = SendOutcome::Accepted {
                provider_message_id,
            };
            (outcome, Some(reply.code))
        }
        // Not a final reply: the outcome is unknown.
        Ok(reply) if reply.code < 400 => {
            let reason = reply.reason();
            (SendOutcome::Unknown { reason }, Some(reply.code))
        }
        Ok(reply) => {
            let outcome = match message.to.as_slice() {
                [to] => read_refusal_of_mail(&reply, message.from.as_str(), to.as_str()),
                _ => read_refusal(Stage::Content, &reply),
            };
            (outcome, Some(reply.code))
        }
        Err(error) => read_error(error, content_sent),
    }
}

fn read_error(error: SmtpError, content_sent: &AtomicBool) -> SmtpResult {
    match error {
        SmtpError::Refused { stage, reply } => (read_refusal(stage, &reply), Some(reply.code)),
        SmtpError::Lacks { what } => {
            let outcome = SendOutcome::AccountUnusable {
                trouble: AccountTrouble::Permanent,
                retry_after: None,
                reason: clean(what),
            };
            (outcome, None)
        }
        SmtpError::Broken { reason } => broken(&reason, content_sent),
    }
}

/// The outcome of a conversation that broke off.
fn broken(reason: &str, content_sent: &AtomicBool) -> SmtpResult {
    let outcome = if content_sent.load(Ordering::Relaxed) {
        SendOutcome::Unknown {
            reason: clean(&format!("no reply to the mail: {reason}")),
        }
    } else {
        SendOutcome::Unavailable {
            retry_after: None,
            reason: clean(&format!("the mail was not sent: {reason}")),
        }
    };
    (outcome, None)
}

/// Trusts the roots of the operating system, as the HTTP client does, and those in the file.
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
        let error = io::Error::other("it holds no certificate");
        return Err(Fault::internal(READING, error));
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
