//! Buckets in Redis, which all API processes share.
//!
//! One script call takes requests from one bucket. Requests that arrive during a round trip
//! share the next one ([`Batcher`]), and one call takes all requests from the same bucket, so
//! a busy organization causes far fewer script calls than requests.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use redis::{Cmd, Pipeline, Script};

use super::LimitBucket;
use super::rate::{LimitDecision, Rate};
use crate::batcher::{Batcher, BatcherSettings, Cooldown};
use crate::redis::Redis;
use crate::redis::fail_fast::{FailFastConnection, FailFastSettings};
use crate::redis::gcra::GCRA;

/// Limits on simultaneous round trips, requests per round trip, and waiting requests.
const BATCHER: BatcherSettings = BatcherSettings {
    flushes_max: 2,
    batch_weight_max: 1_000,
    batch_min: 16,
    queue_max: 10_000,
    cooldown: Cooldown::NONE,
};

/// Takes up to `ARGV[3]` requests from a bucket of `ARGV[2]` requests that refills one
/// request in `ARGV[1]` nanoseconds: see [`GCRA`].
static TAKE: LazyLock<Script> = LazyLock::new(|| {
    let take = r"
        local interval, limit, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
        local granted, taken = gcra(KEYS[1], interval, limit, wanted)
        return {granted, taken}";
    Script::new(&format!("{GCRA}{take}"))
});

static SCRIPTS: &[&LazyLock<Script>] = &[&TAKE];

/// The buckets in Redis.
pub(super) struct RedisLimits {
    redis: Arc<FailFastConnection>,
    batcher: Batcher<BucketRequest, Option<LimitDecision>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct BucketRequest {
    bucket: LimitBucket,
    rate: Rate,
}

impl RedisLimits {
    /// Starts the connection and the batcher. They end when this is dropped.
    pub(super) fn start(redis: Redis) -> Self {
        let settings = FailFastSettings {
            subject: "rate limits",
            scripts: SCRIPTS,
        };
        let redis = FailFastConnection::start(redis, settings);
        let shared = Arc::clone(&redis);
        let batcher = Batcher::start("rate_limits", BATCHER, move |requests| {
            let redis = Arc::clone(&shared);
            async move {
                let answers = decide(&redis, &requests).await;
                answers.into_iter().map(Ok).collect()
            }
        });
        Self { redis, batcher }
    }

    /// Takes one request from a bucket; `None` while Redis is away.
    pub(super) async fn take(&self, bucket: LimitBucket, rate: Rate) -> Option<LimitDecision> {
        if self.redis.is_away() {
            return None;
        }
        let request = BucketRequest { bucket, rate };
        self.batcher.run(request, 1).await.ok().flatten()
    }
}

/// One decision per request, in their order.
async fn decide(
    redis: &FailFastConnection,
    requests: &[BucketRequest],
) -> Vec<Option<LimitDecision>> {
    let mut counts: HashMap<BucketRequest, u32> = HashMap::new();
    for request in requests {
        *counts.entry(*request).or_default() += 1;
    }
    let counts: Vec<(BucketRequest, u32)> = counts.into_iter().collect();
    let Some(taken) = take(redis, &counts).await else {
        return vec![None; requests.len()];
    };
    let decisions = counts
        .iter()
        .zip(taken)
        .map(|((request, count), (granted, nanos))| {
            let full_after = Duration::from_nanos(nanos);
            let decisions = LimitDecision::of_many(request.rate, *count, granted, full_after);
            (*request, decisions)
        });
    let mut decisions: HashMap<BucketRequest, _> = decisions.collect();
    let answers = requests
        .iter()
        .map(|request| decisions.get_mut(request)?.next());
    answers.collect()
}

/// Takes requests from buckets. Returns for each bucket how many it took and in how many
/// nanoseconds the bucket is full; `None` if Redis does not answer.
async fn take(
    redis: &FailFastConnection,
    counts: &[(BucketRequest, u32)],
) -> Option<Vec<(u32, u64)>> {
    let mut pipeline = Pipeline::with_capacity(counts.len());
    for (request, count) in counts {
        let key = request.bucket.key(&redis.redis.prefix);
        pipeline.add_command(take_command(&key, request.rate, *count));
    }
    redis.run(&pipeline).await
}

fn take_command(key: &str, rate: Rate, count: u32) -> Cmd {
    let interval = rate.interval().as_nanos();
    let mut command = redis::cmd("EVALSHA");
    command.arg(TAKE.get_hash()).arg(1).arg(key);
    command.arg(u64::try_from(interval).unwrap_or(u64::MAX));
    command.arg(rate.requests().get()).arg(count);
    command
}
