//! Rules that prefer healthy targets: the weight of an account that does badly is lowered, for
//! all mail or for mail to a domain, and raised again in steps.
//!
//! The scheduler rates the accounts each minute ([`rating`]) and keeps the factors in
//! PostgreSQL; routing snapshots contain them where a rule asks for them. It never takes an
//! account out: that is for circuit breakers.

pub mod rating;
mod store;

use std::collections::HashMap;

use super::rule::{RoutingRule, wire_words};
use crate::db::PgConnection;
use crate::fault::Fault;
use crate::ids::{OrganizationId, ProviderAccountId};

/// What the targets of a rule are chosen by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefer {
    /// Their weights alone.
    Weight,
    /// Their weights, lowered for accounts that do badly.
    Health,
}

wire_words!(Prefer: Weight = "weight", Health = "health");

/// The percent of a weight that is not lowered.
pub const FULL_PERCENT: u8 = 100;

/// What percent of its weight each account has. Accounts that are missing have all of it.
#[derive(Debug, Clone, Default)]
pub struct HealthFactors {
    /// By the domain of a recipient; of all domains under the empty text.
    by_account: HashMap<ProviderAccountId, HashMap<String, u8>>,
}

impl HealthFactors {
    /// The percent for mail to a domain, or to one that is not known.
    #[must_use]
    pub fn percent(&self, account: ProviderAccountId, domain: Option<&str>) -> u8 {
        let Some(domains) = self.by_account.get(&account) else {
            return FULL_PERCENT;
        };
        let of = |domain: &str| domains.get(domain).copied().unwrap_or(FULL_PERCENT);
        let own = domain.map_or(FULL_PERCENT, |domain| of(&domain.to_ascii_lowercase()));
        own.min(of(""))
    }

    fn insert(&mut self, account: ProviderAccountId, domain: String, percent: u8) {
        let domains = self.by_account.entry(account).or_default();
        domains.insert(domain, percent);
    }
}

/// The health of an organization's accounts; read only if one of its rules prefers healthy targets.
pub(super) async fn of_rules(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    rules: &[RoutingRule],
) -> Result<HealthFactors, Fault> {
    let mut rules = rules.iter();
    if rules.any(|rule| rule.terms.prefer == Prefer::Health) {
        store::list(connection, organization_id).await
    } else {
        Ok(HealthFactors::default())
    }
}
