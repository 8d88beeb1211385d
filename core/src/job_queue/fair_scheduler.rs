//! Decides which job starts next. It distributes the slots of a worker between fairness
//! keys, so that jobs of one key that hang (because a provider does not answer, for example)
//! do not keep jobs of other keys from starting.
//!
//! A key may take another slot only while fewer of its jobs run than [`SHARE`] times the
//! free slots. So a key alone gets three quarters of the slots, the next one three quarters
//! of the rest, and a new key finds a free slot unless the jobs of many keys hang at the same
//! time. No key has a fixed share, so there is nothing to configure.

use std::collections::{HashMap, VecDeque};

use super::FairnessKey;

/// A key may run at most this many times as many jobs as there are free slots.
const SHARE: usize = 3;

/// Jobs that wait for a slot, by fairness key, and how many run.
#[derive(Debug)]
pub(super) struct FairScheduler<T> {
    slots: usize,
    running: usize,
    waiting: usize,
    clock: u64,
    keys: HashMap<FairnessKey, KeyState<T>>,
}

#[derive(Debug)]
struct KeyState<T> {
    waiting: VecDeque<T>,
    running: usize,
    /// The scheduler's clock when a job of the key was last started, or when the key was
    /// added.
    served_at: u64,
}

impl<T> FairScheduler<T> {
    /// For a worker that runs `slots` jobs at the same time.
    pub(super) fn new(slots: usize) -> Self {
        Self {
            slots: slots.max(1),
            running: 0,
            waiting: 0,
            clock: 0,
            keys: HashMap::new(),
        }
    }

    /// Adds a job that waits for a slot.
    pub(super) fn wait(&mut self, key: FairnessKey, job: T) {
        self.clock += 1;
        let state = self.keys.entry(key).or_insert(KeyState {
            waiting: VecDeque::new(),
            running: 0,
            served_at: self.clock,
        });
        state.waiting.push_back(job);
        self.waiting += 1;
    }

    /// Starts the next job: of the keys that may take another slot, that of the key with the
    /// fewest running jobs; among equals, of the key that was served the longest ago.
    pub(super) fn start_next(&mut self) -> Option<T> {
        let free = self.free();
        let (_, state) = self
            .keys
            .iter_mut()
            .filter(|(_, state)| !state.waiting.is_empty() && state.may_take(free))
            .min_by_key(|(_, state)| (state.running, state.served_at))?;
        let job = state.waiting.pop_front()?;
        self.clock += 1;
        state.served_at = self.clock;
        state.running += 1;
        self.running += 1;
        self.waiting -= 1;
        Some(job)
    }

    /// Notes that a running job of `key` has ended.
    pub(super) fn end(&mut self, key: FairnessKey) {
        let Some(state) = self.keys.get_mut(&key) else {
            return;
        };
        state.running = state.running.saturating_sub(1);
        self.running = self.running.saturating_sub(1);
        if state.running == 0 && state.waiting.is_empty() {
            self.keys.remove(&key);
        }
    }

    /// Removes all waiting jobs and returns them.
    pub(super) fn drain(&mut self) -> Vec<T> {
        let states = self.keys.values_mut();
        let drained = states.flat_map(|state| state.waiting.drain(..)).collect();
        self.keys.retain(|_, state| state.running > 0);
        self.waiting = 0;
        drained
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many jobs wait because their key has its share of the slots. 0 if no slot is free:
    /// then all jobs wait for that.
    pub(super) fn held_back(&self) -> usize {
        let free = self.free();
        if free == 0 || self.waiting == 0 {
            return 0;
        }
        let held_back = self.keys.values().filter(|state| !state.may_take(free));
        held_back.map(|state| state.waiting.len()).sum()
    }

    fn free(&self) -> usize {
        self.slots.saturating_sub(self.running)
    }
}

impl<T> KeyState<T> {
    fn may_take(&self, free: usize) -> bool {
        self.running < SHARE * free
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn key(number: u128) -> FairnessKey {
        FairnessKey(Uuid::from_u128(number))
    }

    fn started(scheduler: &mut FairScheduler<u128>) -> Vec<u128> {
        std::iter::from_fn(|| scheduler.start_next()).collect()
    }

    #[test]
    fn a_key_alone_gets_three_quarters_and_the_next_three_quarters_of_the_rest() {
        let mut scheduler = FairScheduler::new(64);
        (0..100).for_each(|_| scheduler.wait(key(1), 1));
        assert_eq!(started(&mut scheduler).len(), 48);
        assert_eq!(scheduler.held_back(), 52);
        (0..100).for_each(|_| scheduler.wait(key(2), 2));
        assert_eq!(started(&mut scheduler), [2; 12]);
        (0..100).for_each(|_| scheduler.wait(key(3), 3));
        assert_eq!(started(&mut scheduler), [3; 3]);
        scheduler.wait(key(4), 4);
        assert_eq!(started(&mut scheduler), [4]);
        assert_eq!(scheduler.held_back(), 0, "no slot is free");
        scheduler.end(key(4));
        assert_eq!(scheduler.held_back(), 52 + 88 + 97);
    }

    #[test]
    fn a_worker_with_few_slots_uses_all_of_them() {
        for slots in 1..=3 {
            let mut scheduler = FairScheduler::new(slots);
            (0..9).for_each(|_| scheduler.wait(key(1), 1));
            assert_eq!(started(&mut scheduler).len(), slots);
        }
    }

    #[test]
    fn keys_alternate_and_each_keeps_its_order() {
        let mut scheduler = FairScheduler::new(100);
        for number in [10, 11, 12] {
            scheduler.wait(key(1), number);
        }
        scheduler.wait(key(2), 20);
        scheduler.wait(key(3), 30);
        scheduler.wait(key(3), 31);
        assert_eq!(started(&mut scheduler), [10, 20, 30, 11, 31, 12]);
    }

    #[test]
    fn the_key_with_the_fewest_running_jobs_is_next() {
        let mut scheduler = FairScheduler::new(8);
        (0..3).for_each(|_| scheduler.wait(key(1), 1));
        assert_eq!(started(&mut scheduler).len(), 3);
        scheduler.wait(key(1), 1);
        scheduler.wait(key(2), 2);
        assert_eq!(started(&mut scheduler), [2, 1]);
    }

    #[test]
    fn a_key_without_jobs_is_removed() {
        let mut scheduler = FairScheduler::new(2);
        scheduler.wait(key(1), 1);
        scheduler.wait(key(2), 2);
        scheduler.wait(key(2), 3);
        assert_eq!(started(&mut scheduler), [1, 2]);
        assert_eq!(scheduler.drain(), [3]);
        scheduler.end(key(1));
        scheduler.end(key(2));
        assert!(scheduler.keys.is_empty());
        assert_eq!((scheduler.running, scheduler.waiting()), (0, 0));
    }
}
