//! Provider accounts: connecting, checking, changing and removing them.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::{ApiResponse, Object, OpenApi};
use uuid::Uuid;
use waypost_core::account_limiter::{AccountLimits, CONCURRENCY_MAX, RATE_PER_SECOND_MAX};
use waypost_core::db::OrFault;
use waypost_core::idempotency::single::Idempotent;
use waypost_core::ids::ProviderAccountId;
use waypost_core::issue::Issue;
use waypost_core::provider::credentials::Credentials;
use waypost_core::provider::event_secrets::EventSecrets;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider_account::event_webhook::{Connected, FirstRegistration};
use waypost_core::provider_account::store;
use waypost_core::provider_account::{Accounts, NewAccount, ProviderAccount, WantedChange};
use waypost_core::text::Name;

use crate::context::Context;
use crate::error::Failure;
use crate::fields::Whole;
use crate::fields::provider::{CredentialsObject, EventSecretsObject};
use crate::middleware::auth::{Caller, Requires};
use crate::middleware::permission;
use crate::request::body::{JsonBody, OTHER_BYTES_MAX};
use crate::request::idempotency_key::{KeyHeader, created};
use crate::request::path_id::PathId;
use crate::response::{Data, Nullable, Success, Time};
use crate::v1::Section;
use crate::validate::{Clearable, Settable, Validated};

pub(crate) struct ProvidersApi {
    pub(crate) context: Arc<Context>,
}

/// A connected account at a provider. Its credentials are never returned.
#[derive(Debug, Object)]
#[oai(rename = "ProviderAccount", rename_all = "camelCase")]
pub(crate) struct ProviderAccountView {
    id: Uuid,
    organization_id: Uuid,
    /// The provider.
    provider_type: String,
    display_name: String,
    /// Where the provider's system is that takes the mail: `eu` or `us`; null if it is
    /// elsewhere, or not known (SMTP).
    region: Nullable<String>,
    /// Whether the account sends messages.
    is_active: bool,
    /// The URL that the provider posts events to. Keep it secret.
    webhook_url: String,
    /// Whether an event from the provider was verified since the event secrets were last
    /// set.
    events_verified: bool,
    /// The most calls to the provider per second, over all workers; null means no limit.
    max_rate_per_second: Nullable<u32>,
    /// The most concurrent calls to the provider, over all workers; null means no limit.
    max_concurrency: Nullable<u32>,
    /// Why the account cannot send, as reported by the provider: revoked credentials, a
    /// suspension, a quota. Its messages wait or are sent by the fallbacks. New
    /// credentials, a successful check or `isActive: true` let the account try again at
    /// once. Null again after that, or once the provider accepts a message.
    sending_paused_reason: Nullable<String>,
    /// Since when the account cannot send; null if it can.
    sending_paused_since: Nullable<Time>,
    created_at: Time,
    updated_at: Time,
}

impl ProviderAccountView {
    pub(crate) fn of(accounts: &Accounts, account: ProviderAccount) -> Self {
        let paused = account.paused.clone();
        let region = account.region(&accounts.sealer);
        let (reason, since) = paused.map(|paused| (paused.reason, paused.since)).unzip();
        Self {
            webhook_url: accounts.webhook_url(&account),
            events_verified: account.events_verified_at.is_some(),
            id: account.id.0,
            organization_id: account.organization_id.0,
            provider_type: account.provider_type.to_string(),
            region: Nullable(region.map(|region| region.as_str().to_owned())),
            display_name: account.display_name,
            is_active: account.is_active,
            max_rate_per_second: Nullable(account.limits.max_rate_per_second),
            max_concurrency: Nullable(account.limits.max_concurrency),
            sending_paused_reason: Nullable(reason),
            sending_paused_since: Nullable(since.map(Time)),
            created_at: Time(account.created_at),
            updated_at: Time(account.updated_at),
        }
    }
}

