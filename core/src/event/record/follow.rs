//! What follows from news for the copies that it is about, in the recorder's
//! transaction.

use std::collections::BTreeMap;

use super::progress::{self, Progress, Standing, Told};
use super::store::{self, Change, Place};
use super::writer::Matched;
use crate::clock::Timestamp;
use crate::db::PgConnection;
use crate::event::{self, NewEvent};
use crate::fault::Fault;
use crate::ids::{EventId, Ids, OrganizationId};
use crate::message::MessageStatus;
use crate::message::store::refresh_aggregates;

/// Brings the copies up to date that were told of for the first time, and all that
/// hangs on them.
pub(super) async fn follow(
    connection: &mut PgConnection,
    ids: &Ids,
    fresh: &[&Matched<'_>],
    now: Timestamp,
) -> Result<(), Fault> {
    if fresh.is_empty() {
        return Ok(());
    }
    let unproven = fresh.iter().filter(|matched| !matched.copy.is_proven);
    let unproven = unproven.filter_map(|matched| {
        let attempt_id = matched.copy.attempt_id?;
        Some((matched.copy.place.0, attempt_id, matched.organization_id()))
    });
    let unproven: Vec<_> = unproven.collect();
    let open = store::prove_attempts(&mut *connection, &unproven, now).await?;
    let places = fresh
        .iter()
        .map(|matched| (matched.copy.place, matched.organization_id()));
    let before = store::lock_copies(&mut *connection, &places.collect::<Vec<_>>()).await?;
    let mut steps = Vec::new();
    for (place, news) in by_copy(fresh) {
        let (Some(before), Some(first)) = (before.get(&place), news.first()) else {
            continue;
        };
        let told = news.iter().map(|matched| told(matched)).collect();
        let next_id = || ids.next_at::<EventId>(now);
        steps.push(Step {
            organization_id: first.organization_id(),
            place,
            before: *before,
            attempts: open.iter().filter(|open| **open == place).count(),
            progress: progress::follow(*before, told, now, next_id),
            news,
        });
    }
    apply(connection, &steps).await
}

/// What the news means for one copy.
struct Step<'a> {
    organization_id: OrganizationId,
    place: Place,
    before: Standing,
    /// Calls that had no outcome yet.
    attempts: usize,
    progress: Progress,
    news: Vec<&'a Matched<'a>>,
}

async fn apply(connection: &mut PgConnection, steps: &[Step<'_>]) -> Result<(), Fault> {
    let changes: Vec<Change<'_>> = steps.iter().filter_map(Step::change).collect();
    let left = store::update_copies(&mut *connection, &changes).await?;
    let corrections = steps.iter().filter_map(|step| {
        let correction = step.progress.correction.as_ref()?;
        Some((step.organization_id, step.place.0, correction))
    });
    store::correct(&mut *connection, &corrections.collect::<Vec<_>>()).await?;
    let events: Vec<NewEvent> = steps.iter().flat_map(Step::events).collect();
    event::store::insert(&mut *connection, &events).await?;
    let settled: Vec<_> = steps
        .iter()
        .filter(|step| step.was_open())
        .map(|step| (step.place, step.organization_id))
        .collect();
    store::finish_chunks(&mut *connection, &settled).await?;
    if left.is_empty() {
        return Ok(());
    }
    refresh_aggregates(connection, &left).await
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
            organization_id: self.organization_id,
            place: self.place,
            progress,
            account_id: first.map(|matched| matched.copy.account_id),
            provider_message_id: ids.min(),
            attempts: i32::try_from(self.attempts).unwrap_or(i32::MAX),
        })
    }

    fn events(&self) -> impl Iterator<Item = NewEvent> {
        let (message_id, position) = self.place;
        self.progress.lines.iter().map(move |line| NewEvent {
            id: line.id,
            message_id,
            organization_id: self.organization_id,
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

fn told(matched: &Matched<'_>) -> Told {
    Told {
        happening: matched.event.happening,
        occurred_at: in_micros(matched.event.occurred_at),
        started_at: matched.copy.started_at,
        provider_type: matched.teller().provider_type,
        details: matched.event.details.clone(),
    }
}

/// As Postgres keeps it: what is compared with stored times must be rounded alike.
fn in_micros(at: Timestamp) -> Timestamp {
    Timestamp::from_timestamp_micros(at.timestamp_micros()).unwrap_or(at)
}
