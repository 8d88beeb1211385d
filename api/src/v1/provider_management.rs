//! Management at the provider: the domains of an account and its event webhook.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::registry::MetaSchemaRef;
use poem_openapi::types::Any;
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde_json::Value;
use uuid::Uuid;
use waypost_core::db::OrFault;
use waypost_core::idempotency::single::Idempotent;
use waypost_core::ids::{DomainId, ProviderAccountId};
use waypost_core::issue::Issue;
use waypost_core::provider::domain::DomainState;
use waypost_core::provider_account::domains::DomainName;
use waypost_core::provider_account::event_webhook::EventWebhook;
use waypost_core::provider_account::store;
use waypost_core::provider_account::{DomainRecord, ProviderAccount};

use crate::context::Context;
use crate::error::Failure;
use crate::fields::{schema, string};
use crate::middleware::auth::{Caller, Requires};
use crate::middleware::permission;
use crate::request::body::{JsonBody, OTHER_BYTES_MAX};
use crate::request::idempotency_key::{KeyHeader, created};
use crate::request::path_id::PathId;
use crate::response::{Data, Success, Time};
use crate::v1::Section;
use crate::v1::providers::ACCOUNT;
use crate::validate::{Field, Validated, problem};

pub(crate) struct ProviderManagementApi {
    pub(crate) context: Arc<Context>,
}

impl Field for DomainName {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.min_length = Some(3);
            schema.example = Some(Value::from("mail.example.com"));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        match Self::parse(&string(value)?) {
            Some(domain) => Ok(domain),
            None => problem("must be a domain name such as mail.example.com"),
        }
    }
}

/// A sender domain of a provider account.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct DomainVerification {
    id: Uuid,
    provider_account_id: Uuid,
    /// The domain name, in ASCII.
    domain: String,
    /// Whether the provider reports the domain as verified.
    is_verified: bool,
    /// `verified`, `unverified`, or `unknown` if the credentials give no access to the
    /// domain.
    state: String,
    /// The DNS records to publish, each with `type`, `name`, `value`, `priority`,
    /// `purpose` and `status`.
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

/// A domain to add to an account.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct CreateProviderDomainRequest {
    /// The domain name. An international name is stored in its ASCII form.
    domain: Validated<DomainName>,
}

#[derive(ApiResponse)]
enum DomainCreated {
    /// The domain is added to the account.
    #[oai(status = 201)]
    Created(Json<Data<DomainVerification>>),
}

/// The event webhook of an account.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct EventWebhookResult {
    /// Whether the webhook is registered with the provider. If not, the provider was not
    /// called and `steps` lists what to do.
    registered: bool,
    /// The URL that the provider posts events to. Keep it secret.
    webhook_url: String,
    /// Whether an event from the provider has been verified.
    events_verified: bool,
    /// The steps to take by hand, in this order.
    steps: Vec<String>,
}

