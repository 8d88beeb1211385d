//! The start of the programs: settings, logs, metrics and traces, and the checks that show the
//! operator mistakes in the settings at once. A program starts even if a server is away: it may
//! come back.

use std::error::Error;
use std::process::ExitCode;

use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::config::Settings;
use crate::db::PgPool;
use crate::db::connection_check::{self, SchemaRequirement};
use crate::fault::{self, Fault};
use crate::redis::Redis;
use crate::reencrypt;
use crate::telemetry::{self, instruments, traces};

/// Serves until a signal stops the program. `name` is that of its metrics and traces: `worker` for
/// `waypost-worker`.
///
/// # Errors
/// Settings that cannot be used, or the fault that `serve` ended with.
pub async fn run_program(
    name: &'static str,
    serve: impl AsyncFnOnce(Settings, CancellationToken) -> Result<(), Fault>,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let settings = Settings::from_env()?;
    telemetry::init(&settings.log.filter, settings.log.format);
    telemetry::log_panics();
    instruments::start(name);
    traces::start(settings.monitoring.traces.as_ref(), name)?;
    settings.warn_of_unknown();
    let shutdown = CancellationToken::new();
    tokio::spawn(telemetry::cancel_on_signal(shutdown.clone()));
    let served = serve(settings, shutdown).await;
    traces::stop();
    Ok(served?)
}

/// Prints the error that ended a program; its exit status.
#[must_use]
pub fn exit_status(
    program: &str,
    ended: Result<ExitCode, Box<dyn Error + Send + Sync>>,
) -> ExitCode {
    ended.unwrap_or_else(|error| {
        eprintln!("{program}: {}", fault::error_chain(&*error));
        ExitCode::FAILURE
    })
}

/// Checks Postgres, the encryption keys and Redis, and logs what does not work.
///
/// # Errors
/// A fault if waiting does not help: Postgres rejects the user, the password or the database,
/// or the encryption keys do not open the stored secrets.
pub async fn check(settings: &Settings, pool: &PgPool) -> Result<(), Fault> {
    let redis = Redis::new(&settings.redis_url, &settings.redis_prefix)?;
    let postgres = connection_check::check(&settings.database_url, SchemaRequirement::Current);
    let (postgres, writes) = tokio::join!(postgres, redis.check_writes());
    if let Err(error) = writes {
        warn!(
            "{}; mail is sent without it, more slowly",
            redis.explain(&error)
        );
    }
    match postgres {
        Ok(()) => reencrypt::require_openable(pool, &settings.sealer).await,
        Err(unusable) if unusable.is_setting() => Err(Fault::internal("start", unusable)),
        Err(unusable) => {
            warn!("{unusable}");
            Ok(())
        }
    }
}
