//! Row 8: how fast providers' events are taken in: signed posts of a hundred events each,
//! as SendGrid makes them, and posts of one event, as Mailgun makes them.

mod fill;
mod floor;
mod posts;
mod taking;

use serde_json::json;
use waypost_core::clock::Clock;
use waypost_core::config::Settings;
use waypost_core::db;
use waypost_core::ids::Ids;
use waypost_core::secret::Secret;

use crate::house::{Builder, House, Plan};
use crate::report::{Bound, Figure, Report};
use crate::{Failure, groups};
use taking::{CONNECTIONS, Rate, Site};

pub(crate) async fn run(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    let house = builder.house(Plan::ACCEPTING).await?;
    // Before and after, since the machine's speed changes meanwhile.
    let before = floor::measure(builder, &house, CONNECTIONS).await?;
    let site = site(builder, &house)?;
    let figures = taking::measure(&site).await;
    site.pool.close().await;
    let after = floor::measure(builder, &house, CONNECTIONS).await?;
    let floor = f64::midpoint(before, after);
    house.remove(builder).await?;
    let rates = [
        (
            "batches of 100",
            "batched",
            &figures.batched,
            Bound::AtLeast(2.0),
        ),
        ("one a post", "single", &figures.single, Bound::None),
    ];
    for (what, name, rate, bound) in rates {
        let ratio = rate.per_second() / floor;
        report.add(Figure {
            row: "8",
            what: &format!("provider events in, {what}"),
            figure: format!("{:.0}/s", rate.per_second()),
            floor: format!("{floor:.0}/s pgbench"),
            ratio: Some(ratio),
            bound,
        });
        report.keep("inbound", name, kept(rate, floor, ratio));
    }
    shared(builder, report).await
}

/// How the posts share transactions.
async fn shared(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    let plan = Plan {
        settings: &groups::SETTINGS,
        ..Plan::ACCEPTING
    };
    let house = builder.house(plan).await?;
    let site = site(builder, &house)?;
    taking::tell(&site).await;
    site.pool.close().await;
    groups::tell(report, &house, CONNECTIONS)?;
    house.remove(builder).await
}

fn site(builder: &Builder, house: &House) -> Result<Site, Failure> {
    let clock = Clock::system();
    Ok(Site {
        pool: db::pool(&Secret::from(house.database_url.clone()), 8)?,
        address: house.addresses[0],
        api: house.apis[0].id(),
        postgres: builder.postgres_pid,
        sealer: Settings::from_map(&house.variables)?.sealer,
        ids: Ids::new(clock.clone()),
        clock,
    })
}

fn kept(rate: &Rate, floor: f64, ratio: f64) -> serde_json::Value {
    let (api, postgres, wal) = rate.costs();
    json!({
        "per_second": rate.per_second(), "floor_per_second": floor, "ratio": ratio,
        "slowest_ms": rate.slowest.as_secs_f64() * 1_000.0, "api_cpu_seconds_per_1000": api,
        "postgres_cpu_seconds_per_1000": postgres, "wal_bytes": wal,
    })
}
