//! Routing rules: which provider account sends which messages.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::registry::MetaSchemaRef;
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde_json::Value;
use waypost_core::db::OrFault;
use waypost_core::idempotency::single::Idempotent;
use waypost_core::ids::{ProviderAccountId, RoutingRuleId};
use waypost_core::issue::Issue;
use waypost_core::provider::region::AccountRegion;
use waypost_core::routing::conditions::{
    ConditionChange, Conditions, MessageClass, RECIPIENT_DOMAINS_MAX, SIZE_MAX,
};
use waypost_core::routing::ramp::{RampBounds, RampBoundsChange};
use waypost_core::routing::rule::{
    DomainPattern, FALLBACKS_MAX, OnUnknown, PRIORITY_MAX, RoutingRule, RuleChange, RuleTerms,
    TagMatch,
};
use waypost_core::routing::store;
use waypost_core::routing::target_health::Prefer;
use waypost_core::routing::targets::{OverCap, Sticky};
use waypost_core::text::Name;

use crate::context::Context;
use crate::error::Failure;
use crate::fields::content::Tags;
use crate::fields::mailbox_providers::MailboxProviderList;
use crate::fields::targets::Targets;
use crate::fields::{self, Id, Whole};
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::body::{JsonBody, OTHER_BYTES_MAX};
use crate::request::idempotency_key::{KeyHeader, created};
use crate::request::path_id::PathId;
use crate::response::{Data, Success};
use crate::v1::Section;
use crate::v1::route_resolution::{ResolveRouteRequest, RouteResolution};
use crate::v1::route_simulation::{RoutingSimulation, SimulateRoutingRequest};
use crate::v1::routing_rule_view::RoutingRuleView;
use crate::validate::{Clearable, Field, Settable, Validated, problem};

pub(crate) struct RoutingRulesApi {
    pub(crate) context: Arc<Context>,
}

type Priority = Whole<0, PRIORITY_MAX>;
type SizeBytes = Whole<0, SIZE_MAX>;

/// A rule to create.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
pub(crate) struct CreateRoutingRuleRequest {
    /// The name of the rule.
    name: Validated<Name>,
    /// Rules with a higher priority are checked first. The default is 0.
    priority: Validated<Option<Priority>>,
    /// Whether the rule is used. The default is true.
    is_active: Validated<Option<bool>>,
    /// The sender's domain. The default is every domain.
    sender_domain: Validated<Option<DomainPattern>>,
    /// The tags of matching messages; an empty list matches every message.
    tags: Validated<Option<Tags>>,
    /// Whether a message must have `any` (the default) or `all` of the tags.
    tag_match: Validated<Option<TagMatch>>,
    /// The domains of the recipients, such as `example.com` or `*.example.com`, up to 50: every
    /// recipient of a message must match one of them. An empty list matches all recipients.
    recipient_domains: Validated<Option<DomainPatterns>>,
    /// The mailbox providers of the recipients, by the MX records of their domains: `google`,
    /// `microsoft`, `yahoo` or `other`. Every recipient of a message must have one of them. An
    /// empty list matches all recipients.
    recipient_mailbox_providers: Validated<Option<MailboxProviderList>>,
    /// The class that messages have: `transactional` or `bulk`. The default is both.
    message_class: Validated<Option<MessageClass>>,
    /// The smallest size of messages, in bytes: subject, bodies and decoded attachments.
    min_size_bytes: Validated<Option<SizeBytes>>,
    /// The largest size of messages, in bytes.
    max_size_bytes: Validated<Option<SizeBytes>>,
    /// Whether the rule is for tests only (true) or for live messages only (false).
    test: Validated<Option<bool>>,
    /// The region that accounts must be in to send the messages: `eu` or `us`. All accounts of
    /// the rule must be in it. The default is anywhere.
    region: Validated<Option<AccountRegion>>,
    /// The account that sends the messages. A rule has this or `targets`.
    provider_account_id: Validated<Option<Id>>,
    /// Up to 10 accounts that share the messages by weight, instead of `providerAccountId`.
    targets: Validated<Option<Targets>>,
    /// Which messages always have the same target: `none` (the default), those to one
    /// `recipientDomain` (of the first recipient), or those of one `sender`.
    sticky: Validated<Option<Sticky>>,
    /// Whether targets share the messages by their `weight` alone (the default), or also by
    /// their `health`: a target whose mail fails gets less.
    prefer: Validated<Option<Prefer>>,
    /// What becomes of a message whose target has reached its cap: the `next` target or
    /// fallback sends it (the default), or it waits (`wait`).
    over_cap: Validated<Option<OverCap>>,
    /// The bounds of the rates of an account, beyond which its ramp does not grow.
    ramp_bounds: Validated<Option<RampBoundsChange>>,
    /// Up to 5 accounts that send if this account cannot, in this order.
    fallback_provider_account_ids: Validated<Option<Fallbacks>>,
    /// What to do if the provider's response to a call is lost: `wait` for evidence and
    /// send again if there is none (the default), `resend` at once (the recipient may get
    /// the message twice), or `fail` (the message may have been sent).
    on_unknown: Validated<Option<OnUnknown>>,
}

