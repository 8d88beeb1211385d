//! Waypost's scheduler: the periodic tasks. Any number of replicas may run. One of them is the
//! leader, by an advisory lock in Postgres, and the others wait to take over. All tasks are
//! idempotent, so two leaders for a moment are harmless. Each task runs at an interval of its
//! own (`ticker`), and its latest run is stored for operators (`task_log`).

mod leader;
pub mod program;
mod task_log;
mod tasks;
mod ticker;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::info;
use waypost_core::account_limiter::circuits::CircuitReader;
use waypost_core::clock::Clock;
use waypost_core::config::Settings;
use waypost_core::db::lifo_pool::LifoPool;
use waypost_core::db::liveness::Liveness;
use waypost_core::db::{self, PgPool};
use waypost_core::delivery::job::send_queue;
use waypost_core::dns::DnsResolver;
use waypost_core::fault::Fault;
use waypost_core::health_server::{self, Readiness};
use waypost_core::ids::{Ids, WorkerId};
use waypost_core::monitoring::Sampler;
use waypost_core::organization::limiter::TenantLimiter;
use waypost_core::provider::ProviderHosts;
use waypost_core::provider::transport::{Transport, TransportSettings};
use waypost_core::provider_account::Accounts;
use waypost_core::provider_event::reconcile::{LookupSchedule, LookupThrottle, Reconciler};
use waypost_core::provider_event::record::EventRecorder;
use waypost_core::provider_event::test_reports::TestReporter;
use waypost_core::redis::Redis;
use waypost_core::retention::Retention;
use waypost_core::routing::mailbox_provider::resolver::MailboxProviderResolver;
use waypost_core::routing::snapshot_cache::SnapshotCache;
use waypost_core::sender_domain::SenderDomains;
use waypost_core::startup;
use waypost_core::suppression::Suppressions;
use waypost_core::suppression::bloom_filter::BloomFilters;
use waypost_core::telemetry::instruments;
use waypost_core::ticks::ticks;
use waypost_core::tracking::link::OwnLinks;

use leader::Leadership;
use task_log::TaskLog;
use tasks::{DnsChecks, DomainChecks, Lookups, MailboxProviderLookups, Rollup, Task, Tasks};
use ticker::Ticker;

