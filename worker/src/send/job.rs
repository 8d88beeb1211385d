//! Sends the due recipients of one chunk: lease it, admit it, and for each recipient select
//! the account, compose the mail, write the attempt, call the provider, record the outcome.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;
use tracing::debug;
use waypost_core::account_limiter::AccountLimiter;
use waypost_core::clock::Clock;
use waypost_core::config::SendingSettings;
use waypost_core::delivery::attempt::NewAttempt;
use waypost_core::delivery::job::SendJob;
use waypost_core::delivery::lease::LeasedRecipient;
use waypost_core::delivery::retry::RetryContext;
use waypost_core::fault::{Fault, FaultKind};
use waypost_core::ids::{Ids, WorkerId};
use waypost_core::job_queue::{JobEnd, JobSlot};
use waypost_core::message::SimulatedOutcome;
use waypost_core::message::compose::{self, OwnContent};
use waypost_core::message::simulated_outcome::provider_message_id;
use waypost_core::provider::mail::OutgoingMail;
use waypost_core::provider::outcome::SendOutcome;
use waypost_core::provider::{AccountAccess, adapter};
use waypost_core::provider_account::Accounts;
use waypost_core::telemetry::instruments::{self, RunningJobCount};
use waypost_core::telemetry::traces::{self, TraceSpanKind};
use waypost_core::tracking::TrackedRecipient;
use waypost_core::tracking::link::Tracker;
use waypost_core::unsubscribe::link::{LinkContext, Links, ensure_placeholder};
use waypost_core::warn_seldom;

use super::batch_memory::BatchMemory;
use super::contents::{FileMemory, put_own_content};
use super::simulate;
use crate::send::account_pause;
use crate::send::account_prediction::AccountPrediction;
use crate::send::observe::ObservedCall;
use crate::send::quarantine::{Admission, Quarantine};
use crate::send::refusals::Refusals;
use crate::send::select_account::{
    AccountSelection, RateWait, SelectedAccount, Unavailable, select_account,
};
use crate::send::target_caps::TargetCaps;
use crate::store::{LeasedChunk, OutcomeRecord, PrewrittenAttempt, SendStore};
use crate::worker_lease::WorkerLease;

/// The most concurrent calls for one chunk, so that one large send does not use the whole
/// worker.
const CHUNK_CALLS_MAX: usize = 16;
/// Large messages that are sent at the same time.
const LARGE_MESSAGES_MAX: usize = 2;
/// The share of a worker's jobs that may wait for rate limits: one of so many, so that slow
/// accounts do not use the whole worker.
const RATE_WAITERS_SHARE: usize = 4;
/// When a job is retried whose chunk could not be leased because Postgres did not answer.
const LEASE_RETRY_AFTER: Duration = Duration::from_secs(2);

/// Why the chunk of a job could not be leased, for the log of the queue.
pub(crate) type JobError = Box<dyn std::error::Error + Send + Sync>;

/// What sending needs of the worker.
pub(crate) struct Sending {
    pub(crate) store: SendStore,
    pub(crate) account_limiter: AccountLimiter,
    pub(crate) accounts: Accounts,
    pub(crate) target_caps: TargetCaps,
    pub(crate) worker_lease: WorkerLease,
    pub(crate) tracker: Tracker,
    pub(crate) links: Links,
    pub(crate) ids: Ids,
    pub(crate) clock: Clock,
    pub(crate) settings: SendingSettings,
    /// Once it is cancelled, no further call begins.
    pub(crate) shutdown: CancellationToken,
}

/// The handler of [`SendJob`]s. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SendHandler {
    pub(super) sending: Arc<Sending>,
    /// A slot for each job that runs at the same time, from Redis or from the fallback
    /// poller.
    slots: Arc<Semaphore>,
    /// Concurrent calls of jobs beyond their first, which needs no permit.
    extra_calls: Arc<Semaphore>,
    large_messages: Arc<Semaphore>,
    /// Jobs that wait for a rate limit.
    rate_waiters: Arc<Semaphore>,
    quarantine: Arc<Quarantine>,
    prediction: Arc<AccountPrediction>,
    pub(super) refusals: Arc<Refusals>,
    pub(super) batch_memory: BatchMemory,
    pub(super) file_memory: FileMemory,
}

/// The slot of a job that runs. Dropped, it is free for another.
pub(crate) struct SendSlot {
    _permit: OwnedSemaphorePermit,
    _running: RunningJobCount,
    of_queue: Option<JobSlot<SendJob>>,
}

