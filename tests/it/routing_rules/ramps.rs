//! Ramps: daily caps that begin small and grow by steps, as long as the rates of the account are
//! good. Steps are made by the clock of the test; the days of the caps are those of Postgres.

mod changes;
mod rates;
mod sending;

use chrono::{Days, NaiveDate, TimeDelta, TimeZone as _, Utc};
use futures_util::future::join_all;
use serde_json::{Value, json};
use waypost_core::ids::Ids;
use waypost_core::provider::kind::ProviderType;
use waypost_core::routing::ramp::steps;
use waypost_tests::{TestApp, wait_until};

use super::caps::capped;
use super::targets::sharing;
use super::{PATH, create, path_of, quiet};

/// A ramp that begins today.
fn ramp(start: u32, factor: f64, every_days: u32) -> Value {
    json!({ "start": start, "factor": factor, "everyDays": every_days })
}

fn ramped(account: &str, ramp: &Value) -> Value {
    capped(account, &json!({ "ramp": ramp }))
}

fn today(app: &TestApp) -> NaiveDate {
    app.clock.now().date_naive()
}

/// Moves the clock to noon of the next day, so that the minutes after it are of the same day.
fn noon(app: &TestApp) {
    let next = today(app) + Days::new(1);
    let noon = Utc.from_utc_datetime(&next.and_hms_opt(12, 0, 0).unwrap());
    app.advance(noon - app.clock.now());
}

async fn next_day(app: &TestApp) {
    app.advance(TimeDelta::days(1));
    app.step_ramps().await;
}

/// An app at noon with an account, and a rule in which it has a ramp.
async fn with_ramp(ramp: &Value, change: &Value) -> (TestApp, String, Value) {
    let app = quiet().await;
    noon(&app);
    let account = app.connect(ProviderType::Sendgrid).await;
    let rule = create(&app, &sharing(&[ramped(&account, ramp)], change)).await;
    (app, account, rule)
}

/// What became of mails of an account, now.
async fn count(app: &TestApp, account: &str, [sent, bounced, complained]: [u32; 3]) {
    let (organization, now) = (app.organization_id(), app.clock.now().to_rfc3339());
    app.execute(&format!(
        "INSERT INTO metric_deltas (organization_id, quarter, account, domain, template, sent, delivered, opened,
                                    clicked, bounced, complained, unsubscribed)
         VALUES ('{organization}', waypost_quarter('{now}'), '{account}', 'example.com', '', {sent}, {sent}, 0, 0,
                 {bounced}, {complained}, 0)"
    ))
    .await;
}

async fn progress(app: &TestApp, rule: &Value) -> Vec<Value> {
    let path = format!("{}/progress", path_of(rule));
    let found = app.get(&path).await.data(200);
    found["targets"].as_array().unwrap().clone()
}

/// The ramp of the first target.
async fn first_ramp(app: &TestApp, rule: &Value) -> Value {
    progress(app, rule).await[0]["ramp"].clone()
}

/// Cap and state of the ramp of the first target.
async fn state(app: &TestApp, rule: &Value) -> (u64, String) {
    let ramp = first_ramp(app, rule).await;
    let state = ramp["state"].as_str().unwrap().to_owned();
    (ramp["cap"].as_u64().unwrap(), state)
}

fn at(cap: u64, state: &str) -> (u64, String) {
    (cap, state.to_owned())
}

/// The actions of a ramp's history, the oldest first.
fn actions(ramp: &Value) -> Vec<String> {
    let steps = ramp["steps"].as_array().unwrap().iter().rev();
    steps
        .map(|step| step["action"].as_str().unwrap().to_owned())
        .collect()
}

/// What the audit log has of ramps, the oldest first.
async fn logged(app: &TestApp) -> Vec<Value> {
    let log = app.get("/v1/audit-logs?targetType=routing_rule&limit=100");
    let log = log.await.data(200);
    let entries = log.as_array().unwrap().iter().rev();
    let is_of_ramp = |entry: &&Value| entry["action"].as_str().unwrap().contains(".ramp_");
    entries.filter(is_of_ramp).cloned().collect()
}

