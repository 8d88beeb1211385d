//! What operators watch of the whole installation: the queue, accounts, webhooks and the
//! scheduler's tasks. The scheduler reads it from Postgres and Redis whenever its metrics are
//! read, at most every 5 s; if nobody reads them, it costs nothing. Every scheduler
//! does so, not only the leader, so the figures remain when the leader hangs.

mod store;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::account_limiter::circuits::{Circuit, CircuitReader, OpenCause};
use crate::db::{self, OrFault, PgPool};
use crate::fault::Fault;
use crate::ids::ProviderAccountId;
use crate::provider::kind::ProviderType;
use crate::task_log;
use crate::telemetry::instruments::{self, SampledGauge};
use crate::warn_seldom;
use store::{AccountActivity, AccountMails, ReadAccount};

/// The figures are not read more often.
const INTERVAL: Duration = Duration::from_secs(5);
/// How long Postgres may take for all figures.
const READ_TIMEOUT: Duration = Duration::from_secs(4);

const DOING: &str = "read the figures of the installation";

/// Reads the figures and sets their gauges.
pub struct Sampler {
    pool: PgPool,
    circuits: CircuitReader,
    /// How long the relay waits after a push.
    relay_grace: Duration,
    /// Whether accounts have gauges of their own.
    names_accounts: bool,
    state: Mutex<SamplerState>,
}

#[derive(Default)]
struct SamplerState {
    sampled_at: Option<Instant>,
    /// The accounts that have a gauge of their circuit.
    named: HashSet<ProviderAccountId>,
    /// The accounts that have gauges of their mail.
    mailing: HashSet<ProviderAccountId>,
    /// The tasks that have a gauge.
    tasks: HashSet<String>,
}

impl std::fmt::Debug for Sampler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sampler")
    }
}

impl Sampler {
    /// Reads nothing yet.
    #[must_use]
    pub fn new(
        pool: PgPool,
        circuits: CircuitReader,
        relay_grace: Duration,
        names_accounts: bool,
    ) -> Self {
        Self {
            pool,
            circuits,
            relay_grace,
            names_accounts,
            state: Mutex::default(),
        }
    }

    /// Sets the gauges, unless they were set a moment ago. What cannot be read becomes NaN: a
    /// stale value would hide that the servers are away. Asks nothing if Postgres is known not
    /// to answer.
    pub async fn sample(&self, postgres_answers: bool) {
        let mut state = self.state.lock().await;
        if state.sampled_at.is_some_and(|at| at.elapsed() < INTERVAL) && postgres_answers {
            return;
        }
        state.sampled_at = None;
        if !postgres_answers {
            return state.forget();
        }
        let SamplerState { tasks, mailing, .. } = &mut *state;
        let read = self.read_database(tasks, mailing);
        match tokio::time::timeout(READ_TIMEOUT, read).await {
            Ok(Ok(accounts)) => {
                count_accounts(&accounts);
                self.read_circuits(&accounts, &mut state.named).await;
                state.sampled_at = Some(Instant::now());
            }
            Ok(Err(fault)) => {
                let cause = fault.chain();
                warn_seldom!(cause, "Could not read the figures of the installation");
                state.forget();
            }
            Err(elapsed) => {
                let cause = elapsed.to_string();
                warn_seldom!(
                    cause,
                    "Could not read the figures of the installation in time"
                );
                state.forget();
            }
        }
    }

    /// Sets what Postgres knows. Returns all accounts.
    async fn read_database(
        &self,
        tasks: &mut HashSet<String>,
        mailing: &mut HashSet<ProviderAccountId>,
    ) -> Result<Vec<ReadAccount>, Fault> {
        let mut connection = db::snapshot(&self.pool, DOING).await?;
        let queue = store::read_queue(&mut connection, self.relay_grace).await?;
        for (state, jobs) in queue.jobs() {
            instruments::sampled(SampledGauge::QueueJobs(state), jobs);
        }
        instruments::sampled(SampledGauge::QueueAge, queue.oldest_due_seconds);
        instruments::sampled(SampledGauge::UnknownAttempts, queue.unknown_attempts);
        instruments::sampled(SampledGauge::Workers, queue.workers);
        let webhooks = store::read_webhooks(&mut connection).await?;
        instruments::sampled(SampledGauge::WebhookAge, webhooks.oldest_due_seconds);
        for (state, endpoints) in webhooks.endpoints() {
            instruments::sampled(SampledGauge::WebhookEndpoints(state), endpoints);
        }
        for task in task_log::store::list(&mut connection).await? {
            instruments::task_lag(&task.name, task.lag.as_secs_f64());
            tasks.insert(task.name);
        }
        let accounts = store::list_accounts(&mut connection).await?;
        if self.names_accounts {
            let mails = store::list_account_mails(&mut connection).await?;
            set_mails(&mails, mailing);
        }
        connection.commit().await.or_fault(DOING)?;
        Ok(accounts)
    }

