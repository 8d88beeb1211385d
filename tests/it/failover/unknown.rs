//! Lost responses under the three policies of a rule, during a call and after the death
//! of its worker. The simulator shows how often a message was sent.

use std::time::Duration;

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{Fault, FaultKind};
use waypost_tests::{TestApp, wait_until, wait_within};

use super::{FIRST, Pair, SECOND, fault, rule};

async fn under(policy: &str) -> Pair {
    let app = TestApp::builder()
        .setting("WAYPOST_PROVIDER_TIMEOUT", "1s")
        .start()
        .await;
    Pair::with(app, &json!({ "onUnknown": policy })).await
}

/// Without a fallback.
async fn alone_under(policy: &str) -> TestApp {
    let app = TestApp::builder()
        .setting("WAYPOST_PROVIDER_TIMEOUT", "1s")
        .start()
        .await;
    let account = app.connect(ProviderType::Mailgun).await;
    rule(&app, &account, &[], &json!({ "onUnknown": policy })).await;
    app
}

fn last_error(recipient: &Value) -> &str {
    recipient["lastError"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn by_default_a_lost_response_leads_to_no_other_account_before_the_wait_ends() {
    let pair = under("wait").await;
    let app = &pair.app;
    let id = app.send_to("timeout-once@example.org").await;
    app.drain().await;
    assert_eq!(app.status(&id).await, "SENDING");
    app.advance_and_drain(TimeDelta::minutes(14)).await;
    assert_eq!(app.outcomes(&id).await, ["UNKNOWN"]);
    assert_eq!(app.captured("timeout-once@example.org").len(), 1);
    app.advance_and_drain(TimeDelta::minutes(2)).await;
    assert_eq!(app.status(&id).await, "SENT");
    assert_eq!(app.outcomes(&id).await, ["UNKNOWN", "ACCEPTED"]);
    assert_eq!(app.captured("timeout-once@example.org").len(), 2);
}

#[tokio::test]
async fn resend_sends_once_more_at_once() {
    let app = alone_under("resend").await;
    let id = app.send_to("timeout-once@example.org").await;
    app.drain().await;
    assert_eq!(app.status(&id).await, "SENT");
    assert_eq!(app.events(&id).await, ["QUEUED", "SENT"]);
    assert_eq!(app.outcomes(&id).await, ["UNKNOWN", "ACCEPTED"]);
    assert_eq!(app.captured("timeout-once@example.org").len(), 2);
    assert_eq!(app.recipient(&id).await["attempts"], 2);
}

#[tokio::test]
async fn resend_uses_the_next_account_if_there_is_one() {
    let pair = under("resend").await;
    let app = &pair.app;
    app.simulator().set_fault(fault(FIRST, FaultKind::Reset));
    let id = app.send_to("a@example.org").await;
    app.drain().await;
    assert_eq!(app.status(&id).await, "SENT");
    assert_eq!(pair.accounts_called(&id).await, [1, 2]);
    assert_eq!(app.outcomes(&id).await, ["UNKNOWN", "ACCEPTED"]);
    let copies = app.captured("a@example.org");
    let providers: Vec<_> = copies.iter().map(|copy| copy.provider).collect();
    assert_eq!(providers, [FIRST, SECOND]);
}

#[tokio::test]
async fn resend_continues_until_the_horizon() {
    let app = alone_under("resend").await;
    let id = app.send_to("reset@example.org").await;
    app.drain().await;
    assert_eq!(app.status(&id).await, "QUEUED");
    assert_eq!(app.outcomes(&id).await, ["UNKNOWN"; 2], "one more at once");
    app.advance_and_drain(TimeDelta::minutes(31)).await;
    assert_eq!(app.outcomes(&id).await, ["UNKNOWN"; 3]);
    app.advance_and_drain(TimeDelta::hours(24)).await;
    assert_eq!(app.status(&id).await, "FAILED");
    assert_eq!(app.events(&id).await, ["QUEUED", "DROPPED"]);
    let outcomes = app.outcomes(&id).await;
    let copies = app.captured("reset@example.org").len();
    assert_eq!(copies, outcomes.len(), "every copy is explained");
}

#[tokio::test]
async fn fail_ends_the_recipient_and_says_that_it_may_have_been_sent() {
    let pair = under("fail").await;
    let app = &pair.app;
    let id = app.send_to("timeout-once@example.org").await;
    app.drain().await;
    assert_eq!(app.status(&id).await, "FAILED");
    assert_eq!(app.events(&id).await, ["QUEUED", "DROPPED"]);
    assert_eq!(app.outcomes(&id).await, ["UNKNOWN"]);
    let recipient = app.recipient(&id).await;
    assert!(
        last_error(&recipient).contains("may have taken"),
        "{recipient}"
    );
    let reason = app.value("SELECT data->>'reason' FROM events WHERE event_type = 'DROPPED'");
    assert!(reason.await.unwrap().contains("may have taken"));
    app.advance_and_drain(TimeDelta::hours(48)).await;
    assert_eq!(app.captured("timeout-once@example.org").len(), 1);
    assert!(app.outbox().await.is_empty());
}

#[tokio::test]
async fn a_reported_event_ends_the_retries_elsewhere() {
    let pair = under("resend").await;
    let app = &pair.app;
    let path = format!("/v1/providers/{}/event-webhook", pair.first);
    app.caller().post_empty(&path).await.expect(200);
    app.simulator().set_fault(fault(FIRST, FaultKind::Reset));
    app.simulator().set_fault(fault(SECOND, FaultKind::Error));
    let id = app.send_to("a@example.org").await;
    app.drain().await;
    wait_until("the first provider has sent its event", async || {
        app.status(&id).await == "DELIVERED"
    })
    .await;
    app.simulator().clear_faults();
    app.advance_and_drain(TimeDelta::hours(1)).await;
    assert_eq!(app.captured_once("a@example.org").provider, FIRST);
    assert_eq!(app.outcomes(&id).await[0], "ACCEPTED");
    assert!(app.outbox().await.is_empty());
}

/// What a worker killed during its calls leaves behind, after another worker finished the
/// work: the status and the events of each message, and how often it was sent.
async fn killed_in_the_call(policy: &str) -> Vec<(String, usize, Vec<String>)> {
    let app = TestApp::builder().processes().private_redis().start().await;
    let (_api, _scheduler) = (app.spawn_api().await, app.spawn_scheduler());
    let account = app.connect(ProviderType::Mailgun).await;
    rule(&app, &account, &[], &json!({ "onUnknown": policy })).await;
    let mut doomed = app.spawn_worker();
    app.simulator().set_fault(Fault::slow_sends(1_500));
    let mut ids = Vec::new();
    for nth in 0..10 {
        ids.push(app.send_to(&format!("r{nth}@example.org")).await);
    }
    wait_until("calls are open", async || {
        let open = "SELECT count(*) FROM send_attempts WHERE outcome IS NULL";
        app.value(open).await.unwrap() != "0"
    })
    .await;
    doomed.kill().await;
    app.simulator().clear_faults();
    let _worker = app.spawn_worker();
    let finished = wait_within(Duration::from_secs(60), async || {
        app.outbox().await.is_empty()
    });
    assert!(finished.await, "{policy}: work is left");
    let mut found = Vec::new();
    for (nth, id) in ids.iter().enumerate() {
        let copies = app.captured(&format!("r{nth}@example.org")).len();
        found.push((app.status(id).await, copies, app.outcomes(id).await));
    }
    found
}

#[tokio::test]
async fn the_policy_decides_about_the_calls_of_a_killed_worker() {
    for policy in ["wait", "resend", "fail"] {
        let found = killed_in_the_call(policy).await;
        let lost = |outcomes: &[String]| outcomes.contains(&"UNKNOWN".to_owned());
        assert!(
            found.iter().any(|(_, _, outcomes)| lost(outcomes)),
            "{policy}: {found:?}"
        );
        for (status, copies, outcomes) in &found {
            let unknown = outcomes.iter().filter(|o| *o == "UNKNOWN").count();
            assert!(*copies <= outcomes.len(), "{policy}: {found:?}");
            if policy == "fail" && lost(outcomes) {
                assert_eq!(outcomes, &["UNKNOWN"], "{policy}: {found:?}");
                assert_eq!(status, "FAILED", "{policy}: {found:?}");
            } else {
                assert_eq!(status, "SENT", "{policy}: {found:?}");
                assert!((1..=1 + unknown).contains(copies), "{policy}: {found:?}");
            }
        }
    }
}
