//! The one connection over which a process pushes to a queue. All pushes share it,
//! so that many at once become few packets and none pays for a health check. A
//! push that fails is the caller's to report; the connection mends itself.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, RedisError, RedisResult, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::connection::RedisCall;

/// How long nobody tries to connect after that failed or a push was refused, so that a
/// crowd of pushes does not wait out one time-out after the other, nor make a connection
/// each.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) struct ProducerConnection {
    client: Client,
    answer_within: Duration,
    state: Mutex<ProducerState>,
}

#[derive(Default)]
struct ProducerState {
    connection: Option<MultiplexedConnection>,
    /// Counts connections, so that only the broken one is dropped.
    nth: u64,
    not_before: Option<Instant>,
}

impl ProducerState {
    /// Gives a connection up, unless there is another one already.
    fn forget(&mut self, nth: u64) -> bool {
        self.nth == nth && self.connection.take().is_some()
    }
}

impl ProducerConnection {
    pub(super) fn new(client: Client, answer_within: Duration) -> Self {
        Self {
            client,
            answer_within,
            state: Mutex::default(),
        }
    }

    pub(super) async fn send(&self, jobs: RedisCall<'_>) -> RedisResult<()> {
        let (nth, outcome) = self.try_send(jobs).await?;
        match outcome {
            // A connection that broke while it was idle shows only now. Sent twice,
            // a job does no harm.
            Err(error) if error.is_connection_dropped() => {
                self.state.lock().await.forget(nth);
                let (nth, outcome) = self.try_send(jobs).await?;
                if outcome.is_err() {
                    self.drop_connection(nth).await;
                }
                outcome
            }
            Err(error) => {
                self.drop_connection(nth).await;
                Err(error)
            }
            Ok(()) => Ok(()),
        }
    }

    async fn try_send(&self, jobs: RedisCall<'_>) -> RedisResult<(u64, RedisResult<()>)> {
        let (nth, mut connection) = self.connection().await?;
        let outcome = jobs.put::<Value>(&mut connection).await;
        Ok((nth, outcome.map(drop)))
    }

    async fn connection(&self) -> RedisResult<(u64, MultiplexedConnection)> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection {
            return Ok((state.nth, connection.clone()));
        }
        if state.not_before.is_some_and(|time| Instant::now() < time) {
            let what = "Redis failed a moment ago";
            return Err(RedisError::from((ErrorKind::Io, what)));
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.answer_within))
            .set_response_timeout(Some(self.answer_within));
        let opening = self
            .client
            .get_multiplexed_async_connection_with_config(&config);
        match opening.await {
            Ok(connection) => {
                state.nth += 1;
                state.not_before = None;
                state.connection = Some(connection.clone());
                Ok((state.nth, connection))
            }
            Err(error) => {
                state.not_before = Some(Instant::now() + PAUSE);
                Err(error)
            }
        }
    }

    async fn drop_connection(&self, nth: u64) {
        let mut state = self.state.lock().await;
        if state.forget(nth) {
            state.not_before = Some(Instant::now() + PAUSE);
        }
    }
}
