//! Which events are delivered to which endpoints, and how calls are signed.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, TimeDelta};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::json;
use sha2::Sha256;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Receiver, SENDER, TestApp, event_types, message_to, wait_until};

use super::{
    calls_kept, change, deliveries, gist, gists, number, sending, subscribe, subscribe_as,
};

const ADA: &str = "ada@example.org";

pub(super) fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

#[tokio::test]
async fn an_endpoint_gets_the_event_types_of_its_subscription_and_no_others() {
    let app = sending().await;
    let (both, sent, off, other) = (
        Receiver::start().await,
        Receiver::start().await,
        Receiver::start().await,
        Receiver::start().await,
    );
    subscribe(&app, &both, &["QUEUED", "SENT"]).await;
    subscribe(&app, &sent, &["SENT", "BOUNCED"]).await;
    let endpoint = subscribe(&app, &off, &["QUEUED", "SENT"]).await;
    change(&app, &endpoint, &json!({ "isActive": false })).await;
    let neighbour = app.tenant("Neighbours").await;
    let all = ["QUEUED", "SENT"];
    subscribe_as(&neighbour.caller, &other, &all).await;
    app.send_to(ADA).await;
    app.drain().await;
    let expected = BTreeSet::from([gist("QUEUED", ADA), gist("SENT", ADA)]);
    assert_eq!(gists(&both), expected);
    assert_eq!(gists(&sent), BTreeSet::from([gist("SENT", ADA)]));
    assert_eq!((off.count(), other.count()), (0, 0));
    assert_eq!(deliveries(&app, "DELIVERED").await, (3, 3));
    assert_eq!(calls_kept(&app).await, 3);
}

#[tokio::test]
async fn a_queued_message_is_delivered_once_for_each_recipient() {
    let app = sending().await;
    let receiver = Receiver::start().await;
    subscribe(&app, &receiver, &["QUEUED"]).await;
    let mut message = message_to("");
    let all = [ADA, "bob@example.org", "cy@example.org"];
    message["to"] = json!(["Ada <ada@example.org>", all[1], all[2]]);
    app.send(&message).await;
    app.drain().await;
    let expected = all.map(|address| gist("QUEUED", address));
    assert_eq!(gists(&receiver), BTreeSet::from(expected));
}

#[tokio::test]
async fn every_history_begins_with_one_queued_wherever_it_is_stored() {
    let app = sending().await;
    let alone = app.send_to(ADA).await;
    let old = app.send_to(ADA).await;
    // As a program left it that did not know messages to be events.
    app.execute(&format!(
        "UPDATE messages SET is_queued_event = NULL WHERE id = '{old}';
         INSERT INTO events (message_id, id, organization_id, event_type, occurred_at)
         SELECT id, gen_random_uuid(), organization_id, 'QUEUED', created_at FROM messages WHERE id = '{old}'"
    ))
    .await;
    let receiver = Receiver::start().await;
    subscribe(&app, &receiver, &["QUEUED"]).await;
    let told = app.send_to(ADA).await;
    app.drain().await;
    assert_eq!(receiver.count(), 1);
    for (id, rows) in [(alone, 0), (old, 1), (told, 1)] {
        let message = app.get(&format!("/v1/messages/{id}")).await.data(200);
        assert_eq!(event_types(&message), ["QUEUED", "SENT"]);
        let stored = format!(
            "SELECT count(*) FROM events WHERE message_id = '{id}' AND event_type = 'QUEUED'"
        );
        assert_eq!(number(&app, &stored).await, rows);
    }
}

