//! What is to be recorded about a recipient: an outcome and the state that follows from it,
//! a withdrawn attempt, or that the recipient was not tried.

use chrono::TimeDelta;
use tracing::error;
use waypost_core::clock::Timestamp;
use waypost_core::delivery::expiry::EXPIRED;
use waypost_core::delivery::outcome::AttemptOutcome;
use waypost_core::delivery::retry::{self, NextState, RetryContext, RetryMoment};
use waypost_core::fault::{Fault, FaultKind};
use waypost_core::provider::outcome::{Blame, SendOutcome};
use waypost_core::routing::rule::OnUnknown;
use waypost_core::suppression;
use waypost_core::telemetry::instruments;
use waypost_core::warn_seldom;

use super::job::{RecipientAttempt, SendHandler};
use crate::send::select_account::Unavailable;
use crate::store::{LeasedChunk, OutcomeRecord};

/// How far the clock of Postgres may be ahead of this one.
const EXPIRY_TOLERANCE: TimeDelta = TimeDelta::seconds(1);

impl RecipientAttempt<'_> {
    /// The record of an outcome.
    pub(super) fn with_outcome(&self, outcome: AttemptOutcome) -> OutcomeRecord {
        let mut record = OutcomeRecord::of(self.chunk);
        record.outcome = Some(outcome);
        record
    }

    /// The record of an attempt that may be in Postgres and whose call was not made.
    pub(super) fn withdrawn(&self) -> OutcomeRecord {
        let mut record = self.chunk.untried(self.recipient);
        record.withdraw(self.row.key());
        record
    }
}

impl SendHandler {
    /// The record of a call: what its outcome means for the recipient.
    pub(super) fn decide(
        &self,
        attempt: &RecipientAttempt<'_>,
        outcome: SendOutcome,
        status_code: Option<u16>,
        ctx: RetryContext,
        moment: RetryMoment,
    ) -> OutcomeRecord {
        let next_state = retry::decide(&outcome, ctx, &self.sending.settings, moment);
        let message = &attempt.chunk.message;
        if let SendOutcome::Accepted { .. } = outcome
            && message.test_outcome.is_none()
        {
            let delay = moment.now - message.tried_since();
            instruments::send_delay(delay.to_std().unwrap_or_default());
        }
        attempt.with_outcome(AttemptOutcome {
            attempted: true,
            status_code,
            ..self.not_attempted(attempt, outcome, next_state, moment.now)
        })
    }

    /// The record of a message that could not be read or composed. If Postgres did not
    /// answer, the recipient is tried again later; otherwise the rules for failed calls
    /// apply.
    pub(super) fn unprepared(
        &self,
        attempt: &RecipientAttempt<'_>,
        fault: &Fault,
    ) -> OutcomeRecord {
        if fault.kind() == FaultKind::Unavailable {
            warn_seldom!(cause = fault.chain(), "A message waits for Postgres");
            return attempt.chunk.untried(attempt.recipient);
        }
        let id = attempt.chunk.message.content.id;
        error!(message.id = %id, cause = fault.chain(), "A message could not be prepared");
        self.not_called(attempt, fault.to_string())
    }

    /// The record of a recipient for which no account could be called. No account is to
    /// blame, so the next try begins a new round.
    pub(super) fn not_called(
        &self,
        attempt: &RecipientAttempt<'_>,
        reason: String,
    ) -> OutcomeRecord {
        self.not_called_at(attempt, reason, self.moment(attempt.chunk, false))
    }

    /// The same, at a moment that several recipients share.
    pub(super) fn not_called_at(
        &self,
        attempt: &RecipientAttempt<'_>,
        reason: String,
        moment: RetryMoment,
    ) -> OutcomeRecord {
        let outcome = SendOutcome::Unavailable {
            retry_after: None,
            reason,
        };
        let ctx = RetryContext {
            unknowns: attempt.recipient.unknowns,
            tried_since: attempt.chunk.message.tried_since(),
            expires_at: attempt.chunk.message.expires_at,
            on_unknown: OnUnknown::Wait,
            retry_state: attempt.recipient.retry_state,
            tried: 0,
            candidates: 0,
            skipped: 0,
        };
        let next_state = retry::decide(&outcome, ctx, &self.sending.settings, moment);
        attempt.with_outcome(self.not_attempted(attempt, outcome, next_state, moment.now))
    }

