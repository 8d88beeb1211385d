//! The settings for tracking: of the organization and of the request.

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, wait_until};

use super::{ADA, BOB, HTML, html_to, message, sending};

/// Whether a mail has a pixel, and whether its link is tracked.
fn tracked(app: &TestApp, to: &str) -> (bool, bool) {
    let html = html_to(app, to);
    assert_eq!(
        html.contains("/v1/t/c/"),
        !html.contains("shop.example"),
        "{html}"
    );
    (html.contains("/v1/t/o/"), html.contains("/v1/t/c/"))
}

async fn switch(app: &TestApp, opens: bool, clicks: bool) {
    let switches = json!({ "trackOpens": opens, "trackClicks": clicks });
    let _changed = app.patch("/v1/settings", &switches).await.data(200);
}

#[tokio::test]
async fn options_of_a_message_override_those_of_the_organization() {
    let app = sending().await;
    for (opens, clicks) in [(true, true), (true, false), (false, true), (false, false)] {
        switch(&app, opens, clicks).await;
        for (tracking, expected) in [
            (Value::Null, (opens, clicks)),
            (json!({}), (opens, clicks)),
            (json!({ "opens": null, "clicks": null }), (opens, clicks)),
            (json!({ "opens": true }), (true, clicks)),
            (json!({ "clicks": false }), (opens, false)),
            (json!({ "opens": false, "clicks": true }), (false, true)),
        ] {
            let mut message = message(&[ADA], HTML);
            message["tracking"] = tracking.clone();
            app.send(&message).await;
            app.drain().await;
            assert_eq!(tracked(&app, ADA), expected, "{tracking}");
            if expected == (false, false) {
                assert_eq!(html_to(&app, ADA), HTML);
            }
        }
    }
}

#[tokio::test]
async fn each_message_of_a_batch_has_its_own_options() {
    let app = sending().await;
    let mut off = message(&[BOB], HTML);
    off["tracking"] = json!({ "opens": false, "clicks": false });
    let mut wrong = message(&["eve@example.org"], HTML);
    wrong["tracking"] = json!({ "opens": "yes", "clicks": 0 });
    let batch = json!({ "messages": [message(&[ADA], HTML), off, wrong] });
    let answer = app.post("/v1/emails/batch", &batch).await.expect(200);
    let error = answer["results"][2]["error"].as_str().unwrap();
    assert!(
        error.contains("tracking.opens") && error.contains("tracking.clicks"),
        "{error}"
    );
    app.drain().await;
    assert_eq!(tracked(&app, ADA), (true, true));
    assert_eq!(html_to(&app, BOB), HTML);
    assert_eq!(app.simulator().captured_count(), 2);
}

#[tokio::test]
async fn invalid_options_are_refused_with_their_paths() {
    let app = sending().await;
    for (tracking, paths) in [
        (json!(true), vec!["tracking"]),
        (json!([]), vec!["tracking"]),
        (json!("opens"), vec!["tracking"]),
        (
            json!({ "opens": 1, "clicks": "no" }),
            vec!["tracking.opens", "tracking.clicks"],
        ),
        (json!({ "clicks": {} }), vec!["tracking.clicks"]),
    ] {
        let mut message = message(&[ADA], HTML);
        message["tracking"] = tracking;
        message["subject"] = json!("");
        let mut all = vec!["subject"];
        all.extend(paths);
        let error = app
            .post("/v1/send", &message)
            .await
            .expect_error(400, "VALIDATION_ERROR");
        let issues = error["details"]["issues"].as_array().unwrap();
        let mut found: Vec<&str> = issues
            .iter()
            .map(|issue| issue["path"].as_str().unwrap())
            .collect();
        found.sort_unstable();
        all.sort_unstable();
        assert_eq!(found, all);
    }
}

#[tokio::test]
async fn a_changed_setting_applies_to_new_messages_only() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let other = app.start_another_api().await;
    app.send(&message(&[ADA], HTML)).await;
    // The other API process has cached the organization.
    other
        .post("/v1/send", &message(&["warm@example.org"], HTML))
        .await
        .expect(202);
    switch(&app, false, false).await;
    app.send(&message(&[BOB], HTML)).await;
    wait_until("the other API has noticed", async || {
        let sent = other
            .post("/v1/send", &message(&["eve@example.org"], HTML))
            .await
            .expect(202);
        let id = sent["messageId"].as_str().unwrap();
        let query = format!("SELECT track_opens OR track_clicks FROM messages WHERE id = '{id}'");
        app.value(&query).await.as_deref() == Some("false")
    })
    .await;
    app.start_worker();
    app.drain().await;
    assert_eq!(tracked(&app, ADA), (true, true));
    assert_eq!(tracked(&app, "warm@example.org"), (true, true));
    assert_eq!(html_to(&app, BOB), HTML);
}
