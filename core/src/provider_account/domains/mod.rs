//! Single domains of an account: added, checked and removed, at the provider where
//! its API allows and in our records. Where the credentials cannot see domains, a
//! domain is recorded all the same, as unknown.
//!
//! The provider is asked first and the record follows, in one transaction with its
//! audit entry. Whoever repeats a request after a crash finds at the provider what
//! was done there: nothing is made twice.

mod recheck;
pub mod store;

use chrono::TimeDelta;
use serde_json::json;

use super::claim;
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
use crate::provider::domain::{DOMAINS_MAX, DomainState};
use crate::provider::kind::ProviderType;
use crate::provider::management::DomainAnswer;
pub use recheck::DueDomain;
use store::DomainCheck;

/// The name of a sender domain, in lower-case ASCII.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainName(String);

impl DomainName {
    /// Reads a name with at least two labels, in any case, perhaps with a dot at the
    /// end; of other letters than ASCII's it takes the ASCII form (IDNA).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_suffix('.').unwrap_or(text);
        ascii_domain(text).map(Self)
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a domain was not added, checked or removed.
#[derive(Debug)]
pub enum DomainRefusal {
    /// There is no such account.
    AccountNotFound,
    /// The account has no such domain.
    NotFound,
    /// The account has the domain.
    Present,
    /// Another request is at it.
    Busy,
    /// The account has as many as it may have.
    TooMany,
    Refused {
        provider_type: ProviderType,
        reason: String,
    },
    /// The provider gave no answer.
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
    /// Why it was not added. Where the provider gave no answer it may have it now:
    /// the same request again finds it.
    pub async fn add_domain(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        account_id: ProviderAccountId,
        domain: &DomainName,
        once: &Idempotent<'_, DomainRecord>,
    ) -> Result<DomainRecord, Failed<DomainRefusal>> {
        once.look_up(&self.pool).await?;
        let (_, credentials) = self
            .open(organization_id, account_id)
            .await
            .map_err(DomainRefusal::from)?;
        // Looked for and counted only in its turn: what another request with the same key
        // has just added would be refused before it.
        let turn = self.claim(account_id, subject(domain.as_str())).await?;
        let turn = turn.ok_or(DomainRefusal::Busy)?;
        let adding = async {
            // Somebody else may have done it while this one waited.
            once.look_up(&self.pool).await?;
            self.require_room(organization_id, account_id, domain)
                .await?;
            let adapter = adapter(credentials.provider_type());
            let step = adapter.add_domain(&self.access(&credentials), domain.as_str());
            let answer = self.hear(step).await;
            let record = self.record_of(account_id, domain, credentials.provider_type(), answer)?;
            self.store_added(organization_id, origin, record, once)
                .await
        };
        let added = adding.await;
        self.give_up(turn).await;
        added
    }

    /// Lets the provider look at a domain now.
    ///
    /// # Errors
    /// Why there is no answer; the record is untouched then.
    pub async fn verify_domain(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        account_id: ProviderAccountId,
        id: DomainId,
    ) -> Result<DomainRecord, DomainRefusal> {
        let (_, credentials) = self.open(organization_id, account_id).await?;
        let record = self.find_domain(organization_id, account_id, id).await?;
        let answer = self.ask_about(&credentials, &record.domain).await;
        let provider_type = credentials.provider_type();
        let doing = "verify a domain";
        let mut transaction = db::begin(&self.pool, doing).await?;
        let found = store::find(&mut transaction, organization_id, account_id, id).await?;
        let record = found.ok_or(DomainRefusal::NotFound)?;
        let record = updated(record, provider_type, answer)?;
        let look = self.look_at(&record, self.clock.now());
        store::update(&mut transaction, organization_id, &record, look).await?;
        let change = AuditChange::new("domain.verified", id).with(particulars(&record));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction.commit().await.or_fault(doing)?;
        self.snapshots.forget(organization_id).await;
        Ok(record)
    }

