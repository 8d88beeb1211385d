//! Sending: the effect of each kind of a provider's response, and of each kind of
//! silence, on a recipient. The test moves the time.

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::Fault;
use waypost_tests::{TestApp, message_to, wait_until};

/// Longer than any wait between two attempts, and than any requested wait.
const LONGEST_WAIT: TimeDelta = TimeDelta::minutes(31);

/// Without SES in tests that move the time by more than a few minutes: its signatures
/// contain the time, and the simulator uses the real time.
const TIMELESS: [ProviderType; 4] = [
    ProviderType::Sendgrid,
    ProviderType::Postmark,
    ProviderType::Mailgun,
    ProviderType::Smtp,
];

async fn with_short_waits() -> TestApp {
    TestApp::builder()
        .setting("WAYPOST_PROVIDER_TIMEOUT", "1s")
        .start()
        .await
}

fn last_error(recipient: &Value) -> &str {
    recipient["lastError"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_throttled_recipient_is_sent_after_the_wait_and_uses_no_attempt() {
    for kind in ProviderType::ALL {
        let app = TestApp::start().await;
        app.connect(kind).await;
        let id = app.send_to("throttle-once@example.org").await;
        app.drain().await;
        assert_eq!(app.status(&id).await, "QUEUED", "{kind}");
        assert_eq!(app.events(&id).await, ["QUEUED", "DEFERRED"], "{kind}");
        assert_eq!(app.recipient(&id).await["attempts"], 0, "{kind}");
        app.advance_and_drain(TimeDelta::minutes(1)).await;
        assert_eq!(app.status(&id).await, "SENT", "{kind}");
        assert_eq!(
            app.events(&id).await,
            ["QUEUED", "DEFERRED", "SENT"],
            "{kind}"
        );
        assert_eq!(app.outcomes(&id).await, ["THROTTLED", "ACCEPTED"], "{kind}");
        let recipient = app.recipient(&id).await;
        assert_eq!(
            (&recipient["attempts"], &recipient["lastError"]),
            (&json!(1), &Value::Null),
            "{kind}"
        );
        app.captured_once("throttle-once@example.org");
    }
}

#[tokio::test]
async fn a_recipient_that_is_always_throttled_fails_after_a_day() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Mailgun).await;
    let id = app.send_to("throttle@example.org").await;
    app.drain().await;
    for _ in 0..3 {
        app.advance_and_drain(LONGEST_WAIT).await;
    }
    assert_eq!(app.status(&id).await, "QUEUED");
    assert_eq!(app.recipient(&id).await["attempts"], 0);
    assert_eq!(app.outcomes(&id).await, ["THROTTLED"; 4]);
    app.advance_and_drain(TimeDelta::hours(24)).await;
    assert_eq!(app.status(&id).await, "FAILED");
    let events = app.events(&id).await;
    assert_eq!(events.last().map(String::as_str), Some("DROPPED"));
    assert!(!events.contains(&"SENT".to_owned()), "{events:?}");
    assert_eq!(app.simulator().captured_count(), 0);
    assert!(app.outbox().await.is_empty());
}

#[tokio::test]
async fn a_providers_failure_is_retried_until_it_succeeds() {
    for kind in ProviderType::ALL {
        let app = TestApp::start().await;
        app.connect(kind).await;
        let id = app.send_to("flaky@example.org").await;
        app.drain().await;
        assert_eq!(app.status(&id).await, "QUEUED", "{kind}");
        let recipient = app.recipient(&id).await;
        assert_eq!(recipient["attempts"], 1, "{kind}");
        let code = if kind == ProviderType::Smtp {
            "451"
        } else {
            "500"
        };
        assert!(last_error(&recipient).contains(code), "{kind}: {recipient}");
        app.advance_and_drain(TimeDelta::minutes(1)).await;
        assert_eq!(app.status(&id).await, "SENT", "{kind}");
        assert_eq!(
            app.outcomes(&id).await,
            ["UNAVAILABLE", "ACCEPTED"],
            "{kind}"
        );
        assert_eq!(app.recipient(&id).await["attempts"], 2, "{kind}");
        app.captured_once("flaky@example.org");
    }
}

