//! Recording sightings. Whoever fetched a pixel or followed a link waits for it, so
//! it is short: sightings that come together share a transaction, and nobody waits
//! longer than a second. While Postgres is away nobody waits; what can be kept in
//! memory is recorded when it is back within a minute, and lost otherwise. Where
//! nobody knows whether a transaction was committed it is tried again with the same
//! ids, and what is there by then is left out.
//!
//! What one recipient leaves in the history is bounded, since anybody may call a
//! link a million times: of what is fetched again within ten seconds nothing is
//! recorded (each process by itself), and of each kind, by people and by machines,
//! no more than [`KEPT_MAX`]. A machine that follows every link ten times does not
//! hide the person that comes after it.
//!
//! A person who opens a message or follows a link has it: the recipient is DELIVERED
//! where it was SENT. A machine proves nothing: gateways fetch what they then refuse.
//! A click makes no open; programs that load no images follow links all the same.

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
use store::{HistoryCounts, LockedHistory, OpenedRecipient};

/// Events of one recipient and one kind that are kept.
pub const KEPT_MAX: i16 = 100;
/// What is fetched again within this time is the same.
const SAME_WITHIN: TimeDelta = TimeDelta::seconds(10);
/// How long whoever asks waits for the commit.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Transactions under way at the same time.
const LANES: usize = 1;
/// Entries with which another transaction begins beside one that is under way.
const CROWD: usize = 32;
/// Sightings in one transaction.
const GROUP_MAX: usize = 500;
/// Sightings kept in memory: 10 MiB or so with the longest URLs.
const WAITING_MAX: usize = 4_096;
/// How long a sighting is kept while Postgres is away, and between tries.
const KEPT_FOR: Duration = Duration::from_secs(60);
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Sightings remembered, to know them again. At 24 bytes and what the cache adds.
const REMEMBERED_MAX: u64 = 100_000;

const RECORD: &str = "record opens and clicks";

/// Records sightings. Cheap to clone.
#[derive(Clone)]
pub struct TrackingRecorder {
    group: Batcher<TrackingHit, ()>,
    recent: Cache<u64, Timestamp>,
    is_away: Arc<AtomicBool>,
}

impl TrackingRecorder {
    /// Starts the lane.
    #[must_use]
    pub fn start(pool: PgPool, ids: Ids) -> Self {
        let is_away = Arc::new(AtomicBool::new(false));
        let settings = BatcherSettings {
            flushes_max: LANES,
            batch_weight_max: GROUP_MAX,
            batch_min: CROWD,
            queue_max: WAITING_MAX,
            cooldown: Cooldown::NONE,
        };
        let writer = Arc::new(HitWriter {
            pool,
            ids,
            is_away: Arc::clone(&is_away),
        });
        let recent = Cache::builder()
            .max_capacity(REMEMBERED_MAX)
            .time_to_live(SAME_WITHIN.to_std().unwrap_or_default());
        Self {
            group: Batcher::start("sightings", settings, move |sightings| {
                let writer = Arc::clone(&writer);
                async move { writer.write(sightings).await }
            }),
            recent: recent.build(),
            is_away,
        }
    }

    /// Records a sighting, if it can be done soon; afterwards otherwise.
    pub async fn record(&self, sighting: TrackingHit) {
        if self.is_repeated(&sighting).await {
            return;
        }
        let wait = match self.is_away.load(Ordering::Relaxed) {
            true => Duration::ZERO,
            false => WAIT_MAX,
        };
        // Handed in before the first wait, so that who gives up, or is gone, leaves
        // it to the lane. What comes of it is the lane's to report.
        let _late = timeout(wait, self.group.run(sighting, 1)).await;
    }

