//! Measures what webhooks promise, with real processes and real time:
//!
//! - the time from recording an event to its receipt, for a healthy endpoint alone,
//!   beside one with 10,000 deliveries waiting that refuses connections, and beside
//!   one that never answers;
//! - the rate of 20,000 deliveries to one fast receiver, and that of a bare loop of
//!   HTTP calls with the same body to the same receiver.
//!
//! ```text
//! cargo build --workspace --bins
//! WAYPOST_TEST_DATABASE_URL=… WAYPOST_TEST_REDIS_URL=… \
//!     cargo run -p waypost-tests --example measure_webhooks
//! ```

use std::collections::HashMap;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use uuid::Uuid;
use waypost_core::config::Settings;
use waypost_core::ids::{Ids, WebhookEndpointId};
use waypost_core::provider::kind::ProviderType;
use waypost_core::webhook::secret::SigningSecret;
use waypost_tests::{Answer, Receiver, TestApp, message_to, wait_within};

/// Events timed in each round.
const SAMPLES: usize = 500;
/// The pause between two of them.
const PACE: Duration = Duration::from_millis(15);
/// Deliveries that wait for a dead endpoint.
const BACKLOG: usize = 10_000;
/// Deliveries to the fast receiver.
const FLOOD: usize = 20_000;
/// Calls at once of the bare loop: as many as one endpoint gets of Waypost.
const CALLS: usize = 8;
/// Recipients of one message.
const RECIPIENTS: usize = 1_000;
/// Longer than anything here takes.
const WAIT: Duration = Duration::from_secs(300);

#[tokio::main]
async fn main() {
    let app = TestApp::builder().processes().start().await;
    let _api = app.spawn_api().await;
    app.connect(ProviderType::Sendgrid).await;
    let _scheduler = app.spawn_scheduler();
    let id = app.send_to("ada@example.org").await;
    let message: Uuid = id.parse().expect("an id");
    app.execute("DELETE FROM outbox").await;
    let _worker = app.spawn_worker();

    let healthy = Receiver::start().await;
    subscribe(&app, &healthy.url(), "DELIVERED").await;
    latencies(&app, &healthy, message).await; // Warms everything up.
    println!(
        "alone            {}",
        shown(latencies(&app, &healthy, message).await)
    );
    let refusing = Receiver::start().await.url();
    let endpoint = subscribe(&app, &refusing, "QUEUED").await;
    send_many(&app, BACKLOG).await;
    println!(
        "beside refusing  {}",
        shown(latencies(&app, &healthy, message).await)
    );
    remove(&app, endpoint).await;
    let silent = Receiver::counting().await;
    silent.answer(Answer::Silence);
    let endpoint = subscribe(&app, &silent.url(), "QUEUED").await;
    send_many(&app, BACKLOG).await;
    println!(
        "beside silent    {}",
        shown(latencies(&app, &healthy, message).await)
    );
    println!("alone again      {}", {
        remove(&app, endpoint).await;
        shown(latencies(&app, &healthy, message).await)
    });
    rates(&app).await;
    app.leave_work();
}

/// How fast Waypost and a bare loop call the same receiver.
async fn rates(app: &TestApp) {
    let fast = Receiver::counting().await;
    let endpoint = subscribe(app, &fast.url(), "QUEUED").await;
    app.execute(&format!(
        "UPDATE webhook_endpoints SET paused_until = 'infinity' WHERE id = '{endpoint}'"
    ))
    .await;
    send_many(app, FLOOD).await;
    app.execute(&format!(
        "UPDATE webhook_endpoints SET paused_until = NULL WHERE id = '{endpoint}'"
    ))
    .await;
    wait_within(WAIT, async || fast.count() > 0).await;
    let begun = Instant::now();
    wait_within(WAIT, async || fast.count() >= FLOOD).await;
    let own = rate(begun);
    let recorded = format!(
        "SELECT count(*) FROM webhook_deliveries WHERE webhook_endpoint_id = '{endpoint}' AND status = 'DELIVERED'"
    );
    let is_recorded = async || app.value(&recorded).await == Some(FLOOD.to_string());
    assert!(wait_within(WAIT, is_recorded).await, "all are recorded");
    println!(
        "to one receiver  {own:.0}/s, with all recorded {:.0}/s, over {} connections",
        rate(begun),
        fast.connections()
    );
    let bare = bare_rate(&fast.url()).await;
    println!(
        "a bare loop      {bare:.0}/s; Waypost reaches {:.2} of it",
        own / bare
    );
}

