//! Leases. A worker leases chunks, and all its leases end together, when its heartbeat stops
//! for longer than the lease. So a heartbeat is one small update, however many chunks the
//! worker holds. The clock is that of Postgres, since several machines compare these times.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sqlx::types::Json;
use sqlx::{PgConnection, query, query_as, query_file_as};
use uuid::Uuid;

use super::attempt::NewAttempt;
use super::job::SendJob;
use super::retry::RetryState;
use crate::address::AddressHash;
use crate::attachment::AttachmentRef;
use crate::clock::{Timestamp, delta};
use crate::db::OrFault;
use crate::db::id_range::IdRange;
use crate::fault::Fault;
use crate::ids::{
    MessageId, OrganizationId, ProviderAccountId, RoutingRuleId, SendAttemptId, UnsubscribeGroupId,
    WorkerId,
};
use crate::message::compose::MessageContent;
use crate::message::{CHUNK_RECIPIENTS, RecipientKind, SimulatedOutcome};
use crate::routing::AcceptedRoute;
use crate::telemetry::traces::TraceContext;
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

/// Moves the end of all leases of a worker. False if its leases have ended already.
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

/// Removes a worker from the list if it holds no lease. One that holds leases stays, and the
/// reaper takes them back when they end. Runs in a transaction: the row is locked first, so
/// that the worker leases nothing meanwhile.
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
    /// When this process started.
    pub started_at: Timestamp,
    /// When its leases end without another heartbeat.
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

/// The lease of a chunk, with its due recipients.
#[derive(Debug)]
pub struct ChunkLease {
    /// The job that it was leased for.
    pub job: SendJob,
    /// The recipients, now SENDING; empty if none is due.
    pub recipients: Vec<LeasedRecipient>,
    /// How often a worker was lost or panicked while it held this chunk: see
    /// [`super::dead_letter`].
    pub losses: i16,
    /// The attempt that was written with the lease.
    pub prewritten: Option<NewAttempt>,
}

/// A chunk to lease.
#[derive(Debug, Clone, Copy)]
pub struct LeaseRequest {
    pub job: SendJob,
    /// The attempt to write with the lease, if the worker predicts the account.
    pub predicted: Option<PredictedAttempt>,
}

/// An attempt through the account that a worker predicts.
#[derive(Debug, Clone, Copy)]
pub struct PredictedAttempt {
    /// Its id, if it is written.
    pub attempt_id: SendAttemptId,
    pub provider_account_id: ProviderAccountId,
}

/// A recipient to send to.
#[derive(Debug)]
pub struct LeasedRecipient {
    /// Its index among the message's recipients.
    pub position: i32,
    /// Its mailbox, sealed.
    pub address_sealed: Vec<u8>,
    pub address_hash: AddressHash,
    /// How many of its attempts have an unknown outcome.
    pub unknowns: i32,
    pub retry_state: RetryState,
    pub kind: RecipientKind,
}

/// A message, without its recipients.
#[derive(Debug, Clone)]
pub struct LeasedMessage {
    pub content: MessageContent,
    /// Whether the bodies are too large to be read with many others.
    pub body_left_out: bool,
    /// All of its recipients, due or not.
    pub recipient_count: i32,
    /// The account resolved at acceptance.
    pub provider_account_id: ProviderAccountId,
    /// The rule that chose the account, if one did. It may have been deleted.
    pub routing_rule_id: Option<RoutingRuleId>,
    pub accepted_at: Timestamp,
    /// When the customer last retried it: the retry horizon counts from here.
    pub retried_at: Option<Timestamp>,
    /// Not sent before this time.
    pub scheduled_at: Option<Timestamp>,
    /// Not sent from this time on.
    pub expires_at: Option<Timestamp>,
    /// Whether only the account resolved at acceptance may send it.
    pub is_account_pinned: bool,
    /// What becomes of a test, for which no provider is called. `None` is a live message.
    pub test_outcome: Option<SimulatedOutcome>,
    /// Whether a recipient may have content of its own (`recipient_contents`).
    pub has_recipient_contents: bool,
    /// Where its request stands in its trace.
    pub trace: Option<TraceContext>,
}

impl LeasedMessage {
    /// The time from which the retry horizon counts.
    #[must_use]
    pub fn tried_since(&self) -> Timestamp {
        let begins = self.scheduled_at.unwrap_or(self.accepted_at);
        self.retried_at
            .unwrap_or_else(|| begins.max(self.accepted_at))
    }

