//! The rate of an account whose provider throttles it, pure.
//!
//! The rate follows what the provider accepts. If the provider throttles a share of the
//! calls in one second, the next second runs at the rate of the calls that it accepted. So
//! the rate falls by that share, to the provider's limit. Every second without (or almost
//! without) throttling raises the rate, each by more than the one before, until there is no
//! limit any more. Every fifth second with throttling runs faster than calls were accepted,
//! to find out whether the provider accepts more.
//!
//! Each worker adjusts the rate of its own calls without coordination: a provider
//! throttles the calls of all workers by the same share, so each worker finds its own part
//! of the provider's limit.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::rate::RetryQueue;

/// How long calls are counted before the rate is adjusted.
const INTERVAL: Duration = Duration::from_secs(1);
/// Two calls further apart than this say nothing about the accepted rate.
const SAMPLE_GAP_MAX: Duration = Duration::from_secs(2);
/// After [`ABRUPT_AGE_MIN`], this many throttled calls lower the rate before the interval
/// ends, if no more calls were accepted.
const ABRUPT_THROTTLED_MIN: u32 = 10;
const ABRUPT_AGE_MIN: Duration = Duration::from_millis(100);
/// If the provider throttles this many calls for each that it accepts, it accepts none.
const NONE_ACCEPTED_RATIO: u32 = 9;
/// The percentage of calls that may be throttled without lowering the rate.
const TOLERATED_PERCENT: u32 = 2;
/// The rate is the best of this many intervals, so that an interval with little mail does
/// not lower it.
const RATES_MAX: usize = 10;
/// One interval in this many probes for a higher rate, by [`PROBE_FACTOR`].
const PROBE_EVERY: u32 = 5;
const PROBE_FACTOR: f64 = 1.25;
/// The growth after the first good interval; it doubles with each further one.
const GROWTH: f64 = 0.1;
/// The highest growth factor.
const GROWTH_MAX: f64 = 3.0;
/// The limit is lifted after this many good intervals if no call waited in the last one.
const FREE_AFTER: u32 = 3;
/// The share of the rate that remains after a pause that the provider named.
const AFTER_PAUSE_FACTOR: f64 = 0.5;
/// Calls per second after such a pause if the rate before it is unknown.
const AFTER_PAUSE_RATE: f64 = 10.0;
/// The burst: the calls of this duration may start at once.
const BURST: Duration = Duration::from_millis(100);

/// The rate of this process's calls of one account, or of one account to one domain.
#[derive(Debug, Default)]
pub(super) struct Throttle {
    limit: Option<Limit>,
    sample: Option<ThrottleSample>,
    /// Calls accepted per second in the last intervals.
    accepted: VecDeque<f64>,
    /// Raised with every abrupt fall of the rate. A call that started in an earlier epoch
    /// says nothing about the rate since.
    epoch: u64,
}

#[derive(Debug)]
struct Limit {
    /// Calls per second.
    rate: f64,
    /// Calls that may start now.
    tokens: f64,
    refilled_at: Instant,
    /// Good intervals in a row, and the bad ones.
    good: u32,
    bad: u32,
    /// Whether a call had to wait in this interval.
    has_rejected: bool,
    retries: RetryQueue,
}

#[derive(Debug, Clone, Copy)]
struct ThrottleSample {
    since: Instant,
    accepted: u32,
    throttled: u32,
}

impl ThrottleSample {
    fn since(now: Instant) -> Self {
        Self {
            since: now,
            accepted: 0,
            throttled: 0,
        }
    }
}

