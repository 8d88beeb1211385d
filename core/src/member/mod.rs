//! Members: the users of an organization, each with a role.
//!
//! A caller gives only roles whose permissions it has itself, and changes and removes only
//! members whose permissions it has. An organization that has an owner keeps one: each change of
//! a member locks the organization first, so that two owners cannot remove each other at once.

pub mod store;

use serde_json::json;

use crate::audit::{self, AuditChange, Origin};
use crate::auth::{Permission, Permissions, Role};
use crate::clock::{Clock, Timestamp};
use crate::db::{self, OrFault, PgPool, PgTransaction};
use crate::fault::Fault;
use crate::idempotency::single::{Failed, Idempotent};
use crate::ids::{Ids, MembershipId, OrganizationId, UserId};
use crate::organization;
use crate::session::Sessions;
use crate::user::{self, AccountEmail};

/// A user of an organization.
#[derive(Debug, Clone)]
pub struct Member {
    /// The id of the membership.
    pub id: MembershipId,
    pub user_id: UserId,
    pub email: AccountEmail,
    pub name: String,
    pub role: Role,
    pub last_signed_in_at: Option<Timestamp>,
    pub created_at: Timestamp,
}

/// Why a member was not added, changed or removed.
#[derive(Debug)]
pub enum MemberRefusal {
    NotFound,
    /// The caller lacks this permission, which the role has.
    Lacks(Permission),
    /// There is no other owner.
    LastOwner,
    /// The user is a member already.
    Exists,
    /// There is no user with this address.
    UserNotFound,
    Fault(Fault),
}

impl From<MemberRefusal> for Failed<MemberRefusal> {
    fn from(refusal: MemberRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Fault> for MemberRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Who manages members.
#[derive(Debug, Clone, Copy)]
pub struct MemberAct<'a> {
    pub organization_id: OrganizationId,
    pub permissions: &'a Permissions,
    pub origin: &'a Origin,
}

impl MemberAct<'_> {
    /// Refuses a role with a permission that the caller lacks; returns that permission.
    ///
    /// # Errors
    /// The permission.
    pub fn require_role(&self, role: Role) -> Result<(), Permission> {
        match role.permissions().first_not_in(self.permissions) {
            Some(permission) => Err(permission),
            None => Ok(()),
        }
    }
}

/// Adds, changes and removes members. Cheap to clone.
#[derive(Clone)]
pub struct Members {
    pub pool: PgPool,
    pub sessions: Sessions,
    pub clock: Clock,
    pub ids: Ids,
}

impl Members {
    /// Makes a user a member.
    ///
    /// # Errors
    /// The refusal.
    pub async fn create(
        &self,
        act: MemberAct<'_>,
        email: &AccountEmail,
        role: Role,
        idempotent: &Idempotent<'_, Member>,
    ) -> Result<Member, Failed<MemberRefusal>> {
        act.require_role(role).map_err(MemberRefusal::Lacks)?;
        let doing = "add a member";
        let mut transaction = idempotent.begin(&self.pool, doing).await?;
        let found = user::store::find_by_email(&mut transaction, email).await?;
        let user = found.ok_or(MemberRefusal::UserNotFound)?.user;
        let member = Member {
            id: self.ids.next_at(self.clock.now()),
            user_id: user.id,
            email: user.email,
            name: user.name,
            role,
            last_signed_in_at: None,
            created_at: self.clock.now(),
        };
        if !store::insert(&mut transaction, act.organization_id, &member).await? {
            return Err(MemberRefusal::Exists.into());
        }
        let change = AuditChange::new("member.created", member.id)
            .with(json!({ "userId": member.user_id, "role": role.as_str() }));
        self.record(&mut transaction, act, &change).await?;
        idempotent.commit(transaction, &member, doing).await?;
        Ok(member)
    }

    /// Gives a member another role. `None` changes nothing.
    ///
    /// # Errors
    /// The refusal.
    pub async fn change(
        &self,
        act: MemberAct<'_>,
        id: MembershipId,
        role: Option<Role>,
    ) -> Result<Member, MemberRefusal> {
        let doing = "change a member";
        let mut transaction = db::begin(&self.pool, doing).await?;
        let member = self.lock(&mut transaction, act, id).await?;
        let Some(role) = role else {
            return Ok(member);
        };
        act.require_role(role).map_err(MemberRefusal::Lacks)?;
        if member.role == Role::Owner && role != Role::Owner {
            require_other_owner(&mut transaction, act.organization_id).await?;
        }
        store::set_role(&mut transaction, act.organization_id, id, role).await?;
        let change = AuditChange::new("member.updated", id)
            .with(json!({ "userId": member.user_id, "role": role.as_str() }));
        self.record(&mut transaction, act, &change).await?;
        transaction.commit().await.or_fault(doing)?;
        self.sessions.refresh();
        Ok(Member { role, ..member })
    }

    /// Removes a member. The user's sessions in the organization end.
    ///
    /// # Errors
    /// The refusal.
    pub async fn remove(&self, act: MemberAct<'_>, id: MembershipId) -> Result<(), MemberRefusal> {
        let doing = "remove a member";
        let of = act.organization_id;
        let mut transaction = db::begin(&self.pool, doing).await?;
        let member = self.lock(&mut transaction, act, id).await?;
        if member.role == Role::Owner {
            require_other_owner(&mut transaction, of).await?;
        }
        let ended = store::end_sessions(&mut transaction, of, member.user_id).await?;
        store::delete(&mut transaction, of, id).await?;
        let change =
            AuditChange::new("member.deleted", id).with(json!({ "userId": member.user_id }));
        self.record(&mut transaction, act, &change).await?;
        transaction.commit().await.or_fault(doing)?;
        self.sessions.forget(&ended).await;
        Ok(())
    }

    /// The member whom the caller may manage. Nobody else changes members of the organization
    /// until the transaction ends.
    async fn lock(
        &self,
        transaction: &mut PgTransaction<'_>,
        act: MemberAct<'_>,
        id: MembershipId,
    ) -> Result<Member, MemberRefusal> {
        organization::store::lock(transaction, act.organization_id).await?;
        let member = store::find(transaction, act.organization_id, id).await?;
        let member = member.ok_or(MemberRefusal::NotFound)?;
        act.require_role(member.role)
            .map_err(MemberRefusal::Lacks)?;
        Ok(member)
    }

    async fn record(
        &self,
        transaction: &mut PgTransaction<'_>,
        act: MemberAct<'_>,
        change: &AuditChange,
    ) -> Result<(), Fault> {
        let (of, now) = (act.organization_id, self.clock.now());
        audit::store::insert(transaction, of, act.origin, change, &self.ids, now).await
    }
}

async fn require_other_owner(
    transaction: &mut PgTransaction<'_>,
    organization_id: OrganizationId,
) -> Result<(), MemberRefusal> {
    match store::count_owners(transaction, organization_id).await? {
        ..2 => Err(MemberRefusal::LastOwner),
        _ => Ok(()),
    }
}
