//! The circuit breaker of a provider account, pure: when it opens, for how long, and
//! what closes it.
//!
//! All workers share an account's [`BreakerState`]. The breaker opens when too many calls
//! in the [`SampleWindow`] fail, when the account itself cannot send, or when the provider
//! names a pause. After a named pause it closes. After the other causes it is half-open: each
//! worker makes one call, the *trial*, whose result closes the breaker or opens it again.

use std::collections::VecDeque;
use std::time::Duration;

use chrono::{DateTime, SubsecRound as _};

use super::RejectedBy;
use crate::clock::{Timestamp, delta};
use crate::provider::outcome::SendOutcome;

/// The fewest failures that open the breaker: fewer may be chance, and one lost
/// connection must not stop an account that is rarely used.
pub(super) const FAILURES_MIN: u32 = 5;
/// The breaker opens if at least one call in this many fails. While more than half of the
/// calls succeed, sending is worth more than waiting.
const ONE_FAILURE_IN: u32 = 2;
/// How long a call counts: longer than a burst of errors, and short enough that an hour
/// without errors does not hide a provider that goes down.
pub(super) const WINDOW: Duration = Duration::from_secs(20);
/// The resolution of the window.
pub(super) const SLOT: Duration = Duration::from_secs(5);
/// How long the breaker stays open the first time for failures or an unusable account. The
/// time doubles with every failed trial.
const OPEN_FIRST: Duration = Duration::from_secs(5);
/// The longest such time.
const OPEN_MAX: Duration = Duration::from_mins(5);
/// The jitter of that time, either way, so that breakers that opened together do not
/// make their trials together.
const JITTER: f64 = 0.2;
/// The longest pause that a provider can name, and the longest that any breaker stays
/// open. A provider that wants a longer pause repeats it in its answer to the next call.
const PAUSE_MAX: Duration = Duration::from_mins(15);

/// A call in flight extends a named pause only if it exceeds it by more than this.
const EXTENSION_MIN: Duration = Duration::from_secs(1);

/// What the result of a call says about the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sample {
    Success,
    Failure {
        /// The pause that the provider names.
        retry_after: Option<Duration>,
    },
    /// The account works but sends too fast.
    Throttled {
        /// The pause that the provider names.
        retry_after: Option<Duration>,
    },
    /// The account itself cannot send.
    Unusable {
        /// The pause that the provider names.
        retry_after: Option<Duration>,
    },
}

impl From<&SendOutcome> for Sample {
    fn from(outcome: &SendOutcome) -> Self {
        // A wait of less than a millisecond is no pause.
        let named = |wait: &Option<Duration>| wait.filter(|wait| wait.as_millis() > 0);
        match outcome {
            // A rejected message or recipient says nothing about the account.
            SendOutcome::Accepted { .. }
            | SendOutcome::Rejected { .. }
            | SendOutcome::Deferred { .. } => Self::Success,
            SendOutcome::AccountUnusable { retry_after, .. } => Self::Unusable {
                retry_after: named(retry_after),
            },
            SendOutcome::Throttled { retry_after, .. } => Self::Throttled {
                retry_after: named(retry_after),
            },
            SendOutcome::Unavailable { retry_after, .. } => Self::Failure {
                retry_after: named(retry_after),
            },
            SendOutcome::Unknown { .. } => Self::Failure { retry_after: None },
        }
    }
}

/// Why the breaker is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Failures,
    /// The provider named a pause.
    Pause,
    /// The account itself cannot send.
    Unusable,
}

impl From<Cause> for RejectedBy {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Failures => Self::Circuit,
            Cause::Pause => Self::Pause,
            Cause::Unusable => Self::Unusable,
        }
    }
}

/// The state of an account's circuit breaker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BreakerState {
    /// Why the breaker is open; `None` while it is closed.
    pub(super) open_cause: Option<Cause>,
    /// The end of the time without calls, in whole microseconds, as Redis stores it.
    until: Timestamp,
    /// How often the breaker opened in a row, named pauses not counted.
    openings: u32,
    /// The account's revision when the breaker opened. A higher revision closes it.
    revision: u32,
}

/// What a [`BreakerState`] means at a given time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BreakerPhase {
    Closed,
    /// No call may start for this long.
    Open(Cause, Duration),
    /// One call of each worker may start: its trial.
    HalfOpen(Cause),
}

impl BreakerState {
    pub(super) fn phase(&self, now: Timestamp) -> BreakerPhase {
        let Some(cause) = self.open_cause else {
            return BreakerPhase::Closed;
        };
        match (self.until - now).to_std() {
            Ok(wait) if !wait.is_zero() => BreakerPhase::Open(cause, wait),
            Ok(_) | Err(_) => match cause {
                Cause::Pause => BreakerPhase::Closed,
                Cause::Failures | Cause::Unusable => BreakerPhase::HalfOpen(cause),
            },
        }
    }

