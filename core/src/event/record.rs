//! Recording what providers tell: each thing once, however often and in whatever
//! order it is told, and all of a request in one transaction.
//!
//! An event is about a *copy*: one recipient of one message. It is found by our ids,
//! which must belong together and to the organization of the account that tells,
//! else by the id that the provider gave it. What is found nowhere is acknowledged
//! and counted. The events of a copy are kept beside its message, so one that is
//! told again meets itself there.
//!
//! What follows from the news (`progress`, pure) depends on the set of events and
//! not on their order. What a provider tells of a copy also proves that it took it:
//! a copy whose answer was lost is not sent again after that, and the worker that
//! comes with the answer later finds it settled.
//!
//! Locks are taken in the order of all who settle: attempts, recipients, outbox
//! (only rows that nobody else has), messages; rows of one kind in the order of
//! their ids. A worker's lease is never waited for.

mod progress;
mod store;
mod teller;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tracing::{info, warn};

use crate::address::EmailAddress;
use crate::audit::Origin;
use crate::clock::{Clock, Timestamp};
use crate::crypto::seal::{Sealed, Sealer};
use crate::db::{self, OrFault, PgConnection, PgPool};
use crate::event::{self, NewEvent};
use crate::fault::Fault;
use crate::ids::{EventId, Ids, MessageId, OrganizationId};
use crate::message::MessageStatus;
use crate::message::store::refresh_aggregates;
use crate::provider::event::{BounceType, Happening, ProviderEvent};
use crate::provider::inbound::ReplayGuard;
use crate::suppression::Suppressions;
use crate::suppression::told::{ToldAddress, ToldReason};
pub use teller::Teller;

use progress::{Progress, Standing, Told};
use store::{Change, Clue, EventHash, FoundCopy, Kept, Place};

/// Events recorded in one transaction. The largest request has a few times as many.
const EVENTS_MAX: usize = 5_000;
/// Transactions under way at once, in one process: the others of its connections
/// are for its callers.
const AT_ONCE: usize = 4;
/// How often a transaction is tried that Postgres chose to end a deadlock.
const TRIES_MAX: u32 = 3;

const DOING: &str = "record provider events";

/// A genuine request.
#[derive(Debug)]
pub struct News<'a> {
    /// What it told.
    pub events: &'a [ProviderEvent],
    /// Items of it that could not be read.
    pub unreadable: usize,
    /// What must not come with another content.
    pub guard: Option<&'a ReplayGuard>,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events recorded.
    pub recorded: usize,
    /// Events that were known already.
    pub repeated: usize,
    /// Events about a copy that is not there.
    pub unmatched: usize,
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
pub struct Recorder {
    pool: PgPool,
    suppressions: Suppressions,
    sealer: Sealer,
    clock: Clock,
    ids: Ids,
    turns: Arc<Semaphore>,
}

/// An event and the copy that it is about.
struct Matched<'a> {
    event: &'a ProviderEvent,
    copy: FoundCopy,
    hash: EventHash,
}

