//! Row 9: metrics of thirty days, through HTTP, against the plain `GROUP BY` over the
//! events. Both must say the same, to the last count.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use chrono::SecondsFormat;
use serde_json::{Map, Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};

use crate::place::{Caller, Place, Timings};

/// All questions are asked in rounds, and the floor is taken once in each: what the machine
/// has to do besides for a few seconds does not fall on one of them alone.
const ROUNDS: usize = 3;
/// Requests of each question in one round.
const REQUESTS: usize = 100;
/// What is asked for.
pub(crate) const P99_MS_MAX: f64 = 10.0;
pub(crate) const FASTER_MIN: f64 = 100.0;
pub(crate) const GROWTH_MAX: f64 = 1.25;
const DAYS: i64 = 30;

/// What is counted, as the series and the breakdown call it, with its event.
const COUNTED: [(&str, &str); 7] = [
    ("sent", "SENT"),
    ("delivered", "DELIVERED"),
    ("opened", "OPENED"),
    ("clicked", "CLICKED"),
    ("bounced", "BOUNCED"),
    ("complained", "COMPLAINED"),
    ("unsubscribed", "UNSUBSCRIBED"),
];

/// A question to the API, and how the same is asked of the events.
#[derive(Debug, Clone, Copy)]
struct Question {
    name: &'static str,
    path: &'static str,
    /// What the events are grouped by, as text.
    grouped_by: &'static str,
    joined: &'static str,
}

const MESSAGES: &str = "JOIN messages m ON m.id = e.message_id";
const QUESTIONS: [Question; 6] = [
    Question {
        name: "summary",
        path: "/summary?",
        grouped_by: "''",
        joined: "",
    },
    Question {
        name: "series by day",
        path: "?granularity=day&",
        grouped_by: "to_char(date_trunc('day', e.occurred_at AT TIME ZONE 'UTC'), 'YYYY-MM-DD HH24:MI:SS')",
        joined: "",
    },
    Question {
        name: "series by hour",
        path: "?granularity=hour&",
        grouped_by: "to_char(date_trunc('hour', e.occurred_at AT TIME ZONE 'UTC'), 'YYYY-MM-DD HH24:MI:SS')",
        joined: "",
    },
    Question {
        name: "by provider",
        path: "/breakdown?groupBy=provider&",
        grouped_by: "p.provider_type::text",
        joined: "JOIN recipients r ON r.message_id = e.message_id AND r.position = e.position
                 JOIN provider_account_types p ON p.provider_account_id = r.provider_account_id",
    },
    Question {
        name: "by domain",
        path: "/breakdown?groupBy=domain&",
        grouped_by: "lower(split_part(m.from_address, '@', -1))",
        joined: MESSAGES,
    },
    Question {
        name: "by template",
        path: "/breakdown?groupBy=template&",
        grouped_by: "coalesce(m.template_id::text, '(none)')",
        joined: MESSAGES,
    },
];

/// Counts by what they are grouped by; groups in which nothing happened are left out.
type Sums = BTreeMap<String, Vec<i64>>;

/// Measures at two sizes, in turns: the machine is not the same from one minute to the
/// next. Answers a report for each: for each question `p50_ms`, `p99_ms`, `floor_ms` and
/// `ratio`.
pub(crate) async fn measure(sizes: [(&Place, &Caller); 2]) -> [Value; 2] {
    let [small, large] = sizes;
    let mut both = [Asked::open(small).await, Asked::open(large).await];
    for _ in 0..ROUNDS {
        for nth in 0..QUESTIONS.len() {
            let mut answers = Vec::new();
            for asked in &mut both {
                answers.push(asked.ask(nth).await);
            }
            for (asked, answer) in both.iter_mut().zip(answers) {
                asked.compare(nth, &answer).await;
            }
        }
    }
    both.map(|asked| asked.report())
}

/// A size, and what was measured of each question: its times, and those of the floor.
struct Asked<'a> {
    place: &'a Place,
    caller: &'a Caller,
    connection: PgConnection,
    measured: [(Timings, Timings); QUESTIONS.len()],
}

impl<'a> Asked<'a> {
    async fn open((place, caller): (&'a Place, &'a Caller)) -> Self {
        let connection = PgConnection::connect(&place.database_url).await;
        Self {
            place,
            caller,
            connection: connection.expect("Postgres answers"),
            measured: Default::default(),
        }
    }

    async fn ask(&mut self, nth: usize) -> Value {
        let (timings, answer) = ask(self.place, self.caller, &QUESTIONS[nth]).await;
        self.measured[nth].0.extend(timings);
        answer
    }

