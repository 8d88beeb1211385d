//! The time until the first webhook attempt for other organizations, while one
//! organization's endpoint hangs and without that endpoint.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::seed::{Customer, Seeder};
use super::sink::{Sink, SinkSettings, head_length};

/// Organizations with a working endpoint, and the interval between two events. The
/// organizations alternate.
const OTHERS: usize = 5;
const EVENT_INTERVAL: Duration = Duration::from_millis(20);
/// Interval between two events of the organization whose endpoint hangs.
const HANGING_EVENT_INTERVAL: Duration = Duration::from_millis(10);
/// Response time of the endpoint that hangs.
const RESPONSE_DELAY: Duration = Duration::from_secs(20);
/// The text before an event's id in a webhook.
const BEFORE_ID: &[u8] = b"\"eventId\":\"";

/// Times from just before the insert of an event to its arrival, sorted.
#[derive(Debug)]
pub(crate) struct Waits(Vec<Duration>);

impl Waits {
    /// The percentile of the waits at `part`, which is between 0 and 1, in milliseconds.
    pub(crate) fn ms(&self, part: f64) -> f64 {
        let index = ((self.0.len() - 1) as f64 * part).round() as usize;
        self.0[index].as_secs_f64() * 1_000.0
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

/// Both measurements.
#[derive(Debug)]
pub(crate) struct Isolation {
    pub(crate) alone: Waits,
    pub(crate) beside_hanging: Waits,
    /// Calls that the hanging endpoint received.
    pub(crate) hanging_calls: usize,
}

impl Isolation {
    pub(crate) fn ratio(&self) -> f64 {
        self.beside_hanging.ms(0.99) / self.alone.ms(0.99)
    }
}

/// Measures for `span` without the hanging endpoint, then for `span` beside it. The
/// hanging endpoint gets 100 events per second, and has for `before` when the second
/// measurement starts.
pub(crate) async fn hanging(seeder: &Seeder<'_>, span: Duration, before: Duration) -> Isolation {
    let working = Sink::start(SinkSettings {
        keeps_all: true,
        ..SinkSettings::default()
    });
    let working = working.await;
    let mut others = Vec::new();
    for nth in 0..OTHERS {
        let other = seeder.customer(&format!("Other {nth}")).await;
        seeder.subscribe(other.organization_id, &working.url).await;
        others.push(other);
    }
    // Warm-up.
    let _warm_up = waits(seeder, &working, &others, span / 5).await;
    let alone = waits(seeder, &working, &others, span).await;
    let hanging = Sink::start(SinkSettings {
        delay: RESPONSE_DELAY,
        ..SinkSettings::default()
    });
    let hanging = hanging.await;
    let victim = seeder.customer("Hanging").await;
    seeder.subscribe(victim.organization_id, &hanging.url).await;
    let watching = async {
        tokio::time::sleep(before).await;
        waits(seeder, &working, &others, span).await
    };
    let beside_hanging = tokio::select! {
        waits = watching => waits,
        () = record_forever(seeder, victim) => unreachable!("it records forever"),
    };
    Isolation {
        alone,
        beside_hanging,
        hanging_calls: hanging.count(),
    }
}

/// Inserts events until it is dropped.
async fn record_forever(seeder: &Seeder<'_>, customer: Customer) {
    let mut ticks = tokio::time::interval(HANGING_EVENT_INTERVAL);
    loop {
        ticks.tick().await;
        seeder
            .insert_events(customer.organization_id, &[customer.message_id])
            .await;
    }
}

async fn waits(seeder: &Seeder<'_>, sink: &Sink, others: &[Customer], span: Duration) -> Waits {
    let (before, end) = (sink.count(), Instant::now() + span);
    let mut started = HashMap::new();
    let mut ticks = tokio::time::interval(EVENT_INTERVAL);
    for other in others.iter().cycle() {
        ticks.tick().await;
        if Instant::now() >= end {
            break;
        }
        let id: Uuid = seeder.ids.next();
        started.insert(id.to_string(), Instant::now());
        seeder
            .record(other.organization_id, &[other.message_id], &[id])
            .await;
    }
    let all = before + started.len();
    let poll_interval = Duration::from_millis(20);
    Seeder::wait("all arrived", poll_interval, async || sink.count() >= all).await;
    let arrived = sink.take();
    let mut waits: Vec<Duration> = arrived
        .iter()
        .filter_map(|(at, request)| Some(*at - *started.get(event_id(request)?)?))
        .collect();
    waits.sort_unstable();
    Waits(waits)
}

fn event_id(request: &[u8]) -> Option<&str> {
    let body = &request[head_length(request)?..];
    let place = body
        .windows(BEFORE_ID.len())
        .position(|window| window == BEFORE_ID)?;
    let id = body.get(place + BEFORE_ID.len()..)?.get(..36)?;
    std::str::from_utf8(id).ok()
}
