//! The suppression check for large sends at acceptance. If the organization has a Bloom
//! filter, the filter is read first, and Postgres is asked only about the recipients that
//! the filter does not rule out. Without a valid filter Postgres is asked about all
//! recipients. Concurrent requests share one statement. Small sends need no check here,
//! unless their account is not known yet: their INSERT checks suppressions.

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;

use super::bloom_filter::{BloomFilters, FilterState};
use super::store::{self, CheckColumns};
use crate::address::AddressHash;
use crate::batcher::{Batcher, BatcherSettings, Cooldown};
use crate::db::lifo_pool::LifoPool;
use crate::db::{self, PgConnection};
use crate::fault::Fault;
use crate::ids::{OrganizationId, UnsubscribeGroupId};

/// How long a process uses a filter state that it read from Postgres. A filter that loses
/// data may be used for that long.
const STATE_TTL: Duration = Duration::from_secs(1);
const STATES_MAX: u64 = 100_000;
/// Addresses in one command or statement, roughly.
const ADDRESSES_MAX: usize = 5_000;
/// Connections that a checker uses, and so its concurrent statements.
pub const CONNECTIONS: u32 = 2;
const DOING: &str = "look for suppressions";
/// Waiting requests at which another statement starts beside a running one.
const BATCH_MIN: usize = 64;
/// Requests that may wait for a statement.
const WAITING_MAX: usize = 4_096;

/// One recipient to be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckedRecipient {
    pub hash: AddressHash,
    /// The unsubscribe group of the message, if any.
    pub unsubscribe_group_id: Option<UnsubscribeGroupId>,
}

/// Checks recipients. Cheap to clone.
#[derive(Clone)]
pub struct Checker {
    filters: BloomFilters,
    states: Cache<OrganizationId, FilterState>,
    batcher: Batcher<CheckRequest, Vec<bool>>,
}

/// One query for Postgres. Without recipients it only reads the organization's filter
/// state.
struct CheckRequest {
    organization_id: OrganizationId,
    recipients: Vec<CheckedRecipient>,
}

impl Checker {
    /// Starts the batcher.
    #[must_use]
    pub fn start(pool: LifoPool, filters: BloomFilters) -> Self {
        let settings = BatcherSettings {
            flushes_max: CONNECTIONS as usize,
            batch_weight_max: ADDRESSES_MAX,
            batch_min: BATCH_MIN,
            queue_max: WAITING_MAX,
            cooldown: Cooldown::NONE,
        };
        let states = Cache::builder()
            .max_capacity(STATES_MAX)
            .time_to_live(STATE_TTL)
            .build();
        let query = Arc::new(CheckQuery {
            pool,
            states: states.clone(),
        });
        Self {
            filters,
            states,
            batcher: Batcher::start("suppression_checks", settings, move |requests| {
                let query = Arc::clone(&query);
                async move { query.run(requests).await }
            }),
        }
    }

    /// Whether each of the recipients is suppressed, in their order.
    ///
    /// # Errors
    /// A fault if Postgres is needed and unavailable.
    pub async fn check(
        &self,
        organization_id: OrganizationId,
        recipients: &[CheckedRecipient],
    ) -> Result<Vec<bool>, Fault> {
        let mut suppressed = Vec::with_capacity(recipients.len());
        for chunk in recipients.chunks(ADDRESSES_MAX) {
            suppressed.extend(self.check_chunk(organization_id, chunk).await?);
        }
        Ok(suppressed)
    }

    async fn check_chunk(
        &self,
        organization_id: OrganizationId,
        recipients: &[CheckedRecipient],
    ) -> Result<Vec<bool>, Fault> {
        let mut suppressed = self.prefilter(organization_id, recipients).await?;
        let undecided: Vec<CheckedRecipient> = recipients
            .iter()
            .zip(&suppressed)
            .filter_map(|(recipient, maybe)| maybe.then_some(*recipient))
            .collect();
        if undecided.is_empty() {
            return Ok(suppressed);
        }
        let weight = undecided.len();
        let request = CheckRequest {
            organization_id,
            recipients: undecided,
        };
        let results = self.batcher.run(request, weight).await?;
        let maybes = suppressed.iter_mut().filter(|maybe| **maybe);
        for (maybe, is_suppressed) in maybes.zip(results) {
            *maybe = is_suppressed;
        }
        Ok(suppressed)
    }

