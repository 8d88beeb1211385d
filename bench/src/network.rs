//! Row 24: PostgreSQL and Redis at a distance, as in an installation of several machines. For
//! each distance: the time of one send, sends accepted by one and by two APIs, messages
//! delivered by one and by two workers to a provider that takes 200 ms, and the round trips
//! that a message costs. All settings but the workers' concurrency are the defaults.
//!
//! Two cores carry all processes here. So ratios of APIs count only where they wait for the
//! distance and not for a core; the workers wait for their provider.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use waypost_simulator::Fault;

use crate::accept::{RequestNumbers, WARM_UP, closed_loop};
use crate::fixture::{Builder, Fixture, ORGANIZATIONS, Plan};
use crate::latency::{arrivals, ms, timed};
use crate::load::{self, Until};
use crate::relay::Relay;
use crate::report::{Bound, Figure, Report};
use crate::requests::{self, BATCH};
use crate::sending::wait_until_drained;
use crate::{Failure, progress};

/// Round trips between the programs and their servers, in milliseconds.
const ROUND_TRIPS_MS: [u64; 4] = [0, 1, 5, 20];
/// How long the provider takes.
const PROVIDER_MS: u64 = 200;
/// What one worker must deliver in each measurement, in seconds by the model.
const DELIVERY_SECONDS: u64 = 10;
/// `WAYPOST_WORKER_CONCURRENCY`: few enough for the two cores to carry two workers.
const CONCURRENCY: u64 = 64;
/// Workers in turns, since the machine's speed changes.
const WORKERS: [usize; 3] = [1, 2, 1];
const APIS: [usize; 3] = [1, 2, 1];
/// Connections to each API.
const CONNECTIONS: usize = 64;
const ACCEPT_TIME: Duration = Duration::from_secs(4);
/// Messages that are sent one at a time.
const ALONE: u64 = 40;
/// The part of a backlog whose rate is measured.
const MIDDLE: [f64; 2] = [0.15, 0.85];
/// Longer than any backlog takes.
const DELIVERY_MAX: Duration = Duration::from_secs(120);
/// How much two workers must deliver, of what one does.
const WORKERS_RATIO_MIN: f64 = 1.9;
const POSTGRES_PORT: u16 = 5432;
const REDIS_PORT: u16 = 6379;

/// Both servers at a distance.
struct Network<'a> {
    builder: &'a Builder,
    round_trip_ms: u64,
    postgres: Relay,
    redis: Relay,
}

/// A rate, and the round trips to PostgreSQL and to Redis of each message.
#[derive(Debug, Clone, Copy)]
struct Rate {
    per_second: f64,
    round_trips: [f64; 2],
}

/// Times of one message at a time, in milliseconds: until the API answered, and until the
/// provider had it.
#[derive(Debug, Clone, Copy)]
struct Alone {
    answered_ms: f64,
    provider_ms: f64,
}

pub(crate) async fn run(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    let mut near = None;
    for round_trip_ms in ROUND_TRIPS_MS {
        let network = Network::new(builder, round_trip_ms)?;
        let alone = network.alone().await?;
        let near = *near.get_or_insert(alone);
        network.report_alone(report, alone, near);
        let mut accepted = Vec::new();
        for apis in APIS {
            accepted.push(network.accept(apis).await?);
        }
        network.report_accepted(report, &accepted);
        let mut delivered = Vec::new();
        for workers in WORKERS {
            delivered.push(network.deliver(workers).await?);
        }
        network.report_delivered(report, &delivered);
        let rates = |rates: &[Rate]| rates.iter().map(|rate| rate.to_json()).collect::<Value>();
        report.keep(
            "network",
            &format!("ms{round_trip_ms}"),
            json!({
                "answered_ms": alone.answered_ms, "provider_ms": alone.provider_ms,
                "apis_1_2_1": rates(&accepted), "workers_1_2_1": rates(&delivered),
            }),
        );
    }
    Ok(())
}

impl<'a> Network<'a> {
    fn new(builder: &'a Builder, round_trip_ms: u64) -> Result<Self, Failure> {
        let round_trip = Duration::from_millis(round_trip_ms);
        let server = builder.database_url("postgres")?;
        Ok(Self {
            builder,
            round_trip_ms,
            postgres: Relay::to(&server, POSTGRES_PORT, round_trip)?,
            redis: Relay::to(builder.redis_url(), REDIS_PORT, round_trip)?,
        })
    }

    /// A fixture whose processes reach the servers over the relays.
    async fn fixture(&self, apis: usize, workers: usize) -> Result<Fixture, Failure> {
        let database = self.builder.database().await?;
        let postgres = self
            .postgres
            .url_of(&self.builder.database_url(&database)?)?;
        let redis = self.redis.url_of(self.builder.redis_url())?;
        let plan = Plan {
            apis,
            workers,
            schedulers: 1,
            settings: &[
                ("DATABASE_URL", &postgres),
                ("REDIS_URL", &redis),
                ("WAYPOST_WORKER_CONCURRENCY", &CONCURRENCY.to_string()),
            ],
        };
        self.builder.start(plan, database).await
    }

    async fn alone(&self) -> Result<Alone, Failure> {
        let fixture = self.fixture(1, 1).await?;
        let sends = requests::sends(&self.builder.tenants);
        let mut numbers = RequestNumbers(0);
        closed_loop(&fixture, 4, WARM_UP, &mut numbers, &sends).await?;
        let simulator = &self.builder.simulator;
        wait_until_drained(self.builder, &fixture, simulator.captured_count()).await?;
        let (first, before) = (numbers.0, simulator.captured_count());
        let write = timed(&mut numbers, ALONE, &sends);
        // Far enough apart that each message finds nothing else under way.
        let interval = Duration::from_millis(40 + 20 * self.round_trip_ms);
        let rate = interval.as_secs_f64().recip();
        let answers = load::open(&fixture.addresses, 1, rate, ALONE, write.writer.clone())
            .await?
            .require_success()?;
        wait_until_drained(self.builder, &fixture, before + ALONE).await?;
        let times = arrivals(self.builder, first, write.sent())?;
        fixture.remove(self.builder).await?;
        Ok(Alone {
            answered_ms: answers.percentile_ms(50.0),
            provider_ms: ms(&times, 50.0),
        })
    }

