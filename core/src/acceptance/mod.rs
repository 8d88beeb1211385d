//! Acceptance: from a checked draft to the moment at which its 202 is true.
//!
//! Characters: the *draft* (checked), the *checker* (who is suppressed), the *route*
//! (which account), the *group* of concurrent requests that share one transaction,
//! the *dispatcher* that tells Redis afterwards. What is promised: a receipt means that message, recipients,
//! QUEUED event and outbox row are committed. What is not: that Redis heard of it;
//! the relay sees to that.

pub mod draft;
mod idempotency;
mod insert;
mod insert_batcher;
mod render_draft;
pub mod retry;
mod writer;

use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::sync::Semaphore;

use crate::address::AddressHash;
use crate::clock::Clock;
use crate::crypto::seal::{Sealed, Sealer};
use crate::db::lifo_pool::WarmPool;
use crate::db::liveness::Liveness;
use crate::db::{self, PgPool};
use crate::delivery::dispatch::Dispatcher;
use crate::fault::Fault;
use crate::idempotency::{KeyClaim, KeyConflict, WAIT_MAX};
use crate::ids::{Ids, MessageId, OrganizationId};
use crate::routing::snapshot_cache::SnapshotCache;
use crate::routing::{self, Route, RouteRefusal, RoutingRequest, RoutingSnapshot};
use crate::secret::Secret;
use crate::suppression::check::{CheckedRecipient, Checker};
use crate::template::{TemplateRefusal, Templates};
use crate::text::Tag;
use crate::unsubscribe::group_cache::GroupCache;
use draft::Draft;
use idempotency::{InsertEntry, InsertOutcome};
use insert::{NewMessage, NewRecipient};
use insert_batcher::InsertBatcher;
use render_draft::{RenderedDraft, render_draft};
use writer::{InsertWriter, LANE_WAIT};

/// Connections to Postgres that acceptance uses at the most.
pub const CONNECTIONS: u32 = insert_batcher::CONNECTIONS;
/// Recipients of a request, all messages together, up to which Postgres is asked about
/// suppressions by the statement that writes them. Where one of them is suppressed, its
/// message is written again, which costs more the larger it is.
const LEFT_OPEN_MAX: usize = 100;
/// Requests that wait for a key which another one holds, at the same time: each has a
/// connection while it does.
const WAITS: usize = 3;
/// Messages of one request that are rendered at the same time.
const FILLED_AT_ONCE: usize = 4;
/// Rendered bytes of one request that are held, roughly: with more the messages so far are
/// written first.
const FILLED_BYTES_MAX: usize = 64 << 20;

/// What the sender of an accepted message learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    pub message_id: MessageId,
    /// The account that it goes through.
    pub route: Route,
    /// Recipients that it is sent to.
    pub accepted_count: usize,
    /// Recipients that were dropped, because they are suppressed.
    pub suppressed_count: usize,
}

/// What became of a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// A message was written, for those recipients that are not suppressed.
    Queued(Receipt),
    /// All of its recipients are suppressed: there is no message.
    Suppressed { suppressed_count: usize },
}

/// What a draft is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    pub acceptance: Acceptance,
    /// Whether that became of an earlier one with its key.
    pub is_repeat: bool,
}

/// Why a message was not accepted.
#[derive(Debug, Clone)]
pub enum AcceptRefusal {
    Route(RouteRefusal),
    /// Its template gives no message.
    Template(TemplateRefusal),
    /// Its unsubscribe group is none of the organization's.
    UnknownGroup,
    /// An earlier run of its batch refused it, in these words.
    Before(String),
    /// Its key cannot be had.
    Key(KeyConflict),
    /// We failed. The message may have been accepted all the same if Postgres
    /// went away while it was being written.
    Fault(Fault),
}

impl From<TemplateRefusal> for AcceptRefusal {
    fn from(refusal: TemplateRefusal) -> Self {
        match refusal {
            TemplateRefusal::Fault(fault) => Self::Fault(fault),
            refusal @ (TemplateRefusal::NotFound
            | TemplateRefusal::VersionNotFound
            | TemplateRefusal::WithoutVersion
            | TemplateRefusal::Invalid(_)
            | TemplateRefusal::Unrenderable(_)) => Self::Template(refusal),
        }
    }
}

