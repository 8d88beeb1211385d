//! The operator's commands, run as an operator runs them.

mod commands;
mod doctor;
mod doctor_servers;
mod restore;

use std::collections::HashMap;

use serde_json::{Value, json};
use waypost_core::auth::Role;
use waypost_core::config::Settings;
use waypost_core::crypto::seal::EXAMPLE_KEYS;
use waypost_core::provider::kind::ProviderType;

use waypost_tests::{
    Finished, PASSWORD, Program, Receiver, TestApp, credentials, message_to, root, wait_until,
};

async fn run(app: &TestApp, arguments: &[&str]) -> Finished {
    Program::Api.run(arguments, &app.variables).await
}

async fn succeed(app: &TestApp, arguments: &[&str]) -> String {
    let finished = run(app, arguments).await;
    assert!(finished.success, "{arguments:?}: {finished:?}");
    finished.stdout.trim().to_owned()
}

fn variables(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[tokio::test]
async fn from_an_empty_database_to_a_sent_message_by_commands_alone() {
    let app = TestApp::builder()
        .without_migrations()
        .processes()
        .start()
        .await;
    succeed(&app, &["migrate"]).await;
    succeed(&app, &["migrate"]).await;
    let organization = succeed(&app, &["create-organization", "--name", "First"]).await;
    assert!(organization.parse::<uuid::Uuid>().is_ok(), "{organization}");
    let key = succeed(
        &app,
        &[
            "create-api-key",
            "--organization",
            &organization,
            "--name",
            "All",
        ],
    )
    .await;
    assert!(key.starts_with("wp_live_"), "{key}");
    let _all = (
        app.spawn_api().await,
        app.spawn_worker(),
        app.spawn_scheduler(),
    );
    let caller = app.caller().with_key(&key);
    let account = json!({
        "providerType": "SENDGRID", "displayName": "First", "credentials": credentials(ProviderType::Sendgrid),
    });
    caller.post("/v1/providers", &account).await.data(201);
    caller
        .post("/v1/send", &message_to("a@example.org"))
        .await
        .expect(202);
    app.drain().await;
    app.captured_once("a@example.org");
}

#[tokio::test]
async fn a_key_made_with_permissions_has_those_and_no_others() {
    let app = TestApp::builder().without_worker().start().await;
    let organization = app.organization_id().to_string();
    let key = succeed(
        &app,
        &[
            "create-api-key",
            "--organization",
            &organization,
            "--name",
            "Narrow",
            "--permission",
            "METRICS_READ",
            "--permission",
            "SEND",
        ],
    )
    .await;
    let caller = app.caller().with_key(&key);
    caller.get("/v1/messages").await.expect(200);
    caller
        .post("/v1/send", &json!({}))
        .await
        .expect_error(400, "VALIDATION_ERROR");
    caller
        .get("/v1/providers")
        .await
        .expect_error(403, "FORBIDDEN");
}

#[tokio::test]
async fn secrets_are_reencrypted_with_the_first_key() {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    let account = json!({
        "providerType": "MAILGUN", "displayName": "Second", "credentials": credentials(ProviderType::Mailgun),
        "eventSecrets": { "signingKey": "key-0123456789" },
    });
    app.post("/v1/providers", &account).await.data(201);
    let receiver = Receiver::start().await;
    let endpoint = json!({ "url": receiver.url(), "events": ["SENT"] });
    let endpoint = app.post("/v1/webhook-endpoints", &endpoint).await.data(201);
    let rotate = format!(
        "/v1/webhook-endpoints/{}/rotate-secret",
        endpoint["id"].as_str().unwrap()
    );
    app.post(&rotate, &json!({})).await.data(200);
    let owner = app.member(app.organization_id(), Role::Owner).await;
    let password = json!({ "password": PASSWORD });
    owner.post("/v1/user/totp", &password).await.data(200);
    let key = |id: u16| format!("{id}:{}", "A".repeat(42) + &id.to_string() + "=");
    let run_with = async |keys: &[String]| {
        let mut variables = app.variables.clone();
        variables.insert("WAYPOST_ENCRYPTION_KEYS".to_owned(), keys.join(","));
        let finished = Program::Api.run(&["rotate-keys"], &variables).await;
        let counts = finished.stderr.lines().filter_map(|line| {
            let count = line.strip_suffix(" encrypted again")?.rsplit(' ').next()?;
            count.parse::<u32>().ok()
        });
        (finished.success, counts.collect::<Vec<_>>())
    };
    let (second, third) = (key(4), key(8));
    let both = [second.clone(), EXAMPLE_KEYS.to_owned()];
    assert_eq!(run_with(&both).await, (true, vec![2, 1, 1, 1, 1]));
    assert_eq!(run_with(&both).await, (true, vec![0, 0, 0, 0, 0]));
    // The first key is no longer needed, and without the second nothing can be decrypted.
    assert_eq!(
        run_with(&[third.clone(), second]).await,
        (true, vec![2, 1, 1, 1, 1])
    );
    let (success, counts) = run_with(&[key(0)]).await;
    assert!(!success);
    assert_eq!(counts, [0, 0, 0, 0, 0]);
}

#[tokio::test]
async fn a_command_that_fails_says_why() {
    let app = TestApp::builder().without_worker().start().await;
    let nobody = uuid::Uuid::nil().to_string();
    let organization = app.organization_id().to_string();
    for (arguments, word) in [
        (
            vec!["create-api-key", "--organization", &nobody, "--name", "x"],
            "organization",
        ),
        (
            vec!["create-api-key", "--organization", "no-id", "--name", "x"],
            "organization",
        ),
        (
            vec![
                "create-api-key",
                "--organization",
                &organization,
                "--name",
                "x",
                "--permission",
                "FLY",
            ],
            "permission",
        ),
        (vec!["create-organization", "--name", ""], "name"),
        (vec!["create-organization"], "--name"),
        (vec!["fly"], "fly"),
    ] {
        let finished = run(&app, &arguments).await;
        assert!(!finished.success, "{arguments:?}: {finished:?}");
        assert!(finished.stdout.is_empty(), "{arguments:?}: {finished:?}");
        assert!(
            finished.stderr.contains(word),
            "{arguments:?}: {finished:?}"
        );
    }
    assert_eq!(
        app.value("SELECT count(*) FROM organizations")
            .await
            .as_deref(),
        Some("1")
    );
}

#[tokio::test]
async fn the_printed_document_is_the_one_that_is_served_and_the_one_that_is_committed() {
    let app = TestApp::builder().without_worker().start().await;
    let printed: Value = serde_json::from_str(&succeed(&app, &["openapi"]).await).unwrap();
    let served = app.get("/openapi.json").await.expect(200);
    assert_eq!(printed, served);
    // The file is missing until it is generated for the first time.
    if let Ok(committed) = std::fs::read_to_string(root().join("openapi/waypost.v1.json")) {
        let committed: Value = serde_json::from_str(&committed).unwrap();
        assert_eq!(
            committed, served,
            "`make generate` renews the committed document"
        );
    }
}

#[tokio::test]
async fn the_configurations_reference_lists_every_setting() {
    let nothing = HashMap::new();
    for format in ["env", "markdown"] {
        let finished = Program::Api
            .run(&["config", "--format", format], &nothing)
            .await;
        assert!(finished.success, "{finished:?}");
        for setting in Settings::reference() {
            assert!(
                finished.stdout.contains(setting.name),
                "{format}: {}",
                setting.name
            );
            assert!(
                finished.stdout.contains(setting.meaning),
                "{format}: {}",
                setting.name
            );
        }
    }
}

#[tokio::test]
async fn an_invalid_configuration_is_rejected_with_every_mistake_in_one_message() {
    let bad = variables(&[
        ("WAYPOST_ENV", "staging"),
        ("WAYPOST_LISTEN", "nowhere"),
        ("WAYPOST_PROVIDER_TIMEOUT", "soon"),
        ("WAYPOST_WORKER_CONCURRENCY", "0"),
        ("WAYPOST_LOG_FORMAT", "xml"),
        ("WAYPOST_SES_BASE_URL", "not a URL"),
    ]);
    for (program, arguments) in [
        (Program::Api, vec!["serve"]),
        (Program::Worker, vec![]),
        (Program::Scheduler, vec![]),
        (Program::Api, vec!["migrate"]),
    ] {
        let finished = program.run(&arguments, &bad).await;
        assert!(!finished.success, "{finished:?}");
        for name in bad
            .keys()
            .map(String::as_str)
            .chain(["DATABASE_URL", "WAYPOST_ENCRYPTION_KEYS"])
        {
            assert!(
                finished.stderr.contains(name),
                "{program:?}: {name} in {finished:?}"
            );
        }
    }
}

#[tokio::test]
async fn the_example_key_is_rejected_in_production_and_no_secret_is_printed() {
    let keys = "1:d2F5cG9zdCBleGFtcGxlIGtleSwgbm90IHNlY3JldCE=";
    let bad = variables(&[
        (
            "DATABASE_URL",
            "postgres://user:canary-password@localhost/waypost",
        ),
        ("WAYPOST_ENCRYPTION_KEYS", keys),
    ]);
    for (program, arguments) in [
        (Program::Api, vec!["serve"]),
        (Program::Worker, vec![]),
        (Program::Scheduler, vec![]),
    ] {
        let finished = program.run(&arguments, &bad).await;
        assert!(!finished.success, "{finished:?}");
        assert!(
            finished.stderr.contains("WAYPOST_ENCRYPTION_KEYS"),
            "{finished:?}"
        );
        assert!(
            !finished.stderr.contains("canary-password") && !finished.stderr.contains(&keys[2..]),
            "{finished:?}"
        );
    }
}

#[tokio::test]
async fn the_doctor_and_the_health_check_report_their_findings() {
    let app = TestApp::builder().start().await;
    wait_until("doctor finds no error", async || {
        run(&app, &["doctor"]).await.success
    })
    .await;
    succeed(&app, &["healthcheck"]).await;
    let mut misspelt = app.variables.clone();
    misspelt.insert("WAYPOST_RETENTION_DAY".to_owned(), "30".to_owned());
    let finished = Program::Api.run(&["doctor"], &misspelt).await;
    assert!(
        finished.success && finished.stderr.contains("no setting WAYPOST_RETENTION_DAY"),
        "{finished:?}"
    );
    let mut elsewhere = app.variables.clone();
    elsewhere.insert("WAYPOST_LISTEN".to_owned(), "127.0.0.1:1".to_owned());
    elsewhere.insert(
        "DATABASE_URL".to_owned(),
        "postgres://user:canary-password@127.0.0.1:1/x".to_owned(),
    );
    for command in ["doctor", "healthcheck", "migrate"] {
        let finished = Program::Api.run(&[command], &elsewhere).await;
        assert!(!finished.success, "{command}: {finished:?}");
        assert!(
            !finished.stderr.is_empty() && !finished.stderr.contains("canary"),
            "{command}: {finished:?}"
        );
    }
}

#[tokio::test]
async fn concurrent_migrations_are_harmless() {
    let app = TestApp::builder()
        .without_migrations()
        .processes()
        .start()
        .await;
    let all = futures_util::future::join_all((0..4).map(|_| run(&app, &["migrate"]))).await;
    assert!(all.iter().all(|finished| finished.success), "{all:?}");
    succeed(&app, &["create-organization", "--name", "First"]).await;
}
