//! The state of the limiter that all workers share, in Redis. Every key carries the account
//! as its hash tag and expires.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use redis::{Cmd, Pipeline, Script};

use super::AccountLimits;
use super::circuit_breaker::{BreakerState, SLOT, SampleCounts, WINDOW};
use super::rate::AccountRate;
use crate::batcher::{Batcher, BatcherSettings, Cooldown};
use crate::clock::Timestamp;
use crate::ids::ProviderAccountId;
use crate::redis::Redis;
use crate::redis::fail_fast::{FailFastConnection, FailFastSettings};
use crate::redis::gcra::GCRA;

/// How slot requests share round trips to Redis.
const BATCHES: BatcherSettings = BatcherSettings {
    flushes_max: 2,
    batch_weight_max: 1_000,
    batch_min: 16,
    queue_max: 20_000,
    cooldown: Cooldown::NONE,
};

/// Takes a slot among the calls in flight (`KEYS[2]`, at most `ARGV[3]`) and one call per
/// second (`KEYS[1]`; see [`GCRA`]), both or none; a limit of 0 is none. `ARGV[4]` names
/// the slot and `ARGV[5]` is its lifetime in milliseconds if it is not released. Returns
/// 0 if both were taken, 1 and the nanoseconds until the next call, or 2 if no slot is
/// free.
static TAKE: LazyLock<Script> = LazyLock::new(|| {
    let take = r"
        local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
        local limit, ttl = tonumber(ARGV[3]), tonumber(ARGV[5])
        local time = redis.call('TIME')
        local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
        if limit > 0 then
            redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
            if redis.call('ZCARD', KEYS[2]) >= limit then return {2, 0} end
        end
        if interval > 0 then
            local granted, taken = gcra(KEYS[1], interval, burst, 1)
            if granted == 0 then return {1, taken + interval - interval * burst} end
        end
        if limit > 0 then
            redis.call('ZADD', KEYS[2], now + ttl, ARGV[4])
            redis.call('PEXPIRE', KEYS[2], ttl)
        end
        return {0, 0}";
    Script::new(&format!("{GCRA}{take}"))
});

/// Adds `ARGV[1]` failures and `ARGV[2]` successes to the counts (`KEYS[1]`), in slots of
/// `ARGV[3]` seconds of which `ARGV[4]` are kept. Returns the totals. Uses the clock of
/// Redis.
static COUNT: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        local seconds, slots = tonumber(ARGV[3]), tonumber(ARGV[4])
        local slot = math.floor(tonumber(redis.call('TIME')[1]) / seconds)
        redis.call('HINCRBY', KEYS[1], 'f' .. slot, ARGV[1])
        redis.call('HINCRBY', KEYS[1], 's' .. slot, ARGV[2])
        redis.call('EXPIRE', KEYS[1], seconds * slots)
        local sums, all = { f = 0, s = 0 }, redis.call('HGETALL', KEYS[1])
        for i = 1, #all, 2 do
            local kind, at = string.match(all[i], '^([fs])(%d+)$')
            if tonumber(at) > slot - slots then
                sums[kind] = sums[kind] + tonumber(all[i + 1])
            else
                redis.call('HDEL', KEYS[1], all[i])
            end
        end
        return {sums.f, sums.s}",
    )
});

static SCRIPTS: &[&LazyLock<Script>] = &[&TAKE, &COUNT];

/// The reply of Redis to a request for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotReply {
    /// The call may be made.
    Taken,
    /// The rate limit is used up for this long.
    TooSoon(Duration),
    /// The concurrency limit is used up.
    Full,
}

/// A slot that a call holds in Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeldSlot {
    pub(super) account: ProviderAccountId,
    pub(super) name: String,
}

/// How long a rate counts that a worker told.
const RATE_AGE_MAX: TimeDelta = TimeDelta::seconds(5);
/// How long Redis keeps the rates of an account of which no worker tells any.
const RATES_TTL_MS: u32 = 60_000;

/// A state to share, and how long Redis keeps it.
pub(super) type Changed = (ProviderAccountId, BreakerState, Duration);

/// The states of accounts in Redis. Every method returns `None` while Redis is unreachable.
/// Cheap to clone.
#[derive(Clone)]
pub(super) struct SharedStates {
    connection: Arc<FailFastConnection>,
}

/// The states and the slots in Redis. Every method returns `None` while Redis is unreachable.
pub(super) struct RedisSlots {
    states: SharedStates,
    batcher: Batcher<SlotRequest, Option<SlotReply>>,
}

