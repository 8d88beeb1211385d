//! Row 16: pages of messages with exact totals, filtered by status, and searched, against
//! `count(*)` and `ILIKE` over the messages.

use std::time::Instant;

use serde_json::{Map, Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::dataset::{Caller, Dataset, Timings};
use crate::fill::history::{COMMON_TEXT, NO_TEXT, RARE_TEXT};

/// Requests of each page.
const REQUESTS: usize = 200;
/// Rows of a page.
const LIMIT: i64 = 50;
/// Runs of the baseline.
const BASELINE_RUNS: usize = 3;
/// The bound.
pub(crate) const P99_MS_MAX: f64 = 25.0;

const STATUSES: [&str; 6] = [
    "QUEUED",
    "SENDING",
    "SENT",
    "DELIVERED",
    "BOUNCED",
    "FAILED",
];

/// A page, and how its total is checked.
struct Page {
    name: String,
    query: String,
    /// The condition of the baseline.
    condition: String,
    /// Whether the total is exact: a search counts at most the newest two thousand.
    is_exact: bool,
}

/// Measures the pages of one organization's messages. Returns for each page `p50_ms`,
/// `p99_ms`, `floor_ms` and `total`.
pub(crate) async fn measure(dataset: &Dataset, caller: &Caller) -> Value {
    let connection = PgConnection::connect(&dataset.database_url).await;
    let mut connection = connection.expect("Postgres answers");
    let total = count(&mut connection, caller, "true").await.1;
    let delivered = count(&mut connection, caller, "status = 'DELIVERED'")
        .await
        .1;
    println!("  the organization has {total} messages, {delivered} of them DELIVERED");
    let mut report = Map::new();
    for page in pages(total, delivered) {
        let path = format!("/v1/messages?limit={LIMIT}&{}", page.query);
        let (timings, answer) = dataset.get_repeatedly(caller, &path, REQUESTS).await;
        let (baseline, counted) = count(&mut connection, caller, &page.condition).await;
        let returned = answer["pagination"]["total"]
            .as_i64()
            .expect("a page shows the total");
        if page.is_exact {
            assert_eq!(
                returned, counted,
                "{}: the total is not the count",
                page.name
            );
        }
        println!(
            "  {:28} p50 {:6.2} ms  p99 {:6.2} ms  floor {:7.1} ms  total {returned} of {counted}",
            page.name,
            timings.p50(),
            timings.p99(),
            baseline.best(),
        );
        let figures = json!({
            "p50_ms": timings.p50(), "p99_ms": timings.p99(), "floor_ms": baseline.best(),
            "total": returned,
        });
        report.insert(page.name, figures);
    }
    Value::Object(report)
}

fn pages(total: i64, delivered: i64) -> Vec<Page> {
    let exact = |name: &str, query: String, condition: String| Page {
        name: name.to_owned(),
        query,
        condition,
        is_exact: true,
    };
    let all = || "true".to_owned();
    let mut pages = vec![
        exact("first page", String::new(), all()),
        exact("page 100", "page=100".to_owned(), all()),
        exact("middle page", format!("page={}", total / LIMIT / 2), all()),
        exact(
            "last page",
            format!("page={}", (total - 1) / LIMIT + 1),
            all(),
        ),
    ];
    for status in STATUSES {
        pages.push(exact(
            &format!("status {status}"),
            format!("status={status}"),
            format!("status = '{status}'"),
        ));
    }
    pages.push(exact(
        "middle page of DELIVERED",
        format!("status=DELIVERED&page={}", delivered / LIMIT / 2),
        "status = 'DELIVERED'".to_owned(),
    ));
    for (what, text) in [
        ("common", COMMON_TEXT),
        ("rare", RARE_TEXT),
        ("nothing", NO_TEXT),
        ("two letters", "zq"),
    ] {
        let encoded = text.replace('#', "%23");
        for status in ["", "BOUNCED"] {
            let (name, query, condition) = if status.is_empty() {
                (
                    what.to_owned(),
                    format!("search={encoded}"),
                    "true".to_owned(),
                )
            } else {
                (
                    format!("{what}, {status}"),
                    format!("search={encoded}&status={status}"),
                    format!("status = '{status}'"),
                )
            };
            pages.push(Page {
                name: format!("search {name}"),
                query,
                condition: format!("{condition} AND subject ILIKE '%{text}%'"),
                is_exact: matches!(what, "rare" | "nothing") && status.is_empty(),
            });
        }
    }
    pages
}

/// The baseline: counting the rows of a page's total.
async fn count(connection: &mut PgConnection, caller: &Caller, condition: &str) -> (Timings, i64) {
    let statement =
        format!("SELECT count(*) FROM messages WHERE organization_id = $1 AND {condition}");
    let mut timings = Timings::default();
    let mut counted = 0;
    for _ in 0..BASELINE_RUNS {
        let began = Instant::now();
        counted = sqlx::query_scalar(AssertSqlSafe(statement.clone()))
            .bind(caller.organization)
            .fetch_one(&mut *connection)
            .await
            .expect("messages can be counted");
        timings.add(began.elapsed());
    }
    (timings, counted)
}
