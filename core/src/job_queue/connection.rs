//! A Redis connection that reconnects by itself. A failed call drops the connection and
//! waits; the next call connects again. The log says once that a consumer has lost Redis and
//! once that Redis is back, and nothing if a connection broke and was made again at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue, Pipeline, RedisError, RedisResult, ScriptInvocation};
use tokio::time::Instant;

use crate::redis::connector::Connector;

/// The first and the longest pause after a failed call.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_LONGEST: Duration = Duration::from_secs(1);

pub(super) struct ReconnectingConnection {
    connector: Connector,
    queue: &'static str,
    /// For connecting, and for a reply besides the time that the call itself may block.
    answer_within: Duration,
    block: Duration,
    connection: Option<MultiplexedConnection>,
    connected_at: Instant,
    pause: Duration,
    has_failed_once: bool,
    is_broken: bool,
    /// How many connections of this process's consumers are broken.
    broken: Arc<AtomicUsize>,
}

/// A call to Redis.
#[derive(Clone, Copy)]
pub(super) enum RedisCall<'a> {
    Command(&'a Cmd),
    Pipeline(&'a Pipeline),
    Script(&'a ScriptInvocation<'a>),
}

impl RedisCall<'_> {
    pub(super) async fn query<T: FromRedisValue>(
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

/// Why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallError {
    /// The stream or its group is gone: Redis was emptied.
    NoGroup,
    /// Redis answered with an error. The pause is over already.
    Refused,
    /// Redis did not answer. The pause is over already.
    Away,
}

impl ReconnectingConnection {
    pub(super) fn new(
        connector: Connector,
        queue: &'static str,
        answer_within: Duration,
        broken: Arc<AtomicUsize>,
    ) -> Self {
        Self {
            connector,
            queue,
            answer_within,
            block: Duration::ZERO,
            connection: None,
            connected_at: Instant::now(),
            pause: PAUSE_FIRST,
            has_failed_once: false,
            is_broken: false,
            broken,
        }
    }

    /// The same, for calls that may block in Redis for this long.
    pub(super) fn blocking(mut self, block: Duration) -> Self {
        self.block = block;
        self
    }

    /// Whether the next call has to connect first.
    pub(super) fn is_closed(&self) -> bool {
        self.connection.is_none()
    }

    pub(super) async fn call<T: FromRedisValue>(
        &mut self,
        call: RedisCall<'_>,
    ) -> Result<T, CallError> {
        match self.try_call(call).await {
            Ok(reply) => {
                self.note_success();
                Ok(reply)
            }
            // If the stream is deleted during a blocking read, the read ends as UNBLOCKED.
            Err(error) if matches!(error.code(), Some("NOGROUP" | "UNBLOCKED")) => {
                self.note_success();
                Err(CallError::NoGroup)
            }
            Err(error) => {
                self.connection = None;
                self.note_failure(&error);
                tokio::time::sleep(self.pause).await;
                self.pause = (self.pause * 2).min(PAUSE_LONGEST);
                Err(if error.is_io_error() {
                    CallError::Away
                } else {
                    CallError::Refused
                })
            }
        }
    }

    async fn try_call<T: FromRedisValue>(&mut self, call: RedisCall<'_>) -> RedisResult<T> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                self.connected_at = Instant::now();
                let answer_within = self.block + self.answer_within;
                let opening = self
                    .connector
                    .connect(self.answer_within, Some(answer_within));
                none.insert(opening.await?)
            }
        };
        call.query(connection).await
    }

    fn note_success(&mut self) {
        // Only a connection that has lasted resets the pause: if Redis answers some calls and
        // refuses others, each refused call makes a new connection.
        if self.connected_at.elapsed() > self.pause {
            self.pause = PAUSE_FIRST;
        }
        self.has_failed_once = false;
        if self.is_broken {
            self.is_broken = false;
            if self.broken.fetch_sub(1, Ordering::Relaxed) == 1 {
                let queue = self.queue;
                tracing::info!(queue, "The queue has Redis back");
            }
        }
    }

    fn note_failure(&mut self, error: &RedisError) {
        if !self.has_failed_once {
            self.has_failed_once = true;
        } else if !self.is_broken {
            self.is_broken = true;
            if self.broken.fetch_add(1, Ordering::Relaxed) == 0 {
                let queue = self.queue;
                // Without the source: Redis' errors repeat it in their own text.
                tracing::warn!(queue, "The queue lost Redis and keeps trying: {error}");
            }
        }
    }
}

impl Drop for ReconnectingConnection {
    fn drop(&mut self) {
        if self.is_broken {
            self.broken.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
