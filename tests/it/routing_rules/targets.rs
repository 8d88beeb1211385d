//! Targets: accounts that share the messages of a rule by weight.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{SecondsFormat, TimeDelta};
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{Fault, FaultCalls, FaultKind, Provider};
use waypost_tests::{TestApp, message_to};

use super::{PATH, create, path_of, quiet, two_accounts};

pub(super) fn target(account: &str, weight: u32) -> Value {
    json!({ "providerAccountId": account, "weight": weight })
}

fn shown(account: &str, weight: u32) -> Value {
    json!({
        "providerAccountId": account, "weight": weight, "dailyCap": null, "hourlyCap": null, "ramp": null,
    })
}

/// A rule with targets and further fields.
pub(super) fn sharing(targets: &[Value], change: &Value) -> Value {
    let mut rule = json!({ "name": "Shares", "targets": targets });
    let change = change.as_object().unwrap().clone();
    rule.as_object_mut().unwrap().extend(change);
    rule
}

async fn three_accounts(app: &TestApp) -> (String, String, String) {
    let (first, second) = two_accounts(app).await;
    app.advance(TimeDelta::milliseconds(10));
    (first, second, app.connect(ProviderType::Mailgun).await)
}

/// Accepts messages and counts them by the account that each got.
async fn accept(app: &TestApp, messages: &[Value]) -> BTreeMap<String, usize> {
    let mut accounts = BTreeMap::new();
    for some in messages.chunks(500) {
        let body = json!({ "messages": some });
        let results = app.post("/v1/emails/batch", &body).await.expect(200);
        let ids = results["results"].as_array().unwrap().iter();
        let ids: Vec<String> = ids
            .map(|result| format!("'{}'", result["messageId"].as_str().unwrap()))
            .collect();
        let counted = app
            .value(&format!(
                "SELECT json_object_agg(account, count)::text
                 FROM (SELECT provider_account_id AS account, count(*) FROM messages WHERE id IN ({})
                       GROUP BY 1) counted",
                ids.join(",")
            ))
            .await
            .unwrap();
        let counted: BTreeMap<String, usize> = serde_json::from_str(&counted).unwrap();
        for (account, count) in counted {
            *accounts.entry(account).or_default() += count;
        }
    }
    app.leave_work();
    accounts
}

fn messages_to(domain: &str, count: usize) -> Vec<Value> {
    let addresses = (0..count).map(|index| format!("a{index}@{domain}"));
    addresses.map(|address| message_to(&address)).collect()
}

