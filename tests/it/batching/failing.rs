//! Provider batches that fail: rejected, throttled, failed, without a response, and left
//! by a killed worker.

use std::time::Duration;

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{Fault, FaultCalls, FaultKind, Provider};
use waypost_tests::{TestApp, wait_until, wait_within};

use super::{BATCHING, addresses, calls, count, count_outcomes, message_to_all, number, of};

/// Leases of 6 s end, the wait for evidence is 2 s, and builds share the machine.
const RECOVERED_WITHIN: Duration = Duration::from_secs(60);

/// Twenty addresses, of which some have these local parts. Each has its own domain and no
/// `+`, so that Mailgun accepts it in a batch.
fn twenty_with(local_parts: &[&str]) -> Vec<String> {
    let mut to = addresses(20 - local_parts.len());
    for (nth, local_part) in local_parts.iter().enumerate() {
        to.insert(nth * 7 + 1, format!("{local_part}@r{nth}.example.org"));
    }
    to
}

async fn rule(app: &TestApp, first: &str, fallbacks: &[&str], policy: &str) {
    let rule = json!({
        "name": "A rule", "providerAccountId": first,
        "fallbackProviderAccountIds": fallbacks, "onUnknown": policy,
    });
    app.post("/v1/routing-rules", &rule).await.data(201);
}

#[tokio::test]
async fn a_rejected_recipient_of_a_batch_fails_alone() {
    for kind in BATCHING {
        let app = TestApp::start().await;
        app.connect(kind).await;
        let to = twenty_with(&["refuse", "refuse"]);
        let id = app.send(&message_to_all(&to)).await;
        app.drain().await;
        let outcomes = of(&[("ACCEPTED", 18), ("REJECTED", 2)]);
        assert_eq!(count_outcomes(&app, &id).await, outcomes, "{kind}");
        for (recipient, address) in app.recipients(&id).await.iter().zip(&to) {
            let is_refused = address.starts_with("refuse");
            let expected = if is_refused { "FAILED" } else { "SENT" };
            assert_eq!(recipient["status"], expected, "{kind}: {address}");
            assert_eq!(recipient["attempts"], 1, "{kind}: {address}");
            assert_eq!(recipient["lastError"].is_string(), is_refused, "{kind}");
            let copies = app.captured(address).len();
            assert_eq!(copies, usize::from(!is_refused), "{kind}: {address}");
        }
        let expected = match kind {
            // The response names the recipient, and the others are sent.
            ProviderType::Sendgrid => 2,
            // The response has an entry for each recipient.
            ProviderType::Postmark => 1,
            // The response does not name the recipient.
            ProviderType::Mailgun => 21,
            ProviderType::Ses | ProviderType::Smtp => unreachable!("they take no batches"),
        };
        assert_eq!(calls(&app, kind), expected, "{kind}");
    }
}

#[tokio::test]
async fn a_throttled_batch_is_retried_as_one() {
    for kind in BATCHING {
        let app = TestApp::start().await;
        app.connect(kind).await;
        let to = twenty_with(&["throttle-once"]);
        let id = app.send(&message_to_all(&to)).await;
        app.drain().await;
        assert_eq!(
            count_outcomes(&app, &id).await,
            of(&[("THROTTLED", 20)]),
            "{kind}"
        );
        app.advance_and_drain(TimeDelta::minutes(1)).await;
        let outcomes = of(&[("THROTTLED", 20), ("ACCEPTED", 20)]);
        assert_eq!(count_outcomes(&app, &id).await, outcomes, "{kind}");
        assert_eq!(calls(&app, kind), 2, "{kind}");
        for (recipient, address) in app.recipients(&id).await.iter().zip(&to) {
            assert_eq!(recipient["attempts"], 1, "{kind}");
            app.captured_once(address);
        }
    }
}

