//! Acceptance: from a checked draft to the moment at which its 202 is true.
//!
//! Characters: the *draft* (checked), the *checker* (who is suppressed), the *route*
//! (which account), the *group* of concurrent requests that share one transaction,
//! the *dispatcher* that tells Redis afterwards. What is promised: a receipt means that message, recipients,
//! QUEUED event and outbox row are committed. What is not: that Redis heard of it;
//! the relay sees to that.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use tokio::sync::Semaphore;

use super::draft::Draft;
use super::keyed::{self, Entry, Kept, Written};
use super::rows::{NewMessage, NewRecipient};
use super::writer::{LANE_WAIT, Writer};
use crate::address::AddressHash;
use crate::clock::Clock;
use crate::crypto::seal::{Sealed, Sealer};
use crate::db::pulse::Pulse;
use crate::db::warm::WarmPool;
use crate::db::{self, PgPool};
use crate::fault::Fault;
use crate::group::{Group, GroupSettings, Rest};
use crate::idempotency::{Claim, KeyConflict, WAIT_MAX};
use crate::ids::{Ids, MessageId, OrganizationId};
use crate::provider::snapshots::Snapshots;
use crate::queue::dispatch::Dispatcher;
use crate::routing::{self, Enquiry, Route, RouteRefusal, RoutingSnapshot};
use crate::secret::Secret;
use crate::suppression::check::{Asked, Checker};
use crate::template::fill::Filled;
use crate::template::{TemplateRefusal, Templates};
use crate::text::Tag;
use crate::unsubscribe::known::KnownGroups;

/// Transactions that accept at the same time.
const LANES: usize = 3;
/// Requests with which another transaction begins beside one that is under way.
const CROWD: usize = 64;
/// Connections to Postgres that acceptance uses at the most.
pub const CONNECTIONS: u32 = 3;
/// Rows, roughly, that one transaction takes.
const GROUP_WEIGHT_MAX: usize = 4_000;
/// Requests that wait for a key which another one holds, at the same time: each has a
/// connection while it does.
const WAITS: usize = 3;
/// Requests that may wait for a transaction.
const WAITING_MAX: usize = 4_096;
/// Messages of one request that are rendered at the same time.
const FILLED_AT_ONCE: usize = 4;
/// Bytes that the templates of one request may render to, all messages together.
const FILLED_BYTES_MAX: usize = 64 << 20;

/// What the sender of an accepted message learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// The message's id.
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
    Suppressed {
        /// How many they are.
        suppressed_count: usize,
    },
}

/// What a draft is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// What became of it.
    pub acceptance: Acceptance,
    /// Whether that became of an earlier one with its key.
    pub is_repeat: bool,
}

