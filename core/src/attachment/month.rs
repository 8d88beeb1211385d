//! The key of a month: the least UUIDv7 of its time, as `waypost_uuid_floor` makes it.

use std::time::Duration;

use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, TimeDelta, Utc};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::ids::MessageId;

/// How long after its files a message is accepted, at most: longer than a request may take.
const ACCEPTED_WITHIN: Duration = Duration::from_mins(30);

/// The month of messages that use a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MonthKey(pub(crate) Uuid);

impl MonthKey {
    /// The month in UTC of a message.
    #[must_use]
    pub fn of_message(id: MessageId) -> Self {
        let millis = i64::try_from(id.0.as_u128() >> 80).unwrap_or_default();
        Self::of(DateTime::from_timestamp_millis(millis).unwrap_or(DateTime::UNIX_EPOCH))
    }

    /// The months in which a message may be accepted whose files came at `now`.
    pub(super) fn of_acceptance(now: Timestamp) -> Vec<Self> {
        let latest = now + TimeDelta::from_std(ACCEPTED_WITHIN).unwrap_or_default();
        let mut months = vec![Self::of(now), Self::of(latest)];
        months.dedup();
        months
    }

    fn of(at: Timestamp) -> Self {
        let first = NaiveDate::from_ymd_opt(at.year(), at.month(), 1);
        let first = first.expect("every month has a first day");
        let begin: DateTime<Utc> = first.and_time(NaiveTime::MIN).and_utc();
        let millis = u128::try_from(begin.timestamp_millis()).unwrap_or_default();
        Self(Uuid::from_u128(millis << 80))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_last_minutes_belong_to_both_months() {
        let months = |at: &str| MonthKey::of_acceptance(at.parse().unwrap());
        let (november, december) = (
            MonthKey(Uuid::from_u128(1_793_491_200_000 << 80)),
            MonthKey(Uuid::from_u128(1_796_083_200_000 << 80)),
        );
        assert_eq!(months("2026-11-01T00:00:00Z"), [november]);
        assert_eq!(months("2026-11-30T23:29:59Z"), [november]);
        assert_eq!(months("2026-11-30T23:30:00Z"), [november, december]);
        assert_eq!(months("2026-12-01T00:00:00Z"), [december]);
    }

    #[test]
    fn the_month_of_a_message_is_that_of_its_id() {
        let id = Uuid::from_u128((1_796_083_199_999 << 80) | (7 << 76) | (2 << 62) | 5);
        let november = MonthKey(Uuid::from_u128(1_793_491_200_000 << 80));
        assert_eq!(MonthKey::of_message(MessageId(id)), november);
    }
}
