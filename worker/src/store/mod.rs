//! The ledger: what the jobs of this worker write into Postgres, shared between
//! them. Claims, attempts and outcomes of many jobs go into one transaction each,
//! because statements and commits per message are what bounds sending.

mod leased_chunk;
mod sending_status;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tracing::error;
use waypost_core::audit::Origin;
use waypost_core::batcher::{Batcher, BatcherSettings, Cooldown};
use waypost_core::clock::Clock;
use waypost_core::config::SendingSettings;
use waypost_core::db::lifo_pool::WarmPool;
use waypost_core::db::{self, OrFault, PgConnection, PgPool};
use waypost_core::delivery::attempt::{self, AttemptKey, NewAttempt};
use waypost_core::delivery::dead_letter;
use waypost_core::delivery::job::SendJob;
use waypost_core::delivery::lease::{self, LeaseRequest, LeasedChunk, LeasedMessage, Rescheduled};
use waypost_core::delivery::outcome::{self, AttemptOutcome, SentRecord};
use waypost_core::fault::{Fault, FaultKind};
use waypost_core::ids::{MessageId, OrganizationId, SendAttemptId, WorkerId};
use waypost_core::job_queue::Queue;
use waypost_core::message::store::refresh_aggregates;
use waypost_core::suppression::Suppressions;
use waypost_core::suppression::feedback::{
    AddedSuppressions, ReportedAddress, ReportedSuppression,
};
use waypost_core::tracking::link::TrackingPlan;
use waypost_core::warn_seldom;

use crate::worker_lease::WorkerLease;
pub(crate) use leased_chunk::{ClaimedChunk, OutcomeRecord, PrewrittenAttempt};

/// How often a transaction that loses to another is tried.
const DEADLOCK_TRIES: u32 = 4;
/// Transactions of one kind under way at once.
const LANES: usize = 2;
/// Connections of their own, so that nothing else keeps them waiting, nor they each
/// other: three kinds, and what is shown. Few, because each has to learn all tables.
pub(crate) const CONNECTIONS: u32 = 3 * LANES as u32 + 1;
/// Entries with which another transaction begins beside one that is under way.
const CROWD: usize = 64;
/// Jobs, attempts or outcomes in one transaction, roughly.
const GROUP_MAX: usize = 200;
/// The longest rest of a kind. With 30 ms instead of 10, four workers and two APIs on two
/// processors delivered a quarter more (`make bench ONLY=processes`, three runs and two,
/// one after the other).
const LONGEST_REST: Duration = Duration::from_millis(30);
/// Transactions of claims and attempts that take no longer are no sign that processors are
/// short, and mails wait for them: at 2,000 sends a second on two processors half arrived
/// within 7 ms instead of 17 when all kinds always rested (`make bench ONLY=latency`, three
/// runs each, one after the other; with 4 ms p99 was 43 instead of 26). No mail waits for
/// settlements, which always rest.
const QUICK: Duration = Duration::from_millis(8);
/// Entries that may wait for a transaction.
const WAITING_MAX: usize = 4_096;
/// The waits between tries to record an outcome while Postgres is away.
const RECORD_AGAIN_FIRST: Duration = Duration::from_millis(100);
const RECORD_AGAIN_LONGEST: Duration = Duration::from_secs(5);

/// The claims of this process of which not all is recorded yet. A settlement is tried
/// until it is recorded, also when its commit was only not heard of; if its chunk were
/// claimed again meanwhile, by the same worker, it would end that claim's lease.
type HeldLeases = Arc<Mutex<HashMap<(WorkerId, SendJob), HeldLease>>>;

/// A claim in hand.
struct HeldLease {
    since: Instant,
    /// Whether its message has no other recipient.
    is_single: bool,
    /// Whether its message shows that it is being sent.
    shown: bool,
}

/// Shared writing. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SendStore {
    claims: Batcher<LeaseRequest, Option<ClaimedChunk>>,
    attempts: Batcher<(WorkerId, NewAttempt), bool>,
    settlements: Batcher<OutcomeRecord, ()>,
    tenures: WorkerLease,
    in_hand: HeldLeases,
}

