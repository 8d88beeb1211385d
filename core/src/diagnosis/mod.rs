//! What `waypost-api doctor` asks about a running installation beside its servers: mail that
//! waits too long, webhook endpoints that fail, providers that cannot be reached. Only facts: the
//! command judges them, and nothing here changes anything.

pub mod store;

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::time::timeout;

use crate::clock::{Clock, Timestamp};
use crate::crypto::seal::Sealer;
use crate::db::PgConnection;
use crate::fault::Fault;
use crate::ids::{OrganizationId, ProviderAccountId, WebhookEndpointId};
use crate::provider::credentials::Credentials;
use crate::provider::kind::ProviderType;
use crate::provider::transport::Transport;
use crate::provider::{AccountAccess, ProviderHosts, reach};

/// Accounts whose providers are called: one for each host.
const HOSTS_MAX: usize = 50;
/// Hosts that are called at the same time.
const CALLS_AT_ONCE: usize = 8;
/// How long a host may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Jobs that no worker has.
#[derive(Debug, Clone)]
pub struct Backlog {
    /// Those that are due.
    pub jobs: i64,
    /// How long the oldest is due.
    pub oldest: Duration,
    /// Those that wait: for another try, as a rule. Scheduled messages are not counted.
    pub waiting: i64,
}

/// An active account to which too many calls fail.
#[derive(Debug, Clone)]
pub struct FailingAccount {
    pub id: ProviderAccountId,
    pub provider_type: ProviderType,
    pub failing_since: Timestamp,
    /// What the newest failed call was answered.
    pub last_answer: Option<String>,
}

/// A webhook endpoint whose calls fail, or that was switched off because they did.
#[derive(Debug, Clone)]
pub struct FailingEndpoint {
    pub id: WebhookEndpointId,
    pub organization_id: OrganizationId,
    pub url: String,
    /// Whether events are still delivered to it.
    pub is_active: bool,
    pub failing_since: Timestamp,
    /// The error or the status of the last failed call.
    pub last_error: Option<String>,
}

/// A provider that cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreachableProvider {
    pub provider_type: ProviderType,
    /// Such as `api.sendgrid.com`.
    pub host: String,
    pub reason: String,
}

/// Calls the provider of each active account, once for each host, and returns those from which
/// no answer comes. Accounts whose credentials cannot be opened are left out.
pub async fn list_unreachable(
    connection: &mut PgConnection,
    sealer: &Sealer,
    transport: &Transport,
    endpoints: &ProviderHosts,
    clock: &Clock,
) -> Result<Vec<UnreachableProvider>, Fault> {
    let now = clock.now();
    let mut providers = BTreeMap::new();
    for account in store::list_accounts(connection).await? {
        let kind = account.provider_type;
        let opened = Credentials::open(
            sealer,
            account.organization_id,
            account.id,
            kind,
            &account.credentials_sealed,
        );
        if let Ok(credentials) = opened
            && let Some(host) = reach::host(kind, &access(&credentials, endpoints, now))
        {
            providers.insert((kind, host), credentials);
        }
    }
    let calls = providers.into_iter().take(HOSTS_MAX);
    let calls = calls.map(async |((provider_type, host), credentials)| {
        let access = access(&credentials, endpoints, now);
        let answer = timeout(
            ANSWER_TIMEOUT,
            reach::reach(transport, provider_type, &access),
        );
        let answer = answer.await;
        let answer = answer.unwrap_or_else(|_late| Err("no answer in time".to_owned()));
        answer.err().map(|reason| UnreachableProvider {
            provider_type,
            host,
            reason,
        })
    });
    let found = stream::iter(calls).buffer_unordered(CALLS_AT_ONCE);
    let found: Vec<Option<UnreachableProvider>> = found.collect().await;
    Ok(found.into_iter().flatten().collect())
}

fn access<'a>(
    credentials: &'a Credentials,
    endpoints: &'a ProviderHosts,
    now: Timestamp,
) -> AccountAccess<'a> {
    AccountAccess {
        credentials,
        endpoints,
        now,
    }
}