#[OpenApi(tag = "Section::Providers")]
impl ProviderManagementApi {
    /// Register the event webhook
    ///
    /// Requires the permission `PROVIDERS_WRITE`. For SENDGRID, POSTMARK and MAILGUN this
    /// registers the account's `webhookUrl` with the provider and stores the secrets that
    /// verify its events; a repeated request updates the same webhook. For SES nothing is
    /// called, and `steps` lists what to set up. If the provider refuses, for example
    /// because the API key lacks a permission, the response is 422 and lists the steps to
    /// take by hand.
    #[oai(
        path = "/v1/providers/:id/event-webhook",
        method = "post",
        operation_id = "register_event_webhook"
    )]
    async fn register_event_webhook(
        &self,
        caller: Requires<permission::ProvidersWrite>,

        /// The id of the provider account.
        id: Path<PathId>,
    ) -> Result<Json<Data<EventWebhookResult>>, Failure> {
        let caller = caller.authorize()?;
        let id: ProviderAccountId = id.0.of(ACCOUNT)?;
        let accounts = &self.context.accounts;
        let EventWebhook {
            account,
            is_registered,
            steps,
        } = accounts
            .register_event_webhook(caller.organization_id(), caller.origin(), id)
            .await?;
        let data = EventWebhookResult {
            registered: is_registered,
            webhook_url: accounts.webhook_url(&account),
            events_verified: account.events_verified_at.is_some(),
            steps,
        };
        Ok(Json(Data { data }))
    }

    /// List a provider account's domains
    ///
    /// Requires the permission `PROVIDERS_READ`.
    #[oai(
        path = "/v1/providers/:id/domains",
        method = "get",
        operation_id = "list_provider_domains"
    )]
    async fn list_provider_domains(
        &self,
        caller: Requires<permission::ProvidersRead>,

        /// The id of the provider account.
        id: Path<PathId>,
    ) -> Result<Json<Data<Vec<DomainVerification>>>, Failure> {
        let caller = caller.authorize()?;
        let account = self.find(&caller, &id.0).await?;
        let mut connection = self.context.pool.acquire().await.or_fault("list domains")?;
        let domains =
            store::list_domains(&mut connection, caller.organization_id(), account.id).await?;
        let data = domains.into_iter().map(DomainVerification::from).collect();
        Ok(Json(Data { data }))
    }

    /// Add a domain to a provider account
    ///
    /// Requires the permission `PROVIDERS_WRITE`. Adds the domain at the provider, if it
    /// is not there yet, and returns the DNS records to publish. If the credentials give
    /// no access to domains, the domain is only stored, with the state `unknown`.
    /// Unverified domains are checked every few minutes for an hour, then every hour.
    #[oai(
        path = "/v1/providers/:id/domains",
        method = "post",
        operation_id = "create_provider_domain"
    )]
    async fn create_provider_domain(
        &self,
        caller: Requires<permission::ProvidersWrite>,

        /// The id of the provider account.
        id: Path<PathId>,
        /// Makes it safe to repeat the request.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<CreateProviderDomainRequest, OTHER_BYTES_MAX>,
    ) -> Result<DomainCreated, Failure> {
        let caller = caller.authorize()?;
        let account_id: ProviderAccountId = id.0.of(ACCOUNT)?;
        let mut issues = Vec::new();
        let claim = key.claim(&self.context, &caller, &body, &mut issues);
        let request = body.take(&mut issues)?;
        let domain = request.domain.take("domain", &mut issues);
        let (Some(domain), Some(claim), true) = (domain, claim, issues.is_empty()) else {
            // 404 comes before mistakes in the request.
            self.find(&caller, &id.0).await?;
            return Err(Failure::Invalid(issues));
        };
        let idempotent = Idempotent::new(claim, &self.context.sealer, |record: &DomainRecord| {
            let data = DomainVerification::from(record.clone());
            created(&Data { data })
        });
        let accounts = &self.context.accounts;
        let (organization_id, origin) = (caller.organization_id(), caller.origin());
        let record = accounts
            .add_domain(organization_id, origin, account_id, &domain, &idempotent)
            .await?;
        let data = record.into();
        Ok(DomainCreated::Created(Json(Data { data })))
    }

    /// Check a domain of a provider account
    ///
    /// Requires the permission `PROVIDERS_WRITE`. Asks the provider to check DNS now, if
    /// its API allows that, and updates the state and the DNS records.
    #[oai(
        path = "/v1/providers/:id/domains/:domainId/verify",
        method = "post",
        operation_id = "verify_provider_domain"
    )]
    async fn verify_provider_domain(
        &self,
        caller: Requires<permission::ProvidersWrite>,

        /// The id of the provider account.
        id: Path<PathId>,
        /// The id of the domain.
        #[oai(name = "domainId")]
        domain_id: Path<PathId>,
    ) -> Result<Json<Data<DomainVerification>>, Failure> {
        let caller = caller.authorize()?;
        let id: ProviderAccountId = id.0.of(ACCOUNT)?;
        let domain_id: DomainId = domain_id.0.of(DOMAIN)?;
        let accounts = &self.context.accounts;
        let (organization_id, origin) = (caller.organization_id(), caller.origin());
        let record = accounts
            .verify_domain(organization_id, origin, id, domain_id)
            .await?;
        let data = record.into();
        Ok(Json(Data { data }))
    }

    /// Remove a domain from a provider account
    ///
    /// Requires the permission `PROVIDERS_WRITE`. Removes the domain at the provider too,
    /// unless the credentials give no access to domains. The sending domain of a MAILGUN
    /// account cannot be removed.
    #[oai(
        path = "/v1/providers/:id/domains/:domainId",
        method = "delete",
        operation_id = "delete_provider_domain"
    )]
    async fn delete_provider_domain(
        &self,
        caller: Requires<permission::ProvidersWrite>,

        /// The id of the provider account.
        id: Path<PathId>,
        /// The id of the domain.
        #[oai(name = "domainId")]
        domain_id: Path<PathId>,
    ) -> Result<Json<Success>, Failure> {
        let caller = caller.authorize()?;
        let id: ProviderAccountId = id.0.of(ACCOUNT)?;
        let domain_id: DomainId = domain_id.0.of(DOMAIN)?;
        let accounts = &self.context.accounts;
        let (organization_id, origin) = (caller.organization_id(), caller.origin());
        accounts
            .remove_domain(organization_id, origin, id, domain_id)
            .await?;
        Ok(Json(Success { success: true }))
    }
}

const DOMAIN: &str = "domain";

impl ProviderManagementApi {
    async fn find(&self, caller: &Caller, id: &PathId) -> Result<ProviderAccount, Failure> {
        let id: ProviderAccountId = id.of(ACCOUNT)?;
        let doing = "find a provider account";
        let mut connection = self.context.pool.acquire().await.or_fault(doing)?;
        let account = store::find(&mut connection, caller.organization_id(), id).await?;
        account.ok_or(Failure::NotFound(ACCOUNT))
    }
}
