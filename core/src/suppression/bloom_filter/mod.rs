//! Suppression filters: a Bloom filter for each organization with many
//! suppressions that sends to many at once, as one plain string in Redis. "No" from
//! a filter that can be believed spares Postgres the question; anything else asks
//! Postgres.
//!
//! The string begins with three words: the *generation* (which building of the
//! filter this is), the *additions* (suppressions that entered it since), and
//! whether it is *complete*. Postgres keeps generation and additions too. A filter
//! is believed only where it is complete, of the present generation, and has
//! counted at least what Postgres has. An emptied Redis has no generation; one
//! restored from an old snapshot has counted less, and since an addition is
//! counted once and together with its bits, it never catches up. Header and bits
//! are one string, so no eviction takes the one and leaves the other, and one
//! command reads both.
//!
//! A suppression enters before its transaction is committed ([`BloomFilters::announce`],
//! so that whoever relies on what it knew a moment ago finds it), and is counted
//! after ([`BloomFilters::confirm`]).
//!
//! What is not promised: that a filter which lost something within the last second
//! is found out at once. The check before the provider call does not ask it.

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
use crate::redis::{Redis, away};
use build::Builder;
use layout::{BitPosition, FilterLayout, HEADER_WORDS};

/// Suppressions from which on an organization has a filter. Below, Postgres finds
/// them as fast.
const ENTRIES_MIN: u64 = 2_000;
/// How long anyone waits for Redis before going on without.
const WAIT_MAX: Duration = Duration::from_millis(50);
/// How long Redis is not asked again after it failed to answer.
const REST: Duration = Duration::from_secs(1);
/// Addresses that one script adds, so that others wait for it no longer than for
/// a short command.
const ADDED_AT_ONCE: usize = 500;
/// How long a filter that was tended to is left alone.
const TENDED_FOR: Duration = Duration::from_secs(5);
/// Addresses that one command asks for. Several commands of one question are on their way
/// side by side: while Redis reads the words of one, the next is written and the one before
/// is read, which all take about as long.
const ASKED_AT_ONCE: usize = 250;
/// Bytes of an argument, roughly: `GET`, `i64` and `#1234567` on the average.
const ARGUMENT_BYTES: usize = 6;
/// Round trips under way at once, addresses in one of them, and parts of questions that wait
/// for one. A send to thousands is a crowd by itself.
const GROUP: BatcherSettings = BatcherSettings {
    flushes_max: 2,
    batch_weight_max: 5_000,
    batch_min: 16,
    queue_max: 10_000,
    cooldown: Cooldown::NONE,
};
/// Organizations whose filters may wait to be tended to.
const WAITING_MAX: usize = 1_024;

/// Adds bits where the generation is the expected one, and counts in the same
/// breath. Bits that are there already stay.
static ADD: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        if redis.call('GETRANGE', KEYS[1], 0, 7) ~= ARGV[1] then return 0 end
        for i = 3, #ARGV do redis.call('SETBIT', KEYS[1], ARGV[i], 1) end
        if ARGV[2] ~= '0' then redis.call('BITFIELD', KEYS[1], 'INCRBY', 'i64', '#1', ARGV[2]) end
        return 1",
    )
});

/// What Postgres knows of an organization's filter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FilterState {
    /// How many suppressions the organization has.
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

    /// Whether a filter was ever begun.
    pub(super) fn has_filter(self) -> bool {
        self.layout.is_some()
    }

    /// Whether a filter is worth having.
    pub(super) fn wants_filter(self) -> bool {
        self.entries >= ENTRIES_MIN
    }

    /// Whether the filter holds twice what it was made for.
    pub(super) fn is_outgrown(self) -> bool {
        let additions = u64::try_from(self.additions).unwrap_or_default();
        self.layout
            .is_some_and(|layout| additions >= layout.capacity().max(ENTRIES_MIN))
    }
}

/// The filters in Redis. Cheap to clone.
#[derive(Clone)]
pub struct BloomFilters {
    access: FilterConnection,
    questions: Batcher<FilterQuery, Option<Vec<i64>>>,
    builder: mpsc::Sender<OrganizationId>,
    tended: Cache<OrganizationId, ()>,
}

