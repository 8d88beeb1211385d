//! SendGrid, v3 API. Sources: twilio/sendgrid-oai (`tsg_mail_v3`, `tsg_scopes_v3`,
//! `tsg_domain_authentication_v3`), called OAI here, and Twilio's SendGrid
//! documentation pages, named by title.
//!
//! SendGrid gets all tags of a message as `categories` (unique, at most 10, each at most
//! 255 characters: OAI). Our ids travel as `custom_args` of the one personalization.
//! Suppressed and malformed recipients cause no API error: the reply is 202, and a
//! `dropped` event follows.

mod batch;
mod domain_changes;
mod event_webhook;
mod inventory;
mod lookup;
mod suppressions;

use http::{HeaderMap, HeaderValue, header};
use serde_json::{Map, Value, json};

use super::batch::Batching;
use super::call::{CallStep, ProviderCall, ProviderReply};
use super::credentials::{Credentials, SendgridRegion, UnusableCredentials};
use super::domain::{
    DOMAINS_MAX, DnsPurpose, DnsRecord, DnsRecordType, DnsStatus, DomainList, DomainState,
    FoundDomain, add_domain,
};
use super::files::placeholder;
use super::inventory::{Inventory, InventoryPage, ListedTemplate, StoredTemplate, StoredWebhook};
use super::kind::ProviderType;
use super::limits::{FileLimits, HeaderLimits, MailLimits};
use super::lookup::{LookupResult, MessageQuery};
use super::mail::{OutgoingMail, Unsendable, header_value};
use super::management::{DomainResult, EventTarget, Registration};
use super::outcome::{AccountTrouble, Blame, CredentialCheck, SendOutcome, unusable_reply};
use super::suppression_list::{ListCursor, ListResult};
use super::{AccountAccess, Adapter, BaseUrl};
use crate::address::Mailbox;
use crate::clock::Timestamp;
use crate::secret::ExposeSecret;

/// The most categories of one mail (OAI).
const CATEGORIES_MAX: usize = 10;
/// The page size of the domain list.
const PAGE: usize = 200;
/// The priority shown for SendGrid's MX record, which names none: it is the only MX record
/// of its name, so any number works.
const MX_PRIORITY: u16 = 10;

/// 1,000 recipients over To, Cc and Bcc, the refused headers and non-empty contents are
/// OAI; headers are an object, so a name occurs once. The size is from "Attachments with
/// Digioh".
const LIMITS: MailLimits = MailLimits {
    recipients_max: 1_000,
    mail_bytes_max: Some(30_000_000),
    body_bytes_max: None,
    headers: HeaderLimits {
        refused: &[
            "x-sg-id",
            "x-sg-eid",
            "received",
            "dkim-signature",
            "content-type",
            "content-transfer-encoding",
            "to",
            "from",
            "subject",
            "reply-to",
            "cc",
            "bcc",
        ],
        may_repeat: false,
        ..HeaderLimits::NONE
    },
    files: FileLimits {
        may_be_empty: false,
        ..FileLimits::NONE
    },
};

/// The SendGrid adapter.
pub(super) struct Sendgrid;

/// The API of one account: its base URL and authorization.
#[derive(Clone)]
struct SendgridApi {
    base: BaseUrl,
    authorization: HeaderValue,
    region: SendgridRegion,
}

impl SendgridApi {
    fn of(access: &AccountAccess<'_>) -> Result<Self, UnusableCredentials> {
        let Credentials::Sendgrid { api_key, region } = access.credentials else {
            return Err(UnusableCredentials::OTHER_PROVIDER);
        };
        let host = match region {
            SendgridRegion::Global => "api.sendgrid.com",
            SendgridRegion::Eu => "api.eu.sendgrid.com",
        };
        let bearer = format!("Bearer {}", api_key.expose_secret());
        let mut authorization = HeaderValue::from_str(&bearer)
            .map_err(|_| UnusableCredentials("the API key does not fit into a header"))?;
        authorization.set_sensitive(true);
        Ok(Self {
            base: access.endpoints.base(ProviderType::Sendgrid, host),
            authorization,
            region: *region,
        })
    }

