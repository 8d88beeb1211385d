//! Metrics: series, breakdown and summary agree at any moment, and a roll-up does not
//! change them.

mod breakdowns;
mod filters;
mod periods;
mod rollups;
mod zones;

use chrono::{SecondsFormat, TimeDelta};
use serde_json::{Value, json};
use sqlx::PgPool;
use waypost_core::clock::Timestamp;
use waypost_core::db::organization_shard::OrganizationShard;
use waypost_core::event::{self, EventType, NewEvent};
use waypost_core::ids::{Ids, MessageId};
use waypost_core::metrics;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Caller, TestApp, message_to};

const SERIES: &str = "/v1/metrics";
const BREAKDOWN: &str = "/v1/metrics/breakdown";
const SUMMARY: &str = "/v1/metrics/summary";

async fn quiet() -> TestApp {
    TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await
}

fn wire(at: Timestamp) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// Records an event as if a provider had reported it.
async fn record(
    app: &TestApp,
    message: &str,
    position: i32,
    event_type: EventType,
    at: Timestamp,
    data: Option<Value>,
) {
    let event = NewEvent {
        id: Ids::new(app.clock.clone()).next(),
        message_id: MessageId(message.parse().unwrap()),
        organization_id: app.organization_id(),
        position,
        event_type,
        occurred_at: at,
        data,
    };
    let mut connection = app.pool.acquire().await.unwrap();
    event::store::insert(&mut connection, &[event])
        .await
        .unwrap();
}

/// The three responses about a period, after a check that they agree.
async fn agreed(caller: &Caller, from: Timestamp, to: Timestamp) -> Value {
    let (from, to) = (wire(from), wire(to));
    let period = [("from", from.as_str()), ("to", to.as_str())];
    let summary = caller.query(SUMMARY, &period).await.data(200);
    let counts = [
        "sent",
        "delivered",
        "opened",
        "clicked",
        "bounced",
        "complained",
        "unsubscribed",
    ];
    for granularity in ["hour", "day", "week", "month"] {
        let query = [period[0], period[1], ("granularity", granularity)];
        let buckets = caller.query(SERIES, &query).await.data(200);
        for count in counts {
            assert_eq!(
                sum(&buckets, count),
                total(&summary, count),
                "{granularity} {count}"
            );
        }
    }
    for group_by in [
        "provider",
        "domain",
        "template",
        "account",
        "recipientDomain",
    ] {
        let query = [period[0], period[1], ("groupBy", group_by)];
        let groups = caller.query(BREAKDOWN, &query).await.data(200);
        for count in &counts[..6] {
            assert_eq!(
                sum(&groups, count),
                total(&summary, count),
                "{group_by} {count}"
            );
        }
    }
    summary
}

/// Rolls up at most `limit` deltas; returns how many.
async fn fold(pool: &PgPool, limit: i64) -> i64 {
    let mut connection = pool.acquire().await.unwrap();
    metrics::store::roll_up(&mut connection, OrganizationShard::WHOLE, limit)
        .await
        .unwrap()
}

fn sum(rows: &Value, count: &str) -> i64 {
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| row[count].as_i64().unwrap()).sum()
}

fn total(summary: &Value, count: &str) -> i64 {
    let (first, rest) = count.split_at(1);
    summary[format!("total{}{rest}", first.to_uppercase())]
        .as_i64()
        .unwrap()
}

async fn sent_in_all(app: &TestApp) -> i64 {
    total(&app.get(SUMMARY).await.data(200), "sent")
}

/// Moves the clock to a time of day.
fn advance_to_hour(app: &TestApp, hour: u32) {
    let now = app.clock.now();
    let target = now.date_naive().and_hms_opt(hour, 0, 0).unwrap().and_utc();
    let target = if target > now {
        target
    } else {
        target + TimeDelta::days(1)
    };
    app.advance(target - now);
}

#[tokio::test]
async fn without_a_message_all_counts_are_zero() {
    let app = quiet().await;
    let now = app.clock.now();
    let to = now.to_rfc3339_opts(SecondsFormat::Millis, true);
    let from = (now - TimeDelta::days(30)).to_rfc3339_opts(SecondsFormat::Millis, true);
    let series = app.get(SERIES).await.expect(200);
    assert_eq!(
        series["query"],
        json!({ "from": from, "to": to, "granularity": "day" })
    );
    let buckets = series["data"].as_array().unwrap();
    assert_eq!(buckets.len(), 31);
    let first = (now - TimeDelta::days(30))
        .format("%Y-%m-%d 00:00:00")
        .to_string();
    let expected = json!({
        "timestamp": first,
        "sent": 0, "delivered": 0, "opened": 0, "clicked": 0, "bounced": 0, "complained": 0, "unsubscribed": 0,
    });
    assert_eq!(buckets[0], expected);
    let breakdown = app.get(BREAKDOWN).await.expect(200);
    let query = json!({ "from": from, "to": to, "groupBy": "provider" });
    assert_eq!(breakdown, json!({ "data": [], "query": query }));
    let summary = app.get(SUMMARY).await.expect(200);
    let expected = json!({
        "data": {
            "totalSent": 0, "totalDelivered": 0, "totalOpened": 0, "totalClicked": 0, "totalBounced": 0,
            "totalComplained": 0, "totalUnsubscribed": 0,
            "deliveryRate": 0.0, "openRate": 0.0, "clickRate": 0.0, "bounceRate": 0.0, "complaintRate": 0.0,
        },
        "period": { "from": from, "to": to },
    });
    assert_eq!(summary, expected);
}

