//! What news adds to the metrics. Pure. Counted here, where it is known what a copy was
//! and what it becomes, and not by the trigger on `events`, which would have to look both
//! up again.

use std::collections::BTreeMap;

use super::progress::{Progress, Standing};
use crate::clock::Timestamp;
use crate::event::EventType;
use crate::ids::{OrganizationId, ProviderAccountId, TemplateId};
use crate::metrics::{Counts, Delta, start_of_hour};

/// What a copy counts under, besides its organization and the hour.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Dimensions {
    /// The account that it went through, or is to.
    pub(super) account_id: ProviderAccountId,
    /// The domain that it was sent from.
    pub(super) domain: String,
    /// What it was made from.
    pub(super) template_id: Option<TemplateId>,
}

/// One of the numbers.
type Number = fn(&mut Counts) -> &mut i64;

/// Something that counts, or does not after all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count {
    at: Timestamp,
    of: Number,
    change: i64,
}

/// What counts of a copy.
pub(super) struct Counted {
    pub(super) organization_id: OrganizationId,
    pub(super) dimensions: Dimensions,
    pub(super) counts: Vec<Count>,
}

/// What counts of the news of a copy. It is opened once, at the earliest moment that is
/// told of; one that is told of late takes the place of the other.
pub(super) fn counts(before: &Standing, progress: &Progress) -> Vec<Count> {
    let count = |at, of, change| Count { at, of, change };
    let lines = progress.lines.iter();
    let mut counts: Vec<Count> = lines
        .filter_map(|line| Some(count(line.occurred_at, count_of(line.event_type)?, 1)))
        .collect();
    let after = &progress.standing;
    let firsts: [(_, _, Number); 2] = [
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

/// What every event of this type counts as.
fn count_of(event_type: EventType) -> Option<Number> {
    match event_type {
        EventType::Sent => Some(|counts| &mut counts.sent),
        EventType::Delivered => Some(|counts| &mut counts.delivered),
        EventType::Bounced => Some(|counts| &mut counts.bounced),
        EventType::Complained => Some(|counts| &mut counts.complained),
        EventType::Unsubscribed => Some(|counts| &mut counts.unsubscribed),
        // Once for each recipient, and not by machines.
        EventType::Opened | EventType::Clicked => None,
        EventType::Queued | EventType::Dropped | EventType::Deferred => None,
    }
}

/// What the news of copies adds, those together that count alike.
pub(super) fn deltas(copies: impl Iterator<Item = Counted>) -> Vec<Delta> {
    let mut deltas: BTreeMap<(OrganizationId, Timestamp, Dimensions), Counts> = BTreeMap::new();
    for copy in copies {
        for count in copy.counts {
            let hour = start_of_hour(count.at);
            let key = (copy.organization_id, hour, copy.dimensions.clone());
            *(count.of)(deltas.entry(key).or_default()) += count.change;
        }
    }
    let deltas = deltas.into_iter();
    let deltas = deltas.filter(|(_, counts)| *counts != Counts::default());
    let deltas = deltas.map(|((organization_id, hour, dimensions), counts)| Delta {
        organization_id,
        hour,
        account_id: dimensions.account_id,
        domain: dimensions.domain,
        template_id: dimensions.template_id,
        counts,
    });
    deltas.collect()
}
