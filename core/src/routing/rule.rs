//! Routing rules: their content, and creating, changing and removing them.
//!
//! A rule names one account, or shares its messages out between targets. When an account is
//! removed, it is taken out of every rule: if it was the only target, or the account of a rule
//! without targets, the first fallback moves up, and a rule without fallbacks is deactivated.

use std::fmt;

use super::conditions::{ConditionChange, Conditions};
use super::ramp::{self, RampBounds, RampBoundsChange};
use super::{region, store};
use crate::address;
use crate::audit::{self, AuditChange, Origin};
use crate::clock::{Clock, Timestamp};
use crate::crypto::seal::Sealer;
use crate::db::{self, OrFault, PgConnection, PgPool};
use crate::fault::Fault;
use crate::idempotency::single::{Failed, Idempotent};
use crate::ids::{Ids, OrganizationId, ProviderAccountId, RoutingRuleId};
use crate::organization;
use crate::provider::region::AccountRegion;
use crate::routing::snapshot_cache::SnapshotCache;
use crate::routing::target_health::Prefer;
use crate::routing::targets::{OverCap, Sticky, Target};
use crate::text::{Name, Tag};

/// The highest priority.
pub const PRIORITY_MAX: u32 = 1_000;
/// Fallbacks of one rule, at most.
pub const FALLBACKS_MAX: usize = 5;
/// Rules of one organization, at most: a message may be matched against all of them.
pub const RULES_MAX: u64 = 1_000;

/// A routing rule.
#[derive(Debug, Clone)]
pub struct RoutingRule {
    pub id: RoutingRuleId,
    pub organization_id: OrganizationId,
    pub terms: RuleTerms,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The content of a rule.
#[derive(Debug, Clone)]
pub struct RuleTerms {
    pub name: Name,
    /// Higher priorities are evaluated first.
    pub priority: u32,
    /// Whether the rule is evaluated.
    pub is_active: bool,
    /// The senders that the rule applies to; `None` for all.
    pub sender_domain: Option<DomainPattern>,
    /// The tags that the rule applies to; empty for all messages.
    pub tags: Vec<Tag>,
    /// How many of the tags a message must have.
    pub tag_match: TagMatch,
    /// What else it must be.
    pub conditions: Conditions,
    /// Where the accounts must be that send its messages; `None` for anywhere.
    pub region: Option<AccountRegion>,
    /// The account that sends the messages; of a rule with targets, that of the first.
    pub provider_account_id: ProviderAccountId,
    /// The accounts that share the messages, if not one account sends them all.
    pub targets: Vec<Target>,
    /// Whether the health of the targets counts besides their weights.
    pub prefer: Prefer,
    /// What the targets are chosen by.
    pub sticky: Sticky,
    /// What becomes of a message whose target has reached its cap.
    pub over_cap: OverCap,
    /// What the ramps of its targets mind.
    pub ramp_bounds: RampBounds,
    /// The accounts to try when that one, or none of the targets, can send, in order.
    pub fallbacks: Vec<ProviderAccountId>,
    /// What to do when the answer to a call is lost.
    pub on_unknown: OnUnknown,
}

/// A set of senders by domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DomainPattern {
    Exact(String),
    /// All subdomains of this domain, at any depth, without the domain itself.
    Subdomains(String),
}

impl DomainPattern {
    /// Parses `example.com` or `*.example.com`. Internationalized domains are converted
    /// to ASCII.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix("*.") {
            Some(parent) => address::ascii_domain(parent).map(Self::Subdomains),
            None => address::ascii_domain(text).map(Self::Exact),
        }
    }

    /// Whether a domain, in lower-case ASCII, matches.
    #[must_use]
    pub fn matches(&self, domain: &str) -> bool {
        match self {
            Self::Exact(own) => own == domain,
            Self::Subdomains(parent) => domain
                .strip_suffix(parent.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        }
    }
}

impl fmt::Display for DomainPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(domain) => f.write_str(domain),
            Self::Subdomains(parent) => write!(f, "*.{parent}"),
        }
    }
}

/// How many of a rule's tags a message must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagMatch {
    Any,
    All,
}

/// What to do when a provider's answer is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnUnknown {
    /// Wait for evidence before the message is sent again.
    Wait,
    /// Send it again at once.
    Resend,
    Fail,
}

macro_rules! wire_words {
    ($name:ident: $($variant:ident = $word:literal),+) => {
        impl $name {
            /// All values.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name in the database and in the API.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            /// Parses the name.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str() == word)
            }
        }
    };
}

pub(super) use wire_words;

wire_words!(TagMatch: Any = "any", All = "all");
wire_words!(OnUnknown: Wait = "wait", Resend = "resend", Fail = "fail");

