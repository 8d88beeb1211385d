//! What becomes of templates: when they change there, when they change here, with layouts, and
//! with hostile names.

use super::*;

async fn preview(app: &TestApp, id: &str, variables: Value) -> Value {
    let path = format!("/v1/templates/{id}/preview");
    let body = json!({ "variables": variables });
    app.post(&path, &body).await.expect(200)
}

fn id_of(report: &Value, nth: usize) -> String {
    let id = &section(report, "templates")["objects"][nth]["id"];
    id.as_str().unwrap_or_else(|| panic!("{report}")).to_owned()
}

#[tokio::test]
async fn a_change_there_becomes_a_version_and_a_change_here_stays() {
    let app = quiet().await;
    let source = ImportSource::Sendgrid;
    let only = ["--only", "templates"];
    let both = |html: &str| vec![sendgrid_template(1, html), sendgrid_template(2, html)];
    set_templates(&app, source, both("<p>One {{name}}</p>"));
    let first = import(&app, source, &only).await;
    let (one, two) = (id_of(&first, 0), id_of(&first, 1));
    let version = json!({ "subject": "Mine", "htmlContent": "<p>Mine</p>" });
    app.post(&format!("/v1/templates/{two}/versions"), &version)
        .await
        .data(201);

    set_templates(&app, source, both("<p>Two {{name}}</p>"));
    let before = stored(&app).await;
    let dry = import(&app, source, &["--only", "templates", "--dry-run"]).await;
    assert_eq!(actions(&dry, "templates"), ["updated", "kept"]);
    assert_eq!(stored(&app).await, before);
    let second = import(&app, source, &only).await;
    assert_eq!(actions(&second, "templates"), ["updated", "kept"]);
    assert_eq!(
        (id_of(&second, 0), id_of(&second, 1)),
        (one.clone(), two.clone())
    );
    let rendered = preview(&app, &one, json!({ "name": "Ada" })).await;
    assert!(
        rendered["html"].as_str().unwrap().contains("Two Ada"),
        "{rendered}"
    );
    let rendered = preview(&app, &two, json!({})).await;
    assert!(
        rendered["html"].as_str().unwrap().contains("Mine"),
        "{rendered}"
    );
    let third = import(&app, source, &only).await;
    assert_eq!(actions(&third, "templates"), ["unchanged", "kept"]);

    // A template that was removed here is imported again.
    app.delete(&format!("/v1/templates/{one}")).await;
    let fourth = import(&app, source, &only).await;
    assert_eq!(actions(&fourth, "templates"), ["imported", "kept"]);
    assert_ne!(id_of(&fourth, 0), one);
}

#[tokio::test]
async fn postmark_layouts_stand_around_their_templates() {
    let app = quiet().await;
    let source = ImportSource::Postmark;
    let layout = json!({
        "TemplateId": 7, "Name": "Frame", "Alias": "frame", "Active": true, "TemplateType": "Layout",
        "HtmlBody": "<body>{{#company}}<b>{{name}}</b>{{/company}}{{{@content}}}</body>",
        "TextBody": "== {{{@content}}} ==",
    });
    let template = json!({
        "TemplateId": 8, "Name": "Welcome", "Alias": "welcome", "Active": true,
        "TemplateType": "Standard", "LayoutTemplate": "frame", "Subject": "Hello {{name}}",
        "HtmlBody": "<p>{{name}}</p>", "TextBody": "Hello {{name}}",
    });
    // The template before its layout, as the list may have them.
    set_templates(&app, source, vec![template, layout]);
    let dry = import(&app, source, &["--only", "templates", "--dry-run"]).await;
    assert_eq!(
        actions(&dry, "templates"),
        ["imported", "imported"],
        "{dry}"
    );
    let done = import(&app, source, &["--only", "templates"]).await;
    assert_eq!(
        actions(&done, "templates"),
        ["imported", "imported"],
        "{done}"
    );
    let rendered = preview(
        &app,
        &id_of(&done, 1),
        json!({ "name": "Ada", "company": { "name": "A & B" } }),
    )
    .await;
    assert_eq!(rendered["html"], "<body><b>A &amp; B</b><p>Ada</p></body>");
    assert_eq!(rendered["text"], "== Hello Ada ==");
    assert_eq!(rendered["subject"], "Hello Ada");

    // By its number and by its alias.
    let find = async |vendor_id: &str| {
        let query = format!(
            "SELECT id FROM imported_objects WHERE vendor = 'POSTMARK' AND vendor_id = '{vendor_id}'"
        );
        app.value(&query).await
    };
    assert_eq!(find("8").await, Some(id_of(&done, 1)));
    assert_eq!(find("welcome").await, Some(id_of(&done, 1)));
    assert_eq!(find("frame").await, Some(id_of(&done, 0)));
}

