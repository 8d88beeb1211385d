//! A running Waypost for one test, with the actions that tests share.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::TimeDelta;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use waypost_core::auth::Permission;
use waypost_core::clock::{Clock, Timestamp};
use waypost_core::db::PgTransaction;
use waypost_core::db::organization_shard::OrganizationShard;
use waypost_core::ids::{Ids, OrganizationId};
use waypost_core::message::list;
use waypost_core::organization::{self, Organization, UnverifiedDomains};
use waypost_core::provider::kind::ProviderType;
use waypost_core::routing::ramp::steps;
use waypost_simulator::{Captured, Config, Simulator};

use crate::builder::{AppBuilder, SEARCH_LAG, start_worker};
use crate::client::{Caller, Reply};
use crate::database::TestDatabase;
use crate::outbox::{self, Attempt, OutboxRow};
use crate::postgres_server::PostgresServer;
use crate::process::{Process, Program};
use crate::redis_server::{RedisServer, redis_connection};
use crate::requests::{credentials, event_types, message_to};
use crate::wait::{WAIT_MAX, wait_until, wait_within};

/// Time limit for deleting a test's keys from the shared Redis.
const CLEAN_UP_MAX: Duration = Duration::from_secs(5);

/// A running Waypost. Dropping it removes all that it created, and fails the test if due
/// work is left.
#[derive(Debug)]
pub struct TestApp {
    /// The clock: tests move it, unless the parts are processes.
    pub clock: Clock,
    pub pool: PgPool,
    /// The settings of all parts, by the names of their variables.
    pub variables: HashMap<String, String>,
    /// This test's own Redis, if it requested one.
    pub redis: Option<RedisServer>,
    /// This test's own PostgreSQL, if it requested one.
    pub postgres: Option<PostgresServer>,
    organization_id: OrganizationId,
    caller: Caller,
    pub(crate) ids: Ids,
    simulator: Option<Simulator>,
    simulator_url: String,
    database: TestDatabase,
    pub(crate) stop: CancellationToken,
    may_leave_work: AtomicBool,
}

/// An organization, and a caller with all permissions in it.
#[derive(Debug, Clone)]
pub struct Tenant {
    pub organization_id: OrganizationId,
    /// Has a key with all permissions.
    pub caller: Caller,
}

/// The values that the builder passes on.
pub(crate) struct Parts {
    pub(crate) clock: Clock,
    pub(crate) pool: PgPool,
    pub(crate) variables: HashMap<String, String>,
    pub(crate) redis: Option<RedisServer>,
    pub(crate) postgres: Option<PostgresServer>,
    pub(crate) caller: Caller,
    pub(crate) ids: Ids,
    pub(crate) simulator: Simulator,
    pub(crate) database: TestDatabase,
    pub(crate) stop: CancellationToken,
}

impl TestApp {
    /// Starts API, worker and scheduler as tasks, with an organization and its key.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Builds any other configuration.
    #[must_use]
    pub fn builder() -> AppBuilder {
        AppBuilder::default()
    }

    pub(crate) fn assemble(parts: Parts) -> Self {
        Self {
            organization_id: parts.ids.next(),
            clock: parts.clock,
            pool: parts.pool,
            variables: parts.variables,
            redis: parts.redis,
            postgres: parts.postgres,
            caller: parts.caller,
            ids: parts.ids,
            simulator_url: parts.simulator.url(),
            simulator: Some(parts.simulator),
            database: parts.database,
            stop: parts.stop,
            may_leave_work: AtomicBool::new(false),
        }
    }

    pub(crate) async fn create_default_organization(&mut self) {
        let tenant = self.tenant("Tests").await;
        self.organization_id = tenant.organization_id;
        self.caller = tenant.caller;
    }

    // --- callers ---------------------------------------------------------------

    /// The default organization of the test.
    #[must_use]
    pub fn organization_id(&self) -> OrganizationId {
        self.organization_id
    }

    /// A caller with all permissions in the default organization.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Adds an organization.
    pub async fn tenant(&self, name: &str) -> Tenant {
        let organization = Organization {
            id: self.ids.next(),
            name: name.to_owned(),
            unverified_domains: UnverifiedDomains::Reject,
            created_at: self.clock.now(),
        };
        let mut connection = self.pool.acquire().await.expect("the database answers");
        organization::store::insert(&mut connection, &organization)
            .await
            .expect("an organization can be added");
        drop(connection);
        let key = self.key(organization.id, &Permission::ALL).await;
        Tenant {
            organization_id: organization.id,
            caller: self.caller.with_key(&key),
        }
    }

