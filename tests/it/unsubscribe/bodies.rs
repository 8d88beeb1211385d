//! The link in bodies, and its variable in templates.

use serde_json::{Value, json};
use waypost_tests::TestApp;

use super::{group, link_of, message_in, sending};

/// The sent bodies of a message in a group, with `LINK` instead of the link.
async fn arrived(app: &TestApp, group: &str, parts: &Value) -> (Option<String>, Option<String>) {
    let mut message = message_in(group, &["ada@example.org"]);
    for part in ["html", "text"] {
        message.as_object_mut().unwrap().remove(part);
    }
    for (name, value) in parts.as_object().unwrap() {
        message[name] = value.clone();
    }
    app.simulator().clear_captured();
    app.send(&message).await;
    app.drain().await;
    let copy = app.captured_once("ada@example.org");
    let link = link_of(&copy);
    let shown = |body: Option<String>| body.map(|body| body.replace(&link, "LINK"));
    (shown(copy.html), shown(copy.text))
}

async fn template(app: &TestApp, content: &Value) -> String {
    let created = app
        .post("/v1/templates", &json!({ "name": "News" }))
        .await
        .data(201);
    let id = created["id"].as_str().unwrap();
    let _version = app
        .post(&format!("/v1/templates/{id}/versions"), content)
        .await
        .data(201);
    id.to_owned()
}

const PARAGRAPH: &str =
    "<p style=\"text-align:center;font-size:12px\"><a href=\"LINK\">Unsubscribe</a></p>";

#[tokio::test]
async fn the_link_replaces_the_variable_or_is_at_the_end() {
    let app = sending().await;
    let news = group(&app, "News").await;
    for (html, expected) in [
        ("<p>x</p>", format!("<p>x</p>{PARAGRAPH}")),
        (
            "<html><body>x</body></html>",
            format!("<html><body>x{PARAGRAPH}</body></html>"),
        ),
        (
            "<BODY>x</BODY></HTML>",
            format!("<BODY>x{PARAGRAPH}</BODY></HTML>"),
        ),
        (
            "<body><a href='{{unsubscribeUrl}}'>Off</a> {{{ unsubscribeUrl }}}</body>",
            "<body><a href='LINK'>Off</a> LINK</body>".to_owned(),
        ),
    ] {
        let (html, text) = arrived(&app, &news, &json!({ "html": html })).await;
        assert_eq!((html, text), (Some(expected), None));
    }
    for (text, expected) in [
        ("x", "x\n\nUnsubscribe: LINK\n"),
        ("Off: {{ unsubscribeUrl }}\nBye", "Off: LINK\nBye"),
    ] {
        let (html, text) = arrived(&app, &news, &json!({ "text": text })).await;
        assert_eq!((html, text.as_deref()), (None, Some(expected)));
    }
    // Each body is handled separately.
    let both = json!({ "html": "<i>{{unsubscribeUrl}}</i>", "text": "x" });
    let (html, text) = arrived(&app, &news, &both).await;
    assert_eq!(html.as_deref(), Some("<i>LINK</i>"));
    assert_eq!(text.as_deref(), Some("x\n\nUnsubscribe: LINK\n"));
}

#[tokio::test]
async fn a_subject_has_no_link() {
    let app = sending().await;
    let news = group(&app, "News").await;
    let subject = "Off: {{unsubscribeUrl}}";
    let plain = json!({ "html": "x", "subject": subject });
    arrived(&app, &news, &plain).await;
    assert_eq!(app.captured_once("ada@example.org").subject, subject);
    let id = template(&app, &json!({ "htmlContent": "x" })).await;
    let filled = json!({ "templateId": id, "subject": subject });
    arrived(&app, &news, &filled).await;
    assert_eq!(app.captured_once("ada@example.org").subject, "Off: ");
}

