//! Sealing: AES-256-GCM with a key that has an id. A sealed value is bound to its organization,
//! kind and row.
//!
//! Format: `version (1) ‖ key id (2, big endian) ‖ nonce (12) ‖ ciphertext and tag`. Several
//! keys may be configured: the first seals, all open, so keys can be rotated without
//! downtime. The associated data contains the organization, the kind of value and the id of
//! its row; a value copied to another row does not open.

use std::fmt;

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use uuid::Uuid;

use super::keys;
use crate::fault::Fault;
use crate::ids::{Ids, OrganizationId};

/// The key of examples and development. Outside development no process starts with it.
pub const EXAMPLE_KEYS: &str = "1:d2F5cG9zdCBleGFtcGxlIGtleSwgbm90IHNlY3JldCE=";

/// The organization of values that belong to none.
pub const NO_ORGANIZATION: OrganizationId = OrganizationId(Uuid::nil());

const VERSION: u8 = 1;
const NONCE_BYTES: usize = 12;
const HEADER_BYTES: usize = 3 + NONCE_BYTES;

/// Encrypts and decrypts with the configured keys. The first one seals.
#[derive(Clone)]
pub struct Sealer {
    keys: Vec<(u16, Aes256Gcm)>,
    ids: Ids,
}

/// The kind of a sealed value, to which the value is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sealed {
    /// The credentials of a provider account. Row: the account.
    Credentials,
    /// The mailbox of a recipient. Row: the message.
    Recipient,
    /// The address in an unsubscribe link. Row: the message.
    UnsubscribeLink,
    /// The stored answer of an idempotency key. Row: the first half of the key's hash.
    Answer,
    /// A current or old signing secret of a webhook endpoint. Row: the endpoint.
    WebhookSecret,
    /// The secrets that verify the events of a provider account. Row: the account.
    EventSecrets,
    /// The raw payload of a provider event. Row: the message.
    ProviderEvent,
    /// The secret of a user's second factor. It belongs to no organization. Row: the user.
    TotpSecret,
    /// What a sign-in at an OpenID Connect provider must come back with, in a cookie. It belongs
    /// to no organization and no row.
    OidcState,
}

impl Sealed {
    fn label(self) -> &'static [u8] {
        match self {
            Self::Credentials => b"credentials",
            Self::Recipient => b"recipient",
            Self::UnsubscribeLink => b"unsubscribe link",
            Self::Answer => b"answer",
            Self::WebhookSecret => b"webhook secret",
            Self::EventSecrets => b"event secrets",
            Self::ProviderEvent => b"provider event",
            Self::TotpSecret => b"totp secret",
            Self::OidcState => b"oidc state",
        }
    }
}

impl Sealer {
    /// Parses keys of the form `id:base64`, separated by commas. The id is a number from 0
    /// to 65,535, the key has 32 bytes.
    ///
    /// # Errors
    /// A message that names the wrong key by its position, without its value.
    pub fn parse(text: &str, ids: Ids) -> Result<Self, String> {
        let keys = keys::parse(text)?.into_iter();
        let keys = keys.map(|key| (key.id, Aes256Gcm::new(&key.bytes.into())));
        let keys = keys.collect();
        Ok(Self { keys, ids })
    }

    /// The id of the key that seals.
    #[must_use]
    pub fn first_key(&self) -> u16 {
        self.keys[0].0
    }

    /// Seals `plain`, bound to its organization, kind and row.
    #[must_use]
    pub fn seal(
        &self,
        organization: OrganizationId,
        kind: Sealed,
        row: Uuid,
        plain: &[u8],
    ) -> Vec<u8> {
        let (key_id, cipher) = &self.keys[0];
        let nonce_bytes: [u8; NONCE_BYTES] = self.ids.random_bytes();
        let mut sealed = Vec::with_capacity(HEADER_BYTES + plain.len() + 16);
        sealed.push(VERSION);
        sealed.extend_from_slice(&key_id.to_be_bytes());
        sealed.extend_from_slice(&nonce_bytes);
        let payload = Payload {
            msg: plain,
            aad: &binding(organization, kind, row),
        };
        let ciphertext = cipher
            .encrypt(&Nonce::from(nonce_bytes), payload)
            .expect("AES-GCM takes any plaintext below 64 GiB");
        sealed.extend_from_slice(&ciphertext);
        sealed
    }

