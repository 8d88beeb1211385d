//! The queries of the figures. Each reads the whole installation, so none names an
//! organization.

use std::time::Duration;

use sqlx::{PgConnection, query, query_as};

use crate::clock::delta;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::ProviderAccountId;
use crate::message::CHUNK_RECIPIENTS;
use crate::provider::kind::ProviderType;

/// The states of jobs.
pub(super) const JOB_STATES: [&str; 4] = ["waiting", "leased", "scheduled", "dead"];
/// The states of webhook endpoints.
pub(super) const ENDPOINT_STATES: [&str; 3] = ["active", "failing", "inactive"];
/// The oldest jobs among which the one that waited longest is looked for. A job that is
/// older than all of these and waited longer was due, then retried: it has waited for less.
const OLDEST_JOBS: i64 = 500;

/// The figures of the queue.
pub(super) struct QueueFigures {
    waiting: f64,
    leased: f64,
    scheduled: f64,
    dead: f64,
    pub(super) oldest_due_seconds: f64,
    pub(super) unknown_attempts: f64,
    pub(super) workers: f64,
}

impl QueueFigures {
    /// The jobs in each state.
    pub(super) fn jobs(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let counts = [self.waiting, self.leased, self.scheduled, self.dead];
        JOB_STATES.into_iter().zip(counts)
    }
}

/// Reads the figures of the queue. It reads the whole outbox, which holds unfinished
/// messages only: a million rows take about 0.2 s.
pub(super) async fn read_queue(
    connection: &mut PgConnection,
    relay_grace: Duration,
) -> Result<QueueFigures, Fault> {
    query_as!(
        QueueFigures,
        r#"WITH jobs AS (
               SELECT count(*) FILTER (WHERE dead_at IS NULL AND leased_by IS NULL AND due_at IS NULL) AS waiting,
                      count(*) FILTER (WHERE dead_at IS NULL AND leased_by IS NOT NULL) AS leased,
                      count(*) FILTER (WHERE dead_at IS NULL AND leased_by IS NULL AND due_at IS NOT NULL) AS scheduled,
                      count(*) FILTER (WHERE dead_at IS NOT NULL) AS dead
               FROM outbox
           ), oldest AS (
               SELECT message_id, chunk
               FROM outbox
               WHERE dead_at IS NULL AND leased_by IS NULL AND due_at IS NULL
                 AND wake_at <= clock_timestamp() + $1::interval
               ORDER BY message_id, chunk
               LIMIT $2
           )
           SELECT waiting::float8 AS "waiting!", leased::float8 AS "leased!", scheduled::float8 AS "scheduled!",
                  dead::float8 AS "dead!",
                  coalesce((
                      -- A recipient that was not tried is due since the epoch.
                      SELECT extract(epoch FROM clock_timestamp()
                                                - min(greatest(r.next_attempt_at, m.created_at, m.retried_at)))
                      FROM oldest o
                      JOIN messages m ON m.id = o.message_id
                      JOIN recipients r ON r.message_id = o.message_id
                                       AND r.position >= o.chunk * $3 AND r.position < (o.chunk + 1) * $3
                      WHERE r.status = 'QUEUED' AND r.next_attempt_at <= clock_timestamp()
                  ), 0)::float8 AS "oldest_due_seconds!",
                  (SELECT count(*) FROM unknown_attempts)::float8 AS "unknown_attempts!",
                  (SELECT count(*) FROM workers WHERE leased_until > clock_timestamp())::float8 AS "workers!"
           FROM jobs"#,
        delta(relay_grace) as _,
        OLDEST_JOBS,
        CHUNK_RECIPIENTS,
    )
    .fetch_one(connection)
    .await
    .or_fault("read the figures of the queue")
}

/// The figures of webhooks.
pub(super) struct WebhookFigures {
    active: f64,
    failing: f64,
    inactive: f64,
    pub(super) oldest_due_seconds: f64,
}

impl WebhookFigures {
    /// The endpoints in each state.
    pub(super) fn endpoints(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let counts = [self.active, self.failing, self.inactive];
        ENDPOINT_STATES.into_iter().zip(counts)
    }
}

/// Reads the figures of webhooks: one look-up in an index for each endpoint that works.
pub(super) async fn read_webhooks(connection: &mut PgConnection) -> Result<WebhookFigures, Fault> {
    query_as!(
        WebhookFigures,
        r#"SELECT count(*) FILTER (WHERE e.is_active AND e.failing_since IS NULL)::float8 AS "active!",
                  count(*) FILTER (WHERE e.is_active AND e.failing_since IS NOT NULL)::float8 AS "failing!",
                  count(*) FILTER (WHERE NOT e.is_active)::float8 AS "inactive!",
                  coalesce(extract(epoch FROM clock_timestamp() - min(d.due_at)), 0)::float8
                      AS "oldest_due_seconds!"
           FROM webhook_endpoints e
           LEFT JOIN LATERAL (
               SELECT next_attempt_at AS due_at
               FROM webhook_deliveries
               WHERE webhook_endpoint_id = e.id AND status = 'PENDING' AND next_attempt_at <= clock_timestamp()
                 AND e.is_active AND e.failing_since IS NULL
               ORDER BY next_attempt_at
               LIMIT 1
           ) d ON true"#
    )
    .fetch_one(connection)
    .await
    .or_fault("read the figures of webhooks")
}

