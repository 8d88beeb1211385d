//! Row 16: pages of messages with exact totals, filtered by status, and searched, against
//! `count(*)` and `ILIKE` over the messages.

use std::time::Instant;

use serde_json::{Map, Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};
use uuid::Uuid;

use crate::dataset::{Caller, Dataset, Timings};
use crate::fill::history::{
    COMMON_TAG, COMMON_TEXT, HUNDREDTH_TAG, NO_TEXT, RARE_TAG, RARE_TEXT, person,
};

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
    total: Total,
}

/// What the total of a page is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Total {
    /// All matches.
    Exact,
    /// All matches, but at most the newest two thousand.
    Capped,
    /// Those that the search covers.
    Covered,
}

/// The matches that the pages of a filter show.
const MATCHES_MAX: i64 = 2_000;

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
    let values = Values::of(&mut connection, caller).await;
    let filters = filters(&values, dataset);
    for page in pages(total, delivered).into_iter().chain(filters) {
        let path = format!("/v1/messages?limit={LIMIT}&{}", page.query);
        let (timings, answer) = dataset.get_repeatedly(caller, &path, REQUESTS).await;
        let (baseline, counted) = count(&mut connection, caller, &page.condition).await;
        let returned = answer["pagination"]["total"]
            .as_i64()
            .expect("a page shows the total");
        let expected = match page.total {
            Total::Exact => counted,
            Total::Capped => counted.min(MATCHES_MAX),
            Total::Covered => returned,
        };
        assert_eq!(returned, expected, "{}: the total is wrong", page.name);
        println!(
            "  {:44} p50 {:6.2} ms  p99 {:6.2} ms  floor {:7.1} ms  total {returned} of {counted}",
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
        total: Total::Exact,
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
                total: if matches!(what, "rare" | "nothing") && status.is_empty() {
                    Total::Exact
                } else {
                    Total::Covered
                },
            });
        }
    }
    pages
}

/// Values of the organization's messages to filter by.
struct Values {
    account: Uuid,
    template: Uuid,
    provider_message_id: String,
}

impl Values {
    async fn of(connection: &mut PgConnection, caller: &Caller) -> Self {
        let row = sqlx::query(
            "SELECT provider_account_id, template_id, provider_message_id
             FROM messages
             WHERE organization_id = $1 AND template_id IS NOT NULL AND provider_message_id IS NOT NULL
             ORDER BY id
             LIMIT 1",
        )
        .bind(caller.organization)
        .fetch_one(connection)
        .await
        .expect("the organization has such a message");
        Self {
            account: row.get("provider_account_id"),
            template: row.get("template_id"),
            provider_message_id: row.get("provider_message_id"),
        }
    }
}

/// A part of a filter: the query's parameter, and the condition in SQL.
type Part = (String, String);

fn tag(tag: &str) -> Part {
    (format!("tag={tag}"), format!("tags @> ARRAY['{tag}']"))
}

fn to(address: &str) -> Part {
    let condition = format!("to_hash = sha256('{address}')");
    (format!("recipient={address}"), condition)
}

fn from(from: &str) -> Part {
    let condition = format!("from_address LIKE '%{from}'");
    (format!("from={from}"), condition)
}

fn of_account(account: Uuid) -> Part {
    let condition = format!("provider_account_id = '{account}'");
    (format!("providerAccountId={account}"), condition)
}

fn of_template(template: Uuid) -> Part {
    let condition = format!("template_id = '{template}'");
    (format!("templateId={template}"), condition)
}

fn of_status(words: &str) -> Part {
    let condition = format!("status::text = ANY(string_to_array('{words}', ','))");
    (format!("status={words}"), condition)
}

/// A week that ended a day before the history was filled in.
fn of_week(dataset: &Dataset) -> Part {
    let (day, week) = (day_before(dataset, 1), day_before(dataset, 8));
    let condition =
        format!("id >= waypost_uuid_floor('{week}') AND id < waypost_uuid_floor('{day}')");
    (format!("createdFrom={week}&createdTo={day}"), condition)
}

/// Each filter with a common and a rare value, and some together.
fn filters(values: &Values, dataset: &Dataset) -> Vec<Page> {
    let page = |(name, parts): (&str, Vec<Part>), total| {
        let (queries, conditions): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        Page {
            name: format!("filter {name}"),
            query: queries.join("&"),
            condition: conditions.join(" AND "),
            total,
        }
    };
    let times = of_week(dataset);
    let both = vec![times.clone(), of_status("BOUNCED,FAILED")];
    let exact = [
        ("two statuses", vec![of_status("BOUNCED,FAILED")]),
        ("a week", vec![times]),
        ("a week, two statuses", both),
    ];
    let exact = exact.into_iter().map(|one| page(one, Total::Exact));
    let capped = single_filters(values)
        .into_iter()
        .chain(combined_filters(values, dataset));
    exact
        .chain(capped.map(|one| page(one, Total::Capped)))
        .collect()
}

fn single_filters(values: &Values) -> Vec<(&'static str, Vec<Part>)> {
    let provider_message_id = &values.provider_message_id;
    let of_provider_id = (
        format!("providerMessageId={provider_message_id}"),
        format!("provider_message_id = '{provider_message_id}'"),
    );
    let singles = [
        ("recipient, rare", to(&person(4_711))),
        ("recipient, none", to("nobody@example.org")),
        ("from address, common", from("hello@mail0.of1.example")),
        ("from domain, common", from("mail0.of1.example")),
        ("from domain, none", from("mail7.of1.example")),
        ("tag, common", tag(COMMON_TAG)),
        ("tag, a hundredth", tag(HUNDREDTH_TAG)),
        ("tag, rare", tag(RARE_TAG)),
        ("template", of_template(values.template)),
        ("account, common", of_account(values.account)),
        ("account, none", of_account(Uuid::nil())),
        ("provider's id", of_provider_id),
    ];
    let singles = singles.into_iter();
    singles.map(|(name, part)| (name, vec![part])).collect()
}

fn combined_filters(values: &Values, dataset: &Dataset) -> Vec<(&'static str, Vec<Part>)> {
    let (account, template) = (of_account(values.account), of_template(values.template));
    let (common, hundredth) = (tag(COMMON_TAG), tag(HUNDREDTH_TAG));
    let (times, person) = (of_week(dataset), to(&person(4_711)));
    let of = |parts: &[&Part]| parts.iter().map(|part| (*part).clone()).collect();
    vec![
        ("common tag, FAILED", of(&[&common, &of_status("FAILED")])),
        ("common tag, QUEUED", of(&[&common, &of_status("QUEUED")])),
        (
            "hundredth tag, BOUNCED or FAILED",
            of(&[&hundredth, &of_status("BOUNCED,FAILED")]),
        ),
        (
            "hundredth tag, template, account",
            of(&[&hundredth, &template, &account]),
        ),
        (
            "template, account, domain",
            of(&[&template, &account, &from("mail0.of1.example")]),
        ),
        ("hundredth tag, a week", of(&[&hundredth, &times])),
        (
            "recipient, common tag, a week",
            of(&[&person, &common, &times]),
        ),
        (
            "everything, rare",
            of(&[&person, &common, &account, &of_status("DELIVERED,SENT")]),
        ),
    ]
}

/// The time so many days before the history was filled in.
fn day_before(dataset: &Dataset, days: i64) -> String {
    let at = dataset.filled_at - chrono::TimeDelta::days(days);
    at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
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
