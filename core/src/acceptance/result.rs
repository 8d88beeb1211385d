//! What a request to send is answered, and why it is refused.

use crate::attachment::AttachmentRefusal;
use crate::fault::Fault;
use crate::idempotency::KeyConflict;
use crate::ids::MessageId;
use crate::issue::Issue;
use crate::provider::kind::ProviderType;
use crate::routing::pinned::PinnedRefusal;
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

impl Answered {
    /// Whether this request made a message.
    pub(super) fn is_new_message(&self) -> bool {
        match self.acceptance {
            Acceptance::Queued(_) => !self.is_repeat,
            Acceptance::Suppressed { .. } => false,
        }
    }
}

/// Why a message was not accepted.
#[derive(Debug, Clone)]
pub enum AcceptRefusal {
    Route(RouteRefusal),
    /// The account that the message names cannot take it.
    Pinned(PinnedRefusal),
    /// Mistakes of the request that show only when it is accepted.
    Invalid(Vec<Issue>),
    /// URLs of attachments that gave no file.
    NotFetched(Vec<Issue>),
    /// The template gives no message.
    Template(TemplateRefusal),
    /// The organization has no such unsubscribe group.
    UnknownGroup,
    /// All recipients are suppressed, and the sender asked to be told so by a refusal.
    Suppressed,
    /// The selected account cannot carry a part of the message.
    CannotCarry {
        provider_type: ProviderType,
        /// Which part, and why: completes "the provider cannot carry the message: …".
        reason: String,
    },
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
            | TemplateRefusal::Unrenderable(_)
            | TemplateRefusal::IsPart
            | TemplateRefusal::UnknownLayout
            | TemplateRefusal::NameTaken
            | TemplateRefusal::InUse
            | TemplateRefusal::TooManyUses
            | TemplateRefusal::NotComposable { .. }) => Self::Template(refusal),
        }
    }
}

impl From<AttachmentRefusal> for AcceptRefusal {
    fn from(refusal: AttachmentRefusal) -> Self {
        match refusal {
            AttachmentRefusal::Invalid(issues) => Self::Invalid(issues),
            AttachmentRefusal::NotFetched(issues) => Self::NotFetched(issues),
            AttachmentRefusal::Busy(exceeded) => {
                Self::Fault(Fault::unavailable("store attachments", exceeded))
            }
            AttachmentRefusal::Fault(fault) => Self::Fault(fault),
        }
    }
}

impl From<Fault> for AcceptRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl AcceptRefusal {
    /// Whether it is an answer of the domain to this request, rather than a fault, or the
    /// outcome of another request with its key.
    #[must_use]
    pub fn is_of_request(&self) -> bool {
        match self {
            Self::Route(_)
            | Self::Pinned(_)
            | Self::CannotCarry { .. }
            | Self::Invalid(_)
            | Self::NotFetched(_)
            | Self::Template(_)
            | Self::UnknownGroup
            | Self::Suppressed => true,
            Self::Before(_) | Self::Key(_) | Self::Fault(_) => false,
        }
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
