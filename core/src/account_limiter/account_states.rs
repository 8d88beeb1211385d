//! The state of the accounts that this process used recently. No I/O.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::circuit_breaker::{
    BreakerPhase, BreakerState, Cause, Sample, SampleCounts, SampleWindow,
};
use super::failures::FailureReport;
use super::rate::RetryQueue;
use super::shared::Changed;
use super::throttle::Throttle;
use super::{Rejected, RejectedBy};
use crate::clock::Timestamp;
use crate::ids::ProviderAccountId;

/// An account used within this time is read from Redis with every tick.
const RECENT_USE: Duration = Duration::from_mins(1);
/// An account unused for this long is dropped: longer than the longest pause.
const UNUSED_MAX: Duration = Duration::from_mins(30);
/// The wait of a call that is rejected because the trial is in flight.
const TRIAL_RETRY_WAIT: Duration = Duration::from_secs(1);
/// The most domains of one account with a throttle of their own.
const DOMAIN_THROTTLES_MAX: usize = 1_000;

/// Calls per second that a throttled account keeps, over all workers: without calls,
/// nothing would show that the provider accepts more again.
const MIN_RATE_PER_SECOND: f64 = 1.0;

/// The state of all accounts that this process uses.
pub(super) struct AccountStates {
    accounts: HashMap<ProviderAccountId, AccountState>,
    /// Calls per second that a throttled account keeps in this process.
    min_rate: f64,
}

/// The state of one account.
pub(super) struct AccountState {
    breaker: BreakerState,
    /// Whether this state is not yet written to Redis.
    is_unsynced: bool,
    /// A report that is not yet written to Postgres.
    report: Option<FailureReport>,
    /// Whether Redis was asked for the state.
    is_loaded: bool,
    /// The state that Redis held when it was last read or written.
    stored: Option<BreakerState>,
    window: SampleWindow,
    /// Samples that are not yet added to the counts in Redis.
    uncounted: SampleCounts,
    /// Whether a call of this process is the trial.
    has_trial: bool,
    /// Calls of this process that are in flight.
    in_flight: u32,
    /// The rate that the provider accepts.
    throttle: Throttle,
    /// The rate that a mail server accepts for each domain that it throttled.
    domain_throttles: HashMap<String, Throttle>,
    /// The domain that was throttled last.
    last_throttled_domain: Option<String>,
    min_rate: f64,
    revision: u32,
    /// Schedules when calls rejected for their rate, or for concurrency, come back.
    rate_retries: RetryQueue,
    concurrency_retries: RetryQueue,
    last_used: Instant,
}

/// The state under which a call starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallStart {
    breaker: BreakerState,
    is_trial: bool,
    /// [`Throttle::epoch`] of the account and of the recipient's domain.
    throttle_epochs: (u64, u64),
}

/// A call that ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallEnd<'a> {
    pub(super) start: CallStart,
    /// The recipient's domain, if the server may throttle domains separately.
    pub(super) domain: Option<&'a str>,
    pub(super) sample: Sample,
}

impl Default for AccountStates {
    fn default() -> Self {
        Self {
            accounts: HashMap::new(),
            min_rate: MIN_RATE_PER_SECOND,
        }
    }
}

impl AccountStates {
    /// Divides the rate that throttled accounts keep among `count` workers.
    pub(super) fn set_workers(&mut self, count: u32) {
        self.min_rate = MIN_RATE_PER_SECOND / f64::from(count.max(1));
    }

    /// The state of an account, created on first use.
    pub(super) fn state(&mut self, account: ProviderAccountId) -> &mut AccountState {
        let state = self
            .accounts
            .entry(account)
            .or_insert_with(|| AccountState {
                breaker: BreakerState::default(),
                is_unsynced: false,
                report: None,
                is_loaded: false,
                stored: None,
                window: SampleWindow::default(),
                uncounted: SampleCounts::default(),
                has_trial: false,
                in_flight: 0,
                throttle: Throttle::default(),
                domain_throttles: HashMap::new(),
                last_throttled_domain: None,
                min_rate: MIN_RATE_PER_SECOND,
                revision: 0,
                rate_retries: RetryQueue::default(),
                concurrency_retries: RetryQueue::default(),
                last_used: Instant::now(),
            });
        state.min_rate = self.min_rate;
        state.last_used = Instant::now();
        state
    }

