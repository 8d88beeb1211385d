//! The rate of an account whose provider throttles it, pure.
//!
//! The account goes as fast as its calls were taken lately: a second in which the
//! provider throttled a share of the calls is followed by one at the rate of those
//! that it took, so the rate falls by that share, to what the provider allows. Seconds
//! in which it throttles (next to) none make it grow, each by more than the one before,
//! until it bounds nobody any more. What the provider would take beyond is found out by
//! one second in some that goes faster.
//!
//! Every worker does so for its own calls, without asking the others: a provider
//! throttles them all by the same share, so each finds its own part of what is allowed.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::rate::RetryQueue;

/// How long calls are counted before the rate follows from them.
const INTERVAL: Duration = Duration::from_secs(1);
/// A longer gap between two calls says nothing of the rate at which they are taken.
const GAP: Duration = Duration::from_secs(2);
/// So many throttled calls, no fewer than were taken, are enough before that, once
/// [`SOONEST`] has passed.
const ENOUGH: u32 = 10;
const SOONEST: Duration = Duration::from_millis(100);
/// Where one call in so many is taken, or none, that is as much as nothing is.
const SHUT_SHARE: u32 = 9;
/// The part of calls, in hundredths, that may be throttled without the rate falling.
const TOLERATED_PER_CENT: u32 = 2;
/// The account goes at the best rate of so many intervals, so that one in which little
/// was to be sent does not count.
const REMEMBERED: usize = 10;
/// One interval in so many goes faster than calls were taken, and by this.
const PROBE_EVERY: u32 = 5;
const PROBE: f64 = 1.25;
/// What the rate grows by after one good interval; twice as much after each further.
const GROWTH: f64 = 0.1;
/// The most that it grows by, as a factor.
const GROWTH_MAX: f64 = 3.0;
/// After so many good intervals, in the last of which nobody had to wait, the account
/// is free.
const FREE_AFTER: u32 = 3;
/// What is left of the rate after a pause that the provider named.
const AFTER_PAUSE: f64 = 0.5;
/// Calls per second after such a pause where nothing is known of the rate before.
const AFTER_PAUSE_UNKNOWN: f64 = 10.0;
/// Calls that may go at once: those of so long.
const BURST: Duration = Duration::from_millis(100);

/// One account's calls of this process, or those to one domain.
#[derive(Debug, Default)]
pub(super) struct Throttle {
    limit: Option<Limit>,
    counted: Option<ThrottleSample>,
    /// Calls taken per second, of the last intervals.
    taken: VecDeque<f64>,
    /// Calls that began before the last abrupt fall say nothing of the rate since.
    falls: u64,
}

#[derive(Debug)]
struct Limit {
    /// Calls per second.
    rate: f64,
    /// Calls that may go by now.
    tokens: f64,
    filled: Instant,
    /// Good intervals in a row, and the others.
    good: u32,
    bad: u32,
    /// Whether somebody had to wait in this interval.
    has_refused: bool,
    refused: RetryQueue,
}

#[derive(Debug, Clone, Copy)]
struct ThrottleSample {
    since: Instant,
    taken: u32,
    throttled: u32,
}

impl ThrottleSample {
    fn since(now: Instant) -> Self {
        Self {
            since: now,
            taken: 0,
            throttled: 0,
        }
    }
}

