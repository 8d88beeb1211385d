//! The connections, clock and ids that most commands need.

use waypost_core::audit::{self, AuditChange, Origin};
use waypost_core::clock::Clock;
use waypost_core::config::Settings;
use waypost_core::db::connection_check::{self, SchemaRequirement};
use waypost_core::db::{self, OrFault, PgConnection, PgPool};
use waypost_core::fault::Fault;
use waypost_core::ids::{Ids, OrganizationId};
use waypost_core::organization::store::{self, ListedOrganization};
use waypost_core::secret::Secret;
use waypost_core::text::Name;

use super::CommandError;

/// What most commands need.
pub(super) struct CommandTools {
    pub(super) pool: PgPool,
    pub(super) settings: Settings,
    pub(super) clock: Clock,
    pub(super) ids: Ids,
    /// The name of the command, for the audit log.
    command: &'static str,
}

impl CommandTools {
    /// Connects to the migrated database of the configuration.
    pub(super) async fn new(command: &'static str) -> Result<Self, CommandError> {
        let settings = Settings::from_env()?;
        let clock = Clock::system();
        let pool = connect_to(&settings.database_url, SchemaRequirement::Current).await?;
        db::time::correct(&clock, &pool).await?;
        Ok(Self {
            pool,
            settings,
            ids: Ids::new(clock.clone()),
            clock,
            command,
        })
    }

    /// Where the changes of the command come from.
    pub(super) fn origin(&self) -> Origin {
        Origin::system(format!("waypost-api {}", self.command))
    }

    /// Writes changes to the audit log of an organization.
    pub(super) async fn record(
        &self,
        connection: &mut PgConnection,
        organization_id: OrganizationId,
        changes: &[AuditChange],
    ) -> Result<(), Fault> {
        let (origin, now) = (self.origin(), self.clock.now());
        let ids = &self.ids;
        audit::store::insert_all(connection, organization_id, &origin, changes, ids, now).await
    }

    /// An organization, which must exist.
    pub(super) async fn organization(
        &self,
        id: OrganizationId,
    ) -> Result<ListedOrganization, CommandError> {
        let mut connection = self.pool.acquire().await.or_fault("reach Postgres")?;
        let found = store::list(&mut connection, Some(id)).await?;
        let found = found.into_iter().next();
        Ok(found.ok_or_else(|| no_organization(id))?)
    }
}

/// Connects to a database after checking that it is usable.
pub(super) async fn connect_to(
    url: &Secret,
    wanted: SchemaRequirement,
) -> Result<PgPool, CommandError> {
    connection_check::check(url, wanted).await?;
    Ok(db::pool(url, 1)?)
}

/// The error of a command that names an organization that does not exist.
pub(super) fn no_organization(id: OrganizationId) -> String {
    format!(
        "organization {id} does not exist: `waypost-api list-organizations` lists those that do"
    )
}

/// Reads the option `--name`.
pub(super) fn parse_name(name: String) -> Result<Name, CommandError> {
    Ok(Name::parse(name).map_err(|error| format!("--name {error}"))?)
}
