//! Time zones: hours, days, weeks and months as a person there has them.

use chrono::{Datelike as _, TimeDelta, Timelike as _};
use serde_json::json;
use waypost_core::clock::Timestamp;
use waypost_core::event::EventType;
use waypost_core::provider::kind::ProviderType;

use super::{BREAKDOWN, SERIES, SUMMARY, quiet, record, sum, total};

#[tokio::test]
async fn a_day_is_the_day_of_the_time_zone() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = app.send_to("a@example.org").await;
    app.leave_work();
    // One every 45 minutes, over the change of clocks in Berlin.
    let first: Timestamp = "2026-03-27T00:10:00Z".parse().unwrap();
    let times: Vec<Timestamp> = (0..130)
        .map(|n| first + TimeDelta::minutes(45 * n))
        .collect();
    for at in &times {
        record(&app, &id, 0, EventType::Sent, *at, None).await;
    }
    // The offsets before and after the change on 2026-03-29, 01:00 UTC.
    let change: Timestamp = "2026-03-29T01:00:00Z".parse().unwrap();
    for (zone, before, after) in [
        ("UTC", 0, 0),
        ("Europe/Berlin", 60, 120),
        ("Asia/Kolkata", 330, 330),
        ("Asia/Kathmandu", 345, 345),
        ("America/St_Johns", -150, -150),
        ("Pacific/Chatham", 825, 825),
    ] {
        let local = |at: Timestamp| {
            let offset = if at < change { before } else { after };
            (at + TimeDelta::minutes(offset)).naive_utc()
        };
        for granularity in ["hour", "day"] {
            let query = [
                ("from", "2026-03-25"),
                ("to", "2026-04-02"),
                ("granularity", granularity),
                ("timeZone", zone),
            ];
            let reply = app.caller().query(SERIES, &query).await.expect(200);
            assert_eq!(reply["query"]["timeZone"], zone);
            let series = reply["data"].as_array().unwrap();
            assert_eq!(sum(&reply["data"], "sent"), 130, "{zone}");
            for bucket in series {
                let name = bucket["timestamp"].as_str().unwrap();
                let start: Timestamp = bucket["start"].as_str().unwrap().parse().unwrap();
                assert_eq!(local(start).format("%Y-%m-%d %H:%M:%S").to_string(), name);
                let expected = times.iter().filter(|at| {
                    let at = local(**at);
                    let hour = if granularity == "hour" { at.hour() } else { 0 };
                    let day = at.date();
                    format!(
                        "{}-{:02}-{:02} {hour:02}:00:00",
                        day.year(),
                        day.month(),
                        day.day()
                    ) == name
                });
                assert_eq!(bucket["sent"], expected.count(), "{zone} {name}");
            }
        }
    }
}

#[tokio::test]
async fn days_and_times_without_an_offset_are_those_of_the_time_zone() {
    let app = quiet().await;
    for (zone, from, to, period) in [
        (
            "Europe/Berlin",
            "2026-07-01",
            "2026-07-01",
            ("2026-06-30T22:00:00.000Z", "2026-07-01T21:59:59.999Z"),
        ),
        (
            "Asia/Kolkata",
            "2026-07-01T09:00",
            "2026-07-01T09:30:00",
            ("2026-07-01T03:30:00.000Z", "2026-07-01T04:00:00.000Z"),
        ),
        // A time that clocks leave out is the end of the gap, and the first of two is meant.
        (
            "Europe/Berlin",
            "2026-03-29T02:30:00",
            "2026-10-25T02:30:00",
            ("2026-03-29T01:00:00.000Z", "2026-10-25T00:30:00.000Z"),
        ),
        (
            "Europe/Berlin",
            "2026-07-01T00:00:00Z",
            "2026-07-01T00:00:00-03:00",
            ("2026-07-01T00:00:00.000Z", "2026-07-01T03:00:00.000Z"),
        ),
    ] {
        let query = [("timeZone", zone), ("from", from), ("to", to)];
        let summary = app.caller().query(SUMMARY, &query).await.expect(200);
        assert_eq!(
            summary["period"],
            json!({ "from": period.0, "to": period.1 }),
            "{query:?}"
        );
        let groups = app.caller().query(BREAKDOWN, &query).await.expect(200);
        assert_eq!(groups["query"]["from"], period.0);
    }
}

#[tokio::test]
async fn what_is_no_time_zone_is_named() {
    let app = quiet().await;
    for path in [SERIES, SUMMARY, BREAKDOWN] {
        for bad in [
            "",
            "Mars/Olympus",
            "+02:00",
            "europe berlin",
            "Europe/Berlin\0",
            "CEST ",
        ] {
            let reply = app
                .caller()
                .query(path, &[("timeZone", bad), ("from", "no")])
                .await;
            reply.expect_issues(400, &["from", "timeZone"]);
        }
        let far = [("timeZone", "Asia/Tokyo"), ("from", "0000-01-01")];
        let reply = app.caller().query(path, &far).await;
        reply.expect_issues(400, &["from"]);
    }
    let none = app
        .caller()
        .query(SUMMARY, &[("timeZone", "UTC")])
        .await
        .data(200);
    assert_eq!(total(&none, "sent"), 0);
}
