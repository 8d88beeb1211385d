//! Postmark. Sources: Postmark's Swagger documents (server, account), its "API
//! overview" page, its official JavaScript client, and the survey of its error
//! codes in api-evangelist/postmark.
//!
//! Postmark takes one tag: the message's first. Our ids travel as `Metadata` (10 fields,
//! names of 20 characters, values of 80). The `ErrorCode` in the body classifies a reply:
//! the HTTP status is 422 for nearly all errors.
//!
//! The server token alone cannot read domains; the account token can.

mod batch;
mod domain_changes;
mod event_webhook;
mod inventory;
mod lookup;
mod suppressions;

use http::{HeaderName, HeaderValue, header};
use serde_json::{Map, Value, json};

use super::batch::Batching;
use super::call::{CallStep, ProviderCall, ProviderReply};
use super::credentials::{Credentials, UnusableCredentials};
use super::domain::{
    DOMAIN_DETAILS_MAX, DOMAINS_MAX, DnsPurpose, DnsRecord, DnsRecordType, DnsStatus, DomainList,
    DomainState, FoundDomain, add_domain,
};
use super::files::placeholder;
use super::inventory::{Inventory, InventoryPage, ListedTemplate, StoredTemplate, StoredWebhook};
use super::kind::ProviderType;
use super::limits::{FileLimits, HeaderLimits, MailLimits};
use super::lookup::{LookupResult, MessageQuery};
use super::mail::{MailAttachment, OutgoingMail, Unsendable, header_value, mailbox_list};
use super::management::{DomainResult, EventTarget, Registration};
use super::outcome::{AccountTrouble, Blame, CredentialCheck, SendOutcome, unusable_reply};
use super::suppression_list::{ListCursor, ListResult};
use super::{AccountAccess, Adapter, BaseUrl};
use crate::address::{AddressHash, Mailbox};
use crate::clock::Timestamp;
use crate::secret::{ExposeSecret, Secret};

const SERVER_TOKEN: HeaderName = HeaderName::from_static("x-postmark-server-token");
const ACCOUNT_TOKEN: HeaderName = HeaderName::from_static("x-postmark-account-token");
/// The page size of the domain list: the allowed maximum.
const PAGE: usize = 500;

/// The reason why domains cannot be listed.
const WITHOUT_ACCOUNT_TOKEN: &str = "a server token cannot read domains: add the accountToken";

/// The counts and sizes are from the API overview and postmark-skills; the refused types are
/// those of Postmark's page "What file types can I send as attachments".
const LIMITS: MailLimits = MailLimits {
    recipients_max: 50,
    mail_bytes_max: Some(10_000_000),
    body_bytes_max: Some(5_000_000),
    headers: HeaderLimits::NONE,
    files: FileLimits {
        refused_extensions: &[
            "vbs", "exe", "bin", "bat", "chm", "com", "cpl", "crt", "hlp", "hta", "inf", "ins",
            "isp", "jse", "lnk", "mdb", "pcd", "pif", "reg", "scr", "sct", "shs", "vbe", "vba",
            "wsf", "wsh", "wsl", "msc", "msi", "msp", "mst",
        ],
        ..FileLimits::NONE
    },
};

/// The Postmark adapter.
pub(super) struct Postmark;

#[derive(Clone)]
struct PostmarkApi<'a> {
    base: BaseUrl,
    server_token: HeaderValue,
    account_token: Option<HeaderValue>,
    message_stream: Option<&'a str>,
}

impl<'a> PostmarkApi<'a> {
    fn of(access: &AccountAccess<'a>) -> Result<Self, UnusableCredentials> {
        let Credentials::Postmark {
            server_token,
            account_token,
            message_stream,
        } = access.credentials
        else {
            return Err(UnusableCredentials::OTHER_PROVIDER);
        };
        Ok(Self {
            base: access
                .endpoints
                .base(ProviderType::Postmark, "api.postmarkapp.com"),
            server_token: token_value(server_token)?,
            account_token: account_token.as_ref().map(token_value).transpose()?,
            message_stream: message_stream.as_deref(),
        })
    }

    fn with_server_token(&self, call: ProviderCall) -> ProviderCall {
        accepting_json(call).with(SERVER_TOKEN, self.server_token.clone())
    }

    /// The account API, if its token is known.
    fn account(&self) -> Option<AccountApi> {
        Some(AccountApi {
            base: self.base.clone(),
            token: self.account_token.clone()?,
        })
    }
}

