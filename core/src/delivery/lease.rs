//! Leases. A worker leases chunks, and all its leases end together: when its
//! heartbeat stops for longer than the lease. So a heartbeat is one small update
//! whatever the worker holds. Time here is Postgres' own, since what is compared
//! are the lives of processes on different machines.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sqlx::{PgConnection, query, query_as};
use uuid::Uuid;

use super::attempt::NewAttempt;
use super::job::SendJob;
use super::retry::RetryState;
use crate::address::AddressHash;
use crate::clock::{Timestamp, delta};
use crate::db::OrFault;
use crate::db::id_range::IdRange;
use crate::fault::Fault;
use crate::ids::{
    MessageId, OrganizationId, ProviderAccountId, RoutingRuleId, SendAttemptId, UnsubscribeGroupId,
    WorkerId,
};
use crate::message::CHUNK_RECIPIENTS;
use crate::message::compose::MessageContent;
use crate::tracking::Tracking;

/// Registers a worker; its leases count from now on.
pub async fn register(
    connection: &mut PgConnection,
    worker: WorkerId,
    name: &str,
    lease: Duration,
) -> Result<(), Fault> {
    query!(
        "INSERT INTO workers (id, name, started_at, leased_until)
         VALUES ($1, $2, now(), now() + $3)",
        worker.0,
        name,
        delta(lease) as _,
    )
    .execute(connection)
    .await
    .or_fault("register a worker")?;
    Ok(())
}

/// Moves the end of all leases of a worker on. False where the worker is not
/// known any more: its leases have ended.
pub async fn renew(
    connection: &mut PgConnection,
    worker: WorkerId,
    lease: Duration,
) -> Result<bool, Fault> {
    let done = query!(
        "UPDATE workers SET leased_until = now() + $2 WHERE id = $1 AND leased_until > clock_timestamp()",
        worker.0,
        delta(lease) as _,
    )
    .execute(connection)
    .await
    .or_fault("renew a worker's leases")?;
    Ok(done.rows_affected() == 1)
}

/// Takes a worker off the list that holds nothing any more. One that still holds
/// leases stays, and the reaper deals with it when they end. To be run in a
/// transaction: the row is locked first, so that no claim is under way when the
/// leases are counted.
pub async fn unregister(connection: &mut PgConnection, worker: WorkerId) -> Result<(), Fault> {
    query!("SELECT id FROM workers WHERE id = $1 FOR UPDATE", worker.0)
        .fetch_optional(&mut *connection)
        .await
        .or_fault("unregister a worker")?;
    query!(
        "DELETE FROM workers w
         WHERE w.id = $1 AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.leased_by = w.id)",
        worker.0,
    )
    .execute(connection)
    .await
    .or_fault("unregister a worker")?;
    Ok(())
}

/// A worker that is on the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedWorker {
    pub name: String,
    /// When this life of it began.
    pub started_at: Timestamp,
    /// When its leases end if it gives no sign of life.
    pub leased_until: Timestamp,
    /// Whether they have ended already.
    pub is_dead: bool,
    pub chunks: i64,
}

/// The workers on the list, the oldest first.
pub async fn list_workers(connection: &mut PgConnection) -> Result<Vec<ListedWorker>, Fault> {
    query_as!(
        ListedWorker,
        r#"SELECT w.name, w.started_at, w.leased_until, w.leased_until <= now() AS "is_dead!",
                  coalesce(held.chunks, 0) AS "chunks!"
           FROM workers w
           LEFT JOIN (SELECT leased_by, count(*) AS chunks
                      FROM outbox
                      WHERE leased_by IS NOT NULL
                      GROUP BY leased_by) held ON held.leased_by = w.id
           ORDER BY w.started_at, w.id"#,
    )
    .fetch_all(connection)
    .await
    .or_fault("list workers")
}

/// A leased chunk and those of its recipients that are due.
#[derive(Debug)]
pub struct LeasedChunk {
    /// The job that it was leased for.
    pub job: SendJob,
    /// The recipients, now SENDING; empty where none is due.
    pub recipients: Vec<LeasedRecipient>,
    /// How often it lost its worker: see [`super::dead_letter`].
    pub losses: i16,
    /// The attempt that was written with the lease.
    pub begun: Option<NewAttempt>,
}

/// A chunk to be leased.
#[derive(Debug, Clone, Copy)]
pub struct LeaseRequest {
    pub job: SendJob,
    /// The attempt to begin with at once, where the worker foresees which account its
    /// message goes through.
    pub foreseen: Option<PredictedAttempt>,
}

