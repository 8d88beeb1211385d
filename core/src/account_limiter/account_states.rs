//! What this process knows of the accounts that it uses lately. No I/O.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::circuit_breaker::{
    BreakerPhase, BreakerState, Cause, Sample, SampleCounts, SampleWindow,
};
use super::rate::RetryQueue;
use super::shared::Changed;
use super::throttle::Throttle;
use super::{Rejected, RejectedBy};
use crate::clock::Timestamp;
use crate::ids::ProviderAccountId;

/// How long after its last use an account is looked at with every tick.
const USED_LATELY: Duration = Duration::from_mins(1);
/// How long after its last use an account is forgotten: longer than any is closed.
const FORGOTTEN_AFTER: Duration = Duration::from_mins(30);
/// How long whoever finds a probe under way is to wait before they ask again.
const PROBE_WAIT: Duration = Duration::from_secs(1);
/// How long another worker's probe is taken to be under way before Redis is asked
/// again.
const PROBE_KNOWN: Duration = Duration::from_millis(300);
/// Domains of an account that are throttled each by itself, at the most.
const DOMAINS_MAX: usize = 1_000;

/// Calls per second that a throttled account has left, over all workers: each may be the
/// one that finds out that it is throttled no more.
const LEAST_PER_SECOND: f64 = 1.0;

/// All accounts that this process knows of.
pub(super) struct AccountStates {
    desks: HashMap<ProviderAccountId, AccountState>,
    /// Calls per second that a throttled account has left in this process.
    least: f64,
}

/// One account.
pub(super) struct AccountState {
    standing: BreakerState,
    /// Whether Redis is yet to be told of it.
    is_untold: bool,
    /// Whether Redis was asked how it stands.
    is_known: bool,
    window: SampleWindow,
    /// Calls that Redis is yet to count.
    uncounted: SampleCounts,
    probe: Probe,
    /// Calls of this process that are under way.
    under_way: u32,
    /// How fast the provider takes calls.
    throttle: Throttle,
    /// How fast a mail server takes mail to the domains of which it throttled some.
    domains: HashMap<String, Throttle>,
    /// The domain whose mail was throttled last.
    throttled: Option<String>,
    least: f64,
    revision: u32,
    /// Those who wait for a call per second, and for the end of one under way.
    refused_by_rate: RetryQueue,
    refused_by_concurrency: RetryQueue,
    used: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Probe {
    /// Nobody's, as far as this process knows.
    Free,
    /// A call of this process.
    Ours,
    /// Another worker's, until when Redis need not be asked.
    Theirs(Instant),
}

/// The first answer to who asks to call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallAdmission {
    Pass(CallStart),
    /// It may be the probe, if no other worker's call is.
    Probe(CallStart, Cause),
    Rejected(Rejected),
}

/// What a call begins under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallStart {
    /// The number of the standing.
    pub(super) version: u64,
    /// See [`Throttle::falls`]: of the account, and of the recipient's domain.
    falls: (u64, u64),
}

/// A call that ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallEnd<'a> {
    pub(super) begun: CallStart,
    /// The recipient's domain, where that may be throttled by itself.
    pub(super) domain: Option<&'a str>,
    /// Whether it was the probe.
    pub(super) is_probe: bool,
    pub(super) verdict: Sample,
}

impl Default for AccountStates {
    fn default() -> Self {
        Self {
            desks: HashMap::new(),
            least: LEAST_PER_SECOND,
        }
    }
}

impl AccountStates {
    /// Shares what is left of throttled accounts with so many workers.
    pub(super) fn set_workers(&mut self, count: u32) {
        self.least = LEAST_PER_SECOND / f64::from(count.max(1));
    }

    /// What is known of an account.
    pub(super) fn desk(&mut self, account: ProviderAccountId) -> &mut AccountState {
        let desk = self.desks.entry(account).or_insert_with(|| AccountState {
            standing: BreakerState::default(),
            is_untold: false,
            is_known: false,
            window: SampleWindow::default(),
            uncounted: SampleCounts::default(),
            probe: Probe::Free,
            under_way: 0,
            throttle: Throttle::default(),
            domains: HashMap::new(),
            throttled: None,
            least: LEAST_PER_SECOND,
            revision: 0,
            refused_by_rate: RetryQueue::default(),
            refused_by_concurrency: RetryQueue::default(),
            used: Instant::now(),
        });
        desk.least = self.least;
        desk.used = Instant::now();
        desk
    }

