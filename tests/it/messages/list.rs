//! The list of messages: fields, pages, filters.

use chrono::TimeDelta;
use serde_json::json;
use uuid::Uuid;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, message_to, to_hash};

use super::filters::quiet;
use super::is_time;

#[tokio::test]
async fn a_list_item_has_the_documented_fields_before_and_after_sending() {
    let app = TestApp::builder().without_worker().start().await;
    let account = app.connect(ProviderType::Mailgun).await;
    let mut message = message_to("  Ada@Example.org ");
    message["tags"] = json!(["a", "b"]);
    let id = app.send(&message).await;
    let items = app.get("/v1/messages").await.data(200);
    let created_at = items[0]["createdAt"].clone();
    assert!(is_time(&created_at));
    let expected = json!([{
        "id": id,
        "providerAccountId": account,
        "fromAddress": "news@example.com",
        "toHash": to_hash("ada@example.org"),
        "subject": "Hello",
        "status": "QUEUED",
        "tags": ["a", "b"],
        "recipientCount": 1,
        "providerMessageId": null,
        "createdAt": created_at,
        "sentAt": null,
        "deliveredAt": null,
    }]);
    assert_eq!(items, expected);
    app.leave_work();
}

#[tokio::test]
async fn after_sending_the_list_shows_the_time_and_the_providers_id() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = app.send_to("ada@example.org").await;
    app.drain().await;
    let items = app.get("/v1/messages").await.data(200);
    let item = &items[0];
    assert_eq!((&item["id"], &item["status"]), (&json!(id), &json!("SENT")));
    assert!(is_time(&item["sentAt"]), "{item}");
    assert!(item["deliveredAt"].is_null());
    let copy = app.captured_once("ada@example.org");
    assert_eq!(item["providerMessageId"], copy.provider_message_id);
}

#[tokio::test]
async fn the_list_is_paged_newest_first() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let mut sent = Vec::new();
    for number in 0..25 {
        app.advance(TimeDelta::milliseconds(5));
        sent.push(app.send_to(&format!("r{number}@example.org")).await);
    }
    sent.reverse();
    let page = async |query: &str| {
        let body = app.get(&format!("/v1/messages{query}")).await.expect(200);
        let ids: Vec<String> = body["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["id"].as_str().unwrap().to_owned())
            .collect();
        (ids, body["pagination"].clone())
    };
    let (ids, pagination) = page("").await;
    assert_eq!(ids, sent[..20]);
    assert_eq!(
        pagination,
        json!({ "page": 1, "limit": 20, "total": 25, "totalPages": 2, "nextCursor": pagination["nextCursor"] })
    );
    let (ids, pagination) = page("?page=2").await;
    assert_eq!(ids, sent[20..]);
    assert_eq!(
        pagination,
        json!({ "page": 2, "limit": 20, "total": 25, "totalPages": 2, "nextCursor": null })
    );
    let (ids, pagination) = page("?page=3&limit=7").await;
    assert_eq!(ids, sent[14..21]);
    assert_eq!(
        pagination,
        json!({ "page": 3, "limit": 7, "total": 25, "totalPages": 4, "nextCursor": pagination["nextCursor"] })
    );
    assert_eq!(page("?limit=100").await.0, sent);
    let (ids, pagination) = page("?page=999").await;
    assert!(ids.is_empty());
    assert_eq!(pagination["total"], 25);
    app.leave_work();
}

#[tokio::test]
async fn pages_out_of_bounds_are_refused_with_the_parameter() {
    let app = TestApp::builder().without_worker().start().await;
    let id = Uuid::nil();
    for path in [
        "/v1/messages".to_owned(),
        format!("/v1/messages/{id}/recipients"),
    ] {
        for (query, issues) in [
            ("limit=101", vec!["limit"]),
            ("limit=0", vec!["limit"]),
            ("page=0", vec!["page"]),
            ("page=-1", vec!["page"]),
            ("page=one", vec!["page"]),
            ("page=1.5", vec!["page"]),
            ("page=", vec!["page"]),
            ("page=99999999999999999999", vec!["page"]),
            ("page=0&limit=101", vec!["limit", "page"]),
        ] {
            app.get(&format!("{path}?{query}"))
                .await
                .expect_issues(400, &issues);
        }
    }
    let reply = app.get("/v1/messages?page=0&limit=x&status=LOST").await;
    reply.expect_issues(400, &["limit", "page", "status"]);
}