/// Longest interval at which the leader lock is checked. Postgres takes the lock from a leader
/// that has not checked it for 10 s.
const LEADER_CHECK_MAX: Duration = Duration::from_secs(2);
/// Longest interval at which scheduled mail that is due is looked for.
const PUSH_SCHEDULED_EVERY_MAX: Duration = Duration::from_millis(250);
/// Longest interval at which the events of tests are recorded.
const REPORT_TESTS_EVERY_MAX: Duration = Duration::from_millis(250);
const REAP_UNREGISTERED_EVERY: Duration = Duration::from_secs(60);
const STEP_RAMPS_EVERY: Duration = Duration::from_secs(60);
const RATE_ACCOUNTS_EVERY: Duration = Duration::from_secs(60);
const DELETE_KEYS_EVERY: Duration = Duration::from_secs(10);
const DELETE_SESSIONS_EVERY: Duration = Duration::from_secs(600);
const DELETE_WEBHOOKS_EVERY: Duration = Duration::from_secs(5);
const CREATE_PARTITIONS_EVERY: Duration = Duration::from_secs(3600);
const DROP_MONTHS_EVERY: Duration = Duration::from_secs(600);
const DELETE_EXPIRED_EVERY: Duration = Duration::from_secs(60);
/// Connections of [`Tasks::polls`]: one for each task that uses them. They wait a moment for each
/// other while many tests are reported.
const POLL_CONNECTIONS: u32 = 5;
/// How long a provider may take to answer a check of a domain.
const DOMAIN_CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the tasks while this process is the leader, until `shutdown`.
///
/// # Errors
/// A fault if the configuration cannot be used.
pub async fn run(
    settings: &Settings,
    clock: Clock,
    shutdown: CancellationToken,
) -> Result<(), Fault> {
    let (pool, polls) = pools(settings)?;
    // Logs outages of Postgres and keeps the clock right.
    let (url, liveness) = (settings.database_url.clone(), Liveness::new());
    tokio::spawn(liveness.clone().run(url, clock.clone(), shutdown.clone()));
    let redis = Redis::new(&settings.redis_url, &settings.redis_prefix)?;
    startup::check(settings, &pool).await?;
    let readiness = Readiness::new(pool.clone(), redis.clone(), settings.sealer.clone());
    let sampler = sampler(settings, &pool, &redis, &clock);
    let address = settings.monitoring.health_listen;
    health_server::serve(address, readiness, Some(sampler), shutdown.clone()).await?;
    // No task runs under a schema that is older than this program.
    shutdown.run_until_cancelled(liveness.present()).await;
    db::time::correct_first(&clock, &pool, &shutdown).await;
    let tick = settings.sending.scheduler_tick;
    let accounts = accounts(settings, &clock, &pool)?;
    let reconciler = reconciler(settings, &accounts, &redis);
    let test_reporter = TestReporter {
        pool: polls.clone(),
        recorder: reconciler.recorder.clone(),
        clock: clock.clone(),
    };
    let lookups = Lookups::new(reconciler);
    let sender_domains = sender_domains(settings, &accounts);
    let mailbox_provider_lookups = MailboxProviderLookups::new(MailboxProviderResolver {
        pool: pool.clone(),
        resolver: sender_domains.resolver.clone(),
        clock: clock.clone(),
    });
    let dns_checks = DnsChecks::new(sender_domains);
    let domain_checks = DomainChecks::new(accounts);
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
        polls,
        domain_checks,
        dns_checks,
        mailbox_provider_lookups,
        lookups,
        test_reporter,
        metrics_rollup: Rollup::default(),
        messages_rollup: Rollup::default(),
        attempts_rollup: Rollup::default(),
    };
    let (leader_sender, is_leader) = watch::channel(false);
    let task_log = TaskLog::new(format!("scheduler-{}", tasks.ids.next::<WorkerId>()));
    start_tickers(Arc::new(tasks), tick, &task_log, &is_leader);
    let names = schedule(tick).map(|(task, _)| task);
    tokio::spawn(task_log.run(pool.clone(), names, is_leader));
    let mut leadership = Leadership::new(pool);
    let mut ticks = ticks(tick.min(LEADER_CHECK_MAX));
    info!("Started the scheduler");
    while shutdown.run_until_cancelled(ticks.tick()).await.is_some() {
        let is_leader = leadership.hold().await;
        instruments::leader(is_leader);
        leader_sender.send_if_modified(|known| std::mem::replace(known, is_leader) != is_leader);
    }
    leader_sender.send_replace(false);
    instruments::leader(false);
    leadership.release().await;
    info!("Stopped");
    Ok(())
}

/// The general pool, and that of the tasks that run every few seconds.
fn pools(settings: &Settings) -> Result<(PgPool, LifoPool), Fault> {
    let (of_polls, others) = db::split_connections(settings.database_connections, POLL_CONNECTIONS);
    let polls = db::pool(&settings.database_url, of_polls)?;
    Ok((
        db::pool(&settings.database_url, others)?,
        LifoPool::new(polls),
    ))
}

/// Reads the figures of the installation for the metrics.
fn sampler(settings: &Settings, pool: &PgPool, redis: &Redis, clock: &Clock) -> Sampler {
    Sampler::new(
        pool.clone(),
        CircuitReader::start(redis.clone(), clock.clone()),
        settings.sending.relay_grace,
        settings.monitoring.names_accounts,
    )
}

