//! Rows 10 and 11: the check of recipients against millions of suppressions, by the
//! service's own checker with a complete Bloom filter, and the import of ten thousand
//! more through the API.

use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;
use waypost_core::address::AddressHash;
use waypost_core::clock::Clock;
use waypost_core::db::lifo_pool::LifoPool;
use waypost_core::db::{self, PgPool};
use waypost_core::ids::{Ids, OrganizationId};
use waypost_core::redis::Redis;
use waypost_core::suppression::bloom_filter::BloomFilters;
use waypost_core::suppression::check::{self, CheckedRecipient, Checker};

use crate::dataset::{Caller, Dataset, Timings};
use crate::fill;

/// Recipients per check.
const RECIPIENTS: u64 = 1_000;
/// One recipient in this many is suppressed, in the second kind of check.
const SUPPRESSED_EVERY: u64 = 100;
/// Checks of each kind.
const CHECKS: u64 = 300;
/// Addresses per check when all suppressed addresses are checked.
const CHECK_BATCH: u64 = 5_000;
/// Concurrent checks then.
const CHECKS_CONCURRENT: usize = 3;
/// Addresses that are not suppressed, for the rate of false positives.
const UNSUPPRESSED: u64 = 1_000_000;
/// Time limit for building the filter.
const BUILD_TIME_MAX: Duration = Duration::from_secs(120);
/// Addresses per import, and the number of imports.
const IMPORTED: u64 = 10_000;
const IMPORTS: u64 = 15;

/// The bounds.
pub(crate) const FASTER_MIN: f64 = 4.0;
pub(crate) const BYTES_MAX: f64 = 2.1;
pub(crate) const IMPORT_RATIO_MAX: f64 = 2.0;

/// An organization with many suppressions.
#[derive(Debug)]
pub(crate) struct SuppressionBench<'a> {
    pub(crate) dataset: &'a Dataset,
    pub(crate) caller: &'a Caller,
    pub(crate) redis_url: &'a str,
    /// The API's prefix of Redis keys.
    pub(crate) prefix: &'a str,
    /// Number of suppressions.
    pub(crate) count: u64,
}

