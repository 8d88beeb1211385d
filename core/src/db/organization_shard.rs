//! Shards of the organizations by the hash of their id. Work for all organizations is split
//! into one step per shard, so that the steps have no rows in common.

/// One of several shards with about the same number of organizations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrganizationShard {
    /// The bits of the hash that select the shard.
    pub(crate) mask: i32,
    /// The value of these bits in this shard.
    pub(crate) nth: i32,
}

impl OrganizationShard {
    /// All organizations.
    pub const WHOLE: Self = Self { mask: 0, nth: 0 };

    /// All of `count` shards, rounded up to a power of two, at most 2^15.
    pub fn all(count: u16) -> impl ExactSizeIterator<Item = Self> {
        let count = count.clamp(1, 1 << 15).next_power_of_two();
        let mask = count - 1;
        (0..count).map(move |nth| Self {
            mask: i32::from(mask),
            nth: i32::from(nth),
        })
    }
}
