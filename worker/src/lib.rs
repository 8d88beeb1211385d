//! Waypost's worker: takes jobs from Redis, leases their work in Postgres, calls
//! providers, records what came of it.
//!
//! The *tenure* is the span in which this process may act on its leases. The
//! *ledger* shares transactions between jobs. The *choice* says through which account
//! a copy goes. The *runtime* runs jobs through apalis. What is promised: no call is
//! made without an attempt on record, none under a lease that could end before the
//! call does, and an outcome that is known is recorded however long Postgres is away.
//! *Webhooks* are delivered beside all that, with promises of their own.

mod fallback_poller;
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
use waypost_core::health_server;
use waypost_core::ids::Ids;
use waypost_core::organization::limiter::TenantLimiter;
use waypost_core::provider::ProviderHosts;
use waypost_core::provider::transport::{Transport, TransportSettings};
use waypost_core::provider_account::Accounts;
use waypost_core::redis::Redis;
use waypost_core::routing::snapshot_cache::SnapshotCache;
use waypost_core::startup;
use waypost_core::suppression::Suppressions;
use waypost_core::suppression::bloom_filter::BloomFilters;
use waypost_core::tracking::link::Tracker;
use waypost_core::unsubscribe::link::Links;

use fallback_poller::FallbackPoller;
use send::job::{SendMessage, Sending};
use store::SendStore;
use webhook::Webhooks;
use worker_lease::WorkerLease;

/// Connections for everything, and those of the ledger.
fn pools(settings: &Settings) -> Result<(PgPool, PgPool), Fault> {
    let connections = settings.database_connections;
    let of_ledger = store::CONNECTIONS.min(connections / 2).max(1);
    let others = connections.saturating_sub(of_ledger).max(1);
    Ok((
        db::routine_pool(&settings.database_url, others)?,
        db::routine_pool(&settings.database_url, of_ledger)?,
    ))
}

/// Works until `shutdown`; calls in flight then have the configured time to end.
///
/// # Errors
/// A fault when the configuration cannot be used.
pub async fn run(
    settings: &Settings,
    clock: Clock,
    shutdown: CancellationToken,
) -> Result<(), Fault> {
    let ids = Ids::new(clock.clone());
    let (pool, ledger_pool) = pools(settings)?;
    // It says when Postgres goes and when it is back, and keeps the clock right.
    let url = settings.database_url.clone();
    tokio::spawn(Liveness::new().run(url, clock.clone(), shutdown.clone()));
    let redis = Redis::new(&settings.redis_url, &settings.redis_prefix)?;
    startup::check(settings, &pool).await?;
    if let Some(address) = settings.health_listen {
        let sealer = settings.sealer.clone();
        health_server::serve(
            address,
            pool.clone(),
            redis.clone(),
            sealer,
            shutdown.clone(),
        )
        .await?;
    }
    let Some(tenures) =
        WorkerLease::begin(pool.clone(), ids.clone(), &settings.sending, &shutdown).await
    else {
        return Ok(());
    };
    db::time::correct_first(&clock, &pool, &shutdown).await;
    let webhooks = Webhooks::start(settings, clock.clone(), tenures.clone(), shutdown.clone())?;
    let queue = send_queue(&redis, clock.clone());
    let snapshots = SnapshotCache::new(pool.clone());
    tokio::spawn(snapshots.clone().listen(shutdown.clone()));
    let accounts = accounts(settings, snapshots, pool.clone(), &clock, &ids)?;
    let suppressions = Suppressions {
        pool: pool.clone(),
        filters: BloomFilters::start(pool.clone(), redis.clone(), ids.clone()),
        clock: clock.clone(),
        ids: ids.clone(),
    };
    let sending = Arc::new(Sending {
        ledger: SendStore::start(
            ledger_pool,
            queue.clone(),
            tenures.clone(),
            clock.clone(),
            settings.sending.clone(),
            suppressions,
        ),
        gates: gates(settings, redis, &accounts, &shutdown),
        accounts,
        tenures: tenures.clone(),
        tracker: Tracker::new(settings),
        links: Links::new(settings),
        ids,
        clock,
        settings: settings.sending.clone(),
        shutdown: shutdown.clone(),
    });
    let handler = SendMessage::new(Arc::clone(&sending));
    let puller = FallbackPoller::new(&sending, queue.clone(), handler.clone());
    let pulling = tokio::spawn(puller.run(shutdown.clone()));
    info!(worker = tenures.name(), "Working");
    runtime::run(&queue, &tenures, &settings.sending, &shutdown, handler).await;
    if let Err(panic) = pulling.await {
        error!(cause = %panic, "The puller panicked");
    }
    webhooks.ended(settings.sending.shutdown).await;
    shutdown::leave(&sending, &queue).await;
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
            // A job may have calls beyond its first.
            idle_connections_max: settings.sending.concurrency.max(8) * 2,
            smtp: settings.smtp.clone(),
            ..TransportSettings::default()
        })?,
        shares: TenantLimiter::of_calls(),
        endpoints: ProviderHosts::from(settings.provider_base_urls.clone()),
        public_url: settings.links.public_url.clone(),
        snapshots,
        clock: clock.clone(),
        ids: ids.clone(),
    })
}

/// The gates of the accounts, whose limits all workers share.
fn gates(
    settings: &Settings,
    redis: Redis,
    accounts: &Accounts,
    shutdown: &CancellationToken,
) -> AccountLimiter {
    let (clock, ids) = (accounts.clock.clone(), accounts.ids.clone());
    let gates = AccountLimiter::start(redis, &settings.sending, clock, ids, shutdown.clone());
    gates.count_workers(accounts.pool.clone());
    gates
}
