//! Requests whose idempotency keys other requests hold, or held before.

use super::idempotency::{self, InsertEntry, InsertOutcome};
use super::insert_batcher::EntryResult;
use super::result::{AcceptRefusal, Answered};
use super::{Acceptor, db};
use crate::fault::Fault;
use crate::idempotency::{KeyClaim, KeyConflict, WAIT_MAX};

/// An entry whose key another request holds.
pub(super) struct PendingEntry {
    pub(super) index: usize,
    pub(super) entry: Box<InsertEntry>,
    pub(super) claim: KeyClaim,
}

impl Acceptor {
    /// Waits, outside of the batcher, for the requests that hold the keys of these entries.
    /// Their answers hold for the entries too; if they failed, the entries are inserted
    /// after all.
    pub(super) async fn await_pending(
        &self,
        pending: Vec<PendingEntry>,
        results: &mut [Result<Answered, AcceptRefusal>],
    ) {
        if pending.is_empty() {
            return;
        }
        let claims: Vec<KeyClaim> = pending.iter().map(|pending| pending.claim).collect();
        let earlier = match tokio::time::timeout(WAIT_MAX, self.key_waits.acquire()).await {
            Ok(Ok(_permit)) => {
                let finding = idempotency::find_earlier(&self.reader, &claims);
                db::bounded("wait for keys", finding).await
            }
            Ok(Err(_)) | Err(_) => {
                let running = InsertOutcome::Conflict(KeyConflict::StillRunning);
                Ok(vec![Some(running); claims.len()])
            }
        };
        let mut free = Vec::new();
        match earlier {
            Ok(earlier) => {
                for (pending, outcome) in pending.into_iter().zip(earlier) {
                    match outcome {
                        Some(outcome) => apply(&mut results[pending.index], outcome),
                        None => free.push((pending.index, pending.entry)),
                    }
                }
            }
            Err(fault) => {
                for pending in pending {
                    results[pending.index] = Err(AcceptRefusal::Fault(fault.clone()));
                }
            }
        }
        for (index, result) in self.batcher.insert_all(free).await {
            apply_entry(&mut results[index], result);
        }
    }

    /// Stores the error texts with which parts of a batch are refused, so that no other run
    /// of the batch accepts them; `results` become what holds for them.
    pub async fn keep_refusals(
        &self,
        parts: Vec<(KeyClaim, String)>,
        results: Vec<&mut Result<Answered, AcceptRefusal>>,
    ) -> Result<(), Fault> {
        let outcomes = idempotency::refuse(&self.reader, parts).await?;
        for (result, outcome) in results.into_iter().zip(outcomes) {
            apply(result, outcome);
        }
        Ok(())
    }

    /// A request that is refused now may have been accepted before, with the same key: then
    /// that is its answer.
    pub(super) async fn answer_refused_repeats(
        &self,
        claims: &[Option<KeyClaim>],
        results: &mut [Result<Answered, AcceptRefusal>],
    ) {
        let refused = claims.iter().zip(&*results).enumerate();
        let refused = refused.filter_map(|(index, (claim, result))| {
            let refusal = result.as_ref().err()?;
            let claim = claim.filter(|_| refusal.is_of_request())?;
            Some((index, claim))
        });
        let (indexes, claims): (Vec<usize>, Vec<KeyClaim>) = refused.unzip();
        if claims.is_empty() {
            return;
        }
        let finding = idempotency::find_earlier(&self.reader, &claims);
        match db::bounded("look for keys", finding).await {
            Ok(earlier) => {
                for (index, outcome) in indexes.into_iter().zip(earlier) {
                    apply(
                        &mut results[index],
                        outcome.unwrap_or(InsertOutcome::Inserted),
                    );
                }
            }
            // Nobody knows whether it was accepted before, so it is not refused.
            Err(fault) => {
                for index in indexes {
                    results[index] = Err(AcceptRefusal::Fault(fault.clone()));
                }
            }
        }
    }
}

/// The result of the INSERT replaces what the draft came to before it.
pub(super) fn apply_entry(answer: &mut Result<Answered, AcceptRefusal>, result: EntryResult) {
    match result {
        Ok((entry, outcome)) => {
            *answer = Ok(Answered::now(entry.acceptance));
            apply(answer, outcome);
        }
        Err(fault) => *answer = Err(AcceptRefusal::Fault(fault)),
    }
}

/// What Postgres has of the key replaces what the request came to.
fn apply(answer: &mut Result<Answered, AcceptRefusal>, outcome: InsertOutcome) {
    match outcome {
        InsertOutcome::Inserted => {}
        InsertOutcome::Duplicate(result) => {
            let repeat = |acceptance| Answered {
                acceptance,
                is_repeat: true,
            };
            *answer = result.map(repeat).map_err(AcceptRefusal::Before);
        }
        InsertOutcome::Conflict(conflict) => *answer = Err(AcceptRefusal::Key(conflict)),
    }
}
