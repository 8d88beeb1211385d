//! Registers an account's webhook URL at its provider, if the API allows it, and stores the
//! secrets that verify its calls. Repeating it creates no second webhook: the adapters look
//! for ours first, and a lock admits one request at a time.

use serde_json::json;
use tracing::warn;

use super::store::{self, AccountChange};
use super::{AccountRefusal, Accounts, ProviderAccount};
use crate::audit::{AuditChange, Origin};
use crate::db::{self, OrFault};
use crate::fault::Fault;
use crate::idempotency::single::Idempotent;
use crate::ids::{OrganizationId, ProviderAccountId};
use crate::provider::adapter;
use crate::provider::credentials::Credentials;
use crate::provider::event_secrets::EventSecrets;
use crate::provider::kind::ProviderType;
use crate::provider::management::{EventTarget, EventUrl, Registration};

/// The resource that the lock is for.
const LOCK_RESOURCE: &str = "event-webhook";

/// The result of registering an event webhook.
#[derive(Debug, Clone)]
pub struct EventWebhook {
    pub account: ProviderAccount,
    /// Whether the webhook is registered at the provider.
    pub is_registered: bool,
    /// The remaining steps for the customer.
    pub steps: Vec<String>,
}

/// An account that was just connected.
#[derive(Debug, Clone)]
pub struct Connected {
    pub account: ProviderAccount,
    /// The registration of the event webhook; `None` if the request did not ask for it.
    pub event_webhook: Option<FirstRegistration>,
}

/// The result of registering the event webhook while connecting an account.
#[derive(Debug, Clone)]
pub struct FirstRegistration {
    /// Whether the webhook is registered at the provider.
    pub is_registered: bool,
    pub reason: Option<String>,
    /// The remaining steps for the customer.
    pub steps: Vec<String>,
}

impl Connected {
    /// The result before the webhook is registered.
    pub(super) fn new(account: ProviderAccount, registers_events: bool) -> Self {
        Self {
            account,
            event_webhook: registers_events
                .then(|| FirstRegistration::later("the registration was interrupted")),
        }
    }
}

impl FirstRegistration {
    fn failed(reason: &str, steps: Vec<String>) -> Self {
        Self {
            is_registered: false,
            reason: Some(reason.to_owned()),
            steps,
        }
    }

    /// A failure after which the webhook can be registered later.
    fn later(reason: &str) -> Self {
        let again = "Call POST /v1/providers/:id/event-webhook to try again.";
        Self::failed(reason, vec![again.to_owned()])
    }
}

/// Why no webhook was registered.
#[derive(Debug)]
pub enum EventWebhookRefusal {
    /// The account does not exist.
    NotFound,
    /// Another request is registering it.
    Busy,
    Refused {
        provider_type: ProviderType,
        reason: String,
        /// The steps for the customer.
        steps: Vec<String>,
    },
    /// The provider gave no usable reply.
    Undecided {
        provider_type: ProviderType,
        reason: String,
    },
    Fault(Fault),
}

impl From<Fault> for EventWebhookRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<AccountRefusal> for EventWebhookRefusal {
    fn from(refusal: AccountRefusal) -> Self {
        match refusal {
            AccountRefusal::NotFound => Self::NotFound,
            AccountRefusal::InvalidCredentials {
                provider_type,
                reason,
            } => Self::Refused {
                provider_type,
                reason,
                steps: Vec::new(),
            },
            AccountRefusal::Undecided {
                provider_type,
                reason,
            } => Self::Undecided {
                provider_type,
                reason,
            },
            AccountRefusal::Fault(fault) => Self::Fault(fault),
        }
    }
}

impl Accounts {
    /// Registers an account's `webhookUrl` at its provider.
    ///
    /// # Errors
    /// Why it was not registered. Without a usable reply it may be registered: the same
    /// request again finds it.
    pub async fn register_event_webhook(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: ProviderAccountId,
    ) -> Result<EventWebhook, EventWebhookRefusal> {
        let (account, credentials) = self.open(organization_id, id).await?;
        let lock = self.lock(id, LOCK_RESOURCE.to_owned()).await?;
        let lock = lock.ok_or(EventWebhookRefusal::Busy)?;
        let registered = self.register(origin, account, &credentials).await;
        self.unlock(lock).await;
        registered
    }

