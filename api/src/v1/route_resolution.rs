//! The route of a message that is not sent: which account would send it, and why.

use poem_openapi::Object;
use uuid::Uuid;
use waypost_core::address::Mailbox;
use waypost_core::db::OrFault;
use waypost_core::issue::Issue;
use waypost_core::provider_account;
use waypost_core::routing::conditions::{MessageClass, SIZE_MAX};
use waypost_core::routing::mailbox_provider::resolver::MailboxProviderResolver;
use waypost_core::routing::rule::RoutingRule;
use waypost_core::routing::target_usage::{self, TargetUsage, UsageWindow};
use waypost_core::routing::targets::{self, ExplainedTarget};
use waypost_core::routing::{self, FallbackPassedOver, PassedOver, RouteRefusal, RoutingRequest};
use waypost_core::text::Tag;

use crate::context::Context;
use crate::error::Failure;
use crate::fields::Whole;
use crate::fields::content::Tags;
use crate::fields::recipients::{Listed, Recipients};
use crate::middleware::auth::Caller;
use crate::response::Nullable;
use crate::v1::providers::ProviderAccountView;
use crate::v1::routing_rule_view::RoutingRuleView;
use crate::validate::Validated;

/// The message to resolve the route of.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
pub(crate) struct ResolveRouteRequest {
    /// The sender.
    from: Validated<Mailbox>,
    /// The recipients. Only their domains matter. Without them, rules with
    /// `recipientDomains` or `recipientMailboxProviders` are skipped.
    to: Validated<Option<Recipients>>,
    /// The tags of the message.
    tags: Validated<Option<Tags>>,
    /// The class of the message. The default is `transactional`.
    message_class: Validated<Option<MessageClass>>,
    /// The size of the message, in bytes. The default is 0.
    size_bytes: Validated<Option<Whole<0, SIZE_MAX>>>,
    /// Whether the message is a test. The default is false.
    test: Validated<Option<bool>>,
}

/// The route of a message.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
pub(crate) struct RouteResolution {
    /// The rule that matched; null if none did.
    rule: Nullable<RoutingRuleView>,
    /// The rules that were checked before and skipped, in order.
    passed_over: Vec<PassedOverRule>,
    /// The account that would send the message; null if there is none. Of several targets
    /// each message gets one, so the next message may get another.
    account: Nullable<ProviderAccountView>,
    /// Whether the sender's domain is verified on this account.
    domain_verified: bool,
    /// The targets of the rule, in order; empty if one account sends all its messages.
    targets: Vec<TargetResolution>,
    /// The fallbacks of the rule, in order.
    fallbacks: Vec<FallbackResolution>,
    /// Why a send would be refused: `NO_ACTIVE_PROVIDER` (in the region of the rule) or `DOMAIN_NOT_VERIFIED`; null
    /// if it would be accepted.
    refusal: Nullable<String>,
}

/// A target of the matching rule.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct TargetResolution {
    provider_account_id: Uuid,
    /// The weight that the rule gives it.
    weight: u32,
    /// The percent of the weight that counts now for the domain of the first recipient: below
    /// 100 if the rule prefers healthy targets and the mail of this one fails.
    health_percent: u8,
    /// The part of the rule's messages that it gets now, from 0 to 1.
    share: f64,
    /// Whether the sender's domain is verified on this account.
    domain_verified: bool,
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
    /// The state of its ramp: `notBegun`, `growing`, `held` or `finished`; null without one.
    ramp_state: Nullable<String>,
    /// Why this target gets no messages: `PROVIDER_INACTIVE`; `DOMAIN_NOT_VERIFIED` if the
    /// sender's domain is unverified on it; `REGION` if it is not in the rule's region;
    /// `RAMP_NOT_BEGUN`; null if it gets some.
    passed_over: Nullable<String>,
}

impl TargetResolution {
    fn of(explained: ExplainedTarget, usage: &[TargetUsage]) -> Self {
        let ExplainedTarget {
            target,
            health_percent,
            share,
            state,
        } = explained;
        let used = |window| target_usage::used(usage, target.account_id, window);
        let not_begun = (!target.takes_mail()).then_some("RAMP_NOT_BEGUN");
        let passed_over = state.passed_over.map(FallbackPassedOver::as_str);
        let ramp_state = target.ramp_stage.filter(|_| target.ramp.is_some());
        let ramp_state = ramp_state.map(|stage| stage.state.as_str().to_owned());
        Self {
            provider_account_id: target.account_id.0,
            weight: target.weight,
            health_percent,
            share,
            domain_verified: state.domain_verified,
            used_today: used(UsageWindow::Day),
            daily_cap: Nullable(target.daily_cap_now()),
            used_this_hour: used(UsageWindow::Hour),
            hourly_cap: Nullable(target.hourly_cap),
            ramp_state: Nullable(ramp_state),
            passed_over: Nullable(passed_over.or(not_begun).map(str::to_owned)),
        }
    }
}

/// A fallback of the matching rule.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct FallbackResolution {
    provider_account_id: Uuid,
    /// Whether the sender's domain is verified on this account.
    domain_verified: bool,
    /// Why this fallback is not used: `PROVIDER_INACTIVE`, `DOMAIN_NOT_VERIFIED` if the
    /// sender's domain is unverified on it, or `REGION` if it is not in the rule's region; null
    /// if it is used.
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
    /// Why the rule was skipped: `RULE_INACTIVE`, `SENDER_DOMAIN`, `TAGS`,
    /// `RECIPIENT_DOMAIN`, `RECIPIENT_MAILBOX_PROVIDER`, `MESSAGE_CLASS`, `SIZE`, `TEST` or
    /// `PROVIDER_INACTIVE`.
    reason: String,
}