impl BloomFilters {
    /// Starts the task that builds filters.
    #[must_use]
    pub fn start(pool: PgPool, redis: Redis, ids: Ids) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let builder = Builder::new(pool, redis.clone(), ids);
        tokio::spawn(builder.run(receiver));
        let access = FilterConnection {
            redis,
            kept: Arc::default(),
            resting_until: Arc::default(),
        };
        let reader = access.clone();
        Self {
            access,
            questions: Batcher::start("suppression_filters", GROUP, move |questions| {
                let reader = reader.clone();
                async move { reader.read(questions).await }
            }),
            builder: sender,
            tended: Cache::builder()
                .max_capacity(100_000)
                .time_to_live(TENDED_FOR)
                .build(),
        }
    }

    /// For each address whether it may be suppressed; nothing where there is no
    /// filter that can be believed. A command for some hundred addresses; who asks at the
    /// same time shares round trips.
    pub(super) async fn ask(
        &self,
        organization_id: OrganizationId,
        state: FilterState,
        hashes: impl Iterator<Item = AddressHash>,
    ) -> Option<Vec<bool>> {
        let layout = state.layout?;
        if self.access.is_resting() {
            return None;
        }
        let places: Vec<BitPosition> = hashes.map(|hash| layout.place(&hash)).collect();
        let key = key(&self.access.redis, organization_id);
        let parts = places.chunks(ASKED_AT_ONCE).map(|part| async {
            let words = self
                .questions
                .run(FilterQuery::of(&key, part), part.len())
                .await;
            let words = words
                .ok()
                .flatten()
                .filter(|words| is_believed(state, words))?;
            let found = words.iter().skip(HEADER_WORDS as usize);
            let maybes = part.iter().zip(found);
            let maybes = maybes.map(|(place, found)| place.is_in(found.cast_unsigned()));
            Some(maybes.collect::<Vec<bool>>())
        });
        let parts: Option<Vec<Vec<bool>>> = join_all(parts).await.into_iter().collect();
        Some(parts?.concat())
    }

    /// Lets addresses enter an organization's filter before they are committed.
    pub async fn announce(
        &self,
        organization_id: OrganizationId,
        state: FilterState,
        hashes: &[AddressHash],
    ) {
        self.add(organization_id, state, hashes, false).await;
    }

    /// Lets addresses that were committed enter the filter for certain, and counts
    /// them. `state` is what the transaction that added them returned. Where this
    /// fails the filter is not believed any more and is built anew.
    pub async fn confirm(
        &self,
        organization_id: OrganizationId,
        state: FilterState,
        hashes: &[AddressHash],
    ) {
        self.add(organization_id, state, hashes, true).await;
    }

    /// Asks for a look at an organization's filter in the background: it is built
    /// where it is missing, behind or outgrown.
    pub(super) async fn tend(&self, organization_id: OrganizationId) {
        if self.tended.contains_key(&organization_id) {
            return;
        }
        self.tended.insert(organization_id, ()).await;
        // Where too many wait, the next request after the pause asks again.
        let _full = self.builder.try_send(organization_id);
    }

    async fn add(
        &self,
        organization_id: OrganizationId,
        state: FilterState,
        hashes: &[AddressHash],
        counted: bool,
    ) {
        let Some(layout) = state.layout else {
            return;
        };
        let key = key(&self.access.redis, organization_id);
        for part in hashes.chunks(ADDED_AT_ONCE) {
            let mut script = ADD.key(&key);
            script.arg(&state.generation.to_be_bytes());
            script.arg(if counted { part.len() } else { 0 });
            for hash in part {
                for offset in layout.place(hash).offsets() {
                    script.arg(offset);
                }
            }
            let added = async {
                let mut connection = self.access.redis.pool.get().await.map_err(away)?;
                script.invoke_async::<i64>(&mut connection).await
            };
            if self.access.within_bound(added).await != Some(1) {
                return;
            }
        }
    }
}

/// Redis, as long as it answers. Cheap to clone.
#[derive(Clone)]
struct FilterConnection {
    redis: Redis,
    kept: Arc<Mutex<Option<MultiplexedConnection>>>,
    resting_until: Arc<Mutex<Option<Instant>>>,
}

impl FilterConnection {
    /// What each of these questions reads, in one round trip; nothing where Redis does
    /// not answer.
    async fn read(&self, questions: Vec<FilterQuery>) -> Vec<Result<Option<Vec<i64>>, Fault>> {
        let count = questions.len();
        let pipelines = in_pipelines(questions);
        let answered = if self.is_resting() {
            None
        } else {
            self.within_bound(self.run(&pipelines)).await
        };
        if answered.is_none() {
            *self.kept() = None;
        }
        match answered {
            Some(answers) if answers.len() == count => {
                answers.into_iter().map(|words| Ok(Some(words))).collect()
            }
            Some(_) | None => vec![Ok(None); count],
        }
    }

    /// Runs commands that only read on the connection that is kept: the pool's asks
    /// whether it is alive each time, which costs a round trip. Where Redis has closed it in
    /// the meantime there is a new one.
    async fn run(&self, pipelines: &[Pipeline]) -> RedisResult<Vec<Vec<i64>>> {
        match side_by_side(pipelines, &self.connection().await?).await {
            Err(error) if error.is_connection_dropped() => {
                *self.kept() = None;
                side_by_side(pipelines, &self.connection().await?).await
            }
            answer => answer,
        }
    }

    /// The connection that is kept, or one that is taken out of the pool to be kept: the
    /// pool's are there as a rule, and making one may take longer than anyone waits here.
    async fn connection(&self) -> RedisResult<MultiplexedConnection> {
        if let Some(kept) = self.kept().clone() {
            return Ok(kept);
        }
        let pooled = self.redis.pool.get().await.map_err(away)?;
        let taken = deadpool_redis::Connection::take(pooled);
        *self.kept() = Some(taken.clone());
        Ok(taken)
    }

