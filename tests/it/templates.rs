//! Templates and their versions: every operation, every limit, and the isolation of
//! organizations. The submodules test rendering for messages and hostile templates.

mod fields;
mod handlebars;
mod hostile;
mod locales;
mod mjml;
mod parts;
mod parts_races;
mod parts_refused;
mod plain_text;
mod sending;
mod test_sends;

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_tests::{Reply, TestApp};

async fn quiet() -> TestApp {
    TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await
}

/// Creates a template without a version and returns its id.
async fn template(app: &TestApp) -> String {
    let created = app
        .post("/v1/templates", &json!({ "name": "Receipt" }))
        .await
        .data(201);
    created["id"].as_str().unwrap().to_owned()
}

async fn add_version(app: &TestApp, id: &str, content: &Value) -> Reply {
    app.post(&format!("/v1/templates/{id}/versions"), content)
        .await
}

/// Adds a version with this HTML and returns its id.
async fn version(app: &TestApp, id: &str, html: &str) -> String {
    let created = add_version(app, id, &json!({ "htmlContent": html }))
        .await
        .data(201);
    created["id"].as_str().unwrap().to_owned()
}

async fn preview(app: &TestApp, id: &str, body: &Value) -> Reply {
    app.post(&format!("/v1/templates/{id}/preview"), body).await
}

async fn audit(app: &TestApp) -> String {
    let query = "SELECT string_agg(action, ' ' ORDER BY id) FROM audit_logs";
    app.value(query).await.unwrap_or_default()
}

#[tokio::test]
async fn a_template_is_created_read_changed_and_removed() {
    let app = quiet().await;
    let body = json!({ "name": "Receipt", "description": "Two\nlines", "tags": ["a", "b", "a"] });
    let created = app.post("/v1/templates", &body).await.data(201);
    let id = created["id"].as_str().unwrap();
    let expected = json!({
        "id": id,
        "organizationId": app.organization_id().to_string(),
        "type": "TEMPLATE",
        "name": "Receipt",
        "description": "Two\nlines",
        "tags": ["a", "b"],
        "currentVersionId": null,
        "createdAt": created["createdAt"],
        "updatedAt": created["createdAt"],
    });
    assert_eq!(created, expected);
    let path = format!("/v1/templates/{id}");
    let mut detail = expected.clone();
    detail["currentVersion"] = Value::Null;
    detail["currentVersions"] = json!([]);
    assert_eq!(app.get(&path).await.data(200), detail);

    app.advance(TimeDelta::seconds(5));
    let changed = app
        .patch(&path, &json!({ "name": "Invoice", "tags": [] }))
        .await
        .data(200);
    assert_eq!(
        (&changed["name"], &changed["tags"]),
        (&json!("Invoice"), &json!([]))
    );
    assert_eq!(changed["description"], expected["description"]);
    assert_ne!(changed["updatedAt"], expected["updatedAt"]);

    assert_eq!(
        app.delete(&path).await.expect(200),
        json!({ "success": true })
    );
    for reply in [
        app.get(&path).await,
        app.delete(&path).await,
        app.patch(&path, &json!({})).await,
    ] {
        reply.expect_error(404, "NOT_FOUND");
    }
    assert_eq!(
        audit(&app).await,
        "template.created template.updated template.deleted"
    );
}

