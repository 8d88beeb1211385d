//! Endpoints that fail: retried on a schedule, paused, deactivated.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use waypost_tests::{Answer, Receiver, TestApp, wait_until};

use super::telling::hmac;
use super::{Endpoint, audit, calls, change, deliveries, is_active, number, sending, subscribe};

/// One delivery whose first attempt has failed.
async fn failed_once(answer: Answer) -> (TestApp, Receiver, Endpoint) {
    let app = sending().await;
    let receiver = Receiver::start().await;
    receiver.answer(answer);
    let endpoint = subscribe(&app, &receiver, &["SENT"]).await;
    app.send_to("ada@example.org").await;
    app.drain().await;
    assert_eq!(deliveries(&app, "PENDING").await, (1, 1));
    (app, receiver, endpoint)
}

/// How long the pending delivery still has to wait, in seconds.
async fn wait(app: &TestApp) -> f64 {
    let due =
        "SELECT to_json(next_attempt_at)#>>'{}' FROM webhook_deliveries WHERE status = 'PENDING'";
    let due = app.value(due).await.unwrap();
    let due: DateTime<Utc> = due.parse().unwrap();
    (due - app.clock.now()).as_seconds_f64()
}

#[tokio::test]
async fn a_delivery_has_ten_attempts_on_its_schedule_each_with_a_new_signature() {
    let (app, receiver, endpoint) = failed_once(Answer::Status(500)).await;
    let steps = [
        5.0, 300.0, 1_800.0, 7_200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 86_400.0,
    ];
    for (made, step) in (1..).zip(steps) {
        assert_eq!(receiver.count(), made);
        let wait = wait(&app).await;
        assert!(
            (0.9 * step..=1.1 * step).contains(&wait),
            "{wait} for {step}"
        );
        app.advance_and_drain(TimeDelta::milliseconds((wait * 1_000.0) as i64 + 1))
            .await;
    }
    assert_eq!(deliveries(&app, "FAILED").await, (1, 10));
    let made = calls(&app, &endpoint).await;
    assert_eq!(made.len(), 10);
    for call in &made {
        assert_eq!(
            (&call["statusCode"], &call["answer"]),
            (&json!(500), &json!("noted"))
        );
    }
    let began: Vec<&str> = made
        .iter()
        .map(|call| call["startedAt"].as_str().unwrap())
        .collect();
    assert!(began.is_sorted(), "{began:?}");
    app.advance_and_drain(TimeDelta::days(2)).await;
    let received = receiver.received();
    assert_eq!(received.len(), 10, "given up");
    assert!(
        received
            .iter()
            .all(|webhook| webhook.header("webhook-id") == received[0].header("webhook-id"))
    );
    for name in [
        "x-waypost-timestamp",
        "x-waypost-signature",
        "webhook-signature",
    ] {
        let mut seen: Vec<&str> = received
            .iter()
            .map(|webhook| webhook.header(name))
            .collect();
        seen.dedup();
        assert_eq!(seen.len(), 10, "{name}");
    }
    assert!(is_active(&app, &endpoint).await, "less than five days");
}

#[tokio::test]
async fn an_endpoint_that_recovers_gets_what_it_missed() {
    let (app, receiver, endpoint) = failed_once(Answer::Status(302)).await;
    receiver.answer(Answer::Status(204));
    app.advance_and_drain(TimeDelta::seconds(6)).await;
    assert_eq!(deliveries(&app, "DELIVERED").await, (1, 2));
    let fares = format!(
        "SELECT failures || ' ' || (failing_since IS NULL) FROM webhook_endpoints WHERE id = '{}'",
        endpoint.id
    );
    assert_eq!(app.value(&fares).await.as_deref(), Some("0 true"));
}

#[tokio::test]
async fn all_calls_of_a_delivery_are_listed_including_those_before_a_replay() {
    let (app, receiver, endpoint) = failed_once(Answer::Status(500)).await;
    receiver.answer(Answer::Status(201));
    app.advance_and_drain(TimeDelta::seconds(6)).await;
    receiver.answer(Answer::Status(202));
    let path = format!("{}/deliveries", endpoint.path());
    let page = app.get(&path).await.data(200);
    let id = page[0]["id"].as_str().unwrap();
    app.advance(TimeDelta::seconds(1));
    let replay = format!("{path}/{id}/replay");
    app.caller().post_empty(&replay).await.data(200);
    app.drain().await;
    let made = calls(&app, &endpoint).await;
    let statuses: Vec<&Value> = made.iter().map(|call| &call["statusCode"]).collect();
    assert_eq!(statuses, [500, 201, 202]);
    assert_eq!(deliveries(&app, "DELIVERED").await, (1, 1));
}

