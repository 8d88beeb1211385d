//! What news adds to the metrics. Pure. Counted here, where it is known what a copy was
//! and what it becomes, and not by the trigger on `events`, which would have to look both
//! up again.

use std::collections::BTreeMap;

use super::recipient_state::{FoldResult, RecipientState};
use crate::clock::Timestamp;
use crate::event::EventType;
use crate::ids::OrganizationId;
use crate::message::MessageStatus;
use crate::metrics::{Delta, Dimensions, EventCounts, start_of_hour};

/// One of the numbers.
type Number = fn(&mut EventCounts) -> &mut i64;

/// Something that counts, or does not after all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count {
    at: Timestamp,
    of: Number,
    change: i64,
}

/// What counts of a copy.
pub(super) struct MetricKey {
    pub(super) organization_id: OrganizationId,
    pub(super) dimensions: Dimensions,
    pub(super) counts: Vec<Count>,
}

/// What counts of the news of a recipient: each type once, however many copies were sent,
/// at the earliest moment that is told of; one that is told of late takes the place of the
/// other.
pub(super) fn counts(before: &RecipientState, progress: &FoldResult) -> Vec<Count> {
    let count = |at, of, change| Count { at, of, change };
    let after = &progress.standing;
    let sent = progress.lines.iter();
    let sent = sent
        .filter(|line| line.event_type == EventType::Sent && before.first_sent_at.is_none())
        .map(|line| count(line.occurred_at, |counts| &mut counts.sent, 1));
    let mut counts: Vec<Count> = sent.collect();
    // What an event that is corrected counts as moves with it, by a trigger.
    let corrected = progress.correction.as_ref();
    let delivered_at = corrected.map(|correction| correction.occurred_at);
    // One that bounced before such moments were kept has counted.
    let is_known_bounce = before.status == MessageStatus::Bounced && before.bounced_at.is_none();
    let bounced_at = after.bounced_at.filter(|_| !is_known_bounce);
    let firsts: [(_, _, Number); 6] = [
        (
            delivered_at.or(before.delivered_at),
            after.delivered_at,
            |counts| &mut counts.delivered,
        ),
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
    for (was, is, of) in firsts {
        if was != is {
            counts.extend(was.map(|at| count(at, of, -1)));
            counts.extend(is.map(|at| count(at, of, 1)));
        }
    }
    counts
}

/// What the news of copies adds, those together that count alike.
pub(super) fn deltas(copies: impl Iterator<Item = MetricKey>) -> Vec<Delta> {
    let mut deltas: BTreeMap<(OrganizationId, Timestamp, Dimensions), EventCounts> =
        BTreeMap::new();
    for copy in copies {
        for count in copy.counts {
            let hour = start_of_hour(count.at);
            let key = (copy.organization_id, hour, copy.dimensions.clone());
            *(count.of)(deltas.entry(key).or_default()) += count.change;
        }
    }
    let deltas = deltas.into_iter();
    let deltas = deltas.filter(|(_, counts)| *counts != EventCounts::default());
    let deltas = deltas.map(|((organization_id, hour, dimensions), counts)| Delta {
        organization_id,
        hour,
        dimensions,
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

    fn standing(opened_at: Option<Timestamp>, delivered_at: Option<Timestamp>) -> RecipientState {
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

    /// What counts of a copy that was opened then, and now is known to have been then, in
    /// whose history this is new.
    fn copy(
        account: u128,
        opened: [Option<Timestamp>; 2],
        lines: &[(EventType, Timestamp)],
    ) -> MetricKey {
        let delivered = |(event_type, at): &(EventType, Timestamp)| {
            (*event_type == EventType::Delivered).then_some(*at)
        };
        let delivered_at = lines.iter().find_map(delivered);
        let lines = lines.iter().map(|(event_type, occurred_at)| DerivedEvent {
            id: EventId(Uuid::nil()),
            event_type: *event_type,
            occurred_at: *occurred_at,
            data: None,
        });
        let progress = FoldResult {
            standing: standing(opened[1], delivered_at),
            is_proven: false,
            error: None,
            lines: lines.collect(),
            correction: None,
        };
        MetricKey {
            organization_id: OrganizationId(Uuid::nil()),
            dimensions: Dimensions {
                account_id: ProviderAccountId(Uuid::from_u128(account)),
                domain: "example.com".to_owned(),
                template_id: None,
            },
            counts: counts(&standing(opened[0], None), &progress),
        }
    }

    /// The hours of what is counted, with deliveries and openings.
    fn counted(copies: Vec<MetricKey>) -> Vec<(i64, i64, i64)> {
        let deltas = deltas(copies.into_iter()).into_iter();
        let hour = |delta: &Delta| (delta.hour - at(0, 0)).num_hours();
        deltas
            .map(|delta| (hour(&delta), delta.counts.delivered, delta.counts.opened))
            .collect()
    }

    #[test]
    fn a_copy_is_opened_in_the_hour_of_its_earliest_opening() {
        let opened = |was, is| counted(vec![copy(1, [was, is], &[(EventType::Opened, at(9, 0))])]);
        assert_eq!(opened(None, Some(at(2, 5))), [(2, 0, 1)]);
        assert_eq!(opened(Some(at(2, 5)), Some(at(2, 5))), []);
        let earlier = opened(Some(at(2, 5)), Some(at(1, 7)));
        assert_eq!(earlier, [(1, 0, 1), (2, 0, -1)]);
        assert_eq!(opened(Some(at(2, 5)), Some(at(2, 4))), []);
    }

    #[test]
    fn what_counts_alike_is_one_delta() {
        let delivered = |account, hour| {
            let lines = [
                (EventType::Delivered, at(hour, 1)),
                (EventType::Deferred, at(hour, 0)),
            ];
            copy(account, [None, None], &lines)
        };
        let copies = vec![
            delivered(1, 0),
            delivered(1, 0),
            delivered(2, 0),
            delivered(1, 1),
        ];
        assert_eq!(counted(copies), [(0, 2, 0), (0, 1, 0), (1, 1, 0)]);
    }
}
