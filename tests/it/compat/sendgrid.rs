//! SendGrid's `POST /v3/mail/send`: accepted, repeated and refused.

use chrono::TimeDelta;
use http::Method;
use serde_json::{Value, json};
use waypost_core::auth::Permission;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Reply, SENDER, TestApp};

use super::described::{merge, template};
use super::{post_with, quiet};
use crate::adapters::documents::shared;

pub(super) const SEND: &str = "/compat/sendgrid/v3/mail/send";

/// A small mail to one address.
pub(super) fn mail_to(to: &str) -> Value {
    json!({
        "personalizations": [{ "to": [{ "email": to }] }],
        "from": { "email": SENDER },
        "subject": "Hello",
        "content": [{ "type": "text/html", "value": "<p>Hello</p>" }],
    })
}

/// Sends a mail that must be accepted; returns the id.
pub(super) async fn sent(app: &TestApp, mail: &Value) -> String {
    accepted(&app.post(SEND, mail).await)
}

fn accepted(reply: &Reply) -> String {
    assert_eq!((reply.status, reply.text.as_str()), (202, ""), "{reply:?}");
    let id = reply.header("x-message-id");
    id.expect("an accepted mail has an id").to_owned()
}

/// An error of SendGrid with this status; returns its first message and its field.
pub(super) fn refused(reply: &Reply, status: u16) -> (String, Option<String>) {
    let error = reply.expect(status);
    if let Some(mut document) = shared("providers/specs/sendgrid-mail.json") {
        let schema = document
            .pointer_mut("/components/schemas/ErrorResponse")
            .unwrap();
        let fields = &mut schema["properties"]["errors"]["items"]["properties"];
        // Written in the words of OpenAPI 3.0.
        assert_eq!(fields["field"]["nullable"], true);
        fields["field"]["type"] = json!(["string", "null"]);
        // By the description it is an object. SendGrid sends null or a text.
        fields["help"]["type"] = json!(["string", "null"]);
        let validator = jsonschema::validator_for(schema).unwrap();
        assert!(validator.is_valid(&error), "{error}");
    }
    let first = &error["errors"][0];
    assert!(first.get("help").is_some_and(Value::is_null), "{error}");
    let field = first["field"].as_str().map(str::to_owned);
    (first["message"].as_str().unwrap().to_owned(), field)
}

fn of_field(reply: &Reply, status: u16) -> String {
    let (message, field) = refused(reply, status);
    field.unwrap_or_else(|| panic!("no field: {message}"))
}

#[tokio::test]
async fn the_id_is_that_of_the_message() {
    let app = quiet().await;
    let mut mail = mail_to("ada@example.org");
    mail["personalizations"][0]["custom_args"] = json!({ "order": "7" });
    mail["custom_args"] = json!({ "order": "1", "shop": "de" });
    let id = sent(&app, &mail).await;
    app.drain().await;
    let captured = app.captured_once("ada@example.org");
    assert_eq!(captured.metadata["waypost_message"], id);
    let message = app.message(&id).await;
    assert_eq!(message["metadata"], json!({ "order": "7", "shop": "de" }));
}

#[tokio::test]
async fn addresses_of_a_personalization_share_a_mail() {
    let app = quiet().await;
    let mut mail = mail_to("");
    mail["personalizations"] = json!([{
        "to": [{ "email": "ada@example.org", "name": "Lovelace, \"Ada\"" }, { "email": "bob@example.org" }],
        "cc": [{ "email": "carl@example.org", "name": "Carl" }],
        "bcc": [{ "email": "dora@example.org" }],
    }]);
    let id = sent(&app, &mail).await;
    app.drain().await;
    for to in ["ada", "bob", "carl", "dora"] {
        let captured = app.captured_once(&format!("{to}@example.org"));
        let seen = ["ada@example.org", "bob@example.org", "carl@example.org"];
        assert_eq!(captured.visible_recipients, seen);
    }
    assert_eq!(app.recipients(&id).await.len(), 4);
    let twice =
        json!([{ "to": [{ "email": "ada@example.org" }], "cc": [{ "email": "ADA@example.org" }] }]);
    mail["personalizations"] = twice;
    let (message, field) = refused(&app.post(SEND, &mail).await, 400);
    assert!(message.contains("an address twice"), "{message}");
    assert_eq!(field.as_deref(), Some("personalizations.0"));
}