    async fn compare(&mut self, nth: usize, answer: &Value) {
        let question = &QUESTIONS[nth];
        let (took, sums) = sum_up(&mut self.connection, self.place, self.caller, question).await;
        self.measured[nth].1.add(took);
        let name = question.name;
        let shown = shown(question, answer);
        assert_eq!(shown, sums, "{name}: the sums differ from the events");
        assert!(!sums.is_empty(), "{name}: there are no events");
    }

    fn report(self) -> Value {
        let mut report = Map::new();
        for (question, (timings, floor)) in QUESTIONS.iter().zip(self.measured) {
            let ratio = floor.best() / timings.p50();
            println!(
                "  {:9} messages  {:15}  p50 {:6.2} ms  p99 {:6.2} ms  GROUP BY {:8.1} ms  {ratio:6.0} x  sums equal",
                self.place.messages,
                question.name,
                timings.p50(),
                timings.p99(),
                floor.best(),
            );
            let figures = json!({
                "p50_ms": timings.p50(), "p99_ms": timings.p99(), "floor_ms": floor.best(), "ratio": ratio,
            });
            report.insert(question.name.to_owned(), figures);
        }
        Value::Object(report)
    }
}

async fn ask(place: &Place, caller: &Caller, question: &Question) -> (Timings, Value) {
    let time = |at: waypost_core::clock::Timestamp| at.to_rfc3339_opts(SecondsFormat::Millis, true);
    let from = place.filled_at - chrono::TimeDelta::days(DAYS);
    let path = format!(
        "/v1/metrics{}from={}&to={}",
        question.path,
        time(from),
        time(place.filled_at),
    );
    place.ask(caller, &path, REQUESTS).await
}

/// The same from the events themselves: the hours that the period touches. How long it took.
async fn sum_up(
    connection: &mut PgConnection,
    place: &Place,
    caller: &Caller,
    question: &Question,
) -> (Duration, Sums) {
    // Nobody opened twice in the history that was filled in.
    let counts =
        COUNTED.map(|(_, event)| format!("count(*) FILTER (WHERE e.event_type = '{event}')"));
    let counts = counts.join(", ");
    let statement = format!(
        "SELECT {}, {counts}
         FROM events e {}
         WHERE e.organization_id = $1 AND e.event_type NOT IN ('QUEUED', 'DROPPED', 'DEFERRED')
           AND e.occurred_at >= date_trunc('hour', $2, 'UTC') AND e.occurred_at < date_trunc('hour', $3, 'UTC') + interval '1 hour'
         GROUP BY 1",
        question.grouped_by, question.joined,
    );
    let began = Instant::now();
    let rows = sqlx::query(AssertSqlSafe(statement))
        .bind(caller.organization)
        .bind(place.filled_at - chrono::TimeDelta::days(DAYS))
        .bind(place.filled_at)
        .fetch_all(&mut *connection)
        .await
        .expect("events can be counted");
    let took = began.elapsed();
    let read = |row: &sqlx::postgres::PgRow| {
        let counts = (1..=COUNTED.len()).map(|place| row.get::<i64, _>(place));
        (row.get::<String, _>(0), counts.collect::<Vec<_>>())
    };
    let mut sums: Sums = rows.iter().map(read).collect();
    if question.path.starts_with("/breakdown") {
        // The answer does not show the last.
        for counts in sums.values_mut() {
            counts.pop();
        }
    }
    sums.retain(|_, counts| counts.iter().any(|count| *count != 0));
    (took, sums)
}

/// What the API says.
fn shown(question: &Question, answer: &Value) -> Sums {
    let data = &answer["data"];
    let count = |value: &Value| value.as_i64();
    if question.name == "summary" {
        let counts = COUNTED.map(|(name, _)| {
            let field = format!("total{}{}", name[..1].to_uppercase(), &name[1..]);
            count(&data[field]).expect("a summary has all counts")
        });
        return Sums::from([(String::new(), counts.to_vec())]);
    }
    let rows = data.as_array().expect("a list");
    let read = |row: &Value| {
        let name = row["timestamp"].as_str().or(row["name"].as_str());
        let counts = COUNTED.iter().filter_map(|(name, _)| count(&row[name]));
        (name.expect("a name").to_owned(), counts.collect::<Vec<_>>())
    };
    let mut sums: Sums = rows.iter().map(read).collect();
    sums.retain(|_, counts| counts.iter().any(|count| *count != 0));
    sums
}
