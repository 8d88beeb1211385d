//! Limits kept in Redis, which all API processes share.
//!
//! One script takes requests from one bucket. Requests that come while a round
//! trip is under way share the next one ([`Group`]), and those of one bucket are
//! taken together, so that a busy organization costs Redis far fewer scripts than
//! it makes requests.
//!
//! The *keeper* is a task that makes the connection and makes it again after it
//! failed. Until it has, nobody asks Redis: its absence costs those under way one
//! wait, and later requests nothing.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, Pipeline, RedisError, RedisResult, Script,
    ServerErrorKind,
};
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{info, warn};

use super::Bucket;
use super::rate::{Rate, Verdict};
use crate::group::{Group, GroupSettings};
use crate::redis::Redis;

/// How long a request waits for Redis before it goes on without. Twice that, where
/// it waits for a round trip that others began.
const WAIT_MAX: Duration = Duration::from_millis(100);
/// How long the first requests of a process wait for its connection.
const FIRST_WAIT_MAX: Duration = Duration::from_millis(250);
/// How long the keeper waits for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// How long the keeper waits before it tries again.
const PAUSE: Duration = Duration::from_millis(100);
/// Round trips under way at once, requests in one of them, and requests that wait
/// for one.
const GROUP: GroupSettings = GroupSettings {
    lanes: 2,
    weight_max: 1_000,
    waiting_max: 10_000,
};

/// Takes up to `ARGV[3]` requests from a bucket of `ARGV[2]` requests, each of
/// which takes `ARGV[1]` nanoseconds to come back. Answers how many it took and
/// after how many nanoseconds the bucket is full again. What is kept is the time
/// at which it will be, by Redis' own clock, as `seconds.nanoseconds`: a number of
/// Lua has not enough digits for both. A clock that was set back costs no more
/// than an empty bucket.
static TAKE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        local time = redis.call('TIME')
        local second, nano = tonumber(time[1]), tonumber(time[2]) * 1000
        local interval, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
        local whole, taken = interval * limit, 0
        local kept = redis.call('GET', KEYS[1])
        if kept then
            local s, n = string.match(kept, '^(%d+)%.(%d+)$')
            if s then taken = (tonumber(s) - second) * 1e9 + tonumber(n) - nano end
            taken = math.min(math.max(taken, 0), whole)
        end
        local granted = math.min(math.floor((whole - taken) / interval), tonumber(ARGV[3]))
        if granted > 0 then
            taken = taken + granted * interval
            local at = nano + taken
            local value = string.format('%d.%09d', second + math.floor(at / 1e9), at % 1e9)
            redis.call('SET', KEYS[1], value, 'PX', math.ceil(taken / 1e6))
        end
        return {granted, taken}",
    )
});

/// The buckets in Redis.
pub(super) struct Shared {
    line: Arc<Line>,
    group: Group<Question, Option<Verdict>>,
}

/// One request's bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Question {
    bucket: Bucket,
    rate: Rate,
}

impl Shared {
    /// Starts the keeper and the lanes. They end when this is dropped.
    pub(super) fn start(redis: Redis) -> Self {
        let line = Arc::new(Line {
            redis,
            state: watch::Sender::new(State::Fresh),
        });
        tokio::spawn(keep(Arc::downgrade(&line), line.state.subscribe()));
        let asked = Arc::clone(&line);
        let group = Group::start(GROUP, move |questions| {
            let line = Arc::clone(&asked);
            async move { line.answer(&questions).await.into_iter().map(Ok).collect() }
        });
        Self { line, group }
    }

    /// Takes one request from a bucket; nothing while Redis is away.
    pub(super) async fn take(&self, bucket: Bucket, rate: Rate) -> Option<Verdict> {
        if matches!(*self.line.state.borrow(), State::Away) {
            return None;
        }
        let question = Question { bucket, rate };
        self.group.run(question, 1).await.ok().flatten()
    }
}

/// The way to Redis.
struct Line {
    redis: Redis,
    state: watch::Sender<State>,
}

#[derive(Clone)]
enum State {
    /// The process has just started.
    Fresh,
    /// The connection of that number is good as far as we know.
    Connected(u64, MultiplexedConnection),
    /// Redis does not answer, or refuses.
    Away,
}

