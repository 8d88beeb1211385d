//! A gateway in front of the provider that responds with 502 or 504 after the provider
//! accepted the message: no recipient gets it twice unless the rule allows it.

use chrono::TimeDelta;
use serde_json::json;
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{FaultKind, Provider};
use waypost_tests::{HTTP_PROVIDERS, TestApp, message_to};

use super::{FIRST, Pair, fault, rule};

async fn alone_under(kind: ProviderType, policy: &str) -> TestApp {
    let app = TestApp::start().await;
    let account = app.connect(kind).await;
    rule(&app, &account, &[], &json!({ "onUnknown": policy })).await;
    app
}

#[tokio::test]
async fn a_gateways_page_after_the_message_was_accepted_is_a_lost_response() {
    // SES rejects requests dated more than a quarter of an hour ahead.
    for kind in HTTP_PROVIDERS {
        let app = alone_under(kind, "wait").await;
        let id = app.send_to("gateway-once@example.org").await;
        app.drain().await;
        assert_eq!(app.status(&id).await, "SENDING", "{kind}");
        assert_eq!(app.outcomes(&id).await, ["UNKNOWN"], "{kind}");
        app.captured_once("gateway-once@example.org");
        if kind != ProviderType::Ses {
            app.advance_and_drain(TimeDelta::minutes(16)).await;
            assert_eq!(app.status(&id).await, "SENT", "{kind}");
            assert_eq!(app.outcomes(&id).await, ["UNKNOWN", "ACCEPTED"], "{kind}");
            assert_eq!(app.captured("gateway-once@example.org").len(), 2, "{kind}");
        }

        let app = alone_under(kind, "resend").await;
        let id = app.send_to("gateway-once@example.org").await;
        app.drain().await;
        assert_eq!(app.status(&id).await, "SENT", "{kind}");
        assert_eq!(app.outcomes(&id).await, ["UNKNOWN", "ACCEPTED"], "{kind}");
        assert_eq!(app.captured("gateway-once@example.org").len(), 2, "{kind}");

        let app = alone_under(kind, "fail").await;
        let id = app.send_to("gateway-once@example.org").await;
        app.drain().await;
        assert_eq!(app.status(&id).await, "FAILED", "{kind}");
        assert_eq!(app.outcomes(&id).await, ["UNKNOWN"], "{kind}");
        app.advance_and_drain(TimeDelta::hours(25)).await;
        app.captured_once("gateway-once@example.org");
    }
}

#[tokio::test]
async fn after_a_gateways_page_wait_and_fail_use_no_other_account() {
    for policy in ["wait", "fail"] {
        let pair = Pair::with(TestApp::start().await, &json!({ "onUnknown": policy })).await;
        let app = &pair.app;
        app.simulator().set_fault(fault(FIRST, FaultKind::Gateway));
        let id = app.send_to("a@example.org").await;
        app.drain().await;
        app.advance_and_drain(TimeDelta::minutes(14)).await;
        assert_eq!(app.captured_once("a@example.org").provider, FIRST);
        assert_eq!(app.outcomes(&id).await, ["UNKNOWN"], "{policy}");
        app.simulator().clear_faults();
        app.advance_and_drain(TimeDelta::minutes(31)).await;
    }
}

#[tokio::test]
async fn a_batch_behind_a_gateway_is_sent_once_per_call_with_an_unknown_outcome() {
    for kind in [
        ProviderType::Sendgrid,
        ProviderType::Postmark,
        ProviderType::Mailgun,
    ] {
        let app = alone_under(kind, "fail").await;
        let provider = Provider::parse(kind.as_str()).unwrap();
        app.simulator()
            .set_fault(fault(provider, FaultKind::Gateway));
        let to: Vec<String> = (0..20).map(|nth| format!("r{nth}@example.org")).collect();
        let mut message = message_to("");
        message["to"] = json!(to);
        let id = app.send(&message).await;
        app.drain().await;
        assert_eq!(app.outcomes(&id).await, ["UNKNOWN"; 20], "{kind}");
        app.simulator().clear_faults();
        app.advance_and_drain(TimeDelta::hours(25)).await;
        for address in &to {
            app.captured_once(address);
        }
    }
}