impl From<(&RoutingRule, PassedOver)> for PassedOverRule {
    fn from((rule, reason): (&RoutingRule, PassedOver)) -> Self {
        Self {
            rule: rule.clone().into(),
            reason: reason.as_str().to_owned(),
        }
    }
}

fn refusal(why: RouteRefusal) -> String {
    let word = match why {
        RouteRefusal::NoActiveProvider | RouteRefusal::NoneInRegion(_) => "NO_ACTIVE_PROVIDER",
        RouteRefusal::DomainNotVerified(_) => "DOMAIN_NOT_VERIFIED",
    };
    word.to_owned()
}

impl ResolveRouteRequest {
    pub(crate) fn check(self, mut issues: Vec<Issue>) -> Result<RoutedMessage, Vec<Issue>> {
        let from = self.from.take("from", &mut issues);
        let to = self.to.take("to", &mut issues);
        let tags = self.tags.take("tags", &mut issues);
        let class = self.message_class.take("messageClass", &mut issues);
        let size = self.size_bytes.take("sizeBytes", &mut issues);
        let test = self.test.take("test", &mut issues);
        let (Some(from), Some(to), Some(tags), true) = (from, to, tags, issues.is_empty()) else {
            return Err(issues);
        };
        Ok(RoutedMessage {
            from,
            to: to.map(|recipients| recipients.0),
            tags: tags.unwrap_or_default().0,
            class: class.flatten().unwrap_or_default(),
            size_bytes: size.flatten().map_or(0, |size| u64::from(size.0)),
            is_test: test.flatten().unwrap_or_default(),
        })
    }
}

/// What is known of the message.
pub(crate) struct RoutedMessage {
    from: Mailbox,
    to: Option<Listed>,
    tags: Vec<Tag>,
    class: MessageClass,
    size_bytes: u64,
    is_test: bool,
}

impl RoutedMessage {
    /// Has the mailbox providers of the recipients looked up now, as far as they are not known.
    async fn look_up_mailbox_providers(
        &self,
        context: &Context,
        caller: &Caller,
    ) -> Result<(), Failure> {
        let recipients = self.to.iter().flat_map(|listed| &listed.0);
        let domains = recipients.map(|recipient| recipient.mailbox.address().domain());
        let domains = domains.map(str::to_ascii_lowercase).collect();
        let doing = "look up mailbox providers";
        let limiter = &context.sender_domains.limiter;
        let _permit = limiter
            .acquire_timeout(caller.organization_id(), doing)
            .await?;
        let cache = context.rules.snapshots.mailbox_providers();
        let resolver = MailboxProviderResolver {
            pool: context.pool.clone(),
            resolver: context.sender_domains.resolver.clone(),
            clock: context.rules.clock.clone(),
        };
        resolver.look_up_all(cache, domains).await?;
        Ok(())
    }

    /// Finds the message's route by a fresh snapshot.
    pub(crate) async fn explain(
        &self,
        context: &Context,
        caller: &Caller,
    ) -> Result<RouteResolution, Failure> {
        let organization_id = caller.organization_id();
        let snapshots = &context.rules.snapshots;
        let snapshot = snapshots.reload(organization_id).await?;
        if snapshot.looks_at_mailbox_providers() {
            self.look_up_mailbox_providers(context, caller).await?;
        }
        let mailbox_providers = snapshots.mailbox_providers();
        let to = self.to.as_ref();
        let domain = |index: usize| Some(to?.0.get(index)?.mailbox.address().domain());
        let request = RoutingRequest {
            sender: self.from.address(),
            tags: self.tags.iter().map(Tag::as_str).collect(),
            recipients: to.is_some().then_some(&domain),
            mailbox_providers: &|domain| mailbox_providers.find(domain),
            class: Some(self.class),
            size_bytes: Some(self.size_bytes),
            is_test: self.is_test,
            draw: snapshots.next_draw(),
        };
        let explained = routing::explain(&snapshot, &request);
        let rule = explained.rule;
        let targets = rule.map(|rule| targets::explain(&snapshot, rule, &request));
        let fallbacks = rule.map(|rule| routing::fallbacks(&snapshot, rule, &request));
        let fallbacks = fallbacks.unwrap_or_default().into_iter();
        let refusal = explained.route.as_ref().err().map(|why| refusal(*why));
        let passed_over = explained.passed_over.into_iter();
        let passed_over = passed_over.map(PassedOverRule::from).collect();
        let (account_id, rule_id) = (
            explained.account.map(|account| account.id),
            rule.map(|rule| rule.id),
        );
        let rule = rule.map(|rule| rule.clone().into());
        let domain_verified = explained.route.is_ok_and(|route| route.domain_verified);
        let doing = "find a message's route";
        let mut connection = context.pool.acquire().await.or_fault(doing)?;
        let account = match account_id {
            Some(id) => provider_account::store::find(&mut connection, organization_id, id).await?,
            None => None,
        };
        let targets = targets.unwrap_or_default();
        let usage = match rule_id {
            Some(id) if !targets.is_empty() => {
                target_usage::store::list(&mut connection, organization_id, id).await?
            }
            Some(_) | None => Vec::new(),
        };
        let targets = targets.into_iter();
        Ok(RouteResolution {
            rule: Nullable(rule),
            passed_over,
            account: Nullable(
                account.map(|account| ProviderAccountView::of(&context.accounts, account)),
            ),
            domain_verified,
            targets: targets
                .map(|target| TargetResolution::of(target, &usage))
                .collect(),
            fallbacks: fallbacks.map(FallbackResolution::from).collect(),
            refusal: Nullable(refusal),
        })
    }
}