impl From<Fault> for AcceptRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Accepts messages. Cheap to clone.
#[derive(Clone)]
pub struct Acceptor {
    templates: Templates,
    groups: GroupCache,
    checker: Checker,
    snapshots: SnapshotCache,
    sealer: Sealer,
    ids: Ids,
    clock: Clock,
    lanes: InsertBatcher,
    reader: PgPool,
    waits: Arc<Semaphore>,
}

/// What an [`Acceptor`] works with.
#[derive(Clone)]
pub struct AcceptorParts {
    /// Connections for acceptance alone, so that nothing else that is asked of
    /// Postgres keeps a send waiting: those of [`pool`].
    pub pool: WarmPool,
    /// Connections for what is seldom asked.
    pub reader: PgPool,
    /// What messages are rendered from.
    pub templates: Templates,
    /// Knows which unsubscribe groups there are.
    pub groups: GroupCache,
    pub checker: Checker,
    pub snapshots: SnapshotCache,
    pub sealer: Sealer,
    pub dispatcher: Dispatcher,
    pub ids: Ids,
    pub clock: Clock,
    /// How long the relay leaves the push to the dispatcher.
    pub relay_grace: Duration,
}

/// Connections for acceptance: [`CONNECTIONS`] of them. They wait for nobody's lock
/// for long.
///
/// # Errors
/// A fault when the URL cannot be read.
pub fn pool(url: &Secret, pulse: &Liveness) -> Result<WarmPool, Fault> {
    let pool = db::impatient_pool(url, CONNECTIONS, LANE_WAIT, pulse)?;
    Ok(WarmPool::watched(pool, pulse.clone()))
}

impl Acceptor {
    /// Starts the lanes.
    #[must_use]
    pub fn start(parts: AcceptorParts) -> Self {
        let writer = InsertWriter {
            pool: parts.pool,
            dispatcher: parts.dispatcher,
            relay_grace: parts.relay_grace,
        };
        Self {
            templates: parts.templates,
            groups: parts.groups,
            checker: parts.checker,
            snapshots: parts.snapshots,
            sealer: parts.sealer,
            lanes: InsertBatcher::start(writer, parts.ids.clone()),
            ids: parts.ids,
            clock: parts.clock,
            reader: parts.reader,
            waits: Arc::new(Semaphore::new(WAITS)),
        }
    }

    /// Accepts one message.
    ///
    /// # Errors
    /// Why it was not accepted.
    pub async fn accept(
        &self,
        organization_id: OrganizationId,
        draft: Draft,
    ) -> Result<Answered, AcceptRefusal> {
        // In a box: it is large, and every layer of the server would move it.
        let accepting = Box::pin(self.accept_all(organization_id, vec![draft]));
        let mut results = accepting.await?;
        results.pop().expect("one draft gives one result")
    }

