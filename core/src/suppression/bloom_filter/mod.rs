//! Suppression filters: a Bloom filter in Redis for each organization with many
//! suppressions, stored as one plain string. If a valid filter rules an address out,
//! Postgres is not asked. In all other cases Postgres is asked.
//!
//! The string begins with three words: the *generation* (a random number for each build of
//! the filter), the *additions* (suppressions added since the build) and whether the filter
//! is *complete*. Postgres stores generation and additions too. A filter is valid if it is
//! complete, has the current generation, and has at least as many additions as Postgres. An
//! emptied Redis has no generation. A Redis that was restored from an old snapshot has fewer
//! additions and never catches up, because an addition is is_committed once and together with its
//! bits. Header and bits are one string, so an eviction removes both, and one command reads
//! both.
//!
//! A suppression is added to the filter before its transaction commits
//! ([`BloomFilters::announce`]), so that processes with a cached filter state find it. It is
//! is_committed after the commit ([`BloomFilters::confirm`]).
//!
//! Not guaranteed: a process may use a filter that lost data for up to a second. The check
//! before the provider call reads only Postgres.

mod build;
mod layout;

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::{join_all, try_join_all};
use moka::future::Cache;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, RedisResult, Script};
use tokio::sync::mpsc;
use tracing::{debug, warn};

use crate::address::AddressHash;
use crate::batcher::{Batcher, BatcherSettings, Cooldown};
use crate::db::PgPool;
use crate::fault::Fault;
use crate::ids::{Ids, OrganizationId};
use crate::redis::{PooledConnection, Redis, away};
use build::Builder;
use layout::{BitPosition, FilterLayout, HEADER_WORDS};

/// The number of suppressions from which an organization has a filter. With fewer, Postgres
/// is as fast.
const ENTRIES_MIN: u64 = 2_000;
/// How long a caller waits for Redis before it continues without the filter.
const TIMEOUT: Duration = Duration::from_millis(50);
/// How long filters are not read from Redis after a failure.
const COOLDOWN: Duration = Duration::from_secs(1);
/// Addresses that one script adds. Redis runs a script of this size about as long as a
/// short command.
const ADDRESSES_PER_SCRIPT: usize = 500;
/// How long another build of the same filter is not requested.
const BUILD_REQUEST_INTERVAL: Duration = Duration::from_secs(5);
/// Addresses that one command reads. Several commands of one check run concurrently: while
/// Redis runs one, the client writes the next and reads the reply of the previous. The three
/// steps take about the same time.
const ADDRESSES_PER_COMMAND: usize = 250;
/// The average bytes of a command argument: `GET`, `i64` or `#1234567`.
const ARGUMENT_BYTES: usize = 6;
/// Concurrent round trips, the addresses of one, and the queries that may wait. The queries
/// of a send to thousands of recipients fill a batch by themselves.
const READ_BATCHES: BatcherSettings = BatcherSettings {
    flushes_max: 2,
    batch_weight_max: 5_000,
    batch_min: 16,
    queue_max: 10_000,
    cooldown: Cooldown::NONE,
};
/// Organizations whose filters may wait for a build.
const BUILD_REQUESTS_MAX: usize = 1_024;

/// Sets bits and counts the additions, if the filter has the expected generation.
static ADD: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        if redis.call('GETRANGE', KEYS[1], 0, 7) ~= ARGV[1] then return 0 end
        for i = 3, #ARGV do redis.call('SETBIT', KEYS[1], ARGV[i], 1) end
        if ARGV[2] ~= '0' then redis.call('BITFIELD', KEYS[1], 'INCRBY', 'i64', '#1', ARGV[2]) end
        return 1",
    )
});

/// The state of an organization's filter in Postgres.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FilterState {
    /// The number of the organization's suppressions.
    pub entries: u64,
    generation: i64,
    layout: Option<FilterLayout>,
    additions: i64,
}

impl FilterState {
    pub(super) fn of(entries: i64, generation: i64, words: i32, additions: i64) -> Self {
        Self {
            entries: u64::try_from(entries).unwrap_or_default(),
            generation,
            layout: FilterLayout::of_words(words),
            additions,
        }
    }

