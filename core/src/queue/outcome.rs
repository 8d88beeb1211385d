//! Recording outcomes: attempt, recipient, event and message in one transaction,
//! for the outcomes of many jobs at once.
//!
//! An outcome counts once, and only from the holder of the lease, so that one which
//! comes late or twice does not undo what has happened since. The first to close an attempt wins; the one exception
//! is evidence: an attempt that was given up as UNKNOWN and turns out to have been
//! accepted. A provider's event is evidence too (`event::record`), and may close an
//! attempt before the call's own answer does.

use std::collections::HashSet;

use sqlx::{PgConnection, query};
use uuid::Uuid;

use super::attempt::NewAttempt;
use super::retry::Verdict;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::event::{self, NewEvent};
use crate::fault::Fault;
use crate::ids::{EventId, MessageId, OrganizationId};
use crate::message::MessageStatus;
use crate::provider::outcome::{Blame, SendOutcome};
use crate::suppression::told::{ToldAddress, ToldReason};

/// The longest id of a provider that is kept, in characters.
const PROVIDER_ID_CHARS_MAX: usize = 255;

/// What came of one attempt.
#[derive(Debug, Clone)]
pub struct AttemptOutcome {
    /// The attempt.
    pub attempt: NewAttempt,
    /// Whether it was written. Where something stood in the way before a call
    /// could be made there is no such row, and only the recipient moves.
    pub attempted: bool,
    /// What came of it.
    pub outcome: SendOutcome,
    /// The HTTP status of the answer, where there was one.
    pub status_code: Option<u16>,
    /// When.
    pub finished_at: Timestamp,
    /// What follows.
    pub verdict: Verdict,
    /// The id of the event, where one follows.
    pub event_id: EventId,
}

impl AttemptOutcome {
    fn label(&self) -> &'static str {
        match self.outcome {
            SendOutcome::Accepted { .. } => "ACCEPTED",
            SendOutcome::Rejected { .. } => "REJECTED",
            SendOutcome::Throttled { .. } => "THROTTLED",
            SendOutcome::Unavailable { .. } => "UNAVAILABLE",
            SendOutcome::Unknown { .. } => "UNKNOWN",
        }
    }

    fn reason(&self) -> Option<&str> {
        match &self.outcome {
            SendOutcome::Accepted { .. } => None,
            SendOutcome::Rejected { reason, .. }
            | SendOutcome::Throttled { reason, .. }
            | SendOutcome::Unavailable { reason, .. }
            | SendOutcome::Unknown { reason } => Some(reason),
        }
    }

    /// The provider's id, without what a text in Postgres or a header may not hold.
    fn provider_message_id(&self) -> Option<String> {
        match &self.outcome {
            SendOutcome::Accepted {
                provider_message_id,
            } => provider_message_id.as_ref().map(|id| {
                let visible = id.chars().filter(|c| !c.is_control());
                visible.take(PROVIDER_ID_CHARS_MAX).collect()
            }),
            SendOutcome::Rejected { .. }
            | SendOutcome::Throttled { .. }
            | SendOutcome::Unavailable { .. }
            | SendOutcome::Unknown { .. } => None,
        }
    }

    /// Whether the provider took it: evidence that counts whoever brings it.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        matches!(self.outcome, SendOutcome::Accepted { .. })
    }

    /// The address, where the answer says that it has no mailbox.
    #[must_use]
    pub fn bounced(&self) -> Option<(OrganizationId, ToldAddress)> {
        let blame = match &self.outcome {
            SendOutcome::Rejected { blame, .. } => *blame,
            SendOutcome::Accepted { .. }
            | SendOutcome::Throttled { .. }
            | SendOutcome::Unavailable { .. }
            | SendOutcome::Unknown { .. } => return None,
        };
        match blame {
            Blame::Mailbox => {
                let told = ToldAddress {
                    email_hash: self.attempt.address_hash,
                    message_id: self.attempt.message_id,
                    reason: ToldReason::HardBounce,
                };
                Some((self.attempt.organization_id, told))
            }
            Blame::Message | Blame::Recipient | Blame::Sender | Blame::Account => None,
        }
    }

    fn event(&self) -> Option<NewEvent> {
        Some(NewEvent {
            id: self.event_id,
            message_id: self.attempt.message_id,
            organization_id: self.attempt.organization_id,
            position: self.attempt.position,
            event_type: self.verdict.event?,
            occurred_at: self.finished_at,
            data: self.verdict.error.as_ref().map(|reason| {
                if self.bounced().is_some() {
                    serde_json::json!({ "reason": reason, "bounceType": "hard" })
                } else {
                    serde_json::json!({ "reason": reason })
                }
            }),
        })
    }
}