    async fn accept(&self, apis: usize) -> Result<Rate, Failure> {
        let fixture = self.fixture(apis, 0).await?;
        let sends = requests::sends(&self.builder.tenants);
        let (connections, mut numbers) = (CONNECTIONS * apis, RequestNumbers(0));
        // Until each API has its connections and knows the keys of all organizations. At a
        // distance some of the first requests take too long and are answered 503.
        let warm = Until::Count(4 * ORGANIZATIONS as u64);
        for connections in [16, connections] {
            let write = numbers.shifted(4 * ORGANIZATIONS as u64, &sends);
            load::closed_loop(&fixture.addresses, connections, 0, warm, write).await?;
        }
        let before = self.round_trips();
        let answers = closed_loop(&fixture, connections, ACCEPT_TIME, &mut numbers, &sends).await?;
        let rate = self.rate(answers.per_second(), answers.count, before);
        fixture.remove(self.builder).await?;
        Ok(rate)
    }

    /// Queues a backlog, and delivers it by this many workers. The rate is that of its middle, when
    /// all workers run and none of them waits for the last messages.
    async fn deliver(&self, workers: usize) -> Result<Rate, Failure> {
        let each = CONCURRENCY * 1_000 / PROVIDER_MS * DELIVERY_SECONDS;
        let backlog = (each * workers as u64).next_multiple_of(BATCH);
        let mut fixture = self.fixture(1, 0).await?;
        let batches = requests::batches(&self.builder.tenants);
        let until = Until::Count(backlog / BATCH);
        load::closed_loop(&fixture.addresses, 8, 0, until, batches)
            .await?
            .require_success()?;
        let simulator = &self.builder.simulator;
        simulator.clear_captured();
        simulator.set_fault(Fault::slow_sends(PROVIDER_MS));
        let before = self.round_trips();
        fixture.start_workers(workers);
        let [first, last] = MIDDLE.map(|share| (backlog as f64 * share) as u64);
        self.wait_until_captured(first).await;
        let since = Instant::now();
        self.wait_until_captured(last).await;
        let per_second = (last - first) as f64 / since.elapsed().as_secs_f64();
        let drained = wait_until_drained(self.builder, &fixture, backlog).await;
        let rate = self.rate(per_second, backlog, before);
        simulator.clear_faults();
        fixture.remove(self.builder).await?;
        drained.map(|()| rate)
    }

    /// Waits until so many messages have reached the provider; what is then missing, the wait for
    /// the last one reports.
    async fn wait_until_captured(&self, count: u64) {
        let end = Instant::now() + DELIVERY_MAX;
        while self.builder.simulator.captured_count() < count && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn round_trips(&self) -> [u64; 2] {
        [self.postgres.round_trips(), self.redis.round_trips()]
    }

    fn rate(&self, per_second: f64, messages: u64, before: [u64; 2]) -> Rate {
        let now = self.round_trips();
        Rate {
            per_second,
            round_trips: [0, 1].map(|nth| (now[nth] - before[nth]) as f64 / messages as f64),
        }
    }

    fn report_alone(&self, report: &mut Report, alone: Alone, near: Alone) {
        let distance = self.round_trip_ms as f64;
        for (what, time, near) in [
            ("answered", alone.answered_ms, near.answered_ms),
            ("at the provider", alone.provider_ms, near.provider_ms),
        ] {
            let times = (self.round_trip_ms > 0).then(|| (time - near) / distance);
            report.add(Figure {
                row: "24",
                what: &format!("{}: one send, {what}, p50", self.name()),
                figure: format!("{time:.1} ms"),
                baseline: times.map_or_else(String::new, |_| "round trips in a row".to_owned()),
                ratio: times,
                bound: Bound::None,
            });
        }
    }

    fn report_accepted(&self, report: &mut Report, rates: &[Rate]) {
        self.report_two(
            report,
            "sends, 2 APIs, 64 connections each",
            rates,
            Bound::None,
        );
    }

    fn report_delivered(&self, report: &mut Report, rates: &[Rate]) {
        let bound = Bound::AtLeast(WORKERS_RATIO_MIN);
        self.report_two(report, "2 workers, provider takes 200 ms", rates, bound);
    }

    /// Reports two processes between two measurements of one.
    fn report_two(&self, report: &mut Report, what: &str, rates: &[Rate], bound: Bound) {
        let [before, two, after] = rates else {
            return;
        };
        let one = before.per_second.midpoint(after.per_second);
        report.add(Figure {
            row: "24",
            what: &format!("{}: {what}", self.name()),
            figure: format!("{:.0}/s", two.per_second),
            baseline: format!("{one:.0}/s by one"),
            ratio: Some(two.per_second / one),
            bound,
        });
        progress(format!(
            "by one: {}; by two: {}",
            before.to_json(),
            two.to_json()
        ));
    }

    fn name(&self) -> String {
        format!("round trip {} ms", self.round_trip_ms)
    }
}

impl Rate {
    fn to_json(self) -> Value {
        let round = |value: f64| (value * 1_000.0).round() / 1_000.0;
        let [postgres, redis] = self.round_trips.map(round);
        json!({
            "per_second": self.per_second.round(),
            "postgres_round_trips": postgres, "redis_round_trips": redis,
        })
    }
}
