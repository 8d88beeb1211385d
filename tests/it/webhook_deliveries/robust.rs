//! Crashes and losses: killed workers, an unavailable Redis, lost notifications, several
//! workers.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;

use chrono::TimeDelta;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Answer, Receiver, TestApp, wait_until, wait_within};

use super::{calls_kept, deliveries, gist, gists, number, sending, subscribe};

const ADA: &str = "ada@example.org";
/// Leases of 6 s must end, and builds share the machine.
const RECOVERED_WITHIN: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_call_of_a_killed_worker_is_repeated_by_another() {
    let app = TestApp::builder().processes().start().await;
    let (_api, _scheduler) = (app.spawn_api().await, app.spawn_scheduler());
    let receiver = Receiver::start().await;
    receiver.answer(Answer::Silence);
    subscribe(&app, &receiver, &["QUEUED"]).await;
    app.connect(ProviderType::Sendgrid).await;
    let mut doomed = app.spawn_worker();
    app.send_to(ADA).await;
    wait_until("a call is running", async || receiver.count() == 1).await;
    doomed.kill().await;
    receiver.answer(Answer::Status(200));
    assert_eq!(deliveries(&app, "PENDING").await, (1, 0));
    let _worker = app.spawn_worker();
    let is_told = wait_within(RECOVERED_WITHIN, async || {
        deliveries(&app, "DELIVERED").await == (1, 1)
    });
    assert!(is_told.await, "repeated by the other worker");
    let ids: BTreeSet<String> = receiver
        .received()
        .iter()
        .map(|webhook| webhook.header("webhook-id").to_owned())
        .collect();
    assert_eq!(
        (receiver.count(), ids.len()),
        (2, 1),
        "both have the same id"
    );
    app.leave_work();
}

#[tokio::test]
async fn a_worker_that_shuts_down_finishes_its_calls() {
    let app = TestApp::builder().processes().start().await;
    let (_api, _scheduler) = (app.spawn_api().await, app.spawn_scheduler());
    let receiver = Receiver::start().await;
    subscribe(&app, &receiver, &["QUEUED"]).await;
    app.connect(ProviderType::Sendgrid).await;
    let mut worker = app.spawn_worker();
    app.send_to(ADA).await;
    wait_until("it is delivered", async || receiver.count() == 1).await;
    assert!(worker.terminate().await.success());
    assert_eq!(deliveries(&app, "DELIVERED").await, (1, 1));
    let leased = "SELECT count(*) FROM webhook_endpoints WHERE leased_by IS NOT NULL";
    assert_eq!(number(&app, leased).await, 0, "no lease is left");
    app.leave_work();
}

#[tokio::test]
async fn webhooks_need_no_redis() {
    let mut app = TestApp::builder().private_redis().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let receiver = Receiver::start().await;
    subscribe(&app, &receiver, &["QUEUED", "SENT"]).await;
    app.redis.as_mut().unwrap().stop().await;
    app.send_to(ADA).await;
    let queued = BTreeSet::from([gist("QUEUED", ADA)]);
    wait_until("it is delivered without Redis", async || {
        gists(&receiver) == queued
    })
    .await;
    app.redis.as_mut().unwrap().resume().await;
    app.redis.as_ref().unwrap().flush().await;
    app.advance_and_drain(TimeDelta::seconds(5)).await;
    assert_eq!(gists(&receiver).len(), 2);
}

#[tokio::test]
async fn a_delivery_without_a_notification_is_made() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let receiver = Receiver::start().await;
    subscribe(&app, &receiver, &["QUEUED"]).await;
    app.send_to(ADA).await;
    // No worker listened when the message was accepted.
    app.start_worker();
    app.drain().await;
    assert_eq!(gists(&receiver), BTreeSet::from([gist("QUEUED", ADA)]));
}

/// The answer to a lease may be lost after its commit; then no worker polls the endpoint.
#[tokio::test]
async fn an_endpoint_whose_lease_was_not_acknowledged_is_served_again() {
    let app = sending().await;
    let receiver = Receiver::start().await;
    subscribe(&app, &receiver, &["QUEUED"]).await;
    wait_until("the worker is on the list", async || {
        number(&app, "SELECT count(*) FROM workers").await == 1
    })
    .await;
    app.execute("UPDATE webhook_endpoints SET leased_by = (SELECT id FROM workers)")
        .await;
    app.send_to(ADA).await;
    app.drain().await;
    assert_eq!(gists(&receiver), BTreeSet::from([gist("QUEUED", ADA)]));
}

