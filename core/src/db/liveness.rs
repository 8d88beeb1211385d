//! Whether Postgres answers. A short query every 250 ms, over a connection of its own, detects
//! within [`DETECTION_MAX`] that Postgres is stopped, hangs or cannot be reached. Requests then
//! fail at once instead of waiting for their own time-outs, and these can be long enough for
//! slow statements. While nobody uses the pool, a query every two seconds is enough, and one when
//! it is used again.
//!
//! A Postgres whose schema lacks a migration of this program counts as away too: statements would
//! fail, or do half of what this version means. It is asked until the schema is current once;
//! later migrations suit this program.
//!
//! It also decides which connections to trust. A connection that was open when Postgres went
//! away may be dead; a pool that uses [`Liveness`] closes it instead of handing it out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use sqlx::PgConnection;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::session::SessionSettings;
use super::{is_current_over, options, ping, time};
use crate::clock::Clock;
use crate::fault::{Fault, error_chain};
use crate::secret::Secret;
use crate::ticks::next_tick;

/// How often Postgres is queried.
const INTERVAL: Duration = Duration::from_millis(250);
/// How often it is queried while nobody uses the pool.
const IDLE_INTERVAL: Duration = Duration::from_secs(2);
/// How long the pool counts as used after a connection was handed out.
const USED_FOR: Duration = Duration::from_millis(500);
/// How long Postgres may take to answer. A busy machine answers sooner.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// The longest time in which an outage is detected while the pool is used.
pub const DETECTION_MAX: Duration = INTERVAL.saturating_add(ANSWER_TIMEOUT);

/// The error class `operator_intervention`: Postgres stops or starts.
const OPERATOR_INTERVENTION: &str = "57";

/// Whether Postgres can be used. Before the first query it counts as present. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Liveness {
    shared: Arc<LivenessState>,
}

/// What the last query found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    NotAsked,
    Present,
    /// It does not answer.
    Away,
    /// It answers, and migrations of this program are missing.
    Outdated,
}

#[derive(Debug)]
struct LivenessState {
    presence: watch::Sender<Presence>,
    /// Whether the schema was current once.
    is_migrated: AtomicBool,
    began_at: Instant,
    /// Connections from before this time are not trusted: microseconds since `began_at`.
    trusted_from: AtomicU64,
    /// When a connection was last handed out: microseconds since `began_at`.
    used_at: AtomicU64,
    /// Whether the next query waits until the pool is used.
    is_resting: AtomicBool,
    /// Notified when the pool is used during that wait.
    used: Notify,
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
            presence: watch::Sender::new(Presence::NotAsked),
            is_migrated: AtomicBool::new(false),
            began_at: Instant::now(),
            trusted_from: AtomicU64::new(0),
            used_at: AtomicU64::new(0),
            is_resting: AtomicBool::new(false),
            used: Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Whether Postgres does not answer, or lacks migrations of this program.
    #[must_use]
    pub fn is_away(&self) -> bool {
        self.presence().is_away()
    }

    /// Waits until Postgres is away.
    pub async fn gone(&self) {
        self.wait_for(Presence::is_away).await;
    }

    /// Waits until Postgres answers and its schema is current.
    pub async fn present(&self) {
        self.wait_for(|presence| presence == Presence::Present)
            .await;
    }

    /// Waits for the result of the first query.
    pub async fn asked(&self) {
        self.wait_for(|presence| presence != Presence::NotAsked)
            .await;
    }

    async fn wait_for(&self, is_met: impl Fn(Presence) -> bool) {
        let mut changes = self.shared.presence.subscribe();
        // The sender is part of `self`, so the channel does not close.
        let _met = changes.wait_for(|presence| is_met(*presence)).await;
    }

    fn presence(&self) -> Presence {
        *self.shared.presence.borrow()
    }

