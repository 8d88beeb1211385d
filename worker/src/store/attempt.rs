//! The transactions that write and withdraw attempts.

use tokio::time::Instant;
use waypost_core::db::{self, OrFault, PgConnection};
use waypost_core::delivery::attempt::{self, AttemptKey, NewAttempt};
use waypost_core::fault::Fault;
use waypost_core::ids::WorkerId;
use waypost_core::warn_seldom;

use super::{RECORD_RETRY_FIRST, RECORD_RETRY_LONGEST, StoreWriter};

impl StoreWriter {
    /// Writes a batch of attempts; true for each that was written.
    pub(super) async fn insert_attempts(
        &self,
        attempts: Vec<(WorkerId, NewAttempt)>,
    ) -> Vec<Result<bool, Fault>> {
        const DOING: &str = "record send attempts";
        let insert =
            async |connection: &mut PgConnection| attempt::insert(connection, &attempts).await;
        match db::bounded(DOING, self.pool.run(DOING, insert)).await {
            Ok(written) => attempts
                .iter()
                .map(|(_, attempt)| Ok(written.contains(&attempt.id)))
                .collect(),
            Err(fault) => {
                // The statement may still be committed, and the calls are not made.
                self.withdraw(attempts.iter().map(|(_, attempt)| attempt.key()).collect());
                attempts.iter().map(|_| Err(fault.clone())).collect()
            }
        }
    }

    /// Withdraws attempts whose jobs do not know of them. Repeats it in the background
    /// until their lease has ended, because the statement that writes them may still be
    /// running.
    pub(super) fn withdraw(&self, attempts: Vec<AttemptKey>) {
        if attempts.is_empty() {
            return;
        }
        let pool = self.suppressions.pool.clone();
        let until = Instant::now() + self.settings.lease;
        tokio::spawn(async move {
            const DOING: &str = "withdraw unused attempts";
            let mut wait = RECORD_RETRY_FIRST;
            while Instant::now() < until {
                let withdrawing = db::bounded(DOING, async {
                    let mut connection = pool.acquire().await.or_fault(DOING)?;
                    attempt::withdraw(&mut connection, &attempts).await
                });
                if let Err(fault) = withdrawing.await {
                    let cause = fault.chain();
                    warn_seldom!(cause, "Unused attempts could not be withdrawn yet");
                }
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(RECORD_RETRY_LONGEST);
            }
        });
    }
}
