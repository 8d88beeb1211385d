//! Sends with an idempotency key: what is kept of them, and what a repetition
//! finds.
//!
//! A send with a key is not looked up first: its key is claimed by the statement
//! that writes it, and only where somebody else has it the row is read. A send that
//! is refused looks whether an earlier request with its key was not: the world may
//! have changed, the answer may not.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::insert::NewMessage;
use super::{Acceptance, Receipt};
use crate::db::{self, OrFault, PgPool};
use crate::fault::Fault;
use crate::idempotency::fingerprint::BodyHash;
use crate::idempotency::{IdempotencyKeyHash, KeyClaim, KeyConflict, WAIT_MAX, store};
use crate::ids::{Ids, MessageId, OrganizationId, ProviderAccountId};
use crate::provider::kind::ProviderType;
use crate::routing::Route;

/// What a group writes for one draft: a message, a claim or both.
pub(super) struct InsertEntry {
    pub(super) message: Option<NewMessage>,
    pub(super) claim: Option<KeyClaim>,
    /// What is answered, and kept with the claim.
    pub(super) acceptance: Acceptance,
}

/// What became of an entry.
#[derive(Debug, Clone)]
pub(super) enum InsertOutcome {
    Now,
    /// An earlier request with its key was: this is what it was answered.
    Before(KeyedResult),
    /// Its key cannot be had.
    Refused(KeyConflict),
}

/// What became of an entry in its lane.
#[derive(Debug)]
pub(super) enum FlushOutcome {
    Done(InsertOutcome),
    /// Nothing was written: its recipients at these positions are suppressed. Where there
    /// are none, another with its key was set aside, and nobody has the key so far.
    SetAside(Vec<i32>),
}

/// What was decided once and for all: a receipt, or, for a part of a batch with a
/// key, the words in which it was refused.
pub(super) type KeyedResult = Result<Acceptance, String>;

impl InsertEntry {
    /// How much of a group it fills.
    pub(super) fn weight(&self) -> usize {
        let message = self.message.as_ref().map_or(0, NewMessage::weight);
        message + usize::from(self.claim.is_some())
    }

    /// Whether there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.message.is_none() && self.claim.is_none()
    }

    /// Whether it may be set aside.
    pub(super) fn is_open(&self) -> bool {
        let message = self.message.as_ref();
        message.is_some_and(|message| message.recipients.iter().any(|to| to.is_open))
    }

    /// Takes recipients, by their positions, for suppressed and the others for not. Of a
    /// message that has no others nothing is left but the claim.
    pub(super) fn suppress(&mut self, positions: &[i32], ids: &Ids) {
        let Some(message) = &mut self.message else {
            return;
        };
        for (position, recipient) in (0..).zip(&mut message.recipients) {
            recipient.is_open = false;
            if positions.contains(&position) {
                recipient.dropped_event = Some(ids.next_at(message.created_at));
            }
        }
        let recipients = message.recipients.iter();
        let dropped = recipients.filter(|recipient| recipient.dropped_event.is_some());
        let suppressed_count = dropped.count();
        if suppressed_count == message.recipients.len() {
            self.acceptance = Acceptance::Suppressed { suppressed_count };
            self.message = None;
        } else if let Acceptance::Queued(receipt) = &mut self.acceptance {
            receipt.accepted_count = message.recipients.len() - suppressed_count;
            receipt.suppressed_count = suppressed_count;
        }
    }
}

/// The row of a key, as another request that has the key too meets it.
#[derive(Debug, Clone)]
pub(super) struct Earlier {
    pub(super) body_hash: BodyHash,
    pub(super) decided: KeyedResult,
}

impl Earlier {
    /// What it means for a request with that body.
    pub(super) fn judge(&self, claim: &KeyClaim) -> InsertOutcome {
        if self.body_hash == claim.body_hash {
            InsertOutcome::Before(self.decided.clone())
        } else {
            InsertOutcome::Refused(KeyConflict::OtherBody)
        }
    }
}