/// An attempt that a worker foresees.
#[derive(Debug, Clone, Copy)]
pub struct PredictedAttempt {
    /// Its id, should it be written.
    pub attempt_id: SendAttemptId,
    pub provider_account_id: ProviderAccountId,
}

/// A recipient to send to.
#[derive(Debug)]
pub struct LeasedRecipient {
    /// Its place in the message.
    pub position: i32,
    /// Its mailbox, sealed.
    pub address_sealed: Vec<u8>,
    /// The hash of its address.
    pub address_hash: AddressHash,
    /// Attempts whose outcome nobody knows.
    pub unknowns: i32,
    /// How far its tries have got.
    pub turn: RetryState,
}

/// What a worker needs to know of a message besides its recipients.
#[derive(Debug, Clone)]
pub struct LeasedMessage {
    pub content: MessageContent,
    /// Whether the bodies were too large to be read along.
    pub body_left_out: bool,
    /// The recipients it has, due or not.
    pub recipient_count: i32,
    /// The account resolved at acceptance.
    pub provider_account_id: ProviderAccountId,
    /// The rule that chose it; nothing where none did. It may be gone.
    pub routing_rule_id: Option<RoutingRuleId>,
    pub accepted_at: Timestamp,
    /// When its owner last had it tried again, if ever: from then on retries count.
    pub retried_at: Option<Timestamp>,
}

impl LeasedMessage {
    /// Since when it is tried: what the horizon of its retries is measured from.
    #[must_use]
    pub fn tried_since(&self) -> Timestamp {
        self.retried_at.unwrap_or(self.accepted_at)
    }
}

/// The largest bodies, in bytes, that are read for many messages at once.
const BODY_BYTES_MAX: i32 = 256 * 1024;

