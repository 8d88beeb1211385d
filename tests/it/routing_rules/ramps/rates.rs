//! The rates that ramps mind: those of the account, against the bounds of the rule.

use chrono::{Days, TimeDelta};
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;

use super::super::targets::sharing;
use super::super::{create, path_of};
use super::{actions, at, count, first_ramp, next_day, ramp, ramped, state, today, with_ramp};

#[tokio::test]
async fn a_rate_beyond_its_bound_holds_the_ramp_until_it_is_good_again() {
    for bad in [[1_000, 60, 0], [1_000, 0, 2]] {
        let (app, account, rule) = with_ramp(&ramp(100, 2.0, 1), &json!({})).await;
        next_day(&app).await;
        assert_eq!(state(&app, &rule).await, at(200, "growing"));
        count(&app, &account, bad).await;
        app.step_ramps().await;
        assert_eq!(state(&app, &rule).await, at(200, "held"), "{bad:?}");
        let since = first_ramp(&app, &rule).await["since"].clone();
        // The bad mails are still of the last 24 hours.
        app.advance(TimeDelta::hours(23));
        app.step_ramps().await;
        assert_eq!(state(&app, &rule).await, at(200, "held"));
        let shown = first_ramp(&app, &rule).await;
        assert_eq!(
            (&shown["since"], &shown["nextStepOn"]),
            (&since, &Value::Null)
        );
        assert_eq!(shown["sent"], 1_000);
        count(&app, &account, [2_000, 0, 0]).await;
        app.advance(TimeDelta::hours(2));
        // The step of the day was due while it was held.
        app.step_ramps().await;
        assert_eq!(state(&app, &rule).await, at(400, "growing"));
        let shown = first_ramp(&app, &rule).await;
        assert_eq!(actions(&shown), ["step", "hold", "resume", "step"]);
        let next = today(&app) + Days::new(1);
        assert_eq!(shown["nextStepOn"], json!(next.to_string()));
    }
}

#[tokio::test]
async fn a_rate_close_to_its_bound_changes_the_state_once_a_day() {
    let (app, account, rule) = with_ramp(&ramp(100, 2.0, 5), &json!({})).await;
    count(&app, &account, [1_000, 51, 0]).await;
    for _ in 0..5 {
        app.step_ramps().await;
        assert_eq!(state(&app, &rule).await, at(100, "held"));
        count(&app, &account, [1_000, 0, 0]).await;
        app.advance(TimeDelta::minutes(1));
    }
    next_day(&app).await;
    assert_eq!(state(&app, &rule).await, at(100, "growing"));
    assert_eq!(actions(&first_ramp(&app, &rule).await), ["hold", "resume"]);
}

#[tokio::test]
async fn a_rate_beyond_twice_its_bound_halves_the_cap_once_a_day_and_not_below_the_start() {
    let mut grown = ramp(100, 2.0, 1);
    let (app, account, _) = with_ramp(&grown, &json!({})).await;
    grown["from"] = json!((today(&app) - Days::new(2)).to_string());
    let rule = create(&app, &sharing(&[ramped(&account, &grown)], &json!({}))).await;
    assert_eq!(state(&app, &rule).await, at(400, "growing"));
    count(&app, &account, [1_000, 101, 0]).await;
    for _ in 0..3 {
        app.step_ramps().await;
        assert_eq!(state(&app, &rule).await, at(200, "held"));
        app.advance(TimeDelta::hours(7));
        count(&app, &account, [1_000, 101, 0]).await;
    }
    app.advance(TimeDelta::hours(4));
    for day in 0..3 {
        app.step_ramps().await;
        assert_eq!(state(&app, &rule).await, at(100, "held"), "{day}");
        app.advance(TimeDelta::days(1));
        count(&app, &account, [1_000, 101, 0]).await;
    }
    // Nothing bad any more: the next step is a day after the last halving.
    app.advance(TimeDelta::days(8));
    app.step_ramps().await;
    assert_eq!(state(&app, &rule).await, at(200, "growing"));
    let shown = first_ramp(&app, &rule).await;
    assert_eq!(actions(&shown), ["halve", "halve", "resume", "step"]);
    let halved = &shown["steps"][3];
    assert_eq!(
        (&halved["capBefore"], &halved["capAfter"]),
        (&json!(400), &json!(200))
    );
    assert_eq!(
        (&halved["bounceRate"], &halved["complaintRate"]),
        (&json!(0.101), &json!(0.0))
    );
    assert_eq!(
        shown["bounceRate"],
        Value::Null,
        "nothing was sent in the last week"
    );
}

