//! Acceptance: from a checked draft to the moment at which its 202 is true.
//!
//! [`Acceptor::accept_all`] checks the recipients against the suppressions, renders the
//! drafts, resolves the account of each ([`crate::routing`]) and inserts them. Concurrent
//! requests share the transaction of the INSERT (`insert_batcher`, `writer`, `insert`).
//! Afterwards the dispatcher tells Redis about the jobs.
//!
//! What a receipt promises: message, recipients, QUEUED event and outbox row are committed.
//! It does not promise that Redis knows of the job; the relay pushes what Redis misses.

pub mod attachment_names;
mod carrying;
mod content_ids;
pub mod draft;
pub mod headers;
mod idempotency;
mod insert;
mod insert_batcher;
mod own_content;
mod recipient_check;
mod render_draft;
mod repeats;
mod result;
pub mod retry;
mod writer;

use std::collections::{HashMap, HashSet};
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use tokio::sync::Semaphore;

use crate::address::Mailbox;
use crate::attachment::Attachments;
use crate::clock::{Clock, Timestamp};
use crate::crypto::seal::{Sealed, Sealer};
use crate::db::lifo_pool::LifoPool;
use crate::db::liveness::Liveness;
use crate::db::{self, PgPool};
use crate::delivery::dispatch::Dispatcher;
use crate::fault::Fault;
use crate::idempotency::{KeyClaim, KeyConflict};
use crate::ids::{Ids, MessageId, OrganizationId, UnsubscribeGroupId};
use crate::issue::Issue;
use crate::message::RecipientKind;
use crate::routing::mailbox_provider::cache::MailboxProviders;
use crate::routing::snapshot_cache::SnapshotCache;
use crate::routing::targets::Draw;
use crate::routing::{self, Route, RoutingRequest, RoutingSnapshot, pinned};
use crate::secret::Secret;
use crate::suppression::check::Checker;
use crate::telemetry::{instruments, traces};
use crate::template::Templates;
use crate::text::{Subject, Tag};
use crate::unsubscribe::group_cache::GroupCache;
use draft::{DeliveryMode, Draft};
use idempotency::{InsertEntry, InsertOutcome};
use insert::{NewMessage, NewRecipient};
use insert_batcher::InsertBatcher;
use recipient_check::RecipientCheck;
use render_draft::{PickedVersion, RenderedDraft, pick_senders, render_draft};
use repeats::{PendingEntry, apply_entry};
pub use result::{AcceptRefusal, Acceptance, Answered, Receipt};
use writer::{InsertWriter, LOCK_WAIT};

/// Connections to Postgres that acceptance uses.
pub const CONNECTIONS: u32 = insert_batcher::CONNECTIONS;
/// Requests that wait for a key of another request at the same time. Each has a connection
/// while it waits.
const KEY_WAITS_MAX: usize = 3;
/// Messages of one request that are rendered at the same time.
const RENDERED_AT_ONCE: usize = 4;
/// Rendered bytes of one request that are held, roughly: beyond it, the messages rendered so
/// far are inserted first.
const RENDERED_BYTES_MAX: usize = 64 << 20;

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
    batcher: InsertBatcher,
    reader: PgPool,
    attachments: Attachments,
    key_waits: Arc<Semaphore>,
}

/// The parts of an [`Acceptor`].
#[derive(Clone)]
pub struct AcceptorParts {
    /// Connections for acceptance alone ([`pool`]), so that no send waits for other
    /// statements.
    pub pool: LifoPool,
    /// Connections for the rare statements: earlier requests with a key.
    pub reader: PgPool,
    pub attachments: Attachments,
    pub templates: Templates,
    pub groups: GroupCache,
    pub checker: Checker,
    pub snapshots: SnapshotCache,
    pub sealer: Sealer,
    pub dispatcher: Dispatcher,
    pub ids: Ids,
    pub clock: Clock,
    /// How long the relay waits for the dispatcher's push of a job.
    pub relay_grace: Duration,
}

