//! The measurement: needs a database that is migrated and empty, and an API that
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

use super::fill::{self, Story};
use super::posts::Post;
use crate::usage::cpu_seconds;

/// Connections that post at the same time, and those of the floor.
pub(crate) const CONNECTIONS: usize = 8;
/// The same for posts of one event: Mailgun makes a call for each.
const SINGLE_CONNECTIONS: usize = 64;
/// Copies that are told of in posts of a hundred.
const BATCHED_COPIES: usize = 60_000;
/// Copies that are told of one by one.
const SINGLE_COPIES: usize = 30_000;
/// Copies of a story that is told for the sake of something else.
const SHORT_COPIES: usize = 12_000;
/// A part of each that is posted before anything is timed.
const WARM_UP_PARTS: usize = 12;

/// What is measured.
pub(crate) struct Site {
    pub(crate) pool: PgPool,
    pub(crate) address: SocketAddr,
    /// The process of the API.
    pub(crate) api: u32,
    /// The first process of Postgres.
    pub(crate) postgres: u32,
    /// What the API opens secrets with.
    pub(crate) sealer: Sealer,
    pub(crate) ids: Ids,
    pub(crate) clock: Clock,
}

/// What came out.
pub(crate) struct Figures {
    pub(crate) batched: Rate,
    pub(crate) single: Rate,
}

/// How a story was taken in.
pub(crate) struct Rate {
    events: usize,
    took: Duration,
    pub(crate) slowest: Duration,
    api_seconds: f64,
    postgres_seconds: f64,
    wal_bytes: f64,
}

/// Takes all figures.
pub(crate) async fn measure(site: &Site) -> Figures {
    // As in life, where mail is told of soon after it was sent: its pages were written
    // since the last checkpoint.
    execute(&site.pool, "CHECKPOINT").await;
    let batched = fill::batched(site, BATCHED_COPIES).await;
    let single = fill::single(site, SINGLE_COPIES).await;
    execute(
        &site.pool,
        "VACUUM (ANALYZE) messages, recipients, send_attempts, events, provider_events",
    )
    .await;
    let batched = told(site, batched, CONNECTIONS).await;
    let single = told(site, single, SINGLE_CONNECTIONS).await;
    Figures { batched, single }
}

/// Tells a short story, in posts of a hundred.
pub(crate) async fn tell(site: &Site) {
    let story = fill::batched(site, SHORT_COPIES).await;
    told(site, story, CONNECTIONS).await;
}

async fn execute(pool: &PgPool, statement: &'static str) {
    let done = query(statement).execute(pool).await;
    done.expect("Postgres does what it is told");
}

/// Tells a story over so many connections, and makes sure that all of it was recorded.
async fn told(site: &Site, story: Story, connections: usize) -> Rate {
    let mut before = totals(&site.pool).await;
    let (warm_up, timed) = story.posts.split_at(story.posts.len() / WARM_UP_PARTS);
    post_all(site.address, warm_up, connections).await;
    let (api, server, wal) = (
        cpu_seconds(site.api),
        cpu_seconds(site.postgres),
        wal(&site.pool).await,
    );
    let begun = Instant::now();
    let slowest = post_all(site.address, timed, connections).await;
    let took = begun.elapsed();
    let rate = Rate {
        events: timed.iter().map(|post| post.events).sum(),
        took,
        slowest,
        api_seconds: cpu_seconds(site.api) - api,
        postgres_seconds: cpu_seconds(site.postgres) - server,
        wal_bytes: wal_since(&site.pool, &wal).await,
    };
    for (event_type, count) in &story.events {
        *before.entry((*event_type).to_owned()).or_default() += count;
    }
    assert_eq!(totals(&site.pool).await, before, "each is recorded once");
    rate
}

/// Events of each type.
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

/// Posts everything, each connection every so-many-th, and answers how long the
/// slowest took.
async fn post_all(address: SocketAddr, posts: &[Post], connections: usize) -> Duration {
    let slowest = (0..connections).map(|nth| {
        let own = posts.iter().skip(nth).step_by(connections);
        let own: Vec<_> = own.map(|post| post.bytes.clone()).collect();
        tokio::spawn(post_in_turn(address, own))
    });
    let slowest = join_all(slowest.collect::<Vec<_>>()).await;
    let slowest = slowest.into_iter().map(|one| one.expect("all is taken"));
    slowest.max().unwrap_or_default()
}

async fn post_in_turn(address: SocketAddr, posts: Vec<bytes::Bytes>) -> Duration {
    let mut slowest = Duration::ZERO;
    let stream = TcpStream::connect(address).await;
    let mut stream = stream.expect("the API listens");
    stream.set_nodelay(true).expect("a stream can be hasty");
    let mut answer = Vec::with_capacity(4_096);
    for post in posts {
        let begun = Instant::now();
        let written = stream.write_all(&post).await;
        written.expect("the API reads");
        answer.clear();
        while !is_whole(&answer) {
            let read = stream.read_buf(&mut answer).await;
            assert!(read.expect("the API answers") > 0, "the API hung up");
        }
        let head = String::from_utf8_lossy(&answer);
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        slowest = slowest.max(begun.elapsed());
    }
    slowest
}

/// Whether an answer has come to its end.
fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let length = head.split_once("content-length:").and_then(|(_, after)| {
        let line = after.split("\r\n").next()?;
        line.trim().parse::<usize>().ok()
    });
    answer.len() - end - 4 >= length.expect("answers say how long they are")
}

impl Rate {
    pub(crate) fn per_second(&self) -> f64 {
        self.events as f64 / self.took.as_secs_f64()
    }

    /// CPU seconds of the API and of Postgres for 1,000 events, and bytes of the log for
    /// one.
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
