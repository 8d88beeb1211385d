//! `waypost-api create-user`, `list-users`, `show-user`, `remove-user` and `reset-password`.

use clap::Args;
use serde_json::{Value, json};
use waypost_core::audit::AuditChange;
use waypost_core::auth::Role;
use waypost_core::db::{self, OrFault, PgConnection};
use waypost_core::fault::Fault;
use waypost_core::ids::{OrganizationId, UserId};
use waypost_core::invitation::{self, Invitation};
use waypost_core::member::{self, Member};
use waypost_core::secret::ExposeSecret;
use waypost_core::user::reset::{self, generate_token};
use waypost_core::user::store::ListedUser;
use waypost_core::user::{AccountEmail, User, store};

use super::CommandError;
use super::output::{OutputFormat, fields, table};
use super::tools::{CommandTools, parse_name};

/// Who becomes a user.
#[derive(Debug, Args)]
pub(super) struct CreateUserArguments {
    /// The id of the organization.
    #[arg(long)]
    organization: OrganizationId,
    /// The address of the user.
    #[arg(long)]
    email: String,
    /// The name of the user. The user can change it.
    #[arg(long)]
    name: Option<String>,
    /// The role in the organization: OWNER, ADMIN, DEVELOPER or VIEWER.
    #[arg(long)]
    role: Role,
    /// Make the user an operator, who sees and changes what belongs to the installation.
    #[arg(long)]
    operator: bool,
}

/// Prints a link by which a new user sets a password. Somebody who is a user already becomes a
/// member, and the link sets a new password.
pub(super) async fn create(
    arguments: CreateUserArguments,
    format: OutputFormat,
) -> Result<(), CommandError> {
    let tools = CommandTools::new("create-user").await?;
    let email = parse_email(&arguments.email)?;
    tools.organization(arguments.organization).await?;
    let mut transaction = db::begin(&tools.pool, "create a user").await?;
    let link = match store::find_by_email(&mut transaction, &email).await? {
        Some(found) => admit(&tools, &mut transaction, &arguments, &found.user).await?,
        None => invite(&tools, &mut transaction, arguments, email).await?,
    };
    transaction.commit().await.or_fault("create a user")?;
    print_link(&link, format);
    Ok(())
}

/// Prints all users.
pub(super) async fn list(format: OutputFormat) -> Result<(), CommandError> {
    let tools = CommandTools::new("list-users").await?;
    let mut connection = tools.pool.acquire().await.or_fault("reach Postgres")?;
    let users = store::list(&mut connection).await?;
    let head = ["EMAIL", "NAME", "OPERATOR", "SECOND FACTOR", "MEMBERSHIPS"];
    let rows = users.iter().map(|user| {
        [
            user.email.clone(),
            user.name.clone(),
            word(user.is_operator),
            word(user.has_second_factor),
            user.memberships.join(" "),
        ]
    });
    format.print(|| table(head, rows), || users.iter().map(to_json).collect());
    Ok(())
}

/// Prints one user.
pub(super) async fn show(email: &str, format: OutputFormat) -> Result<(), CommandError> {
    let tools = CommandTools::new("show-user").await?;
    let mut connection = tools.pool.acquire().await.or_fault("reach Postgres")?;
    let id = find(&mut connection, email).await?.id;
    let users = store::list(&mut connection).await?;
    let user = users.into_iter().find(|user| user.id == id);
    let user = user.ok_or(NO_USER)?;
    let memberships = match user.memberships.is_empty() {
        true => "-".to_owned(),
        false => user.memberships.join(" "),
    };
    format.print(
        || {
            fields([
                ("id", user.id.to_string()),
                ("email", user.email.clone()),
                ("name", user.name.clone()),
                ("operator", word(user.is_operator)),
                ("second factor", word(user.has_second_factor)),
                ("memberships", memberships),
            ])
        },
        || to_json(&user),
    );
    Ok(())
}

/// Deletes a user with all memberships and sessions.
pub(super) async fn remove(email: &str, format: OutputFormat) -> Result<(), CommandError> {
    let tools = CommandTools::new("remove-user").await?;
    let mut transaction = db::begin(&tools.pool, "remove a user").await?;
    let user = find(&mut transaction, email).await?;
    let owned = member::store::list_owned_alone(&mut transaction, user.id).await?;
    if let Some(id) = owned.first() {
        return Err(format!(
            "the user is the only owner of organization {id}: make somebody else an owner first"
        )
        .into());
    }
    for (membership, organization_id) in
        member::store::list_of_user(&mut transaction, user.id).await?
    {
        let change =
            AuditChange::new("member.deleted", membership).with(json!({ "userId": user.id }));
        tools
            .record(&mut transaction, organization_id, &[change])
            .await?;
    }
    store::delete(&mut transaction, user.id).await?;
    transaction.commit().await.or_fault("remove a user")?;
    eprintln!("The user is removed. Sessions end within five seconds");
    format.print(String::new, || json!({ "id": user.id, "removed": true }));
    Ok(())
}