    /// Sets what the workers share about accounts.
    async fn read_circuits(
        &self,
        accounts: &[ReadAccount],
        named: &mut HashSet<ProviderAccountId>,
    ) {
        let revisions: Vec<_> = accounts
            .iter()
            .filter(|account| account.state != AccountActivity::Inactive)
            .map(|account| (account.id, account.revision))
            .collect();
        let shared = self.circuits.read(&revisions).await;
        let mut open: HashMap<(ProviderType, OpenCause), u32> = HashMap::new();
        if let Some(shared) = &shared {
            for account in accounts {
                let circuit = shared.of(account.id).circuit;
                if let Circuit::Open { cause, .. } = circuit {
                    *open.entry((account.provider_type, cause)).or_default() += 1;
                }
            }
        }
        for provider in ProviderType::ALL {
            for cause in OpenCause::ALL {
                let count = open.get(&(provider, cause)).copied().unwrap_or_default();
                let count = shared.as_ref().map_or(f64::NAN, |_| f64::from(count));
                let gauge = SampledGauge::CircuitsOpen(provider.as_str(), cause.as_str());
                instruments::sampled(gauge, count);
            }
        }
        if let Some(shared) = shared
            && self.names_accounts
        {
            for gone in named.extract_if(|id| !accounts.iter().any(|account| account.id == *id)) {
                instruments::account_circuit(&gone.to_string(), false);
            }
            for account in accounts {
                let is_open = matches!(shared.of(account.id).circuit, Circuit::Open { .. });
                instruments::account_circuit(&account.id.to_string(), is_open);
                named.insert(account.id);
            }
        }
    }
}

/// Sets what became of the mail of accounts; nothing is known of accounts that are gone.
fn set_mails(mails: &[AccountMails], mailing: &mut HashSet<ProviderAccountId>) {
    let is_there = |id: &ProviderAccountId| mails.iter().any(|one| one.account_id() == *id);
    for gone in mailing.extract_if(|id| !is_there(id)) {
        forget_mails(gone);
    }
    for one in mails {
        for (kind, count) in one.kinds() {
            instruments::account_mails(&one.account_id().to_string(), kind, count);
        }
        mailing.insert(one.account_id());
    }
}

fn forget_mails(account: ProviderAccountId) {
    for kind in store::MAIL_KINDS {
        instruments::account_mails(&account.to_string(), kind, f64::NAN);
    }
}

/// Sets the number of accounts in each state.
fn count_accounts(accounts: &[ReadAccount]) {
    for provider in ProviderType::ALL {
        for state in AccountActivity::ALL {
            let is_one = |account: &&ReadAccount| {
                account.provider_type == provider && account.state == state
            };
            let count = u32::try_from(accounts.iter().filter(is_one).count());
            let gauge = SampledGauge::Accounts(provider.as_str(), state.as_str());
            instruments::sampled(gauge, f64::from(count.unwrap_or(u32::MAX)));
        }
    }
}

impl SamplerState {
    /// Says that nothing is known.
    fn forget(&self) {
        let single = [
            SampledGauge::QueueAge,
            SampledGauge::UnknownAttempts,
            SampledGauge::Workers,
            SampledGauge::WebhookAge,
        ];
        let jobs = store::JOB_STATES.map(SampledGauge::QueueJobs);
        let endpoints = store::ENDPOINT_STATES.map(SampledGauge::WebhookEndpoints);
        let of_providers = ProviderType::ALL.into_iter().flat_map(|provider| {
            let provider = provider.as_str();
            let accounts = AccountActivity::ALL;
            let accounts = accounts.map(|one| SampledGauge::Accounts(provider, one.as_str()));
            let circuits = OpenCause::ALL;
            let circuits =
                circuits.map(|cause| SampledGauge::CircuitsOpen(provider, cause.as_str()));
            accounts.into_iter().chain(circuits)
        });
        let gauges = single.into_iter().chain(jobs).chain(endpoints);
        for gauge in gauges.chain(of_providers) {
            instruments::sampled(gauge, f64::NAN);
        }
        for task in &self.tasks {
            instruments::task_lag(task, f64::NAN);
        }
        for account in &self.mailing {
            forget_mails(*account);
        }
    }
}
