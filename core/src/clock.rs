//! The clock. All code that needs the current time gets a [`Clock`]; tests pass a manual one.
//! Durations inside a process (time-outs, back-pressure) use tokio's timers instead.
//!
//! Processes compare times that other processes stored, so all of them use the clock of
//! Postgres: [`crate::db::time`] asks for its time and corrects this clock. Between two
//! corrections the clock follows the monotonic clock of the machine, which cannot be set.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};

/// A moment in UTC, truncated to microseconds, the precision of Postgres.
pub type Timestamp = DateTime<Utc>;

/// A duration as chrono represents it; the maximum if it is out of range.
#[must_use]
pub fn delta(duration: Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX)
}

/// The source of the current time. Cheap to clone; clones share the same time.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System(Arc<Machine>),
    Manual(Arc<AtomicI64>),
}

/// The clock of the machine with its correction.
#[derive(Debug)]
struct Machine {
    started: Instant,
    /// The time at `started`, in microseconds since 1970.
    started_at: AtomicI64,
}

impl Clock {
    /// The clock of the machine, until it is corrected.
    #[must_use]
    pub fn system() -> Self {
        Self::system_off_by(TimeDelta::zero())
    }

    /// The clock of a machine with the wrong time, for tests.
    #[must_use]
    pub fn system_off_by(error: TimeDelta) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that reads the system clock"
        )]
        let now = Utc::now() + error;
        Self(Source::System(Arc::new(Machine {
            started: Instant::now(),
            started_at: AtomicI64::new(now.timestamp_micros()),
        })))
    }

    /// A clock that stays at `start` until [`Clock::advance`] moves it.
    #[must_use]
    pub fn manual(start: Timestamp) -> Self {
        Self(Source::Manual(Arc::new(AtomicI64::new(
            start.timestamp_micros(),
        ))))
    }

    /// The current time in whole microseconds.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let micros = match &self.0 {
            Source::System(machine) => {
                let elapsed = machine.started.elapsed().as_micros();
                let started_at = machine.started_at.load(Ordering::SeqCst);
                started_at.saturating_add(i64::try_from(elapsed).unwrap_or(i64::MAX))
            }
            Source::Manual(micros) => micros.load(Ordering::SeqCst),
        };
        DateTime::from_timestamp_micros(micros).expect("a clock's time lies within chrono's range")
    }

    /// Whether this is the clock of the machine, which may be wrong.
    #[must_use]
    pub fn is_system(&self) -> bool {
        matches!(self.0, Source::System(_))
    }

    /// Corrects the clock by the `reference` time of another clock, which was asked at
    /// `asked` and answered by `answered`, both by this clock. A reference between the two
    /// needs no correction. Returns the error that was corrected. A manual clock is never
    /// corrected.
    pub fn correct(
        &self,
        asked: Timestamp,
        reference: Timestamp,
        answered: Timestamp,
    ) -> TimeDelta {
        let Source::System(machine) = &self.0 else {
            return TimeDelta::zero();
        };
        if (asked..=answered).contains(&reference) {
            return TimeDelta::zero();
        }
        let error = asked + (answered - asked) / 2 - reference;
        let micros = error.num_microseconds().unwrap_or_default();
        machine.started_at.fetch_sub(micros, Ordering::SeqCst);
        error
    }

    /// Moves a manual clock forward. Does nothing to the clock of the machine.
    pub fn advance(&self, by: TimeDelta) {
        if let Source::Manual(micros) = &self.0 {
            micros.fetch_add(by.num_microseconds().unwrap_or(0), Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_corrected_if_the_round_trip_does_not_explain_the_difference() {
        let right = Clock::system();
        for (error_seconds, trip_millis) in [(3_600, 5), (-600, 5), (2, 1_000), (0, 2_000)] {
            let clock = Clock::system_off_by(TimeDelta::seconds(error_seconds));
            let asked = clock.now();
            let trip = TimeDelta::milliseconds(trip_millis);
            // The answer is from the middle of the round trip.
            let reference = right.now() + trip / 2;
            let found = clock.correct(asked, reference, asked + trip);
            assert!((found.num_seconds() - error_seconds).abs() <= 1, "{found}");
            let left = (clock.now() - right.now()).abs();
            assert!(left < TimeDelta::milliseconds(500), "{left}");
        }
        let manual = Clock::manual(right.now());
        let before = manual.now();
        manual.correct(before, before + TimeDelta::hours(1), before);
        assert_eq!(manual.now(), before);
    }
}
