//! The parts that accept mail, whichever way it comes: the API and SMTP submission have them.

use tokio_util::sync::CancellationToken;
use tracing::warn;
use waypost_core::acceptance::{self, Acceptor, AcceptorParts};
use waypost_core::attachment::{Attachments, ByteBudget, Fetcher, FetcherSettings};
use waypost_core::auth::Authenticator;
use waypost_core::clock::Clock;
use waypost_core::config::Settings;
use waypost_core::db::lifo_pool::LifoPool;
use waypost_core::db::liveness::Liveness;
use waypost_core::db::{self, PgPool};
use waypost_core::delivery::dispatch::Dispatcher;
use waypost_core::delivery::job::{SendJob, send_queue};
use waypost_core::fault::Fault;
use waypost_core::health_server::Readiness;
use waypost_core::ids::Ids;
use waypost_core::job_queue::Queue;
use waypost_core::limit::Limiter;
use waypost_core::redis::Redis;
use waypost_core::routing::snapshot_cache::SnapshotCache;
use waypost_core::suppression::bloom_filter::BloomFilters;
use waypost_core::suppression::check::{self, Checker};
use waypost_core::template::Templates;
use waypost_core::unsubscribe::group_cache::GroupCache;

/// The most connections for the look-ups of a send before acceptance: keys, accounts and
/// rules, groups. Most of them are cached.
const LOOKUP_CONNECTIONS: u32 = 2;

/// The parts of a process that accepts mail.
pub(crate) struct AcceptContext {
    /// The connections of everything that has none of its own.
    pub(crate) pool: PgPool,
    /// Those of look-ups before acceptance.
    pub(crate) lookups: PgPool,
    pub(crate) liveness: Liveness,
    pub(crate) readiness: Readiness,
    pub(crate) authenticator: Authenticator,
    pub(crate) limiter: Limiter,
    pub(crate) acceptor: Acceptor,
    /// The memory of large requests.
    pub(crate) budget: ByteBudget,
    pub(crate) redis: Redis,
    pub(crate) snapshots: SnapshotCache,
    pub(crate) templates: Templates,
    pub(crate) filters: BloomFilters,
    pub(crate) groups: GroupCache,
    pub(crate) queue: Queue<SendJob>,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
}

impl AcceptContext {
    /// Creates the parts; `other_connections` of the process's connections are left to others.
    /// Nothing connects yet, so a process starts while Postgres and Redis are away.
    ///
    /// # Errors
    /// A fault if a URL is not valid.
    pub(crate) fn new(
        settings: &Settings,
        clock: &Clock,
        other_connections: u32,
    ) -> Result<Self, Fault> {
        let ids = Ids::new(clock.clone());
        let connections = settings.database_connections;
        let lookup_connections = (connections / 4).clamp(1, LOOKUP_CONNECTIONS);
        let check_connections = (connections / 8).clamp(1, check::CONNECTIONS);
        let reserved =
            acceptance::CONNECTIONS + lookup_connections + check_connections + other_connections;
        let connections = connections.saturating_sub(reserved);
        let liveness = Liveness::new();
        let pool = db::watched_pool(&settings.database_url, connections.max(1), &liveness)?;
        // Pools of their own, so that other requests cannot delay the look-ups of a send.
        let lookups =
            db::watched_routine_pool(&settings.database_url, lookup_connections, &liveness)?;
        let checks =
            db::watched_routine_pool(&settings.database_url, check_connections, &liveness)?;
        let checks = LifoPool::watched(checks, liveness.clone());
        let redis = Redis::new(&settings.redis_url, &settings.redis_prefix)?;
        let snapshots = SnapshotCache::new(lookups.clone(), settings.sealer.clone(), clock.clone());
        let templates = Templates::start(pool.clone(), clock.clone(), ids.clone())?;
        let filters = BloomFilters::start(pool.clone(), redis.clone(), ids.clone());
        let groups = GroupCache::new(lookups.clone());
        let queue = send_queue(&redis, clock.clone());
        let dispatcher = Dispatcher::start(queue.clone());
        let budget = ByteBudget::new(settings.attachments.memory_bytes_max);
        let acceptor = Acceptor::start(AcceptorParts {
            pool: acceptance::pool(&settings.database_url, &liveness)?,
            reader: pool.clone(),
            attachments: attachments(settings, &pool, &budget)?,
            templates: templates.clone(),
            groups: groups.clone(),
            checker: Checker::start(checks, filters.clone()),
            snapshots: snapshots.clone(),
            sealer: settings.sealer.clone(),
            dispatcher: dispatcher.clone(),
            ids: ids.clone(),
            clock: clock.clone(),
            relay_grace: settings.sending.relay_grace,
        });
        Ok(Self {
            authenticator: Authenticator::start(lookups.clone(), clock.clone()),
            limiter: Limiter::start(redis.clone(), &settings.api),
            readiness: Readiness::new(pool.clone(), redis.clone(), settings.sealer.clone()),
            pool,
            lookups,
            liveness,
            acceptor,
            budget,
            redis,
            snapshots,
            templates,
            filters,
            groups,
            queue,
            dispatcher,
            clock: clock.clone(),
            ids,
        })
    }

    /// Starts the tasks without which nothing is accepted, until `stop`, and waits until it is
    /// known whether the schema suits this version.
    pub(crate) async fn start(&self, settings: &Settings, stop: &CancellationToken) {
        tokio::spawn(self.snapshots.clone().listen(stop.clone()));
        // If Postgres is away, the liveness task corrects the clock once Postgres answers; no
        // message is accepted before that.
        if self.clock.is_system()
            && let Err(fault) = db::time::correct(&self.clock, &self.pool).await
        {
            warn!(
                cause = fault.chain(),
                "Could not read the time from Postgres; trying again once Postgres answers"
            );
        }
        let (url, time) = (settings.database_url.clone(), self.clock.clone());
        tokio::spawn(self.liveness.clone().run(url, time, stop.clone()));
        self.liveness.asked().await;
    }
}

/// What stores the files of requests. Its connections are those of ordinary requests.
fn attachments(
    settings: &Settings,
    pool: &PgPool,
    budget: &ByteBudget,
) -> Result<Attachments, Fault> {
    let fetcher = Fetcher::new(&FetcherSettings {
        allowed: settings.webhooks.allowed.clone(),
        timeout: settings.attachments.fetch_timeout,
    })?;
    let bytes_max = settings.attachments.bytes_max;
    Ok(Attachments::new(
        pool.clone(),
        fetcher,
        budget.clone(),
        bytes_max,
    ))
}
