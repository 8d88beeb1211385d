//! The faults of a run: a schedule from the seed, in which every kind occurs at least
//! once, and the effect of each kind.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use waypost_simulator::{CallbackSettings, Fault, FaultCalls, FaultKind, Provider, Simulator};

use crate::fleet::{Fleet, Role};
use crate::output::{elapsed, progress};
use crate::random::Random;
use crate::receiver::{Behavior, Receiver};
use crate::servers::Servers;

/// Average time between two faults. Most last longer than that, so several are active at
/// any time.
const INTERVAL: Duration = Duration::from_millis(3_500);
/// How long Redis is stopped, in a long run and in a short one.
const REDIS_STOPPED: Duration = Duration::from_secs(30);
const REDIS_STOPPED_SHORT: Duration = Duration::from_secs(10);
/// A load shorter than this makes a short run.
const SHORT_LOAD: Duration = Duration::from_secs(240);
/// No fault begins after this part of the load.
const LAST_AT: f64 = 0.92;
/// A webhook delivery that failed twice waits for five minutes. So receivers fail early
/// enough for that wait to pass, and one receiver at a time.
const RECEIVERS_LAST_AT: f64 = 0.6;

/// Response time of every provider, so that a killed worker always has calls in progress.
pub(crate) const LATENCY_MS: u64 = 80;
/// How long Redis refuses writes: minimum and maximum, in seconds.
const REDIS_FULL: (f64, f64) = (6.0, 12.0);
/// FLUSHALL commands in a row, so that some of them find a backlog in Redis.
const FLUSHES: usize = 5;
const FLUSH_INTERVAL: Duration = Duration::from_millis(700);

/// Kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    KillApi,
    StopApi,
    KillWorker,
    KillScheduler,
    KillLeader,
    FlushRedis,
    StopRedis,
    FillRedis,
    CrashPostgres,
    Latency,
    Resets,
    Silence,
    Gateway,
    Throttling,
    Errors,
    Callbacks,
    ReceiverFails,
    ReceiverHangs,
    ReceiverOffline,
}

const KINDS: [Kind; 19] = [
    Kind::KillApi,
    Kind::StopApi,
    Kind::KillWorker,
    Kind::KillScheduler,
    Kind::KillLeader,
    Kind::FlushRedis,
    Kind::StopRedis,
    Kind::FillRedis,
    Kind::CrashPostgres,
    Kind::Latency,
    Kind::Resets,
    Kind::Silence,
    Kind::Gateway,
    Kind::Throttling,
    Kind::Errors,
    Kind::Callbacks,
    Kind::ReceiverFails,
    Kind::ReceiverHangs,
    Kind::ReceiverOffline,
];

impl Kind {
    fn is_of_receivers(self) -> bool {
        matches!(
            self,
            Self::ReceiverFails | Self::ReceiverHangs | Self::ReceiverOffline
        )
    }
}

/// A fault and its start.
#[derive(Debug)]
struct Scheduled {
    at: Duration,
    kind: Kind,
    random: Random,
}

/// The targets of the faults.
pub(crate) struct Targets {
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) servers: Servers,
    pub(crate) simulator: Simulator,
    pub(crate) receivers: Vec<Arc<Receiver>>,
    /// How many receivers were broken so far; the next in the row is broken next.
    pub(crate) receivers_broken: AtomicUsize,
}

/// The faults of a run.
pub(crate) struct Faults {
    targets: Arc<Targets>,
    schedule: Vec<Scheduled>,
    is_short: bool,
}

impl Faults {
    pub(crate) fn new(targets: Arc<Targets>, mut random: Random, load: Duration) -> Self {
        let count = (load.as_secs_f64() * LAST_AT / INTERVAL.as_secs_f64()) as usize;
        let mut kinds = KINDS.to_vec();
        while kinds.len() < count {
            let kind = random.pick(&KINDS);
            let times = kinds.iter().filter(|scheduled| **scheduled == kind).count();
            // Redis stays away long, and the workers stop calling a receiver that fails
            // repeatedly for minutes.
            if !(kind == Kind::StopRedis || kind.is_of_receivers()) || times < 2 {
                kinds.push(kind);
            }
        }
        random.shuffle(&mut kinds);
        let step = load.mul_f64(LAST_AT) / kinds.len() as u32;
        let mut schedule: Vec<Scheduled> = (0_u32..)
            .zip(kinds)
            .map(|(nth, kind)| Scheduled {
                at: step * nth + step.mul_f64(random.fraction()),
                kind,
                random: random.fork(),
            })
            .collect();
        spread_receiver_faults(&mut schedule, load);
        Self {
            targets,
            schedule,
            is_short: load < SHORT_LOAD,
        }
    }

