//! Routing rules: their validation, which account they choose, and how soon changes take
//! effect.

mod caps;
mod conditions;
mod health;
mod mailbox_providers;
mod ramps;
mod region;
mod simulation;
mod targets;

use std::time::Duration;

use chrono::TimeDelta;
use serde_json::{Value, json};
use uuid::Uuid;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Caller, TestApp, message_to, wait_within};

const PATH: &str = "/v1/routing-rules";

async fn quiet() -> TestApp {
    TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await
}

/// Two accounts, the first of which is the default.
async fn two_accounts(app: &TestApp) -> (String, String) {
    let first = app.connect(ProviderType::Sendgrid).await;
    app.advance(TimeDelta::milliseconds(10));
    (first, app.connect(ProviderType::Postmark).await)
}

fn rule_for(account: &str) -> Value {
    json!({ "name": "A rule", "providerAccountId": account })
}

fn with(account: &str, change: &Value) -> Value {
    let mut rule = rule_for(account);
    rule.as_object_mut()
        .unwrap()
        .extend(change.as_object().unwrap().clone());
    rule
}

async fn create(app: &TestApp, body: &Value) -> Value {
    app.advance(TimeDelta::milliseconds(10));
    app.post(PATH, body).await.data(201)
}

fn path_of(rule: &Value) -> String {
    format!("{PATH}/{}", rule["id"].as_str().unwrap())
}

