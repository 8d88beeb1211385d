//! A running Waypost as it is shipped: release programs, one process each, with a
//! database copied from a template database that holds the organizations.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::{Client, Method};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tokio::time::Instant;
use url::Url;
use waypost_core::auth::{self, KeyDraft, Permissions};
use waypost_core::clock::Clock;
use waypost_core::db;
use waypost_core::ids::Ids;
use waypost_core::network::Networks;
use waypost_core::organization::{self, Organization, UnverifiedDomains};
use waypost_core::secret::Secret;
use waypost_core::text::Name;
use waypost_simulator::{CallbackSettings, Config, Simulator};
use waypost_tests::{Process, Program};

use crate::usage;
use crate::{Failure, Options, progress};

/// Organizations that send.
pub(crate) const ORGANIZATIONS: usize = 100;
/// Suppressions of each organization. From 2,000 on a send to many recipients uses a
/// Bloom filter; half of the organizations have that many.
const SUPPRESSED: [usize; 2] = [2_500, 100];
/// Recipients that the simulator remembers.
const RECIPIENTS_KEPT: usize = 600_000;
/// The first port to try.
const PORT_FIRST: u16 = 21_000;
const READY_MAX: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// An organization that sends.
#[derive(Debug, Clone)]
pub(crate) struct Tenant {
    pub(crate) key: String,
    /// The provider account's API key.
    pub(crate) provider_key: String,
    /// A stored template of 4 KB.
    pub(crate) template_id: String,
}

/// Creates fixtures.
pub(crate) struct Builder {
    pub(crate) postgres_binaries: PathBuf,
    pub(crate) simulator: Simulator,
    pub(crate) tenants: Arc<Vec<Tenant>>,
    pub(crate) http: Client,
    server_url: String,
    redis_url: String,
    pub(crate) postgres_pid: u32,
    redis_pid: u32,
    template: String,
}

/// The number of processes of each kind, and additional settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan<'a> {
    pub(crate) apis: usize,
    pub(crate) workers: usize,
    pub(crate) schedulers: usize,
    pub(crate) settings: &'a [(&'a str, &'a str)],
}

impl Plan<'static> {
    /// No worker: messages are accepted and stay queued.
    pub(crate) const ACCEPTING: Self = Self {
        apis: 1,
        workers: 0,
        schedulers: 1,
        settings: &[],
    };
    /// One process of each kind.
    pub(crate) const ONE_OF_EACH: Self = Self {
        apis: 1,
        workers: 1,
        schedulers: 1,
        settings: &[],
    };
    /// An API only; the section starts workers and schedulers later.
    pub(crate) const API_ALONE: Self = Self {
        workers: 0,
        schedulers: 0,
        ..Self::ONE_OF_EACH
    };
}

/// A running Waypost. Dropping it kills its processes; its database stays until
/// [`Fixture::remove`].
pub(crate) struct Fixture {
    pub(crate) database_url: String,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) apis: Vec<Process>,
    pub(crate) workers: Vec<Process>,
    pub(crate) schedulers: Vec<Process>,
    pub(crate) variables: HashMap<String, String>,
    postgres_pid: u32,
    redis_pid: u32,
    /// No other fixture uses this database.
    database: String,
}

/// CPU seconds used so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cpu {
    pub(crate) api: f64,
    pub(crate) worker: f64,
    pub(crate) scheduler: f64,
    pub(crate) postgres: f64,
    pub(crate) redis: f64,
    /// This process: the load and the simulated provider. No sum contains it.
    pub(crate) bench: f64,
}

impl Cpu {
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            api: self.api - before.api,
            worker: self.worker - before.worker,
            scheduler: self.scheduler - before.scheduler,
            postgres: self.postgres - before.postgres,
            redis: self.redis - before.redis,
            bench: self.bench - before.bench,
        }
    }

    pub(crate) fn sum(self) -> f64 {
        self.api + self.worker + self.scheduler + self.postgres + self.redis
    }

    /// Microseconds per message, by process.
    pub(crate) fn per_message(self, messages: u64) -> Value {
        let micros = |seconds: f64| (seconds * 1e6 / messages as f64 * 10.0).round() / 10.0;
        json!({
            "api_us": micros(self.api), "worker_us": micros(self.worker),
            "scheduler_us": micros(self.scheduler), "postgres_us": micros(self.postgres),
            "redis_us": micros(self.redis), "all_us": micros(self.sum()),
            "bench_us": micros(self.bench),
        })
    }
}

