//! The ledger: what the jobs of this worker write into Postgres, shared between
//! them. Claims, attempts and outcomes of many jobs go into one transaction each,
//! because statements and commits per message are what bounds sending.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tracing::{error, warn};
use waypost_core::clock::Clock;
use waypost_core::config::SendingSettings;
use waypost_core::db::{OrFault, PgPool};
use waypost_core::fault::{Fault, FaultKind};
use waypost_core::group::{Group, GroupSettings};
use waypost_core::ids::{MessageId, WorkerId};
use waypost_core::message::store::refresh_aggregates;
use waypost_core::queue::attempt::{self, NewAttempt};
use waypost_core::queue::backend::Queue;
use waypost_core::queue::jobs::SendJob;
use waypost_core::queue::lease::{self, LeasedMessage, LeasedRecipient, Rescheduled};
use waypost_core::queue::outcome::{self, AttemptOutcome};

use crate::tenure::Tenures;

/// Transactions of one kind under way at once.
const LANES: usize = 2;
/// Jobs, attempts or outcomes in one transaction, roughly.
const GROUP_MAX: usize = 200;
/// Entries that may wait for a transaction.
const WAITING_MAX: usize = 4_096;
/// The waits between tries to record an outcome while Postgres is away.
const RECORD_AGAIN_FIRST: Duration = Duration::from_millis(100);
const RECORD_AGAIN_LONGEST: Duration = Duration::from_secs(5);

/// A chunk that this worker holds.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) worker: WorkerId,
    pub(crate) job: SendJob,
    pub(crate) message: Arc<LeasedMessage>,
    pub(crate) recipients: Vec<LeasedRecipient>,
}

/// Something to record.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settlement {
    /// What came of an attempt.
    pub(crate) outcome: Option<AttemptOutcome>,
    /// Recipients that were leased and not tried.
    pub(crate) untried: Option<(MessageId, Vec<i32>)>,
    /// The chunk whose lease ends with this.
    pub(crate) finished: Option<(WorkerId, SendJob)>,
}

/// Shared writing. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Ledger {
    claims: Group<SendJob, Option<Claim>>,
    attempts: Group<NewAttempt, ()>,
    settlements: Group<Settlement, ()>,
    tenures: Tenures,
}

impl Ledger {
    pub(crate) fn start(
        pool: PgPool,
        queue: Queue<SendJob>,
        tenures: Tenures,
        clock: Clock,
        settings: SendingSettings,
    ) -> Self {
        let group = GroupSettings {
            lanes: LANES,
            weight_max: GROUP_MAX,
            waiting_max: WAITING_MAX,
        };
        let writer = Arc::new(Writer {
            pool,
            queue,
            tenures: tenures.clone(),
            clock,
            settings,
        });
        let (claims, attempts, settlements) = (Arc::clone(&writer), Arc::clone(&writer), writer);
        Self {
            claims: Group::start(group, move |jobs| {
                let writer = Arc::clone(&claims);
                async move { writer.claim(jobs).await }
            }),
            attempts: Group::start(group, move |items| {
                let writer = Arc::clone(&attempts);
                async move { writer.begin_attempts(items).await }
            }),
            settlements: Group::start(group, move |items| {
                let writer = Arc::clone(&settlements);
                async move { writer.settle(items).await }
            }),
            tenures,
        }
    }

    /// Leases a job's chunk. Nothing where another holds it, or it is done, or
    /// none of its recipients is due.
    pub(crate) async fn claim(&self, job: SendJob) -> Result<Option<Claim>, Fault> {
        self.claims.run(job, 1).await
    }

    /// Writes an attempt before its call.
    pub(crate) async fn begin_attempt(&self, attempt: NewAttempt) -> Result<(), Fault> {
        self.attempts.run(attempt, 1).await
    }

    /// Records a settlement, however long Postgres is away. What cannot be
    /// recorded for another reason is left to the reaper: the tenure is given up.
    pub(crate) async fn settle(&self, worker: WorkerId, settlement: Settlement) {
        let mut wait = RECORD_AGAIN_FIRST;
        loop {
            match self.settlements.run(settlement.clone(), 1).await {
                Ok(()) => return,
                Err(fault) if fault.kind() == FaultKind::Unavailable => {
                    warn!(
                        cause = fault.chain(),
                        "An outcome could not be recorded yet"
                    );
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(RECORD_AGAIN_LONGEST);
                }
                Err(fault) => {
                    error!(cause = fault.chain(), "An outcome could not be recorded");
                    self.tenures.give_up(worker);
                    return;
                }
            }
        }
    }
}

struct Writer {
    pool: PgPool,
    queue: Queue<SendJob>,
    tenures: Tenures,
    clock: Clock,
    settings: SendingSettings,
}

