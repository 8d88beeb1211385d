//! Configures and starts the Waypost of a test.

use std::collections::HashMap;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use waypost_core::clock::Clock;
use waypost_core::config::Settings;
use waypost_core::fault::Fault;
use waypost_core::ids::Ids;
use waypost_core::telemetry::{self, LogFormat};
use waypost_simulator::{Config, Simulator, smtp_certificate};

use crate::app::{Parts, TestApp};
use crate::client::Caller;
use crate::database::{TestDatabase, harness_pool};
use crate::environment;
use crate::postgres_server::PostgresServer;
use crate::process::free_port;
use crate::redis_server::RedisServer;
use crate::wait::wait_until;

/// Connections of the harness to a test's database.
const HARNESS_CONNECTIONS: u32 = 4;
/// The default lag of the simulator's searches: a message whose response was lost is not
/// found, so the wait for evidence ends by itself.
pub(crate) const SEARCH_LAG: Duration = Duration::from_hours(24);
/// Longer than any request of a test.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The default: API, worker and scheduler as tasks, a clock that stands still, the Redis
/// that all tests share.
#[derive(Debug, Clone)]
pub struct AppBuilder {
    worker: bool,
    scheduler: bool,
    processes: bool,
    private_redis: bool,
    private_postgres: bool,
    migrated: bool,
    clock: Option<Clock>,
    overrides: Vec<(String, String)>,
}

impl Default for AppBuilder {
    fn default() -> Self {
        Self {
            worker: true,
            scheduler: true,
            processes: false,
            private_redis: false,
            private_postgres: false,
            migrated: true,
            clock: None,
            overrides: Vec::new(),
        }
    }
}

impl AppBuilder {
    /// Starts no worker: no message is sent.
    #[must_use]
    pub fn without_worker(mut self) -> Self {
        self.worker = false;
        self
    }

    /// Starts no scheduler: no relay, no retries, no reclaimed leases.
    #[must_use]
    pub fn without_scheduler(mut self) -> Self {
        self.scheduler = false;
        self
    }

    /// Sets a setting by the name of its variable.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.overrides.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts a Redis for this test, which the test may stop or empty.
    #[must_use]
    pub fn private_redis(mut self) -> Self {
        self.private_redis = true;
        self
    }

    /// Starts a PostgreSQL for this test, which the test may stop or stall.
    #[must_use]
    pub fn private_postgres(mut self) -> Self {
        self.private_postgres = true;
        self
    }

    /// A database without migrations, and so without an organization or a key.
    #[must_use]
    pub fn without_migrations(mut self) -> Self {
        self.migrated = false;
        self
    }

    /// Starts no tasks: the test starts processes itself. The clock is the machine's, and
    /// waits are seconds at most.
    #[must_use]
    pub fn processes(mut self) -> Self {
        self.processes = true;
        self
    }

    /// Uses this clock instead of one that stands still.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Starts everything.
    ///
    /// # Panics
    /// If a part cannot be started.
    pub async fn start(self) -> TestApp {
        if let Some(filter) = environment::log_filter() {
            telemetry::init(&filter, LogFormat::Text);
        }
        let (postgres, database) = self.database().await;
        let redis = if self.private_redis {
            Some(RedisServer::start().await)
        } else {
            None
        };
        let simulator = Simulator::start(Config::default()).expect("the simulator can listen");
        simulator.set_search_lag(SEARCH_LAG);
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("the loopback interface has free ports");
        let listen = match self.processes {
            true => format!("127.0.0.1:{}", free_port()),
            false => listener
                .local_addr()
                .expect("a listener has an address")
                .to_string(),
        };
        let variables = self.variables(&database, redis.as_ref(), &simulator, &listen);
        let clock = match &self.clock {
            Some(clock) => clock.clone(),
            None if self.processes => Clock::system(),
            None => Clock::manual(Clock::system().now()),
        };
        let pool = harness_pool(&database.url, HARNESS_CONNECTIONS);
        let stop = CancellationToken::new();
        if !self.processes {
            self.start_tasks(&variables, &clock, listener, &stop);
        }
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(REQUEST_TIMEOUT)
            .build();
        let http = http.expect("an HTTP client can be made");
        let mut app = TestApp::assemble(Parts {
            ids: Ids::new(clock.clone()),
            clock,
            pool,
            variables,
            caller: Caller::new(http, format!("http://{listen}"), None),
            simulator,
            redis,
            postgres,
            database,
            stop,
        });
        if self.migrated {
            app.create_default_organization().await;
        }
        if !self.processes {
            let caller = app.caller().anonymous();
            wait_until("the API answers", async || {
                caller
                    .try_call(http::Method::GET, "/healthz", |request| request)
                    .await
                    .is_ok()
            })
            .await;
        }
        app
    }

    async fn database(&self) -> (Option<PostgresServer>, TestDatabase) {
        if self.private_postgres {
            let server = PostgresServer::start().await;
            let database = TestDatabase::of(&server).await;
            return (Some(server), database);
        }
        let database = if self.migrated {
            TestDatabase::create().await
        } else {
            TestDatabase::create_empty().await
        };
        (None, database)
    }

