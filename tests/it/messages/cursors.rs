//! Cursors: pages that stay as they are while a list grows.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, message_to};

use super::filters::{FILLERS, PATH, ids, insert_fillers, quiet};

#[tokio::test]
async fn cursors_lead_behind_the_two_thousand_matches_that_pages_show() {
    let app = quiet().await;
    insert_fillers(&app).await;
    let count = |condition: &str| format!("SELECT count(*) FROM messages WHERE {condition}");
    app.execute("UPDATE messages SET tags = '{some}' WHERE id < waypost_uuid_floor('2026-01-02Z')")
        .await;
    // Tags do not change after acceptance, so nothing else labels these anew.
    app.execute(
        "UPDATE new_messages n SET labels = l.labels FROM message_labels l WHERE l.message_id = n.message_id",
    )
    .await;
    app.fold_messages().await;
    let expected: i64 = app
        .value(&count("tags = '{some}'"))
        .await
        .unwrap()
        .parse()
        .unwrap();
    assert!(expected < 2_050 && expected > 1_900, "{expected}");
    for (tag, matches) in [
        ("some", expected),
        (
            "filler",
            i64::from(u32::try_from(FILLERS).unwrap()) - expected,
        ),
    ] {
        let query = [("tag", tag), ("limit", "100")];
        let first = app.caller().query(PATH, &query).await.expect(200);
        assert_eq!(first["pagination"]["total"], matches.min(2_000));
        let mut found: BTreeSet<String> = ids(&first).into_iter().collect();
        let mut cursor = first["pagination"]["nextCursor"]
            .as_str()
            .map(str::to_owned);
        while let Some(text) = cursor {
            let query = [("tag", tag), ("limit", "100"), ("cursor", text.as_str())];
            let body = app.caller().query(PATH, &query).await.expect(200);
            assert_eq!(body["pagination"]["total"], matches.min(2_000));
            for id in ids(&body) {
                assert!(found.insert(id), "a message is listed twice");
            }
            cursor = body["pagination"]["nextCursor"].as_str().map(str::to_owned);
            if found.len() > 2_500 {
                break;
            }
        }
        assert_eq!(i64::try_from(found.len()).unwrap(), matches.min(2_600));
    }
}

#[tokio::test]
async fn a_cursor_is_stable_while_messages_arrive_and_fits_its_filters_alone() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    let mut sent = Vec::new();
    for _ in 0..11 {
        app.advance(TimeDelta::milliseconds(5));
        sent.push(app.send_to("ada@example.org").await);
    }
    sent.reverse();
    for filter in [
        "",
        "&recipient=ada@example.org",
        "&search=hello",
        "&status=QUEUED,SENT",
        "&from=example.com",
    ] {
        let expected = app
            .get(&format!("{PATH}?limit=100{filter}"))
            .await
            .expect(200);
        let mut found = Vec::new();
        let mut cursor = String::new();
        loop {
            let body = app
                .get(&format!("{PATH}?limit=4{filter}{cursor}"))
                .await
                .expect(200);
            found.extend(ids(&body));
            app.advance(TimeDelta::milliseconds(5));
            app.send_to("ada@example.org").await;
            let Some(next) = body["pagination"]["nextCursor"].as_str() else {
                break;
            };
            cursor = format!("&cursor={next}");
            for other in ["&tag=a", "&search=hell", "&status=SENT"] {
                let reply = app.get(&format!("{PATH}?limit=4{other}{cursor}")).await;
                reply.expect_issues(400, &["cursor"]);
            }
            let reply = app.get(&format!("/v1/templates?limit=4{cursor}")).await;
            reply.expect_issues(400, &["cursor"]);
            let reply = app
                .get(&format!("{PATH}?limit=4{filter}{cursor}&page=2"))
                .await;
            reply.expect_issues(400, &["cursor"]);
        }
        assert_eq!(found, ids(&expected), "{filter}");
    }
    app.leave_work();
}

#[tokio::test]
async fn the_other_lists_have_stable_cursors_too() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let mut message = message_to("r0@example.org");
    let to: Vec<String> = (0..5).map(|nth| format!("r{nth}@example.org")).collect();
    message["to"] = json!(to);
    let id = app.send(&message).await;
    let create = async |nth: usize| {
        app.advance(TimeDelta::milliseconds(5));
        let template = json!({ "name": format!("Template {nth}") });
        app.post("/v1/templates", &template).await.expect(201);
        let suppression = json!({ "email": format!("gone-{nth}@example.org") });
        app.post("/v1/suppressions", &suppression).await.expect(201);
        let key = json!({ "name": format!("Key {nth}"), "permissions": ["SEND"] });
        app.post("/v1/api-keys", &key).await.expect(201);
    };
    for nth in 0..5 {
        create(nth).await;
    }
    let mut nth = 5;
    for path in [
        "/v1/templates".to_owned(),
        "/v1/suppressions".to_owned(),
        "/v1/api-keys".to_owned(),
        "/v1/audit-logs".to_owned(),
        format!("/v1/messages/{id}/recipients"),
    ] {
        let expected = app.get(&format!("{path}?limit=100")).await.expect(200);
        assert!(expected["pagination"]["nextCursor"].is_null(), "{path}");
        let expected = expected["data"].as_array().unwrap().clone();
        let mut found: Vec<Value> = Vec::new();
        let mut cursor = String::new();
        for page in 1.. {
            let body = app
                .get(&format!("{path}?limit=2{cursor}"))
                .await
                .expect(200);
            found.extend(body["data"].as_array().unwrap().iter().cloned());
            assert_eq!(body["pagination"]["page"], page);
            create(nth).await;
            nth += 1;
            let Some(next) = body["pagination"]["nextCursor"].as_str() else {
                break;
            };
            cursor = format!("&cursor={next}");
        }
        let places = |rows: &[Value]| -> Vec<String> {
            let of = |row: &Value| format!("{}{}", row["id"], row["toHash"]);
            rows.iter().map(of).collect()
        };
        assert_eq!(places(&found), places(&expected), "{path}");
    }
    app.leave_work();
}
