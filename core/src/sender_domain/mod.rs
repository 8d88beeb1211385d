//! Sender domains across the accounts that have them: what DNS itself says, beside the
//! verdict of each provider. Accounts want records of a domain (`provider_domains`); a check
//! looks them up, and the domain's SPF records and DMARC policy; the facts are stored, and a
//! report is computed of them and of what accounts want now.
//!
//! A domain breaks if records were there and two checks in a row, ten minutes apart, miss
//! them; a look-up that fails says nothing. Sending does not depend on any of this: there the
//! provider's verdict decides. No transaction spans a look-up.

pub mod conflict;
pub mod dmarc;
pub mod look_ups;
pub mod record;
pub mod report;
pub mod spf;
pub mod state;
pub mod store;

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::TimeDelta;
use serde_json::{Value, json};
use tracing::info;
use uuid::Uuid;

use crate::audit::{self, AuditChange, Origin};
use crate::clock::{Clock, Timestamp};
use crate::db::{self, OrFault, PgConnection, PgPool};
use crate::dns::DnsResolver;
use crate::fault::Fault;
use crate::ids::{DomainId, Ids, OrganizationId, ProviderAccountId};
use crate::organization::limiter::TenantLimiter;
use crate::provider::domain::{DnsRecord, DomainState};
use crate::provider::kind::ProviderType;
use crate::webhook::event_type::WebhookEventType;
use look_ups::DnsFacts;
use report::{AccountReport, DomainReport, SenderDomainStatus};
use state::{CONFIRM_AFTER, FoundChange, FoundState};
use store::{CheckResult, StoredCheck};

/// When a leased check is due again if the process dies: longer than any check takes.
const LEASE: TimeDelta = TimeDelta::minutes(2);
/// The longest wait until a domain with missing records is checked again.
const INCOMPLETE_WAIT_MAX: TimeDelta = TimeDelta::hours(1);
/// The longest wait after a check whose look-ups failed.
const UNKNOWN_WAIT_MAX: TimeDelta = TimeDelta::minutes(15);

/// What an account wants of a domain.
#[derive(Debug, Clone)]
pub struct AccountDomain {
    pub id: DomainId,
    pub provider_account_id: ProviderAccountId,
    pub provider_type: ProviderType,
    /// The name of the account.
    pub display_name: String,
    /// The name of the domain, in ASCII.
    pub domain: String,
    /// The provider's verdict.
    pub state: DomainState,
    pub records: Vec<DnsRecord>,
}

/// A domain in a list.
#[derive(Debug, Clone)]
pub struct SenderDomainSummary {
    pub domain: String,
    pub provider_account_ids: Vec<Uuid>,
    /// See [`SenderDomainStatus`].
    pub status: String,
    /// See [`conflict::ConflictCode`].
    pub conflicts: Vec<String>,
    pub checked_at: Option<Timestamp>,
    pub broken_since: Option<Timestamp>,
}

/// A domain, judged by the last check.
#[derive(Debug, Clone)]
pub struct SenderDomain {
    pub report: DomainReport,
    pub status: SenderDomainStatus,
    pub checked_at: Option<Timestamp>,
    pub broken_since: Option<Timestamp>,
}

/// A domain whose check is due.
#[derive(Debug, Clone)]
pub struct DueSenderDomain {
    pub organization_id: OrganizationId,
    pub domain: String,
    pub leased_until: Timestamp,
}

/// The sender domains of all organizations. Cheap to clone.
#[derive(Clone)]
pub struct SenderDomains {
    pub pool: PgPool,
    pub resolver: DnsResolver,
    /// How long after a check a domain is checked again.
    pub interval: Duration,
    /// Limits the checks in flight for which a client waits.
    pub limiter: TenantLimiter,
    pub clock: Clock,
    pub ids: Ids,
}

