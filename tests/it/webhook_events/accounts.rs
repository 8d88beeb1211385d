//! Events of provider accounts that fail, and that recover.

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{DEFAULT_SES_SECRET, Fault, FaultCalls, FaultKind, Provider};
use waypost_tests::{Receiver, TestApp, credentials, wait_until, webhook_example};

use super::{counts, fields, first, number, said, subscribe};

const BOTH: [&str; 2] = ["PROVIDER_FAILING", "PROVIDER_RECOVERED"];

/// How often a failure began and ended.
fn changes(receiver: &Receiver) -> (usize, usize) {
    let counts = counts(receiver);
    let of = |event: &str| counts.get(event).copied().unwrap_or_default();
    (of(BOTH[0]), of(BOTH[1]))
}

async fn until(receiver: &Receiver, wanted: (usize, usize)) {
    wait_until("the account is announced", async || {
        changes(receiver) == wanted
    })
    .await;
}

fn expected(account: &str, kind: ProviderType, cause: &str) -> Value {
    json!({ "providerAccountId": account, "providerType": kind.as_str(), "cause": cause })
}

/// Compares what an event says with some of its fields.
fn check(body: &Value, expected: &Value) {
    let said = said(body);
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&said[name], value, "{body}");
    }
    assert!(said["failingSince"].as_str().unwrap().ends_with('Z'));
}

#[tokio::test]
async fn an_open_circuit_is_announced_once_however_many_workers_open_it() {
    let app = TestApp::start().await;
    app.start_worker();
    app.start_worker();
    let (receiver, other) = (Receiver::start().await, Receiver::start().await);
    subscribe(&app, &receiver, &BOTH).await;
    subscribe(&app, &other, &["PROVIDER_RECOVERED"]).await;
    let account = app.connect(ProviderType::Mailgun).await;
    app.simulator().set_fault(Fault {
        provider: Some(Provider::Mailgun),
        kind: FaultKind::Error,
        rate: 1.0,
        latency_ms: 0,
        calls: FaultCalls::Send,
    });
    for nth in 0..60 {
        app.send_to(&format!("r{nth}@example.org")).await;
    }
    app.drain().await;
    until(&receiver, (1, 0)).await;
    let wanted = expected(&account, ProviderType::Mailgun, "CALLS_FAILED");
    check(&first(&receiver, "PROVIDER_FAILING"), &wanted);
    // Trials that fail belong to the same failure.
    for _ in 0..3 {
        app.advance_and_drain(TimeDelta::minutes(6)).await;
    }
    let reported = "SELECT count(*) FROM provider_account_failures
                    WHERE is_failing AND changed_at > failing_since + interval '5 min'";
    wait_until("a failed trial is reported", async || {
        number(&app, reported).await == 1
    })
    .await;
    app.drain().await;
    assert_eq!(changes(&receiver), (1, 0));
    app.simulator().clear_faults();
    wait_until("all are sent", async || {
        app.advance_and_drain(TimeDelta::minutes(2)).await;
        app.outbox().await.is_empty()
    })
    .await;
    until(&receiver, (1, 1)).await;
    check(&first(&receiver, "PROVIDER_RECOVERED"), &wanted);
    until(&other, (0, 1)).await;
    // The next opening is another failure.
    app.simulator().set_fault(Fault {
        provider: Some(Provider::Mailgun),
        kind: FaultKind::Error,
        rate: 1.0,
        latency_ms: 0,
        calls: FaultCalls::Send,
    });
    for nth in 60..80 {
        app.send_to(&format!("r{nth}@example.org")).await;
    }
    app.drain().await;
    until(&receiver, (2, 1)).await;
    app.leave_work();
}

