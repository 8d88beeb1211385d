//! Telling a provider to tell us of events: our URL is registered where its API
//! allows, and what verifies its calls is stored. Done twice it makes no second
//! webhook: the adapters look for ours first, and one request is at it at a time.

use serde_json::json;
use tracing::warn;

use super::claim;
use super::store::{self, AccountChange};
use super::{AccountRefusal, Accounts, ProviderAccount};
use crate::audit::{AuditChange, Origin};
use crate::db::{self, OrFault};
use crate::fault::Fault;
use crate::idempotency::single::Idempotent;
use crate::ids::{OrganizationId, ProviderAccountId};
use crate::provider::adapter;
use crate::provider::call::CallStep;
use crate::provider::credentials::Credentials;
use crate::provider::event_secrets::EventSecrets;
use crate::provider::kind::ProviderType;
use crate::provider::management::{EventTarget, EventUrl, Registration};

/// What is being changed at the provider.
const SUBJECT: &str = "event-webhook";

/// How an account stands afterwards.
#[derive(Debug, Clone)]
pub struct EventWebhook {
    pub account: ProviderAccount,
    /// Whether the provider was told.
    pub is_registered: bool,
    /// What is left to do by hand, step by step.
    pub steps: Vec<String>,
}

/// An account that was just connected.
#[derive(Debug, Clone)]
pub struct Connected {
    pub account: ProviderAccount,
    /// Whether its provider was told where to tell of events; nothing where that was not
    /// wanted.
    pub event_webhook: Option<FirstRegistration>,
}

/// What came of registering the event webhook when the account was connected.
#[derive(Debug, Clone)]
pub struct FirstRegistration {
    /// Whether the provider was told.
    pub is_registered: bool,
    pub reason: Option<String>,
    /// What is left to do by hand, step by step.
    pub steps: Vec<String>,
}

impl Connected {
    /// Before the provider is told.
    pub(super) fn new(account: ProviderAccount, registers_events: bool) -> Self {
        Self {
            account,
            event_webhook: registers_events
                .then(|| FirstRegistration::later("it is not known whether the provider was told")),
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

    /// Of an account that can be registered later.
    fn later(reason: &str) -> Self {
        let again = "Call POST /v1/providers/:id/event-webhook to try again.";
        Self::failed(reason, vec![again.to_owned()])
    }
}

/// Why nothing was registered.
#[derive(Debug)]
pub enum EventWebhookRefusal {
    /// There is no such account.
    NotFound,
    /// Another request is at it.
    Busy,
    Refused {
        provider_type: ProviderType,
        reason: String,
        /// What to do about it, or by hand.
        steps: Vec<String>,
    },
    /// The provider gave no answer.
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
    /// Why it was not registered. Where the provider gave no answer it may be: the
    /// same request again finds it.
    pub async fn register_event_webhook(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: ProviderAccountId,
    ) -> Result<EventWebhook, EventWebhookRefusal> {
        let (account, credentials) = self.open(organization_id, id).await?;
        let turn = self.claim(id, SUBJECT.to_owned()).await?;
        let turn = turn.ok_or(EventWebhookRefusal::Busy)?;
        let registered = self.register(origin, account, &credentials).await;
        self.give_up(turn).await;
        registered
    }

    /// Registers the `webhookUrl` of an account that was just connected, and adds to the
    /// answer what came of it.
    pub(super) async fn register_first(
        &self,
        origin: &Origin,
        connected: &mut Connected,
        once: &Idempotent<'_, Connected>,
    ) {
        let (organization_id, id) = (connected.account.organization_id, connected.account.id);
        let (accounts, origin) = (self.clone(), origin.clone());
        // In a task of its own: whoever asked may have gone by now.
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
                warn!(cause = fault.chain(), "An event webhook is not registered");
                FirstRegistration::later("Waypost could not finish it")
            }
        };
        connected.event_webhook = Some(first);
        if let Err(fault) = once.amend(&self.pool, connected).await {
            warn!(
                cause = fault.chain(),
                "A repeated request is not told of the event webhook"
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
        // Providers repeat the URL when they refuse it; its token is not for logs.
        let without_url = |reason: String| reason.replace(&url, "the webhookUrl");
        let step = adapter(provider_type).register_events(&self.access(credentials), target);
        match self.hear_registration(step).await {
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

    /// What is stored for the account. Those of our own making are stored before the
    /// provider gets to know them, so that they are not lost when we die.
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

    /// Holds a conversation to its end, within bounds.
    async fn hear_registration(&self, step: CallStep<Registration>) -> Registration {
        let run = tokio::time::timeout(claim::WORK_MAX, self.transport.run(step));
        match run.await {
            Ok(Ok(registration)) => registration,
            Ok(Err(error)) => Registration::Undecided {
                reason: error.to_string(),
            },
            Err(elapsed) => Registration::Undecided {
                reason: elapsed.to_string(),
            },
        }
    }
}
