//! Rows 6 and 19: from the request to its arrival at the provider.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use hdrhistogram::Histogram;
use serde_json::json;
use waypost_core::clock::Clock;

use crate::accept::{self, Numbers, closed};
use crate::house::{Builder, Plan};
use crate::load::{self, Writer};
use crate::report::{Bound, Figure, Report};
use crate::sending::wait_until_drained;
use crate::{Failure, bare, requests};

/// Messages sent one at a time.
const ALONE: u64 = 300;
/// How often one is sent: the one before has arrived and is recorded by then.
const ALONE_EVERY: Duration = Duration::from_millis(40);
const RATE: f64 = 2_000.0;
const SECONDS: u64 = 60;

pub(crate) async fn run(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    let mut numbers = Numbers(0);
    alone(builder, report, &mut numbers).await?;
    open(builder, report, &mut numbers).await
}

/// Row 6.
async fn alone(
    builder: &Builder,
    report: &mut Report,
    numbers: &mut Numbers,
) -> Result<(), Failure> {
    let floor = floor(builder, None).await?;
    let rate = ALONE_EVERY.as_secs_f64().recip();
    let at_the_pace = self::floor(builder, Some(rate)).await?;
    let house = builder.house(Plan::ONE_OF_EACH).await?;
    let sends = requests::sends(&builder.tenants);
    closed(&house, 4, Duration::from_secs(2), numbers, &sends).await?;
    let first = numbers.0;
    let write = timed(numbers, ALONE, &sends);
    wait_until_drained(builder, &house, builder.simulator.captured_count()).await?;
    let before = builder.simulator.captured_count();
    load::open(
        &house.addresses,
        1,
        rate,
        ALONE,
        Writer::clone(&write.writer),
    )
    .await?
    .all_taken()?;
    wait_until_drained(builder, &house, before + ALONE).await?;
    let alone = arrivals(builder, first, write.sent())?;
    let (p50, p99) = (ms(&alone, 50.0), ms(&alone, 99.0));
    for (what, latency, most) in [("p50", p50, 3.0), ("p99", p99, 10.0)] {
        report.add(Figure {
            row: "6",
            what: &format!("request to provider, one at a time, {what}"),
            figure: format!("{latency:.2} ms"),
            floor: format!("{floor:.2} ms"),
            ratio: Some(latency / floor),
            bound: Bound::AtMost(most),
        });
        report.add(Figure {
            row: "6",
            what: &format!("beside a floor that rests as long in between, {what}"),
            figure: format!("{latency:.2} ms"),
            floor: format!("{at_the_pace:.2} ms"),
            ratio: Some(latency / at_the_pace),
            bound: Bound::None,
        });
    }
    report.keep("latency", "alone", json!({
        "p50_ms": p50, "p99_ms": p99, "floor_ms": floor, "p50_ratio": p50 / floor, "p99_ratio": p99 / floor,
        "floor_at_the_pace_ms": at_the_pace, "p50_ratio_at_the_pace": p50 / at_the_pace,
        "p99_ratio_at_the_pace": p99 / at_the_pace,
    }));
    house.remove(builder).await
}

/// Row 19.
async fn open(
    builder: &Builder,
    report: &mut Report,
    numbers: &mut Numbers,
) -> Result<(), Failure> {
    let house = builder.house(Plan::ONE_OF_EACH).await?;
    let sends = requests::sends(&builder.tenants);
    closed(&house, 16, Duration::from_secs(2), numbers, &sends).await?;
    let count = RATE as u64 * SECONDS;
    let first = numbers.0;
    let write = numbers.shifted(count, &sends);
    let before = builder.simulator.captured_count();
    let answers = load::open(&house.addresses, 64, RATE, count, write)
        .await?
        .all_taken()?;
    let begun = Clock::system().now() - answers.elapsed;
    wait_until_drained(builder, &house, before + answers.count).await?;
    // From when each was to be sent, whether a connection was free then or not.
    let due = |number| Ok(begun + Duration::from_secs_f64(number as f64 / RATE));
    let times = arrivals(builder, first, (0..count).map(due))?;
    house.remove(builder).await?;
    let (p50, p99) = (ms(&times, 50.0), ms(&times, 99.0));
    for (what, latency, most) in [("p50", p50, 5.0), ("p99", p99, 25.0)] {
        report.add(Figure {
            row: "19",
            what: &format!("request to provider at 2,000/s, ms, {what}"),
            figure: format!("{latency:.2} ms"),
            floor: String::new(),
            ratio: Some(latency),
            bound: Bound::AtMost(most),
        });
    }
    report.keep("latency", "open2000", json!({
        "per_second": answers.per_second(), "p50_ms": p50, "p99_ms": p99, "errors": answers.errors,
        "answer_p50_ms": answers.percentile_ms(50.0), "answer_p99_ms": answers.percentile_ms(99.0),
    }));
    Ok(())
}

/// One transaction and one call, in milliseconds: one after the other, or so many a second,
/// so that what they need has gone cold in between as it has for us.
async fn floor(builder: &Builder, rate: Option<f64>) -> Result<f64, Failure> {
    let transaction = accept::floor_at(builder, 1, rate).await?.median_ms;
    let transaction = transaction.ok_or("pgbench told no median")?;
    let (calls, pause) = match rate {
        None => (1_000, Duration::ZERO),
        Some(rate) => (150, Duration::from_secs_f64(rate.recip())),
    };
    Ok(transaction + bare::call_ms(builder, calls, pause).await?)
}

/// Requests that note when each was written.
struct Timed {
    writer: Writer,
    sent: Arc<Vec<OnceLock<DateTime<Utc>>>>,
}

impl Timed {
    fn sent(&self) -> impl Iterator<Item = Result<DateTime<Utc>, Failure>> {
        let sent = self.sent.iter().map(|sent| sent.get().copied());
        sent.map(|sent| sent.ok_or_else(|| "a request was not sent".into()))
    }
}

fn timed(numbers: &mut Numbers, count: u64, write: &Writer) -> Timed {
    let first = numbers.0;
    numbers.0 += count;
    let sent: Arc<Vec<_>> = Arc::new((0..count).map(|_| OnceLock::new()).collect());
    let (noted, write, clock) = (Arc::clone(&sent), Writer::clone(write), Clock::system());
    let writer: Writer = Arc::new(move |number: u64, request: &mut Vec<u8>| {
        let _first_only = noted[number as usize].set(clock.now());
        write(first + number, request);
    });
    Timed { writer, sent }
}

/// How long each took from its request to the provider, in microseconds.
fn arrivals(
    builder: &Builder,
    first: u64,
    sent: impl Iterator<Item = Result<DateTime<Utc>, Failure>>,
) -> Result<Histogram<u64>, Failure> {
    let mut times = Histogram::new(3)?;
    for (number, sent) in (first..).zip(sent) {
        let sent = sent?;
        let copies = builder.simulator.captured_to(&requests::recipient(number));
        let [copy] = copies.as_slice() else {
            return Err(format!("{} copies for reader {number}", copies.len()).into());
        };
        let arrived = DateTime::parse_from_rfc3339(&copy.accepted_at)?;
        let micros = (arrived.with_timezone(&Utc) - sent)
            .num_microseconds()
            .unwrap_or_default();
        times.record(u64::try_from(micros).unwrap_or_default())?;
    }
    Ok(times)
}

fn ms(times: &Histogram<u64>, percentile: f64) -> f64 {
    times.value_at_percentile(percentile) as f64 / 1_000.0
}
