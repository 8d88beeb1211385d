//! What layouts and partials cannot be, and what cannot be done with them.

use serde_json::json;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Reply, SENDER};

use super::parts::{part, partial, refused, users};
use super::{add_version, preview, quiet, template};

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table of contents")]
async fn what_no_part_can_be_is_refused() {
    let app = quiet().await;
    let layout = part(
        &app,
        "LAYOUT",
        "Frame",
        &json!({ "htmlContent": "{{{@content}}}" }),
    )
    .await;
    let note = partial(&app, "note", "x").await;
    for (id, content, paths) in [
        (
            &layout,
            json!({ "htmlContent": "no place" }),
            &["htmlContent"][..],
        ),
        (
            &layout,
            json!({ "htmlContent": "{{{@content}}}{{{@content}}}" }),
            &["htmlContent"],
        ),
        (
            &layout,
            json!({ "htmlContent": "{{{@content}}}", "textContent": "none" }),
            &["textContent"],
        ),
        (
            &note,
            json!({ "htmlContent": "{{{@content}}}", "textContent": "{{#if a}}" }),
            &["htmlContent", "textContent"],
        ),
        (
            &note,
            json!({ "htmlContent": "{{#if a}}", "textContent": "x" }),
            &["htmlContent"],
        ),
        (&note, json!({ "htmlContent": "{{/if}}" }), &["htmlContent"]),
        (
            &note,
            json!({ "htmlContent": "{{> gone}}" }),
            &["htmlContent"],
        ),
        (
            &note,
            json!({
                "htmlContent": "x", "subject": "s", "preheader": "p", "from": SENDER, "replyTo": SENDER,
                "layoutId": layout, "variablesSchema": {},
            }),
            &[
                "subject",
                "preheader",
                "from",
                "replyTo",
                "layoutId",
                "variablesSchema",
            ],
        ),
    ] {
        add_version(&app, id, &content)
            .await
            .expect_issues(400, paths);
    }
    let id = template(&app).await;
    let other = app.tenant("Other").await.caller;
    let theirs = other
        .post(
            "/v1/templates",
            &json!({ "name": "theirs", "type": "PARTIAL" }),
        )
        .await
        .data(201);
    let theirs_path = format!("/v1/templates/{}/versions", theirs["id"].as_str().unwrap());
    other
        .post(&theirs_path, &json!({ "htmlContent": "x" }))
        .await
        .data(201);
    add_version(&app, &id, &json!({ "htmlContent": "{{> theirs}}" }))
        .await
        .expect_issues(400, &["htmlContent"]);
    let empty = app
        .post(
            "/v1/templates",
            &json!({ "name": "Empty", "type": "LAYOUT" }),
        )
        .await
        .data(201);
    for layout_id in [&json!(note), &json!(id), &theirs["id"], &empty["id"]] {
        let content = json!({ "htmlContent": "x", "layoutId": layout_id });
        let error = add_version(&app, &id, &content)
            .await
            .expect_issues(422, &["layoutId"]);
        assert_eq!(error["details"]["reason"], "UNKNOWN_ID");
    }
    for kind in [json!("template"), json!("BASE"), json!(1)] {
        app.post("/v1/templates", &json!({ "name": "x", "type": kind }))
            .await
            .expect_issues(400, &["type"]);
    }
}

#[tokio::test]
async fn parts_are_not_sent_or_previewed_themselves() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    let layout = part(
        &app,
        "LAYOUT",
        "Frame",
        &json!({ "htmlContent": "{{{@content}}}" }),
    )
    .await;
    let note = partial(&app, "note", "x").await;
    for id in [&layout, &note] {
        let message =
            json!({ "from": SENDER, "to": "a@example.org", "subject": "s", "templateId": id });
        let reply = app.post("/v1/send", &message).await;
        let error = reply.expect_issues(422, &["templateId"]);
        assert_eq!(error["details"]["reason"], "TEMPLATE_IS_PART");
        let test = json!({ "to": "a@example.org", "from": SENDER, "subject": "s" });
        let reply = app
            .post(&format!("/v1/templates/{id}/test-send"), &test)
            .await;
        refused(&reply, "TEMPLATE_IS_PART", "layout or partial");
        refused(
            &preview(&app, id, &json!({})).await,
            "TEMPLATE_IS_PART",
            "layout or partial",
        );
    }
    app.leave_work();
}

#[tokio::test]
async fn a_used_part_keeps_its_name_and_place() {
    let app = quiet().await;
    let footer = partial(&app, "footer", "x").await;
    let layout = part(
        &app,
        "LAYOUT",
        "Frame",
        &json!({ "htmlContent": "{{{@content}}}" }),
    )
    .await;
    let id = template(&app).await;
    let content = json!({ "htmlContent": "{{> footer}}", "layoutId": layout });
    let first = add_version(&app, &id, &content).await.data(201);
    let in_use = |reply: &Reply| {
        let error = reply.expect_error(409, "CONFLICT");
        assert_eq!(error["details"]["reason"], "TEMPLATE_IN_USE");
    };
    let path = format!("/v1/templates/{footer}");
    in_use(&app.delete(&path).await);
    in_use(&app.delete(&format!("/v1/templates/{layout}")).await);
    in_use(&app.patch(&path, &json!({ "name": "foot" })).await);
    app.patch(&path, &json!({ "name": "footer", "description": "d" }))
        .await
        .data(200);
    app.patch(
        &format!("/v1/templates/{layout}"),
        &json!({ "name": "Other name" }),
    )
    .await
    .data(200);
    // A version that is not current does not hold it.
    add_version(&app, &id, &json!({ "htmlContent": "x" }))
        .await
        .data(201);
    app.patch(&path, &json!({ "name": "foot" })).await.data(200);
    let rollback = format!(
        "/v1/templates/{id}/rollback/{}",
        first["id"].as_str().unwrap()
    );
    let reply = app.caller().post_empty(&rollback).await;
    refused(
        &reply,
        "TEMPLATE_NOT_COMPOSABLE",
        "there is no partial footer",
    );
    app.patch(&path, &json!({ "name": "footer" }))
        .await
        .data(200);
    app.caller().post_empty(&rollback).await.data(200);
    in_use(&app.delete(&path).await);
    app.delete(&format!("/v1/templates/{id}")).await.expect(200);
    app.delete(&path).await.expect(200);
    app.delete(&format!("/v1/templates/{layout}"))
        .await
        .expect(200);
    assert_eq!(
        app.value("SELECT count(*) FROM template_uses")
            .await
            .as_deref(),
        Some("0")
    );
}