    /// What acceptance decided about its route.
    #[must_use]
    pub fn accepted_route(&self) -> AcceptedRoute {
        AcceptedRoute {
            account_id: self.provider_account_id,
            rule_id: self.routing_rule_id,
            is_pinned: self.is_account_pinned,
            is_resolved_anew: self.scheduled_at.is_some(),
        }
    }

    /// Whether it must not be sent any more.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

/// The largest bodies, in bytes, that are read with the lease.
const BODY_BYTES_MAX: i32 = 256 * 1024;

/// Leases the requested chunks that no worker holds, sets their due recipients to SENDING
/// and reads their messages, all in one statement. A worker whose leases have ended gets
/// none; its row is locked until the statement ends, so every lease has a worker. A message
/// that is not returned does not exist any more.
///
/// The status of the messages stays as it is: the worker calls
/// [`crate::message::store::mark_sending`] if sending takes its time.
///
/// Bodies larger than 256 KiB are left out, because the statement reads many; [`load_body`]
/// reads one.
///
/// The predicted attempt is written if the message has one recipient that is not suppressed
/// and is tried for the first time, if the message's account is the predicted one, if its
/// body is not left out, and if it is no test. [`super::attempt::insert`] writes all other attempts.
///
/// If no attempt is predicted, the commit does not wait for the disk. A lease that a crash
/// of Postgres takes back leaves nothing behind: if an attempt is on disk, its lease is
/// before it in the write-ahead log, and no call is made before its attempt is committed. So
/// this must not run in a transaction of the caller.
pub async fn lease(
    connection: &mut PgConnection,
    worker: WorkerId,
    requests: &[LeaseRequest],
    now: Timestamp,
) -> Result<(Vec<ChunkLease>, HashMap<MessageId, LeasedMessage>), Fault> {
    let jobs: Vec<SendJob> = requests.iter().map(|request| request.job).collect();
    let (ids, chunks) = columns(&jobs);
    let range = IdRange::of(&ids);
    let predicted = |pick: fn(&PredictedAttempt) -> Uuid| -> Vec<Option<Uuid>> {
        let all = requests.iter().map(|request| request.predicted.as_ref());
        all.map(|predicted| predicted.map(pick)).collect()
    };
    let may_be_lost = requests.iter().all(|request| request.predicted.is_none());
    let rows = query_file_as!(
        LeaseRow,
        "src/delivery/lease.sql",
        &ids,
        &chunks,
        worker.0,
        CHUNK_RECIPIENTS,
        now,
        BODY_BYTES_MAX,
        &predicted(|attempt| attempt.attempt_id.0) as &[Option<Uuid>],
        &predicted(|attempt| attempt.provider_account_id.0) as &[Option<Uuid>],
        may_be_lost,
        range.first,
        range.last,
    )
    .fetch_all(connection)
    .await
    .or_fault("lease chunks")?;
    let mut leased: HashMap<SendJob, ChunkLease> = HashMap::with_capacity(jobs.len());
    let mut messages = HashMap::with_capacity(jobs.len());
    for mut row in rows {
        let job = row.job();
        let chunk = leased.entry(job).or_insert_with(|| ChunkLease {
            job,
            recipients: Vec::new(),
            losses: row.losses,
            prewritten: None,
        });
        if row.is_prewritten {
            chunk.prewritten = row.attempt(now);
        }
        chunk.recipients.extend(row.recipient());
        messages.extend(row.message().map(|message| (job.message_id, message)));
    }
    // The join does not keep the order in which the customer named them.
    for chunk in leased.values_mut() {
        chunk.recipients.sort_by_key(|recipient| recipient.position);
    }
    Ok((leased.into_values().collect(), messages))
}

/// A due recipient with, in the first row of each message, the message; or a leased chunk of
/// which nothing is due.
struct LeaseRow {
    message_id: Uuid,
    chunk: i32,
    organization_id: Uuid,
    losses: i16,
    is_prewritten: bool,
    attempt_id: Option<SendAttemptId>,
    position: Option<i32>,
    address_sealed: Option<Vec<u8>>,
    address_hash: Option<AddressHash>,
    unknowns: Option<i32>,
    failover: Option<i16>,
    rounds: Option<i16>,
    recoverable: Option<bool>,
    subject: Option<String>,
    tags: Option<Vec<String>>,
    created_at: Option<Timestamp>,
    retried_at: Option<Timestamp>,
    routing_rule_id: Option<Uuid>,
    account_id: Option<Uuid>,
    unsubscribe_group_id: Option<Uuid>,
    track_opens: Option<bool>,
    track_clicks: Option<bool>,
    recipient_count: Option<i32>,
    from_mailbox: Option<String>,
    reply_to: Option<String>,
    is_body_left_out: Option<bool>,
    html: Option<String>,
    text: Option<String>,
    kind: Option<RecipientKind>,
    headers: Option<Json<Vec<(String, String)>>>,
    attachments: Option<Json<Vec<AttachmentRef>>>,
    scheduled_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    is_shared: Option<bool>,
    is_account_pinned: Option<bool>,
    test_outcome: Option<SimulatedOutcome>,
    has_recipient_contents: Option<bool>,
    traceparent: Option<String>,
}

impl LeaseRow {
    fn job(&self) -> SendJob {
        job(self.message_id, self.chunk, self.organization_id)
    }