impl Writer {
    async fn claim(&self, jobs: Vec<SendJob>) -> Vec<Result<Option<Claim>, Fault>> {
        match self.try_claim(&jobs).await {
            // A job that comes twice in one group gets the claim once.
            Ok(mut claims) => jobs.iter().map(|job| Ok(claims.remove(job))).collect(),
            Err(fault) => jobs.iter().map(|_| Err(fault.clone())).collect(),
        }
    }

    async fn try_claim(&self, jobs: &[SendJob]) -> Result<HashMap<SendJob, Claim>, Fault> {
        let no_tenure = || Fault::unavailable("lease chunks", "this worker's tenure has ended");
        let worker = self.tenures.current().ok_or_else(no_tenure)?;
        let mut wanted = jobs.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        let mut transaction = self.pool.begin().await.or_fault("lease chunks")?;
        let chunks = lease::lease(&mut transaction, worker, &wanted, self.clock.now()).await?;
        let (busy, idle): (Vec<_>, Vec<_>) = chunks
            .into_iter()
            .partition(|chunk| !chunk.recipients.is_empty());
        let idle: Vec<SendJob> = idle.iter().map(|chunk| chunk.job).collect();
        let left =
            lease::finish(&mut transaction, worker, &idle, self.settings.relay_grace).await?;
        let messages: Vec<MessageId> = busy.iter().map(|chunk| chunk.job.message_id).collect();
        refresh_aggregates(&mut transaction, &messages).await?;
        let loaded = lease::load(&mut transaction, &messages).await?;
        if let Err(failure) = transaction.commit().await {
            // It may have been committed all the same, and then this worker holds
            // leases that none of its jobs knows of.
            self.tenures.give_up(worker);
            return Err(failure).or_fault("lease chunks");
        }
        self.push_again(&left).await;
        let loaded: HashMap<MessageId, Arc<LeasedMessage>> = loaded
            .into_iter()
            .map(|(id, message)| (id, Arc::new(message)))
            .collect();
        let mut claims = HashMap::with_capacity(busy.len());
        for chunk in busy {
            let Some(message) = loaded.get(&chunk.job.message_id) else {
                error!(message.id = %chunk.job.message_id, "A leased message has no row");
                continue;
            };
            let claim = Claim {
                worker,
                job: chunk.job,
                message: Arc::clone(message),
                recipients: chunk.recipients,
            };
            claims.insert(chunk.job, claim);
        }
        Ok(claims)
    }

    async fn begin_attempts(&self, attempts: Vec<NewAttempt>) -> Vec<Result<(), Fault>> {
        let written = async {
            let mut connection = self.pool.acquire().await.or_fault("record send attempts")?;
            attempt::insert(&mut connection, &attempts).await
        };
        let result = written.await;
        attempts.iter().map(|_| result.clone()).collect()
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Vec<Result<(), Fault>> {
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

    async fn try_settle(&self, settlements: &[Settlement]) -> Result<(), Fault> {
        let outcomes: Vec<AttemptOutcome> = settlements
            .iter()
            .filter_map(|s| s.outcome.clone())
            .collect();
        let untried = settlements.iter().filter_map(|s| s.untried.as_ref());
        let now = self.clock.now();
        let mut transaction = self.pool.begin().await.or_fault("record outcomes")?;
        outcome::record(&mut transaction, &outcomes).await?;
        for (message_id, positions) in untried {
            lease::put_back(&mut transaction, *message_id, positions, now).await?;
        }
        let mut left = Vec::new();
        for (worker, jobs) in finished_by_worker(settlements) {
            left.extend(
                lease::finish(&mut transaction, worker, &jobs, self.settings.relay_grace).await?,
            );
        }
        refresh_aggregates(&mut transaction, &messages_of(settlements)).await?;
        transaction.commit().await.or_fault("record outcomes")?;
        self.push_again(&left).await;
        Ok(())
    }

    /// Tells Redis when to bring chunks again. The relay does where this fails.
    async fn push_again(&self, left: &[Rescheduled]) {
        if left.is_empty() {
            return;
        }
        let jobs: Vec<_> = left.iter().map(|left| (left.job, left.due_at)).collect();
        if let Err(fault) = self.queue.push_at(&jobs).await {
            warn!(cause = fault.chain(), "Retries are left to the relay");
        }
    }
}

fn finished_by_worker(settlements: &[Settlement]) -> HashMap<WorkerId, Vec<SendJob>> {
    let mut finished: HashMap<WorkerId, Vec<SendJob>> = HashMap::new();
    for (worker, job) in settlements
        .iter()
        .filter_map(|settlement| settlement.finished)
    {
        finished.entry(worker).or_default().push(job);
    }
    finished
}

fn messages_of(settlements: &[Settlement]) -> Vec<MessageId> {
    settlements
        .iter()
        .flat_map(|settlement| {
            let tried = settlement
                .outcome
                .as_ref()
                .map(|outcome| outcome.attempt.message_id);
            let untried = settlement.untried.as_ref().map(|(id, _)| *id);
            [tried, untried].into_iter().flatten()
        })
        .collect()
}
