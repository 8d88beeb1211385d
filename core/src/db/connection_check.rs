//! Whether the database of the settings can be used, for an operator who has just written
//! them. Where it cannot, one sentence says at which address, what is the matter and what to
//! look at. It never holds the password.

use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;
use tokio::time::timeout;

use super::{is_current_over, options};
use crate::fault::{Fault, error_chain};
use crate::secret::Secret;

/// How long it may take to answer. Longer than a connection over a slow network takes.
const PATIENCE: Duration = Duration::from_secs(4);

/// What a command needs of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaRequirement {
    /// It brings the schema itself.
    Any,
    /// Every migration of this binary.
    Current,
}

/// Why the database cannot be used, in one sentence for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct DatabaseUnusable {
    sentence: String,
    is_setting: bool,
}

impl DatabaseUnusable {
    /// Whether the setting is wrong: waiting does not help.
    #[must_use]
    pub fn is_setting(&self) -> bool {
        self.is_setting
    }
}

/// Connects once and looks.
///
/// # Errors
/// Why the database cannot be used.
pub async fn check(url: &Secret, wanted: SchemaRequirement) -> Result<(), DatabaseUnusable> {
    let options = options(url).map_err(|fault| of_setting(fault.chain()))?;
    let looked = timeout(PATIENCE, look(&options, wanted)).await;
    looked.unwrap_or_else(|_late| Err(silent(&options, "no answer in time")))
}

async fn look(
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
        Ok(false) => Err(passing(format!(
            "the database {} of Postgres at {} is not migrated to this version: run `waypost-api migrate`",
            database(options),
            address(options)
        ))),
        Err(fault) => Err(unclear(options, &fault)),
    }
}

/// What the error of a connection means. The codes are those of appendix A of the Postgres
/// manual.
fn refused(options: &PgConnectOptions, error: &sqlx::Error) -> DatabaseUnusable {
    let at = address(options);
    let Some(answer) = error.as_database_error() else {
        let cause = error_chain(error);
        let is_about_tls = matches!(error, sqlx::Error::Tls(_) | sqlx::Error::Configuration(_));
        if is_about_tls {
            return of_setting(format!(
                "Postgres at {at} cannot be reached over TLS ({cause}): look at sslmode and sslrootcert in DATABASE_URL"
            ));
        }
        if let sqlx::Error::Io(cause) = error {
            return silent(options, &cause.to_string());
        }
        return silent(options, &cause);
    };
    let said = answer.message();
    match answer.code().unwrap_or_default().as_ref() {
        "28P01" | "28000" => of_setting(format!(
            "Postgres at {at} does not let us in ({said}): look at the user and the password in DATABASE_URL"
        )),
        "3D000" => of_setting(format!(
            "Postgres at {at} has no database {}: create it, or mend DATABASE_URL",
            database(options)
        )),
        "42501" => of_setting(format!(
            "Postgres at {at} does not let us in ({said}): give the user {} the right to connect",
            options.get_username()
        )),
        code => passing(format!(
            "Postgres at {at} does not let us in now ({said}, {code}): its log says more"
        )),
    }
}

fn silent(options: &PgConnectOptions, cause: &str) -> DatabaseUnusable {
    passing(format!(
        "Postgres at {} cannot be reached ({cause}): is it running there, and is the address in DATABASE_URL right?",
        address(options)
    ))
}

fn unclear(options: &PgConnectOptions, fault: &Fault) -> DatabaseUnusable {
    passing(format!(
        "Postgres at {} cannot be used ({}): its log says more",
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

fn passing(sentence: String) -> DatabaseUnusable {
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

/// Without one in the URL Postgres takes the user's name.
fn database(options: &PgConnectOptions) -> &str {
    let named = options.get_database();
    named.unwrap_or_else(|| options.get_username())
}
