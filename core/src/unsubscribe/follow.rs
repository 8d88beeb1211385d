//! Handles a followed unsubscribe link: it adds a suppression in the link's group, an
//! event in the message's history and an audit entry. The recipient can undo it.
//!
//! A group may have been removed since the link was sent. The address is then suppressed
//! for all mail of the organization, because no remaining group corresponds to the topic.
//!
//! Following a link again, even concurrently, adds nothing. Undoing removes only the
//! suppression that the recipient added.

use serde_json::json;

use crate::audit::{AuditChange, Origin};
use crate::clock::Timestamp;
use crate::db::{self, OrFault, PgConnection};
use crate::event::{self, EventType, NewEvent};
use crate::fault::Fault;
use crate::organization::brand_color::BrandColor;
use crate::suppression::store::{self, SuppressionScope};
use crate::suppression::{Suppression, SuppressionRefusal, SuppressionSource, Suppressions};
use crate::unsubscribe::store::{self as groups, LinkedRecipient};
use crate::unsubscribe::token::LinkContent;

/// The mail that a link unsubscribes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// The organization's name.
    pub organization: String,
    /// The colour of its pages.
    pub brand_color: Option<BrandColor>,
    /// The sender, or the organization's name if the message has been removed.
    pub sender: String,
    /// The group's name. `None` stands for all mail of the organization.
    pub group: Option<String>,
}

/// The result of an unsubscribe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsubscribed {
    pub from: Subscription,
    /// False if the address was already suppressed there by another source.
    pub can_undo: bool,
}

/// The result of undoing an unsubscribe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resubscribed {
    pub to: Subscription,
    /// Whether another suppression still applies to the address.
    pub is_still_suppressed: bool,
}

/// The rows that a link refers to.
struct LinkTarget {
    scope: SuppressionScope,
    group: Option<String>,
    recipient: LinkedRecipient,
}

impl LinkTarget {
    fn subscription(self) -> Subscription {
        let LinkedRecipient {
            organization_name,
            brand_color,
            sender,
            ..
        } = self.recipient;
        Subscription {
            brand_color: brand_color.and_then(|text| text.parse().ok()),
            sender: sender.unwrap_or_else(|| organization_name.clone()),
            organization: organization_name,
            group: self.group,
        }
    }
}

const SOURCE: SuppressionSource = SuppressionSource::Unsubscribe;

impl Suppressions {
    /// Unsubscribes a recipient. `None` if the link's organization no longer exists.
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
        let Some(target) = find(&mut transaction, link).await? else {
            return Ok(None);
        };
        let suppression = Suppression {
            id: self.ids.next_at(now),
            organization_id,
            email_hash: hash,
            unsubscribe_group_id: target.scope.unsubscribe_group_id,
            source: SOURCE,
            message_id: Some(link.message_id),
            created_at: now,
        };
        let inserted = store::insert(&mut transaction, &suppression).await;
        if !inserted.map_err(fault)? {
            let scope = target.scope;
            let sources = store::list_sources(&mut transaction, organization_id, scope).await?;
            let own = (scope.unsubscribe_group_id, SOURCE);
            return Ok(Some(Unsubscribed {
                can_undo: sources.contains(&own),
                from: target.subscription(),
            }));
        }
        let change = AuditChange::new("suppression.created", suppression.id).with(json!({
            "source": SOURCE.as_str(),
            "unsubscribeGroupId": target.scope.unsubscribe_group_id,
            "messageId": link.message_id,
        }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        let events: Vec<NewEvent> = self.event(link, &target, now).into_iter().collect();
        event::store::insert(&mut transaction, &events).await?;
        let state = store::count_added(&mut transaction, organization_id, 1).await?;
        transaction.commit().await.or_fault("unsubscribe")?;
        self.filters.confirm(organization_id, state, &[hash]).await;
        Ok(Some(Unsubscribed {
            can_undo: true,
            from: target.subscription(),
        }))
    }

    /// The mail that a link unsubscribes from. `None` if its organization no longer exists.
    pub async fn subscription(&self, link: &LinkContent) -> Result<Option<Subscription>, Fault> {
        let mut transaction = db::begin(&self.pool, "show an unsubscribe link").await?;
        let target = find(&mut transaction, link).await?;
        Ok(target.map(LinkTarget::subscription))
    }

    /// Undoes [`Suppressions::unsubscribe`]. `None` if the link's organization no longer
    /// exists.
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
        let Some(target) = find(&mut transaction, link).await? else {
            return Ok(None);
        };
        let scope = target.scope;
        let deleted =
            store::delete_of_source(&mut transaction, organization_id, scope, SOURCE).await?;
        if let Some(id) = deleted {
            let change = AuditChange::new("suppression.deleted", id).with(json!({
                "source": SOURCE.as_str(),
                "unsubscribeGroupId": scope.unsubscribe_group_id,
                "messageId": link.message_id,
            }));
            self.record(&mut transaction, organization_id, origin, &change)
                .await?;
        }
        let remaining = store::list_sources(&mut transaction, organization_id, scope).await?;
        transaction.commit().await.or_fault("undo an unsubscribe")?;
        Ok(Some(Resubscribed {
            is_still_suppressed: !remaining.is_empty(),
            to: target.subscription(),
        }))
    }

    /// The event for the message's history. `None` if the message has been removed.
    fn event(&self, link: &LinkContent, target: &LinkTarget, now: Timestamp) -> Option<NewEvent> {
        let (position, accepted_at) = (target.recipient.position?, target.recipient.accepted_at?);
        // Clocks of different machines differ. An event must not be earlier than its
        // message.
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

/// Finds the rows that a link refers to and locks its group until the transaction ends.
async fn find(
    connection: &mut PgConnection,
    link: &LinkContent,
) -> Result<Option<LinkTarget>, Fault> {
    let (organization_id, group_id) = (link.organization_id, link.unsubscribe_group_id);
    let email_hash = link.address.hash();
    let recipient = groups::find_linked_recipient(
        &mut *connection,
        organization_id,
        link.message_id,
        email_hash,
    );
    let Some(recipient) = recipient.await? else {
        return Ok(None);
    };
    let group = groups::lock_shared(connection, organization_id, group_id).await?;
    Ok(Some(LinkTarget {
        scope: SuppressionScope {
            email_hash,
            unsubscribe_group_id: group.is_some().then_some(group_id),
        },
        group,
        recipient,
    }))
}

/// [`find`] locked the group, so the insert can only fail with a fault.
fn fault(refusal: SuppressionRefusal) -> Fault {
    match refusal {
        SuppressionRefusal::Fault(fault) => fault,
        SuppressionRefusal::NotFound
        | SuppressionRefusal::Exists
        | SuppressionRefusal::UnknownGroup => {
            Fault::internal("unsubscribe", "the group was removed while it was locked")
        }
    }
}