    /// Accepts messages, each independently of the others; one result for each
    /// draft, in their order.
    ///
    /// # Errors
    /// A fault that concerns them all.
    pub async fn accept_all(
        &self,
        organization_id: OrganizationId,
        drafts: Vec<Draft>,
    ) -> Result<Vec<Result<Answered, AcceptRefusal>>, Fault> {
        let groups = drafts.iter().filter_map(|draft| draft.unsubscribe_group_id);
        let unknown_groups = self
            .groups
            .missing(organization_id, groups.collect())
            .await?;
        let claims: Vec<Option<KeyClaim>> = drafts.iter().map(|draft| draft.claim).collect();
        let (snapshot, is_routed) = self.snapshot_for(organization_id, &drafts).await?;
        let recipients = self.look_up(organization_id, &drafts, is_routed).await?;
        let mut results = Vec::with_capacity(drafts.len());
        let (mut entries, mut held) = (Vec::with_capacity(drafts.len()), Vec::new());
        let deadline = Templates::deadline();
        {
            let filling = stream::iter(drafts)
                .map(|draft| render_draft(&self.templates, organization_id, draft, deadline))
                .buffered(FILLED_AT_ONCE);
            let mut prepared = pin!(filling.zip(stream::iter(recipients)).enumerate());
            let mut bytes = 0;
            while let Some((place, (filled, recipients))) = prepared.next().await {
                let filled = filled.map_err(AcceptRefusal::from);
                bytes += filled.as_ref().map_or(0, RenderedDraft::rendered_bytes);
                let decided = filled.and_then(|filled| {
                    let group = filled.draft.unsubscribe_group_id;
                    if group.is_some_and(|group| unknown_groups.contains(&group)) {
                        return Err(AcceptRefusal::UnknownGroup);
                    }
                    self.decide(
                        &snapshot,
                        organization_id,
                        filled,
                        claims[place],
                        &recipients,
                    )
                });
                results.push(decided.map(|entry| {
                    let answered = first(entry.acceptance);
                    entries.extend((!entry.is_empty()).then_some((place, entry)));
                    answered
                }));
                if bytes > FILLED_BYTES_MAX {
                    // Rare, and in a box: every request would carry it.
                    let entries = mem::take(&mut entries);
                    held.extend(Box::pin(self.write(entries, &claims, &mut results)).await);
                    bytes = 0;
                }
                // Sealing a thousand addresses takes a millisecond, and what is rendered on
                // the spot waits for nothing: others may run.
                tokio::task::yield_now().await;
            }
        }
        held.extend(self.write(entries, &claims, &mut results).await);
        self.await_held(held, &mut results).await;
        self.reconsider(&claims, &mut results).await;
        Ok(results)
    }

    /// Writes entries, and answers those whose keys another request holds.
    async fn write(
        &self,
        entries: Vec<(usize, Box<InsertEntry>)>,
        claims: &[Option<KeyClaim>],
        results: &mut [Result<Answered, AcceptRefusal>],
    ) -> Vec<(usize, Box<InsertEntry>, KeyClaim)> {
        let mut held = Vec::new();
        for (place, decided) in self.lanes.write(entries).await {
            match (decided, claims[place]) {
                (Ok((entry, InsertOutcome::Refused(KeyConflict::StillRunning))), Some(claim)) => {
                    held.push((place, entry, claim));
                }
                (decided, _) => settle_entry(&mut results[place], decided),
            }
        }
        held
    }

    /// What is to be written for a draft.
    fn decide(
        &self,
        snapshot: &RoutingSnapshot,
        organization_id: OrganizationId,
        filled: RenderedDraft,
        claim: Option<KeyClaim>,
        recipients: &[LookedUp],
    ) -> Result<Box<InsertEntry>, AcceptRefusal> {
        let suppressed = recipients.iter().filter(|found| found.is_suppressed);
        let suppressed_count = suppressed.count();
        // Decided before routing: it does not matter which account would not send it.
        if suppressed_count == recipients.len() {
            return Ok(Box::new(InsertEntry {
                message: None,
                claim,
                acceptance: Acceptance::Suppressed { suppressed_count },
            }));
        }
        let route =
            routing::resolve(snapshot, &enquiry(&filled.draft)).map_err(AcceptRefusal::Route)?;
        let message = self.compose(snapshot, organization_id, route, filled, recipients);
        let acceptance = Acceptance::Queued(Receipt {
            message_id: message.id,
            route,
            accepted_count: recipients.len() - suppressed_count,
            suppressed_count,
        });
        Ok(Box::new(InsertEntry {
            message: Some(message),
            claim,
            acceptance,
        }))
    }