/// An account to connect.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct ConnectProviderRequest {
    provider_type: Validated<ProviderType>,
    /// The display name.
    display_name: Validated<Name>,
    /// The credentials. The required fields depend on `providerType`: `apiKey` for
    /// SENDGRID; `serverToken` for POSTMARK; `apiKey` and `domain` for MAILGUN;
    /// `accessKeyId`, `secretAccessKey` and `region` for SES; `host` for SMTP.
    credentials: Validated<CredentialsObject>,
    /// The secrets that verify the provider's events: `publicKey` for SENDGRID,
    /// `signingKey` for MAILGUN, `topicArn` for SES. POSTMARK takes none. If the
    /// provider's API offers the secret, registering the event webhook reads it.
    event_secrets: Validated<Option<EventSecretsObject>>,
    /// Whether to register the account's `webhookUrl` with the provider. The default is
    /// true, or false if `eventSecrets` is given: you then set up the webhook at the
    /// provider.
    register_event_webhook: Validated<Option<bool>>,
    /// The most calls to the provider per second, over all workers. The default is no
    /// limit.
    max_rate_per_second: Validated<Option<RatePerSecond>>,
    /// The most concurrent calls to the provider, over all workers. The default is no
    /// limit.
    max_concurrency: Validated<Option<Concurrency>>,
}

type RatePerSecond = Whole<1, RATE_PER_SECOND_MAX>;
type Concurrency = Whole<1, CONCURRENCY_MAX>;

/// The changes to an account. Absent fields keep their values.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct UpdateProviderRequest {
    /// The display name.
    display_name: Validated<Settable<Name>>,
    /// Whether the account sends messages.
    is_active: Validated<Settable<bool>>,
    /// New credentials. They are checked with the provider before they replace the old
    /// ones.
    credentials: Validated<Settable<CredentialsObject>>,
    /// New secrets that verify the provider's events. `eventsVerified` is false until an
    /// event is verified with them.
    event_secrets: Validated<Settable<EventSecretsObject>>,
    /// The most calls to the provider per second, over all workers; null removes the
    /// limit. Workers apply the change within a few seconds.
    max_rate_per_second: Validated<Clearable<RatePerSecond>>,
    /// The most concurrent calls to the provider, over all workers; null removes the
    /// limit. Workers apply the change within a few seconds.
    max_concurrency: Validated<Clearable<Concurrency>>,
}

/// The result of checking an account's credentials.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct ValidationResult {
    /// Whether the provider accepted the credentials. `isActive` now has the same value.
    valid: bool,
    provider_type: String,
}

/// A newly connected account.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct ConnectedProvider {
    #[oai(flatten)]
    account: ProviderAccountView,
    /// The registration of the event webhook; null if it was not requested.
    event_webhook: Nullable<FirstEventWebhook>,
}

/// The result of registering the event webhook.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct FirstEventWebhook {
    /// Whether the webhook is registered with the provider. If not, the account sends,
    /// but its messages stay SENT until the webhook is set up.
    registered: bool,
    /// Why the webhook could not be registered; null if it is registered.
    reason: Nullable<String>,
    /// The steps to take by hand, in this order.
    steps: Vec<String>,
}

impl From<FirstRegistration> for FirstEventWebhook {
    fn from(first: FirstRegistration) -> Self {
        Self {
            registered: first.is_registered,
            reason: Nullable(first.reason),
            steps: first.steps,
        }
    }
}

#[derive(ApiResponse)]
enum ProviderConnected {
    /// The account is connected.
    #[oai(status = 201)]
    Created(Json<Data<ConnectedProvider>>),
}

type ProviderAnswer = Result<Json<Data<ProviderAccountView>>, Failure>;

