//! The domains of an account, added, verified and removed one by one: at the provider if
//! its API allows it, and in the database. If the credentials cannot read domains, the
//! domain is stored with the state `unknown`.
//!
//! The provider is called first; then the record is stored in one transaction with its
//! audit entry. A request repeated after a crash finds at the provider what the first one
//! changed, so nothing is created twice.

mod recheck;
pub mod store;

use chrono::TimeDelta;
use serde_json::json;

use super::{AccountRefusal, Accounts, DomainRecord};
use crate::address::ascii_domain;
use crate::audit::{AuditChange, Origin};
use crate::clock::Timestamp;
use crate::db::{self, OrFault};
use crate::fault::Fault;
use crate::idempotency::single::{Failed, Idempotent};
use crate::ids::{DomainId, OrganizationId, ProviderAccountId};
use crate::provider::adapter;
use crate::provider::call::CallStep;
use crate::provider::credentials::Credentials;
use crate::provider::domain::{DOMAINS_MAX, DomainList, DomainState, FoundDomain};
use crate::provider::kind::ProviderType;
use crate::provider::management::DomainResult;
pub use recheck::DueDomain;
use store::DomainCheck;

/// The name of a sender domain, in lower-case ASCII.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainName(String);

impl DomainName {
    /// Parses a name with at least two labels, in any case, optionally with a final dot. A
    /// name with non-ASCII letters is converted to ASCII (IDNA).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_suffix('.').unwrap_or(text);
        ascii_domain(text).map(Self)
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a domain was not added, verified or removed.
#[derive(Debug)]
pub enum DomainRefusal {
    /// The account does not exist.
    AccountNotFound,
    /// The account does not have the domain.
    NotFound,
    /// The account already has the domain.
    Present,
    /// Another request is changing the domain.
    Busy,
    /// The account has the maximum number of domains.
    TooMany,
    Refused {
        provider_type: ProviderType,
        reason: String,
    },
    /// The provider gave no usable reply.
    Undecided {
        provider_type: ProviderType,
        reason: String,
    },
    Fault(Fault),
}

impl From<Fault> for DomainRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<DomainRefusal> for Failed<DomainRefusal> {
    fn from(refusal: DomainRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<AccountRefusal> for DomainRefusal {
    fn from(refusal: AccountRefusal) -> Self {
        match refusal {
            AccountRefusal::NotFound => Self::AccountNotFound,
            AccountRefusal::InvalidCredentials {
                provider_type,
                reason,
            } => Self::Refused {
                provider_type,
                reason,
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
    /// Adds a domain to an account.
    ///
    /// # Errors
    /// Why it was not added. Without a usable reply the provider may have added it: the
    /// same request again finds it.
    pub async fn add_domain(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        account_id: ProviderAccountId,
        domain: &DomainName,
        idempotent: &Idempotent<'_, DomainRecord>,
    ) -> Result<DomainRecord, Failed<DomainRefusal>> {
        idempotent.look_up(&self.pool).await?;
        let (_, credentials) = self
            .open(organization_id, account_id)
            .await
            .map_err(DomainRefusal::from)?;
        // Checked only under the lock: a domain that another request with the same key just
        // added would be refused before it is found.
        let lock = self
            .lock(account_id, lock_resource(domain.as_str()))
            .await?;
        let lock = lock.ok_or(DomainRefusal::Busy)?;
        let adding = async {
            // Another request may have added it while this one waited.
            idempotent.look_up(&self.pool).await?;
            self.require_capacity(organization_id, account_id, domain)
                .await?;
            let adapter = adapter(credentials.provider_type());
            let step = adapter.add_domain(&self.access(&credentials), domain.as_str());
            let result = self.run_domain_call(step).await;
            let record =
                self.new_record(account_id, domain, credentials.provider_type(), result)?;
            self.store_added(organization_id, origin, record, idempotent)
                .await
        };
        let added = adding.await;
        self.unlock(lock).await;
        added
    }

    /// Stores the domains that an account has at its provider, as its provider lists them.
    /// Nothing changes there.
    ///
    /// # Errors
    /// A fault.
    pub async fn import_domains(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        account_id: ProviderAccountId,
        found: &[FoundDomain],
    ) -> Result<(), Fault> {
        let doing = "import an account's domains";
        let mut transaction = db::begin(&self.pool, doing).await?;
        let account = super::store::find(&mut transaction, organization_id, account_id).await?;
        let Some(account) = account else {
            return Ok(());
        };
        let domains = DomainList::Visible(found.to_vec());
        self.record_domains(&mut transaction, &account, &domains)
            .await?;
        let change = AuditChange::new("provider.domains_imported", account_id)
            .with(json!({ "domains": found.len() }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction.commit().await.or_fault(doing)?;
        self.snapshots.forget(organization_id).await;
        Ok(())
    }

    /// Asks the provider to verify a domain now.
    ///
    /// # Errors
    /// Why there is no result; the record is unchanged then.
    pub async fn verify_domain(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        account_id: ProviderAccountId,
        id: DomainId,
    ) -> Result<DomainRecord, DomainRefusal> {
        let (_, credentials) = self.open(organization_id, account_id).await?;
        let record = self.find_domain(organization_id, account_id, id).await?;
        let result = self.verify_at_provider(&credentials, &record.domain).await;
        let provider_type = credentials.provider_type();
        let doing = "verify a domain";
        let mut transaction = db::begin(&self.pool, doing).await?;
        let found = store::find(&mut transaction, organization_id, account_id, id).await?;
        let record = found.ok_or(DomainRefusal::NotFound)?;
        let record = updated(record, provider_type, result)?;
        let check = self.next_check(&record, self.clock.now());
        store::update(&mut transaction, organization_id, &record, check).await?;
        let change = AuditChange::new("domain.verified", id).with(audit_metadata(&record));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction.commit().await.or_fault(doing)?;
        self.snapshots.forget(organization_id).await;
        Ok(record)
    }

    /// Removes a domain, at the provider too if the credentials allow it.
    ///
    /// # Errors
    /// Why it was not removed.
    pub async fn remove_domain(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        account_id: ProviderAccountId,
        id: DomainId,
    ) -> Result<(), DomainRefusal> {
        let (_, credentials) = self.open(organization_id, account_id).await?;
        let record = self.find_domain(organization_id, account_id, id).await?;
        let lock = self.lock(account_id, lock_resource(&record.domain)).await?;
        let lock = lock.ok_or(DomainRefusal::Busy)?;
        let provider_type = credentials.provider_type();
        let adapter = adapter(provider_type);
        let step = adapter.remove_domain(&self.access(&credentials), &record.domain);
        let removing = async {
            let at_provider = match self.run_domain_call(step).await {
                DomainResult::Missing => true,
                // The credentials cannot read it: only the record is removed.
                DomainResult::NotVisible { .. } => false,
                DomainResult::Known(_) => {
                    return Err(DomainRefusal::Undecided {
                        provider_type,
                        reason: "the provider still has the domain".to_owned(),
                    });
                }
                DomainResult::Refused { reason } => {
                    return Err(DomainRefusal::Refused {
                        provider_type,
                        reason,
                    });
                }
                DomainResult::Undecided { reason } => {
                    return Err(DomainRefusal::Undecided {
                        provider_type,
                        reason,
                    });
                }
            };
            self.delete_record(organization_id, origin, &record, at_provider)
                .await
        };
        let removed = removing.await;
        self.unlock(lock).await;
        removed
    }

    async fn delete_record(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        record: &DomainRecord,
        at_provider: bool,
    ) -> Result<(), DomainRefusal> {
        let doing = "remove a domain";
        let mut transaction = db::begin(&self.pool, doing).await?;
        if !store::delete(&mut transaction, organization_id, record.id).await? {
            return Err(DomainRefusal::NotFound);
        }
        let mut metadata = audit_metadata(record);
        metadata["removedAtProvider"] = json!(at_provider);
        let change = AuditChange::new("domain.deleted", record.id).with(metadata);
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction.commit().await.or_fault(doing)?;
        self.snapshots.forget(organization_id).await;
        Ok(())
    }

    async fn require_capacity(
        &self,
        organization_id: OrganizationId,
        account_id: ProviderAccountId,
        domain: &DomainName,
    ) -> Result<(), DomainRefusal> {
        let mut connection = self.pool.acquire().await.or_fault("count domains")?;
        let name = domain.as_str();
        let (count, has) = store::count(&mut connection, organization_id, account_id, name).await?;
        if has {
            return Err(DomainRefusal::Present);
        }
        let is_full = usize::try_from(count).is_ok_and(|count| count >= DOMAINS_MAX);
        if is_full {
            return Err(DomainRefusal::TooMany);
        }
        Ok(())
    }

    async fn find_domain(
        &self,
        organization_id: OrganizationId,
        account_id: ProviderAccountId,
        id: DomainId,
    ) -> Result<DomainRecord, DomainRefusal> {
        let mut connection = self.pool.acquire().await.or_fault("find a domain")?;
        let found = store::find(&mut connection, organization_id, account_id, id).await?;
        found.ok_or(DomainRefusal::NotFound)
    }

    /// The new record of an added domain, from the provider's reply.
    fn new_record(
        &self,
        account_id: ProviderAccountId,
        domain: &DomainName,
        provider_type: ProviderType,
        result: DomainResult,
    ) -> Result<DomainRecord, DomainRefusal> {
        let now = self.clock.now();
        let record = DomainRecord {
            id: self.ids.next_at(now),
            provider_account_id: account_id,
            domain: domain.as_str().to_owned(),
            state: DomainState::Unknown,
            dns_records: json!([]),
            created_at: now,
        };
        if result == DomainResult::Missing {
            return Err(DomainRefusal::Undecided {
                provider_type,
                reason: "the provider accepted the domain but does not list it yet".to_owned(),
            });
        }
        updated(record, provider_type, result)
    }

    async fn store_added(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        record: DomainRecord,
        idempotent: &Idempotent<'_, DomainRecord>,
    ) -> Result<DomainRecord, Failed<DomainRefusal>> {
        let doing = "add a domain";
        let mut transaction = idempotent.begin(&self.pool, doing).await?;
        let account_id = record.provider_account_id;
        if !store::lock_account(&mut transaction, organization_id, account_id).await? {
            return Err(DomainRefusal::AccountNotFound.into());
        }
        let check = self.next_check(&record, self.clock.now());
        if !store::insert(&mut transaction, organization_id, &record, check).await? {
            return Err(DomainRefusal::Present.into());
        }
        let change = AuditChange::new("domain.created", record.id).with(audit_metadata(&record));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        idempotent.commit(transaction, &record, doing).await?;
        self.snapshots.forget(organization_id).await;
        Ok(record)
    }

    async fn verify_at_provider(&self, credentials: &Credentials, domain: &str) -> DomainResult {
        let adapter = adapter(credentials.provider_type());
        let step = adapter.verify_domain(&self.access(credentials), domain);
        self.run_domain_call(step).await
    }

    async fn run_domain_call(&self, step: CallStep<DomainResult>) -> DomainResult {
        let result = self.run_conversation(step).await;
        result.unwrap_or_else(|reason| DomainResult::Undecided { reason })
    }

    fn next_check(&self, record: &DomainRecord, now: Timestamp) -> DomainCheck {
        DomainCheck {
            at: Some(now),
            next: now + recheck::wait(record.state, now - record.created_at, self.ids.fraction()),
        }
    }
}

/// When a domain from the provider's list is checked for the first time.
pub(super) fn first_check(state: DomainState, now: Timestamp, fraction: f64) -> Timestamp {
    now + recheck::wait(state, TimeDelta::zero(), fraction)
}

fn lock_resource(domain: &str) -> String {
    format!("domain:{domain}")
}

fn audit_metadata(record: &DomainRecord) -> serde_json::Value {
    json!({
        "providerAccountId": record.provider_account_id,
        "domain": record.domain,
        "state": record.state,
    })
}

/// The record after an result. If the provider cannot tell now, the last known values stay.
fn updated(
    mut record: DomainRecord,
    provider_type: ProviderType,
    result: DomainResult,
) -> Result<DomainRecord, DomainRefusal> {
    match result {
        DomainResult::Known(found) => {
            if found.state != DomainState::Unknown {
                record.state = found.state;
            }
            if !found.dns_records.is_empty() {
                record.dns_records = json!(found.dns_records);
            }
            Ok(record)
        }
        DomainResult::Missing => {
            record.state = DomainState::Unverified;
            Ok(record)
        }
        DomainResult::NotVisible { .. } => {
            record.state = DomainState::Unknown;
            Ok(record)
        }
        DomainResult::Refused { reason } => Err(DomainRefusal::Refused {
            provider_type,
            reason,
        }),
        DomainResult::Undecided { reason } => Err(DomainRefusal::Undecided {
            provider_type,
            reason,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_name_is_parsed_in_any_case_and_alphabet() {
        for (text, name) in [
            ("example.com", Some("example.com")),
            (" Mail.Example.COM. ", Some("mail.example.com")),
            ("müller.example", Some("xn--mller-kva.example")),
            ("localhost", None),
            ("", None),
            ("a b.example", None),
            ("example.com/x", None),
            ("ada@example.com", None),
            ("127.0.0.1", None),
            ("-a.example", None),
        ] {
            let read = DomainName::parse(text);
            assert_eq!(read.as_ref().map(DomainName::as_str), name, "{text}");
        }
    }
}
