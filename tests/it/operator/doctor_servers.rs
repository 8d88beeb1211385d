//! `waypost-api doctor` and servers that are set up wrongly.

use waypost_tests::{TestApp, redis_connection};

use super::doctor::{assert_found, doctor, with};

/// A key for production.
const KEY: &str = "1:dGhlIGZpcnN0IGtleSBoYXMgMzIgYnl0ZXMsIHRvby4=";

async fn start() -> TestApp {
    let builder = TestApp::builder().without_worker().without_scheduler();
    builder.start().await
}

/// The name of a test's database, for ALTER DATABASE.
async fn database(app: &TestApp) -> String {
    app.value("SELECT quote_ident(current_database())")
        .await
        .unwrap()
}

#[tokio::test]
async fn a_redis_that_evicts_is_found() {
    let builder = TestApp::builder().private_redis();
    let app = builder.without_worker().without_scheduler().start().await;
    let mut connection = redis_connection(&app.variables["REDIS_URL"]).await.unwrap();
    redis::cmd("CONFIG")
        .arg(&["SET", "maxmemory-policy", "allkeys-lru"])
        .query_async::<()>(&mut connection)
        .await
        .unwrap();
    let checks = doctor(&app.variables).await;
    assert_found(
        &checks,
        "redis-memory",
        "warning",
        "maxmemory-policy allkeys-lru",
    );
}

#[tokio::test]
async fn commits_that_are_not_on_disk_are_an_error_in_production() {
    let app = start().await;
    let name = database(&app).await;
    app.execute(&format!(
        "ALTER DATABASE {name} SET synchronous_commit = off"
    ))
    .await;
    let checks = doctor(&app.variables).await;
    assert_found(&checks, "durability", "warning", "synchronous_commit");
    let production = with(
        &app,
        &[
            ("WAYPOST_ENV", "production"),
            ("WAYPOST_ENCRYPTION_KEYS", KEY),
            ("WAYPOST_PUBLIC_URL", "https://203.0.112.7"),
        ],
    );
    let checks = doctor(&production).await;
    assert_found(&checks, "durability", "error", "synchronous_commit");
    app.execute(&format!(
        "ALTER DATABASE {name} SET synchronous_commit = on"
    ))
    .await;
    let checks = doctor(&production).await;
    let durability = checks.iter().find(|check| check["name"] == "durability");
    let message = durability.unwrap()["message"].as_str().unwrap();
    assert!(!message.contains("synchronous_commit"), "{message}");
}

#[tokio::test]
async fn a_clock_that_differs_from_that_of_postgres_is_found() {
    let app = start().await;
    let name = database(&app).await;
    for (shift, part) in [
        ("+ interval '1 hour'", "s behind Postgres"),
        ("- interval '1 hour'", "s ahead of Postgres"),
    ] {
        // Found before the function of Postgres itself.
        app.execute(&format!(
            "CREATE OR REPLACE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
             'SELECT pg_catalog.clock_timestamp() {}';
             ALTER DATABASE {name} SET search_path = public, pg_catalog",
            shift.replace('\'', "''"),
        ))
        .await;
        assert_found(&doctor(&app.variables).await, "clock", "warning", part);
    }
}

#[tokio::test]
async fn a_full_disk_is_reported_in_the_words_of_postgres() {
    let app = start().await;
    app.execute(
        "CREATE FUNCTION fill_disk() RETURNS event_trigger LANGUAGE plpgsql AS $$
         BEGIN
             RAISE EXCEPTION USING ERRCODE = '53100',
                 MESSAGE = 'could not extend file \"base/5/16384\": No space left on device';
         END $$;
         CREATE EVENT TRIGGER fill_disk ON ddl_command_start EXECUTE FUNCTION fill_disk()",
    )
    .await;
    let checks = doctor(&app.variables).await;
    assert_found(
        &checks,
        "postgres-writes",
        "error",
        "No space left on device",
    );
    let check = checks
        .iter()
        .find(|check| check["name"] == "postgres-writes");
    let fix = check.unwrap()["fix"].as_str().unwrap();
    assert!(fix.contains("free disk space"), "{fix}");
}

#[tokio::test]
async fn a_database_of_another_version_or_without_extensions_is_found() {
    let app = start().await;
    app.execute(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (99990101000000, 'later', true, '\\x00', 0)",
    )
    .await;
    let checks = doctor(&app.variables).await;
    assert_found(&checks, "schema", "warning", "belongs to a newer version");
    app.execute("DROP EXTENSION pg_trgm CASCADE").await;
    let checks = doctor(&app.variables).await;
    assert_found(&checks, "extensions", "error", "pg_trgm any more");
}

#[tokio::test]
async fn a_server_that_is_too_small_or_read_only_or_forbids_much_is_found() {
    let builder = TestApp::builder().private_postgres();
    let mut app = builder.without_worker().without_scheduler().start().await;
    let url = app.variables["DATABASE_URL"].clone();
    app.execute("CREATE ROLE guest LOGIN").await;
    app.execute("CREATE DATABASE guests").await;
    let mut guest = url::Url::parse(&url).unwrap();
    guest.set_username("guest").unwrap();
    guest.set_path("/guests");
    let checks = doctor(&with(&app, &[("DATABASE_URL", guest.as_str())])).await;
    assert_found(
        &checks,
        "extensions",
        "error",
        "extension pg_trgm, and the user may not",
    );
    assert_found(
        &checks,
        "extensions",
        "error",
        "extension btree_gin, and the user may not",
    );
    assert_found(&checks, "postgres-writes", "error", "permission denied");
    assert_found(&checks, "schema", "error", "is not migrated");

    let name = database(&app).await;
    app.execute(&format!(
        "ALTER DATABASE {name} SET default_transaction_read_only = on"
    ))
    .await;
    let checks = doctor(&app.variables).await;
    assert_found(&checks, "postgres", "error", "accepts no writes");
    app.execute(&format!(
        "ALTER DATABASE {name} RESET default_transaction_read_only"
    ))
    .await;

    app.execute("ALTER SYSTEM SET max_connections = 30").await;
    app.execute("ALTER SYSTEM SET max_wal_senders = 2").await;
    let mut server = app.postgres.take().unwrap();
    server.stop().await;
    server.resume().await;
    let checks = doctor(&app.variables).await;
    assert_found(&checks, "connections", "warning", "max_connections = 30");

    server.become_standby().await;
    let checks = doctor(&app.variables).await;
    assert_found(&checks, "postgres", "error", "accepts no writes");
}
