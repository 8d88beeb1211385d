//! What follows from news for the copies that it is about, in the recorder's
//! transaction.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::counts::{self, Count, MetricKey};
use super::recipient_state::{self, FoldResult, RecipientState, ReportedEvent};
use super::recipients::store as copies_store;
use super::recipients::{LockedRecipient, RecipientKey};
use super::store::{self, Proved, RecipientChange};
use super::writer::Matched;
use crate::clock::Timestamp;
use crate::db::PgConnection;
use crate::event::{self, NewEvent};
use crate::fault::Fault;
use crate::ids::{EventId, Ids, MessageId, OrganizationId, ProviderAccountId};
use crate::message::MessageStatus;
use crate::message::store::refresh_aggregates;
use crate::metrics::{Delta, Dimensions};

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
    let proved = store::prove_attempts(&mut *connection, &unproven, now).await?;
    let places = fresh
        .iter()
        .map(|matched| (matched.copy.place, matched.organization_id()));
    let places: Vec<_> = places.collect();
    let copies = copies_store::lock_copies(&mut *connection, &places).await?;
    let mut steps = Vec::new();
    for (place, news) in by_copy(fresh) {
        let (Some(copy), Some(first)) = (copies.get(&place), news.first()) else {
            continue;
        };
        let told = news.iter().map(|matched| told(matched, &proved)).collect();
        let next_id = || ids.next_at::<EventId>(now);
        steps.push(RecipientUpdate {
            organization_id: first.organization_id(),
            place,
            attempts: proved.open.iter().filter(|open| **open == place).count(),
            progress: recipient_state::follow(copy.standing, told, now, next_id),
            copy: *copy,
            news,
        });
    }
    apply(connection, steps).await
}

/// What the news means for one copy.
struct RecipientUpdate<'a> {
    organization_id: OrganizationId,
    place: RecipientKey,
    copy: LockedRecipient,
    /// Calls that had no outcome yet.
    attempts: usize,
    progress: FoldResult,
    news: Vec<&'a Matched<'a>>,
}

async fn apply(
    connection: &mut PgConnection,
    mut steps: Vec<RecipientUpdate<'_>>,
) -> Result<(), Fault> {
    let changes: Vec<RecipientChange<'_>> =
        steps.iter().filter_map(RecipientUpdate::change).collect();
    let updated = store::update_copies(&mut *connection, &changes).await?;
    let corrections = steps.iter().filter_map(|step| {
        let correction = step.progress.correction.as_ref()?;
        Some((step.organization_id, step.place.0, correction))
    });
    store::correct(&mut *connection, &corrections.collect::<Vec<_>>()).await?;
    let deltas = count(&mut *connection, &steps, updated.dimensions).await?;
    let events: Vec<NewEvent> = steps
        .iter_mut()
        .flat_map(RecipientUpdate::take_events)
        .collect();
    event::store::insert_counted(&mut *connection, &events, &deltas).await?;
    let settled: Vec<_> = steps
        .iter()
        .filter(|step| step.was_open())
        .map(|step| (step.place, step.organization_id))
        .collect();
    store::finish_chunks(&mut *connection, &settled).await?;
    if updated.left.is_empty() {
        return Ok(());
    }
    refresh_aggregates(connection, &updated.left).await
}

