use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::proof::is_from_sendgrid;
use super::{MAGIC_RECIPIENTS, Receiver, address, set, texts, wait_until_idle, world};
use crate::support::{World, seen};

const SETTINGS: &str = "/v3/user/webhooks/event/settings";
const KEY: &str = "SG.good";

fn call(world: &World, method: &str, path: &str, body: &Value) -> RequestBuilder {
    let method = method.parse().expect("is a method");
    let url = world.url(&format!("{SETTINGS}{path}"));
    world
        .client
        .request(method, url)
        .bearer_auth(KEY)
        .json(body)
}

fn all_events(url: &str) -> Value {
    json!({
        "enabled": true,
        "url": url,
        "processed": true,
        "delivered": true,
        "deferred": true,
        "bounce": true,
        "dropped": true,
        "open": true,
        "click": true,
        "spam_report": true,
        "unsubscribe": true,
        "group_unsubscribe": true,
        "group_resubscribe": true,
        "friendly_name": "Waypost",
    })
}

/// Registers for all events, signed, and returns the public key.
async fn register(world: &World, url: &str) -> String {
    let answer = seen(call(world, "POST", "", &all_events(url))).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let id = answer.json()["id"].as_str().unwrap_or_default().to_owned();
    let body = json!({"enabled": true});
    let signed = seen(call(world, "PATCH", &format!("/signed/{id}"), &body)).await;
    assert_eq!(signed.json()["id"], id.as_str());
    let key = signed.json()["public_key"].as_str().map(str::to_owned);
    key.expect("is signed now")
}

/// Sends one personalization to each address; returns the message id.
pub(super) async fn send(world: &World, addresses: &[String]) -> String {
    let personalizations: Vec<Value> = addresses
        .iter()
        .enumerate()
        .map(|(at, to)| {
            json!({
                "to": [{"email": to}],
                "custom_args": {"wp_id": at.to_string(), "email": "not-this"},
            })
        })
        .collect();
    let mail = json!({
        "personalizations": personalizations,
        "from": {"email": "hello@example.com"},
        "subject": "Hello",
        "content": [{"type": "text/html", "value": "<a href=\"https://example.org/a?b=1\">A</a>"}],
        "categories": ["welcome"],
    });
    let answer = seen(world.post("/v3/mail/send").bearer_auth(KEY).json(&mail)).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    answer.header("x-message-id").to_owned()
}

#[tokio::test]
async fn a_webhook_is_created_read_changed_and_deleted() {
    let (world, receiver) = world().await;
    let url = receiver.url("/a");
    let made = seen(call(&world, "POST", "", &all_events(&url)))
        .await
        .json();
    assert_eq!(made["url"], url.as_str());
    assert_eq!(
        (&made["bounce"], &made["enabled"]),
        (&json!(true), &json!(true))
    );
    assert!(made.get("public_key").is_none());
    let id = made["id"].as_str().expect("has an id").to_owned();
    let signed = format!("/signed/{id}");
    let before = seen(call(&world, "GET", &signed, &Value::Null))
        .await
        .json();
    assert_eq!(before["public_key"], "");
    let key = seen(call(&world, "PATCH", &signed, &json!({"enabled": true}))).await;
    let key = key.json()["public_key"].clone();
    // Enabling again keeps the key.
    let again = seen(call(&world, "PATCH", &signed, &json!({"enabled": true}))).await;
    assert_eq!(again.json()["public_key"], key);
    let all = seen(call(&world, "GET", "/all", &Value::Null)).await.json();
    assert_eq!(all["webhooks"][0]["public_key"], key);
    let change = json!({"enabled": false, "open": false});
    let changed = seen(call(&world, "PATCH", &format!("/{id}"), &change))
        .await
        .json();
    assert_eq!(
        (&changed["enabled"], &changed["open"]),
        (&json!(false), &json!(false))
    );
    assert_eq!(
        (&changed["click"], &changed["public_key"]),
        (&json!(true), &key)
    );
    let found = seen(call(&world, "GET", &format!("/{id}"), &Value::Null)).await;
    assert_eq!(found.json(), changed);
    let gone = seen(call(&world, "DELETE", &format!("/{id}"), &Value::Null)).await;
    assert_eq!(gone.status, 204);
    let missing = seen(call(&world, "GET", &format!("/{id}"), &Value::Null)).await;
    assert_eq!(missing.status, 404);
    assert_eq!(
        missing.json()["errors"][0]["message"],
        "Invalid id provided."
    );
}

#[tokio::test]
async fn invalid_registrations_are_rejected() {
    let (world, receiver) = world().await;
    let bad = seen(call(&world, "POST", "", &all_events("nowhere"))).await;
    assert_eq!(bad.status, 400);
    assert_eq!(
        bad.json()["errors"][0]["message"],
        "'nowhere' is not a valid url"
    );
    for at in 0..5 {
        let url = receiver.url(&format!("/{at}"));
        assert_eq!(
            seen(call(&world, "POST", "", &all_events(&url)))
                .await
                .status,
            201
        );
    }
    let taken = seen(call(&world, "POST", "", &all_events(&receiver.url("/0")))).await;
    assert_eq!(taken.status, 400);
    assert_eq!(taken.json()["errors"][0]["url"], receiver.url("/0"));
    let sixth = seen(call(&world, "POST", "", &all_events(&receiver.url("/5")))).await;
    assert_eq!(sixth.status, 400);
    let listing = world.get(&format!("{SETTINGS}/all"));
    let stranger = seen(listing.bearer_auth("SG.restricted")).await;
    assert_eq!(stranger.status, 403);
    let other = seen(
        world
            .get(&format!("{SETTINGS}/all"))
            .bearer_auth("SG.other"),
    )
    .await;
    assert_eq!(other.json()["webhooks"], json!([]));
}

