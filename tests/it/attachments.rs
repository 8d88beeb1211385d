//! Attachments: what is stored of them and how often, mistakes in them, their list and
//! their download, and that they go with their month.

mod memory;
mod urls;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use chrono::TimeDelta;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use waypost_core::attachment::{AttachmentRef, MonthKey, PIECE_BYTES, store};
use waypost_core::auth::Permission;
use waypost_core::config::RetentionSettings;
use waypost_core::ids::MessageId;
use waypost_core::partition::{self, Month};
use waypost_core::provider::kind::ProviderType;
use waypost_core::retention::Retention;
use waypost_tests::{TestApp, message_to};

async fn quiet() -> TestApp {
    quiet_with(&[]).await
}

async fn quiet_with(settings: &[(&str, &str)]) -> TestApp {
    let mut builder = TestApp::builder().without_worker().without_scheduler();
    for (name, value) in settings {
        builder = builder.setting(name, value);
    }
    let app = builder.start().await;
    app.connect(ProviderType::Ses).await;
    app.leave_work();
    app
}

fn with_files(files: &Value) -> Value {
    let mut message = message_to("a@example.org");
    message["attachments"] = files.clone();
    message
}

/// Text of this length that is different for each `seed`.
fn text_of(length: usize, seed: u8) -> String {
    (0..length)
        .map(|index| char::from(b'!' + u8::try_from((index / 7 + usize::from(seed)) % 90).unwrap()))
        .collect()
}

async fn pieces(app: &TestApp) -> String {
    let count = "SELECT count(*) FROM attachment_contents";
    app.value(count).await.unwrap()
}

async fn load(app: &TestApp, id: &str, file: &Value) -> Result<String, String> {
    let reference = AttachmentRef {
        filename: String::new(),
        content_type: String::new(),
        content_id: None,
        size: file["size"].as_u64().unwrap(),
        sha256: file["sha256"].as_str().unwrap().to_owned(),
    };
    let id: MessageId = id.parse().unwrap();
    let mut connection = app.pool.acquire().await.unwrap();
    let organization = app.organization_id();
    let month = MonthKey::of_message(id);
    let loaded = store::load(&mut connection, organization, month, &reference).await;
    let loaded = loaded.map_err(|fault| fault.chain())?;
    Ok(String::from_utf8(loaded.to_vec()).unwrap())
}

/// Files of all kinds of sizes: their contents, and as a request has them.
fn files_of_all_sizes() -> (Vec<String>, Vec<Value>) {
    let lengths = [
        0,
        1,
        2,
        PIECE_BYTES - 1,
        PIECE_BYTES,
        PIECE_BYTES + 1,
        3 * PIECE_BYTES,
    ];
    let contents: Vec<String> = (0..)
        .zip(lengths)
        .map(|(seed, n)| text_of(n, seed))
        .collect();
    let files: Vec<Value> = contents
        .iter()
        .enumerate()
        .map(|(index, content)| {
            let text = match index % 2 {
                0 => STANDARD.encode(content),
                _ => STANDARD_NO_PAD.encode(content),
            };
            json!({ "filename": format!("{index}.txt"), "content": text })
        })
        .collect();
    (contents, files)
}