#[tokio::test]
async fn a_recipient_of_a_failing_provider_fails_after_a_day() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    // A successful message beside it keeps the account's circuit closed: Redis counts
    // calls by its own clock, for which all this takes a moment.
    let go_well = async || {
        app.send_to("ada@example.org").await;
        app.send_to("bob@example.org").await;
    };
    go_well().await;
    let id = app.send_to("error@example.org").await;
    app.drain().await;
    for tries in 2..6 {
        go_well().await;
        app.advance_and_drain(LONGEST_WAIT).await;
        assert_eq!(app.recipient(&id).await["attempts"], tries);
    }
    assert_eq!(app.status(&id).await, "QUEUED");
    app.advance_and_drain(TimeDelta::hours(24)).await;
    assert_eq!(app.status(&id).await, "FAILED");
    let events = app.events(&id).await;
    assert_eq!(events.first().map(String::as_str), Some("QUEUED"));
    assert_eq!(events.last().map(String::as_str), Some("DROPPED"));
    assert_eq!(
        events.iter().filter(|event| *event == "DEFERRED").count(),
        5
    );
    app.advance_and_drain(TimeDelta::hours(48)).await;
    assert_eq!(
        app.outcomes(&id).await.len(),
        6,
        "a failed message is left alone"
    );
}

#[tokio::test]
async fn nothing_is_retried_before_its_time() {
    let app = TestApp::builder()
        .setting("WAYPOST_RETRY_FIRST", "1h")
        .setting("WAYPOST_RETRY_LONGEST", "1h")
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    let id = app.send_to("error@example.org").await;
    app.drain().await;
    let due_at = app
        .value("SELECT min(next_attempt_at) FROM recipients")
        .await
        .unwrap();
    let due_at = chrono::DateTime::parse_from_str(&due_at, "%Y-%m-%d %H:%M:%S%.f%#z")
        .unwrap()
        .to_utc();
    let wait = due_at - app.clock.now();
    assert!(
        wait > TimeDelta::zero() && wait <= TimeDelta::hours(1),
        "{wait}"
    );
    app.advance_and_drain(wait - TimeDelta::milliseconds(1))
        .await;
    assert_eq!(app.outcomes(&id).await.len(), 1);
    app.advance_and_drain(TimeDelta::milliseconds(2)).await;
    assert_eq!(app.outcomes(&id).await.len(), 2);
}

#[tokio::test]
async fn a_rejected_recipient_fails_at_once_and_the_reason_contains_no_address() {
    for kind in ProviderType::ALL {
        let app = TestApp::start().await;
        app.connect(kind).await;
        let id = app.send_to("refuse+someone@example.org").await;
        app.drain().await;
        assert_eq!(app.status(&id).await, "FAILED", "{kind}");
        assert_eq!(app.events(&id).await, ["QUEUED", "DROPPED"], "{kind}");
        assert_eq!(app.outcomes(&id).await, ["REJECTED"], "{kind}");
        let recipient = app.recipient(&id).await;
        assert_eq!(recipient["attempts"], 1, "{kind}");
        assert!(!last_error(&recipient).is_empty(), "{kind}: {recipient}");
        assert!(
            !last_error(&recipient).contains("someone"),
            "{kind}: {recipient}"
        );
        let kept = app
            .value("SELECT string_agg(coalesce(data::text, ''), ' ') FROM events")
            .await
            .unwrap();
        assert!(!kept.contains("someone"), "{kind}: {kept}");
        assert_eq!(app.simulator().captured_count(), 0, "{kind}");
    }
}

#[tokio::test]
async fn after_a_lost_response_the_worker_waits_for_evidence_and_then_sends_once_more() {
    for kind in TIMELESS {
        let app = with_short_waits().await;
        app.connect(kind).await;
        let id = app.send_to("timeout-once@example.org").await;
        app.drain().await;
        assert_eq!(app.status(&id).await, "SENDING", "{kind}");
        assert_eq!(app.events(&id).await, ["QUEUED"], "{kind}");
        assert_eq!(app.outcomes(&id).await, ["UNKNOWN"], "{kind}");
        assert_eq!(
            app.captured("timeout-once@example.org").len(),
            1,
            "{kind}: the provider took it"
        );
        app.advance_and_drain(TimeDelta::minutes(14)).await;
        assert_eq!(app.outcomes(&id).await, ["UNKNOWN"], "{kind}");
        app.advance_and_drain(TimeDelta::minutes(2)).await;
        assert_eq!(app.status(&id).await, "SENT", "{kind}");
        assert_eq!(app.events(&id).await, ["QUEUED", "SENT"], "{kind}");
        assert_eq!(app.outcomes(&id).await, ["UNKNOWN", "ACCEPTED"], "{kind}");
        assert_eq!(app.captured("timeout-once@example.org").len(), 2, "{kind}");
    }
}

