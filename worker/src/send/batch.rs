//! Sending to the many recipients of one chunk: in batches, where the provider takes
//! several private copies in one call, and the rest one by one.
//!
//! A batch is many attempts and one call. Each attempt is on record before, and each
//! gets an outcome of its own: an answer that is lost leaves all of them unknown. Who
//! only shared a call that was refused goes on in a smaller batch or alone, because
//! nothing was taken: under another attempt, whose writing looks again whether the
//! recipient was suppressed meanwhile. And who was in a call that failed is tried
//! alone from then on: should one copy be what the provider fails over, the others do
//! not pay for it twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use waypost_core::account_limiter::{Acquired, Permit};
use waypost_core::delivery::lease::LeasedRecipient;
use waypost_core::delivery::outcome::AttemptOutcome;
use waypost_core::delivery::retry::{self, RetryContext, RetryMoment};
use waypost_core::provider::batch::Batching;
use waypost_core::provider::mail::OutgoingMail;
use waypost_core::provider::outcome::SendOutcome;
use waypost_core::provider::{AccountAccess, Adapter, adapter};

use super::job::{SendMessage, Try, settled, untried, withdrawn};
use crate::send::account_pause;
use crate::send::select_account::{self, Chosen, NoAccount, RateWait, SelectedAccount};
use crate::send::sending_accounts::{self, SendingAccount};
use crate::store::{ClaimedChunk, OutcomeRecord};

/// The fewest copies of a batch. Fewer go alone, side by side: they are as fast so, and
/// share no fate.
const BATCH_COPIES_MIN: usize = 8;
/// The most bytes of copies that one batch is made of.
const BATCH_BYTES_MAX: usize = 1024 * 1024;
/// The most bytes of copies in all batches of a worker.
const BATCHES_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What a copy takes beside the message's bodies, roughly: its headers, and its
/// unsubscribe links.
const COPY_BYTES: usize = 3 * 1024;
/// What a tracked link of a copy takes beside its URL, roughly.
const LINK_BYTES: usize = 512;
/// Calls of one batch, each without those whom the one before refused by name. Who is
/// left then goes alone.
const BATCH_CALLS_MAX: usize = 3;
/// Memory is given out in pieces of so many bytes.
const PIECE_BYTES: usize = 1024;

/// What the batches under way may hold in memory. Cheap to clone.
#[derive(Clone)]
pub(super) struct BatchMemory(Arc<Semaphore>);

impl Default for BatchMemory {
    fn default() -> Self {
        let pieces = BATCHES_BYTES_MAX / PIECE_BYTES;
        Self(Arc::new(Semaphore::new(pieces)))
    }
}

impl BatchMemory {
    /// So much, if it is free: nobody waits for the batches of others, whose provider
    /// may hang.
    fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let pieces = u32::try_from(bytes.div_ceil(PIECE_BYTES)).ok()?;
        Arc::clone(&self.0).try_acquire_many_owned(pieces).ok()
    }
}

/// What has become of a chunk so far.
#[derive(Default)]
struct ChunkProgress {
    lost: AtomicBool,
    no_hurry: AtomicBool,
}

/// Attempts through one account that are to share a call.
struct Batch<'a> {
    claim: &'a ClaimedChunk,
    sender: SendingAccount,
    /// Where each of its recipients stands.
    standing: RetryContext,
    tries: Vec<Try<'a>>,
    _memory: OwnedSemaphorePermit,
}

impl Batch<'_> {
    fn adapter(&self) -> &'static dyn Adapter {
        adapter(self.sender.provider_type)
    }

    fn chosen(&self, pass: Permit) -> Chosen {
        Chosen {
            sender: self.sender.clone(),
            pass,
            standing: self.standing,
        }
    }
}

