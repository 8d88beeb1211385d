//! Records outcomes: attempt, recipient, event and message in one transaction, for many
//! jobs at once.
//!
//! An outcome counts once, and only if the worker holds the lease; a late or repeated one
//! changes nothing. The first to close an attempt wins, with one exception: an attempt that
//! was closed as UNKNOWN may turn out to be accepted. A provider event proves that too
//! (`provider_event::record`), and may close an attempt before the reply to the call does.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use sqlx::{PgConnection, query, query_file_scalar};
use uuid::Uuid;

use super::attempt::NewAttempt;
use super::retry::NextState;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::event::{self, EventType, NewEvent};
use crate::fault::Fault;
use crate::ids::{EventId, MessageId, OrganizationId, SendAttemptId, WorkerId};
use crate::message::{MessageStatus, SimulatedOutcome};
use crate::provider::outcome::{Blame, SendOutcome};
use crate::suppression::feedback::{ReportedAddress, ReportedReason};

/// The longest provider message id that is stored, in characters.
const PROVIDER_ID_CHARS_MAX: usize = 255;

/// The outcome of one attempt.
#[derive(Debug, Clone)]
pub struct AttemptOutcome {
    pub attempt: NewAttempt,
    /// Whether the attempt was written. If not, no call could be made, and only the
    /// recipient's state changes.
    pub attempted: bool,
    pub outcome: SendOutcome,
    /// The HTTP status of the reply, if there was one.
    pub status_code: Option<u16>,
    pub finished_at: Timestamp,
    pub next_state: NextState,
    /// The id of the event, if there is one.
    pub event_id: EventId,
    /// What becomes of a test, of which no provider was called. `None` is a live message.
    pub test_outcome: Option<SimulatedOutcome>,
}

impl AttemptOutcome {
    fn reason(&self) -> Option<&str> {
        match &self.outcome {
            SendOutcome::Accepted { .. } => None,
            SendOutcome::Rejected { reason, .. }
            | SendOutcome::Deferred { reason, .. }
            | SendOutcome::AccountUnusable { reason, .. }
            | SendOutcome::Throttled { reason, .. }
            | SendOutcome::Unavailable { reason, .. }
            | SendOutcome::Unknown { reason } => Some(reason),
        }
    }

    /// The provider's id, without control characters: Postgres and headers do not take them.
    fn provider_message_id(&self) -> Option<String> {
        match &self.outcome {
            SendOutcome::Accepted {
                provider_message_id,
            } => provider_message_id.as_ref().map(|id| {
                let visible = id.chars().filter(|c| !c.is_control());
                visible.take(PROVIDER_ID_CHARS_MAX).collect()
            }),
            SendOutcome::Rejected { .. }
            | SendOutcome::Deferred { .. }
            | SendOutcome::AccountUnusable { .. }
            | SendOutcome::Throttled { .. }
            | SendOutcome::Unavailable { .. }
            | SendOutcome::Unknown { .. } => None,
        }
    }

    /// Whether the provider accepted the mail. That counts even without the lease.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        matches!(self.outcome, SendOutcome::Accepted { .. })
    }

    /// The address, if the provider says that it has no mailbox. A test suppresses nobody.
    #[must_use]
    pub fn bounced(&self) -> Option<(OrganizationId, ReportedAddress)> {
        if self.test_outcome.is_some() {
            return None;
        }
        let blame = match &self.outcome {
            SendOutcome::Rejected { blame, .. } => *blame,
            SendOutcome::Accepted { .. }
            | SendOutcome::Deferred { .. }
            | SendOutcome::AccountUnusable { .. }
            | SendOutcome::Throttled { .. }
            | SendOutcome::Unavailable { .. }
            | SendOutcome::Unknown { .. } => return None,
        };
        match blame {
            Blame::Mailbox => {
                let address = ReportedAddress {
                    email_hash: self.attempt.address_hash,
                    message_id: self.attempt.message_id,
                    reason: ReportedReason::HardBounce,
                };
                Some((self.attempt.organization_id, address))
            }
            Blame::Message | Blame::Recipient | Blame::Sender | Blame::SenderForRecipient => None,
        }
    }

    fn event(&self) -> Option<NewEvent> {
        Some(NewEvent {
            id: self.event_id,
            message_id: self.attempt.message_id,
            organization_id: self.attempt.organization_id,
            position: self.attempt.position,
            event_type: self.next_state.event?,
            occurred_at: self.finished_at,
            data: self.data(),
        })
    }

    /// The event's data: the attempt, the provider's id, the reason for a failure.
    fn data(&self) -> Option<Value> {
        let bounce_type = self.bounced().map(|_| "hard");
        let members = [
            (
                event::ATTEMPT_ID,
                self.attempted.then(|| json!(self.attempt.id)),
            ),
            (
                event::PROVIDER_MESSAGE_ID,
                self.provider_message_id().map(Value::String),
            ),
            (
                "reason",
                self.next_state.error.as_ref().map(|reason| json!(reason)),
            ),
            ("bounceType", bounce_type.map(Value::from)),
        ];
        let members = members.into_iter();
        let members = members.filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let data: Map<String, Value> = members.collect();
        (!data.is_empty()).then_some(Value::Object(data))
    }
}

