//! Cancellations that race with workers: exactly one of sent and cancelled.
//!
//! `WAYPOST_TEST_CANCEL_PAIRS` sets how many pairs there are.

use std::collections::HashMap;

use chrono::TimeDelta;
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use waypost_core::clock::Clock;
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::Fault;
use waypost_tests::{Caller, TestApp, wait_until, wait_within};

use super::{ahead, dropped, message_with, text};

/// Messages of one round, so that both sides are at work in all of it.
const ROUND: usize = 250;
/// Cancellations at the same time.
const CANCELLING: usize = 6;

#[expect(
    clippy::disallowed_methods,
    reason = "a setting of this test, which no program reads"
)]
fn pairs() -> usize {
    let given = std::env::var("WAYPOST_TEST_CANCEL_PAIRS").ok();
    given
        .and_then(|count| count.parse().ok())
        .unwrap_or(ROUND * 2)
}

fn address(number: usize) -> String {
    format!("r{number}@example.org")
}

async fn accept(app: &TestApp, from: usize, count: usize, fields: &Value) -> Vec<String> {
    let messages: Vec<Value> = (from..from + count)
        .map(|number| message_with(&address(number), fields))
        .collect();
    let body = json!({ "messages": messages });
    let reply = app.post("/v1/emails/batch", &body).await.expect(200);
    let results = reply["results"].as_array().unwrap().iter();
    results
        .map(|result| result["messageId"].as_str().unwrap().to_owned())
        .collect()
}

/// Cancels the messages, the last first, and returns the statuses of the responses.
async fn cancel_all(callers: &[Caller], ids: &[String]) -> HashMap<String, u16> {
    stream::iter(ids.iter().rev().enumerate())
        .map(async |(nth, id)| {
            let path = format!("/v1/messages/{id}/cancel");
            let reply = callers[nth % callers.len()].post_empty(&path).await;
            if reply.status != 200 {
                let reason = reply.expect_error(409, "CONFLICT")["details"]["reason"].clone();
                assert!(
                    ["MESSAGE_SENDING", "MESSAGE_SENT"].contains(&reason.as_str().unwrap()),
                    "{reply:?}"
                );
            }
            (id.clone(), reply.status)
        })
        .buffer_unordered(CANCELLING)
        .collect()
        .await
}

/// Returns how many were cancelled.
async fn each_is_sent_or_cancelled(
    app: &TestApp,
    from: usize,
    ids: &[String],
    answers: &HashMap<String, u16>,
) -> usize {
    let is_done = wait_within(std::time::Duration::from_secs(60), async || {
        app.outbox().await.is_empty()
    })
    .await;
    assert!(is_done, "work is left: {:?}", app.outbox().await);
    let mut cancelled = 0;
    for (nth, id) in ids.iter().enumerate() {
        let copies = app.captured(&address(from + nth)).len();
        let status = app.status(id).await;
        let is_cancelled = answers[id] == 200;
        let expected = if is_cancelled {
            ("FAILED", 0)
        } else {
            ("SENT", 1)
        };
        assert_eq!((status.as_str(), copies), expected, "{id}: {}", answers[id]);
        if is_cancelled {
            assert_eq!(dropped(app, id).await, ["CANCELLED"]);
            cancelled += 1;
        }
    }
    cancelled
}

async fn race(is_scheduled: bool) {
    let app = TestApp::builder()
        .with_clock(Clock::system())
        .setting("WAYPOST_WORKER_CONCURRENCY", "6")
        .setting("WAYPOST_SCHEDULER_TICK", "200ms")
        .start()
        .await;
    app.start_worker();
    let callers = [app.caller().clone(), app.start_another_api().await];
    app.connect(ProviderType::Sendgrid).await;
    app.simulator().set_fault(Fault::slow_sends(20));
    let (mut cancelled, mut from) = (0, 0);
    while from < pairs() {
        let before = app.simulator().captured_count();
        let fields = match is_scheduled {
            true => json!({ "scheduledAt": text(ahead(&app, TimeDelta::seconds(1))) }),
            false => json!({}),
        };
        let ids = accept(&app, from, ROUND, &fields).await;
        wait_until("sending has begun", async || {
            app.simulator().captured_count() > before
        })
        .await;
        let answers = cancel_all(&callers, &ids).await;
        cancelled += each_is_sent_or_cancelled(&app, from, &ids, &answers).await;
        from += ROUND;
    }
    println!("Of {from} messages, {cancelled} were cancelled");
    assert!(
        0 < cancelled && cancelled < from,
        "no race: {cancelled} of {from}"
    );
    assert_eq!(app.simulator().captured_count(), (from - cancelled) as u64);
    let events = "SELECT count(*) FROM events WHERE event_type = 'DROPPED'";
    let events: usize = app.value(events).await.unwrap().parse().unwrap();
    assert_eq!(events, cancelled);
}

#[tokio::test]
async fn of_a_cancellation_and_a_queued_send_one_wins() {
    race(false).await;
}

#[tokio::test]
async fn of_a_cancellation_and_a_scheduled_send_one_wins() {
    race(true).await;
}

#[tokio::test]
async fn of_many_cancellations_and_moves_of_one_message_one_result_is_left() {
    let app = TestApp::builder().with_clock(Clock::system()).start().await;
    app.connect(ProviderType::Sendgrid).await;
    for round in 0..20 {
        let fields = json!({ "scheduledAt": text(ahead(&app, TimeDelta::hours(1))) });
        let id = accept(&app, round, 1, &fields).await.remove(0);
        let (path, cancel) = (
            format!("/v1/messages/{id}"),
            format!("/v1/messages/{id}/cancel"),
        );
        let now = json!({ "scheduledAt": null });
        let (moves, cancels) = tokio::join!(
            futures_util::future::join_all((0..3).map(|_| app.patch(&path, &now))),
            futures_util::future::join_all((0..3).map(|_| app.caller().post_empty(&cancel))),
        );
        for reply in moves.iter().chain(&cancels) {
            assert!([200, 409].contains(&reply.status), "{reply:?}");
        }
        app.drain().await;
        let is_cancelled = cancels.iter().any(|reply| reply.status == 200);
        let status = app.status(&id).await;
        let copies = app.captured(&address(round)).len();
        let expected = if is_cancelled {
            ("FAILED", 0)
        } else {
            ("SENT", 1)
        };
        assert_eq!((status.as_str(), copies), expected, "{moves:?} {cancels:?}");
    }
}
