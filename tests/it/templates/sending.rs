//! Messages that are rendered from a template.

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{SENDER, TestApp, untracked};

use super::{add_version, quiet, template, version};

fn message(template_id: &str, variables: &Value) -> Value {
    json!({
        "from": SENDER, "to": "ada@example.org", "subject": "For {{name}}",
        "templateId": template_id, "variables": variables, "tracking": untracked(),
    })
}

#[tokio::test]
async fn subject_and_bodies_are_rendered_and_only_html_is_escaped() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = template(&app).await;
    let content = json!({
        "htmlContent": "<p>{{name}}</p><ul>{{#each items as |item|}}<li>{{@index}} {{item.sku}}{{#if (gt item.count 1)}} ×{{item.count}}{{/if}}</li>{{else}}none{{/each}}</ul>",
        "textContent": "{{name}}: {{#each items}}{{sku}}{{#unless @last}}, {{/unless}}{{/each}}",
    });
    let version = add_version(&app, &id, &content).await.data(201);
    let variables = json!({ "name": "Ada & <Bob>", "items": [{ "sku": "a", "count": 1 }, { "sku": "b", "count": 2 }] });
    let sent = app.send(&message(&id, &variables)).await;
    app.drain().await;
    let copy = app.captured_once("ada@example.org");
    assert_eq!(copy.subject, "For Ada & <Bob>");
    assert_eq!(
        copy.html.as_deref(),
        Some("<p>Ada &amp; &lt;Bob&gt;</p><ul><li>0 a</li><li>1 b ×2</li></ul>")
    );
    assert_eq!(copy.text.as_deref(), Some("Ada & <Bob>: a, b"));
    assert_eq!(app.message(&sent).await["subject"], "For Ada & <Bob>");
    let recorded = app
        .value("SELECT template_id || ' ' || template_version_id FROM messages")
        .await
        .unwrap();
    assert_eq!(
        recorded,
        format!("{id} {}", version["id"].as_str().unwrap())
    );
}

#[tokio::test]
async fn a_message_keeps_the_version_that_it_was_accepted_with() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = template(&app).await;
    let first = version(&app, &id, "one").await;
    let _second = version(&app, &id, "two").await;
    app.send(&message(&id, &json!({ "name": "x" }))).await;
    let _back = app
        .caller()
        .post_empty(&format!("/v1/templates/{id}/rollback/{first}"))
        .await
        .data(200);
    let mut later = message(&id, &json!({ "name": "x" }));
    later["to"] = json!("bob@example.org");
    app.send(&later).await;
    let _removed = app.delete(&format!("/v1/templates/{id}")).await.expect(200);
    app.start_worker();
    app.drain().await;
    assert_eq!(
        app.captured_once("ada@example.org").html.as_deref(),
        Some("two")
    );
    assert_eq!(
        app.captured_once("bob@example.org").html.as_deref(),
        Some("one")
    );
}

#[tokio::test]
async fn an_unusable_template_is_refused_with_422_and_its_path() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = template(&app).await;
    let refused = async |template_id: &str, reason: &str| {
        let error = app
            .post("/v1/send", &message(template_id, &json!({ "name": "x" })))
            .await
            .expect_issues(422, &["templateId"]);
        assert_eq!(error["details"]["reason"], reason);
    };
    refused(&id, "TEMPLATE_WITHOUT_VERSION").await;
    refused("0193a1b2-0000-7000-8000-000000000000", "TEMPLATE_NOT_FOUND").await;
    let other = app.tenant("Other").await.caller;
    let theirs = other
        .post("/v1/templates", &json!({ "name": "Theirs" }))
        .await
        .data(201);
    let theirs = theirs["id"].as_str().unwrap();
    let _version = other
        .post(
            &format!("/v1/templates/{theirs}/versions"),
            &json!({ "htmlContent": "x" }),
        )
        .await
        .data(201);
    refused(theirs, "TEMPLATE_NOT_FOUND").await;
    app.post("/v1/send", &message("no id", &json!({})))
        .await
        .expect_issues(400, &["templateId"]);
    app.post("/v1/send", &message(&id, &json!([])))
        .await
        .expect_issues(400, &["variables"]);
    let large = json!({ "x": "y".repeat(256 << 10) });
    app.post("/v1/send", &message(&id, &large))
        .await
        .expect_issues(400, &["variables"]);
}

#[tokio::test]
async fn variables_must_match_the_schema_and_all_issues_are_reported() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = template(&app).await;
    let schema = json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": { "type": "string" },
            "items": { "type": "array", "items": { "properties": { "price": { "type": "number" } } } },
        },
    });
    let content = json!({ "htmlContent": "{{name}}", "variablesSchema": schema });
    let _version = add_version(&app, &id, &content).await.data(201);
    let variables = json!({ "items": [{}, { "price": 1 }, { "price": "2" }] });
    let reply = app.post("/v1/send", &message(&id, &variables)).await;
    reply.expect_issues(400, &["variables.name", "variables.items.2.price"]);
    let mut none = message(&id, &Value::Null);
    none["subject"] = json!("s");
    app.post("/v1/send", &none)
        .await
        .expect_issues(400, &["variables.name"]);
    app.send(&message(&id, &json!({ "name": "Ada" }))).await;
    app.leave_work();
}

