//! Waits until no work is left. The service's tables tell whether there is work; the
//! outcomes are verified elsewhere.

use std::fmt;
use std::time::Duration;

use sqlx::{Connection as _, PgConnection};
use tokio::time::Instant;
use waypost_simulator::Simulator;

use crate::output::progress;

const CHECK_INTERVAL: Duration = Duration::from_millis(500);
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// Checks in a row that must find no work: an event reported between two checks may have
/// caused new work.
const CHECKS: usize = 3;

/// The remaining work.
#[derive(Debug, Default)]
struct Work {
    /// Chunks of recipients without a final outcome.
    chunks: i64,
    /// Webhooks that were not delivered.
    webhooks: i64,
    /// Events that providers have not reported.
    callbacks: usize,
}

impl Work {
    fn is_none(&self) -> bool {
        self.chunks == 0 && self.webhooks == 0 && self.callbacks == 0
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (chunks, webhooks, callbacks) = (self.chunks, self.webhooks, self.callbacks);
        write!(
            f,
            "{chunks} chunks, {webhooks} webhooks, {callbacks} events of providers"
        )
    }
}

/// Waits until no work is left, at most for `bound`, and prints what it waits for. False
/// if work is left at the end.
pub(crate) async fn wait_until_idle(
    database_url: &str,
    simulator: &Simulator,
    bound: Duration,
) -> bool {
    let (begun, mut printed_at, mut idle_checks) =
        (Instant::now(), Instant::now() - PROGRESS_INTERVAL, 0);
    loop {
        let work = find_work(database_url, simulator).await;
        match &work {
            Ok(work) if work.is_none() => idle_checks += 1,
            Ok(_) | Err(_) => idle_checks = 0,
        }
        if idle_checks == CHECKS {
            progress("everything is final");
            return true;
        }
        let is_over = begun.elapsed() > bound;
        if idle_checks == 0 && (is_over || printed_at.elapsed() >= PROGRESS_INTERVAL) {
            printed_at = Instant::now();
            progress(match &work {
                Ok(work) => format!("waiting for {work}"),
                Err(error) => format!("waiting for PostgreSQL: {error}"),
            });
        }
        if is_over {
            progress(format!("not final within {} s", bound.as_secs()));
            return false;
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

async fn find_work(database_url: &str, simulator: &Simulator) -> sqlx::Result<Work> {
    let mut connection = PgConnection::connect(database_url).await?;
    let (chunks, webhooks) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM outbox),
                (SELECT count(*) FROM webhook_deliveries WHERE status = 'PENDING')",
    )
    .fetch_one(&mut connection)
    .await?;
    connection.close().await?;
    Ok(Work {
        chunks,
        webhooks,
        callbacks: simulator.callbacks().waiting,
    })
}