#[OpenApi(tag = "Section::Providers")]
impl ProvidersApi {
    /// List provider accounts
    ///
    /// Requires the permission `PROVIDERS_READ`. The oldest account comes first. Without
    /// a matching routing rule, the first active account sends.
    #[oai(
        path = "/v1/providers",
        method = "get",
        operation_id = "list_providers"
    )]
    async fn list_providers(
        &self,
        caller: Requires<permission::ProvidersRead>,
    ) -> Result<Json<Data<Vec<ProviderAccountView>>>, Failure> {
        let caller = caller.authorize()?;
        let mut connection = self
            .context
            .pool
            .acquire()
            .await
            .or_fault("list provider accounts")?;
        let accounts = store::list(&mut connection, caller.organization_id()).await?;
        let data = accounts
            .into_iter()
            .map(|account| self.view(account))
            .collect();
        Ok(Json(Data { data }))
    }

    /// Connect a provider account
    ///
    /// Requires the permission `PROVIDERS_WRITE`. The credentials are checked with the
    /// provider, encrypted and stored, and the domains of the account are imported. For
    /// SENDGRID, POSTMARK and MAILGUN the event webhook is registered with the provider;
    /// `eventWebhook` has the result.
    #[oai(
        path = "/v1/providers",
        method = "post",
        operation_id = "create_provider"
    )]
    async fn create_provider(
        &self,
        caller: Requires<permission::ProvidersWrite>,
        /// Makes it safe to repeat the request.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<ConnectProviderRequest, OTHER_BYTES_MAX>,
    ) -> Result<ProviderConnected, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let claim = key.claim(&self.context, &caller, &body, &mut issues);
        let request = body.take(&mut issues)?;
        let provider_type = request.provider_type.take("providerType", &mut issues);
        let display_name = request.display_name.take("displayName", &mut issues);
        let credentials = request.credentials.take("credentials", &mut issues);
        let event_secrets = request.event_secrets.take("eventSecrets", &mut issues);
        let registers = request
            .register_event_webhook
            .take("registerEventWebhook", &mut issues);
        let rate = request
            .max_rate_per_second
            .take("maxRatePerSecond", &mut issues);
        let concurrency = request.max_concurrency.take("maxConcurrency", &mut issues);
        let credentials = match (provider_type, credentials) {
            (Some(kind), Some(given)) => read_credentials(kind, &given, &mut issues),
            _ => None,
        };
        let event_secrets = match (provider_type, event_secrets.flatten()) {
            (Some(kind), Some(given)) => read_event_secrets(kind, &given, &mut issues),
            _ => None,
        };
        let mismatch = event_secrets
            .as_ref()
            .zip(credentials.as_ref())
            .and_then(|(secrets, credentials)| secrets.mismatch(credentials));
        issues.extend(mismatch);
        let (Some(display_name), Some(credentials), Some(claim), true) =
            (display_name, credentials, claim, issues.is_empty())
        else {
            return Err(Failure::Invalid(issues));
        };
        let idempotent = Idempotent::new(claim, &self.context.sealer, |connected: &Connected| {
            let data = self.connected(connected.clone());
            created(&Data { data })
        });
        let new = NewAccount {
            display_name,
            credentials,
            registers_events: registers.flatten().unwrap_or(event_secrets.is_none()),
            event_secrets,
            limits: AccountLimits {
                max_rate_per_second: rate.flatten().map(|bound| bound.0),
                max_concurrency: concurrency.flatten().map(|bound| bound.0),
            },
        };
        let accounts = &self.context.accounts;
        let connected = accounts
            .connect(caller.organization_id(), caller.origin(), new, &idempotent)
            .await?;
        Ok(ProviderConnected::Created(Json(Data {
            data: self.connected(connected),
        })))
    }

    /// Get a provider account
    ///
    /// Requires the permission `PROVIDERS_READ`.
    #[oai(
        path = "/v1/providers/:id",
        method = "get",
        operation_id = "get_provider"
    )]
    async fn get_provider(
        &self,
        caller: Requires<permission::ProvidersRead>,
        /// The id of the provider account.
        id: Path<PathId>,
    ) -> ProviderAnswer {
        let caller = caller.authorize()?;
        let account = self.find(&caller, &id.0).await?;
        Ok(Json(Data {
            data: self.view(account),
        }))
    }

    /// Change a provider account
    ///
    /// Requires the permission `PROVIDERS_WRITE`.
    #[oai(
        path = "/v1/providers/:id",
        method = "patch",
        operation_id = "update_provider"
    )]
    async fn update_provider(
        &self,
        caller: Requires<permission::ProvidersWrite>,

        /// The id of the provider account.
        id: Path<PathId>,
        body: JsonBody<UpdateProviderRequest, OTHER_BYTES_MAX>,
    ) -> ProviderAnswer {
        let caller = caller.authorize()?;
        let account = self.find(&caller, &id.0).await?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let display_name = request.display_name.change("displayName", &mut issues);
        let is_active = request.is_active.change("isActive", &mut issues);
        let given = request.credentials.change("credentials", &mut issues);
        let credentials =
            given.and_then(|given| read_credentials(account.provider_type, &given, &mut issues));
        let given = request.event_secrets.change("eventSecrets", &mut issues);
        let event_secrets =
            given.and_then(|given| read_event_secrets(account.provider_type, &given, &mut issues));
        let rate = request
            .max_rate_per_second
            .change("maxRatePerSecond", &mut issues);
        let concurrency = request
            .max_concurrency
            .change("maxConcurrency", &mut issues);
        if let Some(secrets) = &event_secrets {
            let mismatch = self
                .mismatch(&account, secrets, credentials.as_ref())
                .await?;
            issues.extend(mismatch);
        }
        if !issues.is_empty() {
            return Err(Failure::Invalid(issues));
        }
        let wanted = WantedChange {
            display_name,
            is_active,
            credentials,
            event_secrets,
            max_rate_per_second: rate.map(number),
            max_concurrency: concurrency.map(number),
        };
        let accounts = &self.context.accounts;
        let account = accounts
            .change(
                caller.organization_id(),
                caller.origin(),
                account.id,
                wanted,
            )
            .await?;
        Ok(Json(Data {
            data: self.view(account),
        }))
    }

    /// Remove a provider account
    ///
    /// Requires the permission `PROVIDERS_WRITE`. Waiting messages of the account are
    /// sent by another active account. In routing rules the first fallback replaces the
    /// account; a rule without a fallback becomes inactive.
    #[oai(
        path = "/v1/providers/:id",
        method = "delete",
        operation_id = "delete_provider"
    )]
    async fn delete_provider(
        &self,
        caller: Requires<permission::ProvidersWrite>,

        /// The id of the provider account.
        id: Path<PathId>,
    ) -> Result<Json<Success>, Failure> {
        let caller = caller.authorize()?;
        let id: ProviderAccountId = id.0.of(ACCOUNT)?;
        self.context
            .accounts
            .remove(caller.organization_id(), caller.origin(), id)
            .await?;
        Ok(Json(Success { success: true }))
    }

    /// Check a provider account's credentials
    ///
    /// Requires the permission `PROVIDERS_WRITE`. Checks the credentials with the
    /// provider, sets `isActive` to the result and updates the domains. If the provider
    /// gives no clear answer, the response is 503 and nothing changes.
    #[oai(
        path = "/v1/providers/:id/validate",
        method = "post",
        operation_id = "validate_provider"
    )]
    async fn validate_provider(
        &self,
        caller: Requires<permission::ProvidersWrite>,

        /// The id of the provider account.
        id: Path<PathId>,
    ) -> Result<Json<ValidationResult>, Failure> {
        let caller = caller.authorize()?;
        let id: ProviderAccountId = id.0.of(ACCOUNT)?;
        let (valid, kind) = self
            .context
            .accounts
            .validate(caller.organization_id(), caller.origin(), id)
            .await?;
        Ok(Json(ValidationResult {
            valid,
            provider_type: kind.to_string(),
        }))
    }
}