#[tokio::test]
async fn a_receiver_may_ask_for_up_to_twice_the_delay() {
    let (app, receiver, _) = failed_once(Answer::RetryAfter(503, 8)).await;
    let asked = wait(&app).await;
    assert!((7.9..=8.0).contains(&asked), "{asked}");
    receiver.answer(Answer::RetryAfter(429, 100_000));
    app.advance_and_drain(TimeDelta::seconds(8)).await;
    let asked = wait(&app).await;
    assert!((599.9..=600.0).contains(&asked), "{asked}");
}

#[tokio::test]
async fn an_endpoint_that_does_not_answer_in_time_is_retried() {
    let app = TestApp::builder()
        .setting("WAYPOST_WEBHOOK_TIMEOUT", "300ms")
        .start()
        .await;
    app.connect(waypost_core::provider::kind::ProviderType::Sendgrid)
        .await;
    let receiver = Receiver::start().await;
    receiver.answer(Answer::Silence);
    subscribe(&app, &receiver, &["SENT"]).await;
    app.send_to("ada@example.org").await;
    app.drain().await;
    let attempt = "SELECT (first_status_code IS NULL) || ' ' || (first_duration_ms >= 300) || ' ' || (first_answer <> '') FROM webhook_deliveries";
    assert_eq!(app.value(attempt).await.as_deref(), Some("true true true"));
    receiver.answer(Answer::Status(200));
    app.advance_and_drain(TimeDelta::seconds(6)).await;
    assert_eq!(deliveries(&app, "DELIVERED").await, (1, 2));
}

#[tokio::test]
async fn an_endpoint_that_is_gone_is_deactivated() {
    let app = sending().await;
    let receiver = Receiver::start().await;
    receiver.answer(Answer::Status(410));
    let endpoint = subscribe(&app, &receiver, &["SENT"]).await;
    app.send_to("ada@example.org").await;
    app.drain().await;
    assert_eq!(deliveries(&app, "FAILED").await, (1, 1));
    assert!(!is_active(&app, &endpoint).await);
    let expected = (
        "webhook_endpoint.deactivated".to_owned(),
        "system".to_owned(),
        json!("GONE"),
    );
    assert_eq!(audit(&app).await, [expected]);
    app.send_to("bob@example.org").await;
    app.drain().await;
    assert_eq!(receiver.count(), 1, "no more calls are made");
    assert_eq!(
        number(&app, "SELECT count(*) FROM webhook_deliveries").await,
        1
    );
}

#[tokio::test]
async fn five_days_of_failures_deactivate_an_endpoint() {
    let (app, receiver, endpoint) = failed_once(Answer::Status(500)).await;
    app.advance_and_drain(TimeDelta::days(5) - TimeDelta::minutes(1))
        .await;
    assert!(is_active(&app, &endpoint).await);
    assert_eq!(audit(&app).await, []);
    app.advance_and_drain(TimeDelta::days(1)).await;
    assert!(!is_active(&app, &endpoint).await);
    let expected = (
        "webhook_endpoint.deactivated".to_owned(),
        "system".to_owned(),
        json!("FAILING"),
    );
    assert_eq!(audit(&app).await, [expected]);
    // Pending deliveries are made after the owner has fixed the endpoint.
    assert_eq!(deliveries(&app, "PENDING").await.0, 1);
    receiver.answer(Answer::Status(200));
    app.advance_and_drain(TimeDelta::days(2)).await;
    assert_eq!(deliveries(&app, "PENDING").await.0, 1);
    change(&app, &endpoint, &json!({ "isActive": true })).await;
    app.drain().await;
    assert_eq!(deliveries(&app, "DELIVERED").await, (1, 4));
    assert_eq!(
        app.value("SELECT failing_since FROM webhook_endpoints")
            .await,
        None
    );
}

#[tokio::test]
async fn one_success_restarts_the_five_days() {
    let (app, receiver, endpoint) = failed_once(Answer::Status(500)).await;
    receiver.answer(Answer::Status(200));
    app.advance_and_drain(TimeDelta::seconds(6)).await;
    receiver.answer(Answer::Status(500));
    app.advance(TimeDelta::days(6));
    app.send_to("bob@example.org").await;
    app.drain().await;
    assert_eq!(deliveries(&app, "PENDING").await, (1, 1));
    assert!(is_active(&app, &endpoint).await);
}