fn rate(begun: Instant) -> f64 {
    FLOOD as f64 / begun.elapsed().as_secs_f64()
}

async fn bare_rate(url: &str) -> f64 {
    let client = reqwest::Client::builder()
        .no_proxy()
        .build()
        .expect("a client can be made");
    let body = json!({
        "event": "QUEUED",
        "timestamp": "2026-11-21T06:11:07.000Z",
        "data": {
            "messageId": Uuid::nil(), "eventType": "QUEUED", "recipient": "r123@example.org",
            "from": "news@example.com", "subject": "Hello", "eventId": Uuid::nil(), "tags": [],
        },
    });
    let body = body.to_string();
    let begun = Instant::now();
    let loops = (0..CALLS).map(|_| {
        let (client, url, body) = (client.clone(), url.to_owned(), body.clone());
        tokio::spawn(async move {
            for _ in 0..FLOOD / CALLS {
                let call = client.post(&url).header("content-type", "application/json");
                let reply = call.body(body.clone()).send().await.expect("it answers");
                reply.bytes().await.expect("it answers");
            }
        })
    });
    for one in loops.collect::<Vec<_>>() {
        one.await.expect("a loop ends");
    }
    rate(begun)
}

/// How long events took from the beginning of their transaction to their receipt,
/// sorted.
async fn latencies(app: &TestApp, receiver: &Receiver, message: Uuid) -> Vec<Duration> {
    let ids = Ids::new(app.clock.clone());
    let (before, mut begun) = (receiver.count(), HashMap::new());
    let mut ticks = tokio::time::interval(PACE);
    for _ in 0..SAMPLES {
        ticks.tick().await;
        let id: Uuid = ids.next();
        begun.insert(id.to_string(), Instant::now());
        let organization = app.organization_id();
        app.execute(&format!(
            "INSERT INTO events (message_id, id, organization_id, position, event_type, occurred_at)
             VALUES ('{message}', '{id}', '{organization}', 0, 'DELIVERED', now())"
        ))
        .await;
    }
    let all = before + SAMPLES;
    assert!(
        wait_within(WAIT, async || receiver.count() >= all).await,
        "all came"
    );
    let received = receiver.received();
    let mut latencies: Vec<Duration> = received
        .iter()
        .filter_map(|webhook| {
            let id = webhook.json()["data"]["eventId"].as_str()?.to_owned();
            Some(webhook.at - *begun.get(&id)?)
        })
        .collect();
    latencies.sort_unstable();
    latencies
}

fn shown(sorted: Vec<Duration>) -> String {
    let at =
        |part: f64| sorted[((sorted.len() - 1) as f64 * part) as usize].as_secs_f64() * 1_000.0;
    format!(
        "{} events: p50 {:.1} ms, p90 {:.1} ms, p99 {:.1} ms, longest {:.1} ms",
        sorted.len(),
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0)
    )
}

/// Accepts messages to so many recipients in all; nothing is sent.
async fn send_many(app: &TestApp, recipients: usize) {
    for nth in 0..recipients / RECIPIENTS {
        let to: Vec<String> = (0..RECIPIENTS)
            .map(|place| format!("r{nth}-{place}@example.org"))
            .collect();
        let mut message = message_to("");
        message["to"] = json!(to);
        app.send(&message).await;
        app.execute("DELETE FROM outbox").await;
    }
}

async fn subscribe(app: &TestApp, url: &str, event: &str) -> WebhookEndpointId {
    let settings = Settings::from_map(&app.variables).expect("the settings are in order");
    let ids = Ids::new(app.clock.clone());
    let (id, organization): (WebhookEndpointId, _) = (ids.next(), app.organization_id());
    let sealed = SigningSecret::generate(&ids).seal(&settings.sealer, organization, id);
    let sealed = hex::encode(sealed);
    app.execute(&format!(
        "INSERT INTO webhook_endpoints
             (id, organization_id, url, events, is_active, secret_sealed, created_at, updated_at)
         VALUES ('{id}', '{organization}', '{url}', '{{{event}}}', true, '\\x{sealed}', now(), now())"
    ))
    .await;
    id
}

/// Removes an endpoint; what waits for it stays behind.
async fn remove(app: &TestApp, id: WebhookEndpointId) {
    app.execute(&format!("DELETE FROM webhook_endpoints WHERE id = '{id}'"))
        .await;
}
