//! Signing of link tokens: HMAC-SHA256 (RFC 2104) with a key that has an id. The first key
//! signs, all keys verify, so keys can be rotated without downtime.
//!
//! The keys are derived from the sealing keys: the operator manages one secret, and neither
//! use reveals anything about the other. The signed bytes begin with a label of their kind,
//! so that a signature of one kind is not valid for another.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::keys::{self, KEY_BYTES};

/// Length of a signature.
pub const SIGNATURE_BYTES: usize = 32;

/// Length of a short signature: the first half of a full one.
pub const SHORT_SIGNATURE_BYTES: usize = SIGNATURE_BYTES / 2;

/// The message whose HMAC is the derived key.
const DERIVATION: &[u8] = b"waypost: key for signing";

/// Signs and verifies with the derived keys. The first one signs.
#[derive(Clone)]
pub struct Signer {
    keys: Vec<(u16, Hmac<Sha256>)>,
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signed {
    /// The token of an unsubscribe link.
    UnsubscribeLink,
    /// The token of a pixel.
    OpenPixel,
    /// The token of a tracked link.
    ClickLink,
}

impl Signed {
    /// No label is a prefix of another.
    fn label(self) -> &'static [u8] {
        match self {
            Self::UnsubscribeLink => b"unsubscribe link\0",
            Self::OpenPixel => b"open pixel\0",
            Self::ClickLink => b"click link\0",
        }
    }
}

impl Signer {
    /// Derives the keys from the text that [`super::seal::Sealer::parse`] takes.
    ///
    /// # Errors
    /// A message that names the wrong key by its position, without its value.
    pub fn parse(text: &str) -> Result<Self, String> {
        let keys = keys::parse(text)?;
        let keys = keys.into_iter().map(|key| (key.id, derived(key.bytes)));
        Ok(Self {
            keys: keys.collect(),
        })
    }

    /// The id of the key that signs. The caller includes it in the token for the verifier.
    #[must_use]
    pub fn key_id(&self) -> u16 {
        self.keys[0].0
    }

    /// Signs `bytes`.
    #[must_use]
    pub fn sign(&self, kind: Signed, bytes: &[u8]) -> [u8; SIGNATURE_BYTES] {
        let (_, key) = &self.keys[0];
        begin(key, kind, bytes).finalize().into_bytes().into()
    }

    /// Whether `signature` was made with the key of this id. Takes constant time.
    #[must_use]
    pub fn has_signed(&self, key_id: u16, kind: Signed, bytes: &[u8], signature: &[u8]) -> bool {
        let key = self.keys.iter().find(|(id, _)| *id == key_id);
        key.is_some_and(|(_, key)| begin(key, kind, bytes).verify_slice(signature).is_ok())
    }

    /// Signs `bytes` with a short signature.
    #[must_use]
    pub fn sign_shortly(&self, kind: Signed, bytes: &[u8]) -> [u8; SHORT_SIGNATURE_BYTES] {
        let signature = self.sign(kind, bytes);
        let half = signature.first_chunk();
        *half.expect("a short signature is a part of a full one")
    }

    /// [`Signer::has_signed`] for a short signature.
    #[must_use]
    pub fn has_signed_shortly(
        &self,
        key_id: u16,
        kind: Signed,
        bytes: &[u8],
        signature: &[u8; SHORT_SIGNATURE_BYTES],
    ) -> bool {
        let key = self.keys.iter().find(|(id, _)| *id == key_id);
        key.is_some_and(|(_, key)| {
            let mac = begin(key, kind, bytes);
            mac.verify_truncated_left(signature).is_ok()
        })
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<u16> = self.keys.iter().map(|(id, _)| *id).collect();
        write!(f, "Signer(keys {ids:?})")
    }
}

fn derived(key: [u8; KEY_BYTES]) -> Hmac<Sha256> {
    let mut derivation = keyed(&key);
    derivation.update(DERIVATION);
    keyed(&derivation.finalize().into_bytes())
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

fn begin(key: &Hmac<Sha256>, kind: Signed, bytes: &[u8]) -> Hmac<Sha256> {
    let mut mac = key.clone();
    mac.update(kind.label());
    mac.update(bytes);
    mac
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::seal::EXAMPLE_KEYS;

    const OTHER: &str = "7:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    const KIND: Signed = Signed::UnsubscribeLink;

    fn signer(keys: &str) -> Signer {
        Signer::parse(keys).unwrap()
    }

    #[test]
    fn a_signature_is_valid_for_its_text_and_key_only() {
        let signer = signer(&format!("{EXAMPLE_KEYS},{OTHER}"));
        let signature = signer.sign(KIND, b"text");
        assert_eq!(signer.key_id(), 1);
        assert!(signer.has_signed(1, KIND, b"text", &signature));
        assert!(!signer.has_signed(7, KIND, b"text", &signature));
        assert!(!signer.has_signed(2, KIND, b"text", &signature));
        assert!(!signer.has_signed(1, KIND, b"other", &signature));
        assert!(!signer.has_signed(1, KIND, b"text", &signature[..31]));
        assert!(!signer.has_signed(1, KIND, b"text", b""));
    }

    #[test]
    fn a_short_signature_is_half_of_a_full_one() {
        let signer = signer(EXAMPLE_KEYS);
        let short = signer.sign_shortly(KIND, b"text");
        assert_eq!(short, signer.sign(KIND, b"text")[..16]);
        assert!(signer.has_signed_shortly(1, KIND, b"text", &short));
        assert!(!signer.has_signed_shortly(2, KIND, b"text", &short));
        assert!(!signer.has_signed_shortly(1, KIND, b"other", &short));
        assert!(!signer.has_signed_shortly(1, Signed::ClickLink, b"text", &short));
        assert!(!signer.has_signed(1, KIND, b"text", &short));
    }

    #[test]
    fn all_keys_verify_and_the_first_signs() {
        let signature = signer(OTHER).sign(KIND, b"text");
        let rotated = signer(&format!("{EXAMPLE_KEYS},{OTHER}"));
        assert!(rotated.has_signed(7, KIND, b"text", &signature));
        assert!(!signer(EXAMPLE_KEYS).has_signed(7, KIND, b"text", &signature));
        assert_ne!(rotated.sign(KIND, b"text"), signature);
    }

    #[test]
    fn the_sealing_key_itself_does_not_sign() {
        let key = keys::parse(OTHER).unwrap().remove(0);
        let mut direct = keyed(&key.bytes);
        direct.update(KIND.label());
        direct.update(b"text");
        let direct: [u8; 32] = direct.finalize().into_bytes().into();
        assert_ne!(signer(OTHER).sign(KIND, b"text"), direct);
    }
}
