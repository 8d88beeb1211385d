//! Layouts and partials: what is composed of them, what follows when they change, and what is
//! refused. How sources are composed is tested beside the code.

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Caller, Reply, SENDER, TestApp, untracked, wait_until};

use super::{add_version, audit, preview, quiet, template};

/// Creates a layout or partial with a version and returns its id.
pub(super) async fn part(app: &TestApp, part_type: &str, name: &str, content: &Value) -> String {
    let body = json!({ "name": name, "type": part_type });
    let created = app.post("/v1/templates", &body).await.data(201);
    assert_eq!(created["type"], part_type);
    let id = created["id"].as_str().unwrap().to_owned();
    add_version(app, &id, content).await.data(201);
    id
}

pub(super) async fn partial(app: &TestApp, name: &str, html: &str) -> String {
    part(app, "PARTIAL", name, &json!({ "htmlContent": html })).await
}

pub(super) async fn shown(app: &TestApp, id: &str) -> String {
    let shown = preview(app, id, &json!({ "variables": { "name": "Ada" } }))
        .await
        .expect(200);
    shown["html"].as_str().unwrap().to_owned()
}

pub(super) async fn users(caller: &Caller, id: &str) -> Vec<(String, u64)> {
    let list = caller
        .get(&format!("/v1/templates/{id}/used-by"))
        .await
        .data(200);
    let rows = list.as_array().unwrap().iter();
    rows.map(|row| {
        let id = row["templateId"].as_str().unwrap().to_owned();
        (id, row["versionNumber"].as_u64().unwrap())
    })
    .collect()
}

pub(super) fn refused(reply: &Reply, reason: &str, part: &str) {
    let error = reply.expect_error(422, "VALIDATION_ERROR");
    assert_eq!(error["details"]["reason"], reason, "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story, told in order")]
async fn a_template_is_composed_of_its_layout_and_partials_as_they_are() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let logo = partial(&app, "logo", "<b>Acme</b>").await;
    let footer = partial(&app, "footer", "<i>{{> logo}} {{name}}</i>").await;
    let frame = json!({ "htmlContent": "<html><body>{{{@content}}}{{> footer}}</body></html>" });
    let layout = part(&app, "LAYOUT", "Frame", &frame).await;
    let id = template(&app).await;
    let html = "<p>Hi {{name}}</p>";
    let content =
        json!({ "htmlContent": html, "layoutId": layout, "subject": "s", "from": SENDER });
    let created = add_version(&app, &id, &content).await.data(201);
    assert_eq!(created["htmlContent"], html);
    assert_eq!(created["textContent"], "Hi {{name}}\n\nAcme {{name}}");
    let parts: Vec<(&str, &str, u64)> = created["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| {
            let word = |field: &str| part[field].as_str().unwrap();
            (
                word("type"),
                word("name"),
                part["versionNumber"].as_u64().unwrap(),
            )
        })
        .collect();
    for expected in [
        ("LAYOUT", "Frame", 1),
        ("PARTIAL", "footer", 1),
        ("PARTIAL", "logo", 1),
    ] {
        assert!(parts.contains(&expected), "{parts:?}");
    }
    let path = format!("/v1/templates/{id}");
    let version = format!("{path}/versions/{}", created["id"].as_str().unwrap());
    let by_id = |value: &Value| {
        let mut parts = value["parts"].as_array().unwrap().clone();
        parts.sort_by_key(|part| part["templateId"].to_string());
        parts
    };
    let read = app.get(&version).await.data(200);
    assert_eq!(by_id(&read), by_id(&created));
    assert_eq!(app.get(&path).await.data(200)["currentVersion"], read);
    assert_eq!(
        shown(&app, &id).await,
        "<html><body><p>Hi Ada</p><i><b>Acme</b> Ada</i></body></html>"
    );
    for part in [&logo, &footer, &layout] {
        let found = users(app.caller(), part).await;
        assert!(found.contains(&(id.clone(), 1)), "{found:?}");
    }
    assert_eq!(users(app.caller(), &id).await, []);

    // A change deep within is in the next message, and in that of another process.
    let message = json!({
        "to": "ada@example.org", "templateId": id, "variables": { "name": "Ada" }, "tracking": untracked(),
    });
    let other = app.start_another_api().await;
    let _warm = other
        .post(&format!("{path}/preview"), &json!({}))
        .await
        .expect(200);
    app.send(&message).await;
    app.drain().await;
    let first = app.captured_once("ada@example.org").html.unwrap();
    add_version(&app, &logo, &json!({ "htmlContent": "<b>Acme 2</b>" }))
        .await
        .data(201);
    let mut second = message.clone();
    second["to"] = json!("bob@example.org");
    app.send(&second).await;
    app.drain().await;
    let copy = app.captured_once("bob@example.org");
    assert_eq!(copy.html.unwrap(), first.replace("Acme", "Acme 2"));
    assert_eq!(copy.text.as_deref(), Some("Hi Ada\n\nAcme 2 Ada"));
    let read = app.get(&version).await.data(200);
    assert_eq!(read["htmlContent"], html);
    let numbers = by_id(&read);
    let of_logo = numbers
        .iter()
        .find(|part| part["templateId"] == json!(logo))
        .unwrap();
    assert_eq!(of_logo["versionNumber"], 2);
    // The other process looks once a second.
    wait_until("the other process shows the change", async || {
        let seen = other.post(&format!("{path}/preview"), &json!({})).await;
        seen.expect(200)["html"]
            .as_str()
            .unwrap()
            .contains("Acme 2")
    })
    .await;

    let versions = app
        .get(&format!("/v1/templates/{logo}/versions"))
        .await
        .data(200);
    let back = format!(
        "/v1/templates/{logo}/rollback/{}",
        versions[1]["id"].as_str().unwrap()
    );
    app.caller().post_empty(&back).await.data(200);
    assert!(shown(&app, &id).await.contains("<b>Acme</b>"));
    assert!(
        audit(&app)
            .await
            .ends_with("template.version_created template.rolled_back")
    );
}

