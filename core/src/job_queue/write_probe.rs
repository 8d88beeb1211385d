//! The prober: writes to Redis as a push does, all the time. A Redis that is full, became
//! a replica or cannot save goes on answering reads, so nothing else of a consumer would
//! notice that no job comes any more.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use super::Job;
use super::connection::RedisCall;
use super::in_flight::Consumer;

/// How often it writes while that works. What fails is tried again after the line's pause.
const EVERY: Duration = Duration::from_millis(500);

/// Runs for ever. What comes of it shows in the count of lines that are down.
pub(super) async fn run<J: Job>(consumer: Arc<Consumer<J>>) {
    let mut line = consumer.queue.line(&consumer.lines_down);
    let probe = consumer.queue.probe();
    loop {
        if line.ask::<Value>(RedisCall::Script(&probe)).await.is_ok() {
            tokio::time::sleep(EVERY).await;
        }
    }
}