    // --- requests -------------------------------------------------------------

    /// The OpenAPI document, without references.
    pub async fn document(&self) -> Value {
        let document = self.get("/openapi.json").await.expect(200);
        crate::document::without_references(&document)
    }

    /// GET with all permissions.
    pub async fn get(&self, path: &str) -> Reply {
        self.caller.get(path).await
    }

    /// POST with all permissions.
    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        self.caller.post(path, body).await
    }

    /// PATCH with all permissions.
    pub async fn patch(&self, path: &str, body: &Value) -> Reply {
        self.caller.patch(path, body).await
    }

    /// DELETE with all permissions.
    pub async fn delete(&self, path: &str) -> Reply {
        self.caller.delete(path).await
    }

    /// Connects an account with valid credentials; returns its id.
    pub async fn connect(&self, kind: ProviderType) -> String {
        self.connect_with(kind, &credentials(kind)).await
    }

    /// Connects an account with these credentials, without its events; returns its id.
    pub async fn connect_with(&self, kind: ProviderType, credentials: &Value) -> String {
        let body = json!({
            "providerType": kind, "displayName": "An account", "credentials": credentials,
            "registerEventWebhook": false,
        });
        let account = self.post("/v1/providers", &body).await.data(201);
        account["id"]
            .as_str()
            .expect("an account has an id")
            .to_owned()
    }

    /// Sends a message that must be accepted; returns its id.
    pub async fn send(&self, message: &Value) -> String {
        let receipt = self.post("/v1/send", message).await.expect(202);
        receipt["messageId"]
            .as_str()
            .expect("an accepted message has an id")
            .to_owned()
    }

    /// Sends a small message to one recipient; returns its id.
    pub async fn send_to(&self, recipient: &str) -> String {
        self.send(&message_to(recipient)).await
    }

    /// Retries a message through the API.
    pub async fn retry(&self, id: &str) -> Reply {
        let path = format!("/v1/messages/{id}/retry");
        self.caller().post_empty(&path).await
    }

    /// A message in the API's representation.
    pub async fn message(&self, id: &str) -> Value {
        self.get(&format!("/v1/messages/{id}")).await.data(200)
    }

    /// The status of a message.
    pub async fn status(&self, id: &str) -> String {
        self.message(id).await["status"]
            .as_str()
            .expect("a message has a status")
            .to_owned()
    }

    /// The types of a message's events, in order.
    pub async fn events(&self, id: &str) -> Vec<String> {
        event_types(&self.message(id).await)
    }

    /// The first page of a message's recipients.
    pub async fn recipients(&self, id: &str) -> Vec<Value> {
        let page = self
            .get(&format!("/v1/messages/{id}/recipients?limit=100"))
            .await;
        page.data(200).as_array().expect("a list").clone()
    }

    /// The only recipient of a message.
    pub async fn recipient(&self, id: &str) -> Value {
        let mut recipients = self.recipients(id).await;
        assert_eq!(recipients.len(), 1);
        recipients.remove(0)
    }

    /// Starts another API with its own memory; returns a caller of it with all
    /// permissions.
    pub async fn start_another_api(&self) -> Caller {
        self.start_another_api_by(&self.clock).await
    }

    /// Starts a worker as a task, for a test that started without one.
    pub fn start_worker(&self) {
        start_worker(&self.variables, &self.clock, &self.stop);
    }

    // --- work and time ---------------------------------------------------------

    /// Waits until no work is due at the clock's time and no lease is held.
    ///
    /// # Panics
    /// If that takes too long; the message lists the remaining work.
    pub async fn drain(&self) {
        self.drain_within(WAIT_MAX).await;
    }

    /// The same with another time limit.
    ///
    /// # Panics
    /// If that takes too long; the message lists the remaining work.
    pub async fn drain_within(&self, bound: Duration) {
        let is_done = wait_within(bound, async || self.pending_count().await == 0).await;
        if !is_done {
            let left = self.outbox().await;
            let lines: Vec<String> = left.iter().take(20).map(ToString::to_string).collect();
            let now = self.clock.now();
            panic!(
                "work is left after {bound:?}, at {now} by the clock; {} rows:\n  {}",
                left.len(),
                lines.join("\n  ")
            );
        }
    }

    /// Blocks every write of attempts until the returned transaction ends.
    pub async fn block_attempts(&self) -> PgTransaction<'static> {
        self.block_writes("send_attempts").await
    }

    /// Blocks every write to a table until the returned transaction ends.
    pub async fn block_writes(&self, table: &str) -> PgTransaction<'static> {
        self.execute(
            "CREATE FUNCTION stand_still() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NEW; END'",
        )
        .await;
        self.execute(&format!(
            "CREATE TRIGGER stand_still BEFORE INSERT ON {table}
             FOR EACH ROW EXECUTE FUNCTION stand_still()"
        ))
        .await;
        let mut obstacle = self.pool.begin().await.expect("the database answers");
        sqlx::raw_sql("SELECT pg_advisory_xact_lock(1)")
            .execute(&mut *obstacle)
            .await
            .expect("no other transaction has the lock");
        obstacle
    }

    /// Moves the clock.
    pub fn advance(&self, by: TimeDelta) {
        self.clock.advance(by);
    }

    /// Moves the clock, and waits until the work that became due is done.
    pub async fn advance_and_drain(&self, by: TimeDelta) {
        self.advance(by);
        self.drain().await;
    }

    /// Declares that this test ends with due work on purpose.
    pub fn leave_work(&self) {
        self.may_leave_work.store(true, Ordering::SeqCst);
    }

    /// All rows of the outbox.
    pub async fn outbox(&self) -> Vec<OutboxRow> {
        let mut connection = self.pool.acquire().await.expect("the database answers");
        outbox::outbox(&mut connection, self.clock.now()).await
    }

    async fn pending_count(&self) -> i64 {
        let mut connection = self.pool.acquire().await.expect("the database answers");
        outbox::pending_count(&mut connection, self.clock.now()).await
    }

    /// The recorded attempts of a message.
    pub async fn attempts(&self, message_id: &str) -> Vec<Attempt> {
        let id: Uuid = message_id.parse().expect("an id");
        let mut connection = self.pool.acquire().await.expect("the database answers");
        outbox::attempts(&mut connection, id).await
    }

    /// The outcomes of a message's attempts.
    pub async fn outcomes(&self, message_id: &str) -> Vec<String> {
        let attempts = self.attempts(message_id).await;
        attempts
            .into_iter()
            .map(|attempt| attempt.outcome.unwrap_or_else(|| "OPEN".to_owned()))
            .collect()
    }

    /// Runs a statement in the test's database.
    pub async fn execute(&self, statement: &str) {
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))
            .execute(&self.pool)
            .await
            .unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    /// The single value that a query returns, as text.
    pub async fn value(&self, query: &str) -> Option<String> {
        let query = format!("SELECT ({query})::text");
        sqlx::query_scalar(AssertSqlSafe(query.clone()))
            .fetch_one(&self.pool)
            .await
            .unwrap_or_else(|error| panic!("{query}: {error}"))
    }

    /// How many sessions wait for a lock.
    pub async fn lock_waits(&self) -> u64 {
        let query = "SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let waits = self.value(query).await.expect("a count is a value");
        waits.parse().expect("a count is a number")
    }

    /// Ends the sessions that wait for a lock.
    pub async fn end_lock_waits(&self) {
        self.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock'",
        )
        .await;
    }

    /// Folds the message counts and indexes subjects, as the scheduler does.
    pub async fn fold_messages(&self) {
        let mut connection = self.pool.acquire().await.expect("Postgres answers");
        let mut fold =
            async || list::store::roll_up(&mut connection, OrganizationShard::WHOLE, 5_000).await;
        while fold().await.expect("deltas can be folded") > 0 {}
    }

    /// Makes the steps of ramps that are due, as the scheduler does.
    pub async fn step_ramps(&self) {
        let made = steps::make_due(&self.pool, &self.clock, &self.ids).await;
        made.expect("Postgres answers");
    }

    // --- the providers ---------------------------------------------------------

    /// The simulator.
    ///
    /// # Panics
    /// While it is stopped.
    #[must_use]
    pub fn simulator(&self) -> &Simulator {
        self.simulator.as_ref().expect("the simulator runs")
    }

    /// The messages to an address that the simulator accepted.
    #[must_use]
    pub fn captured(&self, address: &str) -> Vec<Captured> {
        self.simulator().captured_to(address)
    }

    /// The only message to an address that the simulator accepted.
    ///
    /// # Panics
    /// If there is not exactly one.
    pub fn captured_once(&self, address: &str) -> Captured {
        let mut messages = self.captured(address);
        assert_eq!(messages.len(), 1, "messages for {address}");
        messages.remove(0)
    }

    /// Stops the simulator: connections to the providers are refused. Its captured
    /// messages are lost.
    pub async fn stop_simulator(&mut self) {
        if let Some(simulator) = self.simulator.take() {
            simulator.shutdown().await;
        }
    }

    /// Starts the simulator again on the same port.
    pub async fn resume_simulator(&mut self) {
        let address = self.simulator_url.trim_start_matches("http://");
        let listen: SocketAddr = address.parse().expect("the simulator's URL is an address");
        let simulator = Simulator::start(Config {
            listen,
            smtp_listen: self.variables["WAYPOST_SMTP_SERVER"].parse().ok(),
            ..Config::default()
        });
        let simulator = simulator.expect("the port is free again");
        simulator.set_search_lag(SEARCH_LAG);
        self.simulator = Some(simulator);
    }

    // --- processes -------------------------------------------------------------

    /// Starts the API as a process and waits until it responds.
    ///
    /// # Panics
    /// If it ends, or does not respond in time.
    pub async fn spawn_api(&self) -> Process {
        let api = Mutex::new(Program::Api.spawn(&["serve"], &self.variables));
        let has_ended = || {
            api.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .has_ended()
        };
        let caller = self.caller.anonymous();
        wait_until("the API answers", async || {
            assert!(!has_ended(), "the API ended");
            let reply = caller
                .try_call(http::Method::GET, "/healthz", |request| request)
                .await;
            reply.is_ok_and(|reply| reply.status == 200)
        })
        .await;
        api.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a worker as a process.
    #[must_use]
    pub fn spawn_worker(&self) -> Process {
        Program::Worker.spawn(&[], &self.variables)
    }

    /// Starts a scheduler as a process.
    #[must_use]
    pub fn spawn_scheduler(&self) -> Process {
        Program::Scheduler.spawn(&[], &self.variables)
    }

    // --- the end ---------------------------------------------------------------

    /// Removes the database and the keys in the shared Redis; returns the due work.
    fn clean_up(&self) -> Vec<OutboxRow> {
        let wants_check = !std::thread::panicking() && !self.may_leave_work.load(Ordering::SeqCst);
        let (database, now) = (self.database.clone(), self.clock.now());
        let redis_url = self
            .variables
            .get("REDIS_URL")
            .filter(|_| self.redis.is_none())
            .cloned();
        // A thread of its own: `drop` cannot wait for this thread's runtime.
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.expect("a runtime can be made").block_on(async {
                let left = if wants_check {
                    pending_rows(&database, now).await
                } else {
                    Vec::new()
                };
                database.remove().await;
                if let Some(url) = redis_url {
                    // Best effort: leftover keys have a prefix that no other test uses.
                    let removing = remove_keys(&url, &database.name);
                    let _kept = tokio::time::timeout(CLEAN_UP_MAX, removing).await;
                }
                left
            })
        });
        thread.join().unwrap_or_default()
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        self.stop.cancel();
        let left = self.clean_up();
        if !left.is_empty() {
            let lines: Vec<String> = left.iter().take(20).map(ToString::to_string).collect();
            panic!(
                "the test left work that is due (`app.drain().await` waits for it):\n  {}",
                lines.join("\n  ")
            );
        }
    }
}

