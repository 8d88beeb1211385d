//! Routing rules: what they say, and making, changing and removing them.
//!
//! A rule names accounts, and accounts go. Removing one takes it out of every rule:
//! the first fallback moves up, and a rule that has none is switched off.

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
/// Fallbacks of one rule at the most.
pub const FALLBACKS_MAX: usize = 5;
/// Rules of one organization at the most: every message may ask all of them.
pub const RULES_MAX: u64 = 1_000;

/// A rule's record.
#[derive(Debug, Clone)]
pub struct RoutingRule {
    pub id: RoutingRuleId,
    pub organization_id: OrganizationId,
    pub terms: RuleTerms,
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// What a rule says.
#[derive(Debug, Clone)]
pub struct RuleTerms {
    pub name: Name,
    /// Higher ones are asked first.
    pub priority: u32,
    /// Whether it is asked at all.
    pub is_active: bool,
    /// The senders that it is for; all where nothing is said.
    pub sender_domain: Option<DomainPattern>,
    /// The tags of messages that it is for; all messages where there are none.
    pub tags: Vec<Tag>,
    /// How many of the tags a message must have.
    pub tag_match: TagMatch,
    /// The account that takes the messages.
    pub provider_account_id: ProviderAccountId,
    /// The accounts that take them when that one cannot, in order.
    pub fallbacks: Vec<ProviderAccountId>,
    /// What follows when the answer to a call was lost.
    pub on_unknown: OnUnknown,
}

/// Senders by their domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DomainPattern {
    Exact(String),
    /// Any subdomain of this domain, at any depth, and not the domain itself.
    Subdomains(String),
}

impl DomainPattern {
    /// Reads `example.com` or `*.example.com`. International names are understood.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix("*.") {
            Some(parent) => address::ascii_domain(parent).map(Self::Subdomains),
            None => address::ascii_domain(text).map(Self::Exact),
        }
    }

    /// Whether a domain, in lower-case ASCII, is one of these.
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

/// What follows when a provider's answer was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnUnknown {
    /// Evidence is awaited before the message is sent once more.
    Wait,
    /// It is sent once more at once.
    Resend,
    Fail,
}

macro_rules! wire_words {
    ($name:ident: $($variant:ident = $word:literal),+) => {
        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word in the database and on the wire.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            /// Reads the word.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str() == word)
            }
        }
    };
}

wire_words!(TagMatch: Any = "any", All = "all");
wire_words!(OnUnknown: Wait = "wait", Resend = "resend", Fail = "fail");

/// What of a rule is to change; what is absent stays.
#[derive(Debug, Default)]
pub struct RuleChange {
    pub name: Option<Name>,
    pub priority: Option<u32>,
    pub is_active: Option<bool>,
    pub sender_domain: Option<Option<DomainPattern>>,
    pub tags: Option<Vec<Tag>>,
    /// Another count of them.
    pub tag_match: Option<TagMatch>,
    pub provider_account_id: Option<ProviderAccountId>,
    pub fallbacks: Option<Vec<ProviderAccountId>>,
    pub on_unknown: Option<OnUnknown>,
}

impl RuleChange {
    /// The names of the fields that are to change, for the audit log.
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
        fn set<T>(place: &mut T, wanted: Option<T>) {
            if let Some(wanted) = wanted {
                *place = wanted;
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

/// Why a rule was not made or changed.
#[derive(Debug)]
pub enum RuleRefusal {
    /// There is no such rule.
    NotFound,
    /// Accounts that it names are not there.
    UnknownAccounts {
        /// Whether that of the rule itself is among them.
        main: bool,
        /// The places of the fallbacks that are.
        fallbacks: Vec<usize>,
    },
    /// The organization has as many rules as it may.
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

/// Works on the rules of organizations. Cheap to clone.
#[derive(Clone)]
pub struct Rules {
    pub pool: PgPool,
    pub snapshots: SnapshotCache,
    pub clock: Clock,
    pub ids: Ids,
}

impl Rules {
    /// Makes a rule.
    ///
    /// # Errors
    /// Why it was not made.
    pub async fn create(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        mut terms: RuleTerms,
        once: &Idempotent<'_, RoutingRule>,
    ) -> Result<RoutingRule, Failed<RuleRefusal>> {
        let doing = "make a routing rule";
        let mut transaction = once.begin(&self.pool, doing).await?;
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
        once.commit(transaction, &rule, doing).await?;
        self.snapshots.forget(organization_id).await;
        Ok(rule)
    }

    /// Changes a rule. The accounts that the change names must be there, and that
    /// of a rule that is active afterwards.
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
        // The removal of an account locks account and rules in the other order.
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
    /// A fallback that was tried already is none.
    fn name_each_account_once(&mut self) {
        let mut seen = vec![self.provider_account_id];
        self.fallbacks.retain(|id| {
            let is_new = !seen.contains(id);
            seen.push(*id);
            is_new
        });
    }
}

/// Insists that accounts are there, and keeps them there until the transaction
/// ends.
async fn require_known(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    main: Option<ProviderAccountId>,
    fallbacks: &[ProviderAccountId],
) -> Result<(), RuleRefusal> {
    let named: Vec<ProviderAccountId> = main.into_iter().chain(fallbacks.iter().copied()).collect();
    let known = store::hold_accounts(connection, organization_id, &named).await?;
    let main = main.is_some_and(|id| !known.contains(&id));
    let places = fallbacks.iter().enumerate();
    let fallbacks: Vec<usize> = places
        .filter(|(_, id)| !known.contains(id))
        .map(|(place, _)| place)
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
