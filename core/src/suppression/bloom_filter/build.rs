//! Builds filters in the background. Each process builds one filter at a time, and an
//! advisory lock allows one build for an organization at a time. Requests that arrive during
//! a build are processed together, so that a Redis that lost all filters recovers soon.
//!
//! A build first writes an empty filter with a new generation to Redis, then the generation
//! to Postgres. Suppressions that commit after that are added to the filter by their own
//! transactions. The builder reads the earlier ones in pages, sends them as a second string,
//! and merges it into the first in one step that also marks the filter complete.

use std::sync::LazyLock;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Pipeline, Script};
use tokio::sync::mpsc;
use tracing::{info, warn};

use super::layout::{FilterLayout, HEADER_WORDS};
use super::{FilterQuery, FilterState, is_valid, key};
use crate::db::advisory_locks::AdvisoryLocks;
use crate::db::{self, PgConnection, PgPool};
use crate::fault::Fault;
use crate::ids::{Ids, OrganizationId};
use crate::redis::Redis;
use crate::suppression::store;
use crate::warn_seldom;

/// How long committed additions may take to be counted in Redis before a filter counts as
/// incomplete.
const COUNT_DELAY: Duration = Duration::from_millis(250);
/// Build requests that are processed together.
const REQUESTS_PER_BATCH: usize = 64;
/// Hashes read in one statement.
const PAGE_SIZE: i64 = 10_000;
/// The timeout of one step in Redis. The largest step sends 64 MiB.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a new connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The expiry of the second string in Redis if a build is abandoned.
const BUILD_TTL_SECONDS: u64 = 600;
/// Separates these advisory locks from others in the same database.
const LOCK_SALT: u64 = 0x7375_7070_7265_7373;

/// Merges the built string into the filter, unless a newer build has started or Redis has
/// lost one of the strings.
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

/// The task that builds filters.
pub(super) struct Builder {
    pool: PgPool,
    redis: Redis,
    ids: Ids,
}

impl Builder {
    pub(super) fn new(pool: PgPool, redis: Redis, ids: Ids) -> Self {
        Self { pool, redis, ids }
    }

    /// Processes build requests until all senders are dropped.
    pub(super) async fn run(self, mut requests: mpsc::Receiver<OrganizationId>) {
        let mut organization_ids = Vec::with_capacity(REQUESTS_PER_BATCH);
        while requests
            .recv_many(&mut organization_ids, REQUESTS_PER_BATCH)
            .await
            > 0
        {
            if let Err(fault) = self.process(&organization_ids).await {
                let cause = fault.chain();
                warn_seldom!(
                    cause,
                    "Could not check suppression filters; checking suppressions in Postgres"
                );
            }
            organization_ids.clear();
        }
    }

    async fn process(&self, organization_ids: &[OrganizationId]) -> Result<(), Fault> {
        let keys = organization_ids.iter().copied().map(lock_key);
        let keys: Vec<i64> = keys.collect();
        let (mut locks, taken) = AdvisoryLocks::take_free(&self.pool, &keys).await?;
        // Other processes build the filters of the other organizations.
        let own = organization_ids.iter().copied();
        let own: Vec<OrganizationId> = own.filter(|id| taken.contains(&lock_key(*id))).collect();
        let built = self.build_missing(&mut locks, &own).await;
        locks.release().await;
        built
    }

    /// Builds the filters that are missing, invalid or outgrown, smallest first, and
    /// releases each lock when its filter is done. Stops at the first failure, because
    /// Postgres or Redis is unavailable, or the filter is too large and the next ones are
    /// larger. Later sends request the remaining filters again.
    async fn build_missing(
        &self,
        locks: &mut AdvisoryLocks,
        organization_ids: &[OrganizationId],
    ) -> Result<(), Fault> {
        let states = store::list_states(locks.connection(), organization_ids);
        let mut states = db::bounded("check suppression filters", states).await?;
        states.retain(|(_, state)| state.needs_filter());
        states.sort_unstable_by_key(|(_, state)| state.entries);
        if states.is_empty() {
            return Ok(());
        }
        // Additions that are committed by now are counted after this delay, unless Redis
        // lost them.
        tokio::time::sleep(COUNT_DELAY).await;
        let headers = self.headers(&states).await?;
        for ((organization_id, state), header) in states.into_iter().zip(headers) {
            if state.is_outgrown() || !state.has_filter() || !is_valid(state, &header) {
                let layout = FilterLayout::for_addresses(state.entries);
                let built = self.build(locks.connection(), organization_id, layout);
                if let Err(fault) = built.await {
                    warn_seldom!(%organization_id, cause = fault.chain(), "Could not build a suppression filter; checking suppressions in Postgres");
                    break;
                }
            }
            locks.free(lock_key(organization_id)).await?;
        }
        Ok(())
    }

