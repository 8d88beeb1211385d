//! The whole round trip: an account is connected and registered through the API, messages
//! go to the simulator, and the simulator reports events as the providers do. The tests
//! post nothing themselves, except as SNS.

mod doubt;
mod health;
mod shared;
mod sns;
mod stories;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::CallbackSettings;
use waypost_tests::{TestApp, credentials, wait_until};

const TOPIC: &str = "arn:aws:sns:eu-central-1:123456789012:ses-events";
const CONFIGURATION_SET: &str = "waypost";

/// The simulator's controls, besides accepting mail.
struct Simulated {
    http: reqwest::Client,
    url: String,
}

impl Simulated {
    fn of(app: &TestApp) -> Self {
        let http = reqwest::Client::builder().no_proxy().build();
        Self {
            http: http.unwrap(),
            url: app.simulator().url(),
        }
    }

    /// Subscribes a URL to the topic, as an operator does in the console.
    async fn subscribe(&self, url: &str, signature_version: &str) {
        let body = json!({
            "topicArn": TOPIC,
            "url": url,
            "configurationSet": CONFIGURATION_SET,
            "signatureVersion": signature_version,
        });
        let path = format!("{}/sns/subscriptions", self.url);
        let answer = self.http.post(path).json(&body).send().await.unwrap();
        assert_eq!(answer.status(), 201);
    }

    /// Visits a `SubscribeURL`.
    async fn confirm(&self, subscribe_url: &str) {
        let (_, query) = subscribe_url.split_once('?').unwrap();
        let url = format!("{}/?{query}", self.url);
        let answer = self.http.get(url).send().await.unwrap();
        assert_eq!(answer.status(), 200);
    }
}

/// An app whose provider answers late only if a story wants it.
async fn start() -> TestApp {
    TestApp::builder()
        .setting("WAYPOST_PROVIDER_TIMEOUT", "1s")
        .start()
        .await
}

/// Connects an account and sets up its event webhook, as its owner does.
async fn register(app: &TestApp, kind: ProviderType) -> String {
    let id = connect(app, kind).await;
    if kind == ProviderType::Ses {
        let url = account(app, &id).await["webhookUrl"].clone();
        let simulated = Simulated::of(app);
        simulated.subscribe(url.as_str().unwrap(), "2").await;
        wait_until_verified(app, &id).await;
    }
    id
}

/// The same without the subscription that SES needs.
async fn connect(app: &TestApp, kind: ProviderType) -> String {
    let mut credentials = credentials(kind);
    if kind == ProviderType::Ses {
        credentials["configurationSet"] = json!(CONFIGURATION_SET);
    }
    let id = app.connect_with(kind, &credentials).await;
    let path = format!("/v1/providers/{id}/event-webhook");
    let answer = app.caller().post_empty(&path).await.data(200);
    assert_eq!(answer["registered"], kind != ProviderType::Ses, "{answer}");
    if kind == ProviderType::Ses {
        let body = json!({ "eventSecrets": { "topicArn": TOPIC } });
        app.patch(&format!("/v1/providers/{id}"), &body)
            .await
            .data(200);
    }
    assert_eq!(account(app, &id).await["eventsVerified"], false, "{kind}");
    id
}

async fn account(app: &TestApp, id: &str) -> Value {
    app.get(&format!("/v1/providers/{id}")).await.data(200)
}

async fn wait_until_verified(app: &TestApp, id: &str) {
    wait_until("the account's events are verified", async || {
        account(app, id).await["eventsVerified"] == true
    })
    .await;
}

/// Waits until everything was sent and all events were reported.
async fn wait_until_told(app: &TestApp) {
    app.drain().await;
    wait_until("the simulator has reported all events", async || {
        app.simulator().callbacks().waiting == 0
    })
    .await;
}

/// The existing suppressions: the hash of the address, and the source.
async fn suppressions(app: &TestApp) -> BTreeMap<String, String> {
    let list = app.get("/v1/suppressions?limit=100").await.data(200);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = list.as_array().unwrap().iter();
    list.map(|one| (text(&one["emailHash"]), text(&one["source"])))
        .collect()
}

/// Faults that are otherwise random always occur.
fn hostile() -> CallbackSettings {
    CallbackSettings {
        duplicate_rate: 0.5,
        shuffle: true,
        // Many small requests of SendGrid, so that some are repeated.
        batch_events_max: 2,
        ..CallbackSettings::default()
    }
}

async fn number(app: &TestApp, query: &str) -> i64 {
    app.value(query).await.unwrap().parse().unwrap()
}