    /// Whether no call may start.
    pub(super) fn is_open(&self, now: Timestamp) -> bool {
        matches!(self.phase(now), BreakerPhase::Open(..))
    }

    /// The state with its end at most [`PAUSE_MAX`] away: the worker that wrote it may
    /// have had a wrong clock.
    pub(super) fn clamped(mut self, now: Timestamp) -> Self {
        self.until = self.until.min(now + delta(PAUSE_MAX));
        self
    }

    /// Whether both are open and this one for longer, not counting a state from before a
    /// change of the account.
    pub(super) fn outlasts(&self, other: &Self, now: Timestamp) -> bool {
        let phases = (self.phase(now), other.phase(now));
        let ends_later = matches!(
            phases,
            (BreakerPhase::Open(_, own), BreakerPhase::Open(_, theirs)) if own > theirs
        );
        ends_later && self.revision >= other.revision
    }

    /// The state after a change of the account; `None` if the breaker is not open or opened
    /// under this revision or a later one.
    pub(super) fn reset_by_revision(&self, revision: u32, now: Timestamp) -> Option<Self> {
        let is_old = self.revision < revision && self.phase(now) != BreakerPhase::Closed;
        is_old.then(|| Self {
            revision,
            ..self.closed()
        })
    }

    /// The same state with the account's revision, if that is higher.
    pub(super) fn with_revision(mut self, revision: u32) -> Self {
        self.revision = self.revision.max(revision);
        self
    }

    /// How long Redis keeps the state: workers that do not know it need it no longer.
    pub(super) fn ttl(&self, now: Timestamp) -> Duration {
        let left = (self.until - now).to_std().unwrap_or_default();
        left.min(PAUSE_MAX) + PAUSE_MAX
    }

    /// The state after a call that was not the trial; `None` if nothing changes.
    /// `has_tripped` says whether too many calls failed.
    pub(super) fn after_call(
        &self,
        sample: Sample,
        has_tripped: bool,
        now: Timestamp,
        fraction: f64,
    ) -> Option<Self> {
        if let BreakerPhase::Open(cause, left) = self.phase(now) {
            // The call was in flight when the breaker opened: the longest pause wins.
            let wanted = sample.retry_after()?.min(PAUSE_MAX);
            return (wanted > left + EXTENSION_MIN).then(|| self.open(cause, wanted, now));
        }
        match sample {
            Sample::Success => None,
            Sample::Throttled { retry_after } => Some(self.paused(retry_after?, now)),
            Sample::Unusable { retry_after } => Some(self.unusable(retry_after, now, fraction)),
            Sample::Failure { .. } if has_tripped => {
                Some(self.opened_by_failures(sample.retry_after(), now, fraction))
            }
            Sample::Failure { retry_after } => Some(self.paused(retry_after?, now)),
        }
    }

    /// The state after the trial.
    pub(super) fn after_trial(&self, sample: Sample, now: Timestamp, fraction: f64) -> Self {
        match sample {
            Sample::Success | Sample::Throttled { retry_after: None } => self.closed(),
            Sample::Throttled {
                retry_after: Some(wanted),
            } => self.closed().paused(wanted, now),
            Sample::Failure { retry_after } => self.opened_by_failures(retry_after, now, fraction),
            Sample::Unusable { retry_after } => self.unusable(retry_after, now, fraction),
        }
    }

    fn closed(&self) -> Self {
        Self {
            open_cause: None,
            openings: 0,
            ..*self
        }
    }

    /// Opens the breaker because too many calls failed.
    pub(super) fn opened_by_failures(
        &self,
        retry_after: Option<Duration>,
        now: Timestamp,
        fraction: f64,
    ) -> Self {
        self.opened_with_backoff(Cause::Failures, retry_after, now, fraction)
    }

    /// Opens the breaker because the account cannot send.
    fn unusable(&self, retry_after: Option<Duration>, now: Timestamp, fraction: f64) -> Self {
        self.opened_with_backoff(Cause::Unusable, retry_after, now, fraction)
    }

    /// Opens the breaker until a trial, each time in a row for longer.
    fn opened_with_backoff(
        &self,
        cause: Cause,
        retry_after: Option<Duration>,
        now: Timestamp,
        fraction: f64,
    ) -> Self {
        let openings = self.openings.saturating_add(1);
        let length = doubled(OPEN_FIRST, openings, OPEN_MAX);
        let jitter = 1.0 - JITTER + 2.0 * JITTER * fraction;
        let wanted = retry_after.unwrap_or_default().min(PAUSE_MAX);
        Self {
            openings,
            ..self.open(cause, length.mul_f64(jitter).max(wanted), now)
        }
    }

