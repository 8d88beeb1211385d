//! The write probe: writes to Redis regularly, as a push does. A Redis that is full, became a
//! replica or cannot save still answers reads, so the other tasks of a consumer would not
//! notice that no job arrives any more.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use super::Job;
use super::connection::RedisCall;
use super::in_flight::Consumer;

/// How often it writes. After a failure it writes again after the connection's pause.
const EVERY: Duration = Duration::from_millis(500);

/// Runs for ever. A failure shows in the count of broken connections.
pub(super) async fn run<J: Job>(consumer: Arc<Consumer<J>>) {
    let mut connection = consumer.connection();
    let probe = consumer.queue.probe();
    loop {
        let probed = connection.call::<Value>(RedisCall::Script(&probe)).await;
        if probed.is_ok() {
            tokio::time::sleep(EVERY).await;
        }
    }
}
