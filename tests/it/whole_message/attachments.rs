//! The shape of attachments, and content ids in HTML.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{accepted, accepting, assert_rejected, of_message, send};

fn file(fields: Value) -> Value {
    let mut file = json!({ "filename": "a.txt", "content": "SGVsbG8=" });
    for (name, value) in fields.as_object().unwrap() {
        file[name] = value.clone();
    }
    file
}

#[tokio::test]
async fn attachments_are_stored_in_their_order() {
    let app = accepting().await;
    let files = json!([
        file(json!({ "filename": "Grüße 1.txt", "contentType": "text/plain; charset=utf-8" })),
        file(json!({ "filename": "logo.png", "contentType": "image/png", "contentId": "logo" })),
    ]);
    let id = accepted(&app, json!({ "to": "a@example.org", "attachments": files })).await;
    let stored = of_message(&app, &id, "b.attachments").await;
    assert_eq!(stored[0]["filename"], "Grüße 1.txt");
    assert_eq!(stored[0]["contentType"], "text/plain; charset=utf-8");
    assert_eq!(stored[0]["size"], 5);
    let of_hello = "185f8db32271fe25f561a6fc938b2e264306ec304eda518007d1764826381969";
    assert_eq!(stored[0]["sha256"], of_hello);
    assert_eq!(stored[1]["contentId"], "logo");
    for none in [json!([]), Value::Null] {
        let id = accepted(&app, json!({ "to": "a@example.org", "attachments": none })).await;
        assert_eq!(of_message(&app, &id, "b.attachments").await, Value::Null);
    }
}

#[tokio::test]
async fn each_message_of_a_batch_has_its_own_attachments() {
    let app = accepting().await;
    let message = |attachments: Value| {
        super::message(json!({ "to": "a@example.org", "attachments": attachments }))
    };
    let batch = json!({ "messages": [
        message(json!([file(json!({ "filename": "1.txt" }))])),
        message(json!([file(json!({ "content": "not base64!" }))])),
        message(json!([])),
        message(json!([file(json!({ "filename": "4.txt" }))])),
    ]});
    let reply = app.post("/v1/emails/batch", &batch).await.expect(200);
    let results = reply["results"].as_array().unwrap();
    let names = async |nth: usize| {
        let id = results[nth]["messageId"].as_str().unwrap();
        of_message(&app, id, "b.attachments").await[0]["filename"].clone()
    };
    assert_eq!(names(0).await, "1.txt");
    assert!(
        results[1]["error"]
            .as_str()
            .unwrap()
            .contains("attachments.0.content")
    );
    assert_eq!(names(2).await, Value::Null);
    assert_eq!(names(3).await, "4.txt");
}

#[tokio::test]
async fn wrong_names_of_attachments_are_rejected_with_their_paths() {
    let app = accepting().await;
    for (attachments, paths) in [
        (
            json!([{}]),
            vec!["attachments.0.filename", "attachments.0.content"],
        ),
        (
            json!([file(json!({ "filename": "../../etc/passwd" }))]),
            vec!["attachments.0.filename"],
        ),
        (
            json!([file(json!({ "filename": "C:\\a.txt" }))]),
            vec!["attachments.0.filename"],
        ),
        (
            json!([file(json!({ "filename": "\u{202e}fdp.exe" }))]),
            vec!["attachments.0.filename"],
        ),
        (
            json!([file(json!({ "filename": "a\r\nX: y" }))]),
            vec!["attachments.0.filename"],
        ),
        (
            json!([file(json!({ "filename": "" }))]),
            vec!["attachments.0.filename"],
        ),
        (
            json!([file(json!({ "filename": "x".repeat(256) }))]),
            vec!["attachments.0.filename"],
        ),
        (
            json!([file(json!({ "contentType": "pdf" }))]),
            vec!["attachments.0.contentType"],
        ),
        (
            json!([file(json!({ "contentType": "text/plain\r\nBcc: x" }))]),
            vec!["attachments.0.contentType"],
        ),
        (
            json!([file(json!({ "contentId": "<logo>" }))]),
            vec!["attachments.0.contentId"],
        ),
        (
            json!([file(json!({ "contentId": "a b" }))]),
            vec!["attachments.0.contentId"],
        ),
    ] {
        let fields = json!({ "to": "a@example.org", "attachments": attachments });
        assert_rejected(&app, fields, &paths).await;
    }
}

