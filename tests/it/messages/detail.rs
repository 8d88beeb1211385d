//! What a message shows alone: its recipients, metadata, template, events and content.

use serde_json::{Value, json};
use uuid::Uuid;
use waypost_core::auth::Permission;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Caller, TestApp, message_to, to_hash};

#[tokio::test]
async fn a_message_shows_its_recipients_metadata_and_template() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let template = app
        .post("/v1/templates", &json!({ "name": "Receipt" }))
        .await
        .data(201);
    let path = format!(
        "/v1/templates/{}/versions",
        template["id"].as_str().unwrap()
    );
    let version = app
        .post(&path, &json!({ "htmlContent": "<p>Hello {{name}}</p>" }))
        .await
        .data(201);
    let mut message = message_to("ada@example.org");
    message
        .as_object_mut()
        .unwrap()
        .retain(|name, _| name != "html" && name != "text");
    message["to"] = json!(["ada@example.org", "bob@example.org"]);
    message["metadata"] = json!({ "order": "7" });
    message["templateId"] = template["id"].clone();
    message["variables"] = json!({ "name": "Ada" });
    let id = app.send(&message).await;
    let shown = app.message(&id).await;
    assert_eq!(
        shown["to"],
        json!([to_hash("ada@example.org"), to_hash("bob@example.org")])
    );
    assert_eq!(shown["metadata"], json!({ "order": "7" }));
    assert_eq!(shown["templateId"], template["id"]);
    assert_eq!(shown["templateVersionId"], version["id"]);
    assert_eq!(shown["templateVersionNumber"], 1);
    assert_eq!(shown["scheduledAt"], Value::Null);
    for (position, kind) in [(0, "CC"), (1, "BCC")] {
        app.execute(&format!(
            "UPDATE recipients SET kind = '{kind}' WHERE message_id = '{id}' AND position = {position}"
        ))
        .await;
    }
    let recipients = app.recipients(&id).await;
    let kinds: Vec<&Value> = recipients.iter().map(|one| &one["kind"]).collect();
    assert_eq!(kinds, ["CC", "BCC"]);
    assert_eq!(app.message(&id).await["to"], json!([]));
    app.leave_work();
}

#[tokio::test]
async fn events_show_their_recipient_account_and_reason() {
    let app = TestApp::start().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    let id = app.send_to("refuse@example.org").await;
    app.drain().await;
    app.execute(&format!(
        "INSERT INTO events (message_id, id, organization_id, position, event_type, occurred_at, data)
         SELECT '{id}', gen_random_uuid(), '{}', 0, e.event_type::event_type, '2040-01-01Z', e.data::jsonb
         FROM (VALUES ('CLICKED', '{{\"url\": \"https://example.org/a\", \"isBot\": true}}'),
                      ('BOUNCED', '{{\"bounceType\": \"hard\", \"reason\": \"no such user\"}}')) e (event_type, data)",
        app.organization_id(),
    ))
    .await;
    let shown = app.message(&id).await;
    let event = |kind: &str| {
        let events = shown["events"].as_array().unwrap();
        let found = events.iter().find(|event| event["eventType"] == kind);
        found
            .unwrap_or_else(|| panic!("{kind} in {events:?}"))
            .clone()
    };
    let hash = to_hash("refuse@example.org");
    let dropped = event("DROPPED");
    assert_eq!(dropped["toHash"], hash);
    assert!(
        dropped["reason"]
            .as_str()
            .is_some_and(|reason| !reason.is_empty()),
        "{dropped}"
    );
    assert_eq!(dropped["providerAccountId"], account);
    let clicked = event("CLICKED");
    assert_eq!(
        (&clicked["url"], &clicked["isBot"]),
        (&json!("https://example.org/a"), &json!(true))
    );
    let bounced = event("BOUNCED");
    assert_eq!(
        (&bounced["bounceType"], &bounced["reason"]),
        (&json!("hard"), &json!("no such user"))
    );
    assert_eq!(bounced["toHash"], hash);
    // A field that an event does not have is absent.
    let queued = event("QUEUED");
    assert_eq!(queued.as_object().unwrap().len(), 2, "{queued}");
    let recipients = app.recipients(&id).await;
    assert_eq!(recipients[0]["events"], shown["events"]);
}

