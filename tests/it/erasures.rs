//! Erasing persons: what goes, what stays, and what waits.

use chrono::TimeDelta;
use futures_util::future::join_all;
use serde_json::{Value, json};
use waypost_core::auth::Permission;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Receiver, TestApp, message_to, to_hash, wait_until};

const PATH: &str = "/v1/erasures";
/// A word that only the erased person's mail holds.
const SECRET: &str = "zanzibar";

async fn erase(app: &TestApp, email: &str) -> Value {
    app.post(PATH, &json!({ "email": email })).await.data(200)
}

/// The result without its id.
async fn counts(app: &TestApp, email: &str) -> Value {
    let mut result = erase(app, email).await;
    result.as_object_mut().unwrap().remove("id");
    result
}

fn result(messages: u64, events: u64, pending: u64) -> Value {
    json!({
        "messages": messages, "events": events, "attachments": 0, "pending": pending, "complete": true,
    })
}

fn secret_to(recipients: &[&str]) -> Value {
    let mut message = message_to(recipients[0]);
    message["to"] = json!(recipients);
    message["subject"] = json!(format!("About {SECRET}"));
    message["html"] = json!(format!("<p>{SECRET}</p>"));
    message["text"] = json!(SECRET);
    message["metadata"] = json!({ "trip": SECRET });
    message
}

/// Adds events with details to a recipient's history, as a provider would report them.
async fn add_events(app: &TestApp, id: &str, position: u32) {
    app.execute(&format!(
        "INSERT INTO events (message_id, id, organization_id, position, event_type, occurred_at, data)
         -- An id of the message's time, since its webhooks are due then.
         SELECT '{id}', overlay(gen_random_uuid()::text placing left(m.id::text, 18) from 1)::uuid, m.organization_id, {position}, e.event_type::event_type, now(), e.data::jsonb
         FROM messages m,
              (VALUES ('CLICKED', '{{\"url\": \"https://example.org/{SECRET}\", \"isBot\": false, \"userAgent\": \"{SECRET}\"}}'),
                      ('BOUNCED', '{{\"bounceType\": \"hard\", \"reason\": \"no {SECRET}\"}}')) e (event_type, data)
         WHERE m.id = '{id}'"
    ))
    .await;
}

/// The tables that hold a word anywhere.
async fn tables_with(app: &TestApp, word: &str) -> Vec<String> {
    let tables = "SELECT string_agg(c.relname, ' ' ORDER BY c.relname)
                  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                  WHERE n.nspname = 'public' AND c.relkind = 'r'";
    let tables = app.value(tables).await.unwrap();
    let mut found = Vec::new();
    for table in tables.split(' ') {
        let query = format!("SELECT count(*) FROM {table} t WHERE t::text ILIKE '%{word}%'");
        if app.value(&query).await.as_deref() != Some("0") {
            found.push(table.to_owned());
        }
    }
    found
}

async fn address_bytes(app: &TestApp, id: &str) -> String {
    let query = format!(
        "SELECT string_agg(length(address_sealed)::text, ' ' ORDER BY position) FROM recipients WHERE message_id = '{id}'"
    );
    app.value(&query).await.unwrap()
}