    /// Goes by a standing that Redis holds.
    pub(super) fn adopt(
        &mut self,
        account: ProviderAccountId,
        standing: Option<BreakerState>,
        now: Timestamp,
    ) {
        let Some(desk) = self.desks.get_mut(&account) else {
            return;
        };
        desk.is_known = true;
        let own = desk.standing;
        let theirs = standing.unwrap_or_default().clamped(now);
        let is_clamped = standing.is_some_and(|standing| standing.is_beyond(now));
        // Redis was emptied where it knows less than was told before. What is closed
        // stays closed then, and an open gate follows whoever began anew.
        let is_lost = theirs.version < own.version && !desk.is_untold;
        if is_lost && own.closed_by.is_some() {
            desk.is_untold = true;
        } else if theirs.version > own.version || is_lost {
            desk.set(theirs, now);
        } else if theirs.version == own.version {
            // What is clamped anew with every look would never end.
            if !is_clamped || own.closed_by != theirs.closed_by {
                desk.standing = theirs;
            }
            desk.is_untold = false;
        }
    }

    /// Marks a change as told, and goes by what counts now.
    pub(super) fn told(
        &mut self,
        account: ProviderAccountId,
        told: BreakerState,
        counts: Option<BreakerState>,
        now: Timestamp,
    ) {
        if let Some(desk) = self.desks.get_mut(&account) {
            desk.is_untold &= desk.standing.version != told.version;
        }
        self.adopt(account, counts, now);
    }

    /// The changes that Redis is yet to be told of.
    pub(super) fn untold(&self, now: Timestamp) -> Vec<Changed> {
        let untold = self.desks.iter().filter(|(_, desk)| desk.is_untold);
        untold
            .map(|(account, desk)| (*account, desk.standing, desk.standing.lifetime(now)))
            .collect()
    }

    /// The accounts whose standing is to be read: those used lately with every tick,
    /// and new ones at once.
    pub(super) fn due_to_read(&mut self, is_tick: bool) -> Vec<ProviderAccountId> {
        if is_tick {
            self.desks
                .retain(|_, desk| desk.under_way > 0 || desk.used.elapsed() < FORGOTTEN_AFTER);
        }
        let wanted = self.desks.iter().filter(|(_, desk)| {
            !desk.is_known || (is_tick && (desk.is_untold || desk.used.elapsed() < USED_LATELY))
        });
        wanted.map(|(account, _)| *account).collect()
    }

    /// The calls of an account that Redis is to count: only while some fail.
    pub(super) fn due_to_count(
        &mut self,
        account: ProviderAccountId,
        is_counted: bool,
        now: Timestamp,
    ) -> Option<(ProviderAccountId, u64, SampleCounts)> {
        let desk = self.desks.get_mut(&account)?;
        let counts = std::mem::take(&mut desk.uncounted);
        let is_failing = is_counted || desk.window.counts(now).failures > 0;
        let wanted = is_failing && counts != SampleCounts::default() && !desk.is_untold;
        wanted.then_some((account, desk.standing.version, counts))
    }

    /// Forgets calls that Redis was not there to count: they would be old when it is.
    pub(super) fn forget_uncounted(&mut self) {
        for desk in self.desks.values_mut() {
            desk.uncounted = SampleCounts::default();
        }
    }

    /// Opens the circuit where all workers' calls, counted under a standing, ask for
    /// it.
    pub(super) fn judge(
        &mut self,
        account: ProviderAccountId,
        version: u64,
        sums: SampleCounts,
        now: Timestamp,
        fraction: f64,
    ) {
        let Some(desk) = self.desks.get_mut(&account) else {
            return;
        };
        let standing = desk.standing;
        let is_passing = standing.position(now) == BreakerPhase::Passing;
        if sums.trip() && standing.version == version && is_passing {
            desk.change(account, standing.opened(None, now, fraction), now);
        }
    }
}

impl AccountState {
    /// Whether the account was never looked at in Redis.
    pub(super) fn is_new(&self) -> bool {
        !self.is_known
    }

    /// Lets a call begin, which must be ended by [`AccountState::leave`]. A standing from before
    /// the account was mended (`revision`) does not count.
    pub(super) fn ask(
        &mut self,
        account: ProviderAccountId,
        (revision, domain): (u32, Option<&str>),
        now: Timestamp,
    ) -> CallAdmission {
        self.revision = self.revision.max(revision);
        if let Some(mended) = self.standing.mended(self.revision, now) {
            self.change(account, mended, now);
        }
        let step = match self.standing.position(now) {
            BreakerPhase::Passing => match self.take(domain) {
                Ok(()) => CallAdmission::Pass(self.begun(domain)),
                Err(closed) => CallAdmission::Rejected(closed),
            },
            BreakerPhase::Shut(cause, wait) => CallAdmission::Rejected(Rejected {
                by: cause.into(),
                wait,
            }),
            BreakerPhase::Probing(cause) => match self.probe {
                Probe::Free => self.take_probe(cause, domain),
                Probe::Theirs(until) if until <= Instant::now() => self.take_probe(cause, domain),
                Probe::Ours | Probe::Theirs(_) => CallAdmission::Rejected(probing(cause)),
            },
        };
        if !matches!(step, CallAdmission::Rejected(_)) {
            self.under_way += 1;
        }
        step
    }

