//! Reads from a vendor, with pauses where it asks for them.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};
use url::Url;

use super::ImportSource;
use crate::issue::Issue;
use crate::provider::adapter;
use crate::provider::call::CallStep;
use crate::provider::credentials::Credentials;
use crate::provider::domain::{DomainList, FoundDomain};
use crate::provider::inventory::{
    Inventory, InventoryPage, ListedTemplate, StoredTemplate, StoredWebhook,
};
use crate::provider::resend::ResendApi;
use crate::provider::suppression_list::{ListCursor, ListPage, ListResult};
use crate::provider_account::Accounts;
use crate::secret::{ExposeSecret, Secret};

/// How often a call is made before the import gives up.
const TRIES: u32 = 4;
/// The wait after the first failure; it doubles.
const WAIT: Duration = Duration::from_millis(500);
/// The longest wait for a vendor that names one.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// The most pages of a list.
const PAGES_MAX: usize = 10_000;

/// The key to a vendor.
#[derive(Debug)]
pub enum VendorKey {
    Provider(Credentials),
    Resend(Secret),
}

/// The key is none of this vendor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VendorKeyError(Vec<Issue>);

impl fmt::Display for VendorKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let issues = self.0.iter();
        let issues = issues.map(|issue| format!("{} {}", issue.path, issue.message));
        f.write_str(&issues.collect::<Vec<_>>().join("; "))
    }
}

impl std::error::Error for VendorKeyError {}

impl VendorKey {
    /// Reads a key: the `credentials` of `POST /v1/providers`, or the only secret of a vendor
    /// that has one.
    ///
    /// # Errors
    /// What is wrong with it, without its values.
    pub fn parse(source: ImportSource, text: &Secret) -> Result<Self, VendorKeyError> {
        let text = text.expose_secret().trim();
        let is_object = text.starts_with('{');
        let document: Value = if is_object {
            serde_json::from_str(text).map_err(|_| error("credentials", "must be a JSON object"))?
        } else {
            match source {
                ImportSource::Sendgrid | ImportSource::Resend => json!({ "apiKey": text }),
                ImportSource::Postmark => json!({ "serverToken": text }),
                ImportSource::Mailgun | ImportSource::Ses => {
                    return Err(error("credentials", "must be a JSON object"));
                }
            }
        };
        if let Some(kind) = source.provider_type() {
            let credentials = Credentials::parse(kind, &document).map_err(VendorKeyError)?;
            return Ok(Self::Provider(credentials));
        }
        let key = document["apiKey"].as_str().unwrap_or_default();
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(error("credentials.apiKey", "must be the API key of Resend"));
        }
        Ok(Self::Resend(Secret::from(key.to_owned())))
    }
}

fn error(path: &str, message: &str) -> VendorKeyError {
    VendorKeyError(vec![Issue::new(path, message)])
}

/// Why something was not read, as a sentence.
pub(super) type ReadProblem = String;

/// What could be read.
pub(super) enum ReadResult<T> {
    Found(T),
    /// It is gone since its list was read.
    Missing,
    /// The vendor has nothing of the kind. Why, as a sentence.
    NotOffered(&'static str),
}

pub(super) struct VendorReader<'a> {
    pub(super) accounts: &'a Accounts,
    pub(super) resend_base: Option<&'a Url>,
    pub(super) vendor: &'a VendorKey,
    pub(super) source: ImportSource,
    pub(super) tell: &'a dyn Fn(&str),
}

