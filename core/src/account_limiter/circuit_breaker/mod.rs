//! The rules of the gate, pure: when an account is closed, for how long, and what
//! opens it again.
//!
//! An account's [`BreakerState`] is what all workers go by. It closes by too many
//! failures in the [`SampleWindow`] (the circuit opens, as electricians say), because the
//! account itself cannot send, or because the provider named a pause. After a pause
//! calls pass again. After the others one call goes first, the *probe*; what comes of
//! it lets all others through or closes the gate again. Every change has a number one
//! higher than the one before, and the higher number counts, so that workers whose
//! clocks disagree still agree on what came last.

use std::collections::VecDeque;
use std::time::Duration;

use chrono::DateTime;

use super::RejectedBy;
use crate::clock::{Timestamp, delta};
use crate::provider::outcome::SendOutcome;

/// Failures that open a circuit at the least: fewer may be chance, and an account
/// that is hardly used is not to be closed by one cut connection.
pub(super) const FAILURES_MIN: u32 = 5;
/// One failure in so many calls opens a circuit. Where every second call passes,
/// sending on is worth more than waiting.
const ONE_FAILURE_IN: u32 = 2;
/// How long a call counts for: longer than a burst of errors, and short enough that
/// an hour without any does not hide a provider that goes down.
pub(super) const WINDOW: Duration = Duration::from_secs(20);
/// The window moves on by so much at a time.
pub(super) const SLOT: Duration = Duration::from_secs(5);
/// How long an account is closed the first time that its circuit opens or that it
/// cannot send; it doubles with every failed probe.
const OPEN_FIRST: Duration = Duration::from_secs(5);
/// What that grows to.
const OPEN_MAX: Duration = Duration::from_mins(5);
/// How far the time strays from that, so that circuits which opened together do not
/// probe together: a fifth, either way.
const JITTER: f64 = 0.2;
/// The longest that a provider is left alone at a time, and so the longest that any
/// account is closed. What it wants beyond that it says again to the next call.
const ASKED_MAX: Duration = Duration::from_mins(15);

/// What calls under way name beyond a pause by less than this is the same pause.
const EXTENSION_MIN: Duration = Duration::from_secs(1);

/// What a call says about its account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sample {
    Success,
    Failure {
        /// How long the provider wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// It works, and is used too fast.
    Throttled {
        /// The pause that the provider names.
        retry_after: Option<Duration>,
    },
    /// The account itself cannot send.
    Unusable {
        /// How long the provider wants to be left alone.
        retry_after: Option<Duration>,
    },
}

impl From<&SendOutcome> for Sample {
    fn from(outcome: &SendOutcome) -> Self {
        // A wait that is over names no pause. Standings are kept by the millisecond.
        let named = |wait: &Option<Duration>| wait.filter(|wait| wait.as_millis() > 0);
        match outcome {
            // What a mail or a recipient is refused for says nothing of the account.
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

/// Why an account is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Circuit,
    /// The provider named a pause.
    Asked,
    /// The account itself cannot send.
    Unusable,
}

impl From<Cause> for RejectedBy {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Circuit => Self::Circuit,
            Cause::Asked => Self::Asked,
            Cause::Unusable => Self::Unusable,
        }
    }
}

/// How an account stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BreakerState {
    /// How many changes led here.
    pub(super) version: u64,
    /// Why it is closed; nothing while it is not.
    pub(super) closed_by: Option<Cause>,
    /// Until when no call is made.
    until: Timestamp,
    /// How often it closed in a row other than for a named pause.
    openings: u32,
    /// The account's revision when it closed: what somebody mended since opens it.
    revision: u32,
}

/// What a standing means at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BreakerPhase {
    Passing,
    /// None does for so long.
    Shut(Cause, Duration),
    /// One may, to see how things are.
    Probing(Cause),
}

impl BreakerState {
    pub(super) fn position(&self, now: Timestamp) -> BreakerPhase {
        let Some(cause) = self.closed_by else {
            return BreakerPhase::Passing;
        };
        match (self.until - now).to_std() {
            Ok(wait) if !wait.is_zero() => BreakerPhase::Shut(cause, wait),
            Ok(_) | Err(_) => match cause {
                Cause::Asked => BreakerPhase::Passing,
                Cause::Circuit | Cause::Unusable => BreakerPhase::Probing(cause),
            },
        }
    }

