//! The operator's commands: `waypost-api serve`, `migrate`, `create-organization` and
//! others. Standard output has only the result of a command; everything else goes to
//! standard error.

mod jobs;
mod schema;
mod tasks;
mod users;

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use waypost_core::auth::{self, KeyDraft, Permission, Permissions};
use waypost_core::clock::Clock;
use waypost_core::config::Settings;
use waypost_core::crypto::seal::Sealer;
use waypost_core::db::connection_check::{self, SchemaRequirement};
use waypost_core::db::{self, OrFault, PgPool};
use waypost_core::ids::{Ids, OrganizationId};
use waypost_core::network::Networks;
use waypost_core::organization::{self, Organization, UnverifiedDomains};
use waypost_core::provider::transport::{Transport, TransportSettings};
use waypost_core::provider_account;
use waypost_core::redis::Redis;
use waypost_core::reencrypt::{self, SecretColumn};
use waypost_core::secret::{ExposeSecret, Secret};
use waypost_core::telemetry::{self, traces};
use waypost_core::text::Name;

/// The time limit of the health check.
const HEALTHCHECK_TIMEOUT: Duration = Duration::from_secs(3);

/// The Waypost API server and the operator's commands.
#[derive(Debug, Parser)]
#[command(version)]
pub struct ApiArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the API.
    Serve,
    /// Create or update the database schema.
    Migrate,
    /// Wait until another process has run `waypost-api migrate` of this version.
    WaitForMigrations {
        /// The longest time to wait, such as `30s` or `10min`.
        #[arg(long, default_value = "10min", value_parser = humantime::parse_duration)]
        timeout: Duration,
    },
    /// Create an organization and print its id.
    CreateOrganization {
        /// The name of the organization.
        #[arg(long)]
        name: String,
    },
    /// Create an API key and print it. It cannot be printed again.
    CreateApiKey {
        /// The id of the organization.
        #[arg(long)]
        organization: OrganizationId,
        /// The name of the key.
        #[arg(long)]
        name: String,
        /// A permission of the key. Repeat the option for more. Default: all of them
        /// permissions.
        #[arg(long = "permission")]
        permissions: Vec<Permission>,
    },
    /// Create a user and print a link by which the user sets a password.
    CreateUser(users::CreateUserArguments),
    /// List the users with their organizations and roles.
    ListUsers {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove a user with all memberships and sessions.
    RemoveUser {
        /// The address of the user.
        #[arg(long)]
        email: String,
    },
    /// Print a link by which a user sets a new password. It works once, for a day.
    ResetPassword {
        /// The address of the user.
        #[arg(long)]
        email: String,
        /// Remove the second factor too, at once.
        #[arg(long)]
        without_second_factor: bool,
    },
    /// Encrypt the stored credentials and secrets again with the first key of
    /// WAYPOST_ENCRYPTION_KEYS. Run it when every process has this key first.
    RotateKeys,
    /// Print the OpenAPI document.
    Openapi,
    /// Print all settings with their defaults and meanings.
    Config {
        /// The output format.
        #[arg(long, default_value = "markdown")]
        format: ConfigFormat,
    },
    /// List, retry or drop dead jobs, which no worker takes any more.
    Jobs {
        #[command(subcommand)]
        command: jobs::JobsCommand,
    },
    /// List the workers with their leases and the number of their chunks.
    Workers {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Check the configuration, Postgres, Redis and the encryption keys.
    Doctor,
    /// List the scheduler's tasks with their last runs. Fails if a task is late.
    Tasks {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Check that the API responds, for container health checks.
    Healthcheck,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ConfigFormat {
    /// Environment variables, as in `.env.example`.
    Env,
    /// A table, as in `docs/configuration.md`.
    Markdown,
}

/// Why a command failed, for the operator.
pub type CommandError = Box<dyn std::error::Error + Send + Sync>;

/// Runs the command.
///
/// # Errors
/// Why it failed.
pub async fn run(arguments: ApiArguments) -> Result<(), CommandError> {
    match arguments.command {
        Command::Config { format } => print_config(format),
        Command::Serve => serve().await,
        Command::Openapi => {
            print!("{}", crate::document_text()?);
            Ok(())
        }
        Command::Migrate => {
            let pool = connect(SchemaRequirement::Any).await?;
            db::migrate(&pool).await?;
            eprintln!("The schema is up to date");
            Ok(())
        }
        Command::WaitForMigrations { timeout } => schema::wait(timeout).await,
        Command::CreateOrganization { name } => create_organization(name).await,
        Command::CreateApiKey {
            organization,
            name,
            permissions,
        } => create_api_key(organization, name, permissions).await,
        Command::CreateUser(arguments) => users::create(arguments).await,
        Command::ListUsers { json } => users::list(json).await,
        Command::RemoveUser { email } => users::remove(&email).await,
        Command::ResetPassword {
            email,
            without_second_factor,
        } => users::reset_password(&email, without_second_factor).await,
        Command::RotateKeys => rotate_keys().await,
        Command::Jobs { command } => jobs::run(command).await,
        Command::Workers { json } => jobs::print_workers(json).await,
        Command::Doctor => doctor().await,
        Command::Tasks { json } => {
            tasks::show(&connect(SchemaRequirement::Current).await?, json).await
        }
        Command::Healthcheck => healthcheck(&Settings::from_env()?),
    }
}

async fn serve() -> Result<(), CommandError> {
    let settings = Settings::from_env()?;
    telemetry::init(&settings.log.filter, settings.log.format);
    telemetry::log_panics();
    telemetry::instruments::start("api");
    traces::start(settings.monitoring.traces.as_ref(), "api")?;
    settings.warn_of_unknown();
    let listen = settings.api.listen;
    let listener = TcpListener::bind(listen)
        .await
        .map_err(|error| format!("cannot listen on {listen} (WAYPOST_LISTEN): {error}"))?;
    let shutdown = CancellationToken::new();
    tokio::spawn(telemetry::cancel_on_signal(shutdown.clone()));
    let served = crate::serve(&settings, Clock::system(), listener, shutdown).await;
    traces::stop();
    Ok(served?)
}

async fn connect(wanted: SchemaRequirement) -> Result<PgPool, CommandError> {
    connect_to(&Settings::from_env()?.database_url, wanted).await
}

/// Connects to a database after checking that it is usable.
async fn connect_to(url: &Secret, wanted: SchemaRequirement) -> Result<PgPool, CommandError> {
    connection_check::check(url, wanted).await?;
    Ok(db::pool(url, 1)?)
}

async fn create_organization(name: String) -> Result<(), CommandError> {
    let pool = connect(SchemaRequirement::Current).await?;
    let clock = Clock::system();
    let organization = Organization {
        id: Ids::new(clock.clone()).next(),
        name: parse_name(name)?.into_string(),
        unverified_domains: UnverifiedDomains::Reject,
        created_at: clock.now(),
    };
    let mut connection = pool.acquire().await.or_fault("reach Postgres")?;
    organization::store::insert(&mut connection, &organization).await?;
    println!("{}", organization.id);
    Ok(())
}

async fn create_api_key(
    organization_id: OrganizationId,
    name: String,
    permissions: Vec<Permission>,
) -> Result<(), CommandError> {
    let pool = connect(SchemaRequirement::Current).await?;
    let clock = Clock::system();
    let ids = Ids::new(clock.clone());
    let mut connection = pool.acquire().await.or_fault("reach Postgres")?;
    organization::store::find(&mut connection, organization_id)
        .await?
        .ok_or_else(|| format!("organization {organization_id} does not exist"))?;
    let permissions = if permissions.is_empty() {
        Permissions::all()
    } else {
        permissions.into_iter().collect()
    };
    let draft = KeyDraft {
        name: parse_name(name)?,
        is_test: false,
        permissions,
        allowed_ips: Networks::default(),
        expires_at: None,
    };
    let key = auth::mint(organization_id, draft, None, &ids, clock.now());
    auth::store::insert(&mut connection, &key.record, key.hash).await?;
    println!("{}", key.secret.expose_secret());
    Ok(())
}

async fn rotate_keys() -> Result<(), CommandError> {
    let settings = Settings::from_env()?;
    let pool = connect_to(&settings.database_url, SchemaRequirement::Current).await?;
    let mut unreadable = 0;
    for column in SecretColumn::ALL {
        let found = reencrypt::reencrypt(&pool, &settings.sealer, column).await?;
        eprintln!("{}: {} encrypted again", column.as_str(), found.done);
        unreadable += found.unreadable;
    }
    if unreadable > 0 {
        return Err(format!(
            "{unreadable} secrets are encrypted with keys that are not in WAYPOST_ENCRYPTION_KEYS"
        )
        .into());
    }
    eprintln!(
        "Keep the older keys as long as messages from before the rotation are stored and their links must work"
    );
    Ok(())
}

fn parse_name(name: String) -> Result<Name, CommandError> {
    Ok(Name::parse(name).map_err(|error| format!("--name {error}"))?)
}

async fn doctor() -> Result<(), CommandError> {
    let settings = Settings::from_env()?;
    let smtp = settings.smtp.clone();
    // Creating the transport reads the certificate file.
    Transport::new(&TransportSettings {
        smtp,
        ..TransportSettings::default()
    })?;
    for name in &settings.unknown {
        eprintln!("configuration: there is no setting {name}");
    }
    eprintln!("configuration: ok");
    let pool = db::pool(&settings.database_url, 1)?;
    let redis = Redis::new(&settings.redis_url, &settings.redis_prefix)?;
    let found = connection_check::check(&settings.database_url, SchemaRequirement::Current).await;
    let postgres = report("postgres", found.map_err(|unusable| unusable.to_string()));
    if postgres {
        list_paused_accounts(&pool).await?;
    }
    let found = redis.check_writes().await;
    let redis = report("redis", found.map_err(|error| redis.explain(&error)));
    let keys = postgres && check_keys(&pool, &settings.sealer).await;
    if postgres && redis && keys {
        Ok(())
    } else {
        Err("at least one check failed".into())
    }
}

/// Lists the accounts that cannot send. The command does not fail because of them, since
/// only their owners can fix them.
async fn list_paused_accounts(pool: &PgPool) -> Result<(), CommandError> {
    let mut connection = pool.acquire().await.or_fault("list accounts")?;
    for (id, paused) in provider_account::pause::store::list_paused(&mut connection).await? {
        let (since, reason) = (paused.since, paused.reason);
        eprintln!("provider account {id}: cannot send since {since}: {reason}");
    }
    Ok(())
}

async fn check_keys(pool: &PgPool, sealer: &Sealer) -> bool {
    let found = match reencrypt::check(pool, sealer).await {
        Ok(unopened) if unopened.count() == 0 => Ok(()),
        Ok(unopened) => Err(unopened.to_string()),
        Err(fault) => Err(fault.chain()),
    };
    report("encryption keys", found)
}

fn report(what: &str, found: Result<(), String>) -> bool {
    let is_ok = found.is_ok();
    eprintln!("{what}: {}", found.err().unwrap_or_else(|| "ok".to_owned()));
    is_ok
}

fn healthcheck(settings: &Settings) -> Result<(), CommandError> {
    let mut address: SocketAddr = settings.api.listen;
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    let response = request_health(&address).map_err(|error| {
        format!("the API does not respond at {address} ({error}): is it running, and is WAYPOST_LISTEN right?")
    })?;
    if &response == b"HTTP/1.1 200" {
        Ok(())
    } else {
        Err(format!("the server at {address} did not respond with 200: is it the API, and is WAYPOST_LISTEN right?").into())
    }
}

/// The first bytes of the response: the version and the status.
fn request_health(address: &SocketAddr) -> std::io::Result<[u8; 12]> {
    let mut stream = TcpStream::connect_timeout(address, HEALTHCHECK_TIMEOUT)?;
    stream.set_read_timeout(Some(HEALTHCHECK_TIMEOUT))?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut response = [0; 12];
    stream.read_exact(&mut response)?;
    Ok(response)
}

fn print_config(format: ConfigFormat) -> Result<(), CommandError> {
    let mut text = String::new();
    match format {
        ConfigFormat::Env => {
            for setting in Settings::reference() {
                let commented = format!("# {}={}", setting.name, setting.default);
                text.push_str(&format!("# {}\n{commented}\n\n", setting.meaning));
            }
        }
        ConfigFormat::Markdown => {
            text.push_str("| variable | default | meaning |\n|---|---|---|\n");
            for setting in Settings::reference() {
                let default = match setting.default.as_str() {
                    "" => "–".to_owned(),
                    default => format!("`{default}`"),
                };
                text.push_str(&format!(
                    "| `{}` | {default} | {} |\n",
                    setting.name, setting.meaning
                ));
            }
        }
    }
    print!("{text}");
    std::io::stdout().flush()?;
    Ok(())
}

/// A table with columns as wide as their contents.
fn table<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(rows);
    let widths: [usize; N] = std::array::from_fn(|column| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.max().unwrap_or_default()
    });
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(widths);
        let padded: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    }
    text
}