    /// Whether the build of a filter was ever started.
    pub(super) fn has_filter(self) -> bool {
        self.layout.is_some()
    }

    /// Whether the organization has enough suppressions for a filter.
    pub(super) fn needs_filter(self) -> bool {
        self.entries >= ENTRIES_MIN
    }

    /// Whether the filter has twice as many addresses as it was sized for.
    pub(super) fn is_outgrown(self) -> bool {
        let additions = u64::try_from(self.additions).unwrap_or_default();
        self.layout
            .is_some_and(|layout| additions >= layout.capacity().max(ENTRIES_MIN))
    }
}

/// The filters in Redis. Cheap to clone.
#[derive(Clone)]
pub struct BloomFilters {
    connection: FilterConnection,
    reads: Batcher<FilterQuery, Option<Vec<i64>>>,
    build_requests: mpsc::Sender<OrganizationId>,
    recently_requested: Cache<OrganizationId, ()>,
}

impl BloomFilters {
    /// Starts the task that builds filters and the batcher that reads them.
    #[must_use]
    pub fn start(pool: PgPool, redis: Redis, ids: Ids) -> Self {
        let (build_requests, receiver) = mpsc::channel(BUILD_REQUESTS_MAX);
        let builder = Builder::new(pool, redis.clone(), ids);
        tokio::spawn(builder.run(receiver));
        let connection = FilterConnection {
            redis,
            open: Arc::default(),
            cooldown_until: Arc::default(),
        };
        let reader = connection.clone();
        Self {
            connection,
            reads: Batcher::start("suppression_filters", READ_BATCHES, move |queries| {
                let reader = reader.clone();
                async move { reader.read(queries).await }
            }),
            build_requests,
            recently_requested: Cache::builder()
                .max_capacity(100_000)
                .time_to_live(BUILD_REQUEST_INTERVAL)
                .build(),
        }
    }

    /// Whether each address may be suppressed. `None` if the organization has no valid
    /// filter or Redis does not answer. Concurrent calls share round trips.
    pub(super) async fn check(
        &self,
        organization_id: OrganizationId,
        state: FilterState,
        hashes: impl Iterator<Item = AddressHash>,
    ) -> Option<Vec<bool>> {
        let layout = state.layout?;
        if self.connection.is_cooling_down() {
            return None;
        }
        let positions: Vec<BitPosition> = hashes.map(|hash| layout.position(&hash)).collect();
        let key = key(&self.connection.redis, organization_id);
        let chunks = positions.chunks(ADDRESSES_PER_COMMAND).map(|chunk| async {
            let query = FilterQuery::of(&key, chunk);
            let words = self.reads.run(query, chunk.len()).await;
            let words = words
                .ok()
                .flatten()
                .filter(|words| is_valid(state, words))?;
            let words = words.iter().skip(HEADER_WORDS as usize);
            let maybes = chunk.iter().zip(words);
            let maybes = maybes.map(|(position, word)| position.matches(word.cast_unsigned()));
            Some(maybes.collect::<Vec<bool>>())
        });
        let maybes: Option<Vec<Vec<bool>>> = join_all(chunks).await.into_iter().collect();
        Some(maybes?.concat())
    }

    /// Adds addresses to an organization's filter before their transaction commits.
    pub async fn announce(
        &self,
        organization_id: OrganizationId,
        state: FilterState,
        hashes: &[AddressHash],
    ) {
        self.add(organization_id, state, hashes, false).await;
    }

    /// Adds committed addresses to the filter again and counts them. `state` is the result
    /// of [`count_added`](super::store::count_added) in their transaction. If this fails,
    /// the filter has too few additions, is invalid from then on, and is rebuilt.
    pub async fn confirm(
        &self,
        organization_id: OrganizationId,
        state: FilterState,
        hashes: &[AddressHash],
    ) {
        self.add(organization_id, state, hashes, true).await;
    }

    /// Requests a check of an organization's filter in the background. The builder builds
    /// the filter if it is missing, invalid or outgrown.
    pub(super) async fn request_build(&self, organization_id: OrganizationId) {
        if self.recently_requested.contains_key(&organization_id) {
            return;
        }
        self.recently_requested.insert(organization_id, ()).await;
        // If the channel is full, a send after the interval requests the build again.
        let _full = self.build_requests.try_send(organization_id);
    }