/// Changes of a rule; `None` keeps a field.
#[derive(Debug, Default)]
pub struct RuleChange {
    pub name: Option<Name>,
    pub priority: Option<u32>,
    pub is_active: Option<bool>,
    pub sender_domain: Option<Option<DomainPattern>>,
    pub tags: Option<Vec<Tag>>,
    pub tag_match: Option<TagMatch>,
    pub conditions: ConditionChange,
    pub region: Option<Option<AccountRegion>>,
    /// One account instead of the targets.
    pub provider_account_id: Option<ProviderAccountId>,
    /// Targets instead of one account; at least one.
    pub targets: Option<Vec<Target>>,
    pub prefer: Option<Prefer>,
    pub sticky: Option<Sticky>,
    pub over_cap: Option<OverCap>,
    pub ramp_bounds: Option<RampBoundsChange>,
    pub fallbacks: Option<Vec<ProviderAccountId>>,
    pub on_unknown: Option<OnUnknown>,
}

impl RuleChange {
    /// The names of the changed fields, for the audit log.
    fn fields(&self) -> Vec<&'static str> {
        [
            self.name.is_some().then_some("name"),
            self.priority.is_some().then_some("priority"),
            self.is_active.is_some().then_some("isActive"),
            self.sender_domain.is_some().then_some("senderDomain"),
            self.tags.is_some().then_some("tags"),
            self.tag_match.is_some().then_some("tagMatch"),
            self.region.is_some().then_some("region"),
            self.provider_account_id
                .is_some()
                .then_some("providerAccountId"),
            self.targets.is_some().then_some("targets"),
            self.prefer.is_some().then_some("prefer"),
            self.sticky.is_some().then_some("sticky"),
            self.over_cap.is_some().then_some("overCap"),
            self.ramp_bounds.is_some().then_some("rampBounds"),
            self.fallbacks
                .is_some()
                .then_some("fallbackProviderAccountIds"),
            self.on_unknown.is_some().then_some("onUnknown"),
        ]
        .into_iter()
        .flatten()
        .chain(self.conditions.fields())
        .collect()
    }

    fn names_accounts(&self) -> bool {
        let is_given = self.provider_account_id.is_some() || self.targets.is_some();
        is_given || self.fallbacks.is_some()
    }

    fn apply(self, terms: &mut RuleTerms) {
        fn set<T>(field: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *field = value;
            }
        }
        set(&mut terms.name, self.name);
        set(&mut terms.priority, self.priority);
        set(&mut terms.is_active, self.is_active);
        set(&mut terms.sender_domain, self.sender_domain);
        set(&mut terms.tags, self.tags);
        set(&mut terms.tag_match, self.tag_match);
        self.conditions.apply(&mut terms.conditions);
        set(&mut terms.region, self.region);
        if let Some(account) = self.provider_account_id {
            terms.provider_account_id = account;
            terms.targets = Vec::new();
        }
        if let Some(targets) = self.targets {
            terms.set_targets(targets);
        }
        set(&mut terms.prefer, self.prefer);
        set(&mut terms.sticky, self.sticky);
        set(&mut terms.over_cap, self.over_cap);
        let bounds = self.ramp_bounds.unwrap_or_default();
        terms.ramp_bounds = bounds.apply(terms.ramp_bounds);
        set(&mut terms.fallbacks, self.fallbacks);
        set(&mut terms.on_unknown, self.on_unknown);
    }
}

/// Why a rule was not created or changed.
#[derive(Debug)]
pub enum RuleRefusal {
    NotFound,
    /// The rule names accounts that do not exist.
    UnknownAccounts {
        /// Whether the rule's own account is one of them.
        main: bool,
        /// The indices of the targets whose accounts do not exist.
        targets: Vec<usize>,
        /// The indices of the fallbacks that do not exist.
        fallbacks: Vec<usize>,
    },
    /// Accounts of the rule are not in its region.
    OutsideRegion {
        region: AccountRegion,
        /// Whether the rule's own account is one of them.
        main: bool,
        /// The indices of the targets.
        targets: Vec<usize>,
        /// The indices of the fallbacks.
        fallbacks: Vec<usize>,
    },
    /// No message has a size between the rule's sizes.
    NoSizes,
    /// The organization has [`RULES_MAX`] rules.
    TooMany,
    Fault(Fault),
}

