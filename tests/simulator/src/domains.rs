//! Which domains a credential has, and which of them are verified.

use std::collections::HashMap;

use parking_lot::RwLock;

use crate::providers::Provider;

/// What every credential has until it is told otherwise.
const DEFAULT_DOMAINS: [&str; 3] = ["example.com", "mail.example.com", "unverified.example.net"];

/// Credentials beyond this number are not remembered.
const CREDENTIALS_MAX: usize = 10_000;

/// The domains by provider and credential (API key, account token, access key id).
#[derive(Default)]
pub(crate) struct Domains(RwLock<HashMap<(Provider, String), Vec<String>>>);

impl Domains {
    /// Returns false when there is no room for another credential.
    pub(crate) fn set(&self, provider: Provider, credential: &str, domains: Vec<String>) -> bool {
        let mut all = self.0.write();
        let key = (provider, credential.to_owned());
        if all.len() >= CREDENTIALS_MAX && !all.contains_key(&key) {
            return false;
        }
        all.insert(key, domains);
        true
    }

    /// Adds one domain to what the credential has, as a customer does by using it.
    pub(crate) fn note(&self, provider: Provider, credential: &str, domain: &str) {
        let mut domains = self.list(provider, credential);
        if !domains.iter().any(|known| known == domain) {
            domains.push(domain.to_owned());
            self.set(provider, credential, domains);
        }
    }

    pub(crate) fn list(&self, provider: Provider, credential: &str) -> Vec<String> {
        self.0
            .read()
            .get(&(provider, credential.to_owned()))
            .cloned()
            .unwrap_or_else(|| DEFAULT_DOMAINS.map(str::to_owned).to_vec())
    }
}

/// Whether a domain, or the domain of an address, may send.
pub(crate) fn is_verified(domain: &str) -> bool {
    !domain.to_ascii_lowercase().contains("unverified")
}