/// What is added to the metrics. `dimensions` are those of the messages that were just
/// written; the others' are looked up.
async fn count(
    connection: &mut PgConnection,
    steps: &[RecipientUpdate<'_>],
    mut dimensions: HashMap<MessageId, Dimensions>,
) -> Result<Vec<Delta>, Fault> {
    let counting = steps.iter().map(|step| (step, step.counts()));
    let counting = counting.filter(|(_, counts)| !counts.is_empty());
    let counting: Vec<_> = counting.collect();
    let unknown = counting
        .iter()
        .map(|(step, _)| (step.place.0, step.organization_id));
    let unknown: BTreeSet<_> = unknown
        .filter(|(id, _)| !dimensions.contains_key(id))
        .collect();
    let unknown: Vec<_> = unknown.into_iter().collect();
    dimensions.extend(copies_store::find_dimensions(connection, &unknown).await?);
    let counted = counting.into_iter().filter_map(|(step, counts)| {
        let of_message = dimensions.get(&step.place.0)?;
        Some(MetricKey {
            organization_id: step.organization_id,
            dimensions: Dimensions {
                account_id: step.account().unwrap_or(of_message.account_id),
                ..of_message.clone()
            },
            counts,
        })
    });
    Ok(counts::deltas(counted))
}

impl RecipientUpdate<'_> {
    fn was_open(&self) -> bool {
        matches!(
            self.copy.standing.status,
            MessageStatus::Queued | MessageStatus::Sending
        )
    }

    /// What is to be written of the copy, if anything.
    fn change(&self) -> Option<RecipientChange<'_>> {
        let (before, progress) = (self.copy.standing, &self.progress);
        if progress.standing == before && self.attempts == 0 {
            return None;
        }
        // When what counts once came first is said of the copy alone.
        let is_shown = self.attempts > 0
            || progress.standing
                != RecipientState {
                    opened_at: progress.standing.opened_at,
                    clicked_at: progress.standing.clicked_at,
                    bounced_at: progress.standing.bounced_at,
                    complained_at: progress.standing.complained_at,
                    unsubscribed_at: progress.standing.unsubscribed_at,
                    ..before
                };
        let ids = self
            .news
            .iter()
            .filter(|_| is_shown)
            .filter_map(|matched| matched.event.provider_message_id.clone());
        Some(RecipientChange {
            organization_id: self.organization_id,
            place: self.place,
            progress,
            account_id: self.proven_account(),
            provider_message_id: ids.min(),
            attempts: i32::try_from(self.attempts).unwrap_or(i32::MAX),
            is_shown,
        })
    }

    /// The account that the news proved the copy to have gone through, if they did.
    fn proven_account(&self) -> Option<ProviderAccountId> {
        let first = self.news.first().filter(|_| self.progress.is_proven)?;
        Some(first.copy.account_id)
    }

    /// The account that it is known now to have gone through.
    fn account(&self) -> Option<ProviderAccountId> {
        self.proven_account().or(self.copy.account_id)
    }

    fn counts(&self) -> Vec<Count> {
        counts::counts(&self.copy.standing, &self.progress)
    }

    /// The lines of the history, which leave the progress.
    fn take_events(&mut self) -> impl Iterator<Item = NewEvent> + use<> {
        let ((message_id, position), organization_id) = (self.place, self.organization_id);
        let lines = std::mem::take(&mut self.progress.lines).into_iter();
        lines.map(move |line| NewEvent {
            id: line.id,
            message_id,
            organization_id,
            position,
            event_type: line.event_type,
            occurred_at: line.occurred_at,
            data: line.data,
        })
    }
}

/// The news of each copy, the copies in the order of their places.
fn by_copy<'a>(fresh: &[&'a Matched<'a>]) -> BTreeMap<RecipientKey, Vec<&'a Matched<'a>>> {
    let mut copies: BTreeMap<RecipientKey, Vec<&Matched<'_>>> = BTreeMap::new();
    for matched in fresh {
        copies.entry(matched.copy.place).or_default().push(matched);
    }
    copies
}

fn told<'a>(matched: &Matched<'a>, proved: &Proved) -> ReportedEvent<'a> {
    // Known before, as the attempt was when it was locked: when the copy was looked for,
    // others may have been about to say so.
    let is_known = |id| !proved.attempts.contains(&id);
    ReportedEvent {
        happening: matched.event.kind,
        occurred_at: in_micros(matched.event.occurred_at),
        started_at: matched.copy.started_at,
        attempt_id: matched.copy.attempt_id,
        provider_message_id: matched.event.provider_message_id.as_deref(),
        is_proven: matched.copy.attempt_id.is_some_and(is_known),
        provider_type: matched.teller().provider_type,
        details: &matched.event.details,
    }
}

/// As Postgres keeps it: what is compared with stored times must be rounded alike.
fn in_micros(at: Timestamp) -> Timestamp {
    Timestamp::from_timestamp_micros(at.timestamp_micros()).unwrap_or(at)
}
