//! Rows 5, 14, 15 and 20: how fast what was accepted is delivered, and what it costs.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _};
use tokio::time::Instant;
use waypost_simulator::Fault;

use crate::accept::{CONNECTIONS, Numbers, closed};
use crate::house::{Builder, Cpu, House, Plan};
use crate::load::{self, Until};
use crate::report::{Bound, Figure, Report};
use crate::requests::{self, BATCH};
use crate::{Failure, bare, groups, say, usage};

/// What a provider takes to answer.
pub(crate) const LATENCY_MS: u64 = 20;
/// Calls that a worker, and the bare loop, have under way.
pub(crate) const CALLS: usize = 256;
/// Messages of row 5.
const BACKLOG: u64 = 50_000;
/// Messages of row 20.
const SMALL_BACKLOG: u64 = 5_000;
const LARGE_BACKLOG: u64 = 200_000;
/// How often the small one is drained before the large one, and again after it.
const SMALL_ROUNDS: usize = 3;
/// Messages of row 15.
const DELIVERED: u64 = 60_000;
/// Longer than any backlog takes.
const DRAINED_WITHIN: Duration = Duration::from_secs(180);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How a backlog was drained.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drained {
    pub(crate) per_second: f64,
    pub(crate) cpu: Cpu,
    pub(crate) worker_pss_mib: f64,
}

/// Rows 5, 14 and 20.
pub(crate) async fn drain(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    let floor = bare::calls_per_second(builder, CALLS).await?;
    let mut numbers = Numbers(0);
    let drained = drain_backlog(builder, BACKLOG, 1, &mut numbers).await?;
    let ratio = drained.per_second / floor;
    report.add(Figure {
        row: "5",
        what: "draining 50,000, provider takes 20 ms",
        figure: format!("{:.0}/s", drained.per_second),
        floor: format!("{floor:.0}/s bare loop"),
        ratio: Some(ratio),
        bound: Bound::AtLeast(0.4),
    });
    report.add(Figure {
        row: "14",
        what: "memory of the worker under it, MiB",
        figure: format!("{:.0}", drained.worker_pss_mib),
        floor: String::new(),
        ratio: Some(drained.worker_pss_mib),
        bound: Bound::AtMost(64.0),
    });
    report.keep(
        "drain",
        "n50000",
        json!({
            "per_second": drained.per_second, "floor_per_second": floor, "ratio": ratio,
            "worker_pss_mib": drained.worker_pss_mib, "cpu": drained.cpu.per_message(BACKLOG),
        }),
    );
    say(drained.cpu.per_message(BACKLOG));
    backlogs(builder, report, &mut numbers).await
}

/// Row 20. The small backlog is drained within a second: several times, before and after the
/// large one, since the machine is not the same from one minute to the next.
async fn backlogs(
    builder: &Builder,
    report: &mut Report,
    numbers: &mut Numbers,
) -> Result<(), Failure> {
    let mut rates = Vec::new();
    let mut small = async |numbers: &mut Numbers| -> Result<(), Failure> {
        for _ in 0..SMALL_ROUNDS {
            let drained = drain_backlog(builder, SMALL_BACKLOG, 1, numbers).await?;
            rates.push(drained.per_second);
        }
        Ok(())
    };
    small(numbers).await?;
    let large = drain_backlog(builder, LARGE_BACKLOG, 1, numbers).await?;
    small(numbers).await?;
    let floor = rates.iter().sum::<f64>() / rates.len() as f64;
    let ratio = large.per_second / floor;
    report.add(Figure {
        row: "20",
        what: "draining 200,000",
        figure: format!("{:.0}/s", large.per_second),
        floor: format!("{floor:.0}/s of 5,000"),
        ratio: Some(ratio),
        bound: Bound::AtLeast(0.9),
    });
    report.keep(
        "drain",
        "n200000",
        json!({
            "per_second": large.per_second, "floor_per_second": floor, "ratio": ratio,
            "floors_per_second": rates, "cpu": large.cpu.per_message(LARGE_BACKLOG),
        }),
    );
    Ok(())
}

/// Row 15, and how messages were shared.
pub(crate) async fn cost(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    for connections in CONNECTIONS {
        cost_with(builder, report, connections).await?;
    }
    groups::run(builder, report).await
}