/// The account that sends a message.
async fn taken_by(caller: &Caller, from: &str, tags: &[&str]) -> String {
    let mut message = message_to("a@example.org");
    message["from"] = json!(from);
    message["tags"] = json!(tags);
    let receipt = caller.post("/v1/send", &message).await.expect(202);
    receipt["providerId"].as_str().unwrap().to_owned()
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story, told in order")]
async fn a_rule_is_created_shown_listed_changed_and_removed() {
    let app = quiet().await;
    let (first, second) = two_accounts(&app).await;
    let rule = create(&app, &rule_for(&first)).await;
    let expected = json!({
        "id": rule["id"],
        "organizationId": app.organization_id().to_string(),
        "name": "A rule",
        "priority": 0,
        "isActive": true,
        "senderDomain": null,
        "tags": [],
        "tagMatch": "any",
        "providerAccountId": first,
        "recipientDomains": [],
        "recipientMailboxProviders": [],
        "messageClass": null,
        "minSizeBytes": null,
        "maxSizeBytes": null,
        "test": null,
        "region": null,
        "targets": [],
        "sticky": "none",
        "prefer": "weight",
        "overCap": "next",
        "rampBounds": { "bounceRate": 0.05, "complaintRate": 0.001 },
        "fallbackProviderAccountIds": [],
        "onUnknown": "wait",
        "createdAt": rule["createdAt"],
        "updatedAt": rule["createdAt"],
    });
    assert_eq!(rule, expected);
    assert_eq!(
        app.get(&path_of(&rule)).await.expect(200),
        json!({ "data": rule })
    );
    assert_eq!(app.get(PATH).await.expect(200), json!({ "data": [rule] }));
    let change = json!({
        "name": "Another",
        "priority": 1_000,
        "isActive": false,
        "senderDomain": "*.example.com",
        "tags": ["a", "b"],
        "tagMatch": "all",
        "providerAccountId": second,
        "fallbackProviderAccountIds": [first],
        "onUnknown": "fail",
    });
    app.advance(TimeDelta::seconds(1));
    let changed = app.patch(&path_of(&rule), &change).await.data(200);
    for (field, value) in change.as_object().unwrap() {
        assert_eq!(&changed[field], value);
    }
    assert_eq!(changed["createdAt"], rule["createdAt"]);
    assert_ne!(changed["updatedAt"], rule["updatedAt"]);
    assert_eq!(app.get(&path_of(&rule)).await.data(200), changed);
    let kept = app
        .patch(&path_of(&rule), &json!({ "senderDomain": null }))
        .await
        .data(200);
    assert_eq!(
        (&kept["senderDomain"], &kept["name"]),
        (&Value::Null, &json!("Another"))
    );
    assert_eq!(
        app.delete(&path_of(&rule)).await.expect(200),
        json!({ "success": true })
    );
    app.get(&path_of(&rule))
        .await
        .expect_error(404, "NOT_FOUND");
    app.delete(&path_of(&rule))
        .await
        .expect_error(404, "NOT_FOUND");
    let log = app
        .get("/v1/audit-logs?targetType=routing_rule")
        .await
        .data(200);
    let actions: Vec<&str> = log
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();
    assert_eq!(
        actions,
        [
            "routing_rule.deleted",
            "routing_rule.updated",
            "routing_rule.updated",
            "routing_rule.created"
        ]
    );
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story, told in order")]
async fn all_mistakes_in_a_rule_are_reported_and_the_limits_are_inclusive() {
    let app = quiet().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    app.post(PATH, &json!({}))
        .await
        .expect_issues(400, &["name", "providerAccountId"]);
    let tags = |count: usize| (0..count).map(|n| format!("tag{n}")).collect::<Vec<_>>();
    let accounts = |count: usize| vec![account.clone(); count];
    for (change, paths) in [
        (json!({ "name": "x".repeat(256) }), vec!["name"]),
        (json!({ "name": "" }), vec!["name"]),
        (json!({ "priority": -1 }), vec!["priority"]),
        (json!({ "priority": 1_001 }), vec!["priority"]),
        (json!({ "priority": "1" }), vec!["priority"]),
        (json!({ "isActive": "yes" }), vec!["isActive"]),
        (json!({ "senderDomain": "*" }), vec!["senderDomain"]),
        (
            json!({ "senderDomain": "a@example.com" }),
            vec!["senderDomain"],
        ),
        (
            json!({ "senderDomain": "mail.*.com" }),
            vec!["senderDomain"],
        ),
        (json!({ "tags": tags(11) }), vec!["tags"]),
        (json!({ "tags": ["fine", "x".repeat(101)] }), vec!["tags.1"]),
        (json!({ "tagMatch": "some" }), vec!["tagMatch"]),
        (
            json!({ "providerAccountId": "no-id" }),
            vec!["providerAccountId"],
        ),
        (
            json!({ "fallbackProviderAccountIds": accounts(6) }),
            vec!["fallbackProviderAccountIds"],
        ),
        (
            json!({ "fallbackProviderAccountIds": ["no-id"] }),
            vec!["fallbackProviderAccountIds.0"],
        ),
        (json!({ "onUnknown": "hope" }), vec!["onUnknown"]),
        (
            json!({ "name": 1, "priority": 1.5, "tags": "x", "onUnknown": 0 }),
            vec!["name", "priority", "tags", "onUnknown"],
        ),
    ] {
        app.post(PATH, &with(&account, &change))
            .await
            .expect_issues(400, &paths);
    }
    assert_eq!(app.get(PATH).await.data(200), json!([]));
    let most = json!({
        "name": "é".repeat(255), "priority": 1_000, "tags": tags(10), "fallbackProviderAccountIds": accounts(5),
        "senderDomain": "*.Example.COM",
    });
    let rule = create(&app, &with(&account, &most)).await;
    assert_eq!(
        (&rule["priority"], &rule["tags"]),
        (&json!(1_000), &json!(tags(10)))
    );
    // Every account is named once, and the rule's own account is not a fallback.
    assert_eq!(
        (&rule["fallbackProviderAccountIds"], &rule["senderDomain"]),
        (&json!([]), &json!("*.example.com"))
    );
    let _lowest = app
        .patch(&path_of(&rule), &json!({ "priority": 0 }))
        .await
        .data(200);
    let bad = json!({ "name": "", "priority": 1_001, "tags": tags(11), "fallbackProviderAccountIds": accounts(6) });
    app.patch(&path_of(&rule), &bad).await.expect_issues(
        400,
        &["name", "priority", "tags", "fallbackProviderAccountIds"],
    );
}

#[tokio::test]
async fn unknown_accounts_are_reported() {
    let app = quiet().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    let other = app.tenant("Other").await;
    let nobody = Uuid::nil().to_string();
    let paths = ["providerAccountId", "fallbackProviderAccountIds.1"];
    let body = with(
        &nobody,
        &json!({ "fallbackProviderAccountIds": [account, nobody] }),
    );
    app.post(PATH, &body).await.expect_issues(422, &paths);
    // An account of another organization does not exist either.
    other
        .caller
        .post(PATH, &rule_for(&account))
        .await
        .expect_issues(422, &["providerAccountId"]);
    let rule = create(&app, &rule_for(&account)).await;
    let change =
        json!({ "providerAccountId": nobody, "fallbackProviderAccountIds": [account, nobody] });
    app.patch(&path_of(&rule), &change)
        .await
        .expect_issues(422, &paths);
    assert_eq!(app.get(PATH).await.data(200), json!([rule]));
}

#[tokio::test]
async fn rules_choose_by_sender_and_tags_and_the_message_stores_its_rule() {
    let app = quiet().await;
    let (first, second) = two_accounts(&app).await;
    let by_domain = create(
        &app,
        &with(&second, &json!({ "senderDomain": "*.example.com" })),
    )
    .await;
    create(
        &app,
        &with(&second, &json!({ "tags": ["a", "b"], "tagMatch": "all" })),
    )
    .await;
    create(&app, &with(&second, &json!({ "tags": ["x", "y"] }))).await;
    for (from, tags, account) in [
        ("news@example.com", vec![], &first),
        ("news@mail.example.com", vec![], &second),
        ("news@MAIL.example.com", vec!["other"], &second),
        ("news@example.com", vec!["a"], &first),
        ("news@example.com", vec!["b", "c", "a"], &second),
        ("news@example.com", vec!["z", "y"], &second),
        ("news@example.com", vec!["Y"], &first),
    ] {
        assert_eq!(
            &taken_by(app.caller(), from, &tags).await,
            account,
            "{from} {tags:?}"
        );
    }
    let count = async |condition: &str| {
        app.value(&format!("SELECT count(*) FROM messages WHERE {condition}"))
            .await
            .unwrap()
    };
    assert_eq!(
        count(&format!(
            "routing_rule_id = '{}'",
            by_domain["id"].as_str().unwrap()
        ))
        .await,
        "2"
    );
    assert_eq!(count("routing_rule_id IS NULL").await, "3");
    app.leave_work();
}

#[tokio::test]
async fn the_highest_priority_decides_and_among_equals_the_oldest() {
    let app = quiet().await;
    let (first, second) = two_accounts(&app).await;
    let old = create(&app, &rule_for(&second)).await;
    let young = create(&app, &rule_for(&first)).await;
    assert_eq!(app.get(PATH).await.data(200), json!([old, young]));
    assert_eq!(
        taken_by(app.caller(), "news@example.com", &[]).await,
        second
    );
    let young = app
        .patch(&path_of(&young), &json!({ "priority": 1 }))
        .await
        .data(200);
    assert_eq!(app.get(PATH).await.data(200), json!([young, old]));
    assert_eq!(taken_by(app.caller(), "news@example.com", &[]).await, first);
    let _off = app
        .patch(&path_of(&young), &json!({ "isActive": false }))
        .await
        .data(200);
    assert_eq!(
        taken_by(app.caller(), "news@example.com", &[]).await,
        second
    );
    let _removed = app.delete(&path_of(&old)).await.expect(200);
    assert_eq!(taken_by(app.caller(), "news@example.com", &[]).await, first);
    app.leave_work();
}

#[tokio::test]
async fn a_route_is_explained_without_sending() {
    let app = quiet().await;
    let resolve = format!("{PATH}/resolve");
    let asked = json!({ "from": "News <news@example.com>", "tags": ["a"] });
    let nothing = app.post(&resolve, &asked).await.data(200);
    assert_eq!(
        nothing,
        json!({
            "rule": null, "passedOver": [], "account": null, "domainVerified": false, "targets": [], "fallbacks": [], "refusal": "NO_ACTIVE_PROVIDER",
        })
    );
    let (first, second) = two_accounts(&app).await;
    let mut passed_over = Vec::new();
    for (change, reason) in [
        (json!({ "isActive": false }), "RULE_INACTIVE"),
        (json!({ "senderDomain": "*.example.com" }), "SENDER_DOMAIN"),
        (json!({ "tags": ["b"] }), "TAGS"),
        (json!({ "providerAccountId": first }), "PROVIDER_INACTIVE"),
    ] {
        let rule = create(&app, &with(&second, &change)).await;
        passed_over.push(json!({ "rule": rule, "reason": reason }));
    }
    let _off = app
        .patch(
            &format!("/v1/providers/{first}"),
            &json!({ "isActive": false }),
        )
        .await
        .data(200);
    let account = app.get(&format!("/v1/providers/{second}")).await.data(200);
    let mut expected = json!({
        "rule": null, "passedOver": passed_over, "account": account, "domainVerified": true, "targets": [], "fallbacks": [], "refusal": null,
    });
    assert_eq!(app.post(&resolve, &asked).await.data(200), expected);
    let rule = create(&app, &rule_for(&second)).await;
    create(&app, &rule_for(&second)).await;
    expected["rule"] = rule;
    assert_eq!(app.post(&resolve, &asked).await.data(200), expected);
    let unverified = app
        .post(&resolve, &json!({ "from": "news@elsewhere.example" }))
        .await
        .data(200);
    assert_eq!(
        (&unverified["domainVerified"], &unverified["refusal"]),
        (&json!(false), &json!("DOMAIN_NOT_VERIFIED"))
    );
    app.post(&resolve, &json!({ "tags": "a" }))
        .await
        .expect_issues(400, &["from", "tags"]);
    assert_eq!(
        app.get("/v1/messages").await.expect(200)["pagination"]["total"],
        0
    );
}

#[tokio::test]
async fn removing_an_account_removes_it_from_rules_and_deactivates_rules_without_another() {
    let app = quiet().await;
    let (first, second) = two_accounts(&app).await;
    let only = create(&app, &rule_for(&first)).await;
    let moved = create(
        &app,
        &with(&first, &json!({ "fallbackProviderAccountIds": [second] })),
    )
    .await;
    let behind = create(
        &app,
        &with(&second, &json!({ "fallbackProviderAccountIds": [first] })),
    )
    .await;
    let _removed = app
        .delete(&format!("/v1/providers/{first}"))
        .await
        .expect(200);
    for (rule, is_active, account) in [
        (&only, false, &first),
        (&moved, true, &second),
        (&behind, true, &second),
    ] {
        let shown = app.get(&path_of(rule)).await.data(200);
        assert_eq!(shown["isActive"], is_active, "{shown}");
        assert_eq!(
            (
                &shown["providerAccountId"],
                &shown["fallbackProviderAccountIds"]
            ),
            (&json!(account), &json!([]))
        );
    }
    let entry = &app
        .get("/v1/audit-logs?action=provider.deleted")
        .await
        .data(200)[0];
    assert_eq!(
        entry["metadata"],
        json!({ "routingRulesSwitchedOff": [only["id"]] })
    );
    // It may be renamed, but activated only with an existing account.
    let _renamed = app
        .patch(&path_of(&only), &json!({ "name": "Old" }))
        .await
        .data(200);
    app.patch(&path_of(&only), &json!({ "isActive": true }))
        .await
        .expect_issues(422, &["providerAccountId"]);
    let mended = app
        .patch(
            &path_of(&only),
            &json!({ "isActive": true, "providerAccountId": second }),
        )
        .await
        .data(200);
    assert_eq!(mended["isActive"], true);
}

#[tokio::test]
async fn another_process_sees_every_change_within_a_second() {
    let app = quiet().await;
    let (first, second) = two_accounts(&app).await;
    let other = app.start_another_api().await;
    let sees = async |account: &str| {
        let (other, account) = (&other, account.to_owned());
        let within = Duration::from_secs(1);
        assert!(
            wait_within(within, async || taken_by(other, "news@example.com", &[])
                .await
                == account)
            .await,
            "{account}"
        );
    };
    sees(&first).await;
    let rule = create(&app, &rule_for(&second)).await;
    sees(&second).await;
    let _off = app
        .patch(&path_of(&rule), &json!({ "isActive": false }))
        .await
        .data(200);
    sees(&first).await;
    let _off = app
        .patch(
            &format!("/v1/providers/{first}"),
            &json!({ "isActive": false }),
        )
        .await
        .data(200);
    sees(&second).await;
    let _on = app
        .patch(
            &format!("/v1/providers/{first}"),
            &json!({ "isActive": true }),
        )
        .await
        .data(200);
    sees(&first).await;
    let _on = app
        .patch(&path_of(&rule), &json!({ "isActive": true }))
        .await
        .data(200);
    sees(&second).await;
    let _removed = app.delete(&path_of(&rule)).await.expect(200);
    sees(&first).await;
    app.leave_work();
}

#[tokio::test]
async fn a_lost_connection_clears_the_cache() {
    let app = quiet().await;
    let (first, second) = two_accounts(&app).await;
    let other = app.start_another_api().await;
    assert_eq!(taken_by(&other, "news@example.com", &[]).await, first);
    // The listening connection dies, and no notification of the change arrives.
    app.execute(
        "ALTER TABLE routing_rules DISABLE TRIGGER routing_changed;
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND query LIKE 'LISTEN%'",
    )
    .await;
    create(&app, &rule_for(&second)).await;
    let within = Duration::from_secs(5);
    assert!(
        wait_within(within, async || taken_by(&other, "news@example.com", &[])
            .await
            == second)
        .await
    );
    app.leave_work();
}

#[tokio::test]
async fn organizations_have_their_own_rules() {
    let app = quiet().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    let rule = create(&app, &rule_for(&account)).await;
    let other = app.tenant("Other").await;
    assert_eq!(other.caller.get(PATH).await.data(200), json!([]));
    for path in [
        path_of(&rule),
        format!("{PATH}/{}", Uuid::nil()),
        format!("{PATH}/no-id"),
    ] {
        other.caller.get(&path).await.expect_error(404, "NOT_FOUND");
        other
            .caller
            .patch(&path, &json!({ "isActive": false }))
            .await
            .expect_error(404, "NOT_FOUND");
        other
            .caller
            .delete(&path)
            .await
            .expect_error(404, "NOT_FOUND");
    }
    let seen = other
        .caller
        .post(
            &format!("{PATH}/resolve"),
            &json!({ "from": "news@example.com" }),
        )
        .await
        .data(200);
    assert_eq!(
        (&seen["rule"], &seen["passedOver"], &seen["account"]),
        (&Value::Null, &json!([]), &Value::Null)
    );
    assert_eq!(app.get(&path_of(&rule)).await.data(200), rule);
}

#[tokio::test]
async fn changes_of_rules_and_removals_of_their_accounts_do_not_block_each_other() {
    let app = quiet().await;
    let kept = app.connect(ProviderType::Sendgrid).await;
    for _ in 0..10 {
        let removed = app.connect(ProviderType::Postmark).await;
        let rule = create(&app, &rule_for(&removed)).await;
        let path = path_of(&rule);
        let fallbacks = json!({ "fallbackProviderAccountIds": [&kept, &removed] });
        let main = json!({ "providerAccountId": &removed });
        let account = format!("/v1/providers/{removed}");
        let (one, other, removal) = tokio::join!(
            app.patch(&path, &fallbacks),
            app.patch(&path, &main),
            app.delete(&account),
        );
        for change in [one, other] {
            assert!([200, 422].contains(&change.status), "{change:?}");
        }
        assert_eq!(removal.status, 200, "{removal:?}");
        let rule = app.get(&path).await.data(200);
        let fallbacks = rule["fallbackProviderAccountIds"].as_array().unwrap();
        assert!(!fallbacks.contains(&json!(removed)), "{rule}");
    }
}
