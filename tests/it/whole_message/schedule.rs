//! The times of a message, and the idempotency keys of scheduled messages.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
use waypost_tests::{Reply, TestApp};

use super::{
    accepted, accepting, assert_rejected, count, message, of_message, recipients, send, suppress,
};

fn text(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Micros, true)
}

fn after(app: &TestApp, delta: TimeDelta) -> String {
    text(app.clock.now() + delta)
}

#[tokio::test]
async fn the_times_of_a_message_are_stored() {
    let app = accepting().await;
    let at = app.clock.now() + TimeDelta::days(3);
    let until = at + TimeDelta::hours(1);
    let fields =
        json!({ "to": "a@example.org", "scheduledAt": text(at), "expiresAt": text(until) });
    let id = accepted(&app, fields).await;
    let stored = |value: Value| -> DateTime<Utc> { value.as_str().unwrap().parse().unwrap() };
    assert_eq!(stored(of_message(&app, &id, "m.scheduled_at").await), at);
    assert_eq!(stored(of_message(&app, &id, "m.expires_at").await), until);
    assert_eq!(app.status(&id).await, "QUEUED");
    // The same moment in another offset.
    let east = at.with_timezone(&chrono::FixedOffset::east_opt(5 * 3_600 + 2_700).unwrap());
    let fields = json!({ "to": "a@example.org", "scheduledAt": east.to_rfc3339() });
    let id = accepted(&app, fields).await;
    assert_eq!(stored(of_message(&app, &id, "m.scheduled_at").await), at);
    assert_eq!(of_message(&app, &id, "m.expires_at").await, Value::Null);
    let fields = json!({ "to": "a@example.org", "expiresAt": text(until), "scheduledAt": null });
    let id = accepted(&app, fields).await;
    assert_eq!(of_message(&app, &id, "m.scheduled_at").await, Value::Null);
}

#[tokio::test]
async fn wrong_times_are_rejected() {
    let app = accepting().await;
    let year = TimeDelta::days(365);
    let both = |at: TimeDelta, until: TimeDelta| json!({ "scheduledAt": after(&app, at), "expiresAt": after(&app, until) });
    let hour = TimeDelta::hours(1);
    for (fields, paths) in [
        (
            json!({ "scheduledAt": after(&app, -hour) }),
            vec!["scheduledAt"],
        ),
        (
            json!({ "scheduledAt": after(&app, TimeDelta::zero()) }),
            vec!["scheduledAt"],
        ),
        (
            json!({ "scheduledAt": after(&app, year * 2) }),
            vec!["scheduledAt"],
        ),
        (
            json!({ "scheduledAt": "9999-12-31T23:59:59Z" }),
            vec!["scheduledAt"],
        ),
        (
            json!({ "scheduledAt": "10000-01-01T00:00:00Z" }),
            vec!["scheduledAt"],
        ),
        (
            json!({ "scheduledAt": "2036-12-31T23:59:60Z" }),
            vec!["scheduledAt"],
        ),
        (
            json!({ "scheduledAt": "2036-12-31T12:00:00" }),
            vec!["scheduledAt"],
        ),
        (json!({ "scheduledAt": "2036-12-31" }), vec!["scheduledAt"]),
        (json!({ "scheduledAt": "tomorrow" }), vec!["scheduledAt"]),
        (json!({ "scheduledAt": "" }), vec!["scheduledAt"]),
        (json!({ "scheduledAt": 1_795_867_200 }), vec!["scheduledAt"]),
        (
            json!({ "expiresAt": after(&app, -hour) }),
            vec!["expiresAt"],
        ),
        (
            json!({ "expiresAt": after(&app, year * 2) }),
            vec!["expiresAt"],
        ),
        (
            json!({ "scheduledAt": true, "expiresAt": {} }),
            vec!["scheduledAt", "expiresAt"],
        ),
        (both(hour, hour), vec!["expiresAt"]),
        (both(hour * 2, hour), vec!["expiresAt"]),
        (both(-hour * 2, -hour), vec!["scheduledAt", "expiresAt"]),
        (
            json!({ "scheduledAt": after(&app, -hour), "replyTo": "x", "cc": [1] }),
            vec!["scheduledAt", "replyTo", "cc.0"],
        ),
    ] {
        let mut fields = fields;
        fields["to"] = json!("a@example.org");
        assert_rejected(&app, fields, &paths).await;
    }
    send(
        &app,
        json!({ "to": "a@example.org", "scheduledAt": after(&app, year) }),
    )
    .await
    .expect(202);
}

