//! Ids in each provider's format. They are unique within a run, cheap, and not secret.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// The step of the SplitMix64 generator.
const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A source of ids and random numbers.
pub(crate) struct Ids {
    next: AtomicU64,
}

impl Ids {
    /// Seeds from the standard library's random hash keys, the only source of randomness
    /// here.
    pub(crate) fn new() -> Self {
        Self {
            next: AtomicU64::new(RandomState::new().build_hasher().finish()),
        }
    }

    /// SendGrid's `X-Message-Id`: 22 characters.
    pub(crate) fn sendgrid(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.bytes())
    }

    /// Postmark's `MessageID`: a UUID.
    pub(crate) fn uuid(&self) -> String {
        uuid(self.bytes())
    }

    /// Mailgun's `id`, with its angle brackets.
    pub(crate) fn mailgun(&self, domain: &str) -> String {
        format!("<{}@{domain}>", hex::encode(self.bytes()))
    }

    /// SES's `MessageId`.
    pub(crate) fn ses(&self) -> String {
        format!("0100{:012x}-{}-000000", self.random() >> 16, self.uuid())
    }

    /// A token of 64 hexadecimal digits, in place of the tokens of SNS and Mailgun
    /// (theirs have other lengths).
    pub(crate) fn token(&self) -> String {
        hex::encode([self.bytes(), self.bytes()].concat())
    }

    /// A hexadecimal request id.
    pub(crate) fn request(&self) -> String {
        self.uuid()
    }

    /// True with the given probability.
    pub(crate) fn chance(&self, rate: f64) -> bool {
        self.uniform() < rate
    }

    /// A random number from 0 to below 1.
    pub(crate) fn uniform(&self) -> f64 {
        // 53 bits fill the mantissa of an f64 exactly.
        (self.random() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A random number.
    pub(crate) fn number(&self) -> u64 {
        self.random()
    }

    fn bytes(&self) -> [u8; 16] {
        (u128::from(self.random()) << 64 | u128::from(self.random())).to_be_bytes()
    }

    /// SplitMix64.
    fn random(&self) -> u64 {
        let mut z = self.next.fetch_add(GOLDEN_GAMMA, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// 16 bytes computed from the parts: an id that is the same whenever it is reported
/// again.
pub(crate) fn derived(parts: &[&str]) -> [u8; 16] {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part.as_bytes());
        digest.update([0]);
    }
    let mut id = [0; 16];
    id.copy_from_slice(&digest.finalize()[..16]);
    id
}

/// Formats bytes as a UUID.
pub(crate) fn uuid(bytes: [u8; 16]) -> String {
    let digits = hex::encode(bytes);
    format!(
        "{}-{}-4{}-a{}-{}",
        &digits[..8],
        &digits[8..12],
        &digits[13..16],
        &digits[17..20],
        &digits[20..]
    )
}

#[cfg(test)]
mod tests {
    use super::Ids;

    #[test]
    fn ids_have_the_length_of_the_real_ones() {
        let ids = Ids::new();
        assert_eq!(ids.sendgrid().len(), 22);
        assert_eq!(ids.uuid().len(), 36);
        assert_ne!(ids.uuid(), ids.uuid());
        assert!(ids.mailgun("example.com").ends_with("@example.com>"));
    }

    #[test]
    fn chance_is_exact_at_the_ends() {
        let ids = Ids::new();
        assert!((0..1_000).all(|_| ids.chance(1.0)));
        assert!(!(0..1_000).any(|_| ids.chance(0.0)));
    }
}
