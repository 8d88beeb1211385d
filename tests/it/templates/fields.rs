//! What a version brings besides its bodies: subject, preheader, sender, addresses for replies.

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{SENDER, TestApp, untracked};

use super::{add_version, preview, quiet, template};

/// A version with all fields.
fn whole() -> Value {
    json!({
        "subject": "Order {{order.id}} for {{name}}",
        "preheader": "Hi {{name}}, it is < 3 days away",
        "from": format!("Shop <{SENDER}>"),
        "replyTo": ["a@example.com", "Help <b@example.com>"],
        "htmlContent": "<html><body class=\"x\"><p>{{name}}</p></body></html>",
        "textContent": "{{name}}",
    })
}

fn message(template_id: &str, variables: &Value) -> Value {
    json!({
        "to": "ada@example.org", "templateId": template_id, "variables": variables, "tracking": untracked(),
    })
}

#[tokio::test]
async fn a_send_takes_from_the_version_what_it_leaves_out() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = template(&app).await;
    let created = add_version(&app, &id, &whole()).await.data(201);
    for field in ["subject", "preheader", "from", "replyTo"] {
        assert_eq!(created[field], whole()[field]);
    }
    let variables = json!({ "name": "Ada & <Bob>", "order": { "id": 7 } });
    let sent = app.send(&message(&id, &variables)).await;
    app.drain().await;
    let copy = app.captured_once("ada@example.org");
    assert_eq!(copy.subject, "Order 7 for Ada & <Bob>");
    assert_eq!(copy.text.as_deref(), Some("Ada & <Bob>"));
    let html = copy.html.unwrap();
    let (before, rest) = html.split_once("<div style=\"display:none;").unwrap();
    assert_eq!(before, "<html><body class=\"x\">");
    let (_, rest) = rest.split_once('>').unwrap();
    assert_eq!(
        rest,
        "Hi Ada &amp; &lt;Bob&gt;, it is &lt; 3 days away</div><p>Ada &amp; &lt;Bob&gt;</p></body></html>"
    );
    let stored = app
        .value("SELECT from_mailbox || ' | ' || reply_to FROM message_bodies")
        .await
        .unwrap();
    assert_eq!(
        stored,
        format!("Shop <{SENDER}> | a@example.com, Help <b@example.com>")
    );
    assert_eq!(
        app.message(&sent).await["subject"],
        "Order 7 for Ada & <Bob>"
    );
}

#[tokio::test]
async fn what_a_send_gives_wins() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = template(&app).await;
    add_version(&app, &id, &whole()).await.data(201);
    for (reply_to, stored) in [
        (json!("own@example.com"), Some("own@example.com")),
        (json!([]), None),
    ] {
        let mut own = message(&id, &json!({ "name": "Ada" }));
        own["subject"] = json!("Own {{name}}");
        own["from"] = json!(format!("Own <{SENDER}>"));
        own["replyTo"] = reply_to;
        let sent = app.send(&own).await;
        assert_eq!(app.message(&sent).await["subject"], "Own Ada");
        let query = format!("SELECT reply_to FROM message_bodies WHERE message_id = '{sent}'");
        assert_eq!(app.value(&query).await.as_deref(), stored);
        let query = format!("SELECT from_mailbox FROM message_bodies WHERE message_id = '{sent}'");
        assert_eq!(app.value(&query).await, Some(format!("Own <{SENDER}>")));
    }
    app.drain().await;
}

#[tokio::test]
async fn what_neither_has_is_named() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = template(&app).await;
    add_version(&app, &id, &json!({ "htmlContent": "x" }))
        .await
        .data(201);
    let all = app
        .post("/v1/send", &message(&id, &json!({})))
        .await
        .expect_issues(400, &["from", "subject"]);
    assert!(
        all.to_string()
            .contains("the version of the template has none"),
        "{all}"
    );
    for (field, value) in [("from", json!(SENDER)), ("subject", json!("s"))] {
        let mut one = message(&id, &json!({}));
        one[field] = value;
        let other = if field == "from" { "subject" } else { "from" };
        app.post("/v1/send", &one)
            .await
            .expect_issues(400, &[other]);
    }
    let plain = json!({ "to": "ada@example.org", "text": "x" });
    let error = app
        .post("/v1/send", &plain)
        .await
        .expect_issues(400, &["from", "subject"]);
    assert!(
        error
            .to_string()
            .contains("unless templateId names a template that has it"),
        "{error}"
    );
    let nulls = json!({ "to": "ada@example.org", "text": "x", "from": null, "subject": null });
    app.post("/v1/send", &nulls)
        .await
        .expect_issues(400, &["from", "subject"]);
    let batch = json!({ "messages": [message(&id, &json!({})), plain] });
    let batch = app.post("/v1/emails/batch", &batch).await.expect(200);
    for result in batch["results"].as_array().unwrap() {
        let error = result["error"].as_str().unwrap();
        assert!(error.contains("from is required"), "{error}");
    }
    assert_eq!(
        app.value("SELECT count(*) FROM messages").await.as_deref(),
        Some("0")
    );
}

