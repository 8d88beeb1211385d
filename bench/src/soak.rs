//! The second half of row 14: memory over twenty minutes at half load.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::accept::RequestNumbers;
use crate::fixture::{Builder, Plan};
use crate::load::{self, Until};
use crate::report::{Bound, Figure, Report};
use crate::sending::wait_until_drained;
use crate::{Failure, progress, requests, usage};

/// Messages sent and delivered to find the maximum rate.
const CALIBRATION: u64 = 30_000;
const SAMPLE_INTERVAL: Duration = Duration::from_secs(10);
/// Samples that do not count: caches fill at first.
const WARM_UP_SAMPLES: usize = 12;
/// Samples between two progress lines: one line per minute.
const PROGRESS_EVERY: usize = 6;
/// Largest growth of a process per hour, in MiB.
const GROWTH_MAX: f64 = 6.0;

pub(crate) async fn run(
    builder: &Builder,
    report: &mut Report,
    minutes: u64,
) -> Result<(), Failure> {
    let fixture = builder.fixture(Plan::ONE_OF_EACH).await?;
    let sends = requests::sends(&builder.tenants);
    let mut numbers = RequestNumbers(0);
    let since = Instant::now();
    let (until, write) = (
        Until::Count(CALIBRATION),
        numbers.shifted(CALIBRATION, &sends),
    );
    let calibration = load::closed_loop(&fixture.addresses, 64, 0, until, write)
        .await?
        .require_success()?;
    wait_until_drained(builder, &fixture, calibration.count).await?;
    let rate = (CALIBRATION as f64 / since.elapsed().as_secs_f64() / 2.0).round();
    progress(format!("{rate:.0} sends a second are half of its maximum"));
    let count = (rate * 60.0) as u64 * minutes;
    let write = numbers.shifted(count, &sends);
    let sending = load::open(&fixture.addresses, 64, rate, count, write);
    let processes = [
        ("API", &fixture.apis[0], 64.0),
        ("worker", &fixture.workers[0], 64.0),
        ("scheduler", &fixture.schedulers[0], 24.0),
    ];
    let mut samples: Vec<Vec<(f64, f64)>> = vec![Vec::new(); processes.len()];
    let since = Instant::now();
    let sampling = async {
        loop {
            tokio::time::sleep(SAMPLE_INTERVAL).await;
            for (samples, (_, process, _)) in samples.iter_mut().zip(processes) {
                samples.push((
                    since.elapsed().as_secs_f64() / 3_600.0,
                    usage::pss_mib(process.id()),
                ));
            }
            if samples[0].len().is_multiple_of(PROGRESS_EVERY) {
                let last = samples.iter().filter_map(|samples| samples.last());
                let last: Vec<String> = last.map(|(_, mib)| format!("{mib:.1}")).collect();
                progress(format!("API, worker, scheduler: {} MiB", last.join(", ")));
            }
        }
    };
    let answers = tokio::select! {
        answers = sending => answers?.require_success()?,
        () = sampling => unreachable!("it samples forever"),
    };
    for (samples, (name, _, max)) in samples.iter().zip(processes) {
        let what = format!("{name} over {minutes} min at {rate:.0}/s, MiB an hour");
        report_memory(report, name, &what, samples, max);
    }
    report.keep("soak", "load", json!({
        "per_second": answers.per_second(), "p50_ms": answers.percentile_ms(50.0), "p99_ms": answers.percentile_ms(99.0),
    }));
    fixture.remove(builder).await
}

/// Reports the samples of a process: hours since the start, and MiB.
fn report_memory(report: &mut Report, name: &str, what: &str, samples: &[(f64, f64)], max: f64) {
    let kept = samples.get(WARM_UP_SAMPLES..).unwrap_or_default();
    let (slope, last) = (slope(kept), kept.last().map_or(0.0, |(_, mib)| *mib));
    let after = format!("{name} after it, MiB");
    for (what, ratio, figure, max) in [
        (what, slope, format!("{slope:+.1}"), GROWTH_MAX),
        (&after, last, format!("{last:.0}"), max),
    ] {
        report.add(Figure {
            row: "14",
            what,
            figure,
            baseline: String::new(),
            ratio: Some(ratio),
            bound: Bound::AtMost(max),
        });
    }
    let curve: Vec<f64> = samples.iter().map(|(_, mib)| *mib).collect();
    report.keep(
        "soak",
        name,
        json!({ "mib": last, "mib_per_hour": slope, "curve": curve }),
    );
}

/// The slope of the regression line.
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
