//! The clock of Postgres, which all processes use, because a process compares times that
//! another process stored. A process queries it at its start, before it stores anything, and
//! then with every query of [`Liveness`](super::liveness::Liveness).

use std::time::Duration;

use sqlx::query_scalar;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::{OrFault, PgConnection, PgPool};
use crate::clock::{Clock, Timestamp, delta};
use crate::fault::Fault;

/// The pause before a retry, until the first answer.
const RETRY_AFTER: Duration = Duration::from_millis(250);
/// How long Postgres may take to answer. A late answer is not precise enough.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// An error of the clock from which a warning is logged.
const WARN_FROM: Duration = Duration::from_secs(1);

/// The time of Postgres.
///
/// # Errors
/// The error of the connection.
pub(super) async fn ask(connection: &mut PgConnection) -> Result<Timestamp, sqlx::Error> {
    query_scalar("SELECT clock_timestamp()")
        .fetch_one(connection)
        .await
}

/// Corrects a clock by the time of Postgres.
///
/// # Errors
/// The error of the connection.
pub(super) async fn correct_by(
    clock: &Clock,
    connection: &mut PgConnection,
) -> Result<(), sqlx::Error> {
    let asked = clock.now();
    let reference = ask(connection).await?;
    let error = clock.correct(asked, reference, clock.now());
    if error.abs() > delta(WARN_FROM) {
        warn!(%error, "The clock of this machine is wrong; using the time of Postgres");
    }
    Ok(())
}

/// Corrects a clock once.
pub async fn correct(clock: &Clock, pool: &PgPool) -> Result<(), Fault> {
    let doing = "ask Postgres for the time";
    let correcting = async {
        let mut connection = pool.acquire().await.or_fault(doing)?;
        correct_by(clock, &mut connection).await.or_fault(doing)
    };
    timeout(ANSWER_TIMEOUT, correcting)
        .await
        .unwrap_or_else(|late| Err(Fault::unavailable(doing, late)))
}

/// Corrects a clock as soon as Postgres answers; returns early at `shutdown`. From then on
/// [`Liveness`](super::liveness::Liveness) keeps it right.
pub async fn correct_first(clock: &Clock, pool: &PgPool, shutdown: &CancellationToken) {
    if !clock.is_system() {
        return;
    }
    let corrected = async {
        while let Err(fault) = correct(clock, pool).await {
            debug!(cause = fault.chain(), "Could not get the time of Postgres");
            sleep(RETRY_AFTER).await;
        }
    };
    let _stopped = shutdown.run_until_cancelled(corrected).await;
}
