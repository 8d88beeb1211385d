//! What customers read of deliveries: lists with filters, those of a message, one with its body.

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_tests::{Answer, Receiver, TestApp, wait_until};

use super::{Endpoint, sending, subscribe};

async fn ids(app: &TestApp, path: &str, parameters: &[(&str, &str)]) -> Vec<String> {
    let page = app.caller().query(path, parameters).await.expect(200);
    let rows = page["data"].as_array().unwrap();
    assert_eq!(page["pagination"]["total"], rows.len(), "{page}");
    rows.iter()
        .map(|row| row["id"].as_str().unwrap().to_owned())
        .collect()
}

async fn delivered(app: &TestApp, count: usize) {
    wait_until("all are delivered", async || {
        app.drain().await;
        super::deliveries(app, "DELIVERED").await.0 == count as u64
    })
    .await;
}

fn path_of(endpoint: &Endpoint) -> String {
    format!("{}/deliveries", endpoint.path())
}

#[tokio::test]
async fn a_list_is_filtered_by_message_type_status_and_time() {
    let app = sending().await;
    let receiver = Receiver::start().await;
    let endpoint = subscribe(&app, &receiver, &["QUEUED", "SENT"]).await;
    let path = path_of(&endpoint);
    let first = app.send_to("ada@example.org").await;
    delivered(&app, 2).await;
    app.advance(TimeDelta::hours(2));
    let second = app.send_to("bob@example.org").await;
    delivered(&app, 4).await;
    let all = ids(&app, &path, &[]).await;
    assert_eq!(all.len(), 4);
    let of_second = ids(&app, &path, &[("messageId", &second)]).await;
    assert_eq!(of_second, all[..2]);
    assert_eq!(ids(&app, &path, &[("messageId", &first)]).await, all[2..]);
    let sent = ids(&app, &path, &[("eventType", "SENT")]).await;
    assert_eq!(sent.len(), 2);
    let both = [
        ("eventType", "SENT"),
        ("messageId", first.as_str()),
        ("status", "DELIVERED"),
    ];
    assert_eq!(ids(&app, &path, &both).await, sent[1..]);
    let none = [("status", "FAILED"), ("messageId", first.as_str())];
    assert!(ids(&app, &path, &none).await.is_empty());
    let newest = app.get(&path).await.data(200)[0]["createdAt"].clone();
    let newest = newest.as_str().unwrap();
    let hour = chrono::DateTime::parse_from_rfc3339(newest).unwrap() - TimeDelta::hours(1);
    let hour = hour.to_rfc3339();
    assert_eq!(ids(&app, &path, &[("from", &hour)]).await, all[..2]);
    assert_eq!(ids(&app, &path, &[("to", &hour)]).await, all[2..]);
    let sent_since = [
        ("from", hour.as_str()),
        ("eventType", "SENT"),
        ("status", "DELIVERED"),
    ];
    assert_eq!(ids(&app, &path, &sent_since).await, sent[..1]);
    assert!(
        ids(&app, &path, &[("from", newest), ("to", newest)])
            .await
            .is_empty()
    );
    // A page of a filtered list leads to the next.
    let page = app
        .caller()
        .query(&path, &[("eventType", "SENT"), ("limit", "1")])
        .await
        .expect(200);
    assert_eq!(page["data"][0]["id"], sent[0].as_str());
    let cursor = page["pagination"]["nextCursor"].as_str().unwrap();
    let parameters = [("eventType", "SENT"), ("limit", "1"), ("cursor", cursor)];
    let next = app.caller().query(&path, &parameters).await.expect(200);
    assert_eq!(next["data"][0]["id"], sent[1].as_str());
    assert_eq!(next["pagination"]["nextCursor"], Value::Null);
    let wrong = [
        ("messageId", "x"),
        ("eventType", "READ"),
        ("from", "now"),
        ("to", "later"),
    ];
    app.caller()
        .query(&path, &wrong)
        .await
        .expect_issues(400, &["messageId", "eventType", "from", "to"]);
}

