//! `waypost-api create-api-key`, `list-api-keys`, `show-api-key` and `revoke-api-key`.

use clap::Args;
use serde_json::{Value, json};
use waypost_core::audit::AuditChange;
use waypost_core::auth::keys::{ApiKeys, Grantor, KeyRefusal};
use waypost_core::auth::{self, ApiKey, KeyDraft, Permission, Permissions, store};
use waypost_core::clock::Timestamp;
use waypost_core::db::{self, OrFault};
use waypost_core::ids::{ApiKeyId, OrganizationId};
use waypost_core::network::Networks;
use waypost_core::page::PageRequest;
use waypost_core::secret::ExposeSecret;

use super::CommandError;
use super::output::{OutputFormat, fields, optional_timestamp, table, timestamp};
use super::tools::{CommandTools, parse_name};

/// What the new key is.
#[derive(Debug, Args)]
pub(super) struct CreateApiKeyArguments {
    /// The id of the organization.
    #[arg(long)]
    organization: OrganizationId,
    /// The name of the key.
    #[arg(long)]
    name: String,
    /// A permission of the key. Repeat the option for more. Default: all permissions.
    #[arg(long = "permission")]
    permissions: Vec<Permission>,
}

/// A key of an organization.
#[derive(Debug, Args)]
pub(super) struct ApiKeyArguments {
    /// The id of the organization.
    #[arg(long)]
    organization: OrganizationId,
    /// The id of the key.
    #[arg(long)]
    key: ApiKeyId,
}

pub(super) async fn create(
    arguments: CreateApiKeyArguments,
    format: OutputFormat,
) -> Result<(), CommandError> {
    let tools = CommandTools::new("create-api-key").await?;
    let organization_id = arguments.organization;
    tools.organization(organization_id).await?;
    let permissions = if arguments.permissions.is_empty() {
        Permissions::all()
    } else {
        arguments.permissions.into_iter().collect()
    };
    let draft = KeyDraft {
        name: parse_name(arguments.name)?,
        is_test: false,
        permissions,
        allowed_ips: Networks::default(),
        expires_at: None,
    };
    let key = auth::mint(organization_id, draft, None, &tools.ids, tools.clock.now());
    let change = AuditChange::new("api_key.created", key.record.id).with(json!({
        "name": key.record.name, "permissions": key.record.permissions.names(), "isTest": false,
    }));
    let doing = "create an API key";
    let mut transaction = db::begin(&tools.pool, doing).await?;
    store::insert(&mut transaction, &key.record, key.hash).await?;
    tools
        .record(&mut transaction, organization_id, &[change])
        .await?;
    transaction.commit().await.or_fault(doing)?;
    let secret = key.secret.expose_secret();
    format.print(
        || secret.to_owned(),
        || {
            let mut shown = to_json(&key.record, tools.clock.now());
            shown["key"] = Value::from(secret);
            shown
        },
    );
    Ok(())
}

pub(super) async fn list(id: OrganizationId, format: OutputFormat) -> Result<(), CommandError> {
    let tools = CommandTools::new("list-api-keys").await?;
    tools.organization(id).await?;
    let mut connection = tools.pool.acquire().await.or_fault("reach Postgres")?;
    let mut keys: Vec<ApiKey> = Vec::new();
    for number in 1..=PageRequest::PAGE_MAX {
        let page = PageRequest::new(number, PageRequest::LIMIT_MAX);
        let page = page.expect("the numbers are within the bounds");
        let found = store::list(&mut connection, id, page).await?;
        keys.extend(found.rows);
        if found.next.is_none() {
            break;
        }
    }
    let now = tools.clock.now();
    let head = ["ID", "NAME", "PREFIX", "STATE", "CREATED", "LAST USED"];
    let rows = keys.iter().map(|key| {
        [
            key.id.to_string(),
            key.name.clone(),
            key.prefix.clone(),
            state(key, now).to_owned(),
            timestamp(key.created_at),
            optional_timestamp(key.last_used_at),
        ]
    });
    format.print(
        || table(head, rows),
        || keys.iter().map(|key| to_json(key, now)).collect(),
    );
    Ok(())
}

