//! Invitations: links by which people become members of an organization. A link works once, for
//! seven days. Who has no user yet gets one, with the password that is given with the link; who
//! has one must give its password, since a link may be forwarded.
//!
//! As with members, a caller invites only to roles whose permissions it has itself.

pub mod store;

use chrono::TimeDelta;
use serde_json::json;
use uuid::Uuid;

use crate::audit::{self, Actor, AuditChange, Origin};
use crate::auth::{Permission, Role};
use crate::clock::{Clock, Timestamp};
use crate::db::{self, OrFault, PgPool, PgTransaction};
use crate::fault::Fault;
use crate::idempotency::single::{Failed, Idempotent};
use crate::ids::{Ids, InvitationId, OrganizationId};
use crate::member::{self, Member, MemberAct};
use crate::secret::Secret;
use crate::session::{SessionRefusal, Sessions, StartedSession};
use crate::text::Name;
use crate::user::password::NewPassword;
use crate::user::reset::{generate_token, hash_token};
use crate::user::{self, AccountEmail, User, Users};

/// How long a link works.
pub const LIFETIME: TimeDelta = TimeDelta::days(7);

/// An invitation that is neither accepted nor expired.
#[derive(Debug, Clone)]
pub struct Invitation {
    pub id: InvitationId,
    pub organization_id: OrganizationId,
    pub email: AccountEmail,
    pub role: Role,
    /// What a new user is called who does not say.
    pub name: Option<String>,
    /// Whether the user becomes an operator. Only the operator's command asks for it.
    pub makes_operator: bool,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// The user or the API key that invited. `None`: the operator did.
    pub created_by: Option<Uuid>,
}

/// An invitation with the token of its link, which is shown once.
#[derive(Debug)]
pub struct NewInvitation {
    pub invitation: Invitation,
    pub token: Secret,
    /// Whether the link was mailed.
    pub mailed: bool,
}

/// What the holder of a link may know.
#[derive(Debug)]
pub struct OpenInvitation {
    pub invitation: Invitation,
    pub organization_name: String,
    /// Whether there is a user with the address, whose password must be given.
    pub has_user: bool,
}

/// The answer to an invitation.
#[derive(Debug)]
pub struct InvitationReply {
    pub token: Secret,
    /// The name of a new user.
    pub name: Option<Name>,
    /// The password of a new user, or the present one.
    pub password: NewPassword,
    /// The code of the user's second factor.
    pub code: Option<String>,
}

/// Why nobody was invited, or an invitation was not changed or accepted.
#[derive(Debug)]
pub enum InvitationRefusal {
    /// There is no such invitation, or it was used or has expired.
    NotFound,
    /// The caller lacks this permission, which the role has.
    Lacks(Permission),
    /// There is an invitation of this address.
    Exists,
    /// The address is a member's.
    MemberExists,
    Session(SessionRefusal),
    Fault(Fault),
}

