//! Processes that are killed while they work on tests, and a Redis that is emptied: every test
//! gets its last event, once.

use std::time::Duration;

use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, wait_until, wait_within};

use super::{number, test_to};

/// Leases end after 6 s, the wait for evidence after 2 s, and builds share the machine.
const RECOVERED_WITHIN: Duration = Duration::from_secs(60);

#[tokio::test]
async fn every_test_gets_its_last_event_whatever_is_killed() {
    let app = TestApp::builder().processes().private_redis().start().await;
    let _api = app.spawn_api().await;
    app.connect(ProviderType::Sendgrid).await;
    let mut scheduler = app.spawn_scheduler();
    let outcomes = ["delivered", "bounced", "complained", "deferred"];
    let count = "SELECT count(*) FROM recipients";
    let mut sent = 0;
    for round in 0..4 {
        let mut worker = app.spawn_worker();
        for nth in 0..40 {
            let address = format!("r{round}-{nth}@example.org");
            app.send(&test_to(&address, outcomes[nth % outcomes.len()]))
                .await;
            sent += 1;
        }
        wait_until("some are accepted", async || {
            number(
                &app,
                &format!("{count} WHERE provider_message_id IS NOT NULL"),
            )
            .await
                >= sent - 35
        })
        .await;
        worker.kill().await;
        scheduler.kill().await;
        app.redis.as_ref().unwrap().flush().await;
        scheduler = app.spawn_scheduler();
    }
    let _worker = app.spawn_worker();
    let open = "SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM test_reports)";
    let is_done = wait_within(RECOVERED_WITHIN, async || number(&app, open).await == 0).await;
    let left = app.outbox().await;
    assert!(is_done, "not finished: {left:?}");
    // A recipient that two dead workers held may have failed, as a live one.
    let wrong = number(
        &app,
        &format!("{count} WHERE status NOT IN ('DELIVERED', 'BOUNCED') AND unknowns < 2"),
    )
    .await;
    assert_eq!(wrong, 0);
    // An attempt whose worker died before its outcome is repeated; its first one reports nothing.
    let events = number(
        &app,
        "SELECT count(*) FROM events WHERE event_type IN ('DELIVERED', 'BOUNCED')",
    )
    .await;
    let accepted = number(
        &app,
        "SELECT count(*) FROM send_attempts WHERE outcome = 'ACCEPTED'",
    )
    .await;
    assert_eq!(events, accepted);
    assert_eq!(
        number(&app, "SELECT count(*) FROM messages WHERE is_test").await,
        sent
    );
    assert_eq!(app.simulator().captured_count(), 0);
    drop(scheduler);
}