/// The calls that need the account token.
#[derive(Clone)]
struct AccountApi {
    base: BaseUrl,
    token: HeaderValue,
}

impl AccountApi {
    /// `GET /domains`: both parameters are required.
    fn domains(&self, count: usize, offset: usize) -> ProviderCall {
        let url = self
            .base
            .query("/domains", &format!("count={count}&offset={offset}"));
        accepting_json(ProviderCall::get(url)).with(ACCOUNT_TOKEN, self.token.clone())
    }

    fn domain(&self, id: i64) -> ProviderCall {
        self.authorize(ProviderCall::get(self.base.at(&format!("/domains/{id}"))))
    }

    fn authorize(&self, call: ProviderCall) -> ProviderCall {
        accepting_json(call).with(ACCOUNT_TOKEN, self.token.clone())
    }
}

fn token_value(token: &Secret) -> Result<HeaderValue, UnusableCredentials> {
    let mut value = HeaderValue::from_str(token.expose_secret())
        .map_err(|_| UnusableCredentials("the token does not fit into a header"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Adds the headers without which Postmark answers 415 or `ErrorCode` 409.
fn accepting_json(call: ProviderCall) -> ProviderCall {
    let json = HeaderValue::from_static("application/json");
    call.with(header::ACCEPT, json.clone())
        .with(header::CONTENT_TYPE, json)
}

impl Adapter for Postmark {
    /// `GET /server`; then, with an account token, a page of one domain, to check that
    /// token too.
    fn check(&self, access: &AccountAccess<'_>) -> CallStep<CredentialCheck> {
        let api = match PostmarkApi::of(access) {
            Ok(api) => api,
            Err(unusable) => return CallStep::Done(unusable.into()),
        };
        let call = api.with_server_token(ProviderCall::get(api.base.at("/server")));
        let account = api.account();
        CallStep::call(call, move |reply| {
            let check = read_check(&reply, "ID", "the server token was refused");
            match account {
                Some(account) if check == CredentialCheck::Valid => {
                    CallStep::call(account.domains(1, 0), |reply| {
                        let refused = "the account token was refused";
                        CallStep::Done(read_check(&reply, "Domains", refused))
                    })
                }
                _ => CallStep::Done(check),
            }
        })
    }

    /// `GET /domains`, then `GET /domains/{id}` for the DNS records.
    fn domains(&self, access: &AccountAccess<'_>) -> CallStep<DomainList> {
        match PostmarkApi::of(access).map(|api| api.account()) {
            Ok(Some(account)) => list_domains(account, Listing::default()),
            Ok(None) => CallStep::Done(DomainList::NotVisible {
                reason: WITHOUT_ACCOUNT_TOKEN.to_owned(),
            }),
            Err(unusable) => CallStep::Done(unusable.into()),
        }
    }

    /// `POST /email`.
    fn send(
        &self,
        access: &AccountAccess<'_>,
        mail: &OutgoingMail,
    ) -> Result<ProviderCall, Unsendable> {
        mail.require_sendable()?;
        let api = PostmarkApi::of(access)?;
        let body = send_body(mail, api.message_stream);
        let call = ProviderCall::post_mail(api.base.at("/email"), &body, mail);
        Ok(api.with_server_token(call))
    }

    fn limits(&self) -> &'static MailLimits {
        &LIMITS
    }

    fn refused_recipients(
        &self,
        mail: &OutgoingMail,
        reply: &ProviderReply,
    ) -> Vec<(AddressHash, SendOutcome)> {
        let document = reply.json().unwrap_or_default();
        let text = document["Message"].as_str().unwrap_or_default();
        inactive_recipients(mail, text, reply)
    }

    fn read_send(&self, reply: &ProviderReply, now: Timestamp) -> SendOutcome {
        let document = reply.json().unwrap_or_default();
        let text = error_text(reply, &document);
        let code = document["ErrorCode"].as_i64();
        // A 415 has no body (API overview, "HTTP response codes").
        let is_own = code.is_some() || reply.status == 415 && reply.body.is_empty();
        if let Some(outcome) = SendOutcome::common(reply, now, &text, is_own) {
            return outcome;
        }
        match (reply.status, code) {
            (200..=299, Some(0)) => accepted(&document),
            // A slow service omits the code.
            (200..=299, None) if text.starts_with("Message accepted") => accepted(&document),
            (200..=299, None) => SendOutcome::unknown(reply, "not a reply to a send"),
            (_, Some(code)) => read_error(code, reply, now, &text),
            (_, None) => SendOutcome::rejected(Blame::Message, reply, &text),
        }
    }

    fn status_is_proof(&self, _status: u16) -> bool {
        false
    }

    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }

    fn add_domain(&self, access: &AccountAccess<'_>, domain: &str) -> CallStep<DomainResult> {
        with_account(access, |account| {
            domain_changes::add(account, domain.to_owned())
        })
    }

    fn verify_domain(&self, access: &AccountAccess<'_>, domain: &str) -> CallStep<DomainResult> {
        with_account(access, |account| {
            domain_changes::verify(account, domain.to_owned())
        })
    }

    fn remove_domain(&self, access: &AccountAccess<'_>, domain: &str) -> CallStep<DomainResult> {
        with_account(access, |account| {
            domain_changes::remove(account, domain.to_owned())
        })
    }

    fn register_events(
        &self,
        access: &AccountAccess<'_>,
        target: EventTarget,
    ) -> CallStep<Registration> {
        CallStep::with(PostmarkApi::of(access), |api| {
            event_webhook::register(&api, target)
        })
    }

    fn look_up(&self, access: &AccountAccess<'_>, query: &MessageQuery) -> CallStep<LookupResult> {
        CallStep::with(PostmarkApi::of(access), |api| {
            lookup::look_up(&api, query, access.now)
        })
    }

    fn suppressions(
        &self,
        access: &AccountAccess<'_>,
        cursor: &ListCursor,
    ) -> CallStep<ListResult> {
        CallStep::with(PostmarkApi::of(access), |api| {
            suppressions::read(&api, cursor)
        })
    }

    fn templates(
        &self,
        access: &AccountAccess<'_>,
        page: Option<&str>,
    ) -> CallStep<Inventory<InventoryPage<ListedTemplate>>> {
        CallStep::with(PostmarkApi::of(access), |api| {
            inventory::templates(&api, page, access.now)
        })
    }

    fn template(
        &self,
        access: &AccountAccess<'_>,
        id: &str,
    ) -> CallStep<Inventory<StoredTemplate>> {
        CallStep::with(PostmarkApi::of(access), |api| {
            inventory::template(&api, id, access.now)
        })
    }

    fn webhooks(
        &self,
        access: &AccountAccess<'_>,
    ) -> CallStep<Inventory<InventoryPage<StoredWebhook>>> {
        CallStep::with(PostmarkApi::of(access), |api| {
            inventory::webhooks(&api, access.now)
        })
    }
}

/// Holds a conversation that needs the account token.
fn with_account(
    access: &AccountAccess<'_>,
    conversation: impl FnOnce(AccountApi) -> CallStep<DomainResult>,
) -> CallStep<DomainResult> {
    match PostmarkApi::of(access).map(|api| api.account()) {
        Ok(Some(account)) => conversation(account),
        Ok(None) => CallStep::Done(DomainResult::NotVisible {
            reason: WITHOUT_ACCOUNT_TOKEN.to_owned(),
        }),
        Err(unusable) => CallStep::Done(unusable.into()),
    }
}

fn send_body(mail: &OutgoingMail, message_stream: Option<&str>) -> Value {
    let ids = mail.correlation().into_iter();
    let ids = ids.map(|(name, id)| (name.to_owned(), json!(id)));
    let mut body = json!({
        "From": mail.from.to_header(),
        "To": mailbox_list(&mail.to),
        "Subject": mail.subject,
        "Metadata": Map::from_iter(ids),
        "TrackOpens": false,
        "TrackLinks": "None",
    });
    let list = |mailboxes: &[Mailbox]| {
        let list = mailbox_list(mailboxes);
        (!list.is_empty()).then_some(list)
    };
    let optional = [
        (
            "HtmlBody",
            mail.html.clone().filter(|body| !body.is_empty()),
        ),
        (
            "TextBody",
            mail.text.clone().filter(|body| !body.is_empty()),
        ),
        ("Cc", list(&mail.cc)),
        ("Bcc", list(&mail.bcc)),
        ("ReplyTo", list(&mail.reply_to)),
        ("Tag", mail.tags.first().cloned()),
        ("MessageStream", message_stream.map(str::to_owned)),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            body[name] = json!(value);
        }
    }
    if !mail.headers.is_empty() {
        let headers = mail.headers.iter();
        body["Headers"] = headers
            .map(|(name, value)| json!({ "Name": name, "Value": header_value(value) }))
            .collect();
    }
    if !mail.attachments.is_empty() {
        let files = mail.attachments.iter().enumerate();
        body["Attachments"] = files.map(|(nth, file)| attachment(nth, file)).collect();
    }
    body
}