    /// Opens a value that [`Sealer::seal`] made for the same organization, kind and row.
    ///
    /// # Errors
    /// A fault if the key of the value is not configured, or the value was changed or sealed
    /// for another organization, kind or row.
    pub fn open(
        &self,
        organization: OrganizationId,
        kind: Sealed,
        row: Uuid,
        sealed: &[u8],
    ) -> Result<Vec<u8>, Fault> {
        let unreadable = |why: &'static str| Fault::internal("open a sealed value", why);
        if sealed.len() < HEADER_BYTES || sealed[0] != VERSION {
            return Err(unreadable("it has the wrong format"));
        }
        let key_id = u16::from_be_bytes([sealed[1], sealed[2]]);
        let (_, cipher) = self
            .keys
            .iter()
            .find(|(id, _)| *id == key_id)
            .ok_or_else(|| unreadable("its key is not configured"))?;
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&sealed[3..HEADER_BYTES]);
        let payload = Payload {
            msg: &sealed[HEADER_BYTES..],
            aad: &binding(organization, kind, row),
        };
        cipher
            .decrypt(&Nonce::from(nonce), payload)
            .map_err(|_| unreadable("it was changed or belongs to another row"))
    }
}

/// The id of the key of a sealed value; 0 if the value has the wrong format.
#[must_use]
pub(crate) fn key_id_of(sealed: &[u8]) -> u16 {
    match sealed {
        [_, high, low, ..] => u16::from_be_bytes([*high, *low]),
        _ => 0,
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<u16> = self.keys.iter().map(|(id, _)| *id).collect();
        write!(f, "Sealer(keys {ids:?})")
    }
}

fn binding(organization: OrganizationId, kind: Sealed, row: Uuid) -> Vec<u8> {
    let mut data = Vec::with_capacity(48);
    data.extend_from_slice(organization.0.as_bytes());
    data.extend_from_slice(row.as_bytes());
    data.extend_from_slice(kind.label());
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    fn sealer(keys: &str) -> Sealer {
        Sealer::parse(keys, Ids::new(Clock::system())).unwrap()
    }

    #[test]
    fn a_sealed_value_opens_only_where_it_belongs() {
        let ids = Ids::new(Clock::system());
        let (ours, theirs): (OrganizationId, OrganizationId) = (ids.next(), ids.next());
        let row: Uuid = ids.next();
        let sealer = sealer(EXAMPLE_KEYS);
        let sealed = sealer.seal(ours, Sealed::Credentials, row, b"secret");
        assert_eq!(
            sealer
                .open(ours, Sealed::Credentials, row, &sealed)
                .unwrap(),
            b"secret"
        );
        assert!(
            sealer
                .open(theirs, Sealed::Credentials, row, &sealed)
                .is_err()
        );
        assert!(sealer.open(ours, Sealed::Recipient, row, &sealed).is_err());
        assert!(
            sealer
                .open(ours, Sealed::Credentials, ids.next(), &sealed)
                .is_err()
        );
        let mut changed = sealed.clone();
        *changed.last_mut().unwrap() ^= 1;
        assert!(
            sealer
                .open(ours, Sealed::Credentials, row, &changed)
                .is_err()
        );
        assert!(sealer.open(ours, Sealed::Credentials, row, b"").is_err());
    }

    #[test]
    fn the_first_key_seals_and_all_keys_open() {
        let old = "7:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        let ids = Ids::new(Clock::system());
        let (organization, row): (OrganizationId, Uuid) = (ids.next(), ids.next());
        let sealed = sealer(old).seal(organization, Sealed::Recipient, row, b"x");
        let rotated = sealer(&format!("{EXAMPLE_KEYS},{old}"));
        assert!(
            rotated
                .open(organization, Sealed::Recipient, row, &sealed)
                .is_ok()
        );
        let fresh = rotated.seal(organization, Sealed::Recipient, row, b"x");
        assert!(
            sealer(old)
                .open(organization, Sealed::Recipient, row, &fresh)
                .is_err()
        );
    }

    #[test]
    fn wrong_keys_are_named_by_their_position() {
        let ids = Ids::new(Clock::system());
        for (text, part) in [
            ("", "key 1 must have the form"),
            ("x:AAAA", "the id of key 1"),
            ("1:not base64!", "key 1 must be base64"),
            ("1:AAAA", "key 1 must be 32 bytes"),
        ] {
            let message = Sealer::parse(text, ids.clone()).unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }
}
