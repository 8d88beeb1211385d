//! Recording what providers tell: each thing once, however often and in whatever
//! order it is told.
//!
//! An event is about a *copy*: one recipient of one message. It is found by our ids,
//! which must belong together and to the organization of the account that tells,
//! else by the id that the provider gave it. What is found nowhere is acknowledged
//! and counted. The events of a copy are kept beside its message, so one that is
//! told again meets itself there.
//!
//! Requests that come while a transaction is under way share the next one, whoever's
//! they are; the `writer` makes it. One account's fill no more than its `window` of
//! what waits, so that a busy one keeps nobody waiting for long. What Postgres
//! refuses of a request costs the others nothing.
//!
//! What follows from the news (`progress`, pure) depends on the set of events and
//! not on their order. What a provider tells of a copy also proves that it took it:
//! a copy whose answer was lost is not sent again after that, and the worker that
//! comes with the answer later finds it settled.
//!
//! Locks are taken in the order of all who settle: signatures, events, attempts,
//! recipients, outbox (only rows that nobody else has), messages, suppressions; rows
//! of one kind in the order of their ids. A worker's lease is never waited for.

mod admission_quota;
mod apply;
mod counts;
mod recipient_state;
mod recipients;
mod source;
mod store;
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
use crate::tracking::link::OwnLinks;
pub use source::EventSource;

use admission_quota::{AdmissionPermit, AdmissionQuota};
use writer::EventWriter;

/// Transactions under way at once, in one process. While one is being committed the
/// other has Postgres' ear; more of them make smaller groups.
const LANES: usize = 2;
/// Connections for them: one each, and one that is on its way back to its pool.
pub const CONNECTIONS: u32 = 3;
/// Requests with which another transaction begins beside one that is under way.
const CROWD: usize = 16;
/// Events that share a transaction, roughly. The largest request has several times as
/// many and is recorded in parts.
const EVENTS_MAX: usize = 400;
/// Requests that may wait for a transaction; beyond it they wait to wait.
const WAITING_MAX: usize = 4_096;
/// How long a request waits in all. Providers wait about as long for an answer.
const WAIT_MAX: Duration = Duration::from_secs(30);

const DOING: &str = "record provider events";

/// A genuine request.
#[derive(Debug)]
pub struct EventBatch {
    pub events: Vec<ProviderEvent>,
    /// Items of it that could not be read.
    pub unreadable: usize,
    /// What must not come with another content.
    pub guard: Option<ReplayGuard>,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordCounts {
    pub recorded: usize,
    /// Events that were known already.
    pub repeated: usize,
    /// Events about a copy that is not there.
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
    /// Its signature came with another content before.
    Replayed,
    /// We failed; nothing is recorded, or the part before is and will be known.
    Fault(Fault),
}

impl From<Fault> for RecordRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Records events. Cheap to clone.
#[derive(Clone)]
pub struct EventRecorder {
    group: Batcher<Request, Option<RecordCounts>>,
    windows: AdmissionQuota,
    own: OwnLinks,
    clock: Clock,
}

/// A request, or a part of a large one, that waits for its transaction.
struct Request {
    teller: Arc<EventSource>,
    origin: Arc<Origin>,
    news: EventBatch,
    /// Given back when it has been recorded, whoever still waits for that.
    _place: Option<AdmissionPermit>,
}

impl EventRecorder {
    /// Starts the lanes, which record through the pool, the clock and the ids of
    /// `suppressions`.
    #[must_use]
    pub fn start(suppressions: Suppressions, sealer: Sealer, own: OwnLinks) -> Self {
        let clock = suppressions.clock.clone();
        let settings = BatcherSettings {
            flushes_max: LANES,
            batch_weight_max: EVENTS_MAX,
            batch_min: CROWD,
            queue_max: WAITING_MAX,
            cooldown: Cooldown::NONE,
        };
        let writer = Arc::new(EventWriter {
            suppressions,
            sealer,
        });
        Self {
            group: Batcher::start("provider_events", settings, move |requests| {
                let writer = Arc::clone(&writer);
                async move { writer.write(requests).await }
            }),
            windows: AdmissionQuota::new(),
            own,
            clock,
        }
    }

    /// Records a request. When this returns a tally, all of it is committed.
    ///
    /// # Errors
    /// Why it was not recorded. It may be told again then, in part or whole; what
    /// still waited for its turn is recorded all the same.
    pub async fn record(
        &self,
        teller: EventSource,
        origin: Origin,
        mut news: EventBatch,
    ) -> Result<RecordCounts, RecordRefusal> {
        self.open_links(&mut news);
        let (account_id, unreadable) = (teller.account_id, news.unreadable);
        let (teller, origin) = (Arc::new(teller), Arc::new(origin));
        let mut tally = RecordCounts::default();
        for news in parts(news) {
            let request = Request {
                teller: Arc::clone(&teller),
                origin: Arc::clone(&origin),
                news,
                _place: None,
            };
            tally.add(self.record_part(request).await?);
        }
        if tally.unmatched > 0 {
            info!(
                account.id = %account_id,
                events = tally.unmatched,
                "Account {account_id} told of messages that are not there"
            );
        }
        if unreadable > 0 {
            warn!(
                account.id = %account_id,
                items = unreadable,
                "Account {account_id} told something that cannot be read"
            );
        }
        Ok(tally)
    }

    /// Shows the author's URL in place of a tracked link of ours. What is signed by us is
    /// shown to nobody.
    fn open_links(&self, news: &mut EventBatch) {
        let now = self.clock.now();
        for event in &mut news.events {
            if let Some(url) = event.details.get_mut("url")
                && let Some(shown) = url.as_str().and_then(|url| self.own.resolve(url, now))
            {
                *url = shown.into();
            }
        }
    }

    async fn record_part(&self, request: Request) -> Result<RecordCounts, RecordRefusal> {
        let recording = async {
            let weight = request.news.events.len().max(1);
            let place = self.windows.enter(request.teller.account_id, weight).await;
            let request = Request {
                _place: place,
                ..request
            };
            self.group.run(request, weight).await
        };
        match timeout(WAIT_MAX, recording).await {
            Ok(recorded) => recorded?.ok_or(RecordRefusal::Replayed),
            Err(elapsed) => Err(Fault::unavailable(DOING, elapsed).into()),
        }
    }
}

/// A request in parts of [`EVENTS_MAX`] events. One without events is a part too: it
/// still uses its signature up.
fn parts(news: EventBatch) -> Vec<EventBatch> {
    let mut events = news.events;
    let mut parts = Vec::new();
    loop {
        let rest = events.split_off(events.len().min(EVENTS_MAX));
        parts.push(EventBatch {
            events,
            unreadable: if parts.is_empty() { news.unreadable } else { 0 },
            guard: news.guard.clone(),
        });
        if rest.is_empty() {
            return parts;
        }
        events = rest;
    }
}
