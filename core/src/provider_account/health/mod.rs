//! How provider accounts do at the moment: whether calls to them are made and how fast (the
//! circuit and the rate, which the workers share through Redis), what is known to be wrong, and
//! how their latest calls ended. `domains` says how they did lately, by recipient domain.

pub mod domains;
pub(super) mod store;

use std::time::Duration;

use self::domains::{DomainFigures, HealthSpan, HealthWindow, WindowTotals};
use super::ProviderAccount;
use crate::account_limiter::circuits::{CircuitReader, SharedState};
use crate::clock::{Clock, Timestamp, delta};
use crate::db::{self, PgPool};
use crate::fault::Fault;
use crate::ids::{OrganizationId, ProviderAccountId};

/// The calls of this time are counted.
const PERIOD: Duration = Duration::from_mins(15);
/// The most calls of an account that are counted: its newest.
pub const CALLS_MAX: u32 = 1_000;

/// How an account does.
#[derive(Debug, Clone)]
pub struct AccountHealth {
    pub account: ProviderAccount,
    /// `None` while Redis does not answer.
    pub shared: Option<SharedState>,
    /// What is wrong with it now, by the names of the events.
    pub failures: Vec<AccountFailure>,
    pub calls: RecentCalls,
    /// What became of its mail; `None` in lists.
    pub windows: Option<WindowTotals>,
}

/// What became of an account's mail in a window.
#[derive(Debug, Clone)]
pub struct HealthByDomain {
    pub domains: Vec<DomainFigures>,
    pub span: HealthSpan,
}

/// One cause for which an account fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountFailure {
    pub cause: String,
    pub since: Timestamp,
}

/// The cause of a pause of sending.
const ACCOUNT_UNUSABLE: &str = "ACCOUNT_UNUSABLE";

impl AccountFailure {
    /// The names of all causes in the API.
    pub const CAUSES: [&'static str; 3] = [ACCOUNT_UNUSABLE, "CALLS_FAILED", "INVALID_CREDENTIALS"];
}

/// The latest calls of an account. Tests, which call nobody, are not counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentCalls {
    /// All calls since then are counted.
    pub since: Timestamp,
    pub accepted: u32,
    pub rejected: u32,
    pub throttled: u32,
    pub unavailable: u32,
    pub unknown: u32,
    /// Calls that have not ended.
    pub pending: u32,
    /// In milliseconds; `None` if no call ended.
    pub median_ms: Option<u32>,
    /// The 95th percentile, in milliseconds.
    pub p95_ms: Option<u32>,
    /// The newest call that the provider did not accept.
    pub last_failure: Option<FailedCall>,
}

/// A call that the provider did not accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCall {
    pub at: Timestamp,
    /// `REJECTED`, `THROTTLED`, `UNAVAILABLE` or `UNKNOWN`.
    pub outcome: String,
    pub status_code: Option<i32>,
    pub reason: Option<String>,
}

impl RecentCalls {
    /// No calls since then.
    fn none(since: Timestamp) -> Self {
        Self {
            since,
            accepted: 0,
            rejected: 0,
            throttled: 0,
            unavailable: 0,
            unknown: 0,
            pending: 0,
            median_ms: None,
            p95_ms: None,
            last_failure: None,
        }
    }
}

/// Reads the health of accounts. Cheap to clone.
#[derive(Clone)]
pub struct HealthReader {
    pub pool: PgPool,
    pub circuits: CircuitReader,
    pub clock: Clock,
}

impl HealthReader {
    /// The health of an organization's accounts, oldest account first.
    ///
    /// # Errors
    /// A fault if Postgres is unavailable.
    pub async fn list(&self, organization_id: OrganizationId) -> Result<Vec<AccountHealth>, Fault> {
        let mut connection = db::snapshot(&self.pool, "show the health of accounts").await?;
        let accounts = super::store::list(&mut connection, organization_id).await?;
        self.read(&mut connection, organization_id, accounts).await
    }

    /// The health of one account; `None` if it does not exist.
    ///
    /// # Errors
    /// A fault if Postgres is unavailable.
    pub async fn find(
        &self,
        organization_id: OrganizationId,
        id: ProviderAccountId,
    ) -> Result<Option<AccountHealth>, Fault> {
        let mut connection = db::snapshot(&self.pool, "show the health of an account").await?;
        let account = super::store::find(&mut connection, organization_id, id).await?;
        let Some(account) = account else {
            return Ok(None);
        };
        let now = self.clock.now();
        let windows = domains::read_totals(&mut connection, organization_id, id, now).await?;
        let found = self.read(&mut connection, organization_id, vec![account]);
        let found = found.await?.pop();
        Ok(found.map(|health| AccountHealth {
            windows: Some(windows),
            ..health
        }))
    }

    /// How one account did in a window, by recipient domain; `None` if it does not exist.
    ///
    /// # Errors
    /// A fault if Postgres is unavailable.
    pub async fn by_domain(
        &self,
        organization_id: OrganizationId,
        id: ProviderAccountId,
        window: HealthWindow,
    ) -> Result<Option<HealthByDomain>, Fault> {
        let mut connection = db::snapshot(&self.pool, "show the health of an account").await?;
        let account = super::store::find(&mut connection, organization_id, id).await?;
        if account.is_none() {
            return Ok(None);
        }
        let span = window.at(self.clock.now());
        let domains = domains::read(&mut connection, organization_id, id, span).await?;
        Ok(Some(HealthByDomain { domains, span }))
    }

    async fn read(
        &self,
        connection: &mut db::PgConnection,
        organization_id: OrganizationId,
        accounts: Vec<ProviderAccount>,
    ) -> Result<Vec<AccountHealth>, Fault> {
        let now = self.clock.now();
        let since = now - delta(PERIOD);
        let ids: Vec<ProviderAccountId> = accounts.iter().map(|account| account.id).collect();
        let revisions = store::list_revisions(&mut *connection, organization_id, &ids).await?;
        let mut failures =
            store::list_failures(&mut *connection, organization_id, &ids, now).await?;
        let mut calls = store::count_calls(connection, organization_id, &ids, since).await?;
        let shared = self.circuits.read(&revisions).await;
        let health = accounts.into_iter().map(|account| {
            let id = account.id;
            let paused = account.paused.as_ref().map(|paused| AccountFailure {
                cause: ACCOUNT_UNUSABLE.to_owned(),
                since: paused.since,
            });
            let others = failures.remove(&id).unwrap_or_default();
            AccountHealth {
                shared: shared.as_ref().map(|known| known.of(id)),
                failures: paused.into_iter().chain(others).collect(),
                calls: calls
                    .remove(&id)
                    .unwrap_or_else(|| RecentCalls::none(since)),
                windows: None,
                account,
            }
        });
        Ok(health.collect())
    }
}
