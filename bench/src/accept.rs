//! Rows 1 to 4, 14 and 17: the rate at which messages are accepted, with all checks on.

use std::time::Duration;

use serde_json::json;

use crate::Failure;
use crate::fixture::{Builder, Fixture, Plan};
use crate::load::{self, LoadResult, Until, Writer};
use crate::pgbench;
use crate::report::{Bound, Figure, Report};
use crate::requests::{self, BATCH, RECIPIENTS};
use crate::{progress, usage};

/// Warm-up before each measurement.
pub(crate) const WARM_UP: Duration = Duration::from_secs(1);
const MEASURE_TIME: Duration = Duration::from_secs(6);
/// Duration of one round; two kinds of request alternate.
const ROUND_TIME: Duration = Duration::from_secs(2);
const BASELINE_TIME: Duration = Duration::from_secs(5);
/// Connections of the load: few and many.
pub(crate) const CONNECTIONS: [usize; 2] = [64, 256];
/// Required ratio to the baseline, for each number of connections.
const RATIOS_MIN: [f64; 2] = [1.5, 2.0];

/// Measures these rows.
pub(crate) async fn run(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    let plan = Plan::ACCEPTING;
    let mut best: f64 = 0.0;
    let mut numbers = RequestNumbers(0);
    for (connections, least) in CONNECTIONS.into_iter().zip(RATIOS_MIN) {
        let fixture = builder.fixture(plan).await?;
        let sends = requests::sends(&builder.tenants);
        closed_loop(&fixture, connections, WARM_UP, &mut numbers, &sends).await?;
        let before = fixture.cpu();
        let sending = closed_loop(&fixture, connections, MEASURE_TIME, &mut numbers, &sends);
        let (answers, memory) = usage::peak_mib(fixture.apis[0].id(), sending).await;
        let (answers, cpu) = (answers?, fixture.cpu().since(before));
        fixture.remove(builder).await?;
        let baseline = baseline(builder, connections).await?;
        let ratio = answers.per_second() / baseline.per_second;
        best = best.max(answers.per_second());
        report.add(Figure {
            row: "1",
            what: &format!("sends, {connections} connections"),
            figure: rate(&answers),
            baseline: format!("{:.0}/s pgbench", baseline.per_second),
            ratio: Some(ratio),
            bound: Bound::AtLeast(least),
        });
        report.add(Figure {
            row: "14",
            what: "memory of the API under it, MiB",
            figure: format!("{memory:.0}"),
            baseline: String::new(),
            ratio: Some(memory),
            bound: Bound::AtMost(64.0),
        });
        report.keep("accept", &format!("c{connections}"), json!({
            "per_second": answers.per_second(), "p50_ms": answers.percentile_ms(50.0),
            "p99_ms": answers.percentile_ms(99.0), "floor_per_second": baseline.per_second, "ratio": ratio,
            "api_pss_mib": memory, "cpu": cpu.per_message(answers.count),
        }));
        progress(cpu.per_message(answers.count));
    }
    at_half_rate(builder, report, best, &mut numbers).await?;
    batches_and_large(builder, report, best, &mut numbers).await?;
    templated(builder, report, &mut numbers).await
}

/// Row 2.
async fn at_half_rate(
    builder: &Builder,
    report: &mut Report,
    best: f64,
    numbers: &mut RequestNumbers,
) -> Result<(), Failure> {
    let fixture = builder.fixture(Plan::ACCEPTING).await?;
    let sends = requests::sends(&builder.tenants);
    closed_loop(&fixture, 64, WARM_UP, numbers, &sends).await?;
    let rate = best / 2.0;
    let count = (rate * MEASURE_TIME.as_secs_f64()) as u64;
    let sends = numbers.shifted(count, &sends);
    let answers = load::open(&fixture.addresses, 64, rate, count, sends)
        .await?
        .require_success()?;
    fixture.remove(builder).await?;
    let baseline = baseline(builder, 1).await?;
    let p99 = answers.percentile_ms(99.0);
    let ratio = p99 / baseline.latency_ms;
    report.add(Figure {
        row: "2",
        what: &format!("p99 at {rate:.0} sends/s"),
        figure: format!("{p99:.2} ms (p50 {:.2})", answers.percentile_ms(50.0)),
        baseline: format!("{:.2} ms pgbench", baseline.latency_ms),
        ratio: Some(ratio),
        bound: Bound::AtMost(12.0),
    });
    report.keep("accept", "half", json!({
        "per_second": answers.per_second(), "p50_ms": answers.percentile_ms(50.0), "p99_ms": p99,
        "floor_ms": baseline.latency_ms, "ratio": ratio,
    }));
    Ok(())
}

