//! Rows 12 and 13: sends with millions of messages in the tables, and with more
//! processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use sqlx::Connection as _;
use tokio::time::Instant;

use crate::Failure;
use crate::accept::{CONNECTIONS, RequestNumbers, WARM_UP, closed_loop};
use crate::fixture::{Builder, Cpu, Fixture, Plan};
use crate::load::{self, Until};
use crate::report::{Bound, Figure, Report};
use crate::requests;
use crate::sending::{drain_backlog, drain_queued, wait_until_drained};

/// Messages sent in each measurement, over few connections and again over many.
const ACCEPTED: u64 = 40_000;
/// Messages sent and delivered with few processes and with many.
const SENT: u64 = 30_000;
/// Messages that one, two and four workers deliver.
const BACKLOG: u64 = 20_000;
const WORKERS: [usize; 3] = [1, 2, 4];
/// Interval of the samples of lock waits.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);

/// Sends per second, and then deliveries per second.
#[derive(Debug, Clone, Copy)]
struct Throughput {
    /// For each of [`CONNECTIONS`].
    accepted: [f64; 2],
    drained: f64,
}

impl Throughput {
    fn midpoint(self, other: Self) -> Self {
        Self {
            accepted: [0, 1].map(|nth| self.accepted[nth].midpoint(other.accepted[nth])),
            drained: self.drained.midpoint(other.drained),
        }
    }
}

/// Row 12: `fixture` has a history of `messages` messages and one API. Empty tables are
/// measured before and after it, since the machine's speed changes.
pub(crate) async fn grown(
    builder: &Builder,
    report: &mut Report,
    mut fixture: Fixture,
    messages: u64,
) -> Result<(), Failure> {
    let mut numbers = RequestNumbers(0);
    let before = empty(builder, &mut numbers).await?;
    let large = measure(builder, &mut fixture, &mut numbers).await?;
    fixture.remove(builder).await?;
    let after = empty(builder, &mut numbers).await?;
    let empty = before.midpoint(after);
    let accepted_ratio = [0, 1].map(|nth| large.accepted[nth] / empty.accepted[nth]);
    let [few, many] = CONNECTIONS.map(|connections| format!("sends, {connections} connections"));
    for (what, large, empty) in [
        (few.as_str(), large.accepted[0], empty.accepted[0]),
        (many.as_str(), large.accepted[1], empty.accepted[1]),
        ("draining them", large.drained, empty.drained),
    ] {
        report.add(Figure {
            row: "12",
            what: &format!("{what}, beside {messages} messages"),
            figure: format!("{large:.0}/s"),
            baseline: format!("{empty:.0}/s on empty tables"),
            ratio: Some(large / empty),
            bound: Bound::AtLeast(0.9),
        });
    }
    report.keep(
        "grown",
        "beside",
        json!({
            "accepted_per_second": large.accepted, "floor_accepted_per_second": empty.accepted,
            "drained_per_second": large.drained, "floor_drained_per_second": empty.drained,
            "accepted_ratio": accepted_ratio,
            "drained_ratio": large.drained / empty.drained,
        }),
    );
    Ok(())
}

async fn empty(builder: &Builder, numbers: &mut RequestNumbers) -> Result<Throughput, Failure> {
    let mut fixture = builder.fixture(Plan::API_ALONE).await?;
    let measure = measure(builder, &mut fixture, numbers).await?;
    fixture.remove(builder).await?;
    Ok(measure)
}

async fn measure(
    builder: &Builder,
    fixture: &mut Fixture,
    numbers: &mut RequestNumbers,
) -> Result<Throughput, Failure> {
    fixture.start_schedulers(1);
    let sends = requests::sends(&builder.tenants);
    let (mut queued, mut accepted) = (0, [0.0; 2]);
    for (connections, accepted) in CONNECTIONS.into_iter().zip(&mut accepted) {
        queued += closed_loop(fixture, connections, WARM_UP, numbers, &sends)
            .await?
            .count;
        let (until, write) = (Until::Count(ACCEPTED), numbers.shifted(ACCEPTED, &sends));
        let answers = load::closed_loop(&fixture.addresses, connections, 0, until, write)
            .await?
            .require_success()?;
        queued += answers.count;
        *accepted = answers.per_second();
    }
    let drained = drain_queued(builder, fixture, queued, 1).await;
    builder.simulator.clear_faults();
    Ok(Throughput {
        accepted,
        drained: drained?.per_second,
    })
}

