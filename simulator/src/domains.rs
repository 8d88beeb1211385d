//! Which domains a credential has, and which of them are verified.
//!
//! A domain that was created here waits until its provider is asked to look at it (SES looks by
//! itself: the first who asks is told that it waits, the next that it is verified). Domains that
//! say they are `unverified` stay so.

use std::collections::HashMap;

use parking_lot::RwLock;

use crate::providers::Provider;

/// What every credential has until it is told otherwise.
const DEFAULT_DOMAINS: [&str; 3] = ["example.com", "mail.example.com", "unverified.example.net"];

/// Credentials beyond this number are not remembered.
const CREDENTIALS_MAX: usize = 10_000;

/// The domains by provider and credential (API key, account token, access key id).
#[derive(Default)]
pub(crate) struct Domains(RwLock<HashMap<(Provider, String), Own>>);

/// One credential's domains. A place stays empty when its domain is removed, so that the numbers
/// of the others hold.
#[derive(Clone)]
struct Own(Vec<Option<Domain>>);

#[derive(Clone)]
struct Domain {
    name: String,
    /// Nobody has looked at it since it was created.
    waits: bool,
}

impl Own {
    fn of(names: impl IntoIterator<Item = String>) -> Self {
        let places = names.into_iter().map(|name| {
            let waits = false;
            Some(Domain { name, waits })
        });
        Self(places.collect())
    }

    fn place(&mut self, name: &str) -> Option<&mut Option<Domain>> {
        let is_it = |place: &&mut Option<Domain>| {
            let domain = place.as_ref();
            domain.is_some_and(|domain| domain.name.eq_ignore_ascii_case(name))
        };
        self.0.iter_mut().find(is_it)
    }
}

impl Default for Own {
    fn default() -> Self {
        Self::of(DEFAULT_DOMAINS.map(str::to_owned))
    }
}

impl Domains {
    /// Returns false when there is no room for another credential.
    pub(crate) fn set(&self, provider: Provider, credential: &str, domains: Vec<String>) -> bool {
        self.change(provider, credential, |own| *own = Own::of(domains))
            .is_some()
    }

    /// Adds one domain to what the credential has, as a customer does by using it.
    pub(crate) fn note(&self, provider: Provider, credential: &str, domain: &str) {
        if !self.has(provider, credential, domain) {
            self.change(provider, credential, |own| {
                let waits = false;
                let name = domain.to_owned();
                own.0.push(Some(Domain { name, waits }));
            });
        }
    }

    /// Creates one, and tells its number; `None` when it is there.
    pub(crate) fn create(
        &self,
        provider: Provider,
        credential: &str,
        domain: &str,
    ) -> Option<usize> {
        self.change(provider, credential, |own| {
            if own.place(domain).is_some() {
                return None;
            }
            let name = domain.to_ascii_lowercase();
            own.0.push(Some(Domain { name, waits: true }));
            Some(own.0.len())
        })?
    }

    /// Returns false when it was not there.
    pub(crate) fn remove(&self, provider: Provider, credential: &str, domain: &str) -> bool {
        let removed = self.change(provider, credential, |own| {
            own.place(domain).and_then(Option::take).is_some()
        });
        removed == Some(true)
    }

    /// Looks at one: it waits no longer.
    pub(crate) fn look(&self, provider: Provider, credential: &str, domain: &str) {
        self.change(provider, credential, |own| {
            if let Some(Some(domain)) = own.place(domain) {
                domain.waits = false;
            }
        });
    }

    pub(crate) fn has(&self, provider: Provider, credential: &str, domain: &str) -> bool {
        let own = self.own(provider, credential);
        let mut all = own.0.iter().flatten();
        all.any(|known| known.name.eq_ignore_ascii_case(domain))
    }

    /// Whether a domain of the credential's may send.
    pub(crate) fn is_verified(&self, provider: Provider, credential: &str, domain: &str) -> bool {
        let own = self.own(provider, credential);
        let waits = |known: &Domain| known.name.eq_ignore_ascii_case(domain) && known.waits;
        is_verified(domain) && !own.0.iter().flatten().any(waits)
    }

    pub(crate) fn list(&self, provider: Provider, credential: &str) -> Vec<String> {
        let own = self.own(provider, credential).0.into_iter().flatten();
        own.map(|domain| domain.name).collect()
    }

    /// The same with their numbers, from 1.
    pub(crate) fn numbered(&self, provider: Provider, credential: &str) -> Vec<(usize, String)> {
        let own = self.own(provider, credential).0.into_iter().enumerate();
        own.filter_map(|(at, domain)| Some((at + 1, domain?.name)))
            .collect()
    }

    fn own(&self, provider: Provider, credential: &str) -> Own {
        let all = self.0.read();
        let own = all.get(&(provider, credential.to_owned()));
        own.cloned().unwrap_or_default()
    }

    /// `None` when there is no room for another credential.
    fn change<T>(
        &self,
        provider: Provider,
        credential: &str,
        change: impl FnOnce(&mut Own) -> T,
    ) -> Option<T> {
        let mut all = self.0.write();
        let key = (provider, credential.to_owned());
        if all.len() >= CREDENTIALS_MAX && !all.contains_key(&key) {
            return None;
        }
        Some(change(all.entry(key).or_default()))
    }
}

/// Whether a domain, or the domain of an address, may send.
pub(crate) fn is_verified(domain: &str) -> bool {
    !domain.to_ascii_lowercase().contains("unverified")
}

/// Whether a domain of this name may be created: it is one, and does not say that it is `invalid`.
pub(crate) fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    text.contains('.')
        && !text.contains("invalid")
        && text.len() <= 253
        && text.bytes().all(is_letter)
}