    async fn add(
        &self,
        organization_id: OrganizationId,
        state: FilterState,
        hashes: &[AddressHash],
        is_committed: bool,
    ) {
        let Some(layout) = state.layout else {
            return;
        };
        let key = key(&self.connection.redis, organization_id);
        for chunk in hashes.chunks(ADDRESSES_PER_SCRIPT) {
            let mut script = ADD.key(&key);
            script.arg(&state.generation.to_be_bytes());
            script.arg(if is_committed { chunk.len() } else { 0 });
            for hash in chunk {
                for offset in layout.position(hash).offsets() {
                    script.arg(offset);
                }
            }
            let added = async {
                let mut connection = self.connection.redis.pool.get().await.map_err(away)?;
                script.invoke_async::<i64>(&mut *connection).await
            };
            if self.connection.with_timeout(added).await != Some(1) {
                return;
            }
        }
    }
}

/// A connection to Redis with a cooldown after failures. Cheap to clone.
#[derive(Clone)]
struct FilterConnection {
    redis: Redis,
    open: Arc<Mutex<Option<MultiplexedConnection>>>,
    cooldown_until: Arc<Mutex<Option<Instant>>>,
}

impl FilterConnection {
    /// The words that each query reads, in one round trip. `None` for each if Redis does not
    /// answer.
    async fn read(&self, queries: Vec<FilterQuery>) -> Vec<Result<Option<Vec<i64>>, Fault>> {
        let count = queries.len();
        let pipelines = in_pipelines(queries);
        let replies = if self.is_cooling_down() {
            None
        } else {
            self.with_timeout(self.run(&pipelines)).await
        };
        if replies.is_none() {
            *self.open() = None;
        }
        match replies {
            Some(replies) if replies.len() == count => {
                replies.into_iter().map(|words| Ok(Some(words))).collect()
            }
            Some(_) | None => vec![Ok(None); count],
        }
    }

    /// Runs read-only commands on one connection that stays open: the pool pings a
    /// connection each time it hands it out, which costs a round trip. Retries once on a new
    /// connection if Redis has closed this one.
    async fn run(&self, pipelines: &[Pipeline]) -> RedisResult<Vec<Vec<i64>>> {
        match query_concurrently(pipelines, &self.connection().await?).await {
            Err(error) if error.is_connection_dropped() => {
                *self.open() = None;
                query_concurrently(pipelines, &self.connection().await?).await
            }
            result => result,
        }
    }

    /// The open connection, or one that it takes out of the pool. The pool usually has a
    /// connection, and opening a new one may take longer than [`TIMEOUT`].
    async fn connection(&self) -> RedisResult<MultiplexedConnection> {
        if let Some(open) = self.open().clone() {
            return Ok(open);
        }
        let pooled = self.redis.pool.get().await.map_err(away)?;
        let taken = PooledConnection::take(pooled);
        *self.open() = Some(taken.clone());
        Ok(taken)
    }

    fn open(&self) -> MutexGuard<'_, Option<MultiplexedConnection>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reply of Redis. A failure or timeout starts the cooldown and returns `None`.
    async fn with_timeout<T>(&self, reply: impl Future<Output = RedisResult<T>>) -> Option<T> {
        match tokio::time::timeout(TIMEOUT, reply).await {
            Ok(Ok(reply)) => Some(reply),
            Ok(Err(error)) => {
                self.start_cooldown(&error);
                None
            }
            Err(_) => {
                self.start_cooldown(&"it did not answer in time");
                None
            }
        }
    }

    fn cooldown_until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.cooldown_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn is_cooling_down(&self) -> bool {
        self.cooldown_until()
            .is_some_and(|until| Instant::now() < until)
    }

    /// Filters are not read until the cooldown ends, so that an unavailable Redis does not
    /// cost every request the timeout.
    fn start_cooldown(&self, cause: &dyn std::fmt::Display) {
        debug!(%cause, "Suppressions are checked in Postgres only until Redis is tried again");
        let mut until = self.cooldown_until();
        if until.is_none() {
            warn!(%cause, "Could not read a suppression filter from Redis; checking suppressions in Postgres");
        }
        *until = Some(Instant::now() + COOLDOWN);
    }
}