async fn assert_two_lost_responses_fail_it(local: &str) {
    for kind in TIMELESS {
        let app = with_short_waits().await;
        app.connect(kind).await;
        let address = format!("{local}@example.org");
        let id = app.send_to(&address).await;
        app.drain().await;
        assert_eq!(app.status(&id).await, "SENDING", "{kind}");
        app.advance_and_drain(TimeDelta::minutes(16)).await;
        assert_eq!(app.status(&id).await, "FAILED", "{kind}");
        assert_eq!(app.events(&id).await, ["QUEUED", "DROPPED"], "{kind}");
        assert_eq!(app.outcomes(&id).await, ["UNKNOWN", "UNKNOWN"], "{kind}");
        app.advance_and_drain(TimeDelta::hours(48)).await;
        assert_eq!(
            app.captured(&address).len(),
            2,
            "{kind}: never a third copy"
        );
    }
}

#[tokio::test]
async fn a_second_timeout_fails_the_recipient() {
    assert_two_lost_responses_fail_it("timeout").await;
}

#[tokio::test]
async fn a_reset_connection_is_a_lost_response_too() {
    assert_two_lost_responses_fail_it("reset").await;
}

#[tokio::test]
async fn a_lost_response_of_ses_is_unknown_too() {
    let app = with_short_waits().await;
    app.connect(ProviderType::Ses).await;
    let ids = [
        app.send_to("timeout@example.org").await,
        app.send_to("reset@example.org").await,
    ];
    app.drain().await;
    for id in ids {
        assert_eq!(app.status(&id).await, "SENDING");
        assert_eq!(app.outcomes(&id).await, ["UNKNOWN"]);
    }
}

#[tokio::test]
async fn one_recipients_failure_does_not_affect_the_others() {
    let app = with_short_waits().await;
    app.connect(ProviderType::Mailgun).await;
    let mut message = message_to("");
    message["to"] = json!([
        "a@example.org",
        "refuse@example.org",
        "timeout-once@example.org",
        "flaky@example.org",
        "b@example.org"
    ]);
    let id = app.send(&message).await;
    app.drain().await;
    let statuses = async || -> Vec<Value> {
        app.recipients(&id)
            .await
            .iter()
            .map(|one| one["status"].clone())
            .collect()
    };
    assert_eq!(
        statuses().await,
        ["SENT", "FAILED", "SENDING", "QUEUED", "SENT"]
    );
    assert_eq!(app.status(&id).await, "QUEUED");
    app.advance_and_drain(TimeDelta::minutes(16)).await;
    assert_eq!(statuses().await, ["SENT", "FAILED", "SENT", "SENT", "SENT"]);
    assert_eq!(app.status(&id).await, "SENT");
    app.captured_once("a@example.org");
    app.captured_once("b@example.org");
}

#[tokio::test]
async fn a_message_whose_account_is_removed_uses_another() {
    let app = TestApp::builder().without_worker().start().await;
    let first = app.connect(ProviderType::Sendgrid).await;
    app.advance(TimeDelta::milliseconds(10));
    let second = app.connect(ProviderType::Mailgun).await;
    let id = app.send_to("a@example.org").await;
    app.delete(&format!("/v1/providers/{first}"))
        .await
        .expect(200);
    app.start_worker();
    app.drain().await;
    assert_eq!(
        app.captured_once("a@example.org").provider.name(),
        "MAILGUN"
    );
    let recipient = app.recipient(&id).await;
    assert_eq!(
        (&recipient["status"], &recipient["providerAccountId"]),
        (&json!("SENT"), &json!(second))
    );
}

#[tokio::test]
async fn a_message_whose_account_is_deactivated_uses_another() {
    let app = TestApp::builder().without_worker().start().await;
    let first = app.connect(ProviderType::Sendgrid).await;
    app.advance(TimeDelta::milliseconds(10));
    app.connect(ProviderType::Postmark).await;
    let id = app.send_to("a@example.org").await;
    app.patch(
        &format!("/v1/providers/{first}"),
        &json!({ "isActive": false }),
    )
    .await
    .data(200);
    app.start_worker();
    app.drain().await;
    assert_eq!(
        app.captured_once("a@example.org").provider.name(),
        "POSTMARK"
    );
    assert_eq!(app.status(&id).await, "SENT");
}

#[tokio::test]
async fn a_message_never_uses_an_account_with_its_domain_unverified() {
    let app = TestApp::builder()
        .without_worker()
        .setting("WAYPOST_RETRY_LONGEST", "1s")
        .start()
        .await;
    let first = app.connect(ProviderType::Sendgrid).await;
    app.advance(TimeDelta::milliseconds(10));
    let other = json!({ "apiKey": "good-key", "domain": "other.example" });
    app.connect_with(ProviderType::Mailgun, &other).await;
    app.advance(TimeDelta::milliseconds(10));
    app.connect(ProviderType::Postmark).await;
    let id = app.send_to("a@example.org").await;
    app.delete(&format!("/v1/providers/{first}"))
        .await
        .expect(200);
    app.start_worker();
    // The first remaining account has another domain and is skipped.
    sent_in_the_end(&app, &id).await;
    assert_eq!(
        app.captured_once("a@example.org").provider.name(),
        "POSTMARK"
    );
}

