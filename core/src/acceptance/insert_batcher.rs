//! The lanes in which entries are written together, and what follows where one of their
//! recipients is found to be suppressed only then.

use std::sync::Arc;

use futures_util::future::join_all;

use super::idempotency::{FlushOutcome, InsertEntry, InsertOutcome};
use super::writer::InsertWriter;
use crate::batcher::{Batcher, BatcherSettings, Cooldown};
use crate::fault::Fault;
use crate::ids::Ids;

/// Transactions that accept at the same time.
const LANES: usize = 3;
/// Requests with which another transaction begins beside one that is under way.
const CROWD: usize = 64;
/// Connections to Postgres that acceptance uses at the most.
pub(super) const CONNECTIONS: u32 = LANES as u32;
/// Rows, roughly, that one transaction takes.
const GROUP_WEIGHT_MAX: usize = 4_000;
/// Requests that may wait for a transaction.
const WAITING_MAX: usize = 4_096;

/// An entry, and what became of it. In a box: it is large, and moves from hand to hand.
pub(super) type EntryResult = Result<(Box<InsertEntry>, InsertOutcome), Fault>;

/// Writes entries. Cheap to clone.
#[derive(Clone)]
pub(super) struct InsertBatcher {
    group: Batcher<Box<InsertEntry>, (Box<InsertEntry>, FlushOutcome)>,
    ids: Ids,
}

impl InsertBatcher {
    pub(super) fn start(writer: InsertWriter, ids: Ids) -> Self {
        let settings = BatcherSettings {
            flushes_max: LANES,
            batch_weight_max: GROUP_WEIGHT_MAX,
            batch_min: CROWD,
            queue_max: WAITING_MAX,
            cooldown: Cooldown::NONE,
        };
        let writer = Arc::new(writer);
        let work = move |entries: Vec<Box<InsertEntry>>| {
            let writer = Arc::clone(&writer);
            async move {
                let passes = writer
                    .write(&entries.iter().map(Box::as_ref).collect::<Vec<_>>())
                    .await;
                let passes = entries.into_iter().zip(passes);
                passes
                    .map(|(entry, pass)| pass.map(|pass| (entry, pass)))
                    .collect()
            }
        };
        Self {
            group: Batcher::start("messages", settings, work),
            ids,
        }
    }

    /// Writes entries, each with the place that it has among the caller's.
    pub(super) async fn write(
        &self,
        entries: Vec<(usize, Box<InsertEntry>)>,
    ) -> Vec<(usize, EntryResult)> {
        let written = entries
            .into_iter()
            .map(async |(place, entry)| (place, self.write_one(entry).await));
        join_all(written).await
    }

    /// Whatever is set aside comes again, for those who are not suppressed, and from then on
    /// all of its recipients are known. One that was set aside with another of its key, and
    /// is another request, comes as it was.
    async fn write_one(&self, mut entry: Box<InsertEntry>) -> EntryResult {
        loop {
            let weight = entry.weight();
            let (same, pass) = self.group.run(entry, weight).await?;
            entry = same;
            match pass {
                FlushOutcome::Done(written) => return Ok((entry, written)),
                FlushOutcome::SetAside(positions) if positions.is_empty() => {}
                FlushOutcome::SetAside(positions) => entry.suppress(&positions, &self.ids),
            }
            if entry.is_empty() {
                return Ok((entry, InsertOutcome::Now));
            }
        }
    }
}