    /// Removes a domain, at the provider too where the credentials may.
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
        let turn = self.claim(account_id, subject(&record.domain)).await?;
        let turn = turn.ok_or(DomainRefusal::Busy)?;
        let provider_type = credentials.provider_type();
        let adapter = adapter(provider_type);
        let step = adapter.remove_domain(&self.access(&credentials), &record.domain);
        let removing = async {
            let at_provider = match self.hear(step).await {
                DomainAnswer::Missing => true,
                // It cannot be seen there: the record is all there is.
                DomainAnswer::NotVisible { .. } => false,
                DomainAnswer::Known(_) => {
                    return Err(DomainRefusal::Undecided {
                        provider_type,
                        reason: "the provider still has the domain".to_owned(),
                    });
                }
                DomainAnswer::Refused { reason } => {
                    return Err(DomainRefusal::Refused {
                        provider_type,
                        reason,
                    });
                }
                DomainAnswer::Undecided { reason } => {
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
        self.give_up(turn).await;
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
        let mut metadata = particulars(record);
        metadata["removedAtProvider"] = json!(at_provider);
        let change = AuditChange::new("domain.deleted", record.id).with(metadata);
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction.commit().await.or_fault(doing)?;
        self.snapshots.forget(organization_id).await;
        Ok(())
    }

    async fn require_room(
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

    /// The record of a domain that is added, as the provider's answer has it.
    fn record_of(
        &self,
        account_id: ProviderAccountId,
        domain: &DomainName,
        provider_type: ProviderType,
        answer: DomainAnswer,
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
        if answer == DomainAnswer::Missing {
            return Err(DomainRefusal::Undecided {
                provider_type,
                reason: "the provider took the domain and does not show it yet".to_owned(),
            });
        }
        updated(record, provider_type, answer)
    }

    async fn store_added(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        record: DomainRecord,
        once: &Idempotent<'_, DomainRecord>,
    ) -> Result<DomainRecord, Failed<DomainRefusal>> {
        let doing = "add a domain";
        let mut transaction = once.begin(&self.pool, doing).await?;
        let account_id = record.provider_account_id;
        if !store::keep_account(&mut transaction, organization_id, account_id).await? {
            return Err(DomainRefusal::AccountNotFound.into());
        }
        let look = self.look_at(&record, self.clock.now());
        if !store::insert(&mut transaction, organization_id, &record, look).await? {
            return Err(DomainRefusal::Present.into());
        }
        let change = AuditChange::new("domain.created", record.id).with(particulars(&record));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        once.commit(transaction, &record, doing).await?;
        self.snapshots.forget(organization_id).await;
        Ok(record)
    }

    async fn ask_about(&self, credentials: &Credentials, domain: &str) -> DomainAnswer {
        let adapter = adapter(credentials.provider_type());
        let step = adapter.verify_domain(&self.access(credentials), domain);
        self.hear(step).await
    }

    /// Holds a conversation to its end, within bounds.
    async fn hear(&self, step: CallStep<DomainAnswer>) -> DomainAnswer {
        let run = tokio::time::timeout(claim::WORK_MAX, self.transport.run(step));
        match run.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => DomainAnswer::Undecided {
                reason: error.to_string(),
            },
            Err(elapsed) => DomainAnswer::Undecided {
                reason: elapsed.to_string(),
            },
        }
    }

    fn look_at(&self, record: &DomainRecord, now: Timestamp) -> DomainCheck {
        DomainCheck {
            at: Some(now),
            next: now + recheck::wait(record.state, now - record.created_at, self.ids.fraction()),
        }
    }
}

/// When a domain that was just found is to be looked at again.
pub(super) fn first_look(state: DomainState, now: Timestamp, fraction: f64) -> Timestamp {
    now + recheck::wait(state, TimeDelta::zero(), fraction)
}

fn subject(domain: &str) -> String {
    format!("domain:{domain}")
}

fn particulars(record: &DomainRecord) -> serde_json::Value {
    json!({
        "providerAccountId": record.provider_account_id,
        "domain": record.domain,
        "state": record.state,
    })
}

/// A record brought up to date by an answer. Where the provider cannot tell at the
/// moment, what it last said stands.
fn updated(
    mut record: DomainRecord,
    provider_type: ProviderType,
    answer: DomainAnswer,
) -> Result<DomainRecord, DomainRefusal> {
    match answer {
        DomainAnswer::Known(found) => {
            if found.state != DomainState::Unknown {
                record.state = found.state;
            }
            if !found.dns_records.is_empty() {
                record.dns_records = json!(found.dns_records);
            }
            Ok(record)
        }
        DomainAnswer::Missing => {
            record.state = DomainState::Unverified;
            Ok(record)
        }
        DomainAnswer::NotVisible { .. } => {
            record.state = DomainState::Unknown;
            Ok(record)
        }
        DomainAnswer::Refused { reason } => Err(DomainRefusal::Refused {
            provider_type,
            reason,
        }),
        DomainAnswer::Undecided { reason } => Err(DomainRefusal::Undecided {
            provider_type,
            reason,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_name_is_read_in_any_case_and_alphabet() {
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
