//! Suppressions: bounces, complaints and those who unsubscribed from all mail.

use std::collections::HashSet;

use super::report::{AddressCounts, ImportSection};
use super::{Import, ImportSource};
use crate::db::OrFault;
use crate::fault::Fault;
use crate::idempotency::single::{Failed, Idempotent};
use crate::provider::suppression_list::{ListPage, ListReason};
use crate::suppression::import::{IMPORT_MAX, ImportEntry, ImportTarget};
use crate::suppression::{SuppressionRefusal, SuppressionSource, store};

/// Addresses that are stored together: pages of some vendors are small.
const STORED_TOGETHER: usize = 5_000;
/// The most pages of all lists.
const PAGES_MAX: usize = 100_000;

impl Import<'_> {
    pub(super) async fn suppressions(&self, section: &mut ImportSection) -> Result<(), Fault> {
        if let Some(note) = not_listed(self.job.source) {
            section.notes.push(note.to_owned());
        }
        section.addresses = Some(AddressCounts::default());
        // An address may be in several lists; a dry run stores none of them.
        let mut seen = HashSet::new();
        let mut next: Option<String> = None;
        let mut waiting = Vec::new();
        for _ in 0..PAGES_MAX {
            let (page, following) = match self.reader.suppressions(next.as_deref()).await {
                Ok(read) => read,
                Err(problem) => {
                    section.problem = Some(problem);
                    return self.store(waiting, &mut seen, section).await;
                }
            };
            let counts = section.addresses.get_or_insert_default();
            counts.unusable += page.unusable as u64;
            waiting.extend(self.entries(&page));
            if waiting.len() >= STORED_TOGETHER {
                let together = std::mem::take(&mut waiting);
                self.store(together, &mut seen, section).await?;
            }
            match following {
                Some(following) => next = Some(following),
                None => return self.store(waiting, &mut seen, section).await,
            }
        }
        section.problem = Some("the lists do not end".to_owned());
        self.store(waiting, &mut seen, section).await
    }

    /// Suppresses those that are not suppressed, and counts all.
    async fn store(
        &self,
        entries: Vec<ImportEntry>,
        seen: &mut HashSet<[u8; 32]>,
        section: &mut ImportSection,
    ) -> Result<(), Fault> {
        let counts = section.addresses.get_or_insert_default();
        for entries in entries.chunks(IMPORT_MAX) {
            let new = self.not_suppressed(entries, seen).await?;
            counts.unchanged += (entries.len() - new.len()) as u64;
            counts.imported += new.len() as u64;
            if !self.job.is_dry_run && !new.is_empty() {
                self.suppress(new).await?;
            }
        }
        Ok(())
    }

    fn entries(&self, page: &ListPage) -> Vec<ImportEntry> {
        let now = self.importer.suppressions.clock.now();
        let listed = page.addresses.iter();
        listed
            .map(|listed| ImportEntry {
                hash: listed.address.hash(),
                source: match listed.reason {
                    ListReason::Bounce => SuppressionSource::Bounce,
                    ListReason::Complaint => SuppressionSource::Complaint,
                    ListReason::Unsubscribe => SuppressionSource::Unsubscribe,
                },
                created_at: listed.since.filter(|since| *since <= now),
            })
            .collect()
    }

    /// Those that are neither suppressed nor seen before.
    async fn not_suppressed(
        &self,
        entries: &[ImportEntry],
        seen: &mut HashSet<[u8; 32]>,
    ) -> Result<Vec<ImportEntry>, Fault> {
        let hashes: Vec<_> = entries.iter().map(|entry| entry.hash).collect();
        let connection = self.importer.pool.acquire().await;
        let mut connection = connection.or_fault("look for suppressions")?;
        let known = store::find_all(&mut connection, self.job.organization_id, &hashes).await?;
        let known: HashSet<[u8; 32]> = known.into_iter().map(|hash| hash.0).collect();
        let entries = entries.iter().copied();
        Ok(entries
            .filter(|entry| !known.contains(&entry.hash.0) && seen.insert(entry.hash.0))
            .collect())
    }

    async fn suppress(&self, entries: Vec<ImportEntry>) -> Result<(), Fault> {
        let target = ImportTarget {
            unsubscribe_group_id: None,
            provider_account_id: self.job.account,
        };
        let once = Idempotent::without_key();
        let (organization_id, origin) = (self.job.organization_id, &self.job.origin);
        let suppressions = &self.importer.suppressions;
        let importing = suppressions.import(organization_id, origin, entries, target, &once);
        match importing.await {
            Ok(_) => Ok(()),
            Err(Failed::Refused(SuppressionRefusal::Fault(fault))) => Err(fault),
            Err(
                Failed::Refused(
                    SuppressionRefusal::NotFound
                    | SuppressionRefusal::Exists
                    | SuppressionRefusal::UnknownGroup,
                )
                | Failed::Repeat(_),
            ) => Err(Fault::internal(
                "import suppressions",
                "no group and no key",
            )),
        }
    }
}

/// What the lists of a vendor do not hold.
fn not_listed(source: ImportSource) -> Option<&'static str> {
    match source {
        ImportSource::Sendgrid => Some(
            "Who unsubscribed from a group alone is not imported: create an unsubscribe group, and import its addresses with POST /v1/suppressions/import.",
        ),
        ImportSource::Postmark => Some(
            "The lists are those of one message stream: repeat the import for each stream, with \"messageStream\" in the credentials.",
        ),
        ImportSource::Mailgun => Some(
            "The lists are those of one domain: repeat the import for each domain. Who unsubscribed from a tag alone is not imported.",
        ),
        ImportSource::Ses => {
            Some("The list is that of one region. Contact lists of SES are not imported.")
        }
        ImportSource::Resend => Some(
            "Contacts who unsubscribed from broadcasts or topics are not in Resend's suppression list.",
        ),
    }
}
