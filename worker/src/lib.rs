//! Waypost's worker: takes jobs from Redis, leases their chunks in Postgres, calls
//! providers, and records the outcomes. It also delivers webhooks.
//!
//! - `worker_lease` keeps the lease of this process.
//! - `store` writes to Postgres for many jobs in one transaction.
//! - `send` runs a job: from its lease to the recorded outcomes.
//! - `runtime` runs jobs from Redis through apalis, `fallback_poller` takes them from
//!   Postgres while Redis is away.
//! - `webhook` delivers webhooks, beside all this.
//!
//! What it guarantees: no call is made before its attempt is written; none is made under a
//! lease that could end before the call; an outcome is recorded, however long Postgres does
//! not answer.

mod fallback_poller;
pub mod program;
mod runtime;
mod send;
mod shutdown;
mod store;
mod webhook;
mod worker_lease;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tracing::{error, info};
use waypost_core::account_limiter::AccountLimiter;
use waypost_core::clock::Clock;
use waypost_core::config::Settings;
use waypost_core::db::liveness::Liveness;
use waypost_core::db::{self, PgPool};
use waypost_core::delivery::job::send_queue;
use waypost_core::fault::Fault;
use waypost_core::health_server::{self, Readiness};
use waypost_core::ids::Ids;
use waypost_core::organization::limiter::TenantLimiter;
use waypost_core::provider::ProviderHosts;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider::outcome::SendOutcome;
use waypost_core::provider::transport::{Transport, TransportSettings};
use waypost_core::provider_account::Accounts;
use waypost_core::redis::Redis;
use waypost_core::routing::snapshot_cache::SnapshotCache;
use waypost_core::startup;
use waypost_core::suppression::Suppressions;
use waypost_core::suppression::bloom_filter::BloomFilters;
use waypost_core::telemetry::instruments;
use waypost_core::tracking::link::Tracker;
use waypost_core::unsubscribe::link::Links;

use fallback_poller::FallbackPoller;
use send::job::{SendHandler, Sending};
use send::target_caps::TargetCaps;
use store::SendStore;
use webhook::Webhooks;
use worker_lease::WorkerLease;

/// The general connection pool, and that of the store.
fn pools(settings: &Settings) -> Result<(PgPool, PgPool), Fault> {
    let (of_store, others) =
        db::split_connections(settings.database_connections, store::CONNECTIONS);
    Ok((
        db::routine_pool(&settings.database_url, others)?,
        db::routine_pool(&settings.database_url, of_store)?,
    ))
}

/// Runs until `shutdown`. Calls in flight then have the configured time to end.
///
/// # Errors
/// A fault if the configuration cannot be used.
pub async fn run(
    settings: &Settings,
    clock: Clock,
    shutdown: CancellationToken,
) -> Result<(), Fault> {
    let ids = Ids::new(clock.clone());
    let (pool, store_pool) = pools(settings)?;
    // It logs when Postgres goes away and comes back, and corrects the clock.
    let (url, liveness) = (settings.database_url.clone(), Liveness::new());
    tokio::spawn(liveness.clone().run(url, clock.clone(), shutdown.clone()));
    let redis = Redis::new(&settings.redis_url, &settings.redis_prefix)?;
    startup::check(settings, &pool).await?;
    let readiness = Readiness::new(pool.clone(), redis.clone(), settings.sealer.clone());
    health_server::serve(
        settings.monitoring.health_listen,
        readiness,
        None,
        shutdown.clone(),
    )
    .await?;
    instruments::jobs_max(settings.sending.concurrency);
    let providers = ProviderType::ALL.map(ProviderType::as_str);
    instruments::begin_attempts(providers, &SendOutcome::NAMES);
    // Nothing is leased under a schema that is older than this program.
    shutdown.run_until_cancelled(liveness.present()).await;
    let Some(worker_lease) =
        WorkerLease::start(pool.clone(), ids.clone(), &settings.sending, &shutdown).await
    else {
        return Ok(());
    };
    db::time::correct_first(&clock, &pool, &shutdown).await;
    let lease = worker_lease.clone();
    let webhooks = Webhooks::start(settings, clock.clone(), lease, shutdown.clone())?;
    let queue = send_queue(&redis, clock.clone());
    let snapshots = SnapshotCache::new(pool.clone(), settings.sealer.clone(), clock.clone());
    tokio::spawn(snapshots.clone().listen(shutdown.clone()));
    let accounts = accounts(settings, snapshots, pool.clone(), &clock, &ids)?;
    let suppressions = Suppressions {
        pool: pool.clone(),
        filters: BloomFilters::start(pool.clone(), redis.clone(), ids.clone()),
        clock: clock.clone(),
        ids: ids.clone(),
    };
    let sending = Arc::new(Sending {
        store: SendStore::start(
            store_pool,
            queue.clone(),
            worker_lease.clone(),
            clock.clone(),
            settings.sending.clone(),
            suppressions,
        ),
        target_caps: TargetCaps::new(pool, clock.clone()),
        account_limiter: account_limiter(settings, redis, &accounts, &shutdown),
        accounts,
        worker_lease: worker_lease.clone(),
        tracker: Tracker::new(settings),
        links: Links::new(settings),
        ids,
        clock,
        settings: settings.sending.clone(),
        shutdown: shutdown.clone(),
    });
    let handler = SendHandler::new(Arc::clone(&sending));
    let poller = FallbackPoller::new(&sending, queue.clone(), handler.clone());
    let polling = tokio::spawn(poller.run(shutdown.clone()));
    info!(worker = worker_lease.name(), "Worker started");
    runtime::run(&queue, &worker_lease, &settings.sending, &shutdown, handler).await;
    if let Err(panic) = polling.await {
        error!(cause = %panic, "The fallback poller panicked");
    }
    webhooks.ended(settings.sending.shutdown).await;
    sending.target_caps.give_back().await;
    shutdown::give_back_leases(&sending, &queue).await;
    Ok(())
}

fn accounts(
    settings: &Settings,
    snapshots: SnapshotCache,
    pool: PgPool,
    clock: &Clock,
    ids: &Ids,
) -> Result<Accounts, Fault> {
    Ok(Accounts {
        pool,
        sealer: settings.sealer.clone(),
        transport: Transport::new(&TransportSettings {
            call_timeout: settings.sending.call_timeout,
            // A job may make several calls at the same time.
            idle_connections_max: settings.sending.concurrency.max(8) * 2,
            smtp: settings.smtp.clone(),
            ..TransportSettings::default()
        })?,
        check_limiter: TenantLimiter::of_calls(),
        endpoints: ProviderHosts::from(settings.provider_base_urls.clone()),
        public_url: settings.links.public_url.clone(),
        snapshots,
        clock: clock.clone(),
        ids: ids.clone(),
    })
}

/// The limiter of calls to accounts. All workers share the limits.
fn account_limiter(
    settings: &Settings,
    redis: Redis,
    accounts: &Accounts,
    shutdown: &CancellationToken,
) -> AccountLimiter {
    let (clock, ids) = (accounts.clock.clone(), accounts.ids.clone());
    let limiter = AccountLimiter::start(redis, &settings.sending, clock, ids, shutdown.clone());
    limiter.count_workers(accounts.pool.clone());
    limiter.report_failures(accounts.pool.clone());
    limiter
}
