//! The transactions of the recorder: as many requests as have gathered, one statement
//! for each step.

use std::collections::{BTreeMap, HashSet};

use sha2::{Digest, Sha256};
use tracing::error;

use super::apply::follow;
use super::recipients::store as copies_store;
use super::recipients::{Addressee, FoundRecipient, MatchKey, RecipientKey};
use super::source::store as teller_store;
use super::store::{self, EventHash, ProvenAttempt};
use super::{DOING, EventSource, RecordCounts, Request};
use crate::address::EmailAddress;
use crate::clock::Timestamp;
use crate::crypto::seal::{Sealed, Sealer};
use crate::db::{self, OrFault, PgConnection};
use crate::fault::{Fault, FaultKind};
use crate::ids::{MessageId, OrganizationId, ProviderAccountId};
use crate::provider::event::{BounceType, ProviderEvent, ProviderEventKind};
use crate::suppression::Suppressions;
use crate::suppression::feedback::{ReportedAddress, ReportedReason, ReportedSuppression};
use teller_store::{Unrecorded, UsedSignature};

/// How often a transaction is tried that Postgres chose to end a deadlock.
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

/// An event and the copy that it is about.
pub(super) struct Matched<'a> {
    request: &'a Request,
    pub(super) event: &'a ProviderEvent,
    pub(super) copy: FoundRecipient,
    /// Whom it went to, where the news may suppress them.
    addressee: Option<Addressee>,
    /// Which of the parts told it.
    nth: usize,
    hash: EventHash,
    told_sealed: Vec<u8>,
}

impl Matched<'_> {
    /// The account that told it.
    pub(super) fn teller(&self) -> &EventSource {
        &self.request.teller
    }

    pub(super) fn organization_id(&self) -> OrganizationId {
        self.request.teller.organization_id
    }

    /// What it is known by when it is told again.
    fn key(&self) -> (MessageId, ProviderAccountId, EventHash) {
        (self.copy.place.0, self.copy.account_id, self.hash)
    }
}

impl EventWriter {
    /// Records requests together. Nothing stands for one whose signature came with
    /// another content before.
    pub(super) async fn write(
        &self,
        requests: Vec<Request>,
    ) -> Vec<Result<Option<RecordCounts>, Fault>> {
        let parts: Vec<Part<'_>> = requests.iter().map(whole).collect();
        match self.write_parts(&parts).await {
            Ok(tallies) => tallies.into_iter().map(Ok).collect(),
            Err(fault) if fault.kind() == FaultKind::Internal => {
                // What Postgres refuses of one request does not cost the others.
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
        match self.write_parts(&[whole(request)]).await {
            Ok(mut tallies) => Ok(tallies.pop().flatten()),
            Err(fault) if db::is_refused(&fault) => self.sift(request).await,
            Err(fault) => Err(fault),
        }
    }

    /// Records what Postgres takes of a request, and counts the rest as unreadable: it
    /// would be the same whenever it is told again, for hours. Looks for it by halves.
    async fn sift(&self, request: &Request) -> Result<Option<RecordCounts>, Fault> {
        let mut tally = RecordCounts::default();
        let mut refused = 0;
        let mut left = vec![request.news.events.as_slice()];
        while let Some(events) = left.pop() {
            let part = Part {
                request,
                events,
                unreadable: 0,
            };
            match self.write_parts(&[part]).await {
                Ok(mut tallies) => match tallies.pop().flatten() {
                    Some(part) => tally.add(part),
                    None => return Ok(None),
                },
                Err(fault) if !db::is_refused(&fault) => return Err(fault),
                Err(_) if events.len() > 1 => {
                    let (first, second) = events.split_at(events.len() / 2);
                    left.extend([second, first]);
                }
                Err(fault) => {
                    refused += events.len();
                    let account_id = request.teller.account_id;
                    error!(
                        account.id = %account_id,
                        cause = fault.chain(),
                        "Account {account_id} told something that Postgres refuses"
                    );
                }
            }
        }
        let rest = Part {
            request,
            events: &[],
            unreadable: request.news.unreadable + refused,
        };
        Ok(self
            .write_parts(&[rest])
            .await?
            .pop()
            .flatten()
            .map(|_| tally))
    }

    /// One tally for each part, in their order, when all of them are committed.
    async fn write_parts(&self, parts: &[Part<'_>]) -> Result<Vec<Option<RecordCounts>>, Fault> {
        let recording = async {
            let matched = self.find(parts).await?;
            let suspects = told_by(&matched).into_iter();
            let suspects: Vec<_> = suspects
                .map(|told| (told.organization_id, told.address.email_hash))
                .collect();
            self.suppressions.announce_feedback(&suspects).await?;
            let write = || self.transact(parts, &matched);
            db::retry_deadlocks(TRIES_MAX, write, db::is_deadlock).await
        };
        db::bounded(DOING, recording).await
    }

    /// The events whose copies there are, ready to be kept.
    async fn find<'a>(&self, parts: &[Part<'a>]) -> Result<Vec<Matched<'a>>, Fault> {
        let events = parts
            .iter()
            .enumerate()
            .flat_map(|(nth, part)| part.events.iter().map(move |event| (nth, *part, event)));
        let events: Vec<(usize, Part<'a>, &'a ProviderEvent)> = events.collect();
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let mut copies = vec![None; events.len()];
        let (mut named, mut named_at, mut clues) = (Vec::new(), Vec::new(), Vec::new());
        for (nth, (_, part, event)) in events.iter().enumerate() {
            let teller = &part.request.teller;
            match (event.ids, &event.provider_message_id) {
                (Some(ids), _) => {
                    named.push((teller.organization_id, ids));
                    named_at.push(nth);
                }
                (None, Some(provider_message_id)) => clues.push(MatchKey {
                    nth,
                    organization_id: teller.organization_id,
                    account_id: teller.account_id,
                    provider_message_id: provider_message_id.clone(),
                    address_hash: event.recipient.as_ref().map(EmailAddress::hash),
                }),
                (None, None) => {}
            }
        }
        let mut connection = self.suppressions.pool.acquire().await.or_fault(DOING)?;
        let found = copies_store::find_copies(&mut connection, &named).await?;
        for (nth, copy) in named_at.into_iter().zip(found) {
            copies[nth] = copy;
        }
        for (nth, copy) in copies_store::find_copies_by_clues(&mut connection, &clues).await? {
            copies[nth] = Some(copy);
        }
        let matched = events
            .into_iter()
            .zip(copies)
            .filter_map(|((nth, part, event), copy)| Some(self.matched(nth, part, event, copy?)));
        let mut matched: Vec<Matched<'a>> = matched.collect();
        let suspects = matched
            .iter()
            .filter(|matched| may_suppress(matched.event.kind));
        let suspects: Vec<(RecipientKey, OrganizationId)> = suspects
            .map(|matched| (matched.copy.place, matched.organization_id()))
            .collect();
        let addressees = copies_store::find_addressees(&mut connection, &suspects).await?;
        for matched in &mut matched {
            matched.addressee = addressees.get(&matched.copy.place).copied();
        }
        Ok(matched)
    }