#[tokio::test]
async fn personalizations_that_differ_in_data_are_recipients_of_one_message() {
    let app = quiet().await;
    let version = json!({ "subject": "Order {{number}}", "htmlContent": "<p>Hi {{name}}!</p>" });
    let mut mail = mail_to("");
    // The client for Node.js sends data only with such an id.
    let id = template(&app, &version).await;
    mail["template_id"] = json!(format!("d-{id}"));
    mail["custom_args"] = json!({ "shop": "de" });
    let names = ["ada", "bob", "carl"].into_iter().enumerate();
    let personalizations = names.map(|(number, name)| {
        json!({
            "to": [{ "email": format!("{name}@example.org"), "name": name }],
            "dynamic_template_data": { "name": name, "number": number },
            "custom_args": { "number": number.to_string() },
        })
    });
    mail["personalizations"] = personalizations.collect();
    let id = sent(&app, &mail).await;
    app.drain().await;
    for (number, name) in ["ada", "bob", "carl"].into_iter().enumerate() {
        let captured = app.captured_once(&format!("{name}@example.org"));
        // As with SendGrid, what the template has wins.
        assert_eq!(captured.subject, format!("Order {number}"));
        assert_eq!(captured.html.unwrap(), format!("<p>Hi {name}!</p>"));
        assert_eq!(captured.visible_recipients.len(), 1);
        assert_eq!(captured.metadata["waypost_message"], id);
    }
    assert_eq!(app.message(&id).await["recipientCount"], 3);
    // An address of two personalizations gets two mails.
    mail["personalizations"][1]["to"] = json!([{ "email": "ada@example.org" }]);
    sent(&app, &mail).await;
    app.drain().await;
    assert_eq!(app.captured("ada@example.org").len(), 3);
}

#[tokio::test]
async fn a_personalization_with_a_subject_or_a_time_is_a_message_of_its_own() {
    let app = quiet().await;
    let mut mail = mail_to("ada@example.org");
    mail["headers"] = json!({ "X-Shop": "de", "X-Kind": "news" });
    mail["attachments"] = json!([{ "content": "QUJD", "filename": "a.txt" }]);
    let later = app.clock.now() + TimeDelta::minutes(5);
    let own = json!([
        {
            "to": [{ "email": "bob@example.org" }],
            "subject": "For Bob",
            "from": { "email": "bob@example.com", "name": "Shop" },
            "headers": { "x-shop": "at" },
        },
        { "to": [{ "email": "carl@example.org" }], "send_at": later.timestamp() },
        // A time that is past is at once.
        { "to": [{ "email": "dora@example.org" }], "send_at": 1 },
    ]);
    let all = mail["personalizations"].as_array_mut().unwrap();
    all.extend(own.as_array().unwrap().clone());
    let id = sent(&app, &mail).await;
    app.drain().await;
    let first = app.captured_once("ada@example.org");
    assert_eq!(
        (first.subject.as_str(), &first.metadata["waypost_message"]),
        ("Hello", &id)
    );
    let own = app.captured_once("bob@example.org");
    assert_eq!(own.subject, "For Bob");
    assert_eq!(own.from, "Shop <bob@example.com>");
    assert_eq!(
        (&own.headers["x-shop"], &own.headers["X-Kind"]),
        (&"at".to_owned(), &"news".to_owned())
    );
    assert_eq!(&own.attachments[0].content[..], b"ABC");
    assert!(app.captured("carl@example.org").is_empty());
    app.captured_once("dora@example.org");
    app.advance_and_drain(TimeDelta::minutes(5)).await;
    app.captured_once("carl@example.org");
}

#[tokio::test]
async fn of_several_messages_all_are_accepted_or_none() {
    let app = quiet().await;
    let mut mail = mail_to("ada@example.org");
    let wrong = json!({ "to": [{ "email": "bob@example.org" }], "from": { "email": "a@unverified.example" } });
    mail["personalizations"].as_array_mut().unwrap().push(wrong);
    let reply = app.post(SEND, &mail).await;
    assert_eq!(of_field(&reply, 403), "personalizations.1.from");
    app.drain().await;
    assert!(app.captured("ada@example.org").is_empty());
    let count = app.value("SELECT count(*)::text FROM messages").await;
    assert_eq!(count.as_deref(), Some("0"));
}