/// Records outcomes: of chunks whose lease the caller holds, and accepted ones. To
/// be run in a transaction, after [`super::lease::hold`] and with
/// [`super::lease::finish`] and [`crate::message::store::refresh_aggregates`]
/// after it, and with [`crate::suppression::Suppressions::add_told`] for the addresses
/// that are returned: those that these outcomes, as far as they counted, found to have no
/// mailbox.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn record(
    connection: &mut PgConnection,
    outcomes: &[AttemptOutcome],
) -> Result<Vec<(OrganizationId, ToldAddress)>, Fault> {
    if outcomes.is_empty() {
        return Ok(Vec::new());
    }
    let closed = close_attempts(&mut *connection, outcomes).await?;
    let counted: Vec<&AttemptOutcome> = outcomes
        .iter()
        .filter(|outcome| !outcome.attempted || closed.contains(&outcome.attempt.id.0))
        .collect();
    // Where two calls for one recipient end together, that one was taken counts.
    let place = |outcome: &AttemptOutcome| (outcome.attempt.message_id, outcome.attempt.position);
    let taken = counted.iter().filter(|outcome| outcome.is_accepted());
    let taken: HashSet<(MessageId, i32)> = taken.map(|outcome| place(outcome)).collect();
    let counted: Vec<&AttemptOutcome> = counted
        .into_iter()
        .filter(|outcome| outcome.is_accepted() || !taken.contains(&place(outcome)))
        .collect();
    let mut moved = move_recipients(&mut *connection, &counted).await?;
    let events: Vec<NewEvent> = counted
        .iter()
        // Of several attempts for one recipient, one moved it.
        .filter(|outcome| moved.remove(&(outcome.attempt.message_id.0, outcome.attempt.position)))
        .filter_map(|outcome| outcome.event())
        .collect();
    event::store::insert(connection, &events).await?;
    Ok(counted
        .iter()
        .filter_map(|outcome| outcome.bounced())
        .collect())
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
            .map(AttemptOutcome::label)
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

async fn move_recipients(
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
            .advance(outcome.verdict.status)
            .map_err(|refused| Fault::internal("move a recipient", refused))?;
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
        &outcomes.iter().map(|o| o.verdict.status.as_str()).collect::<Vec<_>>() as &[&str],
        &accounts as &[Option<Uuid>],
        &outcomes
            .iter()
            .map(|o| o.provider_message_id())
            .collect::<Vec<_>>() as &[Option<String>],
        &column(|outcome| outcome.verdict.uses_attempt),
        &column(|outcome| matches!(outcome.outcome, SendOutcome::Unknown { .. })),
        &outcomes.iter().map(|o| o.verdict.error.as_deref()).collect::<Vec<_>>() as &[Option<&str>],
        &outcomes.iter().map(|o| o.verdict.next_attempt_at).collect::<Vec<_>>(),
        &sent_at as &[Option<Timestamp>],
        &outcomes.iter().map(|o| o.verdict.turn.candidate).collect::<Vec<_>>(),
        &outcomes.iter().map(|o| o.verdict.turn.rounds).collect::<Vec<_>>(),
        &outcomes.iter().map(|o| o.verdict.turn.recoverable).collect::<Vec<_>>(),
    )
    .fetch_all(connection)
    .await
    .or_fault("move recipients")?;
    Ok(rows
        .into_iter()
        .map(|row| (row.message_id, row.position))
        .collect())
}
