//! The scheduler: leader election, tasks that do not delay each other, and the operator's
//! view of them.

use std::time::{Duration, Instant};

use serde_json::Value;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Finished, Process, Program, TestApp, wait_until, wait_within};

/// The longest time of a takeover.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(15);

/// The tasks of the leader.
const TASKS: [&str; 20] = [
    "check-dns",
    "delete-expired",
    "delete-keys",
    "delete-sessions",
    "delete-webhooks",
    "domains",
    "drop-months",
    "expire",
    "look-up",
    "partitions",
    "rate-accounts",
    "reap",
    "reap-unregistered",
    "relay",
    "relay-webhooks",
    "report-tests",
    "resolve-mailbox-providers",
    "roll-up",
    "scheduled",
    "step-ramps",
];

async fn leader(app: &TestApp) -> Option<String> {
    let query =
        "SELECT leader FROM scheduler_tasks WHERE last_succeeded_at > now() - interval '3 seconds'
         ORDER BY last_started_at DESC LIMIT 1";
    app.value(query).await
}

/// A leading scheduler and a standby.
async fn two_schedulers(app: &TestApp) -> (Process, Process, String) {
    let first = app.spawn_scheduler();
    wait_until("the first leads", async || leader(app).await.is_some()).await;
    let name = leader(app).await.unwrap();
    (first, app.spawn_scheduler(), name)
}

async fn assert_taken_over(app: &TestApp, before: &str) -> String {
    let since = Instant::now();
    let taken = wait_within(TAKEN_OVER_WITHIN, async || {
        leader(app).await.is_some_and(|leader| leader != before)
    })
    .await;
    assert!(taken, "nobody leads after {:?}", since.elapsed());
    leader(app).await.unwrap()
}

async fn tasks(app: &TestApp, arguments: &[&str]) -> Finished {
    let all = [&["tasks"], arguments].concat();
    Program::Api.run(&all, &app.variables).await
}

#[tokio::test]
async fn when_the_leader_is_killed_another_takes_over() {
    let app = TestApp::builder().processes().private_redis().start().await;
    let (mut first, _second, name) = two_schedulers(&app).await;
    first.kill().await;
    assert_taken_over(&app, &name).await;
}

#[tokio::test]
async fn a_stalled_leader_is_replaced_and_notices_it_when_it_resumes() {
    let app = TestApp::builder().processes().private_redis().start().await;
    let (first, _second, name) = two_schedulers(&app).await;
    first.stall();
    let new = assert_taken_over(&app, &name).await;
    first.wake();
    wait_until("the first knows that it does not lead", async || {
        first.log().contains("No longer the leader")
    })
    .await;
    // What it did in between is harmless.
    let (_api, _worker) = (app.spawn_api().await, app.spawn_worker());
    app.connect(ProviderType::Sendgrid).await;
    app.send_to("ada@example.org").await;
    app.redis.as_ref().unwrap().flush().await;
    app.drain().await;
    app.captured_once("ada@example.org");
    wait_until("the second goes on leading", async || {
        leader(&app).await.as_ref() == Some(&new)
    })
    .await;
}

#[tokio::test]
async fn a_hanging_task_delays_no_other() {
    let app = TestApp::builder().without_worker().start().await;
    wait_until("all have run", async || {
        app.value("SELECT count(*) FROM scheduler_tasks WHERE last_succeeded_at IS NOT NULL")
            .await
            .as_deref()
            == Some("20")
    })
    .await;
    let mut held = app.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE metric_deltas IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *held)
        .await
        .unwrap();
    wait_until("a task hangs", async || {
        app.value(
            "SELECT name FROM scheduler_tasks
             WHERE name = 'roll-up' AND last_finished_at <= last_started_at
               AND last_started_at < now() - interval '2 seconds'",
        )
        .await
        .is_some()
    })
    .await;
    for name in ["reap", "relay", "relay-webhooks", "domains"] {
        let query = format!(
            "SELECT name FROM scheduler_tasks s
             WHERE name = '{name}' AND last_succeeded_at >
                   (SELECT last_started_at + interval '2 seconds' FROM scheduler_tasks WHERE name = 'roll-up')"
        );
        wait_until(name, async || app.value(&query).await.is_some()).await;
    }
    held.rollback().await.unwrap();
    wait_until("it goes on", async || {
        app.value("SELECT name FROM scheduler_tasks WHERE name = 'roll-up' AND last_finished_at > now() - interval '2 seconds'")
            .await
            .is_some()
    })
    .await;
}

