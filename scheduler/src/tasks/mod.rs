//! The tasks of the leader.

mod background;
mod dns;
mod domains;
mod idempotency_keys;
mod mailbox_providers;
mod people;
mod ramps;
mod reap;
mod reconcile;
mod relay;
mod retention;
mod rollup;
mod schedule;
mod test_reports;
mod webhooks;

use waypost_core::clock::Clock;
use waypost_core::config::SendingSettings;
use waypost_core::db::PgPool;
use waypost_core::db::lifo_pool::LifoPool;
use waypost_core::delivery::job::SendJob;
use waypost_core::fault::Fault;
use waypost_core::ids::Ids;
use waypost_core::job_queue::Queue;
use waypost_core::provider_event::test_reports::TestReporter;
use waypost_core::retention::Retention;
use waypost_core::routing::target_health::rating;

pub(crate) use dns::DnsChecks;
pub(crate) use domains::DomainChecks;
pub(crate) use mailbox_providers::MailboxProviderLookups;
pub(crate) use reconcile::Lookups;
pub(crate) use rollup::Rollup;

/// A task of the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// Creates the partitions of the next months.
    CreatePartitions,
    /// Takes back the leases of dead workers.
    Reap,
    /// Takes back the leases of unregistered workers.
    ReapUnregistered,
    /// Pushes the jobs that are missing from Redis.
    Relay,
    /// Pushes scheduled jobs that are due.
    PushScheduled,
    /// Records the events of accepted tests.
    ReportTests,
    /// Fails what waits of expired messages.
    EndExpired,
    /// Deletes expired idempotency keys.
    DeleteKeys,
    /// Deletes ended sessions, invitations and links.
    DeleteSessions,
    /// Notifies workers of due webhook deliveries.
    RelayWebhooks,
    /// Deletes the deliveries of deleted webhook endpoints.
    DeleteWebhooks,
    /// Checks domains at their provider.
    CheckDomains,
    /// Looks up sender domains in DNS.
    CheckDns,
    /// Makes the steps of ramps.
    StepRamps,
    /// Looks up the mailbox providers of recipients' domains.
    ResolveMailboxProviders,
    /// Rates the health of accounts for routing rules.
    RateAccounts,
    /// Looks up messages at the provider whose answer was lost.
    LookUp,
    /// Rolls up metrics, message counts and the attempts of accounts.
    RollUp,
    /// Drops expired months.
    DropMonths,
    /// Deletes expired messages row by row.
    DeleteExpired,
}

impl Task {
    /// The name in the log and in the table of tasks.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CreatePartitions => "partitions",
            Self::Reap => "reap",
            Self::ReapUnregistered => "reap-unregistered",
            Self::Relay => "relay",
            Self::PushScheduled => "scheduled",
            Self::ReportTests => "report-tests",
            Self::EndExpired => "expire",
            Self::DeleteKeys => "delete-keys",
            Self::DeleteSessions => "delete-sessions",
            Self::RelayWebhooks => "relay-webhooks",
            Self::DeleteWebhooks => "delete-webhooks",
            Self::CheckDomains => "domains",
            Self::CheckDns => "check-dns",
            Self::StepRamps => "step-ramps",
            Self::ResolveMailboxProviders => "resolve-mailbox-providers",
            Self::RateAccounts => "rate-accounts",
            Self::LookUp => "look-up",
            Self::RollUp => "roll-up",
            Self::DropMonths => "drop-months",
            Self::DeleteExpired => "delete-expired",
        }
    }
}

/// What a run of a task found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkFound {
    /// There was nothing to do, or so little that the next run may wait longer.
    Nothing,
    Work,
}

impl From<usize> for WorkFound {
    fn from(found: usize) -> Self {
        match found {
            0 => Self::Nothing,
            _ => Self::Work,
        }
    }
}

/// The dependencies of the tasks.
pub(crate) struct Tasks {
    pub(crate) pool: PgPool,
    /// For the single statements that run every few seconds: the pool above takes two round
    /// trips to get a connection back.
    pub(crate) polls: LifoPool,
    pub(crate) queue: Queue<SendJob>,
    pub(crate) ids: Ids,
    pub(crate) clock: Clock,
    pub(crate) settings: SendingSettings,
    pub(crate) domain_checks: DomainChecks,
    pub(crate) dns_checks: DnsChecks,
    pub(crate) mailbox_provider_lookups: MailboxProviderLookups,
    pub(crate) lookups: Lookups,
    pub(crate) test_reporter: TestReporter,
    pub(crate) retention: Retention,
    pub(crate) metrics_rollup: Rollup,
    pub(crate) messages_rollup: Rollup,
    pub(crate) attempts_rollup: Rollup,
}

impl Tasks {
    pub(crate) async fn run(&self, task: Task) -> Result<WorkFound, Fault> {
        let done = match task {
            Task::CreatePartitions => retention::create_partitions(self).await,
            Task::Reap => return reap::take_back(self).await,
            Task::ReapUnregistered => reap::take_back_unregistered(self).await,
            Task::Relay => return relay::push_lost(self).await,
            Task::PushScheduled => return schedule::push_due(self).await,
            Task::ReportTests => return test_reports::report_due(self).await,
            Task::EndExpired => return schedule::end_expired(self).await,
            Task::DeleteKeys => idempotency_keys::delete_expired(self).await,
            Task::DeleteSessions => people::delete_ended(self).await,
            Task::RelayWebhooks => return webhooks::notify_due(self).await,
            Task::DeleteWebhooks => webhooks::delete_of_deleted(self).await,
            Task::CheckDomains => return domains::start_due(self).await,
            Task::CheckDns => return dns::start_due(self).await,
            Task::StepRamps => ramps::step_due(self).await,
            Task::ResolveMailboxProviders => return mailbox_providers::start_due(self).await,
            Task::RateAccounts => rating::rate_accounts(&self.pool, &self.clock).await,
            Task::LookUp => return reconcile::start_due(self).await,
            Task::RollUp => return rollup::roll_up(self).await,
            Task::DropMonths => retention::drop_months(self).await,
            Task::DeleteExpired => retention::delete_expired(self).await,
        };
        // Tasks with long intervals.
        done.map(|()| WorkFound::Work)
    }
}
