//! Rows 5, 14, 15, 20 and 21: the rate at which accepted messages are delivered, and the
//! cost.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _};
use tokio::time::Instant;
use waypost_simulator::Fault;

use crate::accept::{CONNECTIONS, RequestNumbers, closed_loop};
use crate::fixture::{Builder, Cpu, Fixture, Plan};
use crate::load::{self, Until};
use crate::report::{Bound, Figure, Report};
use crate::requests::{self, BATCH, RECIPIENTS};
use crate::{Failure, baseline, batching, progress, usage};

/// Response time of the provider.
pub(crate) const LATENCY_MS: u64 = 20;
/// Concurrent calls of a worker, and of the plain loop.
pub(crate) const CALLS: usize = 256;
/// Messages of row 5.
const BACKLOG: u64 = 50_000;
/// Messages of row 20.
const SMALL_BACKLOG: u64 = 5_000;
const LARGE_BACKLOG: u64 = 200_000;
/// Runs with the small backlog before the large one, and again after it.
const SMALL_ROUNDS: usize = 3;
/// Sends of row 21, each to 1,000 recipients.
const LARGE_SENDS: u64 = 50;
/// Messages of row 15.
const DELIVERED: u64 = 60_000;
/// Longer than any backlog takes.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(180);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The figures of a drained backlog.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drained {
    pub(crate) per_second: f64,
    pub(crate) cpu: Cpu,
    pub(crate) worker_pss_mib: f64,
}

/// Rows 5, 14 and 20.
pub(crate) async fn drain(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    let baseline = baseline::calls_per_second(builder, CALLS).await?;
    let mut numbers = RequestNumbers(0);
    let drained = drain_backlog(builder, BACKLOG, 1, &mut numbers).await?;
    let ratio = drained.per_second / baseline;
    report.add(Figure {
        row: "5",
        what: "draining 50,000, provider takes 20 ms",
        figure: format!("{:.0}/s", drained.per_second),
        baseline: format!("{baseline:.0}/s bare loop"),
        ratio: Some(ratio),
        bound: Bound::AtLeast(0.4),
    });
    report.add(Figure {
        row: "14",
        what: "memory of the worker under it, MiB",
        figure: format!("{:.0}", drained.worker_pss_mib),
        baseline: String::new(),
        ratio: Some(drained.worker_pss_mib),
        bound: Bound::AtMost(64.0),
    });
    report.keep(
        "drain",
        "n50000",
        json!({
            "per_second": drained.per_second, "floor_per_second": baseline, "ratio": ratio,
            "worker_pss_mib": drained.worker_pss_mib, "cpu": drained.cpu.per_message(BACKLOG),
        }),
    );
    progress(drained.cpu.per_message(BACKLOG));
    large_sends(builder, report, &mut numbers, drained.per_second).await?;
    backlogs(builder, report, &mut numbers).await
}

/// Row 21: what it gains that the mails of a chunk share provider calls, though each has
/// links of its own.
async fn large_sends(
    builder: &Builder,
    report: &mut Report,
    numbers: &mut RequestNumbers,
    single_per_second: f64,
) -> Result<(), Failure> {
    let plan = Plan {
        workers: 0,
        ..Plan::ONE_OF_EACH
    };
    let mut fixture = builder.fixture(plan).await?;
    let until = Until::Count(LARGE_SENDS);
    let sends = requests::large_tracked(&builder.tenants);
    load::closed_loop(&fixture.addresses, 8, numbers.0, until, sends)
        .await?
        .require_success()?;
    numbers.0 += LARGE_SENDS;
    let recipients = LARGE_SENDS * RECIPIENTS;
    let drained = drain_queued(builder, &mut fixture, recipients, 1).await?;
    builder.simulator.clear_faults();
    fixture.remove(builder).await?;
    let ratio = drained.per_second / single_per_second;
    report.add(Figure {
        row: "21",
        what: "draining 50 sends to 1,000 with a pixel each",
        figure: format!("{:.0}/s", drained.per_second),
        baseline: format!("{single_per_second:.0}/s single sends"),
        ratio: Some(ratio),
        bound: Bound::AtLeast(1.5),
    });
    let cpu = drained.cpu.per_message(recipients);
    report.keep(
        "drain",
        "large_sends",
        json!({ "per_second": drained.per_second, "floor_per_second": single_per_second,
                "ratio": ratio, "cpu": cpu }),
    );
    progress(cpu);
    Ok(())
}

