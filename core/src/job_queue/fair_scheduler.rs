//! Who starts next. The slots of a worker are shared out among lanes, so that one
//! whose jobs hang (their provider does not answer, say) does not keep the others from
//! starting.
//!
//! A lane may take another slot only while its running jobs are fewer than
//! [`SHARE`] times the free slots. So a lone lane gets three quarters of them, the
//! next one three quarters of the rest, and there is a free slot for whoever comes
//! until many lanes hang at once. No lane has a fixed share, so nothing is to be
//! configured, and what is kept free is what protects.

use std::collections::{HashMap, VecDeque};

use super::FairnessKey;

/// How many times the free slots a lane's running jobs may be.
const SHARE: usize = 3;

/// Jobs of lanes that wait for a slot, and the count of those that have one.
#[derive(Debug)]
pub(super) struct FairScheduler<T> {
    slots: usize,
    running: usize,
    waiting: usize,
    turns: u64,
    lanes: HashMap<FairnessKey, Member<T>>,
}

#[derive(Debug)]
struct Member<T> {
    waiting: VecDeque<T>,
    running: usize,
    /// When it had its last turn, or came; counted in turns.
    turn: u64,
}

impl<T> FairScheduler<T> {
    /// For a worker that runs `slots` jobs at once.
    pub(super) fn new(slots: usize) -> Self {
        Self {
            slots: slots.max(1),
            running: 0,
            waiting: 0,
            turns: 0,
            lanes: HashMap::new(),
        }
    }

    pub(super) fn wait(&mut self, lane: FairnessKey, job: T) {
        self.turns += 1;
        let member = self.lanes.entry(lane).or_insert(Member {
            waiting: VecDeque::new(),
            running: 0,
            turn: self.turns,
        });
        member.waiting.push_back(job);
        self.waiting += 1;
    }

    /// The next job to start, which then runs: of those lanes that may take another
    /// slot, the one with the fewest running, by turns among equals.
    pub(super) fn start_next(&mut self) -> Option<T> {
        let free = self.free();
        let (_, member) = self
            .lanes
            .iter_mut()
            .filter(|(_, member)| !member.waiting.is_empty() && member.may_take(free))
            .min_by_key(|(_, member)| (member.running, member.turn))?;
        let job = member.waiting.pop_front()?;
        self.turns += 1;
        member.turn = self.turns;
        member.running += 1;
        self.running += 1;
        self.waiting -= 1;
        Some(job)
    }

    /// A running job of `lane` has ended.
    pub(super) fn end(&mut self, lane: FairnessKey) {
        let Some(member) = self.lanes.get_mut(&lane) else {
            return;
        };
        member.running = member.running.saturating_sub(1);
        self.running = self.running.saturating_sub(1);
        if member.running == 0 && member.waiting.is_empty() {
            self.lanes.remove(&lane);
        }
    }

    /// Takes out everything that waits.
    pub(super) fn drain(&mut self) -> Vec<T> {
        let waiting = self.lanes.values_mut();
        let drained = waiting.flat_map(|member| member.waiting.drain(..));
        let drained = drained.collect();
        self.lanes.retain(|_, member| member.running > 0);
        self.waiting = 0;
        drained
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many wait because their lane has its share. While there is no free slot
    /// at all, nobody waits for that reason.
    pub(super) fn held_back(&self) -> usize {
        let free = self.free();
        if free == 0 || self.waiting == 0 {
            return 0;
        }
        let held_back = self.lanes.values().filter(|member| !member.may_take(free));
        held_back.map(|member| member.waiting.len()).sum()
    }

    fn free(&self) -> usize {
        self.slots.saturating_sub(self.running)
    }
}

impl<T> Member<T> {
    fn may_take(&self, free: usize) -> bool {
        self.running < SHARE * free
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn lane(number: u128) -> FairnessKey {
        FairnessKey(Uuid::from_u128(number))
    }

    fn started(shares: &mut FairScheduler<u128>) -> Vec<u128> {
        std::iter::from_fn(|| shares.start_next()).collect()
    }

    #[test]
    fn a_lone_lane_gets_three_quarters_and_the_next_three_quarters_of_the_rest() {
        let mut shares = FairScheduler::new(64);
        (0..100).for_each(|_| shares.wait(lane(1), 1));
        assert_eq!(started(&mut shares).len(), 48);
        assert_eq!(shares.held_back(), 52);
        (0..100).for_each(|_| shares.wait(lane(2), 2));
        assert_eq!(started(&mut shares), [2; 12]);
        (0..100).for_each(|_| shares.wait(lane(3), 3));
        assert_eq!(started(&mut shares), [3; 3]);
        shares.wait(lane(4), 4);
        assert_eq!(started(&mut shares), [4]);
        assert_eq!(shares.held_back(), 0, "nothing is free");
        shares.end(lane(4));
        assert_eq!(shares.held_back(), 52 + 88 + 97);
    }

    #[test]
    fn a_small_worker_uses_all_it_has() {
        for slots in 1..=3 {
            let mut shares = FairScheduler::new(slots);
            (0..9).for_each(|_| shares.wait(lane(1), 1));
            assert_eq!(started(&mut shares).len(), slots);
        }
    }

    #[test]
    fn lanes_take_turns_and_each_keeps_its_order() {
        let mut shares = FairScheduler::new(100);
        for number in [10, 11, 12] {
            shares.wait(lane(1), number);
        }
        shares.wait(lane(2), 20);
        shares.wait(lane(3), 30);
        shares.wait(lane(3), 31);
        assert_eq!(started(&mut shares), [10, 20, 30, 11, 31, 12]);
    }

    #[test]
    fn whoever_has_the_fewest_running_is_next() {
        let mut shares = FairScheduler::new(8);
        (0..3).for_each(|_| shares.wait(lane(1), 1));
        assert_eq!(started(&mut shares).len(), 3);
        shares.wait(lane(1), 1);
        shares.wait(lane(2), 2);
        assert_eq!(started(&mut shares), [2, 1]);
    }

    #[test]
    fn nothing_is_left_of_a_lane_without_jobs() {
        let mut shares = FairScheduler::new(2);
        shares.wait(lane(1), 1);
        shares.wait(lane(2), 2);
        shares.wait(lane(2), 3);
        assert_eq!(started(&mut shares), [1, 2]);
        assert_eq!(shares.drain(), [3]);
        shares.end(lane(1));
        shares.end(lane(2));
        assert!(shares.lanes.is_empty());
        assert_eq!((shares.running, shares.waiting()), (0, 0));
    }
}