/// Why a message was not accepted.
#[derive(Debug, Clone)]
pub enum Refusal {
    /// No account takes it.
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

impl From<TemplateRefusal> for Refusal {
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

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Accepts messages. Cheap to clone.
#[derive(Clone)]
pub struct Acceptor {
    templates: Templates,
    groups: KnownGroups,
    checker: Checker,
    snapshots: Snapshots,
    sealer: Sealer,
    ids: Ids,
    clock: Clock,
    group: Group<Arc<Entry>, Written>,
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
    pub groups: KnownGroups,
    /// Knows who is suppressed.
    pub checker: Checker,
    /// What routing knows.
    pub snapshots: Snapshots,
    /// Seals addresses.
    pub sealer: Sealer,
    /// Tells Redis.
    pub dispatcher: Dispatcher,
    /// Ids.
    pub ids: Ids,
    /// Time.
    pub clock: Clock,
    /// How long the relay leaves the push to the dispatcher.
    pub relay_grace: Duration,
}

/// Connections for acceptance: [`CONNECTIONS`] of them. They wait for nobody's lock
/// for long.
///
/// # Errors
/// A fault when the URL cannot be read.
pub fn pool(url: &Secret, pulse: &Pulse) -> Result<WarmPool, Fault> {
    let pool = db::impatient_pool(url, CONNECTIONS, LANE_WAIT, pulse)?;
    Ok(WarmPool::watched(pool, pulse.clone()))
}

impl Acceptor {
    /// Starts the lanes.
    #[must_use]
    pub fn start(parts: AcceptorParts) -> Self {
        let settings = GroupSettings {
            lanes: LANES,
            weight_max: GROUP_WEIGHT_MAX,
            crowd: CROWD,
            waiting_max: WAITING_MAX,
            rest: Rest::NONE,
        };
        let writer = Arc::new(Writer {
            pool: parts.pool,
            dispatcher: parts.dispatcher,
            relay_grace: parts.relay_grace,
        });
        Self {
            templates: parts.templates,
            groups: parts.groups,
            checker: parts.checker,
            snapshots: parts.snapshots,
            sealer: parts.sealer,
            ids: parts.ids,
            clock: parts.clock,
            group: Group::start(settings, move |entries| {
                let writer = Arc::clone(&writer);
                async move { writer.write(entries).await }
            }),
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
    ) -> Result<Answered, Refusal> {
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
    ) -> Result<Vec<Result<Answered, Refusal>>, Fault> {
        let groups = drafts.iter().filter_map(|draft| draft.unsubscribe_group_id);
        let unknown_groups = self
            .groups
            .missing(organization_id, groups.collect())
            .await?;
        let claims: Vec<Option<Claim>> = drafts.iter().map(|draft| draft.claim).collect();
        let recipients = self.look_up(organization_id, &drafts).await?;
        let snapshot = self.snapshot_for(organization_id, &drafts).await?;
        let mut results = Vec::with_capacity(drafts.len());
        let mut entries = Vec::with_capacity(drafts.len());
        let filled = self.fill(organization_id, drafts).await;
        let prepared = filled.into_iter().zip(recipients);
        for (place, (filled, recipients)) in prepared.enumerate() {
            let filled = match filled {
                Ok(filled) => filled,
                Err(refusal) => {
                    results.push(Err(refusal));
                    continue;
                }
            };
            let group = filled.draft.unsubscribe_group_id;
            if group.is_some_and(|group| unknown_groups.contains(&group)) {
                results.push(Err(Refusal::UnknownGroup));
                continue;
            }
            let suppressed_count = recipients.iter().filter(|found| found.suppressed).count();
            // Decided before routing: it does not matter which account would not
            // send it.
            if suppressed_count == recipients.len() {
                let acceptance = Acceptance::Suppressed { suppressed_count };
                entries.extend(entry(None, claims[place], acceptance).map(|new| (place, new)));
                results.push(Ok(acceptance));
                continue;
            }
            let route = routing::resolve(&snapshot, &enquiry(&filled.draft));
            results.push(route.map_err(Refusal::Route).map(|route| {
                let accepted_count = recipients.len() - suppressed_count;
                let message = self.compose(&snapshot, organization_id, route, filled, &recipients);
                let acceptance = Acceptance::Queued(Receipt {
                    message_id: message.id,
                    route,
                    accepted_count,
                    suppressed_count,
                });
                let new = entry(Some(message), claims[place], acceptance);
                entries.extend(new.map(|new| (place, new)));
                acceptance
            }));
            // Sealing a thousand addresses takes a millisecond: others may run.
            tokio::task::yield_now().await;
        }
        let results = results.into_iter().map(|result| result.map(first));
        let mut results: Vec<Result<Answered, Refusal>> = results.collect();
        let entries = entries.into_iter();
        let entries: Vec<_> = entries.map(|(place, new)| (place, Arc::new(new))).collect();
        let mut held = Vec::new();
        for (place, entry, written) in self.write(entries).await {
            match (written, claims[place]) {
                (Ok(Written::Refused(KeyConflict::StillRunning)), Some(claim)) => {
                    held.push((place, entry, claim));
                }
                (Ok(written), _) => settle(&mut results[place], written),
                (Err(fault), _) => results[place] = Err(Refusal::Fault(fault)),
            }
        }
        self.await_held(held, &mut results).await;
        self.reconsider(&claims, &mut results).await;
        Ok(results)
    }

    /// Hands entries to the lanes.
    async fn write(
        &self,
        entries: Vec<(usize, Arc<Entry>)>,
    ) -> Vec<(usize, Arc<Entry>, Result<Written, Fault>)> {
        let written = entries.into_iter().map(async |(place, entry)| {
            let weight = entry.weight();
            let written = self.group.run(Arc::clone(&entry), weight).await;
            (place, entry, written)
        });
        join_all(written).await
    }

    /// Waits, outside of the lanes, for requests that hold the keys of these entries:
    /// what they were answered holds, and where they were not served, the entries are
    /// written after all.
    async fn await_held(
        &self,
        held: Vec<(usize, Arc<Entry>, Claim)>,
        results: &mut [Result<Answered, Refusal>],
    ) {
        if held.is_empty() {
            return;
        }
        let claims: Vec<Claim> = held.iter().map(|(_, _, claim)| *claim).collect();
        let found = match tokio::time::timeout(WAIT_MAX, self.waits.acquire()).await {
            Ok(Ok(_permit)) => {
                let looking = keyed::find_earlier(&self.reader, &claims);
                db::bounded("wait for keys", looking).await
            }
            Ok(Err(_)) | Err(_) => {
                let running = Written::Refused(KeyConflict::StillRunning);
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
                    results[place] = Err(Refusal::Fault(fault.clone()));
                }
            }
        }
        for (place, _, written) in self.write(free).await {
            match written {
                Ok(written) => settle(&mut results[place], written),
                Err(fault) => results[place] = Err(Refusal::Fault(fault)),
            }
        }
    }