async fn pending_rows(database: &TestDatabase, now: Timestamp) -> Vec<OutboxRow> {
    // A database without migrations has no outbox, and a stopped one does not answer.
    let Ok(mut connection) = PgConnection::connect(&database.url).await else {
        return Vec::new();
    };
    let has_outbox: Option<String> = sqlx::query_scalar("SELECT to_regclass('outbox')::text")
        .fetch_one(&mut connection)
        .await
        .unwrap_or_default();
    if has_outbox.is_none() {
        return Vec::new();
    }
    let mut left = outbox::outbox(&mut connection, now).await;
    left.retain(OutboxRow::is_pending);
    left
}

async fn remove_keys(url: &str, prefix: &str) -> redis::RedisResult<()> {
    let mut connection = redis_connection(url).await?;
    let mut cursor = 0_u64;
    loop {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor)
            .arg("MATCH")
            .arg(format!("*{prefix}*"))
            .arg("COUNT")
            .arg(500);
        let (next, keys): (u64, Vec<String>) = scan.query_async(&mut connection).await?;
        if !keys.is_empty() {
            redis::cmd("UNLINK")
                .arg(keys)
                .query_async::<()>(&mut connection)
                .await?;
        }
        if next == 0 {
            return Ok(());
        }
        cursor = next;
    }
}
