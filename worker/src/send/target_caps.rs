//! The caps of targets: how many recipients of a rule's messages an account may have in an hour
//! and on a day.
//!
//! Postgres counts, for all workers and by its clock, and hands out places in blocks
//! ([`waypost_core::routing::target_usage`]). A worker takes single places from its block. One is spent when a call
//! begins that may reach the provider, for each of its recipients; otherwise it returns to the
//! block. So a cap is never passed, whatever Redis does. What a worker has left at its end it
//! gives back; if it crashes, that part of the cap stays unused.
//!
//! The daily cap of a target with a ramp is that of the day. A target whose ramp has not begun is
//! passed over, whatever the rule says of caps.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{NaiveTime, TimeDelta};
use tokio::sync::Mutex as AsyncMutex;
use waypost_core::clock::{Clock, Timestamp};
use waypost_core::db::{self, OrFault, PgPool};
use waypost_core::fault::Fault;
use waypost_core::ids::{OrganizationId, ProviderAccountId, RoutingRuleId};
use waypost_core::routing::rule::RoutingRule;
use waypost_core::routing::target_usage::{Grant, UsageKey, UsageWindow, block_size, store};
use waypost_core::routing::targets::{OverCap, Target};
use waypost_core::warn_seldom;

use crate::send::select_account::{Blocked, BlockedBy};

/// How long a cap that was found reached is not asked for again. Another worker may give
/// places back.
const ASK_AGAIN_AFTER: TimeDelta = TimeDelta::seconds(30);
/// Blocks in memory beyond which those of ended windows are dropped.
const BLOCKS_MAX: usize = 10_000;
/// How soon a target is asked again of which the ramp is to make a step today: the scheduler makes
/// it within a minute.
const STEP_AWAITED: TimeDelta = TimeDelta::minutes(5);
/// How long giving back the unused places may take.
const GIVE_BACK_TIMEOUT: Duration = Duration::from_secs(2);

/// A target with caps, of the rule that applies to a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CappedTarget {
    organization_id: OrganizationId,
    rule_id: RoutingRuleId,
    target: Target,
    over_cap: OverCap,
}

impl CappedTarget {
    /// An account's target in a rule, if it has caps.
    pub(crate) fn of(rule: &RoutingRule, account_id: ProviderAccountId) -> Option<Self> {
        let mut targets = rule.terms.targets.iter();
        let target =
            targets.find(|target| target.account_id == account_id && target.is_capped())?;
        Some(Self {
            organization_id: rule.organization_id,
            rule_id: rule.id,
            target: *target,
            over_cap: rule.terms.over_cap,
        })
    }

    /// What is counted of it, with the cap of each.
    fn caps(self) -> impl Iterator<Item = (UsageKey, u32)> {
        UsageWindow::ALL.into_iter().filter_map(move |window| {
            let key = UsageKey {
                organization_id: self.organization_id,
                rule_id: self.rule_id,
                account_id: self.target.account_id,
                window,
            };
            Some((key, window.cap(&self.target)?))
        })
    }

    /// Why the target takes nothing yet: its ramp has not begun. It is asked again on the next
    /// day.
    fn not_begun(self, now: Timestamp) -> Option<Blocked> {
        let left = (!self.target.takes_mail()).then(|| time_to_next_day(now))?;
        Some(Blocked {
            by: BlockedBy::Cap(OverCap::Next),
            wait: self.until_step(left, now),
        })
    }

    /// How long the target is not asked again because of a cap that lasts for a time.
    fn until_step(self, left: Duration, now: Timestamp) -> Duration {
        let is_due = |day| day <= now.date_naive();
        match self.target.next_step_on().is_some_and(is_due) {
            true => left.min(STEP_AWAITED.to_std().unwrap_or_default()),
            false => left,
        }
    }
}

/// The time until the next day of UTC.
fn time_to_next_day(now: Timestamp) -> Duration {
    let midnight = now.date_naive().and_time(NaiveTime::MIN).and_utc();
    let left = midnight + TimeDelta::days(1) - now;
    left.to_std().unwrap_or_default()
}

/// The answer to a request for places.
pub(crate) enum TakenPlaces {
    /// The account is no target, or has no caps.
    Uncapped,
    Places(Places),
    /// A cap is reached.
    Reached(Blocked),
}

/// The places of this worker within caps.
pub(crate) struct TargetCaps {
    pool: PgPool,
    clock: Clock,
    blocks: Mutex<HashMap<UsageKey, Arc<PlaceBlock>>>,
}

