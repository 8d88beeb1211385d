//! Machines with wrong clocks: the times that they record delay no other machine.

use std::time::Duration;

use chrono::TimeDelta;
use waypost_core::clock::Clock;
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{Fault, FaultCalls, FaultKind};
use waypost_tests::{AppBuilder, TestApp, message_to, wait_until, wait_within};

/// Longer than a circuit stays open after it opened twice, and much shorter than the
/// error of the clocks.
const SOON: Duration = Duration::from_secs(45);

fn builder() -> AppBuilder {
    TestApp::builder()
        .without_worker()
        .with_clock(Clock::system())
        .setting("WAYPOST_RETRY_FIRST", "200ms")
        .setting("WAYPOST_RETRY_LONGEST", "2s")
}

#[tokio::test]
async fn circuits_and_delays_of_a_worker_with_a_wrong_clock_end_soon() {
    for error in [TimeDelta::hours(1), -TimeDelta::hours(1)] {
        let app = builder().start().await;
        app.connect(ProviderType::Mailgun).await;
        app.simulator().set_fault(Fault {
            provider: None,
            kind: FaultKind::Error,
            rate: 1.0,
            latency_ms: 0,
            calls: FaultCalls::Send,
        });
        app.start_worker_by(&Clock::system_off_by(error));
        for nth in 0..20 {
            app.send_to(&format!("r{nth}@example.org")).await;
        }
        wait_until("mail waits for the account", async || {
            let waiting = "SELECT count(*) FROM recipients WHERE last_error LIKE 'waiting: %'";
            app.value(waiting).await.unwrap().parse::<u32>().unwrap() > 0
        })
        .await;
        app.simulator().clear_faults();
        app.start_worker_by(&Clock::system());
        let all = wait_within(SOON, async || app.outbox().await.is_empty());
        assert!(all.await, "work is left, with clocks {error} apart");
    }
}

#[tokio::test]
async fn a_message_accepted_by_an_api_with_a_wrong_clock_is_sent_at_once() {
    let app = builder().start().await;
    app.connect(ProviderType::Mailgun).await;
    for (nth, error) in [TimeDelta::hours(1), -TimeDelta::hours(1)]
        .into_iter()
        .enumerate()
    {
        let wrong = app.start_another_api_by(&Clock::system_off_by(error)).await;
        let message = message_to(&format!("r{nth}@example.org"));
        wrong.post("/v1/send", &message).await.expect(202);
    }
    app.start_worker();
    let all = wait_within(Duration::from_secs(10), async || {
        app.outbox().await.is_empty()
    });
    assert!(all.await, "work is left");
    let ahead = "SELECT count(*) FROM messages WHERE created_at > now() + interval '1 minute'
                    OR created_at < now() - interval '2 minutes'";
    assert_eq!(app.value(ahead).await.unwrap(), "0");
}