#[tokio::test]
async fn substitutions_are_replaced_in_the_subject_and_the_bodies() {
    let app = quiet().await;
    let mut mail = mail_to("");
    mail["subject"] = json!("Order -number-");
    mail["content"] = json!([
        { "type": "text/plain", "value": "{{name}} & {{other}}" },
        { "type": "text/html", "value": "<p>{{name}}: -number-</p>" },
    ]);
    mail["personalizations"] = json!([
        { "to": [{ "email": "ada@example.org" }], "substitutions": { "{{name}}": "<Ada>", "-number-": "7" } },
        { "to": [{ "email": "bob@example.org" }], "substitutions": { "-number-": "-number-" } },
    ]);
    sent(&app, &mail).await;
    app.drain().await;
    let ada = app.captured_once("ada@example.org");
    assert_eq!(ada.subject, "Order 7");
    assert_eq!(ada.text.as_deref(), Some("<Ada> & {{other}}"));
    assert_eq!(ada.html.as_deref(), Some("<p><Ada>: 7</p>"));
    let bob = app.captured_once("bob@example.org");
    assert_eq!(bob.html.as_deref(), Some("<p>{{name}}: -number-</p>"));
    // In reply_to nothing is replaced, so that is refused.
    mail["reply_to"] = json!({ "email": "order-number-@example.com" });
    let reply = app.post(SEND, &mail).await;
    assert_eq!(of_field(&reply, 400), "personalizations.0.substitutions");
}

#[tokio::test]
async fn a_template_without_a_subject_takes_that_of_the_request() {
    let app = quiet().await;
    let mut mail = mail_to("ada@example.org");
    let version = json!({ "htmlContent": "<p>Hi</p>" });
    mail["template_id"] = json!(template(&app, &version).await);
    sent(&app, &mail).await;
    app.drain().await;
    let captured = app.captured_once("ada@example.org");
    assert_eq!(
        (captured.subject.as_str(), captured.html.as_deref()),
        ("Hello", Some("<p>Hi</p>"))
    );
    mail.as_object_mut().unwrap().remove("subject");
    assert_eq!(of_field(&app.post(SEND, &mail).await, 400), "subject");
    for unknown in ["d-0123", "01a21f88-0902-7411-a0f3-8c583360bade"] {
        mail["template_id"] = json!(unknown);
        let reply = app.post(SEND, &mail).await;
        assert_eq!(of_field(&reply, 400), "template_id");
    }
}

#[tokio::test]
async fn a_request_in_the_sandbox_makes_a_test() {
    let app = quiet().await;
    let mut mail = mail_to("ada@example.org");
    mail["mail_settings"] = json!({ "sandbox_mode": { "enable": true } });
    let reply = app.post(SEND, &mail).await;
    assert_eq!((reply.status, reply.text.as_str()), (200, ""));
    let id = reply.header("x-message-id").unwrap().to_owned();
    app.drain().await;
    assert_eq!(app.message(&id).await["test"], true);
    assert!(app.captured("ada@example.org").is_empty());
    // So does a test key.
    let tester = app.test_key(&[Permission::Send]).await;
    let reply = tester.post(SEND, &mail_to("bob@example.org")).await;
    accepted(&reply);
    app.drain().await;
    assert!(app.captured("bob@example.org").is_empty());
}

#[tokio::test]
async fn suppressed_addresses_are_no_error() {
    let app = quiet().await;
    let suppressed = json!({ "email": "ada@example.org" });
    app.post("/v1/suppressions", &suppressed).await.expect(201);
    let reply = app.post(SEND, &mail_to("ada@example.org")).await;
    assert_eq!(reply.status, 202);
    assert!(reply.header("x-message-id").is_none());
    let mut mail = mail_to("ada@example.org");
    let other = json!({ "to": [{ "email": "bob@example.org" }], "subject": "For Bob" });
    mail["personalizations"].as_array_mut().unwrap().push(other);
    let id = sent(&app, &mail).await;
    app.drain().await;
    let bob = app.captured_once("bob@example.org");
    assert_eq!(bob.metadata["waypost_message"], id);
    assert!(app.captured("ada@example.org").is_empty());
}