#[tokio::test]
async fn each_rule_has_bounds_of_its_own() {
    let (app, account, default) = with_ramp(&ramp(100, 2.0, 1), &json!({})).await;
    let bounds = json!({ "rampBounds": { "bounceRate": 0.2 } });
    let of = [ramped(&account, &ramp(100, 2.0, 1))];
    let wide = create(&app, &sharing(&of, &bounds)).await;
    assert_eq!(
        wide["rampBounds"],
        json!({ "bounceRate": 0.2, "complaintRate": 0.001 })
    );
    let bounds = json!({ "rampBounds": { "bounceRate": 0.01, "complaintRate": 1 } });
    let narrow = create(&app, &sharing(&of, &bounds)).await;
    count(&app, &account, [1_000, 60, 0]).await;
    app.step_ramps().await;
    assert_eq!(state(&app, &default).await, at(100, "held"));
    assert_eq!(state(&app, &wide).await, at(100, "growing"));
    assert_eq!(state(&app, &narrow).await, at(100, "held"));
    // A change of one keeps the other, and holds at once.
    let change = json!({ "rampBounds": { "bounceRate": 0.05 } });
    let changed = app.patch(&path_of(&wide), &change).await.data(200);
    assert_eq!(
        changed["rampBounds"],
        json!({ "bounceRate": 0.05, "complaintRate": 0.001 })
    );
    app.step_ramps().await;
    assert_eq!(state(&app, &wide).await, at(100, "held"));
}

#[tokio::test]
async fn the_mail_of_the_account_counts_and_no_other() {
    let (app, account, rule) = with_ramp(&ramp(100, 2.0, 1), &json!({})).await;
    let other = app.connect(ProviderType::Sendgrid).await;
    count(&app, &other, [1_000, 1_000, 0]).await;
    let tenant = app.tenant("Others").await;
    app.execute(&format!(
        "INSERT INTO metric_deltas (organization_id, quarter, account, domain, template, sent, delivered, opened,
                                    clicked, bounced, complained, unsubscribed)
         VALUES ('{}', waypost_quarter('{}'), '{account}', 'example.com', '', 1000, 0, 0, 0, 1000, 0, 0)",
        tenant.organization_id,
        app.clock.now().to_rfc3339(),
    ))
    .await;
    app.step_ramps().await;
    assert_eq!(state(&app, &rule).await, at(100, "growing"));
    assert_eq!(first_ramp(&app, &rule).await["sent"], 0);
    let path = format!("{}/progress", path_of(&rule));
    tenant
        .caller
        .get(&path)
        .await
        .expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn few_mails_hold_nothing_and_if_a_day_has_few_those_of_a_week_count() {
    let (app, account, rule) = with_ramp(&ramp(100, 2.0, 30), &json!({})).await;
    count(&app, &account, [50, 20, 20]).await;
    app.step_ramps().await;
    assert_eq!(state(&app, &rule).await, at(100, "growing"));
    let shown = first_ramp(&app, &rule).await;
    assert_eq!(
        (&shown["bounceRate"], &shown["sent"]),
        (&Value::Null, &json!(50))
    );
    app.advance(TimeDelta::days(3));
    count(&app, &account, [49, 0, 0]).await;
    app.step_ramps().await;
    assert_eq!(state(&app, &rule).await, at(100, "growing"), "99 in a week");
    count(&app, &account, [1, 0, 0]).await;
    app.step_ramps().await;
    assert_eq!(state(&app, &rule).await, at(100, "held"), "100 in a week");
    assert_eq!(first_ramp(&app, &rule).await["bounceRate"], json!(0.2));
    // A good day counts for itself.
    app.advance(TimeDelta::days(1));
    count(&app, &account, [100, 0, 0]).await;
    app.step_ramps().await;
    assert_eq!(state(&app, &rule).await, at(100, "growing"));
    assert_eq!(first_ramp(&app, &rule).await["bounceRate"], json!(0.0));
}
