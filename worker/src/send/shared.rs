//! Sends a shared message: one mail to all recipients of the chunk, with one call.
//!
//! Each recipient has an attempt and an outcome of its own, and all have the same: the mail
//! is tried again as one. A recipient that the provider refuses while it takes the mail for
//! the others has its own outcome. Opens and clicks belong to the message: its pixel and its
//! links name the first recipient.

use futures_util::future::join_all;
use waypost_core::delivery::lease::LeasedRecipient;
use waypost_core::delivery::retry::RetryMoment;
use waypost_core::fault::{Fault, FaultKind};
use waypost_core::message::RecipientKind;
use waypost_core::message::compose;
use waypost_core::provider::mail::OutgoingMail;
use waypost_core::provider::outcome::{Blame, SendOutcome};
use waypost_core::provider::{AccountAccess, adapter};

use super::batch::ChunkProgress;
use super::job::{RecipientAttempt, SendHandler};
use crate::send::account_pause;
use crate::send::observe::ObservedCall;
use crate::send::select_account::{AccountSelection, SelectedAccount};
use crate::store::{LeasedChunk, OutcomeRecord};

/// Why a mail is not sent whose recipients in To are all suppressed.
const NO_TO_LEFT: &str = "every recipient in To is suppressed";

impl SendHandler {
    /// Sends the mail of a shared message and ends the lease of its chunk.
    pub(super) async fn send_shared(&self, chunk: &LeasedChunk) {
        let progress = ChunkProgress::default();
        let records = match chunk.recipients.first() {
            Some(first) => self.try_shared(chunk, first, &progress).await,
            None => Vec::new(),
        };
        self.record_all(records, &progress).await;
        self.end_lease(chunk, progress).await;
    }

    /// Selects an account, makes the call, and returns what is to be recorded.
    async fn try_shared(
        &self,
        chunk: &LeasedChunk,
        first: &LeasedRecipient,
        progress: &ChunkProgress,
    ) -> Vec<OutcomeRecord> {
        let moment = self.moment(chunk, false);
        let not_called = |reason: &str| {
            let attempts = chunk.recipients.iter();
            let attempts = attempts.map(|recipient| self.new_attempt(chunk, recipient));
            attempts
                .map(|attempt| self.not_called_at(&attempt, reason.to_owned(), moment))
                .collect()
        };
        match self.select_account(chunk, first).await {
            Ok(Some(AccountSelection::Selected(selected))) => {
                self.send_shared_through(chunk, *selected, progress).await
            }
            Ok(Some(AccountSelection::Unavailable(unavailable))) => {
                let all: Vec<_> = chunk.recipients.iter().collect();
                self.put_all_off(chunk, &all, &unavailable, progress).await;
                Vec::new()
            }
            Ok(Some(AccountSelection::NoAccount(reason))) => not_called(&reason),
            Ok(None) => untried(chunk),
            Err(fault) if fault.kind() == FaultKind::Unavailable => untried(chunk),
            Err(fault) => not_called(&fault.to_string()),
        }
    }

    /// Writes an attempt for each recipient that is not suppressed, and makes the call.
    async fn send_shared_through(
        &self,
        chunk: &LeasedChunk,
        selected: SelectedAccount,
        progress: &ChunkProgress,
    ) -> Vec<OutcomeRecord> {
        let recipients = chunk.recipients.iter();
        let mut attempts: Vec<_> = recipients
            .map(|recipient| self.new_attempt(chunk, recipient))
            .collect();
        // A look-up finds the mail by the attempt of its first recipient.
        attempts.sort_by_key(|attempt| attempt.row.position);
        let started_at = attempts.first().map(|attempt| attempt.row.started_at);
        for attempt in &mut attempts {
            attempt.row.provider_account_id = selected.account.id;
            attempt.row.started_at = started_at.unwrap_or(attempt.row.started_at);
        }
        let written = join_all(attempts.iter().map(|attempt| self.write_attempt(attempt))).await;
        let mut not_called = Vec::new();
        let mut left = Vec::with_capacity(attempts.len());
        for (attempt, record) in attempts.into_iter().zip(written) {
            match record {
                None => left.push(attempt),
                Some(record) => not_called.push(record),
            }
        }
        // Without one of its attempts the mail would be sent as two.
        if not_called.iter().any(|record| record.untried.is_some()) {
            not_called.extend(left.iter().map(RecipientAttempt::withdrawn));
            return not_called;
        }
        self.record_all(not_called, progress).await;
        if left.is_empty() {
            return Vec::new();
        }
        let is_to = |attempt: &RecipientAttempt<'_>| attempt.recipient.kind == RecipientKind::To;
        if !left.iter().any(is_to) {
            let ctx = selected.ctx;
            let refused = |attempt| withdrawing(attempt, self.refused(attempt, NO_TO_LEFT, ctx));
            return left.iter().map(refused).collect();
        }
        if !self.sending.worker_lease.may_call(chunk.worker) {
            return left.iter().map(RecipientAttempt::withdrawn).collect();
        }
        match self.compose_shared(chunk, &left) {
            Ok(mail) => self.call_shared(&left, selected, mail).await,
            Err(fault) => self.unprepared_shared(&left, &fault),
        }
    }

