//! What the messages of a past period would have done under other rules.

use poem_openapi::Object;
use poem_openapi::registry::{MetaSchemaRef, Registry};
use poem_openapi::types::Type as _;
use serde_json::Value;
use uuid::Uuid;
use waypost_core::issue::Issue;
use waypost_core::routing::rule::RuleTerms;
use waypost_core::routing::simulation::{
    RuleCount, SimulationPeriod, SimulationResult, TargetCount,
};

use crate::context::Context;
use crate::error::Failure;
use crate::fields::{list, list_of_objects, object, schema};
use crate::middleware::auth::Caller;
use crate::response::{Nullable, Time};
use crate::v1::routing_rules::CreateRoutingRuleRequest;
use crate::validate::{Field, Validated};

/// Rules of one simulation, at most.
const RULES_MAX: usize = 100;

/// The rules to try, and on which messages.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
pub(crate) struct SimulateRoutingRequest {
    /// Up to 100 rules, as they would be created, instead of those of the organization. For
    /// equal priorities, earlier ones are checked first. The default is the organization's.
    rules: Validated<Option<SimulatedRules>>,
    /// How far back messages are looked at: the last `hour`, `day` (the default) or `week`.
    period: Validated<Option<SimulationPeriod>>,
}

/// Rules as they would be created.
#[derive(Debug)]
struct SimulatedRules(Vec<RuleTerms>);

/// One rule.
struct SimulatedRule(RuleTerms);

impl Field for SimulatedRule {
    fn schema() -> MetaSchemaRef {
        CreateRoutingRuleRequest::schema_ref()
    }

    fn register(registry: &mut Registry) {
        CreateRoutingRuleRequest::register(registry);
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let request = object::<CreateRoutingRuleRequest>(value)?;
        request.check(Vec::new()).map(Self)
    }
}

impl Field for SimulatedRules {
    fn schema() -> MetaSchemaRef {
        schema("array", |list| {
            list.items = Some(Box::new(SimulatedRule::schema()));
            list.max_items = Some(RULES_MAX);
        })
    }

    fn register(registry: &mut Registry) {
        SimulatedRule::register(registry);
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let items = list_of_objects(value)?;
        let rules = list::<SimulatedRule>(items, 0, RULES_MAX, "rules")?;
        Ok(Self(rules.into_iter().map(|rule| rule.0).collect()))
    }
}

/// What the live messages of a period would have done. Accounts and their domains count as they
/// are now.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
pub(crate) struct RoutingSimulation {
    from: Time,
    to: Time,
    /// The messages that were accepted in the period.
    messages: u64,
    /// The recipients of these messages.
    recipients: u64,
    /// 1 if every message was looked at. Of more than 100,000, one in so many was, and the
    /// counts are multiplied by it.
    sampled_one_in: u32,
    /// The accounts that the messages went to, in the simulation or in fact.
    accounts: Vec<SimulatedAccount>,
    /// The rules in the order in which they are checked.
    rules: Vec<SimulatedRuleCounts>,
    /// Messages without a matching rule, and those that name their account.
    without_rule: u64,
    refused: SimulatedRefusals,
    /// Recipients that would have waited for a cap until sending is given up.
    unsent: u64,
}

/// The recipients of an account.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct SimulatedAccount {
    provider_account_id: Uuid,
    /// Recipients in the simulation.
    recipients: u64,
    /// Recipients in fact.
    actual_recipients: u64,
}

/// What a rule decided.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct SimulatedRuleCounts {
    /// The id of the rule; null for one of the request.
    id: Nullable<Uuid>,
    name: String,
    /// The messages that it decided.
    messages: u64,
    /// The recipients of these messages.
    recipients: u64,
    /// The targets of the rule, in order; empty if one account sends all its messages.
    targets: Vec<SimulatedTarget>,
}

/// What a target got.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct SimulatedTarget {
    provider_account_id: Uuid,
    /// The recipients that it got.
    recipients: u64,
    /// Recipients for whom its hourly cap was reached.
    over_hourly_cap: u64,
    /// Recipients for whom its daily cap was reached.
    over_daily_cap: u64,
    /// Recipients that waited for a later hour and then went to it.
    waited: u64,
}

/// Messages that would have been refused.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct SimulatedRefusals {
    /// Messages refused with `NO_ACTIVE_PROVIDER`.
    no_active_provider: u64,
    /// Messages refused with `DOMAIN_NOT_VERIFIED`.
    domain_not_verified: u64,
}

impl From<TargetCount> for SimulatedTarget {
    fn from(count: TargetCount) -> Self {
        Self {
            provider_account_id: count.account_id.0,
            recipients: count.recipients,
            over_hourly_cap: count.over_hourly_cap,
            over_daily_cap: count.over_daily_cap,
            waited: count.waited,
        }
    }
}

impl SimulateRoutingRequest {
    pub(crate) fn check(self, mut issues: Vec<Issue>) -> Result<SimulatedRouting, Vec<Issue>> {
        let rules = self.rules.take("rules", &mut issues);
        let period = self.period.take("period", &mut issues);
        match (rules, period, issues.is_empty()) {
            (Some(rules), Some(period), true) => Ok(SimulatedRouting {
                rules: rules.map(|rules| rules.0),
                period: period.unwrap_or(SimulationPeriod::Day),
            }),
            (_, _, _) => Err(issues),
        }
    }
}

/// What to simulate.
pub(crate) struct SimulatedRouting {
    /// `None` for the rules of the organization.
    rules: Option<Vec<RuleTerms>>,
    period: SimulationPeriod,
}

impl SimulatedRouting {
    pub(crate) async fn run(
        self,
        context: &Context,
        caller: &Caller,
    ) -> Result<RoutingSimulation, Failure> {
        let is_given = self.rules.is_some();
        let simulator = &context.routing_simulator;
        let result = simulator
            .simulate(caller.organization_id(), self.rules, self.period)
            .await
            .map_err(|(index, refusal)| Failure::of_rule(refusal, &format!("rules.{index}")))?;
        Ok(shown(result, is_given))
    }
}

fn shown(result: SimulationResult, is_given: bool) -> RoutingSimulation {
    let mut accounts: Vec<_> = result.accounts.into_iter().collect();
    accounts.sort_by_key(|(id, count)| (std::cmp::Reverse(count.recipients), *id));
    let accounts = accounts.into_iter().map(|(id, count)| SimulatedAccount {
        provider_account_id: id.0,
        recipients: count.recipients,
        actual_recipients: count.actual,
    });
    let rule = |count: RuleCount| SimulatedRuleCounts {
        id: Nullable((!is_given).then_some(count.rule.id.0)),
        name: count.rule.terms.name.into_string(),
        messages: count.messages,
        recipients: count.recipients,
        targets: count.targets.into_iter().map(Into::into).collect(),
    };
    RoutingSimulation {
        from: Time(result.from),
        to: Time(result.to),
        messages: result.messages,
        recipients: result.recipients,
        sampled_one_in: result.sampled_one_in,
        accounts: accounts.collect(),
        rules: result.rules.into_iter().map(rule).collect(),
        without_rule: result.without_rule,
        refused: SimulatedRefusals {
            no_active_provider: result.no_active_provider,
            domain_not_verified: result.domain_not_verified,
        },
        unsent: result.unsent,
    }
}