/// Starts the loop of each task. The loops begin in groups, one group after the other: all at once
/// they would take the processors from sending, and each alone would wake an idle process more
/// often.
fn start_tickers(
    tasks: Arc<Tasks>,
    tick: Duration,
    task_log: &TaskLog,
    is_leader: &watch::Receiver<bool>,
) {
    for (nth, (task, every)) in (0..).zip(schedule(tick)) {
        let ticker = Ticker {
            task,
            every,
            starts_after: tick.min(SPREAD_MAX) / GROUPS * (nth % GROUPS),
            retry_after: tick,
            tasks: Arc::clone(&tasks),
            task_log: task_log.clone(),
        };
        tokio::spawn(ticker.run(is_leader.clone()));
    }
}

/// The longest time over which the first runs of the tasks are spread.
const SPREAD_MAX: Duration = Duration::from_secs(1);
/// The groups of tasks that begin together.
const GROUPS: u32 = 4;
/// The number of tasks.
const TASKS: usize = 20;

/// The tasks and their intervals.
fn schedule(tick: Duration) -> [(Task, Duration); TASKS] {
    [
        (Task::CreatePartitions, CREATE_PARTITIONS_EVERY),
        (Task::Reap, tick),
        (Task::ReapUnregistered, REAP_UNREGISTERED_EVERY),
        (Task::Relay, tick),
        (Task::PushScheduled, tick.min(PUSH_SCHEDULED_EVERY_MAX)),
        (Task::ReportTests, tick.min(REPORT_TESTS_EVERY_MAX)),
        (Task::EndExpired, tick),
        (Task::RelayWebhooks, tick),
        (Task::DeleteWebhooks, DELETE_WEBHOOKS_EVERY),
        (Task::DeleteKeys, DELETE_KEYS_EVERY),
        (Task::DeleteSessions, DELETE_SESSIONS_EVERY),
        (Task::RollUp, tick),
        (Task::CheckDomains, tick),
        (Task::CheckDns, tick),
        (Task::StepRamps, STEP_RAMPS_EVERY),
        (Task::ResolveMailboxProviders, tick),
        (Task::RateAccounts, RATE_ACCOUNTS_EVERY),
        (Task::LookUp, tick),
        (Task::DropMonths, DROP_MONTHS_EVERY),
        (Task::DeleteExpired, DELETE_EXPIRED_EVERY),
    ]
}

/// The service that checks domains at their provider. No client waits for it, so its time-out
/// is shorter than that of sends.
fn accounts(settings: &Settings, clock: &Clock, pool: &PgPool) -> Result<Accounts, Fault> {
    Ok(Accounts {
        pool: pool.clone(),
        sealer: settings.sealer.clone(),
        transport: Transport::new(&TransportSettings {
            call_timeout: settings.sending.call_timeout.min(DOMAIN_CHECK_TIMEOUT),
            ..TransportSettings::default()
        })?,
        check_limiter: TenantLimiter::of_calls(),
        endpoints: ProviderHosts::from(settings.provider_base_urls.clone()),
        public_url: settings.links.public_url.clone(),
        snapshots: SnapshotCache::new(pool.clone(), settings.sealer.clone(), clock.clone()),
        clock: clock.clone(),
        ids: Ids::new(clock.clone()),
    })
}

/// The service that looks up sender domains in DNS.
fn sender_domains(settings: &Settings, accounts: &Accounts) -> SenderDomains {
    SenderDomains {
        pool: accounts.pool.clone(),
        resolver: DnsResolver::new(&settings.dns.servers),
        interval: settings.dns.check_interval,
        limiter: TenantLimiter::of_calls(),
        clock: accounts.clock.clone(),
        ids: accounts.ids.clone(),
    }
}

/// The service that looks up messages at the provider whose answer was lost.
fn reconciler(settings: &Settings, accounts: &Accounts, redis: &Redis) -> Reconciler {
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
        schedule: LookupSchedule::within(settings.sending.unknown_wait),
        throttle: LookupThrottle::default(),
    }
}