struct SlotRequest {
    account: ProviderAccountId,
    limits: AccountLimits,
    name: String,
}

impl SharedStates {
    /// Starts the connection, which is for `subject`. It ends when the last clone is dropped.
    pub(super) fn start(redis: Redis, subject: &'static str) -> Self {
        let settings = FailFastSettings {
            subject,
            scripts: SCRIPTS,
        };
        let connection = FailFastConnection::start(redis, settings);
        Self { connection }
    }

    /// The state of each account, and whether workers count its calls because some failed.
    pub(super) async fn read(
        &self,
        accounts: &[ProviderAccountId],
    ) -> Option<Vec<(Option<BreakerState>, bool)>> {
        let commands = accounts.iter().flat_map(|account| {
            let mut breaker = redis::cmd("GET");
            breaker.arg(self.keys(*account, &["breaker"]));
            let mut counts = redis::cmd("EXISTS");
            counts.arg(self.keys(*account, &["counts"]));
            [breaker, counts]
        });
        let replies: Vec<Option<String>> = self.run(commands).await?;
        let pairs = replies.chunks(2).map(|pair| {
            let breaker = pair.first().and_then(Option::as_deref);
            let is_counted = pair.get(1).and_then(Option::as_deref) == Some("1");
            (breaker.and_then(BreakerState::parse), is_counted)
        });
        Some(pairs.collect())
    }

    /// The calls per second to which each account is throttled, over all workers.
    pub(super) async fn read_rates(
        &self,
        accounts: &[ProviderAccountId],
        now: Timestamp,
    ) -> Option<Vec<Option<f64>>> {
        let commands = accounts.iter().map(|account| {
            let mut command = redis::cmd("HVALS");
            command.arg(self.keys(*account, &["throttled"]));
            command
        });
        let replies: Vec<Vec<String>> = self.run(commands).await?;
        let rates = replies.into_iter().map(|shared| {
            let current = shared.iter().filter_map(|text| read_rate(text, now));
            current.reduce(|sum, rate| sum + rate)
        });
        Some(rates.collect())
    }

    async fn run<T: redis::FromRedisValue>(
        &self,
        commands: impl IntoIterator<Item = Cmd>,
    ) -> Option<Vec<T>> {
        let mut pipeline = Pipeline::new();
        for command in commands {
            pipeline.add_command(command);
        }
        self.connection.run(&pipeline).await
    }

    fn keys(&self, account: ProviderAccountId, names: &[&str]) -> Vec<String> {
        keys(&self.connection.redis, account, names)
    }
}

impl RedisSlots {
    /// Starts the connection and the batcher. They end when this is dropped.
    pub(super) fn start(redis: Redis, call_timeout: Duration) -> Self {
        let states = SharedStates::start(redis, "limits of provider accounts");
        let shared_connection = Arc::clone(&states.connection);
        // A killed worker releases nothing: its slots expire after the longest call.
        let slot_ttl = call_timeout + Duration::from_secs(5);
        let batcher = Batcher::start(
            "account_limiter",
            BATCHES,
            move |requests: Vec<SlotRequest>| {
                let connection = Arc::clone(&shared_connection);
                async move {
                    let replies = take(&connection, &requests, slot_ttl).await;
                    let replies = replies.map(|replies| replies.into_iter().map(Some).collect());
                    let replies: Vec<_> = replies.unwrap_or_else(|| vec![None; requests.len()]);
                    replies.into_iter().map(Ok).collect()
                }
            },
        );
        Self { states, batcher }
    }

    pub(super) fn is_away(&self) -> bool {
        self.states.connection.is_away()
    }

    /// Takes a slot and a call per second under the account's limits.
    pub(super) async fn take(
        &self,
        account: ProviderAccountId,
        limits: AccountLimits,
        name: String,
    ) -> Option<SlotReply> {
        if self.is_away() {
            return None;
        }
        let request = SlotRequest {
            account,
            limits,
            name,
        };
        self.batcher.run(request, 1).await.ok().flatten()
    }

    /// Writes changed states. They replace what Redis holds.
    pub(super) async fn write(&self, changes: &[Changed]) -> Option<()> {
        let commands = changes.iter().flat_map(|(account, breaker, ttl)| {
            let mut change = redis::cmd("SET");
            change.arg(self.states.keys(*account, &["breaker"]));
            let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
            change.arg(breaker.to_text()).arg("PX").arg(ttl);
            // Earlier calls say nothing about the new state.
            let mut reset = redis::cmd("DEL");
            reset.arg(self.states.keys(*account, &["counts"]));
            [change, reset]
        });
        self.states.run::<redis::Value>(commands).await.map(|_| ())
    }

