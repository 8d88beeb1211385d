//! The transactions that record outcomes.
//!
//! Most outcomes are *accepted, single recipient*: [`StoreWriter::record_sent`] records
//! those in one statement. [`StoreWriter::record_others`] records the rest, and those that
//! the statement could not record.

use std::collections::{HashMap, HashSet};

use waypost_core::audit::Origin;
use waypost_core::db::{OrFault, PgConnection};
use waypost_core::delivery::attempt::{self, AttemptKey};
use waypost_core::delivery::job::SendJob;
use waypost_core::delivery::lease::{self, Rescheduled};
use waypost_core::delivery::outcome::{self, AttemptOutcome, SentRecord};
use waypost_core::fault::{Fault, FaultKind};
use waypost_core::ids::{MessageId, OrganizationId, SendAttemptId, WorkerId};
use waypost_core::message::store::refresh_aggregates;
use waypost_core::suppression::feedback::{
    AddedSuppressions, ReportedAddress, ReportedSuppression,
};
use waypost_core::warn_seldom;

use super::{OutcomeRecord, StoreWriter, retry_deadlocks};

const DOING: &str = "record outcomes";

/// What one transaction writes of a batch of records.
struct OutcomeBatch {
    /// Of chunks whose lease is held. Accepted ones count without the lease too: the provider
    /// took the mail.
    outcomes: Vec<AttemptOutcome>,
    /// Attempts whose calls were not made. They are withdrawn without the lease too.
    withdrawn: Vec<AttemptKey>,
    /// Recipients of held chunks that go back to QUEUED.
    untried: Vec<(MessageId, i32)>,
    /// Held chunks whose lease ends.
    ended: HashMap<WorkerId, Vec<SendJob>>,
    /// The messages whose rows this may change. The others stay as they are: another
    /// worker may be about to change them.
    messages: Vec<MessageId>,
}

impl OutcomeBatch {
    fn new(records: &[&OutcomeRecord], held: &HashSet<(WorkerId, SendJob)>) -> Self {
        let mut batch = Self {
            outcomes: Vec::new(),
            withdrawn: Vec::new(),
            untried: Vec::new(),
            ended: HashMap::new(),
            messages: Vec::new(),
        };
        for record in records {
            let is_held = held.contains(&record.lease());
            batch.withdrawn.extend(&record.withdrawn);
            let outcome = record.outcome.as_ref();
            if is_held || outcome.is_some_and(AttemptOutcome::is_accepted) {
                batch.outcomes.extend(outcome.cloned());
                batch.messages.push(record.job.message_id);
            }
            if is_held {
                let untried = record.untried.map(|at| (record.job.message_id, at));
                batch.untried.extend(untried);
            }
            if is_held && record.ends_lease {
                let ended = batch.ended.entry(record.worker).or_default();
                ended.push(record.job);
            }
        }
        // The order in which other transactions lock the rows.
        let key = |outcome: &AttemptOutcome| (outcome.attempt.message_id, outcome.attempt.position);
        batch.outcomes.sort_by_key(key);
        batch
    }
}

impl StoreWriter {
    /// Records a batch.
    pub(super) async fn record(&self, records: Vec<OutcomeRecord>) -> Vec<Result<(), Fault>> {
        match self.record_batch(&records).await {
            Ok(()) => records.iter().map(|_| Ok(())).collect(),
            // One by one, so that a record which Postgres refuses does not fail the others.
            Err(fault) if fault.kind() == FaultKind::Internal && records.len() > 1 => {
                let mut results = Vec::with_capacity(records.len());
                for record in &records {
                    results.push(self.record_batch(std::slice::from_ref(record)).await);
                }
                results
            }
            Err(fault) => records.iter().map(|_| Err(fault.clone())).collect(),
        }
    }

    async fn record_batch(&self, records: &[OutcomeRecord]) -> Result<(), Fault> {
        let recorded = retry_deadlocks(|| self.record_sent(records), DOING).await?;
        let is_recorded = |record: &OutcomeRecord| {
            let outcome = record.outcome.as_ref();
            outcome.is_some_and(|outcome| recorded.contains(&outcome.attempt.id))
        };
        let others: Vec<&OutcomeRecord> = records.iter().filter(|r| !is_recorded(r)).collect();
        let rescheduled = if others.is_empty() {
            Vec::new()
        } else {
            retry_deadlocks(|| self.record_others(&others), DOING).await?
        };
        // Before a job is pushed again: a worker that gets it may lease the chunk at once.
        for record in records.iter().filter(|record| record.ends_lease) {
            self.held.release(record.lease());
        }
        self.push_rescheduled(rescheduled, &others);
        Ok(())
    }