#[tokio::test]
async fn an_account_that_cannot_send_is_announced_with_the_reason_until_it_is_repaired() {
    let app = TestApp::start().await;
    app.start_worker();
    let receiver = Receiver::start().await;
    subscribe(&app, &receiver, &BOTH).await;
    let mut forbidden = credentials(ProviderType::Ses);
    forbidden["accessKeyId"] = json!("AKIAnoscope");
    let account = app.connect_with(ProviderType::Ses, &forbidden).await;
    for nth in 0..20 {
        app.send_to(&format!("r{nth}@example.org")).await;
    }
    app.drain().await;
    until(&receiver, (1, 0)).await;
    let failing = first(&receiver, "PROVIDER_FAILING");
    check(
        &failing,
        &expected(&account, ProviderType::Ses, "ACCOUNT_UNUSABLE"),
    );
    assert_eq!(
        fields(&failing),
        fields(&webhook_example("PROVIDER_FAILING"))
    );
    let path = format!("/v1/providers/{account}");
    let shown = app.get(&path).await.data(200);
    assert_eq!(failing["data"]["reason"], shown["sendingPausedReason"]);
    assert_eq!(failing["data"]["failingSince"], shown["sendingPausedSince"]);
    assert_eq!(failing["data"]["displayName"], shown["displayName"]);
    app.advance(TimeDelta::seconds(1));
    let repair = json!({ "credentials": credentials(ProviderType::Ses) });
    app.patch(&path, &repair).await.data(200);
    // A worker that has not heard of the repair yet puts its mail off once more.
    wait_until("all are sent", async || {
        app.advance(TimeDelta::seconds(1));
        app.outbox().await.is_empty()
    })
    .await;
    until(&receiver, (1, 1)).await;
    let recovered = first(&receiver, "PROVIDER_RECOVERED");
    check(
        &recovered,
        &expected(&account, ProviderType::Ses, "ACCOUNT_UNUSABLE"),
    );
    assert_eq!(
        fields(&recovered),
        fields(&webhook_example("PROVIDER_RECOVERED"))
    );
    assert_eq!(
        recovered["data"]["failingSince"],
        shown["sendingPausedSince"]
    );
    app.drain().await;
}

#[tokio::test]
async fn credentials_that_a_validation_refuses_are_announced_once() {
    let app = TestApp::start().await;
    let receiver = Receiver::start().await;
    subscribe(&app, &receiver, &BOTH).await;
    let account = app.connect(ProviderType::Ses).await;
    let path = format!("/v1/providers/{account}");
    let validate = format!("{path}/validate");
    app.caller().post_empty(&validate).await.expect(200);
    app.simulator()
        .register_ses_credential("AKIAGOOD", "rotated-meanwhile");
    for _ in 0..2 {
        let verdict = app.caller().post_empty(&validate).await.expect(200);
        assert_eq!(verdict["valid"], false);
    }
    app.drain().await;
    assert_eq!(changes(&receiver), (1, 0));
    let wanted = expected(&account, ProviderType::Ses, "INVALID_CREDENTIALS");
    check(&first(&receiver, "PROVIDER_FAILING"), &wanted);
    app.simulator()
        .register_ses_credential("AKIAGOOD", DEFAULT_SES_SECRET);
    for _ in 0..2 {
        let verdict = app.caller().post_empty(&validate).await.expect(200);
        assert_eq!(verdict["valid"], true);
    }
    app.drain().await;
    assert_eq!(changes(&receiver), (1, 1));
    check(&first(&receiver, "PROVIDER_RECOVERED"), &wanted);
    // An account that its owner switches off and on has not failed.
    for is_active in [false, true] {
        app.patch(&path, &json!({ "isActive": is_active }))
            .await
            .data(200);
    }
    app.drain().await;
    assert_eq!(changes(&receiver), (1, 1));
}

#[tokio::test]
async fn nothing_is_written_for_an_organization_that_asks_for_no_account_events() {
    let app = TestApp::start().await;
    let receiver = Receiver::start().await;
    subscribe(&app, &receiver, &["COMPLAINED"]).await;
    let account = app.connect(ProviderType::Ses).await;
    app.simulator()
        .register_ses_credential("AKIAGOOD", "rotated-meanwhile");
    let validate = format!("/v1/providers/{account}/validate");
    app.caller().post_empty(&validate).await.expect(200);
    assert_eq!(
        number(&app, "SELECT count(*) FROM webhook_deliveries").await,
        0
    );
}
