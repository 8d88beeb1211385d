//! Providers: the services that mail goes out through.
//!
//! An [`Adapter`] knows one provider's wire format and does no I/O: it builds the
//! requests and reads the replies, so tests need no server and all adapters read
//! alike. The one [`transport`] sends what they build. What a provider says is
//! turned at once into our own words ([`outcome`], [`domain`]).
//! SMTP has no requests and replies as values; the transport holds that conversation
//! itself ([`smtp`]).
//!
//! Every mail carries our ids to the provider ([`mail::TAG_MESSAGE`] and its
//! neighbours), because its events must find their recipient even where the
//! answer to the send was lost. The provider's own open and click tracking is
//! switched off: Waypost does that itself.
//!
//! # How to add a provider
//! 1. Collect its wire facts with their sources, as for the four that exist.
//! 2. Add a variant to [`kind::ProviderType`] and a label to the Postgres type
//!    `provider_type` (a migration of its own). From here on the compiler leads:
//!    every place that must decide something about the new type fails to compile.
//! 3. Add its variant to [`credentials::Credentials`], with a reader in `Fields`.
//!    Whatever goes into a URL or a header is checked there.
//! 4. Write `provider/<name>.rs` with an [`Adapter`], beginning with the send. Cite
//!    the source of every fact. Decide for each refusal whom it blames, and what a
//!    cut-off answer proves ([`Adapter::status_is_proof`]).
//! 5. Name it in [`adapter`].
//! 6. Read its events in `inbound/<name>.rs`, by the ids that the send carries, and
//!    name its reader in [`inbound::receive`]: verify first, then read.
//! 7. Where its API keeps domains or registers webhooks, hold those conversations
//!    ([`Adapter::add_domain`] and its neighbours). Where it has a search that shows
//!    our ids, ask it for mails whose answer was lost ([`Adapter::look_up`]).
//! 8. Where it takes several private copies in one call, let it ([`batch`]).
//! 9. Add its rows to `tests/it/adapters.rs`, and teach the simulator its API.

pub mod batch;
pub mod call;
pub mod credentials;
pub mod domain;
pub mod event;
pub mod event_secrets;
mod identities;
pub mod inbound;
pub mod kind;
pub mod lookup;
pub mod mail;
mod mailgun;
pub mod management;
pub mod outcome;
mod postmark;
mod retry_after;
mod sendgrid;
pub mod ses;
pub mod smtp;
pub mod transport;

use std::collections::HashMap;

use url::Url;

use crate::clock::Timestamp;
use batch::Batching;
use call::{CallStep, ProviderCall, ProviderReply};
use credentials::Credentials;
use domain::DomainList;
use kind::ProviderType;
use lookup::{LookupResult, MessageQuery};
use mail::{OutgoingMail, Unsendable};
use management::{DomainAnswer, EventTarget, Registration};
use outcome::{CredentialCheck, SendOutcome};