#[tokio::test]
async fn several_workers_deliver_every_event_once() {
    let app = sending().await;
    app.start_worker();
    app.start_worker();
    let receivers = [Receiver::start().await, Receiver::start().await];
    for receiver in &receivers {
        subscribe(&app, receiver, &["QUEUED", "SENT"]).await;
    }
    let mut expected = BTreeSet::new();
    for number in 0..100 {
        let address = format!("r{number}@example.org");
        app.send_to(&address).await;
        expected.extend([gist("QUEUED", &address), gist("SENT", &address)]);
    }
    app.drain().await;
    for receiver in &receivers {
        assert_eq!(gists(receiver), expected);
        let connections = receiver.connections();
        assert!(connections <= 24, "{connections} connections for 200 calls");
    }
    assert_eq!(deliveries(&app, "DELIVERED").await, (400, 400));
}

#[tokio::test]
async fn a_backlog_larger_than_one_read_is_delivered() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let receiver = Receiver::start().await;
    subscribe(&app, &receiver, &["QUEUED"]).await;
    let mut message = waypost_tests::message_to("");
    let all: Vec<String> = (0..1_000)
        .map(|number| format!("r{number}@example.org"))
        .collect();
    message["to"] = serde_json::json!(all);
    app.send(&message).await;
    app.start_worker();
    wait_until("all are delivered", async || {
        deliveries(&app, "DELIVERED").await == (1_000, 1_000)
    })
    .await;
    assert_eq!(gists(&receiver).len(), 1_000);
    app.leave_work();
}

/// Deliveries may become due before the point where the deliverer continues to read:
/// transactions commit in any order.
#[tokio::test]
async fn a_delivery_that_becomes_due_behind_the_reader_of_a_backlog_is_made() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let receiver = Receiver::start().await;
    subscribe(&app, &receiver, &["QUEUED"]).await;
    let mut last = String::new();
    for message in 0..3 {
        let all: Vec<String> = (0..400)
            .map(|number| format!("r{message}-{number}@example.org"))
            .collect();
        let mut message = waypost_tests::message_to("");
        message["to"] = serde_json::json!(all);
        last = app.send(&message).await;
        app.advance(TimeDelta::seconds(1));
    }
    app.start_worker();
    wait_until("it has reached the second message", async || {
        receiver.count() > 450
    })
    .await;
    app.execute(&format!(
        "UPDATE webhook_deliveries
         SET next_attempt_at = next_attempt_at - interval '1 hour'
         WHERE message_id = '{last}' AND status = 'PENDING'"
    ))
    .await;
    wait_until("all are delivered", async || {
        deliveries(&app, "DELIVERED").await == (1_200, 1_200)
    })
    .await;
    assert_eq!(gists(&receiver).len(), 1_200);
    app.leave_work();
}

/// No scheduler: no lost notification of a polling deliverer is repeated.
#[tokio::test]
async fn a_stream_of_events_is_delivered_to_its_last_one() {
    let app = TestApp::builder()
        .without_scheduler()
        .without_worker()
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    app.start_worker();
    let receiver = Receiver::start().await;
    subscribe(&app, &receiver, &["QUEUED"]).await;
    // Without a scheduler, deliveries that are due before the worker listens are not
    // found.
    let sent = Cell::new(0);
    wait_until("the worker listens", async || {
        app.send_to(&format!("w{}@example.org", sent.replace(sent.get() + 1)))
            .await;
        receiver.count() > 0
    })
    .await;
    let early = (0..sent.get()).map(|nth| gist("QUEUED", &format!("w{nth}@example.org")));
    let mut expected: BTreeSet<_> = early.collect();
    for round in 0..15 {
        let addresses: Vec<String> = (0..20)
            .map(|place| format!("r{round}-{place}@example.org"))
            .collect();
        let sends = addresses.iter().map(|address| app.send_to(address));
        futures_util::future::join_all(sends).await;
        expected.extend(addresses.iter().map(|address| gist("QUEUED", address)));
        wait_until("the round is delivered", async || {
            gists(&receiver) == expected
        })
        .await;
    }
    app.leave_work();
}

#[tokio::test]
async fn deliveries_of_a_deleted_endpoint_are_deleted() {
    let app = sending().await;
    let (kept, deleted) = (Receiver::start().await, Receiver::start().await);
    deleted.answer(Answer::Status(500));
    subscribe(&app, &kept, &["QUEUED"]).await;
    let endpoint = subscribe(&app, &deleted, &["QUEUED", "SENT"]).await;
    app.send_to(ADA).await;
    app.drain().await;
    assert_eq!(calls_kept(&app).await, 3);
    app.delete(&endpoint.path()).await.expect(200);
    wait_until("its deliveries and attempts are gone", async || {
        number(&app, "SELECT count(*) FROM webhook_deliveries").await == 1
            && calls_kept(&app).await == 1
    })
    .await;
    // A transaction that began before may still insert deliveries.
    assert_eq!(
        number(&app, "SELECT count(*) FROM webhook_endpoint_deletions").await,
        1
    );
    app.execute("UPDATE webhook_endpoint_deletions SET deleted_at = now() - interval '1 hour'")
        .await;
    wait_until("its record is deleted", async || {
        number(&app, "SELECT count(*) FROM webhook_endpoint_deletions").await == 0
    })
    .await;
}
