//! Building filters, in the background: one at a time in each process, and one for
//! an organization among all of them. Those that are asked for meanwhile are looked at
//! together, so that a Redis that lost all of them has them back soon.
//!
//! A building begins in Redis (an empty filter under a fresh generation) and then
//! in Postgres; whatever is committed from then on enters the filter by itself.
//! What was committed before is read in pages, sent as a second string, and laid
//! over the first in one step that also calls the filter complete.

use std::sync::LazyLock;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Pipeline, Script};
use tokio::sync::mpsc;
use tracing::{info, warn};

use super::layout::{FilterLayout, HEADER_WORDS};
use super::{FilterQuery, FilterState, is_believed, key};
use crate::db::advisory_locks::AdvisoryLocks;
use crate::db::{self, PgConnection, PgPool};
use crate::fault::Fault;
use crate::ids::{Ids, OrganizationId};
use crate::redis::Redis;
use crate::suppression::store;
use crate::warn_seldom;

/// How long additions that were committed may take to be counted before a filter
/// is called behind.
const SETTLE: Duration = Duration::from_millis(250);
/// Filters that are looked at together.
const TOGETHER_MAX: usize = 64;
/// Hashes read in one statement.
const PAGE: i64 = 10_000;
/// How long one step in Redis may take: the largest sends 64 MiB.
const STEP_MAX: Duration = Duration::from_secs(30);
/// After this an abandoned building is gone from Redis, in seconds.
const ABANDONED_AFTER_SECONDS: u64 = 600;
/// Tells these locks from others in the same database.
const LOCK_SALT: u64 = 0x7375_7070_7265_7373;

/// Lays the built string over the filter, unless a newer building has begun or
/// either string was lost on the way.
static COMPLETE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        if redis.call('GETRANGE', KEYS[1], 0, 7) ~= ARGV[1] then return 0 end
        if redis.call('STRLEN', KEYS[2]) ~= tonumber(ARGV[2]) then return 0 end
        redis.call('BITOP', 'OR', KEYS[1], KEYS[1], KEYS[2])
        redis.call('DEL', KEYS[2])
        redis.call('BITFIELD', KEYS[1], 'SET', 'i64', '#2', 1)
        return 1",
    )
});

/// The task that builds.
pub(super) struct Builder {
    pool: PgPool,
    redis: Redis,
    ids: Ids,
}

impl Builder {
    pub(super) fn new(pool: PgPool, redis: Redis, ids: Ids) -> Self {
        Self { pool, redis, ids }
    }

    /// Tends to the filters that are asked for, until nobody can ask any more.
    pub(super) async fn run(self, mut asked: mpsc::Receiver<OrganizationId>) {
        let mut organization_ids = Vec::with_capacity(TOGETHER_MAX);
        while asked.recv_many(&mut organization_ids, TOGETHER_MAX).await > 0 {
            if let Err(fault) = self.tend(&organization_ids).await {
                let cause = fault.chain();
                warn_seldom!(
                    cause,
                    "Suppression filters were not looked at; Postgres answers"
                );
            }
            organization_ids.clear();
        }
    }

    async fn tend(&self, organization_ids: &[OrganizationId]) -> Result<(), Fault> {
        let keys = organization_ids.iter().copied().map(lock_key);
        let keys: Vec<i64> = keys.collect();
        let (mut locks, taken) = AdvisoryLocks::take_free(&self.pool, &keys).await?;
        // Another process is at the others.
        let own = organization_ids.iter().copied();
        let own: Vec<OrganizationId> = own.filter(|id| taken.contains(&lock_key(*id))).collect();
        let tended = self.build_missing(&mut locks, &own).await;
        locks.release().await;
        tended
    }

    /// Builds those filters that are missing, behind or outgrown, small ones first, and
    /// frees each lock as soon as it may. One that fails ends it: Postgres or Redis is
    /// away, or the others are larger still. They are asked for again.
    async fn build_missing(
        &self,
        locks: &mut AdvisoryLocks,
        organization_ids: &[OrganizationId],
    ) -> Result<(), Fault> {
        let states = store::list_states(locks.connection(), organization_ids);
        let mut states = db::bounded("tend to filters", states).await?;
        states.retain(|(_, state)| state.wants_filter());
        states.sort_unstable_by_key(|(_, state)| state.entries);
        if states.is_empty() {
            return Ok(());
        }
        // What was committed by now is counted soon, unless it is lost.
        tokio::time::sleep(SETTLE).await;
        let headers = self.headers(&states).await?;
        for ((organization_id, state), header) in states.into_iter().zip(headers) {
            if state.is_outgrown() || !state.has_filter() || !is_believed(state, &header) {
                let layout = FilterLayout::for_addresses(state.entries);
                let building = self.build(locks.connection(), organization_id, layout);
                if let Err(fault) = building.await {
                    warn_seldom!(%organization_id, cause = fault.chain(), "A suppression filter was not built; Postgres answers");
                    break;
                }
            }
            locks.free(lock_key(organization_id)).await?;
        }
        Ok(())
    }

