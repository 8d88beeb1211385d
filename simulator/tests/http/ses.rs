use chrono::{TimeDelta, Utc};
use hmac::{Hmac, KeyInit, Mac};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use waypost_simulator::{DEFAULT_SES_SECRET, Provider};

use crate::support::{Seen, World, assert_cut, assert_silent, seen};

const SEND: &str = "/v2/email/outbound-emails";

/// A caller with a second, independent implementation of the signature.
pub(crate) struct Signer {
    key: &'static str,
    secret: &'static str,
    age: TimeDelta,
}

impl Signer {
    pub(crate) fn new(key: &'static str) -> Self {
        Self {
            key,
            secret: DEFAULT_SES_SECRET,
            age: TimeDelta::zero(),
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "signatures expire by the real time"
    )]
    fn request(&self, world: &World, method: &str, path: &str, body: Vec<u8>) -> RequestBuilder {
        let url = world.url(path);
        let host = world.simulator.url().replace("http://", "");
        let at = (Utc::now() - self.age).format("%Y%m%dT%H%M%SZ").to_string();
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let canonical = format!(
            "{method}\n{}\n{query}\nhost:{host}\nx-amz-date:{at}\n\nhost;x-amz-date\n{}",
            path.replace('%', "%25"),
            hex::encode(Sha256::digest(&body))
        );
        let scope = format!("{}/eu-west-1/ses/aws4_request", &at[..8]);
        let digest = hex::encode(Sha256::digest(canonical));
        let to_sign = format!("AWS4-HMAC-SHA256\n{at}\n{scope}\n{digest}");
        let mut key = format!("AWS4{}", self.secret).into_bytes();
        for part in scope.split('/').chain([to_sign.as_str()]) {
            let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("any length is fine");
            mac.update(part.as_bytes());
            key = mac.finalize().into_bytes().to_vec();
        }
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders=host;x-amz-date, Signature={}",
            self.key,
            hex::encode(key)
        );
        let method = method.parse().expect("is a method");
        let request = world.client.request(method, url);
        let request = request
            .header("x-amz-date", at)
            .header("authorization", authorization);
        request
            .header("content-type", "application/json")
            .body(body)
    }

    pub(crate) fn send(&self, world: &World, email: &Value) -> RequestBuilder {
        self.request(world, "POST", SEND, email.to_string().into_bytes())
    }

    fn get(&self, world: &World, path: &str) -> RequestBuilder {
        self.request(world, "GET", path, Vec::new())
    }
}

pub(crate) fn email(to: &str) -> Value {
    json!({
        "FromEmailAddress": "Example <hello@example.com>",
        "Destination": {"ToAddresses": [to]},
        "ReplyToAddresses": ["answers@example.com"],
        "Content": {"Simple": {
            "Subject": {"Data": "Grüße", "Charset": "UTF-8"},
            "Body": {"Text": {"Data": "Hi"}, "Html": {"Data": "<p>Hi</p>"}},
            "Headers": [{"Name": "X-One", "Value": "1"}],
            "Attachments": [{"RawContent": "aGVsbG8=", "FileName": "a.txt"}],
        }},
        "EmailTags": [{"Name": "wp_id", "Value": "1"}],
    })
}

fn error_name(answer: &Seen) -> &str {
    answer.header("x-amzn-errortype")
}

#[tokio::test]
async fn a_valid_send_is_accepted_and_captured() {
    let world = World::new();
    let answer = seen(Signer::new("AKID").send(&world, &email("ann@example.org"))).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let recipient = world.only_recipient("ann@example.org");
    assert_eq!(recipient.provider, Provider::Ses);
    assert_eq!(answer.json()["MessageId"], recipient.provider_message_id);
    assert_eq!(recipient.from, "Example <hello@example.com>");
    assert_eq!(recipient.subject, "Grüße");
    assert_eq!(recipient.headers["Reply-To"], "answers@example.com");
    assert_eq!(recipient.headers["X-One"], "1");
    assert_eq!(recipient.metadata["wp_id"], "1");
    assert_eq!(recipient.attachments[0].bytes, 5);
}

