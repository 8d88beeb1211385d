//! Messages: they arrive unchanged through each provider, and their owner can see what
//! happened to them.

mod cursors;
mod detail;
mod filters;
mod list;
mod totals;

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use serde_json::{Value, json};
use uuid::Uuid;
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::Captured;
use waypost_tests::{TestApp, decoded, event_types, message_to, to_hash, untracked};

/// The time that a debug build needs for a thousand recipients on a busy machine.
const THOUSAND_WITHIN: Duration = Duration::from_secs(60);

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

fn is_time(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    text.ends_with('Z') && DateTime::parse_from_rfc3339(text).is_ok()
}

fn rich_message(to: &Value) -> Value {
    json!({
        "from": "\"Lovelace, Ada \\\"Countess\\\"\" <ada@example.com>",
        "to": to,
        "subject": "Zoë’s “receipt” – 100 % 📬",
        "html": "<p>Grüße & „quotes“ \\ 📬</p>\n<p>-name- %recipient.x% {{y}}</p>",
        "text": "Grüße\r\nline two\n.\n\tend",
        "replyTo": "Zoë Müller <answers@example.org>",
        "tags": ["receipts", "2026-11", "third_tag"],
        "metadata": { "order": 1 },
        "tracking": untracked(),
    })
}

/// The tags as this provider transmits them.
fn carried_tags(kind: ProviderType, copy: &Captured) -> Vec<String> {
    match kind {
        ProviderType::Sendgrid | ProviderType::Postmark | ProviderType::Mailgun => {
            copy.tags.clone()
        }
        ProviderType::Ses => {
            let named = copy
                .metadata
                .iter()
                .filter(|(name, _)| name.starts_with("waypost_tag_"));
            named.map(|(_, value)| value.clone()).collect()
        }
        ProviderType::Smtp => Vec::new(),
    }
}

async fn arrives_as_given(kind: ProviderType) {
    let app = TestApp::start().await;
    let account = app.connect(kind).await;
    let reply = app
        .post("/v1/send", &rich_message(&json!("Bob <bob@example.org>")))
        .await
        .expect(202);
    let id = reply["messageId"].as_str().unwrap().to_owned();
    let receipt = json!({
        "messageId": id,
        "providerId": account,
        "providerType": kind,
        "status": "queued",
        "domainVerified": true,
    });
    assert_eq!(reply, receipt);
    app.drain().await;

    let copy = app.captured_once("bob@example.org");
    assert_eq!(copy.provider.name(), kind.as_str());
    assert_eq!(copy.subject, "Zoë’s “receipt” – 100 % 📬");
    assert_eq!(
        copy.html.as_deref(),
        rich_message(&json!(""))["html"].as_str()
    );
    let text = copy.text.clone().unwrap();
    assert_eq!(text.replace("\r\n", "\n"), "Grüße\nline two\n.\n\tend");
    let from = decoded(&copy.from);
    for part in ["ada@example.com", "Lovelace, Ada", "Countess"] {
        assert!(from.contains(part), "{from}");
    }
    assert!(
        copy.reply_to
            .as_ref()
            .unwrap()
            .contains("answers@example.org"),
        "{:?}",
        copy.reply_to
    );
    assert_eq!(copy.visible_recipients.len(), 1);
    let all = ["receipts", "2026-11", "third_tag"];
    let carried = if kind == ProviderType::Postmark {
        &all[..1]
    } else {
        &all[..]
    };
    assert_eq!(carried_tags(kind, &copy), carried);
    assert_eq!(copy.metadata.get("waypost_message"), Some(&id));
    assert_eq!(
        copy.metadata.get("waypost_recipient").map(String::as_str),
        Some("0")
    );
    assert!(
        copy.metadata
            .get("waypost_attempt")
            .is_some_and(|attempt| attempt.parse::<Uuid>().is_ok())
    );

    assert_eq!(app.status(&id).await, "SENT");
    assert_eq!(app.events(&id).await, ["QUEUED", "SENT"]);
    let recipient = app.recipient(&id).await;
    assert_eq!(recipient["providerAccountId"], account);
    assert_eq!(recipient["attempts"], 1);
    let given = recipient["providerMessageId"].as_str().unwrap();
    assert!(
        copy.provider_message_id
            .contains(given.trim_matches(['<', '>'])),
        "{given} is not {}",
        copy.provider_message_id
    );
}

