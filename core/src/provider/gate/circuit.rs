//! The rules of the gate, pure: when an account is closed, for how long, and what
//! opens it again.
//!
//! An account's [`Standing`] is what all workers go by. It closes by too many
//! failures in the [`Window`] (the circuit opens, as electricians say) or because
//! the provider asked for a pause. When its time is over one call goes first, the
//! *probe*; what comes of it lets all others through or closes the gate again.
//! Every change has a number one higher than the one before, and the higher number
//! counts, so that workers whose clocks disagree still agree on what came last.

use std::collections::VecDeque;
use std::time::Duration;

use chrono::DateTime;

use super::super::outcome::SendOutcome;
use super::ClosedBy;
use crate::clock::{Timestamp, delta};

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
/// How long a circuit is open the first time; it doubles with every failed probe.
const OPEN_FIRST: Duration = Duration::from_secs(5);
/// What that grows to.
const OPEN_MAX: Duration = Duration::from_mins(5);
/// How far the time strays from that, so that circuits which opened together do not
/// probe together: a fifth, either way.
const JITTER: f64 = 0.2;
/// The pause of a provider that asks for one and does not say how long; it doubles
/// as long as it goes on.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// What that grows to.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// The longest pause that a provider is granted at a time. What it wants beyond
/// that it says again to the probe.
const ASKED_MAX: Duration = Duration::from_mins(15);
/// A provider that asks again within this time of the last pause's end goes on
/// asking.
const STILL_ASKING: Duration = Duration::from_secs(10);

/// What a call says about its account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It works.
    Success,
    /// It does not.
    Failure {
        /// How long the provider wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// It works, and wants a pause.
    Asked {
        /// How long.
        retry_after: Option<Duration>,
    },
}

impl From<&SendOutcome> for Verdict {
    fn from(outcome: &SendOutcome) -> Self {
        match outcome {
            SendOutcome::Accepted { .. } => Self::Success,
            SendOutcome::Rejected { .. } | SendOutcome::Deferred { .. } => Self::Success,
            SendOutcome::AccountUnusable { retry_after, .. } => Self::Failure {
                retry_after: *retry_after,
            },
            SendOutcome::Throttled { retry_after, .. } => Self::Asked {
                retry_after: *retry_after,
            },
            SendOutcome::Unavailable { retry_after, .. } => Self::Failure {
                retry_after: *retry_after,
            },
            SendOutcome::Unknown { .. } => Self::Failure { retry_after: None },
        }
    }
}

/// Why an account is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// Too many failures.
    Circuit,
    /// The provider asked for a pause.
    Asked,
}

impl From<Cause> for ClosedBy {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Circuit => Self::Circuit,
            Cause::Asked => Self::Asked,
        }
    }
}

/// How an account stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// How many changes led here.
    pub(super) version: u64,
    /// Why it is closed; nothing while it is not.
    pub(super) closed_by: Option<Cause>,
    /// Until when no call is made. It says when the last pause ended once the
    /// account is not closed any more.
    until: Timestamp,
    /// How often the circuit opened in a row.
    openings: u32,
    /// How many pauses of unknown length the provider asked for in a row.
    pauses: u32,
}

/// What a standing means at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// Calls pass.
    Passing,
    /// None does for so long.
    Shut(Cause, Duration),
    /// One may, to see how things are.
    Probing(Cause),
}

impl Standing {
    pub(super) fn position(&self, now: Timestamp) -> Position {
        let Some(cause) = self.closed_by else {
            return Position::Passing;
        };
        match (self.until - now).to_std() {
            Ok(wait) if !wait.is_zero() => Position::Shut(cause, wait),
            Ok(_) | Err(_) => Position::Probing(cause),
        }
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
        verdict: Verdict,
        has_tripped: bool,
        now: Timestamp,
        fraction: f64,
    ) -> Option<Self> {
        if let Position::Shut(cause, left) = self.position(now) {
            // What was under way when it closed: the longest wait counts.
            let wanted = verdict.retry_after()?.min(ASKED_MAX);
            return (wanted > left).then(|| self.closed(cause, wanted, now));
        }
        match verdict {
            Verdict::Asked { retry_after } => Some(self.paused(retry_after, now)),
            Verdict::Failure { .. } if has_tripped => {
                Some(self.opened(verdict.retry_after(), now, fraction))
            }
            Verdict::Failure { retry_after } => {
                let wanted = retry_after?.min(ASKED_MAX);
                Some(self.closed(Cause::Asked, wanted, now))
            }
            Verdict::Success => None,
        }
    }