impl SendMessage {
    /// Sends to the recipients of a chunk and ends its lease. `large` messages go copy
    /// by copy.
    pub(super) async fn send_to_many(&self, claim: &ClaimedChunk, large: bool) {
        let progress = ChunkProgress::default();
        let alone = if large {
            claim.recipients.iter().collect()
        } else {
            self.send_in_batches(claim, &progress).await
        };
        let more = if large {
            None
        } else {
            self.more_calls(alone.len())
        };
        let calls = 1 + more.as_ref().map_or(0, SemaphorePermit::num_permits);
        stream::iter(alone)
            .for_each_concurrent(calls, |recipient| async {
                let settlement = self.send(claim, recipient).await;
                self.record(settlement, &progress).await;
            })
            .await;
        drop(more);
        if !progress.lost.into_inner() {
            let mut settlement = OutcomeRecord::of(claim);
            settlement.finished = true;
            settlement.no_hurry = progress.no_hurry.into_inner();
            self.sending.ledger.settle(settlement).await;
        }
    }

    /// Records it; false where that cannot be done any more.
    async fn record(&self, settlement: OutcomeRecord, progress: &ChunkProgress) -> bool {
        if settlement.untried.is_some() {
            progress.no_hurry.store(true, Ordering::Relaxed);
        }
        let is_recorded = self.sending.ledger.settle(settlement).await;
        if !is_recorded {
            progress.lost.store(true, Ordering::Relaxed);
        }
        is_recorded
    }

    async fn record_all(&self, settlements: Vec<OutcomeRecord>, progress: &ChunkProgress) {
        let all = settlements.into_iter();
        join_all(all.map(|settlement| self.record(settlement, progress))).await;
    }

