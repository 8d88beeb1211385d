//! A leased chunk with its message, and what its jobs have to record about it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::TimeDelta;
use tokio::sync::OwnedSemaphorePermit;
use waypost_core::clock::Timestamp;
use waypost_core::delivery::attempt::{AttemptKey, NewAttempt};
use waypost_core::delivery::job::SendJob;
use waypost_core::delivery::lease::{LeasedMessage, LeasedRecipient};
use waypost_core::delivery::outcome::{AttemptOutcome, SentRecord};
use waypost_core::ids::{ProviderAccountId, WorkerId};
use waypost_core::message::compose::OwnContent;
use waypost_core::provider::mail::MailAttachment;
use waypost_core::tracking::link::TrackingPlan;

/// How long a prewritten attempt may be used: the check for suppressions that was made
/// with it counts for so long. By the wall clock, which goes on while the machine is
/// suspended. Later the worker writes another attempt, and with it checks again.
const PREWRITTEN_MAX_AGE: TimeDelta = TimeDelta::milliseconds(250);

/// A chunk that this worker has leased, with its message.
pub(crate) struct LeasedChunk {
    pub(crate) worker: WorkerId,
    pub(crate) job: SendJob,
    pub(crate) message: Arc<LeasedMessage>,
    pub(crate) recipients: Vec<LeasedRecipient>,
    /// How often a worker was lost or panicked while it held this chunk.
    pub(crate) losses: i16,
    /// What is tracked in its mails. Empty until the body is loaded.
    pub(crate) plan: TrackingPlan,
    /// The files of its mails. Empty until they are loaded.
    pub(crate) attachments: Vec<MailAttachment>,
    /// What recipients have instead of the message's content, by position. `None` if it is
    /// read for each mail.
    pub(crate) own_contents: Option<HashMap<i32, OwnContent>>,
    /// The memory of the files.
    pub(crate) memory: Option<OwnedSemaphorePermit>,
    /// The attempt that was written with the lease.
    pub(crate) prewritten: Option<PrewrittenAttempt>,
}

impl LeasedChunk {
    /// The bytes of its files.
    pub(crate) fn attachment_bytes(&self) -> usize {
        self.attachments.iter().map(|file| file.content.len()).sum()
    }

    /// The positions of its recipients.
    pub(crate) fn positions(&self) -> Vec<i32> {
        let recipients = self.recipients.iter();
        recipients.map(|recipient| recipient.position).collect()
    }

    /// The prewritten attempt, if its call has not been made.
    pub(crate) fn unused_attempt(&self) -> Option<AttemptKey> {
        self.prewritten.as_ref().and_then(PrewrittenAttempt::unused)
    }

    /// The record of a recipient that was not tried.
    pub(crate) fn untried(&self, recipient: &LeasedRecipient) -> OutcomeRecord {
        let mut record = OutcomeRecord::of(self);
        record.untried = Some(recipient.position);
        if let Some(unused) = self.unused_attempt() {
            record.withdraw(unused);
        }
        record
    }
}

/// An attempt that was written with the lease, before the account was selected.
#[derive(Debug, Clone)]
pub(crate) struct PrewrittenAttempt {
    pub(crate) attempt: NewAttempt,
    written_at: Timestamp,
    is_called: Arc<AtomicBool>,
}

impl PrewrittenAttempt {
    pub(super) fn new(attempt: NewAttempt, written_at: Timestamp) -> Self {
        Self {
            attempt,
            written_at,
            is_called: Arc::default(),
        }
    }

    /// Whether a call through this account may use the attempt.
    pub(crate) fn is_usable(&self, account: ProviderAccountId, now: Timestamp) -> bool {
        self.attempt.provider_account_id == account
            && (now - self.written_at).abs() <= PREWRITTEN_MAX_AGE
    }

    /// Notes that the call of the attempt is made.
    pub(crate) fn mark_called(&self) {
        self.is_called.store(true, Ordering::Relaxed);
    }

    /// The key of the attempt, if its call has not been made.
    pub(crate) fn unused(&self) -> Option<AttemptKey> {
        (!self.is_called.load(Ordering::Relaxed)).then(|| self.attempt.key())
    }
}

/// What a job records about a chunk.
#[derive(Debug, Clone)]
pub(crate) struct OutcomeRecord {
    pub(super) worker: WorkerId,
    pub(super) job: SendJob,
    /// How many recipients the message has.
    recipient_count: i32,
    pub(crate) outcome: Option<AttemptOutcome>,
    /// The position of a recipient that was leased and not tried.
    pub(crate) untried: Option<i32>,
    /// Attempts that may be in Postgres and whose calls were not made.
    pub(crate) withdrawn: Vec<AttemptKey>,
    /// Whether this ends the lease.
    pub(crate) ends_lease: bool,
    /// Whether the chunk has recipients that were not tried. Its job is then pushed to the
    /// delayed jobs and not for immediate delivery: tried at once, they would most likely
    /// be left untried again.
    pub(crate) has_untried: bool,
}

impl OutcomeRecord {
    /// A record of this chunk that says nothing yet.
    pub(crate) fn of(chunk: &LeasedChunk) -> Self {
        Self {
            worker: chunk.worker,
            job: chunk.job,
            recipient_count: chunk.message.recipient_count,
            outcome: None,
            untried: None,
            withdrawn: Vec::new(),
            ends_lease: false,
            has_untried: false,
        }
    }

    /// Adds an attempt that may be in Postgres and whose call was not made.
    pub(crate) fn withdraw(&mut self, attempt: AttemptKey) {
        if !self.withdrawn.contains(&attempt) {
            self.withdrawn.push(attempt);
        }
    }

    /// The lease that this is about.
    pub(super) fn lease(&self) -> (WorkerId, SendJob) {
        (self.worker, self.job)
    }

    /// This as a [`SentRecord`], if it says that the provider accepted the mail and
    /// nothing else.
    pub(super) fn sent(&self) -> Option<SentRecord<'_>> {
        let is_all = self.ends_lease && self.untried.is_none() && self.withdrawn.is_empty();
        let outcome = self.outcome.as_ref().filter(|_| is_all)?;
        SentRecord::of(self.worker, outcome, self.recipient_count)
    }
}