/// Row 20. The small backlog takes less than a second, so it runs several times, before
/// and after the large one, since the machine's speed changes.
async fn backlogs(
    builder: &Builder,
    report: &mut Report,
    numbers: &mut RequestNumbers,
) -> Result<(), Failure> {
    let mut rates = Vec::new();
    let mut small = async |numbers: &mut RequestNumbers| -> Result<(), Failure> {
        for _ in 0..SMALL_ROUNDS {
            let drained = drain_backlog(builder, SMALL_BACKLOG, 1, numbers).await?;
            rates.push(drained.per_second);
        }
        Ok(())
    };
    small(numbers).await?;
    let large = drain_backlog(builder, LARGE_BACKLOG, 1, numbers).await?;
    small(numbers).await?;
    let baseline = rates.iter().sum::<f64>() / rates.len() as f64;
    let ratio = large.per_second / baseline;
    report.add(Figure {
        row: "20",
        what: "draining 200,000",
        figure: format!("{:.0}/s", large.per_second),
        baseline: format!("{baseline:.0}/s of 5,000"),
        ratio: Some(ratio),
        bound: Bound::AtLeast(0.9),
    });
    report.keep(
        "drain",
        "n200000",
        json!({
            "per_second": large.per_second, "floor_per_second": baseline, "ratio": ratio,
            "floors_per_second": rates, "cpu": large.cpu.per_message(LARGE_BACKLOG),
        }),
    );
    Ok(())
}

/// Row 15, and the batches of messages.
pub(crate) async fn cost(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    for connections in CONNECTIONS {
        cost_with(builder, report, connections).await?;
    }
    batching::run(builder, report).await
}

async fn cost_with(
    builder: &Builder,
    report: &mut Report,
    connections: usize,
) -> Result<(), Failure> {
    let fixture = builder.fixture(Plan::ONE_OF_EACH).await?;
    let sends = requests::sends(&builder.tenants);
    let mut numbers = RequestNumbers(0);
    let warm = Duration::from_secs(2);
    closed_loop(&fixture, connections, warm, &mut numbers, &sends).await?;
    wait_until_drained(builder, &fixture, builder.simulator.captured_count()).await?;
    builder.simulator.clear_captured();
    let (before, statements) = (fixture.cpu(), Counts::read(builder, &fixture).await?);
    let since = Instant::now();
    let until = Until::Count(DELIVERED);
    let write = numbers.shifted(DELIVERED, &sends);
    let sending = async {
        let answers = load::closed_loop(&fixture.addresses, connections, 0, until, write)
            .await?
            .require_success()?;
        wait_until_drained(builder, &fixture, answers.count).await?;
        Ok::<_, Failure>(answers)
    };
    let (answers, scheduler) = usage::peak_mib(fixture.schedulers[0].id(), sending).await;
    let answers = answers?;
    let per_second = answers.count as f64 / since.elapsed().as_secs_f64();
    let cpu = fixture.cpu().since(before);
    let counts = Counts::read(builder, &fixture).await?.since(statements);
    fixture.remove(builder).await?;
    let seconds = cpu.sum() / answers.count as f64 * 1_000.0;
    report.add(Figure {
        row: "15",
        what: &format!("CPU seconds for 1,000 accepted and delivered, {connections} connections"),
        figure: format!("{seconds:.3} s at {per_second:.0}/s"),
        baseline: String::new(),
        ratio: Some(seconds),
        bound: Bound::AtMost(0.4),
    });
    report.add(Figure {
        row: "14",
        what: "memory of the scheduler under it, MiB",
        figure: format!("{scheduler:.0}"),
        baseline: String::new(),
        ratio: Some(scheduler),
        bound: Bound::AtMost(24.0),
    });
    report.keep("cost", &format!("c{connections}"), json!({
        "per_second": per_second, "cpu_seconds_per_1000": seconds, "cpu": cpu.per_message(answers.count),
        "scheduler_pss_mib": scheduler, "counts": counts.per_message(answers.count),
    }));
    progress(cpu.per_message(answers.count));
    progress(counts.per_message(answers.count));
    Ok(())
}

/// Counters of Postgres and Redis.
#[derive(Debug, Clone, Copy)]
struct Counts {
    statements: i64,
    redis_commands: i64,
    transactions: i64,
    wal_bytes: i64,
    rows_written: i64,
}

