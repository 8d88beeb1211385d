//! When a lane looks for what is due: when it is told that something is, and by itself
//! while it is busy.

use std::time::Duration;

use tokio::time::Instant;

/// How long an idle lane stays open.
const LINGER: Duration = Duration::from_secs(5);
/// Fruitful looks in a second from which on a lane looks by itself.
const BUSY_LOOKS: u32 = 50;
/// How often it does then.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long it says that it will, in Postgres; and how much longer it does.
const AWAKE: Duration = Duration::from_secs(2);
const AWAKE_GRACE: Duration = Duration::from_secs(1);
/// The wait after Postgres did not answer.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(250);
/// The rest of a lane whose time is over and whose calls are not.
const REST: Duration = Duration::from_secs(1);

/// When to look.
pub(super) struct PollSchedule {
    wanted: bool,
    not_before: Instant,
    last: Instant,
    /// An idle lane ends then.
    ends_at: Instant,
    /// Until then the lane looks by itself.
    awake_until: Option<Instant>,
    announced_at: Instant,
    second_began: Instant,
    fruitful: u32,
}

impl PollSchedule {
    pub(super) fn begin() -> Self {
        let now = Instant::now();
        Self {
            wanted: true,
            not_before: now,
            last: now,
            ends_at: now + LINGER,
            awake_until: None,
            announced_at: now,
            second_began: now,
            fruitful: 0,
        }
    }

    pub(super) fn want(&mut self) {
        self.wanted = true;
        self.stay();
    }

    pub(super) fn want_later(&mut self) {
        self.want();
        self.not_before = Instant::now() + LOOK_AGAIN_AFTER;
    }

    /// Something happens: the lane stays open.
    pub(super) fn stay(&mut self) {
        self.ends_at = Instant::now() + LINGER;
    }

    pub(super) fn is_due(&self) -> bool {
        let now = Instant::now();
        let by_itself = self.is_awake() && now >= self.last + LOOK_EVERY;
        (self.wanted || by_itself) && now >= self.not_before
    }

    pub(super) fn is_awake(&self) -> bool {
        self.awake_until.is_some_and(|until| Instant::now() < until)
    }

    pub(super) fn looked(&mut self) {
        self.wanted = false;
        self.last = Instant::now();
    }

    /// Notes what a look found.
    pub(super) fn found(&mut self, count: usize, is_full: bool) {
        self.wanted |= is_full;
        if count == 0 {
            return;
        }
        self.stay();
        if self.second_began.elapsed() >= Duration::from_secs(1) {
            self.second_began = Instant::now();
            self.fruitful = 0;
        }
        self.fruitful += 1;
    }

    /// How long Postgres is told now that the lane looks by itself. That it looks
    /// longer than it says is for transactions that were told so before.
    pub(super) fn announce(&mut self) -> Option<Duration> {
        let is_busy = self.fruitful >= BUSY_LOOKS;
        let is_news = !self.is_awake() || self.announced_at.elapsed() >= AWAKE / 2;
        if !is_busy || !is_news {
            return None;
        }
        self.announced_at = Instant::now();
        self.awake_until = Some(self.announced_at + AWAKE + AWAKE_GRACE);
        Some(AWAKE)
    }

    pub(super) fn is_over(&self) -> bool {
        !self.wanted && !self.is_awake() && Instant::now() >= self.ends_at
    }

    /// When there may be something to do, unless something happens before. Never now:
    /// what is under way may keep the lane open and busy beyond any of these times.
    pub(super) fn next(&self) -> Instant {
        let now = Instant::now();
        let (at, otherwise) = if self.wanted && self.not_before > now {
            (self.not_before, LOOK_AGAIN_AFTER)
        } else if self.is_awake() {
            (self.last + LOOK_EVERY, LOOK_EVERY)
        } else {
            (self.ends_at, REST)
        };
        if at > now { at } else { now + otherwise }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_that_finds_something_again_and_again_looks_by_itself() {
        let mut watch = PollSchedule::begin();
        watch.looked();
        for _ in 1..BUSY_LOOKS {
            watch.found(1, false);
        }
        assert_eq!(watch.announce(), None);
        assert!(!watch.is_awake());
        watch.found(0, false);
        assert_eq!(watch.announce(), None, "empty looks do not count");
        watch.found(1, false);
        assert_eq!(watch.announce(), Some(AWAKE));
        assert!(watch.is_awake() && !watch.is_over());
        assert_eq!(watch.announce(), None, "it was said a moment ago");
        assert!(watch.next() <= Instant::now() + LOOK_EVERY);
    }

    #[test]
    fn a_lane_that_is_kept_open_by_a_call_rests_meanwhile() {
        let mut watch = PollSchedule::begin();
        watch.looked();
        watch.ends_at = Instant::now() - LINGER;
        assert!(watch.is_over());
        assert!(watch.next() > Instant::now() + REST / 2);
        watch.awake_until = Some(Instant::now() + AWAKE);
        watch.last = Instant::now() - AWAKE;
        assert!(watch.next() > Instant::now() + LOOK_EVERY / 2);
    }

    #[test]
    fn a_full_look_wants_another() {
        let mut watch = PollSchedule::begin();
        assert!(watch.is_due(), "a lane begins with a look");
        watch.looked();
        assert!(!watch.is_due());
        watch.found(1, true);
        assert!(watch.is_due());
    }
}