impl SendStore {
    pub(crate) fn start(
        pool: PgPool,
        queue: Queue<SendJob>,
        tenures: WorkerLease,
        clock: Clock,
        settings: SendingSettings,
        suppressions: Suppressions,
    ) -> Self {
        let group = BatcherSettings {
            flushes_max: LANES,
            batch_weight_max: GROUP_MAX,
            batch_min: CROWD,
            queue_max: WAITING_MAX,
            cooldown: Cooldown {
                unless: QUICK,
                longest: LONGEST_REST,
            },
        };
        let resting = BatcherSettings {
            cooldown: Cooldown {
                unless: Duration::ZERO,
                ..group.cooldown
            },
            ..group
        };
        let in_hand = HeldLeases::default();
        let writer = Arc::new(StoreWriter {
            in_hand: Arc::clone(&in_hand),
            pool: WarmPool::new(pool),
            suppressions,
            queue,
            tenures: tenures.clone(),
            clock,
            settings,
        });
        tokio::spawn(sending_status::keep(Arc::downgrade(&writer)));
        let (claims, attempts, settlements) = (Arc::clone(&writer), Arc::clone(&writer), writer);
        Self {
            claims: Batcher::start("claims", group, move |wanted| {
                let writer = Arc::clone(&claims);
                async move { writer.claim(wanted).await }
            }),
            attempts: Batcher::start("send_attempts", group, move |items| {
                let writer = Arc::clone(&attempts);
                async move { writer.begin_attempts(items).await }
            }),
            settlements: Batcher::start("settlements", resting, move |items| {
                let writer = Arc::clone(&settlements);
                async move { writer.settle(items).await }
            }),
            tenures,
            in_hand,
        }
    }

    /// Nothing of a claim is left to be recorded: its chunk may be claimed again.
    pub(crate) fn let_go(&self, worker: WorkerId, job: SendJob) {
        lock(&self.in_hand).remove(&(worker, job));
    }

    /// Leases a job's chunk. Nothing where another holds it, or it is done, or
    /// none of its recipients is due.
    pub(crate) async fn claim(&self, wanted: LeaseRequest) -> Result<Option<ClaimedChunk>, Fault> {
        self.claims.run(wanted, 1).await
    }

    /// Writes an attempt before its call. False where the recipient is suppressed:
    /// there is no attempt then, and there must be no call.
    pub(crate) async fn begin_attempt(
        &self,
        worker: WorkerId,
        attempt: NewAttempt,
    ) -> Result<bool, Fault> {
        self.attempts.run((worker, attempt), 1).await
    }

    /// Records a settlement, however long Postgres is away, and says whether it
    /// did. What cannot be recorded for another reason is left to the reaper: the
    /// tenure is given up, and the chunk must not be finished.
    pub(crate) async fn settle(&self, settlement: OutcomeRecord) -> bool {
        let worker = settlement.worker;
        let mut wait = RECORD_AGAIN_FIRST;
        loop {
            match self.settlements.run(settlement.clone(), 1).await {
                Ok(()) => return true,
                Err(fault) if fault.kind() == FaultKind::Unavailable => {
                    let cause = fault.chain();
                    warn_seldom!(cause, "An outcome could not be recorded yet");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(RECORD_AGAIN_LONGEST);
                }
                Err(fault) => {
                    error!(cause = fault.chain(), "An outcome could not be recorded");
                    self.tenures.give_up(worker);
                    return false;
                }
            }
        }
    }
}

fn lock(in_hand: &HeldLeases) -> MutexGuard<'_, HashMap<(WorkerId, SendJob), HeldLease>> {
    in_hand.lock().unwrap_or_else(PoisonError::into_inner)
}

struct StoreWriter {
    in_hand: HeldLeases,
    pool: WarmPool,
    suppressions: Suppressions,
    queue: Queue<SendJob>,
    tenures: WorkerLease,
    clock: Clock,
    settings: SendingSettings,
}

impl StoreWriter {
    async fn claim(&self, wanted: Vec<LeaseRequest>) -> Vec<Result<Option<ClaimedChunk>, Fault>> {
        let jobs: Vec<SendJob> = wanted.iter().map(|wanted| wanted.job).collect();
        match self.try_claim(wanted).await {
            // A job that comes twice in one group gets the claim once.
            Ok(mut claims) => jobs.iter().map(|job| Ok(claims.remove(job))).collect(),
            Err(fault) => jobs.iter().map(|_| Err(fault.clone())).collect(),
        }
    }

