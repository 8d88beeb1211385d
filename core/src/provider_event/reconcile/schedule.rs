//! When an attempt is looked for. Pure.

use std::time::Duration;

/// The moments of looks, counted from when the outcome became unknown, where evidence is
/// awaited for [`FULL_WAIT`] or longer.
const LOOKS: [Duration; 6] = [
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_mins(1),
    Duration::from_mins(2),
    Duration::from_mins(5),
    Duration::from_mins(10),
];
/// How long before the end of the wait the last look is made, in the same measure: time
/// for its calls and for recording what they find.
const BEFORE_THE_END: Duration = Duration::from_secs(30);
/// The wait that these are made for. A shorter one has them closer together.
const FULL_WAIT: Duration = Duration::from_mins(15);

/// The moments of looks, counted from when the outcome became unknown, in order.
#[derive(Debug, Clone)]
pub struct LookupSchedule(Vec<Duration>);

impl LookupSchedule {
    /// Those within a wait for evidence.
    #[must_use]
    pub fn within(wait: Duration) -> Self {
        let scale = (wait.as_secs_f64() / FULL_WAIT.as_secs_f64()).min(1.0);
        let last = wait.saturating_sub(BEFORE_THE_END.mul_f64(scale));
        let looks = LOOKS.into_iter().map(|look| look.mul_f64(scale));
        Self(looks.chain([last]).collect())
    }

    /// In seconds.
    pub(super) fn offsets(&self) -> Vec<f64> {
        self.0.iter().map(Duration::as_secs_f64).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(wait: Duration) -> Vec<u64> {
        let moments = LookupSchedule::within(wait).offsets();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a few thousand milliseconds"
        )]
        let milliseconds = moments.iter().map(|offset| (offset * 1_000.0) as u64);
        milliseconds.collect()
    }

    #[test]
    fn looks_are_spread_over_the_wait_and_end_before_it() {
        let full = [10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 870_000];
        assert_eq!(seconds(FULL_WAIT), full);
        // A longer wait only moves the last one.
        let hour = seconds(Duration::from_hours(1));
        assert_eq!((hour.len(), hour[5], hour[6]), (7, 600_000, 3_570_000));
        // A shorter one moves all of them.
        let minute = seconds(Duration::from_mins(1));
        assert_eq!((minute[0], minute[5], minute[6]), (666, 40_000, 58_000));
        for wait in [Duration::ZERO, Duration::from_secs(2), FULL_WAIT] {
            let moments = seconds(wait);
            assert!(moments.is_sorted(), "{moments:?}");
            assert!(moments.iter().all(|at| u128::from(*at) <= wait.as_millis()));
        }
    }
}