    fn variables(
        &self,
        database: &TestDatabase,
        redis: Option<&RedisServer>,
        simulator: &Simulator,
        listen: &str,
    ) -> HashMap<String, String> {
        let redis_url = redis.map_or_else(environment::redis_url, RedisServer::url);
        let simulator_url = simulator.url();
        let smtp_server = simulator.smtp_address().map(|address| address.to_string());
        let smtp_certificate = smtp_certificate_file();
        let common = [
            ("WAYPOST_ENV", "development"),
            ("DATABASE_URL", &database.url),
            ("WAYPOST_DATABASE_CONNECTIONS", "9"),
            ("REDIS_URL", &redis_url),
            ("WAYPOST_REDIS_PREFIX", &database.name),
            ("WAYPOST_PROVIDER_BASE_URL", &simulator_url),
            ("WAYPOST_SMTP_SERVER", &smtp_server.unwrap_or_default()),
            ("WAYPOST_SMTP_CA_FILE", &smtp_certificate.to_string_lossy()),
            ("WAYPOST_LISTEN", listen),
            ("WAYPOST_RELAY_GRACE", "1s"),
            // Tests of the look-ups name their own server.
            ("WAYPOST_DNS_SERVERS", "none"),
            // Tests make many calls from one address. Tests of the limits set their own.
            ("WAYPOST_RATE_LIMIT_SEND_MAX", "1000000"),
            ("WAYPOST_RATE_LIMIT_OTHER_MAX", "1000000"),
            ("WAYPOST_RATE_LIMIT_ANONYMOUS_PER_MINUTE", "1000000"),
        ];
        // Tasks: waits end when the test moves the clock.
        let tasks = [
            ("WAYPOST_PROVIDER_TIMEOUT", "10s"),
            ("WAYPOST_WORKER_LEASE", "30s"),
            ("WAYPOST_SCHEDULER_TICK", "50ms"),
        ];
        // Processes: real time, with short waits.
        let processes = [
            ("WAYPOST_PROVIDER_TIMEOUT", "2s"),
            ("WAYPOST_WORKER_LEASE", "6s"),
            ("WAYPOST_WORKER_SHUTDOWN", "5s"),
            ("WAYPOST_UNKNOWN_WAIT", "2s"),
            ("WAYPOST_RETRY_FIRST", "200ms"),
            ("WAYPOST_RETRY_LONGEST", "2s"),
            ("WAYPOST_SCHEDULER_TICK", "200ms"),
        ];
        let own: &[(&str, &str)] = if self.processes { &processes } else { &tasks };
        let given = common.into_iter().chain(own.iter().copied());
        let mut variables: HashMap<String, String> = given
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        variables.extend(self.overrides.iter().cloned());
        variables
    }

    fn start_tasks(
        &self,
        variables: &HashMap<String, String>,
        clock: &Clock,
        listener: TcpListener,
        stop: &CancellationToken,
    ) {
        let settings = Settings::from_map(variables).unwrap_or_else(|error| panic!("{error}"));
        let (own, time, token) = (settings.clone(), clock.clone(), stop.clone());
        watch("API", async move {
            waypost_api::serve(&own, time, listener, token).await
        });
        if self.worker {
            start_worker(variables, clock, stop);
        }
        if self.scheduler {
            let (time, token) = (clock.clone(), stop.clone());
            watch("scheduler", async move {
                waypost_scheduler::run(&settings, time, token).await
            });
        }
    }
}

/// Starts another API as a task, on a port of its own.
pub(crate) async fn start_api(
    variables: &HashMap<String, String>,
    clock: &Clock,
    stop: &CancellationToken,
) -> SocketAddr {
    let settings = Settings::from_map(variables).unwrap_or_else(|error| panic!("{error}"));
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("the loopback interface has free ports");
    let address = listener.local_addr().expect("a listener has an address");
    let (time, token) = (clock.clone(), stop.clone());
    watch("other API", async move {
        waypost_api::serve(&settings, time, listener, token).await
    });
    address
}

/// Starts a worker as a task.
pub(crate) fn start_worker(
    variables: &HashMap<String, String>,
    clock: &Clock,
    stop: &CancellationToken,
) {
    let settings = Settings::from_map(variables).unwrap_or_else(|error| panic!("{error}"));
    let (time, token) = (clock.clone(), stop.clone());
    watch("worker", async move {
        waypost_worker::run(&settings, time, token).await
    });
}

/// Runs a part of Waypost as a task, and prints its failure.
fn watch(name: &'static str, part: impl Future<Output = Result<(), Fault>> + Send + 'static) {
    tokio::spawn(async move {
        if let Err(fault) = part.await {
            eprintln!("the {name} ended: {}", fault.chain());
        }
    });
}

/// The file with the SMTP certificate of this process's simulators.
fn smtp_certificate_file() -> &'static Path {
    static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
        let path = std::env::temp_dir().join(format!("waypost-it-{}.pem", std::process::id()));
        std::fs::write(&path, smtp_certificate()).expect("a certificate can be written");
        path
    });
    &FILE
}

/// Further parts with a clock of their own.
impl TestApp {
    /// [`TestApp::start_another_api`] with a clock of its own.
    pub async fn start_another_api_by(&self, clock: &Clock) -> Caller {
        let address = start_api(&self.variables, clock, &self.stop).await;
        let caller = self.caller().at(&format!("http://{address}"));
        wait_until("the other API answers", async || {
            caller
                .try_call(http::Method::GET, "/healthz", |request| request)
                .await
                .is_ok()
        })
        .await;
        caller
    }

    /// [`TestApp::start_worker`] with a clock of its own.
    pub fn start_worker_by(&self, clock: &Clock) {
        start_worker(&self.variables, clock, &self.stop);
    }
}
