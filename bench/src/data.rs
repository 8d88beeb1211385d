//! Rows 9, 10, 11, 12 and 16: operations that must stay fast with millions of rows.

use serde_json::Value;
use uuid::Uuid;
use waypost_core::clock::Clock;

use crate::dataset::{Caller, Dataset};
use crate::fill::{self, Size};
use crate::fixture::{Builder, Fixture, Plan};
use crate::report::{Bound, Figure, Report};
use crate::suppressions::SuppressionBench;
use crate::{Failure, lists, metrics, progress, scale};

/// One message in this many has events: three or more each, so that there are about as
/// many events as messages.
const EVENTS_EVERY: u64 = 3;
/// The large history has this many times the messages of the small one.
const SMALLER: u64 = 10;
/// The API's default prefix of Redis keys.
const PREFIX: &str = "waypost";

/// A database with a history, and an API in front of it.
pub(crate) struct Filled {
    pub(crate) fixture: Fixture,
    pub(crate) dataset: Dataset,
    /// In the order of the builder's tenants.
    pub(crate) callers: Vec<Caller>,
}

/// A fixture whose history holds this many messages.
pub(crate) async fn filled(
    builder: &Builder,
    messages: u64,
    plan: Plan<'_>,
) -> Result<Filled, Failure> {
    let database = builder.database().await?;
    let url = builder.database_url(&database)?;
    let organizations = organizations(&url).await?;
    let filled_at = Clock::system().now();
    let size = Size {
        messages,
        events_every: EVENTS_EVERY,
    };
    fill::fill(&url, &organizations, size, filled_at).await?;
    let fixture = builder.start(plan, database).await?;
    Ok(Filled {
        dataset: Dataset {
            database_url: url,
            api: format!("http://{}", fixture.addresses[0]),
            http: builder.http.clone(),
            messages,
            filled_at,
        },
        callers: callers(builder, &organizations),
        fixture,
    })
}

/// Rows 9 and 16, with this many messages.
pub(crate) async fn history(
    builder: &Builder,
    report: &mut Report,
    messages: u64,
) -> Result<(), Failure> {
    let small = filled(builder, messages / SMALLER, Plan::API_ALONE).await?;
    let large = filled(builder, messages, Plan::API_ALONE).await?;
    let sizes = [&small, &large].map(|filled| (&filled.dataset, &filled.callers[0]));
    let [metrics_small, metrics_large] = metrics::measure(sizes).await;
    small.fixture.remove(builder).await?;
    let pages = lists::measure(&large.dataset, &large.callers[1]).await;
    report_metrics(report, &metrics_small, &metrics_large);
    report_pages(report, &pages);
    report.keep("metrics", "small", metrics_small);
    report.keep("metrics", "large", metrics_large);
    report.keep("lists", "pages", pages);
    scale::grown(builder, report, large.fixture, messages).await
}

/// Rows 10 and 11, with this many suppressions.
pub(crate) async fn suppressions(
    builder: &Builder,
    report: &mut Report,
    count: u64,
) -> Result<(), Failure> {
    let database = builder.database().await?;
    let url = builder.database_url(&database)?;
    let organizations = organizations(&url).await?;
    let filled_at = Clock::system().now();
    fill::fill_suppressions(&url, organizations[0], count, filled_at).await?;
    let fixture = builder.start(Plan::API_ALONE, database).await?;
    let dataset = Dataset {
        database_url: url,
        api: format!("http://{}", fixture.addresses[0]),
        http: builder.http.clone(),
        messages: 0,
        filled_at,
    };
    let caller = &callers(builder, &organizations)[0];
    let redis_url = builder.redis_url();
    let bench = SuppressionBench {
        dataset: &dataset,
        caller,
        redis_url,
        prefix: PREFIX,
        count,
    };
    let check = bench.check().await;
    let import = bench.import().await;
    fixture.remove(builder).await?;
    report_suppressions(report, count, &check, &import);
    report.keep("suppressions", "check", check);
    report.keep("suppressions", "import", import);
    Ok(())
}