impl Line {
    /// A verdict for each question, in their order.
    async fn answer(&self, questions: &[Question]) -> Vec<Option<Verdict>> {
        let mut asked: HashMap<Question, u32> = HashMap::new();
        for question in questions {
            *asked.entry(*question).or_default() += 1;
        }
        let asked: Vec<(Question, u32)> = asked.into_iter().collect();
        let Some(taken) = self.take(&asked).await else {
            return vec![None; questions.len()];
        };
        let verdicts = asked
            .iter()
            .zip(taken)
            .map(|((question, count), (granted, nanos))| {
                let full_after = Duration::from_nanos(nanos);
                let verdicts = Verdict::of_many(question.rate, *count, granted, full_after);
                (*question, verdicts)
            });
        let mut verdicts: HashMap<Question, _> = verdicts.collect();
        let answers = questions
            .iter()
            .map(|question| verdicts.get_mut(question)?.next());
        answers.collect()
    }

    /// For each bucket how many requests were taken and after how many nanoseconds
    /// it is full; nothing where Redis does not say.
    async fn take(&self, asked: &[(Question, u32)]) -> Option<Vec<(u32, u64)>> {
        let (nth, mut connection) = self.connection().await?;
        let mut pipeline = Pipeline::with_capacity(asked.len());
        for (question, count) in asked {
            let key = question.bucket.key(&self.redis.prefix);
            pipeline.add_command(take_command(&key, question.rate, *count));
        }
        match timeout(WAIT_MAX, run(&pipeline, &mut connection)).await {
            Ok(Ok(taken)) => Some(taken),
            Ok(Err(error)) => self.lost(nth, &error),
            Err(_) => self.lost(nth, &"no answer in time"),
        }
    }

    async fn connection(&self) -> Option<(u64, MultiplexedConnection)> {
        let mut state = self.state.subscribe();
        let known = state.wait_for(|state| !matches!(state, State::Fresh));
        match &*timeout(FIRST_WAIT_MAX, known).await.ok()?.ok()? {
            State::Connected(nth, connection) => Some((*nth, connection.clone())),
            State::Fresh | State::Away => None,
        }
    }

    /// Gives a connection up, unless the keeper has made another one already.
    fn lost<T>(&self, nth: u64, cause: &dyn std::fmt::Display) -> Option<T> {
        self.state.send_if_modified(|state| {
            let is_this = matches!(state, State::Connected(present, _) if *present == nth);
            if is_this {
                warn!(%cause, "Redis does not keep the rate limits; each process keeps them alone");
                *state = State::Away;
            }
            is_this
        });
        None
    }

    async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_MAX))
            .set_response_timeout(Some(WAIT_MAX));
        let opening = self
            .redis
            .client
            .get_multiplexed_async_connection_with_config(&config);
        let mut connection = opening.await?;
        // A Redis that answers and refuses to write is no use.
        let key = format!("{}:limits:probe", self.redis.prefix);
        let mut probe = Pipeline::new();
        probe.add_command(take_command(&key, Rate::per_second(1), 1));
        run(&probe, &mut connection).await.map(|_| connection)
    }
}

/// Connects, and connects again whenever the connection is lost, until the line is
/// dropped.
async fn keep(line: Weak<Line>, mut state: watch::Receiver<State>) {
    let mut nth = 0;
    loop {
        let Some(line) = line.upgrade() else {
            return;
        };
        // The time-out of the client does not cover the probe.
        let connected = timeout(CONNECT_MAX, line.connect()).await;
        let connected = connected.unwrap_or_else(|_| {
            let kind = ErrorKind::Io;
            Err(RedisError::from((kind, "no connection in time")))
        });
        let was_fresh = matches!(*state.borrow(), State::Fresh);
        match connected {
            Ok(connection) => {
                if !was_fresh {
                    info!("Redis keeps the rate limits again");
                }
                nth += 1;
                line.state.send_replace(State::Connected(nth, connection));
            }
            Err(error) if was_fresh => {
                warn!(%error, "Redis does not keep the rate limits; each process keeps them alone");
                line.state.send_replace(State::Away);
            }
            Err(_) => {}
        }
        drop(line);
        let gone = state.wait_for(|state| matches!(state, State::Away));
        if gone.await.is_err() {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Runs scripts by their hash; where Redis does not know it, because it is new,
/// was restarted or emptied of scripts, the script is handed over first.
async fn run(
    commands: &Pipeline,
    connection: &mut MultiplexedConnection,
) -> RedisResult<Vec<(u32, u64)>> {
    match commands.query_async(connection).await {
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
            let script = TAKE.prepare_invoke();
            script.load_async(connection).await?;
            commands.query_async(connection).await
        }
        answer => answer,
    }
}

fn take_command(key: &str, rate: Rate, count: u32) -> Cmd {
    let interval = rate.interval().as_nanos();
    let mut command = redis::cmd("EVALSHA");
    command.arg(TAKE.get_hash()).arg(1).arg(key);
    command.arg(u64::try_from(interval).unwrap_or(u64::MAX));
    command.arg(rate.requests().get()).arg(count);
    command
}
