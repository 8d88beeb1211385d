//! Whole messages on their way out: shared mails, headers, files, and contents of their own.
//! The rows are changed before the worker runs, so these tests do not depend on requests.

mod smtp_bytes;

use std::time::Duration;

use chrono::TimeDelta;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{Fault, FaultCalls, FaultKind, Kind, Provider};
use waypost_tests::{TestApp, message_to, wait_until};

/// The recipients of [`shared`]: two in To, one in Cc, one in Bcc.
const PEOPLE: [(&str, Kind); 4] = [
    ("ada@example.org", Kind::To),
    ("bob@example.org", Kind::To),
    ("cy@example.org", Kind::Cc),
    ("dee@example.org", Kind::Bcc),
];

/// An app without a worker, with an account of this type.
async fn idle(kind: ProviderType) -> TestApp {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(kind).await;
    app
}

/// Accepts a message to [`PEOPLE`] and makes it shared. Returns its id.
async fn shared(app: &TestApp) -> String {
    let mut message = message_to("");
    message["to"] = json!(PEOPLE.map(|(address, _)| address));
    let id = app.send(&message).await;
    app.execute(&format!(
        "UPDATE messages SET is_shared = true WHERE id = '{id}'"
    ))
    .await;
    app.execute(&format!(
        "UPDATE recipients SET kind = CASE position WHEN 2 THEN 'CC' WHEN 3 THEN 'BCC' END::recipient_kind
         WHERE message_id = '{id}'"
    ))
    .await;
    id
}

/// Gives a message headers, two addresses for replies, and files.
async fn add_parts(app: &TestApp, id: &str, files: &[(&str, Option<&str>, Vec<u8>)]) {
    let mut refs = Vec::new();
    for (filename, content_id, content) in files {
        let sha256 = hex::encode(Sha256::digest(content));
        for (piece, part) in content.chunks(100_000).enumerate() {
            app.execute(&format!(
                "INSERT INTO attachment_contents (month, organization_id, sha256, piece, content)
                 SELECT waypost_uuid_floor(date_trunc('month', created_at, 'UTC')), organization_id,
                        '\\x{sha256}', {piece}, '\\x{}'
                 FROM messages WHERE id = '{id}'",
                hex::encode(part)
            ))
            .await;
        }
        let mut file = json!({
            "filename": filename,
            "contentType": "application/pdf",
            "size": content.len(),
            "sha256": sha256,
        });
        if let Some(content_id) = content_id {
            file["contentId"] = json!(content_id);
        }
        refs.push(file);
    }
    let refs = json!(refs).to_string().replace('\'', "''");
    app.execute(&format!(
        "UPDATE message_bodies
         SET headers = '[[\"X-Order\", \"7\"], [\"X-Wort\", \"größe\"]]', attachments = '{refs}',
             reply_to = '\"a, b\" <a@example.com>, c@example.com'
         WHERE message_id = '{id}'"
    ))
    .await;
}

fn provider(kind: ProviderType) -> Provider {
    Provider::parse(kind.as_str()).unwrap()
}

#[tokio::test]
async fn a_shared_message_is_one_mail_by_one_call_and_a_row_for_each_recipient() {
    for kind in ProviderType::ALL {
        let app = idle(kind).await;
        let id = shared(&app).await;
        let bytes: Vec<u8> = (0..=255).cycle().take(250_000).collect();
        let files = [
            ("Ünïcode 📎 \"x\".pdf", None, bytes.clone()),
            ("logo.png", Some("logo"), b"\x89PNG".to_vec()),
        ];
        add_parts(&app, &id, &files).await;
        app.start_worker();
        app.drain().await;
        assert_eq!(app.status(&id).await, "SENT", "{kind}");
        assert_eq!(app.outcomes(&id).await, ["ACCEPTED"; 4], "{kind}");
        if kind != ProviderType::Smtp {
            assert_eq!(app.simulator().send_call_count(provider(kind)), 1, "{kind}");
        }
        let mut ids = Vec::new();
        for (address, named) in PEOPLE {
            let copy = app.captured_once(address);
            assert_eq!(copy.kind, named, "{kind} {address}");
            let seen = ["ada@example.org", "bob@example.org", "cy@example.org"];
            assert_eq!(copy.visible_recipients, seen, "{kind}");
            assert_eq!(copy.visible_cc, ["cy@example.org"], "{kind}");
            assert_eq!(copy.headers["X-Order"], "7", "{kind}");
            let reply_to = copy.reply_to.clone().unwrap();
            if kind != ProviderType::Smtp {
                assert!(reply_to.contains("c@example.com"), "{kind} {reply_to}");
            }
            let arrived = copy.attachments.iter().map(|file| file.content.to_vec());
            let mut arrived: Vec<_> = arrived.collect();
            arrived.sort_by_key(|content| std::cmp::Reverse(content.len()));
            assert_eq!(arrived, [bytes.clone(), b"\x89PNG".to_vec()], "{kind}");
            let names = copy.attachments.iter().map(|file| file.filename.as_str());
            assert!(names.clone().any(|name| name == files[0].0), "{kind}");
            let inline = copy
                .attachments
                .iter()
                .find_map(|file| file.content_id.as_deref());
            assert_eq!(
                inline.map(|id| id.trim_start_matches("cid:")),
                Some("logo"),
                "{kind}"
            );
            ids.push(copy.provider_message_id.clone());
        }
        ids.dedup();
        assert_eq!(ids.len(), 1, "{kind}: {ids:?}");
    }
}

