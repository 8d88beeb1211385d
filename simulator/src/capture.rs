//! Stores accepted messages: one record for each recipient of a request.
//!
//! The newest records are kept, up to a number of records and of bytes; counts are always
//! exact. One lock guards the ring and is held only to append or to search.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::clock;
use crate::mail::{Captured, Recipient, Record};
use crate::providers::Provider;
use crate::state::Config;

/// Approximate size of a record without its texts.
const RECORD_BYTES: usize = 256;

/// An accepted message, ready to be recorded.
pub(crate) struct Accepted<'a> {
    pub(crate) provider: Provider,
    /// The sender's credential: API key, server token or access key id.
    pub(crate) credential: &'a str,
    pub(crate) provider_message_id: String,
    pub(crate) recipients: Vec<Recipient>,
}

/// The store of accepted messages.
pub(crate) struct CaptureStore {
    ring: Mutex<Ring>,
    hasher: RandomState,
    keep_recipients_max: usize,
    keep_bytes_max: usize,
    keep_bodies: bool,
}

#[derive(Default)]
struct Ring {
    /// The sequence number of the first record kept.
    first: u64,
    records: VecDeque<Arc<Record>>,
    /// The newest record by the hash of its address; `Record::previous` links to older
    /// ones.
    newest: HashMap<u64, u64>,
    bytes: usize,
    counts: [u64; Provider::ALL.len()],
}

impl CaptureStore {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            ring: Mutex::default(),
            hasher: RandomState::new(),
            keep_recipients_max: config.keep_recipients_max,
            keep_bytes_max: config.keep_bytes_max,
            keep_bodies: config.keep_bodies,
        }
    }

    /// Whether bodies are stored.
    pub(crate) fn keeps_bodies(&self) -> bool {
        self.keep_bodies
    }

    /// Stores the recipients and returns their records.
    pub(crate) fn record(&self, accepted: Accepted<'_>) -> Vec<Arc<Record>> {
        let (accepted_at, provider) = (clock::now(), accepted.provider);
        let provider_message_id: Arc<str> = accepted.provider_message_id.into();
        let credential: Arc<str> = accepted.credential.into();
        // The last recipient accounts for the bytes that recipients share: it is evicted
        // last.
        let mut shared_bytes = accepted
            .recipients
            .first()
            .map_or(0, |recipient| recipient.body.bytes());
        let count = accepted.recipients.len();
        let prepared: Vec<_> = accepted
            .recipients
            .into_iter()
            .enumerate()
            .map(|(at, recipient)| {
                let mut bytes = RECORD_BYTES + recipient.own_bytes();
                if at + 1 == count {
                    bytes += std::mem::take(&mut shared_bytes);
                }
                (self.hash(&recipient.to), recipient, bytes)
            })
            .collect();
        let mut records = Vec::with_capacity(count);
        let mut ring = self.ring.lock();
        ring.counts[provider as usize] += count as u64;
        for (position, (address_hash, recipient, bytes)) in prepared.into_iter().enumerate() {
            let sequence = ring.first + ring.records.len() as u64;
            let previous = ring.newest.insert(address_hash, sequence);
            ring.bytes += bytes;
            let record = Arc::new(Record {
                sequence,
                position,
                previous,
                address_hash,
                provider,
                provider_message_id: Arc::clone(&provider_message_id),
                credential: Arc::clone(&credential),
                accepted_at,
                recipient,
                bytes,
            });
            records.push(Arc::clone(&record));
            ring.records.push_back(record);
        }
        let evicted = self.evict(&mut ring);
        drop(ring);
        // Free the memory outside the lock.
        drop(evicted);
        records
    }

    /// All records of one address, oldest first.
    pub(crate) fn to(&self, address: &str, limit: usize) -> Vec<Captured> {
        let mut found = Vec::new();
        let ring = self.ring.lock();
        let mut at = ring.newest.get(&self.hash(address)).copied();
        while let Some(record) = at.and_then(|sequence| ring.get(sequence)) {
            if record.recipient.to.eq_ignore_ascii_case(address) {
                found.push(Arc::clone(record));
                if found.len() == limit {
                    break;
                }
            }
            at = record.previous;
        }
        drop(ring);
        found.iter().rev().map(|record| record.render()).collect()
    }

    /// The newest records, in ascending order.
    pub(crate) fn newest(&self, provider: Option<Provider>, limit: usize) -> Vec<Captured> {
        let ring = self.ring.lock();
        let found: Vec<_> = ring
            .records
            .iter()
            .rev()
            .filter(|record| provider.is_none_or(|own| own == record.provider))
            .take(limit)
            .cloned()
            .collect();
        drop(ring);
        found.iter().rev().map(|record| record.render()).collect()
    }

    /// The newest records that match, newest first.
    pub(crate) fn search(
        &self,
        limit: usize,
        matches: impl Fn(&Record) -> bool,
    ) -> Vec<Arc<Record>> {
        let ring = self.ring.lock();
        let found = ring.records.iter().rev().filter(|record| matches(record));
        found.take(limit).cloned().collect()
    }

    pub(crate) fn find(&self, sequence: u64) -> Option<Captured> {
        let record = self.ring.lock().get(sequence).cloned();
        record.map(|record| record.render())
    }

    /// How many recipients each provider accepted, stored or not.
    pub(crate) fn counts(&self) -> [u64; Provider::ALL.len()] {
        self.ring.lock().counts
    }

    /// Deletes all messages and counts. Sequence numbers continue.
    pub(crate) fn clear(&self) {
        let mut ring = self.ring.lock();
        let first = ring.first + ring.records.len() as u64;
        let old = std::mem::replace(
            &mut *ring,
            Ring {
                first,
                ..Ring::default()
            },
        );
        drop(ring);
        drop(old);
    }

    fn hash(&self, address: &str) -> u64 {
        self.hasher.hash_one(address.to_ascii_lowercase())
    }

    fn evict(&self, ring: &mut Ring) -> Vec<Arc<Record>> {
        let mut evicted = Vec::new();
        while ring.records.len() > self.keep_recipients_max || ring.bytes > self.keep_bytes_max {
            let Some(record) = ring.records.pop_front() else {
                break;
            };
            ring.first += 1;
            ring.bytes -= record.bytes;
            if ring.newest.get(&record.address_hash) == Some(&record.sequence) {
                ring.newest.remove(&record.address_hash);
            }
            evicted.push(record);
        }
        evicted
    }
}