/// The [`CONNECTIONS`] of acceptance. Their statements wait for a lock at most half a
/// second.
///
/// # Errors
/// A fault when the URL cannot be read.
pub fn pool(url: &Secret, liveness: &Liveness) -> Result<LifoPool, Fault> {
    let pool = db::lock_timeout_pool(url, CONNECTIONS, LOCK_WAIT, liveness)?;
    Ok(LifoPool::watched(pool, liveness.clone()))
}

impl Acceptor {
    /// Starts the batcher.
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
            batcher: InsertBatcher::start(writer, parts.ids.clone()),
            ids: parts.ids,
            clock: parts.clock,
            reader: parts.reader,
            attachments: parts.attachments,
            key_waits: Arc::new(Semaphore::new(KEY_WAITS_MAX)),
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
        // Boxed: it is large, and every layer of the server would move it.
        let accepting = Box::pin(self.accept_all(organization_id, vec![draft]));
        let mut results = accepting.await?;
        results.pop().expect("one draft gives one result")
    }

    /// Stores the files of drafts. Answers why drafts are refused for their files, by index.
    async fn store_attachments(
        &self,
        organization_id: OrganizationId,
        drafts: &mut [Draft],
    ) -> HashMap<usize, AcceptRefusal> {
        let with_files = drafts.iter_mut().enumerate();
        let with_files = with_files.filter(|(_, draft)| !draft.files.is_empty());
        let (indexes, files): (Vec<usize>, Vec<_>) = with_files
            .map(|(index, draft)| (index, mem::take(&mut draft.files)))
            .unzip();
        let mut refused = HashMap::new();
        if files.is_empty() {
            return refused;
        }
        let now = self.clock.now();
        let storing = self.attachments.accept_all(organization_id, now, files);
        // Boxed: every request would carry it.
        for (index, stored) in indexes.into_iter().zip(Box::pin(storing).await) {
            match stored {
                Ok(stored) => drafts[index].attachments = stored,
                Err(refusal) => {
                    refused.insert(index, refusal.into());
                }
            }
        }
        refused
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
        let alone = Refusing::One;
        self.accept_drafts(organization_id, drafts, alone).await
    }

    /// Accepts messages of one request: if one of them is refused, none is accepted now, and
    /// only the refusals among the results count. A fault may come after some were accepted.
    /// `suppressed` is what becomes of a message whose recipients are all suppressed.
    ///
    /// # Errors
    /// A fault that concerns them all.
    pub async fn accept_together(
        &self,
        organization_id: OrganizationId,
        drafts: Vec<Draft>,
        suppressed: IfSuppressed,
    ) -> Result<Vec<Result<Answered, AcceptRefusal>>, Fault> {
        let together = Refusing::All(suppressed);
        self.accept_drafts(organization_id, drafts, together).await
    }

    async fn accept_drafts(
        &self,
        organization_id: OrganizationId,
        mut drafts: Vec<Draft>,
        refusing: Refusing,
    ) -> Result<Vec<Result<Answered, AcceptRefusal>>, Fault> {
        let began = Instant::now();
        let claims: Vec<Option<KeyClaim>> = drafts.iter().map(|draft| draft.claim).collect();
        let groups = drafts.iter().filter_map(|draft| draft.unsubscribe_group_id);
        let groups = self.groups.missing(organization_id, groups.collect());
        let unknown_groups = groups.await?;
        let refused_files = self.store_attachments(organization_id, &mut drafts).await;
        let picked = pick_senders(&self.templates, organization_id, &mut drafts).await;
        let (snapshot, is_routed) = self.snapshot_for(organization_id, &drafts).await?;
        // The INSERT itself would find suppressed recipients when it is too late to refuse.
        let may_be_left = is_routed && refusing != Refusing::All(IfSuppressed::Refuse);
        let checks = self
            .check_recipients(organization_id, &drafts, may_be_left)
            .await?;
        let context = RequestContext {
            organization_id,
            snapshot,
            unknown_groups,
            refused_files,
            claims,
            refusing,
        };
        let drafts = drafts.into_iter().zip(picked).collect();
        let (mut results, pending) = self.render_and_insert(&context, drafts, checks).await;
        self.await_pending(pending, &mut results).await;
        self.answer_refused_repeats(&context.claims, &mut results)
            .await;
        let is_refused = refusing.is_of_all() && results.iter().any(Result::is_err);
        let accepted = results.iter().flatten();
        let accepted = accepted.filter(|answered| !is_refused && answered.is_new_message());
        let accepted = accepted.count();
        instruments::accepted(accepted, began.elapsed());
        Ok(results)
    }

    /// Renders drafts and inserts what follows from each. Answers the results, and the
    /// entries whose keys another request holds.
    async fn render_and_insert(
        &self,
        context: &RequestContext,
        drafts: Vec<(Draft, Option<PickedVersion>)>,
        checks: Vec<Vec<RecipientCheck>>,
    ) -> (Vec<Result<Answered, AcceptRefusal>>, Vec<PendingEntry>) {
        let mut results = Vec::with_capacity(drafts.len());
        let (mut entries, mut pending) = (Vec::with_capacity(drafts.len()), Vec::new());
        let deadline = Templates::deadline();
        let render = |(draft, picked)| {
            let organization_id = context.organization_id;
            render_draft(&self.templates, organization_id, draft, picked, deadline)
        };
        let rendering = stream::iter(drafts).map(render).buffered(RENDERED_AT_ONCE);
        let mut rendering = pin!(rendering.zip(stream::iter(checks)).enumerate());
        let mut bytes = 0;
        while let Some((index, (rendered, checks))) = rendering.next().await {
            bytes += rendered.as_ref().map_or(0, RenderedDraft::rendered_bytes);
            let entry = rendered
                .map_err(AcceptRefusal::from)
                .and_then(|rendered| self.entry(context, index, rendered, &checks));
            results.push(entry.map(|entry| {
                let answered = Answered::now(entry.acceptance);
                entries.extend((!entry.is_empty()).then_some((index, entry)));
                answered
            }));
            if bytes > RENDERED_BYTES_MAX && context.refusing.is_of_all() {
                results[index] = Err(too_large_together());
                entries.clear();
                bytes = 0;
            }
            if bytes > RENDERED_BYTES_MAX {
                // Rare, and boxed: every request would carry it.
                let entries = mem::take(&mut entries);
                let inserting = Box::pin(self.insert(context, entries, &mut results));
                pending.extend(inserting.await);
                bytes = 0;
            }
            // Sealing a thousand addresses takes a millisecond: other tasks may run.
            tokio::task::yield_now().await;
        }
        if context.refusing.is_of_all() {
            self.answer_refused_repeats(&context.claims, &mut results)
                .await;
            if results.iter().any(Result::is_err) {
                entries.clear();
            }
        }
        pending.extend(self.insert(context, entries, &mut results).await);
        (results, pending)
    }

    /// What is to be inserted for a draft.
    fn entry(
        &self,
        context: &RequestContext,
        index: usize,
        rendered: RenderedDraft,
        checks: &[RecipientCheck],
    ) -> Result<Box<InsertEntry>, AcceptRefusal> {
        let group = rendered.draft.unsubscribe_group_id;
        if group.is_some_and(|group| context.unknown_groups.contains(&group)) {
            return Err(AcceptRefusal::UnknownGroup);
        }
        if let Some(refusal) = context.refused_files.get(&index) {
            return Err(refusal.clone());
        }
        content_ids::check(&rendered)?;
        let Draft {
            scheduled_at,
            expires_at,
            ..
        } = rendered.draft;
        let past = draft::past_times(scheduled_at, expires_at, self.clock.now());
        if !past.is_empty() {
            return Err(AcceptRefusal::Invalid(past));
        }
        let claim = context.claims[index];
        let suppressed = checks.iter().filter(|check| check.is_suppressed);
        let suppressed_count = suppressed.count();
        // Before routing: no account has to send it. A mail needs a recipient in To.
        let mut recipients = rendered.draft.to.iter().zip(checks);
        if !recipients.any(|(to, check)| to.kind == RecipientKind::To && !check.is_suppressed) {
            if context.refusing == Refusing::All(IfSuppressed::Refuse) {
                return Err(AcceptRefusal::Suppressed);
            }
            return Ok(Box::new(InsertEntry {
                message: None,
                claim,
                acceptance: Acceptance::Suppressed { suppressed_count },
            }));
        }
        let created_at = self.clock.now();
        let id: MessageId = self.ids.next_at(created_at);
        // A scheduled message is routed again when it goes, and by the same draw.
        let draw = match scheduled_at {
            Some(_) => Draw::of_message(id),
            None => self.snapshots.next_draw(),
        };
        let snapshot = &context.snapshot;
        let size_bytes = size(&rendered.draft, Some(&rendered.subject));
        let (from, draft) = (&rendered.from, &rendered.draft);
        let providers = self.snapshots.mailbox_providers();
        let route = resolve_route((snapshot, providers), from, draft, size_bytes, draw)?;
        carrying::check(&route, &rendered)?;
        let identity = (id, created_at);
        let message = self.new_message(context, identity, route, rendered, checks);
        let acceptance = Acceptance::Queued(Receipt {
            message_id: message.id,
            route,
            accepted_count: checks.len() - suppressed_count,
            suppressed_count,
        });
        Ok(Box::new(InsertEntry {
            message: Some(message),
            claim,
            acceptance,
        }))
    }

    fn new_message(
        &self,
        context: &RequestContext,
        (id, created_at): (MessageId, Timestamp),
        route: Route,
        rendered: RenderedDraft,
        checks: &[RecipientCheck],
    ) -> NewMessage {
        let RenderedDraft {
            draft,
            from,
            subject,
            reply_to,
            version,
            own,
            ..
        } = rendered;
        let organization_id = context.organization_id;
        let mut own = own.into_iter().peekable();
        let recipients = draft.to.into_iter().zip(checks).enumerate();
        let recipients = recipients.map(|(position, (recipient, check))| NewRecipient {
            address_sealed: self.sealer.seal(
                organization_id,
                Sealed::Recipient,
                id.0,
                recipient.mailbox.to_header().as_bytes(),
            ),
            kind: recipient.kind,
            own: own.next_if(|own| own.position == position),
            metadata: recipient.metadata,
            domain: recipient.mailbox.address().domain().to_ascii_lowercase(),
            address_hash: check.hash,
            dropped_event: check.is_suppressed.then(|| self.ids.next_at(created_at)),
            is_unchecked: check.is_left_to_insert,
        });
        NewMessage {
            id,
            organization_id,
            provider_account_id: route.account_id,
            routing_rule_id: route.rule_id,
            from_address: from.address().as_str().to_owned(),
            from_mailbox: from.to_header(),
            reply_to: mailbox_list(&reply_to),
            subject: subject.into_string(),
            html: draft.html,
            text: draft.text,
            tags: draft.tags.into_iter().map(Tag::into_string).collect(),
            metadata: draft.metadata,
            version,
            unsubscribe_group_id: draft.unsubscribe_group_id,
            tracking: draft.tracking.or(context.snapshot.tracking),
            headers: draft.headers,
            attachments: draft.attachments,
            scheduled_at: draft.scheduled_at,
            expires_at: draft.expires_at,
            is_shared: draft.delivery == DeliveryMode::Shared,
            class: draft.class,
            is_account_pinned: draft.provider_account_id.is_some(),
            test_outcome: draft.test_outcome,
            trace: traces::current(),
            created_at,
            recipients: recipients.collect(),
        }
    }

    /// Inserts entries. Answers those whose keys another request holds.
    async fn insert(
        &self,
        context: &RequestContext,
        entries: Vec<(usize, Box<InsertEntry>)>,
        results: &mut [Result<Answered, AcceptRefusal>],
    ) -> Vec<PendingEntry> {
        let mut pending = Vec::new();
        for (index, result) in self.batcher.insert_all(entries).await {
            match (result, context.claims[index]) {
                (Ok((entry, InsertOutcome::Conflict(KeyConflict::StillRunning))), Some(claim)) => {
                    pending.push(PendingEntry {
                        index,
                        entry,
                        claim,
                    });
                }
                (result, _) => apply_entry(&mut results[index], result),
            }
        }
        pending
    }

    /// The routing snapshot, and whether it has an account for each of the drafts. If it
    /// has none, it is read again, once: another process may have connected one a moment
    /// ago.
    async fn snapshot_for(
        &self,
        organization_id: OrganizationId,
        drafts: &[Draft],
    ) -> Result<(Arc<RoutingSnapshot>, bool), Fault> {
        let cached = self.snapshots.get(organization_id).await?;
        // Where the sender or the size is not known yet, a fresh snapshot is read too.
        let looks_at_size = cached.looks_at_size();
        let routes = |draft: &Draft| {
            if looks_at_size && draft.template.is_some() {
                return false;
            }
            let from = draft.from.as_ref();
            from.is_some_and(|from| {
                let cached = (&*cached, self.snapshots.mailbox_providers());
                resolve_route(cached, from, draft, size(draft, None), Draw::First).is_ok()
            })
        };
        if drafts.iter().all(routes) {
            return Ok((cached, true));
        }
        let reloaded = self.snapshots.reload(organization_id).await?;
        Ok((reloaded, false))
    }
}

