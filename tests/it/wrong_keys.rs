//! Another encryption key than that of the sealed data: nothing could be sent, so every
//! program reports it and refuses to start.

use std::collections::HashMap;

use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Finished, Program, TestApp, wait_until};

const FIRST: &str = "dGhlIGZpcnN0IGtleSBoYXMgMzIgYnl0ZXMsIHRvby4=";
const OTHER: &str = "YW5vdGhlciBrZXkgb2YgMzIgYnl0ZXMgZm9yIHRlc3Q=";

async fn start(keys: &str) -> TestApp {
    let builder = TestApp::builder().processes();
    builder
        .setting("WAYPOST_ENCRYPTION_KEYS", keys)
        .start()
        .await
}

fn with_keys(app: &TestApp, keys: &str) -> HashMap<String, String> {
    let mut variables = app.variables.clone();
    variables.insert("WAYPOST_ENCRYPTION_KEYS".to_owned(), keys.to_owned());
    variables
}

fn assert_refused(what: &str, finished: &Finished, secrets: usize) {
    assert!(!finished.success, "{what}: {finished:?}");
    let sentence = format!("{secrets} secrets cannot be decrypted with WAYPOST_ENCRYPTION_KEYS");
    assert!(finished.stderr.contains(&sentence), "{what}: {finished:?}");
    for key in [OTHER, FIRST] {
        assert!(!finished.stderr.contains(key), "{what}: {finished:?}");
    }
}

#[tokio::test]
async fn doctor_and_every_start_fail_with_another_key() {
    let app = start(&format!("1:{FIRST}")).await;
    {
        let _api = app.spawn_api().await;
        for kind in [ProviderType::Sendgrid, ProviderType::Postmark] {
            app.connect(kind).await;
        }
    }
    let count = "SELECT count(*) + count(event_secrets_sealed) FROM provider_accounts";
    let secrets: usize = app.value(count).await.unwrap().parse().unwrap();
    assert!(secrets >= 2);
    for keys in [
        format!("1:{OTHER}"),
        format!("2:{OTHER}"),
        format!("2:{OTHER},3:{FIRST}"),
    ] {
        let variables = with_keys(&app, &keys);
        for (program, arguments) in [
            (Program::Api, &["doctor"][..]),
            (Program::Api, &["serve"]),
            (Program::Worker, &[]),
            (Program::Scheduler, &[]),
        ] {
            let finished = program.run(arguments, &variables).await;
            let what = format!("{program:?} {arguments:?} {keys}");
            assert_refused(&what, &finished, secrets);
        }
    }
    // The next key first, as in a rotation; then the old one is removed.
    let both = format!("2:{OTHER},1:{FIRST}");
    let new = format!("2:{OTHER}");
    for (keys, command) in [
        (&both, "doctor"),
        (&both, "rotate-keys"),
        (&both, "doctor"),
        (&new, "doctor"),
    ] {
        let finished = Program::Api.run(&[command], &with_keys(&app, keys)).await;
        assert!(finished.success, "{command} {keys}: {finished:?}");
    }
    let finished = Program::Api.run(&["doctor"], &app.variables).await;
    assert_refused("the old key", &finished, secrets);
}

#[tokio::test]
async fn one_changed_secret_stops_no_program_and_doctor_reports_it() {
    let app = start(&format!("1:{FIRST}")).await;
    {
        let _api = app.spawn_api().await;
        for _ in 0..3 {
            app.connect(ProviderType::Sendgrid).await;
        }
    }
    app.execute(
        "UPDATE provider_accounts SET credentials_sealed = credentials_sealed || '\\x00'
         WHERE id = (SELECT min(id::text)::uuid FROM provider_accounts)",
    )
    .await;
    let _api = app.spawn_api().await;
    assert_eq!(app.caller().anonymous().get("/readyz").await.status, 200);
    let finished = Program::Api.run(&["doctor"], &app.variables).await;
    assert!(!finished.success, "{finished:?}");
    let complaint = "1 secret cannot be decrypted";
    assert!(finished.stderr.contains(complaint), "{finished:?}");
}

#[tokio::test]
async fn a_process_whose_key_becomes_wrong_is_not_ready() {
    let app = start(&format!("1:{FIRST}")).await;
    let _api = app.spawn_api().await;
    let anonymous = app.caller().anonymous();
    let ready = anonymous.get("/readyz").await.json();
    assert_eq!(ready["encryptionKeys"], "ok");
    app.connect(ProviderType::Sendgrid).await;
    app.execute(
        "UPDATE provider_accounts
         SET credentials_sealed = set_byte(credentials_sealed, 2, 9)",
    )
    .await;
    wait_until("it is not ready", async || {
        let reply = anonymous.get("/readyz").await;
        let said = reply.json()["encryptionKeys"].to_string();
        reply.status == 503 && said.contains("cannot be decrypted with WAYPOST_ENCRYPTION_KEYS")
    })
    .await;
}