#[tokio::test]
async fn nothing_of_a_message_to_one_person_is_left_but_hashes_and_counts() {
    for is_folded in [false, true] {
        let app = TestApp::builder().without_scheduler().start().await;
        app.connect(ProviderType::Sendgrid).await;
        let id = app.send(&secret_to(&["Ada@example.org"])).await;
        let other = app.send_to("bob@example.org").await;
        app.drain().await;
        add_events(&app, &id, 0).await;
        if is_folded {
            app.fold_messages().await;
        }
        assert!(tables_with(&app, SECRET).await.len() >= 3);
        let before = app.message(&id).await;
        let result = erase(&app, " ADA@Example.org").await;
        assert_eq!(result["messages"], 1);
        assert!(result["events"].as_u64().unwrap() >= 2, "{result}");
        assert_eq!(
            (&result["pending"], &result["complete"]),
            (&json!(0), &json!(true))
        );
        assert_eq!(tables_with(&app, SECRET).await, Vec::<String>::new());
        assert_eq!(address_bytes(&app, &id).await, "0");
        let after = app.message(&id).await;
        assert_eq!(
            (&after["subject"], &after["metadata"]),
            (&json!(""), &Value::Null)
        );
        for same in [
            "id",
            "status",
            "from",
            "toHash",
            "to",
            "createdAt",
            "sentAt",
        ] {
            assert_eq!(after[same], before[same], "{same}");
        }
        let events = after["events"].as_array().unwrap();
        assert_eq!(events.len(), before["events"].as_array().unwrap().len());
        for event in events {
            assert!(
                event.get("url").is_none() && event.get("reason").is_none(),
                "{event}"
            );
        }
        assert!(events.iter().any(|event| event["bounceType"] == "hard"));
        let content = app.get(&format!("/v1/messages/{id}/content")).await;
        let error = content.expect_error(404, "NOT_FOUND");
        assert_eq!(error["details"]["reason"], "MESSAGE_CONTENT_GONE");
        let found = |parameters: &'static [(&'static str, &'static str)]| {
            let caller = app.caller();
            async move {
                let rows = caller.query("/v1/messages", parameters).await.data(200);
                rows.as_array().unwrap().len()
            }
        };
        assert_eq!(found(&[("search", SECRET)]).await, 0);
        assert_eq!(found(&[("recipient", "ada@example.org")]).await, 1);
        // The other person's mail is as it was.
        assert_eq!(app.message(&other).await["subject"], "Hello");
        assert_ne!(address_bytes(&app, &other).await, "0");
        app.get(&format!("/v1/messages/{other}/content"))
            .await
            .data(200);
        app.leave_work();
    }
}

#[tokio::test]
async fn an_erasure_can_be_repeated_and_finds_what_was_reported_since() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    assert_eq!(counts(&app, "ada@example.org").await, result(0, 0, 0));
    let id = app.send_to("ada@example.org").await;
    app.drain().await;
    assert_eq!(counts(&app, "ada@example.org").await["messages"], 1);
    assert_eq!(counts(&app, "ada@example.org").await, result(0, 0, 0));
    add_events(&app, &id, 0).await;
    assert_eq!(counts(&app, "ada@example.org").await, result(1, 2, 0));
    assert_eq!(tables_with(&app, SECRET).await, Vec::<String>::new());
    assert_eq!(counts(&app, "ada@example.org").await, result(0, 0, 0));
}

#[tokio::test]
async fn of_private_mails_to_several_each_loses_its_own() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = app
        .send(&secret_to(&[
            "ada@example.org",
            "bob@example.org",
            "eve@example.org",
        ]))
        .await;
    app.drain().await;
    for (position, word) in [(0, "madrid"), (1, "lisbon")] {
        app.execute(&format!(
            "INSERT INTO recipient_contents (message_id, position, organization_id, html)
             VALUES ('{id}', {position}, '{}', '{word}')",
            app.organization_id()
        ))
        .await;
        add_events(&app, &id, position).await;
    }
    assert_eq!(erase(&app, "ada@example.org").await["messages"], 1);
    let bytes = address_bytes(&app, &id).await;
    assert!(bytes.starts_with("0 ") && !bytes.ends_with(" 0"), "{bytes}");
    assert_eq!(tables_with(&app, "madrid").await, Vec::<String>::new());
    assert_eq!(tables_with(&app, "lisbon").await.len(), 1);
    // What all of them have stays, until the last of them is erased.
    let shown = app.message(&id).await;
    assert_eq!(shown["subject"], format!("About {SECRET}"));
    let details = |shown: &Value, email: &str| {
        let events = shown["events"].as_array().unwrap().iter();
        let own = events.filter(|event| event["toHash"] == to_hash(email));
        own.filter(|event| event.get("url").is_some()).count()
    };
    assert_eq!(details(&shown, "ada@example.org"), 0);
    assert_eq!(details(&shown, "bob@example.org"), 1);
    app.get(&format!("/v1/messages/{id}/content"))
        .await
        .data(200);
    erase(&app, "eve@example.org").await;
    assert_eq!(app.message(&id).await["subject"], format!("About {SECRET}"));
    erase(&app, "bob@example.org").await;
    assert_eq!(app.message(&id).await["subject"], "");
    assert_eq!(tables_with(&app, SECRET).await, Vec::<String>::new());
    assert_eq!(address_bytes(&app, &id).await, "0 0 0");
}