    /// Takes over the state that Redis holds, unless this process has a change to write.
    pub(super) fn adopt(
        &mut self,
        account: ProviderAccountId,
        stored: Option<BreakerState>,
        now: Timestamp,
    ) {
        let Some(state) = self.accounts.get_mut(&account) else {
            return;
        };
        state.is_loaded = true;
        if state.is_unsynced {
            return;
        }
        let Some(stored) = stored else {
            // Redis lost its data.
            state.is_unsynced = state.breaker.is_open(now);
            return;
        };
        // A state is taken over once: a clamped one would move with every read.
        if state.stored.replace(stored) == Some(stored) {
            return;
        }
        let theirs = stored.clamped(now);
        if state.breaker.outlasts(&theirs, now) {
            // Two workers opened the breaker at the same time.
            state.is_unsynced = true;
        } else {
            state.set(theirs, now);
        }
    }

    /// Marks a change as written to Redis.
    pub(super) fn mark_written(&mut self, account: ProviderAccountId, written: BreakerState) {
        if let Some(state) = self.accounts.get_mut(&account) {
            state.is_unsynced &= state.breaker != written;
            state.stored = Some(written);
        }
    }

    /// The changes that are not yet written to Redis. An opening that ended meanwhile is
    /// not written: the other workers may know better.
    pub(super) fn unsynced(&mut self, now: Timestamp) -> Vec<Changed> {
        for state in self.accounts.values_mut() {
            state.is_unsynced &= state.breaker.open_cause.is_none() || state.breaker.is_open(now);
        }
        let unsynced = self.accounts.iter().filter(|(_, state)| state.is_unsynced);
        unsynced
            .map(|(account, state)| (*account, state.breaker, state.breaker.ttl(now)))
            .collect()
    }

    /// The rates of recently used accounts that are throttled, in calls per second.
    pub(super) fn throttled_rates(&self) -> Vec<(ProviderAccountId, f64)> {
        let recent = self.accounts.iter();
        let recent = recent.filter(|(_, state)| state.last_used.elapsed() < RECENT_USE);
        recent
            .filter_map(|(account, state)| Some((*account, state.throttle.rate()?)))
            .collect()
    }

    /// The reports since the last call.
    pub(super) fn take_reports(&mut self) -> Vec<(ProviderAccountId, FailureReport)> {
        let states = self.accounts.iter_mut();
        states
            .filter_map(|(account, state)| Some((*account, state.report.take()?)))
            .collect()
    }

    /// The accounts to read from Redis: new ones at once, recently used ones with every
    /// tick.
    pub(super) fn due_to_read(&mut self, is_tick: bool) -> Vec<ProviderAccountId> {
        if is_tick {
            self.accounts
                .retain(|_, state| state.in_flight > 0 || state.last_used.elapsed() < UNUSED_MAX);
        }
        let wanted = self.accounts.iter().filter(|(_, state)| {
            !state.is_loaded || (is_tick && state.last_used.elapsed() < RECENT_USE)
        });
        wanted.map(|(account, _)| *account).collect()
    }

    /// The samples of an account to add to Redis. Samples are shared only while some fail.
    pub(super) fn due_to_count(
        &mut self,
        account: ProviderAccountId,
        is_counted: bool,
        now: Timestamp,
    ) -> Option<(ProviderAccountId, SampleCounts)> {
        let state = self.accounts.get_mut(&account)?;
        let counts = std::mem::take(&mut state.uncounted);
        let is_failing = is_counted || state.window.counts(now).failures > 0;
        let wanted = is_failing && counts != SampleCounts::default() && !state.is_unsynced;
        wanted.then_some((account, counts))
    }

    /// Drops samples that could not be shared: they will be old when Redis is back.
    pub(super) fn discard_uncounted(&mut self) {
        for state in self.accounts.values_mut() {
            state.uncounted = SampleCounts::default();
        }
    }

