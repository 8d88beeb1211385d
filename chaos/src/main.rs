//! `make chaos`: Waypost as it runs, several processes of each kind, under load, while
//! everything that may fail fails: processes are killed, Redis is emptied and away,
//! PostgreSQL crashes, providers are slow, refuse and cut connections after they took a
//! mail, gateways in front of them answer in their place, the clocks of some processes are
//! wrong, callbacks come twice and in any order, and the receivers of webhooks
//! fail. In the end it counts what the simulator and the receivers have, and not what
//! the service says of itself.
//!
//! The characters: `plan` says what is sent and `load` sends it, as honest clients;
//! `faults` says what goes wrong and does it, to the `fleet` of processes, to the
//! `servers`, to the simulator and to the `hooks`, who receive webhooks; `settle` waits;
//! `tally` counts, with what `records` explain; `report` prints.
//!
//! What is planned follows from the seed alone. How the processes fare does not: a seed
//! repeats the faults and the load, and not every interleaving.
//!
//! `scripts/chaos.sh` makes the servers and starts it. The simulator is a part of this
//! process, which nobody kills: it is the witness.

mod faults;
mod fleet;
mod gateway;
mod hooks;
mod load;
mod plan;
mod random;
mod records;
mod report;
mod say;
mod servers;
mod settle;
mod tally;
mod tenants;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use clap::Parser;
use reqwest::Client;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use waypost_core::clock::{Clock, Timestamp};
use waypost_simulator::{Config, Simulator};

use faults::{Faults, Stage};
use fleet::{Fleet, Role};
use hooks::Hooks;
use load::Load;
use plan::{ORGANIZATIONS, Plan, Policy};
use random::Random;
use say::say;
use servers::Servers;
use tally::{Books, Tally};
use tenants::{Founder, Tenant};

/// Processes of each kind.
const APIS: usize = 2;
const WORKERS: usize = 3;
const SCHEDULERS: usize = 2;
/// Messages that are sent in a second. Faults cost more than messages do, so a short
/// run has fewer of them.
const MESSAGES_PER_SECOND: usize = 120;
const LOAD_LEAST: Duration = Duration::from_secs(90);
/// Runs of fewer messages do not wait until a webhook that failed twice is due.
const HURRIES_BELOW: usize = 20_000;
/// How long all may take to become final after the load.
const SETTLED_WITHIN: Duration = Duration::from_secs(240);
const SETTLED_WITHIN_PATIENT: Duration = Duration::from_secs(900);
/// By how much the clocks of some processes are wrong, in libfaketime's words: of the
/// second API, the second and third worker and the second scheduler.
const WRONG_CLOCKS: [(Role, usize, &str); 4] = [
    (Role::Api, 1, "-7m"),
    (Role::Worker, 1, "+10m"),
    (Role::Worker, 2, "-3m"),
    (Role::Scheduler, 1, "+1h"),
];
/// Copies that the simulator keeps: each message may go to several, and again.
const COPIES_FOR_EACH_MESSAGE: usize = 8;
/// The first of the ports that are tried. Below those that systems give to outgoing
/// connections, so that nobody else takes a port while its process is dead.
const PORT_FIRST: u16 = 20_000;

/// Breaks everything around Waypost and counts what becomes of the mail.
#[derive(Debug, Parser)]
struct Options {
    /// Messages to send.
    #[arg(long, default_value_t = 50_000)]
    messages: usize,
    /// What chance begins with.
    #[arg(long)]
    seed: u64,
    /// What the rules say of lost answers, in turn.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "wait,resend,fail"
    )]
    policies: Vec<Policy>,
    /// A database without tables.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    database_url: String,
    #[arg(long, env = "REDIS_URL")]
    redis_url: String,
    /// Where the programs are.
    #[arg(long, env = "WAYPOST_BIN_DIR")]
    binaries: PathBuf,
    /// libfaketime, with which some processes' clocks are wrong. Without it all are right.
    #[arg(long, env = "FAKETIME_LIBRARY")]
    faketime: Option<PathBuf>,
    /// The state directory of `scripts/chaos.sh`.
    #[arg(long, env = "STATE")]
    state: PathBuf,
}