#[tokio::test]
async fn a_raw_message_is_parsed_as_far_as_needed() {
    let world = World::new();
    let raw = "From: hello@example.com\r\nTo: ann@example.org\r\nSubject: Raw\r\n\r\nHi\r\n";
    let raw = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, raw);
    let email = json!({"Content": {"Raw": {"Data": raw}}});
    let answer = seen(Signer::new("AKID").send(&world, &email)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(world.only_recipient("ann@example.org").subject, "Raw");
}

#[tokio::test]
async fn signatures_are_verified() {
    let world = World::new();
    let body = email("ann@example.org");
    let unsigned = seen(world.post(SEND).json(&body)).await;
    assert_eq!(unsigned.status, 403);
    assert_eq!(error_name(&unsigned), "MissingAuthenticationTokenException");
    let mut signer = Signer::new("AKIDOTHER");
    signer.secret = "another";
    let wrong = seen(signer.send(&world, &body)).await;
    assert_eq!(wrong.status, 403);
    assert_eq!(error_name(&wrong), "InvalidSignatureException");
    world
        .simulator
        .register_ses_credential("AKIDOTHER", "another");
    assert_eq!(seen(signer.send(&world, &body)).await.status, 200);
    signer.age = TimeDelta::minutes(16);
    let old = seen(signer.send(&world, &body)).await;
    assert_eq!(error_name(&old), "RequestExpired");
    let changed = Signer::new("AKID").send(&world, &body).body("{}");
    assert_eq!(seen(changed).await.status, 403);
}

#[tokio::test]
async fn mistakes_are_bad_requests() {
    let world = World::new();
    let signer = Signer::new("AKID");
    let fifty_one: Vec<_> = (0..51).map(|at| format!("a{at}@x.test")).collect();
    let header = |name: &str, value: &str| json!([{"Name": name, "Value": value}]);
    let sixteen = vec![json!({"Name": "X-One", "Value": "1"}); 16];
    let cases = [
        ("/Content", json!({})),
        ("/Content/Raw", json!({"Data": "aGVsbG8="})),
        ("/Content/Simple/Body", json!({})),
        ("/Content/Simple/Headers", json!(sixteen)),
        ("/Content/Simple/Headers", header("X-One", "ü")),
        ("/Content/Simple/Headers", header("X:One", "1")),
        ("/Content/Simple/Headers", header("X-One", &"x".repeat(992))),
        ("/FromEmailAddress", json!("Grüße <hello@example.com>")),
        ("/FromEmailAddress", json!(null)),
        ("/Destination/ToAddresses", json!(fifty_one)),
        ("/Destination/ToAddresses", json!(["jürgen@example.org"])),
        ("/Destination/ToAddresses", json!(["a@münchen.test"])),
        ("/Destination/ToAddresses", json!([])),
        ("/EmailTags", json!([{"Name": "tag", "Value": "a@b"}])),
    ];
    for (pointer, value) in cases {
        let mut body = email("ann@example.org");
        let (parent, name) = pointer.rsplit_once('/').unwrap_or_default();
        if let Some(parent) = body.pointer_mut(parent) {
            parent[name] = value.clone();
        }
        let answer = seen(signer.send(&world, &body)).await;
        assert_eq!(answer.status, 400, "{pointer} {value}");
        assert_eq!(
            error_name(&answer),
            "BadRequestException",
            "{pointer} {value}"
        );
    }
    let broken = signer.request(&world, "POST", SEND, b"{".to_vec());
    assert_eq!(error_name(&seen(broken).await), "SerializationException");
    let mut template = email("ann@example.org");
    template["Content"] = json!({"Template": {"TemplateName": "welcome"}});
    assert_eq!(
        error_name(&seen(signer.send(&world, &template)).await),
        "NotFoundException"
    );
    assert_eq!(world.simulator.captured_count(), 0);
}

