//! Tracking: whether a copy is opened, and which of its links are followed, as a
//! pixel and links of our own tell.
//!
//! Characters: the *choice* (what a request and its organization want tracked), the
//! *plan* of a body (`html`: where its links stand), the *tracker* (`link`: puts the
//! pixel and the links into a copy), the *token* of each, the *sighting* (somebody
//! or something fetched one), the *recorder* (`record`).
//!
//! What is promised: a link leads where its author wrote it to, whatever becomes of
//! Postgres; what is recorded of one recipient is bounded. What is not: that each
//! sighting is recorded. A recipient's program asks once, and nobody repeats it.

mod html;
pub mod link;
pub mod robot;
pub mod token;

use crate::clock::Timestamp;
use crate::event::EventType;
use crate::ids::{MessageId, OrganizationId};

/// What of a message is tracked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tracking {
    /// Whether it carries a pixel.
    pub opens: bool,
    /// Whether its links lead through us.
    pub clicks: bool,
}

/// What a request wants tracked; what it does not say is the organization's to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrackingChoice {
    pub opens: Option<bool>,
    pub clicks: Option<bool>,
}

impl TrackingChoice {
    /// What is tracked in an organization with these switches.
    #[must_use]
    pub fn or(self, switches: Tracking) -> Tracking {
        Tracking {
            opens: self.opens.unwrap_or(switches.opens),
            clicks: self.clicks.unwrap_or(switches.clicks),
        }
    }
}

/// One recipient's copy, as its pixel and its links know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackedRecipient {
    pub organization_id: OrganizationId,
    pub message_id: MessageId,
    /// The recipient's position in it.
    pub position: i32,
    /// When the copy was made, in whole seconds.
    pub issued_at: Timestamp,
}

/// Somebody fetched a pixel or followed a link. It shows itself to no log: the link
/// may hold what its author meant for the recipient alone.
#[derive(Clone, PartialEq, Eq)]
pub struct TrackingHit {
    /// The copy that it was in.
    pub copy: TrackedRecipient,
    /// Where the link leads; nothing where it was the pixel.
    pub url: Option<String>,
    pub at: Timestamp,
    /// What the program calls itself.
    pub user_agent: Option<String>,
    /// Whether it was a machine.
    pub is_bot: bool,
}

impl TrackingHit {
    /// What the history calls it.
    #[must_use]
    pub fn event_type(&self) -> EventType {
        match self.url {
            None => EventType::Opened,
            Some(_) => EventType::Clicked,
        }
    }
}