impl Throttle {
    /// Takes one call.
    ///
    /// # Errors
    /// Returns how long to wait: each rejected call waits longer than the one before.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let Some(limit) = &mut self.limit else {
            return Ok(());
        };
        let burst = (limit.rate * BURST.as_secs_f64()).max(1.0);
        let grown = (now - limit.refilled_at).as_secs_f64() * limit.rate;
        limit.tokens = (limit.tokens + grown).min(burst);
        limit.refilled_at = now;
        if limit.tokens >= 1.0 {
            limit.tokens -= 1.0;
            return Ok(());
        }
        limit.has_rejected = true;
        let soonest = Duration::from_secs_f64((1.0 - limit.tokens) / limit.rate);
        let apart = Duration::from_secs_f64(1.0 / limit.rate);
        Err(limit.retries.wait(soonest, apart, now))
    }

    /// Returns the token of a call that was not made.
    pub(super) fn refund(&mut self) {
        if let Some(limit) = &mut self.limit {
            limit.tokens += 1.0;
        }
    }

    /// The limit, in calls per second.
    pub(super) fn rate(&self) -> Option<f64> {
        self.limit.as_ref().map(|limit| limit.rate)
    }

    /// Whether there is no limit.
    pub(super) fn is_free(&self) -> bool {
        self.limit.is_none()
    }

    /// Whether the throttle has no state worth keeping.
    pub(super) fn is_idle(&self) -> bool {
        self.is_free() && self.sample.is_none_or(|sample| sample.throttled == 0)
    }

    /// The epoch that a call passes to [`Throttle::record`] when it ends.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Records a call that ended. The rate never falls below `min_rate`.
    pub(super) fn record(&mut self, is_throttled: bool, epoch: u64, min_rate: f64, now: Instant) {
        if epoch != self.epoch {
            return;
        }
        let is_free = self.is_free();
        let known = self.sample.filter(|sample| {
            // Calls counted long ago say nothing about the current rate.
            !is_free || now - sample.since <= SAMPLE_GAP_MAX
        });
        let is_first = known.is_none();
        let mut sample = known.unwrap_or(ThrottleSample::since(now));
        if is_throttled {
            sample.throttled = sample.throttled.saturating_add(1);
        } else if !is_first {
            // The first call only starts the interval.
            sample.accepted = sample.accepted.saturating_add(1);
        }
        self.sample = Some(sample);
        let age = now - sample.since;
        let is_abrupt = sample.throttled >= ABRUPT_THROTTLED_MIN
            && sample.throttled >= sample.accepted
            && age >= ABRUPT_AGE_MIN;
        if age >= INTERVAL || is_abrupt {
            self.sample = Some(ThrottleSample::since(now));
            self.adjust(sample, age, min_rate, now);
            if is_abrupt {
                self.epoch += 1;
            }
        }
    }

    /// Starts slowly after a pause that the provider named.
    pub(super) fn pause(&mut self, min_rate: f64, now: Instant) {
        let recent = self.sample.take().filter(|sample| {
            let age = now - sample.since;
            age >= ABRUPT_AGE_MIN && age <= SAMPLE_GAP_MAX
        });
        if let Some(sample) = recent {
            let age = (now - sample.since).as_secs_f64();
            self.push_rate(f64::from(sample.accepted) / age);
        }
        let rate = if self.accepted.is_empty() {
            AFTER_PAUSE_RATE
        } else {
            self.best_rate() * AFTER_PAUSE_FACTOR
        };
        self.accepted.clear();
        self.push_rate(rate);
        self.epoch += 1;
        self.set_limit(rate.max(min_rate), now);
    }

    fn adjust(&mut self, sample: ThrottleSample, age: Duration, min_rate: f64, now: Instant) {
        let accepted = f64::from(sample.accepted) / age.as_secs_f64();
        let calls = sample.accepted.saturating_add(sample.throttled);
        let tolerated = calls.saturating_mul(TOLERATED_PERCENT) / 100;
        // One throttled call among few says little.
        let is_good =
            sample.throttled <= tolerated.max(u32::from(calls > 2 * ABRUPT_THROTTLED_MIN));
        let accepts_none = sample.throttled >= ABRUPT_THROTTLED_MIN
            && sample.throttled / NONE_ACCEPTED_RATIO >= sample.accepted;
        if accepts_none || self.is_free() && !is_good {
            // The rate before says nothing about what the provider accepts now.
            self.accepted.clear();
        }
        self.push_rate(accepted);
        let best_rate = self.best_rate();
        let Some(limit) = &mut self.limit else {
            if !is_good {
                self.set_limit(best_rate.max(min_rate), now);
            }
            return;
        };
        let has_rejected = std::mem::take(&mut limit.has_rejected);
        if !is_good {
            limit.good = 0;
            limit.bad = limit.bad.saturating_add(1);
            let is_probe = limit.bad.is_multiple_of(PROBE_EVERY);
            limit.rate = (best_rate * if is_probe { PROBE_FACTOR } else { 1.0 }).max(min_rate);
            return;
        }
        limit.good = limit.good.saturating_add(1);
        if limit.good >= FREE_AFTER && !has_rejected {
            self.limit = None;
            return;
        }
        let doublings = i32::try_from(limit.good - 1).unwrap_or(i32::MAX).min(16);
        let growth = (1.0 + GROWTH * 2_f64.powi(doublings)).min(GROWTH_MAX);
        limit.rate = (limit.rate * growth).max(min_rate);
    }

    fn set_limit(&mut self, rate: f64, now: Instant) {
        self.limit = Some(Limit {
            rate,
            tokens: 1.0,
            refilled_at: now,
            good: 0,
            bad: 0,
            has_rejected: false,
            retries: RetryQueue::default(),
        });
    }

    fn push_rate(&mut self, accepted: f64) {
        if self.accepted.len() >= RATES_MAX {
            self.accepted.pop_front();
        }
        self.accepted.push_back(accepted);
    }

    fn best_rate(&self) -> f64 {
        self.accepted.iter().copied().fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN_RATE: f64 = 1.0;

    /// Mail that arrives evenly and waits for a permit. A throttled mail waits again.
    struct Simulation {
        throttle: Throttle,
        now: Instant,
        waiting: f64,
        /// Calls in flight: the millisecond of their end, their epoch, whether throttled.
        in_flight: VecDeque<(u64, u64, bool)>,
        elapsed: u64,
        accepted: u64,
        throttled: u64,
        chance: u64,
    }

    impl Simulation {
        fn new() -> Self {
            Self {
                throttle: Throttle::default(),
                now: Instant::now(),
                waiting: 0.0,
                in_flight: VecDeque::new(),
                elapsed: 0,
                accepted: 0,
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

        /// Runs for `seconds` with `per_second` mails; returns the mails accepted per
        /// second.
        fn run(
            &mut self,
            seconds: u64,
            per_second: f64,
            mut is_throttled: impl FnMut(&mut Self) -> bool,
        ) -> f64 {
            const CALL_MILLIS: u64 = 50;
            let before = self.accepted;
            for _ in 0..seconds * 1_000 {
                self.elapsed += 1;
                self.now += Duration::from_millis(1);
                self.waiting += per_second / 1_000.0;
                while self.waiting >= 1.0 && self.throttle.take(self.now).is_ok() {
                    self.waiting -= 1.0;
                    let is_throttled = is_throttled(self);
                    let epoch = self.throttle.epoch();
                    let ends = self.elapsed + CALL_MILLIS;
                    self.in_flight.push_back((ends, epoch, is_throttled));
                }
                while let Some((_, epoch, is_throttled)) = self
                    .in_flight
                    .pop_front_if(|(ends, _, _)| *ends <= self.elapsed)
                {
                    self.throttle
                        .record(is_throttled, epoch, MIN_RATE, self.now);
                    if is_throttled {
                        self.throttled += 1;
                        self.waiting += 1.0;
                    } else {
                        self.accepted += 1;
                    }
                }
            }
            (self.accepted - before) as f64 / seconds as f64
        }
    }

    fn share(share: f64) -> impl FnMut(&mut Simulation) -> bool {
        move |simulation| simulation.fraction() < share
    }

    /// A provider that accepts `per_second` calls, a tenth of them at once.
    fn at_most(per_second: f64) -> impl FnMut(&mut Simulation) -> bool {
        let (mut tokens, mut refilled_at) = (0.0_f64, 0);
        move |simulation| {
            let grown = (simulation.elapsed - refilled_at) as f64 * per_second / 1_000.0;
            tokens = (tokens + grown).min((per_second / 10.0).max(3.0));
            refilled_at = simulation.elapsed;
            let is_taken = tokens >= 1.0;
            tokens -= if is_taken { 1.0 } else { 0.0 };
            !is_taken
        }
    }

    #[test]
    fn the_rate_falls_by_the_throttled_share_and_recovers_within_seconds() {
        for (throttled, kept_least, kept_most) in [
            (0.0, 0.99, 1.0),
            (0.01, 0.95, 1.0),
            (0.1, 0.75, 1.0),
            (0.5, 0.05, 0.5),
            (1.0, 0.0, 0.0),
        ] {
            let mut simulation = Simulation::new();
            let kept = simulation.run(30, 150.0, share(throttled)) / 150.0;
            println!("{throttled} throttled: {kept:.3} of 150/s kept");
            assert!(
                (kept_least..=kept_most).contains(&kept),
                "{throttled}: {kept}"
            );
            simulation.run(10, 0.0, share(0.0));
            simulation.waiting = 0.0;
            let after = simulation.run(5, 150.0, share(0.0)) / 150.0;
            assert!(after > 0.95, "{throttled}: {after} ten seconds later");
        }
    }

    #[test]
    fn a_fully_throttled_account_makes_few_calls_and_never_stops() {
        let mut simulation = Simulation::new();
        simulation.run(30, 150.0, share(1.0));
        assert!(
            (20..120).contains(&simulation.throttled),
            "{}",
            simulation.throttled
        );
    }

    #[test]
    fn the_rate_converges_to_what_the_provider_allows() {
        for (allowed, wanted) in [
            (100.0, 150.0),
            (10.0, 150.0),
            (20.0, 1_000.0),
            (900.0, 1_000.0),
        ] {
            let mut simulation = Simulation::new();
            simulation.run(15, wanted, at_most(allowed));
            let (accepted, throttled) = (simulation.accepted, simulation.throttled);
            let kept = simulation.run(60, wanted, at_most(allowed)) / allowed;
            let calls = (simulation.accepted - accepted) + (simulation.throttled - throttled);
            let share = (simulation.throttled - throttled) as f64 / calls as f64;
            println!("{allowed} of {wanted}: {kept:.3} used, {share:.3} throttled");
            assert!(kept > 0.8, "{allowed} of {wanted}: {kept}");
            assert!(share < 0.2, "{allowed} of {wanted}: {share}");
        }
    }

    #[test]
    fn after_a_named_pause_calls_start_at_half_of_their_rate() {
        let mut simulation = Simulation::new();
        simulation.run(5, 150.0, share(0.0));
        let now = simulation.now;
        simulation.throttle.pause(MIN_RATE, now);
        simulation.in_flight.clear();
        simulation.waiting = 0.0;
        let first = simulation.run(1, 150.0, share(0.0));
        assert!((50.0..90.0).contains(&first), "{first}");
        simulation.run(5, 150.0, share(0.0));
        let later = simulation.run(5, 150.0, share(0.0));
        assert!(later > 145.0, "{later}");
    }

    #[test]
    fn an_account_that_is_not_throttled_has_no_limit() {
        let mut throttle = Throttle::default();
        let mut now = Instant::now();
        for nth in 0..10_000 {
            now += Duration::from_millis(nth % 7);
            assert_eq!(throttle.take(now), Ok(()));
            throttle.record(false, throttle.epoch(), MIN_RATE, now);
        }
        assert!(throttle.is_free());
    }
}