    /// The mail for the recipients of these attempts.
    fn compose_shared(
        &self,
        chunk: &LeasedChunk,
        attempts: &[RecipientAttempt<'_>],
    ) -> Result<OutgoingMail, Fault> {
        let recipients = attempts.iter().map(|attempt| {
            let recipient = attempt.recipient;
            (recipient.kind, recipient.address_sealed.as_slice())
        });
        let first = attempts
            .first()
            .ok_or_else(|| Fault::internal("compose a shared mail", "it has no recipient"))?;
        let content = &chunk.message.content;
        let sealer = &self.sending.accounts.sealer;
        let mut mail = compose::compose_shared(content, recipients, first.row.id, sealer)?;
        mail.attachments.clone_from(&chunk.attachments);
        let tracker = &self.sending.tracker;
        tracker.add_to(&mut mail, &chunk.plan, first.tracked());
        Ok(mail)
    }

    /// Makes the call of written attempts, and returns what is to be recorded.
    async fn call_shared(
        &self,
        attempts: &[RecipientAttempt<'_>],
        mut selected: SelectedAccount,
        mail: OutgoingMail,
    ) -> Vec<OutcomeRecord> {
        let Some(first) = attempts.first() else {
            return Vec::new();
        };
        if let Some((outcome, status_code)) = self.simulated(first, selected.ctx) {
            let moment = self.moment(first.chunk, status_code.is_some());
            let attempts = attempts.iter();
            let decided = attempts.map(|attempt| {
                self.decide(attempt, outcome.clone(), status_code, selected.ctx, moment)
            });
            return decided.collect();
        }
        selected.spend(attempts.len());
        let sending = &self.sending;
        let account = &selected.account;
        let access = AccountAccess {
            credentials: &account.credentials,
            endpoints: &sending.accounts.endpoints,
            now: sending.clock.now(),
        };
        let adapter = adapter(account.provider_type);
        let transport = &sending.accounts.transport;
        let observed = ObservedCall::begin(account);
        let reply = transport.send_shared(adapter, &access, &mail).await;
        observed.end(reply.status_code, [&reply.outcome]);
        let outcome = about_all(reply.outcome, attempts.len());
        if let Some(permit) = selected.permit {
            permit.end(&outcome);
        }
        account_pause::learn(&sending.accounts, account, &outcome);
        let message_id = first.row.message_id;
        self.refusals.learn(message_id, account, &outcome).await;
        let moment = self.moment(first.chunk, reply.status_code.is_some());
        let records = attempts.iter().map(|attempt| {
            let hash = attempt.row.address_hash;
            let own = reply.refused.iter().find(|(refused, _)| *refused == hash);
            let outcome = own.map_or(&outcome, |(_, own)| own).clone();
            self.decide(attempt, outcome, reply.status_code, selected.ctx, moment)
        });
        records.collect()
    }

    /// The records of attempts whose mail could not be composed.
    fn unprepared_shared(
        &self,
        attempts: &[RecipientAttempt<'_>],
        fault: &Fault,
    ) -> Vec<OutcomeRecord> {
        let Some(first) = attempts.first() else {
            return Vec::new();
        };
        let moment: RetryMoment = self.moment(first.chunk, false);
        let reason = fault.to_string();
        let record =
            |attempt| withdrawing(attempt, self.not_called_at(attempt, reason.clone(), moment));
        attempts.iter().map(record).collect()
    }
}

/// A record of an attempt whose call was not made, which also withdraws it.
fn withdrawing(attempt: &RecipientAttempt<'_>, mut record: OutcomeRecord) -> OutcomeRecord {
    record.withdraw(attempt.row.key());
    record
}

fn untried(chunk: &LeasedChunk) -> Vec<OutcomeRecord> {
    let recipients = chunk.recipients.iter();
    recipients
        .map(|recipient| chunk.untried(recipient))
        .collect()
}

/// The outcome of the whole mail. If a refusal of several recipients is about one of them,
/// nobody knows which.
fn about_all(outcome: SendOutcome, recipients: usize) -> SendOutcome {
    match outcome {
        SendOutcome::Rejected {
            reason,
            blame: Blame::Recipient | Blame::Mailbox | Blame::SenderForRecipient,
        } if recipients > 1 => SendOutcome::Rejected {
            reason,
            blame: Blame::Message,
        },
        outcome @ (SendOutcome::Rejected { .. }
        | SendOutcome::Accepted { .. }
        | SendOutcome::Deferred { .. }
        | SendOutcome::Throttled { .. }
        | SendOutcome::AccountUnusable { .. }
        | SendOutcome::Unavailable { .. }
        | SendOutcome::Unknown { .. }) => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_several_recipients_blames_none_of_them() {
        for blame in [Blame::Recipient, Blame::Mailbox, Blame::SenderForRecipient] {
            let reason = "no".to_owned();
            let refused = |blame| SendOutcome::Rejected {
                reason: reason.clone(),
                blame,
            };
            assert_eq!(about_all(refused(blame), 2), refused(Blame::Message));
            assert_eq!(about_all(refused(blame), 1), refused(blame));
        }
    }
}
