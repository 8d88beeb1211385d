//! The text of versions without one. What HTML becomes is tested beside the code.

use serde_json::json;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{SENDER, TestApp, untracked};

use super::{add_version, preview, quiet, template};

#[tokio::test]
async fn a_version_without_a_text_gets_one_from_its_html() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = template(&app).await;
    let html = "<head><title>T</title></head><h1>Hi {{name}}</h1><table>{{#each items}}<tr><td>{{sku}}</td><td>{{price}}</td></tr>{{/each}}</table><p><a href=\"{{url}}\">Pay</a></p>";
    let created = add_version(&app, &id, &json!({ "htmlContent": html }))
        .await
        .data(201);
    assert_eq!(created["isTextGenerated"], true);
    assert_eq!(
        created["textContent"],
        "Hi {{name}}\n\n{{#each items}}\n{{sku}} {{price}}\n{{/each}}\nPay ({{url}})"
    );
    let variables = json!({
        "name": "<Ada>", "url": "https://pay.example/?a=1&b=2",
        "items": [{ "sku": "a", "price": 1 }, { "sku": "b", "price": 2 }],
    });
    let text = "Hi <Ada>\n\na 1\nb 2\nPay (https://pay.example/?a=1&b=2)";
    let shown = preview(&app, &id, &json!({ "variables": variables }))
        .await
        .expect(200);
    assert_eq!(shown["text"], text);
    app.send(&json!({
        "from": SENDER, "to": "ada@example.org", "subject": "s", "templateId": id, "variables": variables,
        "tracking": untracked(),
    }))
    .await;
    app.drain().await;
    assert_eq!(
        app.captured_once("ada@example.org").text.as_deref(),
        Some(text)
    );
}

#[tokio::test]
async fn the_author_decides_whether_there_is_a_text() {
    let app = quiet().await;
    let id = template(&app).await;
    for (given, text, is_generated) in [
        (json!({}), json!("Hi"), true),
        (json!({ "textContent": null }), json!("Hi"), true),
        (json!({ "textContent": "" }), json!(null), false),
        (json!({ "textContent": "Own" }), json!("Own"), false),
    ] {
        let mut content = json!({ "htmlContent": "<p>Hi</p>" });
        content
            .as_object_mut()
            .unwrap()
            .extend(given.as_object().unwrap().clone());
        let created = add_version(&app, &id, &content).await.data(201);
        assert_eq!(
            (&created["textContent"], &created["isTextGenerated"]),
            (&text, &json!(is_generated)),
            "{content}"
        );
    }
    let picture = json!({ "htmlContent": "<img src=\"https://e.example/x.png\">" });
    let created = add_version(&app, &id, &picture).await.data(201);
    assert_eq!(created["textContent"], json!(null));
    assert_eq!(preview(&app, &id, &json!({})).await.expect(200)["text"], "");
}

#[tokio::test]
async fn the_text_of_mjml_has_no_markup() {
    let app = quiet().await;
    let id = template(&app).await;
    let mjml = "<mjml><mj-head><mj-preview>Peek</mj-preview><mj-title>T</mj-title></mj-head><mj-body>\
        <mj-section><mj-column><mj-text><h1>Hi {{name}}</h1></mj-text>\
        <mj-button href=\"https://e.example/{{id}}\">Open</mj-button></mj-column></mj-section>\
        {{#each items}}<mj-section><mj-column><mj-text>{{sku}}</mj-text></mj-column><mj-column><mj-text>{{price}}</mj-text></mj-column></mj-section>{{/each}}\
        <mj-section><mj-column><mj-divider/><mj-image src=\"https://e.example/x.png\" alt=\"Logo\"/></mj-column></mj-section>\
        </mj-body></mjml>";
    add_version(&app, &id, &json!({ "htmlContent": "", "mjmlSource": mjml }))
        .await
        .data(201);
    let variables = json!({ "name": "Ada", "id": 7, "items": [{ "sku": "a", "price": 1 }, { "sku": "b", "price": 2 }] });
    let shown = preview(&app, &id, &json!({ "variables": variables }))
        .await
        .expect(200);
    let words: Vec<&str> = shown["text"].as_str().unwrap().split_whitespace().collect();
    assert_eq!(
        words,
        [
            "Hi",
            "Ada",
            "Open",
            "(https://e.example/7)",
            "a",
            "1",
            "b",
            "2",
            "Logo"
        ],
        "{shown}"
    );
}

#[tokio::test]
async fn the_unsubscribe_link_is_in_the_text_too() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = template(&app).await;
    let html = "<p>Hi</p><a href=\"{{unsubscribeUrl}}\">Leave</a>";
    add_version(&app, &id, &json!({ "htmlContent": html }))
        .await
        .data(201);
    let group = app
        .post("/v1/unsubscribe-groups", &json!({ "name": "News" }))
        .await
        .data(201);
    let mut message = json!({
        "from": SENDER, "to": "ada@example.org", "subject": "s", "templateId": id, "tracking": untracked(),
    });
    app.post("/v1/send", &message)
        .await
        .expect_issues(400, &["unsubscribeGroupId"]);
    message["unsubscribeGroupId"] = group["id"].clone();
    app.send(&message).await;
    app.drain().await;
    let text = app.captured_once("ada@example.org").text.unwrap();
    let (before, link) = text.split_once("Leave (").unwrap();
    assert_eq!(before, "Hi\n\n");
    assert!(
        link.starts_with("http") && link.ends_with(')') && !text.contains("Unsubscribe:"),
        "{text}"
    );
}
