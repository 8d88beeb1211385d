//! A backup that is made while mail flows, and restored into another database with an empty
//! Redis.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection, Row as _};
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::Fault;
use waypost_tests::{
    Process, Program, TestApp, TestDatabase, postgres_program, wait_until, wait_within,
};

const MESSAGES: usize = 120;
/// So that mail is queued, in flight and sent when the backup begins.
const RATE_PER_SECOND: u32 = 20;
const PROVIDER_LATENCY_MS: u64 = 500;
const SENT_WITHIN: Duration = Duration::from_secs(60);

fn address(number: usize) -> String {
    format!("r{number}@example.org")
}

/// How often the simulator took a mail for each address.
fn captured(app: &TestApp) -> Vec<usize> {
    (0..MESSAGES)
        .map(|number| app.captured(&address(number)).len())
        .collect()
}

async fn dump(url: &str, file: &Path) {
    let output = std::fs::File::create(file).expect("a file can be made");
    let mut command = postgres_program("pg_dump");
    let command = command
        .args(["--format=custom", "--dbname", url])
        .stdout(output);
    assert!(command.status().await.unwrap().success(), "pg_dump");
}

async fn restore(url: &str, file: &Path) {
    let input = std::fs::File::open(file).expect("the backup can be read");
    let mut command = postgres_program("pg_restore");
    let command = command
        .args(["--no-owner", "--exit-on-error", "--dbname", url])
        .stdin(input);
    assert!(command.status().await.unwrap().success(), "pg_restore");
}

/// The messages by what a database knows of them: `sent`, `called` if a call to the provider is on
/// record without its outcome, or `queued`.
async fn known(url: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let rows = sqlx::query(
        "SELECT CASE WHEN r.status = 'SENT' THEN 'sent'
                     WHEN EXISTS (SELECT 1 FROM send_attempts a WHERE a.message_id = r.message_id) THEN 'called'
                     ELSE 'queued' END,
                r.message_id::text
         FROM recipients r",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in rows {
        found.entry(row.get(0)).or_default().insert(row.get(1));
    }
    found
}

/// Sends all messages, makes a backup while they are sent, and stops the programs when all are.
/// Returns the ids of the messages.
async fn back_up_while_mail_flows(app: &TestApp, file: &Path) -> Vec<String> {
    app.simulator()
        .set_fault(Fault::slow_sends(PROVIDER_LATENCY_MS));
    let mut programs = vec![app.spawn_api().await];
    let account = app.connect(ProviderType::Mailgun).await;
    let limit = json!({ "maxRatePerSecond": RATE_PER_SECOND });
    let path = format!("/v1/providers/{account}");
    app.patch(&path, &limit).await.expect(200);
    let mut ids = Vec::new();
    for number in 0..MESSAGES {
        ids.push(app.send_to(&address(number)).await);
    }
    programs.extend([app.spawn_worker(), app.spawn_scheduler()]);
    wait_until("some are sent", async || {
        captured(app).iter().sum::<usize>() >= MESSAGES / 4
    })
    .await;
    dump(&app.variables["DATABASE_URL"], file).await;
    let all = wait_within(SENT_WITHIN, async || app.outbox().await.is_empty());
    assert!(all.await, "work is left");
    assert_eq!(captured(app), vec![1; MESSAGES]);
    for program in &mut programs {
        program.terminate().await;
    }
    app.simulator().clear_faults();
    ids
}

/// Starts all programs, and waits until the API is ready.
async fn start_programs(app: &TestApp, variables: &HashMap<String, String>) -> [Process; 3] {
    let programs = [
        Program::Api.spawn(&["serve"], variables),
        Program::Worker.spawn(&[], variables),
        Program::Scheduler.spawn(&[], variables),
    ];
    wait_until("the API is ready", async || {
        let caller = app.caller().anonymous();
        let reply = caller.try_call(http::Method::GET, "/readyz", |request| request);
        reply.await.is_ok_and(|reply| reply.status == 200)
    })
    .await;
    programs
}

#[tokio::test]
async fn a_backup_made_while_mail_flows_is_restored_and_no_mail_is_sent_twice() {
    let builder = TestApp::builder().processes();
    let builder = builder
        .setting("WAYPOST_PROVIDER_TIMEOUT", "5s")
        .setting("WAYPOST_WORKER_LEASE", "12s")
        .setting("WAYPOST_WORKER_SHUTDOWN", "8s")
        // Enough for the look-ups of all mail that a provider was called for.
        .setting("WAYPOST_UNKNOWN_WAIT", "20s");
    let app = builder.start().await;
    app.simulator().set_search_lag(Duration::ZERO);
    let file = std::env::temp_dir().join(format!("waypost-it-{}.dump", std::process::id()));
    let ids = back_up_while_mail_flows(&app, &file).await;

    // The machine is lost, and Redis with it.
    let restored = TestDatabase::create_empty().await;
    restore(&restored.url, &file).await;
    std::fs::remove_file(&file).expect("the backup can be deleted");
    let mut variables = app.variables.clone();
    variables.insert("DATABASE_URL".to_owned(), restored.url.clone());
    variables.insert("WAYPOST_REDIS_PREFIX".to_owned(), restored.name.clone());
    let known_at_backup = known(&restored.url).await;
    for what in ["sent", "called", "queued"] {
        assert!(known_at_backup.contains_key(what), "{known_at_backup:?}");
    }
    let (sent, called) = (&known_at_backup["sent"], &known_at_backup["called"]);

    let run = async |arguments: &[&str]| Program::Api.run(arguments, &variables).await;
    let held = run(&["jobs", "hold-restored", "--json"]).await;
    assert!(held.success, "{held:?}");
    let held: Value = serde_json::from_str(&held.stdout).unwrap();
    let held = held["jobs"].as_array().unwrap();
    assert_eq!(held.len(), MESSAGES - sent.len());

    // The programs run, new mail is sent, and of the old mail nothing is sent again.
    let _programs = start_programs(&app, &variables).await;
    app.send_to("new@example.org").await;
    wait_until("new mail is sent", async || {
        !app.captured("new@example.org").is_empty()
    })
    .await;
    assert_eq!(captured(&app), vec![1; MESSAGES]);
    let refused = run(&["jobs", "hold-restored"]).await;
    assert!(
        !refused.success && refused.stderr.contains("stop all"),
        "{refused:?}"
    );

    // The operator decides to send what was held: nothing is lost, and what the backup knew as
    // sent, or as called and the provider has, is not sent again.
    let retried = run(&["jobs", "retry", "--all"]).await;
    assert!(retried.success, "{retried:?}");
    let all = wait_within(SENT_WITHIN, async || {
        known(&restored.url).await.keys().all(|what| what == "sent")
    });
    assert!(all.await, "{:?}", known(&restored.url).await);
    let expected = ids.iter().map(|id| {
        // The backup did not know that the others were sent.
        if sent.contains(id) || called.contains(id) {
            1
        } else {
            2
        }
    });
    assert_eq!(captured(&app), expected.collect::<Vec<usize>>());
    restored.remove().await;
}
