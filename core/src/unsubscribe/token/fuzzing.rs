//! Constructors of valid tokens for a fuzzer, which cannot guess the signature and the
//! encryption.

use std::time::Duration;

use super::*;
use crate::clock::Clock;
use crate::crypto::seal::EXAMPLE_KEYS;
use crate::ids::Ids;

impl UnsubscribeTokens {
    /// Tokens under the example key.
    ///
    /// # Panics
    /// Never: the key is a constant.
    #[must_use]
    pub fn for_fuzzing() -> Self {
        let ids = Ids::new(Clock::system());
        Self {
            sealer: Sealer::parse(EXAMPLE_KEYS, ids).expect("the example key is valid"),
            signer: Signer::parse(EXAMPLE_KEYS).expect("the example key is valid"),
            lifetime: Duration::from_hours(24 * 60),
        }
    }

    /// A validly signed token with any content.
    #[must_use]
    pub fn sign_anything(&self, content: &[u8]) -> String {
        let signature = self.signer.sign(Signed::UnsubscribeLink, content);
        URL_SAFE_NO_PAD.encode([content, &signature].concat())
    }

    /// A validly signed token whose head is the start of `content` and whose sealed address
    /// is the rest.
    #[must_use]
    pub fn seal_anything(&self, content: &[u8]) -> String {
        let (head, address) = content.split_at(content.len().min(HEAD_BYTES));
        let mut head = head.to_vec();
        head.resize(HEAD_BYTES, 0);
        head[0] = VERSION;
        head[1..3].copy_from_slice(&self.signer.key_id().to_be_bytes());
        let id = |at: usize| Uuid::from_slice(&head[at..at + 16]).expect("it has 16 bytes");
        let (organization_id, message_id) = (OrganizationId(id(3)), id(35));
        let kind = Sealed::UnsubscribeLink;
        let sealed = self.sealer.seal(organization_id, kind, message_id, address);
        self.sign_anything(&[head, sealed].concat())
    }
}