#[tokio::test]
async fn a_suppressed_address_is_dropped_from_a_shared_mail_and_not_the_mail() {
    let app = idle(ProviderType::Sendgrid).await;
    let id = shared(&app).await;
    let suppress = |address: &str| json!({ "email": address });
    for address in ["bob@example.org", "dee@example.org"] {
        app.post("/v1/suppressions", &suppress(address))
            .await
            .data(201);
    }
    app.start_worker();
    app.drain().await;
    let copy = app.captured_once("ada@example.org");
    assert_eq!(
        copy.visible_recipients,
        ["ada@example.org", "cy@example.org"]
    );
    assert!(app.captured("bob@example.org").is_empty());
    assert!(app.captured("dee@example.org").is_empty());
    assert_eq!(app.outcomes(&id).await, ["ACCEPTED"; 2]);
}

#[tokio::test]
async fn without_anybody_in_to_a_shared_mail_is_not_sent() {
    let app = idle(ProviderType::Postmark).await;
    let id = shared(&app).await;
    for address in ["ada@example.org", "bob@example.org"] {
        let body = json!({ "email": address });
        app.post("/v1/suppressions", &body).await.data(201);
    }
    app.start_worker();
    app.drain().await;
    assert_eq!(app.simulator().captured_count(), 0);
    assert_eq!(app.status(&id).await, "FAILED");
}

#[tokio::test]
async fn a_shared_mail_is_retried_as_one() {
    for kind in [ProviderType::Postmark, ProviderType::Mailgun] {
        let app = idle(kind).await;
        let id = shared(&app).await;
        app.simulator().set_fault(Fault {
            provider: Some(provider(kind)),
            kind: FaultKind::Error,
            rate: 1.0,
            latency_ms: 0,
            calls: FaultCalls::default(),
        });
        app.start_worker();
        wait_until("the mail was refused for now", async || {
            let outcomes = app.outcomes(&id).await;
            outcomes.len() == 4 && outcomes.iter().all(|outcome| outcome != "OPEN")
        })
        .await;
        app.simulator().clear_faults();
        app.advance_and_drain(TimeDelta::hours(1)).await;
        let state = format!(
            "SELECT string_agg(concat_ws(' ', status, last_error, next_attempt_at - now()), ', ')
             FROM recipients WHERE message_id = '{id}'"
        );
        let state = app.value(&state).await.unwrap();
        assert_eq!(app.status(&id).await, "SENT", "{kind}: {state}");
        assert_eq!(app.simulator().send_call_count(provider(kind)), 2, "{kind}");
        for (address, _) in PEOPLE {
            let copy = app.captured_once(address);
            assert_eq!(copy.visible_recipients.len(), 3, "{kind}");
        }
        assert_eq!(app.attempts(&id).await.len(), 8, "{kind}");
    }
}