    /// Injects all faults, and waits until the last one is over.
    pub(crate) async fn run(self) {
        let (begun, is_short) = (Instant::now(), self.is_short);
        self.targets
            .simulator
            .set_fault(Fault::slow_sends(LATENCY_MS));
        let mut under_way = JoinSet::new();
        for one in self.schedule {
            tokio::time::sleep_until(begun + one.at).await;
            let targets = Arc::clone(&self.targets);
            under_way.spawn(async move { targets.inject(one.kind, one.random, is_short).await });
            while let Some(ended) = under_way.try_join_next() {
                ended.expect("a fault can be injected");
            }
        }
        while let Some(ended) = under_way.join_next().await {
            ended.expect("a fault can be injected");
        }
        self.targets.simulator.clear_faults();
        self.targets.simulator.set_callbacks(default_callbacks());
        progress("every fault is over");
    }
}

/// Spreads the faults of receivers evenly over the first part of the load, so that each
/// starts after the retries of the one before have ended.
fn spread_receiver_faults(schedule: &mut [Scheduled], load: Duration) {
    let mut of_receivers: Vec<&mut Scheduled> = schedule
        .iter_mut()
        .filter(|one| one.kind.is_of_receivers())
        .collect();
    let step = load.mul_f64(RECEIVERS_LAST_AT) / of_receivers.len() as u32;
    for (nth, one) in (0_u32..).zip(&mut of_receivers) {
        one.at = step * nth + step / 4;
    }
    schedule.sort_by_key(|one| one.at);
}

/// The callbacks of a provider without faults. Their pauses between retries are a tenth
/// of the real ones: SNS gives up after three retries, which must outlast a restart of
/// PostgreSQL.
pub(crate) fn default_callbacks() -> CallbackSettings {
    CallbackSettings {
        retry_factor: 0.1,
        ..CallbackSettings::default()
    }
}

impl Targets {
    async fn inject(&self, kind: Kind, mut random: Random, is_short: bool) {
        let downtime = tokio::time::sleep(random.seconds(0.2, 3.0));
        match kind {
            Kind::KillApi => self.kill(Role::Api, &mut random, downtime).await,
            Kind::StopApi => self.fleet.stop_api(|count| random.below(count)).await,
            Kind::KillWorker => self.kill(Role::Worker, &mut random, downtime).await,
            Kind::KillScheduler => self.kill(Role::Scheduler, &mut random, downtime).await,
            Kind::KillLeader => self.fleet.kill_leader(downtime).await,
            Kind::FlushRedis => self.flush_redis().await,
            Kind::StopRedis => self.stop_redis(is_short).await,
            Kind::FillRedis => self.fill_redis(random).await,
            Kind::CrashPostgres => self.crash_postgres().await,
            Kind::Latency => {
                let latency_ms = random.between(300.0, 2_500.0) as u64;
                self.fault_sends(FaultKind::Latency, latency_ms, (0.3, 1.0), random)
                    .await;
            }
            Kind::Resets => {
                self.fault_sends(FaultKind::Reset, 0, (0.05, 0.4), random)
                    .await
            }
            Kind::Silence => {
                self.fault_sends(FaultKind::Timeout, 0, (0.05, 0.4), random)
                    .await
            }
            Kind::Gateway => {
                self.fault_sends(FaultKind::Gateway, 0, (0.05, 0.4), random)
                    .await
            }
            Kind::Throttling => {
                // The share reaches from a few of the calls to all of them.
                self.fault_sends(FaultKind::Throttle, 0, (0.01, 1.0), random)
                    .await
            }
            Kind::Errors => {
                self.fault_sends(FaultKind::Error, 0, (0.5, 1.0), random)
                    .await
            }
            Kind::Callbacks => self.shuffle_callbacks(random).await,
            Kind::ReceiverFails => self.break_receiver(Behavior::Fails, random).await,
            Kind::ReceiverHangs => self.break_receiver(Behavior::Hangs, random).await,
            Kind::ReceiverOffline => self.break_receiver(Behavior::Offline, random).await,
        }
    }

