//! The pool of connections to mail servers, per account, bounded in number and in idle
//! time. Changed credentials start another set of connections; those of the old ones
//! expire.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::CONNECTIONS_MAX;
use super::account::SmtpAccount;
use super::connection::Connection;

/// The connections of all accounts. Cheap to clone.
#[derive(Clone)]
pub(super) struct ConnectionPool(Arc<PoolInner>);

struct PoolInner {
    state: Mutex<PoolState>,
    idle_timeout: Duration,
}

#[derive(Default)]
struct PoolState {
    accounts: HashMap<[u8; 32], Arc<AccountConnections>>,
    has_sweeper: bool,
}

/// The connections of one account.
pub(super) struct AccountConnections {
    /// A permit for each connection that may be open.
    pub(super) permits: Semaphore,
    idle: Mutex<Vec<Idle>>,
    idle_timeout: Duration,
}

struct Idle {
    connection: Connection,
    since: Instant,
}

impl ConnectionPool {
    pub(super) fn new(idle_timeout: Duration) -> Self {
        Self(Arc::new(PoolInner {
            state: Mutex::default(),
            idle_timeout,
        }))
    }

    /// The connections of an account.
    pub(super) fn for_account(&self, account: &SmtpAccount) -> Arc<AccountConnections> {
        let mut state = lock(&self.0.state);
        if !state.has_sweeper {
            state.has_sweeper = true;
            tokio::spawn(sweep(Arc::downgrade(&self.0), self.0.idle_timeout));
        }
        let connections = state
            .accounts
            .entry(account.fingerprint())
            .or_insert_with(|| {
                Arc::new(AccountConnections {
                    permits: Semaphore::new(CONNECTIONS_MAX as usize),
                    idle: Mutex::default(),
                    idle_timeout: self.0.idle_timeout,
                })
            });
        Arc::clone(connections)
    }
}

impl AccountConnections {
    /// The connection that was used last, if it has not expired.
    pub(super) fn take(&self) -> Option<Connection> {
        let idle = lock(&self.idle).pop()?;
        (idle.since.elapsed() < self.idle_timeout).then_some(idle.connection)
    }

    /// Returns a connection for the next mail.
    pub(super) fn put_back(&self, connection: Connection) {
        lock(&self.idle).push(Idle {
            connection,
            since: Instant::now(),
        });
    }

    fn close_expired(&self) {
        let mut idle = lock(&self.idle);
        // Servers treat a closed connection like a QUIT.
        idle.retain(|idle| idle.since.elapsed() < self.idle_timeout);
    }

    fn is_unused(self: &Arc<Self>) -> bool {
        lock(&self.idle).is_empty() && Arc::strong_count(self) == 1
    }
}

/// Closes expired connections until the pool is empty.
async fn sweep(pool: Weak<PoolInner>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        let Some(pool) = pool.upgrade() else {
            return;
        };
        let mut state = lock(&pool.state);
        for connections in state.accounts.values() {
            connections.close_expired();
        }
        state
            .accounts
            .retain(|_, connections| !connections.is_unused());
        if state.accounts.is_empty() {
            state.has_sweeper = false;
            return;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