    fn attempt(&self, started_at: Timestamp) -> Option<NewAttempt> {
        Some(NewAttempt {
            id: self.attempt_id?,
            message_id: MessageId(self.message_id),
            organization_id: OrganizationId(self.organization_id),
            position: self.position?,
            address_hash: self.address_hash?,
            provider_account_id: ProviderAccountId(self.account_id?),
            started_at,
            expires_at: self.expires_at,
        })
    }

    fn recipient(&mut self) -> Option<LeasedRecipient> {
        Some(LeasedRecipient {
            position: self.position?,
            address_sealed: self.address_sealed.take()?,
            address_hash: self.address_hash?,
            unknowns: self.unknowns?,
            retry_state: RetryState::stored(self.failover?, self.rounds?, self.recoverable?),
            kind: self.kind.unwrap_or_default(),
        })
    }

    fn message(self) -> Option<LeasedMessage> {
        let content = MessageContent {
            id: MessageId(self.message_id),
            organization_id: OrganizationId(self.organization_id),
            from_mailbox: self.from_mailbox?,
            reply_to: self.reply_to,
            subject: self.subject?,
            html: self.html,
            text: self.text,
            tags: self.tags?,
            unsubscribe_group_id: self.unsubscribe_group_id.map(UnsubscribeGroupId),
            tracking: Tracking {
                opens: self.track_opens?,
                clicks: self.track_clicks?,
            },
            headers: self
                .headers
                .map(|Json(headers)| headers)
                .unwrap_or_default(),
            attachments: self.attachments.map(|Json(list)| list).unwrap_or_default(),
            is_shared: self.is_shared.unwrap_or_default(),
        };
        Some(LeasedMessage {
            content,
            body_left_out: self.is_body_left_out?,
            recipient_count: self.recipient_count?,
            provider_account_id: ProviderAccountId(self.account_id?),
            routing_rule_id: self.routing_rule_id.map(RoutingRuleId),
            accepted_at: self.created_at?,
            retried_at: self.retried_at,
            scheduled_at: self.scheduled_at,
            expires_at: self.expires_at,
            is_account_pinned: self.is_account_pinned.unwrap_or_default(),
            test_outcome: self.test_outcome,
            has_recipient_contents: self.has_recipient_contents.unwrap_or_default(),
            trace: self.traceparent.and_then(|text| text.parse().ok()),
        })
    }
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

/// The given leases that their workers still hold. Their rows stay locked until the
/// transaction ends, so the reaper waits. A statement of its own, so that the next ones see
/// all that was committed before.
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
           -- Not by the outbox's columns: Postgres might then read its whole index.
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

/// Sets recipients that were leased but not tried back to QUEUED. Only for chunks whose lease
/// is held.
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

/// A chunk whose lease ended with recipients left to send to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rescheduled {
    pub job: SendJob,
    /// When its next recipient is due.
    pub due_at: Timestamp,
}

/// Ends leases. If all recipients of the chunk have a final status, its outbox row is
/// deleted; otherwise it waits until the next recipient is due. If an attempt of a
/// quarantined chunk was accepted or rejected, its losses are reset
/// ([`super::dead_letter`]).
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
    let range = IdRange::of(&ids);
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
        range.first,
        range.last,
    )
    .fetch_all(connection)
    .await
    .or_fault("end leases")?;
    let rescheduled = rows.into_iter().map(|row| Rescheduled {
        job: job(row.message_id, row.chunk, row.organization_id),
        due_at: row.due_at,
    });
    Ok(rescheduled.collect())
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