#[tokio::test]
async fn files_of_all_sizes_are_stored_once_and_given_back() {
    let app = quiet().await;
    let (contents, files) = files_of_all_sizes();
    let id = app.send(&with_files(&json!(files))).await;
    let list = app
        .get(&format!("/v1/messages/{id}/attachments"))
        .await
        .data(200);
    for (index, content) in contents.iter().enumerate() {
        assert_eq!(
            list[index],
            json!({
                "filename": format!("{index}.txt"),
                "contentType": "text/plain",
                "contentId": null,
                "size": content.len(),
                "sha256": hex::encode(Sha256::digest(content)),
            })
        );
        assert_eq!(load(&app, &id, &list[index]).await.unwrap(), *content);
        let reply = app
            .get(&format!("/v1/messages/{id}/attachments/{index}"))
            .await;
        assert_eq!((reply.status, &reply.text), (200, content), "{index}");
        for (name, value) in [
            ("content-type", "text/plain"),
            ("content-length", &*content.len().to_string()),
            (
                "content-disposition",
                &*format!("attachment; filename=\"{index}.txt\""),
            ),
            ("x-content-type-options", "nosniff"),
            ("content-security-policy", "sandbox"),
        ] {
            assert_eq!(reply.headers[name], value, "{index}");
        }
    }
    assert_eq!(pieces(&app).await, "9");
    // Other messages with the same files: singly, in a batch, twice in one message.
    let again = with_files(&json!([files[6], files[6], files[1]]));
    let other = app.send(&again).await;
    let batch = json!({ "messages": [again, again] });
    let results = app.post("/v1/emails/batch", &batch).await.expect(200);
    assert_eq!(results["results"][1]["status"], "queued", "{results}");
    assert_eq!(pieces(&app).await, "9");
    let list = app
        .get(&format!("/v1/messages/{other}/attachments"))
        .await
        .data(200);
    assert_eq!(list.as_array().unwrap().len(), 3);
    // A content that is not what was accepted is not sent.
    app.execute("UPDATE attachment_contents SET content = overlay(content PLACING 'x' FROM 9) WHERE length(content) > 9").await;
    let changed = load(&app, &other, &list[0]).await.unwrap_err();
    assert!(changed.contains("another hash"), "{changed}");
    app.execute("DELETE FROM attachment_contents WHERE piece = 1")
        .await;
    let missing = load(&app, &other, &list[0]).await.unwrap_err();
    assert!(missing.contains("bytes are stored"), "{missing}");
}

#[tokio::test]
async fn the_type_is_the_given_one_or_follows_from_the_name() {
    let app = quiet().await;
    let file = |name: &str, kind: Value| json!({ "filename": name, "content": "QQ==", "contentType": kind });
    let files = json!([
        file("Rechnung für Ä.pdf", Value::Null),
        file("photo.JPG", Value::Null),
        file("data", Value::Null),
        file("page.html", json!("text/calendar")),
    ]);
    let id = app.send(&with_files(&files)).await;
    let list = app
        .get(&format!("/v1/messages/{id}/attachments"))
        .await
        .data(200);
    let types: Vec<&str> = (list.as_array().unwrap().iter())
        .map(|file| file["contentType"].as_str().unwrap())
        .collect();
    assert_eq!(
        types,
        [
            "application/pdf",
            "image/jpeg",
            "application/octet-stream",
            "text/calendar"
        ]
    );
    let reply = app.get(&format!("/v1/messages/{id}/attachments/0")).await;
    assert_eq!(
        reply.headers["content-disposition"],
        "attachment; filename=\"Rechnung f_r _.pdf\"; filename*=UTF-8''Rechnung%20f%C3%BCr%20%C3%84.pdf"
    );
}

#[tokio::test]
async fn content_that_is_not_base64_is_refused_with_its_path() {
    let app = quiet().await;
    let good = json!({ "filename": "a.txt", "content": "QUJD" });
    for (content, words) in [
        (json!("QUJD\r\nQUJD"), "white space"),
        (json!(" QUJD"), "white space"),
        (json!("QU-_"), "URL-safe"),
        (json!("data:text/plain;base64,QUJD"), "data:"),
        (json!("QUJDQ"), "cut off"),
        (json!("QQ==QUJD"), "padding"),
        (json!("QR=="), "cut off or has padding"),
        (json!("\u{0}content:00"), "alphabet"),
        (json!("é"), "alphabet"),
        (json!(7), "must be a string"),
        (
            json!(format!("{}!", "QUJD".repeat(200_000))),
            "character 800001",
        ),
    ] {
        let bad = json!({ "filename": "b.txt", "content": content });
        let message = with_files(&json!([good, bad]));
        let reply = app.post("/v1/send", &message).await;
        let error = reply.expect_issues(400, &["attachments.1.content"]);
        assert!(error.to_string().contains(words), "{words}: {error}");
        let batch = json!({ "messages": [message, with_files(&json!([good]))] });
        let results = app.post("/v1/emails/batch", &batch).await.expect(200);
        let error = results["results"][0]["error"].as_str().unwrap();
        assert!(
            error.contains("attachments.1.content") && error.contains(words),
            "{error}"
        );
        assert_eq!(results["results"][1]["status"], "queued", "{results}");
    }
}

