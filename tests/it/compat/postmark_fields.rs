//! Every field of Postmark's description of a message is delivered, or refused.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use waypost_simulator::Captured;

use super::described::{fields, merge, shown, with_ids};
use super::postmark::{EMAIL, Server, WITH_TEMPLATE, message_to, refused};
use super::quiet;
use crate::adapters::documents::shared;

/// What becomes of a field.
enum Becomes {
    /// The mail shows it.
    Delivered(fn(&Captured)),
    /// The request is refused with this number, and a message that begins so.
    Refused(u32, &'static str),
}

use Becomes::{Delivered, Refused};

/// A field, a message's members with it, and what becomes of it. `TEMPLATE` and `GROUP` stand for
/// the ids of a template and of an unsubscribe group.
fn cases() -> Vec<(&'static str, Value, Becomes)> {
    let mut cases = of_head();
    cases.extend(of_content());
    cases.extend(of_files());
    cases.extend(of_templates());
    cases
}

fn of_head() -> Vec<(&'static str, Value, Becomes)> {
    let alone =
        || Delivered(|mail| assert_eq!(mail.visible_recipients, std::slice::from_ref(&mail.to)));
    let header = json!({ "Headers": [{ "Name": "X-Order", "Value": "7" }] });
    let shows_header = || Delivered(|mail| assert_eq!(mail.headers["X-Order"], "7"));
    let reserved = json!({ "Headers": [{ "Name": "X-PM-KeepID", "Value": "true" }] });
    vec![
        (
            "From",
            json!({ "From": "Shop <shop@example.com>" }),
            Delivered(|mail| assert_eq!(mail.from, "Shop <shop@example.com>")),
        ),
        ("To", json!({}), alone()),
        (
            "Cc",
            json!({ "Cc": "C <cc@example.org>" }),
            Delivered(|mail| assert_eq!(mail.visible_cc, ["cc@example.org"])),
        ),
        ("Bcc", json!({ "Bcc": "hidden@example.org" }), alone()),
        (
            "ReplyTo",
            json!({ "ReplyTo": "help@example.com" }),
            Delivered(|mail| assert_eq!(mail.reply_to.as_deref(), Some("help@example.com"))),
        ),
        (
            "Tag",
            json!({ "Tag": "orders" }),
            Delivered(|mail| assert_eq!(mail.tags, ["orders"])),
        ),
        (
            "Metadata",
            json!({ "Metadata": { "order": "7" } }),
            Delivered(|mail| assert!(mail.metadata.contains_key("waypost_message"))),
        ),
        (
            "Metadata",
            json!({ "Metadata": { "order": 7 } }),
            Refused(300, "Metadata must have strings only"),
        ),
        ("Headers", header.clone(), shows_header()),
        ("Headers[].Name", header.clone(), shows_header()),
        ("Headers[].Value", header, shows_header()),
        (
            "Headers",
            reserved,
            Refused(300, "Headers.X-PM-KeepID must not be given"),
        ),
        (
            "MessageStream",
            json!({ "MessageStream": "outbound" }),
            alone(),
        ),
        (
            "MessageStream",
            json!({ "MessageStream": "GROUP" }),
            Delivered(|mail| assert!(mail.headers.contains_key("List-Unsubscribe"))),
        ),
        (
            "MessageStream",
            json!({ "MessageStream": "broadcasts" }),
            Refused(1235, "MessageStream must be outbound"),
        ),
    ]
}

fn of_content() -> Vec<(&'static str, Value, Becomes)> {
    let link = "<a href=\"https://example.com/\">x</a>";
    let links = |choice: &str| json!({ "HtmlBody": link, "TrackLinks": choice });
    let tracked = || Delivered(|mail| assert!(mail.html.as_ref().unwrap().contains("/v1/t/")));
    let with_text = json!({ "TextBody": "plain", "TrackLinks": "HtmlAndText" });
    vec![
        (
            "Subject",
            json!({ "Subject": "Grüße" }),
            Delivered(|mail| assert_eq!(mail.subject, "Grüße")),
        ),
        (
            "HtmlBody",
            json!({ "HtmlBody": "<b>x</b>" }),
            Delivered(|mail| assert_eq!(mail.html.as_deref(), Some("<b>x</b>"))),
        ),
        (
            "TextBody",
            json!({ "TextBody": "plain", "HtmlBody": "" }),
            Delivered(|mail| {
                assert_eq!((mail.text.as_deref(), &mail.html), (Some("plain"), &None))
            }),
        ),
        ("TrackOpens", json!({ "TrackOpens": true }), tracked()),
        ("TrackLinks", links("HtmlOnly"), tracked()),
        ("TrackLinks", links("HtmlAndText"), tracked()),
        (
            "TrackLinks",
            links("None"),
            Delivered(|mail| assert!(!mail.html.as_ref().unwrap().contains("/v1/t/"))),
        ),
        (
            "TrackLinks",
            links("TextOnly"),
            Refused(300, "TrackLinks must be HtmlOnly"),
        ),
        (
            "TrackLinks",
            with_text,
            Refused(300, "TrackLinks must be HtmlOnly"),
        ),
    ]
}

fn of_files() -> Vec<(&'static str, Value, Becomes)> {
    let file = |more: Value| {
        let mut file = json!({ "Name": "a.csv", "Content": "QUJD", "ContentType": "text/csv" });
        merge(&mut file, &more);
        json!({ "Attachments": [file] })
    };
    let mut inline = file(json!({ "ContentID": "cid:logo" }));
    inline["HtmlBody"] = json!("<img src=\"cid:logo\">");
    vec![
        (
            "Attachments",
            file(json!({})),
            Delivered(|mail| assert_eq!(mail.attachments.len(), 1)),
        ),
        (
            "Attachments[].Name",
            file(json!({})),
            Delivered(|mail| assert_eq!(mail.attachments[0].filename, "a.csv")),
        ),
        (
            "Attachments[].Content",
            file(json!({})),
            Delivered(|mail| assert_eq!(&mail.attachments[0].content[..], b"ABC")),
        ),
        (
            "Attachments[].ContentType",
            file(json!({})),
            Delivered(|mail| assert_eq!(mail.attachments[0].content_type, "text/csv")),
        ),
        (
            "Attachments[].ContentID",
            inline,
            Delivered(|mail| assert_eq!(mail.attachments[0].content_id.as_deref(), Some("logo"))),
        ),
        (
            "Attachments[].ContentLength",
            file(json!({ "ContentLength": 3 })),
            Refused(300, "Attachments.0.ContentLength is not supported"),
        ),
        (
            "Attachments[].Disposition",
            file(json!({ "Disposition": "inline" })),
            Refused(300, "Attachments.0.Disposition is not supported"),
        ),
    ]
}

/// They go to `/email/withTemplate`.
fn of_templates() -> Vec<(&'static str, Value, Becomes)> {
    let filled = || Delivered(|mail| assert_eq!(mail.html.as_deref(), Some("<p>Hi Ada!</p>")));
    let template = json!({ "TemplateAlias": "TEMPLATE", "TemplateModel": { "name": "Ada" } });
    let with = |more: Value| {
        let mut message = template.clone();
        merge(&mut message, &more);
        message
    };
    vec![
        ("TemplateAlias", template.clone(), filled()),
        ("TemplateModel", template.clone(), filled()),
        ("InlineCss", with(json!({ "InlineCss": true })), filled()),
        (
            "TemplateId",
            json!({ "TemplateId": 7, "TemplateModel": {} }),
            Refused(1101, "TemplateId must be the id of a template"),
        ),
        (
            "TemplateId",
            with(json!({ "TemplateId": 7 })),
            Refused(
                300,
                "TemplateAlias must not be given together with TemplateId",
            ),
        ),
        (
            "TrackLinks",
            with(json!({ "TrackLinks": "HtmlAndText" })),
            Refused(300, "TrackLinks must be HtmlOnly"),
        ),
    ]
}

#[tokio::test]
async fn every_field_is_delivered_or_refused() {
    let app = quiet().await;
    let server = Server::of(&app).await;
    let with_ids = with_ids(&app).await;
    let cases: Vec<(String, Value, Becomes)> = cases()
        .into_iter()
        .enumerate()
        .map(|(index, (_, members, becomes))| {
            let to = format!("case{index}@example.org");
            let mut message = message_to(&to);
            if members.get("TemplateModel").is_some() {
                merge(&mut message, &json!({ "Subject": null, "HtmlBody": null }));
            }
            merge(&mut message, &with_ids(&members));
            (to, message, becomes)
        })
        .collect();
    for (_, message, becomes) in &cases {
        let path = match message.get("TemplateModel") {
            Some(_) => WITH_TEMPLATE,
            None => EMAIL,
        };
        let reply = server.post(path, message).await;
        match becomes {
            Delivered(_) => {
                reply.expect(200);
            }
            Refused(code, begin) => {
                let text = refused(&reply, 422, *code);
                assert!(text.starts_with(begin), "{message}: {text}");
            }
        }
    }
    app.drain().await;
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
    assert_eq!(
        tried,
        shown("postmark"),
        "a case for each field of the table"
    );
    let Some(document) = shared("providers/specs/postmark-server.json") else {
        return;
    };
    let described = fields(&document, &document["definitions"]["SendEmailRequest"]);
    assert!(described.contains("Attachments[].Content"), "{described:?}");
    let missing: Vec<&String> = described.difference(&tried).collect();
    assert!(missing.is_empty(), "not in the table: {missing:?}");
}
