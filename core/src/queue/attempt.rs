//! Send attempts: written before the call is made, so that a call which may have
//! reached a provider always has a trace.

use sqlx::{PgConnection, query};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, ProviderAccountId, SendAttemptId};

/// An attempt about to be made.
#[derive(Debug, Clone, Copy)]
pub struct NewAttempt {
    /// Its id; it travels with the mail.
    pub id: SendAttemptId,
    /// The message.
    pub message_id: MessageId,
    /// Whose message.
    pub organization_id: OrganizationId,
    /// Which recipient.
    pub position: i32,
    /// Through which account.
    pub provider_account_id: ProviderAccountId,
    /// When.
    pub started_at: Timestamp,
}

/// Forgets attempts whose calls were not made after all. Only open ones go: what
/// has an outcome happened.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn withdraw(connection: &mut PgConnection, attempts: &[NewAttempt]) -> Result<(), Fault> {
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
            .map(|attempt| attempt.message_id.0)
            .collect::<Vec<_>>(),
        &attempts
            .iter()
            .map(|attempt| attempt.id.0)
            .collect::<Vec<_>>(),
    )
    .execute(connection)
    .await
    .or_fault("withdraw send attempts")?;
    Ok(())
}

/// Writes attempts, open: their outcome is not known yet.
///
/// # Errors
/// A fault when Postgres is away. None of the calls may be made then.
pub async fn insert(connection: &mut PgConnection, attempts: &[NewAttempt]) -> Result<(), Fault> {
    let ids = |pick: fn(&NewAttempt) -> Uuid| attempts.iter().map(pick).collect::<Vec<_>>();
    query!(
        r#"INSERT INTO send_attempts (message_id, id, organization_id, position, provider_account_id, started_at)
           SELECT * FROM UNNEST($1::uuid[], $2::uuid[], $3::uuid[], $4::int[], $5::uuid[], $6::timestamptz[])"#,
        &ids(|attempt| attempt.message_id.0),
        &ids(|attempt| attempt.id.0),
        &ids(|attempt| attempt.organization_id.0),
        &attempts.iter().map(|attempt| attempt.position).collect::<Vec<_>>(),
        &ids(|attempt| attempt.provider_account_id.0),
        &attempts.iter().map(|attempt| attempt.started_at).collect::<Vec<_>>(),
    )
    .execute(connection)
    .await
    .or_fault("record send attempts")?;
    Ok(())
}
