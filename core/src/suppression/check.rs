//! The check at acceptance of large sends: which recipients are suppressed. The filter is
//! asked first where the organization has one; what it does not rule out, and everything
//! where it cannot be believed, is asked of Postgres. Requests that ask at the same time
//! share one statement. Small sends do not ask here, unless no account is known for them
//! yet: the statement that writes them looks along.

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;

use super::bloom_filter::{BloomFilters, FilterState};
use super::store::{self, AskedColumns};
use crate::address::AddressHash;
use crate::batcher::{Batcher, BatcherSettings, Cooldown};
use crate::db::lifo_pool::WarmPool;
use crate::db::{self, PgConnection};
use crate::fault::Fault;
use crate::ids::{OrganizationId, UnsubscribeGroupId};

/// How long a process relies on what Postgres told it of a filter. A filter that
/// loses something in the meantime may be believed for that long.
const MEMORY: Duration = Duration::from_secs(1);
/// Organizations remembered at the most.
const REMEMBERED_MAX: u64 = 100_000;
/// Addresses asked for in one command or statement, roughly.
const ADDRESSES_MAX: usize = 5_000;
/// Connections that a checker can use: statements under way at the same time.
pub const CONNECTIONS: u32 = 2;
const DOING: &str = "look for suppressions";
/// Requests with which another statement begins beside one that is under way.
const CROWD: usize = 64;
/// Requests that may wait for a statement.
const WAITING_MAX: usize = 4_096;

/// One recipient to be looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckedRecipient {
    pub hash: AddressHash,
    /// The unsubscribe group that it is written to in, where there is one.
    pub unsubscribe_group_id: Option<UnsubscribeGroupId>,
}

/// Looks recipients up. Cheap to clone.
#[derive(Clone)]
pub struct Checker {
    filters: BloomFilters,
    states: Cache<OrganizationId, FilterState>,
    group: Batcher<CheckRequest, Vec<bool>>,
}

/// What one request asks of Postgres: about recipients, or, without any, whether the
/// organization has a filter.
struct CheckRequest {
    organization_id: OrganizationId,
    asked: Vec<CheckedRecipient>,
}

impl Checker {
    /// Starts the lanes.
    #[must_use]
    pub fn start(pool: WarmPool, filters: BloomFilters) -> Self {
        let settings = BatcherSettings {
            flushes_max: CONNECTIONS as usize,
            batch_weight_max: ADDRESSES_MAX,
            batch_min: CROWD,
            queue_max: WAITING_MAX,
            cooldown: Cooldown::NONE,
        };
        let states = Cache::builder()
            .max_capacity(REMEMBERED_MAX)
            .time_to_live(MEMORY)
            .build();
        let reader = Arc::new(CheckBatch {
            pool,
            states: states.clone(),
        });
        Self {
            filters,
            states,
            group: Batcher::start("suppression_checks", settings, move |questions| {
                let reader = Arc::clone(&reader);
                async move { reader.answer(questions).await }
            }),
        }
    }

    /// For each of these recipients whether it is suppressed.
    ///
    /// # Errors
    /// A fault when Postgres is needed and away.
    pub async fn check(
        &self,
        organization_id: OrganizationId,
        asked: &[CheckedRecipient],
    ) -> Result<Vec<bool>, Fault> {
        let mut suppressed = Vec::with_capacity(asked.len());
        for part in asked.chunks(ADDRESSES_MAX) {
            suppressed.extend(self.check_part(organization_id, part).await?);
        }
        Ok(suppressed)
    }

    async fn check_part(
        &self,
        organization_id: OrganizationId,
        asked: &[CheckedRecipient],
    ) -> Result<Vec<bool>, Fault> {
        let mut suppressed = self.presume(organization_id, asked).await?;
        let open = asked.iter().zip(&suppressed);
        let open: Vec<CheckedRecipient> = open
            .filter_map(|(asked, maybe)| maybe.then_some(*asked))
            .collect();
        if open.is_empty() {
            return Ok(suppressed);
        }
        let weight = open.len();
        let question = CheckRequest {
            organization_id,
            asked: open,
        };
        let answers = self.group.run(question, weight).await?;
        let maybes = suppressed.iter_mut().filter(|maybe| **maybe);
        for (maybe, answer) in maybes.zip(answers) {
            *maybe = answer;
        }
        Ok(suppressed)
    }

