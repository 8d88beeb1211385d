//! Providers that throttle without naming a wait.

use std::time::{Duration, Instant};

use waypost_core::account_limiter::RejectedBy;

use super::{Fixture, NO_LIMITS, accepted, throttled_somehow};

#[tokio::test]
async fn rare_throttling_does_not_open_the_breaker_and_constant_throttling_leaves_a_few_calls() {
    let fixture = Fixture::new().await;
    let worker = fixture.worker();
    for nth in 0..200 {
        let outcome = if nth % 100 == 0 {
            throttled_somehow()
        } else {
            accepted()
        };
        worker.call(&outcome).await;
    }
    let throttled = async |seconds| {
        let mut pause = tokio::time::interval(Duration::from_millis(5));
        let mut passed = 0;
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(seconds) {
            match worker.acquire(NO_LIMITS).await {
                Ok(permit) => {
                    passed += 1;
                    permit.end(&throttled_somehow());
                }
                Err(refusal) => assert_eq!(refusal.by, RejectedBy::Throttled),
            }
            pause.tick().await;
        }
        passed
    };
    let passed = throttled(2).await;
    assert!((10..500).contains(&passed), "{passed}");
    let passed = throttled(3).await;
    assert!((2..=5).contains(&passed), "one a second: {passed}");
}

#[tokio::test]
async fn throttled_mail_to_one_domain_does_not_slow_other_domains() {
    let fixture = Fixture::new().await;
    let worker = fixture.worker();
    let (slow, quick) = (
        worker.call_for("slow.example"),
        worker.call_for("quick.example"),
    );
    let started = Instant::now();
    let mut refused = false;
    let mut pause = tokio::time::interval(Duration::from_millis(5));
    while !refused && started.elapsed() < Duration::from_secs(10) {
        match worker.acquire_for(slow).await {
            Ok(permit) => permit.end(&throttled_somehow()),
            Err(refusal) => refused = refusal.by == RejectedBy::Throttled,
        }
        pause.tick().await;
        worker.acquire_for(quick).await.unwrap().end(&accepted());
    }
    assert!(refused, "the slow domain is slowed");
    for _ in 0..50 {
        worker.acquire_for(quick).await.unwrap().end(&accepted());
    }
}
