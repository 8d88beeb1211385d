//! What a recipient does by the unsubscribe link: a suppression in the link's
//! group, and its undoing. The history of the message says so, and the audit log.
//!
//! A group may have been removed since the link was sent. Whoever follows the link
//! then asks for silence in a subject that is no more, and cannot be told apart
//! from later ones: the address is suppressed everywhere.
//!
//! What is promised: following a link again, also at the same time elsewhere, adds
//! nothing. Undoing takes back what a recipient did and nothing else.

use serde_json::json;

use crate::audit::{AuditChange, Origin};
use crate::clock::Timestamp;
use crate::db::{self, OrFault, PgConnection};
use crate::event::{self, EventType, NewEvent};
use crate::fault::Fault;
use crate::suppression::store::{self, SuppressionScope};
use crate::suppression::{Suppression, SuppressionRefusal, SuppressionSource, Suppressions};
use crate::unsubscribe::store::{self as groups, LinkedRecipient};
use crate::unsubscribe::token::LinkContent;

/// Who wrote to a recipient, and about what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correspondence {
    /// The sender, or the organization where the message is removed.
    pub sender: String,
    /// The group's name; nothing where it is about everything.
    pub group: Option<String>,
}

/// What became of an unsubscribe: nothing is sent any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsubscribed {
    /// What the recipient unsubscribed from.
    pub from: Correspondence,
    /// Whether the recipient can take it back: it was no one else who suppressed the
    /// address there before.
    pub can_undo: bool,
}

/// What became of its undoing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resubscribed {
    /// What the recipient is subscribed to again.
    pub to: Correspondence,
    /// Whether the address is suppressed all the same, by someone else.
    pub is_held: bool,
}

/// Where a link leads and what it was in.
struct LinkTarget {
    place: SuppressionScope,
    group: Option<String>,
    copy: LinkedRecipient,
}

impl LinkTarget {
    fn correspondence(self) -> Correspondence {
        Correspondence {
            sender: self.copy.sender.unwrap_or(self.copy.organization_name),
            group: self.group,
        }
    }
}

const SOURCE: SuppressionSource = SuppressionSource::Unsubscribe;

impl Suppressions {
    /// Unsubscribes a recipient. Nothing where the link's organization is gone.
    ///
    /// # Errors
    /// A fault; nothing is changed then.
    pub async fn unsubscribe(
        &self,
        origin: &Origin,
        link: &LinkContent,
    ) -> Result<Option<Unsubscribed>, Fault> {
        let (organization_id, hash) = (link.organization_id, link.address.hash());
        self.announce(organization_id, &[hash]).await?;
        let now = self.clock.now();
        let mut transaction = db::begin(&self.pool, "unsubscribe").await?;
        let Some(found) = find(&mut transaction, link).await? else {
            return Ok(None);
        };
        let suppression = Suppression {
            id: self.ids.next_at(now),
            organization_id,
            email_hash: hash,
            unsubscribe_group_id: found.place.unsubscribe_group_id,
            source: SOURCE,
            created_at: now,
        };
        let inserted = store::insert(&mut transaction, &suppression).await;
        if !inserted.map_err(fault)? {
            let place = found.place;
            let sources = store::list_sources(&mut transaction, organization_id, place).await?;
            let own = (place.unsubscribe_group_id, SOURCE);
            return Ok(Some(Unsubscribed {
                can_undo: sources.contains(&own),
                from: found.correspondence(),
            }));
        }
        let change = AuditChange::new("suppression.created", suppression.id).with(json!({
            "source": SOURCE.as_str(),
            "unsubscribeGroupId": found.place.unsubscribe_group_id,
            "messageId": link.message_id,
        }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        let events: Vec<NewEvent> = self.event(link, &found, now).into_iter().collect();
        event::store::insert(&mut transaction, &events).await?;
        let state = store::count_added(&mut transaction, organization_id, 1).await?;
        transaction.commit().await.or_fault("unsubscribe")?;
        self.filters.confirm(organization_id, state, &[hash]).await;
        Ok(Some(Unsubscribed {
            can_undo: true,
            from: found.correspondence(),
        }))
    }

    /// What a link is about. Nothing where its organization is gone.
    pub async fn correspondence(
        &self,
        link: &LinkContent,
    ) -> Result<Option<Correspondence>, Fault> {
        let mut transaction = db::begin(&self.pool, "show an unsubscribe link").await?;
        let found = find(&mut transaction, link).await?;
        Ok(found.map(LinkTarget::correspondence))
    }

    /// Takes back what [`Suppressions::unsubscribe`] did. Nothing where the link's
    /// organization is gone.
    ///
    /// # Errors
    /// A fault; nothing is changed then.
    pub async fn undo_unsubscribe(
        &self,
        origin: &Origin,
        link: &LinkContent,
    ) -> Result<Option<Resubscribed>, Fault> {
        let organization_id = link.organization_id;
        let mut transaction = db::begin(&self.pool, "undo an unsubscribe").await?;
        let Some(found) = find(&mut transaction, link).await? else {
            return Ok(None);
        };
        let place = found.place;
        let deleted =
            store::delete_of_source(&mut transaction, organization_id, place, SOURCE).await?;
        if let Some(id) = deleted {
            let change = AuditChange::new("suppression.deleted", id).with(json!({
                "source": SOURCE.as_str(),
                "unsubscribeGroupId": place.unsubscribe_group_id,
                "messageId": link.message_id,
            }));
            self.record(&mut transaction, organization_id, origin, &change)
                .await?;
        }
        let left = store::list_sources(&mut transaction, organization_id, place).await?;
        transaction.commit().await.or_fault("undo an unsubscribe")?;
        Ok(Some(Resubscribed {
            is_held: !left.is_empty(),
            to: found.correspondence(),
        }))
    }

    /// The line in the message's history; none where the message has been removed.
    fn event(&self, link: &LinkContent, found: &LinkTarget, now: Timestamp) -> Option<NewEvent> {
        let (position, accepted_at) = (found.copy.position?, found.copy.accepted_at?);
        // Clocks of different machines may disagree: nothing happens to a message
        // before it was accepted.
        let occurred_at = now.max(accepted_at);
        Some(NewEvent {
            id: self.ids.next_at(occurred_at),
            message_id: link.message_id,
            organization_id: link.organization_id,
            position,
            event_type: EventType::Unsubscribed,
            occurred_at,
            data: None,
        })
    }
}

/// Finds out where a link leads. The group stays as it is until the transaction
/// ends.
async fn find(
    connection: &mut PgConnection,
    link: &LinkContent,
) -> Result<Option<LinkTarget>, Fault> {
    let (organization_id, group_id) = (link.organization_id, link.unsubscribe_group_id);
    let email_hash = link.address.hash();
    let copy = groups::find_copy(
        &mut *connection,
        organization_id,
        link.message_id,
        email_hash,
    );
    let Some(copy) = copy.await? else {
        return Ok(None);
    };
    let group = groups::hold(connection, organization_id, group_id).await?;
    Ok(Some(LinkTarget {
        place: SuppressionScope {
            email_hash,
            unsubscribe_group_id: group.is_some().then_some(group_id),
        },
        group,
        copy,
    }))
}

/// The group is held, so nothing is refused but by a fault.
fn fault(refusal: SuppressionRefusal) -> Fault {
    match refusal {
        SuppressionRefusal::Fault(fault) => fault,
        SuppressionRefusal::NotFound
        | SuppressionRefusal::Exists
        | SuppressionRefusal::UnknownGroup => {
            Fault::internal("unsubscribe", "the group went away while it was held")
        }
    }
}