    fn authorize(&self, call: ProviderCall) -> ProviderCall {
        call.with(header::AUTHORIZATION, self.authorization.clone())
    }
}

impl Adapter for Sendgrid {
    /// `GET /v3/scopes` lists the key's own scopes, whatever they are (OAI).
    fn check(&self, access: &AccountAccess<'_>) -> CallStep<CredentialCheck> {
        match SendgridApi::of(access) {
            Ok(api) => {
                let call = api.authorize(ProviderCall::get(api.base.at("/v3/scopes")));
                CallStep::call(call, |reply| CallStep::Done(read_check(&reply)))
            }
            Err(unusable) => CallStep::Done(unusable.into()),
        }
    }

    /// `GET /v3/whitelabel/domains`, a bare array with the DNS records in it.
    fn domains(&self, access: &AccountAccess<'_>) -> CallStep<DomainList> {
        CallStep::with(SendgridApi::of(access), |api| {
            list_domains(api, 0, Vec::new())
        })
    }

    fn limits(&self) -> &'static MailLimits {
        &LIMITS
    }

    /// `POST /v3/mail/send` with one personalization.
    fn send(
        &self,
        access: &AccountAccess<'_>,
        mail: &OutgoingMail,
    ) -> Result<ProviderCall, Unsendable> {
        mail.require_sendable()?;
        let api = SendgridApi::of(access)?;
        let url = api.base.at("/v3/mail/send");
        let body = send_body(mail, (mail.text.as_deref(), mail.html.as_deref()));
        Ok(api.authorize(ProviderCall::post_mail(url, &body, mail)))
    }

    fn read_send(&self, reply: &ProviderReply, now: Timestamp) -> SendOutcome {
        if self.status_is_proof(reply.status) {
            return SendOutcome::Accepted {
                provider_message_id: message_id(&reply.headers),
            };
        }
        let text = error_text(reply);
        if let Some(outcome) = SendOutcome::common(reply, now, &text, is_api_error(reply)) {
            return outcome;
        }
        match reply.status {
            200..=299 => SendOutcome::unknown(reply, "not a reply to a send"),
            400..=403 if out_of_credits(&text) => {
                SendOutcome::account_unusable(AccountTrouble::Temporary, reply, now, &text)
            }
            400 => SendOutcome::rejected(blame_for_fields(reply), reply, &text),
            403 if is_about_sender(reply, &text) => {
                SendOutcome::rejected(Blame::Sender, reply, &text)
            }
            406 | 415 => SendOutcome::rejected(Blame::Message, reply, &text),
            _ => SendOutcome::refused(None, reply, now, &text),
        }
    }

    /// A 202 has no body: the message id is in a header.
    fn status_is_proof(&self, status: u16) -> bool {
        status == 202
    }

    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }

    fn add_domain(&self, access: &AccountAccess<'_>, domain: &str) -> CallStep<DomainResult> {
        CallStep::with(SendgridApi::of(access), |api| {
            domain_changes::add(api, domain.to_owned())
        })
    }

    fn verify_domain(&self, access: &AccountAccess<'_>, domain: &str) -> CallStep<DomainResult> {
        CallStep::with(SendgridApi::of(access), |api| {
            domain_changes::verify(api, domain.to_owned())
        })
    }

    fn remove_domain(&self, access: &AccountAccess<'_>, domain: &str) -> CallStep<DomainResult> {
        CallStep::with(SendgridApi::of(access), |api| {
            domain_changes::remove(api, domain.to_owned())
        })
    }

    fn register_events(
        &self,
        access: &AccountAccess<'_>,
        target: EventTarget,
    ) -> CallStep<Registration> {
        CallStep::with(SendgridApi::of(access), |api| {
            event_webhook::register(api, target)
        })
    }

    fn look_up(&self, access: &AccountAccess<'_>, query: &MessageQuery) -> CallStep<LookupResult> {
        CallStep::with(SendgridApi::of(access), |api| {
            lookup::look_up(api, query, access.now)
        })
    }

    fn suppressions(
        &self,
        access: &AccountAccess<'_>,
        cursor: &ListCursor,
    ) -> CallStep<ListResult> {
        CallStep::with(SendgridApi::of(access), |api| {
            suppressions::read(&api, cursor)
        })
    }

    fn templates(
        &self,
        access: &AccountAccess<'_>,
        page: Option<&str>,
    ) -> CallStep<Inventory<InventoryPage<ListedTemplate>>> {
        CallStep::with(SendgridApi::of(access), |api| {
            inventory::templates(&api, page, access.now)
        })
    }

    fn template(
        &self,
        access: &AccountAccess<'_>,
        id: &str,
    ) -> CallStep<Inventory<StoredTemplate>> {
        CallStep::with(SendgridApi::of(access), |api| {
            inventory::template(&api, id, access.now)
        })
    }

    fn webhooks(
        &self,
        access: &AccountAccess<'_>,
    ) -> CallStep<Inventory<InventoryPage<StoredWebhook>>> {
        CallStep::with(SendgridApi::of(access), |api| {
            inventory::webhooks(&api, access.now)
        })
    }
}