    fn matched<'a>(
        &self,
        nth: usize,
        part: Part<'a>,
        event: &'a ProviderEvent,
        copy: FoundRecipient,
    ) -> Matched<'a> {
        let teller = &part.request.teller;
        let (kind, row) = (Sealed::ProviderEvent, copy.place.0.0);
        Matched {
            request: part.request,
            event,
            copy,
            addressee: None,
            nth,
            hash: hash_of(&event.id),
            told_sealed: self
                .sealer
                .seal(teller.organization_id, kind, row, &event.raw),
        }
    }

    async fn transact(
        &self,
        parts: &[Part<'_>],
        matched: &[Matched<'_>],
    ) -> Result<Vec<Option<RecordCounts>>, Fault> {
        let now = self.suppressions.clock.now();
        let mut transaction = db::begin(&self.suppressions.pool, DOING).await?;
        let is_genuine = use_signatures(&mut transaction, parts, now).await?;
        let believed = matched.iter().filter(|matched| is_genuine[matched.nth]);
        let believed: Vec<&Matched<'_>> = believed.collect();
        let fresh = keep(&mut transaction, &believed, now).await?;
        let ids = &self.suppressions.ids;
        follow(&mut transaction, ids, &fresh, now).await?;
        let told = told_by(fresh.iter().copied());
        let added = self
            .suppressions
            .add_feedback(&mut transaction, &told)
            .await?;
        let tallies = tallies(parts, &is_genuine, &believed, &fresh);
        count_unrecorded(&mut transaction, parts, &tallies, now).await?;
        transaction.commit().await.or_fault(DOING)?;
        self.suppressions.confirm_feedback(&added).await;
        Ok(tallies)
    }
}

/// All of a request.
fn whole(request: &Request) -> Part<'_> {
    Part {
        request,
        events: &request.news.events,
        unreadable: request.news.unreadable,
    }
}

