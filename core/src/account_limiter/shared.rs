//! What all workers know of the gates, in Redis. Every key carries the account as
//! its hash tag and expires by itself.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use redis::{Cmd, Pipeline, Script};

use super::AccountLimits;
use super::circuit_breaker::{BreakerState, SLOT, SampleCounts, WINDOW};
use super::rate::AccountRate;
use crate::batcher::{Batcher, BatcherSettings, Cooldown};
use crate::ids::ProviderAccountId;
use crate::redis::Redis;
use crate::redis::fail_fast::{FailFastConnection, FailFastSettings};
use crate::redis::gcra::GCRA;

/// Round trips under way at once that ask for places, calls in one of them, and
/// calls that wait for one.
const GROUP: BatcherSettings = BatcherSettings {
    flushes_max: 2,
    batch_weight_max: 1_000,
    batch_min: 16,
    queue_max: 20_000,
    cooldown: Cooldown::NONE,
};

/// Takes a place among the calls under way (`KEYS[2]`, at most `ARGV[3]`) and one of
/// the calls per second (`KEYS[1]`; see [`GCRA`]), both or none; a bound of 0 is
/// none. `ARGV[4]` names the place and `ARGV[5]` is how many milliseconds it is kept
/// if nobody gives it back. Answers 0, or 1 and the nanoseconds until there is a
/// call again, or 2 where there is no place.
static TAKE: LazyLock<Script> = LazyLock::new(|| {
    let take = r"
        local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
        local places, kept_for = tonumber(ARGV[3]), tonumber(ARGV[5])
        local time = redis.call('TIME')
        local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
        if places > 0 then
            redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
            if redis.call('ZCARD', KEYS[2]) >= places then return {2, 0} end
        end
        if interval > 0 then
            local granted, taken = gcra(KEYS[1], interval, burst, 1)
            if granted == 0 then return {1, taken + interval - interval * burst} end
        end
        if places > 0 then
            redis.call('ZADD', KEYS[2], now + kept_for, ARGV[4])
            redis.call('PEXPIRE', KEYS[2], kept_for)
        end
        return {0, 0}";
    Script::new(&format!("{GCRA}{take}"))
});

/// Lets one call probe an account (`KEYS[2]`, named `ARGV[2]`, for `ARGV[3]`
/// milliseconds), unless its standing (`KEYS[1]`) has gone beyond number `ARGV[1]`.
/// Answers whether it may, and the standing.
static PROBE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        local kept = redis.call('GET', KEYS[1]) or ''
        local version = tonumber(string.match(kept, '^(%d+) [a-z-]+ %-?%d+ %d+ %d+$')) or 0
        if version > tonumber(ARGV[1]) then return {0, kept} end
        local is_first = redis.call('SET', KEYS[2], ARGV[2], 'NX', 'PX', ARGV[3])
        return {is_first and 1 or 0, kept}",
    )
});

/// Ends a probe (`KEYS[1]`), if it is still that of `ARGV[1]`.
static END_PROBE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
        return 0",
    )
});

/// Keeps a standing (`KEYS[1]`, `ARGV[2]`, for `ARGV[3]` milliseconds) unless there
/// is one whose number is not lower than `ARGV[1]`; calls are counted anew from then
/// on (`KEYS[2]`). Answers the standing that counts.
static CHANGE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        local kept = redis.call('GET', KEYS[1]) or ''
        local version = tonumber(string.match(kept, '^(%d+) [a-z-]+ %-?%d+ %d+ %d+$')) or 0
        if version >= tonumber(ARGV[1]) then return kept end
        redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
        redis.call('DEL', KEYS[2])
        return ARGV[2]",
    )
});

/// Adds `ARGV[2]` failures and `ARGV[3]` successes to what is counted (`KEYS[2]`) in
/// slots of `ARGV[4]` seconds, of which `ARGV[5]` are kept, as long as the standing
/// (`KEYS[1]`) has the number `ARGV[1]`. Answers the sums. By Redis' own clock.
static COUNT: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        local kept = redis.call('GET', KEYS[1]) or ''
        local version = tonumber(string.match(kept, '^(%d+) [a-z-]+ %-?%d+ %d+ %d+$')) or 0
        if version ~= tonumber(ARGV[1]) then return {0, 0} end
        local seconds, slots = tonumber(ARGV[4]), tonumber(ARGV[5])
        local slot = math.floor(tonumber(redis.call('TIME')[1]) / seconds)
        redis.call('HINCRBY', KEYS[2], 'f' .. slot, ARGV[2])
        redis.call('HINCRBY', KEYS[2], 's' .. slot, ARGV[3])
        redis.call('EXPIRE', KEYS[2], seconds * slots)
        local sums, all = { f = 0, s = 0 }, redis.call('HGETALL', KEYS[2])
        for i = 1, #all, 2 do
            local kind, at = string.match(all[i], '^([fs])(%d+)$')
            if tonumber(at) > slot - slots then
                sums[kind] = sums[kind] + tonumber(all[i + 1])
            else
                redis.call('HDEL', KEYS[2], all[i])
            end
        end
        return {sums.f, sums.s}",
    )
});

