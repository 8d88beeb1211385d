//! Postmark's `POST /email/batch` and `/email/batchWithTemplates`.

use serde_json::{Value, json};
use waypost_tests::SENDER;

use super::described::template;
use super::postmark::{Server, message_to, refused, valid};
use super::quiet;

const BATCH: &str = "/compat/postmark/email/batch";
const WITH_TEMPLATES: &str = "/compat/postmark/email/batchWithTemplates";

fn codes(answers: &Value) -> Vec<u64> {
    let answers = answers.as_array().unwrap().iter();
    answers
        .map(|answer| answer["ErrorCode"].as_u64().unwrap())
        .collect()
}

#[tokio::test]
async fn each_message_is_accepted_or_refused_by_itself() {
    let app = quiet().await;
    let server = Server::of(&app).await;
    let suppressed = json!({ "email": "sup@example.org" });
    app.post("/v1/suppressions", &suppressed).await.expect(201);
    let mut unverified = message_to("eve@example.org");
    unverified["From"] = json!("a@unverified.example");
    let messages = json!([
        message_to("ada@example.org"),
        message_to("nobody"),
        message_to("sup@example.org"),
        unverified,
        7,
        message_to("bob@example.org"),
    ]);
    let answers = server.post(BATCH, &messages).await.expect(200);
    valid(&answers, "SendEmailBatchResponse");
    assert_eq!(codes(&answers), [0, 300, 406, 400, 403, 0]);
    assert_eq!(answers[0]["To"], "ada@example.org");
    assert!(answers[1].get("MessageID").is_none());
    app.drain().await;
    for (to, answer) in [("ada", &answers[0]), ("bob", &answers[5])] {
        let captured = app.captured_once(&format!("{to}@example.org"));
        assert_eq!(
            captured.metadata["waypost_message"],
            answer["MessageID"].as_str().unwrap()
        );
    }
}

#[tokio::test]
async fn a_repeated_batch_sends_nothing_twice() {
    let app = quiet().await;
    let server = Server::of(&app).await;
    let messages = json!([message_to("ada@example.org"), message_to("nobody")]);
    let key = [("Idempotency-Key", "batch-1")];
    let first = server.post_with(BATCH, &key, &messages).await.expect(200);
    let again = server.post_with(BATCH, &key, &messages).await.expect(200);
    assert_eq!(first, again);
    app.drain().await;
    app.captured_once("ada@example.org");
}

#[tokio::test]
async fn a_batch_with_templates_has_its_messages_in_an_object() {
    let app = quiet().await;
    let server = Server::of(&app).await;
    let version = json!({ "subject": "Hello", "htmlContent": "<p>Hi {{name}}!</p>" });
    let id = template(&app, &version).await;
    let message = |name: &str, template: &str| {
        json!({
            "From": SENDER, "To": format!("{name}@example.org"), "TemplateAlias": template,
            "TemplateModel": { "name": name },
        })
    };
    let body = json!({ "Messages": [message("ada", &id), message("bob", "unknown"), message("carl", &id)] });
    for path in [WITH_TEMPLATES.to_owned(), format!("{WITH_TEMPLATES}/")] {
        let answers = server.post(&path, &body).await.expect(200);
        valid(&answers, "SendEmailBatchResponse");
        assert_eq!(codes(&answers), [0, 1101, 0]);
    }
    app.drain().await;
    for name in ["ada", "carl"] {
        let captured = app.captured(&format!("{name}@example.org"));
        let html = format!("<p>Hi {name}!</p>");
        assert_eq!(captured.len(), 2);
        assert!(
            captured
                .iter()
                .all(|mail| mail.html.as_deref() == Some(&html))
        );
    }
}

#[tokio::test]
async fn a_batch_has_1_to_500_messages() {
    let app = quiet().await;
    let server = Server::of(&app).await;
    refused(&server.post(BATCH, &json!([])).await, 422, 410);
    let many: Vec<Value> = (0..501).map(|_| message_to("ada@example.org")).collect();
    refused(&server.post(BATCH, &json!(many)).await, 422, 410);
    refused(
        &server.post(BATCH, &message_to("ada@example.org")).await,
        422,
        403,
    );
    refused(&server.post(WITH_TEMPLATES, &json!([])).await, 422, 403);
    let empty = server
        .post(WITH_TEMPLATES, &json!({ "Messages": [] }))
        .await;
    refused(&empty, 422, 410);
    let more = json!({ "Messages": [message_to("ada@example.org")], "Other": 1 });
    let message = refused(&server.post(WITH_TEMPLATES, &more).await, 422, 300);
    assert!(
        message.starts_with("Other is not a known field"),
        "{message}"
    );
}