/// Leases those of the wanted chunks that nobody holds, moves their due recipients to
/// SENDING and reads their messages, all in one statement. Nothing is leased to a
/// worker whose leases have ended; until the statement ends its row cannot go, so a
/// lease never belongs to nobody. A chunk whose message is not among the answers has
/// none.
///
/// The messages' own status is left as it is: whoever leases sees to
/// [`crate::message::store::show_sending`] where sending takes its time.
///
/// Bodies above a bound are left out, because many are read at once; [`load_body`]
/// reads one.
///
/// A foreseen attempt is written along for a message with one recipient that is tried for
/// the first time, whose account at acceptance was the foreseen one, whose body is not
/// left out, and that is not suppressed: as [`super::attempt::insert`] would a moment
/// later. For all others it is left to that.
///
/// Where no attempt is foreseen nobody waits for the disk here. Should Postgres fall over
/// before a lease is on it, the lease is gone as if it had never been, and with it whatever
/// came after: an attempt that is on disk has its lease before it in the log. Until then the
/// attempt is not committed and no call is made. So it must not be run within a transaction,
/// which would not wait either.
#[expect(clippy::too_many_lines, reason = "one statement and its columns")]
pub async fn lease(
    connection: &mut PgConnection,
    worker: WorkerId,
    wanted: &[LeaseRequest],
    now: Timestamp,
) -> Result<(Vec<LeasedChunk>, HashMap<MessageId, LeasedMessage>), Fault> {
    let jobs: Vec<SendJob> = wanted.iter().map(|wanted| wanted.job).collect();
    let (ids, chunks) = columns(&jobs);
    let span = IdRange::of(&ids);
    let foreseen = |pick: fn(&PredictedAttempt) -> Uuid| -> Vec<Option<Uuid>> {
        let all = wanted.iter().map(|wanted| wanted.foreseen.as_ref());
        all.map(|foreseen| foreseen.map(pick)).collect()
    };
    let may_be_lost = wanted.iter().all(|wanted| wanted.foreseen.is_none());
    let rows = query!(
        r#"WITH me AS (
               SELECT id, CASE WHEN $9 THEN set_config('synchronous_commit', 'off', true) END
               FROM workers
               WHERE id = $3 AND leased_until > clock_timestamp()
               FOR KEY SHARE
           ), free AS (
               -- Each is looked up by its key, as `ANY` has it. By `=` they would be joined, and where
               -- the outbox was next to empty when this was planned, by reading all of it.
               SELECT o.message_id, o.chunk, wanted.attempt_id, wanted.foreseen_account_id
               FROM UNNEST($1::uuid[], $2::int[], $7::uuid[], $8::uuid[])
                 AS wanted (message_id, chunk, attempt_id, foreseen_account_id)
               JOIN outbox o ON o.message_id = ANY(ARRAY[wanted.message_id]) AND o.chunk = ANY(ARRAY[wanted.chunk])
               WHERE o.leased_by IS NULL AND o.parked_at IS NULL
               FOR UPDATE OF o SKIP LOCKED
           ), leased AS (
               UPDATE outbox o
               SET leased_by = me.id
               FROM free, me
               WHERE o.message_id = ANY(ARRAY[free.message_id]) AND o.chunk = ANY(ARRAY[free.chunk])
               RETURNING o.message_id, o.chunk, o.organization_id, o.losses, free.attempt_id,
                         free.foreseen_account_id
           ), due AS (
               UPDATE recipients r
               SET status = 'SENDING'
               FROM leased l
               WHERE r.message_id = l.message_id
                 AND r.position >= l.chunk * $4 AND r.position < (l.chunk + 1) * $4
                 AND r.status IN ('QUEUED', 'SENDING')
                 AND r.next_attempt_at <= $5
               RETURNING l.*, r.position, r.address_sealed, r.address_hash, r.unknowns, r.failover, r.rounds,
                         r.recoverable
           ), read AS (
               SELECT d.*, m.*,
                      coalesce(d.attempt_id IS NOT NULL AND m.recipient_count = 1
                               AND m.account_id = d.foreseen_account_id AND NOT m.large
                               AND d.losses = 0 AND d.unknowns = 0 AND d.failover = 0 AND d.rounds = 0
                               AND NOT EXISTS (
                                   SELECT 1
                                   FROM suppressions s
                                   WHERE s.organization_id = d.organization_id AND s.email_hash = d.address_hash
                                     AND (s.unsubscribe_group_id IS NULL
                                          OR s.unsubscribe_group_id = m.unsubscribe_group_id)),
                               false) AS is_begun
               FROM (
                   -- A message is read once, however many of its recipients are due.
                   SELECT *, row_number() OVER (PARTITION BY message_id ORDER BY position) = 1 AS is_first
                   FROM due
               ) d
               LEFT JOIN LATERAL (
                   SELECT m.subject, m.tags, m.created_at, m.retried_at, m.routing_rule_id,
                          coalesce(m.resolved_account_id, m.provider_account_id) AS account_id,
                          m.unsubscribe_group_id, m.track_opens, m.track_clicks, m.recipient_count,
                          b.from_mailbox, b.reply_to, s.large,
                          CASE WHEN NOT s.large THEN b.html END AS html,
                          CASE WHEN NOT s.large THEN b.text END AS text
                   FROM messages m
                   JOIN message_bodies b ON b.message_id = d.message_id
                   CROSS JOIN LATERAL (
                       SELECT coalesce(octet_length(b.html), 0) + coalesce(octet_length(b.text), 0) > $6 AS large
                   ) s
                   WHERE m.id = d.message_id AND d.is_first
                     AND m.id BETWEEN $10 AND $11 AND b.message_id BETWEEN $10 AND $11
                   LIMIT 1
               ) m ON true
           ), begun AS (
               INSERT INTO send_attempts (message_id, id, organization_id, position, provider_account_id, started_at)
               SELECT message_id, attempt_id, organization_id, position, account_id, $5
               FROM read
               WHERE is_begun
           )
           SELECT message_id AS "message_id!", chunk AS "chunk!", organization_id AS "organization_id!",
                  losses AS "losses!", is_begun AS "is_begun!", attempt_id AS "attempt_id?: SendAttemptId",
                  position AS "position?", address_sealed AS "address_sealed?",
                  address_hash AS "address_hash?: AddressHash", unknowns AS "unknowns?",
                  failover AS "failover?", rounds AS "rounds?", recoverable AS "recoverable?",
                  subject AS "subject?", tags AS "tags?", created_at AS "created_at?", retried_at,
                  routing_rule_id, account_id AS "account_id?", unsubscribe_group_id,
                  track_opens AS "track_opens?", track_clicks AS "track_clicks?",
                  recipient_count AS "recipient_count?", from_mailbox AS "from_mailbox?", reply_to,
                  large AS "large?", html, text
           FROM read
           UNION ALL
           -- Those of which nothing is due. By NOT IN, which asks a table made once.
           SELECT message_id, chunk, organization_id, losses, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                  NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
           FROM leased
           WHERE (message_id, chunk) NOT IN (SELECT message_id, chunk FROM due)"#,
        &ids,
        &chunks,
        worker.0,
        CHUNK_RECIPIENTS,
        now,
        BODY_BYTES_MAX,
        &foreseen(|foreseen| foreseen.attempt_id.0) as &[Option<Uuid>],
        &foreseen(|foreseen| foreseen.provider_account_id.0) as &[Option<Uuid>],
        may_be_lost,
        span.first,
        span.last,
    )
    .fetch_all(connection)
    .await
    .or_fault("lease chunks")?;
    let mut leased: HashMap<SendJob, LeasedChunk> = HashMap::with_capacity(jobs.len());
    let mut messages = HashMap::with_capacity(jobs.len());
    for row in rows {
        let job = job(row.message_id, row.chunk, row.organization_id);
        let chunk = leased.entry(job).or_insert_with(|| LeasedChunk {
            job,
            recipients: Vec::new(),
            losses: row.losses,
            begun: None,
        });
        if row.is_begun {
            chunk.begun = (|| {
                Some(NewAttempt {
                    id: row.attempt_id?,
                    message_id: job.message_id,
                    organization_id: job.organization_id,
                    position: row.position?,
                    address_hash: row.address_hash?,
                    provider_account_id: ProviderAccountId(row.account_id?),
                    started_at: now,
                })
            })();
        }
        chunk.recipients.extend((|| {
            Some(LeasedRecipient {
                position: row.position?,
                address_sealed: row.address_sealed?,
                address_hash: row.address_hash?,
                unknowns: row.unknowns?,
                turn: RetryState::stored(row.failover?, row.rounds?, row.recoverable?),
            })
        })());
        let message = || {
            let content = MessageContent {
                id: job.message_id,
                organization_id: job.organization_id,
                from_mailbox: row.from_mailbox?,
                reply_to: row.reply_to,
                subject: row.subject?,
                html: row.html,
                text: row.text,
                tags: row.tags?,
                unsubscribe_group_id: row.unsubscribe_group_id.map(UnsubscribeGroupId),
                tracking: Tracking {
                    opens: row.track_opens?,
                    clicks: row.track_clicks?,
                },
            };
            Some(LeasedMessage {
                content,
                body_left_out: row.large?,
                recipient_count: row.recipient_count?,
                provider_account_id: ProviderAccountId(row.account_id?),
                routing_rule_id: row.routing_rule_id.map(RoutingRuleId),
                accepted_at: row.created_at?,
                retried_at: row.retried_at,
            })
        };
        messages.extend(message().map(|message| (job.message_id, message)));
    }
    Ok((leased.into_values().collect(), messages))
}

