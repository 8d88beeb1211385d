//! Idempotent requests with one transaction: the claim is its first statement and the answer
//! its last. Two requests with the same key run one after the other, because the second waits
//! for the row of the first.

use super::{KeyClaim, KeyConflict, Repeat, StoredAnswer, store};
use crate::crypto::seal::Sealer;
use crate::db::{self, OrFault, PgConnection, PgPool, PgTransaction};
use crate::fault::Fault;
use store::{ClaimOutcome, KeyRow};

/// Why a request was not executed.
#[derive(Debug)]
pub enum Failed<R> {
    /// Its key was used before.
    Repeat(Repeat),
    /// The refusal of the operation itself.
    Refused(R),
}

impl<R> From<Repeat> for Failed<R> {
    fn from(repeat: Repeat) -> Self {
        Self::Repeat(repeat)
    }
}

impl<R: From<Fault>> From<Fault> for Failed<R> {
    fn from(fault: Fault) -> Self {
        Self::Refused(fault.into())
    }
}

/// An operation with result `T`, with or without an idempotency key.
pub struct Idempotent<'a, T>(Option<Keyed<'a, T>>);

struct Keyed<'a, T> {
    claim: KeyClaim,
    sealer: &'a Sealer,
    answer: Box<dyn Fn(&T) -> StoredAnswer + Send + Sync + 'a>,
}

impl<'a, T> Idempotent<'a, T> {
    /// An operation with a claim. Without one it is executed every time. `answer` makes the
    /// HTTP response from the result; it is stored sealed.
    pub fn new(
        claim: Option<KeyClaim>,
        sealer: &'a Sealer,
        answer: impl Fn(&T) -> StoredAnswer + Send + Sync + 'a,
    ) -> Self {
        Self(claim.map(|claim| Keyed {
            claim,
            sealer,
            answer: Box::new(answer),
        }))
    }

    /// An operation without a key.
    #[must_use]
    pub fn without_key() -> Self {
        Self(None)
    }

    /// Checks whether the operation was executed before, without waiting. For operations
    /// that do expensive work or may be refused before their transaction begins.
    ///
    /// # Errors
    /// The stored answer, or the conflict.
    pub async fn look_up(&self, pool: &PgPool) -> Result<(), Repeat> {
        let Some(keyed) = &self.0 else {
            return Ok(());
        };
        let mut connection = pool.acquire().await.or_fault("look for a key")?;
        match store::find(&mut connection, &keyed.claim).await? {
            Some(found) => Err(keyed.repeat_of(&found)),
            None => Ok(()),
        }
    }

    /// Begins the transaction of the operation. The caller must have checked the permission
    /// before, because a repeated request gets the stored answer.
    ///
    /// # Errors
    /// The stored answer, or the conflict.
    pub async fn begin(
        &self,
        pool: &PgPool,
        doing: &'static str,
    ) -> Result<PgTransaction<'static>, Repeat> {
        let mut transaction = db::begin(pool, doing).await?;
        if let Some(keyed) = &self.0 {
            keyed.claim(&mut transaction).await?;
        }
        Ok(transaction)
    }

    /// Stores the answer and commits.
    ///
    /// # Errors
    /// A fault. Nothing was committed, unless the connection was lost during the commit.
    pub async fn commit(
        &self,
        mut transaction: PgTransaction<'static>,
        result: &T,
        doing: &'static str,
    ) -> Result<(), Fault> {
        if let Some(keyed) = &self.0 {
            let sealed = (keyed.answer)(result).seal(keyed.sealer, &keyed.claim);
            store::update_answer(&mut transaction, &keyed.claim, &sealed).await?;
        }
        transaction.commit().await.or_fault(doing)
    }

    /// Replaces the stored answer after the commit, when more has become known.
    ///
    /// # Errors
    /// A fault. The stored answer is unchanged.
    pub async fn amend(&self, pool: &PgPool, result: &T) -> Result<(), Fault> {
        let Some(keyed) = &self.0 else {
            return Ok(());
        };
        let sealed = (keyed.answer)(result).seal(keyed.sealer, &keyed.claim);
        let mut connection = pool.acquire().await.or_fault("amend an answer")?;
        store::amend_answer(&mut connection, &keyed.claim, &sealed).await
    }
}

impl<T> Keyed<'_, T> {
    async fn claim(&self, connection: &mut PgConnection) -> Result<(), Repeat> {
        match store::claim_or_wait(connection, &self.claim).await? {
            ClaimOutcome::Claimed => Ok(()),
            ClaimOutcome::Busy => Err(Repeat::Conflict(KeyConflict::StillRunning)),
            ClaimOutcome::Taken => {
                let found = store::find(connection, &self.claim).await?;
                let deleted = || Fault::unavailable("find a key", "it was deleted");
                Err(self.repeat_of(&found.ok_or_else(deleted)?))
            }
        }
    }

    fn repeat_of(&self, found: &KeyRow) -> Repeat {
        repeat_of(found, &self.claim, self.sealer)
    }
}

/// What the row of a key means for a later request with this claim.
pub(super) fn repeat_of(found: &KeyRow, claim: &KeyClaim, sealer: &Sealer) -> Repeat {
    if found.body_hash != claim.body_hash {
        return Repeat::Conflict(KeyConflict::OtherBody);
    }
    match &found.answer {
        None => Repeat::Conflict(KeyConflict::StillRunning),
        Some(sealed) => match StoredAnswer::open(sealer, claim, sealed) {
            Ok(answer) => Repeat::Answered(answer),
            Err(fault) => Repeat::Fault(fault),
        },
    }
}
