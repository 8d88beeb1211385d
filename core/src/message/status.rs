//! The statuses of a message and the moves between them. Any other move is refused, so a
//! late event never overwrites a later status. Statements that update many rows at once
//! repeat the part of the table that they need as a condition.

use std::fmt;
use std::str::FromStr;

/// The status of a recipient, and of a message as the aggregate of its recipients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, sqlx::Type)]
#[sqlx(type_name = "message_status", rename_all = "UPPERCASE")]
pub enum MessageStatus {
    /// Accepted; no worker has leased it.
    Queued,
    /// A worker holds the lease, or an attempt's outcome is unknown.
    Sending,
    Sent,
    Delivered,
    Bounced,
    Failed,
}

/// A move that is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a recipient cannot move from {from} to {to}")]
pub struct IllegalMove {
    pub from: MessageStatus,
    pub to: MessageStatus,
}

impl MessageStatus {
    /// All statuses, in the order of the API.
    pub const ALL: [Self; 6] = [
        Self::Queued,
        Self::Sending,
        Self::Sent,
        Self::Delivered,
        Self::Bounced,
        Self::Failed,
    ];

    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "QUEUED",
            Self::Sending => "SENDING",
            Self::Sent => "SENT",
            Self::Delivered => "DELIVERED",
            Self::Bounced => "BOUNCED",
            Self::Failed => "FAILED",
        }
    }

    /// Moves to another status, if the table allows it.
    ///
    /// # Errors
    /// The move, if it is not allowed.
    pub fn advance(self, to: Self) -> Result<Self, IllegalMove> {
        let legal = match self {
            // QUEUED to SENT: a retry was waiting after a lost answer, and then evidence
            // showed that the provider had accepted the message.
            Self::Queued => matches!(to, Self::Sending | Self::Sent | Self::Failed),
            // SENDING to SENDING: the answer was lost; waiting for evidence.
            Self::Sending => matches!(to, Self::Queued | Self::Sending | Self::Sent | Self::Failed),
            // SENT to FAILED: the provider accepted it and dropped it before a delivery
            // attempt.
            Self::Sent => matches!(to, Self::Delivered | Self::Bounced | Self::Failed),
            Self::Delivered => matches!(to, Self::Bounced),
            // To SENT and further: the message was given up after lost answers, or the
            // provider reported it as dropped, and evidence shows that it was sent all
            // the same. To QUEUED: the customer retries it.
            Self::Failed => {
                matches!(
                    to,
                    Self::Queued | Self::Sent | Self::Delivered | Self::Bounced
                )
            }
            Self::Bounced => false,
        };
        if legal {
            Ok(to)
        } else {
            Err(IllegalMove { from: self, to })
        }
    }
}

impl fmt::Display for MessageStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for MessageStatus {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == word)
            .ok_or_else(|| format!("must be one of {}", Self::ALL.map(Self::as_str).join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_moves_of_the_table_are_legal() {
        use MessageStatus::{Bounced, Delivered, Failed, Queued, Sending, Sent};
        let legal = [
            (Queued, Sending),
            (Queued, Sent),
            (Queued, Failed),
            (Sending, Queued),
            (Sending, Sending),
            (Sending, Sent),
            (Sending, Failed),
            (Sent, Delivered),
            (Sent, Bounced),
            (Sent, Failed),
            (Delivered, Bounced),
            (Failed, Queued),
            (Failed, Sent),
            (Failed, Delivered),
            (Failed, Bounced),
        ];
        for from in MessageStatus::ALL {
            for to in MessageStatus::ALL {
                let expected = legal.contains(&(from, to));
                assert_eq!(from.advance(to).is_ok(), expected, "{from} to {to}");
            }
        }
    }
}
