//! Waiting until nothing is left to do. Whether there is is asked of the service; what
//! came of it is not.

use std::fmt;
use std::time::Duration;

use sqlx::{Connection as _, PgConnection};
use tokio::time::Instant;
use waypost_simulator::Simulator;

use crate::say::say;

const LOOK_EVERY: Duration = Duration::from_millis(500);
const SAY_EVERY: Duration = Duration::from_secs(5);
/// Looks in a row that have to find nothing: what was told in between two may have owed
/// something new.
const LOOKS: usize = 3;

/// What is left to do.
#[derive(Debug, Default)]
struct Left {
    /// Chunks of recipients without a final outcome.
    chunks: i64,
    /// Webhooks that were not taken.
    webhooks: i64,
    /// Events that providers have not told.
    callbacks: usize,
}

impl Left {
    fn is_nothing(&self) -> bool {
        self.chunks == 0 && self.webhooks == 0 && self.callbacks == 0
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (chunks, webhooks, callbacks) = (self.chunks, self.webhooks, self.callbacks);
        write!(
            f,
            "{chunks} chunks, {webhooks} webhooks, {callbacks} events of providers"
        )
    }
}

/// Waits until everything is final, at most so long; says what it waits for. False
/// where something is left.
pub(crate) async fn settle(database_url: &str, simulator: &Simulator, bound: Duration) -> bool {
    let (begun, mut said_at, mut quiet) = (Instant::now(), Instant::now() - SAY_EVERY, 0);
    loop {
        let left = look(database_url, simulator).await;
        match &left {
            Ok(left) if left.is_nothing() => quiet += 1,
            Ok(_) | Err(_) => quiet = 0,
        }
        if quiet == LOOKS {
            say("everything is final");
            return true;
        }
        let is_over = begun.elapsed() > bound;
        if quiet == 0 && (is_over || said_at.elapsed() >= SAY_EVERY) {
            said_at = Instant::now();
            say(match &left {
                Ok(left) => format!("waiting for {left}"),
                Err(error) => format!("waiting for PostgreSQL: {error}"),
            });
        }
        if is_over {
            say(format!("not final within {} s", bound.as_secs()));
            return false;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn look(database_url: &str, simulator: &Simulator) -> sqlx::Result<Left> {
    let mut connection = PgConnection::connect(database_url).await?;
    let (chunks, webhooks) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM outbox),
                (SELECT count(*) FROM webhook_deliveries WHERE status = 'PENDING')",
    )
    .fetch_one(&mut connection)
    .await?;
    connection.close().await?;
    Ok(Left {
        chunks,
        webhooks,
        callbacks: simulator.callbacks().waiting,
    })
}
