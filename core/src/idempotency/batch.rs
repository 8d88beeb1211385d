//! Idempotent requests that are committed in several parts: batch sends.
//!
//! The request claims its key before the first part, without an answer. Each part has a
//! claim of its own ([`KeyClaim::part`]), committed with it. The answer is stored after the
//! last part.
//!
//! If the process crashes, a repeated request finds the claim without an answer and
//! continues: parts that were executed get their stored answers, the others are executed now.
//! A request with another body is refused from the beginning. A claim without an answer
//! remains even if its request failed: the executed parts must not be executed again for
//! another body.

use super::single::repeat_of;
use super::store::{self, ClaimOutcome};
use super::{KeyClaim, KeyConflict, Repeat, StoredAnswer};
use crate::clock::Timestamp;
use crate::crypto::seal::Sealer;
use crate::db::{self, OrFault, PgPool};
use crate::fault::Fault;

/// A batch whose key is claimed, by this request or an earlier one.
pub struct IdempotentBatch<'a> {
    pool: &'a PgPool,
    sealer: &'a Sealer,
    claim: KeyClaim,
}

impl<'a> IdempotentBatch<'a> {
    /// Claims the key, or finds the claim of an earlier request with the same body and
    /// without an answer.
    ///
    /// # Errors
    /// The stored answer, or the conflict.
    pub async fn begin(
        pool: &'a PgPool,
        sealer: &'a Sealer,
        mut claim: KeyClaim,
    ) -> Result<Self, Repeat> {
        let doing = "claim the key of a batch";
        let mut transaction = db::begin(pool, doing).await?;
        match store::claim_or_wait(&mut transaction, &claim).await? {
            ClaimOutcome::Claimed => transaction.commit().await.or_fault(doing)?,
            ClaimOutcome::Busy => return Err(Repeat::Conflict(KeyConflict::StillRunning)),
            ClaimOutcome::Taken => {
                let found = store::find(&mut transaction, &claim).await?;
                let found = found.ok_or_else(|| Fault::unavailable(doing, "it was deleted"))?;
                if found.body_hash != claim.body_hash || found.answer.is_some() {
                    return Err(repeat_of(&found, &claim, sealer));
                }
                // The claims of all parts expire at the same time.
                claim.at = found.created_at;
            }
        }
        Ok(Self {
            pool,
            sealer,
            claim,
        })
    }

    /// The claim of the part with this index.
    #[must_use]
    pub fn part(&self, index: usize) -> KeyClaim {
        self.claim.part(index)
    }

    /// When the first request with the key arrived.
    #[must_use]
    pub fn begun_at(&self) -> Timestamp {
        self.claim.at
    }

    /// Stores the answer after the last part.
    ///
    /// # Errors
    /// The answer that another request with the key stored meanwhile, or a fault.
    pub async fn finish(&self, answer: &StoredAnswer) -> Result<(), Repeat> {
        let sealed = answer.seal(self.sealer, &self.claim);
        let doing = "store the answer to a batch";
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        if store::update_answer(&mut connection, &self.claim, &sealed).await? {
            return Ok(());
        }
        match store::find(&mut connection, &self.claim).await? {
            Some(found) => Err(repeat_of(&found, &self.claim, self.sealer)),
            // The key expired meanwhile.
            None => Ok(()),
        }
    }
}
