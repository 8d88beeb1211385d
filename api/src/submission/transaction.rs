//! One mail of a conversation: MAIL, RCPT and DATA.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use waypost_core::acceptance::draft::RECIPIENTS_MAX;
use waypost_core::address::EmailAddress;
use waypost_core::attachment::ReservedBytes;
use waypost_core::auth::OpenedKey;
use waypost_core::limit::LimitedOperation;
use waypost_core::submission::data_reader::{DataProgress, DataReader};
use waypost_core::telemetry::instruments;

use super::Submission;
use super::connection::ClientConnection;
use super::reply::SubmissionReply;
use super::session::{Next, Session, SessionEnd, SessionError, out_of_order};
use super::submit::{ReceivedMail, postgres_is_away};
use crate::error::Failure;

/// Bytes of a mail that are not counted against the memory of the process, and by how much more
/// is taken from it.
const SMALL_MAIL_BYTES_MAX: usize = 64 << 10;
const MEMORY_STEP_BYTES: usize = 256 << 10;

/// A mail that a client has begun.
pub(super) struct Transaction {
    key: Arc<OpenedKey>,
    recipients: Vec<EmailAddress>,
}

impl Session<'_> {
    /// MAIL: begins a mail.
    pub(super) async fn mail(&mut self, size: Option<u64>) -> (SubmissionReply, Next) {
        if self.began_at.elapsed() > self.submission.limits.session {
            let text = "The session has lasted too long; connect again";
            let reply = SubmissionReply::new(421, "4.3.2", text);
            return (reply, Next::End(SessionEnd::Close));
        }
        let begun = self.begin_mail(size).await;
        let reply = match begun {
            Ok(transaction) => {
                self.transaction = Some(transaction);
                SubmissionReply::new(250, "2.1.0", "Ok")
            }
            Err(reply) => reply,
        };
        let next = match reply.code {
            421 => Next::End(SessionEnd::Close),
            _ => Next::Continue,
        };
        (reply, next)
    }

    async fn begin_mail(&mut self, size: Option<u64>) -> Result<Transaction, SubmissionReply> {
        let submission = self.submission;
        if !self.has_greeted {
            return Err(out_of_order("EHLO"));
        }
        if !self.may_log_in() {
            let text = "Begin TLS first, by STARTTLS, and log in";
            return Err(SubmissionReply::new(530, "5.7.0", text));
        }
        let Some(login) = &self.login else {
            let text = "Log in first, by AUTH: the password is an API key";
            return Err(SubmissionReply::new(530, "5.7.0", text));
        };
        if self.transaction.is_some() {
            return Err(SubmissionReply::new(
                503,
                "5.5.1",
                "A mail has begun; RSET drops it",
            ));
        }
        let size_max = submission.settings.message_bytes_max as u64;
        if size.is_some_and(|size| size > size_max) {
            instruments::submission_refused("too_large");
            return Err(too_large(size_max));
        }
        let unavailable = |failure: Failure| {
            failure.log();
            instruments::submission_refused("unavailable");
            SubmissionReply::of_failure(&failure)
        };
        if submission.accept.liveness.is_away() {
            return Err(unavailable(postgres_is_away()));
        }
        let found = submission.find_key(&login.password, self.address).await;
        let Some(key) = found.map_err(|fault| unavailable(fault.into()))? else {
            self.login = None;
            // Not a refusal of the mail: the client finds out when it logs in again.
            let text = "The API key is not valid any more; log in again";
            return Err(SubmissionReply::new(421, "4.7.0", text));
        };
        let id = key.record.organization_id;
        let limiter = &submission.accept.limiter;
        let taken = limiter.organization(id, LimitedOperation::Send, key.rates);
        if let Some(wait) = taken.await.retry_after {
            instruments::submission_refused("rate_limit");
            return Err(SubmissionReply::of_failure(&Failure::RateLimited(wait)));
        }
        Ok(Transaction {
            key,
            recipients: Vec::new(),
        })
    }

    /// RCPT: adds a recipient.
    pub(super) fn rcpt(&mut self, address: &str) -> SubmissionReply {
        let Some(transaction) = &mut self.transaction else {
            return out_of_order("MAIL");
        };
        if transaction.recipients.len() >= RECIPIENTS_MAX {
            let text = format!("A mail must not have more than {RECIPIENTS_MAX} recipients");
            return SubmissionReply::new(452, "4.5.3", &text);
        }
        match EmailAddress::parse(address) {
            Ok(address) => {
                transaction.recipients.push(address);
                SubmissionReply::new(250, "2.1.5", "Ok")
            }
            Err(error) => SubmissionReply::new(553, "5.1.3", &format!("The address {error}")),
        }
    }

    /// DATA: receives the mail and has it accepted.
    pub(super) async fn data<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        connection: &mut ClientConnection<S>,
    ) -> Result<Next, SessionError> {
        let transaction =
            match self.transaction.take() {
                None => Err(out_of_order("MAIL")),
                Some(transaction) if transaction.recipients.is_empty() => Err(
                    SubmissionReply::new(554, "5.5.1", "The mail has no recipient"),
                ),
                Some(transaction) => Ok(transaction),
            };
        let transaction = match transaction {
            Ok(transaction) => transaction,
            Err(reply) => {
                self.count_command();
                connection.reply(&reply);
                return Ok(Next::Continue);
            }
        };
        let go_ahead = "Send the mail; a line with one dot ends it".to_owned();
        connection.reply(&SubmissionReply::plain(354, vec![go_ahead]));
        let received = self.receive(connection).await?;
        connection.shrink();
        let (reply, next) = match received {
            ReceivedContent::Mail(content, _memory) => {
                let mail = ReceivedMail {
                    key: transaction.key,
                    envelope: transaction.recipients,
                    content,
                };
                (self.submission.submit(mail).await, Next::Continue)
            }
            ReceivedContent::Refused(reason, reply, next) => {
                instruments::submission_refused(reason);
                (reply, next)
            }
        };
        match reply.is_success() {
            true => self.commands = 0,
            false => self.count_command(),
        }
        connection.reply(&reply);
        Ok(next)
    }

    /// Receives the content of a mail.
    pub(super) async fn receive<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        connection: &mut ClientConnection<S>,
    ) -> Result<ReceivedContent, SessionError> {
        let bytes_max = self.submission.settings.message_bytes_max;
        let limits = &self.submission.limits;
        let mut reader = DataReader::new(bytes_max);
        let began_at = Instant::now();
        let mut memory = MailMemory::default();
        loop {
            let (read, progress) = reader.read(connection.unread());
            connection.consume(read);
            match progress {
                DataProgress::Unfinished => {}
                DataProgress::Ended if memory.is_refused => {
                    let text = "The memory for large mails is in use; try again later";
                    let reply = SubmissionReply::new(452, "4.3.1", text);
                    return Ok(ReceivedContent::Refused("memory", reply, Next::Continue));
                }
                DataProgress::Ended => {
                    return Ok(match reader.into_content() {
                        Some(content) => ReceivedContent::Mail(content, memory.reserved),
                        None => {
                            let reply = too_large(bytes_max as u64);
                            ReceivedContent::Refused("too_large", reply, Next::Continue)
                        }
                    });
                }
                DataProgress::BareLineEnd => {
                    let text = "Lines must end in CR LF; a CR or LF stands alone";
                    let reply = SubmissionReply::new(554, "5.6.0", text);
                    let next = Next::End(SessionEnd::Close);
                    return Ok(ReceivedContent::Refused("line_ends", reply, next));
                }
            }
            if reader.received() > 2 * bytes_max {
                let reply = too_large(bytes_max as u64);
                let next = Next::End(SessionEnd::Close);
                return Ok(ReceivedContent::Refused("too_large", reply, next));
            }
            if !memory.covers(reader.capacity(), self.submission) {
                reader.drop_content();
            }
            let pace = reader.received() / limits.mail_bytes_per_second_min;
            let deadline = began_at + limits.mail + Duration::from_secs(pace as u64);
            let received = reader.received();
            connection.fill_mail(deadline, received).await?;
        }
    }
}

