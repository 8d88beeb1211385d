//! `make chaos` runs Waypost under load with several processes of each kind, while
//! everything fails that can fail: processes are killed, Redis is emptied and stopped,
//! PostgreSQL crashes, providers are slow, reject calls and reset connections after they
//! accepted a message, gateways respond in a provider's place, clocks are wrong,
//! callbacks arrive twice and out of order, and webhook receivers fail. At the end it
//! counts what the simulator and the receivers have; it does not trust what the service
//! reports about itself.
//!
//! `make test-upgrade` is the same load and the same count while nothing fails but the version
//! changes: processes of an earlier version and of this one replace each other (`upgrade`).
//!
//! `setup` starts the processes. `plan` decides what to send, `load` sends it and `cancellation` cancels some of it. `faults` injects faults into the
//! `fleet` of processes, the `servers`, the simulator and the webhook receivers. `idle`
//! waits until no work is left, `verification` counts, `records` reads the tables that
//! explain a count, and `report` prints.
//!
//! The seed determines the plan and the faults. It does not determine the interleaving of
//! the processes.
//!
//! `scripts/chaos.sh` starts the servers and this program. The simulator is a part of
//! this process, which is never killed, so its records are reliable.
//!
//! With `--server-fault` there is one fault: a failover of PostgreSQL or Redis. `make
//! test-servers` runs it so.

mod cancellation;
mod faults;
mod fleet;
mod idle;
mod load;
mod load_balancer;
mod output;
mod plan;
mod random;
mod receiver;
mod records;
mod report;
mod server_fault;
mod servers;
mod setup;
mod tenants;
mod upgrade;
mod verification;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use clap::Parser;
use reqwest::Client;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use waypost_core::clock::{Clock, Timestamp};
use waypost_simulator::{Config, Simulator};

use faults::{Faults, Targets};
use fleet::{Fleet, Role};
use load::{Load, LoadResult};
use output::progress;
use plan::{ORGANIZATIONS, Plan, Policy};
use random::Random;
use receiver::Receiver;
use server_fault::{Forward, ServerFault};
use servers::Servers;
use setup::Ports;
use tenants::{Configurator, Tenant};
use upgrade::Upgrade;
use verification::{Verification, Verifier};

/// APIs, besides a spare one.
const APIS: usize = 2;
/// Messages per second. Faults take more time than messages, so a short run has fewer
/// messages per second.
const MESSAGES_PER_SECOND: usize = 120;
const LOAD_TIME_MIN: Duration = Duration::from_secs(90);
/// Runs with fewer messages do not wait for webhooks that are due in minutes.
const SHORT_RUN_BELOW: usize = 20_000;
/// Time limit until all work is done after the load, in short runs and in long ones.
const IDLE_WITHIN: Duration = Duration::from_secs(240);
const IDLE_WITHIN_LONG: Duration = Duration::from_secs(900);
/// Accepted recipients that the simulator keeps per message: a message may have several
/// recipients, and may be sent again.
const RECIPIENTS_PER_MESSAGE: usize = 8;
/// The first port to try. It is below the ports that operating systems use for outgoing
/// connections, so no connection takes the port of a process that is down.
const PORT_FIRST: u16 = 20_000;

/// Injects faults everywhere around Waypost, or upgrades it, and counts the messages.
#[derive(Debug, Parser)]
struct Options {
    /// Messages to send.
    #[arg(long, default_value_t = 50_000)]
    messages: usize,
    /// Seed of the random numbers.
    #[arg(long)]
    seed: u64,
    /// The `onUnknown` policies of the rules, in rotation.
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
    /// Another URL of the database, by which this program reads the tables.
    #[arg(long)]
    tables_url: Option<String>,
    #[arg(long, env = "REDIS_URL")]
    redis_url: String,
    /// Folder of Waypost's programs.
    #[arg(long, env = "WAYPOST_BIN_DIR")]
    binaries: PathBuf,
    /// Folder of the programs of an earlier version. With it the run is an upgrade from that
    /// version to the other one.
    #[arg(long)]
    upgrade_from: Option<PathBuf>,
    /// libfaketime, which makes some clocks wrong. Without it all clocks are right.
    #[arg(long, env = "FAKETIME_LIBRARY")]
    faketime: Option<PathBuf>,
    /// Instead of all faults, this action of `scripts/failover-servers.sh` in the middle of a
    /// short load.
    #[arg(long)]
    server_fault: Option<String>,
    /// Forward each connection to the first of these servers that accepts it:
    /// `address=server,server`.
    #[arg(long)]
    forward: Option<Forward>,
    /// The first port to try.
    #[arg(long, default_value_t = PORT_FIRST)]
    port_first: u16,
    /// The state directory of `scripts/chaos.sh`.
    #[arg(long, env = "STATE")]
    state: PathBuf,
}

impl Options {
    fn tables_url(&self) -> &str {
        self.tables_url.as_deref().unwrap_or(&self.database_url)
    }
}

