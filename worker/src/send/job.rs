//! Sending the due recipients of one chunk: claim, compose, write the attempt,
//! call, settle.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error};
use waypost_core::account_limiter::AccountLimiter;
use waypost_core::clock::{Clock, Timestamp};
use waypost_core::config::SendingSettings;
use waypost_core::db::{self, OrFault};
use waypost_core::delivery::attempt::NewAttempt;
use waypost_core::delivery::job::SendJob;
use waypost_core::delivery::lease::{self, LeasedRecipient};
use waypost_core::delivery::outcome::AttemptOutcome;
use waypost_core::delivery::retry::{self, NextState, RetryContext, RetryMoment};
use waypost_core::fault::{Fault, FaultKind};
use waypost_core::ids::Ids;
use waypost_core::job_queue::JobEnd;
use waypost_core::message::compose;
use waypost_core::provider::mail::OutgoingMail;
use waypost_core::provider::outcome::{Blame, SendOutcome};
use waypost_core::provider::{AccountAccess, adapter};
use waypost_core::provider_account::Accounts;
use waypost_core::routing::rule::OnUnknown;
use waypost_core::suppression;
use waypost_core::tracking::TrackedRecipient;
use waypost_core::tracking::link::Tracker;
use waypost_core::unsubscribe::link::{LinkContext, Links, ensure_placeholder};
use waypost_core::warn_seldom;

use super::batch::BatchMemory;
use crate::send::account_pause;
use crate::send::account_prediction::AccountPrediction;
use crate::send::quarantine::{Admission, Quarantine};
use crate::send::refusals::Refusals;
use crate::send::select_account::{self, Chosen, NoAccount, RateWait, SelectedAccount};
use crate::store::{ClaimedChunk, OutcomeRecord, PrewrittenAttempt, SendStore};
use crate::worker_lease::WorkerLease;

/// Calls that one chunk has under way at once, so that one large send does not
/// take all of a worker.
const CHUNK_CALLS_MAX: usize = 16;
/// Large messages that are worked on at the same time.
const LARGE_MESSAGES_MAX: usize = 2;
/// The part of a worker's jobs that may wait for the pace of accounts: one in so many,
/// so that slow accounts leave the worker to the others.
const WAITING_SHARE: usize = 4;
/// When a job comes again that could not be claimed because Postgres was away.
const CLAIM_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Why a job could not even be claimed, for the queue's log.
pub(crate) type JobError = Box<dyn std::error::Error + Send + Sync>;

/// What sending works with.
pub(crate) struct Sending {
    pub(crate) ledger: SendStore,
    pub(crate) gates: AccountLimiter,
    pub(crate) accounts: Accounts,
    pub(crate) tenures: WorkerLease,
    pub(crate) tracker: Tracker,
    pub(crate) links: Links,
    pub(crate) ids: Ids,
    pub(crate) clock: Clock,
    pub(crate) settings: SendingSettings,
    /// No new call is made once the process is told to stop.
    pub(crate) shutdown: CancellationToken,
}

/// The handler of [`SendJob`]s. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SendMessage {
    pub(super) sending: Arc<Sending>,
    /// Calls beyond the one that each job has by its place.
    more_calls: Arc<Semaphore>,
    large: Arc<Semaphore>,
    /// A place for each job that runs at the same time, whoever brought it.
    places: Arc<Semaphore>,
    suspects: Arc<Quarantine>,
    foresight: Arc<AccountPrediction>,
    refusals: Arc<Refusals>,
    /// Copies that wait in place for the pace of their accounts.
    waiting: Arc<Semaphore>,
    /// What the batches under way may hold in memory.
    pub(super) batch_memory: BatchMemory,
}

/// One recipient's try so far.
pub(super) struct Try<'a> {
    pub(super) claim: &'a ClaimedChunk,
    pub(super) recipient: &'a LeasedRecipient,
    pub(super) attempt: NewAttempt,
    /// The same, where it is on record with the claim.
    prewritten: Option<&'a PrewrittenAttempt>,
}

