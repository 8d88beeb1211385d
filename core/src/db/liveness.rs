//! Whether Postgres answers. A short query every 250 ms, over a connection of its own, detects
//! within [`DETECTION_MAX`] that Postgres is stopped, hangs or cannot be reached. Requests then
//! fail at once instead of waiting for their own time-outs, and these can be long enough for
//! slow statements.
//!
//! It also decides which connections to trust. A connection that was open when Postgres went
//! away may be dead; a pool that uses [`Liveness`] closes it instead of handing it out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sqlx::PgConnection;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::session::SessionSettings;
use super::{options, ping, time};
use crate::clock::Clock;
use crate::fault::{Fault, error_chain};
use crate::secret::Secret;

/// How often Postgres is queried.
const INTERVAL: Duration = Duration::from_millis(250);
/// How long Postgres may take to answer. A busy machine answers sooner.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// The longest time in which an outage is detected.
pub const DETECTION_MAX: Duration = INTERVAL.saturating_add(ANSWER_TIMEOUT);

/// The error class `operator_intervention`: Postgres stops or starts.
const OPERATOR_INTERVENTION: &str = "57";

/// The state of Postgres. Before the first query it counts as present. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Liveness {
    shared: Arc<LivenessState>,
}

#[derive(Debug)]
struct LivenessState {
    is_away: watch::Sender<bool>,
    began_at: Instant,
    /// Connections from before this time are not trusted: microseconds since `began_at`.
    trusted_from: AtomicU64,
}

impl Default for Liveness {
    fn default() -> Self {
        Self::new()
    }
}

impl Liveness {
    /// Queries nothing before [`Self::run`].
    #[must_use]
    pub fn new() -> Self {
        let shared = LivenessState {
            is_away: watch::Sender::new(false),
            began_at: Instant::now(),
            trusted_from: AtomicU64::new(0),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Whether Postgres does not answer.
    #[must_use]
    pub fn is_away(&self) -> bool {
        *self.shared.is_away.borrow()
    }

    /// Waits until Postgres does not answer.
    pub async fn gone(&self) {
        let mut changes = self.shared.is_away.subscribe();
        // The sender is part of `self`, so the channel does not close.
        let _away = changes.wait_for(|is_away| *is_away).await;
    }

    /// Queries the time of Postgres every 250 ms until `shutdown`, and corrects the clock.
    /// Thus the clock is right before Postgres counts as present again.
    ///
    /// # Errors
    /// A fault if the URL cannot be parsed.
    pub async fn run(
        self,
        url: Secret,
        clock: Clock,
        shutdown: CancellationToken,
    ) -> Result<(), Fault> {
        let options = options(&url)?.application_name("waypost-liveness");
        let mut connection = None;
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while shutdown.run_until_cancelled(ticks.tick()).await.is_some() {
            let cause =
                match timeout(ANSWER_TIMEOUT, self.ask(&mut connection, &options, &clock)).await {
                    Ok(Ok(())) => None,
                    Ok(Err(error)) if is_answer(&error) => None,
                    Ok(Err(error)) => Some(error_chain(&error)),
                    Err(_late) => Some("it does not answer".to_owned()),
                };
            self.set(cause);
        }
        Ok(())
    }

    /// Queries over the open connection, else over a new one. After a time-out the
    /// connection is not used again.
    async fn ask(
        &self,
        connection: &mut Option<PgConnection>,
        options: &PgConnectOptions,
        clock: &Clock,
    ) -> Result<(), sqlx::Error> {
        if let Some(mut known) = connection.take() {
            if time::correct_by(clock, &mut known).await.is_ok() {
                *connection = Some(known);
                return Ok(());
            }
            // Something closed the connection, perhaps with all others.
            self.distrust_connections();
        }
        let mut new = SessionSettings::new([]).connect(options).await?;
        time::correct_by(clock, &mut new).await?;
        *connection = Some(new);
        Ok(())
    }

    fn set(&self, cause: Option<String>) {
        let is_away = cause.is_some();
        if self.is_away() == is_away {
            return;
        }
        match cause {
            Some(cause) => warn!(cause, "Postgres is away"),
            None => {
                self.distrust_connections();
                info!("Postgres is back");
            }
        }
        self.shared.is_away.send_replace(is_away);
    }

    fn distrust_connections(&self) {
        let now = u64::try_from(self.shared.began_at.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.shared.trusted_from.store(now, Ordering::Relaxed);
    }

    /// Whether a connection of this age was made since Postgres was last away.
    pub(super) fn trusts(&self, age: Duration) -> bool {
        let made_at = self.shared.began_at.elapsed().checked_sub(age);
        let trusted_from = Duration::from_micros(self.shared.trusted_from.load(Ordering::Relaxed));
        // `None`: the connection is older than this `Liveness`.
        made_at.unwrap_or_default() >= trusted_from
    }

    /// Configures a pool to hand out no connection from before an outage, and to close a
    /// connection that is returned during an outage or was open in one.
    pub(super) fn configure(&self, pool: PgPoolOptions) -> PgPoolOptions {
        let (acquire, release) = (self.clone(), self.clone());
        pool.before_acquire(move |_, about| {
            let is_trusted = acquire.trusts(about.age);
            Box::pin(async move { Ok(is_trusted) })
        })
        .after_release(move |connection, about| {
            let may_be_dead = release.is_away() || !release.trusts(about.age);
            Box::pin(async move {
                if may_be_dead {
                    // An error closes the connection at once. A graceful close and a ping
                    // would wait for an answer.
                    let kind = std::io::ErrorKind::NotConnected;
                    Err(sqlx::Error::Io(kind.into()))
                } else {
                    ping(connection).await
                }
            })
        })
    }
}

/// Whether the error comes from a running Postgres, such as too many connections. Those who
/// need a connection report such errors themselves.
fn is_answer(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| !code.starts_with(OPERATOR_INTERVENTION))
}
