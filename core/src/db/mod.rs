//! Postgres: connection pools, migrations, transactions and the meaning of errors. Queries
//! are in the `store` module of their subject. [`liveness`] knows whether Postgres answers.

pub mod advisory_locks;
pub mod connection_check;
pub mod diagnosis;
pub(crate) mod id_range;
pub mod leader_lock;
pub mod lifo_pool;
pub mod liveness;
pub mod organization_shard;
mod pooler;
mod session;
pub mod time;

use std::error::Error as StdError;
use std::str::FromStr;
use std::time::{Duration, Instant};

use secrecy::ExposeSecret;
use sqlx::Connection as _;
use sqlx::migrate::{Migrate, Migrator};
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
pub use sqlx::{PgConnection, PgPool, PgTransaction};
use url::Url;

use crate::fault::{Fault, FaultKind};
use crate::secret::Secret;
use crate::telemetry::instruments;
use liveness::Liveness;
use session::{SessionSettings, Setting};

/// How long a request waits for a connection from a pool before it is answered 503.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long an operation with Postgres ([`bounded`]) may take. Without this limit, a dead
/// connection would block its caller until the kernel gives up, after 15 minutes.
const WORK_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection that is returned to its pool may take to answer a ping. Without this
/// limit, dead connections would occupy the pool until the kernel gives up, after 15 minutes.
const PING_TIMEOUT: Duration = WORK_TIMEOUT;

/// Settings that make Postgres plan each statement once, for any arguments, and use indexes.
const ROUTINE: [Setting; 2] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
];

/// The error code `lock_not_available`: `lock_timeout` has passed.
const LOCK_TIMEOUT: &str = "55P03";
/// The error code `query_canceled`: `statement_timeout` has passed.
const CANCELED: &str = "57014";
/// The error code `deadlock_detected`.
const DEADLOCK: &str = "40P01";

/// The schemes of Postgres URLs. sqlx accepts any scheme.
const SCHEMES: [&str; 2] = ["postgres", "postgresql"];

static MIGRATOR: Migrator = sqlx::migrate!("../migrations");

/// A pool that connects when it is first used, so that a process can start while Postgres is
/// away.
///
/// # Errors
/// A fault if the URL cannot be parsed.
pub fn pool(url: &Secret, connections_max: u32) -> Result<PgPool, Fault> {
    Ok(pool_of(connections_max, &[]).connect_lazy_with(options(url)?))
}

/// A pool for the few statements that run all the time and use indexes. Postgres plans each of
/// them once per connection, for any values, and never reads a whole table. By default it plans
/// most statements with array arguments again on every call, which costs more than their
/// execution (measured: 0.10 of 0.14 ms for a suppression check), and relies on the statistics
/// of tables that have just grown.
///
/// # Errors
/// A fault if the URL cannot be parsed.
pub fn routine_pool(url: &Secret, connections_max: u32) -> Result<PgPool, Fault> {
    Ok(pool_of(connections_max, &ROUTINE).connect_lazy_with(options(url)?))
}

/// A [`pool`] that closes connections from before an outage, see [`Liveness`].
///
/// # Errors
/// A fault if the URL cannot be parsed.
pub fn watched_pool(
    url: &Secret,
    connections_max: u32,
    liveness: &Liveness,
) -> Result<PgPool, Fault> {
    let pool = liveness.configure(pool_of(connections_max, &[]));
    Ok(pool.connect_lazy_with(options(url)?))
}

/// A [`routine_pool`] that closes connections from before an outage, see [`Liveness`].
///
/// # Errors
/// A fault if the URL cannot be parsed.
pub fn watched_routine_pool(
    url: &Secret,
    connections_max: u32,
    liveness: &Liveness,
) -> Result<PgPool, Fault> {
    let pool = liveness.configure(pool_of(connections_max, &ROUTINE));
    Ok(pool.connect_lazy_with(options(url)?))
}

/// A [`watched_routine_pool`] whose statements wait for a lock no longer than `wait_max`.
///
/// # Errors
/// A fault if the URL cannot be parsed.
pub fn lock_timeout_pool(
    url: &Secret,
    connections_max: u32,
    wait_max: Duration,
    liveness: &Liveness,
) -> Result<PgPool, Fault> {
    let wait_max = wait_max.as_millis().to_string();
    let settings = [ROUTINE[0], ROUTINE[1], ("lock_timeout", wait_max.as_str())];
    let pool = liveness.configure(pool_of(connections_max, &settings));
    Ok(pool.connect_lazy_with(options(url)?))
}