/// Whether a filter that begins with these words is valid.
fn is_valid(state: FilterState, words: &[i64]) -> bool {
    let [generation, additions, complete, ..] = words else {
        return false;
    };
    *generation == state.generation && *additions >= state.additions && *complete == 1
}

/// The organization's id is a hash tag, so that Redis Cluster stores all keys of a filter on
/// one node.
fn key(redis: &Redis, organization_id: OrganizationId) -> String {
    format!("{}:suppressions:{{{organization_id}}}", redis.prefix)
}

/// A command that reads a filter's header and the words of several addresses.
struct FilterQuery {
    command: Cmd,
    addresses: usize,
}

impl FilterQuery {
    fn of(key: &str, positions: &[BitPosition]) -> Self {
        let words = positions
            .iter()
            .map(|position| HEADER_WORDS + position.word);
        let words = (0..HEADER_WORDS).chain(words);
        let arguments = 2 + 3 * (positions.len() + HEADER_WORDS as usize);
        let mut command = Cmd::with_capacity(arguments, arguments * ARGUMENT_BYTES);
        command.arg("BITFIELD_RO").arg(key);
        let mut offset = String::new();
        for word in words {
            offset.clear();
            write!(offset, "#{word}").expect("writing to a string cannot fail");
            command.arg("GET").arg("i64").arg(&offset);
        }
        Self {
            command,
            addresses: positions.len(),
        }
    }
}

/// Groups small queries into pipelines. A pipeline needs one write and one read of the
/// socket.
fn in_pipelines(queries: Vec<FilterQuery>) -> Vec<Pipeline> {
    let mut pipelines = Vec::new();
    let mut addresses = usize::MAX;
    for query in queries {
        addresses = addresses.saturating_add(query.addresses);
        if addresses > ADDRESSES_PER_COMMAND {
            addresses = query.addresses;
            pipelines.push(redis::pipe());
        }
        let pipeline = pipelines.last_mut().expect("one was pushed just now");
        pipeline.add_command(query.command);
    }
    pipelines
}

/// Runs the pipelines concurrently on one connection. Returns the replies of all commands
/// in order.
async fn query_concurrently(
    pipelines: &[Pipeline],
    connection: &MultiplexedConnection,
) -> RedisResult<Vec<Vec<i64>>> {
    let replies = pipelines.iter().map(|pipeline| {
        let mut connection = connection.clone();
        async move { pipeline.query_async::<Vec<Vec<i64>>>(&mut connection).await }
    });
    Ok(try_join_all(replies).await?.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(generation: i64, additions: i64) -> FilterState {
        FilterState::of(5_000, generation, 1_250, additions)
    }

    #[test]
    fn a_filter_that_lost_data_is_invalid() {
        assert!(is_valid(state(7, 3), &[7, 3, 1]));
        // Another process has added suppressions since this one read the state.
        assert!(is_valid(state(7, 3), &[7, 4, 1, 99]));
        for words in [&[7, 2, 1][..], &[8, 3, 1], &[7, 3, 0], &[0, 0, 0], &[]] {
            assert!(!is_valid(state(7, 3), words), "{words:?}");
        }
    }

    #[test]
    fn small_queries_share_a_pipeline_and_large_ones_do_not() {
        let position = state(7, 3).layout.unwrap().position(&AddressHash([7; 32]));
        let queries = [1, 100, 149, 1, 250, 250, 2, 3]
            .map(|count| FilterQuery::of("key", &vec![position; count]));
        let pipelines = in_pipelines(queries.into());
        let sizes: Vec<usize> = pipelines.iter().map(Pipeline::len).collect();
        assert_eq!(sizes, [3, 1, 1, 1, 2]);
        assert!(in_pipelines(Vec::new()).is_empty());
    }

    #[test]
    fn a_filter_is_outgrown_at_twice_its_capacity() {
        assert!(!state(7, 4_999).is_outgrown());
        assert!(state(7, 5_000).is_outgrown());
        assert!(!FilterState::default().is_outgrown());
    }
}
