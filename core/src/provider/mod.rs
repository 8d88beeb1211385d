//! Providers: the services that Waypost sends mail through.
//!
//! An [`Adapter`] knows the wire format of one provider and does no I/O: it builds the
//! requests and reads the replies, so tests need no server and all adapters read alike.
//! [`transport`] sends the requests. Replies are normalised at once ([`outcome`],
//! [`domain`]). SMTP has no requests and replies as values, so the transport passes its
//! conversations to [`smtp`].
//!
//! Every mail carries our ids to the provider ([`mail::TAG_MESSAGE`] and the constants next
//! to it), because its events must find their recipient even if the reply to the send was
//! lost. The provider's own open and click tracking is switched off: Waypost tracks both
//! itself.
//!
//! # How to add a provider
//! 1. Collect its wire facts with their sources, as for the existing providers.
//! 2. Add a variant to [`kind::ProviderType`] and a label to the Postgres type
//!    `provider_type` (in a migration of its own). Every `match` that must decide
//!    something about the new type now fails to compile.
//! 3. Add its variant to [`credentials::Credentials`], with a reader in `Fields`. The
//!    reader checks every value that goes into a URL or a header.
//! 4. Write `provider/<name>.rs` with an [`Adapter`], starting with the send. Cite the
//!    source of every fact. Decide whom each refusal blames, and what a truncated reply
//!    proves ([`Adapter::status_is_proof`]).
//! 5. Return it from [`adapter`].
//! 6. Read its events in `inbound/<name>.rs`, by the ids that the send carries, and call
//!    the reader from [`inbound::receive`]: verify first, then read.
//! 7. If its API manages domains or webhooks, implement those conversations
//!    ([`Adapter::add_domain`] and the methods after it). If it has a search that shows our
//!    ids, implement [`Adapter::look_up`] for mails whose reply was lost. If it keeps
//!    suppression lists, implement [`Adapter::suppressions`]; if it stores templates or
//!    webhooks, [`Adapter::templates`] and the methods after it.
//! 8. If one call can send several mails, implement [`batch::Batching`].
//! 9. Add its rows to `tests/it/adapters.rs`, and its API to the simulator.

pub mod batch;
pub mod call;
pub mod credentials;
pub mod domain;
pub mod event;
pub mod event_secrets;
mod files;
mod identities;
pub mod inbound;
pub mod inventory;
pub mod kind;
pub mod limits;
pub mod lookup;
pub mod mail;
mod mailgun;
pub mod management;
pub mod outcome;
mod postmark;
pub mod reach;
pub mod region;
pub mod resend;
mod retry_after;
mod sendgrid;
pub mod ses;
pub mod smtp;
pub mod suppression_list;
pub mod transport;

use std::collections::HashMap;

use url::Url;

use crate::address::AddressHash;
use crate::clock::Timestamp;
use batch::Batching;
use call::{CallStep, ProviderCall, ProviderReply};
use credentials::Credentials;
use domain::DomainList;
use inventory::{Inventory, InventoryPage, ListedTemplate, StoredTemplate, StoredWebhook};
use kind::ProviderType;
use limits::{MailLimits, MailShape};
use lookup::{LookupResult, MessageQuery};
use mail::{OutgoingMail, Unsendable};
use management::{DomainResult, EventTarget, Registration};
use outcome::{CredentialCheck, SendOutcome};
use suppression_list::{ListCursor, ListResult};

