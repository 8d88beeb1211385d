//! The recorder's transactions: one for all queued requests, with one statement for each
//! step.

use std::collections::{BTreeMap, HashSet};

use sha2::{Digest, Sha256};
use tracing::error;

use super::apply::apply_events;
use super::recipients::store as recipients_store;
use super::recipients::{Addressee, FoundRecipient, MatchKey, NamedRecipient, RecipientKey};
use super::source::store as source_store;
use super::store::{self, EventHash, NewProviderEvent};
use super::trace::{self, TracedEvent};
use super::{DOING, EventSource, RecordCounts, Request};
use crate::address::EmailAddress;
use crate::clock::Timestamp;
use crate::crypto::seal::{Sealed, Sealer};
use crate::db::{self, OrFault, PgConnection};
use crate::fault::{Fault, FaultKind};
use crate::ids::{MessageId, OrganizationId, ProviderAccountId};
use crate::message::simulated_outcome::is_simulated_id;
use crate::provider::event::{BounceType, ProviderEvent, ProviderEventKind};
use crate::suppression::Suppressions;
use crate::suppression::feedback::{ReportedAddress, ReportedReason, ReportedSuppression};
use crate::telemetry::{instruments, traces};
use source_store::{Unrecorded, UsedSignature};

/// How often a transaction is tried if Postgres aborts it in a deadlock.
const TRIES_MAX: u32 = 3;

pub(super) struct EventWriter {
    pub(super) suppressions: Suppressions,
    pub(super) sealer: Sealer,
}

/// Events of one request that are recorded together.
#[derive(Clone, Copy)]
struct Part<'a> {
    request: &'a Request,
    events: &'a [ProviderEvent],
    unreadable: usize,
}

/// An event and the recipient that it is about.
pub(super) struct MatchedEvent<'a> {
    request: &'a Request,
    pub(super) event: &'a ProviderEvent,
    pub(super) recipient: FoundRecipient,
    /// The recipient's address, if the event may suppress it.
    addressee: Option<Addressee>,
    /// The index of the part that contains the event.
    part_index: usize,
    hash: EventHash,
    raw_sealed: Vec<u8>,
}

impl MatchedEvent<'_> {
    /// The account that reported the event.
    pub(super) fn source(&self) -> &EventSource {
        &self.request.source
    }

    pub(super) fn organization_id(&self) -> OrganizationId {
        self.request.source.organization_id
    }

    /// The key that recognizes an event that is sent again.
    fn key(&self) -> (MessageId, ProviderAccountId, EventHash) {
        (self.recipient.key.0, self.recipient.account_id, self.hash)
    }
}

impl EventWriter {
    /// Records requests together. The result of a request whose signature was used before
    /// with other content is `None`.
    pub(super) async fn write(
        &self,
        requests: Vec<Request>,
    ) -> Vec<Result<Option<RecordCounts>, Fault>> {
        let parts: Vec<Part<'_>> = requests.iter().map(whole_request).collect();
        match self.write_parts(&parts).await {
            Ok(counts) => counts.into_iter().map(Ok).collect(),
            Err(fault) if fault.kind() == FaultKind::Internal => {
                // Postgres refused the content of one request: record the requests one by
                // one.
                let mut results = Vec::with_capacity(requests.len());
                for request in &requests {
                    results.push(self.write_alone(request).await);
                }
                results
            }
            Err(fault) => requests.iter().map(|_| Err(fault.clone())).collect(),
        }
    }

    async fn write_alone(&self, request: &Request) -> Result<Option<RecordCounts>, Fault> {
        match self.write_parts(&[whole_request(request)]).await {
            Ok(mut counts) => Ok(counts.pop().flatten()),
            Err(fault) if db::is_refused(&fault) => self.bisect(request).await,
            Err(fault) => Err(fault),
        }
    }

