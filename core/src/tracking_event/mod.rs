//! Records tracking hits as events. The HTTP request waits for the recording, so it must be
//! short: concurrent hits share one transaction, and a request waits for a second at most.
//! While Postgres is unavailable requests do not wait. The hits stay in memory for up to a
//! minute and are recorded if Postgres returns by then; otherwise they are lost. If the
//! result of a commit is unknown, the transaction is retried with the same event ids, and
//! events that already exist are skipped.
//!
//! The number of events of a recipient is bounded, because anybody can request a link a
//! million times. A repetition within ten seconds is not recorded (each process checks by
//! itself). Opens and clicks by people and by bots are recorded up to
//! [`EVENTS_PER_KIND_MAX`] each, so that the hits of a bot do not displace later hits of a
//! person.
//!
//! An open or click by a person proves delivery: a SENT recipient becomes DELIVERED. A hit
//! by a bot proves nothing, because gateways also fetch messages that they then reject. A
//! click does not imply an open: mail programs that load no images can still follow links.

mod store;

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::TimeDelta;
use moka::future::Cache;
use moka::ops::compute::{CompResult, Op};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};
use tracing::error;

use crate::batcher::{Batcher, BatcherSettings, Cooldown};
use crate::clock::Timestamp;
use crate::db::{self, OrFault, PgConnection, PgPool};
use crate::event::{self, EventType, NewEvent};
use crate::fault::{Fault, FaultKind};
use crate::ids::{EventId, Ids, MessageId, OrganizationId};
use crate::message::MessageStatus;
use crate::message::store::refresh_aggregates;
use crate::tracking::TrackingHit;
use crate::warn_seldom;
use store::{ImpliedDelivery, LockedHistory, RecordedCounts};

/// Recorded events of one recipient and one kind.
pub const EVENTS_PER_KIND_MAX: i16 = 100;
/// A second hit within this time is a repetition and is not recorded.
const REPEAT_WINDOW: TimeDelta = TimeDelta::seconds(10);
/// How long an HTTP request waits for the commit.
const CALLER_WAIT_MAX: Duration = Duration::from_secs(1);
/// Concurrent transactions.
const TRANSACTIONS_MAX: usize = 1;
/// Waiting hits at which another transaction starts beside a running one.
const BATCH_MIN: usize = 32;
/// Hits in one transaction.
const BATCH_MAX: usize = 500;
/// Hits in memory: about 10 MiB with the longest URLs.
const WAITING_MAX: usize = 4_096;
/// How long a hit is retried while Postgres is unavailable.
const RETRY_FOR: Duration = Duration::from_secs(60);
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Recent hits in memory to detect repetitions, at 24 bytes and the cache's overhead.
const RECENT_MAX: u64 = 100_000;

const RECORD: &str = "record opens and clicks";

/// Records tracking hits. Cheap to clone.
#[derive(Clone)]
pub struct TrackingRecorder {
    batcher: Batcher<TrackingHit, ()>,
    recent: Cache<u64, Timestamp>,
    is_unavailable: Arc<AtomicBool>,
}

impl TrackingRecorder {
    /// Starts the batcher.
    #[must_use]
    pub fn start(pool: PgPool, ids: Ids) -> Self {
        let is_unavailable = Arc::new(AtomicBool::new(false));
        let settings = BatcherSettings {
            flushes_max: TRANSACTIONS_MAX,
            batch_weight_max: BATCH_MAX,
            batch_min: BATCH_MIN,
            queue_max: WAITING_MAX,
            cooldown: Cooldown::NONE,
        };
        let writer = Arc::new(HitWriter {
            pool,
            ids,
            is_unavailable: Arc::clone(&is_unavailable),
        });
        let recent = Cache::builder()
            .max_capacity(RECENT_MAX)
            .time_to_live(REPEAT_WINDOW.to_std().unwrap_or_default());
        Self {
            batcher: Batcher::start("tracking_hits", settings, move |hits| {
                let writer = Arc::clone(&writer);
                async move { writer.write(hits).await }
            }),
            recent: recent.build(),
            is_unavailable,
        }
    }

    /// Records a hit. Returns when it is committed or after `CALLER_WAIT_MAX`; the
    /// recording then continues in the background.
    pub async fn record(&self, hit: TrackingHit) {
        if self.is_repeated(&hit).await {
            return;
        }
        let wait = match self.is_unavailable.load(Ordering::Relaxed) {
            true => Duration::ZERO,
            false => CALLER_WAIT_MAX,
        };
        // The first poll hands the hit to the batcher, so a timeout or a cancelled request
        // does not lose it. The writer logs failures.
        let _late = timeout(wait, self.batcher.run(hit, 1)).await;
    }

