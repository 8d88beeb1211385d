//! Webhook deliveries: which events cause them, how they are signed, retried and given
//! up, and that neither a crash nor a lost notification loses one.

mod failing;
mod reading;
mod robust;
mod telling;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Caller, Receiver, TestApp};

/// An endpoint of a test.
struct Endpoint {
    id: String,
    secret: String,
}

impl Endpoint {
    fn path(&self) -> String {
        format!("/v1/webhook-endpoints/{}", self.id)
    }
}

async fn sending() -> TestApp {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    app
}

/// An active endpoint at the receiver, in the app's organization.
async fn subscribe(app: &TestApp, receiver: &Receiver, events: &[&str]) -> Endpoint {
    subscribe_as(app.caller(), receiver, events).await
}

/// The same in a caller's organization.
async fn subscribe_as(caller: &Caller, receiver: &Receiver, events: &[&str]) -> Endpoint {
    let body = json!({ "url": receiver.url(), "events": events });
    let made = caller.post("/v1/webhook-endpoints", &body).await.data(201);
    let text = |field: &str| made[field].as_str().unwrap().to_owned();
    Endpoint {
        id: text("id"),
        secret: text("secret"),
    }
}

/// Changes an endpoint, as its owner does.
async fn change(app: &TestApp, endpoint: &Endpoint, change: &Value) {
    app.patch(&endpoint.path(), change).await.data(200);
}

async fn is_active(app: &TestApp, endpoint: &Endpoint) -> bool {
    app.get(&endpoint.path()).await.data(200)["isActive"] == true
}

/// How many deliveries have this status, and how many attempts they had.
async fn deliveries(app: &TestApp, status: &str) -> (u64, u64) {
    let of = format!("FROM webhook_deliveries WHERE status = '{status}'");
    let count = number(app, &format!("SELECT count(*) {of}")).await;
    let attempts = number(app, &format!("SELECT coalesce(sum(attempts), 0) {of}")).await;
    (count, attempts)
}

/// The number of stored calls: the first of each delivery is in its own row.
async fn calls_kept(app: &TestApp) -> u64 {
    let first = "SELECT count(first_attempt_id) FROM webhook_deliveries";
    let further = "SELECT count(*) FROM webhook_attempts";
    number(app, first).await + number(app, further).await
}

/// The calls of an endpoint's only delivery, as its owner sees them.
async fn calls(app: &TestApp, endpoint: &Endpoint) -> Vec<Value> {
    let path = format!("{}/deliveries", endpoint.path());
    let page = app.get(&path).await.data(200);
    let rows = page.as_array().unwrap();
    assert_eq!(rows.len(), 1);
    rows[0]["attempts"].as_array().unwrap().clone()
}

async fn number(app: &TestApp, query: &str) -> u64 {
    app.value(query).await.unwrap().parse().unwrap()
}

/// The event and the recipient of each call, without duplicates.
fn gists(receiver: &Receiver) -> BTreeSet<(String, String)> {
    let received = receiver.received();
    let gists: BTreeSet<_> = received.iter().map(|webhook| webhook.gist()).collect();
    assert_eq!(gists.len(), received.len(), "a delivery arrived twice");
    gists
}

fn gist(event: &str, recipient: &str) -> (String, String) {
    (event.to_owned(), recipient.to_owned())
}

/// The audit log of endpoints after their creation: action, actor and reason.
async fn audit(app: &TestApp) -> Vec<(String, String, Value)> {
    let page = app
        .get("/v1/audit-logs?targetType=webhook_endpoint")
        .await
        .data(200);
    let entries = page.as_array().unwrap().iter().map(|entry| {
        (
            entry["action"].as_str().unwrap().to_owned(),
            entry["actor"]["type"].as_str().unwrap().to_owned(),
            entry["metadata"]["reason"].clone(),
        )
    });
    entries
        .filter(|(action, _, _)| action != "webhook_endpoint.created")
        .collect()
}