/// One provider's wire format: requests out, replies in, no I/O.
pub trait Adapter: Send + Sync {
    /// The conversation that finds out whether the provider knows the
    /// credentials and lets them send. It sends no mail.
    fn check(&self, access: &AccountAccess<'_>) -> CallStep<CredentialCheck>;

    /// The conversation that lists the account's domains with their DNS records,
    /// bounded by [`domain::DOMAINS_MAX`] and [`domain::DOMAIN_DETAILS_MAX`].
    fn domains(&self, access: &AccountAccess<'_>) -> CallStep<DomainList>;

    /// The request that sends one mail.
    ///
    /// # Errors
    /// Why the mail cannot be put into a request.
    fn send(
        &self,
        access: &AccountAccess<'_>,
        mail: &OutgoingMail,
    ) -> Result<ProviderCall, Unsendable>;

    /// What the complete reply to a send means. `now` turns absolute times into
    /// waits.
    fn read_send(&self, reply: &ProviderReply, now: Timestamp) -> SendOutcome;

    /// The same, where what it means depends on whom the reply names of the mail.
    fn read_send_of(
        &self,
        _mail: &OutgoingMail,
        reply: &ProviderReply,
        now: Timestamp,
    ) -> SendOutcome {
        self.read_send(reply, now)
    }

    /// Whether this status alone proves that the mail was taken, so that it
    /// counts even where the rest of the answer was cut off.
    fn status_is_proof(&self, status: u16) -> bool;

    /// How it takes several mails in one call. Where nothing else is said, it does not.
    fn batching(&self) -> Option<&dyn Batching> {
        None
    }

    /// The conversation that adds a domain, in lower-case ASCII, unless the account
    /// has it. This one and the next three are refused where nothing else is said:
    /// by providers that have no API for it.
    fn add_domain(&self, _access: &AccountAccess<'_>, _domain: &str) -> CallStep<DomainAnswer> {
        CallStep::Done(DomainAnswer::not_offered())
    }

    /// The conversation that lets the provider look into DNS now, where it can be
    /// asked to, and says how the domain stands.
    fn verify_domain(&self, _access: &AccountAccess<'_>, _domain: &str) -> CallStep<DomainAnswer> {
        CallStep::Done(DomainAnswer::not_offered())
    }

    /// The conversation that removes a domain; `Missing` when it is gone.
    fn remove_domain(&self, _access: &AccountAccess<'_>, _domain: &str) -> CallStep<DomainAnswer> {
        CallStep::Done(DomainAnswer::not_offered())
    }

    /// The conversation that lets the provider tell of events under our URL. Held
    /// twice it makes no second webhook.
    fn register_events(
        &self,
        _access: &AccountAccess<'_>,
        _target: EventTarget,
    ) -> CallStep<Registration> {
        CallStep::Done(Registration::not_offered())
    }

    /// The conversation that finds out whether the provider has a mail. What it
    /// reads is bounded, and it takes no other mail for the one that is sought.
    /// Where nothing else is said, the provider has no search.
    fn look_up(
        &self,
        _access: &AccountAccess<'_>,
        _sought: &MessageQuery,
    ) -> CallStep<LookupResult> {
        CallStep::Done(LookupResult::not_offered())
    }
}

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

/// What an adapter needs besides the mail.
#[derive(Debug, Clone, Copy)]
pub struct AccountAccess<'a> {
    pub credentials: &'a Credentials,
    pub endpoints: &'a ProviderHosts,
    /// The present moment: signatures carry it.
    pub now: Timestamp,
}

/// Where the providers are: at their real hosts, unless another address is given
/// for a type. An address may carry a path, which then stands before the
/// provider's own.
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

    /// All providers at one address: the simulator's.
    #[must_use]
    pub fn all_at(base: &Url) -> Self {
        Self(ProviderType::ALL.map(|kind| (kind, base.clone())).into())
    }

    /// The base of a provider's URLs: the replacement, else `https://` and its
    /// real host.
    fn base(&self, kind: ProviderType, real_host: &str) -> BaseUrl {
        let url = self.0.get(&kind).cloned().unwrap_or_else(|| {
            Url::parse(&format!("https://{real_host}"))
                .expect("real hosts are constants, or contain a checked region")
        });
        BaseUrl(url)
    }
}

/// The address that a provider's paths are put behind.
#[derive(Debug, Clone)]
struct BaseUrl(Url);

impl BaseUrl {
    /// The URL of a path, which begins with `/` and is percent-encoded where it
    /// must be.
    fn at(&self, path: &str) -> Url {
        let mut url = self.0.clone();
        let prefix = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{prefix}{path}"));
        url.set_query(None);
        url.set_fragment(None);
        url
    }

    /// The URL of a path with a query, percent-encoded where it must be.
    fn query(&self, path: &str, query: &str) -> Url {
        let mut url = self.at(path);
        url.set_query(Some(query));
        url
    }
}
