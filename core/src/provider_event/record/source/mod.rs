//! The account whose provider tells something.

pub(super) mod store;

use crate::ids::{OrganizationId, ProviderAccountId};
use crate::provider::kind::ProviderType;

/// The account whose provider tells something.
#[derive(Debug, Clone)]
pub struct EventSource {
    pub organization_id: OrganizationId,
    pub account_id: ProviderAccountId,
    pub provider_type: ProviderType,
    /// The sealed secrets that the request was verified with, where that has not
    /// been remembered yet.
    pub first_verified_with: Option<Vec<u8>>,
}
