//! The tokens of pixels and tracked links. A token says which copy it was in, and
//! that of a link where it leads: nobody is led to where no sender of ours wrote.
//!
//! It is unpadded base64url of `version (1) ‖ key id (2) ‖ organization (16) ‖
//! message (16) ‖ position (2) ‖ seconds since 1970 (4) ‖ URL, of a link ‖ the first
//! half of HMAC-SHA256 of all before it (16)`. It says nothing of the address, so
//! nothing is sealed; and a body may hold many, so everything is as short as it may
//! be: RFC 2104, section 5, advises half of the signature as the least.

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

/// The longest URL that is tracked, in bytes. Longer paths than its token makes are
/// cut or refused by proxies and programs in between.
pub(super) const URL_BYTES_MAX: usize = 2_048;

const VERSION: u8 = 1;
/// Bytes before the URL.
const HEAD_BYTES: usize = 3 + 2 * 16 + 2 + 4;

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedToken<T> {
    /// The copy that it was in.
    pub copy: TrackedRecipient,
    /// Where the link leads; nothing of a pixel.
    pub target: T,
    /// Whether it is too old to be recorded.
    pub is_expired: bool,
}

/// Issues and reads tokens. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TrackingTokens {
    signer: Signer,
    lifetime: Duration,
}

impl TrackingTokens {
    /// Works with the configured keys and lifetime.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            signer: settings.signer.clone(),
            lifetime: settings.links.tracking_lifetime,
        }
    }

    /// Makes the token of a copy's pixel.
    #[must_use]
    pub fn issue_open(&self, copy: TrackedRecipient) -> String {
        self.issue(Signed::OpenPixel, copy, "")
    }

    /// Makes the token of a link in a copy.
    #[must_use]
    pub fn issue_click(&self, copy: TrackedRecipient, url: &str) -> String {
        self.issue(Signed::ClickLink, copy, url)
    }

    /// Reads the token of a pixel; nothing where it is none of ours.
    #[must_use]
    pub fn read_open(&self, token: &str, now: Timestamp) -> Option<DecodedToken<()>> {
        let (copy, url) = self.authentic(Signed::OpenPixel, token)?;
        url.is_empty().then(|| self.dated(copy, (), now))
    }

    /// Reads the token of a link; nothing where it is none of ours.
    #[must_use]
    pub fn read_click(&self, token: &str, now: Timestamp) -> Option<DecodedToken<String>> {
        let (copy, url) = self.authentic(Signed::ClickLink, token)?;
        Some(self.dated(copy, String::from_utf8(url).ok()?, now))
    }

    fn issue(&self, kind: Signed, copy: TrackedRecipient, url: &str) -> String {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + url.len() + SHORT_SIGNATURE_BYTES);
        bytes.push(VERSION);
        bytes.extend(self.signer.key_id().to_be_bytes());
        bytes.extend(copy.organization_id.0.as_bytes());
        bytes.extend(copy.message_id.0.as_bytes());
        // A message has 1,000 recipients at the most; the seconds last until 2106.
        bytes.extend(
            u16::try_from(copy.position)
                .unwrap_or(u16::MAX)
                .to_be_bytes(),
        );
        let seconds = u32::try_from(copy.issued_at.timestamp()).unwrap_or(u32::MAX);
        bytes.extend(seconds.to_be_bytes());
        bytes.extend(url.as_bytes());
        let signature = self.signer.sign_shortly(kind, &bytes);
        bytes.extend(signature);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn dated<T>(&self, copy: TrackedRecipient, target: T, now: Timestamp) -> DecodedToken<T> {
        DecodedToken {
            copy,
            target,
            is_expired: now - copy.issued_at >= delta(self.lifetime),
        }
    }

    /// What a token says, if one of our keys signed it.
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
        let copy = TrackedRecipient {
            organization_id: OrganizationId(Uuid::from_bytes(part(head, 3))),
            message_id: MessageId(Uuid::from_bytes(part(head, 19))),
            position: i32::from(u16::from_be_bytes(part(head, 35))),
            issued_at: DateTime::from_timestamp(seconds.into(), 0)?,
        };
        bytes.truncate(bytes.len() - SHORT_SIGNATURE_BYTES);
        Some((copy, bytes.split_off(HEAD_BYTES)))
    }
}

