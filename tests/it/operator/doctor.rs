//! `waypost-api doctor` finds what an operator can get wrong and what can go wrong.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use waypost_core::clock::Clock;
use waypost_core::crypto::seal::EXAMPLE_KEYS;
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{Fault, FaultCalls, FaultKind, Provider};
use waypost_tests::{AppBuilder, Program, Receiver, TestApp, binaries, wait_until};

/// A key for production.
const KEY: &str = "1:dGhlIGZpcnN0IGtleSBoYXMgMzIgYnl0ZXMsIHRvby4=";

/// What doctor reports as JSON.
pub(super) async fn doctor(variables: &HashMap<String, String>) -> Vec<Value> {
    let finished = Program::Api.run(&["doctor", "--json"], variables).await;
    let report: Value = serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    let checks = report["checks"].as_array().unwrap().clone();
    let is_error = |check: &Value| check["status"] == "error";
    assert_eq!(finished.success, !checks.iter().any(is_error), "{checks:?}");
    for check in &checks {
        let has_fix = check["fix"].is_string();
        assert_eq!(has_fix, check["status"] != "ok", "{check}");
    }
    checks
}

/// Asserts that a check found this.
pub(super) fn assert_found(checks: &[Value], name: &str, status: &str, part: &str) {
    let is_it = |check: &&Value| {
        let message = check["message"].as_str().unwrap();
        check["name"] == name && check["status"] == status && message.contains(part)
    };
    assert!(
        checks.iter().any(|check| is_it(&check)),
        "{name} {status} {part}: {checks:#?}"
    );
}

fn status<'a>(checks: &'a [Value], name: &str) -> &'a str {
    let check = checks.iter().find(|check| check["name"] == name);
    let check = check.unwrap_or_else(|| panic!("{name}: {checks:#?}"));
    check["status"].as_str().unwrap()
}

pub(super) fn with(app: &TestApp, changes: &[(&str, &str)]) -> HashMap<String, String> {
    let mut variables = app.variables.clone();
    for (name, value) in changes {
        variables.insert((*name).to_owned(), (*value).to_owned());
    }
    variables
}

fn quiet() -> AppBuilder {
    TestApp::builder().without_worker().without_scheduler()
}

#[tokio::test]
async fn a_sound_installation_has_no_error() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    app.connect(ProviderType::Smtp).await;
    wait_until("doctor finds no error", async || {
        Program::Api.run(&["doctor"], &app.variables).await.success
    })
    .await;
    let checks = doctor(&app.variables).await;
    for name in [
        "configuration",
        "open-files",
        "postgres",
        "schema",
        "clock",
        "postgres-writes",
        "redis",
        "redis-version",
        "redis-memory",
        "encryption-keys",
        "accounts",
        "providers",
        "scheduler",
        "workers",
        "queue",
        "dead-jobs",
        "webhooks",
    ] {
        assert_eq!(status(&checks, name), "ok", "{name}: {checks:#?}");
    }
}

#[tokio::test]
async fn before_the_first_start_nothing_is_an_error() {
    let app = TestApp::builder().processes().start().await;
    let checks = doctor(&app.variables).await;
    assert_found(&checks, "scheduler", "warning", "no scheduler has run");
    assert_found(&checks, "workers", "warning", "no worker runs");
}

#[tokio::test]
async fn one_run_finds_every_fault() {
    let app = quiet().start().await;
    let variables = with(
        &app,
        &[
            ("WAYPOST_ENV", "production"),
            ("WAYPOST_ENCRYPTION_KEYS", EXAMPLE_KEYS),
            ("WAYPOST_LISTEN", "nowhere"),
            ("WAYPOST_RETENTION_DAY", "30"),
            ("REDIS_URL", "redis://127.0.0.1:1"),
        ],
    );
    let checks = doctor(&variables).await;
    assert_found(&checks, "configuration", "error", "published example key");
    assert_found(&checks, "configuration", "error", "WAYPOST_LISTEN");
    assert_found(
        &checks,
        "configuration",
        "error",
        "WAYPOST_PUBLIC_URL is required",
    );
    assert_found(
        &checks,
        "configuration",
        "warning",
        "no setting WAYPOST_RETENTION_DAY",
    );
    assert_found(&checks, "redis", "error", "127.0.0.1:1 cannot be reached");
    assert_found(&checks, "workers", "error", "no worker runs");
    assert_eq!(status(&checks, "schema"), "ok");

    // The other way round: the wrong database hides neither Redis nor the configuration.
    let elsewhere = with(
        &app,
        &[
            ("DATABASE_URL", "mysql://127.0.0.1/x"),
            ("WAYPOST_LISTEN", "nowhere"),
        ],
    );
    let checks = doctor(&elsewhere).await;
    assert_found(&checks, "configuration", "error", "DATABASE_URL");
    assert_found(&checks, "configuration", "error", "WAYPOST_LISTEN");
    assert_eq!(status(&checks, "redis"), "ok");
}

