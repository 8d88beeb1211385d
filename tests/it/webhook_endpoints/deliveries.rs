//! Listing and replaying deliveries. These tests insert the rows that workers would
//! write.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
use uuid::Uuid;
use waypost_core::clock::{Clock, Timestamp};
use waypost_core::ids::Ids;
use waypost_tests::{TestApp, to_hash};

use super::receiver::{Manner, Receiver};
use super::{actions, endpoint, path_of, quiet};

fn iso(moment: Timestamp) -> String {
    moment.to_rfc3339_opts(SecondsFormat::Millis, true)
}

struct Row {
    status: &'static str,
    attempts: i32,
    next_attempt_at: Option<Timestamp>,
    created_at: Timestamp,
}

impl Row {
    fn ended(status: &'static str, created_at: Timestamp) -> Self {
        Self {
            status,
            attempts: 10,
            next_attempt_at: None,
            created_at,
        }
    }
}

async fn insert(app: &TestApp, endpoint: &Value, message_id: &str, row: &Row) -> String {
    let id: Uuid = Ids::new(Clock::system()).next_at(row.created_at);
    let quoted = |moment: Option<DateTime<Utc>>| {
        moment.map_or("NULL".to_owned(), |moment| {
            format!("'{}'", moment.to_rfc3339())
        })
    };
    let created_at = Some(row.created_at);
    let ended_at = row.next_attempt_at.is_none().then_some(row.created_at);
    app.execute(&format!(
        "INSERT INTO webhook_deliveries
             (message_id, id, organization_id, webhook_endpoint_id, event_id, event_type, position,
              status, attempts, next_attempt_at, created_at, ended_at)
         VALUES ('{message_id}', '{id}', '{}', {}, '{id}', 'COMPLAINED', 0, '{}', {}, {}, {}, {})",
        app.organization_id(),
        endpoint["id"].to_string().replace('"', "'"),
        row.status,
        row.attempts,
        quoted(row.next_attempt_at),
        quoted(created_at),
        quoted(ended_at),
    ))
    .await;
    id.to_string()
}

async fn attempt(app: &TestApp, message_id: &str, delivery_id: &str, status_code: &str) -> Uuid {
    let id: Uuid = Ids::new(Clock::system()).next_at(app.clock.now());
    app.execute(&format!(
        "INSERT INTO webhook_attempts
             (message_id, id, organization_id, webhook_delivery_id, started_at, duration_ms, status_code, answer)
         VALUES ('{message_id}', '{id}', '{}', '{delivery_id}', '{}', 42, {status_code}, 'said')",
        app.organization_id(),
        app.clock.now().to_rfc3339(),
    ))
    .await;
    id
}

async fn list(app: &TestApp, endpoint: &Value, query: &str) -> Value {
    let path = format!("{}/deliveries{query}", path_of(endpoint));
    app.get(&path).await.expect(200)
}

/// The ids on a page.
fn ids(page: &Value) -> Vec<&str> {
    let rows = page["data"].as_array().unwrap();
    rows.iter().map(|row| row["id"].as_str().unwrap()).collect()
}

/// Id, status, attempts and due time of every delivery, oldest first.
async fn state(app: &TestApp, endpoint: &Value) -> Vec<Value> {
    let page = list(app, endpoint, "?limit=100").await;
    let rows = page["data"].as_array().unwrap().iter().rev();
    rows.map(|row| {
        json!([
            row["status"],
            row["attemptCount"],
            row["nextAttemptAt"],
            row["endedAt"]
        ])
    })
    .collect()
}