    /// What follows from the probe.
    pub(super) fn after_probe(&self, verdict: Verdict, now: Timestamp, fraction: f64) -> Self {
        match verdict {
            Verdict::Success => Self {
                version: self.version + 1,
                closed_by: None,
                openings: 0,
                ..*self
            },
            Verdict::Asked { retry_after } => self.paused(retry_after, now),
            Verdict::Failure { retry_after } => self.opened(retry_after, now, fraction),
        }
    }

    /// The circuit opens, or opens again.
    pub(super) fn opened(
        &self,
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
            ..self.closed(Cause::Circuit, length.mul_f64(stray).max(wanted), now)
        }
    }

    /// The provider asks for a pause.
    fn paused(&self, retry_after: Option<Duration>, now: Timestamp) -> Self {
        if let Some(wanted) = retry_after {
            return self.closed(Cause::Asked, wanted.min(ASKED_MAX), now);
        }
        let goes_on = now - self.until <= delta(STILL_ASKING);
        let pauses = if goes_on { self.pauses } else { 0 }.saturating_add(1);
        Self {
            pauses,
            ..self.closed(Cause::Asked, doubled(PAUSE_FIRST, pauses, PAUSE_MAX), now)
        }
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
        };
        let until = self.until.timestamp_millis();
        let Self {
            version,
            openings,
            pauses,
            ..
        } = self;
        format!("{version} {cause} {until} {openings} {pauses}")
    }

    /// Reads it back; nothing where it is something else.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let [version, cause, until, openings, pauses] = words[..] else {
            return None;
        };
        Some(Self {
            version: version.parse().ok()?,
            closed_by: match cause {
                "-" => None,
                "circuit" => Some(Cause::Circuit),
                "asked" => Some(Cause::Asked),
                _ => return None,
            },
            until: DateTime::from_timestamp_millis(until.parse().ok()?)?,
            openings: openings.parse().ok()?,
            pauses: pauses.parse().ok()?,
        })
    }
}