#[tokio::test]
async fn a_shared_mail_loses_its_content_and_keeps_the_other_addresses() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = app
        .send(&secret_to(&["ada@example.org", "bob@example.org"]))
        .await;
    app.drain().await;
    app.execute(&format!(
        "UPDATE messages SET is_shared = true WHERE id = '{id}';"
    ))
    .await;
    app.execute(&format!(
        "UPDATE message_bodies SET attachments = '[{{\"filename\": \"{SECRET}.pdf\"}}, {{\"filename\": \"b.pdf\"}}]'
         WHERE message_id = '{id}'"
    ))
    .await;
    let result = erase(&app, "bob@example.org").await;
    assert_eq!(
        (&result["messages"], &result["attachments"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(tables_with(&app, SECRET).await, Vec::<String>::new());
    let bytes = address_bytes(&app, &id).await;
    assert!(bytes.ends_with(" 0") && !bytes.starts_with('0'), "{bytes}");
}

#[tokio::test]
async fn messages_that_are_still_sent_are_left_and_counted() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let done = app.send_to("ada@example.org").await;
    app.drain().await;
    app.simulator().set_fault(waypost_simulator::Fault {
        provider: None,
        kind: waypost_simulator::FaultKind::Error,
        rate: 1.0,
        latency_ms: 0,
        calls: waypost_simulator::FaultCalls::Send,
    });
    let waiting = app
        .send(&secret_to(&["bob@example.org", "ada@example.org"]))
        .await;
    app.drain().await;
    assert_eq!(app.status(&waiting).await, "QUEUED");
    let result = erase(&app, "ada@example.org").await;
    assert_eq!(
        (&result["messages"], &result["pending"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(address_bytes(&app, &done).await, "0");
    assert_eq!(
        app.message(&waiting).await["subject"],
        format!("About {SECRET}")
    );
    // It is sent as it was accepted.
    app.simulator().clear_faults();
    app.advance_and_drain(TimeDelta::hours(2)).await;
    assert_eq!(app.status(&waiting).await, "SENT");
    let captured = app.captured("ada@example.org");
    assert_eq!(captured[1].subject, format!("About {SECRET}"));
    let result = erase(&app, "ada@example.org").await;
    assert_eq!(
        (&result["messages"], &result["pending"]),
        (&json!(1), &json!(0))
    );
}

#[tokio::test]
async fn an_erased_recipient_is_not_retried_and_no_webhook_tells_of_it() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let alone = app.send(&secret_to(&["refuse@example.org"])).await;
    app.drain().await;
    let many = app
        .send(&secret_to(&["refuse@example.org", "bob@example.org"]))
        .await;
    app.drain().await;
    assert_eq!(app.status(&alone).await, "FAILED");
    erase(&app, "refuse@example.org").await;
    let error = app.retry(&alone).await.expect_error(409, "CONFLICT");
    assert_eq!(error["details"]["reason"], "MESSAGE_CONTENT_GONE");
    let error = app.retry(&many).await.expect_error(409, "CONFLICT");
    assert_eq!(error["details"]["reason"], "MESSAGE_NOT_FAILED");
    let receiver = Receiver::start().await;
    let endpoint = json!({ "url": receiver.url(), "events": ["CLICKED"] });
    app.post("/v1/webhook-endpoints", &endpoint).await.data(201);
    add_events(&app, &many, 0).await;
    add_events(&app, &many, 1).await;
    let statuses =
        "SELECT string_agg(position || ' ' || status || ' ' || attempts, ', ' ORDER BY position)
                    FROM webhook_deliveries";
    wait_until("the erased person's event fails uncalled", async || {
        app.value(statuses).await.as_deref() == Some("0 FAILED 0, 1 DELIVERED 1")
    })
    .await;
}

#[tokio::test]
async fn suppressions_and_other_organizations_stay_and_the_audit_log_has_the_hash() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let suppression = json!({ "email": "ada@example.org", "source": "COMPLAINT" });
    let id = app.send_to("ada@example.org").await;
    app.drain().await;
    app.post("/v1/suppressions", &suppression).await.data(201);
    let other = app.tenant("Other").await;
    let ada = json!({ "email": "ada@example.org" });
    let theirs = other.caller.post(PATH, &ada).await.data(200);
    assert_eq!(theirs["messages"], 0);
    assert_ne!(address_bytes(&app, &id).await, "0");
    let result = erase(&app, "ada@example.org").await;
    let kept = app
        .caller()
        .query("/v1/suppressions", &[("email", "ada@example.org")])
        .await
        .data(200);
    assert_eq!(kept[0]["source"], "COMPLAINT");
    let again = app.post("/v1/send", &message_to("ada@example.org")).await;
    assert_eq!(again.expect(202)["status"], "suppressed");
    let target = result["id"].as_str().unwrap();
    let log = app
        .caller()
        .query("/v1/audit-logs", &[("targetId", target)])
        .await
        .data(200);
    let entries = log.as_array().unwrap();
    let actions: Vec<&Value> = entries.iter().map(|entry| &entry["action"]).collect();
    assert_eq!(actions, ["erasure.finished", "erasure.started"]);
    let hash = to_hash("ada@example.org");
    for entry in entries {
        assert_eq!(entry["metadata"]["emailHash"], hash);
        assert_eq!(entry["target"]["type"], "erasure");
    }
    assert_eq!(entries[0]["metadata"]["messages"], 1);
    assert_eq!(
        tables_with(&app, "ada@example.org").await,
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn thousands_of_messages_are_erased_in_one_request() {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    for _ in 0..3 {
        let messages: Vec<Value> = (0..900).map(|_| secret_to(&["ada@example.org"])).collect();
        let body = json!({ "messages": messages });
        app.post("/v1/emails/batch", &body).await.expect(200);
    }
    let kept = app.send_to("bob@example.org").await;
    app.execute("UPDATE recipients SET status = 'SENT'").await;
    app.execute("UPDATE messages SET status = 'SENT'").await;
    app.execute("DELETE FROM outbox").await;
    let result = erase(&app, "ada@example.org").await;
    assert_eq!(
        (&result["messages"], &result["complete"]),
        (&json!(2_700), &json!(true))
    );
    assert_eq!(tables_with(&app, SECRET).await, Vec::<String>::new());
    assert_eq!(app.message(&kept).await["subject"], "Hello");
    assert_eq!(counts(&app, "ada@example.org").await["messages"], 0);
}

#[tokio::test]
async fn erasures_of_two_persons_of_the_same_messages_may_meet() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let both = ["ada@example.org", "bob@example.org"];
    let mut ids = Vec::new();
    for nth in 0..20 {
        let order = if nth % 2 == 0 {
            both
        } else {
            [both[1], both[0]]
        };
        ids.push(app.send(&secret_to(&order)).await);
    }
    app.drain().await;
    let erasures = (0..6).map(|nth| erase(&app, both[nth % 2]));
    for result in join_all(erasures).await {
        assert_eq!(result["complete"], true);
    }
    assert_eq!(tables_with(&app, SECRET).await, Vec::<String>::new());
    for id in ids {
        assert_eq!(address_bytes(&app, &id).await, "0 0");
    }
}

#[tokio::test]
async fn only_one_address_of_a_caller_who_may_is_taken() {
    let app = TestApp::builder().without_worker().start().await;
    for (body, paths) in [
        (json!({}), vec!["email"]),
        (json!({ "email": null }), vec!["email"]),
        (json!({ "email": "%" }), vec!["email"]),
        (
            json!({ "email": "*@example.org" , "emails": [] }),
            vec!["emails"],
        ),
        (json!({ "email": "Ada <ada@example.org>" }), vec!["email"]),
        (json!({ "email": ["ada@example.org"] }), vec!["email"]),
        (
            json!({ "email": "ada@example.org\r\nbcc: x@example.org" }),
            vec!["email"],
        ),
    ] {
        app.post(PATH, &body).await.expect_issues(400, &paths);
    }
    assert_eq!(
        app.value("SELECT count(*) FROM audit_logs")
            .await
            .as_deref(),
        Some("0")
    );
    let others: Vec<Permission> = Permission::ALL
        .into_iter()
        .filter(|permission| *permission != Permission::SettingsWrite)
        .collect();
    let key = app.key(app.organization_id(), &others).await;
    app.caller()
        .with_key(&key)
        .post(PATH, &json!({ "email": "ada@example.org" }))
        .await
        .expect_error(403, "FORBIDDEN");
}
