//! No text becomes a header or a recipient: a text in a field is rejected with the
//! field's name, or stays a text in its place. Checked on arrival, at all five types of
//! provider.

use std::collections::BTreeSet;

use http::{HeaderValue, Method};
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::Captured;
use waypost_tests::{Receiver, SENDER, TestApp, credentials, untracked};

/// Texts that break out of headers, commands, quotes, lists, forms and encodings.
fn corpus() -> Vec<String> {
    let attacks = [
        "x\r\nBcc: evil@example.org",
        "x\nBcc: evil@example.org",
        "x\rBcc: evil@example.org",
        "x\r\n\r\n<b>another body</b>",
        "x\0Bcc: evil@example.org",
        "x\u{85}Bcc: evil@example.org",
        "x\u{b}\u{c}Bcc: evil@example.org",
        "x\u{2028}Bcc: evil@example.org",
        "x\u{2029}Bcc: evil@example.org",
        "x%0d%0aBcc: evil@example.org",
        "x\\r\\nBcc: evil@example.org",
        "=?utf-8?q?x=0D=0ABcc:_evil@example.org?=",
        "=?utf-8?b?eA0KQmNjOiBldmlsQGV4YW1wbGUub3Jn?=",
        "=?utf-8?q?unfinished",
        "=?utf-8?q?harmless_=C3=BC?=",
        "=?utf-8?q?evil=40example.org=3e=00?=",
        "\u{202e}gro.elpmaxe@live",
        "\u{feff}x\u{200b}x",
        "x, evil@example.org",
        "x; evil@example.org",
        "x> <evil@example.org",
        "x\" <evil@example.org>, \"y",
        "x\\",
        "x (comment) \"quoted\" [literal]",
        "x\r\n.\r\nMAIL FROM:<evil@example.org>\r\nRCPT TO:<evil@example.org>\r\nDATA",
        "x\n.\nRCPT TO:<evil@example.org>",
        "\"}],\"bcc\":[{\"email\":\"evil@example.org\"}],\"x\":[{\"y\":\"",
        "--x\r\nContent-Disposition: form-data; name=\"bcc\"\r\n\r\nevil@example.org",
        "%recipient% {{evil}} %recipient.evil% -evil-",
    ];
    let mut corpus: Vec<String> = attacks.map(str::to_owned).into();
    corpus.push("é".repeat(240));
    corpus.push("x".repeat(998));
    corpus.push("word ".repeat(180));
    corpus
}

/// The places of a message that can contain a text, each with the field that a rejection
/// names.
fn placed(text: &str, to: &str) -> Vec<(&'static str, Value)> {
    let base = || {
        json!({
            "from": SENDER, "to": to, "subject": "Hello", "html": "<p>Hello</p>", "text": "Hello",
            "tracking": untracked(), "tags": ["tag"], "metadata": { "key": "value" },
        })
    };
    let with = |field: &str, value: Value| {
        let mut message = base();
        message[field] = value;
        message
    };
    vec![
        ("from", with("from", json!(format!("{text} <{SENDER}>")))),
        (
            "from",
            with("from", json!(format!("\"{text}\" <{SENDER}>"))),
        ),
        ("from", with("from", json!(format!("{text}@example.com")))),
        ("from", with("from", json!(format!("{SENDER}{text}")))),
        ("to", with("to", json!(format!("{text} <{to}>")))),
        ("to", with("to", json!(format!("{to}{text}")))),
        (
            "replyTo",
            with("replyTo", json!(format!("{text} <{SENDER}>"))),
        ),
        ("replyTo", with("replyTo", json!(format!("{SENDER}{text}")))),
        ("subject", with("subject", json!(text))),
        ("tags", with("tags", json!([text]))),
        ("metadata", with("metadata", json!({ text: "value" }))),
        ("metadata", with("metadata", json!({ "key": text }))),
        ("html", with("html", json!(text))),
        ("text", with("text", json!(text))),
    ]
}

/// A message without any of these texts.
struct Plain {
    headers: BTreeSet<String>,
    metadata: BTreeSet<String>,
}

fn names(map: &std::collections::BTreeMap<String, String>) -> BTreeSet<String> {
    map.keys().map(|name| name.to_lowercase()).collect()
}

impl Plain {
    fn of(copy: &Captured) -> Self {
        Self {
            headers: names(&copy.headers),
            metadata: names(&copy.metadata),
        }
    }

