//! Rows 10 and 11: the check of recipients against millions of suppressions, by the
//! service's own checker with its filter complete, and the import of ten thousand more
//! through the API.

use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;
use waypost_core::address::AddressHash;
use waypost_core::clock::Clock;
use waypost_core::db::lifo_pool::WarmPool;
use waypost_core::db::{self, PgPool};
use waypost_core::ids::{Ids, OrganizationId};
use waypost_core::redis::Redis;
use waypost_core::suppression::bloom_filter::BloomFilters;
use waypost_core::suppression::check::{self, CheckedRecipient, Checker};

use crate::fill;
use crate::place::{Caller, Place, Timings};

/// Recipients of one check.
const RECIPIENTS: u64 = 1_000;
/// How many of them are suppressed, in the second kind of check: one in a hundred.
const SUPPRESSED_EVERY: u64 = 100;
/// Checks of each kind.
const CHECKS: u64 = 300;
/// Addresses of one question when all of them are asked.
const ASKED_AT_ONCE: u64 = 5_000;
/// Questions under way at the same time then.
const ASKED_SIDE_BY_SIDE: usize = 3;
/// Addresses that are not suppressed, for the share of those that get a "maybe".
const STRANGERS: u64 = 1_000_000;
/// How long a filter may take to be built.
const BUILT_WITHIN: Duration = Duration::from_secs(120);
/// Addresses of an import, and how many there are.
const IMPORTED: u64 = 10_000;
const IMPORTS: u64 = 15;

/// What is asked for.
pub(crate) const FASTER_MIN: f64 = 4.0;
pub(crate) const BYTES_MAX: f64 = 2.1;
pub(crate) const IMPORT_RATIO_MAX: f64 = 2.0;

/// An organization with many suppressions.
#[derive(Debug)]
pub(crate) struct Suppressing<'a> {
    pub(crate) place: &'a Place,
    pub(crate) caller: &'a Caller,
    pub(crate) redis_url: &'a str,
    /// The prefix of the API's keys.
    pub(crate) prefix: &'a str,
    /// How many suppressions were filled in.
    pub(crate) count: u64,
}