    /// Whether the same hit was recorded within [`REPEAT_WINDOW`].
    async fn is_repeated(&self, hit: &TrackingHit) -> bool {
        let mut hasher = DefaultHasher::new();
        let recipient = &hit.recipient;
        let kind = (&hit.url, hit.is_bot);
        (recipient.message_id, recipient.position, kind).hash(&mut hasher);
        let is_recent = |last: Timestamp| hit.at - last < REPEAT_WINDOW;
        let entry = self.recent.entry(hasher.finish());
        let change = entry.and_compute_with(|last| {
            let is_repeated = last.is_some_and(|last| is_recent(last.into_value()));
            let operation = match is_repeated {
                true => Op::Nop,
                false => Op::Put(hit.at),
            };
            std::future::ready(operation)
        });
        matches!(change.await, CompResult::Unchanged(_))
    }
}

struct HitWriter {
    pool: PgPool,
    ids: Ids,
    is_unavailable: Arc<AtomicBool>,
}

/// A hit with the ids of its events. All retries use the same ids.
struct PendingHit {
    hit: TrackingHit,
    /// The id of the DELIVERED event, if this hit proves delivery. It is generated before
    /// `event_id`, so that the history lists DELIVERED before the open or click.
    delivered_id: EventId,
    event_id: EventId,
}

impl HitWriter {
    /// Records the hits and logs failures. Always returns `Ok` for each, because callers
    /// cannot do anything about a failure.
    async fn write(&self, hits: Vec<TrackingHit>) -> Vec<Result<(), Fault>> {
        let results = hits.iter().map(|_| Ok(())).collect();
        let pending = hits.into_iter().map(|hit| PendingHit {
            hit,
            delivered_id: self.ids.next(),
            event_id: self.ids.next(),
        });
        let pending: Vec<PendingHit> = pending.collect();
        match self.write_with_retries(&pending, false).await {
            Ok(()) => {}
            Err(fault) if fault.kind() == FaultKind::Internal && pending.len() > 1 => {
                // One by one, so that a hit that Postgres rejects does not lose the others.
                for single in pending.chunks(1) {
                    log_failure(self.write_with_retries(single, true).await, 1);
                }
            }
            Err(fault) => log_failure(Err(fault), pending.len()),
        }
        results
    }

    /// Retries while Postgres is unavailable, for up to [`RETRY_FOR`].
    async fn write_with_retries(
        &self,
        pending: &[PendingHit],
        is_retry: bool,
    ) -> Result<(), Fault> {
        let started = Instant::now();
        let mut is_retry = is_retry;
        loop {
            let written = db::bounded(RECORD, self.try_write(pending, is_retry)).await;
            let is_unavailable =
                matches!(&written, Err(fault) if fault.kind() == FaultKind::Unavailable);
            self.is_unavailable.store(is_unavailable, Ordering::Relaxed);
            if !is_unavailable || started.elapsed() > RETRY_FOR {
                return written;
            }
            is_retry = true;
            sleep(RETRY_INTERVAL).await;
        }
    }

    async fn try_write(&self, pending: &[PendingHit], is_retry: bool) -> Result<(), Fault> {
        let mut transaction = db::begin(&self.pool, RECORD).await?;
        record(&mut transaction, pending, is_retry).await?;
        transaction.commit().await.or_fault(RECORD)
    }
}

fn log_failure(written: Result<(), Fault>, count: usize) {
    match written {
        Ok(()) => {}
        Err(fault) if fault.kind() == FaultKind::Unavailable => {
            warn_seldom!(
                count,
                cause = fault.chain(),
                "Lost opens and clicks: Postgres was unavailable for too long"
            );
        }
        Err(fault) => error!(
            count,
            cause = fault.chain(),
            "Could not record opens and clicks"
        ),
    }
}

