//! Signing secrets. Waypost generates an endpoint's secret and shows it once. After a
//! rotation the old secret also signs for a while.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _};
use sha2::Sha256;
use uuid::Uuid;

use crate::crypto::seal::{Sealed, Sealer};
use crate::fault::Fault;
use crate::ids::{Ids, OrganizationId, WebhookEndpointId};
use crate::secret::{ExposeSecret, Secret};

/// The prefix of secrets in Standard Webhooks.
const PREFIX: &str = "whsec_";
const SECRET_BYTES: usize = 32;

/// A signing secret: `whsec_` and the base64 of 32 random bytes.
#[derive(Clone)]
pub struct SigningSecret {
    text: Secret,
    /// Keyed with the whole text.
    pub(super) by_text: Hmac<Sha256>,
    /// Keyed with the bytes after the prefix.
    pub(super) by_bytes: Hmac<Sha256>,
}

impl SigningSecret {
    /// Generates a random secret.
    #[must_use]
    pub fn generate(ids: &Ids) -> Self {
        let bytes: [u8; SECRET_BYTES] = ids.random_bytes();
        Self::of(format!("{PREFIX}{}", STANDARD.encode(bytes)), &bytes)
    }

    /// Parses a secret.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
        Some(Self::of(text.to_owned(), &bytes))
    }

    /// Seals the secret for its endpoint.
    #[must_use]
    pub fn seal(
        &self,
        sealer: &Sealer,
        organization_id: OrganizationId,
        endpoint_id: WebhookEndpointId,
    ) -> Vec<u8> {
        let row: Uuid = endpoint_id.0;
        let text = self.text.expose_secret().as_bytes();
        sealer.seal(organization_id, Sealed::WebhookSecret, row, text)
    }

    /// Opens a secret that [`SigningSecret::seal`] sealed for the same endpoint.
    ///
    /// # Errors
    /// A fault if it cannot be opened or is not a secret.
    pub fn open(
        sealer: &Sealer,
        organization_id: OrganizationId,
        endpoint_id: WebhookEndpointId,
        sealed: &[u8],
    ) -> Result<Self, Fault> {
        let plain = sealer.open(
            organization_id,
            Sealed::WebhookSecret,
            endpoint_id.0,
            sealed,
        )?;
        let secret = std::str::from_utf8(&plain).ok().and_then(Self::parse);
        secret
            .ok_or_else(|| Fault::internal("open a signing secret", "the content is not a secret"))
    }

    /// The text, to be shown once.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.text.expose_secret()
    }

    fn of(text: String, bytes: &[u8]) -> Self {
        Self {
            by_text: keyed(text.as_bytes()),
            by_bytes: keyed(bytes),
            text: Secret::from(text),
        }
    }
}

/// Secrets do not belong in logs.
impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret")
    }
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::crypto::seal::EXAMPLE_KEYS;

    #[test]
    fn secrets_are_random_and_have_the_form_of_standard_webhooks() {
        let ids = Ids::new(Clock::system());
        let (one, other) = (SigningSecret::generate(&ids), SigningSecret::generate(&ids));
        assert_ne!(one.expose(), other.expose());
        let bytes = STANDARD.decode(one.expose().strip_prefix("whsec_").unwrap());
        assert_eq!(bytes.unwrap().len(), 32);
        assert_eq!(format!("{one:?}"), "SigningSecret");
    }

    #[test]
    fn a_sealed_secret_opens_only_for_its_endpoint() {
        let ids = Ids::new(Clock::system());
        let sealer = Sealer::parse(EXAMPLE_KEYS, ids.clone()).unwrap();
        let (organization, endpoint) = (ids.next(), ids.next());
        let secret = SigningSecret::generate(&ids);
        let sealed = secret.seal(&sealer, organization, endpoint);
        let opened = SigningSecret::open(&sealer, organization, endpoint, &sealed);
        assert_eq!(opened.unwrap().expose(), secret.expose());
        assert!(SigningSecret::open(&sealer, organization, ids.next(), &sealed).is_err());
        assert!(SigningSecret::open(&sealer, ids.next(), endpoint, &sealed).is_err());
    }

    #[test]
    fn other_texts_are_not_secrets() {
        for text in ["", "whsec", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_!"] {
            assert!(SigningSecret::parse(text).is_none(), "{text}");
        }
    }
}
