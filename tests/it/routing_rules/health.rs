//! Rules that prefer healthy targets.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::routing::target_health::rating::rate_accounts;
use waypost_tests::{TestApp, message_to, wait_within};

use super::targets::{sharing, target};
use super::{PATH, create, path_of, quiet, two_accounts};

/// Counts attempts of an account to a domain in the quarter of an hour that is now.
async fn attempts(app: &TestApp, account: &str, domain: &str, (all, rejected): (u32, u32)) {
    let now = app.clock.now().to_rfc3339();
    let organization = app.organization_id();
    app.execute(&format!(
        "INSERT INTO attempt_quarters
         VALUES ('{organization}', '{account}', waypost_quarter('{now}'), '{domain}', -1, {all}, 0, {rejected}, 0)
         ON CONFLICT (provider_account_id, quarter, recipient_domain, accepted_in) DO UPDATE
         SET attempts = excluded.attempts, rejected = excluded.rejected"
    ))
    .await;
}

async fn rate(app: &TestApp) {
    rate_accounts(&app.pool, &app.clock).await.unwrap();
}

/// The percents and shares of the targets for a message to a domain.
async fn targets(app: &TestApp, domain: &str) -> Vec<(u64, f64)> {
    let message = json!({ "from": "news@example.com", "to": [format!("a@{domain}")] });
    let path = format!("{PATH}/resolve");
    let found = app.post(&path, &message).await.data(200);
    let targets = found["targets"].as_array().unwrap().iter();
    let shown = |target: &Value| {
        let share = target["share"].as_f64().unwrap();
        let share = (share * 1_000.0).round() / 1_000.0;
        (target["healthPercent"].as_u64().unwrap(), share)
    };
    targets.map(shown).collect()
}

#[tokio::test]
async fn a_target_whose_mail_fails_gets_little_of_it_until_it_is_good_again() {
    let app = quiet().await;
    let (first, second) = two_accounts(&app).await;
    let both = [target(&first, 1), target(&second, 1)];
    let rule = create(&app, &sharing(&both, &json!({ "prefer": "health" }))).await;
    assert_eq!(rule["prefer"], "health");
    attempts(&app, &first, "example.org", (100, 10)).await;
    rate(&app).await;
    assert_eq!(targets(&app, "example.org").await, [(100, 0.5), (100, 0.5)]);
    attempts(&app, &first, "example.org", (100, 11)).await;
    rate(&app).await;
    let bad = [(5, 0.048), (100, 0.952)];
    assert_eq!(targets(&app, "example.org").await, bad);
    assert_eq!(targets(&app, "example.net").await, bad);
    let mut taken = 0;
    for _ in 0..42 {
        let sent = app.post("/v1/send", &message_to("a@example.org")).await;
        taken += u32::from(sent.expect(202)["providerId"] == first);
    }
    assert!((1..=3).contains(&taken), "{taken}");
    app.leave_work();
    for percent in [10, 25, 50, 100] {
        app.advance(TimeDelta::minutes(76));
        rate(&app).await;
        assert_eq!(targets(&app, "example.org").await[0].0, percent);
    }
    attempts(&app, &first, "example.org", (100, 100)).await;
    attempts(&app, &second, "example.org", (100, 100)).await;
    rate(&app).await;
    assert_eq!(targets(&app, "example.org").await, [(5, 0.5), (5, 0.5)]);
    let by_weight = json!({ "prefer": "weight" });
    app.patch(&path_of(&rule), &by_weight).await.expect(200);
    assert_eq!(targets(&app, "example.org").await, [(100, 0.5), (100, 0.5)]);
    rate(&app).await;
    let rows = app
        .value("SELECT count(*) FROM account_health_factors")
        .await;
    assert_eq!(rows.as_deref(), Some("0"));
}

#[tokio::test]
async fn mail_to_one_domain_that_fails_lowers_the_weight_for_that_domain() {
    let app = quiet().await;
    let (first, second) = two_accounts(&app).await;
    let both = [target(&first, 3), target(&second, 1)];
    create(&app, &sharing(&both, &json!({ "prefer": "health" }))).await;
    attempts(&app, &first, "example.org", (100, 50)).await;
    attempts(&app, &first, "example.net", (900, 0)).await;
    rate(&app).await;
    let lowered = [(5, 0.13), (100, 0.87)];
    assert_eq!(targets(&app, "example.org").await, lowered);
    assert_eq!(
        targets(&app, "example.net").await,
        [(100, 0.75), (100, 0.25)]
    );
}

/// The domains whose mail a sticky rule gives to an account.
async fn domains_of(app: &TestApp, account: &str) -> BTreeSet<u32> {
    let mut domains = BTreeSet::new();
    for nth in 0..30 {
        let to = format!("a@domain{nth}.example");
        let message = json!({ "from": "news@example.com", "to": [to] });
        let found = app.post(&format!("{PATH}/resolve"), &message).await;
        if found.data(200)["account"]["id"] == account {
            domains.insert(nth);
        }
    }
    domains
}

