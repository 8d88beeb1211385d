//! The operator's commands: `waypost-api serve`, `migrate`, `create-organization` and
//! others. Standard output has only the result of a command; everything else goes to
//! standard error. With `--json` the result is JSON.

mod api_keys;
mod doctor;
mod healthcheck;
mod import;
mod jobs;
mod organizations;
mod output;
pub mod program;
mod schema;
mod settings;
mod tasks;
mod tools;
mod users;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use waypost_core::clock::Clock;
use waypost_core::config::Settings;
use waypost_core::db;
use waypost_core::db::connection_check::SchemaRequirement;
use waypost_core::fault::Fault;
use waypost_core::ids::OrganizationId;
use waypost_core::reencrypt::{self, SecretColumn};
use waypost_core::startup;

use output::OutputFormat;
use settings::ConfigFormat;
use tools::CommandTools;

/// The status of a program that is called without a command, as clap has it.
const NO_COMMAND: u8 = 2;

/// The Waypost API server and the operator's commands.
///
/// Settings are environment variables: `waypost-api config` lists them. Results go to standard
/// output, everything else to standard error. A command that fails exits with 1.
#[derive(Debug, Parser)]
#[command(name = "waypost-api", version)]
pub struct ApiArguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print the result as JSON.
    #[arg(long, global = true)]
    json: bool,
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
    /// Check settings, servers, keys, providers and what runs. Exits with 1 after an error.
    Doctor,
    /// Check that the API on this machine responds, for container health checks.
    Healthcheck,
    /// Create an organization and print its id.
    CreateOrganization {
        /// The name of the organization.
        #[arg(long)]
        name: String,
    },
    /// List the organizations.
    ListOrganizations,
    /// Show an organization.
    ShowOrganization(OrganizationArguments),
    /// Revoke all API keys of an organization, remove its members and withdraw its invitations.
    /// Its data stay, and mail that was accepted is still sent.
    RevokeOrganization(OrganizationArguments),
    /// Create an API key and print it. It cannot be printed again.
    CreateApiKey(api_keys::CreateApiKeyArguments),
    /// List the API keys of an organization.
    ListApiKeys(OrganizationArguments),
    /// Show an API key, without its secret.
    ShowApiKey(api_keys::ApiKeyArguments),
    /// Revoke an API key.
    RevokeApiKey(api_keys::ApiKeyArguments),
    /// Create a user and print a link by which the user sets a password.
    CreateUser(users::CreateUserArguments),
    /// List the users with their organizations and roles.
    ListUsers,
    /// Show a user.
    ShowUser {
        /// The address of the user.
        #[arg(long)]
        email: String,
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
    /// Take suppressions, templates, domains and webhooks over from SendGrid, Postmark, Mailgun,
    /// Amazon SES or Resend. Nothing changes there. It can be repeated.
    ///
    /// Without --account, standard input has the key: the `credentials` of `POST /v1/providers`
    /// as JSON, or the API key alone (SendGrid, Resend) or the server token alone (Postmark).
    Import(import::ImportArguments),
    /// List, retry, drop or hold dead jobs, which no worker takes any more.
    Jobs {
        #[command(subcommand)]
        command: jobs::JobsCommand,
    },
    /// List the workers with their leases and the number of their chunks.
    Workers,
    /// List the scheduler's tasks with their last runs. Exits with 1 if a task is late.
    Tasks,
    /// Encrypt the stored credentials and secrets again with the first key of
    /// WAYPOST_ENCRYPTION_KEYS. Run it when every process has this key first.
    RotateKeys,
    /// Print all settings with their defaults and meanings.
    Config {
        /// The format of the text.
        #[arg(long, default_value = "markdown")]
        format: ConfigFormat,
    },
    /// Print the OpenAPI document.
    Openapi,
}

/// An organization.
#[derive(Debug, clap::Args)]
struct OrganizationArguments {
    /// The id of the organization.
    #[arg(long)]
    organization: OrganizationId,
}

/// Why a command failed, for the operator.
pub type CommandError = Box<dyn std::error::Error + Send + Sync>;

