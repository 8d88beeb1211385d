//! What rules require of messages besides their sender and their tags.

use chrono::{SecondsFormat, TimeDelta};
use serde_json::{Value, json};
use waypost_tests::{TestApp, message_to};

use super::{PATH, create, path_of, quiet, two_accounts, with};

/// Whether the rule of the second account got a message.
async fn matches(app: &TestApp, second: &str, change: &Value) -> bool {
    let mut message = message_to("a@example.org");
    let change = change.as_object().unwrap().clone();
    message.as_object_mut().unwrap().extend(change);
    let receipt = app.post("/v1/send", &message).await.expect(202);
    app.leave_work();
    receipt["providerId"] == second
}

#[tokio::test]
async fn every_condition_of_a_rule_must_hold() {
    let app = quiet().await;
    let (_first, second) = two_accounts(&app).await;
    // 5 bytes of the subject, 12 of the HTML, 5 of the text.
    let size = 22;
    let file = json!({ "attachments": [{ "filename": "a.txt", "content": "YWJj" }] });
    let to = |addresses: &[&str]| json!({ "to": addresses });
    let cases = [
        (
            json!({ "recipientDomains": ["example.org"] }),
            to(&["a@example.org"]),
            true,
        ),
        (
            json!({ "recipientDomains": ["example.org"] }),
            to(&["a@EXAMPLE.org", "b@example.org"]),
            true,
        ),
        (
            json!({ "recipientDomains": ["example.org"] }),
            to(&["a@example.org", "b@example.net"]),
            false,
        ),
        (
            json!({ "recipientDomains": ["*.example.org"] }),
            to(&["a@example.org"]),
            false,
        ),
        (
            json!({ "recipientDomains": ["*.example.org", "example.net"] }),
            to(&["a@x.example.org", "b@example.net"]),
            true,
        ),
        (
            json!({ "recipientDomains": [] }),
            to(&["a@example.net"]),
            true,
        ),
        (json!({ "messageClass": "bulk" }), json!({}), false),
        (
            json!({ "messageClass": "bulk" }),
            json!({ "messageClass": "bulk" }),
            true,
        ),
        (json!({ "messageClass": "transactional" }), json!({}), true),
        (
            json!({ "messageClass": "transactional" }),
            json!({ "messageClass": "bulk" }),
            false,
        ),
        (json!({ "minSizeBytes": size }), json!({}), true),
        (json!({ "minSizeBytes": size + 1 }), json!({}), false),
        (json!({ "minSizeBytes": size + 3 }), file.clone(), true),
        (json!({ "maxSizeBytes": size }), json!({}), true),
        (json!({ "maxSizeBytes": size }), file, false),
        (json!({ "test": true }), json!({}), false),
        (json!({ "test": true }), json!({ "test": true }), true),
        (json!({ "test": false }), json!({ "test": true }), false),
        (json!({ "test": false }), json!({}), true),
        (
            json!({ "messageClass": "bulk", "recipientDomains": ["example.org"] }),
            json!({ "messageClass": "bulk", "to": "a@example.net" }),
            false,
        ),
    ];
    for (conditions, message, expected) in cases {
        let rule = create(&app, &with(&second, &conditions)).await;
        let found = matches(&app, &second, &message).await;
        assert_eq!(found, expected, "{conditions} {message}");
        app.delete(&path_of(&rule)).await.expect(200);
    }
}