    /// Whether the same was seen a moment ago.
    async fn is_repeated(&self, sighting: &TrackingHit) -> bool {
        let mut hasher = DefaultHasher::new();
        let copy = &sighting.copy;
        let what = (&sighting.url, sighting.is_bot);
        (copy.message_id, copy.position, what).hash(&mut hasher);
        let is_same = |last: Timestamp| sighting.at - last < SAME_WITHIN;
        let entry = self.recent.entry(hasher.finish());
        let change = entry.and_compute_with(|last| {
            let is_repeated = last.is_some_and(|last| is_same(last.into_value()));
            let operation = match is_repeated {
                true => Op::Nop,
                false => Op::Put(sighting.at),
            };
            std::future::ready(operation)
        });
        matches!(change.await, CompResult::Unchanged(_))
    }
}

struct HitWriter {
    pool: PgPool,
    ids: Ids,
    is_away: Arc<AtomicBool>,
}

/// A sighting with the ids of its events, the same however often it is tried.
struct Noted {
    sighting: TrackingHit,
    /// Of the event that says that the copy arrived, if this one proves it. Drawn first:
    /// a history says DELIVERED before the others of the same moment.
    delivered_id: EventId,
    event_id: EventId,
}

impl HitWriter {
    /// Records what it can and answers for all: nobody does anything else then.
    async fn write(&self, sightings: Vec<TrackingHit>) -> Vec<Result<(), Fault>> {
        let answers = sightings.iter().map(|_| Ok(())).collect();
        let noted = sightings.into_iter().map(|sighting| Noted {
            sighting,
            delivered_id: self.ids.next(),
            event_id: self.ids.next(),
        });
        let noted: Vec<Noted> = noted.collect();
        match self.write_until_known(&noted, false).await {
            Ok(()) => {}
            Err(fault) if fault.kind() == FaultKind::Internal && noted.len() > 1 => {
                // One that Postgres refuses does not cost the others.
                for one in noted.chunks(1) {
                    report(self.write_until_known(one, true).await, 1);
                }
            }
            Err(fault) => report(Err(fault), noted.len()),
        }
        answers
    }

    /// Tries until Postgres has answered, or for too long.
    async fn write_until_known(&self, noted: &[Noted], is_again: bool) -> Result<(), Fault> {
        let begun = Instant::now();
        let mut is_again = is_again;
        loop {
            let written = db::bounded(RECORD, self.try_write(noted, is_again)).await;
            let is_away = matches!(&written, Err(fault) if fault.kind() == FaultKind::Unavailable);
            self.is_away.store(is_away, Ordering::Relaxed);
            if !is_away || begun.elapsed() > KEPT_FOR {
                return written;
            }
            is_again = true;
            sleep(AGAIN_AFTER).await;
        }
    }

    async fn try_write(&self, noted: &[Noted], is_again: bool) -> Result<(), Fault> {
        let mut transaction = db::begin(&self.pool, RECORD).await?;
        record(&mut transaction, noted, is_again).await?;
        transaction.commit().await.or_fault(RECORD)
    }
}

fn report(written: Result<(), Fault>, count: usize) {
    match written {
        Ok(()) => {}
        Err(fault) if fault.kind() == FaultKind::Unavailable => {
            warn_seldom!(
                count,
                cause = fault.chain(),
                "Opens and clicks are lost: Postgres was away for too long"
            );
        }
        Err(fault) => error!(
            count,
            cause = fault.chain(),
            "Opens and clicks could not be recorded"
        ),
    }
}

