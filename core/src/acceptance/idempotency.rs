//! Sends with an idempotency key: what is stored of them, and the answer to a repetition.
//!
//! The INSERT claims the key of a send. Only if another request has the key, its row is
//! read. Before a send with a key is refused, Waypost checks whether an earlier request
//! with the key was accepted: rules and suppressions may have changed since, the answer
//! must not.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::insert::{NewMessage, NewRecipient};
use super::{Acceptance, Receipt};
use crate::db::{self, OrFault, PgPool};
use crate::fault::Fault;
use crate::idempotency::fingerprint::BodyHash;
use crate::idempotency::{IdempotencyKeyHash, KeyClaim, KeyConflict, WAIT_MAX, store};
use crate::ids::{Ids, MessageId, OrganizationId, ProviderAccountId};
use crate::message::RecipientKind;
use crate::provider::kind::ProviderType;
use crate::routing::Route;

/// What the INSERT writes for one draft: a message, a claim of an idempotency key, or both.
pub(super) struct InsertEntry {
    pub(super) message: Option<NewMessage>,
    pub(super) claim: Option<KeyClaim>,
    /// The answer to the request; stored with the claim.
    pub(super) acceptance: Acceptance,
}

/// What became of an entry.
#[derive(Debug, Clone)]
pub(super) enum InsertOutcome {
    Inserted,
    /// An earlier request had its key: the answer to that one.
    Duplicate(KeyedResult),
    Conflict(KeyConflict),
}

/// What became of an entry in one flush.
#[derive(Debug)]
pub(super) enum FlushOutcome {
    Done(InsertOutcome),
    /// Nothing was written, and the entry is to be inserted again: its recipients at these
    /// positions are suppressed. Without positions, another entry with its key was left out.
    Suppressed(Vec<i32>),
}

/// The final result of a request with a key: a receipt, or, for a part of a batch, the
/// error text with which it was refused.
pub(super) type KeyedResult = Result<Acceptance, String>;

impl InsertEntry {
    /// Its share of a batch.
    pub(super) fn weight(&self) -> usize {
        let message = self.message.as_ref().map_or(0, NewMessage::weight);
        message + usize::from(self.claim.is_some())
    }

    /// Whether there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.message.is_none() && self.claim.is_none()
    }

    /// Whether the INSERT has to check recipients, so that it may leave the entry out.
    pub(super) fn is_unchecked(&self) -> bool {
        let message = self.message.as_ref();
        message.is_some_and(|message| message.recipients.iter().any(|to| to.is_unchecked))
    }

    /// Marks the recipients at these positions as suppressed, and all as checked. If none
    /// of To is left, only the claim remains.
    pub(super) fn suppress(&mut self, positions: &[i32], ids: &Ids) {
        let Some(message) = &mut self.message else {
            return;
        };
        for (position, recipient) in (0..).zip(&mut message.recipients) {
            recipient.is_unchecked = false;
            if positions.contains(&position) {
                recipient.dropped_event = Some(ids.next_at(message.created_at));
            }
        }
        let recipients = message.recipients.iter();
        let dropped = recipients.filter(|recipient| recipient.dropped_event.is_some());
        let suppressed_count = dropped.count();
        let mut recipients = message.recipients.iter();
        let is_left =
            |to: &NewRecipient| to.kind == RecipientKind::To && to.dropped_event.is_none();
        if !recipients.any(is_left) {
            self.acceptance = Acceptance::Suppressed { suppressed_count };
            self.message = None;
        } else if let Acceptance::Queued(receipt) = &mut self.acceptance {
            receipt.accepted_count = message.recipients.len() - suppressed_count;
            receipt.suppressed_count = suppressed_count;
        }
    }
}

/// An earlier request with the same key.
#[derive(Debug, Clone)]
pub(super) struct EarlierRequest {
    pub(super) body_hash: BodyHash,
    pub(super) result: KeyedResult,
}

impl EarlierRequest {
    /// The outcome for a request that came later.
    pub(super) fn outcome_for(&self, claim: &KeyClaim) -> InsertOutcome {
        if self.body_hash == claim.body_hash {
            InsertOutcome::Duplicate(self.result.clone())
        } else {
            InsertOutcome::Conflict(KeyConflict::OtherBody)
        }
    }
}

impl TryFrom<store::KeyRow> for EarlierRequest {
    type Error = Fault;

    fn try_from(found: store::KeyRow) -> Result<Self, Fault> {
        let answer = found.answer.unwrap_or_default();
        let stored: Stored = serde_json::from_slice(&answer)
            .map_err(|error| Fault::internal("read a stored receipt", error))?;
        Ok(Self {
            body_hash: found.body_hash,
            result: stored.into(),
        })
    }
}

/// A receipt as it is stored. Processes of two versions may read each other's.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    #[serde(default)]
    message: Option<StoredMessage>,
    #[serde(default)]
    suppressed: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredMessage {
    id: Uuid,
    account: Uuid,
    provider: ProviderType,
    domain_verified: bool,
    accepted: usize,
}

/// A receipt in its stored form.
pub(super) fn stored(acceptance: &Acceptance) -> Vec<u8> {
    let stored = match acceptance {
        Acceptance::Queued(receipt) => Stored {
            message: Some(StoredMessage {
                id: receipt.message_id.0,
                account: receipt.route.account_id.0,
                provider: receipt.route.provider_type,
                domain_verified: receipt.route.domain_verified,
                accepted: receipt.accepted_count,
            }),
            suppressed: receipt.suppressed_count,
            refused: None,
        },
        Acceptance::Suppressed { suppressed_count } => Stored {
            message: None,
            suppressed: *suppressed_count,
            refused: None,
        },
    };
    stored.write()
}