impl SuppressionBench<'_> {
    /// Row 10. Returns its figures.
    pub(crate) async fn check(&self) -> Value {
        let pool = self.pool();
        let redis = Redis::new(&self.redis_url.to_owned().into(), self.prefix);
        let redis = redis.expect("the URL can be read");
        let ids = Ids::new(Clock::system());
        let filters = BloomFilters::start(self.pool(), redis.clone(), ids);
        let checker = Checker::start(LifoPool::new(pool.clone()), filters.clone());
        let bytes = self.wait_for_filter(&checker, &redis).await;
        #[expect(clippy::cast_precision_loss, reason = "millions")]
        let bytes_each = bytes as f64 / self.count as f64;
        let (none, baseline) = self.compare(&checker, 0).await;
        let (some, baseline_some) = self.compare(&checker, SUPPRESSED_EVERY).await;
        for (what, timings, baseline) in [
            ("strangers", &none, &baseline),
            ("one in 100 suppressed", &some, &baseline_some),
        ] {
            println!(
                "  check of {RECIPIENTS}, {what:22} p50 {:6.3} ms  p99 {:6.3} ms  = ANY {:6.3} ms  {:4.1} x",
                timings.p50(),
                timings.p99(),
                baseline.p50(),
                baseline.p50() / timings.p50(),
            );
        }
        let missed = self.check_all(&checker).await;
        // The checker's connections return to the pool when its tasks end.
        drop(checker);
        pool.close().await;
        let false_positives = self.false_positive_rate(&filters).await;
        println!(
            "  {bytes_each:.3} bytes an entry, {missed} of {} missed, {:.3} % of others are looked up in Postgres",
            self.count,
            false_positives * 100.0,
        );
        json!({
            "p50_ms": none.p50(), "p99_ms": none.p99(), "floor_p50_ms": baseline.p50(),
            "ratio": baseline.p50() / none.p50(),
            "some_suppressed": {
                "p50_ms": some.p50(), "p99_ms": some.p99(), "floor_p50_ms": baseline_some.p50(),
                "ratio": baseline_some.p50() / some.p50(),
            },
            "bytes_an_entry": bytes_each, "false_negatives": missed, "false_positives": false_positives,
        })
    }

    /// Row 11. Returns its figures.
    pub(crate) async fn import(&self) -> Value {
        let connection = PgConnection::connect(&self.dataset.database_url).await;
        let mut connection = connection.expect("Postgres answers");
        let (mut imports, mut baseline) = (Timings::default(), Timings::default());
        for nth in 0..=IMPORTS {
            let numbers = nth * IMPORTED..(nth + 1) * IMPORTED;
            let took = self.import_by_api(numbers.clone()).await;
            let bare = self.import_baseline(&mut connection, numbers).await;
            // The first is the warm-up.
            if nth > 0 {
                imports.add(took);
                baseline.add(bare);
            }
        }
        let ratio = imports.p50() / baseline.p50();
        println!(
            "  import of {IMPORTED}  p50 {:6.1} ms  p99 {:6.1} ms  bare INSERT {:6.1} ms  {ratio:4.2} x its time",
            imports.p50(),
            imports.p99(),
            baseline.p50(),
        );
        json!({
            "p50_ms": imports.p50(), "p99_ms": imports.p99(), "floor_p50_ms": baseline.p50(), "ratio": ratio,
        })
    }

    /// The kind of pool that the API uses for the checks of sends.
    fn pool(&self) -> PgPool {
        let url = self.dataset.database_url.clone().into();
        db::routine_pool(&url, check::CONNECTIONS).expect("the URL can be read")
    }

    /// Checks until the filter is complete; returns its size in bytes.
    async fn wait_for_filter(&self, checker: &Checker, redis: &Redis) -> i64 {
        let key = format!(
            "{}:suppressions:{{{}}}",
            self.prefix, self.caller.organization
        );
        let began = Instant::now();
        let mut connection = redis.pool.get().await.expect("Redis answers");
        loop {
            self.count_suppressed(checker, &[unsuppressed(0)]).await;
            let (complete,): (i64,) = redis::cmd("BITFIELD_RO")
                .arg(&key)
                .arg("GET")
                .arg("i64")
                .arg("#2")
                .query_async(&mut *connection)
                .await
                .expect("Redis answers");
            if complete == 1 {
                break;
            }
            assert!(
                began.elapsed() < BUILD_TIME_MAX,
                "the filter is not built within {BUILD_TIME_MAX:?}"
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
            .query_async(&mut *connection)
            .await;
        size.expect("Redis returns the size of a key")
    }

    /// Checks recipients of which one in `suppressed_every` is suppressed (none if it is
    /// 0), in alternation with the same query to Postgres.
    async fn compare(&self, checker: &Checker, suppressed_every: u64) -> (Timings, Timings) {
        let connection = PgConnection::connect(&self.dataset.database_url).await;
        let mut connection = connection.expect("Postgres answers");
        let (mut checks, mut baseline) = (Timings::default(), Timings::default());
        for nth in 0..CHECKS {
            let hashes: Vec<AddressHash> = (0..RECIPIENTS)
                .map(|at| {
                    let number = nth * RECIPIENTS + at;
                    if suppressed_every > 0 && at.is_multiple_of(suppressed_every) {
                        suppressed(fill::history::split_mix(number) % self.count)
                    } else {
                        unsuppressed(number)
                    }
                })
                .collect();
            let began = Instant::now();
            let create_organizations = self.count_suppressed(checker, &hashes).await;
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
            baseline.add(began.elapsed());
            assert_eq!(
                create_organizations,
                rows.len(),
                "the checker and Postgres disagree"
            );
        }
        (checks, baseline)
    }

    /// Checks every suppressed address; returns the number of those not found.
    async fn check_all(&self, checker: &Checker) -> u64 {
        let began = Instant::now();
        let questions = stream::iter((0..self.count).step_by(CHECK_BATCH as usize));
        let create_organizations = questions
            .map(|first| async move {
                let hashes: Vec<AddressHash> = (first..(first + CHECK_BATCH).min(self.count))
                    .map(suppressed)
                    .collect();
                Ok::<u64, ()>(self.count_suppressed(checker, &hashes).await as u64)
            })
            .buffer_unordered(CHECKS_CONCURRENT)
            .try_fold(0, |sum, create_organizations| async move {
                Ok(sum + create_organizations)
            })
            .await;
        println!(
            "  all {} were checked in {:.1} s",
            self.count,
            began.elapsed().as_secs_f64()
        );
        self.count - create_organizations.unwrap_or_default()
    }

    /// Checks addresses that are not suppressed; returns the share that the filter did
    /// not rule out. Each of those costs an index scan, and the scans are counted.
    async fn false_positive_rate(&self, filters: &BloomFilters) -> f64 {
        let before = self.index_scans().await;
        let pool = self.pool();
        let checker = Checker::start(LifoPool::new(pool.clone()), filters.clone());
        for first in (0..UNSUPPRESSED).step_by(CHECK_BATCH as usize) {
            let hashes: Vec<AddressHash> = (first..first + CHECK_BATCH)
                .map(|nth| unsuppressed(u64::MAX - nth))
                .collect();
            let create_organizations = self.count_suppressed(&checker, &hashes).await;
            assert_eq!(create_organizations, 0, "none of them is suppressed");
        }
        drop(checker);
        pool.close().await;
        let looked = self.index_scans().await - before;
        #[expect(clippy::cast_precision_loss, reason = "a million")]
        let share = looked as f64 / UNSUPPRESSED as f64;
        share
    }

    async fn index_scans(&self) -> i64 {
        // A session reports its scans when it ends.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let connection = PgConnection::connect(&self.dataset.database_url).await;
        let mut connection = connection.expect("Postgres answers");
        sqlx::query_scalar(
            "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'suppressions_address_key'",
        )
        .fetch_one(&mut connection)
        .await
        .expect("the index is there")
    }

    /// The number of suppressed addresses among these.
    async fn count_suppressed(&self, checker: &Checker, hashes: &[AddressHash]) -> usize {
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
            .dataset
            .call(self.caller, Method::POST, path, Some(&body))
            .await;
        assert_eq!(answer["data"]["imported"], IMPORTED, "all of them are new");
        took
    }

    /// The baseline: inserts as many rows into the same table, and commits.
    async fn import_baseline(
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

fn unsuppressed(number: u64) -> AddressHash {
    AddressHash(Sha256::digest(format!("stranger-{number}@example.com")).into())
}
