//! Accounts with problems: they cannot send, do not know a sender, or are sometimes
//! throttled.

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{Fault, FaultKind, Provider};
use waypost_tests::{TestApp, credentials, wait_until};

use super::{SECOND, connect_forbidden, fault, rule};

fn address(nth: usize) -> String {
    format!("r{nth}@example.org")
}

async fn actions(app: &TestApp, action: &str) -> usize {
    let entries = app.get(&format!("/v1/audit-logs?action={action}")).await;
    let entries = entries.data(200);
    let entries = entries.as_array().unwrap();
    for entry in entries {
        assert_eq!(entry["actor"]["type"], "system", "{entry}");
    }
    entries.len()
}

/// An account that cannot send, with messages that wait for it.
async fn account_with_problem(app: &TestApp, count: usize) -> (String, Vec<String>) {
    let account = connect_forbidden(app).await;
    let mut ids = Vec::new();
    for nth in 0..count {
        ids.push(app.send_to(&address(nth)).await);
    }
    app.drain().await;
    let path = format!("/v1/providers/{account}");
    wait_until("the account says what is the matter", async || {
        !app.get(&path).await.data(200)["sendingPausedReason"].is_null()
    })
    .await;
    (path, ids)
}

#[tokio::test]
async fn messages_wait_for_an_account_that_cannot_send_and_are_sent_when_it_is_repaired() {
    let mends = [
        json!({ "credentials": credentials(ProviderType::Ses) }),
        json!({ "isActive": true }),
    ];
    for mend in mends {
        let app = TestApp::start().await;
        let (path, ids) = account_with_problem(&app, 60).await;
        let calls = "SELECT count(*) FROM send_attempts";
        let calls: usize = app.value(calls).await.unwrap().parse().unwrap();
        assert!(calls < 60, "most are spared: {calls}");
        for id in &ids {
            let recipient = app.recipient(id).await;
            assert_eq!(recipient["status"], "QUEUED");
            assert_eq!(recipient["attempts"], 0);
        }
        let account = app.get(&path).await.data(200);
        assert!(account["sendingPausedSince"].is_string(), "{account}");
        assert_eq!(account["isActive"], true);
        assert_eq!(app.get("/v1/providers").await.data(200), json!([account]));
        assert_eq!(actions(&app, "provider.failing").await, 1);
        let changed = app.patch(&path, &mend).await.data(200);
        assert_eq!(changed["sendingPausedReason"], Value::Null);
        assert_eq!(changed["sendingPausedSince"], Value::Null);
        if mend["isActive"] == true {
            // Nothing was repaired, so the next call fails too.
            wait_until("it is tried again", async || {
                !app.get(&path).await.data(200)["sendingPausedReason"].is_null()
            })
            .await;
            app.leave_work();
            continue;
        }
        // The clock stands still: no wait by the clock ends.
        wait_until("all are sent", async || app.outbox().await.is_empty()).await;
        for nth in 0..60 {
            app.captured_once(&address(nth));
        }
    }
}

#[tokio::test]
async fn with_a_fallback_an_account_that_cannot_send_is_skipped_at_once() {
    let app = TestApp::start().await;
    let forbidden = connect_forbidden(&app).await;
    let second = app.connect(ProviderType::Postmark).await;
    rule(&app, &forbidden, &[&second], &json!({})).await;
    for nth in 0..30 {
        app.send_to(&address(nth)).await;
    }
    app.drain().await;
    for nth in 0..30 {
        assert_eq!(app.captured_once(&address(nth)).provider, SECOND);
    }
}

#[tokio::test]
async fn repairing_a_fallback_wakes_the_messages_that_wait() {
    let app = TestApp::start().await;
    let first = connect_forbidden(&app).await;
    let second = connect_forbidden(&app).await;
    rule(&app, &first, &[&second], &json!({})).await;
    app.send_to(&address(0)).await;
    app.drain().await;
    let path = format!("/v1/providers/{second}");
    wait_until("the fallback says what is the matter", async || {
        !app.get(&path).await.data(200)["sendingPausedReason"].is_null()
    })
    .await;
    let mend = json!({ "credentials": credentials(ProviderType::Ses) });
    app.patch(&path, &mend).await.data(200);
    // The clock stands still: no wait by the clock ends.
    wait_until("it is sent", async || app.outbox().await.is_empty()).await;
    app.captured_once(&address(0));
}

#[tokio::test]
async fn messages_for_an_account_that_stays_broken_fail_after_a_day() {
    let app = TestApp::start().await;
    let (_, ids) = account_with_problem(&app, 3).await;
    app.advance_and_drain(TimeDelta::hours(23)).await;
    for id in &ids {
        assert_eq!(app.status(id).await, "QUEUED");
    }
    app.advance_and_drain(TimeDelta::hours(2)).await;
    app.advance_and_drain(TimeDelta::hours(2)).await;
    for id in &ids {
        assert_eq!(app.status(id).await, "FAILED");
    }
}

/// An SMTP server that does not let this user send as this sender.
async fn connect_without_the_sender(app: &TestApp) -> String {
    let mut login = credentials(ProviderType::Smtp);
    login["username"] = json!("noscope");
    app.connect_with(ProviderType::Smtp, &login).await
}

#[tokio::test]
async fn a_sender_rejected_by_one_account_goes_to_the_next_and_the_first_is_not_called_again() {
    let app = TestApp::start().await;
    let refusing = connect_without_the_sender(&app).await;
    let second = app.connect(ProviderType::Postmark).await;
    rule(&app, &refusing, &[&second], &json!({})).await;
    app.simulator().set_fault(fault(SECOND, FaultKind::Error));
    let id = app.send_to("a@example.org").await;
    app.drain().await;
    assert_eq!(app.outcomes(&id).await, ["REJECTED", "UNAVAILABLE"]);
    assert_eq!(app.status(&id).await, "QUEUED");
    app.simulator().clear_faults();
    app.advance_and_drain(TimeDelta::minutes(1)).await;
    assert_eq!(
        app.outcomes(&id).await,
        ["REJECTED", "UNAVAILABLE", "ACCEPTED"]
    );
    assert_eq!(app.captured_once("a@example.org").provider, SECOND);
    let alone = json!({ "tags": ["alone"], "priority": 1 });
    rule(&app, &refusing, &[], &alone).await;
    let mut message = waypost_tests::message_to("b@example.org");
    message["tags"] = json!(["alone"]);
    let alone = app.send(&message).await;
    app.drain().await;
    assert_eq!(app.status(&alone).await, "FAILED", "nobody else is left");
}

#[tokio::test]
async fn an_account_that_is_sometimes_throttled_continues() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Postmark).await;
    app.simulator().set_fault(Fault {
        rate: 0.01,
        ..fault(Provider::Postmark, FaultKind::Throttle)
    });
    for nth in 0..200 {
        app.send_to(&address(nth)).await;
    }
    app.drain().await;
    let sent = "SELECT count(*) FROM recipients WHERE status = 'SENT'";
    let sent: u32 = app.value(sent).await.unwrap().parse().unwrap();
    assert!(sent > 150, "{sent} of 200 before anybody waited for a time");
    app.simulator().clear_faults();
    wait_until("all are sent", async || {
        app.advance_and_drain(TimeDelta::minutes(1)).await;
        app.outbox().await.is_empty()
    })
    .await;
}