/// Reads the bodies of one message: html and text.
pub async fn load_body(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: MessageId,
) -> Result<(Option<String>, Option<String>), Fault> {
    let row = query!(
        "SELECT html, text FROM message_bodies WHERE organization_id = $1 AND message_id = $2",
        organization_id.0,
        id.0,
    )
    .fetch_one(connection)
    .await
    .or_fault("read the bodies of a message")?;
    Ok((row.html, row.text))
}

/// Those of the named leases that their workers still hold. They stay held until
/// the transaction ends: the reaper waits. A statement of its own, so that those
/// after it see what was decided before.
pub async fn hold(
    connection: &mut PgConnection,
    leases: &[(WorkerId, SendJob)],
) -> Result<HashSet<(WorkerId, SendJob)>, Fault> {
    let jobs: Vec<SendJob> = leases.iter().map(|(_, job)| *job).collect();
    let (ids, chunks) = columns(&jobs);
    let workers: Vec<Uuid> = leases.iter().map(|(worker, _)| worker.0).collect();
    let rows = query!(
        r#"SELECT o.message_id, o.chunk, o.organization_id, o.leased_by AS "leased_by!"
           FROM outbox o
           JOIN (SELECT DISTINCT * FROM UNNEST($1::uuid[], $2::int[], $3::uuid[])) AS mine (message_id, chunk, worker)
             ON o.message_id = ANY(ARRAY[mine.message_id]) AND o.chunk = ANY(ARRAY[mine.chunk])
                AND o.leased_by = ANY(ARRAY[mine.worker])
           -- By `mine`: in the outbox's own order Postgres might walk through all of it.
           ORDER BY mine.message_id, mine.chunk
           FOR SHARE OF o"#,
        &ids,
        &chunks,
        &workers,
    )
    .fetch_all(connection)
    .await
    .or_fault("hold leases")?;
    let held = rows.into_iter().map(|row| {
        let job = job(row.message_id, row.chunk, row.organization_id);
        (WorkerId(row.leased_by), job)
    });
    Ok(held.collect())
}