/// Rows 3 and 4.
async fn batches_and_large(
    builder: &Builder,
    report: &mut Report,
    best: f64,
    numbers: &mut RequestNumbers,
) -> Result<(), Failure> {
    let plan = Plan::ACCEPTING;
    let rows = [
        (
            "3",
            "messages in batches of 100",
            "batch",
            requests::batches(&builder.tenants),
            BATCH,
            2.0,
        ),
        (
            "4",
            "recipients of sends to 1,000",
            "large",
            requests::large(&builder.tenants),
            RECIPIENTS,
            4.0,
        ),
    ];
    for (row, what, name, write, each, least) in rows {
        let fixture = builder.fixture(plan).await?;
        closed_loop(&fixture, 8, WARM_UP, numbers, &write).await?;
        let before = fixture.cpu();
        let answers = closed_loop(&fixture, 8, MEASURE_TIME, numbers, &write).await?;
        let cpu = fixture.cpu().since(before);
        fixture.remove(builder).await?;
        let per_second = answers.per_second() * each as f64;
        let ratio = per_second / best;
        report.add(Figure {
            row,
            what,
            figure: format!("{per_second:.0}/s"),
            baseline: format!("{best:.0}/s sends"),
            ratio: Some(ratio),
            bound: Bound::AtLeast(least),
        });
        report.keep("accept", name, json!({
            "per_second": per_second, "p50_ms": answers.percentile_ms(50.0), "p99_ms": answers.percentile_ms(99.0),
            "floor_per_second": best, "ratio": ratio, "cpu": cpu.per_message(answers.count * each),
        }));
    }
    Ok(())
}

/// Row 17. The two kinds of request alternate, since the machine's speed changes from one
/// minute to the next.
async fn templated(
    builder: &Builder,
    report: &mut Report,
    numbers: &mut RequestNumbers,
) -> Result<(), Failure> {
    let fixture = builder.fixture(Plan::ACCEPTING).await?;
    let writes = [
        requests::sends(&builder.tenants),
        requests::templated(&builder.tenants),
    ];
    for write in &writes {
        closed_loop(&fixture, 64, WARM_UP, numbers, write).await?;
    }
    let (mut seconds, mut counts) = ([0.0; 2], [0; 2]);
    // The order alternates, so that neither kind always comes first.
    for which in [0, 1, 1, 0, 0, 1, 1, 0] {
        let before = fixture.cpu();
        let answers = closed_loop(&fixture, 64, ROUND_TIME, numbers, &writes[which]).await?;
        seconds[which] += fixture.cpu().since(before).sum();
        counts[which] += answers.count;
    }
    fixture.remove(builder).await?;
    let costs = [0, 1].map(|which| seconds[which] / counts[which] as f64 * 1e6);
    let ratio = costs[1] / costs[0];
    report.add(Figure {
        row: "17",
        what: "CPU of a send with a stored template of 4 KB",
        figure: format!("{:.0} µs", costs[1]),
        baseline: format!("{:.0} µs with html", costs[0]),
        ratio: Some(ratio),
        bound: Bound::AtMost(1.2),
    });
    report.keep(
        "accept",
        "template",
        json!({ "cpu_us": costs[1], "floor_cpu_us": costs[0], "ratio": ratio }),
    );
    Ok(())
}

/// Hands out request numbers; no two requests of a run share one.
#[derive(Debug)]
pub(crate) struct RequestNumbers(pub(crate) u64);

impl RequestNumbers {
    /// The same requests, numbered from the next free number on.
    pub(crate) fn shifted(&mut self, count: u64, write: &Writer) -> Writer {
        let (first, write) = (self.0, Writer::clone(write));
        self.0 += count;
        Writer::from(
            std::sync::Arc::new(move |number: u64, request: &mut Vec<u8>| {
                write(first + number, request);
            }) as Writer,
        )
    }
}

/// Runs a closed loop for `time`; every request must succeed.
pub(crate) async fn closed_loop(
    fixture: &Fixture,
    connections: usize,
    time: Duration,
    numbers: &mut RequestNumbers,
    write: &Writer,
) -> Result<LoadResult, Failure> {
    let until = Until::Elapsed(time);
    let answers = load::closed_loop(
        &fixture.addresses,
        connections,
        numbers.0,
        until,
        Writer::clone(write),
    )
    .await?;
    numbers.0 += answers.count + connections as u64;
    answers.require_success()
}

