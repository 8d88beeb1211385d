//! Providers that throttle without naming a wait.

use std::time::{Duration, Instant};

use waypost_core::account_limiter::RejectedBy;

use super::{House, NO_LIMITS, accepted, throttled_somehow};

#[tokio::test]
async fn being_throttled_now_and_then_closes_nothing_and_being_throttled_always_leaves_a_few() {
    let house = House::new().await;
    let worker = house.worker();
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
            match worker.enter(NO_LIMITS).await {
                Ok(pass) => {
                    passed += 1;
                    pass.end(&throttled_somehow());
                }
                Err(closed) => assert_eq!(closed.by, RejectedBy::Throttled),
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
async fn mail_to_one_domain_that_is_throttled_does_not_slow_the_others() {
    let house = House::new().await;
    let worker = house.worker();
    let (slow, quick) = (
        worker.call_for("slow.example"),
        worker.call_for("quick.example"),
    );
    let started = Instant::now();
    let mut refused = false;
    let mut pause = tokio::time::interval(Duration::from_millis(5));
    while !refused && started.elapsed() < Duration::from_secs(10) {
        match worker.enter_for(slow).await {
            Ok(pass) => pass.end(&throttled_somehow()),
            Err(closed) => refused = closed.by == RejectedBy::Throttled,
        }
        pause.tick().await;
        worker.enter_for(quick).await.unwrap().end(&accepted());
    }
    assert!(refused, "the slow domain is slowed");
    for _ in 0..50 {
        worker.enter_for(quick).await.unwrap().end(&accepted());
    }
}