impl CreateRoutingRuleRequest {
    pub(crate) fn check(self, mut issues: Vec<Issue>) -> Result<RuleTerms, Vec<Issue>> {
        let name = self.name.take("name", &mut issues);
        let priority = self.priority.take("priority", &mut issues).flatten();
        let is_active = self.is_active.take("isActive", &mut issues).flatten();
        let sender_domain = self.sender_domain.take("senderDomain", &mut issues);
        let tags = self.tags.take("tags", &mut issues).flatten();
        let tag_match = self.tag_match.take("tagMatch", &mut issues).flatten();
        let domains = self.recipient_domains;
        let domains = domains.take("recipientDomains", &mut issues).flatten();
        let providers = self.recipient_mailbox_providers;
        let providers = providers.take("recipientMailboxProviders", &mut issues);
        let class = self.message_class.take("messageClass", &mut issues);
        let min_size = self.min_size_bytes.take("minSizeBytes", &mut issues);
        let max_size = self.max_size_bytes.take("maxSizeBytes", &mut issues);
        let test = self.test.take("test", &mut issues).flatten();
        let region = self.region.take("region", &mut issues).flatten();
        let has_account = self.provider_account_id.is_given();
        let has_targets = self.targets.is_given();
        let account = self.provider_account_id;
        let account = account.take("providerAccountId", &mut issues).flatten();
        let targets = self.targets.take("targets", &mut issues).flatten();
        issues.extend(wrong_form(has_account, has_targets));
        let sticky = self.sticky.take("sticky", &mut issues).flatten();
        let prefer = self.prefer.take("prefer", &mut issues).flatten();
        let over_cap = self.over_cap.take("overCap", &mut issues).flatten();
        let bounds = self.ramp_bounds.take("rampBounds", &mut issues).flatten();
        let fallbacks = self
            .fallback_provider_account_ids
            .take("fallbackProviderAccountIds", &mut issues);
        let on_unknown = self.on_unknown.take("onUnknown", &mut issues).flatten();
        let targets = targets.map(|targets| targets.0).unwrap_or_default();
        let account = account.map(|account| account.0.into());
        let account = account.or(targets.first().map(|target| target.account_id));
        let (Some(name), Some(provider_account_id), true) = (name, account, issues.is_empty())
        else {
            return Err(issues);
        };
        Ok(RuleTerms {
            name,
            priority: priority.map_or(0, |priority| priority.0),
            is_active: is_active.unwrap_or(true),
            sender_domain: sender_domain.flatten(),
            tags: tags.unwrap_or_default().0,
            tag_match: tag_match.unwrap_or(TagMatch::Any),
            conditions: Conditions {
                recipient_domains: domains.unwrap_or_default().0,
                recipient_mailbox_providers: providers.flatten().unwrap_or_default().0,
                message_class: class.flatten(),
                min_size_bytes: min_size.flatten().map(|size| size.0),
                max_size_bytes: max_size.flatten().map(|size| size.0),
                test,
            },
            region,
            provider_account_id,
            targets,
            prefer: prefer.unwrap_or(Prefer::Weight),
            sticky: sticky.unwrap_or(Sticky::None),
            over_cap: over_cap.unwrap_or(OverCap::Next),
            ramp_bounds: bounds.unwrap_or_default().apply(RampBounds::default()),
            fallbacks: fallbacks.flatten().unwrap_or_default().0,
            on_unknown: on_unknown.unwrap_or(OnUnknown::Wait),
        })
    }
}

/// The issue of a new rule that has neither an account nor targets, or both.
fn wrong_form(has_account: bool, has_targets: bool) -> Option<Issue> {
    match (has_account, has_targets) {
        (false, false) => Some(Issue::new(
            "providerAccountId",
            "is required unless targets are given",
        )),
        (true, true) => Some(both_forms()),
        (true, false) | (false, true) => None,
    }
}

