//! Waypost's scheduler: the tasks that run by the clock. Any number of replicas
//! may run; one of them leads, by an advisory lock in Postgres, and the others wait
//! to take over. Every task is idempotent, so that two leaders for a moment do no
//! harm. Each keeps its own rhythm (`rhythm`), and what it did last is written down
//! (`board`).

mod leader;
mod task_log;
mod tasks;
mod ticker;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::info;
use waypost_core::clock::Clock;
use waypost_core::config::Settings;
use waypost_core::db::liveness::Liveness;
use waypost_core::db::{self, PgPool};
use waypost_core::delivery::job::send_queue;
use waypost_core::fault::Fault;
use waypost_core::health_server;
use waypost_core::ids::{Ids, WorkerId};
use waypost_core::organization::limiter::TenantLimiter;
use waypost_core::provider::ProviderHosts;
use waypost_core::provider::transport::{Transport, TransportSettings};
use waypost_core::provider_account::Accounts;
use waypost_core::provider_event::reconcile::{LookupSchedule, LookupThrottle, Reconciler};
use waypost_core::provider_event::record::EventRecorder;
use waypost_core::redis::Redis;
use waypost_core::retention::Retention;
use waypost_core::routing::snapshot_cache::SnapshotCache;
use waypost_core::startup;
use waypost_core::suppression::Suppressions;
use waypost_core::suppression::bloom_filter::BloomFilters;
use waypost_core::tracking::link::OwnLinks;

use leader::Leadership;
use task_log::TaskLog;
use tasks::{Folding, Rechecks, Searches, Task, Tasks};
use ticker::Ticker;

/// How often the lead is asked for at the least. Postgres takes a leader for dead that
/// has not asked for 10 s.
const LEAD_LOOK_MAX: Duration = Duration::from_secs(2);
/// How often leases are looked for that belong to nobody.
const FORGOTTEN_EVERY: Duration = Duration::from_secs(60);
/// How often idempotency keys are forgotten.
const FORGET_KEYS_EVERY: Duration = Duration::from_secs(10);
/// How often it is looked for what deleted webhook endpoints left behind.
const SWEEP_WEBHOOKS_EVERY: Duration = Duration::from_secs(5);
/// How long a provider may take to answer a question about a domain.
const RECHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// How often partitions are looked after.
const PARTITIONS_EVERY: Duration = Duration::from_secs(3600);
/// How often it is looked for months of which nobody keeps anything.
const DROP_MONTHS_EVERY: Duration = Duration::from_secs(600);
/// How often messages are deleted whose time is over.
const DELETE_EXPIRED_EVERY: Duration = Duration::from_secs(60);