    /// The standing that Redis holds, closed for no longer than any may be: whoever
    /// wrote it may have had a wrong clock.
    pub(super) fn clamped(mut self, now: Timestamp) -> Self {
        self.until = self.until.min(now + delta(ASKED_MAX));
        self
    }

    /// Whether it is closed for longer than any may be.
    pub(super) fn is_beyond(&self, now: Timestamp) -> bool {
        self.clamped(now).until != self.until
    }

    /// The same account after somebody mended it; nothing where it was not closed or
    /// that was known when it closed.
    pub(super) fn mended(&self, revision: u32, now: Timestamp) -> Option<Self> {
        let is_old = self.revision < revision && self.position(now) != BreakerPhase::Passing;
        is_old.then(|| Self {
            revision,
            ..self.reopened()
        })
    }

    /// Says under which revision of the account it came to be.
    pub(super) fn under(mut self, revision: u32) -> Self {
        self.revision = self.revision.max(revision);
        self
    }

    /// How long from now on the standing is of use to those who do not know it.
    pub(super) fn lifetime(&self, now: Timestamp) -> Duration {
        let left = (self.until - now).to_std().unwrap_or_default();
        left.min(ASKED_MAX) + ASKED_MAX
    }

    /// What follows from a call that was no probe; nothing where all stays as it
    /// is. `has_tripped` says whether failures are too many by now.
    pub(super) fn after_call(
        &self,
        verdict: Sample,
        has_tripped: bool,
        now: Timestamp,
        fraction: f64,
    ) -> Option<Self> {
        if let BreakerPhase::Shut(cause, left) = self.position(now) {
            // What was under way when it closed: the longest wait counts.
            let wanted = verdict.retry_after()?.min(ASKED_MAX);
            return (wanted > left + EXTENSION_MIN).then(|| self.closed(cause, wanted, now));
        }
        match verdict {
            Sample::Success => None,
            Sample::Throttled { retry_after } => Some(self.paused(retry_after?, now)),
            Sample::Unusable { retry_after } => Some(self.unusable(retry_after, now, fraction)),
            Sample::Failure { .. } if has_tripped => {
                Some(self.opened(verdict.retry_after(), now, fraction))
            }
            Sample::Failure { retry_after } => Some(self.paused(retry_after?, now)),
        }
    }

    /// What follows from the probe.
    pub(super) fn after_probe(&self, verdict: Sample, now: Timestamp, fraction: f64) -> Self {
        match verdict {
            Sample::Success | Sample::Throttled { retry_after: None } => self.reopened(),
            Sample::Throttled {
                retry_after: Some(wanted),
            } => self.reopened().paused(wanted, now),
            Sample::Failure { retry_after } => self.opened(retry_after, now, fraction),
            Sample::Unusable { retry_after } => self.unusable(retry_after, now, fraction),
        }
    }

    fn reopened(&self) -> Self {
        Self {
            version: self.version + 1,
            closed_by: None,
            openings: 0,
            ..*self
        }
    }

    /// The circuit opens, or opens again.
    pub(super) fn opened(
        &self,
        retry_after: Option<Duration>,
        now: Timestamp,
        fraction: f64,
    ) -> Self {
        self.left_alone(Cause::Circuit, retry_after, now, fraction)
    }

    /// The account cannot send, or still cannot.
    fn unusable(&self, retry_after: Option<Duration>, now: Timestamp, fraction: f64) -> Self {
        self.left_alone(Cause::Unusable, retry_after, now, fraction)
    }

    /// Closed until a probe, for longer each time in a row.
    fn left_alone(
        &self,
        cause: Cause,
        retry_after: Option<Duration>,
        now: Timestamp,
        fraction: f64,
    ) -> Self {
        let openings = self.openings.saturating_add(1);
        let length = doubled(OPEN_FIRST, openings, OPEN_MAX);
        let stray = 1.0 - JITTER + 2.0 * JITTER * fraction;
        let wanted = retry_after.unwrap_or_default().min(ASKED_MAX);
        Self {
            openings,
            ..self.closed(cause, length.mul_f64(stray).max(wanted), now)
        }
    }

