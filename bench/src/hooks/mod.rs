//! Rows 7 and 18: webhooks to one fast receiver, and beside an endpoint that hangs.

mod customers;
mod hanging;
pub(crate) mod sink;
mod webhooks;

use std::time::Duration;

use serde_json::json;
use waypost_core::clock::Clock;
use waypost_core::config::Settings;
use waypost_core::db;
use waypost_core::ids::Ids;
use waypost_core::secret::Secret;

use crate::house::{Builder, House, Plan};
use crate::report::{Bound, Figure, Report};
use crate::{Failure, groups};
use customers::Town;

/// Events to the fast receiver.
const EVENTS: usize = 50_000;
/// Events that are told for the sake of how they are shared.
const SHARED_EVENTS: usize = 10_000;
/// How long others are watched, without the endpoint that hangs and beside it.
const SPAN: Duration = Duration::from_secs(10);
/// How long the endpoint that hangs has been called before: calls to it have ended at
/// their time limit by then, are tried again, and hold up what comes after them.
const HANGING_BEFORE: Duration = Duration::from_secs(18);

pub(crate) async fn run(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    let plan = Plan {
        apis: 0,
        workers: 1,
        schedulers: 1,
        settings: &[],
    };
    let house = builder.house(plan).await?;
    told(builder, &house, report).await?;
    house.remove(builder).await?;
    let house = builder.house(plan).await?;
    beside(&house, report).await?;
    house.remove(builder).await?;
    shared(builder, report, plan).await
}

/// How attempts are recorded together.
async fn shared(builder: &Builder, report: &mut Report, plan: Plan<'_>) -> Result<(), Failure> {
    let plan = Plan {
        settings: &groups::SETTINGS,
        ..plan
    };
    let house = builder.house(plan).await?;
    let pool = db::pool(&Secret::from(house.database_url.clone()), 8)?;
    let settings = Settings::from_map(&house.variables)?;
    let town = town(&pool, &settings);
    let (worker, postgres) = (house.workers[0].id(), builder.postgres_pid);
    webhooks::webhooks(&town, SHARED_EVENTS, worker, postgres).await;
    pool.close().await;
    groups::tell(report, &house, webhooks::CALLERS)?;
    house.remove(builder).await
}

/// Row 7.
async fn told(builder: &Builder, house: &House, report: &mut Report) -> Result<(), Failure> {
    let pool = db::pool(&Secret::from(house.database_url.clone()), 8)?;
    let settings = Settings::from_map(&house.variables)?;
    let town = town(&pool, &settings);
    let worker = house.workers[0].id();
    let told = webhooks::webhooks(&town, EVENTS, worker, builder.postgres_pid).await;
    pool.close().await;
    report.add(Figure {
        row: "7",
        what: "webhooks to one receiver, signed, recorded",
        figure: format!("{:.0}/s", told.recorded_per_second),
        floor: format!("{:.0}/s bare loop", told.floor_per_second),
        ratio: Some(told.ratio()),
        bound: Bound::AtLeast(0.35),
    });
    report.keep("hooks", "told", json!({
        "per_second": told.recorded_per_second, "arrived_per_second": told.per_second,
        "floor_per_second": told.floor_per_second, "ratio": told.ratio(),
        "worker_cpu_seconds_per_1000": told.worker_cpu, "postgres_cpu_seconds_per_1000": told.postgres_cpu,
        "wal_bytes": told.wal_bytes,
    }));
    Ok(())
}

/// Row 18.
async fn beside(house: &House, report: &mut Report) -> Result<(), Failure> {
    let pool = db::pool(&Secret::from(house.database_url.clone()), 8)?;
    let settings = Settings::from_map(&house.variables)?;
    let beside = hanging::hanging(&town(&pool, &settings), SPAN, HANGING_BEFORE).await;
    pool.close().await;
    let (alone, with) = (&beside.alone, &beside.beside_hanging);
    report.add(Figure {
        row: "18",
        what: "first attempt beside an endpoint that hangs, p99",
        figure: format!("{:.1} ms (p50 {:.1})", with.ms(0.99), with.ms(0.5)),
        floor: format!("{:.1} ms (p50 {:.1}) alone", alone.ms(0.99), alone.ms(0.5)),
        ratio: Some(beside.ratio()),
        bound: Bound::AtMost(3.0),
    });
    report.keep("hooks", "beside_hanging", json!({
        "events": with.count(), "p50_ms": with.ms(0.5), "p99_ms": with.ms(0.99), "floor_p50_ms": alone.ms(0.5),
        "floor_p99_ms": alone.ms(0.99), "ratio": beside.ratio(), "hanging_calls": beside.hanging_calls,
    }));
    Ok(())
}

fn town<'a>(pool: &'a db::PgPool, settings: &'a Settings) -> Town<'a> {
    let clock = Clock::system();
    Town {
        pool,
        settings,
        ids: Ids::new(clock.clone()),
        clock,
    }
}
