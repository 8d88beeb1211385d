//! Requests that share a transaction: each gets its own answer, and an event that two of
//! them contain counts once.

use chrono::TimeDelta;
use futures_util::future::join_all;
use serde_json::{Map, Value, json};
use sqlx::AssertSqlSafe;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, wait_until};

use super::{Account, connect, event, ids_of, number, totals, unrecorded};

/// Concurrent requests.
const NEIGHBOURS: usize = 16;
/// How often all of them may happen to be recorded alone before the test fails.
const ROUNDS_MAX: usize = 20;

/// Sent messages, and Waypost's ids of each.
async fn sent(app: &TestApp, count: usize) -> Vec<Map<String, Value>> {
    let mut sent = Vec::with_capacity(count);
    let mut ids = Vec::with_capacity(count);
    for nth in 0..count {
        ids.push(app.send_to(&format!("recipient{nth}@example.org")).await);
    }
    app.drain().await;
    for id in ids {
        sent.push(ids_of(app, &id, 0).await);
    }
    sent
}

fn message_of(ids: &Map<String, Value>) -> &str {
    ids["waypost_message"].as_str().unwrap()
}

/// Posts one event of each message concurrently.
async fn tell_all(app: &TestApp, account: &Account, sent: &[Map<String, Value>]) -> Vec<u16> {
    let posts = sent.iter().enumerate().map(|(nth, ids)| async move {
        let told = json!([event(app, ids, "delivered", &format!("d{nth}"), 0)]);
        account.post(app, &told).await.status
    });
    join_all(posts).await
}

#[tokio::test]
async fn concurrent_requests_share_a_transaction() {
    let app = TestApp::start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    for _ in 0..ROUNDS_MAX {
        let sent = sent(&app, NEIGHBOURS).await;
        app.execute("DELETE FROM provider_events").await;
        assert_eq!(tell_all(&app, &account, &sent).await, [200; NEIGHBOURS]);
        let rows = number(&app, "SELECT count(*) FROM provider_events").await;
        assert_eq!(rows, NEIGHBOURS as i64);
        let transactions = "SELECT count(DISTINCT xmin::text) FROM provider_events";
        if number(&app, transactions).await < NEIGHBOURS as i64 {
            return;
        }
    }
    panic!("each was recorded by a transaction of its own");
}

/// Makes Postgres refuse the events of one message, and counts how often it gets them: a
/// sequence counts on even if its transaction fails.
async fn refuse(app: &TestApp, message_id: &str, code: &str) {
    app.execute("CREATE SEQUENCE IF NOT EXISTS given").await;
    app.execute("ALTER SEQUENCE given RESTART").await;
    app.execute(&format!(
        "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             PERFORM nextval('given');
             IF NEW.message_id = '{message_id}' THEN
                 RAISE EXCEPTION 'not this one' USING ERRCODE = '{code}';
             END IF;
             RETURN NEW;
         END
         $$"
    ))
    .await;
    app.execute(
        "CREATE OR REPLACE TRIGGER refuse BEFORE INSERT ON provider_events
         FOR EACH ROW EXECUTE FUNCTION refuse()",
    )
    .await;
}

/// Lets requests share a transaction with one that Postgres refuses, and returns the
/// answer to that one.
async fn tell_beside_a_refused_one(app: &TestApp, account: &Account, code: &str) -> u16 {
    for _ in 0..ROUNDS_MAX {
        let sent = sent(app, NEIGHBOURS).await;
        let refused = NEIGHBOURS / 2;
        refuse(app, message_of(&sent[refused]), code).await;
        let mut answers = tell_all(app, account, &sent).await;
        let answer = answers.remove(refused);
        assert_eq!(answers, [200; NEIGHBOURS - 1]);
        for (nth, ids) in sent.iter().enumerate() {
            let expected = if nth == refused { "SENT" } else { "DELIVERED" };
            assert_eq!(app.status(message_of(ids)).await, expected);
        }
        // A request that was written twice had shared a transaction with it.
        let twice = "SELECT last_value FROM given";
        let alone = NEIGHBOURS as i64 - 1 + 3;
        if number(app, twice).await > alone {
            return answer;
        }
    }
    panic!("nobody shared a transaction with the refused request");
}

