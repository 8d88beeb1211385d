//! Records the events that providers report. Each event is recorded once, however often
//! and in whatever order providers send it.
//!
//! An event is about one recipient of one message. The recipient is found by Waypost's
//! ids, which must belong together and to the organization of the account; otherwise by
//! the provider's message id. An event whose recipient is not found is acknowledged and
//! counted. The raw events are stored with the message; a unique key recognizes an event
//! that is sent again.
//!
//! Requests that arrive during a transaction share the next one, across all
//! organizations; the `writer` runs it. One account may hold at most its
//! `admission_quota` of the queue, so that a busy account does not delay the others for
//! long. If Postgres refuses the content of one request, the other requests are still
//! recorded.
//!
//! The new state of a recipient (`recipient_state`, pure) depends on the set of events,
//! not on their order. Every event also proves that the provider accepted the message for
//! that recipient: an attempt whose answer was lost is not repeated, and a worker that
//! gets the answer later finds the outcome recorded.
//!
//! Locks are taken in the same order as wherever outcomes are recorded: signatures,
//! events, attempts, recipients, outbox (only rows that are not leased), messages,
//! suppressions; rows of one table in the order of their ids. A transaction never waits
//! for a worker's lease.

mod admission_quota;
mod apply;
mod counts;
mod recipient_state;
mod recipients;
mod source;
mod store;
mod trace;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tracing::{info, warn};

use crate::audit::Origin;
use crate::batcher::{Batcher, BatcherSettings, Cooldown};
use crate::clock::Clock;
use crate::crypto::seal::Sealer;
use crate::fault::Fault;
use crate::provider::event::ProviderEvent;
use crate::provider::inbound::ReplayGuard;
use crate::suppression::Suppressions;
use crate::telemetry::instruments;
use crate::tracking::link::OwnLinks;
pub use source::EventSource;

use admission_quota::{AdmissionPermit, AdmissionQuota};
use writer::EventWriter;

/// Concurrent transactions of one process. While one commits, the other runs its
/// statements; more of them make smaller batches.
const TRANSACTIONS_MAX: usize = 2;
/// Connections for the transactions: one each, and one that is being returned to the
/// pool.
pub const CONNECTIONS: u32 = 3;
/// Waiting requests that start a transaction beside one that is running.
const BATCH_MIN: usize = 16;
/// Approximate number of events in a transaction. Larger requests are recorded in parts.
const BATCH_EVENTS_MAX: usize = 400;
/// Requests that may be queued; further callers wait for a free slot.
const WAITING_MAX: usize = 4_096;
/// How long a request waits in total. Providers wait about as long for an answer.
const WAIT_MAX: Duration = Duration::from_secs(30);

const DOING: &str = "record provider events";

/// The content of a verified request.
#[derive(Debug)]
pub struct EventBatch {
    pub events: Vec<ProviderEvent>,
    /// Items that could not be read.
    pub unreadable: usize,
    /// A signature that must not be used again with other content.
    pub guard: Option<ReplayGuard>,
}

/// How the events of a request were recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordCounts {
    pub recorded: usize,
    /// Events that had been recorded before.
    pub repeated: usize,
    /// Events whose recipient was not found.
    pub unmatched: usize,
}

impl RecordCounts {
    fn add(&mut self, other: Self) {
        self.recorded += other.recorded;
        self.repeated += other.repeated;
        self.unmatched += other.unmatched;
    }
}

/// Why a request was not recorded.
#[derive(Debug)]
pub enum RecordRefusal {
    /// The signature was used before with other content.
    Replayed,
    /// Nothing was recorded, or only the first parts. Those are recognized when the
    /// request is sent again.
    Fault(Fault),
}

impl From<Fault> for RecordRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Records provider events. Cheap to clone.
#[derive(Clone)]
pub struct EventRecorder {
    batcher: Batcher<Request, Option<RecordCounts>>,
    quota: AdmissionQuota,
    own_links: OwnLinks,
    clock: Clock,
}

