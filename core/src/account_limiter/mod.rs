//! Limits the calls to a provider account: circuit breaker, rate and concurrency.
//!
//! Every call to a provider acquires a [`Permit`] first ([`AccountLimiter::acquire`]) and
//! reports its result afterwards ([`Permit::end`]). A call is rejected while too many calls
//! of the account fail, while the account itself cannot send, while its provider names a
//! pause, and while the account's limits are used up. If the provider throttles, the
//! account's rate follows what the provider accepts. `account_states` holds what this
//! process knows, `circuit_breaker`, `throttle` and `rate` hold the rules, and `sync`
//! shares the state with the other workers through Redis.
//!
//! Promises: a call of an account that works and has no limits needs no Redis command. The
//! other workers learn within 250 ms that a breaker opened or closed. When the wait of an
//! open breaker is over, each worker makes one trial call. So N workers make at most N
//! trial calls for each wait, and fewer if the first result comes before they call: it
//! closes the breaker for all, or opens it for all and for longer. One trial over all
//! workers would need a lock in Redis and would spare a failing provider a few calls.
//!
//! Redis holds the state that a worker wrote last, except that an opening never shortens
//! another. If workers disagree for a moment, the provider gets a few calls more or less.
//!
//! While Redis is unreachable, every worker uses what it knew and what it observes itself,
//! and takes its share of the limits. An account may then exceed its limits, and also for
//! the length of a call after Redis went away or came back: a share is at least one call,
//! so if there are more workers than calls allowed, each worker makes one; and calls in
//! flight on other workers are not counted. No call is rejected because Redis is
//! unreachable. If Redis loses its data, the workers write open breakers again.

mod account_states;
mod circuit_breaker;
pub mod circuits;
mod failures;
mod local;
mod rate;
mod shared;
mod store;
mod sync;
mod throttle;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::SendingSettings;
use crate::db::PgPool;
use crate::ids::{Ids, ProviderAccountId};
use crate::provider::outcome::SendOutcome;
use crate::redis::Redis;
use account_states::{AccountStates, CallEnd, CallStart};
use circuit_breaker::Sample;
use local::LocalRates;
use rate::AccountRate;
use shared::{HeldSlot, RedisSlots, SlotReply};

/// The assumed duration of a call, to schedule those that wait for another to end.
const TYPICAL_CALL: Duration = Duration::from_millis(200);

/// The highest rate limit of an account, in calls per second.
pub const RATE_PER_SECOND_MAX: u32 = 100_000;
/// The highest concurrency limit of an account.
pub const CONCURRENCY_MAX: u32 = 10_000;

/// The limits of an account over all workers; `None` is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccountLimits {
    /// Calls per second.
    pub max_rate_per_second: Option<u32>,
    pub max_concurrency: Option<u32>,
}

impl AccountLimits {
    /// Reads the limits from an account's columns.
    pub(crate) fn from_columns(
        max_rate_per_second: Option<i32>,
        max_concurrency: Option<i32>,
    ) -> Self {
        let number = |stored: Option<i32>| stored.and_then(|number| u32::try_from(number).ok());
        Self {
            max_rate_per_second: number(max_rate_per_second),
            max_concurrency: number(max_concurrency),
        }
    }
}

/// A call that is about to be made.
#[derive(Debug, Clone, Copy)]
pub struct AccountCall<'a> {
    pub account: ProviderAccountId,
    /// The account's revision: a higher one closes a breaker that opened before.
    pub revision: u32,
    pub limits: AccountLimits,
    /// The most calls in flight in this process.
    pub process_calls_max: Option<u32>,
    /// The recipient's domain, if the server may throttle domains separately.
    pub domain: Option<&'a str>,
}

/// The limiter of all accounts. Cheap to clone; a worker process has one.
#[derive(Clone)]
pub struct AccountLimiter {
    inner: Arc<LimiterInner>,
    shutdown: CancellationToken,
}

/// The state that the clones share.
struct LimiterInner {
    states: Mutex<AccountStates>,
    shared: RedisSlots,
    local: LocalRates,
    /// Slots in Redis whose calls ended.
    to_release: Mutex<Vec<HeldSlot>>,
    wakeup: Notify,
    /// Whether the sync task has more to do than to release slots.
    has_changes: AtomicBool,
    /// The number of workers that share the limits while Redis is unreachable.
    workers: AtomicU32,
    /// With a call's number, the name of its slot in Redis.
    name: String,
    number: AtomicU64,
    clock: Clock,
    ids: Ids,
}

