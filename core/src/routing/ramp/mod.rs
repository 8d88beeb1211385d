//! Ramps: the daily cap of a target that begins small and grows by steps, so that mailbox providers
//! get to know a new account or domain.
//!
//! A [`Ramp`] is what a rule says, a [`RampProgress`] how far it is. It grows once in so many days of
//! UTC, as long as the bounce and complaint rates of the account, for all its mail, are within the
//! bounds of the rule. Beyond a bound it is held; beyond twice a bound its cap is halved. The
//! scheduler decides ([`steps`]); if none runs, caps stay as they are. What the cap of a day is
//! reaches workers with the snapshot, and [`super::target_usage`] keeps it like any other.

pub mod rates;
pub mod steps;
pub mod store;

use std::collections::HashMap;

use chrono::{Days, NaiveDate};
use serde::{Deserialize, Serialize};

use super::rule::{RoutingRule, wire_words};
use super::targets::{CAP_MAX, Target};
use crate::clock::Timestamp;
use crate::db::PgConnection;
use crate::fault::Fault;
use crate::ids::ProviderAccountId;

/// The lowest factor of a ramp.
pub const FACTOR_MIN: f64 = 1.01;
/// The highest factor of a ramp.
pub const FACTOR_MAX: f64 = 10.0;
/// The most days between two steps.
pub const EVERY_DAYS_MAX: u32 = 30;
/// Far below one recipient and far above the error of a product such as 100 × 1.1 × 1.1.
const ROUNDING: f64 = 1e-6;

/// How the daily cap of a target grows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ramp {
    /// The recipients of the first day, 1 to [`CAP_MAX`].
    pub start: u32,
    /// What a step multiplies the cap by, [`FACTOR_MIN`] to [`FACTOR_MAX`].
    pub factor: f64,
    /// The days from one step to the next, 1 to [`EVERY_DAYS_MAX`].
    pub every_days: u32,
    /// The first day, in UTC. `None` only in a request: today, or the day that the ramp has.
    pub from: Option<NaiveDate>,
}

impl Ramp {
    /// The cap after so many steps from a base.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is positive and at most CAP_MAX; recipients are whole"
    )]
    fn cap_after(self, base: u32, steps: u32) -> u32 {
        let steps = i32::try_from(steps).unwrap_or(i32::MAX);
        let grown = f64::from(base) * self.factor.powi(steps) + ROUNDING;
        grown.min(f64::from(CAP_MAX)) as u32
    }

    /// The day of the step after one.
    fn day_after(self, stepped_on: NaiveDate) -> NaiveDate {
        let days = Days::new(self.every_days.into());
        stepped_on.checked_add_days(days).unwrap_or(NaiveDate::MAX)
    }

    fn is_same_but_for_its_first_day(self, other: Self) -> bool {
        Self {
            from: other.from,
            ..self
        } == other
    }
}

/// The bounds within which the ramps of a rule grow, as parts of the mail, above 0 and up to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RampBounds {
    /// Of bounces among sent mails.
    pub bounce_rate: f64,
    /// Of complaints among delivered mails.
    pub complaint_rate: f64,
}

impl Default for RampBounds {
    /// Amazon SES puts an account under review from 5 % of bounces and 0.1 % of complaints on
    /// (docs.aws.amazon.com/ses, "Reputation metrics messages"); Google and Yahoo ask for spam rates
    /// below 0.1 % (support.google.com/a/answer/81126, senders.yahooinc.com/best-practices).
    fn default() -> Self {
        Self {
            bounce_rate: 0.05,
            complaint_rate: 0.001,
        }
    }
}

/// Changes of the bounds; `None` keeps one.
#[derive(Debug, Clone, Copy, Default)]
pub struct RampBoundsChange {
    pub bounce_rate: Option<f64>,
    pub complaint_rate: Option<f64>,
}

impl RampBoundsChange {
    /// The bounds with the changes.
    #[must_use]
    pub fn apply(self, bounds: RampBounds) -> RampBounds {
        RampBounds {
            bounce_rate: self.bounce_rate.unwrap_or(bounds.bounce_rate),
            complaint_rate: self.complaint_rate.unwrap_or(bounds.complaint_rate),
        }
    }
}

/// How far a ramp is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RampState {
    /// Its first day is to come: the target takes nothing.
    NotBegun,
    Growing,
    /// A rate has passed its bound: the cap does not grow.
    Held,
    /// It has reached the daily cap of the target, or [`CAP_MAX`], and limits no more.
    Finished,
}

