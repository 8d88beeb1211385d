//! The tasks of the leader.

mod domains;
mod keys;
mod partitions;
mod reap;
mod reconcile;
mod relay;
mod retention;
mod rollup;
mod webhooks;

use waypost_core::clock::Clock;
use waypost_core::config::SendingSettings;
use waypost_core::db::PgPool;
use waypost_core::delivery::job::SendJob;
use waypost_core::fault::Fault;
use waypost_core::ids::Ids;
use waypost_core::job_queue::Queue;
use waypost_core::retention::Retention;

pub(crate) use domains::Rechecks;
pub(crate) use reconcile::Searches;
pub(crate) use rollup::Folding;

/// A task of the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// Creates the partitions of the months to come.
    Partitions,
    /// Takes back what dead workers held.
    Reap,
    /// Takes back what workers hold that nobody knows any more.
    ReapForgotten,
    /// Pushes the jobs that Redis does not have.
    Relay,
    /// Forgets idempotency keys whose time is over.
    ForgetKeys,
    /// Tells workers of due webhooks.
    RelayWebhooks,
    /// Deletes what deleted webhook endpoints left behind.
    SweepWebhooks,
    /// Looks at domains whose look is due.
    Domains,
    /// Looks for mails whose answer was lost.
    LookUps,
    /// Folds what was counted and what is to be searched.
    Fold,
    /// Drops months of which nobody keeps anything.
    DropMonths,
    /// Deletes messages whose time is over one by one.
    DeleteExpired,
}

impl Task {
    /// Its name in the log.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Partitions => "partitions",
            Self::Reap => "reap",
            Self::ReapForgotten => "reap-forgotten",
            Self::Relay => "relay",
            Self::ForgetKeys => "forget-keys",
            Self::RelayWebhooks => "relay-webhooks",
            Self::SweepWebhooks => "sweep-webhooks",
            Self::Domains => "domains",
            Self::LookUps => "look-ups",
            Self::Fold => "fold",
            Self::DropMonths => "drop-months",
            Self::DeleteExpired => "delete-expired",
        }
    }
}

/// What the tasks work with.
pub(crate) struct Tasks {
    pub(crate) pool: PgPool,
    pub(crate) queue: Queue<SendJob>,
    pub(crate) ids: Ids,
    pub(crate) clock: Clock,
    pub(crate) settings: SendingSettings,
    pub(crate) rechecks: Rechecks,
    pub(crate) searches: Searches,
    pub(crate) retention: Retention,
    pub(crate) folding_of_metrics: Folding,
    pub(crate) folding_of_messages: Folding,
}

impl Tasks {
    pub(crate) async fn run(&self, task: Task) -> Result<(), Fault> {
        match task {
            Task::Partitions => partitions::create_ahead(self).await,
            Task::Reap => reap::take_back(self).await,
            Task::ReapForgotten => reap::take_back_forgotten(self).await,
            Task::Relay => relay::push_lost(self).await,
            Task::ForgetKeys => keys::forget(self).await,
            Task::RelayWebhooks => webhooks::notify_due(self).await,
            Task::SweepWebhooks => webhooks::delete_of_deleted(self).await,
            Task::Domains => domains::begin(self).await,
            Task::LookUps => reconcile::begin(self).await,
            Task::Fold => rollup::fold(self).await,
            Task::DropMonths => retention::drop_months(self).await,
            Task::DeleteExpired => retention::delete_expired(self).await,
        }
    }
}
