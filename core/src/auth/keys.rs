//! Creating, changing, rotating and revoking API keys.
//!
//! A caller cannot give a key a permission that it lacks itself. It cannot change, rotate
//! or revoke a key that has a permission that it lacks: otherwise it could remove
//! the networks or the expiry that protect a more powerful key. For the same reason a test
//! key creates and changes only test keys.

use std::time::Duration;

use chrono::TimeDelta;
use serde_json::json;
use uuid::Uuid;

use super::{
    ApiKey, KeyDraft, MintedKey, Permission, Permissions, beginning, generate_key, mint, store,
};
use crate::audit::{self, AuditChange, Origin};
use crate::clock::{Clock, Timestamp};
use crate::db::{self, OrFault, PgConnection, PgPool};
use crate::fault::Fault;
use crate::idempotency::single::{Failed, Idempotent};
use crate::ids::{ApiKeyId, Ids, OrganizationId};
use crate::network::Networks;
use crate::secret::Secret;
use crate::text::Name;

/// Networks of one key.
pub const ALLOWED_IPS_MAX: usize = 100;
/// Longest grace period of a rotated key's old secret.
pub const GRACE_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Default grace period of a rotated key's old secret.
pub const GRACE_DEFAULT: Duration = Duration::from_secs(24 * 3_600);

/// Why a key was not created or changed.
#[derive(Debug)]
pub enum KeyRefusal {
    NotFound,
    /// The caller lacks this permission, which the key has or would have.
    Lacks(Permission),
    /// The key is revoked or expired.
    Ended,
    /// The caller's key is a test key, and the other key is not or would not be.
    ByTestKey,
    Fault(Fault),
}

impl From<Fault> for KeyRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<KeyRefusal> for Failed<KeyRefusal> {
    fn from(refusal: KeyRefusal) -> Self {
        Self::Refused(refusal)
    }
}

/// A change of a key. `None` leaves a field as it is.
#[derive(Debug, Default)]
pub struct KeyChange {
    pub name: Option<Name>,
    pub permissions: Option<Permissions>,
    pub allowed_ips: Option<Networks>,
    pub expires_at: Option<Option<Timestamp>>,
}

