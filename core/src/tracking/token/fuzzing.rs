//! Constructors of valid tokens for a fuzzer, which cannot guess the signature.

use super::*;
use crate::crypto::seal::EXAMPLE_KEYS;

impl TrackingTokens {
    /// Tokens under the example key.
    ///
    /// # Panics
    /// Never: the key is a constant.
    #[must_use]
    pub fn for_fuzzing() -> Self {
        Self {
            signer: Signer::parse(EXAMPLE_KEYS).expect("the example key is valid"),
            lifetime: Duration::from_hours(24 * 400),
        }
    }

    /// Validly signed tokens of a pixel and of a link with any content.
    #[must_use]
    pub fn sign_anything(&self, content: &[u8]) -> [String; 2] {
        [Signed::OpenPixel, Signed::ClickLink].map(|kind| {
            let signature = self.signer.sign_shortly(kind, content);
            URL_SAFE_NO_PAD.encode([content, &signature].concat())
        })
    }

    /// As [`Self::sign_anything`], with a valid version and key id before the content.
    #[must_use]
    pub fn sign_with_head(&self, content: &[u8]) -> [String; 2] {
        let key_id = self.signer.key_id().to_be_bytes();
        self.sign_anything(&[&[VERSION][..], &key_id, content].concat())
    }
}