impl Builder {
    /// Creates the organizations, each with an account, rules, a template and
    /// suppressions, in the database from which fixtures are copied.
    pub(crate) async fn prepare(options: &Options) -> Result<Self, Failure> {
        let simulator = Simulator::start(Config {
            keep_recipients_max: RECIPIENTS_KEPT,
            keep_bodies: false,
            ..Config::default()
        })?;
        // Nobody receives them: retries would look up a host that does not exist, which may take
        // every thread of the runtime that may block.
        simulator.set_callbacks(CallbackSettings {
            enabled: false,
            ..CallbackSettings::default()
        });
        let mut builder = Self {
            postgres_binaries: options.postgres_binaries.clone(),
            simulator,
            tenants: Arc::default(),
            http: Client::builder().no_proxy().timeout(READY_MAX).build()?,
            server_url: options.database_url.clone(),
            redis_url: options.redis_url.clone(),
            postgres_pid: options.postgres_pid,
            redis_pid: options.redis_pid,
            template: "bench_template".to_owned(),
        };
        builder
            .execute(&format!("CREATE DATABASE {}", builder.template))
            .await?;
        let keys = builder.create_organizations().await?;
        let plan = Plan {
            schedulers: 0,
            ..Plan::ACCEPTING
        };
        let fixture = builder.start(plan, builder.template.clone()).await?;
        let mut tenants = Vec::new();
        for (nth, key) in keys.into_iter().enumerate() {
            tenants.push(builder.create_tenant(&fixture, nth, key).await?);
        }
        builder.tenants = Arc::new(tenants);
        drop(fixture);
        progress(format!("{ORGANIZATIONS} organizations are ready"));
        Ok(builder)
    }

    /// Starts a fixture with a database of its own and an empty Redis.
    pub(crate) async fn fixture(&self, plan: Plan<'_>) -> Result<Fixture, Failure> {
        let database = self.database().await?;
        self.start(plan, database).await
    }