    /// Waits, outside of the lanes, for requests that hold the keys of these entries:
    /// what they were answered holds, and where they were not served, the entries are
    /// written after all.
    async fn await_held(
        &self,
        held: Vec<(usize, Box<InsertEntry>, KeyClaim)>,
        results: &mut [Result<Answered, AcceptRefusal>],
    ) {
        if held.is_empty() {
            return;
        }
        let claims: Vec<KeyClaim> = held.iter().map(|(_, _, claim)| *claim).collect();
        let found = match tokio::time::timeout(WAIT_MAX, self.waits.acquire()).await {
            Ok(Ok(_permit)) => {
                let looking = idempotency::find_earlier(&self.reader, &claims);
                db::bounded("wait for keys", looking).await
            }
            Ok(Err(_)) | Err(_) => {
                let running = InsertOutcome::Refused(KeyConflict::StillRunning);
                Ok(vec![Some(running); claims.len()])
            }
        };
        let mut free = Vec::new();
        match found {
            Ok(found) => {
                for ((place, entry, _), written) in held.into_iter().zip(found) {
                    match written {
                        Some(written) => settle(&mut results[place], written),
                        None => free.push((place, entry)),
                    }
                }
            }
            Err(fault) => {
                for (place, ..) in held {
                    results[place] = Err(AcceptRefusal::Fault(fault.clone()));
                }
            }
        }
        for (place, decided) in self.lanes.write(free).await {
            settle_entry(&mut results[place], decided);
        }
    }

    /// Keeps that parts of a batch are refused, in these words, so that no other run
    /// of the batch accepts them; `results` become what holds for them.
    pub async fn keep_refusals(
        &self,
        parts: Vec<(KeyClaim, String)>,
        results: Vec<&mut Result<Answered, AcceptRefusal>>,
    ) -> Result<(), Fault> {
        let decided = idempotency::refuse(&self.reader, parts).await?;
        for (result, written) in results.into_iter().zip(decided) {
            settle(result, written);
        }
        Ok(())
    }

    /// What is refused now may have been accepted before, with the same key: then
    /// that is the answer.
    async fn reconsider(
        &self,
        claims: &[Option<KeyClaim>],
        results: &mut [Result<Answered, AcceptRefusal>],
    ) {
        let refused = claims.iter().zip(&*results).enumerate();
        let refused = refused.filter_map(|(place, (claim, result))| match result {
            Err(
                AcceptRefusal::Route(_) | AcceptRefusal::Template(_) | AcceptRefusal::UnknownGroup,
            ) => Some((place, (*claim)?)),
            Err(AcceptRefusal::Before(_) | AcceptRefusal::Key(_) | AcceptRefusal::Fault(_))
            | Ok(_) => None,
        });
        let (places, claims): (Vec<usize>, Vec<KeyClaim>) = refused.unzip();
        if claims.is_empty() {
            return;
        }
        let looking = idempotency::find_earlier(&self.reader, &claims);
        match db::bounded("look for keys", looking).await {
            Ok(found) => {
                for (place, written) in places.into_iter().zip(found) {
                    settle(&mut results[place], written.unwrap_or(InsertOutcome::Now));
                }
            }
            // Whether it was accepted before is not known, so it is not refused.
            Err(fault) => {
                for place in places {
                    results[place] = Err(AcceptRefusal::Fault(fault.clone()));
                }
            }
        }
    }

    /// Asks for the recipients of all drafts at once; one list for each draft. A few are
    /// left open, if that may be: the statement that writes them looks along.
    async fn look_up(
        &self,
        organization_id: OrganizationId,
        drafts: &[Draft],
        may_be_open: bool,
    ) -> Result<Vec<Vec<LookedUp>>, Fault> {
        let asked = drafts.iter().flat_map(|draft| {
            draft.to.iter().map(|mailbox| CheckedRecipient {
                hash: mailbox.address().hash(),
                unsubscribe_group_id: draft.unsubscribe_group_id,
            })
        });
        let asked: Vec<CheckedRecipient> = asked.collect();
        let is_open = may_be_open && asked.len() <= LEFT_OPEN_MAX;
        let suppressed = if is_open {
            vec![false; asked.len()]
        } else {
            self.checker.check(organization_id, &asked).await?
        };
        let found = asked.iter().zip(suppressed);
        let mut found = found.map(|(asked, is_suppressed)| LookedUp {
            hash: asked.hash,
            is_suppressed,
            is_open,
        });
        let lists = drafts
            .iter()
            .map(|draft| found.by_ref().take(draft.to.len()).collect());
        Ok(lists.collect())
    }

