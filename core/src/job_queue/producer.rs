//! The connection over which a process pushes to a queue. All pushes share it, so that many
//! concurrent pushes become few packets and none needs a health check. A failed push is
//! returned to the caller; the next one connects again.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, RedisError, RedisResult, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::connection::RedisCall;
use crate::redis::connector::Connector;

/// The pause before the next connection after connecting failed or a push was refused.
/// Otherwise many concurrent pushes would wait for one time-out after another, or make a
/// connection each.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) struct ProducerConnection {
    connector: Connector,
    answer_within: Duration,
    state: Mutex<ProducerState>,
}

#[derive(Default)]
struct ProducerState {
    connection: Option<MultiplexedConnection>,
    /// Counts connections, so that a push drops only the connection that it used.
    generation: u64,
    not_before: Option<Instant>,
}

impl ProducerState {
    /// Drops a connection, unless another has replaced it. True if it did.
    fn forget(&mut self, generation: u64) -> bool {
        self.generation == generation && self.connection.take().is_some()
    }
}

impl ProducerConnection {
    pub(super) fn new(connector: Connector, answer_within: Duration) -> Self {
        Self {
            connector,
            answer_within,
            state: Mutex::default(),
        }
    }

    pub(super) async fn send(&self, jobs: RedisCall<'_>) -> RedisResult<()> {
        let (generation, result) = self.try_send(jobs).await?;
        match result {
            // The connection may have broken while it was idle. To push a job twice is
            // harmless.
            Err(error) if error.is_connection_dropped() => {
                self.state.lock().await.forget(generation);
                let (generation, result) = self.try_send(jobs).await?;
                if result.is_err() {
                    self.drop_connection(generation).await;
                }
                result
            }
            Err(error) => {
                self.drop_connection(generation).await;
                Err(error)
            }
            Ok(()) => Ok(()),
        }
    }

    async fn try_send(&self, jobs: RedisCall<'_>) -> RedisResult<(u64, RedisResult<()>)> {
        let (generation, mut connection) = self.connection().await?;
        let result = jobs.query::<Value>(&mut connection).await;
        Ok((generation, result.map(drop)))
    }

    async fn connection(&self) -> RedisResult<(u64, MultiplexedConnection)> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection {
            return Ok((state.generation, connection.clone()));
        }
        if state.not_before.is_some_and(|time| Instant::now() < time) {
            let what = "Redis failed a moment ago";
            return Err(RedisError::from((ErrorKind::Io, what)));
        }
        let within = self.answer_within;
        match self.connector.connect(within, Some(within)).await {
            Ok(connection) => {
                state.generation += 1;
                state.not_before = None;
                state.connection = Some(connection.clone());
                Ok((state.generation, connection))
            }
            Err(error) => {
                state.not_before = Some(Instant::now() + PAUSE);
                Err(error)
            }
        }
    }

    /// Drops a connection, and pauses before the next.
    async fn drop_connection(&self, generation: u64) {
        let mut state = self.state.lock().await;
        if state.forget(generation) {
            state.not_before = Some(Instant::now() + PAUSE);
        }
    }
}
