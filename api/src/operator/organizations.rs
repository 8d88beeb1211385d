//! `waypost-api create-organization`, `list-organizations`, `show-organization` and
//! `revoke-organization`.

use serde_json::{Value, json};
use waypost_core::audit::AuditChange;
use waypost_core::auth;
use waypost_core::db::{self, OrFault};
use waypost_core::ids::{Ids, OrganizationId};
use waypost_core::organization::store::{self, ListedOrganization};
use waypost_core::organization::{self, Organization, UnverifiedDomains};
use waypost_core::{invitation, member};

use super::CommandError;
use super::output::{OutputFormat, fields, table, timestamp};
use super::tools::{CommandTools, no_organization, parse_name};

pub(super) async fn create(name: String, format: OutputFormat) -> Result<(), CommandError> {
    let tools = CommandTools::new("create-organization").await?;
    let organization = Organization {
        id: Ids::new(tools.clock.clone()).next(),
        name: parse_name(name)?.into_string(),
        unverified_domains: UnverifiedDomains::Reject,
        created_at: tools.clock.now(),
    };
    let doing = "create an organization";
    let mut transaction = db::begin(&tools.pool, doing).await?;
    store::insert(&mut transaction, &organization).await?;
    let change = AuditChange::new("organization.created", organization.id.0);
    tools
        .record(&mut transaction, organization.id, &[change])
        .await?;
    transaction.commit().await.or_fault(doing)?;
    format.print(
        || organization.id.to_string(),
        || json!({ "id": organization.id, "name": organization.name, "createdAt": organization.created_at }),
    );
    Ok(())
}

pub(super) async fn list(format: OutputFormat) -> Result<(), CommandError> {
    let tools = CommandTools::new("list-organizations").await?;
    let mut connection = tools.pool.acquire().await.or_fault("reach Postgres")?;
    let organizations = store::list(&mut connection, None).await?;
    let head = ["ID", "NAME", "CREATED", "API KEYS", "MEMBERS", "ACCOUNTS"];
    let rows = organizations.iter().map(|one| {
        [
            one.id.to_string(),
            one.name.clone(),
            timestamp(one.created_at),
            one.api_keys.to_string(),
            one.members.to_string(),
            one.provider_accounts.to_string(),
        ]
    });
    format.print(
        || table(head, rows),
        || organizations.iter().map(to_json).collect(),
    );
    Ok(())
}

pub(super) async fn show(id: OrganizationId, format: OutputFormat) -> Result<(), CommandError> {
    let tools = CommandTools::new("show-organization").await?;
    let organization = tools.organization(id).await?;
    format.print(
        || {
            fields([
                ("id", organization.id.to_string()),
                ("name", organization.name.clone()),
                ("created", timestamp(organization.created_at)),
                ("valid API keys", organization.api_keys.to_string()),
                ("members", organization.members.to_string()),
                (
                    "active provider accounts",
                    organization.provider_accounts.to_string(),
                ),
                ("jobs not finished", organization.jobs.to_string()),
            ])
        },
        || to_json(&organization),
    );
    Ok(())
}

/// Takes all access from an organization: revokes its API keys, ends its sessions, removes its
/// members and withdraws its invitations. Its data stay, and mail that was accepted is sent.
pub(super) async fn revoke(id: OrganizationId, format: OutputFormat) -> Result<(), CommandError> {
    let tools = CommandTools::new("revoke-organization").await?;
    let doing = "revoke an organization";
    let now = tools.clock.now();
    let mut transaction = db::begin(&tools.pool, doing).await?;
    store::find(&mut transaction, id)
        .await?
        .ok_or_else(|| no_organization(id))?;
    // Nobody joins meanwhile.
    organization::store::lock(&mut transaction, id).await?;
    let keys = auth::store::revoke_all(&mut transaction, id, now).await?;
    let members = member::store::delete_all(&mut transaction, id).await?;
    let invitations = invitation::store::delete_all(&mut transaction, id).await?;
    let done = json!({
        "apiKeys": keys.len(), "members": members.len(), "invitations": invitations.len(),
    });
    let mut changes: Vec<AuditChange> = Vec::new();
    changes.extend(
        keys.iter()
            .map(|key| AuditChange::new("api_key.revoked", *key)),
    );
    changes.extend(members.iter().map(|(membership, user)| {
        AuditChange::new("member.deleted", *membership).with(json!({ "userId": user }))
    }));
    let withdrawn = invitations.iter();
    changes.extend(withdrawn.map(|one| AuditChange::new("invitation.deleted", *one)));
    changes.push(AuditChange::new("organization.revoked", id).with(done.clone()));
    tools.record(&mut transaction, id, &changes).await?;
    transaction.commit().await.or_fault(doing)?;
    format.print(
        || {
            format!(
                "Revoked {} API keys, removed {} members and withdrew {} invitations. \
                 This takes effect within five seconds. Mail that was accepted is still sent",
                keys.len(),
                members.len(),
                invitations.len(),
            )
        },
        || json!({ "id": id, "revoked": done }),
    );
    Ok(())
}

fn to_json(organization: &ListedOrganization) -> Value {
    json!({
        "id": organization.id, "name": organization.name, "createdAt": organization.created_at,
        "apiKeys": organization.api_keys, "members": organization.members,
        "providerAccounts": organization.provider_accounts, "jobs": organization.jobs,
    })
}