async fn cost_with(
    builder: &Builder,
    report: &mut Report,
    connections: usize,
) -> Result<(), Failure> {
    let house = builder.house(Plan::ONE_OF_EACH).await?;
    let sends = requests::sends(&builder.tenants);
    let mut numbers = Numbers(0);
    let warm = Duration::from_secs(2);
    closed(&house, connections, warm, &mut numbers, &sends).await?;
    wait_until_drained(builder, &house, builder.simulator.captured_count()).await?;
    builder.simulator.clear_captured();
    let (before, statements) = (house.cpu(), Counts::read(builder, &house).await?);
    let since = Instant::now();
    let until = Until::Count(DELIVERED);
    let write = numbers.shifted(DELIVERED, &sends);
    let sending = async {
        let answers = load::closed(&house.addresses, connections, 0, until, write)
            .await?
            .all_taken()?;
        wait_until_drained(builder, &house, answers.count).await?;
        Ok::<_, Failure>(answers)
    };
    let (answers, scheduler) = usage::peak_mib(house.schedulers[0].id(), sending).await;
    let answers = answers?;
    let per_second = answers.count as f64 / since.elapsed().as_secs_f64();
    let cpu = house.cpu().since(before);
    let counts = Counts::read(builder, &house).await?.since(statements);
    house.remove(builder).await?;
    let seconds = cpu.sum() / answers.count as f64 * 1_000.0;
    report.add(Figure {
        row: "15",
        what: &format!("CPU seconds for 1,000 accepted and delivered, {connections} connections"),
        figure: format!("{seconds:.3} s at {per_second:.0}/s"),
        floor: String::new(),
        ratio: Some(seconds),
        bound: Bound::AtMost(0.4),
    });
    report.add(Figure {
        row: "14",
        what: "memory of the scheduler under it, MiB",
        figure: format!("{scheduler:.0}"),
        floor: String::new(),
        ratio: Some(scheduler),
        bound: Bound::AtMost(24.0),
    });
    report.keep("cost", &format!("c{connections}"), json!({
        "per_second": per_second, "cpu_seconds_per_1000": seconds, "cpu": cpu.per_message(answers.count),
        "scheduler_pss_mib": scheduler, "counts": counts.per_message(answers.count),
    }));
    say(cpu.per_message(answers.count));
    say(counts.per_message(answers.count));
    Ok(())
}

/// What Postgres and Redis count.
#[derive(Debug, Clone, Copy)]
struct Counts {
    statements: i64,
    redis_commands: i64,
    transactions: i64,
    wal_bytes: i64,
    rows_written: i64,
}

impl Counts {
    async fn read(builder: &Builder, house: &House) -> Result<Self, Failure> {
        Ok(Self {
            statements: house
                .number(
                    "SELECT coalesce(sum(s.calls), 0)::bigint
                     FROM pg_stat_statements s
                     JOIN pg_database d ON d.oid = s.dbid
                     WHERE d.datname = current_database() AND s.toplevel",
                )
                .await?,
            redis_commands: redis_commands(builder).await?,
            transactions: house
                .number(
                    "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()",
                )
                .await?,
            wal_bytes: house
                .number("SELECT (pg_current_wal_lsn() - '0/0')::bigint")
                .await?,
            rows_written: house
                .number(
                    "SELECT tup_inserted + tup_updated + tup_deleted FROM pg_stat_database
                     WHERE datname = current_database()",
                )
                .await?,
        })
    }

    fn since(self, before: Self) -> Self {
        Self {
            statements: self.statements - before.statements,
            redis_commands: self.redis_commands - before.redis_commands,
            transactions: self.transactions - before.transactions,
            wal_bytes: self.wal_bytes - before.wal_bytes,
            rows_written: self.rows_written - before.rows_written,
        }
    }

    fn per_message(self, messages: u64) -> serde_json::Value {
        let each = |count: i64| (count as f64 / messages as f64 * 1_000.0).round() / 1_000.0;
        json!({
            "statements": each(self.statements), "redis_commands": each(self.redis_commands),
            "transactions": each(self.transactions), "wal_bytes": each(self.wal_bytes).round(),
            "rows_written": each(self.rows_written),
        })
    }
}

