//! The keeper: all that happens by the clock. It renews the leases of what its
//! consumer holds, moves due delayed jobs to the stream, mends the counts of
//! lanes, removes consumers that are long gone, and sees to the departure of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::Job;
use super::connection::{CallError, ReconnectingConnection, RedisCall};
use super::in_flight::Consumer;
use super::store::GROUP;

/// How often, at the least, consumers that are long gone are looked for.
const SWEEP_EVERY_MAX: Duration = Duration::from_secs(60);
/// The pace while the consumer is leaving.
const LEAVING_TICK: Duration = Duration::from_millis(10);
/// The most leases renewed by one command.
const RENEW_MAX: usize = 500;
/// The most promotion calls in one tick; what is left waits for the next.
const PROMOTE_CALLS_MAX: usize = 100;

/// Runs until the consumer has left, or for ever.
pub(super) async fn run<J: Job>(consumer: Arc<Consumer<J>>, is_shutting_down: impl Fn() -> bool) {
    let settings = consumer.queue.settings();
    let renew_every = settings.lease / 3;
    let sweep_every = settings.consumer_idle_max.min(SWEEP_EVERY_MAX);
    let tick = settings
        .promote_every
        .min(renew_every)
        .min(sweep_every)
        .min(settings.mend_every);
    let mut keeper = Keeper {
        line: consumer.queue.line(&consumer.lines_down),
        consumer: &consumer,
    };
    let mut renew_at = Instant::now() + renew_every;
    let mut promote_at = Instant::now();
    let mut mend_at = Instant::now() + settings.mend_every;
    let mut sweep_at = Instant::now() + sweep_every;
    loop {
        if is_shutting_down() && !consumer.desk.is_stopping() {
            consumer.desk.stop();
        }
        let now = Instant::now();
        // A failure is noted by the line, and the next tick tries again.
        if renew_at <= now && keeper.renew().await.is_ok() {
            renew_at = now + renew_every;
        }
        if promote_at <= now {
            promote_at = now + settings.promote_every;
            let _ = keeper.promote().await;
        }
        if mend_at <= now {
            mend_at = now + settings.mend_every;
            let _ = keeper.mend().await;
        }
        if sweep_at <= now {
            sweep_at = now + sweep_every;
            let _ = keeper.sweep(false).await;
        }
        if consumer.desk.is_stopping() {
            if consumer.desk.is_settled() {
                let _ = keeper.sweep(true).await;
                consumer.desk.note_left();
                return;
            }
            if !consumer.desk.is_fetcher_gone() {
                let _ = keeper.wake_fetcher().await;
            }
            tokio::time::sleep(LEAVING_TICK).await;
        } else {
            let _ = tokio::time::timeout(tick, consumer.desk.stop_asked()).await;
        }
    }
}

struct Keeper<'a, J> {
    consumer: &'a Consumer<J>,
    line: ReconnectingConnection,
}

impl<J: Job> Keeper<'_, J> {
    /// Claims for ourselves what is ours already, which resets the time after
    /// which others may take it. What is acknowledged meanwhile is passed over.
    async fn renew(&mut self) -> Result<(), CallError> {
        let stream = &self.consumer.queue.keys().stream;
        for ids in self.consumer.desk.held().chunks(RENEW_MAX) {
            let mut claim = redis::cmd("XCLAIM");
            claim.arg(stream).arg(GROUP).arg(&self.consumer.name).arg(0);
            for id in ids {
                claim.arg(id.to_string());
            }
            claim.arg("JUSTID");
            match self
                .line
                .ask::<redis::Value>(RedisCall::Command(&claim))
                .await
            {
                // Nothing to renew; the fetcher makes the group anew.
                Ok(_) | Err(CallError::NoGroup) => {}
                Err(no_answer) => return Err(no_answer),
            }
        }
        Ok(())
    }

    async fn promote(&mut self) -> Result<(), CallError> {
        let max = self.consumer.queue.settings().promote_max;
        for _ in 0..PROMOTE_CALLS_MAX {
            let promote = self.consumer.queue.promote();
            let moved: usize = self.line.ask(RedisCall::Script(&promote)).await?;
            if moved < max {
                break;
            }
        }
        Ok(())
    }

    async fn mend(&mut self) -> Result<(), CallError> {
        let mend = self.consumer.queue.mend();
        self.line.ask(RedisCall::Script(&mend)).await
    }

    async fn sweep(&mut self, leaving: bool) -> Result<(), CallError> {
        let sweep = self.consumer.queue.sweep(&self.consumer.name, leaving);
        self.line.ask(RedisCall::Script(&sweep)).await
    }

    /// Ends the fetcher's blocking read, which would otherwise go on and might be
    /// given jobs. Repeated at every tick, because it may miss by a hair.
    async fn wake_fetcher(&mut self) -> Result<(), CallError> {
        let id = self.consumer.fetcher_id.load(Ordering::Relaxed);
        if id == 0 {
            return Ok(());
        }
        let unblock = redis::cmd("CLIENT").arg("UNBLOCK").arg(id).take();
        self.line.ask(RedisCall::Command(&unblock)).await
    }
}
