//! The mailbox providers of domains in the memory of a process. An answer is given at once or
//! not at all: domains that are not known here are read from PostgreSQL in the background, in
//! batches, and asked for there if it does not know them either.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use moka::Expiry;
use moka::sync::Cache;
use tracing::debug;

use super::{MailboxProvider, store};
use crate::clock::Clock;
use crate::db::{self, OrFault, PgPool};
use crate::fault::Fault;

/// Domains that are remembered, at most.
const DOMAINS_MAX: u64 = 100_000;
/// Domains that wait for the background, at most. Others are asked for by the next message.
const WANTED_MAX: usize = 1_000;
/// How long an answer is used.
const KNOWN_TTL: Duration = Duration::from_hours(1);
/// When a domain is read again that was not looked up yet.
const UNKNOWN_TTL: Duration = Duration::from_secs(2);
/// How exactly it is recorded when a domain was asked for.
const WANTED_EVERY: TimeDelta = TimeDelta::days(1);

/// The mailbox providers that this process knows. Cheap to clone; clones share them.
#[derive(Clone)]
pub struct MailboxProviders {
    shared: Arc<KnownProviders>,
}

struct KnownProviders {
    pool: PgPool,
    clock: Clock,
    known: Cache<String, Option<MailboxProvider>>,
    wanted: Mutex<WantedDomains>,
}

/// What the background reads next.
#[derive(Default)]
struct WantedDomains {
    domains: HashSet<String>,
    is_reading: bool,
}

struct AnswerExpiry;

impl Expiry<String, Option<MailboxProvider>> for AnswerExpiry {
    fn expire_after_create(
        &self,
        _: &String,
        answer: &Option<MailboxProvider>,
        _: Instant,
    ) -> Option<Duration> {
        Some(ttl(*answer))
    }

    fn expire_after_update(
        &self,
        _: &String,
        answer: &Option<MailboxProvider>,
        _: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        Some(ttl(*answer))
    }
}

fn ttl(answer: Option<MailboxProvider>) -> Duration {
    match answer {
        Some(_) => KNOWN_TTL,
        None => UNKNOWN_TTL,
    }
}

impl MailboxProviders {
    /// Knows the providers' own domains only.
    #[must_use]
    pub fn new(pool: PgPool, clock: Clock) -> Self {
        let known = Cache::builder()
            .max_capacity(DOMAINS_MAX)
            .expire_after(AnswerExpiry)
            .build();
        Self {
            shared: Arc::new(KnownProviders {
                pool,
                clock,
                known,
                wanted: Mutex::default(),
            }),
        }
    }

    /// The mailbox provider of a domain. `None` if it is not known; it is then read in the
    /// background.
    #[must_use]
    pub fn find(&self, domain: &str) -> Option<MailboxProvider> {
        let domain = domain.to_ascii_lowercase();
        let own = MailboxProvider::of_own_domain(&domain);
        own.or_else(|| match self.shared.known.get(&domain) {
            Some(answer) => answer,
            None => {
                self.want(domain);
                None
            }
        })
    }

    pub(super) fn put(&self, domain: String, answer: Option<MailboxProvider>) {
        self.shared.known.insert(domain, answer);
    }

    fn want(&self, domain: String) {
        let mut wanted = self.wanted();
        if wanted.domains.len() < WANTED_MAX {
            wanted.domains.insert(domain);
        }
        if !mem::replace(&mut wanted.is_reading, true) {
            tokio::spawn(self.clone().read_wanted());
        }
    }

    fn wanted(&self) -> MutexGuard<'_, WantedDomains> {
        let wanted = self.shared.wanted.lock();
        wanted.unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what is wanted until nothing is.
    async fn read_wanted(self) {
        loop {
            let domains: Vec<String> = {
                let mut wanted = self.wanted();
                wanted.is_reading = !wanted.domains.is_empty();
                if !wanted.is_reading {
                    return;
                }
                mem::take(&mut wanted.domains).into_iter().collect()
            };
            let mut found = match self.read(&domains).await {
                Ok(found) => found,
                Err(fault) => {
                    debug!(
                        cause = fault.chain(),
                        "Could not read the mailbox providers of domains"
                    );
                    HashMap::new()
                }
            };
            for domain in domains {
                let answer = found.remove(&domain);
                self.put(domain, answer);
            }
        }
    }

    /// Reads domains from PostgreSQL, and asks for those that it does not know.
    pub(in crate::routing) async fn read(
        &self,
        domains: &[String],
    ) -> Result<HashMap<String, MailboxProvider>, Fault> {
        let doing = "read the mailbox providers of domains";
        db::bounded(doing, async {
            let mut connection = self.shared.pool.acquire().await.or_fault(doing)?;
            let stored = store::list(&mut connection, domains).await?;
            let now = self.shared.clock.now();
            let fresh = stored.iter();
            let fresh = fresh.filter(|one| now - one.wanted_at < WANTED_EVERY);
            let fresh: HashSet<&str> = fresh.map(|one| one.domain.as_str()).collect();
            let wanted = domains.iter();
            let wanted = wanted.filter(|domain| !fresh.contains(domain.as_str()));
            let wanted: Vec<String> = wanted.cloned().collect();
            if !wanted.is_empty() {
                store::insert_wanted(&mut connection, &wanted, now).await?;
            }
            let known = stored.into_iter();
            Ok(known
                .filter_map(|one| Some((one.domain, one.provider?)))
                .collect())
        })
        .await
    }
}
