//! Every field of Resend's description of an email is delivered, or refused.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_simulator::Captured;
use waypost_tests::TestApp;

use super::described::{fields, merge, shown};
use super::resend::{email_to, sent};
use super::{EMAILS, quiet, refused};
use crate::adapters::documents::shared;

/// What becomes of a field.
enum Becomes {
    /// The mail shows it.
    Delivered(fn(&Captured)),
    /// The request is refused, with a message that begins so.
    Refused(&'static str, &'static str),
}

use Becomes::{Delivered, Refused};

/// A field, an email's members with it, and what becomes of it. `TEMPLATE` and `GROUP` stand for
/// the ids of a template and of an unsubscribe group.
#[expect(clippy::too_many_lines, reason = "a list of cases")]
fn cases() -> Vec<(&'static str, Value, Becomes)> {
    let file = |more: Value| {
        let mut file = json!({ "filename": "a.txt", "content": "QUJD" });
        merge(&mut file, &more);
        json!({ "attachments": [file] })
    };
    vec![
        (
            "from",
            json!({ "from": "Acme <news@example.com>" }),
            Delivered(|mail| assert_eq!(mail.from, "Acme <news@example.com>")),
        ),
        (
            "to",
            json!({}),
            Delivered(|mail| assert_eq!(mail.visible_recipients, [mail.to.as_str()])),
        ),
        (
            "subject",
            json!({ "subject": "Grüße" }),
            Delivered(|mail| assert_eq!(mail.subject, "Grüße")),
        ),
        (
            "cc",
            json!({ "cc": ["c@example.org"] }),
            Delivered(|mail| assert_eq!(mail.visible_cc, ["c@example.org"])),
        ),
        (
            "bcc",
            json!({ "bcc": "hidden@example.org" }),
            Delivered(|mail| assert_eq!(mail.visible_recipients, [mail.to.as_str()])),
        ),
        (
            "reply_to",
            json!({ "reply_to": "help@example.com" }),
            Delivered(|mail| assert_eq!(mail.reply_to.as_deref(), Some("help@example.com"))),
        ),
        (
            "html",
            json!({ "html": "<b>x</b>" }),
            Delivered(|mail| assert_eq!(mail.html.as_deref(), Some("<b>x</b>"))),
        ),
        (
            "text",
            json!({ "text": "plain" }),
            Delivered(|mail| assert_eq!(mail.text.as_deref(), Some("plain"))),
        ),
        (
            "template",
            json!({ "html": null, "template": { "id": "TEMPLATE" } }),
            Delivered(|mail| assert_eq!(mail.html.as_deref(), Some("<p>Hi !</p>"))),
        ),
        (
            "template.id",
            json!({ "html": null, "template": { "id": "welcome" } }),
            Refused("validation_error", "template.id must be"),
        ),
        (
            "template.variables",
            json!({ "html": null, "template": { "id": "TEMPLATE", "variables": { "name": "Ada" } } }),
            Delivered(|mail| assert_eq!(mail.html.as_deref(), Some("<p>Hi Ada!</p>"))),
        ),
        (
            "headers",
            json!({ "headers": { "X-Order": "1042" } }),
            Delivered(|mail| assert_eq!(mail.headers["X-Order"], "1042")),
        ),
        (
            "scheduled_at",
            json!({ "scheduled_at": "in 5 minutes" }),
            Delivered(|mail| {
                let at = chrono::DateTime::parse_from_rfc3339(&mail.accepted_at);
                assert!(at.is_ok());
            }),
        ),
        (
            "attachments",
            file(json!({})),
            Delivered(|mail| assert_eq!(mail.attachments.len(), 1)),
        ),
        (
            "attachments[].content",
            file(json!({ "content": [65, 66, 67] })),
            Delivered(|mail| assert_eq!(&mail.attachments[0].content[..], b"ABC")),
        ),
        (
            "attachments[].content",
            file(json!({ "content": { "type": "Buffer", "data": [65, 66, 67] } })),
            Delivered(|mail| assert_eq!(&mail.attachments[0].content[..], b"ABC")),
        ),
        (
            "attachments[].filename",
            file(json!({})),
            Delivered(|mail| assert_eq!(mail.attachments[0].filename, "a.txt")),
        ),
        // No such host: the file is fetched when the email is accepted.
        (
            "attachments[].path",
            json!({ "attachments": [{ "path": "https://localhost/a%20b.pdf" }] }),
            Refused("invalid_attachment", "attachments.0.path "),
        ),
        (
            "attachments[].content_type",
            file(json!({ "content_type": "text/csv" })),
            Delivered(|mail| assert_eq!(mail.attachments[0].content_type, "text/csv")),
        ),
        (
            "attachments[].content_id",
            json!({ "html": "<img src=\"cid:logo\">", "attachments": [{ "filename": "a.png", "content": "QUJD", "content_id": "logo" }] }),
            Delivered(|mail| assert_eq!(mail.attachments[0].content_id.as_deref(), Some("logo"))),
        ),
        (
            "attachments[].inline_content_id",
            json!({ "html": "<img src=\"cid:logo\">", "attachments": [{ "filename": "a.png", "content": "QUJD", "inline_content_id": "logo" }] }),
            Delivered(|mail| assert_eq!(mail.attachments[0].content_id.as_deref(), Some("logo"))),
        ),
        (
            "tags",
            json!({ "tags": [{ "name": "order", "value": "7" }] }),
            Delivered(|mail| assert_eq!(mail.tags, ["order:7"])),
        ),
        (
            "tags[].name",
            json!({ "tags": [{ "name": "order" }] }),
            Delivered(|mail| assert_eq!(mail.tags, ["order"])),
        ),
        (
            "tags[].value",
            json!({ "tags": [{ "value": "7" }] }),
            Refused("missing_required_field", "tags.0.name is required"),
        ),
        (
            "topic_id",
            json!({ "topic_id": "GROUP" }),
            Delivered(|mail| assert!(mail.headers.contains_key("List-Unsubscribe"))),
        ),
        (
            "region",
            json!({ "region": "eu-west-1" }),
            Refused("validation_error", "region is not supported"),
        ),
    ]
}

