//! The work of an acceptance lane: one transaction for a group of requests, and
//! what follows where one of them spoils it.

use std::collections::HashMap;
use std::time::Duration;

use super::idempotency::{Earlier, FlushOutcome, InsertEntry, InsertOutcome};
use super::insert::{self, Inserted, NewMessage};
use crate::db::lifo_pool::WarmPool;
use crate::db::{self, OrFault, PgConnection};
use crate::delivery::dispatch::Dispatcher;
use crate::fault::{Fault, FaultKind};
use crate::idempotency::{IdempotencyKeyHash, KeyClaim, KeyConflict, WAIT_MAX, store};
use crate::ids::OrganizationId;

/// How long a group waits for a lock. What waits in a lane keeps others waiting that
/// it is not the concern of; longer waits are outside of it.
pub(super) const LANE_WAIT: Duration = Duration::from_millis(500);

/// How long an entry waits for its key when its group has waited in vain, in
/// milliseconds. It comes by itself, one after the other.
const LAST_WAIT_MS: u128 = 100;

/// Writes groups of entries.
pub(super) struct InsertWriter {
    pub(super) pool: WarmPool,
    pub(super) dispatcher: Dispatcher,
    pub(super) relay_grace: Duration,
}

type EntryKey = (OrganizationId, IdempotencyKeyHash);

impl InsertWriter {
    /// Writes entries; one result for each, in their order.
    pub(super) async fn write(&self, all: &[&InsertEntry]) -> Vec<Result<FlushOutcome, Fault>> {
        match self.insert(all, None).await {
            Ok(written) => written,
            Err(fault) if db::is_lock_timeout(&fault) && has_keys(all) => {
                self.write_without_waiting(all).await
            }
            Err(fault) if db::is_lock_timeout(&fault) => self.write_patiently(all).await,
            // Postgres refused something in the group: find out what, one by one,
            // so that its neighbours do not pay for it.
            Err(fault) if fault.kind() == FaultKind::Internal && all.len() > 1 => {
                self.write_each(all, None).await
            }
            Err(fault) => all.iter().map(|_| Err(fault.clone())).collect(),
        }
    }

    /// Somebody holds the key of one of the entries: those without a key are
    /// written together, each of the others by itself.
    async fn write_without_waiting(
        &self,
        all: &[&InsertEntry],
    ) -> Vec<Result<FlushOutcome, Fault>> {
        let (keyed, plain): (Vec<&InsertEntry>, Vec<&InsertEntry>) =
            all.iter().partition(|entry| entry.claim.is_some());
        let mut plain_results = match self.insert(&plain, None).await {
            Ok(written) => written,
            Err(fault) if db::is_lock_timeout(&fault) => self.write_patiently(&plain).await,
            Err(fault) if fault.kind() == FaultKind::Internal => {
                self.write_each(&plain, None).await
            }
            // Whether they were written is not known: trying again would only find
            // their ids taken.
            Err(fault) => plain.iter().map(|_| Err(fault.clone())).collect(),
        }
        .into_iter();
        let mut keyed_results = if keyed.len() == 1 {
            vec![Ok(FlushOutcome::Done(InsertOutcome::Refused(
                KeyConflict::StillRunning,
            )))]
        } else {
            self.write_each(&keyed, Some(LAST_WAIT_MS)).await
        }
        .into_iter();
        let results = all.iter().map(|entry| {
            let results = match entry.claim {
                Some(_) => &mut keyed_results,
                None => &mut plain_results,
            };
            results.next().expect("each entry has its result")
        });
        results.collect()
    }

    /// Entries without keys, while a table is locked: that concerns all of them.
    async fn write_patiently(&self, plain: &[&InsertEntry]) -> Vec<Result<FlushOutcome, Fault>> {
        match self.insert(plain, Some(WAIT_MAX.as_millis())).await {
            Ok(written) => written,
            Err(fault) => plain.iter().map(|_| Err(fault.clone())).collect(),
        }
    }

    async fn write_each(
        &self,
        entries: &[&InsertEntry],
        wait_ms: Option<u128>,
    ) -> Vec<Result<FlushOutcome, Fault>> {
        let mut results: Vec<Result<FlushOutcome, Fault>> = Vec::with_capacity(entries.len());
        let mut away = None;
        for entry in entries {
            // Each would wait for a connection in its turn, and the lane with it.
            if let Some(fault) = &away {
                results.push(Err(Fault::clone(fault)));
                continue;
            }
            results.push(match self.insert(&[entry], wait_ms).await {
                Ok(mut written) => written.pop().expect("one entry has one result"),
                Err(fault) if db::is_lock_timeout(&fault) && entry.claim.is_some() => Ok(
                    FlushOutcome::Done(InsertOutcome::Refused(KeyConflict::StillRunning)),
                ),
                Err(fault) => {
                    away = (fault.kind() == FaultKind::Unavailable).then(|| fault.clone());
                    Err(fault)
                }
            });
        }
        results
    }