impl Ring {
    fn get(&self, sequence: u64) -> Option<&Arc<Record>> {
        let at = usize::try_from(sequence.checked_sub(self.first)?).ok()?;
        self.records.get(at)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Accepted, CaptureStore};
    use crate::mail::{Body, Envelope, Recipient};
    use crate::providers::Provider;
    use crate::state::Config;

    fn store(keep_recipients_max: usize) -> CaptureStore {
        CaptureStore::new(&Config {
            keep_recipients_max,
            ..Config::default()
        })
    }

    fn record(store: &CaptureStore, addresses: &[&str]) {
        let envelope = Arc::new(Envelope {
            subject: "Hello -name-".to_owned(),
            ..Envelope::default()
        });
        let body = Arc::new(Body::default());
        let recipients = addresses.iter().map(|to| Recipient {
            to: (*to).to_owned(),
            kind: crate::mail::Kind::To,
            visible: None,
            envelope: Arc::clone(&envelope),
            body: Arc::clone(&body),
            metadata: Vec::new(),
            substitutions: vec![("-name-".to_owned(), "Ann".to_owned())],
        });
        store.record(Accepted {
            provider: Provider::Ses,
            credential: "AKIA",
            provider_message_id: "id".to_owned(),
            recipients: recipients.collect(),
        });
    }

    #[test]
    fn repeated_sends_are_separate_records_oldest_first() {
        let store = store(10);
        record(&store, &["a@example.com", "b@example.com"]);
        record(&store, &["A@example.com"]);
        let found = store.to("a@EXAMPLE.com", 10);
        let sequences: Vec<_> = found.iter().map(|recipient| recipient.sequence).collect();
        assert_eq!(sequences, [0, 2]);
        assert_eq!(found[0].subject, "Hello Ann");
    }

    #[test]
    fn old_records_are_evicted_but_stay_counted() {
        let store = store(2);
        record(&store, &["a@x.test", "b@x.test", "a@x.test"]);
        assert_eq!(store.to("a@x.test", 10).len(), 1);
        assert_eq!(store.newest(None, 10).len(), 2);
        assert_eq!(store.counts()[Provider::Ses as usize], 3);
        record(&store, &["c@x.test", "c@x.test"]);
        assert!(store.to("a@x.test", 10).is_empty());
        assert!(store.to("b@x.test", 10).is_empty());
    }

    #[test]
    fn clearing_deletes_messages_and_counts() {
        let store = store(2);
        record(&store, &["a@x.test"]);
        store.clear();
        assert!(store.newest(None, 10).is_empty());
        assert_eq!(store.counts(), [0; Provider::ALL.len()]);
        record(&store, &["a@x.test"]);
        assert_eq!(store.to("a@x.test", 10).len(), 1);
    }
}