/// A file. With a `ContentID` it is inline.
fn attachment(nth: usize, file: &MailAttachment) -> Value {
    let mut attachment = json!({
        "Name": file.filename,
        "Content": placeholder(nth),
        "ContentType": file.content_type,
    });
    if let Some(id) = &file.content_id {
        attachment["ContentID"] = json!(format!("cid:{id}"));
    }
    attachment
}

/// The recipients that an accepting reply names: "Message OK, but will not deliver to these
/// inactive addresses: a, b. Inactive recipients are ones that …".
fn inactive_recipients(
    mail: &OutgoingMail,
    text: &str,
    reply: &ProviderReply,
) -> Vec<(AddressHash, SendOutcome)> {
    let Some((_, named)) = text.split_once("inactive addresses:") else {
        return Vec::new();
    };
    let is_border = |c: char| c.is_whitespace() || ",;<>".contains(c);
    let named: Vec<String> = named
        .split(is_border)
        .map(|word| word.trim_matches('.').to_ascii_lowercase())
        .collect();
    let inactive = mail.recipients().map(Mailbox::address).filter(|address| {
        let address = address.as_str().to_ascii_lowercase();
        named.contains(&address)
    });
    let why = "the recipient is inactive at Postmark";
    inactive
        .map(|address| {
            let outcome = SendOutcome::rejected(Blame::Recipient, reply, why);
            (address.hash(), outcome)
        })
        .collect()
}