#[tokio::test]
async fn suppressions_do_not_count_before_a_scheduled_message_goes() {
    let app = accepting().await;
    suppress(&app, "gone@example.org").await;
    let at = after(&app, TimeDelta::hours(1));
    for to in [
        json!("gone@example.org"),
        json!(["a@example.org", "gone@example.org"]),
    ] {
        let reply = send(&app, json!({ "to": to, "scheduledAt": at }))
            .await
            .expect(202);
        assert_eq!(reply["status"], "queued");
        assert_eq!(reply.get("suppressedCount"), None);
        let rows = recipients(&app, reply["messageId"].as_str().unwrap()).await;
        assert!(
            rows.as_array()
                .unwrap()
                .iter()
                .all(|row| row[2] == "QUEUED"),
            "{rows}"
        );
    }
    // In a batch only those that are not scheduled are dropped.
    let batch = json!({ "messages": [
        message(json!({ "to": "gone@example.org" })),
        message(json!({ "to": "gone@example.org", "scheduledAt": at })),
    ]});
    let reply = app.post("/v1/emails/batch", &batch).await.expect(200);
    assert_eq!(reply["results"][0]["status"], "suppressed");
    assert_eq!(reply["results"][1]["status"], "queued");
}

async fn keyed(app: &TestApp, key: &str, fields: Value) -> Reply {
    let body = message(fields);
    app.caller()
        .call(http::Method::POST, "/v1/send", |request| {
            request.header("Idempotency-Key", key).json(&body)
        })
        .await
}

#[tokio::test]
async fn the_key_of_a_scheduled_message_is_valid_until_a_day_after_it_is_due() {
    let app = accepting().await;
    let at = after(&app, TimeDelta::days(3));
    let fields = json!({ "to": "a@example.org", "scheduledAt": at });
    let first = keyed(&app, "k", fields.clone()).await.expect(202);
    let plain = json!({ "to": "b@example.org" });
    let plain_first = keyed(&app, "plain", plain.clone()).await.expect(202);
    app.advance(TimeDelta::days(2));
    assert_eq!(keyed(&app, "k", fields.clone()).await.expect(202), first);
    // A key of a message that went at once has ended.
    assert_ne!(keyed(&app, "plain", plain).await.expect(202), plain_first);
    // The time is past, and the answer is the same; a new message is rejected.
    app.advance(TimeDelta::days(1) + TimeDelta::hours(23));
    assert_eq!(keyed(&app, "k", fields.clone()).await.expect(202), first);
    let reply = keyed(&app, "new", fields.clone()).await;
    reply.expect_issues(400, &["scheduledAt"]);
    let other = json!({ "to": "b@example.org" });
    keyed(&app, "k", other.clone())
        .await
        .expect_error(409, "CONFLICT");
    app.advance(TimeDelta::hours(2));
    keyed(&app, "k", fields)
        .await
        .expect_issues(400, &["scheduledAt"]);
    keyed(&app, "k", other).await.expect(202);
}

#[tokio::test]
async fn a_key_in_use_is_not_taken_by_a_message_far_ahead() {
    let app = accepting().await;
    keyed(&app, "k", json!({ "to": "a@example.org" }))
        .await
        .expect(202);
    let before = count(&app, "messages").await;
    let at = after(&app, TimeDelta::days(300));
    let fields = json!({ "to": "a@example.org", "scheduledAt": at });
    keyed(&app, "k", fields.clone())
        .await
        .expect_error(409, "CONFLICT");
    assert_eq!(count(&app, "messages").await, before);
    app.advance(TimeDelta::hours(25));
    keyed(&app, "k", fields).await.expect(202);
}
