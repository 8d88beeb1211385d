//! Messages that name their account: it sends them, and no other.

use super::{Route, RoutingRequest, RoutingSnapshot, route};
use crate::ids::ProviderAccountId;
use crate::provider::kind::ProviderType;

/// Why the account that a message names cannot take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PinnedRefusal {
    /// The organization has no such account, or it is not active.
    NotActive(ProviderAccountId),
    /// The sender's domain is not verified at the account.
    DomainNotVerified(ProviderAccountId, ProviderType),
}

/// The route through the account that a message names. No rule matters.
///
/// # Errors
/// Why the account cannot take the message.
pub fn resolve(
    snapshot: &RoutingSnapshot,
    id: ProviderAccountId,
    request: &RoutingRequest<'_>,
) -> Result<Route, PinnedRefusal> {
    let account = snapshot.account(id).ok_or(PinnedRefusal::NotActive(id))?;
    route(snapshot, account, None, request)
        .ok_or(PinnedRefusal::DomainNotVerified(id, account.provider_type))
}
