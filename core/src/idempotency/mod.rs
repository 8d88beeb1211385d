//! Idempotency keys: a request that is repeated with the same key is executed once and gets
//! the same answer again.
//!
//! Each request with a key inserts a *claim* of the key. The claim, the work and the answer
//! are committed together, so there is no work without an answer and no answer without the
//! work, and a failed request leaves no claim. A second request with the key waits for the
//! transaction of the first, at most [`WAIT_MAX`].
//!
//! There are three kinds of requests. [`single`] is for a request with a transaction of its
//! own. Single sends share a transaction: `acceptance::insert` claims the keys of all its
//! sends in the statement that inserts them. [`batch`] is for a batch send, which is
//! committed in several parts.
//!
//! A key is valid for [`KEY_LIFETIME`]. The same key on two paths counts as two keys, and so
//! does the same key of a live API key and of a test key: a test must not take the place of
//! the live request.

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

/// How long a key is valid.
pub const KEY_LIFETIME: Duration = Duration::from_secs(24 * 3_600);
/// How long a request waits for an earlier request with the same key that still runs.
pub const WAIT_MAX: Duration = Duration::from_secs(5);
/// How much longer than [`KEY_LIFETIME`] the row of a key is kept: a request that began
/// with it may still run.
pub const GRACE: Duration = Duration::from_secs(3_600);

/// The key in the `Idempotency-Key` header.
#[derive(Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Maximum length in characters.
    pub const CHARS_MAX: usize = 256;

    /// Any text of 1 to [`Self::CHARS_MAX`] characters is a key.
    ///
    /// # Errors
    /// The text is empty or too long.
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

/// Logs must not contain keys.
impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdempotencyKey")
    }
}

/// The SHA-256 of a key and the path of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKeyHash(pub [u8; 32]);

/// The claim of a key by one request.
#[derive(Debug, Clone, Copy)]
pub struct KeyClaim {
    pub organization_id: OrganizationId,
    pub key_hash: IdempotencyKeyHash,
    pub body_hash: BodyHash,
    /// When the request arrived. The lifetime of the key begins then.
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
        // The separator is unambiguous: no path contains a NUL.
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

    /// The claim of the part with this index of a batch.
    #[must_use]
    pub fn part(&self, index: usize) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.key_hash.0);
        hash.update(index.to_be_bytes());
        Self {
            key_hash: IdempotencyKeyHash(hash.finalize().into()),
            ..*self
        }
    }
}

/// The HTTP response to a request, stored to be repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl StoredAnswer {
    /// Seals the answer, bound to the row of the claim.
    fn seal(&self, sealer: &Sealer, claim: &KeyClaim) -> Vec<u8> {
        let mut plain = self.status.to_be_bytes().to_vec();
        plain.extend_from_slice(&self.body);
        sealer.seal(claim.organization_id, Sealed::Answer, row_of(claim), &plain)
    }

    fn open(sealer: &Sealer, claim: &KeyClaim, sealed: &[u8]) -> Result<Self, Fault> {
        let plain = sealer.open(claim.organization_id, Sealed::Answer, row_of(claim), sealed)?;
        let (status, body) = plain
            .split_first_chunk()
            .ok_or_else(|| Fault::internal("read a stored answer", "it has no status"))?;
        Ok(Self {
            status: u16::from_be_bytes(*status),
            body: body.to_vec(),
        })
    }
}

/// The row id that a stored answer is bound to: the first half of the key's hash, which is
/// unique in the organization.
fn row_of(claim: &KeyClaim) -> Uuid {
    let mut half = [0; 16];
    half.copy_from_slice(&claim.key_hash.0[..16]);
    Uuid::from_bytes(half)
}

/// Why a request cannot use its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyConflict {
    /// The key was used with another body.
    OtherBody,
    /// An earlier request with the key still runs.
    StillRunning,
}

/// Why a request is not executed.
#[derive(Debug)]
pub enum Repeat {
    /// It was executed before, with this answer.
    Answered(StoredAnswer),
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