impl SendSlot {
    /// A slot of this worker, and that of the queue if the job is from Redis.
    pub(crate) fn new(permit: OwnedSemaphorePermit, of_queue: Option<JobSlot<SendJob>>) -> Self {
        Self {
            _permit: permit,
            _running: instruments::running_job(),
            of_queue,
        }
    }
}

impl Drop for SendSlot {
    fn drop(&mut self) {
        if let Some(slot) = &self.of_queue {
            slot.free();
        }
    }
}

/// An attempt for one recipient of a chunk.
pub(super) struct RecipientAttempt<'a> {
    pub(super) chunk: &'a LeasedChunk,
    pub(super) recipient: &'a LeasedRecipient,
    pub(super) row: NewAttempt,
    /// Set if `row` is the attempt that was written with the lease.
    prewritten: Option<&'a PrewrittenAttempt>,
}

impl RecipientAttempt<'_> {
    /// Its recipient, as the tokens of its pixel and its links name it.
    pub(super) fn tracked(&self) -> TrackedRecipient {
        TrackedRecipient {
            organization_id: self.row.organization_id,
            message_id: self.row.message_id,
            position: self.row.position,
            issued_at: self.row.started_at,
        }
    }
}

impl SendHandler {
    pub(crate) fn new(sending: Arc<Sending>) -> Self {
        let concurrency = sending.settings.concurrency;
        let semaphore = |permits: usize| Arc::new(Semaphore::new(permits));
        let quarantine = Quarantine::new(
            sending.accounts.pool.clone(),
            sending.worker_lease.clone(),
            sending.ids.clone(),
            sending.clock.clone(),
            sending.settings.clone(),
        );
        Self {
            slots: semaphore(concurrency),
            extra_calls: semaphore(concurrency),
            large_messages: semaphore(LARGE_MESSAGES_MAX),
            rate_waiters: semaphore((concurrency / RATE_WAITERS_SHARE).max(1)),
            quarantine: Arc::new(quarantine),
            prediction: Arc::new(AccountPrediction::new(sending.ids.clone())),
            refusals: Arc::new(Refusals::new()),
            batch_memory: BatchMemory::default(),
            file_memory: FileMemory::default(),
            sending,
        }
    }

    /// The slots for jobs. The fallback poller acquires them itself.
    pub(crate) fn slots(&self) -> &Arc<Semaphore> {
        &self.slots
    }

    /// Runs one job, as soon as a slot is free.
    pub(crate) async fn run(
        &self,
        job: SendJob,
        slot: JobSlot<SendJob>,
    ) -> Result<JobEnd, JobError> {
        let permit = Arc::clone(&self.slots).acquire_owned().await?;
        self.run_in_slot(job, SendSlot::new(permit, Some(slot)))
            .await
    }