/// A run that stands: everything is started and equipped.
struct Run {
    options: Options,
    plan: Plan,
    stage: Arc<Stage>,
    load: Arc<Load>,
    founder: Founder,
    tenants: Arc<Vec<Tenant>>,
    begun: Timestamp,
    clock: Clock,
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    println!("chaos: seed={} messages={}", options.seed, options.messages);
    let _from_now_on = say::elapsed();
    let mut terminated = signal(SignalKind::terminate()).expect("signals can be handled");
    let mut interrupted = signal(SignalKind::interrupt()).expect("signals can be handled");
    // Whatever ends it, the processes are killed as the run is dropped.
    let code = tokio::select! {
        passed = chaos(options) => if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE },
        _ = terminated.recv() => ExitCode::from(143),
        _ = interrupted.recv() => ExitCode::from(130),
    };
    servers::wait_for_scripts().await;
    code
}

async fn chaos(options: Options) -> bool {
    let mut random = Random::new(options.seed);
    let lasts = Duration::from_secs((options.messages / MESSAGES_PER_SECOND) as u64);
    let plan = Plan::new(random.number(), options.messages, lasts.max(LOAD_LEAST));
    let run = Run::start(options, plan).await;
    let faults = Faults::new(Arc::clone(&run.stage), random.fork(), run.plan.duration);
    let fleet = Arc::clone(&run.stage.fleet);
    // It starts again what ended by itself, until all is counted.
    tokio::select! {
        passed = run.go(faults, random) => passed,
        () = async move { fleet.supervise().await } => false,
    }
}

impl Run {
    async fn start(options: Options, plan: Plan) -> Self {
        let clock = Clock::system();
        let begun = clock.now();
        let logs = options.state.join("log");
        let simulator = Simulator::start(Config {
            keep_copies_max: options.messages * COPIES_FOR_EACH_MESSAGE,
            keep_bodies: false,
            ..Config::default()
        });
        let simulator = simulator.expect("the simulator can listen");
        simulator.set_callbacks(faults::calm());
        let mut ports = Ports(PORT_FIRST);
        let apis: Vec<SocketAddr> = (0..APIS).map(|_| ports.free()).collect();
        let gateway = TcpListener::bind(ports.free())
            .await
            .expect("the port is free");
        let public = format!("http://{}", gateway.local_addr().expect("it listens"));
        let variables = variables(&options, &simulator, &public);
        let keys = found(&options, &variables).await;
        let fleet = fleet(&options, &variables, &apis, &logs);
        fleet.start();
        tokio::spawn(gateway::serve(gateway, apis.clone()));
        let http = Client::builder()
            .no_proxy()
            .timeout(load::ANSWER_MAX)
            .build();
        let http = http.expect("an HTTP client can be made");
        let apis: Vec<String> = apis
            .iter()
            .map(|address| format!("http://{address}"))
            .collect();
        for api in &apis {
            tenants::wait_until_ready(&http, api).await;
        }
        let founder = Founder {
            http: http.clone(),
            api: apis[0].clone(),
            simulator: simulator.url(),
            policies: options.policies.clone(),
        };
        let mut tenants = Vec::new();
        for (nth, key) in keys.into_iter().enumerate() {
            let hooks = Hooks::new(ports.free().port());
            tokio::spawn(Arc::clone(&hooks).serve());
            tenants.push(founder.equip(nth, key, &plan, hooks).await);
        }
        let tenants = Arc::new(tenants);
        say(format!(
            "{APIS} APIs, {WORKERS} workers, {SCHEDULERS} schedulers and {ORGANIZATIONS} organizations are ready"
        ));
        let fleet = Arc::new(fleet);
        let load = Load::new(http, apis, Arc::clone(&tenants), Arc::clone(&fleet));
        let stage = Arc::new(Stage {
            fleet,
            servers: Servers::new(options.state.clone(), options.redis_url.clone()),
            simulator,
            hooks: tenants.iter().map(|one| Arc::clone(&one.hooks)).collect(),
            spoilt: AtomicUsize::new(0),
        });
        Self {
            load,
            options,
            plan,
            stage,
            founder,
            tenants,
            begun,
            clock,
        }
    }

