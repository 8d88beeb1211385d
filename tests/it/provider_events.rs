//! Provider events, posted and signed as the providers do: which requests are accepted,
//! that events are recorded once and in any order, and how they change recipients. The
//! adapters' own tests cover how each provider's events are parsed.

mod evidence;
mod lossy;
mod order;
mod retried;
mod route;
mod suppressing;
mod together;
mod two_copies;
mod verdicts;

use std::sync::atomic::{AtomicU64, Ordering};

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::Method;
use serde_json::{Map, Value, json};
use sha2::Sha256;
use waypost_core::config::Settings;
use waypost_core::provider::event_secrets::EventSecrets;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider_account::store;
use waypost_core::secret::ExposeSecret;
use waypost_tests::{Caller, Reply, TestApp, credentials};

/// Numbers Mailgun's tokens, each for one request.
static TOKENS: AtomicU64 = AtomicU64::new(0);
const SIGNING_KEY: &str = "key-of-the-test";

/// An account and how its provider signs requests.
struct Account {
    id: String,
    path: String,
    voice: Voice,
}

enum Voice {
    Sendgrid(Box<EcdsaKeyPair>),
    Postmark { authorization: String },
    Mailgun,
}

/// Connects an account of a caller's organization. The test acts as its provider.
async fn connect(app: &TestApp, caller: &Caller, kind: ProviderType) -> Account {
    let mut body = json!({
        "providerType": kind, "displayName": "An account", "credentials": credentials(kind),
        "registerEventWebhook": false,
    });
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap();
    match kind {
        ProviderType::Sendgrid => {
            let der = pair.public_key().as_der().unwrap();
            body["eventSecrets"] = json!({ "publicKey": STANDARD.encode(der.as_ref()) });
        }
        ProviderType::Mailgun => body["eventSecrets"] = json!({ "signingKey": SIGNING_KEY }),
        ProviderType::Postmark => {}
        ProviderType::Ses | ProviderType::Smtp => panic!("not by a post of this test"),
    }
    let account = caller.post("/v1/providers", &body).await.data(201);
    let url = account["webhookUrl"].as_str().unwrap();
    let at = url.find("/v1/").unwrap();
    let path = url[at..].to_owned();
    let voice = match kind {
        ProviderType::Sendgrid => Voice::Sendgrid(Box::new(pair)),
        ProviderType::Mailgun => Voice::Mailgun,
        ProviderType::Postmark | ProviderType::Ses | ProviderType::Smtp => Voice::Postmark {
            authorization: basic(app, &path).await,
        },
    };
    Account {
        id: account["id"].as_str().unwrap().to_owned(),
        path,
        voice,
    }
}

/// The `Authorization` header with the user name and password that Postmark was given.
async fn basic(app: &TestApp, path: &str) -> String {
    let settings = Settings::from_map(&app.variables).unwrap();
    let mut connection = app.pool.acquire().await.unwrap();
    let (_, token) = path.rsplit_once('/').unwrap();
    let found = store::find_by_event_token(&mut connection, token).await;
    let (account, sealed) = found.unwrap().unwrap();
    let secrets = account
        .open_event_secrets(&settings.sealer, &sealed.unwrap())
        .unwrap();
    let EventSecrets::Postmark { username, password } = secrets else {
        panic!("not Postmark's");
    };
    let pair = format!("{username}:{}", password.expose_secret());
    format!("Basic {}", STANDARD.encode(pair))
}

impl Account {
    /// Posts an event with a valid signature.
    async fn post(&self, app: &TestApp, content: &Value) -> Reply {
        self.post_to(app.caller(), app, content).await
    }

    async fn post_to(&self, caller: &Caller, app: &TestApp, content: &Value) -> Reply {
        let content = content.to_string();
        self.post_bytes(caller, app, content.as_bytes()).await
    }