/// Of each part whether its signature, where it has one, may be used.
async fn use_signatures(
    connection: &mut PgConnection,
    parts: &[Part<'_>],
    now: Timestamp,
) -> Result<Vec<bool>, Fault> {
    let mut is_genuine = vec![true; parts.len()];
    let signed = parts.iter().enumerate().filter_map(|(nth, part)| {
        let (teller, guard) = (&part.request.teller, part.request.news.guard.as_ref()?);
        let signature = UsedSignature {
            organization_id: teller.organization_id,
            account_id: teller.account_id,
            guard,
        };
        Some((nth, signature))
    });
    let (places, signatures): (Vec<usize>, Vec<UsedSignature<'_>>) = signed.unzip();
    let used = teller_store::use_signatures(connection, &signatures, now).await?;
    for (nth, used) in places.into_iter().zip(used) {
        is_genuine[nth] = used;
    }
    Ok(is_genuine)
}

/// Keeps the events as they were told, and answers those that were not told before.
async fn keep<'a, 'b>(
    connection: &mut PgConnection,
    matched: &[&'a Matched<'b>],
    now: Timestamp,
) -> Result<Vec<&'a Matched<'b>>, Fault> {
    if matched.is_empty() {
        return Ok(Vec::new());
    }
    let mut seen = HashSet::new();
    let once = matched.iter().filter(|matched| seen.insert(matched.key()));
    let once: Vec<&Matched<'_>> = once.copied().collect();
    let kept = once.iter().map(|matched| ProvenAttempt {
        organization_id: matched.organization_id(),
        place: matched.copy.place,
        account_id: matched.copy.account_id,
        hash: matched.hash,
        told_sealed: &matched.told_sealed,
    });
    let fresh = store::insert(connection, &kept.collect::<Vec<_>>(), now).await?;
    let once = once.into_iter();
    Ok(once
        .filter(|matched| fresh.contains(&matched.key()))
        .collect())
}

fn tallies(
    parts: &[Part<'_>],
    is_genuine: &[bool],
    believed: &[&Matched<'_>],
    fresh: &[&Matched<'_>],
) -> Vec<Option<RecordCounts>> {
    let count = |matched: &[&Matched<'_>]| {
        let mut counts = vec![0; parts.len()];
        for one in matched {
            counts[one.nth] += 1;
        }
        counts
    };
    let (known, recorded) = (count(believed), count(fresh));
    let tally = |nth: usize| RecordCounts {
        recorded: recorded[nth],
        repeated: known[nth] - recorded[nth],
        unmatched: parts[nth].events.len() - known[nth],
    };
    let places = is_genuine.iter().enumerate();
    places
        .map(|(nth, is_genuine)| is_genuine.then(|| tally(nth)))
        .collect()
}

/// Counts what was recorded nowhere, and remembers which accounts' providers tell;
/// the accounts in the order of their ids.
async fn count_unrecorded(
    connection: &mut PgConnection,
    parts: &[Part<'_>],
    tallies: &[Option<RecordCounts>],
    now: Timestamp,
) -> Result<(), Fault> {
    let mut accounts: BTreeMap<ProviderAccountId, (&EventSource, Unrecorded)> = BTreeMap::new();
    for (part, tally) in parts.iter().zip(tallies) {
        let Some(tally) = tally else {
            continue;
        };
        let teller = &*part.request.teller;
        let account = accounts.entry(teller.account_id);
        let (first, unrecorded) = account.or_insert((teller, Unrecorded::default()));
        if first.first_verified_with.is_none() {
            *first = teller;
        }
        unrecorded.unmatched += tally.unmatched;
        unrecorded.unreadable += part.unreadable;
    }
    for (account_id, (teller, unrecorded)) in accounts {
        let organization_id = teller.organization_id;
        if let Some(sealed) = &teller.first_verified_with {
            teller_store::mark_verified(connection, organization_id, account_id, sealed, now)
                .await?;
        }
        teller_store::count_unrecorded(connection, organization_id, account_id, unrecorded, now)
            .await?;
    }
    Ok(())
}

/// The addresses that the news may suppress.
fn told_by<'a, 'b: 'a>(
    matched: impl IntoIterator<Item = &'a Matched<'b>>,
) -> Vec<ReportedSuppression<'a>> {
    let told = matched.into_iter().filter_map(|matched| {
        let addressee = matched.addressee?;
        Some(ReportedSuppression {
            organization_id: matched.organization_id(),
            origin: &matched.request.origin,
            address: ReportedAddress {
                email_hash: addressee.address_hash,
                message_id: matched.copy.place.0,
                reason: reason(matched.event, addressee)?,
            },
        })
    });
    told.collect()
}

fn hash_of(id: &str) -> EventHash {
    let digest: [u8; 32] = Sha256::digest(id.as_bytes()).into();
    let mut hash = EventHash::default();
    hash.copy_from_slice(&digest[..16]);
    hash
}

/// Whether news of this kind may suppress the copy's address.
fn may_suppress(happening: ProviderEventKind) -> bool {
    match happening {
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

/// Why the news may suppress the copy's address.
fn reason(event: &ProviderEvent, addressee: Addressee) -> Option<ReportedReason> {
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
