//! The targets of routing rules in requests.

use poem_openapi::Object;
use poem_openapi::registry::{MetaSchemaRef, Registry};
use poem_openapi::types::Type as _;
use serde_json::Value;
use waypost_core::issue::Issue;
use waypost_core::routing::ramp::Ramp;
use waypost_core::routing::targets::{CAP_MAX, TARGETS_MAX, Target, WEIGHT_MAX};

use crate::fields::{Id, Whole, list, list_of_objects, object, schema};
use crate::validate::{Field, Validated};

/// The targets of a rule, each account once.
#[derive(Debug)]
pub(crate) struct Targets(pub(crate) Vec<Target>);

/// An account that gets a part of the messages.
#[derive(Debug, Object)]
#[oai(rename = "NewRoutingTarget", rename_all = "camelCase")]
struct TargetObject {
    provider_account_id: Validated<Id>,
    /// 1 to 1,000. Each account gets its weight's part of the messages.
    weight: Validated<Whole<1, WEIGHT_MAX>>,
    /// The most recipients of a day in UTC, of all messages of the rule.
    daily_cap: Validated<Option<Whole<1, CAP_MAX>>>,
    /// The most recipients of an hour, of all messages of the rule.
    hourly_cap: Validated<Option<Whole<1, CAP_MAX>>>,
    /// How the daily cap grows until it reaches `dailyCap`, or without end.
    ramp: Validated<Option<Ramp>>,
}

impl TargetObject {
    fn check(self) -> Result<Target, Vec<Issue>> {
        let mut issues = Vec::new();
        let account = self
            .provider_account_id
            .take("providerAccountId", &mut issues);
        let weight = self.weight.take("weight", &mut issues);
        let daily_cap = self.daily_cap.take("dailyCap", &mut issues);
        let hourly_cap = self.hourly_cap.take("hourlyCap", &mut issues);
        let ramp = self.ramp.take("ramp", &mut issues);
        let (Some(account), Some(weight), true) = (account, weight, issues.is_empty()) else {
            return Err(issues);
        };
        Ok(Target {
            account_id: account.0.into(),
            weight: weight.0,
            daily_cap: daily_cap.flatten().map(|cap| cap.0),
            hourly_cap: hourly_cap.flatten().map(|cap| cap.0),
            ramp: ramp.flatten(),
            ramp_stage: None,
        })
    }
}

/// One target.
struct OneTarget(Target);

impl Field for OneTarget {
    fn schema() -> MetaSchemaRef {
        TargetObject::schema_ref()
    }

    fn register(registry: &mut Registry) {
        TargetObject::register(registry);
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        object::<TargetObject>(value)?.check().map(Self)
    }
}

impl Field for Targets {
    fn schema() -> MetaSchemaRef {
        schema("array", |list| {
            list.items = Some(Box::new(OneTarget::schema()));
            list.min_items = Some(1);
            list.max_items = Some(TARGETS_MAX);
        })
    }

    fn register(registry: &mut Registry) {
        OneTarget::register(registry);
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let items = list_of_objects(value)?;
        let targets = list::<OneTarget>(items, 1, TARGETS_MAX, "targets")?;
        let targets: Vec<Target> = targets.into_iter().map(|target| target.0).collect();
        let is_repeated = |(index, target): &(usize, &Target)| {
            let before = &targets[..*index];
            before.iter().any(|one| one.account_id == target.account_id)
        };
        let repeated = targets.iter().enumerate().filter(is_repeated);
        let issues: Vec<Issue> = repeated
            .map(|(index, _)| {
                let path = format!("{index}.providerAccountId");
                Issue::new(path, "must not be the account of another target")
            })
            .collect();
        if issues.is_empty() {
            Ok(Self(targets))
        } else {
            Err(issues)
        }
    }
}
