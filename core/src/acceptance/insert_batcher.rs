//! The batcher of the INSERT, and the second try of an entry whose recipients turned out to
//! be suppressed.

use std::sync::Arc;

use futures_util::future::join_all;

use super::idempotency::{FlushOutcome, InsertEntry, InsertOutcome};
use super::writer::InsertWriter;
use crate::batcher::{Batcher, BatcherSettings, Cooldown};
use crate::fault::Fault;
use crate::ids::Ids;

/// Transactions that accept at the same time.
const FLUSHES_MAX: usize = 3;
/// Requests that start another transaction while one is running.
const BATCH_MIN: usize = 64;
/// Connections to Postgres that acceptance uses.
pub(super) const CONNECTIONS: u32 = FLUSHES_MAX as u32;
/// Rows of one transaction, roughly.
const BATCH_WEIGHT_MAX: usize = 4_000;
/// Requests that may wait for a transaction.
const QUEUE_MAX: usize = 4_096;

/// An entry, and what became of it. Boxed: it is large, and moves from task to task.
pub(super) type EntryResult = Result<(Box<InsertEntry>, InsertOutcome), Fault>;

/// Inserts entries. Cheap to clone.
#[derive(Clone)]
pub(super) struct InsertBatcher {
    batcher: Batcher<Box<InsertEntry>, (Box<InsertEntry>, FlushOutcome)>,
    ids: Ids,
}

impl InsertBatcher {
    pub(super) fn start(writer: InsertWriter, ids: Ids) -> Self {
        let settings = BatcherSettings {
            flushes_max: FLUSHES_MAX,
            batch_weight_max: BATCH_WEIGHT_MAX,
            batch_min: BATCH_MIN,
            queue_max: QUEUE_MAX,
            cooldown: Cooldown::NONE,
        };
        let writer = Arc::new(writer);
        let flush = move |entries: Vec<Box<InsertEntry>>| {
            let writer = Arc::clone(&writer);
            async move {
                let batch: Vec<&InsertEntry> = entries.iter().map(Box::as_ref).collect();
                let outcomes = writer.write(&batch).await;
                let outcomes = entries.into_iter().zip(outcomes);
                outcomes
                    .map(|(entry, outcome)| outcome.map(|outcome| (entry, outcome)))
                    .collect()
            }
        };
        Self {
            batcher: Batcher::start("messages", settings, flush),
            ids,
        }
    }

    /// Inserts entries, each with its index among the caller's drafts.
    pub(super) async fn insert_all(
        &self,
        entries: Vec<(usize, Box<InsertEntry>)>,
    ) -> Vec<(usize, EntryResult)> {
        let inserted = entries
            .into_iter()
            .map(async |(index, entry)| (index, self.insert(entry).await));
        join_all(inserted).await
    }

    /// Inserts an entry, again if it was left out for suppressed recipients: from then on
    /// all of its recipients are checked.
    async fn insert(&self, mut entry: Box<InsertEntry>) -> EntryResult {
        loop {
            let weight = entry.weight();
            let (same, outcome) = self.batcher.run(entry, weight).await?;
            entry = same;
            match outcome {
                FlushOutcome::Done(outcome) => return Ok((entry, outcome)),
                FlushOutcome::Suppressed(positions) if positions.is_empty() => {}
                FlushOutcome::Suppressed(positions) => entry.suppress(&positions, &self.ids),
            }
            if entry.is_empty() {
                return Ok((entry, InsertOutcome::Inserted));
            }
        }
    }
}