#[tokio::test]
async fn conditions_are_shown_changed_and_cleared() {
    let app = quiet().await;
    let (first, _second) = two_accounts(&app).await;
    let given = json!({
        "recipientDomains": ["Example.org", "*.bücher.example"], "messageClass": "bulk",
        "minSizeBytes": 1, "maxSizeBytes": 2, "test": false,
    });
    let rule = create(&app, &with(&first, &given)).await;
    let conditions = |rule: &Value| -> Value {
        let names = [
            "recipientDomains",
            "messageClass",
            "minSizeBytes",
            "maxSizeBytes",
            "test",
        ];
        names.map(|name| rule[name].clone()).into_iter().collect()
    };
    let domains = json!(["example.org", "*.xn--bcher-kva.example"]);
    assert_eq!(conditions(&rule), json!([domains, "bulk", 1, 2, false]));
    let path = path_of(&rule);
    let kept = app.patch(&path, &json!({ "priority": 1 })).await.data(200);
    assert_eq!(conditions(&kept), conditions(&rule));
    let crossed = app.patch(&path, &json!({ "minSizeBytes": 3 })).await;
    crossed.expect_issues(400, &["maxSizeBytes"]);
    let cleared = json!({
        "recipientDomains": [], "messageClass": null, "minSizeBytes": null, "maxSizeBytes": null,
        "test": null,
    });
    let cleared = app.patch(&path, &cleared).await.data(200);
    assert_eq!(conditions(&cleared), json!([[], null, null, null, null]));
    let many: Vec<String> = (0..51).map(|index| format!("d{index}.example")).collect();
    let wrong = [
        (json!({ "recipientDomains": many }), "recipientDomains"),
        (
            json!({ "recipientDomains": ["a@example.org"] }),
            "recipientDomains.0",
        ),
        (json!({ "messageClass": "urgent" }), "messageClass"),
        (json!({ "minSizeBytes": -1 }), "minSizeBytes"),
        (
            json!({ "minSizeBytes": 2, "maxSizeBytes": 1 }),
            "maxSizeBytes",
        ),
        (json!({ "test": "yes" }), "test"),
    ];
    for (change, path) in wrong {
        let reply = app.post(PATH, &with(&first, &change)).await;
        reply.expect_issues(400, &[path]);
    }
}

#[tokio::test]
async fn resolve_names_the_condition_that_does_not_hold() {
    let app = quiet().await;
    let (first, _second) = two_accounts(&app).await;
    let conditions = [
        (
            json!({ "recipientDomains": ["example.org"] }),
            "RECIPIENT_DOMAIN",
        ),
        (json!({ "messageClass": "bulk" }), "MESSAGE_CLASS"),
        (json!({ "minSizeBytes": 10 }), "SIZE"),
        (json!({ "test": true }), "TEST"),
    ];
    for (condition, _) in &conditions {
        create(&app, &with(&first, condition)).await;
    }
    let resolve = async |message: Value| -> Value {
        let found = app
            .post(&format!("{PATH}/resolve"), &message)
            .await
            .data(200);
        let passed_over = found["passedOver"].as_array().unwrap().iter();
        passed_over.map(|one| one["reason"].clone()).collect()
    };
    let unknown = json!({ "from": "news@example.com" });
    let reasons: Vec<&str> = conditions.iter().map(|(_, reason)| *reason).collect();
    assert_eq!(resolve(unknown).await, json!(reasons));
    let to = json!({ "from": "news@example.com", "to": ["a@example.org"] });
    assert_eq!(resolve(to).await, json!([]));
    for (known, index) in [
        (json!({ "messageClass": "bulk" }), 1),
        (json!({ "sizeBytes": 10 }), 2),
        (json!({ "test": true }), 3),
    ] {
        let mut message = json!({ "from": "news@example.com" });
        let known = known.as_object().unwrap().clone();
        message.as_object_mut().unwrap().extend(known);
        assert_eq!(resolve(message).await, json!(&reasons[..index]));
    }
}

#[tokio::test]
async fn a_scheduled_message_is_held_to_the_conditions_when_it_goes() {
    let app = TestApp::start().await;
    let (first, second) = two_accounts(&app).await;
    let due = app.clock.now() + TimeDelta::hours(1);
    let schedule = async |address: &str, class: &str| -> String {
        let mut message = message_to(address);
        message["scheduledAt"] = json!(due.to_rfc3339_opts(SecondsFormat::Micros, true));
        message["messageClass"] = json!(class);
        app.send(&message).await
    };
    let wanted = schedule("a@example.org", "bulk").await;
    let of_other_class = schedule("b@example.org", "transactional").await;
    let to_others = schedule("c@example.net", "bulk").await;
    let conditions = json!({
        "recipientDomains": ["example.org"], "messageClass": "bulk",
        "minSizeBytes": 22, "maxSizeBytes": 22, "test": false,
    });
    create(&app, &with(&second, &conditions)).await;
    app.advance_and_drain(TimeDelta::minutes(61)).await;
    for (id, account) in [
        (wanted, second),
        (of_other_class, first.clone()),
        (to_others, first),
    ] {
        let called = app.attempts(&id).await;
        assert_eq!(called.len(), 1);
        assert_eq!(called[0].account_id.to_string(), account);
    }
}
