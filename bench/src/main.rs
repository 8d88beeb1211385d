//! `make bench`: what Waypost exists for, measured, each figure beside its floor: a real
//! program that does the least work which the job could need, on the same machine, a
//! moment before or after. Ratios travel between machines, figures do not.
//!
//! The characters: a `house` is a Waypost that runs, as its release programs; `load`
//! sends as clients do; `pgbench` and `bare` are floors; `usage` reads what processes
//! cost; `report` keeps the figures. The sections, one file each, are named in
//! [`Section`].
//!
//! `scripts/bench.sh` makes the servers, PostgreSQL with its default durability, and
//! starts it.

mod accept;
mod bare;
mod data;
mod fill;
mod groups;
mod hooks;
mod house;
mod inbound;
mod latency;
mod lists;
mod load;
mod metrics;
mod pgbench;
mod place;
mod report;
mod requests;
mod say;
mod scale;
mod sending;
mod soak;
mod suppressions;
mod usage;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};

use house::Builder;
use report::Report;
use say::say;

/// Anything that ends a run.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What is measured, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Section {
    /// Sends at 64 and 256 connections, at half the best rate, in batches, to a
    /// thousand recipients, with a template; the API's memory.
    Accept,
    /// A queued backlog, drained; the worker's memory.
    Drain,
    /// CPU of all processes for messages that are accepted and delivered.
    Cost,
    /// From the request to the provider, one at a time and at 2,000 a second.
    Latency,
    /// More processes than one of each.
    Processes,
    /// Webhooks to one fast receiver, and beside an endpoint that hangs.
    Hooks,
    /// What providers tell.
    Inbound,
    /// Metrics and lists of messages over millions of rows; sends and deliveries beside
    /// them.
    History,
    /// The check and the import, against millions of suppressions.
    Suppressions,
    /// Memory over twenty minutes, only where it is named.
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
            Self::Latency => latency::run(builder, report).await,
            Self::Processes => scale::processes(builder, report).await,
            Self::Hooks => hooks::run(builder, report).await,
            Self::Inbound => inbound::run(builder, report).await,
            Self::History => data::history(builder, report, rows).await,
            Self::Suppressions => data::suppressions(builder, report, rows).await,
            Self::Soak => soak::run(builder, report, options.minutes).await,
        }
    }

    /// Whether it is a part of a run that names none.
    fn is_usual(self) -> bool {
        self != Self::Soak
    }
}

/// Measures what Waypost exists for.
#[derive(Debug, Parser)]
struct Options {
    /// Only these; all where none is named.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Section>,
    /// Messages of the history, and suppressions, that are filled in.
    #[arg(long, default_value_t = 10_000_000)]
    rows: u64,
    /// How long memory is watched.
    #[arg(long, default_value_t = 20)]
    minutes: u64,
    /// Rows that have to be reached: the run fails where one of them is missed.
    #[arg(long, value_delimiter = ',')]
    gate: Vec<String>,
    /// Where the figures are written to.
    #[arg(long, default_value = ".dev/bench.json")]
    json: PathBuf,
    /// A server on which databases may be made.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    database_url: String,
    #[arg(long, env = "REDIS_URL")]
    redis_url: String,
    /// Where pgbench is.
    #[arg(long, env = "PG_BIN")]
    postgres_binaries: PathBuf,
    /// The process ids of both servers.
    #[arg(long, env = "POSTGRES_PID")]
    postgres_pid: u32,
    #[arg(long, env = "REDIS_PID")]
    redis_pid: u32,
}

#[tokio::main]
async fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(hooks::sink::COMMAND) {
        hooks::sink::be_one().await;
        return ExitCode::SUCCESS;
    }
    let options = Options::parse();
    let _from_now_on = say::elapsed();
    let mut terminated = signal(SignalKind::terminate()).expect("signals can be handled");
    let mut interrupted = signal(SignalKind::interrupt()).expect("signals can be handled");
    let mut report = Report::default();
    // Whatever ends it, the processes are killed as the run is dropped.
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
    say(format!("the figures are in {}", options.json.display()));
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
    let usual = Section::value_variants().iter();
    let usual = usual.copied().filter(|section| section.is_usual());
    let sections = if options.only.is_empty() {
        usual.collect()
    } else {
        options.only.clone()
    };
    for section in sections {
        say(format!("{section:?}"));
        section.run(&builder, report, options).await?;
    }
    Ok(())
}
