//! Breakdowns: the names and the order of their lines.

use chrono::TimeDelta;
use serde_json::json;
use waypost_core::event::EventType;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, message_to};

use super::{BREAKDOWN, agreed, record};

async fn names(app: &TestApp, group_by: &str) -> Vec<(String, i64)> {
    let groups = app
        .caller()
        .query(BREAKDOWN, &[("groupBy", group_by)])
        .await
        .data(200);
    let groups = groups.as_array().unwrap().iter();
    groups
        .map(|group| {
            (
                group["name"].as_str().unwrap().to_owned(),
                group["sent"].as_i64().unwrap(),
            )
        })
        .collect()
}

fn owned(names: &[(&str, i64)]) -> Vec<(String, i64)> {
    let names = names.iter();
    names
        .map(|(name, sent)| ((*name).to_owned(), *sent))
        .collect()
}

#[tokio::test]
async fn breakdowns_name_provider_types_and_sender_domains() {
    let app = TestApp::start().await;
    let _first = app.connect(ProviderType::Sendgrid).await;
    let second = app.connect(ProviderType::Postmark).await;
    // The simulator has `example.com` on that account.
    let settings = json!({ "unverifiedDomains": "accept" });
    app.patch("/v1/settings", &settings).await.data(200);
    let rule =
        json!({ "name": "Other", "providerAccountId": second, "senderDomain": "other.example" });
    app.post("/v1/routing-rules", &rule).await.data(201);
    for (number, from) in [
        "news@example.com",
        "Ada <ads@OTHER.example>",
        "a@Example.com",
        "b@other.example",
        "c@other.example",
    ]
    .into_iter()
    .enumerate()
    {
        let mut message = message_to(&format!("r{number}@example.org"));
        message["from"] = json!(from);
        app.send(&message).await;
    }
    app.drain().await;
    assert_eq!(
        names(&app, "provider").await,
        owned(&[("POSTMARK", 3), ("SENDGRID", 2)])
    );
    assert_eq!(
        names(&app, "domain").await,
        owned(&[("other.example", 3), ("example.com", 2)])
    );
    assert_eq!(names(&app, "template").await, owned(&[("(none)", 5)]));
    // Events that arrive after the deletion of the account count for its type.
    let late = app
        .value("SELECT id FROM messages WHERE from_address LIKE '%other.example' LIMIT 1")
        .await;
    app.delete(&format!("/v1/providers/{second}"))
        .await
        .expect(200);
    record(
        &app,
        &late.unwrap(),
        0,
        EventType::Delivered,
        app.clock.now(),
        None,
    )
    .await;
    let groups = app.get(BREAKDOWN).await.data(200);
    let expected = json!({
        "name": "POSTMARK", "sent": 3, "delivered": 1, "opened": 0, "clicked": 0, "bounced": 0, "complained": 0,
    });
    assert_eq!(groups[0], expected);
    // Equal counts are ordered by name.
    let mut message = message_to("last@example.org");
    message["from"] = json!("a@example.com");
    app.send(&message).await;
    app.drain().await;
    assert_eq!(
        names(&app, "domain").await,
        owned(&[("example.com", 3), ("other.example", 3)])
    );
}

#[tokio::test]
async fn templates_have_their_current_names_and_deleted_ones_their_ids() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let mut templates = Vec::new();
    for (name, copies) in [("Welcome", 4), ("Digest", 3), ("Digest", 2), ("Old", 1)] {
        let template = app
            .post("/v1/templates", &json!({ "name": name }))
            .await
            .data(201);
        let id = template["id"].as_str().unwrap().to_owned();
        let version = json!({ "htmlContent": "<p>Hello</p>" });
        let path = format!("/v1/templates/{id}/versions");
        app.post(&path, &version).await.data(201);
        for copy in 0..copies {
            let mut message = message_to(&format!("r{copy}@example.org"));
            message["templateId"] = json!(id);
            app.send(&message).await;
        }
        templates.push(id);
    }
    app.send_to("plain@example.org").await;
    app.drain().await;
    let new_name = json!({ "name": "Hello" });
    app.patch(&format!("/v1/templates/{}", templates[0]), &new_name)
        .await
        .data(200);
    app.delete(&format!("/v1/templates/{}", templates[3]))
        .await
        .expect(200);
    let (first, second) = (
        format!("Digest ({})", templates[1]),
        format!("Digest ({})", templates[2]),
    );
    let expected = [
        ("Hello", 4),
        (&first, 3),
        (&second, 2),
        ("(none)", 1),
        (&templates[3], 1),
    ];
    assert_eq!(names(&app, "template").await, owned(&expected));
    let now = app.clock.now();
    agreed(
        app.caller(),
        now - TimeDelta::days(1),
        now + TimeDelta::hours(1),
    )
    .await;
}
