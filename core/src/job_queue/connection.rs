//! A connection to Redis that mends itself. Whoever asks over it learns only
//! whether there was an answer; a failed call drops the connection, waits a
//! bounded while, and the next call connects anew. The log hears of it once when
//! a consumer loses Redis and once when it has it back, not at every try; and not
//! at all of a connection that broke and was made anew at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, FromRedisValue, Pipeline, RedisError, RedisResult,
    ScriptInvocation,
};
use tokio::time::Instant;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct ReconnectingConnection {
    client: Client,
    queue: &'static str,
    /// For connecting, and beyond the time a call itself may block.
    answer_within: Duration,
    block: Duration,
    connection: Option<MultiplexedConnection>,
    connected_at: Instant,
    pause: Duration,
    failed_once: bool,
    down: bool,
    lines_down: Arc<AtomicUsize>,
}

/// What can be asked over a line.
#[derive(Clone, Copy)]
pub(super) enum RedisCall<'a> {
    Command(&'a Cmd),
    Pipeline(&'a Pipeline),
    Script(&'a ScriptInvocation<'a>),
}

impl RedisCall<'_> {
    pub(super) async fn put<T: FromRedisValue>(
        self,
        connection: &mut MultiplexedConnection,
    ) -> RedisResult<T> {
        match self {
            RedisCall::Command(command) => command.query_async(connection).await,
            RedisCall::Pipeline(pipeline) => pipeline.query_async(connection).await,
            RedisCall::Script(script) => script.invoke_async(connection).await,
        }
    }
}

/// Why there was no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallError {
    /// The stream or its group is gone: Redis was emptied.
    NoGroup,
    /// Redis answered with an error. The line has waited already.
    Refused,
    /// Redis is away. The line has waited already.
    Away,
}

impl ReconnectingConnection {
    pub(super) fn new(
        client: Client,
        queue: &'static str,
        answer_within: Duration,
        lines_down: Arc<AtomicUsize>,
    ) -> Self {
        Self {
            client,
            queue,
            answer_within,
            block: Duration::ZERO,
            connection: None,
            connected_at: Instant::now(),
            pause: FIRST_PAUSE,
            failed_once: false,
            down: false,
            lines_down,
        }
    }

    /// A line whose calls may block in Redis for this long.
    pub(super) fn blocking(mut self, block: Duration) -> Self {
        self.block = block;
        self
    }

    /// Whether the next call will have to connect first.
    pub(super) fn is_closed(&self) -> bool {
        self.connection.is_none()
    }

    pub(super) async fn ask<T: FromRedisValue>(
        &mut self,
        question: RedisCall<'_>,
    ) -> Result<T, CallError> {
        match self.try_ask(question).await {
            Ok(answer) => {
                self.note_up();
                Ok(answer)
            }
            // A read that was blocked when the stream vanished ends as UNBLOCKED.
            Err(error) if matches!(error.code(), Some("NOGROUP" | "UNBLOCKED")) => {
                self.note_up();
                Err(CallError::NoGroup)
            }
            Err(error) => {
                self.connection = None;
                self.note_down(&error);
                tokio::time::sleep(self.pause).await;
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                Err(if error.is_io_error() {
                    CallError::Away
                } else {
                    CallError::Refused
                })
            }
        }
    }

    async fn try_ask<T: FromRedisValue>(&mut self, question: RedisCall<'_>) -> RedisResult<T> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                self.connected_at = Instant::now();
                let config = AsyncConnectionConfig::new()
                    .set_connection_timeout(Some(self.answer_within))
                    .set_response_timeout(Some(self.block + self.answer_within));
                none.insert(
                    self.client
                        .get_multiplexed_async_connection_with_config(&config)
                        .await?,
                )
            }
        };
        question.put(connection).await
    }

    fn note_up(&mut self) {
        // Where a new connection answers some things and refuses others, it is made again
        // and again.
        if self.connected_at.elapsed() > self.pause {
            self.pause = FIRST_PAUSE;
        }
        self.failed_once = false;
        if self.down {
            self.down = false;
            if self.lines_down.fetch_sub(1, Ordering::Relaxed) == 1 {
                let queue = self.queue;
                tracing::info!(queue, "The queue has Redis back");
            }
        }
    }

    fn note_down(&mut self, error: &RedisError) {
        if !self.failed_once {
            self.failed_once = true;
        } else if !self.down {
            self.down = true;
            if self.lines_down.fetch_add(1, Ordering::Relaxed) == 0 {
                let queue = self.queue;
                // Redis' errors repeat their source in their own words.
                tracing::warn!(queue, "The queue lost Redis and keeps trying: {error}");
            }
        }
    }
}

impl Drop for ReconnectingConnection {
    fn drop(&mut self) {
        if self.down {
            self.lines_down.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