#[tokio::test]
async fn an_event_that_postgres_refuses_does_not_affect_other_requests() {
    let app = TestApp::start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    // Not a class of data errors: the request may be accepted the next time.
    let answer = tell_beside_a_refused_one(&app, &account, "P0001").await;
    assert_eq!(answer, 500);
    assert_eq!(unrecorded(&app, &account).await, (0, 0));
}

#[tokio::test]
async fn an_event_that_postgres_cannot_hold_is_acknowledged_and_counted() {
    let app = TestApp::start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let answer = tell_beside_a_refused_one(&app, &account, "23514").await;
    assert_eq!(answer, 200);
    assert!(unrecorded(&app, &account).await.1 > 0);
    // It is found among other events of its request too.
    let sent = sent(&app, 5).await;
    refuse(&app, message_of(&sent[3]), "22P05").await;
    let before = unrecorded(&app, &account).await;
    let told = sent.iter().map(|ids| event(&app, ids, "delivered", "d", 0));
    account.tell(&app, &told.collect()).await;
    let after = unrecorded(&app, &account).await;
    assert_eq!(after, (before.0, before.1 + 1));
    for (nth, ids) in sent.iter().enumerate() {
        let expected = if nth == 3 { "SENT" } else { "DELIVERED" };
        assert_eq!(app.status(message_of(ids)).await, expected);
    }
}

#[tokio::test]
async fn the_same_event_in_concurrent_requests_is_recorded_once() {
    let app = TestApp::start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let other = app.start_another_api().await;
    let sent = sent(&app, 3).await;
    let told: Value = sent
        .iter()
        .flat_map(|ids| {
            ["delivered", "open", "bounce"].map(|kind| {
                let id = format!("{kind}-{}", message_of(ids));
                event(&app, ids, kind, &id, 0)
            })
        })
        .collect();
    // The same request, and the same events in another order, sent to two processes.
    let mut turned = told.clone();
    turned.as_array_mut().unwrap().reverse();
    let posts = (0..NEIGHBOURS).map(|nth| {
        let caller = if nth % 2 == 0 { app.caller() } else { &other };
        let told = if nth % 3 == 0 { &turned } else { &told };
        account.post_to(caller, &app, told)
    });
    for reply in join_all(posts).await {
        reply.expect(200);
    }
    assert_eq!(
        number(&app, "SELECT count(*) FROM provider_events").await,
        9
    );
    assert_eq!(totals(&app).await, [3, 3, 3, 0, 3, 0, 0]);
    for ids in &sent {
        let id = message_of(ids);
        assert_eq!(app.status(id).await, "BOUNCED");
        assert_eq!(app.events(id).await.len(), 5);
    }
    let suppressed = "SELECT count(*) FROM suppressions";
    assert_eq!(number(&app, suppressed).await, 3);
}

/// Posts an event while another process records the delivery of the same message.
async fn tell_beside_a_delivery(app: &TestApp, account: &Account, told: &Value, id: &str) {
    let mut other = app.pool.begin().await.unwrap();
    let delivered = format!(
        "UPDATE recipients SET status = 'DELIVERED', delivered_at = sent_at WHERE message_id = '{id}';
         UPDATE messages SET status = 'DELIVERED', delivered_at = sent_at WHERE id = '{id}'"
    );
    let delivered = sqlx::raw_sql(AssertSqlSafe(delivered));
    delivered.execute(&mut *other).await.unwrap();
    let deciding = async {
        wait_until("the event waits for the recipient's lock", async || {
            app.lock_waits().await > 0
        })
        .await;
        other.commit().await.unwrap();
    };
    tokio::join!(account.tell(app, told), deciding);
}

