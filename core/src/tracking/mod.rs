//! Tracking: a pixel and rewritten links report opens and clicks.
//!
//! The *choice* says what a request and its organization want tracked. The *plan* (`html`)
//! is the list of link positions in a body. The *tracker* ([`link`]) writes pixel and links
//! into a recipient's mail, each with a *token* ([`token`]). A *hit* is one request for a
//! pixel or a link; [`crate::tracking_event`] records it.
//!
//! Guaranteed: a link always redirects to the target that its author wrote, even while
//! Postgres is unavailable, and the number of recorded events for a recipient is bounded.
//! Not guaranteed: that every hit is recorded. A mail program requests a pixel once and does
//! not retry.

mod html;
pub mod link;
pub mod robot;
pub mod token;

use crate::clock::Timestamp;
use crate::event::EventType;
use crate::ids::{MessageId, OrganizationId};

/// Whether a message's opens and clicks are tracked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tracking {
    /// Adds a pixel.
    pub opens: bool,
    /// Replaces links by redirects.
    pub clicks: bool,
}

/// The tracking options of a request. `None` stands for the organization's setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrackingChoice {
    pub opens: Option<bool>,
    pub clicks: Option<bool>,
}

impl TrackingChoice {
    /// The tracking of a message, given the organization's settings.
    #[must_use]
    pub fn or(self, settings: Tracking) -> Tracking {
        Tracking {
            opens: self.opens.unwrap_or(settings.opens),
            clicks: self.clicks.unwrap_or(settings.clicks),
        }
    }
}

/// The recipient of a pixel or link, as its token identifies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackedRecipient {
    pub organization_id: OrganizationId,
    pub message_id: MessageId,
    /// The recipient's position in the message.
    pub position: i32,
    /// When the token was issued, in whole seconds.
    pub issued_at: Timestamp,
}

/// One request for a pixel or a link. It has no `Debug`, because the URL may contain data
/// that is meant for the recipient only.
#[derive(Clone, PartialEq, Eq)]
pub struct TrackingHit {
    pub recipient: TrackedRecipient,
    /// The target of the link. `None` for the pixel.
    pub url: Option<String>,
    pub at: Timestamp,
    pub user_agent: Option<String>,
    pub is_bot: bool,
}

impl TrackingHit {
    /// The type of the event in the message's history.
    #[must_use]
    pub fn event_type(&self) -> EventType {
        match self.url {
            None => EventType::Opened,
            Some(_) => EventType::Clicked,
        }
    }
}
