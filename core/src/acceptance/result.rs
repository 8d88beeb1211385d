//! What a request to send is answered, and why it is refused.

use crate::fault::Fault;
use crate::idempotency::KeyConflict;
use crate::ids::MessageId;
use crate::routing::{Route, RouteRefusal};
use crate::template::TemplateRefusal;

/// The answer to an accepted message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    pub message_id: MessageId,
    /// The account that it goes through.
    pub route: Route,
    /// Recipients that it is sent to.
    pub accepted_count: usize,
    /// Recipients that get nothing, because they are suppressed.
    pub suppressed_count: usize,
}

/// The result of an accepted draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// A message was inserted for the recipients that are not suppressed.
    Queued(Receipt),
    /// All of its recipients are suppressed: there is no message.
    Suppressed { suppressed_count: usize },
}

/// The answer to a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    pub acceptance: Acceptance,
    /// Whether it is the answer to an earlier request with the same key.
    pub is_repeat: bool,
}

/// Why a message was not accepted.
#[derive(Debug, Clone)]
pub enum AcceptRefusal {
    Route(RouteRefusal),
    /// The template gives no message.
    Template(TemplateRefusal),
    /// The organization has no such unsubscribe group.
    UnknownGroup,
    /// An earlier run of the batch refused it, with this error text.
    Before(String),
    /// Another request has the idempotency key.
    Key(KeyConflict),
    /// Waypost failed. The message may have been accepted all the same if Postgres went
    /// away during the commit.
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

impl Answered {
    pub(super) fn now(acceptance: Acceptance) -> Self {
        Self {
            acceptance,
            is_repeat: false,
        }
    }
}
