//! Sender domains across the accounts that have them: what DNS has of the records that the
//! providers want, and what stands in the way.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::{Object, OpenApi};
use uuid::Uuid;
use waypost_core::db::OrFault;
use waypost_core::provider::domain::DnsRecord;
use waypost_core::provider_account::domains::DomainName;
use waypost_core::sender_domain::conflict::DomainConflict;
use waypost_core::sender_domain::record::FoundRecord;
use waypost_core::sender_domain::report::{AccountReport, DkimReport, DmarcReport, SpfReport};
use waypost_core::sender_domain::spf::SPF_LOOKUPS_MAX;
use waypost_core::sender_domain::{SenderDomain, SenderDomainSummary, store};

use crate::context::Context;
use crate::error::Failure;
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::response::{Data, Nullable, Time};
use crate::v1::Section;

pub(crate) struct SenderDomainsApi {
    pub(crate) context: Arc<Context>,
}

/// A sender domain in a list.
#[derive(Debug, Object)]
#[oai(rename = "SenderDomainSummary", rename_all = "camelCase")]
struct SenderDomainSummaryView {
    /// The domain name, in ASCII.
    domain: String,
    /// What the last check found.
    status: String,
    /// The provider accounts that have the domain.
    provider_account_ids: Vec<Uuid>,
    /// The kinds of conflicts that the last check found.
    conflicts: Vec<String>,
    /// When DNS was last asked; null before the first check.
    checked_at: Nullable<Time>,
    /// Since when DNS lacks records that it had; null if it has them.
    broken_since: Nullable<Time>,
}

impl From<SenderDomainSummary> for SenderDomainSummaryView {
    fn from(found: SenderDomainSummary) -> Self {
        Self {
            domain: found.domain,
            status: found.status,
            provider_account_ids: found.provider_account_ids,
            conflicts: found.conflicts,
            checked_at: Nullable(found.checked_at.map(Time)),
            broken_since: Nullable(found.broken_since.map(Time)),
        }
    }
}

/// A sender domain, across the accounts that have it.
#[derive(Debug, Object)]
#[oai(rename = "SenderDomain", rename_all = "camelCase")]
struct SenderDomainView {
    /// The domain name, in ASCII.
    domain: String,
    /// `complete`: DNS has all records that mail needs. `incomplete`: some are missing or
    /// differ, and were never found. `broken`: some were found before, and two checks missed
    /// them. `unknown`: DNS was not asked yet or could not be asked, or no account names its
    /// records.
    status: String,
    /// The accounts that have the domain.
    accounts: Vec<SenderDomainAccount>,
    spf: SenderDomainSpf,
    /// The DKIM records that the accounts want.
    dkim: Vec<SenderDomainDkim>,
    dmarc: SenderDomainDmarc,
    /// What is wrong with the domain as a whole.
    conflicts: Vec<SenderDomainConflict>,
    /// When DNS was last asked; null before the first check.
    checked_at: Nullable<Time>,
    /// Since when DNS lacks records that it had; null if it has them.
    broken_since: Nullable<Time>,
}

/// A sender domain at one account.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct SenderDomainAccount {
    provider_account_id: Uuid,
    provider_type: String,
    /// The name of the account.
    display_name: String,
    /// The id of the domain in `/v1/providers/:id/domains`.
    domain_id: Uuid,
    /// The provider's verdict, which decides whether the account may send from the domain.
    state: String,
    /// The records that the provider wants, with what DNS has.
    records: Vec<SenderDomainRecord>,
}

/// A DNS record that a provider wants, with what DNS has.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct SenderDomainRecord {
    /// The type of the record.
    #[oai(rename = "type")]
    record_type: String,
    /// The full name of the record.
    name: String,
    /// The value that the provider wants.
    value: String,
    /// The priority of an MX record; null for other types.
    priority: Nullable<u16>,
    /// What the record is for.
    purpose: String,
    /// Whether the provider found the record.
    status: String,
    /// The values that DNS has there; of SPF and DMARC, the records of that kind.
    found: Vec<String>,
    /// Whether DNS has the record; `unknown` if DNS was not or could not be asked.
    found_status: String,
}

