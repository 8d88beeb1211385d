//! Applies new events to their recipients, in the recorder's transaction.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::counts::{self, CountChange, CountedMessage, RecipientCounts};
use super::recipient_state::{self, FoldResult, RecipientState, ReportedEvent};
use super::recipients::store as recipients_store;
use super::recipients::{LockedRecipient, RecipientKey};
use super::store::{self, ProvenAttempts, RecipientChange};
use super::writer::MatchedEvent;
use crate::clock::Timestamp;
use crate::db::PgConnection;
use crate::event::{self, NewEvent};
use crate::fault::Fault;
use crate::ids::{EventId, Ids, MessageId, OrganizationId, ProviderAccountId};
use crate::message::MessageStatus;
use crate::message::store::refresh_aggregates;
use crate::metrics::{Delta, Dimensions};

/// Updates the recipients of new events, with their messages, events, metrics and outbox
/// rows.
pub(super) async fn apply_events(
    connection: &mut PgConnection,
    ids: &Ids,
    new_events: &[&MatchedEvent<'_>],
    now: Timestamp,
) -> Result<(), Fault> {
    if new_events.is_empty() {
        return Ok(());
    }
    let unproven = new_events
        .iter()
        .filter(|matched| !matched.recipient.is_proven);
    let unproven = unproven.filter_map(|matched| {
        let attempt_id = matched.recipient.attempt_id?;
        Some((
            matched.recipient.key.0,
            attempt_id,
            matched.organization_id(),
        ))
    });
    let unproven: Vec<_> = unproven.collect();
    let proven = store::accept_attempts(&mut *connection, &unproven, now).await?;
    let keys = new_events
        .iter()
        .map(|matched| (matched.recipient.key, matched.organization_id()));
    let keys: Vec<_> = keys.collect();
    let mut recipients = recipients_store::lock(&mut *connection, &keys).await?;
    let mut updates = Vec::new();
    for (key, events) in by_recipient(new_events) {
        let (Some(recipient), Some(first)) = (recipients.remove(&key), events.first()) else {
            continue;
        };
        let reported = events
            .iter()
            .map(|matched| reported(matched, &proven))
            .collect();
        let next_id = || ids.next_at::<EventId>(now);
        updates.push(RecipientUpdate {
            organization_id: first.organization_id(),
            key,
            attempts: proven
                .unfinished
                .iter()
                .filter(|unfinished| **unfinished == key)
                .count(),
            result: recipient_state::fold(recipient.state, reported, now, next_id),
            recipient,
            events,
        });
    }
    write(connection, updates).await
}

/// The changes that the events of one recipient cause.
struct RecipientUpdate<'a> {
    organization_id: OrganizationId,
    key: RecipientKey,
    recipient: LockedRecipient,
    /// Attempts that had no outcome before these events.
    attempts: usize,
    result: FoldResult,
    events: Vec<&'a MatchedEvent<'a>>,
}

async fn write(
    connection: &mut PgConnection,
    mut updates: Vec<RecipientUpdate<'_>>,
) -> Result<(), Fault> {
    let changes: Vec<RecipientChange<'_>> =
        updates.iter().filter_map(RecipientUpdate::change).collect();
    let updated = store::update_recipients(&mut *connection, &changes).await?;
    let corrections = updates.iter().filter_map(|update| {
        let correction = update.result.correction.as_ref()?;
        Some((update.organization_id, update.key.0, correction))
    });
    store::correct_deliveries(&mut *connection, &corrections.collect::<Vec<_>>()).await?;
    let deltas = metric_deltas(&mut *connection, &updates, updated.messages).await?;
    let events: Vec<NewEvent> = updates
        .iter_mut()
        .flat_map(RecipientUpdate::take_events)
        .collect();
    event::store::insert_counted(&mut *connection, &events, &deltas).await?;
    let finished: Vec<_> = updates
        .iter()
        .filter(|update| update.was_pending())
        .map(|update| (update.key, update.organization_id))
        .collect();
    store::delete_finished_chunks(&mut *connection, &finished).await?;
    if updated.to_refresh.is_empty() {
        return Ok(());
    }
    refresh_aggregates(connection, &updated.to_refresh).await
}