#[tokio::test]
async fn a_message_shows_its_deliveries_to_all_endpoints() {
    let app = sending().await;
    let (one, two) = (Receiver::start().await, Receiver::start().await);
    let first = subscribe(&app, &one, &["QUEUED", "SENT"]).await;
    let second = subscribe(&app, &two, &["SENT"]).await;
    let id = app.send_to("ada@example.org").await;
    delivered(&app, 3).await;
    app.send_to("bob@example.org").await;
    delivered(&app, 6).await;
    let path = format!("/v1/messages/{id}/webhook-deliveries");
    let rows = app.get(&path).await.data(200);
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 3);
    assert!(
        rows.iter().all(|row| row["messageId"] == id.as_str()),
        "{rows:?}"
    );
    assert!(
        rows.iter()
            .all(|row| row["attempts"][0]["statusCode"] == 200),
        "{rows:?}"
    );
    let to = |endpoint: &Endpoint| {
        rows.iter()
            .filter(|row| row["webhookEndpointId"] == endpoint.id.as_str())
            .count()
    };
    assert_eq!((to(&first), to(&second)), (2, 1));
    let page = app
        .caller()
        .query(&path, &[("limit", "2")])
        .await
        .expect(200);
    assert_eq!(page["pagination"]["total"], 3);
    let cursor = page["pagination"]["nextCursor"].as_str().unwrap();
    let rest = app
        .caller()
        .query(&path, &[("limit", "2"), ("cursor", cursor)])
        .await
        .expect(200);
    assert_eq!(rest["data"], json!([rows[2]]));
    let stranger = app.tenant("Other").await.caller;
    stranger.get(&path).await.expect_error(404, "NOT_FOUND");
    app.get("/v1/messages/01890000-0000-7000-8000-000000000000/webhook-deliveries")
        .await
        .expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_delivery_shows_the_body_that_was_posted_and_the_answers() {
    let app = sending().await;
    let receiver = Receiver::start().await;
    let endpoint = subscribe(&app, &receiver, &["SENT", "SUPPRESSION_CREATED"]).await;
    receiver.answer(Answer::Status(500));
    app.send_to("ada@example.org").await;
    wait_until("the first call failed", async || {
        app.drain().await;
        receiver.count() == 1
    })
    .await;
    receiver.answer(Answer::Status(204));
    app.advance(TimeDelta::minutes(1));
    delivered(&app, 1).await;
    let path = path_of(&endpoint);
    let listed = app.get(&path).await.data(200)[0].clone();
    let own = format!("{path}/{}", listed["id"].as_str().unwrap());
    let mut shown = app.get(&own).await.data(200);
    let payload = shown.as_object_mut().unwrap().remove("payload").unwrap();
    assert_eq!(shown, listed);
    let statuses: Vec<&Value> = shown["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["statusCode"])
        .collect();
    assert_eq!(statuses, [&json!(500), &json!(204)]);
    for posted in receiver.received() {
        assert_eq!(payload, posted.json());
    }
    assert_eq!(payload["data"]["recipient"], "ada@example.org");
    // An event about no message.
    let body = json!({ "email": "eve@example.org" });
    app.post("/v1/suppressions", &body).await.data(201);
    delivered(&app, 2).await;
    let listed = app.get(&path).await.data(200)[0].clone();
    let own = format!("{path}/{}", listed["id"].as_str().unwrap());
    let shown = app.get(&own).await.data(200);
    assert_eq!(shown["payload"], receiver.received().last().unwrap().json());
    let stranger = app.tenant("Other").await.caller;
    stranger.get(&own).await.expect_error(404, "NOT_FOUND");
    app.get(&format!("{path}/{}", endpoint.id))
        .await
        .expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn the_body_of_an_erased_recipient_is_not_shown() {
    let app = sending().await;
    let receiver = Receiver::start().await;
    let endpoint = subscribe(&app, &receiver, &["SENT"]).await;
    app.send_to("ada@example.org").await;
    delivered(&app, 1).await;
    app.advance(TimeDelta::days(4));
    app.drain().await;
    let erased = app
        .post("/v1/erasures", &json!({ "email": "ada@example.org" }))
        .await
        .data(200);
    assert_eq!(erased["complete"], true, "{erased}");
    let path = path_of(&endpoint);
    let listed = app.get(&path).await.data(200)[0].clone();
    let own = format!("{path}/{}", listed["id"].as_str().unwrap());
    assert_eq!(app.get(&own).await.data(200)["payload"], Value::Null);
}
