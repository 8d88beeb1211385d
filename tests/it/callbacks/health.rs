//! How accounts do by recipient domain, from the answers and the events of providers.

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, message_to, wait_until};

use super::{register, wait_until_told};

async fn domains(app: &TestApp, account: &str, window: &str) -> Vec<Value> {
    let path = format!("/v1/providers/{account}/health/domains?window={window}");
    let body = app.get(&path).await.expect(200);
    body["data"].as_array().unwrap().clone()
}

/// Some numbers of each domain: attempts, accepted, rejected, deferred, sent, delivered, bounced,
/// complained.
async fn numbers(app: &TestApp, account: &str, window: &str) -> Vec<(String, [i64; 8])> {
    let domains = domains(app, account, window).await.into_iter();
    let numbers = domains.map(|domain| {
        let name = domain["recipientDomain"].as_str().unwrap().to_owned();
        (name, figures(&domain))
    });
    numbers.collect()
}

fn figures(of: &Value) -> [i64; 8] {
    [
        "attempts",
        "accepted",
        "rejected",
        "deferred",
        "sent",
        "delivered",
        "bounced",
        "complained",
    ]
    .map(|name| of[name].as_i64().unwrap())
}

/// Sends to an address of each story through an account.
async fn send(app: &TestApp, account: &str, domain: &str, stories: &[(&str, usize)]) {
    for (story, copies) in stories {
        for copy in 0..*copies {
            let mut message = message_to(&format!("{story}+{copy}@{domain}"));
            message["providerAccountId"] = json!(account);
            app.send(&message).await;
        }
    }
}

/// Two accounts that send to the same domain, and one of them to another one too.
async fn two_accounts(app: &TestApp) -> (String, String) {
    let first = register(app, ProviderType::Sendgrid).await;
    let second = register(app, ProviderType::Mailgun).await;
    // Attempts count from the millisecond after their account was made.
    app.advance(TimeDelta::seconds(1));
    let stories = [
        ("plain", 15),
        ("hard-bounce", 3),
        ("defer", 4),
        ("complaint", 2),
        ("refuse", 1),
    ];
    send(app, &first, "big.example", &stories).await;
    send(app, &first, "small.example", &[("defer", 2)]).await;
    send(app, &second, "big.example", &[("plain", 3), ("block", 1)]).await;
    let mut test = message_to("defer@big.example");
    test["test"] = json!(true);
    app.send(&test).await;
    wait_until_told(app).await;
    (first, second)
}

async fn wait_until_counted(app: &TestApp, account: &str, attempts: i64) {
    wait_until("the attempts are counted", async || {
        let health = app.get(&format!("/v1/providers/{account}/health")).await;
        health.data(200)["windows"]["lastWeek"]["attempts"] == attempts
    })
    .await;
}

#[tokio::test]
async fn accounts_and_recipient_domains_are_told_apart() {
    let app = TestApp::start().await;
    let (first, second) = two_accounts(&app).await;
    // What metrics count, and what was put off, is known before attempts are read.
    let big = ("big.example".to_owned(), [0, 0, 0, 4, 24, 21, 3, 2]);
    let small = ("small.example".to_owned(), [0, 0, 0, 2, 2, 2, 0, 0]);
    assert_eq!(numbers(&app, &first, "15m").await, [big, small]);
    app.advance(TimeDelta::minutes(1));
    wait_until_counted(&app, &first, 27).await;
    wait_until_counted(&app, &second, 4).await;
    let big = ("big.example".to_owned(), [25, 24, 1, 4, 24, 21, 3, 2]);
    let small = ("small.example".to_owned(), [2, 2, 0, 2, 2, 2, 0, 0]);
    for window in ["15m", "day", "week"] {
        let of_first = numbers(&app, &first, window).await;
        assert_eq!(of_first, [big.clone(), small.clone()], "{window}");
        let of_second = numbers(&app, &second, window).await;
        let expected = ("big.example".to_owned(), [4, 4, 0, 0, 4, 3, 1, 0]);
        assert_eq!(of_second, [expected], "{window}");
    }
    // A rate of few mails is not reported.
    let shown = domains(&app, &first, "day").await;
    let rates = [
        "deferralRate",
        "bounceRate",
        "complaintRate",
        "deliveryRate",
    ];
    let of_big = rates.map(|rate| shown[0][rate].clone());
    assert_eq!(of_big, [0.16, 0.125, 0.0952, 0.875].map(|rate| json!(rate)));
    assert_eq!(shown[0]["acceptLatencyMs"], json!({ "p50": 1, "p95": 1 }));
    assert!(rates.iter().all(|rate| shown[1][rate].is_null()));
    assert_eq!(shown[1]["acceptLatencyMs"], Value::Null);
    // All domains together.
    let health = app.get(&format!("/v1/providers/{first}/health")).await;
    let windows = health.data(200)["windows"].clone();
    for window in ["last15Minutes", "lastDay", "lastWeek"] {
        assert_eq!(
            figures(&windows[window]),
            [27, 26, 1, 6, 26, 23, 3, 2],
            "{window}"
        );
    }
}