#[tokio::test]
async fn deliveries_are_listed_with_their_attempts_newest_first() {
    let app = quiet().await;
    let receiver = Receiver::start(Manner::status(200)).await;
    let made = endpoint(&app, &receiver).await;
    let _other = endpoint(&app, &receiver).await;
    app.leave_work();
    app.connect(waypost_core::provider::kind::ProviderType::Sendgrid)
        .await;
    let message_id = app.send_to("Ada@example.org").await;
    let now = app.clock.now();
    let first = insert(&app, &made, &message_id, &Row::ended("FAILED", now)).await;
    let one = attempt(&app, &message_id, &first, "500").await;
    app.advance(TimeDelta::seconds(1));
    let later = app.clock.now();
    let other = attempt(&app, &message_id, &first, "NULL").await;
    let due = app.clock.now() + TimeDelta::minutes(5);
    let waiting = Row {
        status: "PENDING",
        attempts: 1,
        next_attempt_at: Some(due),
        created_at: app.clock.now(),
    };
    // A message that was deleted.
    let gone = Uuid::nil().to_string();
    let second = insert(&app, &made, &gone, &waiting).await;
    let page = list(&app, &made, "").await;
    let attempt = |id: Uuid, began: Timestamp, status: Value| {
        json!({
            "id": id.to_string(), "startedAt": iso(began), "durationMs": 42,
            "statusCode": status, "answer": "said",
        })
    };
    let expected = json!({
        "data": [
            {
                "id": second, "webhookEndpointId": made["id"], "messageId": gone,
                "eventId": second, "eventType": "COMPLAINED", "toHash": null,
                "status": "PENDING", "attemptCount": 1, "nextAttemptAt": iso(due),
                "createdAt": iso(app.clock.now()), "endedAt": null, "attempts": [],
            },
            {
                "id": first, "webhookEndpointId": made["id"], "messageId": message_id,
                "eventId": first, "eventType": "COMPLAINED",
                "toHash": to_hash("ada@example.org"),
                "status": "FAILED", "attemptCount": 10, "nextAttemptAt": null,
                "createdAt": iso(now), "endedAt": iso(now),
                "attempts": [attempt(one, now, json!(500)), attempt(other, later, Value::Null)],
            },
        ],
        "pagination": { "page": 1, "limit": 20, "total": 2, "totalPages": 1, "nextCursor": null },
    });
    assert_eq!(page, expected);
    let page = list(&app, &made, "?status=FAILED").await;
    assert_eq!(ids(&page), [first.as_str()]);
    assert_eq!(page["pagination"]["total"], 1);
    let page = list(&app, &made, "?limit=1&page=2").await;
    assert_eq!(ids(&page), [first.as_str()]);
    assert_eq!(page["pagination"]["totalPages"], 2);
    assert!(ids(&list(&app, &made, "?status=DELIVERED").await).is_empty());
    let path = format!("{}/deliveries?status=LOST&page=0", path_of(&made));
    app.get(&path).await.expect_issues(400, &["page", "status"]);
}

#[tokio::test]
async fn the_newest_of_many_attempts_are_listed() {
    let app = quiet().await;
    let receiver = Receiver::start(Manner::status(200)).await;
    let made = endpoint(&app, &receiver).await;
    let message_id = Uuid::nil().to_string();
    let row = Row::ended("FAILED", app.clock.now());
    let id = insert(&app, &made, &message_id, &row).await;
    let mut attempts = Vec::new();
    for _ in 0..23 {
        let id = attempt(&app, &message_id, &id, "500").await;
        attempts.push(id.to_string());
    }
    attempts.sort();
    let page = list(&app, &made, "").await;
    let shown = page["data"][0]["attempts"].as_array().unwrap();
    let shown: Vec<&str> = shown
        .iter()
        .map(|one| one["id"].as_str().unwrap())
        .collect();
    assert_eq!(shown, attempts[3..]);
}

