//! Unsubscribe groups: the subjects (a newsletter, product news) that a recipient
//! may unsubscribe from one by one. A suppression belongs to one group or is valid
//! everywhere; deleting a group deletes its suppressions.
//!
//! At most one group of an organization is its default. Whoever makes a group the
//! default holds the organization's row until the previous one is unset, so
//! concurrent callers come one after the other and none of them fails.
//!
//! A message that is sent in a group carries a *link* for each recipient (`link`,
//! `place`), which a *token* makes (`token`). What following it does is written in
//! [`crate::unsubscribe::follow`].

pub mod follow;
pub mod group_cache;
mod hidden_style;
pub mod link;
pub mod link_insertion;
pub(crate) mod link_visibility;
pub mod store;
pub mod token;

use serde_json::json;

use crate::audit::{self, AuditChange, Origin};
use crate::clock::{Clock, Timestamp};
use crate::db::{self, OrFault, PgConnection, PgPool};
use crate::fault::Fault;
use crate::idempotency::single::{Failed, Idempotent};
use crate::ids::{Ids, OrganizationId, UnsubscribeGroupId};
use crate::suppression;
use crate::text::{Description, Name};
use group_cache::GroupCache;

/// A subject that recipients may unsubscribe from.
#[derive(Debug, Clone)]
pub struct UnsubscribeGroup {
    pub id: UnsubscribeGroupId,
    pub organization_id: OrganizationId,
    pub name: String,
    pub description: Option<String>,
    /// Whether it is the organization's default.
    pub is_default: bool,
    pub created_at: Timestamp,
}

/// What a caller wants a new group to be.
#[derive(Debug)]
pub struct WantedGroup {
    pub name: Name,
    pub description: Option<Description>,
    /// Whether it becomes the default.
    pub is_default: bool,
}

/// What of a group a caller wants changed; what is absent stays.
#[derive(Debug, Default)]
pub struct WantedGroupChange {
    pub name: Option<Name>,
    /// A new description, or none.
    pub description: Option<Option<Description>>,
    /// Whether it is the default.
    pub is_default: Option<bool>,
}

impl WantedGroupChange {
    /// The names of the fields that are to change, for the audit log.
    fn fields(&self) -> Vec<&'static str> {
        [
            self.name.is_some().then_some("name"),
            self.description.is_some().then_some("description"),
            self.is_default.is_some().then_some("isDefault"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Why a group was not changed or removed.
#[derive(Debug)]
pub enum GroupRefusal {
    /// There is no such group.
    NotFound,
    Fault(Fault),
}

impl From<Fault> for GroupRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Works on the groups of organizations. Cheap to clone.
#[derive(Clone)]
pub struct UnsubscribeGroups {
    pub pool: PgPool,
    pub known: GroupCache,
    pub clock: Clock,
    pub ids: Ids,
}

impl UnsubscribeGroups {
    /// Adds a group.
    ///
    /// # Errors
    /// Why it was not added; nothing is stored then.
    pub async fn create(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        wanted: WantedGroup,
        once: &Idempotent<'_, UnsubscribeGroup>,
    ) -> Result<UnsubscribeGroup, Failed<Fault>> {
        let now = self.clock.now();
        let group = UnsubscribeGroup {
            id: self.ids.next_at(now),
            organization_id,
            name: wanted.name.into_string(),
            description: wanted.description.map(Description::into_string),
            is_default: wanted.is_default,
            created_at: now,
        };
        let mut transaction = once.begin(&self.pool, "add a group").await?;
        if group.is_default {
            store::unset_default(&mut transaction, organization_id).await?;
        }
        store::insert(&mut transaction, &group).await?;
        let change = AuditChange::new("unsubscribe_group.created", group.id)
            .with(json!({ "isDefault": group.is_default }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        once.commit(transaction, &group, "add a group").await?;
        Ok(group)
    }

    /// Changes a group.
    ///
    /// # Errors
    /// Why it was not changed.
    pub async fn change(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: UnsubscribeGroupId,
        wanted: WantedGroupChange,
    ) -> Result<UnsubscribeGroup, GroupRefusal> {
        let change = AuditChange::new("unsubscribe_group.updated", id)
            .with(json!({ "fields": wanted.fields() }));
        let mut transaction = db::begin(&self.pool, "change a group").await?;
        if wanted.is_default == Some(true) {
            store::unset_default(&mut transaction, organization_id).await?;
        }
        let group = store::update(&mut transaction, organization_id, id, wanted)
            .await?
            .ok_or(GroupRefusal::NotFound)?;
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction.commit().await.or_fault("change a group")?;
        Ok(group)
    }

    /// Removes a group and its suppressions.
    ///
    /// # Errors
    /// Why it was not removed.
    pub async fn remove(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: UnsubscribeGroupId,
    ) -> Result<(), GroupRefusal> {
        let mut transaction = db::begin(&self.pool, "remove a group").await?;
        // Held from here on, so that no suppression joins it any more.
        if !store::lock(&mut transaction, organization_id, id).await? {
            return Err(GroupRefusal::NotFound);
        }
        let lifted =
            suppression::store::delete_of_group(&mut transaction, organization_id, id).await?;
        store::delete(&mut transaction, organization_id, id).await?;
        let change = AuditChange::new("unsubscribe_group.deleted", id)
            .with(json!({ "suppressionsDeleted": lifted }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction.commit().await.or_fault("remove a group")?;
        self.known.forget(organization_id, id).await;
        Ok(())
    }

    async fn record(
        &self,
        connection: &mut PgConnection,
        organization_id: OrganizationId,
        origin: &Origin,
        change: &AuditChange,
    ) -> Result<(), Fault> {
        let now = self.clock.now();
        audit::store::insert(connection, organization_id, origin, change, &self.ids, now).await
    }
}