#[tokio::test]
async fn a_rule_has_targets_or_one_account_and_a_change_to_one_form_replaces_the_other() {
    let app = quiet().await;
    let (first, second, third) = three_accounts(&app).await;
    let capped = json!({
        "providerAccountId": second, "weight": 1_000, "dailyCap": 100_000_000, "hourlyCap": 1,
        "ramp": null,
    });
    let given = json!({
        "sticky": "sender", "overCap": "wait",
        // The first is a target.
        "fallbackProviderAccountIds": [first, third],
    });
    let rule = create(&app, &sharing(&[target(&first, 3), capped.clone()], &given)).await;
    assert_eq!(rule["providerAccountId"], json!(first));
    assert_eq!(rule["targets"], json!([shown(&first, 3), capped]));
    assert_eq!(
        (&rule["sticky"], &rule["overCap"]),
        (&json!("sender"), &json!("wait"))
    );
    assert_eq!(rule["fallbackProviderAccountIds"], json!([third]));
    assert_eq!(app.get(&path_of(&rule)).await.data(200), rule);

    let path = path_of(&rule);
    let renamed = app.patch(&path, &json!({ "name": "Renamed" })).await;
    assert_eq!(renamed.data(200)["targets"], rule["targets"]);
    let one = json!({ "providerAccountId": second });
    let one = app.patch(&path, &one).await.data(200);
    assert_eq!(one["providerAccountId"], json!(second));
    assert_eq!(one["targets"], json!([]));
    let targets = json!([target(&third, 1), target(&first, 2)]);
    let shared = app.patch(&path, &json!({ "targets": targets })).await;
    let shared = shared.data(200);
    assert_eq!(shared["providerAccountId"], json!(third));
    assert_eq!(
        shared["targets"],
        json!([shown(&third, 1), shown(&first, 2)])
    );
    assert_eq!(shared["fallbackProviderAccountIds"], json!([]));
    let log = app.get("/v1/audit-logs?action=routing_rule.updated").await;
    let fields: Vec<Value> = log.expect(200)["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["metadata"]["fields"].clone())
        .collect();
    let expected = [["targets"], ["providerAccountId"], ["name"]];
    assert_eq!(json!(fields), json!(expected));
}

#[tokio::test]
async fn mistakes_in_targets_are_named_with_their_place() {
    let app = quiet().await;
    let (first, second) = two_accounts(&app).await;
    let other = uuid::Uuid::nil().to_string();
    let both = json!({ "providerAccountId": first });
    let wrong = [
        (json!({ "name": "A rule" }), "providerAccountId"),
        (sharing(&[target(&first, 1)], &both), "targets"),
        (sharing(&[], &json!({})), "targets"),
        (sharing(&[json!("x")], &json!({})), "targets.0"),
        (
            sharing(&[target(&first, 0)], &json!({})),
            "targets.0.weight",
        ),
        (
            sharing(&[target(&first, 1_001)], &json!({})),
            "targets.0.weight",
        ),
        (
            sharing(
                &[target(&first, 1), target(&second, 1), target(&first, 2)],
                &json!({}),
            ),
            "targets.2.providerAccountId",
        ),
        (
            sharing(
                &[json!({ "providerAccountId": first, "weight": 1, "dailyCap": 0 })],
                &json!({}),
            ),
            "targets.0.dailyCap",
        ),
        (
            sharing(
                &[json!({ "providerAccountId": first, "weight": 1, "hourlyCap": 100_000_001 })],
                &json!({}),
            ),
            "targets.0.hourlyCap",
        ),
        (
            sharing(&[target(&first, 1)], &json!({ "sticky": "tag" })),
            "sticky",
        ),
        (
            sharing(&[target(&first, 1)], &json!({ "overCap": "drop" })),
            "overCap",
        ),
    ];
    for (rule, path) in wrong {
        app.post(PATH, &rule).await.expect_issues(400, &[path]);
    }
    let unknown = sharing(&[target(&first, 1), target(&other, 1)], &json!({}));
    let refused = app.post(PATH, &unknown).await;
    refused.expect_issues(422, &["targets.1.providerAccountId"]);
    let rule = create(&app, &sharing(&[target(&first, 1)], &json!({}))).await;
    let path = path_of(&rule);
    let forms = json!({ "providerAccountId": second, "targets": [target(&first, 1)] });
    app.patch(&path, &forms)
        .await
        .expect_issues(400, &["targets"]);
    let change = json!({ "targets": [target(&other, 1)] });
    let refused = app.patch(&path, &change).await;
    refused.expect_issues(422, &["targets.0.providerAccountId"]);
    assert_eq!(app.get(&path).await.data(200), rule);
}

#[tokio::test]
async fn each_target_gets_its_weights_part_of_the_messages() {
    let app = quiet().await;
    let (first, second, third) = three_accounts(&app).await;
    let targets = [target(&first, 5), target(&second, 3), target(&third, 2)];
    let rule = create(&app, &sharing(&targets, &json!({}))).await;
    let accepted = accept(&app, &messages_to("example.org", 10_000)).await;
    for (account, share) in [(&first, 5_000), (&second, 3_000), (&third, 2_000)] {
        let difference = accepted[account].abs_diff(share);
        assert!(difference <= share / 100, "{accepted:?}");
    }
    let changed = json!({ "targets": [target(&first, 1), target(&third, 99)] });
    app.patch(&path_of(&rule), &changed).await.data(200);
    let accepted = accept(&app, &messages_to("example.org", 500)).await;
    assert!(accepted[&first].abs_diff(5) <= 5, "{accepted:?}");
    assert!(!accepted.contains_key(&second));

    // An account that cannot be used leaves its part to the others.
    let off = json!({ "isActive": false });
    app.patch(&format!("/v1/providers/{third}"), &off)
        .await
        .data(200);
    let accepted = accept(&app, &messages_to("example.org", 10)).await;
    assert_eq!(accepted, BTreeMap::from([(first.clone(), 10)]));
    app.patch(&format!("/v1/providers/{first}"), &off)
        .await
        .data(200);
    let accepted = accept(&app, &messages_to("example.org", 1)).await;
    assert_eq!(accepted, BTreeMap::from([(second, 1)]), "without the rule");
}

#[tokio::test]
async fn the_messages_to_a_domain_or_of_a_sender_stay_with_one_target() {
    let app = quiet().await;
    let (first, second, third) = three_accounts(&app).await;
    let targets = [target(&first, 1), target(&second, 1), target(&third, 1)];
    let sticky = json!({ "sticky": "recipientDomain" });
    let rule = create(&app, &sharing(&targets, &sticky)).await;
    let mut used = BTreeSet::new();
    for domain in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"] {
        let upper = format!("{domain}.EXAMPLE.org");
        let mut messages = messages_to(&format!("{domain}.example.org"), 5);
        messages.extend(messages_to(&upper, 1));
        let accepted = accept(&app, &messages).await;
        assert_eq!(accepted.len(), 1, "{accepted:?}");
        used.extend(accepted.into_keys());
    }
    assert!(used.len() > 1, "{used:?}");
    let sticky = json!({ "sticky": "sender" });
    app.patch(&path_of(&rule), &sticky).await.data(200);
    let mut messages = messages_to("example.org", 20);
    messages.extend(messages_to("example.net", 20));
    assert_eq!(accept(&app, &messages).await.len(), 1);
}

