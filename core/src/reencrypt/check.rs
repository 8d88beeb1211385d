//! Whether the configured keys open what is sealed. With another key, or another one of the
//! same id, nothing could be sent, and nothing else would say so.
//!
//! What is opened to find out are the secrets that are kept for good: few, and every
//! account has one, so addresses that lie under the same keys need not be looked at.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::{SecretColumn, store};
use crate::crypto::seal::{Sealer, key_of};
use crate::db::{OrFault as _, PgPool};
use crate::fault::Fault;

/// How long a start waits for Postgres to answer. Where it does not, the process starts
/// without it, and its readiness says later what is found.
const START_PATIENCE: Duration = Duration::from_secs(2);

/// The secrets of one key id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct KeyCheck {
    opened: usize,
    unopened: usize,
}

/// What the keys do not open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unopened(BTreeMap<u16, KeyCheck>);

impl Unopened {
    fn note(&mut self, key: u16, is_opened: bool) {
        let tally = self.0.entry(key).or_default();
        if is_opened {
            tally.opened += 1;
        } else {
            tally.unopened += 1;
        }
    }

    /// How many secrets are not opened.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.values().map(|tally| tally.unopened).sum()
    }

    /// Whether a key must be the wrong one, or missing. That of many secrets one does not
    /// open under a key that opens the others says that somebody changed that one, which is
    /// no reason to let no mail go.
    #[must_use]
    pub fn is_wrong(&self) -> bool {
        let mut tallies = self.0.values();
        tallies.any(|tally| tally.unopened > 0 && tally.unopened >= tally.opened)
    }
}

impl fmt::Display for Unopened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secrets = match self.count() {
            1 => "1 secret".to_owned(),
            count => format!("{count} secrets"),
        };
        let keys = self.0.iter().filter(|(_, tally)| tally.unopened > 0);
        let keys: Vec<String> = keys.map(|(key, _)| key.to_string()).collect();
        let (word, keys) = (
            if keys.len() == 1 { "key" } else { "keys" },
            keys.join(", "),
        );
        write!(
            f,
            "{secrets} cannot be opened by WAYPOST_ENCRYPTION_KEYS: sealed with {word} {keys}, which is missing there or another one"
        )
    }
}

/// Opens every secret that is kept for good.
///
/// # Errors
/// A fault when Postgres is away or not migrated.
pub async fn check(pool: &PgPool, sealer: &Sealer) -> Result<Unopened, Fault> {
    let mut connection = pool.acquire().await.or_fault("look at what is sealed")?;
    let mut unopened = Unopened::default();
    for place in SecretColumn::ALL {
        for row in store::list_others(&mut connection, place, None).await? {
            let opened = sealer.open(row.organization_id, place.kind(), row.row, &row.sealed);
            unopened.note(key_of(&row.sealed), opened.is_ok());
        }
    }
    Ok(unopened)
}

/// Refuses a start with the wrong keys. Where Postgres is away or not migrated nothing is
/// known, and nothing refused.
///
/// # Errors
/// A fault that says how many secrets would not open.
pub async fn require_openable(pool: &PgPool, sealer: &Sealer) -> Result<(), Fault> {
    let checked = tokio::time::timeout(START_PATIENCE, check(pool, sealer)).await;
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

    fn tallied(tallies: &[(u16, usize, usize)]) -> Unopened {
        let tallies = tallies.iter().map(|(key, opened, unopened)| {
            let (opened, unopened) = (*opened, *unopened);
            (*key, KeyCheck { opened, unopened })
        });
        Unopened(tallies.collect())
    }

    #[test]
    fn a_key_is_wrong_where_most_do_not_open_with_it() {
        for (tallies, is_wrong) in [
            (&[][..], false),
            (&[(1, 77, 0)], false),
            (&[(1, 0, 77)], true),
            (&[(1, 0, 1)], true),
            // Somebody connected an account since.
            (&[(1, 1, 77)], true),
            (&[(1, 77, 1)], false),
            (&[(1, 0, 3), (2, 500, 0)], true),
        ] {
            assert_eq!(tallied(tallies).is_wrong(), is_wrong, "{tallies:?}");
        }
    }

    #[test]
    fn it_says_how_many_and_under_which_keys() {
        let said = tallied(&[(1, 0, 70), (2, 5, 0), (7, 0, 7)]).to_string();
        let begin = "77 secrets cannot be opened by WAYPOST_ENCRYPTION_KEYS: sealed with keys 1, 7";
        assert!(said.starts_with(begin), "{said}");
        assert!(
            tallied(&[(1, 0, 1)])
                .to_string()
                .starts_with("1 secret cannot")
        );
    }
}
