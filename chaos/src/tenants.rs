//! The organizations that send, configured through the API as by a customer.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::time::Instant;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::credentials;

use crate::plan::{PROVIDERS, Plan, Policy};
use crate::receiver::Receiver;

/// Time limit of the first response of an API, and of the first event of a provider.
const READY_MAX: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Addresses per import.
const IMPORTED_MAX: usize = 10_000;

/// An organization, with its accounts, rules and webhook endpoint.
#[derive(Debug)]
pub(crate) struct Tenant {
    pub(crate) key: String,
    /// The `onUnknown` policy of each rule.
    pub(crate) policies: Vec<Policy>,
    pub(crate) receiver: Arc<Receiver>,
    /// A template with the variable `name`.
    pub(crate) template_id: String,
    endpoint_id: String,
}

/// Configures organizations.
#[derive(Debug)]
pub(crate) struct Configurator {
    pub(crate) http: Client,
    pub(crate) api: String,
    pub(crate) simulator: String,
    pub(crate) policies: Vec<Policy>,
}

impl Configurator {
    /// Configures an organization: an account of each type, a rule for each account,
    /// suppressions, a webhook endpoint for all events, and a template.
    pub(crate) async fn configure(
        &self,
        nth: usize,
        key: String,
        plan: &Plan,
        receiver: Arc<Receiver>,
    ) -> Tenant {
        let mut accounts = Vec::new();
        for kind in PROVIDERS {
            accounts.push(self.connect(nth, &key, kind).await);
        }
        let mut policies = Vec::new();
        for rule in 0..PROVIDERS.len() {
            let policy = self.policies[(nth + rule) % self.policies.len()];
            self.add_rule(&key, rule, &accounts, policy).await;
            policies.push(policy);
        }
        for emails in plan.suppressed(nth).chunks(IMPORTED_MAX) {
            let body = json!({ "emails": emails });
            self.call(&key, Method::POST, "/v1/suppressions/import", &body)
                .await;
        }
        let endpoint_id = self.add_endpoint(&key, &receiver).await;
        let template_id = self.add_template(&key).await;
        Tenant {
            key,
            policies,
            receiver,
            template_id,
            endpoint_id,
        }
    }

    /// Replays an endpoint's pending webhooks, as its owner may: they become due at once,
    /// not after the minutes of the retry schedule.
    pub(crate) async fn replay_pending(&self, tenant: &Tenant, since: &str, until: &str) -> u64 {
        let path = format!("/v1/webhook-endpoints/{}/replay", tenant.endpoint_id);
        let body = json!({ "since": since, "until": until, "status": "PENDING" });
        let answer = self.call(&tenant.key, Method::POST, &path, &body).await;
        answer["data"]["replayed"].as_u64().unwrap_or_default()
    }

    /// The highest of an organization's rates, computed from its totals: the API caps
    /// rates at 1.
    pub(crate) async fn highest_rate(&self, tenant: &Tenant) -> f64 {
        let path = "/v1/metrics/summary";
        let answer = self
            .call(&tenant.key, Method::GET, path, &Value::Null)
            .await;
        let total = |name: &str| {
            let total = answer["data"][name].as_f64();
            total.expect("the summary has this total")
        };
        let rates = [
            ("totalDelivered", "totalSent"),
            ("totalBounced", "totalSent"),
            ("totalOpened", "totalDelivered"),
            ("totalClicked", "totalOpened"),
        ];
        rates
            .iter()
            .map(|(part, whole)| total(part) / total(whole).max(1.0))
            .fold(0.0, f64::max)
    }

    async fn connect(&self, nth: usize, key: &str, kind: ProviderType) -> String {
        let body = json!({
            "providerType": kind.as_str(),
            "displayName": format!("{kind} {nth}"),
            "credentials": own_credentials(nth, kind),
        });
        let account = self.call(key, Method::POST, "/v1/providers", &body).await;
        let id = text(&account["data"]["id"]);
        let path = format!("/v1/providers/{id}");
        match kind {
            // An SMTP server reports no events.
            ProviderType::Smtp => {}
            ProviderType::Ses => {
                let topic = topic(nth);
                let body = json!({ "eventSecrets": { "topicArn": topic } });
                self.call(key, Method::PATCH, &path, &body).await;
                self.subscribe(nth, &topic, &account["data"]["webhookUrl"])
                    .await;
                self.wait_until_verified(key, &path).await;
            }
            ProviderType::Sendgrid | ProviderType::Postmark | ProviderType::Mailgun => {
                let path = format!("{path}/event-webhook");
                self.call(key, Method::POST, &path, &json!({})).await;
            }
        }
        id
    }

