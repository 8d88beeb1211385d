//! The steps of ramps: what the scheduler makes of each by the day and by the rates of its account.
//! A step, its audit record and its place in the history are one transaction, and one of several
//! schedulers makes it.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::rates::{self, AccountCounts, Verdict};
use super::store::{self, DueRamp};
use super::{Ramp, RampProgress, RampState, goal};
use crate::audit::{self, AuditChange, Origin};
use crate::clock::{Clock, Timestamp};
use crate::db::{self, OrFault, PgPool};
use crate::fault::Fault;
use crate::ids::Ids;
use crate::routing::rule::wire_words;

/// Ramps that are read at once.
const PAGE: i64 = 200;
/// The most changes of a ramp in one run: one that was held may go on and grow.
const CHANGES_MAX: usize = 4;
/// A cap is halved once in this time: as long as the mails that caused it are looked at.
const HALVED_EVERY: TimeDelta = TimeDelta::hours(24);

/// What happened to a ramp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RampAction {
    /// Its first day came.
    Begin,
    /// The cap grew.
    Step,
    /// A rate passed its bound.
    Hold,
    /// A rate passed twice its bound: the cap was halved, and the ramp is held.
    Halve,
    /// The rates are within their bounds again.
    Resume,
    /// The cap reached the daily cap of the target.
    Finish,
}

wire_words!(
    RampAction: Begin = "begin", Step = "step", Hold = "hold", Halve = "halve", Resume = "resume", Finish = "finish"
);

impl RampAction {
    /// The action in the audit log.
    fn audit_action(self) -> &'static str {
        match self {
            Self::Begin => "routing_rule.ramp_begun",
            Self::Step => "routing_rule.ramp_stepped",
            Self::Hold => "routing_rule.ramp_held",
            Self::Halve => "routing_rule.ramp_halved",
            Self::Resume => "routing_rule.ramp_resumed",
            Self::Finish => "routing_rule.ramp_finished",
        }
    }
}

/// A change of a ramp, as its history has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RampStep {
    pub at: Timestamp,
    pub action: RampAction,
    pub cap_before: u32,
    pub cap_after: u32,
    /// The rates of the account then; `None` if they were not known.
    pub bounce_rate: Option<f64>,
    pub complaint_rate: Option<f64>,
}

/// Makes the steps that are due, of all organizations.
///
/// # Errors
/// A fault if Postgres is unavailable.
pub async fn make_due(pool: &PgPool, clock: &Clock, ids: &Ids) -> Result<(), Fault> {
    const DOING: &str = "read the ramps of targets";
    let mut after = (Uuid::nil(), Uuid::nil());
    loop {
        let now = clock.now();
        let mut connection = pool.acquire().await.or_fault(DOING)?;
        let due = store::list_due(&mut connection, now.date_naive(), after, PAGE).await?;
        let Some(last) = due.last() else {
            return Ok(());
        };
        after = (last.rule_id.0, last.account_id.0);
        let accounts = due.iter().map(|due| (due.organization_id, due.account_id));
        let accounts: Vec<_> = accounts.collect();
        let counts = rates::read(&mut connection, &accounts, now).await?;
        drop(connection);
        for (due, counts) in due.iter().zip(counts) {
            step(pool, ids, due, (counts, now)).await?;
        }
    }
}