#[tokio::test]
async fn rendered_subjects_must_satisfy_the_rules_of_subjects() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = template(&app).await;
    let _version = version(&app, &id, "x").await;
    let id_of = app
        .send(&message(
            &id,
            &json!({ "name": "a\r\nBcc: eve@example.org\u{85}\u{1b}" }),
        ))
        .await;
    assert_eq!(
        app.message(&id_of).await["subject"],
        "For a Bcc: eve@example.org"
    );
    let long = "é".repeat(998 - "For ".len());
    app.send(&message(&id, &json!({ "name": long }))).await;
    let longer = json!({ "name": format!("{long}é") });
    app.post("/v1/send", &message(&id, &longer))
        .await
        .expect_issues(400, &["subject"]);
    let huge = json!({ "name": "x".repeat(200_000) });
    app.post("/v1/send", &message(&id, &huge))
        .await
        .expect_issues(400, &["subject"]);
    for subject in ["{{nothing}}", "{{#if", "{{log name}}", "{{> x}}"] {
        let mut bad = message(&id, &json!({}));
        bad["subject"] = json!(subject);
        app.post("/v1/send", &bad)
            .await
            .expect_issues(400, &["subject"]);
    }
    app.leave_work();
}

#[tokio::test]
async fn bodies_of_the_request_replace_those_of_the_template() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = template(&app).await;
    let content = json!({ "htmlContent": "<p>{{name}}</p>", "textContent": "{{name}}" });
    let _version = add_version(&app, &id, &content).await.data(201);
    let mut own = message(&id, &json!({ "name": "Ada" }));
    own["text"] = json!("As it is: {{name}}");
    app.send(&own).await;
    app.drain().await;
    let copy = app.captured_once("ada@example.org");
    assert_eq!(copy.html.as_deref(), Some("<p>Ada</p>"));
    assert_eq!(copy.text.as_deref(), Some("As it is: {{name}}"));
    let linked = template(&app).await;
    let content = json!({ "htmlContent": "<a href=\"{{unsubscribeUrl}}\">x</a>", "textContent": "{{unsubscribeUrl}}" });
    let _version = add_version(&app, &linked, &content).await.data(201);
    let mut own = message(&linked, &json!({}));
    own["text"] = json!("Own");
    app.post("/v1/send", &own)
        .await
        .expect_issues(400, &["unsubscribeGroupId"]);
    own["html"] = json!("Own");
    app.send(&own).await;
    app.drain().await;
}

#[tokio::test]
async fn without_template_and_variables_nothing_is_rendered() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let plain = json!({
        "from": SENDER, "to": "ada@example.org", "subject": "{{name}}", "text": "{{name}} {{#if",
    });
    app.send(&plain).await;
    app.drain().await;
    let copy = app.captured_once("ada@example.org");
    assert_eq!(
        (copy.subject.as_str(), copy.text.as_deref()),
        ("{{name}}", Some("{{name}} {{#if"))
    );
    assert_eq!(
        app.value("SELECT count(template_id) FROM messages")
            .await
            .as_deref(),
        Some("0")
    );
    let empty = template(&app).await;
    let _version = version(&app, &empty, "{{nothing}}").await;
    app.post("/v1/send", &message(&empty, &json!({ "name": "x" })))
        .await
        .expect_issues(400, &["variables"]);
}

#[tokio::test]
async fn each_message_of_a_batch_is_rendered_separately() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = template(&app).await;
    let content = json!({ "htmlContent": "{{name}}", "variablesSchema": { "required": ["name"] } });
    let _version = add_version(&app, &id, &content).await.data(201);
    let mut messages: Vec<Value> = (0..50)
        .map(|number| {
            let mut one = message(&id, &json!({ "name": format!("n{number}") }));
            one["to"] = json!(format!("r{number}@example.org"));
            one
        })
        .collect();
    messages[7] = message(&id, &json!({}));
    messages[9] = message("0193a1b2-0000-7000-8000-000000000000", &json!({}));
    let body = app
        .post("/v1/emails/batch", &json!({ "messages": messages }))
        .await
        .expect(200);
    assert_eq!(
        body["results"][7],
        json!({ "error": "variables.name is required" })
    );
    assert_eq!(
        body["results"][9],
        json!({ "error": "templateId must be the id of a template" })
    );
    app.drain().await;
    assert_eq!(app.simulator().captured_count(), 48);
    for number in [0, 8, 49] {
        let copy = app.captured_once(&format!("r{number}@example.org"));
        assert_eq!(copy.html, Some(format!("n{number}")));
    }
}
