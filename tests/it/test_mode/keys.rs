//! Test keys: what they send, what they list, and what of live mail they leave alone.

use chrono::TimeDelta;
use http::Method;
use serde_json::{Value, json};
use waypost_core::auth::Permission;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Caller, TestApp, message_to};

use super::{finish, number};

const PATH: &str = "/v1/api-keys";

async fn sent_by(caller: &Caller, message: &Value) -> String {
    let answer = caller.post("/v1/send", message).await.expect(202);
    answer["messageId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn everything_that_a_test_key_sends_is_a_test() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let body = json!({ "name": "CI", "permissions": ["SEND", "METRICS_READ"], "isTest": true });
    let made = app.post(PATH, &body).await.data(201);
    let key = made["key"].as_str().unwrap();
    assert!(key.starts_with("wp_test_") && key.len() >= 30, "{key}");
    assert_eq!(made["isTest"], true);
    assert_eq!(made["prefix"], key[..14]);
    let record = app
        .get(&format!("{PATH}/{}", made["id"].as_str().unwrap()))
        .await
        .data(200);
    assert_eq!(record["isTest"], true);
    let listed = app.get(PATH).await.data(200);
    let of_tests = listed.as_array().unwrap().iter();
    let of_tests: Vec<&Value> = of_tests.filter(|key| key["isTest"] == true).collect();
    assert_eq!(of_tests, [&record]);

    let tester = app.caller().with_key(key);
    let id = sent_by(&tester, &message_to("a@example.org")).await;
    let mut bounced = message_to("b@example.org");
    bounced["testOutcome"] = json!("bounced");
    let other = sent_by(&tester, &bounced).await;
    finish(&app).await;
    assert_eq!(app.status(&id).await, "DELIVERED");
    assert_eq!(app.status(&other).await, "BOUNCED");
    assert_eq!(app.simulator().captured_count(), 0);
    let ids = |body: &Value| -> Vec<String> {
        let rows = body.as_array().unwrap().iter();
        rows.map(|row| row["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let live = app.send_to("c@example.org").await;
    app.drain().await;
    assert_eq!(
        ids(&tester.get("/v1/messages").await.data(200)),
        [other.as_str(), id.as_str()]
    );
    assert_eq!(
        ids(&tester.get("/v1/messages?test=false").await.data(200)),
        [live.as_str()]
    );
    assert_eq!(
        ids(&app.get("/v1/messages").await.data(200)),
        [live.as_str()]
    );
    assert_eq!(
        ids(&app.get("/v1/messages?test=true").await.data(200)),
        [other, id]
    );
    // By its id, every message is found with every key.
    tester.get(&format!("/v1/messages/{live}")).await.data(200);
}

#[tokio::test]
async fn a_rotated_test_key_stays_one_and_lives_as_long_as_others() {
    let app = TestApp::start().await;
    let body = json!({ "name": "CI", "permissions": ["SEND"], "isTest": true });
    let made = app.post(PATH, &body).await.data(201);
    let path = format!("{PATH}/{}", made["id"].as_str().unwrap());
    let rotated = app
        .post(
            &format!("{path}/rotate"),
            &json!({ "gracePeriodSeconds": 0 }),
        )
        .await;
    let rotated = rotated.data(200);
    assert_eq!(rotated["isTest"], true);
    let key = rotated["key"].as_str().unwrap();
    assert!(key.starts_with("wp_test_"), "{key}");
    let reply = app.caller().with_key(key).get("/v1/messages").await;
    reply.expect_error(403, "FORBIDDEN");
    // It cannot be turned into a live key.
    app.patch(&path, &json!({ "isTest": false }))
        .await
        .expect_issues(400, &["isTest"]);
    app.delete(&path).await.expect(200);
}

#[tokio::test]
async fn a_test_key_makes_and_changes_no_live_key() {
    let app = TestApp::start().await;
    let tester = app.test_key(&Permission::ALL).await;
    let live = json!({ "name": "Live", "permissions": ["SEND"] });
    let made = app.post(PATH, &live).await.data(201);
    let path = format!("{PATH}/{}", made["id"].as_str().unwrap());
    let rotate = format!("{path}/rotate");
    let replies = [
        tester.post(PATH, &live).await,
        tester
            .post(
                PATH,
                &json!({ "name": "L", "permissions": ["SEND"], "isTest": false }),
            )
            .await,
        tester.patch(&path, &json!({ "name": "Mine" })).await,
        tester.post_empty(&rotate).await,
        tester.delete(&path).await,
    ];
    for reply in replies {
        let error = reply.expect_error(409, "CONFLICT");
        assert_eq!(error["details"]["reason"], "TEST_KEY");
    }
    assert_eq!(app.get(&path).await.data(200)["revokedAt"], Value::Null);
    let own = json!({ "name": "Own", "permissions": ["SEND"], "isTest": true });
    let own = tester.post(PATH, &own).await.data(201);
    tester
        .delete(&format!("{PATH}/{}", own["id"].as_str().unwrap()))
        .await
        .expect(200);
}

#[tokio::test]
async fn a_test_key_decides_on_no_live_message() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let tester = app.test_key(&Permission::ALL).await;
    let mut message = message_to("a@example.org");
    message["scheduledAt"] = json!((app.clock.now() + TimeDelta::hours(1)).to_rfc3339());
    let scheduled = app.send(&message).await;
    let failed = app.send_to("reject@example.org").await;
    app.execute(&format!(
        "UPDATE messages SET status = 'FAILED' WHERE id = '{failed}'"
    ))
    .await;
    let path = format!("/v1/messages/{scheduled}");
    let replies = [
        tester.patch(&path, &json!({ "scheduledAt": null })).await,
        tester.post_empty(&format!("{path}/cancel")).await,
        tester
            .post_empty(&format!("/v1/messages/{failed}/retry"))
            .await,
    ];
    for reply in replies {
        let error = reply.expect_error(409, "CONFLICT");
        assert_eq!(error["details"]["reason"], "TEST_KEY");
    }
    let nobody = "/v1/messages/01a1fbfa-b12e-763c-a29e-ce02006ba541/cancel";
    tester
        .post_empty(nobody)
        .await
        .expect_error(404, "NOT_FOUND");
    let own = sent_by(&tester, &message).await;
    tester
        .post_empty(&format!("/v1/messages/{own}/cancel"))
        .await
        .data(200);
    assert_eq!(app.status(&scheduled).await, "QUEUED");
    app.drain().await;
    app.leave_work();
}

#[tokio::test]
async fn a_test_does_not_take_the_place_of_the_live_request_with_its_idempotency_key() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let tester = app.test_key(&[Permission::Send]).await;
    let message = message_to("a@example.org");
    let send = async |caller: &Caller| {
        let reply = caller
            .try_call(Method::POST, "/v1/send", |request| {
                request.header("Idempotency-Key", "order-1").json(&message)
            })
            .await;
        reply.unwrap().expect(202)["messageId"].clone()
    };
    let test = send(&tester).await;
    let live = send(app.caller()).await;
    assert_ne!(test, live);
    assert_eq!(send(&tester).await, test);
    assert_eq!(send(app.caller()).await, live);
    // The same for the messages of a batch.
    let mut keyed = message_to("b@example.org");
    keyed["idempotencyKey"] = json!("order-2");
    let batch = json!({ "messages": [keyed] });
    let path = "/v1/emails/batch";
    let first = tester.post(path, &batch).await.expect(200);
    assert_ne!(app.post(path, &batch).await.expect(200), first);
    assert_eq!(tester.post(path, &batch).await.expect(200), first);
    finish(&app).await;
    app.captured_once("a@example.org");
    app.captured_once("b@example.org");
    assert_eq!(
        number(&app, "SELECT count(*) FROM messages WHERE is_test").await,
        2
    );
}