impl Counts {
    async fn read(builder: &Builder, fixture: &Fixture) -> Result<Self, Failure> {
        Ok(Self {
            statements: fixture
                .number(
                    "SELECT coalesce(sum(s.calls), 0)::bigint
                     FROM pg_stat_statements s
                     JOIN pg_database d ON d.oid = s.dbid
                     WHERE d.datname = current_database() AND s.toplevel",
                )
                .await?,
            redis_commands: redis_commands(builder).await?,
            transactions: fixture
                .number(
                    "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()",
                )
                .await?,
            wal_bytes: fixture
                .number("SELECT (pg_current_wal_lsn() - '0/0')::bigint")
                .await?,
            rows_written: fixture
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

/// Commands that Redis has run, including those of scripts.
async fn redis_commands(builder: &Builder) -> Result<i64, Failure> {
    let client = redis::Client::open(builder.redis_url())?;
    let mut connection = client.get_multiplexed_async_connection().await?;
    let stats: redis::InfoDict = redis::cmd("INFO")
        .arg("stats")
        .query_async(&mut connection)
        .await?;
    Ok(stats
        .get("total_commands_processed")
        .ok_or("Redis does not count")?)
}

/// Queues messages without a worker, then starts workers and waits until they have
/// delivered all.
pub(crate) async fn drain_backlog(
    builder: &Builder,
    backlog: u64,
    workers: usize,
    numbers: &mut RequestNumbers,
) -> Result<Drained, Failure> {
    let plan = Plan {
        workers: 0,
        ..Plan::ONE_OF_EACH
    };
    let mut fixture = builder.fixture(plan).await?;
    let drained = drain_in(builder, &mut fixture, backlog, workers, numbers).await;
    builder.simulator.clear_faults();
    fixture.remove(builder).await?;
    drained
}

/// The same in a running fixture.
pub(crate) async fn drain_in(
    builder: &Builder,
    fixture: &mut Fixture,
    backlog: u64,
    workers: usize,
    numbers: &mut RequestNumbers,
) -> Result<Drained, Failure> {
    let batches = requests::batches(&builder.tenants);
    let until = Until::Count(backlog / BATCH);
    load::closed_loop(&fixture.addresses, 8, numbers.0, until, batches)
        .await?
        .require_success()?;
    numbers.0 += backlog / BATCH;
    drain_queued(builder, fixture, backlog, workers).await
}

/// The same with messages that are queued already. One webhook endpoint exists, without
/// events to receive.
pub(crate) async fn drain_queued(
    builder: &Builder,
    fixture: &mut Fixture,
    backlog: u64,
    workers: usize,
) -> Result<Drained, Failure> {
    set_provider_latency(builder);
    start_and_drain(builder, fixture, backlog, workers).await
}

/// The same with a provider as fast as it is set.
pub(crate) async fn start_and_drain(
    builder: &Builder,
    fixture: &mut Fixture,
    backlog: u64,
    workers: usize,
) -> Result<Drained, Failure> {
    subscribe_to_nothing(builder, fixture).await?;
    builder.simulator.clear_captured();
    let before = fixture.cpu();
    fixture.start_workers(workers);
    let end = Instant::now() + DRAIN_TIME_MAX;
    while builder.simulator.captured_count() == 0 && Instant::now() < end {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    let since = Instant::now();
    let draining = wait_until_drained(builder, fixture, backlog);
    let (drained, worker_pss_mib) = usage::peak_mib(fixture.workers[0].id(), draining).await;
    drained?;
    let elapsed = since.elapsed();
    Ok(Drained {
        per_second: backlog as f64 / elapsed.as_secs_f64(),
        cpu: fixture.cpu().since(before),
        worker_pss_mib,
    })
}

/// From now on every call to a provider takes [`LATENCY_MS`].
pub(crate) fn set_provider_latency(builder: &Builder) {
    builder.simulator.set_fault(Fault::slow_sends(LATENCY_MS));
}

/// Waits until this many recipients have reached the provider and all outcomes are
/// recorded.
pub(crate) async fn wait_until_drained(
    builder: &Builder,
    fixture: &Fixture,
    recipients: u64,
) -> Result<(), Failure> {
    let end = Instant::now() + DRAIN_TIME_MAX;
    while builder.simulator.captured_count() < recipients {
        if Instant::now() > end {
            let count = builder.simulator.captured_count();
            return Err(
                format!("{count} of {recipients} were delivered in {DRAIN_TIME_MAX:?}").into(),
            );
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    let mut connection = fixture.connect().await?;
    loop {
        let statement = AssertSqlSafe("SELECT count(*) FROM outbox");
        let left: i64 = sqlx::query_scalar(statement)
            .fetch_one(&mut connection)
            .await?;
        if left == 0 {
            break;
        }
        if Instant::now() > end {
            return Err(format!("{left} are not recorded in {DRAIN_TIME_MAX:?}").into());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    connection.close().await?;
    Ok(())
}

/// Adds an endpoint for complaints, of which there are none.
async fn subscribe_to_nothing(builder: &Builder, fixture: &Fixture) -> Result<(), Failure> {
    let endpoint = json!({ "url": builder.simulator.url(), "events": ["COMPLAINED"] });
    let key = &builder.tenants[0].key;
    builder
        .call(
            fixture,
            key,
            Method::POST,
            "/v1/webhook-endpoints",
            &endpoint,
        )
        .await?;
    Ok(())
}