static SCRIPTS: &[&LazyLock<Script>] = &[&TAKE, &PROBE, &END_PROBE, &CHANGE, &COUNT];

/// What Redis says to who asks for leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotReply {
    /// The call may be made.
    Taken,
    /// There is no call left for so long.
    TooSoon(Duration),
    /// Too many calls are under way.
    Full,
}

/// What Redis says to who asks to probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeAnswer {
    /// The call is the probe.
    Granted,
    UnderWay,
    /// There is a standing that the asker does not know.
    Outdated(BreakerState),
}

/// What a call holds in Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HeldSlot {
    /// A place among the calls under way.
    SlotReply(ProviderAccountId, String),
    Probe(ProviderAccountId, String),
}

/// A standing that others are to know, and for how long it is kept.
pub(super) type Changed = (ProviderAccountId, BreakerState, Duration);

/// The gates in Redis. Every answer is nothing while Redis is away.
pub(super) struct RedisSlots {
    line: Arc<FailFastConnection>,
    group: Batcher<SlotRequest, Option<SlotReply>>,
    call_timeout: Duration,
}

struct SlotRequest {
    account: ProviderAccountId,
    limits: AccountLimits,
    name: String,
}

impl RedisSlots {
    /// Starts the line and the lanes. They end when this is dropped.
    pub(super) fn start(redis: Redis, call_timeout: Duration) -> Self {
        let settings = FailFastSettings {
            subject: "gates of accounts",
            scripts: SCRIPTS,
        };
        let line = FailFastConnection::start(redis, settings);
        let asked = Arc::clone(&line);
        // A worker that was killed gives nothing back: its places come back when the
        // longest call would have ended.
        let kept_for = call_timeout + Duration::from_secs(5);
        let group = Batcher::start(
            "provider_gates",
            GROUP,
            move |questions: Vec<SlotRequest>| {
                let line = Arc::clone(&asked);
                async move {
                    let places = take(&line, &questions, kept_for).await;
                    let places = places.map(|places| places.into_iter().map(Some).collect());
                    let answers: Vec<_> = places.unwrap_or_else(|| vec![None; questions.len()]);
                    answers.into_iter().map(Ok).collect()
                }
            },
        );
        Self {
            line,
            group,
            call_timeout,
        }
    }

    pub(super) fn is_away(&self) -> bool {
        self.line.is_away()
    }

    /// Asks for a place and a call under an account's limits.
    pub(super) async fn take(
        &self,
        account: ProviderAccountId,
        limits: AccountLimits,
        name: String,
    ) -> Option<SlotReply> {
        if self.is_away() {
            return None;
        }
        let question = SlotRequest {
            account,
            limits,
            name,
        };
        self.group.run(question, 1).await.ok().flatten()
    }

    /// Asks to probe an account whose standing has this number.
    pub(super) async fn probe(
        &self,
        account: ProviderAccountId,
        version: u64,
        name: &str,
    ) -> Option<ProbeAnswer> {
        if self.is_away() {
            return None;
        }
        let longest = self.call_timeout + Duration::from_secs(2);
        let mut command = evaluate(&PROBE, &self.keys(account, &["standing", "probe"]));
        command.arg(version).arg(name).arg(longest.as_millis());
        let answers: Vec<(bool, String)> = self.run([command]).await?;
        let (is_granted, standing) = answers.first()?;
        let newer = BreakerState::parse(standing).filter(|standing| standing.version > version);
        Some(match newer {
            Some(standing) => ProbeAnswer::Outdated(standing),
            None if *is_granted => ProbeAnswer::Granted,
            None => ProbeAnswer::UnderWay,
        })
    }

