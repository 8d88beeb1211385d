//! The rules of the gate, pure: when an account is closed, for how long, and what
//! opens it again.
//!
//! An account's [`Standing`] is what all workers go by. It closes by too many
//! failures in the [`Window`] (the circuit opens, as electricians say), because the
//! account itself cannot send, or because the provider named a pause. After a pause
//! calls pass again. After the others one call goes first, the *probe*; what comes of
//! it lets all others through or closes the gate again. Every change has a number one
//! higher than the one before, and the higher number counts, so that workers whose
//! clocks disagree still agree on what came last.

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

impl From<&SendOutcome> for Verdict {
    fn from(outcome: &SendOutcome) -> Self {
        match outcome {
            // What a mail or a recipient is refused for says nothing of the account.
            SendOutcome::Accepted { .. }
            | SendOutcome::Rejected { .. }
            | SendOutcome::Deferred { .. } => Self::Success,
            SendOutcome::AccountUnusable { retry_after, .. } => Self::Unusable {
                retry_after: *retry_after,
            },
            SendOutcome::Throttled { retry_after, .. } => Self::Throttled {
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
    /// The provider named a pause.
    Asked,
    /// The account itself cannot send.
    Unusable,
}

impl From<Cause> for ClosedBy {
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
pub(super) struct Standing {
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
            Ok(_) | Err(_) => match cause {
                Cause::Asked => Position::Passing,
                Cause::Circuit | Cause::Unusable => Position::Probing(cause),
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
        let is_old = self.revision < revision && self.position(now) != Position::Passing;
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
            Verdict::Success => None,
            Verdict::Throttled { retry_after } => Some(self.paused(retry_after?, now)),
            Verdict::Unusable { retry_after } => Some(self.unusable(retry_after, now, fraction)),
            Verdict::Failure { .. } if has_tripped => {
                Some(self.opened(verdict.retry_after(), now, fraction))
            }
            Verdict::Failure { retry_after } => Some(self.paused(retry_after?, now)),
        }
    }

    /// What follows from the probe.
    pub(super) fn after_probe(&self, verdict: Verdict, now: Timestamp, fraction: f64) -> Self {
        match verdict {
            Verdict::Success | Verdict::Throttled { retry_after: None } => self.reopened(),
            Verdict::Throttled {
                retry_after: Some(wanted),
            } => self.reopened().paused(wanted, now),
            Verdict::Failure { retry_after } => self.opened(retry_after, now, fraction),
            Verdict::Unusable { retry_after } => self.unusable(retry_after, now, fraction),
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
                _ => return None,
            },
            until: DateTime::from_timestamp_millis(until.parse().ok()?)?,
            openings: openings.parse().ok()?,
            revision: revision.parse().ok()?,
        })
    }
}

impl Verdict {
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
            Verdict::Throttled { .. } | Verdict::Unusable { .. } => {}
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

    fn throttled(seconds: Option<u64>) -> Verdict {
        let retry_after = seconds.map(Duration::from_secs);
        Verdict::Throttled { retry_after }
    }

    const UNUSABLE: Verdict = Verdict::Unusable { retry_after: None };

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
        window.add(throttled(None), at(5));
        assert_eq!(window.counts(at(6)).failures, 5);
        window.add(Verdict::Success, at(15));
        let counts = window.counts(at(19));
        assert_eq!((counts.failures, counts.successes), (5, 1));
        let counts = window.counts(at(26));
        assert_eq!((counts.failures, counts.successes), (0, 1));
    }

    #[test]
    fn what_does_not_work_is_left_alone_twice_as_long_each_time_until_a_probe_succeeds() {
        let closed = Standing::default();
        assert_eq!(closed.after_call(FAILED, false, at(0), EVEN), None);
        for (verdict, cause) in [(FAILED, Cause::Circuit), (UNUSABLE, Cause::Unusable)] {
            let mut standing = closed.after_call(verdict, true, at(0), EVEN).unwrap();
            let mut now = 0;
            for seconds in [5, 10, 20, 40, 80, 160, 300, 300] {
                let position = standing.position(at(now));
                assert_eq!(position, shut(cause, seconds));
                now += i64::try_from(seconds).unwrap();
                assert_eq!(standing.position(at(now)), Position::Probing(cause));
                standing = standing.after_probe(verdict, at(now), EVEN);
            }
            for works in [Verdict::Success, throttled(None)] {
                let closed = standing.after_probe(works, at(now), EVEN);
                assert_eq!(closed.position(at(now)), Position::Passing);
                assert_eq!(closed.version, standing.version + 1);
                let again = closed.after_call(verdict, true, at(now), EVEN).unwrap();
                assert_eq!(again.position(at(now)), shut(cause, 5));
            }
            let paused = standing.after_probe(throttled(Some(3)), at(now), EVEN);
            assert!(paused.version > standing.version);
            assert_eq!(paused.position(at(now)), shut(Cause::Asked, 3));
            assert_eq!(paused.position(at(now + 3)), Position::Passing);
        }
    }