#[tokio::test]
async fn a_window_ends_with_its_quarter_of_an_hour_and_agrees_with_the_metrics() {
    let app = TestApp::start().await;
    let (first, _) = two_accounts(&app).await;
    app.advance(TimeDelta::minutes(1));
    wait_until_counted(&app, &first, 27).await;
    let week = numbers(&app, &first, "week").await;
    let groups = app
        .caller()
        .query(
            "/v1/metrics/breakdown",
            &[
                ("groupBy", "recipientDomain"),
                ("providerAccountId", first.as_str()),
            ],
        )
        .await
        .data(200);
    let groups = groups.as_array().unwrap().iter();
    let groups = groups.map(|group| {
        let counts = ["sent", "delivered", "bounced", "complained"];
        let counts = counts.map(|name| group[name].as_i64().unwrap());
        (group["name"].as_str().unwrap().to_owned(), counts)
    });
    let counted = week
        .iter()
        .map(|(name, [.., sent, delivered, bounced, complained])| {
            (name.clone(), [*sent, *delivered, *bounced, *complained])
        });
    assert_eq!(groups.collect::<Vec<_>>(), counted.collect::<Vec<_>>());
    app.advance_and_drain(TimeDelta::minutes(30)).await;
    assert_eq!(numbers(&app, &first, "15m").await, []);
    assert_eq!(numbers(&app, &first, "day").await, week);
    app.advance_and_drain(TimeDelta::days(1)).await;
    assert_eq!(numbers(&app, &first, "day").await, []);
    assert_eq!(numbers(&app, &first, "week").await, week);
    app.advance_and_drain(TimeDelta::days(7)).await;
    assert_eq!(numbers(&app, &first, "week").await, []);
    // What no window shows is deleted, a day later.
    app.advance_and_drain(TimeDelta::days(2)).await;
    for table in ["attempt_quarters", "attempt_days", "deferral_deltas"] {
        wait_until("old counts are deleted", async || {
            let left = app.value(&format!("SELECT count(*) FROM {table}")).await;
            left.as_deref() == Some("0")
        })
        .await;
    }
}

#[tokio::test]
async fn each_attempt_that_is_put_off_counts_once_at_its_account() {
    let app = TestApp::start().await;
    let first = register(&app, ProviderType::Sendgrid).await;
    let second = app.connect(ProviderType::Postmark).await;
    let rule = json!({
        "name": "All", "providerAccountId": first, "fallbackProviderAccountIds": [second],
    });
    app.post("/v1/routing-rules", &rule).await.data(201);
    // Put off by the provider's answer, at both accounts of the first round.
    let id = app.send_to("error@big.example").await;
    app.drain().await;
    app.leave_work();
    assert_eq!(app.events(&id).await, ["QUEUED", "DEFERRED", "DEFERRED"]);
    for account in [&first, &second] {
        let expected = ("big.example".to_owned(), [0, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(numbers(&app, account, "15m").await, [expected]);
    }
    // A deferral that is reported again counts once.
    let id = app.send_to("plain@small.example").await;
    app.drain().await;
    wait_until_told(&app).await;
    let attempt = format!("SELECT id FROM send_attempts WHERE message_id = '{id}'");
    let attempt = app.value(&attempt).await.unwrap();
    for _ in 0..3 {
        app.execute(&format!(
            "INSERT INTO events (message_id, id, organization_id, position, event_type, occurred_at, data)
             SELECT id, gen_random_uuid(), organization_id, 0, 'DEFERRED', created_at,
                    jsonb_build_object('attemptId', '{attempt}')
             FROM messages WHERE id = '{id}'"
        ))
        .await;
    }
    let shown = numbers(&app, &first, "15m").await;
    let small = shown.iter().find(|(name, _)| name == "small.example");
    assert_eq!(small.unwrap().1[3], 1, "{shown:?}");
}
