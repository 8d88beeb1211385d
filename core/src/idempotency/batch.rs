//! Doing something once that is committed in parts, as a batch is. Its key is
//! claimed before the first part, without an answer; every part has a claim of its
//! own ([`KeyClaim::part`]), committed with it; the answer follows the last.
//!
//! So whoever repeats it after a crash finds the claim without an answer and goes
//! on: the parts that were done answer what they were answered, the others are
//! done now. Another body is refused from the first moment on. A claim without an
//! answer stays although its request failed: what was done of it must not be done
//! again for another body.

use super::single::judge;
use super::store::{self, Claiming};
use super::{KeyClaim, KeyConflict, Repeat, StoredAnswer};
use crate::clock::Timestamp;
use crate::crypto::seal::Sealer;
use crate::db::{self, OrFault, PgPool};
use crate::fault::Fault;

/// Work in parts that was begun, now or by an earlier request.
pub struct IdempotentBatch<'a> {
    pool: &'a PgPool,
    sealer: &'a Sealer,
    claim: KeyClaim,
}

impl<'a> IdempotentBatch<'a> {
    /// Claims the key, or finds it claimed for the same body and not answered.
    ///
    /// # Errors
    /// That it was answered before, or why the key cannot be had.
    pub async fn begin(
        pool: &'a PgPool,
        sealer: &'a Sealer,
        mut claim: KeyClaim,
    ) -> Result<Self, Repeat> {
        let doing = "claim the key of a batch";
        let mut transaction = db::begin(pool, doing).await?;
        match store::claim_patiently(&mut transaction, &claim).await? {
            Claiming::Claimed => transaction.commit().await.or_fault(doing)?,
            Claiming::Held => return Err(Repeat::Conflict(KeyConflict::StillRunning)),
            Claiming::Taken => {
                let found = store::find(&mut transaction, &claim).await?;
                let found = found.ok_or_else(|| Fault::unavailable(doing, "it is gone"))?;
                if found.body_hash != claim.body_hash || found.answer.is_some() {
                    return Err(judge(&found, &claim, sealer));
                }
                // All that belongs to it is kept equally long.
                claim.at = found.created_at;
            }
        }
        Ok(Self {
            pool,
            sealer,
            claim,
        })
    }

    /// The claim of the part at `place`.
    #[must_use]
    pub fn part(&self, place: usize) -> KeyClaim {
        self.claim.part(place)
    }

    /// When it was begun the first time.
    #[must_use]
    pub fn begun_at(&self) -> Timestamp {
        self.claim.at
    }

    /// Keeps what is answered when all parts are done.
    ///
    /// # Errors
    /// What another request with the key answered meanwhile, or a fault.
    pub async fn finish(&self, answer: &StoredAnswer) -> Result<(), Repeat> {
        let sealed = answer.seal(self.sealer, &self.claim);
        let doing = "keep the answer to a batch";
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        if store::update_answer(&mut connection, &self.claim, &sealed).await? {
            return Ok(());
        }
        match store::find(&mut connection, &self.claim).await? {
            Some(found) => Err(judge(&found, &self.claim, self.sealer)),
            // It took a day; nobody may rely on the key any more.
            None => Ok(()),
        }
    }
}