#[tokio::test]
async fn a_message_arrives_unchanged_through_sendgrid() {
    arrives_as_given(ProviderType::Sendgrid).await;
}

#[tokio::test]
async fn a_message_arrives_unchanged_through_postmark() {
    arrives_as_given(ProviderType::Postmark).await;
}

#[tokio::test]
async fn a_message_arrives_unchanged_through_mailgun() {
    arrives_as_given(ProviderType::Mailgun).await;
}

#[tokio::test]
async fn a_message_arrives_unchanged_through_ses() {
    arrives_as_given(ProviderType::Ses).await;
}

#[tokio::test]
async fn a_message_with_one_body_arrives_with_only_that_body() {
    for kind in ProviderType::ALL {
        let app = TestApp::start().await;
        app.connect(kind).await;
        let base =
            json!({ "from": "a@example.com", "subject": "One body", "tracking": untracked() });
        for (field, other) in [("html", "text"), ("text", "html")] {
            let mut message = base.clone();
            message["to"] = json!(format!("{field}-only@example.org"));
            message[field] = json!("<i>only this</i>");
            message[other] = Value::Null;
            app.send(&message).await;
        }
        app.drain().await;
        let html = app.captured_once("html-only@example.org");
        assert_eq!(
            (html.html.as_deref(), html.text),
            (Some("<i>only this</i>"), None),
            "{kind}"
        );
        let text = app.captured_once("text-only@example.org");
        assert_eq!(
            (text.text.as_deref(), text.html),
            (Some("<i>only this</i>"), None),
            "{kind}"
        );
    }
}

#[tokio::test]
async fn the_history_is_in_order_and_its_times_are_utc() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = app.send_to("flaky@example.org").await;
    app.drain().await;
    app.advance_and_drain(TimeDelta::minutes(1)).await;
    let message = app.message(&id).await;
    let events = message["events"].as_array().unwrap();
    assert_eq!(event_types(&message), ["QUEUED", "DEFERRED", "SENT"]);
    assert!(
        events.iter().all(|event| {
            let keys = keys(event);
            ["eventType", "occurredAt"]
                .iter()
                .all(|key| keys.contains(key))
        }),
        "{events:?}"
    );
    assert!(
        events.iter().all(|event| is_time(&event["occurredAt"])),
        "{events:?}"
    );
    let times: Vec<&str> = events
        .iter()
        .map(|event| event["occurredAt"].as_str().unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[tokio::test]
async fn a_message_has_the_documented_fields_and_no_recipient_address() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = app.send_to("secret.person@example.org").await;
    app.drain().await;
    let message = app.message(&id).await;
    for key in ["id", "fromAddress", "subject", "status", "tags", "events"] {
        assert!(message.get(key).is_some(), "{key} is missing: {message}");
    }
    for path in [
        format!("/v1/messages/{id}"),
        "/v1/messages".to_owned(),
        format!("/v1/messages/{id}/recipients"),
    ] {
        let text = app.get(&path).await.text;
        assert!(!text.contains("secret.person"), "{path}: {text}");
    }
    let stored = app
        .value("SELECT string_agg(r::text, ' ') FROM recipients r")
        .await
        .unwrap();
    assert!(
        !stored.contains("secret.person") && !stored.contains(&hex("secret.person")),
        "{stored}"
    );
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn several_recipients_get_separate_messages() {
    for kind in ProviderType::ALL {
        let app = TestApp::start().await;
        app.connect(kind).await;
        let to = [
            "one@example.org",
            "Two <two@example.org>",
            "three@example.net",
        ];
        let id = app.send(&rich_message(&json!(to))).await;
        app.drain().await;
        for (position, address) in ["one@example.org", "two@example.org", "three@example.net"]
            .into_iter()
            .enumerate()
        {
            let copy = app.captured_once(address);
            let seen: Vec<bool> = copy
                .visible_recipients
                .iter()
                .map(|seen| seen.contains(address))
                .collect();
            assert_eq!(seen, [true], "{kind}: {:?}", copy.visible_recipients);
            let others = format!("{:?} {:?} {:?}", copy.headers, copy.metadata, copy.html);
            assert!(
                !others.contains("@example.net") && !others.contains("two@"),
                "{kind}: {others}"
            );
            if kind == ProviderType::Smtp {
                assert!(copy.metadata.is_empty());
                let message_id = format!("<{id}.{position}@example.com>");
                assert_eq!(copy.provider_message_id, message_id);
                continue;
            }
            assert_eq!(
                copy.metadata.get("waypost_recipient"),
                Some(&position.to_string()),
                "{kind}"
            );
            assert_eq!(copy.metadata.get("waypost_message"), Some(&id), "{kind}");
        }
        let item = &app.get("/v1/messages").await.data(200)[0];
        assert_eq!(item["recipientCount"], 3);
        assert_eq!(item["toHash"], to_hash("one@example.org"));
        assert_eq!(item["status"], "SENT");
    }
}

#[tokio::test]
async fn an_address_named_twice_is_sent_one_message() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let to = json!([
        "ada@example.org",
        "ADA@example.org",
        "Ada <ada@EXAMPLE.org>",
        "bob@example.org"
    ]);
    let id = app.send(&rich_message(&to)).await;
    app.drain().await;
    app.captured_once("ada@example.org");
    app.captured_once("bob@example.org");
    let recipients = app.recipients(&id).await;
    let hashes: Vec<&str> = recipients
        .iter()
        .map(|recipient| recipient["toHash"].as_str().unwrap())
        .collect();
    assert_eq!(
        hashes,
        [to_hash("ada@example.org"), to_hash("bob@example.org")]
    );
}

