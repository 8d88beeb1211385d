//! What is kept up at a provider: the domains of an account, and the webhook that
//! its events come by.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::registry::MetaSchemaRef;
use poem_openapi::types::Any;
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde_json::Value;
use uuid::Uuid;
use waypost_core::auth::Permission;
use waypost_core::db::OrFault;
use waypost_core::idempotency::single::Idempotent;
use waypost_core::ids::{DomainId, ProviderAccountId};
use waypost_core::issue::Issue;
use waypost_core::provider::domain::DomainState;
use waypost_core::provider_account::domains::DomainName;
use waypost_core::provider_account::event_webhook::EventWebhook;
use waypost_core::provider_account::store;
use waypost_core::provider_account::{DomainRecord, ProviderAccount};

use crate::auth::Caller;
use crate::body::{JsonBody, OTHER_BYTES_MAX};
use crate::context::Context;
use crate::error::Failure;
use crate::fields::{schema, string};
use crate::idempotency::{KeyHeader, created};
use crate::ids::PathId;
use crate::response::{Data, Success, Time};
use crate::v1::Section;
use crate::v1::providers::ACCOUNT;
use crate::validate::{Field, Validated, problem};

pub(crate) struct ProviderUpkeepApi {
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

/// A domain to add to an account.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct CreateProviderDomainRequest {
    /// Its name. Letters of other alphabets are stored in their ASCII form.
    domain: Validated<DomainName>,
}

#[derive(ApiResponse)]
enum DomainCreated {
    /// The account has the domain.
    #[oai(status = 201)]
    Created(Json<Data<DomainVerification>>),
}

/// How an account's events come.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct EventWebhookResult {
    /// Whether the provider was told. Where not, nothing was called and `steps` says
    /// what to do.
    registered: bool,
    /// Where the provider is to tell of events. Keep it to yourself.
    webhook_url: String,
    /// Whether an event came from the provider and was found to be genuine.
    events_verified: bool,
    /// What is left to do by hand, in this order.
    steps: Vec<String>,
}

#[OpenApi(tag = "Section::Providers")]
impl ProviderUpkeepApi {
    /// Register the event webhook
    ///
    /// Takes the permission PROVIDERS_WRITE. Tells the provider to tell of events
    /// under the account's `webhookUrl`, and stores what its events are verified
    /// with: at SENDGRID, POSTMARK and MAILGUN. Called again it brings the same
    /// webhook up to date. For SES nothing is called: `steps` says what to set up.
    /// Where the provider refuses, as it does a key that lacks a permission, the
    /// answer is 422 and says what to do by hand.
    #[oai(
        path = "/v1/providers/:id/event-webhook",
        method = "post",
        operation_id = "register_event_webhook"
    )]
    async fn register_event_webhook(
        &self,
        caller: Caller,
        id: Path<PathId>,
    ) -> Result<Json<Data<EventWebhookResult>>, Failure> {
        caller.require(Permission::ProvidersWrite)?;
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

    /// Add a domain to a provider account
    ///
    /// Takes the permission PROVIDERS_WRITE. Adds it at the provider, unless it is
    /// there, and answers with the DNS records to publish. Where the credentials
    /// cannot see domains it is recorded alone, with the state `unknown`. Domains
    /// that are not verified are looked at every few minutes for an hour, then
    /// hourly.
    #[oai(
        path = "/v1/providers/:id/domains",
        method = "post",
        operation_id = "create_provider_domain"
    )]
    async fn create_provider_domain(
        &self,
        caller: Caller,
        id: Path<PathId>,
        /// Makes it safe to repeat the request.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<CreateProviderDomainRequest, OTHER_BYTES_MAX>,
    ) -> Result<DomainCreated, Failure> {
        caller.require(Permission::ProvidersWrite)?;
        let account_id: ProviderAccountId = id.0.of(ACCOUNT)?;
        let mut issues = Vec::new();
        let claim = key.claim(&self.context, &caller, &body, &mut issues);
        let request = body.take(&mut issues)?;
        let domain = request.domain.take("domain", &mut issues);
        let (Some(domain), Some(claim), true) = (domain, claim, issues.is_empty()) else {
            // Whose account it is comes before what is wrong with the request.
            self.find(&caller, &id.0).await?;
            return Err(Failure::Invalid(issues));
        };
        let once = Idempotent::new(claim, &self.context.sealer, |record: &DomainRecord| {
            let data = DomainVerification::from(record.clone());
            created(&Data { data })
        });
        let accounts = &self.context.accounts;
        let (organization_id, origin) = (caller.organization_id(), caller.origin());
        let record = accounts
            .add_domain(organization_id, origin, account_id, &domain, &once)
            .await?;
        let data = record.into();
        Ok(DomainCreated::Created(Json(Data { data })))
    }

    /// Check a domain of a provider account
    ///
    /// Takes the permission PROVIDERS_WRITE. Lets the provider look into DNS now,
    /// where it can be asked to, and brings the state and the records up to date.
    #[oai(
        path = "/v1/providers/:id/domains/:domainId/verify",
        method = "post",
        operation_id = "verify_provider_domain"
    )]
    async fn verify_provider_domain(
        &self,
        caller: Caller,
        id: Path<PathId>,
        #[oai(name = "domainId")] domain_id: Path<PathId>,
    ) -> Result<Json<Data<DomainVerification>>, Failure> {
        caller.require(Permission::ProvidersWrite)?;
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
    /// Takes the permission PROVIDERS_WRITE. Removes it at the provider too, unless
    /// the credentials cannot see domains. The domain that a MAILGUN account sends
    /// through stays.
    #[oai(
        path = "/v1/providers/:id/domains/:domainId",
        method = "delete",
        operation_id = "delete_provider_domain"
    )]
    async fn delete_provider_domain(
        &self,
        caller: Caller,
        id: Path<PathId>,
        #[oai(name = "domainId")] domain_id: Path<PathId>,
    ) -> Result<Json<Success>, Failure> {
        caller.require(Permission::ProvidersWrite)?;
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

impl ProviderUpkeepApi {
    async fn find(&self, caller: &Caller, id: &PathId) -> Result<ProviderAccount, Failure> {
        let id: ProviderAccountId = id.of(ACCOUNT)?;
        let doing = "find a provider account";
        let mut connection = self.context.pool.acquire().await.or_fault(doing)?;
        let account = store::find(&mut connection, caller.organization_id(), id).await?;
        account.ok_or(Failure::NotFound(ACCOUNT))
    }
}