fn accepted(document: &Value) -> SendOutcome {
    SendOutcome::Accepted {
        provider_message_id: document["MessageID"].as_str().map(str::to_owned),
    }
}

/// Reads the error codes that a send can get. Every other code is a refusal of the
/// message.
fn read_error(code: i64, reply: &ProviderReply, now: Timestamp, text: &str) -> SendOutcome {
    let blame = match code {
        // Server error, maintenance.
        100 => return SendOutcome::unavailable(reply, now, text),
        // Out of credits: the account can send again once the customer buys some.
        405 => {
            return SendOutcome::account_unusable(AccountTrouble::Temporary, reply, now, text);
        }
        429 => return SendOutcome::throttled(reply, now, text),
        // Token missing or wrong; account not allowed to send; stream unknown or not
        // usable for sending.
        10 | 413 | 1235 | 1236 => None,
        // Sender signature not found, not confirmed.
        400 | 401 => Some(Blame::Sender),
        // The recipient is inactive after a bounce, a complaint or by hand. An account that
        // is not approved yet may send only to recipients in the sender's domain.
        406 | 412 => Some(Blame::Recipient),
        300 => Some(blame_for_field(text)),
        _ if reply.status == 401 || reply.status == 403 => None,
        _ => Some(Blame::Message),
    };
    SendOutcome::refused(blame, reply, now, text)
}

/// Code 300 covers every invalid field; the text names it in quotes.
fn blame_for_field(text: &str) -> Blame {
    if text.contains("'To'") {
        Blame::Recipient
    } else if text.contains("'From'") {
        Blame::Sender
    } else {
        Blame::Message
    }
}

/// `expected` is a field of the requested record.
fn read_check(reply: &ProviderReply, expected: &str, refused: &str) -> CredentialCheck {
    if let Some(why) = unusable_reply(reply) {
        return CredentialCheck::undecided(reply, why);
    }
    let document = reply.json().unwrap_or_default();
    let code = document["ErrorCode"].as_i64();
    match (reply.status, code) {
        (200, _) if !document[expected].is_null() => CredentialCheck::Valid,
        (_, Some(10)) | (401, Some(_)) => CredentialCheck::invalid(reply, refused),
        // A successful reply is never quoted: the server's record repeats its tokens.
        (200..=299, _) => CredentialCheck::undecided(reply, "an unexpected reply"),
        _ => CredentialCheck::undecided(reply, &error_text(reply, &document)),
    }
}

