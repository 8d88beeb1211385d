//! An account that may not send for a while: over a quota, paused, at a limit that its
//! owner set. Each provider reports it in its own words, and no message fails because of
//! it.

use chrono::TimeDelta;
use serde_json::json;
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{FaultKind, Provider};
use waypost_tests::{HTTP_PROVIDERS, TestApp, message_to, wait_until};

use super::{FIRST, Pair, SECOND, fault};

#[tokio::test]
async fn messages_wait_for_an_account_that_may_not_send_and_use_no_attempt() {
    for kind in HTTP_PROVIDERS {
        for trouble in [FaultKind::Limit, FaultKind::Pause] {
            let app = TestApp::start().await;
            app.connect(kind).await;
            let provider = Provider::parse(kind.as_str()).unwrap();
            app.simulator().set_fault(fault(provider, trouble));
            let id = app.send_to("a@example.org").await;
            app.drain().await;
            assert_eq!(app.status(&id).await, "QUEUED", "{kind} {trouble:?}");
            // SES rejects requests dated more than a quarter of an hour ahead.
            let is_ses = kind == ProviderType::Ses;
            let later = TimeDelta::minutes(if is_ses { 12 } else { 120 });
            if !is_ses {
                app.advance_and_drain(later).await;
                assert_eq!(app.status(&id).await, "QUEUED", "{kind} {trouble:?}");
            }
            app.simulator().clear_faults();
            app.advance_and_drain(later).await;
            assert_eq!(app.status(&id).await, "SENT", "{kind} {trouble:?}");
            app.captured_once("a@example.org");
            assert_eq!(
                app.recipient(&id).await["attempts"],
                1,
                "{kind} {trouble:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_quota_reached_midway_loses_none_of_a_thousand_recipients() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Mailgun).await;
    let mut quota = fault(Provider::Mailgun, FaultKind::Limit);
    quota.rate = 0.5;
    app.simulator().set_fault(quota);
    let to: Vec<String> = (0..1_000)
        .map(|nth| format!("r{nth}@example.org"))
        .collect();
    let mut message = message_to("");
    message["to"] = json!(to);
    let id = app.send(&message).await;
    app.drain().await;
    app.simulator().clear_faults();
    app.advance_and_drain(TimeDelta::hours(2)).await;
    // After the pause the account's rate grows in real time.
    wait_until("all of it is sent", async || {
        app.advance_and_drain(TimeDelta::minutes(1)).await;
        app.status(&id).await == "SENT"
    })
    .await;
    assert_eq!(app.simulator().captured_count(), 1_000);
    let failed = "SELECT count(*) FROM recipients WHERE status <> 'SENT'";
    assert_eq!(app.value(failed).await.unwrap(), "0");
}

#[tokio::test]
async fn the_next_account_sends_for_one_that_may_not() {
    for trouble in [FaultKind::Limit, FaultKind::Pause, FaultKind::Suspended] {
        let pair = Pair::start().await;
        let app = &pair.app;
        app.simulator().set_fault(fault(FIRST, trouble));
        let id = app.send_to("a@example.org").await;
        app.drain().await;
        assert_eq!(app.captured_once("a@example.org").provider, SECOND);
        assert_eq!(app.status(&id).await, "SENT", "{trouble:?}");
    }
}