    async fn try_claim(
        &self,
        mut wanted: Vec<LeaseRequest>,
    ) -> Result<HashMap<SendJob, ClaimedChunk>, Fault> {
        let no_tenure = || Fault::unavailable(LEASE, "this worker's tenure has ended");
        let worker = self.tenures.current().ok_or_else(no_tenure)?;
        wanted.sort_unstable_by_key(|wanted| wanted.job);
        wanted.dedup_by_key(|wanted| wanted.job);
        {
            let mut in_hand = lock(&self.in_hand);
            // What earlier tenures held is the reaper's.
            in_hand.retain(|(holder, _), _| *holder == worker);
            wanted.retain(|wanted| !in_hand.contains_key(&(worker, wanted.job)));
        }
        match self.claim_for(worker, &wanted).await {
            Ok((claims, unused)) => {
                self.withdraw(unused);
                Ok(claims)
            }
            Err(fault) => {
                // They may be on record all the same, or come on record late.
                let predicted = wanted.iter().filter_map(|wanted| {
                    let attempt_id = wanted.predicted?.attempt_id;
                    Some((wanted.job.message_id, attempt_id))
                });
                self.withdraw(predicted.collect());
                Err(fault)
            }
        }
    }

    /// Claims, and the attempts that are on record and will not be called.
    async fn claim_for(
        &self,
        worker: WorkerId,
        wanted: &[LeaseRequest],
    ) -> Result<(HashMap<SendJob, ClaimedChunk>, Vec<AttemptKey>), Fault> {
        let leased = again_after_deadlocks(|| self.lease(worker, wanted), LEASE).await;
        if leased.as_ref().is_err_and(|fault| !db::is_deadlock(fault)) {
            // It may have been committed all the same, and then this worker holds
            // leases that none of its jobs knows of.
            self.tenures.give_up(worker);
        }
        let (chunks, messages) = leased?;
        let (busy, idle): (Vec<_>, Vec<_>) = chunks
            .into_iter()
            .partition(|chunk| !chunk.recipients.is_empty());
        let (busy, orphans): (Vec<_>, Vec<_>) = busy
            .into_iter()
            .partition(|chunk| messages.contains_key(&chunk.job.message_id));
        if !idle.is_empty() || !orphans.is_empty() {
            let give_back =
                || self.give_back(worker, idle.iter().collect(), orphans.iter().collect());
            let given_back = again_after_deadlocks(give_back, LEASE).await;
            if given_back.is_err() {
                // They are leased, and so are the others of which no job will hear.
                self.tenures.give_up(worker);
            }
            self.push_again(given_back?);
        }
        Ok(self.claims(worker, busy, messages))
    }

    async fn lease(&self, worker: WorkerId, wanted: &[LeaseRequest]) -> Result<Leased, Fault> {
        let now = self.clock.now();
        let lease = async |connection: &mut PgConnection| {
            lease::lease(connection, worker, wanted, now).await
        };
        self.pool.run(LEASE, lease).await
    }

    /// Ends the leases of chunks with nothing to do now, and parks those without a
    /// message. Answers the ones of which something is due later.
    async fn give_back(
        &self,
        worker: WorkerId,
        mut idle: Vec<&LeasedChunk>,
        mut orphans: Vec<&LeasedChunk>,
    ) -> Result<Vec<Rescheduled>, Fault> {
        let mut transaction = self.pool.begin(LEASE).await?;
        let leases = idle.iter().chain(&orphans).map(|chunk| (worker, chunk.job));
        let held = lease::hold(&mut transaction, &leases.collect::<Vec<_>>()).await?;
        idle.retain(|chunk| held.contains(&(worker, chunk.job)));
        orphans.retain(|chunk| held.contains(&(worker, chunk.job)));
        let idle: Vec<SendJob> = idle.iter().map(|chunk| chunk.job).collect();
        let grace = self.settings.relay_grace;
        let left = lease::finish(&mut transaction, worker, &idle, grace).await?;
        dead_letter::park_orphans(&mut transaction, &orphans, self.clock.now()).await?;
        transaction.commit().await.or_fault(LEASE)?;
        Ok(left)
    }