/// Runs the command. Without one, says how to begin.
///
/// # Errors
/// Why it failed.
pub async fn run(arguments: ApiArguments) -> Result<ExitCode, CommandError> {
    let format = match arguments.json {
        true => OutputFormat::Json,
        false => OutputFormat::Text,
    };
    let Some(command) = arguments.command else {
        settings::print_first_steps();
        return Ok(ExitCode::from(NO_COMMAND));
    };
    run_command(command, format).await?;
    Ok(ExitCode::SUCCESS)
}

async fn run_command(command: Command, format: OutputFormat) -> Result<(), CommandError> {
    match command {
        Command::Serve => serve().await,
        Command::Migrate => migrate(format).await,
        Command::WaitForMigrations { timeout } => schema::wait(timeout, format).await,
        Command::Doctor => doctor::run(format).await,
        Command::Healthcheck => healthcheck::healthcheck(&Settings::from_env()?),
        Command::CreateOrganization { name } => organizations::create(name, format).await,
        Command::ListOrganizations => organizations::list(format).await,
        Command::ShowOrganization(of) => organizations::show(of.organization, format).await,
        Command::RevokeOrganization(of) => organizations::revoke(of.organization, format).await,
        Command::CreateApiKey(arguments) => api_keys::create(arguments, format).await,
        Command::ListApiKeys(of) => api_keys::list(of.organization, format).await,
        Command::ShowApiKey(arguments) => api_keys::show(arguments, format).await,
        Command::RevokeApiKey(arguments) => api_keys::revoke(arguments, format).await,
        Command::CreateUser(arguments) => users::create(arguments, format).await,
        Command::ListUsers => users::list(format).await,
        Command::ShowUser { email } => users::show(&email, format).await,
        Command::RemoveUser { email } => users::remove(&email, format).await,
        Command::ResetPassword {
            email,
            without_second_factor,
        } => users::reset_password(&email, without_second_factor, format).await,
        // Boxed: it is large.
        Command::Import(arguments) => Box::pin(import::run(arguments, format)).await,
        Command::Jobs { command } => jobs::run(command, format).await,
        Command::Workers => jobs::print_workers(format).await,
        Command::Tasks => tasks::show(format).await,
        Command::RotateKeys => rotate_keys(format).await,
        Command::Config { format: text } => settings::print_config(text, format),
        Command::Openapi => {
            print!("{}", crate::document_text()?);
            Ok(())
        }
    }
}

async fn serve() -> Result<(), CommandError> {
    let serve = async |settings: Settings, shutdown| {
        let listen = settings.api.listen;
        let listener = TcpListener::bind(listen).await.map_err(|error| {
            let problem = format!("cannot listen on {listen} (WAYPOST_LISTEN): {error}");
            Fault::internal("start", problem)
        })?;
        crate::serve(&settings, Clock::system(), listener, shutdown).await
    };
    startup::run_program("api", serve).await
}

async fn migrate(format: OutputFormat) -> Result<(), CommandError> {
    let url = Settings::from_env()?.database_url;
    let pool = tools::connect_to(&url, SchemaRequirement::Any).await?;
    db::migrate(&pool).await?;
    schema::print_current(format);
    Ok(())
}

async fn rotate_keys(format: OutputFormat) -> Result<(), CommandError> {
    let tools = CommandTools::new("rotate-keys").await?;
    let mut unreadable = 0;
    let mut columns: Vec<Value> = Vec::new();
    for column in SecretColumn::ALL {
        let found = reencrypt::reencrypt(&tools.pool, &tools.settings.sealer, column).await?;
        let name = column.as_str();
        eprintln!("{name}: {} encrypted again", found.done);
        unreadable += found.unreadable;
        columns.push(json!({
            "secrets": name, "encryptedAgain": found.done, "unreadable": found.unreadable,
        }));
    }
    format.print(String::new, || Value::Array(columns));
    if unreadable > 0 {
        return Err(format!(
            "{unreadable} secrets are encrypted with keys that are not in WAYPOST_ENCRYPTION_KEYS: add those keys at its end"
        )
        .into());
    }
    eprintln!(
        "Keep the older keys as long as messages from before the rotation are stored and their links must work"
    );
    Ok(())
}
