//! The connections to mail servers that are kept between mails: a line for each
//! account, bounded in number and in idle time. New credentials are another line,
//! and the old one's connections go when they have been idle for long enough.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::CONNECTIONS_MAX;
use super::account::SmtpAccount;
use super::connection::Connection;

/// The lines of all accounts. Cheap to clone.
#[derive(Clone)]
pub(super) struct Lines(Arc<PooledConnection>);

struct PooledConnection {
    state: Mutex<PoolState>,
    idle_timeout: Duration,
}

#[derive(Default)]
struct PoolState {
    lines: HashMap<[u8; 32], Arc<AccountConnections>>,
    is_swept: bool,
}

/// The connections of one account.
pub(super) struct AccountConnections {
    /// One for each connection that may be open.
    pub(super) permits: Semaphore,
    idle: Mutex<Vec<Idle>>,
    idle_timeout: Duration,
}

struct Idle {
    connection: Connection,
    since: Instant,
}

impl Lines {
    pub(super) fn new(idle_timeout: Duration) -> Self {
        Self(Arc::new(PooledConnection {
            state: Mutex::default(),
            idle_timeout,
        }))
    }

    /// The line of an account.
    pub(super) fn of(&self, account: &SmtpAccount) -> Arc<AccountConnections> {
        let mut state = locked(&self.0.state);
        if !state.is_swept {
            state.is_swept = true;
            tokio::spawn(sweep(Arc::downgrade(&self.0), self.0.idle_timeout));
        }
        let line = state.lines.entry(account.fingerprint()).or_insert_with(|| {
            Arc::new(AccountConnections {
                permits: Semaphore::new(CONNECTIONS_MAX as usize),
                idle: Mutex::default(),
                idle_timeout: self.0.idle_timeout,
            })
        });
        Arc::clone(line)
    }
}

impl AccountConnections {
    /// The connection that was used last, if it has not been idle for too long.
    pub(super) fn take(&self) -> Option<Connection> {
        let idle = locked(&self.idle).pop()?;
        (idle.since.elapsed() < self.idle_timeout).then_some(idle.connection)
    }

    /// Keeps a connection for the next mail.
    pub(super) fn keep(&self, connection: Connection) {
        locked(&self.idle).push(Idle {
            connection,
            since: Instant::now(),
        });
    }

    fn drop_expired(&self) {
        let mut idle = locked(&self.idle);
        // A server takes the end of a connection for a QUIT.
        idle.retain(|idle| idle.since.elapsed() < self.idle_timeout);
    }

    fn is_unused(self: &Arc<Self>) -> bool {
        locked(&self.idle).is_empty() && Arc::strong_count(self) == 1
    }
}

/// Closes what was idle for too long, until there is nothing left to look after.
async fn sweep(kept: Weak<PooledConnection>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        let Some(kept) = kept.upgrade() else {
            return;
        };
        let mut state = locked(&kept.state);
        for line in state.lines.values() {
            line.drop_expired();
        }
        state.lines.retain(|_, line| !line.is_unused());
        if state.lines.is_empty() {
            state.is_swept = false;
            return;
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