/// Prints a link by which a user sets a new password.
pub(super) async fn reset_password(
    email: &str,
    without_totp: bool,
    format: OutputFormat,
) -> Result<(), CommandError> {
    let tools = CommandTools::new("reset-password").await?;
    let mut transaction = db::begin(&tools.pool, "reset a password").await?;
    let user = find(&mut transaction, email).await?;
    if without_totp {
        store::remove_factor(&mut transaction, user.id).await?;
        record_of_user(&tools, &mut transaction, user.id, "user.totp_disabled").await?;
    }
    let link = reset_link(&tools, &mut transaction, &user).await?;
    transaction.commit().await.or_fault("reset a password")?;
    print_link(&link, format);
    Ok(())
}

/// Makes a user a member, unless the user is one, and returns a link for a new password.
async fn admit(
    tools: &CommandTools,
    connection: &mut PgConnection,
    arguments: &CreateUserArguments,
    user: &User,
) -> Result<String, CommandError> {
    let now = tools.clock.now();
    let member = Member {
        id: tools.ids.next_at(now),
        user_id: user.id,
        email: user.email.clone(),
        name: user.name.clone(),
        role: arguments.role,
        last_signed_in_at: None,
        created_at: now,
    };
    let organization_id = arguments.organization;
    if member::store::insert(connection, organization_id, &member).await? {
        let change = AuditChange::new("member.created", member.id)
            .with(json!({ "userId": user.id, "role": arguments.role.as_str() }));
        tools.record(connection, organization_id, &[change]).await?;
        eprintln!("The user exists and is a member now. The link sets a new password");
    } else {
        eprintln!(
            "The user is a member already; the role is not changed. The link sets a new password"
        );
    }
    if arguments.operator {
        store::set_operator(connection, user.id).await?;
        record_of_user(tools, connection, user.id, "user.operator_granted").await?;
    }
    reset_link(tools, connection, user).await
}

/// Invites somebody who is no user yet, and returns the link.
async fn invite(
    tools: &CommandTools,
    connection: &mut PgConnection,
    arguments: CreateUserArguments,
    email: AccountEmail,
) -> Result<String, CommandError> {
    let now = tools.clock.now();
    let organization_id = arguments.organization;
    let name = arguments.name.map(parse_name).transpose()?;
    let invitation = Invitation {
        id: tools.ids.next_at(now),
        organization_id,
        email,
        role: arguments.role,
        name: name.map(waypost_core::text::Name::into_string),
        makes_operator: arguments.operator,
        created_at: now,
        expires_at: now + invitation::LIFETIME,
        created_by: None,
    };
    let (token, hash) = generate_token(&tools.ids);
    invitation::store::delete_of(connection, organization_id, &invitation.email).await?;
    invitation::store::insert(connection, &invitation, hash).await?;
    let change = AuditChange::new("invitation.created", invitation.id)
        .with(json!({ "role": arguments.role.as_str(), "makesOperator": arguments.operator }));
    tools.record(connection, organization_id, &[change]).await?;
    let url = &tools.settings.links.public_url;
    Ok(format!("{url}/invitation#{}", token.expose_secret()))
}

async fn reset_link(
    tools: &CommandTools,
    connection: &mut PgConnection,
    user: &User,
) -> Result<String, CommandError> {
    let token = reset::create(connection, user.id, &tools.clock, &tools.ids).await?;
    record_of_user(tools, connection, user.id, "user.reset_created").await?;
    let url = &tools.settings.links.public_url;
    Ok(format!("{url}/reset#{}", token.expose_secret()))
}

/// Writes a change of a user to the audit log of every organization of the user.
async fn record_of_user(
    tools: &CommandTools,
    connection: &mut PgConnection,
    user_id: UserId,
    action: &'static str,
) -> Result<(), Fault> {
    let memberships = member::store::list_of_user(connection, user_id).await?;
    for (_, organization_id) in memberships {
        let change = AuditChange::new(action, user_id);
        tools.record(connection, organization_id, &[change]).await?;
    }
    Ok(())
}

fn print_link(link: &str, format: OutputFormat) {
    format.print(|| link.to_owned(), || json!({ "link": link }));
}

fn to_json(user: &ListedUser) -> Value {
    json!({
        "id": user.id, "email": user.email, "name": user.name,
        "isOperator": user.is_operator, "totpEnabled": user.has_second_factor,
        "memberships": user.memberships,
    })
}

fn word(is_so: bool) -> String {
    if is_so { "yes" } else { "no" }.to_owned()
}

fn parse_email(text: &str) -> Result<AccountEmail, CommandError> {
    Ok(AccountEmail::parse(text).map_err(|error| format!("--email {error}"))?)
}

const NO_USER: &str = "--email is the address of no user: `waypost-api list-users` lists the users";

async fn find(connection: &mut PgConnection, email: &str) -> Result<User, CommandError> {
    let email = parse_email(email)?;
    let found = store::find_by_email(connection, &email).await?;
    Ok(found.ok_or(NO_USER)?.user)
}