#[tokio::test]
async fn people_read_a_sentence_for_each_finding_and_what_to_do() {
    let app = quiet().start().await;
    let finished = Program::Api
        .run(&["doctor"], &with(&app, &[("WAYPOST_RETENTION_DAY", "30")]))
        .await;
    assert!(
        !finished.success && finished.stdout.is_empty(),
        "{finished:?}"
    );
    for line in [
        "redis: ok: takes writes",
        "configuration: WARNING: there is no setting WAYPOST_RETENTION_DAY: correct its name, or remove it",
        "workers: ERROR: no worker runs, or all hang: start waypost-worker; if it does not start, its log says why; if it runs, kill it first",
    ] {
        assert!(
            finished.stderr.lines().any(|found| found == line),
            "{line}: {finished:?}"
        );
    }
}

#[tokio::test]
async fn a_public_url_that_recipients_cannot_use_is_found_in_production() {
    let app = quiet().start().await;
    for (url, expected, part) in [
        ("https://203.0.112.7", "ok", "https://203.0.112.7"),
        ("http://203.0.112.7", "warning", "https only"),
        ("https://10.1.2.3/mail", "warning", "from the Internet"),
        (
            "https://no-such-host.invalid",
            "warning",
            "does not resolve",
        ),
        ("http://127.0.0.1:8080", "error", "their own machine"),
    ] {
        let variables = with(
            &app,
            &[
                ("WAYPOST_ENV", "production"),
                ("WAYPOST_ENCRYPTION_KEYS", KEY),
                ("WAYPOST_PUBLIC_URL", url),
            ],
        );
        assert_found(&doctor(&variables).await, "public-url", expected, part);
    }
}

#[tokio::test]
async fn too_few_open_files_are_found() {
    let app = quiet().start().await;
    let limited = r#"ulimit -n 300 && exec "$0" doctor --json"#;
    let output = tokio::process::Command::new("sh")
        .args(["-c", limited])
        .arg(binaries().join("waypost-api"))
        .envs(&app.variables)
        .output()
        .await
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    assert_found(checks, "open-files", "warning", "may open 300 files");
}