/// How long the token is of a link to a URL of this length.
pub(super) const fn chars(url_bytes: usize) -> usize {
    ((HEAD_BYTES + url_bytes + SHORT_SIGNATURE_BYTES) * 4).div_ceil(3)
}

fn part<const N: usize>(head: &[u8; HEAD_BYTES], start: usize) -> [u8; N] {
    let part = head[start..].first_chunk();
    *part.expect("the parts of a head lie within it")
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

    fn copy() -> TrackedRecipient {
        let ids = Ids::new(Clock::system());
        TrackedRecipient {
            organization_id: ids.next(),
            message_id: ids.next(),
            position: 999,
            issued_at: DateTime::from_timestamp(1_800_000_000, 0).unwrap(),
        }
    }

    #[test]
    fn a_token_says_what_it_was_made_of_and_whether_it_is_old() {
        let (tokens, copy) = (tokens(EXAMPLE_KEYS), copy());
        let (open, click) = (tokens.issue_open(copy), tokens.issue_click(copy, URL));
        for (after, is_expired) in [
            (-DAY, false),
            (DAY * 400 - TimeDelta::seconds(1), false),
            (DAY * 400, true),
            (DAY * 6_000, true),
        ] {
            let now = copy.issued_at + after;
            let read = tokens.read_open(&open, now).unwrap();
            assert_eq!((read.copy, read.is_expired), (copy, is_expired));
            let read = tokens.read_click(&click, now).unwrap();
            assert_eq!((read.copy, read.is_expired), (copy, is_expired));
            assert_eq!(read.target, URL);
        }
    }

    #[test]
    fn a_token_is_short_and_plain() {
        let (tokens, copy) = (tokens(EXAMPLE_KEYS), copy());
        let longest = format!("https://example.com/{}", "a".repeat(URL_BYTES_MAX - 20));
        for (token, length) in [
            (tokens.issue_open(copy), 76),
            (tokens.issue_click(copy, URL), 120),
            (tokens.issue_click(copy, &longest), chars(URL_BYTES_MAX)),
        ] {
            assert_eq!(token.len(), length);
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            assert!(token.bytes().all(is_plain), "{token}");
        }
        let token = tokens.issue_click(copy, &longest);
        assert!(tokens.read_click(&token, copy.issued_at).is_some());
    }

    #[test]
    fn a_token_that_was_changed_anywhere_or_is_of_the_other_kind_is_none() {
        let (tokens, copy) = (tokens(EXAMPLE_KEYS), copy());
        let (open, click) = (tokens.issue_open(copy), tokens.issue_click(copy, URL));
        let bytes = URL_SAFE_NO_PAD.decode(&click).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let token = URL_SAFE_NO_PAD.encode(changed);
            assert_eq!(tokens.read_click(&token, copy.issued_at), None, "bit {bit}");
        }
        for length in 0..bytes.len() {
            let token = URL_SAFE_NO_PAD.encode(&bytes[..length]);
            assert_eq!(tokens.read_click(&token, copy.issued_at), None, "{length}");
        }
        assert_eq!(tokens.read_click(&open, copy.issued_at), None);
        assert_eq!(tokens.read_open(&click, copy.issued_at), None);
        for text in ["", "x", "ä", &format!("{click}="), &click.repeat(2)] {
            assert_eq!(tokens.read_click(text, copy.issued_at), None, "{text}");
            assert_eq!(tokens.read_open(text, copy.issued_at), None, "{text}");
        }
        assert_eq!(tokens.read_open(&"A".repeat(100_000), copy.issued_at), None);
    }

    #[test]
    fn keys_rotate_and_a_foreign_one_is_refused() {
        let copy = copy();
        let old = tokens(OTHER).issue_click(copy, URL);
        let rotated = tokens(&format!("{EXAMPLE_KEYS},{OTHER}"));
        assert!(rotated.read_click(&old, copy.issued_at).is_some());
        assert_eq!(tokens(EXAMPLE_KEYS).read_click(&old, copy.issued_at), None);
        // A foreign key under an id that is known.
        let foreign = tokens(&OTHER.replace("7:", "1:")).issue_click(copy, URL);
        assert_eq!(
            tokens(EXAMPLE_KEYS).read_click(&foreign, copy.issued_at),
            None
        );
    }
}
