//! Postmark's `POST /email` and `/email/withTemplate`: accepted, repeated and refused; and
//! `GET /messages/outbound/{id}/details`.

use chrono::TimeDelta;
use http::Method;
use serde_json::{Value, json};
use waypost_core::auth::Permission;
use waypost_core::ids::OrganizationId;
use waypost_tests::{Caller, Reply, SENDER, TestApp};

use super::described::{shown, template};
use super::quiet;
use crate::adapters::documents::shared;

pub(super) const EMAIL: &str = "/compat/postmark/email";
pub(super) const WITH_TEMPLATE: &str = "/compat/postmark/email/withTemplate";
const OUTBOUND: &str = "/compat/postmark/messages/outbound";

/// A caller with Postmark's header in place of ours.
pub(super) struct Server {
    caller: Caller,
    token: String,
}

impl Server {
    /// With all permissions in the default organization.
    pub(super) async fn of(app: &TestApp) -> Self {
        Self::with(app, app.organization_id(), &Permission::ALL).await
    }

    async fn with(app: &TestApp, organization: OrganizationId, permissions: &[Permission]) -> Self {
        Self {
            caller: app.caller().anonymous(),
            token: app.key(organization, permissions).await,
        }
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.post_with(path, &[], body).await
    }

    pub(super) async fn post_with(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Reply {
        let shape = |request: reqwest::RequestBuilder| {
            let request = request.header("X-Postmark-Server-Token", &self.token);
            let request = headers.iter().fold(request, |request, (name, value)| {
                request.header(*name, *value)
            });
            request.json(body)
        };
        self.caller.call(Method::POST, path, shape).await
    }

    pub(super) async fn get(&self, path: &str) -> Reply {
        let shape = |request: reqwest::RequestBuilder| {
            request.header("X-Postmark-Server-Token", &self.token)
        };
        self.caller.call(Method::GET, path, shape).await
    }

    /// Sends a message that must be accepted; returns its id.
    pub(super) async fn sent(&self, message: &Value) -> String {
        let answer = self.post(EMAIL, message).await.expect(200);
        valid(&answer, "SendEmailResponse");
        assert_eq!(
            (&answer["ErrorCode"], &answer["Message"]),
            (&json!(0), &json!("OK"))
        );
        answer["MessageID"].as_str().unwrap().to_owned()
    }
}

/// A small message to one address.
pub(super) fn message_to(to: &str) -> Value {
    json!({ "From": SENDER, "To": to, "Subject": "Hello", "HtmlBody": "<p>Hello</p>" })
}

/// Checks an answer by the vendor's description.
pub(super) fn valid(answer: &Value, definition: &str) {
    let Some(mut document) = shared("providers/specs/postmark-server.json") else {
        return;
    };
    document["$ref"] = json!(format!("#/definitions/{definition}"));
    let validator = jsonschema::validator_for(&document).unwrap();
    assert!(validator.is_valid(answer), "{definition}: {answer}");
}

/// An error of Postmark with this status and number; returns its message.
pub(super) fn refused(reply: &Reply, status: u16, code: u32) -> String {
    let error = reply.expect(status);
    valid(&error, "StandardPostmarkResponse");
    assert_eq!(error["ErrorCode"], json!(code), "{error}");
    assert_eq!(error.as_object().unwrap().len(), 2, "{error}");
    error["Message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_id_is_that_of_the_message() {
    let app = quiet().await;
    let server = Server::of(&app).await;
    let mut message = message_to("Ada <ada@example.org>");
    message["Metadata"] = json!({ "order": "7" });
    let id = server.sent(&message).await;
    app.drain().await;
    let captured = app.captured_once("ada@example.org");
    assert_eq!(captured.metadata["waypost_message"], id);
    assert_eq!(app.message(&id).await["metadata"], json!({ "order": "7" }));
}

#[tokio::test]
async fn lists_of_addresses_share_one_mail() {
    let app = quiet().await;
    let server = Server::of(&app).await;
    let mut message = message_to("\"Lovelace, Ada\" <ada@example.org>, bob@example.org,");
    message["Cc"] = json!("carl@example.org");
    message["Bcc"] = json!("dora@example.org");
    message["ReplyTo"] = json!("");
    let answer = server.post(EMAIL, &message).await.expect(200);
    assert_eq!(answer["To"], message["To"]);
    assert_eq!(
        (&answer["Cc"], &answer["Bcc"]),
        (&message["Cc"], &message["Bcc"])
    );
    app.drain().await;
    for to in ["ada", "bob", "carl", "dora"] {
        let captured = app.captured_once(&format!("{to}@example.org"));
        let seen = ["ada@example.org", "bob@example.org", "carl@example.org"];
        assert_eq!(captured.visible_recipients, seen);
    }
    let many: Vec<String> = (0..51)
        .map(|index| format!("to{index}@example.org"))
        .collect();
    let reply = server.post(EMAIL, &message_to(&many.join(","))).await;
    assert!(refused(&reply, 422, 300).starts_with("To must not have more than 50"));
    let reply = server
        .post(EMAIL, &message_to("ada@example.org, nobody"))
        .await;
    assert!(refused(&reply, 422, 300).starts_with("To must be an email address"));
}

#[tokio::test]
async fn a_template_is_named_by_its_id_in_waypost() {
    let app = quiet().await;
    let server = Server::of(&app).await;
    let version = json!({ "subject": "Order {{number}}", "htmlContent": "<p>Hi {{name}}!</p>" });
    let id = template(&app, &version).await;
    let mut message = json!({
        "From": SENDER, "To": "ada@example.org", "TemplateAlias": id,
        "TemplateModel": { "name": "Ada", "number": 7 }, "InlineCss": true,
    });
    // Clients write the path with and without a slash.
    for path in [WITH_TEMPLATE.to_owned(), format!("{WITH_TEMPLATE}/")] {
        server.post(&path, &message).await.expect(200);
    }
    app.drain().await;
    for captured in app.captured("ada@example.org") {
        assert_eq!(captured.subject, "Order 7");
        assert_eq!(captured.html.as_deref(), Some("<p>Hi Ada!</p>"));
    }
    assert_eq!(app.captured("ada@example.org").len(), 2);
    message["TemplateAlias"] = json!("welcome");
    refused(&server.post(WITH_TEMPLATE, &message).await, 422, 1101);
    message["TemplateAlias"] = json!("01a21f88-0902-7411-a0f3-8c583360bade");
    refused(&server.post(WITH_TEMPLATE, &message).await, 422, 1101);
    message.as_object_mut().unwrap().remove("TemplateAlias");
    refused(&server.post(WITH_TEMPLATE, &message).await, 422, 300);
    message["TemplateId"] = json!(1234);
    refused(&server.post(WITH_TEMPLATE, &message).await, 422, 1101);
    refused(&server.post(EMAIL, &message).await, 422, 300);
}

#[tokio::test]
async fn suppressed_addresses_are_inactive_recipients() {
    let app = quiet().await;
    let server = Server::of(&app).await;
    let suppressed = json!({ "email": "ada@example.org" });
    app.post("/v1/suppressions", &suppressed).await.expect(201);
    let reply = server.post(EMAIL, &message_to("Ada@Example.org")).await;
    let message = refused(&reply, 422, 406);
    // The clients read the addresses by this pattern.
    assert!(
        message.contains("Found inactive addresses: ada@example.org. Inactive"),
        "{message}"
    );
    let both = message_to("ada@example.org, bob@example.org");
    let answer = server.post(EMAIL, &both).await.expect(200);
    assert_eq!(answer["ErrorCode"], 0);
    let message = answer["Message"].as_str().unwrap();
    assert!(
        message.contains("these inactive addresses: ada@example.org. Inactive"),
        "{message}"
    );
    app.drain().await;
    app.captured_once("bob@example.org");
    assert!(app.captured("ada@example.org").is_empty());
}

#[tokio::test]
async fn a_repeated_key_sends_nothing_twice() {
    let app = quiet().await;
    let server = Server::of(&app).await;
    let key = [("Idempotency-Key", "order-1")];
    let message = message_to("ada@example.org");
    let first = server.post_with(EMAIL, &key, &message).await.expect(200);
    let again = server.post_with(EMAIL, &key, &message).await.expect(200);
    assert_eq!(first["MessageID"], again["MessageID"]);
    let other = message_to("bob@example.org");
    refused(&server.post_with(EMAIL, &key, &other).await, 422, 300);
    app.drain().await;
    app.captured_once("ada@example.org");
}

#[tokio::test]
async fn errors_have_the_form_of_postmark() {
    let app = quiet().await;
    let server = Server::of(&app).await;
    // The vendor reads no other header.
    let message = refused(
        &app.post(EMAIL, &message_to("a@example.org")).await,
        401,
        10,
    );
    assert!(message.contains("X-Postmark-Server-Token"), "{message}");
    let wrong = Server {
        caller: app.caller().anonymous(),
        token: "POSTMARK_API_TEST".to_owned(),
    };
    let reply = wrong.post(EMAIL, &message_to("a@example.org")).await;
    assert!(refused(&reply, 401, 10).contains("a test key in place of POSTMARK_API_TEST"));
    let others: Vec<Permission> = Permission::ALL
        .into_iter()
        .filter(|other| *other != Permission::Send)
        .collect();
    let reader = Server::with(&app, app.organization_id(), &others).await;
    let reply = reader.post(EMAIL, &message_to("a@example.org")).await;
    assert!(refused(&reply, 401, 10).contains("SEND"));
    refused(&server.get("/compat/postmark/server").await, 404, 300);
    refused(&server.get(EMAIL).await, 405, 300);
    let raw = async |content_type: &str, body: Vec<u8>| {
        let shape = |request: reqwest::RequestBuilder| {
            let request = request.header("X-Postmark-Server-Token", &server.token);
            request.header("content-type", content_type).body(body)
        };
        server.caller.call(Method::POST, EMAIL, shape).await
    };
    refused(&raw("text/plain", b"a".to_vec()).await, 415, 409);
    refused(&raw("application/json", b"{".to_vec()).await, 422, 402);
    refused(&raw("application/json", b"[]".to_vec()).await, 422, 403);
    refused(
        &raw("application/json", vec![b' '; 40 << 20]).await,
        413,
        300,
    );
    let mut message = message_to("a@example.org");
    message["From"] = json!("a@unverified.example");
    let text = refused(&server.post(EMAIL, &message).await, 422, 400);
    assert!(
        text.starts_with("From must have a domain that is verified"),
        "{text}"
    );
    let mut message = message_to("a@example.org");
    message["MessageStream"] = json!("broadcasts");
    refused(&server.post(EMAIL, &message).await, 422, 1235);
    message["MessageStream"] = json!("01a21f88-0902-7411-a0f3-8c583360bade");
    refused(&server.post(EMAIL, &message).await, 422, 1235);
}

#[tokio::test]
async fn a_token_over_its_limit_is_told_so() {
    let app = TestApp::builder()
        .setting("WAYPOST_RATE_LIMIT_SEND_MAX", "2")
        .start()
        .await;
    let server = Server::of(&app).await;
    let paths = [WITH_TEMPLATE.to_owned(), format!("{WITH_TEMPLATE}/")];
    for path in &paths {
        server.post(path, &json!({})).await.expect(422);
    }
    let over = server.post(EMAIL, &json!({})).await;
    refused(&over, 429, 429);
    assert!(over.header("retry-after").is_some());
}

#[tokio::test]
async fn the_details_show_what_became_of_a_message() {
    let app = quiet().await;
    let server = Server::of(&app).await;
    let mut message = message_to("Ada <ada@example.org>");
    message["Cc"] = json!("carl@example.org");
    message["Bcc"] = json!("dora@example.org");
    message["Tag"] = json!("orders");
    message["TextBody"] = json!("plain");
    message["Metadata"] = json!({ "order": "7" });
    message["Attachments"] =
        json!([{ "Name": "a.txt", "Content": "QUJD", "ContentType": "text/plain" }]);
    let id = server.sent(&message).await;
    let path = format!("{OUTBOUND}/{id}/details");
    assert_eq!(server.get(&path).await.expect(200)["Status"], "Queued");
    app.drain().await;
    let details = server.get(&path).await.expect(200);
    valid(&details, "OutboundMessageDetailsResponse");
    assert_eq!(details["Status"], "Sent");
    assert_eq!(
        details["To"],
        json!([{ "Email": "ada@example.org", "Name": "Ada" }])
    );
    assert_eq!(
        details["Cc"],
        json!([{ "Email": "carl@example.org", "Name": "" }])
    );
    let all = ["ada@example.org", "carl@example.org", "dora@example.org"];
    assert_eq!(details["Recipients"], json!(all));
    for (name, value) in [
        ("MessageID", json!(id)),
        ("From", json!(SENDER)),
        ("Subject", json!("Hello")),
        ("HtmlBody", json!("<p>Hello</p>")),
        ("TextBody", json!("plain")),
        ("Tag", json!("orders")),
        ("Metadata", json!({ "order": "7" })),
        ("Attachments", json!(["a.txt"])),
        ("MessageStream", json!("outbound")),
        ("Sandboxed", json!(false)),
    ] {
        assert_eq!(details[name], value, "{name}");
    }
    // Without the permission to read content there is none.
    let reader = Server::with(&app, app.organization_id(), &[Permission::MetricsRead]).await;
    let details = reader.get(&path).await.expect(200);
    assert_eq!(
        (&details["HtmlBody"], &details["Recipients"]),
        (&json!(""), &json!([]))
    );
    assert_eq!(details["Subject"], "Hello");
    // Nobody sees the messages of another organization.
    let other = app.tenant("Other").await;
    let stranger = Server::with(&app, other.organization_id, &Permission::ALL).await;
    refused(&stranger.get(&path).await, 422, 701);
    refused(
        &server.get(&format!("{OUTBOUND}/1234/details")).await,
        422,
        701,
    );
    let sender = Server::with(&app, app.organization_id(), &[Permission::Send]).await;
    refused(&sender.get(&path).await, 401, 10);
}

#[tokio::test]
async fn the_details_show_the_events_of_a_test() {
    let app = quiet().await;
    let tester = Server {
        caller: app.caller().anonymous(),
        token: app.test_token(&Permission::ALL).await,
    };
    let id = tester.sent(&message_to("ada@example.org")).await;
    app.drain().await;
    app.advance_and_drain(TimeDelta::seconds(1)).await;
    assert!(app.captured("ada@example.org").is_empty());
    let path = format!("{OUTBOUND}/{id}/details");
    let details = tester.get(&path).await.expect(200);
    valid(&details, "OutboundMessageDetailsResponse");
    assert_eq!(details["Sandboxed"], true);
    let delivered = &details["MessageEvents"][0];
    assert_eq!(delivered["Type"], "Delivered", "{details}");
    assert_eq!(delivered["Recipient"], "ada@example.org");
}

/// Whatever a field holds, the answer is one of Postmark's.
#[tokio::test]
async fn hostile_values_are_accepted_or_refused_in_form() {
    let app = quiet().await;
    let tester = Server {
        caller: app.caller().anonymous(),
        token: app.test_token(&[Permission::Send]).await,
    };
    let deep = (0..200).fold(json!("x"), |inner, _| json!([inner]));
    let values = [
        json!(true),
        json!(-1),
        json!(1e300),
        json!(""),
        json!("a\r\nBcc: eve@example.org"),
        json!("\"unfinished <a@example.org>, (b@example.org"),
        json!("\u{0}"),
        json!([]),
        json!([[]]),
        json!({}),
        json!({ "": {} }),
        json!([{ "Name": "X\r\nBcc", "Value": "a@example.org" }]),
        deep,
    ];
    for field in shown("postmark") {
        for value in &values {
            for path in [EMAIL, WITH_TEMPLATE] {
                let mut message = message_to("ada@example.org");
                match field.split_once("[].") {
                    Some((list, name)) => message[list] = json!([{ name: value }]),
                    None => message[field.as_str()] = value.clone(),
                }
                let reply = tester.post(path, &message).await;
                if reply.status != 200 {
                    let error = reply.expect(422);
                    valid(&error, "StandardPostmarkResponse");
                    assert!(error["ErrorCode"].as_u64() > Some(0), "{error}");
                }
            }
        }
    }
    app.drain().await;
    assert_eq!(app.simulator().captured_count(), 0);
}
