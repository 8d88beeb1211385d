//! The live Waypost, its simulator, and the proxy between.

use std::collections::HashSet;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::TryStreamExt;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use waypost::types::{
    ConnectProviderRequest, MessageStatus, ProviderType, SendMessageRequest, SendgridCredentials, UnverifiedDomains,
    UpdateSettingsRequest,
};
use waypost::{Error, Options, Waypost, reqwest, serde_json};

/// A text that no other run has.
pub(crate) static RUN: LazyLock<String> =
    LazyLock::new(|| format!("{:x}", waypost::chrono::Utc::now().timestamp_millis()));
static NAMES: AtomicU32 = AtomicU32::new(0);
static PREPARED: OnceCell<()> = OnceCell::const_new();

pub(crate) fn need(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run scripts/test-sdks.sh"))
}

/// A client of the live Waypost, which accepts mail from any domain and has an account to send by.
pub(crate) async fn live() -> Waypost {
    let waypost = Waypost::from_env().unwrap();
    PREPARED
        .get_or_init(async || {
            let settings = UpdateSettingsRequest::new().unverified_domains(UnverifiedDomains::Accept);
            waypost.settings().update(&settings).await.unwrap();
            if waypost.providers().list().await.unwrap().data.is_empty() {
                let credentials = SendgridCredentials::new("SG.simulator");
                let account = ConnectProviderRequest::new(ProviderType::Sendgrid, "Simulated", credentials);
                waypost.providers().create(&account).await.unwrap();
            }
        })
        .await;
    waypost
}

/// A way through the proxy, with rules of its own.
pub(crate) struct Proxied {
    pub(crate) name: String,
    pub(crate) client: Waypost,
}

impl Proxied {
    /// A client by the proxy, which does as the rules say.
    pub(crate) async fn new(rules: Value) -> Self {
        Self::with(rules, Options::default()).await
    }

    pub(crate) async fn with(rules: Value, options: Options) -> Self {
        live().await;
        let name = format!("rs-{}-{}", *RUN, NAMES.fetch_add(1, Ordering::Relaxed));
        let proxy = need("CONFORMANCE_PROXY_URL");
        let control = reqwest::Client::new().put(format!("{proxy}/control/{name}"));
        control.body(json!({ "rules": rules }).to_string()).send().await.unwrap();
        let base_url = Some(format!("{proxy}/s/{name}/"));
        Self { client: Waypost::with(Options { base_url, ..options }).unwrap(), name }
    }

    pub(crate) fn hook(&self) -> String {
        format!("{}/hook/{}", need("CONFORMANCE_PROXY_URL"), self.name)
    }

    /// What the proxy recorded: `requests` or `hooks`.
    pub(crate) async fn seen(&self, what: &str) -> Vec<Value> {
        let seen = fetch(&format!("{}/control/{}", need("CONFORMANCE_PROXY_URL"), self.name)).await;
        seen[what].as_array().unwrap().clone()
    }

    pub(crate) async fn requests(&self) -> Vec<Value> {
        self.seen("requests").await
    }
}

/// How many different idempotency keys the requests have.
pub(crate) fn keys(requests: &[Value]) -> usize {
    let keys = requests.iter().map(|request| request["idempotencyKey"].as_str().expect("a key"));
    keys.collect::<HashSet<_>>().len()
}

/// A rule of the proxy: it answers itself.
pub(crate) fn answer(status: u16, body: Value, headers: Value) -> Value {
    json!({ "answer": { "status": status, "headers": headers, "body": body } })
}

/// A rule of the proxy: the answer is an error of Waypost.
pub(crate) fn refusal(status: u16, code: &str, details: Value) -> Value {
    let error = json!({ "code": code, "message": "No.", "details": details });
    answer(status, json!({ "error": error }), json!({ "X-Request-Id": "request-1" }))
}

/// The rule, without end.
pub(crate) fn always(mut rule: Value) -> Value {
    rule["times"] = json!(0);
    rule
}

pub(crate) fn mail() -> SendMessageRequest {
    mail_to(&format!("ada-{}@example.org", *RUN))
}

pub(crate) fn mail_to(address: &str) -> SendMessageRequest {
    SendMessageRequest::new(address).from("Shop <shop@example.com>").subject("Hello").text("Hello, Ada")
}

/// Sends a mail, and gives the id of its message.
pub(crate) async fn send(client: &Waypost, mail: &SendMessageRequest) -> String {
    client.messages().send(mail).await.unwrap().message_id.expect("it is not suppressed")
}

pub(crate) async fn count_with_tag(tag: &str) -> usize {
    let found: Vec<_> = live().await.messages().list().tag(tag).stream().try_collect().await.unwrap();
    found.len()
}

/// How many mails the simulator got for an address.
pub(crate) async fn captured_to(address: &str) -> usize {
    let found = fetch(&format!("{}/captured?to={}", need("SIMULATOR_URL"), address.replace('@', "%40"))).await;
    found["messages"].as_array().unwrap().len()
}

pub(crate) async fn delivered(id: &str) {
    let waypost = live().await;
    until("the delivery", async || {
        let message = waypost.messages().get(id).await.unwrap();
        (message.status == MessageStatus::Delivered).then_some(())
    })
    .await;
}

/// Asks until there is a value, for 15 seconds.
pub(crate) async fn until<T>(what: &str, ask: impl AsyncFn() -> Option<T>) -> T {
    for _ in 0..150 {
        if let Some(value) = ask().await {
            return value;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what} did not happen within 15 seconds");
}

pub(crate) async fn fetch(url: &str) -> Value {
    let text = reqwest::get(url).await.unwrap().text().await.unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The code of an error, as text.
pub(crate) fn code(error: &Error) -> String {
    error.answer().map(|answer| answer.code.to_string()).unwrap_or_default()
}

pub(crate) fn reason(error: &Error) -> String {
    let reason = error.answer().and_then(|answer| answer.reason.as_ref());
    reason.map(ToString::to_string).unwrap_or_default()
}
