//! Templates of each vendor's language: what they render to, and what is refused with its place.

use super::*;

/// Imports one template with this HTML, and answers its entry in the report.
async fn one(app: &TestApp, source: ImportSource, html: &str) -> Value {
    let template = match source {
        ImportSource::Sendgrid => sendgrid_template(1, html),
        ImportSource::Postmark => json!({
            "TemplateId": 1, "Name": "One", "Active": true, "TemplateType": "Standard",
            "Subject": "Hello", "HtmlBody": html, "TextBody": null,
        }),
        ImportSource::Mailgun => json!({
            "name": "one", "version": { "template": html, "engine": "handlebars", "active": true },
        }),
        ImportSource::Ses => json!({
            "TemplateName": "one", "TemplateContent": { "Subject": "Hello", "Html": html },
        }),
        ImportSource::Resend => json!({
            "id": "34a080c9-b17d-4187-ad80-5af20266e535", "name": "One", "status": "published",
            "subject": "Hello", "html": html,
            "variables": [
                { "key": "NAME", "type": "string", "fallback_value": null },
                { "key": "CITY", "type": "string", "fallback_value": "Paris & more" },
            ],
        }),
    };
    set_templates(app, source, vec![template]);
    let done = import(app, source, &["--only", "templates"]).await;
    section(&done, "templates")["objects"][0].clone()
}

/// Templates with variables, and what their vendors make of them. The judge `import` compares
/// those in Handlebars with handlebars.js.
#[derive(serde::Deserialize)]
struct Case {
    source: String,
    template: String,
    variables: Value,
    rendered: String,
}

