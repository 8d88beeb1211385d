//! Shares of the organizations, by the hashes of their ids: what is to be done for all of
//! them in small steps is done for some of them at a time, so that the steps have no rows
//! in common.

/// One of some shares with about as many organizations each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrganizationShard {
    /// The bits of the hash that decide.
    pub(crate) mask: i32,
    /// What they are in this share.
    pub(crate) nth: i32,
}

impl OrganizationShard {
    /// All organizations.
    pub const WHOLE: Self = Self { mask: 0, nth: 0 };

    /// All shares of so many, rounded up to a power of two, up to 2^15.
    pub fn all(shares: u16) -> impl ExactSizeIterator<Item = Self> {
        let count = shares.clamp(1, 1 << 15).next_power_of_two();
        let mask = count - 1;
        (0..count).map(move |nth| Self {
            mask: i32::from(mask),
            nth: i32::from(nth),
        })
    }
}