    /// A copy of the template database that no process uses yet.
    pub(crate) async fn database(&self) -> Result<String, Failure> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let database = format!("bench_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let end = Instant::now() + READY_MAX;
        let statement = format!("CREATE DATABASE {database} TEMPLATE {}", self.template);
        // A connection that has just been closed may still be open on the server.
        while let Err(failure) = self.execute(&statement).await {
            if Instant::now() > end {
                return Err(failure);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(database)
    }

    /// Starts a fixture in a database that [`Builder::database`] created.
    pub(crate) async fn start(&self, plan: Plan<'_>, database: String) -> Result<Fixture, Failure> {
        let client = redis::Client::open(self.redis_url.as_str())?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        redis::cmd("FLUSHALL")
            .query_async::<()>(&mut connection)
            .await?;
        self.simulator.clear_captured();
        let database_url = self.database_url(&database)?;
        let mut fixture = Fixture {
            variables: self.variables(&database_url, plan.settings),
            database_url,
            addresses: Vec::new(),
            apis: Vec::new(),
            workers: Vec::new(),
            schedulers: Vec::new(),
            postgres_pid: self.postgres_pid,
            redis_pid: self.redis_pid,
            database,
        };
        for _ in 0..plan.apis {
            fixture.start_api();
        }
        for address in fixture.addresses.clone() {
            self.wait_until_ready(address).await?;
        }
        fixture.start_workers(plan.workers);
        fixture.start_schedulers(plan.schedulers);
        Ok(fixture)
    }

    /// Runs a statement in the server's maintenance database.
    pub(crate) async fn execute(&self, statement: &str) -> Result<(), Failure> {
        let mut connection = PgConnection::connect(&self.server_url).await?;
        let statement = sqlx::query(AssertSqlSafe(statement.to_owned()));
        statement.execute(&mut connection).await?;
        connection.close().await?;
        Ok(())
    }

    pub(crate) fn redis_url(&self) -> &str {
        &self.redis_url
    }

    pub(crate) fn database_url(&self, database: &str) -> Result<String, Failure> {
        let mut url = Url::parse(&self.server_url)?;
        url.set_path(database);
        Ok(url.into())
    }

    /// Calls an API and fails unless the response is a success.
    pub(crate) async fn call(
        &self,
        fixture: &Fixture,
        key: &str,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Value, Failure> {
        let url = format!("http://{}{path}", fixture.addresses[0]);
        let mut request = self.http.request(method, url).bearer_auth(key);
        if !body.is_null() {
            request = request.json(body);
        }
        let answer = request.send().await?;
        let status = answer.status();
        let answer: Value = answer.json().await.unwrap_or_default();
        if status.is_success() {
            Ok(answer)
        } else {
            Err(format!("{path}: {status} {answer}").into())
        }
    }

    fn variables(&self, database_url: &str, more: &[(&str, &str)]) -> HashMap<String, String> {
        let simulator = self.simulator.url();
        let usual = [
            ("WAYPOST_ENV", "development"),
            ("DATABASE_URL", database_url),
            ("REDIS_URL", &self.redis_url),
            ("WAYPOST_PUBLIC_URL", "http://bench.invalid"),
            ("WAYPOST_PROVIDER_BASE_URL", &simulator),
            // The organizations' domains do not exist. Their first look-ups would be measured.
            ("WAYPOST_DNS_SERVERS", "none"),
            // High limits, not disabled ones: every request is still counted.
            ("WAYPOST_RATE_LIMIT_SEND_MAX", "1000000"),
            ("WAYPOST_RATE_LIMIT_OTHER_MAX", "1000000"),
            ("WAYPOST_RATE_LIMIT_ANONYMOUS_PER_MINUTE", "1000000"),
        ];
        let all = usual.iter().chain(more);
        all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    /// Creates the tables, the organizations, and a key for each.
    async fn create_organizations(&self) -> Result<Vec<String>, Failure> {
        let url = Secret::from(self.database_url(&self.template)?);
        let pool = db::pool(&url, 1)?;
        db::migrate(&pool).await?;
        let clock = Clock::system();
        let ids = Ids::new(clock.clone());
        let mut connection = pool.acquire().await?;
        sqlx::query("CREATE EXTENSION pg_stat_statements")
            .execute(&mut *connection)
            .await?;
        let mut keys = Vec::new();
        for nth in 0..ORGANIZATIONS {
            let organization = Organization {
                id: ids.next(),
                name: format!("Bench {nth}"),
                unverified_domains: UnverifiedDomains::Reject,
                created_at: clock.now(),
            };
            organization::store::insert(&mut connection, &organization).await?;
            let draft = KeyDraft {
                name: Name::parse("bench".to_owned())?,
                is_test: false,
                permissions: Permissions::all(),
                allowed_ips: Networks::default(),
                expires_at: None,
            };
            let key = auth::mint(organization.id, draft, None, &ids, clock.now());
            auth::store::insert(&mut connection, &key.record, key.hash).await?;
            keys.push(key.secret.expose_secret().to_owned());
        }
        drop(connection);
        pool.close().await;
        Ok(keys)
    }

    async fn create_tenant(
        &self,
        fixture: &Fixture,
        nth: usize,
        key: String,
    ) -> Result<Tenant, Failure> {
        let provider_key = format!("SG.bench-{nth}");
        let account = json!({
            "providerType": "SENDGRID", "displayName": format!("Account {nth}"),
            "credentials": { "apiKey": provider_key },
        });
        let account = self
            .call(fixture, &key, Method::POST, "/v1/providers", &account)
            .await?;
        let account_id = &account["data"]["id"];
        for (name, condition) in [
            ("Receipts", json!(["receipt"])),
            ("Digests", json!(["digest"])),
        ] {
            let rule = json!({ "name": name, "tags": condition, "providerAccountId": account_id });
            self.call(fixture, &key, Method::POST, "/v1/routing-rules", &rule)
                .await?;
        }
        let emails = (0..SUPPRESSED[nth % 2]).map(|place| format!("gone{place}@example.org"));
        let emails = json!({ "emails": emails.collect::<Vec<_>>() });
        self.call(
            fixture,
            &key,
            Method::POST,
            "/v1/suppressions/import",
            &emails,
        )
        .await?;
        let template_id = self.add_template(fixture, &key).await?;
        Ok(Tenant {
            key,
            provider_key,
            template_id,
        })
    }

    async fn add_template(&self, fixture: &Fixture, key: &str) -> Result<String, Failure> {
        let html: String = (0..32)
            .map(|nth| {
                format!(
                    "<tr><td style=\"padding:4px\">{{{{#if name}}}}Line {nth} for {{{{name}}}}{{{{/if}}}}\
                     </td><td>{{{{amount}}}}</td></tr>\n<!-- {nth:030} -->\n"
                )
            })
            .collect();
        let template = json!({ "name": "Receipt" });
        let template = self
            .call(fixture, key, Method::POST, "/v1/templates", &template)
            .await?;
        let id = template["data"]["id"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let path = format!("/v1/templates/{id}/versions");
        let version =
            json!({ "textContent": "", "htmlContent": format!("<table>\n{html}</table>") });
        self.call(fixture, key, Method::POST, &path, &version)
            .await?;
        Ok(id)
    }

    async fn wait_until_ready(&self, address: SocketAddr) -> Result<(), Failure> {
        let end = Instant::now() + READY_MAX;
        loop {
            let answer = self
                .http
                .get(format!("http://{address}/readyz"))
                .send()
                .await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(format!("the API at {address} is not ready").into());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

impl Fixture {
    fn start_api(&mut self) {
        let address = free_address();
        let mut variables = self.variables.clone();
        variables.insert("WAYPOST_LISTEN".to_owned(), address.to_string());
        self.apis.push(Program::Api.spawn(&["serve"], &variables));
        self.addresses.push(address);
    }

    /// Starts this many more workers.
    pub(crate) fn start_workers(&mut self, count: usize) {
        for _ in 0..count {
            self.workers
                .push(Program::Worker.spawn(&[], &self.variables));
        }
    }

    /// Starts this many more schedulers.
    pub(crate) fn start_schedulers(&mut self, count: usize) {
        for _ in 0..count {
            self.schedulers
                .push(Program::Scheduler.spawn(&[], &self.variables));
        }
    }

    /// CPU seconds used so far, by process kind.
    pub(crate) fn cpu(&self) -> Cpu {
        let of = |processes: &[Process]| {
            processes
                .iter()
                .map(|one| usage::cpu_seconds(one.id()))
                .sum()
        };
        Cpu {
            api: of(&self.apis),
            worker: of(&self.workers),
            scheduler: of(&self.schedulers),
            postgres: usage::cpu_seconds(self.postgres_pid),
            redis: usage::cpu_seconds(self.redis_pid),
            bench: usage::own_cpu_seconds(),
        }
    }

    /// A connection to the fixture's database.
    pub(crate) async fn connect(&self) -> Result<PgConnection, Failure> {
        Ok(PgConnection::connect(&self.database_url).await?)
    }

    /// The number that a query returns.
    pub(crate) async fn number(&self, statement: &str) -> Result<i64, Failure> {
        let mut connection = self.connect().await?;
        let statement = sqlx::query_scalar(AssertSqlSafe(statement.to_owned()));
        let number = statement.fetch_one(&mut connection).await?;
        connection.close().await?;
        Ok(number)
    }

    /// Stops the processes and drops the database.
    pub(crate) async fn remove(self, builder: &Builder) -> Result<(), Failure> {
        let database = self.database.clone();
        drop(self);
        builder
            .execute(&format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)"))
            .await
    }
}

/// A free address of the loopback interface, below the ports that operating systems use
/// for outgoing connections.
pub(crate) fn free_address() -> SocketAddr {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    loop {
        let port = PORT_FIRST + NEXT.fetch_add(1, Ordering::Relaxed) as u16;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if std::net::TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}
