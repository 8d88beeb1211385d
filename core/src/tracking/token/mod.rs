//! The tokens of pixels and tracked links. A token contains the recipient, and for a link
//! its target. The signature prevents redirects to targets that no author wrote.
//!
//! It is unpadded base64url of `version (1) ‖ key id (2) ‖ organization (16) ‖
//! message (16) ‖ position (2) ‖ seconds since 1970 (4) ‖ URL, of a link ‖ the first
//! half of HMAC-SHA256 of all before it (16)`. It does not contain the address, so nothing
//! is encrypted. A body may contain many tokens, so the signature has the minimum length
//! that RFC 2104, section 5, recommends: half of the hash.

#[cfg(fuzzing)]
mod fuzzing;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::DateTime;
use uuid::Uuid;

use super::TrackedRecipient;
use crate::clock::{Timestamp, delta};
use crate::config::Settings;
use crate::crypto::sign::{SHORT_SIGNATURE_BYTES, Signed, Signer};
use crate::ids::{MessageId, OrganizationId};

/// The longest URL that is tracked, in bytes. Proxies cut or refuse the longer paths that
/// a longer URL would need.
pub(super) const URL_BYTES_MAX: usize = 2_048;

const VERSION: u8 = 1;
/// Bytes before the URL.
const HEAD_BYTES: usize = 3 + 2 * 16 + 2 + 4;

/// The content of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedToken<T> {
    pub recipient: TrackedRecipient,
    /// The target of a link, `()` for a pixel.
    pub target: T,
    /// Hits of an expired token are not recorded.
    pub is_expired: bool,
}

/// Issues and reads tokens. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TrackingTokens {
    signer: Signer,
    lifetime: Duration,
}

impl TrackingTokens {
    /// Tokens with the configured keys and lifetime.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            signer: settings.signer.clone(),
            lifetime: settings.links.tracking_lifetime,
        }
    }

    /// Issues the token of a recipient's pixel.
    #[must_use]
    pub fn issue_open(&self, recipient: TrackedRecipient) -> String {
        self.issue(Signed::OpenPixel, recipient, "")
    }

    /// Issues the token of a link in a recipient's mail.
    #[must_use]
    pub fn issue_click(&self, recipient: TrackedRecipient, url: &str) -> String {
        self.issue(Signed::ClickLink, recipient, url)
    }

    /// Verifies and decodes the token of a pixel. `None` if it is invalid.
    #[must_use]
    pub fn read_open(&self, token: &str, now: Timestamp) -> Option<DecodedToken<()>> {
        let (recipient, url) = self.authentic(Signed::OpenPixel, token)?;
        url.is_empty().then(|| self.decoded(recipient, (), now))
    }

    /// Verifies and decodes the token of a link. `None` if it is invalid.
    #[must_use]
    pub fn read_click(&self, token: &str, now: Timestamp) -> Option<DecodedToken<String>> {
        let (recipient, url) = self.authentic(Signed::ClickLink, token)?;
        Some(self.decoded(recipient, String::from_utf8(url).ok()?, now))
    }

    fn issue(&self, kind: Signed, recipient: TrackedRecipient, url: &str) -> String {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + url.len() + SHORT_SIGNATURE_BYTES);
        bytes.push(VERSION);
        bytes.extend(self.signer.key_id().to_be_bytes());
        bytes.extend(recipient.organization_id.0.as_bytes());
        bytes.extend(recipient.message_id.0.as_bytes());
        // A message has at most 1,000 recipients. 32 bits of seconds last until 2106.
        bytes.extend(
            u16::try_from(recipient.position)
                .unwrap_or(u16::MAX)
                .to_be_bytes(),
        );
        let seconds = u32::try_from(recipient.issued_at.timestamp()).unwrap_or(u32::MAX);
        bytes.extend(seconds.to_be_bytes());
        bytes.extend(url.as_bytes());
        let signature = self.signer.sign_shortly(kind, &bytes);
        bytes.extend(signature);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn decoded<T>(
        &self,
        recipient: TrackedRecipient,
        target: T,
        now: Timestamp,
    ) -> DecodedToken<T> {
        DecodedToken {
            recipient,
            target,
            is_expired: now - recipient.issued_at >= delta(self.lifetime),
        }
    }

    /// The recipient and URL of a token that one of the configured keys signed.
    fn authentic(&self, kind: Signed, token: &str) -> Option<(TrackedRecipient, Vec<u8>)> {
        if token.len() > chars(URL_BYTES_MAX) {
            return None;
        }
        let mut bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (signed, signature) = bytes.split_last_chunk::<SHORT_SIGNATURE_BYTES>()?;
        let (head, _) = signed.split_first_chunk::<HEAD_BYTES>()?;
        let key_id = u16::from_be_bytes(part(head, 1));
        if head[0] != VERSION
            || !self
                .signer
                .has_signed_shortly(key_id, kind, signed, signature)
        {
            return None;
        }
        let seconds = u32::from_be_bytes(part(head, 37));
        let recipient = TrackedRecipient {
            organization_id: OrganizationId(Uuid::from_bytes(part(head, 3))),
            message_id: MessageId(Uuid::from_bytes(part(head, 19))),
            position: i32::from(u16::from_be_bytes(part(head, 35))),
            issued_at: DateTime::from_timestamp(seconds.into(), 0)?,
        };
        bytes.truncate(bytes.len() - SHORT_SIGNATURE_BYTES);
        Some((recipient, bytes.split_off(HEAD_BYTES)))
    }
}

