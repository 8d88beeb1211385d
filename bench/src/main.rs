//! `make bench` measures the performance of Waypost. Each figure stands beside a
//! baseline: a real program that does the least work the job could need, on the same
//! machine, a moment before or after. Ratios can be compared between machines; absolute
//! figures cannot.
//!
//! A `fixture` is a running Waypost of release programs; `load` sends requests as clients
//! do; `pgbench` and `baseline` run the baselines; `usage` reads CPU and memory of
//! processes; `report` collects the figures. Each section has a file; [`Section`] names
//! them.
//!
//! `scripts/bench.sh` starts the servers (PostgreSQL with its default durability) and
//! this program.

mod accept;
mod baseline;
mod batching;
mod data;
mod dataset;
mod fill;
mod fixture;
mod hooks;
mod inbound;
mod latency;
mod light;
mod lists;
mod load;
mod metrics;
mod network;
mod output;
mod pgbench;
mod relay;
mod report;
mod requests;
mod routing;
mod scale;
mod sending;
mod soak;
mod submission;
mod suppressions;
mod usage;
mod whole;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};

use fixture::Builder;
use output::progress;
use report::Report;

/// Any error that ends a run.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The sections of a run, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Section {
    /// Sends over 64 and 256 connections, at half the best rate, in batches, to a
    /// thousand recipients, with a template; the API's memory.
    Accept,
    /// Delivery of a queued backlog; the worker's memory.
    Drain,
    /// CPU of all processes per accepted and delivered message.
    Cost,
    /// CPU of attachments and of shared mails.
    Whole,
    /// Time from the request to the provider, one at a time and at 2,000 a second.
    Latency,
    /// Several processes of each kind.
    Processes,
    /// One and two APIs and workers at a distance from PostgreSQL and Redis.
    Network,
    /// CPU at 20 and 200 messages a second and of an idle installation, and the drain with the
    /// default settings.
    Light,
    /// Routing of a message by rules with targets.
    Routing,
    /// Mails over SMTP beside sends over HTTP.
    Submission,
    /// Webhooks to one fast receiver, and while another endpoint hangs.
    Hooks,
    /// Events that providers report.
    Inbound,
    /// Metrics and message lists over millions of rows; sends and deliveries beside them.
    History,
    /// The check and the import with millions of suppressions.
    Suppressions,
    /// Memory over twenty minutes. It runs only if it is named.
    Soak,
}

impl Section {
    async fn run(
        self,
        builder: &Builder,
        report: &mut Report,
        options: &Options,
    ) -> Result<(), Failure> {
        let rows = options.rows;
        match self {
            Self::Accept => accept::run(builder, report).await,
            Self::Drain => sending::drain(builder, report).await,
            Self::Cost => sending::cost(builder, report).await,
            Self::Whole => whole::run(builder, report).await,
            Self::Latency => latency::run(builder, report).await,
            Self::Processes => scale::processes(builder, report).await,
            Self::Network => network::run(builder, report).await,
            Self::Light => light::run(builder, report).await,
            Self::Routing => routing::run(report),
            Self::Submission => submission::run(builder, report).await,
            Self::Hooks => hooks::run(builder, report).await,
            Self::Inbound => inbound::run(builder, report).await,
            Self::History => data::history(builder, report, rows).await,
            Self::Suppressions => data::suppressions(builder, report, rows).await,
            Self::Soak => soak::run(builder, report, options.minutes).await,
        }
    }

    /// Whether a run that names no section includes it.
    fn is_default(self) -> bool {
        self != Self::Soak
    }
}

/// Measures the performance of Waypost.
#[derive(Debug, Parser)]
struct Options {
    /// Run only these sections. Default: all but `soak`.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Section>,
    /// Messages of the history, and suppressions, to fill in.
    #[arg(long, default_value_t = 10_000_000)]
    rows: u64,
    /// Duration of the soak section.
    #[arg(long, default_value_t = 20)]
    minutes: u64,
    /// Rows that must reach their bound: the run fails if one of them misses it.
    #[arg(long, value_delimiter = ',')]
    gate: Vec<String>,
    /// File for the figures.
    #[arg(long, default_value = ".dev/bench.json")]
    json: PathBuf,
    /// A server on which the program may create databases.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    database_url: String,
    #[arg(long, env = "REDIS_URL")]
    redis_url: String,
    /// Folder of the pgbench program.
    #[arg(long, env = "PG_BIN")]
    postgres_binaries: PathBuf,
    /// Process ids of the two servers.
    #[arg(long, env = "POSTGRES_PID")]
    postgres_pid: u32,
    #[arg(long, env = "REDIS_PID")]
    redis_pid: u32,
}

#[tokio::main]
async fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(hooks::sink::COMMAND) {
        hooks::sink::run().await;
        return ExitCode::SUCCESS;
    }
    if std::env::args().nth(1).as_deref() == Some(whole::COMMAND) {
        whole::run_proxy().await;
        return ExitCode::SUCCESS;
    }
    let options = Options::parse();
    let _start = output::elapsed();
    let mut terminated = signal(SignalKind::terminate()).expect("signals can be handled");
    let mut interrupted = signal(SignalKind::interrupt()).expect("signals can be handled");
    let mut report = Report::default();
    // However the run ends, dropping it kills its processes.
    let measured = tokio::select! {
        measured = measure(&options, &mut report) => measured,
        _ = terminated.recv() => return ExitCode::from(143),
        _ = interrupted.recv() => return ExitCode::from(130),
    };
    print!("{}", report.table());
    let written = report.write(&options.json);
    if let Err(failure) = measured.and(written) {
        eprintln!("bench: {failure}");
        return ExitCode::FAILURE;
    }
    progress(format!("the figures are in {}", options.json.display()));
    let gated = |(row, _): &(&str, &str)| options.gate.iter().any(|gate| gate == row);
    match report.missed().find(gated) {
        Some((row, what)) => {
            eprintln!("bench: row {row} was missed: {what}");
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    }
}

async fn measure(options: &Options, report: &mut Report) -> Result<(), Failure> {
    let builder = Builder::prepare(options).await?;
    let defaults = Section::value_variants().iter();
    let defaults = defaults.copied().filter(|section| section.is_default());
    let sections = if options.only.is_empty() {
        defaults.collect()
    } else {
        options.only.clone()
    };
    for section in sections {
        progress(format!("{section:?}"));
        section.run(&builder, report, options).await?;
    }
    Ok(())
}
