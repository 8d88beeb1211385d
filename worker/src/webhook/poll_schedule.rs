//! When a deliverer reads due deliveries: when it is notified, and by polling while it is
//! busy.

use std::time::Duration;

use tokio::time::Instant;

/// How long an idle deliverer keeps running.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Reads with results in a second from which on a deliverer polls.
const BUSY_POLLS: u32 = 50;
/// The polling interval.
const POLL_EVERY: Duration = Duration::from_millis(10);
/// How long polling is announced for in Postgres, and how much longer it goes on.
const ANNOUNCED_FOR: Duration = Duration::from_secs(2);
const ANNOUNCEMENT_GRACE: Duration = Duration::from_secs(1);
/// The wait after a read that Postgres did not answer.
const RETRY_AFTER: Duration = Duration::from_millis(250);
/// The interval of an idle deliverer whose calls are still running.
const BUSY_RECHECK: Duration = Duration::from_secs(1);

/// When to read due deliveries.
pub(super) struct PollSchedule {
    requested: bool,
    not_before: Instant,
    last_poll: Instant,
    /// An idle deliverer ends then.
    idle_at: Instant,
    /// The deliverer polls until then.
    polling_until: Option<Instant>,
    announced_at: Instant,
    second_started: Instant,
    polls_with_results: u32,
}

impl PollSchedule {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            requested: true,
            not_before: now,
            last_poll: now,
            idle_at: now + IDLE_TIMEOUT,
            polling_until: None,
            announced_at: now,
            second_started: now,
            polls_with_results: 0,
        }
    }

    pub(super) fn request(&mut self) {
        self.requested = true;
        self.postpone_idle();
    }

    pub(super) fn request_later(&mut self) {
        self.request();
        self.not_before = Instant::now() + RETRY_AFTER;
    }

    /// Keeps the deliverer running for another [`IDLE_TIMEOUT`].
    pub(super) fn postpone_idle(&mut self) {
        self.idle_at = Instant::now() + IDLE_TIMEOUT;
    }

    pub(super) fn is_due(&self) -> bool {
        let now = Instant::now();
        let is_poll_time = self.is_polling() && now >= self.last_poll + POLL_EVERY;
        (self.requested || is_poll_time) && now >= self.not_before
    }

    pub(super) fn is_polling(&self) -> bool {
        self.polling_until
            .is_some_and(|until| Instant::now() < until)
    }

    pub(super) fn polled(&mut self) {
        self.requested = false;
        self.last_poll = Instant::now();
    }

    /// Records the result of a read.
    pub(super) fn record_found(&mut self, count: usize, is_full: bool) {
        self.requested |= is_full;
        if count == 0 {
            return;
        }
        self.postpone_idle();
        if self.second_started.elapsed() >= Duration::from_secs(1) {
            self.second_started = Instant::now();
            self.polls_with_results = 0;
        }
        self.polls_with_results += 1;
    }

    /// Starts or prolongs polling if the deliverer is busy. Returns for how long to
    /// announce it; polling goes on longer, for transactions that still saw the
    /// announcement.
    pub(super) fn announce(&mut self) -> Option<Duration> {
        let is_busy = self.polls_with_results >= BUSY_POLLS;
        let is_needed = !self.is_polling() || self.announced_at.elapsed() >= ANNOUNCED_FOR / 2;
        if !is_busy || !is_needed {
            return None;
        }
        self.announced_at = Instant::now();
        self.polling_until = Some(self.announced_at + ANNOUNCED_FOR + ANNOUNCEMENT_GRACE);
        Some(ANNOUNCED_FOR)
    }

    pub(super) fn is_idle(&self) -> bool {
        !self.requested && !self.is_polling() && Instant::now() >= self.idle_at
    }

    /// When to run again if nothing happens before. Always in the future: running calls
    /// may keep the deliverer busy beyond any of these times.
    pub(super) fn next_at(&self) -> Instant {
        let now = Instant::now();
        let (at, otherwise) = if self.requested && self.not_before > now {
            (self.not_before, RETRY_AFTER)
        } else if self.is_polling() {
            (self.last_poll + POLL_EVERY, POLL_EVERY)
        } else {
            (self.idle_at, BUSY_RECHECK)
        };
        if at > now { at } else { now + otherwise }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_deliverer_polls() {
        let mut poll = PollSchedule::new();
        poll.polled();
        for _ in 1..BUSY_POLLS {
            poll.record_found(1, false);
        }
        assert_eq!(poll.announce(), None);
        assert!(!poll.is_polling());
        poll.record_found(0, false);
        assert_eq!(poll.announce(), None, "reads without results do not count");
        poll.record_found(1, false);
        assert_eq!(poll.announce(), Some(ANNOUNCED_FOR));
        assert!(poll.is_polling() && !poll.is_idle());
        assert_eq!(poll.announce(), None, "it was announced a moment ago");
        assert!(poll.next_at() <= Instant::now() + POLL_EVERY);
    }

    #[test]
    fn an_idle_deliverer_with_running_calls_does_not_spin() {
        let mut poll = PollSchedule::new();
        poll.polled();
        poll.idle_at = Instant::now() - IDLE_TIMEOUT;
        assert!(poll.is_idle());
        assert!(poll.next_at() > Instant::now() + BUSY_RECHECK / 2);
        poll.polling_until = Some(Instant::now() + ANNOUNCED_FOR);
        poll.last_poll = Instant::now() - ANNOUNCED_FOR;
        assert!(poll.next_at() > Instant::now() + POLL_EVERY / 2);
    }

    #[test]
    fn a_full_read_requests_another() {
        let mut poll = PollSchedule::new();
        assert!(poll.is_due(), "a deliverer starts with a read");
        poll.polled();
        assert!(!poll.is_due());
        poll.record_found(1, true);
        assert!(poll.is_due());
    }
}
