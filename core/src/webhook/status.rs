//! The status of a delivery.

use std::fmt;
use std::str::FromStr;

/// The status of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, sqlx::Type)]
#[sqlx(type_name = "webhook_delivery_status", rename_all = "UPPERCASE")]
pub enum DeliveryStatus {
    /// Due, or waiting for the next attempt.
    Pending,
    Delivered,
    /// The last attempt failed; there are no more.
    Failed,
}

impl DeliveryStatus {
    /// All statuses.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Delivered, Self::Failed];

    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Delivered => "DELIVERED",
            Self::Failed => "FAILED",
        }
    }
}

impl fmt::Display for DeliveryStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for DeliveryStatus {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let words = Self::ALL.map(Self::as_str);
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == word)
            .ok_or_else(|| format!("must be one of {}", words.join(", ")))
    }
}