impl Suppressing<'_> {
    /// Row 10. Answers the report.
    pub(crate) async fn check(&self) -> Value {
        let pool = self.pool();
        let redis = Redis::new(&self.redis_url.to_owned().into(), self.prefix);
        let redis = redis.expect("the URL can be read");
        let ids = Ids::new(Clock::system());
        let filters = BloomFilters::start(self.pool(), redis.clone(), ids);
        let checker = Checker::start(WarmPool::new(pool.clone()), filters.clone());
        let bytes = self.wait_for_filter(&checker, &redis).await;
        #[expect(clippy::cast_precision_loss, reason = "millions")]
        let bytes_each = bytes as f64 / self.count as f64;
        let (strangers, floor) = self.compare(&checker, 0).await;
        let (some, floor_some) = self.compare(&checker, SUPPRESSED_EVERY).await;
        for (what, timings, floor) in [
            ("strangers", &strangers, &floor),
            ("one in 100 suppressed", &some, &floor_some),
        ] {
            println!(
                "  check of {RECIPIENTS}, {what:22} p50 {:6.3} ms  p99 {:6.3} ms  = ANY {:6.3} ms  {:4.1} x",
                timings.p50(),
                timings.p99(),
                floor.p50(),
                floor.p50() / timings.p50(),
            );
        }
        let missed = self.ask_all(&checker).await;
        // What it keeps goes back to the pool when its lanes end.
        drop(checker);
        pool.close().await;
        let maybes = self.ask_strangers(&filters).await;
        println!(
            "  {bytes_each:.3} bytes an entry, {missed} of {} missed, {:.3} % of strangers are asked of Postgres",
            self.count,
            maybes * 100.0,
        );
        json!({
            "p50_ms": strangers.p50(), "p99_ms": strangers.p99(), "floor_p50_ms": floor.p50(),
            "ratio": floor.p50() / strangers.p50(),
            "some_suppressed": {
                "p50_ms": some.p50(), "p99_ms": some.p99(), "floor_p50_ms": floor_some.p50(),
                "ratio": floor_some.p50() / some.p50(),
            },
            "bytes_an_entry": bytes_each, "false_negatives": missed, "false_positives": maybes,
        })
    }

    /// Row 11. Answers the report.
    pub(crate) async fn import(&self) -> Value {
        let connection = PgConnection::connect(&self.place.database_url).await;
        let mut connection = connection.expect("Postgres answers");
        let (mut imports, mut floor) = (Timings::default(), Timings::default());
        for nth in 0..=IMPORTS {
            let numbers = nth * IMPORTED..(nth + 1) * IMPORTED;
            let took = self.import_by_api(numbers.clone()).await;
            let bare = self.import_bare(&mut connection, numbers).await;
            // The first warms up.
            if nth > 0 {
                imports.add(took);
                floor.add(bare);
            }
        }
        let ratio = imports.p50() / floor.p50();
        println!(
            "  import of {IMPORTED}  p50 {:6.1} ms  p99 {:6.1} ms  bare INSERT {:6.1} ms  {ratio:4.2} x its time",
            imports.p50(),
            imports.p99(),
            floor.p50(),
        );
        json!({
            "p50_ms": imports.p50(), "p99_ms": imports.p99(), "floor_p50_ms": floor.p50(), "ratio": ratio,
        })
    }

    /// As the API has one for what every send may have to ask.
    fn pool(&self) -> PgPool {
        let url = self.place.database_url.clone().into();
        db::routine_pool(&url, check::CONNECTIONS).expect("the URL can be read")
    }

    /// Asks until the filter is complete; its size in bytes.
    async fn wait_for_filter(&self, checker: &Checker, redis: &Redis) -> i64 {
        let key = format!(
            "{}:suppressions:{{{}}}",
            self.prefix, self.caller.organization
        );
        let began = Instant::now();
        let mut connection = redis
            .client
            .get_multiplexed_async_connection()
            .await
            .expect("Redis answers");
        loop {
            self.ask(checker, &[stranger(0)]).await;
            let (complete,): (i64,) = redis::cmd("BITFIELD_RO")
                .arg(&key)
                .arg("GET")
                .arg("i64")
                .arg("#2")
                .query_async(&mut connection)
                .await
                .expect("Redis answers");
            if complete == 1 {
                break;
            }
            assert!(
                began.elapsed() < BUILT_WITHIN,
                "the filter is not built within {BUILT_WITHIN:?}"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        println!(
            "  the filter is complete after {:.1} s",
            began.elapsed().as_secs_f64()
        );
        let size = redis::cmd("MEMORY")
            .arg("USAGE")
            .arg(&key)
            .query_async(&mut connection)
            .await;
        size.expect("Redis tells the size of a key")
    }

    /// Checks recipients of which one in `suppressed_every` is suppressed (none where it
    /// is 0), in turn with the same question to Postgres.
    async fn compare(&self, checker: &Checker, suppressed_every: u64) -> (Timings, Timings) {
        let connection = PgConnection::connect(&self.place.database_url).await;
        let mut connection = connection.expect("Postgres answers");
        let (mut checks, mut floor) = (Timings::default(), Timings::default());
        for nth in 0..CHECKS {
            let hashes: Vec<AddressHash> = (0..RECIPIENTS)
                .map(|at| {
                    let number = nth * RECIPIENTS + at;
                    if suppressed_every > 0 && at.is_multiple_of(suppressed_every) {
                        suppressed(fill::history::mixed(number) % self.count)
                    } else {
                        stranger(number)
                    }
                })
                .collect();
            let began = Instant::now();
            let found = self.ask(checker, &hashes).await;
            checks.add(began.elapsed());
            let bytes: Vec<&[u8]> = hashes.iter().map(|hash| hash.0.as_slice()).collect();
            let began = Instant::now();
            let rows: Vec<Vec<u8>> = sqlx::query_scalar(
                "SELECT email_hash FROM suppressions WHERE organization_id = $1 AND email_hash = ANY($2)",
            )
            .bind(self.caller.organization)
            .bind(bytes.as_slice())
            .fetch_all(&mut connection)
            .await
            .expect("suppressions can be read");
            floor.add(began.elapsed());
            assert_eq!(found, rows.len(), "the checker and Postgres disagree");
        }
        (checks, floor)
    }

    /// Asks for every suppressed address there is; how many were not found.
    async fn ask_all(&self, checker: &Checker) -> u64 {
        let began = Instant::now();
        let questions = stream::iter((0..self.count).step_by(ASKED_AT_ONCE as usize));
        let found = questions
            .map(|first| async move {
                let hashes: Vec<AddressHash> = (first..(first + ASKED_AT_ONCE).min(self.count))
                    .map(suppressed)
                    .collect();
                Ok::<u64, ()>(self.ask(checker, &hashes).await as u64)
            })
            .buffer_unordered(ASKED_SIDE_BY_SIDE)
            .try_fold(0, |sum, found| async move { Ok(sum + found) })
            .await;
        println!(
            "  all {} were asked for in {:.1} s",
            self.count,
            began.elapsed().as_secs_f64()
        );
        self.count - found.unwrap_or_default()
    }

    /// Asks for addresses that are not suppressed; which part of them Postgres had to
    /// look for, which the filter did not rule out: a look is a scan of the index.
    async fn ask_strangers(&self, filters: &BloomFilters) -> f64 {
        let before = self.index_scans().await;
        let pool = self.pool();
        let checker = Checker::start(WarmPool::new(pool.clone()), filters.clone());
        for first in (0..STRANGERS).step_by(ASKED_AT_ONCE as usize) {
            let hashes: Vec<AddressHash> = (first..first + ASKED_AT_ONCE)
                .map(|nth| stranger(u64::MAX - nth))
                .collect();
            let found = self.ask(&checker, &hashes).await;
            assert_eq!(found, 0, "nobody suppressed them");
        }
        drop(checker);
        pool.close().await;
        let looked = self.index_scans().await - before;
        #[expect(clippy::cast_precision_loss, reason = "a million")]
        let share = looked as f64 / STRANGERS as f64;
        share
    }

    async fn index_scans(&self) -> i64 {
        // A session tells of its scans when it ends.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let connection = PgConnection::connect(&self.place.database_url).await;
        let mut connection = connection.expect("Postgres answers");
        sqlx::query_scalar(
            "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'suppressions_address_key'",
        )
        .fetch_one(&mut connection)
        .await
        .expect("the index is there")
    }

    /// How many of these are suppressed.
    async fn ask(&self, checker: &Checker, hashes: &[AddressHash]) -> usize {
        let asked = hashes.iter().map(|hash| CheckedRecipient {
            hash: *hash,
            unsubscribe_group_id: None,
        });
        let asked: Vec<CheckedRecipient> = asked.collect();
        let answers = checker
            .check(OrganizationId(self.caller.organization), &asked)
            .await;
        let answers = answers.expect("Postgres answers");
        answers.into_iter().filter(|suppressed| *suppressed).count()
    }

    async fn import_by_api(&self, numbers: std::ops::Range<u64>) -> Duration {
        let emails: Vec<String> = numbers
            .map(|number| format!("new-{number}@example.com"))
            .collect();
        let body = json!({ "emails": emails });
        let path = "/v1/suppressions/import";
        let (took, answer) = self
            .place
            .call(self.caller, Method::POST, path, Some(&body))
            .await;
        assert_eq!(answer["data"]["imported"], IMPORTED, "all of them are new");
        took
    }

    /// The least that could be done: as many rows into the same table, committed.
    async fn import_bare(
        &self,
        connection: &mut PgConnection,
        numbers: std::ops::Range<u64>,
    ) -> Duration {
        let clock = Clock::system();
        let ids = Ids::new(clock.clone());
        let hashes: Vec<Vec<u8>> = numbers
            .map(|number| Sha256::digest(format!("bare-{number}@example.com")).to_vec())
            .collect();
        let ids: Vec<Uuid> = hashes.iter().map(|_| ids.next()).collect();
        let began = Instant::now();
        let done = sqlx::query(
            "INSERT INTO suppressions (id, organization_id, email_hash, source, created_at)
             SELECT id, $1, email_hash, 'IMPORT', $4
             FROM UNNEST($2::uuid[], $3::bytea[]) AS n (id, email_hash)
             ON CONFLICT ON CONSTRAINT suppressions_address_key DO NOTHING",
        )
        .bind(self.caller.organization)
        .bind(&ids)
        .bind(&hashes)
        .bind(clock.now())
        .execute(connection)
        .await
        .expect("suppressions can be added");
        assert_eq!(done.rows_affected(), IMPORTED, "all of them are new");
        began.elapsed()
    }
}

fn suppressed(number: u64) -> AddressHash {
    AddressHash(Sha256::digest(fill::suppressed_address(number)).into())
}

fn stranger(number: u64) -> AddressHash {
    AddressHash(Sha256::digest(format!("stranger-{number}@example.com")).into())
}