impl AccountLimiter {
    /// Starts the connection to Redis and the sync task. Breaker times use `clock`; rates
    /// use the machine's monotonic clock.
    #[must_use]
    pub fn start(
        redis: Redis,
        settings: &SendingSettings,
        clock: Clock,
        ids: Ids,
        shutdown: CancellationToken,
    ) -> Self {
        let inner = Arc::new(LimiterInner {
            states: Mutex::default(),
            shared: RedisSlots::start(redis, settings.call_timeout),
            local: LocalRates::new(),
            to_release: Mutex::default(),
            wakeup: Notify::new(),
            has_changes: AtomicBool::new(false),
            workers: AtomicU32::new(1),
            name: ids.alphanumeric(12),
            number: AtomicU64::new(0),
            clock,
            ids,
        });
        tokio::spawn(sync::run(Arc::clone(&inner), shutdown.clone()));
        Self { inner, shutdown }
    }

    /// Starts to count the workers every few seconds: they share the limits while Redis is
    /// unreachable. Without it this process assumes to be the only worker.
    pub fn count_workers(&self, pool: PgPool) {
        let inner = Arc::clone(&self.inner);
        tokio::spawn(sync::count_workers(inner, pool, self.shutdown.clone()));
    }

    /// Starts to report accounts whose calls fail to Postgres, for their events.
    pub fn report_failures(&self, pool: PgPool) {
        let inner = Arc::clone(&self.inner);
        tokio::spawn(failures::run(inner, pool, self.shutdown.clone()));
    }

    /// Acquires a permit for a call or rejects it at once. Makes a round trip to Redis only
    /// if the account has limits.
    pub async fn acquire(&self, call: AccountCall<'_>) -> Acquired {
        let AccountCall {
            account,
            limits,
            process_calls_max,
            ..
        } = call;
        let inner = &self.inner;
        let admitted = {
            let mut states = inner.states();
            let state = states.state(account);
            if state.is_new() && !inner.shared.is_away() {
                inner.notify_changes();
            }
            state.admit(account, (call.revision, call.domain), inner.clock.now())
        };
        let permit = match admitted {
            Ok(start) => inner.permit(call, start),
            Err(rejected) => return Acquired::Rejected(rejected),
        };
        if let Some(concurrency_max) = process_calls_max
            && inner.states().state(account).in_flight() > concurrency_max
        {
            drop(permit);
            return Acquired::Rejected(inner.reject_by_concurrency(account, concurrency_max));
        }
        if limits == AccountLimits::default() {
            return Acquired::Granted(permit);
        }
        match inner.acquire_limits(permit, limits).await {
            Ok(permit) => Acquired::Granted(permit),
            Err(rejected) => Acquired::Rejected(rejected),
        }
    }
}

impl fmt::Debug for AccountLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountLimiter")
    }
}

impl LimiterInner {
    fn states(&self) -> MutexGuard<'_, AccountStates> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn to_release(&self) -> MutexGuard<'_, Vec<HeldSlot>> {
        let held = self.to_release.lock();
        held.unwrap_or_else(PoisonError::into_inner)
    }

    fn notify_changes(&self) {
        self.has_changes.store(true, Ordering::Release);
        self.wakeup.notify_one();
    }

    fn set_workers(&self, count: u32) {
        self.workers.store(count.max(1), Ordering::Relaxed);
        self.states().set_workers(count);
    }