impl SenderDomains {
    /// A domain as the last check found it; `None` if no account has it.
    ///
    /// # Errors
    /// A fault.
    pub async fn find(
        &self,
        organization_id: OrganizationId,
        domain: &str,
    ) -> Result<Option<SenderDomain>, Fault> {
        let mut connection = self.pool.acquire().await.or_fault("find a sender domain")?;
        let accounts = store::list_accounts(&mut connection, organization_id, domain).await?;
        if accounts.is_empty() {
            return Ok(None);
        }
        let stored = store::find(&mut connection, organization_id, domain).await?;
        let facts = stored.as_ref().and_then(|stored| stored.facts.clone());
        let report = DomainReport::of(domain, accounts, &read_facts(facts));
        let broken_since = stored.as_ref().and_then(|stored| stored.broken_since);
        Ok(Some(SenderDomain {
            status: report.status(broken_since.is_some()),
            report,
            checked_at: stored.and_then(|stored| stored.checked_at),
            broken_since,
        }))
    }

    /// Looks up a domain now; `None` if no account has it.
    ///
    /// # Errors
    /// A fault, also if too many checks of the organization are under way.
    pub async fn check(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        domain: &str,
    ) -> Result<Option<SenderDomain>, Fault> {
        let doing = "check a sender domain";
        let _permit = self.limiter.acquire_timeout(organization_id, doing).await?;
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        let leased_until = self.clock.now() + LEASE;
        store::postpone(&mut connection, organization_id, domain, leased_until).await?;
        drop(connection);
        let due = DueSenderDomain {
            organization_id,
            domain: domain.to_owned(),
            leased_until,
        };
        self.run(&due, Some(origin)).await
    }

    /// Leases checks that are due; none if there is no server to ask.
    ///
    /// # Errors
    /// A fault.
    pub async fn lease_due(&self, limit: usize) -> Result<Vec<DueSenderDomain>, Fault> {
        if !self.resolver.is_enabled() {
            return Ok(Vec::new());
        }
        let doing = "lease due checks of sender domains";
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        let now = self.clock.now();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        store::lease(&mut connection, limit, now, now + LEASE).await
    }

    /// Checks a domain that is due, and stores the result.
    ///
    /// # Errors
    /// A fault.
    pub async fn check_due(&self, due: &DueSenderDomain) -> Result<(), Fault> {
        self.run(due, None).await.map(drop)
    }

    async fn run(
        &self,
        due: &DueSenderDomain,
        origin: Option<&Origin>,
    ) -> Result<Option<SenderDomain>, Fault> {
        let doing = "check a sender domain";
        let (organization_id, domain) = (due.organization_id, due.domain.as_str());
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        let accounts = store::list_accounts(&mut connection, organization_id, domain).await?;
        if accounts.is_empty() {
            store::delete(&mut connection, organization_id, domain, due.leased_until).await?;
            return Ok(None);
        }
        drop(connection);
        let facts = look_ups::look_up(&self.resolver, domain, &accounts).await;
        let mut transaction = db::begin(&self.pool, doing).await?;
        let now = self.clock.now();
        let stored = store::lock(&mut transaction, organization_id, domain, now).await?;
        // Accounts may have changed meanwhile.
        let accounts = store::list_accounts(&mut transaction, organization_id, domain).await?;
        let report = DomainReport::of(domain, accounts, &facts);
        let states = self
            .advance(&mut transaction, organization_id, &report, (&stored, now))
            .await?;
        let broken = states.values().filter_map(|state| state.broken_since);
        let broken_since = broken.min();
        let checked = SenderDomain {
            status: report.status(broken_since.is_some()),
            report,
            checked_at: Some(now),
            broken_since,
        };
        let is_to_confirm = states.values().any(FoundState::is_to_confirm);
        let result = CheckResult {
            checked_at: now,
            leased_until: due.leased_until,
            next: now + self.wait(checked.status, is_to_confirm),
            status: checked.status.as_str(),
            conflicts: checked.codes(),
            facts: json!(facts),
            states: json!(states),
            broken_since,
        };
        store::update(&mut transaction, organization_id, domain, &result).await?;
        if let Some(origin) = origin {
            let change = AuditChange::new("sender_domain.checked", stored.id)
                .with(json!({ "domain": domain, "status": result.status }));
            self.record(&mut transaction, organization_id, origin, &change)
                .await?;
        }
        transaction.commit().await.or_fault(doing)?;
        Ok(Some(checked))
    }

