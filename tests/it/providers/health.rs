//! How accounts do at the moment.

use std::time::Duration;

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{Fault, FaultCalls, FaultKind, Provider};
use waypost_tests::{TestApp, message_to, wait_until, wait_within};

use super::quiet;

const HEALTH: &str = "/v1/providers/health";

async fn health(app: &TestApp, id: &str) -> Value {
    let one = app
        .get(&format!("/v1/providers/{id}/health"))
        .await
        .data(200);
    let all = app.get(HEALTH).await.data(200);
    let mut all = all.as_array().unwrap().iter();
    let same = all.find(|health| health["providerAccountId"] == id);
    assert_eq!(same.unwrap()["circuit"], one["circuit"]);
    one
}

fn failing(kind: FaultKind) -> Fault {
    Fault {
        provider: Some(Provider::SendGrid),
        kind,
        rate: 1.0,
        latency_ms: 0,
        calls: FaultCalls::Send,
    }
}

#[tokio::test]
async fn an_account_without_calls_is_healthy() {
    let app = quiet().await;
    let first = app.connect(ProviderType::Sendgrid).await;
    app.advance(TimeDelta::milliseconds(10));
    let second = app.connect(ProviderType::Postmark).await;
    let limits = json!({ "maxRatePerSecond": 14, "maxConcurrency": 3, "isActive": false });
    let path = format!("/v1/providers/{second}");
    app.patch(&path, &limits).await.data(200);
    let list = app.get(HEALTH).await.data(200);
    let list = list.as_array().unwrap();
    assert_eq!(list.len(), 2);
    let expected = json!({
        "providerAccountId": first,
        "providerType": "SENDGRID",
        "displayName": list[0]["displayName"],
        "isActive": true,
        "circuit": { "state": "CLOSED", "cause": null, "until": null },
        "throttledRatePerSecond": null,
        "sendingPausedReason": null,
        "failures": [],
        "calls": {
            "since": list[0]["calls"]["since"],
            "accepted": 0, "rejected": 0, "throttled": 0, "unavailable": 0, "unknown": 0, "pending": 0,
            "medianDurationMs": null, "p95DurationMs": null, "lastFailure": null,
        },
        "maxRatePerSecond": null,
        "maxConcurrency": null,
    });
    assert_eq!(list[0], expected);
    assert_eq!(list[1]["providerAccountId"], second.as_str());
    assert_eq!(list[1]["isActive"], false);
    assert_eq!(list[1]["maxRatePerSecond"], 14);
    assert_eq!(list[1]["maxConcurrency"], 3);
    let other = app.tenant("Other").await.caller;
    assert_eq!(other.get(HEALTH).await.data(200), json!([]));
    other
        .get(&format!("/v1/providers/{first}/health"))
        .await
        .expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn calls_are_counted_by_their_outcome_for_fifteen_minutes_and_tests_are_not() {
    let app = TestApp::start().await;
    let id = app.connect(ProviderType::Sendgrid).await;
    for nth in 0..7 {
        app.send_to(&format!("r{nth}@example.org")).await;
    }
    app.send_to("refuse@example.org").await;
    let mut test = message_to("test@example.org");
    test["test"] = json!(true);
    app.send(&test).await;
    app.drain().await;
    let calls = health(&app, &id).await["calls"].clone();
    assert_eq!(
        (&calls["accepted"], &calls["rejected"]),
        (&json!(7), &json!(1)),
        "{calls}"
    );
    let failure = &calls["lastFailure"];
    assert_eq!(failure["outcome"], "REJECTED", "{failure}");
    assert!(
        failure["statusCode"].is_i64() && failure["reason"].is_string(),
        "{failure}"
    );
    let durations = [&calls["medianDurationMs"], &calls["p95DurationMs"]];
    let [median, p95] = durations.map(|duration| duration.as_u64().unwrap());
    assert!(median <= p95, "{calls}");
    app.advance(TimeDelta::minutes(14));
    app.send_to("late@example.org").await;
    app.drain().await;
    assert_eq!(health(&app, &id).await["calls"]["accepted"], 8);
    app.advance(TimeDelta::minutes(2));
    let calls = health(&app, &id).await["calls"].clone();
    assert_eq!(
        (&calls["accepted"], &calls["rejected"]),
        (&json!(1), &json!(0)),
        "{calls}"
    );
    assert_eq!(calls["lastFailure"], Value::Null);
}

#[tokio::test]
async fn an_open_circuit_is_shown_with_its_cause_until_calls_succeed_again() {
    let app = TestApp::builder()
        .setting("WAYPOST_WORKER_CONCURRENCY", "4")
        .start()
        .await;
    let id = app.connect(ProviderType::Sendgrid).await;
    app.simulator().set_fault(failing(FaultKind::Error));
    for nth in 0..30 {
        app.send_to(&format!("r{nth}@example.org")).await;
    }
    app.drain().await;
    wait_until("the circuit is shown as open", async || {
        health(&app, &id).await["circuit"]["state"] == "OPEN"
    })
    .await;
    let shown = health(&app, &id).await;
    assert_eq!(shown["circuit"]["cause"], "CALLS_FAILED");
    assert!(shown["circuit"]["until"].is_string(), "{shown}");
    assert!(
        shown["calls"]["unavailable"].as_u64().unwrap() >= 5,
        "{shown}"
    );
    wait_until("the failure is reported", async || {
        health(&app, &id).await["failures"][0]["cause"] == "CALLS_FAILED"
    })
    .await;
    app.simulator().clear_faults();
    wait_until("all are sent", async || {
        app.advance_and_drain(TimeDelta::minutes(2)).await;
        app.outbox().await.is_empty()
    })
    .await;
    wait_until("the circuit is shown as closed", async || {
        let shown = health(&app, &id).await;
        shown["circuit"]["state"] == "CLOSED" && shown["failures"] == json!([])
    })
    .await;
}

#[tokio::test]
async fn an_account_that_cannot_send_shows_why() {
    let app = TestApp::start().await;
    let id = app.connect(ProviderType::Sendgrid).await;
    app.simulator().set_fault(failing(FaultKind::Suspended));
    let message = app.send_to("ada@example.org").await;
    app.drain().await;
    wait_until("the account is paused", async || {
        !health(&app, &id).await["sendingPausedReason"].is_null()
    })
    .await;
    let shown = health(&app, &id).await;
    assert_eq!(shown["failures"][0]["cause"], "ACCOUNT_UNUSABLE", "{shown}");
    assert_eq!(shown["circuit"]["cause"], "ACCOUNT_UNUSABLE", "{shown}");
    app.simulator().clear_faults();
    wait_until("the message is sent", async || {
        app.advance_and_drain(TimeDelta::minutes(6)).await;
        app.status(&message).await == "SENT"
    })
    .await;
}

#[tokio::test]
async fn the_rate_of_a_throttled_account_is_shown() {
    let app = TestApp::start().await;
    let id = app.connect(ProviderType::Sendgrid).await;
    app.simulator().set_fault(failing(FaultKind::Throttle));
    for nth in 0..30 {
        app.send_to(&format!("r{nth}@example.org")).await;
    }
    // A worker tells its rate every 200 ms, and the rate counts for five seconds: the clock rests meanwhile.
    wait_until("the rate is shown", async || {
        app.advance(TimeDelta::minutes(1));
        let is_shown = async || health(&app, &id).await["throttledRatePerSecond"].is_number();
        wait_within(Duration::from_secs(2), is_shown).await
    })
    .await;
    let shown = health(&app, &id).await;
    assert!(shown["calls"]["throttled"].as_u64().unwrap() > 0, "{shown}");
    app.simulator().clear_faults();
    wait_until("all are sent", async || {
        app.advance_and_drain(TimeDelta::minutes(2)).await;
        app.outbox().await.is_empty()
    })
    .await;
}

#[tokio::test]
async fn only_the_newest_calls_of_a_busy_account_are_counted() {
    let app = quiet().await;
    let id = app.connect(ProviderType::Sendgrid).await;
    let organization = app.organization_id();
    let now = app.get(HEALTH).await.data(200)[0]["calls"]["since"].clone();
    let since = now.as_str().unwrap();
    // A call each 100 ms from five minutes on, each a millisecond longer than the one before.
    app.execute(&format!(
        "INSERT INTO send_attempts (message_id, id, organization_id, position, provider_account_id,
                                    started_at, finished_at, outcome)
         SELECT waypost_uuid_new(t.at), waypost_uuid_new(t.at), '{organization}', 0, '{id}', t.at,
                t.at + n * interval '1 ms', CASE WHEN n % 10 = 0 THEN 'THROTTLED' ELSE 'ACCEPTED' END::attempt_outcome
         FROM generate_series(1, 1500) n
         CROSS JOIN LATERAL (SELECT '{since}'::timestamptz + interval '5 min' + n * interval '100 ms' AS at) t"
    ))
    .await;
    let shown = health(&app, &id).await;
    let calls = &shown["calls"];
    assert_eq!(calls["throttled"], 100, "{calls}");
    assert_eq!(calls["accepted"], 900, "{calls}");
    assert_eq!(calls["medianDurationMs"], 1_000, "{calls}");
    assert_eq!(calls["p95DurationMs"], 1_450, "{calls}");
    let counted_since = calls["since"].as_str().unwrap();
    assert!(
        counted_since > since,
        "{counted_since} is later than {since}"
    );
}