#[tokio::test]
async fn a_dead_endpoint_is_called_seldom_however_many_deliveries_are_pending() {
    let app = sending().await;
    let (dead, healthy) = (Receiver::start().await, Receiver::start().await);
    dead.answer(Answer::Status(503));
    subscribe(&app, &dead, &["QUEUED"]).await;
    subscribe(&app, &healthy, &["QUEUED"]).await;
    for number in 0..40 {
        app.send_to(&format!("r{number}@example.org")).await;
    }
    app.drain().await;
    assert_eq!(healthy.count(), 40);
    let first = dead.count();
    assert!(
        (5..=8).contains(&first),
        "{first} calls before the breaker trips"
    );
    // One probe at a time, each pause twice as long.
    for probes in 1..=4 {
        app.advance_and_drain(TimeDelta::seconds(2 << (probes - 1)))
            .await;
        assert_eq!(dead.count(), first + probes);
    }
    dead.answer(Answer::Status(200));
    app.advance_and_drain(TimeDelta::minutes(6)).await;
    app.advance_and_drain(TimeDelta::minutes(6)).await;
    assert_eq!(deliveries(&app, "DELIVERED").await.0, 80);
}

#[tokio::test]
async fn pending_deliveries_go_to_the_new_url() {
    let (app, receiver, endpoint) = failed_once(Answer::Status(500)).await;
    let moved = Receiver::start().await;
    change(&app, &endpoint, &json!({ "url": moved.url() })).await;
    app.advance_and_drain(TimeDelta::seconds(6)).await;
    assert_eq!((receiver.count(), moved.count()), (1, 1));
}

#[tokio::test]
async fn a_refused_connection_is_a_failure_with_a_reason() {
    let app = sending().await;
    // An endpoint can be created only while a server answers.
    let receiver = Receiver::start().await;
    subscribe(&app, &receiver, &["SENT"]).await;
    drop(receiver);
    app.send_to("ada@example.org").await;
    wait_until("a call was made", async || {
        deliveries(&app, "PENDING").await == (1, 1)
    })
    .await;
    let answer = app
        .value("SELECT first_answer FROM webhook_deliveries WHERE first_status_code IS NULL")
        .await;
    let answer = answer.unwrap();
    assert!(!answer.is_empty() && !answer.contains("/hooks"), "{answer}");
    assert_eq!(audit(&app).await, Vec::<(String, String, Value)>::new());
}

#[tokio::test]
async fn the_health_of_an_endpoint_is_recorded_however_its_url_is_written() {
    let app = sending().await;
    let receiver = Receiver::start().await;
    receiver.answer(Answer::Status(410));
    let url = receiver.url().replace("/hooks", "/elsewhere/../hooks");
    let endpoint = subscribe(&app, &receiver, &["SENT"]).await;
    change(&app, &endpoint, &json!({ "url": url })).await;
    app.send_to("ada@example.org").await;
    app.drain().await;
    assert!(!is_active(&app, &endpoint).await);
}

/// A receiver with the old secret accepts its signatures, and its breaker does not trip
/// because it refuses those of the new secret.
#[tokio::test]
async fn a_rotation_does_not_delay_receivers_with_the_old_secret() {
    let app = sending().await;
    let receiver = Receiver::start().await;
    let endpoint = subscribe(&app, &receiver, &["SENT"]).await;
    let old = endpoint.secret.clone();
    receiver.judge(move |webhook| {
        let signed = [
            webhook.header("x-waypost-timestamp").as_bytes(),
            b".",
            &webhook.body,
        ];
        let expected = hex::encode(hmac(old.as_bytes(), &signed.concat()));
        if expected == webhook.header("x-waypost-signature") {
            200
        } else {
            401
        }
    });
    let rotate = format!("/v1/webhook-endpoints/{}/rotate-secret", endpoint.id);
    app.post(&rotate, &json!({})).await.expect(200);
    for number in 0..20 {
        app.send_to(&format!("ada{number}@example.org")).await;
    }
    app.drain().await;
    // The first retries, which use the right secret, follow after five seconds.
    app.advance_and_drain(TimeDelta::seconds(6)).await;
    assert_eq!(deliveries(&app, "DELIVERED").await.0, 20);
    assert!(is_active(&app, &endpoint).await);
}
