//! Every type of webhook as the OpenAPI document describes it, the types that are about the
//! organization and not about a message, and endpoints that filter by tag. A [`Receiver`]
//! compares each webhook with the document.

mod accounts;
mod dns;
mod organization;
mod tags;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use waypost_core::event::EventType;
use waypost_core::provider::kind::ProviderType;
use waypost_core::webhook::event_type::WebhookEventType;
use waypost_tests::{Caller, Receiver, TestApp, message_to, wait_until, webhook_example};

const PATH: &str = "/v1/webhook-endpoints";

/// The types that an endpoint gets only if it names them.
const FURTHER: [&str; 7] = [
    "SUPPRESSION_CREATED",
    "SUPPRESSION_REMOVED",
    "DOMAIN_VERIFIED",
    "DOMAIN_BROKEN",
    "PROVIDER_FAILING",
    "PROVIDER_RECOVERED",
    "WEBHOOK_ENDPOINT_DISABLED",
];

/// Subscribes a receiver and returns the path of its endpoint.
async fn subscribe(app: &TestApp, receiver: &Receiver, events: &[&str]) -> String {
    subscribe_with(app.caller(), receiver, &json!({ "events": events })).await
}

async fn subscribe_with(caller: &Caller, receiver: &Receiver, further: &Value) -> String {
    let mut body = json!({ "url": receiver.url() });
    let further = further.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(further);
    let made = caller.post(PATH, &body).await.data(201);
    format!("{PATH}/{}", made["id"].as_str().unwrap())
}

/// The bodies that a receiver got, in the order of their types.
fn bodies(receiver: &Receiver) -> Vec<Value> {
    let mut bodies: Vec<Value> = receiver.received().iter().map(|one| one.json()).collect();
    bodies.sort_by_key(|body| body["event"].to_string());
    bodies
}

/// How many webhooks of each type a receiver got.
fn counts(receiver: &Receiver) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for body in bodies(receiver) {
        let event = body["event"].as_str().unwrap().to_owned();
        *counts.entry(event).or_default() += 1;
    }
    counts
}

/// The first body of a type.
fn first(receiver: &Receiver, event: &str) -> Value {
    let found = bodies(receiver)
        .into_iter()
        .find(|body| body["event"] == event);
    found.unwrap_or_else(|| panic!("no {event} in {:?}", counts(receiver)))
}

/// What an event says, without its own id and type.
fn said(body: &Value) -> Value {
    let mut data = body["data"].as_object().unwrap().clone();
    assert_eq!(data.remove("eventType").unwrap(), body["event"]);
    assert!(data.remove("eventId").unwrap().is_string());
    Value::Object(data)
}

async fn number(app: &TestApp, query: &str) -> u64 {
    app.value(query).await.unwrap().parse().unwrap()
}

fn fields(body: &Value) -> BTreeSet<&String> {
    body["data"].as_object().unwrap().keys().collect()
}

/// Recipients by whose names the simulator knows what to answer and to report.
const STORIES: [&str; 11] = [
    "plain",
    "hard-bounce",
    "soft-bounce",
    "complaint",
    "open",
    "click",
    "unsubscribe",
    "defer",
    "drop",
    "refuse",
    "throttle-once",
];

#[tokio::test]
async fn every_event_of_a_message_is_posted_as_the_document_shows_it() {
    let all = EventType::ALL.map(EventType::as_str);
    for kind in [
        ProviderType::Sendgrid,
        ProviderType::Postmark,
        ProviderType::Mailgun,
    ] {
        let app = TestApp::start().await;
        let receiver = Receiver::start().await;
        subscribe(&app, &receiver, &all).await;
        let account = app.connect(kind).await;
        let path = format!("/v1/providers/{account}/event-webhook");
        app.caller().post_empty(&path).await.data(200);
        for story in STORIES {
            let mut message = message_to(&format!("{story}@example.org"));
            message["tags"] = json!(["receipts"]);
            message["metadata"] = json!({ "order": "1042" });
            app.send(&message).await;
        }
        app.drain().await;
        wait_until("all types have arrived", async || {
            counts(&receiver).len() == all.len()
        })
        .await;
        wait_until("the simulator has reported all events", async || {
            app.simulator().callbacks().waiting == 0
        })
        .await;
        app.advance_and_drain(chrono::TimeDelta::minutes(5)).await;
        if kind == ProviderType::Sendgrid {
            check_forms(&bodies(&receiver));
        }
    }
}

/// Checks that each example has the fields of an event of its type that was posted. Events of
/// one type may have more or fewer, as far as something is known.
fn check_forms(posted: &[Value]) {
    let mut wrong = Vec::new();
    for event in EventType::ALL.map(EventType::as_str) {
        let example = webhook_example(event);
        let of_type = posted.iter().filter(|body| body["event"] == event);
        let forms: BTreeSet<_> = of_type.map(fields).collect();
        if !forms.contains(&fields(&example)) {
            wrong.push(format!("{event}: {forms:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn the_document_has_an_example_of_each_type_and_a_test_posts_one() {
    let app = TestApp::builder().without_scheduler().start().await;
    for event_type in WebhookEventType::ALL {
        let event = event_type.as_str();
        let example = webhook_example(event);
        assert_eq!(example["event"], event);
        assert_eq!(example["data"]["eventType"], event);
        let receiver = Receiver::start().await;
        let path = subscribe(&app, &receiver, &[event]).await;
        let result = app.caller().post_empty(&format!("{path}/test")).await;
        assert_eq!(result.expect(200)["success"], true, "{event}");
        let posted = receiver.received();
        assert_eq!(posted.len(), 1, "{event}");
        assert_eq!(posted[0].header("x-waypost-event"), event);
        let body = posted[0].json();
        assert_eq!(body["event"], event);
        assert_eq!(body["data"]["metadata"], json!({ "test": true }));
        if !event_type.is_of_message() {
            let mut expected = fields(&example);
            let metadata = "metadata".to_owned();
            expected.insert(&metadata);
            assert_eq!(fields(&body), expected, "{event}");
        }
        app.delete(&path).await.expect(200);
    }
    let document = app.get("/openapi.json").await.expect(200);
    let variants = &document["components"]["schemas"]["WebhookEvent"]["oneOf"];
    assert_eq!(
        variants.as_array().unwrap().len(),
        WebhookEventType::ALL.len()
    );
}
