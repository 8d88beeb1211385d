//! Rows 6 and 19: the time from the request to its arrival at the provider.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use hdrhistogram::Histogram;
use serde_json::json;
use waypost_core::clock::Clock;

use crate::accept::{self, RequestNumbers, closed_loop};
use crate::fixture::{Builder, Plan};
use crate::load::{self, Writer};
use crate::report::{Bound, Figure, Report};
use crate::sending::wait_until_drained;
use crate::{Failure, baseline, requests};

/// Messages that are sent one at a time.
const ALONE: u64 = 300;
/// Interval between two of them: the one before has been sent and recorded by then.
const ALONE_INTERVAL: Duration = Duration::from_millis(40);
const RATE: f64 = 2_000.0;
const SECONDS: u64 = 60;

pub(crate) async fn run(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    let mut numbers = RequestNumbers(0);
    alone(builder, report, &mut numbers).await?;
    open(builder, report, &mut numbers).await
}

/// Row 6.
async fn alone(
    builder: &Builder,
    report: &mut Report,
    numbers: &mut RequestNumbers,
) -> Result<(), Failure> {
    let baseline = baseline(builder, None).await?;
    let rate = ALONE_INTERVAL.as_secs_f64().recip();
    let baseline_with_pauses = self::baseline(builder, Some(rate)).await?;
    let fixture = builder.fixture(Plan::ONE_OF_EACH).await?;
    let sends = requests::sends(&builder.tenants);
    closed_loop(&fixture, 4, Duration::from_secs(2), numbers, &sends).await?;
    let first = numbers.0;
    let write = timed(numbers, ALONE, &sends);
    wait_until_drained(builder, &fixture, builder.simulator.captured_count()).await?;
    let before = builder.simulator.captured_count();
    load::open(
        &fixture.addresses,
        1,
        rate,
        ALONE,
        Writer::clone(&write.writer),
    )
    .await?
    .require_success()?;
    wait_until_drained(builder, &fixture, before + ALONE).await?;
    let alone = arrivals(builder, first, write.sent())?;
    let (p50, p99) = (ms(&alone, 50.0), ms(&alone, 99.0));
    for (what, latency, most) in [("p50", p50, 3.0), ("p99", p99, 10.0)] {
        report.add(Figure {
            row: "6",
            what: &format!("request to provider, one at a time, {what}"),
            figure: format!("{latency:.2} ms"),
            baseline: format!("{baseline:.2} ms"),
            ratio: Some(latency / baseline),
            bound: Bound::AtMost(most),
        });
        report.add(Figure {
            row: "6",
            what: &format!("beside a floor that rests as long in between, {what}"),
            figure: format!("{latency:.2} ms"),
            baseline: format!("{baseline_with_pauses:.2} ms"),
            ratio: Some(latency / baseline_with_pauses),
            bound: Bound::None,
        });
    }
    report.keep("latency", "alone", json!({
        "p50_ms": p50, "p99_ms": p99, "floor_ms": baseline, "p50_ratio": p50 / baseline, "p99_ratio": p99 / baseline,
        "floor_at_the_pace_ms": baseline_with_pauses, "p50_ratio_at_the_pace": p50 / baseline_with_pauses,
        "p99_ratio_at_the_pace": p99 / baseline_with_pauses,
    }));
    fixture.remove(builder).await
}

/// Row 19.
async fn open(
    builder: &Builder,
    report: &mut Report,
    numbers: &mut RequestNumbers,
) -> Result<(), Failure> {
    let fixture = builder.fixture(Plan::ONE_OF_EACH).await?;
    let sends = requests::sends(&builder.tenants);
    closed_loop(&fixture, 16, Duration::from_secs(2), numbers, &sends).await?;
    let count = RATE as u64 * SECONDS;
    let first = numbers.0;
    let write = numbers.shifted(count, &sends);
    let before = builder.simulator.captured_count();
    let answers = load::open(&fixture.addresses, 64, RATE, count, write)
        .await?
        .require_success()?;
    let begun = Clock::system().now() - answers.elapsed;
    wait_until_drained(builder, &fixture, before + answers.count).await?;
    // Count from the scheduled time, whether a connection was free then or not.
    let due = |number| Ok(begun + Duration::from_secs_f64(number as f64 / RATE));
    let times = arrivals(builder, first, (0..count).map(due))?;
    fixture.remove(builder).await?;
    let (p50, p99) = (ms(&times, 50.0), ms(&times, 99.0));
    for (what, latency, most) in [("p50", p50, 5.0), ("p99", p99, 25.0)] {
        report.add(Figure {
            row: "19",
            what: &format!("request to provider at 2,000/s, ms, {what}"),
            figure: format!("{latency:.2} ms"),
            baseline: String::new(),
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

/// One transaction and one call, in milliseconds. With a rate, both pause in between as
/// long as the load does, so that caches go as cold as Waypost's.
async fn baseline(builder: &Builder, rate: Option<f64>) -> Result<f64, Failure> {
    let transaction = accept::baseline_at(builder, 1, rate).await?.median_ms;
    let transaction = transaction.ok_or("pgbench reported no median")?;
    let (calls, pause) = match rate {
        None => (1_000, Duration::ZERO),
        Some(rate) => (150, Duration::from_secs_f64(rate.recip())),
    };
    Ok(transaction + baseline::call_ms(builder, calls, pause).await?)
}

/// Requests that record when each was written.
pub(crate) struct Timed {
    pub(crate) writer: Writer,
    sent: Arc<Vec<OnceLock<DateTime<Utc>>>>,
}

impl Timed {
    pub(crate) fn sent(&self) -> impl Iterator<Item = Result<DateTime<Utc>, Failure>> {
        let sent = self.sent.iter().map(|sent| sent.get().copied());
        sent.map(|sent| sent.ok_or_else(|| "a request was not sent".into()))
    }
}

pub(crate) fn timed(numbers: &mut RequestNumbers, count: u64, write: &Writer) -> Timed {
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

/// The time of each message from its request to the provider, in microseconds.
pub(crate) fn arrivals(
    builder: &Builder,
    first: u64,
    sent: impl Iterator<Item = Result<DateTime<Utc>, Failure>>,
) -> Result<Histogram<u64>, Failure> {
    let mut times = Histogram::new(3)?;
    for (number, sent) in (first..).zip(sent) {
        let sent = sent?;
        let recipients = builder.simulator.captured_to(&requests::recipient(number));
        let [recipient] = recipients.as_slice() else {
            return Err(format!("{} messages for reader {number}", recipients.len()).into());
        };
        let arrived = DateTime::parse_from_rfc3339(&recipient.accepted_at)?;
        let micros = (arrived.with_timezone(&Utc) - sent)
            .num_microseconds()
            .unwrap_or_default();
        times.record(u64::try_from(micros).unwrap_or_default())?;
    }
    Ok(times)
}

pub(crate) fn ms(times: &Histogram<u64>, percentile: f64) -> f64 {
    times.value_at_percentile(percentile) as f64 / 1_000.0
}