impl From<Fault> for RuleRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<RuleRefusal> for Failed<RuleRefusal> {
    fn from(refusal: RuleRefusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Manages the rules of organizations. Cheap to clone.
#[derive(Clone)]
pub struct Rules {
    pub pool: PgPool,
    pub snapshots: SnapshotCache,
    pub clock: Clock,
    pub ids: Ids,
}

impl Rules {
    /// Creates a rule.
    ///
    /// # Errors
    /// Why it was not created.
    pub async fn create(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        mut terms: RuleTerms,
        idempotent: &Idempotent<'_, RoutingRule>,
    ) -> Result<RoutingRule, Failed<RuleRefusal>> {
        let doing = "create a routing rule";
        let mut transaction = idempotent.begin(&self.pool, doing).await?;
        if store::count(&mut transaction, organization_id).await? >= RULES_MAX {
            return Err(RuleRefusal::TooMany.into());
        }
        let sealer = self.snapshots.sealer();
        check(&mut transaction, sealer, organization_id, &terms).await?;
        terms.name_each_account_once();
        let now = self.clock.now();
        ramp::set_first_days(&mut terms.targets, &[], now.date_naive());
        let rule = RoutingRule {
            id: self.ids.next_at(now),
            organization_id,
            terms,
            created_at: now,
            updated_at: now,
        };
        store::insert(&mut transaction, &rule).await?;
        ramp::write(&mut transaction, &rule, &[], now).await?;
        let change = AuditChange::new("routing_rule.created", rule.id);
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        idempotent.commit(transaction, &rule, doing).await?;
        self.snapshots.forget(organization_id).await;
        Ok(rule)
    }

    /// Changes a rule. The accounts that the change names must exist, and so must the
    /// account of a rule that is active afterwards.
    ///
    /// # Errors
    /// Why it was not changed.
    pub async fn change(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: RoutingRuleId,
        wanted: RuleChange,
    ) -> Result<RoutingRule, RuleRefusal> {
        let doing = "change a routing rule";
        let mut transaction = db::begin(&self.pool, doing).await?;
        // Removing an account locks the account and the rules in the other order.
        organization::store::lock(&mut transaction, organization_id).await?;
        let mut rule = store::find_for_update(&mut transaction, organization_id, id)
            .await?
            .ok_or(RuleRefusal::NotFound)?;
        let fields = wanted.fields();
        let changes_accounts = wanted.names_accounts() || wanted.region.is_some();
        let mut named = NamedAccounts {
            main: wanted.provider_account_id,
            targets: wanted.targets.iter().flatten().copied().collect(),
            fallbacks: wanted.fallbacks.clone().unwrap_or_default(),
        };
        let before = rule.terms.targets.clone();
        wanted.apply(&mut rule.terms);
        if !rule.terms.conditions.has_sizes() {
            return Err(RuleRefusal::NoSizes);
        }
        if rule.terms.is_active && named.targets.is_empty() {
            named.main = Some(rule.terms.provider_account_id);
        }
        require_known(&mut transaction, organization_id, &named).await?;
        if changes_accounts {
            let sealer = self.snapshots.sealer();
            region::require_in_region(&mut transaction, sealer, organization_id, &rule.terms)
                .await?;
        }
        rule.terms.name_each_account_once();
        rule.updated_at = self.clock.now();
        let today = rule.updated_at.date_naive();
        ramp::set_first_days(&mut rule.terms.targets, &before, today);
        store::update(&mut transaction, &rule).await?;
        ramp::write(&mut transaction, &rule, &before, rule.updated_at).await?;
        let change = AuditChange::new("routing_rule.updated", id)
            .with(serde_json::json!({ "fields": fields }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction.commit().await.or_fault(doing)?;
        self.snapshots.forget(organization_id).await;
        Ok(rule)
    }

    /// Removes a rule.
    ///
    /// # Errors
    /// Why it was not removed.
    pub async fn remove(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: RoutingRuleId,
    ) -> Result<(), RuleRefusal> {
        let doing = "remove a routing rule";
        let mut transaction = db::begin(&self.pool, doing).await?;
        if !store::delete(&mut transaction, organization_id, id).await? {
            return Err(RuleRefusal::NotFound);
        }
        let change = AuditChange::new("routing_rule.deleted", id);
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction.commit().await.or_fault(doing)?;
        self.snapshots.forget(organization_id).await;
        Ok(())
    }

    async fn record(
        &self,
        connection: &mut PgConnection,
        organization_id: OrganizationId,
        origin: &Origin,
        change: &AuditChange,
    ) -> Result<(), Fault> {
        let now = self.clock.now();
        audit::store::insert(connection, organization_id, origin, change, &self.ids, now).await
    }
}

impl RuleTerms {
    /// A rule with the defaults: this account sends all messages.
    #[must_use]
    pub fn of_account(name: Name, account_id: ProviderAccountId) -> Self {
        Self {
            name,
            priority: 0,
            is_active: true,
            sender_domain: None,
            tags: Vec::new(),
            tag_match: TagMatch::Any,
            conditions: Conditions::default(),
            provider_account_id: account_id,
            targets: Vec::new(),
            region: None,
            prefer: Prefer::Weight,
            sticky: Sticky::None,
            over_cap: OverCap::Next,
            ramp_bounds: RampBounds::default(),
            fallbacks: Vec::new(),
            on_unknown: OnUnknown::Wait,
        }
    }

    /// The accounts that the rule names: its targets, or its account, and its fallbacks.
    pub fn accounts(&self) -> impl Iterator<Item = ProviderAccountId> + '_ {
        let own = self.targets.is_empty().then_some(self.provider_account_id);
        let targets = self.targets.iter().map(|target| target.account_id);
        own.into_iter()
            .chain(targets)
            .chain(self.fallbacks.iter().copied())
    }

    /// Shares the messages out between targets. Without any, one account sends them all.
    pub fn set_targets(&mut self, targets: Vec<Target>) {
        if let Some(first) = targets.first() {
            self.provider_account_id = first.account_id;
        }
        self.targets = targets;
    }

    /// Drops fallbacks that are named before.
    fn name_each_account_once(&mut self) {
        let mut seen = vec![self.provider_account_id];
        seen.extend(self.targets.iter().map(|target| target.account_id));
        self.fallbacks.retain(|id| {
            let is_new = !seen.contains(id);
            seen.push(*id);
            is_new
        });
    }
}

/// The accounts that a request names.
struct NamedAccounts {
    main: Option<ProviderAccountId>,
    targets: Vec<Target>,
    fallbacks: Vec<ProviderAccountId>,
}

impl NamedAccounts {
    fn of(terms: &RuleTerms) -> Self {
        let has_targets = !terms.targets.is_empty();
        Self {
            main: (!has_targets).then_some(terms.provider_account_id),
            targets: terms.targets.clone(),
            fallbacks: terms.fallbacks.clone(),
        }
    }
}

/// Checks whether a rule could be created.
///
/// # Errors
/// Why it could not.
pub(super) async fn check(
    connection: &mut PgConnection,
    sealer: &Sealer,
    organization_id: OrganizationId,
    terms: &RuleTerms,
) -> Result<(), RuleRefusal> {
    if !terms.conditions.has_sizes() {
        return Err(RuleRefusal::NoSizes);
    }
    require_known(connection, organization_id, &NamedAccounts::of(terms)).await?;
    region::require_in_region(connection, sealer, organization_id, terms).await
}

/// Checks that accounts exist, and locks them until the transaction ends.
async fn require_known(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    named: &NamedAccounts,
) -> Result<(), RuleRefusal> {
    let of_targets = named.targets.iter().map(|target| target.account_id);
    let of_targets: Vec<ProviderAccountId> = of_targets.collect();
    let all = named.main.iter().chain(&of_targets).chain(&named.fallbacks);
    let all: Vec<ProviderAccountId> = all.copied().collect();
    let known = store::lock_accounts(connection, organization_id, &all).await?;
    let unknown = |ids: &[ProviderAccountId]| -> Vec<usize> {
        let indexed = ids.iter().enumerate();
        let unknown = indexed.filter(|(_, id)| !known.contains(id));
        unknown.map(|(index, _)| index).collect()
    };
    let main = named.main.is_some_and(|id| !known.contains(&id));
    let (targets, fallbacks) = (unknown(&of_targets), unknown(&named.fallbacks));
    if main || !targets.is_empty() || !fallbacks.is_empty() {
        return Err(RuleRefusal::UnknownAccounts {
            main,
            targets,
            fallbacks,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_domain_or_all_its_subdomains() {
        let matches =
            |pattern: &str, domain| DomainPattern::parse(pattern).unwrap().matches(domain);
        assert!(matches("example.com", "example.com"));
        assert!(matches("Example.COM", "example.com"));
        assert!(!matches("example.com", "mail.example.com"));
        assert!(matches("*.example.com", "mail.example.com"));
        assert!(matches("*.example.com", "a.b.example.com"));
        assert!(!matches("*.example.com", "example.com"));
        assert!(!matches("*.example.com", "badexample.com"));
        assert!(!matches("*.example.com", "example.com.evil.org"));
        assert_eq!(
            DomainPattern::parse("*.bücher.example")
                .unwrap()
                .to_string(),
            "*.xn--bcher-kva.example"
        );
        for text in [
            "",
            "*",
            "*.",
            "*.com",
            "com",
            "a@example.com",
            "*.*.example.com",
            "x.*.com",
        ] {
            assert_eq!(DomainPattern::parse(text), None, "{text}");
        }
    }
}