impl VendorReader<'_> {
    /// A page of the suppression lists, and the mark of the next one.
    pub(super) async fn suppressions(
        &self,
        page: Option<&str>,
    ) -> Result<(ListPage, Option<String>), ReadProblem> {
        let found = self.read(async || match self.vendor {
            VendorKey::Provider(credentials) => {
                let cursor = page.and_then(ListCursor::read).unwrap_or_default();
                let kind = credentials.provider_type();
                let access = self.accounts.access(credentials);
                let step = adapter(kind).suppressions(&access, &cursor);
                match self.accounts.transport.with_long_replies().run(step).await {
                    Ok(result) => of_list(result),
                    Err(error) => undecided(error.to_string()),
                }
            }
            VendorKey::Resend(key) => match self.resend(key) {
                Ok(api) => self.run(api.suppressions(page)).await,
                Err(refused) => refused,
            },
        });
        match found.await? {
            ReadResult::Found(found) => Ok(found),
            ReadResult::Missing => Err(self.missing()),
            ReadResult::NotOffered(why) => Err(why.to_owned()),
        }
    }

    /// All templates, without their content.
    pub(super) async fn templates(&self) -> Result<Vec<ListedTemplate>, ReadProblem> {
        let found = self.pages("templates", async |page| match self.vendor {
            VendorKey::Provider(credentials) => {
                let adapter = adapter(credentials.provider_type());
                self.run(adapter.templates(&self.accounts.access(credentials), page))
                    .await
            }
            VendorKey::Resend(key) => match self.resend(key) {
                Ok(api) => self.run(api.templates(page)).await,
                Err(refused) => refused,
            },
        });
        found.await?.map_err(str::to_owned)
    }

    /// A template with its content.
    pub(super) async fn template(
        &self,
        id: &str,
    ) -> Result<ReadResult<StoredTemplate>, ReadProblem> {
        self.read(async || match self.vendor {
            VendorKey::Provider(credentials) => {
                let adapter = adapter(credentials.provider_type());
                self.run(adapter.template(&self.accounts.access(credentials), id))
                    .await
            }
            VendorKey::Resend(key) => match self.resend(key) {
                Ok(api) => self.run(api.template(id)).await,
                Err(refused) => refused,
            },
        })
        .await
    }

    /// All webhooks, or why there are none to read.
    pub(super) async fn webhooks(
        &self,
    ) -> Result<Result<Vec<StoredWebhook>, &'static str>, ReadProblem> {
        let found = self.pages("webhooks", async |page| match self.vendor {
            VendorKey::Provider(credentials) => {
                let adapter = adapter(credentials.provider_type());
                self.run(adapter.webhooks(&self.accounts.access(credentials)))
                    .await
            }
            VendorKey::Resend(key) => match self.resend(key) {
                Ok(api) => self.run(api.webhooks(page)).await,
                Err(refused) => refused,
            },
        });
        found.await
    }

    /// All domains.
    pub(super) async fn domains(&self) -> Result<Vec<FoundDomain>, ReadProblem> {
        let found = self.pages("domains", async |page| match self.vendor {
            VendorKey::Provider(credentials) => {
                let adapter = adapter(credentials.provider_type());
                let access = self.accounts.access(credentials);
                of_domains(self.accounts.transport.domains(adapter, &access).await)
            }
            VendorKey::Resend(key) => match self.resend(key) {
                Ok(api) => self.run(api.domains(page)).await,
                Err(refused) => refused,
            },
        });
        found.await?.map_err(str::to_owned)
    }

    /// All pages of a list, or why the vendor does not offer it.
    async fn pages<T>(
        &self,
        list: &str,
        ask: impl AsyncFn(Option<&str>) -> Inventory<InventoryPage<T>>,
    ) -> Result<Result<Vec<T>, &'static str>, ReadProblem> {
        let mut all = Vec::new();
        let mut page: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let found = match self.read(async || ask(page.as_deref()).await).await? {
                ReadResult::Found(found) => found,
                ReadResult::Missing => return Err(self.missing()),
                ReadResult::NotOffered(why) => return Ok(Err(why)),
            };
            all.extend(found.items);
            match found.next {
                Some(next) => page = Some(next),
                None => return Ok(Ok(all)),
            }
        }
        let title = self.source.title();
        Err(format!("{title} did not end its list of {list}"))
    }

    fn missing(&self) -> ReadProblem {
        format!("{} has no such list (HTTP 404)", self.source.title())
    }

    fn resend<T>(&self, key: &Secret) -> Result<ResendApi, Inventory<T>> {
        let now = self.accounts.clock.now();
        ResendApi::new(key, self.resend_base, now).map_err(Inventory::from)
    }

    async fn run<T>(&self, step: CallStep<Inventory<T>>) -> Inventory<T> {
        let transport = self.accounts.transport.with_long_replies();
        match transport.run(step).await {
            Ok(found) => found,
            Err(error) => undecided(error.to_string()),
        }
    }

    /// Reads until there is a decided answer, with a wait between tries.
    async fn read<T>(
        &self,
        call: impl AsyncFn() -> Inventory<T>,
    ) -> Result<ReadResult<T>, ReadProblem> {
        let title = self.source.title();
        let mut wait = WAIT;
        let mut tries = 1;
        loop {
            let (reason, asked) = match call().await {
                Inventory::Found(found) => return Ok(ReadResult::Found(found)),
                Inventory::Missing => return Ok(ReadResult::Missing),
                Inventory::NotOffered(why) => return Ok(ReadResult::NotOffered(why)),
                Inventory::Refused { reason } => return Err(format!("{title} refused: {reason}")),
                Inventory::Undecided {
                    reason,
                    retry_after,
                } => (reason, retry_after),
            };
            if tries == TRIES {
                return Err(format!("{title} gave no usable answer: {reason}"));
            }
            let pause = asked.unwrap_or(wait).min(WAIT_MAX);
            let seconds = pause.as_secs_f32();
            (self.tell)(&format!(
                "{title}: {reason}. Trying again in {seconds:.1} s"
            ));
            tokio::time::sleep(pause).await;
            wait *= 2;
            tries += 1;
        }
    }
}