impl From<InvitationRefusal> for Failed<InvitationRefusal> {
    fn from(refusal: InvitationRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Fault> for InvitationRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<SessionRefusal> for InvitationRefusal {
    fn from(refusal: SessionRefusal) -> Self {
        Self::Session(refusal)
    }
}

/// Makes, changes and accepts invitations. Cheap to clone.
#[derive(Clone)]
pub struct Invitations {
    pub pool: PgPool,
    pub users: Users,
    pub sessions: Sessions,
    pub clock: Clock,
    pub ids: Ids,
}

impl Invitations {
    /// Invites somebody. The link is not mailed.
    ///
    /// # Errors
    /// The refusal.
    pub async fn create(
        &self,
        act: MemberAct<'_>,
        email: AccountEmail,
        role: Role,
        idempotent: &Idempotent<'_, NewInvitation>,
    ) -> Result<NewInvitation, Failed<InvitationRefusal>> {
        act.require_role(role).map_err(InvitationRefusal::Lacks)?;
        let doing = "invite somebody";
        let now = self.clock.now();
        let invitation = Invitation {
            id: self.ids.next_at(now),
            organization_id: act.organization_id,
            email,
            role,
            name: None,
            makes_operator: false,
            created_at: now,
            expires_at: now + LIFETIME,
            created_by: act.origin.actor.identity().map(|(id, _)| id),
        };
        let mut transaction = idempotent.begin(&self.pool, doing).await?;
        let of = act.organization_id;
        if member::store::is_member(&mut transaction, of, &invitation.email).await? {
            return Err(InvitationRefusal::MemberExists.into());
        }
        let (token, hash) = generate_token(&self.ids);
        if !store::insert(&mut transaction, &invitation, hash).await? {
            return Err(InvitationRefusal::Exists.into());
        }
        let change = AuditChange::new("invitation.created", invitation.id)
            .with(json!({ "role": role.as_str() }));
        self.record(&mut transaction, of, act.origin, &change)
            .await?;
        let made = NewInvitation {
            invitation,
            token,
            mailed: false,
        };
        idempotent.commit(transaction, &made, doing).await?;
        Ok(made)
    }

    /// Changes the role of an invitation. `None` changes nothing.
    ///
    /// # Errors
    /// The refusal.
    pub async fn change(
        &self,
        act: MemberAct<'_>,
        id: InvitationId,
        role: Option<Role>,
    ) -> Result<Invitation, InvitationRefusal> {
        let doing = "change an invitation";
        let of = act.organization_id;
        let mut transaction = db::begin(&self.pool, doing).await?;
        let invitation = self.lock(&mut transaction, act, id).await?;
        let Some(role) = role else {
            return Ok(invitation);
        };
        act.require_role(role).map_err(InvitationRefusal::Lacks)?;
        store::set_role(&mut transaction, of, id, role).await?;
        let change =
            AuditChange::new("invitation.updated", id).with(json!({ "role": role.as_str() }));
        self.record(&mut transaction, of, act.origin, &change)
            .await?;
        transaction.commit().await.or_fault(doing)?;
        Ok(Invitation { role, ..invitation })
    }

    /// Withdraws an invitation: its link stops working.
    ///
    /// # Errors
    /// The refusal.
    pub async fn delete(
        &self,
        act: MemberAct<'_>,
        id: InvitationId,
    ) -> Result<(), InvitationRefusal> {
        let doing = "withdraw an invitation";
        let of = act.organization_id;
        let mut transaction = db::begin(&self.pool, doing).await?;
        self.lock(&mut transaction, act, id).await?;
        store::delete(&mut transaction, of, id).await?;
        let change = AuditChange::new("invitation.deleted", id);
        self.record(&mut transaction, of, act.origin, &change)
            .await?;
        transaction.commit().await.or_fault(doing)?;
        Ok(())
    }

    /// What the holder of a link may know; `None` if the link is unknown, used or expired.
    ///
    /// # Errors
    /// A fault if Postgres is away.
    pub async fn look_up(&self, token: &Secret) -> Result<Option<OpenInvitation>, Fault> {
        let mut connection = self
            .pool
            .acquire()
            .await
            .or_fault("look up an invitation")?;
        store::look_up(&mut connection, hash_token(token), self.clock.now()).await
    }

    /// Accepts an invitation and begins a session.
    ///
    /// # Errors
    /// The refusal.
    pub async fn accept(
        &self,
        acceptance: InvitationReply,
        origin: &Origin,
    ) -> Result<StartedSession, InvitationRefusal> {
        let found = self.look_up(&acceptance.token).await?;
        let OpenInvitation {
            invitation,
            has_user,
            ..
        } = found.ok_or(InvitationRefusal::NotFound)?;
        let InvitationReply {
            token,
            name,
            password,
            code,
        } = acceptance;
        let (user, hash) = if has_user {
            let password = password.into_secret();
            let verified = self
                .users
                .verify(&invitation.email, password, code.as_deref());
            let user = verified.await.map_err(SessionRefusal::User)?;
            (user, None)
        } else {
            let hash = self.users.passwords.hash(password).await?;
            (self.new_user(&invitation, name), Some(hash))
        };
        let doing = "accept an invitation";
        let mut transaction = db::begin(&self.pool, doing).await?;
        // Whoever deletes the row has accepted the invitation; nobody else can.
        let now = self.clock.now();
        let invitation = store::use_up(&mut transaction, hash_token(&token), now).await?;
        let invitation = invitation.ok_or(InvitationRefusal::NotFound)?;
        if let Some(hash) = hash
            && !user::store::insert(&mut transaction, &user, Some(&hash)).await?
        {
            // Another invitation made the user meanwhile: the password must be the user's.
            return Err(SessionRefusal::User(user::UserRefusal::WrongPassword).into());
        }
        self.admit(&mut transaction, &invitation, &user, origin)
            .await?;
        let of = Some(invitation.organization_id);
        let started = self.sessions.begin(&mut transaction, &user, of, origin);
        let started = started.await?;
        transaction.commit().await.or_fault(doing)?;
        Ok(started)
    }

    fn new_user(&self, invitation: &Invitation, name: Option<Name>) -> User {
        let now = self.clock.now();
        let name = name.map(Name::into_string);
        let name = name.or_else(|| invitation.name.clone());
        User {
            id: self.ids.next_at(now),
            email: invitation.email.clone(),
            name: name.unwrap_or_else(|| invitation.email.local_part().to_owned()),
            has_second_factor: false,
            has_password: true,
            is_operator: invitation.makes_operator,
            created_at: now,
        }
    }

    /// Makes the user a member, as the invitation says.
    async fn admit(
        &self,
        transaction: &mut PgTransaction<'_>,
        invitation: &Invitation,
        user: &User,
        origin: &Origin,
    ) -> Result<(), Fault> {
        let (of, now) = (invitation.organization_id, self.clock.now());
        if invitation.makes_operator && !user.is_operator {
            user::store::set_operator(transaction, user.id).await?;
        }
        let member = Member {
            id: self.ids.next_at(now),
            user_id: user.id,
            email: user.email.clone(),
            name: user.name.clone(),
            role: invitation.role,
            last_signed_in_at: None,
            created_at: now,
        };
        // Somebody may have added the member meanwhile, whose role stays then.
        member::store::insert(transaction, of, &member).await?;
        let actor = Actor::User {
            id: user.id,
            name: user.name.clone(),
        };
        let origin = Origin {
            actor,
            ..origin.clone()
        };
        let change = AuditChange::new("invitation.accepted", invitation.id)
            .with(json!({ "userId": user.id, "role": invitation.role.as_str() }));
        self.record(transaction, of, &origin, &change).await
    }

    /// The invitation that the caller may manage, locked until the transaction ends.
    async fn lock(
        &self,
        transaction: &mut PgTransaction<'_>,
        act: MemberAct<'_>,
        id: InvitationId,
    ) -> Result<Invitation, InvitationRefusal> {
        let now = self.clock.now();
        let found = store::lock(transaction, act.organization_id, id, now).await?;
        let invitation = found.ok_or(InvitationRefusal::NotFound)?;
        act.require_role(invitation.role)
            .map_err(InvitationRefusal::Lacks)?;
        Ok(invitation)
    }

    async fn record(
        &self,
        transaction: &mut PgTransaction<'_>,
        of: OrganizationId,
        origin: &Origin,
        change: &AuditChange,
    ) -> Result<(), Fault> {
        let now = self.clock.now();
        audit::store::insert(transaction, of, origin, change, &self.ids, now).await
    }
}
