//! Row 9: metrics of thirty days, through HTTP, against the plain `GROUP BY` over the
//! events. Both must return the same counts.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use chrono::SecondsFormat;
use serde_json::{Map, Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};

use crate::dataset::{Caller, Dataset, Timings};

/// Each query runs in every round, and so does its baseline: other work of the machine, a
/// few seconds long, does not distort just one of them.
const ROUNDS: usize = 3;
/// Requests of each query in one round.
const REQUESTS: usize = 100;
/// The bounds.
pub(crate) const P99_MS_MAX: f64 = 10.0;
pub(crate) const FASTER_MIN: f64 = 100.0;
pub(crate) const GROWTH_MAX: f64 = 1.25;
const DAYS: i64 = 30;

/// The counts, as series and breakdown name them, with their events.
const COUNTED: [(&str, &str); 7] = [
    ("sent", "SENT"),
    ("delivered", "DELIVERED"),
    ("opened", "OPENED"),
    ("clicked", "CLICKED"),
    ("bounced", "BOUNCED"),
    ("complained", "COMPLAINED"),
    ("unsubscribed", "UNSUBSCRIBED"),
];

/// A metrics request, and the SQL that counts the same from the events.
#[derive(Debug, Clone, Copy)]
struct Query {
    name: &'static str,
    path: &'static str,
    /// The expression by which the events are grouped, as text.
    grouped_by: &'static str,
    joined: &'static str,
    /// A condition, beside the period.
    filtered: &'static str,
}

const MESSAGES: &str = "JOIN messages m ON m.id = e.message_id";
const RECIPIENTS: &str =
    "JOIN recipients r ON r.message_id = e.message_id AND r.position = e.position";
const QUERIES: [Query; 10] = [
    Query {
        name: "summary",
        path: "/summary?",
        grouped_by: "''",
        joined: "",
        filtered: "true",
    },
    Query {
        name: "series by day",
        path: "?granularity=day&",
        grouped_by: "to_char(date_trunc('day', e.occurred_at AT TIME ZONE 'UTC'), 'YYYY-MM-DD HH24:MI:SS')",
        joined: "",
        filtered: "true",
    },
    Query {
        name: "series by hour",
        path: "?granularity=hour&",
        grouped_by: "to_char(date_trunc('hour', e.occurred_at AT TIME ZONE 'UTC'), 'YYYY-MM-DD HH24:MI:SS')",
        joined: "",
        filtered: "true",
    },
    Query {
        name: "by provider",
        path: "/breakdown?groupBy=provider&",
        grouped_by: "p.provider_type::text",
        joined: "JOIN recipients r ON r.message_id = e.message_id AND r.position = e.position
                 JOIN provider_account_types p ON p.provider_account_id = r.provider_account_id",
        filtered: "true",
    },
    Query {
        name: "by domain",
        path: "/breakdown?groupBy=domain&",
        grouped_by: "lower(split_part(m.from_address, '@', -1))",
        joined: MESSAGES,
        filtered: "true",
    },
    Query {
        name: "by template",
        path: "/breakdown?groupBy=template&",
        grouped_by: "coalesce(m.template_id::text, '(none)')",
        joined: MESSAGES,
        filtered: "true",
    },
    Query {
        name: "in Tokyo",
        path: "?granularity=day&timeZone=Asia/Tokyo&",
        grouped_by: "to_char(date_trunc('day', e.occurred_at AT TIME ZONE 'Asia/Tokyo'), 'YYYY-MM-DD HH24:MI:SS')",
        joined: "",
        filtered: "true",
    },
    Query {
        name: "by account",
        path: "/breakdown?groupBy=account&",
        grouped_by: "r.provider_account_id::text",
        joined: RECIPIENTS,
        filtered: "true",
    },
    Query {
        name: "by their domain",
        path: "/breakdown?groupBy=recipientDomain&",
        grouped_by: "r.domain",
        joined: RECIPIENTS,
        filtered: "true",
    },
    Query {
        name: "of a tag",
        path: "/breakdown?groupBy=template&tag=invoices&",
        grouped_by: "coalesce(m.template_id::text, '(none)')",
        joined: MESSAGES,
        filtered: "m.tags @> ARRAY['invoices']",
    },
];

/// Counts by group, without groups whose counts are all zero.
type Sums = BTreeMap<String, Vec<i64>>;

/// Measures both sizes in alternation, since the machine's speed changes from one minute
/// to the next. Returns for each size and query `p50_ms`, `p99_ms`, `floor_ms` and
/// `ratio`.
pub(crate) async fn measure(sizes: [(&Dataset, &Caller); 2]) -> [Value; 2] {
    let [small, large] = sizes;
    let mut both = [
        Measurement::open(small).await,
        Measurement::open(large).await,
    ];
    for _ in 0..ROUNDS {
        for nth in 0..QUERIES.len() {
            let mut answers = Vec::new();
            for measurement in &mut both {
                answers.push(measurement.request(nth).await);
            }
            for (measurement, answer) in both.iter_mut().zip(answers) {
                measurement.compare(nth, &answer).await;
            }
        }
    }
    both.map(|measurement| measurement.report())
}