    /// Posts bytes with a valid signature: an array of events for SendGrid, one event for
    /// the others.
    async fn post_bytes(&self, caller: &Caller, app: &TestApp, content: &[u8]) -> Reply {
        let seconds = app.clock.now().timestamp().to_string();
        let mut headers: Vec<(&str, String)> = Vec::new();
        let mut body = content.to_vec();
        match &self.voice {
            Voice::Sendgrid(pair) => {
                let signed = [seconds.as_bytes(), &body].concat();
                let signature = pair.sign(&SystemRandom::new(), &signed).unwrap();
                let name = "x-twilio-email-event-webhook-signature";
                headers.push((name, STANDARD.encode(signature.as_ref())));
                headers.push(("x-twilio-email-event-webhook-timestamp", seconds));
            }
            Voice::Postmark { authorization } => {
                headers.push(("authorization", authorization.clone()));
            }
            Voice::Mailgun => {
                let token = format!("token-{}", TOKENS.fetch_add(1, Ordering::Relaxed));
                let signature = mailgun_signature(&seconds, &token);
                let before = format!("{{\"signature\":{signature},\"event-data\":");
                body = [before.as_bytes(), content, b"}"].concat();
            }
        }
        let caller = caller.anonymous();
        let reply = caller.call(Method::POST, &self.path, |request| {
            let request = request.header("content-type", "application/json");
            let signed = headers.iter().fold(request, |request, (name, value)| {
                request.header(*name, value)
            });
            signed.body(body)
        });
        reply.await
    }

    /// Posts an event that must be accepted.
    async fn tell(&self, app: &TestApp, content: &Value) {
        let body = self.post(app, content).await.expect(200);
        assert_eq!(body, json!({ "success": true }));
    }
}

fn mailgun_signature(seconds: &str, token: &str) -> Value {
    let mut mac = Hmac::<Sha256>::new_from_slice(SIGNING_KEY.as_bytes()).unwrap();
    mac.update(format!("{seconds}{token}").as_bytes());
    let signature = hex::encode(mac.finalize().into_bytes());
    json!({ "timestamp": seconds, "token": token, "signature": signature })
}

/// Waypost's ids of the latest attempt for a recipient, as sent to the provider.
async fn ids_of(app: &TestApp, message_id: &str, position: i32) -> Map<String, Value> {
    let attempt = format!(
        "SELECT id FROM send_attempts WHERE message_id = '{message_id}' AND position = {position}
         ORDER BY started_at DESC, id DESC LIMIT 1"
    );
    let attempt = app.value(&attempt).await.expect("there was an attempt");
    tags(message_id, position, &attempt)
}

fn tags(message_id: &str, position: i32, attempt: &str) -> Map<String, Value> {
    let ids = json!({
        "waypost_message": message_id,
        "waypost_recipient": position.to_string(),
        "waypost_attempt": attempt,
    });
    ids.as_object().unwrap().clone()
}

/// An event of SendGrid, so many seconds from now.
fn event(app: &TestApp, ids: &Map<String, Value>, kind: &str, id: &str, after: i64) -> Value {
    let mut event = ids.clone();
    event.insert("event".to_owned(), json!(kind));
    event.insert("sg_event_id".to_owned(), json!(id));
    event.insert(
        "timestamp".to_owned(),
        json!(app.clock.now().timestamp() + after),
    );
    event.insert("email".to_owned(), json!("someone@example.org"));
    Value::Object(event)
}

async fn number(app: &TestApp, query: &str) -> i64 {
    app.value(query).await.unwrap().parse().unwrap()
}

/// The totals of the metrics: sent, delivered, opened, clicked, bounced, complained,
/// unsubscribed.
async fn totals(app: &TestApp) -> [i64; 7] {
    let summary = app.get("/v1/metrics/summary").await.data(200);
    [
        "totalSent",
        "totalDelivered",
        "totalOpened",
        "totalClicked",
        "totalBounced",
        "totalComplained",
        "totalUnsubscribed",
    ]
    .map(|name| summary[name].as_i64().unwrap())
}

/// The numbers of acknowledged events that were not recorded: of unknown messages, and
/// unreadable ones.
async fn unrecorded(app: &TestApp, account: &Account) -> (i64, i64) {
    let query = |column| {
        format!(
            "SELECT coalesce(sum({column}), 0) FROM unrecorded_event_counts WHERE provider_account_id = '{}'",
            account.id
        )
    };
    (
        number(app, &query("unmatched")).await,
        number(app, &query("unreadable")).await,
    )
}
