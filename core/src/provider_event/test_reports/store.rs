//! The rows of tests whose events are to be recorded. They are written by
//! [`crate::delivery::outcome::record`].

use sqlx::{PgConnection, query, query_as};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, ProviderAccountId, SendAttemptId};
use crate::message::SimulatedOutcome;
use crate::provider::kind::ProviderType;

/// An accepted attempt of a test.
#[derive(Debug)]
pub(super) struct TestReport {
    pub(super) message_id: MessageId,
    pub(super) attempt_id: SendAttemptId,
    pub(super) organization_id: OrganizationId,
    pub(super) position: i32,
    pub(super) provider_account_id: ProviderAccountId,
    pub(super) provider_type: ProviderType,
    pub(super) provider_message_id: Option<String>,
    pub(super) test_outcome: SimulatedOutcome,
    pub(super) accepted_at: Timestamp,
}

/// Attempts of all organizations that were accepted by then, the oldest first.
pub(super) async fn list_due(
    connection: &mut PgConnection,
    accepted_by: Timestamp,
    limit: i64,
) -> Result<Vec<TestReport>, Fault> {
    query_as!(
        TestReport,
        r#"SELECT r.message_id AS "message_id: MessageId", r.attempt_id AS "attempt_id: SendAttemptId",
                  r.organization_id AS "organization_id: OrganizationId", r.position,
                  r.provider_account_id AS "provider_account_id: ProviderAccountId",
                  t.provider_type AS "provider_type: ProviderType", r.provider_message_id,
                  r.test_outcome AS "test_outcome: SimulatedOutcome", r.accepted_at
           FROM test_reports r
           JOIN provider_account_types t ON t.provider_account_id = r.provider_account_id
           WHERE r.accepted_at <= $1
           ORDER BY r.accepted_at
           LIMIT $2"#,
        accepted_by,
        limit,
    )
    .fetch_all(connection)
    .await
    .or_fault("list tests to report")
}

/// Deletes rows whose events are recorded.
pub(super) async fn delete(
    connection: &mut PgConnection,
    keys: &[(MessageId, SendAttemptId)],
) -> Result<(), Fault> {
    let (messages, attempts): (Vec<Uuid>, Vec<Uuid>) = keys
        .iter()
        .map(|(message_id, attempt_id)| (message_id.0, attempt_id.0))
        .unzip();
    query!(
        "DELETE FROM test_reports
         WHERE (message_id, attempt_id) IN (SELECT * FROM UNNEST($1::uuid[], $2::uuid[]))",
        &messages,
        &attempts,
    )
    .execute(connection)
    .await
    .or_fault("delete reported tests")?;
    Ok(())
}