#[tokio::test]
async fn an_attachment_has_either_content_or_a_url_and_an_id_of_its_own() {
    let app = accepting().await;
    let many: Vec<Value> = (0..51).map(|_| file(json!({}))).collect();
    for (attachments, paths) in [
        (
            json!([file(json!({ "content": null }))]),
            vec!["attachments.0.content"],
        ),
        (
            json!([file(json!({ "content": 1 }))]),
            vec!["attachments.0.content"],
        ),
        (
            json!([file(json!({ "url": "https://example.com/a.pdf" }))]),
            vec!["attachments.0.url"],
        ),
        (
            json!([{ "filename": "a", "url": "a.pdf" }, { "filename": "a", "url": "data:,x" }]),
            vec!["attachments.0.url", "attachments.1.url"],
        ),
        (
            json!([
                file(json!({ "contentId": "x" })),
                file(json!({})),
                file(json!({ "contentId": "x" }))
            ]),
            vec!["attachments.2.contentId"],
        ),
        (json!(many), vec!["attachments"]),
        (json!(file(json!({}))), vec!["attachments"]),
        (json!(["a.txt"]), vec!["attachments.0"]),
    ] {
        let fields = json!({ "to": "a@example.org", "attachments": attachments });
        assert_rejected(&app, fields, &paths).await;
    }
    let fields =
        json!({ "to": "a@example.org", "attachments": [file(json!({ "contentID": "x" }))] });
    let error = send(&app, fields)
        .await
        .expect_issues(400, &["attachments.0.contentID"]);
    assert!(
        error.to_string().contains("did you mean `contentId`?"),
        "{error}"
    );
}

#[tokio::test]
async fn html_must_not_show_a_content_id_that_no_attachment_has() {
    let app = accepting().await;
    let with = |html: &str, id: &str| {
        json!({
            "to": "a@example.org", "html": html,
            "attachments": [file(json!({ "contentId": id }))],
        })
    };
    accepted(&app, with("<img src=\"cid:logo\">", "logo")).await;
    accepted(
        &app,
        with(
            "<p style=\"background: url('cid:a@b.example')\">",
            "a@b.example",
        ),
    )
    .await;
    // Not a URL that a mail program loads.
    accepted(
        &app,
        json!({ "to": "a@example.org", "html": "<p>acid: see cid:x</p>" }),
    )
    .await;
    for (html, id) in [
        ("<img src=\"cid:logo\">", "Logo"),
        ("<img src=\"cid:logo\"><img src='CID:other'>", "logo"),
        ("<td background=cid:none>", "logo"),
    ] {
        assert_rejected(&app, with(html, id), &["html"]).await;
    }
    let without = json!({ "to": "a@example.org", "html": "<img src=\"cid:logo\">" });
    assert_rejected(&app, without, &["html"]).await;
}

#[tokio::test]
async fn rendered_html_is_checked_for_content_ids() {
    let app = accepting().await;
    let fields = |picture: &str| {
        json!({
            "html": "<img src=\"cid:{{picture}}\">",
            "variables": { "picture": "logo" },
            "attachments": [file(json!({ "contentId": "logo" }))],
            "to": ["a@example.org", { "email": "b@example.org", "variables": { "picture": picture } }],
        })
    };
    accepted(&app, fields("logo")).await;
    assert_rejected(&app, fields("other"), &["html"]).await;
}

#[tokio::test]
async fn files_that_show_each_other_are_carried_as_they_are() {
    let app = accepting().await;
    let page = |shown: &str| format!("<html><img src=\"cid:{shown}\"></html>");
    let files = [
        ("one", page("two")),
        ("two", page("one")),
        ("own", page("own")),
    ];
    let attachments = files.iter().map(|(id, content)| {
        json!({
            "filename": format!("{id}.html"), "contentType": "text/html", "contentId": id,
            "content": STANDARD.encode(content),
        })
    });
    let fields = json!({
        "to": "a@example.org", "html": "<iframe src=\"cid:one\"></iframe>",
        "attachments": attachments.collect::<Vec<_>>(),
    });
    let id = accepted(&app, fields).await;
    for (nth, (_, content)) in files.iter().enumerate() {
        let path = format!("/v1/messages/{id}/attachments/{nth}");
        assert_eq!(app.get(&path).await.text, *content);
    }
}
