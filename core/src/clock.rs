//! Time, as the system sees it. Everything that needs "now" is handed a
//! [`Clock`]; tests hand in one that they move themselves. Durations inside one
//! process (time-outs, back-pressure) use tokio's timers and not this clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

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
    System,
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// The machine's own clock.
    #[must_use]
    pub fn system() -> Self {
        Self(Source::System)
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
            Source::System => {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "the one place that asks the machine"
                )]
                let now = Utc::now();
                now.timestamp_micros()
            }
            Source::Manual(micros) => micros.load(Ordering::SeqCst),
        };
        DateTime::from_timestamp_micros(micros).expect("a clock's time lies within chrono's range")
    }

    /// Moves a manual clock forward. The machine's clock cannot be moved: the
    /// call does nothing there.
    pub fn advance(&self, by: TimeDelta) {
        if let Source::Manual(micros) = &self.0 {
            micros.fetch_add(by.num_microseconds().unwrap_or(0), Ordering::SeqCst);
        }
    }
}