    /// Opens the breaker if the counts of all workers demand it.
    pub(super) fn trip_if_failing(
        &mut self,
        account: ProviderAccountId,
        sums: SampleCounts,
        now: Timestamp,
        fraction: f64,
    ) {
        let Some(state) = self.accounts.get_mut(&account) else {
            return;
        };
        let breaker = state.breaker;
        let is_closed = breaker.phase(now) == BreakerPhase::Closed;
        if sums.should_trip() && is_closed {
            state.transition(
                account,
                breaker.opened_by_failures(None, now, fraction),
                now,
            );
        }
    }
}

impl AccountState {
    /// Whether Redis was never asked for the account's state.
    pub(super) fn is_new(&self) -> bool {
        !self.is_loaded
    }

    /// Decides whether a call may start. A call that starts must end with
    /// [`AccountState::release`]. A higher `revision` than the breaker's closes it: the
    /// account was changed since.
    pub(super) fn admit(
        &mut self,
        account: ProviderAccountId,
        (revision, domain): (u32, Option<&str>),
        now: Timestamp,
    ) -> Result<CallStart, Rejected> {
        self.revision = self.revision.max(revision);
        if let Some(closed) = self.breaker.reset_by_revision(self.revision, now) {
            self.transition(account, closed, now);
        }
        let rejected = |cause: Cause, wait| {
            let by = cause.into();
            Err(Rejected { by, wait })
        };
        let is_trial = match self.breaker.phase(now) {
            BreakerPhase::Closed => {
                self.take(domain)?;
                false
            }
            BreakerPhase::Open(cause, wait) => return rejected(cause, wait),
            BreakerPhase::HalfOpen(cause) if self.has_trial => {
                return rejected(cause, TRIAL_RETRY_WAIT);
            }
            BreakerPhase::HalfOpen(_) => true,
        };
        self.has_trial |= is_trial;
        self.in_flight += 1;
        Ok(CallStart {
            is_trial,
            ..self.start(domain)
        })
    }

    /// Takes a token from the throttles of the account and of the domain.
    fn take(&mut self, domain: Option<&str>) -> Result<(), Rejected> {
        let now = Instant::now();
        let mut domain_throttle = domain.and_then(|domain| self.domain_throttles.get_mut(domain));
        let mut taken = Ok(());
        if let Some(throttle) = &mut domain_throttle {
            taken = throttle.take(now);
        }
        if taken.is_ok() {
            taken = self.throttle.take(now);
            if let (Err(_), Some(throttle)) = (taken, domain_throttle) {
                throttle.refund();
            }
        }
        taken.map_err(|wait| Rejected {
            by: RejectedBy::Throttled,
            wait,
        })
    }

    fn start(&self, domain: Option<&str>) -> CallStart {
        let domain_throttle = domain.and_then(|domain| self.domain_throttles.get(domain));
        let domain_epoch = domain_throttle.map_or(0, Throttle::epoch);
        CallStart {
            breaker: self.breaker,
            is_trial: false,
            throttle_epochs: (self.throttle.epoch(), domain_epoch),
        }
    }

