//! Imports the suppression lists that an account's provider keeps, page by page. Each page
//! is stored before the next one is read, so an import that ends early loses nothing, and a
//! repeated one skips what is there.

use std::time::Duration;

use tokio::time::Instant;

use super::{AccountRefusal, Accounts};
use crate::audit::Origin;
use crate::fault::Fault;
use crate::idempotency::single::{Failed, Idempotent};
use crate::ids::{OrganizationId, ProviderAccountId};
use crate::provider::adapter;
use crate::provider::credentials::Credentials;
use crate::provider::kind::ProviderType;
use crate::provider::suppression_list::{ListCursor, ListPage, ListReason, ListResult};
use crate::suppression::import::{IMPORT_MAX, ImportEntry, ImportTarget};
use crate::suppression::{SuppressionRefusal, SuppressionSource, Suppressions};

/// The most pages that one request reads.
const PAGES_MAX: usize = 100;
/// How long one request reads pages. The call under way may take longer by its own time-out.
const READING_MAX: Duration = Duration::from_secs(30);

/// What an import did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListsImported {
    /// Newly suppressed addresses.
    pub imported: u64,
    /// Addresses that were already suppressed.
    pub already_there: u64,
    /// Entries that name no address, or that hold for some mail only.
    pub unusable: u64,
    /// Where the next request continues. `None` if all lists were read.
    pub next: Option<ListCursor>,
}

/// Why an import ended early.
#[derive(Debug)]
pub enum ListImportRefusal {
    /// The account does not exist.
    NotFound,
    /// The provider keeps no lists that can be read.
    NotOffered(ProviderType),
    /// The cursor is not one of this account's imports.
    NoSuchPage,
    Refused {
        provider_type: ProviderType,
        reason: String,
    },
    /// The provider gave no usable reply.
    Undecided {
        provider_type: ProviderType,
        reason: String,
    },
    Fault(Fault),
}

impl From<Fault> for ListImportRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<AccountRefusal> for ListImportRefusal {
    fn from(refusal: AccountRefusal) -> Self {
        match refusal {
            AccountRefusal::NotFound => Self::NotFound,
            AccountRefusal::InvalidCredentials {
                provider_type,
                reason,
            } => Self::Refused {
                provider_type,
                reason,
            },
            AccountRefusal::Undecided {
                provider_type,
                reason,
            } => Self::Undecided {
                provider_type,
                reason,
            },
            AccountRefusal::Fault(fault) => Self::Fault(fault),
        }
    }
}

impl Accounts {
    /// Imports an account's lists from `cursor` on, for up to `PAGES_MAX` pages and
    /// `READING_MAX`.
    ///
    /// # Errors
    /// Why it ended early, with what was done until then. Its cursor is that of the page
    /// that failed.
    pub async fn import_suppressions(
        &self,
        suppressions: &Suppressions,
        organization_id: OrganizationId,
        origin: &Origin,
        id: ProviderAccountId,
        cursor: Option<ListCursor>,
    ) -> Result<ListsImported, (ListImportRefusal, ListsImported)> {
        let started = Instant::now();
        let mut done = ListsImported {
            next: Some(cursor.unwrap_or_default()),
            ..ListsImported::default()
        };
        let opening = self.open_for_lists(organization_id, id).await;
        let (credentials, _permit) = match opening {
            Ok(opened) => opened,
            Err(refusal) => return Err((refusal, done)),
        };
        let target = ImportTarget {
            unsubscribe_group_id: None,
            provider_account_id: Some(id),
        };
        for _ in 0..PAGES_MAX {
            let Some(cursor) = done.next.clone() else {
                break;
            };
            if started.elapsed() >= READING_MAX {
                break;
            }
            let page = match self.read_page(&credentials, &cursor).await {
                Ok(page) => page,
                Err(refusal) => return Err((refusal, done)),
            };
            let (next, unusable) = (page.next.clone(), page.unusable as u64);
            let stored = store_page(suppressions, organization_id, origin, page, target);
            if let Err(fault) = stored.await.map(|stored| done.add(stored)) {
                return Err((fault.into(), done));
            }
            done.unusable += unusable;
            done.next = next;
        }
        Ok(done)
    }

    async fn open_for_lists(
        &self,
        organization_id: OrganizationId,
        id: ProviderAccountId,
    ) -> Result<(Credentials, crate::organization::limiter::TenantPermit), ListImportRefusal> {
        let (_, credentials) = self.open(organization_id, id).await?;
        let doing = "import suppressions from the provider";
        let permit = self.check_limiter.acquire_timeout(organization_id, doing);
        Ok((credentials, permit.await?))
    }

    async fn read_page(
        &self,
        credentials: &Credentials,
        cursor: &ListCursor,
    ) -> Result<ListPage, ListImportRefusal> {
        let provider_type = credentials.provider_type();
        let step = adapter(provider_type).suppressions(&self.access(credentials), cursor);
        match self.transport.with_long_replies().run(step).await {
            Ok(ListResult::Page(page)) => Ok(page),
            Ok(ListResult::NotOffered) => Err(ListImportRefusal::NotOffered(provider_type)),
            Ok(ListResult::NoSuchPage) => Err(ListImportRefusal::NoSuchPage),
            Ok(ListResult::Refused { reason }) => Err(ListImportRefusal::Refused {
                provider_type,
                reason,
            }),
            Ok(ListResult::Undecided { reason }) => Err(ListImportRefusal::Undecided {
                provider_type,
                reason,
            }),
            Err(error) => Err(ListImportRefusal::Undecided {
                provider_type,
                reason: error.to_string(),
            }),
        }
    }
}

/// Newly suppressed addresses, and those that were already suppressed.
#[derive(Debug, Clone, Copy, Default)]
struct StoredPage {
    imported: usize,
    already_there: usize,
}

impl ListsImported {
    fn add(&mut self, stored: StoredPage) {
        self.imported += stored.imported as u64;
        self.already_there += stored.already_there as u64;
    }
}

/// Stores the addresses of a page, in as many transactions as imports of this size need.
async fn store_page(
    suppressions: &Suppressions,
    organization_id: OrganizationId,
    origin: &Origin,
    page: ListPage,
    target: ImportTarget,
) -> Result<StoredPage, Fault> {
    let mut stored = StoredPage::default();
    let now = suppressions.clock.now();
    let entries = page.addresses.iter().map(|listed| ImportEntry {
        hash: listed.address.hash(),
        source: match listed.reason {
            ListReason::Bounce => SuppressionSource::Bounce,
            ListReason::Complaint => SuppressionSource::Complaint,
            ListReason::Unsubscribe => SuppressionSource::Unsubscribe,
        },
        created_at: listed.since.filter(|since| *since <= now),
    });
    let entries: Vec<ImportEntry> = entries.collect();
    for chunk in entries.chunks(IMPORT_MAX) {
        let once = Idempotent::without_key();
        let importing = suppressions.import(organization_id, origin, chunk.to_vec(), target, &once);
        let imported = importing.await.map_err(|failed| match failed {
            Failed::Refused(SuppressionRefusal::Fault(fault)) => fault,
            Failed::Refused(
                SuppressionRefusal::NotFound
                | SuppressionRefusal::Exists
                | SuppressionRefusal::UnknownGroup,
            )
            | Failed::Repeat(_) => Fault::internal("import suppressions", "no group and no key"),
        })?;
        stored.imported += imported.imported;
        stored.already_there += imported.skipped;
    }
    Ok(stored)
}