    /// Records what the check says of each account, and announces what changed.
    async fn advance(
        &self,
        connection: &mut PgConnection,
        organization_id: OrganizationId,
        report: &DomainReport,
        (stored, now): (&StoredCheck, Timestamp),
    ) -> Result<BTreeMap<DomainId, FoundState>, Fault> {
        let mut before: BTreeMap<DomainId, FoundState> =
            serde_json::from_value(stored.states.clone()).unwrap_or_default();
        let mut states = BTreeMap::new();
        for account in &report.accounts {
            let id = account.account.id;
            let mut state = before.remove(&id).unwrap_or_default();
            if let Some(change) = state.advance(account, now) {
                let event_type = match change {
                    FoundChange::Broken => WebhookEventType::DomainBroken,
                    FoundChange::Restored => WebhookEventType::DomainVerified,
                };
                let content = content(account, &state);
                let name = event_type.as_str();
                store::announce(connection, organization_id, name, now, &content).await?;
                info!(domain.id = %id, event = name, "DNS records of domain {id} changed");
            }
            states.insert(id, state);
        }
        Ok(states)
    }

    /// The wait until the next check, shifted by up to a tenth either way.
    fn wait(&self, status: SenderDomainStatus, is_to_confirm: bool) -> TimeDelta {
        let interval = TimeDelta::from_std(self.interval).unwrap_or(TimeDelta::MAX);
        let wait = match status {
            SenderDomainStatus::Complete => interval,
            SenderDomainStatus::Incomplete | SenderDomainStatus::Broken => {
                interval.min(INCOMPLETE_WAIT_MAX)
            }
            SenderDomainStatus::Unknown => interval.min(UNKNOWN_WAIT_MAX),
        };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "milliseconds of some hours fit, and their parts do not matter"
        )]
        let shift = (wait.num_milliseconds() as f64 * (self.ids.fraction() - 0.5) / 5.0) as i64;
        let wait = wait + TimeDelta::milliseconds(shift);
        match is_to_confirm {
            true => wait.min(CONFIRM_AFTER),
            false => wait,
        }
    }

    async fn record(
        &self,
        connection: &mut PgConnection,
        organization_id: OrganizationId,
        origin: &Origin,
        change: &AuditChange,
    ) -> Result<(), Fault> {
        let (ids, now) = (&self.ids, self.clock.now());
        audit::store::insert(connection, organization_id, origin, change, ids, now).await
    }
}

impl SenderDomain {
    /// The codes of the conflicts, each once.
    fn codes(&self) -> Vec<String> {
        let mut codes: Vec<String> = Vec::new();
        for conflict in &self.report.conflicts {
            let code = conflict.code.as_str();
            if !codes.iter().any(|known| known == code) {
                codes.push(code.to_owned());
            }
        }
        codes
    }
}

/// Reads stored facts. Those of another version count as none: the next check replaces them.
#[must_use]
pub fn read_facts(stored: Option<Value>) -> DnsFacts {
    let facts = stored.and_then(|stored| serde_json::from_value(stored).ok());
    facts.unwrap_or_default()
}

/// What an event says of an account's domain.
fn content(report: &AccountReport, state: &FoundState) -> Value {
    let account = &report.account;
    let lost = state.lost(report).map(|(record, status)| {
        json!({
            "type": record.record_type,
            "name": record.name,
            "purpose": record.purpose,
            "foundStatus": status.as_str(),
        })
    });
    json!({
        "domainId": account.id,
        "domain": account.domain,
        "providerAccountId": account.provider_account_id,
        "state": account.state,
        "source": "dns",
        "records": lost.collect::<Vec<Value>>(),
    })
}