    /// Ends a call. If it was the trial, another call may be the next one.
    pub(super) fn release(&mut self, start: CallStart) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.has_trial &= !start.is_trial;
    }

    /// Calls of this process that are in flight.
    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Rejects a call because the account's rate is used up.
    pub(super) fn reject_by_rate(&mut self, soonest: Duration, apart: Duration) -> Rejected {
        Rejected {
            by: RejectedBy::Rate,
            wait: self.rate_retries.wait(soonest, apart, Instant::now()),
        }
    }

    /// Rejects a call because too many are in flight; one of them ends every `apart`.
    pub(super) fn reject_by_concurrency(&mut self, apart: Duration) -> Rejected {
        let retries = &mut self.concurrency_retries;
        Rejected {
            by: RejectedBy::Concurrency,
            wait: retries.wait(apart, apart, Instant::now()),
        }
    }

    /// Records the result of a call. Returns whether the breaker state changed.
    pub(super) fn record(
        &mut self,
        account: ProviderAccountId,
        end: CallEnd<'_>,
        now: Timestamp,
        fraction: f64,
    ) -> bool {
        let CallEnd { start, sample, .. } = end;
        self.adjust_rate(account, end);
        // A call that started before the last change says nothing about the state since.
        let is_current = start.breaker == self.breaker;
        if !is_current && sample.is_unusable() {
            return false;
        }
        if start.is_trial && is_current {
            let next = self.breaker.after_trial(sample, now, fraction);
            self.transition(account, next, now);
            return true;
        }
        if is_current {
            self.window.add(sample, now);
            self.uncounted.add(sample);
        }
        let has_tripped = is_current && self.window.counts(now).should_trip();
        let next = self.breaker.after_call(sample, has_tripped, now, fraction);
        let Some(next) = next else {
            return false;
        };
        self.transition(account, next, now);
        true
    }

    /// Adjusts the rate to the result of a call.
    fn adjust_rate(&mut self, account: ProviderAccountId, end: CallEnd<'_>) {
        let is_throttled = match end.sample {
            Sample::Success => false,
            Sample::Throttled { retry_after: None } => true,
            // A named pause opens the breaker instead; a failure says nothing about the rate.
            Sample::Throttled { .. } | Sample::Failure { .. } | Sample::Unusable { .. } => {
                return;
            }
        };
        let now = Instant::now();
        let (account_epoch, domain_epoch) = end.start.throttle_epochs;
        let mut concerns_account = true;
        if let Some(domain) = end.domain {
            self.adjust_domain_rate(domain, is_throttled, domain_epoch, now);
            if is_throttled {
                // While only one domain is throttled, its mail server is the cause.
                let last = self.last_throttled_domain.replace(domain.to_owned());
                concerns_account = last.is_some_and(|last| last != domain);
            }
        }
        if !concerns_account {
            return;
        }
        let was_free = self.throttle.is_free();
        self.throttle
            .record(is_throttled, account_epoch, self.min_rate, now);
        match (was_free, self.throttle.is_free()) {
            (true, false) => {
                info!(provider.account = %account, "Provider account {account} is throttled by its provider; lowering its rate");
            }
            (false, true) => {
                info!(provider.account = %account, "Provider account {account} is no longer throttled");
            }
            (true, true) | (false, false) => {}
        }
    }

    fn adjust_domain_rate(&mut self, domain: &str, is_throttled: bool, epoch: u64, now: Instant) {
        if is_throttled && !self.domain_throttles.contains_key(domain) {
            if self.domain_throttles.len() >= DOMAIN_THROTTLES_MAX {
                self.domain_throttles
                    .retain(|_, throttle| !throttle.is_free());
            }
            if self.domain_throttles.len() < DOMAIN_THROTTLES_MAX {
                self.domain_throttles
                    .insert(domain.to_owned(), Throttle::default());
            }
        }
        if let Some(throttle) = self.domain_throttles.get_mut(domain) {
            throttle.record(is_throttled, epoch, self.min_rate, now);
            if throttle.is_idle() {
                self.domain_throttles.remove(domain);
            }
        }
    }

    /// Changes the state and marks it to be written to Redis.
    fn transition(&mut self, account: ProviderAccountId, next: BreakerState, now: Timestamp) {
        let next = next.with_revision(self.revision);
        match next.phase(now) {
            BreakerPhase::Open(Cause::Failures, wait) => {
                warn!(provider.account = %account, ?wait, "Circuit breaker of provider account {account} opened: too many calls failed");
            }
            BreakerPhase::Open(Cause::Pause, wait) => {
                info!(provider.account = %account, ?wait, "The provider of account {account} asked for a pause");
            }
            BreakerPhase::Open(Cause::Unusable, wait) => {
                debug!(provider.account = %account, ?wait, "Provider account {account} cannot send; pausing its calls");
            }
            BreakerPhase::Closed => {
                info!(provider.account = %account, "Circuit breaker of provider account {account} closed; resuming calls")
            }
            BreakerPhase::HalfOpen(_) => {}
        }
        self.report = FailureReport::of(&self.breaker, &next, now).or(self.report);
        self.set(next, now);
        self.is_unsynced = true;
    }

    fn set(&mut self, breaker: BreakerState, now: Timestamp) {
        let is_asked = |breaker: BreakerState| {
            matches!(breaker.phase(now), BreakerPhase::Open(Cause::Pause, _))
        };
        // A longer pause replaces the current one; the rate is lowered only once.
        if is_asked(breaker) && !is_asked(self.breaker) {
            self.throttle.pause(self.min_rate, Instant::now());
        }
        self.breaker = breaker;
        self.is_unsynced = false;
        self.window.clear();
        self.uncounted = SampleCounts::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, delta};

    const ACCOUNT: &str = "00000000-0000-7000-8000-000000000001";

    fn named(seconds: u64) -> Sample {
        let retry_after = Some(Duration::from_secs(seconds));
        Sample::Throttled { retry_after }
    }

    #[test]
    fn a_pause_extended_by_calls_in_flight_halves_the_rate_once() {
        let account: ProviderAccountId = ACCOUNT.parse().unwrap();
        let now = Clock::system().now();
        let mut states = AccountStates::default();
        let state = states.state(account);
        let start = state.start(None);
        for (seconds, has_changed) in [(30, true), (30, false), (31, false), (40, true), (60, true)]
        {
            let end = CallEnd {
                start,
                domain: None,
                sample: named(seconds),
            };
            let changed = state.record(account, end, now, 0.5);
            assert_eq!(changed, has_changed, "{seconds}");
        }
        assert_eq!(state.throttle.epoch(), 1);
    }

    #[test]
    fn the_wait_for_one_limit_does_not_delay_calls_rejected_by_another() {
        let account: ProviderAccountId = ACCOUNT.parse().unwrap();
        let mut states = AccountStates::default();
        let state = states.state(account);
        let second = Duration::from_secs(1);
        for _ in 0..20 {
            state.reject_by_rate(second, second);
        }
        let rejected = state.reject_by_concurrency(second / 10);
        assert_eq!(rejected.by, RejectedBy::Concurrency);
        assert!(rejected.wait <= second, "{rejected:?}");
        state.throttle.pause(MIN_RATE_PER_SECOND, Instant::now());
        while state.take(None).is_ok() {}
        let rejected = state.take(None).unwrap_err();
        assert!(rejected.wait <= second, "{rejected:?}");
    }

    #[test]
    fn the_state_in_redis_replaces_the_own_one_unless_that_is_not_written_or_open_for_longer() {
        let account: ProviderAccountId = ACCOUNT.parse().unwrap();
        let now = Clock::system().now();
        let mut states = AccountStates::default();
        let opened = |seconds| {
            let paused = BreakerState::default().after_call(named(seconds), false, now, 0.5);
            paused.unwrap()
        };
        let is_unsynced = |states: &mut AccountStates| !states.unsynced(now).is_empty();
        let (short, long) = (opened(20), opened(60));
        states.state(account).transition(account, short, now);
        states.adopt(account, Some(BreakerState::default()), now);
        assert_eq!(states.state(account).breaker, short, "it is not written");
        states.mark_written(account, short);
        assert!(!is_unsynced(&mut states));
        states.adopt(account, Some(long), now);
        assert_eq!(states.state(account).breaker, long);
        states.adopt(account, Some(short), now);
        assert_eq!(states.state(account).breaker, long, "no pause is shortened");
        assert!(is_unsynced(&mut states));
        states.mark_written(account, long);
        states.adopt(account, None, now);
        assert!(is_unsynced(&mut states), "Redis lost it");
        states.mark_written(account, long);
        let closed = BreakerState::default().with_revision(1);
        states.adopt(account, Some(closed), now);
        assert_eq!(states.state(account).breaker, closed);
        states.adopt(account, None, now);
        assert!(!is_unsynced(&mut states), "it is closed");
    }

    #[test]
    fn an_opening_that_ended_before_it_was_written_is_not_shared() {
        let account: ProviderAccountId = ACCOUNT.parse().unwrap();
        let now = Clock::system().now();
        let mut states = AccountStates::default();
        let state = states.state(account);
        let opened = state.breaker.opened_by_failures(None, now, 0.5);
        state.transition(account, opened, now);
        assert_eq!(states.unsynced(now).len(), 1);
        let later = now + delta(Duration::from_secs(7));
        assert!(states.unsynced(later).is_empty());
        let state = states.state(account);
        let trial = state.admit(account, (0, None), later).unwrap();
        assert!(state.admit(account, (0, None), later).is_err());
        state.release(trial);
        assert!(state.admit(account, (0, None), later).is_ok());
    }
}
