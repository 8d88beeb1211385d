//! Claims, and what there is to record about them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::TimeDelta;
use waypost_core::clock::Timestamp;
use waypost_core::delivery::attempt::{AttemptKey, NewAttempt};
use waypost_core::delivery::job::SendJob;
use waypost_core::delivery::lease::{LeasedMessage, LeasedRecipient};
use waypost_core::delivery::outcome::{AttemptOutcome, SentRecord};
use waypost_core::ids::{ProviderAccountId, WorkerId};
use waypost_core::tracking::link::TrackingPlan;

/// A chunk that this worker holds.
#[derive(Debug)]
pub(crate) struct ClaimedChunk {
    pub(crate) worker: WorkerId,
    pub(crate) job: SendJob,
    pub(crate) message: Arc<LeasedMessage>,
    pub(crate) recipients: Vec<LeasedRecipient>,
    /// How often it lost its worker.
    pub(crate) losses: i16,
    /// What is tracked in its copies; nothing until the body was read.
    pub(crate) plan: TrackingPlan,
    /// The attempt that was written with the claim.
    pub(crate) prewritten: Option<PrewrittenAttempt>,
}

/// How long a begun attempt may be called: as long as what its claim saw is fresh. By the
/// clock of the day, which goes on where the machine stands still. Later an ordinary attempt
/// looks again.
const FRESH: TimeDelta = TimeDelta::milliseconds(250);

/// An attempt that was written with its claim, whose account was not asked for yet.
#[derive(Debug, Clone)]
pub(crate) struct PrewrittenAttempt {
    pub(crate) attempt: NewAttempt,
    /// When it was on record.
    at: Timestamp,
    is_called: Arc<AtomicBool>,
}

impl PrewrittenAttempt {
    pub(super) fn new(attempt: NewAttempt, at: Timestamp) -> Self {
        Self {
            attempt,
            at,
            is_called: Arc::default(),
        }
    }

    /// Whether it serves for a call through this account.
    pub(crate) fn serves(&self, account: ProviderAccountId, now: Timestamp) -> bool {
        self.attempt.provider_account_id == account && (now - self.at).abs() <= FRESH
    }

    /// Says that its call is made.
    pub(crate) fn call(&self) {
        self.is_called.store(true, Ordering::Relaxed);
    }

    /// What names it, if its call was not made.
    pub(crate) fn unused(&self) -> Option<AttemptKey> {
        (!self.is_called.load(Ordering::Relaxed)).then(|| self.attempt.key())
    }
}

/// Something to record about a chunk.
#[derive(Debug, Clone)]
pub(crate) struct OutcomeRecord {
    pub(super) worker: WorkerId,
    pub(super) job: SendJob,
    /// The recipients of its message.
    recipient_count: i32,
    /// What came of an attempt.
    pub(crate) outcome: Option<AttemptOutcome>,
    /// A recipient that was leased and not tried.
    pub(crate) untried: Option<i32>,
    /// Attempts that may be on record and whose calls were not made.
    pub(crate) withdrawn: Vec<AttemptKey>,
    /// Whether the lease ends with this.
    pub(crate) finished: bool,
    /// Whether something of the chunk was left untried, so that it had better not come
    /// back before something has changed.
    pub(crate) no_hurry: bool,
}

impl OutcomeRecord {
    /// Nothing yet about a claimed chunk.
    pub(crate) fn of(claim: &ClaimedChunk) -> Self {
        Self {
            worker: claim.worker,
            job: claim.job,
            recipient_count: claim.message.recipient_count,
            outcome: None,
            untried: None,
            withdrawn: Vec::new(),
            finished: false,
            no_hurry: false,
        }
    }

    /// Takes an attempt back that may be on record and whose call was not made.
    pub(crate) fn withdraw(&mut self, attempt: AttemptKey) {
        if !self.withdrawn.contains(&attempt) {
            self.withdrawn.push(attempt);
        }
    }

    /// Whether it says that a mail was taken, and no more.
    pub(super) fn sent(&self) -> Option<SentRecord<'_>> {
        let is_all = self.finished && self.untried.is_none() && self.withdrawn.is_empty();
        let outcome = self.outcome.as_ref().filter(|_| is_all)?;
        SentRecord::of(self.worker, outcome, self.recipient_count)
    }
}
