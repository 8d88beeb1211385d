//! Repeatable random numbers: `SplitMix64` (Steele, Lea and Flood, "Fast Splittable
//! Pseudorandom Number Generators", 2014). Tasks that run concurrently fork their own
//! source, so that they do not take numbers from each other.

use std::time::Duration;

/// A source of numbers. The same seed gives the same numbers.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A new source, independent of this one.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.number())
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Evenly distributed in `0.0..1.0`.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }

    /// One of `0..bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.fraction() * bound as f64) as usize
    }

    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + self.fraction() * (high - low)
    }

    pub(crate) fn seconds(&mut self, low: f64, high: f64) -> Duration {
        Duration::from_secs_f64(self.between(low, high))
    }

    /// A random element.
    pub(crate) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    pub(crate) fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            all.swap(last, self.below(last + 1));
        }
    }
}