    /// Sends to those that can share calls, and leaves the others.
    async fn send_in_batches<'a>(
        &self,
        claim: &'a ClaimedChunk,
        progress: &ChunkProgress,
    ) -> Vec<&'a LeasedRecipient> {
        let all = claim.recipients.iter();
        let (mut sociable, mut alone): (Vec<_>, Vec<_>) =
            all.partition(|recipient| recipient.unknowns == 0 && recipient.retry_state.rounds == 0);
        while let Some(first) = sociable.first() {
            // They are tried from the same candidate on, so one answer does for all.
            let retry_state = first.retry_state;
            let (group, others): (Vec<_>, Vec<_>) = sociable
                .into_iter()
                .partition(|recipient| recipient.retry_state == retry_state);
            sociable = others;
            let left = self.send_group(claim, group, progress).await;
            alone.extend(left);
        }
        alone
    }

    /// Sends to recipients that stand alike, batch by batch, as long as that can be.
    async fn send_group<'a>(
        &self,
        claim: &'a ClaimedChunk,
        mut group: Vec<&'a LeasedRecipient>,
        progress: &ChunkProgress,
    ) -> Vec<&'a LeasedRecipient> {
        while self.may_batch(claim, &group).await {
            let bytes = (group.len() * copy_bytes(claim)).min(BATCH_BYTES_MAX);
            let Some(memory) = self.batch_memory.take(bytes) else {
                break;
            };
            let Some(choice) = self.choose_for(claim, group[0]).await else {
                break;
            };
            match choice {
                SelectedAccount::Account(chosen) => match adapter_of(&chosen).batching() {
                    Some(batching) => {
                        let size = group.len().min(batching.mails_max());
                        let size = size.min((bytes / copy_bytes(claim)).max(1));
                        let rest = group.split_off(size);
                        let batch = Batch {
                            claim,
                            sender: chosen.sender,
                            standing: chosen.standing,
                            tries: Vec::with_capacity(size),
                            _memory: memory,
                        };
                        self.fill_and_send(batch, chosen.pass, &group, progress)
                            .await;
                        group = rest;
                    }
                    // The next account in turn takes one at a time.
                    None => {
                        let first = group.remove(0);
                        let settlement = self.send_through(claim, first, chosen).await;
                        self.record(settlement, progress).await;
                        break;
                    }
                },
                SelectedAccount::NoAccount(refused) => {
                    self.put_all_off(claim, &group, &refused, progress).await;
                    return Vec::new();
                }
                // Each says so for itself.
                SelectedAccount::Nobody => break,
            }
        }
        group
    }

    /// Whether a batch of these is worth it: they are enough, enough of them fit, and
    /// the account whose turn it is has batches.
    async fn may_batch(&self, claim: &ClaimedChunk, group: &[&LeasedRecipient]) -> bool {
        let fit = BATCH_BYTES_MAX / copy_bytes(claim);
        let Some(first) = group
            .first()
            .filter(|_| group.len().min(fit) >= BATCH_COPIES_MIN)
        else {
            return false;
        };
        let candidates = sending_accounts::candidates(&self.sending.accounts, &claim.message).await;
        candidates.is_ok_and(|candidates| {
            let place = usize::try_from(first.retry_state.candidate).unwrap_or_default();
            let sender = candidates.senders.get(place);
            sender
                .or(candidates.senders.first())
                .is_some_and(|sender| adapter(sender.provider_type).batching().is_some())
        })
    }

    /// Asks for an account, waiting for its pace as one copy would. Nothing where each
    /// recipient had better ask for itself, or may not any more.
    async fn choose_for(
        &self,
        claim: &ClaimedChunk,
        recipient: &LeasedRecipient,
    ) -> Option<SelectedAccount> {
        let sending = &self.sending;
        let mut patience = RateWait::fresh();
        loop {
            if sending.shutdown.is_cancelled() || !sending.tenures.may_call(claim.worker) {
                return None;
            }
            let (accounts, gates) = (&sending.accounts, &sending.gates);
            let refusals = self.refusals();
            let choice =
                select_account::choose(accounts, gates, refusals, &claim.message, recipient).await;
            let choice = choice.ok()?;
            if let SelectedAccount::NoAccount(refused) = &choice
                && self.wait_in_place(refused, &mut patience).await
            {
                continue;
            }
            return Some(choice);
        }
    }

    async fn fill_and_send<'a>(
        &self,
        mut batch: Batch<'a>,
        pass: Permit,
        group: &[&'a LeasedRecipient],
        progress: &ChunkProgress,
    ) {
        self.write_attempts(&mut batch, group, progress).await;
        self.send_batch(batch, pass, progress).await;
    }

    /// Fills a batch with those of whom an attempt could be written.
    async fn write_attempts<'a>(
        &self,
        batch: &mut Batch<'a>,
        group: &[&'a LeasedRecipient],
        progress: &ChunkProgress,
    ) {
        for &recipient in group {
            let mut this = self.begin(batch.claim, recipient);
            this.attempt.provider_account_id = batch.sender.id;
            batch.tries.push(this);
        }
        let written = join_all(batch.tries.iter().map(|this| self.write_attempt(this))).await;
        let mut written = written.into_iter();
        let mut instead = Vec::new();
        batch.tries.retain(|_| match written.next() {
            Some(Some(settlement)) => {
                instead.push(settlement);
                false
            }
            Some(None) | None => true,
        });
        self.record_all(instead, progress).await;
    }

    /// Takes back the attempts of a batch, none of which has a call under way. False where
    /// that could not be recorded: then nothing more may be done for them.
    async fn take_back(&self, batch: &mut Batch<'_>, progress: &ChunkProgress) -> bool {
        if batch.tries.is_empty() {
            return true;
        }
        let mut settlement = OutcomeRecord::of(batch.claim);
        for this in batch.tries.drain(..) {
            settlement.withdraw(this.attempt.key());
        }
        self.record(settlement, progress).await
    }

    /// Makes the calls of attempts that are on record. Those of a further call are written
    /// anew: what the last look at the suppressions saw is old by then.
    async fn send_batch(&self, mut batch: Batch<'_>, pass: Permit, progress: &ChunkProgress) {
        let batching = batch.adapter().batching();
        let mut entered = pass;
        let mut calls = 0;
        while !batch.tries.is_empty() {
            let before = batch.tries.len();
            if !self.sending.tenures.may_call(batch.claim.worker) {
                let all = batch.tries.iter().map(withdrawn).collect();
                return self.record_all(all, progress).await;
            }
            calls += 1;
            let unused = match batching {
                Some(batching) => {
                    let called = self.call_batch(&mut batch, batching, entered, progress);
                    called.await
                }
                None => Some(entered),
            };
            let left: Vec<_> = batch.tries.iter().map(|this| this.recipient).collect();
            if !self.take_back(&mut batch, progress).await || left.is_empty() {
                return;
            }
            if unused.is_some() || left.len() == before || calls == BATCH_CALLS_MAX {
                return self.send_apart(&batch, left, unused, progress).await;
            }
            // First, since it may have to be waited for.
            let Some(pass) = self.pass_for(&batch, None).await else {
                let left = left.into_iter();
                let all = left.map(|recipient| untried(batch.claim, recipient));
                return self.record_all(all.collect(), progress).await;
            };
            entered = pass;
            self.write_attempts(&mut batch, &left, progress).await;
        }
    }

    /// Makes one call for all, and records what came of each. Those that were not taken
    /// and are not to blame stay in the batch. The pass comes back where there was no
    /// call, because they cannot share one.
    async fn call_batch(
        &self,
        batch: &mut Batch<'_>,
        batching: &dyn Batching,
        pass: Permit,
        progress: &ChunkProgress,
    ) -> Option<Permit> {
        let sending = &self.sending;
        let mut mails = Vec::with_capacity(batch.tries.len());
        let mut unprepared = Vec::new();
        batch.tries.retain(|this| match self.compose(this) {
            Ok(mail) => {
                mails.push(mail);
                true
            }
            Err(fault) => {
                let mut settlement = self.unprepared(this, &fault);
                settlement.withdraw(this.attempt.key());
                unprepared.push(settlement);
                false
            }
        });
        self.record_all(unprepared, progress).await;
        // Those that cannot share a call stay, and are left for calls of their own.
        let share = |mail: &OutgoingMail| batching.can_batch(mail.to.address());
        let sharing: Vec<bool> = mails.iter().map(share).collect();
        mails.retain(share);
        if mails.is_empty() {
            return Some(pass);
        }
        let now = sending.clock.now();
        let access = AccountAccess {
            credentials: &batch.sender.credentials,
            endpoints: &sending.accounts.endpoints,
            now,
        };
        let Some(call) = batching.send(&access, &mails) else {
            return Some(pass);
        };
        // The request holds them too, and the call may take long.
        let (adapter, count) = (batch.adapter(), mails.len());
        drop(mails);
        let transport = &sending.accounts.transport;
        let (answer, status) = transport
            .send_batch(adapter, batching, call, count, now)
            .await;
        pass.end(&answer.account_outcome);
        account_pause::learn(&sending.accounts, &batch.sender, &answer.account_outcome);
        let message = batch.claim.message.content.id;
        for outcome in answer.outcomes.iter().flatten() {
            let refusals = self.refusals();
            refusals.learn(message, &batch.sender, outcome).await;
        }
        let mut outcomes = answer.outcomes.into_iter();
        let outcomes = sharing.into_iter().map(|shares| {
            let outcome = shares.then(|| outcomes.next());
            outcome.flatten().flatten()
        });
        let settled = self.settle_batch(batch, outcomes.collect(), status);
        self.record_all(settled, progress).await;
        None
    }

    /// Takes those with an outcome out of the batch, and says what there is to record of
    /// them. They share a moment and a chance, so those that are tried again come
    /// together again.
    fn settle_batch(
        &self,
        batch: &mut Batch<'_>,
        outcomes: Vec<Option<SendOutcome>>,
        status_code: Option<u16>,
    ) -> Vec<OutcomeRecord> {
        let Some(here) = self.moment(batch.tries.first(), status_code.is_some()) else {
            return Vec::new();
        };
        let (standing, settings) = (batch.standing, &self.sending.settings);
        let mut outcomes = outcomes.into_iter();
        let mut done = Vec::new();
        batch.tries.retain(|this| {
            let Some(outcome) = outcomes.next().flatten() else {
                return true;
            };
            let next_state = retry::decide(&outcome, standing, settings, here);
            let recorded = AttemptOutcome {
                attempted: true,
                status_code,
                ..self.not_attempted(this, outcome, next_state, here.now)
            };
            done.push(settled(this, recorded));
            false
        });
        done
    }

    /// Sends one by one what could not share a call, or what shared one that was refused,
    /// through the batch's account.
    async fn send_apart(
        &self,
        batch: &Batch<'_>,
        left: Vec<&LeasedRecipient>,
        pass: Option<Permit>,
        progress: &ChunkProgress,
    ) {
        let more = self.more_calls(left.len());
        let calls = 1 + more.as_ref().map_or(0, SemaphorePermit::num_permits);
        let mut pass = pass;
        let each = left.into_iter().map(|recipient| (recipient, pass.take()));
        stream::iter(each)
            .for_each_concurrent(calls, |(recipient, pass)| async {
                let settlement = match self.pass_for(batch, pass).await {
                    Some(pass) => {
                        let chosen = batch.chosen(pass);
                        self.send_through(batch.claim, recipient, chosen).await
                    }
                    None => untried(batch.claim, recipient),
                };
                self.record(settlement, progress).await;
            })
            .await;
    }

    /// Leave for a further call through the batch's account: the one that is there
    /// already, or another, waiting for the account's pace. Nothing where there is none,
    /// or no call may be made any more.
    async fn pass_for(&self, batch: &Batch<'_>, pass: Option<Permit>) -> Option<Permit> {
        let sending = &self.sending;
        let (worker, sender) = (batch.claim.worker, &batch.sender);
        let mut patience = RateWait::fresh();
        let mut pass = pass;
        loop {
            if !sending.tenures.may_call(worker) {
                return None;
            }
            if let Some(pass) = pass.take() {
                return Some(pass);
            }
            if sending.shutdown.is_cancelled() {
                return None;
            }
            // No provider that has batches throttles by domain.
            match sender.enter(&sending.gates, None).await {
                Acquired::Granted(entered) => pass = Some(entered),
                Acquired::Rejected(closed) => {
                    let refused = NoAccount {
                        closed,
                        standing: batch.standing,
                    };
                    if !self.wait_in_place(&refused, &mut patience).await {
                        return None;
                    }
                }
            }
        }
    }

    /// None of the accounts may be called now.
    async fn put_all_off(
        &self,
        claim: &ClaimedChunk,
        group: &[&LeasedRecipient],
        refused: &NoAccount,
        progress: &ChunkProgress,
    ) {
        let tries: Vec<_> = group.iter().map(|one| self.begin(claim, one)).collect();
        let Some(here) = self.moment(tries.first(), false) else {
            return;
        };
        let (why, settings) = (refused.why(), &self.sending.settings);
        let wait = refused.closed.wait;
        let all = tries.iter().map(|this| {
            let next_state = retry::put_off(why, wait, refused.standing, settings, here);
            let outcome = SendOutcome::Unavailable {
                retry_after: None,
                reason: why.to_owned(),
            };
            settled(
                this,
                self.not_attempted(this, outcome, next_state, here.now),
            )
        });
        self.record_all(all.collect(), progress).await;
    }

    fn moment(&self, first: Option<&Try<'_>>, answered: bool) -> Option<RetryMoment> {
        first.map(|first| self.here(first, answered))
    }
}

fn adapter_of(chosen: &Chosen) -> &'static dyn Adapter {
    adapter(chosen.sender.provider_type)
}

/// What one copy takes in memory.
fn copy_bytes(claim: &ClaimedChunk) -> usize {
    let content = &claim.message.content;
    let bodies = [&content.html, &content.text];
    let bodies = bodies.into_iter().flatten().map(String::len).sum::<usize>();
    let links = claim.plan.links();
    // The URLs are in what tracks them, encoded.
    let tracked = if links > 0 { bodies } else { 0 };
    bodies + 2 * tracked + links * LINK_BYTES + COPY_BYTES
}