#[tokio::test]
async fn the_cap_of_a_day_is_the_start_times_the_factor_for_each_step() {
    let app = quiet().await;
    noon(&app);
    // Factors in hundredths.
    let cases: [(u32, u32, u32, u64); 4] = [
        (50, 150, 1, 1_000),
        (3, 101, 1, 4),
        (100, 1_000, 4, 5_000),
        (7, 133, 2, 20),
    ];
    let mut targets = Vec::new();
    for (start, hundredths, every_days, daily_cap) in cases {
        let account = app.connect(ProviderType::Sendgrid).await;
        let ramp = ramp(start, f64::from(hundredths) / 100.0, every_days);
        targets.push(capped(
            &account,
            &json!({ "ramp": ramp, "dailyCap": daily_cap }),
        ));
    }
    let rule = create(&app, &sharing(&targets, &json!({}))).await;
    for day in 0..12_u32 {
        for _ in 0..2 {
            app.step_ramps().await;
        }
        let asked = json!({ "from": "news@example.com" });
        let resolved = app.post(&format!("{PATH}/resolve"), &asked).await.data(200);
        let shown = progress(&app, &rule).await;
        for (index, (start, hundredths, every_days, daily_cap)) in cases.into_iter().enumerate() {
            let steps = day / every_days;
            let grown = u128::from(start) * u128::from(hundredths).pow(steps);
            let cap = u64::try_from(grown / 100_u128.pow(steps)).unwrap();
            let expected = cap.min(daily_cap);
            let state = if cap >= daily_cap {
                "finished"
            } else {
                "growing"
            };
            let case = format!("target {index}, day {day}: {}", shown[index]);
            assert_eq!(shown[index]["dailyCap"], json!(expected), "{case}");
            assert_eq!(shown[index]["ramp"]["cap"], json!(expected), "{case}");
            assert_eq!(shown[index]["ramp"]["state"], state, "{case}");
            assert_eq!(
                resolved["targets"][index]["dailyCap"],
                json!(expected),
                "{case}"
            );
            assert_eq!(resolved["targets"][index]["rampState"], state, "{case}");
        }
        app.advance(TimeDelta::days(1));
    }
}

#[tokio::test]
async fn a_ramp_without_a_daily_cap_ends_at_the_highest_cap_and_then_there_is_none() {
    let (app, _, rule) = with_ramp(&ramp(20_000_000, 4.0, 1), &json!({})).await;
    assert_eq!(progress(&app, &rule).await[0]["dailyCap"], 20_000_000);
    next_day(&app).await;
    assert_eq!(state(&app, &rule).await, at(80_000_000, "growing"));
    next_day(&app).await;
    assert_eq!(state(&app, &rule).await, at(100_000_000, "finished"));
    let shown = &progress(&app, &rule).await[0];
    assert_eq!(
        (&shown["dailyCap"], &shown["ramp"]["nextStepOn"]),
        (&Value::Null, &Value::Null)
    );
    let expected = ["step", "finish"];
    assert_eq!(actions(&shown["ramp"]), expected);
}

#[tokio::test]
async fn a_ramp_whose_first_day_is_over_begins_where_it_would_be_now() {
    let app = quiet().await;
    noon(&app);
    let account = app.connect(ProviderType::Sendgrid).await;
    for (days, cap, next) in [(0, 10, 3), (2, 10, 1), (3, 20, 3), (10, 80, 2)] {
        let mut ramp = ramp(10, 2.0, 3);
        ramp["from"] = json!((today(&app) - Days::new(days)).to_string());
        let rule = create(&app, &sharing(&[ramped(&account, &ramp)], &json!({}))).await;
        app.step_ramps().await;
        assert_eq!(state(&app, &rule).await, at(cap, "growing"), "{days}");
        let next = today(&app) + Days::new(next);
        let shown = first_ramp(&app, &rule).await;
        assert_eq!(shown["nextStepOn"], json!(next.to_string()), "{days}");
        assert_eq!(shown["steps"], json!([]), "{days}");
    }
}

#[tokio::test]
async fn each_step_is_in_the_audit_log_and_in_the_progress() {
    let mut later = ramp(100, 2.0, 1);
    let (app, account, _) = with_ramp(&later, &json!({})).await;
    later["from"] = json!((today(&app) + Days::new(1)).to_string());
    let capped = capped(&account, &json!({ "ramp": later, "dailyCap": 300 }));
    let rule = create(&app, &sharing(&[capped], &json!({}))).await;
    assert_eq!(
        logged(&app).await,
        [] as [Value; 0],
        "a new ramp makes no step"
    );
    next_day(&app).await;
    next_day(&app).await;
    count(&app, &account, [1_000, 200, 0]).await;
    app.step_ramps().await;
    for _ in 0..3 {
        app.advance(TimeDelta::days(8));
        app.step_ramps().await;
    }
    let shown = first_ramp(&app, &rule).await;
    let made = [
        ("begin", 0, 100, "routing_rule.ramp_begun"),
        ("step", 100, 200, "routing_rule.ramp_stepped"),
        ("halve", 200, 100, "routing_rule.ramp_halved"),
        ("resume", 100, 100, "routing_rule.ramp_resumed"),
        ("step", 100, 200, "routing_rule.ramp_stepped"),
        ("finish", 200, 300, "routing_rule.ramp_finished"),
    ];
    let steps: Vec<&Value> = shown["steps"].as_array().unwrap().iter().rev().collect();
    let log = logged(&app).await;
    let of_rule = log
        .iter()
        .filter(|entry| entry["target"]["id"] == rule["id"]);
    let log: Vec<&Value> = of_rule.collect();
    assert_eq!(
        (steps.len(), log.len()),
        (made.len(), made.len()),
        "{shown}"
    );
    for ((action, before, after, logged), (step, entry)) in
        made.into_iter().zip(steps.into_iter().zip(log))
    {
        assert_eq!(step["action"], action);
        assert_eq!(
            (&step["capBefore"], &step["capAfter"]),
            (&json!(before), &json!(after))
        );
        assert_eq!(entry["action"], logged);
        assert_eq!(entry["actor"]["type"], "system");
        assert_eq!(
            entry["metadata"],
            json!({
                "providerAccountId": account, "capBefore": before, "capAfter": after,
                "bounceRate": step["bounceRate"], "complaintRate": step["complaintRate"],
            })
        );
    }
}