fn undecided<T>(reason: String) -> Inventory<T> {
    Inventory::Undecided {
        reason,
        retry_after: None,
    }
}

fn of_list(result: ListResult) -> Inventory<(ListPage, Option<String>)> {
    match result {
        ListResult::Page(mut page) => {
            let next = page.next.take().map(|cursor| cursor.write());
            Inventory::Found((page, next))
        }
        ListResult::NotOffered => {
            Inventory::NotOffered("This provider keeps no suppression lists.")
        }
        ListResult::NoSuchPage => Inventory::Missing,
        ListResult::Refused { reason } => Inventory::Refused { reason },
        ListResult::Undecided { reason } => undecided(reason),
    }
}

fn of_domains(list: DomainList) -> Inventory<InventoryPage<FoundDomain>> {
    match list {
        DomainList::Visible(items) => Inventory::Found(InventoryPage { items, next: None }),
        DomainList::NotVisible { reason } => Inventory::Refused { reason },
        DomainList::Undecided { reason } => undecided(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_text_or_the_credentials_of_an_account() {
        let parse = |source, text: &str| {
            let parsed = VendorKey::parse(source, &Secret::from(text.to_owned()));
            parsed.map(drop).map_err(|error| error.to_string())
        };
        for (source, text) in [
            (ImportSource::Sendgrid, "SG.secret\n"),
            (
                ImportSource::Sendgrid,
                r#"{"apiKey": "SG.secret", "region": "eu"}"#,
            ),
            (ImportSource::Postmark, "secret"),
            (ImportSource::Resend, "re_secret"),
            (ImportSource::Resend, r#"{"apiKey": "re_secret"}"#),
            (
                ImportSource::Mailgun,
                r#"{"apiKey": "secret", "domain": "mg.example.com"}"#,
            ),
        ] {
            assert_eq!(parse(source, text), Ok(()), "{source}");
        }
        for (source, text, part) in [
            (ImportSource::Sendgrid, "", "credentials.apiKey"),
            (
                ImportSource::Resend,
                "re secret",
                "credentials.apiKey must be",
            ),
            (ImportSource::Resend, "", "credentials.apiKey must be"),
            (
                ImportSource::Mailgun,
                "secret",
                "credentials must be a JSON object",
            ),
            (
                ImportSource::Ses,
                "{\"accessKeyId\": ",
                "credentials must be a JSON object",
            ),
            (ImportSource::Ses, "{}", "credentials.accessKeyId"),
        ] {
            let error = parse(source, text).unwrap_err();
            assert!(error.contains(part), "{source}: {error}");
            assert!(!error.contains("secret\""), "{error}");
        }
    }
}