#[tokio::test]
async fn a_repeated_key_sends_nothing_twice() {
    let app = quiet().await;
    let one = mail_to("ada@example.org");
    let mut several = mail_to("bob@example.org");
    let other = json!({ "to": [{ "email": "carl@example.org" }], "subject": "For Carl" });
    several["personalizations"]
        .as_array_mut()
        .unwrap()
        .push(other);
    for (key, mail) in [("order-1", &one), ("order-2", &several)] {
        let key = [("Idempotency-Key", key)];
        let first = accepted(&post_with(&app, SEND, &key, mail).await);
        let again = accepted(&post_with(&app, SEND, &key, mail).await);
        assert_eq!(first, again);
        let mut changed = mail.clone();
        changed["subject"] = json!("Other");
        refused(&post_with(&app, SEND, &key, &changed).await, 409);
    }
    app.drain().await;
    for to in ["ada", "bob", "carl"] {
        app.captured_once(&format!("{to}@example.org"));
    }
}

#[tokio::test]
async fn errors_have_the_form_of_sendgrid() {
    let app = quiet().await;
    let anonymous = app.caller().anonymous();
    let (message, field) = refused(&anonymous.post(SEND, &json!({})).await, 401);
    assert_eq!((message.as_str(), field), ("authorization required", None));
    let wrong = app.caller().with_key("SG.123").post(SEND, &json!({})).await;
    let (message, _) = refused(&wrong, 401);
    assert!(
        message.contains("invalid, expired, or revoked"),
        "{message}"
    );
    let others: Vec<Permission> = Permission::ALL
        .into_iter()
        .filter(|other| *other != Permission::Send)
        .collect();
    let key = app.key(app.organization_id(), &others).await;
    let reader = app.caller().with_key(&key);
    let (message, _) = refused(&reader.post(SEND, &mail_to("a@example.org")).await, 403);
    assert!(message.starts_with("access forbidden"), "{message}");
    refused(&app.get("/compat/sendgrid/v3/scopes").await, 404);
    let method = app.get(SEND).await;
    refused(&method, 405);
    assert_eq!(method.header("allow"), Some("POST"));
    let form = Some("application/x-www-form-urlencoded");
    refused(&app.caller().post_raw(SEND, form, "a=b").await, 415);
    let json_type = Some("application/json");
    let broken = app.caller().post_raw(SEND, json_type, "{").await;
    assert!(refused(&broken, 400).0.contains("not valid JSON"));
    let large = app
        .caller()
        .post_raw(SEND, json_type, vec![b' '; 40 << 20])
        .await;
    refused(&large, 413);
    let mut mail = mail_to("a@example.org");
    mail["from"]["email"] = json!("a@unverified.example");
    assert_eq!(of_field(&app.post(SEND, &mail).await, 403), "from");
    let subuser = [("On-Behalf-Of", "shop")];
    let reply = post_with(&app, SEND, &subuser, &mail_to("a@example.org")).await;
    assert_eq!(of_field(&reply, 400), "On-Behalf-Of");
}

#[tokio::test]
async fn all_mistakes_are_named_at_once() {
    let app = quiet().await;
    let mail = json!({
        "personalizations": [
            { "to": [{ "email": "nobody", "name": "A\r\nB" }, { "email": 7 }], "custom_args": { "a": 1 } },
            { "cc": [{ "name": "X" }], "send_at": "soon", "unknown": 1 },
        ],
        "from": { "name": "X" },
        "content": [{ "type": "text/calendar", "value": "x" }],
        "categories": [1],
        "emails": [],
    });
    let error = app.post(SEND, &mail).await.expect(400);
    let errors = error["errors"].as_array().unwrap();
    let fields: Vec<&str> = errors
        .iter()
        .map(|error| error["field"].as_str().unwrap())
        .collect();
    for field in [
        "personalizations.0.to.0.email",
        "personalizations.0.to.1.email",
        "personalizations.0.custom_args",
        "personalizations.1.to",
        "personalizations.1.cc.0.email",
        "personalizations.1.send_at",
        "personalizations.1.unknown",
        "from.email",
        "content.0.type",
        "subject",
        "emails",
    ] {
        assert!(fields.contains(&field), "{field} in {fields:?}");
    }
}

