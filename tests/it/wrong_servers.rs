//! Settings that name an unusable server: every program and command reports it once, in
//! one sentence with the address and a hint, without the password, and fails if waiting
//! would not help.

use std::collections::HashMap;
use std::os::unix::process::CommandExt as _;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Finished, Program, Refusal, TestApp, binaries, wait_until};

/// A part of every password in these tests.
const CANARY: &str = "canary";
/// An id for commands that require one.
const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

/// Every command that uses Postgres.
const COMMANDS: [&[&str]; 9] = [
    &["doctor"],
    &["create-organization", "--name", "x"],
    &["create-api-key", "--organization", NOBODY, "--name", "x"],
    &["rotate-keys"],
    &["jobs", "list"],
    &["jobs", "retry", "--all"],
    &["jobs", "drop", NOBODY],
    &["workers"],
    &["tasks"],
];

const PROGRAMS: [(Program, &[&str]); 3] = [
    (Program::Api, &["serve"]),
    (Program::Worker, &[]),
    (Program::Scheduler, &[]),
];

fn with(app: &TestApp, name: &str, value: &str) -> HashMap<String, String> {
    let mut variables = app.variables.clone();
    variables.insert(name.to_owned(), value.to_owned());
    variables.insert("WAYPOST_LISTEN".to_owned(), "127.0.0.1:0".to_owned());
    variables
}

fn assert_reported(what: &str, finished: &Finished, parts: &[&str]) {
    assert!(!finished.success, "{what}: {finished:?}");
    assert_printed(what, finished, parts);
}

fn assert_printed(what: &str, finished: &Finished, parts: &[&str]) {
    assert!(!finished.stderr.contains(CANARY), "{what}: {finished:?}");
    for part in parts {
        let times = finished.stderr.matches(part).count();
        assert_eq!(times, 1, "{what}: {part} in {finished:?}");
    }
}

/// A server that responds like a Postgres that accepts no password.
async fn strict_postgres() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut said = [0; 1024];
                // The client asks for TLS first.
                let asked = stream.read(&mut said).await.unwrap_or(0);
                if asked == 8 {
                    stream.write_all(b"N").await.ok()?;
                    let _begun = stream.read(&mut said).await.ok()?;
                }
                let fields =
                    b"SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed for user \"ann\"\0\0";
                let length = u32::try_from(fields.len() + 4).ok()?.to_be_bytes();
                let answer = [&b"E"[..], &length, fields].concat();
                stream.write_all(&answer).await.ok()
            });
        }
    });
    address
}

#[tokio::test]
async fn every_command_reports_an_unusable_postgres_in_one_sentence() {
    let app = TestApp::builder().without_worker().start().await;
    let strict = strict_postgres().await;
    let url = url::Url::parse(&app.variables["DATABASE_URL"]).unwrap();
    let server = format!("127.0.0.1:{}", url.port().unwrap());
    // With the right password, since a Postgres that asks for one checks it first.
    let mut elsewhere = url.clone();
    elsewhere.set_path("/nowhere_at_all");
    for (url, parts) in [
        (
            format!("postgres://ann:{CANARY}@127.0.0.1:1/x"),
            ["Postgres at 127.0.0.1:1 cannot be reached", "is it running"],
        ),
        (
            format!("postgres://ann:{CANARY}@no-such-host.invalid/x"),
            ["no-such-host.invalid:5432 cannot be", "is it running"],
        ),
        (
            format!("postgresql://ann:{CANARY}@{strict}/x"),
            [strict.as_str(), "the password in DATABASE_URL"],
        ),
        (
            elsewhere.to_string(),
            [server.as_str(), "has no database nowhere_at_all: create it"],
        ),
        (
            format!("mysql://ann:{CANARY}@127.0.0.1:3306/x"),
            [
                "names mysql://127.0.0.1:3306",
                "postgres://user:password@host",
            ],
        ),
        (
            format!("postgres://ann:{CANARY}@@:x/y"),
            ["DATABASE_URL must have", "as %40"],
        ),
    ] {
        let variables = with(&app, "DATABASE_URL", &url);
        for arguments in COMMANDS.into_iter().chain([&["migrate"][..]]) {
            let finished = Program::Api.run(arguments, &variables).await;
            assert_reported(&format!("{arguments:?} {url}"), &finished, &parts);
        }
    }
}