    /// Takes a call from what the provider throttles.
    fn take(&mut self, domain: Option<&str>) -> Result<(), Rejected> {
        let now = Instant::now();
        let mut of_domain = domain.and_then(|domain| self.domains.get_mut(domain));
        let mut taken = Ok(());
        if let Some(throttle) = &mut of_domain {
            taken = throttle.take(now);
        }
        if taken.is_ok() {
            taken = self.throttle.take(now);
            if let (Err(_), Some(throttle)) = (taken, of_domain) {
                throttle.give_back();
            }
        }
        taken.map_err(|wait| Rejected {
            by: RejectedBy::Throttled,
            wait,
        })
    }

    fn begun(&self, domain: Option<&str>) -> CallStart {
        let of_domain = domain.and_then(|domain| self.domains.get(domain));
        let falls = of_domain.map_or(0, Throttle::falls);
        CallStart {
            version: self.standing.version,
            falls: (self.throttle.falls(), falls),
        }
    }

    fn take_probe(&mut self, cause: Cause, domain: Option<&str>) -> CallAdmission {
        self.probe = Probe::Ours;
        CallAdmission::Probe(self.begun(domain), cause)
    }

    /// Ends a call; its probe is free again if it was one.
    pub(super) fn leave(&mut self, is_probe: bool) {
        self.under_way = self.under_way.saturating_sub(1);
        if is_probe && self.probe == Probe::Ours {
            self.probe = Probe::Free;
        }
    }

    /// Another worker's call is the probe.
    pub(super) fn probe_is_theirs(&mut self, cause: Cause) -> Rejected {
        self.probe = Probe::Theirs(Instant::now() + PROBE_KNOWN);
        probing(cause)
    }

    /// Calls of this process that are under way.
    pub(super) fn under_way(&self) -> u32 {
        self.under_way
    }

    /// Refuses a call for the sake of the rate that the account may have.
    pub(super) fn refuse_by_rate(&mut self, soonest: Duration, apart: Duration) -> Rejected {
        Rejected {
            by: RejectedBy::Rate,
            wait: self.refused_by_rate.wait(soonest, apart, Instant::now()),
        }
    }

    /// Refuses a call since as many are under way as may be, which end `apart`.
    pub(super) fn refuse_by_concurrency(&mut self, apart: Duration) -> Rejected {
        let refused = &mut self.refused_by_concurrency;
        Rejected {
            by: RejectedBy::Concurrency,
            wait: refused.wait(apart, apart, Instant::now()),
        }
    }

    /// Takes note of what came of a call. Says whether the standing changed.
    pub(super) fn note(
        &mut self,
        account: ProviderAccountId,
        ended: CallEnd<'_>,
        now: Timestamp,
        fraction: f64,
    ) -> bool {
        let CallEnd {
            begun,
            is_probe,
            verdict,
            ..
        } = ended;
        self.note_pace(account, ended);
        // A call that began before the last change says nothing of what is since.
        let is_current = begun.version == self.standing.version;
        if !is_current && verdict.is_unusable() {
            return false;
        }
        if is_probe && is_current {
            let next = self.standing.after_probe(verdict, now, fraction);
            self.change(account, next, now);
            return true;
        }
        if is_current {
            self.window.add(verdict, now);
            self.uncounted.add(verdict);
        }
        let has_tripped = is_current && self.window.counts(now).trip();
        let next = self
            .standing
            .after_call(verdict, has_tripped, now, fraction);
        let Some(next) = next else {
            return false;
        };
        self.change(account, next, now);
        true
    }