#[tokio::test]
async fn a_change_that_a_template_cannot_take_changes_nothing() {
    let app = quiet().await;
    let footer = partial(&app, "footer", "<i>x</i>").await;
    let _b = partial(&app, "b", "B").await;
    let fine = template(&app).await;
    add_version(&app, &fine, &json!({ "htmlContent": "1 {{> footer}}" }))
        .await
        .data(201);
    let id = template(&app).await;
    // Together with another footer, these are too many nested blocks.
    let deep = format!(
        "{}{{{{> footer}}}}{}",
        "{{#if a}}".repeat(100),
        "{{/if}}".repeat(100)
    );
    add_version(&app, &id, &json!({ "htmlContent": deep }))
        .await
        .data(201);
    let before = app.value("SELECT string_agg(md5(html_content) || composition, ',' ORDER BY id) FROM template_versions").await;
    let nested = json!({ "htmlContent": "{{#if x}}y{{/if}}" });
    let reply = add_version(&app, &footer, &nested).await;
    refused(&reply, "TEMPLATE_NOT_COMPOSABLE", &id);
    refused(
        &reply,
        "TEMPLATE_NOT_COMPOSABLE",
        "nested more than 100 deep",
    );
    let after = app.value("SELECT string_agg(md5(html_content) || composition, ',' ORDER BY id) FROM template_versions").await;
    assert_eq!(before, after);
    assert_eq!(shown(&app, &fine).await, "1 <i>x</i>");
    let list = app
        .get(&format!("/v1/templates/{footer}/versions"))
        .await
        .data(200);
    assert_eq!(list.as_array().unwrap().len(), 1);
    // What does not depend on it is not in the way.
    app.delete(&format!("/v1/templates/{id}")).await.expect(200);
    add_version(&app, &footer, &nested).await.data(201);
}

#[tokio::test]
async fn a_part_is_taken_in_the_language_of_the_version() {
    let app = quiet().await;
    let footer = partial(&app, "footer", "Bye").await;
    add_version(
        &app,
        &footer,
        &json!({ "htmlContent": "Tschüss", "locale": "de" }),
    )
    .await
    .data(201);
    let frame = json!({ "htmlContent": "[{{{@content}}}]" });
    let layout = part(&app, "LAYOUT", "Frame", &frame).await;
    add_version(
        &app,
        &layout,
        &json!({ "htmlContent": "<{{{@content}}}>", "locale": "de-AT" }),
    )
    .await
    .data(201);
    let id = template(&app).await;
    for (locale, expected) in [
        (json!(null), "[x Bye]"),
        (json!("de"), "[x Tschüss]"),
        (json!("de-AT"), "<x Tschüss>"),
        (json!("fr"), "[x Bye]"),
    ] {
        let content =
            json!({ "htmlContent": "x {{> footer}}", "layoutId": layout, "locale": locale });
        add_version(&app, &id, &content).await.data(201);
        let shown = preview(&app, &id, &json!({ "locale": locale }))
            .await
            .expect(200);
        assert_eq!(shown["html"], expected);
    }
    // The version of another language is put where it fits better now.
    add_version(
        &app,
        &footer,
        &json!({ "htmlContent": "Adieu", "locale": "fr" }),
    )
    .await
    .data(201);
    for (locale, expected) in [("fr", "[x Adieu]"), ("de", "[x Tschüss]")] {
        let shown = preview(&app, &id, &json!({ "locale": locale }))
            .await
            .expect(200);
        assert_eq!(shown["html"], expected);
    }
}