/// Gives up recipients that were leased but not tried: back to QUEUED. Only for
/// chunks that are held.
pub async fn put_back(
    connection: &mut PgConnection,
    recipients: &[(MessageId, i32)],
    now: Timestamp,
) -> Result<(), Fault> {
    if recipients.is_empty() {
        return Ok(());
    }
    let (ids, positions): (Vec<Uuid>, Vec<i32>) = recipients
        .iter()
        .map(|(id, position)| (id.0, *position))
        .unzip();
    query!(
        r#"UPDATE recipients r
           SET status = 'QUEUED'
           FROM UNNEST($1::uuid[], $2::int[]) AS given (message_id, position)
           WHERE r.message_id = given.message_id AND r.message_id = ANY($1)
             AND r.position = given.position
             AND r.status = 'SENDING' AND r.next_attempt_at <= $3"#,
        &ids,
        &positions,
        now,
    )
    .execute(connection)
    .await
    .or_fault("put recipients back")?;
    Ok(())
}

/// A chunk whose lease ended with something left to do, and from when on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rescheduled {
    pub job: SendJob,
    /// When its next recipient is due.
    pub due_at: Timestamp,
}

/// Ends leases: an outbox row whose recipients have all reached a final state is
/// deleted; another is left for when its next recipient is due. A suspect that got
/// somewhere is none any more ([`super::dead_letter`]).
pub async fn finish(
    connection: &mut PgConnection,
    worker: WorkerId,
    jobs: &[SendJob],
    relay_grace: Duration,
) -> Result<Vec<Rescheduled>, Fault> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let (ids, chunks) = columns(jobs);
    let span = IdRange::of(&ids);
    let rows = query!(
        r#"WITH ended AS (
               SELECT o.message_id, o.chunk,
                      (SELECT min(r.next_attempt_at)
                       FROM recipients r
                       WHERE r.message_id = o.message_id AND r.message_id BETWEEN $6 AND $7
                         AND r.position >= o.chunk * $4 AND r.position < (o.chunk + 1) * $4
                         AND r.status IN ('QUEUED', 'SENDING')) AS due_at
               FROM UNNEST($1::uuid[], $2::int[]) AS mine (message_id, chunk)
               JOIN outbox o ON o.message_id = ANY(ARRAY[mine.message_id]) AND o.chunk = ANY(ARRAY[mine.chunk])
               WHERE o.leased_by = $3
           ), deleted AS (
               DELETE FROM outbox o
               USING ended e
               WHERE o.message_id = ANY(ARRAY[e.message_id]) AND o.chunk = ANY(ARRAY[e.chunk])
                 AND e.due_at IS NULL
           )
           UPDATE outbox o
           SET leased_by = NULL, wake_at = e.due_at + $5, begun_at = NULL,
               losses = CASE WHEN o.begun_at IS NOT NULL AND EXISTS (
                                 SELECT 1
                                 FROM send_attempts a
                                 WHERE a.message_id = o.message_id AND a.message_id BETWEEN $6 AND $7
                                   AND a.position >= o.chunk * $4 AND a.position < (o.chunk + 1) * $4
                                   AND a.outcome IN ('ACCEPTED', 'REJECTED') AND a.finished_at >= o.begun_at)
                             THEN 0 ELSE o.losses END
           FROM ended e
           WHERE o.message_id = ANY(ARRAY[e.message_id]) AND o.chunk = ANY(ARRAY[e.chunk])
             AND e.due_at IS NOT NULL
           RETURNING o.message_id, o.chunk, o.organization_id, e.due_at AS "due_at!""#,
        &ids,
        &chunks,
        worker.0,
        CHUNK_RECIPIENTS,
        delta(relay_grace) as _,
        span.first,
        span.last,
    )
    .fetch_all(connection)
    .await
    .or_fault("end leases")?;
    let left = rows.into_iter().map(|row| Rescheduled {
        job: job(row.message_id, row.chunk, row.organization_id),
        due_at: row.due_at,
    });
    Ok(left.collect())
}

pub(super) fn columns(jobs: &[SendJob]) -> (Vec<Uuid>, Vec<i32>) {
    jobs.iter().map(|job| (job.message_id.0, job.chunk)).unzip()
}

pub(super) fn job(message_id: Uuid, chunk: i32, organization_id: Uuid) -> SendJob {
    SendJob {
        message_id: MessageId(message_id),
        chunk,
        organization_id: OrganizationId(organization_id),
    }
}