#[tokio::test]
async fn the_progress_keeps_the_newest_50_steps() {
    let (app, _, rule) = with_ramp(&ramp(1, 1.1, 1), &json!({})).await;
    for _ in 0..55 {
        next_day(&app).await;
    }
    let shown = first_ramp(&app, &rule).await;
    let steps = shown["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 50);
    let times: Vec<&str> = steps
        .iter()
        .map(|step| step["at"].as_str().unwrap())
        .collect();
    assert!(times.is_sorted_by(|one, next| one > next));
    assert_eq!(steps[0]["capAfter"], shown["cap"]);
}

#[tokio::test]
async fn several_schedulers_make_a_step_once_and_one_that_dies_makes_none() {
    let (app, account, rule) = with_ramp(&ramp(100, 2.0, 1), &json!({})).await;
    for _ in 0..19 {
        create(
            &app,
            &sharing(&[ramped(&account, &ramp(100, 2.0, 1))], &json!({})),
        )
        .await;
    }
    app.advance(TimeDelta::days(1));
    let blocked = app.block_writes("audit_logs").await;
    let make = || {
        let (pool, clock) = (app.pool.clone(), app.clock.clone());
        let ids = Ids::new(clock.clone());
        tokio::spawn(async move { steps::make_due(&pool, &clock, &ids).await })
    };
    let dying = make();
    wait_until("the step waits for its record", async || {
        app.lock_waits().await == 1
    })
    .await;
    app.end_lock_waits().await;
    assert!(dying.await.unwrap().is_err());
    drop(blocked);
    assert_eq!(state(&app, &rule).await, at(100, "growing"));
    for made in join_all((0..4).map(|_| make())).await {
        made.unwrap().unwrap();
    }
    let caps = "SELECT string_agg(DISTINCT cap || ' ' || jsonb_array_length(history), ',') FROM routing_ramps";
    assert_eq!(app.value(caps).await.as_deref(), Some("200 1"));
    assert_eq!(logged(&app).await.len(), 20);
}

#[tokio::test]
async fn a_scheduler_that_is_killed_and_started_again_makes_a_step_once() {
    let app = TestApp::builder()
        .processes()
        .without_worker()
        .start()
        .await;
    let _api = app.spawn_api().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    let given = ramp(100, 2.0, 3);
    let rule = create(&app, &sharing(&[ramped(&account, &given)], &json!({}))).await;
    app.execute("UPDATE routing_ramps SET stepped_on = stepped_on - 3")
        .await;
    let mut scheduler = app.spawn_scheduler();
    wait_until("the step is made", async || {
        state(&app, &rule).await == at(200, "growing")
    })
    .await;
    scheduler.kill().await;
    app.execute("UPDATE scheduler_tasks SET last_succeeded_at = NULL")
        .await;
    let _next = app.spawn_scheduler();
    wait_until("the next has run the task", async || {
        app.value("SELECT last_succeeded_at FROM scheduler_tasks WHERE name = 'step-ramps'")
            .await
            .is_some()
    })
    .await;
    assert_eq!(state(&app, &rule).await, at(200, "growing"));
    assert_eq!(actions(&first_ramp(&app, &rule).await), ["step"]);
}

#[tokio::test]
async fn after_days_without_a_scheduler_a_ramp_makes_one_step() {
    let (app, _, rule) = with_ramp(&ramp(100, 2.0, 1), &json!({})).await;
    app.advance(TimeDelta::days(5));
    assert_eq!(state(&app, &rule).await, at(100, "growing"));
    for _ in 0..3 {
        app.step_ramps().await;
    }
    assert_eq!(state(&app, &rule).await, at(200, "growing"));
    next_day(&app).await;
    assert_eq!(state(&app, &rule).await, at(400, "growing"));
}