/// What became of the content of a mail.
pub(super) enum ReceivedContent {
    /// It is here, and its memory.
    Mail(Vec<u8>, Vec<ReservedBytes>),
    /// The reason for the metrics, and the reply.
    Refused(&'static str, SubmissionReply, Next),
}

/// The memory of a mail, taken from that of the process.
#[derive(Default)]
struct MailMemory {
    reserved: Vec<ReservedBytes>,
    bytes: usize,
    is_refused: bool,
}

impl MailMemory {
    /// Takes what a buffer of this size needs. False if there is no memory.
    fn covers(&mut self, capacity: usize, submission: &Submission) -> bool {
        while !self.is_refused && capacity > SMALL_MAIL_BYTES_MAX + self.bytes {
            match submission.accept.budget.reserve(MEMORY_STEP_BYTES as u64) {
                Ok(reserved) => {
                    self.reserved.push(reserved);
                    self.bytes += MEMORY_STEP_BYTES;
                }
                Err(_) => {
                    self.is_refused = true;
                    // Others may have it at once: mails that each keep a part would all be refused.
                    self.reserved.clear();
                }
            }
        }
        !self.is_refused
    }
}

fn too_large(bytes_max: u64) -> SubmissionReply {
    let text = format!("The mail is larger than {bytes_max} bytes");
    SubmissionReply::new(552, "5.3.4", &text)
}
