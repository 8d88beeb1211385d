//! Rechecks domains: unverified ones every few minutes at first and then hourly, verified
//! ones once a day. The result is stored; a change of the state also gets an audit entry
//! with the system as its origin.

use chrono::TimeDelta;
use tracing::{debug, info};
use uuid::Uuid;

use super::store::{self, DomainCheck};
use super::{Accounts, DomainRefusal, audit_metadata, updated};
use crate::audit::{AuditChange, Origin};
use crate::db::{self, OrFault};
use crate::fault::Fault;
use crate::ids::{DomainId, OrganizationId, ProviderAccountId};
use crate::provider::domain::DomainState;
use crate::provider::kind::ProviderType;
use crate::provider_account::AccountRefusal;

/// How long after its creation an unverified domain is checked often.
const FREQUENT_FOR: TimeDelta = TimeDelta::hours(1);
/// The waits between checks.
const FREQUENT_WAIT: TimeDelta = TimeDelta::minutes(3);
const HOURLY_WAIT: TimeDelta = TimeDelta::hours(1);
const VERIFIED_WAIT: TimeDelta = TimeDelta::days(1);
/// The wait after a check without a usable reply.
const UNANSWERED_WAIT: TimeDelta = TimeDelta::minutes(10);
/// When a leased domain is due again if the process dies: longer than any check takes.
const LEASE: TimeDelta = TimeDelta::minutes(5);

/// A domain whose check is due.
#[derive(Debug, Clone)]
pub struct DueDomain {
    pub id: DomainId,
    pub organization_id: OrganizationId,
    pub provider_account_id: ProviderAccountId,
    pub domain: String,
}

/// The wait until the next check of a domain of this age. `fraction` shifts it by up to a
/// tenth either way, so that domains imported together are not checked together.
pub(super) fn wait(state: DomainState, age: TimeDelta, fraction: f64) -> TimeDelta {
    let wait = match state {
        DomainState::Unverified if age < FREQUENT_FOR => FREQUENT_WAIT,
        DomainState::Unverified => HOURLY_WAIT,
        // A domain that cannot be read will not become readable soon.
        DomainState::Verified | DomainState::Unknown => VERIFIED_WAIT,
    };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "seconds of a day fit, and their parts do not matter"
    )]
    let shift = (wait.num_seconds() as f64 * (fraction - 0.5) / 5.0) as i64;
    wait + TimeDelta::seconds(shift)
}

impl Accounts {
    /// Whether a domain is due, of whatever account.
    pub async fn is_any_domain_due(&self) -> Result<bool, Fault> {
        let doing = "find domains that are due";
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        store::is_any_due(&mut connection, self.clock.now()).await
    }

    /// Leases due domains of one provider, at most one per account. They are due again
    /// later even if the process dies.
    pub async fn lease_due_domains(
        &self,
        provider_type: ProviderType,
        limit: usize,
    ) -> Result<Vec<DueDomain>, Fault> {
        let doing = "take domains that are due";
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        let now = self.clock.now();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        store::lease(&mut connection, provider_type, limit, now, now + LEASE).await
    }

    /// Checks a domain and stores the result. Without a usable reply, the checks of all
    /// domains of its account are postponed.
    pub async fn recheck_domain(&self, due: &DueDomain) -> Result<(), Fault> {
        let (organization_id, account_id) = (due.organization_id, due.provider_account_id);
        let credentials = match self.open(organization_id, account_id).await {
            Ok((_, credentials)) => credentials,
            Err(AccountRefusal::Fault(fault)) => return Err(fault),
            // The account was removed, and its domains with it.
            Err(_) => return Ok(()),
        };
        let provider_type = credentials.provider_type();
        let result = self.verify_at_provider(&credentials, &due.domain).await;
        let update = |record| updated(record, provider_type, result);
        match self.store_check(due, update).await {
            Ok(()) | Err(DomainRefusal::NotFound) => Ok(()),
            Err(DomainRefusal::Fault(fault)) => Err(fault),
            // The reason is not logged: the provider's text may repeat the request.
            Err(_) => {
                debug!(account.id = %account_id, "No usable reply to a domain check; postponing the checks of its account");
                let doing = "postpone domain checks";
                let mut connection = self.pool.acquire().await.or_fault(doing)?;
                let next = self.clock.now() + UNANSWERED_WAIT;
                store::postpone(&mut connection, organization_id, account_id, next).await
            }
        }
    }

    async fn store_check(
        &self,
        due: &DueDomain,
        update: impl FnOnce(super::DomainRecord) -> Result<super::DomainRecord, DomainRefusal>,
    ) -> Result<(), DomainRefusal> {
        let doing = "store a domain check";
        let (organization_id, account_id) = (due.organization_id, due.provider_account_id);
        let mut transaction = db::begin(&self.pool, doing).await?;
        let found = store::find(&mut transaction, organization_id, account_id, due.id).await?;
        let record = found.ok_or(DomainRefusal::NotFound)?;
        let before = record.state;
        let record = update(record)?;
        let now = self.clock.now();
        let check: DomainCheck = self.next_check(&record, now);
        store::update(&mut transaction, organization_id, &record, check).await?;
        if record.state != before {
            let action = match record.state {
                DomainState::Verified => "domain.verified",
                DomainState::Unverified | DomainState::Unknown => "domain.unverified",
            };
            let change = AuditChange::new(action, record.id).with(audit_metadata(&record));
            self.record(
                &mut transaction,
                organization_id,
                &self.system_origin(),
                &change,
            )
            .await?;
        }
        transaction.commit().await.or_fault(doing)?;
        if record.state != before {
            self.snapshots.forget(organization_id).await;
            info!(domain.id = %record.id, state = record.state.as_str(), "Domain {} is now {}", record.id, record.state.as_str());
        }
        Ok(())
    }

    fn system_origin(&self) -> Origin {
        Origin::system(self.ids.next::<Uuid>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_frequent_at_first_and_rare_later() {
        let minutes = |state, age, fraction| wait(state, age, fraction).num_minutes();
        let (young, old) = (TimeDelta::minutes(59), TimeDelta::minutes(60));
        assert_eq!(minutes(DomainState::Unverified, young, 0.5), 3);
        assert_eq!(minutes(DomainState::Unverified, old, 0.5), 60);
        assert_eq!(minutes(DomainState::Unverified, old, 0.0), 54);
        assert_eq!(minutes(DomainState::Unverified, old, 1.0), 66);
        assert_eq!(minutes(DomainState::Verified, young, 0.5), 24 * 60);
        assert_eq!(minutes(DomainState::Unknown, young, 0.5), 24 * 60);
    }
}
