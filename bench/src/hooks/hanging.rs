//! How long other organizations wait for the first attempt at their webhooks while one
//! organization's endpoint hangs, and without it.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::customers::{Customer, Town};
use super::sink::{Manners, Sink, head_of};

/// Organizations whose endpoint works, and the pause between two of their events, in
/// turn.
const OTHERS: usize = 5;
const PACE: Duration = Duration::from_millis(20);
/// The pause between two events of the one whose endpoint hangs.
const HANGING_PACE: Duration = Duration::from_millis(10);
/// How long it hangs.
const HANGS: Duration = Duration::from_secs(20);
/// What an event's id stands behind in a webhook.
const BEFORE_ID: &[u8] = b"\"eventId\":\"";

/// Times from before an event is recorded to its arrival, sorted.
#[derive(Debug)]
pub(crate) struct Waits(Vec<Duration>);

impl Waits {
    /// The wait that so large a part of them does not exceed, in milliseconds.
    pub(crate) fn ms(&self, part: f64) -> f64 {
        let place = ((self.0.len() - 1) as f64 * part).round() as usize;
        self.0[place].as_secs_f64() * 1_000.0
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

/// Both measurements.
#[derive(Debug)]
pub(crate) struct Beside {
    pub(crate) alone: Waits,
    pub(crate) beside_hanging: Waits,
    /// Calls that the endpoint that hangs got.
    pub(crate) hanging_calls: usize,
}

impl Beside {
    pub(crate) fn ratio(&self) -> f64 {
        self.beside_hanging.ms(0.99) / self.alone.ms(0.99)
    }
}

/// Measures for `span` each, without the one that hangs and then beside it, which gets
/// 100 events a second all the time, and has for so long `before`.
pub(crate) async fn hanging(town: &Town<'_>, span: Duration, before: Duration) -> Beside {
    let working = Sink::start(Manners {
        keeps: true,
        ..Manners::default()
    });
    let working = working.await;
    let mut others = Vec::new();
    for nth in 0..OTHERS {
        let other = town.customer(&format!("Other {nth}")).await;
        town.subscribe(other.organization_id, &working.url).await;
        others.push(other);
    }
    // Warms everything up.
    let _first = waits(town, &working, &others, span / 5).await;
    let alone = waits(town, &working, &others, span).await;
    let dead = Sink::start(Manners {
        hangs: HANGS,
        ..Manners::default()
    });
    let dead = dead.await;
    let greedy = town.customer("Hanging").await;
    town.subscribe(greedy.organization_id, &dead.url).await;
    let watching = async {
        tokio::time::sleep(before).await;
        waits(town, &working, &others, span).await
    };
    let beside_hanging = tokio::select! {
        waits = watching => waits,
        () = pour(town, greedy) => unreachable!("it pours for ever"),
    };
    Beside {
        alone,
        beside_hanging,
        hanging_calls: dead.count(),
    }
}

/// Records events for ever.
async fn pour(town: &Town<'_>, customer: Customer) {
    let mut ticks = tokio::time::interval(HANGING_PACE);
    loop {
        ticks.tick().await;
        town.deliver(customer.organization_id, &[customer.message_id])
            .await;
    }
}

async fn waits(town: &Town<'_>, sink: &Sink, others: &[Customer], span: Duration) -> Waits {
    let (before, end) = (sink.count(), Instant::now() + span);
    let mut begun = HashMap::new();
    let mut ticks = tokio::time::interval(PACE);
    for other in others.iter().cycle() {
        ticks.tick().await;
        if Instant::now() >= end {
            break;
        }
        let id: Uuid = town.ids.next();
        begun.insert(id.to_string(), Instant::now());
        town.record(other.organization_id, &[other.message_id], &[id])
            .await;
    }
    let all = before + begun.len();
    let looks = Duration::from_millis(20);
    Town::wait("all came", looks, async || sink.count() >= all).await;
    let came = sink.take();
    let mut waits: Vec<Duration> = came
        .iter()
        .filter_map(|(at, request)| Some(*at - *begun.get(event_id(request)?)?))
        .collect();
    waits.sort_unstable();
    Waits(waits)
}

fn event_id(request: &[u8]) -> Option<&str> {
    let body = &request[head_of(request)?..];
    let place = body
        .windows(BEFORE_ID.len())
        .position(|window| window == BEFORE_ID)?;
    let id = body.get(place + BEFORE_ID.len()..)?.get(..36)?;
    std::str::from_utf8(id).ok()
}
