//! One flush of the INSERT: its transaction, and the tries that follow if one entry of the
//! batch fails it.

use std::collections::HashMap;
use std::time::Duration;

use super::idempotency::{EarlierRequest, FlushOutcome, InsertEntry, InsertOutcome};
use super::insert::{self, Inserted, NewMessage};
use crate::db::lifo_pool::LifoPool;
use crate::db::{self, OrFault, PgConnection};
use crate::delivery::dispatch::Dispatcher;
use crate::fault::{Fault, FaultKind};
use crate::idempotency::{IdempotencyKeyHash, KeyClaim, KeyConflict, WAIT_MAX, store};
use crate::ids::OrganizationId;

/// How long a batch waits for a lock. All requests of the batch wait with it, so longer waits
/// happen outside of it.
pub(super) const LOCK_WAIT: Duration = Duration::from_millis(500);

/// How long an entry waits for its key after its batch timed out, in milliseconds. Such
/// entries are inserted one after the other.
const LAST_WAIT_MS: u128 = 100;

/// Inserts batches of entries.
pub(super) struct InsertWriter {
    pub(super) pool: LifoPool,
    pub(super) dispatcher: Dispatcher,
    pub(super) relay_grace: Duration,
}

type EntryKey = (OrganizationId, IdempotencyKeyHash);
type EntryOutcome = Result<FlushOutcome, Fault>;

const STILL_RUNNING: FlushOutcome =
    FlushOutcome::Done(InsertOutcome::Conflict(KeyConflict::StillRunning));

impl InsertWriter {
    /// Inserts a batch; one outcome for each entry, in their order.
    pub(super) async fn write(&self, all: &[&InsertEntry]) -> Vec<EntryOutcome> {
        match self.insert(all, None).await {
            Ok(outcomes) => outcomes,
            Err(fault) if db::is_lock_timeout(&fault) && has_keys(all) => {
                self.write_despite_held_keys(all).await
            }
            Err(fault) if db::is_lock_timeout(&fault) => self.write_patiently(all).await,
            // Postgres refused one entry: each is inserted by itself, so that the others
            // do not fail with it.
            Err(fault) if fault.kind() == FaultKind::Internal && all.len() > 1 => {
                self.write_each(all, None).await
            }
            Err(fault) => fail_all(all, &fault),
        }
    }

    /// Another request holds the key of one of the entries: those without a key are
    /// inserted together, each of the others by itself.
    async fn write_despite_held_keys(&self, all: &[&InsertEntry]) -> Vec<EntryOutcome> {
        let (keyed, plain): (Vec<&InsertEntry>, Vec<&InsertEntry>) =
            all.iter().partition(|entry| entry.claim.is_some());
        let plain_outcomes = match self.insert(&plain, None).await {
            Ok(outcomes) => outcomes,
            Err(fault) if db::is_lock_timeout(&fault) => self.write_patiently(&plain).await,
            Err(fault) if fault.kind() == FaultKind::Internal => {
                self.write_each(&plain, None).await
            }
            // They may have been committed: another try would find their ids taken.
            Err(fault) => fail_all(&plain, &fault),
        };
        let keyed_outcomes = if keyed.len() == 1 {
            vec![Ok(STILL_RUNNING)]
        } else {
            self.write_each(&keyed, Some(LAST_WAIT_MS)).await
        };
        let (mut plain, mut keyed) = (plain_outcomes.into_iter(), keyed_outcomes.into_iter());
        let outcomes = all.iter().map(|entry| {
            let outcomes = match entry.claim {
                Some(_) => &mut keyed,
                None => &mut plain,
            };
            outcomes.next().expect("each entry has its outcome")
        });
        outcomes.collect()
    }

    /// Entries without keys, while a table is locked: all of them have to wait.
    async fn write_patiently(&self, plain: &[&InsertEntry]) -> Vec<EntryOutcome> {
        match self.insert(plain, Some(WAIT_MAX.as_millis())).await {
            Ok(outcomes) => outcomes,
            Err(fault) => fail_all(plain, &fault),
        }
    }

    async fn write_each(
        &self,
        entries: &[&InsertEntry],
        wait_ms: Option<u128>,
    ) -> Vec<EntryOutcome> {
        let mut outcomes: Vec<EntryOutcome> = Vec::with_capacity(entries.len());
        let mut away = None;
        for entry in entries {
            // Each of them would wait for a connection, and the batch with it.
            if let Some(fault) = &away {
                outcomes.push(Err(Fault::clone(fault)));
                continue;
            }
            outcomes.push(match self.insert(&[entry], wait_ms).await {
                Ok(mut outcomes) => outcomes.pop().expect("one entry has one outcome"),
                Err(fault) if db::is_lock_timeout(&fault) && entry.claim.is_some() => {
                    Ok(STILL_RUNNING)
                }
                Err(fault) => {
                    away = (fault.kind() == FaultKind::Unavailable).then(|| fault.clone());
                    Err(fault)
                }
            });
        }
        outcomes
    }

    /// Inserts entries in one transaction; one outcome for each. Of the entries with one
    /// key, the leader is inserted, and the others have its outcome.
    async fn insert(
        &self,
        entries: &[&InsertEntry],
        wait_ms: Option<u128>,
    ) -> Result<Vec<EntryOutcome>, Fault> {
        let leaders = Leaders::of(entries);
        let inserting = self.insert_leaders(&leaders.all, wait_ms);
        let inserted = db::bounded("accept messages", inserting).await?;
        // From here on it is committed: a fault concerns only the entries whose keys were
        // taken.
        self.push_jobs(&leaders.all, &inserted);
        let earlier = self.find_earlier(&inserted.taken).await;
        let outcomes = entries.iter().map(|entry| {
            if let Some(earlier) = key(entry).and_then(|key| earlier.get(&key)) {
                let claim = entry
                    .claim
                    .as_ref()
                    .expect("an entry with a key has a claim");
                let outcome = |earlier: &EarlierRequest| earlier.outcome_for(claim);
                return earlier
                    .as_ref()
                    .map(outcome)
                    .map(FlushOutcome::Done)
                    .map_err(Fault::clone);
            }
            Ok(leaders.outcome(entry, &inserted))
        });
        Ok(outcomes.collect())
    }