impl SenderDomainRecord {
    fn of(record: &DnsRecord, found: FoundRecord) -> Self {
        Self {
            record_type: record.record_type.name().to_owned(),
            name: record.name.clone(),
            value: record.value.clone(),
            priority: Nullable(record.priority),
            purpose: record.purpose.as_str().to_owned(),
            status: record.status.as_str().to_owned(),
            found: found.found,
            found_status: found.status.as_str().to_owned(),
        }
    }
}

impl From<AccountReport> for SenderDomainAccount {
    fn from(report: AccountReport) -> Self {
        let AccountReport { account, found } = report;
        let records = account.records.iter().zip(found);
        Self {
            provider_account_id: account.provider_account_id.0,
            provider_type: account.provider_type.to_string(),
            display_name: account.display_name,
            domain_id: account.id.0,
            state: account.state.as_str().to_owned(),
            records: records
                .map(|(record, found)| SenderDomainRecord::of(record, found))
                .collect(),
        }
    }
}

/// The SPF record of a domain. A domain has one record for all of its senders.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct SenderDomainSpf {
    /// The record; the first, if there are several; null if there is none.
    record: Nullable<String>,
    /// Whether receivers accept it. Accounts may do without one: SENDGRID, POSTMARK and SES
    /// send with return paths of other domains.
    status: String,
    /// The look-ups that it causes, with those of included records, up to 50.
    lookups: u32,
    /// The look-ups that receivers make (RFC 7208, 4.6.4).
    lookups_max: u32,
    /// The look-ups that find nothing. Receivers accept two.
    void_lookups: u32,
    /// The mechanisms that accounts want and the record lacks.
    missing: Vec<String>,
    /// One record for all accounts; null if the record need not be changed.
    recommended: Nullable<String>,
}

impl From<SpfReport> for SenderDomainSpf {
    fn from(report: SpfReport) -> Self {
        Self {
            record: Nullable(report.records.into_iter().next()),
            status: report.status.as_str().to_owned(),
            lookups: report.lookups,
            lookups_max: SPF_LOOKUPS_MAX,
            void_lookups: report.void_lookups,
            missing: report.missing,
            recommended: Nullable(report.recommended),
        }
    }
}

/// A DKIM record that an account wants.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct SenderDomainDkim {
    provider_account_id: Uuid,
    /// The DKIM selector.
    selector: String,
    /// The full name of the record.
    name: String,
    /// Whether DNS has the record.
    status: String,
}

impl From<DkimReport> for SenderDomainDkim {
    fn from(report: DkimReport) -> Self {
        Self {
            provider_account_id: report.provider_account_id.0,
            selector: report.selector,
            name: report.name,
            status: report.status.as_str().to_owned(),
        }
    }
}

/// The DMARC policy of a domain.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct SenderDomainDmarc {
    /// The record; null if there is none.
    record: Nullable<String>,
    /// The domain that has the record: this one, or one above it.
    policy_domain: Nullable<String>,
    /// What receivers do with mail that does not pass; null without a valid record.
    policy: Nullable<String>,
    status: String,
    /// Whether the return paths of all accounts are of this domain, as far as the policy asks
    /// for it; null if there is no policy or an account does not name its records.
    aligned_spf: Nullable<bool>,
    /// The same of the signatures of all accounts. Mail passes if one of both is aligned.
    aligned_dkim: Nullable<bool>,
}

impl From<DmarcReport> for SenderDomainDmarc {
    fn from(report: DmarcReport) -> Self {
        Self {
            record: Nullable(report.record),
            policy_domain: Nullable(report.policy_domain),
            policy: Nullable(report.policy.map(|policy| policy.policy)),
            status: report.status.as_str().to_owned(),
            aligned_spf: Nullable(report.aligned_spf),
            aligned_dkim: Nullable(report.aligned_dkim),
        }
    }
}

/// Something that is wrong with a domain as a whole.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct SenderDomainConflict {
    /// The kind of conflict, for programs.
    code: String,
    /// What is wrong and what to do, for people.
    message: String,
    /// The names of the records.
    names: Vec<String>,
}