#[tokio::test]
async fn imported_templates_render_as_at_their_vendor() {
    let app = quiet().await;
    let cases = include_str!("../../judges/import/cases.json");
    let cases: Vec<Case> = serde_json::from_str(cases).unwrap();
    for case in cases {
        let source: ImportSource = case.source.parse().unwrap();
        let html = format!("<p>{}</p>", case.template);
        let entry = one(&app, source, &html).await;
        let id = entry["id"].as_str();
        let id = id.unwrap_or_else(|| panic!("{html}: {entry}"));
        let path = format!("/v1/templates/{id}/preview");
        let body = json!({ "variables": case.variables });
        let preview = app.post(&path, &body).await.expect(200);
        let expected = format!("<p>{}</p>", case.rendered);
        assert_eq!(preview["html"], expected, "{source} {html} {body}");
        app.delete(&format!("/v1/templates/{id}")).await;
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
async fn what_cannot_be_translated_is_named_with_its_place() {
    use ImportSource::{Mailgun, Postmark, Resend, Sendgrid, Ses};
    let app = quiet().await;
    for (source, html, note) in [
        (
            Sendgrid,
            "<p>\n {{formatDate a \"MM\"}}",
            "HTML, line 2, column 2: {{formatDate a \"MM\"}}: Waypost formats no dates; give the date as a text that is formatted",
        ),
        (
            Sendgrid,
            "{{#equals a b}}x{{/equals}}",
            "HTML, line 1, column 1: {{#equals a b}}: equals of two variables converts their types",
        ),
        (
            Sendgrid,
            "{{#shout a}}x{{/shout}}",
            "Waypost has no helper shout",
        ),
        (Sendgrid, "{{> footer}}", "partials are not imported"),
        (
            Sendgrid,
            "<%asm_group_unsubscribe_raw_url%>",
            "write {{unsubscribeUrl}}",
        ),
        (Sendgrid, "{{#if a}}x", "a block is not closed"),
        (Sendgrid, "{{#if a}}x{{/if}}{{/if}}", "it closes nothing"),
        (
            Sendgrid,
            "{{weblink}}",
            "SendGrid puts a link to a page of its own there",
        ),
        (Sendgrid, "{{a", "the tag is not closed"),
        (
            Sendgrid,
            "{{insert a \"default={{b}}\"}}",
            "quotes or brackets",
        ),
        (Postmark, "{{^a}}{{b}}{{/a}}", "write ../ before the name"),
        (Postmark, "{{#a}}x{{/b}}", "it closes nothing that is open"),
        (
            Postmark,
            "{{../a}}",
            "../ leaves more blocks than there are",
        ),
        (Postmark, "{{a b}}", "it is no tag of Postmark's templates"),
        (
            Postmark,
            "{{log}}",
            "Waypost reads this name as something else",
        ),
        (Postmark, "x\\{{a}}", "a backslash before a tag"),
        (
            Postmark,
            "{{{pm:unsubscribe}}}",
            "write one to {{unsubscribeUrl}}",
        ),
        (
            Mailgun,
            "Hello %recipient.name%",
            "Mailgun puts a variable of the recipient there",
        ),
        (
            Mailgun,
            "{{#equal a b}}x{{/equal}}",
            "compares them as texts",
        ),
        (
            Ses,
            "{{> missing}}",
            "no inline partial has this name alone",
        ),
        (
            Ses,
            "{{#* inline \"p\"}}{{> p}}{{/inline}}{{> p}}",
            "too many stand within each other",
        ),
        (Ses, "{{formatDate a}}", "Waypost has no helper formatDate"),
        (Resend, "{{NAME}}", "a variable of Resend has three braces"),
        (
            Resend,
            "{{{contact.first_name|there}}}",
            "it names more than a variable",
        ),
    ] {
        let before = app.value("SELECT count(*) FROM templates").await;
        let entry = one(&app, source, html).await;
        assert_eq!(entry["action"], "left out", "{source} {html}: {entry}");
        let notes = entry["notes"].as_array().unwrap().iter();
        let mut notes = notes.map(|note| note.as_str().unwrap());
        assert!(
            notes.any(|found| found.contains(note)),
            "{source} {html}: {entry}"
        );
        assert_eq!(app.value("SELECT count(*) FROM templates").await, before);
    }
}

#[tokio::test]
async fn templates_that_their_vendor_would_not_send_are_left_out() {
    let app = quiet().await;
    let mut sendgrid = sendgrid_template(1, "<p>x</p>");
    sendgrid["versions"][1]["active"] = json!(0);
    let mut text_only = sendgrid_template(2, "");
    text_only["versions"][1]["plain_content"] = json!("x");
    set_templates(&app, ImportSource::Sendgrid, vec![sendgrid, text_only]);
    let done = import(&app, ImportSource::Sendgrid, &["--only", "templates"]).await;
    assert_eq!(actions(&done, "templates"), ["left out", "left out"]);
    let text = done.to_string();
    for part in ["it has no active version", "it has no HTML"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let draft =
        json!({ "id": "a", "name": "A", "status": "draft", "html": "<p>x</p>", "variables": [] });
    set_templates(&app, ImportSource::Resend, vec![draft]);
    let done = import(&app, ImportSource::Resend, &["--only", "templates"]).await;
    assert!(done.to_string().contains("it is not published"), "{done}");
    let go = json!({ "name": "a", "version": { "template": "<p>x</p>", "engine": "go" } });
    set_templates(&app, ImportSource::Mailgun, vec![go]);
    let done = import(&app, ImportSource::Mailgun, &["--only", "templates"]).await;
    assert!(done.to_string().contains("its engine is go"), "{done}");
}

#[tokio::test]
async fn texts_and_subjects_are_translated_too() {
    let app = quiet().await;
    let mut template = sendgrid_template(1, "<p>x</p>");
    template["versions"][1]["subject"] =
        json!("{{#equals a \"1\"}}One{{else}}{{insert b \"default=A & B\"}}{{/equals}}");
    template["versions"][1]["plain_content"] = json!("{{length c}}{{formatDate d}}");
    template["versions"][1]["generate_plain_content"] = json!(false);
    set_templates(&app, ImportSource::Sendgrid, vec![template.clone()]);
    let done = import(&app, ImportSource::Sendgrid, &["--only", "templates"]).await;
    assert!(
        done.to_string().contains("text, line 1, column 13:"),
        "{done}"
    );
    template["versions"][1]["plain_content"] = json!("{{length c}}");
    set_templates(&app, ImportSource::Sendgrid, vec![template]);
    let done = import(&app, ImportSource::Sendgrid, &["--only", "templates"]).await;
    let id = section(&done, "templates")["objects"][0]["id"]
        .as_str()
        .unwrap();
    let path = format!("/v1/templates/{id}/preview");
    let preview = app
        .post(&path, &json!({ "variables": { "c": "abc" } }))
        .await
        .expect(200);
    assert_eq!(
        (&preview["subject"], &preview["text"]),
        (&json!("A & B"), &json!("3"))
    );
}