    /// Does what an operator does in Amazon's console.
    async fn subscribe(&self, nth: usize, topic: &str, url: &Value) {
        let body = json!({
            "topicArn": topic, "url": url, "configurationSet": configuration_set(nth),
        });
        let url = format!("{}/sns/subscriptions", self.simulator);
        let answer = self.http.post(url).json(&body).send().await;
        let answer = answer.expect("the simulator answers");
        assert!(answer.status().is_success(), "{}", answer.status());
    }

    async fn wait_until_verified(&self, key: &str, path: &str) {
        let end = Instant::now() + READY_MAX;
        while self.call(key, Method::GET, path, &Value::Null).await["data"]["eventsVerified"]
            != true
        {
            assert!(
                Instant::now() < end,
                "SNS is not confirmed within {READY_MAX:?}"
            );
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    async fn add_rule(&self, key: &str, rule: usize, accounts: &[String], policy: Policy) {
        let fallbacks = [1, 2].map(|step| &accounts[(rule + step) % accounts.len()]);
        let body = json!({
            "name": format!("Route {rule}"),
            "tags": [tag(rule)],
            "providerAccountId": accounts[rule],
            "fallbackProviderAccountIds": fallbacks,
            "onUnknown": policy.name(),
        });
        self.call(key, Method::POST, "/v1/routing-rules", &body)
            .await;
    }

    async fn add_template(&self, key: &str) -> String {
        let path = "/v1/templates";
        let body = json!({ "name": "Chaos" });
        let template = self.call(key, Method::POST, path, &body).await;
        let id = text(&template["data"]["id"]);
        let body = json!({ "htmlContent": "<p>Hello {{name}}</p>", "textContent": "" });
        self.call(key, Method::POST, &format!("{path}/{id}/versions"), &body)
            .await;
        id
    }

    async fn add_endpoint(&self, key: &str, receiver: &Receiver) -> String {
        let body = json!({
            "url": receiver.url(),
            "events": [
                "QUEUED", "SENT", "DELIVERED", "OPENED", "CLICKED", "BOUNCED", "COMPLAINED",
                "UNSUBSCRIBED", "DROPPED", "DEFERRED",
            ],
        });
        let path = "/v1/webhook-endpoints";
        let endpoint = self.call(key, Method::POST, path, &body).await;
        receiver.set_secret(&text(&endpoint["data"]["secret"]));
        text(&endpoint["data"]["id"])
    }

    /// Calls the API, which must respond with success.
    async fn call(&self, key: &str, method: Method, path: &str, body: &Value) -> Value {
        let mut request = self
            .http
            .request(method, format!("{}{path}", self.api))
            .bearer_auth(key);
        if !body.is_null() {
            request = request.json(body);
        }
        let answer = request.send().await.expect("the API answers");
        let status = answer.status();
        let answer: Value = answer.json().await.unwrap_or_default();
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    }
}

/// Waits until an API is ready.
pub(crate) async fn wait_until_ready(http: &Client, api: &str) {
    let end = Instant::now() + READY_MAX;
    loop {
        let answer = http.get(format!("{api}/readyz")).send().await;
        if answer.is_ok_and(|answer| answer.status().is_success()) {
            return;
        }
        assert!(
            Instant::now() < end,
            "{api} is not ready within {READY_MAX:?}"
        );
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The tag that selects a rule.
pub(crate) fn tag(rule: usize) -> String {
    format!("route-{rule}")
}

fn configuration_set(nth: usize) -> String {
    format!("chaos-{nth}")
}

fn topic(nth: usize) -> String {
    format!("arn:aws:sns:eu-central-1:123456789012:chaos-{nth}")
}

/// Credentials unique to an organization: the simulator uses them to choose the receiver
/// of an event.
fn own_credentials(nth: usize, kind: ProviderType) -> Value {
    let mut own = credentials(kind);
    match kind {
        ProviderType::Sendgrid => own["apiKey"] = json!(format!("SG.chaos-{nth}")),
        ProviderType::Postmark => own["serverToken"] = json!(format!("chaos-{nth}")),
        ProviderType::Mailgun => own["apiKey"] = json!(format!("chaos-{nth}")),
        ProviderType::Ses => {
            own["accessKeyId"] = json!(format!("AKIACHAOS{nth}"));
            own["configurationSet"] = json!(configuration_set(nth));
        }
        // Without TLS, as in `make up`: the simulator has no certificate that is trusted.
        ProviderType::Smtp => own["tls"] = json!("none"),
    }
    own
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
