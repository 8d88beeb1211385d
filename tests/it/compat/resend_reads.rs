//! Resend's emails read again, moved and cancelled.

use chrono::{SecondsFormat, TimeDelta};
use jsonschema::Draft;
use serde_json::{Value, json};
use waypost_core::auth::Permission;
use waypost_tests::{SENDER, TestApp};

use super::resend::{email_to, sent};
use super::{EMAILS, quiet, refused};
use crate::adapters::documents::shared;

/// Checks an answer against the description. `html` and `text` may be null, as in the types of
/// Resend's own clients; the description does not say so.
fn assert_described(method: &str, path: &str, answer: &Value) {
    let Some(mut document) = shared("providers/specs/resend.openapi.json") else {
        return;
    };
    for body in ["html", "text"] {
        document["components"]["schemas"]["Email"]["properties"][body]["type"] =
            json!(["string", "null"]);
    }
    let answers = &document["paths"][path][method]["responses"]["200"];
    let mut schema = answers["content"]["application/json"]["schema"].clone();
    assert!(schema.is_object(), "{method} {path} is not described");
    schema["components"] = document["components"].clone();
    let options = jsonschema::options().with_draft(Draft::Draft202012);
    let validator = options.build(&schema).expect("the description is a schema");
    let errors: Vec<String> = validator
        .iter_errors(answer)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{method} {path}: {errors:#?} {answer:#}");
}

async fn read(app: &TestApp, id: &str) -> Value {
    let email = app.get(&format!("{EMAILS}/{id}")).await.expect(200);
    assert_described("get", "/emails/{email_id}", &email);
    email
}

#[tokio::test]
async fn an_email_is_read_again_as_it_was_sent() {
    let app = quiet().await;
    let answer = app
        .post(
            EMAILS,
            &json!({
                "from": "Acme <news@example.com>",
                "to": ["Ada <ada@example.org>", "bob@example.org"],
                "cc": "cc@example.org",
                "bcc": ["bcc@example.org"],
                "reply_to": "help@example.com",
                "subject": "Hello",
                "html": "<p>Hello</p>",
                "text": "Hi",
                "tags": [{ "name": "order", "value": "1042" }, { "name": "plain" }],
            }),
        )
        .await
        .expect(200);
    assert_described("post", "/emails", &answer);
    let id = answer["id"].as_str().unwrap();
    app.drain().await;
    let mut email = read(&app, id).await;
    let created = email["created_at"].take();
    assert!(created.as_str().unwrap().ends_with("+00:00"), "{created}");
    assert!(email["message_id"].take().is_string());
    assert_eq!(
        email,
        json!({
            "object": "email", "id": id, "created_at": null, "message_id": null,
            "from": "Acme <news@example.com>",
            "to": ["Ada <ada@example.org>", "bob@example.org"],
            "cc": ["cc@example.org"], "bcc": ["bcc@example.org"],
            "reply_to": ["help@example.com"],
            "subject": "Hello", "html": "<p>Hello</p>", "text": "Hi",
            "scheduled_at": null, "topic_id": null, "last_event": "sent",
            "tags": [{ "name": "order", "value": "1042" }, { "name": "plain", "value": "" }],
        })
    );
    let reads = "SELECT string_agg(coalesce(metadata ->> 'part', 'content'), ',' ORDER BY metadata ->> 'part')
                 FROM audit_logs WHERE action = 'message.content_read'";
    assert_eq!(app.value(reads).await.unwrap(), "addresses,content");
}

#[tokio::test]
async fn addresses_and_content_are_for_those_who_may_read_them() {
    let app = quiet().await;
    let id = sent(&app, &email_to("ada@example.org")).await;
    app.drain().await;
    let key = app
        .key(app.organization_id(), &[Permission::MetricsRead])
        .await;
    let caller = app.caller().with_key(&key);
    let email = caller.get(&format!("{EMAILS}/{id}")).await.expect(200);
    assert_described("get", "/emails/{email_id}", &email);
    assert_eq!((&email["to"], &email["html"]), (&json!([]), &json!(null)));
    assert_eq!(email["last_event"], "sent");
    let list = caller.get(EMAILS).await.expect(200);
    assert_eq!(list["data"][0]["to"], json!([]));
    let reads = "SELECT count(*) FROM audit_logs WHERE action = 'message.content_read'";
    assert_eq!(app.value(reads).await.unwrap(), "0");
}

#[tokio::test]
async fn an_organization_does_not_see_the_emails_of_another() {
    let app = quiet().await;
    let mut email = email_to("ada@example.org");
    email["scheduled_at"] = json!("in 1 hour");
    let id = sent(&app, &email).await;
    let other = app.tenant("Other").await.caller;
    let path = format!("{EMAILS}/{id}");
    refused(&other.get(&path).await, 404, "not_found");
    let moved = json!({ "scheduled_at": "in 2 hours" });
    refused(&other.patch(&path, &moved).await, 404, "not_found");
    let cancelled = other.post_empty(&format!("{path}/cancel")).await;
    refused(&cancelled, 404, "not_found");
    assert_eq!(other.get(EMAILS).await.expect(200)["data"], json!([]));
    let after = other
        .get(&format!("{EMAILS}?before={id}"))
        .await
        .expect(200);
    assert_eq!(after["data"], json!([]));
    for path in ["/x", "/01a21f88-0902-7411-a0f3-8c583360bade", "/metrics"] {
        let reply = app.get(&format!("{EMAILS}{path}")).await;
        refused(&reply, 404, "not_found");
    }
    assert_eq!(read(&app, &id).await["last_event"], "scheduled");
}

#[tokio::test]
async fn a_scheduled_email_is_moved_and_cancelled() {
    let app = quiet().await;
    let mut email = email_to("ada@example.org");
    let at = app.clock.now() + TimeDelta::hours(2);
    email["scheduled_at"] = json!(at.to_rfc3339_opts(SecondsFormat::Millis, true));
    let id = sent(&app, &email).await;
    let path = format!("{EMAILS}/{id}");
    let at = |email: &Value| {
        let at = email["scheduled_at"].as_str().unwrap().to_owned();
        chrono::DateTime::parse_from_rfc3339(&at).unwrap().to_utc()
    };
    // The Python client repeats the id.
    let moved = json!({ "id": id, "scheduled_at": "in 3 hours" });
    let answer = app.patch(&path, &moved).await.expect(200);
    assert_eq!(answer, json!({ "object": "email", "id": id }));
    assert_eq!(
        at(&read(&app, &id).await),
        app.clock.now() + TimeDelta::hours(3)
    );
    for (body, name, begin) in [
        (
            json!({}),
            "missing_required_field",
            "scheduled_at is required",
        ),
        (
            json!({ "scheduled_at": "soon" }),
            "validation_error",
            "scheduled_at must be a time",
        ),
        (
            json!({ "scheduled_at": "2020-01-01T00:00:00Z" }),
            "validation_error",
            "scheduled_at must be in",
        ),
        (
            json!({ "scheduled_at": "in 1 day", "id": "x" }),
            "validation_error",
            "id must be the id",
        ),
        (
            json!({ "scheduled_at": "in 1 day", "to": "x" }),
            "validation_error",
            "to is not a known",
        ),
    ] {
        let message = refused(&app.patch(&path, &body).await, 422, name);
        assert!(message.starts_with(begin), "{message}");
    }
    let cancel = format!("{path}/cancel");
    let given = app.post(&cancel, &json!({ "reason": "x" })).await;
    refused(&given, 422, "validation_error");
    // Clients send no body, or an empty object.
    app.post(&cancel, &json!({})).await.expect(200);
    let answer = app.caller().post_empty(&cancel).await.expect(200);
    assert_eq!(answer, json!({ "object": "email", "id": id }));
    assert_eq!(read(&app, &id).await["last_event"], "canceled");
    app.advance_and_drain(TimeDelta::hours(4)).await;
    assert!(app.captured("ada@example.org").is_empty());
    let late = app
        .patch(&path, &json!({ "scheduled_at": "in 1 day" }))
        .await;
    refused(&late, 422, "validation_error");
}

#[tokio::test]
async fn a_test_key_changes_tests_only() {
    let app = quiet().await;
    let mut email = email_to("ada@example.org");
    email["scheduled_at"] = json!("in 1 hour");
    let id = sent(&app, &email).await;
    let caller = app.test_key(&Permission::ALL).await;
    let cancel = format!("{EMAILS}/{id}/cancel");
    refused(&caller.post_empty(&cancel).await, 422, "validation_error");
    assert_eq!(read(&app, &id).await["last_event"], "scheduled");
}

#[tokio::test]
async fn the_list_is_paged_in_both_directions() {
    let app = quiet().await;
    let mut ids = Vec::new();
    for index in 0..5 {
        ids.push(sent(&app, &email_to(&format!("a{index}@example.org"))).await);
        app.advance(TimeDelta::milliseconds(5));
    }
    app.drain().await;
    ids.reverse();
    let list = async |query: &str| {
        let answer = app.get(&format!("{EMAILS}?{query}")).await.expect(200);
        assert_described("get", "/emails", &answer);
        assert_eq!(answer["object"], "list");
        let items = answer["data"].as_array().unwrap().iter();
        let found: Vec<String> = items
            .map(|item| item["id"].as_str().unwrap().to_owned())
            .collect();
        (found, answer["has_more"].as_bool().unwrap())
    };
    assert_eq!(list("").await, (ids.clone(), false));
    assert_eq!(list("limit=2").await, (ids[..2].to_vec(), true));
    assert_eq!(
        list(&format!("limit=2&after={}", ids[1])).await,
        (ids[2..4].to_vec(), true)
    );
    assert_eq!(
        list(&format!("limit=2&after={}", ids[3])).await,
        (ids[4..].to_vec(), false)
    );
    assert_eq!(
        list(&format!("limit=2&before={}", ids[4])).await,
        (ids[2..4].to_vec(), true)
    );
    assert_eq!(
        list(&format!("limit=2&before={}", ids[1])).await,
        (ids[..1].to_vec(), false)
    );
    let first = app.get(&format!("{EMAILS}?limit=1")).await.expect(200);
    let item = &first["data"][0];
    assert_eq!(
        (&item["to"], &item["from"]),
        (&json!(["a4@example.org"]), &json!(SENDER))
    );
    assert!(item.get("html").is_none());
    for query in [
        "limit=0",
        "limit=101",
        "limit=x",
        "limit=1&limit=2",
        "after=x",
        "after=&before=",
        "page=2",
    ] {
        let reply = app.get(&format!("{EMAILS}?{query}")).await;
        assert_eq!(reply.status, 422, "{query}: {}", reply.text);
    }
}

/// Tests go through every status.
#[tokio::test]
async fn the_last_event_follows_the_status() {
    let app = quiet().await;
    let mut sends = Vec::new();
    for (outcome, expected) in [
        ("delivered", "delivered"),
        ("bounced", "bounced"),
        ("complained", "complained"),
        ("failed", "failed"),
    ] {
        let message = json!({
            "from": SENDER, "to": format!("{outcome}@example.org"), "subject": "Hello",
            "text": "Hello", "test": true, "testOutcome": outcome,
        });
        sends.push((app.send(&message).await, expected));
    }
    let queued = sent(&app, &email_to("queued@example.org")).await;
    assert!(
        ["queued", "sent"].contains(&read(&app, &queued).await["last_event"].as_str().unwrap())
    );
    app.drain().await;
    app.advance_and_drain(TimeDelta::seconds(1)).await;
    app.advance_and_drain(TimeDelta::minutes(16)).await;
    app.advance_and_drain(TimeDelta::seconds(1)).await;
    for (id, expected) in sends {
        assert_eq!(read(&app, &id).await["last_event"], expected, "{id}");
    }
}