    /// Asserts that a message has the usual recipient, headers and tags.
    fn check(&self, what: &str, to: &str, copy: &Captured) {
        assert_eq!(copy.to, to, "{what}");
        assert_eq!(copy.visible_recipients, [to], "{what}");
        assert!(copy.attachments.is_empty(), "{what}: {copy:?}");
        let mut headers = names(&copy.headers);
        headers.remove("reply-to");
        assert_eq!(headers, self.headers, "{what}");
        let is_a_tag = |name: &&String| !name.starts_with("waypost_tag");
        let marks =
            |names: &BTreeSet<String>| names.iter().filter(is_a_tag).cloned().collect::<Vec<_>>();
        assert_eq!(
            marks(&names(&copy.metadata)),
            marks(&self.metadata),
            "{what}"
        );
        for address in [Some(&copy.from), copy.reply_to.as_ref()]
            .into_iter()
            .flatten()
        {
            assert!(!address.contains(['\r', '\n', '\0']), "{what}: {address:?}");
        }
        assert!(
            !copy.subject.contains("\r\nBcc") || copy.subject.starts_with('x'),
            "{what}"
        );
    }
}

async fn texts_stay_in_their_fields(kind: ProviderType) {
    let app = TestApp::start().await;
    app.connect(kind).await;
    app.send(&placed("plain", "plain@example.org")[8].1).await;
    app.drain().await;
    let plain = Plain::of(&app.captured_once("plain@example.org"));
    let mut taken = Vec::new();
    for text in corpus() {
        for place in 0..placed("", "").len() {
            let to = format!("r{}@example.org", taken.len());
            let (field, message) = placed(&text, &to).swap_remove(place);
            let reply = app.post("/v1/send", &message).await;
            let what = format!("{kind}: {field} {text:?}");
            if reply.status == 202 {
                taken.push((what, to));
                continue;
            }
            let error = reply.expect_error(reply.status, "VALIDATION_ERROR");
            assert!([400, 422].contains(&reply.status), "{what}: {reply:?}");
            let named = error["details"].to_string();
            assert!(named.contains(field), "{what}: {error}");
        }
    }
    assert!(taken.len() > 100, "{} were taken", taken.len());
    app.drain().await;
    for (what, to) in &taken {
        let copies = app.captured(to);
        assert!(copies.len() <= 1, "{what}: {copies:?}");
        // A message that a provider rejects has failed, and reached no recipient.
        for copy in copies {
            plain.check(what, to, &copy);
        }
    }
    assert_eq!(app.captured("evil@example.org").len(), 0);
    let count = app.simulator().captured_count();
    assert!(
        count > 100 && count <= taken.len() as u64 + 1,
        "{count} copies"
    );
}

#[tokio::test]
async fn sendgrid_texts_stay_in_their_fields() {
    texts_stay_in_their_fields(ProviderType::Sendgrid).await;
}

#[tokio::test]
async fn postmark_texts_stay_in_their_fields() {
    texts_stay_in_their_fields(ProviderType::Postmark).await;
}

#[tokio::test]
async fn mailgun_texts_stay_in_their_fields() {
    texts_stay_in_their_fields(ProviderType::Mailgun).await;
}

#[tokio::test]
async fn ses_texts_stay_in_their_fields() {
    texts_stay_in_their_fields(ProviderType::Ses).await;
}

#[tokio::test]
async fn smtp_texts_stay_in_their_fields() {
    texts_stay_in_their_fields(ProviderType::Smtp).await;
}

#[tokio::test]
async fn a_rendered_variable_is_validated_like_a_written_text() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Smtp).await;
    let template = json!({ "name": "Letter" });
    let template = app.post("/v1/templates", &template).await.data(201);
    let id = template["id"].as_str().unwrap();
    let version = json!({ "htmlContent": "<p>{{{word}}}</p>", "textContent": "{{{word}}}" });
    app.post(&format!("/v1/templates/{id}/versions"), &version)
        .await
        .data(201);
    let group = app
        .post("/v1/unsubscribe-groups", &json!({ "name": "News" }))
        .await
        .data(201);
    let mut taken = Vec::new();
    for (number, text) in corpus().iter().enumerate() {
        let to = format!("r{number}@example.org");
        let message = json!({
            "from": SENDER, "to": to, "subject": "Hello {{{word}}}", "templateId": id,
            "variables": { "word": text }, "unsubscribeGroupId": group["id"], "tracking": untracked(),
        });
        let reply = app.post("/v1/send", &message).await;
        if reply.status == 202 {
            taken.push((text.clone(), to));
        } else {
            let error = reply.expect_error(reply.status, "VALIDATION_ERROR");
            let named = error["details"].to_string();
            assert!(
                named.contains("subject") || named.contains("variables"),
                "{text:?}: {error}"
            );
        }
    }
    app.drain().await;
    assert!(taken.len() > 10, "{taken:?}");
    for (text, to) in taken {
        let copy = app.captured_once(&to);
        let headers = names(&copy.headers);
        let wanted = ["list-unsubscribe", "list-unsubscribe-post", "message-id"];
        assert!(headers.iter().eq(wanted), "{text:?}: {headers:?}");
        assert_eq!(copy.visible_recipients, [to], "{text:?}");
        // A line break is replaced with a space there.
        assert!(
            !copy.subject.contains(char::is_control),
            "{:?}",
            copy.subject
        );
    }
    assert!(app.captured("evil@example.org").is_empty());
}