/// A prepared run: everything is started and configured.
struct Run {
    options: Options,
    plan: Plan,
    targets: Arc<Targets>,
    load: Arc<Load>,
    configurator: Configurator,
    tenants: Arc<Vec<Tenant>>,
    /// The settings of all processes.
    variables: HashMap<String, String>,
    /// The URLs at which the spare processes of an upgrade tell whether they are ready.
    spares: Vec<String>,
    begun: Timestamp,
    clock: Clock,
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    println!("chaos: seed={} messages={}", options.seed, options.messages);
    let _start = output::elapsed();
    let mut terminated = signal(SignalKind::terminate()).expect("signals can be handled");
    let mut interrupted = signal(SignalKind::interrupt()).expect("signals can be handled");
    // However the run ends, dropping it kills its processes.
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
    let lasts = match options.server_fault {
        Some(_) => server_fault::LOAD_TIME,
        None => lasts.max(LOAD_TIME_MIN),
    };
    let magic = match options.upgrade_from {
        Some(_) => &plan::MAGIC_WITH_RESPONSE[..],
        None => &plan::MAGIC[..],
    };
    let plan = Plan::new(random.number(), options.messages, lasts, magic);
    let run = Run::start(options, plan).await;
    let fleet = Arc::clone(&run.targets.fleet);
    let faults = random.fork();
    // Processes that end by themselves are started again until the count is complete.
    tokio::select! {
        passed = run.execute(faults, random) => passed,
        () = async move { fleet.supervise().await } => false,
    }
}

async fn start_forwarding(forward: &Forward) {
    let listener = TcpListener::bind(forward.listen).await;
    let listener = listener.expect("the port is free");
    tokio::spawn(load_balancer::serve_in_order(
        listener,
        forward.servers.clone(),
    ));
}

fn report_ready(fleet: &Fleet) {
    let [apis, workers, schedulers] = Role::ALL.map(|role| fleet.count(role));
    progress(format!(
        "{apis} APIs, {workers} workers, {schedulers} schedulers and {ORGANIZATIONS} organizations are ready"
    ));
}

/// Configures each organization, with a webhook receiver of its own.
async fn configure(
    configurator: &Configurator,
    keys: Vec<String>,
    plan: &Plan,
    ports: &mut Ports,
) -> Vec<Tenant> {
    let mut tenants = Vec::new();
    for (nth, key) in keys.into_iter().enumerate() {
        let receiver = Receiver::new(ports.free().port());
        tokio::spawn(Arc::clone(&receiver).serve());
        tenants.push(configurator.configure(nth, key, plan, receiver).await);
    }
    tenants
}

fn http_client() -> Client {
    let http = Client::builder()
        .no_proxy()
        .timeout(load::RESPONSE_TIME_MAX)
        .build();
    http.expect("an HTTP client can be made")
}

impl Run {
    async fn start(options: Options, plan: Plan) -> Self {
        let clock = Clock::system();
        let begun = clock.now();
        let logs = options.state.join("log");
        if let Some(forward) = &options.forward {
            start_forwarding(forward).await;
        }
        let simulator = start_simulator(&options);
        let mut ports = Ports::from(options.port_first);
        let apis: Vec<SocketAddr> = (0..APIS).map(|_| ports.free()).collect();
        let balancer = TcpListener::bind(ports.free())
            .await
            .expect("the port is free");
        let public = format!("http://{}", balancer.local_addr().expect("it listens"));
        let variables = setup::variables(&options, &simulator, &public);
        let first = options.upgrade_from.as_ref().unwrap_or(&options.binaries);
        let keys = setup::create_organizations(first, &variables).await;
        let mut fleet = setup::fleet(&options, &variables, &apis, &logs);
        let spares = match options.upgrade_from {
            Some(_) => setup::add_spares(&mut fleet, &variables, &mut ports, &logs),
            None => Vec::new(),
        };
        fleet.start(first);
        tokio::spawn(load_balancer::serve(balancer, apis.clone()));
        let http = http_client();
        let mut apis: Vec<String> = apis.iter().map(setup::url).collect();
        for api in &apis {
            tenants::wait_until_ready(&http, api).await;
        }
        let configurator = Configurator {
            http: http.clone(),
            api: apis[0].clone(),
            simulator: simulator.url(),
            policies: options.policies.clone(),
        };
        let tenants = Arc::new(configure(&configurator, keys, &plan, &mut ports).await);
        report_ready(&fleet);
        apis.extend(spares.first().cloned());
        let fleet = Arc::new(fleet);
        let load = Load::new(
            http,
            apis,
            Arc::clone(&tenants),
            Arc::clone(&fleet),
            clock.clone(),
        );
        let receivers = tenants.iter().map(|one| Arc::clone(&one.receiver));
        let targets = Arc::new(Targets {
            fleet,
            servers: Servers::new(options.state.clone(), options.redis_url.clone()),
            simulator,
            receivers: receivers.collect(),
            receivers_broken: AtomicUsize::new(0),
        });
        Self {
            load,
            options,
            plan,
            targets,
            configurator,
            tenants,
            variables,
            spares,
            begun,
            clock,
        }
    }