    /// The record of a recipient to whom the mail cannot be sent, without a call.
    pub(super) fn refused(
        &self,
        attempt: &RecipientAttempt<'_>,
        reason: &str,
        ctx: RetryContext,
    ) -> OutcomeRecord {
        let outcome = SendOutcome::Rejected {
            blame: Blame::Message,
            reason: reason.to_owned(),
        };
        let moment = self.moment(attempt.chunk, false);
        let next_state = retry::decide(&outcome, ctx, &self.sending.settings, moment);
        attempt.with_outcome(self.not_attempted(attempt, outcome, next_state, moment.now))
    }

    /// The record of a recipient that was suppressed after its message was accepted.
    pub(super) fn suppressed(&self, attempt: &RecipientAttempt<'_>) -> OutcomeRecord {
        let outcome = SendOutcome::Rejected {
            blame: Blame::Recipient,
            reason: suppression::REASON.to_owned(),
        };
        let now = self.moment(attempt.chunk, false).now;
        let next_state = retry::suppressed(now, attempt.recipient.retry_state);
        attempt.with_outcome(self.not_attempted(attempt, outcome, next_state, now))
    }

    /// Whether the message of an attempt has expired.
    pub(super) fn is_expired(&self, attempt: &RecipientAttempt<'_>) -> bool {
        let message = &attempt.chunk.message;
        message.is_expired(self.sending.clock.now())
    }

    /// The same for an attempt that Postgres did not write: its clock may be a little ahead.
    pub(super) fn is_about_to_expire(&self, attempt: &RecipientAttempt<'_>) -> bool {
        let message = &attempt.chunk.message;
        message.is_expired(self.sending.clock.now() + EXPIRY_TOLERANCE)
    }

    /// The record of a recipient whose message expired. The attempt may be written.
    pub(super) fn expired(&self, attempt: &RecipientAttempt<'_>) -> OutcomeRecord {
        let outcome = SendOutcome::Rejected {
            blame: Blame::Recipient,
            reason: EXPIRED.to_owned(),
        };
        let now = self.moment(attempt.chunk, false).now;
        let next_state = retry::expired(now, attempt.recipient.retry_state);
        let outcome = self.not_attempted(attempt, outcome, next_state, now);
        let mut record = attempt.with_outcome(outcome);
        record.withdraw(attempt.row.key());
        record
    }

    /// The record of a recipient whose candidates may not be called now.
    pub(super) fn put_off(
        &self,
        attempt: &RecipientAttempt<'_>,
        unavailable: &Unavailable,
    ) -> OutcomeRecord {
        let moment = self.moment(attempt.chunk, false);
        self.put_off_at(attempt, unavailable, moment)
    }

    /// The same, at a moment that several recipients share.
    pub(super) fn put_off_at(
        &self,
        attempt: &RecipientAttempt<'_>,
        unavailable: &Unavailable,
        moment: RetryMoment,
    ) -> OutcomeRecord {
        let (reason, wait) = (unavailable.reason(), unavailable.blocked.wait);
        let settings = &self.sending.settings;
        let next_state = retry::put_off(reason, wait, unavailable.ctx, settings, moment);
        let outcome = SendOutcome::Unavailable {
            retry_after: None,
            reason: reason.to_owned(),
        };
        attempt.with_outcome(self.not_attempted(attempt, outcome, next_state, moment.now))
    }

    /// An outcome without a call.
    fn not_attempted(
        &self,
        attempt: &RecipientAttempt<'_>,
        outcome: SendOutcome,
        next_state: NextState,
        now: Timestamp,
    ) -> AttemptOutcome {
        AttemptOutcome {
            attempt: attempt.row,
            attempted: false,
            outcome,
            status_code: None,
            finished_at: now,
            next_state,
            event_id: self.sending.ids.next_at(now),
            test_outcome: attempt.chunk.message.test_outcome,
        }
    }

    /// The moment of an outcome. `answered` says whether the provider answered.
    pub(super) fn moment(&self, chunk: &LeasedChunk, answered: bool) -> RetryMoment {
        RetryMoment {
            // The clocks of different machines may disagree. Nothing happens to a message
            // before it was accepted.
            now: self.sending.clock.now().max(chunk.message.accepted_at),
            fraction: self.sending.ids.fraction(),
            answered,
        }
    }
}