/// A dataset, and for each query the timings of the API and of the baseline.
struct Measurement<'a> {
    dataset: &'a Dataset,
    caller: &'a Caller,
    connection: PgConnection,
    measured: [(Timings, Timings); QUERIES.len()],
}

impl<'a> Measurement<'a> {
    async fn open((dataset, caller): (&'a Dataset, &'a Caller)) -> Self {
        let connection = PgConnection::connect(&dataset.database_url).await;
        Self {
            dataset,
            caller,
            connection: connection.expect("Postgres answers"),
            measured: Default::default(),
        }
    }

    async fn request(&mut self, nth: usize) -> Value {
        let (timings, answer) = request(self.dataset, self.caller, &QUERIES[nth]).await;
        self.measured[nth].0.extend(timings);
        answer
    }

    async fn compare(&mut self, nth: usize, answer: &Value) {
        let query = &QUERIES[nth];
        let (took, sums) =
            count_events(&mut self.connection, self.dataset, self.caller, query).await;
        self.measured[nth].1.add(took);
        let name = query.name;
        let counts_in = counts_in(query, answer);
        assert_eq!(counts_in, sums, "{name}: the sums differ from the events");
        assert!(!sums.is_empty(), "{name}: there are no events");
    }

    fn report(self) -> Value {
        let mut report = Map::new();
        for (query, (timings, baseline)) in QUERIES.iter().zip(self.measured) {
            let ratio = baseline.best() / timings.p50();
            println!(
                "  {:9} messages  {:15}  p50 {:6.2} ms  p99 {:6.2} ms  GROUP BY {:8.1} ms  {ratio:6.0} x  sums equal",
                self.dataset.messages,
                query.name,
                timings.p50(),
                timings.p99(),
                baseline.best(),
            );
            let figures = json!({
                "p50_ms": timings.p50(), "p99_ms": timings.p99(), "floor_ms": baseline.best(), "ratio": ratio,
            });
            report.insert(query.name.to_owned(), figures);
        }
        Value::Object(report)
    }
}

async fn request(dataset: &Dataset, caller: &Caller, query: &Query) -> (Timings, Value) {
    let time = |at: waypost_core::clock::Timestamp| at.to_rfc3339_opts(SecondsFormat::Millis, true);
    let from = dataset.filled_at - chrono::TimeDelta::days(DAYS);
    let path = format!(
        "/v1/metrics{}from={}&to={}",
        query.path,
        time(from),
        time(dataset.filled_at),
    );
    dataset.get_repeatedly(caller, &path, REQUESTS).await
}

/// Counts the events in the hours that the period touches. Returns the duration and the
/// counts.
async fn count_events(
    connection: &mut PgConnection,
    dataset: &Dataset,
    caller: &Caller,
    query: &Query,
) -> (Duration, Sums) {
    // The generated history has no message that was opened twice.
    let counts =
        COUNTED.map(|(_, event)| format!("count(*) FILTER (WHERE e.event_type = '{event}')"));
    let counts = counts.join(", ");
    let statement = format!(
        "SELECT {}, {counts}
         FROM events e {}
         WHERE e.organization_id = $1 AND {} AND e.event_type NOT IN ('QUEUED', 'DROPPED', 'DEFERRED')
           AND e.occurred_at >= date_trunc('hour', $2, 'UTC') AND e.occurred_at < date_trunc('hour', $3, 'UTC') + interval '1 hour'
         GROUP BY 1",
        query.grouped_by, query.joined, query.filtered,
    );
    let began = Instant::now();
    let rows = sqlx::query(AssertSqlSafe(statement))
        .bind(caller.organization)
        .bind(dataset.filled_at - chrono::TimeDelta::days(DAYS))
        .bind(dataset.filled_at)
        .fetch_all(&mut *connection)
        .await
        .expect("events can be counted");
    let took = began.elapsed();
    let read = |row: &sqlx::postgres::PgRow| {
        let counts = (1..=COUNTED.len()).map(|column| row.get::<i64, _>(column));
        (row.get::<String, _>(0), counts.collect::<Vec<_>>())
    };
    let mut sums: Sums = rows.iter().map(read).collect();
    if query.path.starts_with("/breakdown") {
        // The response does not contain the last count.
        for counts in sums.values_mut() {
            counts.pop();
        }
    }
    sums.retain(|_, counts| counts.iter().any(|count| *count != 0));
    (took, sums)
}

/// The counts in the API's response.
fn counts_in(query: &Query, answer: &Value) -> Sums {
    let data = &answer["data"];
    let count = |value: &Value| value.as_i64();
    if query.name == "summary" {
        let counts = COUNTED.map(|(name, _)| {
            let field = format!("total{}{}", name[..1].to_uppercase(), &name[1..]);
            count(&data[field]).expect("a summary has all counts")
        });
        return Sums::from([(String::new(), counts.to_vec())]);
    }
    let rows = data.as_array().expect("a list");
    let read = |row: &Value| {
        let name = ["timestamp", "id", "name"]
            .iter()
            .find_map(|name| row[*name].as_str());
        let counts = COUNTED.iter().filter_map(|(name, _)| count(&row[name]));
        (name.expect("a name").to_owned(), counts.collect::<Vec<_>>())
    };
    let mut sums: Sums = rows.iter().map(read).collect();
    sums.retain(|_, counts| counts.iter().any(|count| *count != 0));
    sums
}