#[tokio::test]
async fn a_template_of_a_layout_that_cannot_be_imported_is_left_out() {
    let app = quiet().await;
    let source = ImportSource::Postmark;
    let layout = json!({
        "TemplateId": 7, "Name": "Frame", "Alias": "frame", "Active": true, "TemplateType": "Layout",
        "HtmlBody": "<body>twice {{{@content}}}{{{@content}}}</body>", "TextBody": null,
    });
    let template = json!({
        "TemplateId": 8, "Name": "Welcome", "Alias": null, "Active": true,
        "TemplateType": "Standard", "LayoutTemplate": "frame", "Subject": "Hello",
        "HtmlBody": "<p>{{name}}</p>", "TextBody": null,
    });
    set_templates(&app, source, vec![layout, template]);
    let done = import(&app, source, &["--only", "templates"]).await;
    assert_eq!(
        actions(&done, "templates"),
        ["left out", "left out"],
        "{done}"
    );
    let notes = section(&done, "templates")["objects"][1]["notes"].to_string();
    assert!(
        notes.contains("its layout frame is not imported"),
        "{notes}"
    );
    assert_eq!(
        app.value("SELECT count(*) FROM templates").await.as_deref(),
        Some("0")
    );
}

#[tokio::test]
async fn names_are_shown_on_one_line_and_kept_within_their_length() {
    let app = quiet().await;
    let source = ImportSource::Sendgrid;
    let mut templates: Vec<Value> = (1..=4)
        .map(|nth| sendgrid_template(nth, "<p>x</p>"))
        .collect();
    templates[0]["name"] = json!("\u{1b}[31mred\r\nNOT COMPLETE: \u{7}");
    templates[1]["name"] = json!("");
    templates[2]["name"] = json!("ü".repeat(1_000));
    templates[3]["name"] = json!("'; DROP TABLE templates; --");
    set_templates(&app, source, templates);
    let finished = run(&app, source, &["--only", "templates"], &key(source)).await;
    assert!(finished.success, "{finished:?}");
    let printed = finished.stdout.chars().filter(|c| *c != '\n');
    assert!(!printed.clone().any(char::is_control), "{finished:?}");
    assert!(
        !finished.stdout.lines().any(|line| line.starts_with("NOT")),
        "{finished:?}"
    );
    let names = app
        .value("SELECT string_agg(left(name, 30), '|' ORDER BY id) FROM templates")
        .await
        .unwrap();
    let id = format!("d-{:032x}", 2);
    let expected = format!(
        "[31mred NOT COMPLETE:|{}|{}|'; DROP TABLE templates; --",
        &id[..30],
        "ü".repeat(30)
    );
    assert_eq!(names, expected);
    let longest = app.value("SELECT max(length(name)) FROM templates").await;
    assert_eq!(longest.as_deref(), Some("255"));
}

#[tokio::test]
async fn an_imported_template_sends() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let source = ImportSource::Resend;
    let template = json!({
        "object": "template", "id": "34a080c9-b17d-4187-ad80-5af20266e535", "alias": "order",
        "name": "Order", "status": "published", "from": "Shop <shop@example.com>",
        "reply_to": ["help@example.com"], "subject": "Your {{{PRODUCT}}}",
        "html": "<p>{{{PRODUCT}}} for {{{PRICE}}}</p>", "text": null,
        "variables": [
            { "key": "PRODUCT", "type": "string", "fallback_value": null },
            { "key": "PRICE", "type": "number", "fallback_value": 20 },
        ],
    });
    set_templates(&app, source, vec![template]);
    let done = import(&app, source, &["--only", "templates"]).await;
    let id = id_of(&done, 0);
    let message = |variables: Value| json!({ "to": "a@example.org", "templateId": id, "variables": variables, "tracking": { "opens": false, "clicks": false } });
    app.post("/v1/send", &message(json!({ "PRICE": 1 })))
        .await
        .expect_error(400, "VALIDATION_ERROR");
    app.send(&message(json!({ "PRODUCT": "<i>Lamp</i>" })))
        .await;
    app.drain().await;
    let mail = app.captured_once("a@example.org");
    assert_eq!(mail.subject, "Your <i>Lamp</i>");
    assert_eq!(mail.html.as_deref(), Some("<p><i>Lamp</i> for 20</p>"));
}