fn both_forms() -> Issue {
    Issue::new(
        "targets",
        "must not be given together with providerAccountId",
    )
}

/// The changes to a rule. Absent fields keep their values.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct UpdateRoutingRuleRequest {
    /// The name of the rule.
    name: Validated<Settable<Name>>,
    /// Rules with a higher priority are checked first.
    priority: Validated<Settable<Priority>>,
    /// Whether the rule is used.
    is_active: Validated<Settable<bool>>,
    /// The sender's domain; null matches every domain.
    sender_domain: Validated<Clearable<DomainPattern>>,
    /// The tags of matching messages; an empty list matches every message.
    tags: Validated<Settable<Tags>>,
    /// Whether a message must have `any` or `all` of the tags.
    tag_match: Validated<Settable<TagMatch>>,
    /// The domains of the recipients, such as `example.com` or `*.example.com`, up to 50: every
    /// recipient of a message must match one of them. An empty list matches all recipients.
    recipient_domains: Validated<Settable<DomainPatterns>>,
    /// The mailbox providers of the recipients, by the MX records of their domains: `google`,
    /// `microsoft`, `yahoo` or `other`. Every recipient of a message must have one of them. An
    /// empty list matches all recipients.
    recipient_mailbox_providers: Validated<Settable<MailboxProviderList>>,
    /// The class that messages have: `transactional` or `bulk`. Null matches both.
    message_class: Validated<Clearable<MessageClass>>,
    /// The smallest size of messages, in bytes: subject, bodies and decoded attachments.
    min_size_bytes: Validated<Clearable<SizeBytes>>,
    /// The largest size of messages, in bytes.
    max_size_bytes: Validated<Clearable<SizeBytes>>,
    /// Whether the rule is for tests only (true) or for live messages only (false).
    test: Validated<Clearable<bool>>,
    /// The region that accounts must be in to send the messages: `eu` or `us`; null for
    /// anywhere.
    region: Validated<Clearable<AccountRegion>>,
    /// The account that sends the messages. It takes the place of `targets`.
    provider_account_id: Validated<Settable<Id>>,
    /// Up to 10 accounts that share the messages by weight. They take the place of
    /// `providerAccountId`.
    targets: Validated<Settable<Targets>>,
    /// Which messages always have the same target: `none`, those to one `recipientDomain`
    /// (of the first recipient), or those of one `sender`.
    sticky: Validated<Settable<Sticky>>,
    /// Whether targets share the messages by their `weight` alone, or also by their `health`: a
    /// target whose mail fails gets less.
    prefer: Validated<Settable<Prefer>>,
    /// What becomes of a message whose target has reached its cap: the `next` target or
    /// fallback sends it, or it waits (`wait`).
    over_cap: Validated<Settable<OverCap>>,
    /// The bounds of the rates of an account, beyond which its ramp does not grow. An absent one
    /// keeps its value.
    ramp_bounds: Validated<Settable<RampBoundsChange>>,
    /// Up to 5 accounts that send if this account cannot, in this order.
    fallback_provider_account_ids: Validated<Settable<Fallbacks>>,
    /// What to do if the provider's response to a call is lost: `wait`, `resend` or
    /// `fail`.
    on_unknown: Validated<Settable<OnUnknown>>,
}

impl UpdateRoutingRuleRequest {
    fn check(self, mut issues: Vec<Issue>) -> Result<RuleChange, Vec<Issue>> {
        let priority = self.priority.change("priority", &mut issues);
        let sender_domain = self.sender_domain.change("senderDomain", &mut issues);
        let tags = self.tags.change("tags", &mut issues);
        let account = self
            .provider_account_id
            .change("providerAccountId", &mut issues);
        let fallbacks = self
            .fallback_provider_account_ids
            .change("fallbackProviderAccountIds", &mut issues);
        let targets = self.targets.change("targets", &mut issues);
        if account.is_some() && targets.is_some() {
            issues.push(both_forms());
        }
        let domains = self
            .recipient_domains
            .change("recipientDomains", &mut issues);
        let min_size = self.min_size_bytes.change("minSizeBytes", &mut issues);
        let max_size = self.max_size_bytes.change("maxSizeBytes", &mut issues);
        let providers = self
            .recipient_mailbox_providers
            .change("recipientMailboxProviders", &mut issues);
        let conditions = ConditionChange {
            recipient_mailbox_providers: providers.map(|providers| providers.0),
            recipient_domains: domains.map(|domains| domains.0),
            message_class: self.message_class.change("messageClass", &mut issues),
            min_size_bytes: min_size.map(|size| size.map(|size| size.0)),
            max_size_bytes: max_size.map(|size| size.map(|size| size.0)),
            test: self.test.change("test", &mut issues),
        };
        let change = RuleChange {
            name: self.name.change("name", &mut issues),
            priority: priority.map(|priority| priority.0),
            is_active: self.is_active.change("isActive", &mut issues),
            sender_domain,
            tags: tags.map(|tags| tags.0),
            tag_match: self.tag_match.change("tagMatch", &mut issues),
            conditions,
            region: self.region.change("region", &mut issues),
            provider_account_id: account.map(|id| id.0.into()),
            targets: targets.map(|targets| targets.0),
            prefer: self.prefer.change("prefer", &mut issues),
            sticky: self.sticky.change("sticky", &mut issues),
            over_cap: self.over_cap.change("overCap", &mut issues),
            ramp_bounds: self.ramp_bounds.change("rampBounds", &mut issues),
            fallbacks: fallbacks.map(|fallbacks| fallbacks.0),
            on_unknown: self.on_unknown.change("onUnknown", &mut issues),
        };
        if issues.is_empty() {
            Ok(change)
        } else {
            Err(issues)
        }
    }
}

