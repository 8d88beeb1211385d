//! Extra headers.

use serde_json::{Value, json};

use super::{accepted, accepting, assert_rejected, of_message};

#[tokio::test]
async fn headers_are_stored_in_the_order_of_the_request() {
    let app = accepting().await;
    let headers = json!({
        "X-Zebra": "last letter first",
        "In-Reply-To": "<1@example.com>",
        "References": "<0@example.com> <1@example.com>",
        "X-A": "  trimmed ",
    });
    let id = accepted(&app, json!({ "to": "a@example.org", "headers": headers })).await;
    let expected = json!([
        ["X-Zebra", "last letter first"],
        ["In-Reply-To", "<1@example.com>"],
        ["References", "<0@example.com> <1@example.com>"],
        ["X-A", "trimmed"],
    ]);
    assert_eq!(of_message(&app, &id, "b.headers").await, expected);
    for none in [json!({}), Value::Null] {
        let id = accepted(&app, json!({ "to": "a@example.org", "headers": none })).await;
        assert_eq!(of_message(&app, &id, "b.headers").await, Value::Null);
    }
}

#[tokio::test]
async fn headers_that_would_change_the_mail_are_rejected() {
    let app = accepting().await;
    let many: serde_json::Map<String, Value> = (0..51)
        .map(|nth| (format!("X-{nth}"), json!("v")))
        .collect();
    for (headers, paths) in [
        (json!({ "From": "x@example.org" }), vec!["headers.From"]),
        (
            json!({ "BCC": "x@example.org", "content-type": "text/html", "X-Ok": "1" }),
            vec!["headers.BCC", "headers.content-type"],
        ),
        (
            json!({ "X-Waypost-Message": "1" }),
            vec!["headers.X-Waypost-Message"],
        ),
        (
            json!({ "X-A": "1\r\nBcc: x@example.org" }),
            vec!["headers.X-A"],
        ),
        (json!({ "X-A": "Grüße" }), vec!["headers.X-A"]),
        (
            json!({ "X-A": 1, "X-B": null, "X-C": ["x"] }),
            vec!["headers.X-A", "headers.X-B", "headers.X-C"],
        ),
        (json!({ "X A": "1" }), vec!["headers.X A"]),
        (json!({ "X-A\r\nBcc": "1" }), vec!["headers.X-ABcc"]),
        (json!({ "X-A": "1", "x-a": "2" }), vec!["headers.x-a"]),
        (json!({ "X-A": "x".repeat(8_190) }), vec!["headers"]),
        (Value::Object(many), vec!["headers"]),
        (json!([["X-A", "1"]]), vec!["headers"]),
        (json!("X-A: 1"), vec!["headers"]),
    ] {
        let fields = json!({ "to": "a@example.org", "headers": headers });
        assert_rejected(&app, fields, &paths).await;
    }
}

#[tokio::test]
async fn list_unsubscribe_is_the_groups() {
    let app = accepting().await;
    let headers =
        json!({ "List-Unsubscribe": "<mailto:leave@example.com>", "List-Id": "<n.example.com>" });
    let mut fields = json!({ "to": "a@example.org", "headers": headers });
    accepted(&app, fields.clone()).await;
    let group = app
        .post("/v1/unsubscribe-groups", &json!({ "name": "News" }))
        .await;
    fields["unsubscribeGroupId"] = group.data(201)["id"].clone();
    assert_rejected(&app, fields, &["headers.List-Unsubscribe"]).await;
}