/// `X-Message-Id`: not in the OpenAPI document, but in the glossary. Events repeat it as the
/// part of `sg_message_id` before the first dot.
fn message_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get("x-message-id")?.to_str().ok()?.trim();
    (!id.is_empty()).then(|| id.to_owned())
}

/// The bodies, text and HTML, are separate parameters: a batch passes templates.
fn send_body(mail: &OutgoingMail, bodies: (Option<&str>, Option<&str>)) -> Value {
    let mut body = json!({
        "personalizations": [personalization(mail)],
        "from": mailbox_json(&mail.from),
        "subject": mail.subject,
        "content": content(bodies),
        "tracking_settings": {
            "click_tracking": { "enable": false, "enable_text": false },
            "open_tracking": { "enable": false },
            "subscription_tracking": { "enable": false },
            "ganalytics": { "enable": false },
        },
    });
    match mail.reply_to.as_slice() {
        [] => {}
        [reply_to] => body["reply_to"] = mailbox_json(reply_to),
        several => body["reply_to_list"] = several.iter().map(mailbox_json).collect(),
    }
    if !mail.headers.is_empty() {
        body["headers"] = headers(mail);
    }
    if !mail.attachments.is_empty() {
        body["attachments"] = attachments(mail);
    }
    let categories = categories(&mail.tags);
    if !categories.is_empty() {
        body["categories"] = json!(categories);
    }
    body
}

/// The envelope of a mail, with our ids.
fn personalization(mail: &OutgoingMail) -> Value {
    let ids = mail.correlation().into_iter();
    let ids = ids.map(|(name, id)| (name.to_owned(), json!(id)));
    let mut own = json!({ "custom_args": Map::from_iter(ids) });
    for (name, mailboxes) in [("to", &mail.to), ("cc", &mail.cc), ("bcc", &mail.bcc)] {
        if !mailboxes.is_empty() {
            own[name] = mailboxes.iter().map(mailbox_json).collect();
        }
    }
    own
}

fn headers(mail: &OutgoingMail) -> Value {
    let headers = mail.headers.iter();
    headers
        .map(|(name, value)| (name.clone(), json!(header_value(value))))
        .collect()
}

fn attachments(mail: &OutgoingMail) -> Value {
    let files = mail.attachments.iter().enumerate();
    let files = files.map(|(nth, file)| {
        let mut attachment = json!({
            "content": placeholder(nth),
            "type": file.content_type,
            "filename": file.filename,
            "disposition": file.disposition(),
        });
        if let Some(id) = &file.content_id {
            attachment["content_id"] = json!(id);
        }
        attachment
    });
    files.collect()
}

