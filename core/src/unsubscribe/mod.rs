//! Unsubscribe groups: topics (a newsletter, product announcements) that a recipient can
//! unsubscribe from separately. A suppression applies to one group or to all mail of the
//! organization. Deleting a group deletes its suppressions.
//!
//! An organization has at most one default group. A request that sets the default locks
//! the organization's row until its transaction ends, so concurrent requests run one
//! after the other and none fails.
//!
//! A message that is sent in a group carries an unsubscribe link for each recipient:
//! [`link`] builds it, [`link_insertion`] inserts it into the bodies, [`token`] encodes and
//! reads its token, [`follow`] handles the request when a recipient follows it.

pub mod follow;
pub mod group_cache;
mod hidden_style;
pub mod link;
pub mod link_insertion;
pub(crate) mod link_visibility;
pub mod store;
pub mod token;

pub(crate) use hidden_style::hides;

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

/// A topic that recipients can unsubscribe from.
#[derive(Debug, Clone)]
pub struct UnsubscribeGroup {
    pub id: UnsubscribeGroupId,
    pub organization_id: OrganizationId,
    pub name: String,
    pub description: Option<String>,
    pub is_default: bool,
    pub created_at: Timestamp,
}

/// The fields of a new group.
#[derive(Debug)]
pub struct NewGroup {
    pub name: Name,
    pub description: Option<Description>,
    /// Makes the group the default and unsets the previous default.
    pub is_default: bool,
}

/// A partial update of a group. Fields that are `None` stay unchanged.
#[derive(Debug, Default)]
pub struct GroupChange {
    pub name: Option<Name>,
    /// `Some(None)` removes the description.
    pub description: Option<Option<Description>>,
    pub is_default: Option<bool>,
}

impl GroupChange {
    /// The names of the changed fields, for the audit log.
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
    NotFound,
    Fault(Fault),
}

impl From<Fault> for GroupRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Creates, changes and removes groups. Cheap to clone.
#[derive(Clone)]
pub struct UnsubscribeGroups {
    pub pool: PgPool,
    pub cache: GroupCache,
    pub clock: Clock,
    pub ids: Ids,
}

impl UnsubscribeGroups {
    /// Creates a group.
    ///
    /// # Errors
    /// A fault, or the answer that the idempotency key requires. Nothing is stored then.
    pub async fn create(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        new: NewGroup,
        once: &Idempotent<'_, UnsubscribeGroup>,
    ) -> Result<UnsubscribeGroup, Failed<Fault>> {
        let now = self.clock.now();
        let group = UnsubscribeGroup {
            id: self.ids.next_at(now),
            organization_id,
            name: new.name.into_string(),
            description: new.description.map(Description::into_string),
            is_default: new.is_default,
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

    /// Applies a partial update to a group.
    ///
    /// # Errors
    /// [`GroupRefusal`]; nothing is changed then.
    pub async fn change(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: UnsubscribeGroupId,
        change: GroupChange,
    ) -> Result<UnsubscribeGroup, GroupRefusal> {
        let entry = AuditChange::new("unsubscribe_group.updated", id)
            .with(json!({ "fields": change.fields() }));
        let mut transaction = db::begin(&self.pool, "change a group").await?;
        if change.is_default == Some(true) {
            store::unset_default(&mut transaction, organization_id).await?;
        }
        let group = store::update(&mut transaction, organization_id, id, change)
            .await?
            .ok_or(GroupRefusal::NotFound)?;
        self.record(&mut transaction, organization_id, origin, &entry)
            .await?;
        transaction.commit().await.or_fault("change a group")?;
        Ok(group)
    }

    /// Removes a group and its suppressions.
    ///
    /// # Errors
    /// [`GroupRefusal`]; nothing is removed then.
    pub async fn remove(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: UnsubscribeGroupId,
    ) -> Result<(), GroupRefusal> {
        let mut transaction = db::begin(&self.pool, "remove a group").await?;
        // Locked, so that no other transaction can add a suppression to the group before
        // it is deleted.
        if !store::lock(&mut transaction, organization_id, id).await? {
            return Err(GroupRefusal::NotFound);
        }
        let suppressions_deleted =
            suppression::store::delete_of_group(&mut transaction, organization_id, id).await?;
        store::delete(&mut transaction, organization_id, id).await?;
        let change = AuditChange::new("unsubscribe_group.deleted", id)
            .with(json!({ "suppressionsDeleted": suppressions_deleted }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction.commit().await.or_fault("remove a group")?;
        self.cache.forget(organization_id, id).await;
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