fn reader(app: &TestApp, key: &str) -> Caller {
    app.caller().with_key(key)
}

#[tokio::test]
async fn content_is_shown_with_its_permission_and_recorded() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let mut message = message_to("ada@example.org");
    message["to"] = json!(["ada@example.org", "bob@example.org"]);
    let id = app.send(&message).await;
    let path = format!("/v1/messages/{id}/content");
    let content = app.get(&path).await.data(200);
    let expected = json!({
        "subject": "Hello", "html": "<p>Hello</p>", "text": "Hello", "headers": [], "attachments": [],
    });
    assert_eq!(content, expected);
    app.execute(&format!(
        "WITH body AS (
             UPDATE message_bodies
             SET headers = '[[\"X-Order\", \"7\"]]',
                 attachments = '[{{\"filename\": \"a.pdf\", \"contentType\": \"application/pdf\", \"size\": 3, \"sha256\": \"00\"}}]'
             WHERE message_id = '{id}'
         )
         INSERT INTO recipient_contents (message_id, position, organization_id, subject, html)
         VALUES ('{id}', 1, '{}', 'Hello Bob', '<p>Bob</p>')",
        app.organization_id(),
    ))
    .await;
    let second = app.get(&format!("{path}?position=1")).await.data(200);
    let attachment = json!({ "filename": "a.pdf", "contentType": "application/pdf", "contentId": null, "size": 3, "sha256": "00" });
    let expected = json!({
        "subject": "Hello Bob", "html": "<p>Bob</p>", "text": "Hello",
        "headers": [{ "name": "X-Order", "value": "7" }], "attachments": [attachment],
    });
    assert_eq!(second, expected);
    assert_eq!(
        app.get(&format!("{path}?position=0")).await.data(200)["subject"],
        "Hello"
    );
    app.get(&format!("{path}?position=2")).await.expect(404);
    for bad in ["-1", "x", "", "1.5", "99999999999"] {
        app.get(&format!("{path}?position={bad}"))
            .await
            .expect_issues(400, &["position"]);
    }
    let read = app
        .value("SELECT string_agg(target_id || ' ' || metadata, ', ' ORDER BY occurred_at, id) FROM audit_logs WHERE action = 'message.content_read'")
        .await
        .unwrap();
    let entry = |metadata: &str| format!("{id} {metadata}");
    let entries = [
        entry("{}"),
        entry("{\"position\": 1}"),
        entry("{\"position\": 0}"),
    ];
    assert_eq!(read, entries.join(", "));
    assert_refused(&app, &path).await;
    app.execute("DELETE FROM message_bodies").await;
    let error = app.get(&path).await.expect(404);
    assert_eq!(error["error"]["code"], "NOT_FOUND");
    assert_eq!(error["error"]["details"]["reason"], "MESSAGE_CONTENT_GONE");
    app.leave_work();
}

/// Nobody else reads a content.
async fn assert_refused(app: &TestApp, path: &str) {
    // Every permission but the one.
    let others: Vec<Permission> = Permission::ALL
        .into_iter()
        .filter(|one| *one != Permission::ContentRead)
        .collect();
    let key = app.key(app.organization_id(), &others).await;
    let error = reader(app, &key).get(path).await.expect(403);
    assert_eq!(
        error["error"]["details"]["requiredPermission"],
        "CONTENT_READ"
    );
    let other = app.tenant("Other").await;
    other.caller.get(path).await.expect(404);
    app.get(&format!("/v1/messages/{}/content", Uuid::nil()))
        .await
        .expect(404);
}