    /// Sends while faults happen or the version changes, waits, counts. True if nothing is
    /// wrong.
    async fn execute(self, faults: Random, random: Random) -> bool {
        progress(format!(
            "{} messages for {} recipients in {} requests, over {} s",
            self.options.messages,
            self.plan.expected(),
            self.plan.submissions.len(),
            self.plan.duration.as_secs(),
        ));
        let sending = async {
            self.load.run(&self.plan, random).await;
            progress(format!(
                "the load is over: {} recipients were accepted",
                self.load.accepted()
            ));
            Ok(())
        };
        // What a failover or an upgrade breaks need not be waited for.
        if let Err(wrong) = tokio::try_join!(sending, self.disturb(faults)) {
            progress(wrong);
            return false;
        }
        let is_idle = self.wait_until_idle().await;
        let results = self.load.take();
        let (is_complete, verification) = self.count(&results).await;
        let wrong = match self.options.upgrade_from {
            Some(_) => upgrade::unexpected(&self.targets.fleet, &results, &verification),
            None => Vec::new(),
        };
        wrong.iter().for_each(progress);
        let mut highest_rate = 0.0_f64;
        for tenant in self.tenants.iter() {
            highest_rate = highest_rate.max(self.configurator.highest_rate(tenant).await);
        }
        println!(
            "chaos: seed={} accepted={} delivered={} lost={} duplicated={} explained={} webhooks_missing={} highest_rate={highest_rate}",
            self.options.seed,
            verification.accepted,
            verification.delivered,
            verification.lost(),
            verification.duplicated(),
            verification.explained,
            verification.webhooks_missing(),
        );
        let is_correct = verification.violations.is_empty() && wrong.is_empty();
        is_idle && is_complete && is_correct && highest_rate <= 1.0
    }

    /// Injects the faults, or the one fault of the servers, or changes the version. The error says
    /// what that broke.
    async fn disturb(&self, random: Random) -> Result<(), String> {
        if let Some(action) = &self.options.server_fault {
            let fault = ServerFault {
                targets: Arc::clone(&self.targets),
                http: self.load.http.clone(),
                apis: self.load.apis.clone(),
                action: action.clone(),
            };
            return fault.run().await;
        }
        let Some(old) = &self.options.upgrade_from else {
            let faults = Faults::new(Arc::clone(&self.targets), random, self.plan.duration);
            faults.run().await;
            return Ok(());
        };
        let upgrade = Upgrade {
            targets: &self.targets,
            load: &self.load,
            variables: &self.variables,
            spares: &self.spares,
            old,
            new: &self.options.binaries,
            database_url: &self.options.database_url,
        };
        upgrade.run().await
    }

    async fn wait_until_idle(&self) -> bool {
        let is_short = self.options.messages < SHORT_RUN_BELOW;
        if is_short {
            let time = |at: Timestamp| at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
            let (since, until) = (time(self.begun), time(self.clock.now()));
            for (nth, tenant) in self.tenants.iter().enumerate() {
                let count = self
                    .configurator
                    .replay_pending(tenant, &since, &until)
                    .await;
                progress(format!(
                    "organization {nth} replayed {count} pending webhooks"
                ));
            }
        }
        let bound = if is_short {
            IDLE_WITHIN
        } else {
            IDLE_WITHIN_LONG
        };
        idle::wait_until_idle(self.options.tables_url(), &self.targets.simulator, bound).await
    }

    /// Counts. The flag is true if every planned recipient was accepted, and the
    /// providers have no others.
    async fn count(&self, results: &LoadResult) -> (bool, Verification) {
        let (url, simulator) = (self.options.tables_url(), &self.targets.simulator);
        let final_states = records::final_states(url)
            .await
            .expect("the tables can be read");
        let books = Verifier {
            simulator,
            tenants: &self.tenants,
            final_states: &final_states,
        };
        let verification = books.count(&results.accepted);
        report::print_violations(url, &verification, simulator, &self.tenants).await;
        report::print_load(results, self.targets.fleet.exits());
        report::print_counts(&verification, simulator, &self.tenants);
        let unexpected = simulator.captured_count().abs_diff(verification.sends);
        if unexpected > 0 {
            progress(format!(
                "the providers have {unexpected} recipients of no accepted message"
            ));
        }
        let is_complete = verification.accepted == self.plan.expected();
        if !is_complete {
            progress(format!(
                "{} recipients should have been accepted",
                self.plan.expected()
            ));
        }
        (
            is_complete && results.failed.is_empty() && results.cut_by_stop == 0 && unexpected == 0,
            verification,
        )
    }
}

fn start_simulator(options: &Options) -> Simulator {
    let simulator = Simulator::start(Config {
        keep_recipients_max: options.messages * RECIPIENTS_PER_MESSAGE,
        keep_bodies: false,
        ..Config::default()
    });
    let simulator = simulator.expect("the simulator can listen");
    simulator.set_callbacks(faults::default_callbacks());
    simulator
}
