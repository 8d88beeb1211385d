//! The transactions that lease chunks.

use std::collections::HashMap;
use std::sync::Arc;

use waypost_core::db::{self, OrFault, PgConnection};
use waypost_core::delivery::attempt::AttemptKey;
use waypost_core::delivery::dead_letter;
use waypost_core::delivery::job::SendJob;
use waypost_core::delivery::lease::{self, ChunkLease, LeaseRequest, LeasedMessage, Rescheduled};
use waypost_core::fault::Fault;
use waypost_core::ids::{MessageId, WorkerId};
use waypost_core::tracking::link::TrackingPlan;

use super::{LeasedChunk, PrewrittenAttempt, StoreWriter, retry_deadlocks};

const DOING: &str = "lease chunks";

/// The leased chunks of one statement, by what the worker does with them.
#[derive(Default)]
struct Leased {
    to_send: Vec<(ChunkLease, Arc<LeasedMessage>)>,
    /// None of their recipients is due.
    idle: Vec<SendJob>,
    /// Their message or its bodies are missing.
    orphans: Vec<ChunkLease>,
}

/// The chunks for the jobs of a batch.
#[derive(Default)]
struct Granted {
    chunks: HashMap<SendJob, LeasedChunk>,
    /// Attempts that were written and will not be called.
    unused: Vec<AttemptKey>,
}

impl StoreWriter {
    /// Leases the chunks of a batch of jobs.
    pub(super) async fn lease(
        &self,
        requests: Vec<LeaseRequest>,
    ) -> Vec<Result<Option<LeasedChunk>, Fault>> {
        let jobs: Vec<SendJob> = requests.iter().map(|request| request.job).collect();
        match self.lease_batch(requests).await {
            // If the batch contains a job twice, one of them gets the chunk.
            Ok(mut chunks) => jobs.iter().map(|job| Ok(chunks.remove(job))).collect(),
            Err(fault) => jobs.iter().map(|_| Err(fault.clone())).collect(),
        }
    }

    async fn lease_batch(
        &self,
        mut requests: Vec<LeaseRequest>,
    ) -> Result<HashMap<SendJob, LeasedChunk>, Fault> {
        let no_lease = || Fault::unavailable(DOING, "this worker's lease has ended");
        let worker = self.worker_lease.current().ok_or_else(no_lease)?;
        requests.sort_unstable_by_key(|request| request.job);
        requests.dedup_by_key(|request| request.job);
        self.held.exclude(worker, &mut requests);
        match self.lease_for(worker, &requests).await {
            Ok(granted) => {
                self.withdraw(granted.unused);
                Ok(granted.chunks)
            }
            Err(fault) => {
                // The predicted attempts may be committed all the same, or later.
                let predicted = requests.iter().filter_map(|request| {
                    let attempt_id = request.predicted?.attempt_id;
                    Some((request.job.message_id, attempt_id))
                });
                self.withdraw(predicted.collect());
                Err(fault)
            }
        }
    }

    async fn lease_for(
        &self,
        worker: WorkerId,
        requests: &[LeaseRequest],
    ) -> Result<Granted, Fault> {
        let leased = retry_deadlocks(|| self.try_lease(worker, requests), DOING).await;
        if leased.as_ref().is_err_and(|fault| !db::is_deadlock(fault)) {
            // The statement may be committed all the same. Then this worker holds chunks
            // that none of its jobs knows of.
            self.worker_lease.invalidate(worker);
        }
        let Leased {
            to_send,
            idle,
            orphans,
        } = leased?;
        if !idle.is_empty() || !orphans.is_empty() {
            let give_back = || self.give_back(worker, &idle, &orphans);
            let given_back = retry_deadlocks(give_back, DOING).await;
            if given_back.is_err() {
                // These chunks stay leased, and so do the chunks to send, which no job gets.
                self.worker_lease.invalidate(worker);
            }
            self.push(given_back?, |_| false);
        }
        Ok(self.hold(worker, to_send))
    }

    async fn try_lease(
        &self,
        worker: WorkerId,
        requests: &[LeaseRequest],
    ) -> Result<Leased, Fault> {
        let now = self.clock.now();
        let lease = async |connection: &mut PgConnection| {
            lease::lease(connection, worker, requests, now).await
        };
        let (chunks, messages) = self.pool.run(DOING, lease).await?;
        Ok(Leased::new(chunks, messages))
    }

    /// Ends the leases of idle chunks and dead-letters orphans. Returns the chunks with
    /// recipients that are due later.
    async fn give_back(
        &self,
        worker: WorkerId,
        idle: &[SendJob],
        orphans: &[ChunkLease],
    ) -> Result<Vec<Rescheduled>, Fault> {
        let mut transaction = self.pool.begin(DOING).await?;
        let jobs = idle.iter().copied();
        let jobs = jobs.chain(orphans.iter().map(|chunk| chunk.job));
        let leases: Vec<_> = jobs.map(|job| (worker, job)).collect();
        let held = lease::hold(&mut transaction, &leases).await?;
        let is_held = |job: &SendJob| held.contains(&(worker, *job));
        let idle: Vec<SendJob> = idle.iter().copied().filter(is_held).collect();
        let orphans: Vec<&ChunkLease> = orphans.iter().filter(|o| is_held(&o.job)).collect();
        let grace = self.settings.relay_grace;
        let rescheduled = lease::finish(&mut transaction, worker, &idle, grace).await?;
        let now = self.clock.now();
        dead_letter::dead_letter_orphans(&mut transaction, &orphans, now).await?;
        transaction.commit().await.or_fault(DOING)?;
        Ok(rescheduled)
    }

    /// Adds the chunks to the held leases.
    fn hold(&self, worker: WorkerId, to_send: Vec<(ChunkLease, Arc<LeasedMessage>)>) -> Granted {
        let now = self.clock.now();
        let mut granted = Granted::default();
        for (lease, message) in to_send {
            let prewritten = lease.prewritten;
            let chunk = LeasedChunk {
                worker,
                job: lease.job,
                message,
                recipients: lease.recipients,
                losses: lease.losses,
                plan: TrackingPlan::default(),
                attachments: Vec::new(),
                own_contents: None,
                memory: None,
                prewritten: prewritten.map(|attempt| PrewrittenAttempt::new(attempt, now)),
            };
            if self.held.insert(&chunk) {
                granted.chunks.insert(chunk.job, chunk);
            } else {
                // A crash of Postgres may lose a committed lease. If the chunk was leased
                // again, the second job must not send.
                self.worker_lease.invalidate(worker);
                granted.unused.extend(chunk.unused_attempt());
            }
        }
        granted
    }
}

impl Leased {
    fn new(chunks: Vec<ChunkLease>, messages: HashMap<MessageId, LeasedMessage>) -> Self {
        let messages: HashMap<MessageId, Arc<LeasedMessage>> = messages
            .into_iter()
            .map(|(id, message)| (id, Arc::new(message)))
            .collect();
        let mut leased = Self::default();
        for chunk in chunks {
            match messages.get(&chunk.job.message_id) {
                _ if chunk.recipients.is_empty() => leased.idle.push(chunk.job),
                Some(message) => leased.to_send.push((chunk, Arc::clone(message))),
                None => leased.orphans.push(chunk),
            }
        }
        leased
    }
}