/// What an operator may have to know of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AccountActivity {
    Active,
    /// The provider refuses the account itself.
    Paused,
    Inactive,
}

impl AccountActivity {
    pub(super) const ALL: [Self; 3] = [Self::Active, Self::Paused, Self::Inactive];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Inactive => "inactive",
        }
    }
}

/// An account.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadAccount {
    pub(super) id: ProviderAccountId,
    pub(super) provider_type: ProviderType,
    pub(super) revision: u32,
    pub(super) state: AccountActivity,
}

/// All accounts of the installation.
pub(super) async fn list_accounts(
    connection: &mut PgConnection,
) -> Result<Vec<ReadAccount>, Fault> {
    let rows = query!(
        r#"SELECT id, provider_type AS "provider_type: ProviderType", revision, is_active,
                  sending_paused_since IS NOT NULL AS "is_paused!"
           FROM provider_accounts"#
    )
    .fetch_all(connection)
    .await
    .or_fault("list the accounts of the installation")?;
    let accounts = rows.into_iter().map(|row| ReadAccount {
        id: ProviderAccountId(row.id),
        provider_type: row.provider_type,
        revision: u32::try_from(row.revision).unwrap_or_default(),
        state: match (row.is_active, row.is_paused) {
            (false, _) => AccountActivity::Inactive,
            (true, true) => AccountActivity::Paused,
            (true, false) => AccountActivity::Active,
        },
    });
    Ok(accounts.collect())
}

/// What became of an account's latest mail.
pub(super) struct AccountMails {
    id: ProviderAccountId,
    attempts: f64,
    accepted: f64,
    rejected: f64,
    deferred: f64,
    sent: f64,
    delivered: f64,
    bounced: f64,
    complained: f64,
}

/// What is counted of an account's mail.
pub(super) const MAIL_KINDS: [&str; 8] = [
    "attempts",
    "accepted",
    "rejected",
    "deferred",
    "sent",
    "delivered",
    "bounced",
    "complained",
];

impl AccountMails {
    pub(super) fn account_id(&self) -> ProviderAccountId {
        self.id
    }

    /// The numbers of each kind.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let counts = [
            self.attempts,
            self.accepted,
            self.rejected,
            self.deferred,
            self.sent,
            self.delivered,
            self.bounced,
            self.complained,
        ];
        MAIL_KINDS.into_iter().zip(counts)
    }
}

/// What became of the mail of all accounts, in the quarters of an hour that the last 15 minutes
/// touch: a few look-ups in indexes for each account.
pub(super) async fn list_account_mails(
    connection: &mut PgConnection,
) -> Result<Vec<AccountMails>, Fault> {
    query_as!(
        AccountMails,
        r#"WITH span AS MATERIALIZED (
               SELECT waypost_quarter(clock_timestamp() - interval '15 min') AS first,
                      waypost_quarter(clock_timestamp()) + interval '15 min' AS last
           )
           SELECT a.id AS "id: ProviderAccountId", c.attempts AS "attempts!", c.accepted AS "accepted!",
                  c.rejected AS "rejected!", c.deferred AS "deferred!", m.sent AS "sent!",
                  m.delivered AS "delivered!", m.bounced AS "bounced!", m.complained AS "complained!"
           FROM provider_accounts a
           CROSS JOIN span
           CROSS JOIN LATERAL (
               SELECT coalesce(sum(attempts), 0)::float8 AS attempts, coalesce(sum(accepted), 0)::float8 AS accepted,
                      coalesce(sum(rejected), 0)::float8 AS rejected,
                      (coalesce(sum(deferred), 0)
                       + (SELECT coalesce(sum(deferred), 0)
                          FROM deferral_deltas
                          WHERE provider_account_id = a.id AND quarter >= span.first))::float8 AS deferred
               FROM attempt_quarters
               WHERE provider_account_id = a.id AND quarter >= span.first
           ) c
           CROSS JOIN LATERAL (
               SELECT coalesce(sum(sent), 0)::float8 AS sent, coalesce(sum(delivered), 0)::float8 AS delivered,
                      coalesce(sum(bounced), 0)::float8 AS bounced,
                      coalesce(sum(complained), 0)::float8 AS complained
               FROM waypost_metrics(a.organization_id, 'ACCOUNT', a.id::text, 'TOTAL', span.first, span.last,
                                    span.last, span.last)
           ) m"#
    )
    .fetch_all(connection)
    .await
    .or_fault("read what became of the mail of accounts")
}