    /// Opens the breaker for the pause that the provider names.
    fn paused(&self, wanted: Duration, now: Timestamp) -> Self {
        self.open(Cause::Pause, wanted.min(PAUSE_MAX), now)
    }

    fn open(&self, cause: Cause, length: Duration, now: Timestamp) -> Self {
        Self {
            open_cause: Some(cause),
            until: (now + delta(length)).trunc_subsecs(6),
            ..*self
        }
    }

    /// The text stored in Redis.
    pub(super) fn to_text(self) -> String {
        let cause = match self.open_cause {
            None => "closed",
            Some(Cause::Failures) => "failures",
            Some(Cause::Pause) => "pause",
            Some(Cause::Unusable) => "unusable",
        };
        let until = self.until.timestamp_micros();
        let (openings, revision) = (self.openings, self.revision);
        format!("{cause} {until} {openings} {revision}")
    }

    /// Reads the text of [`BreakerState::to_text`]; `None` if it is malformed.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let [cause, until, openings, revision] = words[..] else {
            return None;
        };
        Some(Self {
            open_cause: match cause {
                "closed" => None,
                "failures" => Some(Cause::Failures),
                "pause" => Some(Cause::Pause),
                "unusable" => Some(Cause::Unusable),
                // A cause of another release: the trial finds out whether it still holds.
                _ => Some(Cause::Failures),
            },
            until: DateTime::from_timestamp_micros(until.parse().ok()?)?,
            openings: openings.parse().ok()?,
            revision: revision.parse().ok()?,
        })
    }
}

impl Sample {
    /// Whether the account itself cannot send.
    pub(super) fn is_unusable(self) -> bool {
        matches!(self, Self::Unusable { .. })
    }

    fn retry_after(self) -> Option<Duration> {
        match self {
            Self::Success => None,
            Self::Failure { retry_after }
            | Self::Throttled { retry_after }
            | Self::Unusable { retry_after } => retry_after,
        }
    }
}

/// `first`, doubled for every time after the first, at most `max`.
fn doubled(first: Duration, times: u32, max: Duration) -> Duration {
    let factor = 1_u32.checked_shl(times.saturating_sub(1));
    first.saturating_mul(factor.unwrap_or(u32::MAX)).min(max)
}

/// The number of failed and of successful calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SampleCounts {
    pub(super) failures: u32,
    pub(super) successes: u32,
}

impl SampleCounts {
    /// Adds a call. Throttling and an unusable account do not count.
    pub(super) fn add(&mut self, sample: Sample) {
        match sample {
            Sample::Success => self.successes = self.successes.saturating_add(1),
            Sample::Failure { .. } => self.failures = self.failures.saturating_add(1),
            Sample::Throttled { .. } | Sample::Unusable { .. } => {}
        }
    }

    /// Whether these counts open the breaker.
    pub(super) fn should_trip(self) -> bool {
        let calls = self.failures.saturating_add(self.successes);
        self.failures >= FAILURES_MIN && self.failures.saturating_mul(ONE_FAILURE_IN) >= calls
    }
}

/// The calls of the last [`WINDOW`], counted in slots of [`SLOT`].
#[derive(Debug, Default)]
pub(super) struct SampleWindow {
    slots: VecDeque<(i64, SampleCounts)>,
}

impl SampleWindow {
    pub(super) fn add(&mut self, sample: Sample, now: Timestamp) {
        let slot = now.timestamp() / i64::try_from(SLOT.as_secs()).unwrap_or(1);
        let newest = self.slots.back_mut().filter(|(newest, _)| *newest == slot);
        match newest {
            Some((_, counts)) => counts.add(sample),
            None => {
                let mut counts = SampleCounts::default();
                counts.add(sample);
                self.slots.push_back((slot, counts));
            }
        }
        self.drop_before(now);
    }

    /// The calls in the window that ends now.
    pub(super) fn counts(&mut self, now: Timestamp) -> SampleCounts {
        self.drop_before(now);
        let mut sum = SampleCounts::default();
        for (_, counts) in &self.slots {
            sum.failures = sum.failures.saturating_add(counts.failures);
            sum.successes = sum.successes.saturating_add(counts.successes);
        }
        sum
    }

    pub(super) fn clear(&mut self) {
        self.slots.clear();
    }

    fn drop_before(&mut self, now: Timestamp) {
        let oldest = (now - delta(WINDOW)).timestamp() / i64::try_from(SLOT.as_secs()).unwrap_or(1);
        while self.slots.front().is_some_and(|(slot, _)| *slot <= oldest) {
            self.slots.pop_front();
        }
    }
}

#[cfg(test)]
mod tests;
