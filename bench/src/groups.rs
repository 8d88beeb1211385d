//! How callers share work: how large the groups are, and how long the one that waited
//! longest waited. The programs log each group; that costs a little, so what is sent and
//! told meanwhile is counted in no row.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

use crate::Failure;
use crate::accept::CONNECTIONS;
use crate::house::{Builder, House, Plan};
use crate::load::{self, Until};
use crate::report::Report;
use crate::requests;
use crate::say;
use crate::sending::wait_until_drained;

/// Messages that are accepted and delivered meanwhile.
const MESSAGES: u64 = 10_000;
/// What lets the programs tell of their groups.
pub(crate) const SETTINGS: [(&str, &str); 3] = [
    Plan::ONE_OF_EACH.settings[0],
    ("WAYPOST_LOG", "warn,waypost_core::batcher=trace"),
    ("WAYPOST_LOG_FORMAT", "json"),
];

/// A line of a log that tells of a group.
#[derive(Debug, Deserialize)]
struct Line {
    fields: Shared,
}

/// A piece of work that was shared.
#[derive(Debug, Deserialize)]
struct Shared {
    group: String,
    entries: u64,
    longest_wait_us: u64,
    work_us: u64,
}

/// Shows how messages are shared on their way, by what they share.
pub(crate) async fn run(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    for connections in CONNECTIONS {
        let plan = Plan {
            settings: &SETTINGS,
            ..Plan::ONE_OF_EACH
        };
        let house = builder.house(plan).await?;
        let sends = requests::sends(&builder.tenants);
        let until = Until::Count(MESSAGES);
        let answers = load::closed(&house.addresses, connections, 0, until, sends)
            .await?
            .all_taken()?;
        wait_until_drained(builder, &house, answers.count).await?;
        tell(report, &house, connections)?;
        house.remove(builder).await?;
    }
    Ok(())
}

/// Shows what the programs of a house have told of their groups, while so many connections
/// sent to it.
pub(crate) fn tell(report: &mut Report, house: &House, connections: usize) -> Result<(), Failure> {
    let shared = read(house);
    if shared.is_empty() {
        return Err("the programs tell of no group".into());
    }
    for (group, shared) in shared {
        show(report, connections, &group, &shared);
    }
    Ok(())
}

/// All pieces of work, by what they are.
fn read(house: &House) -> BTreeMap<String, Vec<Shared>> {
    let mut shared: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for process in house.apis.iter().chain(&house.workers) {
        let log = process.log();
        let lines = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Line>(line).ok());
        for Line { fields } in lines {
            shared.entry(fields.group.clone()).or_default().push(fields);
        }
    }
    shared
}

fn show(report: &mut Report, connections: usize, group: &str, shared: &[Shared]) {
    let sorted = |pick: fn(&Shared) -> u64| {
        let mut numbers: Vec<u64> = shared.iter().map(pick).collect();
        numbers.sort_unstable();
        numbers
    };
    let at = |numbers: &[u64], percent: usize| numbers[(numbers.len() - 1) * percent / 100];
    let ms = |micros: u64| micros as f64 / 1_000.0;
    let entries = sorted(|one| one.entries);
    let mean = entries.iter().sum::<u64>() as f64 / entries.len() as f64;
    let (waits, work) = (sorted(|one| one.longest_wait_us), sorted(|one| one.work_us));
    let (size_max, wait_max) = (at(&entries, 100), ms(at(&waits, 100)));
    say(format!(
        "{group}, {connections} connections: {} groups of {mean:.1}, {size_max} at the most; the first of each \
         waited {:.1} ms (p50), {:.1} (p99), {wait_max:.1} at the most",
        shared.len(),
        ms(at(&waits, 50)),
        ms(at(&waits, 99)),
    ));
    report.keep(
        "groups",
        &format!("c{connections}_{group}"),
        json!({
            "groups": shared.len(), "entries_mean": mean, "entries_max": size_max,
            "wait_p50_ms": ms(at(&waits, 50)), "wait_p99_ms": ms(at(&waits, 99)), "wait_max_ms": wait_max,
            "work_p50_ms": ms(at(&work, 50)), "work_p99_ms": ms(at(&work, 99)),
        }),
    );
}