#[tokio::test]
async fn the_body_and_the_signatures_are_as_documented() {
    let app = sending().await;
    let receiver = Receiver::start().await;
    let endpoint = subscribe(&app, &receiver, &["SENT"]).await;
    let mut message = message_to(ADA);
    message["tags"] = json!(["receipts"]);
    message["metadata"] = json!({ "order": 7 });
    let id = app.send(&message).await;
    app.drain().await;
    let webhook = receiver.received().remove(0);
    let event = app.value("SELECT id FROM events WHERE event_type = 'SENT'");
    let attempt = app.value("SELECT id FROM send_attempts").await;
    let taken = app
        .value("SELECT provider_message_id FROM recipients")
        .await;
    let body = webhook.json();
    let at = DateTime::parse_from_rfc3339(body["timestamp"].as_str().unwrap()).unwrap();
    assert_eq!(at.timestamp(), app.clock.now().timestamp());
    assert_eq!(
        body["data"],
        json!({
            "messageId": id,
            "eventType": "SENT",
            "recipient": ADA,
            "from": SENDER,
            "subject": "Hello",
            "eventId": event.await,
            "attemptId": attempt,
            "providerMessageId": taken,
            "tags": ["receipts"],
            "metadata": { "order": 7 },
            "providerType": "SENDGRID",
        })
    );
    assert_eq!(webhook.header("content-type"), "application/json");
    assert_eq!(webhook.header("x-waypost-event"), "SENT");
    let seconds = webhook.header("x-waypost-timestamp");
    assert_eq!(seconds, app.clock.now().timestamp().to_string());
    let signed = [seconds.as_bytes(), b".", &webhook.body].concat();
    let signature = hex::encode(hmac(endpoint.secret.as_bytes(), &signed));
    assert_eq!(webhook.header("x-waypost-signature"), signature);
    let delivery = app
        .value("SELECT id FROM webhook_deliveries")
        .await
        .unwrap();
    assert_eq!(webhook.header("webhook-id"), delivery);
    let signed = [delivery.as_bytes(), b".", &signed].concat();
    let key = STANDARD.decode(&endpoint.secret["whsec_".len()..]).unwrap();
    let signature = format!("v1,{}", STANDARD.encode(hmac(&key, &signed)));
    assert_eq!(webhook.header("webhook-signature"), signature);
}

/// No scheduler: no notification is repeated.
#[tokio::test]
async fn every_code_path_that_records_an_event_notifies_the_worker() {
    let app = TestApp::builder().without_scheduler().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let receiver = Receiver::start().await;
    let all = ["QUEUED", "SENT", "DROPPED", "DEFERRED", "UNSUBSCRIBED"];
    subscribe(&app, &receiver, &all).await;
    let group = json!({ "name": "News" });
    let group = app.post("/v1/unsubscribe-groups", &group).await.data(201);
    // Accepted, dropped at acceptance, sent.
    let barred = json!({ "emails": ["barred@example.org"] });
    app.post("/v1/suppressions/import", &barred)
        .await
        .expect(200);
    let mut message = message_to("");
    message["to"] = json!([ADA, "barred@example.org"]);
    message["unsubscribeGroupId"] = group["id"].clone();
    app.send(&message).await;
    let mut expected = BTreeSet::from([
        gist("QUEUED", ADA),
        gist("QUEUED", "barred@example.org"),
        gist("DROPPED", "barred@example.org"),
        gist("SENT", ADA),
    ]);
    wait_until("events of sending are delivered", async || {
        gists(&receiver) == expected
    })
    .await;
    // Unsubscribed, a second later.
    app.advance(TimeDelta::seconds(1));
    let link = app.captured_once(ADA).headers["List-Unsubscribe"].clone();
    let link = link.trim_matches(['<', '>']);
    let path = &link[link.find("/v1/").unwrap()..];
    let page = app.caller().anonymous().post_empty(path).await;
    assert_eq!(page.status, 200);
    expected.insert(gist("UNSUBSCRIBED", ADA));
    wait_until("unsubscribing is delivered", async || {
        gists(&receiver) == expected
    })
    .await;
    // Rejected by the provider, and deferred by it.
    app.send_to("refuse@example.org").await;
    app.send_to("throttle@example.org").await;
    expected.extend([
        gist("QUEUED", "refuse@example.org"),
        gist("DROPPED", "refuse@example.org"),
        gist("QUEUED", "throttle@example.org"),
        gist("DEFERRED", "throttle@example.org"),
    ]);
    wait_until("rejections and deferrals are delivered", async || {
        gists(&receiver) == expected
    })
    .await;
    app.leave_work();
}

#[tokio::test]
async fn rows_that_move_between_partitions_are_not_delivered_again() {
    let app = sending().await;
    let receiver = Receiver::start().await;
    subscribe(&app, &receiver, &["QUEUED", "SENT"]).await;
    // Months without a partition.
    app.advance(TimeDelta::days(400));
    app.send_to(ADA).await;
    app.drain().await;
    assert_eq!(
        number(&app, "SELECT count(*) FROM webhook_deliveries_default").await,
        2
    );
    let now = app.clock.now().to_rfc3339();
    app.execute(&format!("SELECT waypost_create_partitions('{now}', 1)"))
        .await;
    assert_eq!(
        number(&app, "SELECT count(*) FROM webhook_deliveries_default").await,
        0
    );
    assert_eq!(deliveries(&app, "DELIVERED").await, (2, 2));
    assert_eq!(
        number(&app, "SELECT count(*) FROM webhook_deliveries").await,
        2
    );
}
