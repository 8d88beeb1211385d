//! Checks whether the configured encryption keys open the stored secrets. With a wrong key, or
//! another key with the same id, no mail could be sent.
//!
//! The check opens the permanent secrets. They are few, and every provider account has one, so
//! it need not open addresses, which are under the same keys.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::{SecretColumn, store};
use crate::crypto::seal::{Sealer, key_id_of};
use crate::db::{OrFault as _, PgPool};
use crate::fault::Fault;

/// How long the check at the start of a process may take. After that the process starts
/// without it, and `/readyz` reports the result later.
const START_TIMEOUT: Duration = Duration::from_secs(2);

/// The number of secrets of one key id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct KeyCheck {
    opened: usize,
    unopened: usize,
}

/// The secrets that the keys do not open, by key id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unopened(BTreeMap<u16, KeyCheck>);

impl Unopened {
    fn note(&mut self, key: u16, is_opened: bool) {
        let counts = self.0.entry(key).or_default();
        if is_opened {
            counts.opened += 1;
        } else {
            counts.unopened += 1;
        }
    }

    /// How many secrets the keys do not open.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.values().map(|counts| counts.unopened).sum()
    }

    /// Whether a key is missing or wrong. If a key opens most of its secrets, the others were
    /// changed in the database, which is no reason to stop all mail.
    #[must_use]
    pub fn is_wrong(&self) -> bool {
        let mut counts_by_key = self.0.values();
        counts_by_key.any(|counts| counts.unopened > 0 && counts.unopened >= counts.opened)
    }
}

impl fmt::Display for Unopened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secrets = match self.count() {
            1 => "1 secret".to_owned(),
            count => format!("{count} secrets"),
        };
        let keys = self.0.iter().filter(|(_, counts)| counts.unopened > 0);
        let keys: Vec<String> = keys.map(|(key, _)| key.to_string()).collect();
        let (word, keys) = (
            if keys.len() == 1 { "key" } else { "keys" },
            keys.join(", "),
        );
        write!(
            f,
            "{secrets} cannot be decrypted with WAYPOST_ENCRYPTION_KEYS: encrypted with {word} {keys}, missing there or different"
        )
    }
}

/// Opens every permanent secret.
///
/// # Errors
/// A fault if Postgres is away or not migrated.
pub async fn check(pool: &PgPool, sealer: &Sealer) -> Result<Unopened, Fault> {
    let mut connection = pool.acquire().await.or_fault("check the sealed secrets")?;
    let mut unopened = Unopened::default();
    for column in SecretColumn::ALL {
        for row in store::list_not_under(&mut connection, column, None).await? {
            let opened = sealer.open(row.organization_id, column.kind(), row.row, &row.sealed);
            unopened.note(key_id_of(&row.sealed), opened.is_ok());
        }
    }
    Ok(unopened)
}

/// Refuses to start with wrong encryption keys. Does nothing if Postgres is away or not
/// migrated.
///
/// # Errors
/// A fault with the number of secrets that the keys do not open.
pub async fn require_openable(pool: &PgPool, sealer: &Sealer) -> Result<(), Fault> {
    let checked = tokio::time::timeout(START_TIMEOUT, check(pool, sealer)).await;
    let Ok(Ok(unopened)) = checked else {
        return Ok(());
    };
    if unopened.is_wrong() {
        return Err(Fault::internal("start", unopened.to_string()));
    }
    if unopened.count() > 0 {
        tracing::error!("{unopened}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(counts_by_key: &[(u16, usize, usize)]) -> Unopened {
        let counts_by_key = counts_by_key.iter().map(|(key, opened, unopened)| {
            let (opened, unopened) = (*opened, *unopened);
            (*key, KeyCheck { opened, unopened })
        });
        Unopened(counts_by_key.collect())
    }

    #[test]
    fn a_key_is_wrong_if_it_opens_less_than_half_of_its_secrets() {
        for (counts_by_key, is_wrong) in [
            (&[][..], false),
            (&[(1, 77, 0)], false),
            (&[(1, 0, 77)], true),
            (&[(1, 0, 1)], true),
            // An account was connected with the wrong key.
            (&[(1, 1, 77)], true),
            (&[(1, 77, 1)], false),
            (&[(1, 0, 3), (2, 500, 0)], true),
        ] {
            assert_eq!(
                counted(counts_by_key).is_wrong(),
                is_wrong,
                "{counts_by_key:?}"
            );
        }
    }

    #[test]
    fn the_message_contains_the_number_of_secrets_and_the_key_ids() {
        let message = counted(&[(1, 0, 70), (2, 5, 0), (7, 0, 7)]).to_string();
        let begin =
            "77 secrets cannot be decrypted with WAYPOST_ENCRYPTION_KEYS: encrypted with keys 1, 7";
        assert!(message.starts_with(begin), "{message}");
        assert!(
            counted(&[(1, 0, 1)])
                .to_string()
                .starts_with("1 secret cannot")
        );
    }
}