impl TryFrom<store::KeyRow> for Earlier {
    type Error = Fault;

    fn try_from(found: store::KeyRow) -> Result<Self, Fault> {
        let answer = found.answer.unwrap_or_default();
        let stored: Stored = serde_json::from_slice(&answer)
            .map_err(|error| Fault::internal("read a kept receipt", error))?;
        Ok(Self {
            body_hash: found.body_hash,
            decided: stored.into(),
        })
    }
}

/// A receipt as it is kept. Processes of two versions may read each other's.
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

/// A receipt in the form in which it is kept.
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
                    // Nobody is told of the rule.
                    rule_id: None,
                },
                accepted_count: message.accepted,
                suppressed_count,
            }),
        })
    }
}

/// What the earlier requests with the keys of refused sends were answered; nothing
/// for those that are the first. It waits for those that still run.
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
    // Claimed for a moment and given back with the transaction: that waits for
    // whoever is about to commit one of them.
    let none = vec![None; order.len()];
    let has_waited = match store::claim(&mut transaction, &order, &none).await {
        Ok(_) => true,
        Err(fault) if db::is_lock_timeout(&fault) => false,
        Err(fault) => return Err(fault),
    };
    transaction.rollback().await.or_fault(doing)?;
    let earlier = list_earlier(pool, &order).await?;
    let verdicts = claims.iter().map(|claim| {
        match earlier.get(&store::order(claim)) {
            Some(earlier) => Some(earlier.judge(claim)),
            // One of them is held by another: it may be this one.
            None if !has_waited => Some(InsertOutcome::Refused(KeyConflict::StillRunning)),
            None => None,
        }
    });
    Ok(verdicts.collect())
}

/// Keeps in which words parts of a batch are refused, each with its claim, so that
/// no other run of the batch accepts them. What another run decided before stands;
/// answers what holds for each.
pub(super) async fn refuse(
    pool: &PgPool,
    parts: Vec<(KeyClaim, String)>,
) -> Result<Vec<InsertOutcome>, Fault> {
    let mut order: Vec<&(KeyClaim, String)> = parts.iter().collect();
    order.sort_by_key(|(claim, _)| store::order(claim));
    let answers = order.iter().map(|(_, words)| {
        let refused = Stored {
            message: None,
            suppressed: 0,
            refused: Some(words.clone()),
        };
        Some(refused.write())
    });
    let answers: Vec<Option<Vec<u8>>> = answers.collect();
    let claims: Vec<&KeyClaim> = order.iter().map(|(claim, _)| claim).collect();
    let doing = "keep what is refused";
    let mut transaction = db::begin(pool, doing).await?;
    store::bound_waits(&mut transaction, WAIT_MAX.as_millis()).await?;
    match store::claim(&mut transaction, &claims, &answers).await {
        Ok(_) => transaction.commit().await.or_fault(doing)?,
        Err(fault) if db::is_lock_timeout(&fault) => {
            return Ok(vec![
                InsertOutcome::Refused(KeyConflict::StillRunning);
                parts.len()
            ]);
        }
        Err(fault) => return Err(fault),
    }
    let earlier = list_earlier(pool, &claims).await?;
    let gone = || Fault::unavailable(doing, "it is gone");
    let decided = parts.iter().map(|(claim, _)| {
        let earlier = earlier.get(&store::order(claim)).ok_or_else(gone)?;
        Ok(earlier.judge(claim))
    });
    decided.collect()
}

async fn list_earlier(
    pool: &PgPool,
    claims: &[&KeyClaim],
) -> Result<HashMap<(OrganizationId, IdempotencyKeyHash), Earlier>, Fault> {
    let mut connection = pool.acquire().await.or_fault("look for keys")?;
    let found = store::list(&mut connection, claims).await?;
    let earlier = found.into_iter().map(|(organization_id, key_hash, found)| {
        Ok(((organization_id, key_hash), Earlier::try_from(found)?))
    });
    earlier.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn a_receipt_is_read_as_it_was_kept() {
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