wire_words!(RampState: NotBegun = "notBegun", Growing = "growing", Held = "held", Finished = "finished");

/// What routing needs of a ramp's progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RampStage {
    pub cap: u32,
    pub state: RampState,
    pub stepped_on: NaiveDate,
}

impl RampStage {
    /// The day of the next step, or of the first; `None` while there is none in sight.
    #[must_use]
    pub fn next_step_on(self, ramp: Ramp) -> Option<NaiveDate> {
        match self.state {
            RampState::NotBegun => Some(self.stepped_on),
            RampState::Growing => Some(ramp.day_after(self.stepped_on)),
            RampState::Held | RampState::Finished => None,
        }
    }
}

/// How far a ramp is, as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RampProgress {
    /// The cap is this, multiplied by the factor for each step.
    base: u32,
    steps: u32,
    pub cap: u32,
    pub state: RampState,
    /// Since when it is in this state.
    pub since: Timestamp,
    /// The day of the last step or halving; before the first day, that day.
    pub stepped_on: NaiveDate,
    halved_at: Option<Timestamp>,
}

impl RampProgress {
    /// A ramp that is new, with the steps that it would have made since its first day.
    fn new(ramp: Ramp, goal: u32, now: Timestamp) -> Self {
        let today = now.date_naive();
        let from = ramp.from.unwrap_or(today);
        let days = u32::try_from((today - from).num_days()).unwrap_or_default();
        let steps = days / ramp.every_days.max(1);
        let passed = Days::new(u64::from(steps) * u64::from(ramp.every_days));
        let mut new = Self {
            base: ramp.start,
            steps,
            cap: 0,
            state: RampState::Growing,
            since: now,
            stepped_on: from.checked_add_days(passed).unwrap_or(today),
            halved_at: None,
        };
        if from > today {
            new.state = RampState::NotBegun;
        } else {
            new.set_cap(ramp, goal);
        }
        new
    }

    /// Reckons the cap from base and steps; one that reaches the goal finishes the ramp.
    fn set_cap(&mut self, ramp: Ramp, goal: u32) {
        self.cap = ramp.cap_after(self.base, self.steps);
        if self.cap >= goal {
            self.cap = goal;
            self.state = RampState::Finished;
        }
    }

    /// The same under a goal that may be another. A finished ramp that is below it goes on: an
    /// account is not given at once what it has never sent.
    fn under(mut self, ramp: Ramp, goal: u32, now: Timestamp) -> Self {
        let reached = ramp.cap_after(self.base, self.steps);
        if self.state == RampState::Finished && reached < goal {
            self.cap = reached;
            self.state = RampState::Growing;
            self.since = now;
            self.stepped_on = now.date_naive();
        }
        self
    }

    /// What routing needs of it.
    #[must_use]
    pub fn stage(&self) -> RampStage {
        RampStage {
            cap: self.cap,
            state: self.state,
            stepped_on: self.stepped_on,
        }
    }
}

/// The cap at which the ramp of a target is finished.
fn goal(target: &Target) -> u32 {
    target.daily_cap.unwrap_or(CAP_MAX)
}

/// Gives ramps without a first day theirs: the one that the target's ramp has if it is the same,
/// else today.
pub(super) fn set_first_days(targets: &mut [Target], before: &[Target], today: NaiveDate) {
    for target in targets {
        let Some(ramp) = &mut target.ramp else {
            continue;
        };
        let mut before = before.iter();
        let before = before.find(|one| one.account_id == target.account_id);
        let before = before.and_then(|one| one.ramp);
        let kept = before.filter(|before| ramp.is_same_but_for_its_first_day(*before));
        ramp.from = ramp
            .from
            .or(kept.and_then(|kept| kept.from))
            .or(Some(today));
    }
}

