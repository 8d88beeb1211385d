//! Building filters, in the background: one at a time in each process, and one for
//! an organization among all of them.
//!
//! A building begins in Redis (an empty filter under a fresh generation) and then
//! in Postgres; whatever is committed from then on enters the filter by itself.
//! What was committed before is read in pages, sent as a second string, and laid
//! over the first in one step that also calls the filter complete.

use std::sync::LazyLock;
use std::time::Duration;

use redis::{Pipeline, Script};
use tokio::sync::mpsc;
use tracing::{info, warn};

use super::layout::{HEADER_WORDS, Layout};
use super::{FilterState, Question, is_believed, key};
use crate::db::{OrFault, PgPool, SessionLock};
use crate::fault::Fault;
use crate::ids::{Ids, OrganizationId};
use crate::redis::Redis;
use crate::suppression::store;

/// How long additions that were committed may take to be counted before a filter
/// is called behind.
const SETTLE: Duration = Duration::from_millis(250);
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
        while let Some(organization_id) = asked.recv().await {
            if let Err(fault) = self.tend(organization_id).await {
                warn!(%organization_id, cause = fault.chain(), "A suppression filter was not built; Postgres answers");
            }
        }
    }

    async fn tend(&self, organization_id: OrganizationId) -> Result<(), Fault> {
        let (_, low) = organization_id.0.as_u64_pair();
        let lock = SessionLock::try_take(&self.pool, (low ^ LOCK_SALT).cast_signed()).await?;
        let Some(lock) = lock else {
            // Another process is at it.
            return Ok(());
        };
        let result = self.build_if_needed(organization_id).await;
        lock.release().await;
        result
    }

    async fn build_if_needed(&self, organization_id: OrganizationId) -> Result<(), Fault> {
        let state = self.state(organization_id).await?;
        if !state.wants_filter() {
            return Ok(());
        }
        // What was committed by now is counted soon, unless it is lost.
        tokio::time::sleep(SETTLE).await;
        if !state.is_outgrown() && self.is_sound(organization_id, state).await? {
            return Ok(());
        }
        self.build(organization_id, Layout::for_addresses(state.entries))
            .await
    }

    async fn state(&self, organization_id: OrganizationId) -> Result<FilterState, Fault> {
        let mut connection = self.pool.acquire().await.or_fault("tend to a filter")?;
        store::find_state(&mut connection, organization_id).await
    }

    async fn is_sound(
        &self,
        organization_id: OrganizationId,
        state: FilterState,
    ) -> Result<bool, Fault> {
        let mut pipeline = redis::pipe();
        pipeline.add_command(Question::of(&key(&self.redis, organization_id), &[]).command);
        let (header,): (Vec<i64>,) = self.step(&pipeline).await?;
        Ok(state.has_filter() && is_believed(state, &header))
    }

    async fn build(&self, organization_id: OrganizationId, layout: Layout) -> Result<(), Fault> {
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
        let mut connection = self.pool.acquire().await.or_fault("begin a filter")?;
        store::begin_generation(&mut connection, organization_id, generation, words).await?;
        drop(connection);
        let built = self.collect(organization_id, layout).await?;
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

    /// The string with the bits of every committed suppression, its header zero.
    async fn collect(
        &self,
        organization_id: OrganizationId,
        layout: Layout,
    ) -> Result<Vec<u8>, Fault> {
        const WORD: usize = 8;
        let mut bytes = vec![0; (HEADER_WORDS + layout.words()) as usize * WORD];
        let mut after = Vec::new();
        loop {
            let mut connection = self.pool.acquire().await.or_fault("build a filter")?;
            let page = store::list_hashes(&mut connection, organization_id, &after, PAGE).await?;
            drop(connection);
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

    /// Runs commands on a connection of their own: the large one would hold up
    /// others.
    async fn step<T: redis::FromRedisValue>(&self, pipeline: &Pipeline) -> Result<T, Fault> {
        let run = async {
            let mut connection = self.redis.client.get_multiplexed_async_connection().await?;
            pipeline.query_async(&mut connection).await
        };
        bounded(run).await
    }

    async fn finish(&self, script: &redis::ScriptInvocation<'_>) -> Result<i64, Fault> {
        let run = async {
            let mut connection = self.redis.client.get_multiplexed_async_connection().await?;
            script.invoke_async(&mut connection).await
        };
        bounded(run).await
    }
}

async fn bounded<T>(run: impl Future<Output = redis::RedisResult<T>>) -> Result<T, Fault> {
    let doing = "build a suppression filter";
    tokio::time::timeout(STEP_MAX, run)
        .await
        .map_err(|error| Fault::unavailable(doing, error))?
        .map_err(|error| Fault::unavailable(doing, error))
}
