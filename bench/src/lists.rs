//! Row 16: pages of messages with exact totals, of one status, and searched, against
//! `count(*)` and `ILIKE` over the messages.

use std::time::Instant;

use serde_json::{Map, Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::fill::history::{COMMON_TEXT, NO_TEXT, RARE_TEXT};
use crate::place::{Caller, Place, Timings};

/// Requests of each page.
const REQUESTS: usize = 200;
/// Rows of a page.
const LIMIT: i64 = 50;
/// How often the floor is taken.
const FLOOR_TIMES: usize = 3;
/// What is asked for.
pub(crate) const P99_MS_MAX: f64 = 25.0;

const STATUSES: [&str; 6] = [
    "QUEUED",
    "SENDING",
    "SENT",
    "DELIVERED",
    "BOUNCED",
    "FAILED",
];

/// A page, and the total that it must show.
struct Asked {
    name: String,
    query: String,
    /// The condition of the floor.
    condition: String,
    /// Whether the total is exact: a search lists the newest two thousand.
    is_exact: bool,
}

/// Measures the pages of one organization's messages. Answers the report: for each page
/// `p50_ms`, `p99_ms`, `floor_ms` and `total`.
pub(crate) async fn measure(place: &Place, caller: &Caller) -> Value {
    let connection = PgConnection::connect(&place.database_url).await;
    let mut connection = connection.expect("Postgres answers");
    let total = count(&mut connection, caller, "true").await.1;
    let delivered = count(&mut connection, caller, "status = 'DELIVERED'")
        .await
        .1;
    println!("  the organization has {total} messages, {delivered} of them DELIVERED");
    let mut report = Map::new();
    for asked in pages(total, delivered) {
        let path = format!("/v1/messages?limit={LIMIT}&{}", asked.query);
        let (timings, answer) = place.ask(caller, &path, REQUESTS).await;
        let (floor, counted) = count(&mut connection, caller, &asked.condition).await;
        let shown = answer["pagination"]["total"]
            .as_i64()
            .expect("a page shows the total");
        if asked.is_exact {
            assert_eq!(shown, counted, "{}: the total is not the count", asked.name);
        }
        println!(
            "  {:28} p50 {:6.2} ms  p99 {:6.2} ms  floor {:7.1} ms  total {shown} of {counted}",
            asked.name,
            timings.p50(),
            timings.p99(),
            floor.best(),
        );
        let figures = json!({
            "p50_ms": timings.p50(), "p99_ms": timings.p99(), "floor_ms": floor.best(),
            "total": shown,
        });
        report.insert(asked.name, figures);
    }
    Value::Object(report)
}

fn pages(total: i64, delivered: i64) -> Vec<Asked> {
    let exact = |name: &str, query: String, condition: String| Asked {
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
            pages.push(Asked {
                name: format!("search {name}"),
                query,
                condition: format!("{condition} AND subject ILIKE '%{text}%'"),
                is_exact: matches!(what, "rare" | "nothing") && status.is_empty(),
            });
        }
    }
    pages
}

/// The floor: what a page's total costs when it is counted.
async fn count(connection: &mut PgConnection, caller: &Caller, condition: &str) -> (Timings, i64) {
    let statement =
        format!("SELECT count(*) FROM messages WHERE organization_id = $1 AND {condition}");
    let mut timings = Timings::default();
    let mut counted = 0;
    for _ in 0..FLOOR_TIMES {
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
