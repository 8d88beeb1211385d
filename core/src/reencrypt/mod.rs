//! Re-encryption after a key rotation: secrets under an older key are sealed again with the
//! first key, so that the operator can remove the older one. This covers the permanent
//! secrets, those of provider accounts, webhook endpoints and second factors. Values that expire stay under
//! the older key: addresses until their messages are deleted, links, stored answers.

mod check;
mod store;

pub use check::{Unopened, check, require_openable};

use secrecy::zeroize::Zeroizing;

use crate::crypto::seal::{Sealed, Sealer};
use crate::db::{OrFault as _, PgPool};
use crate::fault::Fault;

/// A column with permanent secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretColumn {
    Credentials,
    /// The secrets that verify the events of provider accounts.
    EventSecrets,
    /// The signing secrets of webhook endpoints.
    WebhookSecrets,
    /// The replaced signing secrets in their grace period.
    OldWebhookSecrets,
    /// The secrets of the users' second factors.
    TotpSecrets,
}

impl SecretColumn {
    /// All columns.
    pub const ALL: [Self; 5] = [
        Self::Credentials,
        Self::EventSecrets,
        Self::WebhookSecrets,
        Self::OldWebhookSecrets,
        Self::TotpSecrets,
    ];

    /// The content of the column, for the operator.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Credentials => "credentials of provider accounts",
            Self::EventSecrets => "event secrets of provider accounts",
            Self::WebhookSecrets => "secrets of webhook endpoints",
            Self::OldWebhookSecrets => "replaced secrets of webhook endpoints",
            Self::TotpSecrets => "second factors of users",
        }
    }

    const fn kind(self) -> Sealed {
        match self {
            Self::Credentials => Sealed::Credentials,
            Self::EventSecrets => Sealed::EventSecrets,
            Self::WebhookSecrets | Self::OldWebhookSecrets => Sealed::WebhookSecret,
            Self::TotpSecrets => Sealed::TotpSecret,
        }
    }
}

/// The result of the re-encryption of one column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reencrypted {
    /// Secrets that were sealed again with the first key.
    pub done: usize,
    /// Secrets that no configured key opens.
    pub unreadable: usize,
}

/// Seals all secrets of a column that are under another key again with the first key. It can
/// run at any time and repeatedly. A secret that is changed at the same time keeps its new
/// value.
///
/// # Errors
/// A fault if Postgres is away. The secrets re-encrypted so far stay so.
pub async fn reencrypt(
    pool: &PgPool,
    sealer: &Sealer,
    column: SecretColumn,
) -> Result<Reencrypted, Fault> {
    let mut connection = pool.acquire().await.or_fault("re-encrypt secrets")?;
    let mut found = Reencrypted::default();
    for old in store::list_not_under(&mut connection, column, Some(sealer.first_key())).await? {
        let (organization_id, row) = (old.organization_id, old.row);
        let Ok(plain) = sealer.open(organization_id, column.kind(), row, &old.sealed) else {
            found.unreadable += 1;
            continue;
        };
        let plain = Zeroizing::new(plain);
        let new = sealer.seal(organization_id, column.kind(), row, &plain);
        if store::replace(&mut connection, column, &old, &new).await? {
            found.done += 1;
        }
    }
    Ok(found)
}