impl Throttle {
    /// Takes one call.
    ///
    /// # Errors
    /// How long to wait, each who is refused for longer than the one before.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let Some(limit) = &mut self.limit else {
            return Ok(());
        };
        let burst = (limit.rate * BURST.as_secs_f64()).max(1.0);
        let grown = (now - limit.filled).as_secs_f64() * limit.rate;
        limit.tokens = (limit.tokens + grown).min(burst);
        limit.filled = now;
        if limit.tokens >= 1.0 {
            limit.tokens -= 1.0;
            return Ok(());
        }
        limit.has_refused = true;
        let soonest = Duration::from_secs_f64((1.0 - limit.tokens) / limit.rate);
        let apart = Duration::from_secs_f64(1.0 / limit.rate);
        Err(limit.refused.wait(soonest, apart, now))
    }

    /// Gives back a call that was taken and not made.
    pub(super) fn give_back(&mut self) {
        if let Some(limit) = &mut self.limit {
            limit.tokens += 1.0;
        }
    }

    /// Whether nothing is bounded.
    pub(super) fn is_free(&self) -> bool {
        self.limit.is_none()
    }

    /// Whether nothing is left to remember.
    pub(super) fn is_over(&self) -> bool {
        self.is_free() && self.counted.is_none_or(|counted| counted.throttled == 0)
    }

    /// What a call that begins now hands to [`Throttle::note`].
    pub(super) fn falls(&self) -> u64 {
        self.falls
    }

    /// Counts a call that ended. `least` is the rate that is always left.
    pub(super) fn note(&mut self, is_throttled: bool, falls: u64, least: f64, now: Instant) {
        if falls != self.falls {
            return;
        }
        let is_free = self.is_free();
        let known = self.counted.filter(|counted| {
            // What was counted long ago is no part of the rate now.
            !is_free || now - counted.since <= GAP
        });
        let is_first = known.is_none();
        let mut counted = known.unwrap_or(ThrottleSample::since(now));
        if is_throttled {
            counted.throttled = counted.throttled.saturating_add(1);
        } else if !is_first {
            // The first only says when counting begins.
            counted.taken = counted.taken.saturating_add(1);
        }
        self.counted = Some(counted);
        let age = now - counted.since;
        let is_abrupt =
            counted.throttled >= ENOUGH && counted.throttled >= counted.taken && age >= SOONEST;
        if age >= INTERVAL || is_abrupt {
            self.counted = Some(ThrottleSample::since(now));
            self.follow(counted, age, least, now);
            if is_abrupt {
                self.falls += 1;
            }
        }
    }

    /// The provider named a pause; what follows it begins slowly.
    pub(super) fn pause(&mut self, least: f64, now: Instant) {
        let lately = self.counted.take().filter(|counted| {
            let age = now - counted.since;
            age >= SOONEST && age <= GAP
        });
        if let Some(counted) = lately {
            let age = (now - counted.since).as_secs_f64();
            self.remember(f64::from(counted.taken) / age);
        }
        let rate = if self.taken.is_empty() {
            AFTER_PAUSE_UNKNOWN
        } else {
            self.best() * AFTER_PAUSE
        };
        self.taken.clear();
        self.remember(rate);
        self.falls += 1;
        self.bound(rate.max(least), now);
    }

    fn follow(&mut self, counted: ThrottleSample, age: Duration, least: f64, now: Instant) {
        let taken = f64::from(counted.taken) / age.as_secs_f64();
        let calls = counted.taken.saturating_add(counted.throttled);
        let tolerated = calls.saturating_mul(TOLERATED_PER_CENT) / 100;
        // One of few says little.
        let is_good = counted.throttled <= tolerated.max(u32::from(calls > 2 * ENOUGH));
        let is_shut =
            counted.throttled >= ENOUGH && counted.throttled / SHUT_SHARE >= counted.taken;
        if is_shut || self.is_free() && !is_good {
            // How fast it went before says nothing of what is taken now.
            self.taken.clear();
        }
        self.remember(taken);
        let best = self.best();
        let Some(limit) = &mut self.limit else {
            if !is_good {
                self.bound(best.max(least), now);
            }
            return;
        };
        let has_refused = std::mem::take(&mut limit.has_refused);
        if !is_good {
            limit.good = 0;
            limit.bad = limit.bad.saturating_add(1);
            let is_probe = limit.bad.is_multiple_of(PROBE_EVERY);
            limit.rate = (best * if is_probe { PROBE } else { 1.0 }).max(least);
            return;
        }
        limit.good = limit.good.saturating_add(1);
        if limit.good >= FREE_AFTER && !has_refused {
            self.limit = None;
            return;
        }
        let doublings = i32::try_from(limit.good - 1).unwrap_or(i32::MAX).min(16);
        let growth = (1.0 + GROWTH * 2_f64.powi(doublings)).min(GROWTH_MAX);
        limit.rate = (limit.rate * growth).max(least);
    }

    fn bound(&mut self, rate: f64, now: Instant) {
        self.limit = Some(Limit {
            rate,
            tokens: 1.0,
            filled: now,
            good: 0,
            bad: 0,
            has_refused: false,
            refused: RetryQueue::default(),
        });
    }

    fn remember(&mut self, taken: f64) {
        if self.taken.len() >= REMEMBERED {
            self.taken.pop_front();
        }
        self.taken.push_back(taken);
    }

    fn best(&self) -> f64 {
        self.taken.iter().copied().fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: f64 = 1.0;

    /// Mail that comes evenly and waits for its call; a throttled one waits again.
    struct House {
        throttle: Throttle,
        now: Instant,
        waiting: f64,
        /// Calls under way, by when they end, in milliseconds.
        under_way: VecDeque<(u64, u64, bool)>,
        elapsed: u64,
        taken: u64,
        throttled: u64,
        chance: u64,
    }

    impl House {
        fn new() -> Self {
            Self {
                throttle: Throttle::default(),
                now: Instant::now(),
                waiting: 0.0,
                under_way: VecDeque::new(),
                elapsed: 0,
                taken: 0,
                throttled: 0,
                chance: 42,
            }
        }

        /// Evenly distributed in `0.0..1.0`, the same in each run (Knuth's MMIX).
        fn fraction(&mut self) -> f64 {
            self.chance = self
                .chance
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.chance >> 11) as f64 / (1_u64 << 53) as f64
        }

        /// So many seconds at so many mails per second; answers the mails taken per
        /// second.
        fn run(
            &mut self,
            seconds: u64,
            per_second: f64,
            mut is_throttled: impl FnMut(&mut Self) -> bool,
        ) -> f64 {
            const CALL_MILLIS: u64 = 50;
            let before = self.taken;
            for _ in 0..seconds * 1_000 {
                self.elapsed += 1;
                self.now += Duration::from_millis(1);
                self.waiting += per_second / 1_000.0;
                while self.waiting >= 1.0 && self.throttle.take(self.now).is_ok() {
                    self.waiting -= 1.0;
                    let is_throttled = is_throttled(self);
                    let falls = self.throttle.falls();
                    let ends = self.elapsed + CALL_MILLIS;
                    self.under_way.push_back((ends, falls, is_throttled));
                }
                while let Some((_, falls, is_throttled)) = self
                    .under_way
                    .pop_front_if(|(ends, _, _)| *ends <= self.elapsed)
                {
                    self.throttle.note(is_throttled, falls, LEAST, self.now);
                    if is_throttled {
                        self.throttled += 1;
                        self.waiting += 1.0;
                    } else {
                        self.taken += 1;
                    }
                }
            }
            (self.taken - before) as f64 / seconds as f64
        }
    }

    fn share(share: f64) -> impl FnMut(&mut House) -> bool {
        move |house| house.fraction() < share
    }

    /// A provider that takes so many per second, and as many at once as in a tenth.
    fn at_most(per_second: f64) -> impl FnMut(&mut House) -> bool {
        let (mut tokens, mut filled) = (0.0_f64, 0);
        move |house| {
            let grown = (house.elapsed - filled) as f64 * per_second / 1_000.0;
            tokens = (tokens + grown).min((per_second / 10.0).max(3.0));
            filled = house.elapsed;
            let is_taken = tokens >= 1.0;
            tokens -= if is_taken { 1.0 } else { 0.0 };
            !is_taken
        }
    }

    #[test]
    fn the_rate_falls_by_the_share_that_is_throttled_and_comes_back_within_seconds() {
        for (throttled, kept_least, kept_most) in [
            (0.0, 0.99, 1.0),
            (0.01, 0.95, 1.0),
            (0.1, 0.75, 1.0),
            (0.5, 0.05, 0.5),
            (1.0, 0.0, 0.0),
        ] {
            let mut house = House::new();
            let kept = house.run(30, 150.0, share(throttled)) / 150.0;
            println!("{throttled} throttled: {kept:.3} of 150/s kept");
            assert!(
                (kept_least..=kept_most).contains(&kept),
                "{throttled}: {kept}"
            );
            house.run(10, 0.0, share(0.0));
            house.waiting = 0.0;
            let after = house.run(5, 150.0, share(0.0)) / 150.0;
            assert!(after > 0.95, "{throttled}: {after} ten seconds later");
        }
    }

    #[test]
    fn who_is_throttled_wholly_makes_few_calls_and_none_is_the_last() {
        let mut house = House::new();
        house.run(30, 150.0, share(1.0));
        assert!((20..120).contains(&house.throttled), "{}", house.throttled);
    }

    #[test]
    fn the_rate_is_what_the_provider_allows_whatever_that_is() {
        for (allowed, wanted) in [
            (100.0, 150.0),
            (10.0, 150.0),
            (20.0, 1_000.0),
            (900.0, 1_000.0),
        ] {
            let mut house = House::new();
            house.run(15, wanted, at_most(allowed));
            let (taken, throttled) = (house.taken, house.throttled);
            let kept = house.run(60, wanted, at_most(allowed)) / allowed;
            let calls = (house.taken - taken) + (house.throttled - throttled);
            let share = (house.throttled - throttled) as f64 / calls as f64;
            println!("{allowed} of {wanted}: {kept:.3} used, {share:.3} throttled");
            assert!(kept > 0.8, "{allowed} of {wanted}: {kept}");
            assert!(share < 0.2, "{allowed} of {wanted}: {share}");
        }
    }

    #[test]
    fn after_a_named_pause_calls_begin_at_half_of_their_rate() {
        let mut house = House::new();
        house.run(5, 150.0, share(0.0));
        let now = house.now;
        house.throttle.pause(LEAST, now);
        house.under_way.clear();
        house.waiting = 0.0;
        let first = house.run(1, 150.0, share(0.0));
        assert!((50.0..90.0).contains(&first), "{first}");
        house.run(5, 150.0, share(0.0));
        let later = house.run(5, 150.0, share(0.0));
        assert!(later > 145.0, "{later}");
    }

    #[test]
    fn an_account_that_is_not_throttled_has_no_bound() {
        let mut throttle = Throttle::default();
        let mut now = Instant::now();
        for nth in 0..10_000 {
            now += Duration::from_millis(nth % 7);
            assert_eq!(throttle.take(now), Ok(()));
            throttle.note(false, throttle.falls(), LEAST, now);
        }
        assert!(throttle.is_free());
    }
}
