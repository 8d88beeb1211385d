//! Simulation: what past messages would have done under other rules.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, message_to};

use super::targets::{sharing, target};
use super::{PATH, create, quiet, rule_for, two_accounts, with};

async fn simulate(app: &TestApp, body: &Value) -> Value {
    let path = format!("{PATH}/simulate");
    app.post(&path, body).await.data(200)
}

/// Sends messages, and returns once they are accepted.
async fn send_all(app: &TestApp, messages: &[Value]) {
    for some in messages.chunks(500) {
        let body = json!({ "messages": some });
        app.post("/v1/emails/batch", &body).await.expect(200);
    }
}

fn messages_to(domain: &str, count: usize) -> Vec<Value> {
    let addresses = (0..count).map(|index| format!("a{index}@{domain}"));
    addresses.map(|address| message_to(&address)).collect()
}

/// The recipients of each account: in the simulation, and in fact.
fn by_account(found: &Value) -> BTreeMap<String, [u64; 2]> {
    let accounts = found["accounts"].as_array().unwrap().iter();
    let counts = accounts.map(|count| {
        let number = |field: &str| count[field].as_u64().unwrap();
        let id = count["providerAccountId"].as_str().unwrap().to_owned();
        (id, [number("recipients"), number("actualRecipients")])
    });
    counts.collect()
}

#[tokio::test]
async fn under_the_rules_as_they_are_messages_do_what_they_did() {
    let app = quiet().await;
    let (first, second) = two_accounts(&app).await;
    let domains = json!({ "recipientDomains": ["example.net"], "name": "Net" });
    let rule = create(&app, &with(&second, &domains)).await;
    send_all(&app, &messages_to("example.org", 30)).await;
    send_all(&app, &messages_to("example.net", 12)).await;
    let mut pinned = message_to("b@example.net");
    pinned["providerAccountId"] = json!(first);
    send_all(&app, &[pinned]).await;
    // A test counts for nothing.
    let mut test = message_to("delivered@example.net");
    test["test"] = json!(true);
    app.post("/v1/send", &test).await.expect(202);
    app.advance(TimeDelta::seconds(1));

    let found = simulate(&app, &json!({})).await;
    assert_eq!(
        (&found["messages"], &found["recipients"]),
        (&json!(43), &json!(43))
    );
    assert_eq!(found["sampledOneIn"], json!(1));
    assert_eq!(
        by_account(&found),
        BTreeMap::from([(first, [31, 31]), (second, [12, 12])])
    );
    assert_eq!(
        found["rules"],
        json!([{
            "id": rule["id"], "name": "Net", "messages": 12, "recipients": 12, "targets": [],
        }])
    );
    assert_eq!(found["withoutRule"], json!(31));
    assert_eq!(found["unsent"], json!(0));
    app.leave_work();
}

#[tokio::test]
async fn other_rules_are_tried_without_being_made() {
    let app = quiet().await;
    let (first, second) = two_accounts(&app).await;
    send_all(&app, &messages_to("example.org", 300)).await;
    let mut tagged = messages_to("example.net", 50);
    for message in &mut tagged {
        message["tags"] = json!(["receipts"]);
    }
    send_all(&app, &tagged).await;
    app.advance(TimeDelta::seconds(1));
    let mut capped = target(&second, 2);
    capped["dailyCap"] = json!(40);
    let rules = json!([
        sharing(&[target(&first, 1), capped], &json!({ "name": "Shares" })),
        with(
            &second,
            &json!({ "name": "Receipts", "tags": ["receipts"], "priority": 5 })
        ),
    ]);
    let found = simulate(&app, &json!({ "rules": rules, "period": "hour" })).await;
    assert_eq!(
        by_account(&found),
        BTreeMap::from([(first.clone(), [260, 350]), (second.clone(), [90, 0])])
    );
    let counts = &found["rules"];
    assert_eq!(
        counts[0]["name"],
        json!("Receipts"),
        "the higher priority comes first"
    );
    assert_eq!(counts[0]["id"], Value::Null);
    assert_eq!(counts[0]["recipients"], json!(50));
    assert_eq!(counts[1]["recipients"], json!(300));
    let targets = &counts[1]["targets"];
    assert_eq!(targets[0]["recipients"], json!(260));
    assert_eq!(targets[1]["recipients"], json!(40));
    let over = targets[1]["overDailyCap"].as_u64().unwrap();
    assert!((157..=163).contains(&over), "{over} of the second's 200");

    assert_eq!(app.get(PATH).await.data(200), json!([]), "no rule was made");
    let none = simulate(&app, &json!({ "rules": [] })).await;
    assert_eq!(none["withoutRule"], json!(350));
    app.leave_work();
}