impl TargetCaps {
    pub(crate) fn new(pool: PgPool, clock: Clock) -> Self {
        let blocks = Mutex::default();
        Self {
            pool,
            clock,
            blocks,
        }
    }

    /// Takes places for a call: one for each recipient, or none. A call with more recipients
    /// than the whole cap takes the whole.
    pub(crate) async fn take(
        &self,
        target: Option<CappedTarget>,
        recipients: usize,
    ) -> Result<TakenPlaces, Fault> {
        let Some(target) = target else {
            return Ok(TakenPlaces::Uncapped);
        };
        let now = self.clock.now();
        if let Some(blocked) = target.not_begun(now) {
            return Ok(TakenPlaces::Reached(blocked));
        }
        let recipients = u32::try_from(recipients).unwrap_or(u32::MAX);
        let mut places = Places {
            target,
            held: Vec::with_capacity(UsageWindow::ALL.len()),
        };
        for (key, cap) in target.caps() {
            let wanted = recipients.min(cap);
            match self.take_from_block(key, cap, wanted, wanted).await? {
                Ok(held) => places.held.push(held),
                Err(wait) => {
                    let by = BlockedBy::Cap(target.over_cap);
                    let wait = target.until_step(wait, now);
                    return Ok(TakenPlaces::Reached(Blocked { by, wait }));
                }
            }
        }
        Ok(TakenPlaces::Places(places))
    }

    /// Takes more places for a call, up to this number of recipients. Returns for how many
    /// there are places.
    pub(crate) async fn extend(&self, places: &mut Places, recipients: usize) -> usize {
        let recipients = u32::try_from(recipients).unwrap_or(u32::MAX);
        let mut size = recipients;
        for (index, (key, cap)) in places.target.caps().enumerate() {
            let Some(held) = places.held.get_mut(index) else {
                continue;
            };
            let missing = size.saturating_sub(held.places);
            if missing > 0
                && let Ok(Ok(more)) = self.take_from_block(key, cap, 1, missing).await
            {
                held.merge(more);
            }
            size = size.min(held.places);
        }
        usize::try_from(size).unwrap_or_default()
    }

    /// Takes `least` to `most` places of a block, which is filled if it has too few. If a
    /// cap is reached, says how long that lasts.
    async fn take_from_block(
        &self,
        key: UsageKey,
        cap: u32,
        least: u32,
        most: u32,
    ) -> Result<Result<HeldPlaces, Duration>, Fault> {
        let block = self.block(key);
        if let Some(taken) = block.take(cap, (least, most), self.clock.now()) {
            return Ok(taken);
        }
        // One request at a time: each would reserve a block.
        let _filling = block.filling.lock().await;
        if let Some(taken) = block.take(cap, (least, most), self.clock.now()) {
            return Ok(taken);
        }
        let wanted = block_size(cap).max(most);
        let doing = "reserve places of a target";
        let grant = db::bounded(doing, async {
            let mut connection = self.pool.acquire().await.or_fault(doing)?;
            store::reserve(&mut connection, key, wanted, cap).await
        });
        let grant = grant.await?;
        let now = self.clock.now();
        Ok(block.fill(grant, (wanted, cap), (least, most), now))
    }

    fn block(&self, key: UsageKey) -> Arc<PlaceBlock> {
        let mut blocks = self.blocks();
        if blocks.len() >= BLOCKS_MAX {
            let now = self.clock.now();
            blocks.retain(|_, block| Arc::strong_count(block) > 1 || !block.is_over(now));
        }
        Arc::clone(blocks.entry(key).or_default())
    }

    fn blocks(&self) -> MutexGuard<'_, HashMap<UsageKey, Arc<PlaceBlock>>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives back what is left of the blocks. No call begins any more.
    pub(crate) async fn give_back(&self) {
        let blocks: Vec<_> = self.blocks().drain().collect();
        let left = blocks.into_iter();
        let left = left.filter_map(|(key, block)| Some((key, block.empty()?)));
        let left: Vec<_> = left.collect();
        if left.is_empty() {
            return;
        }
        let doing = "give back places of targets";
        let giving_back = async {
            let mut connection = self.pool.acquire().await.or_fault(doing)?;
            for (key, (starts_at, places)) in left {
                store::give_back(&mut connection, key, starts_at, places).await?;
            }
            Ok::<(), Fault>(())
        };
        if let Ok(Err(fault)) = tokio::time::timeout(GIVE_BACK_TIMEOUT, giving_back).await {
            warn_seldom!(
                cause = fault.chain(),
                "Unused places of targets stay counted"
            );
        }
    }
}