    /// Whether each recipient may be suppressed. All are true without a valid filter.
    async fn prefilter(
        &self,
        organization_id: OrganizationId,
        recipients: &[CheckedRecipient],
    ) -> Result<Vec<bool>, Fault> {
        let state = self.state(organization_id).await?;
        let maybes = if state.has_filter() {
            let hashes = recipients.iter().map(|recipient| recipient.hash);
            self.filters.check(organization_id, state, hashes).await
        } else {
            None
        };
        if state.is_outgrown() || (maybes.is_none() && state.needs_filter()) {
            self.filters.request_build(organization_id).await;
        }
        Ok(maybes.unwrap_or_else(|| vec![true; recipients.len()]))
    }

    /// The state of an organization's filter, at most [`STATE_TTL`] old.
    async fn state(&self, organization_id: OrganizationId) -> Result<FilterState, Fault> {
        if let Some(state) = self.states.get(&organization_id).await {
            return Ok(state);
        }
        let request = CheckRequest {
            organization_id,
            recipients: Vec::new(),
        };
        self.batcher.run(request, 1).await?;
        Ok(self.states.get(&organization_id).await.unwrap_or_default())
    }
}

/// Answers the requests of a batch with one statement.
struct CheckQuery {
    pool: LifoPool,
    states: Cache<OrganizationId, FilterState>,
}

impl CheckQuery {
    async fn run(&self, requests: Vec<CheckRequest>) -> Vec<Result<Vec<bool>, Fault>> {
        match db::bounded(DOING, self.query(&requests)).await {
            Ok(suppressed) => {
                let mut remaining = suppressed.as_slice();
                let results = requests.iter().map(|request| {
                    let (own, others) = remaining.split_at(request.recipients.len());
                    remaining = others;
                    Ok(own.to_vec())
                });
                results.collect()
            }
            Err(fault) => requests.iter().map(|_| Err(fault.clone())).collect(),
        }
    }

    /// Whether each recipient of all requests is suppressed. Also caches the filter states
    /// of organizations that the cache does not have.
    async fn query(&self, requests: &[CheckRequest]) -> Result<Vec<bool>, Fault> {
        let mut columns = CheckColumns::default();
        for request in requests {
            for recipient in &request.recipients {
                columns.organization_ids.push(request.organization_id.0);
                columns.hashes.push(recipient.hash.0.to_vec());
                columns
                    .group_ids
                    .push(recipient.unsubscribe_group_id.map(|id| id.0));
            }
        }
        let uncached = self.uncached(requests);
        let query = async |connection: &mut PgConnection| {
            let positions = if columns.hashes.is_empty() {
                Vec::new()
            } else {
                store::list_suppressed(connection, &columns).await?
            };
            let states = if uncached.is_empty() {
                Vec::new()
            } else {
                store::list_states(connection, &uncached).await?
            };
            Ok((positions, states))
        };
        let (positions, states) = self.pool.run(DOING, query).await?;
        // An organization without a row has no suppressions. That is cached too.
        for organization_id in uncached {
            let own = states.iter().find(|(id, _)| *id == organization_id);
            let state = own.map(|(_, state)| *state).unwrap_or_default();
            self.states.insert(organization_id, state).await;
        }
        let mut suppressed = vec![false; columns.hashes.len()];
        for position in positions {
            suppressed[position] = true;
        }
        Ok(suppressed)
    }

    /// The organizations of the requests whose filter state is not cached.
    fn uncached(&self, requests: &[CheckRequest]) -> Vec<OrganizationId> {
        let ids = requests.iter().map(|request| request.organization_id);
        let mut ids: Vec<OrganizationId> = ids.filter(|id| !self.states.contains_key(id)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}