/// Row 13.
pub(crate) async fn processes(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    for connections in CONNECTIONS {
        processes_with(builder, report, connections).await?;
    }
    let mut numbers = RequestNumbers(0);
    for workers in WORKERS {
        let drained = drain_backlog(builder, BACKLOG, workers, &mut numbers).await?;
        report.add(Figure {
            row: "13",
            what: &format!("draining 20,000 with {workers} workers"),
            figure: format!("{:.0}/s", drained.per_second),
            baseline: format!(
                "{:.0} µs CPU a message",
                drained.cpu.sum() / BACKLOG as f64 * 1e6
            ),
            ratio: None,
            bound: Bound::None,
        });
        report.keep(
            "scale",
            &format!("workers{workers}"),
            json!({
                "per_second": drained.per_second, "cpu": drained.cpu.per_message(BACKLOG),
            }),
        );
    }
    Ok(())
}

async fn processes_with(
    builder: &Builder,
    report: &mut Report,
    connections: usize,
) -> Result<(), Failure> {
    let one = Plan::ONE_OF_EACH;
    let many = Plan {
        apis: 2,
        workers: 4,
        schedulers: 2,
        ..Plan::ONE_OF_EACH
    };
    // Before and after, since the machine's speed changes.
    let before = together(builder, one, connections).await?;
    let many = together(builder, many, connections).await?;
    let one = together(builder, one, connections).await?;
    let baseline = before.per_second.midpoint(one.per_second);
    let ratio = many.per_second / baseline;
    report.add(Figure {
        row: "13",
        what: &format!("sent and delivered by 2 APIs and 4 workers, {connections} connections"),
        figure: format!("{:.0}/s", many.per_second),
        baseline: format!("{baseline:.0}/s by one of each"),
        ratio: Some(ratio),
        bound: Bound::AtLeast(1.0),
    });
    report.add(Figure {
        row: "13",
        what: "deadlocks",
        figure: format!("{}", many.deadlocks),
        baseline: format!(
            "{} of {} samples found a lock wait",
            many.lock_waits, many.samples
        ),
        ratio: Some(many.deadlocks as f64),
        bound: Bound::AtMost(0.0),
    });
    report.keep(
        "scale",
        &format!("c{connections}"),
        json!({
            "per_second": many.per_second, "floor_per_second": baseline, "ratio": ratio,
            "cpu": many.cpu.per_message(SENT), "floor_cpu": one.cpu.per_message(SENT),
            "deadlocks": many.deadlocks, "lock_waits": many.lock_waits, "looks": many.samples,
        }),
    );
    Ok(())
}

struct Together {
    per_second: f64,
    cpu: Cpu,
    deadlocks: i64,
    lock_waits: u64,
    samples: u64,
}

async fn together(
    builder: &Builder,
    plan: Plan<'_>,
    connections: usize,
) -> Result<Together, Failure> {
    let fixture = builder.fixture(plan).await?;
    let sends = requests::sends(&builder.tenants);
    let mut numbers = RequestNumbers(0);
    closed_loop(&fixture, connections, WARM_UP, &mut numbers, &sends).await?;
    wait_until_drained(builder, &fixture, builder.simulator.captured_count()).await?;
    builder.simulator.clear_captured();
    let (over, waits, samples) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
        Arc::new(AtomicU64::new(0)),
    );
    let sample_lock_waits = tokio::spawn(sample_lock_waits(
        fixture.connect().await?,
        Arc::clone(&over),
        Arc::clone(&waits),
        Arc::clone(&samples),
    ));
    let (since, before) = (Instant::now(), fixture.cpu());
    let write = numbers.shifted(SENT, &sends);
    let answers = load::closed_loop(
        &fixture.addresses,
        connections,
        0,
        Until::Count(SENT),
        write,
    )
    .await?
    .require_success()?;
    wait_until_drained(builder, &fixture, answers.count).await?;
    let per_second = answers.count as f64 / since.elapsed().as_secs_f64();
    let cpu = fixture.cpu().since(before);
    over.store(true, Ordering::Relaxed);
    sample_lock_waits.await??;
    let deadlocks = fixture
        .number("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        .await?;
    fixture.remove(builder).await?;
    Ok(Together {
        per_second,
        cpu,
        deadlocks,
        lock_waits: waits.load(Ordering::Relaxed),
        samples: samples.load(Ordering::Relaxed),
    })
}

/// Counts samples, and samples in which a session waits for a lock.
async fn sample_lock_waits(
    mut connection: sqlx::PgConnection,
    over: Arc<AtomicBool>,
    waits: Arc<AtomicU64>,
    samples: Arc<AtomicU64>,
) -> Result<(), Failure> {
    while !over.load(Ordering::Relaxed) {
        let waiting: i64 = sqlx::query_scalar(
            "SELECT count(*)
             FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock'
               AND wait_event NOT IN ('extend')",
        )
        .fetch_one(&mut connection)
        .await?;
        samples.fetch_add(1, Ordering::Relaxed);
        waits.fetch_add(u64::from(waiting > 0), Ordering::Relaxed);
        tokio::time::sleep(SAMPLE_INTERVAL).await;
    }
    connection.close().await?;
    Ok(())
}
