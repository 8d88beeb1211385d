//! The account that reported an event.

pub(super) mod store;

use crate::ids::{OrganizationId, ProviderAccountId};
use crate::provider::kind::ProviderType;

/// The account that reported an event.
#[derive(Debug, Clone)]
pub struct EventSource {
    pub organization_id: OrganizationId,
    pub account_id: ProviderAccountId,
    pub provider_type: ProviderType,
    /// Whether no provider reported it: it is about tests, which count nowhere and suppress
    /// nobody.
    pub is_test: bool,
    /// The sealed secrets that verified the request; `None` if the account is already
    /// marked as verified.
    pub first_verified_with: Option<Vec<u8>>,
}
