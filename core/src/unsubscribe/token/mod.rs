//! The tokens of unsubscribe links. A token contains the recipient, the message and the
//! group, so that the link works after the message has been removed.
//!
//! It is unpadded base64url of `version (1) ‖ key id (2) ‖ organization (16) ‖
//! group (16) ‖ message (16) ‖ seconds since 1970 (8) ‖ sealed address ‖
//! HMAC-SHA256 of all before it (32)`. The address is sealed (`crypto::seal`), because links
//! are forwarded and written to other companies' logs. The seal authenticates the address,
//! the organization and the message, but not the group and the time. The signature covers
//! everything and is verified before any part of the token is used or decrypted.

#[cfg(fuzzing)]
mod fuzzing;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::DateTime;
use uuid::Uuid;

use crate::address::EmailAddress;
use crate::clock::{Timestamp, delta};
use crate::config::Settings;
use crate::crypto::seal::{Sealed, Sealer};
use crate::crypto::sign::{SIGNATURE_BYTES, Signed, Signer};
use crate::ids::{MessageId, OrganizationId, UnsubscribeGroupId};

/// The longest token in characters, for an address of 254 characters.
pub(super) const TOKEN_CHARS_MAX: usize = 502;

const VERSION: u8 = 1;
/// Bytes before the sealed address.
const HEAD_BYTES: usize = 3 + 3 * 16 + 8;

/// The content of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkContent {
    pub organization_id: OrganizationId,
    pub unsubscribe_group_id: UnsubscribeGroupId,
    pub message_id: MessageId,
    pub address: EmailAddress,
    /// When the link was built, in whole seconds.
    pub issued_at: Timestamp,
}

/// Why a token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenRefusal {
    /// Malformed, or not signed by one of the configured keys.
    Invalid,
    /// Validly signed, but older than the configured lifetime.
    Expired,
}

/// Issues and reads tokens. Cheap to clone.
#[derive(Debug, Clone)]
pub struct UnsubscribeTokens {
    sealer: Sealer,
    signer: Signer,
    lifetime: Duration,
}

