//! Domains are looked at again by the clock: those that are waited for every few
//! minutes at first and then hourly, verified ones once a day. What a look finds is
//! written down; a change of the state is audited too, as the system's.

use chrono::TimeDelta;
use tracing::{debug, info};
use uuid::Uuid;

use super::store::{self, DomainCheck};
use super::{Accounts, DomainRefusal, particulars, updated};
use crate::audit::{AuditChange, Origin};
use crate::db::{self, OrFault};
use crate::fault::Fault;
use crate::ids::{DomainId, OrganizationId, ProviderAccountId};
use crate::provider::domain::DomainState;
use crate::provider::kind::ProviderType;
use crate::provider_account::AccountRefusal;

/// How long after it was added a domain is waited for eagerly.
const EAGER_FOR: TimeDelta = TimeDelta::hours(1);
/// The waits between looks.
const EAGER_WAIT: TimeDelta = TimeDelta::minutes(3);
const PATIENT_WAIT: TimeDelta = TimeDelta::hours(1);
const VERIFIED_WAIT: TimeDelta = TimeDelta::days(1);
/// The wait after a look that got no answer.
const UNANSWERED_WAIT: TimeDelta = TimeDelta::minutes(10);
/// When a domain that was taken is due again, where whoever took it died: longer than
/// a look takes at the most.
const TAKEN_FOR: TimeDelta = TimeDelta::minutes(5);

/// A domain whose look is due.
#[derive(Debug, Clone)]
pub struct DueDomain {
    pub id: DomainId,
    /// Whose account it belongs to.
    pub organization_id: OrganizationId,
    pub provider_account_id: ProviderAccountId,
    pub domain: String,
}

/// How long a domain of this age is left alone: up to a tenth more or less, by
/// `fraction`, so that what was imported together is not asked for together.
pub(super) fn wait(state: DomainState, age: TimeDelta, fraction: f64) -> TimeDelta {
    let wait = match state {
        DomainState::Unverified if age < EAGER_FOR => EAGER_WAIT,
        DomainState::Unverified => PATIENT_WAIT,
        // What cannot be seen will not be seen soon.
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
    /// Takes domains of one provider whose look is due, one of an account. They are
    /// not due again for a while, whatever becomes of who took them.
    pub async fn take_due_domains(
        &self,
        provider_type: ProviderType,
        most: usize,
    ) -> Result<Vec<DueDomain>, Fault> {
        let doing = "take domains that are due";
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        let now = self.clock.now();
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        store::lease(&mut connection, provider_type, most, now, now + TAKEN_FOR).await
    }

    /// Looks at a domain and writes down what is found. Where there is no answer the
    /// others of its account are left alone for a while too.
    pub async fn recheck_domain(&self, due: &DueDomain) -> Result<(), Fault> {
        let (organization_id, account_id) = (due.organization_id, due.provider_account_id);
        let credentials = match self.open(organization_id, account_id).await {
            Ok((_, credentials)) => credentials,
            Err(AccountRefusal::Fault(fault)) => return Err(fault),
            // The account is gone, and its domains with it.
            Err(_) => return Ok(()),
        };
        let provider_type = credentials.provider_type();
        let answer = self.ask_about(&credentials, &due.domain).await;
        let update = |record| updated(record, provider_type, answer);
        match self.write_look(due, update).await {
            Ok(()) | Err(DomainRefusal::NotFound) => Ok(()),
            Err(DomainRefusal::Fault(fault)) => Err(fault),
            // Why is in the provider's words, which may repeat what was sent to it.
            Err(_) => {
                debug!(account.id = %account_id, "Domains are looked at later");
                let doing = "postpone looks at domains";
                let mut connection = self.pool.acquire().await.or_fault(doing)?;
                let next = self.clock.now() + UNANSWERED_WAIT;
                store::postpone(&mut connection, organization_id, account_id, next).await
            }
        }
    }

    async fn write_look(
        &self,
        due: &DueDomain,
        update: impl FnOnce(super::DomainRecord) -> Result<super::DomainRecord, DomainRefusal>,
    ) -> Result<(), DomainRefusal> {
        let doing = "write down a look at a domain";
        let (organization_id, account_id) = (due.organization_id, due.provider_account_id);
        let mut transaction = db::begin(&self.pool, doing).await?;
        let found = store::find(&mut transaction, organization_id, account_id, due.id).await?;
        let record = found.ok_or(DomainRefusal::NotFound)?;
        let before = record.state;
        let record = update(record)?;
        let now = self.clock.now();
        let look: DomainCheck = self.look_at(&record, now);
        store::update(&mut transaction, organization_id, &record, look).await?;
        if record.state != before {
            let action = match record.state {
                DomainState::Verified => "domain.verified",
                DomainState::Unverified | DomainState::Unknown => "domain.unverified",
            };
            let change = AuditChange::new(action, record.id).with(particulars(&record));
            self.record(&mut transaction, organization_id, &self.system(), &change)
                .await?;
        }
        transaction.commit().await.or_fault(doing)?;
        if record.state != before {
            self.snapshots.forget(organization_id).await;
            info!(domain.id = %record.id, state = record.state.as_str(), "A domain's state changed");
        }
        Ok(())
    }

    fn system(&self) -> Origin {
        Origin::system(self.ids.next::<Uuid>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_frequent_at_first_and_rare_later() {
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
