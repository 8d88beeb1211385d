//! Idempotency keys: a request that is repeated with its key is done once, and
//! answered what it was answered the first time.
//!
//! Characters: the caller's *key*; the *claim*, which is one request's hold on its
//! key; the *answer*, kept with it. Claim, work and answer are committed together,
//! so there is no work whose answer is lost and no answer without its work, and a
//! request that fails leaves no claim. A second request waits for the transaction
//! of the first, at most [`WAIT_MAX`].
//!
//! Three ways lead here. [`once`] is for whatever has a transaction of its own.
//! Sends share theirs: `message::rows` claims the keys of a whole group in the
//! statement that writes it. [`parts`] is for a batch, which is written in several.
//!
//! What is not promised: anything for a key after [`KEPT`], and anything for one
//! key on two paths, which are two keys.

pub mod batch;
pub mod fingerprint;
pub mod single;
pub mod store;

use std::fmt;
use std::time::Duration;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::crypto::seal::{Sealed, Sealer};
use crate::fault::Fault;
use crate::ids::OrganizationId;
use crate::text::TextError;
use fingerprint::BodyHash;

/// How long a key is kept.
pub const KEPT: Duration = Duration::from_secs(24 * 3_600);
/// How long a request waits for an earlier one with its key that still runs.
pub const WAIT_MAX: Duration = Duration::from_secs(5);
/// How much longer than [`KEPT`] its row stays: whoever began with it may still
/// be at work.
pub const GRACE: Duration = Duration::from_secs(3_600);

/// A caller's key.
#[derive(Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// The bound, in characters.
    pub const CHARS_MAX: usize = 256;

    /// Takes any text that is not empty and within the bound.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn parse(text: String) -> Result<Self, TextError> {
        if text.is_empty() {
            return Err(TextError::Empty);
        }
        if text.chars().count() > Self::CHARS_MAX {
            return Err(TextError::TooLong(Self::CHARS_MAX));
        }
        Ok(Self(text))
    }
}

/// Logs must not hold keys.
impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdempotencyKey")
    }
}

/// The SHA-256 of a key and the path that it was used on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKeyHash(pub [u8; 32]);

/// One request's hold on its key.
#[derive(Debug, Clone, Copy)]
pub struct KeyClaim {
    pub organization_id: OrganizationId,
    pub key_hash: IdempotencyKeyHash,
    /// What the request asks for.
    pub body_hash: BodyHash,
    /// When the request came; its key is kept from then on.
    pub at: Timestamp,
}

impl KeyClaim {
    /// The claim of a request to `path`.
    #[must_use]
    pub fn new(
        organization_id: OrganizationId,
        path: &str,
        key: &IdempotencyKey,
        body_hash: BodyHash,
        at: Timestamp,
    ) -> Self {
        let mut hash = Sha256::new();
        // No path has a NUL in it.
        for part in [path.as_bytes(), b"\0", key.0.as_bytes()] {
            hash.update(part);
        }
        Self {
            organization_id,
            key_hash: IdempotencyKeyHash(hash.finalize().into()),
            body_hash,
            at,
        }
    }

    /// The claim of the part at `place` of what this one is for.
    #[must_use]
    pub fn part(&self, place: usize) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.key_hash.0);
        hash.update(place.to_be_bytes());
        Self {
            key_hash: IdempotencyKeyHash(hash.finalize().into()),
            ..*self
        }
    }
}

/// An answer as it went over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl StoredAnswer {
    /// Sealed for the row of a claim.
    fn seal(&self, sealer: &Sealer, claim: &KeyClaim) -> Vec<u8> {
        let mut plain = self.status.to_be_bytes().to_vec();
        plain.extend_from_slice(&self.body);
        sealer.seal(claim.organization_id, Sealed::Answer, row_of(claim), &plain)
    }

    fn open(sealer: &Sealer, claim: &KeyClaim, sealed: &[u8]) -> Result<Self, Fault> {
        let plain = sealer.open(claim.organization_id, Sealed::Answer, row_of(claim), sealed)?;
        let (status, body) = plain
            .split_first_chunk()
            .ok_or_else(|| Fault::internal("read a kept answer", "it has no status"))?;
        Ok(Self {
            status: u16::from_be_bytes(*status),
            body: body.to_vec(),
        })
    }
}

/// What a kept answer is bound to: half of the key's hash, which no other row of
/// the organization has.
fn row_of(claim: &KeyClaim) -> Uuid {
    let mut half = [0; 16];
    half.copy_from_slice(&claim.key_hash.0[..16]);
    Uuid::from_bytes(half)
}

/// Why a request cannot have its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyConflict {
    /// It was used with another body.
    OtherBody,
    /// An earlier request with it still runs.
    StillRunning,
}

/// What the key of a request makes of it.
#[derive(Debug)]
pub enum Repeat {
    /// It was done before: this was the answer.
    Answered(StoredAnswer),
    /// The key cannot be had.
    Conflict(KeyConflict),
    Fault(Fault),
}

impl From<Fault> for Repeat {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::ids::Ids;

    #[test]
    fn a_key_has_1_to_256_characters() {
        assert!(IdempotencyKey::parse(String::new()).is_err());
        for text in ["k".to_owned(), "k".repeat(256), "é".repeat(256)] {
            assert!(IdempotencyKey::parse(text).is_ok());
        }
        assert!(IdempotencyKey::parse("k".repeat(257)).is_err());
    }

    #[test]
    fn claims_differ_by_path_key_and_part() {
        let clock = Clock::system();
        let organization_id = Ids::new(clock.clone()).next();
        let body_hash = fingerprint::of(&serde_json::json!({}));
        let claim = |path: &str, key: &str| {
            let key = IdempotencyKey::parse(key.to_owned()).unwrap();
            KeyClaim::new(organization_id, path, &key, body_hash, clock.now())
        };
        let one = claim("/v1/send", "a");
        assert_eq!(one.key_hash, claim("/v1/send", "a").key_hash);
        let others = [
            claim("/v1/send", "b"),
            claim("/v1/templates", "a"),
            one.part(0),
            one.part(1),
        ];
        for other in others {
            assert_ne!(one.key_hash, other.key_hash);
        }
        assert_ne!(one.part(0).key_hash, one.part(1).key_hash);
    }
}
