//! Periods and buckets: which hours count, which buckets exist, what is rejected.

use chrono::{Datelike as _, Days, NaiveDate, TimeDelta, Timelike as _};
use serde_json::json;
use waypost_core::clock::Timestamp;
use waypost_core::db::organization_shard::OrganizationShard;
use waypost_core::event::EventType;
use waypost_core::metrics;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::TestApp;

use super::{BREAKDOWN, SERIES, SUMMARY, advance_to_hour, agreed, quiet, record, total, wire};

/// The start of a bucket, computed in another way than by Postgres.
fn bucket_of(at: Timestamp, granularity: &str) -> String {
    let day = at.date_naive();
    let (day, hour) = match granularity {
        "hour" => (day, at.hour()),
        "day" => (day, 0),
        "week" => (
            day - Days::new(u64::from(day.weekday().num_days_from_monday())),
            0,
        ),
        "month" => (
            NaiveDate::from_ymd_opt(day.year(), day.month(), 1).unwrap(),
            0,
        ),
        other => panic!("{other}"),
    };
    format!("{} {hour:02}:00:00", day.format("%Y-%m-%d"))
}

#[tokio::test]
async fn buckets_are_hours_days_weeks_from_monday_and_months_of_utc() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    advance_to_hour(&app, 22);
    let start = app.clock.now();
    let mut sent: Vec<Timestamp> = Vec::new();
    // Over midnight, then over every kind of end within three months.
    let steps = [
        0,
        30,
        59,
        1,
        45,
        24 * 60,
        5 * 24 * 60 + 7,
        9 * 24 * 60,
        31 * 24 * 60,
        30 * 24 * 60,
    ];
    for (number, minutes) in steps.into_iter().enumerate() {
        app.advance(TimeDelta::minutes(minutes));
        app.send_to(&format!("r{number}@example.org")).await;
        app.drain().await;
        sent.push(app.clock.now());
    }
    let end = app.clock.now() + TimeDelta::hours(1);
    for granularity in ["hour", "day", "week", "month"] {
        let (from, to) = (wire(start), wire(end));
        let query = [
            ("from", from.as_str()),
            ("to", to.as_str()),
            ("granularity", granularity),
        ];
        let buckets = app.caller().query(SERIES, &query).await.data(200);
        let buckets = buckets.as_array().unwrap();
        let mut names: Vec<&str> = Vec::new();
        for bucket in buckets {
            let name = bucket["timestamp"].as_str().unwrap();
            let expected = sent
                .iter()
                .filter(|at| bucket_of(**at, granularity) == name)
                .count();
            assert_eq!(bucket["sent"], expected, "{granularity} {name}");
            names.push(name);
        }
        assert_eq!(names[0], bucket_of(start, granularity));
        assert_eq!(
            names[names.len() - 1],
            bucket_of(end - TimeDelta::microseconds(1), granularity)
        );
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(names, sorted, "{granularity}");
        let hours = usize::try_from((end - start).num_hours()).unwrap();
        let per_bucket = match granularity {
            "hour" => 1,
            "day" => 24,
            "week" => 168,
            _ => 31 * 24,
        };
        assert!(names.len() >= hours / per_bucket, "{granularity}: a gap");
    }
    let summary = agreed(app.caller(), start, end).await;
    assert_eq!(total(&summary, "sent"), i64::try_from(sent.len()).unwrap());
}

#[tokio::test]
async fn hours_that_a_period_touches_count_whole() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    advance_to_hour(&app, 12);
    let id = app.send_to("a@example.org").await;
    app.leave_work();
    let noon = app.clock.now();
    record(
        &app,
        &id,
        0,
        EventType::Sent,
        noon + TimeDelta::minutes(50),
        None,
    )
    .await;
    let minutes = TimeDelta::minutes;
    for (from, to, expected) in [
        (minutes(10), minutes(20), 1),
        (minutes(0), minutes(60), 1),
        (minutes(59), minutes(200), 1),
        (minutes(60), minutes(200), 0),
        (minutes(-90), minutes(0), 0),
        (minutes(-90), minutes(1), 1),
        (minutes(0), minutes(0), 0),
        (minutes(-600), minutes(600), 1),
    ] {
        let summary = agreed(app.caller(), noon + from, noon + to).await;
        assert_eq!(total(&summary, "sent"), expected, "{from} {to}");
    }
    // A first bucket that starts before the period contains only the hours of the period.
    let (from, to) = (wire(noon + minutes(60)), wire(noon + minutes(120)));
    let query = [("from", from.as_str()), ("to", to.as_str())];
    let days = app.caller().query(SERIES, &query).await.data(200);
    assert_eq!(days.as_array().unwrap().len(), 1);
    assert_eq!(days[0]["sent"], 0);
    assert_eq!(days[0]["timestamp"], bucket_of(noon, "day"));
}

