//! What callers do with keys: making, changing, rotating and revoking them. A key
//! cannot hand on a permission that it lacks, and a key that may do more than itself
//! it neither changes, rotates nor revokes: what protects a key, such as its networks
//! and its end, is changed by those alone who may do all that it may.

use std::time::Duration;

use chrono::TimeDelta;
use serde_json::json;

use super::{ApiKey, KeyDraft, MintedKey, Permission, Permissions, generate_key, mint, store};
use crate::audit::{self, AuditChange, Origin};
use crate::clock::{Clock, Timestamp};
use crate::db::{self, OrFault, PgConnection, PgPool};
use crate::fault::Fault;
use crate::idempotency::single::{Failed, Idempotent};
use crate::ids::{ApiKeyId, Ids, OrganizationId};
use crate::network::Networks;
use crate::secret::Secret;
use crate::text::Name;

/// Networks of one key at the most.
pub const ALLOWED_IPS_MAX: usize = 100;
/// The longest time that a rotated key's old secret may live on.
pub const GRACE_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);
/// How long it does where nothing is said.
pub const GRACE_DEFAULT: Duration = Duration::from_secs(24 * 3_600);

/// Why a key was not made or changed.
#[derive(Debug)]
pub enum KeyRefusal {
    /// There is no such key.
    NotFound,
    /// The caller's own key lacks a permission that the key has or would have.
    Lacks(Permission),
    /// The key was revoked or has expired.
    Ended,
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

/// What of a key is to change; what is absent stays.
#[derive(Debug, Default)]
pub struct KeyChange {
    pub name: Option<Name>,
    pub permissions: Option<Permissions>,
    pub allowed_ips: Option<Networks>,
    pub expires_at: Option<Option<Timestamp>>,
}

impl KeyChange {
    /// The names of the fields that are to change, for the audit log.
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

/// What a caller wants of a rotation.
#[derive(Debug, Clone, Copy)]
pub struct Rotation {
    pub id: ApiKeyId,
    /// How long its secrets up to now live on, at the most.
    pub grace: Duration,
}

/// Works on the keys of organizations. Cheap to clone.
#[derive(Clone)]
pub struct ApiKeys {
    pub pool: PgPool,
    pub clock: Clock,
    pub ids: Ids,
}

impl ApiKeys {
    /// Makes a key on behalf of another one.
    ///
    /// # Errors
    /// Why it was not made.
    pub async fn create(
        &self,
        maker: &ApiKey,
        origin: &Origin,
        draft: KeyDraft,
        once: &Idempotent<'_, MintedKey>,
    ) -> Result<MintedKey, Failed<KeyRefusal>> {
        // Before a repeated answer too, since it shows the key.
        refuse_beyond(&draft.permissions, &maker.permissions)?;
        let organization_id = maker.organization_id;
        let now = self.clock.now();
        let minted = mint(organization_id, draft, Some(maker.id), &self.ids, now);
        let change = AuditChange::new("api_key.created", minted.record.id).with(json!({
            "name": minted.record.name,
            "permissions": minted.record.permissions.names(),
        }));
        let mut transaction = once.begin(&self.pool, "make an API key").await?;
        store::insert(&mut transaction, &minted.record, minted.hash).await?;
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        once.commit(transaction, &minted, "make an API key").await?;
        Ok(minted)
    }

    /// Changes a key that was not revoked.
    ///
    /// # Errors
    /// Why it was not changed.
    pub async fn change(
        &self,
        changer: &ApiKey,
        origin: &Origin,
        id: ApiKeyId,
        wanted: KeyChange,
    ) -> Result<ApiKey, KeyRefusal> {
        let organization_id = changer.organization_id;
        let mut transaction = db::begin(&self.pool, "change an API key").await?;
        let key = store::find_for_update(&mut transaction, organization_id, id)
            .await?
            .ok_or(KeyRefusal::NotFound)?;
        refuse_beyond(&key.permissions, &changer.permissions)?;
        if let Some(permissions) = &wanted.permissions {
            refuse_beyond(permissions, &changer.permissions)?;
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

    /// Gives a key a new secret. Those before it open the key for the grace longer,
    /// at the most.
    ///
    /// # Errors
    /// Why it was not rotated.
    pub async fn rotate(
        &self,
        changer: &ApiKey,
        origin: &Origin,
        Rotation { id, grace }: Rotation,
        once: &Idempotent<'_, (ApiKey, Secret)>,
    ) -> Result<(ApiKey, Secret), Failed<KeyRefusal>> {
        let organization_id = changer.organization_id;
        self.refuse_secret_of(changer, id).await?;
        let now = self.clock.now();
        let mut transaction = once.begin(&self.pool, "rotate an API key").await?;
        let key = store::find_for_update(&mut transaction, organization_id, id)
            .await?
            .ok_or(KeyRefusal::NotFound)?;
        refuse_beyond(&key.permissions, &changer.permissions)?;
        if !key.is_valid(now) {
            return Err(KeyRefusal::Ended.into());
        }
        let (secret, hash, prefix) = generate_key(&self.ids);
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
        once.commit(transaction, &rotated, "rotate an API key")
            .await?;
        Ok(rotated)
    }

    /// Turns away who may not have the secrets of a key, a repeated one included.
    async fn refuse_secret_of(&self, changer: &ApiKey, id: ApiKeyId) -> Result<(), KeyRefusal> {
        let doing = "rotate an API key";
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        let key = store::find(&mut connection, changer.organization_id, id)
            .await?
            .ok_or(KeyRefusal::NotFound)?;
        refuse_beyond(&key.permissions, &changer.permissions)
    }

    /// Revokes a key with all its secrets. Its record stays. Revoking it again
    /// changes nothing.
    ///
    /// # Errors
    /// Why it was not revoked.
    pub async fn revoke(
        &self,
        changer: &ApiKey,
        origin: &Origin,
        id: ApiKeyId,
    ) -> Result<(), KeyRefusal> {
        let organization_id = changer.organization_id;
        let mut transaction = db::begin(&self.pool, "revoke an API key").await?;
        let key = store::find_for_update(&mut transaction, organization_id, id)
            .await?
            .ok_or(KeyRefusal::NotFound)?;
        refuse_beyond(&key.permissions, &changer.permissions)?;
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

fn refuse_beyond(wanted: &Permissions, held: &Permissions) -> Result<(), KeyRefusal> {
    match wanted.first_beyond(held) {
        Some(permission) => Err(KeyRefusal::Lacks(permission)),
        None => Ok(()),
    }
}
