//! The second half of row 14: memory over twenty minutes at half load.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::accept::Numbers;
use crate::house::{Builder, Plan};
use crate::load::{self, Until};
use crate::report::{Bound, Figure, Report};
use crate::sending::wait_until_drained;
use crate::{Failure, requests, say, usage};

/// Messages of which it is taken how many a second are sent and delivered at the most.
const TRIED: u64 = 30_000;
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// What is not looked at: caches fill.
const WARM: usize = 12;
/// Looks that are said: one a minute.
const SAID_EVERY: usize = 6;
/// How much a process may grow in an hour, in MiB.
const GROWTH_MAX: f64 = 6.0;

pub(crate) async fn run(
    builder: &Builder,
    report: &mut Report,
    minutes: u64,
) -> Result<(), Failure> {
    let house = builder.house(Plan::ONE_OF_EACH).await?;
    let sends = requests::sends(&builder.tenants);
    let mut numbers = Numbers(0);
    let since = Instant::now();
    let (until, write) = (Until::Count(TRIED), numbers.shifted(TRIED, &sends));
    let tried = load::closed(&house.addresses, 64, 0, until, write)
        .await?
        .all_taken()?;
    wait_until_drained(builder, &house, tried.count).await?;
    let rate = (TRIED as f64 / since.elapsed().as_secs_f64() / 2.0).round();
    say(format!("{rate:.0} sends a second are half of what it can"));
    let count = (rate * 60.0) as u64 * minutes;
    let write = numbers.shifted(count, &sends);
    let sending = load::open(&house.addresses, 64, rate, count, write);
    let processes = [
        ("API", &house.apis[0], 64.0),
        ("worker", &house.workers[0], 64.0),
        ("scheduler", &house.schedulers[0], 24.0),
    ];
    let mut seen: Vec<Vec<(f64, f64)>> = vec![Vec::new(); processes.len()];
    let since = Instant::now();
    let looking = async {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            for (seen, (_, process, _)) in seen.iter_mut().zip(processes) {
                seen.push((
                    since.elapsed().as_secs_f64() / 3_600.0,
                    usage::pss_mib(process.id()),
                ));
            }
            if seen[0].len().is_multiple_of(SAID_EVERY) {
                let last = seen.iter().filter_map(|seen| seen.last());
                let last: Vec<String> = last.map(|(_, mib)| format!("{mib:.1}")).collect();
                say(format!("API, worker, scheduler: {} MiB", last.join(", ")));
            }
        }
    };
    let answers = tokio::select! {
        answers = sending => answers?.all_taken()?,
        () = looking => unreachable!("it looks for ever"),
    };
    for (seen, (name, _, most)) in seen.iter().zip(processes) {
        let what = format!("{name} over {minutes} min at {rate:.0}/s, MiB an hour");
        report_memory(report, name, &what, seen, most);
    }
    report.keep("soak", "load", json!({
        "per_second": answers.per_second(), "p50_ms": answers.percentile_ms(50.0), "p99_ms": answers.percentile_ms(99.0),
    }));
    house.remove(builder).await
}

/// What a process had in hand: hours, and MiB then.
fn report_memory(report: &mut Report, name: &str, what: &str, seen: &[(f64, f64)], most: f64) {
    let kept = seen.get(WARM..).unwrap_or_default();
    let (slope, last) = (slope(kept), kept.last().map_or(0.0, |(_, mib)| *mib));
    let after = format!("{name} after it, MiB");
    for (what, ratio, figure, most) in [
        (what, slope, format!("{slope:+.1}"), GROWTH_MAX),
        (&after, last, format!("{last:.0}"), most),
    ] {
        report.add(Figure {
            row: "14",
            what,
            figure,
            floor: String::new(),
            ratio: Some(ratio),
            bound: Bound::AtMost(most),
        });
    }
    let curve: Vec<f64> = seen.iter().map(|(_, mib)| *mib).collect();
    report.keep(
        "soak",
        name,
        json!({ "mib": last, "mib_per_hour": slope, "curve": curve }),
    );
}

/// The slope of the line that fits best.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let above: f64 = points
        .iter()
        .map(|point| (point.0 - x) * (point.1 - y))
        .sum();
    let below: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    above / below
}
