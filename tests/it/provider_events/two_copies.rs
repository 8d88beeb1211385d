//! A message sent twice to one recipient: the answer to the first call was lost, the rule
//! says `resend`, and both arrive. Each recipient counts once for each event type, in
//! whatever order the events are reported.

use chrono::TimeDelta;
use serde_json::{Map, Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, wait_until};

use super::{Account, connect, event, tags, totals};

/// A message that was sent twice, and Waypost's ids of both attempts.
async fn sent_twice(app: &TestApp, to: &str) -> (String, [Map<String, Value>; 2]) {
    let id = app.send_to(to).await;
    app.drain().await;
    assert_eq!(app.outcomes(&id).await, ["UNKNOWN", "ACCEPTED"]);
    copies_of(app, id).await
}

async fn copies_of(app: &TestApp, id: String) -> (String, [Map<String, Value>; 2]) {
    let mut copies = Vec::new();
    for nth in 0..2 {
        let attempt = format!(
            "SELECT id FROM send_attempts WHERE message_id = '{id}' ORDER BY started_at, id LIMIT 1 OFFSET {nth}"
        );
        let attempt = app.value(&attempt).await.unwrap();
        copies.push(tags(&id, 0, &attempt));
    }
    let [first, second] = <[_; 2]>::try_from(copies).unwrap();
    (id, [first, second])
}

async fn resending() -> (TestApp, Account) {
    let app = TestApp::builder()
        .setting("WAYPOST_PROVIDER_TIMEOUT", "1s")
        .start()
        .await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let rule = json!({
        "name": "All", "priority": 1, "providerAccountId": account.id, "onUnknown": "resend",
    });
    let _rule = app.post("/v1/routing-rules", &rule).await.data(201);
    (app, account)
}

/// The events of both attempts: the attempt, the kind, and how many seconds ago.
const TOLD: [(usize, &str, i64); 10] = [
    (0, "processed", -7_300),
    (1, "processed", -7_200),
    (0, "delivered", -3_700),
    (1, "delivered", -7_100),
    (0, "open", -3_600),
    (1, "open", -100),
    (0, "click", -90),
    (1, "click", -3_500),
    (0, "spamreport", -50),
    (1, "spamreport", -3_000),
];

/// The permutation of the events with a number.
fn order(mut number: usize) -> Vec<(usize, &'static str, i64)> {
    let mut left = TOLD.to_vec();
    let mut order = Vec::new();
    while !left.is_empty() {
        let place = number % left.len();
        number = number / left.len() + 7 * number % 1_009;
        order.push(left.remove(place));
    }
    order
}

#[tokio::test]
async fn a_recipient_of_two_attempts_counts_once_in_any_order() {
    let (app, account) = resending().await;
    let mut all = Vec::new();
    for number in 0..12 {
        let id = app.send_to(&format!("r{number}@example.org")).await;
        app.drain().await;
        // Another attempt whose answer was lost: inserted as a row, since so many of them
        // would open the account's circuit.
        let lost = format!(
            "INSERT INTO send_attempts
             SELECT (jsonb_populate_record(a, jsonb_build_object('id', gen_random_uuid(), 'outcome', 'UNKNOWN'))).*
             FROM send_attempts a WHERE message_id = '{id}'"
        );
        app.execute(&lost).await;
        all.push(copies_of(&app, id).await);
    }
    app.advance(TimeDelta::hours(3));
    for (number, (_, copies)) in all.iter().enumerate() {
        for (nth, (copy, kind, after)) in order(number * 97 + 3).into_iter().enumerate() {
            let key = format!("{number}-{copy}-{kind}");
            let mut told = event(&app, &copies[copy], kind, &key, after);
            told["useragent"] = json!("Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101");
            told["sg_message_id"] = json!(format!("copy-{copy}.recvd-1"));
            account.tell(&app, &json!([told])).await;
            if nth % 3 == 0 {
                // Again, since providers repeat events.
                account.tell(&app, &json!([told])).await;
            }
        }
    }
    let bounce = event(&app, &all[0].1[1], "bounce", "late", -1);
    account.tell(&app, &json!([bounce])).await;
    let second = event(&app, &all[0].1[0], "bounce", "later", -1);
    account.tell(&app, &json!([second])).await;
    assert_eq!(totals(&app).await, [12, 12, 12, 12, 1, 12, 0]);
    let summary = app.get("/v1/metrics/summary").await.data(200);
    for rate in ["deliveryRate", "openRate", "clickRate", "complaintRate"] {
        assert_eq!(summary[rate], 1.0, "{rate}: {summary}");
    }
    for query in ["groupBy=provider", "groupBy=domain", "groupBy=template"] {
        let groups = app.get(&format!("/v1/metrics/breakdown?{query}")).await;
        let groups = groups.data(200);
        assert_eq!(groups[0]["delivered"], 12, "{groups}");
    }
    let buckets = app.get("/v1/metrics?granularity=hour").await.data(200);
    for bucket in buckets.as_array().unwrap() {
        for count in ["sent", "delivered", "opened", "clicked", "complained"] {
            let counted = bucket[count].as_i64().unwrap();
            assert!((0..=12).contains(&counted), "{bucket}");
        }
    }
}

#[tokio::test]
async fn the_history_names_the_attempt_of_each_event() {
    let (app, account) = resending().await;
    let (id, copies) = sent_twice(&app, "timeout-once@example.org").await;
    app.advance(TimeDelta::minutes(1));
    for (nth, copy) in copies.iter().enumerate() {
        let mut told = event(&app, copy, "delivered", &format!("d{nth}"), nth as i64 - 9);
        told["sg_message_id"] = json!(format!("id-{nth}.recvd-1"));
        account.tell(&app, &json!([told])).await;
    }
    let shown = app.get(&format!("/v1/messages/{id}")).await.data(200);
    let attempts: Vec<&Value> = shown["attempts"].as_array().unwrap().iter().collect();
    let events = shown["events"].as_array().unwrap();
    let of = |kind: &str| -> Vec<(&Value, &Value)> {
        let events = events.iter().filter(|event| event["eventType"] == kind);
        let events = events.map(|event| (&event["attemptId"], &event["providerMessageId"]));
        events.collect()
    };
    assert_eq!(
        of("DELIVERED"),
        [
            (&attempts[0]["id"], &json!("id-0")),
            (&attempts[1]["id"], &json!("id-1")),
        ]
    );
    assert_eq!(of("SENT").len(), 1);
    assert_eq!(of("SENT")[0].0, &attempts[1]["id"]);
    assert_eq!(of("QUEUED"), [(&Value::Null, &Value::Null)]);
    let recipient = app.recipient(&id).await;
    assert_eq!(recipient["events"], shown["events"]);
    wait_until("both are counted", async || {
        totals(&app).await == [1, 1, 0, 0, 0, 0, 0]
    })
    .await;
}
