//! Postgres: the pool, the migrations, and what its errors mean. Queries live in
//! the `store` module of their subject. Whether it answers at all is known to `pulse`.

pub mod advisory_locks;
pub mod connection_check;
pub(crate) mod id_range;
pub mod leader_lock;
pub mod lifo_pool;
pub mod liveness;
pub mod organization_shard;
pub mod time;

use std::error::Error as StdError;
use std::str::FromStr;
use std::time::Duration;

use secrecy::ExposeSecret;
use sqlx::Connection as _;
use sqlx::migrate::{Migrate, Migrator};
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
pub use sqlx::{PgConnection, PgPool, PgTransaction};
use url::Url;

use crate::fault::{Fault, FaultKind};
use crate::secret::Secret;
use liveness::Liveness;

/// How long a request waits for a connection before it is answered 503.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a piece of work with Postgres may take before it counts as failed. A
/// connection that died without a word would else hold its caller for as long as
/// the kernel retries, a quarter of an hour.
const WORK_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection that comes back to its pool may take to answer. One that died
/// without a word would else keep its place in the pool for that quarter of an hour, and
/// with all of them dead nobody would get another.
const SIGN_OF_LIFE_TIMEOUT: Duration = WORK_TIMEOUT;

/// How long one statement may take in Postgres, in milliseconds.
const STATEMENT_TIMEOUT_MS: &str = "30000";

/// How long a transaction may wait for its next statement, in milliseconds. A
/// process that stands still would else keep its locks for as long as it does.
const IDLE_TRANSACTION_TIMEOUT_MS: &str = "60000";

/// The settings that have statements planned once, whatever their arguments, and along
/// indexes.
const ROUTINE: [(&str, &str); 2] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
];

/// What Postgres calls it when `lock_timeout` has passed.
const LOCK_TIMEOUT: &str = "55P03";
/// What it calls it when `statement_timeout` has.
const CANCELED: &str = "57014";
/// The code of a transaction that Postgres chose to end a deadlock.
const DEADLOCK: &str = "40P01";

/// The schemes of URLs of Postgres. sqlx takes any.
const SCHEMES: [&str; 2] = ["postgres", "postgresql"];

static MIGRATOR: Migrator = sqlx::migrate!("../migrations");

/// A pool that connects when first used, so that a process starts while Postgres
/// is away.
///
/// # Errors
/// A fault when the URL cannot be read.
pub fn pool(url: &Secret, connections_max: u32) -> Result<PgPool, Fault> {
    Ok(pool_of(connections_max).connect_lazy_with(options(url)?))
}

/// The same, for a few statements that run all the time along indexes: each is planned
/// once on each connection, for any values, and never reads a whole table. With arrays as
/// arguments Postgres would else plan most of them anew each time, which costs more than
/// they do (measured: 0.10 of 0.14 ms for a look at the suppressions), and trust what is
/// believed of tables that have just grown.
///
/// # Errors
/// A fault when the URL cannot be read.
pub fn routine_pool(url: &Secret, connections_max: u32) -> Result<PgPool, Fault> {
    Ok(pool_of(connections_max).connect_lazy_with(options(url)?.options(ROUTINE)))
}

/// The same, for a process that keeps a pulse.
///
/// # Errors
/// A fault when the URL cannot be read.
pub fn watched_pool(url: &Secret, connections_max: u32, pulse: &Liveness) -> Result<PgPool, Fault> {
    let pool = pulse.guard(pool_of(connections_max));
    Ok(pool.connect_lazy_with(options(url)?))
}

/// Both.
///
/// # Errors
/// A fault when the URL cannot be read.
pub fn watched_routine_pool(
    url: &Secret,
    connections_max: u32,
    pulse: &Liveness,
) -> Result<PgPool, Fault> {
    let pool = pulse.guard(pool_of(connections_max));
    Ok(pool.connect_lazy_with(options(url)?.options(ROUTINE)))
}