impl Recorder {
    /// Records through the pool, the clock and the ids of `suppressions`.
    #[must_use]
    pub fn new(suppressions: Suppressions, sealer: Sealer) -> Self {
        Self {
            pool: suppressions.pool.clone(),
            clock: suppressions.clock.clone(),
            ids: suppressions.ids.clone(),
            suppressions,
            sealer,
            turns: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// Records a request. When this returns a tally, all of it is committed.
    ///
    /// # Errors
    /// Why it was not recorded. It may be told again then, in part or whole.
    pub async fn record(
        &self,
        teller: &Teller,
        origin: &Origin,
        news: &News<'_>,
    ) -> Result<Tally, RecordRefusal> {
        let mut tally = Tally::default();
        // A request without events still uses its signature up.
        let nothing: &[ProviderEvent] = &[];
        let parts: Vec<&[ProviderEvent]> = match news.events {
            [] => vec![nothing],
            events => events.chunks(EVENTS_MAX).collect(),
        };
        for (nth, events) in parts.into_iter().enumerate() {
            let part = News {
                events,
                unreadable: if nth == 0 { news.unreadable } else { 0 },
                guard: news.guard,
            };
            let part = self.record_part(teller, origin, &part).await?;
            tally.recorded += part.recorded;
            tally.repeated += part.repeated;
            tally.unmatched += part.unmatched;
        }
        let account_id = teller.account_id;
        if tally.unmatched > 0 {
            info!(
                account.id = %account_id,
                events = tally.unmatched,
                "Account {account_id} told of messages that are not there"
            );
        }
        if news.unreadable > 0 {
            warn!(
                account.id = %account_id,
                items = news.unreadable,
                "Account {account_id} told something that cannot be read"
            );
        }
        Ok(tally)
    }

    async fn record_part(
        &self,
        teller: &Teller,
        origin: &Origin,
        news: &News<'_>,
    ) -> Result<Tally, RecordRefusal> {
        let recording = async {
            let turn = self.turns.acquire().await;
            let _turn = turn.map_err(|closed| Fault::unavailable(DOING, closed))?;
            let matched = self.find(teller, news.events).await?;
            let unmatched = news.events.len() - matched.len();
            let suspects: Vec<_> = matched
                .iter()
                .filter(|matched| reason(matched).is_some())
                .map(|matched| matched.copy.address_hash)
                .collect();
            let organization_id = teller.organization_id;
            self.suppressions
                .expect_told(organization_id, &suspects)
                .await?;
            let write = || self.write(teller, origin, news, &matched);
            let written = db::again_after_deadlocks(TRIES_MAX, write, db::is_deadlock).await?;
            Ok(written.map(|recorded| Tally {
                recorded,
                repeated: matched.len() - recorded,
                unmatched,
            }))
        };
        db::bounded(DOING, recording)
            .await?
            .ok_or(RecordRefusal::Replayed)
    }

    /// The events whose copies there are.
    async fn find<'a>(
        &self,
        teller: &Teller,
        events: &'a [ProviderEvent],
    ) -> Result<Vec<Matched<'a>>, Fault> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let organization_id = teller.organization_id;
        let mut connection = self.pool.acquire().await.or_fault(DOING)?;
        let named: Vec<_> = events.iter().map(|event| event.copy).collect();
        let mut copies = store::find_copies(&mut connection, organization_id, &named).await?;
        let clues: Vec<Clue> = events
            .iter()
            .enumerate()
            .filter(|(_, event)| event.copy.is_none())
            .filter_map(|(nth, event)| {
                Some(Clue {
                    nth,
                    provider_message_id: event.provider_message_id.clone()?,
                    address_hash: event.recipient.as_ref().map(EmailAddress::hash),
                })
            })
            .collect();
        let account_id = teller.account_id;
        let guessed =
            store::find_copies_by_clues(&mut connection, organization_id, account_id, &clues);
        for (nth, copy) in guessed.await? {
            copies[nth] = Some(copy);
        }
        let matched = events.iter().zip(copies).filter_map(|(event, copy)| {
            Some(Matched {
                event,
                copy: copy?,
                hash: hash_of(&event.id),
            })
        });
        Ok(matched.collect())
    }

