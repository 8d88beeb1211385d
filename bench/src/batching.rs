//! How callers share batches: the size of the batches, and the wait of the item that
//! waited longest. The programs log each batch; that costs a little, so no other row
//! counts the messages and events of this measurement.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

use crate::Failure;
use crate::accept::CONNECTIONS;
use crate::fixture::{Builder, Fixture, Plan};
use crate::load::{self, Until};
use crate::progress;
use crate::report::Report;
use crate::requests;
use crate::sending::wait_until_drained;

/// Messages that are accepted and delivered during the measurement.
const MESSAGES: u64 = 10_000;
/// Settings with which the programs log their batches.
pub(crate) const SETTINGS: [(&str, &str); 2] = [
    ("WAYPOST_LOG", "warn,waypost_core::batcher=trace"),
    ("WAYPOST_LOG_FORMAT", "json"),
];

/// A log line about a batch.
#[derive(Debug, Deserialize)]
struct Line {
    fields: Batch,
}

/// A batch of the named batcher.
#[derive(Debug, Deserialize)]
struct Batch {
    batcher: String,
    items: u64,
    longest_wait_us: u64,
    flush_us: u64,
}

/// Reports the batches of sends and deliveries, by batcher.
pub(crate) async fn run(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    for connections in CONNECTIONS {
        let plan = Plan {
            settings: &SETTINGS,
            ..Plan::ONE_OF_EACH
        };
        let fixture = builder.fixture(plan).await?;
        let sends = requests::sends(&builder.tenants);
        let until = Until::Count(MESSAGES);
        let answers = load::closed_loop(&fixture.addresses, connections, 0, until, sends)
            .await?
            .require_success()?;
        wait_until_drained(builder, &fixture, answers.count).await?;
        report_batches(report, &fixture, connections)?;
        fixture.remove(builder).await?;
    }
    Ok(())
}

/// Reports the batches that a fixture's programs logged while this many connections sent.
pub(crate) fn report_batches(
    report: &mut Report,
    fixture: &Fixture,
    connections: usize,
) -> Result<(), Failure> {
    let batches = read(fixture);
    if batches.is_empty() {
        return Err("the programs logged no batch".into());
    }
    for (group, batches) in batches {
        report_batcher(report, connections, &group, &batches);
    }
    Ok(())
}

/// All batches, by batcher.
fn read(fixture: &Fixture) -> BTreeMap<String, Vec<Batch>> {
    let mut batches: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for process in fixture.apis.iter().chain(&fixture.workers) {
        let log = process.log();
        let lines = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Line>(line).ok());
        for Line { fields } in lines {
            batches
                .entry(fields.batcher.clone())
                .or_default()
                .push(fields);
        }
    }
    batches
}

fn report_batcher(report: &mut Report, connections: usize, group: &str, batches: &[Batch]) {
    let sorted = |pick: fn(&Batch) -> u64| {
        let mut numbers: Vec<u64> = batches.iter().map(pick).collect();
        numbers.sort_unstable();
        numbers
    };
    let at = |numbers: &[u64], percent: usize| numbers[(numbers.len() - 1) * percent / 100];
    let ms = |micros: u64| micros as f64 / 1_000.0;
    let entries = sorted(|one| one.items);
    let mean = entries.iter().sum::<u64>() as f64 / entries.len() as f64;
    let (waits, work) = (
        sorted(|one| one.longest_wait_us),
        sorted(|one| one.flush_us),
    );
    let (size_max, wait_max) = (at(&entries, 100), ms(at(&waits, 100)));
    progress(format!(
        "{group}, {connections} connections: {} batches of {mean:.1} items, {size_max} at most; the first item of each \
         waited {:.1} ms (p50), {:.1} (p99), {wait_max:.1} at most",
        batches.len(),
        ms(at(&waits, 50)),
        ms(at(&waits, 99)),
    ));
    report.keep(
        "groups",
        &format!("c{connections}_{group}"),
        json!({
            "groups": batches.len(), "entries_mean": mean, "entries_max": size_max,
            "wait_p50_ms": ms(at(&waits, 50)), "wait_p99_ms": ms(at(&waits, 99)), "wait_max_ms": wait_max,
            "work_p50_ms": ms(at(&work, 50)), "work_p99_ms": ms(at(&work, 99)),
        }),
    );
}