    /// The provider names a pause.
    fn paused(&self, wanted: Duration, now: Timestamp) -> Self {
        self.closed(Cause::Asked, wanted.min(ASKED_MAX), now)
    }

    fn closed(&self, cause: Cause, length: Duration, now: Timestamp) -> Self {
        Self {
            version: self.version + 1,
            closed_by: Some(cause),
            until: now + delta(length),
            ..*self
        }
    }

    /// As Redis keeps it; the number comes first, for scripts compare it.
    pub(super) fn to_text(self) -> String {
        let cause = match self.closed_by {
            None => "-",
            Some(Cause::Circuit) => "circuit",
            Some(Cause::Asked) => "asked",
            Some(Cause::Unusable) => "unusable",
        };
        let until = self.until.timestamp_millis();
        let Self {
            version,
            openings,
            revision,
            ..
        } = self;
        format!("{version} {cause} {until} {openings} {revision}")
    }

    /// Reads it back; nothing where it is something else.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let [version, cause, until, openings, revision] = words[..] else {
            return None;
        };
        Some(Self {
            version: version.parse().ok()?,
            closed_by: match cause {
                "-" => None,
                "circuit" => Some(Cause::Circuit),
                "asked" => Some(Cause::Asked),
                "unusable" => Some(Cause::Unusable),
                // Of another release: a probe tells whether it still holds.
                _ => Some(Cause::Circuit),
            },
            until: DateTime::from_timestamp_millis(until.parse().ok()?)?,
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

/// `first`, doubled with every time after the first, up to `max`.
fn doubled(first: Duration, times: u32, max: Duration) -> Duration {
    let factor = 1_u32.checked_shl(times.saturating_sub(1));
    first.saturating_mul(factor.unwrap_or(u32::MAX)).min(max)
}

/// Calls and failures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SampleCounts {
    pub(super) failures: u32,
    pub(super) successes: u32,
}

impl SampleCounts {
    /// Adds one call; one that says nothing about failures does not count.
    pub(super) fn add(&mut self, verdict: Sample) {
        match verdict {
            Sample::Success => self.successes = self.successes.saturating_add(1),
            Sample::Failure { .. } => self.failures = self.failures.saturating_add(1),
            Sample::Throttled { .. } | Sample::Unusable { .. } => {}
        }
    }

    /// Whether they open a circuit.
    pub(super) fn trip(self) -> bool {
        let calls = self.failures.saturating_add(self.successes);
        self.failures >= FAILURES_MIN && self.failures.saturating_mul(ONE_FAILURE_IN) >= calls
    }
}

/// The calls of the last [`WINDOW`], counted by slots of [`SLOT`].
#[derive(Debug, Default)]
pub(super) struct SampleWindow {
    slots: VecDeque<(i64, SampleCounts)>,
}

impl SampleWindow {
    pub(super) fn add(&mut self, verdict: Sample, now: Timestamp) {
        let slot = now.timestamp() / i64::try_from(SLOT.as_secs()).unwrap_or(1);
        let newest = self.slots.back_mut().filter(|(newest, _)| *newest == slot);
        match newest {
            Some((_, counts)) => counts.add(verdict),
            None => {
                let mut counts = SampleCounts::default();
                counts.add(verdict);
                self.slots.push_back((slot, counts));
            }
        }
        self.forget_before(now);
    }

    /// What the window holds at a moment.
    pub(super) fn counts(&mut self, now: Timestamp) -> SampleCounts {
        self.forget_before(now);
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

    fn forget_before(&mut self, now: Timestamp) {
        let oldest = (now - delta(WINDOW)).timestamp() / i64::try_from(SLOT.as_secs()).unwrap_or(1);
        while self.slots.front().is_some_and(|(slot, _)| *slot <= oldest) {
            self.slots.pop_front();
        }
    }
}

#[cfg(test)]
mod tests;
