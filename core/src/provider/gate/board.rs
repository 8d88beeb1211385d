//! What this process knows of the accounts that it uses lately. No I/O.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{info, warn};

use super::circuit::{Cause, Counts, Position, Standing, Verdict, Window};
use super::pace::Refused;
use super::shared::Changed;
use super::{Closed, ClosedBy};
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

/// All accounts that this process knows of.
#[derive(Default)]
pub(super) struct Board {
    desks: HashMap<ProviderAccountId, Desk>,
}

/// One account.
pub(super) struct Desk {
    standing: Standing,
    /// Whether Redis is yet to be told of it.
    is_untold: bool,
    /// Whether Redis was asked how it stands.
    is_known: bool,
    window: Window,
    /// Calls that Redis is yet to count.
    uncounted: Counts,
    probe: Probe,
    /// Calls of this process that are under way.
    under_way: u32,
    refused: Refused,
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
pub(super) enum Step {
    /// It may, under the standing of this number.
    Pass(u64),
    /// It may be the probe, if no other worker's call is.
    Probe(u64, Cause),
    /// It may not.
    Closed(Closed),
}

/// A call that ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    /// The number of the standing that it began under.
    pub(super) version: u64,
    /// Whether it was the probe.
    pub(super) is_probe: bool,
    /// What it says.
    pub(super) verdict: Verdict,
}

impl Board {
    /// What is known of an account.
    pub(super) fn desk(&mut self, account: ProviderAccountId) -> &mut Desk {
        let desk = self.desks.entry(account).or_insert_with(|| Desk {
            standing: Standing::default(),
            is_untold: false,
            is_known: false,
            window: Window::default(),
            uncounted: Counts::default(),
            probe: Probe::Free,
            under_way: 0,
            refused: Refused::default(),
            used: Instant::now(),
        });
        desk.used = Instant::now();
        desk
    }

    /// Goes by a standing that Redis holds.
    pub(super) fn adopt(&mut self, account: ProviderAccountId, standing: Option<Standing>) {
        let Some(desk) = self.desks.get_mut(&account) else {
            return;
        };
        desk.is_known = true;
        let own = desk.standing;
        let theirs = standing.unwrap_or_default();
        // Redis was emptied where it knows less than was told before. What is closed
        // stays closed then, and an open gate follows whoever began anew.
        let is_lost = theirs.version < own.version && !desk.is_untold;
        if is_lost && own.closed_by.is_some() {
            desk.is_untold = true;
        } else if theirs.version > own.version || is_lost {
            desk.set(theirs);
        } else if theirs.version == own.version {
            desk.standing = theirs;
            desk.is_untold = false;
        }
    }

    /// Marks a change as told, and goes by what counts now.
    pub(super) fn told(
        &mut self,
        account: ProviderAccountId,
        told: Standing,
        counts: Option<Standing>,
    ) {
        if let Some(desk) = self.desks.get_mut(&account) {
            desk.is_untold &= desk.standing.version != told.version;
        }
        self.adopt(account, counts);
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
    ) -> Option<(ProviderAccountId, u64, Counts)> {
        let desk = self.desks.get_mut(&account)?;
        let counts = std::mem::take(&mut desk.uncounted);
        let is_failing = is_counted || desk.window.counts(now).failures > 0;
        let wanted = is_failing && counts != Counts::default() && !desk.is_untold;
        wanted.then_some((account, desk.standing.version, counts))
    }

    /// Forgets calls that Redis was not there to count: they would be old when it is.
    pub(super) fn forget_uncounted(&mut self) {
        for desk in self.desks.values_mut() {
            desk.uncounted = Counts::default();
        }
    }

    /// Opens the circuit where all workers' calls, counted under a standing, ask for
    /// it.
    pub(super) fn judge(
        &mut self,
        account: ProviderAccountId,
        version: u64,
        sums: Counts,
        now: Timestamp,
        fraction: f64,
    ) {
        let Some(desk) = self.desks.get_mut(&account) else {
            return;
        };
        let standing = desk.standing;
        if sums.trip() && standing.version == version && standing.closed_by.is_none() {
            desk.change(account, standing.opened(None, now, fraction), now);
        }
    }
}

impl Desk {
    /// Whether the account was never looked at in Redis.
    pub(super) fn is_new(&self) -> bool {
        !self.is_known
    }

    /// Lets a call begin, which must be ended by [`Desk::leave`].
    pub(super) fn ask(&mut self, now: Timestamp) -> Step {
        let version = self.standing.version;
        let step = match self.standing.position(now) {
            Position::Passing => Step::Pass(version),
            Position::Shut(cause, wait) => Step::Closed(Closed {
                by: cause.into(),
                wait,
            }),
            Position::Probing(cause) => match self.probe {
                Probe::Free => self.take_probe(cause),
                Probe::Theirs(until) if until <= Instant::now() => self.take_probe(cause),
                Probe::Ours | Probe::Theirs(_) => Step::Closed(probing(cause)),
            },
        };
        if !matches!(step, Step::Closed(_)) {
            self.under_way += 1;
        }
        step
    }

    fn take_probe(&mut self, cause: Cause) -> Step {
        self.probe = Probe::Ours;
        Step::Probe(self.standing.version, cause)
    }

    /// Ends a call; its probe is free again if it was one.
    pub(super) fn leave(&mut self, is_probe: bool) {
        self.under_way = self.under_way.saturating_sub(1);
        if is_probe && self.probe == Probe::Ours {
            self.probe = Probe::Free;
        }
    }

    /// Another worker's call is the probe.
    pub(super) fn probe_is_theirs(&mut self, cause: Cause) -> Closed {
        self.probe = Probe::Theirs(Instant::now() + PROBE_KNOWN);
        probing(cause)
    }

    /// Calls of this process that are under way.
    pub(super) fn under_way(&self) -> u32 {
        self.under_way
    }

    /// Refuses a call for the sake of the pace.
    pub(super) fn refuse(&mut self, by: ClosedBy, soonest: Duration, apart: Duration) -> Closed {
        let wait = self.refused.wait(soonest, apart, Instant::now());
        Closed { by, wait }
    }

    /// Takes note of what came of a call. Says whether the standing changed.
    pub(super) fn note(
        &mut self,
        account: ProviderAccountId,
        ended: Ended,
        now: Timestamp,
        fraction: f64,
    ) -> bool {
        let Ended {
            version,
            is_probe,
            verdict,
        } = ended;
        // A call that began before the last change says nothing of what is since.
        let is_current = version == self.standing.version;
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

    /// A change that this process makes.
    fn change(&mut self, account: ProviderAccountId, next: Standing, now: Timestamp) {
        match next.position(now) {
            Position::Shut(Cause::Circuit, wait) => {
                warn!(provider.account = %account, ?wait, "Too many calls to {account} fail; it is left alone");
            }
            Position::Shut(Cause::Asked, wait) => {
                info!(provider.account = %account, ?wait, "The provider of {account} asks for a pause");
            }
            Position::Passing => {
                info!(provider.account = %account, "Calls to {account} pass again")
            }
            Position::Probing(_) => {}
        }
        self.set(next);
        self.is_untold = true;
    }

    fn set(&mut self, standing: Standing) {
        self.standing = standing;
        self.is_untold = false;
        self.window.clear();
        self.uncounted = Counts::default();
    }
}

fn probing(cause: Cause) -> Closed {
    Closed {
        by: cause.into(),
        wait: PROBE_WAIT,
    }
}
