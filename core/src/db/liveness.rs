//! Whether Postgres answers at all. One small question a moment, over a connection
//! of its own, tells a process within [`NOTICED_WITHIN`] that nothing answers: the
//! server is gone, hangs, or cannot be reached. Requests then need not each wait
//! until its own patience ends, and a statement that is slow while Postgres lives
//! may take its time.
//!
//! It also says which connections to trust. One that was open when Postgres went
//! away may be dead without knowing; a pool that goes by the pulse closes it instead
//! of handing it out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions as _, PgConnection};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{options, sign_of_life, time};
use crate::clock::Clock;
use crate::fault::{Fault, error_chain};
use crate::secret::Secret;

/// How often Postgres is asked.
const EVERY: Duration = Duration::from_millis(250);
/// How long it may take to answer. A machine that is merely busy answers sooner.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long it takes at the most to notice that nothing answers.
pub const NOTICED_WITHIN: Duration = EVERY.saturating_add(PATIENCE);

/// The class of errors by which Postgres says that it stops or starts.
const STOPS_OR_STARTS: &str = "57";

/// What is known of Postgres. Until it was asked it is taken to be there. Cheap to
/// clone.
#[derive(Debug, Clone)]
pub struct Liveness {
    shared: Arc<LivenessState>,
}

#[derive(Debug)]
struct LivenessState {
    is_away: watch::Sender<bool>,
    began_at: Instant,
    /// Connections made before this are not trusted: microseconds since `began_at`.
    trusted_from: AtomicU64,
}

impl Default for Liveness {
    fn default() -> Self {
        Self::new()
    }
}

impl Liveness {
    /// Nothing is asked before [`Self::keep`] runs.
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

    /// Whether nothing answers.
    #[must_use]
    pub fn is_away(&self) -> bool {
        *self.shared.is_away.borrow()
    }

    /// Waits until nothing answers.
    pub async fn gone(&self) {
        let mut changes = self.shared.is_away.subscribe();
        // We hold the other end ourselves, so it does not close.
        let _away = changes.wait_for(|is_away| *is_away).await;
    }

    /// Asks Postgres for the time again and again, until `shutdown`, and corrects the
    /// clock: so it is right before Postgres counts as being back.
    ///
    /// # Errors
    /// A fault when the URL cannot be read.
    pub async fn keep(
        self,
        url: Secret,
        clock: Clock,
        shutdown: CancellationToken,
    ) -> Result<(), Fault> {
        let options = options(&url)?.application_name("waypost-pulse");
        let mut connection = None;
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while shutdown.run_until_cancelled(ticks.tick()).await.is_some() {
            let cause = match timeout(PATIENCE, self.ask(&mut connection, &options, &clock)).await {
                Ok(Ok(())) => None,
                Ok(Err(error)) if is_answer(&error) => None,
                Ok(Err(error)) => Some(error_chain(&error)),
                Err(_late) => Some("it does not answer".to_owned()),
            };
            self.tell(cause);
        }
        Ok(())
    }

    /// Asks over the connection that there is, else over a new one. A connection
    /// whose answer was not awaited is not used again.
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
            // Somebody ended it: perhaps it was alone, perhaps all were.
            self.distrust();
        }
        let mut new = options.connect().await?;
        time::correct_by(clock, &mut new).await?;
        *connection = Some(new);
        Ok(())
    }

    fn tell(&self, cause: Option<String>) {
        let is_away = cause.is_some();
        if self.is_away() == is_away {
            return;
        }
        match cause {
            Some(cause) => warn!(cause, "Postgres is away"),
            None => {
                self.distrust();
                info!("Postgres is back");
            }
        }
        self.shared.is_away.send_replace(is_away);
    }

    fn distrust(&self) {
        let now = u64::try_from(self.shared.began_at.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.shared.trusted_from.store(now, Ordering::Relaxed);
    }

    /// Whether a connection of this age was made since Postgres was last away.
    pub(super) fn trusts(&self, age: Duration) -> bool {
        let made_at = self.shared.began_at.elapsed().checked_sub(age);
        let trusted_from = Duration::from_micros(self.shared.trusted_from.load(Ordering::Relaxed));
        // One that is older than the pulse itself was made before it was asked.
        made_at.unwrap_or_default() >= trusted_from
    }

    /// Lets a pool go by the pulse: it hands out no connection that may be dead, and
    /// keeps none whose use ended while nothing answered, or that was open then.
    pub(super) fn guard(&self, pool: PgPoolOptions) -> PgPoolOptions {
        let (taking, giving) = (self.clone(), self.clone());
        pool.before_acquire(move |_, about| {
            let is_trusted = taking.trusts(about.age);
            Box::pin(async move { Ok(is_trusted) })
        })
        .after_release(move |connection, about| {
            let is_suspect = giving.is_away() || !giving.trusts(about.age);
            Box::pin(async move {
                if is_suspect {
                    // Closed at once: to part in peace takes somebody who answers, and
                    // so does a sign of life.
                    let kind = std::io::ErrorKind::NotConnected;
                    Err(sqlx::Error::Io(kind.into()))
                } else {
                    sign_of_life(connection).await
                }
            })
        })
    }
}

/// Whether a refusal comes from a Postgres that works: too many connections, say. What
/// is the matter is then for those to tell who ask for more.
fn is_answer(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| !code.starts_with(STOPS_OR_STARTS))
}