/// Commands that Redis has run, those of its scripts too.
async fn redis_commands(builder: &Builder) -> Result<i64, Failure> {
    let client = redis::Client::open(builder.redis_url())?;
    let mut connection = client.get_multiplexed_async_connection().await?;
    let told: redis::InfoDict = redis::cmd("INFO")
        .arg("stats")
        .query_async(&mut connection)
        .await?;
    Ok(told
        .get("total_commands_processed")
        .ok_or("Redis does not count")?)
}

/// Queues messages while nobody sends, then starts so many workers and waits for them.
pub(crate) async fn drain_backlog(
    builder: &Builder,
    backlog: u64,
    workers: usize,
    numbers: &mut Numbers,
) -> Result<Drained, Failure> {
    let plan = Plan {
        workers: 0,
        ..Plan::ONE_OF_EACH
    };
    let mut house = builder.house(plan).await?;
    let drained = drain_in(builder, &mut house, backlog, workers, numbers).await;
    builder.simulator.clear_faults();
    house.remove(builder).await?;
    drained
}

/// The same in a house that stands.
pub(crate) async fn drain_in(
    builder: &Builder,
    house: &mut House,
    backlog: u64,
    workers: usize,
    numbers: &mut Numbers,
) -> Result<Drained, Failure> {
    let batches = requests::batches(&builder.tenants);
    let until = Until::Count(backlog / BATCH);
    load::closed(&house.addresses, 8, numbers.0, until, batches)
        .await?
        .all_taken()?;
    numbers.0 += backlog / BATCH;
    drain_queued(builder, house, backlog, workers).await
}

/// The same with so many messages that are queued already. One webhook endpoint is
/// subscribed to nothing that comes.
pub(crate) async fn drain_queued(
    builder: &Builder,
    house: &mut House,
    backlog: u64,
    workers: usize,
) -> Result<Drained, Failure> {
    subscribe_to_nothing(builder, house).await?;
    builder.simulator.clear_captured();
    slow_down(builder);
    let before = house.cpu();
    house.start_workers(workers);
    let end = Instant::now() + DRAINED_WITHIN;
    while builder.simulator.captured_count() == 0 && Instant::now() < end {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let since = Instant::now();
    let draining = wait_until_drained(builder, house, backlog);
    let (drained, worker_pss_mib) = usage::peak_mib(house.workers[0].id(), draining).await;
    drained?;
    let elapsed = since.elapsed();
    Ok(Drained {
        per_second: backlog as f64 / elapsed.as_secs_f64(),
        cpu: house.cpu().since(before),
        worker_pss_mib,
    })
}

/// Every call to a provider takes [`LATENCY_MS`] from now on.
pub(crate) fn slow_down(builder: &Builder) {
    builder.simulator.set_fault(Fault::slow_sends(LATENCY_MS));
}

/// Waits until so many copies are at the provider and all of that is recorded.
pub(crate) async fn wait_until_drained(
    builder: &Builder,
    house: &House,
    copies: u64,
) -> Result<(), Failure> {
    let end = Instant::now() + DRAINED_WITHIN;
    while builder.simulator.captured_count() < copies {
        if Instant::now() > end {
            let count = builder.simulator.captured_count();
            return Err(format!("{count} of {copies} were delivered in {DRAINED_WITHIN:?}").into());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let mut connection = house.connect().await?;
    loop {
        let statement = AssertSqlSafe("SELECT count(*) FROM outbox");
        let left: i64 = sqlx::query_scalar(statement)
            .fetch_one(&mut connection)
            .await?;
        if left == 0 {
            break;
        }
        if Instant::now() > end {
            return Err(format!("{left} are not recorded in {DRAINED_WITHIN:?}").into());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    connection.close().await?;
    Ok(())
}

/// An endpoint that is told of complaints, of which there are none.
async fn subscribe_to_nothing(builder: &Builder, house: &House) -> Result<(), Failure> {
    let endpoint = json!({ "url": builder.simulator.url(), "events": ["COMPLAINED"] });
    let key = &builder.tenants[0].key;
    builder
        .call(house, key, Method::POST, "/v1/webhook-endpoints", &endpoint)
        .await?;
    Ok(())
}