/// Records outcomes of chunks whose lease the caller holds, and accepted ones. Returns the
/// addresses that have no mailbox, by the outcomes that counted.
///
/// Runs in a transaction, after [`super::lease::hold`]. In the same transaction follow
/// [`super::lease::finish`], [`crate::message::store::refresh_aggregates`], and
/// [`crate::suppression::Suppressions::add_feedback`] with the returned addresses.
pub async fn record(
    connection: &mut PgConnection,
    outcomes: &[AttemptOutcome],
) -> Result<Vec<(OrganizationId, ReportedAddress)>, Fault> {
    if outcomes.is_empty() {
        return Ok(Vec::new());
    }
    let closed = close_attempts(&mut *connection, outcomes).await?;
    let counted: Vec<&AttemptOutcome> = outcomes
        .iter()
        .filter(|outcome| !outcome.attempted || closed.contains(&outcome.attempt.id.0))
        .collect();
    // If two calls for one recipient end together, an accepted one counts.
    let recipient =
        |outcome: &AttemptOutcome| (outcome.attempt.message_id, outcome.attempt.position);
    let accepted = counted.iter().filter(|outcome| outcome.is_accepted());
    let accepted: HashSet<(MessageId, i32)> = accepted.map(|outcome| recipient(outcome)).collect();
    let counted: Vec<&AttemptOutcome> = counted
        .into_iter()
        .filter(|outcome| outcome.is_accepted() || !accepted.contains(&recipient(outcome)))
        .collect();
    let mut updated = update_recipients(&mut *connection, &counted).await?;
    let events: Vec<NewEvent> = counted
        .iter()
        // Of several attempts for one recipient, one updated it and gets the event.
        .filter(|outcome| updated.remove(&(outcome.attempt.message_id.0, outcome.attempt.position)))
        .filter_map(|outcome| outcome.event())
        .collect();
    event::store::insert(&mut *connection, &events).await?;
    insert_test_reports(connection, &counted).await?;
    Ok(counted
        .iter()
        .filter_map(|outcome| outcome.bounced())
        .collect())
}

/// The outcome *accepted, single recipient*: the most frequent one.
#[derive(Debug, Clone, Copy)]
pub struct SentRecord<'a> {
    worker: WorkerId,
    outcome: &'a AttemptOutcome,
}

impl<'a> SentRecord<'a> {
    /// The message.
    #[must_use]
    pub fn message_id(&self) -> MessageId {
        self.outcome.attempt.message_id
    }

    /// The record of a call that `worker` made. `None` if the outcome is another, if the
    /// message has several recipients (`recipient_count`), or if it is a test, which
    /// [`record_sent`] would count.
    #[must_use]
    pub fn of(worker: WorkerId, outcome: &'a AttemptOutcome, recipient_count: i32) -> Option<Self> {
        let next_state = &outcome.next_state;
        let is_plain = outcome.attempted
            && outcome.is_accepted()
            && outcome.test_outcome.is_none()
            && recipient_count == 1
            && outcome.attempt.position == 0
            && next_state.status == MessageStatus::Sent
            && next_state.event == Some(EventType::Sent)
            && next_state.error.is_none();
        is_plain.then_some(Self { worker, outcome })
    }
}

