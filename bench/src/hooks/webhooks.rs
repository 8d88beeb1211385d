//! The rate at which events reach one fast receiver, signed and recorded, beside a plain
//! loop that posts the same bytes to the same receiver.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::Instant;
use waypost_core::ids::WebhookEndpointId;

use super::seed::Seeder;
use super::sink::{SinkProcess, head_length, headers};
use crate::usage::cpu_seconds;

/// Callers of the plain loop: as many as Waypost uses for one endpoint.
pub(super) const CALLERS: usize = 8;
/// How often the sink is asked for its count. Each poll is a connection.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

const RECORDED: &str = "SELECT count(*) FROM webhook_deliveries WHERE webhook_endpoint_id = $1 AND status = 'DELIVERED'";

/// The result.
#[derive(Debug)]
pub(crate) struct Throughput {
    pub(crate) per_second: f64,
    pub(crate) recorded_per_second: f64,
    pub(crate) floor_per_second: f64,
    /// CPU seconds for 1,000 deliveries.
    pub(crate) worker_cpu: f64,
    pub(crate) postgres_cpu: f64,
    /// WAL bytes for each delivery.
    pub(crate) wal_bytes: f64,
}

impl Throughput {
    /// The recorded rate divided by the baseline.
    pub(crate) fn ratio(&self) -> f64 {
        self.recorded_per_second / self.floor_per_second
    }
}

/// Delivers `count` events that wait already. `worker` and `postmaster` are the processes
/// whose CPU time is read.
pub(crate) async fn webhooks(
    seeder: &Seeder<'_>,
    count: usize,
    worker: u32,
    postmaster: u32,
) -> Throughput {
    let sink = SinkProcess::start().await;
    let organization = seeder.organization("Told").await;
    let messages = seeder.messages(organization, count).await;
    let endpoint = seeder.subscribe(organization, &sink.url).await;
    let pause = sqlx::query("UPDATE webhook_endpoints SET paused_until = 'infinity' WHERE id = $1");
    seeder.run(pause.bind(endpoint.0)).await;
    seeder.insert_events(organization, &messages).await;
    // As in a server that has run for a while: with statistics, and no checkpoint due.
    seeder
        .run(sqlx::query(
            "ANALYZE webhook_deliveries, messages, recipients, events",
        ))
        .await;
    seeder.run(sqlx::query("CHECKPOINT")).await;
    let wal = position(seeder).await;
    let before = (cpu_seconds(worker), cpu_seconds(postmaster));
    let begun = Instant::now();
    begin(seeder, endpoint).await;
    let all_arrived = async || sink.count().await >= count;
    Seeder::wait("all arrived", POLL_INTERVAL, all_arrived).await;
    let per_second = count as f64 / begun.elapsed().as_secs_f64();
    let all_recorded = async || seeder.number(RECORDED, endpoint.0).await == count as i64;
    Seeder::wait("all are recorded", POLL_INTERVAL, all_recorded).await;
    let recorded_per_second = count as f64 / begun.elapsed().as_secs_f64();
    let after = (cpu_seconds(worker), cpu_seconds(postmaster));
    let thousands = count as f64 / 1_000.0;
    Throughput {
        per_second,
        recorded_per_second,
        worker_cpu: (after.0 - before.0) / thousands,
        postgres_cpu: (after.1 - before.1) / thousands,
        wal_bytes: (position(seeder).await - wal) as f64 / count as f64,
        floor_per_second: baseline(&sink, count).await,
    }
}

async fn position(seeder: &Seeder<'_>) -> i64 {
    let asked = sqlx::query_scalar("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint");
    asked
        .fetch_one(seeder.pool)
        .await
        .expect("Postgres answers")
}

/// Resumes the endpoint and notifies the worker.
async fn begin(seeder: &Seeder<'_>, endpoint: WebhookEndpointId) {
    let begin = sqlx::query(
        "WITH resumed AS (UPDATE webhook_endpoints SET paused_until = NULL WHERE id = $1 RETURNING id)
         SELECT pg_notify('waypost_webhooks', 'due ' || id) FROM resumed",
    );
    seeder.run(begin.bind(endpoint.0)).await;
}

/// Calls per second of a plain loop: the request that the sink got last, byte by byte, by
/// as many callers.
async fn baseline(sink: &SinkProcess, count: usize) -> f64 {
    let request = sink.last().await;
    let (head, body) = request.split_at(head_length(&request).expect("it is complete"));
    let mut kept = HeaderMap::new();
    for (name, value) in headers(head) {
        // The client library writes these itself.
        if !["host", "content-length"].contains(&name) {
            let name: HeaderName = name.parse().expect("it was sent");
            kept.insert(name, HeaderValue::from_str(value).expect("it was sent"));
        }
    }
    let client = reqwest::Client::builder().no_proxy().build();
    let client = client.expect("an HTTP client can be made");
    let body = bytes::Bytes::copy_from_slice(body);
    let url: url::Url = sink.url.parse().expect("it is one");
    let begun = Instant::now();
    let callers = (0..CALLERS).map(|_| {
        let (client, url, kept, body) = (client.clone(), url.clone(), kept.clone(), body.clone());
        tokio::spawn(async move {
            for _ in 0..count / CALLERS {
                let call = client.post(url.clone()).headers(kept.clone());
                let reply = call.body(body.clone()).send().await.expect("it answers");
                reply.bytes().await.expect("it answers");
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.expect("a caller ends");
    }
    (count / CALLERS * CALLERS) as f64 / begun.elapsed().as_secs_f64()
}
