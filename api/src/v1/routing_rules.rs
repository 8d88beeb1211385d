//! Routing rules: which provider account sends which messages.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::registry::MetaSchemaRef;
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde_json::Value;
use uuid::Uuid;
use waypost_core::address::Mailbox;
use waypost_core::db::OrFault;
use waypost_core::idempotency::single::Idempotent;
use waypost_core::ids::{ProviderAccountId, RoutingRuleId};
use waypost_core::issue::Issue;
use waypost_core::provider_account;
use waypost_core::routing::rule::{
    DomainPattern, FALLBACKS_MAX, OnUnknown, PRIORITY_MAX, RoutingRule, RuleChange, RuleTerms,
    TagMatch,
};
use waypost_core::routing::{self, RouteRefusal, RoutingRequest, store};
use waypost_core::text::{Name, Tag};

use crate::context::Context;
use crate::error::Failure;
use crate::fields::content::Tags;
use crate::fields::{self, Id, Whole};
use crate::middleware::auth::{Caller, Requires};
use crate::middleware::permission;
use crate::request::body::{JsonBody, OTHER_BYTES_MAX};
use crate::request::idempotency_key::{KeyHeader, created};
use crate::request::path_id::PathId;
use crate::response::{Data, Nullable, Success, Time};
use crate::v1::Section;
use crate::v1::providers::ProviderAccountView;
use crate::validate::{Clearable, Field, Settable, Validated, problem};

pub(crate) struct RoutingRulesApi {
    pub(crate) context: Arc<Context>,
}

/// A routing rule. A message must match all conditions of the rule; an absent condition
/// matches every message.
#[derive(Debug, Object)]
#[oai(rename = "RoutingRule", rename_all = "camelCase")]
struct RoutingRuleView {
    id: Uuid,
    organization_id: Uuid,
    name: String,
    /// 0 to 1,000. Rules with a higher priority are checked first; for equal priorities,
    /// older rules are.
    priority: u32,
    is_active: bool,
    /// The sender's domain: `example.com`, or `*.example.com` for every subdomain but not
    /// the domain itself; null matches every domain.
    sender_domain: Nullable<String>,
    tags: Vec<String>,
    /// Whether a message must have `any` or `all` of the tags.
    tag_match: String,
    /// The account that sends the messages.
    provider_account_id: Uuid,
    /// The accounts that send if this account cannot, in this order.
    fallback_provider_account_ids: Vec<Uuid>,
    /// What to do if the provider's response to a call is lost: `wait` for evidence and
    /// send again if there is none, `resend` at once (the recipient may get the message
    /// twice), or `fail` (the message may have been sent).
    on_unknown: String,
    created_at: Time,
    updated_at: Time,
}

impl From<RoutingRule> for RoutingRuleView {
    fn from(rule: RoutingRule) -> Self {
        let terms = rule.terms;
        Self {
            id: rule.id.0,
            organization_id: rule.organization_id.0,
            name: terms.name.into_string(),
            priority: terms.priority,
            is_active: terms.is_active,
            sender_domain: Nullable(terms.sender_domain.map(|pattern| pattern.to_string())),
            tags: terms.tags.into_iter().map(Tag::into_string).collect(),
            tag_match: terms.tag_match.as_str().to_owned(),
            provider_account_id: terms.provider_account_id.0,
            fallback_provider_account_ids: terms.fallbacks.into_iter().map(|id| id.0).collect(),
            on_unknown: terms.on_unknown.as_str().to_owned(),
            created_at: Time(rule.created_at),
            updated_at: Time(rule.updated_at),
        }
    }
}

type Priority = Whole<0, PRIORITY_MAX>;

/// A rule to create.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct CreateRoutingRuleRequest {
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
    /// The account that sends the messages.
    provider_account_id: Validated<Id>,
    /// Up to 5 accounts that send if this account cannot, in this order.
    fallback_provider_account_ids: Validated<Option<Fallbacks>>,
    /// What to do if the provider's response to a call is lost: `wait` for evidence and
    /// send again if there is none (the default), `resend` at once (the recipient may get
    /// the message twice), or `fail` (the message may have been sent).
    on_unknown: Validated<Option<OnUnknown>>,
}