/// Stores how far the ramps of a rule are that was created or changed, in the transaction of the
/// change: those that are new or were changed begin anew, those of targets without a ramp go.
pub(super) async fn write(
    connection: &mut PgConnection,
    rule: &RoutingRule,
    before: &[Target],
    now: Timestamp,
) -> Result<(), Fault> {
    let targets = &rule.terms.targets;
    if targets.iter().chain(before).all(|one| one.ramp.is_none()) {
        return Ok(());
    }
    let stored = store::lock(&mut *connection, rule.organization_id, rule.id).await?;
    let stored: HashMap<ProviderAccountId, RampProgress> = stored.into_iter().collect();
    let is_kept = |target: &Target| {
        let mut before = before.iter();
        before.any(|one| one.account_id == target.account_id && one.ramp == target.ramp)
    };
    let mut named = Vec::new();
    for target in targets {
        let Some(ramp) = target.ramp else {
            continue;
        };
        let (id, goal) = (target.account_id, goal(target));
        named.push(id);
        let stored = stored.get(&id).copied();
        match stored.filter(|_| is_kept(target)) {
            Some(progress) => {
                let under = progress.under(ramp, goal, now);
                if under != progress {
                    store::change(&mut *connection, rule, id, &under).await?;
                }
            }
            None => {
                let new = RampProgress::new(ramp, goal, now);
                store::replace(&mut *connection, rule, id, &new).await?;
            }
        }
    }
    store::delete_others(connection, rule.organization_id, rule.id, &named).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(day: &str) -> Timestamp {
        format!("{day}T10:00:00Z").parse().expect("a constant time")
    }

    fn ramp(start: u32, factor: f64, every_days: u32, from: &str) -> Ramp {
        Ramp {
            start,
            factor,
            every_days,
            from: Some(from.parse().expect("a constant date")),
        }
    }

    #[test]
    fn the_cap_is_the_whole_part_of_the_exact_product() {
        // Factors in hundredths, reckoned in whole numbers.
        for (start, hundredths, steps_max) in [
            (1_u32, 101_u32, 18_u32),
            (100, 110, 15),
            (50, 150, 12),
            (7, 133, 12),
            (1_000, 200, 10),
            (3, 1_000, 5),
        ] {
            let ramp = ramp(start, f64::from(hundredths) / 100.0, 1, "2026-03-01");
            for steps in 0..=steps_max {
                let numerator = u128::from(start) * u128::from(hundredths).pow(steps);
                let exact = numerator / 100_u128.pow(steps);
                let cap = ramp.cap_after(start, steps);
                assert_eq!(
                    u128::from(cap),
                    exact.min(CAP_MAX.into()),
                    "{ramp:?} {steps}"
                );
            }
        }
        let steep = ramp(CAP_MAX, 10.0, 1, "2026-03-01");
        assert_eq!(steep.cap_after(CAP_MAX, u32::MAX), CAP_MAX);
    }

    #[test]
    fn a_new_ramp_is_where_it_would_be_by_its_first_day() {
        let ramp = ramp(100, 2.0, 3, "2026-03-10");
        let new = |day: &str, goal| RampProgress::new(ramp, goal, at(day));
        let before = new("2026-03-09", 1_000);
        assert_eq!((before.cap, before.state), (0, RampState::NotBegun));
        assert_eq!(before.stage().next_step_on(ramp), ramp.from);
        for (day, cap, next) in [
            ("2026-03-10", 100, "2026-03-13"),
            ("2026-03-12", 100, "2026-03-13"),
            ("2026-03-13", 200, "2026-03-16"),
            ("2026-03-18", 400, "2026-03-19"),
        ] {
            let progress = new(day, 1_000);
            assert_eq!((progress.cap, progress.state), (cap, RampState::Growing));
            let next = Some(next.parse().unwrap());
            assert_eq!(progress.stage().next_step_on(ramp), next, "{day}");
        }
        let finished = new("2026-03-22", 1_000);
        assert_eq!((finished.cap, finished.state), (1_000, RampState::Finished));
        assert_eq!(finished.stage().next_step_on(ramp), None);
        assert_eq!(new("2526-03-22", CAP_MAX).cap, CAP_MAX);
    }

    #[test]
    fn a_finished_ramp_goes_on_under_a_higher_goal() {
        let ramp = ramp(100, 3.0, 1, "2026-03-01");
        let finished = RampProgress::new(ramp, 500, at("2026-03-03"));
        assert_eq!((finished.cap, finished.state), (500, RampState::Finished));
        let now = at("2026-05-01");
        assert_eq!(finished.under(ramp, 500, now), finished);
        assert_eq!(
            finished.under(ramp, 900, now),
            finished,
            "it has reached 900"
        );
        let higher = finished.under(ramp, 5_000, now);
        assert_eq!((higher.cap, higher.state), (900, RampState::Growing));
        assert_eq!(higher.stepped_on, now.date_naive());
    }
}