/// The changes of metrics; tests cause none. `messages` are those that were just updated; the
/// others are read.
async fn metric_deltas(
    connection: &mut PgConnection,
    updates: &[RecipientUpdate<'_>],
    mut messages: HashMap<MessageId, CountedMessage>,
) -> Result<Vec<Delta>, Fault> {
    let counting = updates
        .iter()
        .filter(|update| !update.is_test())
        .map(|update| (update, update.count_changes()));
    let counting = counting.filter(|(_, changes)| !changes.is_empty());
    let counting: Vec<_> = counting.collect();
    let unknown = counting
        .iter()
        .map(|(update, _)| (update.key.0, update.organization_id));
    let unknown: BTreeSet<_> = unknown
        .filter(|(id, _)| !messages.contains_key(id))
        .collect();
    let unknown: Vec<_> = unknown.into_iter().collect();
    messages.extend(recipients_store::find_counted(connection, &unknown).await?);
    let counted = counting.into_iter().filter_map(|(update, changes)| {
        let message = messages.get(&update.key.0)?;
        let of_message = &message.dimensions;
        Some(RecipientCounts {
            organization_id: update.organization_id,
            dimensions: Dimensions {
                account_id: update.account().unwrap_or(of_message.account_id),
                recipient_domain: update.recipient.domain.clone(),
                ..of_message.clone()
            },
            accepted_at: message.accepted_at,
            changes,
        })
    });
    Ok(counts::deltas(counted))
}

impl RecipientUpdate<'_> {
    fn is_test(&self) -> bool {
        self.events.iter().any(|matched| matched.source().is_test)
    }

    fn was_pending(&self) -> bool {
        matches!(
            self.recipient.state.status,
            MessageStatus::Queued | MessageStatus::Sending
        )
    }

    /// The columns to update, if any.
    fn change(&self) -> Option<RecipientChange<'_>> {
        let (before, result) = (self.recipient.state, &self.result);
        if result.state == before && self.attempts == 0 {
            return None;
        }
        // The first times of bounces, opens and so on are stored only with the recipient.
        let changes_message = self.attempts > 0
            || result.state
                != RecipientState {
                    opened_at: result.state.opened_at,
                    clicked_at: result.state.clicked_at,
                    bounced_at: result.state.bounced_at,
                    complained_at: result.state.complained_at,
                    unsubscribed_at: result.state.unsubscribed_at,
                    ..before
                };
        let ids = self
            .events
            .iter()
            .filter(|_| changes_message)
            .filter_map(|matched| matched.event.provider_message_id.clone());
        Some(RecipientChange {
            organization_id: self.organization_id,
            key: self.key,
            result,
            account_id: self.proven_account(),
            provider_message_id: ids.min(),
            attempts: i32::try_from(self.attempts).unwrap_or(i32::MAX),
            changes_message,
        })
    }

    /// The account that sent the message, if the events are the first proof of that.
    fn proven_account(&self) -> Option<ProviderAccountId> {
        let first = self.events.first().filter(|_| self.result.is_proven)?;
        Some(first.recipient.account_id)
    }

    /// The account that is known to have sent the message.
    fn account(&self) -> Option<ProviderAccountId> {
        self.proven_account().or(self.recipient.account_id)
    }

    fn count_changes(&self) -> Vec<CountChange> {
        counts::changes(&self.recipient.state, &self.result)
    }

    /// Takes the derived events out of the result.
    fn take_events(&mut self) -> impl Iterator<Item = NewEvent> + use<> {
        let ((message_id, position), organization_id) = (self.key, self.organization_id);
        let events = std::mem::take(&mut self.result.events).into_iter();
        events.map(move |event| NewEvent {
            id: event.id,
            message_id,
            organization_id,
            position,
            event_type: event.event_type,
            occurred_at: event.occurred_at,
            data: event.data,
        })
    }
}

/// Groups events by recipient, in the order of their keys.
fn by_recipient<'a>(
    new_events: &[&'a MatchedEvent<'a>],
) -> BTreeMap<RecipientKey, Vec<&'a MatchedEvent<'a>>> {
    let mut recipients: BTreeMap<RecipientKey, Vec<&MatchedEvent<'_>>> = BTreeMap::new();
    for matched in new_events {
        recipients
            .entry(matched.recipient.key)
            .or_default()
            .push(matched);
    }
    recipients
}

fn reported<'a>(matched: &MatchedEvent<'a>, proven: &ProvenAttempts) -> ReportedEvent<'a> {
    // `proven` has the attempts' outcomes as of when they were locked. Those read earlier
    // may be out of date.
    let is_known = |id| !proven.attempts.contains(&id);
    ReportedEvent {
        kind: matched.event.kind,
        occurred_at: in_micros(matched.event.occurred_at),
        started_at: matched.recipient.started_at,
        attempt_id: matched.recipient.attempt_id,
        provider_message_id: matched.event.provider_message_id.as_deref(),
        is_proven: matched.recipient.attempt_id.is_some_and(is_known),
        provider_type: matched.source().provider_type,
        details: &matched.event.details,
    }
}

/// Rounds as Postgres does, so that the time can be compared with stored ones.
fn in_micros(at: Timestamp) -> Timestamp {
    Timestamp::from_timestamp_micros(at.timestamp_micros()).unwrap_or(at)
}