pub(crate) const ACCOUNT: &str = "provider account";

impl ProvidersApi {
    async fn find(&self, caller: &Caller, id: &PathId) -> Result<ProviderAccount, Failure> {
        let id: ProviderAccountId = id.of(ACCOUNT)?;
        let mut connection = self
            .context
            .pool
            .acquire()
            .await
            .or_fault("find a provider account")?;
        let account = store::find(&mut connection, caller.organization_id(), id).await?;
        account.ok_or(Failure::NotFound(ACCOUNT))
    }

    fn view(&self, account: ProviderAccount) -> ProviderAccountView {
        ProviderAccountView::of(&self.context.accounts, account)
    }

    fn connected(&self, connected: Connected) -> ConnectedProvider {
        ConnectedProvider {
            account: self.view(connected.account),
            event_webhook: Nullable(connected.event_webhook.map(FirstEventWebhook::from)),
        }
    }

    /// Checks event secrets against the account's new credentials or, without these, its
    /// stored ones.
    async fn mismatch(
        &self,
        account: &ProviderAccount,
        secrets: &EventSecrets,
        credentials: Option<&Credentials>,
    ) -> Result<Option<Issue>, Failure> {
        if let Some(credentials) = credentials {
            return Ok(secrets.mismatch(credentials));
        }
        let accounts = &self.context.accounts;
        let (_, stored) = accounts.open(account.organization_id, account.id).await?;
        Ok(secrets.mismatch(&stored))
    }
}

/// The number of a limit in an update, or `None` to remove the limit.
fn number<const MIN: u32, const MAX: u32>(bound: Option<Whole<MIN, MAX>>) -> Option<u32> {
    bound.map(|bound| bound.0)
}

fn read_credentials(
    kind: ProviderType,
    given: &CredentialsObject,
    issues: &mut Vec<Issue>,
) -> Option<Credentials> {
    match Credentials::parse(kind, &given.0) {
        Ok(credentials) => Some(credentials),
        Err(found) => {
            issues.extend(found);
            None
        }
    }
}

fn read_event_secrets(
    kind: ProviderType,
    given: &EventSecretsObject,
    issues: &mut Vec<Issue>,
) -> Option<EventSecrets> {
    EventSecrets::parse(kind, &given.0)
        .map_err(|found| issues.extend(found))
        .ok()
}
