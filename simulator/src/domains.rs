//! The domains of a credential, and which of them are verified.
//!
//! A domain that was created here is pending until its provider is asked to verify it.
//! SES verifies by itself: the first request sees it pending, the next one verified.
//! Domains whose name contains `unverified` are never verified.

use std::collections::HashMap;

use parking_lot::RwLock;

use crate::providers::Provider;

/// The domains of a credential that was not configured.
const DEFAULT_DOMAINS: [&str; 3] = ["example.com", "mail.example.com", "unverified.example.net"];

/// Further credentials are rejected.
const CREDENTIALS_MAX: usize = 10_000;

/// The domains by provider and credential (API key, account token, access key id).
#[derive(Default)]
pub(crate) struct Domains(RwLock<HashMap<(Provider, String), CredentialDomains>>);

/// The domains of one credential. A removed domain leaves an empty slot, so that the
/// numbers of the others stay the same.
#[derive(Clone)]
struct CredentialDomains(Vec<Option<Domain>>);

#[derive(Clone)]
struct Domain {
    name: String,
    /// Created, and not verified since.
    is_pending: bool,
}

impl CredentialDomains {
    fn of(names: impl IntoIterator<Item = String>) -> Self {
        let slots = names.into_iter().map(|name| {
            let is_pending = false;
            Some(Domain { name, is_pending })
        });
        Self(slots.collect())
    }

    fn slot(&mut self, name: &str) -> Option<&mut Option<Domain>> {
        let is_it = |slot: &&mut Option<Domain>| {
            let domain = slot.as_ref();
            domain.is_some_and(|domain| domain.name.eq_ignore_ascii_case(name))
        };
        self.0.iter_mut().find(is_it)
    }
}

impl Default for CredentialDomains {
    fn default() -> Self {
        Self::of(DEFAULT_DOMAINS.map(str::to_owned))
    }
}

impl Domains {
    /// Returns false if the limit of credentials is reached.
    pub(crate) fn set(&self, provider: Provider, credential: &str, domains: Vec<String>) -> bool {
        self.change(provider, credential, |own| {
            *own = CredentialDomains::of(domains)
        })
        .is_some()
    }

    /// Adds a domain on its first use, unless the credential has it.
    pub(crate) fn add_used(&self, provider: Provider, credential: &str, domain: &str) {
        if !self.has(provider, credential, domain) {
            self.change(provider, credential, |own| {
                let is_pending = false;
                let name = domain.to_owned();
                own.0.push(Some(Domain { name, is_pending }));
            });
        }
    }

    /// Creates a domain and returns its number; `None` if it exists.
    pub(crate) fn create(
        &self,
        provider: Provider,
        credential: &str,
        domain: &str,
    ) -> Option<usize> {
        self.change(provider, credential, |own| {
            if own.slot(domain).is_some() {
                return None;
            }
            let name = domain.to_ascii_lowercase();
            own.0.push(Some(Domain {
                name,
                is_pending: true,
            }));
            Some(own.0.len())
        })?
    }

    /// Returns false if the domain did not exist.
    pub(crate) fn remove(&self, provider: Provider, credential: &str, domain: &str) -> bool {
        let removed = self.change(provider, credential, |own| {
            own.slot(domain).and_then(Option::take).is_some()
        });
        removed == Some(true)
    }

    /// Verifies a domain: it is no longer pending.
    pub(crate) fn verify(&self, provider: Provider, credential: &str, domain: &str) {
        self.change(provider, credential, |own| {
            if let Some(Some(domain)) = own.slot(domain) {
                domain.is_pending = false;
            }
        });
    }

    pub(crate) fn has(&self, provider: Provider, credential: &str, domain: &str) -> bool {
        let own = self.own(provider, credential);
        let mut all = own.0.iter().flatten();
        all.any(|known| known.name.eq_ignore_ascii_case(domain))
    }

    /// Whether a domain of the credential may send.
    pub(crate) fn is_verified(&self, provider: Provider, credential: &str, domain: &str) -> bool {
        let own = self.own(provider, credential);
        let is_pending =
            |known: &Domain| known.name.eq_ignore_ascii_case(domain) && known.is_pending;
        is_verified(domain) && !own.0.iter().flatten().any(is_pending)
    }

    pub(crate) fn list(&self, provider: Provider, credential: &str) -> Vec<String> {
        let own = self.own(provider, credential).0.into_iter().flatten();
        own.map(|domain| domain.name).collect()
    }

    /// The domains with their numbers, from 1.
    pub(crate) fn numbered(&self, provider: Provider, credential: &str) -> Vec<(usize, String)> {
        let own = self.own(provider, credential).0.into_iter().enumerate();
        own.filter_map(|(at, domain)| Some((at + 1, domain?.name)))
            .collect()
    }

    fn own(&self, provider: Provider, credential: &str) -> CredentialDomains {
        let all = self.0.read();
        let own = all.get(&(provider, credential.to_owned()));
        own.cloned().unwrap_or_default()
    }

    /// `None` if the limit of credentials is reached.
    fn change<T>(
        &self,
        provider: Provider,
        credential: &str,
        change: impl FnOnce(&mut CredentialDomains) -> T,
    ) -> Option<T> {
        let mut all = self.0.write();
        let key = (provider, credential.to_owned());
        if all.len() >= CREDENTIALS_MAX && !all.contains_key(&key) {
            return None;
        }
        Some(change(all.entry(key).or_default()))
    }
}

/// Whether a domain, or the domain of an address, can be verified.
pub(crate) fn is_verified(domain: &str) -> bool {
    !domain.to_ascii_lowercase().contains("unverified")
}

/// Whether a domain of this name may be created: it is a domain name without `invalid`.
pub(crate) fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    text.contains('.')
        && !text.contains("invalid")
        && text.len() <= 253
        && text.bytes().all(is_letter)
}