#[tokio::test]
async fn credentials_stay_in_their_header_or_their_part_of_a_url() {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await;
    for (kind, field, texts) in [
        (
            ProviderType::Sendgrid,
            "apiKey",
            &["SG.x\r\nX-Evil: 1", "SG.x\0", "SG.x\u{85}y", "SG.é"][..],
        ),
        (
            ProviderType::Postmark,
            "serverToken",
            &["x\r\nX-Evil: 1", "x\0", "é"],
        ),
        (ProviderType::Mailgun, "apiKey", &["x\r\nX-Evil: 1", "x\0"]),
        (
            ProviderType::Mailgun,
            "domain",
            &[
                "example.com/../../v3/domains",
                "example.com/messages?x=y",
                "example.com#x",
                "example.com\r\nX-Evil: 1",
                "..",
                "example.com%2f..",
                "example.com\\..",
                "evil.example.org@example.com",
                "",
            ],
        ),
        (
            ProviderType::Ses,
            "region",
            &[
                "eu-central-1.evil.org/",
                "eu-central-1\r\nx",
                "evil.org#",
                "../x",
                "eu-central-1@evil.org",
                "",
            ],
        ),
        (
            ProviderType::Ses,
            "accessKeyId",
            &["AKIA\r\nX-Evil: 1", "AKIA/x, SignedHeaders=y"],
        ),
        (
            ProviderType::Smtp,
            "host",
            &["a\r\nb", "example.com:25/x", "evil@example.com", "../x", ""],
        ),
        (
            ProviderType::Smtp,
            "username",
            &["x\r\nRCPT TO:<evil@example.org>", "x\0y"],
        ),
        (ProviderType::Smtp, "password", &["x\r\nQUIT", "x\0y"]),
    ] {
        for text in texts {
            let mut credentials = credentials(kind);
            credentials[field] = json!(text);
            let body =
                json!({ "providerType": kind, "displayName": "x", "credentials": credentials });
            let reply = app.post("/v1/providers", &body).await;
            reply.expect_issues(400, &[&format!("credentials.{field}")]);
        }
    }
}

#[tokio::test]
async fn a_webhooks_url_cannot_add_or_replace_headers() {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await;
    let receiver = Receiver::start().await;
    for end in [
        "\r\nX-Evil: 1",
        " HTTP/1.1\r\nX-Evil: 1\r\n\r\n",
        "?x=\n\nX-Evil: 1",
        "#\r\nx",
    ] {
        let body = json!({ "url": format!("{}{end}", receiver.url()), "events": ["SENT"] });
        let reply = app.post("/v1/webhook-endpoints", &body).await;
        if reply.status != 201 {
            reply.expect_issues(400, &["url"]);
            continue;
        }
        let id = reply.data(201)["id"].as_str().unwrap().to_owned();
        let path = format!("/v1/webhook-endpoints/{id}/test");
        app.caller().post_empty(&path).await.expect(200);
    }
    for webhook in receiver.received() {
        assert!(
            !webhook.headers.contains_key("x-evil"),
            "{:?}",
            webhook.headers
        );
    }
    let given = "00000000-0000-0000-0000-000000000000";
    let reply = app.caller().call(Method::POST, "/v1/templates", |request| {
        let agent = HeaderValue::from_bytes(b"Agent\t\xff \xe2\x80\xa8 <script>").unwrap();
        request
            .header("x-request-id", given)
            .header("user-agent", agent)
            .json(&json!({ "name": "Letter" }))
    });
    let reply = reply.await;
    assert_ne!(reply.header("x-request-id"), Some(given));
    let entry = app
        .get("/v1/audit-logs?action=template.created")
        .await
        .data(200);
    let context = &entry[0]["context"];
    assert_eq!(context["requestId"], reply.header("x-request-id").unwrap());
    let agent = context["userAgent"].as_str().unwrap_or_default();
    assert!(!agent.contains(char::is_control), "{agent:?}");
    for agent in ["x".repeat(9_000), "\u{202e}evil".to_owned()] {
        let text = HeaderValue::from_bytes(agent.as_bytes()).unwrap();
        let reply = app.caller().call(Method::POST, "/v1/templates", |request| {
            request
                .header("user-agent", text)
                .json(&json!({ "name": "Letter" }))
        });
        reply.await.data(201);
    }
}