pub(super) async fn show(
    arguments: ApiKeyArguments,
    format: OutputFormat,
) -> Result<(), CommandError> {
    let tools = CommandTools::new("show-api-key").await?;
    let key = find(&tools, &arguments).await?;
    print(&key, &tools, format);
    Ok(())
}

/// Revokes a key with all its secrets. Revoking a revoked key changes nothing.
pub(super) async fn revoke(
    arguments: ApiKeyArguments,
    format: OutputFormat,
) -> Result<(), CommandError> {
    let tools = CommandTools::new("revoke-api-key").await?;
    let keys = ApiKeys {
        pool: tools.pool.clone(),
        clock: tools.clock.clone(),
        ids: tools.ids.clone(),
    };
    let operator = Grantor {
        organization_id: arguments.organization,
        id: uuid::Uuid::nil(),
        permissions: &Permissions::all(),
        is_test: false,
    };
    match keys.revoke(operator, &tools.origin(), arguments.key).await {
        Ok(()) => {}
        Err(KeyRefusal::Fault(fault)) => return Err(fault.into()),
        Err(
            KeyRefusal::NotFound | KeyRefusal::Lacks(_) | KeyRefusal::Ended | KeyRefusal::ByTestKey,
        ) => return Err(no_key(&arguments).into()),
    }
    let key = find(&tools, &arguments).await?;
    eprintln!("The key is revoked. This takes effect within five seconds");
    print(&key, &tools, format);
    Ok(())
}

async fn find(tools: &CommandTools, arguments: &ApiKeyArguments) -> Result<ApiKey, CommandError> {
    let mut connection = tools.pool.acquire().await.or_fault("reach Postgres")?;
    let found = store::find(&mut connection, arguments.organization, arguments.key).await?;
    Ok(found.ok_or_else(|| no_key(arguments))?)
}

fn no_key(arguments: &ApiKeyArguments) -> String {
    let ApiKeyArguments { organization, key } = arguments;
    format!(
        "organization {organization} has no API key {key}: `waypost-api list-api-keys --organization {organization}` lists its keys"
    )
}

fn print(key: &ApiKey, tools: &CommandTools, format: OutputFormat) {
    let now = tools.clock.now();
    let or_dash = |texts: Vec<String>| match texts.is_empty() {
        true => "-".to_owned(),
        false => texts.join(", "),
    };
    format.print(
        || {
            fields([
                ("id", key.id.to_string()),
                ("organization", key.organization_id.to_string()),
                ("name", key.name.clone()),
                ("prefix", key.prefix.clone()),
                ("state", state(key, now).to_owned()),
                (
                    "test key",
                    if key.is_test { "yes" } else { "no" }.to_owned(),
                ),
                ("permissions", or_dash(key.permissions.names())),
                ("allowed networks", or_dash(key.allowed_ips.texts())),
                ("created", timestamp(key.created_at)),
                ("expires", optional_timestamp(key.expires_at)),
                ("last used", optional_timestamp(key.last_used_at)),
                ("revoked", optional_timestamp(key.revoked_at)),
            ])
        },
        || to_json(key, now),
    );
}

fn state(key: &ApiKey, now: Timestamp) -> &'static str {
    if key.revoked_at.is_some() {
        "revoked"
    } else if key.is_valid(now) {
        "valid"
    } else {
        "expired"
    }
}

fn to_json(key: &ApiKey, now: Timestamp) -> Value {
    json!({
        "id": key.id, "organizationId": key.organization_id, "name": key.name,
        "prefix": key.prefix, "state": state(key, now), "isTest": key.is_test,
        "permissions": key.permissions.names(),
        "allowedIps": key.allowed_ips.texts(),
        "createdAt": key.created_at, "expiresAt": key.expires_at,
        "lastUsedAt": key.last_used_at, "revokedAt": key.revoked_at,
    })
}