    async fn kill(&self, role: Role, random: &mut Random, downtime: impl Future<Output = ()>) {
        let choose = |count| random.below(count);
        self.fleet.kill(role, choose, downtime).await;
    }

    async fn flush_redis(&self) {
        progress(format!("Redis FLUSHALL, {FLUSHES} times"));
        for _ in 0..FLUSHES {
            self.servers.flush_redis().await;
            tokio::time::sleep(FLUSH_INTERVAL).await;
        }
    }

    async fn stop_redis(&self, is_short: bool) {
        let downtime = if is_short {
            REDIS_STOPPED_SHORT
        } else {
            REDIS_STOPPED
        };
        progress(format!("Redis stops for {} s", downtime.as_secs()));
        self.servers.stop_redis(tokio::time::sleep(downtime)).await;
        progress("Redis is back, empty");
    }

    /// Redis runs out of memory: it serves reads and refuses writes.
    async fn fill_redis(&self, mut random: Random) {
        let (low, high) = REDIS_FULL;
        let lasts = random.seconds(low, high);
        progress(format!("Redis is full for {:.1} s", lasts.as_secs_f64()));
        self.servers.fill_redis(tokio::time::sleep(lasts)).await;
        progress("Redis accepts writes again");
    }

    async fn crash_postgres(&self) {
        progress("PostgreSQL stops at once (-m immediate)");
        let since = elapsed();
        self.servers.crash_postgres().await;
        let lasted = (elapsed() - since).as_secs_f64();
        progress(format!("PostgreSQL is back after {lasted:.1} s"));
    }

    /// Injects a fault into a share of the sends, to one provider or to all.
    async fn fault_sends(
        &self,
        kind: FaultKind,
        latency_ms: u64,
        (low, high): (f64, f64),
        mut random: Random,
    ) {
        let one = random.pick(&Provider::ALL);
        // The latency of all providers is the permanent one, see `run`.
        let is_one = kind == FaultKind::Latency || random.chance(0.7);
        let provider = is_one.then_some(one);
        let (rate, lasts) = (random.between(low, high), random.seconds(3.0, 7.0));
        let fault = Fault {
            provider,
            kind,
            rate,
            latency_ms,
            calls: FaultCalls::Send,
        };
        progress(format!(
            "{}: {kind:?} for {:.0} % of the sends, {:.1} s{}",
            provider.map_or("all providers", Provider::name),
            rate * 100.0,
            lasts.as_secs_f64(),
            if latency_ms > 0 {
                format!(", {latency_ms} ms each")
            } else {
                String::new()
            },
        ));
        self.simulator.set_fault(fault);
        tokio::time::sleep(lasts).await;
        // A rate of 0 removes it.
        self.simulator.set_fault(Fault { rate: 0.0, ..fault });
    }

    async fn shuffle_callbacks(&self, mut random: Random) {
        let (duplicate_rate, lasts) = (random.between(0.2, 0.8), random.seconds(6.0, 12.0));
        progress(format!(
            "callbacks: shuffled, {:.0} % of them twice, {:.1} s",
            duplicate_rate * 100.0,
            lasts.as_secs_f64(),
        ));
        self.simulator.set_callbacks(CallbackSettings {
            duplicate_rate,
            shuffle: true,
            batch_events_max: 3,
            ..default_callbacks()
        });
        tokio::time::sleep(lasts).await;
        self.simulator.set_callbacks(default_callbacks());
    }

    async fn break_receiver(&self, behavior: Behavior, mut random: Random) {
        let nth = self.receivers_broken.fetch_add(1, Ordering::Relaxed) % self.receivers.len();
        let lasts = random.seconds(3.0, 4.5);
        progress(format!(
            "the webhook receiver of organization {nth}: {behavior:?} for {:.1} s",
            lasts.as_secs_f64(),
        ));
        self.receivers[nth].set_behavior(behavior);
        tokio::time::sleep(lasts).await;
        self.receivers[nth].set_behavior(Behavior::Accepts);
    }
}