    /// Queries the time of Postgres until `shutdown`, and corrects the clock. Thus the clock is
    /// right before Postgres counts as present again.
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
        loop {
            let answer = timeout(ANSWER_TIMEOUT, self.ask(&mut connection, &options, &clock)).await;
            match answer {
                Ok(Ok(presence)) => self.set(presence, ""),
                Ok(Err(error)) if is_answer(&error) => self.set(Presence::Present, ""),
                Ok(Err(error)) => self.set(Presence::Away, &error_chain(&error)),
                Err(_late) => self.set(Presence::Away, "it does not answer"),
            }
            if shutdown.run_until_cancelled(self.rest()).await.is_none() {
                return Ok(());
            }
        }
    }

    /// Waits until the next query is due.
    async fn rest(&self) {
        sleep_until(next_tick(INTERVAL)).await;
        // Set first, so that no use is missed.
        self.shared.is_resting.store(true, Ordering::SeqCst);
        if !self.is_used() && self.presence() == Presence::Present {
            let rest = IDLE_INTERVAL.saturating_sub(INTERVAL);
            let _unused = timeout(rest, self.shared.used.notified()).await;
        }
        self.shared.is_resting.store(false, Ordering::SeqCst);
    }

    /// Queries over the open connection, else over a new one. After a time-out the
    /// connection is not used again.
    async fn ask(
        &self,
        connection: &mut Option<PgConnection>,
        options: &PgConnectOptions,
        clock: &Clock,
    ) -> Result<Presence, sqlx::Error> {
        let mut open = None;
        if let Some(mut known) = connection.take() {
            if time::correct_by(clock, &mut known).await.is_ok() {
                open = Some(known);
            } else {
                // Something closed the connection, perhaps with all others.
                self.distrust_connections();
            }
        }
        let mut open = match open {
            Some(open) => open,
            None => {
                let mut new = SessionSettings::new([]).connect(options).await?;
                time::correct_by(clock, &mut new).await?;
                new
            }
        };
        let presence = self.check_schema(&mut open).await;
        *connection = Some(open);
        Ok(presence)
    }

    async fn check_schema(&self, connection: &mut PgConnection) -> Presence {
        let is_migrated = &self.shared.is_migrated;
        if is_migrated.load(Ordering::Relaxed) {
            return Presence::Present;
        }
        match is_current_over(connection).await {
            Ok(true) => {
                is_migrated.store(true, Ordering::Relaxed);
                Presence::Present
            }
            Ok(false) => Presence::Outdated,
            // Postgres went away meanwhile; the next query finds that out.
            Err(_) => self.presence(),
        }
    }

    fn set(&self, now: Presence, cause: &str) {
        let before = self.presence();
        if before == now {
            return;
        }
        match (before, now) {
            (_, Presence::Away) => warn!(cause, "Postgres is away"),
            (_, Presence::Outdated) => warn!(
                "The schema of the database is older than this program, which waits until `waypost-api migrate` has run"
            ),
            (Presence::Away, Presence::Present) => info!("Postgres is back"),
            (Presence::Outdated, Presence::Present) => info!("The database is migrated"),
            (_, Presence::Present | Presence::NotAsked) => {}
        }
        if before.is_away() && !now.is_away() {
            self.distrust_connections();
        }
        self.shared.presence.send_replace(now);
    }

    fn distrust_connections(&self) {
        self.shared
            .trusted_from
            .store(self.now(), Ordering::Relaxed);
    }

    /// Notes that a connection is handed out.
    pub(super) fn mark_used(&self) {
        self.shared.used_at.store(self.now(), Ordering::SeqCst);
        if self.shared.is_resting.swap(false, Ordering::SeqCst) {
            self.shared.used.notify_one();
        }
    }

    fn is_used(&self) -> bool {
        let used_at = Duration::from_micros(self.shared.used_at.load(Ordering::SeqCst));
        self.shared.began_at.elapsed().saturating_sub(used_at) < USED_FOR
    }

    /// Microseconds since `began_at`.
    fn now(&self) -> u64 {
        u64::try_from(self.shared.began_at.elapsed().as_micros()).unwrap_or(u64::MAX)
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
            acquire.mark_used();
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

impl Presence {
    fn is_away(self) -> bool {
        match self {
            Self::NotAsked | Self::Present => false,
            Self::Away | Self::Outdated => true,
        }
    }
}

/// Whether the error comes from a running Postgres, such as too many connections. Those who
/// need a connection report such errors themselves.
fn is_answer(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| !code.starts_with(OPERATOR_INTERVENTION))
}
