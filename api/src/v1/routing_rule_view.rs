//! A routing rule as the API shows it.

use poem_openapi::Object;
use uuid::Uuid;
use waypost_core::routing::ramp::{Ramp, RampBounds};
use waypost_core::routing::rule::RoutingRule;
use waypost_core::routing::targets::Target;
use waypost_core::text::Tag;

use crate::response::{Nullable, Time};

/// A routing rule. A message must match all conditions of the rule; an absent condition
/// matches every message.
#[derive(Debug, Object)]
#[oai(rename = "RoutingRule", rename_all = "camelCase")]
pub(crate) struct RoutingRuleView {
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
    /// The domains of the recipients, such as `example.com` or `*.example.com`: every
    /// recipient of a message must match one of them. Empty for all recipients.
    recipient_domains: Vec<String>,
    /// The mailbox providers of the recipients, by the MX records of their domains: every
    /// recipient of a message must have one of them. `other` are all that are not named. Empty
    /// for all recipients. A domain that is not known yet matches none: it is looked up after
    /// the first message to it.
    recipient_mailbox_providers: Vec<String>,
    /// The class that messages have: `transactional` or `bulk`; null for both.
    message_class: Nullable<String>,
    /// The smallest size of messages, in bytes: subject, bodies and decoded attachments. What
    /// single recipients have instead does not count. Null for no bound.
    min_size_bytes: Nullable<u32>,
    /// The largest size of messages, in bytes; null for no bound.
    max_size_bytes: Nullable<u32>,
    /// Whether the rule is for tests only (true) or for live messages only (false); null for
    /// both.
    test: Nullable<bool>,
    /// The region that accounts must be in to send the messages: `eu` or `us`; null for
    /// anywhere. Accounts outside of it are skipped, whatever else fails.
    region: Nullable<String>,
    /// The account that sends the messages; of a rule with targets, that of the first.
    provider_account_id: Uuid,
    /// The accounts that share the messages; empty if one account sends them all.
    targets: Vec<RoutingTargetView>,
    /// Which messages always have the same target: `none`, those to one `recipientDomain`
    /// (of the first recipient), or those of one `sender`.
    sticky: String,
    /// Whether targets share the messages by their `weight` alone, or also by their `health`: the
    /// weight of a target whose mail fails is lowered until its mail succeeds again.
    prefer: String,
    /// What becomes of a message whose target has reached its cap: the `next` target or
    /// fallback sends it, or it waits (`wait`).
    over_cap: String,
    /// The bounds of the rates of an account, beyond which its ramp does not grow.
    ramp_bounds: RoutingRampBoundsView,
    /// The accounts that send if this account, or none of the targets, can, in this order.
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
        let conditions = terms.conditions;
        let patterns = conditions.recipient_domains.iter();
        let providers = conditions.recipient_mailbox_providers.iter();
        let class = conditions.message_class;
        Self {
            id: rule.id.0,
            organization_id: rule.organization_id.0,
            name: terms.name.into_string(),
            priority: terms.priority,
            is_active: terms.is_active,
            sender_domain: Nullable(terms.sender_domain.map(|pattern| pattern.to_string())),
            tags: terms.tags.into_iter().map(Tag::into_string).collect(),
            tag_match: terms.tag_match.as_str().to_owned(),
            recipient_domains: patterns.map(|pattern| pattern.to_string()).collect(),
            recipient_mailbox_providers: providers
                .map(|provider| provider.as_str().to_owned())
                .collect(),
            message_class: Nullable(class.map(|class| class.as_str().to_owned())),
            min_size_bytes: Nullable(conditions.min_size_bytes),
            max_size_bytes: Nullable(conditions.max_size_bytes),
            test: Nullable(conditions.test),
            region: Nullable(terms.region.map(|region| region.as_str().to_owned())),
            provider_account_id: terms.provider_account_id.0,
            targets: terms.targets.into_iter().map(Into::into).collect(),
            prefer: terms.prefer.as_str().to_owned(),
            sticky: terms.sticky.as_str().to_owned(),
            over_cap: terms.over_cap.as_str().to_owned(),
            ramp_bounds: terms.ramp_bounds.into(),
            fallback_provider_account_ids: terms.fallbacks.into_iter().map(|id| id.0).collect(),
            on_unknown: terms.on_unknown.as_str().to_owned(),
            created_at: Time(rule.created_at),
            updated_at: Time(rule.updated_at),
        }
    }
}

/// An account that gets a part of a rule's messages.
#[derive(Debug, Object)]
#[oai(rename = "RoutingTarget", rename_all = "camelCase")]
struct RoutingTargetView {
    provider_account_id: Uuid,
    /// 1 to 1,000. Each account gets its weight's part of the messages.
    weight: u32,
    /// The most recipients of a day in UTC; null for no cap.
    daily_cap: Nullable<u32>,
    /// The most recipients of an hour; null for no cap.
    hourly_cap: Nullable<u32>,
    /// How its daily cap grows; null if it does not.
    ramp: Nullable<RoutingRampView>,
}

impl From<Target> for RoutingTargetView {
    fn from(target: Target) -> Self {
        Self {
            provider_account_id: target.account_id.0,
            weight: target.weight,
            daily_cap: Nullable(target.daily_cap),
            hourly_cap: Nullable(target.hourly_cap),
            ramp: Nullable(target.ramp.map(Into::into)),
        }
    }
}

/// How the daily cap of a target grows, so that mailbox providers get to know a new account.
#[derive(Debug, Object)]
#[oai(rename = "RoutingRamp", rename_all = "camelCase")]
struct RoutingRampView {
    /// The most recipients of the first day.
    start: u32,
    /// What each step multiplies the cap by, 1.01 to 10.
    factor: f64,
    /// The days from one step to the next, 1 to 30.
    every_days: u32,
    /// The first day, in UTC; before it the target gets nothing.
    from: String,
}

impl From<Ramp> for RoutingRampView {
    fn from(ramp: Ramp) -> Self {
        Self {
            start: ramp.start,
            factor: ramp.factor,
            every_days: ramp.every_days,
            from: ramp.from.map(|day| day.to_string()).unwrap_or_default(),
        }
    }
}

/// The bounds of the rates of an account, for all its mail, beyond which the ramps of a rule do
/// not grow.
#[derive(Debug, Object)]
#[oai(rename = "RoutingRampBounds", rename_all = "camelCase")]
struct RoutingRampBoundsView {
    /// The most bounces, as a part of the sent mails.
    bounce_rate: f64,
    /// The most complaints, as a part of the delivered mails.
    complaint_rate: f64,
}

impl From<RampBounds> for RoutingRampBoundsView {
    fn from(bounds: RampBounds) -> Self {
        Self {
            bounce_rate: bounds.bounce_rate,
            complaint_rate: bounds.complaint_rate,
        }
    }
}