    /// One transaction: how many of the events were new. Nothing where the signature
    /// came with another content before.
    async fn write(
        &self,
        teller: &Teller,
        origin: &Origin,
        news: &News<'_>,
        matched: &[Matched<'_>],
    ) -> Result<Option<usize>, Fault> {
        let organization_id = teller.organization_id;
        let now = self.clock.now();
        let mut transaction = db::begin(&self.pool, DOING).await?;
        if let Some(guard) = news.guard {
            let account_id = teller.account_id;
            let used = teller::store::use_signature(
                &mut transaction,
                organization_id,
                account_id,
                guard,
                now,
            );
            if !used.await? {
                return Ok(None);
            }
        }
        let fresh = self
            .keep(&mut transaction, organization_id, matched, now)
            .await?;
        self.follow(&mut transaction, teller, &fresh, now).await?;
        let told: Vec<ToldAddress> = fresh
            .iter()
            .filter_map(|matched| {
                Some(ToldAddress {
                    email_hash: matched.copy.address_hash,
                    message_id: matched.copy.place.0,
                    reason: reason(matched)?,
                })
            })
            .collect();
        let added = self
            .suppressions
            .add_told(&mut transaction, organization_id, origin, &told)
            .await?;
        self.count(&mut transaction, teller, news, matched.len(), now)
            .await?;
        transaction.commit().await.or_fault(DOING)?;
        self.suppressions
            .confirm_told(organization_id, &added)
            .await;
        Ok(Some(fresh.len()))
    }

    /// Keeps the events as they were told, and answers those that were not told
    /// before.
    async fn keep<'a, 'b>(
        &self,
        connection: &mut PgConnection,
        organization_id: OrganizationId,
        matched: &'a [Matched<'b>],
        now: Timestamp,
    ) -> Result<Vec<&'a Matched<'b>>, Fault> {
        if matched.is_empty() {
            return Ok(Vec::new());
        }
        let mut seen = HashSet::new();
        let key = |matched: &Matched<'_>| {
            let message_id = matched.copy.place.0;
            (message_id, matched.copy.account_id, matched.hash)
        };
        let once: Vec<&Matched<'_>> = matched
            .iter()
            .filter(|matched| seen.insert(key(matched)))
            .collect();
        let kept: Vec<Kept> = once
            .iter()
            .map(|matched| {
                let (message_id, position) = matched.copy.place;
                let (kind, told) = (Sealed::ProviderEvent, &matched.event.raw);
                Kept {
                    message_id,
                    position,
                    account_id: matched.copy.account_id,
                    hash: matched.hash,
                    told_sealed: self.sealer.seal(organization_id, kind, message_id.0, told),
                }
            })
            .collect();
        let fresh = store::insert(connection, organization_id, &kept, now).await?;
        Ok(once
            .into_iter()
            .filter(|matched| fresh.contains(&key(matched)))
            .collect())
    }

    /// What follows for the copies.
    async fn follow(
        &self,
        connection: &mut PgConnection,
        teller: &Teller,
        fresh: &[&Matched<'_>],
        now: Timestamp,
    ) -> Result<(), Fault> {
        if fresh.is_empty() {
            return Ok(());
        }
        let organization_id = teller.organization_id;
        let attempts: Vec<_> = fresh
            .iter()
            .filter_map(|matched| Some((matched.copy.place.0, matched.copy.attempt_id?)))
            .collect();
        let open = store::prove_attempts(&mut *connection, organization_id, &attempts, now).await?;
        let places: Vec<Place> = fresh.iter().map(|matched| matched.copy.place).collect();
        let before = store::lock_copies(&mut *connection, organization_id, &places).await?;
        let mut steps = Vec::new();
        for (place, news) in by_copy(fresh) {
            let Some(before) = before.get(&place) else {
                continue;
            };
            let told = news.iter().map(|matched| told(matched, teller)).collect();
            let next_id = || self.ids.next_at::<EventId>(now);
            steps.push(Step {
                place,
                before: *before,
                attempts: open.iter().filter(|open| **open == place).count(),
                progress: progress::follow(*before, told, now, next_id),
                news,
            });
        }
        apply(connection, organization_id, &steps).await
    }

    /// Counts what was recorded nowhere, and remembers that the account's provider
    /// tells.
    async fn count(
        &self,
        connection: &mut PgConnection,
        teller: &Teller,
        news: &News<'_>,
        matched: usize,
        now: Timestamp,
    ) -> Result<(), Fault> {
        let (organization_id, account_id) = (teller.organization_id, teller.account_id);
        if let Some(sealed) = &teller.first_verified_with {
            teller::store::mark_verified(
                &mut *connection,
                organization_id,
                account_id,
                sealed,
                now,
            )
            .await?;
        }
        let unrecorded = teller::store::Unrecorded {
            unmatched: news.events.len() - matched,
            unreadable: news.unreadable,
        };
        teller::store::count_unrecorded(connection, organization_id, account_id, unrecorded, now)
            .await
    }
}

/// What the news means for one copy.
struct Step<'a> {
    place: Place,
    before: Standing,
    /// Calls that had no outcome yet.
    attempts: usize,
    progress: Progress,
    news: Vec<&'a Matched<'a>>,
}