#[tokio::test]
async fn too_many_or_too_large_files_are_refused() {
    let app = quiet_with(&[("WAYPOST_ATTACHMENTS_MAX_BYTES", "1000")]).await;
    let file =
        |length: usize| json!({ "filename": "a", "content": STANDARD.encode("x".repeat(length)) });
    for count in [51, 10_000] {
        let files = vec![file(1); count];
        let reply = app.post("/v1/send", &with_files(&json!(files))).await;
        reply.expect_issues(400, &["attachments"]);
    }
    app.send(&with_files(&json!(vec![file(20); 50]))).await;
    app.send(&with_files(&json!([file(999), file(1)]))).await;
    for files in [json!([file(1_001)]), json!([file(500), file(501)])] {
        let reply = app.post("/v1/send", &with_files(&files)).await;
        reply.expect_issues(400, &["attachments"]);
    }
}

#[tokio::test]
async fn a_large_file_is_the_same_however_the_json_is_written() {
    let app = quiet().await;
    // A third of the base64 are slashes and plus signs, which serializers like to escape.
    let bytes: Vec<u8> = (0..1_200_000_u32)
        .flat_map(|n| [0xff, 0xef, (n % 251) as u8])
        .take(1_200_000)
        .collect();
    let text = STANDARD.encode(&bytes);
    assert!(text.contains('/') && text.contains('+'));
    let mut ids = Vec::new();
    for written in [
        text.clone(),
        text.replace('/', r"\/"),
        text.replace('+', r"\u002b").replace('/', r"\u002F"),
    ] {
        let message = with_files(&json!([{ "filename": "a.bin", "content": "HERE" }]));
        let body = message.to_string().replace("HERE", &written);
        let reply = app
            .caller()
            .call(http::Method::POST, "/v1/send", |request| {
                let request = request.header("content-type", "application/json");
                request.header("idempotency-key", "one").body(body)
            })
            .await;
        ids.push(reply.expect(202)["messageId"].as_str().unwrap().to_owned());
    }
    ids.dedup();
    assert_eq!(ids.len(), 1, "the key belongs to one request");
    let list = app
        .get(&format!("/v1/messages/{}/attachments", ids[0]))
        .await
        .data(200);
    assert_eq!(list[0]["sha256"], hex::encode(Sha256::digest(&bytes)));
}

#[tokio::test]
async fn content_is_shown_to_those_who_may_read_it_and_each_time_recorded() {
    let app = quiet().await;
    let id = app
        .send(&with_files(
            &json!([{ "filename": "a", "content": "QQ==" }]),
        ))
        .await;
    let plain = app.send_to("b@example.org").await;
    let path = format!("/v1/messages/{id}/attachments");
    let others: Vec<Permission> = Permission::ALL
        .into_iter()
        .filter(|permission| *permission != Permission::ContentRead)
        .collect();
    let unable = app
        .caller()
        .with_key(&app.key(app.organization_id(), &others).await);
    let stranger = app.tenant("Other").await.caller;
    for path in [path.clone(), format!("{path}/0")] {
        unable.get(&path).await.expect_error(403, "FORBIDDEN");
        stranger.get(&path).await.expect_error(404, "NOT_FOUND");
    }
    for wrong in ["1", "-1", "x", "99999999999999999999"] {
        let reply = app.get(&format!("{path}/{wrong}")).await;
        reply.expect_error(404, "NOT_FOUND");
    }
    let entries = "SELECT count(*) FROM audit_logs WHERE action = 'message.content_read'";
    assert_eq!(app.value(entries).await.unwrap(), "0");
    app.get(&path).await.expect(200);
    assert_eq!(app.get(&format!("{path}/0")).await.text, "A");
    let none = app.get(&format!("/v1/messages/{plain}/attachments")).await;
    assert_eq!(none.data(200), json!([]));
    assert_eq!(app.value(entries).await.unwrap(), "3");
    let parts = format!(
        "SELECT string_agg(metadata->>'part', ' ' ORDER BY id)
         FROM audit_logs WHERE action = 'message.content_read' AND target_id = '{id}'"
    );
    assert_eq!(
        app.value(&parts).await.unwrap(),
        "attachments attachments.0"
    );
}