/// A request, or a part of a large one, that waits for its transaction.
struct Request {
    source: Arc<EventSource>,
    origin: Arc<Origin>,
    batch: EventBatch,
    /// Released once the part is recorded, even if the caller no longer waits.
    _permit: Option<AdmissionPermit>,
}

impl EventRecorder {
    /// Starts the recorder's tasks. They use the pool, the clock and the ids of
    /// `suppressions`.
    #[must_use]
    pub fn start(suppressions: Suppressions, sealer: Sealer, own_links: OwnLinks) -> Self {
        let clock = suppressions.clock.clone();
        let settings = BatcherSettings {
            flushes_max: TRANSACTIONS_MAX,
            batch_weight_max: BATCH_EVENTS_MAX,
            batch_min: BATCH_MIN,
            queue_max: WAITING_MAX,
            cooldown: Cooldown::NONE,
        };
        let writer = Arc::new(EventWriter {
            suppressions,
            sealer,
        });
        Self {
            batcher: Batcher::start("provider_events", settings, move |requests| {
                let writer = Arc::clone(&writer);
                async move { writer.write(requests).await }
            }),
            quota: AdmissionQuota::new(),
            own_links,
            clock,
        }
    }

    /// Records a request. When this returns counts, all events are committed.
    ///
    /// # Errors
    /// Why it was not recorded. The request may then be sent again, in part or whole;
    /// parts that were still queued are recorded all the same.
    pub async fn record(
        &self,
        source: EventSource,
        origin: Origin,
        mut batch: EventBatch,
    ) -> Result<RecordCounts, RecordRefusal> {
        self.restore_original_links(&mut batch);
        let (account_id, unreadable) = (source.account_id, batch.unreadable);
        let provider = source.provider_type.as_str();
        let (source, origin) = (Arc::new(source), Arc::new(origin));
        let mut counts = RecordCounts::default();
        for batch in split(batch) {
            let request = Request {
                source: Arc::clone(&source),
                origin: Arc::clone(&origin),
                batch,
                _permit: None,
            };
            counts.add(self.record_part(request).await?);
        }
        instruments::unusable_events(provider, counts.unmatched, unreadable);
        if counts.unmatched > 0 {
            info!(
                account.id = %account_id,
                events = counts.unmatched,
                "Account {account_id} reported events of unknown messages"
            );
        }
        if unreadable > 0 {
            warn!(
                account.id = %account_id,
                items = unreadable,
                "Account {account_id} sent items that cannot be read"
            );
        }
        Ok(counts)
    }

    /// Replaces Waypost's tracked links by the original URLs: signed links are not shown
    /// to customers.
    fn restore_original_links(&self, batch: &mut EventBatch) {
        let now = self.clock.now();
        for event in &mut batch.events {
            if let Some(url) = event.details.get_mut("url")
                && let Some(original) = url
                    .as_str()
                    .and_then(|url| self.own_links.resolve(url, now))
            {
                *url = original.into();
            }
        }
    }

    async fn record_part(&self, request: Request) -> Result<RecordCounts, RecordRefusal> {
        let recording = async {
            let weight = request.batch.events.len().max(1);
            let permit = self.quota.acquire(request.source.account_id, weight).await;
            let request = Request {
                _permit: permit,
                ..request
            };
            self.batcher.run(request, weight).await
        };
        match timeout(WAIT_MAX, recording).await {
            Ok(recorded) => recorded?.ok_or(RecordRefusal::Replayed),
            Err(elapsed) => Err(Fault::unavailable(DOING, elapsed).into()),
        }
    }
}

/// Splits a request into parts of [`BATCH_EVENTS_MAX`] events. A request without events
/// is one part: its signature is recorded as used.
fn split(batch: EventBatch) -> Vec<EventBatch> {
    let mut events = batch.events;
    let mut parts = Vec::new();
    loop {
        let rest = events.split_off(events.len().min(BATCH_EVENTS_MAX));
        parts.push(EventBatch {
            events,
            unreadable: if parts.is_empty() {
                batch.unreadable
            } else {
                0
            },
            guard: batch.guard.clone(),
        });
        if rest.is_empty() {
            return parts;
        }
        events = rest;
    }
}