#[tokio::test]
async fn the_status_filter_shows_only_that_status() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let sent = app.send_to("fine@example.org").await;
    let failed = app.send_to("refuse@example.org").await;
    app.drain().await;
    for (status, expected) in [
        ("SENT", vec![sent]),
        ("FAILED", vec![failed]),
        ("QUEUED", vec![]),
        ("SENDING", vec![]),
        ("DELIVERED", vec![]),
        ("BOUNCED", vec![]),
    ] {
        let body = app
            .get(&format!("/v1/messages?status={status}"))
            .await
            .expect(200);
        let ids: Vec<&str> = body["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, expected, "{status}");
        assert_eq!(body["pagination"]["total"], expected.len());
    }
    for bad in ["sent", "OPENED", "", "SENT,"] {
        app.get(&format!("/v1/messages?status={bad}"))
            .await
            .expect_issues(400, &["status"]);
    }
}

#[tokio::test]
async fn the_search_is_literal_and_ignores_letter_case() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let subjects = [
        "Hello World",
        "100% off",
        "100 off",
        "a_b",
        "aXb",
        r"back\slash",
        "Ünïcode ÄÖ",
        "it's; DROP TABLE",
    ];
    for subject in subjects {
        let mut message = message_to("a@example.org");
        message["subject"] = json!(subject);
        app.send(&message).await;
    }
    for (search, expected) in [
        ("hello", vec!["Hello World"]),
        ("LO WO", vec!["Hello World"]),
        ("100%", vec!["100% off"]),
        ("%", vec!["100% off"]),
        ("a_b", vec!["a_b"]),
        ("_", vec!["a_b"]),
        (r"\", vec![r"back\slash"]),
        (r"k\s", vec![r"back\slash"]),
        ("ünïcode äö", vec!["Ünïcode ÄÖ"]),
        ("'", vec!["it's; DROP TABLE"]),
        ("nothing like it", vec![]),
    ] {
        let items = app
            .caller()
            .query("/v1/messages", &[("search", search)])
            .await
            .data(200);
        let found: Vec<&str> = items
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["subject"].as_str().unwrap())
            .collect();
        assert_eq!(found, expected, "{search:?}");
    }
    let reply = app.get("/v1/messages?search=a%00b").await;
    reply.expect_issues(400, &["search"]);
    app.leave_work();
}

#[tokio::test]
async fn wrong_filters_are_refused_with_their_parameter() {
    let app = quiet().await;
    for (name, values) in [
        (
            "recipient",
            vec!["", "ada", "ada@", "a@b@c", "Ada <ada@example.org>"],
        ),
        ("from", vec!["", "@example.com", "not a domain", "a@b@c"]),
        ("tag", vec!["", "a\nb"]),
        ("templateId", vec!["", "1", "nobody"]),
        ("providerAccountId", vec!["", "1"]),
        ("providerMessageId", vec!["", "a\0b"]),
        (
            "status",
            vec!["", "sent", "SENT,", ",SENT", "SENT, FAILED", "OPENED"],
        ),
        ("createdFrom", vec!["", "yesterday", "2026-13-01"]),
        ("createdTo", vec!["", "12:00"]),
        ("cursor", vec!["", "x", "AAAA"]),
        ("test", vec!["", "1", "True", "yes"]),
    ] {
        for value in values {
            let reply = app.caller().query("/v1/messages", &[(name, value)]).await;
            reply.expect_issues(400, &[name]);
        }
    }
    let all = [
        ("recipient", "x"),
        ("tag", ""),
        ("status", "x"),
        ("createdTo", "x"),
        ("cursor", "x"),
    ];
    let reply = app.caller().query("/v1/messages", &all).await;
    reply.expect_issues(400, &["createdTo", "cursor", "recipient", "status", "tag"]);
    let reply = app.get("/v1/messages?status=SENT&status=FAILED").await;
    reply.expect_issues(400, &["status"]);
}