impl Stored {
    fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("ids, numbers and a text can be written as JSON")
    }
}

impl From<Stored> for KeyedResult {
    fn from(stored: Stored) -> Self {
        let suppressed_count = stored.suppressed;
        if let Some(words) = stored.refused {
            return Err(words);
        }
        Ok(match stored.message {
            None => Acceptance::Suppressed { suppressed_count },
            Some(message) => Acceptance::Queued(Receipt {
                message_id: MessageId(message.id),
                route: Route {
                    account_id: ProviderAccountId(message.account),
                    provider_type: message.provider,
                    domain_verified: message.domain_verified,
                    // The answer does not show the rule.
                    rule_id: None,
                },
                accepted_count: message.accepted,
                suppressed_count,
            }),
        })
    }
}

/// The outcomes of earlier requests with these keys; `None` where there was none. Waits for
/// requests that still run.
pub(super) async fn find_earlier(
    pool: &PgPool,
    claims: &[KeyClaim],
) -> Result<Vec<Option<InsertOutcome>>, Fault> {
    let mut order: Vec<&KeyClaim> = claims.iter().collect();
    order.sort_by_key(|claim| store::order(claim));
    order.dedup_by_key(|claim| store::order(claim));
    let doing = "look for keys";
    let mut transaction = db::begin(pool, doing).await?;
    store::bound_waits(&mut transaction, WAIT_MAX.as_millis()).await?;
    // The transaction claims the keys and rolls back: so it waits for every request that is
    // about to commit one of them.
    let none = vec![None; order.len()];
    let has_waited = match store::claim(&mut transaction, &order, &none).await {
        Ok(_) => true,
        Err(fault) if db::is_lock_timeout(&fault) => false,
        Err(fault) => return Err(fault),
    };
    transaction.rollback().await.or_fault(doing)?;
    let earlier = list_earlier(pool, &order).await?;
    let outcomes = claims.iter().map(|claim| {
        match earlier.get(&store::order(claim)) {
            Some(earlier) => Some(earlier.outcome_for(claim)),
            // A request still holds one of the keys, perhaps this one.
            None if !has_waited => Some(InsertOutcome::Conflict(KeyConflict::StillRunning)),
            None => None,
        }
    });
    Ok(outcomes.collect())
}

/// Stores the error texts with which parts of a batch are refused, so that a repetition of
/// the batch does not accept them. What another run stored before stands. Returns the
/// outcome that holds for each part.
pub(super) async fn refuse(
    pool: &PgPool,
    parts: Vec<(KeyClaim, String)>,
) -> Result<Vec<InsertOutcome>, Fault> {
    let mut order: Vec<&(KeyClaim, String)> = parts.iter().collect();
    order.sort_by_key(|(claim, _)| store::order(claim));
    let answers = order.iter().map(|(_, error)| {
        let refused = Stored {
            message: None,
            suppressed: 0,
            refused: Some(error.clone()),
        };
        Some(refused.write())
    });
    let answers: Vec<Option<Vec<u8>>> = answers.collect();
    let claims: Vec<&KeyClaim> = order.iter().map(|(claim, _)| claim).collect();
    let doing = "store refused parts";
    let mut transaction = db::begin(pool, doing).await?;
    store::bound_waits(&mut transaction, WAIT_MAX.as_millis()).await?;
    match store::claim(&mut transaction, &claims, &answers).await {
        Ok(_) => transaction.commit().await.or_fault(doing)?,
        Err(fault) if db::is_lock_timeout(&fault) => {
            return Ok(vec![
                InsertOutcome::Conflict(KeyConflict::StillRunning);
                parts.len()
            ]);
        }
        Err(fault) => return Err(fault),
    }
    let earlier = list_earlier(pool, &claims).await?;
    let gone = || Fault::unavailable(doing, "a key is gone");
    let outcomes = parts.iter().map(|(claim, _)| {
        let earlier = earlier.get(&store::order(claim)).ok_or_else(gone)?;
        Ok(earlier.outcome_for(claim))
    });
    outcomes.collect()
}

async fn list_earlier(
    pool: &PgPool,
    claims: &[&KeyClaim],
) -> Result<HashMap<(OrganizationId, IdempotencyKeyHash), EarlierRequest>, Fault> {
    let mut connection = pool.acquire().await.or_fault("look for keys")?;
    let found = store::list(&mut connection, claims).await?;
    let earlier = found.into_iter().map(|(organization_id, key_hash, found)| {
        Ok((
            (organization_id, key_hash),
            EarlierRequest::try_from(found)?,
        ))
    });
    earlier.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn a_stored_receipt_is_read_back() {
        let ids = Ids::new(Clock::system());
        let queued = Acceptance::Queued(Receipt {
            message_id: ids.next(),
            route: Route {
                account_id: ids.next(),
                provider_type: ProviderType::Ses,
                domain_verified: true,
                rule_id: None,
            },
            accepted_count: 2,
            suppressed_count: 1,
        });
        let suppressed = Acceptance::Suppressed {
            suppressed_count: 3,
        };
        for acceptance in [queued, suppressed] {
            let read: Stored = serde_json::from_slice(&stored(&acceptance)).unwrap();
            assert_eq!(KeyedResult::from(read), Ok(acceptance));
        }
        let words = "from must be verified".to_owned();
        let refused = Stored {
            message: None,
            suppressed: 0,
            refused: Some(words.clone()),
        };
        let read: Stored = serde_json::from_slice(&refused.write()).unwrap();
        assert_eq!(KeyedResult::from(read), Err(words));
    }
}