    /// Keeps that parts of a batch are refused, in these words, so that no other run
    /// of the batch accepts them; `results` become what holds for them.
    ///
    /// # Errors
    /// A fault when Postgres is away.
    pub async fn keep_refusals(
        &self,
        parts: Vec<(Claim, String)>,
        results: Vec<&mut Result<Answered, Refusal>>,
    ) -> Result<(), Fault> {
        let decided = keyed::refuse(&self.reader, parts).await?;
        for (result, written) in results.into_iter().zip(decided) {
            settle(result, written);
        }
        Ok(())
    }

    /// What is refused now may have been accepted before, with the same key: then
    /// that is the answer.
    async fn reconsider(
        &self,
        claims: &[Option<Claim>],
        results: &mut [Result<Answered, Refusal>],
    ) {
        let refused = claims.iter().zip(&*results).enumerate();
        let refused = refused.filter_map(|(place, (claim, result))| match result {
            Err(Refusal::Route(_) | Refusal::Template(_) | Refusal::UnknownGroup) => {
                Some((place, (*claim)?))
            }
            Err(Refusal::Before(_) | Refusal::Key(_) | Refusal::Fault(_)) | Ok(_) => None,
        });
        let (places, claims): (Vec<usize>, Vec<Claim>) = refused.unzip();
        if claims.is_empty() {
            return;
        }
        let looking = keyed::find_earlier(&self.reader, &claims);
        match db::bounded("look for keys", looking).await {
            Ok(found) => {
                for (place, written) in places.into_iter().zip(found) {
                    settle(&mut results[place], written.unwrap_or(Written::Now));
                }
            }
            // Whether it was accepted before is not known, so it is not refused.
            Err(fault) => {
                for place in places {
                    results[place] = Err(Refusal::Fault(fault.clone()));
                }
            }
        }
    }

