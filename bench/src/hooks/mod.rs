//! Rows 7 and 18: webhooks to one fast receiver, and while another endpoint hangs.

mod hanging;
mod seed;
pub(crate) mod sink;
mod webhooks;

use std::time::Duration;

use serde_json::json;
use waypost_core::clock::Clock;
use waypost_core::config::Settings;
use waypost_core::db;
use waypost_core::ids::Ids;
use waypost_core::secret::Secret;

use crate::fixture::{Builder, Fixture, Plan};
use crate::report::{Bound, Figure, Report};
use crate::{Failure, batching};
use seed::Seeder;

/// Events to the fast receiver.
const EVENTS: usize = 50_000;
/// Events of the measurement of the batchers.
const BATCHER_EVENTS: usize = 10_000;
/// Duration of each measurement, without the hanging endpoint and beside it.
const SPAN: Duration = Duration::from_secs(10);
/// How long the hanging endpoint has received calls before: by then calls have timed out,
/// are retried, and delay the calls behind them.
const HANGING_BEFORE: Duration = Duration::from_secs(18);

pub(crate) async fn run(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    let plan = Plan {
        apis: 0,
        workers: 1,
        schedulers: 1,
        settings: &[],
    };
    let fixture = builder.fixture(plan).await?;
    throughput(builder, &fixture, report).await?;
    fixture.remove(builder).await?;
    let fixture = builder.fixture(plan).await?;
    isolation(&fixture, report).await?;
    fixture.remove(builder).await?;
    batches(builder, report, plan).await
}

/// How webhook attempts are recorded in batches.
async fn batches(builder: &Builder, report: &mut Report, plan: Plan<'_>) -> Result<(), Failure> {
    let plan = Plan {
        settings: &batching::SETTINGS,
        ..plan
    };
    let fixture = builder.fixture(plan).await?;
    let pool = db::pool(&Secret::from(fixture.database_url.clone()), 8)?;
    let settings = Settings::from_map(&fixture.variables)?;
    let seeder = seeder(&pool, &settings);
    let (worker, postgres) = (fixture.workers[0].id(), builder.postgres_pid);
    webhooks::webhooks(&seeder, BATCHER_EVENTS, worker, postgres).await;
    pool.close().await;
    batching::report_batches(report, &fixture, webhooks::CALLERS)?;
    fixture.remove(builder).await
}

/// Row 7.
async fn throughput(
    builder: &Builder,
    fixture: &Fixture,
    report: &mut Report,
) -> Result<(), Failure> {
    let pool = db::pool(&Secret::from(fixture.database_url.clone()), 8)?;
    let settings = Settings::from_map(&fixture.variables)?;
    let seeder = seeder(&pool, &settings);
    let worker = fixture.workers[0].id();
    let throughput = webhooks::webhooks(&seeder, EVENTS, worker, builder.postgres_pid).await;
    pool.close().await;
    report.add(Figure {
        row: "7",
        what: "webhooks to one receiver, signed, recorded",
        figure: format!("{:.0}/s", throughput.recorded_per_second),
        baseline: format!("{:.0}/s bare loop", throughput.floor_per_second),
        ratio: Some(throughput.ratio()),
        bound: Bound::AtLeast(0.35),
    });
    report.keep("hooks", "told", json!({
        "per_second": throughput.recorded_per_second, "arrived_per_second": throughput.per_second,
        "floor_per_second": throughput.floor_per_second, "ratio": throughput.ratio(),
        "worker_cpu_seconds_per_1000": throughput.worker_cpu, "postgres_cpu_seconds_per_1000": throughput.postgres_cpu,
        "wal_bytes": throughput.wal_bytes,
    }));
    Ok(())
}

/// Row 18.
async fn isolation(fixture: &Fixture, report: &mut Report) -> Result<(), Failure> {
    let pool = db::pool(&Secret::from(fixture.database_url.clone()), 8)?;
    let settings = Settings::from_map(&fixture.variables)?;
    let isolation = hanging::hanging(&seeder(&pool, &settings), SPAN, HANGING_BEFORE).await;
    pool.close().await;
    let (alone, with) = (&isolation.alone, &isolation.beside_hanging);
    report.add(Figure {
        row: "18",
        what: "first attempt beside an endpoint that hangs, p99",
        figure: format!("{:.1} ms (p50 {:.1})", with.ms(0.99), with.ms(0.5)),
        baseline: format!("{:.1} ms (p50 {:.1}) alone", alone.ms(0.99), alone.ms(0.5)),
        ratio: Some(isolation.ratio()),
        bound: Bound::AtMost(3.0),
    });
    report.keep("hooks", "beside_hanging", json!({
        "events": with.count(), "p50_ms": with.ms(0.5), "p99_ms": with.ms(0.99), "floor_p50_ms": alone.ms(0.5),
        "floor_p99_ms": alone.ms(0.99), "ratio": isolation.ratio(), "hanging_calls": isolation.hanging_calls,
    }));
    Ok(())
}

fn seeder<'a>(pool: &'a db::PgPool, settings: &'a Settings) -> Seeder<'a> {
    let clock = Clock::system();
    Seeder {
        pool,
        settings,
        ids: Ids::new(clock.clone()),
        clock,
    }
}
