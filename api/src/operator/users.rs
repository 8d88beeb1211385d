//! `waypost-api create-user`, `list-users`, `remove-user` and `reset-password`.

use clap::Args;
use serde_json::{Value, json};
use waypost_core::auth::Role;
use waypost_core::clock::Clock;
use waypost_core::config::Settings;
use waypost_core::db::connection_check::SchemaRequirement;
use waypost_core::db::{self, OrFault, PgConnection, PgPool};
use waypost_core::ids::{Ids, OrganizationId};
use waypost_core::invitation::{self, Invitation};
use waypost_core::member::{self, Member};
use waypost_core::organization;
use waypost_core::secret::ExposeSecret;
use waypost_core::user::reset::{self, generate_token};
use waypost_core::user::{AccountEmail, User, store};

use super::{CommandError, parse_name};

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

/// The parts that the commands use.
struct UserTools {
    pool: PgPool,
    public_url: String,
    clock: Clock,
    ids: Ids,
}

/// Prints a link by which a new user sets a password. Somebody who is a user already becomes a
/// member, and the link sets a new password.
pub(super) async fn create(arguments: CreateUserArguments) -> Result<(), CommandError> {
    let tools = UserTools::new().await?;
    let email = parse_email(&arguments.email)?;
    let name = arguments.name.map(parse_name).transpose()?;
    let organization_id = arguments.organization;
    let mut transaction = db::begin(&tools.pool, "create a user").await?;
    organization::store::find(&mut transaction, organization_id)
        .await?
        .ok_or_else(|| format!("organization {organization_id} does not exist"))?;
    let now = tools.clock.now();
    let link = if let Some(found) = store::find_by_email(&mut transaction, &email).await? {
        let user = found.user;
        tools
            .admit(&mut transaction, organization_id, &user, arguments.role)
            .await?;
        if arguments.operator {
            store::set_operator(&mut transaction, user.id).await?;
        }
        tools.reset_link(&mut transaction, &user).await?
    } else {
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
        let of = &invitation.email;
        invitation::store::delete_of(&mut transaction, organization_id, of).await?;
        invitation::store::insert(&mut transaction, &invitation, hash).await?;
        let token = token.expose_secret();
        format!("{}/invitation#{token}", tools.public_url)
    };
    transaction.commit().await.or_fault("create a user")?;
    println!("{link}");
    Ok(())
}

/// Prints all users.
pub(super) async fn list(as_json: bool) -> Result<(), CommandError> {
    let tools = UserTools::new().await?;
    let mut connection = tools.pool.acquire().await.or_fault("reach Postgres")?;
    let users = store::list(&mut connection).await?;
    if as_json {
        let users: Vec<Value> = users
            .iter()
            .map(|user| {
                json!({
                    "id": user.id, "email": user.email, "name": user.name,
                    "isOperator": user.is_operator, "totpEnabled": user.has_second_factor,
                    "memberships": user.memberships,
                })
            })
            .collect();
        println!("{:#}", Value::Array(users));
        return Ok(());
    }
    let head = ["EMAIL", "NAME", "OPERATOR", "SECOND FACTOR", "MEMBERSHIPS"];
    let word = |is_so: bool| if is_so { "yes" } else { "no" }.to_owned();
    let rows = users.into_iter().map(|user| {
        [
            user.email,
            user.name,
            word(user.is_operator),
            word(user.has_second_factor),
            user.memberships.join(" "),
        ]
    });
    print!("{}", super::table(head, rows));
    Ok(())
}

/// Deletes a user with all memberships and sessions.
pub(super) async fn remove(email: &str) -> Result<(), CommandError> {
    let tools = UserTools::new().await?;
    let mut transaction = db::begin(&tools.pool, "remove a user").await?;
    let user = find(&mut transaction, email).await?;
    let owned = member::store::list_owned_alone(&mut transaction, user.id).await?;
    if let Some(id) = owned.first() {
        return Err(format!(
            "the user is the only owner of organization {id}: make somebody else an owner first"
        )
        .into());
    }
    store::delete(&mut transaction, user.id).await?;
    transaction.commit().await.or_fault("remove a user")?;
    eprintln!("The user is removed. Sessions end within five seconds");
    Ok(())
}

/// Prints a link by which a user sets a new password.
pub(super) async fn reset_password(email: &str, without_totp: bool) -> Result<(), CommandError> {
    let tools = UserTools::new().await?;
    let mut transaction = db::begin(&tools.pool, "reset a password").await?;
    let user = find(&mut transaction, email).await?;
    if without_totp {
        store::remove_factor(&mut transaction, user.id).await?;
    }
    let link = tools.reset_link(&mut transaction, &user).await?;
    transaction.commit().await.or_fault("reset a password")?;
    println!("{link}");
    Ok(())
}

impl UserTools {
    async fn new() -> Result<Self, CommandError> {
        let settings = Settings::from_env()?;
        let clock = Clock::system();
        let pool = super::connect_to(&settings.database_url, SchemaRequirement::Current).await?;
        db::time::correct(&clock, &pool).await?;
        Ok(Self {
            pool,
            public_url: settings.links.public_url,
            ids: Ids::new(clock.clone()),
            clock,
        })
    }

    /// Makes a user a member, unless the user is one.
    async fn admit(
        &self,
        connection: &mut PgConnection,
        organization_id: OrganizationId,
        user: &User,
        role: Role,
    ) -> Result<(), CommandError> {
        let now = self.clock.now();
        let member = Member {
            id: self.ids.next_at(now),
            user_id: user.id,
            email: user.email.clone(),
            name: user.name.clone(),
            role,
            last_signed_in_at: None,
            created_at: now,
        };
        if member::store::insert(connection, organization_id, &member).await? {
            eprintln!("The user exists and is a member now. The link sets a new password");
        } else {
            eprintln!(
                "The user is a member already; the role is not changed. The link sets a new password"
            );
        }
        Ok(())
    }

    async fn reset_link(
        &self,
        connection: &mut PgConnection,
        user: &User,
    ) -> Result<String, CommandError> {
        let token = reset::create(connection, user.id, &self.clock, &self.ids).await?;
        let token = token.expose_secret();
        Ok(format!("{}/reset#{token}", self.public_url))
    }
}

fn parse_email(text: &str) -> Result<AccountEmail, CommandError> {
    Ok(AccountEmail::parse(text).map_err(|error| format!("--email {error}"))?)
}

async fn find(connection: &mut PgConnection, email: &str) -> Result<User, CommandError> {
    let email = parse_email(email)?;
    let found = store::find_by_email(connection, &email).await?;
    let found = found.ok_or("--email is the address of no user")?;
    Ok(found.user)
}