/// A mailbox. The name is not quoted: SendGrid quotes it since 2020, and quotes of ours would
/// become part of the name (sendgrid-php issue 1006).
fn mailbox_json(mailbox: &Mailbox) -> Value {
    let email = mailbox.address().as_str();
    match mailbox.name() {
        Some(name) => json!({ "email": email, "name": name }),
        None => json!({ "email": email }),
    }
}

/// Plain text comes before HTML, as in a multipart body: mail clients show the last part
/// that they support.
fn content((text, html): (Option<&str>, Option<&str>)) -> Vec<Value> {
    let parts = [("text/plain", text), ("text/html", html)];
    let given = parts
        .into_iter()
        .filter_map(|(kind, body)| Some((kind, body?)));
    given
        .filter(|(_, body)| !body.is_empty())
        .map(|(kind, body)| json!({ "type": kind, "value": body }))
        .collect()
}

fn categories(tags: &[String]) -> Vec<&str> {
    let mut categories: Vec<&str> = Vec::with_capacity(tags.len());
    for tag in tags.iter().map(String::as_str) {
        if !tag.is_empty() && !categories.contains(&tag) && categories.len() < CATEGORIES_MAX {
            categories.push(tag);
        }
    }
    categories
}

fn read_check(reply: &ProviderReply) -> CredentialCheck {
    let text = error_text(reply);
    if let Some(why) = unusable_reply(reply) {
        return CredentialCheck::undecided(reply, why);
    }
    let document = reply.json();
    let scopes = document
        .as_ref()
        .and_then(|document| document["scopes"].as_array());
    let is_api_error = document
        .as_ref()
        .is_some_and(|document| document["errors"].is_array());
    match (reply.status, scopes) {
        (200, Some(scopes)) if scopes.iter().any(|scope| scope == "mail.send") => {
            CredentialCheck::Valid
        }
        (200, Some(_)) => CredentialCheck::invalid(reply, "the API key lacks the scope mail.send"),
        (401..=403, _) if out_of_credits(&text) => CredentialCheck::undecided(reply, &text),
        (401, _) if is_api_error => CredentialCheck::invalid(reply, &text),
        // The key is valid; it only may not read this resource.
        (403, _) if is_api_error => CredentialCheck::Valid,
        _ => CredentialCheck::undecided(reply, &text),
    }
}

fn list_domains(
    api: SendgridApi,
    offset: usize,
    mut found: Vec<FoundDomain>,
) -> CallStep<DomainList> {
    let query = format!("limit={PAGE}&offset={offset}");
    let url = api.base.query("/v3/whitelabel/domains", &query);
    CallStep::call(api.authorize(ProviderCall::get(url)), move |reply| {
        let text = error_text(&reply);
        if let Some(why) = unusable_reply(&reply) {
            return CallStep::Done(DomainList::undecided(&reply, why));
        }
        let document = reply.json();
        let page = match (reply.status, document.as_ref().and_then(Value::as_array)) {
            (200, Some(page)) => page,
            (403, _) => return CallStep::Done(DomainList::not_visible(&reply, &text)),
            _ => return CallStep::Done(DomainList::undecided(&reply, &text)),
        };
        page.iter()
            .take(DOMAINS_MAX - offset)
            .filter_map(read_domain)
            .for_each(|domain| add_domain(&mut found, domain));
        let read = offset + page.len();
        if page.len() < PAGE || read >= DOMAINS_MAX {
            return CallStep::Done(DomainList::Visible(found));
        }
        list_domains(api, read, found)
    })
}

fn read_domain(entry: &Value) -> Option<FoundDomain> {
    let state = match entry["valid"].as_bool() {
        Some(true) => DomainState::Verified,
        Some(false) => DomainState::Unverified,
        None => DomainState::Unknown,
    };
    let dns = entry["dns"].as_object();
    let records = dns.into_iter().flatten();
    Some(FoundDomain {
        domain: entry["domain"].as_str()?.to_owned(),
        state,
        dns_records: records
            .filter_map(|(key, record)| read_record(key, record))
            .collect(),
    })
}