fn report_metrics(report: &mut Report, small: &Value, large: &Value) {
    for (name, figures) in large.as_object().into_iter().flatten() {
        let (p50, p99) = (number(&figures["p50_ms"]), number(&figures["p99_ms"]));
        let baseline = format!("{:.1} ms GROUP BY", number(&figures["floor_ms"]));
        let what = format!("metrics, {name}, sums equal");
        let figure = format!("{p50:.2} ms, p99 {p99:.2} ms");
        let growth = p50 / number(&small[name]["p50_ms"]);
        for (row, what, ratio, bound) in [
            ("9", what.as_str(), p99, Bound::AtMost(metrics::P99_MS_MAX)),
            (
                "9",
                "    times as fast",
                number(&figures["ratio"]),
                Bound::AtLeast(metrics::FASTER_MIN),
            ),
            (
                "9",
                "    against a tenth of the rows",
                growth,
                Bound::AtMost(metrics::GROWTH_MAX),
            ),
        ] {
            report.add(Figure {
                row,
                what,
                figure: figure.clone(),
                baseline: baseline.clone(),
                ratio: Some(ratio),
                bound,
            });
        }
    }
}

fn report_pages(report: &mut Report, pages: &Value) {
    for (name, figures) in pages.as_object().into_iter().flatten() {
        let p99 = number(&figures["p99_ms"]);
        report.add(Figure {
            row: "16",
            what: &format!("messages, {name}"),
            figure: format!("{:.2} ms, p99 {p99:.2} ms", number(&figures["p50_ms"])),
            baseline: format!("{:.1} ms count, ILIKE", number(&figures["floor_ms"])),
            ratio: Some(p99),
            bound: Bound::AtMost(lists::P99_MS_MAX),
        });
    }
}

fn report_suppressions(report: &mut Report, count: u64, check: &Value, import: &Value) {
    use crate::suppressions::{BYTES_MAX, FASTER_MIN, IMPORT_RATIO_MAX};
    for (what, figures) in [
        ("nobody suppressed", check),
        ("ten suppressed", &check["some_suppressed"]),
    ] {
        report.add(Figure {
            row: "10",
            what: &format!("check of 1,000 recipients, {what}, of {count}"),
            figure: format!("{:.2} ms", number(&figures["p50_ms"])),
            baseline: format!("{:.2} ms = ANY", number(&figures["floor_p50_ms"])),
            ratio: Some(number(&figures["ratio"])),
            bound: Bound::AtLeast(FASTER_MIN),
        });
    }
    let (bytes, missed) = (
        number(&check["bytes_an_entry"]),
        number(&check["false_negatives"]),
    );
    for (what, ratio, bound) in [
        ("bytes an entry", bytes, Bound::AtMost(BYTES_MAX)),
        (
            "suppressed ones that it does not know",
            missed,
            Bound::AtMost(0.0),
        ),
    ] {
        let what = format!("the filter: {what}");
        let figure = format!("{ratio:.3}");
        report.add(Figure {
            row: "10",
            what: &what,
            figure,
            baseline: String::new(),
            ratio: Some(ratio),
            bound,
        });
    }
    report.add(Figure {
        row: "11",
        what: &format!("import of 10,000 into {count}"),
        figure: format!("{:.1} ms", number(&import["p50_ms"])),
        baseline: format!("{:.1} ms bare INSERT", number(&import["floor_p50_ms"])),
        ratio: Some(number(&import["ratio"])),
        bound: Bound::AtMost(IMPORT_RATIO_MAX),
    });
}

/// The organizations, in the order of the tenants.
async fn organizations(url: &str) -> Result<Vec<Uuid>, Failure> {
    use sqlx::Connection as _;
    let mut connection = sqlx::PgConnection::connect(url).await?;
    let ids = sqlx::query_scalar("SELECT id FROM organizations ORDER BY id");
    let ids = ids.fetch_all(&mut connection).await?;
    connection.close().await?;
    progress(format!("{} organizations", ids.len()));
    Ok(ids)
}

fn callers(builder: &Builder, organizations: &[Uuid]) -> Vec<Caller> {
    let tenants = builder.tenants.iter().zip(organizations);
    let callers = tenants.map(|(tenant, id)| Caller {
        organization: *id,
        key: tenant.key.clone(),
    });
    callers.collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}