    /// Tells the rates of this worker's calls to throttled accounts, in calls per second.
    pub(super) async fn write_rates(
        &self,
        worker: &str,
        rates: &[(ProviderAccountId, f64)],
        now: Timestamp,
    ) -> Option<()> {
        let commands = rates.iter().flat_map(|(account, rate)| {
            let keys = self.states.keys(*account, &["throttled"]);
            let mut rate_set = redis::cmd("HSET");
            rate_set.arg(&keys).arg(worker);
            rate_set.arg(format!("{rate} {}", now.timestamp_micros()));
            let mut ttl = redis::cmd("PEXPIRE");
            ttl.arg(&keys).arg(RATES_TTL_MS);
            [rate_set, ttl]
        });
        self.states.run::<i64>(commands).await.map(|_| ())
    }

    /// Releases slots.
    pub(super) async fn release(&self, held: &[HeldSlot]) -> Option<()> {
        let commands = held.iter().map(|slot| {
            let mut command = redis::cmd("ZREM");
            let keys = self.states.keys(slot.account, &["calls"]);
            command.arg(keys).arg(&slot.name);
            command
        });
        self.states.run::<i64>(commands).await.map(|_| ())
    }

    /// [`SharedStates::read`].
    pub(super) async fn read(
        &self,
        accounts: &[ProviderAccountId],
    ) -> Option<Vec<(Option<BreakerState>, bool)>> {
        self.states.read(accounts).await
    }

    /// Adds samples to the counts of all workers; returns the totals.
    pub(super) async fn count(
        &self,
        counts: &[(ProviderAccountId, SampleCounts)],
    ) -> Option<Vec<SampleCounts>> {
        let commands = counts.iter().map(|(account, counts)| {
            let mut command = evaluate(&COUNT, &self.states.keys(*account, &["counts"]));
            command.arg(counts.failures).arg(counts.successes);
            command.arg(SLOT.as_secs());
            command.arg(WINDOW.as_secs() / SLOT.as_secs());
            command
        });
        let sums: Vec<(u32, u32)> = self.states.run(commands).await?;
        let sums = sums.into_iter().map(|(failures, successes)| SampleCounts {
            failures,
            successes,
        });
        Some(sums.collect())
    }
}

async fn take(
    connection: &FailFastConnection,
    requests: &[SlotRequest],
    slot_ttl: Duration,
) -> Option<Vec<SlotReply>> {
    let mut pipeline = Pipeline::with_capacity(requests.len());
    for request in requests {
        let rate = request
            .limits
            .max_rate_per_second
            .map(AccountRate::per_second);
        let interval = rate.map_or(0, |rate| rate.interval().as_nanos());
        let keys = keys(&connection.redis, request.account, &["rate", "calls"]);
        let mut command = evaluate(&TAKE, &keys);
        command
            .arg(interval)
            .arg(rate.map_or(0, AccountRate::burst));
        command.arg(request.limits.max_concurrency.unwrap_or(0));
        command.arg(&request.name).arg(slot_ttl.as_millis());
        pipeline.add_command(command);
    }
    let replies: Vec<(u8, u64)> = connection.run(&pipeline).await?;
    let replies = replies.into_iter().map(|(answer, nanos)| match answer {
        0 => SlotReply::Taken,
        1 => SlotReply::TooSoon(Duration::from_nanos(nanos)),
        _ => SlotReply::Full,
    });
    Some(replies.collect())
}

/// Reads a rate of [`RedisSlots::write_rates`]; `None` if it is old.
fn read_rate(text: &str, now: Timestamp) -> Option<f64> {
    let (rate, at) = text.split_once(' ')?;
    let at = DateTime::from_timestamp_micros(at.parse().ok()?)?;
    let rate = rate.parse().ok()?;
    (now - at <= RATE_AGE_MAX).then_some(rate)
}

fn keys(redis: &Redis, account: ProviderAccountId, names: &[&str]) -> Vec<String> {
    let prefix = &redis.prefix;
    let key = |name: &&str| format!("{prefix}:gate:{{{account}}}:{name}");
    names.iter().map(key).collect()
}

fn evaluate(script: &Script, keys: &[String]) -> Cmd {
    let mut command = redis::cmd("EVALSHA");
    command.arg(script.get_hash()).arg(keys.len()).arg(keys);
    command
}