#[tokio::test]
async fn a_server_that_accepts_no_writes_is_not_used() {
    let app = TestApp::builder().without_worker().start().await;
    let mut standby = url::Url::parse(&app.variables["DATABASE_URL"]).unwrap();
    standby.set_query(Some("options[default_transaction_read_only]=on"));
    let variables = with(&app, "DATABASE_URL", standby.as_str());
    let part = "accepts no writes: is it a standby";
    for arguments in COMMANDS {
        let finished = Program::Api.run(arguments, &variables).await;
        assert_reported(&format!("{arguments:?}"), &finished, &[part]);
    }
    for (program, arguments) in PROGRAMS {
        let mut process = program.spawn(arguments, &variables);
        let what = format!("{program:?} says it");
        wait_until(&what, async || {
            let log = process.log();
            log.contains(part) && log.contains("Postgres is away")
        })
        .await;
        assert!(!process.has_ended(), "{what}");
        let log = process.log();
        assert_eq!(log.matches(part).count(), 1, "{log}");
        assert!(!log.contains("ERROR"), "{log}");
    }
}

#[tokio::test]
async fn an_unmigrated_database_is_reported_with_the_command_to_run() {
    let builder = TestApp::builder().without_migrations();
    let app = builder.without_worker().without_scheduler().start().await;
    let variables = with(&app, "WAYPOST_LOG", "warn");
    for arguments in COMMANDS {
        let finished = Program::Api.run(arguments, &variables).await;
        let parts = ["is not migrated", "127.0.0.1:", "run `waypost-api migrate`"];
        assert_reported(&format!("{arguments:?}"), &finished, &parts);
    }
}

#[tokio::test]
async fn programs_take_no_work_before_the_migrations_and_begin_after_them() {
    let builder = TestApp::builder().without_migrations();
    let app = builder.without_worker().without_scheduler().start().await;
    let variables = with(&app, "WAYPOST_LOG", "info");
    for (program, arguments, begun) in [
        (Program::Worker, &[][..], "Worker started"),
        (Program::Scheduler, &[], "Started the scheduler"),
    ] {
        let process = program.spawn(arguments, &variables);
        let what = format!("{program:?} says that it waits");
        let waits = "which waits until `waypost-api migrate` has run";
        wait_until(&what, async || process.log().contains(waits)).await;
        assert!(!process.log().contains(begun), "{}", process.log());
        waypost_core::db::migrate(&app.pool).await.unwrap();
        let what = format!("{program:?} begins");
        wait_until(&what, async || process.log().contains(begun)).await;
        // For the next program.
        let schema = "DROP SCHEMA public CASCADE; CREATE SCHEMA public";
        sqlx::raw_sql(schema).execute(&app.pool).await.unwrap();
    }
}

#[tokio::test]
async fn programs_refuse_to_start_with_a_misconfigured_postgres() {
    let app = TestApp::builder().without_worker().start().await;
    let strict = strict_postgres().await;
    let mut other = url::Url::parse(&app.variables["DATABASE_URL"]).unwrap();
    other.set_path("/nowhere_at_all");
    for (url, part) in [
        (
            format!("postgres://ann:{CANARY}@{strict}/x"),
            "denies access",
        ),
        (other.to_string(), "has no database nowhere_at_all"),
        (
            format!("mysql://ann:{CANARY}@127.0.0.1/x"),
            "names mysql://127.0.0.1 ",
        ),
    ] {
        for (program, arguments) in PROGRAMS {
            let finished = program
                .run(arguments, &with(&app, "DATABASE_URL", &url))
                .await;
            assert_reported(&format!("{program:?} {url}"), &finished, &[part]);
        }
    }
}

#[tokio::test]
async fn programs_start_while_a_server_is_down_and_say_which() {
    let app = TestApp::builder().without_worker().start().await;
    let away = format!("postgres://ann:{CANARY}@127.0.0.1:1/x");
    for (name, url, sentence) in [
        (
            "DATABASE_URL",
            away.as_str(),
            "Postgres at 127.0.0.1:1 cannot be reached",
        ),
        (
            "REDIS_URL",
            "redis://ann:canary@127.0.0.1:1/0",
            "Redis at 127.0.0.1:1 cannot be reached",
        ),
    ] {
        for (program, arguments) in PROGRAMS {
            let mut process = program.spawn(arguments, &with(&app, name, url));
            let what = format!("{program:?} says it of {name}");
            wait_until(&what, async || process.log().contains(sentence)).await;
            assert!(!process.has_ended(), "{what}");
            let log = process.log();
            assert_eq!(log.matches(sentence).count(), 1, "{log}");
            assert!(!log.contains(CANARY), "{log}");
        }
    }
}