#[tokio::test]
async fn operators_see_the_last_run_of_each_task() {
    let app = TestApp::builder().without_worker().start().await;
    let ran = "SELECT count(*) FROM scheduler_tasks WHERE last_succeeded_at IS NOT NULL";
    wait_until("all have run", async || {
        app.value(ran).await.as_deref() == Some("20")
    })
    .await;
    let finished = tasks(&app, &[]).await;
    assert!(finished.success, "{finished:?}");
    assert!(finished.stdout.starts_with("TASK "), "{finished:?}");
    for name in TASKS {
        assert!(finished.stdout.contains(name), "{name}: {finished:?}");
    }
    let finished = tasks(&app, &["--json"]).await;
    assert!(finished.success, "{finished:?}");
    let tasks: Value = serde_json::from_str(&finished.stdout).unwrap();
    let names: Vec<&str> = tasks
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, TASKS);
    let mut listed = tasks.as_array().unwrap().iter();
    let relay = listed.find(|task| task["name"] == "relay").unwrap();
    // It waits longer while it finds nothing.
    let every = relay["everyMs"].as_u64().unwrap();
    assert!((50..=200).contains(&every), "{every}");
    assert_eq!(relay["isLate"], false);
    assert_eq!(relay["lastError"], Value::Null);
    assert!(
        relay["tookMs"].is_u64() && relay["lagMs"].is_u64(),
        "{relay}"
    );
    assert!(relay["leader"].as_str().unwrap().starts_with("scheduler-"));
}

#[tokio::test]
async fn the_command_fails_for_a_late_task_or_if_no_scheduler_ran() {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await;
    let finished = tasks(&app, &[]).await;
    assert!(!finished.success, "{finished:?}");
    assert!(finished.stderr.contains("no scheduler"), "{finished:?}");
    // Interval in ms, seconds since the last success, late?
    let cases = [
        ("short", 1_000, 50, false),
        ("short-late", 1_000, 65, true),
        ("long", 60_000, 600, false),
        ("long-late", 60_000, 665, true),
    ];
    for (name, every, ago, is_late) in cases {
        app.execute(&format!(
            "INSERT INTO scheduler_tasks (name, interval_ms, leader, last_started_at, last_succeeded_at, last_error)
             VALUES ('{name}', {every}, 'x', now(), now() - interval '{ago} seconds', 'could not do it')"
        ))
        .await;
        let finished = tasks(&app, &[]).await;
        assert_eq!(!finished.success, is_late, "{name}: {finished:?}");
        assert!(finished.stdout.contains("could not do it"), "{finished:?}");
        if is_late {
            assert!(finished.stderr.contains(name), "{finished:?}");
            app.execute(&format!(
                "DELETE FROM scheduler_tasks WHERE name = '{name}'"
            ))
            .await;
        }
    }
}

#[tokio::test]
async fn what_may_not_be_stored_yet_is_no_lag() {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await;
    // The leader stores the runs every 10 s.
    app.execute(
        "INSERT INTO scheduler_tasks (name, interval_ms, leader, last_started_at, last_succeeded_at)
         VALUES ('in-time', 1000, 'x', now() - interval '9 seconds', now() - interval '9 seconds'),
                ('lags', 1000, 'x', now() - interval '31 seconds', now() - interval '31 seconds')",
    )
    .await;
    let finished = tasks(&app, &["--json"]).await;
    let tasks: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(tasks[0]["lagMs"], 0, "{tasks}");
    let lag = tasks[1]["lagMs"].as_u64().unwrap();
    assert!((20_000..50_000).contains(&lag), "{tasks}");
}

#[tokio::test]
async fn a_task_that_never_succeeded_is_late_however_often_it_runs() {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await;
    app.execute(
        "INSERT INTO scheduler_tasks (name, interval_ms, leader, first_seen_at, last_started_at)
         VALUES ('never', 1000, 'x', now() - interval '2 minutes', now())",
    )
    .await;
    let finished = tasks(&app, &[]).await;
    assert!(
        !finished.success && finished.stderr.contains("never"),
        "{finished:?}"
    );
}