    #[test]
    fn one_call_that_says_that_the_account_cannot_send_closes_it() {
        let standing = Standing::default().after_call(UNUSABLE, false, at(0), EVEN);
        assert_eq!(standing.unwrap().position(at(0)), shut(Cause::Unusable, 5));
        let retry_after = Some(Duration::from_mins(10));
        let verdict = Verdict::Unusable { retry_after };
        let standing = Standing::default().after_call(verdict, false, at(0), EVEN);
        let position = standing.unwrap().position(at(0));
        assert_eq!(position, shut(Cause::Unusable, 600));
    }

    #[test]
    fn what_somebody_mended_since_it_closed_is_open() {
        for verdict in [UNUSABLE, FAILED, throttled(Some(60))] {
            let closed = Standing::default().after_call(verdict, true, at(0), EVEN);
            let closed = closed.unwrap().under(3);
            assert_eq!(closed.mended(3, at(1)), None);
            let open = closed.mended(4, at(1)).unwrap();
            assert_eq!(open.position(at(1)), Position::Passing);
            assert_eq!((open.version, open.openings), (closed.version + 1, 0));
            assert_eq!(open.mended(5, at(1)), None, "it is open");
        }
    }

    #[test]
    fn nothing_that_is_read_closes_an_account_for_longer_than_the_longest_pause() {
        let by_a_wrong_clock = Standing::default().opened(None, at(3_600), EVEN);
        assert!(by_a_wrong_clock.is_beyond(at(0)));
        let read = by_a_wrong_clock.clamped(at(0));
        assert_eq!(read.position(at(0)), shut(Cause::Circuit, 900));
        let by_a_right_one = Standing::default().paused(ASKED_MAX, at(0));
        assert!(!by_a_right_one.is_beyond(at(0)));
        assert_eq!(by_a_right_one.clamped(at(0)), by_a_right_one);
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
        for (verdict, seconds) in [(throttled(Some(7)), 7), (throttled(Some(86_400)), 900)] {
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
    fn being_throttled_without_a_wait_closes_nothing() {
        let verdict = throttled(None);
        assert_eq!(
            Standing::default().after_call(verdict, true, at(0), EVEN),
            None
        );
    }

    #[test]
    fn calls_that_end_while_it_is_shut_only_make_the_wait_longer() {
        let paused = Standing::default()
            .after_call(throttled(Some(10)), false, at(0), EVEN)
            .unwrap();
        for verdict in [
            throttled(None),
            throttled(Some(8)),
            FAILED,
            Verdict::Success,
        ] {
            assert_eq!(paused.after_call(verdict, true, at(1), EVEN), None);
        }
        let longer = paused.after_call(throttled(Some(30)), false, at(1), EVEN);
        assert_eq!(longer.unwrap().position(at(1)), shut(Cause::Asked, 30));
    }

    #[test]
    fn a_standing_is_read_back_as_it_was_written() {
        let opened = Standing::default().opened(None, at(3), EVEN);
        let closed = opened.after_probe(Verdict::Success, at(9), EVEN);
        let paused = closed.paused(OPEN_FIRST, at(12));
        let unusable = closed.unusable(None, at(12), EVEN).under(7);
        for standing in [Standing::default(), opened, closed, paused, unusable] {
            assert_eq!(Standing::parse(&standing.to_text()), Some(standing));
        }
        for text in ["", "1", "1 - 2 3", "x - 2 3 4", "1 ? 2 3 4", "1 - 2 3 4 5"] {
            assert_eq!(Standing::parse(text), None, "{text}");
        }
    }
}
