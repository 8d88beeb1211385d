//! A database for each test, copied from a template that has the migrations. The name of
//! the template contains a hash of the migrations, so the first test after a change
//! creates a new one.

use std::sync::atomic::{AtomicUsize, Ordering};

use sha2::{Digest, Sha256};
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};
use tokio::sync::OnceCell;
use url::Url;
use waypost_core::clock::Clock;
use waypost_core::db::{self, PgPool};
use waypost_core::secret::Secret;

use crate::environment;
use crate::postgres_server::PostgresServer;
use crate::wait::{WAIT_MAX, wait_until};

/// Prefix of the test databases; the Unix time of their creation follows.
const PREFIX: &str = "waypost_it_at_";
const TEMPLATE_PREFIX: &str = "waypost_it_template_";
/// Older databases belong to runs that were interrupted.
const STALE_AFTER_SECONDS: i64 = 3_600;

/// A database that no other test uses.
#[derive(Debug, Clone)]
pub struct TestDatabase {
    /// Unique on its server.
    pub name: String,
    /// How to connect to it.
    pub url: String,
}

impl TestDatabase {
    /// A database with all migrations.
    pub async fn create() -> Self {
        let template = template().await;
        // By files it takes 20 ms of CPU, through the WAL 68.
        Self::create_from(&format!(" TEMPLATE \"{template}\" STRATEGY FILE_COPY")).await
    }

    /// A database without any migration.
    pub async fn create_empty() -> Self {
        Self::create_from("").await
    }

    /// The database of a test's own server, with all migrations.
    pub(crate) async fn of(server: &PostgresServer) -> Self {
        let (name, url) = (server.database.clone(), server.url());
        let pool = harness_pool(&url, 2);
        db::migrate(&pool)
            .await
            .expect("the migrations can be applied");
        pool.close().await;
        Self { name, url }
    }

    async fn create_from(clause: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let (now, process) = (Clock::system().now().timestamp(), std::process::id());
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{now}_{process}_{nth}");
        execute(
            &mut admin().await,
            format!("CREATE DATABASE \"{name}\"{clause}"),
        )
        .await;
        let url = url_of(&name);
        Self { name, url }
    }

    /// Drops the database and closes all connections to it.
    pub async fn remove(&self) {
        // Best effort: a later run removes what is left.
        let Ok(mut connection) = PgConnection::connect(&environment::database_url()).await else {
            return;
        };
        let statement = format!("DROP DATABASE IF EXISTS \"{}\" WITH (FORCE)", self.name);
        let _left_over = sqlx::query(AssertSqlSafe(statement))
            .execute(&mut connection)
            .await;
    }
}

/// A pool for the harness with a long connect timeout: on a shared machine, opening a
/// connection may take longer than Waypost itself waits.
pub(crate) fn harness_pool(url: &str, connections_max: u32) -> PgPool {
    let url = Secret::from(url.to_owned());
    let pool = db::pool(&url, connections_max).expect("the URL can be read");
    let options = pool.options().clone().acquire_timeout(WAIT_MAX);
    let named = (*pool.connect_options()).clone();
    options.connect_lazy_with(named.application_name("harness"))
}

/// The name of the template, which is created if it is missing.
async fn template() -> &'static str {
    static TEMPLATE: OnceCell<String> = OnceCell::const_new();
    TEMPLATE.get_or_init(make_template).await
}

async fn make_template() -> String {
    let name = format!("{TEMPLATE_PREFIX}{}", migrations_hash());
    let mut admin = admin().await;
    execute(
        &mut admin,
        "SELECT pg_advisory_lock(hashtext('waypost_it_template'))".to_owned(),
    )
    .await;
    sweep(&mut admin).await;
    let known = sqlx::query("SELECT 1 FROM pg_database WHERE datname = $1").bind(&name);
    if known
        .fetch_optional(&mut admin)
        .await
        .expect("the server answers")
        .is_none()
    {
        // Renamed only when it is complete: a run may be interrupted at any time.
        let raw = TestDatabase::create_empty().await;
        let pool = harness_pool(&raw.url, 2);
        db::migrate(&pool)
            .await
            .expect("the migrations can be applied");
        pool.close().await;
        rename(&raw.name, &name).await;
    }
    // Closing the connection releases the lock.
    name
}

async fn rename(from: &str, to: &str) {
    let statement = format!("ALTER DATABASE \"{from}\" RENAME TO \"{to}\"");
    wait_until("no session is connected to the new template", async || {
        let mut admin = admin().await;
        let renamed = sqlx::query(AssertSqlSafe(statement.clone()))
            .execute(&mut admin)
            .await;
        renamed.is_ok()
    })
    .await;
}

async fn sweep(admin: &mut PgConnection) {
    let names =
        sqlx::query("SELECT datname::text FROM pg_database WHERE starts_with(datname::text, $1)")
            .bind(PREFIX)
            .fetch_all(&mut *admin)
            .await
            .expect("the server lists its databases");
    let oldest = Clock::system().now().timestamp() - STALE_AFTER_SECONDS;
    for name in names.iter().map(|row| row.get::<String, _>(0)) {
        let made = name[PREFIX.len()..]
            .split('_')
            .next()
            .and_then(|text| text.parse::<i64>().ok());
        if made.is_some_and(|made| made < oldest) {
            execute(
                &mut *admin,
                format!("DROP DATABASE IF EXISTS \"{name}\" WITH (FORCE)"),
            )
            .await;
        }
    }
}

fn migrations_hash() -> String {
    let folder = environment::root().join("migrations");
    let entries = std::fs::read_dir(folder).expect("the repository has migrations");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
        .collect();
    paths.sort();
    let mut hasher = Sha256::new();
    for path in paths {
        hasher.update(
            path.file_name()
                .expect("a file has a name")
                .as_encoded_bytes(),
        );
        hasher.update(std::fs::read(path).expect("a readable migration"));
    }
    hex::encode(&hasher.finalize()[..6])
}

async fn admin() -> PgConnection {
    PgConnection::connect(&environment::database_url())
        .await
        .expect("WAYPOST_TEST_DATABASE_URL leads to a server")
}

async fn execute(connection: &mut PgConnection, statement: String) {
    sqlx::query(AssertSqlSafe(statement))
        .execute(connection)
        .await
        .expect("the server takes the statement; its user needs CREATEDB");
}

fn url_of(name: &str) -> String {
    let mut url =
        Url::parse(&environment::database_url()).expect("WAYPOST_TEST_DATABASE_URL is a URL");
    url.set_path(name);
    url.into()
}