#[tokio::test]
async fn without_a_group_the_variable_is_an_ordinary_one() {
    let app = sending().await;
    let body = "<body>{{unsubscribeUrls}}</body>";
    let mut message = waypost_tests::message_to("ada@example.org");
    message["html"] = json!(body);
    message["unsubscribeGroupId"] = Value::Null;
    app.send(&message).await;
    app.drain().await;
    let copy = app.captured_once("ada@example.org");
    assert_eq!(copy.html.as_deref(), Some(body));
    assert_eq!(copy.text.as_deref(), Some("Hello"));
    assert!(copy.headers.is_empty(), "{:?}", copy.headers);
    let id = template(&app, &json!({ "htmlContent": "<p>{{unsubscribeUrl}}</p>" })).await;
    for (variables, expected) in [(json!({ "unsubscribeUrl": "own" }), "<p>own</p>")] {
        app.simulator().clear_captured();
        let mut message = message.clone();
        message.as_object_mut().unwrap().remove("html");
        message["templateId"] = json!(id);
        message["variables"] = variables;
        app.send(&message).await;
        app.drain().await;
        let copy = app.captured_once("ada@example.org");
        assert_eq!(copy.html.as_deref(), Some(expected));
    }
}

#[tokio::test]
async fn templates_place_the_link_or_get_it_at_the_end() {
    let app = sending().await;
    let news = group(&app, "News").await;
    let content = json!({
        "htmlContent": "<body>{{name}} <a href=\"{{unsubscribeUrl}}\">a</a> {{{ unsubscribeUrl }}} {{#if unsubscribeUrl}}yes{{/if}}{{#each items}}{{@root.unsubscribeUrl}}{{/each}}</body>",
        "textContent": "{{name}}: {{unsubscribeUrl}}",
    });
    let with = template(&app, &content).await;
    let variables = json!({ "name": "Ada & Bob", "items": [1] });
    let filled = json!({ "templateId": with, "variables": variables });
    let (html, text) = arrived(&app, &news, &filled).await;
    assert_eq!(
        html.as_deref(),
        Some("<body>Ada &amp; Bob <a href=\"LINK\">a</a> LINK yesLINK</body>")
    );
    assert_eq!(text.as_deref(), Some("Ada & Bob: LINK"));
    let content = json!({ "htmlContent": "<body>{{name}}</body>", "textContent": "{{name}}" });
    let without = template(&app, &content).await;
    let filled = json!({ "templateId": without, "variables": { "name": "Ada" } });
    let (html, text) = arrived(&app, &news, &filled).await;
    assert_eq!(html, Some(format!("<body>Ada{PARAGRAPH}</body>")));
    assert_eq!(text.as_deref(), Some("Ada\n\nUnsubscribe: LINK\n"));
    // A body of the request replaces that of the template and is not rendered.
    let filled =
        json!({ "templateId": without, "html": "<b>{{unsubscribeUrl}}</b>", "text": "{{name}}" });
    let (html, text) = arrived(&app, &news, &filled).await;
    assert_eq!(html.as_deref(), Some("<b>LINK</b>"));
    assert_eq!(text.as_deref(), Some("{{name}}\n\nUnsubscribe: LINK\n"));
}

#[tokio::test]
async fn compiled_mjml_keeps_the_position_of_the_link() {
    let app = sending().await;
    let news = group(&app, "News").await;
    let mjml = "<mjml><mj-body><mj-section><mj-column><mj-button href=\"{{unsubscribeUrl}}\">Off</mj-button></mj-column></mj-section></mj-body></mjml>";
    let content = json!({ "htmlContent": "", "mjmlSource": mjml });
    let id = template(&app, &content).await;
    let (html, _) = arrived(&app, &news, &json!({ "templateId": id })).await;
    let html = html.unwrap();
    assert_eq!(html.matches("href=\"LINK\"").count(), 1, "{html}");
    assert!(!html.contains("Unsubscribe</a>"), "{html}");
}

#[tokio::test]
async fn a_variable_with_the_name_of_the_link_is_refused_in_a_group() {
    let app = sending().await;
    let news = group(&app, "News").await;
    let id = template(&app, &json!({ "htmlContent": "{{unsubscribeUrl}}" })).await;
    let mut message = message_in(&news, &["ada@example.org"]);
    message.as_object_mut().unwrap().remove("html");
    message["templateId"] = json!(id);
    for value in [json!("https://elsewhere.example"), Value::Null] {
        message["variables"] = json!({ "unsubscribeUrl": value });
        app.post("/v1/send", &message)
            .await
            .expect_issues(400, &["variables.unsubscribeUrl"]);
    }
}

