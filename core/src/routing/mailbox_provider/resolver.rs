//! Looks up in DNS which mailbox provider a domain has. An answer holds for a week; a look-up
//! that fails keeps the one before.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use futures_util::future::join_all;

use super::cache::MailboxProviders;
use super::{MailboxProvider, store};
use crate::clock::Clock;
use crate::db::{OrFault, PgPool};
use crate::dns::{DnsQuestion, DnsResolver};
use crate::fault::Fault;

/// How long an answer holds.
const HOLDS: TimeDelta = TimeDelta::days(7);
/// How long domains are looked up that nobody asks for.
const WANTED_FOR: TimeDelta = TimeDelta::days(30);
/// How long nobody else looks up a domain. A look-up takes at most five seconds.
const LEASE: TimeDelta = TimeDelta::minutes(1);
/// Unwanted domains that one statement deletes, at most.
const DELETED_MAX: i64 = 1_000;
/// Domains that are looked up while a client waits, at most.
const NOW_MAX: usize = 10;

/// Looks up the mailbox providers of domains. Cheap to clone.
#[derive(Clone)]
pub struct MailboxProviderResolver {
    pub pool: PgPool,
    pub resolver: DnsResolver,
    pub clock: Clock,
}

impl MailboxProviderResolver {
    /// Leases domains whose look-up is due, and deletes some that nobody asks for; none if
    /// there is no server to ask.
    ///
    /// # Errors
    /// A fault.
    pub async fn lease_due(&self, limit: usize) -> Result<Vec<String>, Fault> {
        let doing = "lease domains whose mailbox provider is due";
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        let now = self.clock.now();
        let wanted_since = now - WANTED_FOR;
        store::delete_unwanted(&mut connection, wanted_since, DELETED_MAX).await?;
        if !self.resolver.is_enabled() {
            return Ok(Vec::new());
        }
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        store::lease(&mut connection, limit, now, now + LEASE).await
    }

    /// Looks up a domain and stores the answer; `None` if the look-up failed.
    ///
    /// # Errors
    /// A fault.
    pub async fn look_up(&self, domain: &str) -> Result<Option<MailboxProvider>, Fault> {
        let answer = self.resolver.look_up(DnsQuestion::Mx, domain).await;
        let provider = answer.values().map(MailboxProvider::of_mail_servers);
        let doing = "record the mailbox provider of a domain";
        let mut connection = self.pool.acquire().await.or_fault(doing)?;
        let now = self.clock.now();
        match provider {
            Some(provider) => {
                store::upsert(&mut connection, domain, provider, now, now + HOLDS).await?;
            }
            None => store::record_failure(&mut connection, domain, now).await?,
        }
        Ok(provider)
    }

    /// Has the cache know domains, as far as PostgreSQL or DNS know them now. DNS is asked for
    /// the first ten.
    ///
    /// # Errors
    /// A fault.
    pub async fn look_up_all(
        &self,
        cache: &MailboxProviders,
        domains: BTreeSet<String>,
    ) -> Result<(), Fault> {
        let foreign = domains.into_iter();
        let foreign = foreign.filter(|domain| MailboxProvider::of_own_domain(domain).is_none());
        let foreign: Vec<String> = foreign.collect();
        if foreign.is_empty() {
            return Ok(());
        }
        let mut known = cache.read(&foreign).await?;
        let unknown = foreign.iter().filter(|domain| !known.contains_key(*domain));
        let unknown: Vec<&String> = unknown.take(NOW_MAX).collect();
        if self.resolver.is_enabled() {
            let found = join_all(unknown.iter().map(|domain| self.look_up(domain))).await;
            for (domain, found) in unknown.into_iter().zip(found) {
                known.extend(found?.map(|provider| (domain.clone(), provider)));
            }
        }
        for domain in foreign {
            let answer = known.get(&domain).copied();
            cache.put(domain, answer);
        }
        Ok(())
    }
}