    /// Writes entries in one transaction, as far as their keys are free; one result
    /// for each.
    async fn insert(
        &self,
        entries: &[&InsertEntry],
        wait_ms: Option<u128>,
    ) -> Result<Vec<Result<FlushOutcome, Fault>>, Fault> {
        let leaders = leaders(entries);
        let is_written = |place: usize| leads(entries, &leaders, place);
        let places = (0..entries.len()).filter(|place| is_written(*place));
        let chosen: Vec<&InsertEntry> = places.map(|place| entries[place]).collect();
        let inserting = self.insert_chosen(&chosen, wait_ms);
        let Inserted { taken, set_aside } = db::bounded("accept messages", inserting).await?;
        // From here on it is committed, and nothing that fails concerns more than the
        // entries whose keys were taken.
        let is_taken = |key: EntryKey| {
            taken
                .iter()
                .any(|claim| (claim.organization_id, claim.key_hash) == key)
        };
        let jobs = chosen
            .iter()
            .filter(|entry| key(entry).is_none_or(|key| !is_taken(key)))
            .filter_map(|entry| entry.message.as_ref())
            .filter(|message| !set_aside.contains_key(&message.id))
            .flat_map(NewMessage::jobs);
        self.dispatcher.push(jobs);
        let mut earlier = self.find_taken(&taken).await;
        let positions = |entry: &InsertEntry| {
            let message = entry.message.as_ref()?;
            set_aside.get(&message.id).cloned()
        };
        let results = entries.iter().enumerate().map(|(place, entry)| {
            if let Some(positions) = positions(entry) {
                return Ok(FlushOutcome::SetAside(positions));
            }
            let Some(claim) = &entry.claim else {
                return Ok(FlushOutcome::Done(InsertOutcome::Now));
            };
            let key = (claim.organization_id, claim.key_hash);
            match earlier.get_mut(&key) {
                Some(Ok(earlier)) => return Ok(FlushOutcome::Done(earlier.judge(claim))),
                Some(Err(fault)) => return Err(fault.clone()),
                None if is_written(place) => return Ok(FlushOutcome::Done(InsertOutcome::Now)),
                None => {}
            }
            let leader = entries[leaders[&key]];
            Ok(match positions(leader) {
                // The same request has the same recipients.
                Some(positions) if same_body(leader, entry) => FlushOutcome::SetAside(positions),
                Some(_) => FlushOutcome::SetAside(Vec::new()),
                None => FlushOutcome::Done(as_earlier(leader).judge(claim)),
            })
        });
        Ok(results.collect())
    }

    /// The transaction.
    async fn insert_chosen<'a>(
        &self,
        entries: &[&'a InsertEntry],
        wait_ms: Option<u128>,
    ) -> Result<Inserted<'a>, Fault> {
        let doing = "accept messages";
        let Some(wait_ms) = wait_ms else {
            let insert = async |connection: &mut PgConnection| {
                insert::insert(connection, entries, self.relay_grace).await
            };
            return self.pool.run(doing, insert).await;
        };
        let mut transaction = self.pool.begin(doing).await?;
        store::bound_waits(&mut transaction, wait_ms).await?;
        let inserted = insert::insert(&mut transaction, entries, self.relay_grace).await?;
        transaction.commit().await.or_fault(doing)?;
        Ok(inserted)
    }

    /// What is kept with claims that were taken, for each of them.
    async fn find_taken(&self, taken: &[&KeyClaim]) -> HashMap<EntryKey, Result<Earlier, Fault>> {
        let key = |claim: &KeyClaim| (claim.organization_id, claim.key_hash);
        if taken.is_empty() {
            return HashMap::new();
        }
        let doing = "find what was kept";
        let list = async |connection: &mut PgConnection| store::list(connection, taken).await;
        match db::bounded(doing, self.pool.run(doing, list)).await {
            Ok(found) => {
                // Between the claim and the look it may have been given back.
                let gone = || Err(Fault::unavailable("find a key", "it is gone"));
                let mut earlier: HashMap<EntryKey, Result<Earlier, Fault>> =
                    taken.iter().map(|claim| (key(claim), gone())).collect();
                for (organization_id, key_hash, found) in found {
                    earlier.insert((organization_id, key_hash), found.try_into());
                }
                earlier
            }
            Err(fault) => {
                let failed = taken.iter().map(|claim| (key(claim), Err(fault.clone())));
                failed.collect()
            }
        }
    }
}

fn has_keys(entries: &[&InsertEntry]) -> bool {
    entries.iter().any(|entry| entry.claim.is_some())
}

fn key(entry: &InsertEntry) -> Option<EntryKey> {
    let claim = entry.claim.as_ref()?;
    Some((claim.organization_id, claim.key_hash))
}

/// For each key the entry that the others of the group go by: the first of which all is
/// known, since that one is not set aside.
fn leaders(entries: &[&InsertEntry]) -> HashMap<EntryKey, usize> {
    let mut leaders = HashMap::new();
    for (place, entry) in entries.iter().enumerate() {
        let Some(key) = key(entry) else {
            continue;
        };
        let leader = leaders.entry(key).or_insert(place);
        if entries[*leader].is_open() && !entry.is_open() {
            *leader = place;
        }
    }
    leaders
}

fn leads(entries: &[&InsertEntry], leaders: &HashMap<EntryKey, usize>, place: usize) -> bool {
    key(entries[place]).is_none_or(|key| leaders.get(&key) == Some(&place))
}

fn same_body(one: &InsertEntry, other: &InsertEntry) -> bool {
    let body = |entry: &InsertEntry| entry.claim.map(|claim| claim.body_hash);
    body(one) == body(other)
}

/// The leader of a key, as those meet it who follow.
fn as_earlier(leader: &InsertEntry) -> Earlier {
    let claim = leader.claim.expect("whoever leads by a key has one");
    Earlier {
        body_hash: claim.body_hash,
        decided: Ok(leader.acceptance),
    }
}