impl UnsubscribeTokens {
    /// Tokens with the configured keys and lifetime.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            sealer: settings.sealer.clone(),
            signer: settings.signer.clone(),
            lifetime: settings.links.unsubscribe_lifetime,
        }
    }

    /// Encodes and signs a token.
    #[must_use]
    pub fn issue(&self, content: &LinkContent) -> String {
        let message_id = content.message_id.0;
        let mut bytes = vec![VERSION];
        bytes.extend(self.signer.key_id().to_be_bytes());
        bytes.extend(content.organization_id.0.as_bytes());
        bytes.extend(content.unsubscribe_group_id.0.as_bytes());
        bytes.extend(message_id.as_bytes());
        bytes.extend(content.issued_at.timestamp().to_be_bytes());
        bytes.extend(self.sealer.seal(
            content.organization_id,
            Sealed::UnsubscribeLink,
            message_id,
            content.address.as_str().as_bytes(),
        ));
        let signature = self.signer.sign(Signed::UnsubscribeLink, &bytes);
        bytes.extend(signature);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Verifies and decodes a token.
    ///
    /// # Errors
    /// Why the token is refused.
    pub fn read(&self, token: &str, now: Timestamp) -> Result<LinkContent, TokenRefusal> {
        let content = self.authentic(token).ok_or(TokenRefusal::Invalid)?;
        if now - content.issued_at >= delta(self.lifetime) {
            return Err(TokenRefusal::Expired);
        }
        Ok(content)
    }

    /// The content of a token that one of the configured keys signed, expired or not.
    fn authentic(&self, token: &str) -> Option<LinkContent> {
        if token.len() > TOKEN_CHARS_MAX {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (signed, signature) =
            bytes.split_at_checked(bytes.len().checked_sub(SIGNATURE_BYTES)?)?;
        let (head, sealed) = signed.split_at_checked(HEAD_BYTES)?;
        let (version, mut head) = take(head)?;
        let key_id = u16::from_be_bytes(next(&mut head)?);
        let kind = Signed::UnsubscribeLink;
        if [VERSION] != version || !self.signer.has_signed(key_id, kind, signed, signature) {
            return None;
        }
        let organization_id = OrganizationId(Uuid::from_bytes(next(&mut head)?));
        let unsubscribe_group_id = UnsubscribeGroupId(Uuid::from_bytes(next(&mut head)?));
        let message_id = MessageId(Uuid::from_bytes(next(&mut head)?));
        let issued_at = DateTime::from_timestamp(i64::from_be_bytes(next(&mut head)?), 0)?;
        let kind = Sealed::UnsubscribeLink;
        let address = self
            .sealer
            .open(organization_id, kind, message_id.0, sealed);
        let address = String::from_utf8(address.ok()?).ok()?;
        Some(LinkContent {
            organization_id,
            unsubscribe_group_id,
            message_id,
            address: EmailAddress::parse(&address).ok()?,
            issued_at,
        })
    }
}

/// Splits off the first `N` bytes.
fn take<const N: usize>(bytes: &[u8]) -> Option<([u8; N], &[u8])> {
    let (first, others) = bytes.split_first_chunk()?;
    Some((*first, others))
}

/// Reads the first `N` bytes and advances the slice.
fn next<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, others) = take(bytes)?;
    *bytes = others;
    Some(first)
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::clock::Clock;
    use crate::crypto::seal::EXAMPLE_KEYS;
    use crate::ids::Ids;

    const DAY: TimeDelta = TimeDelta::days(1);
    const OTHER: &str = "7:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

    fn tokens(keys: &str) -> UnsubscribeTokens {
        UnsubscribeTokens {
            sealer: Sealer::parse(keys, Ids::new(Clock::system())).unwrap(),
            signer: Signer::parse(keys).unwrap(),
            lifetime: Duration::from_hours(24 * 60),
        }
    }

    fn content(address: &str) -> LinkContent {
        let ids = Ids::new(Clock::system());
        LinkContent {
            organization_id: ids.next(),
            unsubscribe_group_id: ids.next(),
            message_id: ids.next(),
            address: EmailAddress::parse(address).unwrap(),
            issued_at: DateTime::from_timestamp(1_800_000_000, 0).unwrap(),
        }
    }

    #[test]
    fn a_token_decodes_to_its_content_until_it_expires() {
        let (tokens, content) = (tokens(EXAMPLE_KEYS), content("Ada.L+news@example.org"));
        let token = tokens.issue(&content);
        let at = |after| tokens.read(&token, content.issued_at + after);
        for after in [-DAY, TimeDelta::zero(), DAY * 60 - TimeDelta::seconds(1)] {
            assert_eq!(at(after).as_ref(), Ok(&content));
        }
        assert_eq!(at(DAY * 60), Err(TokenRefusal::Expired));
        assert_eq!(at(DAY * 6_000), Err(TokenRefusal::Expired));
    }

    #[test]
    fn a_token_is_short_and_url_safe_and_hides_the_address() {
        let tokens = tokens(EXAMPLE_KEYS);
        let local = "a".repeat(40);
        for (address, chars_max) in [
            ("ada@example.org", 200),
            (&format!("{local}@{local}.example"), 300),
        ] {
            let token = tokens.issue(&content(address));
            assert!(token.len() < chars_max, "{}", token.len());
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            assert!(token.bytes().all(plain));
            let bytes = URL_SAFE_NO_PAD.decode(&token).unwrap();
            assert!(!String::from_utf8_lossy(&bytes).contains(&address[..8]));
        }
        let label = "b".repeat(60);
        let longest = format!("{}@{label}.{label}.{label}.com", "a".repeat(64));
        let longest = format!("{longest}{}", "m".repeat(254 - longest.len()));
        let content = content(&longest);
        let token = tokens.issue(&content);
        assert_eq!((longest.len(), token.len()), (254, TOKEN_CHARS_MAX));
        assert_eq!(tokens.read(&token, content.issued_at), Ok(content));
    }

    #[test]
    fn no_bit_of_a_token_can_be_changed() {
        let (tokens, content) = (tokens(EXAMPLE_KEYS), content("ada@example.org"));
        let bytes = URL_SAFE_NO_PAD.decode(tokens.issue(&content)).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let token = URL_SAFE_NO_PAD.encode(changed);
            let read = tokens.read(&token, content.issued_at);
            assert_eq!(read, Err(TokenRefusal::Invalid), "bit {bit}");
        }
        for length in 0..bytes.len() {
            let token = URL_SAFE_NO_PAD.encode(&bytes[..length]);
            let read = tokens.read(&token, content.issued_at);
            assert_eq!(read, Err(TokenRefusal::Invalid), "{length} bytes");
        }
    }

    #[test]
    fn malformed_tokens_are_invalid_and_not_expired() {
        let (tokens, content) = (tokens(EXAMPLE_KEYS), content("ada@example.org"));
        let token = tokens.issue(&content);
        let late = content.issued_at + DAY * 100;
        for text in [
            String::new(),
            "x".to_owned(),
            "ä".repeat(100),
            format!("{token}="),
            format!("{token}A"),
            token.repeat(2),
            "A".repeat(100_000),
        ] {
            assert_eq!(tokens.read(&text, late), Err(TokenRefusal::Invalid));
        }
    }

    #[test]
    fn keys_rotate_and_an_unknown_key_is_refused() {
        let content = content("ada@example.org");
        let old = tokens(OTHER).issue(&content);
        let rotated = tokens(&format!("{EXAMPLE_KEYS},{OTHER}"));
        let read = |tokens: &UnsubscribeTokens, token: &str| tokens.read(token, content.issued_at);
        assert_eq!(read(&rotated, &old).as_ref(), Ok(&content));
        assert_eq!(
            read(&rotated, &rotated.issue(&content)).as_ref(),
            Ok(&content)
        );
        assert_eq!(
            read(&tokens(EXAMPLE_KEYS), &old),
            Err(TokenRefusal::Invalid)
        );
        // An unknown key under a known id.
        let same_id = OTHER.replace("7:", "1:");
        let foreign = tokens(&same_id).issue(&content);
        assert_eq!(
            read(&tokens(EXAMPLE_KEYS), &foreign),
            Err(TokenRefusal::Invalid)
        );
    }
}
