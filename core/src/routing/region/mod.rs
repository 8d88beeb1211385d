//! Rules with a region: no account outside of it sends their messages, neither one that the
//! rule names nor a substitute.
//!
//! The accounts that a rule names must be in its region when it is created or changed. One
//! that leaves it later, by new credentials, is passed over. Such a rule decides even if no
//! account is left: a later rule, or the oldest account, might send its messages from
//! elsewhere.

mod store;

use tracing::error;

use super::rule::{RoutingRule, RuleRefusal, RuleTerms};
use super::{RoutableAccount, RoutingRequest, RoutingSnapshot, route};
use crate::crypto::seal::Sealer;
use crate::db::PgConnection;
use crate::ids::{OrganizationId, ProviderAccountId};

impl RuleTerms {
    /// Whether an account may send the rule's messages.
    pub(super) fn allows(&self, account: &RoutableAccount) -> bool {
        self.region
            .is_none_or(|region| account.region == Some(region))
    }
}

impl RoutingSnapshot {
    /// Reads the regions of the accounts from their credentials, if a rule has a region. An
    /// account whose credentials cannot be decrypted is in none.
    pub(super) fn read_regions(&mut self, organization_id: OrganizationId, sealer: &Sealer) {
        if self.rules.iter().all(|rule| rule.terms.region.is_none()) {
            return;
        }
        for account in &mut self.accounts {
            let (id, kind) = (account.id, account.provider_type);
            match account.credentials.open(sealer, organization_id, id, kind) {
                Ok(credentials) => account.region = credentials.region(),
                Err(fault) => {
                    error!(provider_account.id = %id, cause = fault.chain(), "The region of an account is not known: its credentials could not be decrypted");
                }
            }
        }
    }
}

/// The account of a rule with a region if none that the rule names first may send: a fallback,
/// or the oldest account in the region.
pub(super) fn substitute<'a>(
    rule: &RoutingRule,
    snapshot: &'a RoutingSnapshot,
    request: &RoutingRequest<'_>,
) -> Option<&'a RoutableAccount> {
    rule.terms.region?;
    let fallbacks = rule.terms.fallbacks.iter();
    fallbacks
        .filter_map(|id| snapshot.account(*id))
        .chain(&snapshot.accounts)
        .filter(|account| rule.terms.allows(account))
        .find(|account| route(snapshot, account, None, request).is_some())
}

/// Checks that the accounts of a rule are in its region.
pub(super) async fn require_in_region(
    connection: &mut PgConnection,
    sealer: &Sealer,
    organization_id: OrganizationId,
    terms: &RuleTerms,
) -> Result<(), RuleRefusal> {
    let Some(region) = terms.region else {
        return Ok(());
    };
    let named: Vec<ProviderAccountId> = terms.accounts().collect();
    let found = store::list_credentials(connection, organization_id, &named).await?;
    let mut outside = Vec::new();
    for (id, kind, credentials) in found {
        let credentials = credentials.open(sealer, organization_id, id, kind)?;
        if credentials.region() != Some(region) {
            outside.push(id);
        }
    }
    if outside.is_empty() {
        return Ok(());
    }
    let places = |ids: &mut dyn Iterator<Item = ProviderAccountId>| -> Vec<usize> {
        let indexed = ids.enumerate();
        let indexed = indexed.filter(|(_, id)| outside.contains(id));
        indexed.map(|(index, _)| index).collect()
    };
    let mut targets = terms.targets.iter().map(|target| target.account_id);
    Err(RuleRefusal::OutsideRegion {
        region,
        main: terms.targets.is_empty() && outside.contains(&terms.provider_account_id),
        targets: places(&mut targets),
        fallbacks: places(&mut terms.fallbacks.iter().copied()),
    })
}
