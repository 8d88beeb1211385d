//! What may be said of a test in a send and in a batch, and what is answered.

use std::fs;

use serde_json::json;
use tokio::process::Command;
use waypost_core::auth::Permission;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, WAIT_MAX, event_types, message_to, root};

use super::{finish, number, test_to};

async fn quiet() -> TestApp {
    TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await
}

#[tokio::test]
async fn a_test_gets_the_answers_of_a_live_message() {
    let app = quiet().await;
    let unsendable = app
        .post("/v1/send", &test_to("a@example.org", "delivered"))
        .await;
    let error = unsendable.expect_error(422, "VALIDATION_ERROR");
    assert_eq!(error["details"]["reason"], "NO_ACTIVE_PROVIDER");
    let account = app.connect(ProviderType::Ses).await;
    let live = app
        .post("/v1/send", &message_to("a@example.org"))
        .await
        .expect(202);
    let mut test = app
        .post("/v1/send", &test_to("a@example.org", "delivered"))
        .await
        .expect(202);
    assert_eq!(test["providerId"], json!(account));
    test["messageId"] = live["messageId"].clone();
    assert_eq!(test, live);
    let mut unverified = test_to("a@example.org", "delivered");
    unverified["from"] = json!("news@unverified.example");
    let refused = app.post("/v1/send", &unverified).await;
    refused.expect_error(422, "VALIDATION_ERROR");
    app.leave_work();
}

#[tokio::test]
async fn the_outcome_suppressed_answers_as_if_all_were_suppressed() {
    let app = quiet().await;
    app.connect(ProviderType::Postmark).await;
    let mut message = test_to("a@example.org", "suppressed");
    message["to"] = json!(["a@example.org", "b@example.org"]);
    let answer = app.post("/v1/send", &message).await.expect(202);
    let expected = json!({
        "messageId": null, "providerId": null, "status": "suppressed", "suppressedCount": 2,
    });
    assert_eq!(answer, expected);
    assert_eq!(number(&app, "SELECT count(*) FROM messages").await, 0);
}

#[tokio::test]
async fn suppressions_hold_for_tests() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Postmark).await;
    let body = json!({ "email": "gone@example.org" });
    app.post("/v1/suppressions", &body).await.data(201);
    let mut message = test_to("gone@example.org", "delivered");
    let answer = app.post("/v1/send", &message).await.expect(202);
    assert_eq!(answer["status"], "suppressed");
    message["to"] = json!(["gone@example.org", "there@example.org"]);
    let id = app.send(&message).await;
    finish(&app).await;
    let histories = app.recipients(&id).await;
    assert_eq!(event_types(&histories[0]), ["QUEUED", "DROPPED"]);
    assert_eq!(event_types(&histories[1]), ["QUEUED", "SENT", "DELIVERED"]);
}

#[tokio::test]
async fn wrong_fields_of_tests_are_refused_with_their_path() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    let with = |fields: serde_json::Value| {
        let mut message = message_to("a@example.org");
        let fields = fields.as_object().unwrap().clone();
        message.as_object_mut().unwrap().extend(fields);
        message
    };
    for (fields, path) in [
        (json!({ "testOutcome": "bounced" }), "testOutcome"),
        (
            json!({ "test": false, "testOutcome": "delivered" }),
            "testOutcome",
        ),
        (
            json!({ "test": true, "testOutcome": "BOUNCED" }),
            "testOutcome",
        ),
        (
            json!({ "test": true, "testOutcome": "opened" }),
            "testOutcome",
        ),
        (json!({ "test": true, "testOutcome": 1 }), "testOutcome"),
        (json!({ "test": "true" }), "test"),
        (json!({ "isTest": true }), "isTest"),
    ] {
        let reply = app.post("/v1/send", &with(fields)).await;
        reply.expect_issues(400, &[path]);
    }
    for fields in [
        json!({ "test": null, "testOutcome": null }),
        json!({ "test": false }),
    ] {
        let id = app.send(&with(fields)).await;
        assert_eq!(app.message(&id).await["test"], false);
    }
    let tester = app.test_key(&Permission::ALL).await;
    let reply = tester
        .post("/v1/send", &with(json!({ "test": false })))
        .await;
    reply.expect_issues(400, &["test"]);
    app.leave_work();
}

#[tokio::test]
async fn each_message_of_a_batch_says_whether_it_is_a_test() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Mailgun).await;
    let mut wrong = message_to("d@example.org");
    wrong["testOutcome"] = json!("bounced");
    let messages = json!([
        message_to("live@example.org"),
        test_to("b@example.org", "bounced"),
        test_to("c@example.org", "suppressed"),
        wrong,
        test_to("e@example.org", "failed"),
    ]);
    let path = "/v1/emails/batch";
    let answer = app
        .post(path, &json!({ "messages": messages }))
        .await
        .expect(200);
    let results = answer["results"].as_array().unwrap();
    finish(&app).await;
    let id = |nth: usize| results[nth]["messageId"].as_str().unwrap();
    app.captured_once("live@example.org");
    assert_eq!(app.simulator().captured_count(), 1);
    assert_eq!(app.events(id(1)).await, ["QUEUED", "SENT", "BOUNCED"]);
    assert_eq!(results[2]["status"], "suppressed");
    let error = results[3]["error"].as_str().unwrap();
    assert!(error.contains("testOutcome"), "{error}");
    assert_eq!(app.events(id(4)).await, ["QUEUED", "DROPPED"]);

    let tester = app.test_key(&[Permission::Send]).await;
    let messages = json!([message_to("f@example.org"), { "test": false, "to": "g@example.org",
        "from": "news@example.com", "subject": "Hello", "text": "Hello" }]);
    let answer = tester
        .post(path, &json!({ "messages": messages }))
        .await
        .expect(200);
    let error = answer["results"][1]["error"].as_str().unwrap();
    assert!(error.contains("test key"), "{error}");
    let id = answer["results"][0]["messageId"].as_str().unwrap();
    finish(&app).await;
    assert_eq!(app.status(id).await, "DELIVERED");
    assert_eq!(app.simulator().captured_count(), 1);
}

/// The shell commands of the document.
fn documented() -> String {
    let path = root().join("docs/test-mode.md");
    let document = fs::read_to_string(path).expect("the document is there");
    let (_, rest) = document.split_once("```sh\n").expect("there is a block");
    let (block, _) = rest.split_once("```").expect("the block ends");
    block.to_owned()
}

#[tokio::test]
async fn the_documented_commands_send_tests() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let key = app.key(app.organization_id(), &Permission::ALL).await;
    let running = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &documented()])
        .env(
            "WAYPOST_URL",
            format!("http://{}", app.variables["WAYPOST_LISTEN"]),
        )
        .env("WAYPOST_API_KEY", key)
        .output();
    let output = tokio::time::timeout(WAIT_MAX, running)
        .await
        .unwrap()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}");
    finish(&app).await;
    let listed = app.get("/v1/messages?test=true").await.data(200);
    let statuses: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["DELIVERED", "BOUNCED", "DELIVERED"]);
    assert_eq!(app.simulator().captured_count(), 0);
}