    /// What Postgres must be asked for: everything, unless there is a filter that
    /// can be believed and rules something out.
    async fn presume(
        &self,
        organization_id: OrganizationId,
        asked: &[CheckedRecipient],
    ) -> Result<Vec<bool>, Fault> {
        let state = self.state(organization_id).await?;
        let ruled = if state.has_filter() {
            let hashes = asked.iter().map(|asked| asked.hash);
            self.filters.ask(organization_id, state, hashes).await
        } else {
            None
        };
        if state.is_outgrown() || (ruled.is_none() && state.wants_filter()) {
            self.filters.tend(organization_id).await;
        }
        Ok(ruled.unwrap_or_else(|| vec![true; asked.len()]))
    }

    /// What Postgres knew of an organization's filter a moment ago.
    async fn state(&self, organization_id: OrganizationId) -> Result<FilterState, Fault> {
        if let Some(state) = self.states.get(&organization_id).await {
            return Ok(state);
        }
        let question = CheckRequest {
            organization_id,
            asked: Vec::new(),
        };
        self.group.run(question, 1).await?;
        Ok(self.states.get(&organization_id).await.unwrap_or_default())
    }
}

/// The work of a lane: one statement for the questions of several requests.
struct CheckBatch {
    pool: WarmPool,
    states: Cache<OrganizationId, FilterState>,
}

impl CheckBatch {
    async fn answer(&self, questions: Vec<CheckRequest>) -> Vec<Result<Vec<bool>, Fault>> {
        match self.look_up(&questions).await {
            Ok(suppressed) => {
                let mut rest = suppressed.as_slice();
                let answers = questions.iter().map(|question| {
                    let (own, others) = rest.split_at(question.asked.len());
                    rest = others;
                    Ok(own.to_vec())
                });
                answers.collect()
            }
            Err(fault) => questions.iter().map(|_| Err(fault.clone())).collect(),
        }
    }

    async fn look_up(&self, questions: &[CheckRequest]) -> Result<Vec<bool>, Fault> {
        db::bounded(DOING, self.ask(questions)).await
    }

    async fn ask(&self, questions: &[CheckRequest]) -> Result<Vec<bool>, Fault> {
        let mut columns = AskedColumns::default();
        for question in questions {
            for asked in &question.asked {
                columns.organization_ids.push(question.organization_id.0);
                columns.hashes.push(asked.hash.0.to_vec());
                columns
                    .group_ids
                    .push(asked.unsubscribe_group_id.map(|id| id.0));
            }
        }
        let forgotten = self.forgotten(questions);
        let ask = async |connection: &mut PgConnection| {
            let places = if columns.hashes.is_empty() {
                Vec::new()
            } else {
                store::list_suppressed(connection, &columns).await?
            };
            let states = if forgotten.is_empty() {
                Vec::new()
            } else {
                store::list_states(connection, &forgotten).await?
            };
            Ok((places, states))
        };
        let (places, states) = self.pool.run(DOING, ask).await?;
        // Those without a row have no suppressions: that is remembered too.
        for organization_id in forgotten {
            let own = states.iter().find(|(id, _)| *id == organization_id);
            let state = own.map(|(_, state)| *state).unwrap_or_default();
            self.states.insert(organization_id, state).await;
        }
        let mut suppressed = vec![false; columns.hashes.len()];
        for place in places {
            suppressed[place] = true;
        }
        Ok(suppressed)
    }

    /// The organizations whose filters this process knows nothing of.
    fn forgotten(&self, questions: &[CheckRequest]) -> Vec<OrganizationId> {
        let is_forgotten =
            |question: &&CheckRequest| !self.states.contains_key(&question.organization_id);
        let forgotten = questions.iter().filter(is_forgotten);
        let mut ids: Vec<OrganizationId> =
            forgotten.map(|question| question.organization_id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}