    fn claims(
        &self,
        worker: WorkerId,
        chunks: Vec<LeasedChunk>,
        messages: HashMap<MessageId, LeasedMessage>,
    ) -> (HashMap<SendJob, ClaimedChunk>, Vec<AttemptKey>) {
        let now = self.clock.now();
        let mut unused = Vec::new();
        let messages: HashMap<MessageId, Arc<LeasedMessage>> = messages
            .into_iter()
            .map(|(id, message)| (id, Arc::new(message)))
            .collect();
        let mut claims = HashMap::with_capacity(chunks.len());
        for chunk in chunks {
            let prewritten = chunk
                .prewritten
                .map(|attempt| PrewrittenAttempt::new(attempt, now));
            let on_record = prewritten.as_ref().and_then(PrewrittenAttempt::unused);
            let Some(message) = messages.get(&chunk.job.message_id) else {
                error!(message.id = %chunk.job.message_id, "A leased message has no row");
                self.tenures.give_up(worker);
                unused.extend(on_record);
                continue;
            };
            let claim = ClaimedChunk {
                worker,
                job: chunk.job,
                message: Arc::clone(message),
                recipients: chunk.recipients,
                losses: chunk.losses,
                plan: TrackingPlan::default(),
                prewritten,
            };
            let held = HeldLease {
                since: Instant::now(),
                is_single: claim.message.recipient_count == 1,
                shown: false,
            };
            // Should Postgres have lost a lease when it fell over, two of the same may
            // have been claimed: nobody then sends the second.
            if lock(&self.in_hand)
                .insert((worker, chunk.job), held)
                .is_some()
            {
                self.tenures.give_up(worker);
                unused.extend(on_record);
                continue;
            }
            claims.insert(chunk.job, claim);
        }
        (claims, unused)
    }

    /// Takes attempts back of which no job will hear, and keeps at it until the lease has
    /// ended: the statement that writes them may be under way still.
    fn withdraw(&self, attempts: Vec<AttemptKey>) {
        if attempts.is_empty() {
            return;
        }
        let pool = self.suppressions.pool.clone();
        let until = Instant::now() + self.settings.lease;
        tokio::spawn(async move {
            const DOING: &str = "withdraw attempts of lost claims";
            let mut wait = RECORD_AGAIN_FIRST;
            while Instant::now() < until {
                let withdrawing = db::bounded(DOING, async {
                    let mut connection = pool.acquire().await.or_fault(DOING)?;
                    attempt::withdraw(&mut connection, &attempts).await
                });
                if let Err(fault) = withdrawing.await {
                    let cause = fault.chain();
                    warn_seldom!(cause, "Attempts of lost claims could not be withdrawn yet");
                }
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(RECORD_AGAIN_LONGEST);
            }
        });
    }

    async fn begin_attempts(
        &self,
        attempts: Vec<(WorkerId, NewAttempt)>,
    ) -> Vec<Result<bool, Fault>> {
        let doing = "record send attempts";
        let insert =
            async |connection: &mut PgConnection| attempt::insert(connection, &attempts).await;
        match db::bounded(doing, self.pool.run(doing, insert)).await {
            Ok(written) => attempts
                .iter()
                .map(|(_, attempt)| Ok(written.contains(&attempt.id)))
                .collect(),
            Err(fault) => {
                // They may come on record late, and nobody calls.
                self.withdraw(attempts.iter().map(|(_, one)| one.key()).collect());
                attempts.iter().map(|_| Err(fault.clone())).collect()
            }
        }
    }

    async fn settle(&self, settlements: Vec<OutcomeRecord>) -> Vec<Result<(), Fault>> {
        match self.try_settle(&settlements).await {
            Ok(()) => settlements.iter().map(|_| Ok(())).collect(),
            // Find the one that Postgres refuses, so that its neighbours do not
            // pay for it.
            Err(fault) if fault.kind() == FaultKind::Internal && settlements.len() > 1 => {
                let mut results = Vec::with_capacity(settlements.len());
                for settlement in &settlements {
                    results.push(self.try_settle(std::slice::from_ref(settlement)).await);
                }
                results
            }
            Err(fault) => settlements.iter().map(|_| Err(fault.clone())).collect(),
        }
    }

