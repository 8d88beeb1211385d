//! Every field of SendGrid's description of a mail is delivered, or refused.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_simulator::Captured;

use super::described::{fields, merge, shown, with_ids};
use super::quiet;
use super::sendgrid::{SEND, mail_to, refused, sent};
use crate::adapters::documents::shared;

/// What becomes of a field.
enum Becomes {
    /// The mail shows it.
    Delivered(fn(&Captured)),
    /// The request is accepted, and is a test.
    Tried,
    /// The request is refused because of the field with this path.
    Refused(&'static str),
}

use Becomes::{Delivered, Refused, Tried};

type Case = (&'static str, Value, Becomes);

/// A field, a mail's members with it, and what becomes of it. `TEMPLATE` and `GROUP` stand for the
/// ids of a template and of an unsubscribe group, and `TO` for the recipient.
fn cases() -> Vec<Case> {
    [
        of_personalizations(),
        of_the_mail(),
        of_attachments(),
        of_mail_settings(),
        of_tracking(),
        of_asm(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn person(more: &Value) -> Value {
    let mut person = json!({ "to": [{ "email": "TO" }] });
    merge(&mut person, more);
    json!({ "personalizations": [person] })
}

#[expect(clippy::too_many_lines, reason = "a list of cases")]
fn of_personalizations() -> Vec<Case> {
    let hidden =
        || Delivered(|mail| assert_eq!(mail.visible_recipients, std::slice::from_ref(&mail.to)));
    let bcc = |bcc: Value| person(&json!({ "bcc": [bcc] }));
    let seen_cc = || Delivered(|mail| assert_eq!(mail.visible_cc, ["cc@example.org"]));
    let cc = |cc: Value| person(&json!({ "cc": [cc] }));
    let from = |from: Value| person(&json!({ "from": from }));
    let of_the_shop = || Delivered(|mail| assert_eq!(mail.from, "Shop <shop@example.com>"));
    let from_shop = json!({ "email": "shop@example.com", "name": "Shop" });
    let alone =
        || Delivered(|mail| assert_eq!(mail.visible_recipients, std::slice::from_ref(&mail.to)));
    vec![
        ("personalizations", json!({}), alone()),
        ("personalizations[].to", json!({}), alone()),
        ("personalizations[].to[].email", json!({}), alone()),
        (
            "personalizations[].to[].name",
            person(&json!({ "to": [{ "email": "TO", "name": "Ada" }] })),
            alone(),
        ),
        (
            "personalizations[].cc",
            cc(json!({ "email": "cc@example.org" })),
            seen_cc(),
        ),
        (
            "personalizations[].cc[].email",
            cc(json!({ "email": "cc@example.org" })),
            seen_cc(),
        ),
        (
            "personalizations[].cc[].name",
            cc(json!({ "email": "cc@example.org", "name": "C" })),
            seen_cc(),
        ),
        (
            "personalizations[].bcc",
            bcc(json!({ "email": "hidden@example.org" })),
            hidden(),
        ),
        (
            "personalizations[].bcc[].email",
            bcc(json!({ "email": "hidden@example.org" })),
            hidden(),
        ),
        (
            "personalizations[].bcc[].name",
            bcc(json!({ "email": "hidden@example.org", "name": "H" })),
            hidden(),
        ),
        (
            "personalizations[].from",
            from(from_shop.clone()),
            of_the_shop(),
        ),
        (
            "personalizations[].from.email",
            from(from_shop.clone()),
            of_the_shop(),
        ),
        (
            "personalizations[].from.name",
            from(from_shop),
            of_the_shop(),
        ),
        (
            "personalizations[].subject",
            person(&json!({ "subject": "Own" })),
            Delivered(|mail| assert_eq!(mail.subject, "Own")),
        ),
        (
            "personalizations[].headers",
            person(&json!({ "headers": { "X-Order": "7" } })),
            Delivered(|mail| assert_eq!(mail.headers["X-Order"], "7")),
        ),
        (
            "personalizations[].substitutions",
            person(&json!({ "substitutions": { "Hello": "Bye" } })),
            Delivered(|mail| {
                assert_eq!(
                    (mail.subject.as_str(), mail.html.as_deref()),
                    ("Bye", Some("<p>Bye</p>"))
                )
            }),
        ),
        (
            "personalizations[].dynamic_template_data",
            with(
                json!({ "template_id": "TEMPLATE", "content": null }),
                &person(&json!({ "dynamic_template_data": { "name": "Ada" } })),
            ),
            Delivered(|mail| assert_eq!(mail.html.as_deref(), Some("<p>Hi Ada!</p>"))),
        ),
        (
            "personalizations[].dynamic_template_data",
            person(&json!({ "dynamic_template_data": {} })),
            Refused("personalizations.0.dynamic_template_data"),
        ),
        (
            "personalizations[].custom_args",
            person(&json!({ "custom_args": { "order": "7" } })),
            Delivered(|mail| assert!(mail.metadata.contains_key("waypost_message"))),
        ),
        (
            "personalizations[].send_at",
            person(&json!({ "send_at": 1 })),
            alone(),
        ),
    ]
}

fn with(mut mail: Value, more: &Value) -> Value {
    merge(&mut mail, more);
    mail
}

#[expect(clippy::too_many_lines, reason = "a list of cases")]
fn of_the_mail() -> Vec<Case> {
    let from = json!({ "from": { "email": "shop@example.com", "name": "Shop" } });
    let of_the_shop = || Delivered(|mail| assert_eq!(mail.from, "Shop <shop@example.com>"));
    let reply = json!({ "reply_to": { "email": "help@example.com", "name": "Help" } });
    let replied =
        || Delivered(|mail| assert_eq!(mail.reply_to.as_deref(), Some("Help <help@example.com>")));
    let replies = json!({ "reply_to_list": [{ "email": "help@example.com", "name": "Help" }] });
    let text = json!({ "content": [{ "type": "text/plain", "value": "plain" }] });
    let as_text = || Delivered(|mail| assert_eq!(mail.text.as_deref(), Some("plain")));
    vec![
        ("from", from.clone(), of_the_shop()),
        ("from.email", from.clone(), of_the_shop()),
        ("from.name", from, of_the_shop()),
        ("reply_to", reply.clone(), replied()),
        ("reply_to.email", reply.clone(), replied()),
        ("reply_to.name", reply.clone(), replied()),
        ("reply_to_list", replies.clone(), replied()),
        ("reply_to_list[].email", replies.clone(), replied()),
        ("reply_to_list[].name", replies.clone(), replied()),
        (
            "reply_to_list",
            with(replies, &reply),
            Refused("reply_to_list"),
        ),
        (
            "subject",
            json!({ "subject": "Grüße" }),
            Delivered(|mail| assert_eq!(mail.subject, "Grüße")),
        ),
        ("content", text.clone(), as_text()),
        ("content[].type", text.clone(), as_text()),
        ("content[].value", text, as_text()),
        (
            "content[].type",
            json!({ "content": [{ "type": "text/x-amp-html", "value": "x" }] }),
            Refused("content.0.type"),
        ),
        (
            "template_id",
            json!({ "template_id": "TEMPLATE" }),
            Delivered(|mail| assert_eq!(mail.html.as_deref(), Some("<p>Hi !</p>"))),
        ),
        (
            "headers",
            json!({ "headers": { "X-Order": "7" } }),
            Delivered(|mail| assert_eq!(mail.headers["X-Order"], "7")),
        ),
        (
            "headers",
            json!({ "headers": { "X-SG-ID": "7" } }),
            Refused("headers.X-SG-ID"),
        ),
        (
            "categories",
            json!({ "categories": ["orders", "shop"] }),
            Delivered(|mail| assert_eq!(mail.tags, ["orders", "shop"])),
        ),
        (
            "custom_args",
            json!({ "custom_args": { "order": "7" } }),
            Delivered(|mail| assert!(mail.metadata.contains_key("waypost_message"))),
        ),
        (
            "send_at",
            json!({ "send_at": 1 }),
            Delivered(|mail| assert_eq!(mail.subject, "Hello")),
        ),
        ("batch_id", json!({ "batch_id": "x" }), Refused("batch_id")),
        (
            "ip_pool_name",
            json!({ "ip_pool_name": "pool" }),
            Refused("ip_pool_name"),
        ),
        (
            "sections",
            json!({ "sections": { "a": "b" } }),
            Refused("sections"),
        ),
    ]
}

fn of_attachments() -> Vec<Case> {
    let file = json!({ "attachments": [{ "content": "QUJD", "filename": "a.csv", "type": "text/csv", "disposition": "attachment", "content_id": "unused" }] });
    let inline = json!({
        "content": [{ "type": "text/html", "value": "<img src=\"cid:logo\">" }],
        "attachments": [{ "content": "QUJD", "filename": "a.png", "disposition": "inline", "content_id": "logo" }],
    });
    let shown =
        || Delivered(|mail| assert_eq!(mail.attachments[0].content_id.as_deref(), Some("logo")));
    vec![
        (
            "attachments",
            file.clone(),
            Delivered(|mail| assert_eq!(mail.attachments.len(), 1)),
        ),
        (
            "attachments[].content",
            file.clone(),
            Delivered(|mail| assert_eq!(&mail.attachments[0].content[..], b"ABC")),
        ),
        (
            "attachments[].type",
            file.clone(),
            Delivered(|mail| assert_eq!(mail.attachments[0].content_type, "text/csv")),
        ),
        (
            "attachments[].filename",
            file.clone(),
            Delivered(|mail| assert_eq!(mail.attachments[0].filename, "a.csv")),
        ),
        (
            "attachments[].disposition",
            file,
            Delivered(|mail| assert_eq!(mail.attachments[0].content_id, None)),
        ),
        ("attachments[].disposition", inline.clone(), shown()),
        ("attachments[].content_id", inline, shown()),
        (
            "attachments[].content_id",
            json!({ "attachments": [{ "content": "QUJD", "filename": "a.png", "disposition": "inline" }] }),
            Refused("attachments.0.content_id"),
        ),
    ]
}

/// A setting that is accepted if it is off, and refused if it is on.
fn only_off(parent: &str, name: &str, more: &Value) -> [Value; 2] {
    [false, true].map(|is_on| {
        let mut setting = json!({ "enable": is_on });
        merge(&mut setting, more);
        json!({ parent: { name: setting } })
    })
}

fn of_mail_settings() -> Vec<Case> {
    let mut cases = vec![
        (
            "mail_settings",
            json!({ "mail_settings": {} }),
            Delivered(|mail| assert_eq!(mail.subject, "Hello")),
        ),
        (
            "mail_settings.sandbox_mode",
            json!({ "mail_settings": { "sandbox_mode": { "enable": false } } }),
            Delivered(|mail| assert_eq!(mail.subject, "Hello")),
        ),
        (
            "mail_settings.sandbox_mode.enable",
            json!({ "mail_settings": { "sandbox_mode": { "enable": true } } }),
            Tried,
        ),
        (
            "mail_settings.bcc",
            json!({ "mail_settings": { "bcc": { "enable": true, "email": "a@example.org" } } }),
            Refused("mail_settings.bcc"),
        ),
        (
            "mail_settings.spam_check",
            json!({ "mail_settings": { "spam_check": { "enable": true } } }),
            Refused("mail_settings.spam_check"),
        ),
    ];
    for (setting, enable, name) in [
        (
            "mail_settings.bypass_list_management",
            "mail_settings.bypass_list_management.enable",
            "bypass_list_management",
        ),
        (
            "mail_settings.bypass_spam_management",
            "mail_settings.bypass_spam_management.enable",
            "bypass_spam_management",
        ),
        (
            "mail_settings.bypass_bounce_management",
            "mail_settings.bypass_bounce_management.enable",
            "bypass_bounce_management",
        ),
        (
            "mail_settings.bypass_unsubscribe_management",
            "mail_settings.bypass_unsubscribe_management.enable",
            "bypass_unsubscribe_management",
        ),
    ] {
        let [off, on] = only_off("mail_settings", name, &json!({}));
        cases.push((
            setting,
            off,
            Delivered(|mail| assert_eq!(mail.subject, "Hello")),
        ));
        cases.push((enable, on, Refused(enable)));
    }
    let texts = json!({ "text": "x", "html": "<p>x</p>" });
    let enable = "mail_settings.footer.enable";
    let [off, on] = only_off("mail_settings", "footer", &texts);
    for field in [
        "mail_settings.footer",
        "mail_settings.footer.text",
        "mail_settings.footer.html",
    ] {
        let unchanged = Delivered(|mail| assert_eq!(mail.html.as_deref(), Some("<p>Hello</p>")));
        cases.push((field, off.clone(), unchanged));
    }
    cases.push((enable, on, Refused(enable)));
    cases
}

#[expect(clippy::too_many_lines, reason = "a list of cases")]
fn of_tracking() -> Vec<Case> {
    let unchanged = || Delivered(|mail| assert_eq!(mail.html.as_deref(), Some("<p>Hello</p>")));
    let clicks = |settings: Value| {
        json!({
            "content": [{ "type": "text/html", "value": "<a href=\"https://example.com/\">x</a>" }],
            "tracking_settings": { "click_tracking": settings },
        })
    };
    let tracked = || Delivered(|mail| assert!(mail.html.as_ref().unwrap().contains("/v1/t/")));
    let with_text = json!({
        "content": [{ "type": "text/plain", "value": "https://example.com/" }],
        "tracking_settings": { "click_tracking": { "enable": true, "enable_text": true } },
    });
    let opens = |settings: Value| json!({ "tracking_settings": { "open_tracking": settings } });
    let mut cases = vec![
        (
            "tracking_settings",
            json!({ "tracking_settings": {} }),
            unchanged(),
        ),
        (
            "tracking_settings.click_tracking",
            clicks(json!({ "enable": true })),
            tracked(),
        ),
        (
            "tracking_settings.click_tracking.enable",
            clicks(json!({ "enable": true })),
            tracked(),
        ),
        (
            "tracking_settings.click_tracking.enable_text",
            clicks(json!({ "enable": true, "enable_text": true })),
            tracked(),
        ),
        (
            "tracking_settings.click_tracking.enable_text",
            with_text,
            Refused("tracking_settings.click_tracking.enable_text"),
        ),
        (
            "tracking_settings.open_tracking",
            opens(json!({ "enable": true })),
            tracked(),
        ),
        (
            "tracking_settings.open_tracking.enable",
            opens(json!({ "enable": true })),
            tracked(),
        ),
        (
            "tracking_settings.open_tracking.substitution_tag",
            opens(json!({ "enable": true, "substitution_tag": "%open%" })),
            Refused("tracking_settings.open_tracking.substitution_tag"),
        ),
    ];
    let texts = json!({ "text": "x", "html": "x", "substitution_tag": "x" });
    let enable = "tracking_settings.subscription_tracking.enable";
    let [off, on] = only_off("tracking_settings", "subscription_tracking", &texts);
    for field in [
        "tracking_settings.subscription_tracking",
        "tracking_settings.subscription_tracking.text",
        "tracking_settings.subscription_tracking.html",
        "tracking_settings.subscription_tracking.substitution_tag",
    ] {
        cases.push((field, off.clone(), unchanged()));
    }
    cases.push((enable, on, Refused(enable)));
    let texts = json!({ "utm_source": "x", "utm_medium": "x", "utm_term": "x", "utm_content": "x", "utm_campaign": "x" });
    let enable = "tracking_settings.ganalytics.enable";
    let [off, on] = only_off("tracking_settings", "ganalytics", &texts);
    for field in [
        "tracking_settings.ganalytics",
        "tracking_settings.ganalytics.utm_source",
        "tracking_settings.ganalytics.utm_medium",
        "tracking_settings.ganalytics.utm_term",
        "tracking_settings.ganalytics.utm_content",
        "tracking_settings.ganalytics.utm_campaign",
    ] {
        cases.push((field, off.clone(), unchanged()));
    }
    cases.push((enable, on, Refused(enable)));
    cases
}

fn of_asm() -> Vec<Case> {
    let grouped = || Delivered(|mail| assert!(mail.headers.contains_key("List-Unsubscribe")));
    vec![
        ("asm", json!({ "asm": { "group_id": "GROUP" } }), grouped()),
        (
            "asm.group_id",
            json!({ "asm": { "group_id": "GROUP" } }),
            grouped(),
        ),
        (
            "asm.group_id",
            json!({ "asm": { "group_id": 7 } }),
            Refused("asm.group_id"),
        ),
        (
            "asm.groups_to_display",
            json!({ "asm": { "group_id": "GROUP", "groups_to_display": [1] } }),
            Refused("asm.groups_to_display"),
        ),
    ]
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
            let mut mail = mail_to(&to);
            let members = with_ids(&members)
                .to_string()
                .replace("\"TO\"", &format!("{to:?}"));
            merge(&mut mail, &serde_json::from_str(&members).unwrap());
            (to, mail, becomes)
        })
        .collect();
    for (_, mail, becomes) in &cases {
        match becomes {
            Delivered(_) => {
                sent(&app, mail).await;
            }
            Tried => {
                assert_eq!(app.post(SEND, mail).await.status, 200);
            }
            Refused(path) => {
                let (message, field) = refused(&app.post(SEND, mail).await, 400);
                assert_eq!(field.as_deref(), Some(*path), "{mail}: {message}");
            }
        }
    }
    app.drain().await;
    app.advance_and_drain(TimeDelta::minutes(5)).await;
    for (to, _, becomes) in &cases {
        match becomes {
            Delivered(check) => check(&app.captured_once(to)),
            Tried | Refused(..) => assert!(app.captured(to).is_empty(), "{to}"),
        }
    }
    assert_eq!(app.captured("hidden@example.org").len(), 3);
}

#[test]
fn no_field_of_the_description_is_left_out() {
    let tried: BTreeSet<String> = cases()
        .iter()
        .map(|(field, ..)| (*field).to_owned())
        .collect();
    assert_eq!(
        tried,
        shown("sendgrid"),
        "a case for each field of the table"
    );
    let Some(document) = shared("providers/specs/sendgrid-mail.json") else {
        return;
    };
    let body = &document["paths"]["/v3/mail/send"]["post"]["requestBody"];
    let body = match body["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).unwrap(),
        None => body,
    };
    let described = fields(&document, &body["content"]["application/json"]["schema"]);
    assert!(described.contains("attachments[].content"), "{described:?}");
    let missing: Vec<&String> = described.difference(&tried).collect();
    assert!(missing.is_empty(), "not in the table: {missing:?}");
}