async fn apply(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    steps: &[Step<'_>],
) -> Result<(), Fault> {
    let changes: Vec<Change<'_>> = steps.iter().filter_map(Step::change).collect();
    let moved: Vec<MessageId> = changes.iter().map(|change| change.place.0).collect();
    store::update_copies(&mut *connection, organization_id, &changes).await?;
    let corrections: Vec<_> = steps
        .iter()
        .filter_map(|step| Some((step.place.0, step.progress.correction.as_ref()?)))
        .collect();
    store::correct(&mut *connection, organization_id, &corrections).await?;
    let events: Vec<NewEvent> = steps
        .iter()
        .flat_map(|step| step.events(organization_id))
        .collect();
    event::store::insert(&mut *connection, &events).await?;
    let settled: Vec<Place> = steps
        .iter()
        .filter(|step| step.was_open())
        .map(|step| step.place)
        .collect();
    store::finish_chunks(&mut *connection, organization_id, &settled).await?;
    if moved.is_empty() {
        return Ok(());
    }
    refresh_aggregates(connection, &moved).await
}

impl Step<'_> {
    fn was_open(&self) -> bool {
        matches!(
            self.before.status,
            MessageStatus::Queued | MessageStatus::Sending
        )
    }

    /// What is to be written of the copy, if anything.
    fn change(&self) -> Option<Change<'_>> {
        let progress = &self.progress;
        if progress.standing == self.before && self.attempts == 0 {
            return None;
        }
        let first = self.news.first().filter(|_| progress.is_proven);
        let ids = self
            .news
            .iter()
            .filter_map(|matched| matched.event.provider_message_id.clone());
        Some(Change {
            place: self.place,
            progress,
            account_id: first.map(|matched| matched.copy.account_id),
            provider_message_id: ids.min(),
            attempts: i32::try_from(self.attempts).unwrap_or(i32::MAX),
        })
    }

    fn events(&self, organization_id: OrganizationId) -> impl Iterator<Item = NewEvent> {
        let (message_id, position) = self.place;
        self.progress.lines.iter().map(move |line| NewEvent {
            id: line.id,
            message_id,
            organization_id,
            position,
            event_type: line.event_type,
            occurred_at: line.occurred_at,
            data: line.data.clone(),
        })
    }
}

/// The news of each copy, the copies in the order of their places.
fn by_copy<'a>(fresh: &[&'a Matched<'a>]) -> BTreeMap<Place, Vec<&'a Matched<'a>>> {
    let mut copies: BTreeMap<Place, Vec<&Matched<'_>>> = BTreeMap::new();
    for matched in fresh {
        copies.entry(matched.copy.place).or_default().push(matched);
    }
    copies
}

fn told(matched: &Matched<'_>, teller: &Teller) -> Told {
    Told {
        happening: matched.event.happening,
        occurred_at: in_micros(matched.event.occurred_at),
        started_at: matched.copy.started_at,
        provider_type: teller.provider_type,
        details: matched.event.details.clone(),
    }
}

/// As Postgres keeps it: what is compared with stored times must be rounded alike.
fn in_micros(at: Timestamp) -> Timestamp {
    Timestamp::from_timestamp_micros(at.timestamp_micros()).unwrap_or(at)
}

fn hash_of(id: &str) -> EventHash {
    let digest: [u8; 32] = Sha256::digest(id.as_bytes()).into();
    let mut hash = EventHash::default();
    hash.copy_from_slice(&digest[..16]);
    hash
}

/// Why the news may suppress the copy's address.
fn reason(matched: &Matched<'_>) -> Option<ToldReason> {
    match matched.event.happening {
        Happening::Bounced(BounceType::Hard) => Some(ToldReason::HardBounce),
        Happening::Bounced(BounceType::Soft) => Some(ToldReason::SoftBounce {
            at: matched.event.occurred_at,
        }),
        Happening::Complained => Some(ToldReason::Complaint),
        Happening::Unsubscribed => Some(ToldReason::Unsubscribe {
            unsubscribe_group_id: matched.copy.group_id,
        }),
        Happening::Bounced(BounceType::Block)
        | Happening::Sent
        | Happening::Delivered
        | Happening::Deferred
        | Happening::Dropped
        | Happening::Opened { .. }
        | Happening::Clicked { .. } => None,
    }
}
