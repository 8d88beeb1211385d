//! Rows 1 to 4, 14 and 17: how fast messages are accepted, with all checks on.

use std::time::Duration;

use serde_json::json;

use crate::Failure;
use crate::house::{Builder, House, Plan};
use crate::load::{self, Answers, Until, Writer};
use crate::pgbench;
use crate::report::{Bound, Figure, Report};
use crate::requests::{self, BATCH, RECIPIENTS};
use crate::{say, usage};

/// What comes before anything is measured.
pub(crate) const WARM: Duration = Duration::from_secs(1);
const MEASURED: Duration = Duration::from_secs(6);
/// How long each is measured before it is the other's turn.
const ROUND: Duration = Duration::from_secs(2);
const FLOOR: Duration = Duration::from_secs(5);
/// Connections that send, few and many.
pub(crate) const CONNECTIONS: [usize; 2] = [64, 256];
/// How many floors are to be reached with each.
const LEAST: [f64; 2] = [1.5, 2.0];

/// Measures them.
pub(crate) async fn run(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    let plan = Plan::ACCEPTING;
    let mut best: f64 = 0.0;
    let mut numbers = Numbers(0);
    for (connections, least) in CONNECTIONS.into_iter().zip(LEAST) {
        let house = builder.house(plan).await?;
        let sends = requests::sends(&builder.tenants);
        closed(&house, connections, WARM, &mut numbers, &sends).await?;
        let before = house.cpu();
        let sending = closed(&house, connections, MEASURED, &mut numbers, &sends);
        let (answers, memory) = usage::peak_mib(house.apis[0].id(), sending).await;
        let (answers, cpu) = (answers?, house.cpu().since(before));
        house.remove(builder).await?;
        let floor = floor(builder, connections).await?;
        let ratio = answers.per_second() / floor.per_second;
        best = best.max(answers.per_second());
        report.add(Figure {
            row: "1",
            what: &format!("sends, {connections} connections"),
            figure: rate(&answers),
            floor: format!("{:.0}/s pgbench", floor.per_second),
            ratio: Some(ratio),
            bound: Bound::AtLeast(least),
        });
        report.add(Figure {
            row: "14",
            what: "memory of the API under it, MiB",
            figure: format!("{memory:.0}"),
            floor: String::new(),
            ratio: Some(memory),
            bound: Bound::AtMost(64.0),
        });
        report.keep("accept", &format!("c{connections}"), json!({
            "per_second": answers.per_second(), "p50_ms": answers.percentile_ms(50.0),
            "p99_ms": answers.percentile_ms(99.0), "floor_per_second": floor.per_second, "ratio": ratio,
            "api_pss_mib": memory, "cpu": cpu.per_message(answers.count),
        }));
        say(cpu.per_message(answers.count));
    }
    half(builder, report, best, &mut numbers).await?;
    many(builder, report, best, &mut numbers).await?;
    templated(builder, report, &mut numbers).await
}

/// Row 2.
async fn half(
    builder: &Builder,
    report: &mut Report,
    best: f64,
    numbers: &mut Numbers,
) -> Result<(), Failure> {
    let house = builder.house(Plan::ACCEPTING).await?;
    let sends = requests::sends(&builder.tenants);
    closed(&house, 64, WARM, numbers, &sends).await?;
    let pace = best / 2.0;
    let count = (pace * MEASURED.as_secs_f64()) as u64;
    let sends = numbers.shifted(count, &sends);
    let answers = load::open(&house.addresses, 64, pace, count, sends)
        .await?
        .all_taken()?;
    house.remove(builder).await?;
    let floor = floor(builder, 1).await?;
    let p99 = answers.percentile_ms(99.0);
    let ratio = p99 / floor.latency_ms;
    report.add(Figure {
        row: "2",
        what: &format!("p99 at {pace:.0} sends/s"),
        figure: format!("{p99:.2} ms (p50 {:.2})", answers.percentile_ms(50.0)),
        floor: format!("{:.2} ms pgbench", floor.latency_ms),
        ratio: Some(ratio),
        bound: Bound::AtMost(12.0),
    });
    report.keep("accept", "half", json!({
        "per_second": answers.per_second(), "p50_ms": answers.percentile_ms(50.0), "p99_ms": p99,
        "floor_ms": floor.latency_ms, "ratio": ratio,
    }));
    Ok(())
}