#[tokio::test]
async fn all_events_are_reported_in_signed_arrays() {
    let (world, receiver) = world().await;
    let key = register(&world, &receiver.url("/events")).await;
    let mut addresses: Vec<_> = MAGIC_RECIPIENTS.map(address).into();
    addresses.push(address("drop"));
    let id = send(&world, &addresses).await;
    wait_until_idle(&world).await;
    let posts = receiver.posts();
    assert!(posts.len() < 15, "{} calls", posts.len());
    for post in &posts {
        assert_eq!(post.path, "/events");
        assert!(is_from_sendgrid(post, &key));
        assert!(post.body.ends_with(b"]\r\n"));
    }
    let events = receiver.events();
    let names_of = |local_part: &str| {
        let to = address(local_part);
        let mut own: Vec<_> = events.iter().filter(|one| one["email"] == to).collect();
        own.sort_by_key(|one| one["timestamp"].as_i64());
        texts(own, "event")
    };
    let told: Vec<_> = MAGIC_RECIPIENTS
        .iter()
        .map(|story| names_of(story))
        .collect();
    let expected: [&[&str]; 9] = [
        &["processed", "delivered"],
        &["processed", "bounce"],
        &["processed", "bounce"],
        &["processed", "bounce"],
        &["processed", "delivered", "spamreport"],
        &["processed", "delivered", "open"],
        &["processed", "delivered", "open", "click"],
        &["processed", "delivered", "unsubscribe"],
        &["processed", "deferred", "delivered"],
    ];
    assert_eq!(told, expected);
    assert_eq!(names_of("drop"), ["dropped"]);
    let hard = events.iter().find(|one| one["type"] == "bounce");
    let hard = hard.expect("something bounced");
    assert_eq!(hard["email"], address("hard-bounce"));
    assert_eq!(
        (&hard["wp_id"], &hard["status"]),
        (&json!("1"), &json!("5.1.1"))
    );
    assert_eq!(hard["category"], "welcome");
    let message_id = hard["sg_message_id"].as_str().unwrap_or_default();
    assert_eq!(message_id.split('.').next(), Some(id.as_str()));
    let click = events.iter().find(|one| one["event"] == "click");
    assert_eq!(
        click.expect("was clicked")["url"],
        "https://example.org/a?b=1"
    );
    let mut ids = texts(&events, "sg_event_id");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), events.len());
}

#[tokio::test]
async fn only_subscribed_events_are_reported() {
    let (world, receiver) = world().await;
    let body = json!({"url": receiver.url("/"), "bounce": true});
    assert_eq!(seen(call(&world, "POST", "", &body)).await.status, 201);
    send(&world, &[address("ann"), address("hard-bounce")]).await;
    wait_until_idle(&world).await;
    assert_eq!(texts(&receiver.events(), "event"), ["bounce"]);
    assert_eq!(
        receiver.posts()[0].header("x-twilio-email-event-webhook-signature"),
        ""
    );
}

#[tokio::test]
async fn calls_hold_as_many_events_as_they_may() {
    let (world, receiver) = world().await;
    set(
        &world,
        json!({"delayMs": 0, "flushMs": 300, "batchEventsMax": 7}),
    )
    .await;
    register(&world, &receiver.url("/")).await;
    let addresses: Vec<_> = (0..50).map(|at| format!("a{at}@example.org")).collect();
    send(&world, &addresses).await;
    wait_until_idle(&world).await;
    let sizes: Vec<_> = receiver
        .posts()
        .iter()
        .map(|post| post.json().as_array().map_or(0, Vec::len))
        .collect();
    assert_eq!(sizes.iter().sum::<usize>(), 100);
    assert!(sizes.iter().all(|&size| size <= 7), "{sizes:?}");
    assert_eq!(sizes.len(), 15);
}

#[tokio::test]
async fn a_signature_can_be_wrong_or_missing() {
    let (world, receiver) = world().await;
    let key = register(&world, &receiver.url("/")).await;
    set(&world, json!({"signatureFault": "wrong", "flushMs": 200})).await;
    send(&world, &[address("ann")]).await;
    wait_until_idle(&world).await;
    let posts = receiver.posts();
    assert!(posts.iter().all(|post| !is_from_sendgrid(post, &key)));
    set(&world, json!({"signatureFault": "none"})).await;
    send(&world, &[address("ann")]).await;
    wait_until_idle(&world).await;
    let last = receiver.posts().pop().expect("something was posted");
    assert_eq!(last.header("x-twilio-email-event-webhook-signature"), "");
}

/// Subscribes the receiver to all events of SendGrid.
pub(super) async fn subscribed(world: &World, receiver: &Receiver) {
    register(world, &receiver.url("/events")).await;
}