#[tokio::test]
async fn an_unusable_redis_is_reported_in_one_sentence() {
    let builder = TestApp::builder().private_redis();
    let app = builder.without_worker().without_scheduler().start().await;
    let redis = app.redis.as_ref().unwrap();
    let strict = url::Url::parse(&app.variables["REDIS_URL"]).unwrap();
    let strict = format!("127.0.0.1:{}", strict.port().unwrap());
    let number = with(&app, "REDIS_URL", &format!("redis://{strict}/987654"));
    let finished = Program::Api.run(&["doctor"], &number).await;
    let parts = [strict.as_str(), "the number of the database in REDIS_URL"];
    assert_reported("another number", &finished, &parts);
    app.connect(ProviderType::Sendgrid).await;
    app.send_to("a@example.org").await;
    redis.refuse(Refusal::Password).await;
    for (url, parts) in [
        (
            format!("redis://:{CANARY}@127.0.0.1:1/0"),
            ["Redis at 127.0.0.1:1 cannot be reached", "is it running"],
        ),
        (
            format!("redis://{strict}/0"),
            [strict.as_str(), "the password in REDIS_URL"],
        ),
        (
            format!("redis://:{CANARY}@{strict}/0"),
            [strict.as_str(), "the password in REDIS_URL"],
        ),
        (
            format!("http://ann:{CANARY}@127.0.0.1:6379"),
            ["names http://127.0.0.1:6379", "redis://user:password@host"],
        ),
    ] {
        let variables = with(&app, "REDIS_URL", &url);
        let finished = Program::Api.run(&["doctor"], &variables).await;
        assert_reported(&url, &finished, &parts);
        // Dead letters are retried all the same, if the setting can be read.
        app.execute("UPDATE outbox SET losses = 5, dead_at = now(), dead_reason = 'a reason'")
            .await;
        let finished = Program::Api
            .run(&["jobs", "retry", "--all"], &variables)
            .await;
        assert_printed(&url, &finished, &parts);
    }
    app.leave_work();
}

#[tokio::test]
async fn every_program_prints_its_name_and_version() {
    let nothing = HashMap::new();
    for (program, name) in [
        (Program::Api, "waypost-api"),
        (Program::Worker, "waypost-worker"),
        (Program::Scheduler, "waypost-scheduler"),
        (Program::Smtp, "waypost-smtp"),
    ] {
        let version = program.run(&["--version"], &nothing).await;
        let expected = format!("{name} {}\n", env!("CARGO_PKG_VERSION"));
        assert!(version.success && version.stdout == expected, "{version:?}");
        let help = program.run(&["--help"], &nothing).await;
        let usage = format!("Usage: {name}");
        assert!(help.success && help.stdout.contains(&usage), "{help:?}");
        let wrong = program.run(&["--no-such-thing"], &nothing).await;
        assert!(
            !wrong.success && wrong.stderr.contains("--no-such-thing"),
            "{wrong:?}"
        );
    }
}

#[test]
fn the_file_with_all_programs_is_the_one_that_it_is_called() {
    let called = |name: &str| {
        let mut command = std::process::Command::new(binaries().join("waypost"));
        command.arg0(name).arg("--version").env_clear();
        let output = command
            .output()
            .expect("`cargo build --workspace --bins` makes it");
        (output.status.success(), output)
    };
    for name in [
        "waypost-api",
        "waypost-worker",
        "waypost-scheduler",
        "waypost-smtp",
    ] {
        for path in [name.to_owned(), format!("/usr/local/bin/{name}")] {
            let (success, output) = called(&path);
            let expected = format!("{name} {}\n", env!("CARGO_PKG_VERSION"));
            assert!(
                success && output.stdout == expected.as_bytes(),
                "{output:?}"
            );
        }
    }
    let (success, output) = called("waypost");
    let says = String::from_utf8_lossy(&output.stderr);
    assert!(!success && says.contains("waypost-scheduler"), "{output:?}");
}
