//! Moving house: takes suppressions, templates, domains and webhooks over from a provider, or
//! from Resend.
//!
//! [`Importer::run`] reads what the vendor has, page by page, and never changes anything there.
//! It writes through the services that requests use, so all of their rules hold. [`translation`]
//! turns templates into ours; [`imported_objects`] remembers what was made of what.
//!
//! An import can be repeated, and goes on where one ended early: addresses and domains are
//! found by themselves, templates by their id at the vendor and the fingerprint of what was
//! imported. A template is recorded in the transaction that creates it, and again when its
//! version is complete. What somebody changed in Waypost meanwhile stays.
//!
//! It deliberately imports no history: no messages, events or statistics.

mod domains;
pub mod imported_objects;
pub mod report;
mod source;
mod suppressions;
mod templates;
pub mod translation;
mod vendor;
mod webhooks;

use url::Url;

use crate::audit::Origin;
use crate::db::PgPool;
use crate::fault::Fault;
use crate::ids::{OrganizationId, ProviderAccountId};
use crate::provider_account::Accounts;
use crate::suppression::Suppressions;
use crate::template::Templates;
use crate::webhook::endpoint::WebhookEndpoints;
use report::{ImportReport, ImportSection};
pub use source::ImportSource;
use vendor::VendorReader;
pub use vendor::{VendorKey, VendorKeyError};

/// What is imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportKind {
    Suppressions,
    Templates,
    Domains,
    Webhooks,
}

impl ImportKind {
    /// All kinds, in the order in which they are imported.
    pub const ALL: [Self; 4] = [
        Self::Suppressions,
        Self::Templates,
        Self::Domains,
        Self::Webhooks,
    ];

    /// The name in the command.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Suppressions => "suppressions",
            Self::Templates => "templates",
            Self::Domains => "domains",
            Self::Webhooks => "webhooks",
        }
    }
}

/// One import.
#[derive(Debug)]
pub struct ImportJob {
    pub organization_id: OrganizationId,
    pub origin: Origin,
    pub source: ImportSource,
    pub vendor: VendorKey,
    /// The account here whose credentials are used; its domains are imported.
    pub account: Option<ProviderAccountId>,
    pub kinds: Vec<ImportKind>,
    /// Only says what would be done.
    pub is_dry_run: bool,
}

/// Imports. The parts are those that requests use.
pub struct Importer {
    pub pool: PgPool,
    pub accounts: Accounts,
    pub suppressions: Suppressions,
    pub templates: Templates,
    pub endpoints: WebhookEndpoints,
    /// Replaces the base URL of Resend's API.
    pub resend_base: Option<Url>,
}

/// An import that is running.
struct Import<'a> {
    importer: &'a Importer,
    job: &'a ImportJob,
    reader: VendorReader<'a>,
}

impl Importer {
    /// Imports, and adds what it did to the report. `tell` gets a line for each step.
    ///
    /// # Errors
    /// A fault. What was done until then is in the report.
    pub async fn run(
        &self,
        job: &ImportJob,
        report: &mut ImportReport,
        tell: &dyn Fn(&str),
    ) -> Result<(), Fault> {
        let import = Import {
            importer: self,
            job,
            reader: VendorReader {
                accounts: &self.accounts,
                resend_base: self.resend_base.as_ref(),
                vendor: &job.vendor,
                source: job.source,
                tell,
            },
        };
        for kind in ImportKind::ALL {
            if !job.kinds.contains(&kind) {
                continue;
            }
            tell(&format!(
                "Reading {} of {}",
                kind.as_str(),
                job.source.title()
            ));
            report.sections.push(ImportSection::new(kind));
            let section = report.sections.last_mut();
            let section = section.expect("a section was just added");
            match kind {
                ImportKind::Suppressions => import.suppressions(section).await?,
                ImportKind::Templates => import.templates(section).await?,
                ImportKind::Domains => import.domains(section).await?,
                ImportKind::Webhooks => import.webhooks(section).await?,
            }
        }
        Ok(())
    }
}