    /// Records the events that Postgres accepts and counts the others as unreadable:
    /// otherwise the provider would repeat the same request for hours. Finds the refused
    /// events by bisection.
    async fn bisect(&self, request: &Request) -> Result<Option<RecordCounts>, Fault> {
        let mut counts = RecordCounts::default();
        let mut refused = 0;
        let mut pending = vec![request.batch.events.as_slice()];
        while let Some(events) = pending.pop() {
            let part = Part {
                request,
                events,
                unreadable: 0,
            };
            match self.write_parts(&[part]).await {
                Ok(mut recorded) => match recorded.pop().flatten() {
                    Some(part) => counts.add(part),
                    None => return Ok(None),
                },
                Err(fault) if !db::is_refused(&fault) => return Err(fault),
                Err(_) if events.len() > 1 => {
                    let (first, second) = events.split_at(events.len() / 2);
                    pending.extend([second, first]);
                }
                Err(fault) => {
                    refused += events.len();
                    let account_id = request.source.account_id;
                    error!(
                        account.id = %account_id,
                        cause = fault.chain(),
                        "Account {account_id} reported an event that Postgres refuses"
                    );
                }
            }
        }
        let rest = Part {
            request,
            events: &[],
            unreadable: request.batch.unreadable + refused,
        };
        Ok(self
            .write_parts(&[rest])
            .await?
            .pop()
            .flatten()
            .map(|_| counts))
    }

    /// Commits parts together and returns the counts of each part, in order.
    async fn write_parts(&self, parts: &[Part<'_>]) -> Result<Vec<Option<RecordCounts>>, Fault> {
        let recording = async {
            let matched = self.match_events(parts).await?;
            let candidates = reported_suppressions(&matched).into_iter();
            let candidates: Vec<_> = candidates
                .map(|reported| (reported.organization_id, reported.address.email_hash))
                .collect();
            self.suppressions.announce_feedback(&candidates).await?;
            let write = || self.transact(parts, &matched);
            db::retry_deadlocks(TRIES_MAX, write, db::is_deadlock).await
        };
        db::bounded(DOING, recording).await
    }

    /// Finds the recipients of events. Events without a recipient are left out.
    async fn match_events<'a>(&self, parts: &[Part<'a>]) -> Result<Vec<MatchedEvent<'a>>, Fault> {
        let events = parts
            .iter()
            .enumerate()
            .flat_map(|(nth, part)| part.events.iter().map(move |event| (nth, *part, event)));
        let events: Vec<(usize, Part<'a>, &'a ProviderEvent)> = events.collect();
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let mut recipients = vec![None; events.len()];
        let (mut named, mut named_at, mut match_keys) = (Vec::new(), Vec::new(), Vec::new());
        for (nth, (_, part, event)) in events.iter().enumerate() {
            let source = &part.request.source;
            match (event.ids, &event.provider_message_id) {
                (Some(ids), _) => {
                    named.push(NamedRecipient {
                        organization_id: source.organization_id,
                        ids,
                        address_hash: event.recipient.as_ref().map(EmailAddress::hash),
                    });
                    named_at.push(nth);
                }
                // The id of a test. No provider gave it.
                (None, Some(id)) if is_simulated_id(id) => {}
                (None, Some(provider_message_id)) => match_keys.push(MatchKey {
                    event_index: nth,
                    organization_id: source.organization_id,
                    account_id: source.account_id,
                    provider_message_id: provider_message_id.clone(),
                    address_hash: event.recipient.as_ref().map(EmailAddress::hash),
                }),
                (None, None) => {}
            }
        }
        let mut connection = self.suppressions.pool.acquire().await.or_fault(DOING)?;
        let found = recipients_store::find_by_ids(&mut connection, &named).await?;
        for (nth, recipient) in named_at.into_iter().zip(found) {
            recipients[nth] = recipient;
        }
        for (nth, recipient) in
            recipients_store::find_by_provider_message_id(&mut connection, &match_keys).await?
        {
            recipients[nth] = Some(recipient);
        }
        let matched = events.into_iter().zip(recipients).filter_map(
            |((part_index, part, event), recipient)| {
                Some(self.matched_event(part_index, part, event, recipient?))
            },
        );
        let mut matched: Vec<MatchedEvent<'a>> = matched.collect();
        let candidates = matched
            .iter()
            .filter(|matched| may_suppress(matched.event.kind) && !matched.source().is_test);
        let candidates: Vec<(RecipientKey, OrganizationId)> = candidates
            .map(|matched| (matched.recipient.key, matched.organization_id()))
            .collect();
        let addressees = recipients_store::find_addressees(&mut connection, &candidates).await?;
        for matched in &mut matched {
            matched.addressee = addressees.get(&matched.recipient.key).copied();
        }
        Ok(matched)
    }

    fn matched_event<'a>(
        &self,
        part_index: usize,
        part: Part<'a>,
        event: &'a ProviderEvent,
        recipient: FoundRecipient,
    ) -> MatchedEvent<'a> {
        let source = &part.request.source;
        let (kind, row) = (Sealed::ProviderEvent, recipient.key.0.0);
        MatchedEvent {
            request: part.request,
            event,
            recipient,
            addressee: None,
            part_index,
            hash: event_hash(&event.id),
            raw_sealed: self
                .sealer
                .seal(source.organization_id, kind, row, &event.raw),
        }
    }

    async fn transact(
        &self,
        parts: &[Part<'_>],
        matched: &[MatchedEvent<'_>],
    ) -> Result<Vec<Option<RecordCounts>>, Fault> {
        let now = self.suppressions.clock.now();
        let mut transaction = db::begin(&self.suppressions.pool, DOING).await?;
        let is_genuine = use_signatures(&mut transaction, parts, now).await?;
        let genuine = matched
            .iter()
            .filter(|matched| is_genuine[matched.part_index]);
        let genuine: Vec<&MatchedEvent<'_>> = genuine.collect();
        let new_events = insert_new(&mut transaction, &genuine, now).await?;
        let ids = &self.suppressions.ids;
        apply_events(&mut transaction, ids, &new_events, now).await?;
        let reported = reported_suppressions(new_events.iter().copied());
        let added = self
            .suppressions
            .add_feedback(&mut transaction, &reported)
            .await?;
        let counts = record_counts(parts, &is_genuine, &genuine, &new_events);
        count_unrecorded(&mut transaction, parts, &counts, now).await?;
        transaction.commit().await.or_fault(DOING)?;
        self.suppressions.confirm_feedback(&added).await;
        for matched in new_events.iter().filter(|one| !one.source().is_test) {
            let provider = matched.source().provider_type.as_str();
            instruments::provider_event(provider, matched.event.kind.as_str());
        }
        if traces::is_on() && !new_events.is_empty() {
            let traced = new_events.iter().copied().map(TracedEvent::of);
            trace::trace(self.suppressions.pool.clone(), traced.collect());
        }
        Ok(counts)
    }
}

/// All events of a request.
fn whole_request(request: &Request) -> Part<'_> {
    Part {
        request,
        events: &request.batch.events,
        unreadable: request.batch.unreadable,
    }
}