#[tokio::test]
async fn a_removed_account_leaves_the_targets_and_the_last_one_ends_the_rule() {
    let app = quiet().await;
    let (first, second, third) = three_accounts(&app).await;
    let targets = [target(&first, 1), target(&second, 2)];
    let fallback = json!({ "fallbackProviderAccountIds": [third] });
    let with_fallback = create(&app, &sharing(&targets, &fallback)).await;
    let without = create(&app, &sharing(&targets, &json!({}))).await;
    let rule = async |rule: &Value| app.get(&path_of(rule)).await.data(200);

    app.delete(&format!("/v1/providers/{first}"))
        .await
        .expect(200);
    for one in [&with_fallback, &without] {
        let one = rule(one).await;
        assert_eq!(one["targets"], json!([shown(&second, 2)]));
        assert_eq!(one["providerAccountId"], json!(second));
        assert_eq!(one["isActive"], true);
    }
    app.delete(&format!("/v1/providers/{second}"))
        .await
        .expect(200);
    let moved_up = rule(&with_fallback).await;
    assert_eq!(moved_up["targets"], json!([]));
    assert_eq!(moved_up["providerAccountId"], json!(third));
    assert_eq!(moved_up["fallbackProviderAccountIds"], json!([]));
    assert_eq!(moved_up["isActive"], true);
    let ended = rule(&without).await;
    assert_eq!(ended["targets"], json!([]));
    assert_eq!(ended["isActive"], false);
}

#[tokio::test]
async fn a_target_that_fails_is_followed_by_the_other_targets_and_then_the_fallbacks() {
    let app = TestApp::start().await;
    let (first, second, third) = three_accounts(&app).await;
    let targets = [target(&first, 1_000), target(&second, 1)];
    let fallback = json!({ "fallbackProviderAccountIds": [third], "sticky": "sender" });
    create(&app, &sharing(&targets, &fallback)).await;
    for provider in [Provider::SendGrid, Provider::Postmark] {
        app.simulator().set_fault(Fault {
            provider: Some(provider),
            kind: FaultKind::Error,
            rate: 1.0,
            latency_ms: 0,
            calls: FaultCalls::Send,
        });
    }
    let id = app.send_to("a@example.org").await;
    app.drain().await;
    assert_eq!(
        app.captured_once("a@example.org").provider,
        Provider::Mailgun
    );
    let called = app.attempts(&id).await.into_iter();
    let called: Vec<String> = called
        .map(|attempt| attempt.account_id.to_string())
        .collect();
    let resolved = format!(
        "SELECT coalesce(resolved_account_id, provider_account_id)::text FROM messages WHERE id = '{id}'"
    );
    let resolved = app.value(&resolved).await.unwrap();
    let other = if resolved == first { second } else { first };
    assert_eq!(called, [resolved, other, third]);
}

