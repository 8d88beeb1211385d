//! The operator's commands: `waypost-api serve`, `migrate`, `create-organization`
//! and their like. What a command is asked for goes to standard output, alone;
//! everything else goes to standard error.

mod jobs;
mod tasks;

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
use waypost_core::telemetry;
use waypost_core::text::Name;

/// How long the health check waits.
const HEALTHCHECK_TIMEOUT: Duration = Duration::from_secs(3);

/// Waypost's API and the commands of its operator.
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
    /// Bring the database's schema up to date.
    Migrate,
    /// Add an organization and print its id.
    CreateOrganization {
        /// Its name.
        #[arg(long)]
        name: String,
    },
    /// Add an API key to an organization and print it. It is shown this once.
    CreateApiKey {
        /// The organization's id.
        #[arg(long)]
        organization: OrganizationId,
        /// Its name.
        #[arg(long)]
        name: String,
        /// What it may do; all seven permissions where none is given.
        #[arg(long = "permission")]
        permissions: Vec<Permission>,
    },
    /// Seal the secrets of accounts and endpoints anew with the first of the encryption
    /// keys. To be run when every process has that key first.
    RotateKeys,
    /// Print the OpenAPI document.
    Openapi,
    /// Print every setting with its default and meaning.
    Config {
        /// In which form.
        #[arg(long, default_value = "markdown")]
        format: ConfigFormat,
    },
    /// Look at jobs that nobody works on any more, and say what becomes of them.
    Jobs {
        #[command(subcommand)]
        command: jobs::JobsCommand,
    },
    /// Print the workers that are on the list, with what they hold.
    Workers {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Check that the configuration is usable and that Postgres and Redis can be used.
    Doctor,
    /// Show what the scheduler's tasks did last, and fail where one is late.
    Tasks {
        /// As JSON, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Exit with success if the API of this configuration answers, for containers.
    Healthcheck,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ConfigFormat {
    /// A file of variables, as `.env.example`.
    Env,
    /// A table, as in `docs/configuration.md`.
    Markdown,
}

/// Why a command failed, for people.
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
            println!("{:#}", crate::document()?);
            Ok(())
        }
        Command::Migrate => {
            let pool = connect(SchemaRequirement::Any).await?;
            db::migrate(&pool).await?;
            eprintln!("The schema is up to date");
            Ok(())
        }
        Command::CreateOrganization { name } => create_organization(name).await,
        Command::CreateApiKey {
            organization,
            name,
            permissions,
        } => create_api_key(organization, name, permissions).await,
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
    settings.warn_of_unknown();
    let listen = settings.api.listen;
    let listener = TcpListener::bind(listen)
        .await
        .map_err(|error| format!("cannot listen on {listen} (WAYPOST_LISTEN): {error}"))?;
    let shutdown = CancellationToken::new();
    tokio::spawn(telemetry::cancel_on_signal(shutdown.clone()));
    crate::serve(&settings, Clock::system(), listener, shutdown).await?;
    Ok(())
}

async fn connect(wanted: SchemaRequirement) -> Result<PgPool, CommandError> {
    connect_to(&Settings::from_env()?.database_url, wanted).await
}

/// A connection to a database that was found to be usable.
async fn connect_to(url: &Secret, wanted: SchemaRequirement) -> Result<PgPool, CommandError> {
    connection_check::check(url, wanted).await?;
    Ok(db::pool(url, 1)?)
}

async fn create_organization(name: String) -> Result<(), CommandError> {
    let pool = connect(SchemaRequirement::Current).await?;
    let clock = Clock::system();
    let organization = Organization {
        id: Ids::new(clock.clone()).next(),
        name: checked_name(name)?.into_string(),
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
        .ok_or_else(|| format!("there is no organization {organization_id}"))?;
    let permissions = if permissions.is_empty() {
        Permissions::all()
    } else {
        permissions.into_iter().collect()
    };
    let draft = KeyDraft {
        name: checked_name(name)?,
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
    for place in SecretColumn::ALL {
        let found = reencrypt::reseal(&pool, &settings.sealer, place).await?;
        eprintln!("{}: {} sealed anew", place.as_str(), found.done);
        unreadable += found.unreadable;
    }
    if unreadable > 0 {
        return Err(format!(
            "{unreadable} secrets lie under keys that are not in WAYPOST_ENCRYPTION_KEYS"
        )
        .into());
    }
    eprintln!(
        "Keep the older keys as long as messages of before are kept, and links in them are to work"
    );
    Ok(())
}

fn checked_name(name: String) -> Result<Name, CommandError> {
    Ok(Name::parse(name).map_err(|error| format!("--name {error}"))?)
}

async fn doctor() -> Result<(), CommandError> {
    let settings = Settings::from_env()?;
    let smtp = settings.smtp.clone();
    // It reads the file of certificates.
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
        report_accounts(&pool).await?;
    }
    let found = redis.check_writes().await;
    let redis = report("redis", found.map_err(|error| redis.explain(&error)));
    let keys = postgres && report_keys(&pool, &settings.sealer).await;
    if postgres && redis && keys {
        Ok(())
    } else {
        Err("something is not as it should be".into())
    }
}

/// Lists the accounts that cannot send. It is for their owners to mend them, so they do
/// not make the command fail.
async fn report_accounts(pool: &PgPool) -> Result<(), CommandError> {
    let mut connection = pool.acquire().await.or_fault("list accounts")?;
    for (id, paused) in provider_account::pause::store::list_paused(&mut connection).await? {
        let (since, reason) = (paused.since, paused.reason);
        eprintln!("provider account {id}: cannot send since {since}: {reason}");
    }
    Ok(())
}

async fn report_keys(pool: &PgPool, sealer: &Sealer) -> bool {
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
    let answer = ask_for_health(&address).map_err(|error| {
        format!("the API does not answer at {address} ({error}): is it running, and is WAYPOST_LISTEN right?")
    })?;
    if &answer == b"HTTP/1.1 200" {
        Ok(())
    } else {
        Err(format!("what answers at {address} does not answer 200 as the API does: is WAYPOST_LISTEN right?").into())
    }
}

/// The beginning of what is answered.
fn ask_for_health(address: &SocketAddr) -> std::io::Result<[u8; 12]> {
    let mut stream = TcpStream::connect_timeout(address, HEALTHCHECK_TIMEOUT)?;
    stream.set_read_timeout(Some(HEALTHCHECK_TIMEOUT))?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer)?;
    Ok(answer)
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