    /// Records what [`OutcomeRecord::sent`] returns; of each message one. Returns the
    /// attempts of which nothing is left to record.
    async fn record_sent(
        &self,
        records: &[OutcomeRecord],
    ) -> Result<HashSet<SendAttemptId>, Fault> {
        let mut seen = HashSet::with_capacity(records.len());
        let mut sent: Vec<SentRecord<'_>> = records
            .iter()
            .filter_map(OutcomeRecord::sent)
            .filter(|sent| seen.insert(sent.message_id()))
            .collect();
        if sent.is_empty() {
            return Ok(HashSet::new());
        }
        sent.sort_unstable_by_key(SentRecord::message_id);
        let record =
            async |connection: &mut PgConnection| outcome::record_sent(connection, &sent).await;
        self.pool.run(DOING, record).await
    }

    /// Records any outcome, in one transaction. Returns the chunks with recipients left.
    async fn record_others(&self, records: &[&OutcomeRecord]) -> Result<Vec<Rescheduled>, Fault> {
        let now = self.clock.now();
        self.expect_bounces(records).await?;
        let mut transaction = self.pool.begin(DOING).await?;
        let leases: Vec<_> = records.iter().map(|record| record.lease()).collect();
        let held = lease::hold(&mut transaction, &leases).await?;
        let batch = OutcomeBatch::new(records, &held);
        let bounced = outcome::record(&mut transaction, &batch.outcomes).await?;
        attempt::withdraw(&mut transaction, &batch.withdrawn).await?;
        lease::put_back(&mut transaction, &batch.untried, now).await?;
        let mut rescheduled = Vec::new();
        for (worker, jobs) in &batch.ended {
            let grace = self.settings.relay_grace;
            rescheduled.extend(lease::finish(&mut transaction, *worker, jobs, grace).await?);
        }
        refresh_aggregates(&mut transaction, &batch.messages).await?;
        let added = self.suppress(&mut transaction, bounced).await?;
        transaction.commit().await.or_fault(DOING)?;
        self.suppressions.confirm_feedback(&added).await;
        Ok(rescheduled)
    }

    /// Announces the addresses that [`StoreWriter::suppress`] may suppress.
    async fn expect_bounces(&self, records: &[&OutcomeRecord]) -> Result<(), Fault> {
        let outcomes = records.iter().filter_map(|record| record.outcome.as_ref());
        let bounced = outcomes.filter_map(AttemptOutcome::bounced);
        let addresses: Vec<_> = bounced
            .map(|(organization_id, address)| (organization_id, address.email_hash))
            .collect();
        self.suppressions.announce_feedback(&addresses).await
    }

    /// Suppresses addresses that have no mailbox.
    async fn suppress(
        &self,
        connection: &mut PgConnection,
        bounced: Vec<(OrganizationId, ReportedAddress)>,
    ) -> Result<AddedSuppressions, Fault> {
        let origins: Vec<Origin> = bounced
            .iter()
            .map(|(_, address)| Origin::system(address.message_id))
            .collect();
        let suppressions: Vec<ReportedSuppression<'_>> = bounced
            .iter()
            .zip(&origins)
            .map(|((organization_id, address), origin)| ReportedSuppression {
                organization_id: *organization_id,
                origin,
                address: *address,
            })
            .collect();
        self.suppressions
            .add_feedback(connection, &suppressions)
            .await
    }

    /// Pushes the jobs of chunks with recipients left: those that are due at once, so that
    /// the next account is tried without delay; all others to the delayed jobs.
    fn push_rescheduled(&self, rescheduled: Vec<Rescheduled>, records: &[&OutcomeRecord]) {
        let now = self.clock.now();
        let has_untried = |job: SendJob| {
            let mut ended = records.iter().filter(|r| r.ends_lease && r.job == job);
            ended.any(|record| record.has_untried)
        };
        self.push(rescheduled, |chunk| {
            chunk.due_at <= now && !has_untried(chunk.job)
        });
    }

    /// Pushes the jobs of chunks in the background: to run now if `runs_now`, else when they
    /// are due. The relay pushes them if this fails.
    pub(super) fn push(&self, chunks: Vec<Rescheduled>, runs_now: impl Fn(&Rescheduled) -> bool) {
        if chunks.is_empty() {
            return;
        }
        let (due, later): (Vec<_>, Vec<_>) = chunks.into_iter().partition(runs_now);
        let due: Vec<SendJob> = due.iter().map(|chunk| chunk.job).collect();
        let later: Vec<_> = later
            .iter()
            .map(|chunk| (chunk.job, chunk.due_at))
            .collect();
        let queue = self.queue.clone();
        tokio::spawn(async move {
            let pushed = async {
                queue.push(&due).await?;
                queue.push_at(&later).await
            };
            if let Err(fault) = pushed.await {
                warn_seldom!(
                    cause = fault.chain(),
                    "Cannot push retries; the relay will push them"
                );
            }
        });
    }
}
