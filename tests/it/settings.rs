//! The organization's settings.

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, message_to, wait_until};

const PATH: &str = "/v1/settings";

async fn quiet() -> TestApp {
    TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await
}

fn defaults() -> Value {
    json!({
        "name": "Tests",
        "brandColor": null,
        "unverifiedDomains": "reject",
        "trackOpens": true,
        "trackClicks": true,
        "retentionDays": null,
        "rateLimits": { "sendPerSecond": null, "otherPerSecond": null },
        "softBounceLimit": 5,
        "softBounceWindowDays": 30,
    })
}

fn from_elsewhere() -> Value {
    let mut message = message_to("a@example.org");
    message["from"] = json!("news@elsewhere.example");
    message
}

#[tokio::test]
async fn settings_are_read_and_changed_one_by_one_and_together() {
    let app = quiet().await;
    assert_eq!(
        app.get(PATH).await.expect(200),
        json!({ "data": defaults() })
    );
    let mut expected = defaults();
    for (field, value) in [
        ("name", json!("Müller & Söhne")),
        ("brandColor", json!("#1a73e8")),
        ("unverifiedDomains", json!("accept")),
        ("trackOpens", json!(false)),
        ("trackClicks", json!(false)),
        ("retentionDays", json!(30)),
        ("softBounceLimit", json!(0)),
        ("softBounceWindowDays", json!(365)),
    ] {
        expected[field] = value.clone();
        assert_eq!(
            app.patch(PATH, &json!({ field: value })).await.data(200),
            expected,
            "{field}"
        );
        assert_eq!(app.get(PATH).await.data(200), expected, "{field}");
    }
    let _changed = app
        .patch(PATH, &json!({ "rateLimits": { "sendPerSecond": 50 } }))
        .await
        .data(200);
    let changed = app
        .patch(PATH, &json!({ "rateLimits": { "otherPerSecond": 500 } }))
        .await
        .data(200);
    assert_eq!(
        changed["rateLimits"],
        json!({ "sendPerSecond": 50, "otherPerSecond": 500 })
    );
    // Null clears a nullable setting, and is rejected elsewhere.
    let back = json!({
        "name": "Tests", "brandColor": null,
        "unverifiedDomains": "reject", "trackOpens": true, "trackClicks": true, "retentionDays": null,
        "rateLimits": { "sendPerSecond": null, "otherPerSecond": null },
        "softBounceLimit": 5, "softBounceWindowDays": 30,
    });
    assert_eq!(app.patch(PATH, &back).await.data(200), defaults());
    app.patch(PATH, &json!({ "trackOpens": null, "rateLimits": null }))
        .await
        .expect_issues(400, &["trackOpens", "rateLimits"]);
    assert_eq!(app.patch(PATH, &json!({})).await.data(200), defaults());
}

#[tokio::test]
async fn an_invalid_change_is_rejected_with_every_mistake_and_changes_nothing() {
    let app = quiet().await;
    for (body, paths) in [
        (json!({ "name": null }), vec!["name"]),
        (json!({ "name": "" }), vec!["name"]),
        (json!({ "name": "x".repeat(256) }), vec!["name"]),
        (json!({ "brandColor": "#fff" }), vec!["brandColor"]),
        (json!({ "brandColor": "red" }), vec!["brandColor"]),
        (
            json!({ "brandColor": "#000000}*{color:red" }),
            vec!["brandColor"],
        ),
        (json!({ "brandColor": 0 }), vec!["brandColor"]),
        (
            json!({ "unverifiedDomains": "maybe" }),
            vec!["unverifiedDomains"],
        ),
        (
            json!({ "unverifiedDomains": true }),
            vec!["unverifiedDomains"],
        ),
        (
            json!({ "trackOpens": "yes", "trackClicks": 0 }),
            vec!["trackOpens", "trackClicks"],
        ),
        (json!({ "retentionDays": 0 }), vec!["retentionDays"]),
        (json!({ "retentionDays": 36_501 }), vec!["retentionDays"]),
        (json!({ "retentionDays": 1.5 }), vec!["retentionDays"]),
        (json!({ "retentionDays": "7" }), vec!["retentionDays"]),
        (json!({ "rateLimits": 5 }), vec!["rateLimits"]),
        (
            json!({ "softBounceLimit": -1, "softBounceWindowDays": 0 }),
            vec!["softBounceLimit", "softBounceWindowDays"],
        ),
        (
            json!({ "softBounceLimit": 101, "softBounceWindowDays": 366 }),
            vec!["softBounceLimit", "softBounceWindowDays"],
        ),
        (
            json!({ "rateLimits": { "sendPerSecond": 0, "otherPerSecond": "x" } }),
            vec!["rateLimits.sendPerSecond", "rateLimits.otherPerSecond"],
        ),
        (
            json!({ "trackClicks": 1, "trackOpens": false, "retentionDays": -1 }),
            vec!["trackClicks", "retentionDays"],
        ),
    ] {
        app.patch(PATH, &body).await.expect_issues(400, &paths);
    }
    assert_eq!(app.get(PATH).await.data(200), defaults());
    let _kept = app
        .patch(PATH, &json!({ "retentionDays": 36_500 }))
        .await
        .data(200);
    let _kept = app
        .patch(PATH, &json!({ "retentionDays": 1 }))
        .await
        .data(200);
}

#[tokio::test]
async fn rate_limits_are_limited_by_the_operator() {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .setting("WAYPOST_RATE_LIMIT_SEND_MAX", "70")
        .setting("WAYPOST_RATE_LIMIT_OTHER_MAX", "700")
        .start()
        .await;
    let limits = |send: u32, other: u32| json!({ "rateLimits": { "sendPerSecond": send, "otherPerSecond": other } });
    let set = app.patch(PATH, &limits(70, 700)).await.data(200);
    assert_eq!(
        set["rateLimits"],
        json!({ "sendPerSecond": 70, "otherPerSecond": 700 })
    );
    let beyond = app.patch(PATH, &limits(71, 701)).await;
    beyond.expect_issues(
        400,
        &["rateLimits.sendPerSecond", "rateLimits.otherPerSecond"],
    );
}

#[tokio::test]
async fn the_policy_for_unverified_domains_changes_at_once_and_soon_in_other_processes() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    let other = app.start_another_api().await;
    for api in [app.caller(), &other] {
        api.post("/v1/send", &from_elsewhere())
            .await
            .expect_issues(422, &["from"]);
    }
    let _changed = app
        .patch(PATH, &json!({ "unverifiedDomains": "accept" }))
        .await
        .data(200);
    let receipt = app.post("/v1/send", &from_elsewhere()).await.expect(202);
    assert_eq!(receipt["domainVerified"], false);
    wait_until("the other API accepts", async || {
        other.post("/v1/send", &from_elsewhere()).await.status == 202
    })
    .await;
    let _changed = app
        .patch(PATH, &json!({ "unverifiedDomains": "reject" }))
        .await
        .data(200);
    app.post("/v1/send", &from_elsewhere())
        .await
        .expect_issues(422, &["from"]);
    wait_until("the other API rejects", async || {
        other.post("/v1/send", &from_elsewhere()).await.status == 422
    })
    .await;
    app.leave_work();
}

#[tokio::test]
async fn each_organization_has_its_own_settings() {
    let app = quiet().await;
    let other = app.tenant("Other").await;
    let _changed = app
        .patch(PATH, &json!({ "retentionDays": 7, "trackOpens": false }))
        .await
        .data(200);
    let mut expected = defaults();
    expected["name"] = json!("Other");
    assert_eq!(other.caller.get(PATH).await.data(200), expected);
}