    /// The transaction.
    async fn insert_leaders<'a>(
        &self,
        entries: &[&'a InsertEntry],
        wait_ms: Option<u128>,
    ) -> Result<Inserted<'a>, Fault> {
        let doing = "accept messages";
        let usual_wait_ms = insert::drops_recipients(entries).then_some(LOCK_WAIT.as_millis());
        let Some(wait_ms) = wait_ms.or(usual_wait_ms) else {
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

    /// Has the dispatcher push the jobs of the messages that were inserted. Those of scheduled
    /// messages are pushed when they are due (`delivery::schedule`).
    fn push_jobs(&self, entries: &[&InsertEntry], inserted: &Inserted<'_>) {
        let is_taken = |key: EntryKey| inserted.taken.iter().any(|claim| key_of(claim) == key);
        let jobs = entries
            .iter()
            .filter(|entry| key(entry).is_none_or(|key| !is_taken(key)))
            .filter_map(|entry| entry.message.as_ref())
            .filter(|message| message.scheduled_at.is_none())
            .filter(|message| !inserted.suppressed.contains_key(&message.id))
            .flat_map(NewMessage::jobs);
        self.dispatcher.push(jobs);
    }

    /// The earlier requests that have these keys, or the fault of reading them.
    async fn find_earlier(
        &self,
        taken: &[&KeyClaim],
    ) -> HashMap<EntryKey, Result<EarlierRequest, Fault>> {
        if taken.is_empty() {
            return HashMap::new();
        }
        let doing = "find earlier requests";
        let list = async |connection: &mut PgConnection| store::list(connection, taken).await;
        match db::bounded(doing, self.pool.run(doing, list)).await {
            Ok(found) => {
                // Between the INSERT and this statement a key may have been deleted.
                let gone = || Err(Fault::unavailable("find a key", "it is gone"));
                let mut earlier: HashMap<EntryKey, Result<EarlierRequest, Fault>> =
                    taken.iter().map(|claim| (key_of(claim), gone())).collect();
                for (organization_id, key_hash, found) in found {
                    earlier.insert((organization_id, key_hash), found.try_into());
                }
                earlier
            }
            Err(fault) => {
                let failed = taken
                    .iter()
                    .map(|claim| (key_of(claim), Err(fault.clone())));
                failed.collect()
            }
        }
    }
}

/// The entries of a batch that are inserted: those without a key, and one for each key.
struct Leaders<'a> {
    all: Vec<&'a InsertEntry>,
    by_key: HashMap<EntryKey, &'a InsertEntry>,
}

impl<'a> Leaders<'a> {
    /// Of the entries with one key, the first whose recipients are all checked leads, since
    /// the INSERT does not leave it out; or else the first.
    fn of(entries: &[&'a InsertEntry]) -> Self {
        let mut by_key: HashMap<EntryKey, &'a InsertEntry> = HashMap::new();
        for &entry in entries {
            if let Some(key) = key(entry) {
                let leader = by_key.entry(key).or_insert(entry);
                if leader.is_unchecked() && !entry.is_unchecked() {
                    *leader = entry;
                }
            }
        }
        let leads = |entry: &&&InsertEntry| {
            key(entry).is_none_or(|key| std::ptr::eq(by_key[&key], **entry))
        };
        let all = entries.iter().filter(leads).copied().collect();
        Self { all, by_key }
    }

    /// The outcome of an entry whose key no other request has.
    fn outcome(&self, entry: &InsertEntry, inserted: &Inserted<'_>) -> FlushOutcome {
        let suppressed = |entry: &InsertEntry| {
            let message = entry.message.as_ref()?;
            inserted.suppressed.get(&message.id).cloned()
        };
        let (Some(key), Some(claim)) = (key(entry), &entry.claim) else {
            return suppressed(entry).map_or(INSERTED, FlushOutcome::Suppressed);
        };
        let leader = self.by_key[&key];
        if std::ptr::eq(leader, entry) {
            return suppressed(entry).map_or(INSERTED, FlushOutcome::Suppressed);
        }
        let leaders_claim = leader
            .claim
            .as_ref()
            .expect("a leader by a key has a claim");
        let first = EarlierRequest {
            body_hash: leaders_claim.body_hash,
            result: Ok(leader.acceptance),
        };
        match suppressed(leader) {
            // The same request has the same recipients.
            Some(positions) if first.body_hash == claim.body_hash => {
                FlushOutcome::Suppressed(positions)
            }
            Some(_) => FlushOutcome::Suppressed(Vec::new()),
            None => FlushOutcome::Done(first.outcome_for(claim)),
        }
    }
}

const INSERTED: FlushOutcome = FlushOutcome::Done(InsertOutcome::Inserted);

fn has_keys(entries: &[&InsertEntry]) -> bool {
    entries.iter().any(|entry| entry.claim.is_some())
}

fn key(entry: &InsertEntry) -> Option<EntryKey> {
    entry.claim.as_ref().map(key_of)
}

fn key_of(claim: &KeyClaim) -> EntryKey {
    (claim.organization_id, claim.key_hash)
}

fn fail_all(entries: &[&InsertEntry], fault: &Fault) -> Vec<EntryOutcome> {
    entries.iter().map(|_| Err(fault.clone())).collect()
}
