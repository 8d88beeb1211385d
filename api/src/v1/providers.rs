//! Provider accounts: connecting, checking, changing and removing them, and the
//! domains that they have.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::types::Any;
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde_json::Value;
use uuid::Uuid;
use waypost_core::auth::Permission;
use waypost_core::db::OrFault;
use waypost_core::idempotency::once::Once;
use waypost_core::ids::ProviderAccountId;
use waypost_core::issue::Issue;
use waypost_core::provider::account::{DomainRecord, ProviderAccount, WantedChange};
use waypost_core::provider::credentials::Credentials;
use waypost_core::provider::domain::DomainState;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider::store;
use waypost_core::text::Name;

use crate::auth::Caller;
use crate::body::{Body, OTHER_BYTES_MAX};
use crate::checked::Checked;
use crate::context::Context;
use crate::error::Failure;
use crate::fields::CredentialsObject;
use crate::idempotency::{KeyHeader, created};
use crate::ids::PathId;
use crate::v1::Section;
use crate::wire::{Data, Success, Time};

pub(crate) struct ProvidersApi {
    pub(crate) context: Arc<Context>,
}

/// A connected account at a provider. Its credentials are never shown.
#[derive(Debug, Object)]
#[oai(rename = "ProviderAccount", rename_all = "camelCase")]
pub(crate) struct ProviderAccountView {
    id: Uuid,
    organization_id: Uuid,
    /// SENDGRID, POSTMARK, MAILGUN, SES or SMTP.
    provider_type: String,
    display_name: String,
    /// Whether messages may go through it.
    is_active: bool,
    created_at: Time,
    updated_at: Time,
}

impl From<ProviderAccount> for ProviderAccountView {
    fn from(account: ProviderAccount) -> Self {
        Self {
            id: account.id.0,
            organization_id: account.organization_id.0,
            provider_type: account.provider_type.to_string(),
            display_name: account.display_name,
            is_active: account.is_active,
            created_at: Time(account.created_at),
            updated_at: Time(account.updated_at),
        }
    }
}

/// A sender domain of an account.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct DomainVerification {
    id: Uuid,
    provider_account_id: Uuid,
    /// The domain, in ASCII.
    domain: String,
    /// Whether the provider says that it may be sent from.
    is_verified: bool,
    /// `verified`, `unverified`, or `unknown` where the credentials cannot see it.
    state: String,
    /// The records to publish: `type`, `name`, `value`, `priority`, `purpose` and
    /// `status` each.
    dns_records: Vec<Any<Value>>,
    created_at: Time,
}

impl From<DomainRecord> for DomainVerification {
    fn from(record: DomainRecord) -> Self {
        let dns_records = record.dns_records.as_array().cloned().unwrap_or_default();
        Self {
            id: record.id.0,
            provider_account_id: record.provider_account_id.0,
            domain: record.domain,
            is_verified: record.state == DomainState::Verified,
            state: record.state.as_str().to_owned(),
            dns_records: dns_records.into_iter().map(Any).collect(),
            created_at: Time(record.created_at),
        }
    }
}

/// An account to connect.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct ConnectProviderRequest {
    provider_type: Checked<ProviderType>,
    /// A name for people.
    display_name: Checked<Name>,
    /// Which fields it must have depends on `providerType`: SENDGRID `apiKey`;
    /// POSTMARK `serverToken`; MAILGUN `apiKey` and `domain`; SES `accessKeyId`,
    /// `secretAccessKey` and `region`; SMTP `host`.
    credentials: Checked<CredentialsObject>,
}

/// What of an account is to be changed; what is absent stays.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct UpdateProviderRequest {
    /// A name for people.
    display_name: Checked<Option<Name>>,
    /// Whether messages may go through it.
    is_active: Checked<Option<bool>>,
    /// New credentials, checked with the provider before they replace the old.
    credentials: Checked<Option<CredentialsObject>>,
}

/// What the provider says of an account's credentials.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct ValidationResult {
    /// Whether it accepted them; `isActive` now says the same.
    valid: bool,
    provider_type: String,
}

#[derive(ApiResponse)]
enum Connected {
    /// The account is connected.
    #[oai(status = 201)]
    Created(Json<Data<ProviderAccountView>>),
}

type One = Result<Json<Data<ProviderAccountView>>, Failure>;