    async fn try_settle(&self, settlements: &[OutcomeRecord]) -> Result<(), Fault> {
        let recorded = again_after_deadlocks(|| self.record_sent(settlements), RECORD).await?;
        // Before anything is pushed again: who gets it may claim it at once.
        let let_go = || {
            for settlement in settlements.iter().filter(|settlement| settlement.finished) {
                lock(&self.in_hand).remove(&(settlement.worker, settlement.job));
            }
        };
        let is_left = |settlement: &&OutcomeRecord| {
            let outcome = settlement.outcome.as_ref();
            outcome.is_none_or(|outcome| !recorded.contains(&outcome.attempt.id))
        };
        let unrecorded: Vec<&OutcomeRecord> = settlements.iter().filter(is_left).collect();
        if unrecorded.is_empty() {
            let_go();
            return Ok(());
        }
        let left = again_after_deadlocks(|| self.record(&unrecorded), RECORD).await?;
        let_go();
        let now = self.clock.now();
        let at_once = |left: &Rescheduled| {
            let mut own = unrecorded
                .iter()
                .filter(|s| s.finished && s.job == left.job);
            left.due_at <= now && own.all(|s| !s.no_hurry)
        };
        let (due, later) = left.into_iter().partition(at_once);
        self.push_now(due);
        self.push_again(later);
        Ok(())
    }

    /// Records what most settlements say; answers the attempts of which nothing is left
    /// to be recorded.
    async fn record_sent(
        &self,
        settlements: &[OutcomeRecord],
    ) -> Result<HashSet<SendAttemptId>, Fault> {
        let mut seen = HashSet::with_capacity(settlements.len());
        let sent = settlements.iter().filter_map(|settlement| {
            let sent = settlement.sent()?;
            seen.insert(settlement.job.message_id).then_some(sent)
        });
        let mut sent: Vec<SentRecord<'_>> = sent.collect();
        if sent.is_empty() {
            return Ok(HashSet::new());
        }
        sent.sort_unstable_by_key(SentRecord::message_id);
        let record =
            async |connection: &mut PgConnection| outcome::record_sent(connection, &sent).await;
        self.pool.run(RECORD, record).await
    }

    /// What a settlement says counts only while its lease is held; that a provider
    /// took a mail counts always.
    async fn record(&self, settlements: &[&OutcomeRecord]) -> Result<Vec<Rescheduled>, Fault> {
        let now = self.clock.now();
        self.expect_bounced(settlements).await?;
        let mut transaction = self.pool.begin(RECORD).await?;
        let leases: Vec<_> = settlements.iter().map(|s| (s.worker, s.job)).collect();
        let held = lease::hold(&mut transaction, &leases).await?;
        let holds =
            |settlement: &&OutcomeRecord| held.contains(&(settlement.worker, settlement.job));
        let counts = |s: &&&OutcomeRecord| {
            holds(s) || s.outcome.as_ref().is_some_and(AttemptOutcome::is_accepted)
        };
        let counted: Vec<&OutcomeRecord> = settlements.iter().filter(counts).copied().collect();
        let outcomes = counted.iter().filter_map(|s| s.outcome.clone());
        let mut outcomes: Vec<AttemptOutcome> = outcomes.collect();
        // In the order in which others lock them too.
        outcomes.sort_by_key(|o| (o.attempt.message_id, o.attempt.position));
        let without_mailbox = outcome::record(&mut transaction, &outcomes).await?;
        let still = settlements.iter().copied().filter(holds);
        let still: Vec<&OutcomeRecord> = still.collect();
        // That a call was not made is true whoever holds the lease.
        let withdrawn = settlements.iter().flat_map(|s| &s.withdrawn);
        let withdrawn: Vec<AttemptKey> = withdrawn.copied().collect();
        attempt::withdraw(&mut transaction, &withdrawn).await?;
        let untried: Vec<(MessageId, i32)> = still
            .iter()
            .filter_map(|s| Some((s.job.message_id, s.untried?)))
            .collect();
        lease::put_back(&mut transaction, &untried, now).await?;
        let mut left = Vec::new();
        for (worker, jobs) in finished_by_worker(&still) {
            let grace = self.settings.relay_grace;
            left.extend(lease::finish(&mut transaction, worker, &jobs, grace).await?);
        }
        // Of the others nothing was changed, and somebody else may be about to.
        let messages: Vec<MessageId> = counted.iter().map(|s| s.job.message_id).collect();
        refresh_aggregates(&mut transaction, &messages).await?;
        let added = self.suppress(&mut transaction, without_mailbox).await?;
        transaction.commit().await.or_fault(RECORD)?;
        self.suppressions.confirm_feedback(&added).await;
        Ok(left)
    }

