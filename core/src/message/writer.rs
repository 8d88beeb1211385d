//! The work of an acceptance lane: one transaction for a group of requests, and
//! what follows where one of them spoils it.

use std::collections::HashMap;
use std::time::Duration;

use super::keyed::{Earlier, Entry, Kept, Written};
use super::rows::{self, NewMessage};
use crate::db::{self, OrFault, PgPool};
use crate::fault::{Fault, FaultKind};
use crate::idempotency::{KeyConflict, KeyHash, store};
use crate::ids::OrganizationId;
use crate::queue::dispatch::Dispatcher;

/// How long an entry waits for its key when its group has waited in vain, in
/// milliseconds. It comes by itself, one after the other.
const LAST_WAIT_MS: u128 = 100;

/// Writes groups of entries.
pub(super) struct Writer {
    pub(super) pool: PgPool,
    pub(super) dispatcher: Dispatcher,
    pub(super) relay_grace: Duration,
}

type Key = (OrganizationId, KeyHash);

impl Writer {
    /// Writes entries; one result for each, in their order.
    pub(super) async fn write(&self, entries: Vec<Entry>) -> Vec<Result<Written, Fault>> {
        let all: Vec<&Entry> = entries.iter().collect();
        match self.insert(&all, None).await {
            Ok(written) => written,
            Err(fault) if db::is_lock_timeout(&fault) && has_keys(&all) => {
                self.write_without_waiting(&all).await
            }
            // Postgres refused something in the group: find out what, one by one,
            // so that its neighbours do not pay for it.
            Err(fault) if fault.kind() == FaultKind::Internal && all.len() > 1 => {
                self.write_each(&all, None).await
            }
            Err(fault) => all.iter().map(|_| Err(fault.clone())).collect(),
        }
    }

    /// Somebody holds the key of one of the entries: those without a key are
    /// written together, each of the others by itself.
    async fn write_without_waiting(&self, all: &[&Entry]) -> Vec<Result<Written, Fault>> {
        let (keyed, plain): (Vec<&Entry>, Vec<&Entry>) =
            all.iter().partition(|entry| entry.kept.is_some());
        let mut plain_results = match self.insert(&plain, None).await {
            Ok(written) => written,
            Err(_) => self.write_each(&plain, None).await,
        }
        .into_iter();
        let mut keyed_results = if keyed.len() == 1 {
            vec![Ok(Written::Refused(KeyConflict::StillRunning))]
        } else {
            self.write_each(&keyed, Some(LAST_WAIT_MS)).await
        }
        .into_iter();
        let results = all.iter().map(|entry| {
            let results = match entry.kept {
                Some(_) => &mut keyed_results,
                None => &mut plain_results,
            };
            results.next().expect("each entry has its result")
        });
        results.collect()
    }

    async fn write_each(
        &self,
        entries: &[&Entry],
        wait_ms: Option<u128>,
    ) -> Vec<Result<Written, Fault>> {
        let mut results = Vec::with_capacity(entries.len());
        for entry in entries {
            results.push(match self.insert(&[entry], wait_ms).await {
                Ok(mut written) => written.pop().expect("one entry has one result"),
                Err(fault) if db::is_lock_timeout(&fault) && entry.kept.is_some() => {
                    Ok(Written::Refused(KeyConflict::StillRunning))
                }
                Err(fault) => Err(fault),
            });
        }
        results
    }

    /// Writes entries in one transaction, as far as their keys are free; one result
    /// for each.
    async fn insert(
        &self,
        entries: &[&Entry],
        wait_ms: Option<u128>,
    ) -> Result<Vec<Result<Written, Fault>>, Fault> {
        let leaders = leaders(entries);
        let is_written = |place: usize| leads(entries, &leaders, place);
        let places = (0..entries.len()).filter(|place| is_written(*place));
        let chosen: Vec<&Entry> = places.map(|place| entries[place]).collect();
        let taken = db::bounded("accept messages", self.insert_chosen(&chosen, wait_ms)).await?;
        let jobs = chosen
            .iter()
            .filter(|entry| key(entry).is_none_or(|key| !taken.contains_key(&key)))
            .filter_map(|entry| entry.message.as_ref())
            .flat_map(NewMessage::jobs);
        self.dispatcher.push(jobs);
        let results = entries.iter().enumerate().map(|(place, entry)| {
            let Some(Kept { claim, .. }) = &entry.kept else {
                return Ok(Written::Now);
            };
            let key = (claim.organization_id, claim.key_hash);
            match taken.get(&key) {
                Some(Some(earlier)) => Ok(earlier.judge(claim)),
                // Between the claim and the look it was given back.
                Some(None) => Err(Fault::unavailable("find a key", "it is gone")),
                None if is_written(place) => Ok(Written::Now),
                None => Ok(leader_of(entries, &leaders, key).judge(claim)),
            }
        });
        Ok(results.collect())
    }

    /// The transaction: what was taken already, with what is kept of it.
    async fn insert_chosen(
        &self,
        entries: &[&Entry],
        wait_ms: Option<u128>,
    ) -> Result<HashMap<Key, Option<Earlier>>, Fault> {
        let doing = "accept messages";
        let taken = match wait_ms {
            None => {
                let mut connection = self.pool.acquire().await.or_fault(doing)?;
                rows::insert(&mut connection, entries, self.relay_grace).await?
            }
            Some(wait_ms) => {
                let mut transaction = self.pool.begin().await.or_fault(doing)?;
                store::bound_waits(&mut transaction, wait_ms).await?;
                let taken = rows::insert(&mut transaction, entries, self.relay_grace).await?;
                transaction.commit().await.or_fault(doing)?;
                taken
            }
        };
        if taken.is_empty() {
            return Ok(HashMap::new());
        }
        let mut earlier: HashMap<Key, Option<Earlier>> = taken
            .iter()
            .map(|claim| ((claim.organization_id, claim.key_hash), None))
            .collect();
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        for (organization_id, key_hash, found) in store::list(&mut connection, &taken).await? {
            earlier.insert((organization_id, key_hash), Some(found.try_into()?));
        }
        Ok(earlier)
    }
}

fn has_keys(entries: &[&Entry]) -> bool {
    entries.iter().any(|entry| entry.kept.is_some())
}

fn key(entry: &Entry) -> Option<Key> {
    let kept = entry.kept.as_ref()?;
    Some((kept.claim.organization_id, kept.claim.key_hash))
}

/// For each key the first entry that has it: the others of the group go by what
/// becomes of that one.
fn leaders(entries: &[&Entry]) -> HashMap<Key, usize> {
    let mut leaders = HashMap::new();
    for (place, entry) in entries.iter().enumerate() {
        if let Some(key) = key(entry) {
            leaders.entry(key).or_insert(place);
        }
    }
    leaders
}

fn leads(entries: &[&Entry], leaders: &HashMap<Key, usize>, place: usize) -> bool {
    key(entries[place]).is_none_or(|key| leaders.get(&key) == Some(&place))
}

fn leader_of(entries: &[&Entry], leaders: &HashMap<Key, usize>, key: Key) -> Earlier {
    let kept = entries[leaders[&key]].kept.as_ref();
    let kept = kept.expect("whoever leads by a key has one");
    Earlier {
        body_hash: kept.claim.body_hash,
        decided: Ok(kept.acceptance),
    }
}