#[tokio::test]
async fn names_of_partials_are_sayable_and_unique() {
    let app = quiet().await;
    partial(&app, "footer", "x").await;
    let create = async |name: &str, kind: &str| {
        app.post("/v1/templates", &json!({ "name": name, "type": kind }))
            .await
    };
    for name in [
        "a b",
        "1a",
        "-a",
        "ä",
        "this",
        "null",
        "a.b",
        "a/b",
        &"x".repeat(101),
    ] {
        create(name, "PARTIAL").await.expect_issues(400, &["name"]);
        create(name, "LAYOUT").await.data(201);
    }
    let error = create("footer", "PARTIAL")
        .await
        .expect_error(409, "CONFLICT");
    assert_eq!(error["details"]["reason"], "PARTIAL_EXISTS");
    create("footer", "TEMPLATE").await.data(201);
    create("footer", "LAYOUT").await.data(201);
    let other = create("Other-1_x", "PARTIAL").await.data(201);
    let path = format!("/v1/templates/{}", other["id"].as_str().unwrap());
    let error = app
        .patch(&path, &json!({ "name": "footer" }))
        .await
        .expect_error(409, "CONFLICT");
    assert_eq!(error["details"]["reason"], "PARTIAL_EXISTS");
    app.patch(&path, &json!({ "name": "a b" }))
        .await
        .expect_issues(400, &["name"]);
    app.patch(&path, &json!({ "name": "fine" })).await.data(200);
    let tenant = app.tenant("Other").await.caller;
    tenant
        .post(
            "/v1/templates",
            &json!({ "name": "footer", "type": "PARTIAL" }),
        )
        .await
        .data(201);
    tenant
        .get(&format!("{path}/used-by"))
        .await
        .expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn as_many_versions_are_composed_at_once_as_said() {
    let app = quiet().await;
    let footer = partial(&app, "footer", "1").await;
    let id = template(&app).await;
    add_version(&app, &id, &json!({ "htmlContent": "{{> footer}}" }))
        .await
        .data(201);
    // 199 more, without 400 requests.
    app.execute(&format!(
        "WITH made AS (
             INSERT INTO templates (id, organization_id, name, tags, created_at, updated_at)
             SELECT gen_random_uuid(), organization_id, name || n, tags, created_at, updated_at
             FROM templates, generate_series(2, 200) n WHERE id = '{id}' RETURNING id
         ), versions AS (
             INSERT INTO template_versions (id, organization_id, template_id, version_number, html_content, html_source, created_by, created_at)
             SELECT gen_random_uuid(), v.organization_id, made.id, 1, v.html_content, v.html_source, v.created_by, v.created_at
             FROM template_versions v, made WHERE v.template_id = '{id}' RETURNING id, template_id
         ) INSERT INTO template_uses SELECT versions.id, u.part_id, u.part_version_id
         FROM versions, template_uses u JOIN template_versions v ON v.id = u.version_id AND v.template_id = '{id}'"
    ))
    .await;
    app.execute(
        "UPDATE templates t SET current_version_id = v.id FROM template_versions v
         WHERE v.template_id = t.id AND t.type = 'TEMPLATE'",
    )
    .await;
    assert_eq!(users(app.caller(), &footer).await.len(), 200);
    add_version(&app, &footer, &json!({ "htmlContent": "2" }))
        .await
        .data(201);
    let composed = "SELECT count(*) FROM template_versions WHERE html_content = '2' AND html_source IS NOT NULL";
    assert_eq!(app.value(composed).await.as_deref(), Some("200"));
    let one_more = template(&app).await;
    add_version(&app, &one_more, &json!({ "htmlContent": "{{> footer}}" }))
        .await
        .data(201);
    let reply = add_version(&app, &footer, &json!({ "htmlContent": "3" })).await;
    refused(&reply, "TOO_MANY_TEMPLATE_USES", "200");
}

#[tokio::test]
async fn parts_do_not_include_themselves() {
    let app = quiet().await;
    let a = partial(&app, "a", "A").await;
    let _b = partial(&app, "b", "{{> a}}").await;
    let c = partial(&app, "c", "{{> b}}").await;
    for (id, html) in [(&a, "{{> a}}"), (&a, "{{> b}}"), (&a, "{{> c}}")] {
        let reply = add_version(&app, id, &json!({ "htmlContent": html })).await;
        let error = reply.expect_issues(400, &["htmlContent"]);
        assert!(error.to_string().contains("includes itself"), "{error}");
    }
    // A version of one language may include that of another only where that ends.
    let content = json!({ "htmlContent": "{{> c}}", "locale": "de" });
    let error = add_version(&app, &a, &content)
        .await
        .expect_issues(400, &["htmlContent"]);
    assert!(error.to_string().contains("includes itself"), "{error}");
    assert_eq!(users(app.caller(), &a).await.len(), 2);
    assert_eq!(users(app.caller(), &c).await, []);
}