/// Records accepted mails and ends the leases of their chunks, in one statement. Returns the
/// attempts that it recorded completely. [`record`] and [`super::lease::finish`] handle the
/// others: their attempt or recipient has an outcome already, or another worker holds the
/// lease. No message may come twice. They come in the order of their ids, in which other
/// transactions lock them too.
///
/// The reaper locks outbox rows first; this statement locks them last. If both work on the
/// leases of one worker, after an outage, a deadlock may end one of them, and it is run again.
pub async fn record_sent(
    connection: &mut PgConnection,
    sent: &[SentRecord<'_>],
) -> Result<HashSet<SendAttemptId>, Fault> {
    let uuids =
        |pick: fn(&SentRecord<'_>) -> Uuid| -> Vec<Uuid> { sent.iter().map(pick).collect() };
    let status_codes = sent.iter().map(|s| s.outcome.status_code.map(i32::from));
    let provider_ids = sent.iter().map(|s| s.outcome.provider_message_id());
    let used = sent
        .iter()
        .map(|s| i32::from(s.outcome.next_state.uses_attempt));
    let ended = query_file_scalar!(
        "src/delivery/record_sent.sql",
        &uuids(|s| s.outcome.attempt.message_id.0),
        &uuids(|s| s.outcome.attempt.id.0),
        &uuids(|s| s.outcome.attempt.organization_id.0),
        &uuids(|s| s.outcome.event_id.0),
        &uuids(|s| s.outcome.attempt.provider_account_id.0),
        &uuids(|s| s.worker.0),
        &provider_ids.collect::<Vec<_>>() as &[Option<String>],
        &sent
            .iter()
            .map(|s| s.outcome.finished_at)
            .collect::<Vec<_>>(),
        &status_codes.collect::<Vec<_>>() as &[Option<i32>],
        &used.collect::<Vec<_>>(),
        &sent
            .iter()
            .map(|s| s.outcome.next_state.next_attempt_at)
            .collect::<Vec<_>>(),
        &sent
            .iter()
            .map(|s| s.outcome.next_state.retry_state.candidate)
            .collect::<Vec<_>>(),
        &sent
            .iter()
            .map(|s| s.outcome.next_state.retry_state.rounds)
            .collect::<Vec<_>>(),
        &sent
            .iter()
            .map(|s| s.outcome.next_state.retry_state.recoverable)
            .collect::<Vec<_>>(),
    )
    .fetch_all(connection)
    .await
    .or_fault("record accepted mails")?;
    Ok(ended.into_iter().collect())
}

async fn close_attempts(
    connection: &mut PgConnection,
    outcomes: &[AttemptOutcome],
) -> Result<HashSet<Uuid>, Fault> {
    let status_codes: Vec<Option<i32>> = outcomes
        .iter()
        .map(|o| o.status_code.map(i32::from))
        .collect();
    let rows = query!(
        r#"UPDATE send_attempts a
           SET finished_at = o.finished_at, outcome = o.outcome::attempt_outcome,
               status_code = o.status_code, reason = o.reason
           FROM UNNEST($1::uuid[], $2::uuid[], $3::timestamptz[], $4::text[], $5::int[], $6::text[])
             AS o (message_id, id, finished_at, outcome, status_code, reason)
           WHERE a.message_id = o.message_id AND a.message_id = ANY($1) AND a.id = o.id
             AND (a.outcome IS NULL OR (a.outcome = 'UNKNOWN' AND o.outcome = 'ACCEPTED'))
           RETURNING a.id"#,
        &outcomes
            .iter()
            .map(|o| o.attempt.message_id.0)
            .collect::<Vec<_>>(),
        &outcomes.iter().map(|o| o.attempt.id.0).collect::<Vec<_>>(),
        &outcomes.iter().map(|o| o.finished_at).collect::<Vec<_>>(),
        &outcomes
            .iter()
            .map(|outcome| outcome.outcome.as_str())
            .collect::<Vec<_>>() as &[&str],
        &status_codes as &[Option<i32>],
        &outcomes
            .iter()
            .map(AttemptOutcome::reason)
            .collect::<Vec<_>>() as &[Option<&str>],
    )
    .fetch_all(connection)
    .await
    .or_fault("record the outcome of attempts")?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}

async fn update_recipients(
    connection: &mut PgConnection,
    outcomes: &[&AttemptOutcome],
) -> Result<HashSet<(Uuid, i32)>, Fault> {
    let column = |pick: fn(&AttemptOutcome) -> bool| -> Vec<i32> {
        outcomes
            .iter()
            .map(|outcome| i32::from(pick(outcome)))
            .collect()
    };
    for outcome in outcomes {
        MessageStatus::Sending
            .advance(outcome.next_state.status)
            .map_err(|refused| Fault::internal("update a recipient", refused))?;
    }
    let sent_at: Vec<Option<Timestamp>> = outcomes
        .iter()
        .map(|outcome| outcome.is_accepted().then_some(outcome.finished_at))
        .collect();
    let accounts: Vec<Option<Uuid>> = outcomes
        .iter()
        .map(|o| o.attempted.then_some(o.attempt.provider_account_id.0))
        .collect();
    let rows = query!(
        r#"UPDATE recipients r
           SET status = o.status::message_status,
               provider_account_id = coalesce(o.provider_account_id, r.provider_account_id),
               provider_message_id = coalesce(o.provider_message_id, r.provider_message_id),
               attempts = r.attempts + o.used,
               unknowns = r.unknowns + o.unknown,
               last_error = o.error,
               next_attempt_at = o.next_attempt_at,
               sent_at = coalesce(r.sent_at, o.sent_at),
               failover = o.failover,
               rounds = o.rounds,
               recoverable = o.recoverable
           FROM UNNEST($1::uuid[], $2::int[], $3::text[], $4::uuid[], $5::text[], $6::int[], $7::int[],
                       $8::text[], $9::timestamptz[], $10::timestamptz[], $11::smallint[], $12::smallint[],
                       $13::bool[])
             AS o (message_id, position, status, provider_account_id, provider_message_id, used, unknown,
                   error, next_attempt_at, sent_at, failover, rounds, recoverable)
           WHERE r.message_id = o.message_id AND r.message_id = ANY($1) AND r.position = o.position
             AND (r.status = 'SENDING' OR (r.status IN ('QUEUED', 'FAILED') AND o.status = 'SENT'))
           RETURNING r.message_id, r.position"#,
        &outcomes.iter().map(|o| o.attempt.message_id.0).collect::<Vec<_>>(),
        &outcomes.iter().map(|o| o.attempt.position).collect::<Vec<_>>(),
        &outcomes.iter().map(|o| o.next_state.status.as_str()).collect::<Vec<_>>() as &[&str],
        &accounts as &[Option<Uuid>],
        &outcomes
            .iter()
            .map(|o| o.provider_message_id())
            .collect::<Vec<_>>() as &[Option<String>],
        &column(|outcome| outcome.next_state.uses_attempt),
        &column(|outcome| matches!(outcome.outcome, SendOutcome::Unknown { .. })),
        &outcomes.iter().map(|o| o.next_state.error.as_deref()).collect::<Vec<_>>() as &[Option<&str>],
        &outcomes.iter().map(|o| o.next_state.next_attempt_at).collect::<Vec<_>>(),
        &sent_at as &[Option<Timestamp>],
        &outcomes.iter().map(|o| o.next_state.retry_state.candidate).collect::<Vec<_>>(),
        &outcomes.iter().map(|o| o.next_state.retry_state.rounds).collect::<Vec<_>>(),
        &outcomes.iter().map(|o| o.next_state.retry_state.recoverable).collect::<Vec<_>>(),
    )
    .fetch_all(connection)
    .await
    .or_fault("update recipients")?;
    Ok(rows
        .into_iter()
        .map(|row| (row.message_id, row.position))
        .collect())
}

/// Inserts what the simulated provider will report of the tests that it accepted
/// ([`crate::provider_event::test_reports`]).
async fn insert_test_reports(
    connection: &mut PgConnection,
    outcomes: &[&AttemptOutcome],
) -> Result<(), Fault> {
    let accepted = outcomes.iter().filter(|outcome| outcome.is_accepted());
    let accepted = accepted.filter_map(|outcome| Some((*outcome, outcome.test_outcome?)));
    let accepted: Vec<(&AttemptOutcome, SimulatedOutcome)> = accepted.collect();
    if accepted.is_empty() {
        return Ok(());
    }
    let ids = |pick: fn(&NewAttempt) -> Uuid| -> Vec<Uuid> {
        let attempts = accepted.iter().map(|(outcome, _)| &outcome.attempt);
        attempts.map(pick).collect()
    };
    let (positions, accepted_at): (Vec<i32>, Vec<Timestamp>) = accepted
        .iter()
        .map(|(outcome, _)| (outcome.attempt.position, outcome.finished_at))
        .unzip();
    let provider_ids = accepted.iter().map(|(o, _)| o.provider_message_id());
    let test_outcomes = accepted.iter().map(|(_, outcome)| *outcome);
    query!(
        "INSERT INTO test_reports (message_id, attempt_id, organization_id, position, provider_account_id,
                                   provider_message_id, test_outcome, accepted_at)
         SELECT *
         FROM UNNEST($1::uuid[], $2::uuid[], $3::uuid[], $4::int[], $5::uuid[], $6::text[], $7::test_outcome[],
                     $8::timestamptz[])
         ON CONFLICT DO NOTHING",
        &ids(|attempt| attempt.message_id.0),
        &ids(|attempt| attempt.id.0),
        &ids(|attempt| attempt.organization_id.0),
        &positions,
        &ids(|attempt| attempt.provider_account_id.0),
        &provider_ids.collect::<Vec<_>>() as &[Option<String>],
        &test_outcomes.collect::<Vec<_>>() as &[SimulatedOutcome],
        &accepted_at,
    )
    .execute(connection)
    .await
    .or_fault("record accepted tests")?;
    Ok(())
}