/// The length of the token of a link with a URL of this length, in characters.
pub(super) const fn chars(url_bytes: usize) -> usize {
    ((HEAD_BYTES + url_bytes + SHORT_SIGNATURE_BYTES) * 4).div_ceil(3)
}

fn part<const N: usize>(head: &[u8; HEAD_BYTES], start: usize) -> [u8; N] {
    let part = head[start..].first_chunk();
    *part.expect("all parts are within the head")
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
    const URL: &str = "https://example.com/a?b=c&d=%20#e";

    fn tokens(keys: &str) -> TrackingTokens {
        TrackingTokens {
            signer: Signer::parse(keys).unwrap(),
            lifetime: Duration::from_hours(24 * 400),
        }
    }

    fn recipient() -> TrackedRecipient {
        let ids = Ids::new(Clock::system());
        TrackedRecipient {
            organization_id: ids.next(),
            message_id: ids.next(),
            position: 999,
            issued_at: DateTime::from_timestamp(1_800_000_000, 0).unwrap(),
        }
    }

    #[test]
    fn a_token_decodes_to_its_content_and_expiry() {
        let (tokens, recipient) = (tokens(EXAMPLE_KEYS), recipient());
        let (open, click) = (
            tokens.issue_open(recipient),
            tokens.issue_click(recipient, URL),
        );
        for (after, is_expired) in [
            (-DAY, false),
            (DAY * 400 - TimeDelta::seconds(1), false),
            (DAY * 400, true),
            (DAY * 6_000, true),
        ] {
            let now = recipient.issued_at + after;
            let read = tokens.read_open(&open, now).unwrap();
            assert_eq!((read.recipient, read.is_expired), (recipient, is_expired));
            let read = tokens.read_click(&click, now).unwrap();
            assert_eq!((read.recipient, read.is_expired), (recipient, is_expired));
            assert_eq!(read.target, URL);
        }
    }

    #[test]
    fn a_token_is_short_and_url_safe() {
        let (tokens, recipient) = (tokens(EXAMPLE_KEYS), recipient());
        let longest = format!("https://example.com/{}", "a".repeat(URL_BYTES_MAX - 20));
        for (token, length) in [
            (tokens.issue_open(recipient), 76),
            (tokens.issue_click(recipient, URL), 120),
            (
                tokens.issue_click(recipient, &longest),
                chars(URL_BYTES_MAX),
            ),
        ] {
            assert_eq!(token.len(), length);
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            assert!(token.bytes().all(is_plain), "{token}");
        }
        let token = tokens.issue_click(recipient, &longest);
        assert!(tokens.read_click(&token, recipient.issued_at).is_some());
    }

    #[test]
    fn a_changed_token_and_one_of_the_other_kind_are_invalid() {
        let (tokens, recipient) = (tokens(EXAMPLE_KEYS), recipient());
        let (open, click) = (
            tokens.issue_open(recipient),
            tokens.issue_click(recipient, URL),
        );
        let bytes = URL_SAFE_NO_PAD.decode(&click).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let token = URL_SAFE_NO_PAD.encode(changed);
            assert_eq!(
                tokens.read_click(&token, recipient.issued_at),
                None,
                "bit {bit}"
            );
        }
        for length in 0..bytes.len() {
            let token = URL_SAFE_NO_PAD.encode(&bytes[..length]);
            assert_eq!(
                tokens.read_click(&token, recipient.issued_at),
                None,
                "{length}"
            );
        }
        assert_eq!(tokens.read_click(&open, recipient.issued_at), None);
        assert_eq!(tokens.read_open(&click, recipient.issued_at), None);
        for text in ["", "x", "ä", &format!("{click}="), &click.repeat(2)] {
            assert_eq!(tokens.read_click(text, recipient.issued_at), None, "{text}");
            assert_eq!(tokens.read_open(text, recipient.issued_at), None, "{text}");
        }
        assert_eq!(
            tokens.read_open(&"A".repeat(100_000), recipient.issued_at),
            None
        );
    }

    #[test]
    fn keys_rotate_and_an_unknown_key_is_refused() {
        let recipient = recipient();
        let old = tokens(OTHER).issue_click(recipient, URL);
        let rotated = tokens(&format!("{EXAMPLE_KEYS},{OTHER}"));
        assert!(rotated.read_click(&old, recipient.issued_at).is_some());
        assert_eq!(
            tokens(EXAMPLE_KEYS).read_click(&old, recipient.issued_at),
            None
        );
        // An unknown key under a known id.
        let foreign = tokens(&OTHER.replace("7:", "1:")).issue_click(recipient, URL);
        assert_eq!(
            tokens(EXAMPLE_KEYS).read_click(&foreign, recipient.issued_at),
            None
        );
    }
}