/// The domains read so far, and the ids whose details are still to be read.
#[derive(Default)]
struct Listing {
    domains: Vec<FoundDomain>,
    ids: Vec<i64>,
    read: usize,
}

fn list_domains(api: AccountApi, mut listing: Listing) -> CallStep<DomainList> {
    CallStep::call(api.domains(PAGE, listing.read), move |reply| {
        if let Some(why) = unusable_reply(&reply) {
            return CallStep::Done(DomainList::undecided(&reply, why));
        }
        let document = reply.json().unwrap_or_default();
        let text = error_text(&reply, &document);
        let page = match (reply.status, document["Domains"].as_array()) {
            (200, Some(page)) => page,
            (401 | 403, _) => return CallStep::Done(DomainList::not_visible(&reply, &text)),
            _ => return CallStep::Done(DomainList::undecided(&reply, &text)),
        };
        for entry in page.iter().take(DOMAINS_MAX - listing.read) {
            listing.ids.extend(entry["ID"].as_i64());
            if let Some(domain) = read_domain(entry) {
                add_domain(&mut listing.domains, domain);
            }
        }
        listing.read += page.len();
        if page.len() < PAGE || listing.read >= DOMAINS_MAX {
            let ids = std::mem::take(&mut listing.ids);
            let details = ids.into_iter().take(DOMAIN_DETAILS_MAX);
            return read_details(
                api,
                details.collect::<Vec<_>>().into_iter(),
                listing.domains,
            );
        }
        list_domains(api, listing)
    })
}

/// Reads the DNS records of one domain after the other. The first failure ends it: the
/// remaining domains stay without records.
fn read_details(
    api: AccountApi,
    mut ids: std::vec::IntoIter<i64>,
    mut found: Vec<FoundDomain>,
) -> CallStep<DomainList> {
    let Some(id) = ids.next() else {
        return CallStep::Done(DomainList::Visible(found));
    };
    CallStep::call(api.domain(id), move |reply| {
        let detail = reply.json().filter(|_| reply.status == 200);
        let Some(domain) = detail.as_ref().and_then(read_domain) else {
            return CallStep::Done(DomainList::Visible(found));
        };
        if let Some(known) = found.iter_mut().find(|known| known.domain == domain.domain) {
            *known = domain;
        }
        read_details(api, ids, found)
    })
}

/// A domain of the list or of its details: the same fields, but only the details have the
/// hosts and values of the records. DKIM decides the state: once its key is verified,
/// Postmark sends for every address of the domain.
fn read_domain(entry: &Value) -> Option<FoundDomain> {
    let dkim = entry["DKIMVerified"] == true;
    let return_path = entry["ReturnPathDomainVerified"] == true;
    let record = |record_type, name: &str, value: &str, verified, purpose| {
        let text = |field: &str| entry[field].as_str().filter(|text| !text.is_empty());
        Some(DnsRecord {
            record_type,
            name: text(name)?.to_owned(),
            value: text(value)?.to_owned(),
            priority: None,
            purpose,
            status: DnsStatus::from_valid(verified),
        })
    };
    let (txt, cname) = (DnsRecordType::Txt, DnsRecordType::Cname);
    let records = [
        record(txt, "DKIMHost", "DKIMTextValue", dkim, DnsPurpose::Dkim),
        record(
            txt,
            "DKIMPendingHost",
            "DKIMPendingTextValue",
            false,
            DnsPurpose::Dkim,
        ),
        record(
            cname,
            "ReturnPathDomain",
            "ReturnPathDomainCNAMEValue",
            return_path,
            DnsPurpose::ReturnPath,
        ),
    ];
    Some(FoundDomain {
        domain: entry["Name"].as_str()?.to_lowercase(),
        state: if dkim {
            DomainState::Verified
        } else {
            DomainState::Unverified
        },
        dns_records: records.into_iter().flatten().collect(),
    })
}

/// `Message` of `{"ErrorCode", "Message"}`, with the code, else the text.
fn error_text(reply: &ProviderReply, document: &Value) -> String {
    match (document["ErrorCode"].as_i64(), document["Message"].as_str()) {
        (Some(code), Some(message)) if code != 0 => format!("{message} (ErrorCode {code})"),
        (_, Some(message)) => message.to_owned(),
        (_, None) if reply.is_html() => String::new(),
        (_, None) => reply.text(),
    }
}