impl CreateRoutingRuleRequest {
    fn check(self, mut issues: Vec<Issue>) -> Result<RuleTerms, Vec<Issue>> {
        let name = self.name.take("name", &mut issues);
        let priority = self.priority.take("priority", &mut issues).flatten();
        let is_active = self.is_active.take("isActive", &mut issues).flatten();
        let sender_domain = self.sender_domain.take("senderDomain", &mut issues);
        let tags = self.tags.take("tags", &mut issues).flatten();
        let tag_match = self.tag_match.take("tagMatch", &mut issues).flatten();
        let account = self
            .provider_account_id
            .take("providerAccountId", &mut issues);
        let fallbacks = self
            .fallback_provider_account_ids
            .take("fallbackProviderAccountIds", &mut issues);
        let on_unknown = self.on_unknown.take("onUnknown", &mut issues).flatten();
        let (Some(name), Some(account), true) = (name, account, issues.is_empty()) else {
            return Err(issues);
        };
        Ok(RuleTerms {
            name,
            priority: priority.map_or(0, |priority| priority.0),
            is_active: is_active.unwrap_or(true),
            sender_domain: sender_domain.flatten(),
            tags: tags.unwrap_or_default().0,
            tag_match: tag_match.unwrap_or(TagMatch::Any),
            provider_account_id: account.0.into(),
            fallbacks: fallbacks.flatten().unwrap_or_default().0,
            on_unknown: on_unknown.unwrap_or(OnUnknown::Wait),
        })
    }
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
    /// The account that sends the messages.
    provider_account_id: Validated<Settable<Id>>,
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
        let change = RuleChange {
            name: self.name.change("name", &mut issues),
            priority: priority.map(|priority| priority.0),
            is_active: self.is_active.change("isActive", &mut issues),
            sender_domain,
            tags: tags.map(|tags| tags.0),
            tag_match: self.tag_match.change("tagMatch", &mut issues),
            provider_account_id: account.map(|id| id.0.into()),
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

/// The message to resolve the route of.
#[derive(Debug, Object)]
struct ResolveRouteRequest {
    /// The sender.
    from: Validated<Mailbox>,
    /// The tags of the message.
    tags: Validated<Option<Tags>>,
}

/// The route of a message.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct RouteResolution {
    /// The rule that matched; null if none did.
    rule: Nullable<RoutingRuleView>,
    /// The rules that were checked before and skipped, in order.
    passed_over: Vec<PassedOverRule>,
    /// The account that would send the message; null if there is none.
    account: Nullable<ProviderAccountView>,
    /// Whether the sender's domain is verified on this account.
    domain_verified: bool,
    /// The fallbacks of the rule, in order.
    fallbacks: Vec<FallbackResolution>,
    /// Why a send would be refused: `NO_ACTIVE_PROVIDER` or `DOMAIN_NOT_VERIFIED`; null
    /// if it would be accepted.
    refusal: Nullable<String>,
}

/// A fallback of the matching rule.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct FallbackResolution {
    provider_account_id: Uuid,
    /// Whether the sender's domain is verified on this account.
    domain_verified: bool,
    /// Why this fallback is not used: `PROVIDER_INACTIVE`, or `DOMAIN_NOT_VERIFIED` if
    /// the sender's domain is unverified on it; null if it is used.
    passed_over: Nullable<String>,
}

impl From<routing::Fallback> for FallbackResolution {
    fn from(fallback: routing::Fallback) -> Self {
        let passed_over = fallback.passed_over.map(|why| why.as_str().to_owned());
        Self {
            provider_account_id: fallback.account_id.0,
            domain_verified: fallback.domain_verified,
            passed_over: Nullable(passed_over),
        }
    }
}

/// A rule that was skipped.
#[derive(Debug, Object)]
struct PassedOverRule {
    rule: RoutingRuleView,
    /// Why the rule was skipped: `RULE_INACTIVE`, `SENDER_DOMAIN`, `TAGS` or
    /// `PROVIDER_INACTIVE`.
    reason: String,
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
        let from = request.from.take("from", &mut issues);
        let tags = request.tags.take("tags", &mut issues);
        let (Some(from), Some(tags), true) = (from, tags, issues.is_empty()) else {
            return Err(Failure::Invalid(issues));
        };
        let tags = tags.unwrap_or_default().0;
        let route_request = RoutingRequest {
            sender_domain: from.address().domain(),
            tags: tags.iter().map(Tag::as_str).collect(),
        };
        let data = self.explain(&caller, &route_request).await?;
        Ok(Json(Data { data }))
    }
}

const RULE: &str = "routing rule";

impl RoutingRulesApi {
    async fn explain(
        &self,
        caller: &Caller,
        route_request: &RoutingRequest<'_>,
    ) -> Result<RouteResolution, Failure> {
        let organization_id = caller.organization_id();
        let snapshot = self.context.rules.snapshots.reload(organization_id).await?;
        let mut passed_over = Vec::new();
        let mut decided = None;
        for rule in &snapshot.rules {
            match routing::evaluate(rule, &snapshot, route_request) {
                Ok(account) => {
                    decided = Some((rule, account));
                    break;
                }
                Err(reason) => passed_over.push(PassedOverRule {
                    rule: rule.clone().into(),
                    reason: reason.as_str().to_owned(),
                }),
            }
        }
        let account = decided.map(|(_, account)| account);
        let account = match account.or_else(|| snapshot.accounts.first()) {
            Some(account) => {
                let doing = "find a message's route";
                let mut connection = self.context.pool.acquire().await.or_fault(doing)?;
                provider_account::store::find(&mut connection, organization_id, account.id).await?
            }
            None => None,
        };
        let fallbacks = decided.map(|(rule, _)| routing::fallbacks(&snapshot, rule, route_request));
        let fallbacks = fallbacks.unwrap_or_default().into_iter();
        let route = routing::resolve(&snapshot, route_request);
        let refusal = route.as_ref().err().map(|refusal| match refusal {
            RouteRefusal::NoActiveProvider => "NO_ACTIVE_PROVIDER".to_owned(),
            RouteRefusal::DomainNotVerified(_) => "DOMAIN_NOT_VERIFIED".to_owned(),
        });
        Ok(RouteResolution {
            rule: Nullable(decided.map(|(rule, _)| rule.clone().into())),
            passed_over,
            account: Nullable(
                account.map(|account| ProviderAccountView::of(&self.context.accounts, account)),
            ),
            fallbacks: fallbacks.map(FallbackResolution::from).collect(),
            domain_verified: route.is_ok_and(|route| route.domain_verified),
            refusal: Nullable(refusal),
        })
    }
}
