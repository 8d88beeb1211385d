//! The events after a message was accepted; the local part before `+` selects them.

/// An event that a provider reports about a recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ProviderEventKind {
    /// The provider accepted it (processed, accepted, Send). Postmark reports no such
    /// event.
    Sent,
    Delivered,
    /// The receiving server deferred it.
    Deferred,
    /// The address does not exist.
    HardBounce,
    /// The mailbox was full until the provider gave up.
    SoftBounce,
    /// The receiving server rejected this message or this sender.
    Block,
    /// The receiving server rejected it because the sender is on a block list.
    Listed,
    /// No server of the recipient's domain responded until the provider gave up.
    Expired,
    /// The provider dropped it before the first try.
    Dropped,
    Opened,
    Clicked,
    Complained,
    Unsubscribed,
}

impl ProviderEventKind {
    /// In the order of their discriminants.
    pub(crate) const ALL: [Self; 13] = [
        Self::Sent,
        Self::Delivered,
        Self::Deferred,
        Self::HardBounce,
        Self::SoftBounce,
        Self::Block,
        Self::Listed,
        Self::Expired,
        Self::Dropped,
        Self::Opened,
        Self::Clicked,
        Self::Complained,
        Self::Unsubscribed,
    ];

    /// The name in the simulator's log.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Delivered => "delivered",
            Self::Deferred => "deferred",
            Self::HardBounce => "hard-bounce",
            Self::SoftBounce => "soft-bounce",
            Self::Block => "block",
            Self::Listed => "listed",
            Self::Expired => "expired",
            Self::Dropped => "dropped",
            Self::Opened => "opened",
            Self::Clicked => "clicked",
            Self::Complained => "complained",
            Self::Unsubscribed => "unsubscribed",
        }
    }
}

/// A set of event kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kinds(u16);

impl Kinds {
    pub(crate) const ALL: Self = Self((1 << ProviderEventKind::ALL.len()) - 1);

    pub(crate) fn with(self, kinds: &[ProviderEventKind]) -> Self {
        let bits = kinds.iter().map(|&kind| 1 << kind as u8);
        Self(bits.fold(self.0, |all, bit: u16| all | bit))
    }

    pub(crate) fn contains(self, kind: ProviderEventKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}

/// The events of a message to this address, in order.
pub(crate) fn events_for(address: &str) -> &'static [ProviderEventKind] {
    use ProviderEventKind::{
        Block, Clicked, Complained, Deferred, Delivered, Dropped, Expired, HardBounce, Listed,
        Opened, Sent, SoftBounce, Unsubscribed,
    };
    const EVENTS: [(&str, &[ProviderEventKind]); 11] = [
        ("hard-bounce", &[Sent, HardBounce]),
        ("soft-bounce", &[Sent, SoftBounce]),
        ("block", &[Sent, Block]),
        ("listed", &[Sent, Listed]),
        ("expired", &[Sent, Deferred, Expired]),
        ("complaint", &[Sent, Delivered, Complained]),
        ("open", &[Sent, Delivered, Opened]),
        ("click", &[Sent, Delivered, Opened, Clicked]),
        ("unsubscribe", &[Sent, Delivered, Unsubscribed]),
        ("defer", &[Sent, Deferred, Delivered]),
        ("drop", &[Sent, Dropped]),
    ];
    let end = address.find(['+', '@']).unwrap_or(address.len());
    let name = &address[..end];
    EVENTS
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map_or(&[Sent, Delivered], |(_, kinds)| *kinds)
}

#[cfg(test)]
mod tests {
    use super::{Kinds, ProviderEventKind, events_for};

    #[test]
    fn the_local_part_before_the_plus_selects_the_events() {
        let plain = [ProviderEventKind::Sent, ProviderEventKind::Delivered];
        assert_eq!(events_for("ann@example.org"), plain);
        assert_eq!(events_for("opener@example.org"), plain);
        let bounced = [ProviderEventKind::Sent, ProviderEventKind::HardBounce];
        assert_eq!(events_for("Hard-Bounce+7@example.org"), bounced);
    }

    #[test]
    fn a_set_has_what_was_put_in() {
        let kinds =
            Kinds::default().with(&[ProviderEventKind::Opened, ProviderEventKind::Unsubscribed]);
        let found: Vec<_> = ProviderEventKind::ALL
            .into_iter()
            .filter(|&one| kinds.contains(one))
            .collect();
        assert_eq!(
            found,
            [ProviderEventKind::Opened, ProviderEventKind::Unsubscribed]
        );
        assert!(
            ProviderEventKind::ALL
                .iter()
                .all(|&one| Kinds::ALL.contains(one))
        );
    }
}