/// The same, for statements that wait for a lock no longer than `wait_max`.
///
/// # Errors
/// A fault when the URL cannot be read.
pub fn impatient_pool(
    url: &Secret,
    connections_max: u32,
    wait_max: Duration,
    pulse: &Liveness,
) -> Result<PgPool, Fault> {
    let wait_max = wait_max.as_millis();
    let options = options(url)?
        .options(ROUTINE)
        .options([("lock_timeout", wait_max)]);
    let pool = pulse.guard(pool_of(connections_max));
    Ok(pool.connect_lazy_with(options))
}

/// Whether a text has the form of a URL of Postgres.
#[must_use]
pub fn is_url(text: &str) -> bool {
    let Ok(url) = Url::parse(text) else {
        return false;
    };
    // A password with a slash or a hash that is not encoded ends the address too early.
    let is_cut = url.path().contains('@') || url.fragment().is_some();
    SCHEMES.contains(&url.scheme()) && !is_cut && PgConnectOptions::from_str(text).is_ok()
}

fn options(url: &Secret) -> Result<PgConnectOptions, Fault> {
    Ok(PgConnectOptions::from_str(url.expose_secret())
        .map_err(|error| Fault::internal("read DATABASE_URL", error))?
        .application_name("waypost")
        .options([
            ("statement_timeout", STATEMENT_TIMEOUT_MS),
            (
                "idle_in_transaction_session_timeout",
                IDLE_TRANSACTION_TIMEOUT_MS,
            ),
            // No statement here lasts long enough to be worth compiling; without whole
            // tables to read (`ROUTINE`) Postgres believes that some do. Nor is any worth
            // other processes, which take 5 ms to begin.
            ("jit", "off"),
            ("max_parallel_workers_per_gather", "0"),
        ]))
}

fn pool_of(connections_max: u32) -> PgPoolOptions {
    PgPoolOptions::new()
        .max_connections(connections_max)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .test_before_acquire(false)
        .after_release(|connection, _| Box::pin(sign_of_life(connection)))
}

/// Asks a connection whether it is there. sqlx asks each that comes back to its pool, but
/// waits for the answer without a bound (0.9.0, `return_to_pool`): so it is asked before.
async fn sign_of_life(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    match tokio::time::timeout(SIGN_OF_LIFE_TIMEOUT, connection.ping()).await {
        Ok(answer) => answer.map(|()| true),
        Err(late) => Err(sqlx::Error::Io(std::io::Error::new(
            std::io::ErrorKind::TimedOut,
            late,
        ))),
    }
}

/// Brings the schema up to date. Several processes may run it at once: one works,
/// the others wait.
///
/// # Errors
/// A fault when Postgres is away or a migration fails.
pub async fn migrate(pool: &PgPool) -> Result<(), Fault> {
    let mut connection = pool.acquire().await.or_fault("apply the migrations")?;
    sqlx::query("SET statement_timeout = 0")
        .execute(&mut *connection)
        .await
        .or_fault("apply the migrations")?;
    MIGRATOR
        .run(&mut connection.detach())
        .await
        .map_err(|error| fault_of("apply the migrations", error))
}

/// Whether every migration of this binary has been applied. False too where the
/// database has none at all.
pub async fn is_current(pool: &PgPool) -> Result<bool, Fault> {
    let mut connection = pool.acquire().await.or_fault("reach Postgres")?;
    is_current_over(&mut connection).await
}

async fn is_current_over(connection: &mut PgConnection) -> Result<bool, Fault> {
    let applied = connection.list_applied_migrations("_sqlx_migrations").await;
    let Ok(applied) = applied else {
        // The table is missing until the first migration has run.
        sqlx::query("SELECT 1")
            .execute(connection)
            .await
            .or_fault("reach Postgres")?;
        return Ok(false);
    };
    Ok(MIGRATOR.iter().all(|wanted| {
        applied
            .iter()
            .any(|done| done.version == wanted.version && done.checksum == wanted.checksum)
    }))
}