    /// Sends while everything fails, waits, counts. Whether nothing is wrong.
    async fn go(self, faults: Faults, random: Random) -> bool {
        say(format!(
            "{} messages for {} recipients in {} requests, over {} s",
            self.options.messages,
            self.plan.expected(),
            self.plan.submissions.len(),
            self.plan.duration.as_secs(),
        ));
        let sending = async {
            self.load.run(&self.plan, random).await;
            say(format!(
                "the load is over: {} recipients were accepted",
                self.load.accepted()
            ));
        };
        tokio::join!(sending, faults.run());
        let is_settled = self.settle().await;
        let (is_complete, tally) = self.count().await;
        let mut highest_rate = 0.0_f64;
        for tenant in self.tenants.iter() {
            highest_rate = highest_rate.max(self.founder.highest_rate(tenant).await);
        }
        println!(
            "chaos: seed={} accepted={} delivered={} lost={} duplicated={} explained={} webhooks_missing={} highest_rate={highest_rate}",
            self.options.seed,
            tally.accepted,
            tally.delivered,
            tally.lost(),
            tally.duplicated(),
            tally.explained,
            tally.webhooks_missing(),
        );
        is_settled && is_complete && tally.wrong.is_empty() && highest_rate <= 1.0
    }

    async fn settle(&self) -> bool {
        let hurries = self.options.messages < HURRIES_BELOW;
        if hurries {
            let time = |at: Timestamp| at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
            let (since, until) = (time(self.begun), time(self.clock.now()));
            for (nth, tenant) in self.tenants.iter().enumerate() {
                let count = self.founder.replay_pending(tenant, &since, &until).await;
                say(format!(
                    "organization {nth} asked for {count} webhooks that wait"
                ));
            }
        }
        let bound = if hurries {
            SETTLED_WITHIN
        } else {
            SETTLED_WITHIN_PATIENT
        };
        settle::settle(&self.options.database_url, &self.stage.simulator, bound).await
    }

    /// The count, and whether all that was planned was accepted, and nothing but that
    /// came to the providers.
    async fn count(&self) -> (bool, Tally) {
        let (url, simulator) = (&self.options.database_url, &self.stage.simulator);
        let answers = self.load.take();
        let endings = records::endings(url).await.expect("the tables can be read");
        let books = Books {
            simulator,
            tenants: &self.tenants,
            endings: &endings,
        };
        let tally = books.count(&answers.accepted);
        report::say_offences(url, &tally, simulator, &self.tenants).await;
        report::say_answers(&answers, self.stage.fleet.deaths());
        report::say_counts(&tally, simulator, &self.tenants);
        let strays = simulator.captured_count().abs_diff(tally.copies);
        if strays > 0 {
            say(format!("{strays} copies are not of any accepted message"));
        }
        let is_complete = tally.accepted == self.plan.expected();
        if !is_complete {
            say(format!(
                "{} recipients were to be accepted",
                self.plan.expected()
            ));
        }
        (
            is_complete && answers.failed.is_empty() && answers.cut == 0 && strays == 0,
            tally,
        )
    }
}

/// Ports that nobody listens on.
struct Ports(u16);

impl Ports {
    fn free(&mut self) -> SocketAddr {
        loop {
            let address = SocketAddr::from(([127, 0, 0, 1], self.0));
            self.0 += 1;
            if std::net::TcpListener::bind(address).is_ok() {
                return address;
            }
        }
    }
}

