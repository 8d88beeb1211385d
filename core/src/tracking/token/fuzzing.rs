//! A way for a fuzzer past the signature, which it cannot guess.

use super::*;
use crate::crypto::seal::EXAMPLE_KEYS;

impl TrackingTokens {
    /// Tokens under the key of the examples.
    ///
    /// # Panics
    /// Never: the key is a constant.
    #[must_use]
    pub fn for_fuzzing() -> Self {
        Self {
            signer: Signer::parse(EXAMPLE_KEYS).expect("the example key is one"),
            lifetime: Duration::from_hours(24 * 400),
        }
    }

    /// Tokens of a pixel and of a link with this content, genuine and perhaps without
    /// sense.
    #[must_use]
    pub fn sign_anything(&self, content: &[u8]) -> [String; 2] {
        [Signed::OpenPixel, Signed::ClickLink].map(|kind| {
            let signature = self.signer.sign_shortly(kind, content);
            URL_SAFE_NO_PAD.encode([content, &signature].concat())
        })
    }

    /// The same with the version and the key of our own at its beginning.
    #[must_use]
    pub fn sign_with_head(&self, content: &[u8]) -> [String; 2] {
        let key_id = self.signer.key_id().to_be_bytes();
        self.sign_anything(&[&[VERSION][..], &key_id, content].concat())
    }
}
