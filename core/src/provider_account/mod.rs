//! Provider accounts: connecting, checking, changing and removing them.
//!
//! Credentials are checked with the provider before they are sealed and stored. "Valid"
//! means that the provider accepted them; if it gave no usable reply, nothing is changed.

pub mod domains;
pub mod event_webhook;
pub mod health;
mod lock;
pub mod pause;
pub mod store;
pub mod suppression_import;

use serde_json::json;

use crate::account_limiter::AccountLimits;
use crate::audit::{self, AuditChange, Origin};
use crate::clock::{Clock, Timestamp};
use crate::crypto::seal::{Sealed, Sealer};
use crate::db::{self, OrFault, PgConnection, PgPool};
use crate::fault::Fault;
use crate::idempotency::single::{Failed, Idempotent};
use crate::ids::{DomainId, Ids, OrganizationId, ProviderAccountId};
use crate::organization;
use crate::organization::limiter::TenantLimiter;
use crate::provider::call::CallStep;
use crate::provider::credentials::{Credentials, ReadCredentials};
use crate::provider::domain::{DomainList, DomainState, FoundDomain};
use crate::provider::event_secrets::{EventSecrets, EventToken};
use crate::provider::kind::ProviderType;
use crate::provider::outcome::CredentialCheck;
use crate::provider::region::AccountRegion;
use crate::provider::transport::Transport;
use crate::provider::{AccountAccess, ProviderHosts, adapter};
use crate::routing;
use crate::routing::snapshot_cache::SnapshotCache;
use crate::text::Name;
use event_webhook::Connected;
use pause::SendingPaused;
use store::{AccountChange, SealedSecrets};