fn rate(answers: &LoadResult) -> String {
    let (p50, p99) = (answers.percentile_ms(50.0), answers.percentile_ms(99.0));
    format!("{:.0}/s p50 {p50:.1} p99 {p99:.1}", answers.per_second())
}

/// Writes the same rows into tables of the same shape, one message per transaction, in
/// one statement; half of the transactions insert an idempotency key. No triggers, no
/// partitions, and ids from a sequence.
pub(crate) async fn baseline(
    builder: &Builder,
    clients: usize,
) -> Result<pgbench::Pgbench, Failure> {
    baseline_at(builder, clients, None).await
}

/// The same, limited to this many transactions per second.
pub(crate) async fn baseline_at(
    builder: &Builder,
    clients: usize,
    rate: Option<f64>,
) -> Result<pgbench::Pgbench, Failure> {
    let database = builder.database().await?;
    let url = builder.database_url(&database)?;
    prepare_baseline(&url).await?;
    let scripts = [(baseline_script(false), 1), (baseline_script(true), 1)];
    let scripts: Vec<(&str, u32)> = scripts
        .iter()
        .map(|(text, weight)| (text.as_str(), *weight))
        .collect();
    let baseline = pgbench::run(builder, &url, (clients, rate), BASELINE_TIME, &scripts).await?;
    builder
        .execute(&format!("DROP DATABASE {database} WITH (FORCE)"))
        .await?;
    Ok(baseline)
}

async fn prepare_baseline(url: &str) -> Result<(), Failure> {
    use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
    let mut connection = PgConnection::connect(url).await?;
    let tables = [
        "messages",
        "message_bodies",
        "recipients",
        "outbox",
        "new_messages",
        "idempotency_keys",
    ];
    let mut statements =
        "CREATE SCHEMA baseline; CREATE SEQUENCE baseline.ids CACHE 1000;".to_owned();
    for table in tables {
        statements.push_str(&format!(
            "CREATE TABLE baseline.{table} (LIKE public.{table} INCLUDING ALL);"
        ));
    }
    sqlx::raw_sql(AssertSqlSafe(statements))
        .execute(&mut connection)
        .await?;
    connection.close().await?;
    Ok(())
}

fn baseline_script(is_keyed: bool) -> String {
    let html = requests::html();
    let key_insert = if is_keyed {
        ", key AS (INSERT INTO baseline.idempotency_keys (organization_id, key_hash, body_hash, answer, created_at)
           SELECT organization_id, uuid_send(id) || uuid_send(id), uuid_send(id) || uuid_send(id),
                  uuid_send(id) || uuid_send(id), now() FROM new ON CONFLICT DO NOTHING)"
    } else {
        ""
    };
    let statement = format!(
        "WITH new AS (SELECT lpad(to_hex(nextval('baseline.ids')), 32, '0')::uuid AS id,
                             lpad(to_hex(:tenant::int), 32, '0')::uuid AS organization_id),
           message AS (INSERT INTO baseline.messages (id, organization_id, provider_account_id, from_address, to_hash,
                           subject, status, tags, recipient_count, created_at, routing_rule_id)
                       SELECT id, organization_id, organization_id, 'news@example.com',
                              uuid_send(id) || uuid_send(id), 'Order', 'QUEUED', '{{receipt}}', 1, now(),
                              organization_id
                       FROM new),
           body AS (INSERT INTO baseline.message_bodies (message_id, organization_id, from_mailbox, html)
                    SELECT id, organization_id, 'Bench <news@example.com>', '{html}' FROM new),
           recipient AS (INSERT INTO baseline.recipients (message_id, position, organization_id, address_sealed,
                             address_hash, status, next_attempt_at)
                         SELECT id, 0, organization_id, uuid_send(id) || uuid_send(id) || uuid_send(id) || uuid_send(id),
                                uuid_send(id) || uuid_send(id), 'QUEUED', 'epoch'
                         FROM new),
           waiting AS (INSERT INTO baseline.new_messages (organization_id, message_id, status, subject)
                       SELECT organization_id, id, 'QUEUED', 'order' FROM new){key_insert}
         INSERT INTO baseline.outbox (message_id, chunk, organization_id, wake_at)
         SELECT id, 0, organization_id, now() FROM new;"
    );
    // pgbench reads a colon before a name as a variable; a cast has two colons.
    format!(
        "\\set tenant random(1, 100)\n{}\n",
        statement.replace('\n', " ")
    )
}
