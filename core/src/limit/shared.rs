//! Limits kept in Redis, which all API processes share.
//!
//! One script takes requests from one bucket. Requests that come while a round
//! trip is under way share the next one ([`Batcher`]), and those of one bucket are
//! taken together, so that a busy organization costs Redis far fewer scripts than
//! it makes requests.

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

/// Round trips under way at once, requests in one of them, and requests that wait
/// for one.
const GROUP: BatcherSettings = BatcherSettings {
    flushes_max: 2,
    batch_weight_max: 1_000,
    batch_min: 16,
    queue_max: 10_000,
    cooldown: Cooldown::NONE,
};

/// Takes up to `ARGV[3]` requests from a bucket of `ARGV[2]` requests, each of
/// which takes `ARGV[1]` nanoseconds to come back: see [`GCRA`].
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
    line: Arc<FailFastConnection>,
    group: Batcher<BucketRequest, Option<LimitDecision>>,
}

/// One request's bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct BucketRequest {
    bucket: LimitBucket,
    rate: Rate,
}

impl RedisLimits {
    /// Starts the line and the lanes. They end when this is dropped.
    pub(super) fn start(redis: Redis) -> Self {
        let settings = FailFastSettings {
            subject: "rate limits",
            scripts: SCRIPTS,
        };
        let line = FailFastConnection::start(redis, settings);
        let asked = Arc::clone(&line);
        let group = Batcher::start("rate_limits", GROUP, move |questions| {
            let line = Arc::clone(&asked);
            async move {
                let answers = answer(&line, &questions).await;
                answers.into_iter().map(Ok).collect()
            }
        });
        Self { line, group }
    }

    /// Takes one request from a bucket; nothing while Redis is away.
    pub(super) async fn take(&self, bucket: LimitBucket, rate: Rate) -> Option<LimitDecision> {
        if self.line.is_away() {
            return None;
        }
        let question = BucketRequest { bucket, rate };
        self.group.run(question, 1).await.ok().flatten()
    }
}

/// A verdict for each question, in their order.
async fn answer(
    line: &FailFastConnection,
    questions: &[BucketRequest],
) -> Vec<Option<LimitDecision>> {
    let mut asked: HashMap<BucketRequest, u32> = HashMap::new();
    for question in questions {
        *asked.entry(*question).or_default() += 1;
    }
    let asked: Vec<(BucketRequest, u32)> = asked.into_iter().collect();
    let Some(taken) = take(line, &asked).await else {
        return vec![None; questions.len()];
    };
    let verdicts = asked
        .iter()
        .zip(taken)
        .map(|((question, count), (granted, nanos))| {
            let full_after = Duration::from_nanos(nanos);
            let verdicts = LimitDecision::of_many(question.rate, *count, granted, full_after);
            (*question, verdicts)
        });
    let mut verdicts: HashMap<BucketRequest, _> = verdicts.collect();
    let answers = questions
        .iter()
        .map(|question| verdicts.get_mut(question)?.next());
    answers.collect()
}

/// For each bucket how many requests were taken and after how many nanoseconds it
/// is full; nothing where Redis does not say.
async fn take(
    line: &FailFastConnection,
    asked: &[(BucketRequest, u32)],
) -> Option<Vec<(u32, u64)>> {
    let mut pipeline = Pipeline::with_capacity(asked.len());
    for (question, count) in asked {
        let key = question.bucket.key(&line.redis.prefix);
        pipeline.add_command(take_command(&key, question.rate, *count));
    }
    line.run(&pipeline).await
}

fn take_command(key: &str, rate: Rate, count: u32) -> Cmd {
    let interval = rate.interval().as_nanos();
    let mut command = redis::cmd("EVALSHA");
    command.arg(TAKE.get_hash()).arg(1).arg(key);
    command.arg(u64::try_from(interval).unwrap_or(u64::MAX));
    command.arg(rate.requests().get()).arg(count);
    command
}
