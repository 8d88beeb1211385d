//! Waypost's scheduler: the tasks that run by the clock. Any number of replicas
//! may run; one of them leads, by an advisory lock in Postgres, and the others wait
//! to take over. Every task is idempotent, so that two leaders for a moment do no
//! harm.

mod leader;
mod tasks;

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::info;
use waypost_core::clock::Clock;
use waypost_core::config::Settings;
use waypost_core::db::{self, PgPool};
use waypost_core::fault::Fault;
use waypost_core::health;
use waypost_core::ids::Ids;
use waypost_core::provider::Endpoints;
use waypost_core::provider::account::Accounts;
use waypost_core::provider::snapshots::Snapshots;
use waypost_core::provider::transport::{Transport, TransportSettings};
use waypost_core::queue::jobs::send_queue;
use waypost_core::redis::Redis;

use leader::Leadership;
use tasks::{Rechecks, Task, Tasks};

/// How long one run of a task may take.
const TASK_TIMEOUT: Duration = Duration::from_secs(120);
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
    let redis = Redis::new(&settings.redis_url, &settings.redis_prefix)?;
    if let Some(address) = settings.health_listen {
        health::serve(address, pool.clone(), redis.clone(), shutdown.clone()).await?;
    }
    let tick = settings.sending.scheduler_tick;
    let rechecks = Rechecks::new(accounts(settings, &clock, &pool)?);
    let tasks = Tasks {
        queue: send_queue(&redis, clock.clone()),
        ids: Ids::new(clock.clone()),
        clock,
        settings: settings.sending.clone(),
        pool: pool.clone(),
        rechecks,
    };
    let mut leadership = Leadership::new(pool);
    let mut schedule = [
        (Task::Partitions, PARTITIONS_EVERY),
        (Task::Reap, tick),
        (Task::ReapForgotten, FORGOTTEN_EVERY),
        (Task::Relay, tick),
        (Task::RelayWebhooks, tick),
        (Task::SweepWebhooks, SWEEP_WEBHOOKS_EVERY),
        (Task::ForgetKeys, FORGET_KEYS_EVERY),
        (Task::Fold, tick),
        (Task::Domains, tick),
    ]
    .map(|(task, every)| Scheduled::new(task, every));
    let mut ticks = interval(tick);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    info!("Scheduling");
    while shutdown.run_until_cancelled(ticks.tick()).await.is_some() {
        if !leadership.hold().await {
            continue;
        }
        for scheduled in &mut schedule {
            scheduled.run_if_due(&tasks).await;
        }
    }
    leadership.give_up().await;
    info!("Stopped");
    Ok(())
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
        endpoints: Endpoints::from(settings.provider_base_urls.clone()),
        public_url: settings.links.public_url.clone(),
        snapshots: Snapshots::new(pool.clone()),
        clock: clock.clone(),
        ids: Ids::new(clock.clone()),
    })
}

/// A task and when it runs next. Its rhythm is the process's own time, whatever
/// the clock says.
struct Scheduled {
    task: Task,
    every: Duration,
    due_at: tokio::time::Instant,
    failing: bool,
}

impl Scheduled {
    fn new(task: Task, every: Duration) -> Self {
        Self {
            task,
            every,
            due_at: tokio::time::Instant::now(),
            failing: false,
        }
    }

    async fn run_if_due(&mut self, tasks: &Tasks) {
        let now = tokio::time::Instant::now();
        if now < self.due_at {
            return;
        }
        let run = tokio::time::timeout(TASK_TIMEOUT, tasks.run(self.task));
        let result = run
            .await
            .unwrap_or_else(|elapsed| Err(Fault::unavailable("end a task in time", elapsed)));
        match (&result, self.failing) {
            (Err(fault), false) => {
                tracing::warn!(
                    task = self.task.name(),
                    cause = fault.chain(),
                    "A task fails and will be tried again"
                );
            }
            (Ok(()), true) => info!(task = self.task.name(), "A task works again"),
            (Err(_), true) | (Ok(()), false) => {}
        }
        self.failing = result.is_err();
        // A task that failed is tried at the next tick.
        if result.is_ok() {
            self.due_at = now + self.every;
        }
    }
}
