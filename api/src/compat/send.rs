//! Accepts the drafts of vendors' requests.

use std::collections::BTreeMap;

use waypost_core::acceptance::{AcceptRefusal, Acceptance, IfSuppressed};
use waypost_core::fault::FaultKind;
use waypost_core::idempotency::batch::IdempotentBatch;
use waypost_core::idempotency::{KeyClaim, KeyConflict, StoredAnswer};

use super::paths::FieldPaths;
use super::translation::VendorDraft;
use crate::context::Context;
use crate::error::Failure;
use crate::middleware::auth::Caller;

/// The claim of a request for several messages on its idempotency key, if it has one.
pub(super) struct BatchClaim<'a>(Option<IdempotentBatch<'a>>);

impl<'a> BatchClaim<'a> {
    /// Claims the key.
    ///
    /// # Errors
    /// The stored answer of an earlier request, a conflict with one, or a fault.
    pub(super) async fn begin(
        context: &'a Context,
        claim: Option<KeyClaim>,
    ) -> Result<Self, Failure> {
        let Some(claim) = claim else {
            return Ok(Self(None));
        };
        let begun = IdempotentBatch::begin(&context.pool, &context.sealer, claim).await?;
        Ok(Self(Some(begun)))
    }

    /// Stores the answer to the request, for repeated ones.
    ///
    /// # Errors
    /// The answer that another request with the key stored meanwhile, or a fault.
    pub(super) async fn finish(self, answer: &StoredAnswer) -> Result<(), Failure> {
        match self.0 {
            Some(batch) => Ok(batch.finish(answer).await?),
            None => Ok(()),
        }
    }

    fn part(&self, index: usize) -> Option<KeyClaim> {
        self.0.as_ref().map(|batch| batch.part(index))
    }
}

/// Accepts one draft. A repeated request with the same idempotency key gets what the first one
/// came to.
///
/// # Errors
/// Why it is not accepted, under the vendor's names. With [`IfSuppressed::Refuse`], one reason is
/// that all recipients are suppressed, and there is always a message otherwise.
pub(super) async fn accept(
    context: &Context,
    caller: &Caller,
    claim: Option<KeyClaim>,
    draft: VendorDraft,
    suppressed: IfSuppressed,
) -> Result<Acceptance, Failure> {
    let VendorDraft { mut draft, paths } = draft;
    draft.claim = claim;
    let accepting = context
        .accept
        .acceptor
        .accept(caller.organization_id(), draft);
    match accepting.await.map(|answered| answered.acceptance) {
        Ok(Acceptance::Suppressed { .. }) if suppressed == IfSuppressed::Refuse => {
            Err(paths.failure(Failure::suppressed()))
        }
        Ok(acceptance) => Ok(acceptance),
        Err(refusal) => Err(paths.failure(refusal.into())),
    }
}

/// Accepts drafts of one request: all of them, or none if one is refused.
///
/// # Errors
/// Why the draft with the index is not accepted, under the vendor's names; without an index, a
/// failure after which the request may be repeated. Some may be accepted then: a repeated request
/// continues if it has the same idempotency key.
pub(super) async fn accept_together(
    context: &Context,
    caller: &Caller,
    claim: &BatchClaim<'_>,
    drafts: Vec<VendorDraft>,
    suppressed: IfSuppressed,
) -> Result<Vec<Acceptance>, (Option<usize>, Failure)> {
    let (drafts, paths): (Vec<_>, Vec<_>) =
        drafts.into_iter().map(|one| (one.draft, one.paths)).unzip();
    let drafts = drafts.into_iter().enumerate().map(|(index, mut draft)| {
        draft.claim = claim.part(index);
        draft
    });
    let drafts = drafts.collect();
    let organization_id = caller.organization_id();
    let accepting = context
        .accept
        .acceptor
        .accept_together(organization_id, drafts, suppressed);
    let results = accepting.await.map_err(|fault| (None, fault.into()))?;
    let mut accepted = Vec::with_capacity(results.len());
    let mut refused = None;
    for (index, result) in results.into_iter().enumerate() {
        match result {
            Ok(answered) => accepted.push(answered.acceptance),
            Err(refusal) if is_temporary(&refusal) => return Err((None, refusal.into())),
            Err(refusal) => {
                let failure = || (Some(index), paths[index].failure(refusal.into()));
                refused.get_or_insert_with(failure);
            }
        }
    }
    refused.map_or(Ok(accepted), Err)
}

/// Accepts drafts of one request, each independently of the others; one result for each, in their
/// order.
///
/// # Errors
/// A failure after which the request may be repeated. Some may be accepted then: a repeated
/// request continues if it has the same idempotency key.
pub(super) async fn accept_each(
    context: &Context,
    caller: &Caller,
    claim: &BatchClaim<'_>,
    drafts: BTreeMap<usize, VendorDraft>,
) -> Result<BTreeMap<usize, Result<Acceptance, Failure>>, Failure> {
    let mut parts: Vec<(usize, FieldPaths)> = Vec::with_capacity(drafts.len());
    let drafts = drafts
        .into_iter()
        .map(|(index, VendorDraft { mut draft, paths })| {
            draft.claim = claim.part(index);
            parts.push((index, paths));
            draft
        });
    let drafts = drafts.collect();
    let organization_id = caller.organization_id();
    let mut results = context
        .accept
        .acceptor
        .accept_all(organization_id, drafts)
        .await?;
    // A batch with a key may run twice at the same time: what one run refuses must not be accepted
    // by the other.
    let refused = parts
        .iter()
        .zip(&mut results)
        .filter_map(|((index, paths), result)| {
            let refusal = result
                .as_ref()
                .err()
                .filter(|refusal| refusal.is_of_request())?;
            let message = paths.failure(refusal.clone().into()).sentence();
            Some(((claim.part(*index)?, message), result))
        });
    let (refused, kept): (Vec<_>, Vec<_>) = refused.unzip();
    if !refused.is_empty() {
        context.accept.acceptor.keep_refusals(refused, kept).await?;
    }
    let is_away = |refusal: &AcceptRefusal| matches!(refusal, AcceptRefusal::Fault(fault) if fault.kind() == FaultKind::Unavailable);
    let has_key = claim.0.is_some();
    let is_nothing_accepted = results.iter().all(Result::is_err);
    let temporary = results.iter().filter_map(|result| result.as_ref().err());
    let mut temporary = temporary.filter(|refusal| {
        is_temporary(refusal) && (has_key || is_nothing_accepted && is_away(refusal))
    });
    if let Some(refusal) = temporary.next() {
        return Err(refusal.clone().into());
    }
    let answers = parts
        .into_iter()
        .zip(results)
        .map(|((index, paths), result)| {
            let answer = result.map(|answered| answered.acceptance);
            (
                index,
                answer.map_err(|refusal| paths.failure(refusal.into())),
            )
        });
    Ok(answers.collect())
}

/// Whether a repeated request may come to something else: a fault, or an earlier request that
/// still runs.
fn is_temporary(refusal: &AcceptRefusal) -> bool {
    matches!(
        refusal,
        AcceptRefusal::Fault(_) | AcceptRefusal::Key(KeyConflict::StillRunning)
    )
}
