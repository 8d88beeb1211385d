//! The measurement. It needs a database that is migrated and empty, and an API that
//! serves it.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use sqlx::{AssertSqlSafe, PgPool, query, query_scalar};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;
use waypost_core::clock::Clock;
use waypost_core::crypto::seal::Sealer;
use waypost_core::ids::Ids;

use super::fill::{self, EventPosts};
use super::posts::Post;
use crate::usage::cpu_seconds;

/// Connections that post in parallel, and those of the baseline.
pub(crate) const CONNECTIONS: usize = 8;
/// The same for posts of one event: Mailgun makes a call for each event.
const SINGLE_CONNECTIONS: usize = 64;
/// Recipients with events in posts of a hundred.
const BATCHED_RECIPIENTS: usize = 60_000;
/// Recipients with events in posts of one.
const SINGLE_RECIPIENTS: usize = 30_000;
/// Recipients of the measurement of the batchers.
const BATCHER_RECIPIENTS: usize = 12_000;
/// One part in this many is posted as a warm-up.
const WARM_UP_PARTS: usize = 12;

/// The API under test and its database.
pub(crate) struct Target {
    pub(crate) pool: PgPool,
    pub(crate) address: SocketAddr,
    /// The process of the API.
    pub(crate) api: u32,
    /// The postmaster process.
    pub(crate) postgres: u32,
    /// The sealer with the API's key.
    pub(crate) sealer: Sealer,
    pub(crate) ids: Ids,
    pub(crate) clock: Clock,
}

/// The results.
pub(crate) struct Figures {
    pub(crate) batched: Rate,
    pub(crate) single: Rate,
}

/// The rate at which posts were recorded, and their cost.
pub(crate) struct Rate {
    events: usize,
    took: Duration,
    pub(crate) slowest: Duration,
    api_seconds: f64,
    postgres_seconds: f64,
    wal_bytes: f64,
}

/// Measures both kinds of post.
pub(crate) async fn measure(target: &Target) -> Figures {
    // Events usually arrive soon after the send, so the pages of the message were written
    // since the last checkpoint.
    execute(&target.pool, "CHECKPOINT").await;
    let batched = fill::batched(target, BATCHED_RECIPIENTS).await;
    let single = fill::single(target, SINGLE_RECIPIENTS).await;
    execute(
        &target.pool,
        "VACUUM (ANALYZE) messages, recipients, send_attempts, events, provider_events",
    )
    .await;
    let batched = reported(target, batched, CONNECTIONS).await;
    let single = reported(target, single, SINGLE_CONNECTIONS).await;
    Figures { batched, single }
}

/// Posts a few batched events, without measuring.
pub(crate) async fn post_batched(target: &Target) {
    let in_rotation = fill::batched(target, BATCHER_RECIPIENTS).await;
    reported(target, in_rotation, CONNECTIONS).await;
}

async fn execute(pool: &PgPool, statement: &'static str) {
    let done = query(statement).execute(pool).await;
    done.expect("Postgres executes the statement");
}

/// Posts over this many connections, and asserts that every event was recorded once.
async fn reported(target: &Target, in_rotation: EventPosts, connections: usize) -> Rate {
    let mut before = totals(&target.pool).await;
    let (warm_up, timed) = in_rotation
        .posts
        .split_at(in_rotation.posts.len() / WARM_UP_PARTS);
    post_all(target.address, warm_up, connections).await;
    let (api, server, wal) = (
        cpu_seconds(target.api),
        cpu_seconds(target.postgres),
        wal(&target.pool).await,
    );
    let begun = Instant::now();
    let slowest = post_all(target.address, timed, connections).await;
    let took = begun.elapsed();
    let rate = Rate {
        events: timed.iter().map(|post| post.events).sum(),
        took,
        slowest,
        api_seconds: cpu_seconds(target.api) - api,
        postgres_seconds: cpu_seconds(target.postgres) - server,
        wal_bytes: wal_since(&target.pool, &wal).await,
    };
    for (event_type, count) in &in_rotation.events {
        *before.entry((*event_type).to_owned()).or_default() += count;
    }
    assert_eq!(totals(&target.pool).await, before, "each is recorded once");
    rate
}

/// Events by type.
async fn totals(pool: &PgPool) -> std::collections::BTreeMap<String, i64> {
    let rows: Vec<(String, i64)> = sqlx::query_as(
        "SELECT event_type::text, count(*)
         FROM events
         WHERE event_type NOT IN ('QUEUED', 'SENT')
         GROUP BY 1",
    )
    .fetch_all(pool)
    .await
    .expect("events can be counted");
    rows.into_iter().collect()
}

async fn wal(pool: &PgPool) -> String {
    let at = query_scalar("SELECT pg_current_wal_lsn()::text").fetch_one(pool);
    at.await.expect("Postgres knows where its log ends")
}

async fn wal_since(pool: &PgPool, from: &str) -> f64 {
    let bytes = format!("SELECT (pg_current_wal_lsn() - '{from}'::pg_lsn)::float8");
    let bytes = query_scalar(AssertSqlSafe(bytes)).fetch_one(pool);
    bytes.await.expect("Postgres knows where its log ends")
}

/// Posts everything, distributed over the connections, and returns the duration of the
/// slowest post.
async fn post_all(address: SocketAddr, posts: &[Post], connections: usize) -> Duration {
    let slowest = (0..connections).map(|nth| {
        let own = posts.iter().skip(nth).step_by(connections);
        let own: Vec<_> = own.map(|post| post.bytes.clone()).collect();
        tokio::spawn(post_in_turn(address, own))
    });
    let slowest = join_all(slowest.collect::<Vec<_>>()).await;
    let slowest = slowest
        .into_iter()
        .map(|one| one.expect("all posts are accepted"));
    slowest.max().unwrap_or_default()
}

async fn post_in_turn(address: SocketAddr, posts: Vec<bytes::Bytes>) -> Duration {
    let mut slowest = Duration::ZERO;
    let stream = TcpStream::connect(address).await;
    let mut stream = stream.expect("the API listens");
    stream.set_nodelay(true).expect("TCP_NODELAY can be set");
    let mut answer = Vec::with_capacity(4_096);
    for post in posts {
        let begun = Instant::now();
        let written = stream.write_all(&post).await;
        written.expect("the API reads");
        answer.clear();
        while !is_complete(&answer) {
            let read = stream.read_buf(&mut answer).await;
            assert!(read.expect("the API answers") > 0, "the API hung up");
        }
        let head = String::from_utf8_lossy(&answer);
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        slowest = slowest.max(begun.elapsed());
    }
    slowest
}

/// Whether the response is complete.
fn is_complete(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let length = head.split_once("content-length:").and_then(|(_, after)| {
        let line = after.split("\r\n").next()?;
        line.trim().parse::<usize>().ok()
    });
    answer.len() - end - 4 >= length.expect("responses have a content-length")
}

impl Rate {
    pub(crate) fn per_second(&self) -> f64 {
        self.events as f64 / self.took.as_secs_f64()
    }

    /// CPU seconds of the API and of Postgres for 1,000 events, and WAL bytes for one.
    pub(crate) fn costs(&self) -> (f64, f64, f64) {
        let events = self.events as f64;
        let thousands = events / 1_000.0;
        (
            self.api_seconds / thousands,
            self.postgres_seconds / thousands,
            self.wal_bytes / events,
        )
    }
}
