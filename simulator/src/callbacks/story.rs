//! What becomes of an accepted mail: the local part before `+` tells the story.

/// One thing that a provider tells about one recipient's copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ProviderEventKind {
    /// The provider took it up (processed, accepted, Send). Postmark tells nothing of it.
    Sent,
    Delivered,
    /// The receiving side put it off.
    Deferred,
    /// The address does not exist.
    HardBounce,
    /// The mailbox was full until the provider gave up.
    SoftBounce,
    /// The receiving side refused this mail or this sender.
    Block,
    /// The receiving side refused it because a list of senders names ours.
    Listed,
    /// No server of the receiving side took it until the provider gave up.
    Expired,
    /// The provider dropped it before it tried.
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

    /// The word in the simulator's own log.
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

/// A set of happenings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kinds(u16);

impl Kinds {
    pub(crate) const ALL: Self = Self((1 << ProviderEventKind::ALL.len()) - 1);

    pub(crate) fn with(self, happenings: &[ProviderEventKind]) -> Self {
        let bits = happenings.iter().map(|&happening| 1 << happening as u8);
        Self(bits.fold(self.0, |all, bit: u16| all | bit))
    }

    pub(crate) fn contains(self, happening: ProviderEventKind) -> bool {
        self.0 & (1 << happening as u8) != 0
    }
}

/// What happens to a mail for this address, in order.
pub(crate) fn story_of(address: &str) -> &'static [ProviderEventKind] {
    use ProviderEventKind::{
        Block, Clicked, Complained, Deferred, Delivered, Dropped, Expired, HardBounce, Listed,
        Opened, Sent, SoftBounce, Unsubscribed,
    };
    const STORIES: [(&str, &[ProviderEventKind]); 11] = [
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
    STORIES
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map_or(&[Sent, Delivered], |(_, story)| *story)
}

#[cfg(test)]
mod tests {
    use super::{Kinds, ProviderEventKind, story_of};

    #[test]
    fn the_local_part_before_the_plus_tells_the_story() {
        let plain = [ProviderEventKind::Sent, ProviderEventKind::Delivered];
        assert_eq!(story_of("ann@example.org"), plain);
        assert_eq!(story_of("opener@example.org"), plain);
        let bounced = [ProviderEventKind::Sent, ProviderEventKind::HardBounce];
        assert_eq!(story_of("Hard-Bounce+7@example.org"), bounced);
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