    /// The header words of each filter.
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
        // Writing the last word extends the string to its full length.
        begin.arg("SET").arg("i64");
        begin
            .arg(format!("#{}", HEADER_WORDS + layout.words() - 1))
            .arg(0)
            .ignore();
        self.step::<()>(&begin).await?;
        let words = i32::try_from(layout.words()).unwrap_or(i32::MAX);
        let started = store::begin_generation(connection, organization_id, generation, words);
        db::bounded("start a suppression filter", started).await?;
        let built = collect(connection, organization_id, layout).await?;
        let length = built.len();
        let built_key = format!("{key}:{generation:x}");
        let mut send = redis::pipe();
        send.set_ex(&built_key, built, BUILD_TTL_SECONDS).ignore();
        self.step::<()>(&send).await?;
        let mut complete = COMPLETE.key(&key);
        complete.key(&built_key);
        complete.arg(&generation.to_be_bytes()).arg(length);
        let completed: i64 = self.finish(&complete).await?;
        if completed == 1 {
            info!(%organization_id, bytes = length, "Built a suppression filter");
        } else {
            warn!(%organization_id, "Redis lost a suppression filter during its build");
        }
        Ok(())
    }

    async fn step<T: redis::FromRedisValue>(&self, pipeline: &Pipeline) -> Result<T, Fault> {
        bounded(async { pipeline.query_async(&mut self.connect().await?).await }).await
    }

    async fn finish(&self, script: &redis::ScriptInvocation<'_>) -> Result<i64, Fault> {
        bounded(async { script.invoke_async(&mut self.connect().await?).await }).await
    }

    /// A new connection, because a large step would delay other commands on a shared one.
    /// [`STEP_TIMEOUT`] replaces the time-out of a reply.
    async fn connect(&self) -> redis::RedisResult<MultiplexedConnection> {
        self.redis.connector.connect(CONNECT_TIMEOUT, None).await
    }
}

/// The string with the bits of every committed suppression and a zero header.
async fn collect(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    layout: FilterLayout,
) -> Result<Vec<u8>, Fault> {
    const WORD: usize = 8;
    let mut bytes = vec![0; (HEADER_WORDS + layout.words()) as usize * WORD];
    let mut after = Vec::new();
    loop {
        let page = store::list_hashes(connection, organization_id, &after, PAGE_SIZE);
        let page = db::bounded("build a suppression filter", page).await?;
        for hash in &page {
            let position = layout.position(hash);
            let first = (HEADER_WORDS + position.word) as usize * WORD;
            for (byte, mask) in bytes[first..].iter_mut().zip(position.mask.to_be_bytes()) {
                *byte |= mask;
            }
        }
        match page.last() {
            Some(last) => after = last.0.to_vec(),
            None => return Ok(bytes),
        }
    }
}

/// The advisory lock key for an organization's filter.
fn lock_key(organization_id: OrganizationId) -> i64 {
    let (_, low) = organization_id.0.as_u64_pair();
    (low ^ LOCK_SALT).cast_signed()
}

async fn bounded<T>(run: impl Future<Output = redis::RedisResult<T>>) -> Result<T, Fault> {
    let doing = "build a suppression filter";
    tokio::time::timeout(STEP_TIMEOUT, run)
        .await
        .map_err(|error| Fault::unavailable(doing, error))?
        .map_err(|error| Fault::unavailable(doing, error))
}