/// Records sightings, in a transaction of the caller. Those of recipients that are
/// removed, and those beyond the bound, are left out; so are those that an earlier try
/// recorded, where this is not the first.
async fn record(
    connection: &mut PgConnection,
    noted: &[Noted],
    is_again: bool,
) -> Result<(), Fault> {
    let mut seen: BTreeMap<(MessageId, i32, OrganizationId), Vec<&Noted>> = BTreeMap::new();
    for one in noted {
        let copy = one.sighting.copy;
        let of = (copy.message_id, copy.position, copy.organization_id);
        seen.entry(of).or_default().push(one);
    }
    let wanted = seen.keys();
    let wanted: Vec<_> = wanted
        .map(|(message, position, of)| (*of, *message, *position))
        .collect();
    let mut changed = Vec::new();
    let mut events = Vec::new();
    let mut read = Vec::new();
    let locked = store::lock(&mut *connection, &wanted).await?;
    // Behind the locks: an earlier try that is not over holds them.
    let recorded = match is_again {
        true => recorded(&mut *connection, noted).await?,
        false => HashSet::new(),
    };
    for mut kept in locked {
        let key = (kept.message_id, kept.position, kept.organization_id);
        let Some(seen) = seen.get(&key) else {
            continue;
        };
        // Before the others of the same moment: a history says DELIVERED first.
        read.extend(reading(&kept, seen));
        let before = kept.counts;
        let new = seen.iter().filter(|one| !recorded.contains(&one.event_id));
        for one in new {
            let is_kept = keep(&mut kept.counts, &one.sighting);
            events.extend(is_kept.then(|| event(&kept, one)));
        }
        if kept.counts != before {
            changed.push(kept);
        }
    }
    if !changed.is_empty() {
        store::update_counts(&mut *connection, &changed).await?;
        event::store::insert(&mut *connection, &events).await?;
    }
    deliver(connection, &read).await
}

/// The events that are there already.
async fn recorded(
    connection: &mut PgConnection,
    noted: &[Noted],
) -> Result<HashSet<EventId>, Fault> {
    let events: Vec<_> = noted
        .iter()
        .map(|one| (one.sighting.copy.message_id, one.event_id))
        .collect();
    store::recorded(connection, &events).await
}

/// Whether a person was seen with a copy of which nobody knew that it arrived.
fn reading(kept: &LockedHistory, seen: &[&Noted]) -> Option<OpenedRecipient> {
    let event_id = seen.first()?.delivered_id;
    let person = seen.iter().find(|one| !one.sighting.is_bot)?;
    let at = person.sighting.at.max(kept.accepted_at);
    (kept.status == MessageStatus::Sent).then_some(OpenedRecipient {
        organization_id: kept.organization_id,
        message_id: kept.message_id,
        position: kept.position,
        at,
        event_id,
    })
}

/// Counts a sighting, if there is room for it.
fn keep(counts: &mut HistoryCounts, sighting: &TrackingHit) -> bool {
    let count = match (&sighting.url, sighting.is_bot) {
        (None, false) => &mut counts.opens,
        (None, true) => &mut counts.machine_opens,
        (Some(_), false) => &mut counts.clicks,
        (Some(_), true) => &mut counts.machine_clicks,
    };
    let has_room = *count < KEPT_MAX;
    *count += i16::from(has_room);
    has_room
}

fn event(kept: &LockedHistory, noted: &Noted) -> NewEvent {
    let sighting = &noted.sighting;
    let mut data = json!({ "isBot": sighting.is_bot });
    if let Some(url) = &sighting.url {
        data["url"] = json!(url);
    }
    if let Some(user_agent) = &sighting.user_agent {
        data["userAgent"] = json!(user_agent);
    }
    // Clocks of different machines may disagree: nothing happens to a message before
    // it was accepted.
    let occurred_at = sighting.at.max(kept.accepted_at);
    NewEvent {
        id: noted.event_id,
        message_id: kept.message_id,
        organization_id: kept.organization_id,
        position: kept.position,
        event_type: sighting.event_type(),
        occurred_at,
        data: Some(data),
    }
}

/// Moves recipients that read their copies to DELIVERED, with an event that says so.
async fn deliver(connection: &mut PgConnection, read: &[OpenedRecipient]) -> Result<(), Fault> {
    if read.is_empty() {
        return Ok(());
    }
    store::update_delivered(&mut *connection, read).await?;
    let events = read.iter().map(|read| NewEvent {
        id: read.event_id,
        message_id: read.message_id,
        organization_id: read.organization_id,
        position: read.position,
        event_type: EventType::Delivered,
        occurred_at: read.at,
        data: Some(json!({ "isImplied": true })),
    });
    event::store::insert(&mut *connection, &events.collect::<Vec<_>>()).await?;
    let messages: Vec<MessageId> = read.iter().map(|read| read.message_id).collect();
    refresh_aggregates(connection, &messages).await
}
