//! Gates: whether an account may be called now.
//!
//! Every call to a provider asks leave first ([`AccountLimiter::enter`]) and says afterwards
//! what came of it ([`Permit::end`]). An account is closed while too many of its calls
//! fail, while it cannot send itself, while its provider names a pause, and while as
//! many calls are made as it may have. Where its provider throttles, it goes as fast as
//! calls are taken. The *board* holds what this process knows, the rules are in
//! `circuit`, `throttle` and `pace`, and the *clerk* shares it with the other workers
//! through Redis.
//!
//! What is promised: an account that works and has no limits costs no command of
//! Redis per call. That an account is closed, or open again, the others go by within a
//! fifth of a second. Of one that did not work one call goes first, over all workers.
//!
//! While Redis is away every worker goes by what it knew and what it sees itself, and
//! takes its share of the limits. Then, and for the length of a call after Redis went
//! or came back, an account may be used beyond them: a share is one call at the least,
//! so where there are more workers than a limit has calls, there are as many calls as
//! workers; and what others began does not show. No call is refused because Redis is
//! away.

mod account_states;
mod circuit_breaker;
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
use account_states::{AccountStates, CallAdmission, CallEnd, CallStart};
use circuit_breaker::{Cause, Sample};
use local::LocalRates;
use rate::AccountRate;
use shared::{HeldSlot, ProbeAnswer, RedisSlots, SlotReply};

/// How long a call takes as a rule, for those who wait for a place.
const USUAL_CALL: Duration = Duration::from_millis(200);

/// The highest bound on an account's calls per second.
pub const RATE_PER_SECOND_MAX: u32 = 100_000;
/// The highest bound on an account's calls under way.
pub const CONCURRENCY_MAX: u32 = 10_000;

/// What an account may be used for at the most, over all workers; no bound where
/// nothing is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccountLimits {
    /// Calls per second.
    pub max_rate_per_second: Option<u32>,
    pub max_concurrency: Option<u32>,
}

impl AccountLimits {
    /// As the columns of an account hold them.
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

/// A call that somebody wants to make.
#[derive(Debug, Clone, Copy)]
pub struct AccountCall<'a> {
    pub account: ProviderAccountId,
    /// How often somebody mended the account: what closed it before does not count.
    pub revision: u32,
    /// What it may be used for at the most.
    pub limits: AccountLimits,
    /// What bounds the calls under way of this process alone.
    pub calls_max: Option<u32>,
    /// The recipient's domain, where its mail may be throttled by itself.
    pub domain: Option<&'a str>,
}

/// The gates of all accounts. Cheap to clone; one in each worker process.
#[derive(Clone)]
pub struct AccountLimiter {
    office: Arc<LimiterInner>,
    shutdown: CancellationToken,
}

/// What the gates of a process share.
struct LimiterInner {
    board: Mutex<AccountStates>,
    shared: RedisSlots,
    local: LocalRates,
    /// What calls held in Redis and do not hold any more.
    to_give_back: Mutex<Vec<HeldSlot>>,
    bell: Notify,
    /// Whether there is more for the clerk than to give back what calls held.
    has_news: AtomicBool,
    /// Workers that share the limits while Redis is away.
    workers: AtomicU32,
    /// Names the calls of this process, with a number.
    name: String,
    number: AtomicU64,
    clock: Clock,
    ids: Ids,
}

impl AccountLimiter {
    /// Starts to connect to Redis, and the clerk. Times of closed accounts are by
    /// `clock`, pace is by the machine's own.
    #[must_use]
    pub fn start(
        redis: Redis,
        settings: &SendingSettings,
        clock: Clock,
        ids: Ids,
        shutdown: CancellationToken,
    ) -> Self {
        let office = Arc::new(LimiterInner {
            board: Mutex::default(),
            shared: RedisSlots::start(redis, settings.call_timeout),
            local: LocalRates::new(),
            to_give_back: Mutex::default(),
            bell: Notify::new(),
            has_news: AtomicBool::new(false),
            workers: AtomicU32::new(1),
            name: ids.alphanumeric(12),
            number: AtomicU64::new(0),
            clock,
            ids,
        });
        tokio::spawn(sync::run(Arc::clone(&office), shutdown.clone()));
        Self { office, shutdown }
    }