#[tokio::test]
async fn a_certificate_of_smtp_submission_that_expires_is_found() {
    let app = quiet().start().await;
    let folder = std::env::temp_dir().join(format!("waypost-doctor-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let (certificate, key) = (path("certificate.pem"), path("key.pem"));
    let settings = [
        ("WAYPOST_SUBMISSION_TLS_CERTIFICATE", certificate.as_str()),
        ("WAYPOST_SUBMISSION_TLS_KEY", key.as_str()),
    ];
    for (days, status, part) in [
        (-1, "error", "it expired on"),
        (13, "warning", "it expires on"),
        (15, "ok", "belongs to its key"),
    ] {
        let names = vec!["smtp.example.com".to_owned()];
        let mut parameters = rcgen::CertificateParams::new(names).unwrap();
        let seconds = Clock::system().now().timestamp() + days * 24 * 3_600;
        parameters.not_after =
            rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds.cast_unsigned());
        let pair = rcgen::KeyPair::generate().unwrap();
        let signed = parameters.self_signed(&pair).unwrap();
        std::fs::write(&certificate, signed.pem()).unwrap();
        std::fs::write(&key, pair.serialize_pem()).unwrap();
        let checks = doctor(&with(&app, &settings)).await;
        assert_found(&checks, "smtp-certificate", status, part);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn accounts_and_providers_that_cannot_send_are_found() {
    let mut app = quiet().start().await;
    app.connect(ProviderType::Postmark).await;
    app.connect(ProviderType::Smtp).await;
    app.execute(
        "UPDATE provider_accounts
         SET sending_paused_reason = 'the token is revoked', sending_paused_since = now()
         WHERE provider_type = 'POSTMARK'",
    )
    .await;
    let checks = doctor(&app.variables).await;
    assert_found(&checks, "accounts", "warning", "the token is revoked");
    assert_eq!(status(&checks, "providers"), "ok");
    app.stop_simulator().await;
    let checks = doctor(&app.variables).await;
    assert_found(&checks, "providers", "error", "POSTMARK at 127.0.0.1:");
    assert_found(&checks, "providers", "error", "SMTP at ");
    let nowhere = [("WAYPOST_PROVIDER_BASE_URL", "http://no-such-host.invalid")];
    let checks = doctor(&with(&app, &nowhere)).await;
    assert_found(
        &checks,
        "providers",
        "error",
        "POSTMARK at no-such-host.invalid",
    );
}

#[tokio::test]
async fn accounts_to_which_calls_fail_are_found_with_the_last_answer_and_the_mail_that_waits() {
    let app = TestApp::builder().setting("WAYPOST_RETRY_FIRST", "10min");
    let app = app.start().await;
    let id = app.connect(ProviderType::Sendgrid).await;
    app.simulator().set_fault(Fault {
        provider: Some(Provider::SendGrid),
        kind: FaultKind::Error,
        rate: 1.0,
        latency_ms: 0,
        calls: FaultCalls::Send,
    });
    app.send_to("a@example.org").await;
    app.drain().await;
    app.execute(&format!(
        "SELECT waypost_record_failing('{id}', 'CALLS_FAILED', now())"
    ))
    .await;
    let checks = doctor(&app.variables).await;
    let failing = format!("calls to SENDGRID for provider account {id} fail since");
    assert_found(&checks, "accounts", "warning", &failing);
    assert_found(&checks, "accounts", "warning", "HTTP 500");
    assert_found(&checks, "queue", "ok", "0 jobs are due, and 1 wait");
    app.execute(&format!(
        "SELECT waypost_record_recovered('{id}', 'CALLS_FAILED', now())"
    ))
    .await;
    assert_eq!(status(&doctor(&app.variables).await, "accounts"), "ok");
    app.leave_work();
}

#[tokio::test]
async fn mail_that_waits_and_parts_that_do_not_run_are_found() {
    let app = quiet().start().await;
    app.connect(ProviderType::Sendgrid).await;
    app.send_to("a@example.org").await;
    app.send_to("b@example.org").await;
    let checks = doctor(&app.variables).await;
    assert_found(&checks, "scheduler", "error", "no scheduler has run yet");
    assert_found(&checks, "workers", "error", "no worker runs");
    assert_eq!(status(&checks, "queue"), "ok");
    assert_eq!(status(&checks, "dead-jobs"), "ok");
    app.execute("UPDATE outbox SET wake_at = now() - interval '6 minutes'")
        .await;
    let late = "INSERT INTO scheduler_tasks (name, interval_ms, leader, last_started_at, last_succeeded_at)
         VALUES ('relay', 1000, 'x', now() - interval '1 hour', now() - interval '1 hour')";
    app.execute(late).await;
    let checks = doctor(&app.variables).await;
    assert_found(
        &checks,
        "queue",
        "error",
        "2 jobs are due and no worker has them, the oldest for 36",
    );
    assert_found(&checks, "scheduler", "error", "no scheduler runs");
    app.execute("UPDATE outbox SET dead_at = now(), dead_reason = 'its worker was lost each time'")
        .await;
    let checks = doctor(&app.variables).await;
    assert_found(
        &checks,
        "dead-jobs",
        "error",
        "its worker was lost each time",
    );
    assert_eq!(status(&checks, "queue"), "ok");
    app.leave_work();
}

#[tokio::test]
async fn webhook_endpoints_that_fail_are_found() {
    let app = quiet().start().await;
    let receiver = Receiver::start().await;
    let endpoint = json!({ "url": receiver.url(), "events": ["SENT"] });
    app.post("/v1/webhook-endpoints", &endpoint).await.data(201);
    assert_eq!(status(&doctor(&app.variables).await, "webhooks"), "ok");
    app.execute(
        "UPDATE webhook_endpoints SET failing_since = now() - interval '1 hour', failures = 9",
    )
    .await;
    let checks = doctor(&app.variables).await;
    let port = url::Url::parse(&receiver.url()).unwrap().port().unwrap();
    assert_found(
        &checks,
        "webhooks",
        "warning",
        &format!("at 127.0.0.1:{port} fails since"),
    );
    app.execute("UPDATE webhook_endpoints SET is_active = false")
        .await;
    let checks = doctor(&app.variables).await;
    assert_found(&checks, "webhooks", "warning", "was switched off");
}
