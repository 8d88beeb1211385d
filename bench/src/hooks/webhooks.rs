//! How many events are told to one fast receiver, signed and recorded, beside a bare
//! loop that posts the same bytes to the same receiver.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::Instant;
use waypost_core::ids::WebhookEndpointId;

use super::customers::Town;
use super::sink::{SinkProcess, head_of, headers};
use crate::usage::cpu_seconds;

/// Callers of the bare loop: as many as one endpoint gets of Waypost.
pub(super) const CALLERS: usize = 8;
/// How often it is looked whether all have come. Each look is a connection.
const LOOK_EVERY: Duration = Duration::from_millis(25);

const RECORDED: &str = "SELECT count(*) FROM webhook_deliveries WHERE webhook_endpoint_id = $1 AND status = 'DELIVERED'";

/// What was measured.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) per_second: f64,
    pub(crate) recorded_per_second: f64,
    pub(crate) floor_per_second: f64,
    /// CPU seconds for 1,000 deliveries.
    pub(crate) worker_cpu: f64,
    pub(crate) postgres_cpu: f64,
    /// Bytes written to the log for each delivery.
    pub(crate) wal_bytes: f64,
}

impl Told {
    /// Of what counts, which is what is recorded.
    pub(crate) fn ratio(&self) -> f64 {
        self.recorded_per_second / self.floor_per_second
    }
}

/// Tells `count` events that wait already. `worker` and `postmaster` are the processes
/// whose time is counted.
pub(crate) async fn webhooks(town: &Town<'_>, count: usize, worker: u32, postmaster: u32) -> Told {
    let sink = SinkProcess::start().await;
    let organization = town.organization("Told").await;
    let messages = town.messages(organization, count).await;
    let endpoint = town.subscribe(organization, &sink.url).await;
    let pause = sqlx::query("UPDATE webhook_endpoints SET paused_until = 'infinity' WHERE id = $1");
    town.run(pause.bind(endpoint.0)).await;
    town.deliver(organization, &messages).await;
    // As after a while: with statistics, and no checkpoint that is due.
    town.run(sqlx::query(
        "ANALYZE webhook_deliveries, messages, recipients, events",
    ))
    .await;
    town.run(sqlx::query("CHECKPOINT")).await;
    let wal = position(town).await;
    let before = (cpu_seconds(worker), cpu_seconds(postmaster));
    let begun = Instant::now();
    begin(town, endpoint).await;
    let all_came = async || sink.count().await >= count;
    Town::wait("all came", LOOK_EVERY, all_came).await;
    let per_second = count as f64 / begun.elapsed().as_secs_f64();
    let all_recorded = async || town.number(RECORDED, endpoint.0).await == count as i64;
    Town::wait("all are recorded", LOOK_EVERY, all_recorded).await;
    let recorded_per_second = count as f64 / begun.elapsed().as_secs_f64();
    let after = (cpu_seconds(worker), cpu_seconds(postmaster));
    let thousands = count as f64 / 1_000.0;
    Told {
        per_second,
        recorded_per_second,
        worker_cpu: (after.0 - before.0) / thousands,
        postgres_cpu: (after.1 - before.1) / thousands,
        wal_bytes: (position(town).await - wal) as f64 / count as f64,
        floor_per_second: floor(&sink, count).await,
    }
}

async fn position(town: &Town<'_>) -> i64 {
    let asked = sqlx::query_scalar("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint");
    asked.fetch_one(town.pool).await.expect("Postgres answers")
}

/// Lets the endpoint be called, and says so.
async fn begin(town: &Town<'_>, endpoint: WebhookEndpointId) {
    let begin = sqlx::query(
        "WITH free AS (UPDATE webhook_endpoints SET paused_until = NULL WHERE id = $1 RETURNING id)
         SELECT pg_notify('waypost_webhooks', 'due ' || id) FROM free",
    );
    town.run(begin.bind(endpoint.0)).await;
}

/// Calls a second of a bare loop: the request that the sink got last, byte by byte, by
/// as many callers.
async fn floor(sink: &SinkProcess, count: usize) -> f64 {
    let request = sink.last().await;
    let (head, body) = request.split_at(head_of(&request).expect("it is complete"));
    let mut kept = HeaderMap::new();
    for (name, value) in headers(head) {
        // These the library writes by itself.
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
