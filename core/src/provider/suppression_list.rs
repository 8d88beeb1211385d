//! Reads the suppression lists that a provider keeps itself: addresses that bounced, that
//! complained, and that unsubscribed from all mail. The adapters read one page in one call;
//! [`ListCursor`] says which one. Results are normalised here.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::call::ProviderReply;
use super::credentials::UnusableCredentials;
use super::outcome::{reason, unusable_reply};
use crate::address::EmailAddress;
use crate::clock::Timestamp;

/// The longest token of a page, in bytes.
const TOKEN_BYTES_MAX: usize = 4_096;

/// Why a provider lists an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListReason {
    Bounce,
    Complaint,
    /// The recipient unsubscribed from all mail, or the customer added the address by hand.
    Unsubscribe,
}

/// An address of a list.
#[derive(Clone, PartialEq, Eq)]
pub struct ListedAddress {
    pub address: EmailAddress,
    pub reason: ListReason,
    /// Since when the provider lists it, if the provider says so.
    pub since: Option<Timestamp>,
}

/// Addresses do not belong in logs.
impl std::fmt::Debug for ListedAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ListedAddress")
            .field("reason", &self.reason)
            .field("since", &self.since)
            .finish_non_exhaustive()
    }
}

/// A page of the lists: the number of the list in the order of its adapter, and the
/// provider's own mark of the page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListCursor {
    pub(super) list: usize,
    /// Empty for the first page of the list.
    pub(super) token: String,
}

impl ListCursor {
    /// The text for a client.
    #[must_use]
    pub fn write(&self) -> String {
        URL_SAFE_NO_PAD.encode(format!("{}:{}", self.list, self.token))
    }

    /// Reads the text; `None` if it is none.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let text = URL_SAFE_NO_PAD.decode(text).ok()?;
        let text = String::from_utf8(text).ok()?;
        let (list, token) = text.split_once(':')?;
        let fits = token.len() <= TOKEN_BYTES_MAX && !token.chars().any(char::is_control);
        let list = list.parse().ok()?;
        let token = token.to_owned();
        fits.then_some(Self { list, token })
    }

    /// The next page of the same list.
    pub(super) fn at(list: usize, token: impl ToString) -> Self {
        let token = token.to_string();
        Self { list, token }
    }

    /// The first page of the list that follows the one numbered `list`, of `lists`.
    pub(super) fn after(list: usize, lists: usize) -> Option<Self> {
        (list + 1 < lists).then(|| Self::at(list + 1, ""))
    }
}

/// One page of the lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListPage {
    pub addresses: Vec<ListedAddress>,
    /// Entries that name no address, or that hold for some mail only.
    pub unusable: usize,
    /// `None` after the last page of the last list.
    pub next: Option<ListCursor>,
}

impl ListPage {
    /// Adds an entry whose address is this text.
    pub(super) fn add(&mut self, text: Option<&str>, reason: ListReason, since: Option<Timestamp>) {
        match text.map(EmailAddress::parse) {
            Some(Ok(address)) => self.addresses.push(ListedAddress {
                address,
                reason,
                since,
            }),
            Some(Err(_)) | None => self.unusable += 1,
        }
    }
}

/// The result of reading a page. Each variant has a different next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListResult {
    Page(ListPage),
    /// The provider keeps no lists that can be read.
    NotOffered,
    /// There is no such page: the cursor is not one of this provider's.
    NoSuchPage,
    /// The provider refused; the same call would fail again.
    Refused {
        reason: String,
    },
    /// No usable reply: a rate limit, a failure, a network device.
    Undecided {
        reason: String,
    },
}

impl ListResult {
    pub(super) fn undecided(reply: &ProviderReply, text: &str) -> Self {
        Self::Undecided {
            reason: reason(reply.status, text),
        }
    }

    /// The result of a reply that is no page: refused if the status is 400 to 499 and no
    /// limit, else undecided.
    pub(super) fn not_read(reply: &ProviderReply, text: &str) -> Self {
        match (reply.status, unusable_reply(reply)) {
            (408 | 420 | 425 | 429, _) => Self::undecided(reply, text),
            (_, Some(why)) => Self::undecided(reply, why),
            (400..=499, None) => Self::Refused {
                reason: reason(reply.status, text),
            },
            (_, None) => Self::undecided(reply, text),
        }
    }
}

impl From<UnusableCredentials> for ListResult {
    fn from(unusable: UnusableCredentials) -> Self {
        Self::Undecided {
            reason: unusable.to_string(),
        }
    }
}

/// A time in Unix seconds, possibly with a fraction.
pub(super) fn unix_seconds(value: &Value) -> Option<Timestamp> {
    let seconds = value.as_f64().filter(|seconds| *seconds > 0.0)?;
    let ms = seconds * 1_000.0;
    // Past the year 9999 it is no time.
    (ms < 253_402_300_800_000.0).then(|| Timestamp::from_timestamp_millis(ms as i64))?
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        for cursor in [
            ListCursor::default(),
            ListCursor::at(3, 1_500),
            ListCursor::at(1, "page=next&address=a%40b.example"),
            ListCursor::at(0, "a:b:ü="),
        ] {
            assert_eq!(ListCursor::read(&cursor.write()), Some(cursor));
        }
        let long = ListCursor::at(0, "x".repeat(TOKEN_BYTES_MAX + 1));
        for text in [
            "",
            "0:",
            "MA",
            "!",
            &long.write(),
            &ListCursor::at(0, "\n").write(),
        ] {
            assert_eq!(ListCursor::read(text), None, "{text}");
        }
    }

    #[test]
    fn times_are_whole_and_broken_seconds_within_bounds() {
        let ms = |value| unix_seconds(&value).map(|at| at.timestamp_millis());
        assert_eq!(ms(json!(1_443_651_125)), Some(1_443_651_125_000));
        assert_eq!(ms(json!(1_443_651_125.5)), Some(1_443_651_125_500));
        for none in [json!(0), json!(-1), json!(1e300), json!("1"), json!(null)] {
            assert_eq!(ms(none), None);
        }
    }
}