    /// Counts the workers from now on, every few seconds: they share the limits while
    /// Redis is away. Without it this process takes itself for the only one.
    pub fn count_workers(&self, pool: PgPool) {
        let office = Arc::clone(&self.office);
        tokio::spawn(sync::count_workers(office, pool, self.shutdown.clone()));
    }

    /// Asks leave to call an account. Waits for a round trip to Redis, and only where
    /// the account has limits or the call would be its probe; never for the account.
    pub async fn enter(&self, call: AccountCall<'_>) -> Acquired {
        let AccountCall {
            account,
            limits,
            calls_max,
            ..
        } = call;
        let office = &self.office;
        let step = {
            let mut board = office.board();
            let desk = board.desk(account);
            if desk.is_new() && !office.shared.is_away() {
                office.tell_news();
            }
            desk.ask(account, (call.revision, call.domain), office.clock.now())
        };
        let pass = match step {
            CallAdmission::Rejected(closed) => return Acquired::Rejected(closed),
            CallAdmission::Pass(begun) => office.pass(call, begun),
            CallAdmission::Probe(begun, cause) => {
                let mut pass = office.pass(call, begun);
                pass.is_probe = true;
                match office.probe(pass, cause).await {
                    Ok(pass) => pass,
                    Err(closed) => return Acquired::Rejected(closed),
                }
            }
        };
        if let Some(places) = calls_max
            && office.board().desk(account).under_way() > places
        {
            drop(pass);
            return Acquired::Rejected(office.no_place(account, places));
        }
        if limits == AccountLimits::default() {
            return Acquired::Go(pass);
        }
        match office.keep_pace(pass, limits).await {
            Ok(pass) => Acquired::Go(pass),
            Err(closed) => Acquired::Rejected(closed),
        }
    }
}

impl fmt::Debug for AccountLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gates")
    }
}

impl LimiterInner {
    fn board(&self) -> MutexGuard<'_, AccountStates> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn to_give_back(&self) -> MutexGuard<'_, Vec<HeldSlot>> {
        let held = self.to_give_back.lock();
        held.unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_news(&self) {
        self.has_news.store(true, Ordering::Release);
        self.bell.notify_one();
    }

    fn set_workers(&self, count: u32) {
        self.workers.store(count.max(1), Ordering::Relaxed);
        self.board().set_workers(count);
    }

    fn pass(self: &Arc<Self>, call: AccountCall<'_>, begun: CallStart) -> Permit {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        Permit {
            office: Arc::clone(self),
            account: call.account,
            domain: call.domain.map(str::to_owned),
            begun,
            is_probe: false,
            number,
            holds_place: false,
            holds_probe: false,
        }
    }

    /// Asks whether a call may be the probe, over all workers. While Redis is away it
    /// is that of this process.
    async fn probe(&self, mut pass: Permit, cause: Cause) -> Result<Permit, Rejected> {
        let (account, version, name) = (pass.account, pass.begun.version, pass.name());
        // Given back even if nobody waits for the answer any more, or it is late.
        pass.holds_probe = !self.shared.is_away();
        match self.shared.probe(account, version, &name).await {
            Some(ProbeAnswer::Granted) | None => Ok(pass),
            Some(ProbeAnswer::UnderWay) => {
                pass.holds_probe = false;
                drop(pass);
                Err(self.board().desk(account).probe_is_theirs(cause))
            }
            Some(ProbeAnswer::Outdated(standing)) => {
                pass.holds_probe = false;
                drop(pass);
                let now = self.clock.now();
                self.board().adopt(account, Some(standing), now);
                // Whoever comes back is judged by the standing that counts.
                Err(Rejected {
                    by: cause.into(),
                    wait: sync::TICK,
                })
            }
        }
    }