/// Records hits in the caller's transaction. Skips hits of removed recipients, hits beyond
/// the limit and, in a retry, hits that an earlier try recorded.
async fn record(
    connection: &mut PgConnection,
    pending: &[PendingHit],
    is_retry: bool,
) -> Result<(), Fault> {
    let mut by_recipient: BTreeMap<(OrganizationId, MessageId, i32), Vec<&PendingHit>> =
        BTreeMap::new();
    for pending_hit in pending {
        let recipient = pending_hit.hit.recipient;
        let key = (
            recipient.organization_id,
            recipient.message_id,
            recipient.position,
        );
        by_recipient.entry(key).or_default().push(pending_hit);
    }
    let keys: Vec<_> = by_recipient.keys().copied().collect();
    let mut changed = Vec::new();
    let mut events = Vec::new();
    let mut deliveries = Vec::new();
    let locked = store::lock(&mut *connection, &keys).await?;
    // Only after the locks: an earlier try that still runs holds them.
    let recorded = match is_retry {
        true => recorded(&mut *connection, pending).await?,
        false => HashSet::new(),
    };
    for mut recipient in locked {
        let key = (
            recipient.organization_id,
            recipient.message_id,
            recipient.position,
        );
        let Some(hits) = by_recipient.get(&key) else {
            continue;
        };
        deliveries.extend(implied_delivery(&recipient, hits));
        let before = recipient.counts;
        let new = hits.iter().filter(|hit| !recorded.contains(&hit.event_id));
        for hit in new {
            let is_counted = count_hit(&mut recipient.counts, &hit.hit);
            events.extend(is_counted.then(|| event(&recipient, hit)));
        }
        if recipient.counts != before {
            changed.push(recipient);
        }
    }
    if !changed.is_empty() {
        store::update_counts(&mut *connection, &changed).await?;
        event::store::insert(&mut *connection, &events).await?;
    }
    deliver(connection, &deliveries).await
}

/// The event ids that an earlier try has inserted.
async fn recorded(
    connection: &mut PgConnection,
    pending: &[PendingHit],
) -> Result<HashSet<EventId>, Fault> {
    let events: Vec<_> = pending
        .iter()
        .map(|pending| (pending.hit.recipient.message_id, pending.event_id))
        .collect();
    store::list_recorded(connection, &events).await
}

/// The delivery that a person's hit proves, if the recipient is still SENT.
fn implied_delivery(recipient: &LockedHistory, hits: &[&PendingHit]) -> Option<ImpliedDelivery> {
    // The first id of all hits, so that the history lists DELIVERED first.
    let event_id = hits.first()?.delivered_id;
    let by_person = hits.iter().find(|pending| !pending.hit.is_bot)?;
    let at = by_person.hit.at.max(recipient.accepted_at);
    (recipient.status == MessageStatus::Sent).then_some(ImpliedDelivery {
        organization_id: recipient.organization_id,
        message_id: recipient.message_id,
        position: recipient.position,
        at,
        event_id,
    })
}

/// Counts a hit. False if the limit is reached.
fn count_hit(counts: &mut RecordedCounts, hit: &TrackingHit) -> bool {
    let count = match (&hit.url, hit.is_bot) {
        (None, false) => &mut counts.opens,
        (None, true) => &mut counts.bot_opens,
        (Some(_), false) => &mut counts.clicks,
        (Some(_), true) => &mut counts.bot_clicks,
    };
    let is_below_max = *count < EVENTS_PER_KIND_MAX;
    *count += i16::from(is_below_max);
    is_below_max
}

fn event(recipient: &LockedHistory, pending: &PendingHit) -> NewEvent {
    let hit = &pending.hit;
    let mut data = json!({ "isBot": hit.is_bot });
    if let Some(url) = &hit.url {
        data["url"] = json!(url);
    }
    if let Some(user_agent) = &hit.user_agent {
        data["userAgent"] = json!(user_agent);
    }
    // Clocks of different machines differ. An event must not be earlier than its message.
    let occurred_at = hit.at.max(recipient.accepted_at);
    NewEvent {
        id: pending.event_id,
        message_id: recipient.message_id,
        organization_id: recipient.organization_id,
        position: recipient.position,
        event_type: hit.event_type(),
        occurred_at,
        data: Some(data),
    }
}

/// Sets the recipients to DELIVERED and inserts their events.
async fn deliver(
    connection: &mut PgConnection,
    deliveries: &[ImpliedDelivery],
) -> Result<(), Fault> {
    if deliveries.is_empty() {
        return Ok(());
    }
    store::update_delivered(&mut *connection, deliveries).await?;
    let events = deliveries.iter().map(|delivery| NewEvent {
        id: delivery.event_id,
        message_id: delivery.message_id,
        organization_id: delivery.organization_id,
        position: delivery.position,
        event_type: EventType::Delivered,
        occurred_at: delivery.at,
        data: Some(json!({ "isImplied": true })),
    });
    event::store::insert(&mut *connection, &events.collect::<Vec<_>>()).await?;
    let messages: Vec<MessageId> = deliveries
        .iter()
        .map(|delivery| delivery.message_id)
        .collect();
    refresh_aggregates(connection, &messages).await
}