#[tokio::test]
async fn the_sender_of_the_version_decides_the_route() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = template(&app).await;
    let mut content = whole();
    content["from"] = json!("a@unverified.example");
    add_version(&app, &id, &content).await.data(201);
    let refused = app
        .post("/v1/send", &message(&id, &json!({ "name": "Ada" })))
        .await;
    let error = refused.expect_issues(422, &["from"]);
    assert_eq!(error["details"]["reason"], "DOMAIN_NOT_VERIFIED");
    // The next version is used at once, by a batch too.
    add_version(&app, &id, &whole()).await.data(201);
    let messages = json!({ "messages": vec![message(&id, &json!({ "name": "Ada" })); 3] });
    let batch = app.post("/v1/emails/batch", &messages).await.expect(200);
    for result in batch["results"].as_array().unwrap() {
        assert_eq!(result["status"], "queued", "{batch}");
    }
    app.leave_work();
}

#[tokio::test]
async fn recipients_with_variables_of_their_own_get_their_own_subject_and_preheader() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = template(&app).await;
    add_version(&app, &id, &whole()).await.data(201);
    let mut many = message(&id, &json!({ "order": { "id": 1 } }));
    many["to"] = json!([
        { "email": "ada@example.org", "variables": { "name": "Ada" } },
        { "email": "bob@example.org", "variables": { "name": "Bob" } },
    ]);
    app.send(&many).await;
    app.drain().await;
    for (address, name) in [("ada@example.org", "Ada"), ("bob@example.org", "Bob")] {
        let copy = app.captured_once(address);
        assert_eq!(copy.subject, format!("Order 1 for {name}"));
        let html = copy.html.unwrap();
        assert!(html.contains(&format!(">Hi {name}, it is")), "{html}");
        assert_eq!(copy.text.as_deref(), Some(name));
    }
}

#[tokio::test]
async fn the_subject_of_a_version_keeps_the_rules_of_subjects() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = template(&app).await;
    for (subject, preheader, paths) in [
        (
            json!("{{#if"),
            json!("{{> x}}"),
            &["subject", "preheader"][..],
        ),
        (json!(""), json!(""), &["subject", "preheader"]),
        (json!("a\nb"), json!("a\nb"), &["subject", "preheader"]),
        (
            json!("x".repeat(999)),
            json!("x".repeat(1_001)),
            &["subject", "preheader"],
        ),
        (json!(1), json!({}), &["subject", "preheader"]),
        (json!("x".repeat(998)), json!("x".repeat(1_000)), &[]),
    ] {
        let content = json!({ "htmlContent": "x", "subject": subject, "preheader": preheader });
        let reply = add_version(&app, &id, &content).await;
        if paths.is_empty() {
            reply.data(201);
        } else {
            reply.expect_issues(400, paths);
        }
    }
    let content = json!({
        "htmlContent": "x", "from": "nobody", "replyTo": ["x", "a@example.com"], "locale": "??", "layoutId": "1",
    });
    add_version(&app, &id, &content)
        .await
        .expect_issues(400, &["locale", "from", "replyTo.0", "layoutId"]);
    let many = vec!["a@example.com"; 11];
    add_version(&app, &id, &json!({ "htmlContent": "x", "replyTo": many }))
        .await
        .expect_issues(400, &["replyTo"]);

    let content = json!({ "htmlContent": "x", "subject": "{{name}}", "from": SENDER });
    add_version(&app, &id, &content).await.data(201);
    for name in ["", &"x".repeat(999)] {
        app.post("/v1/send", &message(&id, &json!({ "name": name })))
            .await
            .expect_issues(400, &["subject"]);
    }
    let sent = app
        .send(&message(&id, &json!({ "name": "a\r\nBcc: b" })))
        .await;
    assert_eq!(app.message(&sent).await["subject"], "a Bcc: b");
    app.leave_work();
}

#[tokio::test]
async fn a_preview_shows_the_subject_and_the_preheader() {
    let app = quiet().await;
    let id = template(&app).await;
    add_version(&app, &id, &whole()).await.data(201);
    let variables = json!({ "variables": { "name": "Ada", "order": { "id": 7 } } });
    let shown = preview(&app, &id, &variables).await.expect(200);
    assert_eq!(shown["subject"], "Order 7 for Ada");
    assert!(
        shown["html"]
            .as_str()
            .unwrap()
            .contains("Hi Ada, it is &lt; 3"),
        "{shown}"
    );
    assert_eq!(shown["text"], "Ada");
    let mut bare = whole();
    bare["subject"] = json!("{{name}}");
    add_version(&app, &id, &bare).await.data(201);
    assert_eq!(
        preview(&app, &id, &json!({})).await.expect(200)["subject"],
        ""
    );
}

#[tokio::test]
async fn a_scheduled_send_keeps_the_fields_of_its_acceptance() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = template(&app).await;
    add_version(&app, &id, &whole()).await.data(201);
    let mut later = message(&id, &json!({ "name": "Ada", "order": { "id": 1 } }));
    let at = app.clock.now() + chrono::TimeDelta::hours(2);
    later["scheduledAt"] = json!(at.to_rfc3339());
    app.send(&later).await;
    let other = json!({ "htmlContent": "other", "subject": "Other", "from": SENDER });
    add_version(&app, &id, &other).await.data(201);
    app.advance_and_drain(chrono::TimeDelta::hours(3)).await;
    assert_eq!(
        app.captured_once("ada@example.org").subject,
        "Order 1 for Ada"
    );
}