/// Runs the tasks whenever this process leads, until `shutdown`.
///
/// # Errors
/// A fault when the configuration cannot be used.
pub async fn run(
    settings: &Settings,
    clock: Clock,
    shutdown: CancellationToken,
) -> Result<(), Fault> {
    let pool = db::pool(&settings.database_url, settings.database_connections)?;
    // It says when Postgres goes and when it is back, and keeps the clock right.
    let url = settings.database_url.clone();
    tokio::spawn(Liveness::new().keep(url, clock.clone(), shutdown.clone()));
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
    db::time::correct_first(&clock, &pool, &shutdown).await;
    let tick = settings.sending.scheduler_tick;
    let accounts = accounts(settings, &clock, &pool)?;
    let searches = Searches::new(look_ups(settings, &accounts, &redis));
    let rechecks = Rechecks::new(accounts);
    let tasks = Tasks {
        queue: send_queue(&redis, clock.clone()),
        ids: Ids::new(clock.clone()),
        retention: Retention {
            pool: pool.clone(),
            clock: clock.clone(),
            settings: settings.retention,
        },
        clock,
        settings: settings.sending.clone(),
        pool: pool.clone(),
        rechecks,
        searches,
        folding_of_metrics: Folding::default(),
        folding_of_messages: Folding::default(),
    };
    let (lead, leads) = watch::channel(false);
    let schedule = schedule(tick);
    let board = TaskLog::new(format!("scheduler-{}", tasks.ids.next::<WorkerId>()));
    let tasks = Arc::new(tasks);
    for (nth, (task, every)) in (0..).zip(schedule) {
        let rhythm = Ticker {
            task,
            every,
            // One after the other: all at the same moment, they would keep mail from the
            // processors for as long as they take together.
            starts_after: tick.min(SPREAD_MAX) * nth / TASKS,
            again_after: tick,
            tasks: Arc::clone(&tasks),
            board: board.clone(),
        };
        tokio::spawn(rhythm.keep(leads.clone()));
    }
    let names = schedule.map(|(task, _)| task);
    tokio::spawn(board.keep(pool.clone(), names, leads));
    let mut leadership = Leadership::new(pool);
    let mut looks = interval(tick.min(LEAD_LOOK_MAX));
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    info!("Scheduling");
    while shutdown.run_until_cancelled(looks.tick()).await.is_some() {
        // Nobody is told twice of the same.
        let leads = leadership.hold().await;
        lead.send_if_modified(|led| std::mem::replace(led, leads) != leads);
    }
    lead.send_replace(false);
    leadership.give_up().await;
    info!("Stopped");
    Ok(())
}

/// The time over which the tasks' beginnings are spread, at the most.
const SPREAD_MAX: Duration = Duration::from_secs(1);
/// How many tasks there are.
const TASKS: u32 = 12;

/// The tasks and their rhythms.
fn schedule(tick: Duration) -> [(Task, Duration); TASKS as usize] {
    [
        (Task::Partitions, PARTITIONS_EVERY),
        (Task::Reap, tick),
        (Task::ReapForgotten, FORGOTTEN_EVERY),
        (Task::Relay, tick),
        (Task::RelayWebhooks, tick),
        (Task::SweepWebhooks, SWEEP_WEBHOOKS_EVERY),
        (Task::ForgetKeys, FORGET_KEYS_EVERY),
        (Task::Fold, tick),
        (Task::Domains, tick),
        (Task::LookUps, tick),
        (Task::DropMonths, DROP_MONTHS_EVERY),
        (Task::DeleteExpired, DELETE_EXPIRED_EVERY),
    ]
}

/// What asks providers about domains. Nobody waits for it, so it is less patient
/// than sends are.
fn accounts(settings: &Settings, clock: &Clock, pool: &PgPool) -> Result<Accounts, Fault> {
    Ok(Accounts {
        pool: pool.clone(),
        sealer: settings.sealer.clone(),
        transport: Transport::new(&TransportSettings {
            call_timeout: settings.sending.call_timeout.min(RECHECK_TIMEOUT),
            ..TransportSettings::default()
        })?,
        shares: TenantLimiter::of_calls(),
        endpoints: ProviderHosts::from(settings.provider_base_urls.clone()),
        public_url: settings.links.public_url.clone(),
        snapshots: SnapshotCache::new(pool.clone()),
        clock: clock.clone(),
        ids: Ids::new(clock.clone()),
    })
}

/// What asks providers for mails whose answer was lost, and records what they find.
fn look_ups(settings: &Settings, accounts: &Accounts, redis: &Redis) -> Reconciler {
    let (pool, ids) = (&accounts.pool, &accounts.ids);
    let suppressions = Suppressions {
        pool: pool.clone(),
        filters: BloomFilters::start(pool.clone(), redis.clone(), ids.clone()),
        clock: accounts.clock.clone(),
        ids: ids.clone(),
    };
    Reconciler {
        recorder: EventRecorder::start(
            suppressions,
            settings.sealer.clone(),
            OwnLinks::new(settings),
        ),
        accounts: accounts.clone(),
        moments: LookupSchedule::within(settings.sending.unknown_wait),
        paces: LookupThrottle::default(),
    }
}