#[OpenApi(tag = "Section::Providers")]
impl ProvidersApi {
    /// List provider accounts
    ///
    /// Takes the permission PROVIDERS_READ. Oldest first: without routing rules
    /// the first active one sends.
    #[oai(
        path = "/v1/providers",
        method = "get",
        operation_id = "list_providers"
    )]
    async fn list_providers(
        &self,
        caller: Caller,
    ) -> Result<Json<Data<Vec<ProviderAccountView>>>, Failure> {
        caller.require(Permission::ProvidersRead)?;
        let mut connection = self
            .context
            .pool
            .acquire()
            .await
            .or_fault("list provider accounts")?;
        let accounts = store::list(&mut connection, caller.organization_id()).await?;
        let data = accounts
            .into_iter()
            .map(ProviderAccountView::from)
            .collect();
        Ok(Json(Data { data }))
    }

    /// Connect a provider account
    ///
    /// Takes the permission PROVIDERS_WRITE. The credentials are checked with the
    /// provider, then sealed and stored; the domains that the account has are
    /// imported.
    #[oai(
        path = "/v1/providers",
        method = "post",
        operation_id = "create_provider"
    )]
    async fn create_provider(
        &self,
        caller: Caller,
        /// Makes it safe to repeat the request.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: Body<ConnectProviderRequest, OTHER_BYTES_MAX>,
    ) -> Result<Connected, Failure> {
        caller.require(Permission::ProvidersWrite)?;
        let mut issues = Vec::new();
        let claim = key.claim(&self.context, &caller, &body, &mut issues);
        let request = body.take()?;
        let provider_type = request.provider_type.take("providerType", &mut issues);
        let display_name = request.display_name.take("displayName", &mut issues);
        let credentials = request.credentials.take("credentials", &mut issues);
        let credentials = match (provider_type, credentials) {
            (Some(kind), Some(given)) => read_credentials(kind, &given, &mut issues),
            _ => None,
        };
        let (Some(display_name), Some(credentials), Some(claim)) =
            (display_name, credentials, claim)
        else {
            return Err(Failure::Invalid(issues));
        };
        let once = Once::new(claim, &self.context.sealer, |account: &ProviderAccount| {
            let data = ProviderAccountView::from(account.clone());
            created(&Data { data })
        });
        let accounts = &self.context.accounts;
        let account = accounts
            .connect(
                caller.organization_id(),
                caller.origin(),
                display_name,
                &credentials,
                &once,
            )
            .await?;
        Ok(Connected::Created(Json(Data {
            data: account.into(),
        })))
    }

    /// Show a provider account
    ///
    /// Takes the permission PROVIDERS_READ.
    #[oai(
        path = "/v1/providers/:id",
        method = "get",
        operation_id = "get_provider"
    )]
    async fn get_provider(&self, caller: Caller, id: Path<PathId>) -> One {
        caller.require(Permission::ProvidersRead)?;
        let account = self.find(&caller, &id.0).await?;
        Ok(Json(Data {
            data: account.into(),
        }))
    }

    /// Change a provider account
    ///
    /// Takes the permission PROVIDERS_WRITE.
    #[oai(
        path = "/v1/providers/:id",
        method = "patch",
        operation_id = "update_provider"
    )]
    async fn update_provider(
        &self,
        caller: Caller,
        id: Path<PathId>,
        body: Body<UpdateProviderRequest, OTHER_BYTES_MAX>,
    ) -> One {
        caller.require(Permission::ProvidersWrite)?;
        let account = self.find(&caller, &id.0).await?;
        let request = body.take()?;
        let mut issues = Vec::new();
        let display_name = request.display_name.take("displayName", &mut issues);
        let is_active = request.is_active.take("isActive", &mut issues);
        let given = request
            .credentials
            .take("credentials", &mut issues)
            .flatten();
        let credentials =
            given.and_then(|given| read_credentials(account.provider_type, &given, &mut issues));
        if !issues.is_empty() {
            return Err(Failure::Invalid(issues));
        }
        let wanted = WantedChange {
            display_name: display_name.flatten(),
            is_active: is_active.flatten(),
            credentials,
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
            data: account.into(),
        }))
    }

    /// Remove a provider account
    ///
    /// Takes the permission PROVIDERS_WRITE. Messages that wait for it go through
    /// another active account. In the routing rules the first fallback takes its
    /// place; a rule that has none is switched off.
    #[oai(
        path = "/v1/providers/:id",
        method = "delete",
        operation_id = "delete_provider"
    )]
    async fn delete_provider(
        &self,
        caller: Caller,
        id: Path<PathId>,
    ) -> Result<Json<Success>, Failure> {
        caller.require(Permission::ProvidersWrite)?;
        let id: ProviderAccountId = id.0.of(ACCOUNT)?;
        self.context
            .accounts
            .remove(caller.organization_id(), caller.origin(), id)
            .await?;
        Ok(Json(Success { success: true }))
    }

    /// Check a provider account's credentials
    ///
    /// Takes the permission PROVIDERS_WRITE. Asks the provider, sets `isActive`
    /// from its answer and brings the domains up to date. Where the provider gives
    /// no verdict the answer is 503 and nothing is changed.
    #[oai(
        path = "/v1/providers/:id/validate",
        method = "post",
        operation_id = "validate_provider"
    )]
    async fn validate_provider(
        &self,
        caller: Caller,
        id: Path<PathId>,
    ) -> Result<Json<ValidationResult>, Failure> {
        caller.require(Permission::ProvidersWrite)?;
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

    /// List a provider account's domains
    ///
    /// Takes the permission PROVIDERS_READ.
    #[oai(
        path = "/v1/providers/:id/domains",
        method = "get",
        operation_id = "list_provider_domains"
    )]
    async fn list_provider_domains(
        &self,
        caller: Caller,
        id: Path<PathId>,
    ) -> Result<Json<Data<Vec<DomainVerification>>>, Failure> {
        caller.require(Permission::ProvidersRead)?;
        let account = self.find(&caller, &id.0).await?;
        let mut connection = self.context.pool.acquire().await.or_fault("list domains")?;
        let domains =
            store::list_domains(&mut connection, caller.organization_id(), account.id).await?;
        let data = domains.into_iter().map(DomainVerification::from).collect();
        Ok(Json(Data { data }))
    }
}

const ACCOUNT: &str = "provider account";

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