#[tokio::test]
async fn to_may_be_a_string_or_a_list_and_the_hash_is_of_the_normalized_address() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    for to in [
        json!("Ada.L@Example.ORG"),
        json!(["Ada.L@Example.ORG"]),
        json!(" Ada <Ada.L@example.org> "),
    ] {
        let mut message = message_to("");
        message["to"] = to.clone();
        let id = app.send(&message).await;
        let items = app.get("/v1/messages?limit=1").await.data(200);
        assert_eq!(items[0]["id"], json!(id));
        assert_eq!(items[0]["toHash"], to_hash("ada.l@example.org"), "{to}");
    }
    app.drain().await;
    // The local part is sent as given.
    assert_eq!(app.captured("Ada.L@example.org").len(), 3);
    assert!(
        app.captured("ada.l@example.org")
            .iter()
            .all(|copy| copy.to.starts_with("Ada.L@"))
    );
}

const RECIPIENT_KEYS: [&str; 8] = [
    "attempts",
    "events",
    "kind",
    "lastError",
    "providerAccountId",
    "providerMessageId",
    "status",
    "toHash",
];

/// The address hash, status and history of a recipient.
fn summary(row: &Value) -> Value {
    json!([
        row["toHash"],
        row["status"],
        row["attempts"],
        event_types(row)
    ])
}

#[tokio::test]
async fn recipients_are_listed_in_order_with_their_own_histories() {
    let app = TestApp::start().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    let id = app
        .send(&rich_message(&json!([
            "fine@example.org",
            "refuse@example.org",
            "error@example.org"
        ])))
        .await;
    app.drain().await;
    let body = app
        .get(&format!("/v1/messages/{id}/recipients"))
        .await
        .expect(200);
    assert_eq!(
        body["pagination"],
        json!({ "page": 1, "limit": 20, "total": 3, "totalPages": 1, "nextCursor": null })
    );
    let rows = body["data"].as_array().unwrap();
    for row in rows {
        let mut found = keys(row);
        found.sort_unstable();
        assert_eq!(found, RECIPIENT_KEYS);
        assert_eq!(row["providerAccountId"], account);
    }
    let summary: Vec<Value> = rows.iter().map(summary).collect();
    let expected = [
        json!([to_hash("fine@example.org"), "SENT", 1, ["QUEUED", "SENT"]]),
        json!([
            to_hash("refuse@example.org"),
            "FAILED",
            1,
            ["QUEUED", "DROPPED"]
        ]),
        json!([
            to_hash("error@example.org"),
            "QUEUED",
            1,
            ["QUEUED", "DEFERRED"]
        ]),
    ];
    assert_eq!(summary, expected);
    assert!(
        rows[0]["lastError"].is_null()
            && rows[1]["lastError"].is_string()
            && rows[2]["lastError"].is_string()
    );
    // The message shows the least advanced status of its recipients.
    assert_eq!(app.status(&id).await, "QUEUED");
    let page = app
        .get(&format!("/v1/messages/{id}/recipients?page=2&limit=2"))
        .await
        .expect(200);
    assert_eq!(page["data"].as_array().unwrap().len(), 1);
    assert_eq!(
        page["pagination"],
        json!({ "page": 2, "limit": 2, "total": 3, "totalPages": 2, "nextCursor": null })
    );
}

