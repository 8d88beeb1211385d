//! What workers send of the mail of a rule with ramps.

use chrono::{Days, TimeDelta};
use serde_json::json;
use waypost_tests::TestApp;

use super::super::caps::{addresses, end_windows, send_all, taken};
use super::super::targets::{sharing, target};
use super::super::{PATH, create, path_of, two_accounts};
use super::{actions, at, count, first_ramp, next_day, noon, progress, ramp, ramped, state, today};

/// Waits until the accounts took so many of the mails. A worker that looked before the step looks
/// again after five minutes or more, up to half an hour for mail of this age.
async fn drain_until_taken(app: &TestApp, addresses: &[String], wanted: [usize; 2]) {
    for _ in 0..15 {
        app.advance_and_drain(TimeDelta::minutes(6)).await;
        if taken(app, addresses) == wanted {
            return;
        }
    }
    assert_eq!(taken(app, addresses), wanted);
}

#[tokio::test]
async fn before_its_first_day_a_target_gets_nothing() {
    let app = TestApp::start().await;
    noon(&app);
    let (first, second) = two_accounts(&app).await;
    let tomorrow = today(&app) + Days::new(1);
    let mut begins = ramp(3, 2.0, 1);
    begins["from"] = json!(tomorrow.to_string());
    let targets = [ramped(&first, &begins), target(&second, 1)];
    let rule = create(&app, &sharing(&targets, &json!({ "overCap": "wait" }))).await;
    app.step_ramps().await;
    assert_eq!(state(&app, &rule).await, at(0, "notBegun"));
    assert_eq!(
        first_ramp(&app, &rule).await["nextStepOn"],
        json!(tomorrow.to_string())
    );
    let asked = json!({ "from": "news@example.com" });
    let resolved = app.post(&format!("{PATH}/resolve"), &asked).await.data(200);
    let shown = &resolved["targets"][0];
    assert_eq!(shown["passedOver"], "RAMP_NOT_BEGUN");
    assert_eq!(
        (&shown["share"], &shown["dailyCap"]),
        (&json!(0.0), &json!(0))
    );
    assert_eq!(resolved["targets"][1]["share"], json!(1.0));
    let sent = addresses("a", 6);
    send_all(&app, &sent).await;
    app.drain().await;
    assert_eq!(taken(&app, &sent), [0, 6]);
    next_day(&app).await;
    assert_eq!(state(&app, &rule).await, at(3, "growing"));
    assert_eq!(actions(&first_ramp(&app, &rule).await), ["begin"]);
    let change = json!({ "overCap": "next" });
    app.patch(&path_of(&rule), &change).await.data(200);
    let sent = addresses("b", 20);
    send_all(&app, &sent).await;
    app.drain().await;
    assert_eq!(taken(&app, &sent), [3, 17]);
}

#[tokio::test]
async fn mail_of_a_rule_whose_only_target_has_not_begun_goes_through_the_fallback_or_waits() {
    let app = TestApp::builder().setting("WAYPOST_RETRY_HORIZON", "72h");
    let app = app.start().await;
    noon(&app);
    let (first, second) = two_accounts(&app).await;
    let mut begins = ramp(9, 2.0, 1);
    begins["from"] = json!((today(&app) + Days::new(1)).to_string());
    let change = json!({ "overCap": "wait", "fallbackProviderAccountIds": [second] });
    let rule = create(&app, &sharing(&[ramped(&first, &begins)], &change)).await;
    let sent = addresses("a", 3);
    send_all(&app, &sent).await;
    app.drain().await;
    assert_eq!(taken(&app, &sent), [0, 3]);
    let none = json!({ "fallbackProviderAccountIds": [] });
    app.patch(&path_of(&rule), &none).await.data(200);
    let waiting = addresses("b", 3);
    send_all(&app, &waiting).await;
    app.drain().await;
    assert_eq!(taken(&app, &waiting), [0, 0]);
    next_day(&app).await;
    drain_until_taken(&app, &waiting, [3, 0]).await;
}

#[tokio::test]
async fn workers_send_no_more_than_the_cap_of_the_day() {
    let app = TestApp::start().await;
    noon(&app);
    let (first, second) = two_accounts(&app).await;
    let fallback = json!({ "fallbackProviderAccountIds": [second] });
    let rule = create(
        &app,
        &sharing(&[ramped(&first, &ramp(5, 2.0, 1))], &fallback),
    )
    .await;
    for (letter, cap) in [("a", 5), ("b", 10), ("c", 20)] {
        let sent = addresses(letter, 25);
        send_all(&app, &sent).await;
        app.drain().await;
        assert_eq!(taken(&app, &sent), [cap, 25 - cap]);
        let shown = &progress(&app, &rule).await[0];
        assert_eq!(
            (&shown["usedToday"], &shown["dailyCap"]),
            (&json!(cap), &json!(cap))
        );
        end_windows(&app).await;
        next_day(&app).await;
    }
    // A cap that is halved during the day holds at once.
    let some = addresses("d", 30);
    send_all(&app, &some).await;
    app.drain().await;
    assert_eq!(taken(&app, &some), [30, 0]);
    count(&app, &first, [1_000, 200, 0]).await;
    app.step_ramps().await;
    assert_eq!(state(&app, &rule).await, at(20, "held"));
    let more = addresses("e", 10);
    send_all(&app, &more).await;
    app.drain().await;
    assert_eq!(taken(&app, &more), [0, 10]);
}

#[tokio::test]
async fn mail_that_waits_over_night_has_the_cap_of_the_new_day_soon() {
    let app = TestApp::builder().setting("WAYPOST_RETRY_HORIZON", "72h");
    let app = app.start().await;
    noon(&app);
    let (first, _second) = two_accounts(&app).await;
    let change = json!({ "overCap": "wait" });
    let rule = create(&app, &sharing(&[ramped(&first, &ramp(2, 2.0, 1))], &change)).await;
    let sent = addresses("a", 6);
    send_all(&app, &sent).await;
    app.drain().await;
    assert_eq!(taken(&app, &sent), [2, 0]);
    // The day begins before the scheduler makes the step.
    end_windows(&app).await;
    app.advance_and_drain(TimeDelta::hours(25)).await;
    assert_eq!(taken(&app, &sent), [4, 0]);
    app.step_ramps().await;
    assert_eq!(state(&app, &rule).await, at(4, "growing"));
    drain_until_taken(&app, &sent, [6, 0]).await;
}
