//! The audit log: which actor changed what, from where. Every change through the API and
//! every unsubscribe inserts one entry in the transaction of the change, so a change and its
//! entry exist together or not at all. Entries never contain an email address, a subject, a
//! body or a secret.

pub mod store;

use serde_json::Value;
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::ids::{ApiKeyId, UserId};

/// The originator of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// A client of the API.
    ApiKey {
        id: ApiKeyId,
        /// The name of the key at the time.
        name: String,
    },
    /// A person with a session.
    User {
        id: UserId,
        /// The name of the user at the time.
        name: String,
    },
    /// The recipient of a message, through a signed link.
    Recipient,
    /// Waypost itself.
    System,
}

impl Actor {
    /// The id and the name of an actor that has them.
    #[must_use]
    pub fn identity(&self) -> Option<(Uuid, &str)> {
        match self {
            Self::ApiKey { id, name } => Some((id.0, name)),
            Self::User { id, name } => Some((id.0, name)),
            Self::Recipient | Self::System => None,
        }
    }

    /// The name in the API and in the database.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::ApiKey { .. } => "api_key",
            Self::User { .. } => "user",
            Self::Recipient => "recipient",
            Self::System => "system",
        }
    }
}

/// Where a change comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub actor: Actor,
    /// The client's IP address.
    pub ip: Option<String>,
    /// The client's `User-Agent`, truncated.
    pub user_agent: Option<String>,
    /// The id in the `X-Request-Id` header of the response.
    pub request_id: String,
}

impl Origin {
    /// A change that Waypost makes itself. `occasion` is the id of its cause and is stored
    /// as the request id.
    #[must_use]
    pub fn system(occasion: impl ToString) -> Self {
        Self {
            actor: Actor::System,
            ip: None,
            user_agent: None,
            request_id: occasion.to_string(),
        }
    }
}

/// An entry of the audit log.
#[derive(Debug, Clone)]
pub struct AuditEntry {
    pub id: Uuid,
    /// Such as `provider.created`.
    pub action: String,
    pub occurred_at: Timestamp,
    /// See [`Actor::kind`].
    pub actor_type: String,
    pub actor_id: Option<Uuid>,
    /// The name of the actor at the time.
    pub actor_name: Option<String>,
    /// The kind of the changed object, such as `provider`.
    pub target_type: String,
    pub target_id: Uuid,
    /// The client's IP address.
    pub ip: Option<String>,
    pub user_agent: Option<String>,
    pub request_id: String,
    pub metadata: Value,
}

/// A change to record.
#[derive(Debug, Clone)]
pub struct AuditChange {
    /// `<target type>.<past participle>`, such as `provider.created`.
    pub action: &'static str,
    /// The kind of the changed object, such as `provider`.
    pub target_type: &'static str,
    pub target_id: Uuid,
    pub metadata: Value,
}

impl AuditChange {
    /// A change of an object. The target type is the part of the action before the dot.
    #[must_use]
    pub fn new(action: &'static str, target_id: impl Into<Uuid>) -> Self {
        Self {
            action,
            target_type: action.split_once('.').map_or(action, |(kind, _)| kind),
            target_id: target_id.into(),
            metadata: Value::Object(serde_json::Map::new()),
        }
    }

    /// The same change with metadata.
    #[must_use]
    pub fn with(mut self, metadata: Value) -> Self {
        self.metadata = metadata;
        self
    }
}