/// The ids of a template and of a group in place of their names.
async fn with_ids(app: &TestApp) -> impl Fn(&Value) -> Value + use<> {
    let template = app
        .post("/v1/templates", &json!({ "name": "Welcome" }))
        .await
        .data(201);
    let template = template["id"].as_str().unwrap().to_owned();
    let version = json!({ "subject": "Hello", "htmlContent": "<p>Hi {{name}}!</p>" });
    let versions = format!("/v1/templates/{template}/versions");
    app.post(&versions, &version).await.expect(201);
    let group = app
        .post("/v1/unsubscribe-groups", &json!({ "name": "News" }))
        .await
        .data(201);
    let group = group["id"].as_str().unwrap().to_owned();
    move |members| {
        let text = members
            .to_string()
            .replace("TEMPLATE", &template)
            .replace("GROUP", &group);
        serde_json::from_str(&text).unwrap()
    }
}

#[tokio::test]
async fn every_field_is_delivered_or_refused() {
    let app = quiet().await;
    let with_ids = with_ids(&app).await;
    let cases: Vec<(String, Value, Becomes)> = cases()
        .into_iter()
        .enumerate()
        .map(|(index, (_, members, becomes))| {
            let to = format!("case{index}@example.org");
            let mut email = email_to(&to);
            merge(&mut email, &with_ids(&members));
            (to, email, becomes)
        })
        .collect();
    for (to, email, becomes) in &cases {
        match becomes {
            Delivered(_) => {
                let id = sent(&app, email).await;
                if email.get("scheduled_at").is_some() {
                    app.drain().await;
                    assert!(app.captured(to).is_empty(), "{id} is early");
                }
            }
            Refused(name, begin) => {
                let message = refused(&app.post(EMAILS, email).await, 422, name);
                assert!(message.starts_with(begin), "{email}: {message}");
            }
        }
    }
    app.drain().await;
    app.advance_and_drain(TimeDelta::minutes(5)).await;
    for (to, _, becomes) in &cases {
        match becomes {
            Delivered(check) => check(&app.captured_once(to)),
            Refused(..) => assert!(app.captured(to).is_empty(), "{to}"),
        }
    }
    assert_eq!(app.captured("hidden@example.org").len(), 1);
}

#[test]
fn no_field_of_the_description_is_left_out() {
    let tried: BTreeSet<String> = cases()
        .iter()
        .map(|(field, ..)| (*field).to_owned())
        .collect();
    assert_eq!(tried, shown("resend"), "a case for each field of the table");
    let Some(document) = shared("providers/specs/resend.openapi.json") else {
        return;
    };
    let schema = document
        .pointer("/components/schemas/SendEmailRequest")
        .unwrap();
    let described = fields(&document, schema);
    assert!(described.contains("attachments[].content"), "{described:?}");
    let missing: Vec<&String> = described.difference(&tried).collect();
    assert!(missing.is_empty(), "not in the table: {missing:?}");
}