impl KeyChange {
    /// The names of the changed fields, for the audit log.
    fn fields(&self) -> Vec<&'static str> {
        [
            self.name.is_some().then_some("name"),
            self.permissions.is_some().then_some("permissions"),
            self.allowed_ips.is_some().then_some("allowedIps"),
            self.expires_at.is_some().then_some("expiresAt"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Who creates and changes keys: an API key or a user.
#[derive(Debug, Clone, Copy)]
pub struct Grantor<'a> {
    pub organization_id: OrganizationId,
    /// The id of the API key or of the user.
    pub id: Uuid,
    pub permissions: &'a Permissions,
    /// Whether everything that the caller sends is a test.
    pub is_test: bool,
}

/// The parameters of a rotation.
#[derive(Debug, Clone, Copy)]
pub struct Rotation {
    pub id: ApiKeyId,
    /// How long the present secret, and the secrets before it, remain valid.
    pub grace: Duration,
}

/// Manages the keys of organizations. Cheap to clone.
#[derive(Clone)]
pub struct ApiKeys {
    pub pool: PgPool,
    pub clock: Clock,
    pub ids: Ids,
}

impl ApiKeys {
    /// Creates a key on behalf of `creator`.
    ///
    /// # Errors
    /// The refusal.
    pub async fn create(
        &self,
        creator: Grantor<'_>,
        origin: &Origin,
        draft: KeyDraft,
        idempotent: &Idempotent<'_, MintedKey>,
    ) -> Result<MintedKey, Failed<KeyRefusal>> {
        // Also before a stored answer is repeated, since it contains the secret.
        require_permissions(&draft.permissions, creator.permissions)?;
        if creator.is_test && !draft.is_test {
            return Err(KeyRefusal::ByTestKey.into());
        }
        let organization_id = creator.organization_id;
        let now = self.clock.now();
        let minted = mint(organization_id, draft, Some(creator.id), &self.ids, now);
        let change = AuditChange::new("api_key.created", minted.record.id).with(json!({
            "name": minted.record.name,
            "permissions": minted.record.permissions.names(),
            "isTest": minted.record.is_test,
        }));
        let mut transaction = idempotent.begin(&self.pool, "make an API key").await?;
        store::insert(&mut transaction, &minted.record, minted.hash).await?;
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        idempotent
            .commit(transaction, &minted, "make an API key")
            .await?;
        Ok(minted)
    }

    /// Changes a key that is not revoked.
    ///
    /// # Errors
    /// The refusal.
    pub async fn change(
        &self,
        caller: Grantor<'_>,
        origin: &Origin,
        id: ApiKeyId,
        wanted: KeyChange,
    ) -> Result<ApiKey, KeyRefusal> {
        let organization_id = caller.organization_id;
        let mut transaction = db::begin(&self.pool, "change an API key").await?;
        let key = store::find_for_update(&mut transaction, organization_id, id)
            .await?
            .ok_or(KeyRefusal::NotFound)?;
        require_may_manage(&key, caller)?;
        if let Some(permissions) = &wanted.permissions {
            require_permissions(permissions, caller.permissions)?;
        }
        if key.revoked_at.is_some() {
            return Err(KeyRefusal::Ended);
        }
        let key = store::update(&mut transaction, organization_id, id, &wanted)
            .await?
            .ok_or(KeyRefusal::NotFound)?;
        let change =
            AuditChange::new("api_key.updated", id).with(json!({ "fields": wanted.fields() }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction.commit().await.or_fault("change an API key")?;
        Ok(key)
    }

    /// Replaces the secret of a key. The secrets before it remain valid for at most the
    /// grace period.
    ///
    /// # Errors
    /// The refusal.
    pub async fn rotate(
        &self,
        caller: Grantor<'_>,
        origin: &Origin,
        Rotation { id, grace }: Rotation,
        idempotent: &Idempotent<'_, (ApiKey, Secret)>,
    ) -> Result<(ApiKey, Secret), Failed<KeyRefusal>> {
        let organization_id = caller.organization_id;
        self.require_may_rotate(caller, id).await?;
        let now = self.clock.now();
        let mut transaction = idempotent.begin(&self.pool, "rotate an API key").await?;
        let key = store::find_for_update(&mut transaction, organization_id, id)
            .await?
            .ok_or(KeyRefusal::NotFound)?;
        require_may_manage(&key, caller)?;
        if !key.is_valid(now) {
            return Err(KeyRefusal::Ended.into());
        }
        let (secret, hash, prefix) = generate_key(&self.ids, beginning(key.is_test));
        let grace_ends = now + TimeDelta::from_std(grace).unwrap_or_default();
        store::retire_secret(&mut transaction, organization_id, id, grace_ends, now).await?;
        let key = store::replace_secret(&mut transaction, organization_id, id, hash, &prefix)
            .await?
            .ok_or(KeyRefusal::NotFound)?;
        let change = AuditChange::new("api_key.rotated", id)
            .with(json!({ "gracePeriodSeconds": grace.as_secs() }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        let rotated = (key, secret);
        idempotent
            .commit(transaction, &rotated, "rotate an API key")
            .await?;
        Ok(rotated)
    }

    /// Refuses a caller that may not rotate the key. Runs before a stored answer is
    /// repeated, since it contains the secret.
    async fn require_may_rotate(
        &self,
        caller: Grantor<'_>,
        id: ApiKeyId,
    ) -> Result<(), KeyRefusal> {
        let doing = "rotate an API key";
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        let key = store::find(&mut connection, caller.organization_id, id)
            .await?
            .ok_or(KeyRefusal::NotFound)?;
        require_may_manage(&key, caller)
    }

    /// Revokes a key with all its secrets. Its record stays. Revoking a revoked key
    /// changes nothing.
    ///
    /// # Errors
    /// The refusal.
    pub async fn revoke(
        &self,
        caller: Grantor<'_>,
        origin: &Origin,
        id: ApiKeyId,
    ) -> Result<(), KeyRefusal> {
        let organization_id = caller.organization_id;
        let mut transaction = db::begin(&self.pool, "revoke an API key").await?;
        let key = store::find_for_update(&mut transaction, organization_id, id)
            .await?
            .ok_or(KeyRefusal::NotFound)?;
        require_may_manage(&key, caller)?;
        if key.revoked_at.is_some() {
            return Ok(());
        }
        store::revoke(&mut transaction, organization_id, id, self.clock.now()).await?;
        let change = AuditChange::new("api_key.revoked", id);
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction.commit().await.or_fault("revoke an API key")?;
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

/// Refuses a caller that could do more by changing the key.
fn require_may_manage(key: &ApiKey, caller: Grantor<'_>) -> Result<(), KeyRefusal> {
    if caller.is_test && !key.is_test {
        return Err(KeyRefusal::ByTestKey);
    }
    require_permissions(&key.permissions, caller.permissions)
}

fn require_permissions(wanted: &Permissions, held: &Permissions) -> Result<(), KeyRefusal> {
    match wanted.first_not_in(held) {
        Some(permission) => Err(KeyRefusal::Lacks(permission)),
        None => Ok(()),
    }
}
