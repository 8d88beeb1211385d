//! What goes wrong, and when: a schedule from the seed, in which every kind comes at
//! least once, and what each kind does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use waypost_simulator::{CallbackSettings, Fault, FaultCalls, FaultKind, Provider, Simulator};

use crate::fleet::{Fleet, Role};
use crate::hooks::{Hooks, Manner};
use crate::random::Random;
use crate::say::{elapsed, say};
use crate::servers::Servers;

/// The pause between two faults, on average. Most last longer than that, so several are
/// at work at any time.
const PAUSE: Duration = Duration::from_millis(3_500);
/// How long Redis is away where there is time for it, and where there is not.
const REDIS_AWAY: Duration = Duration::from_secs(30);
const REDIS_AWAY_SHORT: Duration = Duration::from_secs(10);
/// In a load shorter than this there is not.
const SHORT: Duration = Duration::from_secs(240);
/// No fault begins after this part of the load.
const LAST_AT: f64 = 0.92;
/// A webhook that failed twice waits for five minutes: receivers fail early enough for
/// that to pass, and one of them at a time.
const HOOKS_LAST_AT: f64 = 0.6;

/// How long every provider takes to answer, so that there are always calls under way
/// for a death to interrupt.
const LATENCY_MS: u64 = 80;
/// How long Redis refuses to write.
const REDIS_FULL: (f64, f64) = (6.0, 12.0);
/// Redis is emptied so many times in a row: whenever there is a backlog in it.
const FLUSHES: usize = 5;
const FLUSH_EVERY: Duration = Duration::from_millis(700);

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
    HooksFail,
    HooksHang,
    HooksGone,
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
    Kind::HooksFail,
    Kind::HooksHang,
    Kind::HooksGone,
];

impl Kind {
    fn is_of_hooks(self) -> bool {
        matches!(self, Self::HooksFail | Self::HooksHang | Self::HooksGone)
    }
}

/// A fault and when it begins.
#[derive(Debug)]
struct Scheduled {
    at: Duration,
    kind: Kind,
    random: Random,
}

/// What faults are done to.
pub(crate) struct Stage {
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) servers: Servers,
    pub(crate) simulator: Simulator,
    pub(crate) hooks: Vec<Arc<Hooks>>,
    /// How often a receiver was spoilt: they take turns.
    pub(crate) spoilt: AtomicUsize,
}

/// What goes wrong in a run.
pub(crate) struct Faults {
    stage: Arc<Stage>,
    schedule: Vec<Scheduled>,
    is_short: bool,
}