#[tokio::test]
async fn breakdowns_count_whole_days_and_the_remaining_hours() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    advance_to_hour(&app, 12);
    let id = app.send_to("a@example.org").await;
    app.leave_work();
    let noon = app.clock.now();
    // Every seven hours, over three days and a half: each hour of a day occurs.
    let sent: Vec<Timestamp> = (0..12).map(|n| noon - TimeDelta::hours(7 * n)).collect();
    for at in &sent {
        record(&app, &id, 0, EventType::Sent, *at, None).await;
    }
    for is_folded in [false, true] {
        if is_folded {
            let mut connection = app.pool.acquire().await.unwrap();
            while metrics::store::roll_up(&mut connection, OrganizationShard::WHOLE, 5)
                .await
                .unwrap()
                > 0
            {}
        }
        for (first, hours) in [
            (84, 100),
            (84, 12),
            (80, 24),
            (60, 24),
            (60, 60),
            (61, 25),
            (59, 50),
            (36, 13),
            (13, 12),
            (12, 12),
            (5, 4),
        ] {
            let from = noon - TimeDelta::hours(first);
            let to = from + TimeDelta::hours(hours);
            let summary = agreed(app.caller(), from, to).await;
            let expected = sent.iter().filter(|at| (from..to).contains(at)).count();
            assert_eq!(
                total(&summary, "sent"),
                i64::try_from(expected).unwrap(),
                "{hours} hours from {first} hours before noon on"
            );
        }
    }
}

