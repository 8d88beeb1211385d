//! How events change the metrics. Pure. Counted here, where a recipient's state before
//! and after is known; the trigger on `events` would have to read both again.

use std::collections::BTreeMap;

use super::recipient_state::{FoldResult, RecipientState};
use crate::clock::Timestamp;
use crate::event::EventType;
use crate::ids::OrganizationId;
use crate::message::MessageStatus;
use crate::metrics::{Delta, Dimensions, EventCounts, TimeStep, start_of_quarter};

/// What the metrics need of a message.
#[derive(Debug, Clone)]
pub(super) struct CountedMessage {
    /// Without the recipient's domain.
    pub(super) dimensions: Dimensions,
    /// When it was accepted, or was to go.
    pub(super) accepted_at: Timestamp,
}

/// One of the counters.
type MetricCounter = fn(&mut EventCounts) -> &mut i64;

/// A change of one counter.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountChange {
    at: Timestamp,
    counter: MetricCounter,
    by: i64,
    since: Since,
}

/// From when the time of a count is measured.
#[derive(Debug, Clone, Copy)]
enum Since {
    Accepted,
    Sent(Timestamp),
    /// It is not measured.
    Nothing,
}

/// The changes of one recipient's counters.
pub(super) struct RecipientCounts {
    pub(super) organization_id: OrganizationId,
    pub(super) dimensions: Dimensions,
    /// When the message was accepted.
    pub(super) accepted_at: Timestamp,
    pub(super) changes: Vec<CountChange>,
}

/// How a recipient's events change the counters. Each event type counts once per
/// recipient, however often the message was sent, at its earliest time; if an earlier
/// event arrives late, its count moves.
pub(super) fn changes(before: &RecipientState, result: &FoldResult) -> Vec<CountChange> {
    let after = &result.state;
    let sent = result.events.iter();
    let sent = sent
        .filter(|event| event.event_type == EventType::Sent && before.first_sent_at.is_none())
        .map(|event| CountChange {
            at: event.occurred_at,
            counter: |counts| &mut counts.sent,
            by: 1,
            since: Since::Accepted,
        });
    let mut changes: Vec<CountChange> = sent.collect();
    // A trigger moves the count of a corrected DELIVERED event.
    let corrected = result.correction.as_ref();
    let delivered_at = corrected.map(|correction| correction.occurred_at);
    let delivered_at = delivered_at.or(before.delivered_at);
    if delivered_at != after.delivered_at {
        let delivered = |at, sent_at: Option<Timestamp>, by| CountChange {
            at,
            counter: |counts| &mut counts.delivered,
            by,
            since: sent_at.map_or(Since::Nothing, Since::Sent),
        };
        changes.extend(delivered_at.map(|at| delivered(at, before.sent_at, -1)));
        changes.extend(after.delivered_at.map(|at| delivered(at, after.sent_at, 1)));
    }
    // `bounced_at` is empty if the bounce was counted before the column existed.
    let is_known_bounce = before.status == MessageStatus::Bounced && before.bounced_at.is_none();
    let bounced_at = after.bounced_at.filter(|_| !is_known_bounce);
    let firsts: [(_, _, MetricCounter); 5] = [
        (before.bounced_at, bounced_at, |counts| &mut counts.bounced),
        (before.complained_at, after.complained_at, |counts| {
            &mut counts.complained
        }),
        (before.unsubscribed_at, after.unsubscribed_at, |counts| {
            &mut counts.unsubscribed
        }),
        (before.opened_at, after.opened_at, |counts| {
            &mut counts.opened
        }),
        (before.clicked_at, after.clicked_at, |counts| {
            &mut counts.clicked
        }),
    ];
    for (was, is, counter) in firsts {
        let change = |at, by| CountChange {
            at,
            counter,
            by,
            since: Since::Nothing,
        };
        if was != is {
            changes.extend(was.map(|at| change(at, -1)));
            changes.extend(is.map(|at| change(at, 1)));
        }
    }
    changes
}

/// What the changes of one delta have in common.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DeltaKey {
    organization_id: OrganizationId,
    quarter: Timestamp,
    dimensions: Dimensions,
    sent_in: Option<TimeStep>,
    delivered_in: Option<TimeStep>,
}