#[tokio::test]
async fn recipients_of_a_failed_batch_are_retried_alone() {
    for kind in BATCHING {
        let app = TestApp::start().await;
        app.connect(kind).await;
        // The provider fails because of one of them, whatever else the call contains.
        let to = twenty_with(&["error"]);
        let id = app.send(&message_to_all(&to)).await;
        app.drain().await;
        assert_eq!(
            count_outcomes(&app, &id).await,
            of(&[("UNAVAILABLE", 20)]),
            "{kind}"
        );
        assert_eq!(calls(&app, kind), 1, "{kind}");
        app.advance_and_drain(TimeDelta::minutes(1)).await;
        assert_eq!(calls(&app, kind), 21, "{kind}");
        assert_eq!(count(&app, "SENT").await, 19, "{kind}");
        assert_eq!(count(&app, "QUEUED").await, 1, "{kind}");
        app.leave_work();
    }
}

#[tokio::test]
async fn a_batch_that_one_provider_fails_to_accept_goes_to_the_next_as_one() {
    let app = TestApp::start().await;
    let first = app.connect(ProviderType::Mailgun).await;
    let second = app.connect(ProviderType::Postmark).await;
    let third = app.connect(ProviderType::Ses).await;
    rule(&app, &first, &[&second, &third], "wait").await;
    app.simulator()
        .set_fault(fault(Provider::Mailgun, FaultKind::Error));
    let to = addresses(20);
    let id = app.send(&message_to_all(&to)).await;
    app.drain().await;
    let outcomes = of(&[("UNAVAILABLE", 20), ("ACCEPTED", 20)]);
    assert_eq!(count_outcomes(&app, &id).await, outcomes);
    assert_eq!(calls(&app, ProviderType::Mailgun), 1);
    assert_eq!(calls(&app, ProviderType::Postmark), 1);
    for address in &to {
        assert_eq!(app.captured_once(address).provider, Provider::Postmark);
    }
    // The next account is of a type without batches.
    app.simulator()
        .set_fault(fault(Provider::Postmark, FaultKind::Throttle));
    let to: Vec<String> = (0..10).map(|nth| format!("s{nth}@example.org")).collect();
    app.send(&message_to_all(&to)).await;
    app.drain().await;
    for address in &to {
        assert_eq!(app.captured_once(address).provider, Provider::Ses);
    }
}

fn fault(provider: Provider, kind: FaultKind) -> Fault {
    Fault {
        provider: Some(provider),
        kind,
        rate: 1.0,
        latency_ms: 0,
        calls: FaultCalls::Send,
    }
}

/// Sends a batch whose response is lost, under a policy.
async fn lost(kind: ProviderType, policy: &str) -> (TestApp, Vec<String>, String) {
    let app = TestApp::builder()
        .setting("WAYPOST_PROVIDER_TIMEOUT", "1s")
        .start()
        .await;
    let account = app.connect(kind).await;
    rule(&app, &account, &[], policy).await;
    let to = twenty_with(&["timeout-once"]);
    let id = app.send(&message_to_all(&to)).await;
    app.drain().await;
    (app, to, id)
}

fn each_was_sent(app: &TestApp, to: &[String], copies: usize) {
    for address in to {
        assert_eq!(app.captured(address).len(), copies, "{address}");
    }
}

#[tokio::test]
async fn a_batch_whose_response_was_lost_waits_and_is_sent_once_more() {
    for kind in BATCHING {
        let (app, to, id) = lost(kind, "wait").await;
        assert_eq!(count(&app, "SENDING").await, 20, "{kind}");
        assert_eq!(
            count_outcomes(&app, &id).await,
            of(&[("UNKNOWN", 20)]),
            "{kind}"
        );
        each_was_sent(&app, &to, 1);
        // The searches show nothing yet.
        app.simulator().set_search_lag(Duration::from_secs(3_600));
        app.advance_and_drain(TimeDelta::minutes(16)).await;
        let outcomes = of(&[("UNKNOWN", 20), ("ACCEPTED", 20)]);
        assert_eq!(count_outcomes(&app, &id).await, outcomes, "{kind}");
        assert_eq!(calls(&app, kind), 21, "{kind}: alone from then on");
        each_was_sent(&app, &to, 2);
    }
}