/// Rows 3 and 4.
async fn many(
    builder: &Builder,
    report: &mut Report,
    best: f64,
    numbers: &mut Numbers,
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
        let house = builder.house(plan).await?;
        closed(&house, 8, WARM, numbers, &write).await?;
        let before = house.cpu();
        let answers = closed(&house, 8, MEASURED, numbers, &write).await?;
        let cpu = house.cpu().since(before);
        house.remove(builder).await?;
        let per_second = answers.per_second() * each as f64;
        let ratio = per_second / best;
        report.add(Figure {
            row,
            what,
            figure: format!("{per_second:.0}/s"),
            floor: format!("{best:.0}/s sends"),
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

/// Row 17. Both take turns, since the machine is not the same from one minute to the next.
async fn templated(
    builder: &Builder,
    report: &mut Report,
    numbers: &mut Numbers,
) -> Result<(), Failure> {
    let house = builder.house(Plan::ACCEPTING).await?;
    let writes = [
        requests::sends(&builder.tenants),
        requests::templated(&builder.tenants),
    ];
    for write in &writes {
        closed(&house, 64, WARM, numbers, write).await?;
    }
    let (mut seconds, mut counts) = ([0.0; 2], [0; 2]);
    // Whichever came last goes first.
    for which in [0, 1, 1, 0, 0, 1, 1, 0] {
        let before = house.cpu();
        let answers = closed(&house, 64, ROUND, numbers, &writes[which]).await?;
        seconds[which] += house.cpu().since(before).sum();
        counts[which] += answers.count;
    }
    house.remove(builder).await?;
    let costs = [0, 1].map(|which| seconds[which] / counts[which] as f64 * 1e6);
    let ratio = costs[1] / costs[0];
    report.add(Figure {
        row: "17",
        what: "CPU of a send with a stored template of 4 KB",
        figure: format!("{:.0} µs", costs[1]),
        floor: format!("{:.0} µs with html", costs[0]),
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

/// Numbers that no other request of the run has.
#[derive(Debug)]
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    /// The same requests, beginning with the next number.
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

/// A closed loop for so long, all of whose requests have to be taken.
pub(crate) async fn closed(
    house: &House,
    connections: usize,
    time: Duration,
    numbers: &mut Numbers,
    write: &Writer,
) -> Result<Answers, Failure> {
    let until = Until::Elapsed(time);
    let answers = load::closed(
        &house.addresses,
        connections,
        numbers.0,
        until,
        Writer::clone(write),
    )
    .await?;
    numbers.0 += answers.count + connections as u64;
    answers.all_taken()
}

fn rate(answers: &Answers) -> String {
    let (p50, p99) = (answers.percentile_ms(50.0), answers.percentile_ms(99.0));
    format!("{:.0}/s p50 {p50:.1} p99 {p99:.1}", answers.per_second())
}

/// The same rows in tables of the same shape, one message a transaction, as one
/// statement; half of the transactions claim an idempotency key. Without our triggers,
/// without partitions, and with ids that cost nothing.
pub(crate) async fn floor(builder: &Builder, clients: usize) -> Result<pgbench::Pgbench, Failure> {
    floor_at(builder, clients, None).await
}

/// The same at so many transactions a second.
pub(crate) async fn floor_at(
    builder: &Builder,
    clients: usize,
    rate: Option<f64>,
) -> Result<pgbench::Pgbench, Failure> {
    let database = builder.database().await?;
    let url = builder.url_of(&database)?;
    prepare_floor(&url).await?;
    let scripts = [(floor_script(false), 1), (floor_script(true), 1)];
    let scripts: Vec<(&str, u32)> = scripts
        .iter()
        .map(|(text, weight)| (text.as_str(), *weight))
        .collect();
    let floor = pgbench::run(builder, &url, (clients, rate), FLOOR, &scripts).await?;
    builder
        .execute(&format!("DROP DATABASE {database} WITH (FORCE)"))
        .await?;
    Ok(floor)
}

async fn prepare_floor(url: &str) -> Result<(), Failure> {
    use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
    let mut connection = PgConnection::connect(url).await?;
    let tables = [
        "messages",
        "message_bodies",
        "recipients",
        "events",
        "outbox",
        "new_messages",
        "idempotency_keys",
    ];
    let mut statements = "CREATE SCHEMA floor; CREATE SEQUENCE floor.ids CACHE 1000;".to_owned();
    for table in tables {
        statements.push_str(&format!(
            "CREATE TABLE floor.{table} (LIKE public.{table} INCLUDING ALL);"
        ));
    }
    sqlx::raw_sql(AssertSqlSafe(statements))
        .execute(&mut connection)
        .await?;
    connection.close().await?;
    Ok(())
}

fn floor_script(is_keyed: bool) -> String {
    let html = requests::html();
    let claim = if is_keyed {
        ", key AS (INSERT INTO floor.idempotency_keys (organization_id, key_hash, body_hash, answer, created_at)
           SELECT organization_id, uuid_send(id) || uuid_send(id), uuid_send(id) || uuid_send(id),
                  uuid_send(id) || uuid_send(id), now() FROM new ON CONFLICT DO NOTHING)"
    } else {
        ""
    };
    let statement = format!(
        "WITH new AS (SELECT lpad(to_hex(nextval('floor.ids')), 32, '0')::uuid AS id,
                             lpad(to_hex(:tenant::int), 32, '0')::uuid AS organization_id),
           message AS (INSERT INTO floor.messages (id, organization_id, provider_account_id, from_address, to_hash,
                           subject, status, tags, recipient_count, created_at, routing_rule_id)
                       SELECT id, organization_id, organization_id, 'news@example.com',
                              uuid_send(id) || uuid_send(id), 'Order', 'QUEUED', '{{receipt}}', 1, now(),
                              organization_id
                       FROM new),
           body AS (INSERT INTO floor.message_bodies (message_id, organization_id, from_mailbox, html)
                    SELECT id, organization_id, 'Bench <news@example.com>', '{html}' FROM new),
           recipient AS (INSERT INTO floor.recipients (message_id, position, organization_id, address_sealed,
                             address_hash, status, next_attempt_at)
                         SELECT id, 0, organization_id, uuid_send(id) || uuid_send(id) || uuid_send(id) || uuid_send(id),
                                uuid_send(id) || uuid_send(id), 'QUEUED', 'epoch'
                         FROM new),
           event AS (INSERT INTO floor.events (message_id, id, organization_id, event_type, occurred_at)
                     SELECT id, id, organization_id, 'QUEUED', now() FROM new),
           waiting AS (INSERT INTO floor.new_messages (organization_id, message_id, status, subject)
                       SELECT organization_id, id, 'QUEUED', 'order' FROM new){claim}
         INSERT INTO floor.outbox (message_id, chunk, organization_id, wake_at)
         SELECT id, 0, organization_id, now() FROM new;"
    );
    // pgbench reads colons before names as variables; casts have two.
    format!(
        "\\set tenant random(1, 100)\n{}\n",
        statement.replace('\n', " ")
    )
}
