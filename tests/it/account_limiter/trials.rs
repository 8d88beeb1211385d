//! The calls that workers try when the wait of an open breaker is over.

use std::time::Duration;

use waypost_core::account_limiter::RejectedBy;
use waypost_tests::wait_until;

use super::{Fixture, NO_LIMITS, OPEN, Worker, accepted, unavailable};

#[tokio::test]
async fn each_worker_tries_at_most_one_call_when_the_wait_of_an_open_breaker_is_over() {
    let fixture = Fixture::new().await;
    let (one, other) = fixture.workers();
    one.fail(5).await;
    other.until_rejected_by(RejectedBy::Circuit).await;
    fixture.clock.advance(OPEN);
    let (trial, unused) = (one.permit().await, other.permit().await);
    for worker in [&one, &other] {
        assert_eq!(worker.rejected_by().await, Some(RejectedBy::Circuit));
    }
    // A permit without a call is no trial.
    drop(unused);
    let late = other.permit().await;
    // The first trial that fails opens the breaker for longer, for all.
    trial.end(&unavailable());
    let longer = Duration::from_secs(8)..=Duration::from_secs(12);
    for worker in [&one, &other] {
        wait_until("the breaker is open for longer", async || {
            let refusal = worker.acquire(NO_LIMITS).await.unwrap_err();
            longer.contains(&refusal.wait)
        })
        .await;
    }
    // A result that comes later changes nothing.
    late.end(&accepted());
    assert_eq!(other.rejected_by().await, Some(RejectedBy::Circuit));
    fixture.clock.advance(OPEN);
    for worker in [&one, &other] {
        assert_eq!(worker.rejected_by().await, Some(RejectedBy::Circuit));
    }
    fixture.clock.advance(OPEN);
    // A trial that succeeds closes it for all.
    let late = other.permit().await;
    one.permit().await.end(&accepted());
    for worker in [&one, &other] {
        worker.until_all_admitted().await;
    }
    late.end(&unavailable());
    // Earlier failures no longer count.
    for worker in [&one, &other] {
        worker.fail(2).await;
        assert_eq!(worker.rejected_by().await, None);
    }
}

#[tokio::test]
async fn trials_that_fail_together_lengthen_the_wait_once() {
    let fixture = Fixture::new().await;
    let workers = [fixture.worker(), fixture.worker(), fixture.worker()];
    workers[0].fail(5).await;
    for worker in &workers {
        worker.until_rejected_by(RejectedBy::Circuit).await;
    }
    fixture.clock.advance(OPEN);
    let mut trials = Vec::new();
    for worker in &workers {
        trials.push(worker.permit().await);
    }
    for trial in trials {
        trial.end(&unavailable());
    }
    let wait = async |worker: &Worker| worker.acquire(NO_LIMITS).await.unwrap_err().wait;
    wait_until("all workers wait equally long", async || {
        let [one, two, three] = &workers;
        let first = wait(one).await;
        first == wait(two).await && first == wait(three).await
    })
    .await;
    let longer = Duration::from_secs(8)..=Duration::from_secs(12);
    assert!(longer.contains(&wait(&workers[0]).await));
}
