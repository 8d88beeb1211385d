//! Sender domains. They belong to a provider account, so they are stored with the account that
//! the import uses. Nothing is added at the provider.

use std::collections::HashSet;

use super::report::{ImportAction, ImportSection, ImportedEntry};
use super::{Import, ImportSource};
use crate::db::OrFault;
use crate::fault::Fault;
use crate::provider::domain::{DomainState, FoundDomain};
use crate::provider_account::store;

impl Import<'_> {
    pub(super) async fn domains(&self, section: &mut ImportSection) -> Result<(), Fault> {
        let found = match self.reader.domains().await {
            Ok(found) => found,
            Err(problem) => {
                section.problem = Some(problem);
                return Ok(());
            }
        };
        let Some(account_id) = self.job.account else {
            let entries = found
                .iter()
                .map(|domain| entry(domain, ImportAction::LeftOut));
            section.entries.extend(entries);
            if !section.entries.is_empty() {
                section.notes.push(without_account(self.job.source));
            }
            return Ok(());
        };
        let organization_id = self.job.organization_id;
        let connection = self.importer.pool.acquire().await;
        let mut connection = connection.or_fault("list an account's domains")?;
        let known = store::list_domains(&mut connection, organization_id, account_id).await?;
        drop(connection);
        let known: HashSet<String> = known.into_iter().map(|domain| domain.domain).collect();
        let mut is_new = false;
        for domain in &found {
            let is_known = known.contains(&domain.domain);
            is_new |= !is_known;
            section.entries.push(entry(
                domain,
                match is_known {
                    true => ImportAction::Unchanged,
                    false => ImportAction::Imported,
                },
            ));
        }
        if is_new && !self.job.is_dry_run {
            let (accounts, origin) = (&self.importer.accounts, &self.job.origin);
            accounts
                .import_domains(organization_id, origin, account_id, &found)
                .await?;
        }
        Ok(())
    }
}

fn entry(domain: &FoundDomain, action: ImportAction) -> ImportedEntry {
    let state = match domain.state {
        DomainState::Verified => "verified there",
        DomainState::Unverified => "not verified there",
        DomainState::Unknown => "its state there is unknown",
    };
    ImportedEntry {
        vendor_id: domain.domain.clone(),
        name: domain.domain.clone(),
        action,
        id: None,
        notes: vec![state.to_owned()],
    }
}

fn without_account(source: ImportSource) -> String {
    let title = source.title();
    match source.provider_type() {
        Some(kind) => format!(
            "Domains belong to a provider account. Connect {title} with POST /v1/providers (providerType {kind}): its domains come with it. Then import with --account."
        ),
        None => format!(
            "Waypost does not send through {title}. Connect the provider that shall send, and add each domain with POST /v1/providers/:id/domains; the answer names the DNS records to publish."
        ),
    }
}
