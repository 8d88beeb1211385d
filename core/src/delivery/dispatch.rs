//! The dispatcher: pushes the jobs of committed messages to Redis in the background, so that
//! a request does not wait for it. If Redis is away or too many jobs wait, the relay finds
//! them in the outbox a little later.

use std::time::Duration;

use tokio::sync::mpsc;
use tracing::{info, warn};

use super::job::SendJob;
use crate::job_queue::Queue;

/// The most jobs that wait to be pushed.
const WAITING_MAX: usize = 200_000;
/// The most jobs in one round trip.
const PUSH_MAX: usize = 1_000;
/// How long one push may take.
const PUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Pushes jobs in the background. Cheap to clone.
#[derive(Clone)]
pub struct Dispatcher {
    sender: mpsc::Sender<SendJob>,
}

impl Dispatcher {
    /// Starts pushing to `queue`, until the last clone is dropped.
    #[must_use]
    pub fn start(queue: Queue<SendJob>) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        tokio::spawn(run(queue, receiver));
        Self { sender }
    }

    /// Queues jobs whose outbox rows are committed. Never waits.
    pub fn push(&self, jobs: impl IntoIterator<Item = SendJob>) {
        for job in jobs {
            if self.sender.try_send(job).is_err() {
                // The relay will push this one and those after it.
                break;
            }
        }
    }
}

async fn run(queue: Queue<SendJob>, mut receiver: mpsc::Receiver<SendJob>) {
    let mut jobs = Vec::with_capacity(PUSH_MAX);
    let mut is_away = false;
    while receiver.recv_many(&mut jobs, PUSH_MAX).await > 0 {
        let pushed = tokio::time::timeout(PUSH_TIMEOUT, queue.push(&jobs)).await;
        let failure = match pushed {
            Ok(Ok(())) => None,
            Ok(Err(fault)) => Some(fault.chain()),
            Err(_) => Some("the push took too long".to_owned()),
        };
        match (failure, is_away) {
            (Some(reason), false) => {
                warn!(
                    reason,
                    "Cannot push jobs; the relay will push them once Redis is back"
                );
                is_away = true;
            }
            (None, true) => {
                info!("Pushing jobs again");
                is_away = false;
            }
            (Some(_), true) | (None, false) => {}
        }
        jobs.clear();
    }
}