#[tokio::test]
async fn the_reset_of_the_limit_is_a_time() {
    let app = TestApp::builder()
        .setting("WAYPOST_RATE_LIMIT_SEND_MAX", "2")
        .start()
        .await;
    let before = app.clock.now().timestamp();
    for _ in 0..2 {
        app.post(SEND, &json!({})).await.expect(400);
    }
    let over = app.post(SEND, &json!({})).await;
    let (message, _) = refused(&over, 429);
    assert_eq!(message, "too many requests");
    let reset: i64 = over.header("x-ratelimit-reset").unwrap().parse().unwrap();
    assert!((before..before + 120).contains(&reset), "{reset}");
    assert_eq!(over.header("x-ratelimit-limit"), Some("2"));
}

/// Whatever a field holds, the answer is one of SendGrid's.
#[tokio::test]
async fn hostile_values_are_accepted_or_refused_in_form() {
    let app = quiet().await;
    let tester = app.test_key(&[Permission::Send]).await;
    let deep = (0..200).fold(json!("x"), |inner, _| json!([inner]));
    let values = [
        json!(true),
        json!(-1),
        json!(1e300),
        json!(""),
        json!("a\r\nBcc: eve@example.org"),
        json!("\u{0}"),
        json!([]),
        json!([[]]),
        json!({}),
        json!({ "": {} }),
        json!({ "email": "a@example.org\r\nBcc: b@example.org" }),
        json!([{ "email": "<a@example.org>, b@example.org" }]),
        deep,
    ];
    for field in super::described::shown("sendgrid") {
        for value in &values {
            let mut mail = mail_to("ada@example.org");
            put(&mut mail, &field, value.clone());
            let reply = tester.post(SEND, &mail).await;
            match reply.status {
                200 | 202 => {}
                status => {
                    assert!(matches!(status, 400 | 403), "{field}: {mail} {reply:?}");
                    refused(&reply, status);
                }
            }
        }
    }
    app.drain().await;
    assert_eq!(app.simulator().captured_count(), 0);
}

/// Puts a value at a path such as `attachments[].content`.
fn put(into: &mut Value, path: &str, value: Value) {
    let (name, rest) = path.split_once('.').unwrap_or((path, ""));
    let (name, is_list) = match name.strip_suffix("[]") {
        Some(name) => (name, true),
        None => (name, false),
    };
    if rest.is_empty() {
        into[name] = value;
        return;
    }
    let inner = match is_list {
        true => {
            if into[name][0].is_null() {
                into[name] = json!([{}]);
            }
            &mut into[name][0]
        }
        false => {
            if into[name].is_null() {
                into[name] = json!({});
            }
            &mut into[name]
        }
    };
    put(inner, rest, value);
}

#[tokio::test]
async fn many_personalizations_are_accepted_together() {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    app.leave_work();
    let to = |index: usize| json!({ "to": [{ "email": format!("to{index}@example.org") }] });
    let mut mail = mail_to("");
    mail["personalizations"] = (0..1_000).map(to).collect();
    sent(&app, &mail).await;
    let messages = app.value("SELECT count(*)::text FROM messages").await;
    assert_eq!(messages.as_deref(), Some("1"));
    let own = (0..1_000).map(|index| {
        let mut own = to(index);
        merge(&mut own, &json!({ "subject": format!("For {index}") }));
        own
    });
    mail["personalizations"] = own.collect();
    sent(&app, &mail).await;
    let messages = app.value("SELECT count(*)::text FROM messages").await;
    assert_eq!(messages.as_deref(), Some("1001"));
    mail["personalizations"] = (0..1_001).map(to).collect();
    let reply = app.post(SEND, &mail).await;
    assert_eq!(of_field(&reply, 400), "personalizations");
    // Each has the bodies of its own: together they would be too much.
    let own = (0..1_000).map(|index| {
        let mut own = to(index);
        merge(&mut own, &json!({ "subject": "x" }));
        own
    });
    mail["personalizations"] = own.collect();
    mail["content"][0]["value"] = json!("x".repeat(100_000));
    let reply = app.post(SEND, &mail).await;
    assert_eq!(of_field(&reply, 400), "personalizations");
}

#[tokio::test]
async fn another_method_of_the_path_is_answered_in_form() {
    let app = quiet().await;
    for method in [Method::GET, Method::PUT, Method::DELETE] {
        let reply = app.caller().call(method, SEND, |request| request).await;
        refused(&reply, 405);
    }
}