#[tokio::test]
async fn all_invalid_parameters_are_named_at_once() {
    let app = quiet().await;
    for path in [SERIES, BREAKDOWN, SUMMARY] {
        for bad in [
            "yesterday",
            "2026-13-01T00:00:00Z",
            "2026-01-32",
            "0000-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
            "+12026-01-01T00:00:00",
            "-0044-03-15",
            "2026-01",
            "",
            "1700000000",
        ] {
            let reply = app
                .caller()
                .query(path, &[("from", bad), ("to", bad)])
                .await;
            reply.expect_issues(400, &["from", "to"]);
        }
        let backwards = [
            ("from", "2026-02-01T00:00:00Z"),
            ("to", "2026-01-01T00:00:00Z"),
        ];
        app.caller()
            .query(path, &backwards)
            .await
            .expect_issues(400, &["from"]);
        let only_to = [("to", "2020-01-01T00:00:00Z")];
        app.caller()
            .query(path, &only_to)
            .await
            .expect_issues(400, &["to"]);
        let only_from = [("from", "2999-01-01T00:00:00Z")];
        app.caller()
            .query(path, &only_from)
            .await
            .expect_issues(400, &["from"]);
    }
    for bad in ["minute", "DAY", "", "year"] {
        let query = [("granularity", bad), ("from", "no"), ("to", "no")];
        let reply = app.caller().query(SERIES, &query).await;
        reply.expect_issues(400, &["from", "granularity", "to"]);
        let query = [("groupBy", bad), ("from", "no")];
        app.caller()
            .query(BREAKDOWN, &query)
            .await
            .expect_issues(400, &["from", "groupBy"]);
    }
    // An offset is a valid part of a time.
    let query = [
        ("from", "2026-01-01T02:00:00+02:00"),
        ("to", "2026-01-01T03:30:00+02:00"),
        ("granularity", "hour"),
    ];
    let series = app.caller().query(SERIES, &query).await.expect(200);
    let expected = json!({ "from": "2026-01-01T00:00:00.000Z", "to": "2026-01-01T01:30:00.000Z", "granularity": "hour" });
    assert_eq!(series["query"], expected);
    assert_eq!(series["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_series_has_at_most_ten_thousand_buckets() {
    let app = quiet().await;
    let start: Timestamp = "2020-01-01T00:00:00Z".parse().unwrap();
    for (granularity, bucket) in [("hour", TimeDelta::hours(1)), ("day", TimeDelta::days(1))] {
        let from = wire(start);
        let ask = async |buckets: i32| {
            let to = wire(start + bucket * buckets);
            let query = [
                ("from", from.as_str()),
                ("to", to.as_str()),
                ("granularity", granularity),
            ];
            app.caller().query(SERIES, &query).await
        };
        let longest = ask(10_000).await.data(200);
        assert_eq!(longest.as_array().unwrap().len(), 10_000);
        let refusal = ask(10_001).await.expect_issues(400, &["granularity"]);
        let text = refusal.to_string();
        assert!(text.contains("10000") && text.contains("10001"), "{text}");
    }
    // The other two have no buckets, and so no limit: even the earliest and latest times
    // are valid.
    let all = [
        ("from", "0000-01-01T00:00:00Z"),
        ("to", "9999-12-31T23:59:59.999999Z"),
    ];
    for path in [BREAKDOWN, SUMMARY] {
        let _answer = app.caller().query(path, &all).await.expect(200);
    }
    let reply = app.caller().query(SERIES, &all).await;
    reply.expect_issues(400, &["granularity"]);
    let months = [
        all[0],
        ("to", "0800-01-01T00:00:00Z"),
        ("granularity", "month"),
    ];
    let months = app.caller().query(SERIES, &months).await.data(200);
    assert!(months.as_array().unwrap().len() > 9_500);
}

#[tokio::test]
async fn times_without_an_offset_are_utc_and_a_day_begins_at_midnight() {
    let app = quiet().await;
    let query = [("from", "2026-01-01"), ("to", "2026-01-03T12:30:00")];
    let summary = app.caller().query(SUMMARY, &query).await.expect(200);
    let expected = json!({ "from": "2026-01-01T00:00:00.000Z", "to": "2026-01-03T12:30:00.000Z" });
    assert_eq!(summary["period"], expected);
}

#[tokio::test]
async fn other_forms_of_iso_8601_are_accepted() {
    let app = quiet().await;
    for (given, understood) in [
        ("2026-01-01T10:30Z", "2026-01-01T10:30:00.000Z"),
        ("2026-01-01T10:30:15.250+0130", "2026-01-01T09:00:15.250Z"),
        ("2026-01-01T10:30-02", "2026-01-01T12:30:00.000Z"),
        ("2026-01-01T10:30", "2026-01-01T10:30:00.000Z"),
        ("20260101T103000Z", "2026-01-01T10:30:00.000Z"),
        ("20260101T1030", "2026-01-01T10:30:00.000Z"),
        ("20260101", "2026-01-01T00:00:00.000Z"),
    ] {
        let query = [("from", given), ("to", "2026-02-01")];
        let summary = app.caller().query(SUMMARY, &query).await.expect(200);
        assert_eq!(summary["period"]["from"], understood, "{given}");
    }
    for no_time in [
        "2026",
        "10:30",
        "2026-13-01",
        "2026-01-01T25:00Z",
        "202601011030",
        "now",
    ] {
        let query = [("from", no_time), ("to", "2026-02-01")];
        let reply = app.caller().query(SUMMARY, &query).await;
        reply.expect_issues(400, &["from"]);
    }
}

#[tokio::test]
async fn a_day_without_a_time_ends_a_period_whole() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    advance_to_hour(&app, 23);
    app.send_to("late@example.org").await;
    app.drain().await;
    let group = json!({ "name": "Audited" });
    let _group = app.post("/v1/unsubscribe-groups", &group).await.data(201);
    let day = app.clock.now().date_naive();
    let end = format!("{day}T23:59:59.999Z");
    for form in ["%Y-%m-%d", "%Y%m%d"] {
        let day = day.format(form).to_string();
        let period = [("from", day.as_str()), ("to", day.as_str())];
        let summary = app.caller().query(SUMMARY, &period).await.expect(200);
        assert_eq!(summary["data"]["totalSent"], 1, "{summary}");
        assert_eq!(summary["period"]["to"], end);
        let series = app.caller().query(SERIES, &period).await.expect(200);
        assert_eq!(series["data"].as_array().unwrap().len(), 1, "{series}");
        assert_eq!(series["query"]["to"], end);
        let groups = app.caller().query(BREAKDOWN, &period).await.expect(200);
        assert_eq!(groups["data"][0]["sent"], 1, "{groups}");
        assert_eq!(groups["query"]["to"], end);
        let logs = app.caller().query("/v1/audit-logs", &period).await;
        assert!(!logs.data(200).as_array().unwrap().is_empty());
    }
    // A point in time is a valid period.
    let from = format!("{day}T00:00:00Z");
    let period = [("from", from.as_str()), ("to", from.as_str())];
    let series = app.caller().query(SERIES, &period).await.data(200);
    assert_eq!(series, json!([]));
}