#[tokio::test]
async fn messages_of_another_period_or_organization_are_not_looked_at() {
    let app = quiet().await;
    two_accounts(&app).await;
    send_all(&app, &messages_to("example.org", 3)).await;
    app.advance(TimeDelta::minutes(61));
    send_all(&app, &messages_to("example.org", 4)).await;
    app.advance(TimeDelta::seconds(1));
    for (period, messages) in [("hour", 4), ("day", 7), ("week", 7)] {
        let found = simulate(&app, &json!({ "period": period })).await;
        assert_eq!(found["messages"], json!(messages), "{period}");
    }
    app.advance(TimeDelta::hours(23));
    assert_eq!(simulate(&app, &json!({})).await["messages"], json!(4));
    let other = app.tenant("Stranger").await;
    let path = format!("{PATH}/simulate");
    let found = other.caller.post(&path, &json!({})).await.data(200);
    assert_eq!(
        (&found["messages"], &found["accounts"]),
        (&json!(0), &json!([]))
    );
    app.leave_work();
}

#[tokio::test]
async fn a_message_that_no_account_takes_is_counted_as_refused() {
    let app = quiet().await;
    let (first, second) = two_accounts(&app).await;
    send_all(&app, &messages_to("example.org", 5)).await;
    app.advance(TimeDelta::seconds(1));
    for account in [first, second] {
        let path = format!("/v1/providers/{account}");
        app.patch(&path, &json!({ "isActive": false }))
            .await
            .data(200);
    }
    let found = simulate(&app, &json!({})).await;
    let refused = json!({ "noActiveProvider": 5, "domainNotVerified": 0 });
    assert_eq!(found["refused"], refused);
    app.leave_work();
}

#[tokio::test]
async fn a_mistake_in_a_rule_is_named_by_the_path_in_the_request() {
    let app = quiet().await;
    let first = app.connect(ProviderType::Sendgrid).await;
    let path = format!("{PATH}/simulate");
    let good = rule_for(&first);
    let unknown = "01a1fbfa-b12e-763c-a29e-ce02006ba546";
    let wrong = with(&first, &json!({ "priority": 1_001 }));
    let cases = [
        (json!([good, wrong]), 400, "rules.1.priority"),
        (json!([rule_for(unknown)]), 422, "rules.0.providerAccountId"),
        (
            json!([
                good,
                sharing(&[target(&first, 1), target(unknown, 1)], &json!({}))
            ]),
            422,
            "rules.1.targets.1.providerAccountId",
        ),
        (
            json!([with(
                &first,
                &json!({ "minSizeBytes": 2, "maxSizeBytes": 1 })
            )]),
            400,
            "rules.0.maxSizeBytes",
        ),
        (
            json!([with(&first, &json!({ "priorty": 1 }))]),
            400,
            "rules.0.priorty",
        ),
        (json!([3]), 400, "rules.0"),
        (json!({}), 400, "rules"),
    ];
    for (rules, status, field) in cases {
        let refused = app.post(&path, &json!({ "rules": rules })).await;
        let error = refused.expect(status)["error"].clone();
        let issues = error["details"]["issues"].as_array().unwrap().clone();
        let paths: Vec<&str> = issues
            .iter()
            .filter_map(|one| one["path"].as_str())
            .collect();
        assert_eq!(paths, [field], "{rules}: {error}");
    }
    let refused = app
        .post(&path, &json!({ "period": "month" }))
        .await
        .expect(400);
    assert_eq!(
        refused["error"]["details"]["issues"][0]["path"],
        json!("period")
    );
}