#[tokio::test]
async fn templates_are_listed_in_pages_newest_first() {
    let app = quiet().await;
    for number in 0..5 {
        let _created = app
            .post("/v1/templates", &json!({ "name": format!("t{number}") }))
            .await
            .data(201);
        app.advance(TimeDelta::milliseconds(5));
    }
    let names = |body: &Value| -> Vec<String> {
        let rows = body["data"].as_array().unwrap().iter();
        rows.map(|row| row["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = app.get("/v1/templates?limit=2").await.expect(200);
    assert_eq!(names(&first), ["t4", "t3"]);
    assert_eq!(
        first["pagination"],
        json!({ "page": 1, "limit": 2, "total": 5, "totalPages": 3, "nextCursor": first["pagination"]["nextCursor"] })
    );
    assert_eq!(
        names(&app.get("/v1/templates?limit=2&page=3").await.expect(200)),
        ["t0"]
    );
    assert_eq!(
        app.get("/v1/templates").await.expect(200)["pagination"]["limit"],
        20
    );
    for query in ["limit=0", "limit=101", "limit=x"] {
        app.get(&format!("/v1/templates?{query}"))
            .await
            .expect_issues(400, &["limit"]);
    }
    app.get("/v1/templates?page=0")
        .await
        .expect_issues(400, &["page"]);
}

#[tokio::test]
async fn names_descriptions_and_tags_have_limits() {
    let app = quiet().await;
    let id = template(&app).await;
    let path = format!("/v1/templates/{id}");
    let tags =
        |count: usize| -> Vec<String> { (0..count).map(|number| format!("t{number}")).collect() };
    for unit in ["x", "é"] {
        let most = json!({ "name": unit.repeat(255), "description": unit.repeat(2_000), "tags": tags(20) });
        let _created = app.post("/v1/templates", &most).await.data(201);
        let _changed = app.patch(&path, &most).await.data(200);
        let over = json!({ "name": unit.repeat(256), "description": unit.repeat(2_001), "tags": tags(21) });
        for reply in [
            app.post("/v1/templates", &over).await,
            app.patch(&path, &over).await,
        ] {
            reply.expect_issues(400, &["name", "description", "tags"]);
        }
    }
    let long = json!({ "name": "x", "tags": ["t".repeat(100), "t".repeat(101), "", 1] });
    app.post("/v1/templates", &long)
        .await
        .expect_issues(400, &["tags.1", "tags.2", "tags.3"]);
    for name in [
        json!(""),
        json!(null),
        json!(1),
        json!("a\nb"),
        json!("a\0b"),
    ] {
        app.post("/v1/templates", &json!({ "name": name }))
            .await
            .expect_issues(400, &["name"]);
    }
    app.post(
        "/v1/templates",
        &json!({ "name": "x", "description": "\0" }),
    )
    .await
    .expect_issues(400, &["description"]);
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story, told in order")]
async fn a_version_is_added_and_becomes_current() {
    let app = quiet().await;
    let id = template(&app).await;
    let content = json!({
        "htmlContent": "<p>Hi {{name}}</p>",
        "textContent": "Hi {{name}}",
        "variablesSchema": { "type": "object", "required": ["name"] },
    });
    let created = add_version(&app, &id, &content).await.data(201);
    let key = app.value("SELECT id FROM api_keys LIMIT 1").await.unwrap();
    let expected = json!({
        "id": created["id"],
        "templateId": id,
        "versionNumber": 1,
        "locale": null,
        "subject": null,
        "preheader": null,
        "from": null,
        "replyTo": [],
        "layoutId": null,
        "mjmlSource": null,
        "htmlContent": "<p>Hi {{name}}</p>",
        "textContent": "Hi {{name}}",
        "isTextGenerated": false,
        "parts": [],
        "variablesSchema": { "type": "object", "required": ["name"] },
        "createdBy": key,
        "createdAt": created["createdAt"],
    });
    assert_eq!(created, expected);
    let path = format!("/v1/templates/{id}");
    let shown = app.get(&path).await.data(200);
    assert_eq!(
        (&shown["currentVersionId"], &shown["currentVersion"]),
        (&created["id"], &created)
    );
    let version_id = created["id"].as_str().unwrap();
    assert_eq!(
        app.get(&format!("{path}/versions/{version_id}"))
            .await
            .data(200),
        created
    );
    let second = version(&app, &id, "<p>2</p>").await;
    let list = app.get(&format!("{path}/versions")).await.expect(200);
    assert_eq!(list["currentVersionId"], json!(second));
    let current = json!([{ "locale": null, "versionId": second, "versionNumber": 2 }]);
    assert_eq!(list["currentVersions"], current);
    assert_eq!(app.get(&path).await.data(200)["currentVersions"], current);
    let summary = json!({
        "id": version_id, "templateId": id, "versionNumber": 1, "locale": null, "createdBy": key, "createdAt": created["createdAt"],
    });
    assert_eq!(
        (&list["data"][0]["versionNumber"], &list["data"][1]),
        (&json!(2), &summary)
    );

    let back = app
        .caller()
        .post_empty(&format!("{path}/rollback/{version_id}"))
        .await
        .data(200);
    assert_eq!(
        back,
        json!({ "templateId": id, "currentVersionId": version_id, "versionNumber": 1 })
    );
    assert_eq!(
        app.get(&path).await.data(200)["currentVersionId"],
        json!(version_id)
    );
    assert_eq!(
        app.get(&format!("{path}/versions"))
            .await
            .data(200)
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let wanted =
        "template.created template.version_created template.version_created template.rolled_back";
    assert_eq!(audit(&app).await, wanted);
    let _removed = app.delete(&path).await.expect(200);
    assert_eq!(
        app.value("SELECT count(*) FROM template_versions")
            .await
            .as_deref(),
        Some("0")
    );
}

#[tokio::test]
async fn mjml_is_compiled_and_replaces_the_html() {
    let app = quiet().await;
    let id = template(&app).await;
    let mjml = "<mjml><mj-body><mj-section><mj-column><mj-text>Hi {{name}}</mj-text></mj-column></mj-section></mj-body></mjml>";
    let created = add_version(
        &app,
        &id,
        &json!({ "htmlContent": "ignored", "mjmlSource": mjml }),
    )
    .await
    .data(201);
    assert_eq!(created["mjmlSource"], mjml);
    let html = created["htmlContent"].as_str().unwrap();
    assert!(
        html.starts_with("<!doctype html>")
            && html.contains("Hi {{name}}")
            && !html.contains("ignored"),
        "{html}"
    );
    let shown = preview(&app, &id, &json!({ "variables": { "name": "<Ada>" } }))
        .await
        .expect(200);
    assert!(
        shown["html"].as_str().unwrap().contains("Hi &lt;Ada&gt;"),
        "{shown}"
    );
    for bad in [
        "<mjml>\n<mj-body>",
        "<mjml><mj-body><mj-unheard-of/></mj-body></mjml>",
        "no mjml",
        "<mjml><mj-body><mj-include path=\"/etc/passwd\"/></mj-body></mjml>",
    ] {
        let reply = add_version(&app, &id, &json!({ "htmlContent": "x", "mjmlSource": bad })).await;
        reply.expect_issues(400, &["mjmlSource"]);
    }
}

#[tokio::test]
async fn a_draft_is_rendered_as_the_version_would_be_and_not_stored() {
    let app = quiet().await;
    let id = template(&app).await;
    let body = json!({ "name": "sign", "type": "PARTIAL" });
    let partial = app.post("/v1/templates", &body).await.data(201);
    let partial = partial["id"].as_str().unwrap().to_owned();
    add_version(&app, &partial, &json!({ "htmlContent": "<i>{{name}}</i>" }))
        .await
        .data(201);
    let content = json!({
        "subject": "For {{name}}",
        "htmlContent": "",
        "mjmlSource": "<mjml><mj-body><mj-section><mj-column><mj-text>Hi {{name}}</mj-text></mj-column></mj-section></mj-body></mjml>",
    });
    let composed = json!({ "subject": "For {{name}}", "htmlContent": "<p>Hi</p>{{> sign}}{{unsubscribeUrl}}" });
    for content in [content, composed] {
        let mut draft = content.clone();
        draft["variables"] = json!({ "name": "<Ada>" });
        let path = format!("/v1/templates/{id}/preview-draft");
        let versions = format!("/v1/templates/{id}/versions");
        let before = app.get(&versions).await.expect(200);
        let shown = app.post(&path, &draft).await.expect(200);
        assert_eq!(shown["subject"], "For <Ada>");
        assert_eq!(app.get(&versions).await.expect(200), before);
        add_version(&app, &id, &content).await.data(201);
        let variables = json!({ "variables": { "name": "<Ada>" } });
        assert_eq!(preview(&app, &id, &variables).await.expect(200), shown);
    }
    let path = format!("/v1/templates/{id}/preview-draft");
    let before = app
        .get(&format!("/v1/templates/{id}/versions"))
        .await
        .expect(200);
    let audit = app.get("/v1/audit-logs").await.expect(200);
    let wrong = json!({ "htmlContent": "a\n{{#if a}}", "subject": "{{", "variables": 1 });
    let error = app
        .post(&path, &wrong)
        .await
        .expect_issues(400, &["variables"]);
    assert_eq!(error["details"]["issues"][0]["path"], "variables");
    let wrong = json!({ "htmlContent": "a\n{{#if a}}", "subject": "{{" });
    let error = app
        .post(&path, &wrong)
        .await
        .expect_issues(400, &["htmlContent", "subject"]);
    let issues = error["details"]["issues"].as_array().unwrap();
    assert!(issues.iter().any(|issue| issue["line"] == 2), "{error}");
    let unknown = json!({ "htmlContent": "x", "layoutId": id });
    assert_eq!(app.post(&path, &unknown).await.status, 422);
    assert_eq!(app.get("/v1/audit-logs").await.expect(200), audit);
    assert_eq!(
        app.get(&format!("/v1/templates/{id}/versions"))
            .await
            .expect(200),
        before
    );
    // A partial is shown as a template would be.
    let path = format!("/v1/templates/{partial}/preview-draft");
    app.post(&path, &json!({ "htmlContent": "{{#if a}}" }))
        .await
        .expect_issues(400, &["htmlContent"]);
    let part = json!({ "htmlContent": "<i>{{name}}</i>", "variables": { "name": "Ada" } });
    let shown = app.post(&path, &part).await.expect(200);
    assert_eq!(shown["html"], "<i>Ada</i>");
}

#[tokio::test]
async fn a_mistake_in_a_source_names_its_line_and_column() {
    let app = quiet().await;
    let id = template(&app).await;
    let body = |inner: &str| {
        format!(
            "<mjml>\n<mj-body>\n<mj-section><mj-column>\n{inner}\n</mj-column></mj-section>\n</mj-body>\n</mjml>"
        )
    };
    let broken_block = body("<mj-text>{{#if name}}Hi</mj-text>");
    let unknown_helper = body("<mj-text>\n  é {{shout name}}</mj-text>");
    for (field, source, line, column) in [
        ("htmlContent", "a\nb {{#if a}}", 2, json!(3)),
        ("htmlContent", "<p>\n\n  {{a b c}}</p>", 3, json!(3)),
        ("textContent", "Hi\n{{#each a}}\nx\n{{/if}}", 4, json!(1)),
        ("mjmlSource", &body("<mj-unheard-of />"), 4, Value::Null),
        ("mjmlSource", &body("<mj-text>Hi"), 4, Value::Null),
        ("mjmlSource", "<mjml>\n<mj-body>\n", 3, Value::Null),
        ("mjmlSource", &broken_block, 4, json!(10)),
        ("mjmlSource", &unknown_helper, 5, json!(5)),
    ] {
        let mut content = json!({ "htmlContent": "x" });
        content[field] = json!(source);
        let error = add_version(&app, &id, &content).await;
        let error = error.expect_issues(400, &[field]);
        let issue = &error["details"]["issues"][0];
        assert_eq!(
            (&issue["line"], &issue["column"]),
            (&json!(line), &column),
            "{source}: {issue}"
        );
        let message = issue["message"].as_str().unwrap();
        assert!(message.contains(&format!("line {line}")), "{issue}");
    }
    let reply = add_version(&app, &id, &json!({ "htmlContent": "" })).await;
    let error = reply.expect_issues(400, &["htmlContent"]);
    assert_eq!(
        error["details"]["issues"],
        json!([{ "path": "htmlContent", "message": "must not be empty" }])
    );
}

#[tokio::test]
async fn all_issues_of_a_version_are_reported_together() {
    let app = quiet().await;
    let id = template(&app).await;
    let content = json!({
        "htmlContent": "a\n{{#if a}}",
        "textContent": "{{shout a}}",
        "variablesSchema": { "properties": { "a": { "type": "nothing" } } },
    });
    let error = add_version(&app, &id, &content).await.expect_issues(
        400,
        &[
            "htmlContent",
            "textContent",
            "variablesSchema.properties.a.type",
        ],
    );
    assert!(error.to_string().contains("line 2"), "{error}");
    add_version(&app, &id, &json!({}))
        .await
        .expect_issues(400, &["htmlContent"]);
    add_version(&app, &id, &json!({ "htmlContent": "" }))
        .await
        .expect_issues(400, &["htmlContent"]);
    let wrong =
        json!({ "htmlContent": 1, "mjmlSource": [], "textContent": "\0", "variablesSchema": "x" });
    add_version(&app, &id, &wrong).await.expect_issues(
        400,
        &[
            "htmlContent",
            "mjmlSource",
            "textContent",
            "variablesSchema",
        ],
    );
    assert_eq!(
        app.get(&format!("/v1/templates/{id}/versions"))
            .await
            .data(200),
        json!([])
    );
}

#[tokio::test]
async fn concurrent_versions_are_numbered_without_gaps() {
    let app = quiet().await;
    let id = template(&app).await;
    let content = json!({ "htmlContent": "x" });
    let replies =
        futures_util::future::join_all((0..20).map(|_| add_version(&app, &id, &content))).await;
    let mut numbers: Vec<u64> = replies
        .iter()
        .map(|reply| reply.data(201)["versionNumber"].as_u64().unwrap())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=20).collect::<Vec<u64>>());
    let list = app
        .get(&format!("/v1/templates/{id}/versions"))
        .await
        .expect(200);
    assert_eq!(list["currentVersionId"], list["data"][0]["id"]);
    assert_eq!(list["data"][0]["versionNumber"], 20);
}

#[tokio::test]
async fn a_preview_renders_any_version_and_sends_nothing() {
    let app = quiet().await;
    let id = template(&app).await;
    preview(&app, &id, &json!({}))
        .await
        .expect_error(422, "VALIDATION_ERROR");
    let content = json!({
        "htmlContent": "<p>{{name}} {{{name}}}</p>", "textContent": "{{name}}", "variablesSchema": { "required": ["name"] },
    });
    let first = add_version(&app, &id, &content).await.data(201);
    let _second = version(&app, &id, "<b>{{missing.deeply}}</b>").await;
    let shown = preview(&app, &id, &json!({})).await.expect(200);
    assert_eq!(shown, json!({ "html": "<b></b>", "text": "" }));
    let variables = json!({ "name": "<i>&\"" });
    let shown = preview(
        &app,
        &id,
        &json!({ "variables": variables, "versionId": first["id"] }),
    )
    .await
    .expect(200);
    assert_eq!(
        shown,
        json!({ "html": "<p>&lt;i&gt;&amp;&quot; <i>&\"</p>", "text": "<i>&\"" })
    );
    let shown = preview(&app, &id, &json!({ "versionId": first["id"] }))
        .await
        .expect(200);
    assert_eq!(shown["html"], "<p> </p>");
    preview(&app, &id, &json!({ "versionId": "no id", "variables": [] }))
        .await
        .expect_issues(400, &["versionId", "variables"]);
    let unknown = json!({ "versionId": "0193a1b2-0000-7000-8000-000000000000" });
    preview(&app, &id, &unknown)
        .await
        .expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_version_of_another_template_or_organization_is_not_found() {
    let app = quiet().await;
    let (first, second) = (template(&app).await, template(&app).await);
    let version_id = version(&app, &first, "x").await;
    let _own = version(&app, &second, "y").await;
    // The owner requests it first, so that it is cached.
    let _shown = preview(&app, &first, &json!({ "versionId": version_id }))
        .await
        .expect(200);
    let other = app.tenant("Other").await.caller;
    for (caller, id) in [(app.caller(), &second), (&other, &first)] {
        let path = format!("/v1/templates/{id}");
        caller
            .get(&format!("{path}/versions/{version_id}"))
            .await
            .expect_error(404, "NOT_FOUND");
        caller
            .post_empty(&format!("{path}/rollback/{version_id}"))
            .await
            .expect_error(404, "NOT_FOUND");
        let reply = caller
            .post(
                &format!("{path}/preview"),
                &json!({ "versionId": version_id }),
            )
            .await;
        reply.expect_error(404, "NOT_FOUND");
    }
    let path = format!("/v1/templates/{first}");
    other
        .get(&format!("{path}/versions"))
        .await
        .expect_error(404, "NOT_FOUND");
    other
        .post(&format!("{path}/versions"), &json!({ "htmlContent": "z" }))
        .await
        .expect_error(404, "NOT_FOUND");
    assert_eq!(
        other.get("/v1/templates").await.expect(200)["pagination"]["total"],
        0
    );
    assert_eq!(
        app.get(&path).await.data(200)["currentVersionId"],
        json!(version_id)
    );
}
