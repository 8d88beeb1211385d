//! The baseline of writes to Postgres: pgbench with prepared statements.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use url::Url;

use crate::Failure;
use crate::fixture::Builder;

/// The figures that pgbench prints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pgbench {
    pub(crate) per_second: f64,
    pub(crate) latency_ms: f64,
    /// The median of the transactions; only with one client.
    pub(crate) median_ms: Option<f64>,
}

/// Runs scripts, one transaction each, chosen by their weights, with this many clients
/// and at most `rate` transactions per second.
pub(crate) async fn run(
    builder: &Builder,
    database_url: &str,
    (clients, rate): (usize, Option<f64>),
    duration: Duration,
    scripts: &[(&str, u32)],
) -> Result<Pgbench, Failure> {
    let folder = std::env::temp_dir().join(format!("waypost-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let mut command = Command::new(builder.postgres_binaries.join("pgbench"));
    command
        .args(["--no-vacuum", "--protocol=prepared"])
        .arg(format!("--client={clients}"))
        .arg(format!("--jobs={}", clients.min(2)))
        .arg(format!("--time={}", duration.as_secs()));
    for (nth, (script, weight)) in scripts.iter().enumerate() {
        let path = folder.join(format!("{nth}.sql"));
        std::fs::write(&path, script)?;
        command.arg(format!("--file={}@{weight}", path.display()));
    }
    if let Some(rate) = rate {
        command.arg(format!("--rate={rate}"));
    }
    let is_logged = clients == 1;
    if is_logged {
        // pgbench appends its process id to the prefix.
        let prefix = folder.join("transactions");
        command
            .arg("--log")
            .arg(format!("--log-prefix={}", prefix.display()));
    }
    let output = connect(&mut command, database_url)?.output().await?;
    let median_ms = is_logged.then(|| median_ms(&folder)).transpose();
    remove(&folder);
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!("pgbench: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let number = |prefix: &str| -> Result<f64, Failure> {
        let line = text.lines().find_map(|line| line.strip_prefix(prefix));
        let word = line.and_then(|line| line.split(' ').next());
        Ok(word
            .ok_or_else(|| format!("pgbench printed no {prefix}"))?
            .parse()?)
    };
    Ok(Pgbench {
        per_second: number("tps = ")?,
        latency_ms: number("latency average = ")?,
        median_ms: median_ms?,
    })
}

/// The median of the transactions in pgbench's log. A line is a transaction; its third
/// word is the duration in microseconds, and with a rate its seventh is the schedule lag,
/// which the duration includes.
fn median_ms(folder: &Path) -> Result<f64, Failure> {
    let mut times: Vec<u64> = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "sql") {
            continue;
        }
        for line in std::fs::read_to_string(path)?.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let time: u64 = words.get(2).ok_or("a line without a time")?.parse()?;
            let lag: u64 = words.get(6).map_or(Ok(0), |lag| lag.parse())?;
            times.push(time.saturating_sub(lag));
        }
    }
    times.sort_unstable();
    let median = times.get(times.len() / 2).ok_or("pgbench logged nothing")?;
    Ok(*median as f64 / 1_000.0)
}

fn connect<'a>(command: &'a mut Command, database_url: &str) -> Result<&'a mut Command, Failure> {
    let url = Url::parse(database_url)?;
    Ok(command
        .env("PGHOST", url.host_str().unwrap_or_default())
        .env("PGPORT", url.port().unwrap_or(5432).to_string())
        .env("PGUSER", url.username())
        .env("PGPASSWORD", url.password().unwrap_or_default())
        .env("PGDATABASE", url.path().trim_start_matches('/'))
        .stdin(Stdio::null()))
}

fn remove(folder: &Path) {
    // Best effort: the folder is in the directory for temporary files.
    let _left_over = std::fs::remove_dir_all(folder);
}