/// Whether the signature of each part is accepted. A part without a signature is.
async fn use_signatures(
    connection: &mut PgConnection,
    parts: &[Part<'_>],
    now: Timestamp,
) -> Result<Vec<bool>, Fault> {
    let mut is_genuine = vec![true; parts.len()];
    let signed = parts.iter().enumerate().filter_map(|(nth, part)| {
        let (source, guard) = (&part.request.source, part.request.batch.guard.as_ref()?);
        let signature = UsedSignature {
            organization_id: source.organization_id,
            account_id: source.account_id,
            guard,
        };
        Some((nth, signature))
    });
    let (indices, signatures): (Vec<usize>, Vec<UsedSignature<'_>>) = signed.unzip();
    let used = source_store::use_signatures(connection, &signatures, now).await?;
    for (nth, used) in indices.into_iter().zip(used) {
        is_genuine[nth] = used;
    }
    Ok(is_genuine)
}

/// Inserts the raw events and returns those that were not recorded before.
async fn insert_new<'a, 'b>(
    connection: &mut PgConnection,
    matched: &[&'a MatchedEvent<'b>],
    now: Timestamp,
) -> Result<Vec<&'a MatchedEvent<'b>>, Fault> {
    if matched.is_empty() {
        return Ok(Vec::new());
    }
    let mut seen = HashSet::new();
    let unique = matched.iter().filter(|matched| seen.insert(matched.key()));
    let unique: Vec<&MatchedEvent<'_>> = unique.copied().collect();
    let rows = unique.iter().map(|matched| NewProviderEvent {
        organization_id: matched.organization_id(),
        key: matched.recipient.key,
        account_id: matched.recipient.account_id,
        hash: matched.hash,
        raw_sealed: &matched.raw_sealed,
    });
    let new_events = store::insert(connection, &rows.collect::<Vec<_>>(), now).await?;
    Ok(unique
        .into_iter()
        .filter(|matched| new_events.contains(&matched.key()))
        .collect())
}

fn record_counts(
    parts: &[Part<'_>],
    is_genuine: &[bool],
    genuine: &[&MatchedEvent<'_>],
    new_events: &[&MatchedEvent<'_>],
) -> Vec<Option<RecordCounts>> {
    let count = |matched: &[&MatchedEvent<'_>]| {
        let mut counts = vec![0; parts.len()];
        for one in matched {
            counts[one.part_index] += 1;
        }
        counts
    };
    let (known, recorded) = (count(genuine), count(new_events));
    let part_counts = |nth: usize| RecordCounts {
        recorded: recorded[nth],
        repeated: known[nth] - recorded[nth],
        unmatched: parts[nth].events.len() - known[nth],
    };
    let parts = is_genuine.iter().enumerate();
    parts
        .map(|(nth, is_genuine)| is_genuine.then(|| part_counts(nth)))
        .collect()
}

/// Counts unrecorded events and marks accounts as verified, the accounts in the order of
/// their ids.
async fn count_unrecorded(
    connection: &mut PgConnection,
    parts: &[Part<'_>],
    counts: &[Option<RecordCounts>],
    now: Timestamp,
) -> Result<(), Fault> {
    let mut accounts: BTreeMap<ProviderAccountId, (&EventSource, Unrecorded)> = BTreeMap::new();
    for (part, counts) in parts.iter().zip(counts) {
        let Some(counts) = counts else {
            continue;
        };
        let source = &*part.request.source;
        if source.is_test {
            continue;
        }
        let account = accounts.entry(source.account_id);
        let (first, unrecorded) = account.or_insert((source, Unrecorded::default()));
        if first.first_verified_with.is_none() {
            *first = source;
        }
        unrecorded.unmatched += counts.unmatched;
        unrecorded.unreadable += part.unreadable;
    }
    for (account_id, (source, unrecorded)) in accounts {
        let organization_id = source.organization_id;
        if let Some(sealed) = &source.first_verified_with {
            source_store::mark_verified(connection, organization_id, account_id, sealed, now)
                .await?;
        }
        source_store::count_unrecorded(connection, organization_id, account_id, unrecorded, now)
            .await?;
    }
    Ok(())
}

/// The suppressions that follow from events.
fn reported_suppressions<'a, 'b: 'a>(
    matched: impl IntoIterator<Item = &'a MatchedEvent<'b>>,
) -> Vec<ReportedSuppression<'a>> {
    let reported = matched.into_iter().filter_map(|matched| {
        let addressee = matched.addressee?;
        Some(ReportedSuppression {
            organization_id: matched.organization_id(),
            origin: &matched.request.origin,
            address: ReportedAddress {
                email_hash: addressee.address_hash,
                message_id: matched.recipient.key.0,
                reason: suppression_reason(matched.event, addressee)?,
            },
        })
    });
    reported.collect()
}

fn event_hash(id: &str) -> EventHash {
    let digest: [u8; 32] = Sha256::digest(id.as_bytes()).into();
    let mut hash = EventHash::default();
    hash.copy_from_slice(&digest[..16]);
    hash
}

/// Whether an event of this kind may suppress the recipient's address.
fn may_suppress(kind: ProviderEventKind) -> bool {
    match kind {
        ProviderEventKind::Bounced(BounceType::Hard | BounceType::Soft)
        | ProviderEventKind::Complained
        | ProviderEventKind::Unsubscribed => true,
        ProviderEventKind::Bounced(BounceType::Block)
        | ProviderEventKind::Sent
        | ProviderEventKind::Delivered
        | ProviderEventKind::Deferred
        | ProviderEventKind::Dropped
        | ProviderEventKind::Opened { .. }
        | ProviderEventKind::Clicked { .. } => false,
    }
}

/// Why the event suppresses the recipient's address, if it does.
fn suppression_reason(event: &ProviderEvent, addressee: Addressee) -> Option<ReportedReason> {
    match event.kind {
        ProviderEventKind::Bounced(BounceType::Hard) => Some(ReportedReason::HardBounce),
        ProviderEventKind::Bounced(BounceType::Soft) => Some(ReportedReason::SoftBounce {
            at: event.occurred_at,
        }),
        ProviderEventKind::Complained => Some(ReportedReason::Complaint),
        ProviderEventKind::Unsubscribed => Some(ReportedReason::Unsubscribe {
            unsubscribe_group_id: addressee.group_id,
        }),
        ProviderEventKind::Bounced(BounceType::Block)
        | ProviderEventKind::Sent
        | ProviderEventKind::Delivered
        | ProviderEventKind::Deferred
        | ProviderEventKind::Dropped
        | ProviderEventKind::Opened { .. }
        | ProviderEventKind::Clicked { .. } => None,
    }
}