/// The settings of all processes: time-outs and waits in small measures, so that a run
/// sees many of each.
fn variables(options: &Options, simulator: &Simulator, public: &str) -> HashMap<String, String> {
    let smtp = simulator.smtp_address().map(|address| address.to_string());
    let given = [
        ("WAYPOST_ENV", "development"),
        ("DATABASE_URL", &options.database_url),
        ("WAYPOST_DATABASE_CONNECTIONS", "12"),
        ("REDIS_URL", &options.redis_url),
        ("WAYPOST_PUBLIC_URL", public),
        ("WAYPOST_PROVIDER_BASE_URL", &simulator.url()),
        ("WAYPOST_SMTP_SERVER", &smtp.unwrap_or_default()),
        ("WAYPOST_PROVIDER_TIMEOUT", "2s"),
        ("WAYPOST_WEBHOOK_TIMEOUT", "2s"),
        // Few enough that bursts wait in Redis, where they can be lost.
        ("WAYPOST_WORKER_CONCURRENCY", "16"),
        ("WAYPOST_WORKER_LEASE", "6s"),
        ("WAYPOST_WORKER_SHUTDOWN", "5s"),
        ("WAYPOST_UNKNOWN_WAIT", "4s"),
        ("WAYPOST_RETRY_FIRST", "500ms"),
        ("WAYPOST_RETRY_LONGEST", "4s"),
        ("WAYPOST_RETRY_HORIZON", "1h"),
        ("WAYPOST_RELAY_GRACE", "3s"),
        ("WAYPOST_SCHEDULER_TICK", "500ms"),
        ("WAYPOST_RATE_LIMIT_SEND_MAX", "1000000"),
        ("WAYPOST_RATE_LIMIT_OTHER_MAX", "1000000"),
        ("WAYPOST_RATE_LIMIT_ANONYMOUS_PER_MINUTE", "1000000"),
    ];
    let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
    given.into_iter().collect()
}

fn fleet(
    options: &Options,
    variables: &HashMap<String, String>,
    apis: &[SocketAddr],
    logs: &Path,
) -> Fleet {
    let mut fleet = Fleet::new(options.binaries.clone());
    let mut add = |role, nth, mut own: HashMap<String, String>| {
        let mut wrong = WRONG_CLOCKS.iter();
        let wrong = wrong.find(|(of, which, _)| (*of, *which) == (role, nth));
        if let (Some(library), Some((_, _, by))) = (&options.faketime, wrong) {
            own.extend(wrong_clock(library, by));
        }
        fleet.add(role, own, logs);
    };
    for (nth, address) in apis.iter().enumerate() {
        let mut own = variables.clone();
        own.insert("WAYPOST_LISTEN".to_owned(), address.to_string());
        add(Role::Api, nth, own);
    }
    for (role, count) in [(Role::Worker, WORKERS), (Role::Scheduler, SCHEDULERS)] {
        for nth in 0..count {
            add(role, nth, variables.clone());
        }
    }
    fleet
}

/// What makes a process' clock wrong, and not the one that it measures time spans with.
fn wrong_clock(library: &Path, by: &str) -> [(String, String); 3] {
    [
        ("LD_PRELOAD", library.to_string_lossy().as_ref()),
        ("FAKETIME", by),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
}

/// Makes the tables and the organizations, as an operator does; the keys of these.
async fn found(options: &Options, variables: &HashMap<String, String>) -> Vec<String> {
    operate(options, variables, &["migrate"]).await;
    let mut keys = Vec::new();
    for nth in 0..ORGANIZATIONS {
        let name = format!("Chaos {nth}");
        let id = operate(
            options,
            variables,
            &["create-organization", "--name", &name],
        )
        .await;
        let arguments = ["create-api-key", "--organization", &id, "--name", "chaos"];
        keys.push(operate(options, variables, &arguments).await);
    }
    keys
}

async fn operate(
    options: &Options,
    variables: &HashMap<String, String>,
    arguments: &[&str],
) -> String {
    let output = Command::new(options.binaries.join("waypost-api"))
        .args(arguments)
        .env_clear()
        .envs(variables)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output()
        .await;
    let output = output.expect("a program that was built can be started");
    assert!(output.status.success(), "{arguments:?}: {}", output.status);
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