#[tokio::test]
async fn of_a_sticky_rule_only_mail_of_the_target_that_fails_moves() {
    let app = quiet().await;
    let (first, second) = two_accounts(&app).await;
    let both = [target(&first, 10), target(&second, 10)];
    let terms = json!({ "prefer": "health", "sticky": "recipientDomain" });
    create(&app, &sharing(&both, &terms)).await;
    let before = domains_of(&app, &first).await;
    attempts(&app, &first, "example.org", (200, 200)).await;
    rate(&app).await;
    let after = domains_of(&app, &first).await;
    assert!(after.len() < before.len(), "{before:?} {after:?}");
    assert!(after.is_subset(&before), "{before:?} {after:?}");
}

#[tokio::test]
async fn bounces_and_deferrals_count_as_failures_and_not_twice() {
    let app = quiet().await;
    let (first, second) = two_accounts(&app).await;
    let both = [target(&first, 1), target(&second, 1)];
    create(&app, &sharing(&both, &json!({ "prefer": "health" }))).await;
    let (now, organization) = (app.clock.now().to_rfc3339(), app.organization_id());
    let bounces = async |account: &str, bounced: u32| {
        app.execute(&format!(
            "INSERT INTO metric_deltas (organization_id, quarter, account, domain, template, tags, recipient_domain,
                                        sent, delivered, opened, clicked, bounced, complained, unsubscribed)
             VALUES ('{organization}', waypost_quarter('{now}'), '{account}', 'example.com', '', '{{a,b}}',
                     'example.org', 0, 0, 0, 0, {bounced}, 0, 0)"
        ))
        .await;
    };
    attempts(&app, &first, "example.org", (100, 8)).await;
    attempts(&app, &second, "example.org", (100, 8)).await;
    bounces(&first, 8).await;
    bounces(&second, 8).await;
    rate(&app).await;
    assert_eq!(targets(&app, "example.org").await[0].0, 100);
    bounces(&first, 3).await;
    app.execute(&format!(
        "INSERT INTO deferral_deltas
         VALUES ('{organization}', '{second}', waypost_quarter('{now}'), 'example.org', 3)"
    ))
    .await;
    rate(&app).await;
    assert_eq!(targets(&app, "example.org").await, [(5, 0.5), (5, 0.5)]);
}

#[tokio::test]
async fn other_processes_and_simulations_learn_of_the_health() {
    let app = quiet().await;
    let (first, second) = two_accounts(&app).await;
    let both = [target(&first, 1), target(&second, 1)];
    create(&app, &sharing(&both, &json!({ "prefer": "health" }))).await;
    let send = async || {
        let sent = app.post("/v1/send", &message_to("a@example.org")).await;
        sent.expect(202)["providerId"] == first
    };
    let mut taken = 0;
    for _ in 0..40 {
        taken += u32::from(send().await);
    }
    // Half. The sequence begins anywhere; from one start in forty it is two off.
    assert!((18..=22).contains(&taken), "{taken}");
    attempts(&app, &first, "example.org", (200, 200)).await;
    rate(&app).await;
    let learned = wait_within(Duration::from_secs(10), async || {
        let mut taken = 0;
        for _ in 0..20 {
            taken += u32::from(send().await);
        }
        taken <= 2
    })
    .await;
    assert!(learned);
    app.leave_work();
    app.advance(TimeDelta::seconds(1));
    let path = format!("{PATH}/simulate");
    let simulated = app.post(&path, &json!({})).await.data(200);
    let all = simulated["recipients"].as_u64().unwrap();
    let target = &simulated["rules"][0]["targets"][0];
    let of_first = target["recipients"].as_u64().unwrap();
    assert!(of_first * 20 <= all + 20, "{simulated}");
}

#[tokio::test]
async fn only_the_accounts_of_active_rules_that_prefer_healthy_targets_are_rated() {
    let app = quiet().await;
    let (first, second) = two_accounts(&app).await;
    let both = [target(&first, 1), target(&second, 1)];
    let rule = create(&app, &sharing(&both, &json!({}))).await;
    attempts(&app, &first, "example.org", (200, 200)).await;
    let percents = async || {
        rate(&app).await;
        let percents =
            "SELECT string_agg(recipient_domain || ' ' || percent, ',' ORDER BY recipient_domain)
                        FROM account_health_factors";
        app.value(percents).await
    };
    assert_eq!(percents().await, None);
    let path = path_of(&rule);
    let refused = app.patch(&path, &json!({ "prefer": "speed" })).await;
    let issues = refused.expect(400)["error"]["details"]["issues"].clone();
    assert_eq!(issues[0]["path"], "prefer");
    app.patch(&path, &json!({ "prefer": "health" }))
        .await
        .expect(200);
    assert_eq!(percents().await.as_deref(), Some(" 5,example.org 5"));
    app.patch(&path, &json!({ "isActive": false }))
        .await
        .expect(200);
    assert_eq!(percents().await, None);
    let log = app.get("/v1/audit-logs?action=routing_rule.updated").await;
    let fields = log.expect(200)["data"][1]["metadata"]["fields"].clone();
    assert_eq!(fields, json!(["prefer"]));
}