/// Checks the form of the URL of a Postgres server.
///
/// # Errors
/// What is wrong, as it completes "DATABASE_URL …"; `None` if it is no URL of Postgres at all.
pub fn check_url(text: &str) -> Result<(), Option<String>> {
    let (scheme, rest) = text.split_once("://").ok_or(None)?;
    if !SCHEMES.contains(&scheme) {
        return Err(None);
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let hosts = authority
        .rsplit_once('@')
        .map_or(authority, |(_, hosts)| hosts);
    if hosts.contains(',') {
        let problem = "must name one host: to change from one server to another, use an address that follows the primary (docs/operations.md, \"PostgreSQL\")";
        return Err(Some(problem.to_owned()));
    }
    let url = Url::parse(text).map_err(|_| None)?;
    // An unescaped slash or hash in the password ends the authority too early.
    let is_cut = url.path().contains('@') || url.fragment().is_some();
    if is_cut || PgConnectOptions::from_str(text).is_err() {
        return Err(None);
    }
    Ok(())
}

/// Splits the connections of a process between a pool that uses `wanted` at most, and the others:
/// at most half for the one, at least one for each.
#[must_use]
pub fn split_connections(connections: u32, wanted: u32) -> (u32, u32) {
    let part = wanted.min(connections / 2).max(1);
    (part, connections.saturating_sub(part).max(1))
}

fn options(url: &Secret) -> Result<PgConnectOptions, Fault> {
    Ok(PgConnectOptions::from_str(url.expose_secret())
        .map_err(|error| Fault::internal("read DATABASE_URL", error))?
        .application_name("waypost")
        // Connection poolers refuse this setting. It concerns numbers as text, and sqlx
        // reads them in binary.
        .extra_float_digits(None))
}

/// The options of a pool whose sessions have these settings besides the common ones.
fn pool_of(connections_max: u32, settings: &[(&str, &str)]) -> PgPoolOptions {
    let pool = PgPoolOptions::new()
        .max_connections(connections_max)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .test_before_acquire(false)
        .after_release(|connection, _| Box::pin(ping(connection)));
    SessionSettings::new(settings.iter().copied()).configure(pool)
}

/// Pings a connection that is returned to its pool. sqlx pings it too, but without a time-out
/// (0.9.0, `return_to_pool`).
async fn ping(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    match tokio::time::timeout(PING_TIMEOUT, connection.ping()).await {
        Ok(answer) => answer.map(|()| true),
        Err(late) => Err(sqlx::Error::Io(std::io::Error::new(
            std::io::ErrorKind::TimedOut,
            late,
        ))),
    }
}

/// Applies the missing migrations. Several processes may call it at once: one migrates, the
/// others wait.
///
/// # Errors
/// A fault if Postgres is away or a migration fails.
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

/// Whether every migration of this binary is applied.
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
    Ok(MIGRATOR.iter().all(|migration| {
        applied
            .iter()
            .any(|done| done.version == migration.version && done.checksum == migration.checksum)
    }))
}

/// Runs an operation with Postgres with a time-out of 10 s. After the time-out it is unknown
/// whether the operation was committed.
///
/// # Errors
/// The fault of the operation or of the time-out.
pub fn bounded<T>(
    doing: &'static str,
    work: impl Future<Output = Result<T, Fault>>,
) -> impl Future<Output = Result<T, Fault>> {
    // Boxed: acquiring a connection alone has 4 KiB of state (sqlx 0.9.0), which would be part
    // of every future around it and be moved with it.
    let work = Box::pin(work);
    async move {
        tokio::time::timeout(WORK_TIMEOUT, work)
            .await
            .unwrap_or_else(|elapsed| Err(Fault::unavailable(doing, elapsed)))
    }
}