    /// Takes a place and a call under an account's limits.
    async fn keep_pace(&self, mut pass: Permit, limits: AccountLimits) -> Result<Permit, Rejected> {
        let account = pass.account;
        let rate = limits.max_rate_per_second.map(AccountRate::per_second);
        let interval = rate.map_or(Duration::ZERO, AccountRate::interval);
        let places = limits.max_concurrency.unwrap_or(u32::MAX);
        // What this process alone has under way needs no question to Redis.
        if self.board().desk(account).under_way() > places {
            drop(pass);
            return Err(self.no_place(account, places));
        }
        pass.holds_place = limits.max_concurrency.is_some() && !self.shared.is_away();
        let place = self.shared.take(account, limits, pass.name()).await;
        let place = match place {
            Some(place) => place,
            // The answer may only be late: the place is given back all the same.
            None => self.take_alone(account, limits).await,
        };
        match place {
            SlotReply::Taken => Ok(pass),
            SlotReply::Full => {
                pass.holds_place = false;
                drop(pass);
                Err(self.no_place(account, places))
            }
            SlotReply::TooSoon(wait) => {
                pass.holds_place = false;
                drop(pass);
                Err(self.board().desk(account).refuse_by_rate(wait, interval))
            }
        }
    }

    /// Takes a place and a call from what this process may do alone.
    async fn take_alone(&self, account: ProviderAccountId, limits: AccountLimits) -> SlotReply {
        let limits = limits.share(self.workers.load(Ordering::Relaxed));
        let places = limits.max_concurrency.unwrap_or(u32::MAX);
        if self.board().desk(account).under_way() > places {
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

    fn no_place(&self, account: ProviderAccountId, places: u32) -> Rejected {
        let apart = USUAL_CALL / places.max(1);
        self.board().desk(account).refuse_by_concurrency(apart)
    }
}

/// The answer to who asked to call.
#[derive(Debug)]
#[must_use]
pub enum Acquired {
    /// The call may be made.
    Go(Permit),
    Rejected(Rejected),
}

/// Why not, and how long to wait before it is worth asking again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejected {
    pub by: RejectedBy,
    pub wait: Duration,
}

/// Why a call may not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectedBy {
    /// Too many failures: the circuit is open, or its one probe is under way.
    Circuit,
    /// The provider named a pause.
    Asked,
    /// The account itself cannot send, or one call tries whether it still cannot.
    Unusable,
    /// The provider throttles, and takes no more calls per second.
    Throttled,
    /// As many calls per second as the account may have.
    Rate,
    /// As many calls under way as the account may have.
    Concurrency,
}

/// Leave for one call. Dropped without [`Permit::end`], no call was made:
/// concurrency and a probe are given back.
pub struct Permit {
    office: Arc<LimiterInner>,
    account: ProviderAccountId,
    /// The recipient's domain, where its mail may be throttled by itself.
    domain: Option<String>,
    /// What the call begins under.
    begun: CallStart,
    is_probe: bool,
    number: u64,
    /// Whether Redis may keep a place for it.
    holds_place: bool,
    /// Whether Redis may keep the probe for it.
    holds_probe: bool,
}

impl Permit {
    /// Says what came of the call.
    pub fn end(self, outcome: &SendOutcome) {
        let office = &self.office;
        let ended = CallEnd {
            begun: self.begun,
            domain: self.domain.as_deref(),
            is_probe: self.is_probe,
            verdict: Sample::from(outcome),
        };
        let has_changed = {
            let mut board = office.board();
            let fraction = office.ids.fraction();
            let desk = board.desk(self.account);
            desk.note(self.account, ended, office.clock.now(), fraction)
        };
        if has_changed {
            office.tell_news();
        }
    }

    /// Its name in Redis.
    fn name(&self) -> String {
        format!("{}-{}", self.office.name, self.number)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let office = &self.office;
        office.board().desk(self.account).leave(self.is_probe);
        if !self.holds_place && !self.holds_probe {
            return;
        }
        let mut to_give_back = office.to_give_back();
        if self.holds_place {
            to_give_back.push(HeldSlot::SlotReply(self.account, self.name()));
        }
        if self.holds_probe {
            to_give_back.push(HeldSlot::Probe(self.account, self.name()));
        }
        office.bell.notify_one();
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pass({})", self.account)
    }
}
