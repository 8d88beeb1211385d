//! Postgres' clock, which all processes go by: what one writes down as a time, another
//! compares with its own. A process asks at its start, before it writes anything, and
//! again every few seconds.

use std::time::Duration;

use sqlx::query_scalar;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::{OrFault, PgConnection, PgPool};
use crate::clock::{Clock, Timestamp, delta};
use crate::fault::Fault;

/// How long after a failure it is asked again, as long as it never answered.
const AGAIN: Duration = Duration::from_millis(250);
/// How long it may take to answer. A late answer says little of the time.
const PATIENCE: Duration = Duration::from_secs(5);
/// A clock that is wrong by more is worth telling of.
const NOTABLE: Duration = Duration::from_secs(1);

/// What Postgres' clock says.
///
/// # Errors
/// That of the connection.
pub(super) async fn ask(connection: &mut PgConnection) -> Result<Timestamp, sqlx::Error> {
    query_scalar("SELECT clock_timestamp()")
        .fetch_one(connection)
        .await
}

/// Corrects a clock by a connection's answer.
///
/// # Errors
/// That of the connection.
pub(super) async fn correct_by(
    clock: &Clock,
    connection: &mut PgConnection,
) -> Result<(), sqlx::Error> {
    let asked = clock.now();
    let told = ask(connection).await?;
    let error = clock.correct(asked, told, clock.now());
    if error.abs() > delta(NOTABLE) {
        warn!(%error, "This machine's clock is wrong; Postgres' counts");
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
    timeout(PATIENCE, correcting)
        .await
        .unwrap_or_else(|late| Err(Fault::unavailable(doing, late)))
}

/// Corrects a clock as soon as Postgres answers, or does nothing when `shutdown` comes
/// before. From then on the [`Pulse`](super::liveness::Pulse) keeps it right.
pub async fn correct_first(clock: &Clock, pool: &PgPool, shutdown: &CancellationToken) {
    if !clock.is_machines() {
        return;
    }
    let corrected = async {
        while let Err(fault) = correct(clock, pool).await {
            debug!(cause = fault.chain(), "The time is not known yet");
            sleep(AGAIN).await;
        }
    };
    let _stopped = shutdown.run_until_cancelled(corrected).await;
}
