//! Row 8: the rate at which providers' events are recorded: signed posts of a hundred
//! events each, as SendGrid sends them, and posts of one event, as Mailgun sends them.

mod fill;
mod ingest;
mod posts;

use std::time::Duration;

use serde_json::json;
use sqlx::{Connection as _, query};
use waypost_core::clock::Clock;
use waypost_core::config::Settings;
use waypost_core::db;
use waypost_core::ids::Ids;
use waypost_core::secret::Secret;

use crate::fixture::{Builder, Fixture, Plan};
use crate::pgbench;
use crate::report::{Bound, Figure, Report};
use crate::{Failure, batching};
use ingest::{CONNECTIONS, Rate, Target};

/// Duration of each run of the baseline.
const BASELINE_TIME: Duration = Duration::from_secs(3);

/// The transaction of the baseline. Its ids come in order from a sequence, as those of
/// messages do.
const BASELINE_SCRIPT: &str = r#"INSERT INTO baseline_events (message_id, id, organization_id, position, event_type, occurred_at, data)
SELECT id, id, '019aa000-0000-7000-8000-000000000000', 0, 'DELIVERED', now(),
       '{"smtpCode": "250", "providerType": "SENDGRID"}'
FROM (SELECT lpad(to_hex(nextval('baseline_ids')), 32, '0')::uuid AS id) new
"#;

pub(crate) async fn run(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    let fixture = builder.fixture(Plan::ACCEPTING).await?;
    // Before and after, since the machine's speed changes.
    let before = measure_baseline(builder, &fixture).await?;
    let target = target(builder, &fixture)?;
    let figures = ingest::measure(&target).await;
    target.pool.close().await;
    let after = measure_baseline(builder, &fixture).await?;
    let baseline = f64::midpoint(before, after);
    fixture.remove(builder).await?;
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
        let ratio = rate.per_second() / baseline;
        report.add(Figure {
            row: "8",
            what: &format!("provider events in, {what}"),
            figure: format!("{:.0}/s", rate.per_second()),
            baseline: format!("{baseline:.0}/s pgbench"),
            ratio: Some(ratio),
            bound,
        });
        report.keep("inbound", name, figures_json(rate, baseline, ratio));
    }
    batches(builder, report).await
}

/// The baseline: `pgbench` inserts rows like those of `events`, one per transaction.
/// Returns the rows per second.
async fn measure_baseline(builder: &Builder, fixture: &Fixture) -> Result<f64, Failure> {
    let mut connection = fixture.connect().await?;
    let statements = [
        "DROP TABLE IF EXISTS baseline_events",
        "DROP SEQUENCE IF EXISTS baseline_ids",
        "CREATE SEQUENCE baseline_ids CACHE 1000",
        "CREATE TABLE baseline_events (LIKE events INCLUDING ALL)",
    ];
    for statement in statements {
        query(statement).execute(&mut connection).await?;
    }
    connection.close().await?;
    let url = &fixture.database_url;
    let baseline = pgbench::run(
        builder,
        url,
        (CONNECTIONS, None),
        BASELINE_TIME,
        &[(BASELINE_SCRIPT, 1)],
    )
    .await?;
    Ok(baseline.per_second)
}

/// How posts share transactions.
async fn batches(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    let plan = Plan {
        settings: &batching::SETTINGS,
        ..Plan::ACCEPTING
    };
    let fixture = builder.fixture(plan).await?;
    let target = target(builder, &fixture)?;
    ingest::post_batched(&target).await;
    target.pool.close().await;
    batching::report_batches(report, &fixture, CONNECTIONS)?;
    fixture.remove(builder).await
}

fn target(builder: &Builder, fixture: &Fixture) -> Result<Target, Failure> {
    let clock = Clock::system();
    Ok(Target {
        pool: db::pool(&Secret::from(fixture.database_url.clone()), 8)?,
        address: fixture.addresses[0],
        api: fixture.apis[0].id(),
        postgres: builder.postgres_pid,
        sealer: Settings::from_map(&fixture.variables)?.sealer,
        ids: Ids::new(clock.clone()),
        clock,
    })
}

fn figures_json(rate: &Rate, baseline: f64, ratio: f64) -> serde_json::Value {
    let (api, postgres, wal) = rate.costs();
    json!({
        "per_second": rate.per_second(), "floor_per_second": baseline, "ratio": ratio,
        "slowest_ms": rate.slowest.as_secs_f64() * 1_000.0, "api_cpu_seconds_per_1000": api,
        "postgres_cpu_seconds_per_1000": postgres, "wal_bytes": wal,
    })
}
