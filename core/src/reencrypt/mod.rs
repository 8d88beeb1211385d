//! Sealing anew: what lies under an older key is put under the first one, so that the
//! older may go. That holds for what is kept for good, the secrets of accounts and
//! endpoints. What has an end of its own stays as it is: addresses until their messages
//! are deleted, links, kept answers.

mod check;
mod store;

pub use check::{Unopened, check, require_openable};

use secrecy::zeroize::Zeroizing;

use crate::crypto::seal::{Sealed, Sealer};
use crate::db::{OrFault as _, PgPool};
use crate::fault::Fault;

/// Where secrets are kept for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretColumn {
    Credentials,
    /// What provider accounts' calls are verified with.
    EventSecrets,
    /// Signing secrets of webhook endpoints.
    WebhookSecrets,
    /// Those that were replaced and sign still.
    OldWebhookSecrets,
}

impl SecretColumn {
    /// All places.
    pub const ALL: [Self; 4] = [
        Self::Credentials,
        Self::EventSecrets,
        Self::WebhookSecrets,
        Self::OldWebhookSecrets,
    ];

    /// What lies there, for people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Credentials => "credentials of provider accounts",
            Self::EventSecrets => "event secrets of provider accounts",
            Self::WebhookSecrets => "secrets of webhook endpoints",
            Self::OldWebhookSecrets => "replaced secrets of webhook endpoints",
        }
    }

    const fn kind(self) -> Sealed {
        match self {
            Self::Credentials => Sealed::Credentials,
            Self::EventSecrets => Sealed::EventSecrets,
            Self::WebhookSecrets | Self::OldWebhookSecrets => Sealed::WebhookSecret,
        }
    }
}

/// What became of the secrets of one place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resealed {
    /// Those that lie under the first key now and did not before.
    pub done: usize,
    /// Those that no configured key opens.
    pub unreadable: usize,
}

/// Seals anew what lies in a place under another key than the first. May run while
/// everything works, as often as one likes: what somebody changes meanwhile is theirs.
///
/// # Errors
/// A fault when Postgres is away. What was sealed anew stays so.
pub async fn reseal(
    pool: &PgPool,
    sealer: &Sealer,
    place: SecretColumn,
) -> Result<Resealed, Fault> {
    let mut connection = pool.acquire().await.or_fault("seal secrets anew")?;
    let mut found = Resealed::default();
    for old in store::list_others(&mut connection, place, Some(sealer.first_key())).await? {
        let (organization_id, row) = (old.organization_id, old.row);
        let Ok(plain) = sealer.open(organization_id, place.kind(), row, &old.sealed) else {
            found.unreadable += 1;
            continue;
        };
        let plain = Zeroizing::new(plain);
        let new = sealer.seal(organization_id, place.kind(), row, &plain);
        if store::replace(&mut connection, place, &old, &new).await? {
            found.done += 1;
        }
    }
    Ok(found)
}
