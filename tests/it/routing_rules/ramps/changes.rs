//! What a change of the rule makes of its ramps, and what is wrong with one.

use chrono::{Days, TimeDelta};
use serde_json::{Value, json};

use super::super::caps::capped;
use super::super::targets::{sharing, target};
use super::super::{PATH, create, path_of, quiet, two_accounts};
use super::{at, first_ramp, next_day, noon, progress, ramp, ramped, state, today, with_ramp};

#[tokio::test]
async fn a_change_of_the_ramp_begins_it_anew_and_no_other_change_does() {
    let given = ramp(100, 2.0, 1);
    let (app, account, rule) = with_ramp(&given, &json!({})).await;
    for _ in 0..2 {
        next_day(&app).await;
    }
    let grown = first_ramp(&app, &rule).await;
    assert_eq!(grown["cap"], 400);
    let path = path_of(&rule);
    let shown = app.get(&path).await.data(200);
    let from = shown["targets"][0]["ramp"]["from"].clone();
    assert_eq!(from, json!((today(&app) - Days::new(2)).to_string()));
    let heavier = |ramp: &Value| json!({ "providerAccountId": account, "weight": 9, "dailyCap": 5_000, "hourlyCap": 50, "ramp": ramp });
    for change in [
        json!({ "name": "Another", "isActive": false, "overCap": "wait", "rampBounds": { "bounceRate": 0.1 } }),
        json!({ "targets": shown["targets"] }),
        json!({ "targets": [heavier(&given)] }),
        json!({ "isActive": true, "targets": [heavier(&shown["targets"][0]["ramp"])] }),
    ] {
        let changed = app.patch(&path, &change).await.data(200);
        assert_eq!(changed["targets"][0]["ramp"]["from"], from, "{change}");
        assert_eq!(first_ramp(&app, &rule).await, grown, "{change}");
    }
    let yesterday = json!((today(&app) - Days::new(1)).to_string());
    for (field, value, cap) in [
        ("start", json!(60), 60),
        ("factor", json!(3), 100),
        ("everyDays", json!(2), 100),
        ("from", yesterday, 200),
    ] {
        let mut other = given.clone();
        other[field] = value;
        let change = json!({ "targets": [ramped(&account, &other)] });
        app.patch(&path, &change).await.data(200);
        let begun = first_ramp(&app, &rule).await;
        assert_eq!(
            (&begun["cap"], &begun["steps"]),
            (&json!(cap), &json!([])),
            "{field}"
        );
        assert_eq!(begun["state"], "growing", "{field}");
    }
}

#[tokio::test]
async fn a_finished_ramp_goes_on_if_the_daily_cap_is_raised() {
    let given = ramp(100, 2.0, 1);
    let (app, account, _) = with_ramp(&given, &json!({})).await;
    let under = |cap: u32| capped(&account, &json!({ "ramp": given, "dailyCap": cap }));
    let rule = create(&app, &sharing(&[under(150)], &json!({}))).await;
    next_day(&app).await;
    assert_eq!(state(&app, &rule).await, at(150, "finished"));
    app.advance(TimeDelta::days(30));
    let change = json!({ "targets": [under(1_000)] });
    app.patch(&path_of(&rule), &change).await.data(200);
    assert_eq!(state(&app, &rule).await, at(200, "growing"));
    assert_eq!(progress(&app, &rule).await[0]["dailyCap"], 200);
    app.step_ramps().await;
    assert_eq!(state(&app, &rule).await, at(200, "growing"));
    next_day(&app).await;
    assert_eq!(state(&app, &rule).await, at(400, "growing"));
    // A lower one finishes it.
    let change = json!({ "targets": [under(300)] });
    app.patch(&path_of(&rule), &change).await.data(200);
    assert_eq!(progress(&app, &rule).await[0]["dailyCap"], 300);
    app.step_ramps().await;
    assert_eq!(state(&app, &rule).await, at(300, "finished"));
}

