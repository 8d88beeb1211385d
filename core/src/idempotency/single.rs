//! Doing something once that has a transaction of its own: the claim is its first
//! statement and the answer its last. Two requests with one key come one after the
//! other, because the second waits for the row of the first.

use super::{KeyClaim, KeyConflict, Repeat, StoredAnswer, store};
use crate::crypto::seal::Sealer;
use crate::db::{self, OrFault, PgConnection, PgPool, PgTransaction};
use crate::fault::Fault;
use store::{Claiming, KeyRow};

/// Why work was not done.
#[derive(Debug)]
pub enum Failed<R> {
    /// It was done before, or its key cannot be had.
    Repeat(Repeat),
    /// What the domain says of it.
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

/// Work that results in a `T`, with or without a key.
pub struct Idempotent<'a, T>(Option<Keyed<'a, T>>);

struct Keyed<'a, T> {
    claim: KeyClaim,
    sealer: &'a Sealer,
    answer: Box<dyn Fn(&T) -> StoredAnswer + Send + Sync + 'a>,
}

impl<'a, T> Idempotent<'a, T> {
    /// Work for which there is a claim, or none: then it is done as often as it is
    /// asked for. `answer` is what the caller is told of the result; it is kept
    /// sealed.
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

    /// Work that nobody asked for with a key.
    #[must_use]
    pub fn without_key() -> Self {
        Self(None)
    }

    /// Looks whether it was done before, without waiting: for work that costs
    /// something before its transaction begins, or that is refused before.
    ///
    /// # Errors
    /// That it was, or why the key cannot be had.
    pub async fn look_up(&self, pool: &PgPool) -> Result<(), Repeat> {
        let Some(keyed) = &self.0 else {
            return Ok(());
        };
        let mut connection = pool.acquire().await.or_fault("look for a key")?;
        match store::find(&mut connection, &keyed.claim).await? {
            Some(found) => Err(keyed.judge(&found)),
            None => Ok(()),
        }
    }

    /// Begins the transaction of the work. Whoever may not have the answer must
    /// have been turned away before.
    ///
    /// # Errors
    /// That it was done before, or why it cannot be begun.
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

    /// Commits the work and what it is answered.
    ///
    /// # Errors
    /// A fault; nothing was done then, unless Postgres went away at this moment.
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

    /// Changes what is answered to whoever repeats the request, where more became known
    /// after the commit.
    ///
    /// # Errors
    /// A fault; the answer stays as it was then.
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
        match store::claim_patiently(connection, &self.claim).await? {
            Claiming::Claimed => Ok(()),
            Claiming::Held => Err(Repeat::Conflict(KeyConflict::StillRunning)),
            Claiming::Taken => {
                let found = store::find(connection, &self.claim).await?;
                let gone = || Fault::unavailable("find a key", "it is gone");
                Err(self.judge(&found.ok_or_else(gone)?))
            }
        }
    }

    fn judge(&self, found: &KeyRow) -> Repeat {
        judge(found, &self.claim, self.sealer)
    }
}

/// What the row of a key means for a request that has it too.
pub(super) fn judge(found: &KeyRow, claim: &KeyClaim, sealer: &Sealer) -> Repeat {
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