    /// Renders the drafts that name a template; one result for each draft, in
    /// their order.
    async fn fill(
        &self,
        organization_id: OrganizationId,
        drafts: Vec<Draft>,
    ) -> Vec<Result<Filled, Refusal>> {
        let deadline = Templates::deadline();
        let mut filling = stream::iter(drafts)
            .map(|draft| self.templates.fill(organization_id, draft, deadline))
            .buffered(FILLED_AT_ONCE);
        let mut results = Vec::new();
        let mut bytes = 0;
        while let Some(filled) = filling.next().await {
            // What is rendered on the spot waits for nothing: others may run.
            if !results.is_empty() {
                tokio::task::yield_now().await;
            }
            let filled = filled.map_err(Refusal::from);
            results.push(filled.and_then(|filled| {
                bytes += filled.rendered_bytes();
                if bytes > FILLED_BYTES_MAX {
                    let problem = format!(
                        "and those before it in the batch render to more than {FILLED_BYTES_MAX} bytes"
                    );
                    return Err(Refusal::Template(TemplateRefusal::Unrenderable(problem)));
                }
                Ok(filled)
            }));
        }
        results
    }

    /// Asks for the recipients of all drafts at once; one list for each draft.
    async fn look_up(
        &self,
        organization_id: OrganizationId,
        drafts: &[Draft],
    ) -> Result<Vec<Vec<LookedUp>>, Fault> {
        let asked = drafts.iter().flat_map(|draft| {
            draft.to.iter().map(|mailbox| Asked {
                hash: mailbox.address().hash(),
                unsubscribe_group_id: draft.unsubscribe_group_id,
            })
        });
        let asked: Vec<Asked> = asked.collect();
        let suppressed = self.checker.check(organization_id, &asked).await?;
        let mut found = asked
            .iter()
            .zip(suppressed)
            .map(|(asked, suppressed)| LookedUp {
                hash: asked.hash,
                suppressed,
            });
        let lists = drafts
            .iter()
            .map(|draft| found.by_ref().take(draft.to.len()).collect());
        Ok(lists.collect())
    }

    /// What routing knows. Where that would refuse one of the drafts it is read
    /// anew, once, so that an account connected a moment ago in another process
    /// counts.
    async fn snapshot_for(
        &self,
        organization_id: OrganizationId,
        drafts: &[Draft],
    ) -> Result<Arc<RoutingSnapshot>, Fault> {
        let remembered = self.snapshots.get(organization_id).await?;
        let refused = drafts
            .iter()
            .any(|draft| routing::resolve(&remembered, &enquiry(draft)).is_err());
        if refused {
            self.snapshots.reload(organization_id).await
        } else {
            Ok(remembered)
        }
    }

    fn compose(
        &self,
        snapshot: &RoutingSnapshot,
        organization_id: OrganizationId,
        route: Route,
        filled: Filled,
        recipients: &[LookedUp],
    ) -> NewMessage {
        let Filled { draft, version } = filled;
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
            dropped_event: found.suppressed.then(|| self.ids.next_at(created_at)),
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

/// What is to be written for a draft, if anything.
fn entry(
    message: Option<NewMessage>,
    claim: Option<Claim>,
    acceptance: Acceptance,
) -> Option<Entry> {
    let kept = claim.map(|claim| Kept { claim, acceptance });
    let is_empty = message.is_none() && kept.is_none();
    (!is_empty).then_some(Entry { message, kept })
}

fn first(acceptance: Acceptance) -> Answered {
    Answered {
        acceptance,
        is_repeat: false,
    }
}

/// What was found in Postgres counts more than what the request came to.
fn settle(result: &mut Result<Answered, Refusal>, written: Written) {
    match written {
        Written::Now => {}
        Written::Before(decided) => {
            let again = |acceptance| Answered {
                acceptance,
                is_repeat: true,
            };
            *result = decided.map(again).map_err(Refusal::Before);
        }
        Written::Refused(conflict) => *result = Err(Refusal::Key(conflict)),
    }
}

/// What routing is asked about a draft.
fn enquiry(draft: &Draft) -> Enquiry<'_> {
    Enquiry {
        sender_domain: draft.from.address().domain(),
        tags: draft.tags.iter().map(Tag::as_str).collect(),
    }
}

/// A recipient of a draft, looked up.
struct LookedUp {
    hash: AddressHash,
    suppressed: bool,
}