/// Runs a piece of work with Postgres within a bound of time. Where the bound is
/// passed, nobody knows whether it was committed.
///
/// # Errors
/// The fault of the work, or that it took too long.
pub fn bounded<T>(
    doing: &'static str,
    work: impl Future<Output = Result<T, Fault>>,
) -> impl Future<Output = Result<T, Fault>> {
    // In a box: to acquire a connection alone is 4 KiB of state (sqlx 0.9.0), which would
    // be part of every future around it and be moved with each.
    let work = Box::pin(work);
    async move {
        tokio::time::timeout(WORK_TIMEOUT, work)
            .await
            .unwrap_or_else(|elapsed| Err(Fault::unavailable(doing, elapsed)))
    }
}

/// Begins a transaction, in a task of its own. A `begin` that is cancelled while it
/// waits for Postgres' answer leaves a connection in the pool that is in a
/// transaction and does not know it (sqlx-postgres 0.9.0, `transaction.rs`: the depth
/// is counted after the answer): what is written through it next is acknowledged and
/// never committed. So nobody's cancellation reaches it; who is gone by then drops a
/// whole transaction, which is rolled back.
pub async fn begin(pool: &PgPool, doing: &'static str) -> Result<PgTransaction<'static>, Fault> {
    let pool = pool.clone();
    let begun = tokio::spawn(async move { pool.begin().await });
    match begun.await {
        Ok(begun) => begun.or_fault(doing),
        Err(ended) => Err(Fault::unavailable(doing, ended)),
    }
}

/// Begins a transaction that changes nothing and sees one moment, whatever is committed
/// meanwhile: for answers that are read with several statements. To be dropped.
pub async fn snapshot(pool: &PgPool, doing: &'static str) -> Result<PgTransaction<'static>, Fault> {
    let pool = pool.clone();
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    let begun = tokio::spawn(async move { pool.begin_with(begin).await });
    match begun.await {
        Ok(begun) => begun.or_fault(doing),
        Err(ended) => Err(Fault::unavailable(doing, ended)),
    }
}

/// Turns a database error into a [`Fault`] that says what was being done.
pub trait OrFault<T> {
    /// `doing` completes "could not …".
    ///
    /// # Errors
    /// The fault.
    fn or_fault(self, doing: &'static str) -> Result<T, Fault>;
}

impl<T> OrFault<T> for Result<T, sqlx::Error> {
    fn or_fault(self, doing: &'static str) -> Result<T, Fault> {
        self.map_err(|error| match kind_of(&error) {
            FaultKind::Unavailable => Fault::unavailable(doing, error),
            FaultKind::Internal => Fault::internal(doing, error),
        })
    }
}

/// The name of the constraint that a statement broke, where it broke one.
#[must_use]
pub fn broken_constraint(error: &sqlx::Error) -> Option<&str> {
    error
        .as_database_error()
        .and_then(|database| database.constraint())
}

/// Whether a transaction was chosen to end a deadlock: it did nothing, and may be
/// tried again at once.
#[must_use]
pub fn is_deadlock(fault: &Fault) -> bool {
    has_code(fault, DEADLOCK)
}

/// Whether Postgres refused what it was given: a value that it cannot hold, or that a
/// constraint forbids (classes 22 and 23). It would be the same the next time.
#[must_use]
pub fn is_refused(fault: &Fault) -> bool {
    fault
        .cause()
        .downcast_ref::<sqlx::Error>()
        .and_then(sqlx::Error::as_database_error)
        .and_then(|database| database.code())
        .is_some_and(|code| code.starts_with("22") || code.starts_with("23"))
}

/// Runs a transaction, and again where it was chosen to end a deadlock, which did
/// nothing: `tries` times at the most. `is_deadlock` says whether a failure is one.
///
/// # Errors
/// The last failure.
pub async fn again_after_deadlocks<T, E, F>(
    tries: u32,
    transaction: impl Fn() -> F,
    is_deadlock: fn(&E) -> bool,
) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    let mut result = transaction().await;
    for _ in 1..tries {
        if !result.as_ref().is_err_and(is_deadlock) {
            break;
        }
        result = transaction().await;
    }
    result
}

/// Whether a statement gave up because it waited too long for a lock.
#[must_use]
pub fn is_lock_timeout(fault: &Fault) -> bool {
    has_code(fault, LOCK_TIMEOUT)
}

/// Whether a statement was ended because it took too long.
#[must_use]
pub fn is_statement_timeout(fault: &Fault) -> bool {
    has_code(fault, CANCELED)
}

fn has_code(fault: &Fault, code: &str) -> bool {
    fault
        .cause()
        .downcast_ref::<sqlx::Error>()
        .and_then(sqlx::Error::as_database_error)
        .is_some_and(|database| database.code().as_deref() == Some(code))
}

fn fault_of(doing: &'static str, error: impl StdError + Send + Sync + 'static) -> Fault {
    let away = error
        .source()
        .and_then(|source| source.downcast_ref::<sqlx::Error>())
        .is_some_and(|source| kind_of(source) == FaultKind::Unavailable);
    if away {
        Fault::unavailable(doing, error)
    } else {
        Fault::internal(doing, error)
    }
}

/// Which errors a later try may not meet again: a server that is away, starting
/// or stopping, too many connections, a deadlock, a statement cut off. The codes are those of appendix
/// A of the Postgres manual.
fn kind_of(error: &sqlx::Error) -> FaultKind {
    if let Some(database) = error.as_database_error() {
        let code = database.code().unwrap_or_default();
        let passing = ["08", "25", "40", "53", "55P03", "57", "58"];
        return if passing.iter().any(|class| code.starts_with(class)) {
            FaultKind::Unavailable
        } else {
            FaultKind::Internal
        };
    }
    if matches!(
        error,
        sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
    ) {
        FaultKind::Unavailable
    } else {
        FaultKind::Internal
    }
}

/// How long a listener hears nothing before it makes sure that it could.
const LISTENER_QUIET: Duration = Duration::from_secs(5);

/// Hears what is notified on a channel, over a connection of its own.
pub struct Listener {
    inner: PgListener,
}

impl Listener {
    /// Listens; what is notified after this is heard.
    pub async fn connect(pool: &PgPool, channel: &str) -> Result<Self, Fault> {
        let options = PgConnectOptions::clone(&pool.connect_options());
        let own = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_lazy_with(options);
        let mut inner = PgListener::connect_with(&own).await.or_fault("listen")?;
        // A connection that was lost may have missed something: whoever listens
        // must know.
        inner.eager_reconnect(false);
        inner.listen(channel).await.or_fault("listen")?;
        Ok(Self { inner })
    }

    /// The next thing that is notified; nothing where for a while there was none.
    ///
    /// # Errors
    /// A fault when the connection is lost, and with it perhaps something notified.
    pub async fn hear(&mut self) -> Result<Option<String>, Fault> {
        match tokio::time::timeout(LISTENER_QUIET, self.inner.try_recv()).await {
            Ok(Ok(Some(heard))) => return Ok(Some(heard.payload().to_owned())),
            Ok(Ok(None)) => return Err(Fault::unavailable("listen", "the connection was lost")),
            Ok(Err(error)) => return Err(error).or_fault("listen"),
            Err(_quiet) => {}
        }
        let ping = sqlx::query("SELECT 1").execute(&mut self.inner);
        match tokio::time::timeout(ACQUIRE_TIMEOUT, ping).await {
            Ok(answer) => answer.map(|_| None).or_fault("listen"),
            Err(late) => Err(Fault::unavailable("listen", late)),
        }
    }
}
