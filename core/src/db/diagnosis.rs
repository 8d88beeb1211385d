//! Facts about the Postgres server, for `waypost-api doctor`. Only facts: the command judges
//! them. Nothing here changes anything.

use chrono::TimeDelta;
use sqlx::migrate::Migrate as _;
use sqlx::{query_as, raw_sql};

use super::{MIGRATOR, OrFault, PgConnection, PgPool, begin, time};
use crate::clock::Clock;
use crate::fault::Fault;

/// The extensions that the schema needs.
const EXTENSIONS: [&str; 2] = ["pg_trgm", "btree_gin"];

/// A server and its settings, as this database sees them.
#[derive(Debug, Clone)]
pub struct ServerFacts {
    /// Such as `15.8`.
    pub version: String,
    /// Such as `150008`.
    pub version_number: i32,
    pub fsync: bool,
    pub full_page_writes: bool,
    /// `on`, `off`, `local`, `remote_write` or `remote_apply`.
    pub synchronous_commit: String,
    pub connections_max: i32,
    /// Connections that only superusers get.
    pub connections_reserved: i32,
    /// Processes of this installation that run: each has one connection for liveness checks.
    pub processes: i64,
}

/// An extension that the database does not have.
#[derive(Debug, Clone)]
pub struct MissingExtension {
    pub name: String,
    /// Whether its files are installed on the server.
    pub is_available: bool,
    /// Whether the user may create it.
    pub may_create: bool,
}

/// The schema, compared with this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaState {
    /// Migrations of this program that are not applied.
    pub missing: usize,
    /// Applied migrations that this program does not know.
    pub unknown: usize,
}

/// Why Postgres did not take a write.
#[derive(Debug, Clone)]
pub struct WriteRefused {
    /// The code, see appendix A of the Postgres manual. Empty if the connection broke.
    pub code: String,
    pub message: String,
}

/// Reads the facts.
pub async fn facts(connection: &mut PgConnection) -> Result<ServerFacts, Fault> {
    query_as!(
        ServerFacts,
        r#"SELECT split_part(current_setting('server_version'), ' ', 1) AS "version!",
                  current_setting('server_version_num')::int AS "version_number!",
                  current_setting('fsync')::bool AS "fsync!",
                  current_setting('full_page_writes')::bool AS "full_page_writes!",
                  current_setting('synchronous_commit') AS "synchronous_commit!",
                  current_setting('max_connections')::int AS "connections_max!",
                  current_setting('superuser_reserved_connections')::int
                      + coalesce(current_setting('reserved_connections', true)::int, 0) AS "connections_reserved!",
                  (SELECT count(*)
                   FROM pg_stat_activity
                   WHERE datname = current_database() AND application_name = 'waypost-liveness') AS "processes!""#
    )
    .fetch_one(connection)
    .await
    .or_fault("ask Postgres for its settings")
}

/// The extensions that the schema needs and the database does not have.
pub async fn missing_extensions(
    connection: &mut PgConnection,
) -> Result<Vec<MissingExtension>, Fault> {
    query_as!(
        MissingExtension,
        r#"SELECT needed.name AS "name!",
                  EXISTS (SELECT 1 FROM pg_available_extensions a WHERE a.name = needed.name) AS "is_available!",
                  (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
                      OR (has_database_privilege(current_database(), 'CREATE')
                          AND EXISTS (SELECT 1 FROM pg_available_extension_versions v
                                      WHERE v.name = needed.name AND v.trusted)) AS "may_create!"
           FROM UNNEST($1::text[]) AS needed (name)
           WHERE NOT EXISTS (SELECT 1 FROM pg_extension e WHERE e.extname = needed.name)"#,
        &EXTENSIONS as &[&str],
    )
    .fetch_all(connection)
    .await
    .or_fault("list the extensions")
}

/// Compares the applied migrations with those of this program.
pub async fn schema(connection: &mut PgConnection) -> Result<SchemaState, Fault> {
    let applied = connection.list_applied_migrations("_sqlx_migrations").await;
    // The table is missing until the first migration has run.
    let applied = applied.unwrap_or_default();
    let missing = MIGRATOR.iter().filter(|migration| {
        applied
            .iter()
            .all(|done| done.version != migration.version || done.checksum != migration.checksum)
    });
    let unknown = applied
        .iter()
        .filter(|done| MIGRATOR.iter().all(|known| known.version != done.version));
    Ok(SchemaState {
        missing: missing.count(),
        unknown: unknown.count(),
    })
}

/// How far a clock is behind Postgres' clock; negative if it is ahead.
pub async fn clock_error(connection: &mut PgConnection, clock: &Clock) -> Result<TimeDelta, Fault> {
    let asked = clock.now();
    let reference = time::ask(connection)
        .await
        .or_fault("ask Postgres for the time")?;
    let answered = clock.now();
    Ok(reference - (asked + (answered - asked) / 2))
}

/// Writes half a megabyte to a new table, in a transaction that is rolled back. Postgres refuses
/// it if its disk is full, if it is read-only, or if the user may not create tables.
///
/// # Errors
/// A fault if no transaction begins. The inner error is what Postgres said to the write.
pub async fn try_write(pool: &PgPool) -> Result<Result<(), WriteRefused>, Fault> {
    let mut transaction = begin(pool, "try a write").await?;
    let written = raw_sql(
        "CREATE TABLE waypost_doctor (filler text NOT NULL);
         INSERT INTO waypost_doctor SELECT repeat('x', 1000) FROM generate_series(1, 500)",
    )
    .execute(&mut *transaction)
    .await;
    // If the connection broke, Postgres rolls back by itself.
    let _rolled_back = transaction.rollback().await;
    Ok(written.map(|_| ()).map_err(|error| {
        let answer = error.as_database_error();
        let code = answer.and_then(|answer| answer.code());
        WriteRefused {
            code: code.unwrap_or_default().into_owned(),
            message: answer.map_or_else(|| error.to_string(), |answer| answer.message().to_owned()),
        }
    }))
}