#[tokio::test]
async fn without_its_target_its_account_or_its_rule_a_ramp_is_gone() {
    let app = quiet().await;
    noon(&app);
    let (first, second) = two_accounts(&app).await;
    let given = ramp(100, 2.0, 1);
    let both = [ramped(&first, &given), ramped(&second, &given)];
    let of = async |change: Value| {
        let rule = create(&app, &sharing(&both, &json!({}))).await;
        app.patch(&path_of(&rule), &change).await.data(200);
        rule
    };
    let ramps =
        "SELECT string_agg(provider_account_id::text, ' ' ORDER BY rule_id, provider_account_id)
                 FROM routing_ramps";
    let without = of(json!({ "targets": [target(&first, 1), ramped(&second, &given)] })).await;
    assert_eq!(app.value(ramps).await.as_ref(), Some(&second));
    assert_eq!(first_ramp(&app, &without).await, Value::Null);
    assert_eq!(progress(&app, &without).await[0]["dailyCap"], Value::Null);
    app.delete(&path_of(&without)).await.expect(200);
    let single = of(json!({ "providerAccountId": first })).await;
    assert_eq!(app.value(ramps).await, None);
    assert_eq!(progress(&app, &single).await, Vec::<Value>::new());
    let left = of(json!({})).await;
    app.delete(&format!("/v1/providers/{second}"))
        .await
        .expect(200);
    assert_eq!(app.value(ramps).await.as_ref(), Some(&first));
    next_day(&app).await;
    let shown = progress(&app, &left).await;
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0]["ramp"]["cap"], 200);
}

/// Values that a field of a ramp must not have.
fn wrong(field: &str) -> Vec<Value> {
    match field {
        "start" => vec![
            json!(0),
            json!(100_000_001),
            json!(1.5),
            json!("1"),
            Value::Null,
        ],
        "factor" => vec![
            json!(1),
            json!(1.009),
            json!(10.01),
            json!("2"),
            Value::Null,
        ],
        "everyDays" => vec![json!(0), json!(31), json!(1.5), Value::Null],
        _ => ["tomorrow", "2026-02-30", "2026-2-3", "2026-11-28T00:00:00Z"]
            .map(Value::from)
            .to_vec(),
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_ramp_is_named() {
    let app = quiet().await;
    let (first, second) = two_accounts(&app).await;
    for field in ["start", "factor", "everyDays", "from"] {
        for value in wrong(field) {
            let mut ramp = ramp(100, 1.5, 1);
            ramp[field] = value;
            let targets = [target(&first, 1), ramped(&second, &ramp)];
            let reply = app.post(PATH, &sharing(&targets, &json!({}))).await;
            reply.expect_issues(400, &[&format!("targets.1.ramp.{field}")]);
        }
    }
    for no_ramp in [json!(1), json!([]), json!("steep")] {
        let body = sharing(&[ramped(&first, &no_ramp)], &json!({}));
        app.post(PATH, &body)
            .await
            .expect_issues(400, &["targets.0.ramp"]);
    }
    let all = json!({ "start": 0, "factor": 1, "everyDays": 31, "from": "" });
    let bounds = json!({ "rampBounds": { "bounceRate": 0, "complaintRate": 1.1 } });
    let reply = app
        .post(PATH, &sharing(&[ramped(&first, &all)], &bounds))
        .await;
    let paths = [
        "rampBounds.bounceRate",
        "rampBounds.complaintRate",
        "targets.0.ramp.everyDays",
        "targets.0.ramp.factor",
        "targets.0.ramp.from",
        "targets.0.ramp.start",
    ];
    reply.expect_issues(400, &paths);
    let rule = create(&app, &sharing(&[target(&first, 1)], &json!({}))).await;
    let unfinished = [ramped(&first, &json!({ "start": 1, "factor": 2 }))];
    for (change, path) in [
        (json!({ "rampBounds": null }), "rampBounds"),
        (
            json!({ "rampBounds": { "bounceRate": -0.1 } }),
            "rampBounds.bounceRate",
        ),
        (json!({ "targets": unfinished }), "targets.0.ramp.everyDays"),
    ] {
        let reply = app.patch(&path_of(&rule), &change).await;
        reply.expect_issues(400, &[path]);
    }
}