    async fn expect_bounced(&self, settlements: &[&OutcomeRecord]) -> Result<(), Fault> {
        let outcomes = settlements.iter().filter_map(|s| s.outcome.as_ref());
        let bounced = outcomes.filter_map(AttemptOutcome::bounced);
        let suspects = bounced.map(|(organization_id, told)| (organization_id, told.email_hash));
        self.suppressions
            .announce_feedback(&suspects.collect::<Vec<_>>())
            .await
    }

    /// Suppresses addresses that turned out to have no mailbox.
    async fn suppress(
        &self,
        connection: &mut PgConnection,
        bounced: Vec<(OrganizationId, ReportedAddress)>,
    ) -> Result<AddedSuppressions, Fault> {
        let origins = bounced.iter();
        let origins: Vec<Origin> = origins
            .map(|(_, told)| Origin::system(told.message_id))
            .collect();
        let told = bounced.iter().zip(&origins);
        let told = told.map(|((organization_id, address), origin)| ReportedSuppression {
            organization_id: *organization_id,
            origin,
            address: *address,
        });
        let told: Vec<ReportedSuppression<'_>> = told.collect();
        self.suppressions.add_feedback(connection, &told).await
    }

    /// Brings chunks again at once: the next account is to take what one failed to.
    fn push_now(&self, due: Vec<Rescheduled>) {
        if due.is_empty() {
            return;
        }
        let queue = self.queue.clone();
        tokio::spawn(async move {
            let jobs: Vec<SendJob> = due.iter().map(|due| due.job).collect();
            if let Err(fault) = queue.push(&jobs).await {
                warn_seldom!(cause = fault.chain(), "Retries are left to the relay");
            }
        });
    }

    /// Tells Redis when to bring chunks again, without keeping the lane. The relay
    /// does where this fails.
    fn push_again(&self, left: Vec<Rescheduled>) {
        if left.is_empty() {
            return;
        }
        let queue = self.queue.clone();
        tokio::spawn(async move {
            let jobs: Vec<_> = left.iter().map(|left| (left.job, left.due_at)).collect();
            if let Err(fault) = queue.push_at(&jobs).await {
                warn_seldom!(cause = fault.chain(), "Retries are left to the relay");
            }
        });
    }
}

/// Runs a transaction, bounded in time, and again after a deadlock: what providers tell
/// is recorded without the lease of the copies, and locks them in another order.
async fn again_after_deadlocks<T, F>(
    transaction: impl Fn() -> F,
    doing: &'static str,
) -> Result<T, Fault>
where
    F: Future<Output = Result<T, Fault>>,
{
    let bounded = || db::bounded(doing, transaction());
    db::retry_deadlocks(DEADLOCK_TRIES, bounded, db::is_deadlock).await
}

/// What leasing gives: chunks, and the messages of those with something due.
type Leased = (Vec<LeasedChunk>, HashMap<MessageId, LeasedMessage>);

const LEASE: &str = "lease chunks";
const RECORD: &str = "record outcomes";

fn finished_by_worker(settlements: &[&OutcomeRecord]) -> HashMap<WorkerId, Vec<SendJob>> {
    let mut finished: HashMap<WorkerId, Vec<SendJob>> = HashMap::new();
    for settlement in settlements.iter().filter(|settlement| settlement.finished) {
        finished
            .entry(settlement.worker)
            .or_default()
            .push(settlement.job);
    }
    finished
}