/// Begins a transaction in a task of its own, which the cancellation of the caller does not
/// reach. A cancelled `begin` may leave a connection in the pool that is in a transaction
/// without sqlx knowing (sqlx-postgres 0.9.0, `transaction.rs`: the depth is counted after the
/// answer): the next statements on it would be acknowledged and never committed. If the caller
/// is cancelled, the complete transaction is dropped and rolled back.
pub async fn begin(pool: &PgPool, doing: &'static str) -> Result<PgTransaction<'static>, Fault> {
    let pool = pool.clone();
    let asked = Instant::now();
    let begun = tokio::spawn(async move { pool.begin().await });
    let begun = begun.await;
    instruments::database_wait(asked.elapsed());
    match begun {
        Ok(begun) => begun.or_fault(doing),
        Err(ended) => Err(Fault::unavailable(doing, ended)),
    }
}

/// Begins a read-only transaction in which all statements see the same snapshot. For responses
/// that are read with several statements. The caller drops it.
pub async fn snapshot(pool: &PgPool, doing: &'static str) -> Result<PgTransaction<'static>, Fault> {
    let pool = pool.clone();
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    let begun = tokio::spawn(async move { pool.begin_with(begin).await });
    match begun.await {
        Ok(begun) => begun.or_fault(doing),
        Err(ended) => Err(Fault::unavailable(doing, ended)),
    }
}

/// Turns a database error into a [`Fault`] that names the failed action.
pub trait OrFault<T> {
    /// `doing` completes "could not …".
    ///
    /// # Errors
    /// The fault.
    fn or_fault(self, doing: &'static str) -> Result<T, Fault>;
}

impl<T> OrFault<T> for Result<T, sqlx::Error> {
    fn or_fault(self, doing: &'static str) -> Result<T, Fault> {
        self.map_err(|error| {
            count_error(&error);
            match kind_of(&error) {
                FaultKind::Unavailable => Fault::unavailable(doing, error),
                FaultKind::Internal => Fault::internal(doing, error),
            }
        })
    }
}

/// The name of the constraint that a statement violated; `None` for other errors.
#[must_use]
pub fn broken_constraint(error: &sqlx::Error) -> Option<&str> {
    error
        .as_database_error()
        .and_then(|database| database.constraint())
}

/// Whether Postgres aborted a transaction to end a deadlock. It had no effect and may be
/// retried at once.
#[must_use]
pub fn is_deadlock(fault: &Fault) -> bool {
    has_code(fault, DEADLOCK)
}

/// Whether Postgres rejected the data: a value that it cannot store or that violates a
/// constraint (classes 22 and 23). A retry does not help.
#[must_use]
pub fn is_refused(fault: &Fault) -> bool {
    fault
        .cause()
        .downcast_ref::<sqlx::Error>()
        .and_then(sqlx::Error::as_database_error)
        .and_then(|database| database.code())
        .is_some_and(|code| code.starts_with("22") || code.starts_with("23"))
}

/// Runs a transaction up to `tries` times, until it does not fail with a deadlock.
/// `is_deadlock` classifies the failure.
///
/// # Errors
/// The last failure.
pub async fn retry_deadlocks<T, E, F>(
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

/// Whether a statement failed because it waited too long for a lock.
#[must_use]
pub fn is_lock_timeout(fault: &Fault) -> bool {
    has_code(fault, LOCK_TIMEOUT)
}

/// Whether a statement failed because it took too long.
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

/// Counts an error by its class: the first two characters of SQLSTATE, `pool` or `connection`.
fn count_error(error: &sqlx::Error) {
    let code = error.as_database_error().and_then(|error| error.code());
    match (&code, error) {
        (Some(code), _) => instruments::database_error(code.get(..2).unwrap_or_default()),
        (None, sqlx::Error::PoolTimedOut) => instruments::database_error(instruments::POOL),
        (None, error) if kind_of(error) == FaultKind::Unavailable => {
            instruments::database_error(instruments::CONNECTION);
        }
        (None, _) => {}
    }
}

/// Whether an error is temporary: the server is away, starting or stopping, has too many
/// connections, a deadlock, a cancelled statement. The codes are those of appendix A of the
/// Postgres manual.
fn kind_of(error: &sqlx::Error) -> FaultKind {
    if let Some(database) = error.as_database_error() {
        let code = database.code().unwrap_or_default();
        let temporary = ["08", "25", "40", "53", "55P03", "57", "58"];
        return if temporary.iter().any(|class| code.starts_with(class)) {
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

/// How long a listener waits for a notification before it pings its connection.
const LISTENER_IDLE: Duration = Duration::from_secs(5);

/// Receives the notifications of a channel (`LISTEN`) over a connection of its own.
pub struct Listener {
    inner: PgListener,
}

impl Listener {
    /// Connects and listens. Notifications sent after this returns are received.
    pub async fn connect(pool: &PgPool, channel: &str) -> Result<Self, Fault> {
        let options = PgConnectOptions::clone(&pool.connect_options());
        let own = pool_of(1, &[]).connect_lazy_with(options);
        let mut inner = PgListener::connect_with(&own).await.or_fault("listen")?;
        // Notifications may be lost with the connection, so the caller must know.
        inner.eager_reconnect(false);
        inner.listen(channel).await.or_fault("listen")?;
        Ok(Self { inner })
    }

    /// The payload of the next notification; `None` if there was none for a while.
    ///
    /// # Errors
    /// A fault if the connection is lost, and with it possibly a notification.
    pub async fn recv(&mut self) -> Result<Option<String>, Fault> {
        match tokio::time::timeout(LISTENER_IDLE, self.inner.try_recv()).await {
            Ok(Ok(Some(notification))) => return Ok(Some(notification.payload().to_owned())),
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
