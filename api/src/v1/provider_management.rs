//! Management at the provider: the domains of an account and its event webhook.

use std::collections::HashMap;
use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::registry::MetaSchemaRef;
use poem_openapi::types::Any;
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde_json::{Value, json};
use uuid::Uuid;
use waypost_core::clock::Timestamp;
use waypost_core::db::OrFault;
use waypost_core::idempotency::single::Idempotent;
use waypost_core::ids::{DomainId, ProviderAccountId};
use waypost_core::issue::Issue;
use waypost_core::provider::domain::{DnsRecord, DomainState};
use waypost_core::provider_account::domains::DomainName;
use waypost_core::provider_account::event_webhook::EventWebhook;
use waypost_core::provider_account::store;
use waypost_core::provider_account::{DomainRecord, ProviderAccount};
use waypost_core::sender_domain;
use waypost_core::sender_domain::look_ups::DnsFacts;
use waypost_core::sender_domain::record::{FoundStatus, compare};

use crate::context::Context;
use crate::error::Failure;
use crate::fields::{schema, string};
use crate::middleware::auth::{Caller, Requires};
use crate::middleware::permission;
use crate::request::body::{JsonBody, OTHER_BYTES_MAX};
use crate::request::idempotency_key::{KeyHeader, created};
use crate::request::path_id::PathId;
use crate::response::{Data, Nullable, Success, Time};
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
    /// `purpose` and the provider's `status`; and with what DNS had at the last check,
    /// `found` and `foundStatus`.
    dns_records: Vec<Any<Value>>,
    /// When Waypost last looked the records up in DNS; null before the first check.
    dns_checked_at: Nullable<Time>,
    created_at: Time,
}

/// What DNS had at the last check, by domain.
type CheckedFacts = HashMap<String, (Timestamp, DnsFacts)>;

impl DomainVerification {
    fn of(record: DomainRecord, checked: &CheckedFacts) -> Self {
        let checked = checked.get(&record.domain);
        let facts = checked.map(|(_, facts)| facts);
        let stored = record.dns_records.as_array().into_iter().flatten();
        let dns_records = stored.map(|stored| with_found(stored, facts));
        Self {
            id: record.id.0,
            provider_account_id: record.provider_account_id.0,
            domain: record.domain,
            is_verified: record.state == DomainState::Verified,
            state: record.state.as_str().to_owned(),
            dns_records: dns_records.map(Any).collect(),
            dns_checked_at: Nullable(checked.map(|(at, _)| Time(*at))),
            created_at: Time(record.created_at),
        }
    }
}

/// A stored record, with what DNS had.
fn with_found(stored: &Value, facts: Option<&DnsFacts>) -> Value {
    let record: Option<DnsRecord> = serde_json::from_value(stored.clone()).ok();
    let found = record
        .zip(facts)
        .map(|(record, facts)| compare(&record, facts));
    let mut shown = stored.clone();
    if let Some(shown) = shown.as_object_mut() {
        let status = found
            .as_ref()
            .map_or(FoundStatus::Unknown, |found| found.status);
        let values = found.map(|found| found.found).unwrap_or_default();
        shown.insert("found".to_owned(), json!(values));
        shown.insert("foundStatus".to_owned(), json!(status.as_str()));
    }
    shown
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
        let checked = self.checked(&caller, &domains).await?;
        let domains = domains.into_iter();
        let data = domains
            .map(|record| DomainVerification::of(record, &checked))
            .collect();
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
            let data = DomainVerification::of(record.clone(), &CheckedFacts::new());
            created(&Data { data })
        });
        let accounts = &self.context.accounts;
        let (organization_id, origin) = (caller.organization_id(), caller.origin());
        let record = accounts
            .add_domain(organization_id, origin, account_id, &domain, &idempotent)
            .await?;
        // As the answer that is stored for a repetition: the records are looked up soon.
        let data = DomainVerification::of(record, &CheckedFacts::new());
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
        let checked = self.checked(&caller, std::slice::from_ref(&record)).await?;
        let data = DomainVerification::of(record, &checked);
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
    /// What DNS had of these domains at their last checks.
    async fn checked(
        &self,
        caller: &Caller,
        records: &[DomainRecord],
    ) -> Result<CheckedFacts, Failure> {
        let doing = "list the checks of domains";
        let domains: Vec<String> = records.iter().map(|one| one.domain.clone()).collect();
        let mut connection = self.context.pool.acquire().await.or_fault(doing)?;
        let organization_id = caller.organization_id();
        let found =
            sender_domain::store::list_facts(&mut connection, organization_id, &domains).await?;
        let found = found.into_iter();
        Ok(found
            .map(|(domain, at, facts)| (domain, (at, sender_domain::read_facts(Some(facts)))))
            .collect())
    }

    async fn find(&self, caller: &Caller, id: &PathId) -> Result<ProviderAccount, Failure> {
        let id: ProviderAccountId = id.of(ACCOUNT)?;
        let doing = "find a provider account";
        let mut connection = self.context.pool.acquire().await.or_fault(doing)?;
        let account = store::find(&mut connection, caller.organization_id(), id).await?;
        account.ok_or(Failure::NotFound(ACCOUNT))
    }
}
