//! Which messages to list.

use uuid::Uuid;

use crate::address::{AddressHash, EmailAddress, ascii_domain};
use crate::clock::Timestamp;
use crate::ids::{ProviderAccountId, TemplateId};
use crate::message::MessageStatus;

/// Restricts a list of messages. An empty filter is the whole list
/// of live messages. No `Debug`: it must not
/// be logged.
#[derive(Clone, Default)]
pub struct MessageFilter {
    /// Only tests, or only live messages.
    pub is_test: bool,
    /// Only messages with one of these statuses. None is every status.
    pub statuses: Vec<MessageStatus>,
    /// Only messages whose subject contains this text, ignoring case.
    pub search: Option<String>,
    /// Only messages with this recipient.
    pub recipient: Option<AddressHash>,
    pub from: Option<Sender>,
    pub tag: Option<String>,
    pub template_id: Option<TemplateId>,
    /// Only messages of this account: that of the acceptance, or the one that sent it.
    pub provider_account_id: Option<ProviderAccountId>,
    /// Only messages for which a provider gave this id to a recipient's mail.
    pub provider_message_id: Option<String>,
    /// Only messages accepted in this millisecond or later.
    pub created_from: Option<Timestamp>,
    /// Only messages accepted in an earlier millisecond.
    pub created_to: Option<Timestamp>,
}

/// The sender of messages, in lower case.
#[derive(Clone, PartialEq, Eq)]
pub enum Sender {
    Address(String),
    Domain(String),
}

impl Sender {
    /// Parses an address or a domain; `None` if the text is neither.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.contains('@') {
            let address = EmailAddress::parse(text).ok()?;
            Some(Self::Address(address.as_str().to_ascii_lowercase()))
        } else {
            ascii_domain(text.trim()).map(Self::Domain)
        }
    }

    pub(super) fn address(&self) -> Option<&str> {
        match self {
            Self::Address(address) => Some(address),
            Self::Domain(_) => None,
        }
    }

    pub(super) fn domain(&self) -> Option<&str> {
        match self {
            Self::Address(_) => None,
            Self::Domain(domain) => Some(domain),
        }
    }
}

/// A value that the index of labels has. The kinds are those of the migration
/// `message_labels`.
#[derive(Clone)]
pub(super) struct Label {
    pub(super) kind: &'static str,
    pub(super) value: String,
}

impl MessageFilter {
    /// Whether only the status and the time restrict the list, so that counters know it.
    pub(super) fn is_counted(&self) -> bool {
        self.search.is_none() && self.provider_message_id.is_none() && self.labels().is_empty()
    }

    /// Whether only the text and at most one status restrict the list.
    pub(super) fn is_search(&self) -> bool {
        let has_times = self.created_from.is_some() || self.created_to.is_some();
        self.search.is_some()
            && self.statuses.len() <= 1
            && self.provider_message_id.is_none()
            && self.labels().is_empty()
            && !has_times
    }

    /// The labels that a message must have, those first that usually are the rarest.
    pub(super) fn labels(&self) -> Vec<Label> {
        let sender = self.from.as_ref();
        let values = [
            ("to", self.recipient.map(AddressHash::to_hex)),
            ("tag", self.tag.clone()),
            ("template", self.template_id.map(|id| id.to_string())),
            ("from", sender.and_then(Sender::address).map(str::to_owned)),
            ("account", self.provider_account_id.map(|id| id.to_string())),
            ("domain", sender.and_then(Sender::domain).map(str::to_owned)),
        ];
        let given = values.into_iter();
        given
            .filter_map(|(kind, value)| value.map(|value| Label { kind, value }))
            .collect()
    }

    /// The range of the messages' ids. The time of a message is that of its id.
    pub(super) fn ids(&self) -> IdBounds {
        let id_of = |at: Timestamp| {
            let ms = at.timestamp_millis();
            let is_cut = !at.timestamp_subsec_micros().is_multiple_of(1_000);
            (first_id(ms), first_id(ms + i64::from(is_cut)))
        };
        IdBounds {
            from: self.created_from.map_or(Uuid::nil(), |at| id_of(at).0),
            below: self.created_to.map_or(Uuid::max(), |at| id_of(at).1),
        }
    }
}

/// The smallest id of a millisecond.
pub(super) fn first_id(at_ms: i64) -> Uuid {
    let ms = u128::try_from(at_ms).unwrap_or_default();
    Uuid::from_u128(ms.min((1 << 48) - 1) << 80)
}

/// A range of ids: from one id up to another, which is not in it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct IdBounds {
    pub(super) from: Uuid,
    pub(super) below: Uuid,
}

impl IdBounds {
    /// Every message.
    pub(super) const ALL: Self = Self {
        from: Uuid::nil(),
        below: Uuid::max(),
    };

    /// What both ranges have.
    pub(super) fn within(self, other: Self) -> Self {
        Self {
            from: self.from.max(other.from),
            below: self.below.min(other.below),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_is_an_address_or_a_domain_in_lower_case() {
        for (text, address, domain) in [
            ("News@Example.com", Some("news@example.com"), None),
            (" example.COM ", None, Some("example.com")),
            ("bücher.example", None, Some("xn--bcher-kva.example")),
            ("a@b@c", None, None),
            ("@example.com", None, None),
            ("not a domain", None, None),
            ("", None, None),
        ] {
            let sender = Sender::parse(text);
            let found = sender.as_ref().and_then(Sender::address);
            assert_eq!(found, address, "{text}");
            assert_eq!(sender.as_ref().and_then(Sender::domain), domain, "{text}");
        }
    }

    #[test]
    fn times_are_whole_milliseconds_of_ids() {
        let at = |micros| Timestamp::from_timestamp_micros(micros).unwrap();
        let ids = |from, to| {
            let filter = MessageFilter {
                created_from: Some(at(from)),
                created_to: Some(at(to)),
                ..MessageFilter::default()
            };
            let ids = filter.ids();
            (ids.from.as_u128() >> 80, ids.below.as_u128() >> 80)
        };
        assert_eq!(ids(5_000, 7_000), (5, 7));
        assert_eq!(ids(5_001, 7_001), (5, 8));
        assert_eq!(ids(5_999, 7_999), (5, 8));
        assert_eq!(ids(-1, 0), (0, 0));
    }
}
