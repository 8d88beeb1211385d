//! Checks of the Postgres server, the database and its schema.

use chrono::TimeDelta;
use waypost_core::clock::Clock;
use waypost_core::config::{Environment, Settings};
use waypost_core::db::connection_check::{self, SchemaRequirement};
use waypost_core::db::diagnosis::{self, MissingExtension, SchemaState, ServerFacts, WriteRefused};
use waypost_core::db::{self, OrFault, PgPool};
use waypost_core::fault::Fault;

use super::report::{Report, Severity};

const NAME: &str = "postgres";
/// The oldest version that Waypost works with.
const VERSION_MIN: i32 = 15;
const CONNECTIONS: u32 = 1;
/// Connections of a process beside its main pools.
const OTHER_CONNECTIONS: i64 = 6;
/// An installation has an API, a worker and a scheduler at least.
const PROCESSES_MIN: i64 = 3;
/// An error of the clock that is reported.
const CLOCK_ERROR_MAX_MS: i64 = 1_000;

/// A database with the current schema.
pub(super) struct CurrentDatabase {
    pub(super) pool: PgPool,
    /// Whether a process of this installation runs.
    pub(super) is_running: bool,
}

/// Checks the server. Returns the database if its schema is that of this program.
pub(super) async fn check(
    settings: &Settings,
    clock: &Clock,
    report: &mut Report,
) -> Option<CurrentDatabase> {
    let url = &settings.database_url;
    if let Err(unusable) = connection_check::check(url, SchemaRequirement::Any).await {
        report.found_sentence(Severity::Error, NAME, &unusable.to_string());
        return None;
    }
    let checked = check_server(settings, clock, report).await;
    let checked = checked.map_err(|fault| report.failed(NAME, &fault));
    let (pool, facts) = checked.ok()?;
    match connection_check::check(url, SchemaRequirement::Current).await {
        Ok(()) => Some(CurrentDatabase {
            pool,
            is_running: facts.processes > 0,
        }),
        Err(unusable) => {
            report.found_sentence(Severity::Error, "schema", &unusable.to_string());
            None
        }
    }
}

/// Checks the server that the address leads to.
async fn check_server(
    settings: &Settings,
    clock: &Clock,
    report: &mut Report,
) -> Result<(PgPool, ServerFacts), Fault> {
    let pool = db::pool(&settings.database_url, CONNECTIONS)?;
    let mut connection = pool.acquire().await.or_fault("reach Postgres")?;
    let facts = diagnosis::facts(&mut connection).await?;
    let schema = diagnosis::schema(&mut connection).await?;
    check_version(&facts, report);
    check_durability(settings, &facts, report);
    check_connections(settings, &facts, report);
    for missing in diagnosis::missing_extensions(&mut connection).await? {
        report_extension(&missing, schema, report);
    }
    check_schema(schema, report);
    check_clock(
        diagnosis::clock_error(&mut connection, clock).await?,
        report,
    );
    drop(connection);
    match diagnosis::try_write(&pool).await? {
        Ok(()) => report.ok("postgres-writes", "Postgres takes writes"),
        Err(refused) => report_refused_write(&refused, report),
    }
    Ok((pool, facts))
}

/// Missing migrations are reported by the check that everything else depends on.
fn check_schema(schema: SchemaState, report: &mut Report) {
    let SchemaState { missing, unknown } = schema;
    if unknown > 0 {
        report.found(
            Severity::Warning,
            "schema",
            format!("the schema has {unknown} migrations that this program does not know: it belongs to a newer version"),
            "install the newer version here too",
        );
    } else if missing == 0 {
        report.ok("schema", "is current");
    }
}