#[tokio::test]
async fn a_replayed_delivery_keeps_its_id_and_is_due_again() {
    let app = quiet().await;
    let receiver = Receiver::start(Manner::status(200)).await;
    let made = endpoint(&app, &receiver).await;
    app.leave_work();
    let message_id = Uuid::nil().to_string();
    let began = app.clock.now();
    app.advance(TimeDelta::hours(1));
    let now = iso(app.clock.now());
    for status in ["DELIVERED", "FAILED"] {
        let id = insert(&app, &made, &message_id, &Row::ended(status, began)).await;
        let earlier = attempt(&app, &message_id, &id, "500").await;
        let path = format!("{}/deliveries/{id}/replay", path_of(&made));
        let replayed = app.caller().post_empty(&path).await.data(200);
        assert_eq!(replayed["id"], id.as_str());
        assert_eq!(replayed["status"], "PENDING");
        assert_eq!(replayed["attemptCount"], 0);
        assert_eq!(replayed["nextAttemptAt"], now);
        assert_eq!(replayed["endedAt"], Value::Null);
        assert_eq!(replayed["createdAt"], iso(began));
        assert_eq!(replayed["attempts"][0]["id"], earlier.to_string());
        let entry = json!(["webhook_delivery.replayed", { "endpointId": made["id"] }]);
        assert_eq!(actions(&app).await.last(), Some(&entry));
    }
    // A pending delivery is due now and keeps its attempts.
    let waiting = Row {
        status: "PENDING",
        attempts: 7,
        next_attempt_at: Some(app.clock.now() + TimeDelta::hours(10)),
        created_at: began,
    };
    let id = insert(&app, &made, &message_id, &waiting).await;
    let path = format!("{}/deliveries/{id}/replay", path_of(&made));
    let replayed = app.caller().post_empty(&path).await.data(200);
    assert_eq!(replayed["attemptCount"], 7);
    assert_eq!(replayed["nextAttemptAt"], now);
    // It belongs to its endpoint.
    let other = endpoint(&app, &receiver).await;
    for path in [
        format!("{}/deliveries/{id}/replay", path_of(&other)),
        format!("{}/deliveries/{}/replay", path_of(&made), Uuid::nil()),
        format!("{}/deliveries/x/replay", path_of(&made)),
    ] {
        let reply = app.caller().post_empty(&path).await;
        reply.expect_error(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn deliveries_of_an_inactive_endpoint_are_not_replayed() {
    let app = quiet().await;
    let receiver = Receiver::start(Manner::status(200)).await;
    let made = endpoint(&app, &receiver).await;
    let now = app.clock.now();
    let message_id = Uuid::nil().to_string();
    let id = insert(&app, &made, &message_id, &Row::ended("FAILED", now)).await;
    let path = path_of(&made);
    let _off = app
        .patch(&path, &json!({ "isActive": false }))
        .await
        .data(200);
    let reply = app
        .caller()
        .post_empty(&format!("{path}/deliveries/{id}/replay"))
        .await;
    reply.expect_error(409, "CONFLICT");
    let period = json!({ "since": iso(now), "until": iso(now + TimeDelta::hours(1)) });
    app.post(&format!("{path}/replay"), &period)
        .await
        .expect_error(409, "CONFLICT");
    let ended = json!(["FAILED", 10, null, iso(now)]);
    assert_eq!(state(&app, &made).await, [ended]);
}

#[tokio::test]
async fn a_period_includes_its_start_and_excludes_its_end() {
    let app = quiet().await;
    let receiver = Receiver::start(Manner::status(200)).await;
    let made = endpoint(&app, &receiver).await;
    app.leave_work();
    let message_id = Uuid::nil().to_string();
    let began = app.clock.now();
    let at = |seconds| began + TimeDelta::seconds(seconds);
    for (second, status) in [
        (0, "FAILED"),
        (1, "FAILED"),
        (2, "DELIVERED"),
        (3, "FAILED"),
    ] {
        insert(&app, &made, &message_id, &Row::ended(status, at(second))).await;
    }
    let bystander = endpoint(&app, &receiver).await;
    let untouched = Row::ended("FAILED", at(1));
    insert(&app, &bystander, &message_id, &untouched).await;
    app.advance(TimeDelta::minutes(1));
    let now = iso(app.clock.now());
    let path = format!("{}/replay", path_of(&made));
    let exact = |moment: Timestamp| moment.to_rfc3339();
    let body = json!({ "since": exact(at(1)), "until": exact(at(3)), "status": "FAILED" });
    let done = app.post(&path, &body).await.data(200);
    assert_eq!(done, json!({ "replayed": 1, "continueFrom": null }));
    let ended = |status: &str, seconds| json!([status, 10, null, iso(at(seconds))]);
    let due = json!(["PENDING", 0, now, null]);
    let expected = [
        ended("FAILED", 0),
        due.clone(),
        ended("DELIVERED", 2),
        ended("FAILED", 3),
    ];
    assert_eq!(state(&app, &made).await, expected);
    let body = json!({ "since": exact(at(1)), "until": exact(at(3)) });
    let done = app.post(&path, &body).await.data(200);
    assert_eq!(done["replayed"], 2);
    let expected = [ended("FAILED", 0), due.clone(), due, ended("FAILED", 3)];
    assert_eq!(state(&app, &made).await, expected);
    assert_eq!(state(&app, &bystander).await, [ended("FAILED", 1)]);
    let entry = json!([
        "webhook_endpoint.replayed",
        { "since": iso(at(1)), "until": iso(at(3)), "status": null },
    ]);
    assert_eq!(actions(&app).await.last(), Some(&entry));
}

#[tokio::test]
async fn a_long_period_is_replayed_in_steps() {
    let app = quiet().await;
    let receiver = Receiver::start(Manner::status(200)).await;
    let made = endpoint(&app, &receiver).await;
    app.leave_work();
    let now = app.clock.now();
    let first = Uuid::from_u128((now.timestamp_millis() as u128) << 80 | 7 << 76 | 1 << 63);
    let prefix = &first.to_string()[..24];
    app.execute(&format!(
        "INSERT INTO webhook_deliveries
             (message_id, id, organization_id, webhook_endpoint_id, event_id, event_type, position,
              status, attempts, created_at, ended_at)
         SELECT '{}', ('{prefix}' || lpad(to_hex(n), 12, '0'))::uuid, '{}', '{}', gen_random_uuid(),
                'COMPLAINED', 0, 'FAILED', 10, '{now}', '{now}'
         FROM generate_series(1, 2500) AS n",
        Uuid::nil(),
        app.organization_id(),
        made["id"].as_str().unwrap(),
        now = now.to_rfc3339(),
    ))
    .await;
    let path = format!("{}/replay", path_of(&made));
    let until = now + TimeDelta::seconds(1);
    let body = json!({ "since": now.to_rfc3339(), "until": iso(until) });
    let done = app.post(&path, &body).await.data(200);
    assert_eq!(done, json!({ "replayed": 2_500, "continueFrom": null }));
    let page = list(&app, &made, "?status=PENDING&limit=1").await;
    assert_eq!(page["pagination"]["total"], 2_500);
    // One request, one audit entry.
    assert_eq!(actions(&app).await.len(), 2);
}

#[tokio::test]
async fn a_period_is_validated_and_limited() {
    let app = quiet().await;
    let receiver = Receiver::start(Manner::status(200)).await;
    let made = endpoint(&app, &receiver).await;
    let path = format!("{}/replay", path_of(&made));
    for (body, issues) in [
        (json!({}), vec!["since", "until"]),
        (
            json!({ "since": "soon", "until": 7, "status": "LOST" }),
            vec!["since", "until", "status"],
        ),
        (
            json!({ "since": "2026-01-02T00:00:00Z", "until": "2026-01-02T00:00:00Z" }),
            vec!["until"],
        ),
        (
            json!({ "since": "2026-01-02", "until": "2026-01-01" }),
            vec!["until"],
        ),
        (
            json!({ "since": "2026-01-01", "until": "2026-01-31T00:00:00.001Z" }),
            vec!["until"],
        ),
    ] {
        app.post(&path, &body).await.expect_issues(400, &issues);
    }
    for (since, until) in [
        ("2026-01-02", "2026-01-02"),
        ("2026-01-01", "2026-01-30"),
        ("0000-01-01", "0000-01-02"),
        ("9999-12-30", "9999-12-31T23:59:59.999999Z"),
    ] {
        let body = json!({ "since": since, "until": until });
        let done = app.post(&path, &body).await.data(200);
        assert_eq!(done["replayed"], 0, "{since}");
    }
}
