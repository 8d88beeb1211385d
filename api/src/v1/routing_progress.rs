//! How far the targets of a routing rule are: what they used of their caps, and how their ramps do.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::{Object, OpenApi};
use uuid::Uuid;
use waypost_core::db::OrFault;
use waypost_core::ids::RoutingRuleId;
use waypost_core::routing;
use waypost_core::routing::ramp::rates::{self, AccountCounts};
use waypost_core::routing::ramp::steps::RampStep;
use waypost_core::routing::ramp::store::RampRecord;
use waypost_core::routing::ramp::{self, Ramp};
use waypost_core::routing::target_usage::{self, TargetUsage, UsageWindow};
use waypost_core::routing::targets::Target;

use super::routing_rules::RULE;
use crate::context::Context;
use crate::error::Failure;
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::path_id::PathId;
use crate::response::{Data, Nullable, Time};
use crate::v1::Section;

pub(crate) struct RoutingProgressApi {
    pub(crate) context: Arc<Context>,
}

/// How far a routing rule is.
#[derive(Debug, Object)]
struct RoutingProgress {
    /// The targets of the rule in their order; empty if one account sends all its messages.
    targets: Vec<RoutingTargetProgress>,
}

/// How far a target of a routing rule is.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct RoutingTargetProgress {
    provider_account_id: Uuid,
    /// 1 to 1,000. Each account gets its weight's part of the messages.
    weight: u32,
    /// How many recipients of the rule's messages it had on this day in UTC. Counted if it
    /// has a daily cap, and a little ahead: workers reserve several at once.
    used_today: u32,
    /// The most recipients of this day, by `dailyCap` and by the ramp; null for no cap.
    daily_cap: Nullable<u32>,
    /// How many recipients of the rule's messages it had in this hour. Counted if it has an
    /// `hourlyCap`, and a little ahead.
    used_this_hour: u32,
    /// The most recipients of an hour; null for no cap.
    hourly_cap: Nullable<u32>,
    /// How far its ramp is; null if it has none.
    ramp: Nullable<RoutingRampProgress>,
}

/// How far the ramp of a target is.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct RoutingRampProgress {
    /// The most recipients of this day by the ramp; 0 before its first day.
    cap: u32,
    /// `notBegun` before its first day; `growing`; `held` while a rate is beyond its bound;
    /// `finished`, and then it limits no more.
    state: String,
    /// Since when it is in this state.
    since: Time,
    /// The day of UTC of the next step, or of the first; null while it is held, and when it is
    /// finished.
    next_step_on: Nullable<String>,
    /// The part of the account's sent mails that bounced, over a day, or over a week if fewer
    /// than 100 were sent in a day; null if fewer than 100 were.
    bounce_rate: Nullable<f64>,
    /// The part of the account's delivered mails that was reported as spam, over the same time;
    /// null as `bounceRate` is.
    complaint_rate: Nullable<f64>,
    /// How many mails the account sent in that time.
    sent: i64,
    /// What happened to the ramp, the newest first, up to 50.
    steps: Vec<RoutingRampStep>,
}

/// Something that happened to a ramp.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct RoutingRampStep {
    at: Time,
    /// `begin`: its first day came. `step`: the cap grew. `hold`: a rate passed its bound.
    /// `halve`: a rate passed twice its bound. `resume`: the rates are within their bounds again.
    /// `finish`: the cap reached that of the target.
    action: String,
    /// The cap of a day before.
    cap_before: u32,
    /// The cap of a day from then on.
    cap_after: u32,
    /// The rate then; null if it was not known.
    bounce_rate: Nullable<f64>,
    /// The rate then; null if it was not known.
    complaint_rate: Nullable<f64>,
}

impl RoutingTargetProgress {
    fn of(target: &Target, usage: &[TargetUsage], ramp: Option<RoutingRampProgress>) -> Self {
        let used = |window| target_usage::used(usage, target.account_id, window);
        Self {
            provider_account_id: target.account_id.0,
            weight: target.weight,
            used_today: used(UsageWindow::Day),
            daily_cap: Nullable(target.daily_cap_now()),
            used_this_hour: used(UsageWindow::Hour),
            hourly_cap: Nullable(target.hourly_cap),
            ramp: Nullable(ramp),
        }
    }
}

impl RoutingRampProgress {
    fn of(ramp: Ramp, record: RampRecord, counts: AccountCounts) -> Self {
        let next = record.stage.next_step_on(ramp);
        Self {
            cap: record.stage.cap,
            state: record.stage.state.as_str().to_owned(),
            since: Time(record.since),
            next_step_on: Nullable(next.map(|day| day.to_string())),
            bounce_rate: Nullable(counts.bounce_rate()),
            complaint_rate: Nullable(counts.complaint_rate()),
            sent: counts.sent,
            steps: record.steps.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<RampStep> for RoutingRampStep {
    fn from(step: RampStep) -> Self {
        Self {
            at: Time(step.at),
            action: step.action.as_str().to_owned(),
            cap_before: step.cap_before,
            cap_after: step.cap_after,
            bounce_rate: Nullable(step.bounce_rate),
            complaint_rate: Nullable(step.complaint_rate),
        }
    }
}

#[OpenApi(tag = "Section::RoutingRules")]
impl RoutingProgressApi {
    /// Get the progress of a routing rule
    ///
    /// Requires the permission `PROVIDERS_READ`. Returns what the targets of the rule used of
    /// their caps, and how far their ramps are.
    #[oai(
        path = "/v1/routing-rules/:id/progress",
        method = "get",
        operation_id = "get_routing_progress"
    )]
    async fn get_routing_progress(
        &self,
        caller: Requires<permission::ProvidersRead>,
        /// The id of the routing rule.
        id: Path<PathId>,
    ) -> Result<Json<Data<RoutingProgress>>, Failure> {
        let caller = caller.authorize()?;
        let id: RoutingRuleId = id.0.of(RULE)?;
        let organization_id = caller.organization_id();
        let doing = "show the progress of a routing rule";
        let mut connection = self.context.pool.acquire().await.or_fault(doing)?;
        let rule = routing::store::find(&mut connection, organization_id, id)
            .await?
            .ok_or(Failure::NotFound(RULE))?;
        let usage = target_usage::store::list(&mut connection, organization_id, id).await?;
        let records = ramp::store::list(&mut connection, organization_id, id).await?;
        let accounts = records.iter().map(|one| (organization_id, one.account_id));
        let accounts: Vec<_> = accounts.collect();
        let now = self.context.clock.now();
        let counts = rates::read(&mut connection, &accounts, now).await?;
        let mut ramps: Vec<(RampRecord, AccountCounts)> = records.into_iter().zip(counts).collect();
        let targets = rule.terms.targets.iter().map(|target| {
            let ramp = target.ramp.and_then(|ramp| {
                let mut indexed = ramps.iter();
                let own = indexed.position(|(one, _)| one.account_id == target.account_id)?;
                let (record, counts) = ramps.swap_remove(own);
                Some(RoutingRampProgress::of(ramp, record, counts))
            });
            RoutingTargetProgress::of(target, &usage, ramp)
        });
        let data = RoutingProgress {
            targets: targets.collect(),
        };
        Ok(Json(Data { data }))
    }
}