#[tokio::test]
async fn a_scheduled_message_goes_through_the_target_that_it_would_get_when_it_is_due() {
    let app = TestApp::start().await;
    let (first, second) = two_accounts(&app).await;
    let targets = [target(&first, 1), target(&second, 1)];
    for sticky in ["none", "recipientDomain"] {
        let rule = create(&app, &sharing(&targets, &json!({ "sticky": sticky }))).await;
        let mut sent = Vec::new();
        let due = app.clock.now() + TimeDelta::hours(1);
        for index in 0..8 {
            let mut message = message_to(&format!("a@{sticky}{index}.example.org"));
            message["scheduledAt"] = json!(due.to_rfc3339_opts(SecondsFormat::Micros, true));
            let receipt = app.post("/v1/send", &message).await.expect(202);
            sent.push((
                receipt["messageId"].as_str().unwrap().to_owned(),
                receipt["providerId"].as_str().unwrap().to_owned(),
            ));
        }
        app.advance_and_drain(TimeDelta::minutes(61)).await;
        for (id, account) in sent {
            let called = app.attempts(&id).await;
            assert_eq!(called.len(), 1);
            assert_eq!(called[0].account_id.to_string(), account, "{sticky}");
        }
        app.delete(&path_of(&rule)).await.expect(200);
    }
    // By the weights at that time.
    let rule = create(&app, &sharing(&targets, &json!({}))).await;
    let due = app.clock.now() + TimeDelta::hours(1);
    let mut ids = Vec::new();
    for index in 0..8 {
        let mut message = message_to(&format!("b{index}@example.org"));
        message["scheduledAt"] = json!(due.to_rfc3339_opts(SecondsFormat::Micros, true));
        ids.push(app.send(&message).await);
    }
    let change = json!({ "targets": [target(&second, 1)] });
    app.patch(&path_of(&rule), &change).await.data(200);
    app.advance_and_drain(TimeDelta::minutes(61)).await;
    for id in ids {
        assert_eq!(app.attempts(&id).await[0].account_id.to_string(), second);
    }
}

#[tokio::test]
async fn resolve_explains_the_targets() {
    let app = quiet().await;
    let (first, second, third) = three_accounts(&app).await;
    let capped = json!({ "providerAccountId": third, "weight": 1, "dailyCap": 7, "hourlyCap": 5 });
    let targets = [target(&first, 3), target(&second, 4), capped];
    let rule = create(&app, &sharing(&targets, &json!({}))).await;
    let off = json!({ "isActive": false });
    app.patch(&format!("/v1/providers/{second}"), &off)
        .await
        .data(200);
    let asked = json!({ "from": "news@example.com", "to": ["a@example.org"] });
    let mut chosen = BTreeSet::new();
    for _ in 0..20 {
        let found = app.post(&format!("{PATH}/resolve"), &asked).await.data(200);
        assert_eq!(found["rule"], rule);
        let of = |account: &str, weight, share: f64, caps: [Option<u32>; 2], passed_over| {
            json!({
                "providerAccountId": account, "weight": weight, "healthPercent": 100, "share": share,
                "domainVerified": passed_over == Value::Null,
                "usedToday": 0, "dailyCap": caps[0], "usedThisHour": 0, "hourlyCap": caps[1],
                "rampState": null, "passedOver": passed_over,
            })
        };
        let expected = json!([
            of(&first, 3, 0.75, [None, None], Value::Null),
            of(&second, 4, 0.0, [None, None], json!("PROVIDER_INACTIVE")),
            of(&third, 1, 0.25, [Some(7), Some(5)], Value::Null),
        ]);
        assert_eq!(found["targets"], expected);
        chosen.insert(found["account"]["id"].as_str().unwrap().to_owned());
    }
    assert_eq!(chosen, BTreeSet::from([first, third]));
}

#[tokio::test]
async fn a_repeated_creation_of_a_rule_with_targets_is_one_rule() {
    let app = quiet().await;
    let (first, second) = two_accounts(&app).await;
    let rule = sharing(&[target(&first, 1), target(&second, 2)], &json!({}));
    let create = async || {
        let shape = |request: reqwest::RequestBuilder| {
            request.header("Idempotency-Key", "shares").json(&rule)
        };
        let created = app.caller().call(reqwest::Method::POST, PATH, shape);
        created.await.data(201)
    };
    let created = create().await;
    assert_eq!(create().await, created);
    assert_eq!(app.get(PATH).await.data(200), json!([created]));
}