    /// Tells of changes; answers the standings that count now.
    pub(super) async fn change(&self, changes: &[Changed]) -> Option<Vec<Option<BreakerState>>> {
        let commands = changes.iter().map(|(account, standing, lifetime)| {
            let mut command = evaluate(&CHANGE, &self.keys(*account, &["standing", "counts"]));
            command.arg(standing.version).arg(standing.to_text());
            command.arg(lifetime.as_millis());
            command
        });
        let standings: Vec<String> = self.run(commands).await?;
        Some(
            standings
                .iter()
                .map(|text| BreakerState::parse(text))
                .collect(),
        )
    }

    /// Gives back what calls held.
    pub(super) async fn give_back(&self, held: &[HeldSlot]) -> Option<()> {
        let commands = held.iter().map(|held| match held {
            HeldSlot::SlotReply(account, name) => {
                let mut command = redis::cmd("ZREM");
                command.arg(self.keys(*account, &["calls"])).arg(name);
                command
            }
            HeldSlot::Probe(account, name) => {
                let mut command = evaluate(&END_PROBE, &self.keys(*account, &["probe"]));
                command.arg(name);
                command
            }
        });
        self.run::<i64>(commands).await.map(|_| ())
    }

    /// How accounts stand, and whether calls are counted because some failed.
    pub(super) async fn look(
        &self,
        accounts: &[ProviderAccountId],
    ) -> Option<Vec<(Option<BreakerState>, bool)>> {
        let commands = accounts.iter().flat_map(|account| {
            let mut standing = redis::cmd("GET");
            standing.arg(self.keys(*account, &["standing"]));
            let mut counts = redis::cmd("EXISTS");
            counts.arg(self.keys(*account, &["counts"]));
            [standing, counts]
        });
        let answers: Vec<Option<String>> = self.run(commands).await?;
        let pairs = answers.chunks(2).map(|pair| {
            let standing = pair.first().and_then(Option::as_deref);
            let is_counted = pair.get(1).and_then(Option::as_deref) == Some("1");
            (standing.and_then(BreakerState::parse), is_counted)
        });
        Some(pairs.collect())
    }

    /// Adds to what is counted, under the number of a standing; answers the sums.
    pub(super) async fn count(
        &self,
        counts: &[(ProviderAccountId, u64, SampleCounts)],
    ) -> Option<Vec<SampleCounts>> {
        let commands = counts.iter().map(|(account, version, counts)| {
            let mut command = evaluate(&COUNT, &self.keys(*account, &["standing", "counts"]));
            command.arg(version).arg(counts.failures);
            command.arg(counts.successes).arg(SLOT.as_secs());
            command.arg(WINDOW.as_secs() / SLOT.as_secs());
            command
        });
        let sums: Vec<(u32, u32)> = self.run(commands).await?;
        let sums = sums.into_iter().map(|(failures, successes)| SampleCounts {
            failures,
            successes,
        });
        Some(sums.collect())
    }

    async fn run<T: redis::FromRedisValue>(
        &self,
        commands: impl IntoIterator<Item = Cmd>,
    ) -> Option<Vec<T>> {
        let mut pipeline = Pipeline::new();
        for command in commands {
            pipeline.add_command(command);
        }
        self.line.run(&pipeline).await
    }

    fn keys(&self, account: ProviderAccountId, names: &[&str]) -> Vec<String> {
        keys(&self.line.redis, account, names)
    }
}

async fn take(
    line: &FailFastConnection,
    questions: &[SlotRequest],
    kept_for: Duration,
) -> Option<Vec<SlotReply>> {
    let mut pipeline = Pipeline::with_capacity(questions.len());
    for question in questions {
        let pace = question
            .limits
            .max_rate_per_second
            .map(AccountRate::per_second);
        let interval = pace.map_or(0, |pace| pace.interval().as_nanos());
        let keys = keys(&line.redis, question.account, &["rate", "calls"]);
        let mut command = evaluate(&TAKE, &keys);
        command
            .arg(interval)
            .arg(pace.map_or(0, AccountRate::burst));
        command.arg(question.limits.max_concurrency.unwrap_or(0));
        command.arg(&question.name).arg(kept_for.as_millis());
        pipeline.add_command(command);
    }
    let answers: Vec<(u8, u64)> = line.run(&pipeline).await?;
    let places = answers.into_iter().map(|(answer, nanos)| match answer {
        0 => SlotReply::Taken,
        1 => SlotReply::TooSoon(Duration::from_nanos(nanos)),
        _ => SlotReply::Full,
    });
    Some(places.collect())
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
