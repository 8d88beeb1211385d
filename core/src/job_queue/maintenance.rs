//! Maintenance: what a consumer does at regular intervals. It renews the leases of its jobs,
//! moves due delayed jobs to the stream, repairs the counts of fairness keys, and removes
//! consumers that are gone. At the end it removes its own consumer.
//!
//! To move delayed jobs is a write also if none is due. A Redis that is full, became a replica
//! or cannot save still answers reads, so the other tasks of a consumer would not notice that no
//! job arrives any more.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::Job;
use super::connection::{CallError, ReconnectingConnection, RedisCall};
use super::in_flight::Consumer;
use super::store::GROUP;
use crate::ticks::next_tick;

/// The longest interval between two removals of idle consumers.
const REMOVE_IDLE_EVERY_MAX: Duration = Duration::from_secs(60);
/// The interval while the consumer is closing.
const CLOSING_TICK: Duration = Duration::from_millis(10);
/// The most leases that one command renews.
const RENEW_MAX: usize = 500;
/// The most promotion calls in one tick. The next tick moves what is left.
const PROMOTE_CALLS_MAX: usize = 100;

/// Runs until the consumer is closed.
pub(super) async fn run<J: Job>(consumer: Arc<Consumer<J>>, is_shutting_down: impl Fn() -> bool) {
    let settings = consumer.queue.settings();
    let in_flight = &consumer.in_flight;
    let renew_every = settings.lease / 3;
    let remove_every = settings.consumer_idle_max.min(REMOVE_IDLE_EVERY_MAX);
    let tick = settings
        .promote_every
        .min(renew_every)
        .min(remove_every)
        .min(settings.repair_every);
    let mut maintenance = Maintenance {
        connection: consumer.connection(),
        consumer: &consumer,
    };
    let mut renew_at = next_tick(renew_every);
    let mut promote_at = Instant::now();
    let mut repair_at = next_tick(settings.repair_every);
    let mut remove_at = next_tick(remove_every);
    loop {
        if is_shutting_down() && !in_flight.is_stopping() {
            in_flight.stop();
        }
        let now = Instant::now();
        // The connection logs a failure, and the next tick tries again.
        if renew_at <= now && maintenance.renew().await.is_ok() {
            renew_at = next_tick(renew_every);
        }
        if promote_at <= now {
            promote_at = next_tick(settings.promote_every);
            let _ = maintenance.promote().await;
        }
        if repair_at <= now {
            repair_at = next_tick(settings.repair_every);
            let _ = maintenance.repair().await;
        }
        if remove_at <= now {
            remove_at = next_tick(remove_every);
            let _ = maintenance.remove_idle_consumers().await;
        }
        if in_flight.is_stopping() {
            if in_flight.is_drained() {
                let _ = maintenance.remove_own_consumer().await;
                in_flight.mark_closed();
                return;
            }
            if !in_flight.has_fetcher_stopped() {
                let _ = maintenance.unblock_fetcher().await;
            }
            tokio::time::sleep(CLOSING_TICK).await;
        } else {
            let _ = timeout_at(next_tick(tick), in_flight.stop_requested()).await;
        }
    }
}

struct Maintenance<'a, J> {
    consumer: &'a Consumer<J>,
    connection: ReconnectingConnection,
}

impl<J: Job> Maintenance<'_, J> {
    /// Claims the jobs that the consumer has already, which resets the idle time after which
    /// others may claim them. Redis ignores those that were acknowledged meanwhile.
    async fn renew(&mut self) -> Result<(), CallError> {
        let stream = &self.consumer.queue.keys().stream;
        for ids in self.consumer.in_flight.held().chunks(RENEW_MAX) {
            let mut claim = redis::cmd("XCLAIM");
            claim.arg(stream).arg(GROUP).arg(&self.consumer.name).arg(0);
            for id in ids {
                claim.arg(id.to_string());
            }
            claim.arg("JUSTID");
            match self
                .connection
                .call::<redis::Value>(RedisCall::Command(&claim))
                .await
            {
                // Without a group there are no leases. The fetcher creates it again.
                Ok(_) | Err(CallError::NoGroup) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn promote(&mut self) -> Result<(), CallError> {
        let max = self.consumer.queue.settings().promote_max;
        for _ in 0..PROMOTE_CALLS_MAX {
            let promote = self.consumer.queue.promote();
            let moved: usize = self.connection.call(RedisCall::Script(&promote)).await?;
            if moved < max {
                break;
            }
        }
        Ok(())
    }

    async fn repair(&mut self) -> Result<(), CallError> {
        let repair = self.consumer.queue.repair();
        self.connection.call(RedisCall::Script(&repair)).await
    }

    async fn remove_idle_consumers(&mut self) -> Result<(), CallError> {
        let consumer = self.consumer;
        let remove = consumer.queue.remove_consumers(&consumer.name, false);
        self.connection.call(RedisCall::Script(&remove)).await
    }

    async fn remove_own_consumer(&mut self) -> Result<(), CallError> {
        let consumer = self.consumer;
        let remove = consumer.queue.remove_consumers(&consumer.name, true);
        self.connection.call(RedisCall::Script(&remove)).await
    }

    /// Ends the blocking read of the fetcher, which might otherwise still receive jobs. It is
    /// repeated at every tick, because the fetcher may begin another read just then.
    async fn unblock_fetcher(&mut self) -> Result<(), CallError> {
        let id = self.consumer.fetcher_id.load(Ordering::Relaxed);
        if id == 0 {
            return Ok(());
        }
        let unblock = redis::cmd("CLIENT").arg("UNBLOCK").arg(id).take();
        self.connection.call(RedisCall::Command(&unblock)).await
    }
}