    /// The first words of each of these filters.
    async fn headers(
        &self,
        filters: &[(OrganizationId, FilterState)],
    ) -> Result<Vec<Vec<i64>>, Fault> {
        let mut pipeline = redis::pipe();
        for (organization_id, _) in filters {
            pipeline.add_command(FilterQuery::of(&key(&self.redis, *organization_id), &[]).command);
        }
        self.step(&pipeline).await
    }

    async fn build(
        &self,
        connection: &mut PgConnection,
        organization_id: OrganizationId,
        layout: FilterLayout,
    ) -> Result<(), Fault> {
        let generation = i64::from_be_bytes(self.ids.random_bytes()) | 1;
        let key = key(&self.redis, organization_id);
        let mut begin = redis::pipe();
        begin.atomic().del(&key).ignore();
        begin.cmd("BITFIELD").arg(&key);
        begin.arg("SET").arg("i64").arg("#0").arg(generation);
        // As long as it will be, so that every word can be read.
        begin.arg("SET").arg("i64");
        begin
            .arg(format!("#{}", HEADER_WORDS + layout.words() - 1))
            .arg(0)
            .ignore();
        self.step::<()>(&begin).await?;
        let words = i32::try_from(layout.words()).unwrap_or(i32::MAX);
        let begun = store::begin_generation(connection, organization_id, generation, words);
        db::bounded("begin a filter", begun).await?;
        let built = collect(connection, organization_id, layout).await?;
        let length = built.len();
        let built_key = format!("{key}:{generation:x}");
        let mut send = redis::pipe();
        send.set_ex(&built_key, built, ABANDONED_AFTER_SECONDS)
            .ignore();
        self.step::<()>(&send).await?;
        let mut complete = COMPLETE.key(&key);
        complete.key(&built_key);
        complete.arg(&generation.to_be_bytes()).arg(length);
        let completed: i64 = self.finish(&complete).await?;
        if completed == 1 {
            info!(%organization_id, bytes = length, "Built a suppression filter");
        } else {
            warn!(%organization_id, "A suppression filter was lost while it was built");
        }
        Ok(())
    }

    async fn step<T: redis::FromRedisValue>(&self, pipeline: &Pipeline) -> Result<T, Fault> {
        bounded(async { pipeline.query_async(&mut self.connect().await?).await }).await
    }

    async fn finish(&self, script: &redis::ScriptInvocation<'_>) -> Result<i64, Fault> {
        bounded(async { script.invoke_async(&mut self.connect().await?).await }).await
    }

    /// A connection of its own: a large step would hold up others. Answers may take as long
    /// as a step; by itself the client gives them half a second.
    async fn connect(&self) -> redis::RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let client = &self.redis.client;
        client
            .get_multiplexed_async_connection_with_config(&config)
            .await
    }
}

/// The string with the bits of every committed suppression, its header zero.
async fn collect(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    layout: FilterLayout,
) -> Result<Vec<u8>, Fault> {
    const WORD: usize = 8;
    let mut bytes = vec![0; (HEADER_WORDS + layout.words()) as usize * WORD];
    let mut after = Vec::new();
    loop {
        let page = store::list_hashes(connection, organization_id, &after, PAGE);
        let page = db::bounded("build a filter", page).await?;
        for hash in &page {
            let place = layout.place(hash);
            let first = (HEADER_WORDS + place.word) as usize * WORD;
            for (byte, mask) in bytes[first..].iter_mut().zip(place.mask.to_be_bytes()) {
                *byte |= mask;
            }
        }
        match page.last() {
            Some(last) => after = last.0.to_vec(),
            None => return Ok(bytes),
        }
    }
}

/// The key of the lock of an organization's filter.
fn lock_key(organization_id: OrganizationId) -> i64 {
    let (_, low) = organization_id.0.as_u64_pair();
    (low ^ LOCK_SALT).cast_signed()
}

async fn bounded<T>(run: impl Future<Output = redis::RedisResult<T>>) -> Result<T, Fault> {
    let doing = "build a suppression filter";
    tokio::time::timeout(STEP_MAX, run)
        .await
        .map_err(|error| Fault::unavailable(doing, error))?
        .map_err(|error| Fault::unavailable(doing, error))
}