#[tokio::test]
async fn a_schema_can_require_the_link() {
    let app = sending().await;
    let news = group(&app, "News").await;
    let link = json!({ "type": "string", "pattern": "^https?://" });
    let content = json!({
        "htmlContent": "{{name}} {{unsubscribeUrl}}",
        "variablesSchema": {
            "type": "object",
            "required": ["name", "unsubscribeUrl"],
            "properties": { "name": { "type": "string" }, "unsubscribeUrl": link },
        },
    });
    let id = template(&app, &content).await;
    let filled = json!({ "templateId": id, "variables": { "name": "Ada" } });
    let (html, _) = arrived(&app, &news, &filled).await;
    assert_eq!(html.as_deref(), Some("Ada LINK"));
    let mut message = message_in(&news, &["ada@example.org"]);
    message["templateId"] = json!(id);
    let refused = app.post("/v1/send", &message).await;
    refused.expect_issues(400, &["variables.name"]);
    message["unsubscribeGroupId"] = Value::Null;
    message["variables"] = json!({ "name": "Ada" });
    let refused = app.post("/v1/send", &message).await;
    refused.expect_issues(400, &["variables.unsubscribeUrl"]);
}

#[tokio::test]
async fn a_preview_has_an_example_link_by_default() {
    let app = TestApp::builder().without_worker().start().await;
    let content = json!({ "htmlContent": "<a href=\"{{unsubscribeUrl}}\">x</a>", "textContent": "{{unsubscribeUrl}}" });
    let id = template(&app, &content).await;
    let path = format!("/v1/templates/{id}/preview");
    let shown = app.post(&path, &json!({})).await.expect(200);
    let expected = json!({
        "html": "<a href=\"https://example.com/unsubscribe\">x</a>",
        "text": "https://example.com/unsubscribe",
    });
    assert_eq!(shown, expected);
    let given = json!({ "variables": { "unsubscribeUrl": "own" } });
    let shown = app.post(&path, &given).await.expect(200);
    assert_eq!(shown["text"], "own");
}

#[tokio::test]
async fn a_body_too_large_for_the_common_query_has_its_links() {
    let app = sending().await;
    let news = group(&app, "News").await;
    let html = format!("<body>{}</body>", "x".repeat(300 * 1024));
    let (found, _) = arrived(&app, &news, &json!({ "html": html })).await;
    let found = found.unwrap();
    assert!(found.ends_with(&format!("x{PARAGRAPH}</body>")));
}

#[tokio::test]
async fn the_variable_of_the_link_requires_a_group() {
    let app = sending().await;
    let news = group(&app, "News").await;
    let send = |parts: Value| {
        let mut message = waypost_tests::message_to("ada@example.org");
        for part in ["html", "text"] {
            message.as_object_mut().unwrap().remove(part);
        }
        for (name, value) in parts.as_object().unwrap() {
            message[name] = value.clone();
        }
        message
    };
    for parts in [
        json!({ "html": "<a href='{{unsubscribeUrl}}'>x</a>" }),
        json!({ "html": "x", "text": "{{{ unsubscribeUrl }}}" }),
        json!({ "text": "{{\n unsubscribeUrl}}" }),
    ] {
        let message = send(parts);
        let reply = app.post("/v1/send", &message).await;
        reply.expect_issues(400, &["unsubscribeGroupId"]);
        let batch = json!({ "messages": [message] });
        let results = app.post("/v1/emails/batch", &batch).await.expect(200);
        let error = results["results"][0]["error"].as_str().unwrap();
        assert!(error.contains("unsubscribeGroupId"), "{error}");
    }
    let plain = json!({ "htmlContent": "<a href='{{unsubscribeUrl}}'>x</a>" });
    let asking = json!({ "htmlContent": "x{{#if unsubscribeUrl}}<a href='{{unsubscribeUrl}}'>y</a>{{/if}}" });
    let (plain, asking) = (template(&app, &plain).await, template(&app, &asking).await);
    let refused = send(json!({ "templateId": plain }));
    let reply = app.post("/v1/send", &refused).await;
    reply.expect_issues(400, &["unsubscribeGroupId"]);
    for parts in [
        json!({ "templateId": plain, "unsubscribeGroupId": news }),
        json!({ "templateId": plain, "variables": { "unsubscribeUrl": "https://e.com" } }),
        json!({ "templateId": asking }),
    ] {
        app.send(&send(parts)).await;
    }
    app.drain().await;
}