/// Makes the steps of one ramp, unless another scheduler was faster or the rule was changed.
async fn step(
    pool: &PgPool,
    ids: &Ids,
    due: &DueRamp,
    (counts, now): (AccountCounts, Timestamp),
) -> Result<(), Fault> {
    const DOING: &str = "make the step of a ramp";
    // A program that knows no ramps may have taken it out of the rule.
    let Some((target, ramp)) = due.target() else {
        return Ok(());
    };
    let mut progress = due.progress;
    let mut steps: Vec<RampStep> = Vec::new();
    while steps.len() < CHANGES_MAX {
        let before = progress.cap;
        let verdict = counts.verdict(due.bounds);
        let Some(action) = progress.advance(ramp, goal(target), verdict, now) else {
            break;
        };
        steps.push(RampStep {
            at: now,
            action,
            cap_before: before,
            cap_after: progress.cap,
            bounce_rate: counts.bounce_rate(),
            complaint_rate: counts.complaint_rate(),
        });
    }
    if steps.is_empty() {
        return Ok(());
    }
    let changes: Vec<AuditChange> = steps.iter().map(|step| record(due, step)).collect();
    steps.reverse();
    let mut transaction = db::begin(pool, DOING).await?;
    if !store::advance(&mut transaction, due, &progress, &steps).await? {
        return Ok(());
    }
    let origin = Origin::system(ids.next::<Uuid>());
    let organization_id = due.organization_id;
    audit::store::insert_all(
        &mut transaction,
        organization_id,
        &origin,
        &changes,
        ids,
        now,
    )
    .await?;
    transaction.commit().await.or_fault(DOING)
}

fn record(due: &DueRamp, step: &RampStep) -> AuditChange {
    AuditChange::new(step.action.audit_action(), due.rule_id).with(json!({
        "providerAccountId": due.account_id,
        "capBefore": step.cap_before,
        "capAfter": step.cap_after,
        "bounceRate": step.bounce_rate,
        "complaintRate": step.complaint_rate,
    }))
}

impl RampProgress {
    /// The next change of a ramp; `None` if there is none now. A ramp that was missed for some days,
    /// because no scheduler ran or because it was held, makes one step and no more.
    fn advance(
        &mut self,
        ramp: Ramp,
        goal: u32,
        verdict: Verdict,
        now: Timestamp,
    ) -> Option<RampAction> {
        let today = now.date_naive();
        match self.state {
            RampState::Finished => return None,
            RampState::NotBegun if today < self.stepped_on => return None,
            RampState::NotBegun => {
                self.enter(RampState::Growing, now);
                self.stepped_on = today;
                self.set_cap(ramp, goal);
                return Some(self.finished_or(RampAction::Begin));
            }
            RampState::Growing | RampState::Held => {}
        }
        // The daily cap may have been lowered.
        if self.cap >= goal {
            self.enter(RampState::Finished, now);
            self.cap = goal;
            return Some(RampAction::Finish);
        }
        match (verdict, self.state) {
            (Verdict::FarBeyond, _) if self.may_be_halved(ramp, now) => {
                self.base = (self.cap / 2).max(ramp.start);
                self.steps = 0;
                self.cap = self.base;
                self.halved_at = Some(now);
                self.stepped_on = today;
                self.enter(RampState::Held, now);
                Some(RampAction::Halve)
            }
            (Verdict::Beyond | Verdict::FarBeyond, RampState::Growing) => {
                self.enter(RampState::Held, now);
                Some(RampAction::Hold)
            }
            // The earliest on the next day, so that a rate close to its bound makes no record every
            // minute.
            (Verdict::Within, RampState::Held) if today > self.since.date_naive() => {
                self.enter(RampState::Growing, now);
                Some(RampAction::Resume)
            }
            (Verdict::Within, RampState::Growing) if today >= ramp.day_after(self.stepped_on) => {
                self.steps += 1;
                self.stepped_on = today;
                self.set_cap(ramp, goal);
                if self.state == RampState::Finished {
                    self.since = now;
                }
                Some(self.finished_or(RampAction::Step))
            }
            (Verdict::Within | Verdict::Beyond | Verdict::FarBeyond, _) => None,
        }
    }

    fn may_be_halved(&self, ramp: Ramp, now: Timestamp) -> bool {
        let is_over = |halved_at| now - halved_at >= HALVED_EVERY;
        self.cap > ramp.start && self.halved_at.is_none_or(is_over)
    }

    fn enter(&mut self, state: RampState, now: Timestamp) {
        if self.state != state {
            self.since = now;
        }
        self.state = state;
    }

    fn finished_or(&self, action: RampAction) -> RampAction {
        match self.state {
            RampState::Finished => RampAction::Finish,
            RampState::NotBegun | RampState::Growing | RampState::Held => action,
        }
    }
}
