//! Time, as the system sees it. Everything that needs "now" is handed a
//! [`Clock`]; tests hand in one that they move themselves. Durations inside one
//! process (time-outs, back-pressure) use tokio's timers and not this clock.
//!
//! What one process writes down as a time others compare with theirs, so all of them go
//! by Postgres' clock: [`crate::db::time`] asks it and corrects this one. Between its
//! answers time goes on by the machine's monotonic clock, which nobody sets.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};

/// A moment in UTC, truncated to microseconds as Postgres keeps it.
pub type Timestamp = DateTime<Utc>;

/// A span as chrono counts it; one beyond its range is the longest there is.
#[must_use]
pub fn delta(span: Duration) -> TimeDelta {
    TimeDelta::from_std(span).unwrap_or(TimeDelta::MAX)
}

/// The source of "now". Cheap to clone; clones share the same time.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System(Arc<Machine>),
    Manual(Arc<AtomicI64>),
}

/// The machine's clock, as it was corrected last.
#[derive(Debug)]
struct Machine {
    started: Instant,
    /// The time at `started`, in microseconds since 1970.
    started_at: AtomicI64,
}

impl Clock {
    /// The machine's own clock, until it is corrected.
    #[must_use]
    pub fn system() -> Self {
        Self::system_off_by(TimeDelta::zero())
    }

    /// The clock of a machine that has the wrong time, for tests.
    #[must_use]
    pub fn system_off_by(error: TimeDelta) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that asks the machine"
        )]
        let now = Utc::now() + error;
        Self(Source::System(Arc::new(Machine {
            started: Instant::now(),
            started_at: AtomicI64::new(now.timestamp_micros()),
        })))
    }

    /// A clock that stands still at `start` until [`Clock::advance`] moves it.
    #[must_use]
    pub fn manual(start: Timestamp) -> Self {
        Self(Source::Manual(Arc::new(AtomicI64::new(
            start.timestamp_micros(),
        ))))
    }

    /// The present moment, in whole microseconds.
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

    /// Whether it is a machine's, which may be wrong.
    #[must_use]
    pub fn is_machines(&self) -> bool {
        matches!(self.0, Source::System(_))
    }

    /// Corrects the clock by what another said, which was asked at `asked` and had
    /// answered at `answered`, both by this one. What lies between these is right. Answers
    /// by how much it was wrong. A manual clock is always right.
    pub fn correct(&self, asked: Timestamp, told: Timestamp, answered: Timestamp) -> TimeDelta {
        let Source::System(machine) = &self.0 else {
            return TimeDelta::zero();
        };
        if (asked..=answered).contains(&told) {
            return TimeDelta::zero();
        }
        let error = asked + (answered - asked) / 2 - told;
        let micros = error.num_microseconds().unwrap_or_default();
        machine.started_at.fetch_sub(micros, Ordering::SeqCst);
        error
    }

    /// Moves a manual clock forward. The machine's clock cannot be moved: the
    /// call does nothing there.
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
    fn a_clock_is_corrected_where_the_round_trip_does_not_explain_the_difference() {
        let right = Clock::system();
        for (error_seconds, trip_millis) in [(3_600, 5), (-600, 5), (2, 1_000), (0, 2_000)] {
            let clock = Clock::system_off_by(TimeDelta::seconds(error_seconds));
            let asked = clock.now();
            let trip = TimeDelta::milliseconds(trip_millis);
            // Half of the way is there, half of it back.
            let told = right.now() + trip / 2;
            let found = clock.correct(asked, told, asked + trip);
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