impl Faults {
    pub(crate) fn new(stage: Arc<Stage>, mut random: Random, load: Duration) -> Self {
        let count = (load.as_secs_f64() * LAST_AT / PAUSE.as_secs_f64()) as usize;
        let mut kinds = KINDS.to_vec();
        while kinds.len() < count {
            let kind = random.pick(&KINDS);
            let times = kinds.iter().filter(|known| **known == kind).count();
            // Redis is away for long, and a receiver that fails again and again is left
            // alone for minutes.
            if !(kind == Kind::StopRedis || kind.is_of_hooks()) || times < 2 {
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
        bring_hooks_forward(&mut schedule, load);
        Self {
            stage,
            schedule,
            is_short: load < SHORT,
        }
    }

    /// Makes all of it happen, and waits until the last is over.
    pub(crate) async fn run(self) {
        let (begun, is_short) = (Instant::now(), self.is_short);
        self.stage
            .simulator
            .set_fault(Fault::slow_sends(LATENCY_MS));
        let mut under_way = JoinSet::new();
        for one in self.schedule {
            tokio::time::sleep_until(begun + one.at).await;
            let stage = Arc::clone(&self.stage);
            under_way.spawn(async move { stage.suffer(one.kind, one.random, is_short).await });
            while let Some(ended) = under_way.try_join_next() {
                ended.expect("a fault can be made to happen");
            }
        }
        while let Some(ended) = under_way.join_next().await {
            ended.expect("a fault can be made to happen");
        }
        self.stage.simulator.clear_faults();
        self.stage.simulator.set_callbacks(calm());
        say("every fault is over");
    }
}

/// Faults of receivers share the first part of the load, evenly, so that none begins
/// while what failed by the one before is still on its way.
fn bring_hooks_forward(schedule: &mut [Scheduled], load: Duration) {
    let mut of_hooks: Vec<&mut Scheduled> = schedule
        .iter_mut()
        .filter(|one| one.kind.is_of_hooks())
        .collect();
    let step = load.mul_f64(HOOKS_LAST_AT) / of_hooks.len() as u32;
    for (nth, one) in (0_u32..).zip(&mut of_hooks) {
        one.at = step * nth + step / 4;
    }
    schedule.sort_by_key(|one| one.at);
}

/// How providers call back when nothing is wrong. Their pauses are a tenth of their own:
/// Amazon gives an event up after three, which have to outlast a restart of PostgreSQL.
pub(crate) fn calm() -> CallbackSettings {
    CallbackSettings {
        retry_factor: 0.1,
        ..CallbackSettings::default()
    }
}

impl Stage {
    async fn suffer(&self, kind: Kind, mut random: Random, is_short: bool) {
        let dead = tokio::time::sleep(random.seconds(0.2, 3.0));
        match kind {
            Kind::KillApi => self.kill(Role::Api, &mut random, dead).await,
            Kind::StopApi => self.fleet.stop_api(|count| random.below(count)).await,
            Kind::KillWorker => self.kill(Role::Worker, &mut random, dead).await,
            Kind::KillScheduler => self.kill(Role::Scheduler, &mut random, dead).await,
            Kind::KillLeader => self.fleet.kill_leader(dead).await,
            Kind::FlushRedis => self.flush_redis().await,
            Kind::StopRedis => self.stop_redis(is_short).await,
            Kind::FillRedis => self.fill_redis(random).await,
            Kind::CrashPostgres => self.crash_postgres().await,
            Kind::Latency => {
                let latency_ms = random.between(300.0, 2_500.0) as u64;
                self.disturb(FaultKind::Latency, latency_ms, (0.3, 1.0), random)
                    .await;
            }
            Kind::Resets => self.disturb(FaultKind::Reset, 0, (0.05, 0.4), random).await,
            Kind::Silence => {
                self.disturb(FaultKind::Timeout, 0, (0.05, 0.4), random)
                    .await
            }
            Kind::Gateway => {
                self.disturb(FaultKind::Gateway, 0, (0.05, 0.4), random)
                    .await
            }
            Kind::Throttling => {
                // From a few of the calls to all of them.
                self.disturb(FaultKind::Throttle, 0, (0.01, 1.0), random)
                    .await
            }
            Kind::Errors => self.disturb(FaultKind::Error, 0, (0.5, 1.0), random).await,
            Kind::Callbacks => self.muddle_callbacks(random).await,
            Kind::HooksFail => self.spoil(Manner::Fails, random).await,
            Kind::HooksHang => self.spoil(Manner::Hangs, random).await,
            Kind::HooksGone => self.spoil(Manner::IsGone, random).await,
        }
    }

    async fn kill(&self, role: Role, random: &mut Random, dead: impl Future<Output = ()>) {
        let choose = |count| random.below(count);
        self.fleet.kill(role, choose, dead).await;
    }

    async fn flush_redis(&self) {
        say(format!("Redis FLUSHALL, {FLUSHES} times"));
        for _ in 0..FLUSHES {
            self.servers.flush_redis().await;
            tokio::time::sleep(FLUSH_EVERY).await;
        }
    }

    async fn stop_redis(&self, is_short: bool) {
        let away = if is_short {
            REDIS_AWAY_SHORT
        } else {
            REDIS_AWAY
        };
        say(format!("Redis stops for {} s", away.as_secs()));
        self.servers.stop_redis(tokio::time::sleep(away)).await;
        say("Redis is back, empty");
    }

    /// Redis has no memory left: it answers what is read and refuses what is written.
    async fn fill_redis(&self, mut random: Random) {
        let (low, high) = REDIS_FULL;
        let lasts = random.seconds(low, high);
        say(format!("Redis is full for {:.1} s", lasts.as_secs_f64()));
        self.servers.fill_redis(tokio::time::sleep(lasts)).await;
        say("Redis takes writes again");
    }

    async fn crash_postgres(&self) {
        say("PostgreSQL stops at once (-m immediate)");
        let since = elapsed();
        self.servers.crash_postgres().await;
        let lasted = (elapsed() - since).as_secs_f64();
        say(format!("PostgreSQL is back after {lasted:.1} s"));
    }

    /// Disturbs a share of the sends, to one provider or to all.
    async fn disturb(
        &self,
        kind: FaultKind,
        latency_ms: u64,
        (low, high): (f64, f64),
        mut random: Random,
    ) {
        let one = random.pick(&Provider::ALL);
        // The latency of all of them together is the everyday one.
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
        say(format!(
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

    async fn muddle_callbacks(&self, mut random: Random) {
        let (duplicate_rate, lasts) = (random.between(0.2, 0.8), random.seconds(6.0, 12.0));
        say(format!(
            "callbacks: shuffled, {:.0} % of them twice, {:.1} s",
            duplicate_rate * 100.0,
            lasts.as_secs_f64(),
        ));
        self.simulator.set_callbacks(CallbackSettings {
            duplicate_rate,
            shuffle: true,
            batch_events_max: 3,
            ..calm()
        });
        tokio::time::sleep(lasts).await;
        self.simulator.set_callbacks(calm());
    }

    async fn spoil(&self, manner: Manner, mut random: Random) {
        let nth = self.spoilt.fetch_add(1, Ordering::Relaxed) % self.hooks.len();
        let lasts = random.seconds(3.0, 4.5);
        say(format!(
            "the webhook receiver of organization {nth}: {manner:?} for {:.1} s",
            lasts.as_secs_f64(),
        ));
        self.hooks[nth].behave(manner);
        tokio::time::sleep(lasts).await;
        self.hooks[nth].behave(Manner::Takes);
    }
}
