//! The audit log: who changed what, from where. Every change through the API and
//! every unsubscribe writes one entry in the transaction of the change, so there is
//! no change without its entry and no entry without its change. Entries never hold
//! an address, a subject, a body or a secret.

pub mod store;

use serde_json::Value;
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::ids::ApiKeyId;

/// Who acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// A caller of the API, by its key.
    ApiKey {
        id: ApiKeyId,
        /// The key's name at the time.
        name: String,
    },
    /// The recipient of a message, by a signed link.
    Recipient,
    System,
}

impl Actor {
    /// The word in the database and on the wire.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::ApiKey { .. } => "api_key",
            Self::Recipient => "recipient",
            Self::System => "system",
        }
    }
}

/// Where a change comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub actor: Actor,
    /// The client's address, where there is one.
    pub ip: Option<String>,
    /// What the client calls itself, bounded.
    pub user_agent: Option<String>,
    /// The request's id, as `X-Request-Id` tells it.
    pub request_id: String,
}

impl Origin {
    /// Waypost itself, asked by nobody: `occasion` is the id of what decided it and
    /// stands where a request's would.
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

/// One entry, as its organization reads it.
#[derive(Debug, Clone)]
pub struct AuditEntry {
    pub id: Uuid,
    /// What was done, such as `provider.created`.
    pub action: String,
    pub occurred_at: Timestamp,
    /// The word for who did it: see [`Actor::kind`].
    pub actor_type: String,
    /// The actor's id, where it has one.
    pub actor_id: Option<Uuid>,
    /// The actor's name at the time, where it has one.
    pub actor_name: Option<String>,
    /// The kind of thing that was changed, such as `provider`.
    pub target_type: String,
    pub target_id: Uuid,
    /// The client's address, where there was one.
    pub ip: Option<String>,
    /// What the client called itself.
    pub user_agent: Option<String>,
    pub request_id: String,
    pub metadata: Value,
}

/// What was done to what.
#[derive(Debug, Clone)]
pub struct AuditChange {
    /// `<target type>.<past participle>`, such as `provider.created`.
    pub action: &'static str,
    /// The kind of thing, such as `provider`.
    pub target_type: &'static str,
    pub target_id: Uuid,
    pub metadata: Value,
}

impl AuditChange {
    /// A change to a thing. The action begins with the kind of thing.
    #[must_use]
    pub fn new(action: &'static str, target_id: impl Into<Uuid>) -> Self {
        Self {
            action,
            target_type: action.split_once('.').map_or(action, |(kind, _)| kind),
            target_id: target_id.into(),
            metadata: Value::Object(serde_json::Map::new()),
        }
    }

    /// The same change with particulars.
    #[must_use]
    pub fn with(mut self, metadata: Value) -> Self {
        self.metadata = metadata;
        self
    }
}
