//! Webhooks on their way: which events make deliveries, how they are signed, tried
//! again and given up, and that neither a death nor a loss costs one.

mod failing;
mod robust;
mod telling;

use std::collections::BTreeSet;

use serde_json::Value;
use waypost_core::config::Settings;
use waypost_core::ids::{Ids, OrganizationId, WebhookEndpointId};
use waypost_core::provider::kind::ProviderType;
use waypost_core::webhook::secret::SigningSecret;
use waypost_tests::{Receiver, TestApp};

/// An endpoint of a test.
struct Endpoint {
    id: WebhookEndpointId,
    secret: String,
}

async fn sending() -> TestApp {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    app
}

/// An active endpoint at the receiver, in the app's organization.
async fn subscribe(app: &TestApp, receiver: &Receiver, events: &[&str]) -> Endpoint {
    subscribe_as(app, app.organization_id(), &receiver.url(), events).await
}

async fn subscribe_as(
    app: &TestApp,
    organization_id: OrganizationId,
    url: &str,
    events: &[&str],
) -> Endpoint {
    let settings = Settings::from_map(&app.variables).unwrap();
    let ids = Ids::new(app.clock.clone());
    let (id, secret): (WebhookEndpointId, _) = (ids.next(), SigningSecret::generate(&ids));
    let sealed = hex::encode(secret.seal(&settings.sealer, organization_id, id));
    let events = events.join(",");
    let now = app.clock.now().to_rfc3339();
    app.execute(&format!(
        "INSERT INTO webhook_endpoints
             (id, organization_id, url, events, is_active, secret_sealed, created_at, updated_at)
         VALUES ('{id}', '{organization_id}', '{url}', '{{{events}}}', true, '\\x{sealed}', '{now}', '{now}')"
    ))
    .await;
    Endpoint {
        id,
        secret: secret.expose().to_owned(),
    }
}

/// Switches an endpoint on or off, as its owner does.
async fn set_active(app: &TestApp, endpoint: &Endpoint, is_active: bool) {
    let id = endpoint.id;
    app.execute(&format!(
        "UPDATE webhook_endpoints SET is_active = {is_active} WHERE id = '{id}'"
    ))
    .await;
}

async fn is_active(app: &TestApp, endpoint: &Endpoint) -> bool {
    let query = format!(
        "SELECT is_active FROM webhook_endpoints WHERE id = '{}'",
        endpoint.id
    );
    app.value(&query).await.as_deref() == Some("true")
}

/// How many deliveries have this status, and how many tries were made for them.
async fn deliveries(app: &TestApp, status: &str) -> (u64, u64) {
    let of = format!("FROM webhook_deliveries WHERE status = '{status}'");
    let count = number(app, &format!("SELECT count(*) {of}")).await;
    let attempts = number(app, &format!("SELECT coalesce(sum(attempts), 0) {of}")).await;
    (count, attempts)
}

async fn number(app: &TestApp, query: &str) -> u64 {
    app.value(query).await.unwrap().parse().unwrap()
}

/// Which events came for whom, each once.
fn gists(receiver: &Receiver) -> BTreeSet<(String, String)> {
    let received = receiver.received();
    let gists: BTreeSet<_> = received.iter().map(|webhook| webhook.gist()).collect();
    assert_eq!(gists.len(), received.len(), "something came twice");
    gists
}

fn gist(event: &str, recipient: &str) -> (String, String) {
    (event.to_owned(), recipient.to_owned())
}

/// What the audit log says of endpoints: action, actor and reason.
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
    entries.collect()
}
