//! How many recipients the targets of rules had in this hour and on this day. Postgres counts
//! them, by its clock, for all workers. A worker reserves places in blocks, so most calls ask
//! nobody.

pub mod store;

use std::time::Duration;

use super::targets::Target;
use crate::clock::Timestamp;
use crate::ids::{OrganizationId, ProviderAccountId, RoutingRuleId};

/// The most places of a block.
const BLOCK_MAX: u32 = 100;

/// A time for which a cap holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, sqlx::Type)]
#[sqlx(type_name = "usage_window", rename_all = "lowercase")]
pub enum UsageWindow {
    Hour,
    Day,
}

impl UsageWindow {
    /// All windows, the shorter first.
    pub const ALL: [Self; 2] = [Self::Hour, Self::Day];

    /// The cap of a target for the window.
    #[must_use]
    pub fn cap(self, target: &Target) -> Option<u32> {
        match self {
            Self::Hour => target.hourly_cap,
            Self::Day => target.daily_cap_now(),
        }
    }
}

/// How many places a worker reserves at once. A hundredth of the cap, so that little of it lies
/// unused with a worker.
#[must_use]
pub fn block_size(cap: u32) -> u32 {
    (cap / 100).clamp(1, BLOCK_MAX)
}

/// The answer to a request for places.
#[derive(Debug, Clone, Copy)]
pub struct Grant {
    /// The places, perhaps fewer than were asked for.
    pub places: u32,
    /// When the window began.
    pub starts_at: Timestamp,
    /// The time until it ends.
    pub left: Duration,
}

/// What is counted by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UsageKey {
    pub organization_id: OrganizationId,
    pub rule_id: RoutingRuleId,
    pub account_id: ProviderAccountId,
    pub window: UsageWindow,
}

/// What a target used of the current window.
#[derive(Debug, Clone, Copy)]
pub struct TargetUsage {
    pub account_id: ProviderAccountId,
    pub window: UsageWindow,
    pub used: u32,
}

/// What an account used of a window.
#[must_use]
pub fn used(usage: &[TargetUsage], account_id: ProviderAccountId, window: UsageWindow) -> u32 {
    let mut usage = usage.iter();
    let own = usage.find(|one| one.account_id == account_id && one.window == window);
    own.map_or(0, |own| own.used)
}