impl SendMessage {
    pub(crate) fn new(sending: Arc<Sending>) -> Self {
        let more_calls = Arc::new(Semaphore::new(sending.settings.concurrency));
        let large = Arc::new(Semaphore::new(LARGE_MESSAGES_MAX));
        let places = Arc::new(Semaphore::new(sending.settings.concurrency));
        let suspects = Arc::new(Quarantine::new(
            sending.accounts.pool.clone(),
            sending.tenures.clone(),
            sending.ids.clone(),
            sending.clock.clone(),
            sending.settings.clone(),
        ));
        let foresight = Arc::new(AccountPrediction::new(sending.ids.clone()));
        let refusals = Arc::new(Refusals::new());
        let waiting = (sending.settings.concurrency / WAITING_SHARE).max(1);
        Self {
            sending,
            more_calls,
            large,
            places,
            suspects,
            foresight,
            refusals,
            waiting: Arc::new(Semaphore::new(waiting)),
            batch_memory: BatchMemory::default(),
        }
    }

    pub(super) fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// The places of jobs, for those who bring some themselves.
    pub(crate) fn places(&self) -> &Arc<Semaphore> {
        &self.places
    }

    /// Runs one job, as soon as it has a place.
    pub(crate) async fn run(&self, job: SendJob) -> Result<JobEnd, JobError> {
        let _place = self.places.acquire().await?;
        self.run_in_place(job).await
    }

    /// Runs one job. Only a claim that could not be made, a suspect that has to wait
    /// or a panic brings it again; from there on Postgres knows when the chunk is due.
    pub(crate) async fn run_in_place(&self, job: SendJob) -> Result<JobEnd, JobError> {
        let wanted = self.foresight.wanted(job).await;
        let claim = match self.sending.ledger.claim(wanted).await {
            Ok(Some(claim)) => claim,
            Ok(None) => return Ok(JobEnd::Done),
            Err(fault) if fault.kind() == FaultKind::Unavailable => {
                debug!(cause = fault.chain(), "A job waits for Postgres");
                return Ok(JobEnd::Snooze(CLAIM_AGAIN_AFTER));
            }
            Err(fault) => return Err(fault.chain().into()),
        };
        let admission = self.suspects.admit(&claim).await;
        if let Admission::Later(after) = admission {
            self.hand_back(&claim).await;
            return Ok(JobEnd::Snooze(after));
        }
        let (worker, prewritten) = (claim.worker, claim.prewritten.clone());
        let worked = AssertUnwindSafe(self.work_off(claim)).catch_unwind().await;
        match worked {
            Ok(()) => Ok(JobEnd::Done),
            Err(panic) => {
                let unused = prewritten.and_then(|prewritten| prewritten.unused());
                let suspects = &self.suspects;
                let end = suspects.panicked(worker, job, unused, panic).await;
                self.sending.ledger.let_go(worker, job);
                Ok(end)
            }
        }
    }

    /// Gives back a chunk that nothing was done for, and ends its lease.
    async fn hand_back(&self, claim: &ClaimedChunk) {
        let ledger = &self.sending.ledger;
        let recipients = claim.recipients.iter();
        let all = recipients.map(|recipient| ledger.settle(untried(claim, recipient)));
        if join_all(all).await.into_iter().all(|recorded| recorded) {
            let mut settlement = OutcomeRecord::of(claim);
            settlement.finished = true;
            settlement.no_hurry = true;
            ledger.settle(settlement).await;
        }
    }

    /// Sends to a chunk's recipients and ends its lease. Where something could not
    /// be recorded the lease is left to the reaper.
    async fn work_off(&self, mut claim: ClaimedChunk) {
        let large = claim.message.body_left_out;
        // One large message at a time, one copy at a time: its copies are made in
        // memory.
        let _permit = if large {
            Some(self.large.acquire().await)
        } else {
            None
        };
        if large && let Err(fault) = self.load_body(&mut claim).await {
            warn_seldom!(cause = fault.chain(), "A large message could not be read");
            if fault.kind() == FaultKind::Unavailable {
                self.hand_back(&claim).await;
            } else {
                self.sending.tenures.give_up(claim.worker);
            }
            return;
        }
        if claim.message.content.unsubscribe_group_id.is_some() {
            ensure_placeholder(&mut Arc::make_mut(&mut claim.message).content.html);
        }
        let content = &claim.message.content;
        let html = content.html.as_deref();
        claim.plan = self.sending.tracker.plan(html, content.tracking);
        if let [recipient] = claim.recipients.as_slice() {
            let mut settlement = self.send(&claim, recipient).await;
            if let Some(unused) = claim
                .prewritten
                .as_ref()
                .and_then(PrewrittenAttempt::unused)
            {
                self.foresight.forget(claim.job.organization_id).await;
                settlement.withdraw(unused);
            }
            settlement.finished = true;
            settlement.no_hurry = settlement.untried.is_some();
            self.sending.ledger.settle(settlement).await;
            return;
        }
        self.send_to_many(&claim, large).await;
    }