/// One entry of `dns`: `mail_cname`, `dkim1`, `dkim2` with automated security,
/// `mail_server`, `subdomain_spf`, `domain_spf`, `dkim` without (OAI).
fn read_record(key: &str, record: &Value) -> Option<DnsRecord> {
    let purpose = match key {
        "mail_cname" | "mail_server" => DnsPurpose::ReturnPath,
        "subdomain_spf" | "domain_spf" => DnsPurpose::Spf,
        key if key.starts_with("dkim") => DnsPurpose::Dkim,
        _ => return None,
    };
    let record_type = DnsRecordType::from_name(record["type"].as_str()?)?;
    Some(DnsRecord {
        record_type,
        name: record["host"].as_str()?.to_owned(),
        value: record["data"].as_str()?.to_owned(),
        priority: (record_type == DnsRecordType::Mx).then_some(MX_PRIORITY),
        purpose,
        status: DnsStatus::from_valid(record["valid"] == true),
    })
}

/// The messages of `{"errors": [{"message", "field", "help"}]}`, else the text.
fn error_text(reply: &ProviderReply) -> String {
    let document = reply.json().unwrap_or_default();
    let errors = document["errors"].as_array();
    let messages = errors.into_iter().flatten();
    let messages: Vec<&str> = messages
        .filter_map(|error| error["message"].as_str().or_else(|| error.as_str()))
        .collect();
    if messages.is_empty() && !reply.is_html() {
        return reply.text();
    }
    messages.join("; ")
}

fn error_fields(reply: &ProviderReply) -> Vec<String> {
    let document = reply.json().unwrap_or_default();
    let errors = document["errors"].as_array();
    let fields = errors.into_iter().flatten();
    fields
        .filter_map(|error| Some(error["field"].as_str()?.to_owned()))
        .collect()
}

/// Whether the reply is one of the API's errors: `{"errors": [{"message", …}]}` (OAI,
/// ErrorResponse).
fn is_api_error(reply: &ProviderReply) -> bool {
    let document = reply.json().unwrap_or_default();
    let errors = document["errors"].as_array();
    errors.is_some_and(|errors| {
        errors
            .iter()
            .any(|error| error.is_string() || error["message"].is_string())
    })
}

/// Whether a quota is used up. That comes as a 401 "Maximum credits exceeded"
/// (sendgrid-nodejs issue 1032) or as a 403 "You have exceeded your messaging limits"
/// (sendgrid-php issue 931). The other words cover variants.
fn out_of_credits(text: &str) -> bool {
    const WORDS: [&str; 8] = [
        "credits exceeded",
        "exceeded your credits",
        "messaging limit",
        "sending limit",
        "email limit",
        "daily limit",
        "quota",
        "paused",
    ];
    let text = text.to_ascii_lowercase();
    WORDS.iter().any(|words| text.contains(words))
}

/// "The from address does not match a verified Sender Identity…" with the field `from`
/// (sendgrid-ruby issue 489), in contrast to a missing scope.
fn is_about_sender(reply: &ProviderReply, text: &str) -> bool {
    error_fields(reply)
        .iter()
        .any(|field| field.starts_with("from"))
        || text.to_ascii_lowercase().contains("sender identity")
}

/// What the fields named by SendGrid are about, such as `personalizations.0.to.0.email`,
/// `from.email`, `content`.
fn blame_for_fields(reply: &ProviderReply) -> Blame {
    let fields = error_fields(reply);
    if fields.iter().any(|field| field.starts_with("from")) {
        Blame::Sender
    } else if fields
        .iter()
        .any(|field| field.starts_with("personalizations") && field.contains(".to"))
    {
        Blame::Recipient
    } else {
        Blame::Message
    }
}