    /// What routing knows, and whether that has an account for each of the drafts. Where
    /// it has none it is read anew, once, so that an account connected a moment ago in
    /// another process counts.
    async fn snapshot_for(
        &self,
        organization_id: OrganizationId,
        drafts: &[Draft],
    ) -> Result<(Arc<RoutingSnapshot>, bool), Fault> {
        let remembered = self.snapshots.get(organization_id).await?;
        let routes = |draft: &Draft| routing::resolve(&remembered, &enquiry(draft)).is_ok();
        if drafts.iter().all(routes) {
            return Ok((remembered, true));
        }
        let anew = self.snapshots.reload(organization_id).await?;
        Ok((anew, false))
    }

    fn compose(
        &self,
        snapshot: &RoutingSnapshot,
        organization_id: OrganizationId,
        route: Route,
        filled: RenderedDraft,
        recipients: &[LookedUp],
    ) -> NewMessage {
        let RenderedDraft { draft, version, .. } = filled;
        let created_at = self.clock.now();
        let id: MessageId = self.ids.next_at(created_at);
        // Before those of dropped recipients: a history begins with QUEUED.
        let queued_event = self.ids.next_at(created_at);
        let recipients = draft.to.iter().zip(recipients);
        let recipients = recipients.map(|(mailbox, found)| NewRecipient {
            address_sealed: self.sealer.seal(
                organization_id,
                Sealed::Recipient,
                id.0,
                mailbox.to_header().as_bytes(),
            ),
            address_hash: found.hash,
            dropped_event: found.is_suppressed.then(|| self.ids.next_at(created_at)),
            is_open: found.is_open,
        });
        NewMessage {
            id,
            organization_id,
            provider_account_id: route.account_id,
            routing_rule_id: route.rule_id,
            from_address: draft.from.address().as_str().to_owned(),
            from_mailbox: draft.from.to_header(),
            reply_to: draft.reply_to.as_ref().map(|mailbox| mailbox.to_header()),
            subject: draft.subject.into_string(),
            html: draft.html,
            text: draft.text,
            tags: draft.tags.into_iter().map(Tag::into_string).collect(),
            metadata: draft.metadata,
            version,
            unsubscribe_group_id: draft.unsubscribe_group_id,
            tracking: draft.tracking.or(snapshot.tracking),
            queued_event,
            created_at,
            recipients: recipients.collect(),
        }
    }
}

fn first(acceptance: Acceptance) -> Answered {
    Answered {
        acceptance,
        is_repeat: false,
    }
}

/// What became of an entry counts more than what its draft came to before.
fn settle_entry(
    result: &mut Result<Answered, AcceptRefusal>,
    decided: insert_batcher::EntryResult,
) {
    match decided {
        Ok((entry, written)) => {
            *result = Ok(first(entry.acceptance));
            settle(result, written);
        }
        Err(fault) => *result = Err(AcceptRefusal::Fault(fault)),
    }
}

/// What was found in Postgres counts more than what the request came to.
fn settle(result: &mut Result<Answered, AcceptRefusal>, written: InsertOutcome) {
    match written {
        InsertOutcome::Now => {}
        InsertOutcome::Before(decided) => {
            let again = |acceptance| Answered {
                acceptance,
                is_repeat: true,
            };
            *result = decided.map(again).map_err(AcceptRefusal::Before);
        }
        InsertOutcome::Refused(conflict) => *result = Err(AcceptRefusal::Key(conflict)),
    }
}

/// What routing is asked about a draft.
fn enquiry(draft: &Draft) -> RoutingRequest<'_> {
    RoutingRequest {
        sender_domain: draft.from.address().domain(),
        tags: draft.tags.iter().map(Tag::as_str).collect(),
    }
}

/// A recipient of a draft, looked up.
struct LookedUp {
    hash: AddressHash,
    is_suppressed: bool,
    is_open: bool,
}