    /// Registers the `webhookUrl` of an account that was just connected, and adds the
    /// result to `connected`.
    pub(super) async fn register_first(
        &self,
        origin: &Origin,
        connected: &mut Connected,
        idempotent: &Idempotent<'_, Connected>,
    ) {
        let (organization_id, id) = (connected.account.organization_id, connected.account.id);
        let (accounts, origin) = (self.clone(), origin.clone());
        // In a task of its own: the caller may be cancelled.
        let registering = tokio::spawn(async move {
            accounts
                .register_event_webhook(organization_id, &origin, id)
                .await
        });
        let registered = registering.await.unwrap_or_else(|panicked| {
            let fault = Fault::internal("register an event webhook", panicked);
            Err(EventWebhookRefusal::Fault(fault))
        });
        let first = match registered {
            Ok(EventWebhook {
                account,
                is_registered,
                steps,
            }) => {
                connected.account = account;
                FirstRegistration {
                    is_registered,
                    reason: None,
                    steps,
                }
            }
            Err(EventWebhookRefusal::Refused { reason, steps, .. }) => {
                FirstRegistration::failed(&reason, steps)
            }
            Err(EventWebhookRefusal::Undecided { reason, .. }) => FirstRegistration::later(&reason),
            Err(EventWebhookRefusal::NotFound) => {
                FirstRegistration::failed("the account was removed meanwhile", Vec::new())
            }
            Err(EventWebhookRefusal::Busy) => {
                FirstRegistration::later("another request is registering it")
            }
            Err(EventWebhookRefusal::Fault(fault)) => {
                warn!(cause = fault.chain(), "Failed to register an event webhook");
                FirstRegistration::later("Waypost could not finish it")
            }
        };
        connected.event_webhook = Some(first);
        if let Err(fault) = idempotent.amend(&self.pool, connected).await {
            warn!(
                cause = fault.chain(),
                "Failed to store the result of an event webhook; a repeated request returns the earlier one"
            );
        }
    }

    async fn register(
        &self,
        origin: &Origin,
        account: ProviderAccount,
        credentials: &Credentials,
    ) -> Result<EventWebhook, EventWebhookRefusal> {
        let provider_type = account.provider_type;
        let known = self.known_secrets(&account).await?;
        let url = self.webhook_url(&account);
        let target = EventTarget {
            url: EventUrl(url.clone()),
            secrets: known.clone(),
        };
        // Providers repeat the URL in refusals; its token must not be logged.
        let without_url = |reason: String| reason.replace(&url, "the webhookUrl");
        let step = adapter(provider_type).register_events(&self.access(credentials), target);
        let registration = self.run_conversation(step).await;
        match registration.unwrap_or_else(|reason| Registration::Undecided { reason }) {
            Registration::Registered(secrets) => {
                let account = self.store_secrets(origin, account, known, secrets).await?;
                Ok(EventWebhook {
                    account,
                    is_registered: true,
                    steps: Vec::new(),
                })
            }
            Registration::ByHand { steps } => Ok(EventWebhook {
                account,
                is_registered: false,
                steps,
            }),
            Registration::Refused { reason, steps } => Err(EventWebhookRefusal::Refused {
                provider_type,
                reason: without_url(reason),
                steps,
            }),
            Registration::Undecided { reason } => Err(EventWebhookRefusal::Undecided {
                provider_type,
                reason: without_url(reason),
            }),
        }
    }

    /// The stored event secrets of the account. Generated secrets are stored before the
    /// provider gets them, so that a crash does not lose them.
    async fn known_secrets(
        &self,
        account: &ProviderAccount,
    ) -> Result<Option<EventSecrets>, EventWebhookRefusal> {
        let (organization_id, id) = (account.organization_id, account.id);
        let doing = "read an account's event secrets";
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        let sealed = store::find_event_secrets(&mut connection, organization_id, id).await?;
        if let Some(sealed) = sealed {
            return Ok(Some(account.open_event_secrets(&self.sealer, &sealed)?));
        }
        let own = EventSecrets::initial(account.provider_type, &self.ids);
        if let Some(own) = &own {
            let change = AccountChange {
                event_secrets_sealed: Some(own.seal(&self.sealer, organization_id, id)),
                ..AccountChange::default()
            };
            let now = self.clock.now();
            store::update(&mut connection, organization_id, id, &change, now)
                .await?
                .ok_or(EventWebhookRefusal::NotFound)?;
        }
        Ok(own)
    }

    async fn store_secrets(
        &self,
        origin: &Origin,
        account: ProviderAccount,
        known: Option<EventSecrets>,
        secrets: EventSecrets,
    ) -> Result<ProviderAccount, EventWebhookRefusal> {
        let (organization_id, id) = (account.organization_id, account.id);
        let are_new = known.is_none_or(|known| !known.is_same(&secrets));
        let sealed = are_new.then(|| secrets.seal(&self.sealer, organization_id, id));
        let change = AccountChange {
            event_secrets_sealed: sealed,
            ..AccountChange::default()
        };
        let doing = "store an account's event secrets";
        let mut transaction = db::begin(&self.pool, doing).await?;
        let now = self.clock.now();
        let account = store::update(&mut transaction, organization_id, id, &change, now)
            .await?
            .ok_or(EventWebhookRefusal::NotFound)?;
        let change = AuditChange::new("provider.event_webhook_registered", id)
            .with(json!({ "secretsChanged": are_new }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction.commit().await.or_fault(doing)?;
        Ok(account)
    }
}