/// `error` is how far this machine's clock is behind.
fn check_clock(error: TimeDelta, report: &mut Report) {
    const NAME: &str = "clock";
    if error.num_milliseconds().abs() <= CLOCK_ERROR_MAX_MS {
        report.ok(NAME, "agrees with Postgres");
        return;
    }
    let seconds = error.num_seconds().abs();
    let side = match error > TimeDelta::zero() {
        true => "behind",
        false => "ahead of",
    };
    report.found(
        Severity::Warning,
        NAME,
        format!("the clock of this machine is {seconds} s {side} Postgres' clock"),
        "run a time service (chrony, systemd-timesyncd) on both machines; Waypost goes by Postgres' clock meanwhile",
    );
}

fn check_version(facts: &ServerFacts, report: &mut Report) {
    let version = &facts.version;
    if facts.version_number / 10_000 >= VERSION_MIN {
        report.ok(NAME, format!("PostgreSQL {version}"));
    } else {
        let message = format!("PostgreSQL {version} is too old");
        let fix = format!("install PostgreSQL {VERSION_MIN} or later");
        report.found(Severity::Error, NAME, message, fix);
    }
}

/// Without these settings a crash of the server loses mail that was accepted. Databases of
/// developers may do without.
fn check_durability(settings: &Settings, facts: &ServerFacts, report: &mut Report) {
    const NAME: &str = "durability";
    let off: Vec<&str> = [
        ("fsync", facts.fsync),
        ("full_page_writes", facts.full_page_writes),
        ("synchronous_commit", facts.synchronous_commit != "off"),
    ]
    .into_iter()
    .filter_map(|(name, is_on)| (!is_on).then_some(name))
    .collect();
    if off.is_empty() {
        report.ok(NAME, "commits are on disk");
        return;
    }
    let severity = match settings.environment {
        Environment::Production => Severity::Error,
        Environment::Development => Severity::Warning,
    };
    let names = off.join(", ");
    report.found(
        severity,
        NAME,
        format!("Postgres may lose accepted mail in a crash ({names} off)"),
        format!("set {} = on", off.join(" = on, ")),
    );
}

fn check_connections(settings: &Settings, facts: &ServerFacts, report: &mut Report) {
    const NAME: &str = "connections";
    let each = i64::from(settings.database_connections) + OTHER_CONNECTIONS;
    let processes = facts.processes.max(PROCESSES_MIN);
    let needed = processes * each;
    let most = i64::from(facts.connections_max - facts.connections_reserved);
    if needed <= most {
        report.ok(NAME, format!("enough for {processes} processes"));
        return;
    }
    report.found(
        Severity::Warning,
        NAME,
        format!(
            "Postgres has {most} connections (max_connections = {} less those reserved), and {processes} processes of Waypost use up to {needed}",
            facts.connections_max
        ),
        "raise max_connections, or lower WAYPOST_DATABASE_CONNECTIONS",
    );
}

fn report_extension(missing: &MissingExtension, schema: SchemaState, report: &mut Report) {
    const NAME: &str = "extensions";
    let name = &missing.name;
    let (message, fix) = if !missing.is_available {
        (
            format!("Postgres does not have the extension {name}"),
            "install its contrib modules (Debian: postgresql-contrib)".to_owned(),
        )
    } else if !missing.may_create {
        (
            format!(
                "the database does not have the extension {name}, and the user may not create it"
            ),
            format!(
                "run `CREATE EXTENSION {name}` as a superuser, or make the user the owner of the database"
            ),
        )
    } else if schema.missing == 0 {
        (
            format!(
                "the database does not have the extension {name} any more, nor the indexes that need it"
            ),
            format!(
                "run `CREATE EXTENSION {name}`, and restore the indexes from a dump of the schema"
            ),
        )
    } else {
        // `migrate` creates it.
        return;
    };
    report.found(Severity::Error, NAME, message, fix);
}

fn report_refused_write(refused: &WriteRefused, report: &mut Report) {
    let WriteRefused { code, message } = refused;
    let fix = match code.as_str() {
        "53100" => "free disk space on Postgres' machine",
        "42501" => "make the user in DATABASE_URL the owner of the database",
        _ => "see its log",
    };
    report.found(
        Severity::Error,
        "postgres-writes",
        format!("Postgres does not take writes ({message})"),
        fix,
    );
}