impl From<DomainConflict> for SenderDomainConflict {
    fn from(conflict: DomainConflict) -> Self {
        Self {
            code: conflict.code.as_str().to_owned(),
            message: conflict.message,
            names: conflict.names,
        }
    }
}

impl From<SenderDomain> for SenderDomainView {
    fn from(found: SenderDomain) -> Self {
        let report = found.report;
        Self {
            domain: report.domain,
            status: found.status.as_str().to_owned(),
            accounts: report.accounts.into_iter().map(Into::into).collect(),
            spf: report.spf.into(),
            dkim: report.dkim.into_iter().map(Into::into).collect(),
            dmarc: report.dmarc.into(),
            conflicts: report.conflicts.into_iter().map(Into::into).collect(),
            checked_at: Nullable(found.checked_at.map(Time)),
            broken_since: Nullable(found.broken_since.map(Time)),
        }
    }
}

/// The name of the record in errors.
const DOMAIN: &str = "domain";

#[OpenApi(tag = "Section::Providers")]
impl SenderDomainsApi {
    /// List sender domains
    ///
    /// Requires the permission `PROVIDERS_READ`. The domains of all provider accounts, each
    /// once, in the order of their names, with what the last check of DNS found.
    #[oai(
        path = "/v1/sender-domains",
        method = "get",
        operation_id = "list_sender_domains"
    )]
    async fn list_sender_domains(
        &self,
        caller: Requires<permission::ProvidersRead>,
    ) -> Result<Json<Data<Vec<SenderDomainSummaryView>>>, Failure> {
        let caller = caller.authorize()?;
        let doing = "list sender domains";
        let mut connection = self.context.pool.acquire().await.or_fault(doing)?;
        let found = store::list(&mut connection, caller.organization_id()).await?;
        let data = found.into_iter().map(Into::into).collect();
        Ok(Json(Data { data }))
    }

    /// Get a sender domain
    ///
    /// Requires the permission `PROVIDERS_READ`. Compares what DNS had at the last check with
    /// the records that the accounts want now. The scheduler checks every domain
    /// (`WAYPOST_DNS_CHECK_INTERVAL`). Sending does not depend on it: there the provider's
    /// verdict decides.
    #[oai(
        path = "/v1/sender-domains/:domain",
        method = "get",
        operation_id = "get_sender_domain"
    )]
    async fn get_sender_domain(
        &self,
        caller: Requires<permission::ProvidersRead>,

        /// The domain name.
        domain: Path<String>,
    ) -> Result<Json<Data<SenderDomainView>>, Failure> {
        let caller = caller.authorize()?;
        let domain = DomainName::parse(&domain.0).ok_or(Failure::NotFound(DOMAIN))?;
        let domains = &self.context.sender_domains;
        let found = domains
            .find(caller.organization_id(), domain.as_str())
            .await?;
        let data = found.ok_or(Failure::NotFound(DOMAIN))?.into();
        Ok(Json(Data { data }))
    }

    /// Check a sender domain
    ///
    /// Requires the permission `PROVIDERS_WRITE`. Asks DNS now, within 20 seconds; the
    /// providers are not asked. What could not be looked up is `unknown`.
    #[oai(
        path = "/v1/sender-domains/:domain/check",
        method = "post",
        operation_id = "check_sender_domain"
    )]
    async fn check_sender_domain(
        &self,
        caller: Requires<permission::ProvidersWrite>,

        /// The domain name.
        domain: Path<String>,
    ) -> Result<Json<Data<SenderDomainView>>, Failure> {
        let caller = caller.authorize()?;
        let domain = DomainName::parse(&domain.0).ok_or(Failure::NotFound(DOMAIN))?;
        let domains = &self.context.sender_domains;
        let (organization_id, origin) = (caller.organization_id(), caller.origin());
        let found = domains
            .check(organization_id, origin, domain.as_str())
            .await?;
        let data = found.ok_or(Failure::NotFound(DOMAIN))?.into();
        Ok(Json(Data { data }))
    }
}