/// Moves to the next month, whose partitions exist.
async fn next_month(app: &TestApp) {
    let now = app.clock.now();
    app.advance(Month::of(now).end() + TimeDelta::hours(1) - now);
    partition::create_ahead(&app.pool, app.clock.now(), 3)
        .await
        .unwrap();
}

fn retention(app: &TestApp, message_days: Option<u32>, body_days: Option<u32>) -> Retention {
    Retention {
        pool: app.pool.clone(),
        clock: app.clock.clone(),
        settings: RetentionSettings {
            message_days,
            body_days,
        },
    }
}

#[tokio::test]
async fn content_goes_with_the_bodies_of_its_month_and_with_the_month() {
    for (message_days, body_days) in [(None, Some(30)), (Some(30), None)] {
        let app = quiet().await;
        let file = json!([{ "filename": "a", "content": STANDARD.encode(text_of(300_000, 1)) }]);
        let id = app.send(&with_files(&file)).await;
        app.execute(&format!(
            "INSERT INTO recipient_contents (message_id, position, organization_id, html) VALUES ('{id}', 0, '{}', 'Ann')",
            app.organization_id()
        ))
        .await;
        app.execute("DELETE FROM outbox").await;
        app.execute("UPDATE messages SET status = 'SENT'").await;
        next_month(&app).await;
        let newer = app.send(&with_files(&file)).await;
        let stored = "SELECT (SELECT count(*) FROM attachment_contents) || ' ' || (SELECT count(*) FROM recipient_contents)";
        assert_eq!(app.value(stored).await.unwrap(), "4 1");
        let keeper = retention(&app, message_days, body_days);
        assert_eq!(keeper.drop_months().await.unwrap(), 0);
        app.advance(TimeDelta::days(30));
        assert_eq!(keeper.drop_months().await.unwrap(), 1);
        assert_eq!(app.value(stored).await.unwrap(), "2 0");
        assert_eq!(keeper.drop_months().await.unwrap(), 0);
        for path in ["", "/0"] {
            let reply = app
                .get(&format!("/v1/messages/{id}/attachments{path}"))
                .await;
            let error = reply.expect_error(404, "NOT_FOUND");
            let gone = json!({ "reason": "MESSAGE_CONTENT_GONE" });
            let expected = if body_days.is_some() {
                gone
            } else {
                Value::Null
            };
            assert_eq!(error["details"], expected);
        }
        let list = app
            .get(&format!("/v1/messages/{newer}/attachments"))
            .await
            .data(200);
        assert_eq!(
            load(&app, &newer, &list[0]).await.unwrap(),
            text_of(300_000, 1)
        );
    }
}

#[tokio::test]
async fn content_goes_when_its_organization_has_no_message_of_the_month_left() {
    let app = quiet().await;
    let other = app.tenant("Other").await.caller;
    let connect = json!({ "providerType": "SENDGRID", "displayName": "Mail",
                          "credentials": waypost_tests::credentials(ProviderType::Sendgrid) });
    other.post("/v1/providers", &connect).await.expect(201);
    let file = with_files(&json!([{ "filename": "a", "content": "QUJD" }]));
    app.send(&file).await;
    let held = app.send(&file).await;
    other.post("/v1/send", &file).await.expect(202);
    app.execute(&format!("DELETE FROM outbox WHERE message_id <> '{held}'"))
        .await;
    app.execute("UPDATE messages SET status = 'SENT'").await;
    app.patch("/v1/settings", &json!({ "retentionDays": 7 }))
        .await
        .expect(200);
    next_month(&app).await;
    app.advance(TimeDelta::days(8));
    let keeper = retention(&app, None, None);
    let turn = std::time::Duration::from_secs(20);
    // The held message keeps its month's contents.
    assert_eq!(keeper.delete_expired(turn).await.unwrap(), 1);
    assert_eq!(pieces(&app).await, "2");
    app.execute("DELETE FROM outbox").await;
    assert_eq!(keeper.delete_expired(turn).await.unwrap(), 1);
    assert_eq!(pieces(&app).await, "1");
    let owner = "SELECT count(*) FROM attachment_contents WHERE organization_id = '@'";
    let own = owner.replace('@', &app.organization_id().to_string());
    assert_eq!(app.value(&own).await.unwrap(), "0");
}
