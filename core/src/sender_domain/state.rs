//! Whether the records of an account were there, and are gone. A record counts once it was
//! found: one that was never published, or that Waypost compares in another way than the
//! provider, breaks nothing. Pure.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::record::FoundStatus;
use super::report::AccountReport;
use crate::clock::Timestamp;
use crate::provider::domain::DnsRecord;

/// How much later a second check must say the same before a domain counts as broken: longer
/// than a change of records usually takes.
pub const CONFIRM_AFTER: TimeDelta = TimeDelta::minutes(10);
/// Bytes of a record's hash.
const KEY_BYTES: usize = 12;

/// What earlier checks found of an account's records of a domain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FoundState {
    /// Hashes of the wanted records that were found once, sorted.
    pub in_place: Vec<String>,
    /// When a check first missed one of them.
    pub missed_since: Option<Timestamp>,
    /// When a second check confirmed it.
    pub broken_since: Option<Timestamp>,
}

/// A change that others learn of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundChange {
    Broken,
    /// All records that were there are there again.
    Restored,
}

impl FoundState {
    /// Records the result of a check.
    pub fn advance(&mut self, report: &AccountReport, now: Timestamp) -> Option<FoundChange> {
        let is_lost = |status| matches!(status, FoundStatus::Mismatch | FoundStatus::Missing);
        let (mut any_lost, mut any_unknown, mut in_place) = (false, false, Vec::new());
        for (record, found) in report.required() {
            let key = key(record);
            let was_there = self.in_place.binary_search(&key).is_ok();
            any_lost |= was_there && is_lost(found.status);
            any_unknown |= was_there && found.status == FoundStatus::Unknown;
            if was_there || found.status == FoundStatus::Match {
                in_place.push(key);
            }
        }
        in_place.sort();
        in_place.dedup();
        self.in_place = in_place;
        if any_lost {
            let since = *self.missed_since.get_or_insert(now);
            let is_confirmed = now - since >= CONFIRM_AFTER;
            if self.broken_since.is_none() && is_confirmed {
                self.broken_since = Some(now);
                return Some(FoundChange::Broken);
            }
            return None;
        }
        if any_unknown {
            return None;
        }
        self.missed_since = None;
        self.broken_since.take().map(|_| FoundChange::Restored)
    }

    /// The records that were there and are not now.
    pub fn lost<'a>(
        &'a self,
        report: &'a AccountReport,
    ) -> impl Iterator<Item = (&'a DnsRecord, FoundStatus)> {
        report
            .required()
            .filter(|(record, found)| {
                let was_there = self.in_place.binary_search(&key(record)).is_ok();
                was_there && matches!(found.status, FoundStatus::Mismatch | FoundStatus::Missing)
            })
            .map(|(record, found)| (record, found.status))
    }

    /// Whether a second check shall tell whether the domain is broken.
    #[must_use]
    pub fn is_to_confirm(&self) -> bool {
        self.missed_since.is_some() && self.broken_since.is_none()
    }
}

/// Stands for a wanted record with its value: if the provider wants another value, that is
/// another record, which was not there yet.
fn key(record: &DnsRecord) -> String {
    let name = super::look_ups::host_name(&record.name);
    let digest = Sha256::new()
        .chain_update(record.record_type.name())
        .chain_update(b"\0")
        .chain_update(name)
        .chain_update(b"\0")
        .chain_update(&record.value)
        .finalize();
    hex::encode(&digest[..KEY_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{DomainId, ProviderAccountId};
    use crate::provider::domain::{DnsPurpose, DnsRecordType, DnsStatus, DomainState};
    use crate::provider::kind::ProviderType;
    use crate::sender_domain::AccountDomain;
    use crate::sender_domain::record::FoundRecord;
    use uuid::Uuid;

    fn report(statuses: &[(&str, FoundStatus)]) -> AccountReport {
        let record = |name: &str| DnsRecord {
            record_type: DnsRecordType::Txt,
            name: name.to_owned(),
            value: "p=key".to_owned(),
            priority: None,
            purpose: DnsPurpose::Dkim,
            status: DnsStatus::Verified,
        };
        AccountReport {
            account: AccountDomain {
                id: DomainId(Uuid::nil()),
                provider_account_id: ProviderAccountId(Uuid::nil()),
                provider_type: ProviderType::Mailgun,
                display_name: "Main".to_owned(),
                domain: "example.com".to_owned(),
                state: DomainState::Verified,
                records: statuses.iter().map(|(name, _)| record(name)).collect(),
            },
            found: statuses
                .iter()
                .map(|(_, status)| FoundRecord {
                    status: *status,
                    found: Vec::new(),
                })
                .collect(),
        }
    }

    /// Each step is a minute, the record's status then, and the change that follows.
    #[test]
    fn only_what_was_there_breaks_and_only_after_a_second_check() {
        use FoundStatus::{Match, Mismatch, Missing, Unknown};
        let broken = Some(FoundChange::Broken);
        let restored = Some(FoundChange::Restored);
        for steps in [
            // Never there.
            &[
                (0, Missing, None),
                (20, Mismatch, None),
                (40, Unknown, None),
            ][..],
            &[
                (0, Match, None),
                (20, Missing, None),
                (30, Missing, broken),
                (50, Match, restored),
            ],
            // Too soon after the first.
            &[
                (0, Match, None),
                (20, Missing, None),
                (29, Mismatch, None),
                (30, Match, None),
            ],
            // A failure neither breaks nor restores.
            &[(0, Match, None), (1, Unknown, None), (99, Unknown, None)],
            &[
                (0, Match, None),
                (1, Missing, None),
                (5, Unknown, None),
                (11, Missing, broken),
            ],
            &[
                (0, Match, None),
                (1, Missing, None),
                (11, Missing, broken),
                (12, Unknown, None),
            ],
            // It is said once.
            &[
                (0, Match, None),
                (1, Missing, None),
                (11, Missing, broken),
                (99, Missing, None),
            ],
            // A match between two failures begins anew.
            &[
                (0, Match, None),
                (1, Missing, None),
                (2, Match, None),
                (12, Missing, None),
            ],
        ] {
            let mut state = FoundState::default();
            for (minute, status, expected) in steps {
                let now = Timestamp::UNIX_EPOCH + TimeDelta::minutes(*minute);
                let change = state.advance(&report(&[("a.example.com", *status)]), now);
                assert_eq!(change, *expected, "minute {minute} of {steps:?}");
            }
        }
    }

    #[test]
    fn a_new_record_does_not_break_what_others_do() {
        let now = Timestamp::UNIX_EPOCH;
        let later = now + TimeDelta::hours(1);
        let mut state = FoundState::default();
        assert_eq!(
            state.advance(&report(&[("a", FoundStatus::Match)]), now),
            None
        );
        let both = report(&[("a", FoundStatus::Match), ("b", FoundStatus::Missing)]);
        assert_eq!(state.advance(&both, now), None);
        assert_eq!(state.advance(&both, later), None);
        assert!(!state.is_to_confirm());
        // A record that is no longer wanted is forgotten.
        let other = report(&[("b", FoundStatus::Missing)]);
        assert_eq!(state.advance(&other, later), None);
        assert_eq!(state.in_place.len(), 0);
    }
}