/// What the drafts of one request share.
struct RequestContext {
    organization_id: OrganizationId,
    snapshot: Arc<RoutingSnapshot>,
    unknown_groups: HashSet<UnsubscribeGroupId>,
    /// Why drafts are refused for their files, by the index of the draft.
    refused_files: HashMap<usize, AcceptRefusal>,
    /// By the index of the draft.
    claims: Vec<Option<KeyClaim>>,
    refusing: Refusing,
}

/// What a refusal of one draft of a request refuses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Refusing {
    /// This draft.
    One,
    /// All drafts of the request.
    All(IfSuppressed),
}

impl Refusing {
    fn is_of_all(self) -> bool {
        match self {
            Self::One => false,
            Self::All(_) => true,
        }
    }
}

/// What becomes of a message whose recipients are all suppressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfSuppressed {
    /// Nothing is stored or sent, and its result says so.
    Drop,
    /// It is refused, because its sender expects an id.
    Refuse,
}

fn too_large_together() -> AcceptRefusal {
    let max = RENDERED_BYTES_MAX;
    let rule = format!("must not be larger than {max} bytes, with the messages before it");
    AcceptRefusal::Invalid(vec![Issue::new("", rule)])
}

/// Mailboxes as a header has them; `None` for none.
fn mailbox_list(mailboxes: &[Mailbox]) -> Option<String> {
    let texts: Vec<String> = mailboxes.iter().map(Mailbox::to_header).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// The size of a draft that routing rules look at: subject, bodies and decoded files. What
/// single recipients have instead does not count.
fn size(draft: &Draft, subject: Option<&Subject>) -> u64 {
    let subject = subject.or(draft.subject.as_ref());
    let bodies = [&draft.html, &draft.text];
    let texts = bodies.into_iter().flatten().map(String::len);
    let texts = texts.chain(subject.map(|subject| subject.as_str().len()));
    let texts = u64::try_from(texts.sum::<usize>()).unwrap_or(u64::MAX);
    draft
        .attachments
        .iter()
        .fold(texts, |sum, file| sum.saturating_add(file.size))
}

/// The account of a draft: the one that it names, or that of the rules.
fn resolve_route(
    (snapshot, providers): (&RoutingSnapshot, &MailboxProviders),
    from: &Mailbox,
    draft: &Draft,
    size_bytes: u64,
    draw: Draw<'_>,
) -> Result<Route, AcceptRefusal> {
    let domain = |index: usize| Some(draft.to.get(index)?.mailbox.address().domain());
    let request = RoutingRequest {
        sender: from.address(),
        tags: draft.tags.iter().map(Tag::as_str).collect(),
        recipients: Some(&domain),
        mailbox_providers: &|domain| providers.find(domain),
        class: Some(draft.class),
        size_bytes: Some(size_bytes),
        is_test: draft.test_outcome.is_some(),
        draw,
    };
    match draft.provider_account_id {
        Some(id) => pinned::resolve(snapshot, id, &request).map_err(AcceptRefusal::Pinned),
        None => routing::resolve(snapshot, &request).map_err(AcceptRefusal::Route),
    }
}