    /// Runs one job in a slot. The queue retries a job only if its chunk
    /// could not be leased, or if its handler panicked. Otherwise Postgres knows when the
    /// chunk is due again.
    pub(crate) async fn run_in_slot(
        &self,
        job: SendJob,
        slot: SendSlot,
    ) -> Result<JobEnd, JobError> {
        let request = self.prediction.request(job).await;
        let chunk = match self.sending.store.lease(request).await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return Ok(JobEnd::Done),
            Err(fault) if fault.kind() == FaultKind::Unavailable => {
                debug!(cause = fault.chain(), "A job waits for Postgres");
                return Ok(JobEnd::Snooze(LEASE_RETRY_AFTER));
            }
            Err(fault) => return Err(fault.chain().into()),
        };
        // The admission is held until the chunk is done: it isolates a quarantined chunk.
        let admission = self.quarantine.admit(&chunk).await;
        match admission {
            Admission::Unrestricted | Admission::Isolated { .. } => {
                Ok(self.send_catching_panics(chunk, slot).await)
            }
            Admission::Postponed => {
                self.give_back(&chunk).await;
                Ok(JobEnd::Done)
            }
        }
    }

    async fn send_catching_panics(&self, chunk: LeasedChunk, slot: SendSlot) -> JobEnd {
        let (worker, job, prewritten) = (chunk.worker, chunk.job, chunk.prewritten.clone());
        let kind = TraceSpanKind::Consumer;
        let mut span = traces::message_span("send message", kind, chunk.message.trace);
        if span.context().is_some() {
            span.set("waypost.message.id", job.message_id.to_string());
        }
        let sent = traces::in_span(span.context(), self.send_chunk(chunk, slot));
        match AssertUnwindSafe(sent).catch_unwind().await {
            Ok(()) => JobEnd::Done,
            Err(panic) => {
                let unused = prewritten.and_then(|prewritten| prewritten.unused());
                let end = self.quarantine.panicked(worker, job, unused, panic).await;
                self.sending.store.release(worker, job);
                end
            }
        }
    }

    /// Gives back a chunk without having tried its recipients.
    async fn give_back(&self, chunk: &LeasedChunk) {
        let store = &self.sending.store;
        let recipients = chunk.recipients.iter();
        let all = recipients.map(|recipient| store.record(chunk.untried(recipient)));
        if join_all(all).await.into_iter().all(|recorded| recorded) {
            let mut record = OutcomeRecord::of(chunk);
            record.ends_lease = true;
            record.has_untried = true;
            store.record(record).await;
        }
    }

    /// Sends to the recipients of a chunk and ends its lease. If an outcome cannot be
    /// recorded, the lease is left to the reaper.
    async fn send_chunk(&self, mut chunk: LeasedChunk, slot: SendSlot) {
        let mut is_large = chunk.message.body_left_out;
        if chunk.message.has_recipient_contents {
            match self.load_own_contents(&mut chunk).await {
                Ok(is_left_out) => is_large |= is_left_out,
                Err(fault) => return self.abandon(&chunk, &fault).await,
            }
        }
        // Few large messages at a time, and one recipient of each at a time: each mail is a
        // copy of the body in memory.
        let _permit = if is_large {
            Some(self.large_messages.acquire().await)
        } else {
            None
        };
        if let Err(fault) = self.prepare(&mut chunk).await {
            return self.abandon(&chunk, &fault).await;
        }
        if chunk.message.content.is_shared && chunk.message.recipient_count > 1 {
            return self.send_shared(&chunk).await;
        }
        match chunk.recipients.as_slice() {
            [recipient] => self.send_to_one(&chunk, recipient, slot).await,
            _ => self.send_to_many(&chunk, is_large).await,
        }
    }

    /// Completes the message of a chunk: its body, if it was left out, the placeholder of
    /// the unsubscribe link, and the plan of what is tracked.
    async fn prepare(&self, chunk: &mut LeasedChunk) -> Result<(), Fault> {
        if chunk.message.body_left_out {
            self.load_body(chunk).await?;
        }
        let is_test = chunk.message.test_outcome.is_some();
        if !chunk.message.content.attachments.is_empty() && !is_test {
            self.load_files(chunk).await?;
        }
        if chunk.message.content.unsubscribe_group_id.is_some() {
            ensure_placeholder(&mut Arc::make_mut(&mut chunk.message).content.html);
        }
        let content = &chunk.message.content;
        let html = content.html.as_deref();
        chunk.plan = self.sending.tracker.plan(html, content.tracking);
        Ok(())
    }

    /// Leaves a chunk whose body or files could not be read: it is retried once Postgres answers, or
    /// left to the reaper if Postgres refused.
    async fn abandon(&self, chunk: &LeasedChunk, fault: &Fault) {
        warn_seldom!(cause = fault.chain(), "A message could not be read");
        match fault.kind() {
            FaultKind::Unavailable => self.give_back(chunk).await,
            FaultKind::Internal => self.sending.worker_lease.invalidate(chunk.worker),
        }
    }

    /// Sends to the only recipient of a chunk, and ends its lease with the same record. The
    /// slot is free as soon as the call is answered.
    async fn send_to_one(&self, chunk: &LeasedChunk, recipient: &LeasedRecipient, slot: SendSlot) {
        let mut record = self.send(chunk, recipient).await;
        drop(slot);
        if let Some(unused) = chunk.unused_attempt() {
            self.prediction.forget(chunk.job.organization_id).await;
            record.withdraw(unused);
        }
        record.ends_lease = true;
        record.has_untried = record.untried.is_some();
        self.sending.store.record(record).await;
    }

    /// Permits for concurrent calls beyond a chunk's first: at most half of those that are
    /// free now. No job waits for them, so the calls of a large send whose provider hangs do
    /// not delay a job with one recipient.
    pub(super) fn extra_calls(&self, recipients: usize) -> Option<SemaphorePermit<'_>> {
        let free = self.extra_calls.available_permits().div_ceil(2);
        let wanted = recipients.min(CHUNK_CALLS_MAX).saturating_sub(1).min(free);
        let wanted = u32::try_from(wanted).ok()?;
        self.extra_calls.try_acquire_many(wanted).ok()
    }

    /// Sends to one recipient and returns what is to be recorded. The mail is composed only
    /// after an account was selected, so the number of calls limits the memory.
    pub(super) async fn send(
        &self,
        chunk: &LeasedChunk,
        recipient: &LeasedRecipient,
    ) -> OutcomeRecord {
        let uncalled = || self.new_attempt(chunk, recipient);
        match self.select_account(chunk, recipient).await {
            Ok(Some(AccountSelection::Selected(selected))) => {
                self.send_through(chunk, recipient, *selected).await
            }
            Ok(Some(AccountSelection::Unavailable(unavailable))) => {
                self.put_off(&uncalled(), &unavailable)
            }
            Ok(Some(AccountSelection::NoAccount(reason))) => self.not_called(&uncalled(), reason),
            Ok(None) => chunk.untried(recipient),
            Err(fault) => self.unprepared(&uncalled(), &fault),
        }
    }

    /// Sends to one recipient through the selected account.
    pub(super) async fn send_through(
        &self,
        chunk: &LeasedChunk,
        recipient: &LeasedRecipient,
        selected: SelectedAccount,
    ) -> OutcomeRecord {
        let mut attempt = self.new_attempt(chunk, recipient);
        let account = selected.account.id;
        attempt.row.provider_account_id = account;
        if let Some(prewritten) = &chunk.prewritten
            && prewritten.is_usable(account, attempt.row.started_at)
        {
            attempt.row = prewritten.attempt;
            attempt.prewritten = Some(prewritten);
        }
        let composed = match self.own_content(chunk, recipient).await {
            Ok(own) => self.compose(&attempt, own),
            Err(fault) => Err(fault),
        };
        let mail = match composed {
            Ok(mail) => mail,
            Err(fault) => return self.unprepared(&self.new_attempt(chunk, recipient), &fault),
        };
        match self.write_attempt(&attempt).await {
            None => self.call(&attempt, selected, &mail).await,
            Some(record) => record,
        }
    }

    /// Selects the account for a recipient, and waits for a rate limit if that does not
    /// take long. `None` if no call may begin any more.
    pub(super) async fn select_account(
        &self,
        chunk: &LeasedChunk,
        recipient: &LeasedRecipient,
    ) -> Result<Option<AccountSelection>, Fault> {
        let mut rate_wait = RateWait::new();
        while self.may_begin(chunk.worker) {
            let (sending, refusals) = (&self.sending, &self.refusals);
            let selection = select_account(sending, refusals, &chunk.message, recipient).await?;
            if let AccountSelection::Unavailable(unavailable) = &selection
                && self.wait_for_rate(unavailable, &mut rate_wait).await
            {
                continue;
            }
            return Ok(Some(selection));
        }
        Ok(None)
    }

    /// Whether a call may begin: not during shutdown, and not if the worker's lease could
    /// end before the call.
    pub(super) fn may_begin(&self, worker: WorkerId) -> bool {
        !self.sending.shutdown.is_cancelled() && self.sending.worker_lease.may_call(worker)
    }

    /// Waits for an account's rate limit. False without a wait if the reason is another, if
    /// it would take too long, or if enough jobs wait already.
    pub(super) async fn wait_for_rate(
        &self,
        unavailable: &Unavailable,
        rate_wait: &mut RateWait,
    ) -> bool {
        if !unavailable.is_rate() {
            return false;
        }
        let Some(wait) = rate_wait.take(unavailable.blocked.wait) else {
            return false;
        };
        let Ok(_permit) = self.rate_waiters.try_acquire() else {
            return false;
        };
        // At shutdown the caller ends its loop.
        let sleep = tokio::time::sleep(wait);
        let _ = self.sending.shutdown.run_until_cancelled(sleep).await;
        true
    }

    /// A new attempt, through the account that was resolved at acceptance.
    pub(super) fn new_attempt<'a>(
        &self,
        chunk: &'a LeasedChunk,
        recipient: &'a LeasedRecipient,
    ) -> RecipientAttempt<'a> {
        let sending = &self.sending;
        let content = &chunk.message.content;
        let row = NewAttempt {
            id: sending.ids.next(),
            message_id: content.id,
            organization_id: content.organization_id,
            position: recipient.position,
            address_hash: recipient.address_hash,
            provider_account_id: chunk.message.provider_account_id,
            started_at: sending.clock.now(),
            expires_at: chunk.message.expires_at,
        };
        RecipientAttempt {
            chunk,
            recipient,
            row,
            prewritten: None,
        }
    }

    /// The mail of an attempt, with tracking and unsubscribe links.
    pub(super) fn compose(
        &self,
        attempt: &RecipientAttempt<'_>,
        own: Option<OwnContent>,
    ) -> Result<OutgoingMail, Fault> {
        let (chunk, recipient, row) = (attempt.chunk, attempt.recipient, &attempt.row);
        let content = &chunk.message.content;
        let sealer = &self.sending.accounts.sealer;
        let mut mail = compose::compose(
            content,
            recipient.position,
            &recipient.address_sealed,
            row.id,
            sealer,
        )?;
        mail.attachments.clone_from(&chunk.attachments);
        let has_link = content.unsubscribe_group_id.is_some();
        let is_other = own.is_some_and(|own| put_own_content(&mut mail, own, has_link));
        let tracker = &self.sending.tracker;
        let own_plan = is_other.then(|| tracker.plan(mail.html.as_deref(), content.tracking));
        let plan = own_plan.as_ref().unwrap_or(&chunk.plan);
        tracker.add_to(&mut mail, plan, attempt.tracked());
        if let Some(unsubscribe_group_id) = content.unsubscribe_group_id {
            let link = LinkContext {
                organization_id: content.organization_id,
                unsubscribe_group_id,
                at: row.started_at,
            };
            self.sending.links.add_to(&mut mail, link);
        }
        Ok(mail)
    }

    /// Writes an attempt before its call. If the call must not be made, returns what is to
    /// be recorded instead.
    pub(super) async fn write_attempt(
        &self,
        attempt: &RecipientAttempt<'_>,
    ) -> Option<OutcomeRecord> {
        let sending = &self.sending;
        let worker = attempt.chunk.worker;
        if self.is_expired(attempt) {
            return Some(self.expired(attempt));
        }
        if attempt.chunk.message.test_outcome == Some(SimulatedOutcome::Suppressed) {
            return Some(self.suppressed(attempt));
        }
        if let Some(prewritten) = attempt.prewritten {
            if !sending.worker_lease.may_call(worker) {
                return Some(attempt.withdrawn());
            }
            prewritten.mark_called();
            return None;
        }
        match sending.store.insert_attempt(worker, attempt.row).await {
            // Asked again, because the insert may have taken long.
            Ok(true) if self.is_expired(attempt) => Some(self.expired(attempt)),
            Ok(true) if sending.worker_lease.may_call(worker) => None,
            Ok(true) => Some(attempt.withdrawn()),
            Ok(false) if self.is_about_to_expire(attempt) => Some(self.expired(attempt)),
            Ok(false) => Some(self.suppressed(attempt)),
            Err(fault) => {
                let cause = fault.chain();
                warn_seldom!(
                    cause,
                    "An attempt could not be recorded; its call is not made"
                );
                Some(attempt.withdrawn())
            }
        }
    }

    /// Makes the call of a written attempt, and returns what is to be recorded.
    async fn call(
        &self,
        attempt: &RecipientAttempt<'_>,
        mut selected: SelectedAccount,
        mail: &OutgoingMail,
    ) -> OutcomeRecord {
        if let Some((outcome, status_code)) = self.simulated(attempt, selected.ctx) {
            let moment = self.moment(attempt.chunk, status_code.is_some());
            return self.decide(attempt, outcome, status_code, selected.ctx, moment);
        }
        selected.spend(1);
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
        let (outcome, status_code) = transport.send(adapter, &access, mail).await;
        observed.end(status_code, [&outcome]);
        if let Some(permit) = selected.permit {
            permit.end(&outcome);
        }
        account_pause::learn(&sending.accounts, account, &outcome);
        let message_id = attempt.row.message_id;
        self.refusals.learn(message_id, account, &outcome).await;
        let organization_id = attempt.row.organization_id;
        self.prediction
            .learn(organization_id, account, &outcome)
            .await;
        let moment = self.moment(attempt.chunk, status_code.is_some());
        self.decide(attempt, outcome, status_code, selected.ctx, moment)
    }

    /// The answer to the call of a test, with its status code; `None` for a live message.
    pub(super) fn simulated(
        &self,
        attempt: &RecipientAttempt<'_>,
        ctx: RetryContext,
    ) -> Option<(SendOutcome, Option<u16>)> {
        let test_outcome = attempt.chunk.message.test_outcome?;
        let id = provider_message_id(attempt.row.id.0);
        Some(simulate::answer(test_outcome, ctx, id))
    }
}
