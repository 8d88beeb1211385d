//! Sends to the recipients of a chunk that has several: in batches if the provider takes
//! several private mails in one call, the rest one by one.
//!
//! A batch is several attempts and one call. Each attempt is written before the call and
//! gets its own outcome; if the reply is lost, all of them are unknown.
//!
//! If the provider refuses the call, no mail was taken. A recipient that is not to blame is
//! then sent to in a smaller batch or alone, with another attempt, so that suppressions are
//! checked again. A recipient whose batch failed is sent to alone from then on: if one mail
//! is the reason for the failure, the others do not fail with it twice.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use tokio::sync::{OwnedSemaphorePermit, SemaphorePermit};
use waypost_core::account_limiter::{Acquired, Permit};
use waypost_core::delivery::lease::LeasedRecipient;
use waypost_core::delivery::retry::RetryContext;
use waypost_core::message::compose::OwnContent;
use waypost_core::provider::batch::Batching;
use waypost_core::provider::mail::OutgoingMail;
use waypost_core::provider::outcome::SendOutcome;
use waypost_core::provider::{AccountAccess, adapter};

use super::batch_memory::mail_bytes;
use super::job::{RecipientAttempt, SendHandler};
use crate::send::account_pause;
use crate::send::observe::ObservedCall;
use crate::send::select_account::{AccountSelection, RateWait, SelectedAccount, Unavailable};
use crate::send::sending_accounts::{self, SendingAccount};
use crate::send::target_caps::{Places, TakenPlaces};
use crate::store::{LeasedChunk, OutcomeRecord};

/// The fewest mails of a batch. Fewer are sent concurrently, one call each: that is as fast,
/// and one failure does not affect the others.
const BATCH_MAILS_MIN: usize = 8;
/// The most bytes of mails in one batch.
const BATCH_BYTES_MAX: usize = 1024 * 1024;
/// Calls for one batch. Each call is made without the recipients that the one before
/// refused by name; the recipients that are left after the last are sent to one by one.
const BATCH_CALLS_MAX: usize = 3;
/// What happened to the recipients of a chunk so far.
#[derive(Default)]
pub(super) struct ChunkProgress {
    /// Whether an outcome could not be recorded.
    is_lost: AtomicBool,
    has_untried: AtomicBool,
}

/// Attempts through one account that share a call.
struct Batch<'a> {
    chunk: &'a LeasedChunk,
    account: SendingAccount,
    batching: &'static dyn Batching,
    /// The same for all its recipients.
    ctx: RetryContext,
    /// Places within the caps of the account's target, for its next call.
    places: Option<Places>,
    /// Written, and without an outcome.
    attempts: Vec<RecipientAttempt<'a>>,
    _memory: OwnedSemaphorePermit,
}

