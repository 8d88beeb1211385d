//! The delivery of callbacks, which is the same for all providers.

use std::collections::BTreeMap;

use serde_json::json;
use waypost_simulator::{CallbackSettings, SignatureFault};

use super::receiver::Post;
use super::sendgrid::{send, subscribed};
use super::{address, set, texts, wait_until_idle, world};
use crate::support::{assert_cut, assert_silent, seen};

#[tokio::test]
async fn a_rejected_call_is_retried_until_it_is_accepted() {
    let (world, receiver) = world().await;
    set(&world, json!({"retryFactor": 0.0001, "flushMs": 200})).await;
    subscribed(&world, &receiver).await;
    receiver.answer(&[500, 302, 404, 204]);
    send(&world, &[address("ann")]).await;
    wait_until_idle(&world).await;
    let posts = receiver.posts();
    assert_eq!(posts.len(), 4);
    assert!(posts.iter().all(|post| post.body == posts[0].body));
    let counts = world.simulator.callbacks();
    assert_eq!(
        (counts.queued, counts.acknowledged, counts.given_up),
        (2, 2, 0)
    );
    assert_eq!(
        counts.refused,
        BTreeMap::from([(302, 1), (404, 1), (500, 1)])
    );
    let log = seen(world.get("/callbacks/log?limit=2")).await.json();
    assert_eq!(log["calls"][0]["status"], 404);
    assert_eq!(
        (&log["calls"][1]["status"], &log["calls"][1]["attempt"]),
        (&json!(204), &json!(4))
    );
    assert_eq!(
        log["calls"][1]["events"],
        json!({"sent": 1, "delivered": 1})
    );
}

#[tokio::test]
async fn a_receiver_that_is_offline_is_retried() {
    let (world, receiver) = world().await;
    set(&world, json!({"retryFactor": 0.0001})).await;
    subscribed(&world, &receiver).await;
    let url = receiver.url("/").replace("127.0.0.1", "127.0.0.2");
    let body = json!({"enabled": true, "url": url, "delivered": true});
    let path = "/v3/user/webhooks/event/settings";
    let answer = seen(world.post(path).bearer_auth("SG.good").json(&body)).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    send(&world, &[address("ann")]).await;
    wait_until_idle(&world).await;
    let counts = world.simulator.callbacks();
    assert_eq!(
        (counts.queued, counts.acknowledged, counts.given_up),
        (3, 2, 1)
    );
    assert_eq!(counts.unanswered, 15);
}

#[tokio::test]
async fn a_share_of_calls_is_made_twice() {
    let (world, receiver) = world().await;
    set(&world, json!({"duplicateRate": 1, "flushMs": 200})).await;
    subscribed(&world, &receiver).await;
    send(&world, &[address("ann")]).await;
    wait_until_idle(&world).await;
    let posts = receiver.posts();
    assert_eq!(posts.len(), 2);
    assert_eq!(posts[0].body, posts[1].body);
    assert_eq!(posts[0].headers, posts[1].headers);
    let counts = world.simulator.callbacks();
    assert_eq!((counts.duplicated, counts.acknowledged), (1, 2));
}

#[tokio::test]
async fn events_are_shuffled_but_keep_their_times() {
    let (world, receiver) = world().await;
    set(
        &world,
        json!({"shuffle": true, "delayMs": 0, "flushMs": 200}),
    )
    .await;
    subscribed(&world, &receiver).await;
    let addresses: Vec<_> = (0..40)
        .map(|at| format!("click+{at}@example.org"))
        .collect();
    send(&world, &addresses).await;
    wait_until_idle(&world).await;
    let events = receiver.events();
    let order_of = |to: &String| {
        let own = events.iter().filter(|one| one["email"] == to.as_str());
        texts(own, "event")
    };
    let in_order = ["processed", "delivered", "open", "click"];
    let shuffled = addresses.iter().filter(|to| order_of(to) != in_order);
    assert!(shuffled.count() > 20);
    assert!(addresses.iter().all(|to| order_of(to).len() == 4));
}

#[tokio::test]
async fn events_of_a_message_accepted_without_a_response_are_reported() {
    let (world, receiver) = world().await;
    subscribed(&world, &receiver).await;
    let mail = |to: &str| {
        let body = json!({
            "personalizations": [{"to": [{"email": to}]}],
            "from": {"email": "hello@example.com"},
            "subject": "Hello",
            "content": [{"type": "text/plain", "value": "Hi"}],
        });
        world
            .post("/v3/mail/send")
            .bearer_auth("SG.good")
            .json(&body)
    };
    assert_cut(mail("reset@example.org")).await;
    assert_silent(mail("timeout@example.org")).await;
    let events = receiver.wait_for_events(4).await;
    let mut delivered: Vec<_> = events
        .iter()
        .filter(|one| one["event"] == "delivered")
        .collect();
    delivered.sort_by_key(|one| one["email"].to_string());
    assert_eq!(
        texts(delivered, "email"),
        ["reset@example.org", "timeout@example.org"]
    );
}

#[tokio::test]
async fn the_clock_of_callbacks_can_be_ahead() {
    let (world, receiver) = world().await;
    subscribed(&world, &receiver).await;
    send(&world, &[address("ann")]).await;
    wait_until_idle(&world).await;
    set(&world, json!({"clockAheadMs": 86_400_000})).await;
    send(&world, &[address("ann")]).await;
    wait_until_idle(&world).await;
    let posts = receiver.posts();
    let (first, last) = (&posts[0], &posts[posts.len() - 1]);
    let signed_at = |post: &Post| {
        post.header("x-twilio-email-event-webhook-timestamp")
            .parse()
    };
    let (first_at, last_at): (i64, i64) = (signed_at(first).unwrap(), signed_at(last).unwrap());
    assert!((86_400..90_000).contains(&(last_at - first_at)));
    let happened = |post: &Post| post.json()[0]["timestamp"].as_i64().unwrap();
    assert!((86_400..90_000).contains(&(happened(last) - happened(first))));
}

#[tokio::test]
async fn settings_are_checked_and_reset() {
    let (world, receiver) = world().await;
    for wrong in [
        json!({"delayMs": -1}),
        json!({"duplicateRate": 2}),
        json!({"retryFactor": "fast"}),
        json!({"batchEventsMax": 0}),
        json!({"signatureFault": "odd"}),
        json!({"nothing": 1}),
        json!([]),
    ] {
        let answer = seen(world.post("/callbacks").json(&wrong)).await;
        assert_eq!(answer.status, 400, "{wrong}");
    }
    subscribed(&world, &receiver).await;
    set(&world, json!({"enabled": false})).await;
    send(&world, &[address("ann")]).await;
    assert_eq!(world.simulator.callbacks().queued, 0);
    world.simulator.set_callbacks(CallbackSettings {
        delay_ms: 3_600_000,
        signature_fault: SignatureFault::None,
        ..CallbackSettings::default()
    });
    send(&world, &[address("ann")]).await;
    assert_eq!(world.simulator.callbacks().waiting, 2);
    let reset = seen(world.client.delete(world.url("/callbacks"))).await;
    assert_eq!(reset.status, 204);
    let shown = seen(world.get("/callbacks")).await.json();
    assert_eq!(
        (&shown["waiting"], &shown["queued"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(shown["settings"]["delayMs"], 100);
    assert_eq!(shown["settings"]["signatureFault"], "off");
    assert!(receiver.posts().is_empty());
}
