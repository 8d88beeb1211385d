//! Routing rules: their content, and creating, changing and removing them.
//!
//! When an account is removed, it is taken out of every rule: the first fallback moves
//! up, and a rule without fallbacks is deactivated.

use std::fmt;

use super::store;
use crate::address;
use crate::audit::{self, AuditChange, Origin};
use crate::clock::{Clock, Timestamp};
use crate::db::{self, OrFault, PgConnection, PgPool};
use crate::fault::Fault;
use crate::idempotency::single::{Failed, Idempotent};
use crate::ids::{Ids, OrganizationId, ProviderAccountId, RoutingRuleId};
use crate::organization;
use crate::routing::snapshot_cache::SnapshotCache;
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
    /// The account that sends the messages.
    pub provider_account_id: ProviderAccountId,
    /// The accounts to try when that one cannot send, in order.
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
    pub provider_account_id: Option<ProviderAccountId>,
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
            self.provider_account_id
                .is_some()
                .then_some("providerAccountId"),
            self.fallbacks
                .is_some()
                .then_some("fallbackProviderAccountIds"),
            self.on_unknown.is_some().then_some("onUnknown"),
        ]
        .into_iter()
        .flatten()
        .collect()
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
        set(&mut terms.provider_account_id, self.provider_account_id);
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
        /// The indices of the fallbacks that do not exist.
        fallbacks: Vec<usize>,
    },
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
        let main = Some(terms.provider_account_id);
        require_known(&mut transaction, organization_id, main, &terms.fallbacks).await?;
        terms.name_each_account_once();
        let now = self.clock.now();
        let rule = RoutingRule {
            id: self.ids.next_at(now),
            organization_id,
            terms,
            created_at: now,
            updated_at: now,
        };
        store::insert(&mut transaction, &rule).await?;
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
        let named = wanted.provider_account_id.is_some();
        let fallbacks = wanted.fallbacks.clone().unwrap_or_default();
        wanted.apply(&mut rule.terms);
        let main = (named || rule.terms.is_active).then_some(rule.terms.provider_account_id);
        require_known(&mut transaction, organization_id, main, &fallbacks).await?;
        rule.terms.name_each_account_once();
        rule.updated_at = self.clock.now();
        store::update(&mut transaction, &rule).await?;
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
    /// Drops fallbacks that are named before.
    fn name_each_account_once(&mut self) {
        let mut seen = vec![self.provider_account_id];
        self.fallbacks.retain(|id| {
            let is_new = !seen.contains(id);
            seen.push(*id);
            is_new
        });
    }
}

/// Checks that accounts exist, and locks them until the transaction ends.
async fn require_known(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    main: Option<ProviderAccountId>,
    fallbacks: &[ProviderAccountId],
) -> Result<(), RuleRefusal> {
    let named: Vec<ProviderAccountId> = main.into_iter().chain(fallbacks.iter().copied()).collect();
    let known = store::lock_accounts(connection, organization_id, &named).await?;
    let main = main.is_some_and(|id| !known.contains(&id));
    let indexed = fallbacks.iter().enumerate();
    let fallbacks: Vec<usize> = indexed
        .filter(|(_, id)| !known.contains(id))
        .map(|(index, _)| index)
        .collect();
    if main || !fallbacks.is_empty() {
        return Err(RuleRefusal::UnknownAccounts { main, fallbacks });
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