#[tokio::test]
async fn each_accepted_recipient_counts_as_sent() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let mut message = message_to("");
    message["to"] = json!(["a@example.org", "b@example.org", "refuse@example.org"]);
    app.send(&message).await;
    app.send_to("c@example.org").await;
    app.drain().await;
    let summary = app.get(SUMMARY).await.data(200);
    assert_eq!(total(&summary, "sent"), 3);
    let sent = app
        .value("SELECT count(*) FROM events WHERE event_type = 'SENT'")
        .await;
    assert_eq!(sent.as_deref(), Some("3"));
}

#[tokio::test]
async fn events_of_all_types_are_counted_and_rates_derived() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    let mut message = message_to("");
    message["to"] = json!(
        (0..7)
            .map(|n| format!("r{n}@example.org"))
            .collect::<Vec<_>>()
    );
    let id = app.send(&message).await;
    app.leave_work();
    let now = app.clock.now();
    let recorded = [
        (EventType::Sent, 7),
        (EventType::Delivered, 6),
        (EventType::Opened, 4),
        (EventType::Clicked, 3),
        (EventType::Bounced, 1),
        (EventType::Complained, 2),
        (EventType::Unsubscribed, 1),
        (EventType::Deferred, 5),
        (EventType::Dropped, 2),
    ];
    for (event_type, recipients) in recorded {
        for position in 0..recipients {
            record(&app, &id, position, event_type, now, None).await;
        }
    }
    let summary = agreed(
        app.caller(),
        now - TimeDelta::days(2),
        now + TimeDelta::hours(1),
    )
    .await;
    let expected = json!({
        "totalSent": 7, "totalDelivered": 6, "totalOpened": 4, "totalClicked": 3, "totalBounced": 1,
        "totalComplained": 2, "totalUnsubscribed": 1,
        "deliveryRate": 0.8571, "openRate": 0.6667, "clickRate": 0.75, "bounceRate": 0.1429,
        "complaintRate": 0.3333,
    });
    assert_eq!(summary, expected);
}

#[tokio::test]
async fn opens_and_clicks_count_each_recipient_once_and_not_machines() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    let mut message = message_to("");
    message["to"] = json!(["a@example.org", "b@example.org"]);
    let id = app.send(&message).await;
    app.leave_work();
    let now = app.clock.now();
    let bot = Some(json!({ "isBot": true }));
    let human = Some(json!({ "isBot": false, "url": "https://example.org" }));
    for (position, event_type, data) in [
        (0, EventType::Opened, bot.clone()),
        (0, EventType::Opened, human.clone()),
        (0, EventType::Opened, None),
        (0, EventType::Clicked, bot.clone()),
        (1, EventType::Clicked, human.clone()),
        (1, EventType::Clicked, human),
        (1, EventType::Opened, bot),
    ] {
        record(&app, &id, position, event_type, now, data).await;
    }
    // Later, and in another hour: still the same open.
    record(
        &app,
        &id,
        0,
        EventType::Opened,
        now + TimeDelta::hours(3),
        None,
    )
    .await;
    let summary = agreed(
        app.caller(),
        now - TimeDelta::days(1),
        now + TimeDelta::days(1),
    )
    .await;
    assert_eq!(
        (total(&summary, "opened"), total(&summary, "clicked")),
        (1, 1)
    );
    // The history contains all of them.
    assert_eq!(app.events(&id).await.len(), 1 + 8);
}

#[tokio::test]
async fn several_first_opens_and_clicks_in_one_statement_count_once() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = app.send_to("a@example.org").await;
    app.leave_work();
    let ids = Ids::new(app.clock.clone());
    let now = app.clock.now();
    let event = |event_type| NewEvent {
        id: ids.next(),
        message_id: MessageId(id.parse().unwrap()),
        organization_id: app.organization_id(),
        position: 0,
        event_type,
        occurred_at: now,
        data: None,
    };
    let types = [
        EventType::Opened,
        EventType::Clicked,
        EventType::Opened,
        EventType::Sent,
    ];
    let events: Vec<NewEvent> = types.into_iter().map(event).collect();
    // One transaction waits; the open of the other must wait and then not count.
    let mut first = app.pool.begin().await.unwrap();
    event::store::insert(&mut first, &events).await.unwrap();
    let second = tokio::spawn({
        let (pool, again) = (app.pool.clone(), event(EventType::Opened));
        async move {
            let mut connection = pool.acquire().await.unwrap();
            event::store::insert(&mut connection, &[again])
                .await
                .unwrap();
        }
    });
    waypost_tests::wait_until("the second waits", async || app.lock_waits().await == 1).await;
    first.commit().await.unwrap();
    second.await.unwrap();
    let summary = agreed(
        app.caller(),
        now - TimeDelta::days(1),
        now + TimeDelta::hours(1),
    )
    .await;
    let counted = ["opened", "clicked", "sent"].map(|count| total(&summary, count));
    assert_eq!(counted, [1, 1, 1]);
}

#[tokio::test]
async fn organizations_see_only_their_own_counts() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let other = app.tenant("Other").await;
    app.send_to("a@example.org").await;
    app.drain().await;
    let now = app.clock.now();
    let theirs = agreed(
        &other.caller,
        now - TimeDelta::days(1),
        now + TimeDelta::hours(1),
    )
    .await;
    assert_eq!(total(&theirs, "sent"), 0);
    for group_by in ["provider", "domain", "template"] {
        let groups = other
            .caller
            .query(BREAKDOWN, &[("groupBy", group_by)])
            .await;
        assert_eq!(groups.data(200), json!([]), "{group_by}");
    }
    assert_eq!(sent_in_all(&app).await, 1);
}