    fn permit(self: &Arc<Self>, call: AccountCall<'_>, start: CallStart) -> Permit {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        Permit {
            inner: Arc::clone(self),
            account: call.account,
            domain: call.domain.map(str::to_owned),
            start,
            number,
            holds_slot: false,
        }
    }

    /// Takes a slot and a call per second under the account's limits.
    async fn acquire_limits(
        &self,
        mut permit: Permit,
        limits: AccountLimits,
    ) -> Result<Permit, Rejected> {
        let account = permit.account;
        let rate = limits.max_rate_per_second.map(AccountRate::per_second);
        let interval = rate.map_or(Duration::ZERO, AccountRate::interval);
        let concurrency_max = limits.max_concurrency.unwrap_or(u32::MAX);
        // More calls in flight here than the limit: Redis need not be asked.
        if self.states().state(account).in_flight() > concurrency_max {
            drop(permit);
            return Err(self.reject_by_concurrency(account, concurrency_max));
        }
        permit.holds_slot = limits.max_concurrency.is_some() && !self.shared.is_away();
        let slot = self.shared.take(account, limits, permit.name()).await;
        let slot = match slot {
            Some(slot) => slot,
            // The reply may only be late, so the slot is released in any case.
            None => self.take_local(account, limits).await,
        };
        match slot {
            SlotReply::Taken => Ok(permit),
            SlotReply::Full => {
                permit.holds_slot = false;
                drop(permit);
                Err(self.reject_by_concurrency(account, concurrency_max))
            }
            SlotReply::TooSoon(wait) => {
                permit.holds_slot = false;
                drop(permit);
                Err(self.states().state(account).reject_by_rate(wait, interval))
            }
        }
    }

    /// Takes a call from this process's share of the limits.
    async fn take_local(&self, account: ProviderAccountId, limits: AccountLimits) -> SlotReply {
        let limits = limits.share(self.workers.load(Ordering::Relaxed));
        let concurrency_max = limits.max_concurrency.unwrap_or(u32::MAX);
        if self.states().state(account).in_flight() > concurrency_max {
            return SlotReply::Full;
        }
        let Some(rate) = limits.max_rate_per_second.map(AccountRate::per_second) else {
            return SlotReply::Taken;
        };
        match self.local.take(account, rate).await {
            Ok(()) => SlotReply::Taken,
            Err(wait) => SlotReply::TooSoon(wait),
        }
    }

    fn reject_by_concurrency(&self, account: ProviderAccountId, concurrency_max: u32) -> Rejected {
        let apart = TYPICAL_CALL / concurrency_max.max(1);
        self.states().state(account).reject_by_concurrency(apart)
    }
}

/// The result of [`AccountLimiter::acquire`].
#[derive(Debug)]
#[must_use]
pub enum Acquired {
    /// The call may be made.
    Granted(Permit),
    Rejected(Rejected),
}

/// Why a call is rejected, and how long to wait before the next try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejected {
    pub by: RejectedBy,
    pub wait: Duration,
}

/// Why a call is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectedBy {
    /// Too many calls failed, or the trial is in flight.
    Circuit,
    /// The provider named a pause.
    Pause,
    /// The account itself cannot send, or the trial is in flight.
    Unusable,
    /// The provider throttles, and the rate that it accepts is used up.
    Throttled,
    /// The account's rate limit is used up.
    Rate,
    /// The account's concurrency limit is used up.
    Concurrency,
}

/// Permission for one call. A permit dropped without [`Permit::end`] counts as no call
/// made; its slot is released either way.
pub struct Permit {
    inner: Arc<LimiterInner>,
    account: ProviderAccountId,
    /// The recipient's domain, if the server may throttle domains separately.
    domain: Option<String>,
    /// The state under which the call started.
    start: CallStart,
    number: u64,
    /// Whether Redis may hold a slot for the call.
    holds_slot: bool,
}

impl Permit {
    /// Reports the result of the call.
    pub fn end(self, outcome: &SendOutcome) {
        let inner = &self.inner;
        let end = CallEnd {
            start: self.start,
            domain: self.domain.as_deref(),
            sample: Sample::from(outcome),
        };
        let has_changed = {
            let mut states = inner.states();
            let fraction = inner.ids.fraction();
            let state = states.state(self.account);
            state.record(self.account, end, inner.clock.now(), fraction)
        };
        if has_changed {
            inner.notify_changes();
        }
    }

    /// The name of the call in Redis.
    fn name(&self) -> String {
        format!("{}-{}", self.inner.name, self.number)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let inner = &self.inner;
        inner.states().state(self.account).release(self.start);
        if self.holds_slot {
            let (account, name) = (self.account, self.name());
            inner.to_release().push(HeldSlot { account, name });
            inner.wakeup.notify_one();
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Permit({})", self.account)
    }
}
