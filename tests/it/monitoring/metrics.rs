//! Metrics for Prometheus.

use std::collections::BTreeSet;

use serde_json::json;
use waypost_core::provider::kind::ProviderType;
use waypost_core::telemetry::instruments::INSTRUMENTS;
use waypost_tests::{Program, TestApp, message_to, wait_until};

use super::Watched;

/// The value of a series, as Prometheus would read it; `None` if there is none.
fn value(metrics: &str, series: &str) -> Option<f64> {
    let line = metrics.lines().find(|line| {
        let rest = line.strip_prefix(series);
        rest.is_some_and(|rest| rest.starts_with(' '))
    })?;
    line.rsplit(' ').next()?.parse().ok()
}

/// The names of all metrics, and the values of all labels.
fn names_and_labels(metrics: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut names, mut labels) = (BTreeSet::new(), BTreeSet::new());
    for line in metrics.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            names.insert(rest.split(' ').next().unwrap().to_owned());
        } else if let Some((_, inside)) = line.split_once('{') {
            let (inside, _) = inside.split_once('}').unwrap();
            labels.extend(inside.split('"').skip(1).step_by(2).map(str::to_owned));
        }
    }
    (names, labels)
}

/// Only known metrics, and no label that names an organization, a person or a row.
fn assert_bounded(metrics: &str, organization: &str) {
    let (names, labels) = names_and_labels(metrics);
    let known: BTreeSet<String> = INSTRUMENTS.iter().map(|one| one.name.to_owned()).collect();
    let strays: Vec<&String> = names
        .iter()
        .filter(|name| !known.contains(*name) && !name.starts_with("process_"))
        .collect();
    assert!(strays.is_empty(), "{strays:?}");
    for label in labels {
        assert!(!label.contains('@') && label != organization, "{label}");
        assert!(uuid::Uuid::parse_str(&label).is_err(), "{label}");
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story of three programs")]
async fn the_programs_count_what_they_do() {
    let app = TestApp::builder().processes().start().await;
    let api = Watched::start(&app, Program::Api, &[]).await;
    let scheduler = Watched::start(&app, Program::Scheduler, &[]).await;
    app.connect(ProviderType::Sendgrid).await;
    app.send(&message_to("ada@example.org")).await;
    app.send(&message_to("refuse@example.org")).await;
    app.post("/v1/send", &json!({})).await.expect(400);
    app.get("/v1/nothing").await.expect(404);
    app.post("/compat/resend/emails", &json!({}))
        .await
        .expect(422);

    let metrics = api.metrics().await;
    for (series, expected) in [
        (
            r#"waypost_http_requests_total{operation="send_message",status="202"}"#,
            2.0,
        ),
        (
            r#"waypost_http_requests_total{operation="send_message",status="400"}"#,
            1.0,
        ),
        (
            r#"waypost_http_request_duration_seconds_count{operation="send_message"}"#,
            3.0,
        ),
        (
            r#"waypost_http_requests_total{operation="resend_send_email",status="422"}"#,
            1.0,
        ),
        ("waypost_messages_accepted_total", 2.0),
        (r#"waypost_ready{server="postgres"}"#, 1.0),
        (r#"waypost_ready{server="encryption_keys"}"#, 1.0),
    ] {
        assert_eq!(
            value(&metrics, series),
            Some(expected),
            "{series}\n{metrics}"
        );
    }
    assert!(value(&metrics, "waypost_acceptance_duration_seconds_sum").unwrap() > 0.0);

    // Without a worker, the mail is due and waits.
    wait_until("the oldest message has waited for a second", async || {
        let metrics = scheduler.metrics().await;
        let age = value(&metrics, "waypost_queue_oldest_due_age_seconds").unwrap();
        assert!(age < 600.0, "{age}");
        let waiting = value(&metrics, r#"waypost_queue_jobs{state="waiting"}"#);
        age > 1.0 && waiting == Some(2.0)
    })
    .await;
    let metrics = scheduler.metrics().await;
    assert_eq!(value(&metrics, "waypost_workers"), Some(0.0));

    let worker = Watched::start(&app, Program::Worker, &[]).await;
    let accepted = r#"waypost_send_attempts_total{provider="SENDGRID",outcome="ACCEPTED"}"#;
    let rejected = r#"waypost_send_attempts_total{provider="SENDGRID",outcome="REJECTED"}"#;
    wait_until("both mails were tried", async || {
        let metrics = worker.metrics().await;
        (value(&metrics, accepted), value(&metrics, rejected)) == (Some(1.0), Some(1.0))
    })
    .await;
    let metrics = worker.metrics().await;
    assert!(value(&metrics, "waypost_send_delay_seconds_sum").unwrap() > 1.0);
    assert_eq!(value(&metrics, "waypost_worker_jobs_max"), Some(256.0));

    wait_until("nothing waits any more", async || {
        let metrics = scheduler.metrics().await;
        let age = value(&metrics, "waypost_queue_oldest_due_age_seconds");
        age == Some(0.0) && value(&metrics, "waypost_workers") == Some(1.0)
    })
    .await;
    let metrics = scheduler.metrics().await;
    assert_eq!(value(&metrics, "waypost_scheduler_leader"), Some(1.0));
    let active = r#"waypost_provider_accounts{provider="SENDGRID",state="active"}"#;
    assert_eq!(value(&metrics, active), Some(1.0));
    assert!(value(&metrics, r#"waypost_task_lag_seconds{task="relay"}"#).is_some());

    assert_bounded(
        &[api.metrics().await, worker.metrics().await, metrics].concat(),
        &app.organization_id().to_string(),
    );
}

#[tokio::test]
async fn metrics_are_not_public() {
    let app = TestApp::builder().processes().start().await;
    let _api = Watched::start(&app, Program::Api, &[]).await;
    let reply = app.caller().anonymous().get("/metrics").await;
    assert!(!reply.text.contains("waypost_build_info"));
}

#[tokio::test]
async fn accounts_have_series_only_by_the_setting() {
    let app = TestApp::builder().processes().start().await;
    let _api = app.spawn_api().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    let series = format!(r#"waypost_account_circuit_open{{account="{account}"}}"#);
    let scheduler = Watched::start(&app, Program::Scheduler, &[]).await;
    assert_eq!(value(&scheduler.metrics().await, &series), None);
    app.execute(&format!(
        "INSERT INTO metric_deltas (organization_id, quarter, account, domain, template, sent, delivered, opened,
                                    clicked, bounced, complained, unsubscribed)
         SELECT organization_id, waypost_quarter(now()), id::text, 'example.com', '', 3, 1, 0, 0, 2, 0, 0
         FROM provider_accounts WHERE id = '{account}'"
    ))
    .await;
    let named = [("WAYPOST_METRICS_ACCOUNTS", "on")];
    let scheduler = Watched::start(&app, Program::Scheduler, &named).await;
    let metrics = scheduler.metrics().await;
    assert_eq!(value(&metrics, &series), Some(0.0));
    let mails = |kind: &str| {
        let series = format!(r#"waypost_account_mails{{account="{account}",kind="{kind}"}}"#);
        value(&metrics, &series)
    };
    let counts = ["sent", "delivered", "bounced", "deferred"].map(mails);
    assert_eq!(counts, [3.0, 1.0, 2.0, 0.0].map(Some));
}

/// The figures are not those of a moment ago when Postgres is away.
#[tokio::test]
async fn figures_that_cannot_be_read_are_not_a_number() {
    let mut app = TestApp::builder()
        .processes()
        .private_postgres()
        .start()
        .await;
    let scheduler = Watched::start(&app, Program::Scheduler, &[]).await;
    let age = "waypost_queue_oldest_due_age_seconds";
    let lag = r#"waypost_task_lag_seconds{task="relay"}"#;
    wait_until("the figures are read", async || {
        let metrics = scheduler.metrics().await;
        value(&metrics, age) == Some(0.0) && value(&metrics, lag).is_some()
    })
    .await;
    app.postgres.as_mut().unwrap().stop().await;
    wait_until("the age is unknown", async || {
        let metrics = scheduler.metrics().await;
        let is_away = value(&metrics, r#"waypost_ready{server="postgres"}"#) == Some(0.0);
        let is_unknown = |series| value(&metrics, series).is_some_and(f64::is_nan);
        let circuits = r#"waypost_circuits_open{provider="SES",cause="CALLS_FAILED"}"#;
        is_away && [age, lag, circuits].into_iter().all(is_unknown)
    })
    .await;
    app.postgres.as_mut().unwrap().resume().await;
}
