//! What a simulated provider does with a test. A test is a message for which no provider is
//! called; everything else is as for a live message.

use uuid::Uuid;

/// What becomes of a test: `testOutcome` in the API.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::Type)]
#[sqlx(type_name = "test_outcome", rename_all = "lowercase")]
pub enum SimulatedOutcome {
    /// Accepted and delivered.
    #[default]
    Delivered,
    /// Accepted; then a hard bounce.
    Bounced,
    /// Delivered; then the recipient complains.
    Complained,
    /// Accepted, deferred by the receiving server, and delivered.
    Deferred,
    /// Refused by the provider.
    Failed,
    /// Dropped as if every recipient was suppressed.
    Suppressed,
    /// The answer to the first call is lost; a later call is accepted.
    Unknown,
    /// The first call fails; the next account, or a later call, is accepted.
    Failover,
}

impl SimulatedOutcome {
    /// All outcomes.
    pub const ALL: [Self; 8] = [
        Self::Delivered,
        Self::Bounced,
        Self::Complained,
        Self::Deferred,
        Self::Failed,
        Self::Suppressed,
        Self::Unknown,
        Self::Failover,
    ];

    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Bounced => "bounced",
            Self::Complained => "complained",
            Self::Deferred => "deferred",
            Self::Failed => "failed",
            Self::Suppressed => "suppressed",
            Self::Unknown => "unknown",
            Self::Failover => "failover",
        }
    }
}

/// The beginning of the ids that a simulated provider gives.
const ID_PREFIX: &str = "test-";

/// The provider's message id of a test.
#[must_use]
pub fn provider_message_id(of: Uuid) -> String {
    format!("{ID_PREFIX}{of}")
}

/// Whether a provider's message id is one of a test. No provider reports such an id.
#[must_use]
pub fn is_simulated_id(provider_message_id: &str) -> bool {
    let rest = provider_message_id.strip_prefix(ID_PREFIX);
    rest.is_some_and(|rest| Uuid::try_parse(rest).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_of_tests_are_simulated() {
        let id = provider_message_id(Uuid::from_u128(7));
        assert!(is_simulated_id(&id), "{id}");
        for other in [
            "",
            "test-",
            "test-7",
            "TEST-x",
            "vTq7hGw3QmS8kLx0ZyN2Ug",
            &id[5..],
        ] {
            assert!(!is_simulated_id(other), "{other}");
        }
    }
}