#[tokio::test]
async fn keys_behave_as_their_names_say() {
    let world = World::new();
    let account = "/v2/email/account";
    let body = email("ann@example.org");
    let invalid = seen(Signer::new("AKIDinvalid").get(&world, account)).await;
    assert_eq!(invalid.status, 403);
    assert_eq!(error_name(&invalid), "UnrecognizedClientException");
    let restricted = Signer::new("AKIDrestricted");
    for path in [
        account,
        "/v2/email/identities",
        "/v2/email/identities/example.com",
    ] {
        let denied = seen(restricted.get(&world, path)).await;
        assert_eq!(denied.status, 403);
        assert_eq!(error_name(&denied), "AccessDeniedException");
    }
    assert_eq!(seen(restricted.send(&world, &body)).await.status, 200);
    let poor = Signer::new("AKIDnocredit");
    let paused = seen(poor.send(&world, &body)).await;
    assert_eq!(error_name(&paused), "SendingPausedException");
    assert_eq!(
        seen(poor.get(&world, account)).await.json()["SendingEnabled"],
        false
    );
    let wall = seen(Signer::new("AKIDhtmlwall").get(&world, account)).await;
    assert!(wall.text.contains("<html>"));
    let good = seen(Signer::new("AKID").get(&world, account)).await.json();
    assert_eq!(good["SendingEnabled"], true);
    assert!(good["SendQuota"]["MaxSendRate"].is_number());
}

#[tokio::test]
async fn identities_are_listed_in_pages_and_found() {
    let world = World::new();
    let signer = Signer::new("AKID");
    let identities = ["example.com", "one@example.com", "unverified.test"];
    world
        .simulator
        .set_domains(Provider::Ses, "AKID", &identities);
    let page = seen(signer.get(&world, "/v2/email/identities?PageSize=2"))
        .await
        .json();
    assert_eq!(page["EmailIdentities"][1]["IdentityType"], "EMAIL_ADDRESS");
    let token = page["NextToken"].as_str().unwrap_or_default();
    let path = format!("/v2/email/identities?NextToken={token}&PageSize=2");
    let last = seen(signer.get(&world, &path)).await.json();
    assert_eq!(last["EmailIdentities"][0]["VerificationStatus"], "PENDING");
    assert!(last["NextToken"].is_null());
    let one = seen(signer.get(&world, "/v2/email/identities/one%40example.com"))
        .await
        .json();
    assert_eq!(one["VerifiedForSendingStatus"], true);
    let missing = seen(signer.get(&world, "/v2/email/identities/other.test")).await;
    assert_eq!(error_name(&missing), "NotFoundException");
    let unknown = seen(signer.get(&world, "/v2/email/nothing")).await;
    assert_eq!(unknown.status, 404);
}

#[tokio::test]
async fn recipients_and_senders_behave_as_their_names_say() {
    let world = World::new();
    let signer = Signer::new("AKID");
    let to = |address: &str| signer.send(&world, &email(address));
    let throttled = seen(to("throttle@x.test")).await;
    assert_eq!(throttled.status, 429);
    assert_eq!(error_name(&throttled), "TooManyRequestsException");
    assert_eq!(seen(to("error@x.test")).await.status, 500);
    assert_eq!(
        error_name(&seen(to("refuse@x.test")).await),
        "MessageRejected"
    );
    let mut body = email("ann@example.org");
    body["FromEmailAddress"] = json!("a@unverified.example.net");
    let rejected = seen(signer.send(&world, &body)).await;
    assert_eq!(error_name(&rejected), "MessageRejected");
    assert!(
        rejected
            .text
            .contains("EU-WEST-1: a@unverified.example.net")
    );
    assert_eq!(world.simulator.captured_count(), 0);
    assert_silent(to("timeout@x.test")).await;
    assert_cut(to("reset@x.test")).await;
    assert_eq!(world.recipient_count("timeout@x.test"), 1);
    assert!(world.recipient_count("reset@x.test") >= 1);
    assert_eq!(seen(to("flaky@x.test")).await.status, 500);
    assert_eq!(seen(to("flaky@x.test")).await.status, 200);
}
