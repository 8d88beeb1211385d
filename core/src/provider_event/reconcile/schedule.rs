//! When attempts are looked up. Pure.

use std::time::Duration;

/// The times of lookups after the outcome became unknown, for a wait of [`FULL_WAIT`] or
/// longer.
const OFFSETS: [Duration; 6] = [
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_mins(1),
    Duration::from_mins(2),
    Duration::from_mins(5),
    Duration::from_mins(10),
];
/// How long before the end of the wait the last lookup starts: time for its calls and for
/// recording the result.
const END_MARGIN: Duration = Duration::from_secs(30);
/// The wait that the times above are for. A shorter wait scales them down.
const FULL_WAIT: Duration = Duration::from_mins(15);

/// The times of lookups after the outcome became unknown, ascending.
#[derive(Debug, Clone)]
pub struct LookupSchedule(Vec<Duration>);

impl LookupSchedule {
    /// The schedule for a wait of this length.
    #[must_use]
    pub fn within(wait: Duration) -> Self {
        let scale = (wait.as_secs_f64() / FULL_WAIT.as_secs_f64()).min(1.0);
        let last = wait.saturating_sub(END_MARGIN.mul_f64(scale));
        let offsets = OFFSETS.into_iter().map(|offset| offset.mul_f64(scale));
        Self(offsets.chain([last]).collect())
    }

    /// The times, in seconds.
    pub(super) fn offsets(&self) -> Vec<f64> {
        self.0.iter().map(Duration::as_secs_f64).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(wait: Duration) -> Vec<u64> {
        let offsets = LookupSchedule::within(wait).offsets();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a few thousand milliseconds"
        )]
        let milliseconds = offsets.iter().map(|offset| (offset * 1_000.0) as u64);
        milliseconds.collect()
    }

    #[test]
    fn lookups_are_spread_over_the_wait_and_end_before_it() {
        let full = [10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 870_000];
        assert_eq!(seconds(FULL_WAIT), full);
        // A longer wait only moves the last lookup.
        let hour = seconds(Duration::from_hours(1));
        assert_eq!((hour.len(), hour[5], hour[6]), (7, 600_000, 3_570_000));
        // A shorter wait moves all of them.
        let minute = seconds(Duration::from_mins(1));
        assert_eq!((minute[0], minute[5], minute[6]), (666, 40_000, 58_000));
        for wait in [Duration::ZERO, Duration::from_secs(2), FULL_WAIT] {
            let offsets = seconds(wait);
            assert!(offsets.is_sorted(), "{offsets:?}");
            assert!(offsets.iter().all(|at| u128::from(*at) <= wait.as_millis()));
        }
    }
}