impl Verdict {
    fn retry_after(self) -> Option<Duration> {
        match self {
            Self::Success => None,
            Self::Failure { retry_after } | Self::Asked { retry_after } => retry_after,
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
pub(super) struct Counts {
    pub(super) failures: u32,
    pub(super) successes: u32,
}

impl Counts {
    /// Adds one call; one that says nothing about failures does not count.
    pub(super) fn add(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Success => self.successes = self.successes.saturating_add(1),
            Verdict::Failure { .. } => self.failures = self.failures.saturating_add(1),
            Verdict::Asked { .. } => {}
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
pub(super) struct Window {
    slots: VecDeque<(i64, Counts)>,
}

impl Window {
    pub(super) fn add(&mut self, verdict: Verdict, now: Timestamp) {
        let slot = now.timestamp() / i64::try_from(SLOT.as_secs()).unwrap_or(1);
        let newest = self.slots.back_mut().filter(|(newest, _)| *newest == slot);
        match newest {
            Some((_, counts)) => counts.add(verdict),
            None => {
                let mut counts = Counts::default();
                counts.add(verdict);
                self.slots.push_back((slot, counts));
            }
        }
        self.forget_before(now);
    }

    /// What the window holds at a moment.
    pub(super) fn counts(&mut self, now: Timestamp) -> Counts {
        self.forget_before(now);
        let mut sum = Counts::default();
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
mod tests {
    use super::*;

    const FAILED: Verdict = Verdict::Failure { retry_after: None };
    const EVEN: f64 = 0.5;

    fn at(seconds: i64) -> Timestamp {
        DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
    }

    fn asked(seconds: Option<u64>) -> Verdict {
        let retry_after = seconds.map(Duration::from_secs);
        Verdict::Asked { retry_after }
    }

    fn shut(cause: Cause, seconds: u64) -> Position {
        Position::Shut(cause, Duration::from_secs(seconds))
    }

    #[test]
    fn five_failures_that_are_half_of_the_calls_open_a_circuit() {
        for (failures, successes, trips) in [
            (4, 0, false),
            (5, 0, true),
            (5, 5, true),
            (5, 6, false),
            (100, 101, false),
            (100, 100, true),
        ] {
            let counts = Counts {
                failures,
                successes,
            };
            assert_eq!(counts.trip(), trips, "{counts:?}");
        }
    }

    #[test]
    fn what_lies_back_longer_than_the_window_does_not_count() {
        let mut window = Window::default();
        for second in 0..5 {
            window.add(FAILED, at(second));
        }
        window.add(asked(None), at(5));
        assert_eq!(window.counts(at(6)).failures, 5);
        window.add(Verdict::Success, at(15));
        let counts = window.counts(at(19));
        assert_eq!((counts.failures, counts.successes), (5, 1));
        let counts = window.counts(at(26));
        assert_eq!((counts.failures, counts.successes), (0, 1));
    }

    #[test]
    fn an_open_circuit_doubles_its_time_until_a_probe_succeeds() {
        let closed = Standing::default();
        assert_eq!(closed.after_call(FAILED, false, at(0), EVEN), None);
        let mut standing = closed.after_call(FAILED, true, at(0), EVEN).unwrap();
        let mut now = 0;
        for seconds in [5, 10, 20, 40, 80, 160, 300, 300] {
            let position = standing.position(at(now));
            assert_eq!(position, shut(Cause::Circuit, seconds));
            now += i64::try_from(seconds).unwrap();
            assert_eq!(
                standing.position(at(now)),
                Position::Probing(Cause::Circuit)
            );
            standing = standing.after_probe(FAILED, at(now), EVEN);
        }
        let closed = standing.after_probe(Verdict::Success, at(now), EVEN);
        assert_eq!(closed.position(at(now)), Position::Passing);
        assert_eq!(closed.version, standing.version + 1);
        let again = closed.after_call(FAILED, true, at(now), EVEN).unwrap();
        assert_eq!(again.position(at(now)), shut(Cause::Circuit, 5));
    }

    #[test]
    fn the_time_strays_by_a_fifth() {
        let first = |fraction| Standing::default().opened(None, at(0), fraction);
        let lengths = [0.0, 1.0].map(|fraction| match first(fraction).position(at(0)) {
            Position::Shut(_, wait) => wait,
            Position::Passing | Position::Probing(_) => panic!("not shut"),
        });
        assert_eq!(lengths, [Duration::from_secs(4), Duration::from_secs(6)]);
    }

    #[test]
    fn a_provider_gets_the_pause_that_it_asks_for_up_to_a_quarter_of_an_hour() {
        for (verdict, seconds) in [(asked(Some(7)), 7), (asked(Some(86_400)), 900)] {
            let standing = Standing::default().after_call(verdict, false, at(0), EVEN);
            let position = standing.unwrap().position(at(0));
            assert_eq!(position, shut(Cause::Asked, seconds));
        }
        let retry_after = Some(Duration::from_secs(3));
        let failed = Verdict::Failure { retry_after };
        let standing = Standing::default().after_call(failed, false, at(0), EVEN);
        assert_eq!(standing.unwrap().position(at(0)), shut(Cause::Asked, 3));
    }

    #[test]
    fn pauses_of_unknown_length_double_while_they_go_on() {
        let mut standing = Standing::default();
        let mut now = 0;
        for seconds in [1, 2, 4, 8, 16, 30, 30] {
            standing = standing.after_probe(asked(None), at(now), EVEN);
            assert_eq!(standing.position(at(now)), shut(Cause::Asked, seconds));
            now += i64::try_from(seconds).unwrap();
            // That one call passes in between does not end it.
            standing = standing.after_probe(Verdict::Success, at(now), EVEN);
            now += 9;
        }
        now += 10;
        let later = standing.after_call(asked(None), false, at(now), EVEN);
        assert_eq!(later.unwrap().position(at(now)), shut(Cause::Asked, 1));
    }

    #[test]
    fn calls_that_end_while_it_is_shut_only_make_the_wait_longer() {
        let paused = Standing::default()
            .after_call(asked(Some(10)), false, at(0), EVEN)
            .unwrap();
        for verdict in [asked(None), asked(Some(8)), FAILED, Verdict::Success] {
            assert_eq!(paused.after_call(verdict, true, at(1), EVEN), None);
        }
        let longer = paused.after_call(asked(Some(30)), false, at(1), EVEN);
        assert_eq!(longer.unwrap().position(at(1)), shut(Cause::Asked, 30));
    }

    #[test]
    fn a_standing_is_read_back_as_it_was_written() {
        let opened = Standing::default().opened(None, at(3), EVEN);
        let closed = opened.after_probe(Verdict::Success, at(9), EVEN);
        let paused = closed.paused(None, at(12));
        for standing in [Standing::default(), opened, closed, paused] {
            assert_eq!(Standing::parse(&standing.to_text()), Some(standing));
        }
        for text in ["", "1", "1 - 2 3", "x - 2 3 4", "1 ? 2 3 4", "1 - 2 3 4 5"] {
            assert_eq!(Standing::parse(text), None, "{text}");
        }
    }
}