    fn kept(&self) -> MutexGuard<'_, Option<MultiplexedConnection>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What Redis answers in time; where it fails to, it is left alone for a while.
    async fn within_bound<T>(&self, answer: impl Future<Output = RedisResult<T>>) -> Option<T> {
        match tokio::time::timeout(WAIT_MAX, answer).await {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(error)) => {
                self.rest(&error);
                None
            }
            Err(_) => {
                self.rest(&"it did not answer in time");
                None
            }
        }
    }

    fn is_resting(&self) -> bool {
        let until = self
            .resting_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Leaves Redis alone for a while, so that its absence costs one request the
    /// wait and not all.
    fn rest(&self, cause: &dyn std::fmt::Display) {
        debug!(%cause, "Suppressions are asked of Postgres alone for a while");
        let mut until = self
            .resting_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if until.is_none() {
            warn!(%cause, "Redis failed a suppression filter; Postgres answers");
        }
        *until = Some(Instant::now() + REST);
    }
}

/// Whether a filter that begins with these words can be believed.
fn is_believed(state: FilterState, words: &[i64]) -> bool {
    let [generation, additions, complete, ..] = words else {
        return false;
    };
    *generation == state.generation && *additions >= state.additions && *complete == 1
}

/// The organization's id is a hash tag: all keys of a filter lie together.
fn key(redis: &Redis, organization_id: OrganizationId) -> String {
    format!("{}:suppressions:{{{organization_id}}}", redis.prefix)
}

/// A command that reads a filter's header and the words of some addresses.
struct FilterQuery {
    command: Cmd,
    addresses: usize,
}

impl FilterQuery {
    fn of(key: &str, places: &[BitPosition]) -> Self {
        let words = (0..HEADER_WORDS).chain(places.iter().map(|place| HEADER_WORDS + place.word));
        let arguments = 2 + 3 * (places.len() + HEADER_WORDS as usize);
        let mut command = Cmd::with_capacity(arguments, arguments * ARGUMENT_BYTES);
        command.arg("BITFIELD_RO").arg(key);
        let mut offset = String::new();
        for word in words {
            offset.clear();
            write!(offset, "#{word}").expect("a string takes what is written");
            command.arg("GET").arg("i64").arg(&offset);
        }
        Self {
            command,
            addresses: places.len(),
        }
    }
}

/// Small questions share a pipeline, and so a write and a read of the socket.
fn in_pipelines(questions: Vec<FilterQuery>) -> Vec<Pipeline> {
    let mut pipelines = Vec::new();
    let mut addresses = usize::MAX;
    for question in questions {
        addresses = addresses.saturating_add(question.addresses);
        if addresses > ASKED_AT_ONCE {
            addresses = question.addresses;
            pipelines.push(redis::pipe());
        }
        let pipeline = pipelines.last_mut().expect("one was pushed just now");
        pipeline.add_command(question.command);
    }
    pipelines
}

/// The answers of all commands, in their order.
async fn side_by_side(
    pipelines: &[Pipeline],
    connection: &MultiplexedConnection,
) -> RedisResult<Vec<Vec<i64>>> {
    let asked = pipelines.iter().map(|pipeline| {
        let mut connection = connection.clone();
        async move { pipeline.query_async::<Vec<Vec<i64>>>(&mut connection).await }
    });
    Ok(try_join_all(asked).await?.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(generation: i64, additions: i64) -> FilterState {
        FilterState::of(5_000, generation, 1_250, additions)
    }

    #[test]
    fn a_filter_is_believed_only_if_it_lost_nothing() {
        assert!(is_believed(state(7, 3), &[7, 3, 1]));
        // Another process has added what this one does not know of yet.
        assert!(is_believed(state(7, 3), &[7, 4, 1, 99]));
        for words in [&[7, 2, 1][..], &[8, 3, 1], &[7, 3, 0], &[0, 0, 0], &[]] {
            assert!(!is_believed(state(7, 3), words), "{words:?}");
        }
    }

    #[test]
    fn small_questions_share_a_pipeline_and_large_ones_do_not() {
        let places = |count| vec![state(7, 3).layout.unwrap().place(&AddressHash([7; 32])); count];
        let questions =
            [1, 100, 149, 1, 250, 250, 2, 3].map(|count| FilterQuery::of("key", &places(count)));
        let pipelines = in_pipelines(questions.into());
        let sizes: Vec<usize> = pipelines.iter().map(Pipeline::len).collect();
        assert_eq!(sizes, [3, 1, 1, 1, 2]);
        assert!(in_pipelines(Vec::new()).is_empty());
    }

    #[test]
    fn a_filter_is_outgrown_when_it_has_doubled() {
        assert!(!state(7, 4_999).is_outgrown());
        assert!(state(7, 5_000).is_outgrown());
        assert!(!FilterState::default().is_outgrown());
    }
}
