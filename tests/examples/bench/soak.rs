//! The second half of row 14: memory over twenty minutes at half load.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::accept::Numbers;
use crate::house::{Builder, Plan};
use crate::report::{Bound, Figure, Report};
use crate::{Failure, load, requests, say, usage};

/// Sends a second: half of what one API and one worker sent and delivered together
/// where this was written.
const RATE: f64 = 1_250.0;
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
    let count = (RATE * 60.0) as u64 * minutes;
    let write = Numbers(0).shifted(count, &requests::sends(&builder.tenants));
    let sending = load::open(&house.addresses, 64, RATE, count, write);
    let processes = [
        ("API", &house.apis[0]),
        ("worker", &house.workers[0]),
        ("scheduler", &house.schedulers[0]),
    ];
    let mut seen: Vec<Vec<(f64, f64)>> = vec![Vec::new(); processes.len()];
    let since = Instant::now();
    let looking = async {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            for (seen, (_, process)) in seen.iter_mut().zip(processes) {
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
    for (seen, (name, _)) in seen.iter().zip(processes) {
        let kept = seen.get(WARM..).unwrap_or_default();
        let (slope, last) = (slope(kept), kept.last().map_or(0.0, |(_, mib)| *mib));
        report.add(Figure {
            row: "14",
            what: &format!("{name} over {minutes} min at {RATE:.0}/s, MiB an hour"),
            figure: format!("{last:.0} MiB in the end"),
            floor: String::new(),
            ratio: Some(slope),
            bound: Bound::AtMost(GROWTH_MAX),
        });
        report.keep(
            "soak",
            name,
            json!({ "mib": last, "mib_per_hour": slope,
                "curve": seen.iter().map(|(_, mib)| *mib).collect::<Vec<_>>() }),
        );
    }
    report.keep("soak", "load", json!({
        "per_second": answers.per_second(), "p50_ms": answers.percentile_ms(50.0), "p99_ms": answers.percentile_ms(99.0),
    }));
    house.remove(builder).await
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
