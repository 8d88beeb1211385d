//! Checks whether the configured database can be used. The error is one sentence for the
//! operator: the address, the cause, and what to check. It never contains the password.

use std::io::ErrorKind;
use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::postgres::PgConnectOptions;
use tokio::time::timeout;

use super::session::{self, SessionSettings};
use super::{is_current_over, options, pooler};
use crate::fault::{Fault, error_chain};
use crate::secret::Secret;

/// How long Postgres may take to answer. Longer than a connection over a slow network takes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(4);

/// The schema that a command needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaRequirement {
    /// Any schema: the command migrates it.
    Any,
    /// All migrations of this binary must be applied.
    Current,
}

/// Why the database cannot be used, in one sentence for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct DatabaseUnusable {
    sentence: String,
    is_setting: bool,
}

impl DatabaseUnusable {
    /// Whether the setting is wrong. If so, waiting does not help.
    #[must_use]
    pub fn is_setting(&self) -> bool {
        self.is_setting
    }
}

/// Connects once and checks the schema.
///
/// # Errors
/// Why the database cannot be used.
pub async fn check(url: &Secret, wanted: SchemaRequirement) -> Result<(), DatabaseUnusable> {
    let options = options(url).map_err(|fault| of_setting(fault.chain()))?;
    let checked = timeout(ANSWER_TIMEOUT, check_with(&options, wanted)).await;
    checked.unwrap_or_else(|_late| Err(unreachable(&options, "no answer in time")))
}

async fn check_with(
    options: &PgConnectOptions,
    wanted: SchemaRequirement,
) -> Result<(), DatabaseUnusable> {
    let shares = pooler::shares_sessions(options).await;
    if shares.map_err(|error| refused(options, &error))? {
        return Err(of_setting(format!(
            "Postgres at {} is behind a connection pooler that gives the statements of one connection to different sessions, which Waypost cannot use: set pool_mode = session in the pooler, or name Postgres itself in DATABASE_URL",
            address(options)
        )));
    }
    let connected = SessionSettings::new([]).connect(options).await;
    let mut connection = connected.map_err(|error| refused(options, &error))?;
    let current = match wanted {
        SchemaRequirement::Any => Ok(true),
        SchemaRequirement::Current => is_current_over(&mut connection).await,
    };
    match current {
        Ok(true) => Ok(()),
        Ok(false) => Err(temporary(format!(
            "the database {} of Postgres at {} is not migrated to this version: run `waypost-api migrate`",
            database(options),
            address(options)
        ))),
        Err(fault) => Err(failed(options, &fault)),
    }
}

/// Explains the error of a connection.
fn refused(options: &PgConnectOptions, error: &sqlx::Error) -> DatabaseUnusable {
    if let Some(answer) = error.as_database_error() {
        return denied(options, answer);
    }
    let at = address(options);
    let (cause, kind) = if let sqlx::Error::Io(cause) = error {
        (cause.to_string(), Some(cause.kind()))
    } else {
        (error_chain(error), None)
    };
    if is_about_tls(error, &cause) {
        return of_setting(format!(
            "Postgres at {at} cannot be reached over TLS ({cause}): check sslmode, sslrootcert, sslcert and sslkey in DATABASE_URL, and that the server's certificate is for that host"
        ));
    }
    if session::is_read_only(error) {
        return temporary(format!(
            "Postgres at {at} accepts no writes: is it a standby, or is default_transaction_read_only on?"
        ));
    }
    let is_file = matches!(
        kind,
        Some(ErrorKind::NotFound | ErrorKind::PermissionDenied)
    );
    if is_file && options.get_socket().is_none() {
        return temporary(format!(
            "Postgres at {at} cannot be reached ({cause}): do the files of sslrootcert, sslcert and sslkey in DATABASE_URL exist, and may this user read them?"
        ));
    }
    unreachable(options, &cause)
}

/// Explains an answer of the server. The codes are those of appendix A of the Postgres manual.
fn denied(options: &PgConnectOptions, answer: &dyn DatabaseError) -> DatabaseUnusable {
    let at = address(options);
    let message = answer.message();
    let code = answer.code().unwrap_or_default();
    match of_pgbouncer(message).unwrap_or(&code) {
        "28P01" | "28000" if message.contains("certificate") => of_setting(format!(
            "Postgres at {at} denies access ({message}): check sslcert and sslkey in DATABASE_URL"
        )),
        "28P01" | "28000" => of_setting(format!(
            "Postgres at {at} denies access ({message}): check the user and the password in DATABASE_URL"
        )),
        "3D000" => of_setting(format!(
            "Postgres at {at} has no database {}: create it, or correct DATABASE_URL",
            database(options)
        )),
        "42501" => of_setting(format!(
            "Postgres at {at} denies access ({message}): grant the user {} the right to connect",
            options.get_username()
        )),
        // With a full disk no session begins: "could not write init file" has the code of an
        // internal error.
        code if code == "53100" || message.starts_with("could not write") => temporary(format!(
            "Postgres at {at} begins no session ({message}): its disk is full, so free space for its data and its WAL (`df -h` on its machine)"
        )),
        code => temporary(format!(
            "Postgres at {at} denies access at the moment ({message}, {code}): see its log"
        )),
    }
}

/// Whether a connection failed because of TLS. The library passes on errors of the handshake as
/// text only.
fn is_about_tls(error: &sqlx::Error, cause: &str) -> bool {
    let parts = ["certificate", "received fatal alert", "corrupt message"];
    matches!(error, sqlx::Error::Tls(_) | sqlx::Error::Configuration(_))
        || parts.iter().any(|part| cause.contains(part))
}

/// The code that Postgres gives the refusal, if the message is one of PgBouncer, which gives all
/// of them one code.
fn of_pgbouncer(message: &str) -> Option<&'static str> {
    match message {
        "password authentication failed" | "no such user" => Some("28P01"),
        _ if message.starts_with("no such database") => Some("3D000"),
        _ => None,
    }
}

fn unreachable(options: &PgConnectOptions, cause: &str) -> DatabaseUnusable {
    temporary(format!(
        "Postgres at {} cannot be reached ({cause}): is it running there, and is the address in DATABASE_URL right?",
        address(options)
    ))
}

fn failed(options: &PgConnectOptions, fault: &Fault) -> DatabaseUnusable {
    temporary(format!(
        "Postgres at {} cannot be used ({}): see its log",
        address(options),
        fault.chain()
    ))
}

fn of_setting(sentence: String) -> DatabaseUnusable {
    DatabaseUnusable {
        sentence,
        is_setting: true,
    }
}

fn temporary(sentence: String) -> DatabaseUnusable {
    DatabaseUnusable {
        sentence,
        is_setting: false,
    }
}

fn address(options: &PgConnectOptions) -> String {
    let port = options.get_port();
    match options.get_socket() {
        Some(folder) => format!("{}, port {port}", folder.display()),
        None => format!("{}:{port}", options.get_host()),
    }
}

/// The name of the database. If the URL has none, Postgres takes the name of the user.
fn database(options: &PgConnectOptions) -> &str {
    let named = options.get_database();
    named.unwrap_or_else(|| options.get_username())
}
