//! Webhooks.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use waypost::reqwest::header::HeaderMap;
use waypost::types::{CreateWebhookEndpointRequest, WebhookEvent, WebhookEventType};
use waypost::{Error, chrono::DateTime, serde_json, webhooks};

use crate::support::{Proxied, RUN, live, mail, send, until};

const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

#[test]
fn c60_the_vectors_of_webhooks() {
    let vectors: Value = serde_json::from_str(include_str!("../../../conformance/webhooks.json")).unwrap();
    let vectors = vectors["vectors"].as_array().unwrap();
    assert!(vectors.len() > 20);
    for vector in vectors {
        let name = vector["name"].as_str().unwrap();
        let headers: HashMap<String, String> = serde_json::from_value(vector["headers"].clone()).unwrap();
        let secrets: Vec<String> = serde_json::from_value(vector["secrets"].clone()).unwrap();
        let now = DateTime::from_timestamp(vector["now"].as_i64().unwrap(), 0).unwrap();
        let body = vector["body"].as_str().unwrap();
        let map: HeaderMap = HeaderMap::try_from(&headers).unwrap();
        let outcomes = [
            webhooks::verify_at(body, &headers, &secrets, now),
            webhooks::verify_at(body.as_bytes(), &map, &secrets, now),
        ];
        for outcome in outcomes {
            match outcome {
                Ok(event) => {
                    assert_eq!(vector["valid"], true, "{name}");
                    let mut parsed: Value = serde_json::from_str(body).unwrap();
                    assert_eq!(event.event(), parsed["event"], "{name}");
                    let known = matches!(event, WebhookEvent::Delivered(_));
                    assert_eq!(known, event.event() == "DELIVERED", "{name}");
                    if known {
                        parsed["timestamp"] = json!("2026-11-20T12:00:00Z");
                    }
                    assert_eq!(serde_json::to_value(event).unwrap(), parsed, "{name}");
                }
                Err(Error::Webhook(text)) => assert_eq!(vector["valid"], false, "{name}: {text}"),
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }
}

/// The compiler refuses it, so the test asks the compiler.
#[test]
fn c61_parsed_json_is_refused_with_the_reason() {
    let compile = |body: &str| {
        let program = format!(
            "pub fn f(body: {body}) {{ let _ = waypost::webhooks::verify(&body, [(\"a\", \"b\")], [\"c\"]); }}"
        );
        let deps: PathBuf = std::env::current_exe().unwrap().parent().unwrap().into();
        let source = deps.join(format!("c61-{}.rs", *RUN));
        std::fs::write(&source, program).unwrap();
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "--out-dir"]);
        rustc.arg(std::env::temp_dir()).arg("-L").arg(format!("dependency={}", deps.display()));
        rustc.arg("--extern").arg(format!("waypost={}", library(&deps).display())).arg(&source);
        let output = rustc.output().unwrap();
        std::fs::remove_file(source).unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    for body in ["&[u8]", "Vec<u8>", "String", "&str", "Box<[u8]>"] {
        let (accepted, said) = compile(body);
        assert!(accepted, "{body}: {said}");
    }
    let (accepted, said) = compile("waypost::serde_json::Value");
    assert!(!accepted && said.contains("needs the raw body") && said.contains("parsed JSON"), "{said}");
    let empty = webhooks::verify("{}", [("a", "b")], [""]);
    assert!(matches!(empty, Err(Error::Webhook(text)) if text.contains("secret is empty")));
}

/// The newest of the libraries that were built beside this test.
fn library(deps: &Path) -> PathBuf {
    let files = std::fs::read_dir(deps).unwrap().map(|entry| entry.unwrap().path());
    let libraries = files.filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("libwaypost-") && name.ends_with(".rlib")
    });
    libraries.max_by_key(|path| path.metadata().unwrap().modified().unwrap()).expect("the library is built")
}

#[test]
fn c62_sign_makes_what_verify_accepts() {
    let (id, time) = ("01a1fbfa-b12e-763c-a29e-ce02006ba540", "2026-11-20T12:00:00Z");
    let data = json!({ "eventType": "SUPPRESSION_CREATED", "eventId": id, "suppressionId": id, "emailHash": "", "source": "BOUNCE" });
    let body = json!({ "event": "SUPPRESSION_CREATED", "timestamp": time, "data": data }).to_string();
    let headers = webhooks::sign(&body, SECRET);
    for scheme in ["x-waypost", "webhook"] {
        let one = headers.iter().filter(|(name, _)| name.starts_with(scheme));
        let event = webhooks::verify(&body, one.map(|(name, value)| (*name, value)), [SECRET]).unwrap();
        assert!(matches!(event, WebhookEvent::SuppressionCreated(event) if event.data.suppression_id == id));
    }
    let changed = webhooks::verify(format!("{body} "), headers.clone(), [SECRET]);
    assert!(matches!(changed, Err(Error::Webhook(_))));
    let misfit = json!({ "event": "SENT", "timestamp": time, "data": {} }).to_string();
    let genuine = webhooks::verify(&misfit, webhooks::sign(&misfit, SECRET), [SECRET]);
    assert!(matches!(genuine, Err(Error::Webhook(text)) if text.contains("genuine") && text.contains("missing field")));
}

#[tokio::test]
async fn c63_a_live_webhook() {
    let (waypost, proxied) = (live().await, Proxied::new(json!([])).await);
    let events = [WebhookEventType::Queued, WebhookEventType::Delivered];
    let endpoint = CreateWebhookEndpointRequest::new(proxied.hook(), events);
    let endpoint = waypost.webhook_endpoints().create(&endpoint).await.unwrap();
    waypost.webhook_endpoints().test(&endpoint.id).await.unwrap();
    let id = send(&waypost, &mail()).await;
    let delivered = until("the webhook", async || {
        for hook in proxied.seen("hooks").await {
            let headers: HashMap<String, String> = serde_json::from_value(hook["headers"].clone()).unwrap();
            if !headers.contains_key("x-waypost-signature") {
                continue;
            }
            let body = BASE64_STANDARD.decode(hook["body"].as_str().unwrap()).unwrap();
            match webhooks::verify(&body, &headers, [&endpoint.secret]).unwrap() {
                WebhookEvent::Delivered(event) if event.data.message_id == id => return Some(event),
                _ => {}
            }
        }
        None
    });
    let delivered = delivered.await;
    waypost.webhook_endpoints().delete(&endpoint.id).await.unwrap();
    assert_eq!(delivered.data.recipient, format!("ada-{}@example.org", *RUN));
    assert!(delivered.unknown_fields.is_empty() && delivered.data.unknown_fields.is_empty(), "{delivered:?}");
}