#[tokio::test]
async fn tags_and_metadata_are_stored_unchanged() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Mailgun).await;
    let tags = json!([
        "simple",
        "with \"quotes\"",
        "com,ma",
        "{brace}",
        "back\\slash",
        "Ünï 📬",
        "NULL",
        "a'b",
        " spaced "
    ]);
    let metadata = json!({
        "": "empty key", "quote\"": "va\"lue", "nested": { "list": [1, 2.5, null, true, "📬"] },
        "big": 9_007_199_254_740_993_i64, "path": "C:\\x", "unicode": "Zoë\u{2028}",
    });
    let mut message = message_to("a@example.org");
    message["tags"] = tags.clone();
    message["metadata"] = metadata.clone();
    let id = app.send(&message).await;
    assert_eq!(app.message(&id).await["tags"], tags);
    assert_eq!(app.get("/v1/messages").await.data(200)[0]["tags"], tags);
    let stored = app
        .value(&format!("SELECT metadata FROM messages WHERE id = '{id}'"))
        .await
        .unwrap();
    assert_eq!(serde_json::from_str::<Value>(&stored).unwrap(), metadata);
    app.drain().await;
    let copy = app.captured_once("a@example.org");
    let carried = format!("{:?} {:?}", copy.metadata, copy.headers);
    assert!(
        !carried.contains("empty key"),
        "metadata is not sent to the provider: {carried}"
    );
}

#[tokio::test]
async fn a_tag_named_twice_is_stored_once() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let mut message = message_to("a@example.org");
    message["tags"] = json!(["x", "y", "x"]);
    let id = app.send(&message).await;
    assert_eq!(app.message(&id).await["tags"], json!(["x", "y"]));
    app.drain().await;
}

#[tokio::test]
async fn a_thousand_recipients_are_accepted_and_each_is_sent_one_message() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let to: Vec<String> = (0..1_000)
        .map(|number| format!("r{number}@example.org"))
        .collect();
    let mut message = message_to("");
    message["to"] = json!(to);
    let id = app.send(&message).await;
    app.drain_within(THOUSAND_WITHIN).await;
    assert_eq!(app.simulator().captured_count(), 1_000);
    let reached: BTreeSet<usize> = to
        .iter()
        .map(|address| app.captured(address).len())
        .collect();
    assert_eq!(reached, BTreeSet::from([1]));
    assert_eq!(app.status(&id).await, "SENT");
    let last = app
        .get(&format!("/v1/messages/{id}/recipients?limit=100&page=10"))
        .await
        .expect(200);
    assert_eq!(last["data"][99]["toHash"], to_hash("r999@example.org"));
    assert_eq!(last["pagination"]["total"], 1_000);
}

#[tokio::test]
async fn an_unknown_message_is_not_found() {
    let app = TestApp::builder().without_worker().start().await;
    for id in [
        Uuid::nil().to_string(),
        "0193a1b2-0000-7000-8000-000000000000".to_owned(),
        "x".to_owned(),
        "%FF".to_owned(),
    ] {
        app.get(&format!("/v1/messages/{id}"))
            .await
            .expect_error(404, "NOT_FOUND");
        app.get(&format!("/v1/messages/{id}/recipients"))
            .await
            .expect_error(404, "NOT_FOUND");
    }
}
