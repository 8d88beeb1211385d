//! What a run starts with: ports, settings, processes, organizations.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;
use waypost_simulator::Simulator;

use crate::Options;
use crate::fleet::{Fleet, Role};
use crate::plan::ORGANIZATIONS;

/// Workers of a run with faults, and of an upgrade.
const WORKERS: usize = 3;
const WORKERS_UPGRADED: usize = 2;
const SCHEDULERS: usize = 2;
/// The time limits of a run with faults, which exceed them.
const TIME_LIMITS: [(&str, &str); 4] = [
    ("WAYPOST_PROVIDER_TIMEOUT", "2s"),
    ("WAYPOST_WEBHOOK_TIMEOUT", "2s"),
    ("WAYPOST_WORKER_LEASE", "6s"),
    ("WAYPOST_WORKER_SHUTDOWN", "5s"),
];
/// The clock errors of some processes, in the syntax of libfaketime: of the second API,
/// the second and third worker and the second scheduler.
const WRONG_CLOCKS: [(Role, usize, &str); 4] = [
    (Role::Api, 1, "-7m"),
    (Role::Worker, 1, "+10m"),
    (Role::Worker, 2, "-3m"),
    (Role::Scheduler, 1, "+1h"),
];

/// Allocates free ports.
#[derive(Debug)]
pub(crate) struct Ports(u16);

impl Ports {
    /// Ports from this one on.
    pub(crate) fn from(first: u16) -> Self {
        Self(first)
    }

    pub(crate) fn free(&mut self) -> SocketAddr {
        loop {
            let address = SocketAddr::from(([127, 0, 0, 1], self.0));
            self.0 += 1;
            if std::net::TcpListener::bind(address).is_ok() {
                return address;
            }
        }
    }
}

/// The settings of all processes: short waits, so that a run has many of each. An upgrade
/// leaves the time limits at their defaults, since nothing may exceed them.
pub(crate) fn variables(
    options: &Options,
    simulator: &Simulator,
    public: &str,
) -> HashMap<String, String> {
    let smtp = simulator.smtp_address().map(|address| address.to_string());
    let given = [
        ("WAYPOST_ENV", "development"),
        ("DATABASE_URL", &options.database_url),
        ("WAYPOST_DATABASE_CONNECTIONS", "12"),
        ("REDIS_URL", &options.redis_url),
        ("WAYPOST_PUBLIC_URL", public),
        ("WAYPOST_PROVIDER_BASE_URL", &simulator.url()),
        ("WAYPOST_SMTP_SERVER", &smtp.unwrap_or_default()),
        // A small number, so that bursts wait in Redis, where they can be lost.
        ("WAYPOST_WORKER_CONCURRENCY", "16"),
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
    let limits = match options.upgrade_from {
        Some(_) => &[][..],
        None => &TIME_LIMITS,
    };
    let all = given.iter().chain(limits);
    all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// The processes of a run, none of which runs yet.
pub(crate) fn fleet(
    options: &Options,
    variables: &HashMap<String, String>,
    apis: &[SocketAddr],
    logs: &Path,
) -> Fleet {
    let workers = match options.upgrade_from {
        Some(_) => WORKERS_UPGRADED,
        None => WORKERS,
    };
    let mut fleet = Fleet::default();
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
    for (role, count) in [(Role::Worker, workers), (Role::Scheduler, SCHEDULERS)] {
        for nth in 0..count {
            add(role, nth, variables.clone());
        }
    }
    fleet
}

/// Adds a spare process of each kind; returns where they tell whether they are ready, in the
/// order of [`Role::ALL`].
pub(crate) fn add_spares(
    fleet: &mut Fleet,
    variables: &HashMap<String, String>,
    ports: &mut Ports,
    logs: &Path,
) -> Vec<String> {
    let mut urls = Vec::new();
    for role in Role::ALL {
        let address = ports.free();
        let name = match role {
            Role::Api => "WAYPOST_LISTEN",
            Role::Worker | Role::Scheduler => "WAYPOST_HEALTH_LISTEN",
        };
        let mut own = variables.clone();
        own.insert(name.to_owned(), address.to_string());
        fleet.add_spare(role, own, logs);
        urls.push(url(&address));
    }
    urls
}

pub(crate) fn url(address: &SocketAddr) -> String {
    format!("http://{address}")
}

/// The environment that makes the wall clock of a process wrong, but not its monotonic
/// clock.
fn wrong_clock(library: &Path, by: &str) -> [(String, String); 3] {
    [
        ("LD_PRELOAD", library.to_string_lossy().as_ref()),
        ("FAKETIME", by),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
}

/// Creates the tables and the organizations with the operator's commands; returns an API
/// key for each organization.
pub(crate) async fn create_organizations(
    binaries: &Path,
    variables: &HashMap<String, String>,
) -> Vec<String> {
    run_command(binaries, variables, &["migrate"]).await;
    let mut keys = Vec::new();
    for nth in 0..ORGANIZATIONS {
        let name = format!("Chaos {nth}");
        let id = run_command(
            binaries,
            variables,
            &["create-organization", "--name", &name],
        )
        .await;
        let arguments = ["create-api-key", "--organization", &id, "--name", "chaos"];
        keys.push(run_command(binaries, variables, &arguments).await);
    }
    keys
}

/// Runs a command of the operator, which must succeed, and returns what it prints.
pub(crate) async fn run_command(
    binaries: &Path,
    variables: &HashMap<String, String>,
    arguments: &[&str],
) -> String {
    let output = Command::new(binaries.join(Role::Api.program()))
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
