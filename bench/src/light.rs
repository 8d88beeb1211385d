//! Rows 27 to 29: what an installation costs that sends little or nothing, and how fast a worker
//! with the default settings drains a backlog.

use std::time::Duration;

use serde_json::json;
use waypost_simulator::Fault;

use crate::Failure;
use crate::accept::{RequestNumbers, closed_loop};
use crate::fixture::{Builder, Cpu, Plan};
use crate::load::{self, Until};
use crate::report::{Bound, Figure, Report};
use crate::requests::{self, BATCH};
use crate::sending::{LATENCY_MS, start_and_drain, wait_until_drained};

/// One process of each kind, with the default settings.
const PLAN: Plan<'static> = Plan {
    apis: 1,
    workers: 1,
    schedulers: 1,
    settings: &[],
};
/// Messages a second of row 27, and the most CPU seconds of 1,000.
const RATES: [(f64, f64); 2] = [(20.0, 5.0), (200.0, 1.5)];
/// How long each rate lasts, in seconds.
const SECONDS: u64 = 30;
/// Connections that carry them.
const CONNECTIONS: usize = 16;
/// How long row 28 lasts.
const IDLE_TIME: Duration = Duration::from_secs(60);
/// The rest before it: caches are filled, and polls have found nothing.
const REST: Duration = Duration::from_secs(10);
/// The most CPU of an idle installation, in milliseconds a second.
const IDLE_MAX: f64 = 3.0;
/// Messages of row 29.
const BACKLOG: u64 = 30_000;

pub(crate) async fn run(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    for (rate, bound) in RATES {
        rated(builder, report, rate, bound).await?;
    }
    idle(builder, report).await?;
    for latency_ms in [0, LATENCY_MS] {
        drained(builder, report, latency_ms).await?;
    }
    Ok(())
}

/// Row 27.
async fn rated(
    builder: &Builder,
    report: &mut Report,
    rate: f64,
    bound: f64,
) -> Result<(), Failure> {
    let fixture = builder.fixture(PLAN).await?;
    let sends = requests::sends(&builder.tenants);
    let mut numbers = RequestNumbers(0);
    closed_loop(&fixture, 4, Duration::from_secs(2), &mut numbers, &sends).await?;
    wait_until_drained(builder, &fixture, builder.simulator.captured_count()).await?;
    let count = rate as u64 * SECONDS;
    let write = numbers.shifted(count, &sends);
    let (before, captured) = (fixture.cpu(), builder.simulator.captured_count());
    load::open(&fixture.addresses, CONNECTIONS, rate, count, write)
        .await?
        .require_success()?;
    wait_until_drained(builder, &fixture, captured + count).await?;
    let cpu = fixture.cpu().since(before);
    fixture.remove(builder).await?;
    let seconds = cpu.sum() / count as f64 * 1_000.0;
    report.add(Figure {
        row: "27",
        what: &format!("CPU seconds for 1,000 accepted and delivered at {rate}/s"),
        figure: format!("{seconds:.2} s"),
        baseline: String::new(),
        ratio: Some(seconds),
        bound: Bound::AtMost(bound),
    });
    let name = format!("rate{rate}");
    report.keep("light", &name, cpu.per_message(count));
    Ok(())
}

/// Row 28.
async fn idle(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    let fixture = builder.fixture(PLAN).await?;
    tokio::time::sleep(REST).await;
    let before = fixture.cpu();
    tokio::time::sleep(IDLE_TIME).await;
    let cpu = fixture.cpu().since(before);
    fixture.remove(builder).await?;
    let each = |seconds: f64| seconds * 1_000.0 / IDLE_TIME.as_secs_f64();
    let all = each(cpu.sum());
    report.add(Figure {
        row: "28",
        what: "CPU of an idle installation, ms a second",
        figure: format!("{all:.1}"),
        baseline: String::new(),
        ratio: Some(all),
        bound: Bound::AtMost(IDLE_MAX),
    });
    let Cpu {
        api,
        worker,
        scheduler,
        postgres,
        redis,
        bench: _,
    } = cpu;
    report.keep(
        "light",
        "idle",
        json!({
            "api_ms": each(api), "worker_ms": each(worker), "scheduler_ms": each(scheduler),
            "postgres_ms": each(postgres), "redis_ms": each(redis), "all_ms": all,
        }),
    );
    Ok(())
}

/// Row 29.
async fn drained(builder: &Builder, report: &mut Report, latency_ms: u64) -> Result<(), Failure> {
    let plan = Plan { workers: 0, ..PLAN };
    let mut fixture = builder.fixture(plan).await?;
    let until = Until::Count(BACKLOG / BATCH);
    let batches = requests::batches(&builder.tenants);
    load::closed_loop(&fixture.addresses, 8, 0, until, batches)
        .await?
        .require_success()?;
    if latency_ms > 0 {
        builder.simulator.set_fault(Fault::slow_sends(latency_ms));
    }
    let drained = start_and_drain(builder, &mut fixture, BACKLOG, 1).await;
    builder.simulator.clear_faults();
    fixture.remove(builder).await?;
    let drained = drained?;
    let elapsed = BACKLOG as f64 / drained.per_second;
    let cores = drained.cpu.sum() / elapsed;
    report.add(Figure {
        row: "29",
        what: &format!("draining 30,000 with the default settings, provider takes {latency_ms} ms"),
        figure: format!("{:.0}/s with {cores:.2} processors", drained.per_second),
        baseline: String::new(),
        ratio: None,
        bound: Bound::None,
    });
    report.keep(
        "light",
        &format!("drain{latency_ms}"),
        json!({ "per_second": drained.per_second, "processors": cores, "cpu": drained.cpu.per_message(BACKLOG) }),
    );
    Ok(())
}