    /// Calls that a chunk of so many may have under way beyond its first: at the most
    /// half of what is free now. Nobody waits for them, so a job with one recipient is
    /// not held up by the calls of a large send whose provider hangs.
    pub(super) fn more_calls(&self, recipients: usize) -> Option<SemaphorePermit<'_>> {
        let free = self.more_calls.available_permits().div_ceil(2);
        let wanted = recipients.min(CHUNK_CALLS_MAX).saturating_sub(1).min(free);
        let wanted = u32::try_from(wanted).ok()?;
        self.more_calls.try_acquire_many(wanted).ok()
    }

    async fn load_body(&self, claim: &mut ClaimedChunk) -> Result<(), Fault> {
        let mut message = (*claim.message).clone();
        let content = &mut message.content;
        let pool = &self.sending.accounts.pool;
        let read = db::bounded("read a large message", async {
            let mut connection = pool.acquire().await.or_fault("read a large message")?;
            lease::load_body(&mut connection, content.organization_id, content.id).await
        });
        (content.html, content.text) = read.await?;
        claim.message = Arc::new(message);
        Ok(())
    }

    /// Tries one recipient and says what there is to record of it. Nothing is
    /// composed before an account may be called, so memory is bounded by the calls.
    pub(super) async fn send(
        &self,
        claim: &ClaimedChunk,
        recipient: &LeasedRecipient,
    ) -> OutcomeRecord {
        let sending = &self.sending;
        let mut patience = RateWait::fresh();
        loop {
            if sending.shutdown.is_cancelled() || !sending.tenures.may_call(claim.worker) {
                return untried(claim, recipient);
            }
            let (accounts, gates) = (&sending.accounts, &sending.gates);
            let refusals = self.refusals();
            match select_account::choose(accounts, gates, refusals, &claim.message, recipient).await
            {
                Ok(SelectedAccount::Account(chosen)) => {
                    return self.send_through(claim, recipient, chosen).await;
                }
                Ok(SelectedAccount::NoAccount(refused)) => {
                    if !self.wait_in_place(&refused, &mut patience).await {
                        return self.put_off(&self.begin(claim, recipient), &refused);
                    }
                }
                Ok(SelectedAccount::Nobody) => {
                    let reason = "no active provider account takes a message from this sender";
                    return self.not_called(&self.begin(claim, recipient), reason.to_owned());
                }
                Err(fault) => return self.unprepared(&self.begin(claim, recipient), &fault),
            }
        }
    }

    /// Waits for the pace of an account, where that may be over soon. False where it
    /// is not, or others wait already: they must not take all of a worker.
    pub(super) async fn wait_in_place(&self, refused: &NoAccount, patience: &mut RateWait) -> bool {
        if !refused.is_pace() {
            return false;
        }
        let Some(wait) = patience.take(refused.closed.wait) else {
            return false;
        };
        let Ok(_place) = self.waiting.try_acquire() else {
            return false;
        };
        let shutdown = &self.sending.shutdown;
        let pause = tokio::time::sleep(wait);
        // Told to stop, the next look ends it.
        let _stopped = shutdown.run_until_cancelled(pause).await;
        true
    }

    pub(super) fn begin<'a>(
        &self,
        claim: &'a ClaimedChunk,
        recipient: &'a LeasedRecipient,
    ) -> Try<'a> {
        let sending = &self.sending;
        let content = &claim.message.content;
        let attempt = NewAttempt {
            id: sending.ids.next(),
            message_id: content.id,
            organization_id: content.organization_id,
            position: recipient.position,
            address_hash: recipient.address_hash,
            provider_account_id: claim.message.provider_account_id,
            started_at: sending.clock.now(),
        };
        Try {
            claim,
            recipient,
            attempt,
            prewritten: None,
        }
    }

    pub(super) async fn send_through(
        &self,
        claim: &ClaimedChunk,
        recipient: &LeasedRecipient,
        chosen: Chosen,
    ) -> OutcomeRecord {
        let mut this = self.begin(claim, recipient);
        let account = chosen.sender.id;
        this.attempt.provider_account_id = account;
        let prewritten = claim.prewritten.as_ref();
        if let Some(prewritten) =
            prewritten.filter(|prewritten| prewritten.serves(account, this.attempt.started_at))
        {
            this.attempt = prewritten.attempt;
            this.prewritten = Some(prewritten);
        }
        match self.compose(&this) {
            Ok(mail) => self.call(&this, chosen, &mail).await,
            Err(fault) => self.unprepared(&self.begin(claim, recipient), &fault),
        }
    }

    pub(super) fn compose(&self, this: &Try<'_>) -> Result<OutgoingMail, Fault> {
        let (claim, recipient, attempt) = (this.claim, this.recipient, &this.attempt);
        let content = &claim.message.content;
        let sealer = &self.sending.accounts.sealer;
        let mut mail = compose::compose(
            content,
            recipient.position,
            &recipient.address_sealed,
            attempt.id,
            sealer,
        )?;
        let copy = TrackedRecipient {
            organization_id: content.organization_id,
            message_id: content.id,
            position: recipient.position,
            issued_at: attempt.started_at,
        };
        self.sending.tracker.add_to(&mut mail, &claim.plan, copy);
        if let Some(unsubscribe_group_id) = content.unsubscribe_group_id {
            let this = LinkContext {
                organization_id: content.organization_id,
                unsubscribe_group_id,
                at: attempt.started_at,
            };
            self.sending.links.add_to(&mut mail, this);
        }
        Ok(mail)
    }

    /// What could not be read or composed: later, or, where that is no use, by the
    /// same rules as what could not be sent.
    pub(super) fn unprepared(&self, this: &Try<'_>, fault: &Fault) -> OutcomeRecord {
        if fault.kind() == FaultKind::Unavailable {
            warn_seldom!(cause = fault.chain(), "A message waits for Postgres");
            return untried(this.claim, this.recipient);
        }
        let id = this.claim.message.content.id;
        error!(message.id = %id, cause = fault.chain(), "A message could not be prepared");
        self.not_called(this, fault.to_string())
    }

    /// Writes the attempt and makes the call, unless the lease might end first.
    async fn call(&self, this: &Try<'_>, chosen: Chosen, mail: &OutgoingMail) -> OutcomeRecord {
        match self.write_attempt(this).await {
            None => self.make_call(this, chosen, mail).await,
            Some(instead) => instead,
        }
    }

    /// Writes the attempt. Where there must be no call, what there is to record instead.
    pub(super) async fn write_attempt(&self, this: &Try<'_>) -> Option<OutcomeRecord> {
        let sending = &self.sending;
        if let Some(prewritten) = this.prewritten {
            if !sending.tenures.may_call(this.claim.worker) {
                return Some(withdrawn(this));
            }
            prewritten.call();
            return None;
        }
        let prewritten = sending
            .ledger
            .begin_attempt(this.claim.worker, this.attempt)
            .await;
        if let Ok(false) = prewritten {
            return Some(self.dropped(this));
        }
        if let Err(fault) = &prewritten {
            warn_seldom!(
                cause = fault.chain(),
                "An attempt could not be recorded and is not made"
            );
        }
        // Writing the attempt may have taken long.
        let may_call = prewritten.is_ok() && sending.tenures.may_call(this.claim.worker);
        (!may_call).then(|| withdrawn(this))
    }

    /// Makes the call of an attempt that is on record.
    pub(super) async fn make_call(
        &self,
        this: &Try<'_>,
        chosen: Chosen,
        mail: &OutgoingMail,
    ) -> OutcomeRecord {
        let sending = &self.sending;
        let sender = &chosen.sender;
        let access = AccountAccess {
            credentials: &sender.credentials,
            endpoints: &sending.accounts.endpoints,
            now: sending.clock.now(),
        };
        let adapter = adapter(sender.provider_type);
        let transport = &sending.accounts.transport;
        let (outcome, status_code) = transport.send(adapter, &access, mail).await;
        chosen.pass.end(&outcome);
        account_pause::learn(&sending.accounts, sender, &outcome);
        let message = this.attempt.message_id;
        self.refusals.learn(message, sender, &outcome).await;
        let organization_id = this.attempt.organization_id;
        self.foresight
            .learn(organization_id, sender, &outcome)
            .await;
        let here = self.here(this, status_code.is_some());
        let next_state = retry::decide(&outcome, chosen.standing, &sending.settings, here);
        let recorded = AttemptOutcome {
            attempted: true,
            status_code,
            ..self.not_attempted(this, outcome, next_state, here.now)
        };
        settled(this, recorded)
    }

    /// No account was the matter: the next try begins a new round.
    fn not_called(&self, this: &Try<'_>, reason: String) -> OutcomeRecord {
        let outcome = SendOutcome::Unavailable {
            retry_after: None,
            reason,
        };
        let standing = RetryContext {
            unknowns: this.recipient.unknowns,
            tried_since: this.claim.message.tried_since(),
            on_unknown: OnUnknown::Wait,
            retry_state: this.recipient.retry_state,
            tried: 0,
            candidates: 0,
            passed_over: 0,
        };
        let here = self.here(this, false);
        let next_state = retry::decide(&outcome, standing, &self.sending.settings, here);
        settled(
            this,
            self.not_attempted(this, outcome, next_state, here.now),
        )
    }

    /// The recipient was suppressed after its message was accepted.
    fn dropped(&self, this: &Try<'_>) -> OutcomeRecord {
        let outcome = SendOutcome::Rejected {
            blame: Blame::Recipient,
            reason: suppression::REASON.to_owned(),
        };
        let now = self.here(this, false).now;
        let next_state = retry::suppressed(now, this.recipient.retry_state);
        settled(this, self.not_attempted(this, outcome, next_state, now))
    }

    /// None of its accounts may be called now.
    fn put_off(&self, this: &Try<'_>, refused: &NoAccount) -> OutcomeRecord {
        let (here, settings, why) = (
            self.here(this, false),
            &self.sending.settings,
            refused.why(),
        );
        let next_state = retry::put_off(why, refused.closed.wait, refused.standing, settings, here);
        let outcome = SendOutcome::Unavailable {
            retry_after: None,
            reason: why.to_owned(),
        };
        settled(
            this,
            self.not_attempted(this, outcome, next_state, here.now),
        )
    }

    /// What there is to record where no call was made.
    pub(super) fn not_attempted(
        &self,
        this: &Try<'_>,
        outcome: SendOutcome,
        next_state: NextState,
        now: Timestamp,
    ) -> AttemptOutcome {
        AttemptOutcome {
            attempt: this.attempt,
            attempted: false,
            outcome,
            status_code: None,
            finished_at: now,
            next_state,
            event_id: self.sending.ids.next_at(now),
        }
    }

    pub(super) fn here(&self, this: &Try<'_>, answered: bool) -> RetryMoment {
        RetryMoment {
            // Clocks of different machines may disagree: nothing happens to a message
            // before it was accepted.
            now: self.sending.clock.now().max(this.claim.message.accepted_at),
            fraction: self.sending.ids.fraction(),
            answered,
        }
    }
}

pub(super) fn settled(this: &Try<'_>, outcome: AttemptOutcome) -> OutcomeRecord {
    let mut settlement = OutcomeRecord::of(this.claim);
    settlement.outcome = Some(outcome);
    settlement
}

/// The attempt may be on record, and its call was not made.
pub(super) fn withdrawn(this: &Try<'_>) -> OutcomeRecord {
    let mut settlement = untried(this.claim, this.recipient);
    settlement.withdraw(this.attempt.key());
    settlement
}

pub(super) fn untried(claim: &ClaimedChunk, recipient: &LeasedRecipient) -> OutcomeRecord {
    let mut settlement = OutcomeRecord::of(claim);
    settlement.untried = Some(recipient.position);
    if let Some(unused) = claim
        .prewritten
        .as_ref()
        .and_then(PrewrittenAttempt::unused)
    {
        settlement.withdraw(unused);
    }
    settlement
}