/// What is left to do after a batch's call.
enum BatchStep<'a> {
    Done,
    /// The provider took none of these mails: they can share another call.
    CallAgain(Vec<&'a LeasedRecipient>),
    /// These cannot share a call. The permit is there if no call was made.
    SendOneByOne(Vec<&'a LeasedRecipient>, Option<Permit>),
}

impl SendHandler {
    /// Sends to the recipients of a chunk and ends its lease. A large message is sent to
    /// one recipient at a time.
    pub(super) async fn send_to_many(&self, chunk: &LeasedChunk, is_large: bool) {
        let progress = ChunkProgress::default();
        let (left, extra_calls) = if is_large {
            (chunk.recipients.iter().collect(), None)
        } else if chunk.message.test_outcome.is_some() {
            let extra_calls = self.extra_calls(chunk.recipients.len());
            (chunk.recipients.iter().collect(), extra_calls)
        } else {
            let left = self.send_in_batches(chunk, &progress).await;
            let extra_calls = self.extra_calls_of(chunk, left.len());
            (left, extra_calls)
        };
        stream::iter(left)
            .for_each_concurrent(concurrency(extra_calls.as_ref()), |recipient| async {
                let record = self.send(chunk, recipient).await;
                self.record(record, &progress).await;
            })
            .await;
        drop(extra_calls);
        self.end_lease(chunk, progress).await;
    }

    /// Ends the lease of a chunk, if all outcomes are recorded.
    pub(super) async fn end_lease(&self, chunk: &LeasedChunk, progress: ChunkProgress) {
        if !progress.is_lost.into_inner() {
            let mut record = OutcomeRecord::of(chunk);
            record.ends_lease = true;
            record.has_untried = progress.has_untried.into_inner();
            self.sending.store.record(record).await;
        }
    }

    /// Permits for concurrent calls beyond the first; none if each holds large files.
    fn extra_calls_of(
        &self,
        chunk: &LeasedChunk,
        recipients: usize,
    ) -> Option<SemaphorePermit<'_>> {
        match chunk.has_large_files() {
            true => None,
            false => self.extra_calls(recipients),
        }
    }

    /// Writes an outcome record. False if it cannot be written.
    pub(super) async fn record(&self, record: OutcomeRecord, progress: &ChunkProgress) -> bool {
        if record.untried.is_some() {
            progress.has_untried.store(true, Ordering::Relaxed);
        }
        let is_recorded = self.sending.store.record(record).await;
        if !is_recorded {
            progress.is_lost.store(true, Ordering::Relaxed);
        }
        is_recorded
    }

    pub(super) async fn record_all(&self, records: Vec<OutcomeRecord>, progress: &ChunkProgress) {
        let all = records.into_iter();
        join_all(all.map(|record| self.record(record, progress))).await;
    }

    /// Sends to the recipients that can share calls, and returns the others.
    async fn send_in_batches<'a>(
        &self,
        chunk: &'a LeasedChunk,
        progress: &ChunkProgress,
    ) -> Vec<&'a LeasedRecipient> {
        let all = chunk.recipients.iter();
        let (mut can_share, mut left): (Vec<_>, Vec<_>) =
            all.partition(|recipient| recipient.unknowns == 0 && recipient.retry_state.rounds == 0);
        while let Some(first) = can_share.first() {
            // With the same retry state their tries begin with the same candidate, so one
            // selection is enough for all.
            let retry_state = first.retry_state;
            let (group, others): (Vec<_>, Vec<_>) = can_share
                .into_iter()
                .partition(|recipient| recipient.retry_state == retry_state);
            can_share = others;
            left.extend(self.send_group(chunk, group, progress).await);
        }
        left
    }

    /// Sends to recipients with the same retry state, batch by batch, and returns those that
    /// are to be sent to alone.
    async fn send_group<'a>(
        &self,
        chunk: &'a LeasedChunk,
        mut group: Vec<&'a LeasedRecipient>,
        progress: &ChunkProgress,
    ) -> Vec<&'a LeasedRecipient> {
        while self.may_batch(chunk, &group).await {
            let bytes = (group.len() * mail_bytes(chunk)).min(BATCH_BYTES_MAX);
            let Some(memory) = self.batch_memory.reserve(bytes) else {
                break;
            };
            match self.select_account(chunk, group[0]).await {
                Ok(Some(AccountSelection::Selected(selected))) => {
                    let selected = *selected;
                    let Some(batching) = adapter(selected.account.provider_type).batching() else {
                        // This account takes one mail per call. The rest is sent one by one.
                        let first = group.remove(0);
                        let record = self.send_through(chunk, first, selected).await;
                        self.record(record, progress).await;
                        break;
                    };
                    let fitting = (bytes / mail_bytes(chunk)).max(1);
                    // A test, which shares no call.
                    let Some(permit) = selected.permit else {
                        break;
                    };
                    let mut places = selected.places;
                    let size = group.len().min(batching.mails_max()).min(fitting);
                    let size = self.places_up_to(&mut places, size).await;
                    let rest = group.split_off(size);
                    let batch = Batch {
                        chunk,
                        account: selected.account,
                        batching,
                        ctx: selected.ctx,
                        places,
                        attempts: Vec::with_capacity(size),
                        _memory: memory,
                    };
                    self.send_batch(batch, permit, group, progress).await;
                    group = rest;
                }
                Ok(Some(AccountSelection::Unavailable(unavailable))) => {
                    self.put_all_off(chunk, &group, &unavailable, progress)
                        .await;
                    return Vec::new();
                }
                // Sent to alone, each recipient gets its own record of that.
                Ok(Some(AccountSelection::NoAccount(_)) | None) | Err(_) => break,
            }
        }
        group
    }

    /// Whether a batch is worth it: enough recipients, enough of whose mails fit into one
    /// batch, and a provider with batches.
    async fn may_batch(&self, chunk: &LeasedChunk, group: &[&LeasedRecipient]) -> bool {
        let fitting = BATCH_BYTES_MAX / mail_bytes(chunk);
        let Some(first) = group
            .first()
            .filter(|_| group.len().min(fitting) >= BATCH_MAILS_MIN)
        else {
            return false;
        };
        let candidates = sending_accounts::candidates(&self.sending.accounts, &chunk.message).await;
        candidates.is_ok_and(|candidates| {
            let index = usize::try_from(first.retry_state.candidate).unwrap_or_default();
            let account = candidates.accounts.get(index);
            account
                .or(candidates.accounts.first())
                .and_then(|account| adapter(account.provider_type).batching())
                .is_some_and(|batching| !batching.repeats_files() || !chunk.has_large_files())
        })
    }

    /// Sends a batch to `recipients`. Each call is made without the recipients that the one
    /// before decided; attempts for a further call are written anew, because suppressions
    /// may have been added meanwhile.
    async fn send_batch<'a>(
        &self,
        mut batch: Batch<'a>,
        mut permit: Permit,
        mut recipients: Vec<&'a LeasedRecipient>,
        progress: &ChunkProgress,
    ) {
        for calls_left in (0..BATCH_CALLS_MAX).rev() {
            self.write_attempts(&mut batch, &recipients, progress).await;
            let (left, unused) = match self.call_batch(&mut batch, permit, progress).await {
                BatchStep::Done => return,
                BatchStep::SendOneByOne(left, unused) => (left, unused),
                BatchStep::CallAgain(left) if calls_left == 0 => (left, None),
                // The permit before the attempts: it may take a wait.
                BatchStep::CallAgain(left) => match self.call_again(&mut batch, left.len()).await {
                    Some(next) => {
                        (permit, recipients) = (next, left);
                        continue;
                    }
                    None => {
                        let untried = left.into_iter().map(|left| batch.chunk.untried(left));
                        return self.record_all(untried.collect(), progress).await;
                    }
                },
            };
            // Each call takes a place of its own.
            batch.places = None;
            return self.send_one_by_one(&batch, left, unused, progress).await;
        }
    }

    /// Adds an attempt for each recipient, and writes them. Those whose call must not be
    /// made are recorded and left out.
    async fn write_attempts<'a>(
        &self,
        batch: &mut Batch<'a>,
        recipients: &[&'a LeasedRecipient],
        progress: &ChunkProgress,
    ) {
        for &recipient in recipients {
            let mut attempt = self.new_attempt(batch.chunk, recipient);
            attempt.row.provider_account_id = batch.account.id;
            batch.attempts.push(attempt);
        }
        let all = batch.attempts.iter();
        let written = join_all(all.map(|attempt| self.write_attempt(attempt))).await;
        let mut written = written.into_iter();
        let mut not_called = Vec::new();
        batch.attempts.retain(|_| match written.next().flatten() {
            Some(record) => {
                not_called.push(record);
                false
            }
            None => true,
        });
        self.record_all(not_called, progress).await;
    }

    /// Makes one call for the attempts of a batch, and says what is left to do. The attempts
    /// without an outcome are withdrawn.
    async fn call_batch<'a>(
        &self,
        batch: &mut Batch<'a>,
        permit: Permit,
        progress: &ChunkProgress,
    ) -> BatchStep<'a> {
        let attempts = batch.attempts.len();
        if attempts == 0 {
            return BatchStep::Done;
        }
        if !self.sending.worker_lease.may_call(batch.chunk.worker) {
            let withdrawn = batch.attempts.iter().map(RecipientAttempt::withdrawn);
            self.record_all(withdrawn.collect(), progress).await;
            return BatchStep::Done;
        }
        let unused = self.make_call(batch, permit, progress).await;
        let left: Vec<_> = batch.attempts.iter().map(|left| left.recipient).collect();
        if left.is_empty() || !self.withdraw_all(batch, progress).await {
            return BatchStep::Done;
        }
        if unused.is_some() || left.len() == attempts {
            BatchStep::SendOneByOne(left, unused)
        } else {
            BatchStep::CallAgain(left)
        }
    }

    /// Withdraws the attempts of a batch. False if that cannot be recorded: then their
    /// recipients must not be sent to.
    async fn withdraw_all(&self, batch: &mut Batch<'_>, progress: &ChunkProgress) -> bool {
        let mut record = OutcomeRecord::of(batch.chunk);
        for attempt in batch.attempts.drain(..) {
            record.withdraw(attempt.row.key());
        }
        self.record(record, progress).await
    }

    /// Composes the mails, makes the call, and records the outcomes. Attempts without an
    /// outcome stay in the batch: the provider did not take their mails and did not refuse
    /// them by name. Returns the permit if no call was made because no mails can share one.
    async fn make_call(
        &self,
        batch: &mut Batch<'_>,
        permit: Permit,
        progress: &ChunkProgress,
    ) -> Option<Permit> {
        let sending = &self.sending;
        let mut mails = self.compose_all(batch, progress).await;
        let can_share = |mail: &OutgoingMail| {
            mail.first_to()
                .is_some_and(|to| batch.batching.can_batch(to))
        };
        let shares: Vec<bool> = mails.iter().map(can_share).collect();
        mails.retain(can_share);
        // Sent to alone, each recipient gets its own record of the expiry.
        if mails.is_empty() || batch.chunk.message.is_expired(sending.clock.now()) {
            return Some(permit);
        }
        let now = sending.clock.now();
        let access = AccountAccess {
            credentials: &batch.account.credentials,
            endpoints: &sending.accounts.endpoints,
            now,
        };
        let Some(call) = batch.batching.send(&access, &mails) else {
            return Some(permit);
        };
        let count = mails.len();
        if let Some(places) = &mut batch.places {
            places.spend(count);
        }
        // The request contains the mails, and the call may take long.
        drop(mails);
        let adapter = adapter(batch.account.provider_type);
        let transport = &sending.accounts.transport;
        let observed = ObservedCall::begin(&batch.account);
        let (reply, status_code) = transport
            .send_batch(adapter, batch.batching, call, count, now)
            .await;
        observed.end(status_code, reply.outcomes.iter().flatten());
        permit.end(&reply.account_outcome);
        account_pause::learn(&sending.accounts, &batch.account, &reply.account_outcome);
        let message_id = batch.chunk.message.content.id;
        for outcome in reply.outcomes.iter().flatten() {
            let account = &batch.account;
            self.refusals.learn(message_id, account, outcome).await;
        }
        // One entry for each attempt: `None` if its mail was not in the call, or has no
        // outcome.
        let mut outcomes = reply.outcomes.into_iter();
        let outcomes = shares
            .into_iter()
            .map(|shares| shares.then(|| outcomes.next()).flatten().flatten());
        let records = self.decide_all(batch, outcomes.collect(), status_code);
        self.record_all(records, progress).await;
        None
    }

    /// Composes the mails of a batch. Attempts whose mail cannot be composed are recorded
    /// and left out.
    async fn compose_all(
        &self,
        batch: &mut Batch<'_>,
        progress: &ChunkProgress,
    ) -> Vec<OutgoingMail> {
        let mut mails = Vec::with_capacity(batch.attempts.len());
        let mut unprepared = Vec::new();
        batch
            .attempts
            .retain(|attempt| match self.compose(attempt, own_of(attempt)) {
                Ok(mail) => {
                    mails.push(mail);
                    true
                }
                Err(fault) => {
                    let mut record = self.unprepared(attempt, &fault);
                    record.withdraw(attempt.row.key());
                    unprepared.push(record);
                    false
                }
            });
        self.record_all(unprepared, progress).await;
        mails
    }

    /// Takes the attempts with an outcome out of the batch, and returns their records. All
    /// get the same time and the same jitter, so that the retries share calls again.
    fn decide_all(
        &self,
        batch: &mut Batch<'_>,
        outcomes: Vec<Option<SendOutcome>>,
        status_code: Option<u16>,
    ) -> Vec<OutcomeRecord> {
        let moment = self.moment(batch.chunk, status_code.is_some());
        let ctx = batch.ctx;
        let mut outcomes = outcomes.into_iter();
        let mut records = Vec::new();
        batch.attempts.retain(|attempt| {
            let Some(outcome) = outcomes.next().flatten() else {
                return true;
            };
            records.push(self.decide(attempt, outcome, status_code, ctx, moment));
            false
        });
        records
    }

    /// Sends to recipients one by one, through the account of the batch. `permit` is for the
    /// first of them, if there is one already.
    async fn send_one_by_one(
        &self,
        batch: &Batch<'_>,
        recipients: Vec<&LeasedRecipient>,
        mut permit: Option<Permit>,
        progress: &ChunkProgress,
    ) {
        let extra_calls = self.extra_calls_of(batch.chunk, recipients.len());
        let each = recipients.into_iter();
        stream::iter(each.map(|recipient| (recipient, permit.take())))
            .for_each_concurrent(
                concurrency(extra_calls.as_ref()),
                |(recipient, permit)| async {
                    let record = match self.select_alone(batch, permit).await {
                        Some(selected) => self.send_through(batch.chunk, recipient, selected).await,
                        None => batch.chunk.untried(recipient),
                    };
                    self.record(record, progress).await;
                },
            )
            .await;
    }

    /// Takes the places for a batch of this size, as far as there are any. Returns the size.
    async fn places_up_to(&self, places: &mut Option<Places>, size: usize) -> usize {
        match places {
            Some(places) => self.sending.target_caps.extend(places, size).await,
            None => size,
        }
    }

    /// The permit for another call with the mails of a batch that is left over. `None` as
    /// [`SendHandler::permit_for`], or if the account's target has reached a cap.
    async fn call_again(&self, batch: &mut Batch<'_>, recipients: usize) -> Option<Permit> {
        // A cap is not passed by a part of the mails: they are sorted out when they are tried
        // again.
        if self.places_up_to(&mut batch.places, recipients).await < recipients {
            return None;
        }
        self.permit_for(batch, None).await
    }

    /// The account of a batch for a call with one mail. `None` as [`SendHandler::permit_for`],
    /// or if the account's target has reached a cap.
    async fn select_alone(
        &self,
        batch: &Batch<'_>,
        permit: Option<Permit>,
    ) -> Option<SelectedAccount> {
        let account = batch.account.clone();
        let places = match self.sending.target_caps.take(account.target, 1).await {
            Ok(TakenPlaces::Uncapped) => None,
            Ok(TakenPlaces::Places(places)) => Some(places),
            Ok(TakenPlaces::Reached(_)) | Err(_) => return None,
        };
        Some(SelectedAccount {
            account,
            permit: Some(self.permit_for(batch, permit).await?),
            places,
            ctx: batch.ctx,
        })
    }

    /// The permit for a further call through the account of the batch: the given one, or
    /// another, for which it may wait. `None` if the account may not be called, or no call
    /// may begin any more.
    async fn permit_for(&self, batch: &Batch<'_>, given: Option<Permit>) -> Option<Permit> {
        let sending = &self.sending;
        if given.is_some() {
            return given.filter(|_| sending.worker_lease.may_call(batch.chunk.worker));
        }
        let mut rate_wait = RateWait::new();
        while self.may_begin(batch.chunk.worker) {
            // No provider with batches throttles by domain.
            match batch.account.acquire(&sending.account_limiter, None).await {
                // Asked again, because acquiring may have taken long.
                Acquired::Granted(permit) => {
                    let may_call = sending.worker_lease.may_call(batch.chunk.worker);
                    return may_call.then_some(permit);
                }
                Acquired::Rejected(rejected) => {
                    let unavailable = Unavailable {
                        blocked: rejected.into(),
                        ctx: batch.ctx,
                    };
                    if !self.wait_for_rate(&unavailable, &mut rate_wait).await {
                        return None;
                    }
                }
            }
        }
        None
    }

    /// Records for each recipient that its candidates may not be called now. All get the
    /// same time and the same jitter, so that the retries share calls.
    pub(super) async fn put_all_off(
        &self,
        chunk: &LeasedChunk,
        group: &[&LeasedRecipient],
        unavailable: &Unavailable,
        progress: &ChunkProgress,
    ) {
        let recipients = group.iter();
        let attempts: Vec<_> = recipients
            .map(|recipient| self.new_attempt(chunk, recipient))
            .collect();
        let moment = self.moment(chunk, false);
        let records = attempts
            .iter()
            .map(|attempt| self.put_off_at(attempt, unavailable, moment));
        self.record_all(records.collect(), progress).await;
    }
}

/// What a recipient has instead of the message's content. It is loaded: a chunk whose own
/// contents are large sends no batches.
fn own_of(attempt: &RecipientAttempt<'_>) -> Option<OwnContent> {
    let position = attempt.recipient.position;
    let contents = attempt.chunk.own_contents.as_ref()?;
    contents.get(&position).cloned()
}

/// How many calls a chunk may make at the same time with these permits.
fn concurrency(extra_calls: Option<&SemaphorePermit<'_>>) -> usize {
    1 + extra_calls.map_or(0, SemaphorePermit::num_permits)
}
