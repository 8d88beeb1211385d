//! Routing: which provider account takes a message. Pure: it decides over a
//! snapshot of the organization's accounts.
//!
//! Without routing rules the first active account (the oldest) is used, as the
//! contract says.

use std::collections::HashMap;

use crate::clock::Timestamp;
use crate::ids::ProviderAccountId;
use crate::organization::UnverifiedDomains;
use crate::provider::domain::DomainState;
use crate::provider::kind::ProviderType;

/// What routing needs to know of an organization.
#[derive(Debug, Clone)]
pub struct RoutingSnapshot {
    /// What a send from an unverified domain gets.
    pub unverified_domains: UnverifiedDomains,
    /// The active accounts, oldest first.
    pub accounts: Vec<RoutableAccount>,
}

/// An active account.
#[derive(Debug, Clone)]
pub struct RoutableAccount {
    /// Its id.
    pub id: ProviderAccountId,
    /// Its provider.
    pub provider_type: ProviderType,
    /// When it was connected.
    pub created_at: Timestamp,
    /// Whether its credentials can list its domains: where not, a domain that is
    /// not recorded is unknown rather than unverified.
    pub domains_visible: bool,
    /// The state of each recorded domain.
    pub domains: HashMap<String, DomainState>,
}

/// The account that takes a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The account.
    pub account_id: ProviderAccountId,
    /// Its provider.
    pub provider_type: ProviderType,
    /// Whether the sender's domain is verified on it.
    pub domain_verified: bool,
}

/// Why no account takes a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteRefusal {
    /// There is no active account.
    NoActiveProvider,
    /// The account that would take it does not have the sender's domain verified.
    DomainNotVerified(ProviderType),
}

impl RoutableAccount {
    /// What this account knows of a domain. A subdomain is covered by its own
    /// record alone.
    #[must_use]
    pub fn domain_state(&self, domain: &str) -> DomainState {
        match self.domains.get(domain) {
            Some(state) => *state,
            None if self.domains_visible => DomainState::Unverified,
            None => DomainState::Unknown,
        }
    }
}

/// The account for a message from `sender_domain`: the first active one.
///
/// # Errors
/// Why none takes it.
pub fn resolve(snapshot: &RoutingSnapshot, sender_domain: &str) -> Result<Route, RouteRefusal> {
    let account = snapshot
        .accounts
        .first()
        .ok_or(RouteRefusal::NoActiveProvider)?;
    route(snapshot, account, sender_domain)
        .ok_or(RouteRefusal::DomainNotVerified(account.provider_type))
}

/// The account that a message which was accepted goes through when its own is gone
/// or switched off: the first active one that takes its sender.
#[must_use]
pub fn stand_in(snapshot: &RoutingSnapshot, sender_domain: &str) -> Option<Route> {
    snapshot
        .accounts
        .iter()
        .find_map(|account| route(snapshot, account, sender_domain))
}

/// The route through one account, unless it refuses the sender's domain.
fn route(
    snapshot: &RoutingSnapshot,
    account: &RoutableAccount,
    sender_domain: &str,
) -> Option<Route> {
    let state = account.domain_state(sender_domain);
    let refuses = snapshot.unverified_domains == UnverifiedDomains::Reject;
    (state != DomainState::Unverified || !refuses).then_some(Route {
        account_id: account.id,
        provider_type: account.provider_type,
        domain_verified: state == DomainState::Verified,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::ids::Ids;

    fn account(state: Option<DomainState>, domains_visible: bool) -> RoutableAccount {
        let domains = state.map(|state| ("example.com".to_owned(), state));
        RoutableAccount {
            id: Ids::new(Clock::system()).next(),
            provider_type: ProviderType::Mailgun,
            created_at: Clock::system().now(),
            domains_visible,
            domains: domains.into_iter().collect(),
        }
    }

    fn routed(
        account: RoutableAccount,
        unverified_domains: UnverifiedDomains,
    ) -> Result<bool, RouteRefusal> {
        let snapshot = RoutingSnapshot {
            unverified_domains,
            accounts: vec![account],
        };
        resolve(&snapshot, "example.com").map(|route| route.domain_verified)
    }

    #[test]
    fn the_senders_domain_decides_by_what_the_account_knows_of_it() {
        use DomainState::{Unknown, Unverified, Verified};
        use UnverifiedDomains::{Accept, Reject};
        let refused = Err(RouteRefusal::DomainNotVerified(ProviderType::Mailgun));
        assert_eq!(routed(account(Some(Verified), true), Reject), Ok(true));
        assert_eq!(routed(account(Some(Unverified), true), Reject), refused);
        assert_eq!(routed(account(Some(Unverified), true), Accept), Ok(false));
        assert_eq!(routed(account(Some(Unknown), true), Reject), Ok(false));
        assert_eq!(routed(account(None, true), Reject), refused);
        assert_eq!(routed(account(None, false), Reject), Ok(false));
    }

    #[test]
    fn without_an_active_account_nothing_is_routed() {
        let snapshot = RoutingSnapshot {
            unverified_domains: UnverifiedDomains::Reject,
            accounts: vec![],
        };
        assert_eq!(
            resolve(&snapshot, "example.com"),
            Err(RouteRefusal::NoActiveProvider)
        );
    }
}
