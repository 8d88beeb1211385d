//! Ids and random numbers. The id of each entity has a type of its own over a UUIDv7, so ids
//! of different entities cannot be confused in a call. Ids and random bytes come from an
//! injected [`Ids`].

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::{ContextV7, Timestamp as UuidTime, Uuid};

use crate::clock::{Clock, Timestamp};

macro_rules! id_types {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type)]
        #[serde(transparent)]
        #[sqlx(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Uuid {
                id.0
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    )+};
}

id_types! {
    OrganizationId,
    /// The record of an API key, not the key itself.
    ApiKeyId,
    ProviderAccountId,
    RoutingRuleId,
    /// A domain of a provider account.
    DomainId,
    /// A message. The time in the id determines its partition.
    MessageId,
    EventId,
    SendAttemptId,
    TemplateId,
    TemplateVersionId,
    UnsubscribeGroupId,
    SuppressionId,
    /// One lease of a worker process. A process that loses its lease gets another id.
    WorkerId,
    WebhookEndpointId,
    WebhookDeliveryId,
    WebhookAttemptId,
    UserId,
    /// The membership of a user in an organization.
    MembershipId,
    SessionId,
    InvitationId,
}

/// The smallest UUIDv7 of a time, in whole milliseconds: an id begins with 48 bits of Unix
/// milliseconds (RFC 9562, 5.7). No id of an earlier millisecond reaches it.
pub(crate) fn first_of(moment: Timestamp) -> Uuid {
    let millis = u128::try_from(moment.timestamp_millis()).unwrap_or_default();
    Uuid::from_u128(millis << 80)
}

/// The source of ids and of random bytes. Cheap to clone; clones share the
/// counter that keeps ids of one millisecond in order.
#[derive(Clone)]
pub struct Ids {
    clock: Clock,
    context: Arc<std::sync::Mutex<ContextV7>>,
}

impl fmt::Debug for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ids")
    }
}

impl Ids {
    /// The time in the ids is that of `clock`.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            context: Arc::new(std::sync::Mutex::new(ContextV7::new())),
        }
    }

    /// A new UUIDv7 of the current time, greater than all earlier ones from this source.
    #[must_use]
    pub fn next<T: From<Uuid>>(&self) -> T {
        self.next_at(self.clock.now())
    }

    /// A new UUIDv7 of the given time.
    #[must_use]
    pub fn next_at<T: From<Uuid>>(&self, at: Timestamp) -> T {
        let seconds = u64::try_from(at.timestamp()).unwrap_or(0);
        let context = self
            .context
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let time = UuidTime::from_unix(&*context, seconds, at.timestamp_subsec_nanos());
        T::from(Uuid::new_v7(time))
    }

    /// `N` bytes from the random generator of the operating system, fit for keys and nonces.
    #[must_use]
    pub fn random_bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that calls the random generator"
        )]
        getrandom::fill(&mut bytes).expect("the operating system's random generator answers");
        bytes
    }

    /// `length` characters of `0-9A-Za-z`, uniformly distributed.
    #[must_use]
    pub fn alphanumeric(&self, length: usize) -> String {
        const ALPHABET: &[u8; 62] =
            b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        // Larger bytes would make some characters more likely than others.
        const BYTE_BELOW: u8 = 62 * 4;
        let mut text = String::with_capacity(length);
        while text.len() < length {
            let bytes: [u8; 64] = self.random_bytes();
            let fair = bytes.iter().filter(|byte| **byte < BYTE_BELOW);
            let wanted = length - text.len();
            text.extend(
                fair.take(wanted)
                    .map(|byte| char::from(ALPHABET[usize::from(byte % 62)])),
            );
        }
        text
    }

    /// A uniformly distributed number in `0.0..1.0`, for jitter.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        let bits = u64::from_le_bytes(self.random_bytes()) >> 11;
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit an f64 exactly")]
        let numerator = bits as f64;
        numerator / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_a_moment_come_after_its_first_id_and_before_the_next_milliseconds() {
        let now = Clock::system().now();
        let id: Uuid = Ids::new(Clock::system()).next_at(now);
        assert!(first_of(now) < id);
        assert!(id < first_of(now + chrono::TimeDelta::milliseconds(1)));
    }
}