/// A connected account at a provider.
#[derive(Debug, Clone)]
pub struct ProviderAccount {
    pub id: ProviderAccountId,
    pub organization_id: OrganizationId,
    pub provider_type: ProviderType,
    pub display_name: String,
    pub credentials: ReadCredentials,
    /// Whether messages may be sent through it.
    pub is_active: bool,
    /// Whether its credentials can list its domains.
    pub domains_visible: bool,
    /// The last part of the webhook URL for the provider's events.
    pub event_token: EventToken,
    /// When the first event was verified with the current secrets; `None` before that.
    pub events_verified_at: Option<Timestamp>,
    pub limits: AccountLimits,
    /// The reason why it cannot send; `None` if it can.
    pub paused: Option<SendingPaused>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl ProviderAccount {
    /// The region of the account, as its credentials say; `None` too if they cannot be
    /// decrypted.
    #[must_use]
    pub fn region(&self, sealer: &Sealer) -> Option<AccountRegion> {
        let (organization_id, id, kind) = (self.organization_id, self.id, self.provider_type);
        let opened = self.credentials.open(sealer, organization_id, id, kind);
        opened.ok()?.region()
    }

    /// Opens the account's sealed event secrets.
    ///
    /// # Errors
    /// A fault if they were sealed for another account, or their key is not configured.
    pub fn open_event_secrets(
        &self,
        sealer: &Sealer,
        sealed: &[u8],
    ) -> Result<EventSecrets, Fault> {
        EventSecrets::open(
            sealer,
            self.organization_id,
            self.id,
            self.provider_type,
            sealed,
        )
    }
}

/// A stored domain of an account.
#[derive(Debug, Clone)]
pub struct DomainRecord {
    pub id: DomainId,
    pub provider_account_id: ProviderAccountId,
    /// Its name, in ASCII.
    pub domain: String,
    /// Whether it may be used to send.
    pub state: DomainState,
    /// The DNS records to publish: a list of [`crate::provider::domain::DnsRecord`].
    pub dns_records: serde_json::Value,
    /// When it was stored.
    pub created_at: Timestamp,
}

/// Why an account was not connected, checked or changed.
#[derive(Debug)]
pub enum AccountRefusal {
    /// The account does not exist.
    NotFound,
    /// The provider refused the credentials.
    InvalidCredentials {
        provider_type: ProviderType,
        reason: String,
    },
    /// The provider gave no usable reply about the credentials.
    Undecided {
        provider_type: ProviderType,
        reason: String,
    },
    Fault(Fault),
}

impl From<Fault> for AccountRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<AccountRefusal> for Failed<AccountRefusal> {
    fn from(refusal: AccountRefusal) -> Self {
        Self::Refused(refusal)
    }
}

/// The fields of an account to change; a field that is `None` stays.
#[derive(Debug, Default)]
pub struct WantedChange {
    pub display_name: Option<Name>,
    pub is_active: Option<bool>,
    pub credentials: Option<Credentials>,
    /// New secrets that verify its provider's events.
    pub event_secrets: Option<EventSecrets>,
    /// A new limit on calls per second, or `Some(None)` for none.
    pub max_rate_per_second: Option<Option<u32>>,
    /// A new limit on calls in flight, or `Some(None)` for none.
    pub max_concurrency: Option<Option<u32>>,
}

/// An account to connect.
#[derive(Debug)]
pub struct NewAccount {
    pub display_name: Name,
    pub credentials: Credentials,
    /// The secrets that verify its provider's events, if already known.
    pub event_secrets: Option<EventSecrets>,
    /// Whether to register the webhook for the provider's events.
    pub registers_events: bool,
    pub limits: AccountLimits,
}

impl WantedChange {
    /// The names of the fields to change, for the audit log.
    fn fields(&self) -> Vec<&'static str> {
        [
            self.display_name.is_some().then_some("displayName"),
            self.is_active.is_some().then_some("isActive"),
            self.credentials.is_some().then_some("credentials"),
            self.event_secrets.is_some().then_some("eventSecrets"),
            self.max_rate_per_second
                .is_some()
                .then_some("maxRatePerSecond"),
            self.max_concurrency.is_some().then_some("maxConcurrency"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// The provider accounts of all organizations. Cheap to clone.
#[derive(Clone)]
pub struct Accounts {
    pub pool: PgPool,
    pub sealer: Sealer,
    pub transport: Transport,
    /// Limits the credential checks in flight: an account may name a slow server.
    pub check_limiter: TenantLimiter,
    pub endpoints: ProviderHosts,
    /// The public base URL of the API: see [`crate::config::LinkSettings::public_url`].
    pub public_url: String,
    pub snapshots: SnapshotCache,
    pub clock: Clock,
    pub ids: Ids,
}

impl Accounts {
    /// Checks credentials with the provider, stores the account and its domains, then
    /// registers the event webhook if requested. The account stays connected even if that
    /// fails.
    ///
    /// # Errors
    /// Why it was not connected; nothing is stored then.
    pub async fn connect(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        new: NewAccount,
        idempotent: &Idempotent<'_, Connected>,
    ) -> Result<Connected, Failed<AccountRefusal>> {
        // A repeated request returns its stored result without a call to the provider.
        idempotent.look_up(&self.pool).await?;
        let credentials = &new.credentials;
        let domains = self
            .check_new_credentials(organization_id, credentials)
            .await?;
        let now = self.clock.now();
        let id = self.ids.next_at(now);
        let sealed_credentials = self.seal(organization_id, id, credentials);
        let account = ProviderAccount {
            id,
            organization_id,
            provider_type: credentials.provider_type(),
            display_name: new.display_name.into_string(),
            credentials: ReadCredentials::new(sealed_credentials.clone()),
            is_active: true,
            domains_visible: visibility(&domains).unwrap_or(false),
            event_token: EventToken::generate(&self.ids),
            events_verified_at: None,
            limits: new.limits,
            paused: None,
            created_at: now,
            updated_at: now,
        };
        let sealed = SealedSecrets {
            credentials: sealed_credentials,
            event_secrets: new
                .event_secrets
                .or_else(|| EventSecrets::initial(account.provider_type, &self.ids))
                .map(|secrets| secrets.seal(&self.sealer, organization_id, account.id)),
        };
        let mut transaction = idempotent.begin(&self.pool, "connect an account").await?;
        store::insert(&mut transaction, &account, &sealed).await?;
        self.record_domains(&mut transaction, &account, &domains)
            .await?;
        let change = AuditChange::new("provider.created", account.id)
            .with(json!({ "providerType": account.provider_type }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        let mut connected = Connected::new(account, new.registers_events);
        idempotent
            .commit(transaction, &connected, "connect an account")
            .await?;
        self.snapshots.forget(organization_id).await;
        if new.registers_events {
            self.register_first(origin, &mut connected, idempotent)
                .await;
        }
        Ok(connected)
    }

    /// Checks an account's credentials with the provider, sets `isActive` to the result and
    /// updates the domains.
    ///
    /// # Errors
    /// Why there is no result; the account is unchanged then.
    pub async fn validate(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: ProviderAccountId,
    ) -> Result<(bool, ProviderType), AccountRefusal> {
        let (account, credentials) = self.open(organization_id, id).await?;
        let provider_type = account.provider_type;
        let domains = match self.check_credentials(organization_id, &credentials).await {
            Ok(domains) => Some(domains),
            Err(AccountRefusal::InvalidCredentials { .. }) => None,
            Err(refusal) => return Err(refusal),
        };
        let is_valid = domains.is_some();
        let change = AccountChange {
            is_active: Some(is_valid),
            domains_visible: domains.as_ref().and_then(visibility),
            is_repaired: is_valid,
            ..AccountChange::default()
        };
        let mut transaction = db::begin(&self.pool, "validate an account").await?;
        let now = self.clock.now();
        store::update(&mut transaction, organization_id, id, &change, now)
            .await?
            .ok_or(AccountRefusal::NotFound)?;
        pause::store::record_credentials(&mut transaction, id, is_valid, now).await?;
        if let Some(domains) = &domains {
            self.record_domains(&mut transaction, &account, domains)
                .await?;
        }
        let change = AuditChange::new("provider.validated", id).with(json!({ "valid": is_valid }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction.commit().await.or_fault("validate an account")?;
        self.snapshots.forget(organization_id).await;
        if is_valid {
            self.wake_mail(account);
        }
        Ok((is_valid, provider_type))
    }

    /// Changes an account. New credentials are checked first, as when connecting.
    ///
    /// # Errors
    /// Why it was not changed.
    pub async fn change(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: ProviderAccountId,
        wanted: WantedChange,
    ) -> Result<ProviderAccount, AccountRefusal> {
        let fields = wanted.fields();
        let mut domains = None;
        let mut change = AccountChange {
            display_name: wanted.display_name.map(Name::into_string),
            is_active: wanted.is_active,
            event_secrets_sealed: wanted
                .event_secrets
                .map(|secrets| secrets.seal(&self.sealer, organization_id, id)),
            max_rate_per_second: wanted.max_rate_per_second,
            max_concurrency: wanted.max_concurrency,
            is_repaired: wanted.credentials.is_some() || wanted.is_active == Some(true),
            ..AccountChange::default()
        };
        let is_repaired = change.is_repaired;
        if let Some(credentials) = &wanted.credentials {
            let found = self
                .check_new_credentials(organization_id, credentials)
                .await?;
            change.credentials_sealed = Some(self.seal(organization_id, id, credentials));
            change.domains_visible = visibility(&found);
            domains = Some(found);
        }
        let now = self.clock.now();
        let mut transaction = db::begin(&self.pool, "change an account").await?;
        let account = store::update(&mut transaction, organization_id, id, &change, now)
            .await?
            .ok_or(AccountRefusal::NotFound)?;
        if is_repaired {
            pause::store::record_credentials(&mut transaction, id, true, now).await?;
        }
        if let Some(domains) = &domains {
            self.record_domains(&mut transaction, &account, domains)
                .await?;
        }
        let change = AuditChange::new("provider.updated", id).with(json!({ "fields": fields }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction.commit().await.or_fault("change an account")?;
        self.snapshots.forget(organization_id).await;
        if is_repaired {
            self.wake_mail(account.clone());
        }
        Ok(account)
    }

    /// Removes an account, from the routing rules too. Its waiting messages are sent
    /// through another account.
    ///
    /// # Errors
    /// Why it was not removed.
    pub async fn remove(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: ProviderAccountId,
    ) -> Result<(), AccountRefusal> {
        let mut transaction = db::begin(&self.pool, "remove an account").await?;
        // A change of a rule locks rule and accounts in the other order.
        organization::store::lock(&mut transaction, organization_id).await?;
        if !store::delete(&mut transaction, organization_id, id).await? {
            return Err(AccountRefusal::NotFound);
        }
        let now = self.clock.now();
        let switched_off =
            routing::store::remove_account(&mut transaction, organization_id, id, now).await?;
        let change = AuditChange::new("provider.deleted", id)
            .with(json!({ "routingRulesSwitchedOff": switched_off }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction.commit().await.or_fault("remove an account")?;
        self.snapshots.forget(organization_id).await;
        Ok(())
    }

    /// The URL for the events of an account's provider: its `webhookUrl`.
    #[must_use]
    pub fn webhook_url(&self, account: &ProviderAccount) -> String {
        let (public_url, token) = (&self.public_url, account.event_token.as_str());
        format!("{public_url}/v1/provider-events/{token}")
    }

    /// The account with this event token, and the secrets that verify its calls; `None` for
    /// the secrets if none are stored yet, and then every call is refused.
    ///
    /// # Errors
    /// A fault if Postgres is unreachable or the secrets do not open.
    pub async fn find_by_event_token(
        &self,
        token: &str,
    ) -> Result<Option<(ProviderAccount, Option<EventSecrets>)>, Fault> {
        let doing = "find an account by its token";
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        let found = store::find_by_event_token(&mut connection, token).await?;
        let Some((account, sealed)) = found else {
            return Ok(None);
        };
        let secrets = sealed
            .map(|sealed| account.open_event_secrets(&self.sealer, &sealed))
            .transpose()?;
        Ok(Some((account, secrets)))
    }

    /// An account and its opened credentials.
    ///
    /// # Errors
    /// The account does not exist, or a fault.
    pub async fn open(
        &self,
        organization_id: OrganizationId,
        id: ProviderAccountId,
    ) -> Result<(ProviderAccount, Credentials), AccountRefusal> {
        let mut connection = self.pool.acquire().await.or_fault("open an account")?;
        let account = store::find(&mut connection, organization_id, id)
            .await?
            .ok_or(AccountRefusal::NotFound)?;
        let sealed = store::find_credentials(&mut connection, organization_id, id)
            .await?
            .ok_or(AccountRefusal::NotFound)?;
        let kind = account.provider_type;
        let credentials = Credentials::open(&self.sealer, organization_id, id, kind, &sealed)?;
        Ok((account, credentials))
    }

    /// Runs a conversation with a provider to its end, within [`lock::CONVERSATION_MAX`]. The
    /// error is the reason why there is no result.
    async fn run_conversation<T>(&self, step: CallStep<T>) -> Result<T, String> {
        let run = tokio::time::timeout(lock::CONVERSATION_MAX, self.transport.run(step));
        match run.await {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(elapsed) => Err(elapsed.to_string()),
        }
    }

    /// Checks the credentials with the provider, and lists their domains.
    async fn check_credentials(
        &self,
        organization_id: OrganizationId,
        credentials: &Credentials,
    ) -> Result<DomainList, AccountRefusal> {
        let doing = "check credentials with the provider";
        let limiter = &self.check_limiter;
        let _permit = limiter.acquire_timeout(organization_id, doing).await?;
        self.require_valid(credentials).await?;
        let access = self.access(credentials);
        let adapter = adapter(credentials.provider_type());
        Ok(self.transport.domains(adapter, &access).await)
    }

    /// The same for new credentials: the domain list must be decided too, since nothing
    /// would read it again.
    async fn check_new_credentials(
        &self,
        organization_id: OrganizationId,
        credentials: &Credentials,
    ) -> Result<DomainList, AccountRefusal> {
        match self.check_credentials(organization_id, credentials).await? {
            DomainList::Undecided { reason } => Err(AccountRefusal::Undecided {
                provider_type: credentials.provider_type(),
                reason,
            }),
            known @ (DomainList::Visible(_) | DomainList::NotVisible { .. }) => Ok(known),
        }
    }

    async fn require_valid(&self, credentials: &Credentials) -> Result<(), AccountRefusal> {
        let provider_type = credentials.provider_type();
        let access = self.access(credentials);
        match self.transport.check(adapter(provider_type), &access).await {
            CredentialCheck::Valid => Ok(()),
            CredentialCheck::Invalid { reason } => Err(AccountRefusal::InvalidCredentials {
                provider_type,
                reason,
            }),
            CredentialCheck::Undecided { reason } => Err(AccountRefusal::Undecided {
                provider_type,
                reason,
            }),
        }
    }

    /// Stores the domains that a provider listed. Without a list the stored ones stay.
    async fn record_domains(
        &self,
        connection: &mut PgConnection,
        account: &ProviderAccount,
        domains: &DomainList,
    ) -> Result<(), Fault> {
        let now = self.clock.now();
        let found: &[FoundDomain] = match domains {
            DomainList::Visible(found) => found,
            DomainList::NotVisible { .. } => {
                store::hide_domains(connection, account).await?;
                return Ok(());
            }
            DomainList::Undecided { .. } => return Ok(()),
        };
        store::replace_domains(connection, account, found, &self.ids, now).await
    }

    pub(super) async fn record(
        &self,
        connection: &mut PgConnection,
        organization_id: OrganizationId,
        origin: &Origin,
        change: &AuditChange,
    ) -> Result<(), Fault> {
        audit::store::insert(
            connection,
            organization_id,
            origin,
            change,
            &self.ids,
            self.clock.now(),
        )
        .await
    }

    fn seal(
        &self,
        organization_id: OrganizationId,
        id: ProviderAccountId,
        credentials: &Credentials,
    ) -> Vec<u8> {
        self.sealer.seal(
            organization_id,
            Sealed::Credentials,
            id.0,
            &credentials.to_plaintext(),
        )
    }

    pub(crate) fn access<'a>(&'a self, credentials: &'a Credentials) -> AccountAccess<'a> {
        AccountAccess {
            credentials,
            endpoints: &self.endpoints,
            now: self.clock.now(),
        }
    }
}

/// Whether the provider's list is complete, so that a domain missing from it is unverified;
/// `None` if the provider gave no usable reply.
fn visibility(domains: &DomainList) -> Option<bool> {
    match domains {
        DomainList::Visible(_) => Some(true),
        DomainList::NotVisible { .. } => Some(false),
        DomainList::Undecided { .. } => None,
    }
}