    /// Takes note of how fast the provider takes calls.
    fn note_pace(&mut self, account: ProviderAccountId, ended: CallEnd<'_>) {
        let is_throttled = match ended.verdict {
            Sample::Success => false,
            Sample::Throttled { retry_after: None } => true,
            // A named pause says it all, and what failed says nothing of it.
            Sample::Throttled { .. } | Sample::Failure { .. } | Sample::Unusable { .. } => {
                return;
            }
        };
        let now = Instant::now();
        let (of_account, of_domain) = ended.begun.falls;
        let mut is_accounts = true;
        if let Some(domain) = ended.domain {
            self.note_domain(domain, is_throttled, of_domain, now);
            if is_throttled {
                // As long as mail to one domain alone is throttled, that is its server's.
                let last = self.throttled.replace(domain.to_owned());
                is_accounts = last.is_some_and(|last| last != domain);
            }
        }
        if !is_accounts {
            return;
        }
        let was_free = self.throttle.is_free();
        self.throttle
            .note(is_throttled, of_account, self.least, now);
        match (was_free, self.throttle.is_free()) {
            (true, false) => {
                info!(provider.account = %account, "The provider of {account} throttles; it gets fewer calls");
            }
            (false, true) => {
                info!(provider.account = %account, "The provider of {account} throttles no more");
            }
            (true, true) | (false, false) => {}
        }
    }

    fn note_domain(&mut self, domain: &str, is_throttled: bool, falls: u64, now: Instant) {
        if is_throttled && !self.domains.contains_key(domain) {
            if self.domains.len() >= DOMAINS_MAX {
                self.domains.retain(|_, throttle| !throttle.is_free());
            }
            if self.domains.len() < DOMAINS_MAX {
                self.domains.insert(domain.to_owned(), Throttle::default());
            }
        }
        if let Some(throttle) = self.domains.get_mut(domain) {
            throttle.note(is_throttled, falls, self.least, now);
            if throttle.is_over() {
                self.domains.remove(domain);
            }
        }
    }

    /// A change that this process makes.
    fn change(&mut self, account: ProviderAccountId, next: BreakerState, now: Timestamp) {
        let next = next.under(self.revision);
        match next.position(now) {
            BreakerPhase::Shut(Cause::Circuit, wait) => {
                warn!(provider.account = %account, ?wait, "Too many calls to {account} fail; it is left alone");
            }
            BreakerPhase::Shut(Cause::Asked, wait) => {
                info!(provider.account = %account, ?wait, "The provider of {account} asks for a pause");
            }
            BreakerPhase::Shut(Cause::Unusable, wait) => {
                debug!(provider.account = %account, ?wait, "{account} cannot send; it is left alone");
            }
            BreakerPhase::Passing => {
                info!(provider.account = %account, "Calls to {account} pass again")
            }
            BreakerPhase::Probing(_) => {}
        }
        self.set(next, now);
        self.is_untold = true;
    }

    fn set(&mut self, standing: BreakerState, now: Timestamp) {
        let is_asked = |standing: BreakerState| {
            matches!(standing.position(now), BreakerPhase::Shut(Cause::Asked, _))
        };
        // A pause that grows longer is still the same one.
        if is_asked(standing) && !is_asked(self.standing) {
            self.throttle.pause(self.least, Instant::now());
        }
        self.standing = standing;
        self.is_untold = false;
        self.window.clear();
        self.uncounted = SampleCounts::default();
    }
}

fn probing(cause: Cause) -> Rejected {
    Rejected {
        by: cause.into(),
        wait: PROBE_WAIT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    const ACCOUNT: &str = "00000000-0000-7000-8000-000000000001";

    fn named(seconds: u64) -> Sample {
        let retry_after = Some(Duration::from_secs(seconds));
        Sample::Throttled { retry_after }
    }

    #[test]
    fn a_pause_that_calls_under_way_make_longer_halves_the_rate_once() {
        let account: ProviderAccountId = ACCOUNT.parse().unwrap();
        let now = Clock::system().now();
        let mut board = AccountStates::default();
        let desk = board.desk(account);
        let begun = desk.begun(None);
        for (seconds, has_changed) in [(30, true), (30, false), (31, false), (40, true), (60, true)]
        {
            let ended = CallEnd {
                begun,
                domain: None,
                is_probe: false,
                verdict: named(seconds),
            };
            let changed = desk.note(account, ended, now, 0.5);
            assert_eq!(changed, has_changed, "{seconds}");
        }
        assert_eq!(desk.throttle.falls(), 1);
    }

    #[test]
    fn who_waits_for_one_bound_does_not_wait_for_another() {
        let account: ProviderAccountId = ACCOUNT.parse().unwrap();
        let mut board = AccountStates::default();
        let desk = board.desk(account);
        let second = Duration::from_secs(1);
        for _ in 0..20 {
            desk.refuse_by_rate(second, second);
        }
        let closed = desk.refuse_by_concurrency(second / 10);
        assert_eq!(closed.by, RejectedBy::Concurrency);
        assert!(closed.wait <= second, "{closed:?}");
        desk.throttle.pause(LEAST_PER_SECOND, Instant::now());
        while desk.take(None).is_ok() {}
        let closed = desk.take(None).unwrap_err();
        assert!(closed.wait <= second, "{closed:?}");
    }
}