/// Places of one target and window.
#[derive(Default)]
struct PlaceBlock {
    state: Mutex<PlaceBlockState>,
    /// Held while places are reserved.
    filling: AsyncMutex<()>,
}

#[derive(Default)]
struct PlaceBlockState {
    places: u32,
    /// When the window began, by the clock of Postgres, and when it ends, by that of this
    /// process.
    window: Option<(Timestamp, Timestamp)>,
    /// The cap that was found reached, and until when it is not asked for again.
    reached: Option<(u32, Timestamp)>,
}

impl PlaceBlock {
    fn state(&self) -> MutexGuard<'_, PlaceBlockState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self, now: Timestamp) -> bool {
        self.state()
            .window
            .is_none_or(|(_, ends_at)| ends_at <= now)
    }

    /// Takes places without asking Postgres. `None` if Postgres has to be asked.
    fn take(
        self: &Arc<Self>,
        cap: u32,
        (least, most): (u32, u32),
        now: Timestamp,
    ) -> Option<Result<HeldPlaces, Duration>> {
        let mut state = self.state();
        let (starts_at, ends_at) = state.window.filter(|(_, ends_at)| now < *ends_at)?;
        let is_reached = state
            .reached
            .is_some_and(|(reached, until)| reached == cap && now < until);
        if state.places >= most || (is_reached && state.places >= least) {
            let places = state.places.min(most);
            state.places -= places;
            return Some(Ok(self.held(starts_at, places)));
        }
        is_reached.then(|| Err((ends_at - now).to_std().unwrap_or_default()))
    }

    /// Adds what was reserved, and takes places of it.
    fn fill(
        self: &Arc<Self>,
        grant: Grant,
        (wanted, cap): (u32, u32),
        (least, most): (u32, u32),
        now: Timestamp,
    ) -> Result<HeldPlaces, Duration> {
        let mut state = self.state();
        // Places of a window that is over are worth nothing.
        if state.window.map(|(starts_at, _)| starts_at) != Some(grant.starts_at) {
            state.places = 0;
        }
        let left = TimeDelta::from_std(grant.left).unwrap_or_default();
        state.window = Some((grant.starts_at, now + left));
        state.places += grant.places;
        state.reached = (grant.places < wanted).then(|| (cap, now + left.min(ASK_AGAIN_AFTER)));
        if state.places < least {
            return Err(grant.left);
        }
        let places = state.places.min(most);
        state.places -= places;
        Ok(self.held(grant.starts_at, places))
    }

    fn held(self: &Arc<Self>, starts_at: Timestamp, places: u32) -> HeldPlaces {
        HeldPlaces {
            block: Arc::clone(self),
            starts_at,
            places,
        }
    }

    /// Takes all places, with the begin of their window.
    fn empty(&self) -> Option<(Timestamp, u32)> {
        let mut state = self.state();
        let places = std::mem::take(&mut state.places);
        let (starts_at, _) = state.window.filter(|_| places > 0)?;
        Some((starts_at, places))
    }
}

/// Places for a call, in each window for which its target has a cap. Those that are not spent
/// return to their blocks.
pub(crate) struct Places {
    target: CappedTarget,
    held: Vec<HeldPlaces>,
}

impl Places {
    /// Spends places, one for each recipient of a call.
    pub(crate) fn spend(&mut self, recipients: usize) {
        let recipients = u32::try_from(recipients).unwrap_or(u32::MAX);
        for held in &mut self.held {
            held.places = held.places.saturating_sub(recipients);
        }
    }
}

/// Places of one window.
struct HeldPlaces {
    block: Arc<PlaceBlock>,
    starts_at: Timestamp,
    places: u32,
}

impl HeldPlaces {
    /// Adds places of the same block. Of another window, the older return to it.
    fn merge(&mut self, mut more: Self) {
        if more.starts_at == self.starts_at {
            self.places += std::mem::take(&mut more.places);
        } else {
            std::mem::swap(self, &mut more);
        }
    }
}

impl Drop for HeldPlaces {
    fn drop(&mut self) {
        let mut state = self.block.state();
        let window = state.window.map(|(starts_at, _)| starts_at);
        if window == Some(self.starts_at) {
            state.places += self.places;
        }
    }
}