#[tokio::test]
async fn a_recipient_that_the_provider_refuses_has_its_own_outcome() {
    for kind in [ProviderType::Postmark, ProviderType::Smtp] {
        let app = idle(kind).await;
        // The simulator refuses such addresses.
        let mut message = message_to("");
        message["to"] = json!(["a@example.org", "refuse@example.org", "c@example.org"]);
        let other = app.send(&message).await;
        app.execute(&format!(
            "UPDATE messages SET is_shared = true WHERE id = '{other}'"
        ))
        .await;
        app.start_worker();
        app.drain().await;
        let query = format!(
            "SELECT string_agg(status::text, ' ' ORDER BY position) FROM recipients WHERE message_id = '{other}'"
        );
        let statuses = app.value(&query).await;
        assert_eq!(statuses.unwrap(), "SENT FAILED SENT", "{kind}");
        assert!(app.captured("refuse@example.org").is_empty());
    }
}

#[tokio::test]
async fn recipients_with_contents_of_their_own_get_those() {
    for kind in [
        ProviderType::Postmark,
        ProviderType::Ses,
        ProviderType::Sendgrid,
    ] {
        let app = idle(kind).await;
        let to: Vec<String> = (0..12).map(|nth| format!("r{nth}@example.org")).collect();
        let mut message = message_to("");
        message["to"] = json!(to);
        let id = app.send(&message).await;
        app.execute(&format!(
            "INSERT INTO recipient_contents (message_id, position, organization_id, subject, html, text)
             SELECT message_id, position, organization_id, 'For ' || position,
                    '<p>Own ' || position || ' é</p>', CASE WHEN position > 5 THEN 'Text ' || position END
             FROM recipients WHERE message_id = '{id}' AND position > 0"
        ))
        .await;
        app.start_worker();
        app.drain().await;
        let first = app.captured_once("r0@example.org");
        assert_eq!(
            first.subject,
            message["subject"].as_str().unwrap(),
            "{kind}"
        );
        for (nth, address) in to.iter().enumerate().skip(1) {
            let copy = app.captured_once(address);
            assert_eq!(copy.subject, format!("For {nth}"), "{kind}");
            assert!(
                copy.html.unwrap().contains(&format!("Own {nth} é")),
                "{kind}"
            );
            let is_own = copy
                .text
                .as_ref()
                .is_some_and(|text| *text == format!("Text {nth}"));
            assert_eq!(is_own, nth > 5, "{kind}");
        }
    }
}

#[tokio::test]
async fn a_file_that_is_not_stored_is_not_left_out() {
    let app = idle(ProviderType::Sendgrid).await;
    let id = shared(&app).await;
    app.execute(&format!(
        "UPDATE message_bodies SET attachments = '[{{\"filename\": \"a\", \"contentType\": \"a/b\",
             \"size\": 5, \"sha256\": \"{}\"}}]' WHERE message_id = '{id}'",
        "00".repeat(32)
    ))
    .await;
    app.start_worker();
    wait_until("the worker tried", async || {
        app.value(&format!(
            "SELECT count(*) FROM recipients WHERE message_id = '{id}' AND status <> 'QUEUED'"
        ))
        .await
        .as_deref()
            == Some("4")
    })
    .await;
    assert_eq!(app.simulator().captured_count(), 0);
    app.leave_work();
}

#[tokio::test]
async fn a_shared_mail_whose_answer_is_lost_is_found_for_all_its_recipients() {
    for kind in [
        ProviderType::Postmark,
        ProviderType::Mailgun,
        ProviderType::Sendgrid,
    ] {
        let app = TestApp::builder()
            .without_worker()
            .setting("WAYPOST_PROVIDER_TIMEOUT", "3s")
            .start()
            .await;
        app.connect(kind).await;
        app.simulator().set_search_lag(Duration::ZERO);
        app.simulator().set_fault(Fault {
            provider: Some(provider(kind)),
            kind: FaultKind::Timeout,
            rate: 1.0,
            latency_ms: 0,
            calls: FaultCalls::default(),
        });
        let id = shared(&app).await;
        app.start_worker();
        app.drain().await;
        assert_eq!(app.outcomes(&id).await, ["UNKNOWN"; 4], "{kind}");
        app.simulator().clear_faults();
        app.advance(TimeDelta::seconds(10));
        wait_until("all recipients are found", async || {
            app.outcomes(&id).await == ["ACCEPTED"; 4]
        })
        .await;
        for (address, _) in PEOPLE {
            app.captured_once(address);
        }
    }
}