#[tokio::test]
async fn a_batch_whose_response_was_lost_is_found_recipient_by_recipient() {
    for kind in [ProviderType::Postmark, ProviderType::Mailgun] {
        let (app, to, id) = lost(kind, "wait").await;
        app.simulator().set_search_lag(Duration::ZERO);
        app.advance(TimeDelta::seconds(10));
        let found = wait_within(RECOVERED_WITHIN, async || count(&app, "SENT").await == 20);
        assert!(found.await, "{kind}: {:?}", count_outcomes(&app, &id).await);
        each_was_sent(&app, &to, 1);
        for address in &to {
            let copy = app.captured_once(address);
            let named = format!(
                "SELECT provider_message_id FROM recipients WHERE message_id = '{id}' AND position = {}",
                copy.metadata["waypost_recipient"]
            );
            let theirs = copy.provider_message_id.trim_matches(['<', '>']);
            assert_eq!(app.value(&named).await.as_deref(), Some(theirs), "{kind}");
        }
        app.drain().await;
        assert_eq!(calls(&app, kind), 1, "{kind}");
    }
}

#[tokio::test]
async fn resend_and_fail_apply_to_each_recipient_of_a_batch() {
    for kind in BATCHING {
        let (app, to, id) = lost(kind, "resend").await;
        let outcomes = of(&[("UNKNOWN", 20), ("ACCEPTED", 20)]);
        assert_eq!(count_outcomes(&app, &id).await, outcomes, "{kind}");
        each_was_sent(&app, &to, 2);
        assert_eq!(count(&app, "SENT").await, 20, "{kind}");
    }
    let (app, to, id) = lost(ProviderType::Sendgrid, "fail").await;
    assert_eq!(count_outcomes(&app, &id).await, of(&[("UNKNOWN", 20)]));
    each_was_sent(&app, &to, 1);
    for recipient in app.recipients(&id).await {
        let error: &Value = &recipient["lastError"];
        assert_eq!(recipient["status"], "FAILED");
        assert!(error.as_str().unwrap().contains("may have taken"));
    }
}

#[tokio::test]
async fn a_worker_killed_during_a_batch_loses_no_recipient_and_explains_every_repeat() {
    let app = TestApp::builder().processes().private_redis().start().await;
    let (_api, _scheduler) = (app.spawn_api().await, app.spawn_scheduler());
    app.connect(ProviderType::Postmark).await;
    app.simulator().set_fault(Fault {
        latency_ms: 1_500,
        ..fault(Provider::Postmark, FaultKind::Latency)
    });
    let mut doomed = app.spawn_worker();
    let to = addresses(200);
    let id = app.send(&message_to_all(&to)).await;
    let open = "SELECT count(*) FROM send_attempts WHERE outcome IS NULL";
    wait_until("batches are open", async || number(&app, open).await == 200).await;
    doomed.kill().await;
    app.simulator().clear_faults();
    let _worker = app.spawn_worker();
    let done = wait_within(RECOVERED_WITHIN, async || app.outbox().await.is_empty()).await;
    assert!(done, "{:?}", count_outcomes(&app, &id).await);
    assert_eq!(count(&app, "SENT").await, 200);
    assert_eq!(number(&app, open).await, 0);
    let attempts = app.attempts(&id).await;
    for (position, address) in to.iter().enumerate() {
        let own = attempts
            .iter()
            .filter(|attempt| usize::try_from(attempt.position) == Ok(position));
        let of_outcome = |outcome: &str| {
            let own = own.clone();
            own.filter(|attempt| attempt.outcome.as_deref() == Some(outcome))
                .count()
        };
        let copies = app.captured(address).len();
        assert_eq!(of_outcome("ACCEPTED"), 1, "{address}");
        assert!(
            copies >= 1 && copies <= 1 + of_outcome("UNKNOWN"),
            "{address}"
        );
    }
}