/// Workers cache accounts for a moment of real time: the test moves the clock until a
/// retry succeeds.
async fn sent_in_the_end(app: &TestApp, id: &str) {
    wait_until("the message is sent", async || {
        app.advance_and_drain(TimeDelta::seconds(2)).await;
        app.status(id).await == "SENT"
    })
    .await;
}

#[tokio::test]
async fn without_any_active_account_a_message_waits_for_one() {
    let app = TestApp::builder()
        .without_worker()
        .setting("WAYPOST_RETRY_LONGEST", "1s")
        .start()
        .await;
    let account = app.connect(ProviderType::Sendgrid).await;
    let path = format!("/v1/providers/{account}");
    let id = app.send_to("a@example.org").await;
    app.patch(&path, &json!({ "isActive": false }))
        .await
        .data(200);
    app.start_worker();
    app.drain().await;
    assert_eq!(app.status(&id).await, "QUEUED");
    assert_eq!(app.simulator().captured_count(), 0);
    app.patch(&path, &json!({ "isActive": true }))
        .await
        .data(200);
    sent_in_the_end(&app, &id).await;
    app.captured_once("a@example.org");
}

#[tokio::test]
async fn a_message_that_no_account_accepts_fails_after_a_day() {
    let app = TestApp::builder().without_worker().start().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    let id = app.send_to("a@example.org").await;
    app.delete(&format!("/v1/providers/{account}"))
        .await
        .expect(200);
    app.start_worker();
    app.drain().await;
    app.advance_and_drain(TimeDelta::hours(23)).await;
    assert_eq!(app.status(&id).await, "QUEUED");
    app.advance_and_drain(TimeDelta::hours(2)).await;
    app.advance_and_drain(TimeDelta::hours(2)).await;
    assert_eq!(app.status(&id).await, "FAILED");
    assert_eq!(
        app.events(&id).await.last().map(String::as_str),
        Some("DROPPED")
    );
}

#[tokio::test]
async fn a_provider_that_refuses_connections_is_retried() {
    for kind in TIMELESS {
        let mut app = TestApp::builder().without_worker().start().await;
        app.connect(kind).await;
        let id = app.send_to("a@example.org").await;
        app.stop_simulator().await;
        app.start_worker();
        app.drain().await;
        assert_eq!(app.status(&id).await, "QUEUED", "{kind}");
        assert_eq!(app.outcomes(&id).await, ["UNAVAILABLE"], "{kind}");
        assert_eq!(app.recipient(&id).await["attempts"], 1, "{kind}");
        app.resume_simulator().await;
        app.advance_and_drain(TimeDelta::minutes(2)).await;
        assert_eq!(app.status(&id).await, "SENT", "{kind}");
        app.captured_once("a@example.org");
    }
}

#[tokio::test]
async fn the_relay_finds_work_that_was_never_in_redis() {
    let app = TestApp::builder()
        .without_worker()
        .private_redis()
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    let id = app.send_to("a@example.org").await;
    app.redis.as_ref().unwrap().flush().await;
    app.start_worker();
    // The relay does not repeat a push for a while.
    app.advance_and_drain(TimeDelta::minutes(1)).await;
    assert_eq!(app.status(&id).await, "SENT");
    app.captured_once("a@example.org");
}

#[tokio::test]
async fn a_message_shows_sending_during_a_slow_call() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Postmark).await;
    app.simulator().set_fault(Fault::slow_sends(1_500));
    let total = async |status: &str| {
        let path = format!("/v1/messages?status={status}");
        app.get(&path).await.expect(200)["pagination"]["total"].clone()
    };
    let mut to_two = message_to("one@example.org");
    to_two["to"] = json!(["one@example.org", "two@example.org"]);
    let ids = [
        app.send_to("only@example.org").await,
        app.send(&to_two).await,
    ];
    for id in &ids {
        wait_until("it is being sent", async || {
            app.status(id).await == "SENDING"
        })
        .await;
    }
    assert_eq!(total("SENDING").await, 2);
    assert_eq!(total("QUEUED").await, 0);
    app.drain().await;
    for id in &ids {
        assert_eq!(app.status(id).await, "SENT");
    }
    assert_eq!(total("SENDING").await, 0);
    assert_eq!(total("SENT").await, 2);
}