#[tokio::test]
async fn a_recipient_that_another_process_changes_meanwhile_is_read_after_the_change() {
    let app = TestApp::start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let sent = sent(&app, 1).await;
    let told = json!([event(&app, &sent[0], "open", "o", 0)]);
    tell_beside_a_delivery(&app, &account, &told, message_of(&sent[0])).await;
    let id = message_of(&sent[0]);
    assert_eq!(app.status(id).await, "DELIVERED");
    // Providers report whole seconds, so the order of the events is not checked.
    let mut events = app.events(id).await;
    events.sort();
    assert_eq!(events, ["OPENED", "QUEUED", "SENT"]);
    let seen =
        "SELECT count(*) FROM recipients WHERE opened_at IS NOT NULL AND delivered_at = sent_at";
    assert_eq!(number(&app, seen).await, 1);
    let query = [("groupBy", "provider")];
    let groups = app.caller().query("/v1/metrics/breakdown", &query).await;
    let groups = groups.data(200);
    assert_eq!(groups[0]["name"], "SENDGRID", "{groups}");
    assert_eq!(totals(&app).await, [1, 0, 1, 0, 0, 0, 0]);
}

#[tokio::test]
async fn a_concurrent_change_of_one_recipient_does_not_affect_the_others() {
    let app = TestApp::start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let sent = sent(&app, 4).await;
    let [first, changed, unmoved, last] = [0, 1, 2, 3].map(|nth| message_of(&sent[nth]));
    let told = [("open", 0), ("open", 1), ("deferred", 2), ("open", 3)];
    let told = told.map(|(kind, nth)| event(&app, &sent[nth], kind, &format!("e{nth}"), 0));
    tell_beside_a_delivery(&app, &account, &json!(told), changed).await;
    for (id, status, expected) in [
        (
            first,
            "DELIVERED",
            &["DELIVERED", "OPENED", "QUEUED", "SENT"][..],
        ),
        (changed, "DELIVERED", &["OPENED", "QUEUED", "SENT"]),
        (unmoved, "SENT", &["DEFERRED", "QUEUED", "SENT"]),
        (
            last,
            "DELIVERED",
            &["DELIVERED", "OPENED", "QUEUED", "SENT"],
        ),
    ] {
        assert_eq!(app.status(id).await, status);
        let mut events = app.events(id).await;
        events.sort();
        assert_eq!(events, expected);
    }
    assert_eq!(totals(&app).await, [4, 2, 3, 0, 0, 0, 0]);
}

#[tokio::test]
async fn events_of_messages_of_several_months_share_a_transaction() {
    let app = TestApp::builder().without_worker().start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let old = app.send_to("old@example.org").await;
    app.advance(TimeDelta::days(32));
    let new = app.send_to("new@example.org").await;
    let months = "SELECT count(DISTINCT tableoid) FROM recipients";
    assert_eq!(number(&app, months).await, 2);
    app.start_worker();
    app.drain().await;
    let mut told = Vec::new();
    for id in [&old, &new] {
        assert_eq!(app.status(id).await, "SENT");
        let ids = ids_of(&app, id, 0).await;
        told.push(event(&app, &ids, "delivered", &format!("d-{id}"), 0));
    }
    account.tell(&app, &json!(told)).await;
    for id in [&old, &new] {
        assert_eq!(app.events(id).await, ["QUEUED", "SENT", "DELIVERED"]);
    }
    let page = app.get("/v1/messages?limit=10").await.data(200);
    let listed = page.as_array().unwrap().iter();
    let listed: Vec<(&str, &str)> = listed
        .map(|message| {
            let text = |field: &str| message[field].as_str().unwrap();
            (text("id"), text("status"))
        })
        .collect();
    assert_eq!(listed, [(&*new, "DELIVERED"), (&*old, "DELIVERED")]);
}