/// The wire format of one provider: requests out, replies in, no I/O.
pub trait Adapter: Send + Sync {
    /// Checks whether the provider accepts the credentials and allows them to send. Sends
    /// no mail.
    fn check(&self, access: &AccountAccess<'_>) -> CallStep<CredentialCheck>;

    /// Lists the account's domains with their DNS records, bounded by
    /// [`domain::DOMAINS_MAX`] and [`domain::DOMAIN_DETAILS_MAX`].
    fn domains(&self, access: &AccountAccess<'_>) -> CallStep<DomainList>;

    /// What the provider takes of a mail.
    fn limits(&self) -> &'static MailLimits;

    /// Why the provider cannot carry a mail of this shape; `None` if it can. It completes
    /// "the provider cannot carry the message: …".
    fn refuse(&self, shape: &MailShape<'_>) -> Option<String> {
        self.limits().refuse(shape)
    }

    /// The recipients of a mail that an accepting reply names as not sent to, each with
    /// its outcome.
    fn refused_recipients(
        &self,
        _mail: &OutgoingMail,
        _reply: &ProviderReply,
    ) -> Vec<(AddressHash, SendOutcome)> {
        Vec::new()
    }

    /// The request that sends one mail.
    ///
    /// # Errors
    /// Why the mail cannot be put into a request.
    fn send(
        &self,
        access: &AccountAccess<'_>,
        mail: &OutgoingMail,
    ) -> Result<ProviderCall, Unsendable>;

    /// Reads the complete reply to a send. `now` turns absolute times into waits.
    fn read_send(&self, reply: &ProviderReply, now: Timestamp) -> SendOutcome;

    /// The same, for a provider whose refusals name addresses of the mail.
    fn read_send_of(
        &self,
        _mail: &OutgoingMail,
        reply: &ProviderReply,
        now: Timestamp,
    ) -> SendOutcome {
        self.read_send(reply, now)
    }

    /// Whether this status alone proves that the provider took the mail, even if the rest
    /// of the reply was cut off.
    fn status_is_proof(&self, status: u16) -> bool;

    /// How the provider takes several mails in one call; `None` if it does not.
    fn batching(&self) -> Option<&dyn Batching> {
        None
    }

    /// Adds a domain, in lower-case ASCII, unless the account has it. This method and the
    /// next three default to a refusal, for providers without an API for it.
    fn add_domain(&self, _access: &AccountAccess<'_>, _domain: &str) -> CallStep<DomainResult> {
        CallStep::Done(DomainResult::not_offered())
    }

    /// Asks the provider to check the domain's DNS records now, if its API allows that,
    /// and returns the domain's state.
    fn verify_domain(&self, _access: &AccountAccess<'_>, _domain: &str) -> CallStep<DomainResult> {
        CallStep::Done(DomainResult::not_offered())
    }

    /// Removes a domain; `Missing` if it is gone.
    fn remove_domain(&self, _access: &AccountAccess<'_>, _domain: &str) -> CallStep<DomainResult> {
        CallStep::Done(DomainResult::not_offered())
    }

    /// Registers our URL for the provider's events. Called twice, it creates one webhook.
    fn register_events(
        &self,
        _access: &AccountAccess<'_>,
        _target: EventTarget,
    ) -> CallStep<Registration> {
        CallStep::Done(Registration::not_offered())
    }

    /// Looks up whether the provider has a mail. It reads a bounded number of entries and
    /// never accepts another mail. By default the provider has no search.
    fn look_up(
        &self,
        _access: &AccountAccess<'_>,
        _sought: &MessageQuery,
    ) -> CallStep<LookupResult> {
        CallStep::Done(LookupResult::not_offered())
    }

    /// Reads a page of the provider's own suppression lists, in one call. By default the
    /// provider has none.
    fn suppressions(
        &self,
        _access: &AccountAccess<'_>,
        _cursor: &ListCursor,
    ) -> CallStep<ListResult> {
        CallStep::Done(ListResult::NotOffered)
    }

    /// Reads a page of the templates that are stored at the provider, in one call. By default
    /// the provider has none.
    fn templates(
        &self,
        _access: &AccountAccess<'_>,
        _page: Option<&str>,
    ) -> CallStep<Inventory<InventoryPage<ListedTemplate>>> {
        CallStep::Done(Inventory::NotOffered(NOTHING_STORED))
    }

    /// Reads the active version of a template of that list.
    fn template(
        &self,
        _access: &AccountAccess<'_>,
        _id: &str,
    ) -> CallStep<Inventory<StoredTemplate>> {
        CallStep::Done(Inventory::NotOffered(NOTHING_STORED))
    }

    /// Reads the webhooks that the customer registered at the provider.
    fn webhooks(
        &self,
        _access: &AccountAccess<'_>,
    ) -> CallStep<Inventory<InventoryPage<StoredWebhook>>> {
        CallStep::Done(Inventory::NotOffered(NOTHING_STORED))
    }
}

/// Why a mail server has no templates and webhooks.
const NOTHING_STORED: &str = "A mail server stores nothing of the kind.";

/// The adapter of a provider type.
#[must_use]
pub fn adapter(kind: ProviderType) -> &'static dyn Adapter {
    match kind {
        ProviderType::Sendgrid => &sendgrid::Sendgrid,
        ProviderType::Postmark => &postmark::Postmark,
        ProviderType::Mailgun => &mailgun::Mailgun,
        ProviderType::Ses => &ses::Ses,
        ProviderType::Smtp => &smtp::Smtp,
    }
}

/// The input of an adapter besides the mail.
#[derive(Debug, Clone, Copy)]
pub struct AccountAccess<'a> {
    pub credentials: &'a Credentials,
    pub endpoints: &'a ProviderHosts,
    /// The current time: signatures carry it.
    pub now: Timestamp,
}

/// The base URLs of the providers: their real hosts, unless another URL is configured for
/// a type. The path of such a URL is put before the provider's own.
#[derive(Debug, Clone, Default)]
pub struct ProviderHosts(HashMap<ProviderType, Url>);

impl From<HashMap<ProviderType, Url>> for ProviderHosts {
    fn from(replacements: HashMap<ProviderType, Url>) -> Self {
        Self(replacements)
    }
}

impl ProviderHosts {
    /// The providers' real hosts.
    #[must_use]
    pub fn real() -> Self {
        Self::default()
    }

    /// The same base URL for all providers: the simulator's.
    #[must_use]
    pub fn all_at(base: &Url) -> Self {
        Self(ProviderType::ALL.map(|kind| (kind, base.clone())).into())
    }

    /// The base of a provider's URLs: the configured one, else `https://` and its real
    /// host.
    fn base(&self, kind: ProviderType, real_host: &str) -> BaseUrl {
        let url = self.0.get(&kind).cloned().unwrap_or_else(|| {
            Url::parse(&format!("https://{real_host}"))
                .expect("real hosts are constants, or contain a checked region")
        });
        BaseUrl(url)
    }
}

/// The URL that a provider's paths are appended to.
#[derive(Debug, Clone)]
struct BaseUrl(Url);

impl BaseUrl {
    /// The URL of a path, which begins with `/` and is percent-encoded.
    fn at(&self, path: &str) -> Url {
        let mut url = self.0.clone();
        let prefix = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{prefix}{path}"));
        url.set_query(None);
        url.set_fragment(None);
        url
    }

    /// The URL of a path with a percent-encoded query.
    fn query(&self, path: &str, query: &str) -> Url {
        let mut url = self.at(path);
        url.set_query(Some(query));
        url
    }
}
