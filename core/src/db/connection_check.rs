//! Checks whether the configured database can be used. The error is one sentence for the
//! operator: the address, the cause, and what to check. It never contains the password.

use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;
use tokio::time::timeout;

use super::{is_current_over, options};
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
    let connected = options.connect().await;
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

/// Explains the error of a connection. The codes are those of appendix A of the Postgres manual.
fn refused(options: &PgConnectOptions, error: &sqlx::Error) -> DatabaseUnusable {
    let at = address(options);
    let Some(answer) = error.as_database_error() else {
        let cause = error_chain(error);
        let is_about_tls = matches!(error, sqlx::Error::Tls(_) | sqlx::Error::Configuration(_));
        if is_about_tls {
            return of_setting(format!(
                "Postgres at {at} cannot be reached over TLS ({cause}): check sslmode and sslrootcert in DATABASE_URL"
            ));
        }
        if let sqlx::Error::Io(cause) = error {
            return unreachable(options, &cause.to_string());
        }
        return unreachable(options, &cause);
    };
    let message = answer.message();
    match answer.code().unwrap_or_default().as_ref() {
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
        code => temporary(format!(
            "Postgres at {at} denies access at the moment ({message}, {code}): see its log"
        )),
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