#[tokio::test]
async fn a_text_takes_the_texts_of_its_parts() {
    let app = quiet().await;
    let with_text = json!({ "htmlContent": "<b>Acme</b>", "textContent": "ACME {{name}}" });
    part(&app, "PARTIAL", "logo", &with_text).await;
    partial(&app, "mute", "x").await;
    let frame =
        json!({ "htmlContent": "<i>{{{@content}}}</i>", "textContent": "= {{{@content}}} =" });
    let layout = part(&app, "LAYOUT", "Frame", &frame).await;
    let plain = part(
        &app,
        "LAYOUT",
        "Plain",
        &json!({ "htmlContent": "{{{@content}}}" }),
    )
    .await;
    let id = template(&app).await;
    let content = json!({ "htmlContent": "x", "textContent": "Hi {{> logo}}", "layoutId": layout });
    let created = add_version(&app, &id, &content).await.data(201);
    assert_eq!(created["textContent"], "Hi {{> logo}}");
    let variables = json!({ "variables": { "name": "<Ada>" } });
    assert_eq!(
        preview(&app, &id, &variables).await.expect(200)["text"],
        "= Hi ACME <Ada> ="
    );
    let content = json!({ "htmlContent": "x", "textContent": "Hi", "layoutId": plain });
    add_version(&app, &id, &content).await.data(201);
    assert_eq!(
        preview(&app, &id, &variables).await.expect(200)["text"],
        "Hi"
    );
    let content = json!({ "htmlContent": "x", "textContent": "Hi {{> mute}}" });
    let error = add_version(&app, &id, &content)
        .await
        .expect_issues(400, &["textContent"]);
    assert!(
        error.to_string().contains("mute has no textContent"),
        "{error}"
    );
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story, told in order")]
async fn mjml_takes_mjml() {
    let app = quiet().await;
    let mjml = |source: &str| json!({ "htmlContent": "", "mjmlSource": source });
    let logo = part(
        &app,
        "PARTIAL",
        "logo",
        &mjml("<mj-section><mj-column><mj-text>Acme</mj-text></mj-column></mj-section>"),
    )
    .await;
    partial(&app, "plain", "x").await;
    let layout = part(
        &app,
        "LAYOUT",
        "Frame",
        &mjml("<mjml><mj-body>{{> logo}}{{{@content}}}</mj-body></mjml>"),
    )
    .await;
    let html_layout = part(
        &app,
        "LAYOUT",
        "Html",
        &json!({ "htmlContent": "{{{@content}}}" }),
    )
    .await;
    let id = template(&app).await;
    let section = "<mj-section><mj-column><mj-text>Hi {{name}}</mj-text></mj-column></mj-section>";
    let mut content = mjml(section);
    content["layoutId"] = json!(layout);
    let created = add_version(&app, &id, &content).await.data(201);
    assert_eq!(created["mjmlSource"], section);
    let html = created["htmlContent"].as_str().unwrap();
    assert!(
        html.contains("Acme") && html.contains("Hi {{name}}") && html.starts_with("<!doctype"),
        "{html}"
    );
    let again = mjml("<mj-section><mj-column><mj-text>Globex</mj-text></mj-column></mj-section>");
    add_version(&app, &logo, &again).await.data(201);
    assert!(shown(&app, &id).await.contains("Globex"));
    // An error shows only in the template.
    let reply = add_version(&app, &logo, &mjml("<mj-unheard-of/>")).await;
    refused(
        &reply,
        "TEMPLATE_NOT_COMPOSABLE",
        "composed with its layout and partials",
    );
    for (content, path, part) in [
        (
            json!({ "htmlContent": "x", "layoutId": layout }),
            "htmlContent",
            "Frame is MJML",
        ),
        (
            json!({ "htmlContent": "{{> logo}}" }),
            "htmlContent",
            "logo is MJML",
        ),
        (
            json!({ "htmlContent": "", "mjmlSource": section, "layoutId": html_layout }),
            "mjmlSource",
            "Html is HTML",
        ),
        (
            mjml("<mjml><mj-body>{{> plain}}</mj-body></mjml>"),
            "mjmlSource",
            "plain is HTML",
        ),
    ] {
        let error = add_version(&app, &id, &content)
            .await
            .expect_issues(400, &[path]);
        assert!(error.to_string().contains(part), "{error}");
    }
    let broken = json!({ "name": "Broken", "type": "LAYOUT" });
    let broken = app.post("/v1/templates", &broken).await.data(201);
    let broken = broken["id"].as_str().unwrap();
    add_version(
        &app,
        broken,
        &mjml("<mjml><mj-unheard-of>{{{@content}}}</mj-unheard-of></mjml>"),
    )
    .await
    .expect_issues(400, &["mjmlSource"]);
}

#[tokio::test]
async fn a_rollback_takes_the_parts_as_they_are_now() {
    let app = quiet().await;
    let footer = partial(&app, "footer", "1").await;
    let id = template(&app).await;
    let first = add_version(&app, &id, &json!({ "htmlContent": "a {{> footer}}" }))
        .await
        .data(201);
    add_version(&app, &id, &json!({ "htmlContent": "b" }))
        .await
        .data(201);
    add_version(&app, &footer, &json!({ "htmlContent": "2" }))
        .await
        .data(201);
    let old = json!({ "versionId": first["id"] });
    assert_eq!(preview(&app, &id, &old).await.expect(200)["html"], "a 1");
    let rollback = format!(
        "/v1/templates/{id}/rollback/{}",
        first["id"].as_str().unwrap()
    );
    app.caller().post_empty(&rollback).await.data(200);
    assert_eq!(shown(&app, &id).await, "a 2");
    assert_eq!(preview(&app, &id, &old).await.expect(200)["html"], "a 2");
}