/// The fallback accounts, in order.
#[derive(Debug, Default)]
struct Fallbacks(Vec<ProviderAccountId>);

impl Field for Fallbacks {
    fn schema() -> MetaSchemaRef {
        fields::schema("array", |list| {
            list.items = Some(Box::new(Id::schema()));
            list.max_items = Some(FALLBACKS_MAX);
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let items = fields::list_of_strings(value)?;
        let ids: Vec<Id> = fields::list(items, 0, FALLBACKS_MAX, "accounts")?;
        Ok(Self(ids.into_iter().map(|id| id.0.into()).collect()))
    }
}

/// The domains of recipients.
#[derive(Debug, Default)]
struct DomainPatterns(Vec<DomainPattern>);

impl Field for DomainPatterns {
    fn schema() -> MetaSchemaRef {
        fields::schema("array", |list| {
            list.items = Some(Box::new(DomainPattern::schema()));
            list.max_items = Some(RECIPIENT_DOMAINS_MAX);
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let items = fields::list_of_strings(value)?;
        fields::list(items, 0, RECIPIENT_DOMAINS_MAX, "domains").map(Self)
    }
}

impl Field for DomainPattern {
    fn schema() -> MetaSchemaRef {
        fields::schema("string", |schema| {
            schema.example = Some(Value::from("*.example.com"));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        match Self::parse(&fields::string(value)?) {
            Some(pattern) => Ok(pattern),
            None => problem("must be a domain such as example.com or *.example.com"),
        }
    }
}

#[derive(ApiResponse)]
enum RuleCreated {
    /// The rule is created and takes effect at once.
    #[oai(status = 201)]
    Created(Json<Data<RoutingRuleView>>),
}

type RuleAnswer = Result<Json<Data<RoutingRuleView>>, Failure>;

#[OpenApi(tag = "Section::RoutingRules")]
impl RoutingRulesApi {
    /// List routing rules
    ///
    /// Requires the permission `PROVIDERS_READ`. The rules are in the order in which they
    /// are checked.
    #[oai(
        path = "/v1/routing-rules",
        method = "get",
        operation_id = "list_routing_rules"
    )]
    async fn list_routing_rules(
        &self,
        caller: Requires<permission::ProvidersRead>,
    ) -> Result<Json<Data<Vec<RoutingRuleView>>>, Failure> {
        let caller = caller.authorize()?;
        let doing = "list routing rules";
        let mut connection = self.context.pool.acquire().await.or_fault(doing)?;
        let rules = store::list(&mut connection, caller.organization_id()).await?;
        let data = rules.into_iter().map(RoutingRuleView::from).collect();
        Ok(Json(Data { data }))
    }

    /// Create a routing rule
    ///
    /// Requires the permission `PROVIDERS_WRITE`.
    #[oai(
        path = "/v1/routing-rules",
        method = "post",
        operation_id = "create_routing_rule"
    )]
    async fn create_routing_rule(
        &self,
        caller: Requires<permission::ProvidersWrite>,
        /// Makes it safe to repeat the request.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<CreateRoutingRuleRequest, OTHER_BYTES_MAX>,
    ) -> Result<RuleCreated, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let claim = key.claim(&self.context, &caller, &body, &mut issues);
        let request = body.take(&mut issues)?;
        let terms = request.check(issues).map_err(Failure::Invalid)?;
        let idempotent = Idempotent::new(
            claim.flatten(),
            &self.context.sealer,
            |rule: &RoutingRule| {
                let data = RoutingRuleView::from(rule.clone());
                created(&Data { data })
            },
        );
        let rules = &self.context.rules;
        let rule = rules
            .create(
                caller.organization_id(),
                caller.origin(),
                terms,
                &idempotent,
            )
            .await?;
        Ok(RuleCreated::Created(Json(Data { data: rule.into() })))
    }

    /// Get a routing rule
    ///
    /// Requires the permission `PROVIDERS_READ`.
    #[oai(
        path = "/v1/routing-rules/:id",
        method = "get",
        operation_id = "get_routing_rule"
    )]
    async fn get_routing_rule(
        &self,
        caller: Requires<permission::ProvidersRead>,
        /// The id of the routing rule.
        id: Path<PathId>,
    ) -> RuleAnswer {
        let caller = caller.authorize()?;
        let id: RoutingRuleId = id.0.of(RULE)?;
        let doing = "show a routing rule";
        let mut connection = self.context.pool.acquire().await.or_fault(doing)?;
        let rule = store::find(&mut connection, caller.organization_id(), id)
            .await?
            .ok_or(Failure::NotFound(RULE))?;
        Ok(Json(Data { data: rule.into() }))
    }

    /// Change a routing rule
    ///
    /// Requires the permission `PROVIDERS_WRITE`. The change takes effect at once.
    #[oai(
        path = "/v1/routing-rules/:id",
        method = "patch",
        operation_id = "update_routing_rule"
    )]
    async fn update_routing_rule(
        &self,
        caller: Requires<permission::ProvidersWrite>,

        /// The id of the routing rule.
        id: Path<PathId>,
        body: JsonBody<UpdateRoutingRuleRequest, OTHER_BYTES_MAX>,
    ) -> RuleAnswer {
        let caller = caller.authorize()?;
        let id: RoutingRuleId = id.0.of(RULE)?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let wanted = request.check(issues).map_err(Failure::Invalid)?;
        let rules = &self.context.rules;
        let rule = rules
            .change(caller.organization_id(), caller.origin(), id, wanted)
            .await?;
        Ok(Json(Data { data: rule.into() }))
    }

    /// Remove a routing rule
    ///
    /// Requires the permission `PROVIDERS_WRITE`.
    #[oai(
        path = "/v1/routing-rules/:id",
        method = "delete",
        operation_id = "delete_routing_rule"
    )]
    async fn delete_routing_rule(
        &self,
        caller: Requires<permission::ProvidersWrite>,

        /// The id of the routing rule.
        id: Path<PathId>,
    ) -> Result<Json<Success>, Failure> {
        let caller = caller.authorize()?;
        let id: RoutingRuleId = id.0.of(RULE)?;
        let rules = &self.context.rules;
        rules
            .remove(caller.organization_id(), caller.origin(), id)
            .await?;
        Ok(Json(Success { success: true }))
    }

    /// Resolve the route of a message
    ///
    /// Requires the permission `PROVIDERS_READ`. Returns the account that would send the
    /// message, and why. Nothing is sent.
    #[oai(
        path = "/v1/routing-rules/resolve",
        method = "post",
        operation_id = "resolve_route"
    )]
    async fn resolve_route(
        &self,
        caller: Requires<permission::ProvidersRead>,
        body: JsonBody<ResolveRouteRequest, OTHER_BYTES_MAX>,
    ) -> Result<Json<Data<RouteResolution>>, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let message = request.check(issues).map_err(Failure::Invalid)?;
        let data = message.explain(&self.context, &caller).await?;
        Ok(Json(Data { data }))
    }

    /// Simulate routing rules
    ///
    /// Requires the permission `PROVIDERS_READ`. Returns what the live messages of the last
    /// hour, day or week would have done under other rules: the recipients of each account,
    /// and those over caps. Nothing is sent and nothing is changed.
    #[oai(
        path = "/v1/routing-rules/simulate",
        method = "post",
        operation_id = "simulate_routing_rules"
    )]
    async fn simulate_routing_rules(
        &self,
        caller: Requires<permission::ProvidersRead>,
        body: JsonBody<SimulateRoutingRequest, OTHER_BYTES_MAX, true>,
    ) -> Result<Json<Data<RoutingSimulation>>, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let routing = request.check(issues).map_err(Failure::Invalid)?;
        let data = routing.run(&self.context, &caller).await?;
        Ok(Json(Data { data }))
    }
}

pub(super) const RULE: &str = "routing rule";
