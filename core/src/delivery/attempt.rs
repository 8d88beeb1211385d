//! Send attempts. An attempt is written before its call, so that a call that may have
//! reached a provider always has a row.
//!
//! The statement that writes attempts is also the last check: a recipient that is suppressed
//! or was sent to already gets no attempt, and without an attempt there is no call. It is
//! [`insert`], or [`super::lease::lease`] if the worker predicts the account.

use std::collections::HashSet;

use sqlx::{PgConnection, query, query_scalar};
use uuid::Uuid;

use crate::address::AddressHash;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::db::id_range::IdRange;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, ProviderAccountId, SendAttemptId, WorkerId};
use crate::message::CHUNK_RECIPIENTS;

/// The key of an attempt: its message, which says in which partition it is, and its id.
pub type AttemptKey = (MessageId, SendAttemptId);

/// An attempt about to be made.
#[derive(Debug, Clone, Copy)]
pub struct NewAttempt {
    /// The mail carries it too.
    pub id: SendAttemptId,
    pub message_id: MessageId,
    pub organization_id: OrganizationId,
    pub position: i32,
    pub address_hash: AddressHash,
    pub provider_account_id: ProviderAccountId,
    pub started_at: Timestamp,
    /// From then on it is not written.
    pub expires_at: Option<Timestamp>,
}

impl NewAttempt {
    /// Its key.
    #[must_use]
    pub fn key(&self) -> AttemptKey {
        (self.message_id, self.id)
    }
}

/// Deletes attempts whose calls were not made. An attempt with an outcome is kept: its call
/// was made.
pub async fn withdraw(connection: &mut PgConnection, attempts: &[AttemptKey]) -> Result<(), Fault> {
    if attempts.is_empty() {
        return Ok(());
    }
    query!(
        r#"DELETE FROM send_attempts a
           USING UNNEST($1::uuid[], $2::uuid[]) AS given (message_id, id)
           WHERE a.message_id = given.message_id AND a.message_id = ANY($1) AND a.id = given.id
             AND a.outcome IS NULL"#,
        &attempts
            .iter()
            .map(|(message_id, _)| message_id.0)
            .collect::<Vec<_>>(),
        &attempts.iter().map(|(_, id)| id.0).collect::<Vec<_>>(),
    )
    .execute(connection)
    .await
    .or_fault("withdraw send attempts")?;
    Ok(())
}

/// Writes attempts without an outcome, and returns the ids of those that were written. An
/// attempt is not written if its recipient is suppressed; if the recipient is not SENDING
/// any more, because a provider event proved an earlier attempt; if its message has expired, by
/// the clock of Postgres; or if the chunk is not leased by the worker, whose clock may have been
/// suspended.
///
/// # Errors
/// A fault if Postgres does not answer. None of the calls may be made then.
pub async fn insert(
    connection: &mut PgConnection,
    attempts: &[(WorkerId, NewAttempt)],
) -> Result<HashSet<SendAttemptId>, Fault> {
    let workers: Vec<Uuid> = attempts.iter().map(|(worker, _)| worker.0).collect();
    let attempts: Vec<NewAttempt> = attempts.iter().map(|(_, attempt)| *attempt).collect();
    let ids = |pick: fn(&NewAttempt) -> Uuid| attempts.iter().map(pick).collect::<Vec<_>>();
    let hashes = attempts
        .iter()
        .map(|attempt| attempt.address_hash.0.as_slice());
    let message_ids = ids(|attempt| attempt.message_id.0);
    let range = IdRange::of(&message_ids);
    let written = query_scalar!(
        r#"INSERT INTO send_attempts (message_id, id, organization_id, position, provider_account_id, started_at)
           SELECT message_id, id, organization_id, position, provider_account_id, started_at
           FROM UNNEST($1::uuid[], $2::uuid[], $3::uuid[], $4::int[], $5::uuid[], $6::timestamptz[], $7::bytea[],
                       $8::uuid[], $12::timestamptz[])
             AS a (message_id, id, organization_id, position, provider_account_id, started_at, address_hash, worker,
                   expires_at)
           WHERE (SELECT r.status
                  FROM recipients r
                  WHERE r.message_id = a.message_id AND r.message_id BETWEEN $10 AND $11
                    AND r.position = a.position
                  LIMIT 1) = 'SENDING'
             AND (SELECT o.leased_by
                  FROM outbox o
                  WHERE o.message_id = a.message_id AND o.chunk = a.position / $9
                  LIMIT 1) = a.worker
             AND (a.expires_at IS NULL OR a.expires_at > clock_timestamp())
             AND NOT EXISTS (
               SELECT 1
               FROM suppressions s
               WHERE s.organization_id = a.organization_id AND s.email_hash = a.address_hash
                 AND (s.unsubscribe_group_id IS NULL
                      OR s.unsubscribe_group_id = (SELECT m.unsubscribe_group_id
                                                   FROM messages m
                                                   WHERE m.id = a.message_id AND m.id BETWEEN $10 AND $11)))
           RETURNING id AS "id: SendAttemptId""#,
        &message_ids,
        &ids(|attempt| attempt.id.0),
        &ids(|attempt| attempt.organization_id.0),
        &attempts.iter().map(|attempt| attempt.position).collect::<Vec<_>>(),
        &ids(|attempt| attempt.provider_account_id.0),
        &attempts.iter().map(|attempt| attempt.started_at).collect::<Vec<_>>(),
        &hashes.collect::<Vec<_>>() as &[&[u8]],
        &workers,
        CHUNK_RECIPIENTS,
        range.first,
        range.last,
        &attempts.iter().map(|attempt| attempt.expires_at).collect::<Vec<_>>() as &[Option<Timestamp>],
    )
    .fetch_all(connection)
    .await
    .or_fault("record send attempts")?;
    Ok(written.into_iter().collect())
}