/// Sums the changes by organization, time and dimensions.
pub(super) fn deltas(recipients: impl Iterator<Item = RecipientCounts>) -> Vec<Delta> {
    let mut deltas: BTreeMap<DeltaKey, EventCounts> = BTreeMap::new();
    for recipient in recipients {
        for change in recipient.changes {
            let (sent_in, delivered_in) = match change.since {
                Since::Accepted => {
                    let since = recipient.accepted_at;
                    (Some(TimeStep::between(since, change.at)), None)
                }
                Since::Sent(since) => (None, Some(TimeStep::between(since, change.at))),
                Since::Nothing => (None, None),
            };
            let key = DeltaKey {
                organization_id: recipient.organization_id,
                quarter: start_of_quarter(change.at),
                dimensions: recipient.dimensions.clone(),
                sent_in,
                delivered_in,
            };
            *(change.counter)(deltas.entry(key).or_default()) += change.by;
        }
    }
    let deltas = deltas.into_iter();
    let deltas = deltas.filter(|(_, counts)| *counts != EventCounts::default());
    let deltas = deltas.map(|(key, counts)| Delta {
        organization_id: key.organization_id,
        quarter: key.quarter,
        dimensions: key.dimensions,
        sent_in: key.sent_in,
        delivered_in: key.delivered_in,
        counts,
    });
    deltas.collect()
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use uuid::Uuid;

    use super::*;
    use crate::ids::{EventId, ProviderAccountId};
    use crate::provider_event::record::recipient_state::DerivedEvent;

    fn at(hour: i64, second: i64) -> Timestamp {
        DateTime::from_timestamp(1_800_000_000 + hour * 3_600 + second, 0).unwrap()
    }

    fn state(opened_at: Option<Timestamp>, delivered_at: Option<Timestamp>) -> RecipientState {
        RecipientState {
            status: MessageStatus::Delivered,
            sent_at: Some(at(0, 0)),
            delivered_at,
            implied: None,
            opened_at,
            clicked_at: None,
            bounced_at: None,
            complained_at: None,
            unsubscribed_at: None,
            first_sent_at: None,
        }
    }

    /// A recipient whose first open was and is at `opened`, with these new events.
    fn recipient(
        account: u128,
        opened: [Option<Timestamp>; 2],
        events: &[(EventType, Timestamp)],
    ) -> RecipientCounts {
        let delivered = |(event_type, at): &(EventType, Timestamp)| {
            (*event_type == EventType::Delivered).then_some(*at)
        };
        let delivered_at = events.iter().find_map(delivered);
        let events = events.iter().map(|(event_type, occurred_at)| DerivedEvent {
            id: EventId(Uuid::nil()),
            event_type: *event_type,
            occurred_at: *occurred_at,
            data: None,
        });
        let result = FoldResult {
            state: state(opened[1], delivered_at),
            is_proven: false,
            error: None,
            events: events.collect(),
            correction: None,
        };
        RecipientCounts {
            organization_id: OrganizationId(Uuid::nil()),
            dimensions: Dimensions {
                account_id: ProviderAccountId(Uuid::from_u128(account)),
                domain: "example.com".to_owned(),
                template_id: None,
                tags: Vec::new(),
                recipient_domain: String::new(),
            },
            accepted_at: at(0, 0),
            changes: changes(&state(opened[0], None), &result),
        }
    }

    /// The hours with their numbers of deliveries and opens.
    fn counted(recipients: Vec<RecipientCounts>) -> Vec<(i64, i64, i64)> {
        let deltas = deltas(recipients.into_iter()).into_iter();
        let hour = |delta: &Delta| (delta.quarter - at(0, 0)).num_hours();
        deltas
            .map(|delta| (hour(&delta), delta.counts.delivered, delta.counts.opened))
            .collect()
    }

    #[test]
    fn an_open_counts_in_the_hour_of_the_earliest_open() {
        let opened = |was, is| {
            counted(vec![recipient(
                1,
                [was, is],
                &[(EventType::Opened, at(9, 0))],
            )])
        };
        assert_eq!(opened(None, Some(at(2, 5))), [(2, 0, 1)]);
        assert_eq!(opened(Some(at(2, 5)), Some(at(2, 5))), []);
        let earlier = opened(Some(at(2, 5)), Some(at(1, 7)));
        assert_eq!(earlier, [(1, 0, 1), (2, 0, -1)]);
        assert_eq!(opened(Some(at(2, 5)), Some(at(2, 4))), []);
    }

    #[test]
    fn changes_of_one_hour_and_account_are_one_delta() {
        let delivered = |account, hour| {
            let events = [
                (EventType::Delivered, at(hour, 1)),
                (EventType::Deferred, at(hour, 0)),
            ];
            recipient(account, [None, None], &events)
        };
        let recipients = vec![
            delivered(1, 0),
            delivered(1, 0),
            delivered(2, 0),
            delivered(1, 1),
        ];
        assert_eq!(counted(recipients), [(0, 2, 0), (0, 1, 0), (1, 1, 0)]);
    }
}
